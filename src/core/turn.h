/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TURN_H
#define FK_CORE_TURN_H

/* One turn of a cell: signals first, then messages as the budget allows. */

#include "core/system.h"

/* The worker holds the cell's run token. Returns true when the cell stays ready, false when the
 * token is gone. Handles no more than worker->done_limit allows. */
bool fk__cell_turn(fk_worker *worker, fk_cell *cell);

/* Makes the node behind the head the head, and frees the old one if nobody holds it. */
void fk__cell_advance(fk_worker *worker, fk_cell *cell, fk_link *next);
/* A message of a cell that will not get it: reported, dropped, freed unless it is the head. */
void fk__cell_dead_node(fk_worker *worker, fk_cell *cell, fk_node *node);

/* Begins to stop the cell whose token the caller holds, if it has not begun. */
void fk__cell_stop(fk_worker *worker, fk_cell *cell);
/* Asks a cell of that generation to stop; any thread. */
void fk__cell_ask_stop(fk_local *local, fk_cell *cell, uint32_t generation);
/* True when it has ended, false while children are left. */
bool fk__cell_try_end(fk_worker *worker, fk_cell *cell);
/* A child's last word to its parent. */
void fk__cell_child_ended(fk_worker *worker, fk_cell *parent, fk_cell *child);

/* Something has ended: wakes the threads in fk_await_stopped(). */
void fk__waiters_notify(fk_system *sys);

#endif /* FK_CORE_TURN_H */

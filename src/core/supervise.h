/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SUPERVISE_H
#define FK_CORE_SUPERVISE_H

/*
 * Failure and what is done about it.
 *
 * An actor that fails is *held*: it handles signals but no messages, and its whole subtree with it.
 * It puts FAILED into the word that it shares with its parent and sends its embedded signal. The
 * parent's strategy decides, and the answer comes back through the same word. All of this is state,
 * not messages: it needs no memory, comes in any order and may come twice. Being held is inherited,
 * not counted: an actor is held if it has failed or its parent is held
 * (docs/adr/0008-held-is-a-state.md).
 */

#include "core/turn.h"

/* How often a child was restarted: kept by its parent. */
typedef struct fk_tally {
    fk_time window;    /* when it began; 0: it has not */
    uint32_t count;    /* restarts in it */
    uint32_t total;    /* in all */
    uint32_t backoffs; /* in a row */
    fk_time restarted; /* when it was restarted last, or will be */
} fk_tally;

/* One more restart at that time: may it be? max -1: any number; within 0: there is one window. */
bool fk__tally_permit(fk_tally *tally, int32_t max, fk_time within, fk_time now);
/* How long the restart waits; chance: any number. */
fk_time fk__tally_backoff(fk_tally *tally, const fk_strategy *strategy, fk_time now,
                          uint32_t chance);
/* FK_E_STRATEGY: no parent could follow it. */
FK_MUST_USE fk_err fk__strategy_check(const fk_strategy *strategy);

/* What the actor in this cell has just done to deserve it. The detail is in worker->ctx. */
void fk__cell_failed(fk_worker *worker, fk_cell *cell, const fk_type *type, fk_err err,
                     fk_failure_phase phase);
/* A child's signal: it has failed, or ended, or both. */
void fk__cell_child_signal(fk_worker *worker, fk_cell *parent, fk_cell *child);
/* A child has ended: what is known about its failures goes. */
void fk__child_forget(fk_worker *worker, fk_cell *parent, const fk_cell *child);
/* The parent's wish, or a change of its state. */
void fk__cell_ordered(fk_worker *worker, fk_cell *cell);
/* Puts bits into a child's word and wakes it; the parent's only, or whoever acts for it. */
void fk__cell_order(fk_local *local, fk_cell *child, uint32_t bits);
/* The order to restart, with the reason. */
void fk__cell_order_restart(fk_local *local, fk_cell *child, fk_err why);
/* The same, because of the failure after which it waits; if it does not wait any more, nothing
 * happens. */
void fk__cell_order_revival(fk_local *local, fk_cell *child);
/* After a change of cell->suspended: takes messages or not, and the children with it. */
void fk__cell_hold(fk_worker *worker, fk_cell *cell);
/* A failure that the parent need not hear of any more: the actor begins anew, or ends. */
void fk__cell_retract(fk_cell *cell);
/* It goes on, by an order of its parent; who may have given that for another reason, and not have
 * heard of the failure yet. */
void fk__cell_settle(fk_cell *cell);
/* The word of a cell that has ended; true: the signal has to be sent, false: it is on its way. */
bool fk__cell_report_end(fk_cell *cell);

/* restart.c */
/* Leaves the old state; the new one begins when the children that have to go are gone. */
void fk__cell_restart(fk_worker *worker, fk_cell *cell, fk_err why);
/* A child has ended: was it the last one? */
void fk__cell_try_restart(fk_worker *worker, fk_cell *cell);
/* The hook that begins an actor's life. */
void fk__cell_start(fk_worker *worker, fk_cell *cell);

/* backoff.c: a child's restart, later. Without memory it does not begin. */
void fk__backoff_begin(fk_worker *worker, fk_cell *parent, fk_cell *child, fk_time delay);
bool fk__backoff_is_on(const fk_cell *parent, const fk_cell *child);
void fk__backoff_cancel(fk_worker *worker, fk_cell *parent, const fk_cell *child);
/* The message of this type has come to the parent. */
extern const fk_type fk__type_backoff;
void fk__backoff_over(fk_worker *worker, const fk_cell *parent, const fk_msg *msg);

#endif /* FK_CORE_SUPERVISE_H */

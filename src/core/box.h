/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_BOX_H
#define FK_CORE_BOX_H

/*
 * The bounded mailbox: a list under a lock, because its policies need one exact count and one of
 * them takes messages out at the front while others put them in at the back.
 *
 * Boxes are recycled but, like cells, stay boxes until the system ends. A box knows the slot and
 * generation it serves; a sender with a stale ref finds, under the lock, that it is not his.
 */

#include "core/system.h"

#define FK_MAILBOX_UNKNOWN UINT32_MAX

FK_MUST_USE fk_err fk__box_get(fk_local *local, fk_cell *cell, uint32_t generation,
                               const fk_props *props, fk_box **out);
/* Ends the box's service; what is in it is returned, oldest first, linked by link.next. */
fk_node *fk__box_close(fk_local *local, fk_box *box);
void fk__box_fini_all(fk_system *sys);

/* FK_OK: taken, or dropped as the policy says (and reported). FK_E_FULL: not taken, nothing
 * reported; *wait tells whether the policy is to block. FK_E_DEAD: the box serves somebody else
 * now. *was_empty: the cell must be marked and kicked. */
FK_MUST_USE fk_err fk__box_push(fk_local *local, fk_cell *cell, fk_node *node, bool *was_empty,
                                bool *wait);
/* From the cell's owner to itself, however full it is. */
void fk__box_push_over(fk_local *local, fk_cell *cell, fk_node *node);
/* Sleeps until there may be room, or not at all if there is now. The caller must hold no local. */
void fk__box_wait(fk_system *sys, fk_cell *cell, uint32_t generation);
/* How many are waiting for that actor; FK_MAILBOX_UNKNOWN: it is not served by this box. */
uint32_t fk__box_len(fk_box *box, const fk_cell *cell, uint32_t generation);
/* Takes out the oldest that is wanted; NULL: there is none. For tests. */
fk_node *fk__box_pull(fk_box *box, fk_system *sys, bool (*is_wanted)(void *, const fk_node *),
                      void *arg);
/* The owner takes the oldest; NULL when empty. */
fk_node *fk__box_pop(fk_box *box, fk_system *sys);
/* How many messages are in the cell's box, if it has one; any thread. Of whoever lives there by now. */
uint32_t fk__box_count(const fk_cell *cell);

#endif /* FK_CORE_BOX_H */

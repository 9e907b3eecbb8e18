/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The wait before a restart is a timer of the parent's, by the child's slot, and its message comes to
 * the parent's mailbox, where the runtime handles it. So it is the parent, and nobody in its name,
 * that gives the order, in a turn of its own; and what must become of the wait needs no rule of its
 * own:
 *
 *   the child ends       the parent gets to know that, and cancels, before the slot can have another
 *                        tenant
 *   the parent ends      so do its timers, and its children
 *   the parent restarts  so do its timers; its children are stopped, or restarted at once
 *   the parent is held   it does not come to the message, and the child would be held as well
 *   all siblings restart the child waits on (supervise.c)
 *
 * One race is left: a sibling's failure restarts a child whose own failure is on its way, and when
 * that arrives the wait begins for somebody who does not wait. Then FK_WORD_HEARD is gone, and the
 * order is not given.
 */

#include "core/supervise.h"
#include "core/timer.h"

const fk_type fk__type_backoff = { "fk_backoff", sizeof(uint32_t), _Alignof(uint32_t), NULL };

void fk__backoff_begin(fk_worker *worker, fk_cell *parent, fk_cell *child, fk_time delay)
{
    fk_out slot = { &fk__type_backoff, &child->slot };
    FK_ASSERT(fk__cell_parent(child) == parent);
    fk_err err = fk__timer_start(worker, parent, child->slot, delay, slot);
    (void)err; /* then it is not on */
}

bool fk__backoff_is_on(const fk_cell *parent, const fk_cell *child)
{
    return fk__timer_is_active(parent, child->slot);
}

void fk__backoff_cancel(fk_worker *worker, fk_cell *parent, const fk_cell *child)
{
    fk__timer_cancel(worker, parent, child->slot);
}

void fk__backoff_over(fk_worker *worker, const fk_cell *parent, const fk_msg *msg)
{
    uint32_t slot;
    memcpy(&slot, msg->data, sizeof(slot));
    fk_cell *child = fk__slots_at(&worker->sys->slots, slot);
    FK_ASSERT(fk__cell_parent(child) == parent);
    fk__cell_order_revival(&worker->local, child);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TIMER_H
#define FK_CORE_TIMER_H

/*
 * Timers of an actor. A timer is a record: the actor finds it by key, a worker's wheel by time.
 * When the wheel takes it out, a node goes to the actor's mailbox that carries only the timer's
 * key and a number which no other timer of the actor has; the message itself stays in the record.
 * On delivery the actor looks for a timer with that key and number. If it was cancelled or
 * replaced meanwhile, there is none, and the node is dropped: that makes cancelling exact.
 *
 * A record belongs to the actor; its place in the wheel is under that wheel's lock. It is in the
 * wheel of the worker that started it, wherever the actor runs later.
 */

#include "core/system.h"

typedef struct fk_timer fk_timer;

typedef struct fk_timers {
    fk_timer **bucket;
    uint32_t bucket_count; /* 0 or a power of two */
    uint32_t count;
    uint64_t serial;      /* of the timer started last */
    fk_time last_message; /* for the receive timeout */
} fk_timers;

/* What a fired timer's node carries. */
typedef struct fk_timer_id {
    uint64_t key;
    uint64_t serial;
} fk_timer_id;

/* Takes out what is due in `owner`'s wheel and sends it, on `worker`. */
void fk__timers_run(fk_worker *worker, fk_worker *owner);
/* Cancels all timers of a cell. */
void fk__timers_fini(fk_worker *worker, fk_cell *cell);

/* A fired node arrived: the message to deliver, or NULL when the timer is gone or, for a receive
 * timeout, something was handled meanwhile. */
fk_timer *fk__timer_arrived(fk_worker *worker, fk_cell *cell, const fk_node *node, fk_msg *out);
/* After receive: ends a one-shot timer, starts the next period of the others. */
void fk__timer_delivered(fk_worker *worker, fk_cell *cell, const fk_node *node);
/* The message of a fired timer as a node of its own, for stash and forward: FK_E_NOMEM, or
 * FK_E_STATE for a periodic one with a drop function, which cannot be in two places. */
FK_MUST_USE fk_err fk__timer_detach(fk_worker *worker, fk_cell *cell, const fk_node *node,
                                    fk_node **out);
/* Undoes it. */
void fk__timer_reattach(fk_worker *worker, fk_cell *cell, const fk_node *node, fk_node *message);
/* A message was handled: the receive timeout begins anew. */
void fk__timers_touch(fk_worker *worker, fk_cell *cell);

#endif /* FK_CORE_TIMER_H */

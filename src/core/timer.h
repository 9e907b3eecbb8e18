/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TIMER_H
#define FK_CORE_TIMER_H

/*
 * Timers of an actor: found by key in the actor's table, by time in a worker's wheel. A timer is
 * in the wheel of the worker that started it, wherever the actor runs later. Cancelling is exact:
 * a timer that has fired but not been delivered is found out on delivery.
 */

#include "core/system.h"

typedef struct fk_timer fk_timer;

enum {
    FK_TIMER_KIND_KEY,     /* the user's, under a key */
    FK_TIMER_KIND_IDLE,    /* the receive timeout */
    FK_TIMER_KIND_RUNTIME, /* the runtime's own, under a key of its own */
    FK_TIMER_KIND_PROMISE  /* no timer of an actor, but a promise: see promise.h */
};

struct fk_timer {
    fk_wheel_entry entry;
    fk_worker *owner; /* whose wheel it is in, or was last */
    fk_timer *chain;  /* in its bucket */
    uint64_t key;
    fk_time period;
    fk_node *fire;   /* of a periodic one: goes to the mailbox; NULL while it is there */
    uint32_t serial; /* no other timer of the actor has it */
    uint8_t mode;    /* fk_timer_mode */
    uint8_t kind;    /* FK_TIMER_KIND_* */
    bool is_fired;   /* a one-shot one that is in the mailbox */
    bool is_ended;   /* ... and was cancelled there */
};

typedef struct fk_timers {
    fk_timer **bucket;
    uint32_t bucket_count; /* 0 or a power of two */
    uint32_t count;
    uint32_t serial;      /* of the timer started last */
    fk_time last_message; /* for the receive timeout */
} fk_timers;

/* Takes out what is due in `owner`'s wheel and sends it, on `worker`. */
void fk__timers_run(fk_worker *worker, fk_worker *owner);
/* Cancels all timers of a cell but the receive timeout. */
void fk__timers_reset(fk_worker *worker, fk_cell *cell);
/* Cancels all timers of a cell. */
void fk__timers_fini(fk_worker *worker, fk_cell *cell);

/* A fired node arrived: its message, or false when the timer was cancelled or, for a receive
 * timeout, something was handled meanwhile. */
bool fk__timer_arrived(fk_worker *worker, fk_cell *cell, fk_node *node, fk_msg *out);
/* After receive: starts the next period, if there is one. */
void fk__timer_delivered(fk_worker *worker);
/* The message of the periodic timer being handled as a node of its own, for stash and forward:
 * FK_E_NOMEM, or FK_E_STATE if it has a drop function and so cannot be in two places. */
FK_MUST_USE fk_err fk__timer_copy(fk_worker *worker, fk_node **out);
/* The next period of a timer of FK_TIMER_FIXED_DELAY is this one, and begins now unless its message
 * is in the mailbox or being handled. Needs no memory. False: there is no such timer. */
bool fk__timer_move(fk_ctx *ctx, uint64_t key, fk_time period);
/* A message was handled: the receive timeout begins anew. */
void fk__timers_touch(fk_worker *worker, fk_cell *cell);

/* The runtime's own timers of an actor, beside those of its user: once, by keys of their own, ending
 * with the actor's or at its restart. When starting one fails, msg is still the caller's. */
FK_MUST_USE fk_err fk__timer_start(fk_worker *worker, fk_cell *cell, uint64_t key, fk_time delay,
                                   fk_out msg);
void fk__timer_cancel(fk_worker *worker, fk_cell *cell, uint64_t key);
bool fk__timer_is_active(const fk_cell *cell, uint64_t key);

#endif /* FK_CORE_TIMER_H */

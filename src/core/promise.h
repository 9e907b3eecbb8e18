/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_PROMISE_H
#define FK_CORE_PROMISE_H

/*
 * A promise: what stands for a question until it is answered. It is no actor but a cell with
 * FK_GATE_PROMISE, and what is sent to it is handled in the sender's thread. A cell that has become a
 * promise stays one, so that a stale ref to it is always a late reply; it is used again for the next
 * question, under the next generation.
 *
 * Who may end it: anybody with a message for it, the wheel it is in, its asker when that stops, the
 * thread that waits. The first to move the generation from odd to even does, and the others have come
 * too late.
 *
 * The run token. While a promise is pending its cell has no IDLE mark, and nobody runs it: the token
 * belongs to whoever will end it, who has it from the exchange of the generation on and gives it back
 * as the last thing it does with the promise. So signals that are pushed to a pending promise wait,
 * unseen, until fk__promise_ended() takes them; one that comes later finds the token free and has the
 * cell run, as with the cell of an actor that has ended; and nobody can use the cell for the next
 * question while the one who ended it is still at work (slots.c).
 *
 * Time. A question that is answered at once must not pay for a clock and a wheel. A new promise goes
 * to a stack of its home, the worker that it was opened on. When that looks at its wheel the next
 * time, which is within 64 turns and before it sleeps, it has just read the clock, and only what is
 * still pending goes into the wheel: so never early, and late by a window at most.
 *
 * Where a promise is, when it is not pending and in no wheel: on the stack of its home, in the list of
 * those given back to it, in a thread's own list, or with the one who takes it from one to the other.
 */

#include "core/timer.h"

typedef struct fk_promise fk_promise;

struct fk_promise {
    fk_timer timer;       /* owner: its home, NULL when a thread waits; period: the time it has;
                             serial: the first generation that was a promise */
    fk_cell *cell;        /* for ever */
    fk_promise *next;     /* wherever it is */
    fk_node *answer;      /* what goes to the asker; for a thread: the reply, when it is there */
    struct fk_temp *name; /* under the lock of the names; NULL: it has none */
    fk_half asked_slot, asked_generation;
    fk_half answered; /* what the thread waits on: 0, or 1 and the error */
    fk_half is_armed; /* its home has come across it: it may be in the wheel */
    fk_half is_named; /* look for a name when it ends */
};

_Static_assert(sizeof(void *) != 8 || sizeof(fk_promise) <= 128, "two cache lines");

/* A pending promise, on which the caller has to send. answer: NULL for a thread that waits, else
 * made by answer.c, and taken when this does not fail. asked: for its name. FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__promise_open(fk_local *local, fk_node *answer, fk_ref asked,
                                    fk_promise **out);
/* Ends by itself after that long. By its home, once, before anybody else knows it. */
void fk__promise_limit(fk_worker *home, fk_promise *promise, fk_time timeout);
/* False: that generation has ended before, and reply is still the caller's. reply may be NULL. */
bool fk__promise_end(fk_local *local, fk_cell *cell, uint32_t generation, fk_err err,
                     fk_node *reply);
/* The same without an answer to anybody: *answer is the caller's then. */
bool fk__promise_cancel(fk_local *local, fk_cell *cell, uint32_t generation, fk_node **answer);
/* A message for a promise. False: it came too late and is still the caller's. */
bool fk__promise_receive(fk_local *local, fk_cell *cell, fk_ref to, fk_node *node);
/* A thread has no more use for the promise that it waited for, and that has ended. */
void fk__promise_put(fk_local *local, fk_promise *promise);

/* Runs once for every promise, on the thread that ended it (local->worker is NULL for one from
 * outside), after the generation changed and before the answer is on its way. The caller holds the
 * cell's run token: cell->system and cell->extras are its own. Here is where watchers are told: their
 * signals, if any, are all in cell->system. */
void fk__promise_ended(fk_local *local, fk_cell *cell);

/* Under the owner's wheel_lock: what is new to its wheel is put there, on worker. */
void fk__promises_arm(fk_worker *worker, fk_worker *owner);
/* Those whose time is up, linked by next, taken from the owner's wheel. */
void fk__promises_expire(fk_worker *worker, fk_worker *owner, fk_promise *first);
/* The root is gone, and with it all who could answer: threads need not wait any longer. */
void fk__promises_give_up(fk_local *local);
/* With the system. */
void fk__promise_destroy(fk_local *local, fk_cell *cell);

/* A generation of that cell was, or is, a promise: before it became one it may have been an actor's. */
static inline bool fk__promise_was(const fk_cell *cell, uint32_t generation)
{
    /* Acquire pairs with promise_create: who sees the gate sees its state. */
    if ((fk__half_load(&cell->gate, FK_ACQUIRE) & FK_GATE_PROMISE) == 0) return false;
    return generation >= ((const fk_promise *)cell->state)->timer.serial;
}

static inline fk_ref fk__promise_ref(const fk_promise *promise)
{
    return fk__cell_ref(promise->cell);
}

static inline bool fk__cell_is_promise(const fk_cell *cell)
{
    /* Relaxed: it never changes back, and who has a ref of a promise has its gate by that. */
    return (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_PROMISE) != 0;
}

#endif /* FK_CORE_PROMISE_H */

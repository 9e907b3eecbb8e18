/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_DISPATCH_H
#define FK_CORE_DISPATCH_H

/*
 * Who runs what. Each worker has
 *
 *   next       one cell that just became ready: run it while the turn's budget lasts, since what
 *              it will read is in this core's cache. A chatting pair shares one budget.
 *   ring       cells in order, at most FK_RING of them, for others to steal from
 *   overflow   the rest, private, behind the ring (ready.c)
 *
 * and there is one stack for what outside threads make ready (inject). A worker without work
 * becomes the *sentinel*, if there is none: the only one that looks for work at other workers.
 * It takes work only where that pays: where the queue is long in time, or its owner is stuck in
 * one message. All other idle workers sleep until woken; with all asleep there is no sentinel
 * and the system uses no CPU.
 *
 *   dispatch->idle   low 16 bits: how many workers are parked; FK_IDLE_SENTINEL: there is one
 */

#include "base/wheel.h"
#include "core/cell.h"

#define FK_RING           256u
#define FK_WINDOW_TURNS   64u
#define FK_WORKERS_MAX    1024u
#define FK_IDLE_PARKED    0xffffu
#define FK_IDLE_SENTINEL  0x10000u
#define FK_WORKER_EXIT    ((fk_time)-1)
#define FK_CALM_TICKS_MIN 8u /* 8 ms */

enum { FK_WORKER_RUNNING, FK_WORKER_PARKED };

typedef struct fk_batch fk_batch;

struct fk_ctx { /* part of its worker: see fk__ctx_worker() */
    fk_cell *cell;
    fk_node *node;          /* being handled; NULL in hooks */
    fk_msg msg;             /* the user's view of it */
    struct fk_timer *timer; /* the periodic one whose message is being handled */
    bool timer_ended;       /* it was cancelled meanwhile: freed when receive returns */
    struct fk_tray *tray;   /* what is sent is kept back there: see tray.h; or NULL */
    char detail[121];       /* fk_fail() */
};

struct fk_worker {
    fk_local local; /* first: a worker is a local */
    fk_system *sys;
    uint32_t id;
    bool is_pinned;
    bool is_alone; /* nobody can steal from it */
    bool is_sentinel;
    bool is_looking;       /* found work the last time: worth spinning */
    bool is_rested;        /* has slept since it last looked */
    bool is_between;       /* roused and not running yet: somebody sends with its local */
    fk_word *source;       /* dispatch->inject; a pinned worker's own inbox */
    uint32_t foreign;      /* of the last 64 turns: cells that another worker ran before */
    uint64_t done;         /* messages handled, ever */
    uint64_t done_limit;   /* where `done` will be when the budget of this turn is used up */
    uint64_t done_counted; /* what the statistics know */
    uint64_t unseen;       /* of what is not counted yet: poison, cancelled timers */
    uint32_t backoff;      /* of the sentinel's sleep */
    fk_time now;           /* refreshed every 64 turns and when idle */
    fk_time turn_began;    /* when this turn's 32nd message was done */
    fk_time window;        /* when the 64 turns began ... */
    uint32_t window_turns; /* ... and after which one */
    fk_batch *overflow_first, *overflow_last;
    uint32_t overflow_len;
    fk_word steals, parks; /* statistics */
    fk_ctx ctx;

    /* Written by this worker, read by the sentinel. */
    _Alignas(FK_CACHE_LINE) fk_word next;
    fk_half bottom;
    fk_half turns;   /* counts turns, so that standing still is seen */
    fk_half turn_ns; /* the average of the last 64 */
    fk_word ring[FK_RING];
    /* Written by thieves, too. */
    _Alignas(FK_CACHE_LINE) fk_half top;
    /* Written by anybody. */
    fk_half state; /* FK_WORKER_* */
    fk_word inbox; /* stack of cells for this worker and no other */
    /* The sentinel's notes on this worker. */
    uint32_t seen_turns;
    fk_time seen_since;

    _Alignas(FK_CACHE_LINE) fk_lock wheel_lock; /* of the wheel */
    fk_time wheel_next; /* own use: when to look at the wheel; never later than its first entry */
    fk_wheel wheel;
    fk_word promises_new; /* stack of those that have not met the wheel: see promise.h */
    struct fk_promise *promises_back; /* under wheel_lock: have left it, and are free */
    struct fk_obituaries *obituaries;
    fk_worker *pinned_next;      /* all pinned workers of the system, under sys->lock */
    fk_worker *pinned_free_next; /* those without an actor, under sys->lock */
    size_t block_size;
};

/* No load: what a message costs is mostly loads that wait for each other. */
static inline fk_worker *fk__ctx_worker(const fk_ctx *ctx)
{
    return (fk_worker *)((uintptr_t)ctx - offsetof(fk_worker, ctx));
}

typedef struct fk_dispatch {
    uint32_t workers;
    fk_worker **worker;
    fk_worker *pinned;      /* all of them; under sys->lock */
    fk_worker *pinned_free; /* under sys->lock */
    uint32_t pinned_count;
    fk_half idle;
    fk_half calm;     /* no stealing for parallelism's sake before this tick */
    fk_half calm_for; /* how long the next calm will be, in ticks */
    fk_half shutdown;
    fk_half wake_hint;                      /* where to begin looking for a parked worker */
    _Alignas(FK_CACHE_LINE) fk_word inject; /* stack of cells made ready from outside */
} fk_dispatch;

FK_MUST_USE fk_err fk__dispatch_init(fk_system *sys, uint32_t workers);
void fk__dispatch_fini(fk_system *sys);
FK_MUST_USE fk_err fk__worker_create(fk_system *sys, uint32_t id, bool pinned, fk_worker **out);
void fk__worker_destroy(fk_worker *worker);
/* A worker with a thread of its own for one actor; unpin when that has ended. The thread is kept
 * for the next one: late messages may still be scheduled on it. FK_E_UNSUPPORTED without host. */
FK_MUST_USE fk_err fk__worker_pin(fk_system *sys, fk_worker **out);
void fk__worker_unpin(fk_worker *worker);
/* All workers leave fk__worker_run with FK_WORKER_EXIT. */
void fk__dispatch_shutdown(fk_system *sys);

/* The caller has the cell's run token and passes it on: some worker will run the cell. Always
 * FK_OK, so that a send can end with it. */
fk_err fk__schedule(fk_local *local, fk_cell *cell);
/* To the back of the own queue. FK_OK. */
FK_COLD fk_err fk__push_displaced(fk_worker *worker, fk_cell *cell);

/* The same on the only worker: nobody can take it away, so no exchange is needed. */
static inline fk_err fk__schedule_alone(fk_worker *worker, fk_cell *cell)
{
    fk_cell *displaced = fk__word_ptr(&worker->next, FK_RELAXED);
    fk__word_store(&worker->next, (uintptr_t)cell, FK_RELAXED);
    return FK_LIKELY(displaced == NULL) ? FK_OK : fk__push_displaced(worker, displaced);
}

/* Runs until there is nothing to do; returns how long to wait for port->wake (FK_NEVER: until it
 * comes), FK_WORKER_EXIT, or 0 when so many windows of 64 turns were run and there may be more.
 * The caller must notice a wake that comes between return and wait. */
fk_time fk__worker_run(fk_worker *worker, uint32_t windows);
/* Between two of these, on the worker's own thread, before it sends with the worker's local: the
 * worker counts as awake and does not watch others. Before it sleeps, fk__worker_run() must be called
 * again. Cheap when that is already so. */
void fk__worker_rouse(fk_worker *worker);

/* ready.c: the queues of one worker. Push and pop are the owner's, steal is anybody's. */
void fk__ready_push(fk_worker *worker, fk_cell *cell);
/* Forgets what is queued: the system ends. */
void fk__ready_fini(fk_worker *worker);
fk_cell *fk__ready_pop(fk_worker *worker);
uint32_t fk__ready_len(const fk_worker *worker);
/* Half of the victim's ring goes to the thief, whose ring is empty; one of it is returned. */
fk_cell *fk__ready_steal(fk_worker *thief, fk_worker *victim);
fk_cell *fk__ready_take_next(fk_worker *worker);
/* Takes a stack of cells that others pushed, in the order they came, into the own queue. */
bool fk__ready_take_stack(fk_worker *worker, fk_word *stack);
void fk__ready_push_stack(fk_word *stack, fk_cell *cell);

/* park.c */
/* Announces that the worker sleeps; false: there is work after all. */
bool fk__park(fk_worker *worker);
void fk__unpark(fk_worker *worker);
/* After making work for others visible: wakes somebody if nobody would notice. */
void fk__wake_for_inject(fk_system *sys);
bool fk__wake_one(fk_system *sys);
/* The same for a worker's inbox. */
void fk__wake(fk_worker *worker);

#endif /* FK_CORE_DISPATCH_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_MACHINE_H
#define FK_SIM_MACHINE_H

/*
 * The machine: up to 16 virtual threads over one memory.
 *
 * It runs real code compiled with FK_SIM. Each access through base/atomic.h that is not
 * relaxed, and each read-modify-write, is a scheduling point: before the access happens,
 * the machine lists what could happen next, namely "thread t goes on" and, when stores are
 * buffered, "the oldest buffered store of t reaches memory", and asks a chooser
 * (sim/schedule.h) for one. The same choices give the same run, always. Relaxed accesses
 * happen together with what precedes them, unless the config says is_fine.
 *
 * Memory is one of
 *   SC    every access takes effect at once;
 *   TSO   stores wait in a FIFO buffer per thread, which its own loads see through; every
 *         read-modify-write and every seq_cst store empties it (x86);
 *   TSO+  as TSO, but a failed compare-exchange is only a load, and a read-modify-write
 *         that is not release need not empty the buffer: both legal C11, seen on ARM.
 * Effects weaker than TSO+ (load reordering, stores overtaking stores) are not shown.
 *
 * The explorer makes one short machine run per schedule. The simulator keeps one for
 * thousands of steps and calls fk__machine_run() in slices.
 */

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_MACHINE_THREADS_MAX 16u
#define FK_MACHINE_NOBODY      UINT32_MAX

typedef enum fk_memory {
    FK_MEMORY_SC,
    FK_MEMORY_TSO,
    FK_MEMORY_TSO_PLUS,
    FK_MEMORY_COUNT,
} fk_memory;

/* Why fk__machine_run() came back. */
typedef enum fk_outcome {
    FK_OUTCOME_DONE,     /* every thread has returned and every store has reached memory */
    FK_OUTCOME_STUCK,    /* nobody can go on, and somebody has not returned: a deadlock, or idle */
    FK_OUTCOME_PAUSED,   /* the steps asked for were made */
    FK_OUTCOME_FAILED,   /* fk__machine_fail() was called; the machine cannot go on */
    FK_OUTCOME_DIVERGED, /* the chooser refused: a replay that does not fit this code */
} fk_outcome;

/* Actions are small numbers, so that a set of them is a mask and a schedule is a string:
 * 0-15 thread t goes on, 16-31 the oldest buffered store of thread t-16 reaches memory. */
#define FK_ACTION_FLUSH FK_MACHINE_THREADS_MAX

/* What happened, for traces. before/after are the values of the location. */
typedef enum fk_access_kind {
    FK_ACCESS_LOAD,
    FK_ACCESS_STORE,
    FK_ACCESS_INIT,
    FK_ACCESS_SWAP,
    FK_ACCESS_ADD,
    FK_ACCESS_AND,
    FK_ACCESS_OR,
    FK_ACCESS_CAS,
    FK_ACCESS_CAS_FAILED,
    FK_ACCESS_FLUSH,
    FK_ACCESS_AWAIT,
    FK_ACCESS_RELAX,
    FK_ACCESS_LOCK,
    FK_ACCESS_WAIT,
    FK_ACCESS_NOTIFY,
    FK_ACCESS_NOTE,
    FK_ACCESS_END,
    FK_ACCESS_COUNT,
} fk_access_kind;

typedef struct fk_access {
    fk_access_kind kind;
    fk_order order;
    uint32_t thread;
    const void *at;
    uintptr_t before;
    uintptr_t after;
    const char *text; /* of a note */
    bool is_buffered; /* a store that waits in the buffer */
} fk_access;

typedef struct fk_machine fk_machine;
typedef void fk_machine_thread_fn(void *arg, uint32_t thread);
typedef bool fk_machine_cond_fn(void *arg);

/* Picks one action of mask, which has at least two bits; FK_MACHINE_NOBODY means diverged. */
typedef uint32_t fk_machine_choose_fn(void *ctx, const fk_machine *m, uint32_t mask);
typedef void fk_machine_event_fn(void *ctx, const fk_access *event);

typedef struct fk_machine_config {
    fk_memory memory;
    bool is_fine;     /* relaxed loads and stores are scheduling points, too */
    bool finds_races; /* keep vector clocks: sim/happens.h */
    fk_machine_choose_fn *choose;
    void *choose_ctx;
    fk_machine_event_fn *event; /* NULL: no trace */
    void *event_ctx;
    uint8_t *log; /* NULL, or receives each action; the first log_size of them are kept */
    size_t log_size;
} fk_machine_config;

/* Host: made once and used for many runs. Returned owned: fk__machine_destroy(). NULL without
 * memory. */
fk_machine *fk__machine_create(void);
void fk__machine_destroy(fk_machine *m);

/* Forgets all threads, also unfinished ones, and takes a new config (copied). */
void fk__machine_reset(fk_machine *m, const fk_machine_config *config);

/* Adds a thread and gives its number. Threads begin when they are first chosen. */
uint32_t fk__machine_spawn(fk_machine *m, fk_machine_thread_fn *fn, void *arg);

/* Inside a run, about another thread: it is gone, wherever it stands, and what it has stored and
 * nobody has seen is lost; one that is gone or has returned begins anew; it stands still, or goes on. */
void fk__machine_kill(fk_machine *m, uint32_t thread);
void fk__machine_revive(fk_machine *m, uint32_t thread, fk_machine_thread_fn *fn, void *arg);
void fk__machine_freeze(fk_machine *m, uint32_t thread, bool is_frozen);

/* Runs until something of fk_outcome happens, at most steps actions. After STUCK and PAUSED it
 * may be called again. */
fk_outcome fk__machine_run(fk_machine *m, uint64_t steps);

/* Any time. */
uint64_t fk__machine_steps(const fk_machine *m);
uint32_t fk__machine_threads(const fk_machine *m);
uint32_t fk__machine_last(const fk_machine *m);    /* thread that ran last, or NOBODY */
uint32_t fk__machine_yielded(const fk_machine *m); /* mask of threads in fk__cpu_relax() */
const char *fk__machine_failure(const fk_machine *m);

/* Inside a virtual thread; fk__machine is not NULL there. Outside they act plainly, and
 * waiting for what is not true is a failure. */

/* The number of the running thread, or FK_MACHINE_NOBODY. */
uint32_t fk__machine_self(void);

/* Waits until cond(arg) holds; it holds when the call returns. cond reads memory as this thread
 * sees it, writes nothing, and is called very often. Orders no memory by itself. */
void fk__machine_await(fk_machine_cond_fn *cond, void *arg);

/* A lock in one zeroed word, for the port. Taking it is a read-modify-write, giving it back a
 * release store. A thread that waits for it is blocked, not spinning. */
void fk__machine_lock(uint32_t *lock);
void fk__machine_unlock(uint32_t *lock);

/* A futex, for the port. If *word is seen, sleeps until fk__machine_notify(word) or until late(arg)
 * holds (NULL: never). Looking and falling asleep are one step; both calls empty the store buffer,
 * as the kernel's own locks do. No wake-up comes by chance, so a lost one is a deadlock. */
void fk__machine_wait(uint32_t *word, uint32_t seen, fk_machine_cond_fn *late, void *arg);
void fk__machine_notify(uint32_t *word);

/* A plain access to memory that threads hand to each other. When races are looked for, two such
 * accesses of which one is a write must be ordered by release and acquire, whatever the schedule
 * was; else the run fails with "data race". */
void fk__machine_plain(const void *at, bool is_write);

/* Memory [at, at+size) is about to be freed by this thread: its own stores still in the buffer
 * can be seen by nobody any more. */
void fk__machine_discard(const void *at, size_t size);

/* Ends the run at once with FK_OUTCOME_FAILED. what must be a constant. */
_Noreturn void fk__machine_fail(const char *what);

/* Puts a line into the trace. */
void fk__machine_note(const char *text, uintptr_t value);

const char *fk__memory_name(fk_memory memory);
const char *fk__event_name(fk_access_kind kind);
const char *fk__order_name(fk_order order);

#endif /* FK_SIM_MACHINE_H */

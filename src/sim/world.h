/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_WORLD_H
#define FK_SIM_WORLD_H

/*
 * The world around one simulated system: its port. Time is a number that moves when
 * somebody works, looks at the clock, or when everybody sleeps; chance comes from the seed;
 * memory from the quarantine heap, which may refuse; locks, sleeping and waking from the
 * machine (sim/machine.h), whose virtual threads are the workers, the outside threads and
 * the program that starts and stops the system. There is one world at a time.
 *
 * A finding ends the run: fk__world_fail() from anywhere, an assertion of the kernel, a crash,
 * a deadlock, or more steps than any good run makes.
 */

#include "fraktor/port.h"
#include "sim/machine.h"
#include "sim/swarm.h"

/* What the run's owner wants to look at from outside, while no thread runs. Called on a stack of
 * its own, so that they may fail. */
typedef struct fk_world_watch {
    void (*pause)(void);        /* every FK_WORLD_PAUSE steps */
    void (*rest)(fk_time next); /* everybody sleeps until then, or for ever: FK_NEVER */
} fk_world_watch;

#define FK_WORLD_PAUSE 1000u
#define FK_WORLD_WORDS 64u /* workers, pinned ones included */

/* A new world for a run. */
void fk__world_begin(const fk_swarm *swarm);
const fk_swarm *fk__world_swarm(void);

/* Runs main_fn as the first thread, and what it spawns. NULL, or what was found. */
const char *fk__world_run(fk_machine_thread_fn *main_fn, const fk_world_watch *watch);

/* The port of a system in this world. */
fk_port fk__world_port(void);

/* ---- inside the run ---------------------------------------------------------------------- */

/* Another thread. False when the machine has no room for it. */
bool fk__world_spawn(fk_machine_thread_fn *fn, void *arg);
/* The same in the place of one that has returned or was killed, if there is one. Its number, or
 * FK_MACHINE_NOBODY. */
uint32_t fk__world_start(fk_machine_thread_fn *fn, void *arg);
/* Another thread is gone, at once and wherever it stands. */
void fk__world_kill(uint32_t thread);
/* Another thread stands still, or goes on. Time does not wait for it. */
void fk__world_freeze(uint32_t thread, bool is_frozen);
uint32_t fk__world_self(void);

fk_time fk__world_now(void);
/* Time passes while the caller works. */
void fk__world_pass(fk_time time);
/* A point at which somebody else may go on. */
void fk__world_yield(void);
/* This thread will stand still for long within its next few accesses. */
void fk__world_linger(void);
/* What this thread has stored is in memory: before the ledger makes it known to all. */
void fk__world_fence(void);
/* Sleeps for that long. */
void fk__world_sleep(fk_time time);
/* The clock does not jump any more. */
void fk__world_end_jumps(void);
/* How often the calling thread has slept. */
uint32_t fk__world_sleeps(void);
/* Waits until cond() or until the world is at rest for ever. Main only. */
void fk__world_await(bool (*cond)(void));
/* How a worker sleeps and is woken. */
uint32_t fk__world_word(uint32_t worker);
void fk__world_worker_wait(uint32_t worker, uint32_t seen, fk_time timeout);
/* The same, but it is also woken at the moment that input(arg) gives, which may change meanwhile. It
 * is called very often. */
void fk__world_worker_wait_input(uint32_t worker, uint32_t seen, fk_time timeout,
                                 fk_time (*input)(void *arg), void *arg);
void fk__world_worker_wake(void *ctx, uint32_t worker);

uint32_t fk__world_below(uint32_t end);
/* True once in n times; never when n is 0. */
bool fk__world_one_in(uint32_t n);

/* Whether allocations may fail, and the most bytes there may be (0: any number). */
void fk__world_set_faults(bool on);
void fk__world_set_limit(size_t bytes);
size_t fk__world_bytes(void);
/* Memory of many: what is allocated from now on is the owner's (0: nobody's in particular), and all that an owner
 * has is given up at once, without being freed. */
void fk__world_own(uint8_t owner);
void fk__world_abandon(uint8_t owner);

/* ---- findings ---------------------------------------------------------------------------- */

/* invariant: "A1" and so on; the text is formatted and kept. */
_Noreturn void fk__world_fail(const char *invariant, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* For the program's fk__assert_failed(). */
_Noreturn void fk__world_assert_failed(const char *file, int line);
const char *fk__world_invariant(void);
uint64_t fk__world_steps(void);

#endif /* FK_SIM_WORLD_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_EXPLORE_H
#define FK_SIM_EXPLORE_H

/*
 * The explorer: runs a small piece of concurrent code, the harness, under every schedule
 * up to a bound, in three memory models, and under many random ones.
 *
 * A harness is at most a handful of threads with some dozen shared accesses each. For each
 * schedule its state is zeroed, setup() runs alone, thread(id) runs for each id under the
 * schedule, finish() runs alone. It fails by fk__explore_check(), by an assertion of the
 * code under test, by a crash, a deadlock, more than steps_max steps (livelock), a touch of
 * freed memory, a data race, or memory left over at the end.
 *
 * A variant names a mutation (base/safeguard.h) that the harness must notice; a harness
 * that notices nothing is worth nothing.
 */

#include "sim/machine.h"
#include "sim/mutation.h"
#include "sim/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fk_harness {
    const char *name; /* NULL ends a list */
    uint32_t threads;
    uint32_t steps_max;         /* 0: FK_EXPLORE_STEPS_MAX */
    uint32_t bound_max;         /* 0: no limit; else DFS never uses a larger preemption bound */
    bool is_fine;               /* relaxed accesses are scheduling points, too */
    bool allows_races;          /* do not look for data races (sim/happens.h); faster */
    void (*setup)(void *state); /* may be NULL */
    void (*thread)(void *state, uint32_t id); /* id < threads */
    void (*finish)(void *state);              /* may be NULL */
    void *state;                              /* zeroed before each schedule */
    size_t state_size;
} fk_harness;

#define FK_EXPLORE_STEPS_MAX 4000u

typedef struct fk_variant {
    const char *harness; /* NULL ends a list */
    uint32_t mutation;   /* FK_MUTATION_*, or FK_MUTATION_COUNT + n for the program's own */
    const char *name;    /* of the program's own; NULL: from the list of safeguards */
    fk_memory found_in;  /* the first memory model that must show it */
    bool clean_before;   /* and the ones before must be shown not to */
    const char *failure; /* with which it must be found; NULL: any */
} fk_variant;

/* The main function of a harness program; see --help. Both lists end with an empty element. */
int fk_explore_main(int argc, char **argv, const fk_harness *harnesses, const fk_variant *variants);

/* One search, for tests of the explorer itself. */
typedef enum fk_verdict {
    FK_VERDICT_CLEAN,      /* the schedules asked for were run, none failed */
    FK_VERDICT_EXHAUSTED,  /* there are no other schedules, none failed */
    FK_VERDICT_INCOMPLETE, /* the time was up */
    FK_VERDICT_FOUND,      /* the last schedule failed */
} fk_verdict;

typedef struct fk_search {
    const fk_harness *harness;
    fk_memory memory;
    fk_schedule_kind kind;
    uint32_t bound; /* DFS: preemptions; PCT: depth */
    uint32_t mutation;
    uint64_t schedules; /* at most so many; 0: no limit */
    double seconds;     /* at most so long; 0: no limit */
    uint64_t seed;
    const uint8_t *replay; /* REPLAY: the actions */
    size_t replay_len;
    bool is_traced; /* collect a trace: fk__trace_print() */
} fk_search;

typedef struct fk_finding {
    fk_verdict verdict;
    uint64_t schedules;
    uint64_t steps;
    double seconds;
    const char *failure;    /* FOUND: what; valid until the next search */
    const uint8_t *actions; /* FOUND: the schedule; valid until the next search */
    size_t action_count;
} fk_finding;

fk_finding fk__explore_run(const fk_search *search);

/* Inside setup, thread and finish. */

/* Ends the schedule as failed unless ok. what must be a constant. */
static inline void fk__explore_check(bool ok, const char *what);
_Noreturn void fk__explore_fail(const char *what);

/* Waits, in a thread: fk__machine_await(). */
void fk__explore_await(fk_machine_cond_fn *cond, void *arg);

/* Memory from the heap of this schedule (sim/quarantine.h). Never fails. Frees carry sizes. */
void *fk__explore_alloc(size_t size);
void fk__explore_free(void *ptr, size_t size);
/* The same with the signature of fk_port.alloc. */
void *fk__explore_port_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size);

/* A plain access to memory that threads hand over: fk__machine_plain(). */
void fk__explore_read(const void *at);
void fk__explore_write(const void *at);

/* Gives memory a name in traces: "name", or "name[i]" for count objects of size bytes each. The
 * name is borrowed until the schedule ends. */
void fk__explore_label(const void *at, size_t size, uint32_t count, const char *name);

static inline void fk__explore_check(bool ok, const char *what)
{
    if (__builtin_expect(!ok, 0)) fk__explore_fail(what);
}

#endif /* FK_SIM_EXPLORE_H */

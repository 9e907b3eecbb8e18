/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_MACHINE_STATE_H
#define FK_SIM_MACHINE_STATE_H

/* The inside of the machine, for machine.c (who runs) and access.c (what memory does). */

#include "sim/fiber.h"
#include "sim/machine.h"
#include "sim/storebuffer.h"

typedef struct fk_vthread {
    fk_fiber *fiber; /* kept from run to run */
    fk_machine_thread_fn *fn;
    void *arg;
    fk_machine_cond_fn *cond; /* what it waits for when its bit in blocked is set */
    void *cond_arg;
    const uint32_t *sleeps_at; /* the futex it sleeps on, or NULL */
    fk_machine_cond_fn *late;
    void *late_arg;
    fk_storebuffer buffer;
} fk_vthread;

struct fk_machine {
    uint32_t current; /* FK_MACHINE_NOBODY on the host */
    uint32_t last;
    uint32_t alive;    /* masks of threads: not yet returned, */
    uint32_t blocked;  /* waiting for their cond, */
    uint32_t relaxing; /* in fk__cpu_relax(), */
    uint32_t buffered; /* with stores in the buffer, */
    uint32_t frozen;   /* left out whatever they could do */
    bool is_peeking;   /* a cond is being evaluated for thread `viewer` */
    bool is_settling;  /* the cond that has ended a wait is evaluated by that thread */
    uint32_t viewer;
    uint32_t thread_count;
    fk_outcome outcome;
    const char *failure;
    uint64_t steps;
    uint64_t steps_end;
    fk_machine_config config;
    fk_vthread thread[FK_MACHINE_THREADS_MAX];
};

#define FK_USE_AFTER_FREE "use after free"

/* A scheduling point: lets the next thread go on; returns when that is, sooner or later, the
 * caller. */
void fk__machine_go(fk_machine *m);

/* Buffered stores of thread reach memory: the oldest one, or all. */
void fk__machine_flush(fk_machine *m, uint32_t thread);
void fk__machine_drain(fk_machine *m, uint32_t thread);

static inline uint32_t fk__machine_bit(uint32_t thread)
{
    return UINT32_C(1) << (thread % 32);
}

static inline void fk__machine_emit(fk_machine *m, fk_access event)
{
    if (m->config.event != NULL) m->config.event(m->config.event_ctx, &event);
}

/* Notes a failure without leaving the place where it was found. */
static inline void fk__machine_fail_softly(fk_machine *m, const char *what)
{
    if (m->failure == NULL) m->failure = what;
}

#endif /* FK_SIM_MACHINE_STATE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_FIBER_H
#define FK_SIM_FIBER_H

/*
 * Fibers: cooperative threads inside one OS thread.
 *
 * The explorer and the simulator run every virtual thread as a fiber, so that only they
 * decide who runs. A switch is a dozen instructions and costs about two nanoseconds. A
 * fiber may be started again and again, also when its last run was abandoned half-way:
 * its stack is simply begun anew, and nothing on it is unwound.
 *
 * All fibers belong to one OS thread, called the host. Nothing here is thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct fk_fiber fk_fiber;
typedef void fk_fiber_fn(void *arg);

#define FK_FIBER_STACK_SIZE ((size_t)256 * 1024)

/* A fiber with its own stack and a guard page below it, or NULL without memory. The stack
 * size is rounded up to whole pages. Returned owned: fk__fiber_destroy(). */
fk_fiber *fk__fiber_create(size_t stack_size);

/* The fiber must not be the running one. */
void fk__fiber_destroy(fk_fiber *fiber);

/* Makes the next switch to fiber call fn(arg) on a fresh stack. Whatever the fiber was doing
 * is forgotten. When fn returns, the host goes on. The fiber must not be the running one. */
void fk__fiber_start(fk_fiber *fiber, fk_fiber_fn *fn, void *arg);

/* Leaves the running fiber (or the host) and continues `to`, NULL being the host. Returns when
 * somebody switches back. */
void fk__fiber_switch(fk_fiber *to);

/* The running fiber, or NULL on the host. */
fk_fiber *fk__fiber_self(void);

/* True when address lies in the guard page of fiber: its stack has overflowed. */
bool fk__fiber_is_guard(const fk_fiber *fiber, const void *address);

#endif /* FK_SIM_FIBER_H */

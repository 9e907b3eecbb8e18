/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_HAPPENS_H
#define FK_SIM_HAPPENS_H

/*
 * What happened before what, by vector clocks.
 *
 * Store buffers show some effects of weak memory; this shows the missing orders themselves.
 * Each thread has a clock, each atomic location the clock that a release left there, and an
 * acquire that reads it joins the two, exactly as C11 defines "synchronizes with" (release
 * sequences through read-modify-writes included; relaxed stores end them, as in C++20). Plain
 * memory that the harness announces must then never be touched by two threads, one writing,
 * without an order between them; and memory must not be freed unless every access to it is
 * ordered before. So a relaxed that should be a release is found in any schedule that uses it, also on
 * a machine whose hardware would forgive it.
 */

#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FK_HAPPENS_THREADS_MAX 16u

typedef struct fk_clock {
    uint32_t at[FK_HAPPENS_THREADS_MAX];
} fk_clock;

/* All is forgotten: everything so far happened before everything to come. */
void fk__happens_reset(uint32_t threads);

/* A store in two parts, because it may reach memory later: what it carries, and its arrival. */
fk_clock fk__happens_release(uint32_t thread, const void *at, fk_order o);
void fk__happens_store(const void *at, const fk_clock *carried);

void fk__happens_load(uint32_t thread, const void *at, fk_order o);
void fk__happens_rmw(uint32_t thread, const void *at, fk_order o);

/* A plain access. False: a race with an earlier one. */
bool fk__happens_plain(uint32_t thread, const void *at, bool is_write);

/* The end of a piece of memory. False: an access to it, atomic or plain, is not ordered before. */
bool fk__happens_free(uint32_t thread, const void *at, size_t size);

#endif /* FK_SIM_HAPPENS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_ATOMIC_H
#define FK_BASE_ATOMIC_H

/*
 * The only door to shared memory. Everything that two threads may touch at once
 * is an fk_word (pointer-sized) or an fk_half (32 bits) and is accessed by the
 * functions below, so that the same source compiles to plain C11 atomics in the
 * library and, with FK_SIM, to calls into the explorer, where each access is a
 * point at which another thread may run.
 *
 * There are no 64-bit atomics (a Cortex-M has none) and no fences (ThreadSanitizer
 * does not understand them): an order belongs to an access.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(FK_SIM)
#include "sim/atomic_sim.h"
#else
#include "base/atomic_c11.h"
#endif

/* What both variants provide (o is one of FK_RELAXED, FK_ACQUIRE, FK_RELEASE, FK_ACQ_REL,
 * FK_SEQ_CST and must be a constant):
 *
 *   uintptr_t fk__word_load(const fk_word *w, o);
 *   void      fk__word_store(fk_word *w, uintptr_t value, o);
 *   uintptr_t fk__word_swap(fk_word *w, uintptr_t value, o);                returns the old value
 *   bool      fk__word_cas(fk_word *w, uintptr_t *expected, uintptr_t value, o);   strong; on
 *             failure *expected is what was there, read with acquire
 *   uintptr_t fk__word_add(fk_word *w, uintptr_t value, o);                 returns the old value
 *   uintptr_t fk__word_and(fk_word *w, uintptr_t value, o);                 returns the old value
 *   uintptr_t fk__word_or(fk_word *w, uintptr_t value, o);                  returns the old value
 *   void      fk__word_init(fk_word *w, uintptr_t value);        before anybody else can see it
 *   ... and the same as fk__half_* on uint32_t.
 *   void      fk__cpu_relax(void);                               one turn of a bounded spin
 */

/* Pointers in words, without a cast at each use. */
static inline void *fk__word_ptr(const fk_word *w, fk_order o)
{
    return (void *)fk__word_load(w, o);
}

#endif /* FK_BASE_ATOMIC_H */

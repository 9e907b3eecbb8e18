/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_ATOMIC_C11_H
#define FK_BASE_ATOMIC_C11_H

/* The library's variant of base/atomic.h: thin names over <stdatomic.h>. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef memory_order fk_order;

#define FK_RELAXED memory_order_relaxed
#define FK_ACQUIRE memory_order_acquire
#define FK_RELEASE memory_order_release
#define FK_ACQ_REL memory_order_acq_rel
#define FK_SEQ_CST memory_order_seq_cst

typedef struct fk_word {
    _Atomic(uintptr_t) v;
} fk_word;

typedef struct fk_half {
    _Atomic(uint32_t) v;
} fk_half;

/* Always inlined: an order that is not a constant would be compiled as seq_cst. */
#define FK_ATOMIC_INLINE static inline __attribute__((always_inline))

#define FK_ATOMIC_FAMILY(name, box, type)                                                          \
    FK_ATOMIC_INLINE void fk__##name##_init(box *w, type value)                                    \
    {                                                                                              \
        atomic_init(&w->v, value);                                                                 \
    }                                                                                              \
    FK_ATOMIC_INLINE type fk__##name##_load(const box *w, fk_order o)                              \
    {                                                                                              \
        return atomic_load_explicit(&w->v, o);                                                     \
    }                                                                                              \
    FK_ATOMIC_INLINE void fk__##name##_store(box *w, type value, fk_order o)                       \
    {                                                                                              \
        atomic_store_explicit(&w->v, value, o);                                                    \
    }                                                                                              \
    FK_ATOMIC_INLINE type fk__##name##_swap(box *w, type value, fk_order o)                        \
    {                                                                                              \
        return atomic_exchange_explicit(&w->v, value, o);                                          \
    }                                                                                              \
    FK_ATOMIC_INLINE bool fk__##name##_cas(box *w, type *expected, type value, fk_order o)         \
    {                                                                                              \
        return atomic_compare_exchange_strong_explicit(&w->v, expected, value, o,                  \
                                                       memory_order_acquire);                      \
    }                                                                                              \
    FK_ATOMIC_INLINE type fk__##name##_add(box *w, type value, fk_order o)                         \
    {                                                                                              \
        return atomic_fetch_add_explicit(&w->v, value, o);                                         \
    }                                                                                              \
    FK_ATOMIC_INLINE type fk__##name##_and(box *w, type value, fk_order o)                         \
    {                                                                                              \
        return atomic_fetch_and_explicit(&w->v, value, o);                                         \
    }                                                                                              \
    FK_ATOMIC_INLINE type fk__##name##_or(box *w, type value, fk_order o)                          \
    {                                                                                              \
        return atomic_fetch_or_explicit(&w->v, value, o);                                          \
    }

FK_ATOMIC_FAMILY(word, fk_word, uintptr_t)
FK_ATOMIC_FAMILY(half, fk_half, uint32_t)

#undef FK_ATOMIC_FAMILY

#if defined(__x86_64__) || defined(__i386__)
static inline void fk__cpu_relax(void)
{
    __builtin_ia32_pause();
}
#elif defined(__aarch64__)
static inline void fk__cpu_relax(void)
{
    __asm__ volatile("yield");
}
#else
static inline void fk__cpu_relax(void)
{
}
#endif

#endif /* FK_BASE_ATOMIC_C11_H */

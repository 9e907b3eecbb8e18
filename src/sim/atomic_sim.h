/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_ATOMIC_SIM_H
#define FK_SIM_ATOMIC_SIM_H

/*
 * The FK_SIM variant of base/atomic.h. While virtual threads run (sim/machine.h), every
 * access goes through the machine: it may let another thread run first, keeps stores in
 * store buffers, and notices freed memory. At any other time, in set-up code and on the
 * host, accesses are plain.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fk_order {
    FK_RELAXED,
    FK_ACQUIRE,
    FK_RELEASE,
    FK_ACQ_REL,
    FK_SEQ_CST,
} fk_order;

typedef struct fk_word {
    uintptr_t v;
} fk_word;

typedef struct fk_half {
    uint32_t v;
} fk_half;

typedef enum fk_width {
    FK_WIDTH_WORD,
    FK_WIDTH_HALF,
} fk_width;

typedef enum fk_rmw {
    FK_RMW_SWAP,
    FK_RMW_ADD,
    FK_RMW_AND,
    FK_RMW_OR,
} fk_rmw;

/* Not NULL exactly while a virtual thread runs. */
extern struct fk_machine *fk__machine;

uintptr_t fk__sim_load(const void *at, fk_width width, fk_order o);
void fk__sim_store(void *at, fk_width width, uintptr_t value, fk_order o);
uintptr_t fk__sim_rmw(void *at, fk_width width, fk_rmw kind, uintptr_t value, fk_order o);
bool fk__sim_cas(void *at, fk_width width, uintptr_t *expected, uintptr_t value, fk_order o);
void fk__sim_init(void *at, fk_width width, uintptr_t value);
void fk__sim_relax(void);

#define FK_ATOMIC_RMW(name, verb, box, type, width, kind, plain)                                   \
    static inline type fk__##name##_##verb(box *w, type value, fk_order o)                         \
    {                                                                                              \
        if (fk__machine != NULL) return (type)fk__sim_rmw(&w->v, width, kind, value, o);           \
        type old = w->v;                                                                           \
        w->v = plain;                                                                              \
        return old;                                                                                \
    }

#define FK_ATOMIC_FAMILY(name, box, type, width)                                                   \
    FK_ATOMIC_RMW(name, swap, box, type, width, FK_RMW_SWAP, value)                                \
    FK_ATOMIC_RMW(name, add, box, type, width, FK_RMW_ADD, (type)(old + value))                    \
    FK_ATOMIC_RMW(name, and, box, type, width, FK_RMW_AND, old &value)                             \
    FK_ATOMIC_RMW(name, or, box, type, width, FK_RMW_OR, old | value)                              \
    static inline void fk__##name##_init(box *w, type value)                                       \
    {                                                                                              \
        if (fk__machine != NULL) {                                                                 \
            fk__sim_init(&w->v, width, value);                                                     \
        } else {                                                                                   \
            w->v = value;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static inline type fk__##name##_load(const box *w, fk_order o)                                 \
    {                                                                                              \
        return fk__machine != NULL ? (type)fk__sim_load(&w->v, width, o) : w->v;                   \
    }                                                                                              \
    static inline void fk__##name##_store(box *w, type value, fk_order o)                          \
    {                                                                                              \
        if (fk__machine != NULL) {                                                                 \
            fk__sim_store(&w->v, width, value, o);                                                 \
        } else {                                                                                   \
            w->v = value;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static inline bool fk__##name##_cas(box *w, type *expected, type value, fk_order o)            \
    {                                                                                              \
        if (fk__machine == NULL) {                                                                 \
            bool equal = w->v == *expected;                                                        \
            if (equal) {                                                                           \
                w->v = value;                                                                      \
            } else {                                                                               \
                *expected = w->v;                                                                  \
            }                                                                                      \
            return equal;                                                                          \
        }                                                                                          \
        uintptr_t seen = *expected;                                                                \
        bool done = fk__sim_cas(&w->v, width, &seen, value, o);                                    \
        if (!done) *expected = (type)seen;                                                         \
        return done;                                                                               \
    }

FK_ATOMIC_FAMILY(word, fk_word, uintptr_t, FK_WIDTH_WORD)
FK_ATOMIC_FAMILY(half, fk_half, uint32_t, FK_WIDTH_HALF)

#undef FK_ATOMIC_FAMILY
#undef FK_ATOMIC_RMW

static inline void fk__cpu_relax(void)
{
    if (fk__machine != NULL) fk__sim_relax();
}

#endif /* FK_SIM_ATOMIC_SIM_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_BASE_H
#define FK_BASE_BASE_H

/* What every source file of the freestanding parts may use. */

#include "fraktor/base.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);

/* Freestanding code does not get these inlined unless it asks. */
#define memcpy  __builtin_memcpy
#define memmove __builtin_memmove
#define memset  __builtin_memset
#define memcmp  __builtin_memcmp

/* Asserts are always on. What comes from outside is checked, never asserted. The host replaces
 * fk__assert_failed, which is weak, with one that says where. */
_Noreturn void fk__assert_failed(const char *file, int line);

#define FK_ASSERT(condition)                                                                       \
    (__builtin_expect(!!(condition), 1) ? (void)0 : fk__assert_failed(__FILE__, __LINE__))

#if defined(FK_ASSERT_SLOW)
#define FK_CHECK_SLOW(condition) FK_ASSERT(condition)
#else
#define FK_CHECK_SLOW(condition) ((void)sizeof(!(condition)))
#endif

/* FK_HOT: inlined wherever the compiler sees the body, which in the library, built as one unit, is
 * everywhere. FK_COLD: kept out of the way of what is hot. */
#define FK_HOT  inline __attribute__((always_inline))
#define FK_COLD __attribute__((noinline))
/* Nothing, but the compiler cannot know: the branch that leads here stays one. */
#define FK_KEEP_BRANCH() __asm__ volatile("")

#define FK_LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define FK_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Only where there is nothing to release. */
#define FK_TRY(expression)                                                                         \
    do {                                                                                           \
        fk_err try_err = (expression);                                                             \
        if (try_err != FK_OK) return try_err;                                                      \
    } while (0)

#define FK_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define FK_CACHE_LINE 64

static inline fk_time fk__time_add(fk_time a, fk_time b)
{
    return b > 0 && a > FK_NEVER - b ? FK_NEVER : a + b;
}

#endif /* FK_BASE_BASE_H */

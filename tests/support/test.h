/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_TEST_H
#define FK_TESTS_SUPPORT_TEST_H

/*
 * Tests over cmocka: a TEST registers itself, so none can be forgotten, and a CHECK that fails on
 * a thread other than the test's aborts the process, because cmocka can only jump out of its own.
 * main() is in test.c; its first argument selects tests by name ('*' and '?' match).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fraktor/fraktor.h"

typedef void (*test_fn)(void **state);

void test_register(const char *name, test_fn fn);

#define TEST(name)                                                                                 \
    static void test_##name(void **state);                                                         \
    __attribute__((constructor)) static void test_register_##name(void)                            \
    {                                                                                              \
        test_register("test_" #name, test_##name);                                                 \
    }                                                                                              \
    static void test_##name(void **state __attribute__((unused)))

__attribute__((noreturn, format(printf, 3, 4))) void test_failed(const char *file, int line,
                                                                 const char *format, ...);
void test_check_u64(uint64_t actual, uint64_t expected, const char *what, const char *file,
                    int line);
void test_check_err(fk_err actual, fk_err expected, const char *what, const char *file, int line);
void test_check_str(const char *actual, const char *expected, const char *what, const char *file,
                    int line);

#define CHECK(condition)                                                                           \
    ((condition) ? (void)0 : test_failed(__FILE__, __LINE__, "not true: %s", #condition))
#define CHECK_U64(actual, expected)                                                                \
    test_check_u64((uint64_t)(actual), (uint64_t)(expected), #actual, __FILE__, __LINE__)
#define CHECK_ERR(actual, expected)                                                                \
    test_check_err((actual), (expected), #actual, __FILE__, __LINE__)
#define CHECK_OK(actual) CHECK_ERR((actual), FK_OK)
#define CHECK_STR(actual, expected)                                                                \
    test_check_str((actual), (expected), #actual, __FILE__, __LINE__)

/* n times the environment's FK_STRESS (default 1), divided in sanitizer builds; at least 1. */
uint64_t test_scaled(uint64_t n);
/* An environment variable as a number. */
uint64_t test_env(const char *name, uint64_t otherwise);
bool test_is_sanitized(void);

/* A generator for choices in tests; print the seed first. */
typedef struct test_random {
    uint64_t state;
} test_random;

uint64_t test_random_next(test_random *random);
/* 0 .. n - 1 */
uint64_t test_random_below(test_random *random, uint64_t n);

/* Threads of this process, by /proc. */
size_t test_thread_count(void);
/* Bytes of it in memory. */
size_t test_rss(void);
/* Nanoseconds of a clock that only goes forward, independent of any port. */
int64_t test_clock(void);
/* Nanoseconds that this process has worked: what a test may limit, on a machine that others use. */
int64_t test_work(void);
void test_sleep_ms(unsigned ms);

#endif /* FK_TESTS_SUPPORT_TEST_H */

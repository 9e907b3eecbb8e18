/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/test.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SANITIZED 1
#endif
#if !defined(TEST_SANITIZED)
#define TEST_SANITIZED 0
#endif

enum { TESTS_MAX = 256, SANITIZED_DIVISOR = 20 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t test_count;
static pthread_t main_thread;

void test_register(const char *name, test_fn fn)
{
    if (test_count == TESTS_MAX) abort();
    tests[test_count++] = (struct CMUnitTest){ .name = name, .test_func = fn };
}

void test_failed(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    if (pthread_equal(pthread_self(), main_thread)) _fail(file, line);
    abort();
}

void test_check_u64(uint64_t actual, uint64_t expected, const char *what, const char *file,
                    int line)
{
    if (actual == expected) return;
    test_failed(file, line, "%s is %llu (%#llx), expected %llu (%#llx)", what,
                (unsigned long long)actual, (unsigned long long)actual,
                (unsigned long long)expected, (unsigned long long)expected);
}

void test_check_err(fk_err actual, fk_err expected, const char *what, const char *file, int line)
{
    if (actual == expected) return;
    test_failed(file, line, "%s is %s, expected %s", what, fk_err_name(actual),
                fk_err_name(expected));
}

void test_check_str(const char *actual, const char *expected, const char *what, const char *file,
                    int line)
{
    if (strcmp(actual, expected) == 0) return;
    test_failed(file, line, "%s is \"%s\", expected \"%s\"", what, actual, expected);
}

uint64_t test_env(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

bool test_is_sanitized(void)
{
    return TEST_SANITIZED;
}

uint64_t test_scaled(uint64_t n)
{
    n *= test_env("FK_STRESS", 1);
    if (TEST_SANITIZED) n /= SANITIZED_DIVISOR;
    return n > 0 ? n : 1;
}

uint64_t test_random_next(test_random *random)
{
    /* splitmix64: any state will do, also 0. */
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t test_random_below(test_random *random, uint64_t n)
{
    return test_random_next(random) % n;
}

size_t test_thread_count(void)
{
    DIR *dir = opendir("/proc/self/task");
    size_t count = 0;
    if (dir == NULL) return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

size_t test_rss(void)
{
    unsigned long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    int fields = fscanf(file, "%lu %lu", &size, &resident);
    fclose(file);
    return fields == 2 ? resident * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static int64_t clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t test_clock(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

int64_t test_work(void)
{
    return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

void test_sleep_ms(unsigned ms)
{
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    while (nanosleep(&t, &t) != 0) {
    }
}

static void *do_nothing(void *arg)
{
    return arg;
}

int main(int argc, char **argv)
{
    pthread_t first;
    main_thread = pthread_self();
    /* ThreadSanitizer makes a thread of its own along with the first: let it be there already when
     * a test begins to count. */
    if (pthread_create(&first, NULL, do_nothing, NULL) != 0) return 1;
    pthread_join(first, NULL);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    if (test_count == 0) return 1;
    return _cmocka_run_group_tests(argv[0], tests, test_count, NULL, NULL) == 0 ? 0 : 1;
}

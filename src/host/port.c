/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The Linux port: malloc and mmap, the boot clock, getrandom, futexes. Holds no state of systems. */

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "host/host.h"

enum {
    PAGES_FROM = 1 << 20,
    HUGE_PAGE = 2 << 20,
    HUGE_SLOW_NS = 1500000, /* one at hand takes a quarter of a millisecond */
    HUGE_LEFT_OUT = 256,
    LOCK_SPINS = 60
};

/* ---- memory ------------------------------------------------------------------------------ */

static fk_time read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return FK_SECONDS(t.tv_sec) + t.tv_nsec;
}

/* Huge pages are worth it where the machine has them at hand. A virtual machine that gives free ones
 * back to its host has to get each from there again, and clearing it then takes longer than the five
 * hundred small ones that lie around. So the first touch is timed, and after a slow one the next
 * regions of this process do without; a matter of the machine, not of any system. */
static void pages_make_huge(char *block, size_t size)
{
    static fk_half left_out; /* relaxed: only advice */
    uint32_t left = fk__half_load(&left_out, FK_RELAXED);
    if (left > 0) {
        fk__half_store(&left_out, left - 1, FK_RELAXED);
        return;
    }
    madvise(block, size, MADV_HUGEPAGE);
    fk_time begun = read_clock(CLOCK_MONOTONIC);
    *(volatile char *)block = 0;
    if (read_clock(CLOCK_MONOTONIC) - begun > HUGE_SLOW_NS) {
        fk__half_store(&left_out, HUGE_LEFT_OUT, FK_RELAXED);
    }
}

/* Large regions straight from the kernel, so that freeing them gives them back, and on huge
 * pages where they fill one. */
static void *pages_alloc(size_t size)
{
    size_t align = size % HUGE_PAGE == 0 ? (size_t)HUGE_PAGE : (size_t)FK_PAGE_SIZE;
    char *block =
        mmap(NULL, size + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) return NULL;
    size_t before = (align - (uintptr_t)block % align) % align;
    if (before > 0) munmap(block, before);
    if (align > before) munmap(block + before + size, align - before);
    if (align == HUGE_PAGE) pages_make_huge(block + before, size);
    return block + before;
}

static size_t pages_round(size_t size)
{
    return (size + FK_PAGE_SIZE - 1) & ~(size_t)(FK_PAGE_SIZE - 1);
}

static void *host_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        if (old_size >= PAGES_FROM)
            munmap(ptr, pages_round(old_size));
        else
            free(ptr);
        return NULL;
    }
    if (new_size > SIZE_MAX / 2) return NULL; /* rounding up must not wrap */
    if (new_size >= PAGES_FROM) return pages_alloc(pages_round(new_size));
    if (new_size % FK_PAGE_SIZE == 0) return aligned_alloc(FK_PAGE_SIZE, new_size);
    return malloc(new_size);
}

/* ---- time and chance --------------------------------------------------------------------- */

static fk_time host_now(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_BOOTTIME);
}

static fk_time host_wall(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

/* The processor's own counter, where it goes on at one speed in every state of sleep, and may be read.
 * Others have the clock, which is twice as dear. */
#if defined(__x86_64__)

#include <cpuid.h>

static uint64_t host_cycles(void *ctx)
{
    (void)ctx;
    return __builtin_ia32_rdtsc();
}

static bool has_cycles(void)
{
    const unsigned power = 0x80000007u, steady = 1u << 8;
    unsigned a, b, c, d = 0;
    int mode = PR_TSC_SIGSEGV;
    if (__get_cpuid(power, &a, &b, &c, &d) == 0 || (d & steady) == 0) return false;
    return prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
}

#else

static uint64_t host_cycles(void *ctx)
{
    (void)ctx;
    return 0;
}

static bool has_cycles(void)
{
    return false;
}

#endif

static void host_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    char *at = buf;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) fk__assert_failed(__FILE__, __LINE__); /* no chance, no system */
        at += n;
        len -= (size_t)n;
    }
}

/* ---- waiting ----------------------------------------------------------------------------- */

static long futex(uint32_t *word, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void fk__host_wait(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout)
{
    (void)ctx;
    if (timeout == FK_NEVER) {
        futex(word, FUTEX_WAIT_PRIVATE, seen, NULL);
        return;
    }
    if (timeout < 0) timeout = 0;
    struct timespec t = { (time_t)(timeout / FK_SECONDS(1)), (long)(timeout % FK_SECONDS(1)) };
    futex(word, FUTEX_WAIT_PRIVATE, seen, &t);
}

void fk__host_notify(void *ctx, uint32_t *word)
{
    (void)ctx;
    futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL);
}

/* A lock is 0 free, 1 held. It is held for a few dozen instructions, so whoever has to wait spins,
 * and if the holder has lost its core, gives up its own; that keeps the release a plain store. */

static fk_half *lock_word(fk_lock *lock)
{
    return (fk_half *)(void *)&lock->word;
}

_Static_assert(sizeof(fk_half) == sizeof(uint32_t), "a lock is 32 bits");

static bool lock_try(fk_half *word)
{
    uint32_t seen = 0;
    /* Acquire pairs with the release in host_unlock. */
    return fk__half_load(word, FK_RELAXED) == 0 && fk__half_cas(word, &seen, 1, FK_ACQUIRE);
}

static FK_COLD void lock_wait(fk_half *word)
{
    for (uint32_t i = 1;; i++) {
        if (lock_try(word)) return;
        if (i % LOCK_SPINS == 0)
            sched_yield();
        else
            fk__cpu_relax();
    }
}

static void host_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    if (FK_UNLIKELY(!lock_try(lock_word(lock)))) lock_wait(lock_word(lock));
}

static void host_unlock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    FK_ASSERT(fk__half_load(lock_word(lock), FK_RELAXED) == 1);
    fk__half_store(lock_word(lock), 0, FK_RELEASE);
}

/* Stacks of different threads are far apart, so the address of anything on them tells them
 * apart, without a system call. */
static uint32_t host_thread(void *ctx)
{
    (void)ctx;
    char here;
    uint64_t mixed = fk__mix64((uint64_t)(uintptr_t)&here >> 16);
    return (uint32_t)mixed;
}

/* ---- the rest ---------------------------------------------------------------------------- */

/* ---- writing ------------------------------------------------------------------------------ */

/* A pipe or socket that nobody reads any more must not end the process: the signal is kept out while
 * we write, and taken away if it was us who caused it. */
ssize_t fk__host_write(int fd, const char *text, size_t len)
{
    static const struct timespec AT_ONCE = { 0, 0 };
    sigset_t broken, pending, before;
    ssize_t written;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    /* A pipe that nobody empties must not stop whoever has something to say: with room, which is
     * a page at least, a line does not block. */
    struct pollfd room = { fd, POLLOUT, 0 };
    if (poll(&room, 1, 0) == 0) return 0;
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    do {
        written = write(fd, text, len);
    } while (written < 0 && errno == EINTR);
    if (written < 0 && errno == EPIPE && !was_pending) {
        while (sigtimedwait(&broken, NULL, &AT_ONCE) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return written;
}

_Noreturn void fk__assert_failed(const char *file, int line)
{
    fprintf(stderr,
            "fraktor: assertion failed at %s:%d; this is a bug in fraktor or memory was "
            "overwritten\n",
            file, line);
    abort();
}

static void host_panic(void *ctx, const char *file, int line)
{
    (void)ctx;
    fk__assert_failed(file, line);
}

static void host_wake(void *ctx, uint32_t worker)
{
    (void)ctx;
    (void)worker; /* fk_system_start() wakes its own threads */
}

fk_port fk_host_port(void)
{
    return (fk_port){
        .size = sizeof(fk_port),
        .align = FK_PAGE_SIZE,
        .alloc = host_alloc,
        .now = host_now,
        .wall = host_wall,
        .random = host_random,
        .lock = host_lock,
        .unlock = host_unlock,
        .wake = host_wake,
        .panic = host_panic,
        .wait = fk__host_wait,
        .notify = fk__host_notify,
        .thread = host_thread,
        .cycles = has_cycles() ? host_cycles : NULL,
    };
}

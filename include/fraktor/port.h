/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PORT_H
#define FK_PORT_H

/*
 * The port: everything the core wants from the machine it runs on, as one table
 * per system. fk_system_start() brings the Linux table; a simulator, an event loop
 * or a microcontroller brings another. A program that wants only its own allocator
 * takes fk_host_port() (fraktor/host.h) and replaces alloc.
 *
 * Every function gets ctx first. All may be called from any thread of the system.
 */

#include "fraktor/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A lock is one zeroed word; what it means is the port's business: a futex, masked
 * interrupts, or an assertion. */
typedef struct fk_lock {
    uint32_t word;
} fk_lock;

/* One place in the library that allocates. The linker collects them all, so a test
 * can show that each one has been made to fail. */
typedef struct fk_site {
    const char *what;
    const char *file;
    int line;
} fk_site;

#define FK_CYCLES_NEAR UINT64_C(65536)
#define FK_CYCLES_TIME ((fk_time)100000) /* nanoseconds: a counter makes 0.66 GHz at least */

typedef struct fk_port {
    uint32_t size;  /* sizeof(fk_port): lets the table grow */
    uint32_t align; /* what alloc guarantees for requests that are a multiple of it; 0: 16 bytes.
                       65536 saves memory */
    void *ctx;      /* first argument of everything below */

    /* Like lua_Alloc: old_size 0 allocates, new_size 0 frees, nothing else is asked.
     * NULL when there is no memory. Aligned to at least 16 bytes. */
    void *(*alloc)(void *ctx, void *ptr, size_t old_size, size_t new_size);
    fk_time (*now)(void *ctx);  /* monotonic nanoseconds, counting suspend */
    fk_time (*wall)(void *ctx); /* since 1970, for people only */
    void (*random)(void *ctx, void *buf, size_t len);
    /* Held briefly. Up to three may nest, always in the same order, and alloc may be called while
     * one is held; never wake, wait or user code. */
    void (*lock)(void *ctx, fk_lock *lock);
    void (*unlock)(void *ctx, fk_lock *lock);
    void (*wake)(void *ctx, uint32_t worker);             /* it has work; called anywhere */
    void (*panic)(void *ctx, const char *file, int line); /* does not return */

    /* The rest may be NULL. */

    /* Sleeps while *word == seen, until notify() on that word or the timeout; may return
     * early. Needed for bounded mailboxes that block and for the waiting calls. */
    void (*wait)(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout);
    void (*notify)(void *ctx, uint32_t *word);
    /* A number that differs between threads that run at once, as far as possible: it spreads
     * outside senders over memory pools. NULL: all the same. */
    uint32_t (*thread)(void *ctx);
    /* A counter that is cheaper to read than now() and goes on whatever happens to the thread or the
     * machine: two readings of one thread that are less than FK_CYCLES_NEAR apart were made within
     * FK_CYCLES_TIME. Who replaces now() replaces it, too. NULL: the clock is read each time. */
    uint64_t (*cycles)(void *ctx);
    /* For tests: asked before each allocation; false makes it fail. */
    bool (*admit)(void *ctx, const fk_site *site, size_t size);
} fk_port;

#ifdef __cplusplus
}
#endif
#endif /* FK_PORT_H */

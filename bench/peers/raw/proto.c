/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The prototype: a minimal but thread-safe actor core without references, paths,
 * supervision, system messages or timers. It shows what is achievable on this
 * machine and is the yardstick for the kernel, so its speed must not change.
 *
 * Mailbox. An intrusive list with many producers and one consumer. The producers'
 * end carries EMPTY_MARK in bit 0 while the actor is idle, so that a send is one
 * exchange which also tells whether the actor must be scheduled. The consumer's
 * end is always a message that has been handled already; it is freed when its
 * successor is taken.
 *
 * Messages. Each worker has a LIFO list of free messages. When it grows to two
 * batches, one batch moves to a global stack, where a worker without messages
 * finds it.
 *
 * Scheduling. A worker has a slot for the actor that became ready last, then a
 * ring in FIFO order from which others steal half, then a global list for what
 * the ring cannot hold and for what the main thread schedules. An idle worker
 * spins, then parks on a futex.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "../bench.h"

#define RUNTIME "proto"

#define EMPTY_MARK       ((uintptr_t)1)
#define BATCH_LEN        128   /* messages that move between workers at once */
#define RING_LEN         1024u /* power of two */
#define TURN_LEN         100   /* messages an actor handles before it yields */
#define SLAB_SIZE        ((size_t)1 << 18)
#define SLOT_RUNS_MAX    64     /* runs from the slot before the ring gets a turn */
#define GLOBAL_EVERY     64     /* the global list is looked at this often at least */
#define SPINS_MAX        2000   /* looks for work before parking */
#define SLOT_STUCK_LOOKS 100    /* a slot unchanged for that many looks may be stolen */
#define PARK_NS          500000 /* how long to park while other workers still run */
#define CACHE_LINE       64

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__x86_64__) || defined(__i386__)
#define SPIN_PAUSE() __builtin_ia32_pause()
#else
#define SPIN_PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

typedef struct msg msg;
typedef struct actor actor;

/* Returns false when the actor stops. */
typedef bool (*handler_fn)(actor *self, msg *m);

struct msg {
    _Atomic(msg *) next;
    uint64_t tag;
    uint64_t val;
    actor *from;
};

struct actor {
    _Atomic(uintptr_t) head; /* producers' end: the last message, or'ed with EMPTY_MARK */
    msg *tail;               /* consumer's end: the message handled last */
    actor *next;             /* in the global list, or in a worker's list of free actors */
    handler_fn handler;
    uint64_t a; /* a, b and peer belong to the workload */
    uint64_t b;
    actor *peer;
};

typedef struct worker {
    /* Written by thieves. */
    alignas(CACHE_LINE) _Atomic uint32_t top;
    /* Written by the owner. */
    alignas(CACHE_LINE) _Atomic uint32_t bottom;
    _Atomic(actor *) slot;
    uint32_t slot_runs;
    msg *free_msgs;
    uint32_t free_msgs_len;
    actor *free_actors;
    char *msg_slab;
    size_t msg_slab_left;
    char *actor_slab;
    size_t actor_slab_left;
    alignas(CACHE_LINE) _Atomic(actor *) ring[RING_LEN];
} worker;

static worker *workers;
static int worker_count;
static worker *outside; /* the main thread's context: it allocates and sends but never runs */
static _Thread_local worker *me;

static atomic_flag batches_lock = ATOMIC_FLAG_INIT;
static msg **batches;
static size_t batches_len;
static size_t batches_cap;
static _Atomic size_t batches_hint; /* copy of batches_len, readable without the lock */

static atomic_flag global_lock = ATOMIC_FLAG_INIT;
static actor *global_first;
static actor *global_last;
static _Atomic size_t global_len;

static alignas(CACHE_LINE) _Atomic int parked;
static alignas(CACHE_LINE) _Atomic int searching;
static alignas(CACHE_LINE) _Atomic int wake_count; /* the futex word */

static inline void lock(atomic_flag *flag)
{
    while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire)) SPIN_PAUSE();
}

static inline void unlock(atomic_flag *flag)
{
    atomic_flag_clear_explicit(flag, memory_order_release);
}

/* Messages and actors. */

static inline msg *free_next(msg *m)
{
    return atomic_load_explicit(&m->next, memory_order_relaxed);
}

static inline void *slab_take(char **slab, size_t *left, size_t size)
{
    if (*left < size) {
        *slab = aligned_alloc(CACHE_LINE, SLAB_SIZE);
        if (*slab == NULL) bench_fail("proto", "out of memory");
        *left = SLAB_SIZE;
    }
    void *block = *slab;
    *slab += size;
    *left -= size;
    return block;
}

static msg *msg_take_slow(worker *w)
{
    if (atomic_load_explicit(&batches_hint, memory_order_relaxed) > 0) {
        lock(&batches_lock);
        if (batches_len > 0) {
            msg *m = batches[--batches_len];
            atomic_store_explicit(&batches_hint, batches_len, memory_order_relaxed);
            unlock(&batches_lock);
            w->free_msgs = free_next(m);
            w->free_msgs_len = BATCH_LEN - 1;
            return m;
        }
        unlock(&batches_lock);
    }
    return slab_take(&w->msg_slab, &w->msg_slab_left, sizeof(msg));
}

static inline msg *msg_take(worker *w)
{
    msg *m = w->free_msgs;
    if (UNLIKELY(m == NULL)) return msg_take_slow(w);
    w->free_msgs = free_next(m);
    w->free_msgs_len--;
    return m;
}

/* Gives the BATCH_LEN messages that were freed last to whoever needs them. */
static void msg_put_slow(worker *w)
{
    msg *first = w->free_msgs;
    msg *last = first;
    for (int i = 1; i < BATCH_LEN; i++) last = free_next(last);
    w->free_msgs = free_next(last);
    w->free_msgs_len -= BATCH_LEN;
    atomic_store_explicit(&last->next, NULL, memory_order_relaxed);

    lock(&batches_lock);
    if (batches_len == batches_cap) {
        batches_cap = batches_cap > 0 ? batches_cap * 2 : 1024;
        batches = realloc(batches, batches_cap * sizeof *batches);
        if (batches == NULL) bench_fail("proto", "out of memory");
    }
    batches[batches_len++] = first;
    atomic_store_explicit(&batches_hint, batches_len, memory_order_relaxed);
    unlock(&batches_lock);
}

static inline void msg_put(worker *w, msg *m)
{
    atomic_store_explicit(&m->next, w->free_msgs, memory_order_relaxed);
    w->free_msgs = m;
    if (UNLIKELY(++w->free_msgs_len >= 2 * BATCH_LEN)) msg_put_slow(w);
}

static actor *spawn(handler_fn handler)
{
    worker *w = me;
    actor *a = w->free_actors;
    if (a != NULL) {
        w->free_actors = a->next;
    } else {
        a = slab_take(&w->actor_slab, &w->actor_slab_left, sizeof(actor));
    }
    msg *stub = msg_take(w);
    atomic_store_explicit(&stub->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&a->head, (uintptr_t)stub | EMPTY_MARK, memory_order_relaxed);
    a->tail = stub;
    a->handler = handler;
    a->a = 0;
    a->b = 0;
    a->peer = NULL;
    return a;
}

static void actor_put(worker *w, actor *a)
{
    msg_put(w, a->tail);
    a->next = w->free_actors;
    w->free_actors = a;
}

/* Queues of ready actors. */

static void global_push(actor *a)
{
    a->next = NULL;
    lock(&global_lock);
    if (global_last != NULL) {
        global_last->next = a;
    } else {
        global_first = a;
    }
    global_last = a;
    atomic_fetch_add_explicit(&global_len, 1, memory_order_release);
    unlock(&global_lock);
}

/* Only the owner appends. Returns false when the ring is full. */
static inline bool ring_append(worker *w, actor *a)
{
    uint32_t bottom = atomic_load_explicit(&w->bottom, memory_order_relaxed);
    uint32_t top = atomic_load_explicit(&w->top, memory_order_acquire);
    if (UNLIKELY(bottom - top >= RING_LEN)) return false;
    atomic_store_explicit(&w->ring[bottom % RING_LEN], a, memory_order_relaxed);
    atomic_store_explicit(&w->bottom, bottom + 1, memory_order_release);
    return true;
}

/* Takes the first actor of the global list and moves up to half a ring of the
 * following ones into the worker's own ring. */
static actor *global_pop(worker *w)
{
    if (atomic_load_explicit(&global_len, memory_order_acquire) == 0) return NULL;
    lock(&global_lock);
    actor *first = global_first;
    if (first != NULL) {
        size_t taken = 1;
        global_first = first->next;
        while (global_first != NULL && taken < RING_LEN / 2) {
            actor *following = global_first->next; /* a thief may run it once it is in the ring */
            if (!ring_append(w, global_first)) break;
            global_first = following;
            taken++;
        }
        if (global_first == NULL) global_last = NULL;
        atomic_fetch_sub_explicit(&global_len, taken, memory_order_relaxed);
    }
    unlock(&global_lock);
    return first;
}

static void wake_one(void)
{
    if (atomic_load_explicit(&parked, memory_order_relaxed) == 0) return;
    if (atomic_load_explicit(&searching, memory_order_relaxed) != 0) return;
    atomic_fetch_add(&wake_count, 1);
    syscall(SYS_futex, &wake_count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void ring_push(worker *w, actor *a)
{
    if (UNLIKELY(!ring_append(w, a))) {
        global_push(a);
        return;
    }
    if (worker_count > 1) wake_one();
}

static actor *ring_pop(worker *w)
{
    for (;;) {
        uint32_t top = atomic_load_explicit(&w->top, memory_order_acquire);
        uint32_t bottom = atomic_load_explicit(&w->bottom, memory_order_acquire);
        if ((int32_t)(bottom - top) <= 0) return NULL;
        actor *a = atomic_load_explicit(&w->ring[top % RING_LEN], memory_order_relaxed);
        if (atomic_compare_exchange_strong_explicit(&w->top, &top, top + 1, memory_order_acq_rel,
                                                    memory_order_acquire)) {
            return a;
        }
    }
}

static inline actor *slot_take(worker *w)
{
    actor *a = atomic_load_explicit(&w->slot, memory_order_relaxed);
    if (a == NULL) return NULL;
    if (worker_count > 1) return atomic_exchange_explicit(&w->slot, NULL, memory_order_acq_rel);
    atomic_store_explicit(&w->slot, NULL, memory_order_relaxed); /* nobody steals: no exchange */
    return a;
}

/* Moves half of another worker's ring into the thief's own, which is empty. */
static actor *steal(worker *thief)
{
    for (int i = 0; i < worker_count; i++) {
        worker *victim = &workers[i];
        if (victim == thief) continue;
        uint32_t top = atomic_load_explicit(&victim->top, memory_order_acquire);
        uint32_t bottom = atomic_load_explicit(&victim->bottom, memory_order_acquire);
        int32_t len = (int32_t)(bottom - top);
        if (len <= 0) continue;

        uint32_t loot_len = (uint32_t)(len - len / 2);
        actor *loot[RING_LEN];
        for (uint32_t k = 0; k < loot_len; k++) {
            loot[k] =
                atomic_load_explicit(&victim->ring[(top + k) % RING_LEN], memory_order_relaxed);
        }
        if (!atomic_compare_exchange_strong_explicit(&victim->top, &top, top + loot_len,
                                                     memory_order_acq_rel, memory_order_acquire)) {
            continue;
        }
        uint32_t own = atomic_load_explicit(&thief->bottom, memory_order_relaxed);
        for (uint32_t k = 1; k < loot_len; k++) {
            atomic_store_explicit(&thief->ring[(own + k - 1) % RING_LEN], loot[k],
                                  memory_order_relaxed);
        }
        atomic_store_explicit(&thief->bottom, own + loot_len - 1, memory_order_release);
        return loot[0];
    }
    return NULL;
}

/* A slot that has not moved for a while belongs to a worker which is busy in one
 * long handler; only then is it taken away. seen and same remember earlier looks. */
static actor *steal_slot(worker *thief, actor **seen, int *same)
{
    for (int i = 0; i < worker_count; i++) {
        worker *victim = &workers[i];
        if (victim == thief) continue;
        actor *a = atomic_load_explicit(&victim->slot, memory_order_relaxed);
        if (a == NULL || a != *seen) {
            *seen = a;
            *same = 0;
            continue;
        }
        if (++*same < SLOT_STUCK_LOOKS) continue;
        *same = 0;
        if (atomic_compare_exchange_strong(&victim->slot, &a, NULL)) return a;
    }
    return NULL;
}

/* Sending and running. */

static inline void schedule(worker *w, actor *a)
{
    if (UNLIKELY(w == outside)) {
        global_push(a);
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the look after parked++ */
        wake_one();
        return;
    }
    actor *displaced = atomic_exchange_explicit(&w->slot, a, memory_order_acq_rel);
    if (displaced != NULL) ring_push(w, displaced);
}

static inline void send(actor *to, actor *from, uint64_t tag, uint64_t val)
{
    worker *w = me;
    msg *m = msg_take(w);
    m->tag = tag;
    m->val = val;
    m->from = from;
    atomic_store_explicit(&m->next, NULL, memory_order_relaxed);

    uintptr_t prev = atomic_exchange_explicit(&to->head, (uintptr_t)m, memory_order_acq_rel);
    msg *last = (msg *)(prev & ~EMPTY_MARK);
    atomic_store_explicit(&last->next, m, memory_order_release);
    if (prev & EMPTY_MARK) schedule(w, to);
}

static inline void run_turn(worker *w, actor *a)
{
    msg *done = a->tail;
    for (int n = 0; n < TURN_LEN; n++) {
        msg *m = atomic_load_explicit(&done->next, memory_order_acquire);
        if (m == NULL) {
            uintptr_t expected = (uintptr_t)done;
            a->tail = done;
            if (atomic_compare_exchange_strong_explicit(
                    &a->head, &expected, (uintptr_t)done | EMPTY_MARK, memory_order_acq_rel,
                    memory_order_relaxed)) {
                return;
            }
            /* A producer has exchanged the head and is about to link its message. */
            while ((m = atomic_load_explicit(&done->next, memory_order_acquire)) == NULL) {
                SPIN_PAUSE();
            }
        }
        msg_put(w, done);
        done = m;
        a->tail = m;
        if (!a->handler(a, m)) {
            actor_put(w, a);
            return;
        }
    }
    ring_push(w, a);
}

static actor *find_ready(worker *w, uint32_t tick)
{
    actor *a = NULL;
    if (UNLIKELY(tick % GLOBAL_EVERY == 0)) a = global_pop(w);
    if (a == NULL && w->slot_runs++ < SLOT_RUNS_MAX) a = slot_take(w);
    if (a == NULL) {
        w->slot_runs = 0;
        a = ring_pop(w);
    }
    if (a == NULL) a = slot_take(w);
    if (a == NULL) a = global_pop(w);
    return a;
}

static actor *search(worker *w)
{
    actor *a = NULL;
    actor *seen = NULL;
    int same = 0;

    atomic_fetch_add(&searching, 1);
    for (int i = 0; i < SPINS_MAX && a == NULL; i++) {
        if (worker_count > 1) a = steal(w);
        if (worker_count > 1 && a == NULL) a = steal_slot(w, &seen, &same);
        if (a == NULL) a = global_pop(w);
        if (a == NULL) SPIN_PAUSE();
    }
    atomic_fetch_sub(&searching, 1);
    return a;
}

/* Sleeps until woken; looks once more after it has announced itself, because a
 * waker that saw nobody parked will not call. While others still run it sleeps
 * for a short time only, since they wake nobody for what is in their slot. */
static actor *park(worker *w)
{
    int woken = atomic_load(&wake_count);
    int parked_now = atomic_fetch_add(&parked, 1) + 1;
    struct timespec timeout = { .tv_nsec = PARK_NS };

    actor *a = global_pop(w);
    if (a == NULL && worker_count > 1) a = steal(w);
    if (a == NULL) {
        syscall(SYS_futex, &wake_count, FUTEX_WAIT_PRIVATE, woken,
                parked_now < worker_count ? &timeout : NULL, NULL, 0);
    }
    atomic_fetch_sub(&parked, 1);
    return a;
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    uint32_t tick = 0;

    me = w;
    for (;;) {
        actor *a = find_ready(w, ++tick);
        if (a == NULL) a = search(w);
        if (a == NULL) a = park(w);
        if (a != NULL) run_turn(w, a);
    }
    return NULL; /* the process ends while its workers wait */
}

/* The interface that workloads.h uses. */

static pthread_mutex_t finish_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finish_cond = PTHREAD_COND_INITIALIZER;
static bool finished;

static void kernel_start(unsigned threads)
{
    size_t size = sizeof(worker) * (threads + 1);
    worker_count = (int)threads;
    workers = aligned_alloc(CACHE_LINE, size);
    if (workers == NULL) bench_fail("proto", "out of memory");
    memset(workers, 0, size);
    outside = &workers[threads];
    me = outside;
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker_main, &workers[i]) != 0) {
            bench_fail("proto", "cannot create a thread");
        }
    }
    usleep(1000); /* lets the workers reach their loop before the clock starts */
}

/* Called by the actor that completes the workload. */
static void finish(void)
{
    pthread_mutex_lock(&finish_mutex);
    finished = true;
    pthread_cond_broadcast(&finish_cond);
    pthread_mutex_unlock(&finish_mutex);
}

static bool kernel_run(void)
{
    pthread_mutex_lock(&finish_mutex);
    while (!finished) pthread_cond_wait(&finish_cond, &finish_mutex);
    pthread_mutex_unlock(&finish_mutex);
    return true;
}

#include "workloads.h"

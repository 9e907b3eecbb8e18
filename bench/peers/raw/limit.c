/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The limit of one thread: actors with linked message queues, one queue of ready
 * actors, an indirect call per message, and not a single atomic operation. No
 * runtime that more than one thread may use can be expected to do better with
 * linked messages. It takes a thread count like every peer but runs one.
 */
#include <stdbool.h>

#include "../bench.h"

#define RUNTIME "limit"

#define TURN_LEN  100 /* messages an actor handles before it yields */
#define SLAB_SIZE ((size_t)1 << 20)

typedef struct msg msg;
typedef struct actor actor;

/* Returns false when the actor stops. */
typedef bool (*handler_fn)(actor *self, msg *m);

struct msg {
    msg *next;
    uint64_t tag;
    uint64_t val;
    actor *from;
};

struct actor {
    msg *first;
    msg *last;
    bool scheduled;
    actor *next; /* in the queue of ready actors */
    handler_fn handler;
    uint64_t a; /* a, b and peer belong to the workload */
    uint64_t b;
    actor *peer;
};

static actor *ready_first;
static actor *ready_last;
static msg *free_msgs;
static char *slab;
static size_t slab_left;
static bool finished;

static inline msg *msg_take(void)
{
    msg *m = free_msgs;
    if (__builtin_expect(m != NULL, 1)) {
        free_msgs = m->next;
        return m;
    }
    if (slab_left < sizeof(msg)) {
        slab = malloc(SLAB_SIZE);
        if (slab == NULL) bench_fail("limit", "out of memory");
        slab_left = SLAB_SIZE;
    }
    m = (msg *)(void *)slab;
    slab += sizeof(msg);
    slab_left -= sizeof(msg);
    return m;
}

static inline void msg_put(msg *m)
{
    m->next = free_msgs;
    free_msgs = m;
}

static inline void ready_push(actor *a)
{
    a->next = NULL;
    if (ready_last != NULL) {
        ready_last->next = a;
    } else {
        ready_first = a;
    }
    ready_last = a;
}

static actor *spawn(handler_fn handler)
{
    actor *a = calloc(1, sizeof *a);
    if (a == NULL) bench_fail("limit", "out of memory");
    a->handler = handler;
    return a;
}

static inline void send(actor *to, actor *from, uint64_t tag, uint64_t val)
{
    msg *m = msg_take();
    m->tag = tag;
    m->val = val;
    m->from = from;
    m->next = NULL;
    if (to->last != NULL) {
        to->last->next = m;
    } else {
        to->first = m;
    }
    to->last = m;
    if (!to->scheduled) {
        to->scheduled = true;
        ready_push(to);
    }
}

/* Returns false when the actor stopped. */
static inline bool run_turn(actor *a)
{
    for (int n = 0; n < TURN_LEN && a->first != NULL; n++) {
        msg *m = a->first;
        a->first = m->next;
        if (a->first == NULL) a->last = NULL;
        bool alive = a->handler(a, m);
        msg_put(m);
        if (!alive) return false;
    }
    return true;
}

/* The interface that workloads.h uses. */

static void kernel_start(unsigned threads)
{
    (void)threads;
}

static void finish(void)
{
    finished = true;
}

/* Runs until nothing is ready. Returns whether the workload has completed. */
static bool kernel_run(void)
{
    while (ready_first != NULL) {
        actor *a = ready_first;
        ready_first = a->next;
        if (ready_first == NULL) ready_last = NULL;
        if (!run_turn(a)) {
            free(a);
        } else if (a->first != NULL) {
            ready_push(a);
        } else {
            a->scheduled = false;
        }
    }
    return finished;
}

#include "workloads.h"

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H0: the explorer explores itself. Each harness is a small program whose correct form must
 * be clean and whose broken forms must be found, in the memory model where the defect first
 * shows and, where that is the point, not before.
 */

#include "sim/explore.h"
#include "sim/quarantine.h"

#include <stdio.h>

enum own_mutation {
    NO_RECHECK = FK_MUTATION_COUNT,
    IDLE_STORE,
    SCHEDULE_CAS,
    RELEASE_STORES,
    FLAG_FIRST,
    FLAG_RELAXED,
    READ_RELAXED,
    SPLIT_INCREMENT,
    RELAXED_ADD,
    LOCK_ORDER,
    NO_LOCK,
    NO_FLAG,
    EARLY_NOTIFY,
    USE_AFTER_FREE,
    HAZARD_RELEASE,
    DROP_RELAXED,
    WRITE_AFTER_FREE,
    LEAK,
    DOUBLE_FREE,
    WRONG_SIZE,
    POISONED,
    BAD_POINTER,
    DEEP_RECURSION,
    FAILED_SETUP,
    FAILED_FINISH,
};

static bool is(enum own_mutation mutation)
{
    return fk__mutation == (uint32_t)mutation;
}

/* The mailbox protocol of the research notes: intrusive MPSC queue, a word that says whether the
 * actor is scheduled, a run queue, a budget of two. Threads: two producers, then workers. */

enum { PRODUCERS = 2, MESSAGES = 2, BUDGET = 2 };

typedef struct node {
    fk_word next;
    uint32_t sender;
    uint32_t number;
} node;

typedef struct queue {
    fk_word tail;
    fk_word scheduled;
    fk_word ready;
    fk_word producers_done;
    node *head;
    uint32_t running;
    uint32_t total;
    uint32_t seen[PRODUCERS];
    node stub;
    node nodes[PRODUCERS * MESSAGES];
} queue;

static queue the_queue;

static void queue_setup(void *state)
{
    queue *q = state;
    q->head = &q->stub;
    fk__word_init(&q->tail, (uintptr_t)&q->stub);
    fk__explore_label(&q->tail, sizeof(q->tail), 1, "tail");
    fk__explore_label(&q->scheduled, sizeof(q->scheduled), 1, "scheduled");
    fk__explore_label(&q->ready, sizeof(q->ready), 1, "ready");
    fk__explore_label(&q->producers_done, sizeof(q->producers_done), 1, "producers_done");
    fk__explore_label(&q->stub, sizeof(q->stub), 1, "stub");
    fk__explore_label(q->nodes, sizeof(q->nodes[0]), PRODUCERS * MESSAGES, "node");
}

static void queue_push(queue *q, node *n)
{
    fk__word_init(&n->next, 0);
    node *before = (node *)fk__word_swap(&q->tail, (uintptr_t)n, FK_ACQ_REL);
    fk__word_store(&before->next, (uintptr_t)n, FK_RELEASE);
}

static void queue_schedule(queue *q)
{
    uintptr_t idle = 0;
    bool was_idle = is(SCHEDULE_CAS) ? fk__word_cas(&q->scheduled, &idle, 1, FK_ACQ_REL)
                                     : fk__word_swap(&q->scheduled, 1, FK_ACQ_REL) == 0;
    if (was_idle) fk__word_add(&q->ready, 1, FK_ACQ_REL);
}

static void queue_produce(queue *q, uint32_t id)
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        node *n = &q->nodes[id * MESSAGES + i];
        n->sender = id;
        n->number = i;
        queue_push(q, n);
        queue_schedule(q);
    }
    fk__word_add(&q->producers_done, 1, FK_ACQ_REL);
}

static bool queue_has_news(void *arg)
{
    const queue *q = arg;
    return q->ready.v > 0 ||
           (q->producers_done.v == PRODUCERS && q->scheduled.v == 0 && q->running == 0);
}

/* Returns whether the budget ended before the messages. */
static bool queue_run(queue *q)
{
    fk__explore_check(++q->running == 1, "two workers run one actor");
    for (uint32_t i = 0; i < BUDGET; i++) {
        node *n = fk__word_ptr(&q->head->next, FK_ACQUIRE);
        if (n == NULL) {
            q->running--;
            return false;
        }
        q->head = n;
        fk__explore_check(q->seen[n->sender] == n->number, "out of order");
        q->seen[n->sender]++;
        q->total++;
    }
    q->running--;
    return true;
}

static void queue_work(queue *q)
{
    for (;;) {
        fk__explore_await(queue_has_news, q);
        if (q->ready.v == 0) return;
        q->ready.v--;
        if (queue_run(q)) {
            fk__word_add(&q->ready, 1, FK_ACQ_REL);
            continue;
        }
        node *head = q->head;
        if (is(IDLE_STORE) || is(NO_RECHECK)) {
            fk__word_store(&q->scheduled, 0, FK_RELEASE);
        } else {
            fk__word_swap(&q->scheduled, 0, FK_ACQ_REL);
        }
        if (!is(NO_RECHECK) && fk__word_load(&head->next, FK_ACQUIRE) != 0) queue_schedule(q);
    }
}

static void queue_thread(void *state, uint32_t id)
{
    if (id < PRODUCERS) {
        queue_produce(state, id);
    } else {
        queue_work(state);
    }
}

static void queue_finish(void *state)
{
    const queue *q = state;
    fk__explore_check(q->total == PRODUCERS * MESSAGES, "lost message");
}

/* Litmus: store buffering. Both threads may read 0 only if a store can wait behind a load. */

typedef struct litmus {
    fk_word x;
    fk_half y;
    uintptr_t read[2];
} litmus;

static litmus the_litmus;

static void store_buffering(void *state, uint32_t id)
{
    litmus *l = state;
    fk_order order = is(RELEASE_STORES) ? FK_RELEASE : FK_SEQ_CST;
    if (id == 0) {
        fk__word_store(&l->x, 1, order);
        l->read[0] = fk__half_load(&l->y, FK_ACQUIRE);
    } else {
        fk__half_store(&l->y, 1, order);
        l->read[1] = fk__word_load(&l->x, FK_ACQUIRE);
    }
}

static void store_buffering_finish(void *state)
{
    const litmus *l = state;
    fk__explore_check(l->read[0] + l->read[1] > 0, "both read 0");
    fk__explore_check(l->x.v == 1, "the store to x was lost");
    fk__explore_check(l->y.v == 1, "the store to y was lost");
}

/* Litmus: message passing. FIFO buffers keep the order of data and flag. */
static void message_passing(void *state, uint32_t id)
{
    litmus *l = state;
    if (id == 0 && is(FLAG_FIRST)) {
        fk__half_store(&l->y, 1, FK_RELEASE);
        fk__word_store(&l->x, 42, FK_RELEASE);
    } else if (id == 0) {
        fk__word_store(&l->x, 42, FK_RELAXED);
        fk__half_store(&l->y, 1, FK_RELEASE);
    } else if (fk__half_load(&l->y, FK_ACQUIRE) == 1) {
        fk__explore_check(fk__word_load(&l->x, FK_RELAXED) == 42, "flag without data");
    }
}

/* The same with plain data. No store buffer shows that a relaxed flag publishes nothing, since the
 * buffers are FIFO; the clocks do. Thread 2 publishes through a read-modify-write of thread 0's
 * flag, which must keep what thread 0 released (a release sequence). */
static void plain_passing(void *state, uint32_t id)
{
    litmus *l = state;
    if (id == 0) {
        fk__explore_write(&l->read[0]);
        l->read[0] = 42;
        fk__half_store(&l->y, 1, is(FLAG_RELAXED) ? FK_RELAXED : FK_RELEASE);
    } else if (id == 1) {
        if (fk__half_load(&l->y, is(READ_RELAXED) ? FK_RELAXED : FK_ACQUIRE) % 2 == 0) return;
        fk__explore_read(&l->read[0]);
        fk__explore_check(l->read[0] == 42, "flag without data");
    } else {
        fk__half_add(&l->y, 2, FK_RELAXED);
    }
}

/* Relaxed accesses are scheduling points only for harnesses that say is_fine. */
static void fine(void *state, uint32_t id)
{
    litmus *l = state;
    (void)id;
    if (is(SPLIT_INCREMENT)) {
        uintptr_t n = fk__word_load(&l->x, FK_RELAXED);
        fk__word_store(&l->x, n + 1, FK_RELAXED);
    } else {
        fk__word_add(&l->x, 1, FK_RELAXED);
    }
}

static void fine_finish(void *state)
{
    const litmus *l = state;
    fk__explore_check(l->x.v == 2, "an increment was lost");
}

/* Litmus: store, then a read-modify-write of another word, then a load. The middle one works as a
 * fence only if it is release (and acquire). */
static void rmw_fence(void *state, uint32_t id)
{
    litmus *l = state;
    fk_order order = is(RELAXED_ADD) ? FK_RELAXED : FK_ACQ_REL;
    fk_word own = { 0 };
    if (id == 0) {
        fk__word_store(&l->x, 1, FK_RELEASE);
        fk__word_add(&own, 1, order);
        l->read[0] = fk__half_load(&l->y, FK_ACQUIRE);
    } else {
        fk__half_store(&l->y, 1, FK_RELEASE);
        fk__word_add(&own, 1, order);
        l->read[1] = fk__word_load(&l->x, FK_ACQUIRE);
    }
}

/* A thread sees its own stores at once, also the buffered ones, and the arithmetic is right. */
static void own_stores(void *state, uint32_t id)
{
    litmus *l = state;
    fk_half *y = &l->y;
    uint32_t expected = 7;
    if (id != 0) return;
    fk__half_store(y, 5, FK_RELEASE);
    fk__half_store(y, 6, FK_RELAXED);
    fk__explore_check(fk__half_load(y, FK_RELAXED) == 6, "own store not seen");
    fk__half_init(y, 8);
    fk__explore_check(fk__half_load(y, FK_ACQUIRE) == 8, "own init not seen");
    fk__explore_check(!fk__half_cas(y, &expected, 9, FK_ACQ_REL), "cas of another value");
    fk__explore_check(expected == 8, "cas does not say what was there");
    fk__explore_check(fk__half_cas(y, &expected, UINT32_MAX, FK_ACQ_REL), "cas fails");
    fk__explore_check(fk__half_add(y, 2, FK_ACQ_REL) == UINT32_MAX, "add gives the new value");
    fk__explore_check(fk__half_or(y, 6, FK_RELAXED) == 1, "add does not wrap");
    fk__explore_check(fk__half_and(y, 3, FK_ACQUIRE) == 7, "or is wrong");
    fk__explore_check(fk__half_swap(y, 4, FK_SEQ_CST) == 3, "and is wrong");
    for (uint32_t i = 0; i < 40; i++) fk__word_store(&l->x, i, FK_RELAXED);
    fk__explore_check(fk__word_load(&l->x, FK_ACQUIRE) == 39, "a full buffer forgets");
}

static void own_stores_finish(void *state)
{
    const litmus *l = state;
    fk__explore_check(l->y.v == 4, "the last value is not in memory");
    fk__explore_check(l->x.v == 39, "buffered stores are not in memory at the end");
}

/* Locks: a counter that two threads increase. */

typedef struct locks {
    uint32_t a;
    uint32_t b;
    fk_word counter;
} locks;

static locks the_locks;

static void locks_thread(void *state, uint32_t id)
{
    locks *l = state;
    bool swapped = is(LOCK_ORDER) && id == 1;
    if (!is(NO_LOCK)) {
        fk__machine_lock(swapped ? &l->b : &l->a);
        fk__machine_lock(swapped ? &l->a : &l->b);
    }
    uintptr_t n = fk__word_load(&l->counter, FK_ACQUIRE);
    fk__word_store(&l->counter, n + 1, FK_RELEASE);
    if (!is(NO_LOCK)) {
        fk__machine_unlock(&l->b);
        fk__machine_unlock(&l->a);
    }
}

static void locks_finish(void *state)
{
    const locks *l = state;
    fk__explore_check(l->counter.v == 3, "an increment was lost");
}

/* Spinning: thread 0 sets a flag late, two others spin for it; one of them gives up after a while,
 * which must be possible although it says cpu_relax. */
static void spin(void *state, uint32_t id)
{
    litmus *l = state;
    if (id == 0) {
        for (uint32_t i = 0; i < 5; i++) fk__word_add(&l->x, 1, FK_ACQ_REL);
        if (!is(NO_FLAG)) fk__half_store(&l->y, 1, FK_RELEASE);
    } else if (id == 1) {
        while (fk__half_load(&l->y, FK_ACQUIRE) == 0) fk__cpu_relax();
    } else {
        for (uint32_t i = 0; i < 3 && fk__half_load(&l->y, FK_RELAXED) == 0; i++) fk__cpu_relax();
    }
}

/* A futex: the sleeper must be woken after the word was changed, not before. */

typedef struct futex {
    fk_half word;
    bool is_awake;
} futex;

static futex the_futex;

static void futex_thread(void *state, uint32_t id)
{
    futex *f = state;
    if (id == 0) {
        while (fk__half_load(&f->word, FK_ACQUIRE) == 0)
            fk__machine_wait(&f->word.v, 0, NULL, NULL);
        f->is_awake = true;
        return;
    }
    if (is(EARLY_NOTIFY)) fk__machine_notify(&f->word.v);
    fk__half_store(&f->word, 1, FK_RELEASE);
    if (!is(EARLY_NOTIFY)) fk__machine_notify(&f->word.v);
}

static void futex_finish(void *state)
{
    const futex *f = state;
    fk__explore_check(f->is_awake, "still asleep");
}

/* The heap: thread 0 hands a block to thread 1, which frees it. */

typedef struct heap {
    fk_word box;
    fk_word again;
} heap;

static heap the_heap;
enum { BLOCK_SIZE = 40 };

static bool heap_has_block(void *arg)
{
    const heap *h = arg;
    return fk__word_load(&h->box, FK_ACQUIRE) != 0;
}

static void heap_give(heap *h)
{
    fk_word *block = fk__explore_alloc(BLOCK_SIZE);
    fk__word_init(block, 1);
    fk__word_init(&block[3], 3);
    fk__word_store(&h->box, (uintptr_t)block, FK_RELEASE);
    if (is(USE_AFTER_FREE)) fk__word_load(block, FK_ACQUIRE);
    if (is(WRITE_AFTER_FREE)) {
        fk__word_load(&h->again, FK_ACQUIRE);
        ((unsigned char *)block)[BLOCK_SIZE - 1] = 7;
    }
}

static void heap_thread(void *state, uint32_t id)
{
    heap *h = state;
    if (id == 0) {
        heap_give(h);
        return;
    }
    fk__explore_await(heap_has_block, h);
    fk_word *block = fk__word_ptr(&h->box, FK_ACQUIRE);
    fk__explore_check(fk__word_load(&block[3], FK_ACQUIRE) == 3, "block without contents");
    fk__word_store(&block[0], 9, FK_RELEASE); /* still buffered when it is freed: harmless */
    fk__word_swap(&h->again, 1, FK_RELAXED);
    if (is(POISONED)) {
        fk__quarantine_poison(&block[2], 16);
        fk__word_load(&block[3], FK_RELAXED);
    }
    if (is(LEAK)) return;
    fk__explore_free(block, is(WRONG_SIZE) ? BLOCK_SIZE - 8 : BLOCK_SIZE);
    if (is(DOUBLE_FREE)) fk__explore_free(block, BLOCK_SIZE);
}

/* Reference counts: whoever drops the last one frees. The drop must be a release, or the write
 * before it can still be on its way when the block is gone. */

typedef struct counted {
    fk_word references;
    fk_word use[2];
} counted;

static counted *the_counted;

static void counted_setup(void *state)
{
    counted **c = state;
    *c = fk__explore_alloc(sizeof(**c));
    fk__word_init(&(*c)->references, 2);
    fk__word_init(&(*c)->use[0], 0);
    fk__word_init(&(*c)->use[1], 0);
}

static void counted_thread(void *state, uint32_t id)
{
    counted *c = *(counted **)state;
    fk__word_store(&c->use[id], 1, FK_RELEASE);
    fk_order order = is(DROP_RELAXED) ? FK_RELAXED : FK_ACQ_REL;
    if (fk__word_add(&c->references, (uintptr_t)-1, order) == 1) {
        fk__explore_free(c, sizeof(*c));
    }
}

/* A hazard pointer: the reader announces itself, then looks whether the block is still offered.
 * The writer withdraws it, then looks for readers. */

typedef struct hazard {
    fk_half reader;
    fk_word offered;
} hazard;

static hazard the_hazard;

static void hazard_setup(void *state)
{
    hazard *h = state;
    fk_word *block = fk__explore_alloc(sizeof(*block));
    fk__word_init(block, 1);
    fk__word_init(&h->offered, (uintptr_t)block);
}

static bool hazard_is_gone(void *arg)
{
    const hazard *h = arg;
    return fk__half_load(&h->reader, FK_ACQUIRE) == 0;
}

static void hazard_thread(void *state, uint32_t id)
{
    hazard *h = state;
    if (id == 0) {
        fk__half_store(&h->reader, 1, is(HAZARD_RELEASE) ? FK_RELEASE : FK_SEQ_CST);
        const fk_word *block = fk__word_ptr(&h->offered, FK_ACQUIRE);
        if (block != NULL) fk__explore_check(fk__word_load(block, FK_ACQUIRE) == 1, "wrong value");
        fk__half_store(&h->reader, 0, FK_RELEASE);
    } else {
        void *block = (void *)fk__word_swap(&h->offered, 0, FK_ACQ_REL);
        fk__explore_await(hazard_is_gone, h);
        fk__explore_free(block, sizeof(fk_word));
    }
}

/* Crashes and failed checks in each place where code under test runs. */

typedef struct crash {
    fk_word pointer;
} crash;

static crash the_crash;

static void crash_setup(void *state)
{
    (void)state;
    fk__explore_check(!is(FAILED_SETUP), "setup says no");
}

static uint32_t recurse(volatile uint32_t depth)
{
    volatile unsigned char frame[512] = { 0 };
    return depth == 0 ? frame[depth] : recurse(depth - 1) + frame[depth % sizeof(frame)];
}

static void crash_thread(void *state, uint32_t id)
{
    crash *c = state;
    uintptr_t poison = (uintptr_t)UINT64_C(0xDDDDDDDDDDDDDDD0);
    fk__word_add(&c->pointer, poison, FK_ACQ_REL);
    fk__word_add(&c->pointer, 0 - poison, FK_ACQ_REL);
    volatile uint32_t *pointer = fk__word_ptr(&c->pointer, FK_ACQUIRE);
    if (is(BAD_POINTER) && id == 1 && (uintptr_t)pointer == poison) *pointer = 1;
    if (is(DEEP_RECURSION)) recurse(1000000);
}

static void crash_finish(void *state)
{
    (void)state;
    fk__explore_check(!is(FAILED_FINISH), "finish says no");
}

static const fk_harness HARNESSES[] = {
    { .name = "queue",
      .threads = PRODUCERS + 1,
      .setup = queue_setup,
      .thread = queue_thread,
      .finish = queue_finish,
      .state = &the_queue,
      .state_size = sizeof(the_queue) },
    { .name = "queue-2-workers",
      .threads = PRODUCERS + 2,
      .setup = queue_setup,
      .thread = queue_thread,
      .finish = queue_finish,
      .state = &the_queue,
      .state_size = sizeof(the_queue) },
    { .name = "store-buffering",
      .threads = 2,
      .thread = store_buffering,
      .finish = store_buffering_finish,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "message-passing",
      .threads = 2,
      .thread = message_passing,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "plain-passing",
      .threads = 3,
      .thread = plain_passing,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "fine",
      .threads = 2,
      .is_fine = true,
      .thread = fine,
      .finish = fine_finish,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "rmw-fence",
      .threads = 2,
      .thread = rmw_fence,
      .finish = store_buffering_finish,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "own-stores",
      .threads = 2,
      .thread = own_stores,
      .finish = own_stores_finish,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "locks",
      .threads = 3,
      .thread = locks_thread,
      .finish = locks_finish,
      .state = &the_locks,
      .state_size = sizeof(the_locks) },
    { .name = "spin",
      .threads = 3,
      .thread = spin,
      .state = &the_litmus,
      .state_size = sizeof(the_litmus) },
    { .name = "futex",
      .threads = 2,
      .thread = futex_thread,
      .finish = futex_finish,
      .state = &the_futex,
      .state_size = sizeof(the_futex) },
    { .name = "heap",
      .threads = 2,
      .allows_races = true,
      .thread = heap_thread,
      .state = &the_heap,
      .state_size = sizeof(the_heap) },
    { .name = "counted",
      .threads = 2,
      .allows_races = true,
      .setup = counted_setup,
      .thread = counted_thread,
      .state = &the_counted,
      .state_size = sizeof(the_counted) },
    { .name = "hazard",
      .threads = 2,
      .allows_races = true,
      .setup = hazard_setup,
      .thread = hazard_thread,
      .state = &the_hazard,
      .state_size = sizeof(the_hazard) },
    { .name = "counted-ordered",
      .threads = 2,
      .setup = counted_setup,
      .thread = counted_thread,
      .state = &the_counted,
      .state_size = sizeof(the_counted) },
    { .name = "hazard-ordered",
      .threads = 2,
      .setup = hazard_setup,
      .thread = hazard_thread,
      .state = &the_hazard,
      .state_size = sizeof(the_hazard) },
    { .name = "crash",
      .threads = 2,
      .setup = crash_setup,
      .thread = crash_thread,
      .finish = crash_finish,
      .state = &the_crash,
      .state_size = sizeof(the_crash) },
    { .name = NULL },
};

#define SC       FK_MEMORY_SC
#define TSO      FK_MEMORY_TSO
#define TSO_PLUS FK_MEMORY_TSO_PLUS

#define FREE_RACE "data race: freed without order after an access"

static const fk_variant VARIANTS[] = {
    { "queue", NO_RECHECK, "no-recheck", SC, true, "lost message" },
    { "queue", IDLE_STORE, "idle-store", TSO, true, "lost message" },
    { "queue", SCHEDULE_CAS, "schedule-cas", TSO_PLUS, true, "lost message" },
    { "queue-2-workers", SCHEDULE_CAS, "schedule-cas-2", TSO_PLUS, true, "lost message" },
    { "store-buffering", RELEASE_STORES, "release-stores", TSO, true, "both read 0" },
    { "message-passing", FLAG_FIRST, "flag-first", SC, true, "flag without data" },
    { "plain-passing", FLAG_RELAXED, "flag-relaxed", SC, true, "data race" },
    { "plain-passing", READ_RELAXED, "read-relaxed", SC, true, "data race" },
    { "fine", SPLIT_INCREMENT, "split-increment", SC, true, "an increment was lost" },
    { "rmw-fence", RELAXED_ADD, "relaxed-add", TSO_PLUS, true, "both read 0" },
    { "locks", LOCK_ORDER, "lock-order", SC, true, "deadlock" },
    { "locks", NO_LOCK, "no-lock", SC, true, "an increment was lost" },
    { "spin", NO_FLAG, "no-flag", SC, true, "livelock" },
    { "futex", EARLY_NOTIFY, "early-notify", SC, true, "deadlock" },
    { "heap", USE_AFTER_FREE, "use-after-free", SC, true, "use after free" },
    { "heap", WRITE_AFTER_FREE, "write-after-free", SC, true, "write after free" },
    { "heap", LEAK, "leak", SC, true, "leak" },
    { "heap", DOUBLE_FREE, "double-free", SC, true, "double free" },
    { "heap", WRONG_SIZE, "wrong-size", SC, true, "free with the wrong size" },
    { "heap", POISONED, "poisoned", SC, true, "use after free" },
    { "counted", DROP_RELAXED, "drop-relaxed", TSO_PLUS, true, "use after free" },
    { "hazard", HAZARD_RELEASE, "hazard-release", TSO, true, "use after free" },
    { "counted-ordered", DROP_RELAXED, "drop-relaxed-ordered", SC, true, FREE_RACE },
    { "hazard-ordered", HAZARD_RELEASE, "hazard-release-ordered", TSO, true, FREE_RACE },
    { "crash", BAD_POINTER, "bad-pointer", SC, true, "crash: bad address" },
    { "crash", DEEP_RECURSION, "deep-recursion", SC, true, "crash: stack overflow" },
    { "crash", FAILED_SETUP, "failed-setup", SC, true, "setup says no" },
    { "crash", FAILED_FINISH, "failed-finish", SC, true, "finish says no" },
    { .harness = NULL },
};

/* The number of all schedules of independent threads is known: two threads of n steps each have
 * (2n)! / (n! n!), where the start of a thread is one of its steps. */

static uint32_t accesses;

static void count_thread(void *state, uint32_t id)
{
    litmus *l = state;
    for (uint32_t i = 0; i < accesses; i++) {
        if (id == 0) {
            fk__word_load(&l->x, FK_ACQUIRE);
        } else {
            fk__half_load(&l->y, FK_ACQUIRE);
        }
    }
}

static bool count_is(uint32_t threads, uint32_t count, uint32_t bound, uint64_t expected)
{
    static const fk_harness SHAPES[] = {
        { .name = "count-2",
          .threads = 2,
          .thread = count_thread,
          .state = &the_litmus,
          .state_size = sizeof(the_litmus) },
        { .name = "count-3",
          .threads = 3,
          .thread = count_thread,
          .state = &the_litmus,
          .state_size = sizeof(the_litmus) },
    };
    accesses = count;
    fk_search search = { .harness = &SHAPES[threads - 2], .bound = bound };
    fk_finding f = fk__explore_run(&search);
    if (f.verdict == FK_VERDICT_EXHAUSTED && f.schedules == expected) return true;
    fprintf(stderr, "%u threads of %u accesses, bound %u: %llu schedules, not %llu\n",
            (unsigned)threads, (unsigned)count, (unsigned)bound, (unsigned long long)f.schedules,
            (unsigned long long)expected);
    return false;
}

static bool counts_are_right(void)
{
    bool ok = true;
    ok = count_is(2, 3, FK_SCHEDULE_BOUND_NONE, 70) && ok;     /* 8! / (4! 4!) */
    ok = count_is(2, 9, FK_SCHEDULE_BOUND_NONE, 184756) && ok; /* 20! / (10! 10!) */
    ok = count_is(3, 2, FK_SCHEDULE_BOUND_NONE, 1680) && ok;   /* 9! / (3! 3! 3!) */
    ok = count_is(2, 3, 0, 2) && ok;                           /* one after the other */
    ok = count_is(3, 2, 0, 6) && ok;
    ok = count_is(2, 3, 1, 2 + 2 * 3) && ok; /* and three places to leave the first */
    return ok;
}

/* The simulator's way: one machine, the full number of threads, run in slices; idle threads are
 * woken from outside. The same seed must give the same run. */

typedef struct town {
    fk_word visits;
    fk_word day;
    uint64_t order; /* a hash of who ran when */
} town;

static bool town_is_day(void *arg)
{
    const town *t = arg;
    return fk__word_load(&t->day, FK_ACQUIRE) > fk__word_load(&t->visits, FK_RELAXED) / 160;
}

static void town_thread(void *arg, uint32_t id)
{
    town *t = arg;
    for (uint32_t i = 0; i < 100; i++) {
        if (i % 10 == 0) fk__machine_await(town_is_day, t);
        fk__word_add(&t->visits, 1, FK_ACQ_REL);
        t->order = t->order * 31 + id;
    }
}

static uint64_t town_run(fk_machine *m, uint64_t seed, fk_memory memory)
{
    static fk_schedule schedule;
    town t = { .order = 1 };
    fk__schedule_init(&schedule, FK_SCHEDULE_RANDOM, 0, seed);
    fk__schedule_begin(&schedule);
    fk__machine_reset(m, &(fk_machine_config){ .memory = memory,
                                               .choose = fk__schedule_choose,
                                               .choose_ctx = &schedule });
    for (uint32_t i = 0; i < FK_MACHINE_THREADS_MAX; i++) fk__machine_spawn(m, town_thread, &t);
    for (;;) {
        fk_outcome outcome = fk__machine_run(m, 37);
        if (outcome == FK_OUTCOME_DONE) return t.visits.v == 1600 ? t.order : 0;
        if (outcome == FK_OUTCOME_STUCK) t.day.v++;
        if (outcome == FK_OUTCOME_FAILED || t.day.v > 100) return 0;
    }
}

static bool slices_repeat(void)
{
    fk_machine *m = fk__machine_create();
    if (m == NULL) return false;
    uint64_t first = town_run(m, 1, FK_MEMORY_TSO);
    uint64_t again = town_run(m, 1, FK_MEMORY_TSO);
    uint64_t other = town_run(m, 2, FK_MEMORY_TSO);
    fk__machine_destroy(m);
    if (first != 0 && first == again && other != 0 && other != first) return true;
    fputs("a machine run in slices does not repeat itself\n", stderr);
    return false;
}

int main(int argc, char **argv)
{
    if (!counts_are_right()) return 1;
    if (!slices_repeat()) return 1;
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

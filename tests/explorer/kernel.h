/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TESTS_EXPLORER_KERNEL_H
#define TESTS_EXPLORER_KERNEL_H

/*
 * A real system for harnesses: fk__system_create() over a port made of the explorer's parts, and
 * a worker loop that takes the place of parking where parking is not the question.
 *
 * Making a system costs more than running most schedules, so it is made once per configuration,
 * in an arena, and copied back before each schedule. What threads allocate afterwards comes from
 * the explorer's heap, when pools are direct (then leaks and uses after free show), or from
 * caches that were warmed before (then blocks are used again at once).
 *
 * Every message carries a number; kernel_end() checks that each one sent was delivered or became
 * a dead letter, exactly once, and was dropped exactly once, and that no memory is left over.
 */

#include "core/guardian.h"
#include "core/mailbox.h"
#include "core/registry.h"
#include "core/send.h"
#include "core/spawn.h"
#include "core/system.h"
#include "core/terminate.h"
#include "core/turn.h"
#include "sim/explore.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KERNEL_WORKERS_MAX = 3,
    KERNEL_LOCALS = 3, /* outside locals that get blocks: those of the first threads */
    KERNEL_MESSAGES_MAX = 8,
    KERNEL_CLASSES = 4, /* size classes of the pool that are used */
    ARENA_SIZE = 1024 * 1024,
    EXTENTS_MAX = 64,
    SMALL_EXTENT = 1024,
    CHECK_EVERY = 4096 /* schedules between looks at the whole arena */
};

typedef struct kernel_config {
    uint32_t workers;
    uint32_t throughput;
    bool direct;
    uint32_t replay; /* events kept; 0: none */
    bool is_whole;   /* /system and the others run, too */
} kernel_config;

/* What the harness counts; zeroed by kernel_start(). */
typedef struct kernel_state {
    fk_system *sys;
    fk_time now;
    uint32_t threads; /* sender threads that have not returned */
    uint32_t awake;   /* workers that do not wait */
    uint32_t sending; /* threads inside of kernel_send() */
    fk_half barrier;  /* see kernel_barrier() */
    fk_reporting reporting[FK_MACHINE_THREADS_MAX];
    bool woken[KERNEL_WORKERS_MAX];
    uint32_t events; /* deliveries and dead letters */
    uint32_t sent[KERNEL_MESSAGES_MAX];
    uint32_t delivered[KERNEL_MESSAGES_MAX];
    uint32_t dead[KERNEL_MESSAGES_MAX];
    uint32_t cancelled[KERNEL_MESSAGES_MAX]; /* of timers that were ended by the harness */
    uint32_t dropped[KERNEL_MESSAGES_MAX];
} kernel_state;

static kernel_state the_kernel;

/* ---- the arena --------------------------------------------------------------------------- */

typedef struct extent {
    size_t at;
    size_t size;
    size_t used;   /* without what is zero at the end */
    bool is_loose; /* blocks of messages: behind `used` there are only some that were never used */
} extent;

static struct {
    const kernel_config *config;
    bool is_open;
    size_t used;
    uint64_t starts;
    uint32_t extents;
    extent extent[EXTENTS_MAX];
    fk_system *sys;
} the_arena;

static _Alignas(65536) unsigned char arena_memory[ARENA_SIZE];
static unsigned char arena_image[ARENA_SIZE];

static void kernel_die(const char *what)
{
    fprintf(stderr, "kernel.h: %s\n", what);
    exit(2);
}

static void extent_add(size_t at, size_t size, bool is_loose)
{
    if (the_arena.extents == EXTENTS_MAX) kernel_die("too many extents");
    the_arena.extent[the_arena.extents++] = (extent){ at, size, size, is_loose };
}

static void *arena_alloc(size_t size)
{
    bool is_pages = size % FK_PAGE_SIZE == 0;
    size_t align = is_pages ? FK_PAGE_SIZE : FK_CACHE_LINE;
    size_t at = (the_arena.used + align - 1) & ~(align - 1);
    if (at + size > ARENA_SIZE) kernel_die("arena full");
    the_arena.used = at + size;
    if (!is_pages) extent_add(at, size, false);
    for (size_t i = 0; is_pages && i < size; i += FK_PAGE_SIZE) {
        extent_add(at + i, FK_PAGE_SIZE, true);
    }
    return arena_memory + at;
}

static void arena_save(void)
{
    for (uint32_t i = 0; i < the_arena.extents; i++) {
        extent *e = &the_arena.extent[i];
        if (e->size <= SMALL_EXTENT) continue; /* what is zero now need not stay so */
        while (e->used > 0 && arena_memory[e->at + e->used - 1] == 0) e->used--;
        /* Empty now; no schedule sees more actors end than that. */
        if (e->size == sizeof(fk_obituaries)) e->used = offsetof(fk_obituaries, entry[16]);
    }
    memcpy(arena_image, arena_memory, the_arena.used);
}

static void arena_restore(void)
{
    bool checks = the_arena.starts++ % CHECK_EVERY == 0;
    for (uint32_t i = 0; i < the_arena.extents; i++) {
        const extent *e = &the_arena.extent[i];
        memcpy(arena_memory + e->at, arena_image + e->at, e->used);
        if (!checks || e->is_loose) continue;
        if (memcmp(arena_memory + e->at, arena_image + e->at, e->size) != 0) {
            kernel_die("a schedule changed what is not copied back");
        }
    }
}

static bool arena_has(const void *ptr)
{
    return (size_t)((uintptr_t)ptr - (uintptr_t)arena_memory) < ARENA_SIZE;
}

/* ---- the port ---------------------------------------------------------------------------- */

static void *kernel_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    if (the_arena.is_open && old_size == 0) return arena_alloc(new_size);
    if (old_size != 0 && arena_has(ptr)) return NULL;
    void *got = fk__explore_port_alloc(ctx, ptr, old_size, new_size);
    /* Whoever gets a block writes to it; whoever reads it later needs an order. */
    if (got != NULL && new_size > FK_NODE_HEADER) {
        fk__explore_write((unsigned char *)got + FK_NODE_HEADER);
    }
    return got;
}

static fk_time kernel_now(void *ctx)
{
    (void)ctx;
    return the_kernel.now;
}

static void kernel_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0x5a, len);
}

static void kernel_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    fk__machine_lock(&lock->word);
}

static void kernel_unlock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    fk__machine_unlock(&lock->word);
}

static void kernel_wake(void *ctx, uint32_t worker)
{
    (void)ctx;
    the_kernel.woken[worker] = true;
}

static void kernel_panic(void *ctx, const char *file, int line)
{
    (void)ctx;
    fk__assert_failed(file, line);
}

static void kernel_wait(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout)
{
    (void)ctx;
    (void)timeout;
    fk__machine_wait(word, seen, NULL, NULL);
}

static void kernel_notify(void *ctx, uint32_t *word)
{
    (void)ctx;
    fk__machine_notify(word);
}

/* Each thread has a local of its own, so none is passed over. */
static uint32_t kernel_thread(void *ctx)
{
    (void)ctx;
    uint32_t self = fk__machine_self();
    return self != FK_MACHINE_NOBODY ? self : 0;
}

/* A counter of each thread, as the host has it. */
static fk_reporting *kernel_reporting(void *ctx)
{
    return &the_kernel.reporting[kernel_thread(ctx)];
}

static const fk_port KERNEL_PORT = {
    .align = FK_PAGE_SIZE,
    .alloc = kernel_alloc,
    .now = kernel_now,
    .random = kernel_random,
    .lock = kernel_lock,
    .unlock = kernel_unlock,
    .wake = kernel_wake,
    .panic = kernel_panic,
    .wait = kernel_wait,
    .notify = kernel_notify,
    .thread = kernel_thread,
};

/* ---- messages ---------------------------------------------------------------------------- */

typedef struct numbered {
    uint32_t number;
    uint32_t check; /* ~number */
} numbered;

static const numbered *numbered_of(const void *data)
{
    const numbered *n = data;
    fk__explore_read(data);
    fk__explore_check(n->number < KERNEL_MESSAGES_MAX && n->check == ~n->number,
                      "a message without its contents");
    return n;
}

static void numbered_drop(void *data)
{
    the_kernel.dropped[numbered_of(data)->number]++;
}

static const fk_type NUMBERED = { "numbered", sizeof(numbered), _Alignof(numbered), numbered_drop };

static void kernel_dead_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    fk__explore_check(letter->type == &NUMBERED, "a dead letter that nobody sent");
    the_kernel.events++;
    the_kernel.dead[numbered_of(letter->data)->number]++;
}

/* In receive: the number of a message that has arrived. */
static inline uint32_t kernel_receive(const fk_msg *msg)
{
    uint32_t number = numbered_of(msg->data)->number;
    the_kernel.events++;
    the_kernel.delivered[number]++;
    return number;
}

static inline void kernel_send(fk_ref to, uint32_t number)
{
    numbered message = { number, ~number };
    the_kernel.sent[number]++;
    the_kernel.sending++;
    fk_err err = fk_send(the_kernel.sys, to, (fk_out){ &NUMBERED, &message });
    the_kernel.sending--;
    fk__explore_check(err == FK_OK || err == FK_E_FULL, "a send failed");
}

/* ---- begin and end ----------------------------------------------------------------------- */

/* Gives a cache blocks of each class that messages and timers need. */
static void warm(fk_cache *cache)
{
    for (unsigned c = 0; c < KERNEL_CLASSES; c++) {
        void *block = fk__cache_get(cache, c, FK_SITE("warm"));
        if (block == NULL) kernel_die("no memory");
        fk__cache_put(cache, c, block);
    }
}

/* Of the top of the tree only the root and /user matter here. The rest would only have to be stopped
 * in every order with every schedule. */
static fk_err kernel_boot(const fk_system_config *config, uint32_t workers, fk_system **out)
{
    FK_TRY(fk__system_make(config, &KERNEL_PORT, workers, out));
    FK_TRY(fk__guardian_create(*out, FK_GUARDIAN_USER, NULL, NULL));
    fk__half_init(&(*out)->stopping, FK_SPAWN_OPEN);
    fk__half_init(&(*out)->termination, FK_TERMINATION_RUNNING);
    return FK_OK;
}

static void kernel_make(const kernel_config *config)
{
    memset(arena_memory, 0, sizeof(arena_memory));
    memset(&the_arena, 0, sizeof(the_arena));
    the_arena.is_open = true;
    fk_system_config system_config = { .throughput = config->throughput,
                                       .pools_malloc = config->direct,
                                       .on_dead_letter = kernel_dead_letter,
                                       .events_replay =
                                           config->replay != 0 ? config->replay : FK_REPLAY_NONE };
    fk_system *sys;
    fk_err err = config->is_whole
                     ? fk__system_create(&system_config, &KERNEL_PORT, config->workers, &sys)
                     : kernel_boot(&system_config, config->workers, &sys);
    if (err != FK_OK) kernel_die("no system");
    sys->host.reporting = kernel_reporting;
    for (uint32_t i = 0; !config->direct && i < KERNEL_LOCALS; i++) warm(&sys->outside[i].cache);
    for (uint32_t i = 0; !config->direct && i < config->workers; i++) {
        warm(&sys->dispatch.worker[i]->local.cache);
    }
    the_arena.is_open = false;
    the_arena.config = config;
    the_arena.sys = sys;
    arena_save();
}

/* In setup. `workers` of the threads will call kernel_work(), `threads` kernel_thread_ends(). */
static fk_system *kernel_start(const kernel_config *config, uint32_t workers, uint32_t threads)
{
    memset(&the_kernel, 0, sizeof(the_kernel));
    if (the_arena.config != config)
        kernel_make(config);
    else
        arena_restore();
    fk_system *sys = the_arena.sys;
    the_kernel = (kernel_state){ .sys = sys, .now = 1000, .awake = workers, .threads = threads };
    fk_dispatch *dispatch = &sys->dispatch;
    fk__explore_label(&dispatch->inject, sizeof(fk_word), 1, "inject");
    fk__explore_label(&dispatch->idle, sizeof(fk_half), 1, "idle");
    fk__explore_label(&dispatch->shutdown, sizeof(fk_half), 1, "shutdown");
    for (uint32_t i = 0; i < dispatch->workers && i < KERNEL_WORKERS_MAX; i++) {
        static const char *const NAMES[KERNEL_WORKERS_MAX][5] = {
            { "next0", "bottom0", "top0", "state0", "inbox0" },
            { "next1", "bottom1", "top1", "state1", "inbox1" },
            { "next2", "bottom2", "top2", "state2", "inbox2" },
        };
        const fk_worker *w = dispatch->worker[i];
        fk__explore_label(&w->next, sizeof(fk_word), 1, NAMES[i][0]);
        fk__explore_label(&w->bottom, sizeof(fk_half), 1, NAMES[i][1]);
        fk__explore_label(&w->top, sizeof(fk_half), 1, NAMES[i][2]);
        fk__explore_label(&w->state, sizeof(fk_half), 1, NAMES[i][3]);
        fk__explore_label(&w->inbox, sizeof(fk_word), 1, NAMES[i][4]);
    }
    return sys;
}

static inline void kernel_label(fk_ref ref, const char *tail, const char *system,
                                const char *generation)
{
    const fk_cell *cell = fk__slots_at(&the_kernel.sys->slots, ref.slot);
    fk__explore_label(&cell->tail, sizeof(fk_word), 1, tail);
    fk__explore_label(&cell->system, sizeof(fk_word), 1, system);
    fk__explore_label(&cell->generation, sizeof(fk_half), 1, generation);
}

static inline fk_ref kernel_spawn(fk_local *local, const fk_props *props)
{
    fk_ref ref;
    fk_err err = fk__spawn(local, the_kernel.sys->top.user, FK_STR(""), NULL, props, &ref);
    fk__explore_check(err == FK_OK, "spawn failed");
    return ref;
}

/* Empties the store buffer, as going to sleep and ending a thread do. Without it each store that
 * is left over could reach memory at any later moment at no cost, and the schedules that differ
 * only in that would be the most. */
static inline void kernel_barrier(void)
{
    fk__half_add(&the_kernel.barrier, 1, FK_SEQ_CST);
}

/* A sender thread has done its part. */
static inline void kernel_thread_ends(void)
{
    kernel_barrier();
    the_kernel.threads--;
}

/* ---- workers that do not park ------------------------------------------------------------ */

static bool kernel_has_work(const fk_worker *w)
{
    return fk__word_load(&w->sys->dispatch.inject, FK_RELAXED) != 0 ||
           fk__word_load(&w->inbox, FK_RELAXED) != 0 || fk__word_load(&w->next, FK_RELAXED) != 0 ||
           fk__half_load(&w->bottom, FK_RELAXED) != fk__half_load(&w->top, FK_RELAXED);
}

/* There is something to do, or there never will be. */
static bool kernel_has_news(void *arg)
{
    const fk_worker *w = arg;
    return kernel_has_work(w) || (the_kernel.threads == 0 && the_kernel.awake == 0);
}

static void kernel_turn(fk_worker *worker, fk_cell *cell)
{
    uint32_t before = the_kernel.events;
    worker->done_limit = worker->done + worker->sys->throughput;
    if (!fk__cell_turn(worker, cell)) return;
    /* Some producer stands between exchange and link: let it. */
    if (the_kernel.events == before) fk__cpu_relax();
    fk__ready_push(worker, cell);
}

/* One cell, if there is one: what pick() in dispatch.c does, without counting and sleeping. */
static bool kernel_step(fk_worker *worker)
{
    fk_dispatch *dispatch = &worker->sys->dispatch;
    if (fk__word_load(&worker->inbox, FK_RELAXED) != 0) {
        fk__ready_take_stack(worker, &worker->inbox);
    }
    if (fk__word_load(&dispatch->inject, FK_RELAXED) != 0) {
        fk__ready_take_stack(worker, &dispatch->inject);
    }
    fk_cell *cell = fk__ready_take_next(worker);
    if (cell == NULL) cell = fk__ready_pop(worker);
    if (cell == NULL) return false;
    kernel_turn(worker, cell);
    return true;
}

/* Runs cells until all is quiet. */
static inline void kernel_work(uint32_t id)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[id];
    for (;;) {
        kernel_barrier();
        the_kernel.awake--;
        fk__explore_await(kernel_has_news, worker);
        the_kernel.awake++;
        if (!kernel_has_work(worker)) break;
        kernel_step(worker);
    }
    the_kernel.awake--;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* In setup or finish, alone: runs what is left on the first worker. */
static inline void kernel_settle(void)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[0];
    while (kernel_has_work(worker)) kernel_step(worker);
}

/* In finish: stops what is alive, if asked to, and checks that everything is accounted for. */
static inline void kernel_end(bool stop)
{
    fk_system *sys = the_kernel.sys;
    if (stop) {
        kernel_settle();
        fk__system_check(sys);
        fk_terminate_now(sys);
        kernel_settle();
        fk__explore_check(fk__system_is_down(sys), "the system does not stop");
    }
    fk__system_destroy(sys);
    for (uint32_t i = 0; i < KERNEL_MESSAGES_MAX; i++) {
        uint32_t ends = the_kernel.delivered[i] + the_kernel.dead[i] + the_kernel.cancelled[i];
        fk__explore_check(ends >= the_kernel.sent[i], "lost message");
        fk__explore_check(ends <= the_kernel.sent[i], "doubled message");
        fk__explore_check(the_kernel.dropped[i] == the_kernel.sent[i], "contents dropped wrongly");
    }
}

/* A row of a program's harnesses; their state is the_world. */
#define KERNEL_HARNESS(NAME, THREADS, SETUP, THREAD, FINISH)                                       \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .setup = SETUP, .thread = THREAD, .finish = FINISH,      \
        .state = &the_world, .state_size = sizeof(the_world)                                       \
    }

#endif /* TESTS_EXPLORER_KERNEL_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of functions that a simulated system calls. */

#include "base/base.h"
#include "sim/quarantine.h"
#include "sim/sometimes.h"
#include "sim/world_state.h"

static fk_world *const w = &fk__world;

enum { BLOCKS_MAX = 60000 }; /* of 65536 that the quarantine can tell apart */

/* ---- chance and time --------------------------------------------------------------------- */

uint32_t fk__world_below(uint32_t end)
{
    return fk__rng_below(&w->chance, end);
}

bool fk__world_one_in(uint32_t n)
{
    return n != 0 && fk__rng_below(&w->chance, n) == 0;
}

fk_time fk__world_now(void)
{
    return w->now;
}

void fk__world_pass(fk_time time)
{
    w->now += time;
}

void fk__world_yield(void)
{
    (void)fk__half_load(&w->yields, FK_ACQUIRE);
}

void fk__world_fence(void)
{
    (void)fk__half_add(&w->yields, 1, FK_SEQ_CST);
}

static void world_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    unsigned char *at = buf;
    for (size_t i = 0; i < len; i++) at[i] = (unsigned char)(fk__rng_next(&w->chance) >> 56);
}

static fk_time world_now(void *ctx)
{
    (void)ctx;
    if (w->swarm.clock_ns != 0) w->now += fk__world_below((uint32_t)w->swarm.clock_ns);
    return w->now;
}

static fk_time world_wall(void *ctx)
{
    (void)ctx;
    return w->now + FK_SECONDS(1700000000);
}

/* ---- memory ------------------------------------------------------------------------------ */

void fk__world_set_faults(bool on)
{
    w->has_faults = on;
}

void fk__world_set_limit(size_t bytes)
{
    w->bytes_limit = bytes;
}

size_t fk__world_bytes(void)
{
    return w->bytes;
}

void fk__world_own(uint8_t owner)
{
    fk__quarantine_own(owner);
}

void fk__world_abandon(uint8_t owner)
{
    w->bytes -= fk__quarantine_abandon(owner);
}

static void *world_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (old_size == 0) {
        w->bytes += new_size;
        if (w->bytes_limit != 0 && w->bytes > w->bytes_limit) {
            fk__world_fail("A13", "%zu bytes, the limit is %zu", w->bytes, w->bytes_limit);
        }
        if (++w->blocks == BLOCKS_MAX) fk__world_fail("A5", "livelock: allocates without end");
        return fk__quarantine_alloc(new_size);
    }
    if (new_size != 0) fk__world_fail("memory", "the kernel resized a block");
    fk__machine_discard(ptr, old_size);
    const char *wrong = fk__quarantine_free(ptr, old_size);
    if (wrong != NULL) fk__world_fail("memory", "%s", wrong);
    w->bytes -= old_size;
    return NULL;
}

static bool world_admit(void *ctx, const fk_site *site, size_t size)
{
    (void)ctx;
    (void)site;
    (void)size;
    if (!w->has_faults || !fk__world_one_in(w->swarm.fail_in)) return true;
    FK_SOMETIMES_HIT(ALLOCATION_FAILED);
    return false;
}

/* ---- locks and sleep --------------------------------------------------------------------- */

static void world_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    fk__machine_lock(&lock->word);
}

static void world_unlock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    fk__machine_unlock(&lock->word);
}

static bool is_late(void *arg)
{
    const fk_strand *strand = arg;
    if (w->now >= strand->deadline) return true;
    return strand->input != NULL && strand->input(strand->input_arg) <= w->now;
}

static void world_wait(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout)
{
    (void)ctx;
    fk_strand *strand = &w->strand[fk__machine_self()];
    if (fk__world_one_in(w->swarm.spurious_in)) {
        FK_SOMETIMES_HIT(SPURIOUS_WAKE);
        fk__world_yield();
        return;
    }
    strand->deadline = fk__time_add(w->now, timeout);
    strand->state = FK_STRAND_ASLEEP;
    strand->sleeps++;
    fk__machine_wait(word, seen, is_late, strand);
    strand->state = FK_STRAND_ACTIVE;
}

static void world_notify(void *ctx, uint32_t *word)
{
    (void)ctx;
    fk__machine_notify(word);
}

void fk__world_sleep(fk_time time)
{
    world_wait(NULL, (uint32_t *)(void *)&w->naps, fk__half_load(&w->naps, FK_RELAXED), time);
}

void fk__world_end_jumps(void)
{
    w->swarm.jump_in = 0;
}

uint32_t fk__world_sleeps(void)
{
    return w->strand[fk__machine_self()].sleeps;
}

uint32_t fk__world_word(uint32_t worker)
{
    return fk__half_load(&w->word[worker], FK_ACQUIRE);
}

void fk__world_worker_wait(uint32_t worker, uint32_t seen, fk_time timeout)
{
    world_wait(NULL, (uint32_t *)(void *)&w->word[worker], seen, timeout);
}

void fk__world_worker_wake(void *ctx, uint32_t worker)
{
    (void)ctx;
    fk__half_add(&w->word[worker], 1, FK_ACQ_REL); /* pairs with the load in fk__world_word */
    fk__machine_notify((uint32_t *)(void *)&w->word[worker]);
}

void fk__world_worker_wait_input(uint32_t worker, uint32_t seen, fk_time timeout,
                                 fk_time (*input)(void *arg), void *arg)
{
    fk_strand *strand = &w->strand[fk__machine_self()];
    strand->input = input;
    strand->input_arg = arg;
    world_wait(NULL, (uint32_t *)(void *)&w->word[worker], seen, timeout);
    strand->input = NULL;
}

static uint32_t world_thread(void *ctx)
{
    (void)ctx;
    uint32_t self = fk__machine_self();
    return self == FK_MACHINE_NOBODY ? 0 : self;
}

static void world_panic(void *ctx, const char *file, int line)
{
    (void)ctx;
    fk__world_assert_failed(file, line);
}

fk_port fk__world_port(void)
{
    return (fk_port){
        .size = sizeof(fk_port),
        .alloc = world_alloc,
        .now = world_now,
        .wall = world_wall,
        .random = world_random,
        .lock = world_lock,
        .unlock = world_unlock,
        .wake = fk__world_worker_wake,
        .panic = world_panic,
        .wait = world_wait,
        .notify = world_notify,
        .thread = world_thread,
        .admit = world_admit,
    };
}

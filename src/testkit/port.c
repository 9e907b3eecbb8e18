/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The port of a simulation: nothing here depends on anything but the seed and the test. The clock
 * moves when the driver says so, chance is a generator, locks are assertions that there is one
 * thread, and each allocation can be made to fail. Waiting means to let the simulation run.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "testkit/sim.h"

/* ---- memory ------------------------------------------------------------------------------ */

void *fk__sim_alloc(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL) abort();
    return memory;
}

static void *port_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    fk_sim *sim = ctx;
    fk_sim_memory *memory = &sim->memory;
    if (new_size == 0) {
        fk_sim_block *block = (fk_sim_block *)ptr - 1;
        FK_ASSERT(block->size == old_size);
        block->next->prev = block->prev;
        block->prev->next = block->next;
        memory->bytes -= old_size;
        free(block);
        return NULL;
    }
    fk_sim_block *block = malloc(sizeof(fk_sim_block) + new_size);
    if (block == NULL) return NULL;
    *block = (fk_sim_block){ &memory->all, memory->all.prev, memory->site, new_size };
    block->prev->next = block;
    memory->all.prev = block;
    memory->bytes += new_size;
    return block + 1;
}

static bool is_refused(const fk_sim_memory *memory, const fk_site *site)
{
    if (memory->fail_site != NULL && strcmp(memory->fail_site, site->what) == 0) return true;
    if (memory->fail_at == 0) return false;
    return memory->asked == memory->fail_at ||
           (memory->fail_stays && memory->asked > memory->fail_at);
}

static bool port_admit(void *ctx, const fk_site *site, size_t size)
{
    fk_sim *sim = ctx;
    fk_sim_memory *memory = &sim->memory;
    memory->site = site;
    if (sim->is_reporting) return true; /* what a report needs is none of the test's */
    memory->asked++;
    if (!is_refused(memory, site)) return true;
    memory->refused++;
    fk_moment moment = { .kind = FK_MOMENT_FAULT };
    snprintf(moment.text, sizeof(moment.text), "no memory for %s (%zu bytes)", site->what, size);
    fk__sim_record(sim, &moment);
    return false;
}

/* ---- time and chance --------------------------------------------------------------------- */

static fk_time port_now(void *ctx)
{
    const fk_sim *sim = ctx;
    return sim->now;
}

/* One a nanosecond. */
static uint64_t port_cycles(void *ctx)
{
    const fk_sim *sim = ctx;
    return (uint64_t)sim->now;
}

/* For people: the simulation begins with the year 2000. */
static fk_time port_wall(void *ctx)
{
    const fk_sim *sim = ctx;
    return FK_SECONDS(946684800) + (sim->now - sim->began);
}

fk_time fk__sim_tick_end(fk_time at)
{
    const fk_time tick = (fk_time)1 << FK_TICK_SHIFT;
    return at > FK_NEVER - tick ? FK_NEVER : (at + tick - 1) / tick * tick;
}

uint64_t fk__sim_draw(fk_sim *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    return fk__mix64(sim->random);
}

uint32_t fk__sim_below(fk_sim *sim, uint32_t n)
{
    return n <= 1 ? 0 : (uint32_t)((fk__sim_draw(sim) >> 32) * n >> 32);
}

static void port_random(void *ctx, void *buf, size_t len)
{
    unsigned char *at = buf;
    for (size_t i = 0; i < len; i++) at[i] = (unsigned char)(fk__sim_draw(ctx) >> 56);
}

/* ---- one thread -------------------------------------------------------------------------- */

static void port_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    FK_ASSERT(lock->word == 0);
    lock->word = 1;
}

static void port_unlock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    FK_ASSERT(lock->word == 1);
    lock->word = 0;
}

static void port_wake(void *ctx, uint32_t worker)
{
    (void)ctx; /* the driver looks for itself */
    (void)worker;
}

/* As many outside threads as there are: uids must not depend on where the stack is. */
static uint32_t port_thread(void *ctx)
{
    (void)ctx;
    return 0;
}

typedef struct word_wait {
    const uint32_t *word;
    uint32_t seen;
} word_wait;

static bool word_has_changed(void *arg)
{
    const word_wait *wait = arg;
    return *(const volatile uint32_t *)wait->word != wait->seen;
}

/* A wait that nothing can ever end would hang the test: better that it says so. */
static void port_wait(void *ctx, uint32_t *word, uint32_t seen, fk_time timeout)
{
    fk_sim *sim = ctx;
    word_wait wait = { word, seen };
    FK_ASSERT(!sim->is_inside);
    if (fk__sim_drive(sim, word_has_changed, &wait, fk__sim_deadline(sim, timeout))) return;
    if (timeout != FK_NEVER) return;
    fk__sim_fail(sim, "what the test waits for", "nothing is left to happen, and it has not");
    abort();
}

static void port_notify(void *ctx, uint32_t *word)
{
    (void)ctx;
    (void)word;
}

void fk__sim_port_init(fk_sim *sim)
{
    fk_sim_block *all = &sim->memory.all;
    all->next = all->prev = all;
    sim->random = sim->seed;
    sim->now = sim->began = fk__sim_tick_end(FK_SECONDS(1000));
    sim->port = fk_host_port(); /* for its panic */
    sim->port.ctx = sim;
    sim->port.align = 16;
    sim->port.alloc = port_alloc;
    sim->port.admit = port_admit;
    sim->port.now = port_now;
    sim->port.wall = port_wall;
    sim->port.random = port_random;
    sim->port.lock = port_lock;
    sim->port.unlock = port_unlock;
    sim->port.wake = port_wake;
    sim->port.wait = port_wait;
    sim->port.notify = port_notify;
    sim->port.thread = port_thread;
    sim->port.cycles = port_cycles;
}

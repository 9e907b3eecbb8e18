/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H12: the end of a system. One thread asks everything to stop, waits until the last actor is
 * gone, and shuts the workers down, as fk_system_stop() does; another one still sends. Every
 * worker leaves fk__worker_run for good, nobody waits for ever, and what nobody ran any more is
 * accounted for when the system is destroyed.
 */

#include "explorer/kernel.h"

typedef struct world {
    fk_ref actor;
    bool poisons;
    uint32_t exits;
    uint32_t owner;
} world;

static world the_world;

static const kernel_config ONE = { .workers = 1, .direct = true };
static const kernel_config TWO = { .workers = 2 };

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    fk__explore_write(&w->owner);
    kernel_receive(msg);
    return FK_OK;
}

static void start(world *w, const kernel_config *config)
{
    fk_system *sys = kernel_start(config, config->workers, 2);
    fk_props props = { .receive = receive, .state = w };
    w->actor = kernel_spawn(&sys->outside[0], &props);
    kernel_label(w->actor, "tail", "system", "generation");
    fk__explore_label(&sys->top.root->tail, sizeof(fk_word), 1, "root.tail");
    fk__explore_label(&sys->top.root->system, sizeof(fk_word), 1, "root.system");
    fk__explore_label(&sys->top.root->generation, sizeof(fk_half), 1, "root.generation");
}

static void setup_1(void *state)
{
    start(state, &ONE);
}

static void setup_2(void *state)
{
    start(state, &TWO);
}

static void setup_poison(void *state)
{
    world *w = state;
    start(w, &ONE);
    w->poisons = true;
}

static bool is_woken(void *arg)
{
    const fk_worker *worker = arg;
    return the_kernel.woken[worker->id];
}

/* A host's thread. No sleep ends by itself. */
static void work(world *w, uint32_t id)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[id];
    for (;;) {
        uint32_t before = the_kernel.events;
        fk_time wait = fk__worker_run(worker, 1);
        if (wait == FK_WORKER_EXIT) break;
        if (wait == 0) {
            if (the_kernel.events == before) fk__cpu_relax();
            continue;
        }
        fk__explore_await(is_woken, worker);
        the_kernel.woken[id] = false;
    }
    kernel_barrier();
    w->exits++;
}

static bool is_down(void *arg)
{
    return fk__system_is_down(arg);
}

static void thread(void *state, uint32_t id)
{
    world *w = state;
    fk_system *sys = the_kernel.sys;
    if (id == 0) {
        fk_terminate_now(sys);
        kernel_barrier(); /* it would sleep here */
        fk__explore_await(is_down, sys);
        fk__dispatch_shutdown(sys);
        kernel_thread_ends();
    } else if (id == 1) {
        if (w->poisons)
            (void)fk_poison(sys, w->actor);
        else
            kernel_send(w->actor, 0);
        kernel_send(w->actor, 1);
        kernel_thread_ends();
    } else {
        work(w, id - 2);
    }
}

static void finish(void *state)
{
    const world *w = state;
    fk_system *sys = the_kernel.sys;
    fk__explore_check(w->exits == sys->dispatch.workers, "a worker did not exit");
    fk__explore_check((sys->dispatch.idle.v & FK_IDLE_PARKED) == 0, "idle counts wrongly");
    fk__explore_check(fk__system_is_down(sys), "not down");
    kernel_end(false);
}

#define HARNESS(NAME, THREADS, BOUND, SETUP)                                                       \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .bound_max = BOUND, .setup = SETUP, .thread = thread,    \
        .finish = finish, .state = &the_world, .state_size = sizeof(the_world)                     \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("shutdown", 3, 0, setup_1),
    HARNESS("shutdown-2-workers", 4, 1, setup_2),
    HARNESS("shutdown-poison", 3, 1, setup_poison),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "shutdown", FK_MUTATION_PARK_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

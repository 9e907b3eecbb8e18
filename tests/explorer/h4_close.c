/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H4: an actor ends while others send to it. Each message is delivered before the end or is a
 * dead letter, exactly once; none is lost, none doubled, none leaked. The actor, its parent and
 * the end are the kernel's own; two senders race with it from outside.
 *
 * "overtaken" sends after asking for the stop, from the same thread: that message must not be
 * delivered (system messages first).
 */

#include "explorer/kernel.h"

typedef struct world {
    fk_ref actor;
    bool stops_itself;
    bool is_short;  /* fewer messages, for more workers */
    uint32_t owner; /* what only the runner of the actor touches */
    uint32_t stops;
} world;

static world the_world;

static const kernel_config POOLED = { .workers = 1 };
static const kernel_config POOLED_2 = { .workers = 2 };
static const kernel_config DIRECT = { .workers = 1, .direct = true };

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    fk__explore_write(&w->owner);
    fk__explore_check(w->stops == 0, "received after the end");
    if (kernel_receive(msg) == 0 && w->stops_itself) fk_stop_self(ctx);
    return FK_OK;
}

static void stopped(fk_ctx *ctx, void *state)
{
    world *w = state;
    (void)ctx;
    fk__explore_write(&w->owner);
    fk__explore_check(++w->stops == 1, "stopped twice");
}

static void start(world *w, const kernel_config *config, uint32_t workers, uint32_t threads)
{
    fk_system *sys = kernel_start(config, workers, threads);
    fk_props props = { .receive = receive, .stop = stopped, .state = w };
    w->actor = kernel_spawn(&sys->outside[0], &props);
    kernel_label(w->actor, "tail", "system", "generation");
}

static void setup_pooled(void *state)
{
    start(state, &POOLED, 1, 2);
}

static void setup_direct(void *state)
{
    start(state, &DIRECT, 1, 2);
}

static void setup_2(void *state)
{
    world *w = state;
    start(w, &POOLED_2, 2, 2);
    w->is_short = true;
}

static void setup_self(void *state)
{
    world *w = state;
    start(w, &POOLED, 1, 2);
    w->stops_itself = true;
}

/* Thread 0 sends and asks for the end, thread 1 sends twice; the others are workers. */
static void thread(void *state, uint32_t id)
{
    world *w = state;
    fk_system *sys = the_kernel.sys;
    if (id >= 2) {
        kernel_work(id - 2);
        return;
    }
    if (id == 0) {
        if (!w->is_short) kernel_send(w->actor, 0);
        if (!w->stops_itself) {
            (void)fk_stop(sys, w->actor);
        }
    } else {
        kernel_send(w->actor, 1);
        if (!w->is_short) kernel_send(w->actor, 2);
    }
    kernel_thread_ends();
}

static void overtaken_thread(void *state, uint32_t id)
{
    world *w = state;
    fk_system *sys = the_kernel.sys;
    if (id == 2) {
        kernel_work(0);
        return;
    }
    if (id == 0) {
        (void)fk_stop(sys, w->actor);
        kernel_send(w->actor, 3);
    } else {
        kernel_send(w->actor, 1);
    }
    kernel_thread_ends();
}

static void finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->stops == 1, "the actor has not stopped");
    fk__explore_check(the_kernel.delivered[3] == 0, "a message overtook the stop before it");
    kernel_end(true);
}

#define HARNESS(NAME, THREADS, SETUP, THREAD)                                                      \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .setup = SETUP, .thread = THREAD, .finish = finish,      \
        .state = &the_world, .state_size = sizeof(the_world)                                       \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("close", 3, setup_pooled, thread),
    HARNESS("close-direct", 3, setup_direct, thread),
    HARNESS("close-self", 3, setup_self, thread),
    HARNESS("close-2-workers", 4, setup_2, thread),
    HARNESS("overtaken", 3, setup_pooled, overtaken_thread),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "close", FK_MUTATION_IDLE_CAS, NULL, FK_MEMORY_SC, true, NULL },
    { "close", FK_MUTATION_IDLE_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "overtaken", FK_MUTATION_SYSTEM_FIRST, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

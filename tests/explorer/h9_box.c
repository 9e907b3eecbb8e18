/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H9: bounded mailboxes. With nobody to empty it, a box of one takes one message of two senders;
 * a sender that blocks sleeps until there is room and is woken when there is, or when the actor
 * ends; the actor hears of the first message in an empty box.
 */

#include "explorer/kernel.h"

typedef struct world {
    fk_ref actor;
    bool stops;
    uint32_t owner;
} world;

static world the_world;

static const kernel_config ONE = { .workers = 1, .direct = true };

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    fk__explore_write(&w->owner);
    kernel_receive(msg);
    return FK_OK;
}

static void start(world *w, fk_overflow overflow, uint32_t workers, uint32_t threads)
{
    fk_system *sys = kernel_start(&ONE, workers, threads);
    fk_props props = { .receive = receive,
                       .state = w,
                       .mailbox = FK_MAILBOX_BOUNDED,
                       .overflow = overflow,
                       .capacity = 1 };
    w->actor = kernel_spawn(&sys->outside[0], &props);
    kernel_label(w->actor, "tail", "system", "generation");
}

/* ---- two senders, one place -------------------------------------------------------------- */

static void full_setup(void *state)
{
    start(state, FK_OVERFLOW_FAIL, 0, 2);
}

static void full_thread(void *state, uint32_t id)
{
    const world *w = state;
    kernel_send(w->actor, id);
    kernel_thread_ends();
}

static void full_finish(void *state)
{
    (void)state;
    fk__explore_check(the_kernel.dead[0] + the_kernel.dead[1] == 1, "a full box took a message");
    kernel_end(true);
}

/* ---- senders that block ------------------------------------------------------------------ */

static void block_setup(void *state)
{
    start(state, FK_OVERFLOW_BLOCK, 1, 2);
}

static void block_stop_setup(void *state)
{
    world *w = state;
    start(w, FK_OVERFLOW_BLOCK, 1, 2);
    w->stops = true;
}

static void block_thread(void *state, uint32_t id)
{
    const world *w = state;
    if (id == 2) {
        kernel_work(0);
        return;
    }
    if (id == 1 && w->stops)
        (void)fk_stop(the_kernel.sys, w->actor);
    else
        kernel_send(w->actor, id);
    if (id == 0 && w->stops) kernel_send(w->actor, 2);
    kernel_thread_ends();
}

static void block_finish(void *state)
{
    const world *w = state;
    for (uint32_t i = 0; i < 3; i++) {
        fk__explore_check(w->stops || the_kernel.dead[i] == 0, "a sender did not wait");
    }
    kernel_end(true);
}

#define HARNESS(NAME, THREADS, SETUP, PART)                                                        \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .setup = SETUP, .thread = PART##_thread,                 \
        .finish = PART##_finish, .state = &the_world, .state_size = sizeof(the_world)              \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("box-full", 2, full_setup, full),
    HARNESS("box-block", 3, block_setup, block),
    HARNESS("box-block-stop", 3, block_stop_setup, block),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "box-full", FK_MUTATION_CAPACITY, NULL, FK_MEMORY_SC, true, "a full box took a message" },
    { "box-block", FK_MUTATION_IDLE_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H7: a slot gets a new tenant while senders still hold the old one's ref. The old actor stops,
 * its parent frees the slot, and the worker that ran the parent spawns another actor, which gets
 * the same slot if its token can be claimed, and sends to it. Meanwhile a thread sends to the old ref,
 * stops it, or both. The new actor never sees the old one's mail and is not stopped in its place;
 * every message ends once. Blocks come from magazines and are used again at once, so a node that
 * is still linked somewhere shows.
 *
 * The bounded variants do the same with mailboxes whose boxes are recycled, too.
 */

#include "explorer/kernel.h"

enum { OLD, OLD_AGAIN, NEW };

typedef struct world {
    fk_ref old;
    fk_ref new;
    fk_props props_old;
    fk_props props_new;
    bool sends;
    bool stops;
    bool spawned;
    uint32_t owner; /* what only the runner of the slot touches */
} world;

static world the_world;

static const kernel_config ONE = { .workers = 1 };
static const kernel_config TWO = { .workers = 2 };
static const kernel_config DIRECT = { .workers = 2, .direct = true };

static fk_err old_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    fk__explore_write(&w->owner);
    fk__explore_check(kernel_receive(msg) <= OLD_AGAIN, "the old actor got the new one's mail");
    return FK_OK;
}

static fk_err new_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    fk__explore_write(&w->owner);
    fk__explore_check(kernel_receive(msg) >= NEW, "the new actor got the old one's mail");
    return FK_OK;
}

static void start(world *w, const kernel_config *config, uint32_t workers)
{
    fk_system *sys = kernel_start(config, workers, 1);
    w->props_old.receive = old_receive;
    w->props_old.state = w;
    w->props_new.receive = new_receive;
    w->props_new.state = w;
    w->old = kernel_spawn(&sys->outside[0], &w->props_old);
    /* The new kind is known to the workers, so that spawning needs no lock for that. */
    for (uint32_t i = 0; i < workers; i++) {
        const fk_props *interned;
        fk_err err = fk__props_intern(&sys->dispatch.worker[i]->local, &w->props_new, &interned);
        fk__explore_check(err == FK_OK, "no props");
    }
    kernel_label(w->old, "tail", "system", "generation");
    /* The stop is on its way already. */
    fk__explore_check(fk_stop(sys, w->old) == FK_OK, "stop");
}

static void mail_setup(void *state)
{
    world *w = state;
    start(w, &TWO, 2);
    w->sends = true;
}

static void mail_direct_setup(void *state)
{
    world *w = state;
    start(w, &DIRECT, 2);
    w->sends = true;
}

static void stop_setup(void *state)
{
    world *w = state;
    start(w, &ONE, 1);
    w->stops = true;
}

static void both_setup(void *state)
{
    world *w = state;
    start(w, &ONE, 1);
    w->sends = w->stops = true;
}

static void box_setup(void *state)
{
    world *w = state;
    w->props_old = (fk_props){ .mailbox = FK_MAILBOX_BOUNDED, .capacity = 1 };
    w->props_new = w->props_old;
    start(w, &ONE, 1);
    w->sends = true;
}

/* A worker that spawns as soon as it has the old actor's slot in its list. */
static void work(world *w, uint32_t id)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[id];
    const fk_cell *cell = fk__slots_at(&the_kernel.sys->slots, w->old.slot);
    for (;;) {
        kernel_barrier();
        the_kernel.awake--;
        fk__explore_await(kernel_has_news, worker);
        the_kernel.awake++;
        if (!kernel_has_work(worker)) break;
        kernel_step(worker);
        if (w->spawned || worker->local.cells_free != cell) continue;
        w->spawned = true;
        w->new = kernel_spawn(&worker->local, &w->props_new);
        kernel_send(w->new, NEW);
    }
    the_kernel.awake--;
}

static void thread(void *state, uint32_t id)
{
    world *w = state;
    if (id == 0) {
        if (w->sends) kernel_send(w->old, OLD);
        if (w->stops) (void)fk_stop(the_kernel.sys, w->old);
        if (w->sends && !w->stops) kernel_send(w->old, OLD_AGAIN);
        kernel_thread_ends();
        return;
    }
    work(w, id - 1);
}

static void finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->spawned, "no new actor");
    fk__explore_check(fk_is_alive(the_kernel.sys, w->new), "the new actor was stopped");
    fk__explore_check(!fk_is_alive(the_kernel.sys, w->old), "the old actor lives");
    fk__explore_check(the_kernel.delivered[NEW] == 1, "the new actor's message was lost");
    kernel_end(true);
}

#define HARNESS(NAME, THREADS, SETUP)                                                              \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .setup = SETUP, .thread = thread, .finish = finish,      \
        .state = &the_world, .state_size = sizeof(the_world)                                       \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("reuse", 3, mail_setup),      HARNESS("reuse-direct", 3, mail_direct_setup),
    HARNESS("reuse-stop", 2, stop_setup), HARNESS("reuse-both", 2, both_setup),
    HARNESS("reuse-box", 2, box_setup),   { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "reuse", FK_MUTATION_STALE_CHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "reuse-both", FK_MUTATION_STALE_CHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "reuse", FK_MUTATION_CLAIM, NULL, FK_MEMORY_SC, true, NULL },
    { "reuse-stop", FK_MUTATION_STOP_GENERATION, NULL, FK_MEMORY_SC, true, NULL },
    { "reuse-box", FK_MUTATION_BOX_OWNER, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

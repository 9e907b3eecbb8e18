/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H8: a timer is cancelled, started again, or ended with its actor while another worker runs the
 * wheel it is in. A cancelled timer's message does not arrive, not even when it is in the mailbox
 * already; the new timer under an old key fires at its own time and not at the old one's; each
 * record and each node is freed once.
 */

#include "explorer/kernel.h"

#include "core/timer.h"

enum { START, FIRST, COMMAND, SECOND, KEY = 7 };

static const fk_time MS = 1000000;

typedef enum deed { CANCEL, RESTART, STOP } deed;

typedef struct world {
    fk_ref actor;
    deed deed;
    bool both;     /* the wheel's owner runs it at the same time */
    bool is_ended; /* the first timer */
    fk_time due;   /* of the second */
    uint32_t owner;
} world;

static world the_world;

static const kernel_config DIRECT = { .workers = 2, .direct = true };

static void timer_start(fk_ctx *ctx, uint32_t number, fk_time period)
{
    numbered message = { number, ~number };
    the_kernel.sent[number]++;
    fk_err err = fk_timer_start(ctx, KEY, FK_TIMER_ONCE, period, (fk_out){ &NUMBERED, &message });
    fk__explore_check(err == FK_OK, "no timer");
}

static void command(fk_ctx *ctx, world *w)
{
    if (fk_timer_is_active(ctx, KEY)) the_kernel.cancelled[FIRST]++;
    w->is_ended = true;
    if (w->deed == CANCEL) {
        (void)fk_timer_cancel(ctx, KEY);
    } else if (w->deed == RESTART) {
        w->due = fk_now(ctx) + 50 * MS;
        timer_start(ctx, SECOND, 50 * MS);
    } else {
        fk_stop_self(ctx);
    }
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    fk__explore_write(&w->owner);
    switch (kernel_receive(msg)) {
    case START: timer_start(ctx, FIRST, 2 * MS); break;
    case FIRST: fk__explore_check(!w->is_ended, "a cancelled timer's message arrived"); break;
    case COMMAND: command(ctx, w); break;
    case SECOND: fk__explore_check(fk_now(ctx) >= w->due, "a timer fired early"); break;
    default: fk__explore_check(false, "an unknown message");
    }
    return FK_OK;
}

static void start(world *w, deed what, bool both)
{
    fk_system *sys = kernel_start(&DIRECT, 2, both ? 2 : 1);
    fk_props props = { .receive = receive, .state = w };
    w->deed = what;
    w->both = both;
    w->actor = kernel_spawn(&sys->outside[0], &props);
    kernel_send(w->actor, START);
    kernel_settle(); /* on worker 0, so the timer is in its wheel */
    kernel_send(w->actor, COMMAND);
    the_kernel.now += 10 * MS;
    for (uint32_t i = 0; i < 2; i++) sys->dispatch.worker[i]->now = the_kernel.now;
    kernel_label(w->actor, "tail", "system", "generation");
    fk__explore_label(&sys->dispatch.worker[0]->wheel_lock, sizeof(fk_lock), 1, "wheel_lock");
}

static void cancel_setup(void *state)
{
    start(state, CANCEL, false);
}

static void cancel_both_setup(void *state)
{
    start(state, CANCEL, true);
}

static void restart_setup(void *state)
{
    start(state, RESTART, false);
}

static void stop_setup(void *state)
{
    start(state, STOP, false);
}

/* Worker 0 owns the wheel, worker 1 finds it late. */
static void thread(void *state, uint32_t id)
{
    const world *w = state;
    fk_worker **worker = the_kernel.sys->dispatch.worker;
    if (id == 1 || w->both) {
        fk__timers_run(worker[id], worker[0]);
        kernel_thread_ends();
    }
    kernel_work(id);
}

static void finish(void *state)
{
    const world *w = state;
    the_kernel.now += 100 * MS;
    uint64_t left = 0;
    for (uint32_t i = 0; i < 2; i++) { /* the second may be in either wheel */
        fk_worker *worker = the_kernel.sys->dispatch.worker[i];
        worker->now = the_kernel.now;
        fk__timers_run(the_kernel.sys->dispatch.worker[0], worker);
        left += worker->wheel.count;
    }
    kernel_settle();
    fk__explore_check(w->deed != RESTART || the_kernel.delivered[SECOND] == 1,
                      "the second timer did not fire once");
    fk__explore_check(left == 0, "a timer was left in the wheel");
    fk_stats stats;
    fk_stats_get(the_kernel.sys, &stats);
    fk__explore_check(stats.timers == 0, "timers are counted wrongly");
    kernel_end(true);
}

#define HARNESS(NAME, SETUP)                                                                       \
    {                                                                                              \
        .name = NAME, .threads = 2, .setup = SETUP, .thread = thread, .finish = finish,            \
        .state = &the_world, .state_size = sizeof(the_world)                                       \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("timer-cancel", cancel_setup),
    HARNESS("timer-cancel-both", cancel_both_setup),
    HARNESS("timer-restart", restart_setup),
    HARNESS("timer-stop", stop_setup),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "timer-restart", FK_MUTATION_TIMER_SERIAL, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

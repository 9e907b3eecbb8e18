/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H9: the event stream. A callback is not called after unsubscribing has returned, whoever publishes
 * meanwhile, and the way on is there for a walker whose subscriber goes; an event that is kept is
 * replayed to a new subscriber or published to it, once; an actor that ends takes its records with
 * it; the end of the stream waits for those who publish.
 */

#include "explorer/kernel.h"

#include "core/event.h"
#include "fraktor/log.h"

#define CALLED_AFTER "called after unsubscribing"
#define NOT_ONCE     "an event did not come exactly once"

typedef struct world {
    fk_subscription first, second;
    bool is_over; /* the first may be called no more */
    uint32_t data;
    uint32_t calls[2];
    fk_ref actor;
    uint32_t records;
} world;

static world the_world;

static const kernel_config ONE = { .workers = 1, .direct = true };
static const kernel_config KEEPING = { .workers = 1, .direct = true, .replay = 2 };

static void on_first(void *user, const fk_event *event)
{
    world *w = user;
    (void)event;
    fk__explore_check(!w->is_over, CALLED_AFTER);
    fk__explore_read(&w->data);
    w->calls[0]++;
}

static void on_second(void *user, const fk_event *event)
{
    world *w = user;
    (void)event;
    w->calls[1]++;
}

static fk_subscription subscribe(world *w, fk_event_fn fn, fk_topics more)
{
    fk_subscription s = { 0 };
    fk_err err = fk_subscribe(the_kernel.sys, FK_TOPIC_LOG | more, FK_LEVEL_DEBUG, fn, w, &s);
    fk__explore_check(err == FK_OK, "no subscription");
    return s;
}

static void publish(void)
{
    fk_log(the_kernel.sys, FK_LEVEL_WARN, FK_REF_NONE, FK_STR("news"));
}

/* ---- one unsubscribes while another publishes, or two ----------------------------------------- */

static void leave_setup(void *state)
{
    world *w = state;
    kernel_start(&ONE, 0, 0);
    w->first = subscribe(w, on_first, 0);
    w->second = subscribe(w, on_second, 0);
}

static void leave_thread(void *state, uint32_t id)
{
    world *w = state;
    if (id != 1) {
        publish();
    } else {
        fk__explore_check(fk_unsubscribe(the_kernel.sys, w->first) == FK_OK, "not there");
        w->is_over = true;
        fk__explore_write(&w->data); /* what the callback used is the caller's again */
    }
    kernel_barrier();
}

static void leave_finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->calls[1] == 1, NOT_ONCE);
    kernel_end(true);
}

static void leave_two_finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->calls[1] == 2, NOT_ONCE);
    kernel_end(true);
}

/* ---- one subscribes, with replay, while another publishes -------------------------------------- */

static void join_setup(void *state)
{
    (void)state;
    kernel_start(&KEEPING, 0, 0);
    publish();
}

static void join_thread(void *state, uint32_t id)
{
    world *w = state;
    if (id == 0)
        publish();
    else
        w->first = subscribe(w, on_first, FK_TOPIC_REPLAY);
    kernel_barrier();
}

static void join_finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->calls[0] == 2, NOT_ONCE);
    kernel_end(true);
}

/* ---- an actor that subscribed is stopped ------------------------------------------------------- */

static fk_err count_records(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    const fk_event_record *record = FK_AS(fk_event_record, msg);
    fk__explore_check(record != NULL && record->kind == FK_EVENT_LOG, "no record");
    the_kernel.events++;
    w->records++;
    return FK_OK;
}

static void actor_setup(void *state)
{
    world *w = state;
    fk_system *sys = kernel_start(&ONE, 1, 2);
    sys->on_dead_letter = NULL; /* a record may become one */
    w->actor = kernel_spawn(&sys->outside[0], &(fk_props){ .receive = count_records, .state = w });
    fk_err err = fk_subscribe_actor(sys, w->actor, FK_TOPIC_LOG);
    fk__explore_check(err == FK_OK, "no subscription");
}

static void actor_thread(void *state, uint32_t id)
{
    const world *w = state;
    if (id == 2) {
        kernel_work(0);
        return;
    }
    if (id == 0) {
        publish();
    } else {
        (void)fk_stop(the_kernel.sys, w->actor);
        fk__events_forget(the_kernel.sys, w->actor);
    }
    kernel_thread_ends();
}

static void actor_finish(void *state)
{
    const world *w = state;
    fk__explore_check(w->records <= 1, NOT_ONCE);
    fk__explore_check(the_kernel.sys->events.actors.v == 0, "the dead are still subscribed");
    kernel_end(true);
}

/* ---- the stream stops -------------------------------------------------------------------------- */

static void stop_setup(void *state)
{
    world *w = state;
    kernel_start(&KEEPING, 0, 0);
    w->first = subscribe(w, on_first, 0);
}

static void stop_thread(void *state, uint32_t id)
{
    world *w = state;
    if (id == 0) {
        publish();
    } else {
        fk__events_stop(the_kernel.sys);
        w->is_over = true;
        fk__explore_write(&w->data);
    }
    kernel_barrier();
}

static void stop_finish(void *state)
{
    (void)state;
    kernel_end(true);
}

static const fk_harness HARNESSES[] = {
    KERNEL_HARNESS("events-leave", 2, leave_setup, leave_thread, leave_finish),
    KERNEL_HARNESS("events-leave-two", 3, leave_setup, leave_thread, leave_two_finish),
    KERNEL_HARNESS("events-join", 2, join_setup, join_thread, join_finish),
    KERNEL_HARNESS("events-actor", 3, actor_setup, actor_thread, actor_finish),
    KERNEL_HARNESS("events-stop", 2, stop_setup, stop_thread, stop_finish),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "events-leave", FK_MUTATION_UNSUBSCRIBE_WAITS, NULL, FK_MEMORY_SC, true, "data race" },
    { "events-stop", FK_MUTATION_SUBSCRIBER_HELD, NULL, FK_MEMORY_SC, true, NULL },
    { "events-join", FK_MUTATION_REPLAY_ONCE, NULL, FK_MEMORY_SC, true, NOT_ONCE },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

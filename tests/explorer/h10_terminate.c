/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H10: the end of a system, asked for by several threads at once: in order, by force, by stopping a
 * guardian. Each step is made once and none twice, whoever comes first; the farewells are said once,
 * the last one first; nobody can be spawned by who has asked before.
 */

#include "explorer/kernel.h"

#include "core/terminate.h"

#include <string.h>

enum { PHASES = FK_TERMINATION_DOWN + 1 };

typedef struct world {
    uint32_t asks[2]; /* how thread 0 and 1 ask */
    uint32_t reached[PHASES];
    uint32_t came_from[PHASES];
    uint32_t farewells;
    bool is_late;  /* a farewell before the one that was given after it */
    bool is_whole; /* with /system, which conducts the end */
} world;

enum { BY_TERMINATE, BY_FORCE, BY_USER, BY_SYSTEM };

static world the_world;

static const kernel_config HALF = { .workers = 1, .direct = true };
static const kernel_config WHOLE = { .workers = 1, .direct = true, .is_whole = true };

static uint32_t phase_of(const char *name)
{
    static const char *const NAMES[PHASES] = { "booting",   "running",         "stopping_user",
                                               "hooks",     "stopping_system", "stopping_root",
                                               "terminated" };
    uint32_t i = 0;
    while (i < PHASES - 1 && strcmp(NAMES[i], name) != 0) i++;
    return i;
}

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind != FK_EVENT_TERMINATION) return;
    uint32_t from = phase_of(event->from), to = phase_of(event->to);
    fk__explore_check(from < to, "a step back");
    the_world.reached[to]++;
    the_world.came_from[to] = from;
}

static void farewell(void *user, fk_system *sys)
{
    (void)sys;
    uint32_t number = (uint32_t)(uintptr_t)user;
    if (the_world.farewells + number != 1) the_world.is_late = true;
    the_world.farewells++;
}

static void start(world *w, const kernel_config *config, uint32_t first, uint32_t second)
{
    fk_system *sys = kernel_start(config, 1, 2);
    w->asks[0] = first;
    w->asks[1] = second;
    w->is_whole = config->is_whole;
    fk_subscription subscription;
    fk_err subscribed =
        fk_subscribe(sys, FK_TOPIC_TERMINATION, FK_LEVEL_DEBUG, on_event, NULL, &subscription);
    fk__explore_check(subscribed == FK_OK, "no subscription");
    for (uint32_t i = 0; i < 2; i++) {
        fk_err err = fk_on_termination(sys, farewell, (void *)(uintptr_t)i);
        fk__explore_check(err == FK_OK, "no farewell");
    }
    fk__explore_label(&sys->termination, sizeof(fk_half), 1, "termination");
    fk__explore_label(&sys->stopping, sizeof(fk_half), 1, "stopping");
}

static void setup_twice(void *state)
{
    start(state, &WHOLE, BY_TERMINATE, BY_TERMINATE);
}

static void setup_force(void *state)
{
    start(state, &WHOLE, BY_TERMINATE, BY_FORCE);
}

static void setup_stop(void *state)
{
    start(state, &WHOLE, BY_USER, BY_SYSTEM);
}

static void setup_half(void *state)
{
    start(state, &HALF, BY_FORCE, BY_FORCE);
}

static void ask(fk_system *sys, uint32_t how)
{
    if (how == BY_TERMINATE)
        (void)fk_terminate(sys);
    else if (how == BY_FORCE)
        (void)fk_terminate_now(sys);
    else
        (void)fk_stop(sys,
                      fk_guardian(sys, how == BY_USER ? FK_GUARDIAN_USER : FK_GUARDIAN_SYSTEM));
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

static void thread(void *state, uint32_t id)
{
    static const fk_props PROPS = { .receive = receive };
    const world *w = state;
    fk_system *sys = the_kernel.sys;
    if (id == 2) {
        kernel_work(0);
        return;
    }
    fk_ref ref;
    ask(sys, w->asks[id]);
    fk__explore_check(fk_is_terminating(sys), "asked for, and not begun");
    fk__explore_check(fk_spawn(sys, FK_STR(""), &PROPS, &ref) == FK_E_STOPPING,
                      "spawned at the end");
    kernel_thread_ends();
}

static void finish(void *state)
{
    const world *w = state;
    fk_system *sys = the_kernel.sys;
    kernel_settle();
    fk__explore_check(fk__system_is_down(sys), "not down");
    fk__explore_check(w->farewells == 2, "farewells were not said once");
    fk__explore_check(!w->is_late, "farewells out of order");
    uint32_t at = FK_TERMINATION_DOWN, steps = 0, reached = 0;
    for (uint32_t i = FK_TERMINATION_USER; i < PHASES; i++) {
        fk__explore_check(w->reached[i] <= 1, "a step was made twice");
        reached += w->reached[i];
    }
    bool is_forced = w->asks[0] == BY_FORCE || w->asks[1] == BY_FORCE;
    for (; at > FK_TERMINATION_RUNNING; at = w->came_from[at]) {
        /* Force may end the stream before the thread that took the first step has said so. */
        if (is_forced && at == FK_TERMINATION_USER && w->reached[at] == 0) break;
        fk__explore_check(w->reached[at] == 1, "a step from nowhere");
        steps++;
    }
    fk__explore_check(steps == reached, "not one way to the end");
    kernel_end(false);
}

#define HARNESS(NAME, BOUND, SETUP)                                                                \
    {                                                                                              \
        .name = NAME, .threads = 3, .bound_max = BOUND, .setup = SETUP, .thread = thread,          \
        .finish = finish, .state = &the_world, .state_size = sizeof(the_world)                     \
    }

static const fk_harness HARNESSES[] = {
    HARNESS("terminate-twice", 1, setup_twice),
    HARNESS("terminate-and-force", 1, setup_force),
    HARNESS("stop-guardians", 1, setup_stop),
    HARNESS("force-twice", 2, setup_half),
    { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "terminate-twice", FK_MUTATION_TERMINATE_ONCE, NULL, FK_MEMORY_SC, true, NULL },
    { "force-twice", FK_MUTATION_TERMINATE_ONCE, NULL, FK_MEMORY_SC, true, NULL },
    { "terminate-twice", FK_MUTATION_SPAWN_CLOSED, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

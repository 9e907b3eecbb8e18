/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How a system ends: requirements 002 and 003, one test each. */

#include <stdio.h>
#include <string.h>

#include "core/guardian.h"
#include "core/supervise.h"
#include "fraktor/boot.h"
#include "fraktor/registry.h"
#include "support/stage.h"

static const char ALL_STEPS[] = "running>stopping_user stopping_user>hooks hooks>stopping_system "
                                "stopping_system>stopping_root stopping_root>terminated";

static stage s;
static const fk_props PLAIN = { .receive = doer_receive };

/* Starts, with the beginning forgotten. */
static void start(fk_system_config config)
{
    stage_start_with(&s, config);
    stage_forget(&s);
}

static bool is_down(void)
{
    return !fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT));
}

/* Where in the events a guardian stopped. */
static size_t stopped_at(fk_guardian_kind kind)
{
    for (size_t i = 0; i < s.events; i++) {
        if (s.event[i].kind == FK_EVENT_STOPPED &&
            fk_ref_equal(s.event[i].actor, fk_guardian(s.r.sys, kind))) {
            return i;
        }
    }
    test_failed(__FILE__, __LINE__, "guardian %d did not stop", (int)kind);
}

static size_t reached_at(const char *to)
{
    for (size_t i = 0; i < s.events; i++) {
        if (s.event[i].kind == FK_EVENT_TERMINATION && strcmp(s.event[i].to, to) == 0) return i;
    }
    test_failed(__FILE__, __LINE__, "%s was not reached", to);
}

/* ---- 002: the sequence -------------------------------------------------------------------------- */

TEST(r002_terminate_goes_through_all_steps_in_order)
{
    role child = { .name = "c" }, parent = { .name = "p", .child = { &child } };
    start((fk_system_config){ 0 });
    role_spawn(&s, &parent);
    stage_forget(&s);
    CHECK(!fk_is_terminating(s.r.sys));
    CHECK_OK(fk_terminate(s.r.sys));
    CHECK(fk_is_terminating(s.r.sys));
    stage_expect(&s, "c.stop p.stop"); /* children before parents */
    stage_expect_steps(&s, ALL_STEPS);
    CHECK_OK(fk_await_termination(s.r.sys, 0));
    stage_end(&s);
}

TEST(r002_user_stops_before_system_and_system_before_root)
{
    start((fk_system_config){ 0 });
    CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    CHECK(stopped_at(FK_GUARDIAN_USER) < reached_at("hooks"));
    CHECK(reached_at("hooks") < reached_at("stopping_system"));
    CHECK(reached_at("stopping_system") < stopped_at(FK_GUARDIAN_SYSTEM));
    CHECK(stopped_at(FK_GUARDIAN_SYSTEM) < reached_at("stopping_root"));
    CHECK(reached_at("stopping_root") < stopped_at(FK_GUARDIAN_ROOT));
    CHECK(stopped_at(FK_GUARDIAN_ROOT) < reached_at("terminated"));
    stage_end(&s);
}

TEST(r002_events_are_heard_until_the_very_end)
{
    start((fk_system_config){ 0 });
    CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    const stage_event *last = &s.event[s.events - 1];
    CHECK_U64(last->kind, FK_EVENT_TERMINATION);
    CHECK_STR(last->to, "terminated");
    stage_end(&s);
}

TEST(r002_terminate_again_changes_nothing)
{
    start((fk_system_config){ 0 });
    for (int i = 0; i < 3; i++) CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    for (int i = 0; i < 3; i++) CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    stage_expect_steps(&s, ALL_STEPS);
    stage_end(&s);
}

enum { THREADS = 4 };

static void *terminate_here(void *arg)
{
    fk_ref ref;
    (void)arg;
    CHECK_OK(fk_terminate(s.r.sys));
    CHECK_ERR(fk_spawn(s.r.sys, FK_STR(""), &PLAIN, &ref), FK_E_STOPPING); /* from then on */
    return NULL;
}

TEST(r002_terminate_by_many_threads_is_one_termination)
{
    for (int round = 0; round < 20; round++) {
        pthread_t thread[THREADS];
        fk_ref ref;
        stage_start_with(&s, (fk_system_config){ .workers = 2 });
        s.events = 0;
        for (int i = 0; i < 50; i++) CHECK_OK(fk_spawn(s.r.sys, FK_STR(""), &PLAIN, &ref));
        for (int i = 0; i < THREADS; i++) {
            CHECK_U64(pthread_create(&thread[i], NULL, terminate_here, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        CHECK_OK(fk_await_termination(s.r.sys, FK_SECONDS(20)));
        stage_end(&s);
        stage_expect_steps(&s, ALL_STEPS);
    }
}

static fk_err spawn_in_stop_err;

static void spawn_in_stop(fk_ctx *ctx, role *self)
{
    fk_ref ref;
    (void)self;
    spawn_in_stop_err = fk_spawn_child(ctx, FK_STR("late"), &PLAIN, &ref);
}

TEST(r002_spawn_while_terminating_is_refused)
{
    fk_ref ref;
    role a = { .name = "a", .on_stop = spawn_in_stop };
    start((fk_system_config){ 0 });
    role_spawn(&s, &a);
    CHECK_OK(fk_terminate(s.r.sys));
    CHECK_ERR(fk_spawn(s.r.sys, FK_STR("b"), &PLAIN, &ref), FK_E_STOPPING); /* at once */
    spawn_in_stop_err = FK_OK;
    rig_run(&s.r);
    CHECK_ERR(spawn_in_stop_err, FK_E_STOPPING);                            /* from inside, too */
    CHECK_ERR(fk_spawn(s.r.sys, FK_STR("b"), &PLAIN, &ref), FK_E_STOPPING); /* and after it */
    stage_end(&s);
}

static fk_err terminate_inside(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK_OK(fk_terminate(fk_system_of(ctx)));
    CHECK_ERR(fk_await_termination(fk_system_of(ctx), FK_SECONDS(1)), FK_E_STATE);
    CHECK_ERR(fk_system_stop(fk_system_of(ctx)), FK_E_STATE);
    return FK_OK;
}

TEST(r002_an_actor_can_terminate_but_not_wait)
{
    start((fk_system_config){ 0 });
    rig_do(&s.r, doer_spawn(&s.r), terminate_inside, NULL);
    CHECK(is_down());
    stage_expect_steps(&s, ALL_STEPS);
    stage_end(&s);
}

TEST(r002_terminate_now_asks_nobody)
{
    role a = { .name = "a" };
    start((fk_system_config){ 0 });
    role_spawn(&s, &a);
    stage_forget(&s);
    CHECK_OK(fk_terminate_now(s.r.sys));
    stage_expect(&s, "a.stop");
    CHECK(is_down());
    stage_expect_steps(&s, "running>stopping_root stopping_root>terminated");
    stage_end(&s);
}

/* ---- 002: whoever begins it ---------------------------------------------------------------------- */

TEST(r002_stopping_a_guardian_is_the_end_in_order)
{
    static const fk_guardian_kind KINDS[] = { FK_GUARDIAN_USER, FK_GUARDIAN_SYSTEM,
                                              FK_GUARDIAN_ROOT };
    for (size_t i = 0; i < 3; i++) {
        start((fk_system_config){ 0 });
        CHECK_OK(fk_stop(s.r.sys, fk_guardian(s.r.sys, KINDS[i])));
        rig_run(&s.r);
        CHECK(is_down());
        stage_expect_steps(&s, ALL_STEPS);
        stage_end(&s);
    }
}

TEST(r002_temp_and_dead_letters_cannot_be_stopped)
{
    static const char *const PATHS[] = { "fraktor://test/temp", "fraktor://test/deadLetters" };
    start((fk_system_config){ 0 });
    for (size_t i = 0; i < 2; i++) {
        fk_ref ref;
        CHECK_OK(fk_resolve(s.r.sys, fk_str_of(PATHS[i]), &ref, NULL));
        CHECK_ERR(fk_stop(s.r.sys, ref), FK_E_RESERVED_NAME);
        rig_run(&s.r);
        CHECK(fk_is_alive(s.r.sys, ref));
    }
    CHECK(!fk_is_terminating(s.r.sys));
    stage_end(&s);
}

TEST(r002_escalation_at_user_terminates_at_once)
{
    fk_strategy escalating = { .decide = fk_decide_escalate };
    role a = { .name = "a" }, b = { .name = "b" };
    start((fk_system_config){ .user_strategy = &escalating });
    role_spawn(&s, &a);
    role_spawn(&s, &b);
    stage_forget(&s);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(is_down());
    CHECK(reached_at("stopping_user") < stopped_at(FK_GUARDIAN_USER));
    stage_expect_steps(&s, ALL_STEPS);
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 0); /* nobody is made again */
    stage_end(&s);
}

TEST(r002_failure_of_a_guardian_with_props_of_its_own_terminates)
{
    role a = { .name = "a" };
    start((fk_system_config){ .user_guardian = &PLAIN });
    role_spawn(&s, &a);
    CHECK_OK(fk_kill(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_USER)));
    stage_expect(&s, "a.start a.stop");
    CHECK(is_down());
    stage_expect_steps(&s, ALL_STEPS);
    stage_end(&s);
}

/* /system conducts the end, so its own failure must not keep it from doing that. */
TEST(r002_failure_of_system_terminates_in_order)
{
    role a = { .name = "a" };
    start((fk_system_config){ 0 });
    role_spawn(&s, &a);
    CHECK_OK(fk_kill(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_SYSTEM)));
    stage_expect(&s, "a.start a.stop");
    CHECK(is_down());
    stage_expect_steps(&s, ALL_STEPS);
    stage_end(&s);
}

/* With an actor beside the guardians. */
static fk_ref boot_with_metrics(const fk_props *props)
{
    fk_boot *boot = NULL;
    fk_ref metrics;
    stage_init(&s);
    fk_system_config config = stage_config(&s, (fk_system_config){ 0 });
    CHECK_OK(fk_boot_create(&config, &boot));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL));
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), props, &metrics));
    CHECK_OK(fk_boot_finish(boot, &s.r.sys, NULL));
    stage_forget(&s);
    return metrics;
}

TEST(r002_failure_of_an_extra_name_terminates)
{
    fk_ref metrics = boot_with_metrics(&PLAIN);
    CHECK_OK(fk_kill(s.r.sys, metrics));
    rig_run(&s.r);
    CHECK(is_down());
    stage_expect_steps(&s, ALL_STEPS);
    stage_end(&s);
}

/* ---- 002: guardians and their children ------------------------------------------------------------ */

/* The root never restarts a guardian: the order comes from inside. */
TEST(r002_guardian_keeps_its_children_over_a_restart)
{
    role a = { .name = "a" }, b = { .name = "b" };
    start((fk_system_config){ 0 });
    role_spawn(&s, &a);
    role_spawn(&s, &b);
    fk_ref before = a.ref, user = fk_guardian(s.r.sys, FK_GUARDIAN_USER);
    stage_forget(&s);
    fk_local *local = fk__local_enter(s.r.sys);
    fk__cell_order_restart(local, fk__cell_resolve(s.r.sys, user), FK_E_INVALID);
    fk__local_leave(local);
    rig_run(&s.r);
    CHECK_U64(stage_count(&s, FK_EVENT_STOPPED), 0);
    CHECK(fk_ref_equal(a.ref, before));
    CHECK(role_is_alive(&a));
    CHECK(role_is_alive(&b));
    CHECK(fk_is_alive(s.r.sys, user));
    stage_end(&s);
}

TEST(r002_stop_of_one_child_leaves_the_others_and_the_guardian)
{
    role a = { .name = "a" }, b = { .name = "b" };
    start((fk_system_config){ 0 });
    role_spawn(&s, &a);
    role_spawn(&s, &b);
    stage_forget(&s);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "a.stop");
    CHECK(role_is_alive(&b));
    CHECK(fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_USER)));
    stage_end(&s);
}

/* ---- 003: flags, and what hangs on them ----------------------------------------------------------- */

TEST(r003_termination_is_complete_when_the_root_has_stopped)
{
    start((fk_system_config){ 0 });
    CHECK_OK(fk_terminate(s.r.sys));
    while (fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT))) {
        CHECK_U64(stage_count(&s, FK_EVENT_TERMINATION) < 5, true);
        CHECK(fk_host_run_once(s.r.sys, 0) > 0);
    }
    stage_expect_steps(&s, ALL_STEPS);
    CHECK_OK(fk_await_termination(s.r.sys, 0));
    stage_end(&s);
}

/* A hook, because everybody else has gone when /user has. */
static fk_err late_watcher(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    (void)state;
    if (FK_AS(fk_termination_hook, msg) != NULL) {
        return fk_watch(ctx, fk_guardian(fk_system_of(ctx), FK_GUARDIAN_USER));
    }
    CHECK(end != NULL);
    CHECK(fk_ref_equal(end->actor, fk_guardian(fk_system_of(ctx), FK_GUARDIAN_USER)));
    CHECK(!end->existence_confirmed);
    stage_note(&s, "terminated");
    return fk_hook_done(ctx);
}

static fk_err register_hook(fk_ctx *ctx, void *state)
{
    (void)state;
    return fk_hook_register(ctx, 0);
}

TEST(r003_watch_of_a_stopped_guardian_answers_at_once)
{
    const fk_props props = { .receive = late_watcher, .start = register_hook };
    boot_with_metrics(&props);
    CHECK_OK(fk_terminate(s.r.sys));
    stage_expect(&s, "terminated");
    CHECK(is_down());
    stage_end(&s);
}

TEST(r003_stop_of_an_unknown_guardian_is_a_warning_and_nothing_else)
{
    start((fk_system_config){ 0 });
    fk_ref doer = doer_spawn(&s.r);
    stage_forget(&s);
    fk_local *local = fk__local_enter(s.r.sys);
    fk__guardian_stopped(s.r.sys, local, doer);
    fk__local_leave(local);
    rig_run(&s.r);
    CHECK_U64(s.events, 1);
    const stage_event *warning = stage_last(&s, FK_EVENT_GUARDIAN);
    CHECK(fk_ref_equal(warning->actor, doer));
    CHECK(!fk_is_terminating(s.r.sys));
    CHECK(fk_is_alive(s.r.sys, doer));
    stage_end(&s);
}

TEST(r003_destroying_frees_everything_whatever_was_going_on)
{
    role child = { .name = "c" }, parent = { .name = "p", .child = { &child } };
    role watcher = { .name = "w" };
    start((fk_system_config){ 0 });
    role_spawn(&s, &parent);
    role_spawn(&s, &watcher);
    role_watch(&watcher, &parent);
    role_watch(&watcher, &child);
    role_fail(&child, FK_E_INVALID);
    for (int i = 0; i < 10; i++) role_send(&child, 1);
    stage_end(&s); /* counts the bytes */
}

/* ---- farewells ------------------------------------------------------------------------------------- */

static void say_farewell(void *user, fk_system *sys)
{
    CHECK(sys == s.r.sys);
    CHECK(!fk_is_alive(sys, fk_guardian(sys, FK_GUARDIAN_SYSTEM)));
    stage_note(&s, "%s", (const char *)user);
}

TEST(r002_what_is_to_run_at_the_end_runs_last_given_first)
{
    char one[] = "one", two[] = "two", three[] = "three";
    start((fk_system_config){ 0 });
    CHECK_OK(fk_on_termination(s.r.sys, say_farewell, one));
    CHECK_OK(fk_on_termination(s.r.sys, say_farewell, two));
    CHECK_OK(fk_on_termination(s.r.sys, say_farewell, three));
    CHECK_ERR(fk_on_termination(s.r.sys, NULL, NULL), FK_E_INVALID);
    CHECK_OK(fk_terminate(s.r.sys));
    stage_expect(&s, "three two one");
    CHECK_ERR(fk_on_termination(s.r.sys, say_farewell, one), FK_E_STOPPING);
    stage_end(&s);
}

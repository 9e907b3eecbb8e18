/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a runtime like Pekko must do, B17 to B38: lives and failures. See test_pekko_behaviours_name.c. */

#include <string.h>

#include "support/stage.h"

static stage s;

static void start(role *top)
{
    stage_start_with(&s, (fk_system_config){ .paths = { .rules = FK_RULES_PEKKO } });
    role_spawn(&s, top);
}

/* The same, with the beginning forgotten. */
static void play(role *top)
{
    start(top);
    stage_forget(&s);
}

static role manager(role *a, role *b, fk_directive answer)
{
    return (role){ .name = "m",
                   .is_quiet = true,
                   .child = { a, b },
                   .answer = answer,
                   .strategy = { .decide = role_decide } };
}

static void fail_times(role *self, int times)
{
    for (int i = 0; i < times; i++) {
        role_fail(self, FK_E_INVALID);
        rig_run(&s.r);
    }
}

/* ---- hooks ----------------------------------------------------------------------------------------- */

TEST(b17_default_hooks_over_three_restarts_and_a_stop)
{
    role a = { .name = "a" };
    start(&a);
    fail_times(&a, 3);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "a.start a.stop a.start a.stop a.start a.stop a.start a.stop");
    stage_end(&s);
}

TEST(b18_own_hooks_run_before_on_the_old_and_after_on_the_new_state)
{
    role a = { .name = "a", .has_before = true, .has_after = true };
    start(&a);
    fail_times(&a, 2);
    stage_expect(&s, "a.start a.before a.after a.before a.after");
    stage_end(&s);
}

TEST(b19_normal_stop_runs_the_stop_hook_once_and_no_restart_hook)
{
    role a = { .name = "a", .has_before = true, .has_after = true };
    start(&a);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "a.start a.stop");
    stage_end(&s);
}

static fk_err deaf(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type == &fk_type_rig_call) return player_receive(ctx, state, msg);
    stage_note(&s, "deaf");
    return FK_OK;
}

static fk_err call_become_deaf(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_become(ctx, deaf);
}

TEST(b20_behaviours_are_reset_by_a_restart)
{
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    role_call(&a, call_become_deaf, NULL);
    role_send(&a, 1);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 1);
    stage_expect(&s, "deaf a=1");
    stage_end(&s);
}

static void complain(fk_ctx *ctx, role *self)
{
    (void)self;
    fk_fail(ctx, FK_E_INVALID, "no!");
}

TEST(b21_failure_in_the_stop_hook_is_reported_and_the_end_goes_on)
{
    role a = { .name = "a", .on_stop = complain };
    play(&a);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    rig_run(&s.r);
    CHECK(!role_is_alive(&a));
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 1);
    stage_end(&s);
}

TEST(b22_start_that_always_fails_with_a_budget_of_three_is_tried_four_times)
{
    role a = { .name = "a", .start_fails = 100 };
    role m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.restarts = 3;
    start(&m);
    stage_expect(&s, "a.start a.start a.start a.start");
    CHECK(!role_is_alive(&a));
    stage_end(&s);
}

TEST(b23_messages_behind_the_failing_one_are_handled_after_the_restart)
{
    role a = { .name = "a" };
    play(&a);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 1);
    role_send(&a, 2);
    stage_expect(&s, "a.stop a.start a=1 a=3");
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 1); /* it does not come again */
    stage_end(&s);
}

/* ---- strategies -------------------------------------------------------------------------------------- */

TEST(b24_one_for_one_restarts_only_the_child_that_failed)
{
    role a = { .name = "a" }, b = { .name = "b" }, m = manager(&a, &b, FK_DIRECTIVE_RESTART);
    play(&m);
    fail_times(&a, 1);
    stage_expect(&s, "a.stop a.start");
    stage_end(&s);
}

TEST(b25_all_for_one_restarts_all_siblings)
{
    role a = { .name = "a" }, b = { .name = "b" }, m = manager(&a, &b, FK_DIRECTIVE_RESTART);
    m.strategy.kind = FK_ALL_FOR_ONE;
    play(&m);
    fail_times(&a, 1);
    CHECK_U64(a.starts, 2);
    CHECK_U64(b.starts, 2);
    stage_end(&s);
}

static void check_budget(int32_t restarts, int survives)
{
    role a = { .name = "a", .is_quiet = true }, m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.restarts = restarts;
    play(&m);
    fail_times(&a, survives);
    CHECK(role_is_alive(&a));
    fail_times(&a, 1);
    CHECK(!role_is_alive(&a));
    stage_end(&s);
}

TEST(b26_no_budget_or_an_exhausted_one_stops_the_child)
{
    check_budget(FK_RESTARTS_NONE, 0);
    check_budget(1, 1);
    check_budget(5, 5);
}

TEST(b27_unlimited_with_a_window_is_one_restart_in_each)
{
    role a = { .name = "a", .is_quiet = true }, m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.restarts = FK_RESTARTS_UNLIMITED;
    m.strategy.within = FK_SECONDS(1);
    play(&m);
    for (int i = 0; i < 3; i++) {
        fail_times(&a, 1);
        CHECK(role_is_alive(&a));
        rig_advance(&s.r, FK_SECONDS(1) + 1);
    }
    fail_times(&a, 2);
    CHECK(!role_is_alive(&a));
    stage_end(&s);
}

TEST(b28_unlimited_without_a_window_restarts_for_ever)
{
    role a = { .name = "a", .is_quiet = true }, m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.restarts = FK_RESTARTS_UNLIMITED;
    play(&m);
    fail_times(&a, 200);
    CHECK(role_is_alive(&a));
    CHECK_U64(a.starts, 201);
    stage_end(&s);
}

TEST(b29_failures_spread_wider_than_the_window_are_always_restarted)
{
    role a = { .name = "a", .is_quiet = true }, m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.restarts = 2;
    m.strategy.within = FK_MILLIS(500);
    play(&m);
    for (int i = 0; i < 10; i++) {
        fail_times(&a, 2);
        rig_advance(&s.r, FK_MILLIS(501));
    }
    CHECK(role_is_alive(&a));
    CHECK_U64(a.starts, 21);
    stage_end(&s);
}

TEST(b30_decision_that_is_none_escalates_and_manager_and_workers_restart)
{
    role a = { .name = "a" }, b = { .name = "b" }, m = manager(&a, &b, (fk_directive)1000);
    role boss = { .name = "boss", .is_quiet = true, .child = { &m } };
    play(&boss);
    fail_times(&a, 1);
    CHECK_U64(m.starts, 2);
    CHECK_U64(a.starts, 2);
    CHECK_U64(b.starts, 2);
    CHECK_U64(boss.starts, 1);
    stage_end(&s);
}

TEST(b31_resume_keeps_the_state_and_resumes_the_whole_subtree)
{
    role leaf = { .name = "leaf", .is_quiet = true };
    role low = { .name = "low", .is_quiet = true, .child = { &leaf } };
    role m = manager(&low, NULL, FK_DIRECTIVE_RESUME);
    play(&m);
    role_send(&low, 1);
    role_send(&leaf, 1);
    fail_times(&low, 1);
    role_send(&low, 1);
    role_send(&leaf, 1);
    stage_expect(&s, "low=1 leaf=1 low=2 leaf=2");
    stage_end(&s);
}

static fk_directive note_and_resume(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    stage_note(&s, "decided");
    return FK_DIRECTIVE_RESUME;
}

static fk_err call_send_and_fail(fk_ctx *ctx, void *arg)
{
    role_send(arg, 1);
    return fk_fail(ctx, FK_E_INVALID, "with a message on its way");
}

TEST(b32_descendants_of_a_failing_actor_handle_nothing_until_it_is_resumed)
{
    role leaf = { .name = "leaf", .is_quiet = true };
    role low = { .name = "low", .is_quiet = true, .child = { &leaf } };
    role m = manager(&low, NULL, FK_DIRECTIVE_RESUME);
    m.strategy.decide = note_and_resume;
    play(&m);
    role_call(&low, call_send_and_fail, &leaf);
    stage_expect(&s, "decided leaf=1");
    stage_end(&s);
}

static void check_creation(fk_directive answer)
{
    role a = { .name = "a", .start_fails = 1, .has_before = true, .has_after = true };
    role m = manager(&a, NULL, answer);
    start(&m);
    stage_expect(&s, "a.start a.start");
    stage_end(&s);
}

TEST(b33_creation_that_failed_is_tried_again_with_the_start_hook_by_restart_and_resume)
{
    check_creation(FK_DIRECTIVE_RESTART);
    check_creation(FK_DIRECTIVE_RESUME);
}

TEST(b34_failure_after_a_restart_leads_to_another_restart)
{
    role a = { .name = "a", .has_before = true, .has_after = true, .after_fails = 1 };
    role m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    play(&m);
    fail_times(&a, 1);
    stage_expect(&s, "a.before a.after a.after");
    CHECK(role_is_alive(&a));
    stage_end(&s);
}

/* Whatever hooks do, an end that was asked for comes, and a watch that was begun is answered. */
TEST(b35_signals_are_not_lost_when_hooks_fail)
{
    role a = { .name = "a", .is_quiet = true, .start_fails = 0 };
    role m = manager(&a, NULL, FK_DIRECTIVE_RESTART), w = { .name = "w", .is_quiet = true };
    play(&m);
    role_spawn(&s, &w);
    a.start_fails = 3;
    role_fail(&a, FK_E_INVALID);
    role_watch(&w, &a);
    rig_run(&s.r);
    a.start_fails = 1000000; /* for ever, from here on */
    role_fail(&a, FK_E_INVALID);
    for (int i = 0; i < 50; i++) fk_host_run_once(s.r.sys, 0);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "w!/user/m/a");
    stage_end(&s);
}

static fk_ref decided_about;

static fk_directive note_actor(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    decided_about = failure->actor;
    return FK_DIRECTIVE_STOP;
}

TEST(b36_decider_knows_who_failed)
{
    role a = { .name = "a" }, m = manager(&a, NULL, FK_DIRECTIVE_STOP);
    m.strategy.decide = note_actor;
    play(&m);
    fail_times(&a, 1);
    CHECK(fk_ref_equal(decided_about, a.ref));
    stage_end(&s);
}

/* Somebody stops it while it is being decided to restart it. */
static fk_directive stop_and_restart(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)state;
    CHECK_OK(fk_stop(fk_system_of(ctx), failure->actor));
    return FK_DIRECTIVE_RESTART;
}

static fk_err call_spawn_again(fk_ctx *ctx, void *arg)
{
    role *child = arg;
    role_spawn_child(ctx, child, child);
    return FK_OK;
}

TEST(b37_failure_of_an_old_incarnation_does_not_touch_the_new_one)
{
    role a = { .name = "a", .is_quiet = true }, m = manager(&a, NULL, FK_DIRECTIVE_RESTART);
    m.strategy.decide = stop_and_restart;
    play(&m);
    fk_ref old = a.ref;
    fail_times(&a, 1);
    CHECK(!fk_is_alive(s.r.sys, old));
    a.starts = 0;
    stage_forget(&s);
    role_call(&m, call_spawn_again, &a);
    rig_run(&s.r);
    CHECK(!fk_ref_equal(a.ref, old));
    CHECK_U64(a.starts, 1);
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 0);
    stage_end(&s);
}

TEST(b38_kill_stops_by_default_and_poison_stops_after_earlier_messages)
{
    role a = { .name = "a", .is_quiet = true }, b = { .name = "b", .is_quiet = true };
    play(&a);
    role_spawn(&s, &b);
    CHECK_OK(fk_kill(s.r.sys, a.ref));
    role_send(&b, 1);
    role_send(&b, 1);
    CHECK_OK(fk_poison(s.r.sys, b.ref));
    role_send(&b, 1);
    stage_expect(&s, "b=1 b=2");
    CHECK(!role_is_alive(&a));
    CHECK(!role_is_alive(&b));
    CHECK_U64(s.r.letters.of[FK_REASON_STOPPED], 1);
    stage_end(&s);
}

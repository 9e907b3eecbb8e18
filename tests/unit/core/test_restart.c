/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a restart changes and what it leaves, and hooks that fail. */

#include <string.h>

#include "fraktor/registry.h"
#include "support/stage.h"

static stage s;

static void play(role *top)
{
    stage_start(&s);
    role_spawn(&s, top);
    stage_forget(&s);
}

static const fk_strategy FOREVER = { .decide = role_decide, .restarts = FK_RESTARTS_UNLIMITED };

/* ---- hooks --------------------------------------------------------------------------------------- */

TEST(restart_by_default_stops_children_then_runs_stop_and_start)
{
    role a = { .name = "a" }, p = { .name = "p", .child = { &a } };
    play(&p);
    fk_ref before = a.ref;
    role_fail(&p, FK_E_INVALID);
    stage_expect(&s, "p.stop a.stop p.start a.start");
    CHECK(!fk_is_alive(s.r.sys, before)); /* another one of that name */
    CHECK(role_is_alive(&a));
    stage_end(&s);
}

TEST(restart_with_hooks_keeps_children_and_restarts_them)
{
    role a = { .name = "a" };
    role p = { .name = "p", .child = { &a }, .has_before = true, .has_after = true };
    play(&p);
    fk_ref before = a.ref;
    role_fail(&p, FK_E_INVALID);
    stage_expect(&s, "p.before p.after a.stop a.start");
    CHECK(fk_ref_equal(a.ref, before));
    stage_end(&s);
}

static void stop_first_child(fk_ctx *ctx, role *self)
{
    CHECK_OK(fk_stop(fk_system_of(ctx), self->child[0]->ref));
}

TEST(before_restart_keeps_some_children_and_stops_others)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = { .name = "p",
               .child = { &a, &b },
               .has_before = true,
               .has_after = true,
               .on_before = stop_first_child };
    play(&p);
    role_send(&b, 4);
    stage_forget(&s);
    role_fail(&p, FK_E_INVALID);
    stage_expect(&s, "p.before a.stop p.after b.stop b.start"); /* a's end is awaited */
    CHECK(!role_is_alive(&a));
    role_send(&b, 1);
    stage_expect(&s, "b=1");
    stage_end(&s);
}

TEST(restart_of_children_that_were_kept_goes_all_the_way_down)
{
    role leaf = { .name = "leaf" };
    role low = { .name = "low", .child = { &leaf }, .has_before = true, .has_after = true };
    role p = { .name = "p", .child = { &low }, .has_before = true, .has_after = true };
    play(&p);
    role_fail(&p, FK_E_INVALID);
    stage_expect(&s, "p.before p.after low.before low.after leaf.stop leaf.start");
    stage_end(&s);
}

TEST(start_that_fails_leaves_nothing_to_stop)
{
    role a = { .name = "a", .start_fails = 1 };
    role p = { .name = "p", .strategy = { .decide = fk_decide_stop } };
    play(&p);
    role_spawn(&s, &a);
    stage_expect(&s, "a.start"); /* no a.stop */
    CHECK(!role_is_alive(&a));
    CHECK_U64(stage_last(&s, FK_EVENT_FAILED)->phase, FK_PHASE_START);
    CHECK_STR(stage_last(&s, FK_EVENT_FAILED)->detail, "start");
    stage_end(&s);
}

static void creation_fails_with(fk_directive answer)
{
    role a = { .name = "a", .start_fails = 2, .has_before = true, .has_after = true };
    role p = { .name = "p", .child = { &a }, .answer = answer, .strategy = FOREVER };
    stage_start(&s);
    role_spawn(&s, &p);
    /* The start hook again, and neither of the restart hooks. */
    stage_expect(&s, "p.start a.start a.start a.start");
    role_send(&a, 1);
    stage_expect(&s, "a=1");
    stage_end(&s);
}

TEST(restart_of_a_creation_that_failed_creates_again)
{
    creation_fails_with(FK_DIRECTIVE_RESTART);
}

TEST(resume_of_a_creation_that_failed_creates_again)
{
    creation_fails_with(FK_DIRECTIVE_RESUME);
}

static fk_err spawn_then_fail_once(fk_ctx *ctx, role *self)
{
    static role orphan;
    orphan = (role){ .name = "orphan" };
    role_spawn_child(ctx, self, &orphan);
    return self->starts == 1 ? FK_E_INVALID : FK_OK;
}

TEST(children_of_a_creation_that_failed_are_stopped_first)
{
    role a = { .name = "a", .on_start = spawn_then_fail_once, .has_before = true };
    role p = { .name = "p", .child = { &a }, .answer = FK_DIRECTIVE_RESTART, .strategy = FOREVER };
    stage_start(&s);
    role_spawn(&s, &p);
    stage_expect(&s, "p.start a.start orphan.start orphan.stop a.start orphan.start");
    stage_end(&s);
}

TEST(after_restart_that_fails_is_another_failure_and_runs_again)
{
    role a = { .name = "a", .has_before = true, .has_after = true, .after_fails = 2 };
    role p = { .name = "p", .child = { &a }, .answer = FK_DIRECTIVE_RESTART, .strategy = FOREVER };
    play(&p);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "a.before a.after a.after a.after"); /* nothing to leave in between */
    CHECK_U64(stage_last(&s, FK_EVENT_FAILED)->phase, FK_PHASE_RESTART);
    CHECK_ERR(stage_last(&s, FK_EVENT_FAILED)->err, FK_E_TIMEOUT);
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 1);
    role_send(&a, 1);
    stage_expect(&s, "a=1");
    stage_end(&s);
}

static fk_directive resume_failed_restarts(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    return failure->phase == FK_PHASE_RESTART ? FK_DIRECTIVE_RESUME : FK_DIRECTIVE_RESTART;
}

TEST(resume_of_a_restart_that_failed_restarts)
{
    role a = { .name = "a", .has_after = true, .after_fails = 1 };
    role p = { .name = "p", .child = { &a }, .strategy = { .decide = resume_failed_restarts } };
    play(&p);
    role_send(&a, 5);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 1);
    stage_expect(&s, "a=5 a.stop a.after a.after a=1");
    stage_end(&s);
}

static void complain(fk_ctx *ctx, role *self)
{
    (void)self;
    fk_fail(ctx, FK_E_INVALID, "could not close the file");
}

TEST(stop_hook_that_complains_is_heard_and_the_end_goes_on)
{
    role a = { .name = "a", .on_stop = complain }, w = { .name = "w", .is_quiet = true };
    play(&a);
    role_spawn(&s, &w);
    role_watch(&w, &a);
    stage_forget(&s);
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "a.stop w!/user/a");
    CHECK_U64(stage_last(&s, FK_EVENT_FAILED)->phase, FK_PHASE_STOP);
    CHECK_STR(stage_last(&s, FK_EVENT_FAILED)->detail, "could not close the file");
    CHECK_U64(stage_count(&s, FK_EVENT_SUPERVISED), 0);
    stage_end(&s);
}

static fk_err leave_at_start(fk_ctx *ctx, role *self)
{
    if (self->starts == 2) fk_stop_self(ctx);
    return FK_OK;
}

TEST(start_hook_may_stop_the_actor_during_a_restart)
{
    role a = { .name = "a", .on_start = leave_at_start };
    play(&a);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "a.stop a.start a.stop");
    CHECK(!role_is_alive(&a));
    stage_end(&s);
}

/* ---- what stays ------------------------------------------------------------------------------------ */

TEST(mailbox_stays_and_the_failing_message_does_not_come_again)
{
    role a = { .name = "a" };
    play(&a);
    role_send(&a, 1);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 2);
    role_send(&a, 3);
    stage_expect(&s, "a=1 a.stop a.start a=2 a=5");
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 1);
    stage_end(&s);
}

static fk_err fail_on_num(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    probe *p = state;
    if (msg->type == &fk_type_num) return FK_E_INVALID;
    return probe_receive(ctx, p, msg);
}

TEST(state_of_the_caller_is_left_alone)
{
    probe p;
    fk_ref ref;
    stage_start(&s);
    fk_props props = probe_props(&p);
    props.receive = fail_on_num;
    props.start = NULL;
    props.stop = NULL;
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("a"), &props, &ref));
    CHECK_OK(fk_send(s.r.sys, ref, FK_TEXT("one")));
    CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 1)));
    CHECK_OK(fk_send(s.r.sys, ref, FK_TEXT("two")));
    rig_run(&s.r);
    CHECK_U64(p.count, 2); /* counted on */
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 1);
    stage_end(&s);
}

static fk_err fail_when_zeroed(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    unsigned char *bytes = state;
    (void)ctx;
    (void)msg;
    for (int i = 0; i < 100; i++) CHECK_U64(bytes[i], 0);
    memset(bytes, 7, 100);
    return FK_E_INVALID;
}

TEST(state_without_init_bytes_is_zeroed_again)
{
    fk_ref ref;
    stage_start(&s);
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("a"),
                      &(fk_props){ .receive = fail_when_zeroed, .state_size = 100 }, &ref));
    for (int i = 0; i < 5; i++) CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 1)));
    rig_run(&s.r);
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 5);
    stage_end(&s);
}

static fk_err other_mode(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const rig_call *call = FK_AS(rig_call, msg);
    (void)state;
    if (call != NULL) return call->fn(ctx, call->arg);
    stage_note(&s, "other");
    return FK_OK;
}

static fk_err call_become(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_become(ctx, other_mode);
}

static fk_err call_unbecome(fk_ctx *ctx, void *arg)
{
    *(fk_err *)arg = fk_unbecome(ctx);
    return FK_OK;
}

TEST(behaviours_are_reset)
{
    fk_err err = FK_OK;
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    for (int i = 0; i < 3; i++) role_call(&a, call_become, NULL);
    role_send(&a, 1);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 1);
    role_call(&a, call_unbecome, &err);
    stage_expect(&s, "other a=1");
    CHECK_ERR(err, FK_E_STATE);
    stage_end(&s);
}

/* Stashes texts as long as it is told to. */
static fk_err stashing(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type == &fk_type_text) return fk_stash(ctx);
    return player_receive(ctx, state, msg);
}

static fk_err call_stash_mode(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_become(ctx, stashing);
}

TEST(stash_survives_and_comes_before_the_mailbox)
{
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    role_call(&a, call_stash_mode, NULL);
    CHECK_OK(fk_send(s.r.sys, a.ref, FK_TEXT("one")));
    CHECK_OK(fk_send(s.r.sys, a.ref, FK_TEXT("two")));
    role_fail(&a, FK_E_INVALID);
    CHECK_OK(fk_send(s.r.sys, a.ref, FK_TEXT("three")));
    stage_expect(&s, "a:one a:two a:three");
    stage_end(&s);
}

static fk_err call_timers(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK_OK(fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(5), FK_MSG(num, 1)));
    CHECK_OK(fk_timer_start(ctx, 2, FK_TIMER_FIXED_RATE, FK_MILLIS(2), FK_MSG(num, 1)));
    return FK_OK;
}

static fk_err call_timers_gone(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK(!fk_timer_is_active(ctx, 1));
    CHECK(!fk_timer_is_active(ctx, 2));
    return FK_OK;
}

TEST(timers_are_cancelled)
{
    fk_stats stats;
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    role_call(&a, call_timers, NULL);
    role_fail(&a, FK_E_INVALID);
    role_call(&a, call_timers_gone, NULL);
    rig_pass(&s.r, FK_MILLIS(20));
    stage_expect(&s, "");
    fk_stats_get(s.r.sys, &stats);
    CHECK_U64(stats.timers, 0);
    stage_end(&s);
}

/* It has fired and is in the mailbox when the actor fails. */
TEST(timer_message_from_before_the_restart_never_arrives)
{
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    role_call(&a, call_timers, NULL);
    rig_run(&s.r);
    role_fail(&a, FK_E_INVALID);
    rig_advance(&s.r, FK_MILLIS(6)); /* fires before the failing message is handled, or after */
    size_t before = s.len;
    rig_pass(&s.r, FK_MILLIS(20));
    CHECK_U64(s.len, before);
    stage_end(&s);
}

static fk_err call_timeout(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_receive_timeout_set(ctx, FK_MILLIS(10));
}

TEST(receive_timeout_stays)
{
    role a = { .name = "a", .is_quiet = true };
    play(&a);
    role_call(&a, call_timeout, NULL);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    size_t before = s.r.letters.of[FK_REASON_UNHANDLED]; /* a player does not know timeouts */
    rig_pass(&s.r, FK_MILLIS(25));
    CHECK_U64(s.r.letters.of[FK_REASON_UNHANDLED] - before, 2);
    stage_end(&s);
}

TEST(watches_and_watchers_stay)
{
    role a = { .name = "a", .is_quiet = true }, b = { .name = "b", .is_quiet = true };
    role w = { .name = "w", .is_quiet = true };
    play(&a);
    role_spawn(&s, &b);
    role_spawn(&s, &w);
    role_watch(&a, &b);
    role_watch(&w, &a);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, ""); /* a restart is no end */
    CHECK_OK(fk_stop(s.r.sys, b.ref));
    stage_expect(&s, "a!/user/b");
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    stage_expect(&s, "w!/user/a");
    stage_end(&s);
}

TEST(path_uid_and_reference_stay)
{
    char before[128], after[128];
    role a = { .name = "a" };
    play(&a);
    fk_path_of(s.r.sys, a.ref, before, sizeof(before));
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    fk_path_of(s.r.sys, a.ref, after, sizeof(after));
    CHECK_STR(after, before);
    stage_end(&s);
}

/* ---- stopped meanwhile ------------------------------------------------------------------------------ */

static role waiting;

static void stop_the_parent(fk_ctx *ctx, role *self)
{
    (void)self;
    CHECK_OK(fk_stop(fk_system_of(ctx), waiting.ref));
}

TEST(stop_while_the_restart_waits_for_children_is_the_end)
{
    role leaf = { .name = "leaf" }, low = { .name = "low", .child = { &leaf } };
    role slow = { .name = "slow", .child = { &low } };
    role a = { .name = "a", .on_stop = stop_the_parent };
    waiting = (role){ .name = "p", .child = { &a, &slow } };
    play(&waiting);
    role_fail(&waiting, FK_E_INVALID);
    stage_expect(&s, "p.stop a.stop leaf.stop low.stop slow.stop"); /* its stop hook ran already */
    CHECK(!role_is_alive(&waiting));
    CHECK(!role_is_alive(&a));
    CHECK(!role_is_alive(&slow));
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 0);
    stage_end(&s);
}

TEST(restarts_none_stops_at_the_first_failure)
{
    role a = { .name = "a" };
    role p = { .name = "p", .child = { &a }, .strategy = { .restarts = FK_RESTARTS_NONE } };
    play(&p);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "a.stop");
    stage_end(&s);
}

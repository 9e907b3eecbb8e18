/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a runtime like Pekko must do, B39 to B54: death watch and the end. See
 * test_pekko_behaviours_name.c, also for the numbers that are missing here. */

#include <string.h>

#include "fraktor/boot.h"
#include "fraktor/registry.h"
#include "support/stage.h"

static stage s;
static role a, w;

static const fk_system_config PEKKO = { .paths = { .rules = FK_RULES_PEKKO } };

static void start_with(fk_system_config config)
{
    config.paths.rules = FK_RULES_PEKKO;
    stage_start_with(&s, config);
    stage_forget(&s);
}

/* With an actor and one that watches it. */
static void start_pair(void)
{
    start_with(PEKKO);
    a = (role){ .name = "a", .is_quiet = true };
    w = (role){ .name = "w", .is_quiet = true };
    role_spawn(&s, &a);
    role_spawn(&s, &w);
    role_watch(&w, &a);
    stage_forget(&s);
}

static void stop(const role *who)
{
    CHECK_OK(fk_stop(s.r.sys, who->ref));
}

static bool is_down(void)
{
    return !fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT));
}

/* ---- watch ------------------------------------------------------------------------------------------- */

TEST(b39_one_terminated_on_stop_and_none_on_restart)
{
    start_pair();
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "");
    stop(&a);
    stage_expect(&s, "w!/user/a");
    stage_end(&s);
}

TEST(b40_watching_the_dead_gives_terminated_without_existence_confirmed)
{
    start_pair();
    stop(&a);
    stage_forget(&s);
    role_watch(&w, &a);
    stage_expect(&s, "w!/user/a?");
    stage_end(&s);
}

static fk_err call_unwatch(fk_ctx *ctx, void *arg)
{
    const role *other = arg;
    CHECK_OK(fk_unwatch(ctx, other->ref));
    return FK_OK;
}

TEST(b41_all_that_watch_now_and_only_those_are_told)
{
    role x = { .name = "x", .is_quiet = true }, y = { .name = "y", .is_quiet = true };
    start_pair();
    role_spawn(&s, &x);
    role_spawn(&s, &y);
    role_watch(&x, &a);
    role_watch(&y, &a);
    role_call(&x, call_unwatch, &a);
    stage_forget(&s);
    stop(&a);
    rig_run(&s.r);
    CHECK(strstr(s.diary, "w!/user/a") != NULL);
    CHECK(strstr(s.diary, "y!/user/a") != NULL);
    CHECK(strstr(s.diary, "x!") == NULL);
    stage_end(&s);
}

/* The end has been noticed, and its word is in the mailbox behind the call. */
TEST(b42_unwatch_between_the_notice_and_its_handling_suppresses_it)
{
    start_pair();
    stop(&a);
    role_call(&w, call_unwatch, &a);
    stage_expect(&s, "");
    CHECK(!role_is_alive(&a));
    stage_end(&s);
}

TEST(b43_forged_terminated_is_not_delivered)
{
    fk_terminated lie = { .existence_confirmed = true };
    start_pair();
    lie.actor = a.ref;
    CHECK_ERR(fk_send(s.r.sys, w.ref, (fk_out){ &fk_type_fk_terminated, &lie }), FK_E_INVALID);
    stage_expect(&s, "");
    CHECK(role_is_alive(&w));
    stage_end(&s);
}

static fk_err pact(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (FK_AS(fk_terminated, msg) != NULL) return fk_unhandled(ctx, msg);
    return player_receive(ctx, state, msg);
}

static fk_err call_pact(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_become(ctx, pact);
}

TEST(b44_unhandled_terminated_ends_the_watcher_and_its_watchers_are_told)
{
    role x = { .name = "x", .is_quiet = true };
    start_pair();
    role_spawn(&s, &x);
    role_watch(&x, &w);
    role_call(&w, call_pact, NULL);
    stage_forget(&s);
    stop(&a);
    stage_expect(&s, "x!/user/w");
    CHECK_ERR(stage_last(&s, FK_EVENT_FAILED)->err, FK_E_DEATH_PACT);
    stage_end(&s);
}

static fk_err call_watch_with(fk_ctx *ctx, void *arg)
{
    const role *other = arg;
    CHECK_OK(fk_watch_with(ctx, other->ref, FK_MSG(num, 7)));
    CHECK_ERR(fk_watch_with(ctx, other->ref, FK_MSG(num, 8)), FK_E_STATE);
    return FK_OK;
}

static bool has_stashed;

static fk_err stash_first(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type != &fk_type_num || has_stashed) return player_receive(ctx, state, msg);
    has_stashed = true;
    CHECK_OK(fk_stash(ctx));
    return fk_unstash_all(ctx);
}

static fk_err call_stash_first(fk_ctx *ctx, void *arg)
{
    (void)arg;
    has_stashed = false;
    return fk_become(ctx, stash_first);
}

TEST(b45_watch_with_delivers_the_message_also_through_the_stash)
{
    role x = { .name = "x", .is_quiet = true };
    start_pair();
    role_spawn(&s, &x);
    role_call(&x, call_watch_with, &a);
    role_call(&x, call_stash_first, NULL);
    role_call(&w, call_unwatch, &a);
    stage_forget(&s);
    stop(&a);
    stage_expect(&s, "x=7");
    CHECK(has_stashed);
    stage_end(&s);
}

static fk_err call_watch_otherwise(fk_ctx *ctx, void *arg)
{
    const role *other = arg;
    CHECK_ERR(fk_watch_with(ctx, other->ref, FK_MSG(num, 8)), FK_E_STATE);
    return FK_OK;
}

TEST(b46_second_watch_with_another_message_is_an_error)
{
    role x = { .name = "x", .is_quiet = true };
    start_pair();
    role_spawn(&s, &x);
    role_call(&x, call_watch_with, &a);      /* with another message */
    role_call(&w, call_watch_otherwise, &a); /* with one instead of none */
    stage_forget(&s);
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 0);
    stop(&a);
    rig_run(&s.r);
    CHECK(strstr(s.diary, "x=7") != NULL); /* the first holds */
    CHECK(strstr(s.diary, "w!/user/a") != NULL);
    stage_end(&s);
}

/* ---- the end of an actor --------------------------------------------------------------------------------- */

TEST(b47_children_stop_first_and_the_parents_hook_runs_after_theirs)
{
    role leaf = { .name = "leaf" }, low = { .name = "low", .child = { &leaf } };
    role top = { .name = "top", .child = { &low } };
    start_with(PEKKO);
    role_spawn(&s, &top);
    stage_forget(&s);
    stop(&top);
    stage_expect(&s, "leaf.stop low.stop top.stop");
    stage_end(&s);
}

TEST(b48_messages_left_at_the_end_are_dead_letters_with_sender_and_recipient)
{
    char path[STAGE_PATH];
    start_pair();
    CHECK_OK(fk_poison(s.r.sys, a.ref));
    CHECK_OK(fk_send_from(s.r.sys, a.ref, w.ref, FK_MSG(num, 6)));
    rig_run(&s.r);
    CHECK_U64(s.r.letters.count, 1);
    CHECK(fk_ref_equal(s.r.letters.last.to, a.ref));
    CHECK(fk_ref_equal(s.r.letters.last.sender, w.ref));
    CHECK_U64(((const num *)s.r.letters.last.data)->n, 6);
    stage_path(&s, s.r.letters.last.to, path);
    CHECK_STR(path, "/user/a");
    stage_end(&s);
}

/* ---- the end of a system --------------------------------------------------------------------------------- */

TEST(b50_killing_user_or_escalating_to_it_ends_the_system)
{
    fk_strategy escalating = { .decide = fk_decide_escalate };
    start_with(PEKKO);
    CHECK_OK(fk_kill(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_USER)));
    rig_run(&s.r);
    CHECK(is_down());
    stage_end(&s);
    start_with((fk_system_config){ .user_strategy = &escalating });
    a = (role){ .name = "a" };
    role_spawn(&s, &a);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(is_down());
    stage_end(&s);
}

static fk_err silent_hook(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (FK_AS(fk_termination_hook, msg) == NULL) return doer_receive(ctx, NULL, msg);
    stage_note(&s, "asked");
    return FK_OK;
}

static fk_err register_hook(fk_ctx *ctx, void *state)
{
    (void)state;
    return fk_hook_register(ctx, 0);
}

static fk_err call_done(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_hook_done(ctx);
}

TEST(b51_end_waits_until_every_hook_has_answered_or_died)
{
    static const fk_props HOOK = { .receive = silent_hook, .start = register_hook };
    fk_boot *boot = NULL;
    fk_ref answers, dies;
    stage_init(&s);
    fk_system_config config = stage_config(&s, PEKKO);
    CHECK_OK(fk_boot_create(&config, &boot));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL));
    CHECK_OK(fk_boot_extra(boot, FK_STR("answers"), &HOOK, &answers));
    CHECK_OK(fk_boot_extra(boot, FK_STR("dies"), &HOOK, &dies));
    CHECK_OK(fk_boot_finish(boot, &s.r.sys, NULL));
    stage_forget(&s);
    CHECK_OK(fk_terminate(s.r.sys));
    stage_expect(&s, "asked asked");
    CHECK(!is_down());
    rig_do(&s.r, answers, call_done, NULL);
    CHECK(!is_down());
    CHECK_OK(fk_stop(s.r.sys, dies));
    rig_run(&s.r);
    CHECK(is_down());
    stage_end(&s);
}

static void farewell(void *user, fk_system *sys)
{
    /* Not from here: but it is not over yet. */
    CHECK(fk_is_alive(sys, fk_guardian(sys, FK_GUARDIAN_ROOT)));
    stage_note(&s, "%s", (const char *)user);
}

TEST(b52_callbacks_of_the_end_run_in_reverse_order_before_it_is_over)
{
    char first[] = "first", second[] = "second";
    start_with(PEKKO);
    CHECK_OK(fk_on_termination(s.r.sys, farewell, first));
    CHECK_OK(fk_on_termination(s.r.sys, farewell, second));
    CHECK_OK(fk_terminate(s.r.sys));
    stage_expect(&s, "second first");
    CHECK_ERR(fk_on_termination(s.r.sys, farewell, first), FK_E_STOPPING);
    stage_end(&s);
}

static void *spawn_until_refused(void *arg)
{
    fk_ref ref;
    (void)arg;
    while (fk_spawn(s.r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref) == FK_OK) {
    }
    for (int i = 0; i < 100; i++) { /* once it fails, it fails for ever */
        CHECK_ERR(fk_spawn(s.r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref),
                  FK_E_STOPPING);
    }
    return NULL;
}

TEST(b53_creation_during_the_end_fails_and_then_always_does)
{
    pthread_t thread;
    stage_start_with(&s, (fk_system_config){ .workers = 2 });
    CHECK_U64(pthread_create(&thread, NULL, spawn_until_refused, NULL), 0);
    test_sleep_ms(5);
    CHECK_OK(fk_terminate(s.r.sys));
    pthread_join(thread, NULL);
    CHECK_OK(fk_await_termination(s.r.sys, FK_SECONDS(20)));
    stage_end(&s);
}

TEST(b54_strategy_of_the_user_guardian_can_be_configured)
{
    fk_strategy stopping = { .decide = fk_decide_stop };
    start_with((fk_system_config){ .user_strategy = &stopping });
    a = (role){ .name = "a", .is_quiet = true };
    role_spawn(&s, &a);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(!role_is_alive(&a));
    CHECK(!fk_is_terminating(s.r.sys));
    stage_end(&s);
}

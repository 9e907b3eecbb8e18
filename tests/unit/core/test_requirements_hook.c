/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The protocol of termination hooks, and the states of /system: requirements of 002. */

#include <string.h>

#include "fraktor/boot.h"
#include "support/stage.h"

static stage s;

/* What a hook does when it is told. */
typedef struct hook {
    const char *name;
    fk_time deadline; /* that it asks for */
    fk_time told;     /* that it was told */
    fk_ref ref;
    bool is_silent, stops, registers_late;
    int asked;
} hook;

static fk_err hook_start(fk_ctx *ctx, void *state)
{
    hook *h = state;
    h->ref = fk_self(ctx);
    return h->registers_late ? FK_OK : fk_hook_register(ctx, h->deadline);
}

static fk_err hook_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    hook *h = state;
    const fk_termination_hook *ask = FK_AS(fk_termination_hook, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (ask == NULL) return fk_unhandled(ctx, msg);
    CHECK(!fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_USER)));
    CHECK(fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_SYSTEM)));
    h->told = ask->deadline;
    h->asked++;
    stage_note(&s, "%s.asked", h->name);
    if (h->stops) fk_stop_self(ctx);
    return h->is_silent ? FK_OK : fk_hook_done(ctx);
}

static void hook_stop(fk_ctx *ctx, void *state)
{
    const hook *h = state;
    (void)ctx;
    stage_note(&s, "%s.stop", h->name);
}

/* A system with these beside its guardians. */
static void start(hook *hooks, size_t count)
{
    fk_boot *boot = NULL;
    stage_init(&s);
    fk_system_config config = stage_config(&s, (fk_system_config){ 0 });
    CHECK_OK(fk_boot_create(&config, &boot));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL));
    for (size_t i = 0; i < count; i++) {
        fk_props props = {
            .receive = hook_receive, .start = hook_start, .stop = hook_stop, .state = &hooks[i]
        };
        CHECK_OK(fk_boot_extra(boot, fk_str_of(hooks[i].name), &props, &hooks[i].ref));
    }
    CHECK_OK(fk_boot_finish(boot, &s.r.sys, NULL));
    stage_forget(&s);
}

static bool is_down(void)
{
    return !fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT));
}

static bool is_system_alive(void)
{
    return fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_SYSTEM));
}

static void terminate(void)
{
    CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
}

static fk_err call_done(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_hook_done(ctx);
}

static fk_err call_register(fk_ctx *ctx, void *arg)
{
    fk_time *deadline = arg;
    return fk_hook_register(ctx, deadline != NULL ? *deadline : 0);
}

TEST(r002_hooks_are_asked_after_user_and_answer_before_system_stops)
{
    role a = { .name = "user" };
    hook hooks[] = { { .name = "x" } };
    start(hooks, 1);
    role_spawn(&s, &a);
    stage_forget(&s);
    terminate();
    CHECK(is_down());
    stage_expect(&s, "user.stop x.asked x.stop");
    CHECK_U64((uint64_t)hooks[0].told, (uint64_t)FK_SECONDS(10)); /* the default */
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 0);
    stage_end(&s);
}

TEST(r002_system_waits_for_every_hook)
{
    hook hooks[] = { { .name = "x", .is_silent = true },
                     { .name = "y" },
                     { .name = "z", .is_silent = true } };
    start(hooks, 3);
    terminate();
    CHECK(is_system_alive());
    rig_do(&s.r, hooks[0].ref, call_done, NULL);
    CHECK(is_system_alive());
    rig_do(&s.r, hooks[0].ref, call_done, NULL); /* twice is once */
    CHECK(is_system_alive());
    rig_do(&s.r, hooks[2].ref, call_done, NULL);
    CHECK(is_down());
    for (int i = 0; i < 3; i++) CHECK_U64(hooks[i].asked, 1);
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 0);
    stage_end(&s);
}

TEST(r002_hook_that_does_not_answer_is_passed_over_with_a_warning)
{
    hook hooks[] = { { .name = "x", .is_silent = true, .deadline = FK_SECONDS(3) } };
    start(hooks, 1);
    terminate();
    CHECK_U64((uint64_t)hooks[0].told, (uint64_t)FK_SECONDS(3));
    rig_advance(&s.r, FK_SECONDS(3) - 1);
    CHECK(is_system_alive());
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 0);
    rig_pass(&s.r, FK_MILLIS(2));
    CHECK(is_down());
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 1);
    const stage_event *warning = stage_last(&s, FK_EVENT_HOOK);
    CHECK(fk_ref_equal(warning->actor, hooks[0].ref));
    CHECK(strstr(warning->reason, "passed over") != NULL);
    stage_end(&s);
}

TEST(r002_hook_that_is_late_does_not_shorten_the_time_of_others)
{
    hook hooks[] = { { .name = "x", .is_silent = true, .deadline = FK_SECONDS(1) },
                     { .name = "y", .is_silent = true, .deadline = FK_SECONDS(5) } };
    start(hooks, 2);
    terminate();
    rig_advance(&s.r, FK_SECONDS(2));
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 1);
    CHECK(is_system_alive());
    rig_do(&s.r, hooks[1].ref, call_done, NULL);
    CHECK(is_down());
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 1);
    stage_end(&s);
}

TEST(r002_hook_that_stops_instead_of_answering_has_answered)
{
    hook hooks[] = { { .name = "x", .is_silent = true, .stops = true } };
    start(hooks, 1);
    terminate();
    CHECK(is_down());
    CHECK_U64(hooks[0].asked, 1);
    CHECK(strstr(stage_last(&s, FK_EVENT_HOOK)->reason, "stopped") != NULL);
    stage_end(&s);
}

TEST(r002_hook_that_stopped_early_is_not_waited_for)
{
    hook hooks[] = { { .name = "x", .is_silent = true } };
    start(hooks, 1);
    CHECK_OK(fk_stop(s.r.sys, hooks[0].ref));
    rig_run(&s.r);
    CHECK(!fk_is_terminating(s.r.sys));
    CHECK_U64(stage_count(&s, FK_EVENT_HOOK), 1); /* but noticed */
    terminate();
    CHECK(is_down());
    CHECK_U64(hooks[0].asked, 0);
    stage_end(&s);
}

TEST(r002_hook_of_a_user_actor_ends_with_it)
{
    hook h = { .name = "x" };
    fk_ref ref;
    start(NULL, 0);
    fk_props props = {
        .receive = hook_receive, .start = hook_start, .stop = hook_stop, .state = &h
    };
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("x"), &props, &ref));
    stage_forget(&s);
    terminate();
    CHECK(is_down());
    stage_expect(&s, "x.stop"); /* /user has gone, and it with /user */
    stage_end(&s);
}

TEST(r002_hook_registered_while_ending_is_asked_at_once)
{
    hook hooks[] = { { .name = "x", .is_silent = true }, { .name = "y", .registers_late = true } };
    start(hooks, 2);
    terminate();
    CHECK_U64(hooks[1].asked, 0);
    rig_do(&s.r, hooks[1].ref, call_register, NULL);
    CHECK_U64(hooks[1].asked, 1);
    CHECK(is_system_alive()); /* for the other one */
    rig_do(&s.r, hooks[0].ref, call_done, NULL);
    CHECK(is_down());
    stage_end(&s);
}

TEST(r002_hook_registered_twice_is_asked_once)
{
    hook hooks[] = { { .name = "x" } };
    start(hooks, 1);
    rig_do(&s.r, hooks[0].ref, call_register, NULL);
    terminate();
    CHECK_U64(hooks[0].asked, 1);
    CHECK(is_down());
    stage_end(&s);
}

TEST(r002_hook_can_change_its_mind_before_the_end)
{
    hook hooks[] = { { .name = "x", .is_silent = true } };
    start(hooks, 1);
    rig_do(&s.r, hooks[0].ref, call_done, NULL);
    terminate();
    CHECK(is_down());
    CHECK_U64(hooks[0].asked, 0);
    stage_end(&s);
}

static fk_err call_register_badly(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK_ERR(fk_hook_register(ctx, -1), FK_E_INVALID);
    return FK_OK;
}

TEST(r002_hook_deadline_must_not_be_negative)
{
    hook hooks[] = { { .name = "x", .registers_late = true } };
    start(hooks, 1);
    rig_do(&s.r, hooks[0].ref, call_register_badly, NULL);
    terminate();
    CHECK(is_down());
    CHECK_U64(hooks[0].asked, 0);
    stage_end(&s);
}

TEST(r002_terminate_now_does_not_ask_hooks)
{
    hook hooks[] = { { .name = "x", .is_silent = true } };
    start(hooks, 1);
    CHECK_OK(fk_terminate_now(s.r.sys));
    rig_run(&s.r);
    CHECK(is_down());
    stage_expect(&s, "x.stop");
    stage_end(&s);
}

TEST(r002_terminate_now_while_hooks_are_awaited_ends_the_wait)
{
    hook hooks[] = { { .name = "x", .is_silent = true } };
    start(hooks, 1);
    terminate();
    CHECK(is_system_alive());
    CHECK_OK(fk_terminate_now(s.r.sys));
    rig_run(&s.r);
    CHECK(is_down());
    stage_expect_steps(&s, "running>stopping_user stopping_user>hooks hooks>stopping_root "
                           "stopping_root>terminated");
    stage_end(&s);
}

/* Running, Terminating, Stopped. */
TEST(r002_system_guardian_goes_through_its_states_once)
{
    hook hooks[] = { { .name = "x", .is_silent = true } };
    start(hooks, 1);
    terminate();
    stage_expect_steps(&s, "running>stopping_user stopping_user>hooks");
    CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    CHECK_U64(hooks[0].asked, 1);
    rig_do(&s.r, hooks[0].ref, call_done, NULL);
    stage_expect_steps(&s, "running>stopping_user stopping_user>hooks hooks>stopping_system "
                           "stopping_system>stopping_root stopping_root>terminated");
    stage_end(&s);
}

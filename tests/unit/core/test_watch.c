/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Death watch: exactly one word about every end. */

#include <string.h>

#include "support/stage.h"

static stage s;

/* Two actors, a and w, that write only what they are told. */
static role a, w;

static void start(void)
{
    a = (role){ .name = "a", .is_quiet = true };
    w = (role){ .name = "w", .is_quiet = true };
    stage_start(&s);
    role_spawn(&s, &a);
    role_spawn(&s, &w);
    stage_forget(&s);
}

static void stop(const role *who)
{
    CHECK_OK(fk_stop(s.r.sys, who->ref));
}

/* Calls that note what came of them. */
typedef struct attempt {
    fk_ref actor;
    fk_err err;
    _Atomic int *drops;
} attempt;

static fk_err call_watch(fk_ctx *ctx, void *arg)
{
    attempt *t = arg;
    t->err = fk_watch(ctx, t->actor);
    return FK_OK;
}

static fk_err call_unwatch(fk_ctx *ctx, void *arg)
{
    attempt *t = arg;
    t->err = fk_unwatch(ctx, t->actor);
    return FK_OK;
}

static fk_err call_watch_with(fk_ctx *ctx, void *arg)
{
    attempt *t = arg;
    t->err = fk_watch_with(ctx, t->actor, FK_MSG(num, 5));
    return FK_OK;
}

static fk_err call_watch_with_owned(fk_ctx *ctx, void *arg)
{
    attempt *t = arg;
    owned m = { t->drops, 1 };
    t->err = fk_watch_with(ctx, t->actor, (fk_out){ &fk_type_owned, &m });
    return FK_OK;
}

static fk_err attempt_by(role *who, rig_call_fn fn, fk_ref actor)
{
    attempt t = { actor, FK_E_FAILED, NULL };
    role_call(who, fn, &t);
    rig_run(&s.r);
    return t.err;
}

TEST(watch_tells_once_when_the_other_stops)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stage_expect(&s, "");
    stop(&a);
    stage_expect(&s, "w!/user/a");
    rig_run(&s.r);
    stage_expect(&s, "");
    stage_end(&s);
}

TEST(watch_twice_tells_once)
{
    start();
    for (int i = 0; i < 3; i++) CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stop(&a);
    stage_expect(&s, "w!/user/a");
    stage_end(&s);
}

TEST(watch_of_the_dead_answers_at_once_and_every_time)
{
    start();
    stop(&a);
    rig_run(&s.r);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(attempt_by(&w, call_watch, a.ref));
        stage_expect(&s, "w!/user/a?");
    }
    stage_end(&s);
}

TEST(watch_of_nobody_and_of_made_up_references_answers_at_once)
{
    /* The last ones are like cells that have no actor. */
    fk_ref made_up[] = {
        FK_REF_NONE, { 1234567, 9, 0 }, { 3, 4001, 0 }, { 0, 0, 0 }, { 200, 0, 0 }
    };
    start();
    for (size_t i = 0; i < 5; i++) {
        if (i != 0) made_up[i].system = a.ref.system;
        CHECK_OK(attempt_by(&w, call_watch, made_up[i]));
        stage_expect(&s, "w!?");
        CHECK_ERR(attempt_by(&w, call_unwatch, made_up[i]), FK_E_NOT_FOUND);
    }
    stage_end(&s);
}

TEST(watch_oneself_is_fine_and_says_nothing)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, w.ref));
    CHECK_OK(attempt_by(&w, call_watch_with, w.ref));
    CHECK_ERR(attempt_by(&w, call_unwatch, w.ref), FK_E_NOT_FOUND);
    stop(&w);
    stage_expect(&s, "");
    stage_end(&s);
}

TEST(unwatch_before_the_end_says_nothing)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    CHECK_OK(attempt_by(&w, call_unwatch, a.ref));
    CHECK_ERR(attempt_by(&w, call_unwatch, a.ref), FK_E_NOT_FOUND);
    stop(&a);
    stage_expect(&s, "");
    stage_end(&s);
}

/* The notice is in the mailbox, behind this call. */
TEST(unwatch_after_the_end_but_before_the_word_says_nothing)
{
    attempt t = { FK_REF_NONE, FK_E_FAILED, NULL };
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stop(&a);
    t.actor = a.ref;
    role_call(&w, call_unwatch, &t);
    while (role_is_alive(&a)) CHECK(fk_host_run_once(s.r.sys, 0) > 0);
    stage_expect(&s, "");
    CHECK_OK(t.err);
    stage_end(&s);
}

TEST(watch_again_after_unwatch_works)
{
    start();
    for (int i = 0; i < 5; i++) {
        CHECK_OK(attempt_by(&w, call_watch, a.ref));
        CHECK_OK(attempt_by(&w, call_unwatch, a.ref));
    }
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stop(&a);
    stage_expect(&s, "w!/user/a");
    stage_end(&s);
}

TEST(all_watchers_and_only_those_are_told)
{
    role more[4];
    static const char *const NAMES[] = { "m0", "m1", "m2", "m3" };
    start();
    for (int i = 0; i < 4; i++) {
        more[i] = (role){ .name = NAMES[i], .is_quiet = true };
        role_spawn(&s, &more[i]);
        CHECK_OK(attempt_by(&more[i], call_watch, a.ref));
    }
    CHECK_OK(attempt_by(&more[1], call_unwatch, a.ref));
    stop(&more[2]);
    rig_run(&s.r);
    stop(&a);
    rig_run(&s.r);
    CHECK(strstr(s.diary, "m0!/user/a") != NULL);
    CHECK(strstr(s.diary, "m3!/user/a") != NULL);
    CHECK_U64(strlen(s.diary), 2 * strlen("m0!/user/a") + 1);
    stage_end(&s);
}

static fk_err tell_then_stop(fk_ctx *ctx, void *arg)
{
    const role *to = arg;
    for (uint64_t i = 1; i <= 3; i++) CHECK_OK(fk_tell(ctx, to->ref, FK_MSG(num, i)));
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(word_comes_behind_all_that_the_dead_had_sent)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    role_call(&a, tell_then_stop, &w);
    stage_expect(&s, "w=1 w=3 w=6 w!/user/a");
    stage_end(&s);
}

TEST(word_reaches_a_bounded_mailbox_that_is_full)
{
    probe p;
    fk_ref bounded;
    start();
    fk_props props = probe_props(&p);
    props.receive = doer_receive;
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 1;
    props.start = NULL;
    props.stop = NULL;
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("b"), &props, &bounded));
    attempt t = { a.ref, FK_E_FAILED, NULL };
    rig_do(&s.r, bounded, call_watch, &t);
    CHECK_OK(t.err);
    CHECK_OK(fk_send(s.r.sys, bounded, FK_MSG(num, 1)));
    CHECK_ERR(fk_send(s.r.sys, bounded, FK_MSG(num, 1)), FK_E_FULL);
    stop(&a);
    rig_run(&s.r);
    /* A doer does not handle it: a death pact, which shows that it was there. */
    CHECK_ERR(s.r.failures.last.err, FK_E_DEATH_PACT);
    CHECK(!fk_is_alive(s.r.sys, bounded));
    stage_end(&s);
}

TEST(terminated_that_nobody_handles_is_a_death_pact)
{
    role other = { .name = "other", .is_quiet = true };
    fk_ref doer;
    start();
    role_spawn(&s, &other);
    doer = doer_spawn(&s.r);
    attempt t = { a.ref, FK_E_FAILED, NULL };
    rig_do(&s.r, doer, call_watch, &t);
    CHECK_OK(attempt_by(&other, call_watch, doer));
    stop(&a);
    rig_run(&s.r);
    CHECK(!fk_is_alive(s.r.sys, doer));
    CHECK_ERR(stage_last(&s, FK_EVENT_FAILED)->err, FK_E_DEATH_PACT);
    stage_expect(&s, "other!/user/$a"); /* its own watchers are told */
    stage_end(&s);
}

/* ---- with a message of one's own --------------------------------------------------------------------- */

TEST(watch_with_tells_by_that_message)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch_with, a.ref));
    stop(&a);
    stage_expect(&s, "w=5");
    CHECK_ERR(attempt_by(&w, call_unwatch, a.ref), FK_E_NOT_FOUND);
    stage_end(&s);
}

TEST(watch_with_another_message_is_refused)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch_with, a.ref));
    CHECK_ERR(attempt_by(&w, call_watch_with, a.ref), FK_E_STATE);
    CHECK_ERR(attempt_by(&w, call_watch, a.ref), FK_E_STATE);
    CHECK_OK(attempt_by(&w, call_unwatch, a.ref));
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    CHECK_ERR(attempt_by(&w, call_watch_with, a.ref), FK_E_STATE);
    stop(&a);
    stage_expect(&s, "w!/user/a");
    stage_end(&s);
}

/* Taken, whatever becomes of it. */
TEST(watch_with_drops_its_message_exactly_once)
{
    _Atomic int drops = 0;
    attempt t = { FK_REF_NONE, FK_E_FAILED, &drops };
    start();
    t.actor = a.ref;
    role_call(&w, call_watch_with_owned, &t);
    rig_run(&s.r);
    CHECK_OK(t.err);
    role_call(&w, call_watch_with_owned, &t);
    rig_run(&s.r);
    CHECK_ERR(t.err, FK_E_STATE);
    CHECK_U64(atomic_load(&drops), 1); /* the refused one */
    t.actor = w.ref;
    role_call(&w, call_watch_with_owned, &t);
    rig_run(&s.r);
    CHECK_U64(atomic_load(&drops), 2); /* oneself */
    CHECK_OK(attempt_by(&w, call_unwatch, a.ref));
    CHECK_U64(atomic_load(&drops), 3);
    t.actor = a.ref;
    role_call(&w, call_watch_with_owned, &t);
    rig_run(&s.r);
    stop(&a);
    rig_run(&s.r);
    CHECK_U64(atomic_load(&drops), 4); /* told, and not handled */
    CHECK_U64(s.r.letters.of[FK_REASON_UNHANDLED], 1);
    stage_end(&s);
    CHECK_U64(atomic_load(&drops), 4);
}

/* ---- stash, forgery --------------------------------------------------------------------------------- */

static int stash_left;

static fk_err stash_first(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type == &fk_type_rig_call) return player_receive(ctx, state, msg);
    if (stash_left-- > 0) {
        stage_note(&s, "stashed");
        CHECK_OK(fk_stash(ctx));
        return fk_unstash_all(ctx);
    }
    return player_receive(ctx, state, msg);
}

static fk_err call_stash_mode(fk_ctx *ctx, void *arg)
{
    stash_left = *(int *)arg;
    return fk_become(ctx, stash_first);
}

static void watch_through_stash(rig_call_fn watch, const char *expected)
{
    int times = 2;
    start();
    role_call(&w, call_stash_mode, &times);
    CHECK_OK(attempt_by(&w, watch, a.ref));
    stop(&a);
    stage_expect(&s, expected);
    stage_end(&s);
}

TEST(terminated_can_be_stashed)
{
    watch_through_stash(call_watch, "stashed stashed w!/user/a");
}

TEST(watch_with_can_be_stashed)
{
    watch_through_stash(call_watch_with, "stashed stashed w=5");
}

TEST(terminated_in_the_stash_is_not_a_dead_letter)
{
    int times = 1000;
    start();
    role_call(&w, call_stash_mode, &times);
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stash_left = 1;
    stop(&a);
    rig_run(&s.r);
    stage_end(&s);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(s.r.letters.of[i], 0);
}

TEST(forged_terminated_is_refused)
{
    fk_terminated lie = { .actor = FK_REF_NONE, .existence_confirmed = true };
    start();
    lie.actor = a.ref;
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    CHECK_ERR(fk_send(s.r.sys, w.ref, (fk_out){ &fk_type_fk_terminated, &lie }), FK_E_INVALID);
    CHECK_ERR(fk_send_from(s.r.sys, w.ref, a.ref, (fk_out){ &fk_type_fk_terminated, &lie }),
              FK_E_INVALID);
    CHECK_ERR(fk_send(s.r.sys, w.ref, FK_MSG(fk_terminated, a.ref, true, false)), FK_E_INVALID);
    fk_payload *payload = NULL;
    CHECK_ERR(fk_payload_create(s.r.sys, &fk_type_fk_terminated, sizeof(lie), &payload),
              FK_E_INVALID);
    stage_expect(&s, "");
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 0); /* nor a death pact */
    stop(&a);
    stage_expect(&s, "w!/user/a"); /* the true one */
    stage_end(&s);
}

/* ---- ends on both sides -------------------------------------------------------------------------------- */

TEST(watcher_that_stops_first_leaves_nothing)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    stop(&w);
    rig_run(&s.r);
    stop(&a);
    stage_expect(&s, "");
    stage_end(&s); /* and not a byte */
}

TEST(watchers_of_each_other_stop_together)
{
    start();
    CHECK_OK(attempt_by(&w, call_watch, a.ref));
    CHECK_OK(attempt_by(&a, call_watch, w.ref));
    stop(&a);
    stop(&w);
    rig_run(&s.r);
    stage_end(&s);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(s.r.letters.of[i], 0);
}

static fk_err watch_in_stop_err;

static void watch_in_stop(fk_ctx *ctx, role *self)
{
    (void)self;
    watch_in_stop_err = fk_watch(ctx, a.ref);
}

TEST(watch_in_a_stop_hook_leaves_nothing)
{
    role late = { .name = "late", .on_stop = watch_in_stop, .is_quiet = true };
    start();
    role_spawn(&s, &late);
    watch_in_stop_err = FK_E_FAILED;
    stop(&late);
    rig_run(&s.r);
    CHECK_OK(watch_in_stop_err);
    stop(&a);
    stage_expect(&s, "");
    stage_end(&s);
}

static fk_err respawn(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *child = state;
    if (msg->type == &fk_type_rig_call) return doer_receive(ctx, NULL, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    CHECK(end != NULL);
    CHECK(fk_ref_equal(end->actor, *child));
    CHECK_OK(fk_spawn_child(ctx, FK_STR("c"), &(fk_props){ .receive = doer_receive }, child));
    return fk_watch(ctx, *child);
}

static fk_err have_child(fk_ctx *ctx, void *arg)
{
    fk_ref *child = arg;
    CHECK_OK(fk_spawn_child(ctx, FK_STR("c"), &(fk_props){ .receive = doer_receive }, child));
    return fk_watch(ctx, *child);
}

TEST(name_of_a_child_is_free_when_its_parent_is_told)
{
    fk_ref child = FK_REF_NONE, parent;
    stage_start(&s);
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("p"), &(fk_props){ .receive = respawn, .state = &child },
                      &parent));
    rig_do(&s.r, parent, have_child, &child);
    for (int i = 0; i < 10; i++) {
        fk_ref before = child;
        CHECK_OK(fk_stop(s.r.sys, child));
        rig_run(&s.r);
        CHECK(!fk_ref_equal(before, child));
        CHECK(fk_is_alive(s.r.sys, child));
    }
    stage_end(&s);
}

TEST(watch_of_another_systems_actor_is_refused)
{
    rig other;
    start();
    rig_start(&other);
    fk_ref foreign = doer_spawn(&other);
    CHECK_ERR(attempt_by(&w, call_watch, foreign), FK_E_FOREIGN);
    rig_stop(&other);
    stage_end(&s);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a runtime like Pekko must do, B55 to B62: stash, time and mailboxes. See
 * test_pekko_behaviours_name.c, also for the numbers that are missing here. */

#include "support/stage.h"

static stage s;
static role a;

static void start(void)
{
    stage_start_with(&s, (fk_system_config){ .paths = { .rules = FK_RULES_PEKKO } });
    a = (role){ .name = "a", .is_quiet = true };
    role_spawn(&s, &a);
    stage_forget(&s);
}

/* ---- stash --------------------------------------------------------------------------------------------- */

/* Sets texts aside until a number comes. */
static fk_err closed(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type == &fk_type_text) return fk_stash(ctx);
    if (msg->type != &fk_type_num) return player_receive(ctx, state, msg);
    CHECK_OK(fk_unbecome(ctx));
    return fk_unstash_all(ctx);
}

static fk_err call_close(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_become(ctx, closed);
}

static void send_text(const char *text)
{
    CHECK_OK(fk_send(s.r.sys, a.ref, FK_TEXT_AT(fk_str_of(text))));
}

TEST(b55_unstash_keeps_the_order_comes_before_newer_mail_and_works_after_a_restart)
{
    start();
    for (int round = 0; round < 2; round++) {
        role_call(&a, call_close, NULL);
        send_text("1");
        send_text("2");
        role_send(&a, 1);
        send_text("3");
        stage_expect(&s, "a:1 a:2 a:3");
        role_fail(&a, FK_E_INVALID);
    }
    role_call(&a, call_close, NULL);
    send_text("kept");
    role_fail(&a, FK_E_INVALID);
    send_text("newer");
    stage_expect(&s, "a:kept a:newer");
    stage_end(&s);
}

static fk_err twice_err;

static fk_err stash_twice(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_err err = fk_stash(ctx);
    twice_err = fk_stash(ctx);
    return err;
}

TEST(b56_stashing_a_message_twice_fails_and_so_does_an_overflow)
{
    fk_ref ref;
    start();
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("s"), &(fk_props){ .receive = stash_twice, .stash_max = 1 },
                      &ref));
    CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 1)));
    rig_run(&s.r);
    CHECK_ERR(twice_err, FK_E_STATE);
    CHECK_U64(s.r.failures.count, 0);
    CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 2)));
    rig_run(&s.r);
    CHECK_U64(s.r.failures.count, 1); /* it hands on what the second stash says */
    CHECK_ERR(s.r.failures.last.err, FK_E_FULL);
    stage_end(&s);
}

/* ---- time ----------------------------------------------------------------------------------------------- */

static fk_err timed(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (msg->type != &fk_type_receive_timeout) return player_receive(ctx, state, msg);
    stage_note(&s, "timeout");
    return FK_OK;
}

static fk_err call_timeout(fk_ctx *ctx, void *arg)
{
    const fk_time *timeout = arg;
    CHECK_OK(fk_receive_timeout_set(ctx, *timeout));
    return *timeout != 0 ? fk_become(ctx, timed) : FK_OK;
}

TEST(b57_receive_timeout_fires_after_quiet_is_put_off_by_messages_and_can_be_turned_off)
{
    fk_time ten = FK_MILLIS(10), off = 0;
    start();
    role_call(&a, call_timeout, &ten);
    rig_pass(&s.r, FK_MILLIS(12));
    stage_expect(&s, "timeout");
    for (int i = 0; i < 5; i++) {
        rig_pass(&s.r, FK_MILLIS(6));
        role_send(&a, 0);
    }
    stage_expect(&s, "a=0 a=0 a=0 a=0 a=0");
    rig_pass(&s.r, FK_MILLIS(25));
    stage_expect(&s, "timeout timeout");
    role_call(&a, call_timeout, &off);
    rig_pass(&s.r, FK_MILLIS(50));
    stage_expect(&s, "");
    stage_end(&s);
}

static fk_err call_timer(fk_ctx *ctx, void *arg)
{
    const num *value = arg;
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(5), FK_MSG(num, value->n));
}

TEST(b58_timer_that_is_replaced_never_arrives_even_when_it_is_in_the_mailbox)
{
    num one = { 1 }, two = { 2 };
    start();
    role_call(&a, call_timer, &one);
    rig_run(&s.r);
    atomic_fetch_add(&s.r.now, FK_MILLIS(6)); /* the old one is due */
    role_call(&a, call_timer, &two);
    rig_run(&s.r);
    rig_pass(&s.r, FK_MILLIS(20));
    stage_expect(&s, "a=2");
    stage_end(&s);
}

static fk_err call_rate(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_timer_start(ctx, 2, FK_TIMER_FIXED_RATE, FK_MILLIS(2), FK_MSG(num, 1));
}

static fk_err call_cancel(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK_OK(fk_timer_cancel(ctx, 1));
    CHECK_ERR(fk_timer_cancel(ctx, 1), FK_E_NOT_FOUND);
    return FK_OK;
}

TEST(b59_timers_are_never_early_cancel_wins_and_repetition_ends_with_the_actor)
{
    num one = { 1 };
    fk_stats stats;
    start();
    role_call(&a, call_timer, &one);
    rig_run(&s.r);
    rig_advance(&s.r, FK_MILLIS(5) - 1);
    stage_expect(&s, "");
    rig_pass(&s.r, FK_MILLIS(2));
    stage_expect(&s, "a=1");
    role_call(&a, call_timer, &one);
    role_call(&a, call_cancel, NULL);
    rig_pass(&s.r, FK_MILLIS(20));
    stage_expect(&s, "");
    role_call(&a, call_rate, NULL);
    rig_run(&s.r);
    rig_pass(&s.r, FK_MILLIS(5));
    stage_expect(&s, "a=2 a=3");
    CHECK_OK(fk_stop(s.r.sys, a.ref));
    rig_pass(&s.r, FK_MILLIS(20));
    stage_expect(&s, "");
    fk_stats_get(s.r.sys, &stats);
    CHECK_U64(stats.timers, 0);
    CHECK_U64(s.r.letters.count, 0);
    stage_end(&s);
}

/* ---- mailboxes -------------------------------------------------------------------------------------------- */

static int64_t by_tens(const fk_msg *msg)
{
    const num *value = FK_AS(num, msg);
    return value != NULL ? (int64_t)(value->n / 10) : 0;
}

static int64_t tens_are_control(const fk_msg *msg)
{
    const num *value = FK_AS(num, msg);
    return value != NULL && value->n >= 10 ? -1 : 0;
}

static void check_order(fk_props props, const uint64_t *sent, const uint64_t *expected,
                        size_t count)
{
    probe p;
    fk_ref ref;
    start();
    fk_props own = probe_props(&p);
    own.mailbox = props.mailbox;
    own.priority = props.priority;
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("m"), &own, &ref));
    for (size_t i = 0; i < count; i++) CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, sent[i])));
    rig_run(&s.r);
    CHECK_U64(p.count, count);
    for (size_t i = 0; i < count; i++) CHECK_U64(p.n[i], expected[i]);
    stage_end(&s);
}

TEST(b62_bounded_overflow_is_a_dead_letter)
{
    probe p;
    fk_ref ref;
    start();
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 2;
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("m"), &props, &ref));
    rig_run(&s.r);
    CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 1)));
    CHECK_OK(fk_send(s.r.sys, ref, FK_MSG(num, 2)));
    CHECK_ERR(fk_send(s.r.sys, ref, FK_MSG(num, 3)), FK_E_FULL);
    rig_run(&s.r);
    CHECK_U64(p.count, 2);
    CHECK_U64(s.r.letters.of[FK_REASON_FULL], 1);
    stage_end(&s);
}

TEST(b62_control_messages_overtake_and_stable_priority_keeps_the_order_of_equals)
{
    static const uint64_t SENT[] = { 1, 2, 11, 3, 12 }, CONTROL[] = { 11, 12, 1, 2, 3 };
    static const uint64_t MIXED[] = { 21, 11, 1, 22, 12, 2 }, STABLE[] = { 1, 2, 11, 12, 21, 22 };
    check_order((fk_props){ .mailbox = FK_MAILBOX_CONTROL, .priority = tens_are_control }, SENT,
                CONTROL, 5);
    check_order((fk_props){ .mailbox = FK_MAILBOX_STABLE, .priority = by_tens }, MIXED, STABLE, 6);
}

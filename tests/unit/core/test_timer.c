/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Timers of actors, on a clock that the test moves. */

#include "support/rig.h"

enum { TIMES = 64 };

/* An actor that does rig_calls and writes down when a num came. */
typedef struct clockwork {
    rig *r;
    size_t count;
    fk_time at[TIMES];
    uint64_t n[TIMES];
    size_t timeouts;
    fk_time work; /* how long handling a num takes */
    rig_call_fn on_num;
    void *arg;
    fk_ref self;
} clockwork;

static fk_err clockwork_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    clockwork *c = state;
    const rig_call *call = FK_AS(rig_call, msg);
    const num *value = FK_AS(num, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (msg->type == &fk_type_receive_timeout) {
        CHECK_U64(msg->len, 0);
        c->at[c->timeouts++ % TIMES] = fk_now(ctx);
        return FK_OK;
    }
    CHECK(value != NULL);
    CHECK(c->count < TIMES);
    c->n[c->count] = value->n;
    c->at[c->count++] = fk_now(ctx);
    atomic_fetch_add(&c->r->now, c->work);
    return c->on_num != NULL ? c->on_num(ctx, c->arg) : FK_OK;
}

static void clockwork_start(rig *r, clockwork *c)
{
    *c = (clockwork){ .r = r };
    rig_start(r);
    CHECK_OK(fk_spawn(r->sys, FK_STR(""),
                      &(fk_props){ .receive = clockwork_receive, .state = c, .throughput = 1 },
                      &c->self));
    rig_run(r);
}

typedef struct timer_args {
    uint64_t key;
    fk_timer_mode mode;
    fk_time period;
    uint64_t n;
    fk_err err;
} timer_args;

static fk_err do_start(fk_ctx *ctx, void *arg)
{
    timer_args *a = arg;
    a->err = fk_timer_start(ctx, a->key, a->mode, a->period, FK_MSG(num, a->n));
    return FK_OK;
}

static fk_err do_cancel(fk_ctx *ctx, void *arg)
{
    timer_args *a = arg;
    a->err = fk_timer_cancel(ctx, a->key);
    return FK_OK;
}

static fk_err do_ask(fk_ctx *ctx, void *arg)
{
    timer_args *a = arg;
    a->err = fk_timer_is_active(ctx, a->key) ? FK_OK : FK_E_NOT_FOUND;
    return FK_OK;
}

static fk_err do_timeout(fk_ctx *ctx, void *arg)
{
    timer_args *a = arg;
    a->err = fk_receive_timeout_set(ctx, a->period);
    return FK_OK;
}

static fk_err call(rig *r, const clockwork *c, rig_call_fn fn, timer_args *a)
{
    a->err = FK_E_FAILED;
    rig_do(r, c->self, fn, a);
    return a->err;
}

static uint64_t active_timers(rig *r)
{
    fk_stats stats;
    fk_stats_get(r->sys, &stats);
    return stats.timers;
}

#define TICK FK_NANOS(1 << 20)

static void check_on_time(fk_time at, fk_time due)
{
    CHECK(at >= due);                       /* never early */
    CHECK(at <= due + TICK + FK_MILLIS(1)); /* a tick, and a step of the test's clock */
}

TEST(timer_once_fires_once_and_on_time)
{
    static const fk_time DELAYS[] = {
        0, 1, FK_MICROS(300), FK_MILLIS(1), FK_MILLIS(7), FK_MILLIS(100), FK_SECONDS(3)
    };
    for (size_t i = 0; i < sizeof(DELAYS) / sizeof(DELAYS[0]); i++) {
        rig r;
        clockwork c;
        clockwork_start(&r, &c);
        timer_args a = { 1, FK_TIMER_ONCE, DELAYS[i], 9, FK_OK };
        fk_time began = atomic_load(&r.now);
        CHECK_OK(call(&r, &c, do_start, &a));
        CHECK_OK(call(&r, &c, do_ask, &a));
        CHECK_U64(active_timers(&r), 1);
        rig_pass(&r, DELAYS[i] + FK_MILLIS(10));
        CHECK_U64(c.count, 1);
        CHECK_U64(c.n[0], 9);
        check_on_time(c.at[0], began + DELAYS[i]);
        CHECK_ERR(call(&r, &c, do_ask, &a), FK_E_NOT_FOUND);
        CHECK_ERR(call(&r, &c, do_cancel, &a), FK_E_NOT_FOUND);
        CHECK_U64(active_timers(&r), 0);
        rig_stop(&r);
    }
}

static fk_err check_sender(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    if (FK_AS(num, msg) != NULL) {
        CHECK(fk_ref_equal(msg->sender, fk_self(ctx)));
        ++*(int *)state;
        return FK_OK;
    }
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(1), FK_MSG(num, 1));
}

TEST(timer_message_comes_from_the_actor_itself)
{
    rig r;
    int count = 0;
    fk_ref ref;
    rig_start(&r);
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = check_sender, .state = &count }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_TEXT("go")));
    rig_run(&r);
    rig_pass(&r, FK_MILLIS(5));
    CHECK_U64(count, 1);
    rig_stop(&r);
}

TEST(timer_fixed_rate_keeps_its_grid_and_skips_what_it_missed)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 1, FK_TIMER_FIXED_RATE, FK_MILLIS(10), 1, FK_OK };
    fk_time began = atomic_load(&r.now);
    CHECK_OK(call(&r, &c, do_start, &a));
    rig_pass(&r, FK_MILLIS(105));
    CHECK(c.count >= 9 && c.count <= 10);
    for (size_t i = 0; i < c.count; i++) {
        check_on_time(c.at[i], began + FK_MILLIS(10) * (fk_time)(i + 1));
    }
    size_t before = c.count;
    rig_advance(&r, FK_MILLIS(1000)); /* a hundred periods at once: one message */
    CHECK_U64(c.count, before + 1);
    rig_pass(&r, FK_MILLIS(25));
    CHECK(c.count >= before + 3 && c.count <= before + 4);
    for (size_t i = before + 1; i < c.count; i++) { /* still on the old grid */
        CHECK((c.at[i] - began) % FK_MILLIS(10) <= TICK + FK_MILLIS(1));
    }
    CHECK_OK(call(&r, &c, do_cancel, &a));
    before = c.count;
    rig_pass(&r, FK_MILLIS(50));
    CHECK_U64(c.count, before);
    rig_stop(&r);
}

TEST(timer_fixed_delay_begins_anew_when_the_message_was_handled)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    c.work = FK_MILLIS(7);
    timer_args a = { 1, FK_TIMER_FIXED_DELAY, FK_MILLIS(10), 1, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &a));
    rig_pass(&r, FK_MILLIS(100));
    CHECK(c.count >= 4);
    for (size_t i = 1; i < c.count; i++) check_on_time(c.at[i], c.at[i - 1] + FK_MILLIS(17));
    rig_stop(&r);
}

TEST(timer_of_the_same_key_replaces_the_old_one)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 5, FK_TIMER_ONCE, FK_MILLIS(10), 1, FK_OK };
    timer_args b = { 5, FK_TIMER_ONCE, FK_MILLIS(20), 2, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &a));
    CHECK_OK(call(&r, &c, do_start, &b));
    CHECK_U64(active_timers(&r), 1);
    rig_pass(&r, FK_MILLIS(50));
    CHECK_U64(c.count, 1);
    CHECK_U64(c.n[0], 2);
    rig_stop(&r);
}

TEST(timer_that_cannot_be_started_leaves_the_old_one)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args good = { 5, FK_TIMER_ONCE, FK_MILLIS(10), 1, FK_OK };
    timer_args negative = { 5, FK_TIMER_ONCE, -1, 2, FK_OK };
    timer_args zero = { 5, FK_TIMER_FIXED_RATE, 0, 3, FK_OK };
    timer_args mode = { 5, (fk_timer_mode)7, 1, 4, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &good));
    CHECK_ERR(call(&r, &c, do_start, &negative), FK_E_INVALID);
    CHECK_ERR(call(&r, &c, do_start, &zero), FK_E_INVALID);
    CHECK_ERR(call(&r, &c, do_start, &mode), FK_E_INVALID);
    rig_pass(&r, FK_MILLIS(20));
    CHECK_U64(c.count, 1);
    CHECK_U64(c.n[0], 1);
    rig_stop(&r);
}

static fk_err move_clock(fk_ctx *ctx, void *arg)
{
    rig *r = arg;
    (void)ctx;
    atomic_fetch_add(&r->now, FK_MILLIS(20));
    return FK_OK;
}

static fk_err do_nothing(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_OK;
}

/* The timer comes due when the first of many messages is handled, so that it fires while the others
 * are still waiting: its own message is in the mailbox, behind them and behind the cancel. */
static size_t cancel_late(bool cancels)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 1, FK_TIMER_ONCE, FK_MILLIS(5), 1, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &a));
    CHECK_OK(fk_send(r.sys, c.self, FK_MSG(rig_call, move_clock, &r)));
    for (int i = 0; i < 500; i++) {
        CHECK_OK(fk_send(r.sys, c.self, FK_MSG(rig_call, do_nothing, NULL)));
    }
    a.err = FK_E_FAILED;
    if (cancels) CHECK_OK(fk_send(r.sys, c.self, FK_MSG(rig_call, do_cancel, &a)));
    rig_run(&r);
    if (cancels) CHECK_OK(a.err); /* it was still there to be cancelled */
    size_t count = c.count;
    rig_pass(&r, FK_MILLIS(30));
    CHECK_U64(c.count, count);
    CHECK_U64(active_timers(&r), 0);
    rig_stop(&r);
    return count;
}

TEST(timer_cancelled_while_its_message_is_queued_never_arrives)
{
    CHECK_U64(cancel_late(false), 1);
    CHECK_U64(cancel_late(true), 0);
}

typedef struct again {
    fk_time period;
    uint64_t key;
    uint64_t seen_after;
    bool cancel;
} again;

static fk_err use_after_restart(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    again *a = state;
    const num *value = FK_AS(num, msg);
    if (value == NULL) {
        return fk_timer_start(ctx, a->key, FK_TIMER_FIXED_RATE, a->period, FK_MSG(num, 4242));
    }
    /* The message is lent until receive returns, whatever becomes of its timer. */
    if (a->cancel)
        CHECK_OK(fk_timer_cancel(ctx, a->key));
    else
        CHECK_OK(fk_timer_start(ctx, a->key, FK_TIMER_ONCE, a->period, FK_MSG(num, 1)));
    CHECK_OK(fk_tell(ctx, fk_parent(ctx), FK_MSG(num, 0x5555555555555555u)));
    CHECK_OK(fk_tell(ctx, fk_parent(ctx), FK_MSG(num, 0x5555555555555555u)));
    if (a->seen_after == 0) a->seen_after = value->n;
    return FK_OK;
}

TEST(timer_message_is_lent_until_receive_returns_even_if_its_timer_is_gone)
{
    for (int cancel = 0; cancel < 2; cancel++) {
        for (int direct = 0; direct < 2; direct++) {
            rig r;
            again a = { FK_MILLIS(5), 3, 0, cancel != 0 };
            fk_ref ref;
            rig_start_with(&r, (fk_system_config){ .pools_malloc = direct != 0 });
            CHECK_OK(fk_spawn(r.sys, FK_STR(""),
                              &(fk_props){ .receive = use_after_restart, .state = &a }, &ref));
            CHECK_OK(fk_send(r.sys, ref, FK_TEXT("go")));
            rig_run(&r);
            rig_pass(&r, FK_MILLIS(10));
            CHECK_U64(a.seen_after, 4242);
            rig_stop(&r);
        }
    }
}

TEST(timers_of_many_keys_are_independent)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    for (uint64_t key = 0; key < 60; key++) {
        timer_args a = { key * 0x100000001u, FK_TIMER_ONCE, FK_MILLIS(5 + (fk_time)key), key,
                         FK_OK };
        CHECK_OK(call(&r, &c, do_start, &a));
    }
    CHECK_U64(active_timers(&r), 60);
    for (uint64_t key = 0; key < 60; key += 3) {
        timer_args a = { key * 0x100000001u, FK_TIMER_ONCE, 0, 0, FK_OK };
        CHECK_OK(call(&r, &c, do_cancel, &a));
    }
    rig_pass(&r, FK_MILLIS(100));
    CHECK_U64(c.count, 40);
    for (size_t i = 0; i < c.count; i++) {
        CHECK(c.n[i] % 3 != 0);
        if (i > 0) CHECK(c.n[i - 1] < c.n[i]); /* in order of their time */
    }
    rig_stop(&r);
}

TEST(timers_end_with_their_actor)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 1, FK_TIMER_FIXED_RATE, FK_MILLIS(5), 1, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &a));
    CHECK_OK(fk_stop(r.sys, c.self));
    rig_run(&r);
    rig_pass(&r, FK_MILLIS(50));
    CHECK_U64(c.count, 0);
    CHECK_U64(r.letters.count, 0);
    CHECK_U64(active_timers(&r), 0);
    rig_stop(&r);
}

TEST(timer_far_in_the_future_is_no_burden_and_never_is_never)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args never = { 1, FK_TIMER_ONCE, FK_NEVER, 1, FK_OK };
    timer_args far = { 2, FK_TIMER_ONCE, FK_MINUTES(60) * 24 * 365 * 5, 2, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &never));
    CHECK_OK(call(&r, &c, do_start, &far));
    rig_advance(&r, FK_MINUTES(60) * 24 * 365 * 5 - FK_MILLIS(10));
    CHECK_U64(c.count, 0);
    rig_pass(&r, FK_MILLIS(20));
    CHECK_U64(c.count, 1);
    CHECK_U64(c.n[0], 2);
    rig_stop(&r);
}

/* ---- receive timeout --------------------------------------------------------------------- */

TEST(receive_timeout_comes_after_silence_and_again)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 0, FK_TIMER_ONCE, FK_MILLIS(20), 0, FK_OK };
    fk_time began = atomic_load(&r.now);
    CHECK_OK(call(&r, &c, do_timeout, &a));
    rig_pass(&r, FK_MILLIS(18));
    CHECK_U64(c.timeouts, 0);
    rig_pass(&r, FK_MILLIS(6));
    CHECK_U64(c.timeouts, 1);
    check_on_time(c.at[0], began + FK_MILLIS(20));
    rig_pass(&r, FK_MILLIS(26));
    CHECK_U64(c.timeouts, 2);
    a.period = 0;
    CHECK_OK(call(&r, &c, do_timeout, &a));
    rig_pass(&r, FK_MILLIS(100));
    CHECK_U64(c.timeouts, 2);
    a.period = -1;
    CHECK_ERR(call(&r, &c, do_timeout, &a), FK_E_INVALID);
    rig_stop(&r);
}

TEST(receive_timeout_is_put_off_by_every_message)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args a = { 0, FK_TIMER_ONCE, FK_MILLIS(20), 0, FK_OK };
    CHECK_OK(call(&r, &c, do_timeout, &a));
    for (int i = 0; i < 10; i++) {
        rig_pass(&r, FK_MILLIS(15));
        CHECK_OK(fk_send(r.sys, c.self, FK_MSG(num, 1)));
        rig_run(&r);
    }
    CHECK_U64(c.timeouts, 0);
    CHECK_U64(c.count, 10);
    fk_time last = c.at[9];
    rig_pass(&r, FK_MILLIS(30));
    CHECK_U64(c.timeouts, 1);
    check_on_time(c.at[0], last + FK_MILLIS(20));
    rig_stop(&r);
}

TEST(receive_timeout_shares_no_key_with_timers)
{
    rig r;
    clockwork c;
    clockwork_start(&r, &c);
    timer_args timeout = { 0, FK_TIMER_ONCE, FK_MILLIS(50), 0, FK_OK };
    timer_args timer = { 0, FK_TIMER_ONCE, FK_MILLIS(10), 7, FK_OK };
    CHECK_OK(call(&r, &c, do_timeout, &timeout));
    CHECK_OK(call(&r, &c, do_start, &timer));
    rig_pass(&r, FK_MILLIS(20));
    CHECK_U64(c.count, 1);
    CHECK_ERR(call(&r, &c, do_cancel, &timer), FK_E_NOT_FOUND);
    rig_pass(&r, FK_MILLIS(60));
    CHECK_U64(c.timeouts, 1);
    rig_stop(&r);
}

/* ---- stash and forward of a timer's message ---------------------------------------------- */

static fk_err stash_first(fk_ctx *ctx, void *arg)
{
    clockwork *c = arg;
    if (c->count == 1) return fk_stash(ctx);
    return FK_OK;
}

static fk_err do_unstash(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_unstash_all(ctx);
}

TEST(timer_message_can_be_stashed)
{
    static const fk_timer_mode MODES[] = { FK_TIMER_ONCE, FK_TIMER_FIXED_RATE };
    for (int i = 0; i < 2; i++) {
        rig r;
        clockwork c;
        clockwork_start(&r, &c);
        c.on_num = stash_first;
        c.arg = &c;
        timer_args a = { 1, MODES[i], FK_MILLIS(5), 8, FK_OK };
        CHECK_OK(call(&r, &c, do_start, &a));
        rig_pass(&r, FK_MILLIS(7));
        CHECK_U64(c.count, 1);
        rig_do(&r, c.self, do_unstash, NULL);
        CHECK_U64(c.count, 2);
        CHECK_U64(c.n[1], 8);
        rig_pass(&r, FK_MILLIS(20));
        CHECK(MODES[i] == FK_TIMER_ONCE ? c.count == 2 : c.count > 3);
        CHECK_U64(r.failures.count, 0);
        rig_stop(&r);
    }
}

static fk_err forward_it(fk_ctx *ctx, void *arg)
{
    return fk_forward(ctx, *(fk_ref *)arg);
}

TEST(timer_message_can_be_forwarded)
{
    static const fk_timer_mode MODES[] = { FK_TIMER_ONCE, FK_TIMER_FIXED_RATE };
    for (int i = 0; i < 2; i++) {
        rig r;
        clockwork c;
        probe p;
        clockwork_start(&r, &c);
        fk_ref end = probe_spawn(&r, &p);
        c.on_num = forward_it;
        c.arg = &end;
        timer_args a = { 1, MODES[i], FK_MILLIS(5), 8, FK_OK };
        CHECK_OK(call(&r, &c, do_start, &a));
        rig_pass(&r, FK_MILLIS(23));
        CHECK(MODES[i] == FK_TIMER_ONCE ? p.count == 1 : p.count >= 3);
        CHECK_U64(p.n[0], 8);
        CHECK(fk_ref_equal(p.sender, c.self));
        CHECK_U64(r.failures.count, 0);
        rig_stop(&r);
    }
}

static fk_err stash_err;

static fk_err stash_timeout(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (msg->type == &fk_type_receive_timeout) {
        stash_err = fk_stash(ctx);
        CHECK_ERR(fk_forward(ctx, fk_self(ctx)), FK_E_STATE);
        return FK_OK;
    }
    return fk_receive_timeout_set(ctx, FK_MILLIS(5));
}

TEST(receive_timeout_cannot_be_stashed_or_forwarded)
{
    rig r;
    fk_ref ref;
    rig_start(&r);
    stash_err = FK_OK;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = stash_timeout }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    rig_run(&r);
    rig_pass(&r, FK_MILLIS(8));
    CHECK_ERR(stash_err, FK_E_STATE);
    rig_stop(&r);
}

static fk_err stash_owned(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    _Atomic int *drops = state;
    if (msg->type == &fk_type_owned) {
        stash_err = fk_stash(ctx);
        return FK_OK;
    }
    owned m = { drops, 1 };
    return fk_timer_start(ctx, 1, FK_TIMER_FIXED_RATE, FK_MILLIS(5),
                          (fk_out){ &fk_type_owned, &m });
}

TEST(timer_periodic_with_a_drop_cannot_be_in_two_places)
{
    rig r;
    _Atomic int drops = 0;
    fk_ref ref;
    rig_start(&r);
    stash_err = FK_OK;
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = stash_owned, .state = &drops }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
    rig_run(&r);
    rig_pass(&r, FK_MILLIS(8));
    CHECK_ERR(stash_err, FK_E_STATE);
    CHECK_U64(atomic_load(&drops), 0);
    rig_stop(&r);
    CHECK_U64(atomic_load(&drops), 1);
}

TEST(timer_without_memory_to_fire_is_late_but_not_lost)
{
    rig r;
    clockwork c;
    rig_init(&r);
    c = (clockwork){ .r = &r };
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ .pools_malloc = true }));
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = clockwork_receive, .state = &c },
                      &c.self));
    timer_args a = { 1, FK_TIMER_FIXED_RATE, FK_MILLIS(5), 1, FK_OK };
    CHECK_OK(call(&r, &c, do_start, &a));
    rig_fault(&r, 1, true);
    rig_pass(&r, FK_MILLIS(50)); /* the first is prepared; the next cannot be */
    CHECK_U64(c.count, 1);
    CHECK(atomic_load(&r.refused) > 0);
    rig_fault(&r, 0, false);
    rig_pass(&r, FK_MILLIS(20));
    CHECK(c.count >= 3);
    rig_stop(&r);
}

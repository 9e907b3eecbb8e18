/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Restarts that wait, on a clock that the test moves. */

#include "support/rig.h"

enum { TIMES = 64 };

#define TICK FK_NANOS(1 << 20)

/* What is known of one child. */
typedef struct ward {
    rig *r;
    fk_ref ref;
    size_t starts, stops, got;
    fk_time started[TIMES];
} ward;

typedef struct nursery {
    rig r;
    fk_ref parent;
    ward ward[3];
} nursery;

enum { ADVICE_FAIL = 1, ADVICE_WORK };

static fk_err ward_start(fk_ctx *ctx, void *state)
{
    ward *w = *(ward **)state;
    CHECK(w->starts < TIMES);
    w->started[w->starts++] = fk_now(ctx);
    return FK_OK;
}

static void ward_stop(fk_ctx *ctx, void *state)
{
    ward *w = *(ward **)state;
    (void)ctx;
    w->stops++;
}

static fk_err ward_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    ward *w = *(ward **)state;
    const num *advice = FK_AS(num, msg);
    CHECK(advice != NULL);
    if (advice->n == ADVICE_FAIL) return fk_fail(ctx, FK_E_FAILED, "as asked");
    w->got++;
    return FK_OK;
}

static fk_err do_spawn(fk_ctx *ctx, void *arg)
{
    ward *w = arg;
    fk_props props = { .receive = ward_receive,
                       .start = ward_start,
                       .stop = ward_stop,
                       .state_size = sizeof(w),
                       .init = &w };
    CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &w->ref));
    return FK_OK;
}

static void nursery_start(nursery *n, fk_props parent, size_t wards)
{
    *n = (nursery){ 0 };
    rig_start(&n->r);
    if (parent.receive == NULL) parent.receive = doer_receive;
    CHECK_OK(fk_spawn(n->r.sys, FK_STR("parent"), &parent, &n->parent));
    for (size_t i = 0; i < wards; i++) {
        n->ward[i].r = &n->r;
        rig_do(&n->r, n->parent, do_spawn, &n->ward[i]);
        CHECK_U64(n->ward[i].starts, 1);
    }
}

static void tell(nursery *n, const ward *w, uint64_t advice)
{
    CHECK_OK(fk_send(n->r.sys, w->ref, FK_MSG(num, advice)));
    rig_run(&n->r);
}

/* Makes it fail, and returns how long it was away, up to `most`. */
static fk_time fail_and_wait(nursery *n, ward *w, fk_time most)
{
    size_t starts = w->starts;
    fk_time began = atomic_load(&n->r.now);
    tell(n, w, ADVICE_FAIL);
    for (fk_time t = 0; t < most && w->starts == starts; t += FK_MILLIS(1)) {
        rig_advance(&n->r, FK_MILLIS(1));
    }
    CHECK_U64(w->starts, starts + 1);
    return w->started[starts] - began;
}

static void check_near(fk_time actual, fk_time expected)
{
    CHECK(actual >= expected);                       /* never early */
    CHECK(actual <= expected + TICK + FK_MILLIS(1)); /* a tick, and a step of the test's clock */
}

static uint64_t timers(nursery *n)
{
    fk_stats stats;
    fk_stats_get(n->r.sys, &stats);
    return stats.timers;
}

static fk_strategy patient(fk_time min, fk_time max)
{
    return (
        fk_strategy){ .restarts = FK_RESTARTS_UNLIMITED, .backoff_min = min, .backoff_max = max };
}

TEST(backoff_doubles_up_to_its_maximum)
{
    static const int64_t SECONDS[] = { 1, 2, 4, 8, 10, 10 };
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    for (size_t i = 0; i < sizeof(SECONDS) / sizeof(SECONDS[0]); i++) {
        check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(SECONDS[i]));
        CHECK_U64(timers(&n), 0);
    }
    rig_stop(&n.r);
}

TEST(backoff_without_maximum_goes_on_doubling)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_MILLIS(10), 0) }, 1);
    for (fk_time due = FK_MILLIS(10); due < FK_SECONDS(3); due *= 2) {
        check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), due);
    }
    rig_stop(&n.r);
}

TEST(backoff_keeps_the_mail_of_who_waits)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    for (int i = 0; i < 5; i++) tell(&n, &n.ward[0], ADVICE_WORK);
    rig_pass(&n.r, FK_MILLIS(990));
    CHECK_U64(n.ward[0].got, 0);
    CHECK_U64(n.ward[0].starts, 1);
    CHECK_U64(n.ward[0].stops, 0); /* it leaves its state when it gets the next one */
    rig_pass(&n.r, FK_MILLIS(20));
    CHECK_U64(n.ward[0].starts, 2);
    CHECK_U64(n.ward[0].stops, 1);
    CHECK_U64(n.ward[0].got, 5);
    CHECK_U64(n.r.letters.count, 0);
    rig_stop(&n.r);
}

TEST(backoff_begins_anew_after_a_quiet_time)
{
    nursery n;
    fk_strategy strategy = patient(FK_SECONDS(1), FK_SECONDS(100));
    strategy.backoff_reset = FK_SECONDS(30);
    nursery_start(&n, (fk_props){ .strategy = strategy }, 1);
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(1));
    rig_advance(&n.r, FK_SECONDS(29)); /* not quiet for long enough */
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(2));
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(4));
    rig_advance(&n.r, FK_SECONDS(31));
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(1));
    rig_stop(&n.r);
}

TEST(backoff_reset_is_the_maximum_unless_said)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(3)) }, 1);
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(1));
    rig_advance(&n.r, FK_MILLIS(2900));
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(2));
    rig_advance(&n.r, FK_MILLIS(3100));
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(20)), FK_SECONDS(1));
    rig_stop(&n.r);
}

TEST(backoff_jitter_spreads_within_its_bounds)
{
    nursery n;
    fk_time least = FK_NEVER, most = 0;
    fk_strategy strategy = patient(FK_SECONDS(1), FK_SECONDS(1));
    strategy.backoff_jitter = 20;
    nursery_start(&n, (fk_props){ .strategy = strategy }, 1);
    for (int i = 0; i < 60; i++) {
        fk_time away = fail_and_wait(&n, &n.ward[0], FK_SECONDS(20));
        if (away < least) least = away;
        if (away > most) most = away;
    }
    CHECK(least >= FK_MILLIS(800));
    CHECK(most <= FK_MILLIS(1200) + TICK + FK_MILLIS(1));
    CHECK(most - least > FK_MILLIS(50)); /* 60 draws from 400 ms: not once in 10^50 runs */
    rig_stop(&n.r);
}

TEST(backoff_still_counts_restarts)
{
    nursery n;
    fk_strategy strategy = patient(FK_SECONDS(1), FK_SECONDS(1));
    strategy.restarts = 2;
    nursery_start(&n, (fk_props){ .strategy = strategy }, 1);
    fail_and_wait(&n, &n.ward[0], FK_SECONDS(20));
    fail_and_wait(&n, &n.ward[0], FK_SECONDS(20));
    tell(&n, &n.ward[0], ADVICE_FAIL);
    CHECK(!fk_is_alive(n.r.sys, n.ward[0].ref));
    CHECK_U64(timers(&n), 0);
    rig_stop(&n.r);
}

TEST(backoff_ends_with_a_child_that_is_stopped)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    ward *w = &n.ward[0];
    tell(&n, w, ADVICE_FAIL);
    CHECK_U64(timers(&n), 1);
    CHECK_OK(fk_stop(n.r.sys, w->ref));
    rig_run(&n.r);
    CHECK(!fk_is_alive(n.r.sys, w->ref));
    CHECK_U64(timers(&n), 0);
    /* The slot's next tenant, a sister, is not restarted in its place. */
    n.ward[1].r = &n.r;
    rig_do(&n.r, n.parent, do_spawn, &n.ward[1]);
    CHECK_U64(n.ward[1].ref.slot, w->ref.slot);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(w->starts, 1);
    CHECK_U64(n.ward[1].starts, 1);
    rig_stop(&n.r);
}

/* The wait is over, its message in the parent's mailbox, and then the child is stopped. */
static fk_err do_stop_when_due(fk_ctx *ctx, void *arg)
{
    nursery *n = arg;
    atomic_fetch_add(&n->r.now, FK_SECONDS(2));
    return fk_stop(fk_system_of(ctx), n->ward[0].ref);
}

TEST(backoff_ends_with_a_child_that_is_stopped_when_due)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    rig_do(&n.r, n.parent, do_stop_when_due, &n);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(n.ward[0].starts, 1);
    CHECK(!fk_is_alive(n.r.sys, n.ward[0].ref));
    rig_stop(&n.r);
}

TEST(backoff_ends_with_the_parent)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 2);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    CHECK_OK(fk_stop(n.r.sys, n.parent));
    rig_run(&n.r);
    CHECK(!fk_is_alive(n.r.sys, n.ward[0].ref));
    CHECK(!fk_is_alive(n.r.sys, n.parent));
    CHECK_U64(timers(&n), 0);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(n.ward[0].starts, 1);
    rig_stop(&n.r);
}

static fk_err do_fail(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_fail(ctx, FK_E_FAILED, "the parent, too");
}

static void keep_children(fk_ctx *ctx, void *state, fk_err why)
{
    (void)ctx;
    (void)state;
    (void)why;
}

TEST(backoff_gives_way_to_a_restart_of_the_parent)
{
    nursery n;
    nursery_start(&n,
                  (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)),
                              .before_restart = keep_children },
                  1);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    rig_do(&n.r, n.parent, do_fail, NULL);
    CHECK_U64(n.ward[0].starts, 2); /* with its parent, at once */
    CHECK_U64(timers(&n), 0);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(n.ward[0].starts, 2); /* and not again */
    tell(&n, &n.ward[0], ADVICE_WORK);
    CHECK_U64(n.ward[0].got, 1);
    rig_stop(&n.r);
}

TEST(backoff_ends_when_the_parent_restarts_without_its_children)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    rig_do(&n.r, n.parent, do_fail, NULL);
    CHECK(!fk_is_alive(n.r.sys, n.ward[0].ref));
    CHECK(fk_is_alive(n.r.sys, n.parent));
    CHECK_U64(timers(&n), 0);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(n.ward[0].starts, 1);
    rig_stop(&n.r);
}

TEST(backoff_is_for_who_failed_and_not_for_who_goes_along)
{
    nursery n;
    fk_strategy strategy = patient(FK_SECONDS(1), FK_SECONDS(10));
    strategy.kind = FK_ALL_FOR_ONE;
    nursery_start(&n, (fk_props){ .strategy = strategy }, 3);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    CHECK_U64(n.ward[0].starts, 1);
    CHECK_U64(n.ward[1].starts, 2);
    CHECK_U64(n.ward[2].starts, 2);
    /* A second one fails: the first, which waits already, does so until its own time. */
    rig_pass(&n.r, FK_MILLIS(500));
    tell(&n, &n.ward[1], ADVICE_FAIL);
    CHECK_U64(n.ward[0].starts, 1);
    CHECK_U64(n.ward[2].starts, 3);
    rig_pass(&n.r, FK_MILLIS(510));
    CHECK_U64(n.ward[0].starts, 2);
    CHECK_U64(n.ward[1].starts, 2);
    rig_pass(&n.r, FK_MILLIS(500));
    CHECK_U64(n.ward[1].starts, 3);
    CHECK_U64(timers(&n), 0);
    rig_stop(&n.r);
}

TEST(backoff_of_two_that_fail_at_once_ends_for_both)
{
    nursery n;
    fk_strategy strategy = patient(FK_SECONDS(1), FK_SECONDS(10));
    strategy.kind = FK_ALL_FOR_ONE;
    nursery_start(&n, (fk_props){ .strategy = strategy }, 2);
    CHECK_OK(fk_send(n.r.sys, n.ward[0].ref, FK_MSG(num, ADVICE_FAIL)));
    CHECK_OK(fk_send(n.r.sys, n.ward[1].ref, FK_MSG(num, ADVICE_FAIL)));
    rig_pass(&n.r, FK_SECONDS(2));
    tell(&n, &n.ward[0], ADVICE_WORK);
    tell(&n, &n.ward[1], ADVICE_WORK);
    CHECK_U64(n.ward[0].got, 1);
    CHECK_U64(n.ward[1].got, 1);
    CHECK(n.ward[0].starts >= 2 && n.ward[0].starts <= 3);
    CHECK(n.ward[1].starts >= 2 && n.ward[1].starts <= 3);
    CHECK_U64(timers(&n), 0);
    rig_stop(&n.r);
}

TEST(backoff_does_not_outlast_the_system)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)) }, 1);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    CHECK_OK(fk_terminate(n.r.sys));
    rig_run(&n.r);
    CHECK(!fk_is_alive(n.r.sys, n.ward[0].ref));
    CHECK_U64(n.ward[0].starts, 1);
    rig_stop(&n.r);
}

static fk_err do_spawn_parent(fk_ctx *ctx, void *arg)
{
    nursery *n = arg;
    fk_props props = { .receive = doer_receive,
                       .strategy = patient(FK_SECONDS(1), FK_SECONDS(10)),
                       .before_restart = keep_children };
    return fk_spawn_child(ctx, FK_STR("middle"), &props, &n->parent);
}

TEST(backoff_waits_while_the_parent_is_held)
{
    nursery n;
    nursery_start(&n, (fk_props){ .strategy = patient(FK_SECONDS(3), FK_SECONDS(10)) }, 0);
    rig_do(&n.r, n.parent, do_spawn_parent, &n);
    rig_do(&n.r, n.parent, do_spawn, &n.ward[0]);
    tell(&n, &n.ward[0], ADVICE_FAIL);
    rig_do(&n.r, n.parent, do_fail, NULL);
    rig_pass(&n.r, FK_MILLIS(2990)); /* the child's time has come, but not its parent's */
    CHECK_U64(n.ward[0].starts, 1);
    rig_pass(&n.r, FK_MILLIS(20));
    CHECK_U64(n.ward[0].starts, 2);
    rig_pass(&n.r, FK_SECONDS(2));
    CHECK_U64(n.ward[0].starts, 2);
    CHECK_U64(timers(&n), 0);
    rig_stop(&n.r);
}

static fk_err do_listen(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_receive_timeout_set(ctx, FK_MILLIS(1500));
}

/* The first message in a second and a half would be the one that ends the wait. */
static fk_err idler_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    size_t *timeouts = state;
    if (msg->type != &fk_type_receive_timeout) return doer_receive(ctx, NULL, msg);
    ++*timeouts;
    return fk_receive_timeout_set(ctx, 0);
}

TEST(backoff_is_no_message_to_the_parent)
{
    nursery n;
    fk_stats before, after;
    size_t timeouts = 0;
    nursery_start(&n,
                  (fk_props){ .receive = idler_receive,
                              .state = &timeouts,
                              .strategy = patient(FK_SECONDS(1), FK_SECONDS(1)) },
                  1);
    fk_stats_get(n.r.sys, &before);
    rig_do(&n.r, n.parent, do_listen, NULL);
    CHECK(fail_and_wait(&n, &n.ward[0], FK_SECONDS(3)) >= FK_SECONDS(1));
    rig_pass(&n.r, FK_MILLIS(510));
    CHECK_U64(timeouts, 1);
    fk_stats_get(n.r.sys, &after);
    CHECK_U64(after.processed, before.processed + 3); /* the call, the failure, the timeout */
    rig_stop(&n.r);
}

TEST(backoff_without_memory_is_none)
{
    nursery n = { 0 };
    rig_start_with(&n.r, (fk_system_config){ .pools_malloc = true });
    fk_props props = { .receive = doer_receive, .strategy = patient(FK_SECONDS(1), FK_SECONDS(9)) };
    CHECK_OK(fk_spawn(n.r.sys, FK_STR("parent"), &props, &n.parent));
    rig_do(&n.r, n.parent, do_spawn, &n.ward[0]);
    fail_and_wait(&n, &n.ward[0], FK_SECONDS(3)); /* makes what is kept of a child */
    CHECK_OK(fk_send(n.r.sys, n.ward[0].ref, FK_MSG(num, ADVICE_FAIL)));
    rig_fault(&n.r, 1, true);
    rig_run(&n.r);
    rig_fault(&n.r, 0, false);
    CHECK_U64(n.ward[0].starts, 3); /* at once */
    check_near(fail_and_wait(&n, &n.ward[0], FK_SECONDS(9)), FK_SECONDS(4));
    rig_stop(&n.r);
}

/* Threads: children that fail, stop and wait on whatever worker, and a parent that ends with them. */
typedef struct crowd {
    fk_ref refs[32];
    _Atomic int made;
} crowd;

static fk_err failing_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_fail(ctx, FK_E_FAILED, "always");
}

static fk_err do_spawn_many(fk_ctx *ctx, void *arg)
{
    crowd *c = arg;
    fk_props props = { .receive = failing_receive };
    for (size_t i = 0; i < 32; i++) CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &c->refs[i]));
    atomic_fetch_add(&c->made, 1);
    return FK_OK;
}

TEST(backoff_on_several_threads)
{
    for (uint64_t round = 0; round < test_scaled(40); round++) {
        rig r;
        crowd c = { .made = 0 };
        fk_ref parent = FK_REF_NONE;
        fk_strategy strategy = patient(FK_MICROS(100), FK_MILLIS(2));
        strategy.kind = round % 2 == 0 ? FK_ONE_FOR_ONE : FK_ALL_FOR_ONE;
        strategy.backoff_jitter = 100;
        rig_start_with(&r, (fk_system_config){ .name = "test", .workers = 2 });
        fk_props props = { .receive = doer_receive, .strategy = strategy };
        CHECK_OK(fk_spawn(r.sys, FK_STR("parent"), &props, &parent));
        CHECK_OK(fk_send(r.sys, parent, FK_MSG(rig_call, do_spawn_many, &c)));
        CHECK_OK(fk_send(r.sys, parent, FK_MSG(rig_call, do_fail, NULL)));
        CHECK_OK(fk_send(r.sys, parent, FK_MSG(rig_call, do_spawn_many, &c)));
        while (atomic_load(&c.made) != 2) test_sleep_ms(0);
        for (size_t i = 0; i < 64; i++) {
            fk_send(r.sys, c.refs[i % 32], FK_MSG(num, ADVICE_FAIL));
            if (i % 5 == 0) fk_stop(r.sys, c.refs[i % 32]);
        }
        test_sleep_ms((unsigned)(round % 4));
        if (round % 3 == 0) CHECK_OK(fk_stop(r.sys, parent));
        rig_stop(&r);
    }
}

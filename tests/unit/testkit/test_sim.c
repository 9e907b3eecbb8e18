/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Simulations: virtual time, and an order that comes from the seed alone. */

#include <stdio.h>
#include <stdlib.h>

#include "testkit/scene.h"

static scene s;

/* ---- time -------------------------------------------------------------------------------- */

typedef struct ticker {
    fk_timer_mode mode;
    fk_time period;
    uint64_t ticks;
    fk_time last;
} ticker;

static fk_err ticker_start(fk_ctx *ctx, void *state)
{
    const ticker *t = state;
    return fk_timer_start(ctx, 1, t->mode, t->period, FK_MSG(num, 0));
}

static fk_err ticker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    ticker *t = state;
    CHECK(FK_AS(num, msg) != NULL);
    t->ticks++;
    t->last = fk_now(ctx);
    return FK_OK;
}

static void ticker_spawn(ticker *t)
{
    scene_spawn(&s, "",
                &(fk_props){ .receive = ticker_receive, .start = ticker_start, .state = t });
}

TEST(sim_time_stands_still_until_the_test_moves_it)
{
    ticker t = { .period = FK_MINUTES(24 * 60) };
    scene_begin(&s, (fk_sim_config){ .name = "time" });
    ticker_spawn(&t);
    fk_sim_run(s.sim);
    CHECK_ERR(fk_system_stop(fk_sim_system(s.sim)), FK_E_UNSUPPORTED);
    CHECK(fk_sim_now(s.sim) == 0);
    fk_sim_advance(s.sim, FK_MINUTES(24 * 60) - FK_MILLIS(2));
    CHECK_U64(t.ticks, 0);
    fk_sim_advance(s.sim, FK_MILLIS(2));
    CHECK_U64(t.ticks, 1);
    scene_end(&s);
}

TEST(sim_waiting_as_long_as_a_timer_is_enough)
{
    for (fk_time period = 0; period < FK_SECONDS(20); period = period * 3 + 12345) {
        ticker t = { .period = period };
        scene_begin(&s, (fk_sim_config){ .name = "time" });
        fk_sim_advance(s.sim, FK_MICROS(777));
        ticker_spawn(&t);
        fk_sim_run(s.sim);
        fk_sim_advance(s.sim, period != 0 ? period : 1);
        CHECK_U64(t.ticks, 1);
        scene_end(&s);
    }
}

TEST(sim_a_day_of_seconds_takes_a_moment)
{
    ticker t = { .mode = FK_TIMER_FIXED_RATE, .period = FK_SECONDS(1) };
    scene_begin(&s, (fk_sim_config){ .name = "time" });
    ticker_spawn(&t);
    fk_sim_run(s.sim);
    int64_t begun = test_clock();
    fk_sim_advance(s.sim, FK_SECONDS(86400));
    printf("a day of seconds: %lld us\n", (long long)((test_clock() - begun) / 1000));
    CHECK_U64(t.ticks, 86400);
    CHECK(fk_sim_now(s.sim) >= FK_SECONDS(86400));
    CHECK(fk_sim_now(s.sim) < FK_SECONDS(86400) + FK_MILLIS(2));
    CHECK(test_clock() - begun < FK_SECONDS(10));
    scene_end(&s);
}

static bool has_ticked_thrice(void *user)
{
    const ticker *t = user;
    return t->ticks == 3;
}

TEST(sim_run_until_stops_where_the_condition_holds)
{
    ticker t = { .mode = FK_TIMER_FIXED_RATE, .period = FK_SECONDS(10) };
    scene_begin(&s, (fk_sim_config){ .name = "until" });
    ticker_spawn(&t);
    CHECK(fk_sim_run_until(s.sim, has_ticked_thrice, &t, FK_SECONDS(60)));
    CHECK_U64(t.ticks, 3);
    CHECK(fk_sim_now(s.sim) < FK_SECONDS(31));
    CHECK(!fk_sim_run_until(s.sim, has_ticked_thrice, &(ticker){ .ticks = 0 }, FK_SECONDS(5)));
    scene_check_failure(&s, 1, "expected the condition within 5.000000 s");
    scene_end(&s);
}

/* ---- waiting calls ----------------------------------------------------------------------- */

static fk_err mortal_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (msg->type == &fk_type_receive_timeout) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    return fk_receive_timeout_set(ctx, FK_MINUTES(1));
}

TEST(sim_calls_that_wait_let_it_run)
{
    scene_begin(&s, (fk_sim_config){ .name = "wait" });
    fk_system *sys = fk_sim_system(s.sim);
    fk_ref mortal = scene_spawn(&s, "mortal", &(fk_props){ .receive = mortal_receive });
    CHECK_OK(fk_send(sys, mortal, FK_MSG(num, 1)));
    CHECK_ERR(fk_await_stopped(sys, mortal, FK_SECONDS(59)), FK_E_TIMEOUT);
    CHECK_OK(fk_await_stopped(sys, mortal, FK_SECONDS(2)));
    CHECK(fk_sim_now(s.sim) >= FK_MINUTES(1));
    CHECK(fk_sim_expect_stopped(s.sim, mortal, 0));
    CHECK(!fk_sim_expect_stopped(s.sim, fk_probe_ref(s.probe), FK_SECONDS(1)));
    scene_check_failure(&s, 1, "expected /user/probe stops within 1.000000 s");
    scene_end(&s);
}

TEST(sim_a_full_mailbox_that_blocks_lets_it_run)
{
    probe p;
    scene_begin(&s, (fk_sim_config){ .name = "block" });
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.overflow = FK_OVERFLOW_BLOCK;
    props.capacity = 2;
    fk_ref ref = scene_spawn(&s, "", &props);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_OK(fk_send(fk_sim_system(s.sim), ref, FK_MSG(num, i)));
    }
    fk_sim_run(s.sim);
    CHECK_U64(p.count, 100);
    for (uint64_t i = 0; i < 100; i++) CHECK_U64(p.n[i], i);
    scene_end(&s);
}

static fk_err try_to_wait(fk_ctx *ctx, void *arg)
{
    (void)arg;
    fk_system *sys = fk_system_of(ctx);
    CHECK_ERR(fk_await_stopped(sys, fk_self(ctx), FK_SECONDS(1)), FK_E_STATE);
    CHECK_U64(fk_sim_run(s.sim), 0);
    CHECK_U64(fk_sim_advance(s.sim, FK_SECONDS(1)), 0);
    return FK_OK;
}

TEST(sim_nobody_waits_inside_an_actor)
{
    scene_begin(&s, (fk_sim_config){ .name = "inside" });
    fk_ref doer = scene_spawn(&s, "", &(fk_props){ .receive = doer_receive });
    CHECK_OK(fk_send(fk_sim_system(s.sim), doer, FK_MSG(rig_call, try_to_wait, NULL)));
    CHECK(fk_sim_run(s.sim) > 0);
    scene_end(&s);
}

TEST(sim_pinned_actors_run_too)
{
    scene_begin(&s, (fk_sim_config){ .name = "pinned" });
    for (uint64_t i = 0; i < 3; i++) {
        fk_ref ref = scene_spawn(
            &s, "", &(fk_props){ .receive = echo_receive, .dispatcher = FK_DISPATCHER_PINNED });
        CHECK_OK(fk_probe_send(s.probe, ref, FK_MSG(num, i)));
    }
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        const num *answer = FK_EXPECT(s.probe, num);
        CHECK(answer != NULL);
        sum += answer->n;
    }
    CHECK_U64(sum, 3);
    scene_end(&s);
}

static fk_err restless_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, 0));
}

TEST(sim_actors_that_never_rest_fail_the_test)
{
    scene_begin(&s, (fk_sim_config){ .name = "restless", .turns_max = 1000 });
    fk_ref ref = scene_spawn(&s, "restless", &(fk_props){ .receive = restless_receive });
    CHECK_OK(fk_send(fk_sim_system(s.sim), ref, FK_MSG(num, 0)));
    fk_sim_run(s.sim);
    scene_check_failure(&s, 1, "they send and send");
    scene_end(&s);
}

/* ---- the seed ---------------------------------------------------------------------------- */

enum { RACERS = 5 };

static fk_err racer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const uint64_t *number = state;
    const num *left = FK_AS(num, msg);
    CHECK(left != NULL);
    if (left->n == 0) return FK_OK;
    CHECK_OK(fk_tell(ctx, msg->sender, FK_MSG(num, *number)));
    return fk_forward(ctx, fk_self(ctx));
}

static bool is_turned_off; /* the seed's say, once the race has begun */

/* The order in which five actors' messages come to the probe. */
static uint64_t race(uint64_t seed, bool in_order, uint64_t *hash)
{
    uint64_t order = 0;
    scene_begin(&s, (fk_sim_config){ .name = "race", .seed = seed, .in_order = in_order });
    if (is_turned_off) fk_sim_reorder(s.sim, false);
    for (uint64_t i = 0; i < RACERS; i++) {
        fk_ref ref = scene_spawn(
            &s, "", &(fk_props){ .receive = racer_receive, .state_size = 8, .init = &i });
        CHECK_OK(fk_probe_send(s.probe, ref, FK_MSG(num, 1)));
    }
    for (int i = 0; i < 12; i++) {
        const num *n = FK_EXPECT(s.probe, num);
        CHECK(n != NULL);
        order = order * RACERS + n->n;
    }
    *hash = fk_sim_hash(s.sim);
    scene_end(&s);
    return order;
}

TEST(sim_the_same_seed_is_the_same_history)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        uint64_t first, second;
        uint64_t order = race(seed, false, &first);
        free(malloc((size_t)seed * 1000)); /* addresses are others now, and do not matter */
        CHECK_U64(race(seed, false, &second), order);
        CHECK_U64(first, second);
    }
}

TEST(sim_other_seeds_are_other_orders)
{
    enum { SEEDS = 50 };
    uint64_t orders[SEEDS], hashes[SEEDS];
    size_t distinct = 0;
    for (size_t i = 0; i < SEEDS; i++) {
        orders[i] = race(i + 1, false, &hashes[i]);
        bool is_new = true;
        for (size_t j = 0; j < i; j++) {
            if (orders[j] == orders[i]) is_new = false;
            CHECK((orders[j] == orders[i]) || hashes[j] != hashes[i]);
        }
        distinct += is_new;
    }
    CHECK(distinct > SEEDS / 2);
}

TEST(sim_in_order_the_seed_does_not_matter)
{
    uint64_t hash;
    uint64_t order = race(1, true, &hash);
    for (uint64_t seed = 2; seed < 10; seed++) CHECK_U64(race(seed, true, &hash), order);
    is_turned_off = true; /* by hand, it is the same */
    for (uint64_t seed = 2; seed < 10; seed++) CHECK_U64(race(seed, false, &hash), order);
    is_turned_off = false;
}

TEST(sim_seed_comes_from_the_environment)
{
    setenv("FK_SEED", "0x1f", 1);
    CHECK_U64(fk_sim_seed(), 0x1f);
    setenv("FK_SEED", "77", 1);
    CHECK_U64(fk_sim_seed(), 77);
    setenv("FK_SEED", "0", 1);
    CHECK(fk_sim_seed() != 0);
    unsetenv("FK_SEED");
    uint64_t drawn = fk_sim_seed();
    CHECK(drawn != 0);
    CHECK(drawn != fk_sim_seed());
}

TEST(sim_takes_defaults_and_refuses_nonsense)
{
    fk_sim *sim = NULL;
    CHECK_OK(fk_sim_create(NULL, &sim));
    CHECK(fk_sim_destroy(sim));
    CHECK(fk_sim_destroy(NULL));
    CHECK_ERR(fk_sim_create(NULL, NULL), FK_E_INVALID);
    CHECK_ERR(fk_sim_create(&(fk_sim_config){ .size = 4 }, &sim), FK_E_INVALID);
    const fk_system_config bad = { .name = "no name" };
    CHECK_ERR(fk_sim_create(&(fk_sim_config){ .system = &bad }, &sim), FK_E_SYSTEM);
}

/* ---- the system's own settings ----------------------------------------------------------- */

static size_t letters;

static void count_letter(void *user, const fk_dead_letter *letter)
{
    CHECK(user == &letters);
    CHECK(letter->reason == FK_REASON_NO_RECEIVER);
    letters++;
}

TEST(sim_the_system_is_configured_as_asked)
{
    const fk_system_config config = { .name = "mine",
                                      .user = &letters,
                                      .on_dead_letter = count_letter };
    char path[64];
    letters = 0;
    scene_begin(&s, (fk_sim_config){ .name = "config", .system = &config });
    fk_path_of(fk_sim_system(s.sim), fk_probe_ref(s.probe), path, sizeof(path));
    CHECK(strncmp(path, "fraktor://mine/user/probe#", 26) == 0);
    CHECK_OK(fk_send(fk_sim_system(s.sim), FK_REF_NONE, FK_MSG(num, 1)));
    CHECK_U64(letters, 1);
    fk_stats stats;
    CHECK_OK(fk_probe_send(s.probe, fk_probe_ref(s.probe), FK_MSG(num, 1)));
    CHECK(FK_EXPECT(s.probe, num) != NULL);
    fk_stats_get(fk_sim_system(s.sim), &stats);
    CHECK_U64(stats.processed, 1);
    CHECK_U64(stats.dead_letters[FK_REASON_NO_RECEIVER], 1);
    scene_end(&s);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The settings of fk_cluster_config that others see: the strategy's name, limits, the weight. */

#include <stdio.h>
#include <string.h>

#include "support/town.h"

static const fk_cluster_config USUAL = { .lease_ttl = 0 };

TEST(a_cluster_has_one_strategy)
{
    const fk_strategy_ops same_by_another_name = { "other", fk_strategy_rendezvous.build,
                                                   fk_strategy_rendezvous.add,
                                                   fk_strategy_rendezvous.remove };
    const char *why = "";
    town_begin();
    town_open_all(1, USUAL);
    town_system(1);
    fk_cluster_config config = town_config(1);
    config.strategy = &same_by_another_name;
    config.why = &why;
    CHECK_ERR(fk_cluster_join(town[1].r.sys, &config, &town[1].cluster), FK_E_MISMATCH);
    CHECK(strstr(why, "strategy") != NULL);
    config.strategy = &fk_strategy_rendezvous;
    CHECK_OK(fk_cluster_join(town[1].r.sys, &config, &town[1].cluster));
    town_end();
}

/* ---- limits ---------------------------------------------------------------------------------------------- */

static _Atomic size_t answered, overloaded, late, others;

static fk_err asker(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const num *count = FK_AS(num, msg);
    const fk_answer *answer = FK_AS(fk_answer, msg);
    (void)state;
    if (FK_AS(town_total, msg) != NULL) {
        CHECK_OK(fk_grain_ask(ctx, FK_STR("durable"), FK_STR("popular"),
                              FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE), 1, 0));
    }
    for (uint64_t i = 0; count != NULL && i < count->n; i++) {
        CHECK_OK(fk_grain_ask(ctx, FK_STR("durable"), FK_STR("popular"),
                              FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE), i, FK_SECONDS(30)));
    }
    if (answer == NULL) return FK_OK;
    if (answer->err == FK_OK)
        atomic_fetch_add(&answered, 1);
    else if (answer->err == FK_E_OVERLOADED)
        atomic_fetch_add(&overloaded, 1);
    else if (answer->err == FK_E_TIMEOUT)
        atomic_fetch_add(&late, 1);
    else
        atomic_fetch_add(&others, 1);
    return FK_OK;
}

TEST(an_ask_without_any_time_is_over_and_was_not_sent)
{
    fk_ref ref;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .weight = 0 });
    CHECK_OK(fk_spawn(town[0].r.sys, FK_STR("asker"), &(fk_props){ .receive = asker }, &ref));
    CHECK_U64(town_add(0, "durable", "popular", 5).n, 5); /* it is active */
    atomic_store(&late, 0);
    CHECK_OK(fk_send(town[0].r.sys, ref, FK_MSG(town_total, 0)));
    PEER_AWAIT(atomic_load(&late) == 1);
    CHECK_U64(town_add(0, "durable", "popular", 0).n, 5);
    town_end();
}

/* Its row is there, so it starts with a store of it, which is held. */
TEST(more_than_waiters_max_are_told_that_it_is_too_much)
{
    enum { WAITERS = 4, CALLS = 10 };
    town_total total;
    fk_ref ref;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .waiters_max = WAITERS });
    atomic_store(&answered, 0);
    atomic_store(&overloaded, 0);
    atomic_store(&others, 0);
    CHECK_OK(fk_spawn(town[0].r.sys, FK_STR("asker"), &(fk_props){ .receive = asker }, &ref));
    CHECK_U64(town_add(0, "durable", "popular", 1).n, 1);
    CHECK_ERR(town_ask(0, "durable", "popular", (town_op){ .verb = TOWN_FAIL }, &total),
              FK_E_FAILED);
    PEER_AWAIT(atomic_load(&town_stops) == 1);
    atomic_store(&town_shop.is_held, true);
    CHECK_OK(fk_send(town[0].r.sys, ref, FK_MSG(num, CALLS)));
    PEER_AWAIT(atomic_load(&overloaded) + atomic_load(&others) == CALLS - WAITERS);
    CHECK_U64(atomic_load(&others), 0);
    atomic_store(&town_shop.is_held, false);
    PEER_AWAIT(atomic_load(&answered) == WAITERS);
    CHECK_U64(town_add(0, "durable", "popular", 0).n, 1 + WAITERS);
    town_end();
}

static bool is_total(int64_t n)
{
    town_total total;
    const town_op look = { .verb = TOWN_ADD, .arg = 0 };
    return town_ask(0, "volatile", "popular", look, &total) == FK_OK && total.n == n;
}

/* They are in its mailbox when it fails, and all want the next one to begin. */
TEST(those_that_an_activation_gives_back_are_not_too_many)
{
    enum { WAITERS = 4, CALLS = 50 };
    static const town_op NAP = { .verb = TOWN_NAP, .arg = 1000 }, FAIL = { .verb = TOWN_FAIL },
                         ADD = { .verb = TOWN_ADD, .arg = 1 };
    town_begin();
    town_open_all(1, (fk_cluster_config){ .waiters_max = WAITERS });
    fk_cluster *c = town[0].cluster;
    CHECK_U64(town_add(0, "volatile", "popular", 1).n, 1);
    CHECK_OK(fk_grain_send(c, FK_STR("volatile"), FK_STR("popular"), FK_MSG_AT(town_op, &NAP)));
    CHECK_OK(fk_grain_send(c, FK_STR("volatile"), FK_STR("popular"), FK_MSG_AT(town_op, &FAIL)));
    for (int i = 0; i < CALLS; i++) {
        CHECK_OK(fk_grain_send(c, FK_STR("volatile"), FK_STR("popular"), FK_MSG_AT(town_op, &ADD)));
    }
    PEER_AWAIT(is_total(CALLS));
    town_end();
}

TEST(more_than_activations_max_are_not_started)
{
    enum { MOST = 3 };
    char key[2] = "a";
    town_total total;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .activations_max = MOST });
    for (int i = 0; i < MOST; i++, key[0]++) CHECK_U64(town_add(0, "volatile", key, 1).n, 1);
    CHECK_ERR(town_ask(0, "volatile", key, (town_op){ .verb = TOWN_ADD, .arg = 1 }, &total),
              FK_E_OVERLOADED);
    CHECK_U64(town_add(0, "volatile", "a", 1).n, 2); /* those that are there go on */
    CHECK_OK(town_ask(0, "volatile", "a", (town_op){ .verb = TOWN_DELETE }, &total));
    PEER_AWAIT(atomic_load(&town_stops) == 1);
    PEER_AWAIT(town_ask(0, "volatile", key, (town_op){ .verb = TOWN_ADD, .arg = 1 }, &total) ==
               FK_OK);
    town_end();
}

/* ---- weight ------------------------------------------------------------------------------------------------ */

TEST(a_member_of_three_times_the_weight_has_three_times_the_slots)
{
    char key[32];
    size_t of_b = 0;
    town_begin();
    town_open(0, (fk_cluster_config){ .weight = 100 });
    town_open(1, (fk_cluster_config){ .weight = 300 });
    town_settle(2);
    uint32_t a = town_stats(0).placement.slots_held, b = town_stats(1).placement.slots_held;
    CHECK_U64(a + b, 3 * 64);
    CHECK(b > (a + b) * 66 / 100);
    CHECK(b < (a + b) * 84 / 100);
    for (int k = 0; k < 400; k++) {
        snprintf(key, sizeof(key), "key-%d", k);
        of_b += strcmp(town_where(0, "durable", key).owner, "b") == 0;
    }
    CHECK(of_b > 400 * 60 / 100);
    CHECK(of_b < 400 * 90 / 100);
    town_end();
}

/* ---- defects that others have had: see tests/unit/cluster/test_placement_defects.c ---------------------------- */

static fk_err add_within(fk_time timeout)
{
    town_total total;
    return fk_grain_ask_wait(town[0].cluster, FK_STR("durable"), FK_STR("t"),
                             FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE), FK_INTO(town_total, &total),
                             timeout);
}

static void *release_later(void *arg)
{
    test_sleep_ms(*(unsigned *)arg);
    atomic_store(&town_shop.is_held, false);
    return NULL;
}

/* A short call beside a long one: neither has the other's time. */
TEST(defect_12_the_timeout_of_one_call_is_its_own)
{
    unsigned ms = 600;
    pthread_t thread;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .call_timeout = FK_MILLIS(50) });
    CHECK_OK(add_within(FK_SECONDS(30)));
    atomic_store(&town_shop.is_held, true);
    int64_t begin = test_clock();
    CHECK_ERR(add_within(FK_MILLIS(100)), FK_E_TIMEOUT);
    CHECK(test_clock() - begin >= FK_MILLIS(100));
    CHECK(pthread_create(&thread, NULL, release_later, &ms) == 0);
    CHECK_OK(add_within(FK_SECONDS(30))); /* after twelve times the others' */
    pthread_join(thread, NULL);
    town_end();
}

TEST(defect_13_names_of_clusters_are_whole)
{
    static const char *const URLS[TOWN_MAX] = { "town:a", "town:ab", "town:a" };
    town_begin();
    for (int i = 0; i < TOWN_MAX; i++) {
        town_system(i);
        fk_cluster_config config = town_config(i);
        config.store = URLS[i];
        CHECK_OK(fk_cluster_join(town[i].r.sys, &config, &town[i].cluster));
        town_kinds(i);
        CHECK_OK(fk_cluster_await_ready(town[i].cluster, FK_SECONDS(30)));
    }
    PEER_AWAIT(town_where(0, "durable", "x").members == 2);
    PEER_AWAIT(town_where(2, "durable", "x").members == 2);
    PEER_AWAIT(town_stats(1).placement.slots_held == 3 * 64); /* nobody to share with */
    CHECK_U64(town_where(1, "durable", "x").members, 1);
    CHECK_U64(town_add(0, "durable", "x", 1).n, 1);
    CHECK_U64(town_add(2, "durable", "x", 1).n, 2);
    CHECK_ERR(fk_grain_peek(town[1].cluster, FK_STR("durable"), FK_STR("x"), &(fk_grain_row){ 0 }),
              FK_E_NOT_FOUND);
    town_end();
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Three nodes on one SQLite file are killed (SIGKILL, CLUSTER_KILLS times, 12) and stopped for longer
 * than their lease (SIGSTOP, CLUSTER_STOPS, 4), one after the other and at random moments, while money
 * goes from account to account. No order is lost or obeyed twice, none is obeyed by whoever is not the
 * owner any more, none fails: see support/bank.h. CLUSTER_TTL_MS is the lease (500).
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "support/bank.h"

enum { ACCOUNTS = 200, LANES = 32, PAUSE_MS = 5 };

static bank b;

static void *lane_main(void *arg)
{
    test_random random = { (uint64_t)(uintptr_t)arg * 7919 + 1 };
    while (!atomic_load(&b.is_over)) {
        uint32_t from = (uint32_t)test_random_below(&random, ACCOUNTS);
        uint32_t to = (uint32_t)test_random_below(&random, ACCOUNTS);
        int64_t amount = 1 + (int64_t)test_random_below(&random, 1000);
        if (bank_order_give(&b, from, -amount) == FK_OK) (void)bank_order_give(&b, to, amount);
        test_sleep_ms(PAUSE_MS);
    }
    return NULL;
}

/* Two others are there, so that somebody can take over. */
static bool is_alone(uint32_t index)
{
    for (uint32_t i = 0; i < BANK_NODES; i++) {
        if (i != index && !bank_node_is_ready(&b, i)) return true;
    }
    return false;
}

static void await_others(uint32_t index)
{
    int64_t end = test_clock() + FK_SECONDS(60);
    while (is_alone(index)) {
        CHECK(test_clock() < end);
        test_sleep_ms(1);
    }
}

static void doze(test_random *random)
{
    uint32_t index = (uint32_t)test_random_below(random, BANK_NODES);
    await_others(index);
    bank_node_signal(&b, index, SIGSTOP);
    unsigned ttl = (unsigned)(b.ttl / FK_MILLIS(1));
    test_sleep_ms(ttl + (unsigned)test_random_below(random, ttl));
    bank_node_signal(&b, index, SIGCONT);
}

static void slay(test_random *random)
{
    uint32_t index = (uint32_t)test_random_below(random, BANK_NODES);
    await_others(index);
    bank_node_kill(&b, index);
    test_sleep_ms((unsigned)test_random_below(random, 300));
    bank_node_start(&b, index);
}

TEST(cluster_loses_nothing_when_nodes_are_killed_and_stopped)
{
    uint64_t kills = test_env("CLUSTER_KILLS", 12), stops = test_env("CLUSTER_STOPS", 4);
    uint64_t seed = test_env("CLUSTER_SEED", (uint64_t)test_clock());
    pthread_t lanes[LANES];
    test_random random = { seed };
    printf("seed %" PRIu64 ": %" PRIu64 " kills, %" PRIu64 " stops\n", seed, kills, stops);
    bank_open(&b, ACCOUNTS, FK_MILLIS((fk_time)test_env("CLUSTER_TTL_MS", 500)));
    for (size_t i = 0; i < LANES; i++) {
        CHECK(pthread_create(&lanes[i], NULL, lane_main, (void *)(uintptr_t)i) == 0);
    }
    while (kills + stops > 0) {
        test_sleep_ms(100 + (unsigned)test_random_below(&random, 700));
        if (test_random_below(&random, kills + stops) < kills) {
            slay(&random);
            kills--;
        } else {
            doze(&random);
            stops--;
        }
    }
    test_sleep_ms(500);
    atomic_store(&b.is_over, true);
    for (size_t i = 0; i < LANES; i++) CHECK(pthread_join(lanes[i], NULL) == 0);
    bank_close(&b);
}

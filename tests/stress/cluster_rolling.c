/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All nodes are restarted, one after the other, by SIGTERM, while each account has a caller of its own:
 * no call fails, and an account that moves answers after a pause that is short. Counted is, for each move,
 * the call that was answered by the new owner first, or the one after it, whichever took longer; less what
 * such a call takes when nothing moves. 99 of 100 moves: at most CLUSTER_PAUSE_MS (50).
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/bank.h"

enum { ACCOUNTS = 60, PAUSE_MS = 20, SAMPLES_MAX = 4096 };

static bank b;
static int64_t pauses[SAMPLES_MAX], usual[SAMPLES_MAX];
static _Atomic size_t pause_count, usual_count;

static void sample(int64_t *samples, _Atomic size_t *count, int64_t value)
{
    size_t at = atomic_fetch_add(count, 1);
    samples[at % SAMPLES_MAX] = value;
}

static void *lane_main(void *arg)
{
    uint32_t account = (uint32_t)(uintptr_t)arg;
    bank_account last = bank_look(&b, account);
    bool has_moved = false;
    for (int64_t amount = 1; !atomic_load(&b.is_over); amount = -amount) {
        (void)bank_order_give(&b, account, amount);
        bank_account now = bank_look(&b, account);
        if (has_moved) {
            int64_t longer = now.latency > last.latency ? now.latency : last.latency;
            sample(pauses, &pause_count, longer);
            has_moved = false;
        } else if (now.epoch != last.epoch) {
            has_moved = true;
        } else {
            sample(usual, &usual_count, now.latency);
        }
        last = now;
        test_sleep_ms(PAUSE_MS);
    }
    return NULL;
}

static size_t count_of(_Atomic size_t *count)
{
    size_t n = atomic_load(count);
    return n < SAMPLES_MAX ? n : SAMPLES_MAX;
}

TEST(cluster_rolling_restart_fails_no_call)
{
    uint64_t rounds = test_env("CLUSTER_ROUNDS", 1);
    int64_t limit = FK_MILLIS((int64_t)test_env("CLUSTER_PAUSE_MS", 50));
    pthread_t lanes[ACCOUNTS];
    bank_open(&b, ACCOUNTS, FK_MILLIS((fk_time)test_env("CLUSTER_TTL_MS", 3000)));
    for (size_t i = 0; i < ACCOUNTS; i++) {
        CHECK(pthread_create(&lanes[i], NULL, lane_main, (void *)(uintptr_t)i) == 0);
    }
    for (uint64_t i = 0; i < rounds * BANK_NODES; i++) {
        test_sleep_ms(700);
        bank_node_leave(&b, (uint32_t)(i % BANK_NODES));
        test_sleep_ms(700);
        bank_node_start(&b, (uint32_t)(i % BANK_NODES));
        bank_await_ready(&b);
    }
    test_sleep_ms(1000);
    atomic_store(&b.is_over, true);
    for (size_t i = 0; i < ACCOUNTS; i++) CHECK(pthread_join(lanes[i], NULL) == 0);
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        int64_t sum = bank_look(&b, i).sum;
        if (sum != 0) CHECK_OK(bank_order_give(&b, i, -sum));
    }
    bank_close(&b);
    size_t count = count_of(&pause_count), others = count_of(&usual_count);
    CHECK(count > 0);
    CHECK(others > 0);
    int64_t normal = bank_quantile(usual, others, 0.5);
    int64_t half = bank_quantile(pauses, count, 0.5), most = bank_quantile(pauses, count, 0.99);
    printf(
        "%zu moves: p50 %.1f ms, p99 %.1f ms, max %.1f ms; other calls p50 %.1f ms, p99 %.1f ms\n",
        count, (double)half / 1e6, (double)most / 1e6, (double)pauses[count - 1] / 1e6,
        (double)normal / 1e6, (double)bank_quantile(usual, others, 0.99) / 1e6);
    if (test_is_sanitized()) limit *= 10; /* which is slow, and says nothing about time */
    CHECK(most - normal <= limit);
}

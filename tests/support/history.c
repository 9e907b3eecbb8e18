/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/history.h"

#include <stdio.h>
#include <string.h>

void history_begin(history *h, uint64_t seed, bool is_blind)
{
    memset(h, 0, sizeof(*h));
    h->random.state = seed;
    h->is_blind = is_blind;
}

uint64_t history_below(history *h, uint64_t n)
{
    return test_random_below(&h->random, n);
}

bool history_chance(history *h, uint64_t n)
{
    return history_below(h, n) == 0;
}

bool history_fail(history *h, const char *what)
{
    if (h->failure[0] == '\0') {
        snprintf(h->failure, sizeof(h->failure), "step %llu: %s", (unsigned long long)h->step,
                 what);
    }
    return false;
}

void history_run_all(history_fn run, uint64_t count, uint32_t steps)
{
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < count; i++, seed++) {
        const char *failure = run(seed, steps, false);
        if (failure == NULL) continue;
        test_failed(__FILE__, __LINE__, "FK_SEED=%llu: %s", (unsigned long long)seed, failure);
    }
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>

#include "support/test.h"
#include "unit/remote/authority_model.h"

enum { STEPS = 1000 };

TEST(authority_model_agrees_over_a_million_events)
{
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    uint64_t histories = test_is_sanitized() ? 200 : 1000;
    model_seen seen = { 0 };
    printf("seed %llu\n", (unsigned long long)seed);
    for (uint64_t i = 0; i < histories; i++, seed++) {
        const char *failure = authority_model_run(seed, STEPS, false, &seen);
        if (failure != NULL) {
            authority_model_abandon();
            test_failed(__FILE__, __LINE__, "FK_SEED=%llu: %s", (unsigned long long)seed, failure);
        }
    }
    printf("%llu events: %llu sent, %llu of them after waiting; %llu deferred, %llu refused for "
           "want of room, %llu for quarantine; %llu returned, %llu left\n",
           (unsigned long long)seen.steps, (unsigned long long)seen.sent,
           (unsigned long long)seen.drained, (unsigned long long)seen.deferred,
           (unsigned long long)seen.full, (unsigned long long)seen.blocked,
           (unsigned long long)seen.returned, (unsigned long long)seen.left);
    CHECK_U64(seen.steps, histories * STEPS);
    if (test_is_sanitized()) return; /* a fifth of the events: too few for what is rare */
    /* A history in which something never happens says nothing about it. */
    for (int i = 0; i < FK_AUTHORITY_RESULT_COUNT; i++) CHECK(seen.results[i] > 0);
    for (int i = 0; i < FK_AUTHORITY_REASON_COUNT; i++) CHECK(seen.reasons[i] > 0);
    CHECK(seen.sent > 0 && seen.drained > 0 && seen.deferred > 0 && seen.full > 0);
    CHECK(seen.blocked > 0 && seen.pierced > 0 && seen.returned > 0 && seen.attempts > 0);
    CHECK(seen.forgotten > 0 && seen.forgiven > 0 && seen.left > 0);
}

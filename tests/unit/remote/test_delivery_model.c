/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/delivery_model.h"

TEST(delivery_model_agrees_over_a_million_events)
{
    history_run_all(delivery_model_run, test_is_sanitized() ? 200 : 1000, 1000);
    /* A history in which something never happens says nothing about it. */
    const delivery_seen *seen = &delivery_model_seen;
    for (int i = 0; i < FK_OUTBOX_RESULT_COUNT; i++) CHECK(seen->results[i] > 0);
    CHECK(seen->sent > 0 && seen->again > 0 && seen->delivered > 0 && seen->lost > 0);
    CHECK(seen->overflows > 0 && seen->given_up > 0 && seen->blocked > 0 && seen->gaps > 0);
}

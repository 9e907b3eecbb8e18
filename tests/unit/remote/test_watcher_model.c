/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/watcher_model.h"

TEST(watcher_model_agrees_over_many_events)
{
    history_run_all(watcher_model_run, test_is_sanitized() ? 100 : 1000, 600);
    const watcher_seen *seen = &watcher_model_seen;
    CHECK(seen->watches > 0 && seen->shared > 0 && seen->limits > 0 && seen->fulls > 0);
    CHECK(seen->unwatches > 0 && seen->last_unwatches > 0 && seen->heartbeats > 0);
    CHECK(seen->replies > 0 && seen->rewatches > 0 && seen->losses > 0);
    CHECK(seen->skipped > 0 && seen->moves > 0);
    for (int i = FK_BOND_END_NONE + 1; i < FK_BOND_END_COUNT; i++) CHECK(seen->ends[i] > 0);
}

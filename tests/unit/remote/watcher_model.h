/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_WATCHER_MODEL_H
#define FK_TESTS_UNIT_REMOTE_WATCHER_MODEL_H

/*
 * Death watch across systems against a model of it: a table of pairs in the order in which they were
 * made, and a list of ends that are still to be told. Time passes regularly or in jumps; nodes
 * answer, fall silent, are restarted and say wrong things.
 */

#include "remote/watcher.h"
#include "support/history.h"

typedef struct watcher_seen {
    uint64_t watches, shared, limits, fulls, unwatches, last_unwatches, heartbeats, replies,
        rewatches, losses, skipped, moves;
    uint64_t ends[FK_BOND_END_COUNT];
} watcher_seen;

extern watcher_seen watcher_model_seen;

const char *watcher_model_run(uint64_t seed, uint32_t steps, bool is_blind);

#endif /* FK_TESTS_UNIT_REMOTE_WATCHER_MODEL_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_DETECTOR_MODEL_H
#define FK_TESTS_UNIT_REMOTE_DETECTOR_MODEL_H

/*
 * A failure detector against a model of it in floating point, over heartbeats that come regularly,
 * irregularly, late and not at all.
 */

#include "remote/detector.h"
#include "support/history.h"

typedef struct detector_seen {
    uint64_t heartbeats, judgements, absences, returns;
} detector_seen;

extern detector_seen detector_model_seen;

const char *detector_model_run(uint64_t seed, uint32_t steps, bool is_blind);

#endif /* FK_TESTS_UNIT_REMOTE_DETECTOR_MODEL_H */

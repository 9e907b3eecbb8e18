/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_HANDSHAKE_MODEL_H
#define FK_TESTS_UNIT_REMOTE_HANDSHAKE_MODEL_H

/*
 * A door and the streams of three authorities against a model of them: requests and answers of the
 * right and the wrong people, quarantines, frames of anybody, time. What an authority makes of a
 * handshake is its own model's business; here it is checked that it is told, and what is let in.
 */

#include "remote/handshake.h"
#include "support/history.h"

typedef struct handshake_seen {
    uint64_t results[FK_DOOR_RESULT_COUNT];
    uint64_t requests, repeats, injections, failures, drops, held, sent;
} handshake_seen;

extern handshake_seen handshake_model_seen;

const char *handshake_model_run(uint64_t seed, uint32_t steps, bool is_blind);

#endif /* FK_TESTS_UNIT_REMOTE_HANDSHAKE_MODEL_H */

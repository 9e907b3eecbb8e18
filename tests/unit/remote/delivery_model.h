/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_DELIVERY_MODEL_H
#define FK_TESTS_UNIT_REMOTE_DELIVERY_MODEL_H

/*
 * An outbox against a model of it, over a history of random events, most of which make no sense: the
 * model foretells every result, every parcel that is sent, delivered or lost, and every deadline.
 */

#include "remote/delivery.h"
#include "support/history.h"

typedef struct delivery_seen {
    uint64_t results[FK_OUTBOX_RESULT_COUNT];
    uint64_t sent, again, delivered, lost, overflows, given_up, blocked, gaps;
} delivery_seen;

extern delivery_seen delivery_model_seen;

const char *delivery_model_run(uint64_t seed, uint32_t steps, bool is_blind);

#endif /* FK_TESTS_UNIT_REMOTE_DELIVERY_MODEL_H */

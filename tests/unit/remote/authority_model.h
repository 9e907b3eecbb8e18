/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_H
#define FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_H

/*
 * A table of authorities against a model of it, over a history of random events. The model is
 * written from the rules, in the plainest way: arrays, no heap, no hash, no lists. It foretells
 * every result, every effect and every field; only the jitter it looks up, and checks its range.
 *
 * Beside it goes a ledger of letters: each is at one place at any time, is sent or comes back
 * exactly once, and those of one authority are sent in the order in which they were accepted.
 */

#include "remote/authority.h"

typedef struct model_seen {
    uint64_t steps;
    uint64_t results[FK_AUTHORITY_RESULT_COUNT];
    uint64_t reasons[FK_AUTHORITY_REASON_COUNT];
    uint64_t sent, drained, deferred, full, blocked, pierced, returned, attempts, forgotten,
        forgiven, left;
} model_seen;

/* One history; NULL, or what went wrong first. What happened is added to *seen. is_blind: looks at
 * what calls return and hand over only, not into the table. */
const char *authority_model_run(uint64_t seed, uint32_t steps, bool is_blind, model_seen *seen);
/* After a run that was left by a jump: frees its memory. */
void authority_model_abandon(void);

#endif /* FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_H */

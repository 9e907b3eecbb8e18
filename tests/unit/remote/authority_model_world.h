/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_WORLD_H
#define FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_WORLD_H

/* What the two halves of the model share: authority_model.c foretells, authority_model_history.c
 * lets things happen and compares. */

#include "support/test.h"
#include "unit/remote/authority_model.h"

enum { PEERS = 4, LETTERS = 80, UIDS = 7, MARKS = 8, PERCENT = 100 };

#define DAY FK_MINUTES(24 * 60)

typedef struct mark {
    uint64_t uid;
    fk_time at;
} mark;

/* What an authority should be. */
typedef struct peer {
    fk_authority *real;
    fk_association state;
    bool open, draining, mapped, attempting;
    uint64_t uid, attempt;
    uint32_t incarnation, failures, drops;
    fk_time attempt_at, give_up_at, lift_at, opened_at;
    mark marks[MARKS];
    uint32_t mark_count;
    uint32_t queue[LETTERS], queue_len;
    uint32_t hand[LETTERS], hand_len; /* taken, not yet sent */
    uint64_t last_sent;
    bool buried[UIDS + 1]; /* uids that stay out though it was forgotten */
} peer;

typedef enum place { AT_HOME, IN_QUEUE, IN_HAND } place;

typedef struct letter {
    fk_envelope link;
    place place;
    uint64_t serial; /* in the order of acceptance */
} letter;

/* In front of what it holds. */
typedef struct block {
    _Alignas(16) struct block *next;
    struct block *prev;
    size_t size;
} block;

typedef struct world {
    test_random random;
    bool is_blind;
    model_seen *seen;
    char failure[200];
    fk_mem mem;
    fk_authority_table table;
    fk_authority_config config; /* with defaults */
    fk_time now, duration, keep;
    peer peers[PEERS];
    letter letters[LETTERS];
    uint64_t serial;
    uint32_t queued; /* in all */
    uint64_t deferred, drained, returned;
    bool is_short; /* of memory */
    uint32_t refusals;
    block blocks; /* a ring */
} world;

extern world model;

/* What a call should tell; compared with what it told. */
typedef struct expected {
    fk_authority_result result;
    bool changes, closes, is_new_peer, opens, connects;
    fk_association from;
    fk_authority_reason reason;
    uint64_t forgiven, forgotten;
    uint32_t refused;
} expected;

/* Notes the first failure, which ends the history; false. */
bool authority_model_fail(const char *what, const peer *p);

#define EXPECT(condition, p)                                                                       \
    do {                                                                                           \
        if (!(condition)) return authority_model_fail(#condition, p);                              \
    } while (0)

/* These move the model as the event should move the authority, and say what should be told. False:
 * the real one has chosen a moment for its next attempt that is out of range. */
bool authority_model_event(peer *p, const fk_authority_event *event, expected *e);
bool authority_model_tick(peer *p, expected *e);
void authority_model_crowd(peer *p, bool is_spared, expected *e);
bool authority_model_mapped(peer *p);

#endif /* FK_TESTS_UNIT_REMOTE_AUTHORITY_MODEL_WORLD_H */

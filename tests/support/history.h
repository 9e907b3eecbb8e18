/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_HISTORY_H
#define FK_TESTS_SUPPORT_HISTORY_H

/*
 * A history: random acts, after each of which the code under test and a model of it must agree. It
 * ends at the first disagreement, which is kept as text; that way the same history can be played to
 * code that is broken on purpose (base/safeguard.h), where a disagreement is what is wanted.
 */

#include "support/test.h"

typedef struct history {
    test_random random;
    bool is_blind;     /* looks at what calls return only, not at invariants inside */
    uint64_t step;     /* the act that is under way */
    char failure[200]; /* the first one */
} history;

/* NULL, or what went wrong first. */
typedef const char *(*history_fn)(uint64_t seed, uint32_t steps, bool is_blind);

void history_begin(history *h, uint64_t seed, bool is_blind);
uint64_t history_below(history *h, uint64_t n);
/* Once in n times. */
bool history_chance(history *h, uint64_t n);
/* Notes the first failure; false. */
bool history_fail(history *h, const char *what);

/* Many histories from FK_SEED, or else the clock, on; prints the seed first. */
void history_run_all(history_fn run, uint64_t count, uint32_t steps);

#define EXPECT(h, condition)                                                                       \
    do {                                                                                           \
        if (!(condition)) return history_fail(h, #condition);                                      \
    } while (0)

#endif /* FK_TESTS_SUPPORT_HISTORY_H */

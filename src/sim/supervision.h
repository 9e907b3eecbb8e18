/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_SUPERVISION_H
#define FK_SIM_SUPERVISION_H

/*
 * The scenario "supervision": a tree of 500 actors, six children each, and 500,000 messages from
 * outside, each of which is a ping or makes its receiver fail. A failure says how many levels up it
 * is to be decided, and how. Too many messages for a ledger of each; so it is counted: every message
 * is handled once or dies, every failure is decided once at each level, nobody handles anything
 * between its failure and the decision, states are as old as they should be, and in the end everybody
 * answers.
 */

#include <stdint.h>

/* One run of that seed: NULL, or what was found. */
const char *fk__supervision_run(uint64_t seed);

#endif /* FK_SIM_SUPERVISION_H */

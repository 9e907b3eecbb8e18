/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_STRATEGY_H
#define FK_STRATEGY_H

/* Strategies: who should own a slot of a kind. Every member computes the same. */

#include "fraktor/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FK_NOBODY UINT32_MAX

/* Members that can own slots of one kind, in the order of their ids. */
typedef struct fk_candidate {
    uint64_t seed; /* hash of its id */
    uint32_t weight;
} fk_candidate;

typedef struct fk_strategy_ops {
    const char *name; /* checked when a member joins: all must use the same */
    /* owner[slot]: index of the candidate, FK_NOBODY when there is none. score: as many numbers of the
     * strategy's own, kept with the table. */
    void (*build)(const fk_candidate *candidates, uint32_t count, uint32_t slots, uint32_t *owner,
                  uint64_t *score);
    /* The same as build(), with no more work than what changes. Both get the list that has the
     * candidate in it, at `index`, and its length: the new list to add, the old one to remove. The
     * owners come in by the indices before the change and leave by those after it: whoever is behind
     * `index` moves by one. */
    void (*add)(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                uint32_t *owner, uint64_t *score);
    void (*remove)(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                   uint32_t *owner, uint64_t *score);
} fk_strategy_ops;

/* Weighted rendezvous, computed once for each slot. Ties go to the smaller id. */
extern FK_API const fk_strategy_ops fk_strategy_rendezvous;

/* Score of a member for a slot; the highest owns it. The same number on every machine. 0 only of
 * weight 0, which owns nothing. */
FK_API uint64_t fk_rendezvous_score(uint64_t member_seed, uint32_t slot, uint32_t weight);
FK_API uint64_t fk_member_seed(fk_str id);

#ifdef __cplusplus
}
#endif
#endif /* FK_STRATEGY_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A strategy whose scores are mostly equal, so that everything rests on how ties are settled: of
 * equals the first is the owner, and the first is the one with the smaller id. */

#include "sim/cluster.h"

enum { LEVELS_SHIFT = 62 };

static void choose(const fk_candidate *candidates, uint32_t count, uint32_t without, uint32_t slot,
                   uint32_t *owner)
{
    uint64_t best = 0;
    owner[slot] = FK_NOBODY;
    for (uint32_t i = 0; i < count; i++) {
        if (i == without || candidates[i].weight == 0) continue;
        uint64_t score = fk_rendezvous_score(candidates[i].seed, slot, 1) >> LEVELS_SHIFT;
        if (owner[slot] != FK_NOBODY && score <= best) continue;
        best = score;
        owner[slot] = without < i ? i - 1 : i;
    }
}

static void ties_build(const fk_candidate *candidates, uint32_t count, uint32_t slots,
                       uint32_t *owner, uint64_t *score)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        choose(candidates, count, FK_NOBODY, slot, owner);
        score[slot] = 0;
    }
}

static void ties_add(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                     uint32_t *owner, uint64_t *score)
{
    (void)index;
    ties_build(candidates, count, slots, owner, score);
}

static void ties_remove(const fk_candidate *candidates, uint32_t count, uint32_t index,
                        uint32_t slots, uint32_t *owner, uint64_t *score)
{
    (void)score;
    for (uint32_t slot = 0; slot < slots; slot++) choose(candidates, count, index, slot, owner);
}

const fk_strategy_ops fk__csim_ties = {
    .name = "ties",
    .build = ties_build,
    .add = ties_add,
    .remove = ties_remove,
};

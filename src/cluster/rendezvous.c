/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Weighted rendezvous. Each candidate draws a number u for each slot, 32 bits that depend on its seed
 * and the slot alone; the largest -w / ln((u + 1/2) / 2^32) owns the slot. So a candidate that comes
 * takes slots, one that goes leaves slots, and between two others nothing ever moves.
 *
 * Every machine must find the same owner, so there are no floating point numbers. A score is
 *
 *     32 bits: 46 + log2(w) - log2(L), 25 of them behind the point,  L = 2^40 * -log2((u + 1/2) / 2^32)
 *     32 bits: u
 *
 * where both logarithms come from squaring, bit by bit. That never decreases when its argument grows;
 * hence among candidates of the same weight the largest u has the highest score, and nobody needs to
 * compute one. Among different weights it is needed only when simple bounds of -ln leave it open.
 *
 * The strategy's numbers are draws: u and, below it, the weight of the owner.
 */

#include "base/base.h"
#include "base/hash.h"
#include "fraktor/placement.h"

enum {
    RDV_FINE = 40,   /* bits of L behind the point */
    RDV_COARSE = 25, /* bits of a score behind the point */
    RDV_ZERO = 46,   /* more than log2(L) can be */
    RDV_SLACK = 12   /* bounds that are closer than 2^-12 decide nothing: scores are rounded */
};

static FK_HOT uint32_t rdv_u(uint64_t draw)
{
    return (uint32_t)(draw >> 32);
}

static FK_HOT uint32_t rdv_weight(uint64_t draw)
{
    return (uint32_t)draw;
}

/* Slots are small numbers in a row; seeds may be anything. */
static FK_HOT uint64_t rdv_slot_hash(uint32_t slot)
{
    return fk__mix64(slot + 0x9e3779b97f4a7c15u);
}

static FK_HOT uint64_t rdv_draw(uint64_t slot_hash, const fk_candidate *candidate)
{
    uint64_t mixed = fk__mix64(candidate->seed ^ slot_hash);
    return (mixed & 0xffffffff00000000u) | candidate->weight;
}

/* ---- scores ----------------------------------------------------------------------------------- */

/* The upper half of x * x, exactly, on machines that have no such multiplication, too. */
static uint64_t rdv_square(uint64_t x)
{
    uint64_t high = x >> 32, low = x & 0xffffffffu;
    uint64_t middle = high * low; /* counts twice, hence the odd shifts */
    uint64_t sum = low * low + (middle << 33);
    return high * high + (middle >> 31) + (sum < middle << 33);
}

/* log2(x) with that many bits behind the point, cut off. A square has twice the logarithm, so each
 * squaring shows one more bit of it. */
static uint64_t rdv_log2(uint64_t x, int bits)
{
    uint64_t log = 63;
    FK_ASSERT(x != 0);
    for (int shift = 32; shift != 0; shift /= 2) {
        if (x >> (64 - shift) == 0) {
            x <<= shift;
            log -= (uint64_t)shift;
        }
    }
    for (int i = 0; i < bits; i++) {
        x = rdv_square(x);
        uint64_t bit = x >> 63;
        x <<= 1 - bit;
        log = log << 1 | bit;
    }
    return log;
}

static FK_COLD uint64_t rdv_score(uint64_t draw)
{
    uint64_t u = rdv_u(draw), weight = rdv_weight(draw);
    if (weight == 0) return 0;
    uint64_t odds =
        ((uint64_t)33 << RDV_FINE) - rdv_log2(2 * u + 1, RDV_FINE); /* never 0: cut off */
    uint64_t coarse = ((uint64_t)RDV_ZERO << RDV_COARSE) + rdv_log2(weight, RDV_COARSE) -
                      rdv_log2(odds, RDV_COARSE);
    return coarse << 32 | u;
}

uint64_t fk_rendezvous_score(uint64_t member_seed, uint32_t slot, uint32_t weight)
{
    return rdv_score(rdv_draw(rdv_slot_hash(slot), &(fk_candidate){ member_seed, weight }));
}

/* True only if a's score is below b's; of two different weights, without logarithms. With v = 1 - u/2^32
 * it is v <= -ln(1 - v) <= v + v * v, the latter for v up to 1/2. Very small v are left to the scores,
 * where L has few bits. */
static FK_HOT bool rdv_is_surely_below(uint64_t a, uint64_t b)
{
    uint64_t least = (uint32_t)~rdv_u(a); /* units of 2^-32, and a half more */
    uint64_t most = (uint32_t)~rdv_u(b);
    if (least < 4096 || most < 4096 || most >= (uint64_t)1 << 31) return false;
    most += 1;
    most += (most * most >> 32) + 1;
    uint64_t left = least * rdv_weight(b), right = most * rdv_weight(a);
    return left - (left >> RDV_SLACK) > right;
}

static FK_HOT bool rdv_is_above(uint64_t a, uint64_t b)
{
    if (FK_LIKELY(rdv_weight(a) == rdv_weight(b))) return a > b;
    if (rdv_weight(a) == 0 || rdv_is_surely_below(a, b)) return false;
    if (rdv_weight(b) == 0 || rdv_is_surely_below(b, a)) return true;
    return rdv_score(a) > rdv_score(b);
}

/* ---- tables ----------------------------------------------------------------------------------- */

/* The owner of one slot; candidate `without` does not take part. */
static void rdv_choose(const fk_candidate *candidates, uint32_t count, uint32_t without,
                       uint32_t slot, uint32_t *owner, uint64_t *score)
{
    uint64_t hash = rdv_slot_hash(slot), best = 0;
    uint32_t who = FK_NOBODY;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t draw = rdv_draw(hash, &candidates[i]);
        if (i == without || candidates[i].weight == 0) continue;
        if (who == FK_NOBODY || rdv_is_above(draw, best)) { /* of equals the first stays */
            best = draw;
            who = i;
        }
    }
    owner[slot] = who;
    score[slot] = best;
}

static bool rdv_is_even(const fk_candidate *candidates, uint32_t count)
{
    uint32_t weight = count != 0 ? candidates[0].weight : 0;
    for (uint32_t i = 1; i < count; i++) {
        if (candidates[i].weight != weight) return false;
    }
    return weight != 0;
}

/* The same with all weights equal: nothing but the largest draw. */
static void rdv_build_even(const fk_candidate *candidates, uint32_t count, uint32_t slots,
                           uint32_t *owner, uint64_t *score)
{
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint64_t hash = rdv_slot_hash(slot), best = rdv_draw(hash, &candidates[0]);
        uint32_t who = 0;
        for (uint32_t i = 1; i < count; i++) {
            uint64_t draw = rdv_draw(hash, &candidates[i]);
            if (FK_UNLIKELY(draw > best)) {
                best = draw;
                who = i;
            }
        }
        owner[slot] = who;
        score[slot] = best;
    }
}

static void rdv_build(const fk_candidate *candidates, uint32_t count, uint32_t slots,
                      uint32_t *owner, uint64_t *score)
{
    if (rdv_is_even(candidates, count)) {
        rdv_build_even(candidates, count, slots, owner, score);
        return;
    }
    for (uint32_t slot = 0; slot < slots; slot++) {
        rdv_choose(candidates, count, FK_NOBODY, slot, owner, score);
    }
}

static void rdv_add(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                    uint32_t *owner, uint64_t *score)
{
    FK_ASSERT(index < count);
    const fk_candidate newcomer = candidates[index];
    for (uint32_t slot = 0; slot < slots; slot++) {
        uint32_t was = owner[slot];
        uint64_t held = score[slot], draw = rdv_draw(rdv_slot_hash(slot), &newcomer);
        bool is_behind = was >= index; /* so its index grows, and it loses when they are equal */
        bool is_close = rdv_u(draw) == rdv_u(held); /* equal scores have equal draws */
        bool takes = newcomer.weight != 0 && (was == FK_NOBODY || rdv_is_above(draw, held) ||
                                              (is_close && is_behind && !rdv_is_above(held, draw)));
        if (takes) score[slot] = draw;
        owner[slot] = takes ? index : was + (is_behind && was != FK_NOBODY);
    }
}

static void rdv_remove(const fk_candidate *candidates, uint32_t count, uint32_t index,
                       uint32_t slots, uint32_t *owner, uint64_t *score)
{
    FK_ASSERT(index < count);
    for (uint32_t slot = 0; slot < slots; slot++) {
        if (owner[slot] == index) rdv_choose(candidates, count, index, slot, owner, score);
        if (owner[slot] > index && owner[slot] != FK_NOBODY) owner[slot]--;
    }
}

const fk_strategy_ops fk_strategy_rendezvous = {
    .name = "rendezvous",
    .build = rdv_build,
    .add = rdv_add,
    .remove = rdv_remove,
};

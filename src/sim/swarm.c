/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/swarm.h"

#include "fraktor/actor.h"

static const uint32_t WEIGHTS[FK_ACT_COUNT] = {
#define ACT_WEIGHT(NAME, weight) weight,
    FK_ACTS(ACT_WEIGHT)
#undef ACT_WEIGHT
};

static uint32_t between(fk_rng *rng, uint32_t low, uint32_t high)
{
    return low + fk__rng_below(rng, high - low + 1);
}

static bool one_in(fk_rng *rng, uint32_t n)
{
    return fk__rng_below(rng, n) == 0;
}

static uint32_t power(fk_rng *rng, uint32_t low, uint32_t high)
{
    return UINT32_C(1) << between(rng, low, high);
}

static void draw_machine(fk_swarm *s, fk_rng *rng)
{
    s->is_solo = one_in(rng, 5);
    s->workers = s->is_solo ? 1 : between(rng, 1, 4);
    s->outsiders = s->is_solo ? 0 : between(rng, 1, 4);
    s->pinned_max = s->is_solo ? 0 : between(rng, 0, 4);
    s->is_direct = one_in(rng, 2);
    /* A pool hands blocks on without the machine's knowledge, so buffered stores to them would
     * arrive in somebody else's block: weak memory only where every free is seen. */
    s->memory = FK_MEMORY_SC;
    if (!s->is_solo && s->is_direct && one_in(rng, 3))
        s->memory = one_in(rng, 2) ? FK_MEMORY_TSO : FK_MEMORY_TSO_PLUS;
    s->switch_in = power(rng, 1, 6);
    s->stall_in = one_in(rng, 3) ? 0 : power(rng, 1, 6);
    s->spurious_in = one_in(rng, 2) ? 0 : power(rng, 1, 5);
    s->shuffles = one_in(rng, 3);
}

static void draw_time(fk_swarm *s, fk_rng *rng)
{
    static const fk_time STEP[] = { 1, 10, 50, 300 };
    static const fk_time CLOCK[] = { 0, 100, 20000, 400000 };
    static const fk_time LATE[] = { 0, 50000, 3000000 };
    s->step_ns = STEP[fk__rng_below(rng, 4)];
    s->clock_ns = CLOCK[fk__rng_below(rng, 4)];
    s->late_ns = LATE[fk__rng_below(rng, 3)];
    s->jump_in = one_in(rng, 2) ? 0 : power(rng, 3, 6);
    s->throughput = one_in(rng, 4) ? 100 : between(rng, 1, 12);
    s->slice = one_in(rng, 2) ? 0 : FK_MICROS(between(rng, 1, 200));
}

static void draw_memory(fk_swarm *s, fk_rng *rng)
{
    bool fails = one_in(rng, 3);
    s->fail_in = fails ? (s->is_direct ? power(rng, 3, 9) : power(rng, 0, 3)) : 0;
    bool limited = one_in(rng, 5);
    s->memory_spare = limited ? (size_t)between(rng, 1, 40) * (s->is_direct ? 1000 : 10000) : 0;
    s->creation_fails = one_in(rng, 8);
}

static void draw_workload(fk_swarm *s, fk_rng *rng)
{
    bool is_crowded = one_in(rng, 12);
    s->actors_first = between(rng, 1, 8);
    s->actors_alive = is_crowded ? between(rng, 40, 60) : between(rng, 4, 24);
    s->actors_max = one_in(rng, 12) ? between(rng, s->actors_first + 1, 24) : 0;
    s->sends_max = between(rng, 100, 1200);
    s->acts_max = between(rng, 1, 4);
    s->outside_acts = between(rng, 5, 150);
    s->outside_sends = between(rng, 30, 80);
    s->stale_in = power(rng, 1, 5);
    s->stop_at = one_in(rng, 2) ? 0 : between(rng, 20, 4000);
    s->mailboxes = (uint8_t)(one_in(rng, 3) ? 0x1f : between(rng, 1, 0x1f));
    s->overflows = (uint8_t)between(rng, 1, 0xf);
    bool is_timeless = s->is_solo && one_in(rng, 2);
    for (uint32_t i = 0; i < FK_ACT_COUNT; i++) {
        bool has = i == FK_ACT_TELL || !one_in(rng, 3);
        if (is_timeless && (i == FK_ACT_TIMER_START || i == FK_ACT_RECEIVE_TIMEOUT)) has = false;
        uint32_t often = one_in(rng, 6) ? 4 : 1;
        s->weight[i] = has ? WEIGHTS[i] * often : 0;
        s->weight_sum += s->weight[i];
    }
}

/* Many idle actors and short messages that wander between them, on several workers: the kernel is
 * to notice that running them side by side does not pay. */
static void draw_flood(fk_swarm *s, fk_rng *rng)
{
    s->workers = between(rng, 2, 3);
    s->outsiders = between(rng, 2, 4);
    s->throughput = between(rng, 1, 2);
    s->actors_first = between(rng, 30, 50);
    s->actors_alive = 60;
    s->actors_max = 0;
    s->outside_acts = 300;
    s->outside_sends = 100;
    s->sends_max = 3000;
    s->acts_max = 2;
    s->mailboxes = 0x01;
    s->switch_in = power(rng, 1, 3);
    s->stall_in = 0;
    s->step_ns = 1;
    s->clock_ns = s->late_ns = 0;
    s->jump_in = s->stop_at = 0;
    s->fail_in = 0;
    s->memory_spare = 0;
    for (uint32_t i = 0; i < FK_ACT_COUNT; i++) s->weight[i] = i == FK_ACT_TELL;
    s->weight_sum = 1;
}

/* Pairs that chat for long while others wait, and nothing else that could delay them. */
static void draw_duel(fk_swarm *s, fk_rng *rng)
{
    s->shuffles = false;
    s->throughput = between(rng, 1, 5);
    s->actors_first = between(rng, 3, 6);
    s->actors_alive = 8;
    s->actors_max = 0;
    s->mailboxes = 0x01;
    s->stop_at = 0;
    s->fail_in = 0;
    s->memory_spare = 0;
    s->weight_sum = 0;
    for (uint32_t i = 0; i < FK_ACT_COUNT; i++) {
        bool has = i == FK_ACT_TELL || i == FK_ACT_VOLLEY || i == FK_ACT_SPAWN || i == FK_ACT_YIELD;
        s->weight[i] = has ? WEIGHTS[i] : 0;
        s->weight_sum += s->weight[i];
    }
}

/* More ready actors than a worker's ring holds. */
static void draw_crowd(fk_swarm *s, fk_rng *rng)
{
    s->actors_first = between(rng, 260, 340);
    s->actors_alive = s->actors_first + 20;
    s->actors_max = 0;
    s->sends_max = 1500;
    s->mailboxes = 0x01;
    s->stop_at = one_in(rng, 2) ? 0 : between(rng, 2000, 6000);
}

/* Actors that live for a moment in a handful of slots, while some thread stands still in the
 * middle of a send or a stop. */
static void draw_churn(fk_swarm *s, fk_rng *rng)
{
    static const uint8_t CHURN[FK_ACT_COUNT] = {
        [FK_ACT_TELL] = 12,       [FK_ACT_SPAWN] = 14,  [FK_ACT_STOP_SELF] = 8,
        [FK_ACT_STOP_OTHER] = 2,  [FK_ACT_POISON] = 1,  [FK_ACT_REPLY] = 6,
        [FK_ACT_TIMER_START] = 1, [FK_ACT_LOOK_UP] = 4, [FK_ACT_SELECT] = 2,
        [FK_ACT_SPAWN_NAMED] = 6
    };
    s->is_churning = true;
    s->workers = between(rng, 1, 2); /* a slot is used again by the worker that saw it fall free */
    s->outsiders = between(rng, 2, 4);
    s->outside_acts = between(rng, 60, 200);
    s->stall_in = power(rng, 0, 2);
    s->switch_in = power(rng, 2, 4);
    s->actors_alive = between(rng, 4, 8);
    s->outside_sends = 40;
    s->stale_in = 8;
    s->mailboxes = (uint8_t)(one_in(rng, 2) ? 0x01 : 0x03);
    s->jump_in = 0;
    s->weight_sum = 0;
    for (uint32_t i = 0; i < FK_ACT_COUNT; i++) {
        s->weight[i] = CHURN[i];
        s->weight_sum += CHURN[i];
    }
}

static fk_rng draw_plain(fk_swarm *s, uint64_t seed)
{
    *s = (fk_swarm){ .seed = seed };
    fk_rng rng = { fk__mix64(seed * UINT64_C(0x9E3779B97F4A7C15) + 1) | 1 };
    draw_machine(s, &rng);
    draw_time(s, &rng);
    draw_memory(s, &rng);
    draw_workload(s, &rng);
    return rng;
}

void fk__swarm_draw_plain(fk_swarm *s, uint64_t seed)
{
    draw_plain(s, seed);
}

void fk__swarm_draw(fk_swarm *s, uint64_t seed)
{
    fk_rng rng = draw_plain(s, seed);
    if (s->is_solo) {
        uint32_t solo = fk__rng_below(&rng, 16);
        if (solo == 0)
            draw_crowd(s, &rng);
        else if (solo <= 3)
            draw_duel(s, &rng);
        return;
    }
    uint32_t draw = fk__rng_below(&rng, 16);
    if (draw == 0)
        draw_flood(s, &rng);
    else if (draw <= 3)
        draw_churn(s, &rng);
}

fk_act fk__swarm_act(const fk_swarm *s, uint32_t draw)
{
    uint32_t act = 0;
    while (draw >= s->weight[act]) draw -= s->weight[act++];
    return (fk_act)act;
}

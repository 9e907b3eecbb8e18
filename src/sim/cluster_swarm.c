/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a seed of the scenario "cluster" says. */

#include "sim/cluster.h"

#include "sim/sometimes.h"

static fk_rng rng;

static uint32_t below(uint32_t end)
{
    return (uint32_t)(((fk__rng_next(&rng) >> 32) * end) >> 32);
}

static uint32_t between(uint32_t low, uint32_t high)
{
    return low + below(high - low + 1);
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

const char *fk__csim_mood_name(fk_csim_mood mood)
{
    static const char *const NAMES[FK_CSIM_MOODS] = { "swarm", "calm",   "rolling", "split-brain",
                                                      "storm", "clocks", "failover" };
    return NAMES[mood];
}

static fk_csim_mood draw_mood(void)
{
    static const fk_csim_mood MOODS[] = { FK_CSIM_SWARM,   FK_CSIM_SWARM,  FK_CSIM_SWARM,
                                          FK_CSIM_SWARM,   FK_CSIM_SWARM,  FK_CSIM_CALM,
                                          FK_CSIM_ROLLING, FK_CSIM_SPLIT,  FK_CSIM_STORM,
                                          FK_CSIM_STORM,   FK_CSIM_CLOCKS, FK_CSIM_FAILOVER };
    return MOODS[below(sizeof(MOODS) / sizeof(MOODS[0]))];
}

static void draw_network(fk_csim_plan *p)
{
    static const fk_time DELAY[] = { FK_MILLIS(1), FK_MILLIS(5), FK_MILLIS(20), FK_MILLIS(60) };
    p->delay_max = DELAY[below(4)];
    p->delay_min = one_in(2) ? FK_MICROS(50) : p->delay_max / 2;
    if (one_in(2)) {
        p->spike_in = between(20, 300);
        p->spike_max = FK_MILLIS(between(100, 4000));
    }
    p->drop_in = one_in(2) ? between(10, 200) : 0;
    p->dup_in = one_in(2) ? between(5, 100) : 0;
    p->lost_ack_in = one_in(2) ? between(5, 80) : 0;
    p->twice_in = one_in(2) ? between(2, 20) : 0;
    p->busy_in = one_in(3) ? between(5, 50) : 0;
    p->pause_load_in = one_in(3) ? between(3, 30) : 0;
    p->pause_store_in = one_in(3) ? between(5, 60) : 0;
}

static void draw_faults(fk_csim_plan *p)
{
    static const uint32_t WEIGHTS[FK_CSIM_FAULT_COUNT] = {
#define FAULT_WEIGHT(NAME, weight) weight,
        FK_CSIM_FAULTS(FAULT_WEIGHT)
#undef FAULT_WEIGHT
    };
    for (uint32_t i = 0; i < FK_CSIM_FAULT_COUNT; i++) {
        p->fault[i] = one_in(2) ? WEIGHTS[i] * (one_in(5) ? 4 : 1) : 0;
    }
    p->fault_gap = FK_MILLIS(between(200, 3000));
    if (p->mood == FK_CSIM_STORM) {
        for (uint32_t i = 0; i < FK_CSIM_FAULT_COUNT; i++) p->fault[i] = 0;
        p->fault[FK_CSIM_FAULT_LEAVE] = 4;
        p->fault[FK_CSIM_FAULT_CRASH] = one_in(2) ? 2 : 0;
        p->fault[FK_CSIM_FAULT_DRAIN] = one_in(2) ? 2 : 0;
        p->fault[FK_CSIM_FAULT_OLD_VIEW] = one_in(2) ? 2 : 0;
        p->fault_gap = FK_MILLIS(between(100, 1200));
    }
    if (p->mood == FK_CSIM_CLOCKS) {
        p->ppm_max = (int32_t)between(10000, 200000);
        p->fault[FK_CSIM_FAULT_RATE] = 4;
        p->fault[FK_CSIM_FAULT_FREEZE] = one_in(2) ? 6 : 0;
    }
    if (p->mood == FK_CSIM_FAILOVER) p->fault[FK_CSIM_FAULT_FAILOVER] = 8;
}

static void draw_limits(fk_csim_plan *p)
{
    static const uint32_t BATCH[] = { 0, 1, 2, 5 };
    p->acquire_batch = BATCH[below(4)];
    p->drain_batch = BATCH[below(4)];
    p->cache_capacity = one_in(4) ? 0 : one_in(3) ? between(1, 3) : 65536;
    p->command_timeout = FK_MILLIS(between(800, 5000));
    p->op_timeout = FK_MILLIS(between(300, 1500));
    p->view_every = FK_MILLIS(between(20, 700));
    p->idle_ttl = FK_MILLIS(between(300, 3000));
}

/* Nobody is in the way of anybody: then no call may fail. */
static void make_calm(fk_csim_plan *p)
{
    p->spike_in = p->drop_in = p->dup_in = p->lost_ack_in = p->twice_in = p->busy_in = 0;
    p->pause_load_in = p->pause_store_in = 0;
    p->command_timeout = FK_SECONDS(5);
    p->op_timeout = FK_SECONDS(2);
    p->waiters_max = 0;
    p->call_timeout = FK_SECONDS(20);
    for (uint32_t i = 0; i < FK_CSIM_FAULT_COUNT; i++) p->fault[i] = 0;
    if (p->mood == FK_CSIM_CALM) p->fault[FK_CSIM_FAULT_PASSIVATE] = one_in(2) ? 4 : 0;
}

void fk__csim_plan_draw(fk_csim_plan *p, uint64_t seed, bool is_split)
{
    rng.state = fk__mix64(seed ^ UINT64_C(0x2545F4914F6CDD1D)) | 1;
    *p = (fk_csim_plan){ .mood = draw_mood() };
    p->members = between(2, FK_CSIM_MEMBERS);
    if (is_split) p->mood = FK_CSIM_SPLIT;
    if (p->mood >= FK_CSIM_ROLLING && p->members < 3) p->members = 3;
    p->keys = between(2, FK_CSIM_KEYS);
    p->clients = between(1, 3);
    p->has_guest = !one_in(3);
    p->is_shuffled = one_in(2);
    p->is_epoch_global = one_in(2);
    p->has_ties = one_in(4);
    p->joins_first = one_in(3);
    p->trouble = FK_SECONDS(between(5, 20));
    p->turn_max = one_in(3) ? FK_MILLIS(40) : FK_MICROS(500);
    p->think_max = FK_MILLIS(between(20, 800));
    p->call_timeout = FK_SECONDS(between(2, 12));
    p->ppm_max = 1900;
    p->read_in = between(2, 8);
    p->burst_in = one_in(2) ? between(3, 20) : 0;
    p->starve_in = p->mood == FK_CSIM_SWARM && one_in(4) ? between(3, 60) : 0;
    p->waiters_max = one_in(5) ? between(1, 4) : 0;
    draw_network(p);
    draw_limits(p);
    draw_faults(p);
    if (p->mood == FK_CSIM_CALM || p->mood == FK_CSIM_ROLLING || p->mood == FK_CSIM_SPLIT) {
        make_calm(p);
    }
    if (p->mood == FK_CSIM_SPLIT) p->call_timeout = FK_SECONDS(between(2, 12));
    for (uint32_t i = 0; i < FK_CSIM_FAULT_COUNT; i++) p->fault_sum += p->fault[i];
}

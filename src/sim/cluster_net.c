/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The network between nodes, lock service and rows: messages take their time, overtake each other,
 * get lost or come twice. Who was cut off is so from one moment to another, in one direction or both.
 */

#include "sim/cluster.h"

#include "sim/sometimes.h"

static fk_csim *const w = &fk__csim;

bool fk__csim_is_cut(uint8_t from, uint8_t to)
{
    return w->cut[from][to] > w->now;
}

static fk_time draw_delay(uint8_t from, uint8_t to)
{
    const fk_csim_plan *p = &w->plan;
    fk_time delay = fk__csim_between(p->delay_min, p->delay_max);
    if (!w->is_healed && fk__csim_one_in(p->spike_in)) {
        delay += fk__csim_between(0, p->spike_max);
        FK_SOMETIMES_HIT(CLUSTER_SPIKE);
    }
    for (uint32_t service = 0; service < 2; service++) {
        bool is_it = from == FK_CSIM_LOCK + service || to == FK_CSIM_LOCK + service;
        if (is_it && w->services.slow_until[service] > w->now)
            delay += fk__csim_between(0, FK_MILLIS(1500));
    }
    return delay;
}

typedef struct parcel {
    void (*fn)(void *arg, uint64_t number);
    void *arg;
    uint8_t from, to;
} parcel;

static void arrive(void *arg, uint64_t number)
{
    const parcel *p = arg;
    if (fk__csim_is_cut(p->from, p->to)) {
        fk__cfact(FK_CFACT_DROP, p->from, p->to, 0);
        return;
    }
    if (p->to >= FK_CSIM_LOCK) {
        if (w->services.down_until[p->to - FK_CSIM_LOCK] <= w->now) p->fn(p->arg, number);
        return;
    }
    fk_csim_node *n = &w->node[p->to];
    if (n->state != FK_CSIM_ABSENT) fk__csim_node_at(n, 0, p->fn, p->arg, number);
}

void fk__csim_send(uint8_t from, uint8_t to, void (*fn)(void *arg, uint64_t number), void *arg)
{
    parcel *p = fk__csim_new(sizeof(*p));
    *p = (parcel){ fn, arg, from, to };
    if (fk__csim_is_cut(from, to)) {
        FK_SOMETIMES_HIT(CLUSTER_CUT);
        fk__cfact(FK_CFACT_DROP, from, to, 0);
        return;
    }
    bool is_bad = !w->is_healed && w->now != w->begun;
    if (is_bad && fk__csim_one_in(w->plan.drop_in)) {
        FK_SOMETIMES_HIT(CLUSTER_DROP);
        fk__cfact(FK_CFACT_DROP, from, to, 0);
        return;
    }
    fk__csim_at(draw_delay(from, to), arrive, p, 0);
    if (is_bad && fk__csim_one_in(w->plan.dup_in)) {
        FK_SOMETIMES_HIT(CLUSTER_DUP);
        fk__cfact(FK_CFACT_DUP, from, to, 0);
        fk__csim_at(draw_delay(from, to), arrive, p, 0);
    }
}

void fk__csim_heal_network(void)
{
    for (uint32_t a = 0; a < FK_CSIM_ENDS; a++) {
        for (uint32_t b = 0; b < FK_CSIM_ENDS; b++) w->cut[a][b] = 0;
    }
}

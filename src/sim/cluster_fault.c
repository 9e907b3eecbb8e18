/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* When things go wrong, as the plan of the seed says, and how they come right at the end. */

#include "sim/cluster.h"

#include "sim/sometimes.h"

static fk_csim *const w = &fk__csim;

static fk_csim_node *any_member(void)
{
    return &w->node[fk__csim_below(w->plan.members)];
}

static fk_csim_node *any_node(void)
{
    bool is_guest = w->plan.has_guest && fk__csim_one_in(w->plan.members + 1);
    return is_guest ? &w->node[FK_CSIM_MEMBERS] : any_member();
}

/* Now and then longer than a lease. */
static fk_time any_time(void)
{
    return fk__csim_between(FK_MILLIS(100), fk__csim_one_in(2) ? FK_SECONDS(1) : FK_SECONDS(6));
}

static void cut(uint8_t from, uint8_t to, fk_time time)
{
    w->cut[from][to] = w->now + time;
    fk__cfact(FK_CFACT_CUT, from, to, (uint64_t)time / 1000000);
}

static void cut_both(uint8_t a, uint8_t b, fk_time time)
{
    cut(a, b, time);
    cut(b, a, time);
}

static void cut_service(uint8_t service)
{
    fk_time time = any_time();
    uint8_t node = any_member()->index;
    uint32_t way = fk__csim_below(3);
    if (way != 1) cut(node, service, time);
    if (way != 2) cut(service, node, time);
}

static void reboot(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_node *n = arg;
    if (n->state == FK_CSIM_ABSENT) fk__csim_boot(n);
}

static void crash(void)
{
    fk_csim_node *n = any_node();
    fk__csim_crash(n);
    fk__csim_at(any_time(), reboot, n, 0);
}

/* The machine stands still, and its clock with it. */
static void freeze(void)
{
    fk_csim_node *n = any_member();
    fk_time time = any_time();
    if (n->state == FK_CSIM_ABSENT || n->paused_until > w->now) return;
    fk__cfact(FK_CFACT_FREEZE, n->index, (uint64_t)time / 1000000, 0);
    fk__csim_clock_set(n, n->clock_ppm);
    n->clock_true = w->now + time;
    fk__csim_pause(n, time);
    FK_SOMETIMES_HIT(CLUSTER_FROZEN);
}

static void set_rate(void)
{
    fk_csim_node *n = any_member();
    int32_t ppm = (int32_t)fk__csim_between(-w->plan.ppm_max, w->plan.ppm_max);
    fk__csim_clock_set(n, ppm);
    fk__cfact(FK_CFACT_RATE, n->index, (uint64_t)((int64_t)ppm + 1000000), 0);
}

static void service_fault(fk_csim_fault fault)
{
    fk_csim_services *s = &w->services;
    fk_time time = any_time();
    uint64_t ms = (uint64_t)time / 1000000;
    switch (fault) {
    case FK_CSIM_FAULT_LOCK_DOWN:
        s->down_until[0] = w->now + time;
        fk__cfact(FK_CFACT_SERVICE_DOWN, FK_CSIM_LOCK, 0, ms);
        break;
    case FK_CSIM_FAULT_LOCK_SLOW:
    case FK_CSIM_FAULT_ROWS_SLOW:
        s->slow_until[fault == FK_CSIM_FAULT_ROWS_SLOW] = w->now + time;
        fk__cfact(FK_CFACT_SERVICE_SLOW, FK_CSIM_LOCK, fault == FK_CSIM_FAULT_ROWS_SLOW, ms);
        break;
    case FK_CSIM_FAULT_DISK_FULL:
        s->full_until = w->now + time / 2;
        fk__cfact(FK_CFACT_DISK_FULL, FK_CSIM_ROWS, ms / 2, 0);
        break;
    default: fk__csim_lock_forget(); break;
    }
}

/* It stays, and gives away what it has; later it takes part again. */
static void end_drain(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_node *n = arg;
    n->stays_drained = false;
    if (n->state == FK_CSIM_RUNNING) fk__csim_leave(n, true);
}

static void drain(void)
{
    fk_csim_node *n = any_member();
    if (n->state != FK_CSIM_RUNNING || n->stays_drained || n->incarnation == 0) return;
    if (n->paused_until > w->now) return;
    n->stays_drained = true;
    fk__csim_drain(n);
    fk__csim_at(FK_SECONDS(1) + any_time(), end_drain, n, 0);
    FK_SOMETIMES_HIT(CLUSTER_DRAIN);
}

static void node_fault(fk_csim_fault fault)
{
    fk_csim_node *n = any_member();
    bool is_awake = n->state == FK_CSIM_RUNNING && n->paused_until <= w->now;
    if (!is_awake) return;
    switch (fault) {
    case FK_CSIM_FAULT_OLD_VIEW: fk__csim_view_old(n); break;
    case FK_CSIM_FAULT_LEAVE: fk__csim_leave(n, true); return;
    default: fk__csim_acts_quit(n); break;
    }
    fk__csim_node_after(n);
}

/* What is drawn is drawn one after the other: the order of arguments is the compiler's. */
static void network_fault(fk_csim_fault fault)
{
    fk_csim_node *n = any_node();
    uint8_t other = any_node()->index;
    fk_time time = any_time();
    if (fault == FK_CSIM_FAULT_PAUSE)
        fk__csim_pause(n, time);
    else if (fault == FK_CSIM_FAULT_CUT_NODES)
        cut_both(n->index, other, time);
    else
        cut(n->index, other, time);
}

static void do_fault(fk_csim_fault fault)
{
    switch (fault) {
    case FK_CSIM_FAULT_PAUSE:
    case FK_CSIM_FAULT_CUT_NODES:
    case FK_CSIM_FAULT_CUT_ONE_WAY: network_fault(fault); break;
    case FK_CSIM_FAULT_CRASH: crash(); break;
    case FK_CSIM_FAULT_CUT_LOCK: cut_service(FK_CSIM_LOCK); break;
    case FK_CSIM_FAULT_CUT_ROWS: cut_service(FK_CSIM_ROWS); break;
    case FK_CSIM_FAULT_FREEZE: freeze(); break;
    case FK_CSIM_FAULT_RATE: set_rate(); break;
    case FK_CSIM_FAULT_DRAIN: drain(); break;
    case FK_CSIM_FAULT_OLD_VIEW:
    case FK_CSIM_FAULT_LEAVE:
    case FK_CSIM_FAULT_PASSIVATE: node_fault(fault); break;
    default: service_fault(fault); break;
    }
}

static void trouble_step(void *arg, uint64_t number)
{
    if (w->is_healed) return;
    uint32_t draw = fk__csim_below(w->plan.fault_sum), fault = 0;
    while (draw >= w->plan.fault[fault]) draw -= w->plan.fault[fault++];
    do_fault((fk_csim_fault)fault);
    fk__csim_at(fk__csim_between(w->plan.fault_gap / 4, w->plan.fault_gap * 2), trouble_step, arg,
                number);
}

/* One after the other, the next when the last is back. */
static void roll_step(void *arg, uint64_t number)
{
    fk_csim_node *n = &w->node[number];
    if (w->is_healed || number >= w->plan.members) return;
    bool is_asked = arg != NULL;
    if (!is_asked && n->state == FK_CSIM_RUNNING && n->incarnation != 0) {
        FK_SOMETIMES_HIT(CLUSTER_ROLLED);
        fk__csim_leave(n, true);
        fk__csim_at(FK_MILLIS(100), roll_step, n, number);
        return;
    }
    bool is_back = is_asked && n->state == FK_CSIM_RUNNING && n->incarnation != 0;
    if (is_back)
        fk__csim_at(FK_SECONDS(1), roll_step, NULL, number + 1);
    else
        fk__csim_at(FK_MILLIS(100), roll_step, arg, number);
}

static void split(void)
{
    uint8_t alone = w->alone = any_member()->index;
    fk_time time = w->plan.trouble - FK_SECONDS(1);
    for (uint32_t i = 0; i < FK_CSIM_ENDS; i++) {
        if (i != alone) cut_both(alone, (uint8_t)i, time);
    }
    FK_SOMETIMES_HIT(CLUSTER_SPLIT);
}

void fk__csim_trouble_begin(void)
{
    w->trouble_at = w->now;
    if (w->plan.mood == FK_CSIM_ROLLING) roll_step(NULL, 0);
    if (w->plan.mood == FK_CSIM_SPLIT) split();
    if (w->plan.fault_sum != 0) trouble_step(NULL, 0);
}

void fk__csim_worst_moment(fk_csim_node *n, uint32_t in)
{
    if (w->is_healed || !fk__csim_one_in(in)) return;
    FK_SOMETIMES_HIT(CLUSTER_WORST_MOMENT);
    fk__csim_pause(n, any_time());
}

/* Everything works again, and everybody is there. */
void fk__csim_heal(void)
{
    w->is_healed = true;
    fk__csim_heal_network();
    fk_csim_services *s = &w->services;
    s->down_until[0] = s->down_until[1] = s->slow_until[0] = s->slow_until[1] = s->full_until = 0;
    fk__cfact(FK_CFACT_HEAL, FK_CSIM_NOBODY, 0, 0);
    bool has_forgotten = w->plan.mood == FK_CSIM_FAILOVER;
    if (has_forgotten) fk__csim_lock_raise();
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        fk_csim_node *n = &w->node[i];
        bool is_there = n->is_guest ? w->plan.has_guest : i < w->plan.members;
        if (!is_there) continue;
        if (n->clock_ppm > 1900 || n->clock_ppm < -1900) fk__csim_clock_set(n, 0);
        if (n->stays_drained && n->state == FK_CSIM_RUNNING) fk__csim_leave(n, true);
        n->stays_drained = false;
        /* Who holds a slot by an epoch that was given twice has to ask anew. */
        if (has_forgotten && !n->is_guest && !w->is_strict) fk__csim_crash(n);
        if (n->state == FK_CSIM_ABSENT) fk__csim_boot(n);
    }
}

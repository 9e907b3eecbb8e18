/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lock service: members with leases, slots with epochs. It keeps the promises of fraktor/store.h,
 * unless the plan lets it forget its newest grants. Its clock is the true one.
 */

#include "sim/cluster.h"

#include "base/safeguard.h"
#include "sim/sometimes.h"

static fk_csim *const w = &fk__csim;
static fk_csim_services *const s = &fk__csim.services;

static const fk_time TTL = FK_SECONDS(3);

static void new_view(void)
{
    fk_csim_view *view = fk__csim_new(sizeof(*view));
    view->version = ++s->version;
    if (view->version >= FK_CSIM_VERSIONS) fk__csim_fail("plan", "too many views");
    for (uint32_t i = 0; i < FK_CSIM_MEMBERS; i++) {
        for (uint64_t inc = 1; inc <= s->incarnation[i]; inc++) {
            const fk_csim_lease *lease = &s->lease[i][inc];
            if (lease->status == FK_MEMBER_DOWN || view->count == FK_CSIM_VIEW_MAX) continue;
            view->member[view->count].node = (uint8_t)i;
            view->member[view->count].incarnation = inc;
            view->member[view->count].status = lease->status;
            view->member[view->count++].weight = 1 + i % 2; /* not all are the same */
        }
    }
    s->view[view->version] = view;
    fk__cfact(FK_CFACT_VIEW, FK_CSIM_LOCK, view->version, view->count);
}

bool fk__csim_lease_is_good(uint8_t node, uint64_t incarnation)
{
    if (node >= FK_CSIM_MEMBERS || incarnation == 0) return false;
    const fk_csim_lease *lease = &s->lease[node][incarnation];
    return lease->status != FK_MEMBER_DOWN && lease->expires > w->now;
}

void fk__csim_lock_sweep(void)
{
    bool is_changed = false;
    for (uint32_t i = 0; i < FK_CSIM_MEMBERS; i++) {
        for (uint64_t inc = 1; inc <= s->incarnation[i]; inc++) {
            fk_csim_lease *lease = &s->lease[i][inc];
            if (lease->status == FK_MEMBER_DOWN || lease->expires > w->now) continue;
            lease->status = FK_MEMBER_DOWN;
            fk__cfact(FK_CFACT_EXPIRE, i, inc, 0);
            FK_SOMETIMES_HIT(CLUSTER_EXPIRED);
            is_changed = true;
        }
    }
    if (is_changed) new_view();
}

static bool slot_is_held(const fk_csim_slot *slot)
{
    return slot->incarnation != 0 && fk__csim_lease_is_good(slot->holder, slot->incarnation);
}

bool fk__csim_holds(uint8_t node, uint64_t incarnation, uint32_t key, uint64_t epoch)
{
    const fk_csim_slot *slot =
        &s->slot[w->key_kind[key]][fk_slot_of(w->key[key].id, FK_CSIM_SLOTS)];
    return slot_is_held(slot) && slot->holder == node && slot->incarnation == incarnation &&
           (epoch == 0 || slot->epoch == epoch);
}

/* ---- members -------------------------------------------------------------------------------- */

static void do_join(fk_csim_op *op)
{
    uint64_t inc = ++s->incarnation[op->node];
    if (inc >= FK_CSIM_LIVES) {
        fk__csim_fail("plan", "too many incarnations");
        return;
    }
    s->lease[op->node][inc] = (fk_csim_lease){ w->now + TTL, op->status };
    op->incarnation = inc;
    new_view();
}

static void do_renew(fk_csim_op *op)
{
    fk__csim_lock_sweep();
    fk_csim_lease *lease = &s->lease[op->node][op->incarnation];
    bool is_last = op->incarnation == s->incarnation[op->node];
    if (!is_last || !fk__csim_lease_is_good(op->node, op->incarnation)) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_FENCED;
        return;
    }
    if (op->verb == FK_STORE_RENEW) {
        lease->expires = w->now + TTL;
        fk__cfact(FK_CFACT_RENEW, op->node, op->incarnation, 0);
        return;
    }
    if (lease->status != op->status) {
        lease->status = op->status;
        new_view();
    }
}

static void do_leave(fk_csim_op *op)
{
    fk_csim_lease *lease = &s->lease[op->node][op->incarnation];
    if (op->incarnation == 0 || lease->status == FK_MEMBER_DOWN) return;
    lease->status = FK_MEMBER_DOWN;
    new_view();
}

/* ---- slots ----------------------------------------------------------------------------------- */

static uint64_t next_epoch(uint32_t kind, uint32_t slot)
{
    uint64_t *last = &s->epoch_last[kind][slot];
    if (w->plan.is_epoch_global && s->epoch_global > *last) *last = s->epoch_global;
    ++*last;
    if (*last > s->epoch_global) s->epoch_global = *last;
    return *last;
}

static void grant(uint32_t kind, uint32_t slot, uint8_t node, uint64_t incarnation)
{
    fk_csim_slot *at = &s->slot[kind][slot];
    for (uint32_t i = FK_CSIM_UNDO - 1; i > 0; i--) s->undo[i] = s->undo[i - 1];
    s->undo[0].kind = (uint8_t)kind;
    s->undo[0].slot = (uint8_t)slot;
    s->undo[0].before = *at;
    s->undo[0].epoch_last = s->epoch_last[kind][slot];
    if (s->undo_count < FK_CSIM_UNDO) s->undo_count++;
    *at = (fk_csim_slot){ node, incarnation, next_epoch(kind, slot) };
    fk__book_granted((uint8_t)kind, slot, node, at->epoch);
}

static void do_acquire(fk_csim_op *op)
{
    if (!fk__csim_lease_is_good(op->node, op->incarnation)) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_FENCED;
        return;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        fk_csim_slot *slot = &s->slot[op->kind][claim->slot];
        bool is_ours = slot->holder == op->node && slot->incarnation == op->incarnation;
        if (slot_is_held(slot) && !is_ours) {
            claim->epoch = 0;
            claim->holder = fk__csim_id(slot->holder);
            claim->holder_incarnation = slot->incarnation;
            FK_SOMETIMES_HIT(CLUSTER_DENIED);
            continue;
        }
        if (!is_ours) {
            grant(op->kind, claim->slot, op->node, op->incarnation);
            fk__cfact(FK_CFACT_GRANT, op->node, op->kind * 100u + claim->slot, slot->epoch);
        }
        claim->epoch = slot->epoch;
    }
}

static bool is_claimed(const fk_csim_op *op, const fk_slot_claim *claim)
{
    const fk_csim_slot *slot = &s->slot[op->kind][claim->slot];
    return slot->holder == op->node && slot->incarnation == op->incarnation &&
           slot->epoch == claim->epoch;
}

static void do_transfer(fk_csim_op *op)
{
    bool is_good = fk__csim_lease_is_good(op->node, op->incarnation);
    if (!is_good || !fk__csim_lease_is_good(op->to, op->to_incarnation)) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = is_good ? FK_E_NOT_FOUND : FK_E_FENCED;
        return;
    }
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        if (!is_claimed(op, claim)) {
            claim->epoch = 0;
            continue;
        }
        grant(op->kind, claim->slot, op->to, op->to_incarnation);
        claim->epoch = s->slot[op->kind][claim->slot].epoch;
        fk__cfact(FK_CFACT_TRANSFER, op->to, op->kind * 100u + claim->slot, claim->epoch);
        FK_SOMETIMES_HIT(CLUSTER_TRANSFER);
    }
}

static void do_release(fk_csim_op *op)
{
    for (uint32_t i = 0; i < op->claim_count; i++) {
        fk_slot_claim *claim = &op->claims[i];
        if (!is_claimed(op, claim)) continue;
        fk_csim_slot *slot = &s->slot[op->kind][claim->slot];
        slot->incarnation = 0;
        if (!FK_SAFEGUARD(STORE_EPOCH_REUSE)) s->epoch_last[op->kind][claim->slot]--;
        fk__cfact(FK_CFACT_RELEASE, op->node, op->kind * 100u + claim->slot, slot->epoch);
    }
}

void fk__csim_lock_apply(fk_csim_op *op)
{
    op->verdict = FK_VERDICT_OK;
    op->err = FK_OK;
    switch (op->verb) {
    case FK_STORE_JOIN: do_join(op); break;
    case FK_STORE_RENEW:
    case FK_STORE_UPDATE: do_renew(op); break;
    case FK_STORE_LEAVE: do_leave(op); break;
    case FK_STORE_VIEW:
        fk__csim_lock_sweep();
        op->view = s->version != 0 ? s->view[s->version] : NULL;
        break;
    case FK_STORE_ACQUIRE: do_acquire(op); break;
    case FK_STORE_TRANSFER: do_transfer(op); break;
    case FK_STORE_RELEASE: do_release(op); break;
    default: fk__csim_fail("plan", "verb %d is not of the lock", (int)op->verb);
    }
}

/* ---- what it must not do, and what the operator does about it --------------------------------- */

void fk__csim_lock_forget(void)
{
    uint32_t lose = 1 + fk__csim_below(FK_CSIM_UNDO);
    if (lose > s->undo_count) lose = s->undo_count;
    for (uint32_t i = 0; i < lose; i++) {
        s->slot[s->undo[i].kind][s->undo[i].slot] = s->undo[i].before;
        s->epoch_last[s->undo[i].kind][s->undo[i].slot] = s->undo[i].epoch_last;
    }
    s->undo_count = 0;
    if (lose != 0) w->is_strict = false;
    fk__cfact(FK_CFACT_FAILOVER, FK_CSIM_LOCK, lose, 0);
    FK_SOMETIMES_HIT(CLUSTER_FAILOVER);
}

void fk__csim_lock_raise(void)
{
    uint64_t base = s->epoch_global;
    for (uint32_t i = 0; i < FK_CSIM_KEYS; i++) {
        if (s->row[i].epoch > base) base = s->row[i].epoch;
    }
    for (uint32_t kind = 0; kind < FK_CSIM_KINDS; kind++) {
        for (uint32_t i = 0; i < FK_CSIM_SLOTS; i++) {
            if (w->book.epoch[kind][i] > base) base = w->book.epoch[kind][i];
        }
    }
    for (uint32_t kind = 0; kind < FK_CSIM_KINDS; kind++) {
        for (uint32_t i = 0; i < FK_CSIM_SLOTS; i++) s->epoch_last[kind][i] = base;
    }
    s->epoch_global = base;
}

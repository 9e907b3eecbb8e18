/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold at every moment, judged by what truly happened. */

#include "sim/cluster.h"

#include "sim/sometimes.h"

#include <string.h>

static fk_csim *const w = &fk__csim;
static fk_csim_book *const b = &fk__csim.book;

void fk__book_begin(void)
{
    memset(b->owner, FK_CSIM_NOBODY, sizeof(b->owner));
}

/* Before the trouble, in it, or after it. */
static uint32_t part_now(void)
{
    return w->is_healed ? 2 : w->trouble_at != 0;
}

/* ---- leases ------------------------------------------------------------------------------------ */

void fk__book_granted(uint8_t kind, uint32_t slot, uint8_t node, uint64_t epoch)
{
    uint64_t *last = &b->epoch[kind][slot];
    if (w->is_strict && epoch <= *last) {
        fk__csim_fail("I1", "slot %u goes to n%u with epoch %llu after %llu", (unsigned)slot,
                      (unsigned)node, (unsigned long long)epoch, (unsigned long long)*last);
    }
    if (epoch > *last) *last = epoch;
    if (!w->is_strict) return;
    /* I2: whoever has turns of it now is not the new holder, and is over. */
    for (uint32_t key = 0; key < w->plan.keys; key++) {
        if (w->key_kind[key] != kind || fk_slot_of(w->key[key].id, FK_CSIM_SLOTS) != slot) continue;
        for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
            const fk_csim_turn *turn = &b->turn[key][i];
            if (!turn->is_on || turn->is_excused || i == node) continue;
            fk__csim_fail("I2", "slot %u goes to n%u while n%u takes a turn of g%u", (unsigned)slot,
                          (unsigned)node, (unsigned)i, (unsigned)key);
        }
    }
}

void fk__book_activated(fk_csim_node *n, uint32_t key, uint64_t epoch)
{
    fk__cfact(FK_CFACT_ACT_START, n->index, key, epoch);
    if (!w->is_strict || fk__csim_holds(n->index, n->incarnation, key, epoch)) return;
    fk__csim_fail("I10", "n%u starts g%u under epoch %llu, and does not hold its slot",
                  (unsigned)n->index, (unsigned)key, (unsigned long long)epoch);
}

/* ---- turns ------------------------------------------------------------------------------------- */

void fk__book_turn_begin(fk_csim_node *n, const fk_csim_act *act, uint32_t deed)
{
    fk__cfact(FK_CFACT_TURN_BEGIN, n->index, act->key, deed);
    fk_csim_turn *turns = b->turn[act->key];
    b->turns++;
    if (turns[n->index].is_on) {
        fk__csim_fail("I4", "n%u takes two turns of g%u at once", (unsigned)n->index,
                      (unsigned)act->key);
    }
    for (uint32_t i = 0; i < FK_CSIM_NODES && w->is_strict; i++) {
        if (!turns[i].is_on || turns[i].is_excused) continue;
        fk__csim_fail("I4", "n%u and n%u take turns of g%u", (unsigned)i, (unsigned)n->index,
                      (unsigned)act->key);
    }
    const fk_fence *fence = &act->core.fence;
    bool holds = fk__csim_holds(n->index, fence->incarnation, act->key, fence->epoch);
    if (w->is_strict && !holds) {
        fk__csim_fail("I16", "n%u takes a turn of g%u under epoch %llu, and does not hold its slot",
                      (unsigned)n->index, (unsigned)act->key, (unsigned long long)fence->epoch);
    }
    if (!holds) FK_SOMETIMES_HIT(CLUSTER_TURN_TOO_LATE);
    b->part[n->index][part_now()].turns++;
    b->part[n->index][part_now()].last_turn = w->now - w->begun;
    turns[n->index] = (fk_csim_turn){ true, false, act->pid, n->life, deed };
}

void fk__book_turn_end(fk_csim_node *n, const fk_csim_act *act)
{
    fk_csim_turn *turn = &b->turn[act->key][n->index];
    fk__cfact(FK_CFACT_TURN_END, n->index, act->key, turn->deed);
    turn->is_on = false;
}

void fk__book_paused(fk_csim_node *n)
{
    for (uint32_t key = 0; key < FK_CSIM_KEYS; key++) b->turn[key][n->index].is_excused = true;
}

void fk__book_gone(fk_csim_node *n)
{
    for (uint32_t key = 0; key < FK_CSIM_KEYS; key++) b->turn[key][n->index].is_on = false;
    for (uint32_t i = 0; i < b->deed_count; i++) {
        fk_csim_deed *d = &b->deed[i];
        if (d->is_over || d->node != n->index || d->life != n->life) continue;
        d->is_over = d->is_lost = true;
        d->err = FK_E_STOPPING;
        b->deeds_open--;
    }
    n->open_calls = 0;
}

/* ---- rows -------------------------------------------------------------------------------------- */

void fk__book_loaded(uint32_t key, uint64_t epoch)
{
    if (epoch > b->fence[key]) b->fence[key] = epoch;
}

void fk__book_stored(const fk_csim_op *op, uint64_t total_before, uint64_t version_before)
{
    if (op->epoch < b->fence[op->key]) {
        fk__csim_fail("I5", "g%u is stored by n%u under epoch %llu after %llu", (unsigned)op->key,
                      (unsigned)op->node, (unsigned long long)op->epoch,
                      (unsigned long long)b->fence[op->key]);
    }
    b->fence[op->key] = op->epoch;
    if (op->version != version_before) {
        fk__csim_fail("I5", "version %llu of g%u is followed by %llu",
                      (unsigned long long)version_before, (unsigned)op->key,
                      (unsigned long long)op->version + 1);
    }
    if (op->record->total != total_before + op->batch_count) {
        fk__csim_fail("I6", "g%u had %llu, and now %llu with %u calls more", (unsigned)op->key,
                      (unsigned long long)total_before, (unsigned long long)op->record->total,
                      (unsigned)op->batch_count);
    }
    for (uint32_t i = 0; i < op->batch_count; i++) {
        fk_csim_deed *d = &b->deed[op->batch[i]];
        if (d->is_applied) {
            fk__csim_fail("I8", "call %u has its effect twice", (unsigned)op->batch[i]);
        }
        d->is_applied = true;
        d->applied = total_before + i + 1;
        b->applied[op->key]++;
    }
}

/* ---- calls ------------------------------------------------------------------------------------- */

/* An activation lets an answer out. */
void fk__book_replied(fk_csim_node *n, uint32_t deed, uint64_t value, bool is_durable)
{
    fk_csim_deed *d = &b->deed[deed];
    if (!is_durable) return;
    if (d->is_read) {
        if (value <= w->services.row[d->key].total) return;
        fk__csim_fail("I9", "n%u lets out a total of g%u that is not stored", (unsigned)n->index,
                      (unsigned)d->key);
    }
    if (!d->is_applied) {
        fk__csim_fail("I9", "n%u answers call %u before it is stored", (unsigned)n->index,
                      (unsigned)deed);
    }
    if (value != d->applied || (d->is_answered && value != d->replied)) {
        fk__csim_fail("I8", "call %u made the total %llu, and is told %llu", (unsigned)deed,
                      (unsigned long long)d->applied, (unsigned long long)value);
    }
    d->is_answered = true;
    d->replied = value;
}

uint32_t fk__book_asked(fk_csim_node *n, uint32_t key, bool is_read, uint8_t client)
{
    FK_ASSERT(b->deed_count < FK_CSIM_OPS);
    uint32_t number = b->deed_count++;
    b->deed[number] = (fk_csim_deed){ .key = (uint8_t)key,
                                      .node = n->index,
                                      .client = client,
                                      .is_read = is_read,
                                      .life = n->life,
                                      .begun = w->now };
    b->deeds_open++;
    n->open_calls++;
    b->calls++;
    fk__cfact(FK_CFACT_CALL, n->index, number, key);
    return number;
}

/* Whether the plan is such that no call may fail. */
static bool is_gentle(void)
{
    return w->plan.mood == FK_CSIM_CALM || w->plan.mood == FK_CSIM_ROLLING;
}

void fk__book_answered(fk_csim_node *n, uint32_t deed, fk_err err, uint64_t value)
{
    fk_csim_deed *d = &b->deed[deed];
    fk__cfact(FK_CFACT_DONE, n->index, deed, err);
    if (d->node != n->index || d->life != n->life) {
        fk__csim_fail("C2", "call %u ends where nobody asked", (unsigned)deed);
    }
    if (d->is_over) fk__csim_fail("C1", "call %u ends twice", (unsigned)deed);
    d->is_over = true;
    d->ended = w->now;
    d->err = err;
    d->value = value;
    b->deeds_open--;
    n->open_calls--;
    uint32_t *count = err == FK_OK            ? &b->part[n->index][part_now()].ok
                      : err == FK_E_NOT_READY ? &b->part[n->index][part_now()].not_ready
                                              : &b->part[n->index][part_now()].other;
    ++*count;
    if (err == FK_OK) {
        bool is_durable = w->key_kind[d->key] == 0;
        if (is_durable && !d->is_read && !d->is_applied) {
            fk__csim_fail("C3", "call %u is answered, and had no effect", (unsigned)deed);
        }
        if (is_durable && !d->is_read && d->applied != value) {
            fk__csim_fail("C2", "call %u made %llu, and was told %llu", (unsigned)deed,
                          (unsigned long long)d->applied, (unsigned long long)value);
        }
        return;
    }
    b->failed++;
    FK_SOMETIMES_HIT(CLUSTER_CALL_FAILED);
    if (err == FK_E_NOT_READY) FK_SOMETIMES_HIT(CLUSTER_NOT_READY);
    if (is_gentle()) {
        fk__csim_fail("C1", "call %u of n%u fails without a fault: %s", (unsigned)deed,
                      (unsigned)n->index, fk_err_name(err));
    }
}

/* ---- coordinators ------------------------------------------------------------------------------ */

void fk__book_event(fk_csim_node *n, const fk_placement_event *event)
{
    fk__cfact_text(FK_CFACT_EVENT, n->index, event->kind, fk_placement_event_name(event->kind));
    if (event->observed_at != fk__csim_local(n)) {
        fk__csim_fail("I17", "%s is of another time", fk_placement_event_name(event->kind));
    }
    if (event->reason == NULL) {
        fk__csim_fail("I17", "%s has no reason", fk_placement_event_name(event->kind));
    }
}

void fk__book_pending(fk_csim_node *n, uint64_t ticket)
{
    if (n->ticket_count == FK_CSIM_TICKETS) fk__csim_fail("I18", "too many wait");
    n->ticket[n->ticket_count++] = ticket;
}

void fk__book_settled(fk_csim_node *n, uint64_t ticket)
{
    uint32_t i = 0;
    while (i < n->ticket_count && n->ticket[i] != ticket) i++;
    if (i == n->ticket_count) {
        fk__csim_fail("I12", "n%u settles a ticket that is not open", (unsigned)n->index);
    }
    n->ticket[i] = n->ticket[--n->ticket_count];
}

/* Nodes that can own slots in a view. */
static uint32_t candidates_of(uint64_t version)
{
    const fk_csim_view *view = w->services.view[version];
    uint32_t mask = 0;
    for (uint32_t i = 0; i < view->count; i++) {
        if (view->member[i].status == FK_MEMBER_UP) mask |= UINT32_C(1) << view->member[i].node;
    }
    return mask;
}

/* Between those who were there before and are there still, nothing moves. */
static void check_moves(uint64_t version)
{
    if (version < 2 || !b->has_owner[version - 1]) return;
    uint32_t both = candidates_of(version) & candidates_of(version - 1);
    for (uint32_t i = 0; i < FK_CSIM_KINDS * FK_CSIM_SLOTS; i++) {
        uint8_t was = b->owner[version - 1][i / FK_CSIM_SLOTS][i % FK_CSIM_SLOTS];
        uint8_t is = b->owner[version][i / FK_CSIM_SLOTS][i % FK_CSIM_SLOTS];
        if (was == is || was == FK_CSIM_NOBODY || is == FK_CSIM_NOBODY) continue;
        if ((both >> was & 1) != 0 && (both >> is & 1) != 0) {
            fk__csim_fail("I14", "slot %u moves from n%u to n%u in view %llu", (unsigned)i,
                          (unsigned)was, (unsigned)is, (unsigned long long)version);
        }
    }
}

/* The owners that this node sees in its view: I13, and what has moved since the one before: I14. */
void fk__book_owners(fk_csim_node *n)
{
    uint64_t version = fk_placement_view(n->placement).version;
    uint8_t owner[FK_CSIM_KINDS][FK_CSIM_SLOTS];
    for (uint32_t kind = 0; kind < FK_CSIM_KINDS; kind++) {
        for (uint32_t slot = 0; slot < FK_CSIM_SLOTS; slot++) {
            fk_member member;
            uint32_t at = 0;
            fk_err err = fk_placement_owner(n->placement, &w->probe[kind][slot], &member, &at);
            owner[kind][slot] = err == FK_OK ? fk__csim_index(member.id) : FK_CSIM_NOBODY;
            /* Who has no lease says so instead. */
            if (err == FK_E_NOT_READY) return;
        }
    }
    if (n->is_draining || n->stays_drained || n->state != FK_CSIM_RUNNING) return;
    if (!b->has_owner[version]) {
        b->has_owner[version] = true;
        memcpy(b->owner[version], owner, sizeof(owner));
        check_moves(version);
    } else if (memcmp(b->owner[version], owner, sizeof(owner)) != 0) {
        fk__csim_fail("I13", "n%u has other owners in view %llu", (unsigned)n->index,
                      (unsigned long long)version);
    }
}

static void check_bounds(fk_csim_node *n)
{
    fk_placement_snapshot shot;
    fk_placement_snapshot_get(n->placement, &shot);
    const fk_csim_plan *p = &w->plan;
    bool is_cache_full = shot.cached > p->cache_capacity;
    bool is_crowded = p->waiters_max != 0 && shot.waiters > p->waiters_max * p->keys;
    if (is_cache_full || is_crowded) {
        fk__csim_fail("I18", "n%u has %u waiters and %u pids", (unsigned)n->index, shot.waiters,
                      shot.cached);
    }
    if (shot.waiters != n->ticket_count) {
        fk__csim_fail("I12", "%u tickets of n%u are open, and %u wait", (unsigned)n->ticket_count,
                      (unsigned)n->index, (unsigned)shot.waiters);
    }
    if (shot.slots_held > FK_CSIM_KINDS * FK_CSIM_SLOTS) fk__csim_fail("I18", "too many slots");
}

/* After everything a node did. */
void fk__book_node(fk_csim_node *n)
{
    if (++n->steps % 16 == 0) {
        fk_placement_check(n->placement);
        fk__desk_check(n->desk);
        check_bounds(n);
    }
    fk_time deadline = fk_placement_lease_deadline(n->placement);
    if (deadline == 0 || n->incarnation == 0) return;
    if (!w->is_strict || n->state == FK_CSIM_STOPPING) return;
    fk_time at = fk__csim_true_of(n, deadline);
    if (deadline != n->deadline_seen) {
        n->deadline_seen = deadline;
        fk__cfact(FK_CFACT_DEADLINE, n->index, (uint64_t)deadline / 1000000,
                  (uint64_t)(at - w->begun) / 1000000);
    }
    const fk_csim_lease *lease = &w->services.lease[n->index][n->incarnation];
    if (at > lease->expires) {
        fk__csim_fail("I3", "n%u may take turns for %lld ms after its lease", (unsigned)n->index,
                      (long long)(at - lease->expires) / 1000000);
    }
}

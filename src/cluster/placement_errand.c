/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errands: TryAcquire, TransferSlot and Release, each for many slots of one kind at once. */

#include "cluster/placement.h"

static size_t errand_size(uint32_t count, uint32_t to_len)
{
    return sizeof(fk_errand) + count * sizeof(uint32_t) + to_len;
}

/* Registered, with room for that many slots. NULL: no memory. */
static fk_errand *errand_create(fk_placement *p, fk_realm *realm, uint32_t count, fk_str to)
{
    fk_err err = fk__map_reserve(&p->cache, &p->errands, FK_SITE("table of errands"));
    if (err != FK_OK) return NULL;
    size_t size = errand_size(count, (uint32_t)to.len);
    fk_errand *errand = fk__cache_alloc(&p->cache, size, FK_SITE("errand"));
    if (errand == NULL) return NULL;
    *errand = (fk_errand){ .request_id = ++p->last_request,
                           .deadline = fk__time_add(p->clock, p->config.command_timeout),
                           .realm = realm,
                           .count = count,
                           .to_len = (uint32_t)to.len };
    if (to.len != 0) memcpy(&errand->slot[count], to.ptr, to.len);
    fk__map_put(&p->errands, errand->request_id, errand);
    fk__ring_put(&p->errands_due, &errand->due);
    return errand;
}

static void errand_free(fk_placement *p, fk_errand *errand)
{
    fk__map_remove(&p->errands, errand->request_id);
    fk__ring_leave(&errand->due);
    if (errand->kind == FK_COMMAND_TRY_ACQUIRE) p->acquiring--;
    fk__cache_free(&p->cache, errand, errand_size(errand->count, errand->to_len));
}

void fk__errands_forget(fk_placement *p)
{
    while (!fk__ring_is_empty(&p->errands_due)) {
        errand_free(p, FK_CONTAINER(p->errands_due.next, fk_errand, due));
    }
}

static fk_str errand_to(const fk_errand *errand)
{
    return (fk_str){ (const char *)&errand->slot[errand->count], errand->to_len };
}

/* Says it, with the claims that its slots make. */
static void errand_send(fk_placement *p, const fk_errand *errand, uint64_t to_incarnation)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    const fk_realm *realm = errand->realm;
    bool is_held = errand->kind != FK_COMMAND_TRY_ACQUIRE;
    for (uint32_t i = 0; i < errand->count; i++) {
        uint32_t slot = errand->slot[i];
        p->claims[i] =
            (fk_slot_claim){ .slot = slot, .epoch = is_held ? realm->slot[slot].epoch : 0 };
    }
    fk_placement_command command = { .kind = errand->kind,
                                     .request_id = errand->request_id,
                                     .deadline = errand->deadline,
                                     .fence = { 0, fk__placement_id(p), p->incarnation },
                                     .slots = p->claims,
                                     .slot_count = errand->count,
                                     .slot_kind = fk__realm_name(realm),
                                     .to = errand_to(errand),
                                     .to_incarnation = to_incarnation,
                                     .reason = "" };
    outcome->command(outcome->ctx, &command);
}

bool fk__errand_acquire(fk_placement *p, fk_realm *realm)
{
    fk_slot_queue *urgent = &realm->queue[FK_QUEUE_URGENT];
    fk_slot_queue *wanted = &realm->queue[FK_QUEUE_WANTED];
    uint32_t count = urgent->count + wanted->count;
    if (count > p->config.acquire_batch) count = p->config.acquire_batch;
    FK_ASSERT(count > 0);
    fk_errand *errand = errand_create(p, realm, count, (fk_str){ NULL, 0 });
    if (errand == NULL) return false;
    errand->kind = FK_COMMAND_TRY_ACQUIRE;
    p->acquiring++;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = urgent->count != 0 ? urgent->first : wanted->first;
        errand->slot[i] = slot;
        fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
        fk__slot_set(p, realm, slot, FK_SLOT_ASKED);
        realm->slot[slot].asked_by = errand->request_id;
    }
    errand_send(p, errand, 0);
    return true;
}

/* All drained ones that go where the first one goes. */
bool fk__errand_move(fk_placement *p, fk_realm *realm)
{
    const fk_slot_queue *drained = &realm->queue[FK_QUEUE_DRAINED];
    uint32_t to = FK_NOBODY, other, count = 0, at;
    fk_owner owner = fk__realm_owner(p, realm, drained->first, &to);
    FK_ASSERT(owner != FK_OWNER_SELF);
    for (at = drained->first; at != FK_NOBODY; at = realm->slot[at].next) {
        other = FK_NOBODY;
        if (fk__realm_owner(p, realm, at, &other) == owner && other == to) count++;
    }
    if (count > p->claims_max) count = p->claims_max;
    const fk_member *member = owner == FK_OWNER_OTHER ? &p->census->member[to] : NULL;
    fk_errand *errand =
        errand_create(p, realm, count, member != NULL ? member->id : (fk_str){ NULL, 0 });
    if (errand == NULL) return false;
    errand->kind = member != NULL ? FK_COMMAND_TRANSFER_SLOT : FK_COMMAND_RELEASE;
    at = drained->first;
    for (uint32_t i = 0; i < count;) {
        uint32_t slot = at;
        at = realm->slot[at].next;
        other = FK_NOBODY;
        if (fk__realm_owner(p, realm, slot, &other) != owner || other != to) continue;
        errand->slot[i++] = slot;
        fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
        fk__slot_set(p, realm, slot, FK_SLOT_LEAVING);
    }
    errand_send(p, errand, member != NULL ? member->incarnation : 0);
    return true;
}

/* ---- results ------------------------------------------------------------------------------------ */

/* What the result says of the i-th slot; NULL: nothing. */
static const fk_slot_claim *errand_claim(const fk_errand *errand, uint32_t i,
                                         const fk_placement_result *result)
{
    uint32_t slot = errand->slot[i];
    if (result->verdict != FK_VERDICT_OK || result->slots == NULL) return NULL;
    if (i < result->slot_count && result->slots[i].slot == slot) return &result->slots[i];
    for (uint32_t j = 0; j < result->slot_count; j++) {
        if (result->slots[j].slot == slot) return &result->slots[j];
    }
    return NULL;
}

/* Who has it, if that is somebody else who is there. A former life of this member, whose lease is not
 * over yet, is nobody who could be asked. */
static uint32_t errand_holder(const fk_placement *p, const fk_slot_claim *claim)
{
    if (fk__text_equal(claim->holder, fk__placement_id(p))) return FK_NOBODY;
    uint32_t holder = fk__census_find(p, claim->holder, claim->holder_incarnation);
    if (holder == FK_NOBODY || holder == p->self) return FK_NOBODY;
    return p->census->member[holder].status != FK_MEMBER_DOWN ? holder : FK_NOBODY;
}

static void errand_acquired(fk_placement *p, const fk_errand *errand,
                            const fk_placement_result *result)
{
    fk_realm *realm = errand->realm;
    for (uint32_t i = 0; i < errand->count; i++) {
        uint32_t slot = errand->slot[i];
        fk_slot *s = &realm->slot[slot];
        const fk_slot_claim *claim = errand_claim(errand, i, result);
        /* It may have been transferred to us meanwhile. */
        if (s->state != FK_SLOT_ASKED || s->asked_by != errand->request_id) continue;
        if (claim != NULL && claim->epoch != 0) {
            fk__slot_hold(p, realm, slot, claim->epoch);
        } else {
            /* When nothing is said the lock may have given it to us all the same. */
            bool is_refused = claim != NULL || result->verdict == FK_VERDICT_REFUSED;
            if (is_refused) s->is_in_doubt = false;
            if (!is_refused) s->is_in_doubt = true;
            fk__slot_refuse(p, realm, slot, claim != NULL ? errand_holder(p, claim) : FK_NOBODY);
        }
    }
}

static void errand_moved(fk_placement *p, const fk_errand *errand,
                         const fk_placement_result *result)
{
    fk_realm *realm = errand->realm;
    bool is_transfer = errand->kind == FK_COMMAND_TRANSFER_SLOT;
    for (uint32_t i = 0; i < errand->count; i++) {
        uint32_t slot = errand->slot[i];
        fk_slot *s = &realm->slot[slot];
        const fk_slot_claim *claim = errand_claim(errand, i, result);
        bool is_gone =
            is_transfer ? claim != NULL && claim->epoch != 0 : result->verdict == FK_VERDICT_OK;
        if (s->state != FK_SLOT_LEAVING) continue;
        if (is_gone) {
            if (is_transfer) s->epoch = claim->epoch;
            fk__slot_set(p, realm, slot, FK_SLOT_FREE);
            fk__say(p, (fk_placement_event){ .kind = is_transfer ? FK_PLACEMENT_SLOT_TRANSFERRED
                                                                 : FK_PLACEMENT_SLOT_RELEASED,
                                             .key.kind = fk__realm_name(realm),
                                             .authority = errand_to(errand),
                                             .epoch = s->epoch,
                                             .slot = slot });
            fk__slot_review(p, realm, slot);
            continue;
        }
        /* The lock may still think it is ours, and nobody else would get it then: it is asked. */
        fk__slot_set(p, realm, slot, FK_SLOT_FREE);
        s->is_in_doubt = true;
        s->holder = FK_NOBODY;
        s->retry_at = fk__time_add(p->clock, p->config.retry_delay);
        fk__slot_queue(p, realm, slot, FK_QUEUE_REFUSED);
        fk__say_slot(p, FK_PLACEMENT_SLOT_LOST, realm, slot,
                     result->verdict == FK_VERDICT_UNKNOWN ? "the hand-over has no known outcome"
                                                           : "the hand-over was refused");
        fk__slot_review(p, realm, slot);
    }
}

static void errand_end(fk_placement *p, fk_errand *errand, const fk_placement_result *result)
{
    if (errand->kind == FK_COMMAND_TRY_ACQUIRE) {
        errand_acquired(p, errand, result);
    } else {
        errand_moved(p, errand, result);
    }
    errand_free(p, errand);
}

fk_err fk__errand_result(fk_placement *p, const fk_placement_result *result)
{
    fk_errand *errand = fk__map_get(&p->errands, result->request_id);
    if (errand == NULL || errand->kind != result->kind) return FK_E_NOT_FOUND;
    if (result->verdict == FK_VERDICT_REFUSED && result->err == FK_E_FENCED) {
        fk__lease_lose(p, "the lock says that the lease is over");
        return FK_OK;
    }
    errand_end(p, errand, result);
    return FK_OK;
}

void fk__errand_late(fk_placement *p, fk_errand *errand)
{
    fk_placement_result result = { .kind = errand->kind,
                                   .request_id = errand->request_id,
                                   .verdict = FK_VERDICT_UNKNOWN,
                                   .err = FK_E_TIMEOUT };
    errand_end(p, errand, &result);
}

fk_err fk_placement_transferred(fk_placement *p, fk_str kind, uint64_t incarnation,
                                const fk_slot_claim *slots, uint32_t count, fk_time now)
{
    fk__placement_enter(p, now);
    fk_realm *realm = fk__realm_find(p, kind);
    if (!fk__placement_is_member(p) || incarnation != p->incarnation) return FK_E_NOT_READY;
    if (realm == NULL || realm->slot == NULL) return FK_E_UNKNOWN_KIND;
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].slot >= p->config.slots) return FK_E_INVALID;
    }
    for (uint32_t i = 0; i < count; i++) {
        fk_slot *s = &realm->slot[slots[i].slot];
        bool is_free = s->state == FK_SLOT_FREE || s->state == FK_SLOT_ASKED;
        /* Whoever wants it was told by the lock that we have it, which is news. */
        if (slots[i].epoch == 0 && s->state == FK_SLOT_FREE && !s->is_in_doubt) {
            s->is_in_doubt = true;
            fk__slot_queue(p, realm, slots[i].slot, FK_QUEUE_NONE);
            fk__slot_review(p, realm, slots[i].slot);
        }
        /* What is late or comes twice is of an epoch that is known. */
        if (is_free && slots[i].epoch > s->epoch) {
            fk__slot_hold(p, realm, slots[i].slot, slots[i].epoch);
        }
    }
    fk__slots_pump(p);
    return FK_OK;
}

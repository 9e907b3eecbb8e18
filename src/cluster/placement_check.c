/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What holds between any two calls. */

#include "cluster/placement.h"

typedef struct check_counts {
    uint32_t phase[FK_PHASE_COUNT];
    uint32_t state[FK_SLOT_STATE_COUNT];
    uint32_t queued[FK_QUEUE_COUNT];
    uint32_t attempts, waiters;
} check_counts;

static void check_attempt(const fk_placement *p, const fk_grain *grain, check_counts *counts)
{
    const fk_attempt *attempt = grain->attempt;
    FK_ASSERT(attempt->grain == grain);
    FK_ASSERT(attempt->count <= attempt->capacity);
    FK_ASSERT(attempt->count <= p->config.waiters_max);
    FK_ASSERT(fk__map_get(&p->attempts, attempt->request_id) == attempt);
    FK_ASSERT(grain->phase != FK_PHASE_ACTIVE);
    bool has_record = grain->phase == FK_PHASE_ENSURING || grain->phase == FK_PHASE_STORING;
    FK_ASSERT(attempt->record == NULL || has_record);
    counts->attempts++;
    counts->waiters += attempt->count;
}

static void check_grain(const fk_placement *p, const fk_realm *realm, const fk_slot *slot,
                        const fk_grain *grain, check_counts *counts)
{
    FK_ASSERT(grain->realm == realm);
    FK_ASSERT(&realm->slot[fk__grain_slot(p, grain)] == slot);
    FK_ASSERT(grain->phase < FK_PHASE_COUNT);
    FK_ASSERT(grain->next == NULL || grain->next->prev == grain);
    if (FK_SAFEGUARD(PLACEMENT_SINGLE_FLIGHT) && FK_SAFEGUARD(PLACEMENT_STOPPING)) {
        FK_ASSERT(fk__grains_find(&p->grains, grain->id) == grain); /* one of a key */
    }
    counts->phase[grain->phase]++;
    if (grain->attempt != NULL) {
        check_attempt(p, grain, counts);
    } else {
        FK_ASSERT(grain->phase == FK_PHASE_ACTIVE || grain->phase == FK_PHASE_STOPPING);
    }
    /* What runs, or may, is of a slot that is held; what is told to stop may outlive that. */
    bool may_run = grain->phase >= FK_PHASE_LOADING && grain->phase <= FK_PHASE_ACTIVE;
    if (may_run) FK_ASSERT(slot->state == FK_SLOT_HELD);
    if (grain->phase == FK_PHASE_WAITING) FK_ASSERT(slot->state != FK_SLOT_HELD);
}

static bool check_queue(const fk_slot *slot)
{
    switch ((fk_queue)slot->queue) {
    case FK_QUEUE_URGENT:
    case FK_QUEUE_WANTED:
    case FK_QUEUE_REFUSED: return slot->state == FK_SLOT_FREE;
    case FK_QUEUE_MOVING: return slot->state == FK_SLOT_HELD;
    case FK_QUEUE_DRAINING:
        return slot->state == FK_SLOT_DRAINING &&
               (slot->busy != 0 || !FK_SAFEGUARD(PLACEMENT_DRAIN_WAITS));
    case FK_QUEUE_DRAINED:
        return slot->state == FK_SLOT_DRAINING &&
               (slot->busy == 0 || !FK_SAFEGUARD(PLACEMENT_DRAIN_WAITS));
    default: return slot->state != FK_SLOT_DRAINING;
    }
}

static void check_slot(const fk_placement *p, const fk_realm *realm, const fk_slot *slot,
                       check_counts *counts)
{
    uint32_t busy = 0, waiting = 0;
    for (const fk_grain *grain = slot->grains; grain != NULL; grain = grain->next) {
        check_grain(p, realm, slot, grain, counts);
        if (grain->phase == FK_PHASE_WAITING) {
            waiting++;
        } else {
            busy++;
        }
    }
    FK_ASSERT(slot->busy == busy);
    FK_ASSERT(slot->waiting == waiting);
    FK_ASSERT(slot->state < FK_SLOT_STATE_COUNT);
    FK_ASSERT(slot->queue < FK_QUEUE_COUNT);
    FK_ASSERT(check_queue(slot));
    if (slot->state == FK_SLOT_LEAVING && FK_SAFEGUARD(PLACEMENT_DRAIN_WAITS)) {
        FK_ASSERT(busy == 0);
    }
    if (slot->state >= FK_SLOT_HELD) FK_ASSERT(slot->epoch != 0);
    if (!fk__placement_is_member(p)) {
        FK_ASSERT(slot->state == FK_SLOT_FREE && slot->queue == FK_QUEUE_NONE);
        FK_ASSERT(waiting == 0);
    }
    if (slot->queue == FK_QUEUE_REFUSED && slot->holder != FK_NOBODY) {
        FK_ASSERT(slot->holder < p->census->view.count);
    }
    counts->state[slot->state]++;
    counts->queued[slot->queue]++;
}

static void check_realm(const fk_placement *p, const fk_realm *realm, check_counts *counts)
{
    FK_ASSERT(realm->is_local == (realm->slot != NULL));
    if (realm->slot == NULL) return;
    for (int q = FK_QUEUE_NONE + 1; q < FK_QUEUE_COUNT; q++) {
        uint32_t count = 0, last = FK_NOBODY;
        for (uint32_t i = realm->queue[q].first; i != FK_NOBODY; i = realm->slot[i].next) {
            FK_ASSERT(realm->slot[i].queue == q && realm->slot[i].prev == last);
            last = i;
            count++;
        }
        FK_ASSERT(realm->queue[q].last == last);
        FK_ASSERT(realm->queue[q].count == count);
    }
    for (uint32_t i = 0; realm->slot != NULL && i < p->config.slots; i++) {
        check_slot(p, realm, &realm->slot[i], counts);
    }
}

/* Both in the order of their deadlines. */
static void check_due(const fk_placement *p, uint32_t attempts)
{
    fk_time before = INT64_MIN;
    uint32_t errands = 0, acquiring = 0;
    for (fk_ring *at = p->due.next; at != &p->due; at = at->next) {
        const fk_attempt *attempt = FK_CONTAINER(at, fk_attempt, due);
        FK_ASSERT(attempt->deadline >= before);
        before = attempt->deadline;
        attempts--;
    }
    FK_ASSERT(attempts == 0);
    before = INT64_MIN;
    for (fk_ring *at = p->errands_due.next; at != &p->errands_due; at = at->next) {
        const fk_errand *errand = FK_CONTAINER(at, fk_errand, due);
        FK_ASSERT(errand->deadline >= before);
        before = errand->deadline;
        errands++;
        if (errand->kind == FK_COMMAND_TRY_ACQUIRE) acquiring++;
    }
    FK_ASSERT(errands == p->errands.count);
    FK_ASSERT(acquiring == p->acquiring);
}

void fk_placement_check(const fk_placement *p)
{
    check_counts counts = { 0 };
    uint32_t realms = 0, grains = 0;
    for (const fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        check_realm(p, realm, &counts);
        realms++;
    }
    FK_ASSERT(realms == p->realm_count);
    for (int phase = 0; phase < FK_PHASE_COUNT; phase++) {
        FK_ASSERT(counts.phase[phase] == p->count[phase]);
        grains += counts.phase[phase];
    }
    FK_ASSERT(grains == p->grains.count);
    FK_ASSERT(grains <= p->config.activations_max);
    for (int state = 0; state < FK_SLOT_STATE_COUNT; state++) {
        FK_ASSERT(counts.state[state] == p->slots[state]);
    }
    for (int queue = FK_QUEUE_NONE + 1; queue < FK_QUEUE_COUNT; queue++) {
        FK_ASSERT(counts.queued[queue] == p->queued[queue]);
    }
    FK_ASSERT(counts.attempts == p->attempts.count);
    FK_ASSERT(counts.waiters == p->waiters);
    FK_ASSERT((p->lease.deadline != 0) <= (p->role == FK_ROLE_MEMBER));
    FK_ASSERT(p->pids.count <= p->pids.capacity);
    check_due(p, counts.attempts);
}

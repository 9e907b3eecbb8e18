/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Slots: which of them are held, which are wanted, which have to go. A slot is in one queue at most,
 * by what it waits for:
 *
 *     FREE --URGENT, WANTED--> ASKED --> HELD --MOVING--> DRAINING --DRAINED--> LEAVING --> FREE
 *      ^----REFUSED, later ------'                         (undone when the table changes back)
 */

#include "cluster/placement.h"

enum { SLOTS_ACQUIRING_MAX = 2 };

/* ---- queues ------------------------------------------------------------------------------------ */

void fk__slot_queue(fk_placement *p, fk_realm *realm, uint32_t slot, fk_queue queue)
{
    fk_slot *s = &realm->slot[slot];
    if (s->queue == queue) return;
    if (s->queue != FK_QUEUE_NONE) {
        fk_slot_queue *from = &realm->queue[s->queue];
        if (s->prev != FK_NOBODY) {
            realm->slot[s->prev].next = s->next;
        } else {
            from->first = s->next;
        }
        if (s->next != FK_NOBODY) {
            realm->slot[s->next].prev = s->prev;
        } else {
            from->last = s->prev;
        }
        from->count--;
        p->queued[s->queue]--;
    }
    s->queue = (uint8_t)queue;
    s->next = s->prev = FK_NOBODY;
    if (queue == FK_QUEUE_NONE) return;
    fk_slot_queue *to = &realm->queue[queue];
    s->prev = to->last;
    if (to->last != FK_NOBODY) {
        realm->slot[to->last].next = slot;
    } else {
        to->first = slot;
    }
    to->last = slot;
    to->count++;
    p->queued[queue]++;
}

void fk__slot_set(fk_placement *p, fk_realm *realm, uint32_t slot, fk_slot_state state)
{
    fk_slot *s = &realm->slot[slot];
    p->slots[s->state]--;
    s->state = (uint8_t)state;
    p->slots[state]++;
}

/* ---- those who wait for a slot ------------------------------------------------------------------ */

static void slot_go(fk_placement *p, fk_slot *s)
{
    fk_grain *next;
    for (fk_grain *grain = s->grains; grain != NULL && s->waiting != 0; grain = next) {
        next = grain->next; /* one that fails at once is gone */
        if (grain->phase == FK_PHASE_WAITING) fk__flight_go(p, grain);
    }
}

/* Where they have to go instead. */
static void slot_redirect(fk_placement *p, fk_slot *s, fk_placement_event_kind kind,
                          uint32_t member)
{
    fk_resolution resolution = fk__resolution_remote(p, member);
    fk_grain *next;
    for (fk_grain *grain = s->grains; grain != NULL && s->waiting != 0; grain = next) {
        next = grain->next;
        if (grain->phase != FK_PHASE_WAITING) continue;
        bool is_denied = kind == FK_PLACEMENT_LOCK_DENIED;
        fk__say(p,
                (fk_placement_event){ .kind = kind,
                                      .key = fk__grain_key(grain),
                                      .authority = resolution.authority,
                                      .version = resolution.view_version,
                                      .slot = fk__grain_slot(p, grain),
                                      .request_id = grain->attempt->request_id,
                                      .err = is_denied ? FK_E_LOCK_DENIED : FK_OK,
                                      .reason = is_denied ? "another member holds the slot" : "" });
        fk__attempt_settle(p, grain, &resolution);
        fk__grain_free(p, grain);
    }
}

/* This member goes, and nobody else is there to have it: whoever waits is told, and may try again. */
static void slot_abandon(fk_placement *p, fk_slot *s)
{
    fk_grain *next;
    for (fk_grain *grain = s->grains; grain != NULL && s->waiting != 0; grain = next) {
        next = grain->next;
        if (grain->phase != FK_PHASE_WAITING) continue;
        fk__flight_fail(p, grain, FK_PLACEMENT_REFUSED, FK_E_NOT_READY, FK_NOBODY_IS_UP);
    }
}

/* ---- what a slot should be ---------------------------------------------------------------------- */

static bool slot_has_to_move(const fk_placement *p, fk_owner owner)
{
    return owner == FK_OWNER_OTHER || fk__owner_is_missing(p, owner);
}

/* By a view that is known to be old nothing is given away: it may have come by the new one. */
static bool slot_may_move(const fk_placement *p)
{
    return p->is_draining || p->census == NULL || p->census->view.version >= p->expected;
}

static void slot_review_free(fk_placement *p, fk_realm *realm, uint32_t slot, fk_owner owner,
                             uint32_t member)
{
    fk_slot *s = &realm->slot[slot];
    if (s->waiting != 0 && owner == FK_OWNER_OTHER) {
        slot_redirect(p, s, FK_PLACEMENT_RESOLVED, member);
    }
    if (s->state == FK_SLOT_ASKED) return;
    if (s->waiting != 0 && fk__owner_is_missing(p, owner)) slot_abandon(p, s);
    bool is_wanted = fk__placement_is_member(p) && (owner == FK_OWNER_SELF || s->is_in_doubt);
    if (!is_wanted) {
        fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
        s->holder = FK_NOBODY;
    } else if (s->queue != FK_QUEUE_REFUSED || (s->waiting != 0 && p->now >= s->retry_at)) {
        s->holder = FK_NOBODY;
        fk__slot_queue(p, realm, slot, s->waiting != 0 ? FK_QUEUE_URGENT : FK_QUEUE_WANTED);
    }
}

void fk__slot_review(fk_placement *p, fk_realm *realm, uint32_t slot)
{
    fk_slot *s = &realm->slot[slot];
    uint32_t member = FK_NOBODY;
    fk_owner owner = fk__realm_owner(p, realm, slot, &member);
    switch ((fk_slot_state)s->state) {
    case FK_SLOT_FREE:
    case FK_SLOT_ASKED: slot_review_free(p, realm, slot, owner, member); break;
    case FK_SLOT_HELD:
        if (s->waiting != 0) slot_go(p, s);
        fk__slot_queue(p, realm, slot,
                       slot_has_to_move(p, owner) && slot_may_move(p) ? FK_QUEUE_MOVING
                                                                      : FK_QUEUE_NONE);
        break;
    case FK_SLOT_DRAINING:
        if (slot_has_to_move(p, owner)) break;
        fk__slot_set(p, realm, slot, FK_SLOT_HELD);
        fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
        slot_go(p, s);
        break;
    default: break; /* it is decided already */
    }
}

void fk__slots_review(fk_placement *p, fk_realm *realm)
{
    if (realm->slot == NULL) return;
    for (uint32_t slot = 0; slot < p->config.slots; slot++) fk__slot_review(p, realm, slot);
}

/* ---- what happens to a slot --------------------------------------------------------------------- */

void fk__slot_hold(fk_placement *p, fk_realm *realm, uint32_t slot, uint64_t epoch)
{
    fk_slot *s = &realm->slot[slot];
    fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
    fk__slot_set(p, realm, slot, FK_SLOT_HELD);
    s->epoch = epoch;
    s->holder = FK_NOBODY;
    s->is_in_doubt = false;
    fk__say_slot(p, FK_PLACEMENT_SLOT_ACQUIRED, realm, slot, NULL);
    fk__slot_review(p, realm, slot);
}

void fk__slot_refuse(fk_placement *p, fk_realm *realm, uint32_t slot, uint32_t holder)
{
    fk_slot *s = &realm->slot[slot];
    fk__slot_set(p, realm, slot, FK_SLOT_FREE);
    s->holder = holder;
    s->retry_at = fk__time_add(p->clock, p->config.retry_delay);
    fk__slot_queue(p, realm, slot, FK_QUEUE_REFUSED);
    if (holder != FK_NOBODY && s->waiting != 0) {
        slot_redirect(p, s, FK_PLACEMENT_LOCK_DENIED, holder);
    }
    fk__slot_review(p, realm, slot);
}

void fk__slot_lose(fk_placement *p, fk_realm *realm, uint32_t slot, const char *reason, fk_err err)
{
    fk_slot *s = &realm->slot[slot];
    fk_grain *next;
    if (s->state == FK_SLOT_FREE || s->state == FK_SLOT_ASKED) return;
    fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
    for (fk_grain *grain = s->grains; grain != NULL; grain = next) {
        next = grain->next;
        if (grain->phase == FK_PHASE_ACTIVE) {
            fk__grain_stop(p, grain, reason);
        } else if (grain->phase != FK_PHASE_WAITING && grain->phase != FK_PHASE_STOPPING) {
            fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, err, reason);
        }
    }
    fk__slot_set(p, realm, slot, FK_SLOT_FREE);
    fk__say_slot(p, FK_PLACEMENT_SLOT_LOST, realm, slot, reason);
    fk__slot_review(p, realm, slot);
}

static void slot_drain(fk_placement *p, fk_realm *realm, uint32_t slot)
{
    fk_slot *s = &realm->slot[slot];
    uint32_t member = FK_NOBODY;
    fk_owner owner = fk__realm_owner(p, realm, slot, &member);
    fk_str next = { NULL, 0 };
    if (owner == FK_OWNER_OTHER) next = p->census->member[member].id;
    fk__slot_set(p, realm, slot, FK_SLOT_DRAINING);
    fk__slot_queue(p, realm, slot, FK_QUEUE_DRAINING);
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_SLOT_DRAINING,
                                     .key.kind = fk__realm_name(realm),
                                     .authority = next,
                                     .epoch = s->epoch,
                                     .slot = slot });
    for (fk_grain *grain = s->grains; grain != NULL; grain = grain->next) {
        if (grain->phase == FK_PHASE_ACTIVE) {
            fk__grain_stop(p, grain, "moved");
        } else if (grain->phase != FK_PHASE_WAITING && grain->phase != FK_PHASE_STOPPING) {
            fk__flight_retreat(p, grain, "moved");
        }
    }
    if (s->busy == 0 || !FK_SAFEGUARD(PLACEMENT_DRAIN_WAITS)) {
        fk__slot_queue(p, realm, slot, FK_QUEUE_DRAINED);
    }
}

/* ---- sending ------------------------------------------------------------------------------------ */

void fk__slots_retry(fk_placement *p)
{
    if (p->short_until != 0 && p->now >= p->short_until) p->short_until = 0;
    if (p->queued[FK_QUEUE_REFUSED] == 0) return;
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        const fk_slot_queue *refused = &realm->queue[FK_QUEUE_REFUSED];
        while (refused->count != 0 && p->now >= realm->slot[refused->first].retry_at) {
            uint32_t slot = refused->first;
            fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
            fk__slot_review(p, realm, slot);
        }
    }
}

static void slots_drain(fk_placement *p)
{
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        const fk_slot_queue *moving = &realm->queue[FK_QUEUE_MOVING];
        while (moving->count != 0 &&
               p->slots[FK_SLOT_DRAINING] + p->slots[FK_SLOT_LEAVING] < p->config.drain_batch) {
            slot_drain(p, realm, moving->first);
        }
    }
}

static bool slots_move(fk_placement *p)
{
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        while (realm->queue[FK_QUEUE_DRAINED].count != 0) {
            if (!fk__errand_move(p, realm)) return false;
        }
    }
    return true;
}

/* Those somebody waits for first, of whatever kind. */
static bool slots_acquire(fk_placement *p, fk_queue queue)
{
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        while (realm->queue[queue].count != 0) {
            if (p->acquiring == SLOTS_ACQUIRING_MAX) return true;
            if (!fk__errand_acquire(p, realm)) return false;
        }
    }
    return true;
}

void fk__slots_pump(fk_placement *p)
{
    const uint32_t *queued = p->queued;
    uint32_t work = queued[FK_QUEUE_URGENT] + queued[FK_QUEUE_WANTED] + queued[FK_QUEUE_MOVING] +
                    queued[FK_QUEUE_DRAINED];
    if (work == 0 || !fk__placement_is_member(p) || p->short_until != 0) return;
    if (queued[FK_QUEUE_MOVING] != 0) slots_drain(p);
    bool is_sent =
        slots_move(p) && slots_acquire(p, FK_QUEUE_URGENT) && slots_acquire(p, FK_QUEUE_WANTED);
    if (!is_sent) p->short_until = fk__time_add(p->clock, p->config.retry_delay);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where a grain is. One that is active here costs one look into the table of grains, and nothing is
 * said about it. Otherwise the slot decides: held, the grain is started here; another's, that one is
 * named, and nothing is done; ours but not held, the slot is asked for first.
 */

#include "cluster/placement.h"

static fk_err resolve_refuse(fk_placement *p, const fk_grain_key *key, fk_err err,
                             const char *reason, fk_resolution *out)
{
    fk__say_key(p, FK_PLACEMENT_REFUSED, key, err, reason);
    *out = fk__resolution_error(p, err, reason);
    return err;
}

static void resolve_say(const fk_placement *p, const fk_grain_key *key, fk_str authority,
                        uint64_t request_id)
{
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_RESOLVED,
                                     .key = *key,
                                     .authority = authority,
                                     .version = p->census->view.version,
                                     .slot = fk_slot_of(key->id, p->config.slots),
                                     .request_id = request_id });
}

static fk_err resolve_remote(fk_placement *p, const fk_grain_key *key, uint32_t member,
                             fk_resolution *out)
{
    *out = fk__resolution_remote(p, member);
    resolve_say(p, key, out->authority, 0);
    return FK_OK;
}

/* By the table; what was learnt by a redirect is known better. */
static fk_err resolve_elsewhere(fk_placement *p, const fk_grain_key *key, uint32_t member,
                                fk_resolution *out)
{
    const fk_pid *pid = fk__pids_get(&p->pids, key->id, p->now);
    if (pid == NULL) return resolve_remote(p, key, member, out);
    uint32_t cached = fk__census_find(p, fk__pid_authority(pid), pid->incarnation);
    FK_ASSERT(cached != FK_NOBODY); /* it goes with its member */
    *out = fk__resolution_remote(p, cached);
    return FK_OK;
}

static fk_err resolve_pending(const fk_placement *p, fk_resolution *out)
{
    *out = fk__resolution_error(p, FK_E_PENDING, "");
    return FK_E_PENDING;
}

static const char *resolve_reason(fk_err err)
{
    return err == FK_E_OVERLOADED ? "too many wait, or too many are active" : "no memory";
}

/* Joins the flight of the grain. */
static fk_err resolve_join(fk_placement *p, fk_grain *grain, const fk_grain_key *key,
                           uint64_t ticket, fk_resolution *out)
{
    fk_err err = fk__attempt_join(p, grain, ticket);
    if (err != FK_OK) return resolve_refuse(p, key, err, resolve_reason(err), out);
    resolve_say(p, key, fk__placement_id(p), grain->attempt->request_id);
    return resolve_pending(p, out);
}

/* The first one who wants it: the slot says what comes next. */
static fk_err resolve_start(fk_placement *p, fk_realm *realm, const fk_grain_key *key,
                            uint64_t ticket, fk_resolution *out)
{
    fk_grain *grain;
    fk_err err = fk__grain_create(p, realm, key, &grain);
    if (err != FK_OK) return resolve_refuse(p, key, err, resolve_reason(err), out);
    err = fk__attempt_join(p, grain, ticket);
    FK_ASSERT(err == FK_OK); /* the first ticket has room */
    resolve_say(p, key, fk__placement_id(p), grain->attempt->request_id);
    p->resolving = grain;
    p->is_resolved = false;
    fk__slot_review(p, realm, fk__grain_slot(p, grain));
    fk__slots_pump(p);
    p->resolving = NULL;
    if (!p->is_resolved) return resolve_pending(p, out);
    *out = p->resolved;
    return out->err;
}

/* A slot that is not ours. */
static fk_err resolve_free(fk_placement *p, fk_realm *realm, const fk_grain_key *key,
                           uint64_t ticket, fk_resolution *out)
{
    uint32_t member = FK_NOBODY, slot = fk_slot_of(key->id, p->config.slots);
    fk_owner owner = fk__realm_owner(p, realm, slot, &member);
    if (owner == FK_OWNER_OTHER) return resolve_elsewhere(p, key, member, out);
    bool is_ours = p->role == FK_ROLE_MEMBER && realm->is_local;
    if (!is_ours && owner == FK_OWNER_SELF) {
        return resolve_refuse(p, key, FK_E_NOT_READY, "the kind is not set up here", out);
    }
    if (!is_ours || fk__owner_is_missing(p, owner)) {
        return resolve_refuse(p, key, FK_E_NOT_READY, FK_NOBODY_IS_UP, out);
    }
    const fk_slot *s = &realm->slot[slot];
    bool has_hint = s->queue == FK_QUEUE_REFUSED && s->holder != FK_NOBODY && p->now < s->retry_at;
    if (has_hint) return resolve_remote(p, key, s->holder, out);
    return resolve_start(p, realm, key, ticket, out);
}

/* There is a grain, and it is not active: somebody else was first. */
static fk_err resolve_again(fk_placement *p, fk_grain *grain, const fk_grain_key *key,
                            uint64_t ticket, fk_resolution *out)
{
    fk_realm *realm = grain->realm;
    uint32_t member = FK_NOBODY, slot = fk__grain_slot(p, grain);
    if (grain->phase == FK_PHASE_STOPPING) {
        /* Who does not own the slot has nothing to start when it has stopped. */
        bool is_free = realm->slot[slot].state == FK_SLOT_FREE;
        bool is_others = is_free && fk__realm_owner(p, realm, slot, &member) == FK_OWNER_OTHER;
        if (is_others) return resolve_elsewhere(p, key, member, out);
        if (!FK_SAFEGUARD(PLACEMENT_STOPPING)) {
            if (grain->attempt == NULL) fk__grain_free(p, grain);
            return resolve_start(p, realm, key, ticket, out);
        }
    } else if (!FK_SAFEGUARD(PLACEMENT_SINGLE_FLIGHT)) {
        return resolve_start(p, realm, key, ticket, out);
    }
    return resolve_join(p, grain, key, ticket, out);
}

static FK_COLD fk_err resolve_slowly(fk_placement *p, const fk_grain_key *key, uint64_t ticket,
                                     fk_resolution *out)
{
    if (p->state == FK_PLACEMENT_STATE_STOPPED || p->state == FK_PLACEMENT_STATE_NOT_READY) {
        return resolve_refuse(p, key, FK_E_NOT_READY, fk_placement_state_name(p->state), out);
    }
    if (key->key.len == 0 || key->key.len > FK_GRAIN_KEY_MAX) {
        return resolve_refuse(p, key, FK_E_KEY, "the key is empty or too long", out);
    }
    if (p->state == FK_PLACEMENT_STATE_MEMBER) {
        fk_grain *grain = fk__grains_find(&p->grains, key->id);
        if (grain != NULL) return resolve_again(p, grain, key, ticket, out);
    }
    fk_realm *realm = fk__realm_find(p, key->kind);
    bool is_local = p->role == FK_ROLE_MEMBER && realm != NULL && realm->is_local;
    if (realm == NULL || (!realm->is_listed && !is_local)) {
        return resolve_refuse(p, key, FK_E_UNKNOWN_KIND, "no member has this kind", out);
    }
    if (is_local && realm->slot[fk_slot_of(key->id, p->config.slots)].state >= FK_SLOT_HELD) {
        return resolve_start(p, realm, key, ticket, out);
    }
    return resolve_free(p, realm, key, ticket, out);
}

fk_err fk_placement_resolve(fk_placement *p, const fk_grain_key *key, uint64_t ticket, fk_time now,
                            fk_resolution *out)
{
    fk__placement_enter(p, now);
    fk_grain *grain = fk__grains_find(&p->grains, key->id);
    if (FK_LIKELY(grain != NULL && grain->phase == FK_PHASE_ACTIVE)) {
        grain->used_at = now;
        *out = fk__resolution_local(p, grain);
        return FK_OK;
    }
    return resolve_slowly(p, key, ticket, out);
}

/* ---- what is learnt about where others are -------------------------------------------------------- */

static void pid_forget(fk_placement *p, fk_pid *pid, const char *reason)
{
    fk__say_cached(p, FK_PLACEMENT_CACHE_DROPPED, pid, reason);
    fk__pids_drop(&p->pids, pid);
}

static void pid_remember(fk_placement *p, const fk_grain_key *key, uint32_t member)
{
    const fk_member *m = &p->census->member[member];
    fk_pid *surplus = fk__pids_surplus(&p->pids);
    if (surplus != NULL) pid_forget(p, surplus, "capacity");
    const fk_pid *pid = fk__pids_put(&p->pids, key, m->id, m->incarnation, p->clock);
    if (pid != NULL) fk__say_cached(p, FK_PLACEMENT_CACHE_PUT, pid, NULL);
}

/* The last life of it that is in the view; FK_NOBODY. */
static uint32_t member_called(const fk_placement *p, fk_str id)
{
    for (uint32_t i = fk_placement_view(p).count; i-- > 0;) {
        if (fk__text_equal(p->census->member[i].id, id)) return i;
    }
    return FK_NOBODY;
}

void fk_placement_redirected(fk_placement *p, const fk_grain_key *key, fk_str authority,
                             fk_time now)
{
    fk__placement_enter(p, now);
    if (p->state != FK_PLACEMENT_STATE_MEMBER && p->state != FK_PLACEMENT_STATE_CLIENT) return;
    fk_pid *pid = fk__pids_find(&p->pids, key->id);
    if (pid != NULL) pid_forget(p, pid, "redirected");
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_REDIRECTED,
                                     .key = *key,
                                     .authority = authority,
                                     .slot = fk_slot_of(key->id, p->config.slots) });
    fk_realm *realm = fk__realm_find(p, key->kind);
    uint32_t slot = fk_slot_of(key->id, p->config.slots), owner = FK_NOBODY;
    if (realm == NULL) return;
    uint32_t member = member_called(p, authority);
    bool is_others = fk__realm_owner(p, realm, slot, &owner) == FK_OWNER_OTHER;
    /* Not this member, nor a former life of it. */
    bool is_self = fk__text_equal(authority, fk__placement_id(p));
    bool is_useful = member != FK_NOBODY && !is_self && is_others && member != owner;
    bool is_legal = key->key.len <= FK_GRAIN_KEY_MAX && key->key.len > 0;
    if (is_useful && is_legal) pid_remember(p, key, member);
    /* Whoever was said to hold it does not: the lock is asked again at once. */
    if (realm->slot != NULL && realm->slot[slot].queue == FK_QUEUE_REFUSED) {
        fk__slot_queue(p, realm, slot, FK_QUEUE_NONE);
        fk__slot_review(p, realm, slot);
        fk__slots_pump(p);
    }
}

fk_err fk_placement_owner(const fk_placement *p, const fk_grain_key *key, fk_member *out,
                          uint32_t *slot)
{
    if (p->state != FK_PLACEMENT_STATE_MEMBER && p->state != FK_PLACEMENT_STATE_CLIENT) {
        return FK_E_NOT_READY;
    }
    const fk_realm *realm = fk__realm_find(p, key->kind);
    if (realm == NULL || !realm->is_listed) return FK_E_UNKNOWN_KIND;
    uint32_t index = fk_slot_of(key->id, p->config.slots), member = FK_NOBODY;
    fk_owner owner = fk__realm_owner(p, realm, index, &member);
    if (owner == FK_OWNER_NOBODY) return FK_E_NOT_READY;
    if (slot != NULL) *slot = index;
    *out = p->census->member[owner == FK_OWNER_SELF ? p->self : member];
    return FK_OK;
}

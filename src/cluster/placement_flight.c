/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * From nothing to an activation, and out again.
 *
 *     WAITING -> LOADING -> ENSURING -> STORING -> ACTIVE -> STOPPING -> gone
 *                 durable               durable
 *
 * One grain has one phase, so a key has one activation at most: from ENSURING until stopped() says
 * that it is over there may be one, and nobody starts another. Whoever resolves meanwhile waits.
 */

#include "cluster/placement.h"

static bool phase_has_command(unsigned phase)
{
    return phase >= FK_PHASE_LOADING && phase <= FK_PHASE_STORING;
}

/* ---- grains and attempts ----------------------------------------------------------------------- */

static void grain_count(fk_placement *p, fk_grain *grain, fk_grain_phase phase, uint32_t by)
{
    uint32_t slot = fk__grain_slot(p, grain);
    fk_slot *s = &grain->realm->slot[slot];
    p->count[phase] += by;
    if (phase == FK_PHASE_WAITING) {
        s->waiting += by;
    } else {
        s->busy += by;
    }
}

void fk__grain_set_phase(fk_placement *p, fk_grain *grain, fk_grain_phase phase)
{
    fk_realm *realm = grain->realm;
    uint32_t slot = fk__grain_slot(p, grain);
    grain_count(p, grain, grain->phase, (uint32_t)-1);
    grain->phase = (uint8_t)phase;
    grain_count(p, grain, phase, 1);
    const fk_slot *s = &realm->slot[slot];
    if (s->queue == FK_QUEUE_DRAINING && s->busy == 0) {
        fk__slot_queue(p, realm, slot, FK_QUEUE_DRAINED);
    }
}

static fk_err attempt_create(fk_placement *p, fk_grain *grain)
{
    FK_ASSERT(grain->attempt == NULL);
    FK_TRY(fk__map_reserve(&p->cache, &p->attempts, FK_SITE("table of attempts")));
    fk_attempt *attempt = fk__cache_alloc(&p->cache, sizeof(*attempt), FK_SITE("attempt"));
    if (attempt == NULL) return p->cache.err;
    attempt->grain = grain;
    attempt->request_id = ++p->last_request;
    attempt->deadline = fk__time_add(p->clock, p->config.command_timeout);
    attempt->version = 0;
    attempt->record = NULL;
    attempt->ticket = attempt->own;
    attempt->count = 0;
    attempt->capacity = FK_ATTEMPT_TICKETS;
    fk__ring_put(&p->due, &attempt->due);
    fk__map_put(&p->attempts, attempt->request_id, attempt);
    grain->attempt = attempt;
    return FK_OK;
}

static void attempt_discard(fk_placement *p, fk_attempt *attempt)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    if (attempt->record == NULL) return;
    if (outcome->discard != NULL) outcome->discard(outcome->ctx, attempt->record);
    attempt->record = NULL;
}

/* The time begins anew, and with it the place among those that have a deadline. */
static void attempt_rearm(fk_placement *p, fk_attempt *attempt)
{
    attempt->deadline = fk__time_add(p->clock, p->config.command_timeout);
    fk__ring_leave(&attempt->due);
    fk__ring_put(&p->due, &attempt->due);
}

void fk__attempt_free(fk_placement *p, fk_grain *grain)
{
    fk_attempt *attempt = grain->attempt;
    FK_ASSERT(attempt != NULL);
    attempt_discard(p, attempt);
    fk__map_remove(&p->attempts, attempt->request_id);
    fk__ring_leave(&attempt->due);
    p->waiters -= attempt->count;
    if (attempt->ticket != attempt->own) {
        fk__cache_free(&p->cache, attempt->ticket, attempt->capacity * sizeof(uint64_t));
    }
    fk__cache_free(&p->cache, attempt, sizeof(*attempt));
    grain->attempt = NULL;
}

static fk_err attempt_grow(fk_placement *p, fk_attempt *attempt)
{
    uint32_t capacity = attempt->capacity * 2;
    uint64_t *more =
        fk__cache_alloc(&p->cache, capacity * sizeof(uint64_t), FK_SITE("tickets of an attempt"));
    if (more == NULL) return p->cache.err;
    memcpy(more, attempt->ticket, attempt->count * sizeof(uint64_t));
    if (attempt->ticket != attempt->own) {
        fk__cache_free(&p->cache, attempt->ticket, attempt->capacity * sizeof(uint64_t));
    }
    attempt->ticket = more;
    attempt->capacity = capacity;
    return FK_OK;
}

fk_err fk__attempt_join(fk_placement *p, fk_grain *grain, uint64_t ticket)
{
    if (grain->attempt == NULL) FK_TRY(attempt_create(p, grain));
    fk_attempt *attempt = grain->attempt;
    FK_ASSERT(attempt != NULL);
    if (attempt->count >= p->config.waiters_max) return FK_E_OVERLOADED;
    if (attempt->count == attempt->capacity) FK_TRY(attempt_grow(p, attempt));
    attempt->ticket[attempt->count++] = ticket;
    p->waiters++;
    return FK_OK;
}

void fk__attempt_settle(fk_placement *p, fk_grain *grain, const fk_resolution *resolution)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    fk_attempt *attempt = grain->attempt;
    uint32_t first = 0;
    if (grain == p->resolving) {
        p->resolved = *resolution;
        p->is_resolved = true;
        first = 1;
    }
    for (uint32_t i = first; i < attempt->count; i++) {
        if (outcome->settled != NULL)
            outcome->settled(outcome->ctx, attempt->ticket[i], resolution);
    }
    fk__attempt_free(p, grain);
}

fk_err fk__grain_create(fk_placement *p, fk_realm *realm, const fk_grain_key *key, fk_grain **out)
{
    FK_ASSERT(realm->slot != NULL);
    if (p->grains.count >= p->config.activations_max) return FK_E_OVERLOADED;
    FK_TRY(fk__grains_reserve(&p->grains, &p->mem));
    size_t size = sizeof(fk_grain) + key->key.len;
    fk_grain *grain = fk__cache_alloc(&p->cache, size, FK_SITE("grain"));
    if (grain == NULL) return p->cache.err;
    fk_slot *slot = &realm->slot[fk_slot_of(key->id, p->config.slots)];
    grain->id = key->id;
    grain->next = slot->grains;
    grain->prev = NULL;
    grain->realm = realm;
    grain->pid = 0;
    grain->used_at = p->now;
    grain->attempt = NULL;
    grain->key_len = (uint16_t)key->key.len;
    grain->phase = FK_PHASE_WAITING;
    memcpy(grain->key, key->key.ptr, key->key.len);
    fk_err err = attempt_create(p, grain);
    if (err != FK_OK) {
        fk__cache_free(&p->cache, grain, size);
        return err;
    }
    if (slot->grains != NULL) slot->grains->prev = grain;
    slot->grains = grain;
    fk__grains_put(&p->grains, grain);
    grain_count(p, grain, FK_PHASE_WAITING, 1);
    *out = grain;
    return FK_OK;
}

void fk__grain_free(fk_placement *p, fk_grain *grain)
{
    fk_slot *slot = &grain->realm->slot[fk__grain_slot(p, grain)];
    if (grain->attempt != NULL) fk__attempt_free(p, grain);
    fk__grain_set_phase(p, grain, FK_PHASE_WAITING); /* a slot that drains is told */
    grain_count(p, grain, FK_PHASE_WAITING, (uint32_t)-1);
    if (grain->prev != NULL) {
        grain->prev->next = grain->next;
    } else {
        slot->grains = grain->next;
    }
    if (grain->next != NULL) grain->next->prev = grain->prev;
    fk__grains_remove(&p->grains, grain);
    fk__cache_free(&p->cache, grain, sizeof(*grain) + grain->key_len);
}

/* ---- forward ----------------------------------------------------------------------------------- */

static void flight_step(fk_placement *p, fk_grain *grain, fk_grain_phase phase,
                        fk_command_kind command)
{
    fk__grain_set_phase(p, grain, phase);
    attempt_rearm(p, grain->attempt);
    fk__say_command(p, command, grain, NULL, NULL);
}

static void flight_ensured(fk_placement *p, fk_grain *grain, const fk_placement_result *result);

static void flight_ensure(fk_placement *p, fk_grain *grain)
{
    fk_placement_result done = { .request_id = 0 };
    /* A durable one has a record, which whoever has just brought it still looks at. */
    bool may_be_done = !grain->realm->is_durable;
    fk__grain_set_phase(p, grain, FK_PHASE_ENSURING);
    attempt_rearm(p, grain->attempt);
    fk__say_command(p, FK_COMMAND_ENSURE_ACTIVATION, grain, NULL, may_be_done ? &done : NULL);
    if (done.request_id == grain->attempt->request_id) flight_ensured(p, grain, &done);
}

void fk__flight_go(fk_placement *p, fk_grain *grain)
{
    FK_ASSERT(grain->phase == FK_PHASE_WAITING);
    FK_ASSERT(grain->attempt != NULL);
    grain->pid = 0;
    if (grain->realm->is_durable) {
        flight_step(p, grain, FK_PHASE_LOADING, FK_COMMAND_LOAD_ACTIVATION);
    } else {
        flight_ensure(p, grain);
    }
}

static void flight_arrive(fk_placement *p, fk_grain *grain)
{
    fk__grain_set_phase(p, grain, FK_PHASE_ACTIVE);
    grain->used_at = p->now;
    fk__say_grain(p, FK_PLACEMENT_ACTIVATED, grain, FK_OK, NULL);
    fk_resolution resolution = fk__resolution_local(p, grain);
    fk__attempt_settle(p, grain, &resolution);
}

/* ---- and back ---------------------------------------------------------------------------------- */

void fk__grain_stop(fk_placement *p, fk_grain *grain, const char *reason)
{
    FK_ASSERT(grain->phase == FK_PHASE_ACTIVE || phase_has_command(grain->phase));
    fk__say_command(p, FK_COMMAND_STOP_ACTIVATION, grain, reason, NULL);
    fk__grain_set_phase(p, grain, FK_PHASE_STOPPING);
}

/* The commands of an attempt have no result yet: none will be listened to. */
static void flight_cancel(fk_placement *p, fk_grain *grain)
{
    fk__say_command(p, FK_COMMAND_CANCEL_REQUEST, grain, NULL, NULL);
}

static void flight_tell(fk_placement *p, fk_grain *grain, fk_err err, const char *reason)
{
    if (grain->attempt == NULL) return;
    fk_resolution resolution = fk__resolution_error(p, err, reason);
    fk__attempt_settle(p, grain, &resolution);
}

/* Commands first: whatever may run has to stop before anybody tries again. */
static void flight_end(fk_placement *p, fk_grain *grain, const fk_placement_event *event)
{
    bool may_run = grain->phase == FK_PHASE_ENSURING || grain->phase == FK_PHASE_STORING;
    fk_placement_event said = *event;
    said.key = fk__grain_key(grain);
    said.authority = fk__placement_id(p);
    said.pid = grain->pid;
    said.slot = fk__grain_slot(p, grain);
    said.request_id = grain->attempt != NULL ? grain->attempt->request_id : 0;
    if (said.epoch == 0) said.epoch = grain->realm->slot[said.slot].epoch;
    if (may_run) fk__grain_stop(p, grain, event->reason);
    fk__say(p, said);
    flight_tell(p, grain, event->err, event->reason);
    if (grain->phase != FK_PHASE_STOPPING) fk__grain_free(p, grain);
}

void fk__flight_fail(fk_placement *p, fk_grain *grain, fk_placement_event_kind kind, fk_err err,
                     const char *reason)
{
    FK_ASSERT(grain->phase != FK_PHASE_ACTIVE);
    if (phase_has_command(grain->phase)) flight_cancel(p, grain);
    flight_end(p, grain, &(fk_placement_event){ .kind = kind, .err = err, .reason = reason });
}

void fk__flight_retreat(fk_placement *p, fk_grain *grain, const char *reason)
{
    fk_attempt *attempt = grain->attempt;
    FK_ASSERT(phase_has_command(grain->phase));
    flight_cancel(p, grain);
    if (grain->phase == FK_PHASE_LOADING) {
        fk__grain_set_phase(p, grain, FK_PHASE_WAITING);
    } else {
        fk__grain_stop(p, grain, reason);
    }
    attempt_discard(p, attempt);
    /* What comes for the old request is not for what will be asked next. The map has room: it was
     * in it. */
    fk__map_remove(&p->attempts, attempt->request_id);
    attempt->request_id = ++p->last_request;
    attempt->version = 0;
    fk__map_put(&p->attempts, attempt->request_id, attempt);
    attempt_rearm(p, attempt);
}

static void flight_late_waiting(fk_placement *p, fk_grain *grain)
{
    const fk_slot *slot = &grain->realm->slot[fk__grain_slot(p, grain)];
    uint32_t member;
    fk_owner owner = fk__realm_owner(p, grain->realm, fk__grain_slot(p, grain), &member);
    if (slot->state == FK_SLOT_DRAINING || slot->state == FK_SLOT_LEAVING) {
        fk__flight_fail(p, grain, FK_PLACEMENT_REFUSED, FK_E_NOT_READY,
                        "the slot is being handed over");
    } else if (owner == FK_OWNER_NOBODY) {
        fk__flight_fail(p, grain, FK_PLACEMENT_REFUSED, FK_E_NOT_READY, FK_NOBODY_IS_UP);
    } else {
        fk__flight_fail(p, grain, FK_PLACEMENT_LOCK_DENIED, FK_E_LOCK_DENIED,
                        slot->state == FK_SLOT_ASKED ? "the lock does not answer"
                                                     : "the holder of the slot is not known");
    }
}

void fk__flight_late(fk_placement *p, fk_grain *grain)
{
    switch ((fk_grain_phase)grain->phase) {
    case FK_PHASE_WAITING: flight_late_waiting(p, grain); break;
    case FK_PHASE_LOADING:
        fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, FK_E_STORAGE,
                        "loading took too long");
        break;
    case FK_PHASE_ENSURING:
        fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, FK_E_ACTIVATION,
                        "starting took too long");
        break;
    case FK_PHASE_STORING:
        fk__flight_fail(p, grain, FK_PLACEMENT_STORE_FAILED, FK_E_STORAGE, "storing took too long");
        break;
    default:
        FK_ASSERT(grain->phase == FK_PHASE_STOPPING);
        fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, FK_E_ACTIVATION,
                        "the former activation has not stopped");
        break;
    }
}

/* ---- results ----------------------------------------------------------------------------------- */

/* What a load or a store that was not OK is called. */
static fk_placement_event flight_event(const fk_placement_result *result,
                                       fk_placement_event_kind otherwise)
{
    fk_placement_event event = { .kind = otherwise, .err = FK_E_STORAGE };
    bool is_refused = result->verdict == FK_VERDICT_REFUSED;
    if (is_refused && result->err == FK_E_FENCED) {
        event = (fk_placement_event){ .kind = FK_PLACEMENT_FENCED,
                                      .err = FK_E_FENCED,
                                      .epoch = result->epoch,
                                      .reason = "fenced" };
    } else if (is_refused && result->err == FK_E_CONFLICT) {
        event = (fk_placement_event){ .kind = FK_PLACEMENT_STORE_CONFLICT,
                                      .err = FK_E_CONFLICT,
                                      .version = result->version,
                                      .reason = "somebody else has stored it" };
    } else if (is_refused) {
        event.reason = "the store refused";
        if (result->err == FK_E_CORRUPT) event.err = FK_E_CORRUPT;
    } else {
        event.reason = "what became of it at the store is not known";
    }
    return event;
}

static void flight_fenced(fk_placement *p, fk_grain *grain, const fk_placement_result *result,
                          fk_placement_event_kind otherwise)
{
    fk_placement_event event = flight_event(result, otherwise);
    fk_realm *realm = grain->realm;
    uint32_t slot = fk__grain_slot(p, grain);
    flight_end(p, grain, &event);
    if (event.kind != FK_PLACEMENT_FENCED) return;
    fk__slot_lose(p, realm, slot, "fenced", FK_E_FENCED);
    if (result->epoch > realm->slot[slot].epoch) realm->slot[slot].epoch = result->epoch;
}

static void flight_loaded(fk_placement *p, fk_grain *grain, const fk_placement_result *result)
{
    if (result->verdict != FK_VERDICT_OK) {
        flight_fenced(p, grain, result, FK_PLACEMENT_ACTIVATION_FAILED);
        return;
    }
    attempt_discard(p, grain->attempt);
    grain->attempt->record = result->record;
    grain->attempt->version = result->version;
    flight_ensure(p, grain);
}

static void flight_ensured(fk_placement *p, fk_grain *grain, const fk_placement_result *result)
{
    fk_placement_event event = { .kind = FK_PLACEMENT_ACTIVATION_FAILED,
                                 .err = FK_E_ACTIVATION,
                                 .reason = "it is not known whether it has started" };
    if (result->verdict == FK_VERDICT_OK) {
        grain->pid = result->pid;
        if (grain->realm->is_durable) {
            flight_step(p, grain, FK_PHASE_STORING, FK_COMMAND_STORE_ACTIVATION);
        } else {
            flight_arrive(p, grain);
        }
        return;
    }
    if (result->verdict == FK_VERDICT_REFUSED) {
        /* Nothing runs, so nothing has to be stopped. */
        fk__grain_set_phase(p, grain, FK_PHASE_WAITING);
        event.reason = "it could not be started";
        if (result->err != FK_OK) event.err = result->err;
    }
    flight_end(p, grain, &event);
}

static void flight_stored(fk_placement *p, fk_grain *grain, const fk_placement_result *result)
{
    bool is_ok = result->verdict == FK_VERDICT_OK || !FK_SAFEGUARD(PLACEMENT_STORE_RESULT);
    if (!is_ok) {
        flight_fenced(p, grain, result, FK_PLACEMENT_STORE_FAILED);
        return;
    }
    grain->attempt->version = result->version;
    flight_arrive(p, grain);
}

fk_err fk__flight_result(fk_placement *p, fk_grain *grain, const fk_placement_result *result)
{
    static const fk_grain_phase PHASE[FK_COMMAND_COUNT] = {
        [FK_COMMAND_LOAD_ACTIVATION] = FK_PHASE_LOADING,
        [FK_COMMAND_ENSURE_ACTIVATION] = FK_PHASE_ENSURING,
        [FK_COMMAND_STORE_ACTIVATION] = FK_PHASE_STORING,
    };
    if (!phase_has_command(grain->phase) || !phase_has_command(PHASE[result->kind])) {
        return FK_E_NOT_FOUND;
    }
    if (FK_SAFEGUARD(PLACEMENT_PHASE) && grain->phase != PHASE[result->kind]) {
        return FK_E_NOT_FOUND;
    }
    switch (PHASE[result->kind]) {
    case FK_PHASE_LOADING: flight_loaded(p, grain, result); break;
    case FK_PHASE_ENSURING: flight_ensured(p, grain, result); break;
    default: flight_stored(p, grain, result); break;
    }
    return FK_OK;
}

/* ---- ends that come from outside ----------------------------------------------------------------- */

/* Mutated: what the seeds say, a lock around the activation. */
static void grain_release(fk_placement *p, fk_realm *realm, uint32_t slot)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    fk_slot_claim claim = { .slot = slot, .epoch = realm->slot[slot].epoch };
    fk_placement_command command = { .kind = FK_COMMAND_RELEASE,
                                     .request_id = ++p->last_request,
                                     .deadline = fk__time_add(p->clock, p->config.command_timeout),
                                     .slots = &claim,
                                     .slot_count = 1,
                                     .slot_kind = fk__realm_name(realm),
                                     .reason = "" };
    if (realm->slot[slot].state != FK_SLOT_HELD) return;
    outcome->command(outcome->ctx, &command);
    fk__slot_lose(p, realm, slot, "released", FK_E_NOT_READY);
}

fk_err fk_placement_stopped(fk_placement *p, fk_grain_id id, uint64_t pid, const char *reason,
                            fk_time now)
{
    fk__placement_enter(p, now);
    fk_grain *grain = fk__grains_find(&p->grains, id);
    if (grain == NULL) return FK_E_NOT_FOUND;
    bool is_it = grain->phase == FK_PHASE_STOPPING
                     ? grain->pid == 0 || pid == 0 || pid == grain->pid
                     : (grain->phase == FK_PHASE_ACTIVE || grain->phase == FK_PHASE_STORING) &&
                           pid == grain->pid;
    if (!is_it) return FK_E_NOT_FOUND;
    fk_realm *realm = grain->realm;
    uint32_t slot = fk__grain_slot(p, grain);
    fk__say_grain(p, FK_PLACEMENT_STOPPED, grain, FK_OK, reason);
    if (grain->phase == FK_PHASE_STORING) {
        flight_cancel(p, grain);
        fk__grain_set_phase(p, grain, FK_PHASE_WAITING); /* nothing to stop any more */
        fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, FK_E_ACTIVATION,
                        "it stopped before it was stored");
    } else if (grain->attempt == NULL) {
        fk__grain_free(p, grain);
    } else {
        fk__grain_set_phase(p, grain, FK_PHASE_WAITING);
        grain->pid = 0;
    }
    if (!FK_SAFEGUARD(PLACEMENT_RELEASE_LATE)) grain_release(p, realm, slot);
    fk__slot_review(p, realm, slot);
    fk__slots_pump(p);
    return FK_OK;
}

fk_err fk_placement_store_failed(fk_placement *p, fk_grain_id id, uint64_t pid,
                                 const fk_placement_result *result, fk_time now)
{
    fk__placement_enter(p, now);
    fk_grain *grain = fk__grains_find(&p->grains, id);
    if (grain == NULL || grain->phase != FK_PHASE_ACTIVE || grain->pid != pid) {
        return FK_E_NOT_FOUND;
    }
    if (!FK_SAFEGUARD(PLACEMENT_STORE_RESULT)) return FK_OK;
    fk_placement_event event = flight_event(result, FK_PLACEMENT_STORE_FAILED);
    fk_realm *realm = grain->realm;
    uint32_t slot = fk__grain_slot(p, grain);
    fk__grain_stop(p, grain, event.reason);
    event.key = fk__grain_key(grain);
    event.authority = fk__placement_id(p);
    event.pid = pid;
    event.slot = slot;
    if (event.epoch == 0) event.epoch = realm->slot[slot].epoch;
    fk__say(p, event);
    if (event.kind == FK_PLACEMENT_FENCED) {
        fk__slot_lose(p, realm, slot, "fenced", FK_E_FENCED);
        if (result->epoch > realm->slot[slot].epoch) realm->slot[slot].epoch = result->epoch;
    }
    fk__slots_pump(p);
    return FK_OK;
}

/* ---- idle ones ----------------------------------------------------------------------------------- */

void fk_placement_touch(fk_placement *p, fk_grain_id id, fk_time now)
{
    fk_grain *grain = fk__grains_find(&p->grains, id);
    if (grain != NULL && now > grain->used_at) grain->used_at = now;
}

void fk__placement_passivate(fk_placement *p, fk_time now, fk_time idle_ttl)
{
    fk__placement_enter(p, now);
    if (!fk__placement_is_member(p)) return;
    for (uint32_t i = 0; i < p->grains.capacity; i++) {
        fk_grain *grain = p->grains.at[i].grain;
        if (grain == NULL || grain->phase != FK_PHASE_ACTIVE) continue;
        fk_time ttl = idle_ttl != 0 ? idle_ttl : grain->realm->idle_ttl;
        if (ttl == 0 || fk__time_add(grain->used_at, ttl) > now) continue;
        fk__grain_stop(p, grain, "passivated");
        fk__say_grain(p, FK_PLACEMENT_PASSIVATED, grain, FK_OK, NULL);
    }
}

void fk_placement_passivate_idle(fk_placement *p, fk_time now)
{
    fk__placement_passivate(p, now, 0);
}

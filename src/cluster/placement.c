/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The life of a coordinator. */

#include "cluster/placement.h"

/* ---- creating ----------------------------------------------------------------------------------- */

static void placement_number(uint32_t *number, uint32_t otherwise)
{
    if (*number == 0) *number = otherwise;
}

static void placement_time(fk_time *time, fk_time otherwise)
{
    if (*time == 0) *time = otherwise > 0 ? otherwise : 1;
}

static fk_err placement_configure(fk_placement_config *c)
{
    placement_number(&c->slots, FK_SLOTS_DEFAULT);
    if (c->strategy == NULL) c->strategy = &fk_strategy_rendezvous;
    placement_time(&c->lease_ttl, FK_SECONDS(3));
    placement_number(&c->clock_error_ppm, 2000);
    placement_time(&c->lease_margin, c->lease_ttl / 10);
    placement_time(&c->command_timeout, FK_SECONDS(5));
    placement_time(&c->retry_delay, c->lease_ttl / 16);
    placement_number(&c->waiters_max, 1024);
    placement_number(&c->activations_max, 16777216);
    placement_number(&c->acquire_batch, 512);
    placement_number(&c->drain_batch, 64);
    placement_time(&c->cache_ttl, FK_MINUTES(1));
    if ((c->slots & (c->slots - 1)) != 0 || c->slots > FK_SLOTS_MAX) return FK_E_INVALID;
    if (c->acquire_batch > 4096 || c->drain_batch > 4096) return FK_E_INVALID;
    if (c->outcome.command == NULL || c->clock_error_ppm >= 1000000) return FK_E_INVALID;
    if (c->lease_ttl < 0 || c->lease_margin < 0 || c->lease_margin >= c->lease_ttl) {
        return FK_E_INVALID;
    }
    if (c->command_timeout < 0 || c->retry_delay < 0 || c->cache_ttl < 0) return FK_E_INVALID;
    return FK_OK;
}

/* One thread at a time uses a coordinator, so its pools need no locks. */
static void placement_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    (void)lock;
}

fk_err fk_placement_create(const fk_placement_config *config, const fk_port *port,
                           fk_placement **out)
{
    fk_placement_config c = { 0 };
    void *memory, *claims;
    fk_mem mem;
    size_t size = config->size != 0 && config->size < sizeof(c) ? config->size : sizeof(c);
    memcpy(&c, config, size);
    FK_TRY(placement_configure(&c));
    fk_port own = *port;
    own.lock = placement_lock;
    own.unlock = placement_lock;
    fk__mem_init(&mem, &own, 0);
    uint32_t claims_max = c.acquire_batch > c.drain_batch ? c.acquire_batch : c.drain_batch;
    FK_TRY(fk__mem_alloc(&mem, sizeof(fk_placement), FK_SITE("placement"), &memory));
    fk_err err = fk__mem_alloc(&mem, claims_max * sizeof(fk_slot_claim),
                               FK_SITE("claims of a placement"), &claims);
    if (err != FK_OK) {
        fk__mem_free(&mem, memory, sizeof(fk_placement));
        return err;
    }
    fk_placement *p = memory;
    memset(p, 0, sizeof(*p));
    p->mem = mem;
    /* Whoever asks about each allocation is asked about each. */
    fk__pool_init(&p->pool, &p->mem, own.admit != NULL);
    fk__cache_init(&p->cache, &p->pool);
    p->config = c;
    p->self = FK_NOBODY;
    p->claims = claims;
    p->claims_max = claims_max;
    fk__ring_init(&p->due);
    fk__ring_init(&p->errands_due);
    fk__pids_init(&p->pids, &p->cache, c.cache_capacity, c.cache_ttl);
    *out = p;
    return FK_OK;
}

void fk_placement_destroy(fk_placement *p)
{
    if (p == NULL) return;
    for (uint32_t i = 0; i < p->grains.capacity; i++) {
        fk_grain *grain = p->grains.at[i].grain;
        if (grain == NULL) continue;
        if (grain->attempt != NULL) fk__attempt_free(p, grain);
        fk__cache_free(&p->cache, grain, sizeof(*grain) + grain->key_len);
    }
    fk__grains_fini(&p->grains, &p->mem);
    fk__errands_forget(p);
    fk__map_fini(&p->cache, &p->attempts);
    fk__map_fini(&p->cache, &p->errands);
    fk__pids_fini(&p->pids);
    fk__realms_free(p);
    fk__census_free(p, p->census);
    fk__mem_free(&p->mem, p->claims, p->claims_max * sizeof(fk_slot_claim));
    fk__cache_fini(&p->cache);
    fk__pool_fini(&p->pool);
    fk_mem mem = p->mem;
    fk__mem_free(&mem, p, sizeof(*p));
}

/* ---- states ------------------------------------------------------------------------------------- */

static fk_placement_state placement_state(const fk_placement *p)
{
    if (p->role == FK_ROLE_NONE) return FK_PLACEMENT_STATE_STOPPED;
    if (p->census == NULL) return FK_PLACEMENT_STATE_NOT_READY;
    if (p->role == FK_ROLE_CLIENT) return FK_PLACEMENT_STATE_CLIENT;
    return p->lease.deadline != 0 ? FK_PLACEMENT_STATE_MEMBER : FK_PLACEMENT_STATE_NOT_READY;
}

void fk__placement_restate(fk_placement *p)
{
    fk_placement_state state = placement_state(p);
    if (state == p->state) return;
    p->state = state;
    fk__say(p, (fk_placement_event){ .kind = FK_PLACEMENT_STATE,
                                     .authority = fk__placement_id(p),
                                     .reason = fk_placement_state_name(state) });
}

FK_HOT void fk__placement_enter(fk_placement *p, fk_time now)
{
    p->now = now;
    if (now > p->clock) p->clock = now;
    bool is_over = p->lease.deadline != 0 && now >= p->lease.deadline;
    if (is_over && FK_SAFEGUARD(PLACEMENT_SELF_FENCE)) {
        fk__lease_lose(p, "it was not renewed in time");
    }
}

/* A member, if there is memory to see where in the view it is. */
static fk_err placement_become(fk_placement *p, fk_str id, uint64_t incarnation)
{
    struct {
        char id[FK_MEMBER_TEXT_MAX];
        uint32_t id_len;
        uint64_t incarnation;
        fk_role role;
        bool is_draining;
    } was = { .id_len = p->id_len,
              .incarnation = p->incarnation,
              .role = p->role,
              .is_draining = p->is_draining };
    memcpy(was.id, p->id, p->id_len);
    memcpy(p->id, id.ptr, id.len);
    p->id_len = (uint32_t)id.len;
    p->incarnation = incarnation;
    p->role = FK_ROLE_MEMBER;
    p->is_draining = false;
    fk_err err = fk__census_refresh(p);
    if (err == FK_OK) return FK_OK;
    memcpy(p->id, was.id, was.id_len);
    p->id_len = was.id_len;
    p->incarnation = was.incarnation;
    p->role = was.role;
    p->is_draining = was.is_draining;
    p->self = FK_NOBODY;
    return err;
}

fk_err fk_placement_start_member(fk_placement *p, fk_str id, uint64_t incarnation, fk_time asked_at,
                                 fk_time now)
{
    fk__placement_enter(p, now);
    bool is_again = p->role == FK_ROLE_MEMBER && p->lease.deadline == 0;
    if (p->role != FK_ROLE_NONE && !is_again) return FK_E_IDENTITY_SETUP;
    if (id.len == 0 || id.len > FK_MEMBER_TEXT_MAX) return FK_E_IDENTITY_SETUP;
    if (incarnation == 0 || asked_at > now) return FK_E_IDENTITY_SETUP;
    /* What was lost does not come back: the next life has another number. */
    if (is_again && fk__text_equal(id, fk__placement_id(p)) && incarnation <= p->incarnation) {
        return FK_E_IDENTITY_SETUP;
    }
    FK_TRY(placement_become(p, id, incarnation));
    fk__lease_start(p, asked_at);
    fk__placement_restate(p);
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        fk__slots_review(p, realm);
    }
    fk__placement_enter(p, now);
    fk__slots_pump(p);
    return FK_OK;
}

fk_err fk_placement_start_client(fk_placement *p, fk_time now)
{
    fk__placement_enter(p, now);
    if (p->role != FK_ROLE_NONE) return FK_E_IDENTITY_SETUP;
    p->role = FK_ROLE_CLIENT;
    p->self = FK_NOBODY;
    fk__placement_restate(p);
    return FK_OK;
}

static fk_err realm_open(fk_placement *p, fk_realm *realm)
{
    void *memory;
    if (realm->slot != NULL) return FK_OK;
    FK_TRY(fk__mem_alloc(&p->mem, p->config.slots * sizeof(fk_slot), FK_SITE("slots of a kind"),
                         &memory));
    realm->slot = memory;
    for (uint32_t i = 0; i < p->config.slots; i++) {
        realm->slot[i] = (fk_slot){ .next = FK_NOBODY, .prev = FK_NOBODY, .holder = FK_NOBODY };
    }
    p->slots[FK_SLOT_FREE] += p->config.slots;
    return FK_OK;
}

fk_err fk_placement_add_kind(fk_placement *p, const fk_activated_kind *kind, fk_time now)
{
    fk__placement_enter(p, now);
    if (kind->name.len == 0 || kind->name.len > FK_KIND_NAME_MAX) return FK_E_IDENTITY_SETUP;
    fk_realm *realm = fk__realm_find(p, kind->name);
    if (realm != NULL && realm->is_local && realm->is_durable != kind->is_durable) {
        return FK_E_IDENTITY_SETUP;
    }
    bool is_new = realm == NULL;
    if (is_new) FK_TRY(fk__realm_create(p, kind->name, &realm));
    fk_err err = realm_open(p, realm);
    if (err != FK_OK) {
        if (is_new) fk__realm_drop(p, realm);
        return err;
    }
    realm->is_local = true;
    realm->is_durable = kind->is_durable;
    realm->idle_ttl = kind->idle_ttl;
    fk__slots_review(p, realm);
    fk__slots_pump(p);
    return FK_OK;
}

/* ---- ending ------------------------------------------------------------------------------------- */

/* Mutated: what runs is forgotten, not stopped. */
static void placement_abandon(fk_placement *p, fk_grain *grain)
{
    if (grain->attempt != NULL) {
        fk_resolution resolution = fk__resolution_error(p, FK_E_NOT_READY, "stopped");
        fk__attempt_settle(p, grain, &resolution);
    }
    fk__grain_free(p, grain);
}

static void placement_end_grains(fk_placement *p, fk_slot *slot, const char *reason, fk_err err)
{
    fk_grain *next;
    for (fk_grain *grain = slot->grains; grain != NULL; grain = next) {
        next = grain->next;
        if (p->role == FK_ROLE_NONE && !FK_SAFEGUARD(PLACEMENT_STOP_ALL)) {
            placement_abandon(p, grain);
        } else if (grain->phase == FK_PHASE_ACTIVE) {
            fk__grain_stop(p, grain, reason);
        } else if (grain->attempt != NULL) {
            fk__flight_fail(p, grain, FK_PLACEMENT_ACTIVATION_FAILED, err, reason);
        }
    }
}

static bool slot_is_ours(const fk_slot *slot)
{
    return slot->state >= FK_SLOT_HELD;
}

static void placement_release(fk_placement *p, const fk_realm *realm, uint32_t count)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    fk_placement_command command = {
        .kind = FK_COMMAND_RELEASE,
        .request_id = ++p->last_request,
        .deadline = fk__time_add(p->clock, p->config.command_timeout),
        .fence = { 0, fk__placement_id(p), p->incarnation },
        .slots = p->claims,
        .slot_count = count,
        .slot_kind = fk__realm_name(realm),
        .reason = "stopped",
    };
    outcome->command(outcome->ctx, &command);
    for (uint32_t i = 0; i < count; i++) {
        fk__say_slot(p, FK_PLACEMENT_SLOT_RELEASED, realm, p->claims[i].slot, NULL);
    }
}

static void placement_end_slots(fk_placement *p, fk_realm *realm, const char *reason)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->config.slots; i++) {
        fk_slot *slot = &realm->slot[i];
        fk__slot_queue(p, realm, i, FK_QUEUE_NONE);
        slot->is_in_doubt = false;
        slot->holder = FK_NOBODY;
        if (slot->state == FK_SLOT_FREE) continue;
        bool is_ours = slot_is_ours(slot);
        fk__slot_set(p, realm, i, FK_SLOT_FREE);
        if (!is_ours) continue;
        if (p->role != FK_ROLE_NONE) {
            fk__say_slot(p, FK_PLACEMENT_SLOT_LOST, realm, i, reason);
            continue;
        }
        p->claims[count++] = (fk_slot_claim){ .slot = i, .epoch = slot->epoch };
        if (count == p->claims_max) {
            placement_release(p, realm, count);
            count = 0;
        }
    }
    if (count != 0) placement_release(p, realm, count);
}

/* Everything this member had. Grains that are stopping stay until that is over: a next life of this
 * member must not start them beside. */
void fk__placement_forget(fk_placement *p, const char *reason, fk_err err)
{
    fk__errands_forget(p);
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        for (uint32_t i = 0; realm->slot != NULL && i < p->config.slots; i++) {
            placement_end_grains(p, &realm->slot[i], reason, err);
        }
    }
    for (fk_realm *realm = p->realms; realm != NULL; realm = realm->next) {
        if (realm->slot != NULL) placement_end_slots(p, realm, reason);
    }
    p->short_until = 0;
}

fk_err fk_placement_stop(fk_placement *p, fk_time now)
{
    fk__placement_enter(p, now);
    if (p->role == FK_ROLE_NONE) return FK_E_STATE;
    p->role = FK_ROLE_NONE;
    fk__placement_forget(p, "stopped", FK_E_NOT_READY);
    p->lease = (fk_lease){ 0 };
    p->self = FK_NOBODY;
    p->is_draining = false;
    while (p->pids.count != 0) {
        fk_pid *pid = FK_CONTAINER(p->pids.made.next, fk_pid, made);
        fk__say_cached(p, FK_PLACEMENT_CACHE_DROPPED, pid, "stopped");
        fk__pids_drop(&p->pids, pid);
    }
    fk__placement_restate(p);
    return FK_OK;
}

fk_err fk_placement_handle_result(fk_placement *p, const fk_placement_result *result, fk_time now)
{
    fk_err err = FK_E_NOT_FOUND;
    fk__placement_enter(p, now);
    if (!fk__placement_is_member(p) && p->lease.deadline == 0) return FK_E_NOT_FOUND;
    switch (result->kind) {
    case FK_COMMAND_LOAD_ACTIVATION:
    case FK_COMMAND_ENSURE_ACTIVATION:
    case FK_COMMAND_STORE_ACTIVATION: {
        fk_attempt *attempt = fk__map_get(&p->attempts, result->request_id);
        if (attempt != NULL) err = fk__flight_result(p, attempt->grain, result);
        break;
    }
    case FK_COMMAND_TRY_ACQUIRE:
    case FK_COMMAND_TRANSFER_SLOT:
    case FK_COMMAND_RELEASE: err = fk__errand_result(p, result); break;
    case FK_COMMAND_RENEW_MEMBER: err = fk__lease_result(p, result); break;
    default: break; /* the end of an activation is told by stopped() */
    }
    fk__slots_pump(p);
    return err;
}

bool fk_placement_is_drained(const fk_placement *p)
{
    uint32_t held = p->slots[FK_SLOT_HELD] + p->slots[FK_SLOT_DRAINING] + p->slots[FK_SLOT_LEAVING];
    uint32_t asked = p->slots[FK_SLOT_ASKED] + p->queued[FK_QUEUE_URGENT] +
                     p->queued[FK_QUEUE_WANTED] + p->queued[FK_QUEUE_REFUSED];
    return held == 0 && asked == 0 && p->grains.count == 0 && p->errands.count == 0;
}

void fk_placement_snapshot_get(const fk_placement *p, fk_placement_snapshot *out)
{
    uint32_t draining = p->slots[FK_SLOT_DRAINING] + p->slots[FK_SLOT_LEAVING];
    uint32_t commands =
        p->count[FK_PHASE_LOADING] + p->count[FK_PHASE_ENSURING] + p->count[FK_PHASE_STORING];
    *out = (fk_placement_snapshot){
        .state = p->state,
        .view_version = fk_placement_view(p).version,
        .members = fk_placement_view(p).count,
        .kinds = p->realm_count,
        .slots_held = p->slots[FK_SLOT_HELD] + draining,
        .slots_wanted = p->queued[FK_QUEUE_URGENT] + p->queued[FK_QUEUE_WANTED] +
                        p->queued[FK_QUEUE_REFUSED] + p->slots[FK_SLOT_ASKED],
        .slots_draining = draining,
        .activations = p->count[FK_PHASE_ACTIVE],
        .flights = p->count[FK_PHASE_WAITING] + commands,
        .stopping = p->count[FK_PHASE_STOPPING],
        .waiters = p->waiters,
        .commands_pending = commands + p->errands.count + (p->lease.request_id != 0),
        .cached = p->pids.count,
        .lease_deadline = fk_placement_lease_deadline(p),
    };
}

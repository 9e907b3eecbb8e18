/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The cluster of a system: made by the host when it has joined, and there as long as the system. */

#include "cluster/steward.h"

#include "core/ask.h"
#include "core/spawn.h"
#include "remote/mail_room.h"
#include "remote/office.h"

static const fk_time LEAVE_TIME = FK_SECONDS(8);

fk_cluster *fk_cluster_of(fk_system *sys)
{
    /* Acquire pairs with fk__cluster_create(). */
    return sys != NULL ? fk__word_ptr(&sys->cluster.ctx, FK_ACQUIRE) : NULL;
}

bool fk__cluster_changed(void *ctx, bool is_new)
{
    fk_cluster *cluster = ctx;
    if (!is_new && fk__half_load(&cluster->is_unarmed, FK_RELAXED) == 0) return true;
    fk_steward_task task = is_new ? FK_TASK_NEWS : FK_TASK_LOOK;
    return fk__steward_tell(cluster, task, NULL) == FK_OK;
}

/* ---- beginning and end --------------------------------------------------------------------------------- */

/* Those of remoting, or the built-in ones alone. */
static fk_err cluster_codecs(fk_cluster *cluster)
{
    fk_system *sys = cluster->sys;
    fk_remote *remote = sys->remote.ctx;
    if (remote != NULL && remote->driver != NULL) {
        cluster->codecs = &remote->driver->mail->codecs;
        return FK_OK;
    }
    cluster->codecs_size = fk_codecs_memory(0);
    FK_TRY(fk__mem_alloc(&sys->mem, cluster->codecs_size, FK_SITE("codecs of a cluster"),
                         &cluster->codecs_memory));
    fk_codecs_init(&cluster->codecs_own, 0, cluster->codecs_memory);
    cluster->codecs = &cluster->codecs_own;
    return FK_OK;
}

static void cluster_free(fk_cluster *cluster)
{
    fk_mem *mem = &cluster->sys->mem;
    fk_breed *breed = fk__word_ptr(&cluster->breeds, FK_ACQUIRE), *next;
    for (; breed != NULL; breed = next) {
        next = breed->next;
        size_t init = breed->props.init != NULL ? breed->props.state_size : 0;
        fk__mem_free(mem, breed, sizeof(fk_breed) + init);
    }
    if (cluster->steward_state != NULL) fk__steward_destroy(cluster->steward_state);
    fk__answer_types_fini(cluster);
    fk__roll_fini(&cluster->roll);
    fk__mem_free(mem, cluster->sight.view, cluster->sight.view_size);
    fk__mem_free(mem, cluster->codecs_memory, cluster->codecs_size);
    fk__mem_free(mem, cluster, sizeof(*cluster));
}

/* Nothing runs any more; the threads of the store may. */
static void cluster_close(fk_cluster *cluster)
{
    fk_str id = { NULL, 0 };
    if (cluster->has_lease) id = fk__cluster_id(cluster);
    fk__half_store(&cluster->is_over, 1, FK_RELEASE);
    cluster->port.close(cluster->port.ctx, id, cluster->incarnation);
}

static void cluster_shutdown(fk_system *sys, fk_shutdown_task task, void *user)
{
    fk_cluster *cluster = user;
    fk_mem *mem = &sys->mem;
    fk__mem_lock(mem, &cluster->lock);
    cluster->shutdown_task = task.id;
    fk__mem_unlock(mem, &cluster->lock);
    if (fk__half_load(&cluster->is_left, FK_ACQUIRE) >= 2 ||
        fk__steward_leave(cluster, LEAVE_TIME) != FK_OK) {
        (void)fk_shutdown_task_done(sys, task, FK_OK);
    }
}

static fk_err cluster_plan(fk_cluster *cluster, fk_shutdown_task *task)
{
    const fk_shutdown_phase phase = { .name = FK_STR("cluster-sharding-shutdown-region"),
                                      .timeout = LEAVE_TIME + FK_SECONDS(2) };
    FK_TRY(fk_shutdown_phase_set(cluster->sys, &phase));
    return fk_shutdown_task_add(cluster->sys, phase.name, FK_STR("leave-cluster"), cluster_shutdown,
                                cluster, task);
}

static void cluster_config(fk_cluster *cluster, const fk_cluster_start *start)
{
    fk_cluster_config *config = &cluster->config;
    *config = *start->config;
    config->store = config->id = NULL; /* borrowed: the host has made of them what is needed */
    config->providers = NULL;
    config->why = NULL;
    if (config->weight == 0) config->weight = 100;
    if (config->slots == 0) config->slots = FK_SLOTS_DEFAULT;
    if (config->strategy == NULL) config->strategy = &fk_strategy_rendezvous;
    if (config->lease_ttl == 0) config->lease_ttl = FK_SECONDS(3);
    if (config->call_timeout == 0) config->call_timeout = FK_SECONDS(30);
    memcpy(cluster->id, start->id.ptr, start->id.len);
    cluster->id_len = (uint32_t)start->id.len;
    memcpy(cluster->address, start->address.ptr, start->address.len);
    cluster->address_len = (uint32_t)start->address.len;
    cluster->port = start->port;
    cluster->incarnation = start->incarnation;
    cluster->telegram_max = start->telegram_max;
    cluster->has_lease = !config->client;
}

static fk_err cluster_steward(fk_cluster *cluster, const fk_cluster_start *start)
{
    static const fk_props STEWARD = { .receive = fk__steward_receive, .stop = fk__steward_stop };
    fk_system *sys = cluster->sys;
    fk_steward *steward;
    fk_props props = STEWARD;
    FK_TRY(fk__steward_create(cluster, start->incarnation, start->asked_at, &steward));
    cluster->steward_state = steward;
    props.state = steward;
    fk_local *local = fk__local_enter(sys);
    fk_err err =
        fk__spawn(local, sys->top.system, FK_STR("cluster"), NULL, &props, &cluster->steward);
    fk__local_leave(local);
    return err;
}

static fk_err cluster_init(fk_cluster *cluster, const fk_cluster_start *start)
{
    const fk_port *port = &cluster->sys->mem.port;
    port->random(port->ctx, &cluster->origin, sizeof(cluster->origin));
    port->random(port->ctx, &cluster->origin_single, sizeof(cluster->origin_single));
    cluster->origin |= 1; /* never 0, and never the same */
    cluster->origin_single = (cluster->origin_single | 2) & ~UINT64_C(1);
    FK_TRY(fk__roll_init(&cluster->roll, &cluster->sys->mem));
    FK_TRY(cluster_codecs(cluster));
    fk_shutdown_task task;
    FK_TRY(cluster_plan(cluster, &task));
    fk_err err = cluster_steward(cluster, start);
    /* Or it would be told of a cluster that is not there. */
    if (err != FK_OK) (void)fk_shutdown_task_cancel(cluster->sys, task);
    return err;
}

fk_err fk__cluster_create(fk_system *sys, const fk_cluster_start *start, fk_cluster **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_cluster), FK_SITE("cluster"), &memory));
    fk_cluster *cluster = memory;
    memset(cluster, 0, sizeof(*cluster));
    cluster->sys = sys;
    fk__half_store(&cluster->is_unarmed, 1, FK_RELAXED);
    cluster_config(cluster, start);
    fk_err err = cluster_init(cluster, start);
    if (err != FK_OK) {
        cluster_free(cluster);
        return err;
    }
    sys->cluster.steward = cluster->steward;
    sys->cluster.close = cluster_close;
    sys->cluster.destroy = cluster_free;
    /* Release: who sees the cluster sees what belongs to it. */
    fk__word_store(&sys->cluster.ctx, (uintptr_t)cluster, FK_RELEASE);
    *out = cluster;
    /* If it cannot be told, the driver does: the member's row is news. */
    (void)fk__steward_tell(cluster, FK_TASK_NEWS, NULL);
    return FK_OK;
}

/* ---- from outside ------------------------------------------------------------------------------------------ */

/* Until *word is at least that. */
static fk_err cluster_await(fk_cluster *cluster, fk_half *word, uint32_t least, fk_time timeout)
{
    fk_system *sys = cluster->sys;
    const fk_port *port = &sys->mem.port;
    FK_TRY(fk__question_check(sys));
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    for (;;) {
        uint32_t seen = fk__half_load(word, FK_ACQUIRE);
        if (seen >= least) return FK_OK;
        if (fk_is_terminating(sys)) return FK_E_STOPPING;
        fk_time left = deadline == FK_NEVER ? FK_NEVER : deadline - fk__system_now(sys);
        if (left <= 0) return FK_E_TIMEOUT;
        if (left > FK_MILLIS(100)) left = FK_MILLIS(100); /* to see the end of the system */
        port->wait(port->ctx, (uint32_t *)(void *)word, seen, left);
    }
}

fk_err fk_cluster_await_ready(fk_cluster *cluster, fk_time timeout)
{
    return cluster != NULL ? cluster_await(cluster, &cluster->is_ready, 1, timeout) : FK_E_INVALID;
}

fk_err fk_cluster_drain(fk_cluster *cluster)
{
    return cluster != NULL ? fk__steward_tell(cluster, FK_TASK_DRAIN, NULL) : FK_E_INVALID;
}

fk_err fk_cluster_leave(fk_cluster *cluster, fk_time timeout)
{
    if (cluster == NULL) return FK_E_INVALID;
    FK_TRY(fk__question_check(cluster->sys));
    if (fk__half_load(&cluster->is_left, FK_ACQUIRE) >= 2) return FK_OK;
    FK_TRY(fk__steward_leave(cluster, timeout));
    /* The store is given a moment more. */
    fk_time limit = fk__time_add(timeout, cluster->config.store_timeout);
    FK_TRY(cluster_await(cluster, &cluster->is_left, 2, limit));
    return fk__half_load(&cluster->is_left, FK_ACQUIRE) >= 3 ? FK_E_TIMEOUT : FK_OK;
}

/* ---- looking ------------------------------------------------------------------------------------------------ */

/* A copy of the view, to be freed with its size. */
static fk_err sight_view(fk_cluster *cluster, fk_view *out, void **block, size_t *size)
{
    fk_mem *mem = &cluster->sys->mem;
    *block = NULL;
    for (;;) {
        fk__mem_lock(mem, &cluster->lock);
        size_t needed = fk__view_size(&cluster->sight.members);
        bool fits = *block != NULL && needed == *size;
        if (fits) fk__view_copy(&cluster->sight.members, *block, out);
        fk__mem_unlock(mem, &cluster->lock);
        if (fits) return FK_OK;
        fk__mem_free(mem, *block, *block != NULL ? *size : 0);
        *size = needed;
        FK_TRY(fk__mem_alloc(mem, needed, FK_SITE("members for the user"), block));
    }
}

fk_err fk_cluster_members(fk_cluster *cluster, fk_member_fn fn, void *user)
{
    fk_view view;
    void *block;
    size_t size;
    if (cluster == NULL || fn == NULL) return FK_E_INVALID;
    FK_TRY(sight_view(cluster, &view, &block, &size));
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        bool is_self =
            m->id.len == cluster->id_len && memcmp(m->id.ptr, cluster->id, m->id.len) == 0;
        fn(user, m, is_self);
    }
    fk__mem_free(&cluster->sys->mem, block, size);
    return FK_OK;
}

static bool member_has(const fk_member *member, fk_str kind)
{
    for (uint32_t i = 0; i < member->kind_count; i++) {
        fk_str own = member->kinds[i];
        if (own.len == kind.len && memcmp(own.ptr, kind.ptr, kind.len) == 0) return true;
    }
    return false;
}

/* By the strategy itself, for this one slot. */
static const fk_member *where_owner(const fk_cluster *cluster, const fk_view *view,
                                    const fk_grain_key *key, fk_grain_place *out)
{
    const fk_member *best = NULL;
    uint64_t best_score = 0;
    out->slots = cluster->config.slots;
    out->slot = fk_slot_of(key->id, out->slots);
    out->view_version = view->version;
    for (uint32_t i = 0; i < view->count; i++) { /* ids are in order: ties go to the smaller */
        const fk_member *m = &view->members[i];
        if (m->status != FK_MEMBER_UP || m->weight == 0 || !member_has(m, key->kind)) continue;
        uint64_t score = fk_rendezvous_score(fk_member_seed(m->id), out->slot, m->weight);
        if (best == NULL || score > best_score) {
            best = m;
            best_score = score;
        }
        out->members++;
    }
    return best;
}

void fk__member_text(char to[FK_MEMBER_TEXT_MAX + 1], fk_str from)
{
    size_t len = from.len < FK_MEMBER_TEXT_MAX ? from.len : FK_MEMBER_TEXT_MAX;
    memcpy(to, from.ptr, len);
    to[len] = '\0';
}

fk_err fk_grain_where(fk_cluster *cluster, fk_str kind, fk_str key, fk_grain_place *out)
{
    fk_grain_key grain;
    fk_view view;
    void *block;
    size_t size;
    fk_ref ref;
    if (cluster == NULL || out == NULL) return FK_E_INVALID;
    FK_TRY(fk_grain_key_of(kind, key, &grain));
    FK_TRY(sight_view(cluster, &view, &block, &size));
    *out = (fk_grain_place){ .ref = FK_REF_NONE };
    const fk_member *owner = where_owner(cluster, &view, &grain, out);
    fk_err err = view.version == 0 ? FK_E_NOT_READY : owner == NULL ? FK_E_UNKNOWN_KIND : FK_OK;
    if (owner != NULL) {
        fk__member_text(out->owner, owner->id);
        fk__member_text(out->address, owner->address);
    }
    fk__mem_free(&cluster->sys->mem, block, size);
    const fk_seat *seat = fk__roll_find(&cluster->roll, &grain, &ref, cluster->sys->id);
    if (seat != NULL) {
        out->is_here = out->is_held = true;
        out->ref = ref;
        out->epoch = seat->epoch;
        err = FK_OK;
    }
    return err;
}

/* Of a bucket at a time, copied under the lock, and told without it. */
typedef struct fk_grain_copy {
    const fk_breed *breed;
    fk_ref ref;
    uint64_t epoch;
    uint32_t key_len;
    char key[FK_GRAIN_KEY_MAX];
} fk_grain_copy;

static bool each_copy(fk_cluster *cluster, uint32_t bucket, uint32_t index, fk_grain_copy *out)
{
    bool is_found = false;
    fk__mem_lock(&cluster->sys->mem, &cluster->lock);
    const fk_roll_table *table = fk__word_ptr(&cluster->roll.table, FK_ACQUIRE);
    const fk_seat *seat = bucket <= table->mask ? fk__roll_follow(&table->bucket[bucket]) : NULL;
    for (uint32_t i = 0; seat != NULL && i < index; i++) {
        seat = fk__roll_follow(&seat->next);
    }
    if (seat != NULL) {
        is_found = true;
        out->breed = seat->breed;
        out->ref = seat->ref;
        out->epoch = seat->epoch;
        out->key_len = seat->key_len;
        memcpy(out->key, seat->key, seat->key_len);
    }
    fk__mem_unlock(&cluster->sys->mem, &cluster->lock);
    return is_found;
}

fk_err fk_grain_each(fk_cluster *cluster, fk_grain_fn fn, void *user)
{
    void *memory;
    if (cluster == NULL || fn == NULL) return FK_E_INVALID;
    fk_mem *mem = &cluster->sys->mem;
    FK_TRY(fk__mem_alloc(mem, sizeof(fk_grain_copy), FK_SITE("grain to be shown"), &memory));
    fk_grain_copy *copy = memory;
    const fk_roll_table *table = fk__word_ptr(&cluster->roll.table, FK_ACQUIRE);
    for (uint32_t bucket = 0; bucket <= table->mask; bucket++) {
        if (fk__word_load(&table->bucket[bucket], FK_RELAXED) == 0) continue;
        for (uint32_t i = 0; each_copy(cluster, bucket, i, copy); i++) {
            fn(user, (fk_str){ copy->breed->name, copy->breed->name_len },
               (fk_str){ copy->key, copy->key_len }, copy->ref, copy->epoch);
        }
    }
    fk__mem_free(mem, memory, sizeof(fk_grain_copy));
    return FK_OK;
}

fk_err fk_cluster_stats_get(fk_cluster *cluster, fk_cluster_stats *out)
{
    if (cluster == NULL || out == NULL) return FK_E_INVALID;
    fk__mem_lock(&cluster->sys->mem, &cluster->lock);
    *out = cluster->sight.stats;
    fk__mem_unlock(&cluster->sys->mem, &cluster->lock);
    /* Relaxed: only numbers. */
    out->deduplicated = fk__word_load(&cluster->deduplicated, FK_RELAXED);
    out->stores = fk__word_load(&cluster->stores, FK_RELAXED);
    out->store_failures = fk__word_load(&cluster->store_failures, FK_RELAXED);
    return FK_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The way of a call: the id of the grain, a look into the roll, and straight to the actor if it is
 * active here; else to the steward.
 */

#include "cluster/cluster.h"
#include "core/ask.h"
#include "core/send.h"

/* A call, before it is known where it goes. */
typedef struct fk_calling {
    fk_cluster *cluster;
    fk_grain_key key;
    fk_ref asker;
    bool wants_answer;
    fk_time timeout;
} fk_calling;

/* The steward gives up a little before the asker does, so that the asker hears why. */
static fk_time calling_deadline(fk_local *local, fk_time timeout)
{
    return fk__time_add(fk__system_now(local->sys), timeout - timeout / 10);
}

/* The call as a message to the steward. FK_E_*: the user's message is still the caller's. */
static fk_err calling_mission(fk_local *local, const fk_calling *call, fk_out msg, fk_node **out)
{
    fk_mission *mission;
    FK_TRY(fk__mission_create(local, call->cluster, &call->key, 0, &mission));
    fk_mission_message message = { mission };
    fk_node *node = NULL;
    mission->body = fk__node_create(&local->cache, msg);
    if (mission->body != NULL) {
        node = fk__node_create(&local->cache, (fk_out){ &fk__type_mission, &message });
    }
    if (node == NULL) {
        fk_err err = local->cache.err;
        if (mission->body != NULL) fk__node_unmake(&local->cache, mission->body, msg);
        mission->body = NULL;
        fk__mission_destroy(local, mission);
        return err;
    }
    mission->asker = call->asker;
    mission->wants_answer = call->wants_answer;
    mission->call.is_ours = true;
    mission->call.deadline = calling_deadline(local, call->timeout);
    node->sender = 0;
    *out = node;
    return FK_OK;
}

static fk_err calling_cold(fk_local *local, const fk_calling *call, fk_out msg)
{
    fk_node *node = NULL;
    FK_TRY(calling_mission(local, call, msg, &node));
    /* Undelivered, it ends, and whoever asked is told. */
    (void)fk__send_node(local, call->cluster->steward, node);
    return FK_OK;
}

static fk_err calling_send(fk_local *local, const fk_calling *call, fk_out msg)
{
    fk_ref ref;
    fk_cluster *cluster = call->cluster;
    fk_seat *seat = fk__roll_find(&cluster->roll, &call->key, &ref, local->system);
    if (FK_UNLIKELY(seat == NULL)) return calling_cold(local, call, msg);
    /* Only when it changes: all callers of a grain share the line. */
    if (fk__half_load(&seat->is_used, FK_RELAXED) == 0) {
        fk__half_store(&seat->is_used, 1, FK_RELAXED);
    }
    fk_hot_call hot = { .seat = seat, .ref = ref, .asker = call->asker };
    if (seat->breed->kind.durable) hot.request = fk__single_request(cluster);
    return fk__hot_send(local, &hot, msg);
}

static fk_err calling_open(fk_calling *call, fk_cluster *cluster, fk_str kind, fk_str key)
{
    *call = (fk_calling){ .cluster = cluster };
    if (cluster == NULL) return FK_E_NOT_READY;
    if (fk__half_load(&cluster->is_over, FK_RELAXED) != 0) return FK_E_STOPPING;
    call->timeout = cluster->config.call_timeout;
    return fk_grain_key_of(kind, key, &call->key);
}

/* Of a durable grain: the call goes out when what it did is stored. */
static fk_err calling_later(fk_ctx *ctx, const fk_calling *call, fk_out msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_node *node = NULL;
    fk_err err = calling_mission(local, call, msg, &node);
    ctx->tray->has_sent = true;
    if (err == FK_OK)
        (void)fk__tray_put(local, ctx->tray, call->cluster->steward, node); /* or it ends */
    else
        ctx->tray->err = err;
    return err;
}

/* ---- inside receive ---------------------------------------------------------------------------------- */

fk_err fk_grain_tell(fk_ctx *ctx, fk_str kind, fk_str key, fk_out msg)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_calling call;
    fk_err err = calling_open(&call, fk_cluster_of(local->sys), kind, key);
    call.asker = fk_self(ctx);
    if (err == FK_OK) {
        err = ctx->tray == NULL || ctx->tray->is_direct ? calling_send(local, &call, msg)
                                                        : calling_later(ctx, &call, msg);
    }
    if (err != FK_OK) fk__out_drop(&local->cache, msg);
    return err;
}

fk_err fk_grain_ask(fk_ctx *ctx, fk_str kind, fk_str key, fk_out msg, uint64_t id, fk_time timeout)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_calling call;
    fk_err err = calling_open(&call, fk_cluster_of(local->sys), kind, key);
    if (err == FK_OK) err = fk__ask_open(ctx, id, timeout, &call.asker);
    if (err != FK_OK) {
        fk__out_drop(&local->cache, msg);
        return err;
    }
    call.wants_answer = true;
    call.timeout = timeout;
    if (timeout <= 0) err = FK_E_TIMEOUT; /* over before it is sent, as with fk_ask() */
    if (err == FK_OK)
        err = ctx->tray == NULL || ctx->tray->is_direct ? calling_send(local, &call, msg)
                                                        : calling_later(ctx, &call, msg);
    if (err == FK_OK) return FK_OK;
    fk__out_drop(&local->cache, msg);
    fk__ask_end(local, call.asker, err); /* the answer says it */
    return FK_OK;
}

/* ---- any thread ------------------------------------------------------------------------------------------ */

fk_err fk_grain_send(fk_cluster *cluster, fk_str kind, fk_str key, fk_out msg)
{
    fk_calling call;
    if (cluster == NULL) return FK_E_INVALID;
    fk_local *local = fk__local_enter(cluster->sys);
    fk_err err = calling_open(&call, cluster, kind, key);
    if (err == FK_OK) err = calling_send(local, &call, msg);
    if (err != FK_OK) fk__out_drop(&local->cache, msg);
    fk__local_leave(local);
    return err;
}

fk_err fk_grain_ask_wait(fk_cluster *cluster, fk_str kind, fk_str key, fk_out msg, fk_into into,
                         fk_time timeout)
{
    fk_calling call;
    if (cluster == NULL) return FK_E_INVALID;
    fk_system *sys = cluster->sys;
    fk_err err = fk__question_check(sys);
    if (err == FK_OK && into.type == &fk_type_clash) err = FK_E_INVALID;
    if (err == FK_OK && timeout <= 0) err = FK_E_TIMEOUT;
    if (err == FK_OK) err = calling_open(&call, cluster, kind, key);
    if (err == FK_OK) err = fk__question_open(sys, cluster->steward, &call.asker);
    fk_local *local = fk__local_enter(sys);
    bool is_open = err == FK_OK;
    if (err == FK_OK) {
        call.wants_answer = true;
        call.timeout = timeout;
        local->is_waiting = true;
        err = calling_send(local, &call, msg);
        local->is_waiting = false;
    }
    if (err != FK_OK) fk__out_drop(&local->cache, msg);
    fk__local_leave(local);
    if (err == FK_OK) return fk__question_await(sys, call.asker, into, timeout);
    if (is_open) fk__question_drop(sys, call.asker);
    return err;
}

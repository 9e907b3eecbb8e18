/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/shell.h"

#include "core/event.h"

enum { ASIDE_MAX = 65536, BATCH_SIZE = FK_ACTIVATION_BATCH_MAX * sizeof(fk_node *) };

static size_t shell_size(const fk_breed *breed)
{
    return (sizeof(fk_shell) + 15) / 16 * 16 + breed->props.state_size;
}

static fk_err shell_load(fk_shell *shell, const fk_record *record)
{
    const fk_kind *kind = &shell->breed->kind;
    size_t size = shell->breed->props.state_size;
    if (record == NULL || record->snapshot.ptr == NULL) return FK_OK;
    if (kind->decode != NULL) {
        fk_err err = kind->decode(fk__shell_state(shell), record->snapshot);
        bool is_known = err == FK_OK || err == FK_E_NOMEM || err == FK_E_CORRUPT;
        return is_known ? err : FK_E_ACTIVATION; /* no code of the user's means anything to us */
    }
    if (record->snapshot.len != size) return FK_E_MISMATCH;
    memcpy(fk__shell_state(shell), record->snapshot.ptr, size);
    return FK_OK;
}

fk_err fk__shell_create(fk_local *local, const fk_shell_start *start, fk_shell **out)
{
    fk_seat *seat = start->seat;
    const fk_breed *breed = seat->breed;
    const fk_record *record = start->record;
    bool is_durable = breed->kind.durable;
    fk_shell *shell = fk__cache_alloc(&local->cache, shell_size(breed), FK_SITE("grain"));
    if (shell == NULL) return local->cache.err;
    memset(shell, 0, shell_size(breed));
    shell->seat = seat;
    shell->breed = breed;
    fk__tray_init(&shell->tray);
    fk_fence fence = { seat->epoch, fk__cluster_id(seat->cluster), start->incarnation };
    fk_str dedup = { NULL, 0 }, snapshot = { NULL, 0 };
    if (record != NULL) dedup = record->dedup;
    if (breed->props.init != NULL) {
        memcpy(fk__shell_state(shell), breed->props.init, breed->props.state_size);
    }
    fk_err err = shell_load(shell, record);
    if (err == FK_OK && is_durable) {
        shell->batch = fk__cache_alloc(&local->cache, BATCH_SIZE, FK_SITE("calls of a grain"));
        if (shell->batch == NULL) err = local->cache.err;
    }
    unsigned char *memory = NULL;
    size_t size = 0;
    if (err == FK_OK && is_durable) err = fk__shell_snapshot(shell, &snapshot, &memory, &size);
    if (err == FK_OK) {
        const fk_activation_start begin = { is_durable, fence, record != NULL ? record->version : 0,
                                            dedup, snapshot };
        err = fk__activation_init(&shell->activation, &local->sys->mem, &begin);
    }
    fk__mem_free(&local->sys->mem, memory, size);
    if (err != FK_OK) {
        if (shell->batch != NULL) fk__cache_free(&local->cache, shell->batch, BATCH_SIZE);
        fk__cache_free(&local->cache, shell, shell_size(breed));
        return err;
    }
    *out = shell;
    return FK_OK;
}

void fk__shell_destroy(fk_local *local, fk_shell *shell)
{
    fk__activation_fini(&shell->activation);
    if (shell->batch != NULL) fk__cache_free(&local->cache, shell->batch, BATCH_SIZE);
    fk__cache_free(&local->cache, shell, shell_size(shell->breed));
}

void fk__shell_props(const fk_breed *breed, fk_props *out)
{
    *out = (fk_props){ .receive = fk__shell_receive,
                       .stop = fk__shell_stop,
                       .throughput = breed->props.throughput,
                       .stash_max = ASIDE_MAX,
                       .strategy = breed->props.strategy };
}

fk_err fk__shell_snapshot(fk_shell *shell, fk_str *out, unsigned char **memory, size_t *size)
{
    const fk_kind *kind = &shell->breed->kind;
    const void *state = fk__shell_state(shell);
    void *bytes;
    if (kind->encode == NULL) {
        *out = (fk_str){ state, shell->breed->props.state_size };
        return FK_OK;
    }
    size_t len = kind->encode(state, NULL, 0);
    if (len > SIZE_MAX / 2) return FK_E_INVALID;
    FK_TRY(fk__mem_alloc(&shell->seat->cluster->sys->mem, len + 1, FK_SITE("state of a grain"),
                         &bytes));
    *memory = bytes;
    *size = len + 1;
    if (kind->encode(state, bytes, len) != len) return FK_E_INVALID;
    *out = (fk_str){ bytes, len };
    return FK_OK;
}

static char *job_text(char *at, fk_str from, fk_str *to)
{
    if (from.len != 0) memcpy(at, from.ptr, from.len);
    *to = (fk_str){ at, from.len };
    return at + from.len;
}

/* Everything that the store needs goes with the job. */
fk_err fk__shell_store(fk_ctx *ctx, fk_shell *shell)
{
    fk_seat *seat = shell->seat;
    fk_cluster *cluster = seat->cluster;
    fk_mem *mem = &cluster->sys->mem;
    fk_activation *a = &shell->activation;
    fk_str snapshot = { NULL, 0 };
    unsigned char *memory = NULL;
    size_t memory_size = 0;
    fk_store_job *job;
    fk_str kind = { seat->breed->name, seat->breed->name_len }, key = { seat->key, seat->key_len };
    size_t dedup_size = fk__activation_dedup_size(a, mem->port.wall(mem->port.ctx));
    FK_TRY(fk__shell_snapshot(shell, &snapshot, &memory, &memory_size));
    size_t extra = kind.len + key.len + a->fence.holder.len + snapshot.len + dedup_size + 1;
    fk_err err = fk__store_job_create(cluster->sys, extra, &job);
    if (err == FK_OK) {
        fk_store_op *op = &job->op;
        char *at = fk__store_job_extra(job);
        at = job_text(at, kind, &op->key.kind);
        at = job_text(at, key, &op->key.key);
        at = job_text(at, a->fence.holder, &op->fence.holder);
        at = job_text(at, snapshot, &op->record.snapshot);
        op->key.id = seat->grain;
        op->fence.epoch = a->fence.epoch;
        op->fence.incarnation = a->fence.incarnation;
        op->record.dedup = (fk_str){ at, dedup_size };
        op->version = a->version;
        op->verb = shell->wants_removal ? FK_STORE_REMOVE : FK_STORE_STORE;
        fk__activation_store_begin(a, (unsigned char *)at, dedup_size);
        op->request[0] = a->last.origin;
        op->request[1] = a->last.seq;
        job->to = fk_self(ctx);
        cluster->port.submit(cluster->port.ctx, job);
    }
    fk__mem_free(mem, memory, memory_size);
    return err;
}

void fk__grain_event(const fk_seat *seat, fk_local *local, fk_placement_event_kind kind)
{
    fk_system *sys = seat->cluster->sys;
    if (!fk__event_wanted(sys, FK_EVENT_PLACEMENT)) return;
    fk_placement_event event = { .kind = kind,
                                 .observed_at = fk__system_now(sys),
                                 .key = { { seat->breed->name, seat->breed->name_len },
                                          { seat->key, seat->key_len },
                                          seat->grain },
                                 .authority = fk__cluster_id(seat->cluster),
                                 .epoch = seat->epoch,
                                 .reason = "" };
    fk__placement_publish(sys, local, &event);
}

/* ---- for the user ---------------------------------------------------------------------------------------- */

static fk_shell *shell_of(const fk_ctx *ctx)
{
    return ctx->cell->props->receive == fk__shell_receive ? ctx->cell->state : NULL;
}

fk_err fk_grain_self(const fk_ctx *ctx, fk_grain_info *out)
{
    const fk_shell *shell = shell_of(ctx);
    if (shell == NULL) return FK_E_STATE;
    const fk_seat *seat = shell->seat;
    *out = (fk_grain_info){ .kind = { seat->breed->name, seat->breed->name_len },
                            .key = { seat->key, seat->key_len },
                            .epoch = seat->epoch,
                            .version = shell->activation.version };
    const fk_hot *hot = ctx->tray != NULL ? shell->hot : NULL;
    if (hot != NULL) {
        out->request[0] = hot->origin;
        out->request[1] = hot->seq;
    }
    /* One that was tried here first, and got another number when it left its node, keeps the first. */
    bool is_far = hot != NULL && (hot->flags & FK_HOT_NODE) != 0;
    if (is_far && hot->body.far.earlier_origin != 0) {
        out->request[0] = hot->body.far.earlier_origin;
        out->request[1] = hot->body.far.earlier_seq;
    }
    return FK_OK;
}

fk_err fk_grain_delete(fk_ctx *ctx)
{
    fk_shell *shell = shell_of(ctx);
    if (shell == NULL || ctx->tray == NULL) return FK_E_STATE;
    if (shell->activation.is_durable)
        shell->wants_removal = true;
    else
        shell->wants_end = true;
    return FK_OK;
}

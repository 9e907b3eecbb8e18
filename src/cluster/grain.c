/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The actor that a grain is: a shell around the user's receive. What the user's code sends is kept in
 * a tray until activation.h says that it may go out. While a store is under way, whatever comes is set
 * aside in the actor's stash; afterwards as many messages as were set aside are run before the next
 * store, so that a grain with many callers needs few stores.
 *
 * Calls that were run and not stored yet are kept (batch): if the store fails nobody was told anything,
 * and they go back to the steward as if they had never been here.
 */

#include "cluster/shell.h"

#include "core/ask.h"
#include "core/send.h"

const fk_type fk__type_grain_order = { "fk_grain_order", sizeof(fk_grain_order),
                                       (uint32_t) _Alignof(fk_grain_order) | FK_TYPE_QUIET, NULL };

static fk_ref hot_asker(const fk_hot *hot, uint32_t system)
{
    return (fk_ref){ hot->asker_slot, hot->asker_generation,
                     hot->asker_generation != 0 ? system : 0 };
}

/* The call needs nothing more. */
static void hot_done(fk_local *local, fk_hot *hot)
{
    hot->seat = NULL;
    if ((hot->flags & FK_HOT_NODE) == 0) return;
    fk__node_drop_contents(&local->cache, hot->body.far.node);
    fk__node_free(&local->cache, hot->body.far.node);
}

/* ---- the batch --------------------------------------------------------------------------------------- */

static void batch_keep(fk_shell *shell, fk_node *node)
{
    FK_ASSERT(shell->batch_count < FK_ACTIVATION_BATCH_MAX);
    node->flags |= FK_NODE_LIVE; /* the queue moves on without it */
    shell->batch[shell->batch_count++] = node;
}

typedef enum batch_fate { BATCH_STORED, BATCH_GIVEN_BACK, BATCH_REFUSED } batch_fate;

/* err: what is told to their askers, at once or when the time of those that are given back is over. */
static void batch_end(fk_ctx *ctx, fk_shell *shell, batch_fate fate, fk_err err)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    for (uint32_t i = 0; i < shell->batch_count; i++) {
        fk_node *node = shell->batch[i];
        fk_hot *hot = (fk_hot *)(void *)node->bytes;
        hot->why = (uint16_t)err;
        if (fate == BATCH_REFUSED) fk__hot_fail(local, hot, err);
        if (fate == BATCH_GIVEN_BACK)
            fk__type_hot.drop(hot); /* to the steward */
        else
            hot_done(local, hot);
        node->flags |= FK_NODE_MOVED;
        node->flags &= (uint8_t)~FK_NODE_LIVE;
        if (&node->link != ctx->cell->head && node != ctx->node) fk__node_free(&local->cache, node);
    }
    shell->batch_count = 0;
}

/* ---- ends ------------------------------------------------------------------------------------------------ */

static bool shell_is_busy(const fk_shell *shell)
{
    return shell->activation.is_storing;
}

/* When nothing is under way. */
static void shell_end(fk_ctx *ctx, fk_shell *shell)
{
    shell->wants_end = true;
    if (!shell_is_busy(shell)) fk_stop_self(ctx);
}

/* What it did since the last store never happened. */
static void shell_break(fk_ctx *ctx, fk_shell *shell, fk_verdict verdict, fk_err err)
{
    fk__activation_break(&shell->activation);
    fk__tray_discard(&fk__ctx_worker(ctx)->local, &shell->tray);
    batch_end(ctx, shell, BATCH_GIVEN_BACK, err);
    shell->seat->verdict = verdict;
    shell->seat->why = err;
    shell->wants_end = true;
    fk_stop_self(ctx);
}

/* ---- storing ----------------------------------------------------------------------------------------------- */

static void shell_clean(fk_ctx *ctx, fk_shell *shell)
{
    fk__tray_release(&fk__ctx_worker(ctx)->local, &shell->tray);
    batch_end(ctx, shell, BATCH_STORED, FK_OK);
    if (shell->wants_end) fk_stop_self(ctx);
}

/* Begins when there is something to store and nobody else is to be run before. */
static void shell_settle(fk_ctx *ctx, fk_shell *shell)
{
    fk_activation *a = &shell->activation;
    if (a->is_broken || a->is_storing) return;
    if (!a->is_dirty && !shell->wants_removal) {
        if (fk__activation_is_clean(a)) shell_clean(ctx, shell);
        return;
    }
    if (shell->batch_left > 0 && fk__activation_has_room(a) && !shell->wants_removal) return;
    fk_err err = fk__shell_store(ctx, shell);
    if (err != FK_OK) shell_break(ctx, shell, FK_VERDICT_REFUSED, err);
}

static void shell_stored(fk_ctx *ctx, fk_shell *shell, fk_store_job *job)
{
    fk_cluster *cluster = shell->seat->cluster;
    const fk_store_op *op = &job->op;
    bool is_removal = op->verb == FK_STORE_REMOVE;
    uint64_t version = op->verdict == FK_VERDICT_OK ? op->record.version : 0;
    fk__word_add(&cluster->stores, 1, FK_RELAXED);
    if (is_removal && op->verdict == FK_VERDICT_OK) {
        version = shell->activation.version + 1;
        shell->seat->is_removed = true;
    }
    if (!fk__activation_stored(&shell->activation, op->verdict, version)) {
        fk__word_add(&cluster->store_failures, 1, FK_RELAXED);
        shell->seat->fence_epoch = op->epoch;
        /* It is full, or this is too much for it: trying again would change nothing. */
        bool is_too_much = op->err == FK_E_FULL || op->err == FK_E_LIMIT;
        if (op->verdict == FK_VERDICT_REFUSED && is_too_much)
            batch_end(ctx, shell, BATCH_REFUSED, FK_E_STORAGE);
        shell_break(ctx, shell, op->verdict, op->err != FK_OK ? op->err : FK_E_STORAGE);
        return;
    }
    if (is_removal) shell->wants_end = true;
    shell_clean(ctx, shell);
    if (shell->wants_end) return;
    shell->batch_left = shell->aside;
    shell->aside = 0;
    if (shell->batch_left > 0 && fk_unstash_all(ctx) != FK_OK) {
        shell_break(ctx, shell, FK_VERDICT_REFUSED, FK_E_NOMEM);
    }
}

/* ---- turns -------------------------------------------------------------------------------------------------- */

static fk_err shell_begin(fk_ctx *ctx, fk_shell *shell)
{
    const fk_props *props = &shell->breed->props;
    if (props->start != NULL) FK_TRY(props->start(ctx, fk__shell_state(shell)));
    shell->is_begun = true; /* what did not start is not stopped */
    return FK_OK;
}

/* Runs the user's code; what it sends is in the tray. */
static fk_err shell_run(fk_ctx *ctx, fk_shell *shell, const fk_msg *inner, fk_out again)
{
    fk_tray *tray = &shell->tray;
    bool is_numbered = shell->hot != NULL && (shell->hot->flags & FK_HOT_NUMBERED) != 0;
    fk_err err = FK_OK;
    tray->is_direct = !shell->activation.is_durable && !is_numbered;
    tray->asker = inner->sender;
    tray->inner = again;
    tray->answer = NULL;
    tray->has_sent = false;
    tray->err = FK_OK;
    ctx->tray = tray;
    ctx->msg = *inner;
    if (!shell->is_begun && shell_begin(ctx, shell) != FK_OK) err = FK_E_ACTIVATION;
    if (err == FK_OK) err = shell->breed->props.receive(ctx, fk__shell_state(shell), &ctx->msg);
    ctx->tray = NULL;
    /* It ends when what it did is stored, not before. */
    if ((ctx->cell->flags & FK_CELL_LEAVING) != 0) shell->wants_end = true;
    if (shell->activation.is_durable) ctx->cell->flags &= (uint8_t)~FK_CELL_LEAVING;
    return err;
}

/* The asker of a tell waits for nothing, but its node does. */
static fk_err shell_acknowledge(fk_ctx *ctx, fk_shell *shell)
{
    const fk_hot *hot = shell->hot;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    uint32_t none = 0;
    if (hot == NULL || (hot->flags & FK_HOT_ACK) == 0 || shell->tray.answer != NULL) return FK_OK;
    fk_node *node = fk__node_create(&local->cache, (fk_out){ &fk__type_ack, &none });
    if (node == NULL) return local->cache.err;
    node->sender = 0;
    FK_TRY(fk__tray_put(local, &shell->tray, hot_asker(hot, local->system), node));
    shell->tray.answer = node;
    return FK_OK;
}

/* It has been run: what is to be stored of it. */
static fk_err shell_note(fk_ctx *ctx, fk_shell *shell)
{
    const fk_hot *hot = shell->hot;
    fk_cluster *cluster = shell->seat->cluster;
    fk_mem *mem = &cluster->sys->mem;
    fk_activation *a = &shell->activation;
    bool is_numbered = hot != NULL && (hot->flags & FK_HOT_NUMBERED) != 0;
    fk_grain_turn turn = { .has_sent = shell->tray.has_sent };
    unsigned char *answer = NULL, *snapshot = NULL;
    size_t answer_size = 0, snapshot_size = 0;
    fk_err err = FK_OK;
    if (!a->is_durable && !is_numbered) return FK_OK;
    FK_TRY(shell_acknowledge(ctx, shell));
    turn.wall = mem->port.wall(mem->port.ctx);
    if (hot != NULL) {
        turn.request = (fk_request){ hot->origin, hot->seq };
        turn.low = hot->low;
        turn.is_single = !is_numbered;
    }
    if (hot != NULL && shell->tray.answer != NULL) {
        fk_msg msg;
        fk__node_view(shell->tray.answer, cluster->sys->id, &msg);
        err = fk__answer_pack(cluster, &msg, &answer, &answer_size);
        /* Nobody else could read it, so nobody else is answered again. */
        if (err == FK_E_NO_CODEC) err = FK_OK;
        turn.has_answer = answer != NULL;
        turn.answer = (fk_str){ (const char *)answer, answer_size };
    }
    if (err == FK_OK && a->is_durable) {
        err = fk__shell_snapshot(shell, &turn.snapshot, &snapshot, &snapshot_size);
    }
    if (err == FK_OK) err = fk__activation_ran(a, &turn);
    fk__mem_free(mem, answer, answer_size);
    fk__mem_free(mem, snapshot, snapshot_size);
    return err;
}

/* The user's code has failed: the turn is undone, and the actor ends as its parent decides. */
static fk_err shell_failed(fk_ctx *ctx, fk_shell *shell, fk_hot *hot, fk_err err)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk__tray_discard(local, &shell->tray);
    if (hot != NULL) {
        bool is_start = err == FK_E_ACTIVATION;
        fk__hot_fail(local, hot, is_start ? err : FK_E_FAILED);
        hot_done(local, hot);
    }
    fk__activation_break(&shell->activation);
    batch_end(ctx, shell, BATCH_GIVEN_BACK, FK_OK);
    return err;
}

static fk_err shell_turn(fk_ctx *ctx, fk_shell *shell, const fk_msg *inner, fk_out again,
                         fk_hot *hot)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    shell->hot = hot;
    fk_err err = shell_run(ctx, shell, inner, again);
    if (err != FK_OK) return shell_failed(ctx, shell, hot, err);
    /* What it said is part of what it did: if some of that is lost, all is, and the asker is told. */
    bool is_said = shell->tray.is_direct || shell->tray.err != FK_E_NOMEM;
    err = is_said ? shell_note(ctx, shell) : FK_E_NOMEM;
    if (err != FK_OK) { /* what was done cannot be stored: it is not done */
        fk__tray_discard(local, &shell->tray);
        if (hot != NULL) {
            fk__hot_fail(local, hot, err);
            hot_done(local, hot);
        }
        shell_break(ctx, shell, FK_VERDICT_REFUSED, err);
        return FK_OK;
    }
    if (fk__activation_is_clean(&shell->activation) && !shell->wants_removal) {
        if (hot != NULL) hot_done(local, hot);
        if (shell->tray.first != NULL) fk__tray_release(local, &shell->tray);
        if (shell->wants_end) fk_stop_self(ctx);
    } else if (hot != NULL) {
        batch_keep(shell, ctx->node);
    }
    return FK_OK;
}

/* It was run before, by another activation or this one. */
static void shell_answer_again(fk_ctx *ctx, fk_shell *shell, fk_hot *hot, fk_str answer)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_cluster *cluster = shell->seat->cluster;
    fk_ref asker = hot_asker(hot, local->system);
    fk_node *node = NULL;
    fk__word_add(&cluster->deduplicated, 1, FK_RELAXED);
    fk__grain_event(shell->seat, local, FK_PLACEMENT_DEDUPLICATED);
    fk_err err =
        answer.len == 0 ? FK_E_NOT_FOUND : fk__answer_unpack(cluster, local, answer, &node);
    if (err == FK_OK) {
        node->sender = fk__sender_pack(fk_self(ctx).slot, fk_self(ctx).generation);
        err = fk__tray_put(local, &shell->tray, asker, node);
    } else if (answer.len == 0 && (hot->flags & FK_HOT_ACK) != 0) {
        shell->hot = hot;
        shell->tray.answer = NULL;
        err = shell_acknowledge(ctx, shell);
    }
    if (err != FK_OK && err != FK_E_NOT_FOUND) fk__ask_end(local, asker, err);
    hot_done(local, hot);
}

static void shell_aside(fk_ctx *ctx, fk_shell *shell, fk_hot *hot)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (fk_stash(ctx) == FK_OK) {
        shell->aside++;
        return;
    }
    if (hot == NULL) {
        (void)fk_unhandled(ctx, &ctx->msg);
        return;
    }
    fk__hot_fail(local, hot, FK_E_OVERLOADED);
    hot_done(local, hot);
}

static fk_admission shell_admit(fk_ctx *ctx, fk_shell *shell, const fk_hot *hot, fk_str *answer)
{
    const fk_cluster *cluster = shell->seat->cluster;
    fk_request request = { 0, 0 }, earlier = { 0, 0 };
    bool holds = fk__lease_holds(cluster, &fk__ctx_worker(ctx)->local);
    bool is_closing = fk__half_load(&shell->seat->is_closing, FK_RELAXED) != 0;
    if (hot != NULL && (is_closing || shell->wants_end || shell->wants_removal)) {
        return FK_ADMIT_BACK;
    }
    if (hot != NULL) request = (fk_request){ hot->origin, hot->seq };
    if (hot != NULL && (hot->flags & FK_HOT_NODE) != 0) {
        earlier = (fk_request){ hot->body.far.earlier_origin, hot->body.far.earlier_seq };
    }
    fk_activation *a = &shell->activation;
    fk_admission admission = fk__activation_admit(a, &request, &earlier, holds ? 0 : 1, 1, answer);
    if (hot == NULL || FK_LIKELY(admission != FK_ADMIT_OVERLOADED)) return admission;
    const fk_mem *mem = &cluster->sys->mem;
    bool is_single = (hot->flags & FK_HOT_NUMBERED) == 0;
    bool has_room =
        fk__activation_make_room(a, &request, is_single, hot->low, mem->port.wall(mem->port.ctx));
    return has_room ? FK_ADMIT_RUN : FK_ADMIT_OVERLOADED;
}

/* What nearly every call of a volatile grain is: small, of this node, and nothing stands against it. The
 * lease is looked at in any case. */
static inline bool shell_is_quick(const fk_shell *shell, const fk_hot *hot)
{
    const fk_activation *a = &shell->activation;
    if ((hot->flags | (uint8_t)a->is_durable | (uint8_t)a->is_broken) != 0) return false;
    if (!shell->is_begun || shell->wants_end) return false;
    return fk__half_load(&shell->seat->is_closing, FK_RELAXED) == 0;
}

/* shell_turn() of such a call: it is not kept, noted or stored, and what it says goes out at once. */
static fk_err shell_quick(fk_ctx *ctx, fk_shell *shell, fk_hot *hot)
{
    fk_tray *tray = &shell->tray;
    fk_node *node = ctx->node;
    shell->hot = hot;
    tray->is_direct = true;
    tray->asker = ctx->msg.sender;
    tray->inner = (fk_out){ hot->type, hot->body.bytes };
    ctx->msg.type = hot->type;
    ctx->msg.data = hot->body.bytes;
    ctx->msg.len = hot->len;
    ctx->tray = tray;
    fk_err err = shell->breed->props.receive(ctx, fk__shell_state(shell), &ctx->msg);
    ctx->tray = NULL;
    if (FK_UNLIKELY(err != FK_OK)) return shell_failed(ctx, shell, hot, err);
    hot->seat = NULL;
    node->flags = 0; /* an ordinary message from here on: there is nothing to drop */
    if (FK_UNLIKELY(shell->wants_end)) fk_stop_self(ctx);
    return FK_OK;
}

static fk_err shell_call(fk_ctx *ctx, fk_shell *shell, fk_hot *hot)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_str answer = { NULL, 0 }, text;
    fk_msg inner;
    fk_out again;
    switch (shell_admit(ctx, shell, hot, &answer)) {
    case FK_ADMIT_RUN: break;
    case FK_ADMIT_ANSWER: shell_answer_again(ctx, shell, hot, answer); return FK_OK;
    case FK_ADMIT_DROP: hot_done(local, hot); return FK_OK;
    case FK_ADMIT_WAIT: shell_aside(ctx, shell, hot); return FK_OK;
    case FK_ADMIT_OVERLOADED:
        fk__hot_fail(local, hot, FK_E_OVERLOADED);
        hot_done(local, hot);
        return FK_OK;
    case FK_ADMIT_BACK:
    default: return FK_OK; /* dropped as it is, it goes back */
    }
    if ((hot->flags & FK_HOT_NODE) != 0) {
        fk__node_view(hot->body.far.node, local->system, &inner);
        again = fk__node_out(hot->body.far.node, &text);
    } else {
        inner = (fk_msg){ .type = hot->type, .data = hot->body.bytes, .len = hot->len };
        again = (fk_out){ hot->type, hot->body.bytes };
    }
    inner.sender = hot_asker(hot, local->system);
    return shell_turn(ctx, shell, &inner, again, hot);
}

/* A timer's message, an answer, whatever is sent to the actor itself. */
static fk_err shell_other(fk_ctx *ctx, fk_shell *shell, const fk_msg *msg)
{
    fk_str answer;
    fk_msg inner = *msg;
    switch (shell_admit(ctx, shell, NULL, &answer)) {
    case FK_ADMIT_RUN: return shell_turn(ctx, shell, &inner, (fk_out){ NULL, NULL }, NULL);
    case FK_ADMIT_WAIT: shell_aside(ctx, shell, NULL); return FK_OK;
    default: return fk_unhandled(ctx, msg);
    }
}

fk_err fk__shell_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_shell *shell = state;
    fk_err err = FK_OK;
    if (msg->type == &fk__type_store_job_done) {
        shell_stored(ctx, shell, ((const fk_store_job_done *)msg->data)->job);
        return FK_OK; /* and the job goes with its message */
    }
    if (msg->type == &fk__type_grain_order) {
        const fk_grain_order *order = msg->data;
        if (order->version != 0)
            shell->activation.version = order->version;
        else
            shell_end(ctx, shell);
        return FK_OK;
    }
    if (FK_LIKELY(msg->type == &fk__type_hot)) {
        fk_hot *hot = (fk_hot *)(void *)ctx->node->bytes;
        if (shell_is_quick(shell, hot) &&
            fk__lease_holds(shell->seat->cluster, &fk__ctx_worker(ctx)->local)) {
            return shell_quick(ctx, shell, hot);
        }
        err = shell_call(ctx, shell, hot);
    } else {
        err = shell_other(ctx, shell, msg);
    }
    if (FK_LIKELY(!shell->activation.is_durable) || err != FK_OK) return err;
    if (shell->batch_left > 0 && !shell_is_busy(shell)) shell->batch_left--;
    shell_settle(ctx, shell);
    return FK_OK;
}

void fk__shell_stop(fk_ctx *ctx, void *state)
{
    fk_shell *shell = state;
    fk_seat *seat = shell->seat;
    fk_cluster *cluster = seat->cluster;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (shell->is_begun && shell->breed->props.stop != NULL) {
        shell->breed->props.stop(ctx, fk__shell_state(shell));
    }
    fk__tray_discard(local, &shell->tray);
    batch_end(ctx, shell, BATCH_GIVEN_BACK, FK_OK);
    fk__shell_destroy(local, shell);
    uintptr_t first = fk__word_load(&cluster->gone, FK_RELAXED);
    do {
        seat->gone = (fk_seat *)first;
        /* Release pairs with the steward's swap: it sees what is written of the seat. */
    } while (!fk__word_cas(&cluster->gone, &first, (uintptr_t)seat, FK_RELEASE));
    if (first == 0) (void)fk__steward_tell(cluster, FK_TASK_LOOK, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/tray.h"

#include "core/send.h"

fk_err fk__tray_put(fk_local *local, fk_tray *tray, fk_ref to, fk_node *node)
{
    fk_outgoing *outgoing =
        fk__cache_alloc(&local->cache, sizeof(fk_outgoing), FK_SITE("message kept back"));
    if (outgoing == NULL) {
        fk_err err = tray->err = local->cache.err;
        fk__dead_node(local, FK_REASON_NO_MEMORY, to, node);
        fk__node_drop_contents(&local->cache, node);
        fk__node_free(&local->cache, node);
        return err;
    }
    *outgoing = (fk_outgoing){ NULL, to, node };
    *tray->last = outgoing;
    tray->last = &outgoing->next;
    return FK_OK;
}

fk_err fk__tray_send(fk_ctx *ctx, fk_ref to, fk_ref sender, fk_out msg)
{
    fk_tray *tray = ctx->tray;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (FK_LIKELY(tray->is_direct)) return fk__send(local, to, sender, msg, NULL);
    bool is_answer = fk_ref_equal(to, tray->asker) && !fk_ref_is_none(to) && tray->answer == NULL;
    if (!is_answer) tray->has_sent = true;
    fk_node *node = fk__node_create(&local->cache, msg);
    if (node == NULL) {
        fk_err err = tray->err = local->cache.err;
        fk__dead_out(local, err == FK_E_INVALID ? FK_REASON_BAD_TYPE : FK_REASON_NO_MEMORY, to,
                     sender, msg);
        return err;
    }
    node->sender = fk__sender_pack(sender.slot, sender.generation);
    FK_TRY(fk__tray_put(local, tray, to, node));
    if (is_answer) tray->answer = node;
    return FK_OK;
}

fk_err fk__tray_tell(fk_ctx *ctx, fk_ref to, fk_out msg)
{
    return fk__tray_send(ctx, to, fk__cell_ref(ctx->cell), msg);
}

fk_err fk__tray_forward(fk_ctx *ctx, fk_ref to)
{
    fk_tray *tray = ctx->tray;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (tray->inner.type == NULL) return FK_E_STATE;
    if (!fk__out_can_double(tray->inner)) return FK_E_UNSUPPORTED;
    fk_node *node = fk__node_create(&local->cache, tray->inner);
    if (node == NULL) return tray->err = local->cache.err;
    fk__out_double(tray->inner);
    tray->has_sent = true;
    node->sender = fk__sender_pack(tray->asker.slot, tray->asker.generation);
    return tray->is_direct ? fk__send_node(local, to, node) : fk__tray_put(local, tray, to, node);
}

static fk_outgoing *tray_take(fk_tray *tray)
{
    fk_outgoing *all = tray->first;
    tray->first = NULL;
    tray->last = &tray->first;
    tray->answer = NULL;
    tray->has_sent = false;
    return all;
}

void fk__tray_release(fk_local *local, fk_tray *tray)
{
    fk_outgoing *next;
    for (fk_outgoing *o = tray_take(tray); o != NULL; o = next) {
        next = o->next;
        (void)fk__send_node(local, o->to, o->node); /* what does not get there is a dead letter */
        fk__cache_free(&local->cache, o, sizeof(*o));
    }
}

void fk__tray_discard(fk_local *local, fk_tray *tray)
{
    fk_outgoing *next;
    for (fk_outgoing *o = tray_take(tray); o != NULL; o = next) {
        next = o->next;
        fk__node_drop_contents(&local->cache, o->node);
        fk__node_free(&local->cache, o->node);
        fk__cache_free(&local->cache, o, sizeof(*o));
    }
}

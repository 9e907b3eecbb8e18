/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/outbox.h"

#include "core/send.h"

fk_err fk__outbox_put(fk_local *local, fk_outbox *outbox, fk_ref to, fk_node *node)
{
    fk_outgoing *outgoing =
        fk__cache_alloc(&local->cache, sizeof(fk_outgoing), FK_SITE("message kept back"));
    if (outgoing == NULL) {
        fk_err err = local->cache.err;
        fk__dead_node(local, FK_REASON_NO_MEMORY, to, node);
        fk__node_drop_contents(&local->cache, node);
        fk__node_free(&local->cache, node);
        return err;
    }
    *outgoing = (fk_outgoing){ NULL, to, node };
    *outbox->last = outgoing;
    outbox->last = &outgoing->next;
    return FK_OK;
}

fk_err fk__outbox_send(fk_ctx *ctx, fk_ref to, fk_ref sender, fk_out msg)
{
    fk_outbox *outbox = ctx->outbox;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    bool is_answer = fk_ref_equal(to, outbox->asker) && !fk_ref_is_none(to) &&
                     outbox->answer == NULL && !outbox->is_direct;
    if (!is_answer) outbox->has_sent = true;
    if (outbox->is_direct) return fk__send(local, to, sender, msg, NULL);
    fk_node *node = fk__node_create(&local->cache, msg);
    if (node == NULL) {
        fk_err err = local->cache.err;
        fk__dead_out(local, err == FK_E_INVALID ? FK_REASON_BAD_TYPE : FK_REASON_NO_MEMORY, to,
                     sender, msg);
        return err;
    }
    node->sender = fk__sender_pack(sender.slot, sender.generation);
    FK_TRY(fk__outbox_put(local, outbox, to, node));
    if (is_answer) outbox->answer = node;
    return FK_OK;
}

fk_err fk__outbox_tell(fk_ctx *ctx, fk_ref to, fk_out msg)
{
    return fk__outbox_send(ctx, to, fk__cell_ref(ctx->cell), msg);
}

fk_err fk__outbox_forward(fk_ctx *ctx, fk_ref to)
{
    fk_outbox *outbox = ctx->outbox;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (outbox->inner.type == NULL) return FK_E_STATE;
    if (!fk__out_can_double(outbox->inner)) return FK_E_UNSUPPORTED;
    fk_node *node = fk__node_create(&local->cache, outbox->inner);
    if (node == NULL) return local->cache.err;
    fk__out_double(outbox->inner);
    outbox->has_sent = true;
    node->sender = fk__sender_pack(outbox->asker.slot, outbox->asker.generation);
    return outbox->is_direct ? fk__send_node(local, to, node)
                             : fk__outbox_put(local, outbox, to, node);
}

static fk_outgoing *outbox_take(fk_outbox *outbox)
{
    fk_outgoing *all = outbox->first;
    outbox->first = NULL;
    outbox->last = &outbox->first;
    outbox->answer = NULL;
    outbox->has_sent = false;
    return all;
}

void fk__outbox_release(fk_local *local, fk_outbox *outbox)
{
    fk_outgoing *next;
    for (fk_outgoing *o = outbox_take(outbox); o != NULL; o = next) {
        next = o->next;
        (void)fk__send_node(local, o->to, o->node); /* what does not get there is a dead letter */
        fk__cache_free(&local->cache, o, sizeof(*o));
    }
}

void fk__outbox_discard(fk_local *local, fk_outbox *outbox)
{
    fk_outgoing *next;
    for (fk_outgoing *o = outbox_take(outbox); o != NULL; o = next) {
        next = o->next;
        fk__node_drop_contents(&local->cache, o->node);
        fk__node_free(&local->cache, o->node);
        fk__cache_free(&local->cache, o, sizeof(*o));
    }
}

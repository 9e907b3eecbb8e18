/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/send.h"

#include "core/box.h"
#include "core/mailbox.h"
#include "core/turn.h"

static void discard(fk_local *local, fk_reason reason, fk_ref to, fk_node *node)
{
    fk__dead_node(local, reason, to, node);
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
}

/* Why a ref that does not resolve does not. */
static fk_reason reason_of(const fk_system *sys, fk_ref to)
{
    if (to.system != sys->id || (to.generation & 1) == 0) return FK_REASON_NO_RECEIVER;
    const fk_cell *cell = fk__slots_at(&sys->slots, to.slot);
    if (cell == NULL) return FK_REASON_NO_RECEIVER;
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    return (int32_t)(generation - to.generation) > 0 ? FK_REASON_STOPPED : FK_REASON_NO_RECEIVER;
}

static fk_reason reason_of_error(fk_err err)
{
    return err == FK_E_FULL ? FK_REASON_FULL : FK_REASON_NO_MEMORY;
}

/* FK_E_FULL with *wait leaves the node to the caller. */
static fk_err push_bounded(fk_local *local, fk_cell *cell, fk_ref to, fk_node *node, bool *wait)
{
    bool was_empty, blocks;
    fk_err err = fk__box_push(local, cell, node, &was_empty, &blocks);
    if (err == FK_E_FULL && blocks && wait != NULL) {
        *wait = true;
        return err;
    }
    if (err == FK_E_DEAD) {
        discard(local, FK_REASON_STOPPED, to, node);
        return FK_OK;
    }
    if (err == FK_E_FULL) discard(local, FK_REASON_FULL, to, node);
    if (was_empty) {
        fk__mailbox_mark(cell, FK_SYSTEM_MAIL);
        if (fk__mailbox_kick(cell)) fk__schedule(local, cell);
    }
    return err;
}

static bool is_bounded(const fk_cell *cell, const fk_node *node)
{
    if (FK_LIKELY((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_BOUNDED) == 0)) return false;
    return (node->flags & FK_NODE_POISON) == 0; /* it must get through */
}

fk_err fk__send_node(fk_local *local, fk_ref to, fk_node *node)
{
    fk_cell *cell = fk__cell_resolve(local->sys, to);
    if (FK_UNLIKELY(cell == NULL)) {
        discard(local, reason_of(local->sys, to), to, node);
        return FK_OK;
    }
    node->generation = to.generation;
    if (FK_UNLIKELY(is_bounded(cell, node))) return push_bounded(local, cell, to, node, NULL);
    if (fk__mailbox_push(cell, &node->link)) fk__schedule(local, cell);
    return FK_OK;
}

fk_err fk__send(fk_local *local, fk_ref to, fk_ref sender, fk_out msg, bool *wait)
{
    fk_cell *cell = fk__cell_resolve(local->sys, to);
    if (FK_UNLIKELY(cell == NULL)) {
        fk__dead_out(local, reason_of(local->sys, to), to, sender, msg);
        return FK_OK;
    }
    fk_node *node = fk__node_create(&local->cache, msg, sender);
    if (FK_UNLIKELY(node == NULL)) {
        fk_err err = local->cache.err;
        fk__dead_out(local, reason_of_error(err), to, sender, msg);
        return err;
    }
    node->generation = to.generation;
    if (FK_UNLIKELY(is_bounded(cell, node))) {
        fk_err err = push_bounded(local, cell, to, node, wait);
        /* The bytes were copied; the caller tries again with the original. */
        if (err == FK_E_FULL && wait != NULL && *wait) fk__node_unmake(&local->cache, node, msg);
        return err;
    }
    if (fk__mailbox_push(cell, &node->link)) fk__schedule(local, cell);
    return FK_OK;
}

/* ---- the public functions ---------------------------------------------------------------- */

fk_err fk_send_from(fk_system *sys, fk_ref to, fk_ref sender, fk_out msg)
{
    for (;;) {
        bool wait = false;
        fk_local *local = fk__local_enter(sys);
        bool can_wait = sys->mem.port.wait != NULL;
        fk_err err = fk__send(local, to, sender, msg, can_wait ? &wait : NULL);
        fk__local_leave(local);
        if (!wait) return err;
        fk_cell *cell = fk__cell_resolve(sys, to);
        if (cell != NULL) fk__box_wait(sys, cell, to.generation);
    }
}

fk_err fk_send(fk_system *sys, fk_ref to, fk_out msg)
{
    return fk_send_from(sys, to, FK_REF_NONE, msg);
}

fk_err fk_tell(fk_ctx *ctx, fk_ref to, fk_out msg)
{
    return fk__send(&ctx->worker->local, to, fk__cell_ref(ctx->cell), msg, NULL);
}

fk_err fk_reply(fk_ctx *ctx, fk_out msg)
{
    fk_ref to = ctx->msg != NULL ? ctx->msg->sender : FK_REF_NONE;
    return fk_tell(ctx, to, msg);
}

fk_err fk_stop(fk_system *sys, fk_ref ref)
{
    fk_local *local = fk__local_enter(sys);
    fk_cell *cell = fk__cell_resolve(sys, ref);
    if (cell != NULL) fk__cell_ask_stop(local, cell, ref.generation);
    fk__local_leave(local);
    return cell != NULL ? FK_OK : FK_E_DEAD;
}

fk_err fk_poison(fk_system *sys, fk_ref ref)
{
    if (!fk_is_alive(sys, ref)) return FK_E_DEAD;
    return fk_send(sys, ref, (fk_out){ &fk_type_poison, "" });
}

bool fk_is_alive(fk_system *sys, fk_ref ref)
{
    return fk__cell_resolve(sys, ref) != NULL;
}

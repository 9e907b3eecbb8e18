/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What an actor may do while it handles a message. */

#include "base/safeguard.h"
#include "core/box.h"
#include "core/children.h"
#include "core/extras.h"
#include "core/send.h"
#include "core/system.h"
#include "core/tray.h"
#include "core/watch.h"

enum { STASH_DEFAULT = 1000 };

fk_ref fk_self(const fk_ctx *ctx)
{
    return fk__cell_ref(ctx->cell);
}

fk_ref fk_parent(const fk_ctx *ctx)
{
    const fk_cell *parent = fk__cell_parent(ctx->cell);
    return parent != NULL ? fk__cell_ref(parent) : FK_REF_NONE;
}

fk_system *fk_system_of(const fk_ctx *ctx)
{
    return fk__ctx_worker(ctx)->sys;
}

fk_time fk_now(const fk_ctx *ctx)
{
    return fk__system_now(fk__ctx_worker(ctx)->sys);
}

size_t fk_child_count(const fk_ctx *ctx)
{
    fk_cell *cell = ctx->cell;
    fk_mem *mem = &cell->sys->mem;
    fk__mem_lock(mem, &cell->children_lock);
    size_t count = cell->children_count;
    fk__mem_unlock(mem, &cell->children_lock);
    return count;
}

fk_err fk_child(fk_ctx *ctx, fk_str name, fk_ref *out)
{
    fk_cell *cell = ctx->cell;
    uint64_t uid;
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    if (out == NULL || name.len == 0) return FK_E_INVALID;
    return fk__children_find(cell, generation, name, out, &uid) ? FK_OK : FK_E_NOT_FOUND;
}

size_t fk_children(fk_ctx *ctx, fk_ref *out, size_t max)
{
    return fk__children_list(ctx->cell, out, max);
}

void fk_stop_self(fk_ctx *ctx)
{
    ctx->cell->flags |= FK_CELL_LEAVING;
}

fk_err fk_become(fk_ctx *ctx, fk_receive_fn receive)
{
    if (receive == NULL) return FK_E_INVALID;
    if (ctx->tray != NULL) return FK_E_UNSUPPORTED;
    return fk__behaviour_push(&fk__ctx_worker(ctx)->local, ctx->cell, receive);
}

fk_err fk_unbecome(fk_ctx *ctx)
{
    if (ctx->tray != NULL) return FK_E_UNSUPPORTED;
    return fk__behaviour_pop(ctx->cell);
}

fk_err fk_stash(fk_ctx *ctx)
{
    fk_cell *cell = ctx->cell;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_node *node = ctx->node;
    uint32_t max = cell->props->stash_max != 0 ? cell->props->stash_max : STASH_DEFAULT;
    if (ctx->tray != NULL) return FK_E_UNSUPPORTED;
    /* Nothing is being handled, or it is elsewhere already. */
    if (node == NULL || (node->flags & (FK_NODE_LIVE | FK_NODE_MOVED)) != 0) return FK_E_STATE;
    if ((node->flags & FK_NODE_TIMER) == 0) return fk__stash_push(local, cell, node, max);

    fk_node *message;
    FK_TRY(fk__timer_copy(fk__ctx_worker(ctx), &message));
    fk_err err = fk__stash_push(local, cell, message, max);
    if (err == FK_OK) {
        node->flags |= FK_NODE_MOVED;
    } else {
        fk__node_drop_contents(&local->cache, message);
        fk__node_free(&local->cache, message);
    }
    return err;
}

fk_err fk_unstash_all(fk_ctx *ctx)
{
    return fk__stash_restore(&fk__ctx_worker(ctx)->local, ctx->cell);
}

fk_err fk_forward(fk_ctx *ctx, fk_ref to)
{
    fk_node *node = ctx->node;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (ctx->tray != NULL) return fk__tray_forward(ctx, to);
    if (node == NULL || (node->flags & (FK_NODE_LIVE | FK_NODE_MOVED)) != 0) return FK_E_STATE;
    if (node->type == &fk__type_notice) return FK_E_STATE; /* it is for its watcher alone */
    if ((node->flags & FK_NODE_TIMER) != 0) {
        fk_node *message;
        FK_TRY(fk__timer_copy(fk__ctx_worker(ctx), &message));
        node->flags |= FK_NODE_MOVED;
        return fk__send_node(local, to, message);
    }
    fk_node *copy = fk__node_copy(&local->cache, node);
    if (copy == NULL) {
        fk_err err = local->cache.err;
        fk__dead_node(local, FK_REASON_NO_MEMORY, to, node);
        fk__node_drop_contents(&local->cache, node);
        return err;
    }
    if (FK_SAFEGUARD(MOVED)) node->flags |= FK_NODE_MOVED;
    return fk__send_node(local, to, copy);
}

fk_err fk_unhandled(fk_ctx *ctx, const fk_msg *msg)
{
    if (msg->type == &fk_type_fk_terminated) {
        return fk_fail(ctx, FK_E_DEATH_PACT, "an actor that it watched has stopped");
    }
    fk__dead_letter(&fk__ctx_worker(ctx)->local, FK_REASON_UNHANDLED, fk_self(ctx), msg);
    return FK_OK;
}

fk_err fk_fail(fk_ctx *ctx, fk_err err, const char *detail)
{
    size_t len = detail != NULL ? fk_str_of(detail).len : 0;
    if (len > sizeof(ctx->detail) - 1) len = sizeof(ctx->detail) - 1;
    if (len != 0) memcpy(ctx->detail, detail, len);
    ctx->detail[len] = '\0';
    if (ctx->node != NULL) ctx->node->flags |= FK_NODE_NOTED; /* so that conclude() forgets it */
    return err != FK_OK ? err : FK_E_FAILED;
}

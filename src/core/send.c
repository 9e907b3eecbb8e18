/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/send.h"

#include "core/box.h"
#include "core/guardian.h"
#include "core/mailbox.h"
#include "core/promise.h"
#include "core/terminate.h"
#include "core/tray.h"
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
    if ((int32_t)(generation - to.generation) <= 0) return FK_REASON_NO_RECEIVER;
    return fk__promise_was(cell, to.generation) ? FK_REASON_LATE_REPLY : FK_REASON_STOPPED;
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

static bool has_gate(const fk_cell *cell)
{
    const uint32_t gates = FK_GATE_BOUNDED | FK_GATE_REMOTE | FK_GATE_PROMISE;
    return (fk__half_load(&cell->gate, FK_RELAXED) & gates) != 0;
}

/* Into a mailbox that is no plain queue. */
static fk_err push_gated(fk_local *local, fk_cell *cell, fk_ref to, fk_node *node, bool *wait)
{
    const fk_remote_ops *remote = &local->sys->remote;
    uint32_t gate = fk__half_load(&cell->gate, FK_RELAXED);
    if ((gate & FK_GATE_PROMISE) != 0) {
        if (!fk__promise_receive(local, cell, to, node)) {
            discard(local, reason_of(local->sys, to), to, node);
        }
        return FK_OK;
    }
    if ((gate & FK_GATE_REMOTE) == 0) return push_bounded(local, cell, to, node, wait);
    if (remote->send == NULL) { /* with the system: from a callback about the last letters */
        discard(local, FK_REASON_SYSTEM_STOPPING, to, node);
        return FK_OK;
    }
    return remote->send(remote->ctx, local, cell->state, to, node);
}

fk_err fk__send_node(fk_local *local, fk_ref to, fk_node *node)
{
    fk_cell *cell = fk__local_resolve(local, to);
    if (FK_UNLIKELY(cell == NULL)) {
        discard(local, reason_of(local->sys, to), to, node);
        return FK_OK;
    }
    node->generation = to.generation;
    if (FK_UNLIKELY(has_gate(cell))) return push_gated(local, cell, to, node, NULL);
    if (fk__mailbox_push(cell, &node->link)) fk__schedule(local, cell);
    return FK_OK;
}

/* The way of every message: finds the cell, makes the node, pushes. */
fk_err fk__send(fk_local *local, fk_ref to, fk_ref sender, fk_out msg, bool *wait)
{
    fk_cell *cell = fk__local_resolve(local, to);
    if (cell == NULL) {
        fk__dead_out(local, reason_of(local->sys, to), to, sender, msg);
        return FK_OK;
    }
    fk_node *node = fk__node_create_plain(&local->cache, msg, FK_INLINE_MAX);
    if (FK_UNLIKELY(node == NULL)) node = fk__node_create(&local->cache, msg);
    if (FK_UNLIKELY(node == NULL)) {
        fk_err err = local->cache.err;
        fk__dead_out(local, err == FK_E_INVALID ? FK_REASON_BAD_TYPE : FK_REASON_NO_MEMORY, to,
                     sender, msg);
        return err;
    }
    node->sender = fk__sender_pack(sender.slot, sender.generation);
    node->generation = to.generation;
    if (has_gate(cell)) {
        fk_err err = push_gated(local, cell, to, node, wait);
        /* The bytes were copied; the caller tries again with the original. */
        if (err == FK_E_FULL && wait != NULL && *wait) fk__node_unmake(&local->cache, node, msg);
        return err;
    }
    if (fk__mailbox_push(cell, &node->link)) fk__schedule(local, cell);
    return FK_OK;
}

/* ---- the public functions ---------------------------------------------------------------- */

/* An actor must not block its worker, whichever function it sends by. */
static bool may_wait(const fk_system *sys)
{
    if (sys->mem.port.wait == NULL) return false;
    return sys->host.is_inside == NULL || !sys->host.is_inside(sys->host.ctx);
}

static fk_err send_outside(fk_system *sys, fk_ref to, fk_ref sender, fk_out msg, bool is_waiting)
{
    /* A node has no room for the sender's system: one of another system would become whoever has
     * its slot here. */
    if (FK_UNLIKELY(sender.system != sys->id)) sender = FK_REF_NONE;
    for (;;) {
        bool wait = false;
        bool can_wait = may_wait(sys);
        fk_local *local = fk__local_enter(sys);
        local->is_waiting = is_waiting;
        fk_err err = fk__send(local, to, sender, msg, can_wait ? &wait : NULL);
        local->is_waiting = false;
        fk__local_leave(local);
        if (!wait) return err;
        fk_cell *cell = fk__cell_resolve(sys, to);
        if (cell != NULL) fk__box_wait(sys, cell, to.generation);
    }
}

fk_err fk_send_from(fk_system *sys, fk_ref to, fk_ref sender, fk_out msg)
{
    return send_outside(sys, to, sender, msg, false);
}

fk_err fk__send_question(fk_system *sys, fk_ref to, fk_ref question, fk_out msg)
{
    return send_outside(sys, to, question, msg, true);
}

fk_err fk_send(fk_system *sys, fk_ref to, fk_out msg)
{
    return fk_send_from(sys, to, FK_REF_NONE, msg);
}

/* The ref comes in pieces: as a struct it would be written to the stack on the short way, too. */
static FK_COLD fk_err tell_any(fk_ctx *ctx, uint32_t slot, uint32_t generation, uint32_t system,
                               fk_out msg)
{
    fk_ref to = { slot, generation, system };
    return fk__send(&fk__ctx_worker(ctx)->local, to, fk__cell_ref(ctx->cell), msg, NULL);
}

/* fk__send() cut down to what nearly every message needs: a live receiver with an ordinary mailbox,
 * a plain struct of at most `most` bytes, a block at hand. */
static FK_HOT fk_err tell_plain(fk_ctx *ctx, fk_cell *cell, uint32_t generation, fk_out msg,
                                uint32_t most)
{
    fk_worker *worker = fk__ctx_worker(ctx);
    fk_node *node = fk__node_create_plain(&worker->local.cache, msg, most);
    if (FK_UNLIKELY(node == NULL)) {
        return tell_any(ctx, cell->slot, generation, worker->local.system, msg);
    }
    const fk_cell *self = ctx->cell;
    node->sender = fk__sender_pack(self->slot, fk__half_load(&self->generation, FK_RELAXED));
    node->generation = generation;
    if (!fk__mailbox_push(cell, &node->link)) return FK_OK;
    if (FK_LIKELY(worker->is_alone)) return fk__schedule_alone(worker, cell);
    return fk__schedule(&worker->local, cell);
}

static FK_COLD fk_err tell_wide(fk_ctx *ctx, fk_cell *cell, uint32_t generation, fk_out msg)
{
    return tell_plain(ctx, cell, generation, msg, FK_INLINE_MAX);
}

/* The message did not get there, and whoever sent it could not have known. */
static bool is_receivers_trouble(fk_err err)
{
    switch (err) {
    case FK_E_FULL:
    case FK_E_DEAD:
    case FK_E_UNRESOLVED:
    case FK_E_QUARANTINED: return true;
    default: return false;
    }
}

/* An asker that is dead, or does not read, must not be able to make whoever answers it fail: it is a
 * dead letter already, and that is enough. Only receivers that tell() leaves to this one refuse. */
static FK_COLD fk_err reply_any(fk_ctx *ctx, uint32_t slot, uint32_t generation, uint32_t system,
                                fk_out msg)
{
    fk_err err = tell_any(ctx, slot, generation, system, msg);
    return is_receivers_trouble(err) ? FK_OK : err;
}

typedef fk_err tell_any_fn(fk_ctx *ctx, uint32_t slot, uint32_t generation, uint32_t system,
                           fk_out msg);

/* Of the smallest messages all is decided here, without a call. any: for all but ordinary mailboxes. */
static FK_HOT fk_err tell(fk_ctx *ctx, fk_ref to, fk_out msg, tell_any_fn *any)
{
    if (FK_UNLIKELY(ctx->tray != NULL)) return fk__tray_tell(ctx, to, msg);
    fk_cell *cell = fk__local_resolve(&fk__ctx_worker(ctx)->local, to);
    if (FK_UNLIKELY(cell == NULL) || FK_UNLIKELY(fk__half_load(&cell->gate, FK_RELAXED) != 0)) {
        return any(ctx, to.slot, to.generation, to.system, msg);
    }
    if (FK_UNLIKELY(msg.type->size - 1 >= 8)) return tell_wide(ctx, cell, to.generation, msg);
    return tell_plain(ctx, cell, to.generation, msg, 8);
}

fk_err fk_tell(fk_ctx *ctx, fk_ref to, fk_out msg)
{
    return tell(ctx, to, msg, tell_any);
}

fk_err fk_reply(fk_ctx *ctx, fk_out msg)
{
    if (FK_UNLIKELY(ctx->node == NULL)) return tell_any(ctx, 0, 0, 0, msg); /* in a hook */
    return tell(ctx, ctx->msg.sender, msg, reply_any);
}

/* Asked to stop, a guardian takes everything with it, in order. */
static fk_err stop_guardian(fk_system *sys, fk_local *local, const fk_cell *cell)
{
    if (cell == sys->top.temp || cell == sys->top.dead_letters || fk__is_shared(cell)) {
        return FK_E_RESERVED_NAME;
    }
    fk__terminate_begin(sys, local, "a guardian was stopped");
    return FK_OK;
}

fk_err fk_stop(fk_system *sys, fk_ref ref)
{
    fk_local *local = fk__local_enter(sys);
    fk_cell *cell = fk__cell_resolve(sys, ref);
    fk_err err = cell != NULL ? FK_OK : FK_E_DEAD;
    if (cell != NULL && (fk__is_top(sys, cell) || fk__is_shared(cell)))
        err = stop_guardian(sys, local, cell);
    else if (cell != NULL && fk__cell_is_promise(cell))
        fk__promise_end(local, cell, ref.generation, FK_E_KILLED, NULL);
    else if (cell != NULL)
        fk__cell_ask_stop(local, cell, ref.generation);
    fk__local_leave(local);
    return err;
}

fk_err fk_system_tell(fk_system *sys, fk_out msg)
{
    return fk_send(sys, fk_guardian(sys, FK_GUARDIAN_USER), msg);
}

fk_err fk_poison(fk_system *sys, fk_ref ref)
{
    if (!fk_is_alive(sys, ref)) return FK_E_DEAD;
    return fk_send(sys, ref, (fk_out){ &fk_type_poison, "" });
}

fk_err fk_kill(fk_system *sys, fk_ref ref)
{
    if (!fk_is_alive(sys, ref)) return FK_E_DEAD;
    return fk_send(sys, ref, (fk_out){ &fk_type_kill, "" });
}

bool fk_is_alive(fk_system *sys, fk_ref ref)
{
    return fk__cell_resolve(sys, ref) != NULL;
}

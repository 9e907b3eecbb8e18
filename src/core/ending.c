/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How an actor ends. Stopping goes down the tree by marks and comes up by signals, both embedded
 * in the cells, so nothing here needs memory and nothing recurses: a cell asked to stop asks its
 * children, waits for the last of them, runs its stop hook, turns what is left in its mailbox
 * into dead letters, and tells its parent, which then forgets its name and frees its slot.
 */

#include "core/turn.h"

#include "base/safeguard.h"
#include "core/answer.h"
#include "core/box.h"
#include "core/children.h"
#include "core/claim.h"
#include "core/event.h"
#include "core/extras.h"
#include "core/guardian.h"
#include "core/mailbox.h"
#include "core/supervise.h"
#include "core/terminate.h"
#include "core/timer.h"
#include "core/watch.h"

void fk__cell_ask_stop(fk_local *local, fk_cell *cell, uint32_t generation)
{
    /* The newest generation wins: somebody with a stale ref must not hide a stop of the actor
     * that lives here now. Release pairs with the acquire in handle_signals. */
    uint32_t asked = fk__half_load(&cell->stop_generation, FK_RELAXED);
    while ((int32_t)(generation - asked) > 0) {
        if (fk__half_cas(&cell->stop_generation, &asked, generation, FK_ACQ_REL)) break;
    }
    fk__mailbox_mark(cell, FK_SYSTEM_STOP);
    if (fk__mailbox_kick(cell)) fk__schedule(local, cell);
}

void fk__cell_stop(fk_worker *worker, fk_cell *cell)
{
    if (cell->life == FK_LIFE_REMOTE) fk__watch_remote_stop(worker, cell);
    if (cell->life < FK_LIFE_STARTING || cell->life > FK_LIFE_RESTARTING) return;
    /* Its stop hook has nothing to stop. */
    bool is_between = cell->life != FK_LIFE_RUNNING;
    if (is_between && FK_SAFEGUARD(STOP_HOOK_ONCE)) cell->flags |= FK_CELL_UNSTARTED;
    cell->life = FK_LIFE_STOPPING;
    if (cell == worker->sys->top.user) fk__terminate_user_stops(worker->sys, &worker->local);
    if (FK_SAFEGUARD(HALT)) cell->flags |= FK_CELL_HALTED;
    if (cell->extras != NULL) {
        fk__asks_end(worker, cell);
        fk__timers_fini(worker, cell);
    }
    /* Only under these do others spawn. */
    bool is_shared = fk__is_top(worker->sys, cell) || fk__is_shared(cell);
    if (is_shared)
        fk__children_close(cell);
    else
        cell->closed = 1;
    uint32_t cursor = 0;
    fk_cell *child;
    while ((child = fk__children_next(cell, &cursor)) != NULL) {
        uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
        /* Even: it has ended by itself and its signal is on the way; or, under the guardian, some
         * thread is making it at this moment and will find the stop when it lets go of the cell.
         * Should the slot get another tenant instead, that one is to stop as well: all are, for the
         * guardian's end is the system's. */
        if ((generation & 1) == 0 && is_shared) generation++;
        if ((generation & 1) != 0) fk__cell_ask_stop(&worker->local, child, generation);
    }
    fk__cell_try_end(worker, cell);
}

static void drain(fk_worker *worker, fk_cell *cell)
{
    fk_box *box = fk__word_ptr(&cell->box, FK_RELAXED);
    if (box != NULL) {
        fk_node *node = fk__box_close(&worker->local, box);
        while (node != NULL && FK_SAFEGUARD(DRAIN)) {
            fk_node *next = fk__word_ptr(&node->link.next, FK_RELAXED);
            fk__cell_dead_node(worker, cell, node);
            node = next;
        }
    }
    fk_link *link;
    while ((link = fk__mailbox_peek(cell)) != NULL) {
        fk__cell_advance(worker, cell, link);
        fk__cell_dead_node(worker, cell, FK_CONTAINER(link, fk_node, link));
    }
}

void fk__waiters_notify(fk_system *sys)
{
    const fk_port *port = &sys->mem.port;
    /* Seq_cst on both sides: a waiter counts itself, then looks at generation and gate; we changed
     * one of these, then look at the count. */
    if (fk__half_load(&sys->waiters, FK_SEQ_CST) == 0 || port->notify == NULL) return;
    fk__half_add(&sys->stops, 1, FK_SEQ_CST);
    port->notify(port->ctx, (uint32_t *)(void *)&sys->stops);
}

static void run_stop_hook(fk_worker *worker, fk_cell *cell)
{
    fk_ctx *ctx = &worker->ctx;
    if (cell->props->stop == NULL || (cell->flags & FK_CELL_UNSTARTED) != 0) return;
    ctx->cell = cell;
    ctx->node = NULL;
    cell->props->stop(ctx, cell->state);
    if (ctx->detail[0] == '\0') return;
    /* It cannot fail, but it can complain. */
    fk_failure failure = { fk__cell_ref(cell), FK_E_FAILED, NULL, ctx->detail, FK_PHASE_STOP };
    if (fk__event_wanted(worker->sys, FK_EVENT_FAILED)) {
        fk__event(worker->sys, &worker->local,
                  &(fk_event){ .kind = FK_EVENT_FAILED,
                               .actor = failure.actor,
                               .failure = &failure,
                               .err = FK_E_FAILED });
    }
    ctx->detail[0] = '\0';
}

static void free_state(fk_local *local, fk_cell *cell)
{
    if ((cell->flags & FK_CELL_OWNED) != 0) {
        fk__cache_free(&local->cache, cell->state, fk__state_size(cell->props));
    }
    cell->state = NULL;
}

bool fk__cell_try_end(fk_worker *worker, fk_cell *cell)
{
    fk_system *sys = worker->sys;
    fk_cell *parent = fk__cell_parent(cell);
    if (cell->life != FK_LIFE_STOPPING) return false;
    if (cell->children_count != 0 && FK_SAFEGUARD(CHILDREN_FIRST)) return false;
    run_stop_hook(worker, cell);
    fk__events_forget(sys, fk__cell_ref(cell)); /* it need not hear of its own end */
    fk__publish_life(&worker->local, FK_EVENT_STOPPED, fk__cell_ref(cell), FK_OK);
    if (parent == NULL) fk__terminate_over(sys, &worker->local);
    /* The parent may be reading about a failure, even one that is over. */
    bool has_wound = cell->extras != NULL && cell->extras->wound != NULL;
    if (has_wound || (cell->suspended & FK_HELD_FAILED) != 0) fk__cell_retract(cell);
    if (cell->extras != NULL) fk__extras_fini(worker, cell);
    fk_vigil *watchers = fk__watch_take(cell);
    if (!FK_SAFEGUARD(NAME_FREE)) {
        fk__watch_tell(&worker->local, watchers);
        watchers = NULL;
    }
    if (cell->children != NULL) fk__children_fini(&worker->local, cell);
    free_state(&worker->local, cell);
    cell->life = FK_LIFE_FREE;
    cell->flags = FK_CELL_HALTED;
    uint32_t gate = fk__half_load(&cell->gate, FK_RELAXED); /* only the owner changes it */
    /* Release: who sees ENDING sees the generation that it is about (registry.c). */
    fk__half_store(&cell->gate, parent != NULL ? FK_GATE_ENDING : 0, FK_RELEASE);
    /* From here on refs do not resolve; senders that are past that leave what we drain now or what
     * a later turn of the free cell will find. Release: whoever sees the new generation sees
     * ENDING, too. */
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    fk__half_swap(&cell->generation, generation + 1, FK_SEQ_CST);
    drain(worker, cell);
    fk__word_store(&cell->box, 0, FK_RELAXED);
    if (!fk__is_guardian(cell)) fk__stat_add(&worker->local.stats.stopped, 1);
    if ((gate & FK_GATE_PINNED) != 0) fk__worker_unpin(fk__word_ptr(&cell->pinned, FK_RELAXED));
    if (parent != NULL && fk__cell_report_end(cell)) {
        fk__mailbox_signal(parent, &cell->ended.link);
        if (fk__mailbox_kick(parent)) fk__schedule(&worker->local, parent);
    }
    if (cell == sys->top.user || cell == sys->top.system || cell == sys->top.root) {
        fk_ref ref = { cell->slot, generation, sys->id };
        fk__guardian_stopped(sys, &worker->local, ref);
    }
    if (parent == NULL) fk__waiters_notify(sys);
    /* After the parent: when it is told as a watcher, the name is free. */
    if (watchers != NULL) fk__watch_tell(&worker->local, watchers);
    return true;
}

void fk__cell_child_ended(fk_worker *worker, fk_cell *parent, fk_cell *child)
{
    FK_ASSERT(fk__cell_parent(child) == parent);
    fk_system *sys = worker->sys;
    if (!fk__claims_are_empty(sys)) {
        uint32_t generation = fk__half_load(&child->generation, FK_RELAXED) - 1; /* it had */
        fk__claim_died(sys, (fk_ref){ child->slot, generation, sys->id }, child->uid);
    }
    bool is_awaited = (fk__half_load(&child->ended.word, FK_RELAXED) & FK_WORD_AWAITED) != 0;
    if (is_awaited && parent->extras != NULL) parent->extras->awaited--;
    fk__child_forget(worker, parent, child);
    fk__children_remove(worker, parent, child);
    fk__waiters_notify(sys);
    if (!fk__is_guardian(child)) { /* those are kept: the system has pointers to them */
        fk__cell_put(&worker->local, child);
        fk__actor_uncount(sys);
    }
    fk__cell_try_restart(worker, parent);
    fk__cell_try_end(worker, parent);
}

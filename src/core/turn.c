/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A turn: signals, then messages until the queue is empty or the budget is used up. Signals are
 * looked at again before every message. The node being delivered is the head of the queue and
 * stays there until the next one is taken, so an ordinary message is freed by its successor.
 */

#include "core/turn.h"

#include "base/safeguard.h"
#include "core/box.h"
#include "core/extras.h"
#include "core/mailbox.h"

enum { MESSAGES_PER_CLOCK = 32 };

void fk__cell_advance(fk_worker *worker, fk_cell *cell, fk_link *next)
{
    fk_link *old = fk__mailbox_advance(cell, next);
    if (old == &cell->stub) return;
    fk_node *node = FK_CONTAINER(old, fk_node, link);
    if ((node->flags & FK_NODE_LIVE) == 0) fk__node_free(&worker->local.cache, node);
}

/* After a message has been handled or given up: its contents go, and its block too unless it is
 * the head or has been set aside. */
static void release(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    if ((node->flags & FK_NODE_LIVE) != 0) return;
    fk__node_drop_contents(&worker->local.cache, node);
    if (&node->link != cell->head) fk__node_free(&worker->local.cache, node);
}

void fk__cell_dead_node(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    node->flags &= (uint8_t)~FK_NODE_LIVE;
    if ((node->flags & (FK_NODE_TIMER | FK_NODE_POISON)) == 0) {
        fk_ref to = { cell->slot, node->generation, worker->sys->id };
        fk__dead_node(&worker->local, FK_REASON_STOPPED, to, node);
    }
    release(worker, cell, node);
}

/* ---- signals ----------------------------------------------------------------------------- */

static void handle_signals(fk_worker *worker, fk_cell *cell)
{
    uintptr_t marks;
    fk_link *link = fk__mailbox_take_signals(cell, &marks);
    while (link != NULL) {
        fk_signal *signal = FK_CONTAINER(link, fk_signal, link);
        link = fk__word_ptr(&link->next, FK_RELAXED);
        fk__cell_child_ended(worker, cell, signal->cell);
    }
    if ((marks & FK_SYSTEM_STOP) == 0) return;
    uint32_t asked = fk__half_load(&cell->stop_generation, FK_ACQUIRE);
    if (asked == fk__half_load(&cell->generation, FK_RELAXED) || !FK_SAFEGUARD(STOP_GENERATION)) {
        fk__cell_stop(worker, cell);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

/* The next message of this actor, or NULL. */
static fk_node *take_rare(fk_worker *worker, fk_cell *cell)
{
    fk_node *node = NULL;
    if ((cell->flags & FK_CELL_RARE) != 0) node = fk__extras_take(worker, cell);
    if (node == NULL && (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_BOUNDED) != 0) {
        node = fk__box_pop(fk__word_ptr(&cell->box, FK_RELAXED), worker->sys);
    }
    if (node != NULL) node->flags &= (uint8_t)~FK_NODE_LIVE;
    return node;
}

static fk_node *take(fk_worker *worker, fk_cell *cell)
{
    uint32_t gate = fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_BOUNDED;
    if (FK_UNLIKELY(((uint32_t)cell->flags & FK_CELL_RARE) + gate != 0)) {
        fk_node *node = take_rare(worker, cell);
        if (node != NULL) return node;
    }
    fk_link *link = fk__mailbox_peek(cell);
    if (link == NULL) return NULL;
    /* The node after it, while this one is being handled. */
    __builtin_prefetch(fk__word_ptr(&link->next, FK_RELAXED));
    fk__cell_advance(worker, cell, link);
    return FK_CONTAINER(link, fk_node, link);
}

static fk_err deliver(fk_worker *worker, fk_cell *cell, fk_node *node, const fk_msg *msg)
{
    fk_ctx *ctx = &worker->ctx;
    ctx->cell = cell;
    ctx->node = node;
    ctx->msg = msg;
    ctx->detail[0] = '\0';
    return cell->receive(ctx, cell->state, msg);
}

static fk_err deliver_timer(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    fk_msg msg;
    if (fk__timer_arrived(worker, cell, node, &msg) == NULL) {
        worker->ctx.msg = NULL;
        return FK_OK;
    }
    fk_err err = deliver(worker, cell, node, &msg);
    fk__timer_delivered(worker, cell, node);
    return err;
}

/* One message from start to end. */
static void handle(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    const fk_type *type = node->type; /* for the report; a stashed node may change hands */
    fk_err err;
    if (FK_LIKELY((node->flags & (FK_NODE_TIMER | FK_NODE_POISON | FK_NODE_PAYLOAD)) == 0)) {
        fk_msg msg = { type, node->bytes, node->len,
                       { node->sender_slot, node->sender_generation,
                         node->sender_generation != 0 ? worker->sys->id : 0 } };
        err = deliver(worker, cell, node, &msg);
    } else if ((node->flags & FK_NODE_TIMER) != 0) {
        err = deliver_timer(worker, cell, node);
    } else if ((node->flags & FK_NODE_POISON) != 0) {
        cell->flags |= FK_CELL_STOP_SELF;
        err = FK_OK;
    } else {
        fk_msg msg;
        fk__node_view(node, worker->sys->id, &msg);
        err = deliver(worker, cell, node, &msg);
    }
    if (FK_UNLIKELY(node->flags != 0 || &node->link != cell->head)) release(worker, cell, node);
    if (FK_UNLIKELY(cell->extras != NULL && type != &fk_type_receive_timeout)) {
        fk__timers_touch(worker, cell);
    }
    if (FK_UNLIKELY(err != FK_OK)) fk__cell_failed(worker, cell, type, err);
    else if (FK_UNLIKELY((cell->flags & FK_CELL_STOP_SELF) != 0)) fk__cell_stop(worker, cell);
}

/* ---- the turn ---------------------------------------------------------------------------- */

static void run_start_hook(fk_worker *worker, fk_cell *cell)
{
    fk_ctx *ctx = &worker->ctx;
    cell->life = FK_LIFE_RUNNING;
    if (cell->props->start == NULL) return;
    ctx->cell = cell;
    ctx->node = NULL;
    ctx->msg = NULL;
    ctx->detail[0] = '\0';
    fk_err err = cell->props->start(ctx, cell->state);
    if (err != FK_OK) fk__cell_failed(worker, cell, NULL, err);
    else if ((cell->flags & FK_CELL_STOP_SELF) != 0) fk__cell_stop(worker, cell);
}

/* The cell takes no user messages now: it sleeps on whatever is in its queue. */
static bool rest(fk_worker *worker, fk_cell *cell)
{
    if (cell->life == FK_LIFE_FREE) { /* no actor: late messages go */
        fk_link *link;
        while ((link = fk__mailbox_peek(cell)) != NULL) {
            fk__cell_advance(worker, cell, link);
            fk__cell_dead_node(worker, cell, FK_CONTAINER(link, fk_node, link));
        }
        return !fk__mailbox_idle(cell, (uintptr_t)cell->head);
    }
    uintptr_t tail = fk__word_load(&cell->tail, FK_ACQUIRE);
    return !fk__mailbox_idle(cell, tail & ~FK_TAIL_IDLE);
}

static bool slice_is_over(fk_worker *worker, fk_time *began)
{
    fk_time now = fk__system_now(worker->sys);
    if (*began == 0) *began = now;
    return now - *began > worker->sys->slice;
}

/* Counted once a turn; a turn that ends by stopping counts, too. */
static bool end_turn(fk_worker *worker, uint32_t done, bool ready)
{
    worker->messages += done;
    worker->budget -= done < worker->budget ? done : worker->budget;
    fk__stat_add(&worker->local.stats.processed, done);
    return ready;
}

bool fk__cell_turn(fk_worker *worker, fk_cell *cell)
{
    uint32_t budget = worker->budget;
    uint32_t done = 0;
    fk_time began = 0;
    if (cell->life == FK_LIFE_STARTING) run_start_hook(worker, cell);
    if (cell->life == FK_LIFE_RUNNING && cell->props->throughput != 0 &&
        cell->props->throughput < budget) {
        budget = cell->props->throughput;
    }
    for (;;) {
        if (FK_SAFEGUARD(SYSTEM_FIRST) || fk__mailbox_peek(cell) == NULL) {
            if (FK_UNLIKELY(fk__mailbox_has_signal(cell))) handle_signals(worker, cell);
        }
        if (FK_UNLIKELY(cell->life != FK_LIFE_RUNNING || cell->suspended != 0)) {
            return end_turn(worker, done, rest(worker, cell));
        }
        if (FK_UNLIKELY(done >= budget)) return end_turn(worker, done, true);
        fk_node *node = take(worker, cell);
        if (node == NULL) {
            bool idle = fk__mailbox_idle(cell, (uintptr_t)cell->head);
            return end_turn(worker, done, !idle);
        }
        uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
        if (FK_UNLIKELY(node->generation != generation) && FK_SAFEGUARD(STALE_CHECK)) {
            fk__cell_dead_node(worker, cell, node);
            continue;
        }
        handle(worker, cell, node);
        done++;
        if (FK_UNLIKELY(done % MESSAGES_PER_CLOCK == 0 && slice_is_over(worker, &began))) {
            budget = done;
        }
    }
}

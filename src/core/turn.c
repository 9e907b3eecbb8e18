/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A turn: signals, then messages until the queue is empty or the budget is used up. Signals are
 * looked at again before every message. The node being delivered is the head of the queue and
 * stays there until the next one is taken, so an ordinary message is freed by its successor.
 */

#include "core/turn.h"

#include "base/safeguard.h"
#include "core/answer.h"
#include "core/box.h"
#include "core/extras.h"
#include "core/guardian.h"
#include "core/mailbox.h"
#include "core/select.h"
#include "core/supervise.h"
#include "core/watch.h"

enum { MESSAGES_PER_CLOCK = 32, NODE_SPECIAL = FK_NODE_TIMER | FK_NODE_AUTO | FK_NODE_PAYLOAD };

/* What was the head is not needed any more. */
static FK_HOT void head_free(fk_worker *worker, const fk_cell *cell, fk_link *old)
{
    /* As a distance: as a pointer the compiler would keep the stub's address, on the stack. */
    if (FK_UNLIKELY((uintptr_t)old - (uintptr_t)cell == offsetof(fk_cell, stub))) return;
    fk_node *node = FK_CONTAINER(old, fk_node, link);
    if (FK_LIKELY((node->flags & FK_NODE_LIVE) == 0)) fk__node_free(&worker->local.cache, node);
}

void fk__cell_advance(fk_worker *worker, fk_cell *cell, fk_link *next)
{
    head_free(worker, cell, fk__mailbox_advance(cell, next));
}

/* After a message has been handled or given up: its contents go, and its block too unless it is
 * the head or has been set aside. */
static void node_release(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    if ((node->flags & FK_NODE_LIVE) != 0) return;
    fk__node_drop_contents(&worker->local.cache, node);
    if (&node->link != cell->head) fk__node_free(&worker->local.cache, node);
}

void fk__cell_dead_node(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    node->flags &= (uint8_t)~FK_NODE_LIVE;
    if ((node->flags & FK_NODE_TIMER) == 0) {
        fk_ref to = { cell->slot, node->generation, worker->sys->id };
        fk__dead_node(&worker->local, FK_REASON_STOPPED, to, node);
    }
    node_release(worker, cell, node);
}

/* ---- signals ----------------------------------------------------------------------------- */

static void handle_signals(fk_worker *worker, fk_cell *cell)
{
    uintptr_t marks;
    uint32_t kind;
    fk_signal *signal;
    fk_link *list = fk__mailbox_take_signals(cell, &marks);
    while ((signal = fk__signals_pop(&list, &kind)) != NULL) {
        if (kind == FK_SIGNAL_CHILD)
            fk__cell_child_signal(worker, cell, FK_CONTAINER(signal, fk_cell, ended));
        else
            fk__watch_signal(worker, cell, signal, kind);
    }
    if ((marks & FK_SYSTEM_ORDER) != 0) fk__cell_ordered(worker, cell);
    if ((marks & FK_SYSTEM_STOP) == 0) return;
    uint32_t asked = fk__half_load(&cell->stop_generation, FK_ACQUIRE);
    if (asked == fk__half_load(&cell->generation, FK_RELAXED) || !FK_SAFEGUARD(STOP_GENERATION)) {
        fk__cell_stop(worker, cell);
    }
}

/* ---- messages ---------------------------------------------------------------------------- */

/* The next message of a special cell, or NULL. link: the next in the queue, if any. */
static fk_node *take(fk_worker *worker, fk_cell *cell, fk_link *link)
{
    fk_node *node = NULL;
    if ((cell->flags & FK_CELL_FRONT) != 0) node = fk__extras_take(worker, cell);
    /* The queue of a boxed cell has only timers, which must not wait for a box that never empties. */
    if (node == NULL && link == NULL && (cell->flags & FK_CELL_BOXED) != 0) {
        node = fk__box_pop(fk__word_ptr(&cell->box, FK_RELAXED), worker->sys);
    }
    if (node != NULL) {
        node->flags &= (uint8_t)~FK_NODE_LIVE;
        return node;
    }
    if (link == NULL) return NULL;
    fk__cell_advance(worker, cell, link);
    return FK_CONTAINER(link, fk_node, link);
}

/* ctx->msg is filled. */
static FK_HOT fk_err deliver(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    fk_ctx *ctx = &worker->ctx;
    ctx->cell = cell;
    ctx->node = node;
    /* All actors are called from here, and processors guess the target from the branches before it,
     * which are the same for every message. One that tells neighbours apart makes two actors that
     * answer each other a third faster (docs/performance.md). */
    if ((cell->slot & 1) != 0) FK_KEEP_BRANCH();
    return cell->receive(ctx, cell->state, &ctx->msg);
}

static fk_err deliver_timer(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    if (!fk__timer_arrived(worker, cell, node, &worker->ctx.msg)) {
        worker->unseen++;
        return FK_OK;
    }
    if (node->type == &fk__type_backoff) {
        worker->unseen++;
        fk__backoff_over(worker, cell, &worker->ctx.msg);
        return FK_OK;
    }
    fk_err err = deliver(worker, cell, node);
    fk__timer_delivered(worker);
    return err;
}

static FK_HOT fk_err deliver_plain(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    worker->ctx.msg = (fk_msg){ node->type, node->bytes, node->len,
                                fk__sender_ref(node->sender, worker->local.system) };
    return deliver(worker, cell, node);
}

/* /deadLetters is nobody. Under Pekko's rules, what waits in /temp for an answer has no name to give:
 * there the question itself would be taken for the answer. */
static void identify(fk_worker *worker, const fk_cell *cell, const fk_node *node)
{
    const fk_system *sys = worker->sys;
    bool is_temp = fk__cell_parent(cell) == sys->top.temp;
    if (is_temp && sys->paths.rules == FK_RULES_PEKKO) return;
    fk_msg msg;
    fk__node_view(node, sys->id, &msg);
    fk_ref self = cell != sys->top.dead_letters ? fk__cell_ref(cell) : FK_REF_NONE;
    fk__identify_answer(&worker->local, &msg, self);
}

/* Somebody whom the actor watches has ended. */
static fk_err deliver_notice(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    fk_node *from;
    if (!fk__watch_arrived(worker, cell, node, &from, &worker->ctx.msg)) {
        worker->unseen++;
        return FK_OK;
    }
    fk_err err = deliver(worker, cell, from);
    if (from != node) node_release(worker, cell, from);
    return err;
}

/* /temp, /deadLetters and what others have children under are nobody's to end. */
static bool may_be_killed(const fk_system *sys, const fk_cell *cell)
{
    return cell != sys->top.temp && cell != sys->top.dead_letters && !fk__is_shared(cell);
}

/* What the runtime handles itself. */
static fk_err deliver_auto(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    bool is_answer = node->type == &fk_type_fk_answer;
    if (node->type == &fk__type_notice) return deliver_notice(worker, cell, node);
    if (is_answer && fk__answer_arrived(worker, node)) return deliver_plain(worker, cell, node);
    worker->unseen++;
    if (is_answer) return FK_OK;
    if (node->type == &fk_type_kill) return may_be_killed(worker->sys, cell) ? FK_E_KILLED : FK_OK;
    if (node->type == &fk_type_identify)
        identify(worker, cell, node);
    else if (!fk__is_top(worker->sys, cell) && !fk__is_shared(cell))
        cell->flags |= FK_CELL_LEAVING;
    else
        fk_stop(worker->sys, fk__cell_ref(cell)); /* in order, if at all */
    return FK_OK;
}

static fk_err deliver_any(fk_worker *worker, fk_cell *cell, fk_node *node)
{
    if ((node->flags & NODE_SPECIAL) == 0) return deliver_plain(worker, cell, node);
    if ((node->flags & FK_NODE_TIMER) != 0) return deliver_timer(worker, cell, node);
    if ((node->flags & FK_NODE_AUTO) != 0) return deliver_auto(worker, cell, node);
    fk__node_view(node, worker->sys->id, &worker->ctx.msg);
    return deliver(worker, cell, node);
}

/* After receive, when anything is unusual. */
static void conclude(fk_worker *worker, fk_cell *cell, fk_node *node, fk_err err)
{
    const fk_type *type = node->type;
    node_release(worker, cell, node);
    bool is_clockwork = type == &fk_type_receive_timeout || type == &fk__type_backoff;
    if ((cell->flags & FK_CELL_TIMED) != 0 && !is_clockwork) fk__timers_touch(worker, cell);
    if (err != FK_OK)
        fk__cell_failed(worker, cell, type, err, FK_PHASE_MESSAGE);
    else if ((cell->flags & FK_CELL_LEAVING) != 0)
        fk__cell_stop(worker, cell);
    worker->ctx.detail[0] = '\0';
}

/* ---- the turn ---------------------------------------------------------------------------- */

/* The cell takes no user messages now: it sleeps on whatever is in its queue. */
static bool turn_rest(fk_worker *worker, fk_cell *cell)
{
    if (cell->life == FK_LIFE_FREE || cell->life == FK_LIFE_REMOTE) { /* no actor: late ones go */
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

/* After every 32nd message of a turn: the time runs from the first of these. */
static bool slice_is_over(fk_worker *worker, uint32_t done)
{
    fk_time now = fk__system_now(worker->sys);
    if (done == MESSAGES_PER_CLOCK) worker->turn_began = now;
    return now - worker->turn_began > worker->sys->slice;
}

static bool is_stale(const fk_cell *cell, const fk_node *node)
{
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED);
    return node->generation != generation && FK_SAFEGUARD(STALE_CHECK);
}

/* What a turn comes to. */
typedef struct turn_outcome {
    uint32_t done; /* messages handled */
    bool ready;    /* there may be more: the token is still held */
} turn_outcome;

static bool may_start(const fk_cell *cell)
{
    return cell->life == FK_LIFE_STARTING && (cell->suspended & FK_HELD) == 0;
}

/* The long way: everything that can be special. */
static FK_COLD turn_outcome turn_special(fk_worker *worker, fk_cell *cell, uint32_t budget,
                                         uint32_t done)
{
    if (may_start(cell)) fk__cell_start(worker, cell);
    if ((cell->flags & FK_CELL_LIMITED) != 0 && cell->props->throughput < budget) {
        budget = cell->props->throughput;
    }
    for (;;) {
        fk_link *link = fk__mailbox_peek(cell); /* before the signals: see turn_plain */
        if (FK_SAFEGUARD(SYSTEM_FIRST) || link == NULL) {
            if (fk__mailbox_has_signal(cell)) handle_signals(worker, cell);
        }
        if (may_start(cell)) { /* its parent was held until now */
            fk__cell_start(worker, cell);
            continue;
        }
        if ((cell->flags & FK_CELL_HALTED) != 0) {
            return (turn_outcome){ done, turn_rest(worker, cell) };
        }
        if (done >= budget) return (turn_outcome){ done, true };
        fk_node *node = take(worker, cell, link);
        if (node == NULL) {
            return (turn_outcome){ done, !fk__mailbox_idle(cell, (uintptr_t)cell->head) };
        }
        if (is_stale(cell, node)) {
            fk__cell_dead_node(worker, cell, node);
            continue;
        }
        fk_err err = deliver_any(worker, cell, node);
        conclude(worker, cell, node, err);
        if (++done % MESSAGES_PER_CLOCK == 0 && slice_is_over(worker, done)) {
            return (turn_outcome){ done, true };
        }
    }
}

/* The short way: a running actor with an unbounded mailbox and ordinary messages. Whatever else
 * turns up goes the long way from there on. */
static FK_HOT turn_outcome turn_plain(fk_worker *worker, fk_cell *cell, uint32_t budget)
{
    uint32_t done = 0;
    fk_link *head = cell->head; /* kept at hand: nothing should wait for it to be loaded again */
    for (;;) {
        /* First the queue, then the signals: whoever sees a message sees, by its release, the
         * signals that its sender pushed before it. */
        fk_link *link = fk__mailbox_after(head);
        if (FK_UNLIKELY(fk__mailbox_has_signal(cell))) break;
        if (FK_UNLIKELY(done >= budget)) return (turn_outcome){ done, true };
        if (link == NULL) {
            return (turn_outcome){ done, !fk__mailbox_idle(cell, (uintptr_t)head) };
        }
        /* The node after it, while this one is being handled. Not NULL: that would be a page walk. */
        const fk_link *after = fk__word_ptr(&link->next, FK_RELAXED);
        __builtin_prefetch(after != NULL ? after : link);
        cell->head = link;
        head_free(worker, cell, head);
        head = link;
        fk_node *node = FK_CONTAINER(link, fk_node, link);
        if (FK_UNLIKELY(is_stale(cell, node))) {
            fk__cell_dead_node(worker, cell, node);
            continue;
        }
        fk_err err = FK_LIKELY((node->flags & NODE_SPECIAL) == 0)
                         ? deliver_plain(worker, cell, node)
                         : deliver_any(worker, cell, node);
        done++;
        if (FK_UNLIKELY((unsigned)err + node->flags + (cell->flags & FK_CELL_SPECIAL) != 0)) {
            conclude(worker, cell, node, err);
            if ((cell->flags & FK_CELL_SPECIAL) != 0) break;
        }
        if (FK_UNLIKELY(done % MESSAGES_PER_CLOCK == 0) && slice_is_over(worker, done)) {
            return (turn_outcome){ done, true };
        }
    }
    return turn_special(worker, cell, budget, done);
}

FK_HOT bool fk__cell_turn(fk_worker *worker, fk_cell *cell)
{
    bool is_plain = (cell->flags & FK_CELL_SPECIAL) == 0 && FK_SAFEGUARD(SYSTEM_FIRST);
    uint32_t budget = (uint32_t)(worker->done_limit - worker->done);
    turn_outcome turn = FK_LIKELY(is_plain) ? turn_plain(worker, cell, budget)
                                            : turn_special(worker, cell, budget, 0);
    worker->done += turn.done;
    return turn.ready;
}

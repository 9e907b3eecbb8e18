/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/promise.h"

#include "base/safeguard.h"
#include "core/answer.h"
#include "core/children.h"
#include "core/mailbox.h"
#include "core/select.h"
#include "core/temp.h"
#include "core/turn.h"
#include "core/watch.h"

/* ---- making ------------------------------------------------------------------------------------ */

/* A cell for ever, and what belongs to it. */
static fk_err promise_create(fk_local *local, fk_promise **out)
{
    fk_cell *cell;
    fk_promise *promise = fk__cache_alloc(&local->cache, sizeof(*promise), FK_SITE("promise"));
    if (promise == NULL) return local->cache.err;
    fk_err err = fk__cell_get(local, &cell);
    if (err != FK_OK) {
        fk__cache_free(&local->cache, promise, sizeof(*promise));
        return err;
    }
    FK_ASSERT(cell->life == FK_LIFE_FREE);
    FK_ASSERT(fk__label_name(cell->label) == NULL);
    memset(promise, 0, sizeof(*promise));
    promise->cell = cell;
    promise->timer.kind = FK_TIMER_KIND_PROMISE;
    promise->timer.serial = fk__half_load(&cell->generation, FK_RELAXED) + 1;
    cell->state = promise;
    cell->ended.depth = 2; /* under /temp */
    fk__word_store(&cell->parent, 0, FK_RELAXED);
    fk__half_store(&cell->gate, FK_GATE_PROMISE, FK_RELEASE); /* pairs with fk__promise_was */
    *out = promise;
    return FK_OK;
}

/* What others gave back to this worker. */
static FK_COLD fk_promise *promises_fetch(fk_local *local)
{
    fk_worker *worker = local->worker;
    if (worker == NULL) return NULL;
    fk__mem_lock(&local->sys->mem, &worker->wheel_lock);
    fk_promise *all = worker->promises_back;
    worker->promises_back = NULL;
    fk__mem_unlock(&local->sys->mem, &worker->wheel_lock);
    return all;
}

/* One that was used before, with its run token, or NULL. */
static fk_promise *promise_reuse(fk_local *local)
{
    fk_promise *busy = NULL; /* those who ended them are still at work */
    fk_promise *promise;
    if (local->promises == NULL) local->promises = promises_fetch(local);
    while ((promise = local->promises) != NULL) {
        local->promises = promise->next;
        if (FK_UNLIKELY(fk__cell_is_used_up(promise->cell))) continue;
        if (FK_LIKELY(fk__cell_claim(promise->cell))) break;
        promise->next = busy;
        busy = promise;
    }
    while (FK_UNLIKELY(busy != NULL)) {
        fk_promise *next = busy->next;
        fk__promise_put(local, busy);
        busy = next;
    }
    return promise;
}

void fk__promise_put(fk_local *local, fk_promise *promise)
{
    promise->next = local->promises;
    local->promises = promise;
}

fk_err fk__promise_open(fk_local *local, fk_node *answer, fk_ref asked, fk_promise **out)
{
    fk_system *sys = local->sys;
    FK_TRY(fk__actor_count(sys));
    fk_promise *promise = promise_reuse(local);
    fk_err err = FK_LIKELY(promise != NULL) ? FK_OK : promise_create(local, &promise);
    if (FK_UNLIKELY(err != FK_OK)) {
        fk__actor_uncount(sys);
        return err;
    }
    fk_cell *cell = promise->cell;
    promise->answer = answer;
    promise->timer.owner = answer != NULL ? local->worker : NULL;
    /* Release: whoever finds these with a ref of the last question finds that it is over. */
    fk__half_store(&promise->asked_slot, asked.slot, FK_RELEASE);
    fk__half_store(&promise->asked_generation, asked.generation, FK_RELEASE);
    fk__half_store(&promise->answered, 0, FK_RELAXED);
    fk__half_store(&promise->is_armed, 0, FK_RELAXED);
    fk__half_store(&promise->is_named, 0, FK_RELAXED);
    cell->life = FK_LIFE_PROMISE;
    uint32_t generation = fk__half_load(&cell->generation, FK_RELAXED) + 1;
    FK_ASSERT((generation & 1) == 1);
    /* Release pairs with fk__cell_resolve. */
    fk__half_store(&cell->generation, generation, FK_RELEASE);
    *out = promise;
    return FK_OK;
}

void fk__promise_limit(fk_worker *home, fk_promise *promise, fk_time timeout)
{
    FK_ASSERT(promise->timer.owner == home);
    promise->timer.period = timeout;
    uintptr_t top = fk__word_load(&home->promises_new, FK_RELAXED);
    do {
        promise->next = (fk_promise *)top;
        /* Release: the promise, for another worker that looks at this wheel. Only the home pushes, and
         * all are taken at once, so the top cannot have been away and come back. */
    } while (!fk__word_cas(&home->promises_new, &top, (uintptr_t)promise, FK_ACQ_REL));
    if (home->wheel_next > home->now) home->wheel_next = home->now; /* look when you have a clock */
}

/* ---- ending ------------------------------------------------------------------------------------ */

/* The one thing that decides who ends a promise. Seq_cst: then we look at is_armed and is_named, and
 * who sets these looks at the generation afterwards. */
static bool promise_win(fk_cell *cell, uint32_t generation)
{
    uint32_t pending = generation;
    if (!FK_SAFEGUARD(PROMISE_FIRST)) {
        if (fk__half_load(&cell->generation, FK_ACQUIRE) != generation) return false;
        fk__half_store(&cell->generation, generation + 1, FK_SEQ_CST);
        return true;
    }
    return fk__half_cas(&cell->generation, &pending, generation + 1, FK_SEQ_CST);
}

void fk__promise_ended(fk_local *local, fk_cell *cell)
{
    if (FK_UNLIKELY(fk__mailbox_has_signal(cell))) fk__watch_promise(local, cell);
}

/* Its home need not hold it until its time is up. */
static FK_COLD void promise_disarm(fk_local *local, fk_promise *promise)
{
    fk_mem *mem = &local->sys->mem;
    fk_worker *home = promise->timer.owner;
    FK_ASSERT(home != NULL);
    fk__mem_lock(mem, &home->wheel_lock);
    if (fk__wheel_has(&promise->timer.entry) && FK_SAFEGUARD(PROMISE_DISARM)) {
        fk__wheel_remove(&home->wheel, &promise->timer.entry);
        promise->next = home->promises_back;
        home->promises_back = promise;
    }
    fk__mem_unlock(mem, &home->wheel_lock);
}

/* By the one who ended it. Afterwards it may be in use again. */
static void promise_close(fk_local *local, fk_promise *promise)
{
    fk_cell *cell = promise->cell;
    fk__promise_ended(local, cell);
    if (FK_UNLIKELY(fk__half_load(&promise->is_named, FK_SEQ_CST) != 0)) {
        fk__temp_forget(local, promise);
    }
    if (FK_UNLIKELY(fk__half_load(&promise->is_armed, FK_SEQ_CST) != 0)) {
        promise_disarm(local, promise);
    }
    fk__actor_uncount(local->sys);
    fk__waiters_notify(local->sys);
    cell->life = FK_LIFE_FREE;
    /* What came meanwhile is for the actor that had this cell before it became a promise, or a signal:
     * a turn of the free cell sees to it. */
    if (!fk__mailbox_idle(cell, (uintptr_t)cell->head)) fk__schedule(local, cell);
}

bool fk__promise_cancel(fk_local *local, fk_cell *cell, uint32_t generation, fk_node **answer)
{
    if (!promise_win(cell, generation)) return false;
    fk_promise *promise = cell->state;
    *answer = promise->answer;
    promise_close(local, promise);
    return true;
}

/* The thread that waits has the promise from here on; it stays a promise, so that a notice which comes
 * late wakes somebody for nothing, but never nobody. */
static void promise_tell_thread(fk_local *local, fk_promise *promise, fk_err err)
{
    const fk_port *port = &local->sys->mem.port;
    fk__half_store(&promise->answered, 1 + (uint32_t)err, FK_RELEASE); /* pairs with await's load */
    port->notify(port->ctx, (uint32_t *)(void *)&promise->answered);
}

bool fk__promise_end(fk_local *local, fk_cell *cell, uint32_t generation, fk_err err,
                     fk_node *reply)
{
    if (FK_UNLIKELY(!promise_win(cell, generation))) return false;
    fk_promise *promise = cell->state;
    fk_node *answer = promise->answer;
    bool is_threads = promise->timer.owner == NULL;
    if (is_threads) promise->answer = reply;
    promise_close(local, promise);
    if (is_threads)
        promise_tell_thread(local, promise, err);
    else
        fk__answer_deliver(local, answer, err, reply);
    return true;
}

/* Somebody's answer, passed on: what it says is the answer here, too. */
static bool promise_receive_answer(fk_local *local, fk_cell *cell, uint32_t generation,
                                   fk_node *node)
{
    fk_err err;
    fk_node *reply = fk__answer_open(node, &err);
    if (!fk__promise_end(local, cell, generation, err, reply)) return false;
    fk__node_free(&local->cache, node);
    return true;
}

bool fk__promise_receive(fk_local *local, fk_cell *cell, fk_ref to, fk_node *node)
{
    if (FK_UNLIKELY(fk__node_is_answer(node))) {
        return promise_receive_answer(local, cell, to.generation, node);
    }
    if (FK_LIKELY((node->flags & FK_NODE_AUTO) == 0)) {
        return fk__promise_end(local, cell, to.generation, FK_OK, node);
    }
    if (node->type == &fk_type_identify) {
        /* Pekko's have no name to give: there the question is taken for the answer. */
        if (local->sys->paths.rules == FK_RULES_PEKKO) {
            return fk__promise_end(local, cell, to.generation, FK_OK, node);
        }
        fk_msg msg;
        fk__node_view(node, local->system, &msg);
        fk__identify_answer(local, &msg, to);
    } else {
        fk__promise_end(local, cell, to.generation, FK_E_KILLED, NULL);
    }
    fk__node_free(&local->cache, node);
    return true;
}

/* ---- time -------------------------------------------------------------------------------------- */

void fk__promises_arm(fk_worker *worker, fk_worker *owner)
{
    /* Acquire pairs with the push. */
    fk_promise *promise = (fk_promise *)fk__word_swap(&owner->promises_new, 0, FK_ACQ_REL);
    while (promise != NULL) {
        fk_promise *next = promise->next;
        /* Seq_cst: we say that it is armed, then look whether it has ended; who ends it does so, then
         * looks whether it is armed, and waits for the lock that we hold. */
        fk__half_swap(&promise->is_armed, 1, FK_SEQ_CST);
        bool is_pending = (fk__half_load(&promise->cell->generation, FK_SEQ_CST) & 1) != 0;
        if (is_pending) {
            fk_time due = fk__time_add(worker->now, promise->timer.period);
            fk__wheel_add(&owner->wheel, &promise->timer.entry, due);
        } else if (owner == worker) {
            fk__promise_put(&worker->local, promise);
        } else {
            promise->next = owner->promises_back;
            owner->promises_back = promise;
        }
        promise = next;
    }
}

void fk__promises_expire(fk_worker *worker, fk_worker *owner, fk_promise *first)
{
    fk_mem *mem = &worker->sys->mem;
    while (first != NULL) {
        fk_promise *next = first->next;
        /* While it is ours it cannot be in use again: so the generation is the question's, or even. */
        uint32_t generation = fk__half_load(&first->cell->generation, FK_ACQUIRE);
        if ((generation & 1) != 0) {
            fk__promise_end(&worker->local, first->cell, generation, FK_E_TIMEOUT, NULL);
        }
        fk__mem_lock(mem, &owner->wheel_lock);
        first->next = owner->promises_back;
        owner->promises_back = first;
        fk__mem_unlock(mem, &owner->wheel_lock);
        first = next;
    }
}

void fk__promises_give_up(fk_local *local)
{
    fk_cell *cell;
    /* Seq_cst, here and below, pairs with fk__question_open. */
    if (fk__half_load(&local->sys->questions, FK_SEQ_CST) == 0) return;
    for (uint32_t slot = 0; (cell = fk__slots_at(&local->sys->slots, slot)) != NULL; slot++) {
        uint32_t generation = fk__half_load(&cell->generation, FK_SEQ_CST);
        if ((generation & 1) == 0 || !fk__cell_is_promise(cell)) continue;
        const fk_promise *promise = cell->state;
        if (promise->timer.owner != NULL) continue; /* an actor's, and there are none */
        fk__promise_end(local, cell, generation, FK_E_DEAD, NULL);
    }
}

void fk__promise_destroy(fk_local *local, fk_cell *cell)
{
    fk_promise *promise = cell->state;
    if (cell->life == FK_LIFE_PROMISE && promise->answer != NULL) {
        fk__node_drop_contents(&local->cache, promise->answer);
        fk__node_free(&local->cache, promise->answer);
    }
    fk__cache_free(&local->cache, promise, sizeof(*promise));
}

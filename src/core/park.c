/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sleeping without missing anything. Work for whoever is free is in dispatch->inject; how many
 * sleep is in dispatch->idle. A worker first counts itself as parked and then looks at inject; a
 * sender first pushes to inject and then looks at idle; all four accesses are seq_cst, so at
 * least one of them sees the other. Work in a worker's own queues needs no such care: its owner
 * is awake, or it would not be there.
 */

#include "core/system.h"

#include "base/safeguard.h"

/* Of all who want to end a worker's sleep, itself included, one does. */
static bool state_take(fk_worker *worker)
{
    /* Not a compare-exchange: one that fails is only a load, and C11 lets it pass the push. */
    return fk__half_swap(&worker->state, FK_WORKER_RUNNING, FK_SEQ_CST) == FK_WORKER_PARKED;
}

void fk__unpark(fk_worker *worker)
{
    if (fk__half_load(&worker->state, FK_ACQUIRE) != FK_WORKER_PARKED) return;
    /* Lost to a waker: it has counted us out already. */
    if (!state_take(worker)) return;
    if (!worker->is_pinned) fk__half_add(&worker->sys->dispatch.idle, (uint32_t)-1, FK_SEQ_CST);
}

bool fk__park(fk_worker *worker)
{
    fk_dispatch *dispatch = &worker->sys->dispatch;
    fk__stat_add(&worker->parks, 1);
    /* Counted before it can be woken: a waker counts us out, and the count must not go below zero
     * and borrow from the sentinel's bit. */
    if (!worker->is_pinned) {
        uint32_t before = fk__half_add(&dispatch->idle, 1, FK_SEQ_CST);
        if (worker->is_sentinel && (before & FK_IDLE_PARKED) + 1 == dispatch->workers) {
            /* Nobody is left to watch. From here on whoever makes work wakes us. */
            fk__half_and(&dispatch->idle, ~FK_IDLE_SENTINEL, FK_SEQ_CST);
            worker->is_sentinel = false;
        }
    }
    fk__half_swap(&worker->state, FK_WORKER_PARKED, FK_SEQ_CST);
    bool work = fk__word_load(&worker->inbox, FK_SEQ_CST) != 0;
    work = work || (!worker->is_pinned && fk__word_load(&dispatch->inject, FK_SEQ_CST) != 0);
    work = FK_SAFEGUARD(PARK_RECHECK) && work;
    work = work || fk__half_load(&dispatch->shutdown, FK_SEQ_CST) != 0;
    if (work) fk__unpark(worker);
    return !work;
}

void fk__wake(fk_worker *worker)
{
    if (!state_take(worker)) return; /* awake: it looks before it sleeps */
    if (!worker->is_pinned) fk__half_add(&worker->sys->dispatch.idle, (uint32_t)-1, FK_SEQ_CST);
    fk__system_wake(worker->sys, worker->id);
}

bool fk__wake_one(fk_system *sys)
{
    fk_dispatch *dispatch = &sys->dispatch;
    uint32_t start = fk__half_load(&dispatch->wake_hint, FK_RELAXED);
    for (uint32_t i = 0; i < dispatch->workers; i++) {
        uint32_t id = (start + i) % dispatch->workers;
        fk_worker *worker = dispatch->worker[id];
        /* Seq_cst: who is counted but not yet parked will look at inject after it is. */
        if (fk__half_load(&worker->state, FK_SEQ_CST) != FK_WORKER_PARKED) continue;
        if (!state_take(worker)) continue;
        fk__half_add(&dispatch->idle, (uint32_t)-1, FK_SEQ_CST);
        fk__half_store(&dispatch->wake_hint, id, FK_RELAXED);
        fk__system_wake(sys, id);
        return true;
    }
    return false;
}

void fk__wake_for_inject(fk_system *sys)
{
    uint32_t idle = fk__half_load(&sys->dispatch.idle, FK_SEQ_CST);
    uint32_t parked = idle & FK_IDLE_PARKED;
    /* With somebody awake, it will look at inject within a turn; and if its turn is long, the
     * sentinel will. */
    bool watched = parked < sys->dispatch.workers && (idle & FK_IDLE_SENTINEL) != 0;
    if (parked != 0 && !watched) fk__wake_one(sys);
}

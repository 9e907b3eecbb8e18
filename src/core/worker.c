/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workers: made with the system, or for an actor that wants a thread of its own. What they do is in
 * dispatch.c. */

#include "core/registry.h"
#include "core/system.h"

fk_err fk__worker_create(fk_system *sys, uint32_t id, bool pinned, fk_worker **out)
{
    void *memory;
    size_t size = sizeof(fk_worker) + FK_CACHE_LINE;
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("worker"), &memory));
    uintptr_t aligned = ((uintptr_t)memory + FK_CACHE_LINE) & ~(uintptr_t)(FK_CACHE_LINE - 1);
    fk_worker *worker = (fk_worker *)aligned;
    memset(worker, 0, sizeof(*worker));
    ((unsigned char *)worker)[-1] = (unsigned char)(aligned - (uintptr_t)memory);
    worker->block_size = size;
    fk__local_init(&worker->local, sys, worker);
    worker->sys = sys;
    worker->id = id;
    worker->is_pinned = pinned;
    worker->source = pinned ? &worker->inbox : &sys->dispatch.inject;
    worker->is_alone = !pinned && sys->dispatch.workers == 1;
    worker->now = worker->window = fk__system_now(sys);
    const fk_port *port = &sys->mem.port;
    if (port->cycles != NULL) worker->local.cycles = port->cycles(port->ctx) - FK_CYCLES_NEAR;
    worker->wheel_next = FK_NEVER;
    fk__wheel_init(&worker->wheel, worker->now);
    fk_err err = fk__obituaries_create(worker);
    if (err != FK_OK) {
        fk__worker_destroy(worker);
        return err;
    }
    *out = worker;
    return FK_OK;
}

void fk__worker_destroy(fk_worker *worker)
{
    if (worker == NULL) return;
    fk_mem *mem = &worker->sys->mem;
    size_t size = worker->block_size;
    fk__ready_fini(worker);
    fk__obituaries_destroy(worker);
    fk__cache_fini(&worker->local.cache);
    unsigned char shift = ((unsigned char *)worker)[-1];
    fk__mem_free(mem, (unsigned char *)worker - shift, size);
}

fk_err fk__dispatch_init(fk_system *sys, uint32_t workers)
{
    fk_dispatch *dispatch = &sys->dispatch;
    void *table;
    FK_TRY(fk__mem_alloc(&sys->mem, workers * sizeof(fk_worker *), FK_SITE("workers"), &table));
    dispatch->worker = table;
    memset(table, 0, workers * sizeof(fk_worker *));
    dispatch->workers = workers;
    fk__half_init(&dispatch->calm_for, FK_CALM_TICKS_MIN);
    for (uint32_t i = 0; i < workers; i++) {
        FK_TRY(fk__worker_create(sys, i, false, &dispatch->worker[i]));
    }
    return FK_OK;
}

void fk__dispatch_fini(fk_system *sys)
{
    fk_dispatch *dispatch = &sys->dispatch;
    while (dispatch->pinned != NULL) {
        fk_worker *worker = dispatch->pinned;
        dispatch->pinned = worker->pinned_next;
        fk__worker_destroy(worker);
    }
    if (dispatch->worker == NULL) return;
    for (uint32_t i = 0; i < dispatch->workers; i++) fk__worker_destroy(dispatch->worker[i]);
    fk__mem_free(&sys->mem, dispatch->worker, dispatch->workers * sizeof(fk_worker *));
}

fk_err fk__worker_pin(fk_system *sys, fk_worker **out)
{
    fk_dispatch *dispatch = &sys->dispatch;
    if (sys->host.pin == NULL) return FK_E_UNSUPPORTED;
    fk__mem_lock(&sys->mem, &sys->lock);
    fk_worker *worker = dispatch->pinned_free;
    if (worker != NULL) dispatch->pinned_free = worker->pinned_free_next;
    uint32_t id = dispatch->workers + dispatch->pinned_count;
    if (worker == NULL && id < FK_WORKERS_MAX) dispatch->pinned_count++;
    fk__mem_unlock(&sys->mem, &sys->lock);
    if (worker == NULL) {
        if (id >= FK_WORKERS_MAX) return FK_E_LIMIT;
        fk_err err = fk__worker_create(sys, id, true, &worker);
        if (err == FK_OK) {
            err = sys->host.pin(sys->host.ctx, worker);
            if (err != FK_OK) fk__worker_destroy(worker);
        }
        if (err != FK_OK) {
            fk__mem_lock(&sys->mem, &sys->lock);
            /* Nobody else took a number meanwhile: it can be used again. */
            if (id + 1 == dispatch->workers + dispatch->pinned_count) dispatch->pinned_count--;
            fk__mem_unlock(&sys->mem, &sys->lock);
            return err;
        }
        fk__mem_lock(&sys->mem, &sys->lock);
        worker->pinned_next = dispatch->pinned;
        dispatch->pinned = worker;
        fk__mem_unlock(&sys->mem, &sys->lock);
    }
    *out = worker;
    return FK_OK;
}

void fk__worker_unpin(fk_worker *worker)
{
    fk_system *sys = worker->sys;
    fk__mem_lock(&sys->mem, &sys->lock);
    worker->pinned_free_next = sys->dispatch.pinned_free;
    sys->dispatch.pinned_free = worker;
    fk__mem_unlock(&sys->mem, &sys->lock);
}

void fk__dispatch_shutdown(fk_system *sys)
{
    fk_dispatch *dispatch = &sys->dispatch;
    fk__half_store(&dispatch->shutdown, 1, FK_SEQ_CST);
    for (uint32_t i = 0; i < dispatch->workers; i++) {
        fk__system_wake(sys, i);
    }
    for (fk_worker *w = dispatch->pinned; w != NULL; w = w->pinned_next) {
        fk__system_wake(sys, w->id);
    }
}

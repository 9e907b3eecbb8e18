/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Outside threads are first-class senders, but the core knows no thread-local storage. A call
 * from outside borrows one of a fixed set of locals: one compare-exchange in, one store out. The
 * port's thread() spreads the threads; a taken one is passed over for the next.
 */

#include "core/system.h"

#include "core/claim.h"

enum { UIDS_AT_ONCE = 1024 };

void fk__local_init(fk_local *local, fk_system *sys, fk_worker *worker)
{
    memset(local, 0, sizeof(*local));
    fk__cache_init(&local->cache, &sys->pool);
    local->sys = sys;
    local->system = sys->id;
    local->worker = worker;
}

fk_local *fk__local_enter(fk_system *sys)
{
    fk_port *port = &sys->mem.port;
    uint32_t start = port->thread != NULL ? port->thread(port->ctx) : 0;
    for (uint32_t i = start;; i++) {
        fk_local *local = &sys->outside[i % FK_OUTSIDE_LOCALS];
        uint32_t free = 0;
        /* Relaxed look first: a failed exchange would bounce the line. */
        if (fk__half_load(&local->busy, FK_RELAXED) == 0 &&
            fk__half_cas(&local->busy, &free, 1, FK_ACQ_REL)) { /* pairs with leave's release */
            return local;
        }
        if (i - start >= FK_OUTSIDE_LOCALS) fk__cpu_relax();
    }
}

void fk__local_leave(fk_local *local)
{
    fk__half_store(&local->busy, 0, FK_RELEASE);
}

void fk__local_pause(fk_local *local)
{
    if (local->worker == NULL) fk__local_leave(local);
}

void fk__local_resume(fk_local *local)
{
    if (local->worker != NULL) return;
    uint32_t free = 0;
    while (!fk__half_cas(&local->busy, &free, 1, FK_ACQ_REL)) { /* pairs with leave's release */
        free = 0;
        fk__cpu_relax();
    }
}

static FK_COLD void uids_fetch(fk_local *local)
{
    fk_system *sys = local->sys;
    fk__mem_lock(&sys->mem, &sys->lock);
    local->uid_next = sys->uid_next;
    sys->uid_next += UIDS_AT_ONCE;
    fk__mem_unlock(&sys->mem, &sys->lock);
    local->uid_end = local->uid_next + UIDS_AT_ONCE;
}

uint64_t fk__local_uid(fk_local *local)
{
    for (;;) {
        if (local->uid_next == local->uid_end) uids_fetch(local);
        uint64_t uid = fk__uid_of(local->sys, local->uid_next++);
        /* Those that somebody brought along from elsewhere are passed over. */
        if (FK_LIKELY(uid != 0 && !fk__claims_has(local->sys, uid))) return uid;
    }
}

uint64_t fk__local_uid_fresh(fk_local *local)
{
    local->uid_next = local->uid_end;
    return fk__local_uid(local);
}

fk_cell *fk__local_resolve_anew(fk_local *local, fk_ref ref)
{
    const fk_slots *slots = &local->sys->slots;
    local->directory = fk__word_ptr(&slots->directory, FK_ACQUIRE); /* as fk__slots_at */
    local->chunks = local->directory->len;
    return fk__cell_resolve(local->sys, ref);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the workers remember of the actors that they saw end. */

#include "core/children.h"
#include "core/registry.h"

enum { OBITUARIES = sizeof(((fk_obituaries *)0)->entry) / sizeof(fk_obituary) };

fk_err fk__obituaries_create(fk_worker *worker)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&worker->sys->mem, sizeof(fk_obituaries), FK_SITE("obituaries"), &memory));
    memset(memory, 0, sizeof(fk_obituaries));
    worker->obituaries = memory;
    return FK_OK;
}

void fk__obituaries_destroy(fk_worker *worker)
{
    fk_obituaries *all = worker->obituaries;
    if (all == NULL) return;
    for (uint32_t i = 0; i < OBITUARIES; i++)
        fk__name_free(&worker->local, fk__label_name(all->entry[i].label));
    fk__mem_free(&worker->sys->mem, all, sizeof(*all));
    worker->obituaries = NULL;
}

fk_name *fk__obituary_add(fk_worker *worker, const fk_cell *parent, const fk_cell *child)
{
    fk_obituaries *all = worker->obituaries;
    fk_mem *mem = &worker->sys->mem;
    fk__mem_lock(mem, &all->lock);
    fk_obituary *entry = &all->entry[all->next];
    all->next = (all->next + 1) % OBITUARIES;
    if (entry->generation != 0) all->forgotten = entry->died;
    fk_name *old = fk__label_name(entry->label);
    *entry = (fk_obituary){
        .slot = child->slot,
        .generation = fk__half_load(&child->generation, FK_RELAXED) - 1, /* it had */
        .parent_slot = parent->slot,
        .parent_generation = fk__half_load(&parent->generation, FK_RELAXED),
        .uid = child->uid,
        .label = child->label,
        .died = worker->now,
    };
    fk__mem_unlock(mem, &all->lock);
    return old;
}

static bool search_worker(fk_worker *worker, fk_obituary_search *search)
{
    fk_obituaries *all = worker->obituaries;
    fk_mem *mem = &worker->sys->mem;
    bool found = false;
    fk__mem_lock(mem, &all->lock);
    if (all->forgotten > search->forgotten) search->forgotten = all->forgotten;
    for (uint32_t i = 0; i < OBITUARIES && !found; i++) {
        const fk_obituary *entry = &all->entry[i];
        found = entry->generation != 0 && search->take(search->arg, entry);
    }
    fk__mem_unlock(mem, &all->lock);
    return found;
}

bool fk__obituaries_search(fk_system *sys, fk_obituary_search *search)
{
    fk_dispatch *dispatch = &sys->dispatch;
    bool found = false;
    for (uint32_t i = 0; i < dispatch->workers && !found; i++) {
        found = search_worker(dispatch->worker[i], search);
    }
    if (found) return true;
    fk__mem_lock(&sys->mem, &sys->lock);
    for (fk_worker *w = dispatch->pinned; w != NULL && !found; w = w->pinned_next) {
        found = search_worker(w, search);
    }
    fk__mem_unlock(&sys->mem, &sys->lock);
    return found;
}

typedef struct fk_uid_death {
    uint64_t uid;
    fk_time died;
    uint32_t slot, generation;
} fk_uid_death;

static bool take_death(void *arg, const fk_obituary *entry)
{
    fk_uid_death *death = arg;
    if (entry->uid != death->uid) return false;
    death->died = entry->died;
    death->slot = entry->slot;
    death->generation = entry->generation;
    return true;
}

bool fk__obituary_of_uid(fk_system *sys, uint64_t uid, fk_ref *out, fk_time *died)
{
    fk_uid_death death = { .uid = uid };
    fk_obituary_search search = { take_death, &death, 0 };
    bool found = fk__obituaries_search(sys, &search);
    *died = found ? death.died : search.forgotten;
    *out = (fk_ref){ death.slot, death.generation, sys->id };
    return found;
}

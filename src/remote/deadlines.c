/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/deadlines.h"

static void deadline_place(fk_deadlines *d, fk_deadline *entry, uint32_t index)
{
    d->heap[index] = entry;
    entry->index = index;
}

/* The entry belongs at index or above it. */
static void deadline_rise(fk_deadlines *d, fk_deadline *entry, uint32_t index)
{
    while (index > 0 && d->heap[(index - 1) / 2]->at > entry->at) {
        deadline_place(d, d->heap[(index - 1) / 2], index);
        index = (index - 1) / 2;
    }
    deadline_place(d, entry, index);
}

/* The entry belongs at index or below it. */
static void deadline_sink(fk_deadlines *d, fk_deadline *entry, uint32_t index)
{
    for (uint32_t child; (child = 2 * index + 1) < d->count; index = child) {
        if (child + 1 < d->count && d->heap[child + 1]->at < d->heap[child]->at) child++;
        if (d->heap[child]->at >= entry->at) break;
        deadline_place(d, d->heap[child], index);
    }
    deadline_place(d, entry, index);
}

static void deadline_remove(fk_deadlines *d, fk_deadline *entry)
{
    uint32_t index = entry->index;
    FK_ASSERT(index < d->count);
    FK_ASSERT(d->heap[index] == entry);
    fk_deadline *last = d->heap[--d->count];
    *entry = FK_DEADLINE_INIT;
    if (last == entry) return;
    deadline_rise(d, last, index);
    deadline_sink(d, last, last->index);
}

void fk__deadline_set(fk_deadlines *deadlines, fk_deadline *entry, fk_time at)
{
    if (entry->at == at) return;
    if (at == FK_NEVER) {
        deadline_remove(deadlines, entry);
        return;
    }
    uint32_t index = entry->index;
    if (index == FK_DEADLINE_OUT) {
        FK_ASSERT(deadlines->count < deadlines->capacity);
        index = deadlines->count++;
    }
    entry->at = at;
    deadline_rise(deadlines, entry, index);
    deadline_sink(deadlines, entry, entry->index);
}

void fk__deadlines_check(const fk_deadlines *deadlines)
{
    FK_ASSERT(deadlines->count <= deadlines->capacity);
    for (uint32_t i = 0; i < deadlines->count; i++) {
        FK_ASSERT(deadlines->heap[i]->index == i);
        FK_ASSERT(deadlines->heap[i]->at != FK_NEVER);
        FK_ASSERT(i == 0 || deadlines->heap[(i - 1) / 2]->at <= deadlines->heap[i]->at);
    }
}

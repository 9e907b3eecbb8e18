/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of grains; looking is in the header, because every resolve does it. */

#include "cluster/placement.h"

enum { GRAINS_MIN = 64 };

bool fk__placement_unbegun(const fk_placement *p, fk_grain_id *out)
{
    for (uint32_t i = 0; i < p->grains.capacity; i++) {
        const fk_grain *grain = p->grains.at[i].grain;
        if (grain == NULL || grain->phase != FK_PHASE_STOPPING || grain->pid != 0) continue;
        *out = grain->id;
        return true;
    }
    return false;
}

static void grains_put(fk_grains *grains, fk_grains_entry entry)
{
    FK_ASSERT(grains->count < grains->capacity);
    uint32_t mask = grains->capacity - 1;
    uint32_t i = fk__grains_home(grains, entry.hi);
    while (grains->at[i].grain != NULL) i = (i + 1) & mask;
    grains->at[i] = entry;
    grains->count++;
}

fk_err fk__grains_reserve(fk_grains *grains, fk_mem *mem)
{
    if (grains->count < grains->capacity / 2 + grains->capacity / 8) return FK_OK;
    fk_grains old = *grains;
    uint32_t capacity = old.capacity == 0 ? GRAINS_MIN : old.capacity * 2;
    void *memory;
    if (capacity < old.capacity) return FK_E_LIMIT;
    size_t size = capacity * sizeof(*grains->at);
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("table of grains"), &memory));
    memset(memory, 0, size);
    *grains = (fk_grains){ .at = memory, .capacity = capacity };
    for (uint32_t i = 0; i < old.capacity; i++) {
        if (old.at[i].grain != NULL) grains_put(grains, old.at[i]);
    }
    fk__grains_fini(&old, mem);
    return FK_OK;
}

void fk__grains_put(fk_grains *grains, fk_grain *grain)
{
    grains_put(grains, (fk_grains_entry){ grain->id.hi, grain });
}

void fk__grains_remove(fk_grains *grains, const fk_grain *grain)
{
    uint32_t mask = grains->capacity - 1;
    uint32_t i = fk__grains_home(grains, grain->id.hi);
    while (grains->at[i].grain != grain) {
        FK_ASSERT(grains->at[i].grain != NULL);
        i = (i + 1) & mask;
    }
    /* Whatever would not be found any more across the gap moves back. */
    for (uint32_t j = (i + 1) & mask; grains->at[j].grain != NULL; j = (j + 1) & mask) {
        uint32_t home = fk__grains_home(grains, grains->at[j].hi);
        if (((j - home) & mask) >= ((j - i) & mask)) {
            grains->at[i] = grains->at[j];
            i = j;
        }
    }
    grains->at[i] = (fk_grains_entry){ 0, NULL };
    grains->count--;
}

void fk__grains_fini(fk_grains *grains, fk_mem *mem)
{
    fk__mem_free(mem, grains->at, grains->capacity * sizeof(*grains->at));
    *grains = (fk_grains){ NULL, 0, 0 };
}

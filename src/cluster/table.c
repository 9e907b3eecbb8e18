/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All memory is there before anything changes, so an update happens or does not. */

#include "cluster/table.h"

enum { SLOT_TABLE_CANDIDATES_MIN = 8 };

typedef struct slot_table_arrays {
    uint32_t *owner;
    uint64_t *score;
} slot_table_arrays;

static void slot_table_arrays_free(fk_mem *mem, slot_table_arrays arrays, uint32_t slots)
{
    fk__mem_free(mem, arrays.score, slots * sizeof *arrays.score);
    fk__mem_free(mem, arrays.owner, slots * sizeof *arrays.owner);
}

static fk_err slot_table_arrays_alloc(fk_mem *mem, uint32_t slots, slot_table_arrays *out)
{
    void *owner = NULL, *score = NULL;
    FK_TRY(fk__mem_alloc(mem, slots * sizeof *out->owner, FK_SITE("slot owners"), &owner));
    fk_err err = fk__mem_alloc(mem, slots * sizeof *out->score, FK_SITE("slot scores"), &score);
    if (err != FK_OK) {
        fk__mem_free(mem, owner, slots * sizeof *out->owner);
        return err;
    }
    *out = (slot_table_arrays){ owner, score };
    return FK_OK;
}

/* ---- what is different ------------------------------------------------------------------------ */

typedef enum slot_table_change {
    SLOT_TABLE_SAME = 0,
    SLOT_TABLE_ADDED,
    SLOT_TABLE_REMOVED,
    SLOT_TABLE_REWEIGHTED,
    SLOT_TABLE_OTHER,
} slot_table_change;

static bool slot_table_is_equal(const fk_candidate *a, const fk_candidate *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].seed != b[i].seed || a[i].weight != b[i].weight) return false;
    }
    return true;
}

/* Which of the candidates is the different one, if just one is: *index, where it is or was. */
static slot_table_change slot_table_compare(const fk_slot_table *table,
                                            const fk_candidate *candidates, uint32_t count,
                                            uint32_t *index)
{
    const fk_candidate *was = table->candidates;
    uint32_t at = 0, shorter = count < table->count ? count : table->count;
    while (at < shorter && slot_table_is_equal(&was[at], &candidates[at], 1)) at++;
    *index = at;
    if (count == table->count) {
        if (at == count) return SLOT_TABLE_SAME;
        bool is_rest_same = slot_table_is_equal(&was[at + 1], &candidates[at + 1], count - at - 1);
        if (!is_rest_same) return SLOT_TABLE_OTHER;
        return was[at].seed == candidates[at].seed ? SLOT_TABLE_REWEIGHTED : SLOT_TABLE_OTHER;
    }
    if (count == table->count + 1 &&
        slot_table_is_equal(was + at, candidates + at + 1, shorter - at)) {
        return SLOT_TABLE_ADDED;
    }
    if (count + 1 == table->count &&
        slot_table_is_equal(was + at + 1, candidates + at, shorter - at)) {
        return SLOT_TABLE_REMOVED;
    }
    return SLOT_TABLE_OTHER;
}

/* ---- updating --------------------------------------------------------------------------------- */

/* Room for that many candidates; those that are there stay. */
static fk_err slot_table_reserve(fk_slot_table *table, fk_mem *mem, uint32_t count)
{
    void *bigger = NULL;
    uint32_t capacity = table->capacity != 0 ? table->capacity : SLOT_TABLE_CANDIDATES_MIN;
    if (count <= table->capacity) return FK_OK;
    while (capacity < count) {
        if (capacity > UINT32_MAX / 2 / sizeof *table->candidates) return FK_E_LIMIT;
        capacity *= 2;
    }
    size_t size = capacity * sizeof *table->candidates;
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("slot candidates"), &bigger));
    if (table->count != 0) memcpy(bigger, table->candidates, table->count * sizeof(fk_candidate));
    fk__mem_free(mem, table->candidates, table->capacity * sizeof *table->candidates);
    table->candidates = bigger;
    table->capacity = capacity;
    return FK_OK;
}

static void slot_table_apply(fk_slot_table *table, const fk_candidate *candidates, uint32_t count)
{
    const fk_strategy_ops *strategy = table->strategy;
    uint32_t index, slots = table->slots;
    slot_table_change change = slot_table_compare(table, candidates, count, &index);
    if (change == SLOT_TABLE_REMOVED || change == SLOT_TABLE_REWEIGHTED) {
        strategy->remove(table->candidates, table->count, index, slots, table->owner, table->score);
    }
    if (change == SLOT_TABLE_ADDED || change == SLOT_TABLE_REWEIGHTED) {
        strategy->add(candidates, count, index, slots, table->owner, table->score);
    }
    if (change == SLOT_TABLE_OTHER) {
        strategy->build(candidates, count, slots, table->owner, table->score);
    }
}

fk_err fk__slot_table_update(fk_slot_table *table, fk_mem *mem, const fk_strategy_ops *strategy,
                             const fk_candidate *candidates, uint32_t count, uint32_t slots)
{
    slot_table_arrays arrays;
    FK_ASSERT(slots != 0 && (slots & (slots - 1)) == 0);
    FK_ASSERT(slots <= FK_SLOTS_MAX);
    FK_ASSERT(count < FK_NOBODY);
    FK_TRY(slot_table_reserve(table, mem, count));
    if (strategy == table->strategy && slots == table->slots) {
        slot_table_apply(table, candidates, count);
    } else {
        FK_TRY(slot_table_arrays_alloc(mem, slots, &arrays));
        slot_table_arrays_free(mem, (slot_table_arrays){ table->owner, table->score },
                               table->slots);
        table->owner = arrays.owner;
        table->score = arrays.score;
        table->slots = slots;
        table->strategy = strategy;
        strategy->build(candidates, count, slots, table->owner, table->score);
    }
    if (count != 0) memmove(table->candidates, candidates, count * sizeof *candidates);
    table->count = count;
    return FK_OK;
}

void fk__slot_table_fini(fk_slot_table *table, fk_mem *mem)
{
    slot_table_arrays_free(mem, (slot_table_arrays){ table->owner, table->score }, table->slots);
    fk__mem_free(mem, table->candidates, table->capacity * sizeof *table->candidates);
    *table = (fk_slot_table){ 0 };
}

fk_err fk__slot_table_check(const fk_slot_table *table, fk_mem *mem)
{
    slot_table_arrays fresh;
    uint32_t slots = table->slots;
    if (slots == 0) return FK_OK;
    FK_TRY(slot_table_arrays_alloc(mem, slots, &fresh));
    table->strategy->build(table->candidates, table->count, slots, fresh.owner, fresh.score);
    FK_ASSERT(memcmp(fresh.owner, table->owner, slots * sizeof *fresh.owner) == 0);
    FK_ASSERT(memcmp(fresh.score, table->score, slots * sizeof *fresh.score) == 0);
    slot_table_arrays_free(mem, fresh, slots);
    return FK_OK;
}

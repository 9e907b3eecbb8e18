/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Slots and their reuse. Cells live in chunks that stay until the system ends, so a stale ref can
 * always be followed. A slot whose actor has ended goes to the free list of the thread that saw
 * it end. It may still be running: a message that was on its way when the actor ended takes the
 * run token like any other and is turned into a dead letter. Whoever wants to reuse the cell has
 * to take the token itself, which works only while nobody has it.
 */

#include "core/system.h"

#include "base/safeguard.h"
#include "core/mailbox.h"

enum { CELLS_LOCAL_MAX = 256, CELLS_MOVED = 128 };

fk_err fk__slots_init(fk_slots *slots, fk_mem *mem, uint32_t cells_max)
{
    const uint32_t len = 16;
    size_t size = sizeof(fk_directory) + len * sizeof(fk_word);
    void *memory;
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("directory"), &memory));
    memset(memory, 0, size);
    fk_directory *directory = memory;
    directory->len = len;
    fk__word_init(&slots->directory, (uintptr_t)directory);
    slots->cut = FK_CHUNK_CELLS;
    slots->cells_max = cells_max;
    return FK_OK;
}

/* What comes from the port: some chunks. Grows up to what a huge page holds. */
struct fk_slot_block {
    struct fk_slot_block *next;
    size_t size;
};

enum { BLOCK_CHUNKS_MAX = 42, BLOCK_SIZE_MAX = 2 << 20 };

static size_t chunk_size(void)
{
    return FK_CHUNK_CELLS * sizeof(fk_cell);
}

static char *align_up(void *ptr)
{
    return (char *)(((uintptr_t)ptr + FK_CACHE_LINE - 1) & ~(uintptr_t)(FK_CACHE_LINE - 1));
}

static fk_err block_add(fk_slots *slots, fk_mem *mem)
{
    void *memory;
    uint32_t chunks = slots->chunks == 0 ? 1 : slots->chunks;
    if (chunks > BLOCK_CHUNKS_MAX) chunks = BLOCK_CHUNKS_MAX;
    size_t size = sizeof(fk_slot_block) + FK_CACHE_LINE + chunks * chunk_size();
    if (chunks == BLOCK_CHUNKS_MAX && size < BLOCK_SIZE_MAX) size = BLOCK_SIZE_MAX;
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("cells"), &memory));
    fk_slot_block *block = memory;
    block->next = slots->blocks;
    block->size = size;
    slots->blocks = block;
    slots->fresh = align_up(block + 1);
    slots->fresh_chunks = chunks;
    return FK_OK;
}

void fk__slots_fini(fk_slots *slots, fk_mem *mem)
{
    while (slots->blocks != NULL) {
        fk_slot_block *next = slots->blocks->next;
        fk__mem_free(mem, slots->blocks, slots->blocks->size);
        slots->blocks = next;
    }
    fk_directory *directory = fk__word_ptr(&slots->directory, FK_RELAXED);
    while (directory != NULL) {
        fk_directory *older = directory->older;
        fk__mem_free(mem, directory, sizeof(*directory) + directory->len * sizeof(fk_word));
        directory = older;
    }
}

static fk_err directory_grow(fk_slots *slots, fk_mem *mem)
{
    fk_directory *old = fk__word_ptr(&slots->directory, FK_RELAXED);
    uint32_t len = old->len * 2;
    size_t size = sizeof(fk_directory) + len * sizeof(fk_word);
    void *memory;
    FK_TRY(fk__mem_alloc(mem, size, FK_SITE("larger directory"), &memory));
    memset(memory, 0, size);
    fk_directory *directory = memory;
    directory->older = old;
    directory->len = len;
    for (uint32_t i = 0; i < old->len; i++) {
        fk__word_init(&directory->chunk[i], fk__word_load(&old->chunk[i], FK_RELAXED));
    }
    /* Release pairs with fk__slots_at: a reader sees the copies. */
    fk__word_store(&slots->directory, (uintptr_t)directory, FK_RELEASE);
    return FK_OK;
}

static fk_err chunk_add(fk_system *sys)
{
    fk_slots *slots = &sys->slots;
    if ((uint64_t)slots->chunks * FK_CHUNK_CELLS >= slots->cells_max) return FK_E_LIMIT;
    fk_directory *directory = fk__word_ptr(&slots->directory, FK_RELAXED);
    if (slots->chunks == directory->len) {
        FK_TRY(directory_grow(slots, &sys->mem));
        directory = fk__word_ptr(&slots->directory, FK_RELAXED);
    }
    if (slots->fresh_chunks == 0) FK_TRY(block_add(slots, &sys->mem));
    fk_cell *chunk = (fk_cell *)(void *)slots->fresh;
    slots->fresh += chunk_size();
    slots->fresh_chunks--;
    for (uint32_t i = 0; i < FK_CHUNK_CELLS; i++) {
        fk_cell *cell = &chunk[i];
        memset(cell, 0, sizeof(*cell));
        cell->slot = slots->chunks * FK_CHUNK_CELLS + i;
        cell->sys = sys;
        cell->flags = FK_CELL_HALTED;
        fk__mailbox_init(cell);
    }
    /* Release pairs with fk__slots_at: a made-up ref may find the chunk at once. */
    fk__word_store(&directory->chunk[slots->chunks], (uintptr_t)chunk, FK_RELEASE);
    slots->chunks++;
    slots->cut = 0;
    return FK_OK;
}

/* Cells from the depot, or fresh ones: at least one, or an error. */
static fk_err cells_refill(fk_local *local)
{
    fk_system *sys = local->sys;
    fk_slots *slots = &sys->slots;
    fk_err err = FK_OK;
    fk__mem_lock(&sys->mem, &slots->lock);
    if (slots->depot != NULL) {
        local->cells_free = slots->depot;
        local->cells_count = CELLS_MOVED;
        slots->depot = fk__cell_parent(slots->depot);
    } else {
        if (slots->cut == FK_CHUNK_CELLS) err = chunk_add(sys);
        uint32_t chunk_first = (slots->chunks - 1) * FK_CHUNK_CELLS;
        for (uint32_t n = 0; err == FK_OK && n < 32 && slots->cut < FK_CHUNK_CELLS; n++) {
            fk_cell *cell = fk__slots_at(slots, chunk_first + slots->cut);
            FK_ASSERT(cell != NULL);
            slots->cut++;
            cell->u.free_next = local->cells_free;
            local->cells_free = cell;
            local->cells_count++;
        }
    }
    fk__mem_unlock(&sys->mem, &slots->lock);
    return err;
}

bool fk__cell_claim(fk_cell *cell)
{
    uintptr_t tail = fk__word_load(&cell->tail, FK_RELAXED);
    if (!FK_SAFEGUARD(CLAIM)) {
        fk__word_and(&cell->tail, ~FK_TAIL_IDLE, FK_ACQ_REL);
        return true;
    }
    if ((tail & FK_TAIL_IDLE) == 0) return false;
    /* Acquire: what the last holder of the token left. */
    return fk__word_cas(&cell->tail, &tail, tail & ~FK_TAIL_IDLE, FK_ACQ_REL);
}

fk_err fk__cell_get(fk_local *local, fk_cell **out)
{
    fk_cell *busy = NULL; /* still turning late messages into dead letters */
    fk_err err = FK_OK;
    for (;;) {
        if (local->cells_free == NULL) {
            err = cells_refill(local);
            if (FK_UNLIKELY(err != FK_OK) && fk__pool_reclaim(&local->sys->pool, true)) {
                err = cells_refill(local);
            }
            if (err != FK_OK) break;
        }
        fk_cell *cell = local->cells_free;
        FK_ASSERT(cell != NULL);
        local->cells_free = cell->u.free_next;
        if (local->cells_count > 0) local->cells_count--;
        if (fk__cell_claim(cell)) {
            *out = cell;
            break;
        }
        cell->u.free_next = busy;
        busy = cell;
    }
    while (busy != NULL) {
        fk_cell *next = busy->u.free_next;
        fk__cell_put(local, busy);
        busy = next;
    }
    return err;
}

void fk__cell_put(fk_local *local, fk_cell *cell)
{
    if (fk__cell_is_used_up(cell)) return;
    cell->u.free_next = local->cells_free;
    local->cells_free = cell;
    if (++local->cells_count < CELLS_LOCAL_MAX) return;

    fk_cell *last = cell;
    for (int i = 1; i < CELLS_MOVED; i++) last = last->u.free_next;
    fk_cell *rest = last->u.free_next;
    last->u.free_next = NULL;
    fk_slots *slots = &local->sys->slots;
    fk__mem_lock(&local->sys->mem, &slots->lock);
    fk__word_store(&cell->parent, (uintptr_t)slots->depot, FK_RELAXED);
    slots->depot = cell;
    fk__mem_unlock(&local->sys->mem, &slots->lock);
    local->cells_free = rest;
    local->cells_count -= CELLS_MOVED;
}

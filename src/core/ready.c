/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ring is filled at the bottom by its owner and emptied at the top by owner and thief alike,
 * each by compare-exchange of top; whoever moves top owns the cells it passed. A slot is reused
 * only after top has passed it, so a thief that read an overwritten slot also fails its exchange.
 * In front of the ring is the next slot, behind it the overflow; together they are one queue,
 * first in, first out, but for the next slot.
 *
 * The overflow is a list of arrays, not of cells, so that a queue of a million cells is moved
 * without touching them and the ones about to run can be fetched ahead.
 */

#include "core/system.h"

static void ring_put(fk_worker *worker, uint32_t bottom, fk_cell *cell)
{
    fk__word_store(&worker->ring[bottom % FK_RING], (uintptr_t)cell, FK_RELAXED);
    /* Release pairs with the acquire of bottom in pop and steal: the slot is there before it. */
    fk__half_store(&worker->bottom, bottom + 1, FK_RELEASE);
}

uint32_t fk__ready_len(const fk_worker *worker)
{
    uint32_t top = fk__half_load(&worker->top, FK_ACQUIRE);
    return fk__half_load(&worker->bottom, FK_RELAXED) - top;
}

struct fk_batch {
    fk_batch *next;
    uint32_t first, count;
    fk_cell *cell[(4096 - sizeof(fk_batch *) - 2 * sizeof(uint32_t)) / sizeof(fk_cell *)];
};

enum { BATCH_CELLS = sizeof(((fk_batch *)0)->cell) / sizeof(fk_cell *) };

_Static_assert(sizeof(fk_batch) <= 4096, "a batch is a block of a pool");

/* Moves what fits from the overflow to the ring. */
static void ring_refill(fk_worker *worker)
{
    uint32_t bottom = fk__half_load(&worker->bottom, FK_RELAXED);
    uint32_t used = bottom - fk__half_load(&worker->top, FK_ACQUIRE);
    while (worker->overflow_first != NULL && used < FK_RING) {
        fk_batch *batch = worker->overflow_first;
        while (batch->first < batch->count && used < FK_RING) {
            ring_put(worker, bottom++, batch->cell[batch->first++]);
            worker->overflow_len--;
            used++;
        }
        if (batch->first < batch->count) break;
        worker->overflow_first = batch->next;
        if (batch->next == NULL) worker->overflow_last = NULL;
        fk__cache_put(&worker->local.cache, FK_CLASS_4096, batch);
    }
}

static FK_COLD void overflow_push(fk_worker *worker, fk_cell *cell)
{
    fk_batch *batch = worker->overflow_last;
    if (batch == NULL || batch->count == BATCH_CELLS) {
        batch = fk__cache_get(&worker->local.cache, FK_CLASS_4096, FK_SITE("ready actors"));
        if (batch == NULL) { /* out of order, but not lost: this worker looks there, too */
            fk__ready_push_stack(worker->source, cell);
            return;
        }
        batch->next = NULL;
        batch->first = batch->count = 0;
        if (worker->overflow_last != NULL)
            worker->overflow_last->next = batch;
        else
            worker->overflow_first = batch;
        worker->overflow_last = batch;
    }
    batch->cell[batch->count++] = cell;
    worker->overflow_len++;
    /* A thief may have emptied the ring while this worker sits in one long message. */
    if (worker->overflow_len % 32 == 0) ring_refill(worker);
}

void fk__ready_fini(fk_worker *worker)
{
    while (worker->overflow_first != NULL) {
        fk_batch *batch = worker->overflow_first;
        worker->overflow_first = batch->next;
        fk__cache_put(&worker->local.cache, FK_CLASS_4096, batch);
    }
}

void fk__ready_push(fk_worker *worker, fk_cell *cell)
{
    uint32_t bottom = fk__half_load(&worker->bottom, FK_RELAXED);
    uint32_t used = bottom - fk__half_load(&worker->top, FK_ACQUIRE);
    if (FK_LIKELY(worker->overflow_first == NULL && used < FK_RING)) {
        ring_put(worker, bottom, cell);
    } else {
        overflow_push(worker, cell);
    }
}

/* The owner's lines and the senders' line of a cell that will run soon. */
static void fetch_ahead(const fk_worker *worker, uint32_t index)
{
    const char *cell = fk__word_ptr(&worker->ring[index % FK_RING], FK_RELAXED);
    __builtin_prefetch(cell);
    __builtin_prefetch(cell + FK_CACHE_LINE);
}

fk_cell *fk__ready_pop(fk_worker *worker)
{
    uint32_t top = fk__half_load(&worker->top, FK_ACQUIRE);
    for (;;) {
        if (FK_UNLIKELY(worker->overflow_first != NULL)) {
            uint32_t used = fk__half_load(&worker->bottom, FK_RELAXED) - top;
            if (used < FK_RING / 2) ring_refill(worker);
        }
        uint32_t used = fk__half_load(&worker->bottom, FK_RELAXED) - top;
        if (used == 0) return NULL;
        fk_cell *cell = fk__word_ptr(&worker->ring[top % FK_RING], FK_RELAXED);
        if (used > 4) fetch_ahead(worker, top + 4);
        /* Acq_rel: against a thief's exchange, one of us gets the cell. */
        if (fk__half_cas(&worker->top, &top, top + 1, FK_ACQ_REL)) return cell;
    }
}

fk_cell *fk__ready_steal(fk_worker *thief, fk_worker *victim)
{
    FK_ASSERT(thief != victim);
    fk_cell *taken[FK_RING / 2] = { NULL };
    uint32_t top = fk__half_load(&victim->top, FK_ACQUIRE);
    uint32_t len = fk__half_load(&victim->bottom, FK_ACQUIRE) - top;
    if (len == 0 || len > FK_RING) return NULL; /* empty, or top moved between the two loads */
    uint32_t count = len - len / 2;
    for (uint32_t i = 0; i < count; i++) {
        taken[i] = fk__word_ptr(&victim->ring[(top + i) % FK_RING], FK_RELAXED);
    }
    /* Acquire: the cells as their owner left them, over the release of bottom. */
    if (!fk__half_cas(&victim->top, &top, top + count, FK_ACQ_REL)) return NULL;
    for (uint32_t i = 1; i < count; i++) fk__ready_push(thief, taken[i]);
    return taken[0];
}

fk_cell *fk__ready_take_next(fk_worker *worker)
{
    if (fk__word_load(&worker->next, FK_RELAXED) == 0) return NULL;
    /* An exchange, because the sentinel takes it from a worker that is stuck. */
    return (fk_cell *)fk__word_swap(&worker->next, 0, FK_ACQ_REL);
}

void fk__ready_push_stack(fk_word *stack, fk_cell *cell)
{
    uintptr_t top = fk__word_load(stack, FK_RELAXED);
    do {
        cell->ready_next = (fk_cell *)top;
        /* Seq_cst: comes before the look at dispatch->idle that follows (park.c). */
    } while (!fk__word_cas(stack, &top, (uintptr_t)cell, FK_SEQ_CST));
}

bool fk__ready_take_stack(fk_worker *worker, fk_word *stack)
{
    if (fk__word_load(stack, FK_RELAXED) == 0) return false;
    fk_cell *cell = (fk_cell *)fk__word_swap(stack, 0, FK_ACQ_REL);
    fk_cell *oldest = NULL;
    if (cell == NULL) return false;
    while (cell != NULL) {
        fk_cell *next = cell->ready_next;
        cell->ready_next = oldest;
        oldest = cell;
        cell = next;
    }
    while (oldest != NULL) {
        fk_cell *next = oldest->ready_next;
        fk__ready_push(worker, oldest);
        oldest = next;
    }
    return true;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ring is filled at the bottom by its owner and emptied at the top by owner and thief alike,
 * each by compare-exchange of top; whoever moves top owns the cells it passed. A slot is reused
 * only after top has passed it, so a thief that read an overwritten slot also fails its exchange.
 * In front of the ring is the next slot, behind it the overflow list; together they are one
 * queue, first in, first out, but for the next slot.
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

/* Moves what fits from the overflow to the ring. */
static void ring_refill(fk_worker *worker)
{
    uint32_t bottom = fk__half_load(&worker->bottom, FK_RELAXED);
    uint32_t used = bottom - fk__half_load(&worker->top, FK_ACQUIRE);
    while (worker->overflow_first != NULL && used < FK_RING) {
        fk_cell *cell = worker->overflow_first;
        worker->overflow_first = cell->ready_next;
        worker->overflow_len--;
        ring_put(worker, bottom++, cell);
        used++;
    }
    if (worker->overflow_first == NULL) worker->overflow_last = NULL;
}

void fk__ready_push(fk_worker *worker, fk_cell *cell)
{
    if (worker->overflow_first == NULL) {
        uint32_t bottom = fk__half_load(&worker->bottom, FK_RELAXED);
        if (bottom - fk__half_load(&worker->top, FK_ACQUIRE) < FK_RING) {
            ring_put(worker, bottom, cell);
            return;
        }
    }
    cell->ready_next = NULL;
    if (worker->overflow_last != NULL) worker->overflow_last->ready_next = cell;
    else worker->overflow_first = cell;
    worker->overflow_last = cell;
    worker->overflow_len++;
    /* A thief may have emptied the ring while this worker sits in one long message. */
    if (worker->overflow_len % 32 == 0) ring_refill(worker);
}

fk_cell *fk__ready_pop(fk_worker *worker)
{
    uint32_t top = fk__half_load(&worker->top, FK_ACQUIRE);
    for (;;) {
        if (worker->overflow_first != NULL) {
            ring_refill(worker);
            top = fk__half_load(&worker->top, FK_ACQUIRE);
        }
        if (fk__half_load(&worker->bottom, FK_RELAXED) == top) return NULL;
        fk_cell *cell = fk__word_ptr(&worker->ring[top % FK_RING], FK_RELAXED);
        /* Acq_rel: against a thief's exchange, one of us gets the cell. */
        if (fk__half_cas(&worker->top, &top, top + 1, FK_ACQ_REL)) return cell;
    }
}

fk_cell *fk__ready_steal(fk_worker *thief, fk_worker *victim)
{
    FK_ASSERT(thief != victim);
    fk_cell *taken[FK_RING / 2];
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

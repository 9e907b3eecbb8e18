/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_MAILBOX_H
#define FK_CORE_MAILBOX_H

/*
 * The mailbox: an intrusive queue, many producers, one consumer, one read-modify-write a send.
 *
 * The tail word points to the last link and carries FK_TAIL_IDLE while nobody holds the cell's
 * run token. A producer exchanges the tail for its node and links the old last to it; if the old
 * word had the mark, the producer has the token now and must schedule the cell. The consumer
 * gives the token back by compare-exchange of tail to tail|IDLE, which fails if a producer came
 * first; then it keeps the token and the cell stays ready.
 *
 * IDLE says that nobody runs the cell, not that the queue is empty: a suspended cell goes idle on
 * a full queue, and each message that arrives wakes it to look and go idle again.
 *
 * System signals have a stack of their own and no mark: after pushing, the sender clears IDLE
 * from the tail (fk__mailbox_kick) and has the token if it was set. The consumer looks at the
 * stack again after going idle. Both clear and set are read-modify-writes of the same word, so
 * one of the two sees the other; the explorer's harnesses h1 to h4 try every order.
 *
 * The link delivered last stays as the queue's head, because the next producer will write to it.
 */

#include "base/safeguard.h"
#include "core/cell.h"

static inline void fk__mailbox_init(fk_cell *cell)
{
    fk__word_init(&cell->stub.next, 0);
    fk__word_init(&cell->tail, (uintptr_t)&cell->stub | FK_TAIL_IDLE);
    fk__word_init(&cell->system, 0);
    cell->head = &cell->stub;
}

/* Appends; true: the caller has the run token and must schedule the cell. */
static inline bool fk__mailbox_push(fk_cell *cell, fk_link *link)
{
    /* Relaxed: published by the exchange. */
    fk__word_store(&link->next, 0, FK_RELAXED);
    /* Release: the node's contents, for the consumer that reaches it over a later producer's link.
     * Acquire: taking the token, we see what the last holder left (its compare-exchange). */
    uintptr_t before = fk__word_swap(&cell->tail, (uintptr_t)link, FK_ACQ_REL);
    fk_link *last = (fk_link *)(before & ~FK_TAIL_IDLE);
    /* Release pairs with the acquire in fk__mailbox_peek. */
    fk__word_store(&last->next, (uintptr_t)link, FK_RELEASE);
    return (before & FK_TAIL_IDLE) != 0;
}

/* Takes the token from an idle cell; true: the caller must schedule it. */
static inline bool fk__mailbox_kick(fk_cell *cell)
{
    return (fk__word_and(&cell->tail, ~FK_TAIL_IDLE, FK_ACQ_REL) & FK_TAIL_IDLE) != 0;
}

/* ---- token holder ------------------------------------------------------------------------ */

/* The next node, not yet taken, or NULL: the queue is empty or a producer is about to link. */
static inline fk_link *fk__mailbox_after(const fk_link *head)
{
    return fk__word_ptr(&head->next, FK_ACQUIRE);
}

static inline fk_link *fk__mailbox_peek(const fk_cell *cell)
{
    return fk__mailbox_after(cell->head);
}

/* Makes the node that peek gave the head; returns the old head, which is the caller's now. */
static inline fk_link *fk__mailbox_advance(fk_cell *cell, fk_link *next)
{
    fk_link *old = cell->head;
    cell->head = next;
    return old;
}

/* True when nothing was pushed after the head; a producer may be on its way. */
static inline bool fk__mailbox_is_empty(const fk_cell *cell)
{
    return (fk__word_load(&cell->tail, FK_ACQUIRE) & ~FK_TAIL_IDLE) == (uintptr_t)cell->head;
}

/* Gives the token back: false when a producer came first (then it is still held).
 * Release: whoever takes the token next sees the owner's fields as we leave them. */
static inline bool fk__mailbox_idle_from(fk_cell *cell, uintptr_t tail)
{
    if (!FK_SAFEGUARD(IDLE_CAS)) {
        fk__word_store(&cell->tail, tail | FK_TAIL_IDLE, FK_RELEASE);
        return true;
    }
    if (FK_LIKELY(fk__word_cas(&cell->tail, &tail, tail | FK_TAIL_IDLE, FK_ACQ_REL))) return true;
    /* While that producer has not linked its node, the cell will be run again for nothing. */
    if (fk__mailbox_peek(cell) == NULL) fk__cpu_relax();
    return false;
}

/* Signals are waiting, or a stop was asked for. Acquire pairs with the push's release; after a
 * successful fk__mailbox_idle_from it cannot miss a signal whose sender did not see IDLE. */
static inline bool fk__mailbox_has_signal(const fk_cell *cell)
{
    return fk__word_load(&cell->system, FK_ACQUIRE) != 0;
}

/* The token goes back unless a signal came meanwhile. True: it is gone. */
static inline bool fk__mailbox_idle(fk_cell *cell, uintptr_t tail)
{
    if (!fk__mailbox_idle_from(cell, tail)) return false;
    if (FK_SAFEGUARD(IDLE_RECHECK) && FK_UNLIKELY(fk__mailbox_has_signal(cell))) {
        return !fk__mailbox_kick(cell); /* ours again, or whoever was quicker has it */
    }
    return true;
}

/* ---- signals ----------------------------------------------------------------------------- */

/* Pushes; the caller must kick afterwards. */
static inline void fk__mailbox_signal(fk_cell *cell, fk_link *link)
{
    uintptr_t top = fk__word_load(&cell->system, FK_RELAXED);
    do {
        fk__word_store(&link->next, top & ~FK_SYSTEM_MARKS, FK_RELAXED);
        /* Release: the signal. */
    } while (
        !fk__word_cas(&cell->system, &top, (uintptr_t)link | (top & FK_SYSTEM_MARKS), FK_ACQ_REL));
}

/* Sets a mark; the caller must kick afterwards. */
static inline void fk__mailbox_mark(fk_cell *cell, uintptr_t mark)
{
    fk__word_or(&cell->system, mark, FK_ACQ_REL);
}

/* Takes all signals, oldest first, and the marks. */
static inline fk_link *fk__mailbox_take_signals(fk_cell *cell, uintptr_t *marks)
{
    uintptr_t all = fk__word_swap(&cell->system, 0, FK_ACQ_REL);
    *marks = all & FK_SYSTEM_MARKS;
    fk_link *oldest = NULL;
    fk_link *link = (fk_link *)(all & ~FK_SYSTEM_MARKS);
    while (link != NULL) {
        fk_link *next = fk__word_ptr(&link->next, FK_RELAXED);
        fk__word_store(&link->next, (uintptr_t)oldest, FK_RELAXED);
        oldest = link;
        link = next;
    }
    return oldest;
}

/* The next of those, and its kind; NULL: that was all. It is the caller's: it may be gone when the
 * next one is asked for. */
static inline fk_signal *fk__signals_pop(fk_link **list, uint32_t *kind)
{
    if (*list == NULL) return NULL;
    fk_signal *signal = FK_CONTAINER(*list, fk_signal, link);
    *list = fk__word_ptr(&signal->link.next, FK_RELAXED);
    *kind = fk__half_load(&signal->word, FK_RELAXED) & FK_SIGNAL_KIND;
    return signal;
}

#endif /* FK_CORE_MAILBOX_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/box.h"

#include "base/safeguard.h"
#include "core/watch.h"

struct fk_box {
    fk_lock lock;
    uint32_t slot, generation; /* whom it serves; generation 0: nobody */
    uint32_t capacity;
    fk_half count; /* changed under the lock, looked at by anybody */
    fk_overflow overflow;
    bool is_poisoned; /* what comes now comes after the end */
    fk_node *first, *last;
    uint32_t waiters; /* threads that sleep until there is room */
    uint32_t popped;  /* messages taken since they were last notified */
    fk_half room;     /* what they sleep on: changes when there is some */
    fk_box *next;     /* free boxes */
    fk_box *all;      /* every box */
};

static uint32_t count_of(const fk_box *box)
{
    return fk__half_load(&box->count, FK_RELAXED);
}

static void count_set(fk_box *box, uint32_t count)
{
    fk__half_store(&box->count, count, FK_RELAXED);
}

static void *node_next(const fk_node *node)
{
    return fk__word_ptr(&node->link.next, FK_RELAXED);
}

fk_err fk__box_get(fk_local *local, fk_cell *cell, uint32_t generation, const fk_props *props,
                   fk_box **out)
{
    fk_system *sys = local->sys;
    fk__mem_lock(&sys->mem, &sys->lock);
    fk_box *box = sys->boxes;
    if (box != NULL) sys->boxes = box->next;
    fk__mem_unlock(&sys->mem, &sys->lock);
    if (box == NULL) {
        void *memory;
        FK_TRY(fk__mem_alloc(&sys->mem, sizeof(*box), FK_SITE("bounded mailbox"), &memory));
        box = memory;
        memset(box, 0, sizeof(*box));
        fk__mem_lock(&sys->mem, &sys->lock);
        box->all = sys->boxes_all;
        sys->boxes_all = box;
        fk__mem_unlock(&sys->mem, &sys->lock);
    }
    fk__mem_lock(&sys->mem, &box->lock);
    box->slot = cell->slot;
    box->generation = generation;
    box->capacity = props->capacity;
    box->overflow = props->overflow;
    box->is_poisoned = false;
    fk__mem_unlock(&sys->mem, &box->lock);
    *out = box;
    return FK_OK;
}

/* Wakes whoever waits for room; outside the lock. */
static void room_notify(fk_system *sys, fk_box *box)
{
    const fk_port *port = &sys->mem.port;
    fk__half_add(&box->room, 1, FK_ACQ_REL);
    if (port->notify != NULL) port->notify(port->ctx, (uint32_t *)(void *)&box->room);
}

fk_node *fk__box_close(fk_local *local, fk_box *box)
{
    fk_system *sys = local->sys;
    fk__mem_lock(&sys->mem, &box->lock);
    fk_node *first = box->first;
    bool waiters = box->waiters != 0;
    box->first = box->last = NULL;
    count_set(box, 0);
    box->generation = 0;
    fk__mem_unlock(&sys->mem, &box->lock);
    if (waiters && FK_SAFEGUARD(BOX_WAKE)) room_notify(sys, box);
    fk__mem_lock(&sys->mem, &sys->lock);
    box->next = sys->boxes;
    sys->boxes = box;
    fk__mem_unlock(&sys->mem, &sys->lock);
    return first;
}

void fk__box_fini_all(fk_system *sys)
{
    while (sys->boxes_all != NULL) {
        fk_box *box = sys->boxes_all;
        sys->boxes_all = box->all;
        FK_ASSERT(box->first == NULL);
        fk__mem_free(&sys->mem, box, sizeof(*box));
    }
}

static bool box_serves(const fk_box *box, const fk_cell *cell, uint32_t generation)
{
    if (!FK_SAFEGUARD(BOX_OWNER)) return true;
    return box->slot == cell->slot && box->generation == generation;
}

static fk_node *take_first(fk_box *box)
{
    fk_node *node = box->first;
    if (node == NULL) return NULL;
    box->first = node_next(node);
    if (box->first == NULL) box->last = NULL;
    count_set(box, count_of(box) - 1);
    return node;
}

static void append(fk_box *box, fk_node *node)
{
    fk__word_store(&node->link.next, 0, FK_RELAXED);
    if (box->last != NULL)
        fk__word_store(&box->last->link.next, (uintptr_t)node, FK_RELAXED);
    else
        box->first = node;
    box->last = node;
    count_set(box, count_of(box) + 1);
}

/* The first that is wanted, taken out; NULL: there is none. */
static fk_node *take_where(fk_box *box, bool (*is_wanted)(void *, const fk_node *), void *arg)
{
    fk_node *before = NULL, *node = box->first;
    while (node != NULL && !is_wanted(arg, node)) {
        before = node;
        node = node_next(node);
    }
    if (node == NULL || before == NULL) return node != NULL ? take_first(box) : NULL;
    fk__word_store(&before->link.next, (uintptr_t)node_next(node), FK_RELAXED);
    if (box->last == node) box->last = before;
    count_set(box, count_of(box) - 1);
    return node;
}

/* Whoever watches is told, come what may. */
static bool may_be_dropped(void *arg, const fk_node *node)
{
    (void)arg;
    return node->type != &fk__type_notice;
}

/* There is no room: what is dropped, or FK_E_FULL. */
static fk_err make_room(fk_box *box, fk_node *node, fk_node **dropped, fk_reason *reason)
{
    switch (box->overflow) {
    case FK_OVERFLOW_DROP_OLDEST:
        *dropped = take_where(box, may_be_dropped, NULL);
        if (*dropped == NULL) *dropped = node;
        *reason = FK_REASON_DROPPED_OLDEST;
        return FK_OK;
    case FK_OVERFLOW_DROP_NEWEST:
        *dropped = node;
        *reason = FK_REASON_DROPPED_NEWEST;
        return FK_OK;
    case FK_OVERFLOW_FAIL:
    case FK_OVERFLOW_BLOCK: break;
    }
    return FK_E_FULL;
}

fk_err fk__box_push(fk_local *local, fk_cell *cell, fk_node *node, bool *was_empty, bool *wait)
{
    fk_system *sys = local->sys;
    fk_box *box = fk__word_ptr(&cell->box, FK_ACQUIRE);
    fk_node *dropped = NULL;
    fk_reason reason = FK_REASON_FULL;
    fk_err err = FK_OK;
    *was_empty = *wait = false;
    if (box == NULL) return FK_E_DEAD;
    fk__mem_lock(&sys->mem, &box->lock);
    bool is_poison = node->type == &fk_type_poison; /* gets through, once */
    bool is_full = count_of(box) >= box->capacity && !is_poison && FK_SAFEGUARD(CAPACITY);
    if (!box_serves(box, cell, node->generation) || box->is_poisoned)
        err = FK_E_DEAD;
    else if (is_full)
        err = make_room(box, node, &dropped, &reason);
    if (err == FK_E_FULL) *wait = box->overflow == FK_OVERFLOW_BLOCK;
    if (err == FK_OK && dropped != node) {
        *was_empty = count_of(box) == 0;
        box->is_poisoned = is_poison;
        append(box, node);
    }
    fk__mem_unlock(&sys->mem, &box->lock);
    if (dropped != NULL) {
        fk_ref to = { cell->slot, dropped->generation, sys->id };
        fk__dead_node(local, reason, to, dropped);
        fk__node_drop_contents(&local->cache, dropped);
        fk__node_free(&local->cache, dropped);
    }
    return err;
}

void fk__box_push_over(fk_local *local, fk_cell *cell, fk_node *node)
{
    fk_mem *mem = &local->sys->mem;
    fk_box *box = fk__word_ptr(&cell->box, FK_RELAXED);
    fk__mem_lock(mem, &box->lock);
    append(box, node);
    fk__mem_unlock(mem, &box->lock);
}

void fk__box_wait(fk_system *sys, fk_cell *cell, uint32_t generation)
{
    const fk_port *port = &sys->mem.port;
    fk_box *box = fk__word_ptr(&cell->box, FK_ACQUIRE);
    if (box == NULL) return;
    fk__mem_lock(&sys->mem, &box->lock);
    bool full = box_serves(box, cell, generation) && count_of(box) >= box->capacity;
    uint32_t seen = fk__half_load(&box->room, FK_ACQUIRE);
    if (full) box->waiters++;
    fk__mem_unlock(&sys->mem, &box->lock);
    if (!full) return;
    port->wait(port->ctx, (uint32_t *)(void *)&box->room, seen, FK_NEVER);
    fk__mem_lock(&sys->mem, &box->lock);
    box->waiters--;
    fk__mem_unlock(&sys->mem, &box->lock);
}

fk_node *fk__box_pull(fk_box *box, fk_system *sys, bool (*is_wanted)(void *, const fk_node *),
                      void *arg)
{
    fk__mem_lock(&sys->mem, &box->lock);
    fk_node *node = take_where(box, is_wanted, arg);
    fk__mem_unlock(&sys->mem, &box->lock);
    return node;
}

uint32_t fk__box_len(fk_box *box, const fk_cell *cell, uint32_t generation)
{
    fk_mem *mem = &cell->sys->mem;
    fk__mem_lock(mem, &box->lock);
    uint32_t len = box_serves(box, cell, generation) ? count_of(box) : FK_MAILBOX_UNKNOWN;
    fk__mem_unlock(mem, &box->lock);
    return len;
}

fk_node *fk__box_pop(fk_box *box, fk_system *sys)
{
    fk__mem_lock(&sys->mem, &box->lock);
    fk_node *node = take_first(box);
    /* When half empty, so that a flood of waiters is not woken one by one; but others may keep it
     * fuller than that, so also after as many messages. */
    box->popped = box->waiters != 0 ? box->popped + 1 : 0;
    bool notify = box->waiters != 0 &&
                  (count_of(box) <= box->capacity / 2 || box->popped > box->capacity / 2);
    if (notify) box->popped = 0;
    fk__mem_unlock(&sys->mem, &box->lock);
    if (notify) room_notify(sys, box);
    return node;
}

uint32_t fk__box_count(const fk_cell *cell)
{
    const fk_box *box = fk__word_ptr(&cell->box, FK_ACQUIRE);
    return box != NULL ? count_of(box) : 0;
}

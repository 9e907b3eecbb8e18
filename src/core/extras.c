/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/extras.h"

#include "base/safeguard.h"
#include "core/answer.h"
#include "core/mailbox.h"
#include "core/router.h"
#include "core/supervise.h"
#include "core/watch.h"

enum { FIRST_CAPACITY = 8, BEHAVIOURS_MAX = 1024 };

fk_err fk__extras_need(fk_local *local, fk_cell *cell)
{
    if (cell->extras != NULL) return FK_OK;
    fk_extras *extras = fk__cache_alloc(&local->cache, sizeof(*extras), FK_SITE("extras"));
    if (extras == NULL) return local->cache.err;
    memset(extras, 0, sizeof(*extras));
    cell->extras = extras;
    return FK_OK;
}

/* ---- rings of nodes ---------------------------------------------------------------------- */

static fk_err nodes_reserve(fk_local *local, fk_nodes *nodes, uint32_t count)
{
    uint32_t capacity = nodes->capacity == 0 ? FIRST_CAPACITY : nodes->capacity;
    if (count > UINT32_MAX / 2) return FK_E_LIMIT;
    while (capacity < count) capacity *= 2;
    if (capacity == nodes->capacity) return FK_OK;
    fk_node **at =
        fk__cache_alloc(&local->cache, capacity * sizeof(*at), FK_SITE("room in the stash"));
    if (at == NULL) return local->cache.err;
    for (uint32_t i = 0; i < nodes->count; i++) {
        at[i] = nodes->at[(nodes->first + i) & (nodes->capacity - 1)];
    }
    fk__cache_free(&local->cache, nodes->at, nodes->capacity * sizeof(*at));
    *nodes = (fk_nodes){ at, 0, nodes->count, capacity };
    return FK_OK;
}

static void nodes_push(fk_nodes *nodes, fk_node *node)
{
    nodes->at[(nodes->first + nodes->count++) & (nodes->capacity - 1)] = node;
}

static void nodes_push_front(fk_nodes *nodes, fk_node *node)
{
    nodes->first = (nodes->first - 1) & (nodes->capacity - 1);
    nodes->at[nodes->first] = node;
    nodes->count++;
}

static fk_node *nodes_take(fk_nodes *nodes)
{
    if (nodes->count == 0) return NULL;
    fk_node *node = nodes->at[nodes->first];
    nodes->first = (nodes->first + 1) & (nodes->capacity - 1);
    nodes->count--;
    return node;
}

static fk_node *nodes_take_last(fk_nodes *nodes)
{
    FK_ASSERT(nodes->count > 0);
    return nodes->at[(nodes->first + --nodes->count) & (nodes->capacity - 1)];
}

static void nodes_fini(fk_local *local, fk_nodes *nodes)
{
    FK_ASSERT(nodes->count == 0);
    fk__cache_free(&local->cache, nodes->at, nodes->capacity * sizeof(*nodes->at));
}

/* ---- stash ------------------------------------------------------------------------------- */

fk_err fk__stash_push(fk_local *local, fk_cell *cell, fk_node *node, uint32_t max)
{
    FK_TRY(fk__extras_need(local, cell));
    fk_nodes *stash = &cell->extras->stash;
    if (stash->count >= max) return FK_E_FULL;
    FK_TRY(nodes_reserve(local, stash, stash->count + 1));
    nodes_push(stash, node);
    if (FK_SAFEGUARD(STASH_HOLD)) node->flags |= FK_NODE_LIVE;
    return FK_OK;
}

fk_err fk__stash_restore(fk_local *local, fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    if (extras == NULL || extras->stash.count == 0) return FK_OK;
    FK_TRY(nodes_reserve(local, &extras->front, extras->front.count + extras->stash.count));
    while (extras->stash.count > 0) {
        nodes_push_front(&extras->front, nodes_take_last(&extras->stash));
    }
    cell->flags |= FK_CELL_FRONT;
    return FK_OK;
}

/* ---- behaviours -------------------------------------------------------------------------- */

fk_err fk__behaviour_push(fk_local *local, fk_cell *cell, fk_receive_fn receive)
{
    FK_TRY(fk__extras_need(local, cell));
    fk_extras *extras = cell->extras;
    if (extras->behaviour_count == extras->behaviour_capacity) {
        uint32_t old = extras->behaviour_capacity;
        uint32_t capacity = old == 0 ? FIRST_CAPACITY : old * 2;
        if (capacity > BEHAVIOURS_MAX) return FK_E_LIMIT;
        fk_receive_fn *grown = fk__cache_alloc(&local->cache, capacity * sizeof(*grown),
                                               FK_SITE("stack of behaviours"));
        if (grown == NULL) return local->cache.err;
        if (old != 0) memcpy(grown, extras->behaviour, old * sizeof(*grown));
        fk__cache_free(&local->cache, extras->behaviour, old * sizeof(*grown));
        extras->behaviour = grown;
        extras->behaviour_capacity = capacity;
    }
    extras->behaviour[extras->behaviour_count++] = cell->receive;
    cell->receive = receive;
    return FK_OK;
}

fk_err fk__behaviour_pop(fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    if (extras == NULL || extras->behaviour_count == 0) return FK_E_STATE;
    cell->receive = extras->behaviour[--extras->behaviour_count];
    return FK_OK;
}

/* ---- priority ---------------------------------------------------------------------------- */

static bool item_before(const fk_heap_item *a, const fk_heap_item *b)
{
    if (a->priority != b->priority) return a->priority < b->priority;
    return a->order < b->order;
}

static fk_err heap_reserve(fk_local *local, fk_extras *extras)
{
    if (extras->heap_count < extras->heap_capacity) return FK_OK;
    uint32_t old = extras->heap_capacity;
    uint32_t capacity = old == 0 ? FIRST_CAPACITY : old * 2;
    fk_heap_item *heap =
        fk__cache_alloc(&local->cache, capacity * sizeof(*heap), FK_SITE("heap of messages"));
    if (heap == NULL) return local->cache.err;
    if (old != 0) memcpy(heap, extras->heap, old * sizeof(*heap));
    fk__cache_free(&local->cache, extras->heap, old * sizeof(*heap));
    extras->heap = heap;
    extras->heap_capacity = capacity;
    return FK_OK;
}

static void heap_push(fk_extras *extras, int64_t priority, fk_node *node)
{
    fk_heap_item item = { priority, extras->heap_order++, node };
    uint32_t at = extras->heap_count++;
    while (at > 0 && item_before(&item, &extras->heap[(at - 1) / 2])) {
        extras->heap[at] = extras->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    extras->heap[at] = item;
}

static fk_node *heap_take(fk_extras *extras)
{
    if (extras->heap_count == 0) return NULL;
    fk_node *top = extras->heap[0].node;
    fk_heap_item item = extras->heap[--extras->heap_count];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= extras->heap_count) break;
        if (child + 1 < extras->heap_count &&
            item_before(&extras->heap[child + 1], &extras->heap[child])) {
            child++;
        }
        if (!item_before(&extras->heap[child], &item)) break;
        extras->heap[at] = extras->heap[child];
        at = child;
    }
    if (extras->heap_count > 0) extras->heap[at] = item;
    return top;
}

static int64_t priority_of(const fk_cell *cell, const fk_node *node)
{
    fk_msg msg;
    if ((node->flags & FK_NODE_TIMER) != 0) return 0; /* its message is looked up on delivery */
    fk__node_view(node, cell->sys->id, &msg);
    int64_t priority = cell->props->priority(&msg);
    if (cell->props->mailbox == FK_MAILBOX_CONTROL) return priority < 0 ? -1 : 0;
    return priority;
}

/* Moves the queue into the heap. Without memory the rest stays in the queue: later, not lost. */
static void heap_fill(fk_worker *worker, fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    fk_link *link;
    /* What comes after poison stays in the queue: it comes too late, however urgent. */
    while (extras->poison == NULL && (link = fk__mailbox_peek(cell)) != NULL) {
        if (heap_reserve(&worker->local, extras) != FK_OK) return;
        fk__cell_advance(worker, cell, link);
        fk_node *node = FK_CONTAINER(link, fk_node, link);
        node->flags |= FK_NODE_LIVE;
        if (node->type == &fk_type_poison)
            extras->poison = node; /* when all else is done */
        else
            heap_push(extras, priority_of(cell, node), node);
    }
}

fk_node *fk__extras_take(fk_worker *worker, fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    fk_node *node = nodes_take(&extras->front);
    if (node != NULL) return node;
    if (cell->props->priority == NULL || cell->props->mailbox < FK_MAILBOX_PRIORITY) {
        cell->flags &= (uint8_t)~FK_CELL_FRONT;
        return NULL;
    }
    heap_fill(worker, cell);
    node = heap_take(extras);
    if (node == NULL) {
        node = extras->poison;
        extras->poison = NULL;
    }
    return node;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* Without memory the stash stays as it is, and the new state can still have it. */
void fk__extras_reset(fk_worker *worker, fk_cell *cell)
{
    fk_err err = FK_SAFEGUARD(STASH_RESTART) ? fk__stash_restore(&worker->local, cell) : FK_OK;
    (void)err;
    cell->extras->behaviour_count = 0;
    if (FK_SAFEGUARD(TIMERS_RESTART)) fk__timers_reset(worker, cell);
    if (!FK_SAFEGUARD(WATCH_KEPT)) fk__watch_end(worker, cell);
}

static void supervision_fini(fk_cache *cache, fk_extras *extras)
{
    uint32_t cursor = 0;
    fk_tally *tally;
    while ((tally = fk__map_next(&extras->tallies, &cursor)) != NULL) {
        fk__cache_free(cache, tally, sizeof(*tally));
    }
    fk__map_fini(cache, &extras->tallies);
    if (extras->wound != NULL) fk__cache_free(cache, extras->wound, sizeof(*extras->wound));
}

void fk__extras_abandon(fk_local *local, fk_cell *cell)
{
    if (cell->extras == NULL) return;
    fk__map_fini(&local->cache, &cell->extras->watching);
    fk__cache_free(&local->cache, cell->extras, sizeof(*cell->extras));
}

void fk__extras_fini(fk_worker *worker, fk_cell *cell)
{
    fk_extras *extras = cell->extras;
    fk_local *local = &worker->local;
    fk_node *node;
    if (extras == NULL) return;
    fk__asks_end(worker, cell); /* first: some answers may be in the heap */
    while ((node = nodes_take(&extras->front)) != NULL) fk__cell_dead_node(worker, cell, node);
    while ((node = nodes_take(&extras->stash)) != NULL) fk__cell_dead_node(worker, cell, node);
    while ((node = heap_take(extras)) != NULL) fk__cell_dead_node(worker, cell, node);
    if (extras->poison != NULL) fk__cell_dead_node(worker, cell, extras->poison);
    nodes_fini(local, &extras->front);
    nodes_fini(local, &extras->stash);
    fk__cache_free(&local->cache, extras->heap, extras->heap_capacity * sizeof(*extras->heap));
    fk__cache_free(&local->cache, extras->behaviour,
                   extras->behaviour_capacity * sizeof(*extras->behaviour));
    fk__timers_fini(worker, cell);
    fk__watch_end(worker, cell);
    supervision_fini(&local->cache, extras);
    if (extras->routees != NULL) fk__routees_destroy(&local->cache, extras->routees);
    fk__cache_free(&local->cache, extras, sizeof(*extras));
    cell->extras = NULL;
}

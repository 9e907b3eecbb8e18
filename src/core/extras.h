/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_EXTRAS_H
#define FK_CORE_EXTRAS_H

/*
 * What few actors need, in a block that is made when it is first wanted: the stash, the queue in
 * front of the mailbox, the heap of a priority mailbox, the stack of behaviours, the timers.
 * All of it belongs to the holder of the run token.
 */

#include "base/map.h"
#include "core/system.h"
#include "core/timer.h"

/* A ring of nodes. */
typedef struct fk_nodes {
    fk_node **at;
    uint32_t first, count, capacity; /* capacity: 0 or a power of two */
} fk_nodes;

typedef struct fk_heap_item {
    int64_t priority;
    uint64_t order; /* arrival: equal priorities keep it */
    fk_node *node;
} fk_heap_item;

/* What a parent is told about a failure besides the bare error. */
typedef struct fk_wound {
    const fk_type *type;
    fk_err err;
    char detail[128];
} fk_wound;

typedef struct fk_routees fk_routees;

struct fk_extras {
    fk_nodes stash;
    fk_nodes front; /* unstashed: before everything else */
    fk_heap_item *heap;
    uint32_t heap_count, heap_capacity;
    uint64_t heap_order;
    fk_node *poison; /* waits until the heap is empty */
    fk_receive_fn *behaviour;
    uint32_t behaviour_count, behaviour_capacity;
    fk_timers timers;
    fk_map watching;     /* whom it watches: fk_vigil */
    fk_map tallies;      /* how often its children were restarted: fk_tally */
    fk_routees *routees; /* of a router */
    fk_wound *wound;     /* why it failed last; while FAILED is in its word, under children_lock */
    uint32_t awaited;    /* children that its restart waits for */
    struct fk_asking *asks; /* questions that have not been answered: see answer.h */
};

FK_MUST_USE fk_err fk__extras_need(fk_local *local, fk_cell *cell);
/* Every message in it is a dead letter; timers and watches end; the block is freed. */
void fk__extras_fini(fk_worker *worker, fk_cell *cell);
/* Of a cell that never ran: it has no messages and no timers. */
void fk__extras_abandon(fk_local *local, fk_cell *cell);
/* For a restart: messages set aside go before the mailbox; timers but the receive timeout end, and
 * the first behaviour is back. */
void fk__extras_reset(fk_worker *worker, fk_cell *cell);

/* Sets a node aside, up to max; puts all of them before the mailbox. */
FK_MUST_USE fk_err fk__stash_push(fk_local *local, fk_cell *cell, fk_node *node, uint32_t max);
FK_MUST_USE fk_err fk__stash_restore(fk_local *local, fk_cell *cell);

FK_MUST_USE fk_err fk__behaviour_push(fk_local *local, fk_cell *cell, fk_receive_fn receive);
FK_MUST_USE fk_err fk__behaviour_pop(fk_cell *cell);

/* The next message of a cell with FK_CELL_FRONT: from the front, the heap (filled from the queue
 * first), or NULL: then the queue. */
fk_node *fk__extras_take(fk_worker *worker, fk_cell *cell);

#endif /* FK_CORE_EXTRAS_H */

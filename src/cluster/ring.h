/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_RING_H
#define FK_CLUSTER_RING_H

/* Doubly linked, through a head that is one of them: what is in a ring leaves it without knowing
 * which one it is in. */

#include "base/base.h"

typedef struct fk_ring {
    struct fk_ring *next, *prev;
} fk_ring;

static inline void fk__ring_init(fk_ring *ring)
{
    ring->next = ring->prev = ring;
}

static inline bool fk__ring_is_empty(const fk_ring *ring)
{
    return ring->next == ring;
}

/* Before `ring`: last, when that is the head. */
static inline void fk__ring_put(fk_ring *ring, fk_ring *item)
{
    item->next = ring;
    item->prev = ring->prev;
    ring->prev->next = item;
    ring->prev = item;
}

/* Leaves it alone in a ring of its own, so that leaving twice does no harm. */
static inline void fk__ring_leave(fk_ring *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    fk__ring_init(item);
}

#endif /* FK_CLUSTER_RING_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/bonds.h"

enum { BOND_FREE = 0, BOND_HEAD, BOND_TIED, BOND_ENDED };

/* ---- records and buckets ------------------------------------------------------------------- */

static uint32_t *bonds_bucket(const fk_bonds *b, uint64_t watchee, uint64_t watcher)
{
    uint64_t hash = fk__mix64(watchee ^ fk__mix64(watcher ^ b->key));
    return &b->bucket[hash & (b->bucket_count - 1)];
}

static void bonds_chain(fk_bonds *b, uint32_t index)
{
    fk_bond *bond = &b->bond[index];
    uint32_t *bucket = bonds_bucket(b, bond->watchee, bond->watcher);
    bond->chain = *bucket;
    *bucket = index;
}

static void bonds_unchain(fk_bonds *b, uint32_t index)
{
    const fk_bond *bond = &b->bond[index];
    uint32_t *link = bonds_bucket(b, bond->watchee, bond->watcher);
    while (*link != index) link = &b->bond[*link].chain;
    *link = bond->chain;
}

uint32_t fk__bonds_find(const fk_bonds *bonds, fk_bond_side side, uint64_t watchee,
                        uint64_t watcher)
{
    uint32_t index = *bonds_bucket(bonds, watchee, watcher);
    while (index != 0) {
        const fk_bond *bond = &bonds->bond[index];
        if (bond->watchee == watchee && bond->watcher == watcher && bond->side == side) break;
        index = bond->chain;
    }
    return index;
}

static uint32_t bonds_alloc(fk_bonds *b)
{
    uint32_t index = b->free;
    if (index == 0) return ++b->used;
    b->free = b->bond[index].chain;
    b->free_count--;
    return index;
}

static void bonds_free(fk_bonds *b, uint32_t index)
{
    b->bond[index] = (fk_bond){ .chain = b->free, .state = BOND_FREE };
    b->free = index;
    b->free_count++;
}

static uint32_t bonds_room(const fk_bonds *b)
{
    return b->capacity - 1 - b->used + b->free_count;
}

static void bonds_lend(fk_bonds *b, fk_bond *bond, uint32_t capacity, uint32_t *bucket,
                       uint32_t bucket_count)
{
    FK_ASSERT(capacity > 0);
    FK_ASSERT(bucket_count > 0);
    FK_ASSERT((bucket_count & (bucket_count - 1)) == 0);
    b->bond = bond;
    b->capacity = capacity;
    b->bucket = bucket;
    b->bucket_count = bucket_count;
    memset(bucket, 0, bucket_count * sizeof(*bucket));
}

void fk__bonds_init(fk_bonds *bonds, fk_bond *bond, uint32_t capacity, uint32_t *bucket,
                    uint32_t bucket_count, uint64_t key)
{
    *bonds = (fk_bonds){ .key = key };
    bonds_lend(bonds, bond, capacity, bucket, bucket_count);
    bond[0] = (fk_bond){ .state = BOND_FREE };
}

void fk__bonds_move(fk_bonds *bonds, fk_bond *bond, uint32_t capacity, uint32_t *bucket,
                    uint32_t bucket_count)
{
    FK_ASSERT(capacity >= bonds->capacity);
    memcpy(bond, bonds->bond, ((size_t)bonds->used + 1) * sizeof(*bond));
    bonds_lend(bonds, bond, capacity, bucket, bucket_count);
    for (uint32_t i = 1; i <= bonds->used; i++) {
        if (bond[i].state == BOND_HEAD || bond[i].state == BOND_TIED) bonds_chain(bonds, i);
    }
}

/* ---- lists --------------------------------------------------------------------------------- */

static fk_bond_list *bonds_list(const fk_bond *bond)
{
    return &bond->node->list[bond->side];
}

static void bonds_join_node(fk_bonds *b, uint32_t index)
{
    fk_bond *bond = &b->bond[index];
    fk_bond_list *list = bonds_list(bond);
    bond->node_prev = list->last;
    bond->node_next = 0;
    if (list->last != 0)
        b->bond[list->last].node_next = index;
    else
        list->first = index;
    list->last = index;
    list->count++;
}

static void bonds_leave_node(fk_bonds *b, uint32_t index)
{
    const fk_bond *bond = &b->bond[index];
    fk_bond_list *list = bonds_list(bond);
    if (bond->node_prev != 0)
        b->bond[bond->node_prev].node_next = bond->node_next;
    else
        list->first = bond->node_next;
    if (bond->node_next != 0)
        b->bond[bond->node_next].node_prev = bond->node_prev;
    else
        list->last = bond->node_prev;
    list->count--;
}

/* At the end of its watchee's ring. */
static void bonds_join_ring(fk_bonds *b, uint32_t head, uint32_t index)
{
    fk_bond *bond = &b->bond[index];
    bond->prev = b->bond[head].prev;
    bond->next = head;
    b->bond[bond->prev].next = index;
    b->bond[head].prev = index;
}

/* True: the ring is empty, and its head gone, too. */
static bool bonds_leave_ring(fk_bonds *b, uint32_t index)
{
    const fk_bond *bond = &b->bond[index];
    uint32_t prev = bond->prev, next = bond->next;
    b->bond[prev].next = next;
    b->bond[next].prev = prev;
    if (prev != next || b->bond[prev].state != BOND_HEAD) return false;
    bonds_unchain(b, prev);
    bonds_free(b, prev);
    return true;
}

static bool bonds_untie(fk_bonds *b, uint32_t index)
{
    FK_ASSERT(b->bond[index].state == BOND_TIED);
    bonds_unchain(b, index);
    bonds_leave_node(b, index);
    return bonds_leave_ring(b, index);
}

/* ---- bonds --------------------------------------------------------------------------------- */

static uint32_t bonds_head(fk_bonds *b, fk_bond_side side, uint64_t watchee)
{
    uint32_t head = bonds_alloc(b);
    b->bond[head] = (fk_bond){
        .watchee = watchee, .prev = head, .next = head, .state = BOND_HEAD, .side = (uint8_t)side
    };
    bonds_chain(b, head);
    return head;
}

fk_err fk__bonds_add(fk_bonds *bonds, fk_bond_side side, fk_bond_node *node, uint64_t watchee,
                     uint64_t watcher, bool *is_first)
{
    FK_ASSERT(watchee != 0);
    FK_ASSERT(watcher != 0);
    uint32_t head = fk__bonds_find(bonds, side, watchee, 0);
    *is_first = head == 0;
    if (bonds_room(bonds) < (head == 0 ? 2u : 1u)) return FK_E_FULL;
    if (head == 0) head = bonds_head(bonds, side, watchee);
    uint32_t index = bonds_alloc(bonds);
    bonds->bond[index] = (fk_bond){ .watchee = watchee,
                                    .watcher = watcher,
                                    .node = node,
                                    .state = BOND_TIED,
                                    .side = (uint8_t)side };
    bonds_chain(bonds, index);
    bonds_join_node(bonds, index);
    bonds_join_ring(bonds, head, index);
    return FK_OK;
}

bool fk__bonds_remove(fk_bonds *bonds, uint32_t index)
{
    bool is_last = bonds_untie(bonds, index);
    bonds_free(bonds, index);
    return is_last;
}

void fk__bonds_end(fk_bonds *bonds, uint32_t index, fk_bond_end end)
{
    bonds_untie(bonds, index);
    fk_bond *bond = &bonds->bond[index];
    bond->state = BOND_ENDED;
    bond->end = (uint8_t)end;
    bond->chain = 0;
    if (bonds->ended_last != 0)
        bonds->bond[bonds->ended_last].chain = index;
    else
        bonds->ended_first = index;
    bonds->ended_last = index;
}

void fk__bonds_end_watchee(fk_bonds *bonds, uint32_t head, fk_bond_end end)
{
    FK_ASSERT(bonds->bond[head].state == BOND_HEAD);
    uint32_t next;
    do { /* with the last one the head goes, and may not be asked any more */
        uint32_t index = bonds->bond[head].next;
        next = bonds->bond[index].next;
        fk__bonds_end(bonds, index, end);
    } while (next != head);
}

void fk__bonds_end_node(fk_bonds *bonds, fk_bond_node *node, fk_bond_side side, fk_bond_end end)
{
    while (node->list[side].first != 0) fk__bonds_end(bonds, node->list[side].first, end);
}

uint64_t fk__bonds_tell(fk_bonds *bonds, const fk_bond_node *node, fk_bond_end end,
                        uint32_t *cursor)
{
    uint32_t i = *cursor == 0 ? bonds->ended_first : bonds->bond[*cursor].chain;
    while (i != 0 && (bonds->bond[i].node != node || bonds->bond[i].end != end)) {
        i = bonds->bond[i].chain;
    }
    *cursor = i;
    if (i == 0) return 0;
    bonds->bond[i].end = FK_BOND_END_NONE;
    return bonds->bond[i].watchee;
}

bool fk__bonds_take(fk_bonds *bonds, fk_bond_ended *out)
{
    uint32_t index = bonds->ended_first;
    if (index == 0) return false;
    const fk_bond *bond = &bonds->bond[index];
    *out = (fk_bond_ended){ bond->watchee, bond->watcher, bond->node, (fk_bond_end)bond->end };
    bonds->ended_first = bond->chain;
    if (bonds->ended_first == 0) bonds->ended_last = 0;
    bonds_free(bonds, index);
    return true;
}

/* ---- invariants ---------------------------------------------------------------------------- */

static void bonds_check_ring(const fk_bonds *b, uint32_t head)
{
    uint32_t index = head;
    FK_ASSERT(b->bond[head].next != head);
    do {
        const fk_bond *bond = &b->bond[index];
        FK_ASSERT(bond->watchee == b->bond[head].watchee);
        FK_ASSERT(bond->side == b->bond[head].side);
        FK_ASSERT(b->bond[bond->next].prev == index);
        FK_ASSERT(index == head || bond->state == BOND_TIED);
        index = bond->next;
    } while (index != head);
}

void fk__bonds_check(const fk_bonds *bonds)
{
    uint32_t free = 0, ended = 0, ended_listed = 0;
    FK_ASSERT(bonds->used < bonds->capacity);
    for (uint32_t i = 1; i <= bonds->used; i++) {
        const fk_bond *bond = &bonds->bond[i];
        free += bond->state == BOND_FREE;
        ended += bond->state == BOND_ENDED;
        if (bond->state == BOND_HEAD) bonds_check_ring(bonds, i);
        if (bond->state != BOND_HEAD && bond->state != BOND_TIED) continue;
        FK_ASSERT(fk__bonds_find(bonds, (fk_bond_side)bond->side, bond->watchee, bond->watcher) ==
                  i);
    }
    for (uint32_t i = bonds->ended_first; i != 0; i = bonds->bond[i].chain) ended_listed++;
    FK_ASSERT(free == bonds->free_count);
    FK_ASSERT(ended == ended_listed);
}

void fk__bonds_check_node(const fk_bonds *bonds, const fk_bond_node *node)
{
    for (uint32_t side = 0; side < FK_BOND_SIDES; side++) {
        uint32_t count = 0, last = 0;
        for (uint32_t i = node->list[side].first; i != 0; i = bonds->bond[i].node_next, count++) {
            FK_ASSERT(bonds->bond[i].state == BOND_TIED);
            FK_ASSERT(bonds->bond[i].node == node);
            FK_ASSERT(bonds->bond[i].side == side);
            FK_ASSERT(bonds->bond[i].node_prev == last);
            last = i;
        }
        FK_ASSERT(node->list[side].last == last);
        FK_ASSERT(node->list[side].count == count);
    }
}

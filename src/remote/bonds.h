/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_BONDS_H
#define FK_REMOTE_BONDS_H

/*
 * Bonds: who watches whom across the border between two systems. A bond is a pair of actors, of
 * whom one is here and one at a node; actors are numbers of the caller's choice, not 0. It is found
 * by its pair, by its watchee and by its node, each in constant time, and lists keep the order in
 * which bonds were made, so that the same calls give the same results.
 *
 * A bond that ends moves to one list of all that have ended, with the reason, and is taken from
 * there once: so everybody is told exactly once, however many ends come together, and may watch
 * again before it has been told.
 *
 * Memory is one array of records and one of buckets, both the caller's; records refer to each other
 * by index, so that a larger array may take their place (fk__bonds_move). Index 0 is nobody.
 */

#include "base/hash.h"

typedef enum fk_bond_side {
    FK_BOND_OURS = 0, /* the watcher is here */
    FK_BOND_THEIRS,   /* the watchee is here */
    FK_BOND_SIDES
} fk_bond_side;

typedef enum fk_bond_end {
    FK_BOND_END_NONE = 0,   /* it has not, or has been told before it was taken */
    FK_BOND_END_TERMINATED, /* ours: the watchee has stopped; tell the watcher */
    FK_BOND_END_LOST,       /* ours: its node is gone; tell the watcher (AddressTerminated) */
    FK_BOND_END_STOPPED,    /* theirs: the watchee has stopped; tell the node */
    FK_BOND_END_FORGOTTEN,  /* theirs: the watcher's node is gone; let the watchee forget it */
    FK_BOND_END_COUNT
} fk_bond_end;

/* The bonds of one node and side. All zero is none. */
typedef struct fk_bond_list {
    uint32_t first, last, count;
} fk_bond_list;

typedef struct fk_bond_node {
    fk_bond_list list[FK_BOND_SIDES];
} fk_bond_node;

typedef struct fk_bond {
    uint64_t watchee, watcher; /* watcher 0: the head of the bonds that have this watchee */
    fk_bond_node *node;
    uint32_t chain;      /* next in its bucket, of the free ones, of those that have ended */
    uint32_t prev, next; /* of one watchee: a ring that the head closes */
    uint32_t node_prev, node_next;
    uint8_t state; /* 0: free */
    uint8_t side, end;
} fk_bond;

/* For all but the functions below: to read. */
typedef struct fk_bonds {
    fk_bond *bond;
    uint32_t *bucket;
    uint32_t capacity; /* records, of which the first is not used */
    uint32_t bucket_count;
    uint32_t used; /* records that were ever in use */
    uint32_t free; /* of those, the first that is not any more */
    uint32_t free_count;
    uint32_t ended_first, ended_last;
    uint64_t key;
} fk_bonds;

/* What a bond was. */
typedef struct fk_bond_ended {
    uint64_t watchee, watcher;
    fk_bond_node *node;
    fk_bond_end end;
} fk_bond_ended;

/* bucket: a power of two of them. key should be random: peers choose some of the numbers. */
void fk__bonds_init(fk_bonds *bonds, fk_bond *bond, uint32_t capacity, uint32_t *bucket,
                    uint32_t bucket_count, uint64_t key);
/* The same bonds in other memory, not smaller; the old one is the caller's again. */
void fk__bonds_move(fk_bonds *bonds, fk_bond *bond, uint32_t capacity, uint32_t *bucket,
                    uint32_t bucket_count);
void fk__bonds_check(const fk_bonds *bonds);
/* That the node's lists are whole and all of that side. */
void fk__bonds_check_node(const fk_bonds *bonds, const fk_bond_node *node);

/* Index of the bond, or with watcher 0 of the head; 0: there is none. */
uint32_t fk__bonds_find(const fk_bonds *bonds, fk_bond_side side, uint64_t watchee,
                        uint64_t watcher);
/* There must be none yet. A new watchee takes two records. FK_E_FULL; is_first: of its watchee. */
FK_MUST_USE fk_err fk__bonds_add(fk_bonds *bonds, fk_bond_side side, fk_bond_node *node,
                                 uint64_t watchee, uint64_t watcher, bool *is_first);
/* Nobody is told. True: it was the last of its watchee. */
bool fk__bonds_remove(fk_bonds *bonds, uint32_t index);
/* It goes to those that have ended. */
void fk__bonds_end(fk_bonds *bonds, uint32_t index, fk_bond_end end);
/* All of a watchee, or of a node and side. */
void fk__bonds_end_watchee(fk_bonds *bonds, uint32_t head, fk_bond_end end);
void fk__bonds_end_node(fk_bonds *bonds, fk_bond_node *node, fk_bond_side side, fk_bond_end end);

/* The next of a node that has ended so and is not taken yet: who is told now, and is taken with
 * FK_BOND_END_NONE. *cursor begins at 0; 0: that was all. */
uint64_t fk__bonds_tell(fk_bonds *bonds, const fk_bond_node *node, fk_bond_end end,
                        uint32_t *cursor);
/* The next one that has ended, oldest first; false: there is none. */
FK_MUST_USE bool fk__bonds_take(fk_bonds *bonds, fk_bond_ended *out);

#endif /* FK_REMOTE_BONDS_H */

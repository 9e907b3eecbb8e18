/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_MEMBER_H
#define FK_MEMBER_H

/*
 * Grains by name, the members of a cluster, and strategies that say which of them should own what.
 * All of it is numbers and texts: nothing here allocates, and every machine comes to the same result.
 */

#include "fraktor/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FK_GRAIN_KEY_MAX    4096u /* bytes of a key, which may be any */
#define FK_KIND_NAME_MAX    63u   /* bytes of a kind's name: a legal actor name */
#define FK_MEMBER_TEXT_MAX  255u  /* bytes of a member's id and of its address */
#define FK_MEMBER_KINDS_MAX 64u   /* of one member */
#define FK_SLOTS_DEFAULT    16384u
#define FK_SLOTS_MAX        1048576u

/* ---- grains and members ----------------------------------------------------------------------- */

/* 128 bits that stand for kind and key, the same on every machine. Nothing in it is secret, so whoever
 * takes keys from strangers compares the keys, too, before two of one id are the same grain. */
typedef struct fk_grain_id {
    uint64_t hi, lo;
} fk_grain_id;

/* Borrowed. */
typedef struct fk_grain_key {
    fk_str kind;
    fk_str key;
    fk_grain_id id; /* fk_grain_key_of() */
} fk_grain_key;

/* FK_E_KEY: the key is empty or too long; FK_E_UNKNOWN_KIND: no kind can have that name, which is that of
 * an actor without escapes, so that each has one spelling. */
FK_API FK_MUST_USE fk_err fk_grain_key_of(fk_str kind, fk_str key, fk_grain_key *out);

static inline bool fk_grain_id_equal(fk_grain_id a, fk_grain_id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

typedef enum fk_member_status {
    FK_MEMBER_JOINING = 0, /* has a lease, owns nothing yet */
    FK_MEMBER_UP,
    FK_MEMBER_DRAINING, /* gives its slots away, and gets none */
    FK_MEMBER_DOWN,     /* its lease is over */
} fk_member_status;

FK_API const char *fk_member_status_name(fk_member_status status); /* "up" */

/* Borrowed with the view it is in. */
typedef struct fk_member {
    fk_str id;            /* "bank@127.0.0.1:4001" */
    uint64_t incarnation; /* 1, and one more each time it joins */
    fk_str address;       /* "fraktor.tcp://bank@127.0.0.1:4001" */
    const fk_str *kinds;
    uint32_t kind_count;
    uint32_t weight; /* its share, compared with others; 0: owns nothing */
    fk_member_status status;
} fk_member;

/* Who is there. Of two views the one with the higher version is newer; equal ones are the same. */
typedef struct fk_view {
    uint64_t version; /* 0: none */
    const fk_member *members;
    uint32_t count;
} fk_view;

/* ---- strategies: who should own a slot --------------------------------------------------------- */

#define FK_NOBODY UINT32_MAX

/* Members that can own slots of one kind, in the order of their ids. */
typedef struct fk_candidate {
    uint64_t seed; /* hash of its id */
    uint32_t weight;
} fk_candidate;

typedef struct fk_strategy_ops {
    const char *name; /* checked when a member joins: all must use the same */
    /* owner[slot]: index of the candidate, FK_NOBODY when there is none. score: as many numbers of the
     * strategy's own, kept with the table. */
    void (*build)(const fk_candidate *candidates, uint32_t count, uint32_t slots, uint32_t *owner,
                  uint64_t *score);
    /* The same as build(), with no more work than what changes. Both get the list that has the
     * candidate in it, at `index`, and its length: the new list to add, the old one to remove. The
     * owners come in by the indices before the change and leave by those after it: whoever is behind
     * `index` moves by one. */
    void (*add)(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                uint32_t *owner, uint64_t *score);
    void (*remove)(const fk_candidate *candidates, uint32_t count, uint32_t index, uint32_t slots,
                   uint32_t *owner, uint64_t *score);
} fk_strategy_ops;

/* Weighted rendezvous, computed once for each slot. Ties go to the smaller id. */
extern FK_API const fk_strategy_ops fk_strategy_rendezvous;

/* Score of a member for a slot; the highest owns it. The same number on every machine. 0 only of
 * weight 0, which owns nothing. */
FK_API uint64_t fk_rendezvous_score(uint64_t member_seed, uint32_t slot, uint32_t weight);
FK_API uint64_t fk_member_seed(fk_str id);

static inline uint32_t fk_slot_of(fk_grain_id id, uint32_t slots)
{
    return (uint32_t)id.lo & (slots - 1);
}

#ifdef __cplusplus
}
#endif
#endif /* FK_MEMBER_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_TOMBS_H
#define FK_REMOTE_TOMBS_H

/*
 * Uids of systems that must not come back, and whose authority is no longer known: it has given way to
 * others. As long as there is an authority it remembers them itself (remote/uids.h).
 *
 * A tomb is of one uid at one address, for which its hash stands, so that nobody can have a uid
 * buried that is another's. There is a bound; beyond it, or without memory, the oldest goes, and is
 * counted. Burying cannot fail.
 */

#include "base/mem.h"

typedef struct fk_tomb {
    uint64_t address; /* hash of it, with a secret key */
    uint64_t uid;     /* 0: empty again */
    uint32_t next;    /* in its bucket, and 1; 0: the last */
} fk_tomb;

/* For all but the functions below: to read. */
typedef struct fk_tombs {
    fk_mem *mem;
    uint32_t max;
    fk_tomb *tomb;          /* a ring */
    uint32_t *bucket;       /* the first of each, and 1; as many as tombs */
    uint32_t capacity;      /* 0, or a power of two */
    uint32_t oldest, count; /* places in use, from the oldest on */
    uint64_t forgotten;     /* how many were, for want of room */
} fk_tombs;

/* Allocates nothing. max: at least 1. */
void fk__tombs_init(fk_tombs *tombs, fk_mem *mem, uint32_t max);
void fk__tombs_fini(fk_tombs *tombs);
void fk__tombs_add(fk_tombs *tombs, uint64_t address, uint64_t uid);
bool fk__tombs_has(const fk_tombs *tombs, uint64_t address, uint64_t uid);
/* False: there is none. */
bool fk__tombs_remove(fk_tombs *tombs, uint64_t address, uint64_t uid);

#endif /* FK_REMOTE_TOMBS_H */

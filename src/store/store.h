/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_STORE_STORE_H
#define FK_STORE_STORE_H

/* What the built-in stores share: how an op is answered, what input is refused, and time. */

#include "base/base.h"
#include "base/mem.h"
#include "fraktor/store.h"

#define FK_STORE_TOMB_NS       FK_MINUTES(60) /* that long the fence of a removed grain is kept */
#define FK_STORE_MISMATCH_TEXT "the cluster of that store has another strategy or number of slots"
#define FK_STORE_KINDS_MAX     (FK_MEMBER_KINDS_MAX * (FK_KIND_NAME_MAX + 1))

/* Zeroes what goes out, and refuses what no store can do. False: it is answered. */
bool fk__store_begin(fk_store_op *op);
bool fk__store_is_write(fk_store_verb verb);
bool fk__store_has_claims(fk_store_verb verb);

void fk__store_refuse(fk_store_op *op, fk_err err, const char *reason);
void fk__store_unknown(fk_store_op *op, fk_err err, const char *reason);
/* The row's epoch is in the way. */
void fk__store_fenced(fk_store_op *op, uint64_t epoch);
void fk__store_lease_over(fk_store_op *op);
/* The incarnation of whoever joins, after the last one of that id (0: none), unless it was another and
 * that one is up. */
void fk__store_join_next(fk_store_op *op, uint64_t last, bool is_up);

/* NULL, false: there is no memory, and the op is refused. */
void *fk__store_room(fk_store_op *op, size_t size);
bool fk__store_copy(fk_store_op *op, fk_str from, fk_str *to);

/* Names of kinds with a space between them, which none can have in it. out: FK_STORE_KINDS_MAX. */
fk_str fk__store_kinds_join(const fk_member *member, char *out);
/* Back into member->kinds, in memory of the op. */
bool fk__store_kinds_split(fk_store_op *op, fk_str text, fk_member *member);

/* The boot clock: it counts while the machine sleeps, and nobody can set it. */
fk_time fk__store_clock(void);

static inline fk_str fk__str_or_empty(fk_str s)
{
    return s.ptr != NULL ? s : FK_STR("");
}

static inline bool fk__str_same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

#endif /* FK_STORE_STORE_H */

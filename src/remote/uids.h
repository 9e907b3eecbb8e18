/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_UIDS_H
#define FK_REMOTE_UIDS_H

/*
 * The uids of systems that were quarantined at one authority. They must not come back: a peer that
 * has been given up may still believe in state (watches, half a conversation) that this side has
 * buried.
 *
 * The set is bounded, because whoever can complete a handshake can restart and be quarantined as
 * often as he likes. When it is full, a uid that has been in it for `keep` may give way to the next
 * one; while all are younger, no further uid is let in, so that nobody can flush an old uid out by
 * bringing many new ones.
 *
 * Room for a uid is made when its handshake is accepted (fk__uids_reserve, which may fail), not
 * when it is quarantined (fk__uids_add, which may not).
 */

#include "base/mem.h"

typedef struct fk_uid_mark {
    uint64_t uid;
    fk_time at; /* when it was quarantined */
} fk_uid_mark;

/* All zero is the empty set. */
typedef struct fk_uids {
    fk_uid_mark *mark; /* oldest first */
    uint32_t count, capacity;
} fk_uids;

typedef struct fk_uids_limit {
    uint32_t max;
    fk_time keep;
} fk_uids_limit;

bool fk__uids_has(const fk_uids *uids, uint64_t uid);
/* Makes room for one more. FK_E_NOMEM; FK_E_LIMIT: full, and none is old enough to go. *forgotten
 * is the uid that went, or 0. */
FK_MUST_USE fk_err fk__uids_reserve(fk_uids *uids, fk_mem *mem, fk_uids_limit limit, fk_time now,
                                    uint64_t *forgotten);
/* There must be room, unless it is there already: then it counts as new again. */
void fk__uids_add(fk_uids *uids, uint64_t uid, fk_time now);
/* False: it was not there. */
bool fk__uids_remove(fk_uids *uids, uint64_t uid);
/* Each of them has been in it for `keep`, so that all may go. */
bool fk__uids_are_over(const fk_uids *uids, fk_time keep, fk_time now);
void fk__uids_fini(fk_uids *uids, fk_mem *mem);

#endif /* FK_REMOTE_UIDS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_DEDUP_H
#define FK_CLUSTER_DEDUP_H

/*
 * The dedup window of one grain: which calls had their effect, and what was answered; stored in the
 * same row, by the same write, as the state that they changed.
 *
 * A call can come again as long as its origin has not settled it. Each numbered call says which of its
 * origin's are settled (low): those are forgotten, and one of them that still turns up is stale. A
 * call that never left its node (is_single) exists once: it can only come again from an activation
 * whose store had no known outcome. So it is forgotten as soon as it is answered; but one that was
 * read from the row may come any time, even after other calls, and is kept for FK_DEDUP_FORGET. Low
 * says nothing of singles: they are numbered under an origin of their own. Origins that have not been
 * heard of for FK_DEDUP_FORGET (wall clock: their node is long gone) are forgotten, too. What cannot be
 * forgotten is bounded: FK_E_OVERLOADED.
 */

#include "base/mem.h"
#include "cluster/call.h"

#define FK_DEDUP_FORGET      FK_MINUTES(10)
#define FK_DEDUP_ENTRIES_MAX 4096u
#define FK_DEDUP_BYTES_MAX   ((size_t)1 << 20)

typedef struct fk_dedup {
    fk_mem *mem;
    struct fk_dedup_origin *origins;
    uint32_t origin_count;
    uint32_t entries;
    size_t bytes; /* of answers */
} fk_dedup;

typedef enum fk_dedup_verdict {
    FK_DEDUP_NEW = 0,
    FK_DEDUP_SEEN,  /* *answer is what was answered; lent until the window changes */
    FK_DEDUP_STALE, /* its origin does not want to know any more */
} fk_dedup_verdict;

void fk__dedup_init(fk_dedup *dedup, fk_mem *mem);
void fk__dedup_fini(fk_dedup *dedup);
fk_dedup_verdict fk__dedup_check(const fk_dedup *dedup, fk_request request, fk_str *answer);
/* The call has had its effect. answer is copied; its ptr is NULL when there is none. Of one that is
 * noted already the first answer stays. FK_E_LIMIT (it is too long), FK_E_OVERLOADED, FK_E_NOMEM: not
 * noted. */
FK_MUST_USE fk_err fk__dedup_note(fk_dedup *dedup, fk_request request, bool is_single,
                                  fk_str answer, fk_time wall);
/* That origin has settled all that are smaller. Of one that has nothing noted, nothing is kept. */
void fk__dedup_settle(fk_dedup *dedup, uint64_t origin, uint64_t low, fk_time wall);
/* What was noted up to here is stored, and the answers are on their way: singles are forgotten, except
 * those that were read. */
void fk__dedup_answered(fk_dedup *dedup);
/* Forgets what is too old, and who has not been heard of. Any time. */
void fk__dedup_tidy(fk_dedup *dedup, fk_time wall);
/* True: no call should be run that may have to be noted. */
bool fk__dedup_is_full(const fk_dedup *dedup);
/* As bytes, the same everywhere. */
size_t fk__dedup_measure(const fk_dedup *dedup);
void fk__dedup_encode(const fk_dedup *dedup, unsigned char *to, size_t size);
/* Into an empty window; no bytes are an empty one. FK_E_CORRUPT, FK_E_NOMEM: it is empty still. */
FK_MUST_USE fk_err fk__dedup_decode(fk_dedup *dedup, fk_str bytes);
void fk__dedup_check_all(const fk_dedup *dedup);

#endif /* FK_CLUSTER_DEDUP_H */

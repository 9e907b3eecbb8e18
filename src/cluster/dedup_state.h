/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_DEDUP_STATE_H
#define FK_CLUSTER_DEDUP_STATE_H

/* What a dedup window consists of: for dedup.c, which keeps it, and dedup_bytes.c, which writes and
 * reads it. */

#include "cluster/dedup.h"

typedef struct fk_dedup_entry {
    uint64_t seq;
    uint64_t noted_ms; /* wall clock; of a single one only, whose origin cannot settle it */
    char *bytes;       /* of the answer; NULL when there are none */
    uint32_t size;
    bool is_single;
    bool is_own; /* noted here, not read */
    bool has_answer;
} fk_dedup_entry;

typedef struct fk_dedup_origin {
    struct fk_dedup_origin *next; /* its number is greater */
    uint64_t origin;
    uint64_t low;
    uint64_t heard_ms; /* wall clock */
    fk_dedup_entry *entry;
    uint32_t count, capacity;
} fk_dedup_origin;

/* The origin of that number, made if there is none. FK_E_OVERLOADED, FK_E_NOMEM. */
FK_MUST_USE fk_err fk__dedup_origin_get(fk_dedup *dedup, uint64_t number, fk_dedup_origin **out);
FK_MUST_USE fk_err fk__dedup_origin_grow(fk_dedup *dedup, fk_dedup_origin *origin,
                                         uint32_t capacity);
/* entry: all but the answer, which is copied. Its seq is not there yet. */
FK_MUST_USE fk_err fk__dedup_entry_add(fk_dedup *dedup, fk_dedup_origin *origin,
                                       const fk_dedup_entry *entry, fk_str answer);

#endif /* FK_CLUSTER_DEDUP_STATE_H */

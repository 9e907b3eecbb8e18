/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_PIDS_H
#define FK_CLUSTER_PIDS_H

/*
 * The PID cache: grains that were found elsewhere than the table says. A hint and nothing more:
 * whoever is asked by it checks for itself. The least recently used goes when there are too many,
 * each goes when its time is up.
 */

#include "base/map.h"
#include "cluster/ring.h"
#include "fraktor/placement.h"

typedef struct fk_pid {
    fk_ring used;        /* fk_pids.used, least recently first */
    fk_ring made;        /* fk_pids.made, oldest first */
    struct fk_pid *next; /* of the same low half of the id */
    fk_grain_id id;
    fk_time expires_at;
    uint64_t incarnation;
    uint16_t kind_len, key_len, authority_len;
    char text[]; /* kind, key, authority */
} fk_pid;

typedef struct fk_pids {
    fk_cache *cache;
    fk_map map; /* by the low half */
    fk_ring used, made;
    uint32_t count, capacity; /* capacity 0: nothing is kept */
    fk_time ttl;
} fk_pids;

void fk__pids_init(fk_pids *pids, fk_cache *cache, uint32_t capacity, fk_time ttl);
void fk__pids_fini(fk_pids *pids);
/* Looks, and counts as a use when `now` is before its end. NULL: there is none; one whose time is up
 * is returned by fk__pids_expired() only. */
fk_pid *fk__pids_get(fk_pids *pids, fk_grain_id id, fk_time now);
fk_pid *fk__pids_find(const fk_pids *pids, fk_grain_id id);
/* The one that has to go first, to make room for one more; NULL: there is room. */
fk_pid *fk__pids_surplus(const fk_pids *pids);
/* The oldest, if its time is up. */
fk_pid *fk__pids_expired(const fk_pids *pids, fk_time now);
/* When that is; FK_NEVER. */
fk_time fk__pids_deadline(const fk_pids *pids);
/* Copied. NULL: no memory, or nothing is kept. The key must not be in it. */
fk_pid *fk__pids_put(fk_pids *pids, const fk_grain_key *key, fk_str authority, uint64_t incarnation,
                     fk_time now);
void fk__pids_drop(fk_pids *pids, fk_pid *pid);

static inline fk_grain_key fk__pid_key(const fk_pid *pid)
{
    return (fk_grain_key){ { pid->text, pid->kind_len },
                           { pid->text + pid->kind_len, pid->key_len },
                           pid->id };
}

static inline fk_str fk__pid_authority(const fk_pid *pid)
{
    return (fk_str){ pid->text + pid->kind_len + pid->key_len, pid->authority_len };
}

#endif /* FK_CLUSTER_PIDS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_ACTIVATION_H
#define FK_CLUSTER_ACTIVATION_H

/*
 * An activation: the turns of one grain, and the rule that nothing it says is heard before what it
 * did is stored.
 *
 * Of a durable grain, turns are run one after the other, and what they answer and send is kept back.
 * When there is something to store, one store takes state and dedup window; meanwhile no turn is run
 * (WAIT). When it is acknowledged, everything goes out; when it was refused, or its outcome is not
 * known, nothing does: the activation is broken, its calls go back to the desk, and whoever activates
 * next reads the row. Pure, as the desk is: the grain's actor and the simulator both drive it.
 */

#include "cluster/dedup.h"

typedef enum fk_admission {
    FK_ADMIT_RUN = 0,
    FK_ADMIT_ANSWER, /* it was answered before: *answer again; an FK_PLACEMENT_DEDUPLICATED */
    FK_ADMIT_DROP,   /* stale: nobody waits for it */
    FK_ADMIT_WAIT, /* a store is under way, or (when it was answered in this batch) has to be begun:
                      * offer it again after that */
    FK_ADMIT_BACK, /* broken, or the lease is over: give it back to the desk */
    FK_ADMIT_OVERLOADED, /* too much is noted: FK_E_OVERLOADED to the caller, unless
                          * fk__activation_make_room() */
} fk_admission;

typedef struct fk_activation {
    fk_dedup dedup;
    fk_fence fence;         /* its holder is the caller's, who keeps it */
    uint64_t version;       /* of the row */
    uint64_t snapshot_hash; /* of the state after the last turn */
    fk_request last;        /* of the last store that was begun: two numbers that stand for what it
                             * stores, so that only the very same is taken for the same */
    uint32_t unstored;      /* turns that were run since the last store */
    bool is_durable;
    bool is_storing;
    bool is_broken;
    bool is_dirty; /* there is something to store */
} fk_activation;

enum { FK_ACTIVATION_BATCH_MAX = 64 };

/* dedup, snapshot: what was loaded, and version the row's after StoreActivation; ptr NULL and 0 for a
 * grain without row. FK_E_CORRUPT, FK_E_NOMEM. */
typedef struct fk_activation_start {
    bool is_durable;
    fk_fence fence;
    uint64_t version;
    fk_str dedup, snapshot;
} fk_activation_start;
FK_MUST_USE fk_err fk__activation_init(fk_activation *a, fk_mem *mem,
                                       const fk_activation_start *start);
void fk__activation_fini(fk_activation *a);

/* May this call be run now? now, lease_deadline: of the node; a request with origin 0 is of no call (a
 * timer's message, an answer to it): never a duplicate. */
fk_admission fk__activation_admit(fk_activation *a, const fk_request *request,
                                  const fk_request *earlier, fk_time now, fk_time lease_deadline,
                                  fk_str *answer);
/* Forgets what a call says is settled (low, unless is_single: as in dedup.h), and what is old. True: the
 * call may be run. */
bool fk__activation_make_room(fk_activation *a, const fk_request *request, bool is_single,
                              uint64_t low, fk_time wall);
/* It was run. is_single: as in dedup.h, of a durable grain only. answer: encoded, noted when there is
 * something to store; has_sent: it sent something else than its answer. snapshot: the state after it.
 * FK_E_OVERLOADED, FK_E_NOMEM: the activation is broken, because what was done cannot be stored.
 * FK_E_STATE: it was broken before. */
typedef struct fk_grain_turn {
    fk_request request;
    uint64_t low;
    bool is_single;
    bool has_answer;
    bool has_sent;
    fk_str answer;
    fk_str snapshot;
    fk_time wall;
} fk_grain_turn;
FK_MUST_USE fk_err fk__activation_ran(fk_activation *a, const fk_grain_turn *turn);
/* True: what was kept back may go out now. What has to be stored is a matter of is_dirty. */
bool fk__activation_is_clean(const fk_activation *a);
/* True: the next turn may be run before the store: same batch. */
bool fk__activation_has_room(const fk_activation *a);
/* A store begins: its dedup bytes are written to buf (of fk__activation_dedup_size()). No turn until
 * fk__activation_stored(). The store is of a->fence, a->version, a->last. */
size_t fk__activation_dedup_size(fk_activation *a, fk_time wall);
void fk__activation_store_begin(fk_activation *a, unsigned char *buf, size_t size);
/* version: of the row now. True: what was kept back may go out. False: the activation is broken. */
bool fk__activation_stored(fk_activation *a, fk_verdict verdict, uint64_t version);
void fk__activation_break(fk_activation *a);

#endif /* FK_CLUSTER_ACTIVATION_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_JOB_H
#define FK_CLUSTER_JOB_H

/*
 * Jobs: what the cluster wants from the store, and how it is done by somebody else's threads.
 *
 * A job is made by an actor of the cluster (the steward, a grain), goes to the driver, and comes
 * back to that actor as an fk_store_job_done message, once. Everything that the operation points to
 * lies in the job's own block or in memory that op.room() gave, which goes with it.
 */

#include "core/system.h"
#include "fraktor/store.h"

typedef struct fk_store_job fk_store_job;
struct fk_store_job {
    fk_store_op op;     /* first: op.user is not used */
    fk_store_job *next; /* of the driver's queue */
    fk_system *sys;
    fk_ref to;                       /* who made it */
    fk_time asked_at;                /* when it was given to the driver, on the system's clock */
    uint64_t tag[2];                 /* the maker's */
    void *context;                   /* the maker's */
    size_t size;                     /* of the block */
    struct fk_store_job_room *rooms; /* what room() gave */
    fk_node *node; /* the message, made with the job: what was done is told, memory or not */
    bool is_kept;  /* its maker wants it beyond the message: see fk_store_job_done */
    bool is_sent;  /* it is in a message */
};

/* The message. The job is freed with it, whether it was delivered or not, unless its receiver has
 * set is_kept: then the job is that actor's, to be destroyed by it, then or later. */
typedef struct fk_store_job_done {
    fk_store_job *job;
} fk_store_job_done;
extern const fk_type fk__type_store_job_done;

/* A job with so many bytes behind it, zeroed; op.room is set. FK_E_NOMEM, FK_E_LIMIT. Any thread,
 * as all of these; one at a time for the same job. */
FK_MUST_USE fk_err fk__store_job_create(fk_system *sys, size_t extra, fk_store_job **out);
/* The bytes behind it; aligned as a uint64_t. */
static inline void *fk__store_job_extra(fk_store_job *job)
{
    return job + 1;
}
/* While it is in a message that is received: it goes with that. */
void fk__store_job_destroy(fk_store_job *job);
/* Sends it back to its maker; by the driver. It is taken: a maker that is gone is not missed. */
void fk__store_job_return(fk_store_job *job);

/* What the cluster wants from its host. */
typedef struct fk_cluster_port {
    void *ctx;
    /* Any thread; never blocks. The job is taken and comes back, at the latest when the driver
     * closes (UNKNOWN, FK_E_STOPPING). Loads, stores, removals and looks go one way, leases and
     * members another, so that these do not wait for those. Those of one way are done in order. */
    void (*submit)(void *ctx, fk_store_job *job);
    /* Ends the threads after what is queued, and leaves by `member`, unless its id is empty. With
     * the system: no actor runs any more. */
    void (*close)(void *ctx, fk_str id, uint64_t incarnation);
} fk_cluster_port;

#endif /* FK_CLUSTER_JOB_H */

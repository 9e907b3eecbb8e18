/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A job is one block, and a list of others: what a store reads has a size that nobody knows before.
 * They are taken on a thread of the driver and given back on one of the system; the system's memory
 * does not mind.
 */

#include "cluster/job.h"

#include "core/send.h"
#include "fraktor/system.h"

typedef struct fk_store_job_room {
    struct fk_store_job_room *next;
    size_t size; /* with this */
} fk_store_job_room;

_Static_assert(offsetof(fk_store_job, op) == 0, "an op is its job");
_Static_assert(sizeof(fk_store_job) % sizeof(uint64_t) == 0, "what lies behind a job is aligned");
_Static_assert(sizeof(fk_store_job_room) % sizeof(void *) == 0,
               "what lies behind a room is aligned");

static void *store_job_room(fk_store_op *op, size_t size)
{
    fk_store_job *job = FK_CONTAINER(op, fk_store_job, op);
    void *memory;
    if (size > SIZE_MAX - sizeof(fk_store_job_room)) return NULL;
    size += sizeof(fk_store_job_room);
    if (fk__mem_alloc(&job->sys->mem, size, FK_SITE("job room"), &memory) != FK_OK) return NULL;
    fk_store_job_room *room = memory;
    *room = (fk_store_job_room){ job->rooms, size };
    job->rooms = room;
    return room + 1;
}

fk_err fk__store_job_create(fk_system *sys, size_t extra, fk_store_job **out)
{
    void *memory;
    FK_ASSERT(sys != NULL);
    FK_ASSERT(out != NULL);
    if (extra > SIZE_MAX - sizeof(fk_store_job)) return FK_E_NOMEM;
    size_t size = sizeof(fk_store_job) + extra;
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("job"), &memory));
    memset(memory, 0, size);
    fk_store_job *job = memory;
    fk_store_job_done done = { job };
    fk_local *local = fk__local_enter(sys);
    job->node = fk__node_create(&local->cache, (fk_out){ &fk__type_store_job_done, &done });
    fk_err err = job->node != NULL ? FK_OK : local->cache.err;
    fk__local_leave(local);
    if (err != FK_OK) {
        fk__mem_free(&sys->mem, memory, size);
        return err;
    }
    job->sys = sys;
    job->size = size;
    job->op.room = store_job_room;
    *out = job;
    return FK_OK;
}

void fk__store_job_destroy(fk_store_job *job)
{
    if (job == NULL) return;
    if (job->is_sent) { /* the message is about to be dropped, and looks at it */
        job->is_kept = false;
        return;
    }
    fk_mem *mem = &job->sys->mem;
    if (job->node != NULL) { /* it was never sent */
        fk_local *local = fk__local_enter(job->sys);
        fk__node_free(&local->cache, job->node);
        fk__local_leave(local);
    }
    while (job->rooms != NULL) {
        fk_store_job_room *room = job->rooms;
        job->rooms = room->next;
        fk__mem_free(mem, room, room->size);
    }
    fk__mem_free(mem, job, job->size);
}

static void store_job_drop(void *message)
{
    fk_store_job_done *done = message;
    FK_ASSERT(done->job->is_sent);
    done->job->is_sent = false;
    if (!done->job->is_kept) fk__store_job_destroy(done->job);
}

const fk_type fk__type_store_job_done = { "fk_store_job_done", sizeof(fk_store_job_done),
                                          _Alignof(fk_store_job_done) | FK_TYPE_QUIET,
                                          store_job_drop };

void fk__store_job_return(fk_store_job *job)
{
    fk_node *node = job->node;
    FK_ASSERT(!job->is_sent);
    FK_ASSERT(!job->is_kept);
    FK_ASSERT(node != NULL);
    job->is_sent = true;
    job->node = NULL;
    node->sender = 0;
    fk_system *sys = job->sys;
    fk_ref to = job->to;
    fk_local *local = fk__local_enter(sys);
    /* Whatever comes of it, the message is taken, and the job with it. */
    (void)fk__send_node(local, to, node);
    fk__local_leave(local);
}

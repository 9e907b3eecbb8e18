/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/shutdown.h"

enum { JOBS_FIRST = 8 };

/* ---- the table: by id, which only grows ---------------------------------------------------- */

/* Where the id is, or would be. */
static uint32_t job_place(const fk_shutdown *sd, uint64_t id)
{
    uint32_t low = 0, high = sd->job_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sd->job[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static fk_job *job_find(const fk_shutdown *sd, uint64_t id)
{
    uint32_t place = job_place(sd, id);
    return place < sd->job_count && sd->job[place]->id == id ? sd->job[place] : NULL;
}

fk_job *fk__job_next(const fk_shutdown *sd, uint64_t id, uint32_t phase, fk_job_state state)
{
    for (uint32_t i = job_place(sd, id); i < sd->job_count; i++) {
        if (sd->job[i]->phase == phase && sd->job[i]->state == state) return sd->job[i];
    }
    return NULL;
}

static fk_err jobs_reserve(fk_shutdown *sd)
{
    fk_mem *mem = &sd->sys->mem;
    void *memory;
    if (sd->job_count < sd->job_room) return FK_OK;
    uint32_t room = sd->job_room != 0 ? sd->job_room * 2 : JOBS_FIRST;
    FK_TRY(
        fk__mem_alloc(mem, room * sizeof(fk_job *), FK_SITE("table of shutdown tasks"), &memory));
    if (sd->job_count != 0) memcpy(memory, sd->job, sd->job_count * sizeof(fk_job *));
    fk__mem_free(mem, sd->job, sd->job_room * sizeof(fk_job *));
    sd->job = memory;
    sd->job_room = room;
    return FK_OK;
}

fk_err fk__job_add(fk_shutdown *sd, fk_str phase, fk_job *job)
{
    job->phase = fk__phases_find(&sd->phases, phase);
    if (job->phase == FK_PHASE_NONE) return FK_E_NOT_FOUND;
    if (fk__course_has_passed(&sd->course, &sd->phases, job->phase)) return FK_E_STATE;
    FK_TRY(jobs_reserve(sd));
    job->id = ++sd->job_id;
    sd->job[sd->job_count++] = job;
    return FK_OK;
}

static void job_remove(fk_shutdown *sd, fk_job *job)
{
    uint32_t place = job_place(sd, job->id);
    sd->job_count--;
    memmove(&sd->job[place], &sd->job[place + 1], (sd->job_count - place) * sizeof(sd->job[place]));
}

/* ---- making and ending --------------------------------------------------------------------- */

fk_err fk__job_create(fk_local *local, fk_str name, fk_job **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(&local->sys->mem, sizeof(fk_job) + name.len, FK_SITE("shutdown task"),
                         &memory));
    fk_job *job = memory;
    *job = (fk_job){ .name_len = (uint32_t)name.len };
    memcpy(job->name, name.ptr, name.len);
    job->bell = fk__shutdown_bell(&local->cache);
    if (job->bell == NULL) {
        fk_err err = local->cache.err;
        fk__job_free(local, job);
        return err;
    }
    *out = job;
    return FK_OK;
}

void fk__job_free(fk_local *local, fk_job *job)
{
    if (job->bell != NULL) fk__node_free(&local->cache, job->bell);
    if (job->message != NULL) {
        fk__node_drop_contents(&local->cache, job->message);
        fk__node_free(&local->cache, job->message);
    }
    fk__mem_free(&local->sys->mem, job, sizeof(*job) + job->name_len);
}

/* The job is taken. */
static fk_err job_enter(fk_shutdown *sd, fk_local *local, fk_str phase, fk_job *job,
                        fk_shutdown_task *task)
{
    fk_shutdown_task made = { 0 };
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    fk_err err = fk__job_add(sd, phase, job);
    if (err == FK_OK) made.id = job->id; /* it may begin as soon as the lock is free */
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    if (err != FK_OK)
        fk__job_free(local, job);
    else if (task != NULL)
        *task = made;
    return err;
}

fk_err fk_shutdown_task_add(fk_system *sys, fk_str phase, fk_str name, fk_shutdown_fn fn,
                            void *user, fk_shutdown_task *task)
{
    fk_shutdown *sd = NULL;
    fk_job *job = NULL;
    if (sys == NULL || fn == NULL) return FK_E_INVALID;
    FK_TRY(fk__phase_name_check(name));
    FK_TRY(fk__shutdown_need(sys, &sd));
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__job_create(local, name, &job);
    if (err == FK_OK) {
        FK_ASSERT(job != NULL);
        job->fn = fn;
        job->user = user;
        err = job_enter(sd, local, phase, job, task);
    }
    fk__local_leave(local);
    return err;
}

/* The message is taken, if that works. */
static fk_err actor_job_create(fk_local *local, fk_str name, fk_ref actor, fk_out msg, fk_job **out)
{
    FK_TRY(fk__job_create(local, name, out));
    FK_ASSERT(*out != NULL);
    (*out)->actor = actor;
    (*out)->message = fk__node_create(&local->cache, msg);
    if ((*out)->message != NULL) return FK_OK;
    fk_err err = local->cache.err;
    fk__job_free(local, *out);
    return err;
}

fk_err fk_shutdown_task_add_actor(fk_system *sys, fk_str phase, fk_str name, fk_ref actor,
                                  fk_out msg, fk_shutdown_task *task)
{
    fk_shutdown *sd = NULL;
    fk_job *job = NULL;
    if (sys == NULL) return FK_E_INVALID;
    fk_err err = fk__phase_name_check(name);
    if (err == FK_OK) err = fk__shutdown_need(sys, &sd);
    fk_local *local = fk__local_enter(sys);
    if (err == FK_OK) err = actor_job_create(local, name, actor, msg, &job);
    if (err == FK_OK)
        err = job_enter(sd, local, phase, job, task);
    else
        fk__out_drop(&local->cache, msg);
    fk__local_leave(local);
    return err;
}

fk_err fk_shutdown_task_cancel(fk_system *sys, fk_shutdown_task task)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    if (sd == NULL) return FK_E_NOT_FOUND;
    fk__mem_lock(&sys->mem, &sd->lock);
    fk_job *job = job_find(sd, task.id);
    if (job != NULL && job->fn == fk__shutdown_terminate) job = NULL; /* not the user's */
    fk_err err = job == NULL ? FK_E_NOT_FOUND : job->state != FK_JOB_WAITING ? FK_E_STATE : FK_OK;
    if (err == FK_OK) job_remove(sd, job);
    fk__mem_unlock(&sys->mem, &sd->lock);
    if (err != FK_OK) return err;
    fk_local *local = fk__local_enter(sys);
    fk__job_free(local, job);
    fk__local_leave(local);
    return FK_OK;
}

/* ---- reporting ----------------------------------------------------------------------------- */

void fk__job_report(fk_shutdown *sd, fk_job *job, fk_err err)
{
    FK_ASSERT(job->state == FK_JOB_BEGUN);
    job->state = FK_JOB_REPORTED;
    if (job->fn == NULL) sd->actors_pending--;
    job->err = err;
    job->next = NULL;
    *sd->reported_end = job;
    sd->reported_end = &job->next;
}

/* Under the lock. *bell is to be rung, unless NULL. */
static fk_err job_done(fk_shutdown *sd, fk_job *job, fk_err err, fk_node **bell)
{
    if (job == NULL) return FK_E_NOT_FOUND;
    if (job->state == FK_JOB_BEGUN) {
        bool is_first =
            sd->reported == NULL; /* else the driver knows already that it has to look */
        fk__job_report(sd, job, err);
        if (is_first) {
            *bell = job->bell;
            job->bell = NULL;
        }
        return FK_OK;
    }
    if (job->state != FK_JOB_LATE) return FK_E_STATE;
    job->state = FK_JOB_OVER; /* the next time it is no news any more */
    job->err = err;
    return FK_E_TIMEOUT;
}

fk_err fk_shutdown_task_done(fk_system *sys, fk_shutdown_task task, fk_err err)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    fk_node *bell = NULL;
    if (sd == NULL) return FK_E_NOT_FOUND;
    fk__mem_lock(&sys->mem, &sd->lock);
    fk_job *job = job_find(sd, task.id);
    fk_err result = job_done(sd, job, err, &bell);
    fk__mem_unlock(&sys->mem, &sd->lock);
    fk__shutdown_ring(sd, bell);
    if (result == FK_E_TIMEOUT) {
        fk__shutdown_tell(sd, NULL, job->phase, job, "late", "its phase is over");
    }
    return result;
}

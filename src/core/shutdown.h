/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SHUTDOWN_H
#define FK_CORE_SHUTDOWN_H

/*
 * Coordinated shutdown of a system. Its record lies in memory of the system's, so that the outcome
 * can be asked for when all actors are gone. An actor, /system/shutdown, drives the run and ends with
 * it. Everything it will send is made beforehand: a task holds the node by which its end is told.
 *
 *   phases.c            the order, and where the run is
 *   shutdown.c          the record; beginning, outcome, waiting
 *   shutdown_task.c     adding, cancelling, reporting
 *   shutdown_driver.c   the actor
 */

#include "core/phases.h"
#include "core/system.h"

#define FK_SHUTDOWN_REASON_MAX 95u

typedef enum fk_job_state {
    FK_JOB_WAITING = 0,
    FK_JOB_BEGUN,
    FK_JOB_REPORTED, /* in the list of those */
    FK_JOB_OVER,
    FK_JOB_LATE /* its phase is over without it */
} fk_job_state;

/* A task. Once it has begun it stays until the system ends. All but its state is fixed. */
typedef struct fk_job {
    struct fk_job *next; /* in the list of those that have reported */
    uint64_t id;
    uint32_t phase;
    uint8_t state; /* fk_job_state */
    bool is_gone;  /* the driver's: the actor was gone the last time it looked */
    fk_err err;
    fk_shutdown_fn fn;
    void *user;
    fk_ref actor;     /* instead of fn */
    fk_node *message; /* for it; NULL when sent */
    fk_node *bell;    /* for the driver; NULL when sent */
    uint32_t name_len;
    char name[];
} fk_job;

typedef struct fk_shutdown {
    fk_system *sys;
    fk_ref driver;
    fk_half begun; /* 1: the run has, or never will; what threads wait on */
    fk_lock lock;  /* of the rest */
    fk_phases phases;
    fk_course course;
    bool terminates; /* fk_terminate() was called */
    bool is_announced;
    fk_node *bell; /* tells the driver that the run has begun; NULL when sent */
    fk_job **job;  /* by id */
    uint32_t job_count, job_room;
    uint64_t job_id; /* of the last one */
    fk_job *reported, **reported_end;
    uint32_t actors_pending; /* tasks of this phase that wait for an actor */
    fk_event_fn observer;    /* gets the events, too */
    void *observer_user;
    size_t reason_len;
    char reason[FK_SHUTDOWN_REASON_MAX + 1];
} fk_shutdown;

/* The system's, made when it is asked for the first time. FK_E_NOMEM, FK_E_LIMIT, FK_E_STOPPING. */
FK_MUST_USE fk_err fk__shutdown_need(fk_system *sys, fk_shutdown **out);
/* The system's, or NULL. */
fk_shutdown *fk__shutdown_of(fk_system *sys);
/* With the system: nothing runs any more. */
void fk__shutdown_destroy(fk_system *sys);
/* One who gets the events besides on_event, until the system ends; NULL: nobody. */
void fk__shutdown_observe(fk_shutdown *sd, fk_event_fn observer, void *user);

/* Publishes what has become of a phase, a task (job) or the whole (FK_PHASE_NONE). local: the
 * caller's, if it has one. */
void fk__shutdown_tell(fk_shutdown *sd, fk_local *local, uint32_t phase, const fk_job *job,
                       const char *what, const char *reason);
/* Wakes those who wait for the run to begin. */
void fk__shutdown_begun(fk_shutdown *sd);
/* A node that makes the driver look; NULL with the reason in cache->err. */
fk_node *fk__shutdown_bell(fk_cache *cache);
void fk__shutdown_ring(fk_shutdown *sd, fk_node *bell);

/* shutdown_task.c */

/* FK_E_NOMEM, FK_E_LIMIT. Neither fn nor actor is set. */
FK_MUST_USE fk_err fk__job_create(fk_local *local, fk_str name, fk_job **out);
/* Under the lock: puts it into the table. FK_E_NOT_FOUND, FK_E_STATE, FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__job_add(fk_shutdown *sd, fk_str phase, fk_job *job);
void fk__job_free(fk_local *local, fk_job *job);
/* Under the lock: the first one from that id on that is of the phase and in the state, or NULL. */
fk_job *fk__job_next(const fk_shutdown *sd, uint64_t id, uint32_t phase, fk_job_state state);
/* Under the lock: one that has begun is done. */
void fk__job_report(fk_shutdown *sd, fk_job *job, fk_err err);

/* shutdown_driver.c: FK_E_NOMEM, FK_E_LIMIT, FK_E_STOPPING. */
FK_MUST_USE fk_err fk__driver_spawn(fk_local *local, fk_shutdown *sd);
/* The task of the last phase; it is done when the driver is stopped. */
void fk__shutdown_terminate(fk_system *sys, fk_shutdown_task task, void *user);

#endif /* FK_CORE_SHUTDOWN_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SHUTDOWN_H
#define FK_SHUTDOWN_H

/*
 * Coordinated shutdown: a system goes down in phases, one after the other, each with tasks that run
 * side by side. Every system has the phases of Pekko, in this order:
 *
 *     before-service-unbind, service-unbind, service-requests-done, service-stop,
 *     before-cluster-shutdown, cluster-sharding-shutdown-region, cluster-leave, cluster-exiting,
 *     cluster-exiting-done, cluster-shutdown, before-actor-system-terminate,
 *     actor-system-terminate
 *
 * The last one terminates the system: fk_terminate(), and fk_terminate_now() when its time is up.
 * Nothing runs after it. fk_terminate() and fk_system_stop() by themselves run no phase.
 *
 *     fk_shutdown_task_add(sys, FK_STR("service-unbind"), FK_STR("listener"), close_it, l, NULL);
 *     ...
 *     fk_shutdown_run(sys, FK_STR("upgrade"));
 *     fk_shutdown_await(sys, FK_NEVER, &outcome);
 *     fk_system_stop(sys);
 *
 * fk_host_shutdown_on_signal() (fraktor/host.h) does so at SIGTERM and SIGINT. What happens is told
 * by events of FK_EVENT_SHUTDOWN: .text is "phase", "phase/task" or, for the whole, ""; .to is
 * "started", "done", "failed" (.err, .reason), "timeout", "skipped" or "late". Phases without tasks
 * pass in silence.
 *
 * A system that calls none of these pays nothing. The first call makes what the run will need, each
 * task what it will need itself; so the run does not fail for lack of memory.
 *
 * Any thread, also inside receive, except fk_shutdown_await().
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FK_SHUTDOWN_NAME_MAX   47u /* bytes of a name of a phase or task, printable, without '/' */
#define FK_SHUTDOWN_PHASES_MAX 64u

/* ---- phases -------------------------------------------------------------------------------- */

typedef struct fk_shutdown_phase {
    uint32_t size; /* sizeof(fk_shutdown_phase), or 0 for the layout of release 0.1 */
    fk_str name;
    /* It begins when all these are over. NULL: as it is, so none for a new one. A name that is no
     * phase yet becomes one. */
    const fk_str *depends_on;
    size_t depends_count;
    fk_time timeout; /* for all its tasks together; 0: as it is, 5 s for a new one */
    /* A task that fails or is late is told by an event, and the next phase begins (Pekko: recover =
     * on). With aborts (recover = off) the run ends there with the task's error or FK_E_TIMEOUT,
     * when the others of the phase are done, too: no later phase runs, the system is not
     * terminated, and the program decides what to do with it. */
    bool aborts;
    bool disabled; /* passed over, with all its tasks */
} fk_shutdown_phase;

/* Makes or changes a phase. Of several orders that the dependencies allow, the phase that was made
 * last comes first. FK_E_CYCLE, FK_E_LIMIT (too many phases), FK_E_NAME, FK_E_INVALID, FK_E_STATE (the
 * run has begun), FK_E_NOMEM and FK_E_STOPPING change nothing. */
FK_API FK_MUST_USE fk_err fk_shutdown_phase_set(fk_system *sys, const fk_shutdown_phase *phase);

/* ---- tasks --------------------------------------------------------------------------------- */

typedef struct fk_shutdown_task {
    uint64_t id; /* 0: none; never used again */
} fk_shutdown_task;

/* Begins a task; runs on a thread of the system and must not block. fk_shutdown_task_done() tells
 * the end: here, or later from any thread. */
typedef void (*fk_shutdown_fn)(fk_system *sys, fk_shutdown_task task, void *user);

/* Adds a task to a phase. All tasks of a phase are begun before the first is waited for. Names are
 * for people: two tasks may have the same. task may be NULL. FK_E_NOT_FOUND: no such phase.
 * FK_E_STATE: the run has come to that phase, or past it. FK_E_NAME, FK_E_INVALID, FK_E_NOMEM,
 * FK_E_STOPPING. */
FK_API FK_MUST_USE fk_err fk_shutdown_task_add(fk_system *sys, fk_str phase, fk_str name,
                                               fk_shutdown_fn fn, void *user,
                                               fk_shutdown_task *task);
/* The same; the task is to tell an actor, and to wait until it answers the sender with an
 * fk_shutdown_done or is gone. The message is taken. */
FK_API FK_MUST_USE fk_err fk_shutdown_task_add_actor(fk_system *sys, fk_str phase, fk_str name,
                                                     fk_ref actor, fk_out msg,
                                                     fk_shutdown_task *task);
/* FK_E_STATE: it has begun. FK_E_NOT_FOUND: there is no such task (any more). */
FK_API fk_err fk_shutdown_task_cancel(fk_system *sys, fk_shutdown_task task);
/* The task is done, well or not. Counts once. FK_E_STATE: it has not begun, or has told already.
 * FK_E_TIMEOUT: too late, the phase is over; also an event. FK_E_NOT_FOUND. */
FK_API fk_err fk_shutdown_task_done(fk_system *sys, fk_shutdown_task task, fk_err err);

/* What an actor answers. */
typedef struct fk_shutdown_done {
    fk_err err;
} fk_shutdown_done;
extern FK_API const fk_type fk_type_fk_shutdown_done;

/* ---- the run ------------------------------------------------------------------------------- */

/* Begins, and does not wait. There is one run in the life of a system: a later call changes nothing
 * and gives FK_OK, or the first one's outcome when that is known. The reason is copied, up to 95
 * bytes. FK_E_NOMEM if nothing was reserved; FK_E_STOPPING: the system is ending without it. */
FK_API fk_err fk_shutdown_run(fk_system *sys, fk_str reason);
/* The same, without the phases that come before that one. FK_E_NOT_FOUND: nothing has begun. */
FK_API fk_err fk_shutdown_run_from(fk_system *sys, fk_str reason, fk_str phase);
/* Why, as fk_path_of() writes it; 0: there is no run. */
FK_API size_t fk_shutdown_reason(fk_system *sys, char *buf, size_t size);

/* True when the run is over and, if it terminates the system, that has happened. *outcome, which
 * may be NULL: FK_OK, what made it abort, or FK_E_STOPPING if the system ended under it. */
FK_API bool fk_shutdown_is_over(fk_system *sys, fk_err *outcome);
/* Waits for that, also for the run to begin, from outside. Returns FK_OK, with *outcome as above,
 * FK_E_TIMEOUT, FK_E_STATE (inside receive or a callback), FK_E_UNSUPPORTED without port->wait,
 * FK_E_NOMEM, FK_E_STOPPING (the system is ending, and nobody has asked for a shutdown before). Must
 * not be waiting any more when fk_system_stop() is called. */
FK_API FK_MUST_USE fk_err fk_shutdown_await(fk_system *sys, fk_time timeout, fk_err *outcome);

#ifdef __cplusplus
}
#endif
#endif /* FK_SHUTDOWN_H */

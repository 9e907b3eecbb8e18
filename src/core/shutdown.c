/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/shutdown.h"

#include "core/event.h"
#include "core/path.h"
#include "core/send.h"

#define SHUTDOWN_OPENING ((uintptr_t)1) /* in sys->shutdown: some thread is making it */

const fk_type fk_type_fk_shutdown_done = { "fk_shutdown_done", sizeof(fk_shutdown_done),
                                           _Alignof(fk_shutdown_done), NULL };

/* ---- the record ---------------------------------------------------------------------------- */

fk_shutdown *fk__shutdown_of(fk_system *sys)
{
    /* Acquire pairs with the release in fk__shutdown_need. */
    uintptr_t word = fk__word_load(&sys->shutdown, FK_ACQUIRE);
    return word > SHUTDOWN_OPENING ? (fk_shutdown *)word : NULL;
}

static void shutdown_free(fk_local *local, fk_shutdown *sd)
{
    fk_mem *mem = &sd->sys->mem;
    for (uint32_t i = 0; i < sd->job_count; i++) fk__job_free(local, sd->job[i]);
    fk__mem_free(mem, sd->job, sd->job_room * sizeof(fk_job *));
    if (sd->bell != NULL) fk__node_free(&local->cache, sd->bell);
    fk__mem_free(mem, sd, sizeof(*sd));
}

/* What the last phase does. */
static fk_err terminate_add(fk_local *local, fk_shutdown *sd)
{
    fk_job *job;
    FK_TRY(fk__job_create(local, FK_STR("terminate"), &job));
    job->fn = fk__shutdown_terminate;
    fk_err err = fk__job_add(sd, FK_PHASE_TERMINATE, job);
    if (err != FK_OK) fk__job_free(local, job);
    return err;
}

static fk_err shutdown_create(fk_local *local, fk_shutdown **out)
{
    fk_system *sys = local->sys;
    void *memory;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_shutdown), FK_SITE("shutdown"), &memory));
    fk_shutdown *sd = memory;
    memset(sd, 0, sizeof(*sd));
    sd->sys = sys;
    sd->reported_end = &sd->reported;
    fk__phases_init(&sd->phases);
    fk_err err = terminate_add(local, sd);
    if (err == FK_OK && (sd->bell = fk__shutdown_bell(&local->cache)) == NULL) {
        err = local->cache.err;
    }
    if (err == FK_OK) err = fk__driver_spawn(local, sd);
    if (err == FK_OK)
        *out = sd;
    else
        shutdown_free(local, sd);
    return err;
}

/* One thread makes it; others that come meanwhile have only a moment to wait. */
static bool opening_begin(fk_system *sys)
{
    for (;;) {
        uintptr_t seen = 0;
        if (fk__word_cas(&sys->shutdown, &seen, SHUTDOWN_OPENING, FK_ACQ_REL)) return true;
        if (seen != SHUTDOWN_OPENING) return false;
        fk__cpu_relax();
    }
}

fk_err fk__shutdown_need(fk_system *sys, fk_shutdown **out)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    fk_err err = FK_OK;
    if (sd == NULL && opening_begin(sys)) {
        fk_local *local = fk__local_enter(sys);
        err = shutdown_create(local, &sd);
        fk__local_leave(local);
        /* Release pairs with the acquire in fk__shutdown_of: it is seen complete. */
        fk__word_store(&sys->shutdown, err == FK_OK ? (uintptr_t)sd : 0, FK_RELEASE);
    } else if (sd == NULL) {
        sd = fk__shutdown_of(sys);
    }
    *out = sd;
    return err;
}

void fk__shutdown_destroy(fk_system *sys)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    if (sd == NULL) return;
    fk_local *local = fk__local_enter(sys);
    shutdown_free(local, sd);
    fk__local_leave(local);
    fk__word_store(&sys->shutdown, 0, FK_RELAXED);
}

void fk__shutdown_observe(fk_shutdown *sd, fk_event_fn observer, void *user)
{
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    sd->observer = observer;
    sd->observer_user = user;
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
}

/* ---- telling ------------------------------------------------------------------------------- */

void fk__shutdown_tell(fk_shutdown *sd, fk_local *local, uint32_t phase, const fk_job *job,
                       const char *what, const char *reason)
{
    char buf[2 * FK_SHUTDOWN_NAME_MAX + 1];
    fk_text text = { buf, sizeof(buf), 0 };
    /* Once there is something to tell of, phases do not change any more. */
    if (phase != FK_PHASE_NONE) fk__text_put(&text, fk__phase_name(&sd->phases.at[phase]));
    if (job != NULL) {
        fk__text_put(&text, FK_STR("/"));
        fk__text_put(&text, (fk_str){ job->name, job->name_len });
    }
    bool is_well = what[0] == 's' || what[0] == 'd'; /* started, skipped, done */
    fk_event event = { .kind = FK_EVENT_SHUTDOWN,
                       .level = is_well ? FK_LEVEL_INFO : FK_LEVEL_WARN,
                       .at = fk__system_now(sd->sys),
                       .err = job != NULL ? job->err : FK_OK,
                       .text = { buf, text.len },
                       .to = what,
                       .reason = reason };
    if (phase == FK_PHASE_NONE) event.err = sd->course.outcome;
    fk__event(sd->sys, local, &event);
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    fk_event_fn observer = sd->observer;
    void *user = sd->observer_user;
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    if (observer != NULL) observer(user, &event);
}

fk_node *fk__shutdown_bell(fk_cache *cache)
{
    fk_node *node = fk__node_create(cache, (fk_out){ &fk__type_tick, "" });
    if (node != NULL) node->sender = 0;
    return node;
}

void fk__shutdown_ring(fk_shutdown *sd, fk_node *bell)
{
    if (bell == NULL) return;
    fk_local *local = fk__local_enter(sd->sys);
    fk__send_node(local, sd->driver, bell);
    fk__local_leave(local);
}

/* ---- phases and the run -------------------------------------------------------------------- */

fk_err fk_shutdown_phase_set(fk_system *sys, const fk_shutdown_phase *phase)
{
    fk_shutdown *sd;
    if (sys == NULL || phase == NULL) return FK_E_INVALID;
    FK_TRY(fk__shutdown_need(sys, &sd));
    fk__mem_lock(&sys->mem, &sd->lock);
    bool has_begun = sd->course.state != FK_COURSE_IDLE;
    fk_err err = has_begun ? FK_E_STATE : fk__phases_set(&sd->phases, phase);
    fk__mem_unlock(&sys->mem, &sd->lock);
    return err;
}

/* Under the lock. */
static void reason_note(fk_shutdown *sd, fk_str reason)
{
    if (reason.len > FK_SHUTDOWN_REASON_MAX) reason.len = FK_SHUTDOWN_REASON_MAX;
    for (size_t i = 0; i < reason.len; i++) {
        bool is_plain = reason.ptr[i] >= ' ' && reason.ptr[i] <= '~';
        sd->reason[i] = is_plain ? reason.ptr[i] : '?';
    }
    sd->reason_len = reason.len;
}

/* Under the lock. */
static fk_err run_begin(fk_shutdown *sd, fk_str reason, const fk_str *phase)
{
    uint32_t from = phase != NULL ? fk__phases_find(&sd->phases, *phase) : FK_PHASE_NONE;
    if (phase != NULL && from == FK_PHASE_NONE) return FK_E_NOT_FOUND;
    FK_TRY(fk__course_begin(&sd->course, &sd->phases, from));
    reason_note(sd, reason);
    return FK_OK;
}

void fk__shutdown_begun(fk_shutdown *sd)
{
    const fk_port *port = &sd->sys->mem.port;
    fk__half_store(&sd->begun, 1, FK_RELEASE); /* pairs with the load in fk_shutdown_await */
    if (port->notify != NULL) port->notify(port->ctx, (uint32_t *)(void *)&sd->begun);
}

static fk_err run(fk_system *sys, fk_str reason, const fk_str *phase)
{
    fk_shutdown *sd;
    fk_node *bell = NULL;
    fk_err err = FK_OK;
    if (sys == NULL || (reason.ptr == NULL && reason.len != 0)) return FK_E_INVALID;
    FK_TRY(fk__shutdown_need(sys, &sd));
    fk__mem_lock(&sys->mem, &sd->lock);
    if (sd->course.state == FK_COURSE_IDLE) {
        err = run_begin(sd, reason, phase);
        if (err == FK_OK) {
            bell = sd->bell;
            sd->bell = NULL;
        }
    } else if (sd->course.state == FK_COURSE_OVER) {
        err = sd->course.outcome;
    }
    fk__mem_unlock(&sys->mem, &sd->lock);
    if (bell != NULL) fk__shutdown_begun(sd);
    fk__shutdown_ring(sd, bell);
    return err;
}

fk_err fk_shutdown_run(fk_system *sys, fk_str reason)
{
    return run(sys, reason, NULL);
}

fk_err fk_shutdown_run_from(fk_system *sys, fk_str reason, fk_str phase)
{
    return run(sys, reason, &phase);
}

size_t fk_shutdown_reason(fk_system *sys, char *buf, size_t size)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    fk_text text = { buf, size, 0 };
    if (sd != NULL) {
        fk__mem_lock(&sys->mem, &sd->lock);
        fk__text_put(&text, (fk_str){ sd->reason, sd->reason_len });
        fk__mem_unlock(&sys->mem, &sd->lock);
    }
    if (size > 0) buf[text.len < size ? text.len : size - 1] = '\0';
    return text.len;
}

/* ---- the outcome --------------------------------------------------------------------------- */

static bool outcome_get(fk_shutdown *sd, fk_err *outcome, bool *terminates)
{
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    bool is_over = sd->course.state == FK_COURSE_OVER;
    *terminates = sd->terminates;
    if (is_over && outcome != NULL) *outcome = sd->course.outcome;
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    return is_over;
}

bool fk_shutdown_is_over(fk_system *sys, fk_err *outcome)
{
    bool terminates;
    fk_shutdown *sd = fk__shutdown_of(sys);
    return sd != NULL && outcome_get(sd, outcome, &terminates) &&
           (!terminates || fk__system_is_down(sys));
}

static fk_time time_until(const fk_system *sys, fk_time deadline)
{
    fk_time left = deadline == FK_NEVER ? FK_NEVER : deadline - fk__system_now(sys);
    return left > 0 ? left : 0;
}

/* On a word of its own: a thread may wait here for all the system's life, and fk_await_stopped()
 * would have it woken by every actor that ends. */
static fk_err begun_await(fk_shutdown *sd, fk_time deadline)
{
    const fk_port *port = &sd->sys->mem.port;
    while (fk__half_load(&sd->begun, FK_ACQUIRE) == 0) { /* pairs with fk__shutdown_begun */
        fk_time left = time_until(sd->sys, deadline);
        if (left == 0) return FK_E_TIMEOUT;
        port->wait(port->ctx, (uint32_t *)(void *)&sd->begun, 0, left);
    }
    return FK_OK;
}

fk_err fk_shutdown_await(fk_system *sys, fk_time timeout, fk_err *outcome)
{
    fk_shutdown *sd;
    bool terminates;
    if (sys->mem.port.wait == NULL) return FK_E_UNSUPPORTED;
    if (fk__is_awaited_itself(sys)) return FK_E_STATE;
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    FK_TRY(fk__shutdown_need(sys, &sd));
    FK_TRY(begun_await(sd, deadline));
    FK_TRY(fk_await_stopped(sys, sd->driver, time_until(sys, deadline)));
    bool is_over = outcome_get(sd, outcome, &terminates);
    FK_ASSERT(is_over); /* by driver_stop() at the latest */
    return terminates ? fk_await_termination(sys, time_until(sys, deadline)) : FK_OK;
}

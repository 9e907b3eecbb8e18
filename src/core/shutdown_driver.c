/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * /system/shutdown: takes the run from phase to phase. It looks when a bell rings (the run has begun,
 * a task has reported), when its timer, the pulse, says so, and when an actor answers.
 *
 * The pulse is started with the actor, for a day far away, and moved when there is something to wait
 * for: the run needs no memory for it. Should it not have been possible, it is tried again.
 */

#include "core/shutdown.h"

#include "core/send.h"
#include "core/spawn.h"
#include "core/timer.h"

enum { PULSE = 1 };

#define PULSE_FAR    FK_SECONDS(315360000) /* ten years */
#define PULSE_ACTORS FK_MILLIS(10)         /* how often actors that should answer are looked at */

static void pulse_set(fk_ctx *ctx, fk_time delay)
{
    if (delay < 1) delay = 1;
    if (fk__timer_move(ctx, PULSE, delay)) return;
    fk_err err =
        fk_timer_start(ctx, PULSE, FK_TIMER_FIXED_DELAY, delay, (fk_out){ &fk__type_tick, "" });
    (void)err; /* no memory: the next thing that happens gives another chance */
}

/* ---- tasks --------------------------------------------------------------------------------- */

static void job_begin(fk_ctx *ctx, fk_shutdown *sd, fk_job *job)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    if (job->fn != NULL) {
        job->fn(sd->sys, (fk_shutdown_task){ job->id }, job->user);
        return;
    }
    fk_ref self = fk_self(ctx);
    fk_node *message = job->message;
    job->message = NULL;
    message->sender = fk__sender_pack(self.slot, self.generation);
    fk_err err = fk__send_node(local, job->actor, message);
    if (err == FK_OK) return;
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    if (job->state == FK_JOB_BEGUN) fk__job_report(sd, job, err); /* nobody was quicker */
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
}

/* The next job of the phase in that state; others may add and cancel while one is looked at. */
static fk_job *job_after(fk_shutdown *sd, const fk_job *job, uint32_t phase, fk_job_state state)
{
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    fk_job *next = fk__job_next(sd, job != NULL ? job->id + 1 : 0, phase, state);
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    return next;
}

/* Looks at the actors that have not answered, at every pulse: a watch would need memory. What one
 * that is gone had sent is here before the next pulse, which is sent later: so it counts only then. */
static void actors_look(fk_shutdown *sd)
{
    fk_job *job = NULL;
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    uint32_t phase = fk__course_phase(&sd->course);
    while ((job = fk__job_next(sd, job != NULL ? job->id + 1 : 0, phase, FK_JOB_BEGUN)) != NULL) {
        if (job->fn != NULL) continue;
        if (job->is_gone)
            fk__job_report(sd, job, FK_OK);
        else
            job->is_gone = !fk_is_alive(sd->sys, job->actor);
    }
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
}

/* An actor answers: the first of its tasks that is under way is done. False: it has none. */
static bool actor_answered(fk_ctx *ctx, fk_shutdown *sd, fk_ref actor, fk_err err)
{
    fk_job *late = NULL;
    bool found = false;
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    for (uint32_t i = 0; i < sd->job_count && !found; i++) {
        fk_job *job = sd->job[i];
        if (job->fn != NULL || !fk_ref_equal(job->actor, actor)) continue;
        found = job->state == FK_JOB_BEGUN;
        if (found) fk__job_report(sd, job, err);
        if (job->state == FK_JOB_LATE && late == NULL) late = job;
    }
    if (!found && late != NULL) {
        late->state = FK_JOB_OVER;
        late->err = err;
    }
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    if (!found && late != NULL) {
        fk__shutdown_tell(sd, &fk__ctx_worker(ctx)->local, late->phase, late, "late",
                          "its phase is over");
    }
    return found || late != NULL;
}

/* ---- phases -------------------------------------------------------------------------------- */

/* Under the lock: all tasks of the phase begin. */
static void jobs_begin(fk_shutdown *sd, uint32_t phase)
{
    uint32_t count = 0;
    fk_job *job = NULL;
    while ((job = fk__job_next(sd, job != NULL ? job->id + 1 : 0, phase, FK_JOB_WAITING)) != NULL) {
        job->state = FK_JOB_BEGUN;
        sd->actors_pending += job->fn == NULL;
        count++;
    }
    fk__course_expect(&sd->course, count);
}

/* Under the lock: the phase is over without those that have not reported. */
static void jobs_give_up(fk_shutdown *sd, uint32_t phase)
{
    fk_job *job;
    while ((job = fk__job_next(sd, 0, phase, FK_JOB_BEGUN)) != NULL) job->state = FK_JOB_LATE;
    sd->actors_pending = 0;
}

/* What one step brought. */
typedef struct driver_news {
    fk_move move;
    fk_job *reported;
    uint32_t tasks; /* of the phase */
} driver_news;

/* One step, with what has been reported before it, all under one lock: a task is in time or late,
 * never both. */
static driver_news driver_step(fk_shutdown *sd, fk_time now)
{
    driver_news news = { .reported = sd->reported };
    sd->reported = NULL;
    sd->reported_end = &sd->reported;
    for (fk_job *job = news.reported; job != NULL; job = job->next) {
        job->state = FK_JOB_OVER;
        fk__course_report(&sd->course, job->err);
    }
    news.move = fk__course_step(&sd->course, &sd->phases, now);
    if (news.move.kind == FK_MOVE_ENTER) jobs_begin(sd, news.move.phase);
    if (news.move.kind == FK_MOVE_TIMEOUT) jobs_give_up(sd, news.move.phase);
    news.tasks = sd->course.tasks;
    return news;
}

static void late_tell(fk_shutdown *sd, fk_local *local, uint32_t phase)
{
    static const char WHY[] = "its time is up";
    fk_job *job = NULL;
    while ((job = job_after(sd, job, phase, FK_JOB_LATE)) != NULL) {
        fk__shutdown_tell(sd, local, phase, job, "timeout", WHY);
    }
    fk__shutdown_tell(sd, local, phase, NULL, "timeout", WHY);
}

static void news_tell(fk_shutdown *sd, fk_local *local, const driver_news *news)
{
    uint32_t phase = news->move.phase;
    for (const fk_job *job = news->reported; job != NULL; job = job->next) {
        bool is_well = job->err == FK_OK;
        fk__shutdown_tell(sd, local, job->phase, job, is_well ? "done" : "failed",
                          is_well ? NULL : fk_err_text(job->err));
    }
    if (news->move.kind == FK_MOVE_SKIP) {
        fk__shutdown_tell(sd, local, phase, NULL, "skipped", "it is disabled");
    } else if (news->move.kind == FK_MOVE_FAILED) {
        fk__shutdown_tell(sd, local, phase, NULL, "failed", "a task failed");
    } else if (news->move.kind == FK_MOVE_TIMEOUT) {
        late_tell(sd, local, phase);
    } else if (news->tasks != 0 && news->move.kind == FK_MOVE_ENTER) {
        fk__shutdown_tell(sd, local, phase, NULL, "started", NULL);
    } else if (news->tasks != 0 && news->move.kind == FK_MOVE_DONE) {
        fk__shutdown_tell(sd, local, phase, NULL, "done", NULL);
    }
}

static void outcome_tell(fk_shutdown *sd, fk_local *local)
{
    fk_err outcome = sd->course.outcome; /* which nobody changes any more */
    fk__shutdown_tell(sd, local, FK_PHASE_NONE, NULL, outcome == FK_OK ? "done" : "failed",
                      outcome == FK_OK ? NULL : fk_err_text(outcome));
}

/* ---- the actor ----------------------------------------------------------------------------- */

/* When to look again, if nothing happens before. */
static fk_time next_look(fk_shutdown *sd, fk_time now)
{
    fk_time left = PULSE_FAR;
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    if (fk__course_phase(&sd->course) != FK_PHASE_NONE) {
        if (sd->course.deadline - now < left) left = sd->course.deadline - now;
        if (sd->actors_pending != 0 && left > PULSE_ACTORS) left = PULSE_ACTORS;
    }
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    return left;
}

/* As far as it goes without waiting. */
static void drive(fk_ctx *ctx, fk_shutdown *sd)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    driver_news news;
    do {
        fk__mem_lock(&sd->sys->mem, &sd->lock);
        bool is_news = !sd->is_announced && sd->course.state != FK_COURSE_IDLE;
        if (is_news) sd->is_announced = true;
        news = driver_step(sd, fk_now(ctx));
        fk__mem_unlock(&sd->sys->mem, &sd->lock);
        if (is_news) fk__shutdown_tell(sd, local, FK_PHASE_NONE, NULL, "started", sd->reason);
        news_tell(sd, local, &news);
        fk_job *job = NULL;
        if (news.move.kind == FK_MOVE_ENTER) {
            while ((job = job_after(sd, job, news.move.phase, FK_JOB_BEGUN)) != NULL) {
                job_begin(ctx, sd, job);
            }
        }
        if (news.move.kind == FK_MOVE_TIMEOUT && sd->terminates) fk_terminate_now(sd->sys);
    } while (news.move.kind != FK_MOVE_WAIT && news.move.kind != FK_MOVE_END);
    if (news.move.kind == FK_MOVE_WAIT) {
        pulse_set(ctx, next_look(sd, fk_now(ctx)));
    } else {
        outcome_tell(sd, local);
        fk_stop_self(ctx);
    }
}

static fk_err driver_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_shutdown *sd = *(fk_shutdown **)state;
    const fk_shutdown_done *done = FK_AS(fk_shutdown_done, msg);
    if (done != NULL) {
        if (!actor_answered(ctx, sd, msg->sender, done->err)) return fk_unhandled(ctx, msg);
    } else if (msg->type != &fk__type_tick) {
        return fk_unhandled(ctx, msg);
    } else if (fk_ref_equal(msg->sender, fk_self(ctx))) { /* the pulse */
        actors_look(sd);
    }
    drive(ctx, sd);
    return FK_OK;
}

/* Under the lock: /system ends, and we with it. In the last phase that is what was wanted; there is
 * no time for anything else. */
static driver_news driver_interrupt(fk_shutdown *sd)
{
    driver_news news = { .move = { FK_MOVE_END, FK_PHASE_NONE } };
    uint32_t phase = fk__course_phase(&sd->course);
    if (sd->terminates && phase != FK_PHASE_NONE) {
        fk_job *job = NULL;
        while ((job = fk__job_next(sd, job != NULL ? job->id + 1 : 0, phase, FK_JOB_BEGUN)) !=
               NULL) {
            if (job->fn == fk__shutdown_terminate) fk__job_report(sd, job, FK_OK);
        }
        news = driver_step(sd, FK_NEVER);
        fk__course_end(&sd->course, FK_OK);
    }
    if (phase != FK_PHASE_NONE) jobs_give_up(sd, phase);
    fk__course_end(&sd->course, FK_E_STOPPING);
    return news;
}

static void driver_stop(fk_ctx *ctx, void *state)
{
    fk_shutdown *sd = *(fk_shutdown **)state;
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk__mem_lock(&sd->sys->mem, &sd->lock);
    bool is_under_way = sd->is_announced && sd->course.state != FK_COURSE_OVER;
    driver_news news = driver_interrupt(sd);
    fk__mem_unlock(&sd->sys->mem, &sd->lock);
    if (is_under_way) {
        news_tell(sd, local, &news);
        outcome_tell(sd, local);
    }
    fk__shutdown_begun(sd);
}

/* No start hook: an actor that is stopped before its own has run has no stop hook either. A first
 * bell makes it start the pulse instead. */
fk_err fk__driver_spawn(fk_local *local, fk_shutdown *sd)
{
    fk_props props = {
        .receive = driver_receive, .stop = driver_stop, .state_size = sizeof(sd), .init = &sd
    };
    fk_node *bell = fk__shutdown_bell(&local->cache);
    if (bell == NULL) return local->cache.err;
    fk_err err =
        fk__spawn(local, local->sys->top.system, FK_STR("shutdown"), NULL, &props, &sd->driver);
    if (err == FK_OK)
        fk__send_node(local, sd->driver, bell);
    else
        fk__node_free(&local->cache, bell);
    return err;
}

void fk__shutdown_terminate(fk_system *sys, fk_shutdown_task task, void *user)
{
    fk_shutdown *sd = fk__shutdown_of(sys);
    (void)task;
    (void)user;
    fk__mem_lock(&sys->mem, &sd->lock);
    sd->terminates = true;
    fk__mem_unlock(&sys->mem, &sd->lock);
    fk_err err = fk_terminate(sys); /* reported by driver_stop */
    FK_ASSERT(err == FK_OK);
}

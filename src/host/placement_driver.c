/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A way is a thread, its store and the queue before it. Whoever submits holds the way's lock for a
 * few instructions; the thread takes the whole queue at once and works it off in batches, so that
 * jobs which come while the store writes share the next transaction.
 *
 * Locks: of a way, the queue; of the driver, the errands. Neither is held while the store, a
 * callback or the system is called, and never both.
 */

#include "host/placement_driver.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { DRIVER_BATCH_MAX = 256, NAME_SIZE = 16 };

#define NANOS_PER_SECOND FK_SECONDS(1)

typedef struct way {
    fk_placement_driver *driver;
    fk_store *store; /* the thread's, while there is one */
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    fk_store_job *first; /* under lock, as all below */
    fk_store_job **last;
    bool is_closing;
    fk_store_op *batch[DRIVER_BATCH_MAX]; /* the thread's */
} way;

/* Somebody who waits for a job, on whose stack this is. */
typedef struct errand {
    struct errand *next;
    const fk_store_job *job;
    bool is_done;
} errand;

struct fk_placement_driver {
    fk_system *sys;
    way state, lease;
    pthread_mutex_t lock;
    pthread_cond_t done;
    errand *errands;                         /* under lock */
    bool (*changed)(void *ctx, bool is_new); /* under lease.lock, as the next */
    void *changed_ctx;
    fk_time poll_every, poll_at; /* the lease thread's, as the next */
    uint64_t stamp;
};

/* The clock of the condition variables: the system's own may be a test's. */
static fk_time driver_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return FK_SECONDS(now.tv_sec) + now.tv_nsec;
}

/* False: it is that late. */
static bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, fk_time at)
{
    if (at == FK_NEVER) return pthread_cond_wait(cond, lock) == 0;
    struct timespec then = { .tv_sec = (time_t)(at / NANOS_PER_SECOND),
                             .tv_nsec = (long)(at % NANOS_PER_SECOND) };
    return pthread_cond_timedwait(cond, lock, &then) != ETIMEDOUT;
}

/* ---- jobs that are done ---------------------------------------------------------------------- */

/* True: somebody waited for it, and has it now. */
static bool errand_end(fk_placement_driver *driver, const fk_store_job *job)
{
    bool is_found = false;
    pthread_mutex_lock(&driver->lock);
    for (errand *e = driver->errands; e != NULL && !is_found; e = e->next) {
        is_found = e->is_done = e->job == job;
    }
    if (is_found) pthread_cond_broadcast(&driver->done);
    pthread_mutex_unlock(&driver->lock);
    return is_found;
}

/* A job without a maker is an errand, or its outcome is nobody's concern. */
static void job_end(fk_placement_driver *driver, fk_store_job *job)
{
    if (!fk_ref_is_none(job->to)) {
        fk__store_job_return(job);
    } else if (!errand_end(driver, job)) {
        fk__store_job_destroy(job);
    }
}

static void job_refuse(fk_store_job *job, fk_err err, const char *reason)
{
    job->op.verdict = FK_VERDICT_UNKNOWN;
    job->op.err = err;
    job->op.reason = reason;
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* Applies what was taken from the queue up to the length of a batch; returns the rest. */
static fk_store_job *way_apply(way *w, fk_store_job *jobs)
{
    fk_store_job *end = jobs;
    size_t count = 0;
    for (; end != NULL && count < DRIVER_BATCH_MAX; end = end->next) {
        /* What a store forgets to answer did not go well. */
        job_refuse(end, FK_E_STORAGE, NULL);
        w->batch[count++] = &end->op;
    }
    fk_store_apply(w->store, w->batch, count);
    while (jobs != end) {
        fk_store_job *job = jobs;
        jobs = job->next; /* before it is somebody else's */
        job->next = NULL;
        job_end(w->driver, job);
    }
    return end;
}

static void lease_poll(fk_placement_driver *driver)
{
    fk_time now = driver_clock();
    if (now < driver->poll_at) return;
    pthread_mutex_lock(&driver->lease.lock);
    bool (*changed)(void *ctx, bool is_new) = driver->changed;
    void *ctx = driver->changed_ctx;
    pthread_mutex_unlock(&driver->lease.lock);
    driver->poll_at = fk__time_add(now, driver->poll_every);
    if (changed == NULL) return; /* the number is kept: what changes meanwhile is told then */
    uint64_t stamp = driver->lease.store->ops->stamp(driver->lease.store);
    /* What could not be told is told again. */
    if (changed(ctx, stamp != driver->stamp)) driver->stamp = stamp;
}

/* Waits for jobs and takes them all. NULL: it is time for something else. */
static fk_store_job *way_take(way *w, fk_time until, bool *is_over)
{
    bool is_early = true;
    pthread_mutex_lock(&w->lock);
    while (w->first == NULL && !w->is_closing && is_early) {
        is_early = wait_until(&w->more, &w->lock, until);
    }
    fk_store_job *jobs = w->first;
    w->first = NULL;
    w->last = &w->first;
    *is_over = jobs == NULL && w->is_closing;
    pthread_mutex_unlock(&w->lock);
    return jobs;
}

static void *way_main(void *arg)
{
    way *w = arg;
    fk_placement_driver *driver = w->driver;
    bool is_lease = w == &driver->lease, is_over = false;
    while (!is_over) {
        fk_store_job *jobs = way_take(w, is_lease ? driver->poll_at : FK_NEVER, &is_over);
        do {
            if (jobs != NULL) jobs = way_apply(w, jobs);
            if (is_lease && !is_over) lease_poll(driver);
        } while (jobs != NULL);
    }
    return NULL;
}

/* ---- the port -------------------------------------------------------------------------------- */

static bool is_state_verb(fk_store_verb verb)
{
    switch (verb) {
    case FK_STORE_LOAD:
    case FK_STORE_STORE:
    case FK_STORE_REMOVE:
    case FK_STORE_PEEK:
    case FK_STORE_LIST: return true;
    default: return false;
    }
}

/* False: it is refused, and still the caller's. */
static bool driver_enqueue(fk_placement_driver *driver, fk_store_job *job)
{
    way *w = is_state_verb(job->op.verb) ? &driver->state : &driver->lease;
    const fk_port *port = &driver->sys->mem.port;
    job->asked_at = port->now(port->ctx);
    job->next = NULL;
    pthread_mutex_lock(&w->lock);
    bool is_taken = !w->is_closing;
    bool was_empty = w->first == NULL;
    if (is_taken) {
        *w->last = job;
        w->last = &job->next;
    }
    /* Under the lock: after it, close() might be done with all this. */
    if (is_taken && was_empty) pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    return is_taken;
}

static void driver_submit(void *ctx, fk_store_job *job)
{
    if (driver_enqueue(ctx, job)) return;
    job_refuse(job, FK_E_STOPPING, "the node is stopping");
    job_end(ctx, job);
}

fk_err fk__placement_driver_do(fk_placement_driver *driver, fk_store_job *job, fk_time timeout)
{
    errand mine = { .job = job };
    job->to = FK_REF_NONE;
    pthread_mutex_lock(&driver->lock);
    mine.next = driver->errands;
    /* cppcheck-suppress autoVariables ; it is taken out again before this returns */
    driver->errands = &mine;
    pthread_mutex_unlock(&driver->lock);
    bool is_taken = driver_enqueue(driver, job);
    fk_time until = fk__time_add(driver_clock(), timeout);
    bool is_early = is_taken;
    pthread_mutex_lock(&driver->lock);
    while (!mine.is_done && is_early) is_early = wait_until(&driver->done, &driver->lock, until);
    errand **at = &driver->errands;
    while (*at != &mine) at = &(*at)->next;
    *at = mine.next;
    pthread_mutex_unlock(&driver->lock);
    if (mine.is_done) return FK_OK;
    if (is_taken) return FK_E_TIMEOUT; /* the thread finds nobody who waits, and drops it */
    fk__store_job_destroy(job);
    return FK_E_STOPPING;
}

void fk__placement_driver_watch(fk_placement_driver *driver,
                                bool (*changed)(void *ctx, bool is_new), void *ctx)
{
    pthread_mutex_lock(&driver->lease.lock);
    FK_ASSERT(driver->changed == NULL);
    driver->changed = changed;
    driver->changed_ctx = ctx;
    pthread_mutex_unlock(&driver->lease.lock);
}

/* ---- open and close -------------------------------------------------------------------------- */

static void way_close(way *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_closing = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

static void way_join(way *w)
{
    if (w->has_thread) pthread_join(w->thread, NULL);
    w->has_thread = false;
}

static void way_fini(way *w)
{
    if (w->store != NULL) w->store->ops->close(w->store);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
}

static void driver_destroy(fk_placement_driver *driver)
{
    FK_ASSERT(driver->errands == NULL);
    way_fini(&driver->state);
    way_fini(&driver->lease);
    pthread_cond_destroy(&driver->done);
    pthread_mutex_destroy(&driver->lock);
    fk__mem_free(&driver->sys->mem, driver, sizeof(*driver));
}

static void driver_join(fk_placement_driver *driver)
{
    way_close(&driver->state);
    way_close(&driver->lease);
    way_join(&driver->state);
    way_join(&driver->lease);
}

static void *no_room(fk_store_op *op, size_t size)
{
    (void)op;
    (void)size;
    return NULL;
}

/* The member leaves when all that it wanted to store is stored, or a successor would fence it
 * out. */
static void driver_close(void *ctx, fk_str id, uint64_t incarnation)
{
    fk_placement_driver *driver = ctx;
    driver_join(driver);
    if (id.len > 0) {
        fk_store_op leave = { .verb = FK_STORE_LEAVE, .room = no_room };
        fk_store_op *ops = &leave;
        leave.member.id = id;
        leave.member.incarnation = incarnation;
        fk_store_apply(driver->lease.store, &ops, 1); /* if not, its lease runs out */
    }
    driver_destroy(driver);
}

fk_cluster_port fk__placement_driver_port(fk_placement_driver *driver)
{
    return (fk_cluster_port){ driver, driver_submit, driver_close };
}

/* With default attributes, but for the clock, these do not fail on Linux. */
static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void way_init(way *w, fk_placement_driver *driver)
{
    *w = (way){ .driver = driver };
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->more);
}

static fk_err way_start(way *w, const char *what)
{
    sigset_t all, before;
    char name[NAME_SIZE];
    /* As the system's own threads: signals are the program's business, but for those that a thread
     * brings upon itself. */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    w->has_thread = pthread_create(&w->thread, NULL, way_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!w->has_thread) return FK_E_OS;
    snprintf(name, sizeof(name), "%.9s-%s", w->driver->sys->name, what);
    pthread_setname_np(w->thread, name);
    return FK_OK;
}

static fk_err driver_start(fk_placement_driver *driver, fk_str url,
                           const fk_store_provider *const *more, const char **why)
{
    const fk_port *port = &driver->sys->mem.port;
    way *state = &driver->state, *lease = &driver->lease;
    FK_TRY(fk_store_open(url, more, true, port, &state->store, why));
    FK_TRY(fk_store_open(url, more, false, port, &lease->store, why));
    driver->stamp = lease->store->ops->stamp(lease->store);
    *why = "the operating system gives no thread for the store";
    FK_TRY(way_start(state, "store"));
    return way_start(lease, "lease");
}

fk_err fk__placement_driver_open(fk_system *sys, fk_str url, const fk_store_provider *const *more,
                                 fk_time poll_every, fk_placement_driver **out, const char **why)
{
    void *memory;
    const char *unused;
    FK_ASSERT(out != NULL);
    if (why == NULL) why = &unused;
    *why = "there is no memory for the threads of the store";
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_placement_driver), FK_SITE("driver"), &memory));
    fk_placement_driver *driver = memory;
    *driver = (fk_placement_driver){ .sys = sys, .poll_every = poll_every };
    driver->poll_at = poll_every > 0 ? fk__time_add(driver_clock(), poll_every) : FK_NEVER;
    pthread_mutex_init(&driver->lock, NULL);
    cond_init(&driver->done);
    way_init(&driver->state, driver);
    way_init(&driver->lease, driver);
    fk_err err = driver_start(driver, url, more, why);
    if (err != FK_OK) {
        driver_join(driver);
        driver_destroy(driver);
        return err;
    }
    *why = NULL;
    *out = driver;
    return FK_OK;
}

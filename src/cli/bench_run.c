/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One run of a workload: its system, its clock and the flag main sleeps on.
 *
 * The clock stops when the main thread has woken up, not when the actor called bench_done(), so
 * that the figures can be compared with those of the prototype and the peers, which do the same.
 */

#include "bench.h"

#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double timeval_seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return timeval_seconds(usage.ru_utime) + timeval_seconds(usage.ru_stime);
}

static uint64_t peak_rss_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_maxrss;
}

uint64_t bench_rss_kb(void)
{
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2) resident = 0;
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

/* ---- done and failed -------------------------------------------------------------------- */

void bench_done(bench_run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->done = true;
    pthread_cond_signal(&run->cond);
    pthread_mutex_unlock(&run->mutex);
}

fk_err bench_fail(bench_run *run, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&run->mutex);
    if (!run->failed) vsnprintf(run->result.error, sizeof run->result.error, format, args);
    run->failed = true;
    run->done = true;
    pthread_cond_signal(&run->cond);
    pthread_mutex_unlock(&run->mutex);
    va_end(args);
    return FK_E_FAILED;
}

void bench_begin(bench_run *run)
{
    pthread_mutex_lock(&run->mutex);
    run->done = run->failed;
    pthread_mutex_unlock(&run->mutex);
    run->begun_cpu = cpu_seconds();
    run->begun = cli_seconds();
}

fk_err bench_wait(bench_run *run)
{
    double until = run->begun + run->timeout;
    struct timespec deadline = { .tv_sec = (time_t)until };
    deadline.tv_nsec = (long)((until - (double)deadline.tv_sec) * 1e9);
    int error = 0;

    pthread_mutex_lock(&run->mutex);
    while (!run->done && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&run->cond, &run->mutex, &deadline);
    }
    run->stuck = !run->done;
    bool failed = run->failed;
    pthread_mutex_unlock(&run->mutex);

    run->result.seconds = cli_seconds() - run->begun;
    run->result.cpu_seconds = cpu_seconds() - run->begun_cpu;
    if (run->stuck) {
        return bench_fail(run, "no result within %.0f s (see --timeout)", run->timeout);
    }
    return failed ? FK_E_FAILED : FK_OK;
}

/* ---- small services --------------------------------------------------------------------- */

double bench_stop(bench_run *run)
{
    double begun = cli_seconds();
    cli_watchdog("fk_system_stop() does not return", (unsigned)run->timeout);
    fk_err err = fk_system_stop(run->sys);
    cli_watchdog("", 0);
    run->sys = NULL;
    if (err != FK_OK) bench_fail(run, "fk_system_stop: %s", fk_err_name(err));
    return cli_seconds() - begun;
}

void bench_note_add(bench_run *run, const char *name, double value)
{
    bench_result *result = &run->result;
    if (result->note_count == BENCH_NOTES_MAX) abort();
    result->note[result->note_count++] = (bench_note){ name, value };
}

double bench_note_get(const bench_result *result, const char *name)
{
    for (uint32_t i = 0; i < result->note_count; i++) {
        if (strcmp(result->note[i].name, name) == 0) return result->note[i].value;
    }
    return NAN;
}

fk_ref bench_spawn(bench_run *run, const fk_props *props, fk_err *err)
{
    fk_ref ref = FK_REF_NONE;
    if (*err == FK_OK) *err = fk_spawn(run->sys, FK_STR(""), props, &ref);
    return ref;
}

/* ---- a run from start to end ------------------------------------------------------------ */

static void on_failure(void *user, const fk_failure *failure)
{
    const char *type = failure->type == NULL ? "its start" : failure->type->name;
    bench_fail(user, "an actor failed at %s: %s: %s", type, fk_err_text(failure->err),
               failure->detail);
}

static void on_dead_letter(void *user, const fk_dead_letter *letter)
{
    bench_run *run = user;
    (void)letter;
    atomic_fetch_add_explicit(&run->dead_letters, 1, memory_order_relaxed);
}

/* Aligned, because a member is: aligned_alloc wants a multiple of that, which sizeof is. */
static bench_run *run_create(const bench_options *options, uint32_t threads, uint64_t ops)
{
    pthread_condattr_t attr;
    bench_run *run = aligned_alloc(_Alignof(bench_run), sizeof *run);
    if (run == NULL) return NULL;
    memset(run, 0, sizeof *run);
    run->threads = threads;
    run->payload = options->payload;
    run->timeout = options->timeout;
    run->result.ops = ops;
    pthread_mutex_init(&run->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&run->cond, &attr);
    pthread_condattr_destroy(&attr);
    return run;
}

static void run_destroy(bench_run *run)
{
    pthread_cond_destroy(&run->cond);
    pthread_mutex_destroy(&run->mutex);
    free(run);
}

static void run_workload(const bench_workload *workload, bench_run *run)
{
    fk_system_config config = { .size = sizeof config,
                                .name = "bench",
                                .workers = run->threads,
                                .user = run,
                                .on_dead_letter = on_dead_letter,
                                .on_failure = on_failure };
    fk_err err = workload->prepare != NULL ? workload->prepare(run, &config) : FK_OK;
    if (err == FK_OK && (err = fk_system_start(&config, &run->sys)) != FK_OK) {
        bench_fail(run, "fk_system_start: %s", fk_err_text(err));
    }
    if (err == FK_OK) err = workload->run(run);
    if (err != FK_OK) bench_fail(run, "%s", fk_err_text(err));
    run->result.peak_rss_kb = peak_rss_kb();
    if (run->stuck) return; /* actors that still run use what finish would free */
    if (run->sys != NULL) bench_stop(run);
    if (workload->finish != NULL) workload->finish(run);
    uint64_t dead = atomic_load(&run->dead_letters);
    if (dead != 0) bench_fail(run, "%llu messages became dead letters", (unsigned long long)dead);
}

void bench_execute(const bench_workload *workload, const bench_options *options, uint32_t threads,
                   bench_result *out)
{
    bench_run *run = run_create(options, threads, options->ops != 0 ? options->ops : workload->ops);
    *out = (bench_result){ .error = "no memory" };
    if (run == NULL) return;
    run_workload(workload, run);
    run->result.ok = !run->failed;
    *out = run->result;
    if (!run->stuck) run_destroy(run);
}

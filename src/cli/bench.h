/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_BENCH_H
#define FK_CLI_BENCH_H

/*
 * What a workload of `fraktor bench` gets and gives.
 *
 * A workload is a function that runs on the main thread: it spawns its actors, starts the clock
 * with bench_begin(), sends the first messages and sleeps in bench_wait() until some actor calls
 * bench_done(). Every workload checks its own result; whoever finds something wrong, actor or
 * main, says so with bench_fail(), which ends the run. After the workload the driver stops the
 * system (not timed), calls finish, and fails the run if any actor failed or any message became
 * a dead letter.
 */

#include <fraktor/fraktor.h>
#include <pthread.h>
#include <stdatomic.h>

#define BENCH_NOTES_MAX 16

/* Figures of one run. Plain data, because a child process writes it into a pipe; the strings it
 * points to are literals, which parent and child have at the same addresses. */
typedef struct bench_note {
    const char *name;
    double value;
} bench_note;

typedef struct bench_result {
    bool ok;
    char error[200];
    uint64_t ops;
    double seconds;
    double cpu_seconds;
    uint64_t peak_rss_kb;
    uint32_t note_count;
    bench_note note[BENCH_NOTES_MAX];
} bench_result;

typedef struct bench_run {
    fk_system *sys;
    uint32_t threads;
    uint32_t payload; /* bytes of a message, where the workload lets one choose */
    double timeout;   /* seconds that bench_wait() waits at most */
    void *data;       /* the workload's own, between run and finish */

    pthread_mutex_t mutex; /* guards the rest up to result, and result.error */
    pthread_cond_t cond;
    bool done;
    bool failed;
    bool stuck; /* bench_wait() gave up: the system cannot be stopped any more */
    double begun;
    double begun_cpu;
    bench_result result; /* ops: wanted when the workload starts; it writes what it did */

    /* Written by actors, on a line of its own. */
    _Alignas(64) _Atomic uint64_t count;
    _Atomic uint64_t dead_letters;
} bench_run;

typedef struct bench_workload {
    const char *name;
    const char *unit;
    uint64_t ops; /* by default */
    const char *about;
    /* NULL, or: before the system starts, while the process has one thread and may fork; may change
     * the config. */
    fk_err (*prepare)(bench_run *run, fk_system_config *config);
    fk_err (*run)(bench_run *run);
    void (*finish)(bench_run *run); /* NULL, or: after the system has stopped; checks and frees */
    /* NULL, or: adds to many, measured with several threads, how it compares with one thread. */
    void (*compare)(const bench_result *one, bench_result *many);
} bench_workload;

/* ---- for the main thread of a run ------------------------------------------------------- */

void bench_begin(bench_run *run);
/* Sleeps until bench_done() or bench_fail(). Writes the time since bench_begin() to the result,
 * from where a workload of several phases may take it. Afterwards bench_begin() may follow. */
fk_err bench_wait(bench_run *run);
/* Stops the system and gives the seconds that took. */
double bench_stop(bench_run *run);
void bench_note_add(bench_run *run, const char *name, double value);
/* NAN when there is none of that name. */
double bench_note_get(const bench_result *result, const char *name);
/* Anonymous actor under /user; err is kept like fk_err of any call: the first one counts. */
fk_ref bench_spawn(bench_run *run, const fk_props *props, fk_err *err);
uint64_t bench_rss_kb(void);

/* ---- for actors too --------------------------------------------------------------------- */

void bench_done(bench_run *run);
/* Remembers the first reason and ends the wait. Gives FK_E_FAILED, for receive to return. */
fk_err bench_fail(bench_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the driver's side ------------------------------------------------------------------ */

typedef struct bench_options {
    uint32_t threads;
    uint32_t rounds;
    uint32_t payload;
    uint64_t ops; /* 0: the workload's */
    double timeout;
    bool json;
} bench_options;

/* One run in this process: starts a system, runs, stops, checks. */
void bench_execute(const bench_workload *workload, const bench_options *options, uint32_t threads,
                   bench_result *out);

void bench_print_json(const bench_workload *workload, uint32_t threads, uint32_t rounds,
                      const bench_result *result);
void bench_print_text(const bench_workload *workload, uint32_t threads, const bench_result *result);
void bench_print_head(void);
void bench_print_row(const bench_workload *workload, const bench_result *one,
                     const bench_result *two);

extern const bench_workload BENCH_PINGPONG, BENCH_RING, BENCH_BIG;
extern const bench_workload BENCH_COUNT, BENCH_FANIN, BENCH_FORKJOIN;
extern const bench_workload BENCH_CREATE, BENCH_SKYNET, BENCH_IDLE;
extern const bench_workload BENCH_TIMERS, BENCH_INDEPENDENT, BENCH_PATH_RESOLVE, BENCH_ASK;
extern const bench_workload BENCH_PLACE, BENCH_ACTIVATE;
extern const bench_workload BENCH_REMOTE_ONEWAY, BENCH_REMOTE_ASK;

#endif /* FK_CLI_BENCH_H */

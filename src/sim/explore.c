/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One search: schedules of one harness in one memory model, until one fails or none is
 * left. setup() and finish() run on a fiber of their own, so that a failure anywhere can
 * simply leave that stack behind.
 *
 * A failing schedule is kept as its list of actions. Whoever wants its trace runs the list
 * again (FK_SCHEDULE_REPLAY); collecting traces all the time would halve the speed.
 */

#include "sim/explore.h"

#include "base/base.h"
#include "sim/crash.h"
#include "sim/fiber.h"
#include "sim/fiber_sanitize.h"
#include "sim/quarantine.h"
#include "sim/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const uint64_t SCHEDULES_PER_CLOCK_READ = 64;

static fk_machine *machine;
static fk_fiber *alone; /* runs setup and finish */
static fk_schedule schedule;
static uint8_t actions[FK_SCHEDULE_STEPS_MAX];
static const char *failure;        /* of the current schedule */
static const fk_search *searching; /* NULL between searches */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void crashed(const char *what)
{
    fk__explore_fail(what);
}

/* AddressSanitizer ends the program: at least say which schedule it was. */
static void died(void)
{
    static char text[FK_SCHEDULE_STEPS_MAX * 4];
    if (searching == NULL) return;
    fk__schedule_format(actions, fk__machine_steps(machine), text, sizeof(text));
    fprintf(stderr, "--replay '%s,%s,%u,%s'\n", searching->harness->name,
            fk__memory_name(searching->memory), (unsigned)searching->mutation, text);
}

static void prepare(void)
{
    if (machine != NULL) return;
    machine = fk__machine_create();
    alone = fk__fiber_create(FK_FIBER_STACK_SIZE);
    if (machine == NULL || alone == NULL) {
        fputs("explorer: out of memory\n", stderr);
        exit(2);
    }
    fk__crash_install(crashed);
    fk__sanitize_on_death(died);
}

typedef struct side {
    void (*fn)(void *state);
    void *state;
} side;

static void side_main(void *arg)
{
    const side *s = arg;
    s->fn(s->state);
}

static void run_alone(void (*fn)(void *state), void *state)
{
    if (fn == NULL) return;
    fk__fiber_start(alone, side_main, &(side){ fn, state });
    fk__fiber_switch(alone);
}

static const char *describe(fk_outcome outcome)
{
    switch (outcome) {
    case FK_OUTCOME_DONE: return NULL;
    case FK_OUTCOME_STUCK: return "deadlock";
    case FK_OUTCOME_PAUSED: return "livelock";
    case FK_OUTCOME_FAILED: return fk__machine_failure(machine);
    case FK_OUTCOME_DIVERGED: break;
    }
    return schedule.is_unsteady ? "the harness does not repeat itself"
                                : "the schedule does not fit the harness";
}

/* Runs the harness under the next schedule; failure is NULL afterwards when it held. */
static void run_schedule(const fk_search *s)
{
    const fk_harness *h = s->harness;
    failure = NULL;
    fk__quarantine_reset();
    fk__trace_reset(s->is_traced);
    memset(h->state, 0, h->state_size);
    fk__machine_reset(machine, &(fk_machine_config){
                                   .memory = s->memory,
                                   .is_fine = h->is_fine,
                                   .finds_races = !h->allows_races,
                                   .choose = fk__schedule_choose,
                                   .choose_ctx = &schedule,
                                   .event = s->is_traced ? fk__trace_event : NULL,
                                   .log = actions,
                                   .log_size = FK_SCHEDULE_STEPS_MAX,
                               });
    fk__schedule_begin(&schedule);

    run_alone(h->setup, h->state);
    if (failure != NULL) return;
    for (uint32_t i = 0; i < h->threads; i++) fk__machine_spawn(machine, h->thread, h->state);
    failure =
        describe(fk__machine_run(machine, h->steps_max > 0 ? h->steps_max : FK_EXPLORE_STEPS_MAX));
    if (failure != NULL) return;
    run_alone(h->finish, h->state);
    if (failure == NULL) failure = fk__quarantine_end();
}

static void begin_search(const fk_search *s)
{
    prepare();
    FK_ASSERT(s->harness->threads <= FK_MACHINE_THREADS_MAX);
    FK_ASSERT(s->harness->steps_max <= FK_SCHEDULE_STEPS_MAX);
    if (s->kind == FK_SCHEDULE_REPLAY) {
        fk__schedule_init_replay(&schedule, s->replay, s->replay_len);
    } else {
        fk__schedule_init(&schedule, s->kind, s->bound, s->seed);
    }
    fk__mutation = s->mutation;
    searching = s;
}

fk_finding fk__explore_run(const fk_search *s)
{
    fk_finding f = { .verdict = FK_VERDICT_CLEAN };
    double start = now();
    begin_search(s);
    for (bool more = true; more;) {
        run_schedule(s);
        uint64_t steps = fk__machine_steps(machine);
        f.schedules++;
        f.steps += steps;
        if (failure != NULL) {
            f.verdict = FK_VERDICT_FOUND;
            f.failure = failure;
            f.actions = actions;
            f.action_count = steps;
            break;
        }
        if (!fk__schedule_next(&schedule, steps)) {
            f.verdict = FK_VERDICT_EXHAUSTED;
            break;
        }
        more = s->schedules == 0 || f.schedules < s->schedules;
        bool is_late = s->seconds > 0 && f.schedules % SCHEDULES_PER_CLOCK_READ == 0 &&
                       now() - start > s->seconds;
        if (more && is_late) {
            f.verdict = FK_VERDICT_INCOMPLETE;
            break;
        }
    }
    searching = NULL;
    fk__mutation = FK_MUTATION_NONE;
    f.seconds = now() - start;
    return f;
}

void fk__explore_fail(const char *what)
{
    if (fk__machine != NULL && fk__machine_self() != FK_MACHINE_NOBODY) fk__machine_fail(what);
    if (fk__fiber_self() == NULL) {
        fprintf(stderr, "explorer: %s, outside of any schedule\n", what);
        abort();
    }
    failure = what;
    fk__fiber_switch(NULL);
    abort();
}

/* Replaces the weak one of base/base.c: an assertion of the code under test is a failure. */
void fk__assert_failed(const char *file, int line)
{
    static char text[200];
    snprintf(text, sizeof(text), "assertion failed at %s:%d", file, line);
    fk__explore_fail(text);
}

void fk__explore_await(fk_machine_cond_fn *cond, void *arg)
{
    fk__machine_await(cond, arg);
}

void *fk__explore_alloc(size_t size)
{
    return fk__quarantine_alloc(size);
}

void fk__explore_free(void *ptr, size_t size)
{
    fk__machine_discard(ptr, size);
    const char *wrong = fk__quarantine_free(ptr, size);
    if (wrong != NULL) fk__explore_fail(wrong);
}

void *fk__explore_port_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (old_size == 0) return fk__explore_alloc(new_size);
    FK_ASSERT(new_size == 0);
    fk__explore_free(ptr, old_size);
    return NULL;
}

void fk__explore_read(const void *at)
{
    fk__machine_plain(at, false);
}

void fk__explore_write(const void *at)
{
    fk__machine_plain(at, true);
}

void fk__explore_label(const void *at, size_t size, uint32_t count, const char *name)
{
    fk__trace_label(at, size, count, name);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * timers: a thousand actors start a million one-shot timers that are due within one second.
 *
 * The second begins LEAD after the start, as in the prototype and the peers' programs, so that
 * starting and firing do not get in each other's way and lateness is that of the timers. Each
 * message carries the moment it was due; receive compares it with fk_now(): earlier is an error,
 * later is lateness. fk_now() costs about as much as starting a timer, so it is read once for
 * STRIDE of them; a due moment reckoned from a clock read before the start is never later than
 * the true one, so the test of "never early" stays exact. In a second phase as many timers are
 * started far in the future and cancelled.
 */

#include "bench.h"

#include "cli.h"

#include <stdlib.h>

enum { TIMERS_ACTORS = 1000, STRIDE = 16 };

#define LEAD   FK_SECONDS(3)
#define SPREAD FK_SECONDS(1)
#define FAR    FK_SECONDS(600)

typedef struct {
    uint32_t each;
    _Atomic int64_t start_ns;
    _Atomic int64_t cancel_start_ns;
    _Atomic int64_t cancel_ns;
    fk_time base;  /* when the second begins */
    int64_t *late; /* of each timer, -1 before it fired */
} timers_shared;

typedef struct {
    bench_run *run;
    timers_shared *shared;
    uint32_t index;
    uint32_t fired;
    uint64_t seed;
} timers_actor;

typedef struct {
    uint32_t unused;
} timers_fill;
FK_MESSAGE(timers_fill);

typedef struct {
    uint32_t unused;
} timers_cancel;
FK_MESSAGE(timers_cancel);

typedef struct {
    fk_time due;
    uint32_t number; /* within the actor; UINT32_MAX: it was cancelled */
} timers_fired;
FK_MESSAGE(timers_fired);

static void actor_done(timers_actor *self)
{
    uint64_t count = atomic_fetch_add(&self->run->count, 1) + 1;
    if (count == TIMERS_ACTORS) bench_done(self->run);
}

static fk_err actor_fill(fk_ctx *ctx, timers_actor *self)
{
    const timers_shared *shared = self->shared;
    fk_time begun = fk_now(ctx);
    fk_time now = begun;
    for (uint32_t i = 0; i < shared->each; i++) {
        if (i % STRIDE == 0) now = fk_now(ctx);
        fk_time due = shared->base + (fk_time)(cli_random(&self->seed) % (uint64_t)SPREAD);
        if (due < now) due = now; /* a machine so slow that the second has begun */
        fk_err err = fk_timer_start(ctx, i, FK_TIMER_ONCE, due - now, FK_MSG(timers_fired, due, i));
        if (err != FK_OK) return err;
    }
    atomic_fetch_add(&self->shared->start_ns, fk_now(ctx) - begun);
    return FK_OK;
}

static fk_err actor_fired(fk_ctx *ctx, timers_actor *self, const fk_msg *msg)
{
    const timers_fired *fired = FK_AS(timers_fired, msg);
    timers_shared *shared = self->shared;
    fk_time late = fk_now(ctx) - fired->due;
    if (fired->number == UINT32_MAX) {
        return bench_fail(self->run, "the message of a cancelled timer arrived");
    }
    if (late < 0) return bench_fail(self->run, "a timer was %lld ns early", (long long)-late);
    if (!fk_ref_equal(msg->sender, fk_self(ctx))) {
        return bench_fail(self->run, "a timer's message is not from the actor itself");
    }
    int64_t *slot = &shared->late[(uint64_t)self->index * shared->each + fired->number];
    if (*slot != -1) return bench_fail(self->run, "a timer fired twice");
    *slot = late;
    if (++self->fired == shared->each) actor_done(self);
    return FK_OK;
}

static fk_err actor_cancel(fk_ctx *ctx, timers_actor *self)
{
    timers_shared *shared = self->shared;
    fk_time begun = fk_now(ctx);
    for (uint32_t i = 0; i < shared->each; i++) {
        fk_time delay = FAR + (fk_time)(cli_random(&self->seed) % (uint64_t)SPREAD);
        fk_err err =
            fk_timer_start(ctx, i, FK_TIMER_ONCE, delay, FK_MSG(timers_fired, 0, UINT32_MAX));
        if (err != FK_OK) return err;
    }
    fk_time started = fk_now(ctx);
    for (uint32_t i = 0; i < shared->each; i++) {
        fk_err err = fk_timer_cancel(ctx, i);
        if (err != FK_OK) return fk_fail(ctx, err, "fk_timer_cancel");
    }
    fk_time cancelled = fk_now(ctx);
    if (fk_timer_is_active(ctx, 0)) return bench_fail(self->run, "a cancelled timer is active");
    atomic_fetch_add(&shared->cancel_start_ns, started - begun);
    atomic_fetch_add(&shared->cancel_ns, cancelled - started);
    actor_done(self);
    return FK_OK;
}

static fk_err timers_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    timers_actor *self = state;
    if (FK_AS(timers_fired, msg) != NULL) return actor_fired(ctx, self, msg);
    if (FK_AS(timers_fill, msg) != NULL) return actor_fill(ctx, self);
    if (FK_AS(timers_cancel, msg) != NULL) return actor_cancel(ctx, self);
    return fk_unhandled(ctx, msg);
}

/* ---- main's side ------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void note_lateness(bench_run *run, timers_shared *shared)
{
    size_t n = (size_t)shared->each * TIMERS_ACTORS;
    qsort(shared->late, n, sizeof *shared->late, by_value);
    bench_note_add(run, "late_p50_us", (double)shared->late[n / 2] / 1e3);
    bench_note_add(run, "late_p99_us", (double)shared->late[n - 1 - n / 100] / 1e3);
    bench_note_add(run, "late_max_us", (double)shared->late[n - 1] / 1e3);
    if (shared->late[0] < 0) bench_fail(run, "a timer never fired");
}

static timers_shared *shared_create(uint64_t ops)
{
    timers_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL) return NULL;
    shared->each = ops < TIMERS_ACTORS ? 1 : (uint32_t)(ops / TIMERS_ACTORS);
    size_t n = (size_t)shared->each * TIMERS_ACTORS;
    shared->late = malloc(n * sizeof *shared->late);
    if (shared->late == NULL) {
        free(shared);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) shared->late[i] = -1;
    return shared;
}

static fk_err run_timers(bench_run *run)
{
    fk_err err = FK_OK;
    fk_ref actor[TIMERS_ACTORS];
    fk_port port = fk_host_port();
    timers_shared *shared = shared_create(run->result.ops);
    if (shared == NULL) return FK_E_NOMEM;
    run->data = shared;
    run->result.ops = (uint64_t)shared->each * TIMERS_ACTORS;

    timers_actor init = { .run = run, .shared = shared };
    const fk_props props = { .receive = timers_receive, .state_size = sizeof init, .init = &init };
    for (uint32_t i = 0; i < TIMERS_ACTORS; i++) {
        init.index = i;
        init.seed = (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
        actor[i] = bench_spawn(run, &props, &err);
    }
    if (err != FK_OK) return err;
    bench_begin(run);
    shared->base = port.now(port.ctx) + LEAD;
    for (uint32_t i = 0; i < TIMERS_ACTORS; i++) {
        fk_send(run->sys, actor[i], FK_MSG(timers_fill, 0));
    }
    if ((err = bench_wait(run)) != FK_OK) return err;
    double seconds = run->result.seconds;
    double cpu_seconds = run->result.cpu_seconds;

    atomic_store(&run->count, 0);
    bench_begin(run);
    for (uint32_t i = 0; i < TIMERS_ACTORS; i++) {
        fk_send(run->sys, actor[i], FK_MSG(timers_cancel, 0));
    }
    if ((err = bench_wait(run)) != FK_OK) return err;
    run->result.seconds = seconds;
    run->result.cpu_seconds = cpu_seconds;
    fk_stats stats;
    fk_stats_get(run->sys, &stats);
    if (stats.timers != 0) {
        return bench_fail(run, "%llu timers are left", (unsigned long long)stats.timers);
    }
    return FK_OK;
}

static void finish_timers(bench_run *run)
{
    timers_shared *shared = run->data;
    if (shared == NULL) return;
    double n = (double)run->result.ops;
    bench_note_add(run, "start_ns", (double)shared->start_ns / n);
    bench_note_add(run, "start_far_ns", (double)shared->cancel_start_ns / n);
    bench_note_add(run, "cancel_ns", (double)shared->cancel_ns / n);
    if (!run->failed) note_lateness(run, shared);
    free(shared->late);
    free(shared);
}

const bench_workload BENCH_TIMERS = {
    .name = "timers",
    .unit = "timers",
    .ops = 1000000,
    .about = "one-shot timers due within a second: cost, lateness; then cancelling",
    .run = run_timers,
    .finish = finish_timers,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * independent: pairs of actors that have nothing to do with each other, to see what a second
 * thread is worth. Each message costs its receiver about a microsecond of computing on data of
 * its own and is then answered within the pair. The same pairs then chat without computing.
 *
 * What two cores of this machine can do at best is measured beside it: raw is the same computing
 * by plain threads. On a shared machine the speed-up must be judged against that, not against 2.
 */

#include "bench.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { PAIRS = 32, WORDS = 64, STEPS = 400, CHAT_FACTOR = 10 };

typedef struct {
    uint64_t left;  /* messages of this pair that are still to come */
    uint32_t steps; /* of computing */
} independent_ball;
FK_MESSAGE(independent_ball);

typedef struct {
    uint64_t x;
    uint64_t word[WORDS];
} workbench;

typedef struct {
    bench_run *run;
    const workbench *want; /* at the end, for it and all others */
    uint64_t handled;
    workbench bench;
} independent_actor;

static void workbench_init(workbench *bench)
{
    *bench = (workbench){ .x = 88172645463325252u };
}

/* A chain in which every step needs the one before, so that no compiler shortens it. */
static void workbench_step(workbench *bench, uint32_t steps)
{
    uint64_t x = bench->x;
    for (uint32_t i = 0; i < steps; i++) {
        cli_random(&x);
        bench->word[x % WORDS] += x;
    }
    bench->x = x;
}

static fk_err independent_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    independent_actor *self = state;
    const independent_ball *ball = FK_AS(independent_ball, msg);
    if (ball == NULL) return fk_unhandled(ctx, msg);
    workbench_step(&self->bench, ball->steps);
    self->handled++;
    if (ball->left > 0) return fk_reply(ctx, FK_MSG(independent_ball, ball->left - 1, ball->steps));
    if (atomic_fetch_add(&self->run->count, 1) + 1 == PAIRS) bench_done(self->run);
    return FK_OK;
}

static void independent_stop(fk_ctx *ctx, void *state)
{
    independent_actor *self = state;
    (void)ctx;
    atomic_fetch_add(&self->run->count, self->handled);
    if (memcmp(&self->bench, self->want, sizeof self->bench) != 0) {
        bench_fail(self->run, "an actor computed something else than it should");
    }
}

/* ---- the same by plain threads ---------------------------------------------------------- */

typedef struct raw_share {
    pthread_t thread;
    uint64_t messages;
    workbench bench;
} raw_share;

static void *raw_work(void *arg)
{
    raw_share *share = arg;
    workbench_init(&share->bench);
    for (uint64_t i = 0; i < share->messages; i++) workbench_step(&share->bench, STEPS);
    return NULL;
}

/* Messages' worth of computing per second. */
static double raw_rate(uint32_t threads, uint64_t messages)
{
    uint32_t started = 0;
    raw_share *share = calloc(threads, sizeof *share);
    if (share == NULL) return 0;
    double begun = cli_seconds();
    for (; started < threads; started++) {
        share[started].messages = messages / threads;
        if (pthread_create(&share[started].thread, NULL, raw_work, &share[started]) != 0) break;
    }
    for (uint32_t i = 0; i < started; i++) pthread_join(share[i].thread, NULL);
    double seconds = cli_seconds() - begun;
    free(share);
    return (double)(messages / threads * started) / seconds;
}

/* ---- main's side ------------------------------------------------------------------------ */

static fk_err play(bench_run *run, fk_ref (*pair)[2], uint64_t messages, uint32_t steps)
{
    atomic_store(&run->count, 0);
    bench_begin(run);
    for (uint32_t i = 0; i < PAIRS; i++) {
        fk_send_from(run->sys, pair[i][0], pair[i][1],
                     FK_MSG(independent_ball, messages - 1, steps));
    }
    return bench_wait(run);
}

static fk_err run_independent(bench_run *run)
{
    fk_err err = FK_OK;
    fk_ref pair[PAIRS][2];
    workbench *want = malloc(sizeof *want);
    if (want == NULL) return FK_E_NOMEM;
    run->data = want;
    uint64_t each = run->result.ops / PAIRS / 2 * 2; /* even: both do the same */
    if (each == 0) each = 2;
    uint64_t chat = each * CHAT_FACTOR;
    run->result.ops = each * PAIRS;

    workbench_init(want);
    double begun = cli_seconds();
    for (uint64_t i = 0; i < each / 2; i++) workbench_step(want, STEPS);
    bench_note_add(run, "work_ns", (cli_seconds() - begun) / (double)(each / 2) * 1e9);

    independent_actor init = { .run = run, .want = want };
    workbench_init(&init.bench);
    const fk_props props = { .receive = independent_receive,
                             .stop = independent_stop,
                             .state_size = sizeof init,
                             .init = &init };
    for (uint32_t i = 0; i < PAIRS; i++) {
        pair[i][0] = bench_spawn(run, &props, &err);
        pair[i][1] = bench_spawn(run, &props, &err);
    }
    if (err != FK_OK) return err;
    if ((err = play(run, pair, each, STEPS)) != FK_OK) return err;
    double seconds = run->result.seconds;
    double cpu_seconds = run->result.cpu_seconds;
    if ((err = play(run, pair, chat, 0)) != FK_OK) return err;
    bench_note_add(run, "chat_ops_per_s", (double)(chat * PAIRS) / run->result.seconds);
    bench_note_add(run, "raw_ops_per_s", raw_rate(run->threads, run->result.ops));
    run->result.seconds = seconds;
    run->result.cpu_seconds = cpu_seconds;
    atomic_store(&run->count, 0); /* from here on what the actors handled; see finish */
    return FK_OK;
}

static void finish_independent(bench_run *run)
{
    uint64_t want = run->result.ops * (1 + CHAT_FACTOR);
    uint64_t handled = atomic_load(&run->count);
    free(run->data);
    if (handled != want) {
        bench_fail(run, "the actors handled %llu messages, not %llu", (unsigned long long)handled,
                   (unsigned long long)want);
    }
}

static void compare_independent(const bench_result *one, bench_result *many)
{
    static const struct {
        const char *rate;
        const char *speedup;
    } RATIOS[] = { { "chat_ops_per_s", "chat_speedup" }, { "raw_ops_per_s", "raw_speedup" } };
    double rate_one = (double)one->ops / one->seconds;
    double rate_many = (double)many->ops / many->seconds;
    many->note[many->note_count++] = (bench_note){ "speedup", rate_many / rate_one };
    for (int i = 0; i < 2; i++) {
        double ratio = bench_note_get(many, RATIOS[i].rate) / bench_note_get(one, RATIOS[i].rate);
        many->note[many->note_count++] = (bench_note){ RATIOS[i].speedup, ratio };
    }
}

const bench_workload BENCH_INDEPENDENT = {
    .name = "independent",
    .unit = "messages",
    .ops = 1000000,
    .about = "32 pairs that only know each other, 1 us of work per message; speed-up",
    .run = run_independent,
    .finish = finish_independent,
    .compare = compare_independent,
};

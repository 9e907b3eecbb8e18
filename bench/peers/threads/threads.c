/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What plain threads reach on independent work: each thread spins through its
 * own arithmetic and shares nothing with the others. ops_per_s with two threads
 * divided by ops_per_s with one is the most that this machine can give to any
 * runtime; two virtual processors may well be one real core.
 *
 *     threads independent THREADS [--ops N]      N: steps, shared out evenly
 */
#include <pthread.h>
#include <stdbool.h>

#include "../bench.h"

#define OPS_DEFAULT 1000000000u
#define THREADS_MAX 64

typedef struct job {
    pthread_t thread;
    uint64_t steps;
    uint64_t state;
} job;

/* One step depends on the one before it, as in a handler that computes. */
static uint64_t spin(uint64_t state, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) bench_xorshift(&state);
    return state;
}

static void *job_main(void *arg)
{
    job *j = arg;
    j->state = spin(j->state, j->steps);
    return NULL;
}

int main(int argc, char **argv)
{
    bench_args args = bench_args_parse(argc, argv);
    if (strcmp(args.workload, "independent") != 0) {
        bench_fail(args.workload, "this program has one workload: independent");
    }

    static job jobs[THREADS_MAX];
    uint64_t steps = bench_share(args.ops > 0 ? args.ops : OPS_DEFAULT, args.threads);
    uint64_t start_ns = bench_now_ns();
    for (unsigned i = 0; i < args.threads; i++) {
        jobs[i].steps = steps;
        jobs[i].state = bench_seed(0);
        if (pthread_create(&jobs[i].thread, NULL, job_main, &jobs[i]) != 0) {
            bench_fail(args.workload, "cannot create a thread");
        }
    }
    for (unsigned i = 0; i < args.threads; i++) pthread_join(jobs[i].thread, NULL);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;

    /* All began with the same state, so all must have ended with the same one. */
    for (unsigned i = 1; i < args.threads; i++) {
        if (jobs[i].state != jobs[0].state) bench_fail(args.workload, "wrong result");
    }
    if (jobs[0].state == bench_seed(0)) bench_fail(args.workload, "nothing was computed");
    bench_report("threads", args.workload, args.threads, steps * args.threads, elapsed_ns);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PEERS_BENCH_H
#define FK_PEERS_BENCH_H

/*
 * What the C and C++ programs of this directory share: the command line, the
 * clock, the sizes of the workloads, and the one line of JSON at the end.
 *
 *     PROGRAM WORKLOAD THREADS [--ops N]
 *
 * --ops is the number of messages (create, skynet: actors) wanted. A workload
 * rounds it down to what its shape allows and reports what it really did.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_RING_LEN      503u /* actors in the ring */
#define BENCH_PRODUCERS     8u   /* senders of fanin */
#define BENCH_FORKJOIN_LEN  60u  /* receivers of forkjoin */
#define BENCH_BIG_LEN       200u /* actors of big */
#define BENCH_SKYNET_FANOUT 10u  /* children of every inner node of skynet */

typedef struct bench_args {
    const char *workload;
    unsigned threads;
    uint64_t ops; /* 0: the program's own default for this workload */
} bench_args;

static inline void bench_fail(const char *workload, const char *why)
{
    fprintf(stderr, "FAIL %s: %s\n", workload, why);
    _exit(1); /* exit() would wait for other threads in some runtimes */
}

static inline bench_args bench_args_parse(int argc, char **argv)
{
    bench_args args = { NULL, 1, 0 };
    char *end = NULL;

    if (argc != 3 && argc != 5) goto usage;
    if (argc == 5 && strcmp(argv[3], "--ops") != 0) goto usage;
    args.workload = argv[1];
    args.threads = (unsigned)strtoul(argv[2], &end, 10);
    if (*end != '\0' || args.threads < 1 || args.threads > 64) goto usage;
    if (argc == 5) {
        args.ops = strtoull(argv[4], &end, 10);
        if (*end != '\0' || args.ops == 0) goto usage;
    }
    return args;

usage:
    fprintf(stderr,
            "usage: %s WORKLOAD THREADS [--ops N]\n"
            "workloads: pingpong ring count fanin forkjoin create skynet big\n",
            argv[0]);
    exit(2);
}

/* How often one of parts actors repeats its step so that the whole workload
 * comes to about ops. Never 0. */
static inline uint64_t bench_share(uint64_t ops, uint64_t parts)
{
    return ops / parts > 0 ? ops / parts : 1;
}

/* All actors of a skynet with this many leaves: 1 + 10 + 100 + ... + leaves. */
static inline uint64_t bench_skynet_actors(uint64_t leaves)
{
    uint64_t actors = 0;
    for (; leaves > 0; leaves /= BENCH_SKYNET_FANOUT) actors += leaves;
    return actors;
}

/* The largest skynet that has no more than ops actors, but at least one level. */
static inline uint64_t bench_skynet_leaves(uint64_t ops)
{
    uint64_t leaves = BENCH_SKYNET_FANOUT;
    while (bench_skynet_actors(leaves * BENCH_SKYNET_FANOUT) <= ops) leaves *= BENCH_SKYNET_FANOUT;
    return leaves;
}

static inline uint64_t bench_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t bench_xorshift(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* Every actor of big draws its own sequence; all programs use the same ones. */
static inline uint64_t bench_seed(uint64_t index)
{
    return 88172645463325252u ^ ((index + 1) * 0x9E3779B97F4A7C15u);
}

static inline void bench_report(const char *runtime, const char *workload, unsigned threads,
                                uint64_t ops, uint64_t elapsed_ns)
{
    double seconds = (double)elapsed_ns / 1e9;
    printf("{\"runtime\":\"%s\",\"workload\":\"%s\",\"threads\":%u,\"ops\":%llu,"
           "\"seconds\":%.6f,\"ops_per_s\":%.0f}\n",
           runtime, workload, threads, (unsigned long long)ops, seconds, (double)ops / seconds);
    fflush(stdout);
}

#ifdef __cplusplus
}
#endif
#endif /* FK_PEERS_BENCH_H */

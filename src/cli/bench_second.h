/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_BENCH_SECOND_H
#define FK_CLI_BENCH_SECOND_H

/*
 * The second process of a workload that needs two, as the first one sees it.
 *
 * It is forked before there is any thread, so it needs no arguments: it has what the first process
 * has. It serves until the first one closes a pipe or is gone.
 */

#include "bench.h"

#include <sys/types.h>

typedef struct bench_second {
    pid_t pid;
    uint16_t port; /* where its system listens, on loopback */
    int life;      /* -1: not started */
} bench_second;

/* What there is in the second process: a system called "second" with one actor. */
typedef struct bench_service {
    const char *name;      /* of the actor under /user */
    const fk_props *props; /* of the actor */
    const fk_codec *const *codecs;
} bench_service;

/* True: it runs and listens. False: run has failed. */
bool bench_second_start(bench_run *run, const bench_service *service, bench_second *second);
/* Asks it to end and waits for that; fails the run if something went wrong there. */
void bench_second_stop(bench_run *run, bench_second *second);

/* Config of a system that others on this machine can reach, at any free port. */
fk_remoting_config bench_loopback(const fk_codec *const *codecs);

/* User and system time of all threads of a process. */
double bench_process_seconds(pid_t pid);
/* "VmRSS" or "VmHWM" (the most there was) of a process; 0 when it is not known. */
uint64_t bench_process_kb(pid_t pid, const char *what);

#endif /* FK_CLI_BENCH_SECOND_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PEERS_REMOTE_H
#define FK_PEERS_REMOTE_H

/*
 * What the C and C++ programs of the two remote workloads share: a second process, the processor
 * time of both, and the line at the end.
 *
 * The first process measures. It forks the second before it has any thread, and that one says
 * through a pipe at which port it listens. The second never outlives the first.
 */

#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include "bench.h"

#ifdef __cplusplus
extern "C" {
#endif

#define REMOTE_PAYLOAD 64u   /* bytes of a message; the first 8 are its number */
#define REMOTE_WINDOW  8192u /* messages that may be on their way */
#define REMOTE_ACK     2048u /* after so many the receiver says how far it is */

typedef struct remote_second {
    pid_t pid;
    uint16_t port;
} remote_second;

/* Without the second process the first would wait for ever. */
static inline void remote_lost(int signal_number)
{
    static const char text[] = "FAIL: the second process ended\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(1);
    _exit(1);
}

/* Calls serve(), which does not return, in a new process, and waits until it knows the port: serve()
 * writes it to the file descriptor with remote_ready(). */
static inline remote_second remote_start(void (*serve)(int fd, const bench_args *args),
                                         const bench_args *args)
{
    remote_second second = { -1, 0 };
    int fd[2];
    if (pipe(fd) != 0) bench_fail(args->workload, "no pipe");
    signal(SIGCHLD, remote_lost);
    second.pid = fork();
    if (second.pid == 0) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fd[0]);
        serve(fd[1], args);
        _exit(1);
    }
    close(fd[1]);
    if (read(fd[0], &second.port, sizeof second.port) != (ssize_t)sizeof second.port) {
        bench_fail(args->workload, "the second process did not start");
    }
    close(fd[0]);
    return second;
}

static inline void remote_ready(int fd, uint16_t port)
{
    if (write(fd, &port, sizeof port) != (ssize_t)sizeof port) _exit(1);
    close(fd);
}

/* User and system time of all threads of a process. */
static inline uint64_t remote_cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t = { 0, 0 };
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0) {
        bench_fail("remote", "the processor time of a process is not known");
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct remote_watch {
    pid_t second;
    uint64_t wall_ns;
    uint64_t cpu_ns;
} remote_watch;

static inline remote_watch remote_begin(pid_t second)
{
    remote_watch watch;
    watch.second = second;
    watch.cpu_ns = remote_cpu_ns(getpid()) + remote_cpu_ns(second);
    watch.wall_ns = bench_now_ns();
    return watch;
}

static inline int remote_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* trip_ns: how long each round trip took, or NULL; is sorted. */
static inline void remote_report(const char *runtime, const bench_args *args, remote_watch begun,
                                 uint64_t ops, uint64_t *trip_ns)
{
    double seconds = (double)(bench_now_ns() - begun.wall_ns) / 1e9;
    uint64_t cpu_ns = remote_cpu_ns(getpid()) + remote_cpu_ns(begun.second) - begun.cpu_ns;
    printf("{\"runtime\":\"%s\",\"workload\":\"%s\",\"threads\":%u,\"ops\":%llu,"
           "\"seconds\":%.6f,\"ops_per_s\":%.0f,\"cpu_ns_per_op\":%.1f",
           runtime, args->workload, args->threads, (unsigned long long)ops, seconds,
           (double)ops / seconds, (double)cpu_ns / (double)ops);
    if (trip_ns != NULL) {
        qsort(trip_ns, ops, sizeof *trip_ns, remote_by_value);
        printf(",\"p50_us\":%.1f,\"p99_us\":%.1f", (double)trip_ns[ops / 2] / 1e3,
               (double)trip_ns[ops - 1 - ops / 100] / 1e3);
    }
    printf("}\n");
    fflush(stdout);
}

#ifdef __cplusplus
}
#endif
#endif /* FK_PEERS_REMOTE_H */

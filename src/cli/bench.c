/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fraktor bench: which workloads to run how often, and what to say about them.
 *
 * A single run happens in this process, so that a debugger or profiler sees it. When there are
 * several, each gets a child process of its own: a fresh heap, its own peak of memory, and a
 * crash that is a failed run and not the end of the whole table.
 */

#include "bench.h"

#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 1000, THREADS_MAX = 256, PAYLOAD_MIN = 8, PAYLOAD_MAX = 65536 };

static const bench_workload *const WORKLOADS[] = {
    &BENCH_PINGPONG,      &BENCH_RING,        &BENCH_COUNT,        &BENCH_FANIN, &BENCH_FORKJOIN,
    &BENCH_BIG,           &BENCH_CREATE,      &BENCH_SKYNET,       &BENCH_IDLE,  &BENCH_ASK,
    &BENCH_TIMERS,        &BENCH_INDEPENDENT, &BENCH_PATH_RESOLVE, &BENCH_PLACE, &BENCH_ACTIVATE,
    &BENCH_REMOTE_ONEWAY, &BENCH_REMOTE_ASK,
};

enum { WORKLOAD_COUNT = sizeof WORKLOADS / sizeof WORKLOADS[0] };

static void help(void)
{
    puts(
        "usage: fraktor bench WORKLOAD [--threads N] [--ops N] [--rounds R] [--json]\n"
        "\n"
        "Runs a workload on a system of its own, checks its result and prints its speed. The time\n"
        "is that of the work alone, without starting and stopping the system.\n"
        "\n"
        "workloads (in brackets what --ops counts, and how many by default):");
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        const bench_workload *w = WORKLOADS[i];
        printf("  %-13s%s [%s: %llu]\n", w->name, w->about, w->unit, (unsigned long long)w->ops);
    }
    puts("  all          each of them with 1 and with 2 threads, as a table\n"
         "\n"
         "options:\n"
         "  --threads N   worker threads of the system (1); all does not take it\n"
         "  --ops N       amount of work; 10k, 5M are fine; rounded down to what divides evenly\n"
         "  --rounds R    runs of each; the one in the middle is reported (1)\n"
         "  --payload N   bytes of a message of the remote workloads (64)\n"
         "  --timeout S   seconds after which a run counts as stuck (120)\n"
         "  --json        one object per line\n"
         "\n"
         "example: fraktor bench pingpong --threads 2 --ops 10M --rounds 5 --json");
}

/* ---- running ---------------------------------------------------------------------------- */

/* Fills *out from the child's pipe and exit. False when the child gave no complete result. */
static bool collect(pid_t child, int fd, bench_result *out)
{
    size_t got = 0;
    int status = 0;
    while (got < sizeof *out) {
        ssize_t n = read(fd, (char *)out + got, sizeof *out - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        got += (size_t)n;
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    if (got == sizeof *out) return true;
    *out = (bench_result){ .ok = false };
    if (WIFSIGNALED(status)) {
        snprintf(out->error, sizeof out->error, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(out->error, sizeof out->error, "ended without a result, exit code %d",
                 WEXITSTATUS(status));
    }
    return false;
}

static void execute_in_child(const bench_workload *workload, const bench_options *options,
                             uint32_t threads, bench_result *out)
{
    int fd[2];
    *out = (bench_result){ .error = "cannot start a child process" };
    if (pipe(fd) != 0) return;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close(fd[0]);
        bench_execute(workload, options, threads, out);
        /* One write: the result is smaller than PIPE_BUF. */
        _exit(write(fd[1], out, sizeof *out) == (ssize_t)sizeof *out ? CLI_OK : CLI_FAILED);
    }
    close(fd[1]);
    if (child > 0) collect(child, fd[0], out);
    close(fd[0]);
}

static int by_rate(const void *a, const void *b)
{
    const bench_result *x = a;
    const bench_result *y = b;
    double rate_x = (double)x->ops / x->seconds;
    double rate_y = (double)y->ops / y->seconds;
    return (rate_x > rate_y) - (rate_x < rate_y);
}

/* All rounds of one workload with that many threads; *out is the one in the middle. */
static bool measure(const bench_workload *workload, const bench_options *options, uint32_t threads,
                    bool isolated, bench_result *out)
{
    bench_result *rounds = calloc(options->rounds, sizeof *rounds);
    if (rounds == NULL) return false;
    bool ok = true;
    for (uint32_t i = 0; i < options->rounds && ok; i++) {
        if (isolated || options->rounds > 1) {
            execute_in_child(workload, options, threads, &rounds[i]);
        } else {
            bench_execute(workload, options, threads, &rounds[i]);
        }
        ok = rounds[i].ok;
        if (!ok) {
            cli_failed("bench", "%s with %u thread%s FAILED: %s", workload->name, threads,
                       threads == 1 ? "" : "s", rounds[i].error);
        }
    }
    if (ok) {
        qsort(rounds, options->rounds, sizeof *rounds, by_rate);
        *out = rounds[options->rounds / 2];
    }
    free(rounds);
    return ok;
}

/* ---- one workload, or all --------------------------------------------------------------- */

static int bench_one(const bench_workload *workload, const bench_options *options)
{
    bench_result one;
    bench_result result;
    bool compared = workload->compare != NULL && options->threads > 1;

    if (compared && !measure(workload, options, 1, true, &one)) return CLI_FAILED;
    if (!measure(workload, options, options->threads, compared, &result)) return CLI_FAILED;
    if (compared) workload->compare(&one, &result);
    if (options->json) {
        bench_print_json(workload, options->threads, options->rounds, &result);
    } else {
        bench_print_text(workload, options->threads, &result);
    }
    return CLI_OK;
}

static int bench_all(const bench_options *options)
{
    int code = CLI_OK;
    if (!options->json) bench_print_head();
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        const bench_workload *workload = WORKLOADS[i];
        bench_result result[2];
        bool ok = true;
        for (uint32_t t = 0; t < 2 && ok; t++) {
            ok = measure(workload, options, t + 1, true, &result[t]);
            if (ok && t == 1 && workload->compare != NULL) {
                workload->compare(&result[0], &result[1]);
            }
            if (ok && options->json) {
                bench_print_json(workload, t + 1, options->rounds, &result[t]);
            }
        }
        if (ok && !options->json) bench_print_row(workload, &result[0], &result[1]);
        if (!ok) code = CLI_FAILED; /* said already; the others are still worth running */
    }
    return code;
}

/* ---- command line ----------------------------------------------------------------------- */

static const struct option OPTIONS[] = {
    { "threads", required_argument, NULL, 't' }, { "ops", required_argument, NULL, 'o' },
    { "rounds", required_argument, NULL, 'r' },  { "payload", required_argument, NULL, 'p' },
    { "timeout", required_argument, NULL, 'x' }, { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
};

/* Gives CLI_OK, or the exit code after saying why not; *helped when --help was the wish. */
static int parse(int argc, char **argv, bench_options *out, bool *threads_given, bool *helped)
{
    uint64_t n = 0;
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        bool ok = true;
        if (opt == 't' && (ok = cli_number(optarg, 1, THREADS_MAX, &n))) {
            out->threads = (uint32_t)n;
            *threads_given = true;
        } else if (opt == 'o' && (ok = cli_number(optarg, 1, 1000000000000, &n))) {
            out->ops = n;
        } else if (opt == 'r' && (ok = cli_number(optarg, 1, ROUNDS_MAX, &n))) {
            out->rounds = (uint32_t)n;
        } else if (opt == 'p' && (ok = cli_number(optarg, PAYLOAD_MIN, PAYLOAD_MAX, &n))) {
            out->payload = (uint32_t)n;
        } else if (opt == 'x' && (ok = cli_number(optarg, 1, 1000000, &n))) {
            out->timeout = (double)n;
        } else if (opt == 'j') {
            out->json = true;
        } else if (opt == 'h') {
            help();
            *helped = true;
            return CLI_OK;
        } else if (opt == ':') {
            return cli_usage_error("bench", "%s needs a value", argv[optind - 1]);
        } else if (opt == '?') {
            return cli_usage_error("bench", "there is no option %s", argv[optind - 1]);
        }
        if (!ok) return cli_usage_error("bench", "'%s' is not a number in range", optarg);
    }
    return CLI_OK;
}

int cli_bench(int argc, char **argv)
{
    bench_options options = { .threads = 1, .rounds = 1, .payload = 64, .timeout = 120 };
    bool threads_given = false;
    bool helped = false;

    int code = parse(argc, argv, &options, &threads_given, &helped);
    if (code != CLI_OK || helped) return code;
    if (optind == argc) return cli_usage_error("bench", "which workload?");
    if (optind + 1 < argc) return cli_usage_error("bench", "too much: '%s'", argv[optind + 1]);
    const char *name = argv[optind];
    if (strcmp(name, "all") == 0) {
        if (threads_given) return cli_usage_error("bench", "all does not take --threads");
        return bench_all(&options);
    }
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        if (strcmp(WORKLOADS[i]->name, name) == 0) return bench_one(WORKLOADS[i], &options);
    }
    return cli_usage_error("bench", "there is no workload '%s'", name);
}

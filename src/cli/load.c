/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor load: a client node that moves money between the accounts of a cluster. */

#include "load.h"

#include "cli.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

enum { SECONDS_MAX = 86400, STOP_SECONDS = 30, READY_SECONDS = 30, PATIENCE_SECONDS = 60 };

typedef struct load_command {
    fk_cluster_config cluster;
    load_options load;
    uint64_t seconds;
    bool json;
} load_command;

static void help(void)
{
    puts(
        "usage: fraktor load --store URL [--seconds N] [--callers M] [--accounts N] [OPTION]...\n"
        "\n"
        "Joins a cluster as a client and moves money between accounts, as fast as M callers that wait\n"
        "for each answer can. At the end it reads all accounts: every order must have been done once,\n"
        "and the money must still be there; exit code 1 if not. Nodes may come, go and be killed\n"
        "meanwhile. An order whose call came to nothing is given again until its account says what\n"
        "became of it. Nobody else may use the accounts (a00000, a00001, ...) at that time.\n"
        "\n"
        "options:\n"
        "  --store URL     the cluster's (sqlite:FILE)\n"
        "  --seconds N     how long (10)\n"
        "  --callers M     at a time, 1 to 64 (16)\n"
        "  --accounts N    2 to 100000 (100)\n"
        "  --timeout MS    of one call, which the runtime tries again meanwhile (5000)\n"
        "  --ttl MS        as the members have it (3000)\n"
        "  --slots N       as the members have it (16384)\n"
        "  --json          one object per line\n"
        "\n"
        "Ctrl-C (SIGINT, SIGTERM) ends it early, with its summary.\n"
        "\n"
        "Exit code: 0 ok, 1 the books are wrong or nobody answers, 2 wrong usage.\n"
        "\n"
        "example: fraktor load --store sqlite:bank.db --seconds 5");
}

int load_join(const char *command, const fk_cluster_config *wish, fk_system **sys,
              fk_cluster **cluster)
{
    const char *why = "";
    const fk_system_config config = {
        .size = sizeof config,
        .name = "load",
        .scheme = FK_SCHEME_TCP,
        .remoting = { .enabled = true, .host = "127.0.0.1", .reconnect_max = FK_SECONDS(1) }
    };
    fk_cluster_config join = *wish;
    join.size = sizeof join;
    join.client = true;
    join.why = &why;
    fk_err err = fk_system_start(&config, sys);
    if (err != FK_OK) return cli_failed(command, "cannot start a system: %s", fk_err_text(err));
    err = fk_cluster_join(*sys, &join, cluster);
    if (err == FK_OK) {
        why = "no view of the cluster";
        err = fk_cluster_await_ready(*cluster, FK_SECONDS(READY_SECONDS));
    }
    if (err == FK_OK) return CLI_OK;
    cli_watchdog("fk_system_stop() does not return", STOP_SECONDS);
    fk_system_stop(*sys);
    cli_watchdog("", 0);
    return cli_failed(command, "cannot join the cluster at %s: %s", join.store, why);
}

/* ---- output -------------------------------------------------------------------------------------------- */

static void say_progress(const load_command *c, double seconds, const load_figures *now,
                         const load_figures *before)
{
    uint64_t calls = now->calls - before->calls;
    if (c->json) {
        printf("{\"event\":\"progress\",\"seconds\":%.1f,\"transfers\":%" PRIu64
               ",\"calls\":%" PRIu64 ",\"calls_per_s\":%" PRIu64 ",\"failed\":%" PRIu64 "}\n",
               seconds, now->transfers, now->calls, calls, now->failed);
    } else {
        printf("%4.0f s  %9" PRIu64 " transfers  %8" PRIu64 " calls/s  %" PRIu64 " failed\n",
               seconds, now->transfers, calls, now->failed);
    }
    fflush(stdout);
}

static void summary_json(const load_command *c, double seconds, const load_figures *f,
                         const load_books *b, const fk_cluster_stats *stats)
{
    printf("{\"event\":\"summary\",\"seconds\":%.3f,\"accounts\":%u,\"callers\":%u,"
           "\"transfers\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"calls\":%" PRIu64
           ",\"failed\":%" PRIu64 ",\"repeated\":%" PRIu64 ",\"retried\":%" PRIu64
           ",\"unknown\":%" PRIu64,
           seconds, c->load.accounts, c->load.callers, f->transfers, f->refused, f->calls,
           f->failed, f->repeated, stats->retried, f->unknown);
    printf(",\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"longest_pause_ms\":%.1f,"
           "\"longest_pause_key\":\"%s\"",
           f->p50_ms, f->p99_ms, f->max_ms, f->pause_ms, f->pause_key);
    printf(",\"sum_expected\":%" PRId64 ",\"sum_found\":%" PRId64 ",\"lost\":%" PRIu64
           ",\"double\":%" PRIu64 ",\"wrong_accounts\":%" PRIu64 ",\"unread_accounts\":%" PRIu64
           ",\"ok\":%s}\n",
           b->expected, b->found, b->lost, b->twice, b->wrong, b->unread,
           load_is_ok(f, b) ? "true" : "false");
}

static void summary_text(double seconds, const load_figures *f, const load_books *b,
                         const fk_cluster_stats *stats)
{
    printf("\n%" PRIu64 " transfers in %.1f s, %" PRIu64 " more refused for lack of money\n",
           f->transfers, seconds, f->refused);
    printf("%" PRIu64 " calls: %" PRIu64 " failed, %" PRIu64
           " made again; the runtime retried %" PRIu64 "\n",
           f->calls, f->failed, f->repeated, stats->retried);
    printf(
        "latency: p50 %.2f ms, p99 %.2f ms, max %.1f ms; longest pause of one key %.1f ms (%s)\n",
        f->p50_ms, f->p99_ms, f->max_ms, f->pause_ms, f->pause_key);
    printf("money: %" PRId64 " expected, %" PRId64 " found; orders: %" PRIu64 " lost, %" PRIu64
           " double, %" PRIu64 " unknown\n",
           b->expected, b->found, b->lost, b->twice, f->unknown);
    if (b->wrong + b->unread != 0) {
        printf("accounts: %" PRIu64 " wrong, %" PRIu64 " did not answer\n", b->wrong, b->unread);
    }
}

/* ---- running --------------------------------------------------------------------------------------------- */

/* Until the time is up, or a signal ends it. */
static double work(const load_command *c, load *running)
{
    load_figures before = { .calls = 0 }, now;
    double begun = cli_seconds();
    bool goes_on = true;
    for (uint64_t second = 1; second <= c->seconds && goes_on; second++) {
        goes_on = cli_sleep_until(begun + (double)second);
        load_figures_get(running, &now);
        say_progress(c, cli_seconds() - begun, &now, &before);
        before = now;
    }
    return cli_seconds() - begun;
}

static int run(const load_command *c)
{
    fk_system *sys = NULL;
    fk_cluster *cluster = NULL;
    load *running = NULL;
    load_figures figures;
    load_books books;
    fk_cluster_stats stats = { .retried = 0 };
    const char *why = "";
    int code = load_join("load", &c->cluster, &sys, &cluster);
    if (code != CLI_OK) return code;
    cli_signals_catch();
    if (load_start(cluster, &c->load, &running, &why) != FK_OK) {
        code = cli_failed("load", "%s", why);
    } else {
        double seconds = work(c, running);
        load_stop(running, &books);
        load_figures_get(running, &figures);
        fk_cluster_stats_get(cluster, &stats);
        if (c->json)
            summary_json(c, seconds, &figures, &books, &stats);
        else
            summary_text(seconds, &figures, &books, &stats);
        fflush(stdout);
        if (!load_is_ok(&figures, &books)) code = cli_failed("load", "the books are wrong");
        load_destroy(running);
    }
    cli_watchdog("fk_system_stop() does not return", STOP_SECONDS);
    fk_system_stop(sys);
    cli_watchdog("", 0);
    return code;
}

/* ---- command line ----------------------------------------------------------------------------------------- */

static const struct option OPTIONS[] = {
    { "store", required_argument, NULL, 's' },   { "seconds", required_argument, NULL, 'n' },
    { "callers", required_argument, NULL, 'c' }, { "accounts", required_argument, NULL, 'a' },
    { "timeout", required_argument, NULL, 't' }, { "slots", required_argument, NULL, 'S' },
    { "ttl", required_argument, NULL, 'L' },     { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
};

/* False: the value makes no sense. */
static bool take_value(int opt, const char *text, load_command *out)
{
    uint64_t n;
    switch (opt) {
    case 's': out->cluster.store = text; return true;
    case 'n': return cli_number(text, 1, SECONDS_MAX, &out->seconds);
    case 'c':
        if (!cli_number(text, 1, LOAD_CALLERS_MAX, &n)) return false;
        out->load.callers = (uint32_t)n;
        return true;
    case 'a':
        if (!cli_number(text, 2, LOAD_ACCOUNTS_MAX, &n)) return false;
        out->load.accounts = (uint32_t)n;
        return true;
    case 't':
        if (!cli_number(text, 1, 3600000, &n)) return false;
        out->load.timeout = FK_MILLIS(n);
        return true;
    case 'L':
        if (!cli_number(text, 200, SECONDS_MAX * 1000ul, &n)) return false;
        out->cluster.lease_ttl = FK_MILLIS(n);
        return true;
    default:
        if (!cli_number(text, 1, FK_SLOTS_MAX, &n) || (n & (n - 1)) != 0) return false;
        out->cluster.slots = (uint32_t)n;
        return true;
    }
}

int cli_load(int argc, char **argv)
{
    load_command c = { .load = { .accounts = 100,
                                 .callers = 16,
                                 .timeout = FK_SECONDS(5),
                                 .patience = FK_SECONDS(PATIENCE_SECONDS) },
                       .seconds = 10 };
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'h') {
            help();
            return CLI_OK;
        }
        if (opt == ':') return cli_usage_error("load", "%s needs a value", argv[optind - 1]);
        if (opt == '?') return cli_usage_error("load", "there is no option %s", argv[optind - 1]);
        if (opt == 'j')
            c.json = true;
        else if (!take_value(opt, optarg, &c))
            return cli_usage_error("load", "'%s' does not fit there", optarg);
    }
    if (optind < argc) return cli_usage_error("load", "too much: '%s'", argv[optind]);
    if (c.cluster.store == NULL)
        return cli_usage_error("load", "which cluster? --store URL says it");
    return run(&c);
}

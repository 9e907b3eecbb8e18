/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor node: the command line, and the life of the system. */

#include "node.h"

#include "cli.h"
#include "endpoint.h"
#include "foreign.h"
#include "node_kinds.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS_MAX = 100 * 86400, STOP_SECONDS = 30, READY_SECONDS = 30, WEIGHT_MAX = 1000000 };

typedef struct node_options {
    const char *name;
    endpoint listen, bind;
    fk_remoting_config remoting;
    fk_cluster_config cluster; /* store NULL: none */
    uint32_t workers;
    bool pekko, json, helped, verbose;
} node_options;

static void help(void)
{
    puts(
        "usage: fraktor node [--name SYSTEM] [--listen HOST:PORT] [OPTION]...\n"
        "\n"
        "Runs a system that others can send to, until it is told to stop (SIGTERM, Ctrl-C). When it is\n"
        "ready it prints one line; what happens is logged to stderr. Its actors:\n"
        "  /user/echo    answers with what it gets\n"
        "  /user/sink    counts what it gets; answers '?'\n"
        "  /user/admin   obeys texts; for assoc, quarantine, members, grains, where, call and tests\n"
        "Whoever can connect to it can use all three. With --store it joins the cluster whose members\n"
        "use the same store, and runs grains of the kinds account (durable) and counter (volatile).\n"
        "\n"
        "options:\n"
        "  --name SYSTEM         its name (demo)\n"
        "  --listen HOST:PORT    its address, as others know it (127.0.0.1:4001; port 0: any)\n"
        "  --bind HOST[:PORT]    where it listens; else at loopback, whatever its address is\n"
        "  --allow-unencrypted   listen where other machines can connect, without encryption\n"
        "  --pekko               Pekko's rules and schemes: pekko://SYSTEM@HOST:PORT\n"
        "  --trusting            others may poison and kill actors, and select below /system\n"
        "  --quarantine SECONDS  how long a bad peer is kept out (5 days)\n"
        "  --give-up SECONDS     a peer unreachable for so long is quarantined (the same)\n"
        "  --deferred N          messages that wait for one peer (1024)\n"
        "  --heartbeat-pause MS  silence after which a watched peer is gone (10000)\n"
        "  --handshake-timeout MS  for connections we make; a quarter for those that others make (20000)\n"
        "  --workers N           threads (one per core)\n"
        "  --store URL           join a cluster: sqlite:FILE, memory:\n"
        "  --ttl MS              taken over from after so long a silence (3000; 200 or more)\n"
        "  --weight N            its share of the grains, compared with other members (100)\n"
        "  --slots N             a power of two, the same for all members (16384)\n"
        "  --client              call grains, run none\n"
        "  --verbose             log where grains come and go, too\n"
        "  --json                the line and the log as objects\n"
        "\n"
        "Exit code: 0 stopped in order, 1 could not start or stop, 2 wrong usage.\n"
        "\n"
        "example: fraktor node --name demo --listen 127.0.0.1:4001 --store sqlite:bank.db");
}

/* ---- the system -------------------------------------------------------------------------------- */

static fk_err node_start(node_options *options, fk_system **out)
{
    fk_system_config config = { .size = sizeof config,
                                .name = options->name,
                                .workers = options->workers,
                                .scheme = FK_SCHEME_TCP,
                                .remoting = options->remoting };
    config.remoting.enabled = true;
    config.remoting.host = options->listen.host;
    config.remoting.port = options->listen.port;
    if (options->bind.host[0] != '\0') config.remoting.bind_host = options->bind.host;
    config.remoting.bind_port = options->bind.port;
    /* A member that was restarted is to be found again soon. */
    if (options->cluster.store != NULL) config.remoting.reconnect_max = FK_SECONDS(1);
    if (options->pekko) {
        config.paths.rules = FK_RULES_PEKKO;
        config.scheme = FK_SCHEME_LOCAL; /* Artery's scheme is pekko:// */
    }
    return fk_system_start(&config, out);
}

static int start_failed(const node_options *options, fk_err err)
{
    const char *host = options->listen.host;
    unsigned port = options->listen.port;
    switch (err) {
    case FK_E_IN_USE:
        return cli_failed("node", "%s:%u is in use: is a node running there? Try another --listen",
                          host, port);
    case FK_E_FORBIDDEN:
        return cli_failed("node",
                          "other machines could connect to that place, and nothing is encrypted:"
                          " listen at 127.0.0.1, or insist with --allow-unencrypted");
    case FK_E_SYSTEM:
    case FK_E_AUTHORITY:
        return cli_failed("node", "%s@%s:%u is no address: %s", options->name, host, port,
                          fk_err_text(err));
    default: return cli_failed("node", "cannot start at %s:%u: %s", host, port, fk_err_text(err));
    }
}

static fk_err node_join(fk_system *sys, node_options *options)
{
    fk_cluster *cluster;
    const char *why = "";
    if (options->cluster.store == NULL) return FK_OK;
    options->cluster.size = sizeof options->cluster;
    options->cluster.why = &why;
    fk_err err = fk_cluster_join(sys, &options->cluster, &cluster);
    options->cluster.why = NULL;
    if (err != FK_OK) {
        cli_failed("node", "cannot join the cluster at %s: %s", options->cluster.store, why);
        return err;
    }
    if (!options->cluster.client) err = node_kinds_register(cluster);
    if (err == FK_OK) err = fk_cluster_await_ready(cluster, FK_SECONDS(READY_SECONDS));
    if (err != FK_OK) cli_failed("node", "the cluster is not ready: %s", fk_err_text(err));
    return err;
}

static void say_member(fk_system *sys, bool json)
{
    fk_cluster_stats stats;
    fk_cluster *cluster = fk_cluster_of(sys);
    if (cluster == NULL || fk_cluster_stats_get(cluster, &stats) != FK_OK) return;
    if (json) {
        fputs(",\"member\":", stdout);
        cli_json_text(stdout, fk_str_of(stats.id));
        printf(",\"incarnation\":%" PRIu64, stats.incarnation);
    } else {
        printf(" member=%s incarnation=%" PRIu64, stats.id, stats.incarnation);
    }
}

static void say_ready(fk_system *sys, bool json)
{
    char room[1024], address[600];
    fk_buf buf = FK_BUF(room);
    fk_path own;
    if (fk_system_path(sys, NULL, 0, buf, &own, NULL) != FK_OK) return;
    size_t len = fk_path_format(&own, FK_FORM_ADDRESS, address, sizeof address);
    if (json) {
        fputs("{\"event\":\"ready\",\"address\":", stdout);
        cli_json_text(stdout, (fk_str){ address, len });
        printf(",\"uid\":\"%" PRIu64
               "\",\"actors\":[\"/user/echo\",\"/user/sink\",\"/user/admin\"]",
               fk_system_uid(sys));
        say_member(sys, json);
        puts("}");
    } else {
        printf("ready %s uid=%" PRIu64 " actors=/user/echo,/user/sink,/user/admin", address,
               fk_system_uid(sys));
        say_member(sys, json);
        putchar('\n');
    }
    fflush(stdout);
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* It listens at loopback unless told otherwise, so an address of another kind is one that nobody
 * reaches, except by a tunnel. */
static void warn_unreachable(fk_system *sys, const node_options *options)
{
    char text[1024];
    const char *host = options->listen.host;
    if (options->bind.host[0] != '\0' || is_loopback(host)) return;
    int len = snprintf(text, sizeof text,
                       "it listens at loopback, so other machines cannot reach %s:%u; to let them:"
                       " --bind %s --allow-unencrypted (nothing is encrypted)",
                       host, (unsigned)fk_remoting_port(sys), host);
    if (len > 0 && (size_t)len < sizeof text) {
        fk_log(sys, FK_LEVEL_WARN, FK_REF_NONE, (fk_str){ text, (size_t)len });
    }
}

static int run(node_options *options)
{
    fk_system *sys = NULL;
    fk_subscription log;
    fk_err outcome = FK_OK, joined = FK_OK;
    fk_err err = node_start(options, &sys);
    if (err != FK_OK) return start_failed(options, err);
    const fk_log_config config = { .size = sizeof config,
                                   .format = options->json ? FK_LOG_JSON : FK_LOG_LOGFMT,
                                   .burst = options->verbose ? UINT32_MAX : 0 };
    const fk_signal_config signals = { .size = sizeof signals,
                                       .progress_fd = options->json ? 0 : STDERR_FILENO,
                                       .deadline = FK_SECONDS(STOP_SECONDS) };
    err = fk_log_open(sys, &config, &log);
    if (err == FK_OK && options->verbose) {
        err = fk_log_level_set(sys, FK_TOPIC(VIRTUAL_ACTOR), FK_LEVEL_DEBUG);
    }
    if (err == FK_OK) err = node_actors_spawn(sys);
    if (err == FK_OK) err = fk_host_shutdown_on_signal(sys, &signals);
    if (err == FK_OK) joined = node_join(sys, options);
    if (err == FK_OK && joined == FK_OK) {
        warn_unreachable(sys, options);
        say_ready(sys, options->json);
        err = fk_shutdown_await(sys, FK_NEVER, &outcome);
        if (err == FK_OK) err = outcome;
    }
    cli_watchdog("fk_system_stop() does not return", STOP_SECONDS);
    fk_err stopped = fk_system_stop(sys);
    cli_watchdog("", 0);
    if (err == FK_OK) err = stopped;
    if (joined != FK_OK) return CLI_FAILED; /* and why has been said */
    return err == FK_OK ? CLI_OK : cli_failed("node", "%s", fk_err_text(err));
}

/* ---- command line -------------------------------------------------------------------------------- */

static const struct option OPTIONS[] = {
    { "name", required_argument, NULL, 'n' },
    { "listen", required_argument, NULL, 'l' },
    { "bind", required_argument, NULL, 'b' },
    { "allow-unencrypted", no_argument, NULL, 'u' },
    { "pekko", no_argument, NULL, 'p' },
    { "trusting", no_argument, NULL, 't' },
    { "quarantine", required_argument, NULL, 'q' },
    { "give-up", required_argument, NULL, 'g' },
    { "deferred", required_argument, NULL, 'd' },
    { "heartbeat-pause", required_argument, NULL, 'H' },
    { "handshake-timeout", required_argument, NULL, 'T' },
    { "workers", required_argument, NULL, 'w' },
    { "store", required_argument, NULL, 's' },
    { "ttl", required_argument, NULL, 'L' },
    { "weight", required_argument, NULL, 'W' },
    { "slots", required_argument, NULL, 'S' },
    { "client", no_argument, NULL, 'c' },
    { "verbose", no_argument, NULL, 'v' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

/* False: the value makes no sense. */
static bool take_value(int opt, const char *text, node_options *out)
{
    uint64_t n;
    switch (opt) {
    case 'l': return endpoint_parse(text, true, &out->listen);
    case 'b': return endpoint_parse(text, false, &out->bind);
    default: break;
    }
    if (!cli_number(text, 1, SECONDS_MAX, &n)) return false;
    if (opt == 'q') out->remoting.quarantine = FK_SECONDS(n);
    if (opt == 'g') out->remoting.give_up_after = FK_SECONDS(n);
    if (opt == 'd') out->remoting.deferred_max = (uint32_t)n;
    if (opt == 'H') out->remoting.heartbeat_pause = FK_MILLIS(n);
    if (opt == 'T') out->remoting.handshake_timeout = FK_MILLIS(n);
    if (opt == 'w') out->workers = (uint32_t)n;
    if (opt == 'L') out->cluster.lease_ttl = FK_MILLIS(n);
    if (opt == 'W') out->cluster.weight = (uint32_t)n;
    if (opt == 'S') out->cluster.slots = (uint32_t)n;
    if (opt == 'L' && n < 200) return false;
    if (opt == 'W' && n > WEIGHT_MAX) return false;
    if (opt == 'S' && (n > FK_SLOTS_MAX || (n & (n - 1)) != 0)) return false;
    return opt != 'w' || n <= 256;
}

/* Gives CLI_OK, or the exit code after saying why not. */
static int parse(int argc, char **argv, node_options *out)
{
    int opt;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        switch (opt) {
        case 'n': out->name = optarg; break;
        case 'u': out->remoting.allow_unencrypted_beyond_loopback = true; break;
        case 'p': out->pekko = true; break;
        case 't': out->remoting.trusting = true; break;
        case 's': out->cluster.store = optarg; break;
        case 'c': out->cluster.client = true; break;
        case 'v': out->verbose = true; break;
        case 'j': out->json = true; break;
        case 'h':
            help();
            out->helped = true;
            return CLI_OK;
        case ':': return cli_usage_error("node", "%s needs a value", argv[optind - 1]);
        case '?': return cli_usage_error("node", "there is no option %s", argv[optind - 1]);
        default:
            if (take_value(opt, optarg, out)) break;
            return cli_usage_error("node", "'%s' does not fit there", optarg);
        }
    }
    if (optind < argc) return cli_usage_error("node", "too much: '%s'", argv[optind]);
    const fk_cluster_config *c = &out->cluster;
    if (c->store == NULL && (c->client || c->lease_ttl != 0 || c->weight != 0 || c->slots != 0)) {
        return cli_usage_error("node", "--ttl, --weight, --slots and --client go with --store");
    }
    return CLI_OK;
}

int cli_node(int argc, char **argv)
{
    node_options options = { .name = "demo", .listen = { .host = "127.0.0.1", .port = 4001 } };
    int code = parse(argc, argv, &options);
    return code != CLI_OK || options.helped ? code : run(&options);
}

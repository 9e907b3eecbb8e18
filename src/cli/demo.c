/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fraktor demo: a bank in a cluster of three nodes, of which one is killed and one is drained while
 * money moves. The script is a list of moments; between them a loop looks around every tenth of a
 * second.
 */

#include "demo.h"

#include "cli.h"
#include "folder.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SECONDS_DEFAULT = 20,
    SECONDS_MAX = 86400,
    STOP_SECONDS = 20,
    PATIENCE_SECONDS = 60,
    KILLED = 1, /* which of the nodes */
    DRAINED = 2,
};

static void help(void)
{
    puts(
        "usage: fraktor demo [--seconds N] [--json]\n"
        "\n"
        "Starts a cluster of three nodes on this machine, each a process, with a SQLite file in a\n"
        "temporary folder as its store. 100 bank accounts are grains of the cluster, and this process\n"
        "moves money between them as fast as 16 callers can. Meanwhile one node is killed and started\n"
        "again, and another is drained and started again. Every second a line tells how it goes. At\n"
        "the end all accounts are read: no order may be lost or done twice; exit code 1 if one is.\n"
        "\n"
        "  --seconds N   how long (20, or what the environment variable DEMO_SECONDS says); in less\n"
        "                than 8 no node is drained, in less than 3 none is killed\n"
        "  --json        one object per line\n"
        "\n"
        "Ctrl-C (SIGINT, SIGTERM) closes the bank early: in order, and with its summary; a second one\n"
        "ends the program and its nodes at once.\n"
        "\n"
        "example: DEMO_SECONDS=10 fraktor demo");
}

/* ---- looking around ------------------------------------------------------------------------------------ */

static void count_member(void *user, const fk_member *member, bool is_self)
{
    (void)is_self;
    if (member->status == FK_MEMBER_UP) ++*(uint32_t *)user;
}

/* Who owns each account by the view of this process. */
static void look(demo *self)
{
    self->members = 0;
    fk_cluster_members(self->cluster, count_member, &self->members);
    for (uint32_t i = 0; i < DEMO_ACCOUNTS; i++) {
        char key[24], *owner = self->owner[i];
        fk_grain_place place;
        snprintf(key, sizeof key, "a%05u", i);
        fk_err err = fk_grain_where(self->cluster, FK_STR("account"), fk_str_of(key), &place);
        if (err != FK_OK || strncmp(owner, place.owner, sizeof self->owner[i] - 1) == 0) continue;
        if (owner[0] != '\0') self->moved++;
        snprintf(owner, sizeof self->owner[i], "%.60s", place.owner);
    }
}

/* Until that moment of the demo; false: a signal has come. */
static bool go_on_until(demo *self, double moment)
{
    double end = self->begun + moment;
    for (;;) {
        double now = cli_seconds(), next = now + 0.1;
        if (now >= end) return true;
        if (next > self->said_at + 1) next = self->said_at + 1;
        if (next > end) next = end;
        bool ok = cli_sleep_until(next);
        look(self);
        if (cli_seconds() >= self->said_at + 1) demo_say_progress(self);
        if (!ok) return false;
    }
}

static double pause_ms(demo *self)
{
    load_figures figures;
    load_figures_get(self->load, &figures);
    return figures.pause_ms;
}

/* ---- the script ------------------------------------------------------------------------------------------- */

static bool broken(demo *self, const char *what, const demo_node *node)
{
    self->has_failed = true;
    cli_failed("demo", "node %u %s; its log: %s/node%u.log", node->number, what, self->folder,
               node->number);
    return false;
}

static bool start_again(demo *self, demo_node *node)
{
    int fd;
    if (!demo_node_start(node, &fd) || !demo_node_await(node, fd)) {
        return broken(self, "does not start again", node);
    }
    demo_say_node(self, "restarted", node);
    return true;
}

/* Killed after a quarter of that time, and started again at its end. */
static bool part_kill(demo *self, double from, double to)
{
    demo_node *node = &self->node[KILLED];
    if (!go_on_until(self, from + (to - from) / 4)) return false;
    load_pause_reset(self->load);
    demo_node_kill(node);
    demo_say_node(self, "killed", node);
    bool ok = go_on_until(self, to);
    self->failover_ms = pause_ms(self);
    return ok && start_again(self, node);
}

static bool part_drain(demo *self, double from, double to)
{
    demo_node *node = &self->node[DRAINED];
    bool in_order = false, ok = go_on_until(self, from);
    if (!ok) return false;
    load_pause_reset(self->load);
    demo_node_drain(node);
    demo_say_node(self, "draining", node);
    double limit = cli_seconds() + STOP_SECONDS;
    while (ok && !demo_node_is_gone(node, &in_order) && cli_seconds() < limit) {
        ok = go_on_until(self, cli_seconds() - self->begun + 0.05);
    }
    if (!ok) return false;
    if (node->pid != 0 || !in_order) return broken(self, "did not leave in order", node);
    demo_say_node(self, "drained", node);
    ok = start_again(self, node) && go_on_until(self, to);
    self->drain_ms = pause_ms(self);
    return ok;
}

/* False: it ended early. */
static bool play(demo *self)
{
    double all = (double)self->seconds;
    if (self->seconds >= 8) {
        if (!part_kill(self, 0, all / 2)) return false;
        if (!part_drain(self, all * 5 / 8, all)) return false;
    } else if (self->seconds >= 3) {
        if (!part_kill(self, 0, all - 0.5)) return false;
    }
    return go_on_until(self, all);
}

/* ---- beginning and end -------------------------------------------------------------------------------------- */

/* All of them at once, and then waits. */
static bool start_nodes(demo *self)
{
    int fd[DEMO_NODES];
    for (uint32_t i = 0; i < DEMO_NODES; i++) {
        self->node[i].number = i + 1;
        memcpy(self->node[i].folder, self->folder, sizeof self->folder);
        if (demo_node_start(&self->node[i], &fd[i])) continue;
        while (i-- > 0) close(fd[i]);
        return broken(self, "cannot be started", &self->node[0]);
    }
    bool ok = true;
    for (uint32_t i = 0; i < DEMO_NODES; i++) {
        bool is_up = demo_node_await(&self->node[i], fd[i]);
        if (ok && !is_up) broken(self, "is not ready", &self->node[i]);
        ok = ok && is_up;
    }
    return ok;
}

static void stop_nodes(demo *self)
{
    double limit = cli_seconds() + STOP_SECONDS;
    for (uint32_t i = 0; i < DEMO_NODES; i++) demo_node_drain(&self->node[i]);
    for (uint32_t i = 0; i < DEMO_NODES; i++) {
        demo_node *node = &self->node[i];
        bool in_order = true, is_gone = false;
        while (!(is_gone = demo_node_is_gone(node, &in_order)) && cli_seconds() < limit) {
            usleep(10000);
        }
        if (!is_gone) demo_node_kill(node);
        if (!is_gone || !in_order) broken(self, "did not stop in order", node);
    }
}

static void stop_client(demo *self)
{
    if (self->sys == NULL) return;
    cli_watchdog("fk_system_stop() does not return", STOP_SECONDS);
    fk_system_stop(self->sys);
    cli_watchdog("", 0);
}

/* What happens between the start of the nodes and their end. */
static int run_client(demo *self)
{
    char store[300];
    const char *why;
    load_books books;
    const load_options options = { .accounts = DEMO_ACCOUNTS,
                                   .callers = DEMO_CALLERS,
                                   .timeout = FK_SECONDS(10),
                                   .patience = FK_SECONDS(PATIENCE_SECONDS) };
    snprintf(store, sizeof store, "sqlite:%s/bank.db", self->folder);
    const fk_cluster_config config = { .store = store, .lease_ttl = FK_MILLIS(DEMO_TTL_MS) };
    int code = load_join("demo", &config, &self->sys, &self->cluster);
    if (code != CLI_OK) {
        self->sys = NULL;
        return code;
    }
    if (load_start(self->cluster, &options, &self->load, &why) != FK_OK) {
        return cli_failed("demo", "%s", why);
    }
    demo_say_begin(self);
    self->begun = self->said_at = cli_seconds();
    look(self);
    (void)play(self); /* what is wrong is remembered */
    double seconds = cli_seconds() - self->begun;
    load_stop(self->load, &books);
    bool ok = demo_say_end(self, seconds, &books);
    load_destroy(self->load);
    return ok ? CLI_OK : cli_failed("demo", "the result is wrong");
}

static int run(demo *self)
{
    if (!folder_make("demo", self->folder))
        return cli_failed("demo", "cannot make a folder in TMPDIR, or /tmp");
    cli_signals_catch();
    int code = start_nodes(self) ? run_client(self) : CLI_FAILED;
    if (code != CLI_OK) self->has_failed = true;
    stop_client(self);
    stop_nodes(self);
    if (self->has_failed) code = CLI_FAILED;
    if (!self->has_failed) folder_remove(self->folder); /* else there is something to look into */
    return code;
}

static const struct option OPTIONS[] = {
    { "seconds", required_argument, NULL, 's' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

int cli_demo(int argc, char **argv)
{
    static demo self;
    int opt;
    self = (demo){ .seconds = SECONDS_DEFAULT, .failover_ms = -1, .drain_ms = -1 };
    const char *wish = getenv("DEMO_SECONDS");
    if (wish != NULL && !cli_number(wish, 1, SECONDS_MAX, &self.seconds)) {
        return cli_usage_error("demo", "DEMO_SECONDS=%s is not a number in range", wish);
    }
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":h", OPTIONS, NULL)) != -1) {
        if (opt == 'h') {
            help();
            return CLI_OK;
        }
        if (opt == ':') return cli_usage_error("demo", "%s needs a value", argv[optind - 1]);
        if (opt == '?') return cli_usage_error("demo", "there is no option %s", argv[optind - 1]);
        if (opt == 'j') self.json = true;
        if (opt == 's' && !cli_number(optarg, 1, SECONDS_MAX, &self.seconds)) {
            return cli_usage_error("demo", "'%s' is not a number in range", optarg);
        }
    }
    if (optind < argc) return cli_usage_error("demo", "too much: '%s'", argv[optind]);
    return run(&self);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "demo.h"

#include "cli.h"
#include "foreign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void demo_say_begin(const demo *self)
{
    if (self->json) {
        printf("{\"event\":\"started\",\"nodes\":[");
        for (int i = 0; i < DEMO_NODES; i++) printf("%s\"%s\"", i ? "," : "", self->node[i].id);
        printf("],\"store\":");
        char store[300];
        snprintf(store, sizeof store, "sqlite:%s/bank.db", self->folder);
        cli_json_text(stdout, fk_str_of(store));
        printf(",\"accounts\":%d,\"callers\":%d}\n", DEMO_ACCOUNTS, DEMO_CALLERS);
    } else {
        printf("A cluster of three nodes, each a process: %s, %s, %s\n", self->node[0].id,
               self->node[1].id, self->node[2].id);
        printf("Its store: sqlite:%s/bank.db\n", self->folder);
        printf("%d accounts; %d callers in this process move money between them.\n", DEMO_ACCOUNTS,
               DEMO_CALLERS);
    }
    fflush(stdout);
}

void demo_say_progress(demo *self)
{
    load_figures now;
    double at = cli_seconds(), since = at - self->said_at;
    load_figures_get(self->load, &now);
    double rate = since > 0 ? (double)(now.calls - self->before.calls) / since : 0;
    if (self->json) {
        printf("{\"event\":\"progress\",\"seconds\":%.1f,\"transfers\":%" PRIu64
               ",\"calls\":%" PRIu64 ",\"calls_per_s\":%.0f,\"failed\":%" PRIu64
               ",\"members\":%u,\"moved\":%" PRIu64 "}\n",
               at - self->begun, now.transfers, now.calls, rate, now.failed, self->members,
               self->moved);
    } else {
        printf("%5.1f s %9" PRIu64 " transfers %8.0f calls/s %4" PRIu64
               " failed %3u members %5" PRIu64 " grains moved\n",
               at - self->begun, now.transfers, rate, now.failed, self->members, self->moved);
    }
    fflush(stdout);
    self->before = now;
    self->said_at = at;
}

void demo_say_node(const demo *self, const char *what, const demo_node *node)
{
    double at = cli_seconds() - self->begun;
    if (self->json) {
        printf("{\"event\":\"%s\",\"seconds\":%.1f,\"node\":\"%s\"}\n", what, at, node->id);
    } else {
        const char *more = strcmp(what, "killed") == 0     ? ": SIGKILL, in the middle of its work"
                           : strcmp(what, "draining") == 0 ? ": SIGTERM, it gives its grains away"
                                                           : "";
        printf("%5.1f s -- node %s %s%s\n", at, node->id, what, more);
    }
    fflush(stdout);
}

static void end_json(const demo *self, double seconds, const load_figures *f, const load_books *b,
                     uint64_t retried)
{
    printf("{\"event\":\"summary\",\"seconds\":%.3f,\"transfers\":%" PRIu64 ",\"refused\":%" PRIu64
           ",\"calls\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"repeated\":%" PRIu64
           ",\"retried\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"moved\":%" PRIu64,
           seconds, f->transfers, f->refused, f->calls, f->failed, f->repeated, retried, f->unknown,
           self->moved);
    if (self->failover_ms >= 0) printf(",\"failover_ms\":%.1f", self->failover_ms);
    if (self->drain_ms >= 0) printf(",\"drain_ms\":%.1f", self->drain_ms);
    printf(",\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.1f,\"money_expected\":%" PRId64
           ",\"money_found\":%" PRId64 ",\"lost\":%" PRIu64 ",\"double\":%" PRIu64 ",\"ok\":%s}\n",
           f->p50_ms, f->p99_ms, f->max_ms, b->expected, b->found, b->lost, b->twice,
           load_is_ok(f, b) && !self->has_failed ? "true" : "false");
}

static void end_text(const demo *self, double seconds, const load_figures *f, const load_books *b,
                     uint64_t retried)
{
    printf("\nThe bank closed after %.1f s.\n", seconds);
    printf("  %10" PRIu64 " transfers, %" PRIu64 " more refused for lack of money\n", f->transfers,
           f->refused);
    printf("  %10" PRIu64 " calls made: %" PRIu64 " failed, %" PRIu64
           " retried; p50 %.2f ms, p99 %.2f"
           " ms, max %.0f ms\n",
           f->calls, f->failed, retried, f->p50_ms, f->p99_ms, f->max_ms);
    printf("  %10" PRIu64 " grains moved to another node\n", self->moved);
    if (self->failover_ms >= 0) {
        printf("  %10.0f ms failover: the longest that an account did not answer after the kill\n",
               self->failover_ms);
    }
    if (self->drain_ms >= 0) {
        printf("  %10.0f ms the same while a node was drained and came back\n", self->drain_ms);
    }
    printf("  %10" PRId64 " coins at the start, %" PRId64 " in all accounts now\n", b->expected,
           b->found);
    printf("  %" PRIu64 " lost, %" PRIu64 " double\n", b->lost, b->twice);
    if (f->unknown + b->unread + b->wrong != 0) {
        printf("  %" PRIu64 " orders of unknown outcome, %" PRIu64
               " accounts that do not answer, %" PRIu64 " with a wrong balance\n",
               f->unknown, b->unread, b->wrong);
    }
}

bool demo_say_end(demo *self, double seconds, const load_books *books)
{
    load_figures figures;
    fk_cluster_stats stats = { .retried = 0 };
    load_figures_get(self->load, &figures);
    fk_cluster_stats_get(self->cluster, &stats);
    if (self->json)
        end_json(self, seconds, &figures, books, stats.retried);
    else
        end_text(self, seconds, &figures, books, stats.retried);
    fflush(stdout);
    return load_is_ok(&figures, books) && !self->has_failed;
}

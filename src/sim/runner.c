/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/runner.h"

#include "sim/cluster_fact.h"
#include "sim/kernel.h"
#include "sim/lifecycle.h"
#include "sim/mutation.h"
#include "sim/remote.h"
#include "sim/sometimes.h"
#include "sim/supervision.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

const fk_scenario fk__scenarios[] = {
    { "kernel", "one system, everything the public API offers", fk__kernel_run, FK_IN_KERNEL, false,
      false },
    { "lifecycle", "failures, supervision, death watch, termination", fk__lifecycle_run,
      FK_IN_LIFECYCLE, false, false },
    { "termination", "the end of a system, disturbed at each of its steps", fk__termination_run, 0,
      false, false },
    { "supervision", "500 actors, 500,000 failures and pings", fk__supervision_run, 0, false,
      false },
    { "remote", "two to four systems and a bad network between them", fk__remote_run, FK_IN_REMOTE,
      false, false },
    { "cluster", "nodes with grains, a bad network, a lock service and a store", fk__csim_run,
      FK_IN_CLUSTER, true, false },
    { "split-brain", "one node is cut off from the others and the store, and comes back",
      fk__csim_run_split, 0, true, true },
    { NULL, NULL, NULL, 0, false, false },
};

enum { FINDINGS_SHOWN = 3, FINDINGS_NAMED = 100, RUN_TWICE_EVERY = 100, SOMETIMES_RUNS = 1000 };

typedef struct tally {
    uint64_t events, steps, received, violations, first_bad_seed, hash;
    double seconds;
} tally;

static double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- one run ----------------------------------------------------------------------------- */

static void describe(const fk_swarm *s)
{
    printf(
        "  %u workers, %u outside threads, %u pinned at most%s, memory %s, blocks %s, switch 1/%u\n",
        (unsigned)s->workers, (unsigned)s->outsiders, (unsigned)s->pinned_max,
        s->is_solo ? " (solo)" : "", fk__memory_name(s->memory), s->is_direct ? "direct" : "pooled",
        (unsigned)s->switch_in);
    printf("  throughput %u, %u actors at first, %u messages at most, allocations fail 1/%u, "
           "stop at %u\n",
           (unsigned)s->throughput, (unsigned)s->actors_first, (unsigned)s->sends_max,
           (unsigned)s->fail_in, (unsigned)s->stop_at);
}

static const char *invariant_of(const fk_batch *b)
{
    return b->scenario->is_cluster ? fk__csim_invariant() : fk__world_invariant();
}

static void show_line(const fk_batch *b, uint64_t seed, const char *found)
{
    printf("seed %llu: %s violated: %s\n", (unsigned long long)seed, invariant_of(b), found);
}

static void show(const fk_batch *b, uint64_t seed, const char *found)
{
    show_line(b, seed, found);
    if (b->scenario->is_cluster) {
        printf("  %s\n", fk__csim_plan_text());
        fk__cfact_print(stdout);
    } else {
        describe(fk__world_swarm());
        fk__ledger_print(stdout);
    }
    printf("replay: fraktor-sim %s --seed %llu --runs 1 --verbose", b->scenario->name,
           (unsigned long long)seed);
    if (b->mutation != FK_MUTATION_NONE) {
        printf(" --mutate %s", fk__mutation_get(b->mutation)->name);
    }
    printf("\n");
}

static uint64_t hash_of(const fk_batch *b)
{
    return b->scenario->is_cluster ? fk__cfact_hash() : fk__ledger.hash;
}

/* The same seed must give the same facts; if not, nothing here can be trusted. */
static const char *run_twice(const fk_batch *b, uint64_t seed)
{
    uint64_t first = hash_of(b);
    const char *found = b->scenario->run(seed);
    if (found == NULL && hash_of(b) != first) return "the same seed ran differently";
    return found;
}

static const char *run_seed(const fk_batch *b, uint64_t seed, bool twice)
{
    const char *found = b->scenario->run(seed);
    return found == NULL && twice ? run_twice(b, seed) : found;
}

/* ---- many -------------------------------------------------------------------------------- */

static void print_summary(const fk_batch *b, const tally *t, bool is_complete)
{
    printf("{\"scenario\":\"%s\",\"runs\":%llu,\"events\":%llu,\"violations\":%llu,",
           b->scenario->name, (unsigned long long)b->runs, (unsigned long long)t->events,
           (unsigned long long)t->violations);
    if (t->violations == 0)
        printf("\"first_bad_seed\":null,");
    else
        printf("\"first_bad_seed\":%llu,", (unsigned long long)t->first_bad_seed);
    printf("\"trace_hash\":\"%016llx\",\"mutation\":\"%s\",\"steps\":%llu,\"messages\":%llu,",
           (unsigned long long)t->hash, fk__mutation_get(b->mutation)->name,
           (unsigned long long)t->steps, (unsigned long long)t->received);
    /* How long a story took is not part of it. */
    if (!b->scenario->is_story) printf("\"seconds\":%.3f,", t->seconds);
    printf("\"all_sometimes\":%s}\n", is_complete ? "true" : "false");
}

static bool check_sometimes(const fk_batch *b)
{
    bool is_complete = true;
    for (uint32_t i = 0; i < FK_SOMETIMES_COUNT; i++) {
        if ((fk__sometimes_where((fk_sometimes)i) & b->scenario->sometimes) == 0) continue;
        if (b->is_verbose && b->runs > 1) {
            printf("sometimes %-24s %llu\n", fk__sometimes_name((fk_sometimes)i),
                   (unsigned long long)fk__sometimes[i]);
        }
        if (fk__sometimes[i] != 0) continue;
        is_complete = false;
        if (b->runs >= SOMETIMES_RUNS) {
            printf("never happened in %llu runs: %s\n", (unsigned long long)b->runs,
                   fk__sometimes_name((fk_sometimes)i));
        }
    }
    return is_complete;
}

static void count_run(const fk_batch *b, tally *t)
{
    bool is_cluster = b->scenario->is_cluster;
    t->events += is_cluster ? fk__cfact_count() : fk__ledger.facts;
    t->steps += is_cluster ? fk__csim_events() : fk__world_steps();
    t->received += is_cluster ? fk__csim_calls() : fk__ledger.received;
    t->hash = fk__mix64(t->hash ^ hash_of(b));
}

static void follow(const fk_batch *b, FILE *out)
{
    if (b->scenario->is_cluster)
        fk__cfact_follow(out, b->scenario->is_story && !b->is_verbose);
    else
        fk__ledger_follow(out);
}

bool fk__runner_run(const fk_batch *b)
{
    tally t = { 0 };
    double start = clock_seconds();
    fk__mutation = b->mutation;
    bool is_told = b->scenario->is_story && !b->is_json;
    if ((b->is_verbose || is_told) && b->runs == 1) follow(b, stdout);
    for (uint64_t i = 0; i < b->runs; i++) {
        uint64_t seed = b->seed + i;
        const char *found = run_seed(b, seed, i % RUN_TWICE_EVERY == 0 && b->runs > 1);
        count_run(b, &t);
        if (found == NULL) continue;
        if (t.violations++ == 0) t.first_bad_seed = seed;
        if (b->is_json) continue;
        if (t.violations <= FINDINGS_SHOWN)
            show(b, seed, found);
        else if (t.violations <= FINDINGS_NAMED)
            show_line(b, seed, found);
        fflush(stdout);
    }
    t.seconds = clock_seconds() - start;
    follow(b, NULL);
    if (is_told && b->runs == 1) fk__csim_tell(stdout);
    fk__mutation = FK_MUTATION_NONE;
    bool is_complete = check_sometimes(b);
    bool is_due = b->runs >= SOMETIMES_RUNS && b->mutation == FK_MUTATION_NONE;
    print_summary(b, &t, is_complete);
    return t.violations == 0 && (is_complete || !is_due);
}

/* ---- mutants ----------------------------------------------------------------------------- */

static bool is_mine(const fk_batch *b, const fk_mutation *mutation)
{
    return fk__mutation_is_for(mutation, b->scenario->name);
}

static bool try_mutant(const fk_batch *b, uint32_t id)
{
    const fk_mutation *mutation = fk__mutation_get(id);
    const char *found = NULL;
    uint64_t tried = 0;
    double start = clock_seconds();
    fk__mutation = id;
    while (found == NULL && tried < b->runs) found = b->scenario->run(b->seed + tried++);
    fk__mutation = FK_MUTATION_NONE;
    if (b->is_json) {
        printf("{\"mutation\":\"%s\",\"caught\":%s,\"seeds\":%llu}\n", mutation->name,
               found != NULL ? "true" : "false", (unsigned long long)tried);
    } else if (found != NULL) {
        printf("caught    %-20s seed %-6llu %5.1f s  %s: %s\n", mutation->name,
               (unsigned long long)(b->seed + tried - 1), clock_seconds() - start, invariant_of(b),
               found);
    } else {
        printf("SURVIVED  %-20s %llu seeds: %s\n", mutation->name, (unsigned long long)tried,
               mutation->what);
    }
    fflush(stdout);
    return found != NULL;
}

bool fk__runner_mutants(const fk_batch *b)
{
    uint32_t caught = 0, tried = 0;
    for (uint32_t id = FK_MUTATION_NONE + 1; id < FK_MUTATION_COUNT; id++) {
        const fk_mutation *mutation = fk__mutation_get(id);
        if (!is_mine(b, mutation)) {
            if (!b->is_json) printf("not here  %-20s for: %s\n", mutation->name, mutation->where);
            continue;
        }
        tried++;
        caught += try_mutant(b, id);
    }
    printf("{\"scenario\":\"%s\",\"mutants\":%u,\"caught\":%u,\"survived\":%u}\n",
           b->scenario->name, (unsigned)tried, (unsigned)caught, (unsigned)(tried - caught));
    return caught == tried;
}

/* ---- the list ---------------------------------------------------------------------------- */

static const char *const INVARIANTS[][2] = {
    { "A1", "a message ends once: handled, or dead with a reason; its contents are dropped once" },
    { "A2", "messages of one sender to one receiver are handled in their order" },
    { "A3", "an actor does one thing at a time, nothing after its stop" },
    { "A4", "what was meant for one actor never reaches another" },
    { "A5", "nothing waits while everybody sleeps; no deadlock, no livelock" },
    { "A6", "one notice for each watch, after the end and what was sent before it" },
    { "A7", "children end before parents; names are unique" },
    { "A8", "one directive for each failure, restarts within their limit, fresh state" },
    { "A10", "the system ends step by step, each step once; selections reach who matches" },
    { "A11", "a timer is never early, and fires or is cancelled" },
    { "A12", "a ready actor waits for a bounded number of messages" },
    { "A13", "mailboxes, stashes, actors and memory keep their limits" },
    { "A14", "nothing is left at the end" },
    { "A15", "start, messages, stop: in this order, each once" },
    { "R1", "a message to another system comes at most once, and in its order" },
    { "R2", "watches and notices are never lost nor doubled while both systems live" },
    { "R3", "a system that was shut out stays so: nothing of it comes in, nothing is sent to it" },
    { "R4", "the state of another system changes along the known arrows, and in time" },
    { "R5", "a message that waits is delivered or a dead letter, never both; few may wait" },
    { "R6", "one event for each message to a quarantined system" },
    { "R7", "one notice for each watch across systems, with a reason, in bounded time" },
    { "R8", "nothing is let in that is meant for another system or comes before the handshake" },
    { "R9", "messages arrive as they were" },
    { "R10", "connections and memory are bounded" },
    { "R11", "one connection for each kind of stream to another system" },
    { "I1", "epochs of a slot only grow" },
    { "I2", "a slot has one holder at a time" },
    { "I3", "a member stops before the lock service ends its lease" },
    { "I4", "one node takes turns of a grain, one at a time" },
    { "I5", "stores of a grain: epochs never go back, versions go up by one" },
    { "I6", "nothing that was acknowledged is lost" },
    { "I7", "the history of each grain is linearizable" },
    { "I8", "a call has one effect and one answer" },
    { "I9", "nothing is answered before it is stored" },
    { "I10", "a grain is started by the holder of its slot, under its epoch" },
    { "I11", "who is told where else a grain is causes no I/O" },
    { "I12", "results count for the command they belong to; none is left" },
    { "I13", "one view, one owner; no node goes back to an older view" },
    { "I14", "a join or leave moves only what must move" },
    { "I15", "a member that is dead stays dead" },
    { "I16", "no turn is taken of a slot that is not held" },
    { "I17", "events are in order, with time and reason" },
    { "I18", "everything is bounded, and nothing is left" },
    { "L1", "every call ends" },
    { "L2", "every slot is with its owner in the end" },
    { "L3", "every grain can be reached in the end" },
    { "L4", "idle grains go, and nobody remembers them" },
    { "L5", "who has drained or stopped holds nothing" },
    { "C1", "a call ends once; without faults none fails" },
    { "C2", "a call is told its own answer" },
    { "C3", "what was answered had its effect" },
    { "C4", "what was sent again has one effect" },
    { "contract", "transport and driver keep the rules between them" },
    { "liveness", "without faults everybody reaches everybody" },
};

static void list_line(bool is_json, const char *what, const char *name, const char *text)
{
    if (is_json)
        printf("{\"%s\":\"%s\",\"what\":\"%s\"}\n", what, name, text);
    else
        printf("%-10s %-24s %s\n", what, name, text);
}

void fk__runner_list(bool is_json)
{
    for (const fk_scenario *s = fk__scenarios; s->name != NULL; s++) {
        list_line(is_json, "scenario", s->name, s->what);
    }
    for (size_t i = 0; i < sizeof(INVARIANTS) / sizeof(INVARIANTS[0]); i++) {
        list_line(is_json, "invariant", INVARIANTS[i][0], INVARIANTS[i][1]);
    }
    for (uint32_t i = 0; i < FK_SOMETIMES_COUNT; i++) {
        list_line(is_json, "fault", fk__sometimes_name((fk_sometimes)i), "must happen sometimes");
    }
    for (uint32_t id = FK_MUTATION_NONE + 1; id < FK_MUTATION_COUNT; id++) {
        const fk_mutation *mutation = fk__mutation_get(id);
        list_line(is_json, "mutation", mutation->name, mutation->what);
    }
}

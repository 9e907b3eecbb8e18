/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fraktor-sim: the deterministic simulator. */

#include "base/base.h"
#include "sim/cluster_fact.h"
#include "sim/mutation.h"
#include "sim/runner.h"
#include "sim/world.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char HELP[] =
    "usage: fraktor-sim SCENARIO [--seed S] [--runs N] [--mutate NAME] [--json] [--verbose]\n"
    "       fraktor-sim SCENARIO --mutants [--seed S] [--runs N]\n"
    "       fraktor-sim --list\n"
    "\n"
    "Runs the real core under virtual time, with threads, time, memory and workload all drawn\n"
    "from the seed, and checks every fact. The same seed gives the same run.\n"
    "  --seed S       the first seed (default 1)\n"
    "  --runs N       how many, from S on (default 200, of a story 1; with --mutants at most 2000 each)\n"
    "  --mutate NAME  with one safeguard taken out of the core: some seed must notice\n"
    "  --mutants      each safeguard in turn; fails if one is not missed\n"
    "  --verbose      with one run: every fact; with more: how often each fault happened\n"
    "  --json         only the last line, or one object per line\n"
    "  --list         scenarios, invariants, faults, mutations\n"
    "Exit: 0 nothing found, 1 something found, 2 usage.\n"
    "\n"
    "example: fraktor-sim kernel --seed 1 --runs 1000\n";

enum { RESULT_OK = 0, RESULT_FAILED = 1, RESULT_USAGE = 2 };

/* Replaces the weak one of base/base.c: an assertion of the core is a finding like any other. */
void fk__assert_failed(const char *file, int line)
{
    if (fk__csim_is_running()) fk__csim_assert_failed(file, line);
    fk__world_assert_failed(file, line);
}

static bool equal(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) a++, b++;
    return *a == *b;
}

static const fk_scenario *find_scenario(const char *name)
{
    const fk_scenario *s = fk__scenarios;
    while (s->name != NULL && !equal(s->name, name)) s++;
    return s->name != NULL ? s : NULL;
}

static bool take_number(const char *text, uint64_t *out)
{
    char *end;
    *out = strtoull(text, &end, 0);
    return *text != '\0' && *text != '-' && *end == '\0';
}

static const struct option OPTIONS[] = {
    { "seed", required_argument, NULL, 's' },
    { "runs", required_argument, NULL, 'r' },
    { "mutate", required_argument, NULL, 'm' },
    { "mutants", no_argument, NULL, 'M' },
    { "json", no_argument, NULL, 'j' },
    { "verbose", no_argument, NULL, 'v' },
    { "list", no_argument, NULL, 'l' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

typedef struct options {
    fk_batch batch;
    bool mutants, list, help;
} options;

static bool take_option(options *o, int option, const char *argument)
{
    switch (option) {
    case 's': return take_number(argument, &o->batch.seed);
    case 'r': return take_number(argument, &o->batch.runs) && o->batch.runs > 0;
    case 'm':
        o->batch.mutation = fk__mutation_find(argument);
        if (o->batch.mutation != FK_MUTATION_COUNT) return true;
        fprintf(stderr, "fraktor-sim: there is no mutation %s\n", argument);
        return false;
    case 'M': o->mutants = true; return true;
    case 'j': o->batch.is_json = true; return true;
    case 'v': o->batch.is_verbose = true; return true;
    case 'l': o->list = true; return true;
    case 'h': o->help = true; return true;
    default: return false;
    }
}

static int usage(void)
{
    fputs("fraktor-sim: see fraktor-sim --help\n", stderr);
    return RESULT_USAGE;
}

int main(int argc, char **argv)
{
    options o = { .batch = { .seed = 1 } };
    int option;
    while ((option = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        if (!take_option(&o, option, optarg)) return usage();
    }
    if (o.help) {
        fputs(HELP, stdout);
        return RESULT_OK;
    }
    if (o.list) {
        fk__runner_list(o.batch.is_json);
        return RESULT_OK;
    }
    if (optind + 1 != argc) return usage();
    o.batch.scenario = find_scenario(argv[optind]);
    if (o.batch.scenario == NULL) {
        fprintf(stderr, "fraktor-sim: there is no scenario %s\n", argv[optind]);
        return usage();
    }
    if (o.batch.runs == 0) o.batch.runs = o.mutants ? 2000 : o.batch.scenario->is_story ? 1 : 200;
    bool ok = o.mutants ? fk__runner_mutants(&o.batch) : fk__runner_run(&o.batch);
    return ok ? RESULT_OK : RESULT_FAILED;
}

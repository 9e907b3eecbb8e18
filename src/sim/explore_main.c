/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The command line of a harness program: which searches to make, what each must find, and
 * one line of report for each. Without options it makes all of them, which is what the
 * test suite runs.
 */

#include "sim/explore.h"

#include "sim/report.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: %s [options]\n"
    "Runs every harness of this program under every schedule up to a preemption bound and under\n"
    "many random ones, then each mutation, which must be found.\n"
    "  --mode dfs|random|pct    only this kind of schedule (default: all)\n"
    "  --memory sc|tso|tso+     only this memory model (default: all)\n"
    "  --harness NAME           only this harness\n"
    "  --bound N                preemptions in dfs (default $EXPLORER_BOUND or 1), \"all\": no bound\n"
    "  --depth N                depth of pct (default 3)\n"
    "  --schedules N            random and pct schedules (default $EXPLORER_RANDOM or 2000);\n"
    "                           given explicitly, also a limit for dfs\n"
    "  --seconds S              limit for each search (default $EXPLORER_SECONDS or 300)\n"
    "  --seed S                 of random and pct (default 1)\n"
    "  --mutate NAME            only this mutation; \"none\": only the code as it is\n"
    "  --replay FILE|STRING     run one schedule, as printed with a failure, and show its trace\n"
    "  --allow-incomplete       a dfs that ran out of time is not a failure\n"
    "  --json                   one object per line\n"
    "  --list                   name harnesses and mutations\n"
    "Exit: 0 as expected, 1 not, 2 usage.\n";

enum { MODE_ALL = -1, MEMORY_ALL = -1, RESULT_OK = 0, RESULT_FAILED = 1, RESULT_USAGE = 2 };

typedef struct options {
    const char *program;
    int mode;
    int memory;
    const char *harness;
    uint32_t bound;
    uint32_t depth;
    uint64_t random_schedules;
    uint64_t dfs_schedules; /* 0: no limit */
    double seconds;
    uint64_t seed;
    const char *mutate; /* NULL: all */
    const char *replay;
    bool allow_incomplete;
    bool list;
    const fk_harness *harnesses;
    const fk_variant *variants;
} options;

static uint64_t number_from(const char *text, uint64_t otherwise)
{
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

static uint32_t bound_from(const char *text)
{
    if (text != NULL && strcmp(text, "all") == 0) return FK_SCHEDULE_BOUND_NONE;
    return (uint32_t)number_from(text, 1);
}

static bool find_name(const char *text, const char *(*name)(int), int count, int *out)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, name(i)) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static const char *mode_name(int kind)
{
    static const char *const NAMES[] = { "dfs", "random", "pct", "replay" };
    return NAMES[kind];
}

static const char *memory_name(int memory)
{
    return fk__memory_name((fk_memory)memory);
}

static const char *variant_name(const fk_variant *v)
{
    return v->name != NULL ? v->name : fk__mutation_get(v->mutation)->name;
}

static const fk_harness *find_harness(const options *o, const char *name)
{
    const fk_harness *h = o->harnesses;
    while (h->name != NULL && strcmp(h->name, name) != 0) h++;
    return h->name != NULL ? h : NULL;
}

static bool wants_mode(const options *o, fk_schedule_kind kind)
{
    return o->mode == MODE_ALL || o->mode == (int)kind;
}

static bool wants_memory(const options *o, fk_memory memory)
{
    return o->memory == MEMORY_ALL || o->memory == (int)memory;
}

static fk_search make_search(const options *o, const fk_harness *h, fk_memory memory,
                             fk_schedule_kind kind)
{
    fk_search s = { .harness = h,
                    .memory = memory,
                    .kind = kind,
                    .bound = o->depth,
                    .schedules = o->random_schedules,
                    .seconds = o->seconds,
                    .seed = o->seed };
    if (kind != FK_SCHEDULE_DFS) return s;
    s.schedules = o->dfs_schedules;
    s.bound = h->bound_max > 0 && o->bound > h->bound_max ? h->bound_max : o->bound;
    return s;
}

/* The code as it is: nothing may be found, and dfs must come to its end. */
static bool run_harness(const options *o, const fk_harness *h)
{
    bool ok = true;
    for (int memory = 0; memory < FK_MEMORY_COUNT; memory++) {
        for (int kind = 0; kind <= (int)FK_SCHEDULE_PCT; kind++) {
            if (!wants_memory(o, (fk_memory)memory)) continue;
            if (!wants_mode(o, (fk_schedule_kind)kind)) continue;
            fk_search s = make_search(o, h, (fk_memory)memory, (fk_schedule_kind)kind);
            fk_finding f = fk__explore_run(&s);
            bool clean = f.verdict == FK_VERDICT_EXHAUSTED ||
                         (f.verdict == FK_VERDICT_CLEAN &&
                          (kind != (int)FK_SCHEDULE_DFS || o->dfs_schedules > 0)) ||
                         (f.verdict == FK_VERDICT_INCOMPLETE && o->allow_incomplete);
            fk__report_row(&s, "none", &f, clean);
            if (f.verdict == FK_VERDICT_FOUND) fk__report_failure(o->program, &s, "none", &f);
            ok = ok && clean;
        }
    }
    return ok;
}

/* A mutation in one memory model: dfs, random, pct until one of them finds it. */
static bool run_variant(const options *o, const fk_variant *v, const fk_harness *h,
                        fk_memory memory, bool must_find)
{
    for (int kind = 0; kind <= (int)FK_SCHEDULE_PCT; kind++) {
        if (!wants_mode(o, (fk_schedule_kind)kind)) continue;
        fk_search s = make_search(o, h, memory, (fk_schedule_kind)kind);
        s.mutation = v->mutation;
        fk_finding f = fk__explore_run(&s);
        bool found = f.verdict == FK_VERDICT_FOUND;
        bool right = found && (v->failure == NULL || strcmp(v->failure, f.failure) == 0);
        bool repeats = !found || fk__report_repeats(&s, &f);
        bool is_last = kind == (int)FK_SCHEDULE_PCT || o->mode != MODE_ALL;
        bool ok = repeats && (must_find ? right || (!found && !is_last) : !found);
        fk__report_row(&s, variant_name(v), &f, ok);
        if (found && (!ok || o->mutate != NULL)) {
            fk__report_failure(o->program, &s, variant_name(v), &f);
        }
        if (found || !ok) return ok;
    }
    return true;
}

static bool run_variants(const options *o)
{
    bool ok = true;
    uint32_t tried = 0;
    for (const fk_variant *v = o->variants; v->harness != NULL; v++) {
        const fk_harness *h = find_harness(o, v->harness);
        if (h == NULL) {
            fprintf(stderr, "%s: variant of an unknown harness %s\n", o->program, v->harness);
            return false;
        }
        if (o->mutate != NULL && strcmp(o->mutate, variant_name(v)) != 0) continue;
        if (o->harness != NULL && strcmp(o->harness, h->name) != 0) continue;
        tried++;
        for (int memory = 0; memory <= (int)v->found_in; memory++) {
            bool is_first = memory == (int)v->found_in;
            if (!wants_memory(o, (fk_memory)memory)) continue;
            if (!is_first && !v->clean_before) continue;
            ok = run_variant(o, v, h, (fk_memory)memory, is_first) && ok;
        }
    }
    if (o->mutate != NULL && tried == 0) {
        fprintf(stderr, "%s: no harness looks for the mutation %s\n", o->program, o->mutate);
        return false;
    }
    return ok;
}

static bool read_replay(const char *argument, char *out, size_t size)
{
    FILE *file = fopen(argument, "r");
    if (file == NULL) return (size_t)snprintf(out, size, "%s", argument) < size;
    size_t len = fread(out, 1, size - 1, file);
    fclose(file);
    out[len] = '\0';
    out[strcspn(out, " \r\n")] = '\0';
    return true;
}

/* "harness,memory,mutation,actions", as fk__report_failure() prints it; a mutation may also be
 * given by its number. */
static int replay(const options *o)
{
    static char text[FK_SCHEDULE_STEPS_MAX * 4];
    static uint8_t list[FK_SCHEDULE_STEPS_MAX];
    fk_search s = { .kind = FK_SCHEDULE_REPLAY, .replay = list, .is_traced = true };
    int memory;
    if (!read_replay(o->replay, text, sizeof(text))) return RESULT_USAGE;
    const char *harness = strtok(text, ",");
    const char *memory_text = strtok(NULL, ",");
    const char *mutation = strtok(NULL, ",");
    const char *steps = strtok(NULL, ",");
    if (harness == NULL || memory_text == NULL || mutation == NULL) return RESULT_USAGE;
    s.harness = find_harness(o, harness);
    if (s.harness == NULL) return RESULT_USAGE;
    if (!find_name(memory_text, memory_name, FK_MEMORY_COUNT, &memory)) return RESULT_USAGE;
    if (!fk__schedule_parse(steps != NULL ? steps : "", list, sizeof(list), &s.replay_len)) {
        return RESULT_USAGE;
    }
    s.memory = (fk_memory)memory;
    s.mutation = fk__mutation_find(mutation);
    if (mutation[0] >= '0' && mutation[0] <= '9') s.mutation = (uint32_t)number_from(mutation, 0);
    for (const fk_variant *v = o->variants; v->harness != NULL; v++) {
        if (strcmp(variant_name(v), mutation) == 0) s.mutation = v->mutation;
    }
    if (s.mutation == FK_MUTATION_COUNT) return RESULT_USAGE;
    fk_finding f = fk__explore_run(&s);
    fk__report_row(&s, mutation, &f, f.verdict != FK_VERDICT_FOUND);
    fk__report_trace(&f);
    return f.verdict == FK_VERDICT_FOUND ? RESULT_FAILED : RESULT_OK;
}

static int list(const options *o)
{
    for (const fk_harness *h = o->harnesses; h->name != NULL; h++) {
        printf("harness   %-24s %u threads\n", h->name, (unsigned)h->threads);
    }
    for (const fk_variant *v = o->variants; v->harness != NULL; v++) {
        printf("mutation  %-24s found by %s from %s on%s%s\n", variant_name(v), v->harness,
               fk__memory_name(v->found_in), v->name == NULL ? ": " : "",
               v->name == NULL ? fk__mutation_get(v->mutation)->what : "");
    }
    return RESULT_OK;
}

static const struct option LONG_OPTIONS[] = {
    { "mode", required_argument, NULL, 'm' },
    { "memory", required_argument, NULL, 'M' },
    { "harness", required_argument, NULL, 'h' },
    { "bound", required_argument, NULL, 'b' },
    { "depth", required_argument, NULL, 'd' },
    { "schedules", required_argument, NULL, 'n' },
    { "seconds", required_argument, NULL, 's' },
    { "seed", required_argument, NULL, 'S' },
    { "mutate", required_argument, NULL, 'u' },
    { "replay", required_argument, NULL, 'r' },
    { "allow-incomplete", no_argument, NULL, 'i' },
    { "json", no_argument, NULL, 'j' },
    { "list", no_argument, NULL, 'l' },
    { "help", no_argument, NULL, '?' },
    { NULL, 0, NULL, 0 },
};

static bool take_option(options *o, int option, const char *argument)
{
    switch (option) {
    case 'm': return find_name(argument, mode_name, FK_SCHEDULE_PCT + 1, &o->mode);
    case 'M': return find_name(argument, memory_name, FK_MEMORY_COUNT, &o->memory);
    case 'h': o->harness = argument; return find_harness(o, argument) != NULL;
    case 'b': o->bound = bound_from(argument); return true;
    case 'd': o->depth = (uint32_t)number_from(argument, 3); return true;
    case 'n':
        o->random_schedules = number_from(argument, 0);
        o->dfs_schedules = o->random_schedules;
        return o->random_schedules > 0;
    case 's': o->seconds = strtod(argument, NULL); return true;
    case 'S': o->seed = number_from(argument, 1); return true;
    case 'u': o->mutate = argument; return true;
    case 'r': o->replay = argument; return true;
    case 'i': o->allow_incomplete = true; return true;
    case 'j': fk__report_json(true); return true;
    case 'l': o->list = true; return true;
    default: return false;
    }
}

int fk_explore_main(int argc, char **argv, const fk_harness *harnesses, const fk_variant *variants)
{
    options o = { .program = argv[0],
                  .mode = MODE_ALL,
                  .memory = MEMORY_ALL,
                  .bound = bound_from(getenv("EXPLORER_BOUND")),
                  .depth = 3,
                  .random_schedules = number_from(getenv("EXPLORER_RANDOM"), 2000),
                  .seconds = (double)number_from(getenv("EXPLORER_SECONDS"), 300),
                  .seed = 1,
                  .harnesses = harnesses,
                  .variants = variants };
    int option;
    while ((option = getopt_long(argc, argv, "", LONG_OPTIONS, NULL)) != -1) {
        if (take_option(&o, option, optarg)) continue;
        fprintf(stderr, HELP, argv[0]);
        return RESULT_USAGE;
    }
    if (o.list) return list(&o);
    if (o.replay != NULL) {
        int result = replay(&o);
        if (result == RESULT_USAGE) fprintf(stderr, "%s: not a schedule\n", argv[0]);
        return result;
    }
    bool only_plain = o.mutate != NULL && strcmp(o.mutate, "none") == 0;
    bool ok = true;
    fk__report_head();
    for (const fk_harness *h = harnesses; h->name != NULL; h++) {
        if (o.harness != NULL && strcmp(o.harness, h->name) != 0) continue;
        if (o.mutate == NULL || only_plain) ok = run_harness(&o, h) && ok;
    }
    if (!only_plain) ok = run_variants(&o) && ok;
    return ok ? RESULT_OK : RESULT_FAILED;
}

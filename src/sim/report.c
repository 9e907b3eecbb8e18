/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/report.h"

#include "sim/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODE_TEXT_MAX = 24, RESULT_TEXT_MAX = 240 };

static bool is_json;

void fk__report_json(bool on)
{
    is_json = on;
}

void fk__report_head(void)
{
    if (is_json) return;
    printf("%-20s %-18s %-5s %-8s %10s %12s %8s  %s\n", "harness", "mutation", "mem", "mode",
           "schedules", "steps", "seconds", "result");
}

static void mode_text(const fk_search *s, char *out)
{
    static const char *const NAMES[] = { "dfs", "random", "pct", "replay" };
    if (s->kind == FK_SCHEDULE_DFS && s->bound == FK_SCHEDULE_BOUND_NONE) {
        snprintf(out, MODE_TEXT_MAX, "dfs/all");
    } else if (s->kind == FK_SCHEDULE_DFS || s->kind == FK_SCHEDULE_PCT) {
        snprintf(out, MODE_TEXT_MAX, "%s/%" PRIu32, NAMES[s->kind], s->bound);
    } else {
        snprintf(out, MODE_TEXT_MAX, "%s", NAMES[s->kind]);
    }
}

static void result_text(const fk_search *s, const fk_finding *f, char *out)
{
    switch (f->verdict) {
    case FK_VERDICT_CLEAN:
        snprintf(out, RESULT_TEXT_MAX, "clean%s", s->kind == FK_SCHEDULE_DFS ? ", NOT ALL" : "");
        break;
    case FK_VERDICT_EXHAUSTED:
        snprintf(out, RESULT_TEXT_MAX, s->kind == FK_SCHEDULE_DFS ? "clean, EXHAUSTED" : "clean");
        break;
    case FK_VERDICT_INCOMPLETE: snprintf(out, RESULT_TEXT_MAX, "clean, INCOMPLETE"); break;
    case FK_VERDICT_FOUND: snprintf(out, RESULT_TEXT_MAX, "found: %s", f->failure); break;
    }
}

void fk__report_row(const fk_search *s, const char *mutation, const fk_finding *f, bool ok)
{
    char mode[MODE_TEXT_MAX];
    char result[RESULT_TEXT_MAX];
    mode_text(s, mode);
    result_text(s, f, result);
    const char *memory = fk__memory_name(s->memory);
    if (is_json) {
        printf("{\"harness\":\"%s\",\"mutation\":\"%s\",\"memory\":\"%s\",\"mode\":\"%s\","
               "\"schedules\":%" PRIu64 ",\"steps\":%" PRIu64 ",\"seconds\":%.3f,"
               "\"result\":\"%s\",\"ok\":%s}\n",
               s->harness->name, mutation, memory, mode, f->schedules, f->steps, f->seconds, result,
               ok ? "true" : "false");
    } else {
        printf("%-20s %-18s %-5s %-8s %10" PRIu64 " %12" PRIu64 " %8.2f  %s%s\n", s->harness->name,
               mutation, memory, mode, f->schedules, f->steps, f->seconds, result,
               ok ? "" : "   <-- WRONG");
    }
    fflush(stdout);
}

/* The searches that repeat a finding need its actions outside of the explorer's own memory. */
static fk_search make_replay(const fk_search *s, const fk_finding *f)
{
    static uint8_t copy[FK_SCHEDULE_STEPS_MAX];
    memmove(copy, f->actions, f->action_count);
    fk_search again = *s;
    again.kind = FK_SCHEDULE_REPLAY;
    again.replay = copy;
    again.replay_len = f->action_count;
    again.schedules = 1;
    again.is_traced = true;
    return again;
}

bool fk__report_repeats(const fk_search *s, const fk_finding *f)
{
    char before[RESULT_TEXT_MAX];
    snprintf(before, sizeof(before), "%s", f->failure);
    fk_search again = make_replay(s, f);
    fk_finding g = fk__explore_run(&again);
    return g.verdict == FK_VERDICT_FOUND && g.action_count == f->action_count &&
           strcmp(before, g.failure) == 0;
}

void fk__report_trace(const fk_finding *f)
{
    FILE *out = is_json ? stderr : stdout;
    fk__trace_print(out);
    if (f->verdict == FK_VERDICT_FOUND) fprintf(out, "        %s\n", f->failure);
    fflush(out);
}

void fk__report_failure(const char *program, const fk_search *s, const char *mutation,
                        const fk_finding *f)
{
    FILE *out = is_json ? stderr : stdout;
    size_t size = fk__schedule_format(f->actions, f->action_count, NULL, 0) + 1;
    char *text = malloc(size);
    if (text == NULL) return;
    fk__schedule_format(f->actions, f->action_count, text, size);
    fprintf(out, "\nfound: %s\n%s --replay '%s,%s,%s,%s'\n", f->failure, program, s->harness->name,
            fk__memory_name(s->memory), mutation, text);
    free(text);
    fk_search again = make_replay(s, f);
    fk_finding g = fk__explore_run(&again);
    fk__report_trace(&g);
    fputc('\n', out);
}

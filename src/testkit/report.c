/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is written when a check fails, and on demand. There is nothing in it that is not the same when
 * the same seed runs again: no address, no real time. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/inspect.h"
#include "testkit/sim.h"

enum { TREE_MAX = 200 }; /* actors; more is not what one wants to read */

static void stderr_write(void *user, const char *text, size_t len)
{
    (void)user;
    fwrite(text, 1, len, stderr);
}

static const fk_writer *writer_of(const fk_sim *sim)
{
    static const fk_writer STDERR = { stderr_write, NULL };
    return sim->writer.write != NULL ? &sim->writer : &STDERR;
}

__attribute__((format(printf, 2, 3))) static void say(const fk_sim *sim, const char *format, ...)
{
    char text[2 * FK_SHOWN_MOMENT];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len < 0) return;
    size_t fits = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    writer_of(sim)->write(writer_of(sim)->user, text, fits);
}

static void say_events(fk_sim *sim)
{
    const fk_history *history = &sim->history;
    uint64_t shown = history->count < history->shown ? history->count : history->shown;
    uint32_t index = 0;
    const fk_moment *moment;
    say(sim, "  last %llu of %llu events:\n", (unsigned long long)shown,
        (unsigned long long)history->count);
    while ((moment = fk__history_next(history, &index)) != NULL) {
        char at[FK_SHOWN_TIME], text[FK_SHOWN_MOMENT];
        say(sim, "    +%-14s %s\n", fk__sim_show_time(moment->at, at),
            fk__sim_show_moment(sim, moment, text));
    }
}

/* The tree's lines, set in. */
static void tree_write(void *user, const char *text, size_t len)
{
    say(user, "    %.*s", (int)len, text);
}

static void say_tree(fk_sim *sim)
{
    char now[FK_SHOWN_TIME];
    const fk_writer writer = { tree_write, sim };
    const fk_dump_options options = { .limit = TREE_MAX };
    say(sim, "  actors at +%s:\n", fk__sim_show_time(sim->now - sim->began, now));
    if (fk__dump_tree(sim->sys, &options, true, &writer) == TREE_MAX) say(sim, "    ...\n");
}

void fk_sim_report(fk_sim *sim)
{
    sim->is_reporting = true;
    if (sim->sys != NULL) {
        say_events(sim);
        say_tree(sim);
    }
    say(sim, "  replay: FK_SEED=0x%llx ctest -R %s\n", (unsigned long long)sim->seed, sim->name);
    sim->is_reporting = false;
}

bool fk__sim_fail(fk_sim *sim, const char *expected, const char *actual)
{
    char text[4 * FK_SIM_TEXT_MAX];
    fk_sim_failure failure = { .test = sim->name,
                               .expected = expected,
                               .actual = actual,
                               .file = sim->file,
                               .line = sim->line,
                               .seed = sim->seed,
                               .text = text };
    sim->file = NULL;
    sim->failed++;
    say(sim, "%s: a check of the test failed\n", sim->name);
    if (failure.file != NULL) say(sim, "  at       %s:%d\n", failure.file, failure.line);
    say(sim, "  expected %s\n  actual   %s\n", expected, actual);
    fk_sim_report(sim);
    snprintf(text, sizeof(text), "%s: expected %s, actual: %s; FK_SEED=0x%llx", sim->name, expected,
             actual, (unsigned long long)sim->seed);
    if (sim->on_failure != NULL) sim->on_failure(sim->user, &failure);
    return false;
}

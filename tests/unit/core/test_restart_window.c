/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How often a child may be restarted: tests/vectors/restart_window.tsv, by the arithmetic alone and by
 * a real parent with failures at those times. */

#include <stdlib.h>
#include <string.h>

#include "core/supervise.h"
#include "support/stage.h"
#include "support/tsv.h"

#define VECTORS FK_SOURCE_DIR "/tests/vectors/restart_window.tsv"

enum { FAILURES_MAX = 16 };

typedef struct window {
    int32_t restarts; /* as in fk_strategy */
    fk_time within;
    fk_time at[FAILURES_MAX];
    bool is_restart[FAILURES_MAX];
    size_t failures; /* with an outcome */
} window;

static stage s;

static int64_t number(fk_str text)
{
    char buf[32] = "";
    CHECK(text.len < sizeof(buf));
    memcpy(buf, text.ptr, text.len);
    return strtoll(buf, NULL, 10);
}

static window window_read(tsv *row)
{
    window w = { 0 };
    fk_str times[FAILURES_MAX], outcomes[FAILURES_MAX];
    int64_t max = number(tsv_raw(row, "max_retries"));
    w.restarts = max == 0 ? FK_RESTARTS_NONE : (int32_t)max;
    /* A window of no length is one that only failures of the same moment share. */
    if (!tsv_is(row, "within_ms", "\\N")) {
        fk_time within = FK_MILLIS(number(tsv_raw(row, "within_ms")));
        w.within = within != 0 ? within : 1;
    }
    size_t count = tsv_list(row, "failure_times_ms", times, FAILURES_MAX);
    w.failures = tsv_list(row, "outcomes", outcomes, FAILURES_MAX);
    CHECK(w.failures <= count);
    for (size_t i = 0; i < w.failures; i++) {
        w.at[i] = FK_MILLIS(number(times[i]));
        w.is_restart[i] = tsv_equal(outcomes[i], FK_STR("restart"));
        CHECK(w.is_restart[i] || i + 1 == w.failures); /* stop is the last word */
    }
    return w;
}

static void check_tally(const window *w)
{
    fk_tally tally = { 0 };
    int32_t max = w->restarts == FK_RESTARTS_NONE ? 0 : w->restarts;
    for (size_t i = 0; i < w->failures; i++) {
        CHECK(fk__tally_permit(&tally, max, w->within, w->at[i]) == w->is_restart[i]);
    }
}

static fk_directive always_restart(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return FK_DIRECTIVE_RESTART;
}

static void check_parent(const window *w)
{
    role child = { .name = "c", .is_quiet = true };
    role parent = { .name = "p", .is_quiet = true, .child = { &child } };
    parent.strategy =
        (fk_strategy){ .decide = always_restart, .restarts = w->restarts, .within = w->within };
    stage_start(&s);
    role_spawn(&s, &parent);
    fk_time began = atomic_load(&s.r.now);
    for (size_t i = 0; i < w->failures; i++) {
        rig_advance(&s.r, began + w->at[i] - atomic_load(&s.r.now));
        role_fail(&child, FK_E_INVALID);
        rig_run(&s.r);
        CHECK(role_is_alive(&child) == w->is_restart[i]);
        CHECK_U64(child.starts, 1 + i + w->is_restart[i]);
    }
    CHECK(role_is_alive(&parent));
    stage_end(&s);
}

static void all_rows(void (*check)(const window *w))
{
    static tsv row;
    tsv_open(&row, VECTORS);
    while (tsv_next(&row)) {
        window w = window_read(&row);
        check(&w);
    }
    CHECK(row.rows >= 23);
}

TEST(restart_window_rows_by_arithmetic)
{
    all_rows(check_tally);
}

TEST(restart_window_rows_by_a_parent)
{
    all_rows(check_parent);
}

/* The budget is one child's, and a later child of that name has one of its own. */
TEST(restart_window_is_counted_for_each_child)
{
    role a = { .name = "a", .is_quiet = true }, b = { .name = "b", .is_quiet = true };
    role p = { .name = "p", .is_quiet = true, .child = { &a, &b }, .strategy = { .restarts = 2 } };
    stage_start(&s);
    role_spawn(&s, &p);
    for (int i = 0; i < 2; i++) role_fail(&a, FK_E_INVALID);
    for (int i = 0; i < 2; i++) role_fail(&b, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(role_is_alive(&a));
    CHECK(role_is_alive(&b));
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(!role_is_alive(&a));
    CHECK(role_is_alive(&b));
    stage_end(&s);
}

TEST(restart_backoff_doubles_up_to_its_limit_and_begins_anew_after_quiet)
{
    fk_tally tally = { 0 };
    fk_strategy strategy = { .backoff_min = 100, .backoff_max = 500, .backoff_reset = 1000 };
    static const fk_time EXPECTED[] = { 100, 200, 400, 500, 500 };
    fk_time now = 5000;
    for (size_t i = 0; i < 5; i++) {
        fk_time delay = fk__tally_backoff(&tally, &strategy, now, 0);
        CHECK_U64((uint64_t)delay, (uint64_t)EXPECTED[i]);
        now += delay + 10;
    }
    now += 1000;
    CHECK_U64((uint64_t)fk__tally_backoff(&tally, &strategy, now, 0), 100);
}

TEST(restart_backoff_jitter_stays_within_its_percentage)
{
    fk_strategy strategy = { .backoff_min = 1000, .backoff_max = 1000, .backoff_jitter = 20 };
    static const uint32_t CHANCES[] = { 0, 1, UINT32_MAX / 2, UINT32_MAX };
    for (size_t i = 0; i < 4; i++) {
        fk_tally tally = { 0 };
        fk_time delay = fk__tally_backoff(&tally, &strategy, 1, CHANCES[i]);
        CHECK(delay >= 800 && delay <= 1200);
    }
}

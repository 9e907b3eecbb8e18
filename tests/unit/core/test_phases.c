/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Phases of a shutdown, their order, and the course of a run, without a system. */

#include <stdio.h>
#include <string.h>

#include "core/phases.h"
#include "support/test.h"
#include "support/tsv.h"

#define TABLE FK_SOURCE_DIR "/tests/vectors/shutdown_phases.tsv"

enum { ITEMS_MAX = 32, SECOND = 1000000000 };

static fk_phases phases;

static fk_err set(const char *name, const fk_str *depends_on, size_t count)
{
    return fk__phases_set(&phases, &(fk_shutdown_phase){ .name = fk_str_of(name),
                                                         .depends_on = depends_on,
                                                         .depends_count = count });
}

/* "a|b|c" */
static const char *order_text(void)
{
    static char text[4096];
    uint8_t order[FK_SHUTDOWN_PHASES_MAX];
    size_t len = 0;
    text[0] = '\0';
    CHECK_OK(fk__phases_sort(&phases, order));
    for (uint32_t i = 0; i < phases.count; i++) {
        fk_str name = fk__phase_name(&phases.at[order[i]]);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", i > 0 ? "|" : "",
                                (int)name.len, name.ptr);
    }
    return text;
}

/* ---- Pekko's table --------------------------------------------------------------------------- */

/* "x<a,b" */
static fk_err set_from(fk_str item)
{
    fk_str depends_on[ITEMS_MAX];
    size_t count = 0, end = 0;
    while (end < item.len && item.ptr[end] != '<') end++;
    for (size_t at = end + 1; at < item.len; count++) {
        size_t begin = at;
        while (at < item.len && item.ptr[at] != ',') at++;
        CHECK(count < ITEMS_MAX);
        depends_on[count] = (fk_str){ item.ptr + begin, at - begin };
        at++;
    }
    return fk__phases_set(&phases, &(fk_shutdown_phase){ .name = { item.ptr, end },
                                                         .depends_on = depends_on,
                                                         .depends_count = count });
}

/* Where several orders are legal: each phase once, behind all that it depends on. */
static void check_legal(void)
{
    uint8_t order[FK_SHUTDOWN_PHASES_MAX];
    uint64_t over = 0;
    CHECK_OK(fk__phases_sort(&phases, order));
    for (uint32_t i = 0; i < phases.count; i++) {
        CHECK((over >> order[i] & 1) == 0);
        CHECK((phases.at[order[i]].after & ~over) == 0);
        over |= (uint64_t)1 << order[i];
    }
}

static void check_sort(tsv *row)
{
    fk_str items[ITEMS_MAX];
    fk_err err = FK_OK;
    size_t count = tsv_list(row, "input", items, ITEMS_MAX);
    fk__phases_clear(&phases);
    for (size_t i = 0; i < count && err == FK_OK; i++) err = set_from(items[i]);
    if (tsv_is(row, "result", "error:cycle")) {
        CHECK_ERR(err, FK_E_CYCLE);
        check_legal(); /* what is left has none */
        return;
    }
    CHECK_OK(err);
    check_legal();
    fk_str result = tsv_raw(row, "result");
    if (result.len >= 6 && memcmp(result.ptr, "order:", 6) == 0) return;
    fk_str expected = tsv_is(row, "result", "[]") ? FK_STR("") : result;
    CHECK(tsv_equal(fk_str_of(order_text()), expected));
}

static void check_default(tsv *row)
{
    char text[256];
    fk__phases_init(&phases);
    uint32_t index = fk__phases_find(&phases, tsv_text(row, "input"));
    CHECK(index != FK_PHASE_NONE);
    const fk_phase *phase = &phases.at[index];
    CHECK((phase->after & (phase->after - 1)) == 0); /* one at most */
    fk_str before = FK_STR("[]");
    for (uint32_t i = 0; i < phases.count; i++) {
        if ((phase->after >> i & 1) != 0) before = fk__phase_name(&phases.at[i]);
    }
    snprintf(text, sizeof(text), "depends-on=%.*s timeout-ms=%lld recover=%s enabled=%s",
             (int)before.len, before.ptr, (long long)(phase->timeout / FK_MILLIS(1)),
             phase->aborts ? "off" : "on", phase->disabled ? "off" : "on");
    CHECK(tsv_equal(fk_str_of(text), tsv_text(row, "result")));
}

TEST(phases_are_as_in_pekko)
{
    static tsv t;
    size_t rows = 0;
    for (tsv_open(&t, TABLE); tsv_next(&t); rows++) {
        if (tsv_is(&t, "kind", "sort")) {
            check_sort(&t);
        } else if (tsv_is(&t, "kind", "default-order")) {
            fk__phases_init(&phases);
            CHECK(tsv_equal(fk_str_of(order_text()), tsv_raw(&t, "result")));
        } else {
            CHECK(tsv_is(&t, "kind", "default-phase"));
            check_default(&t);
        }
    }
    CHECK(rows >= 26);
}

/* ---- making and changing --------------------------------------------------------------------- */

TEST(phases_of_ones_own_come_as_early_as_they_can)
{
    const fk_str after_stop[] = { FK_STR("service-stop") };
    fk__phases_init(&phases);
    CHECK_OK(set("metrics", after_stop, 1));
    CHECK_OK(set("early", after_stop, 0));
    const char *order = order_text();
    CHECK(strncmp(order, "early|before-service-unbind|", 28) == 0);
    CHECK(strstr(order, "|service-stop|metrics|before-cluster-shutdown|") != NULL);
    CHECK(strstr(order, "|actor-system-terminate") + 23 == order + strlen(order));
}

TEST(phases_keep_what_a_change_does_not_say)
{
    const fk_str none[] = { FK_STR("") };
    fk__phases_init(&phases);
    uint32_t index = fk__phases_find(&phases, FK_STR("cluster-exiting"));
    uint64_t after = phases.at[index].after;
    CHECK_OK(fk__phases_set(
        &phases, &(fk_shutdown_phase){ .name = FK_STR("cluster-exiting"), .aborts = true }));
    CHECK(phases.at[index].after == after);
    CHECK(phases.at[index].timeout == FK_SECONDS(10));
    CHECK(phases.at[index].aborts && !phases.at[index].disabled);
    CHECK_OK(fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("cluster-exiting"),
                                                           .depends_on = none,
                                                           .timeout = 7,
                                                           .disabled = true }));
    CHECK(phases.at[index].after == 0);
    CHECK(phases.at[index].timeout == 7);
    CHECK(!phases.at[index].aborts && phases.at[index].disabled);
    CHECK_U64(phases.count, 12);
}

TEST(phases_refuse_without_harm)
{
    static fk_phases before;
    char name[FK_SHUTDOWN_NAME_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[FK_SHUTDOWN_NAME_MAX + 1] = '\0';
    const fk_str last[] = { FK_STR("new-one"), FK_STR("actor-system-terminate") };
    const fk_str bad[] = { FK_STR("new-one"), FK_STR("not/a/name") };
    fk__phases_init(&phases);
    before = phases;
    CHECK_ERR(set("service-stop", last, 2), FK_E_CYCLE);
    CHECK_ERR(set("service-stop", bad, 2), FK_E_NAME);
    CHECK_ERR(set("new-two", bad, 2), FK_E_NAME);
    CHECK_ERR(set("", NULL, 0), FK_E_NAME);
    CHECK_ERR(set("tab\t", NULL, 0), FK_E_NAME);
    CHECK_ERR(set(name, NULL, 0), FK_E_NAME);
    CHECK_ERR(set("x", NULL, 1), FK_E_INVALID);
    CHECK_ERR(fk__phases_set(&phases, &(fk_shutdown_phase){ .size = 3, .name = FK_STR("x") }),
              FK_E_INVALID);
    CHECK_ERR(fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("x"), .timeout = -1 }),
              FK_E_INVALID);
    CHECK_U64(phases.count, before.count);
    CHECK(memcmp(phases.at, before.at, before.count * sizeof(before.at[0])) == 0);
    name[FK_SHUTDOWN_NAME_MAX] = '\0';
    CHECK_OK(set(name, NULL, 0));
}

TEST(phases_have_a_limit)
{
    char name[16];
    fk__phases_init(&phases);
    while (phases.count < FK_SHUTDOWN_PHASES_MAX - 1) {
        snprintf(name, sizeof(name), "p%u", phases.count);
        CHECK_OK(set(name, NULL, 0));
    }
    const fk_str two[] = { FK_STR("x"), FK_STR("y") };
    CHECK_ERR(set("service-stop", two, 2), FK_E_LIMIT);
    CHECK_U64(phases.count, FK_SHUTDOWN_PHASES_MAX - 1);
    CHECK_OK(set("service-stop", two, 1));
    CHECK_ERR(set("y", NULL, 0), FK_E_LIMIT);
    check_legal();
}

/* ---- the course of a run --------------------------------------------------------------------- */

static fk_course course;

/* a, b, c */
static void begin(uint32_t from)
{
    const fk_str a[] = { FK_STR("a") }, b[] = { FK_STR("b") };
    fk__phases_clear(&phases);
    memset(&course, 0, sizeof(course));
    CHECK_OK(set("b", a, 1));
    CHECK_OK(set("c", b, 1));
    CHECK(fk__course_step(&course, &phases, 0).kind == FK_MOVE_WAIT);
    CHECK_OK(fk__course_begin(&course, &phases, from));
}

static void check_step(fk_time now, fk_move_kind kind, const char *name)
{
    fk_move move = fk__course_step(&course, &phases, now);
    CHECK_U64(move.kind, kind);
    CHECK(name == NULL ? move.phase == FK_PHASE_NONE
                       : tsv_equal(fk__phase_name(&phases.at[move.phase]), fk_str_of(name)));
}

static bool has_passed(const char *name)
{
    return fk__course_has_passed(&course, &phases, fk__phases_find(&phases, fk_str_of(name)));
}

TEST(course_goes_through_all_phases)
{
    begin(FK_PHASE_NONE);
    CHECK(!has_passed("a"));
    check_step(0, FK_MOVE_ENTER, "a");
    CHECK(has_passed("a") && !has_passed("b"));
    check_step(0, FK_MOVE_DONE, "a"); /* nothing to do */
    check_step(0, FK_MOVE_ENTER, "b");
    fk__course_expect(&course, 2);
    check_step(0, FK_MOVE_WAIT, NULL);
    fk__course_report(&course, FK_OK);
    check_step(SECOND, FK_MOVE_WAIT, NULL);
    CHECK(!has_passed("c"));
    fk__course_report(&course, FK_OK);
    check_step(9 * FK_SECONDS(1), FK_MOVE_DONE, "b"); /* done is done, however late we look */
    check_step(9 * FK_SECONDS(1), FK_MOVE_ENTER, "c");
    check_step(9 * FK_SECONDS(1), FK_MOVE_DONE, "c");
    check_step(0, FK_MOVE_END, NULL);
    check_step(0, FK_MOVE_END, NULL);
    CHECK(course.outcome == FK_OK);
    CHECK(has_passed("c"));
}

TEST(course_goes_on_after_failures_and_timeouts)
{
    begin(FK_PHASE_NONE);
    check_step(0, FK_MOVE_ENTER, "a");
    fk__course_expect(&course, 2);
    fk__course_report(&course, FK_E_OS);
    check_step(FK_SECONDS(5) - 1, FK_MOVE_WAIT, NULL);
    check_step(FK_SECONDS(5), FK_MOVE_TIMEOUT, "a");
    check_step(FK_SECONDS(5), FK_MOVE_ENTER, "b");
    fk__course_expect(&course, 1);
    fk__course_report(&course, FK_E_OS);
    check_step(FK_SECONDS(5), FK_MOVE_DONE, "b");
    CHECK(course.state == FK_COURSE_BETWEEN);
}

TEST(course_aborts_when_the_phase_says_so)
{
    begin(FK_PHASE_NONE);
    CHECK_OK(fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("a"), .aborts = true }));
    check_step(0, FK_MOVE_ENTER, "a");
    fk__course_expect(&course, 2);
    fk__course_report(&course, FK_E_OS);
    check_step(0, FK_MOVE_WAIT, NULL); /* the other one may finish */
    fk__course_report(&course, FK_E_LIMIT);
    check_step(0, FK_MOVE_FAILED, "a");
    check_step(0, FK_MOVE_END, NULL);
    CHECK_ERR(course.outcome, FK_E_OS);

    begin(FK_PHASE_NONE);
    CHECK_OK(fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("a"), .aborts = true }));
    check_step(0, FK_MOVE_ENTER, "a");
    fk__course_expect(&course, 1);
    check_step(FK_SECONDS(5), FK_MOVE_TIMEOUT, "a");
    check_step(FK_SECONDS(5), FK_MOVE_END, NULL);
    CHECK_ERR(course.outcome, FK_E_TIMEOUT);
}

TEST(course_skips_disabled_phases)
{
    begin(FK_PHASE_NONE);
    CHECK_OK(
        fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("b"), .disabled = true }));
    check_step(0, FK_MOVE_ENTER, "a");
    check_step(0, FK_MOVE_DONE, "a");
    check_step(0, FK_MOVE_SKIP, "b");
    check_step(0, FK_MOVE_ENTER, "c");
}

TEST(course_from_a_phase)
{
    begin(2); /* c was made as the third */
    CHECK(has_passed("a") && has_passed("b") && !has_passed("c"));
    check_step(0, FK_MOVE_ENTER, "c");
    check_step(0, FK_MOVE_DONE, "c");
    check_step(0, FK_MOVE_END, NULL);
}

TEST(course_ends_where_it_is_told)
{
    begin(FK_PHASE_NONE);
    check_step(0, FK_MOVE_ENTER, "a");
    fk__course_end(&course, FK_E_STOPPING);
    check_step(0, FK_MOVE_END, NULL);
    fk__course_end(&course, FK_OK); /* too late */
    CHECK_ERR(course.outcome, FK_E_STOPPING);
    CHECK(fk__course_phase(&course) == FK_PHASE_NONE);
}

TEST(course_may_wait_for_ever)
{
    begin(FK_PHASE_NONE);
    CHECK_OK(
        fk__phases_set(&phases, &(fk_shutdown_phase){ .name = FK_STR("a"), .timeout = FK_NEVER }));
    check_step(SECOND, FK_MOVE_ENTER, "a");
    fk__course_expect(&course, 1);
    check_step(FK_NEVER - 1, FK_MOVE_WAIT, NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What becomes of an actor that fails: directives, strategies, and the corners between them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/stage.h"

static stage s;

static void start(void)
{
    stage_start(&s);
    stage_forget(&s);
}

/* A parent that decides as its role says, with what else is given. */
static role parent_of(role *a, role *b, role *c, fk_directive answer)
{
    return (role){ .name = "p",
                   .child = { a, b, c },
                   .answer = answer,
                   .strategy = { .decide = role_decide, .restarts = FK_RESTARTS_UNLIMITED } };
}

static void play(role *top)
{
    start();
    role_spawn(&s, top);
    stage_forget(&s);
}

/* ---- directives --------------------------------------------------------------------------------- */

TEST(resume_keeps_the_state_and_skips_the_message)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESUME);
    play(&p);
    role_send(&a, 5);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 2);
    stage_expect(&s, "a=5 a=7");
    CHECK_U64(stage_count(&s, FK_EVENT_RESUMED), 1);
    stage_end(&s);
}

TEST(restart_gives_fresh_state_from_the_init_bytes)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    fk_ref before = a.ref;
    role_send(&a, 5);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 2);
    stage_expect(&s, "a=5 a.stop a.start a=2"); /* its role came from init, the total is new */
    CHECK(fk_ref_equal(a.ref, before));
    CHECK_ERR(stage_last(&s, FK_EVENT_RESTARTED)->err, FK_E_INVALID);
    stage_end(&s);
}

TEST(stop_ends_the_child_and_what_waits_becomes_dead_letters)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_STOP);
    play(&p);
    role_fail(&a, FK_E_INVALID);
    role_send(&a, 1);
    role_send(&a, 2);
    stage_expect(&s, "a.stop");
    CHECK(!role_is_alive(&a));
    CHECK_U64(s.r.letters.of[FK_REASON_STOPPED], 2);
    stage_end(&s);
}

TEST(decision_outside_the_enum_escalates)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, (fk_directive)77);
    role top = { .name = "t", .child = { &p }, .answer = FK_DIRECTIVE_STOP };
    top.strategy.decide = role_decide;
    play(&top);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "a.stop p.stop");
    stage_end(&s);
}

TEST(supervised_event_has_path_error_type_directive_and_count)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    for (uint32_t i = 1; i <= 3; i++) {
        role_fail(&a, FK_E_TIMEOUT);
        rig_run(&s.r);
        const stage_event *e = stage_last(&s, FK_EVENT_SUPERVISED);
        CHECK_STR(e->path, "/user/p/a");
        CHECK(fk_ref_equal(e->other, p.ref));
        CHECK_ERR(e->err, FK_E_TIMEOUT);
        CHECK(e->type == &fk_type_rig_call);
        CHECK_STR(e->detail, "asked to fail");
        CHECK_U64(e->directive, FK_DIRECTIVE_RESTART);
        CHECK_U64(e->count, i);
        CHECK_U64(e->phase, FK_PHASE_MESSAGE);
    }
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 3);
    stage_end(&s);
}

TEST(directive_names)
{
    CHECK_STR(fk_directive_name(FK_DIRECTIVE_RESUME), "resume");
    CHECK_STR(fk_directive_name(FK_DIRECTIVE_RESTART), "restart");
    CHECK_STR(fk_directive_name(FK_DIRECTIVE_STOP), "stop");
    CHECK_STR(fk_directive_name(FK_DIRECTIVE_ESCALATE), "escalate");
    CHECK_STR(fk_directive_name((fk_directive)9), "unknown");
}

/* ---- the default ---------------------------------------------------------------------------------- */

TEST(default_restarts_ten_times_a_second_and_stops_then)
{
    role a = { .name = "a", .is_quiet = true }, w = { .name = "w" };
    start();
    role_spawn(&s, &a);
    role_spawn(&s, &w);
    role_watch(&w, &a);
    stage_forget(&s);
    for (int i = 0; i < 10; i++) role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "");
    CHECK(role_is_alive(&a));
    CHECK_U64(a.starts, 11);
    rig_advance(&s.r, FK_SECONDS(1) + 1); /* another window */
    for (int i = 0; i < 10; i++) role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(role_is_alive(&a));
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "w!/user/a");
    CHECK_U64(stage_last(&s, FK_EVENT_SUPERVISED)->directive, FK_DIRECTIVE_STOP);
    CHECK_U64(stage_last(&s, FK_EVENT_SUPERVISED)->count, 20); /* restarts, and no more */
    stage_end(&s);
}

TEST(default_is_unlimited_under_pekkos_rules)
{
    role a = { .name = "a", .is_quiet = true };
    stage_start_with(&s, (fk_system_config){ .paths = { .rules = FK_RULES_PEKKO } });
    role_spawn(&s, &a);
    for (int i = 0; i < 50; i++) role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(role_is_alive(&a));
    CHECK_U64(a.starts, 51);
    stage_end(&s);
}

TEST(default_stops_after_kill_death_pact_and_failed_start)
{
    static const fk_err ERRORS[] = { FK_E_KILLED, FK_E_DEATH_PACT };
    for (size_t i = 0; i < 2; i++) {
        role a = { .name = "a" };
        play(&a);
        role_fail(&a, ERRORS[i]);
        stage_expect(&s, "a.stop");
        stage_end(&s);
    }
    role a = { .name = "a", .start_fails = 1 };
    play(&a);
    CHECK(!role_is_alive(&a));
    CHECK_U64(a.starts, 1);
    stage_end(&s);
}

/* ---- strategies ------------------------------------------------------------------------------------ */

TEST(one_for_one_leaves_the_siblings_alone)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = parent_of(&a, &b, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    role_send(&b, 3);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    role_send(&b, 1);
    stage_expect(&s, "b=3 a.stop a.start b=4");
    stage_end(&s);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_words(char *text, size_t size)
{
    char *word[32], copy[STAGE_DIARY];
    size_t count = 0, len = 0;
    snprintf(copy, sizeof(copy), "%s", text);
    for (char *w = strtok(copy, " "); w != NULL && count < 32; w = strtok(NULL, " ")) {
        word[count++] = w;
    }
    qsort(word, count, sizeof(word[0]), by_text);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        len += (size_t)snprintf(text + len, size - len, "%s%s", i != 0 ? " " : "", word[i]);
    }
}

/* Siblings come in no particular order. */
static void expect_sorted(const char *words)
{
    rig_run(&s.r);
    sort_words(s.diary, sizeof(s.diary));
    s.len = strlen(s.diary);
    stage_expect(&s, words);
}

TEST(all_for_one_restarts_all)
{
    role a = { .name = "a" }, b = { .name = "b" }, c = { .name = "c" };
    role p = parent_of(&a, &b, &c, FK_DIRECTIVE_RESTART);
    p.strategy.kind = FK_ALL_FOR_ONE;
    play(&p);
    for (int i = 0; i < 3; i++) role_send(p.child[i], 5);
    stage_forget(&s);
    role_fail(&b, FK_E_INVALID);
    expect_sorted("a.start a.stop b.start b.stop c.start c.stop");
    for (int i = 0; i < 3; i++) role_send(p.child[i], 1);
    expect_sorted("a=1 b=1 c=1");
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 3);
    stage_end(&s);
}

TEST(all_for_one_stops_all)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = parent_of(&a, &b, NULL, FK_DIRECTIVE_STOP);
    p.strategy.kind = FK_ALL_FOR_ONE;
    play(&p);
    role_fail(&b, FK_E_INVALID);
    expect_sorted("a.stop b.stop");
    CHECK(role_is_alive(&p));
    stage_end(&s);
}

TEST(all_for_one_with_an_exhausted_budget_stops_all)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = parent_of(&a, &b, NULL, FK_DIRECTIVE_RESTART);
    p.strategy.kind = FK_ALL_FOR_ONE;
    p.strategy.restarts = 2;
    play(&p);
    role_fail(&a, FK_E_INVALID);
    expect_sorted("a.start a.stop b.start b.stop");
    role_fail(&b, FK_E_INVALID); /* counted for each of them, whoever failed */
    expect_sorted("a.start a.stop b.start b.stop");
    role_fail(&a, FK_E_INVALID);
    expect_sorted("a.stop b.stop");
    stage_end(&s);
}

TEST(all_for_one_resumes_only_the_one_that_failed)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = parent_of(&a, &b, NULL, FK_DIRECTIVE_RESUME);
    p.strategy.kind = FK_ALL_FOR_ONE;
    play(&p);
    role_fail(&a, FK_E_INVALID);
    stage_expect(&s, "");
    CHECK_U64(stage_count(&s, FK_EVENT_RESUMED), 1);
    stage_end(&s);
}

TEST(rest_for_one_restarts_it_and_the_younger_ones)
{
    role a = { .name = "a" }, b = { .name = "b" }, c = { .name = "c" };
    role p = parent_of(&a, &b, &c, FK_DIRECTIVE_RESTART);
    p.strategy.kind = FK_REST_FOR_ONE;
    play(&p);
    role_fail(&b, FK_E_INVALID);
    expect_sorted("b.start b.stop c.start c.stop");
    role_fail(&c, FK_E_INVALID);
    expect_sorted("c.start c.stop");
    role_fail(&a, FK_E_INVALID);
    expect_sorted("a.start a.stop b.start b.stop c.start c.stop");
    stage_end(&s);
}

/* ---- escalation ------------------------------------------------------------------------------------ */

TEST(escalation_makes_the_parent_fail_and_restart_takes_the_children_with_it)
{
    role a = { .name = "a" }, b = { .name = "b" };
    role p = parent_of(&a, &b, NULL, FK_DIRECTIVE_ESCALATE);
    role top = parent_of(&p, NULL, NULL, FK_DIRECTIVE_RESTART);
    top.name = "t";
    play(&top);
    role_fail(&a, FK_E_TIMEOUT);
    rig_run(&s.r);
    const stage_event *e = stage_last(&s, FK_EVENT_SUPERVISED);
    CHECK_STR(e->path, "/user/t/p");
    CHECK_ERR(e->err, FK_E_TIMEOUT);
    CHECK_STR(e->detail, "asked to fail");
    CHECK_U64(e->phase, FK_PHASE_CHILD);
    expect_sorted("a.start a.stop b.start b.stop p.start p.stop");
    stage_end(&s);
}

TEST(escalation_through_three_levels_and_resume_from_the_top_resumes_the_perpetrator)
{
    role leaf = { .name = "leaf" }, sibling = { .name = "sibling" };
    role low = { .name = "low", .child = { &leaf, &sibling }, .answer = FK_DIRECTIVE_ESCALATE };
    role mid = { .name = "mid", .child = { &low }, .answer = FK_DIRECTIVE_ESCALATE };
    role top = { .name = "top", .child = { &mid }, .answer = FK_DIRECTIVE_RESUME };
    role *all[] = { &leaf, &sibling, &low, &mid, &top };
    for (int i = 0; i < 5; i++) all[i]->strategy.decide = role_decide;
    play(&top);
    for (int i = 0; i < 5; i++) role_send(all[i], 1);
    stage_forget(&s);
    role_fail(&leaf, FK_E_INVALID);
    rig_run(&s.r);
    CHECK_U64(stage_count(&s, FK_EVENT_SUPERVISED), 3);
    CHECK_U64(stage_count(&s, FK_EVENT_RESUMED), 3);
    for (int i = 0; i < 5; i++) role_send(all[i], 1);
    expect_sorted("leaf=2 low=2 mid=2 sibling=2 top=2");
    stage_end(&s);
}

static fk_err send_down_and_fail(fk_ctx *ctx, void *arg)
{
    role *leaf = arg;
    role_send(leaf, 1);
    return fk_fail(ctx, FK_E_INVALID, "with a message on its way down");
}

static fk_directive note_and_resume(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    stage_note(&s, "decided");
    return FK_DIRECTIVE_RESUME;
}

TEST(descendants_handle_nothing_until_it_is_decided)
{
    role leaf = { .name = "leaf" }, mid = { .name = "mid", .child = { &leaf } };
    role low = { .name = "low", .child = { &mid } };
    role p = parent_of(&low, NULL, NULL, FK_DIRECTIVE_RESUME);
    p.strategy.decide = note_and_resume;
    play(&p);
    role_call(&low, send_down_and_fail, &leaf);
    rig_run(&s.r);
    CHECK(strstr(s.diary, "decided") != NULL);
    CHECK(strstr(s.diary, "leaf=1") != NULL);
    role_call(&low, send_down_and_fail, &mid);
    stage_forget(&s);
    role_call(&low, send_down_and_fail, &mid);
    stage_expect(&s, "decided mid=2");
    stage_end(&s);
}

/* ---- waiting for a decision -------------------------------------------------------------------------- */

static fk_directive stop_itself(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)state;
    (void)failure;
    fk_stop_self(ctx);
    return FK_DIRECTIVE_RESTART;
}

TEST(parent_that_stops_itself_while_it_decides_takes_all_with_it)
{
    role a = { .name = "a" }, p = { .name = "p", .child = { &a } };
    p.strategy.decide = stop_itself;
    play(&p);
    role_fail(&a, FK_E_INVALID);
    rig_run(&s.r);
    CHECK(!role_is_alive(&a));
    CHECK(!role_is_alive(&p));
    stage_end(&s);
}

static fk_err fail_both(fk_ctx *ctx, void *arg)
{
    role *child = arg;
    role_fail(child, FK_E_TIMEOUT);
    role_send(child, 1);
    return fk_fail(ctx, FK_E_INVALID, "the parent");
}

/* The child's failure waits until the parent itself goes on, and is decided then. */
TEST(child_that_fails_while_its_parent_is_held_is_decided_later)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    role top = parent_of(&p, NULL, NULL, FK_DIRECTIVE_RESUME);
    top.name = "t";
    play(&top);
    role_call(&p, fail_both, &a);
    stage_expect(&s, "a.stop a.start a=1");
    stage_end(&s);
}

TEST(stop_while_waiting_for_a_decision_is_the_end)
{
    role a = { .name = "a" }, w = { .name = "w", .is_quiet = true };
    role p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    role_spawn(&s, &w);
    role_watch(&w, &a);
    stage_forget(&s);
    role_fail(&a, FK_E_INVALID);
    CHECK_OK(fk_stop(s.r.sys, a.ref)); /* a signal: before the message */
    stage_expect(&s, "a.stop w!/user/p/a");
    CHECK_U64(stage_count(&s, FK_EVENT_RESTARTED), 0);
    stage_end(&s);
}

static fk_err fail_and_stop_self(fk_ctx *ctx, void *arg)
{
    (void)arg;
    fk_stop_self(ctx);
    return FK_E_INVALID;
}

TEST(failure_of_an_actor_that_is_leaving_is_reported_and_nothing_else)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    role_call(&a, fail_and_stop_self, NULL);
    stage_expect(&s, "a.stop");
    CHECK_U64(stage_count(&s, FK_EVENT_FAILED), 1);
    CHECK_U64(stage_count(&s, FK_EVENT_SUPERVISED), 0);
    stage_end(&s);
}

/* A failed actor handles no messages, so neither poison; the parent's answer comes first. */
TEST(poison_behind_the_failing_message_stops_after_the_restart)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    role_fail(&a, FK_E_INVALID);
    CHECK_OK(fk_poison(s.r.sys, a.ref));
    stage_expect(&s, "a.stop a.start a.stop");
    stage_end(&s);
}

TEST(kill_fails_with_killed_and_the_supervisor_decides)
{
    role a = { .name = "a" }, p = parent_of(&a, NULL, NULL, FK_DIRECTIVE_RESTART);
    play(&p);
    CHECK_OK(fk_kill(s.r.sys, a.ref));
    role_send(&a, 1);
    stage_expect(&s, "a.stop a.start a=1");
    CHECK_ERR(stage_last(&s, FK_EVENT_FAILED)->err, FK_E_KILLED);
    stage_end(&s);
}

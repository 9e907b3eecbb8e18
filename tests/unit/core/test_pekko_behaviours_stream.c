/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a runtime like Pekko must do: B49 and B60 (event stream), B61 (questions), B63 (coordinated
 * shutdown). See test_pekko_behaviours_name.c for the others. */

#include <stdio.h>
#include <string.h>

#include "fraktor/registry.h"
#include "support/rig.h"

static rig r;

static void start(void)
{
    rig_start_with(&r, (fk_system_config){ .name = "t", .paths = { .rules = FK_RULES_PEKKO } });
}

/* ---- the event stream --------------------------------------------------------------------------- */

typedef struct heard {
    size_t of[FK_EVENT_COUNT];
} heard;

static void hear(void *user, const fk_event *event)
{
    ((heard *)user)->of[event->kind]++;
}

typedef struct heartbeat {
    uint64_t n;
} heartbeat;
FK_MESSAGE_QUIET(heartbeat);

TEST(b49_suppressed_types_appear_only_as_suppressed_dead_letters)
{
    heard h = { { 0 } };
    fk_subscription subscription;
    start();
    CHECK_OK(fk_subscribe(r.sys, FK_TOPIC_DEAD_LETTERS, FK_LEVEL_DEBUG, hear, &h, &subscription));
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(heartbeat, 1)));
    CHECK_U64(h.of[FK_EVENT_SUPPRESSED], 1);
    CHECK_U64(h.of[FK_EVENT_DEAD_LETTER], 0);
    CHECK_U64(r.letters.count, 0);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    CHECK_U64(h.of[FK_EVENT_SUPPRESSED], 1);
    CHECK_U64(h.of[FK_EVENT_DEAD_LETTER], 1);
    rig_stop(&r);
}

TEST(b60_a_group_has_its_kinds_once_and_may_lose_one)
{
    probe p = { 0 };
    start();
    fk_ref ref = probe_spawn(&r, &p);
    CHECK_OK(fk_subscribe_actor(r.sys, ref, FK_TOPIC_DEAD_LETTERS));
    fk_err again = fk_subscribe_actor(r.sys, ref, FK_TOPIC(DEAD_LETTER)); /* it has that */
    CHECK_ERR(again, FK_E_STATE);
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_OK(fk_unsubscribe_actor(r.sys, ref, FK_TOPIC(DEAD_LETTER)));
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(p.count, 1); /* cut out ... */
    CHECK_OK(fk_send(r.sys, FK_REF_NONE, FK_MSG(heartbeat, 1)));
    rig_run(&r);
    CHECK_U64(p.count, 2); /* ... and the rest stays */
    rig_stop(&r);
}

/* ---- questions ----------------------------------------------------------------------------------- */

typedef struct inquiry {
    fk_ref target, question; /* the one that was asked, and the reference it was asked by */
    size_t asked, answered;
    fk_err err;
    size_t ended; /* fk_terminated of the question */
} inquiry;

static inquiry q;

static fk_err target_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (FK_AS(fk_terminated, msg) != NULL) {
        q.ended++;
        return FK_OK;
    }
    q.asked++;
    q.question = msg->sender;
    return fk_watch(ctx, msg->sender);
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_answer *answer = FK_AS(fk_answer, msg);
    (void)state;
    if (answer == NULL) return fk_ask(ctx, q.target, FK_MSG(num, 1), 7, FK_MILLIS(10));
    q.answered++;
    q.err = answer->err;
    return FK_OK;
}

static void ask(void)
{
    fk_ref asker;
    memset(&q, 0, sizeof(q));
    CHECK_OK(
        fk_spawn(r.sys, FK_STR("target"), &(fk_props){ .receive = target_receive }, &q.target));
    CHECK_OK(fk_spawn(r.sys, FK_STR("asker"), &(fk_props){ .receive = asker_receive }, &asker));
    CHECK_OK(fk_send(r.sys, asker, FK_TEXT("ask")));
    rig_run(&r);
    CHECK_U64(q.asked, 1);
}

TEST(b61_a_question_is_named_after_its_target_can_be_watched_and_times_out)
{
    char path[128];
    fk_ref found;
    start();
    ask();
    size_t len = fk_path_of(r.sys, q.question, path, sizeof(path));
    CHECK(strncmp(path, "pekko://t/temp/target$", 22) == 0);
    CHECK_OK(fk_resolve(r.sys, (fk_str){ path, len }, &found, NULL));
    CHECK(fk_ref_equal(found, q.question));
    rig_advance(&r, FK_MILLIS(20));
    CHECK_U64(q.answered, 1);
    CHECK_ERR(q.err, FK_E_TIMEOUT);
    CHECK_U64(q.ended, 1);
    CHECK_ERR(fk_resolve(r.sys, (fk_str){ path, len }, &found, NULL), FK_E_PID_UNKNOWN);
    rig_stop(&r);
}

TEST(b61_the_second_reply_is_a_dead_letter)
{
    start();
    ask();
    CHECK_OK(fk_send_from(r.sys, q.question, q.target, FK_MSG(num, 2)));
    CHECK_OK(fk_send_from(r.sys, q.question, q.target, FK_MSG(num, 3)));
    rig_run(&r);
    CHECK_U64(q.answered, 1);
    CHECK_OK(q.err);
    CHECK_U64(r.letters.of[FK_REASON_LATE_REPLY], 1);
    CHECK_U64(q.ended, 1);
    rig_stop(&r);
}

/* ---- coordinated shutdown ------------------------------------------------------------------------- */

static char steps[128];

static void step(fk_system *sys, fk_shutdown_task task, void *user)
{
    const char *name = user;
    size_t len = strlen(steps);
    snprintf(steps + len, sizeof(steps) - len, "%s ", name);
    fk_err err = strcmp(name, "bad") == 0 ? FK_E_FAILED : FK_OK;
    CHECK_OK(fk_shutdown_task_done(sys, task, err));
}

static void task(const char *phase, char *name)
{
    CHECK_OK(fk_shutdown_task_add(r.sys, fk_str_of(phase), fk_str_of(name), step, name, NULL));
}

static void shut_down(bool aborts, fk_err expected)
{
    char bad[] = "bad", stop[] = "stop", first[] = "first";
    fk_err outcome = FK_OK;
    steps[0] = '\0';
    start();
    fk_shutdown_phase phase = { .name = FK_STR("service-unbind"), .aborts = aborts };
    CHECK_OK(fk_shutdown_phase_set(r.sys, &phase));
    task("service-stop", stop);
    task("service-unbind", bad);
    task("before-service-unbind", first);
    CHECK_OK(fk_shutdown_run(r.sys, FK_STR("test")));
    rig_run(&r);
    CHECK(fk_shutdown_is_over(r.sys, &outcome));
    CHECK_ERR(outcome, expected);
    rig_stop(&r);
}

TEST(b63_phases_run_in_order_once_and_go_on_after_a_failure)
{
    shut_down(false, FK_OK);
    CHECK_STR(steps, "first bad stop ");
}

TEST(b63_a_phase_that_aborts_ends_the_run)
{
    shut_down(true, FK_E_FAILED);
    CHECK_STR(steps, "first bad ");
}

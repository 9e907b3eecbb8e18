/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coordinated shutdown with actors, threads, and systems that end otherwise. */

#include <string.h>

#include "support/rig.h"

typedef struct servant {
    fk_ref asked_by;
    size_t asked;
    fk_err answer;
    bool answers, stops;
} servant;

static rig r;
static _Atomic size_t lates, failures;

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind != FK_EVENT_SHUTDOWN) return;
    if (strcmp(event->to, "late") == 0) atomic_fetch_add(&lates, 1);
    if (strcmp(event->to, "failed") == 0 && event->text.len != 0) atomic_fetch_add(&failures, 1);
}

static void start_with(uint32_t workers)
{
    atomic_store(&lates, 0);
    atomic_store(&failures, 0);
    rig_start_with(&r, (fk_system_config){ .workers = workers, .on_event = on_event });
}

static fk_err servant_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    servant *s = state;
    if (FK_AS(num, msg) == NULL) return fk_unhandled(ctx, msg);
    s->asked++;
    s->asked_by = msg->sender;
    if (s->stops) fk_stop_self(ctx);
    return s->answers ? fk_reply(ctx, FK_MSG(fk_shutdown_done, s->answer)) : FK_OK;
}

static fk_ref servant_spawn(servant *s)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = servant_receive, .state = s }, &ref));
    return ref;
}

static void ask(const char *phase, fk_ref actor)
{
    CHECK_OK(fk_shutdown_task_add_actor(r.sys, fk_str_of(phase), FK_STR("servant"), actor,
                                        FK_MSG(num, 1), NULL));
}

static void run(void)
{
    CHECK_OK(fk_shutdown_run(r.sys, FK_STR("test")));
    rig_run(&r);
}

static void check_over(fk_err expected)
{
    fk_err outcome = FK_E_UNSUPPORTED;
    CHECK(fk_shutdown_is_over(r.sys, &outcome));
    CHECK_ERR(outcome, expected);
}

TEST(shutdown_waits_for_an_actors_answer)
{
    servant s = { 0 };
    start_with(0);
    fk_ref ref = servant_spawn(&s);
    ask("service-stop", ref);
    rig_run(&r);
    CHECK_U64(s.asked, 0);
    run();
    CHECK_U64(s.asked, 1);
    rig_advance(&r, FK_MILLIS(500));
    CHECK(!fk_shutdown_is_over(r.sys, NULL));
    CHECK_OK(fk_send_from(r.sys, s.asked_by, ref, FK_MSG(fk_shutdown_done, FK_OK)));
    rig_run(&r);
    check_over(FK_OK);
    CHECK_U64(atomic_load(&failures), 0);
    rig_stop(&r);
}

TEST(shutdown_counts_an_answer_for_one_task)
{
    servant s = { .answers = true };
    start_with(0);
    fk_ref ref = servant_spawn(&s);
    ask("service-stop", ref);
    ask("service-stop", ref);
    run();
    CHECK_U64(s.asked, 2);
    check_over(FK_OK);
    rig_stop(&r);
}

TEST(shutdown_takes_an_actors_failure_though_it_ends_with_it)
{
    servant s = { .answers = true, .answer = FK_E_OS, .stops = true };
    start_with(0);
    ask("service-stop", servant_spawn(&s));
    CHECK_OK(fk_shutdown_phase_set(
        r.sys, &(fk_shutdown_phase){ .name = FK_STR("service-stop"), .aborts = true }));
    run();
    rig_pass(&r, FK_MILLIS(50));
    check_over(FK_E_OS);
    CHECK_U64(atomic_load(&failures), 2); /* of the task and of the phase */
    rig_stop(&r);
}

TEST(shutdown_takes_an_actors_end_for_an_answer)
{
    servant leaver = { .stops = true }, dead = { 0 }, stays = { 0 };
    start_with(0);
    ask("service-stop", servant_spawn(&leaver));
    fk_ref gone = servant_spawn(&dead);
    ask("service-stop", gone);
    fk_ref last = servant_spawn(&stays);
    ask("service-stop", last);
    CHECK_OK(fk_stop(r.sys, gone));
    rig_run(&r);
    run();
    rig_pass(&r, FK_MILLIS(100));
    CHECK(!fk_shutdown_is_over(r.sys, NULL));
    CHECK_OK(fk_stop(r.sys, last));
    rig_pass(&r, FK_MILLIS(50));
    check_over(FK_OK);
    CHECK_U64(leaver.asked, 1);
    CHECK_U64(dead.asked, 0);
    rig_stop(&r);
}

TEST(shutdown_tells_of_an_answer_that_comes_late)
{
    servant s = { 0 };
    probe p, other;
    start_with(0);
    fk_ref ref = servant_spawn(&s);
    fk_ref stranger = probe_spawn(&r, &p);
    ask("service-stop", ref);
    ask("cluster-leave", probe_spawn(&r, &other)); /* so that the run is not over */
    run();
    rig_advance(&r, FK_MILLIS(5002));
    CHECK_OK(fk_send_from(r.sys, s.asked_by, ref, FK_MSG(fk_shutdown_done, FK_OK)));
    rig_run(&r);
    CHECK_U64(atomic_load(&lates), 1);
    CHECK_U64(r.letters.count, 0);
    CHECK_OK(fk_send_from(r.sys, s.asked_by, ref, FK_MSG(fk_shutdown_done, FK_OK)));
    CHECK_OK(fk_send_from(r.sys, s.asked_by, stranger, FK_MSG(fk_shutdown_done, FK_OK)));
    CHECK_OK(fk_send_from(r.sys, s.asked_by, stranger, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(atomic_load(&lates), 1);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 3);
    rig_stop(&r);
}

TEST(shutdown_fails_a_task_whose_message_does_not_fit)
{
    servant s = { 0 };
    fk_ref ref = FK_REF_NONE;
    start_with(0);
    CHECK_OK(fk_spawn(
        r.sys, FK_STR(""),
        &(fk_props){
            .receive = servant_receive, .state = &s, .mailbox = FK_MAILBOX_BOUNDED, .capacity = 1 },
        &ref));
    ask("service-stop", ref);
    ask("service-stop", ref);
    s.answers = true;
    run();
    check_over(FK_OK);
    CHECK_U64(atomic_load(&failures), 1);
    CHECK_U64(r.letters.of[FK_REASON_FULL], 1);
    rig_stop(&r);
}

TEST(shutdown_drops_messages_that_were_not_sent)
{
    _Atomic int drops = 0;
    owned message = { &drops, 1 };
    fk_out out = { &fk_type_owned, &message };
    fk_shutdown_task task;
    start_with(0);
    fk_str phase = FK_STR("service-stop"), name = FK_STR("x");
    CHECK_ERR(fk_shutdown_task_add_actor(r.sys, FK_STR("nowhere"), name, FK_REF_NONE, out, &task),
              FK_E_NOT_FOUND);
    CHECK_U64(atomic_load(&drops), 1);
    CHECK_ERR(fk_shutdown_task_add_actor(r.sys, phase, FK_STR(""), FK_REF_NONE, out, &task),
              FK_E_NAME);
    CHECK_U64(atomic_load(&drops), 2);
    CHECK_OK(fk_shutdown_task_add_actor(r.sys, phase, name, FK_REF_NONE, out, &task));
    CHECK_U64(atomic_load(&drops), 2);
    CHECK_OK(fk_shutdown_task_cancel(r.sys, task));
    CHECK_U64(atomic_load(&drops), 3);
    CHECK_OK(fk_shutdown_task_add_actor(r.sys, phase, name, FK_REF_NONE, out, &task));
    rig_stop(&r); /* without a run */
    CHECK_U64(atomic_load(&drops), 4);
}

/* ---- a system that ends otherwise ------------------------------------------------------------ */

static void idle_task(fk_system *sys, fk_shutdown_task task, void *user)
{
    (void)sys;
    *(fk_shutdown_task *)user = task;
}

TEST(shutdown_is_over_when_the_system_is_stopped_under_it)
{
    fk_shutdown_task task = { 0 };
    start_with(0);
    CHECK_OK(
        fk_shutdown_task_add(r.sys, FK_STR("service-stop"), FK_STR("x"), idle_task, &task, NULL));
    run();
    CHECK(task.id != 0);
    rig_stop(&r); /* not a byte is left */
}

static fk_err find_driver(fk_ctx *ctx, void *arg)
{
    return fk_resolve(fk_system_of(ctx), FK_STR("fraktor://fraktor/system/shutdown"), arg, NULL);
}

TEST(shutdown_is_over_when_its_actor_is_stopped)
{
    fk_shutdown_task task = { 0 };
    fk_ref driver = FK_REF_NONE;
    start_with(0);
    CHECK_OK(
        fk_shutdown_task_add(r.sys, FK_STR("service-stop"), FK_STR("x"), idle_task, &task, NULL));
    run();
    rig_do(&r, doer_spawn(&r), find_driver, &driver);
    CHECK_OK(fk_stop(r.sys, driver));
    rig_run(&r);
    check_over(FK_E_STOPPING);
    CHECK_ERR(fk_shutdown_task_done(r.sys, task, FK_OK), FK_E_TIMEOUT);
    CHECK_ERR(fk_shutdown_run(r.sys, FK_STR("again")), FK_E_STOPPING);
    rig_stop(&r);
}

/* ---- threads --------------------------------------------------------------------------------- */

static fk_err await_inside(fk_ctx *ctx, void *arg)
{
    fk_err outcome;
    *(fk_err *)arg = fk_shutdown_await(fk_system_of(ctx), 0, &outcome);
    return FK_OK;
}

TEST(shutdown_is_not_awaited_inside)
{
    fk_err err = FK_OK;
    start_with(0);
    rig_do(&r, doer_spawn(&r), await_inside, &err);
    CHECK_ERR(err, FK_E_STATE);
    CHECK_ERR(fk_shutdown_await(r.sys, 0, &err), FK_E_STATE); /* this thread drives it */
    rig_stop(&r);
}

static void *reporter_main(void *arg)
{
    fk_shutdown_task *task = arg;
    test_sleep_ms(5);
    CHECK_OK(fk_shutdown_task_done(r.sys, *task, FK_OK));
    return NULL;
}

static void threaded_task(fk_system *sys, fk_shutdown_task task, void *user)
{
    static fk_shutdown_task own[4];
    static _Atomic unsigned used;
    fk_shutdown_task *mine = &own[atomic_fetch_add(&used, 1) % 4];
    pthread_t *thread = user;
    (void)sys;
    *mine = task;
    CHECK(pthread_create(thread, NULL, reporter_main, mine) == 0);
}

TEST(shutdown_is_reported_and_awaited_by_other_threads)
{
    pthread_t threads[4];
    fk_err outcome = FK_E_UNSUPPORTED;
    servant s = { .answers = true };
    start_with(2);
    CHECK_ERR(fk_shutdown_await(r.sys, FK_MILLIS(5), &outcome), FK_E_TIMEOUT); /* not begun */
    for (int i = 0; i < 4; i++) {
        CHECK_OK(fk_shutdown_task_add(r.sys,
                                      i < 2 ? FK_STR("service-unbind") : FK_STR("service-stop"),
                                      FK_STR("thread"), threaded_task, &threads[i], NULL));
    }
    ask("service-stop", servant_spawn(&s));
    CHECK_OK(fk_shutdown_run(r.sys, FK_STR("threads")));
    CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
    CHECK_ERR(outcome, FK_OK);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK_OK(fk_shutdown_await(r.sys, 0, &outcome)); /* and again */
    CHECK(fk_shutdown_is_over(r.sys, NULL));
    rig_stop(&r);
}

static void *runner_main(void *arg)
{
    _Atomic unsigned *gate = arg;
    atomic_fetch_add(gate, 1);
    while (atomic_load(gate) < 4) {
    }
    fk_err err = fk_shutdown_run(r.sys, FK_STR("runner"));
    CHECK(err == FK_OK || err == FK_E_STOPPING);
    return NULL;
}

/* All make it, all run it: once. */
TEST(shutdown_is_run_by_several_threads_at_once)
{
    for (uint64_t i = test_scaled(50); i > 0; i--) {
        pthread_t threads[4];
        _Atomic unsigned gate = 0;
        fk_err outcome = FK_E_UNSUPPORTED;
        start_with(2);
        for (int k = 0; k < 4; k++) {
            CHECK(pthread_create(&threads[k], NULL, runner_main, &gate) == 0);
        }
        for (int k = 0; k < 4; k++) CHECK(pthread_join(threads[k], NULL) == 0);
        CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
        CHECK_ERR(outcome, FK_OK);
        rig_stop(&r);
    }
}

static void *waiter_main(void *arg)
{
    return fk_shutdown_await(r.sys, FK_SECONDS(60), arg) == FK_OK ? arg : NULL;
}

TEST(shutdown_wakes_those_who_wait_when_the_system_ends_without_a_run)
{
    pthread_t thread;
    void *result = NULL;
    fk_err outcome = FK_OK;
    fk_ref driver;
    start_with(2);
    CHECK_OK(fk_shutdown_phase_set(r.sys, &(fk_shutdown_phase){ .name = FK_STR("x") }));
    CHECK(pthread_create(&thread, NULL, waiter_main, &outcome) == 0);
    test_sleep_ms(10);
    CHECK_OK(fk_resolve(r.sys, FK_STR("fraktor://fraktor/system/shutdown"), &driver, NULL));
    CHECK_OK(fk_stop(r.sys, driver));
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == &outcome);
    CHECK_ERR(outcome, FK_E_STOPPING);
    rig_stop(&r);
}

TEST(shutdown_times_are_kept_by_the_clock_of_the_machine)
{
    fk_shutdown_task task = { 0 };
    fk_err outcome = FK_E_UNSUPPORTED;
    start_with(2);
    CHECK_OK(
        fk_shutdown_task_add(r.sys, FK_STR("service-stop"), FK_STR("x"), idle_task, &task, NULL));
    CHECK_OK(fk_shutdown_phase_set(
        r.sys, &(fk_shutdown_phase){ .name = FK_STR("service-stop"), .timeout = FK_MILLIS(30) }));
    int64_t begun = test_clock();
    CHECK_OK(fk_shutdown_run(r.sys, FK_STR("time")));
    CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
    CHECK(test_clock() - begun >= FK_MILLIS(30));
    CHECK_ERR(outcome, FK_OK);
    rig_stop(&r);
}

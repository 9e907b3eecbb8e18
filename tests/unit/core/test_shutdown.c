/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coordinated shutdown: tasks, time, outcome. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/rig.h"

enum { TASKS = 8, LOG_SIZE = 4096 };

typedef struct bench {
    rig r; /* first: what the callbacks get */
    fk_shutdown_task begun[TASKS];
    size_t begun_count;
    fk_err report; /* what quick tasks report */
    fk_err reported;
    char log[LOG_SIZE]; /* "phase/task:started ..." */
} bench;

static bench b;

static void on_event(void *user, const fk_event *event)
{
    bench *own = user;
    if (event->kind != FK_EVENT_SHUTDOWN) return;
    pthread_mutex_lock(&own->r.lock);
    size_t len = strlen(own->log);
    snprintf(own->log + len, LOG_SIZE - len, "%s%.*s:%s", len > 0 ? " " : "", (int)event->text.len,
             event->text.ptr, event->to);
    pthread_mutex_unlock(&own->r.lock);
    bool is_well = event->to[0] == 's' || event->to[0] == 'd';
    CHECK(event->level == (is_well ? FK_LEVEL_INFO : FK_LEVEL_WARN));
    CHECK(is_well || event->reason != NULL);
}

static void start_with(uint32_t workers)
{
    memset(&b, 0, sizeof(b));
    rig_start_with(&b.r, (fk_system_config){ .workers = workers, .on_event = on_event });
}

static void start(void)
{
    start_with(0);
}

/* Events since the last time. */
static void check_log(const char *expected)
{
    CHECK_STR(b.log, expected);
    b.log[0] = '\0';
}

/* Reports at once. */
static void quick(fk_system *sys, fk_shutdown_task task, void *user)
{
    bench *own = user;
    own->begun[own->begun_count++ % TASKS] = task;
    own->reported = fk_shutdown_task_done(sys, task, own->report);
}

/* Leaves that to the test. */
static void slow(fk_system *sys, fk_shutdown_task task, void *user)
{
    bench *own = user;
    (void)sys;
    own->begun[own->begun_count++ % TASKS] = task;
}

static fk_shutdown_task add(const char *phase, const char *name, fk_shutdown_fn fn)
{
    fk_shutdown_task task = { 0 };
    CHECK_OK(fk_shutdown_task_add(b.r.sys, fk_str_of(phase), fk_str_of(name), fn, &b, &task));
    CHECK(task.id != 0);
    return task;
}

static void set(const char *phase, fk_shutdown_phase how)
{
    how.name = fk_str_of(phase);
    CHECK_OK(fk_shutdown_phase_set(b.r.sys, &how));
}

static void run(void)
{
    CHECK_OK(fk_shutdown_run(b.r.sys, FK_STR("test")));
    rig_run(&b.r);
}

static void check_over(fk_err expected)
{
    fk_err outcome = FK_E_UNSUPPORTED;
    CHECK(fk_shutdown_is_over(b.r.sys, &outcome));
    CHECK_ERR(outcome, expected);
    CHECK_ERR(fk_shutdown_run(b.r.sys, FK_STR("again")), expected);
}

static void done(size_t index, fk_err err)
{
    CHECK_OK(fk_shutdown_task_done(b.r.sys, b.begun[index], err));
    rig_run(&b.r);
}

#define LAST                                                                                       \
    "actor-system-terminate:started actor-system-terminate/terminate:done "                        \
    "actor-system-terminate:done :done"

/* ---- the way it should be -------------------------------------------------------------------- */

TEST(shutdown_without_tasks_terminates_the_system)
{
    start();
    CHECK(!fk_shutdown_is_over(b.r.sys, NULL));
    run();
    check_log(":started " LAST);
    check_over(FK_OK);
    fk_ref ref;
    CHECK_ERR(fk_spawn(b.r.sys, FK_STR("x"), &(fk_props){ .receive = doer_receive }, &ref),
              FK_E_STOPPING);
    rig_stop(&b.r);
}

TEST(shutdown_runs_phases_in_order)
{
    start();
    add("service-stop", "c", quick);
    add("before-service-unbind", "a", quick);
    add("service-unbind", "b", quick);
    run();
    CHECK_OK(b.reported);
    check_log(
        ":started before-service-unbind:started before-service-unbind/a:done "
        "before-service-unbind:done service-unbind:started service-unbind/b:done "
        "service-unbind:done service-stop:started service-stop/c:done service-stop:done " LAST);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_begins_all_tasks_of_a_phase_before_it_waits)
{
    start();
    add("service-unbind", "a", slow);
    add("service-unbind", "b", slow);
    add("service-unbind", "b", slow); /* a name may be there twice */
    add("service-stop", "next", slow);
    run();
    CHECK_U64(b.begun_count, 3);
    check_log(":started service-unbind:started");
    done(2, FK_OK);
    done(0, FK_OK);
    CHECK_U64(b.begun_count, 3);
    done(1, FK_OK);
    CHECK_U64(b.begun_count, 4);
    check_log("service-unbind/b:done service-unbind/a:done service-unbind/b:done "
              "service-unbind:done service-stop:started");
    CHECK(!fk_shutdown_is_over(b.r.sys, NULL));
    done(3, FK_OK);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_uses_phases_of_ones_own)
{
    const fk_str after[] = { FK_STR("service-stop"), FK_STR("made-by-the-way") };
    start();
    set("metrics", (fk_shutdown_phase){ .depends_on = after, .depends_count = 2 });
    add("metrics", "flush", quick);
    add("made-by-the-way", "x", quick);
    add("service-stop", "y", quick);
    run();
    check_log(":started made-by-the-way:started made-by-the-way/x:done made-by-the-way:done "
              "service-stop:started service-stop/y:done service-stop:done metrics:started "
              "metrics/flush:done metrics:done " LAST);
    rig_stop(&b.r);
}

TEST(shutdown_from_a_phase)
{
    start();
    add("service-unbind", "a", quick);
    add("cluster-leave", "b", quick);
    CHECK_ERR(fk_shutdown_run_from(b.r.sys, FK_STR("x"), FK_STR("nowhere")), FK_E_NOT_FOUND);
    CHECK_U64(fk_shutdown_reason(b.r.sys, NULL, 0), 0);
    CHECK_OK(fk_shutdown_run_from(b.r.sys, FK_STR("x"), FK_STR("cluster-leave")));
    rig_run(&b.r);
    check_log(":started cluster-leave:started cluster-leave/b:done cluster-leave:done " LAST);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_runs_once_and_keeps_the_first_reason)
{
    char reason[128], small[4];
    start();
    add("service-unbind", "a", slow);
    CHECK_U64(fk_shutdown_reason(b.r.sys, reason, sizeof(reason)), 0);
    CHECK_STR(reason, "");
    CHECK_OK(fk_shutdown_run(b.r.sys, FK_STR("first\n")));
    CHECK_OK(fk_shutdown_run(b.r.sys, FK_STR("second")));
    CHECK_OK(fk_shutdown_run_from(b.r.sys, FK_STR("third"), FK_STR("service-stop")));
    rig_run(&b.r);
    CHECK_OK(fk_shutdown_run(b.r.sys, FK_STR("fourth")));
    CHECK_U64(fk_shutdown_reason(b.r.sys, reason, sizeof(reason)), 6);
    CHECK_STR(reason, "first?");
    CHECK_U64(fk_shutdown_reason(b.r.sys, small, sizeof(small)), 6);
    CHECK_STR(small, "fir");
    done(0, FK_OK);
    CHECK_U64(b.begun_count, 1);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_cuts_a_long_reason)
{
    char long_one[200], reason[200];
    memset(long_one, 'r', sizeof(long_one));
    start();
    CHECK_OK(fk_shutdown_run(b.r.sys, (fk_str){ long_one, sizeof(long_one) }));
    CHECK_U64(fk_shutdown_reason(b.r.sys, reason, sizeof(reason)), 95);
    CHECK_U64(strlen(reason), 95);
    rig_stop(&b.r);
}

/* ---- failures and time ----------------------------------------------------------------------- */

TEST(shutdown_goes_on_after_failures)
{
    start();
    b.report = FK_E_OS;
    add("service-unbind", "a", quick);
    add("service-unbind", "b", quick);
    run();
    check_log(":started service-unbind:started service-unbind/a:failed service-unbind/b:failed "
              "service-unbind:done " LAST);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_aborts_after_a_failure_when_the_phase_says_so)
{
    start();
    b.report = FK_E_OS;
    add("service-unbind", "a", quick);
    add("service-unbind", "b", slow);
    add("service-stop", "never", quick);
    set("service-unbind", (fk_shutdown_phase){ .aborts = true });
    run();
    check_log(":started service-unbind:started service-unbind/a:failed");
    done(1, FK_OK);
    check_log("service-unbind/b:done service-unbind:failed :failed");
    check_over(FK_E_OS);
    probe p; /* the system goes on */
    fk_ref ref = probe_spawn(&b.r, &p);
    CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(num, 1)));
    rig_run(&b.r);
    CHECK_U64(p.count, 1);
    CHECK_ERR(fk_shutdown_task_add(b.r.sys, FK_STR("service-stop"), FK_STR("x"), quick, &b, NULL),
              FK_E_STATE);
    rig_stop(&b.r);
}

TEST(shutdown_goes_on_when_the_time_of_a_phase_is_up)
{
    start();
    add("service-unbind", "a", slow);
    add("service-unbind", "b", slow);
    add("service-stop", "c", quick);
    set("service-unbind", (fk_shutdown_phase){ .timeout = FK_MILLIS(700) });
    run();
    done(1, FK_OK);
    rig_advance(&b.r, FK_MILLIS(699));
    check_log(":started service-unbind:started service-unbind/b:done");
    rig_advance(&b.r, FK_MILLIS(3));
    check_log("service-unbind/a:timeout service-unbind:timeout service-stop:started "
              "service-stop/c:done service-stop:done " LAST);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_gives_each_phase_its_own_time)
{
    start();
    add("service-unbind", "a", slow);
    add("cluster-exiting", "b", slow);
    run();
    rig_advance(&b.r, FK_SECONDS(4));
    done(0, FK_OK);
    rig_advance(&b.r, FK_SECONDS(9));
    check_log(":started service-unbind:started service-unbind/a:done service-unbind:done "
              "cluster-exiting:started");
    rig_advance(&b.r, FK_MILLIS(1002));
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_aborts_when_the_time_is_up_and_the_phase_says_so)
{
    start();
    add("service-unbind", "a", slow);
    set("service-unbind", (fk_shutdown_phase){ .aborts = true });
    run();
    rig_advance(&b.r, FK_MILLIS(5002));
    check_log(":started service-unbind:started service-unbind/a:timeout service-unbind:timeout "
              ":failed");
    check_over(FK_E_TIMEOUT);
    rig_stop(&b.r);
}

TEST(shutdown_skips_disabled_phases)
{
    start();
    add("service-unbind", "a", quick);
    add("actor-system-terminate", "b", quick);
    set("service-unbind", (fk_shutdown_phase){ .disabled = true });
    set("actor-system-terminate", (fk_shutdown_phase){ .disabled = true });
    run();
    check_log(":started service-unbind:skipped actor-system-terminate:skipped :done");
    CHECK_U64(b.begun_count, 0);
    check_over(FK_OK);
    probe p; /* nobody terminated it */
    probe_spawn(&b.r, &p);
    rig_stop(&b.r);
}

TEST(shutdown_counts_late_and_double_reports_not_at_all)
{
    start();
    add("service-unbind", "a", slow);
    add("service-stop", "b", slow);
    set("actor-system-terminate", (fk_shutdown_phase){ .disabled = true });
    run();
    rig_advance(&b.r, FK_MILLIS(5002));
    CHECK_U64(b.begun_count, 2);
    b.log[0] = '\0';
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, b.begun[0], FK_OK), FK_E_TIMEOUT);
    check_log("service-unbind/a:late");
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, b.begun[0], FK_OK), FK_E_STATE);
    rig_run(&b.r);
    CHECK(!fk_shutdown_is_over(b.r.sys, NULL)); /* it was not b that reported */
    CHECK_OK(fk_shutdown_task_done(b.r.sys, b.begun[1], FK_OK));
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, b.begun[1], FK_E_OS), FK_E_STATE);
    rig_run(&b.r);
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, b.begun[1], FK_E_OS), FK_E_STATE);
    check_log("service-stop/b:done service-stop:done actor-system-terminate:skipped :done");
    check_over(FK_OK);
    rig_stop(&b.r);
}

/* ---- adding and cancelling ------------------------------------------------------------------- */

TEST(shutdown_tasks_can_be_cancelled_before_they_begin)
{
    start();
    fk_shutdown_task a = add("service-unbind", "a", quick);
    fk_shutdown_task second = add("service-unbind", "a", slow);
    fk_shutdown_task later = add("service-stop", "c", quick);
    CHECK_OK(fk_shutdown_task_cancel(b.r.sys, a));
    CHECK_ERR(fk_shutdown_task_cancel(b.r.sys, a), FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, a, FK_OK), FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, second, FK_OK), FK_E_STATE); /* not begun */
    run();
    CHECK_U64(b.begun_count, 1);
    CHECK(b.begun[0].id == second.id);
    CHECK_ERR(fk_shutdown_task_cancel(b.r.sys, second), FK_E_STATE);
    CHECK_OK(fk_shutdown_task_cancel(b.r.sys, later)); /* the run has not come to it */
    done(0, FK_OK);
    CHECK_U64(b.begun_count, 1);
    check_over(FK_OK);
    rig_stop(&b.r);
}

TEST(shutdown_keeps_many_tasks)
{
    static fk_shutdown_task tasks[1000];
    start();
    for (size_t i = 0; i < 1000; i++) tasks[i] = add("service-unbind", "t", quick);
    for (size_t i = 0; i < 1000; i += 3) CHECK_OK(fk_shutdown_task_cancel(b.r.sys, tasks[i]));
    for (size_t i = 0; i < 1000; i++) {
        CHECK_ERR(fk_shutdown_task_done(b.r.sys, tasks[i], FK_OK),
                  i % 3 == 0 ? FK_E_NOT_FOUND : FK_E_STATE);
    }
    run();
    CHECK_U64(b.begun_count, 666);
    check_over(FK_OK);
    rig_stop(&b.r);
}

static void add_more(fk_system *sys, fk_shutdown_task task, void *user)
{
    bench *own = user;
    own->begun_count++;
    CHECK_ERR(fk_shutdown_task_add(sys, FK_STR("service-unbind"), FK_STR("x"), quick, own, NULL),
              FK_E_STATE);
    CHECK_ERR(
        fk_shutdown_task_add(sys, FK_STR("before-service-unbind"), FK_STR("x"), quick, own, NULL),
        FK_E_STATE);
    CHECK_OK(fk_shutdown_task_add(sys, FK_STR("service-stop"), FK_STR("x"), quick, own, NULL));
    CHECK_ERR(fk_shutdown_phase_set(sys, &(fk_shutdown_phase){ .name = FK_STR("new") }),
              FK_E_STATE);
    CHECK_OK(fk_shutdown_task_done(sys, task, FK_OK));
}

TEST(shutdown_takes_tasks_for_phases_to_come)
{
    start();
    add("service-unbind", "a", add_more);
    run();
    CHECK_U64(b.begun_count, 2);
    check_log(":started service-unbind:started service-unbind/a:done service-unbind:done "
              "service-stop:started service-stop/x:done service-stop:done " LAST);
    rig_stop(&b.r);
}

TEST(shutdown_refuses_what_makes_no_sense)
{
    const fk_str self[] = { FK_STR("service-stop") };
    const fk_shutdown_task none = { 0 }, invented = { 77 };
    start();
    CHECK_ERR(fk_shutdown_task_cancel(b.r.sys, none), FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_task_done(b.r.sys, none, FK_OK), FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_task_add(b.r.sys, FK_STR("nowhere"), FK_STR("x"), quick, &b, NULL),
              FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_task_add(b.r.sys, FK_STR("service-stop"), FK_STR(""), quick, &b, NULL),
              FK_E_NAME);
    CHECK_ERR(fk_shutdown_task_add(b.r.sys, FK_STR("service-stop"), FK_STR("a/b"), quick, &b, NULL),
              FK_E_NAME);
    CHECK_ERR(fk_shutdown_task_add(b.r.sys, FK_STR("service-stop"), FK_STR("x"), NULL, &b, NULL),
              FK_E_INVALID);
    CHECK_ERR(fk_shutdown_task_cancel(b.r.sys, invented), FK_E_NOT_FOUND);
    CHECK_ERR(fk_shutdown_phase_set(b.r.sys, &(fk_shutdown_phase){ .name = FK_STR("service-stop"),
                                                                   .depends_on = self,
                                                                   .depends_count = 1 }),
              FK_E_CYCLE);
    CHECK_ERR(fk_shutdown_phase_set(b.r.sys, &(fk_shutdown_phase){ 0 }), FK_E_NAME);
    CHECK_ERR(fk_shutdown_phase_set(b.r.sys, NULL), FK_E_INVALID);
    run();
    check_over(FK_OK);
    rig_stop(&b.r);
}

/* ---- what a system without it pays, and what it needs ---------------------------------------- */

TEST(shutdown_costs_nothing_unless_asked_for)
{
    fk_stats stats;
    start();
    uint64_t before = atomic_load(&b.r.allocations);
    CHECK(!fk_shutdown_is_over(b.r.sys, NULL));
    CHECK_U64(fk_shutdown_reason(b.r.sys, NULL, 0), 0);
    rig_run(&b.r);
    fk_stats_get(b.r.sys, &stats);
    CHECK_U64(stats.spawned, 0);
    CHECK_U64(stats.timers, 0);
    CHECK_U64(atomic_load(&b.r.allocations), before);
    rig_stop(&b.r);
}

TEST(shutdown_needs_no_memory_when_it_runs)
{
    unsetenv("FK_POOLS"); /* with those, the blocks that become free are at hand */
    start();
    probe p;
    fk_ref actor = probe_spawn(&b.r, &p);
    add("service-unbind", "a", quick);
    add("service-unbind", "b", slow);
    CHECK_OK(fk_shutdown_task_add_actor(b.r.sys, FK_STR("service-stop"), FK_STR("c"), actor,
                                        FK_MSG(num, 7), NULL));
    rig_run(&b.r);
    rig_fault(&b.r, 1, true);
    CHECK_OK(fk_shutdown_run(b.r.sys, FK_STR("no memory")));
    rig_run(&b.r);
    rig_advance(&b.r, FK_MILLIS(5002)); /* b */
    CHECK_U64(p.count, 1);
    CHECK_U64(p.n[0], 7);
    CHECK_OK(fk_stop(b.r.sys, actor));
    rig_run(&b.r);
    rig_pass(&b.r, FK_MILLIS(50));
    rig_fault(&b.r, 0, false);
    check_over(FK_OK);
    rig_stop(&b.r);
}

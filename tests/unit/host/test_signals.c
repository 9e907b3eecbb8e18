/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signals that run coordinated shutdown. The test's own process gets them; what ends a process is
 * tried in a child: tests/first_hour/24_shutdown.c. */

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/rig.h"

static volatile sig_atomic_t own_signals;

static void own_handler(int number)
{
    (void)number;
    own_signals++;
}

static void own_handler_install(void)
{
    struct sigaction action = { .sa_handler = own_handler };
    own_signals = 0;
    CHECK(sigaction(SIGTERM, &action, NULL) == 0);
    CHECK(sigaction(SIGINT, &action, NULL) == 0);
}

static void check_own(void)
{
    struct sigaction now;
    CHECK(sigaction(SIGTERM, NULL, &now) == 0);
    CHECK(now.sa_handler == own_handler);
    CHECK(sigaction(SIGINT, NULL, &now) == 0);
    CHECK(now.sa_handler == own_handler);
}

static void start(rig *r)
{
    rig_start_with(r, (fk_system_config){ .name = "test", .workers = 2 });
}

TEST(signals_are_left_alone_unless_asked_for)
{
    rig r;
    own_handler_install();
    start(&r);
    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK_U64(own_signals, 1);
    CHECK(!fk_shutdown_is_over(r.sys, NULL));
    CHECK_U64(fk_shutdown_reason(r.sys, NULL, 0), 0);
    rig_stop(&r);
}

TEST(signals_run_the_shutdown_and_the_handlers_come_back)
{
    for (int i = 0; i < 3; i++) {
        rig r;
        char reason[64], lines[2048];
        int fd[2];
        fk_err outcome = FK_E_UNSUPPORTED;
        size_t threads = test_thread_count();
        own_handler_install();
        CHECK(pipe(fd) == 0);
        start(&r);
        CHECK_OK(fk_host_shutdown_on_signal(r.sys, &(fk_signal_config){ .progress_fd = fd[1] }));
        CHECK_ERR(fk_host_shutdown_on_signal(r.sys, NULL), FK_E_STATE);
        CHECK(kill(getpid(), i % 2 == 0 ? SIGTERM : SIGINT) == 0);
        CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
        CHECK_ERR(outcome, FK_OK);
        fk_shutdown_reason(r.sys, reason, sizeof(reason));
        CHECK_STR(reason, i % 2 == 0 ? "signal SIGTERM" : "signal SIGINT");
        rig_stop(&r);
        check_own();
        CHECK_U64(own_signals, 0);
        ssize_t len = read(fd[0], lines, sizeof(lines) - 1);
        CHECK(len > 0);
        lines[len] = '\0';
        CHECK(strncmp(lines, "shutdown test: signal SIG", 25) == 0);
        CHECK(strstr(lines, "\nshutdown test: actor-system-terminate started\n") != NULL);
        CHECK(strstr(lines, "\nshutdown test: done\n") != NULL);
        close(fd[0]);
        close(fd[1]);
        for (int k = 0; k < 10000 && test_thread_count() > threads; k++) test_sleep_ms(1);
        CHECK(test_thread_count() <= threads + (i == 0)); /* sanitizers keep one of their own */
    }
}

TEST(signals_run_the_shutdown_of_every_system_that_asked)
{
    rig r[3];
    fk_err outcome = FK_E_UNSUPPORTED;
    own_handler_install();
    for (int i = 0; i < 3; i++) start(&r[i]);
    for (int i = 0; i < 2; i++) CHECK_OK(fk_host_shutdown_on_signal(r[i].sys, NULL));
    CHECK(kill(getpid(), SIGTERM) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(fk_shutdown_await(r[i].sys, FK_SECONDS(60), &outcome));
        CHECK_ERR(outcome, FK_OK);
    }
    CHECK_OK(fk_host_shutdown_on_signal(r[2].sys, NULL)); /* late, but not too late */
    CHECK_OK(fk_shutdown_await(r[2].sys, FK_SECONDS(60), &outcome));
    CHECK_ERR(outcome, FK_OK);
    for (int i = 0; i < 3; i++) rig_stop(&r[i]);
    check_own();
}

TEST(signals_come_through_though_the_program_blocks_them)
{
    rig r;
    sigset_t both, before;
    fk_err outcome = FK_E_UNSUPPORTED;
    sigemptyset(&both);
    sigaddset(&both, SIGTERM);
    sigaddset(&both, SIGINT);
    own_handler_install();
    CHECK(pthread_sigmask(SIG_BLOCK, &both, &before) == 0);
    start(&r);
    CHECK_OK(fk_host_shutdown_on_signal(r.sys, NULL));
    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
    rig_stop(&r);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

TEST(signals_that_were_ignored_stay_ignored)
{
    rig r;
    own_handler_install();
    CHECK(signal(SIGINT, SIG_IGN) != SIG_ERR);
    start(&r);
    CHECK_OK(fk_host_shutdown_on_signal(r.sys, NULL));
    CHECK(kill(getpid(), SIGINT) == 0);
    test_sleep_ms(10);
    CHECK_U64(fk_shutdown_reason(r.sys, NULL, 0), 0);
    rig_stop(&r);
    struct sigaction now;
    CHECK(sigaction(SIGINT, NULL, &now) == 0);
    CHECK(now.sa_handler == SIG_IGN);
}

static void failing(fk_system *sys, fk_shutdown_task task, void *user)
{
    (void)user;
    CHECK_OK(fk_shutdown_task_done(sys, task, FK_E_OS));
}

TEST(signals_terminate_a_system_whose_shutdown_is_aborted)
{
    rig r;
    fk_err outcome = FK_OK;
    fk_ref ref = FK_REF_NONE;
    own_handler_install();
    start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR("a"), &(fk_props){ .receive = doer_receive }, &ref));
    CHECK_OK(fk_shutdown_task_add(r.sys, FK_STR("service-stop"), FK_STR("x"), failing, NULL, NULL));
    CHECK_OK(fk_shutdown_phase_set(
        r.sys, &(fk_shutdown_phase){ .name = FK_STR("service-stop"), .aborts = true }));
    CHECK_OK(fk_host_shutdown_on_signal(r.sys, NULL));
    CHECK(kill(getpid(), SIGTERM) == 0);
    CHECK_OK(fk_shutdown_await(r.sys, FK_SECONDS(60), &outcome));
    CHECK_ERR(outcome, FK_E_OS);
    CHECK_OK(fk_await_stopped(r.sys, ref, FK_SECONDS(60)));
    rig_stop(&r);
}

TEST(signals_config_is_checked)
{
    rig r;
    own_handler_install();
    start(&r);
    CHECK_ERR(fk_host_shutdown_on_signal(r.sys, &(fk_signal_config){ .deadline = -1 }),
              FK_E_INVALID);
    CHECK_ERR(fk_host_shutdown_on_signal(r.sys, &(fk_signal_config){ .size = 1 }), FK_E_INVALID);
    CHECK_ERR(fk_host_shutdown_on_signal(NULL, NULL), FK_E_INVALID);
    check_own();
    rig_stop(&r);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Systems with threads: how many there are, pinned actors, waiting from outside. */

#include <pthread.h>
#include <signal.h>

#include "support/rig.h"

static void wait_threads(size_t expected)
{
    /* A joined thread leaves /proc a moment later. */
    int64_t deadline = test_clock() + FK_SECONDS(10);
    while (test_thread_count() != expected && test_clock() < deadline) test_sleep_ms(1);
    CHECK_U64(test_thread_count(), expected);
}

TEST(threads_are_as_many_as_workers)
{
    size_t before = test_thread_count();
    for (uint32_t workers = 1; workers <= 5; workers++) {
        rig r;
        rig_start_with(&r, (fk_system_config){ .workers = workers });
        wait_threads(before + workers);
        rig_stop(&r);
        wait_threads(before);
    }
}

static fk_ref pinned_spawn(rig *r)
{
    fk_ref ref = FK_REF_NONE;
    fk_props props = { .receive = doer_receive, .dispatcher = FK_DISPATCHER_PINNED };
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    return ref;
}

TEST(threads_of_pinned_actors_are_their_own_and_used_again)
{
    enum { PINNED = 5 };
    fk_ref ref[PINNED];
    size_t before = test_thread_count();
    rig r;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < PINNED; i++) ref[i] = pinned_spawn(&r);
        wait_threads(before + 2 + PINNED); /* not more in later rounds */
        for (int i = 0; i < PINNED; i++) {
            CHECK_OK(fk_stop(r.sys, ref[i]));
            CHECK_OK(fk_await_stopped(r.sys, ref[i], FK_SECONDS(10)));
        }
    }
    rig_stop(&r);
    wait_threads(before);
}

TEST(threads_that_could_not_be_made_use_up_nothing)
{
    rig r;
    fk_ref ref;
    fk_props props = { .receive = doer_receive, .dispatcher = FK_DISPATCHER_PINNED };
    rig_start_with(&r, (fk_system_config){ .workers = 1, .pools_malloc = true });
    pinned_spawn(&r); /* its props are known from now on */
    rig_fault(&r, 1, true);
    for (int i = 0; i < 3000; i++) CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &props, &ref), FK_E_NOMEM);
    rig_fault(&r, 0, false);
    for (int i = 0; i < 3; i++) pinned_spawn(&r);
    rig_stop(&r);
}

typedef struct where {
    pthread_t thread;
    _Atomic int count;
} where;

static fk_err note_thread(fk_ctx *ctx, void *arg)
{
    where *w = arg;
    (void)ctx;
    if (atomic_load(&w->count) == 0) w->thread = pthread_self();
    CHECK(pthread_equal(w->thread, pthread_self())); /* always the same */
    atomic_fetch_add(&w->count, 1);
    return FK_OK;
}

TEST(threads_pinned_actor_stays_on_its_thread)
{
    rig r;
    where w[3] = { { .count = 0 } };
    fk_ref ref[3];
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (int i = 0; i < 3; i++) ref[i] = pinned_spawn(&r);
    for (int j = 0; j < 200; j++) {
        for (int i = 0; i < 3; i++) {
            CHECK_OK(fk_send(r.sys, ref[i], FK_MSG(rig_call, note_thread, &w[i])));
        }
    }
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fk_poison(r.sys, ref[i]));
        CHECK_OK(fk_await_stopped(r.sys, ref[i], FK_SECONDS(10)));
        CHECK_U64(atomic_load(&w[i].count), 200);
        for (int j = 0; j < i; j++) CHECK(!pthread_equal(w[i].thread, w[j].thread));
        CHECK(!pthread_equal(w[i].thread, pthread_self()));
    }
    rig_stop(&r);
}

/* What has become of one that blocks its thread until it is let go, and a little longer. */
enum { UNBLOCKED, BLOCKED, LET_GO, ENDED };

static fk_err block_for_a_while(fk_ctx *ctx, void *arg)
{
    _Atomic unsigned *state = arg;
    (void)ctx;
    atomic_store(state, BLOCKED);
    while (atomic_load(state) != LET_GO) test_sleep_ms(1);
    test_sleep_ms(20);
    atomic_store(state, ENDED);
    return FK_OK;
}

TEST(threads_pinned_actor_that_blocks_stops_nobody_else)
{
    rig r;
    probe p;
    _Atomic unsigned block = UNBLOCKED;
    rig_start_with(&r, (fk_system_config){ .workers = 1 });
    fk_ref blocked = pinned_spawn(&r), other = probe_spawn(&r, &p);
    CHECK_OK(fk_send(r.sys, blocked, FK_MSG(rig_call, block_for_a_while, &block)));
    while (atomic_load(&block) != BLOCKED) test_sleep_ms(0);
    CHECK_OK(fk_send(r.sys, other, FK_MSG(num, 1)));
    CHECK_OK(fk_poison(r.sys, other));
    CHECK_OK(fk_await_stopped(r.sys, other, FK_SECONDS(10)));
    CHECK_U64(atomic_load(&block), BLOCKED);
    atomic_store(&block, LET_GO);
    rig_stop(&r);
    CHECK_U64(atomic_load(&block), ENDED); /* stop waited for it */
}

static fk_err stop_system(fk_ctx *ctx, void *arg)
{
    _Atomic int *err = arg;
    atomic_store(err, fk_system_stop(fk_system_of(ctx)));
    return FK_OK;
}

TEST(threads_system_stop_inside_receive_is_refused)
{
    rig r;
    _Atomic int err = FK_OK;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_send(r.sys, doer, FK_MSG(rig_call, stop_system, &err)));
    CHECK_OK(fk_poison(r.sys, doer));
    CHECK_OK(fk_await_stopped(r.sys, doer, FK_SECONDS(10)));
    CHECK_U64(atomic_load(&err), FK_E_STATE);
    rig_stop(&r);
}

TEST(threads_await_gives_up_and_comes_back)
{
    rig r;
    rig_start_with(&r, (fk_system_config){ .workers = 1 });
    fk_ref doer = doer_spawn(&r);
    CHECK_ERR(fk_await_stopped(r.sys, doer, 0), FK_E_TIMEOUT);
    int64_t began = test_clock();
    CHECK_ERR(fk_await_stopped(r.sys, doer, FK_MILLIS(30)), FK_E_TIMEOUT);
    CHECK(test_clock() - began >= FK_MILLIS(29));
    CHECK_OK(fk_stop(r.sys, doer));
    CHECK_OK(fk_await_stopped(r.sys, doer, FK_NEVER));
    CHECK(!fk_is_alive(r.sys, doer));
    CHECK_OK(fk_await_stopped(r.sys, doer, 0));
    rig_stop(&r);
}

TEST(threads_name_is_free_when_await_says_the_actor_is_gone)
{
    rig r;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (int i = 0; i < 500; i++) {
        fk_ref ref;
        CHECK_OK(fk_spawn(r.sys, FK_STR("phoenix"), &(fk_props){ .receive = doer_receive }, &ref));
        CHECK_OK(fk_stop(r.sys, ref));
        CHECK_OK(fk_await_stopped(r.sys, ref, FK_SECONDS(10)));
    }
    rig_stop(&r);
}

static fk_err check_mask(fk_ctx *ctx, void *arg)
{
    sigset_t mask;
    (void)ctx;
    CHECK_U64(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK(sigismember(&mask, SIGINT) == 1);
    CHECK(sigismember(&mask, SIGTERM) == 1);
    CHECK(sigismember(&mask, SIGUSR1) == 1);
    atomic_store((_Atomic int *)arg, 1);
    return FK_OK;
}

TEST(threads_leave_signals_to_the_program)
{
    rig r;
    sigset_t mask;
    _Atomic int done = 0;
    rig_start_with(&r, (fk_system_config){ .workers = 1 });
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_send(r.sys, doer, FK_MSG(rig_call, check_mask, &done)));
    CHECK_OK(fk_poison(r.sys, doer));
    CHECK_OK(fk_await_stopped(r.sys, doer, FK_SECONDS(10)));
    CHECK_U64(atomic_load(&done), 1);
    CHECK_U64(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    CHECK(sigismember(&mask, SIGINT) == 0); /* and this thread's are as they were */
    rig_stop(&r);
}

static fk_err count_down(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const num *left = FK_AS(num, msg);
    (void)state;
    if (left->n == 0) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(2), FK_MSG(num, left->n - 1));
}

TEST(threads_timers_fire_on_the_real_clock)
{
    rig r;
    fk_ref ref;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    int64_t began = test_clock();
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = count_down }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 20)));
    CHECK_OK(fk_await_stopped(r.sys, ref, FK_SECONDS(30)));
    CHECK(test_clock() - began >= FK_MILLIS(39)); /* never early */
    rig_stop(&r);
}

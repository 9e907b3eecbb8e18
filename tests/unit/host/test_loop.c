/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A system without threads of its own, in the caller's loop. */

#include <poll.h>
#include <pthread.h>

#include "support/rig.h"

static bool is_readable(rig *r)
{
    struct pollfd p = { fk_host_fd(r->sys), POLLIN, 0 };
    return poll(&p, 1, 0) == 1;
}

TEST(loop_makes_no_threads)
{
    rig r;
    probe p;
    size_t before = test_thread_count();
    rig_start(&r);
    fk_ref to = probe_spawn(&r, &p);
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_U64(test_thread_count(), before);
    rig_stop(&r);
}

TEST(loop_fd_is_readable_when_there_is_something_to_do)
{
    rig r;
    probe p;
    rig_start(&r);
    CHECK(fk_host_fd(r.sys) >= 0);
    rig_run(&r);
    CHECK(!is_readable(&r));
    CHECK_U64(fk_host_run_once(r.sys, 0), 0);
    fk_ref to = probe_spawn(&r, &p);
    CHECK(is_readable(&r)); /* the start hook */
    rig_run(&r);
    CHECK(!is_readable(&r));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
        CHECK(is_readable(&r));
        CHECK(fk_host_run_once(r.sys, 0) > 0);
        CHECK(!is_readable(&r));
    }
    CHECK_U64(p.count, 3);
    CHECK_OK(fk_stop(r.sys, to));
    CHECK(is_readable(&r));
    rig_run(&r);
    CHECK(p.stopped);
    rig_stop(&r);
}

static fk_err tell_self_forever(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)msg;
    ++*(uint64_t *)state;
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1));
}

TEST(loop_run_once_comes_back_from_work_without_end)
{
    rig r;
    uint64_t count = 0;
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""),
                      &(fk_props){ .receive = tell_self_forever, .state = &count }, &to));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
    for (int i = 0; i < 5; i++) {
        uint64_t before = count;
        CHECK(fk_host_run_once(r.sys, 0) > 0);
        CHECK(count > before);
        CHECK(is_readable(&r)); /* there is more */
    }
    rig_stop(&r); /* and it can be stopped all the same */
}

static fk_err start_timer(fk_ctx *ctx, void *arg)
{
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, *(fk_time *)arg, FK_MSG(num, 1));
}

TEST(loop_timeout_is_the_time_to_the_next_timer)
{
    rig r;
    fk_time delay = FK_MILLIS(100);
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_run(&r);
    CHECK_U64((uint64_t)fk_host_timeout_ms(r.sys), (uint64_t)-1);
    rig_do(&r, doer, start_timer, &delay);
    int ms = fk_host_timeout_ms(r.sys);
    CHECK(ms >= 100 && ms <= 102);
    rig_advance(&r, FK_MILLIS(60));
    ms = fk_host_timeout_ms(r.sys);
    CHECK(ms >= 40 && ms <= 42);
    atomic_fetch_add(&r.now, FK_MILLIS(50));
    CHECK_U64((uint64_t)fk_host_timeout_ms(r.sys), 0);
    rig_run(&r);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1); /* it fired */
    CHECK_U64((uint64_t)fk_host_timeout_ms(r.sys), (uint64_t)-1);
    rig_stop(&r);
}

TEST(loop_run_once_waits_for_a_timer_on_the_real_clock)
{
    rig r;
    fk_time delay = FK_MILLIS(20);
    rig_init(&r);
    r.is_real_time = true;
    CHECK_OK(rig_try_start(&r, &(fk_system_config){ .name = "test" }));
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, start_timer, &delay);
    int64_t began = test_clock();
    int64_t end = began + FK_SECONDS(10);
    while (r.letters.of[FK_REASON_UNHANDLED] == 0 && test_clock() < end) {
        fk_host_run_once(r.sys, FK_SECONDS(5));
    }
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1);
    CHECK(test_clock() - began >= FK_MILLIS(19));
    rig_stop(&r);
}

TEST(loop_run_once_gives_up_after_its_timeout)
{
    rig r;
    rig_start(&r);
    rig_run(&r);
    int64_t began = test_clock();
    CHECK_U64(fk_host_run_once(r.sys, FK_MILLIS(30)), 0);
    int64_t took = test_clock() - began;
    CHECK(took >= FK_MILLIS(29));
    CHECK(took < FK_SECONDS(5));
    rig_stop(&r);
}

typedef struct late {
    fk_system *sys;
    fk_ref to;
} late;

static void *send_later(void *arg)
{
    late *l = arg;
    test_sleep_ms(20);
    fk_send(l->sys, l->to, FK_MSG(num, 1));
    return NULL;
}

TEST(loop_run_once_wakes_up_for_a_message_of_another_thread)
{
    rig r;
    probe p;
    pthread_t thread;
    rig_start(&r);
    late l = { r.sys, probe_spawn(&r, &p) };
    rig_run(&r);
    CHECK_U64(pthread_create(&thread, NULL, send_later, &l), 0);
    int64_t began = test_clock();
    while (p.count == 0) fk_host_run_once(r.sys, FK_NEVER);
    CHECK(test_clock() - began < FK_SECONDS(10));
    pthread_join(thread, NULL);
    rig_stop(&r);
}

TEST(loop_cannot_pin)
{
    rig r;
    fk_ref ref;
    rig_start(&r);
    fk_props props = { .receive = doer_receive, .dispatcher = FK_DISPATCHER_PINNED };
    CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &props, &ref), FK_E_UNSUPPORTED);
    rig_stop(&r);
}

static fk_err stop_system(fk_ctx *ctx, void *arg)
{
    *(fk_err *)arg = fk_system_stop(fk_system_of(ctx));
    return FK_OK;
}

TEST(loop_system_stop_inside_receive_is_refused)
{
    rig r;
    fk_err err = FK_OK;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, stop_system, &err);
    CHECK_ERR(err, FK_E_STATE);
    CHECK(fk_is_alive(r.sys, doer));
    rig_stop(&r);
}

static fk_err stop_other(fk_ctx *ctx, void *arg)
{
    rig *other = arg;
    (void)ctx;
    rig_stop(other);
    return FK_OK;
}

TEST(loop_an_actor_may_stop_another_system)
{
    rig a, b;
    rig_start(&a);
    rig_start(&b);
    rig_do(&a, doer_spawn(&a), stop_other, &b);
    CHECK(b.sys == NULL);
    CHECK_U64(a.failures.count, 0);
    rig_stop(&a);
}

TEST(loop_two_systems_know_nothing_of_each_other)
{
    rig a, b;
    probe p, q;
    fk_stats stats;
    rig_start_with(&a, (fk_system_config){ .name = "one", .throughput = 1 });
    rig_start_with(&b, (fk_system_config){ .name = "two", .actors_max = 1 });
    fk_ref in_a = probe_spawn(&a, &p), in_b = probe_spawn(&b, &q), ref;
    for (int i = 0; i < 10; i++)
        CHECK_OK(fk_spawn(a.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
    CHECK_ERR(fk_spawn(b.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref),
              FK_E_LIMIT);
    CHECK_OK(fk_send(a.sys, in_a, FK_MSG(num, 1)));
    CHECK_OK(fk_send(b.sys, in_b, FK_MSG(num, 2)));
    rig_run(&a);
    CHECK_U64(p.count, 1);
    CHECK_U64(q.count, 0); /* only a was run */
    rig_stop(&a);
    rig_run(&b);
    CHECK_U64(q.count, 1);
    CHECK_U64(q.n[0], 2);
    fk_stats_get(b.sys, &stats);
    CHECK_U64(stats.spawned, 1);
    CHECK_U64(b.letters.count, 0);
    rig_stop(&b);
}

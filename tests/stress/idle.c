/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A system at rest uses no CPU: workers sleep, the sentinel goes to bed, timers are waited for. */

#include <stdio.h>
#include <sys/resource.h>

#include "support/rig.h"

/* Of one second. Room for a page fault and a slow machine, not for a loop: polling every
 * millisecond on four workers costs ten times this. */
#define CPU_MAX FK_MILLIS(5)

static int64_t cpu_time(void)
{
    struct rusage u;
    CHECK_U64((uint64_t)getrusage(RUSAGE_SELF, &u), 0);
    return FK_SECONDS(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           FK_MICROS(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static fk_err far_timer(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MINUTES(60), FK_MSG(num, 1));
}

static fk_err work(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (FK_AS(num, msg)->n == 0) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, FK_AS(num, msg)->n - 1));
}

static void rest(uint32_t workers, bool with_work)
{
    rig r;
    fk_ref ref[16];
    rig_start_with(&r, (fk_system_config){ .workers = workers });
    CHECK_OK(fk_send(r.sys, doer_spawn(&r), FK_MSG(rig_call, far_timer, NULL)));
    for (int i = 0; i < 16 && with_work; i++) {
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = work }, &ref[i]));
        CHECK_OK(fk_send(r.sys, ref[i], FK_MSG(num, test_scaled(20000))));
    }
    for (int i = 0; i < 16 && with_work; i++) { /* each stops when its last message was handled */
        CHECK_OK(fk_await_stopped(r.sys, ref[i], FK_SECONDS(60)));
    }
    test_sleep_ms(200); /* everybody finds that there is nothing to do */
    int64_t before = cpu_time();
    test_sleep_ms(1000);
    int64_t used = cpu_time() - before;
    printf("%u workers%s: %lld us of CPU in a second at rest\n", workers,
           with_work ? " after work" : "", (long long)used / 1000);
    CHECK(used < CPU_MAX * (test_is_sanitized() ? 20 : 1));
    rig_stop(&r);
}

TEST(idle_system_uses_no_cpu)
{
    rest(4, false);
}

TEST(idle_system_uses_no_cpu_after_work)
{
    rest(4, true);
}

TEST(idle_system_of_one_worker_uses_no_cpu)
{
    rest(1, true);
}

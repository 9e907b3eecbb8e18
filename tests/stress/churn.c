/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Actors come and go by the million while one of them sits in a single message. Nothing waits for
 * that one, so memory must stay where it is, however long it takes (FK_BLOCK_S seconds).
 */

#include <pthread.h>
#include <stdio.h>

#include "support/rig.h"

enum { BATCH = 500, PEAK_MAX = 64 << 20 };

typedef struct churn {
    rig r;
    unsigned block_ms;
    _Atomic bool over;
    _Atomic uint64_t made; /* by the mother alone */
    fk_ref mother;
} churn;

/* So many, for it to be worth while. */
static uint64_t least(void)
{
    return test_is_sanitized() ? 1000 : 20000;
}

static fk_err block(fk_ctx *ctx, void *arg)
{
    churn *c = arg;
    (void)ctx;
    test_sleep_ms(c->block_ms);
    /* However slow the machine is. */
    int64_t end = test_clock() + FK_SECONDS(60);
    while (atomic_load(&c->made) < least() && test_clock() < end) test_sleep_ms(10);
    atomic_store(&c->over, true);
    return FK_OK;
}

static fk_err die(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_stop_self(ctx);
    return FK_OK;
}

/* Makes a batch of children, each of which ends at its first message, and goes on until the time
 * is over. */
static fk_err mother(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    churn *c = *(churn **)state;
    (void)msg;
    for (int i = 0; i < BATCH; i++) {
        fk_ref child;
        fk_props props = { .receive = die, .state_size = 40 };
        CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &child));
        CHECK_OK(fk_tell(ctx, child, FK_MSG(num, 1)));
    }
    atomic_fetch_add(&c->made, BATCH);
    if (atomic_load(&c->over))
        fk_stop_self(ctx);
    else
        CHECK_OK(fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1)));
    return FK_OK;
}

/* The same from outside: named, bounded now and then, stopped and waited for. */
static void *outside(void *arg)
{
    churn *c = arg;
    uint64_t made = 0;
    while (!atomic_load(&c->over)) {
        fk_ref ref[64];
        for (int i = 0; i < 64; i++) {
            fk_props props = { .receive = die };
            if (i % 8 == 0) {
                props.mailbox = FK_MAILBOX_BOUNDED;
                props.capacity = 4;
            }
            CHECK_OK(fk_spawn(c->r.sys, FK_STR(""), &props, &ref[i]));
        }
        for (int i = 0; i < 64; i++) CHECK_OK(fk_stop(c->r.sys, ref[i]));
        for (int i = 0; i < 64; i++) {
            CHECK_OK(fk_await_stopped(c->r.sys, ref[i], FK_SECONDS(60)));
        }
        made += 64;
    }
    return (void *)(uintptr_t)made;
}

TEST(churn_beside_a_blocked_actor_keeps_memory_bounded)
{
    static churn c;
    pthread_t thread;
    void *from_outside;
    uint64_t seconds = test_env("FK_BLOCK_S", 2);
    c.block_ms = (unsigned)((seconds <= 60 ? seconds : 60) * 1000);
    rig_start_with(&c.r, (fk_system_config){ .workers = 2 });
    fk_ref blocked = doer_spawn(&c.r);
    CHECK_OK(fk_send(c.r.sys, blocked, FK_MSG(rig_call, block, &c)));
    churn *self = &c;
    fk_props props = { .receive = mother, .state_size = sizeof(self), .init = &self };
    CHECK_OK(fk_spawn(c.r.sys, FK_STR("mother"), &props, &c.mother));
    CHECK_OK(fk_send(c.r.sys, c.mother, FK_MSG(num, 1)));
    CHECK_U64(pthread_create(&thread, NULL, outside, &c), 0);
    CHECK_OK(fk_await_stopped(c.r.sys, c.mother, FK_SECONDS(120)));
    pthread_join(thread, &from_outside);
    uint64_t peak = atomic_load(&c.r.bytes_peak),
             made = atomic_load(&c.made) + (uintptr_t)from_outside;
    printf("%llu actors made and gone beside one that blocked for %u ms: peak %llu kB\n",
           (unsigned long long)made, c.block_ms, (unsigned long long)peak / 1024);
    CHECK(made >= least());
    CHECK(peak < PEAK_MAX);
    fk_stats stats;
    fk_stats_get(c.r.sys, &stats);
    CHECK_U64(stats.actors, 1); /* the one that was blocked */
    CHECK_U64(stats.spawned, made + 2);
    rig_stop(&c.r);
}

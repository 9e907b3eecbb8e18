/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stopping while others are busy: outside threads send, actors spawn, paths are asked for. */

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "support/rig.h"

enum { SENDERS = 4, TARGETS = 64 };

typedef struct rush {
    rig r;
    fk_ref target[TARGETS];
    _Atomic uint64_t sent, handled, dropped;
    _Atomic bool enough;
    _Atomic int senders;
} rush;

static void rush_drop(void *message)
{
    rush *u = *(rush **)message;
    atomic_fetch_add(&u->dropped, 1);
}

static const fk_type fk_type_rush = { "rush", sizeof(rush *), _Alignof(rush *), rush_drop };

static fk_err take_it(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    rush *u = *(rush **)state;
    (void)ctx;
    (void)msg;
    atomic_fetch_add(&u->handled, 1);
    return FK_OK;
}

static void *send_until_enough(void *arg)
{
    rush *u = arg;
    test_random random = { (uint64_t)(uintptr_t)&random };
    while (!atomic_load(&u->enough)) {
        fk_ref to = u->target[test_random_below(&random, TARGETS)];
        atomic_fetch_add(&u->sent, 1);
        fk_err err = fk_send(u->r.sys, to, (fk_out){ &fk_type_rush, &u });
        CHECK(err == FK_OK || err == FK_E_FULL);
        fk_is_alive(u->r.sys, to);
    }
    atomic_fetch_sub(&u->senders, 1);
    return NULL;
}

/* The last actor to go waits for the senders: until then the system is stopping, and they send to
 * actors that are stopping or gone. */
static void wait_for_senders(fk_ctx *ctx, void *state)
{
    rush *u = *(rush **)state;
    (void)ctx;
    uint64_t target = atomic_load(&u->sent) + test_scaled(100000);
    while (atomic_load(&u->sent) < target) sched_yield();
    atomic_store(&u->enough, true);
    while (atomic_load(&u->senders) > 0) sched_yield();
}

static void rush_once(uint32_t workers)
{
    static rush u;
    pthread_t thread[SENDERS];
    rush *self = &u;
    fk_ref last;
    memset(&u, 0, sizeof(u));
    rig_start_with(&u.r, (fk_system_config){ .workers = workers });
    fk_props props = { .receive = take_it, .state_size = sizeof(self), .init = &self };
    for (int i = 0; i < TARGETS; i++) {
        props.mailbox = i % 4 == 0 ? FK_MAILBOX_BOUNDED : FK_MAILBOX_UNBOUNDED;
        props.capacity = 10;
        props.overflow = i % 8 == 0 ? FK_OVERFLOW_FAIL : FK_OVERFLOW_BLOCK;
        CHECK_OK(fk_spawn(u.r.sys, FK_STR(""), &props, &u.target[i]));
    }
    props.mailbox = FK_MAILBOX_UNBOUNDED;
    props.stop = wait_for_senders;
    props.dispatcher = FK_DISPATCHER_PINNED;
    CHECK_OK(fk_spawn(u.r.sys, FK_STR("last"), &props, &last));
    atomic_store(&u.senders, SENDERS);
    for (int i = 0; i < SENDERS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, send_until_enough, &u), 0);
    }
    while (atomic_load(&u.handled) < 1000) sched_yield();
    rig_stop(&u.r); /* with all of them sending */
    for (int i = 0; i < SENDERS; i++) pthread_join(thread[i], NULL);
    CHECK_U64(atomic_load(&u.dropped), atomic_load(&u.sent));
    CHECK_U64(atomic_load(&u.handled) + u.r.letters.count, atomic_load(&u.sent));
}

TEST(stopping_system_under_fire_loses_no_count)
{
    for (uint32_t workers = 1; workers <= 3; workers++) rush_once(workers);
}

/* ---- spawning at the top while the guardian closes --------------------------------------- */

static fk_err spawn_on(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    _Atomic uint64_t *made = *(_Atomic uint64_t **)state;
    fk_ref ref;
    (void)msg;
    fk_props props = { .receive = spawn_on, .state_size = sizeof(made), .init = &made };
    fk_err err = fk_spawn(fk_system_of(ctx), FK_STR(""), &props, &ref);
    CHECK(err == FK_OK || err == FK_E_STOPPING);
    if (err == FK_OK) atomic_fetch_add(made, 1);
    if (err == FK_OK) CHECK_OK(fk_tell(ctx, ref, FK_MSG(num, 1)));
    if (atomic_load(made) % 50 != 0)
        fk_stop_self(ctx);
    else if (err == FK_OK)
        CHECK_OK(fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1)));
    return FK_OK;
}

/* Now and then a thread loses its core right after it let go of a lock. */
static void slow_unlock(void *ctx, fk_lock *lock)
{
    static _Atomic uint32_t count;
    rig *r = ctx;
    r->host.unlock(r->host.ctx, lock);
    if (atomic_fetch_add(&count, 1) % 23 == 0) test_sleep_ms(1);
}

TEST(stopping_system_finds_every_actor_that_is_being_made)
{
    uint64_t rounds = test_scaled(200);
    for (uint64_t i = 0; i < rounds; i++) {
        rig r;
        fk_ref ref;
        _Atomic uint64_t made = 0, *counter = &made;
        rig_init(&r);
        r.port.unlock = slow_unlock;
        CHECK_OK(rig_try_start(&r, &(fk_system_config){ .workers = 3 }));
        fk_props props = { .receive = spawn_on, .state_size = sizeof(counter), .init = &counter };
        for (int j = 0; j < 3; j++) {
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
            CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
        }
        while (atomic_load(&made) < 20 + i % 50) sched_yield();
        rig_stop(&r); /* hangs when one is overlooked */
    }
}

/* ---- asking for paths of actors that come and go ----------------------------------------- */

typedef struct paths {
    fk_system *sys;
    _Atomic uint64_t ref; /* slot | generation << 32 */
    _Atomic uint32_t system;
    _Atomic bool over;
} paths;

static void *ask_paths(void *arg)
{
    paths *p = arg;
    char path[64];
    while (!atomic_load(&p->over)) {
        uint64_t both = atomic_load(&p->ref);
        fk_ref ref = { (uint32_t)both, (uint32_t)(both >> 32), atomic_load(&p->system) };
        size_t len = fk_path_of(p->sys, ref, path, sizeof(path));
        if (len == 0)
            CHECK_STR(path, "");
        else
            CHECK(strncmp(path, "fraktor://fraktor/user/named-", 29) == 0 && len == strlen(path));
    }
    return NULL;
}

TEST(stopping_actors_have_a_path_or_none)
{
    rig r;
    paths p;
    pthread_t thread[2];
    char name[32];
    memset(&p, 0, sizeof(p));
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    p.sys = r.sys;
    for (int i = 0; i < 2; i++) CHECK_U64(pthread_create(&thread[i], NULL, ask_paths, &p), 0);
    uint64_t count = test_scaled(100000);
    for (uint64_t i = 0; i < count; i++) {
        fk_ref ref;
        int len = snprintf(name, sizeof(name), "named-%llu", (unsigned long long)i);
        CHECK_OK(fk_spawn(r.sys, (fk_str){ name, (size_t)len },
                          &(fk_props){ .receive = doer_receive }, &ref));
        atomic_store(&p.system, ref.system);
        atomic_store(&p.ref, ref.slot | (uint64_t)ref.generation << 32);
        CHECK_OK(fk_stop(r.sys, ref));
    }
    atomic_store(&p.over, true);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    rig_stop(&r);
}

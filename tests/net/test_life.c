/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The thread that does all of it: wakes, sleep, timers, actors; and failing allocations. */

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/send.h"
#include "net/fake_driver.h"
#include "support/rig.h"

enum { MODES = 3 };
static const uint32_t WORKERS[MODES] = { 0, 1, 3 };

/* ---- waking -------------------------------------------------------------------------------------- */

enum { WAKERS = 4 };

static _Atomic size_t pushed, taken;

static void take_all(fake *f, fk_time now)
{
    (void)f;
    (void)now;
    atomic_store(&taken, atomic_load(&pushed));
}

static void *push_many(void *arg)
{
    fake *f = arg;
    size_t n = test_scaled(20000);
    for (size_t i = 0; i < n; i++) {
        atomic_fetch_add(&pushed, 1);
        f->transport->wake(f->transport->ctx);
        if (i % 1000 == 0) test_sleep_ms(1); /* it falls asleep now and then */
    }
    return NULL;
}

TEST(net_wakes_of_many_threads_are_not_lost)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        pthread_t thread[WAKERS];
        fake *f = fake_reset();
        f->on_run = take_all;
        atomic_store(&pushed, 0);
        atomic_store(&taken, 0);
        world_start(&w, WORKERS[mode]);
        for (int i = 0; i < WAKERS; i++) {
            CHECK(pthread_create(&thread[i], NULL, push_many, f) == 0);
        }
        size_t total = WAKERS * test_scaled(20000);
        WORLD_UNTIL(&w, atomic_load(&taken) == total);
        for (int i = 0; i < WAKERS; i++) pthread_join(thread[i], NULL);
        world_stop(&w);
    }
}

/* One at a time, at moments that hit the thread on all stages of its way to sleep. */
TEST(net_wake_while_falling_asleep_is_not_lost)
{
    world w;
    test_random random = { 7 };
    fake *f = fake_reset();
    f->on_run = take_all;
    atomic_store(&pushed, 0);
    atomic_store(&taken, 0);
    world_start(&w, 1);
    size_t n = test_scaled(20000);
    for (size_t i = 1; i <= n; i++) {
        atomic_store(&pushed, i);
        f->transport->wake(f->transport->ctx);
        int64_t end = test_clock() + FK_SECONDS(20);
        while (atomic_load(&taken) != i && test_clock() < end) sched_yield();
        CHECK_U64(atomic_load(&taken), i);
        for (uint64_t spins = test_random_below(&random, 300); spins > 0; spins--) fk__cpu_relax();
    }
    world_stop(&w);
}

static void wake_itself(fake *f, fk_time now)
{
    (void)now;
    if (atomic_load(&f->runs) < 100) f->transport->wake(f->transport->ctx);
}

TEST(net_wake_from_its_own_thread_is_not_lost)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_run = wake_itself;
        world_start(&w, WORKERS[mode]);
        WORLD_UNTIL(&w, atomic_load(&f->runs) > 100);
        world_stop(&w);
    }
}

/* ---- sleeping ------------------------------------------------------------------------------------ */

static unsigned long switches(pid_t tid)
{
    char path[64], line[128];
    unsigned long count = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)tid);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
            count = strtoul(line + 24, NULL, 10);
    }
    fclose(file);
    return count;
}

TEST(net_idle_does_nothing)
{
    world w;
    fake *f = fake_reset();
    world_start(&w, 2);
    int fd = peer_connect(world_port(&w)); /* an open connection is no reason to wake up */
    WORLD_UNTIL(&w, atomic_load(&f->accepted) == 1);
    world_pass_ms(&w, 100);
    size_t runs = atomic_load(&f->runs);
    unsigned long before = switches(f->tid);
    world_pass_ms(&w, 500);
    CHECK_U64(atomic_load(&f->runs), runs);
    CHECK(switches(f->tid) <= before + 1);
    close(fd);
    world_stop(&w);
}

TEST(net_idle_descriptor_is_not_readable)
{
    world w;
    fake *f = fake_reset();
    world_start(&w, 0);
    struct pollfd p = { fk_host_fd(w.sys), POLLIN, 0 };
    CHECK(poll(&p, 1, 1000) == 1); /* nothing has run yet */
    fk_host_run_once(w.sys, 0);
    fk_host_run_once(w.sys, 0);
    CHECK(poll(&p, 1, 0) == 0);
    CHECK(fk_host_timeout_ms(w.sys) == -1);
    f->transport->wake(f->transport->ctx);
    CHECK(poll(&p, 1, 0) == 1);
    f->transport->wake(f->transport->ctx);
    fk_host_run_once(w.sys, 0);
    CHECK(poll(&p, 1, 0) == 0);
    int fd = peer_connect(world_port(&w));
    CHECK(poll(&p, 1, 1000) == 1);
    fk_host_run_once(w.sys, 0);
    CHECK_U64(atomic_load(&f->accepted), 1);
    CHECK(poll(&p, 1, 0) == 0);
    peer_send(&w, fd, 0, 10);
    CHECK(poll(&p, 1, 1000) == 1);
    fk_host_run_once(w.sys, 0);
    CHECK_U64(atomic_load(&f->bytes), 10);
    close(fd);
    CHECK(poll(&p, 1, 1000) == 1);
    fk_host_run_once(w.sys, 0);
    CHECK_U64(atomic_load(&f->closed), 1);
    CHECK(poll(&p, 1, 0) == 0);
    atomic_store(&f->next, w.sys->mem.port.now(NULL) + FK_MILLIS(50));
    f->transport->wake(f->transport->ctx);
    fk_host_run_once(w.sys, 0);
    int ms = fk_host_timeout_ms(w.sys);
    CHECK(ms > 20 && ms <= 51);
    atomic_store(&f->next, FK_NEVER);
    world_stop(&w);
}

static void every_20_ms(fake *f, fk_time now)
{
    atomic_store(&f->next, now + FK_MILLIS(20));
}

TEST(net_driver_runs_when_it_wants)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_run = every_20_ms;
        world_start(&w, WORKERS[mode]);
        WORLD_UNTIL(&w, atomic_load(&f->runs) > 0);
        size_t before = atomic_load(&f->runs);
        world_pass_ms(&w, 400);
        size_t runs = atomic_load(&f->runs) - before;
        CHECK(runs >= 5 && runs <= 22);
        world_stop(&w);
    }
}

/* ---- actors --------------------------------------------------------------------------------------- */

typedef struct counter {
    _Atomic uint64_t count;
    _Atomic bool blocks, is_blocking, is_free;
} counter;

static counter fast, slow;

static fk_err count_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    counter *c = *(counter **)state;
    (void)ctx;
    (void)msg;
    if (atomic_load(&c->blocks)) {
        atomic_store(&c->is_blocking, true);
        while (!atomic_load(&c->is_free)) test_sleep_ms(1);
    }
    atomic_fetch_add(&c->count, 1);
    return FK_OK;
}

static fk_ref actors[2];

static fk_ref counter_spawn(world *w, counter *c)
{
    fk_ref ref;
    fk_props props = { .receive = count_receive, .state_size = sizeof(c), .init = &c };
    memset(c, 0, sizeof(*c));
    CHECK_OK(fk_spawn(w->sys, FK_STR(""), &props, &ref));
    return ref;
}

/* One message for each byte: to the second actor, and before the first of these one to the first. */
static void deliver(fake *f, fake_conn *c, fk_str bytes)
{
    fk_local *local = &f->worker->local;
    if (c->received == bytes.len) {
        CHECK_OK(fk__send(local, actors[0], FK_REF_NONE, FK_MSG(num, 1), NULL));
    }
    for (size_t i = 0; i < bytes.len; i++) {
        CHECK_OK(fk__send(local, actors[1], FK_REF_NONE, FK_MSG(num, i), NULL));
    }
}

TEST(net_delivers_to_actors)
{
    for (int mode = 0; mode < MODES; mode++) {
        world w;
        fake *f = fake_reset();
        f->on_read = deliver;
        world_start(&w, WORKERS[mode]);
        actors[0] = counter_spawn(&w, &slow);
        actors[1] = counter_spawn(&w, &fast);
        int fd = peer_connect(world_port(&w));
        size_t at = 0;
        for (int i = 0; i < 50; i++) { /* one by one: it sleeps in between */
            peer_send(&w, fd, at, 1);
            at++;
            WORLD_UNTIL(&w, atomic_load(&fast.count) == at);
        }
        peer_send(&w, fd, at, 50000);
        at += 50000;
        WORLD_UNTIL(&w, atomic_load(&fast.count) == at);
        CHECK_U64(atomic_load(&slow.count), 1);
        close(fd);
        world_stop(&w);
    }
}

/* What came in behind a message that takes long is done by another worker. */
TEST(net_delivery_does_not_wait_for_a_slow_actor)
{
    for (int round = 0; round < 20; round++) {
        world w;
        fake *f = fake_reset();
        f->on_read = deliver;
        world_start(&w, 2);
        actors[0] = counter_spawn(&w, &slow);
        actors[1] = counter_spawn(&w, &fast);
        atomic_store(&slow.blocks, true);
        int fd = peer_connect(world_port(&w));
        if (round % 2 == 0) world_pass_ms(&w, 5);
        peer_send(&w, fd, 0, 5);
        WORLD_UNTIL(&w, atomic_load(&slow.is_blocking));
        WORLD_UNTIL(&w, atomic_load(&fast.count) == 5);
        atomic_store(&slow.is_free, true);
        close(fd);
        world_stop(&w);
    }
}

static fk_err spin_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1));
}

TEST(net_is_attended_while_actors_never_rest)
{
    for (int mode = 0; mode < 2; mode++) {
        world w;
        fk_ref ref;
        fake *f = fake_reset();
        world_start(&w, WORKERS[mode]);
        CHECK_OK(fk_spawn(w.sys, FK_STR(""), &(fk_props){ .receive = spin_receive }, &ref));
        CHECK_OK(fk_send(w.sys, ref, FK_MSG(num, 1)));
        int fd = peer_connect(world_port(&w));
        peer_send(&w, fd, 0, 3000000);
        WORLD_UNTIL(&w, atomic_load(&f->bytes) == 3000000);
        close(fd);
        WORLD_UNTIL(&w, atomic_load(&f->closed) == 1);
        world_stop(&w);
    }
}

/* ---- memory ---------------------------------------------------------------------------------------- */

static uint16_t target;

static void try_connect(fake *f, void *arg)
{
    (void)arg;
    fk_err err = fake_connect(f, 1, "127.0.0.1", target);
    CHECK(err == FK_OK || err == FK_E_NOMEM);
}

TEST(net_survives_every_failing_allocation)
{
    static const fk_system_config CONFIG = { .remoting = { .enabled = true, .host = "127.0.0.1" } };
    int listener = peer_listen(5, &target);
    size_t fds = world_fds();
    bool is_through = false;
    uint64_t at = 0;
    for (at = 1; !is_through && at < 1000; at++) {
        rig r;
        fake *f = fake_reset();
        rig_init(&r);
        r.is_real_time = true;
        rig_fault(&r, at, false);
        fk_err err = rig_try_start(&r, &CONFIG);
        CHECK(err == FK_OK || err == FK_E_NOMEM || err == FK_E_NOT_BOOTSTRAPPED);
        if (err == FK_OK) {
            world w = { .sys = r.sys, .is_driven = true };
            int fd = peer_connect(fk_remoting_port(r.sys));
            world_do(&w, try_connect, NULL);
            /* Let in, or not: it is closed then. */
            WORLD_UNTIL(&w, atomic_load(&f->accepted) == 1 || peer_read(fd, 0) != -1);
            is_through = atomic_load(&r.refused) == 0;
            close(fd);
            rig_stop(&r);
        } else {
            rig_check_empty(&r);
        }
        int extra = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (extra >= 0) close(extra);
        CHECK_U64(world_fds(), fds);
    }
    CHECK(is_through);
    CHECK(at > 10);
    close(listener);
}

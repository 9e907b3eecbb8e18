/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A worker whose thread sends between two runs, as the one that does the network does: what counts
 * as parked, and who watches. */

#include "core/send.h"
#include "core/system.h"
#include "support/rig.h"

/* Nobody sleeps here: the test runs each worker itself. */
static void no_wake(void *ctx, uint32_t worker)
{
    (void)worker;
    ++*(size_t *)ctx;
}

typedef struct pair {
    rig r;
    size_t wakes;
    fk_worker *first, *second;
} pair;

static void pair_start(pair *p)
{
    rig_init(&p->r);
    fk_port port = p->r.port;
    CHECK_OK(fk__system_create(&(fk_system_config){ .workers = 2 }, &port, 2, &p->r.sys));
    p->wakes = 0;
    p->r.sys->host.wake = no_wake;
    p->r.sys->host.ctx = &p->wakes;
    p->first = p->r.sys->dispatch.worker[0];
    p->second = p->r.sys->dispatch.worker[1];
}

static void pair_run(pair *p)
{
    for (int i = 0; i < 10; i++) {
        CHECK(fk__worker_run(p->first, 100) > 0);
        CHECK(fk__worker_run(p->second, 100) > 0);
    }
}

static void pair_stop(pair *p)
{
    CHECK_OK(fk_terminate(p->r.sys));
    pair_run(p);
    CHECK(fk__system_is_down(p->r.sys));
    fk__system_destroy(p->r.sys);
    rig_check_empty(&p->r);
}

static uint32_t idle(const pair *p)
{
    return fk__half_load(&p->r.sys->dispatch.idle, FK_RELAXED);
}

TEST(rouse_takes_a_parked_worker_out_of_the_count)
{
    pair p;
    pair_start(&p);
    pair_run(&p);
    CHECK_U64(idle(&p), 2); /* all parked: nobody watches */
    fk__worker_rouse(p.first);
    CHECK_U64(idle(&p), 1);
    fk__worker_rouse(p.first);
    CHECK_U64(idle(&p), 1);
    CHECK(fk__worker_run(p.first, 100) > 0);
    pair_run(&p);
    CHECK_U64(idle(&p), 2);
    pair_stop(&p);
}

/* Behind a single message nothing waits; behind the first of two the second does. */
TEST(rouse_a_single_message_calls_nobody_to_watch)
{
    pair p;
    probe seen[2] = { { .count = 0 }, { .count = 0 } };
    fk_ref to[2];
    pair_start(&p);
    for (int i = 0; i < 2; i++) {
        fk_props props = probe_props(&seen[i]);
        CHECK_OK(fk_spawn(p.r.sys, FK_STR(""), &props, &to[i]));
    }
    pair_run(&p);
    fk__worker_rouse(p.first);
    p.wakes = 0;
    CHECK_OK(fk__send(&p.first->local, to[0], FK_REF_NONE, FK_MSG(num, 1), NULL));
    CHECK_OK(fk__send(&p.first->local, to[0], FK_REF_NONE, FK_MSG(num, 2), NULL));
    CHECK_U64(p.wakes, 0);
    CHECK_OK(fk__send(&p.first->local, to[1], FK_REF_NONE, FK_MSG(num, 3), NULL));
    CHECK_U64(p.wakes, 1);
    CHECK(fk__worker_run(p.first, 100) > 0);
    CHECK_U64(seen[0].count, 2);
    CHECK_U64(seen[1].count, 1);
    pair_stop(&p);
}

TEST(rouse_takes_the_mark_from_the_sentinel)
{
    pair p;
    probe seen;
    fk_ref to;
    pair_start(&p);
    pair_run(&p);
    fk_props props = probe_props(&seen);
    seen = (probe){ .count = 0 };
    CHECK_OK(fk_spawn(p.r.sys, FK_STR("seen"), &props, &to));
    pair_run(&p);
    fk__worker_rouse(p.second); /* awake, so that the first one has somebody to watch */
    CHECK(fk__worker_run(p.first, 100) > 0);
    CHECK(p.first->is_sentinel);
    CHECK_U64(idle(&p), FK_IDLE_SENTINEL | 1);
    fk__worker_rouse(p.first);
    CHECK(!p.first->is_sentinel);
    CHECK_U64(idle(&p), 0);
    /* Whoever watches next can take the mark while this one is busy. */
    CHECK_OK(fk__send(&p.first->local, to, FK_REF_NONE, FK_MSG(num, 7), NULL));
    CHECK(fk__worker_run(p.second, 100) > 0);
    CHECK(p.second->is_sentinel);
    CHECK(fk__worker_run(p.first, 100) > 0);
    CHECK_U64(seen.count, 1);
    CHECK(!p.first->is_sentinel);
    pair_stop(&p);
}

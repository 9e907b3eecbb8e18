/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pools: routees that a router makes, supervises and loses. */

#include <string.h>

#include "support/crew.h"

typedef struct pool {
    rig r;
    crew c;
    fk_ref router;
    fk_ref list[CREW_MAX];
} pool;

static void pool_start(pool *p, uint32_t routees, fk_strategy strategy)
{
    crew_worker init;
    *p = (pool){ 0 };
    rig_start(&p->r);
    fk_props props = crew_props(&p->c, &init);
    fk_router_config config = { .pool = &props, .routees = routees, .strategy = strategy };
    CHECK_OK(fk_router_spawn(p->r.sys, FK_STR("pool"), &config, &p->router));
    rig_run(&p->r);
    CHECK_U64(crew_list(&p->r, p->router, p->list), routees);
}

static const fk_strategy RESTARTING = { .decide = fk_decide_default };

TEST(pool_routees_are_children_of_the_router)
{
    static const fk_str PLACE = { "fraktor://test/user/pool/$", 26 };
    pool p;
    pool_start(&p, 3, RESTARTING);
    for (int i = 0; i < 3; i++) {
        char path[200];
        size_t len = fk_path_of(p.r.sys, p.list[i], path, sizeof(path));
        CHECK(len > PLACE.len && len < sizeof(path));
        CHECK(memcmp(path, PLACE.ptr, PLACE.len) == 0);
        CHECK_U64((uint64_t)path[PLACE.len], (uint64_t)('a' + i));
    }
    CHECK_OK(fk_stop(p.r.sys, p.router));
    rig_run(&p.r);
    CHECK_U64(p.c.stopped, 3);
    rig_stop(&p.r);
}

TEST(pool_of_which_one_stops_goes_on_with_the_others)
{
    pool p;
    pool_start(&p, 3, RESTARTING);
    CHECK_OK(fk_send(p.r.sys, p.list[1], FK_TEXT("leave")));
    rig_run(&p.r);
    fk_ref left[CREW_MAX];
    CHECK_U64(crew_list(&p.r, p.router, left), 2);
    CHECK(fk_ref_equal(left[0], p.list[0]) && fk_ref_equal(left[1], p.list[2]));
    crew_send(&p.r, p.router, 0, 10);
    CHECK_U64(p.c.got[crew_index(&p.c, p.list[0])], 5);
    CHECK_U64(p.c.got[crew_index(&p.c, p.list[2])], 5);
    CHECK_U64(p.r.letters.count, 0);
    rig_stop(&p.r);
}

TEST(pool_stops_with_its_last_routee)
{
    pool p;
    pool_start(&p, 2, RESTARTING);
    for (int i = 0; i < 2; i++) {
        CHECK(fk_is_alive(p.r.sys, p.router));
        CHECK_OK(fk_send(p.r.sys, p.list[i], FK_TEXT("leave")));
        rig_run(&p.r);
    }
    CHECK(!fk_is_alive(p.r.sys, p.router));
    crew_send(&p.r, p.router, 0, 1);
    CHECK_U64(p.r.letters.of[FK_REASON_STOPPED], 1); /* never silent */
    rig_stop(&p.r);
}

TEST(pool_is_poisoned_as_a_whole)
{
    pool p;
    pool_start(&p, 3, RESTARTING);
    crew_send(&p.r, p.router, 0, 0);
    for (uint64_t i = 0; i < 6; i++) CHECK_OK(fk_send(p.r.sys, p.router, FK_MSG(num, i)));
    CHECK_OK(fk_poison(p.r.sys, p.router));
    rig_run(&p.r);
    CHECK(!fk_is_alive(p.r.sys, p.router));
    CHECK_U64(p.c.stopped, 3);
    rig_stop(&p.r);
}

TEST(pool_grows)
{
    pool p;
    pool_start(&p, 2, RESTARTING);
    CHECK_OK(fk_router_resize(p.r.sys, p.router, 20));
    rig_run(&p.r);
    CHECK_U64(p.c.started, 20);
    crew_send(&p.r, p.router, 0, 40);
    for (int i = 0; i < 20; i++) CHECK_U64(p.c.got[i], 2);
    rig_stop(&p.r);
}

TEST(pool_shrinks_when_routees_have_done_what_they_have)
{
    pool p;
    pool_start(&p, 5, RESTARTING);
    for (uint64_t i = 0; i < 50; i++) CHECK_OK(fk_send(p.r.sys, p.router, FK_MSG(num, i)));
    CHECK_OK(fk_router_resize(p.r.sys, p.router, 2));
    for (uint64_t i = 0; i < 10; i++) CHECK_OK(fk_send(p.r.sys, p.router, FK_MSG(num, i)));
    rig_run(&p.r);
    CHECK_U64(p.c.all, 60);
    CHECK_U64(p.c.stopped, 3);
    CHECK_U64(p.r.letters.count, 0);
    for (int i = 0; i < 5; i++) {
        CHECK_U64(p.c.got[crew_index(&p.c, p.list[i])], i < 2 ? 15 : 10);
        CHECK(fk_is_alive(p.r.sys, p.list[i]) == (i < 2)); /* the last ones leave */
    }
    rig_stop(&p.r);
}

static fk_err do_resize(fk_ctx *ctx, void *arg)
{
    const pool *p = arg;
    CHECK_OK(fk_router_resize(fk_system_of(ctx), p->router, 1));
    return FK_OK;
}

TEST(pool_is_resized_from_inside_too)
{
    pool p;
    pool_start(&p, 3, RESTARTING);
    rig_do(&p.r, p.router, do_resize, &p);
    CHECK_U64(crew_list(&p.r, p.router, p.list), 1);
    CHECK_ERR(fk_router_resize(p.r.sys, p.router, 0), FK_E_INVALID);
    rig_stop(&p.r);
}

TEST(pool_that_shrinks_to_one_that_ends_waits_for_those_that_finish)
{
    pool p;
    pool_start(&p, 3, RESTARTING);
    for (uint64_t i = 0; i < 30; i++) CHECK_OK(fk_send(p.r.sys, p.router, FK_MSG(num, i)));
    CHECK_OK(fk_router_resize(p.r.sys, p.router, 1));
    CHECK_OK(fk_stop(p.r.sys, p.list[0]));
    rig_run(&p.r);
    CHECK_U64(p.c.got[crew_index(&p.c, p.list[1])], 10);
    CHECK_U64(p.c.got[crew_index(&p.c, p.list[2])], 10);
    CHECK(!fk_is_alive(p.r.sys, p.router));
    rig_stop(&p.r);
}

TEST(pool_routee_can_be_removed_and_somebody_else_added)
{
    pool p;
    crew other = { 0 };
    fk_ref now[CREW_MAX];
    pool_start(&p, 2, RESTARTING);
    fk_ref guest = crew_spawn(&p.r, &other);
    CHECK_OK(fk_router_add(p.r.sys, p.router, guest));
    CHECK_OK(fk_router_add(p.r.sys, p.router, guest)); /* once */
    CHECK_OK(fk_router_remove(p.r.sys, p.router, p.list[0]));
    CHECK_OK(fk_router_remove(p.r.sys, p.router, p.list[0]));
    CHECK_U64(crew_list(&p.r, p.router, now), 2);
    CHECK(fk_ref_equal(now[0], p.list[1]));
    CHECK(fk_ref_equal(now[1], guest));
    CHECK(!fk_is_alive(p.r.sys, p.list[0])); /* its own has stopped */
    crew_send(&p.r, p.router, 0, 4);
    CHECK_U64(other.all, 2);
    CHECK_OK(fk_router_remove(p.r.sys, p.router, guest));
    crew_send(&p.r, p.router, 0, 4);
    CHECK_U64(other.all, 2);
    CHECK(fk_is_alive(p.r.sys, guest)); /* a guest has not */
    CHECK_ERR(fk_router_add(p.r.sys, p.router, p.router), FK_E_INVALID);
    CHECK_ERR(fk_router_add(p.r.sys, p.router, FK_REF_NONE), FK_E_INVALID);
    CHECK_ERR(fk_router_add(p.r.sys, p.router, (fk_ref){ 1, 1, 1 }), FK_E_FOREIGN);
    rig_stop(&p.r);
}

/* ---- supervision ------------------------------------------------------------------------------- */

TEST(pool_strategy_decides_about_its_routees)
{
    pool p;
    pool_start(&p, 3, RESTARTING);
    CHECK_OK(fk_send(p.r.sys, p.list[1], FK_MSG(num, CREW_FAIL)));
    rig_run(&p.r);
    CHECK_U64(p.c.restarted, 1);
    crew_send(&p.r, p.router, 0, 6);
    for (int i = 0; i < 3; i++) {
        CHECK_U64(p.c.got[crew_index(&p.c, p.list[i])], i == 1 ? 3 : 2);
    }
    rig_stop(&p.r);
}

TEST(pool_strategy_can_stop_them)
{
    pool p;
    pool_start(&p, 3, (fk_strategy){ .decide = fk_decide_stop });
    CHECK_OK(fk_send(p.r.sys, p.list[1], FK_MSG(num, CREW_FAIL)));
    rig_run(&p.r);
    CHECK_U64(crew_list(&p.r, p.router, p.list), 2);
    rig_stop(&p.r);
}

TEST(pool_without_a_strategy_escalates_and_keeps_its_routees)
{
    pool p;
    fk_ref after[CREW_MAX];
    pool_start(&p, 3, (fk_strategy){ .decide = NULL });
    CHECK_OK(fk_router_resize(p.r.sys, p.router, 4)); /* and what it has learnt since */
    CHECK_OK(fk_send(p.r.sys, p.list[1], FK_MSG(num, CREW_FAIL)));
    rig_run(&p.r);
    CHECK_U64(p.r.failures.count, 2);
    CHECK(fk_ref_equal(p.r.failures.last.actor, p.router));
    CHECK_U64(p.r.failures.last.phase, FK_PHASE_CHILD);
    CHECK_U64(p.c.restarted, 4); /* /user restarts the router, and that all of them */
    CHECK_U64(crew_list(&p.r, p.router, after), 4);
    for (int i = 0; i < 3; i++) CHECK(fk_ref_equal(after[i], p.list[i]));
    size_t before = p.c.all;
    crew_send(&p.r, p.router, 0, 8);
    CHECK_U64(p.c.all, before + 8);
    CHECK_U64(p.r.letters.count, 0);
    rig_stop(&p.r);
}

TEST(pool_routees_wait_before_they_are_restarted)
{
    pool p;
    pool_start(&p, 2,
               (fk_strategy){ .decide = fk_decide_default,
                              .backoff_min = FK_SECONDS(1),
                              .backoff_max = FK_SECONDS(4) });
    CHECK_OK(fk_send(p.r.sys, p.list[0], FK_MSG(num, CREW_FAIL)));
    crew_send(&p.r, p.router, 0, 4);
    CHECK_U64(p.c.all, 3); /* the one that failed has its two waiting */
    rig_pass(&p.r, FK_MILLIS(1010));
    CHECK_U64(p.c.all, 5);
    rig_stop(&p.r);
}

TEST(pool_is_killed_and_restarted)
{
    pool p;
    pool_start(&p, 2, RESTARTING);
    CHECK_OK(fk_kill(p.r.sys, p.router));
    rig_run(&p.r);
    CHECK(!fk_is_alive(p.r.sys, p.router)); /* as /user decides */
    CHECK_U64(p.c.stopped, 2);
    rig_stop(&p.r);
}

/* ---- making one --------------------------------------------------------------------------------- */

static fk_err never_starts(fk_ctx *ctx, void *state)
{
    (void)state;
    return fk_fail(ctx, FK_E_FAILED, "never");
}

TEST(pool_of_routees_that_never_start_ends)
{
    rig r;
    fk_ref router = FK_REF_NONE;
    fk_props props = { .receive = doer_receive, .start = never_starts };
    rig_start(&r);
    fk_router_config config = { .pool = &props, .routees = 3, .strategy = RESTARTING };
    CHECK_OK(fk_router_spawn(r.sys, FK_STR(""), &config, &router));
    rig_run(&r);
    CHECK(!fk_is_alive(r.sys, router));
    CHECK_U64(r.failures.count, 3);
    rig_stop(&r);
}

static int64_t no_priority(const fk_msg *msg)
{
    (void)msg;
    return 0;
}

TEST(pool_config_is_checked)
{
    rig r;
    int somewhere = 0;
    fk_ref out = FK_REF_NONE;
    fk_props good = { .receive = doer_receive };
    fk_props heap = { .receive = doer_receive,
                      .mailbox = FK_MAILBOX_PRIORITY,
                      .priority = no_priority };
    fk_props shared = { .receive = doer_receive, .state = &somewhere };
    fk_str path = FK_STR("/user/a");
    rig_start(&r);
    const fk_router_config wrong[] = {
        { .pool = &good, .routees = 0 },
        { .pool = &(fk_props){ .receive = NULL }, .routees = 1 },
        { .pool = &shared, .routees = 1 },
        { .pool = &good, .routees = 1, .paths = &path, .paths_len = 1 },
        { .pool = &good, .routees = 1, .refs = &out, .refs_len = 1 },
        { .pool = &good, .routees = 1, .size = 8 },
        { .pool = &good, .routees = 1, .kind = (fk_router_kind)5 },
        { .pool = &heap, .routees = 1, .kind = FK_ROUTER_SMALLEST_MAILBOX },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_ERR(fk_router_spawn(r.sys, FK_STR(""), &wrong[i], &out), FK_E_INVALID);
    }
    CHECK_ERR(fk_router_spawn(r.sys, FK_STR(""), NULL, &out), FK_E_INVALID);
    fk_router_config config = { .size = sizeof(config), .pool = &good, .routees = 1 };
    CHECK_ERR(fk_router_spawn(NULL, FK_STR("a"), &config, &out), FK_E_INVALID);
    CHECK_ERR(fk_router_spawn(r.sys, FK_STR("$a"), &config, &out), FK_E_RESERVED);
    config.strategy.backoff_jitter = 101;
    CHECK_ERR(fk_router_spawn(r.sys, FK_STR("a"), &config, &out), FK_E_STRATEGY);
    config.strategy.backoff_jitter = 0;
    CHECK_OK(fk_router_spawn(r.sys, FK_STR("a"), &config, &out));
    CHECK_ERR(fk_router_spawn(r.sys, FK_STR("a"), &config, &out), FK_E_NAME_TAKEN);
    rig_stop(&r);
}

typedef struct nested {
    crew *c;
    fk_ref outer, inner;
} nested;

static fk_err do_spawn_child(fk_ctx *ctx, void *arg)
{
    nested *n = arg;
    crew_worker init;
    fk_props props = crew_props(n->c, &init);
    fk_router_config config = { .pool = &props, .routees = 2 };
    CHECK_OK(fk_router_spawn_child(ctx, FK_STR("inner"), &config, &n->inner));
    CHECK(fk_child_count(ctx) == 1);
    return FK_OK;
}

TEST(pool_is_made_by_an_actor_and_routed_to)
{
    rig r;
    crew c = { 0 };
    nested n = { .c = &c };
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, do_spawn_child, &n);
    fk_router_config outer = { .kind = FK_ROUTER_BROADCAST, .refs = &n.inner, .refs_len = 1 };
    CHECK_OK(fk_router_spawn(r.sys, FK_STR("outer"), &outer, &n.outer));
    crew_send(&r, n.outer, 0, 10);
    CHECK_U64(c.got[0], 5);
    CHECK_U64(c.got[1], 5);
    rig_stop(&r);
}

/* ---- threads ---------------------------------------------------------------------------------------- */

static fk_err count_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    _Atomic uint64_t *all = *(_Atomic uint64_t **)state;
    const num *value = FK_AS(num, msg);
    CHECK(value != NULL);
    atomic_fetch_add(all, 1);
    return value->n % 50 == 0 ? fk_fail(ctx, FK_E_FAILED, "now and then") : FK_OK;
}

/* Nothing is lost while the pool grows and shrinks, and its routees fail. */
TEST(pool_on_several_threads_loses_nothing)
{
    const uint64_t count = test_scaled(40000);
    for (int kind = FK_ROUTER_ROUND_ROBIN; kind <= FK_ROUTER_CONSISTENT_HASH; kind++) {
        rig r;
        _Atomic uint64_t all = 0, *pointer = &all;
        fk_ref router = FK_REF_NONE;
        fk_props props = { .receive = count_receive,
                           .state_size = sizeof(pointer),
                           .init = &pointer };
        fk_router_config config = { .kind = (fk_router_kind)kind,
                                    .pool = &props,
                                    .routees = 4,
                                    .strategy = { .decide = fk_decide_default,
                                                  .restarts = FK_RESTARTS_UNLIMITED } };
        if (kind == FK_ROUTER_BROADCAST) continue;
        rig_start_with(&r, (fk_system_config){ .name = "test", .workers = 2 });
        CHECK_OK(fk_router_spawn(r.sys, FK_STR(""), &config, &router));
        for (uint64_t i = 1; i <= count; i++) {
            CHECK_OK(fk_send(r.sys, router, FK_MSG(num, i)));
            if (i % 300 != 0) continue;
            CHECK_OK(fk_router_resize(r.sys, router, (uint32_t)(1 + i % 7)));
        }
        for (int64_t until = test_clock() + FK_SECONDS(30); test_clock() < until;) {
            if (atomic_load(&all) == count) break;
            test_sleep_ms(1);
        }
        CHECK_U64(atomic_load(&all), count);
        CHECK(fk_is_alive(r.sys, router));
        rig_stop(&r);
    }
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Many ends: every watch is answered exactly once, deep trees end without recursion, and nothing is
 * left of any of them. */

#include <stdio.h>
#include <stdlib.h>

#include "support/rig.h"

static rig r;

static void *array_of(uint64_t count, size_t size)
{
    void *memory = calloc(count, size);
    CHECK(memory != NULL);
    return memory;
}

/* ---- a million watches ---------------------------------------------------------------------------- */

/* Spawns children, watches each, and writes down whose end it was told. */
typedef struct undertaker {
    uint64_t count;
    uint64_t told, confirmed;
    uint8_t *seen; /* by the number in slot order */
    uint32_t *of;  /* slot to number */
    uint32_t of_len;
    fk_ref *child;
    _Atomic bool is_ready, is_done;
} undertaker;

static fk_err tombstone(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

static fk_err bring_up(fk_ctx *ctx, void *arg)
{
    undertaker *u = arg;
    for (uint64_t i = 0; i < u->count; i++) {
        CHECK_OK(
            fk_spawn_child(ctx, FK_STR(""), &(fk_props){ .receive = tombstone }, &u->child[i]));
        CHECK_OK(fk_watch(ctx, u->child[i]));
        CHECK(u->child[i].slot < u->of_len);
        u->of[u->child[i].slot] = (uint32_t)i;
    }
    atomic_store(&u->is_ready, true);
    return FK_OK;
}

static fk_err undertake(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    undertaker *u = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return doer_receive(ctx, NULL, msg);
    uint32_t number = u->of[end->actor.slot];
    CHECK(fk_ref_equal(u->child[number], end->actor));
    CHECK_U64(u->seen[number]++, 0);
    u->confirmed += end->existence_confirmed;
    if (++u->told == u->count) atomic_store(&u->is_done, true);
    return FK_OK;
}

static void await_flag(_Atomic bool *flag)
{
    int64_t deadline = test_clock() + FK_SECONDS(100);
    while (!atomic_load(flag)) {
        CHECK(test_clock() < deadline);
        test_sleep_ms(1);
    }
}

TEST(graves_every_watch_of_a_million_is_answered_once)
{
    static undertaker u;
    fk_ref ref;
    u = (undertaker){ .count = test_scaled(1000000) };
    u.of_len = (uint32_t)u.count + 100000;
    u.seen = array_of(u.count, 1);
    u.of = array_of(u.of_len, sizeof(*u.of));
    u.child = array_of(u.count, sizeof(*u.child));
    int64_t began = test_clock();
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    CHECK_OK(fk_spawn(r.sys, FK_STR("u"), &(fk_props){ .receive = undertake, .state = &u }, &ref));
    CHECK_OK(fk_send(r.sys, ref, FK_MSG(rig_call, bring_up, &u)));
    await_flag(&u.is_ready);
    for (uint64_t i = 0; i < u.count; i++) CHECK_OK(fk_stop(r.sys, u.child[i]));
    await_flag(&u.is_done);
    rig_stop(&r);
    CHECK_U64(u.told, u.count);
    CHECK_U64(u.confirmed, u.count);
    printf("%llu watched, told and gone in %.2f s\n", (unsigned long long)u.count,
           (double)(test_clock() - began) / 1e9);
    free(u.seen);
    free(u.of);
    free(u.child);
}

static fk_err watch_all(fk_ctx *ctx, void *arg)
{
    const undertaker *u = arg;
    for (uint64_t i = 0; i < u->count; i++) CHECK_OK(fk_watch(ctx, u->child[i]));
    return FK_OK;
}

/* Watches that begin while their targets end, on other threads. */
TEST(graves_watches_that_race_with_the_end_are_answered_once)
{
    enum { ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        static undertaker u;
        fk_ref ref;
        u = (undertaker){ .count = test_scaled(20000), .of_len = 200000 };
        u.seen = array_of(u.count, 1);
        u.of = array_of(u.of_len, sizeof(*u.of));
        u.child = array_of(u.count, sizeof(*u.child));
        rig_start_with(&r, (fk_system_config){ .workers = 3 });
        for (uint64_t i = 0; i < u.count; i++) {
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = tombstone }, &u.child[i]));
            u.of[u.child[i].slot] = (uint32_t)i;
        }
        CHECK_OK(
            fk_spawn(r.sys, FK_STR("u"), &(fk_props){ .receive = undertake, .state = &u }, &ref));
        CHECK_OK(fk_send(r.sys, ref, FK_MSG(rig_call, watch_all, &u)));
        for (uint64_t i = 0; i < u.count; i++) CHECK_OK(fk_stop(r.sys, u.child[i]));
        await_flag(&u.is_done);
        rig_stop(&r);
        CHECK_U64(u.told, u.count);
        free(u.seen);
        free(u.of);
        free(u.child);
    }
}

/* ---- a chain ----------------------------------------------------------------------------------------- */

typedef struct chain {
    uint64_t depth_max;
    uint64_t stops; /* so far: the deepest comes first */
    _Atomic bool is_complete;
    bool is_restart;
} chain;

static chain C;

typedef struct link_state {
    uint64_t depth;
} link_state;

static fk_err link_receive(fk_ctx *ctx, void *state, const fk_msg *msg);
static void link_stop(fk_ctx *ctx, void *state);

static fk_err link_start(fk_ctx *ctx, void *state)
{
    const link_state *self = state;
    link_state next = { self->depth + 1 };
    fk_ref ref;
    if (next.depth > C.depth_max) {
        atomic_store(&C.is_complete, true);
        return FK_OK;
    }
    return fk_spawn_child(ctx, FK_STR("x"),
                          &(fk_props){ .receive = link_receive,
                                       .start = link_start,
                                       .stop = link_stop,
                                       .state_size = sizeof(next),
                                       .init = &next },
                          &ref);
}

static void link_stop(fk_ctx *ctx, void *state)
{
    const link_state *self = state;
    (void)ctx;
    /* Children first, all the way up; at a restart the top itself comes before them. */
    if (!C.is_restart) CHECK_U64(self->depth, C.depth_max - C.stops);
    C.stops++;
}

static fk_err link_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_E_INVALID;
}

/* A worker's stack has 8 MB: recursion would need more than that. */
static void chain_of(uint64_t depth, uint32_t workers)
{
    fk_ref first;
    link_state one = { 1 };
    C = (chain){ .depth_max = depth };
    rig_start_with(&r, (fk_system_config){ .workers = workers,
                                           .paths = { .depth_max = 65535, .path_max = 65535 } });
    fk_props props = { .receive = link_receive,
                       .start = link_start,
                       .stop = link_stop,
                       .state_size = sizeof(one),
                       .init = &one };
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &props, &first));
    if (workers == 0) rig_run(&r);
    await_flag(&C.is_complete);
    CHECK_OK(fk_stop(r.sys, first));
    if (workers == 0) rig_run(&r);
    CHECK_OK(fk_await_stopped(r.sys, first, FK_SECONDS(100)));
    CHECK_U64(C.stops, depth);
    rig_stop(&r);
}

TEST(graves_chain_of_a_hundred_thousand_starts_and_stops)
{
    chain_of(test_scaled(100000), 0);
    chain_of(test_scaled(100000), 2);
}

/* The top fails: the whole chain is held, stopped, and made again. */
TEST(graves_chain_is_restarted_from_the_top)
{
    fk_ref first;
    link_state one = { 1 };
    C = (chain){ .depth_max = test_scaled(20000) };
    rig_start_with(&r, (fk_system_config){ .paths = { .depth_max = 65535, .path_max = 65535 } });
    fk_props props = { .receive = link_receive,
                       .start = link_start,
                       .stop = link_stop,
                       .state_size = sizeof(one),
                       .init = &one };
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &props, &first));
    rig_run(&r);
    CHECK(atomic_load(&C.is_complete));
    atomic_store(&C.is_complete, false);
    C.is_restart = true;
    CHECK_OK(fk_send(r.sys, first, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(fk_is_alive(r.sys, first));
    CHECK_U64(C.stops, C.depth_max);
    CHECK(atomic_load(&C.is_complete));
    rig_stop(&r);
}

/* ---- the end of everything ------------------------------------------------------------------------------ */

TEST(graves_stopping_user_ends_a_large_system_in_order)
{
    fk_stats stats;
    fk_ref ref;
    uint64_t count = test_scaled(200000);
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (uint64_t i = 0; i < count; i++) {
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = tombstone }, &ref));
    }
    CHECK_OK(fk_stop(r.sys, fk_guardian(r.sys, FK_GUARDIAN_USER)));
    CHECK_OK(fk_await_termination(r.sys, FK_SECONDS(100)));
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.actors, 0);
    CHECK_U64(stats.stopped, count);
    rig_stop(&r);
}

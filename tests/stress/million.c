/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A million actors alive at once, each of them answers, and then all are gone. */

#include <stdio.h>
#include <stdlib.h>

#include "support/rig.h"

enum { BYTES_PER_ACTOR_MAX = 512 };

typedef struct census {
    uint64_t answers, wanted;
} census;

static fk_err count_answers(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    census *c = state;
    (void)msg;
    if (++c->answers == c->wanted) fk_stop_self(ctx);
    return FK_OK;
}

static fk_err answer(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t *n = state;
    CHECK_U64(FK_AS(num, msg)->n, *n);
    return fk_reply(ctx, FK_MSG(num, *n));
}

TEST(million_actors_live_answer_and_leave_nothing)
{
    uint64_t count = test_scaled(1000000);
    fk_ref *refs = calloc((size_t)count, sizeof(*refs)), counter;
    census c = { 0, count };
    rig r;
    fk_stats stats;
    CHECK(refs != NULL);
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    uint64_t empty = atomic_load(&r.bytes);
    CHECK_OK(fk_spawn(r.sys, FK_STR("counter"),
                      &(fk_props){ .receive = count_answers, .state = &c }, &counter));
    int64_t began = test_clock();
    for (uint64_t i = 0; i < count; i++) {
        fk_props props = { .receive = answer, .state_size = sizeof(i), .init = &i };
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &refs[i]));
    }
    int64_t spawned = test_clock();
    uint64_t each = (atomic_load(&r.bytes) - empty) / count;
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.actors, count + 1);
    for (uint64_t i = 0; i < count; i++) {
        CHECK_OK(fk_send_from(r.sys, refs[i], counter, FK_MSG(num, i)));
    }
    CHECK_OK(fk_await_stopped(r.sys, counter, FK_SECONDS(100)));
    CHECK_U64(c.answers, count);
    int64_t answered = test_clock();
    rig_stop(&r);
    int64_t stopped = test_clock();
    printf("%llu actors of %llu bytes: spawn %.2f s, ask all %.2f s, stop %.2f s\n",
           (unsigned long long)count, (unsigned long long)each, (double)(spawned - began) / 1e9,
           (double)(answered - spawned) / 1e9, (double)(stopped - answered) / 1e9);
    if (!test_is_sanitized()) CHECK(each <= BYTES_PER_ACTOR_MAX);
    free(refs);
}

/* A wide and deep tree: every actor makes ten below it, five levels down. */
typedef struct branch {
    int depth;
} branch;

static fk_err branch_receive(fk_ctx *ctx, void *state, const fk_msg *msg);

static fk_err branch_start(fk_ctx *ctx, void *state)
{
    branch *b = state;
    branch below = { b->depth - 1 };
    fk_props props = { .receive = branch_receive,
                       .start = branch_start,
                       .state_size = sizeof(branch),
                       .init = &below };
    for (int i = 0; i < 10 && b->depth > 0; i++) {
        fk_ref ref;
        fk_err err = fk_spawn_child(ctx, FK_STR(""), &props, &ref);
        if (err != FK_OK) return err;
    }
    return FK_OK;
}

static fk_err branch_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

TEST(million_tree_falls_with_its_root)
{
    branch top = { test_is_sanitized() ? 3 : 5 };
    uint64_t size = test_is_sanitized() ? 1111 : 111111;
    rig r;
    fk_ref root;
    fk_stats stats;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    fk_props props = {
        .receive = branch_receive, .start = branch_start, .state_size = sizeof(branch), .init = &top
    };
    CHECK_OK(fk_spawn(r.sys, FK_STR("root"), &props, &root));
    int64_t deadline = test_clock() + FK_SECONDS(60);
    do {
        fk_stats_get(r.sys, &stats);
        CHECK(test_clock() < deadline);
        test_sleep_ms(1);
    } while (stats.spawned < size);
    CHECK_OK(fk_stop(r.sys, root));
    CHECK_OK(fk_await_stopped(r.sys, root, FK_SECONDS(60)));
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.stopped, size);
    CHECK_U64(stats.failures, 0);
    rig_stop(&r);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workloads in which few messages are on their way at a time: pingpong, ring and big. They
 * measure what one message costs from send to receive, scheduling included. */

#include "bench.h"

#include "cli.h"

#include <stdlib.h>

/* ---- pingpong: two actors, one message going to and fro --------------------------------- */

typedef struct {
    uint64_t n;
} bench_ping;
FK_MESSAGE(bench_ping);

typedef struct {
    uint64_t n;
} bench_pong;
FK_MESSAGE(bench_pong);

typedef struct {
    bench_run *run;
    fk_ref ponger;
    uint64_t left;
} pinger;

static fk_err ponger_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const bench_ping *ping = FK_AS(bench_ping, msg);
    (void)state;
    if (ping == NULL) return fk_unhandled(ctx, msg);
    return fk_reply(ctx, FK_MSG(bench_pong, ping->n));
}

static fk_err pinger_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    pinger *self = state;
    const bench_pong *pong = FK_AS(bench_pong, msg);
    if (pong == NULL) return fk_unhandled(ctx, msg);
    if (pong->n != self->left) return bench_fail(self->run, "a pong is lost, doubled or wrong");
    if (self->left == 0) {
        bench_done(self->run);
        return FK_OK;
    }
    self->left--;
    return fk_tell(ctx, self->ponger, FK_MSG(bench_ping, self->left));
}

static fk_err run_pingpong(bench_run *run)
{
    fk_err err = FK_OK;
    uint64_t trips = run->result.ops < 2 ? 1 : run->result.ops / 2;
    fk_ref ponger = bench_spawn(run, &(fk_props){ .receive = ponger_receive }, &err);
    pinger init = { run, ponger, trips };
    fk_ref ref = bench_spawn(
        run, &(fk_props){ .receive = pinger_receive, .state_size = sizeof init, .init = &init },
        &err);
    if (err != FK_OK) return err;
    run->result.ops = trips * 2;
    bench_begin(run);
    fk_send(run->sys, ref, FK_MSG(bench_pong, trips));
    return bench_wait(run);
}

const bench_workload BENCH_PINGPONG = {
    .name = "pingpong",
    .unit = "messages",
    .ops = 40000000,
    .about = "2 actors, one message to and fro",
    .run = run_pingpong,
};

/* ---- ring: one message goes round 503 actors -------------------------------------------- */

enum { RING_ACTORS = 503 };

typedef struct {
    uint64_t left;
} ring_token;
FK_MESSAGE(ring_token);

typedef struct {
    fk_ref next;
} ring_link;
FK_MESSAGE(ring_link);

typedef struct {
    bench_run *run;
    fk_ref next;
    uint32_t index;
} ring_node;

static fk_err ring_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    ring_node *self = state;
    const ring_token *token = FK_AS(ring_token, msg);
    if (token != NULL) {
        if (token->left > 0) return fk_tell(ctx, self->next, FK_MSG(ring_token, token->left - 1));
        if (self->index != self->run->result.ops % RING_ACTORS) {
            return bench_fail(self->run, "the token ended at the wrong actor");
        }
        bench_done(self->run);
        return FK_OK;
    }
    const ring_link *link = FK_AS(ring_link, msg);
    if (link == NULL) return fk_unhandled(ctx, msg);
    self->next = link->next;
    return FK_OK;
}

/* Each knows the one spawned before it; the last one is told, before the token comes its way. */
static fk_err run_ring(bench_run *run)
{
    fk_err err = FK_OK;
    fk_ref last = FK_REF_NONE;
    ring_node init = { .run = run };
    const fk_props props = { .receive = ring_receive, .state_size = sizeof init, .init = &init };
    for (uint32_t i = RING_ACTORS; i-- > 0;) {
        init.index = i;
        init.next = bench_spawn(run, &props, &err);
        if (i == RING_ACTORS - 1) last = init.next;
    }
    if (err != FK_OK) return err;
    fk_send(run->sys, last, FK_MSG(ring_link, init.next));
    bench_begin(run);
    fk_send(run->sys, init.next, FK_MSG(ring_token, run->result.ops));
    return bench_wait(run);
}

const bench_workload BENCH_RING = {
    .name = "ring",
    .unit = "messages",
    .ops = 50000000,
    .about = "one message goes round 503 actors",
    .run = run_ring,
};

/* ---- big: 200 actors, each with one ping to a random other under way -------------------- */

enum { BIG_ACTORS = 200 };

typedef struct {
    uint32_t unused;
} big_ping;
FK_MESSAGE(big_ping);

typedef struct {
    uint32_t unused;
} big_pong;
FK_MESSAGE(big_pong);

typedef struct {
    fk_ref actor[BIG_ACTORS];
    _Atomic uint64_t answered;
} big_shared;

typedef struct {
    bench_run *run;
    big_shared *shared;
    uint64_t left;
    uint64_t seed;
    uint64_t answered;
    uint32_t index;
} big_actor;

static fk_err big_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    big_actor *self = state;
    if (FK_AS(big_ping, msg) != NULL) {
        self->answered++;
        return fk_reply(ctx, FK_MSG(big_pong, 0));
    }
    if (FK_AS(big_pong, msg) == NULL) return fk_unhandled(ctx, msg);
    if (self->left > 0) {
        self->left--;
        uint64_t other = cli_random(&self->seed) % (BIG_ACTORS - 1);
        if (other >= self->index) other++; /* an other one, not itself */
        return fk_tell(ctx, self->shared->actor[other], FK_MSG(big_ping, 0));
    }
    if (atomic_fetch_add(&self->run->count, 1) + 1 == BIG_ACTORS) bench_done(self->run);
    return FK_OK;
}

static void big_stop(fk_ctx *ctx, void *state)
{
    big_actor *self = state;
    (void)ctx;
    atomic_fetch_add(&self->shared->answered, self->answered);
}

static fk_err run_big(bench_run *run)
{
    fk_err err = FK_OK;
    big_shared *shared = calloc(1, sizeof *shared);
    if (shared == NULL) return FK_E_NOMEM;
    run->data = shared;
    uint64_t each = run->result.ops / (2 * BIG_ACTORS);
    if (each == 0) each = 1;
    run->result.ops = each * 2 * BIG_ACTORS;

    big_actor init = { .run = run, .shared = shared, .left = each };
    const fk_props props = {
        .receive = big_receive, .stop = big_stop, .state_size = sizeof init, .init = &init
    };
    for (uint32_t i = 0; i < BIG_ACTORS; i++) {
        init.index = i;
        init.seed = 88172645463325252u ^ ((i + 1) * UINT64_C(0x9E3779B97F4A7C15));
        shared->actor[i] = bench_spawn(run, &props, &err);
    }
    if (err != FK_OK) return err;
    bench_begin(run);
    for (uint32_t i = 0; i < BIG_ACTORS; i++) {
        fk_send(run->sys, shared->actor[i], FK_MSG(big_pong, 0));
    }
    return bench_wait(run);
}

static void finish_big(bench_run *run)
{
    big_shared *shared = run->data;
    if (shared == NULL) return;
    if (atomic_load(&shared->answered) != run->result.ops / 2) {
        bench_fail(run, "the actors answered %llu pings of %llu",
                   (unsigned long long)atomic_load(&shared->answered),
                   (unsigned long long)run->result.ops / 2);
    }
    free(shared);
}

const bench_workload BENCH_BIG = {
    .name = "big",
    .unit = "messages",
    .ops = 8000000,
    .about = "200 actors, each pings random others",
    .run = run_big,
    .finish = finish_big,
};

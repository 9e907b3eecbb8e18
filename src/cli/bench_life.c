/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workloads about actors, not messages: create, skynet and idle. */

#include "bench.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* ---- create: spawn, one message, stop --------------------------------------------------- */

typedef struct {
    bench_run *run;
} create_go;
FK_MESSAGE(create_go);

typedef struct {
    bench_run *run;
} create_once;
FK_MESSAGE(create_once);

static fk_err created_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const create_once *once = FK_AS(create_once, msg);
    (void)state;
    if (once == NULL) return fk_unhandled(ctx, msg);
    bench_run *run = once->run;
    uint64_t count = atomic_fetch_add_explicit(&run->count, 1, memory_order_relaxed) + 1;
    if (count == run->result.ops) bench_done(run);
    fk_stop_self(ctx);
    return FK_OK;
}

static fk_err creator_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_props props = { .receive = created_receive };
    const create_go *go = FK_AS(create_go, msg);
    fk_err err = FK_OK;
    (void)state;
    if (go == NULL) return fk_unhandled(ctx, msg);
    for (uint64_t i = 0; i < go->run->result.ops && err == FK_OK; i++) {
        fk_ref child;
        err = fk_spawn_child(ctx, FK_STR(""), &props, &child);
        if (err == FK_OK) err = fk_tell(ctx, child, FK_MSG(create_once, go->run));
    }
    return err;
}

static fk_err run_create(bench_run *run)
{
    fk_err err = FK_OK;
    bench_begin(run);
    fk_ref creator = bench_spawn(run, &(fk_props){ .receive = creator_receive }, &err);
    if (err != FK_OK) return err;
    fk_send(run->sys, creator, FK_MSG(create_go, run));
    return bench_wait(run);
}

static void finish_create(bench_run *run)
{
    uint64_t count = atomic_load(&run->count);
    if (count != run->result.ops) {
        bench_fail(run, "%llu messages for %llu actors", (unsigned long long)count,
                   (unsigned long long)run->result.ops);
    }
}

const bench_workload BENCH_CREATE = {
    .name = "create",
    .unit = "actors",
    .ops = 1000000,
    .about = "one actor spawns, each child gets one message and stops",
    .run = run_create,
    .finish = finish_create,
};

/* ---- skynet: a tree of ten children each, whose leaves are summed up -------------------- */

enum { SKYNET_CHILDREN = 10 };

typedef struct {
    uint64_t leaves; /* under the receiver; 1: it is one */
    uint64_t first;  /* number of the first of them */
    bench_run *run;  /* NULL for all but the root */
} skynet_go;
FK_MESSAGE(skynet_go);

typedef struct {
    uint64_t sum;
} skynet_sum;
FK_MESSAGE(skynet_sum);

typedef struct {
    bench_run *run;
    uint64_t sum;
    uint32_t waiting;
} skynet_node;

static fk_err skynet_report(fk_ctx *ctx, const skynet_node *self, uint64_t sum)
{
    bench_run *run = self->run;
    fk_stop_self(ctx);
    if (run == NULL) return fk_tell(ctx, fk_parent(ctx), FK_MSG(skynet_sum, sum));
    atomic_store(&run->count, sum);
    bench_done(run);
    return FK_OK;
}

static fk_err skynet_receive(fk_ctx *ctx, void *state, const fk_msg *msg);

static fk_err skynet_grow(fk_ctx *ctx, skynet_node *self, const skynet_go *go)
{
    const fk_props props = { .receive = skynet_receive, .state_size = sizeof(skynet_node) };
    uint64_t each = go->leaves / SKYNET_CHILDREN;
    fk_err err = FK_OK;
    self->run = go->run;
    self->waiting = SKYNET_CHILDREN;
    for (uint32_t i = 0; i < SKYNET_CHILDREN && err == FK_OK; i++) {
        fk_ref child;
        err = fk_spawn_child(ctx, FK_STR(""), &props, &child);
        if (err != FK_OK) break;
        err = fk_tell(ctx, child, FK_MSG(skynet_go, each, go->first + i * each, NULL));
    }
    return err;
}

static fk_err skynet_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    skynet_node *self = state;
    const skynet_go *go = FK_AS(skynet_go, msg);
    if (go != NULL) {
        if (go->leaves > 1) return skynet_grow(ctx, self, go);
        self->run = go->run;
        return skynet_report(ctx, self, go->first);
    }
    const skynet_sum *part = FK_AS(skynet_sum, msg);
    if (part == NULL) return fk_unhandled(ctx, msg);
    self->sum += part->sum;
    return --self->waiting == 0 ? skynet_report(ctx, self, self->sum) : FK_OK;
}

static fk_err run_skynet(bench_run *run)
{
    fk_err err = FK_OK;
    uint64_t leaves = 1;
    uint64_t actors = 1;
    while (leaves * SKYNET_CHILDREN <= run->result.ops) {
        leaves *= SKYNET_CHILDREN;
        actors += leaves;
    }
    run->result.ops = actors;
    bench_begin(run);
    fk_ref root = bench_spawn(
        run, &(fk_props){ .receive = skynet_receive, .state_size = sizeof(skynet_node) }, &err);
    if (err != FK_OK) return err;
    fk_send(run->sys, root, FK_MSG(skynet_go, leaves, 0, run));
    err = bench_wait(run);
    if (err != FK_OK) return err;
    uint64_t sum = atomic_load(&run->count);
    uint64_t want = leaves % 2 == 0 ? leaves / 2 * (leaves - 1) : 0;
    if (sum != want) {
        return bench_fail(run, "the sum is %llu, not %llu", (unsigned long long)sum,
                          (unsigned long long)want);
    }
    return FK_OK;
}

const bench_workload BENCH_SKYNET = {
    .name = "skynet",
    .unit = "actors",
    .ops = 1000000,
    .about = "ten-ary tree, leaves summed up; --ops: leaves, a power of ten",
    .run = run_skynet,
};

/* ---- idle: many actors that do nothing -------------------------------------------------- */

/* The actors have no state, so the message brings what they need. */
typedef struct {
    bench_run *run;
} idle_poke;
FK_MESSAGE(idle_poke);

static fk_err idle_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const idle_poke *poke = FK_AS(idle_poke, msg);
    (void)state;
    if (poke == NULL) return fk_unhandled(ctx, msg);
    bench_run *run = poke->run;
    uint64_t count = atomic_fetch_add_explicit(&run->count, 1, memory_order_relaxed) + 1;
    if (count == run->result.ops) bench_done(run);
    return FK_OK;
}

typedef struct idle_memory {
    double rss;
    double port;
} idle_memory;

static idle_memory idle_memory_get(bench_run *run)
{
    fk_stats stats;
    fk_stats_get(run->sys, &stats);
    return (idle_memory){ (double)bench_rss_kb() * 1024, (double)stats.memory };
}

static fk_err run_idle(bench_run *run)
{
    const fk_props props = { .receive = idle_receive };
    fk_err err = FK_OK;
    uint64_t actors = run->result.ops;
    fk_ref *ref = malloc(actors * sizeof *ref);
    if (ref == NULL) return FK_E_NOMEM;
    run->data = ref;
    memset(ref, 1, actors * sizeof *ref); /* its pages belong to us, not to the actors */

    idle_memory before = idle_memory_get(run);
    bench_begin(run);
    for (uint64_t i = 0; i < actors && err == FK_OK; i++) ref[i] = bench_spawn(run, &props, &err);
    if (err != FK_OK) return err;
    double spawned_at = cli_seconds();
    idle_memory spawned = idle_memory_get(run);
    for (uint64_t i = 0; i < actors; i++) fk_send(run->sys, ref[i], FK_MSG(idle_poke, run));
    err = bench_wait(run);
    if (err != FK_OK) return err;
    idle_memory poked = idle_memory_get(run);

    double n = (double)actors;
    double spawn_seconds = spawned_at - run->begun;
    double stop_seconds = bench_stop(run);
    bench_note_add(run, "bytes_per_actor_rss", (spawned.rss - before.rss) / n);
    bench_note_add(run, "bytes_per_actor_memory", (spawned.port - before.port) / n);
    bench_note_add(run, "bytes_after_message_rss", (poked.rss - before.rss) / n);
    bench_note_add(run, "bytes_after_message_memory", (poked.port - before.port) / n);
    bench_note_add(run, "spawn_seconds", spawn_seconds);
    bench_note_add(run, "message_seconds", run->result.seconds - spawn_seconds);
    bench_note_add(run, "stop_seconds", stop_seconds);
    return FK_OK;
}

static void finish_idle(bench_run *run)
{
    free(run->data);
    uint64_t count = atomic_load(&run->count);
    if (count != run->result.ops) {
        bench_fail(run, "%llu messages for %llu actors", (unsigned long long)count,
                   (unsigned long long)run->result.ops);
    }
}

const bench_workload BENCH_IDLE = {
    .name = "idle",
    .unit = "actors",
    .ops = 1000000,
    .about = "spawn actors that do nothing; bytes of each; time to stop",
    .run = run_idle,
    .finish = finish_idle,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Workload activate: grains on one node, a cluster of one.
 *
 *   activations_per_s          first messages to grains of a volatile kind: each starts one
 *   grain_ask_ns               an actor asks an active grain, and asks again when it has the answer
 *   plain_ask_ns, ratio        the same with an actor of a known reference, in turn with it
 *   durable_activations_per_s  grains of a durable kind on SQLite: row read, started, changed, stored
 *                              and answered
 *   store_rows_per_s           as many rows read, fenced and stored by the store alone, in batches
 *
 * The run's own time is that of the volatile activations.
 */

#include "bench_activate.h"

#include <string.h>
#include <time.h>

enum {
    ACTIVATE_WINDOW = 8192, /* activations under way */
    ACTIVATE_STEP = 1024,
    ACTIVATE_ASK_ROUNDS = 10,
    ACTIVATE_DURABLE_MAX = 10000,
};

fk_str activate_key(uint64_t n, char room[ACTIVATE_KEY_SIZE])
{
    memcpy(room, "customer-0000000", ACTIVATE_KEY_SIZE);
    for (int i = ACTIVATE_KEY_SIZE - 1; i > 0 && n != 0; i--, n /= 10) {
        room[i] = (char)('0' + n % 10);
    }
    return (fk_str){ room, ACTIVATE_KEY_SIZE };
}

fk_err activate_ready(fk_cluster *cluster)
{
    const struct timespec pause = { .tv_nsec = 2000000 };
    fk_cluster_stats stats;
    fk_err err = fk_cluster_await_ready(cluster, FK_SECONDS(10));
    for (int i = 0; i < 5000 && err == FK_OK; i++) {
        err = fk_cluster_stats_get(cluster, &stats);
        if (stats.placement.slots_held == FK_SLOTS_DEFAULT) return FK_OK;
        nanosleep(&pause, NULL);
    }
    return err == FK_OK ? FK_E_TIMEOUT : err;
}

/* ---- volatile activations --------------------------------------------------------------------------- */

typedef struct {
    uint64_t count;
} activate_more;
FK_MESSAGE(activate_more);

typedef struct {
    bench_run *run;
    fk_ref driver;
} activate_cell;

/* The first message of a grain is all it gets. */
static fk_err cell_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const activate_cell *self = state;
    bench_run *run = self->run;
    const activate_poke *poke = FK_AS(activate_poke, msg);
    if (poke == NULL) return fk_unhandled(ctx, msg);
    if (poke->n == UINT64_MAX) return fk_reply(ctx, FK_MSG(activate_ok, poke->n));
    uint64_t count = atomic_fetch_add_explicit(&run->count, 1, memory_order_relaxed) + 1;
    if (count == run->result.ops) bench_done(run);
    if (count % ACTIVATE_STEP != 0) return FK_OK;
    return fk_tell(ctx, self->driver, FK_MSG(activate_more, ACTIVATE_STEP));
}

typedef struct {
    bench_run *run;
    uint64_t sent;
} activate_driver;

static fk_err driver_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    activate_driver *self = state;
    const activate_more *more = FK_AS(activate_more, msg);
    char room[ACTIVATE_KEY_SIZE];
    fk_err err = FK_OK;
    if (more == NULL) return fk_unhandled(ctx, msg);
    for (uint64_t i = 0; i < more->count && self->sent < self->run->result.ops && err == FK_OK;
         i++) {
        err = fk_grain_tell(ctx, FK_STR("cell"), activate_key(self->sent, room),
                            FK_MSG(activate_poke, self->sent));
        self->sent++;
    }
    return err == FK_OK ? FK_OK : bench_fail(self->run, "fk_grain_tell: %s", fk_err_text(err));
}

static fk_err run_volatile(bench_run *run, fk_cluster **cluster)
{
    fk_err err = FK_OK;
    activate_driver init = { .run = run };
    fk_ref driver = bench_spawn(
        run, &(fk_props){ .receive = driver_receive, .state_size = sizeof init, .init = &init },
        &err);
    activate_cell cell = { run, driver };
    const fk_props props = { .receive = cell_receive, .state_size = sizeof cell, .init = &cell };
    const fk_kind kind = { .size = sizeof kind, .props = &props, .idle_ttl = FK_NEVER };
    /* A lease that outlasts the run on any machine: losing it is not what is measured. */
    const fk_cluster_config config = {
        .size = sizeof config, .store = "memory:", .lease_ttl = FK_SECONDS(60)
    };
    if (err == FK_OK) err = fk_cluster_join(run->sys, &config, cluster);
    if (err == FK_OK) err = fk_kind_register(*cluster, FK_STR("cell"), &kind);
    if (err == FK_OK) err = activate_ready(*cluster);
    activate_ok ok;
    if (err == FK_OK) {
        err = fk_grain_ask_wait(*cluster, FK_STR("cell"), FK_STR("warm"),
                                FK_MSG(activate_poke, UINT64_MAX), FK_INTO(activate_ok, &ok),
                                FK_SECONDS(10));
    }
    if (err != FK_OK) return err;
    bench_begin(run);
    fk_send(run->sys, driver, FK_MSG(activate_more, ACTIVATE_WINDOW));
    return bench_wait(run);
}

/* ---- asking ---------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t trips;
    bool is_grain;
} activate_begin;
FK_MESSAGE(activate_begin);

typedef struct {
    bench_run *run;
    fk_ref plain;
    uint64_t left;
    bool is_grain;
} activate_asker;

static fk_err plain_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const activate_poke *poke = FK_AS(activate_poke, msg);
    (void)state;
    if (poke == NULL) return fk_unhandled(ctx, msg);
    return fk_reply(ctx, FK_MSG(activate_ok, poke->n));
}

static fk_err asker_ask(fk_ctx *ctx, const activate_asker *self)
{
    const fk_out msg = FK_MSG(activate_poke, UINT64_MAX);
    if (!self->is_grain) return fk_ask(ctx, self->plain, msg, self->left, FK_SECONDS(5));
    return fk_grain_ask(ctx, FK_STR("cell"), FK_STR("warm"), msg, self->left, FK_SECONDS(5));
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    activate_asker *self = state;
    const activate_begin *begin = FK_AS(activate_begin, msg);
    if (begin != NULL) {
        self->left = begin->trips;
        self->is_grain = begin->is_grain;
        return asker_ask(ctx, self);
    }
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    if (FK_AS(activate_ok, &answer->reply) == NULL || answer->id != self->left) {
        return bench_fail(self->run, "asked: %s", fk_err_text(answer->err));
    }
    if (--self->left > 0) return asker_ask(ctx, self);
    bench_done(self->run);
    return FK_OK;
}

static fk_err run_round(bench_run *run, fk_ref asker, activate_begin begin, double *seconds)
{
    bench_begin(run);
    fk_send(run->sys, asker, FK_MSG_AT(activate_begin, &begin));
    fk_err err = bench_wait(run);
    *seconds += run->result.seconds;
    return err;
}

static fk_err run_asks(bench_run *run, uint64_t trips, double *grain, double *plain)
{
    fk_err err = FK_OK;
    activate_asker init = { .run = run };
    init.plain = bench_spawn(run, &(fk_props){ .receive = plain_receive }, &err);
    fk_ref asker = bench_spawn(
        run, &(fk_props){ .receive = asker_receive, .state_size = sizeof init, .init = &init },
        &err);
    double unused = 0;
    if (err == FK_OK) err = run_round(run, asker, (activate_begin){ 1000, true }, &unused);
    for (int i = 0; i < ACTIVATE_ASK_ROUNDS && err == FK_OK; i++) {
        err = run_round(run, asker, (activate_begin){ trips, false }, plain);
        if (err == FK_OK) err = run_round(run, asker, (activate_begin){ trips, true }, grain);
    }
    return err;
}

/* ---- the run ------------------------------------------------------------------------------------------------ */

static fk_err run_activate(bench_run *run)
{
    fk_cluster *cluster;
    fk_cluster_stats stats;
    double grain = 0, plain = 0, durable = 0, store = 0;
    fk_err err = run_volatile(run, &cluster);
    if (err != FK_OK) return err;
    double seconds = run->result.seconds, cpu = run->result.cpu_seconds;
    fk_cluster_stats_get(cluster, &stats);
    uint64_t trips = run->result.ops / ACTIVATE_ASK_ROUNDS + 1;
    err = run_asks(run, trips, &grain, &plain);
    uint64_t rows = run->result.ops / 20 + 1;
    if (rows > ACTIVATE_DURABLE_MAX) rows = ACTIVATE_DURABLE_MAX;
    if (err == FK_OK) err = activate_durable(run, rows, &durable);
    if (err == FK_OK) err = activate_store(run, rows, &store);
    if (err != FK_OK) return err;
    run->result.seconds = seconds;
    run->result.cpu_seconds = cpu;
    double asks = (double)(trips * ACTIVATE_ASK_ROUNDS);
    bench_note_add(run, "activations_per_s", (double)run->result.ops / seconds);
    bench_note_add(run, "grain_ask_ns", grain * 1e9 / asks);
    bench_note_add(run, "plain_ask_ns", plain * 1e9 / asks);
    bench_note_add(run, "ratio", grain / plain);
    bench_note_add(run, "durable_activations_per_s", (double)rows / durable);
    bench_note_add(run, "store_rows_per_s", (double)rows / store);
    return FK_OK;
}

static void finish_activate(bench_run *run)
{
    uint64_t count = atomic_load(&run->count);
    if (count != run->result.ops) {
        bench_fail(run, "%llu messages for %llu grains", (unsigned long long)count,
                   (unsigned long long)run->result.ops);
    }
}

const bench_workload BENCH_ACTIVATE = {
    .name = "activate",
    .unit = "grains",
    .ops = 200000,
    .about = "first messages to grains; asking one against an actor; durable ones on SQLite",
    .run = run_activate,
    .finish = finish_activate,
};

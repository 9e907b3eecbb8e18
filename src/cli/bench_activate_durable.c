/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Durable grains on SQLite, in a system and a folder of their own, and SQLite alone. */

#include "bench_activate.h"
#include "cli.h"
#include "folder.h"

#include <stdio.h>
#include <stdlib.h>

enum { DURABLE_WINDOW = 1024, STORE_BATCH = 256, STORE_ROOM = 1 << 20 };

/* ---- grains --------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t n;
} durable_state;

static fk_err durable_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    durable_state *self = state;
    const activate_poke *poke = FK_AS(activate_poke, msg);
    if (poke == NULL) return fk_unhandled(ctx, msg);
    self->n = poke->n + 1;
    return fk_reply(ctx, FK_MSG(activate_ok, self->n));
}

typedef struct {
    bench_run *run;
    uint64_t count, sent, answered;
} durable_driver;

static fk_err durable_ask(fk_ctx *ctx, durable_driver *self)
{
    char room[ACTIVATE_KEY_SIZE];
    uint64_t n = self->sent++;
    return fk_grain_ask(ctx, FK_STR("row"), activate_key(n, room), FK_MSG(activate_poke, n), n,
                        FK_SECONDS(60));
}

static fk_err durable_driver_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    durable_driver *self = state;
    fk_err err = FK_OK;
    if (FK_AS(activate_poke, msg) != NULL) {
        for (int i = 0; i < DURABLE_WINDOW && self->sent < self->count && err == FK_OK; i++) {
            err = durable_ask(ctx, self);
        }
        return err;
    }
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    const activate_ok *ok = FK_AS(activate_ok, &answer->reply);
    if (ok == NULL) return bench_fail(self->run, "durable: %s", fk_err_text(answer->err));
    if (ok->n != answer->id + 1) return bench_fail(self->run, "the answer of another grain");
    if (++self->answered == self->count) bench_done(self->run);
    return self->sent < self->count ? durable_ask(ctx, self) : FK_OK;
}

static fk_err durable_run(bench_run *run, fk_system *sys, const char *url, uint64_t count)
{
    fk_cluster *cluster;
    fk_ref driver;
    const fk_props props = { .receive = durable_receive, .state_size = sizeof(durable_state) };
    const fk_kind kind = {
        .size = sizeof kind, .durable = true, .props = &props, .idle_ttl = FK_NEVER
    };
    const fk_cluster_config config = { .size = sizeof config,
                                       .store = url,
                                       .lease_ttl = FK_SECONDS(60) };
    durable_driver init = { .run = run, .count = count };
    const fk_props driver_props = { .receive = durable_driver_receive,
                                    .state_size = sizeof init,
                                    .init = &init };
    activate_ok ok;
    fk_err err = fk_cluster_join(sys, &config, &cluster);
    if (err == FK_OK) err = fk_kind_register(cluster, FK_STR("row"), &kind);
    if (err == FK_OK) err = activate_ready(cluster);
    if (err == FK_OK) {
        err = fk_grain_ask_wait(cluster, FK_STR("row"), FK_STR("warm"), FK_MSG(activate_poke, 0),
                                FK_INTO(activate_ok, &ok), FK_SECONDS(10));
    }
    if (err == FK_OK) err = fk_spawn(sys, FK_STR("driver"), &driver_props, &driver);
    if (err != FK_OK) return err;
    bench_begin(run);
    fk_send(sys, driver, FK_MSG(activate_poke, 0));
    return bench_wait(run);
}

fk_err activate_durable(bench_run *run, uint64_t count, double *seconds)
{
    char folder[FOLDER_MAX], url[FOLDER_MAX + 32];
    fk_system *sys;
    const fk_system_config config = { .size = sizeof config,
                                      .name = "durable",
                                      .workers = run->threads };
    if (!folder_make("bench", folder)) return FK_E_OS;
    snprintf(url, sizeof url, "sqlite:%s/rows.db", folder);
    fk_err err = fk_system_start(&config, &sys);
    if (err == FK_OK) {
        err = durable_run(run, sys, url, count);
        *seconds = run->result.seconds;
        if (run->stuck) return err; /* it is still at work, in that folder */
        fk_system_stop(sys);
    }
    folder_remove(folder);
    return err;
}

/* ---- the store alone ---------------------------------------------------------------------------------------- */

typedef struct store_bench {
    fk_store *store;
    fk_store_op op[STORE_BATCH];
    fk_store_op *list[STORE_BATCH];
    char key[STORE_BATCH][ACTIVATE_KEY_SIZE];
    uint64_t snapshot[STORE_BATCH];
    size_t used;
    _Alignas(16) char room[STORE_ROOM];
} store_bench;

/* What is read lives until the next batch. */
static void *store_room(fk_store_op *op, size_t size)
{
    store_bench *b = op->user;
    size_t at = (b->used + 15) & ~(size_t)15;
    if (at + size > sizeof b->room) return NULL;
    b->used = at + size;
    return b->room + at;
}

static fk_err store_apply(store_bench *b, uint32_t count)
{
    fk_store_apply(b->store, b->list, count);
    for (uint32_t i = 0; i < count; i++) {
        if (b->op[i].verdict != FK_VERDICT_OK) return b->op[i].err;
    }
    return FK_OK;
}

static fk_err store_batch(store_bench *b, uint64_t first, uint32_t count)
{
    const fk_fence fence = { .epoch = 1, .holder = FK_STR("bench"), .incarnation = 1 };
    b->used = 0;
    for (uint32_t i = 0; i < count; i++) {
        b->list[i] = &b->op[i];
        b->op[i] = (fk_store_op){ .verb = FK_STORE_LOAD, .fence = fence, .room = store_room };
        b->op[i].user = b;
        fk_err err =
            fk_grain_key_of(FK_STR("row"), activate_key(first + i, b->key[i]), &b->op[i].key);
        if (err != FK_OK) return err;
    }
    fk_err err = store_apply(b, count);
    if (err != FK_OK) return err;
    for (uint32_t i = 0; i < count; i++) {
        fk_store_op *op = &b->op[i];
        uint64_t version = op->record.version;
        b->snapshot[i] = first + i + 1;
        op->verb = FK_STORE_STORE;
        op->version = version;
        op->request[0] = 1;
        op->request[1] = first + i + 1;
        op->record = (fk_record){ .version = version,
                                  .fence = fence,
                                  .snapshot = { (const char *)&b->snapshot[i], 8 } };
    }
    return store_apply(b, count);
}

fk_err activate_store(bench_run *run, uint64_t count, double *seconds)
{
    char folder[FOLDER_MAX], url[FOLDER_MAX + 32];
    const char *why = "";
    const fk_port port = fk_host_port();
    store_bench *b = malloc(sizeof *b);
    if (b == NULL) return FK_E_NOMEM;
    if (!folder_make("bench", folder)) {
        free(b);
        return FK_E_OS;
    }
    snprintf(url, sizeof url, "sqlite:%s/rows.db", folder);
    fk_err err = fk_store_open(fk_str_of(url), NULL, true, &port, &b->store, &why);
    if (err != FK_OK) {
        err = bench_fail(run, "store: %s", why);
    } else {
        double begun = cli_seconds();
        for (uint64_t at = 0; at < count && err == FK_OK; at += STORE_BATCH) {
            uint64_t left = count - at;
            err = store_batch(b, at, left < STORE_BATCH ? (uint32_t)left : STORE_BATCH);
        }
        *seconds = cli_seconds() - begun;
        b->store->ops->close(b->store);
    }
    folder_remove(folder);
    free(b);
    return err;
}

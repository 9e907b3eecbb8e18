/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Workloads in which senders run ahead and mailboxes grow to millions of messages: count, fanin
 * and forkjoin. They measure memory: taking message blocks, writing, reading, giving back. */

#include "bench.h"

#include <stdlib.h>

/* ---- count and fanin: producers, one counter -------------------------------------------- */

enum { FANIN_PRODUCERS = 8 };

typedef struct {
    uint32_t producer;
    uint32_t n;
} stream_item;
FK_MESSAGE(stream_item);

typedef struct {
    uint32_t unused;
} stream_go;
FK_MESSAGE(stream_go);

typedef struct {
    bench_run *run;
    uint64_t count;
    uint32_t next[FANIN_PRODUCERS]; /* what each producer's next item must be numbered */
} stream_counter;

typedef struct {
    fk_ref counter;
    uint32_t producer;
    uint32_t amount;
} stream_producer;

static fk_err counter_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    stream_counter *self = state;
    const stream_item *item = FK_AS(stream_item, msg);
    if (item == NULL) return fk_unhandled(ctx, msg);
    if (item->n != self->next[item->producer]++) {
        return bench_fail(self->run, "items of producer %u are not in order", item->producer);
    }
    if (++self->count == self->run->result.ops) bench_done(self->run);
    return FK_OK;
}

static fk_err producer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const stream_producer *self = state;
    fk_err err = FK_OK;
    if (FK_AS(stream_go, msg) == NULL) return fk_unhandled(ctx, msg);
    for (uint32_t i = 0; i < self->amount && err == FK_OK; i++) {
        err = fk_tell(ctx, self->counter, FK_MSG(stream_item, self->producer, i));
    }
    return err;
}

static fk_err run_stream(bench_run *run, uint32_t producers)
{
    fk_err err = FK_OK;
    uint64_t each = run->result.ops / producers;
    if (each > UINT32_MAX) return bench_fail(run, "--ops is too large here");
    if (each == 0) each = 1;
    run->result.ops = each * producers;

    stream_counter counter = { .run = run };
    const fk_props counter_props = { .receive = counter_receive,
                                     .state_size = sizeof counter,
                                     .init = &counter };
    stream_producer init = { .counter = bench_spawn(run, &counter_props, &err),
                             .amount = (uint32_t)each };
    const fk_props props = { .receive = producer_receive,
                             .state_size = sizeof init,
                             .init = &init };
    if (err != FK_OK) return err;
    bench_begin(run);
    for (uint32_t i = 0; i < producers; i++) {
        init.producer = i;
        fk_ref producer = bench_spawn(run, &props, &err);
        if (err != FK_OK) return err;
        fk_send(run->sys, producer, FK_MSG(stream_go, 0));
    }
    return bench_wait(run);
}

static fk_err run_count(bench_run *run)
{
    return run_stream(run, 1);
}

static fk_err run_fanin(bench_run *run)
{
    return run_stream(run, FANIN_PRODUCERS);
}

const bench_workload BENCH_COUNT = {
    .name = "count",
    .unit = "messages",
    .ops = 10000000,
    .about = "one producer sends to one counter",
    .run = run_count,
};

const bench_workload BENCH_FANIN = {
    .name = "fanin",
    .unit = "messages",
    .ops = 8000000,
    .about = "8 producers send to one counter",
    .run = run_fanin,
};

/* ---- forkjoin: one dispatcher, 60 workers, round robin ---------------------------------- */

enum { FORKJOIN_WORKERS = 60 };

typedef struct {
    uint64_t n;
} forkjoin_task;
FK_MESSAGE(forkjoin_task);

typedef struct {
    const fk_ref *worker; /* FORKJOIN_WORKERS of them */
    uint64_t each;
} forkjoin_go;
FK_MESSAGE(forkjoin_go);

typedef struct {
    bench_run *run;
    uint64_t done;
    uint64_t each;
} forkjoin_worker;

static fk_err worker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    forkjoin_worker *self = state;
    const forkjoin_task *task = FK_AS(forkjoin_task, msg);
    if (task == NULL) return fk_unhandled(ctx, msg);
    if (task->n != self->done) return bench_fail(self->run, "tasks are not in order");
    if (++self->done == self->each) {
        fk_stop_self(ctx);
        if (atomic_fetch_add(&self->run->count, 1) + 1 == FORKJOIN_WORKERS) bench_done(self->run);
    }
    return FK_OK;
}

static fk_err dispatcher_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const forkjoin_go *go = FK_AS(forkjoin_go, msg);
    fk_err err = FK_OK;
    (void)state;
    if (go == NULL) return fk_unhandled(ctx, msg);
    for (uint64_t n = 0; n < go->each; n++) {
        for (uint32_t i = 0; i < FORKJOIN_WORKERS && err == FK_OK; i++) {
            err = fk_tell(ctx, go->worker[i], FK_MSG(forkjoin_task, n));
        }
    }
    return err;
}

static fk_err run_forkjoin(bench_run *run)
{
    fk_err err = FK_OK;
    fk_ref *worker = calloc(FORKJOIN_WORKERS, sizeof *worker);
    if (worker == NULL) return FK_E_NOMEM;
    run->data = worker;
    uint64_t each = run->result.ops / FORKJOIN_WORKERS;
    if (each == 0) each = 1;
    run->result.ops = each * FORKJOIN_WORKERS;

    forkjoin_worker init = { .run = run, .each = each };
    const fk_props props = { .receive = worker_receive, .state_size = sizeof init, .init = &init };
    bench_begin(run);
    for (uint32_t i = 0; i < FORKJOIN_WORKERS; i++) worker[i] = bench_spawn(run, &props, &err);
    fk_ref dispatcher = bench_spawn(run, &(fk_props){ .receive = dispatcher_receive }, &err);
    if (err != FK_OK) return err;
    fk_send(run->sys, dispatcher, FK_MSG(forkjoin_go, worker, each));
    return bench_wait(run);
}

static void finish_forkjoin(bench_run *run)
{
    free(run->data);
}

const bench_workload BENCH_FORKJOIN = {
    .name = "forkjoin",
    .unit = "messages",
    .ops = 6000000,
    .about = "one dispatcher sends to 60 actors in turn",
    .run = run_forkjoin,
    .finish = finish_forkjoin,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two systems in two processes on loopback: remote-oneway and remote-ask.
 *
 * oneway: an actor sends numbered messages, at most WINDOW of them on their way; the receiver checks
 * their order and says after every ACK_EVERY how far it is. The window is less than a line takes, so
 * nothing is refused. ask: the main thread asks, one question at a time. Both begin their clock when
 * the two systems know each other. Memory and processor time of the second process are looked up by
 * the first, so that measuring sends nothing.
 */

#include "bench.h"
#include "bench_second.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WINDOW = 8192, ACK_EVERY = 2048 };
enum { TRIPS_MAX = 1000000 }; /* of more asks every so manieth is kept */

#define PATIENCE FK_SECONDS(20)

/* From the receiver: the number it waits for. wrong: something else came. */
typedef struct {
    uint64_t due;
    bool wrong;
} remote_ack;
FK_MESSAGE(remote_ack);
FK_CODEC_STRUCT(remote_ack, 1, FK_FIELD(remote_ack, due), FK_FIELD(remote_ack, wrong));

typedef struct {
    uint32_t unused;
} remote_go;
FK_MESSAGE(remote_go);

static const fk_codec *const REMOTE_CODECS[] = { &fk_codec_remote_ack, NULL };

/* Memory of both processes at some moment. */
typedef struct remote_memory {
    uint64_t first_kb;
    uint64_t second_kb;
} remote_memory;

typedef struct remote_pair {
    bench_second second;
    fk_ref to; /* the actor of the second process */
    char *payload;
    double second_begun_cpu;
    remote_memory begin;
    remote_memory tenth; /* when a tenth was done: pools and tables have grown by then */
    remote_memory end;
} remote_pair;

static remote_memory memory_now(const remote_pair *pair)
{
    return (remote_memory){ bench_process_kb(getpid(), "VmRSS"),
                            bench_process_kb(pair->second.pid, "VmRSS") };
}

/* ---- the second process ----------------------------------------------------------------- */

typedef struct {
    uint64_t due;
    uint64_t ops;
    uint32_t payload;
} remote_sink;

static fk_err sink_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    remote_sink *self = state;
    uint64_t number = UINT64_MAX;
    if (msg->type == &fk_type_text) return fk_reply(ctx, FK_TEXT("hello"));
    if (msg->type != &fk_type_bytes) return fk_unhandled(ctx, msg);
    if (msg->len == self->payload) memcpy(&number, msg->data, sizeof number);
    if (number != self->due) return fk_reply(ctx, FK_MSG(remote_ack, self->due, true));
    self->due++;
    if (self->due % ACK_EVERY != 0 && self->due != self->ops) return FK_OK;
    return fk_reply(ctx, FK_MSG(remote_ack, self->due, false));
}

static fk_err echo_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (msg->type == &fk_type_text) return fk_reply(ctx, FK_TEXT("hello"));
    if (msg->type != &fk_type_bytes) return fk_unhandled(ctx, msg);
    const fk_str bytes = { msg->data, msg->len };
    return fk_reply(ctx, FK_BYTES_AT(bytes));
}

/* ---- what both workloads share ---------------------------------------------------------- */

static fk_err prepare(bench_run *run, fk_system_config *config, const fk_props *props)
{
    const bench_service service = { "server", props, REMOTE_CODECS };
    remote_pair *pair = calloc(1, sizeof *pair);
    if (pair == NULL) return FK_E_NOMEM;
    pair->second.life = -1;
    run->data = pair;
    pair->payload = malloc(run->payload);
    if (pair->payload == NULL) return FK_E_NOMEM;
    memset(pair->payload, 'x', run->payload);
    config->remoting = bench_loopback(REMOTE_CODECS);
    return bench_second_start(run, &service, &pair->second) ? FK_OK : FK_E_FAILED;
}

/* The first message makes the connection, which is not what is measured. */
static fk_err pair_connect(bench_run *run, remote_pair *pair)
{
    char path[80];
    snprintf(path, sizeof path, "fraktor.tcp://second@127.0.0.1:%u/user/server",
             (unsigned)pair->second.port);
    fk_err err = fk_resolve(run->sys, fk_str_of(path), &pair->to, NULL);
    if (err != FK_OK) return bench_fail(run, "fk_resolve: %s", fk_err_text(err));
    err = fk_ask_wait(run->sys, pair->to, FK_TEXT("hello"), FK_INTO_NOTHING, PATIENCE);
    if (err != FK_OK) return bench_fail(run, "no connection: %s", fk_err_text(err));
    return FK_OK;
}

static void pair_begin(bench_run *run, remote_pair *pair)
{
    pair->begin = memory_now(pair);
    pair->tenth = pair->begin;
    pair->second_begun_cpu = bench_process_seconds(pair->second.pid);
    bench_begin(run);
}

/* After bench_wait(), while the second process is there. */
static void pair_end(bench_run *run, remote_pair *pair)
{
    run->result.cpu_seconds += bench_process_seconds(pair->second.pid) - pair->second_begun_cpu;
    pair->end = memory_now(pair);
    bench_note_add(run, "payload", (double)run->payload);
    bench_note_add(run, "cpu_ns_per_op", run->result.cpu_seconds * 1e9 / (double)run->result.ops);
    bench_note_add(run, "rss_begin_kb", (double)pair->begin.first_kb);
    bench_note_add(run, "rss_tenth_kb", (double)pair->tenth.first_kb);
    bench_note_add(run, "rss_end_kb", (double)pair->end.first_kb);
    bench_note_add(run, "second_rss_begin_kb", (double)pair->begin.second_kb);
    bench_note_add(run, "second_rss_tenth_kb", (double)pair->tenth.second_kb);
    bench_note_add(run, "second_rss_end_kb", (double)pair->end.second_kb);
    bench_note_add(run, "second_peak_rss_kb", (double)bench_process_kb(pair->second.pid, "VmHWM"));
}

static void finish_pair(bench_run *run)
{
    remote_pair *pair = run->data;
    if (pair == NULL) return;
    bench_second_stop(run, &pair->second);
    free(pair->payload);
    free(pair);
}

/* ---- oneway ----------------------------------------------------------------------------- */

typedef struct {
    bench_run *run;
    remote_pair *pair;
    uint64_t sent;
    bool measured; /* the memory at a tenth */
} remote_source;

static fk_err source_fill(fk_ctx *ctx, remote_source *self, uint64_t acknowledged)
{
    remote_pair *pair = self->pair;
    const fk_str bytes = { pair->payload, self->run->payload };
    uint64_t limit = acknowledged + WINDOW;
    if (limit > self->run->result.ops) limit = self->run->result.ops;
    for (; self->sent < limit; self->sent++) {
        memcpy(pair->payload, &self->sent, sizeof self->sent);
        fk_err err = fk_tell(ctx, pair->to, FK_BYTES_AT(bytes));
        if (err != FK_OK) return bench_fail(self->run, "fk_tell: %s", fk_err_text(err));
    }
    return FK_OK;
}

static fk_err source_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    remote_source *self = state;
    const remote_ack *ack = FK_AS(remote_ack, msg);
    if (FK_AS(remote_go, msg) != NULL) return source_fill(ctx, self, 0);
    if (ack == NULL) return fk_unhandled(ctx, msg);
    if (ack->wrong || ack->due > self->sent) {
        return bench_fail(self->run, "something else came when message %llu was due",
                          (unsigned long long)ack->due);
    }
    if (ack->due == self->run->result.ops) {
        bench_done(self->run);
        return FK_OK;
    }
    if (!self->measured && ack->due >= self->run->result.ops / 10) {
        self->measured = true;
        self->pair->tenth = memory_now(self->pair);
    }
    return source_fill(ctx, self, ack->due);
}

static fk_err prepare_oneway(bench_run *run, fk_system_config *config)
{
    const remote_sink init = { .ops = run->result.ops, .payload = run->payload };
    const fk_props props = { .receive = sink_receive, .state_size = sizeof init, .init = &init };
    return prepare(run, config, &props);
}

static fk_err run_oneway(bench_run *run)
{
    fk_err err = FK_OK;
    remote_pair *pair = run->data;
    const remote_source init = { .run = run, .pair = pair };
    const fk_props props = { .receive = source_receive, .state_size = sizeof init, .init = &init };
    fk_ref source = bench_spawn(run, &props, &err);
    if (err == FK_OK) err = pair_connect(run, pair);
    if (err != FK_OK) return err;
    pair_begin(run, pair);
    fk_send(run->sys, source, FK_MSG(remote_go, 0));
    err = bench_wait(run);
    if (err == FK_OK) pair_end(run, pair);
    return err;
}

const bench_workload BENCH_REMOTE_ONEWAY = {
    .name = "remote-oneway",
    .unit = "messages",
    .ops = 5000000,
    .about = "2 processes, messages one way, a window of them; processor time of both",
    .prepare = prepare_oneway,
    .run = run_oneway,
    .finish = finish_pair,
};

/* ---- ask -------------------------------------------------------------------------------- */

typedef struct {
    double *us;
    uint64_t count;
    uint64_t stride;
} remote_trips;

static fk_err ask_once(bench_run *run, remote_pair *pair, uint64_t number, fk_buf answer)
{
    const fk_str bytes = { pair->payload, run->payload };
    const fk_into into = { &fk_type_bytes, &answer };
    memcpy(pair->payload, &number, sizeof number);
    fk_err err = fk_ask_wait(run->sys, pair->to, FK_BYTES_AT(bytes), into, PATIENCE);
    if (err != FK_OK) return bench_fail(run, "fk_ask_wait: %s", fk_err_text(err));
    if (memcmp(pair->payload, answer.ptr, run->payload) != 0) {
        return bench_fail(run, "answer %llu is not the question", (unsigned long long)number);
    }
    return FK_OK;
}

static fk_err ask_all(bench_run *run, remote_pair *pair, remote_trips *trips, fk_buf answer)
{
    fk_err err = FK_OK;
    pair_begin(run, pair);
    for (uint64_t i = 0; i < run->result.ops && err == FK_OK; i++) {
        double asked = cli_seconds();
        err = ask_once(run, pair, i, answer);
        if (i % trips->stride == 0) trips->us[trips->count++] = (cli_seconds() - asked) * 1e6;
        if (i == run->result.ops / 10) pair->tenth = memory_now(pair);
    }
    bench_done(run);
    return err == FK_OK ? bench_wait(run) : err;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static fk_err run_remote_ask(bench_run *run)
{
    remote_pair *pair = run->data;
    remote_trips trips = { .stride = run->result.ops / TRIPS_MAX + 1 };
    fk_buf answer = { malloc(run->payload + 1u), run->payload + 1u };
    trips.us = calloc(run->result.ops / trips.stride + 1, sizeof *trips.us);
    fk_err err = answer.ptr == NULL || trips.us == NULL ? FK_E_NOMEM : pair_connect(run, pair);
    if (err == FK_OK) err = ask_all(run, pair, &trips, answer);
    if (err == FK_OK) {
        qsort(trips.us, trips.count, sizeof *trips.us, by_value);
        bench_note_add(run, "p50_us", trips.us[trips.count / 2]);
        bench_note_add(run, "p99_us", trips.us[trips.count - 1 - trips.count / 100]);
        pair_end(run, pair);
    }
    free(trips.us);
    free(answer.ptr);
    return err;
}

static fk_err prepare_ask(bench_run *run, fk_system_config *config)
{
    const fk_props props = { .receive = echo_receive };
    return prepare(run, config, &props);
}

const bench_workload BENCH_REMOTE_ASK = {
    .name = "remote-ask",
    .unit = "questions",
    .ops = 20000,
    .about = "2 processes, a thread of one asks an actor of the other, one at a time",
    .prepare = prepare_ask,
    .run = run_remote_ask,
    .finish = finish_pair,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a question costs: one actor asks another and waits for the answer before it asks again. The
 * same pair plays ping-pong in between, so that the ratio of the two means something on a machine whose
 * speed changes by the minute. */

#include "bench.h"

typedef struct {
    uint64_t n;
} ask_question;
FK_MESSAGE(ask_question);

typedef struct {
    uint64_t n;
} ask_reply;
FK_MESSAGE(ask_reply);

typedef struct {
    uint64_t trips;
    bool asks; /* else it tells */
} ask_begin;
FK_MESSAGE(ask_begin);

typedef struct {
    bench_run *run;
    fk_ref other;
    uint64_t left;
} ask_actor;

static fk_err replier_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const ask_question *question = FK_AS(ask_question, msg);
    (void)state;
    if (question == NULL) return fk_unhandled(ctx, msg);
    return fk_reply(ctx, FK_MSG(ask_reply, question->n + 1));
}

static fk_err asker_ask(fk_ctx *ctx, const ask_actor *self)
{
    return fk_ask(ctx, self->other, FK_MSG(ask_question, self->left), self->left, FK_SECONDS(5));
}

static fk_err asker_answered(fk_ctx *ctx, ask_actor *self, const fk_answer *answer)
{
    const ask_reply *reply = FK_AS(ask_reply, &answer->reply);
    if (reply == NULL) return bench_fail(self->run, "asked: %s", fk_err_text(answer->err));
    if (answer->id != self->left || reply->n != self->left + 1) {
        return bench_fail(self->run, "the answer belongs to another question");
    }
    if (--self->left > 0) return asker_ask(ctx, self);
    bench_done(self->run);
    return FK_OK;
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    ask_actor *self = state;
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer != NULL) return asker_answered(ctx, self, answer);
    const ask_reply *reply = FK_AS(ask_reply, msg);
    if (reply != NULL) {
        if (--self->left > 0) {
            return fk_tell(ctx, self->other, FK_MSG(ask_question, self->left));
        }
        bench_done(self->run);
        return FK_OK;
    }
    const ask_begin *begin = FK_AS(ask_begin, msg);
    if (begin == NULL) return fk_unhandled(ctx, msg);
    self->left = begin->trips;
    if (begin->asks) return asker_ask(ctx, self);
    return fk_tell(ctx, self->other, FK_MSG(ask_question, self->left));
}

enum { ASK_ROUNDS = 10 };

/* Adds what it took to *seconds and *cpu. */
static fk_err run_round(bench_run *run, fk_ref asker, ask_begin begin, double *seconds, double *cpu)
{
    bench_begin(run);
    fk_send(run->sys, asker, FK_MSG_AT(ask_begin, &begin));
    fk_err err = bench_wait(run);
    *seconds += run->result.seconds;
    *cpu += run->result.cpu_seconds;
    return err;
}

static fk_err run_ask(bench_run *run)
{
    fk_err err = FK_OK;
    uint64_t trips = run->result.ops / ASK_ROUNDS;
    if (trips == 0) trips = 1;
    ask_actor init = { .run = run };
    init.other = bench_spawn(run, &(fk_props){ .receive = replier_receive }, &err);
    fk_ref asker = bench_spawn(
        run, &(fk_props){ .receive = asker_receive, .state_size = sizeof init, .init = &init },
        &err);
    double told = 0, asked = 0, cpu = 0, other = 0;
    for (int i = 0; i < ASK_ROUNDS && err == FK_OK; i++) {
        err = run_round(run, asker, (ask_begin){ trips, false }, &told, &other);
        if (err == FK_OK) err = run_round(run, asker, (ask_begin){ trips, true }, &asked, &cpu);
    }
    if (err != FK_OK) return err;
    run->result.ops = trips * ASK_ROUNDS;
    run->result.seconds = asked;
    run->result.cpu_seconds = cpu;
    bench_note_add(run, "ask_ns", asked * 1e9 / (double)run->result.ops);
    bench_note_add(run, "round_trip_ns", told * 1e9 / (double)run->result.ops);
    bench_note_add(run, "ask_per_round_trip", asked / told);
    return FK_OK;
}

const bench_workload BENCH_ASK = {
    .name = "ask",
    .unit = "questions",
    .ops = 5000000,
    .about = "2 actors, one asks the other; and what that costs against ping-pong",
    .run = run_ask,
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sweep's scenarios of questions and of names under /temp. */

#include "oom/sweep.h"

enum { QUESTIONS = 20, NAMES = 40 /* more than the table's first room */ };

static fk_ref question[QUESTIONS]; /* what the target saw of them */
static size_t questions, asked, answers;

/* Answers with what is counted, if there is memory for it. */
static fk_err target_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    token t = make_token(s);
    if (questions < QUESTIONS) question[questions++] = msg->sender;
    note(s, fk_reply(ctx, (fk_out){ &fk_type_token, &t }));
    return FK_OK;
}

static fk_err silent_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    if (questions < QUESTIONS) question[questions++] = msg->sender;
    return FK_OK;
}

/* Asks when it is told, and stops, with what is still open, when the last answer is late. */
static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sweep *s = state;
    if (FK_AS(fk_answer, msg) != NULL) {
        answers++;
        return FK_OK;
    }
    for (uint64_t i = 0; i < QUESTIONS; i++) {
        token t = make_token(s), piped = make_token(s);
        fk_out what = { &fk_type_token, &t }, other = { &fk_type_token, &piped };
        if (note(s, fk_ask(ctx, s->target, what, i, FK_MILLIS(5)))) asked++;
        if (note(s, fk_ask_pipe(ctx, s->target, other, fk_self(ctx), i, FK_MILLIS(5)))) asked++;
    }
    return FK_OK;
}

static void prepare(sweep *s, fk_receive_fn target)
{
    questions = asked = answers = 0;
    fk_props props = { .receive = target, .state = s };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
    fk_props asks = { .receive = asker_receive, .state = s };
    fk_ref asker;
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("asker"), &asks, &asker));
    CHECK_OK(fk_send(s->r.sys, asker, FK_MSG(num, 1)));
}

static void prepare_answered(sweep *s)
{
    prepare(s, target_receive);
}

static void prepare_silent(sweep *s)
{
    prepare(s, silent_receive);
}

/* An answer needs no memory of its own: there is one for each question, if only a timeout. */
static void all_answered(sweep *s)
{
    rig_run(&s->r);
    rig_pass(&s->r, FK_MILLIS(8));
    CHECK_U64(answers, asked);
}

static void prepare_names(sweep *s)
{
    prepare(s, silent_receive);
    rig_run(&s->r);
    CHECK_U64(s->failed, 0);
}

static void give_names(sweep *s)
{
    char path[64];
    for (size_t i = 0; i < questions; i++) { /* without memory, none */
        fk_ref found = FK_REF_NONE;
        size_t len = fk_path_of(s->r.sys, question[i], path, sizeof(path));
        if (len == 0) continue;
        CHECK_OK(fk_resolve(s->r.sys, (fk_str){ path, len }, &found, NULL));
        CHECK(fk_ref_equal(found, question[i]));
    }
    for (int i = 0; i < NAMES; i++) {
        if (!note(s, fk_temp_register(s->r.sys, FK_STR("x"), s->target, FK_BUF(path)))) continue;
        if (i % 2 == 0) CHECK_OK(fk_temp_unregister(s->r.sys, fk_str_of(path)));
    }
    rig_pass(&s->r, FK_MILLIS(8));
    CHECK_U64(answers, asked);
}

static void prepare_waited(sweep *s)
{
    questions = 0;
    fk_props props = { .receive = target_receive, .state = s };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
}

static void ask_and_wait(sweep *s)
{
    for (int i = 0; i < 5; i++) {
        token t = make_token(s), answer;
        fk_out what = { &fk_type_token, &t };
        fk_err err = fk_ask_wait(s->r.sys, s->target, what, FK_INTO(token, &answer), FK_MILLIS(20));
        if (err == FK_OK) token_drop(&answer);
        if (err != FK_E_TIMEOUT) note(s, err); /* the answer, too, may have lacked memory */
    }
}

const scenario SWEEP_ASK[] = {
    { "ask", prepare_answered, all_answered, 0 },
    { "ask in vain", prepare_silent, all_answered, 0 },
    { "names under /temp", prepare_names, give_names, 0 },
    { "ask and wait", prepare_waited, ask_and_wait, 2 },
    { NULL, NULL, NULL, 0 },
};

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Questions of actors, on a clock that the test moves. */

#include "support/rig.h"

#include <string.h>

#define TICK FK_NANOS(1 << 20)

enum { REPLIER_MAX = 8 };

/* Keeps whoever asked; answers when it is told to. */
typedef struct replier {
    size_t count;
    fk_ref asker[REPLIER_MAX];
    uint64_t n[REPLIER_MAX];
    bool answers; /* at once, with n + 1 */
} replier;

static fk_err replier_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    replier *self = state;
    const num *question = FK_AS(num, msg);
    if (question == NULL) return fk_unhandled(ctx, msg);
    if (self->count < REPLIER_MAX) {
        self->asker[self->count] = msg->sender;
        self->n[self->count] = question->n;
    }
    self->count++;
    return self->answers ? fk_reply(ctx, FK_MSG(num, question->n + 1)) : FK_OK;
}

/* Asks when it is called; writes down what became of it. */
typedef struct asker {
    size_t count;
    uint64_t id;
    fk_err err;
    uint64_t n; /* of the reply; PROBE_OTHER for another type, 0 for none */
    fk_ref sender, reply_sender;
    fk_time at;
    bool stashes, forwards;
    fk_ref forward_to;
} asker;

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    asker *self = state;
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    if (self->stashes) {
        self->stashes = false;
        CHECK_OK(fk_stash(ctx));
        return FK_OK;
    }
    const num *reply = FK_AS(num, &answer->reply);
    self->count++;
    self->id = answer->id;
    self->err = answer->err;
    self->n = reply != NULL ? reply->n : answer->reply.type != NULL ? PROBE_OTHER : 0;
    self->sender = msg->sender;
    self->reply_sender = answer->reply.sender;
    self->at = fk_now(ctx);
    return self->forwards ? fk_forward(ctx, self->forward_to) : FK_OK;
}

typedef struct world {
    rig r;
    replier replier;
    asker asker;
    fk_ref to, from;
    /* What do_ask() asks. */
    fk_ref target, pipe_to;
    uint64_t n;
    fk_time timeout;
    fk_err err;
} world;

static void world_start_with(world *w, fk_system_config config)
{
    memset(w, 0, sizeof(*w));
    config.name = "test";
    rig_start_with(&w->r, config);
    fk_props replies = { .receive = replier_receive, .state = &w->replier };
    fk_props asks = { .receive = asker_receive, .state = &w->asker };
    CHECK_OK(fk_spawn(w->r.sys, FK_STR("replier"), &replies, &w->to));
    CHECK_OK(fk_spawn(w->r.sys, FK_STR("asker"), &asks, &w->from));
    w->target = w->to;
    w->n = 5;
    w->timeout = FK_MILLIS(10);
}

static void world_start(world *w)
{
    world_start_with(w, (fk_system_config){ 0 });
}

static fk_err do_ask(fk_ctx *ctx, void *arg)
{
    world *w = arg;
    w->err = fk_ask(ctx, w->target, FK_MSG(num, w->n), w->n * 10, w->timeout);
    return FK_OK;
}

static fk_err do_pipe(fk_ctx *ctx, void *arg)
{
    world *w = arg;
    w->err = fk_ask_pipe(ctx, w->target, FK_MSG(num, w->n), w->pipe_to, w->n * 10, w->timeout);
    return FK_OK;
}

static void ask(world *w)
{
    w->err = FK_E_FAILED;
    rig_do(&w->r, w->from, do_ask, w);
}

/* As the actor that was asked would. */
static void answer(world *w, size_t question, uint64_t n)
{
    CHECK(question < w->replier.count);
    CHECK_OK(fk_send_from(w->r.sys, w->replier.asker[question], w->to, FK_MSG(num, n)));
    rig_run(&w->r);
}

TEST(ask_is_answered)
{
    world w;
    world_start(&w);
    w.replier.answers = true;
    ask(&w);
    CHECK_OK(w.err);
    CHECK_U64(w.asker.count, 1);
    CHECK_U64(w.asker.id, 50);
    CHECK_OK(w.asker.err);
    CHECK_U64(w.asker.n, 6);
    CHECK(fk_ref_equal(w.asker.sender, w.to));
    CHECK(fk_ref_equal(w.asker.reply_sender, w.to));
    CHECK(!fk_is_alive(w.r.sys, w.replier.asker[0]));
    rig_pass(&w.r, FK_MILLIS(100));
    CHECK_U64(w.asker.count, 1); /* and nothing comes when its time would be up */
    CHECK_U64(w.r.letters.count, 0);
    rig_stop(&w.r);
}

TEST(ask_times_out_never_early_and_a_late_reply_is_a_dead_letter)
{
    static const fk_time TIMEOUTS[] = { 1, FK_MICROS(1500), FK_MILLIS(10), FK_SECONDS(30) };
    for (size_t i = 0; i < sizeof(TIMEOUTS) / sizeof(TIMEOUTS[0]); i++) {
        world w;
        world_start(&w);
        w.timeout = TIMEOUTS[i];
        fk_time began = atomic_load(&w.r.now);
        ask(&w);
        CHECK_OK(w.err);
        CHECK_U64(w.asker.count, 0);
        rig_pass(&w.r, w.timeout + 2 * TICK);
        CHECK_U64(w.asker.count, 1);
        CHECK_ERR(w.asker.err, FK_E_TIMEOUT);
        CHECK_U64(w.asker.id, 50);
        CHECK_U64(w.asker.n, 0);
        CHECK(fk_ref_equal(w.asker.sender, w.to)); /* who was asked */
        CHECK(w.asker.at >= began + w.timeout);
        CHECK(w.asker.at <= began + w.timeout + TICK + FK_MILLIS(1));
        CHECK(!fk_is_alive(w.r.sys, w.replier.asker[0]));
        answer(&w, 0, 9);
        CHECK_U64(w.asker.count, 1);
        CHECK_U64(w.r.letters.of[FK_REASON_LATE_REPLY], 1);
        CHECK_STR(fk_reason_name(w.r.letters.last.reason), "late_reply");
        CHECK(fk_ref_equal(w.r.letters.last.sender, w.to));
        rig_stop(&w.r);
    }
}

TEST(ask_without_a_limit_waits)
{
    world w;
    world_start(&w);
    w.timeout = FK_NEVER;
    ask(&w);
    rig_advance(&w.r, FK_SECONDS(86400));
    rig_advance(&w.r, FK_SECONDS(86400));
    CHECK_U64(w.asker.count, 0);
    answer(&w, 0, 3);
    CHECK_U64(w.asker.n, 3);
    rig_stop(&w.r);
}

TEST(ask_first_reply_wins)
{
    world w;
    world_start(&w);
    ask(&w);
    answer(&w, 0, 7);
    answer(&w, 0, 8);
    CHECK_U64(w.asker.count, 1);
    CHECK_U64(w.asker.n, 7);
    CHECK_U64(w.r.letters.count, 1);
    CHECK_U64(w.r.letters.of[FK_REASON_LATE_REPLY], 1);
    rig_stop(&w.r);
}

/* The reference of a question that is over does not reach the next one, which uses the same place. */
TEST(ask_stale_reference_does_not_answer_the_next_question)
{
    world w;
    world_start(&w);
    for (uint64_t i = 0; i < 4; i++) {
        w.n = i;
        ask(&w);
        for (uint64_t j = 0; j < i; j++) answer(&w, j, 1000 + j);
        CHECK_U64(w.asker.count, i);
        answer(&w, i, i);
        CHECK_U64(w.asker.count, i + 1);
        CHECK_U64(w.asker.n, i);
        CHECK_U64(w.asker.id, i * 10);
    }
    CHECK_U64(w.r.letters.of[FK_REASON_LATE_REPLY], 6);
    CHECK_U64(w.r.letters.count, 6);
    rig_stop(&w.r);
}

TEST(ask_that_takes_no_time_is_not_sent)
{
    static const fk_time TIMEOUTS[] = { 0, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof(TIMEOUTS) / sizeof(TIMEOUTS[0]); i++) {
        world w;
        world_start(&w);
        w.timeout = TIMEOUTS[i];
        ask(&w);
        CHECK_OK(w.err);
        CHECK_U64(w.asker.count, 1);
        CHECK_ERR(w.asker.err, FK_E_TIMEOUT);
        CHECK_U64(w.replier.count, 0);
        CHECK_U64(w.r.letters.count, 0);
        rig_stop(&w.r);
    }
}

TEST(ask_of_the_dead_fails_at_once)
{
    world w;
    world_start(&w);
    fk_stop(w.r.sys, w.to);
    rig_run(&w.r);
    ask(&w);
    CHECK_OK(w.err);
    CHECK_ERR(w.asker.err, FK_E_DEAD);
    CHECK_U64(w.r.letters.of[FK_REASON_STOPPED], 1);
    CHECK(fk_ref_equal(w.r.letters.last.to, w.to));
    CHECK(fk_ref_equal(w.r.letters.last.sender, w.from));
    w.target = FK_REF_NONE;
    ask(&w);
    CHECK_OK(w.err);
    CHECK_U64(w.asker.count, 2);
    CHECK_ERR(w.asker.err, FK_E_DEAD);
    CHECK_U64(w.r.letters.of[FK_REASON_NO_RECEIVER], 1);
    rig_stop(&w.r);
}

TEST(ask_of_a_full_mailbox_fails_as_tell_does)
{
    world w;
    world_start(&w);
    probe p;
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 1;
    CHECK_OK(fk_spawn(w.r.sys, FK_STR("small"), &props, &w.target));
    /* Both in one turn: the mailbox is not emptied in between. */
    CHECK_OK(fk_send(w.r.sys, w.from, FK_MSG(rig_call, do_ask, &w)));
    rig_do(&w.r, w.from, do_ask, &w);
    CHECK_ERR(w.err, FK_E_FULL);
    rig_pass(&w.r, FK_MILLIS(20));
    CHECK_U64(w.asker.count, 1); /* of the first one */
    CHECK_ERR(w.asker.err, FK_E_TIMEOUT);
    CHECK_U64(w.r.letters.of[FK_REASON_FULL], 1);
    rig_stop(&w.r);
}

TEST(ask_answer_with_another_type_and_with_contents)
{
    world w;
    _Atomic int drops = 0;
    world_start(&w);
    ask(&w);
    fk_out text = FK_TEXT("what?");
    CHECK_OK(fk_send(w.r.sys, w.replier.asker[0], text));
    rig_run(&w.r);
    CHECK_OK(w.asker.err);
    CHECK_U64(w.asker.n, PROBE_OTHER);
    w.asker.stashes = true; /* the reply is dropped with its answer, not before */
    ask(&w);
    owned_large large = { .drops = &drops, .n = 3 };
    memset(large.filling, 3, sizeof(large.filling));
    CHECK_OK(fk_send(w.r.sys, w.replier.asker[1], FK_MSG_AT(owned_large, &large)));
    rig_run(&w.r);
    CHECK_U64(w.asker.count, 1);
    CHECK_U64(drops, 0);
    fk_stop(w.r.sys, w.from); /* with an answer in the stash */
    rig_run(&w.r);
    CHECK_U64(drops, 1);
    CHECK_U64(w.r.letters.of[FK_REASON_STOPPED], 1);
    CHECK(w.r.letters.last.type == &fk_type_owned_large); /* the reply, not its wrapping */
    rig_stop(&w.r);
}

static void check_asker_ends(bool answered)
{
    world w;
    _Atomic int drops = 0;
    world_start(&w);
    ask(&w);
    owned reply = { &drops, 1 };
    fk_stop(w.r.sys, w.from);
    if (answered) CHECK_OK(fk_send(w.r.sys, w.replier.asker[0], FK_MSG_AT(owned, &reply)));
    rig_run(&w.r);
    CHECK(!fk_is_alive(w.r.sys, w.replier.asker[0]));
    if (!answered) CHECK_OK(fk_send(w.r.sys, w.replier.asker[0], FK_MSG_AT(owned, &reply)));
    CHECK_U64(drops, 1);
    CHECK_U64(w.asker.count, 0);
    CHECK_U64(w.r.letters.count, 1);
    CHECK_U64(w.r.letters.of[FK_REASON_LATE_REPLY], !answered);
    CHECK_U64(w.r.letters.of[FK_REASON_STOPPED], answered);
    rig_pass(&w.r, FK_MILLIS(20)); /* nor does anything happen when its time would be up */
    CHECK_U64(w.r.letters.count, 1);
    rig_stop(&w.r);
}

TEST(ask_ends_with_its_asker)
{
    check_asker_ends(false);
    check_asker_ends(true);
}

static fk_err do_fail(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_E_FAILED;
}

TEST(ask_is_answered_in_the_next_life_of_its_asker)
{
    world w;
    world_start(&w);
    ask(&w);
    CHECK_OK(w.err);
    rig_do(&w.r, w.from, do_fail, NULL);
    CHECK_U64(w.r.failures.count, 1);
    CHECK_U64(w.asker.count, 0);
    answer(&w, 0, 7);
    CHECK_U64(w.asker.count, 1);
    CHECK_U64(w.asker.id, 50);
    CHECK_U64(w.asker.n, 7);
    CHECK_U64(w.r.letters.count, 0);
    rig_stop(&w.r);
}

TEST(ask_many_at_once_and_all_end_with_their_asker)
{
    world w;
    world_start(&w);
    for (w.n = 0; w.n < 1000; w.n++)
        CHECK_OK(fk_send(w.r.sys, w.from, FK_MSG(rig_call, do_ask, &w)));
    rig_run(&w.r);
    CHECK_U64(w.replier.count, 1000);
    answer(&w, 3, 1);
    CHECK_U64(w.asker.count, 1);
    fk_stop(w.r.sys, w.from);
    rig_run(&w.r);
    for (size_t i = 0; i < REPLIER_MAX; i++) CHECK(!fk_is_alive(w.r.sys, w.replier.asker[i]));
    rig_stop(&w.r);
}

TEST(ask_can_be_stopped)
{
    static fk_err (*const ENDS[])(fk_system *, fk_ref) = { fk_stop, fk_poison };
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++) {
        world w;
        world_start(&w);
        ask(&w);
        CHECK(fk_is_alive(w.r.sys, w.replier.asker[0]));
        CHECK_OK(ENDS[i](w.r.sys, w.replier.asker[0]));
        CHECK_OK(fk_await_stopped(w.r.sys, w.replier.asker[0], 0));
        rig_run(&w.r);
        CHECK_U64(w.asker.count, 1);
        CHECK_ERR(w.asker.err, FK_E_KILLED);
        CHECK_ERR(ENDS[i](w.r.sys, w.replier.asker[0]), FK_E_DEAD);
        CHECK_U64(w.r.letters.count, 0);
        rig_stop(&w.r);
    }
}

TEST(ask_identify_answers_for_the_question)
{
    world w;
    probe p;
    world_start(&w);
    fk_ref curious = probe_spawn(&w.r, &p);
    ask(&w);
    CHECK_OK(fk_send_from(w.r.sys, w.replier.asker[0], curious, FK_IDENTIFY(4)));
    rig_run(&w.r);
    CHECK(p.type == &fk_type_fk_identity);
    fk_identity identity;
    memcpy(&identity, p.bytes, sizeof(identity));
    CHECK(fk_ref_equal(identity.ref, w.replier.asker[0]));
    CHECK_U64(w.asker.count, 0); /* it is still waited for */
    rig_stop(&w.r);
}

TEST(ask_by_pekkos_rules_takes_identify_for_the_answer)
{
    world w;
    probe p;
    world_start_with(&w, (fk_system_config){ .paths.rules = FK_RULES_PEKKO });
    fk_ref curious = probe_spawn(&w.r, &p);
    ask(&w);
    CHECK_OK(fk_send_from(w.r.sys, w.replier.asker[0], curious, FK_IDENTIFY(4)));
    rig_run(&w.r);
    CHECK_U64(p.count, 0);
    CHECK_U64(w.asker.count, 1);
    CHECK_U64(w.asker.n, PROBE_OTHER);
    rig_stop(&w.r);
}

TEST(ask_counts_with_actors_max)
{
    world w;
    world_start_with(&w, (fk_system_config){ .actors_max = 4 });
    ask(&w);
    ask(&w);
    CHECK_OK(w.err);
    ask(&w);
    CHECK_ERR(w.err, FK_E_LIMIT);
    CHECK_U64(w.r.letters.of[FK_REASON_NO_MEMORY], 1);
    for (size_t i = 0; i < 2; i++) answer(&w, i, 1);
    w.replier.answers = true;
    for (int i = 0; i < 100; i++) { /* one that is over counts no more, wherever it is kept */
        ask(&w);
        CHECK_OK(w.err);
    }
    CHECK_U64(w.asker.count, 102);
    fk_stats stats;
    fk_stats_get(w.r.sys, &stats);
    CHECK_U64(stats.actors, 2); /* they are none */
    rig_stop(&w.r);
}

TEST(ask_pipe_gives_the_answer_to_another)
{
    world w;
    probe p;
    world_start(&w);
    w.pipe_to = probe_spawn(&w.r, &p);
    rig_do(&w.r, w.from, do_pipe, &w);
    CHECK_OK(w.err);
    fk_stop(w.r.sys, w.from); /* it goes on without who asked */
    rig_run(&w.r);
    CHECK(fk_is_alive(w.r.sys, w.replier.asker[0]));
    answer(&w, 0, 6);
    CHECK_U64(p.count, 1);
    CHECK(p.type == &fk_type_fk_answer);
    fk_answer got;
    memcpy(&got, p.bytes, sizeof(got));
    CHECK_U64(got.id, 50);
    CHECK_OK(got.err);
    CHECK(got.reply.type == &fk_type_num);
    CHECK(fk_ref_equal(p.sender, w.to));
    rig_stop(&w.r);
}

TEST(ask_pipe_to_nobody_and_to_the_dead)
{
    world w;
    world_start(&w);
    w.pipe_to = FK_REF_NONE;
    rig_do(&w.r, w.from, do_pipe, &w);
    rig_do(&w.r, w.from, do_pipe, &w);
    answer(&w, 0, 6);
    CHECK_U64(w.r.letters.of[FK_REASON_NO_RECEIVER], 1);
    CHECK(w.r.letters.last.type == &fk_type_num);
    rig_pass(&w.r, FK_MILLIS(20)); /* that it took too long, nobody misses */
    CHECK_U64(w.r.letters.count, 1);
    rig_do(&w.r, w.from, do_pipe, &w); /* still under way when the system ends */
    rig_stop(&w.r);
}

/* B asks C in the name of A's question: A gets C's reply, or what became of B's question. */
TEST(ask_pipe_into_another_question)
{
    for (int i = 0; i < 2; i++) {
        world w;
        world_start(&w);
        ask(&w);
        w.pipe_to = w.replier.asker[0];
        w.timeout = FK_MILLIS(5);
        rig_do(&w.r, w.from, do_pipe, &w);
        CHECK_U64(w.replier.count, 2);
        if (i == 0)
            answer(&w, 1, 77);
        else
            rig_pass(&w.r, FK_MILLIS(8));
        CHECK_U64(w.asker.count, 1);
        CHECK_U64(w.asker.n, i == 0 ? 77 : 0);
        CHECK_ERR(w.asker.err, i == 0 ? FK_OK : FK_E_TIMEOUT);
        rig_pass(&w.r, FK_MILLIS(20));
        CHECK_U64(w.asker.count, 1);
        CHECK_U64(w.r.letters.count, 0);
        rig_stop(&w.r);
    }
}

TEST(ask_answer_can_be_forwarded)
{
    world w;
    world_start(&w);
    asker other = { 0 };
    CHECK_OK(fk_spawn(w.r.sys, FK_STR(""), &(fk_props){ .receive = asker_receive, .state = &other },
                      &w.asker.forward_to));
    w.asker.forwards = true;
    ask(&w);
    answer(&w, 0, 41);
    CHECK_U64(w.asker.n, 41);
    CHECK_U64(other.n, 41);
    CHECK_U64(other.id, 50);
    ask(&w); /* to a question that waits: what the answer says is the answer there */
    w.asker.forwards = false;
    other.forwards = true;
    other.forward_to = w.replier.asker[1];
    fk_ref first = w.from;
    w.from = w.asker.forward_to;
    ask(&w);
    answer(&w, 2, 42);
    CHECK_U64(other.n, 42);
    CHECK_U64(w.asker.n, 42);
    CHECK_OK(w.asker.err);
    CHECK_U64(w.r.letters.count, 0);
    w.from = first;
    rig_stop(&w.r);
}

TEST(ask_in_all_kinds_of_mailboxes)
{
    for (fk_mailbox_kind kind = FK_MAILBOX_UNBOUNDED; kind <= FK_MAILBOX_BOUNDED; kind++) {
        world w;
        world_start(&w);
        fk_props props = { .receive = asker_receive, .state = &w.asker, .mailbox = kind };
        props.capacity = 1;
        CHECK_OK(fk_spawn(w.r.sys, FK_STR(""), &props, &w.from));
        ask(&w);
        ask(&w);
        answer(&w, 0, 1);
        answer(&w, 1, 2);
        CHECK_U64(w.asker.count, 2);
        rig_stop(&w.r);
    }
}

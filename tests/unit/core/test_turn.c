/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who gets the worker, as seen from outside. */

#include "support/rig.h"

enum { EVENTS = 4096 };

/* Writes its number into a common log for each message. */
typedef struct runner {
    unsigned char *log;
    size_t *count;
    unsigned char id;
    rig *r;
    fk_time work;
} runner;

static fk_err runner_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    runner *me = state;
    (void)ctx;
    (void)msg;
    if (*me->count < EVENTS) me->log[(*me->count)++] = me->id;
    if (me->r != NULL) atomic_fetch_add(&me->r->now, me->work);
    return FK_OK;
}

typedef struct race {
    rig r;
    unsigned char log[EVENTS];
    size_t count;
    runner runner[4];
    fk_ref ref[4];
} race;

static void race_start(race *c, fk_system_config config, uint32_t throughput, fk_time work)
{
    c->count = 0;
    rig_start_with(&c->r, config);
    for (unsigned char i = 0; i < 4; i++) {
        c->runner[i] = (runner){ c->log, &c->count, i, &c->r, work };
        fk_props props = { .receive = runner_receive,
                           .state = &c->runner[i],
                           .throughput = throughput };
        CHECK_OK(fk_spawn(c->r.sys, FK_STR(""), &props, &c->ref[i]));
    }
    rig_run(&c->r);
}

static void race_fill(race *c, int each)
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < each; j++) CHECK_OK(fk_send(c->r.sys, c->ref[i], FK_MSG(num, 1)));
    }
}

/* The longest run of messages of one actor while others still had some to do. */
static size_t longest_run(const race *c, size_t each)
{
    size_t done[4] = { 0 }, run = 0, longest = 0;
    for (size_t i = 0; i < c->count; i++) {
        run = i > 0 && c->log[i] == c->log[i - 1] ? run + 1 : 1;
        done[c->log[i]]++;
        size_t left = 0;
        for (int j = 0; j < 4; j++) left += j != c->log[i] ? each - done[j] : 0;
        if (left > 0 && run > longest) longest = run;
    }
    return longest;
}

TEST(turn_ends_after_the_throughput_of_the_system)
{
    static race c;
    race_start(&c, (fk_system_config){ .throughput = 10 }, 0, 0);
    race_fill(&c, 200);
    rig_run(&c.r);
    CHECK_U64(c.count, 800);
    CHECK_U64(longest_run(&c, 200), 10);
    rig_stop(&c.r);
}

TEST(turn_ends_after_the_throughput_of_the_actor)
{
    static race c;
    race_start(&c, (fk_system_config){ .throughput = 100 }, 3, 0);
    race_fill(&c, 200);
    rig_run(&c.r);
    CHECK_U64(c.count, 800);
    CHECK_U64(longest_run(&c, 200), 3);
    rig_stop(&c.r);
}

TEST(turn_of_one_message_is_strictly_fair)
{
    static race c;
    race_start(&c, (fk_system_config){ 0 }, 1, 0);
    race_fill(&c, 100);
    rig_run(&c.r);
    CHECK_U64(c.count, 400);
    for (size_t i = 4; i < 400; i++) CHECK_U64(c.log[i], c.log[i - 4]);
    rig_stop(&c.r);
}

TEST(turn_ends_when_its_time_is_up)
{
    static race c;
    /* Each message takes 100 us on the rig's clock; a slice is 1 ms; the clock is read every 32
     * messages, so no turn is longer than 64. */
    race_start(&c, (fk_system_config){ .throughput = 100000, .slice = FK_MILLIS(1) }, 0,
               FK_MICROS(100));
    race_fill(&c, 500);
    rig_run(&c.r);
    CHECK_U64(c.count, 2000);
    CHECK(longest_run(&c, 500) <= 64);
    rig_stop(&c.r);
}

/* ---- a pair that chats does not keep the worker ------------------------------------------ */

typedef struct chatter {
    fk_ref other;
    uint64_t left;
    uint64_t *said;
} chatter;

static fk_err chat(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    chatter *me = state;
    (void)msg;
    ++*me->said;
    if (me->left-- == 0) return FK_OK;
    return fk_tell(ctx, me->other, FK_MSG(num, 1));
}

static fk_err note_said(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t **pair = state; /* what is said, and where to write it down */
    (void)ctx;
    (void)msg;
    *pair[1] = *pair[0];
    return FK_OK;
}

TEST(turn_of_a_chatting_pair_is_shared)
{
    rig r;
    uint64_t said = 0, at = UINT64_MAX;
    uint64_t *pair[2] = { &said, &at };
    chatter a = { FK_REF_NONE, 100000, &said }, b = { FK_REF_NONE, 100000, &said };
    fk_ref to_a, to_b, third;
    rig_start_with(&r, (fk_system_config){ .throughput = 50 });
    CHECK_OK(fk_spawn(r.sys, FK_STR("a"), &(fk_props){ .receive = chat, .state = &a }, &to_a));
    CHECK_OK(fk_spawn(r.sys, FK_STR("b"), &(fk_props){ .receive = chat, .state = &b }, &to_b));
    CHECK_OK(
        fk_spawn(r.sys, FK_STR("c"), &(fk_props){ .receive = note_said, .state = pair }, &third));
    a.other = to_b;
    b.other = to_a;
    rig_run(&r);
    CHECK_OK(fk_send(r.sys, to_a, FK_MSG(num, 1)));
    CHECK_OK(fk_send(r.sys, third, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK(said > 100000);
    CHECK(at <= 200); /* the third did not wait for the end of the conversation */
    rig_stop(&r);
}

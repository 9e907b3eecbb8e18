/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bounded mailboxes: an exact capacity and four ways to deal with one message too many. */

#include <pthread.h>

#include "support/rig.h"

static fk_ref spawn_bounded(rig *r, probe *p, fk_overflow overflow, uint32_t capacity)
{
    fk_props props = probe_props(p);
    fk_ref ref = FK_REF_NONE;
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.overflow = overflow;
    props.capacity = capacity;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    rig_run(r);
    return ref;
}

static void check_got(const probe *p, uint64_t first, uint64_t count)
{
    CHECK_U64(p->count, count);
    for (uint64_t i = 0; i < count; i++) CHECK_U64(p->n[i], first + i);
}

TEST(bounded_fail_refuses_the_message_over_capacity)
{
    for (uint32_t capacity = 1; capacity < 40; capacity += 3) {
        rig r;
        probe p;
        rig_start(&r);
        fk_ref to = spawn_bounded(&r, &p, FK_OVERFLOW_FAIL, capacity);
        for (uint64_t i = 0; i < capacity; i++) CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
        CHECK_ERR(fk_send(r.sys, to, FK_MSG(num, 1000)), FK_E_FULL);
        CHECK_ERR(fk_send(r.sys, to, FK_MSG(num, 1001)), FK_E_FULL);
        CHECK_U64(r.letters.of[FK_REASON_FULL], 2);
        rig_run(&r);
        check_got(&p, 0, capacity);
        CHECK_OK(fk_send(r.sys, to, FK_MSG(num, capacity)));
        rig_run(&r);
        check_got(&p, 0, capacity + 1);
        rig_stop(&r);
    }
}

TEST(bounded_drop_newest_keeps_the_first)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = spawn_bounded(&r, &p, FK_OVERFLOW_DROP_NEWEST, 4);
    for (uint64_t i = 0; i < 10; i++) CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
    CHECK_U64(r.letters.of[FK_REASON_DROPPED_NEWEST], 6);
    CHECK_U64(*(const uint64_t *)(const void *)r.letters.bytes, 9);
    rig_run(&r);
    check_got(&p, 0, 4);
    rig_stop(&r);
}

TEST(bounded_drop_oldest_keeps_the_last)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = spawn_bounded(&r, &p, FK_OVERFLOW_DROP_OLDEST, 4);
    for (uint64_t i = 0; i < 10; i++) CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
    CHECK_U64(r.letters.of[FK_REASON_DROPPED_OLDEST], 6);
    CHECK_U64(*(const uint64_t *)(const void *)r.letters.bytes, 5);
    CHECK(fk_ref_equal(r.letters.last.to, to));
    rig_run(&r);
    check_got(&p, 6, 4);
    rig_stop(&r);
}

typedef struct flood {
    fk_ref to;
    int ok, full;
} flood;

static fk_err tell_many(fk_ctx *ctx, void *arg)
{
    flood *f = arg;
    for (uint64_t i = 0; i < 10; i++) {
        fk_err err = fk_tell(ctx, f->to, FK_MSG(num, i));
        if (err == FK_OK)
            f->ok++;
        else if (err == FK_E_FULL)
            f->full++;
    }
    return FK_OK;
}

TEST(bounded_block_never_blocks_an_actor)
{
    rig r;
    probe p;
    rig_start(&r);
    flood f = { spawn_bounded(&r, &p, FK_OVERFLOW_BLOCK, 4), 0, 0 };
    rig_do(&r, doer_spawn(&r), tell_many, &f);
    CHECK_U64(f.ok, 4);
    CHECK_U64(f.full, 6);
    CHECK_U64(r.letters.of[FK_REASON_FULL], 6);
    check_got(&p, 0, 4);
    rig_stop(&r);
}

/* Answers whom it is told about, by fk_reply() and by fk_tell(). */
typedef struct answers {
    fk_err reply, tell;
    int count;
} answers;

static fk_err answer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    answers *a = *(answers **)state;
    a->count++;
    a->tell = fk_tell(ctx, msg->sender, FK_MSG(num, 1));
    a->reply = fk_reply(ctx, FK_MSG(num, 2));
    return a->reply;
}

/* Whoever returned what fk_reply() says would be restarted, and stopped after ten times. */
TEST(bounded_answers_not_taken_are_no_failure)
{
    rig r;
    probe p;
    answers a = { .count = 0 }, *own = &a;
    fk_ref answerer;
    rig_start(&r);
    fk_ref asker = spawn_bounded(&r, &p, FK_OVERFLOW_FAIL, 1);
    fk_props props = { .receive = answer_receive, .state_size = sizeof(own), .init = &own };
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &answerer));
    /* The asker does not get a turn before all have been answered. */
    for (int i = 0; i < 20; i++) {
        CHECK_OK(fk_send_from(r.sys, answerer, asker, FK_MSG(num, 0)));
    }
    rig_run(&r);
    CHECK_U64(a.count, 20);
    CHECK_ERR(a.tell, FK_E_FULL);
    CHECK_OK(a.reply);
    CHECK_U64(r.failures.count, 0);
    CHECK(fk_is_alive(r.sys, answerer));
    CHECK_U64(r.letters.of[FK_REASON_FULL], 39);
    rig_stop(&r);
}

static fk_err send_many_inside(fk_ctx *ctx, void *arg)
{
    flood *f = arg;
    for (uint64_t i = 0; i < 10; i++) {
        fk_err err = fk_send(fk_system_of(ctx), f->to, FK_MSG(num, i));
        if (err == FK_OK)
            f->ok++;
        else if (err == FK_E_FULL)
            f->full++;
    }
    return FK_OK;
}

TEST(bounded_block_never_blocks_an_actor_that_sends_like_an_outsider)
{
    rig r;
    probe p;
    rig_start(&r);
    flood f = { spawn_bounded(&r, &p, FK_OVERFLOW_BLOCK, 4), 0, 0 };
    rig_do(&r, doer_spawn(&r), send_many_inside, &f);
    CHECK_U64(f.ok, 4);
    CHECK_U64(f.full, 6);
    check_got(&p, 0, 4);
    rig_stop(&r);
}

typedef struct sender {
    rig *r;
    fk_ref to;
    uint64_t count;
    _Atomic uint64_t sent;
} sender;

static void *send_many(void *arg)
{
    sender *s = arg;
    for (uint64_t i = 0; i < s->count; i++) {
        CHECK_OK(fk_send(s->r->sys, s->to, FK_MSG(num, i)));
        atomic_fetch_add(&s->sent, 1);
    }
    return NULL;
}

static void wait_for(_Atomic uint64_t *value, uint64_t at_least)
{
    int64_t deadline = test_clock() + FK_SECONDS(20);
    while (atomic_load(value) < at_least) {
        CHECK(test_clock() < deadline);
        test_sleep_ms(1);
    }
}

TEST(bounded_block_holds_an_outside_thread_until_there_is_room)
{
    rig r;
    probe p;
    pthread_t thread;
    rig_start(&r);
    sender s = { &r, spawn_bounded(&r, &p, FK_OVERFLOW_BLOCK, 4), 100, 0 };
    CHECK_U64(pthread_create(&thread, NULL, send_many, &s), 0);
    wait_for(&s.sent, 4);
    test_sleep_ms(20);
    CHECK_U64(atomic_load(&s.sent), 4); /* it sleeps: nobody has run the actor */
    int64_t deadline = test_clock() + FK_SECONDS(20);
    while (atomic_load(&s.sent) < 100) {
        rig_run(&r);
        CHECK(test_clock() < deadline);
    }
    pthread_join(thread, NULL);
    rig_run(&r);
    check_got(&p, 0, 100);
    CHECK_U64(r.letters.count, 0);
    rig_stop(&r);
}

TEST(bounded_block_lets_go_when_the_actor_stops)
{
    rig r;
    probe p;
    pthread_t thread;
    rig_start(&r);
    sender s = { &r, spawn_bounded(&r, &p, FK_OVERFLOW_BLOCK, 2), 5, 0 };
    CHECK_U64(pthread_create(&thread, NULL, send_many, &s), 0);
    wait_for(&s.sent, 2);
    test_sleep_ms(5);
    CHECK_OK(fk_stop(r.sys, s.to));
    rig_run(&r);
    pthread_join(thread, NULL);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 5);
    rig_stop(&r);
}

TEST(bounded_capacity_counts_what_waits_not_what_is_handled)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = spawn_bounded(&r, &p, FK_OVERFLOW_FAIL, 2);
    for (uint64_t i = 0; i < 100; i++) {
        CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
        rig_run(&r);
    }
    check_got(&p, 0, 100);
    rig_stop(&r);
}

TEST(bounded_mailbox_of_an_ended_actor_serves_the_next)
{
    rig r;
    probe p, q;
    rig_start(&r);
    fk_ref old = spawn_bounded(&r, &p, FK_OVERFLOW_FAIL, 2);
    CHECK_OK(fk_send(r.sys, old, FK_MSG(num, 1)));
    CHECK_OK(fk_stop(r.sys, old));
    rig_run(&r);
    fk_ref next = spawn_bounded(&r, &q, FK_OVERFLOW_DROP_OLDEST, 3);
    CHECK_OK(fk_send(r.sys, old, FK_MSG(num, 2)));
    for (uint64_t i = 0; i < 4; i++) CHECK_OK(fk_send(r.sys, next, FK_MSG(num, i)));
    rig_run(&r);
    check_got(&q, 1, 3);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 2);
    CHECK_U64(r.letters.of[FK_REASON_DROPPED_OLDEST], 1);
    rig_stop(&r);
}

TEST(bounded_poison_gets_through_a_full_mailbox)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref to = spawn_bounded(&r, &p, FK_OVERFLOW_FAIL, 3);
    for (uint64_t i = 0; i < 3; i++) CHECK_OK(fk_send(r.sys, to, FK_MSG(num, i)));
    CHECK_OK(fk_poison(r.sys, to));
    rig_run(&r);
    check_got(&p, 0, 3);
    CHECK(p.stopped);
    CHECK(!fk_is_alive(r.sys, to));
    rig_stop(&r);
}

TEST(bounded_props_are_checked)
{
    rig r;
    fk_ref ref;
    rig_start(&r);
    fk_props props = { .receive = probe_receive, .mailbox = FK_MAILBOX_BOUNDED };
    CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    props.capacity = 1;
    props.overflow = (fk_overflow)17;
    CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    rig_stop(&r);
}

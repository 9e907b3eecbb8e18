/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Mailboxes that are not first in, first out. */

#include "support/rig.h"

/* The upper half of n is the priority, with 1000 standing for 0; the lower half tells messages of
 * one priority apart. */
static int64_t priority_of(const fk_msg *msg)
{
    const num *m = FK_AS(num, msg);
    CHECK(m != NULL); /* nothing but what the test sent is asked about */
    return (int64_t)(m->n >> 32) - 1000;
}

static fk_out message(num *m, int64_t priority, uint32_t n)
{
    *m = (num){ (uint64_t)(priority + 1000) << 32 | n };
    return (fk_out){ &fk_type_num, m };
}

static fk_ref spawn_kind(rig *r, probe *p, fk_mailbox_kind kind)
{
    fk_props props = probe_props(p);
    fk_ref ref = FK_REF_NONE;
    props.mailbox = kind;
    props.priority = priority_of;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    rig_run(r);
    return ref;
}

static void send_mixed(rig *r, fk_ref to, test_random *random, uint32_t count)
{
    num m;
    for (uint32_t i = 0; i < count; i++) {
        int64_t priority = (int64_t)test_random_below(random, 9) - 4;
        CHECK_OK(fk_send(r->sys, to, message(&m, priority, i)));
    }
}

TEST(priority_most_urgent_first)
{
    rig r;
    probe p;
    test_random random = { 1 };
    rig_start(&r);
    fk_ref to = spawn_kind(&r, &p, FK_MAILBOX_PRIORITY);
    send_mixed(&r, to, &random, 500);
    rig_run(&r);
    CHECK_U64(p.count, 500);
    for (size_t i = 1; i < 500; i++) CHECK(p.n[i - 1] >> 32 <= p.n[i] >> 32);
    rig_stop(&r);
}

TEST(priority_stable_keeps_arrival_order_among_equals)
{
    rig r;
    probe p;
    test_random random = { 2 };
    rig_start(&r);
    fk_ref to = spawn_kind(&r, &p, FK_MAILBOX_STABLE);
    send_mixed(&r, to, &random, 500);
    rig_run(&r);
    CHECK_U64(p.count, 500);
    for (size_t i = 1; i < 500; i++) CHECK(p.n[i - 1] < p.n[i]); /* priority, then arrival */
    rig_stop(&r);
}

TEST(priority_control_goes_first_and_nothing_else_changes_order)
{
    rig r;
    probe p;
    test_random random = { 3 };
    rig_start(&r);
    fk_ref to = spawn_kind(&r, &p, FK_MAILBOX_CONTROL);
    send_mixed(&r, to, &random, 500);
    rig_run(&r);
    CHECK_U64(p.count, 500);
    size_t controls = 0;
    while (controls < 500 && p.n[controls] >> 32 < 1000) controls++;
    CHECK(controls > 100 && controls < 400);
    for (size_t i = 1; i < 500; i++) {
        if (i >= controls) CHECK(p.n[i] >> 32 >= 1000);
        if (i != controls) CHECK((p.n[i - 1] & 0xffffffff) < (p.n[i] & 0xffffffff));
    }
    rig_stop(&r);
}

static fk_err nested(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    probe *p = state;
    num m;
    probe_receive(ctx, state, msg);
    /* A more urgent one that comes while others wait is next. */
    if (p->count <= 3) return fk_tell(ctx, fk_self(ctx), message(&m, -10, (uint32_t)p->count));
    return FK_OK;
}

TEST(priority_counts_for_messages_that_come_later)
{
    rig r;
    probe p;
    num m;
    rig_start(&r);
    fk_props props = probe_props(&p);
    fk_ref to;
    props.receive = nested;
    props.mailbox = FK_MAILBOX_STABLE;
    props.priority = priority_of;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
    for (uint32_t i = 0; i < 3; i++) CHECK_OK(fk_send(r.sys, to, message(&m, 5, i)));
    rig_run(&r);
    CHECK_U64(p.count, 6);
    static const int64_t EXPECTED[6] = { 5, -10, -10, -10, 5, 5 };
    for (size_t i = 0; i < 6; i++) CHECK((int64_t)(p.n[i] >> 32) - 1000 == EXPECTED[i]);
    rig_stop(&r);
}

TEST(priority_poison_comes_after_what_is_there_and_is_not_asked_about)
{
    for (int kind = FK_MAILBOX_PRIORITY; kind <= FK_MAILBOX_CONTROL; kind++) {
        rig r;
        probe p;
        test_random random = { 4 };
        rig_start(&r);
        fk_ref to = spawn_kind(&r, &p, (fk_mailbox_kind)kind);
        send_mixed(&r, to, &random, 50);
        CHECK_OK(fk_poison(r.sys, to));
        rig_run(&r);
        CHECK_U64(p.count, 50);
        CHECK(p.stopped);
        rig_stop(&r);
    }
}

static fk_err start_two(fk_ctx *ctx, void *state)
{
    num m;
    (void)state;
    CHECK_OK(fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(5), message(&m, 3, 1)));
    return fk_receive_timeout_set(ctx, FK_MILLIS(50));
}

TEST(priority_mailbox_delivers_timers_and_receive_timeouts)
{
    rig r;
    probe p;
    fk_ref to;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.start = start_two;
    props.mailbox = FK_MAILBOX_PRIORITY;
    props.priority = priority_of;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
    rig_run(&r);
    rig_pass(&r, FK_MILLIS(10));
    CHECK_U64(p.count, 1);
    CHECK(p.type == &fk_type_num);
    rig_pass(&r, FK_MILLIS(60));
    CHECK_U64(p.count, 2);
    CHECK(p.type == &fk_type_receive_timeout);
    rig_stop(&r);
}

TEST(priority_kinds_need_a_function)
{
    rig r;
    fk_ref ref;
    rig_start(&r);
    for (int kind = FK_MAILBOX_PRIORITY; kind <= FK_MAILBOX_CONTROL + 1; kind++) {
        fk_props props = { .receive = probe_receive, .mailbox = (fk_mailbox_kind)kind };
        CHECK_ERR(fk_spawn(r.sys, FK_STR(""), &props, &ref), FK_E_INVALID);
    }
    rig_stop(&r);
}

TEST(priority_without_memory_delivers_all_the_same)
{
    /* The heap cannot grow: later, not lost. */
    rig r;
    probe p;
    num m;
    rig_start_with(&r, (fk_system_config){ .pools_malloc = true });
    fk_ref to = spawn_kind(&r, &p, FK_MAILBOX_STABLE);
    for (uint32_t i = 0; i < 100; i++) CHECK_OK(fk_send(r.sys, to, message(&m, 0, i)));
    rig_fault(&r, 1, true);
    rig_run(&r);
    CHECK(atomic_load(&r.refused) > 0);
    CHECK_U64(p.count, 100);
    rig_fault(&r, 0, false);
    rig_stop(&r);
}

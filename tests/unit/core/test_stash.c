/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Setting messages aside and taking them up again. */

#include "support/rig.h"

/* Stashes numbers below 100 while `closed`; 100 opens, 101 closes, 102 unstashes without opening;
 * everything handled is written down. */
typedef struct door {
    probe seen;
    bool closed;
    fk_err stashed; /* of the last stash */
    size_t refused;
} door;

static fk_err door_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    door *d = state;
    uint64_t n = FK_AS(num, msg)->n;
    if (n == 100) {
        d->closed = false;
        return fk_unstash_all(ctx);
    }
    if (n == 101) {
        d->closed = true;
        return FK_OK;
    }
    if (n == 102) return fk_unstash_all(ctx);
    if (d->closed) {
        d->stashed = fk_stash(ctx);
        if (d->stashed == FK_OK) return FK_OK;
        d->refused++;
    }
    return probe_receive(ctx, &d->seen, msg);
}

static fk_ref door_spawn(rig *r, door *d, fk_props props)
{
    fk_ref ref = FK_REF_NONE;
    *d = (door){ .closed = true };
    props.receive = door_receive;
    props.state = d;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    return ref;
}

static void send_range(rig *r, fk_ref to, uint64_t first, uint64_t last)
{
    for (uint64_t i = first; i <= last; i++) CHECK_OK(fk_send(r->sys, to, FK_MSG(num, i)));
}

static void check_order(const door *d, const uint64_t *expected, size_t count)
{
    CHECK_U64(d->seen.count, count);
    for (size_t i = 0; i < count; i++) CHECK_U64(d->seen.n[i], expected[i]);
}

TEST(stash_comes_back_in_order_before_the_mailbox)
{
    static const uint64_t EXPECTED[] = { 1, 2, 3, 4, 5, 6 };
    rig r;
    door d;
    rig_start(&r);
    fk_ref to = door_spawn(&r, &d, (fk_props){ 0 });
    send_range(&r, to, 1, 4);
    send_range(&r, to, 100, 100);
    send_range(&r, to, 5, 6);
    rig_run(&r);
    check_order(&d, EXPECTED, 6);
    rig_stop(&r);
}

TEST(stash_of_what_was_unstashed_keeps_the_order)
{
    static const uint64_t EXPECTED[] = { 1, 2, 3, 4, 5 };
    rig r;
    door d;
    rig_start(&r);
    fk_ref to = door_spawn(&r, &d, (fk_props){ 0 });
    send_range(&r, to, 1, 3);
    send_range(&r, to, 102, 102); /* all three come again and are set aside again */
    send_range(&r, to, 4, 5);
    send_range(&r, to, 102, 102);
    send_range(&r, to, 100, 100);
    rig_run(&r);
    check_order(&d, EXPECTED, 5);
    rig_stop(&r);
}

TEST(stash_works_in_bounded_and_priority_mailboxes)
{
    static const uint64_t EXPECTED[] = { 1, 2, 3, 4 };
    rig r;
    door d;
    rig_start(&r);
    fk_props bounded = { .mailbox = FK_MAILBOX_BOUNDED, .capacity = 2 };
    fk_ref to = door_spawn(&r, &d, bounded);
    send_range(&r, to, 1, 2);
    rig_run(&r);
    send_range(&r, to, 3, 4); /* the stash does not count against the capacity */
    rig_run(&r);
    send_range(&r, to, 100, 100);
    rig_run(&r);
    check_order(&d, EXPECTED, 4);
    rig_stop(&r);
}

TEST(stash_over_its_limit_leaves_the_message_in_hand)
{
    rig r;
    door d;
    rig_start(&r);
    fk_ref to = door_spawn(&r, &d, (fk_props){ .stash_max = 3 });
    send_range(&r, to, 1, 5);
    rig_run(&r);
    CHECK_U64(d.refused, 2);
    CHECK_ERR(d.stashed, FK_E_FULL);
    static const uint64_t EXPECTED[] = { 4, 5, 1, 2, 3 };
    send_range(&r, to, 100, 100);
    rig_run(&r);
    check_order(&d, EXPECTED, 5);
    rig_stop(&r);
}

TEST(stash_default_limit_is_a_thousand)
{
    rig r;
    door d;
    rig_start(&r);
    fk_ref to = door_spawn(&r, &d, (fk_props){ 0 });
    for (int i = 0; i < 1001; i++) send_range(&r, to, 7, 7);
    rig_run(&r);
    CHECK_U64(d.refused, 1);
    CHECK_U64(d.seen.count, 1);
    rig_stop(&r);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1000);
}

TEST(stash_without_memory_leaves_the_message_in_hand)
{
    rig r;
    door d;
    rig_start_with(&r, (fk_system_config){ .pools_malloc = true });
    fk_ref to = door_spawn(&r, &d, (fk_props){ 0 });
    send_range(&r, to, 1, 1);
    rig_fault(&r, 1, true);
    rig_run(&r);
    CHECK_ERR(d.stashed, FK_E_NOMEM);
    CHECK_U64(d.seen.count, 1);
    rig_fault(&r, 0, false);
    send_range(&r, to, 2, 2);
    send_range(&r, to, 100, 100);
    rig_run(&r);
    CHECK_U64(d.seen.count, 2);
    rig_stop(&r);
}

static fk_err unstash_here(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_unstash_all(ctx);
}

TEST(unstash_of_nothing_is_fine)
{
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, unstash_here, NULL);
    CHECK(fk_is_alive(r.sys, doer));
    rig_stop(&r);
}

static fk_err twice(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    probe *p = state;
    probe_receive(ctx, state, msg);
    if (p->count > 1) return FK_OK;
    CHECK_OK(fk_stash(ctx));
    return fk_unstash_all(ctx); /* in the same breath: it comes again at once */
}

TEST(stash_and_unstash_in_one_receive)
{
    rig r;
    probe p;
    fk_ref to;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.receive = twice;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &to));
    send_range(&r, to, 1, 2);
    rig_run(&r);
    CHECK_U64(p.count, 3);
    CHECK_U64(p.n[0], 1);
    CHECK_U64(p.n[1], 1);
    CHECK_U64(p.n[2], 2);
    rig_stop(&r);
}

static fk_err hook_err;

static fk_err stash_in_start(fk_ctx *ctx, void *state)
{
    (void)state;
    hook_err = fk_stash(ctx);
    return FK_OK;
}

TEST(stash_needs_a_message)
{
    rig r;
    probe p;
    fk_ref ref;
    rig_start(&r);
    fk_props props = probe_props(&p);
    props.start = stash_in_start;
    hook_err = FK_OK;
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    rig_run(&r);
    CHECK_ERR(hook_err, FK_E_STATE);
    rig_stop(&r);
}

static fk_err stash_and_fail(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    CHECK_OK(fk_stash(ctx));
    return FK_E_FAILED;
}

TEST(stash_then_fail_makes_it_a_dead_letter_once)
{
    _Atomic int drops = 0;
    owned m = { &drops, 1 };
    fk_strategy stopping = { .decide = fk_decide_stop };
    rig r;
    fk_ref to;
    rig_start_with(&r, (fk_system_config){ .user_strategy = &stopping });
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = stash_and_fail }, &to));
    CHECK_OK(fk_send(r.sys, to, (fk_out){ &fk_type_owned, &m }));
    rig_run(&r);
    CHECK_U64(r.failures.count, 1);
    CHECK(r.failures.last.type == &fk_type_owned);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    CHECK_U64(atomic_load(&drops), 1);
    rig_stop(&r);
}

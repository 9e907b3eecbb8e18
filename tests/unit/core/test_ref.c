/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* References of any kind lead to an actor or to a dead letter, never to freed memory. */

#include <string.h>

#include "support/rig.h"

/* Sends to ref and checks that it became a dead letter for that reason, with what was sent. */
static void check_dead(rig *r, fk_ref ref, fk_reason reason)
{
    size_t before = r->letters.of[reason], all = r->letters.count;
    CHECK_OK(fk_send(r->sys, ref, FK_MSG(num, 12345)));
    rig_run(r);
    CHECK_U64(r->letters.count, all + 1);
    CHECK_U64(r->letters.of[reason], before + 1);
    CHECK(r->letters.last.reason == reason);
    CHECK(fk_ref_equal(r->letters.last.to, ref));
    CHECK(fk_ref_is_none(r->letters.last.sender));
    CHECK(r->letters.last.type == &fk_type_num);
    CHECK_U64(r->letters.last.len, sizeof(num));
    num sent;
    memcpy(&sent, r->letters.bytes, sizeof(sent));
    CHECK_U64(sent.n, 12345);
    CHECK(!fk_is_alive(r->sys, ref));
    CHECK_ERR(fk_stop(r->sys, ref), FK_E_DEAD);
    CHECK_ERR(fk_poison(r->sys, ref), FK_E_DEAD);
    CHECK_OK(fk_await_stopped(r->sys, ref, FK_SECONDS(1)));
    char path[64] = "x";
    size_t len = fk_path_of(r->sys, ref, path, sizeof(path));
    CHECK_U64(strlen(path), len);
    if (reason == FK_REASON_NO_RECEIVER) CHECK_U64(len, 0);
    if (len != 0) CHECK(memcmp(path, "fraktor://test/user/", 20) == 0); /* who it was */
}

TEST(ref_none_has_no_receiver)
{
    rig r;
    rig_start(&r);
    CHECK(fk_ref_is_none(FK_REF_NONE));
    check_dead(&r, FK_REF_NONE, FK_REASON_NO_RECEIVER);
    rig_stop(&r);
}

TEST(ref_made_up_has_no_receiver)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref real = probe_spawn(&r, &p);
    check_dead(&r, (fk_ref){ UINT32_MAX, 1, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ 1u << 20, 1, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ 200, 1, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ real.slot, real.generation + 2, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ real.slot, real.generation + 1, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ real.slot, 0, real.system }, FK_REASON_NO_RECEIVER);
    check_dead(&r, (fk_ref){ real.slot, real.generation, 0 }, FK_REASON_NO_RECEIVER);
    CHECK(fk_is_alive(r.sys, real));
    CHECK_U64(p.count, 0);
    rig_stop(&r);
}

TEST(ref_of_every_random_kind_is_harmless)
{
    test_random random = { 99 };
    rig r;
    probe p;
    rig_start(&r);
    fk_ref real = probe_spawn(&r, &p);
    for (int i = 0; i < 20000; i++) {
        uint64_t a = test_random_next(&random), b = test_random_next(&random);
        fk_ref ref = { (uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b };
        if (i % 2 == 0) ref.system = real.system;
        if (i % 4 == 0) ref.slot %= 1024;
        if (fk_ref_equal(ref, real)) continue;
        CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 1)));
        fk_stop(r.sys, ref);
        fk_poison(r.sys, ref);
    }
    rig_run(&r);
    CHECK_U64(p.count, 0);
    CHECK_U64(r.letters.count, 20000);
    CHECK(fk_is_alive(r.sys, real));
    rig_stop(&r);
}

static fk_err spawn_probe_child(fk_ctx *ctx, void *arg)
{
    probe *p = arg;
    fk_props props = probe_props(p);
    return fk_spawn_child(ctx, FK_STR(""), &props, &p->sender); /* kept there for the test */
}

TEST(ref_stale_is_stopped_and_never_reaches_the_next_tenant)
{
    rig r;
    probe p, q;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, spawn_probe_child, &p);
    fk_ref old = p.sender;
    CHECK_OK(fk_stop(r.sys, old));
    rig_run(&r);
    CHECK(p.stopped);
    check_dead(&r, old, FK_REASON_STOPPED);
    /* Make actors until one lives in the same slot. */
    fk_ref next = FK_REF_NONE;
    for (int i = 0; i < 2000; i++) {
        rig_do(&r, doer, spawn_probe_child, &q);
        next = q.sender;
        if (next.slot == old.slot) break;
        CHECK_OK(fk_stop(r.sys, next));
        rig_run(&r);
    }
    CHECK(next.slot == old.slot);
    CHECK(!fk_ref_equal(next, old));
    check_dead(&r, old, FK_REASON_STOPPED);
    CHECK(fk_is_alive(r.sys, next));
    CHECK_U64(q.count, 0);
    CHECK_OK(fk_send(r.sys, next, FK_MSG(num, 1)));
    rig_run(&r);
    CHECK_U64(q.count, 1);
    rig_stop(&r);
}

TEST(ref_of_another_system_has_no_receiver)
{
    rig a, b;
    probe p, q;
    rig_start(&a);
    rig_start(&b);
    fk_ref in_a = probe_spawn(&a, &p), in_b = probe_spawn(&b, &q);
    CHECK_U64(in_a.slot, in_b.slot); /* only the system tells them apart */
    check_dead(&a, in_b, FK_REASON_NO_RECEIVER);
    check_dead(&b, in_a, FK_REASON_NO_RECEIVER);
    CHECK(fk_is_alive(a.sys, in_a));
    CHECK(fk_is_alive(b.sys, in_b));
    CHECK_U64(p.count + q.count, 0);
    rig_stop(&a);
    rig_stop(&b);
}

static fk_err reply_one(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_reply(ctx, FK_MSG(num, 1));
}

static fk_err count_message(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)msg;
    ++*(uint32_t *)state;
    return FK_OK;
}

TEST(ref_of_another_system_as_sender_gets_no_reply_here)
{
    rig a, b;
    probe q;
    fk_ref answerer, in_a = FK_REF_NONE;
    uint32_t received = 0;
    fk_props stranger = { .receive = count_message, .state = &received };
    rig_start(&a);
    rig_start(&b);
    fk_ref in_b = probe_spawn(&b, &q);
    /* Which slot an outside thread gets depends on its stack; among a thousand is the one. */
    for (int i = 0; i < 1000 && in_a.slot != in_b.slot; i++) {
        CHECK_OK(fk_spawn(a.sys, FK_STR(""), &stranger, &in_a));
    }
    CHECK_OK(fk_spawn(a.sys, FK_STR(""), &(fk_props){ .receive = reply_one }, &answerer));
    CHECK_U64(in_a.slot, in_b.slot);
    CHECK_U64(in_a.generation, in_b.generation);
    CHECK_OK(fk_send_from(a.sys, answerer, in_b, FK_MSG(num, 0)));
    rig_run(&a);
    /* The actor of the same slot in this system must not get what was meant for the other. */
    CHECK_U64(received, 0);
    CHECK_U64(a.letters.of[FK_REASON_NO_RECEIVER], 1);
    rig_stop(&a);
    rig_stop(&b);
}

static fk_err told;

static fk_err tell_refs(fk_ctx *ctx, void *arg)
{
    fk_ref *ref = arg;
    told = fk_tell(ctx, *ref, FK_MSG(num, 9));
    return FK_OK;
}

TEST(ref_of_the_dead_told_by_an_actor_names_the_sender)
{
    rig r;
    probe p;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r), dead = probe_spawn(&r, &p);
    CHECK_OK(fk_stop(r.sys, dead));
    rig_run(&r);
    told = FK_E_FAILED;
    rig_do(&r, doer, tell_refs, &dead);
    CHECK_OK(told);
    CHECK_U64(r.letters.of[FK_REASON_STOPPED], 1);
    CHECK(fk_ref_equal(r.letters.last.sender, doer));
    rig_stop(&r);
}

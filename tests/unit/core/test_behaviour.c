/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* become, forward, reply, unhandled, fail: what receive may do with itself and its message. */

#include <string.h>

#include "support/rig.h"

typedef struct modes {
    char log[64];
    size_t count;
    fk_err err;
} modes;

static fk_err mode_b(fk_ctx *ctx, void *state, const fk_msg *msg);

/* 1: become b. 2: unbecome. Others: write down which receive it was. */
static fk_err mode_common(fk_ctx *ctx, void *state, const fk_msg *msg, char name)
{
    modes *m = state;
    uint64_t n = FK_AS(num, msg)->n;
    if (n == 1)
        m->err = fk_become(ctx, mode_b);
    else if (n == 2)
        m->err = fk_unbecome(ctx);
    else if (n == 3)
        m->err = fk_become(ctx, NULL);
    else
        m->log[m->count++] = name;
    return FK_OK;
}

static fk_err mode_b(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    return mode_common(ctx, state, msg, 'b');
}

static fk_err mode_a(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    return mode_common(ctx, state, msg, 'a');
}

static fk_err send_mode(rig *r, fk_ref to, modes *m, uint64_t n)
{
    m->err = FK_OK;
    CHECK_OK(fk_send(r->sys, to, FK_MSG(num, n)));
    rig_run(r);
    return m->err;
}

TEST(become_replaces_receive_and_unbecome_goes_back)
{
    rig r;
    modes m = { { 0 }, 0, FK_OK };
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = mode_a, .state = &m }, &to));
    send_mode(&r, to, &m, 0);
    CHECK_ERR(send_mode(&r, to, &m, 2), FK_E_STATE);
    CHECK_ERR(send_mode(&r, to, &m, 3), FK_E_INVALID);
    CHECK_OK(send_mode(&r, to, &m, 1));
    send_mode(&r, to, &m, 0);
    CHECK_OK(send_mode(&r, to, &m, 1));
    send_mode(&r, to, &m, 0);
    CHECK_OK(send_mode(&r, to, &m, 2));
    send_mode(&r, to, &m, 0);
    CHECK_OK(send_mode(&r, to, &m, 2));
    send_mode(&r, to, &m, 0);
    CHECK_ERR(send_mode(&r, to, &m, 2), FK_E_STATE);
    CHECK_STR(m.log, "abbba");
    rig_stop(&r);
}

TEST(become_is_deep_but_not_endless)
{
    rig r;
    modes m = { { 0 }, 0, FK_OK };
    fk_ref to;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = mode_a, .state = &m }, &to));
    size_t depth = 0;
    while (depth < 100000 && send_mode(&r, to, &m, 1) == FK_OK) depth++;
    CHECK_ERR(m.err, FK_E_LIMIT);
    CHECK(depth >= 100);
    for (; depth > 0; depth--) CHECK_OK(send_mode(&r, to, &m, 2));
    CHECK_ERR(send_mode(&r, to, &m, 2), FK_E_STATE);
    send_mode(&r, to, &m, 0);
    CHECK_STR(m.log, "a");
    rig_stop(&r);
}

TEST(become_without_memory_changes_nothing)
{
    rig r;
    modes m = { { 0 }, 0, FK_OK };
    fk_ref to;
    rig_start_with(&r, (fk_system_config){ .pools_malloc = true });
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = mode_a, .state = &m }, &to));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1)));
    rig_fault(&r, 1, true);
    rig_run(&r);
    rig_fault(&r, 0, false);
    CHECK_ERR(m.err, FK_E_NOMEM);
    send_mode(&r, to, &m, 0);
    CHECK_STR(m.log, "a");
    rig_stop(&r);
}

/* ---- forward and reply ------------------------------------------------------------------- */

static fk_err forward_to(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)msg;
    return fk_forward(ctx, *(fk_ref *)state);
}

TEST(forward_keeps_the_sender_and_the_message)
{
    rig r;
    probe p, q;
    fk_ref middle, outer;
    char text[300];
    memset(text, 'x', sizeof(text));
    rig_start(&r);
    fk_ref end = probe_spawn(&r, &p), asker = probe_spawn(&r, &q);
    CHECK_OK(
        fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = forward_to, .state = &end }, &middle));
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = forward_to, .state = &middle },
                      &outer));
    CHECK_OK(fk_send_from(r.sys, outer, asker, FK_MSG(num, 5)));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_U64(p.n[0], 5);
    CHECK(fk_ref_equal(p.sender, asker));
    CHECK_OK(fk_send(r.sys, outer, FK_TEXT_AT(((fk_str){ text, sizeof(text) }))));
    rig_run(&r);
    CHECK_U64(p.len, 300);
    CHECK_U64(p.bytes[255], 'x');
    CHECK(fk_ref_is_none(p.sender));
    CHECK_U64(q.count, 0);
    rig_stop(&r);
}

static fk_err forward_in_hook(fk_ctx *ctx, void *state)
{
    *(fk_err *)state = fk_forward(ctx, fk_self(ctx));
    return FK_OK;
}

TEST(forward_needs_a_message)
{
    rig r;
    fk_err err = FK_OK;
    fk_ref ref;
    rig_start(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""),
                      &(fk_props){ .receive = forward_to, .start = forward_in_hook, .state = &err },
                      &ref));
    rig_run(&r);
    CHECK_ERR(err, FK_E_STATE);
    rig_stop(&r);
}

static fk_err echo(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_reply(ctx, FK_MSG(num, FK_AS(num, msg)->n + 1));
}

TEST(reply_goes_to_the_sender_with_self_as_sender)
{
    rig r;
    probe p;
    fk_ref to;
    rig_start(&r);
    fk_ref asker = probe_spawn(&r, &p);
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &(fk_props){ .receive = echo }, &to));
    CHECK_OK(fk_send_from(r.sys, to, asker, FK_MSG(num, 41)));
    rig_run(&r);
    CHECK_U64(p.n[0], 42);
    CHECK(fk_ref_equal(p.sender, to));
    CHECK_OK(fk_send(r.sys, to, FK_MSG(num, 1))); /* nobody to answer */
    rig_run(&r);
    CHECK_U64(r.letters.of[FK_REASON_NO_RECEIVER], 1);
    CHECK(fk_ref_equal(r.letters.last.sender, to));
    rig_stop(&r);
}

TEST(unhandled_is_a_dead_letter_and_not_a_failure)
{
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    CHECK_OK(fk_send(r.sys, doer, FK_TEXT("what?")));
    rig_run(&r);
    CHECK_U64(r.letters.of[FK_REASON_UNHANDLED], 1);
    CHECK(fk_ref_equal(r.letters.last.to, doer));
    CHECK(memcmp(r.letters.bytes, "what?", 5) == 0);
    CHECK_U64(r.failures.count, 0);
    CHECK(fk_is_alive(r.sys, doer));
    rig_stop(&r);
}

/* ---- failure ----------------------------------------------------------------------------- */

static fk_err fail_with(fk_ctx *ctx, void *arg)
{
    return fk_fail(ctx, FK_E_TIMEOUT, arg);
}

static fk_err fail_plainly(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_E_INVALID;
}

static fk_err fail_said_but_not_meant(fk_ctx *ctx, void *arg)
{
    fk_fail(ctx, FK_E_TIMEOUT, arg);
    return FK_OK;
}

TEST(fail_reports_actor_error_type_and_detail)
{
    rig r;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    char detail[] = "the database is gone";
    rig_do(&r, doer, fail_with, detail);
    CHECK_U64(r.failures.count, 1);
    CHECK(fk_ref_equal(r.failures.last.actor, doer));
    CHECK_ERR(r.failures.last.err, FK_E_TIMEOUT);
    CHECK(r.failures.last.type == &fk_type_rig_call);
    CHECK_STR(r.failures.last.detail, "the database is gone");
    CHECK(fk_is_alive(r.sys, doer)); /* restarted */
    fk_ref other = doer_spawn(&r);
    rig_do(&r, other, fail_plainly, NULL);
    CHECK_U64(r.failures.count, 2);
    CHECK_STR(r.failures.last.detail, "");
    rig_stop(&r);
}

TEST(fail_detail_is_cut_at_120_bytes_and_ok_becomes_failed)
{
    rig r;
    char detail[301];
    memset(detail, 'd', sizeof(detail) - 1);
    detail[300] = '\0';
    rig_start(&r);
    rig_do(&r, doer_spawn(&r), fail_with, detail);
    CHECK_U64(strlen(r.failures.last.detail), 120);
    rig_do(&r, doer_spawn(&r), fail_with, NULL);
    CHECK_STR(r.failures.last.detail, "");
    rig_stop(&r);
}

TEST(fail_detail_does_not_leak_into_the_next_failure)
{
    rig r;
    char detail[] = "of somebody else";
    rig_start(&r);
    fk_ref first = doer_spawn(&r), second = doer_spawn(&r);
    rig_do(&r, first, fail_said_but_not_meant, detail);
    CHECK_U64(r.failures.count, 0);
    CHECK(fk_is_alive(r.sys, first));
    rig_do(&r, second, fail_plainly, NULL);
    CHECK_U64(r.failures.count, 1);
    CHECK_STR(r.failures.last.detail, "");
    rig_stop(&r);
}

static fk_err fail_ok(fk_ctx *ctx, void *arg)
{
    *(fk_err *)arg = fk_fail(ctx, FK_OK, "no reason");
    return FK_OK;
}

TEST(fail_never_gives_ok)
{
    rig r;
    fk_err err = FK_OK;
    rig_start(&r);
    rig_do(&r, doer_spawn(&r), fail_ok, &err);
    CHECK_ERR(err, FK_E_FAILED);
    rig_stop(&r);
}

static fk_err look_around(fk_ctx *ctx, void *arg)
{
    fk_ref *out = arg;
    out[0] = fk_self(ctx);
    out[1] = fk_parent(ctx);
    CHECK(fk_now(ctx) > 0);
    return fk_system_of(ctx) != NULL ? FK_OK : FK_E_FAILED;
}

TEST(ctx_knows_self_parent_and_system)
{
    rig r;
    fk_ref out[2] = { FK_REF_NONE, FK_REF_NONE };
    char path[32];
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, look_around, out);
    CHECK(fk_ref_equal(out[0], doer));
    CHECK(fk_is_alive(r.sys, out[1]));
    CHECK_U64(fk_path_of(r.sys, out[1], path, sizeof(path)), 19);
    CHECK_STR(path, "fraktor://test/user");
    rig_stop(&r);
}

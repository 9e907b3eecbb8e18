/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Failures, watches, hooks and the end with allocations failing. Supervision itself needs memory only
 * to count: without it a child that has a limit has reached it, the failure is reported without its
 * details, and nothing else changes.
 */

#include "oom/sweep.h"

static fk_err call_fail(fk_ctx *ctx, void *arg)
{
    (void)arg;
    return fk_fail(ctx, FK_E_INVALID, "on purpose");
}

enum { CHILDREN = 12 };

static fk_ref children[CHILDREN];

static fk_err call_have_children(fk_ctx *ctx, void *arg)
{
    (void)arg;
    for (int i = 0; i < CHILDREN; i++) {
        CHECK_OK(
            fk_spawn_child(ctx, FK_STR(""), &(fk_props){ .receive = doer_receive }, &children[i]));
    }
    return FK_OK;
}

static void prepare_target(sweep *s)
{
    CHECK_OK(
        fk_spawn(s->r.sys, FK_STR("target"), &(fk_props){ .receive = doer_receive }, &s->target));
}

static void prepare_family(sweep *s)
{
    s->may_fail = true;
    prepare_target(s);
    rig_do(&s->r, s->target, call_have_children, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        CHECK_OK(fk_send(s->r.sys, children[i], FK_MSG(rig_call, call_fail, NULL)));
    }
}

static void fail_children(sweep *s)
{
    rig_run(&s->r);
    CHECK(fk_is_alive(s->r.sys, s->target));
    CHECK_U64(s->r.failures.count, CHILDREN);
}

static fk_err call_watch(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    bool plain = note(s, fk_watch(ctx, s->target));
    if (plain) CHECK_OK(fk_unwatch(ctx, s->target));
    token small = make_token(s);
    bool own = note(s, fk_watch_with(ctx, s->target, (fk_out){ &fk_type_token, &small }));
    if (own) CHECK_ERR(fk_watch(ctx, s->target), FK_E_STATE);
    return FK_OK;
}

static void prepare_watch(sweep *s)
{
    prepare_target(s);
    CHECK_OK(fk_send(s->r.sys, s->doer, FK_MSG(rig_call, call_watch, s)));
}

static void watch_and_stop(sweep *s)
{
    rig_run(&s->r);
    CHECK_OK(fk_stop(s->r.sys, s->target));
    rig_run(&s->r);
}

static void farewell(void *user, fk_system *sys)
{
    sweep *s = user;
    (void)sys;
    s->probe.count++;
}

static void ask_for_farewell(sweep *s)
{
    for (int i = 0; i < 3; i++) note(s, fk_on_termination(s->r.sys, farewell, s));
}

/* Who cannot be registered is not waited for: an event says so, and the end comes all the same. */
static fk_err call_register(fk_ctx *ctx, void *arg)
{
    sweep *s = arg;
    note(s, fk_hook_register(ctx, FK_SECONDS(1)));
    return FK_OK;
}

static void register_hooks(sweep *s)
{
    for (int i = 0; i < 12; i++) {
        fk_ref ref = FK_REF_NONE;
        bool ok =
            note(s, fk_spawn(s->r.sys, FK_STR(""), &(fk_props){ .receive = doer_receive }, &ref));
        if (ok) note(s, fk_send(s->r.sys, ref, FK_MSG(rig_call, call_register, s)));
    }
    rig_run(&s->r);
}

const scenario SWEEP_LIVES[] = {
    { "children failing", prepare_family, fail_children, 0 },
    { "watch, unwatch, watch with", prepare_watch, watch_and_stop, 0 },
    { "farewell", NULL, ask_for_farewell, 0 },
    { "termination hooks", NULL, register_hooks, 0 },
    { NULL, NULL, NULL, 0 },
};

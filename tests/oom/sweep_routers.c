/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Routers, and memory that fails when they are made, change and route. */

#include "oom/sweep.h"

static const fk_props WORKER = { .receive = probe_receive, .state_size = sizeof(probe) };

static bool make_pool(sweep *s, fk_router_kind kind, uint32_t routees)
{
    fk_router_config config = { .kind = kind, .pool = &WORKER, .routees = routees };
    return note(s, fk_router_spawn(s->r.sys, FK_STR("router"), &config, &s->target));
}

static bool make_group(sweep *s)
{
    fk_str path = FK_STR("/user/nobody");
    fk_router_config config = {
        .kind = FK_ROUTER_BROADCAST, .refs = &s->doer, .refs_len = 1, .paths = &path, .paths_len = 1
    };
    return note(s, fk_router_spawn(s->r.sys, FK_STR("router"), &config, &s->target));
}

/* What has failed for lack of memory has done so as a whole, and was reported. */
static void run_or_fail(sweep *s)
{
    rig_run(&s->r);
    if (fk_is_alive(s->r.sys, s->target)) return;
    if (!fk_ref_is_none(s->target)) CHECK(s->r.failures.count > 0);
    CHECK_OK(fk_stop(s->r.sys, s->doer)); /* says that failures were expected */
    rig_run(&s->r);
}

static void spawn_pool(sweep *s)
{
    make_pool(s, FK_ROUTER_ROUND_ROBIN, 12);
    run_or_fail(s);
}

static void spawn_group(sweep *s)
{
    make_group(s);
    run_or_fail(s);
}

static void prepare_pool(sweep *s)
{
    CHECK(make_pool(s, FK_ROUTER_SMALLEST_MAILBOX, 2));
    rig_run(&s->r);
}

static void prepare_group(sweep *s)
{
    CHECK(make_group(s));
    rig_run(&s->r);
}

/* The pool has whatever size it could get, and goes on. */
static void resize(sweep *s)
{
    note(s, fk_router_resize(s->r.sys, s->target, 20));
    rig_run(&s->r);
    note(s, fk_router_resize(s->r.sys, s->target, 1));
    rig_run(&s->r);
    CHECK(fk_is_alive(s->r.sys, s->target));
}

static void change_group(sweep *s)
{
    fk_ref ref = FK_REF_NONE;
    for (int i = 0; i < 12; i++) {
        fk_props props = { .receive = doer_receive };
        if (!note(s, fk_spawn(s->r.sys, FK_STR(""), &props, &ref))) continue;
        note(s, fk_router_add(s->r.sys, s->target, ref));
    }
    rig_run(&s->r);
    note(s, fk_router_remove(s->r.sys, s->target, ref));
    rig_run(&s->r);
    CHECK(fk_is_alive(s->r.sys, s->target));
}

static void route(sweep *s)
{
    static const char TEXT[300] = { 't' };
    for (int i = 0; i < 4; i++) {
        token small = make_token(s), all = make_token(s);
        token_large large = { make_token(s), { 0 } };
        fk_out out = { &fk_type_token, &all };
        note(s, fk_send(s->r.sys, s->target, (fk_out){ &fk_type_token, &small }));
        note(s, fk_send(s->r.sys, s->target, (fk_out){ &fk_type_token_large, &large }));
        note(s, fk_router_broadcast(s->r.sys, s->target, s->doer, out));
        note(s, fk_router_broadcast(s->r.sys, s->target, s->doer, FK_MSG(num, 1)));
        fk_str text = { TEXT, sizeof(TEXT) };
        note(s, fk_router_broadcast(s->r.sys, s->target, s->doer, FK_TEXT_AT(text)));
        note(s, fk_send_from(s->r.sys, s->target, s->doer, FK_ROUTEES));
    }
    rig_run(&s->r);
    CHECK(fk_is_alive(s->r.sys, s->target));
}

const scenario SWEEP_ROUTERS[] = {
    { "spawn a pool", NULL, spawn_pool, 0 },
    { "spawn a group", NULL, spawn_group, 0 },
    { "resize a pool", prepare_pool, resize, 0 },
    { "add to a group and remove", prepare_group, change_group, 0 },
    { "route to a pool", prepare_pool, route, 0 },
    { "route to a group", prepare_group, route, 0 },
    { NULL, NULL, NULL, 0 },
};

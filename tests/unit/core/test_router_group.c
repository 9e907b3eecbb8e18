/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Groups: routers to actors that others have made. */

#include "support/crew.h"

typedef struct group {
    rig r;
    crew c;
    fk_ref member[4];
    fk_ref router;
} group;

static fk_router_config config_of(const group *g, size_t members)
{
    return (fk_router_config){ .refs = g->member, .refs_len = members };
}

static void group_start(group *g, size_t members)
{
    *g = (group){ 0 };
    rig_start(&g->r);
    for (size_t i = 0; i < members; i++) g->member[i] = crew_spawn(&g->r, &g->c);
    fk_router_config config = config_of(g, members);
    CHECK_OK(fk_router_spawn(g->r.sys, FK_STR("group"), &config, &g->router));
    rig_run(&g->r);
}

TEST(group_routes_to_those_it_was_given)
{
    group g;
    fk_ref list[CREW_MAX];
    group_start(&g, 3);
    crew_send(&g.r, g.router, 0, 9);
    for (int i = 0; i < 3; i++) CHECK_U64(g.c.got[i], 3);
    CHECK_U64(crew_list(&g.r, g.router, list), 3);
    for (int i = 0; i < 3; i++) CHECK(fk_ref_equal(list[i], g.member[i]));
    CHECK_OK(fk_stop(g.r.sys, g.router));
    rig_run(&g.r);
    CHECK_U64(g.c.stopped, 0); /* they are not its own */
    rig_stop(&g.r);
}

TEST(group_is_left_by_who_ends_and_waits_for_more)
{
    group g;
    group_start(&g, 2);
    CHECK_OK(fk_stop(g.r.sys, g.member[0]));
    rig_run(&g.r);
    crew_send(&g.r, g.router, 0, 4);
    CHECK_U64(g.c.got[1], 4);
    CHECK_U64(g.r.letters.count, 0);
    CHECK_OK(fk_stop(g.r.sys, g.member[1]));
    rig_run(&g.r);
    CHECK(fk_is_alive(g.r.sys, g.router));
    crew_send(&g.r, g.router, 7, 1);
    CHECK_U64(g.r.letters.of[FK_REASON_NO_RECEIVER], 1); /* never silent */
    CHECK(fk_ref_equal(g.r.letters.last.to, g.router));
    CHECK(g.r.letters.last.type == &fk_type_num);
    CHECK_OK(fk_router_add(g.r.sys, g.router, crew_spawn(&g.r, &g.c)));
    crew_send(&g.r, g.router, 0, 2);
    CHECK_U64(g.c.got[2], 2);
    rig_stop(&g.r);
}

TEST(group_forgets_those_that_were_dead_before)
{
    group g;
    fk_ref list[CREW_MAX];
    group_start(&g, 3);
    CHECK_OK(fk_stop(g.r.sys, g.member[1]));
    rig_run(&g.r);
    fk_ref second = FK_REF_NONE;
    fk_router_config config = config_of(&g, 3);
    CHECK_OK(fk_router_spawn(g.r.sys, FK_STR("second"), &config, &second));
    rig_run(&g.r);
    CHECK_U64(crew_list(&g.r, second, list), 2);
    rig_stop(&g.r);
}

TEST(group_without_members_has_dead_letters)
{
    _Atomic int drops = 0;
    for (int kind = 0; kind <= FK_ROUTER_CONSISTENT_HASH; kind++) {
        group g = { 0 };
        owned small = { &drops, 1 };
        fk_out out = { &fk_type_owned, &small };
        fk_router_config config = { .kind = (fk_router_kind)kind };
        if (kind == FK_ROUTER_SMALLEST_MAILBOX) continue; /* there are no such groups */
        atomic_store(&drops, 0);
        rig_start(&g.r);
        CHECK_OK(fk_router_spawn(g.r.sys, FK_STR(""), &config, &g.router));
        CHECK_OK(fk_send(g.r.sys, g.router, out));
        CHECK_OK(fk_router_broadcast(g.r.sys, g.router, FK_REF_NONE, out));
        rig_run(&g.r);
        CHECK_U64(g.r.letters.of[FK_REASON_NO_RECEIVER], 2);
        CHECK_U64(g.r.letters.count, 2);
        CHECK_U64(drops, 2);
        rig_stop(&g.r);
    }
}

TEST(group_cannot_be_resized)
{
    group g;
    group_start(&g, 2);
    CHECK_OK(fk_router_resize(g.r.sys, g.router, 3));
    rig_run(&g.r);
    CHECK_U64(g.r.letters.of[FK_REASON_UNHANDLED], 1);
    rig_stop(&g.r);
}

static fk_directive always_restart(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return FK_DIRECTIVE_RESTART;
}

static fk_err do_spawn_group(fk_ctx *ctx, void *arg)
{
    group *g = arg;
    fk_router_config config = config_of(g, 1);
    return fk_router_spawn_child(ctx, FK_STR("group"), &config, &g->router);
}

TEST(group_keeps_through_a_restart_what_it_has_learnt)
{
    group g = { 0 };
    fk_ref list[CREW_MAX], parent = FK_REF_NONE;
    rig_start(&g.r);
    for (size_t i = 0; i < 2; i++) g.member[i] = crew_spawn(&g.r, &g.c);
    fk_props props = { .receive = doer_receive, .strategy = { .decide = always_restart } };
    CHECK_OK(fk_spawn(g.r.sys, FK_STR("parent"), &props, &parent));
    rig_do(&g.r, parent, do_spawn_group, &g);
    CHECK_OK(fk_router_add(g.r.sys, g.router, g.member[1]));
    CHECK_OK(fk_kill(g.r.sys, g.router));
    rig_run(&g.r);
    CHECK_U64(g.r.failures.count, 1);
    CHECK_U64(crew_list(&g.r, g.router, list), 2);
    CHECK_OK(fk_stop(g.r.sys, g.member[0])); /* it is still watched */
    crew_send(&g.r, g.router, 0, 2);
    CHECK_U64(crew_list(&g.r, g.router, list), 1);
    rig_stop(&g.r);
}

/* ---- paths ------------------------------------------------------------------------------------- */

static fk_ref named(group *g, fk_str name)
{
    crew_worker init;
    fk_props props = crew_props(&g->c, &init);
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(g->r.sys, name, &props, &ref));
    rig_run(&g->r);
    return ref;
}

TEST(group_of_paths_finds_who_is_there_now)
{
    group g = { 0 };
    fk_str paths[] = { FK_STR("/user/a"), FK_STR("../b") };
    fk_ref list[CREW_MAX];
    rig_start(&g.r);
    named(&g, FK_STR("b"));
    fk_router_config config = { .paths = paths, .paths_len = 2 };
    CHECK_OK(fk_router_spawn(g.r.sys, FK_STR("group"), &config, &g.router));
    crew_send(&g.r, g.router, 0, 4);
    CHECK_U64(g.c.got[0], 2);
    CHECK_U64(g.r.letters.of[FK_REASON_NO_RECEIVER], 2); /* nobody at /user/a */
    fk_ref a = named(&g, FK_STR("a"));
    crew_send(&g.r, g.router, 0, 4);
    CHECK_U64(g.c.got[0], 4);
    CHECK_U64(g.c.got[1], 2);
    CHECK_OK(fk_stop(g.r.sys, a)); /* and the next one of that name */
    rig_run(&g.r);
    named(&g, FK_STR("a"));
    crew_send(&g.r, g.router, 0, 4);
    CHECK_U64(g.c.got[2], 2);
    CHECK_U64(crew_list(&g.r, g.router, list), 2);
    CHECK(fk_ref_is_none(list[0]) && fk_ref_is_none(list[1]));
    rig_stop(&g.r);
}

TEST(group_of_paths_keeps_sender_and_contents)
{
    group g = { 0 };
    probe p;
    _Atomic int drops = 0;
    owned small = { &drops, 1 };
    fk_str path = FK_STR("/user/a");
    char text[300] = { 'x' };
    rig_start(&g.r);
    named(&g, FK_STR("a"));
    fk_ref sender = probe_spawn(&g.r, &p);
    fk_router_config config = { .paths = &path, .paths_len = 1 };
    CHECK_OK(fk_router_spawn(g.r.sys, FK_STR("group"), &config, &g.router));
    CHECK_OK(fk_send_from(g.r.sys, g.router, sender, (fk_out){ &fk_type_owned, &small }));
    rig_run(&g.r);
    CHECK(g.c.type == &fk_type_owned);
    CHECK_U64(drops, 1);
    CHECK(fk_ref_equal(g.c.sender, sender));
    fk_str large = { text, sizeof(text) };
    CHECK_OK(fk_send_from(g.r.sys, g.router, sender, FK_TEXT_AT(large)));
    CHECK_OK(fk_send_from(g.r.sys, g.router, sender, FK_TEXT("small")));
    rig_run(&g.r);
    CHECK_U64(g.c.all, 3);
    CHECK_U64(g.c.len, 5);
    rig_stop(&g.r);
}

TEST(group_of_both_takes_a_broadcast)
{
    group g = { 0 };
    fk_str paths[] = { FK_STR("/user/a"), FK_STR("/user/w-*") };
    rig_start(&g.r);
    g.member[0] = crew_spawn(&g.r, &g.c);
    named(&g, FK_STR("a"));
    named(&g, FK_STR("w-1"));
    named(&g, FK_STR("w-2"));
    fk_router_config config = {
        .kind = FK_ROUTER_BROADCAST, .refs = g.member, .refs_len = 1, .paths = paths, .paths_len = 2
    };
    CHECK_OK(fk_router_spawn(g.r.sys, FK_STR("group"), &config, &g.router));
    crew_send(&g.r, g.router, 0, 1);
    for (int i = 0; i < 4; i++) CHECK_U64(g.c.got[i], 1);
    rig_stop(&g.r);
}

TEST(group_config_is_checked)
{
    group g = { 0 };
    fk_ref foreign = { 1, 1, 1 };
    fk_str bad = FK_STR("/user/a b");
    rig_start(&g.r);
    const struct {
        fk_router_config config;
        fk_err err;
    } wrong[] = {
        { { .kind = FK_ROUTER_SMALLEST_MAILBOX }, FK_E_INVALID },
        { { .routees = 2 }, FK_E_INVALID },
        { { .refs_len = 1 }, FK_E_INVALID },
        { { .paths_len = 1 }, FK_E_INVALID },
        { { .refs = &foreign, .refs_len = 1 }, FK_E_FOREIGN },
        { { .paths = &bad, .paths_len = 1 }, FK_E_NAME },
        { { .paths = &(fk_str){ "", 0 }, .paths_len = 1 }, FK_E_INVALID }, /* itself */
        { { .paths = &bad, .paths_len = SIZE_MAX / 2 }, FK_E_NAME },
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_ERR(fk_router_spawn(g.r.sys, FK_STR(""), &wrong[i].config, &g.router), wrong[i].err);
    }
    rig_stop(&g.r);
}

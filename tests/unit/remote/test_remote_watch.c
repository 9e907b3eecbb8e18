/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Watching actors of other systems, with the test in the place of these systems. */

#include <stdio.h>
#include <string.h>

#include "core/watch.h"
#include "fraktor/remote.h"
#include "fraktor/router.h"
#include "remote/remote.h"
#include "support/observer.h"

static observer o;
static fk_remote *remote;

static const fk_str ADDRESS = { "fraktor.tcp://b@h:1", 19 };

/* A watcher, and what it is told. */
typedef struct guard {
    fk_ref self, actor;
    fk_err err;
    uint32_t told, other; /* fk_terminated; anything else */
    fk_terminated last;
    bool is_pact; /* leaves it to the death pact */
} guard;

static fk_err guard_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    guard *g = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (end != NULL) {
        g->told++;
        g->last = *end;
        return g->is_pact ? fk_unhandled(ctx, msg) : FK_OK;
    }
    g->other++;
    return FK_OK;
}

static void guard_spawn(guard *g)
{
    *g = (guard){ .err = FK_E_FAILED };
    fk_props props = { .receive = guard_receive, .state = g };
    CHECK_OK(fk_spawn(o.r.sys, FK_STR(""), &props, &g->self));
}

static fk_err call_watch(fk_ctx *ctx, void *arg)
{
    guard *g = arg;
    g->err = fk_watch(ctx, g->actor);
    return FK_OK;
}

static fk_err call_watch_with(fk_ctx *ctx, void *arg)
{
    guard *g = arg;
    g->err = fk_watch_with(ctx, g->actor, FK_MSG(num, 5));
    return FK_OK;
}

static fk_err call_unwatch(fk_ctx *ctx, void *arg)
{
    guard *g = arg;
    g->err = fk_unwatch(ctx, g->actor);
    return FK_OK;
}

static void guard_ask(guard *g, rig_call_fn fn, fk_ref actor)
{
    g->actor = actor;
    CHECK_OK(fk_send(o.r.sys, g->self, FK_MSG(rig_call, fn, g)));
}

static fk_err guard_do(guard *g, rig_call_fn fn, fk_ref actor)
{
    guard_ask(g, fn, actor);
    rig_run(&o.r);
    return g->err;
}

static fk_ref other(const char *path)
{
    fk_ref ref;
    CHECK_OK(fk_resolve(o.r.sys, fk_str_of(path), &ref, NULL));
    return ref;
}

static fk_ref start(void)
{
    observer_start_with(&o, (fk_system_config){ .name = "t", .pools_malloc = true });
    remote = fk__remote_of(o.r.sys);
    return other("fraktor.tcp://b@h:1/user/x");
}

static uint32_t watched(void)
{
    fk__proxies_check(&remote->proxies);
    return remote->proxies.watched.count;
}

static void stop(void)
{
    rig_stop(&o.r);
}

static void end(fk_ref ref, bool existence_confirmed, bool address_terminated)
{
    fk_local *local = fk__local_enter(o.r.sys);
    fk__watch_remote_ended(local, ref, existence_confirmed, address_terminated);
    fk__local_leave(local);
}

static void check_told(const guard *g, fk_ref actor, bool existence_confirmed,
                       bool address_terminated)
{
    CHECK_U64(g->told, 1);
    CHECK(fk_ref_equal(g->last.actor, actor));
    CHECK(g->last.existence_confirmed == existence_confirmed);
    CHECK(g->last.address_terminated == address_terminated);
}

TEST(remote_watch_tells_once_what_the_other_system_says)
{
    for (int flags = 0; flags < 4; flags++) {
        guard g;
        fk_ref x = start();
        guard_spawn(&g);
        CHECK_OK(guard_do(&g, call_watch, x));
        CHECK_OK(guard_do(&g, call_watch, x)); /* no other */
        CHECK_U64(g.told, 0);
        CHECK_U64(watched(), 1);
        end(x, (flags & 1) != 0, (flags & 2) != 0);
        rig_run(&o.r);
        check_told(&g, x, (flags & 1) != 0, (flags & 2) != 0);
        CHECK_U64(watched(), 0);
        end(x, true, false);
        rig_run(&o.r);
        CHECK_U64(g.told, 1);
        CHECK_ERR(guard_do(&g, call_unwatch, x), FK_E_NOT_FOUND);
        CHECK_OK(guard_do(&g, call_watch, x)); /* and again: another incarnation may be there */
        end(x, true, false);
        rig_run(&o.r);
        CHECK_U64(g.told, 2);
        stop();
    }
}

TEST(remote_watch_of_many_is_one_for_the_other_system)
{
    enum { GUARDS = 20 };
    static guard g[GUARDS];
    fk_ref x = start();
    for (int i = 0; i < GUARDS; i++) {
        guard_spawn(&g[i]);
        CHECK_OK(guard_do(&g[i], call_watch, x));
        CHECK_U64(watched(), 1);
    }
    for (int i = 0; i < GUARDS; i += 2) CHECK_OK(guard_do(&g[i], call_unwatch, x));
    CHECK_U64(watched(), 1);
    end(x, true, false);
    rig_run(&o.r);
    for (int i = 0; i < GUARDS; i++) CHECK_U64(g[i].told, i % 2);
    CHECK_U64(watched(), 0);
    stop();
}

TEST(remote_watch_ends_with_the_last_watcher)
{
    guard g[2];
    fk_ref x = start();
    for (int i = 0; i < 2; i++) {
        guard_spawn(&g[i]);
        CHECK_OK(guard_do(&g[i], call_watch, x));
    }
    CHECK_OK(guard_do(&g[0], call_unwatch, x));
    CHECK_U64(watched(), 1);
    observer_bury(&o, g[1].self);
    CHECK_U64(watched(), 0);
    end(x, true, false);
    rig_run(&o.r);
    CHECK_U64(g[0].told + g[1].told, 0);
    stop();
}

TEST(remote_watch_with_a_message_of_ones_own)
{
    guard g;
    fk_ref x = start();
    guard_spawn(&g);
    CHECK_OK(guard_do(&g, call_watch_with, x));
    CHECK_ERR(guard_do(&g, call_watch, x), FK_E_STATE);
    end(x, true, false);
    rig_run(&o.r);
    CHECK_U64(g.told, 0);
    CHECK_U64(g.other, 1);
    stop();
}

TEST(remote_watch_is_a_death_pact_for_who_does_not_handle_it)
{
    guard g;
    fk_ref x = start();
    guard_spawn(&g);
    g.is_pact = true;
    CHECK_OK(guard_do(&g, call_watch, x));
    end(x, true, false);
    rig_run(&o.r);
    CHECK(!fk_is_alive(o.r.sys, g.self));
    CHECK_U64(o.r.failures.last.err, FK_E_DEATH_PACT);
    stop();
}

TEST(remote_watch_ends_that_come_together_are_one)
{
    guard g[2];
    fk_ref x = start();
    for (int i = 0; i < 2; i++) guard_spawn(&g[i]);
    CHECK_OK(guard_do(&g[0], call_watch, x));
    guard_ask(&g[1], call_watch, x);
    end(x, true, false);
    end(x, false, true);
    rig_run(&o.r);
    check_told(&g[0], x, true, true);
    /* Its watch came before the end, or after: then the other system is asked again. */
    CHECK_U64(g[1].told, 1 - watched());
    end(x, true, false);
    rig_run(&o.r);
    CHECK_U64(g[0].told, 1);
    CHECK_U64(g[1].told, 1);
    stop();
}

/* It is to be told when the proxy has its turn, and another watches before that: perhaps because a
 * quarantine is over. */
TEST(remote_watch_is_not_told_of_an_end_before_it)
{
    guard g[2];
    fk_ref x = start();
    fk_cell *cell = fk__slots_at(&o.r.sys->slots, x.slot);
    for (int i = 0; i < 2; i++) guard_spawn(&g[i]);
    CHECK_OK(guard_do(&g[0], call_watch, x));
    CHECK(fk__cell_claim(cell)); /* nobody else runs it now */
    end(x, false, true);
    CHECK_OK(guard_do(&g[1], call_watch, x));
    fk__word_or(&cell->tail, FK_TAIL_IDLE, FK_ACQ_REL);
    CHECK_OK(fk_stop(o.r.sys, x)); /* has it run, and means nothing else */
    rig_run(&o.r);
    check_told(&g[0], x, false, true);
    CHECK_U64(g[1].told, 0);
    CHECK_U64(watched(), 1);
    end(x, true, false);
    rig_run(&o.r);
    check_told(&g[1], x, true, false);
    CHECK_U64(g[0].told, 1);
    stop();
}

TEST(remote_watch_knows_no_stop_from_here)
{
    guard g;
    fk_ref x = start();
    guard_spawn(&g);
    CHECK_OK(guard_do(&g, call_watch, x));
    CHECK_OK(fk_stop(o.r.sys, x));
    rig_run(&o.r);
    CHECK_U64(g.told, 0);
    CHECK_U64(watched(), 1);
    end(x, false, false);
    CHECK_OK(fk_stop(o.r.sys, x));
    rig_run(&o.r);
    check_told(&g, x, false, false);
    stop();
}

static bool (*watch_of_remote)(void *, fk_local *, fk_proxy *, fk_ref, bool);

static fk_err meet(const char *text, fk_ref *out)
{
    fk_path path;
    CHECK_OK(fk_path_parse(&o.r.sys->paths, fk_str_of(text), &path, NULL));
    fk_local *local = fk__local_enter(o.r.sys);
    fk_err err = fk__remote_meet(remote, local, &path, out);
    fk__local_leave(local);
    return err;
}

TEST(remote_watch_keeps_a_proxy_and_one_that_gave_way_is_dead)
{
    guard g[2];
    fk_ref old, now, more;
    start();
    remote->proxies.met_max = 1;
    for (int i = 0; i < 2; i++) guard_spawn(&g[i]);
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/old", &old));
    CHECK_OK(guard_do(&g[0], call_watch, old));
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/other", &now));
    CHECK(fk_is_alive(o.r.sys, old));
    CHECK_OK(guard_do(&g[0], call_unwatch, old));
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/now", &now));
    CHECK(!fk_is_alive(o.r.sys, old));
    CHECK_U64(now.slot, old.slot);
    CHECK_OK(guard_do(&g[0], call_watch, old));
    check_told(&g[0], old, false, false);
    /* The end of the old one, if it comes at last, is not that of the new one. */
    CHECK_OK(guard_do(&g[1], call_watch, now));
    end(old, true, false);
    rig_run(&o.r);
    CHECK_U64(g[1].told, 0);
    end(now, true, false);
    rig_run(&o.r);
    check_told(&g[1], now, true, false);
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/more", &more));
    CHECK(!fk_is_alive(o.r.sys, now));
    stop();
}

static fk_ref successor;

/* The proxy gives way when its cell has looked at the generation already. */
static bool watch_late(void *ctx, fk_local *local, fk_proxy *proxy, fk_ref ref, bool is_watched)
{
    o.r.sys->remote.watch = watch_of_remote;
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/now", &successor));
    return watch_of_remote(ctx, local, proxy, ref, is_watched);
}

TEST(remote_watch_that_comes_too_late_for_a_proxy_finds_it_dead)
{
    guard g[2];
    fk_ref old;
    start();
    remote->proxies.met_max = 1;
    for (int i = 0; i < 2; i++) guard_spawn(&g[i]);
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/old", &old));
    watch_of_remote = o.r.sys->remote.watch;
    o.r.sys->remote.watch = watch_late;
    CHECK_OK(guard_do(&g[0], call_watch, old));
    CHECK_U64(successor.slot, old.slot);
    check_told(&g[0], old, false, false);
    CHECK_U64(watched(), 0);
    CHECK_OK(guard_do(&g[1], call_watch, successor));
    end(successor, true, false);
    rig_run(&o.r);
    check_told(&g[1], successor, true, false);
    CHECK_U64(g[0].told, 1);
    stop();
}

TEST(remote_watch_is_over_when_the_system_is_quarantined)
{
    enum { ACTORS = 100 };
    static guard here[ACTORS], there;
    fk_ref x[ACTORS], y;
    start();
    y = other("fraktor.tcp://c@h:1/user/x");
    guard_spawn(&there);
    CHECK_OK(guard_do(&there, call_watch, y));
    for (int i = 0; i < ACTORS; i++) {
        char path[64];
        snprintf(path, sizeof(path), "fraktor.tcp://b@h:1/user/x%d", i);
        x[i] = other(path);
        guard_spawn(&here[i]);
        CHECK_OK(guard_do(&here[i], call_watch, x[i]));
    }
    CHECK_U64(watched(), ACTORS + 1);
    CHECK_OK(fk_authority_quarantine(o.r.sys, ADDRESS));
    rig_run(&o.r);
    for (int i = 0; i < ACTORS; i++) check_told(&here[i], x[i], false, true);
    CHECK_U64(there.told, 0);
    CHECK_U64(watched(), 1);
    CHECK_OK(guard_do(&there, call_watch, x[0])); /* at once */
    check_told(&there, x[0], false, true);
    CHECK_U64(watched(), 1);
    stop();
}

TEST(remote_watches_end_with_the_system)
{
    guard g[3];
    fk_ref x = start(), y = other("fraktor.tcp://c@h:1/user/x");
    for (int i = 0; i < 3; i++) {
        guard_spawn(&g[i]);
        CHECK_OK(guard_do(&g[i], call_watch, x));
        CHECK_OK(guard_do(&g[i], call_watch_with, y));
    }
    stop(); /* asserts that nothing is left */
    for (int i = 0; i < 3; i++) CHECK_U64(g[i].told, 0);
}

/* Nothing runs any more: the watch is in the list, and its end on the way. */
TEST(remote_watches_go_with_a_system_that_is_given_up)
{
    guard g[2];
    fk_ref x = start();
    fk_cell *cell = fk__slots_at(&o.r.sys->slots, x.slot);
    for (int i = 0; i < 2; i++) {
        guard_spawn(&g[i]);
        if (i == 1) CHECK(fk__cell_claim(cell)); /* nobody else runs it now */
        CHECK_OK(guard_do(&g[i], call_watch, x));
    }
    observer_bury(&o, g[0].self);
    observer_bury(&o, g[1].self);
    end(x, true, true);
    fk_local *local = fk__local_enter(o.r.sys);
    fk__watch_sweep(local, cell);
    fk__local_leave(local);
    fk__word_or(&cell->tail, FK_TAIL_IDLE, FK_ACQ_REL);
    stop(); /* asserts that nothing is left */
}

TEST(remote_refs_cannot_subscribe)
{
    fk_ref old, now, x = start();
    CHECK_ERR(fk_subscribe_actor(o.r.sys, x, FK_TOPIC_ALL), FK_E_UNSUPPORTED);
    CHECK_ERR(fk_subscribe_type(o.r.sys, x, &fk_type_num), FK_E_UNSUPPORTED);
    remote->proxies.met_max = 1;
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/old", &old));
    CHECK_OK(meet("fraktor.tcp://b@h:1/user/now", &now));
    CHECK_ERR(fk_subscribe_actor(o.r.sys, old, FK_TOPIC_ALL), FK_E_DEAD);
    CHECK_ERR(fk_subscribe_actor(o.r.sys, now, FK_TOPIC_ALL), FK_E_UNSUPPORTED);
    CHECK_U64(watched(), 0);
    stop();
}

TEST(remote_routees_leave_when_they_end)
{
    static probe p;
    fk_ref x = start(), router;
    p = (probe){ 0 };
    fk_props props = probe_props(&p);
    fk_ref refs[2] = { x, FK_REF_NONE };
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("local"), &props, &refs[1]));
    fk_router_config config = { .refs = refs, .refs_len = 2 };
    CHECK_OK(fk_router_spawn(o.r.sys, FK_STR("r"), &config, &router));
    rig_run(&o.r);
    CHECK_U64(watched(), 1);
    end(x, true, false);
    rig_run(&o.r);
    for (uint64_t i = 0; i < 4; i++) CHECK_OK(fk_send(o.r.sys, router, FK_MSG(num, i)));
    rig_run(&o.r);
    CHECK_U64(p.count, 4);
    stop();
}

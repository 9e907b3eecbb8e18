/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What others may do to a system, with remoting.trusting and without, by two systems over sockets. */

#include <stdio.h>

#include "fraktor/select.h"
#include "support/peer.h"

static peer a, b; /* a asks, b is the one that trusts or does not */

static fk_err victim_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

/* One of b's actors. *there: as a knows it. */
static fk_ref victim(const char *name, fk_ref *there)
{
    fk_ref ref;
    char path[160];
    CHECK_OK(fk_spawn(b.r.sys, fk_str_of(name), &(fk_props){ .receive = victim_receive }, &ref));
    snprintf(path, sizeof(path), "%s/user/%s", b.address, name);
    CHECK_OK(fk_resolve(a.r.sys, fk_str_of(path), there, NULL));
    return ref;
}

static void start(bool trusting)
{
    fk_remoting_config quick = { .heartbeat_every = FK_MILLIS(100),
                                 .heartbeat_pause = FK_SECONDS(2) };
    /* By default a restart may be what a kill leads to. */
    static const fk_strategy STOPS = { .restarts = FK_RESTARTS_NONE };
    peer_start(&a, "a", quick);
    quick.trusting = trusting;
    peer_start_with(&b,
                    (fk_system_config){ .name = "b", .remoting = quick, .user_strategy = &STOPS });
}

static void end(void)
{
    peer_stop(&a);
    peer_stop(&b);
}

/* A number for b's box, behind all that a has sent before. */
static void arrive(void)
{
    static fk_long number;
    size_t before = peer_count(&b);
    peer_send(&a, peer_box(&a, b.address), ++number, 1);
    peer_await_box(&b, before + 1);
}

static void harm(bool trusting)
{
    char path[160];
    fk_ref poisoned, killed, stopped, own;
    start(trusting);
    fk_ref first = victim("poisoned", &poisoned);
    fk_ref second = victim("killed", &killed);
    fk_ref third = victim("stopped", &stopped);
    arrive();
    CHECK_OK(fk_poison(a.r.sys, poisoned));
    CHECK_OK(fk_kill(a.r.sys, killed));
    (void)fk_stop(a.r.sys, stopped); /* not even one who is trusted can do that */
    arrive();
    CHECK_U64(peer_letters(&b, FK_REASON_FORBIDDEN), trusting ? 0 : 2);
    if (trusting) PEER_AWAIT(!fk_is_alive(b.r.sys, first));
    if (trusting) PEER_AWAIT(!fk_is_alive(b.r.sys, second));
    if (!trusting) CHECK(fk_is_alive(b.r.sys, first));
    if (!trusting) CHECK(fk_is_alive(b.r.sys, second));
    CHECK(fk_is_alive(b.r.sys, third));
    /* Below /system, by a selection and by name. */
    snprintf(path, sizeof(path), "%s/system/*", b.address);
    CHECK_OK(fk_select_send(a.r.sys, fk_str_of(path), FK_TEXT("x")));
    snprintf(path, sizeof(path), "%s/system/remote-watcher", b.address);
    CHECK_OK(fk_resolve(a.r.sys, fk_str_of(path), &own, NULL));
    CHECK_OK(fk_send(a.r.sys, own, FK_TEXT("x")));
    arrive();
    CHECK_U64(peer_letters(&b, FK_REASON_FORBIDDEN), trusting ? 0 : 4);
    if (trusting) PEER_AWAIT(peer_letters(&b, FK_REASON_UNHANDLED) >= 2);
    end();
}

TEST(remote_trust_others_may_do_no_harm_unless_told_otherwise)
{
    harm(false);
}

TEST(remote_trust_others_may_do_harm_when_trusting)
{
    harm(true);
}

static fk_err watch(fk_ctx *ctx, void *arg)
{
    return fk_watch(ctx, *(fk_ref *)arg);
}

/* They go to /system/remote-watcher, by a selection. */
TEST(remote_trust_heartbeats_are_let_in_all_the_same)
{
    start(false);
    fk_ref box = peer_box(&a, b.address);
    arrive();
    CHECK_OK(fk_send(a.r.sys, peer_box(&a, a.address), FK_MSG(rig_call, watch, &box)));
    test_sleep_ms(3500); /* a pause and a half: who is silent is quarantined by then */
    arrive();
    CHECK_U64(peer_info(&a, b.address).status, FK_AUTHORITY_CONNECTED);
    CHECK_U64(peer_letters(&b, FK_REASON_FORBIDDEN), 0);
    end();
}

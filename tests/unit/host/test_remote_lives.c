/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lives of actors as other systems see them, by two systems over sockets. */

#include <stdio.h>
#include <string.h>

#include "support/peer.h"

static peer a, b;
static fk_ref box; /* b's, as a knows it */

static fk_err watch(fk_ctx *ctx, void *arg)
{
    return fk_watch(ctx, *(fk_ref *)arg);
}

static size_t ends(void)
{
    pthread_mutex_lock(&a.lock);
    size_t count = a.terminated - a.address_terminated;
    pthread_mutex_unlock(&a.lock);
    return count;
}

/* Nothing else goes on between the two: no heartbeat, no watch in the other direction. */
static void start(fk_rules rules)
{
    fk_system_config config = { .paths = { .rules = rules },
                                .remoting = { .heartbeat_every = FK_SECONDS(60),
                                              .heartbeat_pause = FK_SECONDS(60) } };
    config.name = "a";
    peer_start_with(&a, config);
    config.name = "b";
    peer_start_with(&b, config);
    box = peer_box(&a, b.address);
    CHECK_OK(fk_send(a.r.sys, peer_box(&a, a.address), FK_MSG(rig_call, watch, &box)));
    peer_await_change(&a, b.address, "unresolved", "connected", NULL);
    peer_send(&a, box, 1, 1);
    peer_await_box(&b, 1);
    test_sleep_ms(200); /* the watch, which goes by another stream, is there, too */
}

static void stop_while_watched(fk_rules rules)
{
    start(rules);
    CHECK_U64(ends(), 0);
    CHECK_OK(fk_stop(b.r.sys, peer_box(&b, b.address)));
    PEER_AWAIT(ends() == 1);
    peer_stop(&a);
    peer_stop(&b);
}

TEST(remote_lives_the_watcher_is_told_of_a_stop_when_nothing_else_is_said)
{
    stop_while_watched(FK_RULES_FRAKTOR);
}

TEST(remote_lives_the_watcher_is_told_of_a_stop_by_pekkos_rules)
{
    stop_while_watched(FK_RULES_PEKKO);
}

TEST(remote_lives_one_reference_for_an_actor_by_whichever_scheme)
{
    char path[160];
    fk_ref plain;
    start(FK_RULES_FRAKTOR);
    CHECK(strncmp(b.address, "fraktor.tcp://", 14) == 0);
    snprintf(path, sizeof(path), "fraktor://%s/user/box", b.address + 14);
    CHECK_OK(fk_resolve(a.r.sys, fk_str_of(path), &plain, NULL));
    CHECK(fk_ref_equal(plain, box));
    peer_stop(&a);
    peer_stop(&b);
}

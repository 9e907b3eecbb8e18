/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pekko's behaviours B64 to B66, under its rules, by two systems over sockets; in B64 and B66 the other
 * one is a process that is killed. The tables they refer to are checked row by row in
 * tests/unit/remote: test_delivery_vectors.c and test_authority_*.c. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/peer.h"

static peer a, b;

static void start(peer *p, const char *name, uint16_t port)
{
    peer_start_with(p, (fk_system_config){ .name = name,
                                           .paths = { .rules = FK_RULES_PEKKO },
                                           .remoting = { .port = port,
                                                         .reconnect_min = FK_MILLIS(10),
                                                         .reconnect_max = FK_MILLIS(50),
                                                         .heartbeat_every = FK_MILLIS(50),
                                                         .heartbeat_pause = FK_SECONDS(2) } });
}

/* ---- a system that can be killed ---------------------------------------------------------------------- */

/* Before this process has threads. */
static pid_t child_start(uint16_t port)
{
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        start(&b, "b", port);
        if (write(ready[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return child;
}

static void child_kill(pid_t child)
{
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(waitpid(child, NULL, 0) == child);
}

/* ---- watching ------------------------------------------------------------------------------------------- */

static fk_err watch(fk_ctx *ctx, void *arg)
{
    return fk_watch(ctx, *(fk_ref *)arg);
}

/* a's box watches that actor. */
static void watch_from_a(fk_ref *actor)
{
    fk_ref own;
    char path[160];
    snprintf(path, sizeof(path), "%s/user/box", a.address);
    CHECK_OK(fk_resolve(a.r.sys, fk_str_of(path), &own, NULL));
    CHECK_OK(fk_send(a.r.sys, own, FK_MSG(rig_call, watch, actor)));
}

static size_t terminated(size_t *address_terminated)
{
    pthread_mutex_lock(&a.lock);
    size_t count = a.terminated;
    *address_terminated = a.address_terminated;
    pthread_mutex_unlock(&a.lock);
    return count;
}

static bool has_ended(size_t count)
{
    size_t ignored;
    return terminated(&ignored) >= count;
}

/* Watched by a, then killed; a has been told. Returns the ref. */
static fk_ref lose_b(uint16_t port, const char *address)
{
    static fk_ref box;
    pid_t child = child_start(port);
    start(&a, "a", 0);
    box = peer_box(&a, address);
    watch_from_a(&box);
    peer_await_change(&a, address, "unresolved", "connected", NULL);
    test_sleep_ms(200); /* some heartbeats */
    CHECK(!has_ended(1));
    child_kill(child);
    PEER_AWAIT(has_ended(1));
    return box;
}

TEST(b66_node_loss_terminates_once_and_quarantines_the_uid)
{
    char address[128];
    size_t by_address;
    uint16_t port = peer_free_port();
    snprintf(address, sizeof(address), "pekko://b@127.0.0.1:%u", port);
    fk_ref box = lose_b(port, address);
    test_sleep_ms(300);
    CHECK_U64(terminated(&by_address), 1);
    CHECK_U64(by_address, 1);
    CHECK_U64(peer_info(&a, address).status, FK_AUTHORITY_QUARANTINE);
    CHECK_ERR(fk_send(a.r.sys, box, FK_MSG(fk_long, 1)), FK_E_QUARANTINED);
    peer_stop(&a);
}

TEST(b64_system_messages_to_a_new_peer_are_numbered_from_the_start)
{
    char address[128];
    size_t by_address;
    uint16_t port = peer_free_port();
    snprintf(address, sizeof(address), "pekko://b@127.0.0.1:%u", port);
    fk_ref box = lose_b(port, address);
    start(&b, "b", port);
    peer_send(&b, peer_box(&b, a.address), 1, 1); /* so that a learns of the new one */
    peer_await_box(&a, 1);
    watch_from_a(&box);
    test_sleep_ms(200);
    CHECK(!has_ended(2));
    CHECK_OK(fk_stop(b.r.sys, peer_box(&b, b.address)));
    PEER_AWAIT(has_ended(2)); /* the order to watch, and the notice, were taken by both sides */
    CHECK_U64(terminated(&by_address), 2);
    CHECK_U64(by_address, 1);
    peer_stop(&a);
    peer_stop(&b);
}

/* ---- quarantine ------------------------------------------------------------------------------------------ */

TEST(b65_quarantine_drops_is_pierced_by_selections_and_healed_by_a_new_uid)
{
    char address[128], path[160];
    start(&a, "a", 0);
    start(&b, "b", 0);
    uint16_t port = b.port;
    snprintf(address, sizeof(address), "%s", b.address);
    snprintf(path, sizeof(path), "%s/user/box", b.address);
    CHECK(strncmp(address, "pekko://", 8) == 0);
    fk_ref box = peer_box(&a, address);
    CHECK_ERR(fk_authority_quarantine(a.r.sys, fk_str_of(address)), FK_E_STATE); /* never met */
    peer_send(&a, box, 1, 1);
    peer_await_box(&b, 1);
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(address)));
    CHECK_ERR(fk_send(a.r.sys, box, FK_MSG(fk_long, 2)), FK_E_QUARANTINED);
    CHECK_U64(peer_letters(&a, FK_REASON_QUARANTINED), 1);
    CHECK_OK(fk_select_send(a.r.sys, fk_str_of(path), FK_MSG(fk_long, 3)));
    CHECK_ERR(fk_authority_override(a.r.sys, fk_str_of(address)), FK_E_STATE); /* nothing but ... */
    peer_stop(&b);
    start(&b, "b", port);
    peer_send(&b, peer_box(&b, a.address), 1, 1);
    peer_await_box(&a, 1);
    peer_await_change(&a, address, "quarantine", "connected", NULL); /* ... a new one */
    peer_send(&a, box, 4, 1);
    PEER_AWAIT(peer_count(&b) >= 1);
    peer_stop(&a);
    peer_stop(&b);
}

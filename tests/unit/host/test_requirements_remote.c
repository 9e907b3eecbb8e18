/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The requirements on other systems (R2.4, R3.5, R4.1 to R4.4), and every arrow of the diagram of their
 * states, by two systems in one process that talk over sockets. remote/authority.h has the arrows;
 * tests/unit/remote goes through all states and events without a network.
 */

#include <stdio.h>

#include "support/peer.h"

/* Where the other system says it is, and where nobody listens: it is bound to 127.0.0.1 alone. So it
 * can be reached only when somebody has said where it is. */
#define ELSEWHERE "127.0.0.2"

static peer a, b;

static const fk_remoting_config QUICK = { .reconnect_min = FK_MILLIS(10),
                                          .reconnect_max = FK_MILLIS(50) };

static void start_a(fk_remoting_config config)
{
    config.reconnect_min = QUICK.reconnect_min;
    config.reconnect_max = QUICK.reconnect_max;
    peer_start(&a, "a", config);
}

/* The address of a "b" that is not there yet. */
static const char *nobody(char buf[128])
{
    snprintf(buf, 128, "fraktor.tcp://b@127.0.0.1:%u", peer_free_port());
    return buf;
}

/* b at the place of that address. It is found only when it is complete: a system listens before it
 * has any actors. */
static void start_b_at(const char *address)
{
    unsigned port = 0;
    uint16_t at = peer_free_port();
    CHECK(sscanf(address, "fraktor.tcp://b@127.0.0.1:%u", &port) == 1);
    peer_start(&b, "b", (fk_remoting_config){ .port = (uint16_t)port, .bind_port = at });
    CHECK_OK(fk_authority_set_mapping(a.r.sys, fk_str_of(address), FK_STR("127.0.0.1"), at));
}

/* Both, with one message from a to b. */
static fk_ref acquaint(fk_remoting_config config)
{
    start_a(config);
    peer_start(&b, "b", QUICK);
    fk_ref to = peer_box(&a, b.address);
    peer_send(&a, to, 1, 1);
    peer_await_box(&b, 1);
    peer_await_change(&a, b.address, "unresolved", "connected", "handshake completed");
    return to;
}

static void stop(void)
{
    peer_stop(&a);
    peer_stop(&b);
}

static fk_authority_status status(const char *address)
{
    return peer_info(&a, address).status;
}

/* ---- requirements ------------------------------------------------------------------------------------- */

TEST(r2_4_without_a_mapping_a_path_stays_unresolved_and_what_is_sent_waits)
{
    char address[128];
    uint16_t port = peer_free_port();
    start_a(QUICK);
    peer_start(&b, "b",
               (fk_remoting_config){ .host = ELSEWHERE, .bind_host = "127.0.0.1", .port = port });
    snprintf(address, sizeof(address), "fraktor.tcp://b@" ELSEWHERE ":%u", port);
    CHECK_STR(b.address, address);
    fk_ref to = peer_box(&a, address);
    peer_send(&a, to, 1, 3);
    test_sleep_ms(100);
    CHECK_U64(status(address), FK_AUTHORITY_UNRESOLVED);
    CHECK_U64(peer_info(&a, address).deferred, 3);
    CHECK_U64(peer_count(&b), 0);
    CHECK_OK(fk_authority_set_mapping(a.r.sys, fk_str_of(address), FK_STR("127.0.0.1"), port));
    peer_await_box(&b, 3);
    peer_check_box(&b, 0, 1, 3);
    CHECK_STR(peer_info(&a, address).host, "127.0.0.1");
    stop();
}

TEST(r3_5_a_quarantined_authority_refuses_each_send_with_an_invalid_association)
{
    fk_ref to = acquaint(QUICK);
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(b.address)));
    for (size_t i = 1; i <= 5; i++) {
        CHECK_ERR(fk_send(a.r.sys, to, FK_MSG(fk_long, 2)), FK_E_QUARANTINED);
        CHECK_U64(peer_invalid(&a), i);
        CHECK_U64(peer_letters(&a, FK_REASON_QUARANTINED), i);
    }
    test_sleep_ms(50);
    CHECK_U64(peer_count(&b), 1);
    stop();
}

TEST(r4_1_an_unknown_authority_is_unresolved_and_its_messages_are_deferred_within_the_limit)
{
    char address[128];
    start_a((fk_remoting_config){ .deferred_max = 4 });
    fk_ref to = peer_box(&a, nobody(address));
    peer_await_change(&a, address, "", "unresolved", "created");
    peer_send(&a, to, 1, 4);
    CHECK_U64(peer_info(&a, address).deferred, 4);
    CHECK_ERR(fk_send(a.r.sys, to, FK_MSG(fk_long, 5)), FK_E_FULL);
    CHECK_U64(peer_letters(&a, FK_REASON_FULL), 1);
    CHECK_U64(status(address), FK_AUTHORITY_UNRESOLVED);
    peer_stop(&a);
}

TEST(r4_2_after_the_handshake_it_is_connected_and_what_waited_is_delivered_in_order)
{
    enum { COUNT = 1000 };
    char address[128];
    start_a(QUICK);
    fk_ref to = peer_box(&a, nobody(address));
    peer_send(&a, to, 1, COUNT);
    start_b_at(address);
    peer_await_change(&a, address, "unresolved", "connected", "handshake completed");
    peer_send(&a, to, COUNT + 1, COUNT); /* does not overtake */
    peer_await_box(&b, 2 * COUNT);
    peer_check_box(&b, 0, 1, 2 * COUNT);
    CHECK_U64(peer_info(&a, address).deferred, 0);
    CHECK(peer_info(&a, address).is_open);
    CHECK_U64(peer_info(&a, address).uid, fk_system_uid(b.r.sys));
    stop();
}

TEST(r4_3_the_peers_notice_quarantines_it)
{
    fk_ref to = acquaint(QUICK);
    CHECK_OK(fk_authority_quarantine(b.r.sys, fk_str_of(a.address)));
    peer_await_change(&a, b.address, "connected", "quarantine", "quarantined by the peer");
    CHECK_ERR(fk_send(a.r.sys, to, FK_MSG(fk_long, 2)), FK_E_QUARANTINED);
    CHECK_U64(peer_invalid(&a), 1);
    stop();
}

TEST(r4_3_quarantine_notifies_each_sender_of_what_waited)
{
    char address[128];
    start_a((fk_remoting_config){ .give_up_after = FK_SECONDS(1) });
    fk_ref to = peer_box(&a, nobody(address));
    peer_send(&a, to, 1, 7);
    peer_await_change(&a, address, "unresolved", "quarantine", "reconnecting failed for too long");
    PEER_AWAIT(peer_invalid(&a) == 7);
    CHECK_U64(peer_letters(&a, FK_REASON_QUARANTINED), 7);
    CHECK_U64(peer_info(&a, address).deferred, 0);
    CHECK_ERR(fk_send(a.r.sys, to, FK_MSG(fk_long, 8)), FK_E_QUARANTINED);
    CHECK_U64(peer_invalid(&a), 8);
    peer_stop(&a);
}

TEST(r4_4_quarantine_lasts_for_its_time_and_then_resolution_begins_again)
{
    char address[128];
    start_a((fk_remoting_config){ .quarantine = FK_SECONDS(2) });
    fk_ref to = peer_box(&a, nobody(address));
    int64_t begun = test_clock();
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(address)));
    fk_time left = peer_info(&a, address).quarantine_left;
    CHECK(left + (test_clock() - begun) >= FK_SECONDS(2) - FK_MILLIS(5));
    CHECK_ERR(fk_send(a.r.sys, to, FK_MSG(fk_long, 1)), FK_E_QUARANTINED);
    peer_await_change(&a, address, "quarantine", "unresolved", "quarantine is over");
    CHECK(test_clock() - begun >= FK_SECONDS(2) - FK_MILLIS(5));
    CHECK_U64(peer_info(&a, address).deferred, 0); /* what was refused does not come back */
    start_b_at(address);
    peer_send(&a, to, 2, 1);
    peer_await_box(&b, 1);
    peer_check_box(&b, 0, 2, 1);
    stop();
}

TEST(r4_4_quarantine_ends_before_its_time_only_by_an_administrator)
{
    acquaint(QUICK);
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(b.address)));
    test_sleep_ms(300); /* many attempts would have been made */
    CHECK_U64(status(b.address), FK_AUTHORITY_QUARANTINE);
    CHECK_OK(fk_authority_override(a.r.sys, fk_str_of(b.address)));
    peer_await_change(&a, b.address, "quarantine", "connected", "quarantine overridden");
    stop();
}

/* ---- arrows --------------------------------------------------------------------------------------------- */

TEST(arrow_begin_to_unresolved_when_somebody_names_it)
{
    char address[128];
    start_a(QUICK);
    peer_box(&a, nobody(address));
    peer_await_change(&a, address, "", "unresolved", "created");
    peer_stop(&a);
}

TEST(arrow_unresolved_to_connected_by_mapping_registered)
{
    char address[128];
    uint16_t port = peer_free_port();
    start_a(QUICK);
    peer_start(&b, "b",
               (fk_remoting_config){ .host = ELSEWHERE, .bind_host = "127.0.0.1", .port = port });
    snprintf(address, sizeof(address), "fraktor.tcp://b@" ELSEWHERE ":%u", port);
    CHECK_OK(fk_authority_set_mapping(a.r.sys, fk_str_of(address), FK_STR("127.0.0.1"), port));
    peer_await_change(&a, address, "unresolved", "connected", "handshake completed");
    stop();
}

TEST(arrow_connected_to_quarantine_by_invalid_association)
{
    acquaint(QUICK);
    CHECK_OK(fk_authority_quarantine(b.r.sys, fk_str_of(a.address)));
    peer_await_change(&b, a.address, "connected", "quarantine", "asked for");
    peer_await_change(&a, b.address, "connected", "quarantine", "quarantined by the peer");
    stop();
}

TEST(arrow_connected_to_unresolved_by_transport_dropped)
{
    fk_ref to = acquaint(QUICK);
    char address[128];
    snprintf(address, sizeof(address), "%s", b.address);
    peer_stop(&b);
    peer_await_change(&a, address, "connected", "unresolved", "transport dropped");
    peer_send(&a, to, 2, 3);
    CHECK_U64(peer_info(&a, address).deferred, 3);
    start_b_at(address); /* another one: a new incarnation */
    peer_await_change(&a, address, "unresolved", "connected", "handshake completed");
    peer_await_box(&b, 3);
    peer_check_box(&b, 0, 2, 3);
    CHECK_U64(peer_info(&a, address).incarnation, 2);
    stop();
}

TEST(arrow_quarantine_to_unresolved_by_duration_elapsed)
{
    acquaint((fk_remoting_config){ .quarantine = FK_SECONDS(1) });
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(b.address)));
    /* The other side was told, and is asked to answer all the same. */
    peer_await_change(&b, a.address, "connected", "quarantine", "quarantined by the peer");
    peer_await_change(&a, b.address, "quarantine", "unresolved", "quarantine is over");
    /* Not before: it would come back, be refused and be told again. */
    CHECK_OK(fk_authority_override_force(b.r.sys, fk_str_of(a.address)));
    /* The system that was quarantined does not come back, whatever the time. */
    peer_await_change(&a, b.address, "unresolved", "quarantine",
                      "handshake with a quarantined system");
    stop();
}

/* Of one that is not there, and so is not told: a peer that is told quarantines us as well, and an
 * override here does not end what it has decided. */
TEST(arrow_quarantine_to_connected_by_manual_override)
{
    char address[128];
    fk_ref to = acquaint(QUICK);
    snprintf(address, sizeof(address), "%s", b.address);
    peer_stop(&b);
    peer_await_change(&a, address, "connected", "unresolved", "transport dropped");
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(address)));
    CHECK_OK(fk_authority_override_force(a.r.sys, fk_str_of(address)));
    peer_await_change(&a, address, "quarantine", "connected", "quarantine overridden by force");
    start_b_at(address);
    peer_send(&a, to, 2, 1);
    peer_await_box(&b, 1);
    stop();
}

TEST(arrow_quarantine_to_connected_by_manual_override_of_one_never_met)
{
    char address[128];
    start_a(QUICK);
    fk_ref to = peer_box(&a, nobody(address));
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(address)));
    start_b_at(address);
    CHECK_OK(fk_authority_override(a.r.sys, fk_str_of(address)));
    peer_await_change(&a, address, "quarantine", "connected", "quarantine overridden");
    peer_send(&a, to, 2, 1);
    peer_await_box(&b, 1);
    stop();
}

/* ---- the arrows that the diagram leaves out ------------------------------------------------------------ */

TEST(arrow_unresolved_to_quarantine_by_giving_up)
{
    char address[128];
    start_a((fk_remoting_config){ .give_up_after = FK_SECONDS(1) });
    peer_send(&a, peer_box(&a, nobody(address)), 1, 1);
    peer_await_change(&a, address, "unresolved", "quarantine", "reconnecting failed for too long");
    peer_stop(&a);
}

TEST(arrow_quarantine_to_connected_by_a_new_system)
{
    char address[128];
    fk_ref to = acquaint(QUICK);
    snprintf(address, sizeof(address), "%s", b.address);
    CHECK_OK(fk_authority_quarantine(a.r.sys, fk_str_of(address)));
    peer_stop(&b);
    start_b_at(address);
    /* It comes to us: nobody calls who is quarantined. */
    peer_send(&b, peer_box(&b, a.address), 7, 1);
    peer_await_box(&a, 1);
    peer_await_change(&a, address, "quarantine", "connected", "handshake with a new system");
    peer_send(&a, to, 2, 1);
    peer_await_box(&b, 1);
    stop();
}

/* What others know of an actor, path and uid, is never true of one in the system that came after it. */
TEST(uids_of_a_new_incarnation_are_others)
{
    uint64_t uid[2];
    for (int i = 0; i < 2; i++) {
        fk_ref box;
        fk_path path;
        char text[256];
        peer_start(&b, "b", QUICK);
        snprintf(text, sizeof(text), "%s/user/box", b.address);
        CHECK_OK(fk_resolve(b.r.sys, fk_str_of(text), &box, NULL));
        size_t len = fk_path_of(b.r.sys, box, text, sizeof(text));
        CHECK_OK(fk_path_parse(NULL, (fk_str){ text, len }, &path, NULL));
        uid[i] = path.uid;
        peer_stop(&b);
    }
    CHECK(uid[0] != 0 && uid[0] != uid[1]);
}

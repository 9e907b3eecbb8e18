/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Letters and the streams they go by: the driver with a transport that the test plays. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fraktor/remote.h"
#include "support/branch.h"

static branch b;

static void send(const char *path, const char *text)
{
    fk_ref ref;
    CHECK_OK(fk_resolve(b.r.sys, fk_str_of(path), &ref, NULL));
    CHECK_OK(fk_send(b.r.sys, ref, FK_TEXT_AT(fk_str_of(text))));
}

static void send_number(uint32_t n)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", (unsigned)n);
    send(BRANCH_THERE, text);
}

static void expect_numbers(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        char text[16];
        snprintf(text, sizeof(text), "%u", (unsigned)i);
        CHECK(branch_letter(&b, FK_STREAM_ORDINARY, text));
    }
    CHECK(!branch_letter(&b, FK_STREAM_ORDINARY, ""));
}

TEST(driver_waits_while_its_bytes_are_lent)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    b.c.lends = true;
    send_number(0);
    branch_connect(&b);
    cable_conn *out = NULL;
    for (uint32_t i = 0; i < b.c.conns; i++) {
        if (b.c.conn[i].is_open && b.c.conn[i].lent != NULL) out = &b.c.conn[i];
    }
    CHECK(out != NULL);
    for (uint32_t i = 1; i < 1000; i++) send_number(i);
    cable_run(&b.c); /* the transport asserts that nothing else is written */
    b.c.lends = false;
    cable_written(&b.c, out);
    cable_run(&b.c);
    expect_numbers(0, 1000);
    branch_stop(&b);
}

TEST(driver_ends_idle_streams_and_opens_them_again)
{
    branch_start(&b, (fk_remoting_config){ .idle_after = FK_SECONDS(30) });
    branch_meet(&b);
    send_number(1);
    branch_connect(&b);
    expect_numbers(1, 1);
    cable_conn *ordinary = cable_stream(&b.c, FK_STREAM_ORDINARY);
    branch_pass(&b, FK_MILLIS(29999));
    CHECK(ordinary->is_open);
    branch_pass(&b, FK_MILLIS(1));
    CHECK(ordinary->is_closed && ordinary->was_gentle);
    CHECK(cable_stream(&b.c, FK_STREAM_CONTROL) != NULL); /* that one stays */
    CHECK(branch_info(&b).is_open);
    send_number(2);
    branch_connect(&b);
    expect_numbers(2, 1);
    branch_stop(&b);
}

TEST(driver_opens_a_broken_stream_again_without_a_change_of_state)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    send_number(1);
    branch_connect(&b);
    size_t changes = b.changes;
    cable_closed(&b.c, cable_stream(&b.c, FK_STREAM_ORDINARY));
    send_number(2);
    branch_connect(&b);
    expect_numbers(2, 1);
    CHECK_U64(b.changes, changes);
    branch_stop(&b);
}

TEST(driver_keeps_what_was_not_written_when_the_peer_is_lost)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    send_number(1);
    branch_connect(&b);
    expect_numbers(1, 1);
    cable_closed(&b.c, cable_stream(&b.c, FK_STREAM_CONTROL));
    cable_run(&b.c);
    CHECK_STR(b.to, "unresolved");
    for (uint32_t i = 2; i < 12; i++) send_number(i);
    CHECK_U64(branch_info(&b).deferred, 10);
    branch_pass(&b, FK_SECONDS(1));
    branch_connect(&b);
    CHECK(cable_response(&b.c, b.in[FK_STREAM_CONTROL], &b.peer));
    branch_connect(&b);
    expect_numbers(2, 10);
    CHECK_U64(b.r.letters.count, 0);
    branch_stop(&b);
}

TEST(driver_sends_to_large_paths_by_a_stream_of_their_own)
{
    static const char *const LARGE[] = { "/user/files", NULL };
    enum { SIZE = 300 << 10 };
    branch_start(&b, (fk_remoting_config){ .large = LARGE });
    branch_meet(&b);
    char *text = malloc(SIZE + 1);
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    send("fraktor.tcp://b@10.0.0.2:2/user/files/one", text);
    send("fraktor.tcp://b@10.0.0.2:2/user/filesystem", "small");
    branch_connect(&b);
    CHECK(branch_letter(&b, FK_STREAM_LARGE, text)); /* more than other streams may have */
    CHECK(branch_letter(&b, FK_STREAM_ORDINARY, "small"));
    CHECK_U64(b.r.letters.count, 0);
    free(text);
    branch_stop(&b);
}

TEST(driver_makes_one_dead_letter_of_a_frame_that_is_too_large)
{
    enum { SIZE = 5000 };
    char text[SIZE + 1];
    branch_start(&b, (fk_remoting_config){ .frame_max = 4096 });
    branch_meet(&b);
    memset(text, 'x', SIZE);
    text[SIZE] = '\0';
    send_number(1);
    send(BRANCH_THERE, text);
    send_number(2);
    branch_connect(&b);
    expect_numbers(1, 2);
    CHECK_U64(b.r.letters.count, 1);
    CHECK(branch_info(&b).is_open);
    branch_stop(&b);
}

TEST(driver_refuses_more_than_outbound_max_with_one_dead_letter_each)
{
    branch_start(&b, (fk_remoting_config){ .outbound_max = 16 });
    branch_meet(&b);
    fk_ref there = branch_there(&b);
    uint32_t taken = 0, refused = 0;
    for (uint32_t i = 0; i < 40; i++) { /* nobody connects the stream */
        char text[16];
        snprintf(text, sizeof(text), "%u", (unsigned)taken);
        fk_err err = fk_send(b.r.sys, there, FK_TEXT_AT(fk_str_of(text)));
        CHECK(err == FK_OK || err == FK_E_FULL);
        taken += err == FK_OK;
        refused += err == FK_E_FULL;
        cable_run(&b.c);
    }
    CHECK_U64(taken, 16);
    CHECK_U64(refused, 24);
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 24);
    CHECK_U64(b.r.letters.count, 24);
    branch_connect(&b);
    expect_numbers(0, 16);
    send_number(16);
    cable_run(&b.c);
    expect_numbers(16, 1);
    branch_stop(&b);
}

TEST(driver_gives_back_what_is_ready_within_the_bounds_of_what_is_deferred)
{
    branch_start(&b, (fk_remoting_config){ .deferred_max = 5 });
    branch_meet(&b);
    for (uint32_t i = 0; i < 8; i++) send_number(i); /* while the stream is being connected */
    cable_run(&b.c);
    cable_closed(&b.c, cable_stream(&b.c, FK_STREAM_CONTROL));
    cable_run(&b.c);
    CHECK_U64(branch_info(&b).deferred, 5); /* the first of them */
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 3);
    CHECK_ERR(fk_send(b.r.sys, branch_there(&b), FK_TEXT("9")), FK_E_FULL);
    CHECK_U64(b.r.letters.count, 4);
    branch_pass(&b, FK_SECONDS(1));
    branch_connect(&b);
    CHECK(cable_response(&b.c, b.in[FK_STREAM_CONTROL], &b.peer));
    branch_connect(&b);
    expect_numbers(0, 5);
    branch_stop(&b);
}

TEST(driver_reports_each_letter_of_a_quarantine)
{
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ .quarantine = FK_SECONDS(60) });
    branch_meet(&b);
    for (uint32_t i = 0; i < 8; i++) send_number(i);
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    CHECK_OK(fk_authority_quarantine(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2")));
    cable_run(&b.c);
    CHECK_U64(b.r.letters.of[FK_REASON_QUARANTINED], 8);
    CHECK(cable_heard(control, FK_CONTROL_QUARANTINED, &said)); /* it is told, then left */
    CHECK_U64(said.as.quarantined.to.uid, 77);
    CHECK(control->is_closed && control->was_gentle);
    CHECK_U64(cable_open_count(&b.c, true), 0);
    branch_stop(&b);
}

/* Two that have quarantined each other do not go on telling each other so. */
TEST(driver_answers_a_refused_handshake_with_a_notice_and_nothing_else)
{
    fk_wire_control notice = { .kind = FK_CONTROL_QUARANTINED };
    fk_wire_envelope e;
    branch_start(&b, (fk_remoting_config){ .quarantine = FK_SECONDS(60) });
    branch_meet(&b);
    CHECK_OK(fk_authority_quarantine(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2")));
    cable_run(&b.c);
    uint32_t connects = b.c.connects;
    branch_join(&b, FK_STREAM_CONTROL); /* who does not know, and greets */
    CHECK_STR(b.reason, "refused: the system is quarantined");
    cable_conn *out = cable_waiting(&b.c);
    CHECK(out != NULL);
    cable_connected(&b.c, out);
    cable_run(&b.c);
    CHECK(cable_next(out, &e));
    CHECK(fk__wire_equal(e.manifest.text, FK_STR("a"))); /* not "d": that would be refused */
    CHECK(!cable_next(out, &e));
    CHECK(out->is_closed && out->was_gentle);
    /* Its own notice has no answer. */
    cable_conn *in = cable_accept(&b.c);
    notice.as.quarantined.from = cable_unique(&b.peer);
    notice.as.quarantined.to.address = cable_unique(&b.peer).address;
    notice.as.quarantined.to.uid = fk_system_uid(b.r.sys);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    CHECK(cable_say(&b.c, in, &b.peer, &notice));
    branch_pass(&b, FK_SECONDS(10));
    CHECK_U64(b.c.connects, connects + 1);
    branch_stop(&b);
}

TEST(driver_believes_a_notice_without_a_handshake_only_of_those_it_has_met)
{
    fk_wire_control notice = { .kind = FK_CONTROL_QUARANTINED };
    cable_peer other = BRANCH_PEER;
    branch_start(&b, (fk_remoting_config){ .quarantine = FK_SECONDS(60) });
    branch_meet(&b);
    notice.as.quarantined.to.address = cable_unique(&b.peer).address;
    notice.as.quarantined.to.uid = fk_system_uid(b.r.sys);
    for (int i = 0; i < 2; i++) {
        cable_conn *in = cable_accept(&b.c);
        other.uid = i == 0 ? 78 : 77;
        notice.as.quarantined.from = cable_unique(&other);
        CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
        CHECK(cable_say(&b.c, in, &other, &notice));
        cable_run(&b.c);
        CHECK_U64(branch_info(&b).status,
                  i == 0 ? FK_AUTHORITY_CONNECTED : FK_AUTHORITY_QUARANTINE);
    }
    branch_stop(&b);
}

/* ---- tables of names ----------------------------------------------------------------------------- */

TEST(driver_advertises_names_and_reads_them_as_numbers)
{
    const char *to = "fraktor://a@10.0.0.1:1/user/here";
    fk_wire_control table;
    branch_start(&b, (fk_remoting_config){ .compress_every = FK_SECONDS(1) });
    branch_meet(&b);
    branch_join(&b, FK_STREAM_ORDINARY);
    for (int i = 0; i < 3; i++) {
        branch_pass(&b, FK_MILLIS(600));
        for (int k = 0; k < 20; k++) {
            CHECK(cable_text(&b.c, b.in[FK_STREAM_ORDINARY], &b.peer, to, "", FK_STR("x")));
        }
    }
    branch_pass(&b, FK_MILLIS(600));
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    CHECK(cable_heard(control, FK_CONTROL_REF_TABLE, &table));
    CHECK_U64(table.as.table.origin_uid, 77);
    fk_wire_pair pair = { 0 };
    bool is_found = false;
    while (fk__advertisement_next(&table.as.table, &pair)) {
        if (fk__wire_equal(pair.key, fk_str_of(to))) is_found = true;
        if (is_found) break;
    }
    CHECK(is_found);
    size_t count = b.here.count;
    fk_wire_envelope e = { .uid = 77,
                           .serializer = 20,
                           .ref_table = (uint8_t)table.as.table.version,
                           .payload = FK_STR("y") };
    e.recipient = (fk_wire_name){ .index = (uint16_t)pair.value, .is_compressed = true };
    CHECK(cable_frame(&b.c, b.in[FK_STREAM_ORDINARY], &e));
    cable_run(&b.c);
    CHECK_U64(b.here.count, count + 1);
    branch_stop(&b);
}

/* A table may be as large as it gets: it must fit into what control streams are written from. */
TEST(driver_advertises_a_table_that_is_full_of_long_names)
{
    enum { NAMES = 255, NAME = 140 };
    const char *to = "fraktor://a@10.0.0.1:1/user/here";
    fk_wire_control table;
    branch_start(&b, (fk_remoting_config){ .compress_every = FK_SECONDS(1) });
    branch_meet(&b);
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    branch_join(&b, FK_STREAM_ORDINARY);
    for (int round = 0; round < 4; round++) {
        branch_pass(&b, FK_MILLIS(600));
        for (int k = 0; k < 8 * NAMES; k++) {
            int i = k % NAMES; /* one after the other, so that no cache counts them as one */
            char from[256];
            snprintf(from, sizeof(from), "fraktor://b@10.0.0.2:2/user/there/%03d%0*d", i, NAME, 0);
            CHECK(cable_text(&b.c, b.in[FK_STREAM_ORDINARY], &b.peer, to, from, FK_STR("x")));
        }
    }
    branch_pass(&b, FK_SECONDS(2));
    CHECK(cable_heard(control, FK_CONTROL_REF_TABLE, &table));
    fk_wire_pair pair = { 0 };
    size_t bytes = 0;
    while (fk__advertisement_next(&table.as.table, &pair)) bytes += pair.key.len;
    CHECK(bytes > 20000);
    /* And what comes after it. */
    fk_wire_control heartbeat = { .kind = FK_CONTROL_HEARTBEAT };
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &heartbeat));
    cable_run(&b.c);
    CHECK(cable_heard(control, FK_CONTROL_HEARTBEAT_RSP, &table));
    branch_stop(&b);
}

TEST(driver_uses_the_table_of_its_peer)
{
    fk_str key = FK_STR("fraktor://b@10.0.0.2:2/user/there");
    uint32_t value = 3;
    fk_wire_control said, table = { .kind = FK_CONTROL_REF_TABLE };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    table.as.table.version = 1;
    table.as.table.from = cable_unique(&b.peer);
    table.as.table.origin_uid = fk_system_uid(b.r.sys);
    table.as.table.keys = (fk_proto_list){ .count = 1, .items = &key };
    table.as.table.values = (fk_proto_list){ .count = 1, .items = &value };
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &table));
    cable_run(&b.c);
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    CHECK(cable_heard(control, FK_CONTROL_REF_TABLE_ACK, &said));
    CHECK_U64(said.as.table_ack.version, 1);
    send_number(1);
    branch_connect(&b);
    cable_conn *ordinary = cable_stream(&b.c, FK_STREAM_ORDINARY);
    fk_wire_envelope e;
    CHECK(cable_next(ordinary, &e)); /* the request */
    CHECK(cable_next(ordinary, &e));
    CHECK(e.recipient.is_compressed);
    CHECK_U64(e.recipient.index, 3);
    CHECK_U64(e.ref_table, 1);
    branch_stop(&b);
}

/* Where the peer says that it is, and where a program has said that it is. */
TEST(driver_says_whether_a_connection_is_wanted_here)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    CHECK(!cable_stream(&b.c, FK_STREAM_CONTROL)->is_wanted);
    CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("hi")));
    branch_connect(&b);
    CHECK(cable_stream(&b.c, FK_STREAM_ORDINARY)->is_wanted);
    branch_stop(&b);
}

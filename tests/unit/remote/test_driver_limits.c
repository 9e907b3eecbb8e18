/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What others can make the driver hold, and that it is bounded. */

#include <stdlib.h>
#include <string.h>

#include "fraktor/remote.h"
#include "fraktor/select.h"
#include "support/branch.h"

static branch b;

static cable_peer stranger(uint32_t number)
{
    cable_peer peer = BRANCH_PEER;
    peer.port = (uint16_t)(1000 + number);
    peer.uid = 1000 + number;
    return peer;
}

static uint32_t authorities(void)
{
    return fk__remote_of(b.r.sys)->table.count;
}

/* ---- one system for each connection ------------------------------------------------------------------ */

TEST(limits_a_connection_is_of_one_system)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    cable_conn *in = branch_join(&b, FK_STREAM_CONTROL);
    CHECK(cable_request(&b.c, in, &b.peer)); /* as often as it likes */
    cable_peer other = stranger(1);
    CHECK(!cable_request(&b.c, in, &other));
    CHECK_STR(b.reason, "a second system on one connection");
    CHECK_U64(authorities(), 1);
    in = branch_join(&b, FK_STREAM_CONTROL);
    other = b.peer;
    other.uid++; /* nor does a system get another uid */
    CHECK(!cable_request(&b.c, in, &other));
    CHECK_U64(branch_info(&b).uid, 77);
    in = branch_join(&b, FK_STREAM_CONTROL);
    CHECK(!cable_response(&b.c, in, &other));
    branch_stop(&b);
}

TEST(limits_who_was_refused_may_not_try_another_name_on_the_same_connection)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    cable_peer taken = stranger(1), other = stranger(2);
    taken.uid = b.peer.uid;
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    CHECK(cable_request(&b.c, in, &taken));
    CHECK_STR(b.reason, "handshake refused: the uid is another system's");
    CHECK(!cable_request(&b.c, in, &other));
    branch_stop(&b);
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static void say_numbered(cable_conn *in, int32_t serializer)
{
    fk_wire_control control = { .kind = FK_CONTROL_SYSTEM_MESSAGE };
    control.as.system_message = (fk_wire_numbered){
        .serializer = serializer, .message = FK_STR("?"), .seq = 1, .ack_to = cable_unique(&b.peer)
    };
    CHECK(cable_say(&b.c, in, &b.peer, &control));
    cable_run(&b.c);
}

TEST(limits_a_numbered_message_that_nobody_understands_is_acknowledged_and_nobody_counts_on_it)
{
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    say_numbered(b.in[FK_STREAM_CONTROL], 99);
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_ACK, &said));
    CHECK_U64(said.as.ack.seq, 1);
    cable_closed(&b.c, cable_stream(&b.c, FK_STREAM_CONTROL));
    cable_closed(&b.c, b.in[FK_STREAM_CONTROL]);
    branch_pass(&b, FK_SECONDS(100));
    CHECK_U64(authorities(), 0); /* forgotten */
    branch_stop(&b);
}

/* ---- connections of ours --------------------------------------------------------------------------------- */

static cable_conn *visit(uint32_t number)
{
    cable_peer peer = stranger(number);
    cable_conn *in = cable_accept(&b.c);
    CHECK(in != NULL);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    CHECK(cable_request(&b.c, in, &peer));
    cable_run(&b.c);
    return in;
}

static bool is_called(uint32_t number)
{
    for (uint32_t i = 0; i < b.c.conns; i++) {
        const cable_conn *conn = &b.c.conn[i];
        if (conn->is_open && conn->is_ours && conn->port == 1000 + number) return true;
    }
    return false;
}

TEST(limits_connections_of_ours_without_an_answer_are_bounded)
{
    branch_start(&b, (fk_remoting_config){ .connecting_max = 4 });
    for (uint32_t i = 1; i <= 20; i++) {
        visit(i);
        CHECK(cable_open_count(&b.c, true) <= 4);
    }
    CHECK(is_called(1) && is_called(4) && !is_called(5));
    cable_conn *out;
    while ((out = cable_waiting(&b.c)) != NULL) cable_connected(&b.c, out); /* and then nothing */
    branch_pass(&b, FK_MILLIS(999));
    CHECK(!is_called(20));
    branch_pass(&b, FK_MILLIS(60));
    CHECK_U64(cable_open_count(&b.c, true), 4);
    CHECK(!is_called(1));
    CHECK(is_called(20)); /* who came last */
    branch_pass(&b, FK_SECONDS(5));
    for (uint32_t i = 5; i <= 20; i++) CHECK(b.c.connects >= 20);
    CHECK_U64(cable_open_count(&b.c, true), 4);
    branch_stop(&b);
}

TEST(limits_who_answers_leaves_room_at_once)
{
    branch_start(&b, (fk_remoting_config){ .connecting_max = 1 });
    cable_conn *first = visit(1);
    visit(2);
    CHECK(is_called(1) && !is_called(2));
    cable_connected(&b.c, cable_waiting(&b.c));
    cable_run(&b.c);
    CHECK(!is_called(2));
    cable_peer peer = stranger(1);
    CHECK(cable_response(&b.c, first, &peer));
    cable_run(&b.c);
    CHECK(is_called(1) && is_called(2));
    branch_stop(&b);
}

static void send_among_strangers(const char *selection)
{
    branch_start(&b, (fk_remoting_config){ .connecting_max = 2 });
    for (uint32_t i = 1; i <= 8; i++) visit(i);
    if (selection == NULL)
        CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("1")));
    else
        CHECK_OK(fk_select_send(b.r.sys, fk_str_of(selection), FK_TEXT("1")));
    for (uint32_t i = 9; i <= 12; i++) visit(i);
    branch_pass(&b, FK_MILLIS(1060));
    bool is_tried = false;
    for (uint32_t i = 0; i < b.c.conns; i++) {
        is_tried = is_tried || (b.c.conn[i].is_ours && b.c.conn[i].port == 2);
    }
    CHECK(is_tried);
    branch_pass(&b, FK_SECONDS(10)); /* and it is not closed for the others */
    CHECK_U64(branch_info(&b).failures, 0);
    branch_stop(&b);
}

TEST(limits_those_that_actors_here_want_go_first)
{
    send_among_strangers(NULL);
    send_among_strangers("fraktor.tcp://b@10.0.0.2:2/user/there");
    send_among_strangers("fraktor.tcp://b@10.0.0.2:2/user/*");
}

/* ---- connections of others --------------------------------------------------------------------------------- */

TEST(limits_who_does_not_answer_where_it_says_it_is_gives_way_when_there_are_too_many)
{
    branch_start(&b, (fk_remoting_config){ .connections_max = 4 });
    branch_meet(&b);
    cable_conn *liar = visit(1);
    visit(2);
    visit(3);
    CHECK(cable_accept(&b.c) == NULL);
    CHECK_STR(b.reason, "too many connections");
    branch_pass(&b, FK_SECONDS(2));
    CHECK(cable_accept(&b.c) != NULL);
    CHECK(liar->is_closed);
    CHECK(b.in[FK_STREAM_CONTROL]->is_open); /* that one did answer */
    cable_run(&b.c);
    branch_stop(&b);
}

/* ---- bytes -------------------------------------------------------------------------------------------------- */

enum { LARGE = 64 << 10 };

/* A frame of so many bytes, but for the last so many. */
static bool begin_frame(cable_conn *in, uint32_t len, uint32_t but)
{
    unsigned char *bytes = calloc(1, 4 + len);
    CHECK(bytes != NULL);
    fk__store32(bytes, len);
    bool is_open = cable_read(&b.c, in, bytes, 4 + len - but);
    free(bytes);
    return is_open;
}

static cable_conn *join_large(uint32_t number)
{
    cable_peer peer = stranger(number);
    cable_conn *in = cable_accept(&b.c);
    CHECK(in != NULL);
    CHECK(cable_header(&b.c, in, FK_STREAM_LARGE));
    CHECK(cable_request(&b.c, in, &peer));
    cable_run(&b.c);
    return in;
}

TEST(limits_frames_that_are_not_whole_are_bounded_for_all_connections_together)
{
    enum { COUNT = 40, FIT = 16 };
    cable_conn *in[COUNT];
    branch_start(&b, (fk_remoting_config){ .frame_max = LARGE,
                                           .frame_max_large = LARGE,
                                           .inbound_bytes_max = FIT * LARGE,
                                           .connecting_max = 1 });
    branch_meet(&b);
    cable_conn *honest = branch_join(&b, FK_STREAM_ORDINARY);
    for (uint32_t i = 0; i < COUNT; i++) in[i] = join_large(i);
    uint64_t before = atomic_load(&b.r.bytes);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(begin_frame(in[i], LARGE, 1));
        branch_pass(&b, FK_MILLIS(1));
    }
    CHECK(atomic_load(&b.r.bytes) <= before + FIT * LARGE);
    CHECK_U64(b.c.driver->inbound_bytes, FIT * LARGE);
    CHECK_STR(b.reason, "too many bytes of frames that are not whole");
    CHECK(in[0]->is_closed); /* for the longest time */
    CHECK(in[COUNT - 1]->is_open);
    /* An honest one in pieces, smaller or not, is not among those that are closed. */
    CHECK(honest->is_open);
    CHECK(begin_frame(honest, LARGE, 1));
    cable_run(&b.c);
    CHECK(honest->is_open);
    branch_pass(&b, FK_MILLIS(1));
    CHECK(begin_frame(join_large(COUNT), LARGE, 1));
    cable_run(&b.c);
    CHECK(honest->is_open);
    branch_stop(&b);
}

TEST(limits_rooms_that_are_kept_for_the_next_frame_only_go_first)
{
    branch_start(&b, (fk_remoting_config){ .frame_max = LARGE,
                                           .frame_max_large = LARGE,
                                           .inbound_bytes_max = LARGE });
    branch_meet(&b);
    cable_conn *first = branch_join(&b, FK_STREAM_ORDINARY);
    const char *to = "fraktor://a@10.0.0.1:1/user/here";
    unsigned char bytes[256];
    fk_wire_envelope e = { .uid = b.peer.uid, .serializer = FK_SERIALIZER_TEXT };
    size_t size;
    e.recipient.text = fk_str_of(to);
    e.payload.len = 1;
    CHECK_OK(fk__frame_size(&e, sizeof(bytes), &size));
    *fk__frame_encode(&e, bytes) = 'x';
    for (size_t i = 0; i < size; i++) CHECK(cable_read(&b.c, first, bytes + i, 1));
    CHECK(b.c.driver->inbound_bytes > 0);
    CHECK(begin_frame(join_large(1), LARGE, 1));
    CHECK_U64(b.c.driver->inbound_bytes, LARGE);
    cable_run(&b.c);
    CHECK(first->is_open);
    cable_run(&b.c);
    CHECK_U64(b.here.count, 1);
    branch_stop(&b);
}

TEST(limits_half_a_frame_has_a_time)
{
    branch_start(&b, (fk_remoting_config){ .handshake_timeout = FK_SECONDS(8) });
    branch_meet(&b);
    cable_conn *slow = branch_join(&b, FK_STREAM_ORDINARY), *cut = branch_join(&b, FK_STREAM_LARGE);
    CHECK(begin_frame(slow, 100, 50));
    CHECK(cable_read(&b.c, cut, "\x10", 1)); /* of the length */
    branch_pass(&b, FK_SECONDS(5));
    CHECK(cable_read(&b.c, slow, "", 1)); /* there is more of it */
    branch_pass(&b, FK_SECONDS(4));
    CHECK(slow->is_open);
    CHECK(cut->is_closed);
    CHECK_STR(b.reason, "half a frame, and no more of it");
    branch_pass(&b, FK_SECONDS(5));
    CHECK(slow->is_closed);
    CHECK(b.in[FK_STREAM_CONTROL]->is_open); /* between frames there is no hurry */
    branch_stop(&b);
}

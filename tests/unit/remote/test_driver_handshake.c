/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who begins, who may come in, and for how long: the driver with a transport that the test plays. */

#include "fraktor/remote.h"
#include "support/branch.h"

#include <string.h>

static branch b;

static uint64_t own_uid(void)
{
    return fk_system_uid(b.r.sys);
}

TEST(driver_answers_a_peer_that_begins)
{
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ 0 });
    cable_conn *in = branch_join(&b, FK_STREAM_CONTROL);
    cable_conn *out = cable_waiting(&b.c); /* the answer goes by a connection of ours */
    CHECK(out != NULL);
    CHECK_STR(out->host, "10.0.0.2");
    CHECK_U64(out->port, 2);
    cable_connected(&b.c, out);
    cable_run(&b.c);
    CHECK(cable_heard(out, FK_CONTROL_HANDSHAKE_REQ, &said)); /* first ours ... */
    CHECK_U64(said.as.handshake.from.uid, own_uid());
    CHECK_U64(said.as.handshake.to.port, 2);
    CHECK(cable_heard(out, FK_CONTROL_HANDSHAKE_RSP, &said)); /* ... then the answer */
    CHECK_U64(said.as.from.from.uid, own_uid());
    CHECK(cable_response(&b.c, in, &b.peer));
    cable_run(&b.c);
    CHECK(branch_info(&b).is_open);
    CHECK_U64(branch_info(&b).uid, 77);
    CHECK_U64(b.told, 0);
    branch_stop(&b);
}

TEST(driver_begins_when_there_is_a_letter_and_sends_nothing_before_the_answer)
{
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ 0 });
    CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("1")));
    CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("2")));
    branch_connect(&b);
    cable_conn *control = cable_stream(&b.c, FK_STREAM_CONTROL);
    CHECK(cable_heard(control, FK_CONTROL_HANDSHAKE_REQ, &said));
    CHECK(cable_stream(&b.c, FK_STREAM_ORDINARY) == NULL);
    CHECK_U64(branch_info(&b).deferred, 2);
    /* It begins its control stream with the answer. */
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    CHECK(cable_response(&b.c, in, &b.peer));
    branch_connect(&b);
    CHECK_U64(branch_info(&b).deferred, 0);
    cable_conn *ordinary = cable_stream(&b.c, FK_STREAM_ORDINARY);
    fk_wire_envelope e;
    CHECK(cable_next(ordinary, &e)); /* each stream begins with a request */
    CHECK(fk__wire_equal(e.manifest.text, FK_STR("d")));
    CHECK(branch_letter(&b, FK_STREAM_ORDINARY, "1"));
    CHECK(branch_letter(&b, FK_STREAM_ORDINARY, "2"));
    CHECK(!branch_letter(&b, FK_STREAM_ORDINARY, ""));
    branch_stop(&b);
}

TEST(driver_and_peer_may_begin_at_the_same_time)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("1")));
    cable_run(&b.c);
    cable_conn *out = cable_waiting(&b.c);
    CHECK(out != NULL);
    cable_conn *in = branch_join(&b, FK_STREAM_CONTROL); /* while ours is on its way */
    branch_connect(&b);
    CHECK(cable_response(&b.c, in, &b.peer));
    branch_connect(&b);
    CHECK(out->is_open);
    CHECK_U64(cable_open_count(&b.c, true), 2); /* control and ordinary, once each */
    CHECK(branch_letter(&b, FK_STREAM_ORDINARY, "1"));
    CHECK(!branch_letter(&b, FK_STREAM_ORDINARY, ""));
    branch_stop(&b);
}

TEST(driver_refuses_a_handshake_for_another_address)
{
    fk_wire_control request = { .kind = FK_CONTROL_HANDSHAKE_REQ };
    fk_authority_info info;
    branch_start(&b, (fk_remoting_config){ 0 });
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    request.as.handshake.from = cable_unique(&b.peer);
    request.as.handshake.to = cable_unique(&b.peer).address; /* not ours */
    (void)cable_say(&b.c, in, &b.peer, &request);
    cable_run(&b.c);
    CHECK_U64(b.told, 1);
    CHECK_STR(b.reason, "handshake refused: meant for another address");
    CHECK_U64(cable_open_count(&b.c, true), 0);
    CHECK_ERR(fk_authority_state(b.r.sys, FK_STR("fraktor.tcp://b@10.0.0.2:2"), &info),
              FK_E_NOT_FOUND);
    branch_stop(&b);
}

TEST(driver_refuses_a_handshake_in_the_name_of_another)
{
    cable_peer other = BRANCH_PEER;
    branch_start(&b, (fk_remoting_config){ 0 });
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    other.uid = 78;
    fk_wire_control request = { .kind = FK_CONTROL_HANDSHAKE_RSP };
    request.as.from.from = cable_unique(&b.peer);
    CHECK(!cable_say(&b.c, in, &other, &request)); /* the frame says 78, the handshake 77 */
    CHECK_STR(b.reason, "a handshake in the name of another system");
    branch_stop(&b);
}

TEST(driver_closes_a_connection_whose_frames_name_another_system)
{
    cable_peer other = BRANCH_PEER;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    cable_conn *in = branch_join(&b, FK_STREAM_ORDINARY);
    const char *to = "fraktor://a@10.0.0.1:1/user/here";
    CHECK(cable_text(&b.c, in, &b.peer, to, "", FK_STR("x")));
    other.uid = 78;
    CHECK(!cable_text(&b.c, in, &other, to, "", FK_STR("y")));
    cable_run(&b.c);
    CHECK_U64(b.here.count, 1);
    CHECK_STR(b.reason, "the frame names another system than the handshake");
    CHECK(branch_info(&b).is_open); /* the others stay */
    branch_stop(&b);
}

TEST(driver_takes_no_message_before_a_handshake)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_ORDINARY));
    for (int i = 0; i < 5; i++) {
        CHECK(cable_text(&b.c, in, &b.peer, "fraktor://a@10.0.0.1:1/user/here", "", FK_STR("x")));
    }
    cable_run(&b.c);
    CHECK_U64(b.here.count, 0);
    CHECK_U64(b.told, 1); /* once a second, with a count */
    branch_pass(&b, FK_SECONDS(1));
    CHECK(cable_text(&b.c, in, &b.peer, "fraktor://a@10.0.0.1:1/user/here", "", FK_STR("x")));
    CHECK_U64(b.told, 2);
    CHECK_U64(b.suppressed, 4);
    branch_stop(&b);
}

TEST(driver_closes_who_does_not_greet_in_time)
{
    branch_start(&b, (fk_remoting_config){ .handshake_timeout = FK_SECONDS(8) });
    cable_conn *in = cable_accept(&b.c);
    CHECK(cable_header(&b.c, in, FK_STREAM_CONTROL));
    cable_conn *good = branch_join(&b, FK_STREAM_CONTROL);
    branch_pass(&b, FK_MILLIS(1999));
    CHECK(in->is_open);
    branch_pass(&b, FK_MILLIS(1));
    CHECK(in->is_closed);
    CHECK(good->is_open);
    CHECK_STR(b.reason, "no handshake in time");
    branch_stop(&b);
}

TEST(driver_gives_up_a_connection_of_its_own_that_nobody_answers)
{
    branch_start(&b, (fk_remoting_config){ .handshake_timeout = FK_SECONDS(5) });
    CHECK_OK(fk_send(b.r.sys, branch_there(&b), FK_TEXT("1")));
    cable_run(&b.c);
    cable_conn *silent = cable_waiting(&b.c);
    branch_pass(&b, FK_SECONDS(5)); /* never connected */
    CHECK(silent->is_closed);
    branch_pass(&b, FK_SECONDS(1));
    cable_conn *mute = cable_waiting(&b.c);
    CHECK(mute != NULL && mute != silent);
    cable_connected(&b.c, mute); /* connected, and then nothing */
    branch_pass(&b, FK_SECONDS(5));
    CHECK(mute->is_closed);
    CHECK_U64(branch_info(&b).failures, 2);
    CHECK_U64(branch_info(&b).deferred, 1); /* it waits still */
    branch_stop(&b);
}

TEST(driver_bounds_connections_and_those_half_open)
{
    branch_start(&b, (fk_remoting_config){ .half_open_max = 2, .connections_max = 3 });
    cable_conn *first = cable_accept(&b.c), *second = cable_accept(&b.c);
    CHECK(first != NULL && second != NULL);
    CHECK(cable_accept(&b.c) == NULL);
    CHECK_STR(b.reason, "too many connections half open");
    CHECK(cable_header(&b.c, first, FK_STREAM_CONTROL));
    CHECK(cable_request(&b.c, first, &b.peer));
    cable_conn *third = cable_accept(&b.c);
    CHECK(third != NULL);
    CHECK(cable_header(&b.c, second, FK_STREAM_ORDINARY));
    CHECK(cable_request(&b.c, second, &b.peer));
    CHECK(cable_accept(&b.c) == NULL); /* three, of which one is half open */
    cable_closed(&b.c, third);
    cable_run(&b.c);
    CHECK(cable_accept(&b.c) != NULL);
    branch_stop(&b);
}

TEST(driver_hears_the_newest_connection_of_a_stream_only)
{
    const char *to = "fraktor://a@10.0.0.1:1/user/here";
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    cable_conn *old = branch_join(&b, FK_STREAM_ORDINARY);
    CHECK(cable_text(&b.c, old, &b.peer, to, "", FK_STR("1")));
    cable_conn *newest = branch_join(&b, FK_STREAM_ORDINARY);
    CHECK(old->is_closed);
    CHECK(newest->is_open);
    CHECK(b.in[FK_STREAM_CONTROL]->is_open); /* another stream */
    CHECK(cable_text(&b.c, newest, &b.peer, to, "", FK_STR("2")));
    cable_run(&b.c);
    CHECK_U64(b.here.count, 2);
    branch_stop(&b);
}

TEST(driver_meets_a_new_incarnation_by_its_request)
{
    fk_wire_control said;
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    cable_conn *before = cable_stream(&b.c, FK_STREAM_CONTROL);
    b.peer.uid = 99;
    branch_join(&b, FK_STREAM_CONTROL);
    CHECK(!before->is_open); /* it leads to one that is gone */
    branch_connect(&b);
    CHECK_U64(branch_info(&b).uid, 99);
    CHECK_U64(branch_info(&b).incarnation, 2);
    CHECK(cable_heard(cable_stream(&b.c, FK_STREAM_CONTROL), FK_CONTROL_HANDSHAKE_RSP, &said));
    branch_stop(&b);
}

TEST(driver_does_not_take_bytes_on_connections_of_its_own)
{
    branch_start(&b, (fk_remoting_config){ .reconnect_min = FK_MILLIS(100) });
    (void)branch_there(&b); /* somebody wants it */
    branch_meet(&b);
    CHECK(!cable_read(&b.c, cable_stream(&b.c, FK_STREAM_CONTROL), "x", 1));
    cable_run(&b.c);
    CHECK_STR(b.reason, "bytes came back on a connection of ours");
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_UNRESOLVED);
    branch_pass(&b, FK_SECONDS(1));
    CHECK(cable_waiting(&b.c) != NULL); /* it tries again */
    branch_stop(&b);
}

/* The peer ends, having said so or not. */
static void peer_ends(bool says_so)
{
    fk_wire_control farewell = { .kind = FK_CONTROL_TERMINATING };
    farewell.as.from.from = cable_unique(&b.peer);
    if (says_so) CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &farewell));
    cable_run(&b.c);
    cable_closed(&b.c, cable_stream(&b.c, FK_STREAM_CONTROL));
    if (b.in[FK_STREAM_CONTROL]->is_open) cable_closed(&b.c, b.in[FK_STREAM_CONTROL]);
    cable_run(&b.c);
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_UNRESOLVED);
}

TEST(driver_comes_back_soon_to_a_peer_that_is_restarted_in_order)
{
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_there(&b); /* somebody wants it */
    for (int i = 0; i < 8; i++, b.peer.uid++) {
        branch_meet(&b);
        peer_ends(true);
        CHECK_U64(branch_info(&b).failures, 1);
        CHECK(branch_info(&b).reconnect_in <= FK_MILLIS(100));
    }
    for (uint32_t i = 2; i < 10; i++, b.peer.uid++) { /* but not to one that just hangs up */
        branch_meet(&b);
        peer_ends(false);
        CHECK_U64(branch_info(&b).failures, i);
    }
    CHECK(branch_info(&b).reconnect_in > FK_SECONDS(20));
    branch_stop(&b);
}

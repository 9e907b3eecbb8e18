/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What others can make the driver hold, and that it is bounded. */

#include <stdlib.h>
#include <string.h>

#include "fraktor/remote.h"
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

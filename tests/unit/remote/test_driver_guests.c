/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a guest, who has shaken hands, may send: how much, and what is believed of it. */

#include <stdlib.h>
#include <string.h>

#include "fraktor/remote.h"
#include "support/branch.h"

static branch b;

enum { FRAME_LEN = 4 }; /* before each frame, not counted in it */

/* A text for /user/here in a frame of that many bytes. */
static bool say_frame(fk_wire_stream stream, size_t size)
{
    fk_wire_envelope e = { .uid = b.peer.uid, .serializer = FK_SERIALIZER_TEXT };
    size_t bare;
    e.recipient.text = FK_STR("fraktor://a@10.0.0.1:1/user/here");
    CHECK_OK(fk__frame_size(&e, FK_FRAME_MAX, &bare));
    char *text = malloc(size);
    CHECK(text != NULL);
    memset(text, 'x', size);
    e.payload = (fk_str){ text, size - (bare - FRAME_LEN) };
    bool is_good = cable_frame(&b.c, b.in[stream], &e);
    free(text);
    cable_run(&b.c);
    return is_good;
}

/* The limits of an ordinary stream and of a large one are their own. */
static void bound(fk_wire_stream stream, size_t most)
{
    branch_start(&b, (fk_remoting_config){ .frame_max = 5000, .frame_max_large = 9000 });
    branch_meet(&b);
    branch_join(&b, stream);
    CHECK(say_frame(stream, 4500)); /* more than a stranger may */
    CHECK(say_frame(stream, most));
    CHECK_U64(b.here.count, 2);
    CHECK_U64(b.told, 0);
    CHECK(!say_frame(stream, most + 1));
    CHECK_U64(b.here.count, 2);
    CHECK_U64(b.told, 1);
    CHECK(branch_info(&b).is_open); /* only that connection is lost */
    branch_stop(&b);
}

TEST(driver_cuts_off_who_sends_more_than_frame_max)
{
    bound(FK_STREAM_ORDINARY, 5000);
}

TEST(driver_cuts_off_who_sends_more_than_frame_max_large)
{
    bound(FK_STREAM_LARGE, 9000);
}

/* Whether it is for us; whoever had the address before had another uid. */
TEST(driver_believes_a_notice_of_quarantine_for_itself_alone)
{
    fk_wire_control notice = { .kind = FK_CONTROL_QUARANTINED };
    branch_start(&b, (fk_remoting_config){ 0 });
    branch_meet(&b);
    notice.as.quarantined.from = cable_unique(&b.peer);
    notice.as.quarantined.to = cable_unique(
        &(cable_peer){ .system = FK_STR("a"), .host = FK_STR("10.0.0.1"), .port = 1, .uid = 1 });
    notice.as.quarantined.to.uid = fk_system_uid(b.r.sys) + 1;
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &notice));
    cable_run(&b.c);
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_CONNECTED);
    notice.as.quarantined.to.uid = fk_system_uid(b.r.sys);
    CHECK(cable_say(&b.c, b.in[FK_STREAM_CONTROL], &b.peer, &notice));
    cable_run(&b.c);
    CHECK_U64(branch_info(&b).status, FK_AUTHORITY_QUARANTINE);
    branch_stop(&b);
}

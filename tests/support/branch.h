/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_BRANCH_H
#define FK_TESTS_SUPPORT_BRANCH_H

/*
 * A branch: the system "a" at 10.0.0.1:1, a rig, with a driver at a cable; and the peer "b" at
 * 10.0.0.2:2, which is the test. Time passes when the test says so.
 */

#include "support/cable.h"
#include "support/rig.h"

#define BRANCH_PEER                                                                                \
    ((cable_peer){ .system = FK_STR("b"), .host = FK_STR("10.0.0.2"), .port = 2, .uid = 77 })
#define BRANCH_THERE "fraktor.tcp://b@10.0.0.2:2/user/there"

typedef struct branch {
    rig r; /* first */
    cable c;
    cable_peer peer;
    size_t told; /* FK_EVENT_REMOTE */
    uint64_t suppressed;
    char reason[96]; /* of the last */
    size_t changes;  /* FK_EVENT_AUTHORITY */
    char to[16];     /* of the last ... */
    char change[64]; /* ... and why */
    size_t invalid;  /* FK_EVENT_INVALID_ASSOCIATION */
    char invalid_of[64];
    probe here; /* what /user/here gets */
    fk_ref here_ref;
    /* What the peer has connected, by stream. */
    cable_conn *in[FK_STREAM_COUNT];
} branch;

void branch_start(branch *b, fk_remoting_config config);
/* Terminates the system, with nobody answering, and asserts that not a byte is left. */
void branch_stop(branch *b);
void branch_pass(branch *b, fk_time by);
/* Both sides know each other; the peer began. Leaves its control stream in b->in. */
void branch_meet(branch *b);
/* The peer opens a stream of that kind and greets. */
cable_conn *branch_join(branch *b, fk_wire_stream stream);
/* The driver's connections that wait are made. */
void branch_connect(branch *b);
fk_ref branch_there(branch *b);
fk_authority_info branch_info(branch *b);
/* The next frame on that stream of the driver that is a message for an actor; it must be a text. */
bool branch_letter(branch *b, fk_wire_stream stream, const char *text);

#endif /* FK_TESTS_SUPPORT_BRANCH_H */

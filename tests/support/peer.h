/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_PEER_H
#define FK_TESTS_SUPPORT_PEER_H

/*
 * A peer: a system with remoting at loopback, for tests with two of them and real sockets. It writes
 * down what it is told about others, and what its actor /user/box gets. Real time: a test waits for
 * what must happen, up to half a minute, and never for how long it takes.
 */

#include "support/rig.h"

enum { PEER_EVENTS = 256, PEER_BOX = 4096 };

typedef struct peer_event {
    fk_event_kind kind;
    fk_time at;
    char address[128];
    char from[16], to[16], reason[64];
} peer_event;

typedef struct peer {
    rig r; /* first */
    pthread_mutex_t lock;
    peer_event event[PEER_EVENTS]; /* AUTHORITY and INVALID_ASSOCIATION */
    size_t events;
    size_t seen; /* by peer_await_change() */
    fk_long box[PEER_BOX];
    size_t count;
    size_t terminated, address_terminated; /* what the box got of fk_terminated */
    char address[128];                     /* "fraktor.tcp://a@127.0.0.1:4711" */
    uint16_t port;
    fk_rules rules;
} peer;

/* enabled, and host and port unless they are set: 127.0.0.1, any port. */
void peer_start(peer *p, const char *name, fk_remoting_config remoting);
void peer_start_with(peer *p, fk_system_config config);
/* Stops; asserts that no byte is left. */
void peer_stop(peer *p);

/* A port of loopback that nobody listens to. */
uint16_t peer_free_port(void);

/* The box of another, which may not be there yet. */
fk_ref peer_box(peer *p, const char *address);
/* Sends the numbers from first on; all must be taken. */
void peer_send(peer *p, fk_ref to, fk_long first, size_t count);
/* How many the box has got. */
size_t peer_count(peer *p);
/* Waits until the box has got that many. */
void peer_await_box(peer *p, size_t count);
/* The numbers from index on must be those from first on. */
void peer_check_box(peer *p, size_t index, fk_long first, size_t count);

/* Waits for a change of that authority, from one state to another, after those that were waited for
 * before; others in between are passed over. The reason must be this one, if not NULL. */
void peer_await_change(peer *p, const char *address, const char *from, const char *to,
                       const char *reason);
/* How many INVALID_ASSOCIATION events there were. */
size_t peer_invalid(peer *p);
/* Dead letters of a reason. */
size_t peer_letters(peer *p, fk_reason reason);
fk_authority_info peer_info(peer *p, const char *address);

/* True as soon as the condition holds, false after half a minute. */
#define PEER_AWAIT(condition)                                                                      \
    do {                                                                                           \
        int64_t end_ = test_clock() + FK_SECONDS(30);                                              \
        while (!(condition) && test_clock() < end_) test_sleep_ms(1);                              \
        CHECK(condition);                                                                          \
    } while (0)

#endif /* FK_TESTS_SUPPORT_PEER_H */

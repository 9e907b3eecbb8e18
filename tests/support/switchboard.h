/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_SWITCHBOARD_H
#define FK_TESTS_SUPPORT_SWITCHBOARD_H

/*
 * A switchboard: a system without threads whose driver has a network that the test plays. Others are
 * numbers: system "c" at 10.0.0.1, whose port is its number. The test's thread is the driver's.
 */

#include "remote/office.h"
#include "support/rig.h"

enum { BOARD_CALLERS = 1 << 16 };

/* Another system. */
typedef struct caller {
    fk_conn_id in;                   /* its connection to us; 0: none */
    fk_conn_id out[FK_STREAM_COUNT]; /* ours to it */
    uint32_t tried;                  /* how often we wanted to connect */
} caller;

typedef struct switchboard {
    rig r;
    fk_driver *driver;
    fk_remote *remote;
    uint32_t authorities_max; /* as it was */
    fk_conn_id next;
    uint64_t letters;  /* that were written, to those they were for */
    uint64_t mistaken; /* and to others */
    void (*on_letter)(uint32_t number, const fk_wire_envelope *e); /* or NULL */
    fk_conn_id pending[64];                                        /* of ours, not connected yet */
    uint32_t pending_of[64];
    uint32_t pending_count;
    fk_map conns; /* caller numbers by connection of ours, and 1 */
    caller caller[BOARD_CALLERS];
} switchboard;

/* authorities_max 0: the default. */
void board_start(switchboard *b, uint32_t authorities_max);
void board_stop(switchboard *b);
/* The driver does what is due; connections that it asks for are made. */
void board_run(switchboard *b);
/* Time passes, in steps. */
void board_pass(switchboard *b, fk_time by, fk_time step);

/* It connects to us and shakes hands; so do we. uid: its number, and 1000000 * life. */
void board_meet(switchboard *b, uint32_t number, uint32_t life);
/* It says that it terminates. */
void board_part(switchboard *b, uint32_t number);
/* All connections with it end, and those that are wanted fail. */
void board_drop(switchboard *b, uint32_t number);

fk_authority *board_authority(switchboard *b, uint32_t number);
/* An actor of it, met or held. */
fk_ref board_ref(switchboard *b, uint32_t number, bool is_held);

#endif /* FK_TESTS_SUPPORT_SWITCHBOARD_H */

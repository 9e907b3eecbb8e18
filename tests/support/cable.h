/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_CABLE_H
#define FK_TESTS_SUPPORT_CABLE_H

/*
 * A cable: a driver of remoting (remote/driver.h) whose transport the test plays. What the driver
 * writes is kept for each connection; what comes in is what the test says, in the name of a peer. A
 * call that the contract of remote/transport.h forbids ends the program.
 *
 * No sockets, no threads, and no test framework: fuzz targets use it, too.
 */

#include "remote/office.h"

enum { CABLE_CONNS = 256, CABLE_TURNS = 4096 };

typedef struct cable_conn {
    fk_conn_id id;
    bool is_ours; /* the driver's */
    bool is_open; /* not closed by either side */
    bool is_connected;
    bool is_wanted;  /* as the driver said */
    bool was_gentle; /* how the driver closed it */
    bool is_closed;  /* by the driver */
    char host[64];
    uint16_t port;
    unsigned char *bytes; /* that were written, all of them */
    size_t len, size;
    size_t read; /* by cable_next() */
    const void *lent;
    size_t lent_len;
} cable_conn;

/* A system at the other end. */
typedef struct cable_peer {
    fk_str system, host;
    uint16_t port;
    uint64_t uid;
} cable_peer;

typedef struct cable {
    fk_system *sys;
    fk_driver *driver;
    fk_time next;       /* when the driver wants to run */
    fk_err connect_err; /* of every connect from now on */
    bool lends;         /* writes are not taken at once, from now on */
    bool is_woken;
    uint32_t connects;
    cable_conn conn[CABLE_CONNS];
    uint32_t conns;
    uint32_t accepted;
} cable;

/* `sys` runs without threads and without remoting.enabled; config is what it would have had. */
void cable_begin(cable *c, fk_system *sys, const fk_remoting_config *config);
/* The driver ends: to be called when the system has terminated, or before it is stopped by force. */
void cable_end(cable *c);

/* Runs driver and actors until neither has anything to do. */
void cable_run(cable *c);
/* The driver wants to run at that time, which may be FK_NEVER. */
fk_time cable_next_at(const cable *c);
/* Walks all invariants. */
void cable_check(const cable *c);

/* ---- connections -------------------------------------------------------------------------------- */

/* Somebody connects; NULL: it was refused. Neither these nor the next run anything. */
cable_conn *cable_accept(cable *c);
/* The oldest of the driver's that waits to be connected; NULL: there is none. */
cable_conn *cable_waiting(cable *c);
void cable_connected(cable *c, cable_conn *conn);
void cable_failed(cable *c, cable_conn *conn);
/* By the peer. */
void cable_closed(cable *c, cable_conn *conn);
/* What was lent is gone. */
void cable_written(cable *c, cable_conn *conn);
/* False: the driver wants it closed, and so it is. */
bool cable_read(cable *c, cable_conn *conn, const void *bytes, size_t len);
/* The driver's open connection with that stream; NULL: there is none. */
cable_conn *cable_stream(cable *c, fk_wire_stream stream);
uint32_t cable_open_count(const cable *c, bool ours);

/* ---- what is said --------------------------------------------------------------------------------- */

/* The next frame that the driver has written there; false: there is none. Lent until the next write. */
bool cable_next(cable_conn *conn, fk_wire_envelope *out);
/* The next frame with that control message; those before it are skipped. */
bool cable_heard(cable_conn *conn, fk_control_kind kind, fk_wire_control *out);

/* A connection header; a frame; a control message; a HandshakeReq for the driver's address. */
bool cable_header(cable *c, cable_conn *conn, fk_wire_stream stream);
bool cable_frame(cable *c, cable_conn *conn, const fk_wire_envelope *envelope);
bool cable_say(cable *c, cable_conn *conn, const cable_peer *peer, const fk_wire_control *control);
bool cable_request(cable *c, cable_conn *conn, const cable_peer *peer);
bool cable_response(cable *c, cable_conn *conn, const cable_peer *peer);
bool cable_text(cable *c, cable_conn *conn, const cable_peer *peer, const char *to,
                const char *from, fk_str text);
bool cable_watch(cable *c, cable_conn *conn, const cable_peer *peer, uint64_t seq,
                 const fk_wire_sysmsg *message);
fk_wire_unique cable_unique(const cable_peer *peer);

/* The same as bytes, for corpora: returns the length. */
size_t cable_control_bytes(const cable *c, const cable_peer *peer, const fk_wire_control *control,
                           unsigned char *to, size_t size);

#endif /* FK_TESTS_SUPPORT_CABLE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_TRANSPORT_H
#define FK_REMOTE_TRANSPORT_H

/*
 * What remoting wants from whoever has sockets: the host with libuv, the simulator with a network of
 * its own, later the same bytes inside TLS. A connection carries bytes one way and is known by a
 * number that the remote part chooses for those it makes, and the transport for those it accepts.
 *
 * The remote part is not its own thread: the transport has one, the *driver's thread*, from which it
 * calls the functions of remote/driver.h, one at a time, and on which all of these are called but
 * wake. Calling back from within a call is not allowed: what happens at once is told later.
 */

#include "base/base.h"

typedef uint32_t fk_conn_id; /* not 0 */

/* Numbers of connections that others make have this bit, ours do not. */
#define FK_CONN_ACCEPTED ((fk_conn_id)1 << 31)

typedef struct fk_transport {
    void *ctx;
    /* Begins to connect; host is a name or an address, without brackets, and lent for the call. How it ends is told
     * by fk__driver_connected() or fk__driver_closed(), unless it is closed before. What is not FK_OK
     * is told by nothing else. is_wanted: a program here has named that system, and it is not only what
     * a stranger says of itself, which may not keep others waiting. */
    fk_err (*connect)(void *ctx, fk_conn_id conn, fk_str host, uint16_t port, bool is_wanted);
    /* True: all was taken, the bytes are the caller's again, and more may be written at once. False: they
     * are lent until fk__driver_writable() says that they are gone, or the connection is closed. */
    bool (*write)(void *ctx, fk_conn_id conn, const void *bytes, size_t len);
    /* No more is told of it after this. Ours: what was written and taken still goes out, if `gently`. */
    void (*close)(void *ctx, fk_conn_id conn, bool gently);
    /* From any thread: fk__driver_run() is to be called soon. Cheap when that is already so. */
    void (*wake)(void *ctx);
    /* From any thread; NULL: never. True: the driver's thread sleeps and stays out of everything until
     * it is given back; in its place the caller may use what is the driver's, and write, but neither
     * connect nor close. */
    bool (*borrow)(void *ctx);
    void (*give_back)(void *ctx);
} fk_transport;

#endif /* FK_REMOTE_TRANSPORT_H */

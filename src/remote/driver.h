/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_DRIVER_H
#define FK_REMOTE_DRIVER_H

/*
 * The driver: connects the state machines of this part (authorities, handshakes, delivery, watches)
 * with each other, with a transport and with the actors. All of it happens on the driver's thread
 * (remote/transport.h); others only push messages onto a line (remote/line.h) and wake it.
 *
 * Time comes in as `now`, of the system's clock.
 */

#include "remote/transport.h"

typedef struct fk_system fk_system;
typedef struct fk_driver fk_driver;
typedef struct fk_worker fk_worker;

/* The system's driver, or NULL if remoting is not enabled in its config. */
fk_driver *fk__driver_of(const fk_system *sys);

/* Before the system runs: from now on fk__driver_run() may be called. `worker` is the thread's, with
 * whose local everything is sent (core/dispatch.h). */
void fk__driver_start(fk_driver *driver, const fk_transport *transport, fk_worker *worker);
/* Nothing more is told to the transport; all connections are closed. What waits stays deferred until
 * the system is destroyed. */
void fk__driver_stop(fk_driver *driver);

/* Does what is due, then returns when it wants to be called next, unless woken before: FK_NEVER, or
 * any time. To be called after each batch of the calls below, too: they only take in. */
fk_time fk__driver_run(fk_driver *driver, fk_time now);

/* Somebody has connected to us. False: too many have; close it. */
FK_MUST_USE bool fk__driver_accepted(fk_driver *driver, fk_conn_id conn, fk_str from, fk_time now);
/* A connection of ours is there. */
void fk__driver_connected(fk_driver *driver, fk_conn_id conn, fk_time now);
/* What was lent is written. */
void fk__driver_writable(fk_driver *driver, fk_conn_id conn, fk_time now);
/* Bytes have come; lent for the call. False: close it, for it is of no use any more; nothing more may
 * be told of it. On a connection of ours any byte is one too many. */
FK_MUST_USE bool fk__driver_read(fk_driver *driver, fk_conn_id conn, fk_str bytes, fk_time now);
/* It is gone, or was never made: by the peer, by an error, for which err is FK_E_OS, and a text. */
void fk__driver_closed(fk_driver *driver, fk_conn_id conn, fk_err err, fk_str why, fk_time now);

/* Bytes of a message that go into a frame, whoever sends it to whom. */
size_t fk__driver_message_max(const fk_driver *driver);

/* ---- for the remote part itself ---------------------------------------------------------------- */

struct fk_remote;
struct fk_remoting_config;

/* Sets remote->driver. config: complete (remote/config.h). */
FK_MUST_USE fk_err fk__driver_create(struct fk_remote *remote,
                                     const struct fk_remoting_config *config);
void fk__driver_destroy(struct fk_remote *remote);
/* Any thread: a step of an authority was made by somebody else. */
void fk__driver_poke(fk_driver *driver);
/* Any thread: somebody was refused because the table of authorities is full. The next one is not, if
 * anybody can give way. */
void fk__driver_full(fk_driver *driver);
/* Under the lock: there are so many authorities that those nobody wants must go at once. */
bool fk__driver_is_crowded(const fk_driver *driver);

#endif /* FK_REMOTE_DRIVER_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_NET_H
#define FK_HOST_NET_H

/*
 * The network of a system with remoting: a libuv loop on the thread of worker 0, the transport that
 * the driver uses (remote/transport.h), and the calls to the driver (remote/driver.h).
 *
 * A build without libuv has offline.c instead, where fk__net_listen() gives FK_E_UNSUPPORTED.
 */

#include "core/system.h"

typedef struct fk_net fk_net;

/* ---- before there is a system ---------------------------------------------------------------- */

/* Completes config->remoting, binds and listens, so that the port is known, which becomes part of the
 * system's own address. *fd is to be closed by whoever does not pass it on. FK_E_AUTHORITY,
 * FK_E_INVALID, FK_E_FORBIDDEN, FK_E_IN_USE, FK_E_OS, FK_E_UNSUPPORTED; on_event is told why. */
FK_MUST_USE fk_err fk__net_listen(fk_system_config *config, const fk_port *port, int *fd);
/* The port that a socket is bound to. */
uint16_t fk__net_port(int fd);

/* ---- with the system ------------------------------------------------------------------------- */

/* Starts the driver. The listening socket is taken, even on failure. is_driven: there are no threads,
 * the caller's loop uses fk__net_fd() and fk__net_turn(). */
FK_MUST_USE fk_err fk__net_create(fk_system *sys, int listener, bool is_driven, fk_net **out);
/* The worker's thread is gone. Stops the driver and closes everything. net may be NULL. */
void fk__net_destroy(fk_net *net);

/* From any thread: worker 0 has work. */
void fk__net_wake(fk_net *net);

/* What the thread of worker 0 does, until its worker leaves. */
void fk__net_run(fk_net *net);

/* For the caller's loop: readable when there is something to do, ... */
int fk__net_fd(const fk_net *net);
/* ... at the latest after this time, ... */
fk_time fk__net_left(fk_net *net);
/* ... by this: the network, the driver, and the worker for up to so many windows. */
void fk__net_turn(fk_net *net, uint32_t windows);

#endif /* FK_HOST_NET_H */

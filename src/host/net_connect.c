/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Connecting: to an address at once; to a name when it has been looked up (net_lookup.c), trying its
 * addresses in turn ("localhost" has two, and we listen at one of them).
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/net_state.h"

/* A socket that has begun to connect, or the error. */
static int begin(fk_conn *conn, const struct sockaddr *to, socklen_t size)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    if (fk__conn_attach(conn, fd) != FK_OK) return ENOMEM;
    if (connect(fd, to, size) != 0 && errno != EINPROGRESS) return errno;
    conn->state = FK_CONN_CONNECTING;
    fk__conn_watch(conn); /* also if it is there already: the driver is told later */
    return 0;
}

/* Connecting to a port of this machine at which nobody listens, a socket may be given that very port
 * by the kernel, and is then connected to itself. */
static bool is_own_end(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
    memset(&own, 0, sizeof(own));
    memset(&peer, 0, sizeof(peer));
    if (getsockname(fd, (struct sockaddr *)&own, &own_size) != 0) return false;
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_size) != 0) return false;
    return own_size == peer_size && memcmp(&own, &peer, own_size) == 0;
}

void fk__conn_connected(fk_conn *conn)
{
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error == 0 && is_own_end(conn->fd)) error = ECONNREFUSED;
    if (error != 0) {
        fk__conn_try_next(conn, error);
        return;
    }
    conn->state = FK_CONN_OPEN;
    fk__conn_watch(conn);
    fk__driver_connected(conn->net->driver, conn->id, conn->net->now);
}

void fk__conn_try_next(fk_conn *conn, int error)
{
    if (conn->candidate == NULL) {
        fk__conn_fail(conn, error);
        return;
    }
    if (conn->has_handle) { /* comes back here when libuv has let go of it */
        fk__conn_detach(conn);
        return;
    }
    const struct addrinfo *candidate = conn->candidate;
    conn->candidate = candidate->ai_next;
    error = begin(conn, candidate->ai_addr, candidate->ai_addrlen);
    if (error != 0) fk__conn_try_next(conn, error);
}

fk_err fk__net_connect(void *ctx, fk_conn_id id, fk_str host, uint16_t port, bool is_wanted)
{
    fk_net *net = ctx;
    fk_conn *conn;
    char name[FK_NET_NAME];
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    fk_err err;
    if (host.len == 0 || host.len >= sizeof(name)) return FK_E_AUTHORITY;
    memcpy(name, host.ptr, host.len);
    name[host.len] = '\0';
    FK_TRY(fk__conn_create(net, id, &conn));
    if (inet_pton(AF_INET, name, &v4.sin_addr) == 1)
        err = begin(conn, (struct sockaddr *)&v4, sizeof(v4)) == 0 ? FK_OK : FK_E_OS;
    else if (inet_pton(AF_INET6, name, &v6.sin6_addr) == 1)
        err = begin(conn, (struct sockaddr *)&v6, sizeof(v6)) == 0 ? FK_OK : FK_E_OS;
    else
        err = fk__lookup_begin(conn, name, port, is_wanted ? FK_LOOKUP_WANTED : FK_LOOKUP_STRANGER);
    if (err != FK_OK) fk__conn_drop(conn, true);
    return err;
}

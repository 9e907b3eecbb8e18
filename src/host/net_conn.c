/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A connection: read, written, closed.
 *
 * While the driver is called it may close any connection, also the one it is told of. Closing marks
 * it; its memory goes when libuv has let go of it, which is never within a callback. So after each
 * call to the driver the state is looked at again.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/net_state.h"

enum { READS_AT_ONCE = 4 }; /* full buffers of one connection before the others get their turn */

/* ---- the table ------------------------------------------------------------------------------- */

static fk_conn **bucket_of(fk_net *net, fk_conn_id id)
{
    return &net->bucket[id % FK_NET_BUCKETS];
}

fk_conn *fk__conn_find(const fk_net *net, fk_conn_id id)
{
    fk_conn *conn = net->bucket[id % FK_NET_BUCKETS];
    while (conn != NULL && conn->id != id) conn = conn->bucket_next;
    return conn;
}

fk_err fk__conn_create(fk_net *net, fk_conn_id id, fk_conn **out)
{
    void *memory;
    FK_ASSERT(fk__conn_find(net, id) == NULL);
    FK_TRY(fk__mem_alloc(&net->sys->mem, sizeof(fk_conn), FK_SITE("connection"), &memory));
    fk_conn *conn = memory;
    fk_conn **bucket = bucket_of(net, id);
    memset(conn, 0, sizeof(*conn));
    conn->net = net;
    conn->id = id;
    conn->fd = -1;
    conn->deadline = FK_NEVER;
    conn->bucket_next = *bucket;
    *bucket = conn;
    conn->next = net->conns;
    if (net->conns != NULL) net->conns->prev = conn;
    net->conns = conn;
    *out = conn;
    return FK_OK;
}

/* Nobody will call it by its number any more. */
static void conn_forget(fk_conn *conn)
{
    fk_conn **at = bucket_of(conn->net, conn->id);
    while (*at != NULL && *at != conn) at = &(*at)->bucket_next;
    if (*at == conn) *at = conn->bucket_next;
}

void fk__conn_deadline(fk_conn *conn, fk_time at)
{
    fk_net *net = conn->net;
    if (conn->deadline != FK_NEVER) net->timed--;
    if (at != FK_NEVER) net->timed++;
    conn->deadline = at;
    fk__net_sweep(net);
}

/* ---- its socket -------------------------------------------------------------------------------- */

static void conn_read(fk_conn *conn);
static void conn_write(fk_conn *conn);
static void conn_leave(fk_conn *conn);

static void on_conn(uv_poll_t *poll, int status, int events)
{
    fk_conn *conn = poll->data;
    fk__net_enter(conn->net);
    if (conn->state == FK_CONN_CONNECTING) {
        fk__conn_connected(conn);
        return;
    }
    /* An error of the socket comes as a status, and libuv polls no more: reading finds out which. */
    bool is_readable = status < 0 || (events & UV_READABLE) != 0;
    if (conn->state == FK_CONN_OPEN && (events & UV_WRITABLE) != 0) conn_write(conn);
    if (conn->state == FK_CONN_OPEN && is_readable) conn_read(conn);
    if (conn->state == FK_CONN_LEAVING && is_readable) conn_leave(conn);
    if (status < 0) fk__conn_watch(conn);
}

void fk__conn_watch(fk_conn *conn)
{
    int events = 0;
    if (conn->state == FK_CONN_CONNECTING) events = UV_WRITABLE;
    if (conn->state == FK_CONN_OPEN) events = UV_READABLE | (conn->lent != NULL ? UV_WRITABLE : 0);
    if (conn->state == FK_CONN_LEAVING) events = UV_READABLE;
    if (events == 0 || !conn->has_handle) return;
    int failed = uv_poll_start(&conn->poll, events, on_conn);
    FK_ASSERT(failed == 0); /* it fails for handles that are being closed only */
}

fk_err fk__conn_attach(fk_conn *conn, int fd)
{
    static const int ON = 1, IDLE_SECONDS = 60;
    FK_ASSERT(!conn->has_handle);
    if (uv_poll_init(&conn->net->loop, &conn->poll, fd) != 0) {
        close(fd);
        return FK_E_OS;
    }
    conn->has_handle = true;
    conn->poll.data = conn;
    conn->fd = fd;
    /* Frames are gathered before they are written, so nothing is gained by waiting for more. Without
     * traffic a peer that has vanished is noticed in the end. Neither is needed to work. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &ON, sizeof(ON));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &ON, sizeof(ON));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &IDLE_SECONDS, sizeof(IDLE_SECONDS));
    return FK_OK;
}

/* ---- closing ------------------------------------------------------------------------------------ */

void fk__conn_free(fk_conn *conn)
{
    fk_net *net = conn->net;
    if (conn->has_handle) return; /* libuv's, for now */
    if (net->sweep_next == conn) net->sweep_next = conn->next;
    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        net->conns = conn->next;
    if (conn->next != NULL) conn->next->prev = conn->prev;
    if (conn->found != NULL) freeaddrinfo(conn->found);
    fk__mem_free(&net->sys->mem, conn, sizeof(*conn));
}

static void on_detached(uv_handle_t *handle)
{
    fk_conn *conn = handle->data;
    conn->has_handle = false;
    if (conn->state == FK_CONN_CLOSED) {
        fk__conn_free(conn);
        return;
    }
    fk__net_enter(conn->net);
    fk__conn_try_next(conn, 0);
}

void fk__conn_detach(fk_conn *conn)
{
    if (conn->fd < 0) return;
    uv_close((uv_handle_t *)&conn->poll, on_detached);
    close(conn->fd);
    conn->fd = -1;
}

void fk__conn_drop(fk_conn *conn, bool by_reset)
{
    static const struct linger NOTHING = { 1, 0 };
    if (conn->state == FK_CONN_CLOSED) return;
    if (conn->state != FK_CONN_LEAVING) conn_forget(conn);
    conn->state = FK_CONN_CLOSED;
    conn->lent = NULL;
    fk__conn_deadline(conn, FK_NEVER);
    fk__lookup_leave(conn);
    if (by_reset && conn->fd >= 0) {
        setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &NOTHING, sizeof(NOTHING));
    }
    fk__conn_detach(conn);
    fk__conn_free(conn);
}

void fk__conn_fail_with(fk_conn *conn, fk_err err, const char *why)
{
    fk_net *net = conn->net;
    fk_conn_id id = conn->id;
    fk__conn_drop(conn, err != FK_OK);
    fk__driver_closed(net->driver, id, err, fk_str_of(why), net->now);
}

void fk__conn_fail(fk_conn *conn, int error)
{
    char text[128];
    if (error == 0) {
        fk__conn_fail_with(conn, FK_OK, "closed by the peer");
        return;
    }
    fk__conn_fail_with(conn, FK_E_OS,
                       uv_strerror_r(uv_translate_sys_error(error), text, sizeof(text)));
}

/* The peer is told that there is no more, and we wait for a while until it ends its side, too: closed
 * at once, a byte of its own that is still on the way would make the kernel throw away what it has
 * not got yet. */
static void conn_close_gently(fk_conn *conn)
{
    conn_forget(conn);
    conn->state = FK_CONN_LEAVING;
    shutdown(conn->fd, SHUT_WR);
    fk__conn_deadline(conn, fk__time_add(conn->net->now, conn->net->leave));
    fk__conn_watch(conn);
}

void fk__net_close(void *ctx, fk_conn_id id, bool gently)
{
    fk_conn *conn = fk__conn_find(ctx, id);
    if (conn == NULL) return;
    /* What is lent goes back to its owner, so the rest of it cannot be sent: there is nothing gentle
     * about a frame cut in two. Of those that others make nothing was ever written. */
    bool is_whole = conn->state == FK_CONN_OPEN && conn->lent == NULL;
    bool is_ours = (id & FK_CONN_ACCEPTED) == 0;
    if (gently && is_whole && is_ours)
        conn_close_gently(conn);
    else
        fk__conn_drop(conn, is_ours);
}

static void conn_leave(fk_conn *conn)
{
    ssize_t n = recv(conn->fd, conn->net->buffer, FK_NET_READ, 0);
    bool is_waiting = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
    if (!is_waiting) fk__conn_drop(conn, false);
}

void fk__conns_sweep(fk_net *net)
{
    for (fk_conn *conn = net->conns; conn != NULL; conn = net->sweep_next) {
        net->sweep_next = conn->next; /* or who is there when that one is gone */
        if (conn->deadline > net->now) continue;
        if (conn->state == FK_CONN_LEAVING)
            fk__conn_drop(conn, false);
        else if (conn->state == FK_CONN_LOOKUP)
            fk__conn_fail_with(conn, FK_E_OS, "its name was not found in time");
        else
            fk__conn_fail_with(conn, FK_E_OS, "the peer has not read for too long");
    }
}

/* ---- bytes -------------------------------------------------------------------------------------- */

static void conn_read(fk_conn *conn)
{
    fk_net *net = conn->net;
    for (int i = 0; i < READS_AT_ONCE && conn->state == FK_CONN_OPEN; i++) {
        ssize_t n = recv(conn->fd, net->buffer, FK_NET_READ, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            fk__conn_fail(conn, n == 0 ? 0 : errno);
            return;
        }
        fk_str bytes = { net->buffer, (size_t)n };
        if (!fk__driver_read(net->driver, conn->id, bytes, net->now)) {
            fk__conn_drop(conn, true);
            return;
        }
        if ((size_t)n < FK_NET_READ) return; /* that was all; there is no need to ask */
    }
}

/* How many of these bytes the kernel has taken. If the connection is broken, none; and reading, which
 * goes on all the time, will say so. */
static size_t conn_send(fk_conn *conn, const char *bytes, size_t len)
{
    size_t sent = 0;
    while (sent < len) {
        ssize_t n = send(conn->fd, bytes + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        sent += (size_t)n;
    }
    return sent;
}

bool fk__net_write(void *ctx, fk_conn_id id, const void *bytes, size_t len)
{
    fk_net *net = ctx;
    fk_conn *conn = fk__conn_find(net, id);
    FK_ASSERT(conn != NULL);
    FK_ASSERT(conn->state == FK_CONN_OPEN);
    FK_ASSERT(conn->lent == NULL);
    size_t sent = conn_send(conn, bytes, len);
    if (sent == len) return true;
    conn->lent = (const char *)bytes + sent;
    conn->lent_len = len - sent;
    FK_ASSERT(net->unwatched == NULL);
    if (net->is_down)
        net->unwatched = conn;
    else
        fk__conn_stall(conn);
    return false;
}

void fk__conn_stall(fk_conn *conn)
{
    fk__conn_deadline(conn, fk__time_add(conn->net->now, conn->net->stall));
    fk__conn_watch(conn);
}

static void conn_write(fk_conn *conn)
{
    fk_net *net = conn->net;
    if (conn->lent == NULL) return;
    size_t sent = conn_send(conn, conn->lent, conn->lent_len);
    conn->lent += sent;
    conn->lent_len -= sent;
    if (conn->lent_len > 0) {
        if (sent > 0) fk__conn_deadline(conn, fk__time_add(net->now, net->stall));
        return;
    }
    conn->lent = NULL;
    fk__conn_deadline(conn, FK_NEVER);
    fk__conn_watch(conn);
    fk__driver_writable(net->driver, conn->id, net->now);
}

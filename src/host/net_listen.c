/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Listening, accepting, and what becomes of it without descriptors. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fraktor/log.h"
#include "host/net_state.h"
#include "remote/config.h"

enum { BACKLOG = 511, ACCEPTS_AT_ONCE = 64, ADDRESS_TEXT = INET6_ADDRSTRLEN + 8 };

#define LOG_EVERY FK_SECONDS(10)

typedef union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} address;

/* ---- before there is a system ---------------------------------------------------------------- */

/* "127.0.0.1", "::1", "[::1]". */
static bool address_read(const char *text, uint16_t port, address *out)
{
    char bare[INET6_ADDRSTRLEN];
    size_t len = strlen(text);
    memset(out, 0, sizeof(*out));
    if (len > 1 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len >= sizeof(bare)) return false;
    memcpy(bare, text, len);
    bare[len] = '\0';
    if (inet_pton(AF_INET, bare, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, bare, &out->v6.sin6_addr) != 1) return false;
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(port);
    return true;
}

static bool is_loopback(const address *a)
{
    if (a->any.sa_family == AF_INET) return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *v6 = &a->v6.sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
}

static socklen_t address_size(const address *a)
{
    return a->any.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
}

/* *why: of errno. */
static fk_err listener_open(const address *a, int *fd, int *why)
{
    static const int ON = 1;
    int s = socket(a->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) {
        *why = errno;
        return FK_E_OS;
    }
    /* A port whose last owner has just gone is free. */
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &ON, sizeof(ON));
    /* Two may bind to it as long as none listens: only after that it is ours. */
    if (bind(s, &a->any, address_size(a)) != 0 || listen(s, BACKLOG) != 0) {
        *why = errno;
        close(s);
        return *why == EADDRINUSE ? FK_E_IN_USE : FK_E_OS;
    }
    *fd = s;
    return FK_OK;
}

/* There is no system yet whose stream could carry it; on_event is told all the same. */
static void listener_explain(const fk_system_config *config, const fk_port *port, uint16_t number,
                             const char *why)
{
    char text[256];
    if (config->on_event == NULL) return;
    int len = snprintf(text, sizeof(text), "cannot listen at %.64s, port %u: %s",
                       config->remoting.bind_host, number, why);
    if (len < 0) return;
    size_t size = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
    config->on_event(config->user, &(fk_event){ .kind = FK_EVENT_LOG,
                                                .level = FK_LEVEL_ERROR,
                                                .at = port->now(port->ctx),
                                                .text = { text, size } });
}

uint16_t fk__net_port(int fd)
{
    address a = { .any.sa_family = AF_UNSPEC };
    socklen_t size = sizeof(a);
    if (getsockname(fd, &a.any, &size) != 0) return 0;
    return ntohs(a.any.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
}

/* Others may have half of the descriptors that there are; an eighth is for connections of ours that are
 * being made. What is left is for those that were made, and for files. */
static void connections_bound(fk_remoting_config *remoting)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= UINT32_MAX) return;
    uint32_t all = (uint32_t)limit.rlim_cur;
    uint32_t half = all / 2 > 0 ? all / 2 : 1, eighth = all / 8 > 0 ? all / 8 : 1;
    if (remoting->connections_max > half) remoting->connections_max = half;
    if (remoting->half_open_max > half) remoting->half_open_max = half;
    if (remoting->connecting_max > eighth) remoting->connecting_max = eighth;
}

fk_err fk__net_listen(fk_system_config *config, const fk_port *port, int *fd)
{
    fk_remoting_config *remoting = &config->remoting;
    address a;
    int why = 0;
    FK_TRY(fk__remoting_configure(remoting, remoting));
    connections_bound(remoting);
    uint16_t number = remoting->bind_port != 0 ? remoting->bind_port : remoting->port;
    if (!address_read(remoting->bind_host, number, &a)) {
        listener_explain(config, port, number, "that is not an address");
        return FK_E_AUTHORITY;
    }
    if (!remoting->allow_unencrypted_beyond_loopback && !is_loopback(&a)) {
        listener_explain(config, port, number,
                         "others can reach it, and allow_unencrypted_beyond_loopback is not set");
        return FK_E_FORBIDDEN;
    }
    fk_err err = listener_open(&a, fd, &why);
    if (err != FK_OK) {
        listener_explain(config, port, number, uv_strerror(uv_translate_sys_error(why)));
        return err;
    }
    if (remoting->port == 0) remoting->port = fk__net_port(*fd);
    return FK_OK;
}

/* ---- accepting ------------------------------------------------------------------------------ */

static fk_str address_text(const address *a, char buf[ADDRESS_TEXT])
{
    char host[INET6_ADDRSTRLEN] = "?";
    bool is_v4 = a->any.sa_family == AF_INET;
    const void *from = is_v4 ? (const void *)&a->v4.sin_addr : (const void *)&a->v6.sin6_addr;
    inet_ntop(a->any.sa_family, from, host, sizeof(host));
    unsigned port = ntohs(is_v4 ? a->v4.sin_port : a->v6.sin6_port);
    int len = snprintf(buf, ADDRESS_TEXT, is_v4 ? "%s:%u" : "[%s]:%u", host, port);
    return (fk_str){ buf, len > 0 ? (size_t)len : 0 };
}

/* A number that nobody has. */
static fk_conn_id next_id(fk_net *net)
{
    do {
        net->accepted = (net->accepted + 1) & ~FK_CONN_ACCEPTED;
    } while (fk__conn_find(net, net->accepted | FK_CONN_ACCEPTED) != NULL);
    return net->accepted | FK_CONN_ACCEPTED;
}

static void welcome(fk_net *net, int fd, const address *from)
{
    char buf[ADDRESS_TEXT];
    fk_conn *conn;
    if (fk__conn_create(net, next_id(net), &conn) != FK_OK) {
        close(fd);
        return;
    }
    conn->state = FK_CONN_OPEN;
    if (fk__conn_attach(conn, fd) != FK_OK ||
        !fk__driver_accepted(net->driver, conn->id, address_text(from, buf), net->now)) {
        fk__conn_drop(conn, true);
        return;
    }
    fk__conn_watch(conn); /* does nothing if the driver has closed it at once */
}

static void log_exhausted(fk_net *net)
{
    char text[128];
    if (net->listener.logged != 0 && net->now - net->listener.logged < LOG_EVERY) return;
    int len = snprintf(text, sizeof(text),
                       "no file descriptors left: %u connections turned away (ulimit -n)",
                       net->listener.turned_away);
    net->listener.logged = net->now;
    net->listener.turned_away = 0;
    if (len > 0) fk_log(net->sys, FK_LEVEL_WARN, FK_REF_NONE, (fk_str){ text, (size_t)len });
}

static int spare_open(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Nobody can be let in. Left in the queue the connection would keep the socket readable and us busy
 * for nothing, so it is turned away with the help of the spare descriptor; if somebody else has got
 * hold of that, we do not listen for a while. */
static void turn_away(fk_net *net)
{
    if (net->listener.spare >= 0) {
        close(net->listener.spare);
        int fd = accept4(net->listener.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) close(fd);
        net->listener.spare = spare_open();
        if (fd >= 0) net->listener.turned_away++;
    }
    if (net->listener.spare < 0) {
        net->listener.is_paused = true;
        uv_poll_stop(&net->listener.poll);
        fk__net_sweep(net);
    }
    log_exhausted(net);
}

static void on_knock(uv_poll_t *poll, int status, int events)
{
    fk_net *net = poll->data;
    (void)status; /* accept says it better */
    (void)events;
    fk__net_enter(net);
    for (int i = 0; i < ACCEPTS_AT_ONCE && !net->listener.is_paused; i++) {
        address from = { .any.sa_family = AF_UNSPEC };
        socklen_t size = sizeof(from);
        int fd = accept4(net->listener.fd, &from.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            welcome(net, fd, &from);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            turn_away(net);
        else if (errno == EAGAIN)
            return; /* anything else is that connection's own trouble: the next one */
    }
}

void fk__net_resume_listener(fk_net *net)
{
    if (!net->listener.is_paused) return;
    net->listener.spare = spare_open();
    if (net->listener.spare < 0) return;
    net->listener.is_paused = false;
    uv_poll_start(&net->listener.poll, UV_READABLE, on_knock);
}

fk_err fk__net_open_listener(fk_net *net, int fd)
{
    net->listener.fd = fd;
    net->listener.spare = spare_open();
    if (net->listener.spare < 0) return FK_E_OS;
    if (uv_poll_init(&net->loop, &net->listener.poll, fd) != 0) return FK_E_OS;
    net->listener.has_handle = true;
    net->listener.poll.data = net;
    return uv_poll_start(&net->listener.poll, UV_READABLE, on_knock) == 0 ? FK_OK : FK_E_OS;
}

void fk__net_close_listener(fk_net *net)
{
    if (net->listener.has_handle) uv_close((uv_handle_t *)&net->listener.poll, NULL);
    if (net->listener.fd >= 0) close(net->listener.fd);
    if (net->listener.spare >= 0) close(net->listener.spare);
    net->listener.fd = net->listener.spare = -1;
}

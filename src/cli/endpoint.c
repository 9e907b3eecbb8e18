/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "endpoint.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PROBE_MS = 1000 };

bool endpoint_parse(const char *text, bool needs_port, endpoint *out)
{
    uint64_t port = 0;
    const char *bracket = strrchr(text, ']');
    const char *colon = strrchr(bracket != NULL ? bracket : text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);
    if (len == 0 || len >= sizeof out->host) return false;
    if (colon == NULL && needs_port) return false;
    if (colon != NULL && !cli_number(colon + 1, 0, UINT16_MAX, &port)) return false;
    memcpy(out->host, text, len);
    out->host[len] = '\0';
    out->port = (uint16_t)port;
    return true;
}

/* 0, or why not. */
static int probe_address(const struct addrinfo *address)
{
    int error = 0;
    socklen_t size = sizeof error;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
        struct pollfd p = { fd, POLLOUT, 0 };
        error = ETIMEDOUT;
        if (poll(&p, 1, PROBE_MS) == 1) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    close(fd);
    return error;
}

bool endpoint_probe(const endpoint *at, char *why, size_t size)
{
    char host[sizeof at->host], port[8];
    struct addrinfo *found = NULL;
    const struct addrinfo wish = { .ai_socktype = SOCK_STREAM };
    size_t len = strlen(at->host);
    bool is_bracketed = at->host[0] == '[' && len > 2;
    snprintf(host, sizeof host, "%.*s", (int)(is_bracketed ? len - 2 : len),
             at->host + (is_bracketed ? 1 : 0));
    snprintf(port, sizeof port, "%u", at->port);
    int code = getaddrinfo(host, port, &wish, &found);
    if (code != 0) {
        snprintf(why, size, "%s", gai_strerror(code));
        return false;
    }
    int error = probe_address(found);
    freeaddrinfo(found);
    if (error == 0) return true;
    const char *text = strerror(error);
    snprintf(why, size, "%c%s", text[0] | 0x20, text + 1); /* within a sentence */
    return false;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_ENDPOINT_H
#define FK_CLI_ENDPOINT_H

/* A host and a port, as people write them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct endpoint {
    char host[256]; /* of IPv6 with its brackets */
    uint16_t port;
} endpoint;

/* "127.0.0.1:4001", "[::1]:0"; without a port only if it need not have one. */
bool endpoint_parse(const char *text, bool needs_port, endpoint *out);

/* Connects and hangs up at once, to find out why nobody answers. Writes it as in "connection
 * refused"; true, and nothing written, when somebody takes the call. */
bool endpoint_probe(const endpoint *at, char *why, size_t size);

#endif /* FK_CLI_ENDPOINT_H */

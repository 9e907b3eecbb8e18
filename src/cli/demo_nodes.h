/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_DEMO_NODES_H
#define FK_CLI_DEMO_NODES_H

/*
 * The nodes of `fraktor demo`: child processes that run this very program as `fraktor node`. They die
 * with their parent, whatever ends it. A node that is started again keeps its address, and with it its
 * name in the cluster. What they log is a file each, in the demo's folder.
 */

#include "folder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { DEMO_TTL_MS = 1000 };

typedef struct demo_node {
    char folder[FOLDER_MAX]; /* of the demo; the store is there, too */
    uint32_t number;         /* 1, 2, 3 */
    uint16_t port;           /* 0: not started yet */
    pid_t pid;               /* 0: it does not run */
    char id[300];            /* of the member */
} demo_node;

/* Starts the process; demo_node_await() waits until it is a member. */
bool demo_node_start(demo_node *node, int *ready_fd);
bool demo_node_await(demo_node *node, int ready_fd);
/* At once. */
void demo_node_kill(demo_node *node);
/* In order: SIGTERM, and demo_node_is_gone() tells when it has gone, and whether in order. */
void demo_node_drain(demo_node *node);
bool demo_node_is_gone(demo_node *node, bool *in_order);

#endif /* FK_CLI_DEMO_NODES_H */

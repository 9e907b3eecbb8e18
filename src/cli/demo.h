/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_DEMO_H
#define FK_CLI_DEMO_H

/* fraktor demo: what the script (demo.c) and what is shown of it (demo_show.c) share. */

#include "demo_nodes.h"
#include "folder.h"
#include "load.h"

enum { DEMO_NODES = 3, DEMO_ACCOUNTS = 100, DEMO_CALLERS = 16 };

typedef struct demo {
    bool json, has_failed;
    uint64_t seconds;
    char folder[FOLDER_MAX];
    demo_node node[DEMO_NODES];
    fk_system *sys;
    fk_cluster *cluster;
    load *load;
    double begun;
    load_figures before; /* at the last line */
    double said_at;

    char owner[DEMO_ACCOUNTS][64]; /* of each account, when it was last looked */
    uint64_t moved;
    uint32_t members;
    double failover_ms, drain_ms; /* longest pause of a key; negative: there was none */
} demo;

void demo_say_begin(const demo *self);
void demo_say_progress(demo *self);
/* "killed", "restarted", "draining", "drained" */
void demo_say_node(const demo *self, const char *what, const demo_node *node);
/* True: nothing is lost, and nothing was done twice. */
bool demo_say_end(demo *self, double seconds, const load_books *books);

#endif /* FK_CLI_DEMO_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_NODE_ADMIN_H
#define FK_CLI_NODE_ADMIN_H

/*
 * /user/admin of a node: one text is one command, and every command is answered.
 *
 *   assoc [json]          what is known of each other system: a table, or an object per line
 *   quarantine ADDRESS    fk_authority_quarantine()
 *   clear ADDRESS         fk_authority_override()
 *   force ADDRESS         fk_authority_override_force()
 *   send COUNT PATH       the texts "1" to COUNT to an actor of any system
 *   meet PATH             asks who is there, and remembers the answer: this very actor
 *   tell TEXT             to whom it has met
 *   watch                 whom it has met
 *   counts                what has happened so far
 *   members [json]        of the cluster, as this node knows them
 *   grains [json] [KIND]  that are active on this node
 *   where text|json KIND KEY      who owns a grain, and why
 *   call MS KIND SIZE KEY TEXT    asks a grain; SIZE: bytes of the key, which may have spaces.
 *                                 Answers "ok MILLISECONDS TYPE", a newline, and what the grain said
 *
 * Those from send to counts make a node a second party that tests and people at a terminal can move about.
 */

#include <fraktor/fraktor.h>

fk_err node_admin_spawn(fk_system *sys);

/* node_assoc.c: writes what "assoc" answers; owned by the caller, to be freed. NULL: no memory. */
char *node_assoc_text(fk_system *sys, bool json);

/* node_grains.c: the same with "ok\n" before it. NULL: *err says why. */
char *node_members_text(fk_system *sys, bool json, fk_err *err);
char *node_grains_text(fk_system *sys, bool json, const char *kind, fk_err *err);
char *node_where_text(fk_system *sys, bool json, fk_str kind, fk_str key, fk_err *err);

/* ---- node_call.c: calls of grains that are under way ---- */

enum { NODE_CALLS_MAX = 64 };

typedef struct node_call {
    uint64_t id; /* 0: free */
    fk_ref asker;
    double begun;
} node_call;

typedef struct node_calls {
    uint64_t last; /* id given */
    node_call call[NODE_CALLS_MAX];
} node_calls;

/* rest: what follows "call". FK_OK: the answer comes as an fk_answer, some time. */
fk_err node_calls_begin(fk_ctx *ctx, node_calls *calls, fk_ref asker, fk_str rest);
/* False: the answer is to no call. */
bool node_calls_answer(fk_ctx *ctx, node_calls *calls, const fk_answer *a);

#endif /* FK_CLI_NODE_ADMIN_H */

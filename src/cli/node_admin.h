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
 *
 * The last five make a node a second party that tests and people at a terminal can move about.
 */

#include <fraktor/fraktor.h>

fk_err node_admin_spawn(fk_system *sys);

/* node_assoc.c: writes what "assoc" answers; owned by the caller, to be freed. NULL: no memory. */
char *node_assoc_text(fk_system *sys, bool json);

#endif /* FK_CLI_NODE_ADMIN_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_NODE_H
#define FK_CLI_NODE_H

/*
 * fraktor node: a system that others can reach, and the actors it has to offer.
 *
 *   /user/echo    answers with what it gets
 *   /user/sink    counts what it gets, and how texts that are numbers follow each other; answers "?"
 *   /user/admin   does what a text says, and answers "ok", with more, or "error" and why
 */

#include <fraktor/fraktor.h>

/* Spawns the three. */
fk_err node_actors_spawn(fk_system *sys);

#endif /* FK_CLI_NODE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_NODE_KINDS_H
#define FK_CLI_NODE_KINDS_H

/*
 * The grain kinds that `fraktor node` has to show. A text is a command, and every one is answered with
 * a text.
 *
 *   account (durable)    balance                              ok balance=70 applied=3
 *                        deposit AMOUNT [CALLER NUMBER]       ok ...
 *                        withdraw AMOUNT [CALLER NUMBER]      ok ..., or refused ...
 *   counter (volatile)   add N | get                          ok count=7
 *
 * The runtime gives a call one effect however often it tries. But a call that ran out of time leaves its
 * caller without knowing; so orders can have a caller and a number. Each caller counts its own up, and
 * has one under way at a time; the account remembers the last of each, next to the balance. An order
 * that comes again is answered as then, and one from before that is "stale": nothing happens.
 */

#include <fraktor/fraktor.h>

enum {
    ACCOUNT_CALLERS_MAX = 128
}; /* remembered by an account; who was not there for longest goes */

fk_err node_kinds_register(fk_cluster *cluster);

#endif /* FK_CLI_NODE_KINDS_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_ADMIN_H
#define FK_CLI_ADMIN_H

/* What the commands that ask a running node's /user/admin share. */

#include "client.h"

#define ADMIN_NODE_DEFAULT "fraktor.tcp://demo@127.0.0.1:4001"

#define ADMIN_HELP                                                                                 \
    "  --node ADDRESS      which node (" ADMIN_NODE_DEFAULT ")\n"                                  \
    "  --timeout MS        how long it may take (5000)\n"                                          \
    "  --listen HOST:PORT  where answers can reach us (127.0.0.1, any port)\n"                     \
    "  --json              an object per line\n"                                                   \
    "\n"                                                                                           \
    "Exit code: 0 ok, 1 not reached or refused, 2 wrong usage.\n"

/* Says on stderr, or as an object on stdout, what is wrong. */
void admin_complain(const client_options *options, const char *code, const char *why);

/* Asks a node, given by its address. True: *out is a text that begins with "ok", to be freed with
 * client_answer_free(). False: what went wrong has been said, and there is nothing to free. */
bool admin_ask(const client_options *options, const char *node, fk_str text, client_answer *out);

/* The same, and prints what the node says after "ok". Gives the exit code. */
int admin_print(const client_options *options, const char *node, fk_str text);

#endif /* FK_CLI_ADMIN_H */

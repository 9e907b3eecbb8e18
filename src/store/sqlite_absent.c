/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instead of the other sqlite*.c, in a build without SQLite. */

#include "store/store.h"

static fk_err absent_open(void *user, fk_str rest, bool is_state, const fk_port *port,
                          fk_store **out, const char **why)
{
    (void)user;
    (void)rest;
    (void)is_state;
    (void)port;
    (void)out;
    *why = "this build of fraktor is without SQLite (FK_SQLITE): build it with libsqlite3-dev";
    return FK_E_UNSUPPORTED;
}

const fk_store_provider fk_store_sqlite = { "sqlite", NULL, absent_open };

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TEMP_H
#define FK_CORE_TEMP_H

/*
 * Names under /temp. They belong to no actor of that place, which has no children: a table leads from
 * each to a ref. A promise gets its name when somebody asks for its path, and loses it when it ends;
 * that of an actor is not found any more when the actor has ended, and goes when room is needed.
 */

#include "core/system.h"

struct fk_promise;

/* Who has that name and lives. */
bool fk__temp_find(fk_system *sys, fk_str name, fk_ref *out);
/* The path of a promise, as fk_path_of(); 0: it has ended, or there is no memory. */
size_t fk__temp_path(fk_local *local, fk_ref promise, char *buf, size_t size);
/* A promise has ended: its name goes, if it has one. */
void fk__temp_forget(fk_local *local, struct fk_promise *promise);
/* With the system. */
void fk__temps_fini(fk_local *local);

#endif /* FK_CORE_TEMP_H */

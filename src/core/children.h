/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_CHILDREN_H
#define FK_CORE_CHILDREN_H

/*
 * The children of a cell, by name: an open-addressed table of slots.
 *
 * Only the parent's owner changes it, except that anybody may spawn under the guardian until it
 * is closed. Changes are made under the parent's children_lock, for the sake of lookups from
 * elsewhere; the owner itself reads without.
 */

#include "core/system.h"

struct fk_name {
    uint32_t len;
    char text[];
};

/* Makes the child known. It gets its name here: `name` must be legal, or empty for a generated
 * one. FK_E_NAME_TAKEN, FK_E_STOPPING, FK_E_NOMEM, FK_E_LIMIT change nothing. */
FK_MUST_USE fk_err fk__children_add(fk_local *local, fk_cell *parent, fk_cell *child, fk_str name);
/* Forgets the child and frees its name. */
void fk__children_remove(fk_local *local, fk_cell *parent, fk_cell *child);
/* No child can be added any more. From here on the table is the owner's alone. */
void fk__children_close(fk_cell *parent);
/* For the owner of a closed parent: the next child after *cursor, which begins at 0; NULL at the
 * end. */
fk_cell *fk__children_next(fk_cell *parent, uint32_t *cursor);
/* For the owner of a closed parent without children: frees the table. */
void fk__children_fini(fk_local *local, fk_cell *parent);

/* The name of a cell, generated or not; at most `size` bytes are written. Returns its length. */
size_t fk__cell_name(const fk_cell *cell, char *buf, size_t size);

#endif /* FK_CORE_CHILDREN_H */

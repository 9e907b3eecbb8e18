/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_GUARDIAN_H
#define FK_CORE_GUARDIAN_H

/*
 * The top of the tree: the root and its children /user, /system, /temp and /deadLetters.
 *
 * They are actors like any other, except that they have no uid, that anybody may spawn under the
 * first three of the children, and that their slots are never used again: the system keeps pointers.
 */

#include "core/system.h"

enum { FK_GUARDIANS = 5 };

FK_MUST_USE fk_err fk__guardians_create(fk_system *sys);

/* The root or one of its children. */
static inline bool fk__is_guardian(const fk_cell *cell)
{
    const fk_cell *parent = fk__cell_parent(cell);
    return parent == NULL || fk__cell_parent(parent) == NULL;
}

#endif /* FK_CORE_GUARDIAN_H */

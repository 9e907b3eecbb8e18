/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SPAWN_H
#define FK_CORE_SPAWN_H

#include "core/system.h"

/* Makes an actor under parent (NULL: the first one of a system). */
FK_MUST_USE fk_err fk__spawn(fk_local *local, fk_cell *parent, fk_str name, const fk_props *props,
                             fk_ref *out);

#endif /* FK_CORE_SPAWN_H */

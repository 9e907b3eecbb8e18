/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SPAWN_H
#define FK_CORE_SPAWN_H

#include "core/system.h"

/* Makes an actor under parent (NULL: the root). The name has been checked. uid: NULL for one that
 * was never there; 0 is a guardian's, which has none. */
FK_MUST_USE fk_err fk__spawn(fk_local *local, fk_cell *parent, fk_str name, const uint64_t *uid,
                             const fk_props *props, fk_ref *out);

/* FK_E_INVALID, FK_E_STRATEGY: nobody can be made of them. */
FK_MUST_USE fk_err fk__props_check(const fk_props *props);

/* Makes a ref for a proxy, which must stay as long as the system. FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__proxy_open(fk_local *local, fk_proxy *proxy, fk_ref *out);
/* From here on its proxy is another's: *ref is stale, as that of an actor that has ended, and becomes
 * the new one. One at a time for each proxy, and not while it is watched (fk_remote_ops). False: the
 * cell has no more generations, and *ref stays what it is. */
FK_MUST_USE bool fk__proxy_reopen(const fk_system *sys, fk_ref *ref);

#endif /* FK_CORE_SPAWN_H */

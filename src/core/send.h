/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SEND_H
#define FK_CORE_SEND_H

#include "core/system.h"

/* Sends a node that exists: taken whatever happens. */
fk_err fk__send_node(fk_local *local, fk_ref to, fk_node *node);

#endif /* FK_CORE_SEND_H */

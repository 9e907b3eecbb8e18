/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SEND_H
#define FK_CORE_SEND_H

#include "core/system.h"

/* The way of every message: makes the node, finds the cell, pushes. The message is taken whatever
 * happens. FK_E_FULL with *wait: the mailbox blocks, and the message is still the caller's. */
fk_err fk__send(fk_local *local, fk_ref to, fk_ref sender, fk_out msg, bool *wait);
/* The same for a node that exists. */
fk_err fk__send_node(fk_local *local, fk_ref to, fk_node *node);

#endif /* FK_CORE_SEND_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SEND_H
#define FK_CORE_SEND_H

#include "core/system.h"

/* Sends as fk_send_from() does. wait, unless NULL, is set when the mailbox is full and the caller
 * should wait and try again: FK_E_FULL, and the message is still the caller's. */
fk_err fk__send(fk_local *local, fk_ref to, fk_ref sender, fk_out msg, bool *wait);
/* From outside, as fk_send_from(): the thread waits for the answer next. */
fk_err fk__send_question(fk_system *sys, fk_ref to, fk_ref question, fk_out msg);
/* Sends a node that exists: taken whatever happens. */
fk_err fk__send_node(fk_local *local, fk_ref to, fk_node *node);

#endif /* FK_CORE_SEND_H */

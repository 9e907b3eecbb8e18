/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SELECT_H
#define FK_CORE_SELECT_H

#include "core/system.h"

/* Sends to what an expression selects, seen from an actor. It has been read: see fk_expression. */
fk_err fk__select(fk_local *local, fk_ref anchor, const fk_expression *expression, fk_ref sender,
                  fk_out msg);
/* The same from text, as fk_select_send_from(), except that FK_E_PID_UNKNOWN tells of a walk that
 * ended silently. */
fk_err fk__select_text(fk_local *local, fk_ref anchor, fk_str text, fk_ref sender, fk_out msg);
/* Answers an identify message in the name of ref, if there is anybody to answer. */
void fk__identify_answer(fk_local *local, const fk_msg *msg, fk_ref ref);

#endif /* FK_CORE_SELECT_H */

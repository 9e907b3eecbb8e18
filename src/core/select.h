/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SELECT_H
#define FK_CORE_SELECT_H

#include "core/system.h"

/* How far a selection may reach, and what has happened to it before. All zero: as usual. */
typedef struct fk_select_terms {
    const fk_cell *forbidden; /* neither it nor anybody below gets anything */
    bool fans_out;            /* it has met several already: misses are silent */
} fk_select_terms;

/* Sends to what an expression selects, seen from an actor. It has been read: see fk_expression. */
fk_err fk__select(fk_local *local, fk_ref anchor, const fk_expression *expression, fk_ref sender,
                  fk_out msg, fk_select_terms terms);
/* An actor is that one or below it. When it has just ended: whatever. */
bool fk__is_below(const fk_system *sys, fk_ref ref, const fk_cell *above);
/* The same from text, as fk_select_send_from(), except that FK_E_PID_UNKNOWN tells of a walk that
 * ended silently. */
fk_err fk__select_text(fk_local *local, fk_ref anchor, fk_str text, fk_ref sender, fk_out msg);
/* Answers an identify message in the name of ref, if there is anybody to answer. */
void fk__identify_answer(fk_local *local, const fk_msg *msg, fk_ref ref);
/* Other systems ask with more than a number: an fk_type_identify that is a payload has bytes behind
 * the number, and the fk_identity that answers it has the same behind its struct. Only another
 * system's reference may be the sender of such a one. size: of what they are behind. */
fk_str fk__identify_mark(const fk_msg *msg, size_t size);

#endif /* FK_CORE_SELECT_H */

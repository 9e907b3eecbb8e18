/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_ASK_H
#define FK_CORE_ASK_H

/* What a thread that waits for an answer does, for all calls that wait. */

#include "core/system.h"

#include "fraktor/ask.h"

/* FK_OK: this thread may wait. FK_E_UNSUPPORTED, FK_E_STATE. */
FK_MUST_USE fk_err fk__question_check(const fk_system *sys);
/* What is asked is sent in the name of *out; then either await or drop. FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__question_open(fk_system *sys, fk_ref asked, fk_ref *out);
/* As fk_ask_wait(). */
FK_MUST_USE fk_err fk__question_await(fk_system *sys, fk_ref question, fk_into into,
                                      fk_time timeout);
/* It could not be asked. */
void fk__question_drop(fk_system *sys, fk_ref question);

/* For a part above the core that sends by ways of its own: a question of this actor, whose fk_answer
 * comes when somebody sends to *out, or ends it, or its time is over. FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__ask_open(fk_ctx *ctx, uint64_t id, fk_time timeout, fk_ref *out);
/* It ends without a reply; one that has ended, or is no question, is left alone. */
void fk__ask_end(fk_local *local, fk_ref question, fk_err err);
/* The reference stands for a question that waits. */
bool fk__ask_is(const fk_system *sys, fk_ref question);

#endif /* FK_CORE_ASK_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who is there? Answers in the name of actors, and a thread that waits for one. */

#include "core/select.h"

#include "fraktor/select.h"

#include "core/ask.h"
#include "core/send.h"

const fk_type fk_type_fk_identity = { "fk_identity", sizeof(fk_identity), _Alignof(fk_identity),
                                      NULL };

/* What was asked with more than a number is answered with the same: see fk__identify_mark(). */
static void answer_marked(fk_local *local, const fk_msg *msg, const fk_identity *identity)
{
    fk_str mark = fk__identify_mark(msg, sizeof(identity->id));
    fk_payload *payload = NULL;
    fk_err err = fk__payload_create(&local->cache, local->sys, &fk_type_fk_identity,
                                    sizeof(*identity) + mark.len, &payload);
    if (err != FK_OK) {
        fk__dead_out(local, FK_REASON_NO_MEMORY, msg->sender, identity->ref,
                     (fk_out){ &fk_type_fk_identity, identity });
        return;
    }
    FK_ASSERT(payload != NULL);
    memcpy(payload->data, identity, sizeof(*identity));
    memcpy(payload->data + sizeof(*identity), mark.ptr, mark.len);
    fk__send(local, msg->sender, identity->ref, (fk_out){ &fk_type_payload, payload }, NULL);
}

void fk__identify_answer(fk_local *local, const fk_msg *msg, fk_ref ref)
{
    fk_identity identity = { 0, ref };
    if (fk_ref_is_none(msg->sender)) return;
    memcpy(&identity.id, msg->data, sizeof(identity.id));
    if (msg->len > sizeof(identity.id)) {
        answer_marked(local, msg, &identity);
        return;
    }
    fk_out answer = { &fk_type_fk_identity, &identity };
    fk__send(local, msg->sender, ref, answer, NULL);
}

fk_str fk__identify_mark(const fk_msg *msg, size_t size)
{
    if (msg->len <= size) return FK_STR("");
    return (fk_str){ (const char *)msg->data + size, msg->len - size };
}

static fk_err resolve_by_question(fk_system *sys, fk_str expression, fk_time timeout, fk_ref *out)
{
    fk_identity found = { 0, FK_REF_NONE };
    fk_ref question = FK_REF_NONE;
    FK_TRY(fk__question_check(sys));
    FK_TRY(fk__question_open(sys, FK_REF_NONE, &question));
    fk_local *local = fk__local_enter(sys);
    fk_ref root = fk__cell_ref(sys->top.root);
    fk_err err = fk__select_text(local, root, expression, question, FK_IDENTIFY(0));
    fk__local_leave(local);
    if (err != FK_OK) {
        fk__question_drop(sys, question);
        return err;
    }
    FK_TRY(fk__question_await(sys, question, FK_INTO(fk_identity, &found), timeout));
    if (fk_ref_is_none(found.ref)) return FK_E_PID_UNKNOWN;
    *out = found.ref;
    return FK_OK;
}

fk_err fk_resolve_one(fk_system *sys, fk_str expression, fk_time timeout, fk_ref *out)
{
    fk_err err = resolve_by_question(sys, expression, timeout, out);
    return err == FK_E_DEAD ? FK_E_PID_UNKNOWN : err; /* the system has ended: nobody is there */
}

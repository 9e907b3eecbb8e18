/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SELECT_H
#define FK_SELECT_H

/*
 * Selections: sending to whoever is at a path, instead of to a reference.
 *
 *     fk_select_tell(ctx, FK_STR("../worker-*"), FK_MSG(job, 1));     seen from this actor
 *     fk_select_send(sys, FK_STR("/user/desk"), FK_MSG(job, 2));      seen from the root
 *
 * "..", ".", names (also "name#7"), and "*" and "?" as wildcards; or a complete path. The walk
 * happens in the sender's thread. One match gets the message with the original sender; a wildcard
 * with several matches sends to each, and misses further down are silent; no match at all is a dead
 * letter with the path that was asked for. Climbing above the first segment is FK_E_ESCAPE.
 */

#include "fraktor/path.h"
#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Asks an actor, or all of a selection, who they are: the runtime answers for them with an
 * fk_identity. Where nobody is, and from a selection without a match, the answer is FK_REF_NONE.
 * The number comes back in the answer. */
#ifdef __cplusplus
#define FK_IDENTIFY(id) (fk_out{ &fk_type_identify, fk_addr<uint64_t>(id) })
#else
#define FK_IDENTIFY(id) ((fk_out){ &fk_type_identify, &(uint64_t){ id } })
#endif

typedef struct fk_identity {
    uint64_t id;
    fk_ref ref; /* FK_REF_NONE: nobody */
} fk_identity;
extern FK_API const fk_type fk_type_fk_identity;

/* Send to a selection. FK_OK also when nobody matched. The faults of fk_path_parse() and FK_E_ESCAPE:
 * the text is no selection; that is an event and a dead letter, too. FK_E_FULL, FK_E_NOMEM,
 * FK_E_LIMIT: some match did not get it. Of another system, which finds out itself who matches:
 * FK_E_QUARANTINED. In every case the message has been taken. A message with a drop function goes to
 * one receiver only: with several it is FK_E_INVALID (send a payload). */
FK_API fk_err fk_select_tell(fk_ctx *ctx, fk_str expression, fk_out msg);
FK_API fk_err fk_select_send(fk_system *sys, fk_str expression, fk_out msg);
/* Seen from an actor that is not this one, in the name of another (FK_REF_NONE: nobody). */
FK_API fk_err fk_select_send_from(fk_system *sys, fk_ref anchor, fk_str expression, fk_ref sender,
                                  fk_out msg);

/* The first actor of a selection to answer, asked by FK_IDENTIFY and waited for; from outside.
 * FK_E_PID_UNKNOWN: nobody; FK_E_TIMEOUT; FK_E_STATE from inside receive: tell FK_IDENTIFY there. */
FK_API FK_MUST_USE fk_err fk_resolve_one(fk_system *sys, fk_str expression, fk_time timeout,
                                         fk_ref *out);

#ifdef __cplusplus
}
#endif
#endif /* FK_SELECT_H */

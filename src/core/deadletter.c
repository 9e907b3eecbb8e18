/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/answer.h"
#include "core/event.h"
#include "core/select.h"

const char *fk_reason_name(fk_reason reason)
{
    static const char *const NAMES[FK_REASON_COUNT] = {
        [FK_REASON_NO_RECEIVER] = "no_receiver",
        [FK_REASON_STOPPED] = "stopped",
        [FK_REASON_FULL] = "full",
        [FK_REASON_DROPPED_NEWEST] = "dropped_newest",
        [FK_REASON_DROPPED_OLDEST] = "dropped_oldest",
        [FK_REASON_UNHANDLED] = "unhandled",
        [FK_REASON_NO_MEMORY] = "no_memory",
        [FK_REASON_SYSTEM_STOPPING] = "system_stopping",
        [FK_REASON_BAD_TYPE] = "bad_type",
        [FK_REASON_BAD_PATH] = "bad_path",
        [FK_REASON_QUARANTINED] = "quarantined",
        [FK_REASON_SEVERAL] = "several",
        [FK_REASON_LATE_REPLY] = "late_reply",
        [FK_REASON_FORBIDDEN] = "forbidden",
        [FK_REASON_WRONG_INCARNATION] = "wrong_incarnation",
        [FK_REASON_NO_CODEC] = "no_codec",
        [FK_REASON_MALFORMED] = "malformed",
        [FK_REASON_TOO_LARGE] = "too_large",
        [FK_REASON_LIMIT] = "limit",
    };
    return (unsigned)reason < FK_REASON_COUNT ? NAMES[reason] : "unknown";
}

/* What a callback sends may be undeliverable, too: that is counted, but not reported to it, or a
 * callback that forwards to a dead actor would never end. */
static void tell_callback(fk_local *local, const fk_dead_letter *letter)
{
    fk_system *sys = local->sys;
    fk_reporting *reporting = fk__reporting_of(sys);
    if (sys->on_dead_letter == NULL || reporting->in_letter) return;
    reporting->in_letter = true;
    fk__local_pause(local);
    sys->on_dead_letter(sys->user, letter);
    fk__local_resume(local);
    reporting->in_letter = false;
}

void fk__dead_report(fk_local *local, const fk_dead_letter *letter)
{
    FK_ASSERT((unsigned)letter->reason < FK_REASON_COUNT);
    fk_system *sys = local->sys;
    fk_reason reason = letter->reason;
    if (letter->type == &fk__type_tick) return; /* nobody's business but ours */
    if (letter->type == &fk_type_identify) {
        fk_msg msg = { letter->type, letter->data, letter->len, letter->sender };
        fk__identify_answer(local, &msg, FK_REF_NONE);
        return;
    }
    fk_event_kind kind = reason == FK_REASON_UNHANDLED ? FK_EVENT_UNHANDLED : FK_EVENT_DEAD_LETTER;
    if ((letter->type->align & FK_TYPE_QUIET) != 0) {
        kind = FK_EVENT_SUPPRESSED;
    } else {
        fk__stat_add(&local->stats.dead_letters[reason], 1);
        tell_callback(local, letter);
    }
    /* An event about an event that did not arrive would not arrive either. */
    if (letter->type == &fk_type_fk_event_record || !fk__event_wanted(sys, kind)) return;
    fk__event(sys, local, &(fk_event){ .kind = kind, .actor = letter->to, .letter = letter });
}

static void report(fk_local *local, fk_reason reason, fk_ref to, fk_str path, const fk_msg *msg)
{
    fk__dead_report(local, &(fk_dead_letter){ .reason = reason,
                                              .to = to,
                                              .path = path,
                                              .sender = msg->sender,
                                              .type = msg->type,
                                              .data = msg->data,
                                              .len = msg->len });
}

void fk__invalid_association(fk_local *local, fk_str address)
{
    fk__event(local->sys, local,
              &(fk_event){ .kind = FK_EVENT_INVALID_ASSOCIATION,
                           .text = address,
                           .reason = "the system is quarantined" });
}

void fk__dead_letter(fk_local *local, fk_reason reason, fk_ref to, const fk_msg *msg)
{
    report(local, reason, to, FK_STR(""), msg);
}

void fk__dead_path(fk_local *local, fk_reason reason, fk_str path, fk_ref sender, fk_out out)
{
    fk_msg msg;
    fk__out_view(out, sender, &msg);
    report(local, reason, FK_REF_NONE, path, &msg);
    fk__out_drop(&local->cache, out);
}

static void report_node(fk_local *local, fk_reason reason, fk_ref to, fk_str path,
                        const fk_node *node)
{
    fk_msg msg;
    fk_err err;
    if (fk__node_is_answer(node)) node = fk__answer_open(node, &err);
    if (node == NULL) return; /* no answer: nobody misses that */
    fk__node_view(node, local->sys->id, &msg);
    report(local, reason, to, path, &msg);
}

void fk__dead_node(fk_local *local, fk_reason reason, fk_ref to, const fk_node *node)
{
    report_node(local, reason, to, FK_STR(""), node);
}

void fk__dead_node_at(fk_local *local, fk_reason reason, fk_str path, const fk_node *node)
{
    report_node(local, reason, FK_REF_NONE, path, node);
}

void fk__dead_out(fk_local *local, fk_reason reason, fk_ref to, fk_ref sender, fk_out out)
{
    fk_msg msg;
    fk__out_view(out, sender, &msg);
    fk__dead_letter(local, reason, to, &msg);
    fk__out_drop(&local->cache, out);
}

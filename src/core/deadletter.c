/* SPDX-License-Identifier: MIT OR Apache-2.0 */
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
    };
    return (unsigned)reason < FK_REASON_COUNT ? NAMES[reason] : "unknown";
}

static uint32_t *reporting_of(fk_system *sys)
{
    return sys->host.reporting != NULL ? sys->host.reporting(sys->host.ctx) : &sys->reporting;
}

enum { REPORT_LETTER = 1, REPORT_EVENT = 2 };

/* What a callback sends may be undeliverable, too: that is counted, but not reported, or a callback
 * that forwards to a dead actor would never end. So for events, by a mark of their own. */
static bool report_begin(fk_system *sys, fk_local *local, uint32_t what)
{
    uint32_t *reporting = reporting_of(sys);
    if ((*reporting & what) != 0) return false;
    *reporting |= what;
    if (local != NULL) fk__local_pause(local);
    return true;
}

static void report_end(fk_system *sys, fk_local *local, uint32_t what)
{
    if (local != NULL) fk__local_resume(local);
    *reporting_of(sys) &= ~what;
}

static void report(fk_local *local, fk_reason reason, fk_ref to, fk_str path, const fk_msg *msg)
{
    FK_ASSERT((unsigned)reason < FK_REASON_COUNT);
    fk_system *sys = local->sys;
    if (msg->type == &fk_type_poison || msg->type == &fk_type_kill) return; /* come true */
    if (msg->type == &fk_type_fk_terminated) return; /* who would have been told has ended */
    if (msg->type == &fk__type_tick) return;         /* nobody's business but ours */
    if (msg->type == &fk_type_identify) {
        fk__identify_answer(local, msg, FK_REF_NONE);
        return;
    }
    fk__stat_add(&local->stats.dead_letters[reason], 1);
    if (sys->on_dead_letter == NULL || !report_begin(sys, local, REPORT_LETTER)) return;
    fk_dead_letter letter = { reason, to, path, msg->sender, msg->type, msg->data, msg->len };
    sys->on_dead_letter(sys->user, &letter);
    report_end(sys, local, REPORT_LETTER);
}

void fk__event(fk_system *sys, fk_local *local, const fk_event *event)
{
    if (sys->on_event == NULL || !report_begin(sys, local, REPORT_EVENT)) return;
    sys->on_event(sys->user, event);
    report_end(sys, local, REPORT_EVENT);
}

void fk__invalid_association(fk_local *local, fk_str address)
{
    fk__event(local->sys, local,
              &(fk_event){ .kind = FK_EVENT_INVALID_ASSOCIATION,
                           .at = fk__system_now(local->sys),
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

void fk__dead_node(fk_local *local, fk_reason reason, fk_ref to, const fk_node *node)
{
    fk_msg msg;
    fk__node_view(node, local->sys->id, &msg);
    fk__dead_letter(local, reason, to, &msg);
}

void fk__dead_out(fk_local *local, fk_reason reason, fk_ref to, fk_ref sender, fk_out out)
{
    fk_msg msg;
    fk__out_view(out, sender, &msg);
    fk__dead_letter(local, reason, to, &msg);
    fk__out_drop(&local->cache, out);
}

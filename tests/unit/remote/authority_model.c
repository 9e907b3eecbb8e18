/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What should happen. */

#include "unit/remote/authority_model_world.h"

static uint32_t find_mark(const peer *p, uint64_t uid)
{
    uint32_t i = 0;
    while (i < p->mark_count && p->marks[i].uid != uid) i++;
    return i;
}

static bool is_marked(const peer *p, uint64_t uid)
{
    return find_mark(p, uid) < p->mark_count;
}

static void remove_mark(peer *p, uint32_t at)
{
    p->mark_count--;
    for (; at < p->mark_count; at++) p->marks[at] = p->marks[at + 1];
}

static void go(peer *p, fk_association to, fk_authority_reason reason, expected *e)
{
    e->changes = true;
    e->from = p->state;
    e->reason = reason;
    p->state = to;
    p->open = p->draining = p->attempting = false;
    p->attempt_at = p->give_up_at = p->lift_at = FK_NEVER;
}

/* By Pekko's rules nobody is quarantined of whom no uid is known. */
static bool has_name(const peer *p)
{
    return model.config.rules == FK_RULES_FRAKTOR || p->uid != 0;
}

/* The real one has chosen the moment; it must be in the right range. */
static bool plan(peer *p, bool at_once)
{
    fk_time least = model.now, most = model.now;
    if (!at_once) {
        p->failures++;
        fk_time delay = model.config.backoff_min;
        for (uint32_t i = 1; i < p->failures && delay < model.config.backoff_max; i++) delay *= 2;
        if (delay > model.config.backoff_max) delay = model.config.backoff_max;
        least += delay - delay / PERCENT * model.config.jitter_percent - PERCENT;
        most += delay;
    }
    p->attempting = false;
    p->attempt_at = p->real->attempt_at;
    if (p->state == FK_ASSOCIATION_UNRESOLVED && p->give_up_at == FK_NEVER && has_name(p)) {
        p->give_up_at = fk__time_add(model.now, model.config.give_up_after);
    }
    EXPECT(p->attempt_at >= least, p);
    EXPECT(p->attempt_at <= most, p);
    return true;
}

static void quarantine(peer *p, fk_authority_reason reason, expected *e)
{
    go(p, FK_ASSOCIATION_QUARANTINE, reason, e);
    p->failures = p->drops = 0;
    if (p->uid != 0) {
        if (is_marked(p, p->uid)) remove_mark(p, find_mark(p, p->uid));
        p->marks[p->mark_count++] = (mark){ p->uid, model.now };
    }
    if (model.config.rules == FK_RULES_FRAKTOR)
        p->lift_at = fk__time_add(model.now, model.duration);
    e->closes = true;
    e->refused = p->queue_len;
}

static void meet(peer *p, uint64_t uid, expected *e)
{
    if (p->uid != 0 && p->uid != uid) {
        p->incarnation++;
        e->is_new_peer = true;
    }
    p->uid = uid;
}

/* Is there room for one more uid? */
static bool reserve(peer *p, expected *e)
{
    bool is_full = p->mark_count == model.config.uids_max;
    if (is_full && fk__time_add(p->marks[0].at, model.keep) > model.now) {
        e->result = FK_AUTHORITY_RESULT_LIMIT;
        return false;
    }
    if (is_full) {
        e->forgotten = p->marks[0].uid;
        remove_mark(p, 0);
    }
    if (model.refusals > 0) e->result = FK_AUTHORITY_RESULT_NOMEM;
    return model.refusals == 0;
}

static bool on_handshake(peer *p, uint64_t uid, expected *e)
{
    bool is_pekko = model.config.rules == FK_RULES_PEKKO;
    e->result = FK_AUTHORITY_RESULT_INVALID;
    if (uid == 0) return true;
    e->result = FK_AUTHORITY_RESULT_UNMAPPED;
    if (!p->mapped) return true;
    e->result = FK_AUTHORITY_RESULT_SAME;
    if (p->open && p->uid == uid) return true;
    if (is_marked(p, uid) || p->buried[uid]) {
        e->result = FK_AUTHORITY_RESULT_UID;
        if (p->state == FK_ASSOCIATION_QUARANTINE || (p->open && !is_pekko)) return true;
        if (!is_marked(p, uid) && !reserve(p, e)) return !p->attempting || plan(p, false);
        meet(p, uid, e);
        quarantine(p, FK_AUTHORITY_REASON_OLD_UID, e);
        return true;
    }
    bool was_quarantined = p->state == FK_ASSOCIATION_QUARANTINE;
    e->result = FK_AUTHORITY_RESULT_FORBIDDEN;
    if (was_quarantined && model.config.ignore_new_uid) return true;
    e->result = FK_AUTHORITY_RESULT_DONE;
    if (!reserve(p, e)) return !p->attempting || plan(p, false);
    meet(p, uid, e);
    if (p->open) return true;
    if (p->state != FK_ASSOCIATION_CONNECTED) {
        go(p, FK_ASSOCIATION_CONNECTED,
           was_quarantined ? FK_AUTHORITY_REASON_NEW_UID : FK_AUTHORITY_REASON_HANDSHAKE, e);
    }
    p->attempting = false;
    p->attempt_at = FK_NEVER;
    p->open = p->draining = e->opens = true;
    p->opened_at = model.now;
    p->failures = p->drops;
    return true;
}

static bool on_attempt(peer *p, bool is_refused, uint64_t attempt, expected *e)
{
    e->result = FK_AUTHORITY_RESULT_STATE;
    if (p->state == FK_ASSOCIATION_QUARANTINE) return true;
    e->result = FK_AUTHORITY_RESULT_STALE;
    if (!p->attempting || p->attempt != attempt) return true;
    e->result = FK_AUTHORITY_RESULT_DONE;
    if (is_refused && has_name(p)) {
        quarantine(p, FK_AUTHORITY_REASON_REFUSED, e);
        return true;
    }
    if (p->state == FK_ASSOCIATION_CONNECTED) {
        go(p, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_FAILED, e);
    }
    return plan(p, false);
}

static bool on_dropped(peer *p, uint64_t uid, expected *e)
{
    e->result = FK_AUTHORITY_RESULT_STATE;
    if (p->state != FK_ASSOCIATION_CONNECTED) return true;
    e->result = FK_AUTHORITY_RESULT_STALE;
    if (!p->open || p->uid != uid) return true;
    e->result = FK_AUTHORITY_RESULT_DONE;
    fk_time enough = model.config.backoff_min * 10;
    if (enough > model.config.backoff_max) enough = model.config.backoff_max;
    if (model.now - p->opened_at >= enough)
        p->failures = p->drops = 0;
    else
        p->drops++;
    go(p, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_DROPPED, e);
    return plan(p, false);
}

static bool on_quarantine(peer *p, const fk_authority_event *event, expected *e)
{
    fk_authority_event_kind kind = event->kind;
    uint64_t uid = event->uid;
    bool is_waiting = p->state == FK_ASSOCIATION_CONNECTED && !p->open;
    bool is_asked = kind == FK_AUTHORITY_EVENT_QUARANTINE;
    e->result = FK_AUTHORITY_RESULT_STALE;
    if (uid == 0 && model.config.rules == FK_RULES_PEKKO) return true;
    if (uid != 0 && (is_waiting || uid != p->uid)) return true;
    e->result = FK_AUTHORITY_RESULT_SAME;
    if (p->state == FK_ASSOCIATION_QUARANTINE) return true;
    e->result = FK_AUTHORITY_RESULT_STATE;
    if (p->state == FK_ASSOCIATION_UNRESOLVED && !is_asked) return true;
    e->result = FK_AUTHORITY_RESULT_DONE;
    quarantine(p,
               is_asked && event->why != 0         ? event->why
               : is_asked                          ? FK_AUTHORITY_REASON_ASKED
               : kind == FK_AUTHORITY_EVENT_NOTICE ? FK_AUTHORITY_REASON_NOTICE
                                                   : FK_AUTHORITY_REASON_INVALID,
               e);
    return true;
}

static bool on_override(peer *p, bool force, expected *e)
{
    e->result = FK_AUTHORITY_RESULT_STATE;
    if (p->state != FK_ASSOCIATION_QUARANTINE) return true;
    e->result = FK_AUTHORITY_RESULT_FORBIDDEN;
    if (model.config.rules == FK_RULES_PEKKO) return true;
    e->result = FK_AUTHORITY_RESULT_DONE;
    if (force && is_marked(p, p->uid)) {
        remove_mark(p, find_mark(p, p->uid));
        e->forgiven = p->uid;
    }
    if (force) p->buried[p->uid] = false;
    go(p, p->mapped ? FK_ASSOCIATION_CONNECTED : FK_ASSOCIATION_UNRESOLVED,
       FK_AUTHORITY_REASON_OVERRIDE, e);
    return !p->mapped || plan(p, true);
}

bool authority_model_event(peer *p, const fk_authority_event *event, expected *e)
{
    switch (event->kind) {
    case FK_AUTHORITY_EVENT_HANDSHAKE: return on_handshake(p, event->uid, e);
    case FK_AUTHORITY_EVENT_FAILED: return on_attempt(p, false, event->attempt, e);
    case FK_AUTHORITY_EVENT_REFUSED: return on_attempt(p, true, event->attempt, e);
    case FK_AUTHORITY_EVENT_DROPPED: return on_dropped(p, event->uid, e);
    case FK_AUTHORITY_EVENT_OVERRIDE: return on_override(p, event->force, e);
    case FK_AUTHORITY_EVENT_NONE: e->result = FK_AUTHORITY_RESULT_INVALID; return true;
    default: return on_quarantine(p, event, e);
    }
}

void authority_model_crowd(peer *p, bool is_spared, expected *e)
{
    bool was_out = p->state == FK_ASSOCIATION_QUARANTINE;
    bool may_return = is_spared && !was_out && !is_marked(p, p->uid);
    if (was_out) {
        e->changes = true;
        e->from = p->state;
        e->reason = FK_AUTHORITY_REASON_CROWDED;
    } else {
        quarantine(p, FK_AUTHORITY_REASON_CROWDED, e);
    }
    for (uint32_t i = 0; i < p->mark_count; i++) {
        if (may_return && p->marks[i].uid == p->uid) continue;
        p->buried[p->marks[i].uid] = true;
    }
}

bool authority_model_tick(peer *p, expected *e)
{
    if (p->lift_at <= model.now) {
        go(p, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED, e);
        EXPECT(p->queue_len == 0, p);
        return !p->mapped || plan(p, true);
    }
    if (p->give_up_at <= model.now) {
        quarantine(p, FK_AUTHORITY_REASON_GAVE_UP, e);
        return true;
    }
    p->attempt_at = FK_NEVER;
    p->attempting = e->connects = true;
    p->attempt++;
    model.seen->attempts++;
    return true;
}

bool authority_model_mapped(peer *p)
{
    p->mapped = true;
    p->failures = p->drops = 0;
    if (p->state != FK_ASSOCIATION_UNRESOLVED || p->attempting) return true;
    return plan(p, true);
}

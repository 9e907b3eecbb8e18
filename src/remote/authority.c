/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The decisions. One function for each kind of event, one for each way into a state; the ways in
 * write everything that depends on the state, so that no field outlives the state it belongs to:
 *
 *   Unresolved   with a mapping, an attempt is planned or under way, unless it rests; give_up_at may
 *                be set
 *   Connected    while it is not open, an attempt is planned or under way
 *   Quarantine   nothing is deferred, planned or under way; lift_at is set
 */

#include "remote/authority.h"

#include "base/safeguard.h"
#include "remote/authority_clock.h"

enum {
    AUTHORITY_LASTS = 10
}; /* times the first delay a connection must, to be none of the failures */

static void authority_move(fk_authority *a, fk_association to, fk_authority_reason reason,
                           fk_time now, fk_authority_effects *fx)
{
    FK_ASSERT(!fx->has_change);
    FK_ASSERT(a->state != to);
    fx->has_change = true;
    fx->change = (fk_authority_change){ a->state, to, reason, now };
    fx->change_number = ++a->changes;
    a->state = to;
    a->state_at = now;
    a->is_open = a->is_draining = a->is_attempting = a->is_resting = false;
    a->is_crowded = a->is_spared = false;
    a->attempt_at = a->give_up_at = a->lift_at = a->lapse_at = FK_NEVER;
}

/* R4.3: nobody is written to any more, and every envelope that waits is reported, once. Whatever
 * the set of uids needs was reserved with the handshake. */
static void authority_quarantine(fk_authority_table *table, fk_authority *a,
                                 fk_authority_reason reason, fk_time now, fk_authority_effects *fx)
{
    authority_move(a, FK_ASSOCIATION_QUARANTINE, reason, now, fx);
    a->failures = a->drops = 0;
    if (a->uid != 0) fk__uids_add(&a->quarantined, a->uid, now);
    if (table->config.rules != FK_RULES_PEKKO) {
        a->lift_at = FK_SAFEGUARD(QUARANTINE_TIME) ? fk__time_add(now, table->duration) : now;
    }
    fx->must_close = true;
    if (FK_SAFEGUARD(QUARANTINE_RETURNS)) {
        fx->refused = a->deferred;
        if (FK_SAFEGUARD(QUARANTINE_ONCE)) a->deferred = (fk_envelopes){ NULL, NULL, 0 };
        table->deferred_total -= fx->refused.count;
        if (a->is_hearsay) table->deferred_hearsay -= fx->refused.count;
    }
    fk__authority_settle(table, a);
}

/* Nobody has answered, and it may be that nobody ever will. */
static void authority_lapse(fk_authority_table *table, fk_authority *a, fk_authority_effects *fx)
{
    FK_ASSERT(a->is_hearsay);
    fx->lapsed = a->deferred;
    a->deferred = (fk_envelopes){ NULL, NULL, 0 };
    table->deferred_total -= fx->lapsed.count;
    table->deferred_hearsay -= fx->lapsed.count;
    a->lapse_at = FK_NEVER; /* until it is tried again */
    fk__authority_settle(table, a);
}

/* R4.2. What was deferred goes first: is_draining until the caller has taken it all. */
static void authority_open(fk_authority_table *table, fk_authority *a, fk_authority_reason reason,
                           fk_time now, fk_authority_effects *fx)
{
    if (a->state != FK_ASSOCIATION_CONNECTED) {
        authority_move(a, FK_ASSOCIATION_CONNECTED, reason, now, fx);
    }
    a->is_open = a->is_draining = true;
    a->is_attempting = false;
    a->attempt_at = FK_NEVER;
    a->opened_at = now;
    /* That nobody was there says nothing any more; that connections do not last does. */
    a->failures = a->drops;
    fx->is_opened = true;
    fk__authority_settle(table, a);
}

/* ---- handshakes ---------------------------------------------------------------------------- */

/* A handshake that we do not accept ends its attempt. */
static void authority_attempt_fails(fk_authority_table *table, fk_authority *a, fk_time now)
{
    if (!a->is_attempting) return;
    a->is_attempting = false;
    fk__authority_retry(table, a, now);
}

static void authority_meet(fk_authority *a, uint64_t uid, fk_authority_effects *fx)
{
    if (a->uid != 0 && a->uid != uid) {
        a->incarnation++;
        fx->is_new_peer = true;
    }
    a->uid = uid;
}

/* So that it can be quarantined without asking for memory. */
static fk_authority_result authority_reserve(fk_authority_table *table, fk_authority *a,
                                             fk_time now, fk_authority_effects *fx)
{
    fk_err err =
        fk__uids_reserve(&a->quarantined, table->mem, table->uids_limit, now, &fx->uid_forgotten);
    if (err == FK_OK) return FK_AUTHORITY_RESULT_DONE;
    authority_attempt_fails(table, a, now);
    return err == FK_E_NOMEM ? FK_AUTHORITY_RESULT_NOMEM : FK_AUTHORITY_RESULT_LIMIT;
}

/* R3 of the fault model: the quarantine of a uid is for good. A handshake with such a system is
 * refused, which is one of the ways into quarantine, if a handshake is what we wait for. While
 * another system is connected it is a late word of its predecessor and no reason to give up the
 * living; but Pekko's association believes it. */
static fk_authority_result authority_meet_old(fk_authority_table *table, fk_authority *a,
                                              uint64_t uid, fk_time now, fk_authority_effects *fx)
{
    bool is_pekko = table->config.rules == FK_RULES_PEKKO;
    if (a->state != FK_ASSOCIATION_QUARANTINE && (!a->is_open || is_pekko)) {
        if (!fk__authority_refuses(a, uid)) { /* so the tombs do */
            fk_authority_result result = authority_reserve(table, a, now, fx);
            if (result != FK_AUTHORITY_RESULT_DONE) return result;
        }
        authority_meet(a, uid, fx);
        authority_quarantine(table, a, FK_AUTHORITY_REASON_OLD_UID, now, fx);
    }
    return FK_AUTHORITY_RESULT_UID;
}

static fk_authority_result authority_on_handshake(fk_authority_table *table, fk_authority *a,
                                                  uint64_t uid, fk_time now,
                                                  fk_authority_effects *fx)
{
    if (uid == 0) return FK_AUTHORITY_RESULT_INVALID;
    if (!a->is_mapped) return FK_AUTHORITY_RESULT_UNMAPPED;
    if (a->is_open && a->uid == uid) return FK_AUTHORITY_RESULT_SAME;
    bool is_old = fk__authority_refuses(a, uid) || fk__tombs_has(&table->tombs, a->hash, uid);
    if (FK_SAFEGUARD(QUARANTINE_UID) && is_old) {
        return authority_meet_old(table, a, uid, now, fx);
    }
    bool is_quarantined = a->state == FK_ASSOCIATION_QUARANTINE;
    if (is_quarantined && table->config.ignore_new_uid) return FK_AUTHORITY_RESULT_FORBIDDEN;

    fk_authority_result result = authority_reserve(table, a, now, fx);
    if (result != FK_AUTHORITY_RESULT_DONE) return result;
    authority_meet(a, uid, fx);
    fk__authority_vouch(table, a);
    if (a->is_open) return FK_AUTHORITY_RESULT_DONE;
    authority_open(table, a,
                   is_quarantined ? FK_AUTHORITY_REASON_NEW_UID : FK_AUTHORITY_REASON_HANDSHAKE,
                   now, fx);
    return FK_AUTHORITY_RESULT_DONE;
}

/* ---- attempts and the transport ------------------------------------------------------------ */

static bool authority_is_attempt(const fk_authority *a, uint64_t attempt)
{
    return a->is_attempting && (a->attempt == attempt || !FK_SAFEGUARD(ATTEMPT_NUMBER));
}

static fk_authority_result authority_on_failed(fk_authority_table *table, fk_authority *a,
                                               uint64_t attempt, fk_time now,
                                               fk_authority_effects *fx)
{
    if (a->state == FK_ASSOCIATION_QUARANTINE) return FK_AUTHORITY_RESULT_STATE;
    if (!authority_is_attempt(a, attempt)) return FK_AUTHORITY_RESULT_STALE;
    /* Connected by an override, which waits for a handshake: that hope is gone. */
    if (a->state == FK_ASSOCIATION_CONNECTED) {
        authority_move(a, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_FAILED, now, fx);
    }
    a->is_attempting = false;
    fk__authority_retry(table, a, now);
    return FK_AUTHORITY_RESULT_DONE;
}

static fk_authority_result authority_on_refused(fk_authority_table *table, fk_authority *a,
                                                uint64_t attempt, fk_time now,
                                                fk_authority_effects *fx)
{
    if (a->state == FK_ASSOCIATION_QUARANTINE) return FK_AUTHORITY_RESULT_STATE;
    if (!authority_is_attempt(a, attempt)) return FK_AUTHORITY_RESULT_STALE;
    if (fk__authority_may_quarantine(table, a))
        authority_quarantine(table, a, FK_AUTHORITY_REASON_REFUSED, now, fx);
    else
        authority_attempt_fails(table, a, now);
    return FK_AUTHORITY_RESULT_DONE;
}

/* A connection that did not last is one more failure: who shakes hands and hangs up, again and again,
 * is not to be called ten times a second. */
static void authority_judge(const fk_authority_table *table, fk_authority *a, fk_time now)
{
    fk_time min = table->config.backoff_min, most = table->config.backoff_max;
    fk_time enough = min > most / AUTHORITY_LASTS ? most : min * AUTHORITY_LASTS;
    bool has_lasted = fk__time_add(a->opened_at, enough) <= now;
    if (has_lasted)
        a->failures = a->drops = 0;
    else if (a->drops < UINT32_MAX)
        a->drops++;
}

void fk__authority_farewell(fk_authority *authority, uint64_t uid)
{
    fk_authority *a = authority;
    if (!a->is_open || a->uid != uid || a->farewell_uid == uid) return;
    a->farewell_uid = uid;
    a->failures = a->drops = 0;
}

static fk_authority_result authority_on_dropped(fk_authority_table *table, fk_authority *a,
                                                uint64_t uid, fk_time now, fk_authority_effects *fx)
{
    if (a->state != FK_ASSOCIATION_CONNECTED) return FK_AUTHORITY_RESULT_STATE;
    if (!a->is_open || a->uid != uid) return FK_AUTHORITY_RESULT_STALE;
    authority_judge(table, a, now);
    authority_move(a, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_DROPPED, now, fx);
    fk__authority_retry(table, a, now);
    return FK_AUTHORITY_RESULT_DONE;
}

/* ---- quarantine and its end ---------------------------------------------------------------- */

static fk_authority_reason authority_reason_of(const fk_authority_event *event)
{
    if (event->kind == FK_AUTHORITY_EVENT_INVALID) return FK_AUTHORITY_REASON_INVALID;
    if (event->kind == FK_AUTHORITY_EVENT_NOTICE) return FK_AUTHORITY_REASON_NOTICE;
    return event->why != 0 ? event->why : FK_AUTHORITY_REASON_ASKED;
}

static fk_authority_result authority_on_quarantine(fk_authority_table *table, fk_authority *a,
                                                   const fk_authority_event *event, fk_time now,
                                                   fk_authority_effects *fx)
{
    /* After an override there is no present peer until the handshake: what still comes in about
     * the last one must not undo it. */
    bool has_peer = a->state != FK_ASSOCIATION_CONNECTED || a->is_open;
    bool is_meant =
        event->uid == 0 ? table->config.rules != FK_RULES_PEKKO : has_peer && event->uid == a->uid;
    if (!is_meant) return FK_AUTHORITY_RESULT_STALE;
    if (a->state == FK_ASSOCIATION_QUARANTINE) return FK_AUTHORITY_RESULT_SAME;
    if (a->state == FK_ASSOCIATION_UNRESOLVED && event->kind != FK_AUTHORITY_EVENT_QUARANTINE) {
        return FK_AUTHORITY_RESULT_STATE;
    }
    authority_quarantine(table, a, authority_reason_of(event), now, fx);
    return FK_AUTHORITY_RESULT_DONE;
}

static fk_authority_result authority_on_override(fk_authority_table *table, fk_authority *a,
                                                 bool force, fk_time now, fk_authority_effects *fx)
{
    if (a->state != FK_ASSOCIATION_QUARANTINE) return FK_AUTHORITY_RESULT_STATE;
    if (table->config.rules == FK_RULES_PEKKO) return FK_AUTHORITY_RESULT_FORBIDDEN;
    if (force && fk__uids_remove(&a->quarantined, a->uid)) fx->uid_forgiven = a->uid;
    if (force) fk__tombs_remove(&table->tombs, a->hash, a->uid);
    authority_move(a, a->is_mapped ? FK_ASSOCIATION_CONNECTED : FK_ASSOCIATION_UNRESOLVED,
                   FK_AUTHORITY_REASON_OVERRIDE, now, fx);
    fk__authority_settle(table, a);
    fk__authority_arm(table, a, now);
    return FK_AUTHORITY_RESULT_DONE;
}

/* ---- giving way ---------------------------------------------------------------------------- */

void fk__authority_crowd_out(fk_authority_table *table, fk_authority *authority, bool is_spared,
                             fk_time now, fk_authority_effects *effects)
{
    fk_authority *a = authority;
    *effects = (fk_authority_effects){ .authority = a };
    if (a->is_crowded) return;
    if (a->state != FK_ASSOCIATION_QUARANTINE) {
        /* Also by Pekko's rules: it is over in a moment. */
        bool was_refused = fk__authority_refuses(a, a->uid);
        authority_quarantine(table, a, FK_AUTHORITY_REASON_CROWDED, now, effects);
        a->is_spared = is_spared && !was_refused;
    } else {
        effects->has_change = true;
        effects->change =
            (fk_authority_change){ a->state, a->state, FK_AUTHORITY_REASON_CROWDED, now };
        effects->change_number = ++a->changes;
    }
    a->is_crowded = true;
}

/* ---- the way in ---------------------------------------------------------------------------- */

fk_authority_result fk__authority_step(fk_authority_table *table, fk_authority *authority,
                                       const fk_authority_event *event, fk_time now,
                                       fk_authority_effects *effects)
{
    *effects = (fk_authority_effects){ .authority = authority };
    switch (event->kind) {
    case FK_AUTHORITY_EVENT_HANDSHAKE:
        return authority_on_handshake(table, authority, event->uid, now, effects);
    case FK_AUTHORITY_EVENT_FAILED:
        return authority_on_failed(table, authority, event->attempt, now, effects);
    case FK_AUTHORITY_EVENT_REFUSED:
        return authority_on_refused(table, authority, event->attempt, now, effects);
    case FK_AUTHORITY_EVENT_DROPPED:
        return authority_on_dropped(table, authority, event->uid, now, effects);
    case FK_AUTHORITY_EVENT_INVALID:
    case FK_AUTHORITY_EVENT_NOTICE:
    case FK_AUTHORITY_EVENT_QUARANTINE:
        return authority_on_quarantine(table, authority, event, now, effects);
    case FK_AUTHORITY_EVENT_OVERRIDE:
        return authority_on_override(table, authority, event->force, now, effects);
    default: return FK_AUTHORITY_RESULT_INVALID;
    }
}

bool fk__authority_tick(fk_authority_table *table, fk_time now, fk_authority_effects *effects)
{
    fk_deadline *first = fk__deadlines_first(&table->deadlines);
    *effects = (fk_authority_effects){ .authority = NULL };
    if (first == NULL || first->at > now) return false;
    fk_authority *a = FK_CONTAINER(first, fk_authority, deadline);
    effects->authority = a;
    if (a->lift_at <= now) { /* R4.4. Nothing is deferred: it was all refused */
        authority_move(a, FK_ASSOCIATION_UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED, now, effects);
        fk__authority_settle(table, a);
        fk__authority_arm(table, a, now);
    } else if (a->give_up_at <= now) {
        authority_quarantine(table, a, FK_AUTHORITY_REASON_GAVE_UP, now, effects);
    } else if (a->lapse_at <= now) {
        authority_lapse(table, a, effects);
    } else {
        FK_ASSERT(a->attempt_at <= now);
        a->attempt_at = FK_NEVER;
        a->is_attempting = true;
        a->attempt++;
        effects->must_connect = true;
        fk__authority_settle(table, a);
    }
    return true;
}

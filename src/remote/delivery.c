/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The outbox is one list, oldest first, and a place in it: what lies before the place is on its way
 * and waits to be acknowledged, what lies from there on is still to be written. To send everything
 * again is to move the place back to the beginning.
 */

#include "remote/delivery.h"

#include "base/safeguard.h"

enum { OUTBOX_UNACKED_DEFAULT = 20000 };

#define OUTBOX_GIVE_UP_DEFAULT FK_MINUTES(6 * 60)

fk_err fk__outbox_init(fk_outbox *outbox, const fk_delivery_config *config)
{
    fk_delivery_config c = config != NULL ? *config : (fk_delivery_config){ 0 };
    if (c.unacked_max == 0) c.unacked_max = OUTBOX_UNACKED_DEFAULT;
    if (c.resend_every == 0) c.resend_every = FK_SECONDS(1);
    if (c.give_up_after == 0) c.give_up_after = OUTBOX_GIVE_UP_DEFAULT;
    if (c.resend_every < 0 || c.give_up_after < 0) return FK_E_INVALID;
    *outbox = (fk_outbox){ .config = c, .resend_at = FK_NEVER, .give_up_at = FK_NEVER };
    return FK_OK;
}

/* ---- what follows from the list ------------------------------------------------------------ */

static void outbox_rewind(fk_outbox *o)
{
    o->unsent = fk__parcel_of(o->unacked.first);
}

/* The list has changed, or the connection. A clock that runs is left alone: it is each second that
 * all is sent again, not a second after the last message. */
static void outbox_settle(fk_outbox *o, fk_time now)
{
    bool is_empty = o->unacked.count == 0;
    if (is_empty || !o->is_open)
        o->resend_at = FK_NEVER;
    else if (o->resend_at == FK_NEVER)
        o->resend_at = fk__time_add(now, o->config.resend_every);
    if (is_empty)
        o->give_up_at = FK_NEVER;
    else if (o->give_up_at == FK_NEVER)
        o->give_up_at = fk__time_add(now, o->config.give_up_after);
}

/* Everything comes back. With the next peer all numbers begin again. */
static void outbox_empty(fk_outbox *o, fk_outbox_effects *fx)
{
    if (FK_SAFEGUARD(UNACKED_RETURNS)) fk__envelopes_move(&fx->lost, &o->unacked);
    o->unacked = (fk_envelopes){ NULL, NULL, 0 };
    o->unsent = NULL;
    o->nacked = 0;
    if (FK_SAFEGUARD(SEQ_RESTART)) o->seq = 0;
    o->acked = o->sent = o->seq;
    o->resend_at = o->give_up_at = FK_NEVER;
}

/* Both sides would go on with different ideas of what was said: there is no way back to one. */
static void outbox_despair(fk_outbox *o, fk_outbox_despair why, fk_outbox_effects *fx)
{
    fx->despair = why;
    fx->uid = o->uid;
    outbox_empty(o, fx);
    o->is_shut = true;
    o->is_open = false;
}

fk_err fk__outbox_put(fk_outbox *outbox, fk_parcel *parcel, fk_time now, fk_outbox_effects *effects)
{
    fk_outbox *o = outbox;
    *effects = (fk_outbox_effects){ .despair = FK_OUTBOX_DESPAIR_NONE };
    if (o->is_shut) return FK_E_QUARANTINED;
    if (o->unacked.count >= o->config.unacked_max && FK_SAFEGUARD(UNACKED_BOUND)) {
        outbox_despair(o, FK_OUTBOX_DESPAIR_OVERFLOW, effects);
        return FK_E_FULL;
    }
    parcel->seq = ++o->seq;
    fk__envelopes_put(&o->unacked, &parcel->link);
    if (o->unsent == NULL) o->unsent = parcel;
    outbox_settle(o, now);
    effects->has_unsent = o->is_open;
    return FK_OK;
}

/* ---- events -------------------------------------------------------------------------------- */

/* Late words of a system that was replaced make it look as if it were back. */
static bool outbox_was_replaced(const fk_outbox *o, uint64_t uid)
{
    uint32_t i = 0;
    while (i < FK_OUTBOX_FORMER && o->former[i] != uid) i++;
    return i < FK_OUTBOX_FORMER && FK_SAFEGUARD(PEER_FORMER);
}

static void outbox_replace(fk_outbox *o, uint64_t uid, fk_outbox_effects *fx)
{
    /* What was put before anybody was met is for whoever is met first. */
    if (o->uid != 0) {
        outbox_empty(o, fx);
        o->former[o->former_next] = o->uid;
        o->former_next = (o->former_next + 1) % FK_OUTBOX_FORMER;
    }
    o->uid = uid;
}

static fk_outbox_result outbox_on_opened(fk_outbox *o, uint64_t uid, fk_time now,
                                         fk_outbox_effects *fx)
{
    if (uid == 0) return FK_OUTBOX_RESULT_INVALID;
    bool is_same = o->uid == uid;
    if (is_same && o->is_open) return FK_OUTBOX_RESULT_SAME;
    if (is_same ? o->is_shut : outbox_was_replaced(o, uid)) return FK_OUTBOX_RESULT_STALE;
    if (!is_same) outbox_replace(o, uid, fx);
    o->is_open = true;
    o->is_shut = false;
    o->nacked = 0;
    /* What an earlier connection swallowed is not known. */
    outbox_rewind(o);
    outbox_settle(o, now);
    return FK_OUTBOX_RESULT_DONE;
}

static fk_outbox_result outbox_on_closed(fk_outbox *o, fk_time now)
{
    if (!o->is_open) return FK_OUTBOX_RESULT_SAME;
    o->is_open = false;
    outbox_settle(o, now);
    return FK_OUTBOX_RESULT_DONE;
}

/* Only progress moves the time of giving up: a peer that answers and answers but never gets on has
 * lost what we believe that it has. */
static void outbox_advance(fk_outbox *o, uint64_t seq, fk_time now, fk_outbox_effects *fx)
{
    bool is_unsent_gone = o->unsent != NULL && o->unsent->seq <= seq;
    while (o->acked < seq) {
        fk__envelopes_put(&fx->delivered, fk__envelopes_take(&o->unacked));
        o->acked++;
    }
    if (is_unsent_gone) outbox_rewind(o);
    o->give_up_at = FK_NEVER;
    outbox_settle(o, now);
}

/* A burst after one gap is refused message by message, but the gap is one: it is answered once.
 * Should that answer be lost, too, a second brings the next. */
static bool outbox_answers_gap(const fk_outbox *o, uint64_t seq)
{
    return o->unacked.count != 0 && (seq >= o->nacked || !FK_SAFEGUARD(NACK_ONCE));
}

static fk_outbox_result outbox_on_reply(fk_outbox *o, const fk_outbox_event *event, fk_time now,
                                        fk_outbox_effects *fx)
{
    bool is_peer = event->uid == o->uid || !FK_SAFEGUARD(ACK_PEER);
    if (event->uid == 0) return FK_OUTBOX_RESULT_INVALID;
    if (!is_peer || o->is_shut) return FK_OUTBOX_RESULT_STALE;
    if (event->seq > (FK_SAFEGUARD(ACK_SENT) ? o->sent : o->seq)) return FK_OUTBOX_RESULT_INVALID;
    bool is_progress = event->seq > o->acked;
    bool is_gap = event->kind == FK_OUTBOX_EVENT_NACK && event->seq >= o->acked;
    if (is_progress) outbox_advance(o, event->seq, now, fx);
    if (is_gap && outbox_answers_gap(o, event->seq)) {
        o->nacked = event->seq + 1;
        outbox_rewind(o);
        return FK_OUTBOX_RESULT_DONE;
    }
    return is_progress ? FK_OUTBOX_RESULT_DONE : FK_OUTBOX_RESULT_SAME;
}

static fk_outbox_result outbox_on_quarantined(fk_outbox *o, fk_outbox_effects *fx)
{
    if (o->is_shut) return FK_OUTBOX_RESULT_SAME;
    outbox_empty(o, fx);
    o->is_shut = true;
    o->is_open = false;
    return FK_OUTBOX_RESULT_DONE;
}

static fk_outbox_result outbox_on_event(fk_outbox *o, const fk_outbox_event *event, fk_time now,
                                        fk_outbox_effects *fx)
{
    switch (event->kind) {
    case FK_OUTBOX_EVENT_OPENED: return outbox_on_opened(o, event->uid, now, fx);
    case FK_OUTBOX_EVENT_CLOSED: return outbox_on_closed(o, now);
    case FK_OUTBOX_EVENT_ACK:
    case FK_OUTBOX_EVENT_NACK: return outbox_on_reply(o, event, now, fx);
    case FK_OUTBOX_EVENT_QUARANTINED: return outbox_on_quarantined(o, fx);
    default: return FK_OUTBOX_RESULT_INVALID;
    }
}

fk_outbox_result fk__outbox_step(fk_outbox *outbox, const fk_outbox_event *event, fk_time now,
                                 fk_outbox_effects *effects)
{
    *effects = (fk_outbox_effects){ .despair = FK_OUTBOX_DESPAIR_NONE };
    fk_outbox_result result = outbox_on_event(outbox, event, now, effects);
    effects->has_unsent = outbox->is_open && outbox->unsent != NULL;
    return result;
}

/* ---- sending and time ---------------------------------------------------------------------- */

/* For the first to be acknowledged, before anything else goes out. */
static bool outbox_waits(const fk_outbox *o)
{
    return o->config.is_careful && o->acked == 0;
}

fk_parcel *fk__outbox_take(fk_outbox *outbox)
{
    fk_parcel *parcel = outbox->unsent;
    if (!outbox->is_open || parcel == NULL) return NULL;
    if (outbox_waits(outbox) && parcel->seq != 1) return NULL;
    outbox->unsent = fk__parcel_of(parcel->link.next);
    if (parcel->seq > outbox->sent) outbox->sent = parcel->seq;
    return parcel;
}

fk_time fk__outbox_next(const fk_outbox *outbox)
{
    return outbox->resend_at < outbox->give_up_at ? outbox->resend_at : outbox->give_up_at;
}

void fk__outbox_tick(fk_outbox *outbox, fk_time now, fk_outbox_effects *effects)
{
    fk_outbox *o = outbox;
    *effects = (fk_outbox_effects){ .despair = FK_OUTBOX_DESPAIR_NONE };
    if (o->give_up_at <= now && FK_SAFEGUARD(DELIVERY_GIVE_UP)) {
        outbox_despair(o, FK_OUTBOX_DESPAIR_GAVE_UP, effects);
    } else if (o->resend_at <= now) {
        o->resend_at = fk__time_add(now, o->config.resend_every);
        o->nacked = 0;
        /* While a connection is slow the last round goes on: to begin again each second would send
         * the first ones for ever and the last ones never. */
        if ((o->unsent == NULL || outbox_waits(o)) && FK_SAFEGUARD(RESEND)) outbox_rewind(o);
    }
    effects->has_unsent = o->is_open && o->unsent != NULL;
}

void fk__outbox_fini(fk_outbox *outbox, fk_envelopes *left)
{
    *left = outbox->unacked;
    *outbox = (fk_outbox){ .is_shut = true, .resend_at = FK_NEVER, .give_up_at = FK_NEVER };
}

void fk__outbox_check(const fk_outbox *outbox)
{
    const fk_outbox *o = outbox;
    uint64_t seq = o->acked;
    bool is_unsent_seen = false;
    for (fk_envelope *link = o->unacked.first; link != NULL; link = link->next) {
        FK_ASSERT(fk__parcel_of(link)->seq == ++seq);
        if (fk__parcel_of(link) == o->unsent) is_unsent_seen = true;
    }
    FK_ASSERT(seq == o->seq);
    FK_ASSERT(o->seq - o->acked == o->unacked.count);
    FK_ASSERT(o->unacked.count <= o->config.unacked_max);
    FK_ASSERT(o->unsent == NULL || is_unsent_seen);
    FK_ASSERT(!o->is_open || o->uid != 0);
    FK_ASSERT(!o->is_shut || (!o->is_open && seq == 0));
    FK_ASSERT(o->acked <= o->sent);
    FK_ASSERT(o->sent <= o->seq);
    FK_ASSERT(o->unacked.count != 0 || o->give_up_at == FK_NEVER);
    FK_ASSERT((o->unacked.count != 0 && o->is_open) || o->resend_at == FK_NEVER);
}

/* ---- the inbox ----------------------------------------------------------------------------- */

void fk__inbox_step(fk_inbox *inbox, uint64_t seq, fk_inbox_effects *effects)
{
    bool is_next = seq == inbox->seq + 1;
    bool is_late = seq <= inbox->seq && FK_SAFEGUARD(SEQ_ONCE);
    bool is_early = seq > inbox->seq + 1 && FK_SAFEGUARD(SEQ_GAP);
    *effects = (fk_inbox_effects){ .must_deliver = is_next || (!is_late && !is_early),
                                   .is_gap = is_early };
    if (effects->must_deliver) inbox->seq = seq;
    effects->seq = inbox->seq;
}

void fk__inbox_undo(fk_inbox *inbox, const fk_inbox_effects *effects)
{
    FK_ASSERT(effects->must_deliver);
    FK_ASSERT(inbox->seq == effects->seq);
    inbox->seq--;
}

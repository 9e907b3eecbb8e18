/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/delivery_model.h"

#include <string.h>

enum { LETTERS = 48, UIDS = 200 };

typedef struct letter {
    fk_parcel parcel;
    bool is_out;
} letter;

/* Numbers are not stored but follow from the places: queue[i] has the number acked + i + 1. */
static struct {
    history h;
    fk_outbox box;
    fk_delivery_config config;
    fk_time now;
    letter letters[LETTERS];
    letter *queue[LETTERS];
    uint32_t len;
    uint32_t at; /* the next to be sent; len: none */
    uint64_t acked, sent;
    bool is_gap_answered; /* for the present value of acked */
    uint64_t uid;
    uint64_t met[LETTERS * 100]; /* everybody that was replaced, in order */
    uint32_t met_count;
    bool is_open, is_shut;
    fk_time resend_at, give_up_at;
} m;

delivery_seen delivery_model_seen;

typedef struct foretold {
    uint32_t delivered, lost; /* so many from the front of the queue */
    fk_outbox_despair despair;
    uint64_t uid;
} foretold;

/* ---- what should happen -------------------------------------------------------------------- */

static void drop_front(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) m.queue[i]->is_out = false;
    m.len -= count;
    for (uint32_t i = 0; i < m.len; i++) m.queue[i] = m.queue[i + count];
    m.at = m.at > count ? m.at - count : 0;
}

static void set_clocks(void)
{
    if (m.len == 0 || !m.is_open) m.resend_at = FK_NEVER;
    if (m.len != 0 && m.is_open && m.resend_at == FK_NEVER) {
        m.resend_at = m.now + m.config.resend_every;
    }
    if (m.len == 0) m.give_up_at = FK_NEVER;
    if (m.len != 0 && m.give_up_at == FK_NEVER) m.give_up_at = m.now + m.config.give_up_after;
}

static void lose_all(foretold *f)
{
    f->lost = m.len;
    m.acked = m.sent = 0;
    m.is_gap_answered = false;
}

static void shut(fk_outbox_despair why, foretold *f)
{
    f->despair = why;
    f->uid = why != FK_OUTBOX_DESPAIR_NONE ? m.uid : 0;
    lose_all(f);
    m.is_shut = true;
    m.is_open = false;
}

static fk_outbox_result on_opened(uint64_t uid, foretold *f)
{
    if (uid == 0) return FK_OUTBOX_RESULT_INVALID;
    if (uid == m.uid && m.is_open) return FK_OUTBOX_RESULT_SAME;
    if (uid == m.uid && m.is_shut) return FK_OUTBOX_RESULT_STALE;
    for (uint32_t i = 0; i < m.met_count; i++) {
        if (m.met[i] == uid && m.met_count - i <= FK_OUTBOX_FORMER) return FK_OUTBOX_RESULT_STALE;
    }
    if (uid != m.uid && m.uid != 0) {
        lose_all(f);
        m.met[m.met_count++] = m.uid;
    }
    m.uid = uid;
    m.is_open = true;
    m.is_shut = m.is_gap_answered = false;
    m.at = 0;
    return FK_OUTBOX_RESULT_DONE;
}

static fk_outbox_result on_reply(bool is_nack, uint64_t uid, uint64_t seq, foretold *f)
{
    fk_outbox_result result = FK_OUTBOX_RESULT_SAME;
    if (uid == 0) return FK_OUTBOX_RESULT_INVALID;
    if (uid != m.uid || m.is_shut) return FK_OUTBOX_RESULT_STALE;
    if (seq > m.sent) return FK_OUTBOX_RESULT_INVALID;
    if (seq < m.acked) return FK_OUTBOX_RESULT_SAME;
    if (seq > m.acked) {
        f->delivered = (uint32_t)(seq - m.acked);
        m.acked = seq;
        m.is_gap_answered = false;
        m.give_up_at = FK_NEVER;
        result = FK_OUTBOX_RESULT_DONE;
    }
    if (is_nack && !m.is_gap_answered && m.len > f->delivered) {
        m.is_gap_answered = true;
        m.at = 0;
        delivery_model_seen.gaps++;
        result = FK_OUTBOX_RESULT_DONE;
    }
    return result;
}

static fk_outbox_result on_event(const fk_outbox_event *event, foretold *f)
{
    switch (event->kind) {
    case FK_OUTBOX_EVENT_OPENED: return on_opened(event->uid, f);
    case FK_OUTBOX_EVENT_CLOSED:
        if (!m.is_open) return FK_OUTBOX_RESULT_SAME;
        m.is_open = false;
        return FK_OUTBOX_RESULT_DONE;
    case FK_OUTBOX_EVENT_ACK: return on_reply(false, event->uid, event->seq, f);
    case FK_OUTBOX_EVENT_NACK: return on_reply(true, event->uid, event->seq, f);
    case FK_OUTBOX_EVENT_QUARANTINED:
        if (m.is_shut) return FK_OUTBOX_RESULT_SAME;
        shut(FK_OUTBOX_DESPAIR_NONE, f);
        return FK_OUTBOX_RESULT_DONE;
    default: return FK_OUTBOX_RESULT_INVALID;
    }
}

/* ---- what does happen ---------------------------------------------------------------------- */

static bool check_list(fk_envelopes list, uint32_t first, uint32_t count)
{
    fk_envelope *link = list.first;
    EXPECT(&m.h, list.count == count);
    for (uint32_t i = 0; i < count; i++, link = link->next) {
        EXPECT(&m.h, link == &m.queue[first + i]->parcel.link);
    }
    EXPECT(&m.h, link == NULL);
    return true;
}

static bool check_effects(const fk_outbox_effects *fx, const foretold *f)
{
    EXPECT(&m.h, fx->despair == f->despair);
    EXPECT(&m.h, fx->uid == f->uid);
    if (!check_list(fx->delivered, 0, f->delivered)) return false;
    if (!check_list(fx->lost, f->delivered, f->lost)) return false;
    drop_front(f->delivered + f->lost);
    set_clocks();
    EXPECT(&m.h, fx->has_unsent == (m.is_open && m.at < m.len));
    fk_time next = m.resend_at < m.give_up_at ? m.resend_at : m.give_up_at;
    EXPECT(&m.h, fk__outbox_next(&m.box) == next);
    delivery_model_seen.delivered += f->delivered;
    delivery_model_seen.lost += f->lost;
    if (!m.h.is_blind) fk__outbox_check(&m.box);
    return true;
}

static bool act_put(void)
{
    fk_outbox_effects fx;
    foretold f = { 0 };
    letter *l = &m.letters[history_below(&m.h, LETTERS)];
    if (l->is_out) return true;
    fk_err err = fk__outbox_put(&m.box, &l->parcel, m.now, &fx);
    if (m.is_shut) {
        EXPECT(&m.h, err == FK_E_QUARANTINED);
        delivery_model_seen.blocked++;
    } else if (m.len == m.config.unacked_max) {
        EXPECT(&m.h, err == FK_E_FULL);
        shut(FK_OUTBOX_DESPAIR_OVERFLOW, &f);
        delivery_model_seen.overflows++;
    } else {
        EXPECT(&m.h, err == FK_OK);
        l->is_out = true;
        m.queue[m.len++] = l;
        EXPECT(&m.h, l->parcel.seq == m.acked + m.len);
    }
    return check_effects(&fx, &f);
}

static bool act_take(void)
{
    for (uint64_t n = 1 + history_below(&m.h, 6); n > 0; n--) {
        fk_parcel *parcel = fk__outbox_take(&m.box);
        if (!m.is_open || m.at == m.len) {
            EXPECT(&m.h, parcel == NULL);
            return true;
        }
        EXPECT(&m.h, parcel == &m.queue[m.at]->parcel);
        m.at++;
        EXPECT(&m.h, parcel->seq == m.acked + m.at);
        delivery_model_seen.sent++;
        delivery_model_seen.again += parcel->seq <= m.sent;
        if (parcel->seq > m.sent) m.sent = parcel->seq;
    }
    return true;
}

static bool act_event(void)
{
    fk_outbox_effects fx;
    foretold f = { 0 };
    fk_outbox_event event = { .kind =
                                  (fk_outbox_event_kind)history_below(&m.h, FK_OUTBOX_EVENT_COUNT),
                              .uid =
                                  history_chance(&m.h, 4) ? history_below(&m.h, UIDS + 1) : m.uid,
                              .seq = m.acked + history_below(&m.h, 6) };
    if (event.kind == FK_OUTBOX_EVENT_QUARANTINED && !history_chance(&m.h, 6)) {
        event.kind = FK_OUTBOX_EVENT_ACK;
    }
    if (event.kind == FK_OUTBOX_EVENT_NACK && history_chance(&m.h, 2)) event.seq = m.acked;
    if (history_chance(&m.h, 10)) event.seq = history_below(&m.h, LETTERS);
    if (m.met_count > 0 && history_chance(&m.h, 4)) {
        event.uid = m.met[m.met_count - 1 - history_below(&m.h, m.met_count < 6 ? m.met_count : 6)];
    }
    fk_outbox_result result = fk__outbox_step(&m.box, &event, m.now, &fx);
    fk_outbox_result expected = on_event(&event, &f);
    EXPECT(&m.h, result == expected);
    delivery_model_seen.results[result]++;
    return check_effects(&fx, &f);
}

static bool act_time(void)
{
    fk_outbox_effects fx;
    foretold f = { 0 };
    fk_time next = m.resend_at < m.give_up_at ? m.resend_at : m.give_up_at;
    fk_time step = (fk_time)history_below(&m.h, FK_MILLIS(400));
    if (next != FK_NEVER && history_chance(&m.h, 3)) step = next > m.now ? next - m.now : 0;
    if (history_chance(&m.h, 40)) step = m.config.give_up_after;
    m.now += step;
    fk__outbox_tick(&m.box, m.now, &fx);
    if (m.give_up_at <= m.now) {
        shut(FK_OUTBOX_DESPAIR_GAVE_UP, &f);
        delivery_model_seen.given_up++;
    } else if (m.resend_at <= m.now) {
        m.resend_at = m.now + m.config.resend_every;
        m.is_gap_answered = false;
        if (m.at == m.len) m.at = 0;
    }
    return check_effects(&fx, &f);
}

static bool act(void)
{
    uint64_t choice = history_below(&m.h, 100);
    if (choice < 30) return act_put();
    if (choice < 55) return act_take();
    if (choice < 85) return act_event();
    return act_time();
}

static bool finish(void)
{
    fk_envelopes left;
    fk__outbox_fini(&m.box, &left);
    return check_list(left, 0, m.len);
}

const char *delivery_model_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    memset(&m, 0, sizeof(m));
    history_begin(&m.h, seed, is_blind);
    m.config = (fk_delivery_config){ .unacked_max = 1 + (uint32_t)history_below(&m.h, 16),
                                     .resend_every = FK_SECONDS(1),
                                     .give_up_after = FK_SECONDS(3 + history_below(&m.h, 30)) };
    m.resend_at = m.give_up_at = FK_NEVER;
    bool ok = fk__outbox_init(&m.box, &m.config) == FK_OK;
    for (m.h.step = 0; m.h.step < steps && ok; m.h.step++) ok = act();
    if (ok) ok = finish();
    return ok ? NULL : m.h.failure;
}

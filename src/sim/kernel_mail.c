/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/kernel.h"

#include "base/base.h"
#include "fraktor/select.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;

/* ---- types ------------------------------------------------------------------------------- */

/* Every message begins with its number; the rest follows from it. */
typedef struct sim_note {
    uint32_t number, check;
} sim_note;
typedef struct sim_wide {
    sim_note note;
    unsigned char fill[32];
} sim_wide;
typedef struct sim_owned {
    sim_note note;
    unsigned char fill[8];
} sim_owned;
typedef struct sim_large {
    sim_note note;
    unsigned char fill[192];
} sim_large;
typedef sim_large sim_cargo;
typedef sim_wide sim_parcel;
typedef sim_note sim_tick;
typedef sim_owned sim_bell;

static uint32_t check_of(uint32_t number)
{
    return (uint32_t)fk__mix64(number + UINT64_C(0x9E3779B97F4A7C15));
}

static void drop_mail(void *message)
{
    const sim_note *note = message;
    fk__mail_drop(note->number);
}

static void drop_alarm(void *message)
{
    const sim_note *note = message;
    fk__alarm_drop(note->number);
}

FK_MESSAGE(sim_note);
FK_MESSAGE(sim_wide);
FK_MESSAGE_DROP(sim_owned, drop_mail);
FK_MESSAGE(sim_large);
FK_MESSAGE_DROP(sim_cargo, drop_mail);
FK_MESSAGE_DROP(sim_parcel, drop_mail);
FK_MESSAGE(sim_tick);
FK_MESSAGE_DROP(sim_bell, drop_alarm);

static const fk_type *const TYPES[FK_KIND_COUNT] = {
    [FK_KIND_NOTE] = &fk_type_sim_note,     [FK_KIND_WIDE] = &fk_type_sim_wide,
    [FK_KIND_OWNED] = &fk_type_sim_owned,   [FK_KIND_LARGE] = &fk_type_sim_large,
    [FK_KIND_CARGO] = &fk_type_sim_cargo,   [FK_KIND_TEXT] = &fk_type_text,
    [FK_KIND_PARCEL] = &fk_type_sim_parcel, [FK_KIND_TICK] = &fk_type_sim_tick,
    [FK_KIND_BELL] = &fk_type_sim_bell,
};

static size_t length_of(fk_mail_kind kind, uint32_t number)
{
    if (kind == FK_KIND_TEXT) return sizeof(sim_note) + number * 37 % 180;
    return TYPES[kind]->size;
}

static void fill(unsigned char *bytes, size_t len, uint32_t number)
{
    sim_note note = { number, check_of(number) };
    memcpy(bytes, &note, sizeof(note));
    for (size_t i = sizeof(note); i < len; i++) bytes[i] = (unsigned char)(number + i);
}

fk_out fk__kernel_make(fk_envelope *envelope, fk_mail_kind kind, uint32_t number)
{
    size_t len = length_of(kind, number);
    fill(envelope->bytes, len, number);
    if (kind != FK_KIND_TEXT) return (fk_out){ TYPES[kind], envelope->bytes };
    envelope->text = (fk_str){ (const char *)envelope->bytes, len };
    return (fk_out){ &fk_type_text, &envelope->text };
}

uint32_t fk__kernel_read(const fk_type *type, const void *data, size_t len, fk_mail_kind *kind)
{
    uint32_t k = 0;
    sim_note note;
    while (k < FK_KIND_COUNT && TYPES[k] != type) k++;
    if (k == FK_KIND_COUNT || len < sizeof(note)) {
        fk__world_fail("A1", "an unknown message: %s", type->name);
    }
    *kind = (fk_mail_kind)k;
    memcpy(&note, data, sizeof(note));
    bool ok = note.check == check_of(note.number) && len == length_of(*kind, note.number);
    const unsigned char *bytes = data;
    for (size_t i = sizeof(note); ok && i < len; i++) {
        ok = bytes[i] == (unsigned char)(note.number + i);
    }
    if (!ok) fk__world_fail("A1", "a message arrived damaged");
    return note.number;
}

/* -1 makes it a control message. */
int64_t fk__kernel_priority(const fk_msg *msg)
{
    fk_mail_kind kind;
    if (msg->type == &fk_type_poison) return FK_PRIORITIES;
    if (msg->type == &fk_type_identify || fk__kernel_is_call(msg->type)) return 0;
    uint32_t number = fk__kernel_read(msg->type, msg->data, msg->len, &kind);
    if (kind >= FK_KIND_TICK) return 0;
    return (int64_t)fk__mail_at(number)->priority - 1;
}

/* ---- dead letters ------------------------------------------------------------------------ */

/* The callback may send. What dies at once then is not reported; that it was dropped tells. A
 * receiver that would drop its oldest message is left alone: that one would die unseen; and so is
 * one that would make us wait. */
static void send_from_letter(void)
{
    uint32_t self = UINT32_C(1) << fk__world_self();
    uint32_t to = fk__kernel_pick();
    if (to == FK_NOBODY || l->person[to].overflow >= FK_OVERFLOW_DROP_OLDEST) return;
    FK_SOMETIMES_HIT(LETTER_SENDS);
    fk__kernel.in_letter |= self;
    fk__kernel_send(NULL, FK_NOBODY, to, 0);
    fk__kernel.in_letter &= ~self;
}

void fk__kernel_letter(void *user, const fk_dead_letter *letter)
{
    fk_mail_kind kind;
    (void)user;
    if ((fk__kernel.in_letter >> fk__world_self() & 1) != 0) {
        fk__world_fail("A1", "a dead letter of a dead letter");
    }
    if (fk__kernel_call_letter(letter)) return;
    uint32_t number = fk__kernel_read(letter->type, letter->data, letter->len, &kind);
    if (letter->reason == FK_REASON_DROPPED_OLDEST) FK_SOMETIMES_HIT(DROPPED_OLDEST);
    if (kind >= FK_KIND_TICK)
        fk__alarm_dead(number, letter);
    else
        fk__mail_dead(number, letter);
    if (!l->is_ending && fk__world_one_in(8)) send_from_letter();
}

/* ---- sending ----------------------------------------------------------------------------- */

bool fk__kernel_may_send(void)
{
    return l->mail_count < fk__world_swarm()->sends_max;
}

/* Somebody young whose end is near: what is sent to it now may arrive at its slot's next tenant. */
uint32_t fk__kernel_pick_dying(void)
{
    uint32_t count = l->person_count;
    for (uint32_t i = count; i > 0 && count - i < 12; i--) {
        const fk_person *p = &l->person[i - 1];
        if (!p->has_ref || p->is_gone) continue;
        if (p->is_leaving || p->is_told || p->is_poisoned) return i - 1;
    }
    return FK_NOBODY;
}

uint32_t fk__kernel_pick(void)
{
    uint32_t actor = FK_NOBODY;
    uint32_t count = l->person_count;
    if (fk__world_swarm()->is_churning && fk__world_one_in(2)) actor = fk__kernel_pick_dying();
    if (actor != FK_NOBODY) return actor;
    for (int i = 0; i < 8 && count != 0; i++) {
        uint32_t candidate = fk__world_below(count);
        if (fk__world_swarm()->is_churning && count > 6) candidate = count - 1 - candidate % 6;
        const fk_person *p = &l->person[candidate];
        if (!p->has_ref) continue;
        actor = candidate;
        if (!p->is_gone || fk__world_one_in(fk__world_swarm()->stale_in)) break;
    }
    return actor;
}

static void count_outcome(const fk_mail *mail, fk_err err, uint32_t slept)
{
    if (err == FK_E_NOMEM || err == FK_E_LIMIT) FK_SOMETIMES_HIT(SEND_NO_MEMORY);
    if (slept != fk__world_sleeps()) FK_SOMETIMES_HIT(BLOCKED);
    if (mail->state != FK_MAIL_DEAD) return;
    if (mail->reason == FK_REASON_STOPPED) FK_SOMETIMES_HIT(STALE_REF);
    if (mail->reason == FK_REASON_DROPPED_NEWEST) FK_SOMETIMES_HIT(DROPPED_NEWEST);
    if (mail->reason != FK_REASON_FULL) return;
    FK_SOMETIMES_HIT(FULL);
    if (l->person[mail->to].overflow == FK_OVERFLOW_BLOCK) FK_SOMETIMES_HIT(FULL_INSIDE_BLOCK);
}

static void post(fk_ctx *ctx, uint32_t number, fk_ref to, fk_out out, bool is_reply)
{
    uint32_t slept = fk__world_sleeps();
    fk_err err;
    if (fk__world_swarm()->is_churning && fk__world_one_in(16)) fk__world_linger();
    if (is_reply)
        err = fk_reply(ctx, out);
    else
        err = ctx != NULL ? fk_tell(ctx, to, out) : fk_send(fk__kernel.sys, to, out);
    fk__mail_sent(number, 0, err);
    count_outcome(fk__mail_at(number), err, slept);
}

static void send_to(fk_ctx *ctx, fk_mail *mail, bool is_reply)
{
    fk_envelope envelope;
    bool in_letter = (fk__kernel.in_letter >> fk__world_self() & 1) != 0;
    mail->kind = (uint8_t)fk__world_below(FK_KIND_SENDABLE);
    if (in_letter) mail->kind = FK_KIND_OWNED;
    mail->is_silent = in_letter;
    mail->priority = (uint8_t)fk__world_below(FK_PRIORITIES);
    mail->is_owned = mail->kind == FK_KIND_OWNED || mail->kind == FK_KIND_CARGO;
    mail->is_inside = ctx != NULL;
    mail->origin = mail->from;
    /* What a callback sends is no part of the order in which its thread sends. */
    mail->thread = in_letter ? FK_MACHINE_THREADS_MAX : 0;
    uint32_t number = fk__mail_send(mail);
    fk_out out = fk__kernel_make(&envelope, (fk_mail_kind)mail->kind, number);
    post(ctx, number, mail->to_ref, out, is_reply);
}

void fk__kernel_send(fk_ctx *ctx, uint32_t from, uint32_t to, uint32_t rounds)
{
    if (to == FK_NOBODY || !fk__kernel_may_send()) return;
    fk_mail mail = { .from = (uint16_t)from,
                     .to = (uint16_t)to,
                     .to_ref = l->person[to].ref,
                     .rounds = (uint8_t)rounds };
    send_to(ctx, &mail, false);
}

/* An outside thread does not wait for room, either. */
void fk__kernel_send_selected(fk_ctx *ctx, uint32_t from, uint32_t to, fk_str path)
{
    fk_envelope envelope;
    if (!fk__kernel_may_send()) return;
    fk_mail mail = { .from = (uint16_t)from,
                     .origin = (uint16_t)from,
                     .to = (uint16_t)to,
                     .to_ref = l->person[to].ref,
                     .kind = (uint8_t)fk__world_below(FK_KIND_SENDABLE),
                     .priority = (uint8_t)fk__world_below(FK_PRIORITIES),
                     .is_inside = true,
                     .is_selected = true };
    mail.is_owned = mail.kind == FK_KIND_OWNED || mail.kind == FK_KIND_CARGO;
    uint32_t number = fk__mail_send(&mail);
    fk_out out = fk__kernel_make(&envelope, (fk_mail_kind)mail.kind, number);
    fk_err err =
        ctx != NULL ? fk_select_tell(ctx, path, out) : fk_select_send(fk__kernel.sys, path, out);
    fk__mail_sent(number, 0, err);
    const fk_mail *sent = fk__mail_at(number);
    bool is_missed = sent->state == FK_MAIL_DEAD && sent->reason == FK_REASON_NO_RECEIVER;
    if (is_missed)
        FK_SOMETIMES_HIT(SELECT_MISSED);
    else
        FK_SOMETIMES_HIT(SELECTED);
}

void fk__kernel_reply(fk_ctx *ctx, uint32_t from, uint32_t to, uint32_t rounds)
{
    if (!fk__kernel_may_send()) return;
    fk_mail mail = { .from = (uint16_t)from,
                     .to = (uint16_t)to,
                     .to_ref = to == FK_NOBODY ? FK_REF_NONE : l->person[to].ref,
                     .rounds = (uint8_t)rounds };
    FK_SOMETIMES_HIT(REPLIED);
    send_to(ctx, &mail, true);
}

void fk__kernel_send_bogus(fk_ctx *ctx, uint32_t from)
{
    fk_mail mail = { .from = (uint16_t)from, .to = FK_NOBODY };
    uint32_t system = fk__kernel.sys->id;
    uint32_t kind = fk__world_below(3);
    if (!fk__kernel_may_send()) return;
    if (kind == 0) {
        mail.to_ref = FK_REF_NONE;
        FK_SOMETIMES_HIT(NO_REF);
    } else if (kind == 1) {
        uint32_t slot = fk__world_one_in(2) ? fk__world_below(300) : fk__world_below(UINT32_MAX);
        mail.to_ref = (fk_ref){ slot, 0x40000001u + 2 * fk__world_below(1000), system };
        FK_SOMETIMES_HIT(MADE_UP_REF);
    } else {
        mail.to_ref = (fk_ref){ fk__world_below(8), 1, system ^ 0x10 };
        FK_SOMETIMES_HIT(FOREIGN_REF);
    }
    send_to(ctx, &mail, false);
}

/* ---- payloads ---------------------------------------------------------------------------- */

enum { RECEIVERS_MAX = 4 };

static uint32_t pick_receivers(uint32_t *to)
{
    uint32_t count = 0, wanted = 1 + fk__world_below(RECEIVERS_MAX);
    for (uint32_t i = 0; i < wanted; i++) {
        uint32_t candidate = fk__kernel_pick();
        bool is_new = candidate != FK_NOBODY;
        for (uint32_t j = 0; j < count; j++) is_new = is_new && to[j] != candidate;
        if (is_new) to[count++] = candidate;
    }
    return count;
}

void fk__kernel_send_parcel(fk_ctx *ctx, uint32_t from)
{
    uint32_t to[RECEIVERS_MAX], first = 0;
    fk_payload *payload;
    fk_system *sys = fk__kernel.sys;
    if (!fk__kernel_may_send()) return;
    if (fk_payload_create(sys, &fk_type_sim_parcel, sizeof(sim_parcel), &payload) != FK_OK) return;
    /* After the payload: another thread may have used up the numbers. */
    uint32_t count = l->mail_count + RECEIVERS_MAX < FK_MAILS_MAX ? pick_receivers(to) : 0;
    uint32_t seen = l->mail_count;
    fill(fk_payload_data(payload), fk_payload_len(payload), seen);
    if (count == 0) { /* a letter to nobody, then */
        to[count++] = FK_NOBODY;
    }
    if (count > 1)
        FK_SOMETIMES_HIT(SHARED_PAYLOAD);
    else
        FK_SOMETIMES_HIT(MOVED_PAYLOAD);
    for (uint32_t i = 0; i < count; i++) {
        fk_mail mail = { .from = (uint16_t)from,
                         .origin = (uint16_t)from,
                         .to = (uint16_t)to[i],
                         .to_ref = to[i] == FK_NOBODY ? FK_REF_NONE : l->person[to[i]].ref,
                         .kind = FK_KIND_PARCEL,
                         .is_owned = true,
                         .is_inside = ctx != NULL,
                         .first = seen,
                         .shares = (uint8_t)count };
        uint32_t number = fk__mail_send(&mail);
        if (i == 0) first = number;
    }
    for (uint32_t i = 1; i < count; i++) payload = fk_payload_share(payload);
    for (uint32_t i = 0; i < count; i++) {
        fk_ref ref = to[i] == FK_NOBODY ? FK_REF_NONE : l->person[to[i]].ref;
        post(ctx, first + i, ref, FK_MSG_PAYLOAD(payload), false);
    }
}

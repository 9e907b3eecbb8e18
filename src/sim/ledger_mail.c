/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A1 and A2: the life of every message. Its number travels in its bytes; the ledger knows whom
 * it was for. The sends of a shared payload have consecutive numbers and carry the first of
 * them; the receiver tells which one it got.
 */

#include "base/hash.h"
#include "sim/ledger.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;

/* ---- order: per sender, receiver and class ----------------------------------------------- */

enum { PAIRS = 16384 };

typedef struct pair {
    uint64_t run; /* an entry of an earlier run is empty */
    uint64_t key;
    uint32_t sent, handled;
} pair;

static pair pairs[PAIRS];
static uint64_t pairs_run;
static uint32_t pairs_used;

static pair *pair_of(const fk_mail *mail)
{
    if (l->mail_count == 1) { /* the first of a run */
        pairs_run++;
        pairs_used = 0;
    }
    uint64_t from = mail->from != FK_NOBODY ? mail->from : 0x10000u + mail->thread;
    uint64_t key = from << 32 | (uint64_t)mail->to << 8 | mail->class;
    for (uint64_t i = fk__mix64(key);; i++) {
        pair *p = &pairs[i % PAIRS];
        if (p->run == pairs_run && p->key == key) return p;
        if (p->run == pairs_run) continue;
        if (++pairs_used > PAIRS / 2) fk__world_fail("ledger", "too many pairs");
        *p = (pair){ .run = pairs_run, .key = key };
        return p;
    }
}

/* ---- sending ----------------------------------------------------------------------------- */

fk_mail *fk__mail_at(uint32_t number)
{
    if (number == 0 || number >= l->mail_count) {
        fk__world_fail("A1", "a message that was never sent: #%u", (unsigned)number);
    }
    return &l->mail[number];
}

static uint8_t class_of(const fk_mail *mail)
{
    if (mail->to == FK_NOBODY) return 0;
    const fk_person *to = &l->person[mail->to];
    if (to->mailbox == FK_MAILBOX_CONTROL) return mail->priority == 0;
    return to->mailbox == FK_MAILBOX_STABLE ? mail->priority : 0;
}

static void enter(fk_mail *mail, uint32_t number)
{
    mail->class = class_of(mail);
    mail->seq = ++pair_of(mail)->sent;
    mail->state = FK_MAIL_SENT;
    mail->returned = false;
    if (mail->to != FK_NOBODY) l->person[mail->to].urgent[mail->priority]++;
    fk__ledger_note(FK_FACT_SEND, mail->from, mail->to, number, mail->kind);
}

uint32_t fk__mail_send(const fk_mail *mail)
{
    uint32_t number = l->mail_count;
    if (number == FK_MAILS_MAX) fk__world_fail("ledger", "too many messages");
    fk_mail *own = &l->mail[number];
    *own = *mail;
    own->thread = (uint16_t)(own->thread + fk__world_self());
    if (own->first == 0) own->first = number;
    if (own->shares == 0) own->shares = 1;
    enter(own, number);
    l->mail_count++;
    return number;
}

void fk__mail_forward(uint32_t number, uint32_t to, fk_ref to_ref)
{
    fk_mail *mail = fk__mail_at(number);
    mail->from = mail->to;
    mail->to = (uint16_t)to;
    mail->to_ref = to_ref;
    mail->is_inside = true;
    mail->hops++;
    l->person[mail->from].held = 0; /* no longer its business */
    fk__ledger_note(FK_FACT_FORWARD, mail->from, to, number, 0);
    enter(mail, number);
}

static void check_refusal(const fk_mail *mail, uint32_t number, fk_err err)
{
    fk_reason reason = err == FK_E_FULL ? FK_REASON_FULL : FK_REASON_NO_MEMORY;
    if (err != FK_E_FULL && err != FK_E_NOMEM && err != FK_E_LIMIT) {
        fk__world_fail("A1", "send of #%u gave %s", (unsigned)number, fk_err_name(err));
    }
    bool is_told = mail->reason == (uint8_t)reason || mail->is_silent;
    if (mail->state != FK_MAIL_DEAD || !is_told) {
        fk__world_fail("A1", "send of #%u was refused without a dead letter", (unsigned)number);
    }
}

void fk__mail_sent(uint32_t number, uint32_t hops, fk_err err)
{
    fk_mail *mail = fk__mail_at(number);
    fk__ledger_note(FK_FACT_SENT, mail->from, mail->to, number, (uint32_t)err);
    if (mail->hops != hops) { /* the receiver was quick and has sent it on */
        if (err != FK_OK) fk__world_fail("A1", "#%u refused and delivered", (unsigned)number);
        return;
    }
    if (err != FK_OK) check_refusal(mail, number, err);
    mail->returned = true;
    if (mail->state != FK_MAIL_SENT) return;
    if (mail->to == FK_NOBODY) {
        fk__world_fail("A1", "#%u to nobody is not a dead letter", (unsigned)number);
    }
    fk__person_mail_in(mail->to);
}

/* It is in the mailbox no longer. */
static void leave_mailbox(fk_mail *mail)
{
    if (mail->to == FK_NOBODY) return;
    l->person[mail->to].urgent[mail->priority]--;
    if (mail->returned) fk__person_mail_out(mail->to);
}

/* ---- the ends ---------------------------------------------------------------------------- */

/* Which send of a payload this is: the one to that receiver that has not ended. */
static uint32_t find(uint32_t number, uint32_t to, const fk_ref *to_ref)
{
    fk_mail *mail = fk__mail_at(number);
    if (mail->shares == 1) return number;
    for (uint32_t i = number; i < number + mail->shares; i++) {
        mail = fk__mail_at(i);
        bool is_it = to_ref != NULL ? fk_ref_equal(mail->to_ref, *to_ref) : mail->to == to;
        if (is_it && mail->state != FK_MAIL_DONE && mail->state != FK_MAIL_DEAD) return i;
    }
    fk__world_fail("A4", "payload #%u at somebody it was not sent to", (unsigned)number);
}

static void check_order(const fk_mail *mail, uint32_t number)
{
    pair *p = pair_of(mail);
    const fk_person *to = &l->person[mail->to];
    if (to->mailbox == FK_MAILBOX_PRIORITY) {
        p->handled = mail->seq > p->handled ? mail->seq : p->handled;
    } else if (mail->seq <= p->handled) {
        fk__world_fail("A2", "#%u of a%d overtaken: %u after %u", (unsigned)number,
                       mail->from == FK_NOBODY ? -1 : (int)mail->from, (unsigned)mail->seq,
                       (unsigned)p->handled);
    }
    p->handled = mail->seq;
    if (to->mailbox < FK_MAILBOX_PRIORITY) return;
    for (uint32_t i = 0; i < mail->priority; i++) {
        if (to->mailbox == FK_MAILBOX_CONTROL && mail->priority != 0 && i > 0) break;
        if (to->urgent[i] == 0) continue;
        FK_SOMETIMES_HIT(OVERTAKEN);
        /* With one worker and nobody outside, every send before this moment is complete. What was
         * sent after poison does not count: it comes too late, however urgent. */
        if (fk__world_swarm()->is_solo && !l->may_lack_memory && !to->is_poisoned) {
            fk__world_fail("A2", "#%u handled before a more urgent one", (unsigned)number);
        }
    }
}

static void check_sender(const fk_mail *mail, uint32_t number, fk_ref sender)
{
    fk_ref expected = mail->origin == FK_NOBODY ? FK_REF_NONE : l->person[mail->origin].ref;
    if (fk_ref_equal(sender, expected)) return;
    fk__world_fail("A4", "#%u has the wrong sender", (unsigned)number);
}

uint32_t fk__mail_receive(uint32_t actor, uint32_t carried, fk_ref sender)
{
    uint32_t number = find(carried, actor, NULL);
    fk_mail *mail = fk__mail_at(number);
    fk__ledger_note(FK_FACT_RECEIVE, actor, mail->from, number, mail->kind);
    if (mail->to != actor) {
        fk__world_fail("A4", "#%u for a%u reached a%u", (unsigned)number, (unsigned)mail->to,
                       (unsigned)actor);
    }
    check_sender(mail, number, sender);
    if (fk__person_take_front(actor, number)) {
        if (mail->state != FK_MAIL_ASIDE) {
            fk__world_fail("A1", "#%u was not in the stash", (unsigned)number);
        }
    } else {
        if (mail->state != FK_MAIL_SENT) {
            fk__world_fail("A1", "#%u received twice", (unsigned)number);
        }
        leave_mailbox(mail);
        check_order(mail, number);
    }
    if (mail->drops != 0) fk__world_fail("A1", "#%u received after its drop", (unsigned)number);
    mail->state = FK_MAIL_HELD;
    l->person[actor].held = number;
    return number;
}

/* Whether this reason can be true. */
static bool is_plausible(const fk_mail *mail, fk_reason reason)
{
    const fk_person *to = mail->to == FK_NOBODY ? NULL : &l->person[mail->to];
    bool is_bounded = to != NULL && to->mailbox == FK_MAILBOX_BOUNDED;
    switch (reason) {
    case FK_REASON_NO_RECEIVER: return to == NULL || (mail->is_selected && to->is_gone);
    case FK_REASON_STOPPED:
        return to != NULL && (to->is_gone || (mail->state == FK_MAIL_ASIDE && to->is_stopping) ||
                              (is_bounded && to->is_poisoned));
    case FK_REASON_FULL:
        return is_bounded && (to->overflow == FK_OVERFLOW_FAIL ||
                              (to->overflow == FK_OVERFLOW_BLOCK && mail->is_inside));
    case FK_REASON_DROPPED_NEWEST: return is_bounded && to->overflow == FK_OVERFLOW_DROP_NEWEST;
    case FK_REASON_DROPPED_OLDEST: return is_bounded && to->overflow == FK_OVERFLOW_DROP_OLDEST;
    case FK_REASON_UNHANDLED: return to != NULL && to->is_busy && mail->state == FK_MAIL_HELD;
    case FK_REASON_NO_MEMORY: return l->may_lack_memory;
    case FK_REASON_SYSTEM_STOPPING: return l->is_ending;
    case FK_REASON_BAD_TYPE:
    default: return false;
    }
}

static void check_room(const fk_mail *mail, uint32_t number)
{
    const fk_person *to = &l->person[mail->to];
    /* Poison, kill and notices take a place, too. */
    if (!fk__world_swarm()->is_solo || l->is_supervised || to->pending >= to->capacity) return;
    fk__world_fail("A13", "#%u refused with %u of %u in the mailbox", (unsigned)number,
                   (unsigned)to->pending, (unsigned)to->capacity);
}

void fk__mail_dead(uint32_t carried, const fk_dead_letter *letter)
{
    uint32_t number = find(carried, FK_NOBODY, &letter->to);
    fk_mail *mail = fk__mail_at(number);
    l->letters[letter->reason]++;
    fk__ledger_note(FK_FACT_DEAD, mail->to, mail->from, number, (uint32_t)letter->reason);
    bool is_path = mail->is_selected && letter->path.len != 0;
    if (!is_path && !fk_ref_equal(mail->to_ref, letter->to)) {
        fk__world_fail("A4", "dead letter #%u names another receiver", (unsigned)number);
    }
    check_sender(mail, number, letter->sender);
    if (!is_plausible(mail, letter->reason)) {
        fk__world_fail("A1", "dead letter #%u: it cannot be \"%s\"", (unsigned)number,
                       fk_reason_name(letter->reason));
    }
    if (mail->drops != 0) fk__world_fail("A1", "#%u dead after its drop", (unsigned)number);
    if (letter->reason == FK_REASON_UNHANDLED) return; /* it is being handled all the same */
    if (mail->state != FK_MAIL_SENT && mail->state != FK_MAIL_ASIDE) {
        fk__world_fail("A1", "#%u is a dead letter and was handled or dead before",
                       (unsigned)number);
    }
    bool was_full = letter->reason == FK_REASON_FULL || letter->reason == FK_REASON_DROPPED_NEWEST;
    if (was_full) check_room(mail, number);
    if (mail->state == FK_MAIL_SENT)
        leave_mailbox(mail);
    else
        FK_SOMETIMES_HIT(STASH_DIED);
    mail->state = FK_MAIL_DEAD;
    mail->reason = (uint8_t)letter->reason;
}

void fk__mail_drop(uint32_t number)
{
    fk_mail *mail = fk__mail_at(number);
    fk__ledger_note(FK_FACT_DROP, mail->to, FK_NOBODY, number, 0);
    if (mail->drops++ != 0) fk__world_fail("A1", "#%u dropped twice", (unsigned)number);
    if (mail->is_silent && mail->state == FK_MAIL_SENT && !mail->returned) {
        leave_mailbox(mail);
        mail->state = FK_MAIL_DEAD;
        l->silent++;
        return;
    }
    for (uint32_t i = number; i < number + mail->shares; i++) {
        uint8_t state = fk__mail_at(i)->state;
        if (state == FK_MAIL_DONE || state == FK_MAIL_DEAD) continue;
        fk__world_fail("A1", "#%u dropped before #%u had ended", (unsigned)number, (unsigned)i);
    }
}

void fk__mail_check_rest(void)
{
    uint32_t held = 0;
    for (uint32_t i = 1; i < l->mail_count && l->pending != held; i++) {
        const fk_mail *mail = &l->mail[i];
        if (mail->state != FK_MAIL_SENT || !mail->returned) continue;
        if (l->person[mail->to].is_held) {
            held++;
            continue;
        }
        fk__world_fail("A5", "everybody sleeps, #%u to a%u waits", (unsigned)i, (unsigned)mail->to);
    }
    if (l->pending != held) fk__world_fail("ledger", "miscounted: %u", (unsigned)l->pending);
}

void fk__mail_check_ended(void)
{
    for (uint32_t i = 1; i < l->mail_count; i++) {
        const fk_mail *mail = &l->mail[i];
        if (mail->state != FK_MAIL_DONE && mail->state != FK_MAIL_DEAD) {
            fk__world_fail("A1", "#%u to a%u was lost", (unsigned)i, (unsigned)mail->to);
        }
        bool owns = mail->is_owned && mail->first == i;
        if (owns && mail->drops != 1) fk__world_fail("A14", "#%u was never dropped", (unsigned)i);
    }
}

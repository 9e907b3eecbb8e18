/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A3, A4, A7, A12, A13, A15: the life of every actor. */

#include "core/dispatch.h"
#include "sim/ledger.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;

static fk_person *person_at(uint32_t actor)
{
    if (actor >= l->person_count) fk__world_fail("A4", "an actor that was never spawned");
    return &l->person[actor];
}

/* ---- birth ------------------------------------------------------------------------------- */

uint32_t fk__person_spawn(const fk_person *person)
{
    uint32_t actor = l->person_count;
    if (actor >= FK_ACTORS_MAX) fk__world_fail("ledger", "too many actors");
    l->person[actor % FK_ACTORS_MAX] = *person;
    l->person_count++;
    if (person->parent != FK_NOBODY) l->person[person->parent].children++;
    fk__ledger_note(FK_FACT_SPAWN, actor, person->parent, person->name, person->mailbox);
    return actor;
}

static bool has_namesake(uint32_t actor, bool must_live)
{
    const fk_person *p = &l->person[actor];
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *other = &l->person[i];
        if (i == actor || other->is_refused) continue;
        if (other->parent != p->parent || other->name != p->name) continue;
        if (!must_live || (other->is_spawned && !other->is_gone)) return true;
    }
    return false;
}

static void check_refusal(uint32_t actor, fk_err err)
{
    const fk_person *p = &l->person[actor];
    bool ok = false;
    switch (err) {
    case FK_E_NAME_TAKEN: ok = p->name != 0 && has_namesake(actor, false); break;
    case FK_E_STOPPING:
        ok = l->is_stopping || (p->parent != FK_NOBODY && (l->person[p->parent].is_stopping ||
                                                           l->person[p->parent].is_parting));
        break;
    case FK_E_NOMEM: ok = l->may_lack_memory; break;
    case FK_E_LIMIT: ok = l->may_lack_memory || fk__world_swarm()->actors_max != 0; break;
    case FK_E_OS: ok = p->is_pinned; break;
    default: break;
    }
    if (!ok) fk__world_fail("A7", "spawn of a%u gave %s", (unsigned)actor, fk_err_name(err));
    if (p->has_ref) fk__world_fail("A7", "a%u runs, but its spawn failed", (unsigned)actor);
}

static void learn_ref(fk_person *p, uint32_t actor, fk_ref ref)
{
    if (p->has_ref && !fk_ref_equal(p->ref, ref)) {
        fk__world_fail("A4", "a%u is not who it was", (unsigned)actor);
    }
    if (p->is_refused) fk__world_fail("A7", "a%u runs, but its spawn failed", (unsigned)actor);
    if (!p->has_ref && ref.generation > 1) FK_SOMETIMES_HIT(SLOT_REUSED);
    p->ref = ref;
    p->has_ref = true;
}

void fk__person_spawned(uint32_t actor, fk_err err, fk_ref ref)
{
    fk_person *p = person_at(actor);
    fk__ledger_note(FK_FACT_SPAWNED, actor, p->parent, err == FK_OK ? ref.slot : 0, (uint32_t)err);
    if (err != FK_OK) {
        check_refusal(actor, err);
        p->is_refused = true;
        if (p->parent != FK_NOBODY) l->person[p->parent].children--;
        return;
    }
    learn_ref(p, actor, ref);
    l->spawned++;
    p->is_spawned = true;
    if (p->is_gone) return;
    if (++l->alive > l->alive_max) l->alive_max = l->alive;
    uint32_t max = fk__world_swarm()->actors_max;
    if (max != 0 && l->alive > max) {
        fk__world_fail("A13", "%u actors, the limit is %u", (unsigned)l->alive, (unsigned)max);
    }
    if (p->name == 0) return;
    if (has_namesake(actor, true)) fk__world_fail("A7", "two actors of one name");
    if (has_namesake(actor, false)) FK_SOMETIMES_HIT(NAME_REUSED);
}

/* ---- one thing at a time ----------------------------------------------------------------- */

void fk__person_enter(uint32_t actor, fk_ref self, const char *what)
{
    fk_person *p = person_at(actor);
    learn_ref(p, actor, self);
    if (p->is_busy) fk__world_fail("A3", "a%u: %s inside another call", (unsigned)actor, what);
    if (p->is_stopping) fk__world_fail("A3", "a%u: %s after its stop", (unsigned)actor, what);
    p->is_busy = true;
}

void fk__person_begin_start(uint32_t actor, fk_ref self)
{
    fk_person *p = person_at(actor);
    fk__person_enter(actor, self, "start hook");
    fk__ledger_note(FK_FACT_START, actor, FK_NOBODY, 0, 0);
    if (p->is_started) fk__world_fail("A15", "a%u started twice", (unsigned)actor);
    if (p->received != 0) fk__world_fail("A15", "a%u started late", (unsigned)actor);
}

void fk__person_end_start(uint32_t actor, fk_err err)
{
    fk_person *p = &l->person[actor];
    fk__ledger_note(FK_FACT_STARTED, actor, FK_NOBODY, 0, (uint32_t)err);
    p->is_started = true;
    p->is_busy = false;
    if (err == FK_OK || l->is_supervised) return;
    p->is_stillborn = true;
    p->is_leaving = true;
}

/* A12. A budget is shared by those who wake each other, so one place in the queue is one budget;
 * two more for the one that is running and the one that was displaced from the next slot. Timers
 * and starts make actors ready, too, so every living one counts; and a cancelled timer's node or an
 * early timeout takes a place in a turn that nobody sees. */
static void check_fairness(const fk_person *p, uint32_t actor)
{
    const fk_swarm *s = fk__world_swarm();
    uint64_t waited = l->received - p->waiting_since;
    if (waited > l->wait_longest) l->wait_longest = waited;
    if (!s->is_solo || s->shuffles || l->is_supervised) return;
    /* More than a ring of them, and no memory for the rest: out of order, but not lost. */
    if (l->alive_max > FK_RING && l->may_lack_memory) return;
    FK_SOMETIMES_HIT(FAIRNESS);
    uint64_t bound = (uint64_t)(l->alive_max + 2) * s->throughput;
    if (s->weight[FK_ACT_TIMER_START] + s->weight[FK_ACT_RECEIVE_TIMEOUT] != 0) bound *= 4;
    if (waited <= bound) return;
    fk__world_fail("A12", "a%u waited for %llu messages, at most %llu are fair", (unsigned)actor,
                   (unsigned long long)waited, (unsigned long long)bound);
}

void fk__person_begin_receive(uint32_t actor, fk_ref self, uint32_t behaviour)
{
    fk_person *p = person_at(actor);
    fk__person_enter(actor, self, "message");
    if (p->has_start && !p->is_started) {
        fk__world_fail("A15", "a%u: a message before its start", (unsigned)actor);
    }
    if (p->is_leaving) fk__world_fail("A3", "a%u: a message after its end", (unsigned)actor);
    /* Whoever was between looking for signals and the message may go on with this one. */
    if (p->is_told && ++p->after_told > 1) {
        fk__world_fail("A3", "a%u: messages after it was stopped", (unsigned)actor);
    }
    if ((p->behaviours & 1) != behaviour) {
        fk__world_fail("A3", "a%u: the wrong behaviour", (unsigned)actor);
    }
    if (p->is_waiting) {
        check_fairness(p, actor);
        p->waiting_since = l->received + 1;
    }
    p->received++;
    p->is_receiving = true;
    l->received++;
    p->held = 0;
    p->held_again = false;
    p->is_timeout = false;
}

void fk__person_end_receive(uint32_t actor, fk_err err)
{
    fk_person *p = &l->person[actor];
    uint32_t held = p->held;
    fk__ledger_note(FK_FACT_HANDLED, actor, FK_NOBODY, held & ~FK_ASIDE_ALARM, (uint32_t)err);
    if ((held & FK_ASIDE_ALARM) != 0) {
        if (!p->held_again) fk__alarm_handled(held & ~FK_ASIDE_ALARM);
    } else if (held != 0 && l->mail[held].state == FK_MAIL_HELD) {
        l->mail[held].state = FK_MAIL_DONE;
    }
    p->held = 0;
    if (!p->is_timeout) p->timeout_last = fk__world_now();
    p->is_busy = p->is_receiving = false;
    if (err != FK_OK && !l->is_supervised) p->is_leaving = true;
}

void fk__person_become(uint32_t actor, uint32_t behaviour)
{
    fk_person *p = &l->person[actor];
    p->behaviours = p->behaviours << 1 | behaviour;
    p->behaviour_count++;
    fk__ledger_note(FK_FACT_BECOME, actor, FK_NOBODY, p->behaviour_count, behaviour);
}

void fk__person_unbecome(uint32_t actor, fk_err err)
{
    fk_person *p = &l->person[actor];
    if ((err == FK_OK) != (p->behaviour_count != 0)) {
        fk__world_fail("A3", "a%u: unbecome gave %s", (unsigned)actor, fk_err_name(err));
    }
    if (err != FK_OK) return;
    FK_SOMETIMES_HIT(UNBECOME);
    p->behaviours >>= 1;
    p->behaviour_count--;
    fk__ledger_note(FK_FACT_BECOME, actor, FK_NOBODY, p->behaviour_count, p->behaviours & 1);
}

/* ---- the mailbox ------------------------------------------------------------------------- */

void fk__person_mail_in(uint32_t actor)
{
    fk_person *p = &l->person[actor];
    p->pending++;
    l->pending++;
    /* One message may be on its way from the mailbox to the receive, and with each sender one that
     * it pushed out and has not reported yet. */
    uint32_t between = fk__world_swarm()->is_solo ? 0 : 1;
    if (between != 0 && p->overflow == FK_OVERFLOW_DROP_OLDEST) between = FK_MACHINE_THREADS_MAX;
    bool is_over = p->mailbox == FK_MAILBOX_BOUNDED && p->pending > p->capacity + between;
    if (is_over && !p->is_gone) { /* the dead have a queue, not a mailbox */
        fk__world_fail("A13", "a%u: %u messages in a mailbox for %u", (unsigned)actor,
                       (unsigned)p->pending, (unsigned)p->capacity);
    }
    if (p->is_waiting) return;
    p->is_waiting = true;
    p->waiting_since = l->received;
}

void fk__person_mail_out(uint32_t actor)
{
    fk_person *p = &l->person[actor];
    l->pending--;
    if (--p->pending != 0 || !p->is_waiting) return;
    p->is_waiting = false;
}

/* ---- the stash --------------------------------------------------------------------------- */

void fk__person_stash(uint32_t actor, fk_err err)
{
    fk_person *p = &l->person[actor];
    uint32_t number = p->held & ~FK_ASIDE_ALARM;
    bool is_alarm = (p->held & FK_ASIDE_ALARM) != 0;
    fk__ledger_note(FK_FACT_STASH, actor, FK_NOBODY, number, (uint32_t)err);
    bool is_full = p->stash.count >= p->stash_max;
    /* What a periodic timer owns cannot be in two places. */
    bool owns = is_alarm && l->alarm[number].is_owned && l->alarm[number].mode != FK_TIMER_ONCE;
    bool lacks = (err == FK_E_NOMEM || err == FK_E_LIMIT) && l->may_lack_memory;
    bool ok = is_full ? err != FK_OK : err == FK_OK || lacks || (owns && err == FK_E_STATE);
    if (!ok) {
        fk__world_fail("A13", "a%u: stash with %u of %u gave %s", (unsigned)actor,
                       (unsigned)p->stash.count, (unsigned)p->stash_max, fk_err_name(err));
    }
    if (is_full) FK_SOMETIMES_HIT(STASH_FULL);
    if (err != FK_OK) return;
    if (p->stash.count == FK_ASIDE_MAX) fk__world_fail("ledger", "too much in a stash");
    p->stash.at[p->stash.count++] = p->held;
    if (is_alarm) {
        l->alarm[number].aside++;
        FK_SOMETIMES_HIT(STASHED_TIMER);
    } else {
        l->mail[number].state = FK_MAIL_ASIDE;
        FK_SOMETIMES_HIT(STASHED);
    }
}

static void stash_to_front(fk_person *p)
{
    uint32_t moved = p->stash.count;
    if (moved + p->front.count > FK_ASIDE_MAX) fk__world_fail("ledger", "too much in front");
    for (uint32_t i = p->front.count; i > 0; i--) p->front.at[i - 1 + moved] = p->front.at[i - 1];
    for (uint32_t i = 0; i < moved; i++) p->front.at[i] = p->stash.at[i];
    p->front.count += moved;
    p->stash.count = 0;
}

void fk__person_unstash(uint32_t actor, fk_err err)
{
    fk_person *p = &l->person[actor];
    fk__ledger_note(FK_FACT_UNSTASH, actor, FK_NOBODY, p->stash.count, (uint32_t)err);
    if (err != FK_OK) {
        if (l->may_lack_memory) return;
        fk__world_fail("A13", "a%u: unstash gave %s", (unsigned)actor, fk_err_name(err));
    }
    if (p->stash.count == 0) return;
    FK_SOMETIMES_HIT(UNSTASHED);
    stash_to_front(p);
}

void fk__person_renew(uint32_t actor, bool is_restored)
{
    fk_person *p = &l->person[actor];
    p->behaviours = p->behaviour_count = 0;
    p->is_started = false;
    p->received = 0;
    fk__alarm_stop_timers(actor);
    if (is_restored) stash_to_front(p);
}

bool fk__person_take_front(uint32_t actor, uint32_t code)
{
    fk_person *p = &l->person[actor];
    p->held_again = p->front.count != 0;
    if (!p->held_again) return false;
    if (p->front.at[0] != code) {
        fk__world_fail("A2", "a%u: #%u before the unstashed #%u", (unsigned)actor,
                       (unsigned)(code & ~FK_ASIDE_ALARM),
                       (unsigned)(p->front.at[0] & ~FK_ASIDE_ALARM));
    }
    p->front.count--;
    for (uint32_t i = 0; i < p->front.count; i++) p->front.at[i] = p->front.at[i + 1];
    return true;
}

/* ---- the end ----------------------------------------------------------------------------- */

void fk__person_ask_stop(uint32_t actor, uint32_t by)
{
    fk_person *p = person_at(actor);
    fk__ledger_note(FK_FACT_ASK_STOP, actor, by, 0, 0);
    p->is_asked = true;
}

void fk__person_asked_stop(uint32_t actor, fk_err err)
{
    fk_person *p = person_at(actor);
    fk__ledger_note(FK_FACT_ASKED_STOP, actor, FK_NOBODY, 0, (uint32_t)err);
    if (err == FK_E_DEAD && p->is_gone) {
        FK_SOMETIMES_HIT(STOP_STALE);
        return;
    }
    if (err != FK_OK) {
        fk__world_fail("A4", "stop of a%u gave %s", (unsigned)actor, fk_err_name(err));
    }
    FK_SOMETIMES_HIT(STOP_OTHER);
    if (!p->is_told) p->after_told = 0;
    p->is_told = true;
    if (p->is_busy && (p->is_receiving || !l->is_supervised)) p->is_leaving = true;
}

void fk__person_poison(uint32_t actor)
{
    person_at(actor)->is_poisoned = true;
    fk__ledger_note(FK_FACT_POISON, actor, FK_NOBODY, 0, 0);
}

void fk__person_failed(fk_ref ref)
{
    fk_person *p = NULL;
    for (uint32_t i = 0; i < l->person_count && p == NULL; i++) {
        if (l->person[i].has_ref && fk_ref_equal(l->person[i].ref, ref)) p = &l->person[i];
    }
    if (p == NULL || !p->is_leaving) fk__world_fail("A15", "a failure of nobody");
    l->failures++;
    fk__ledger_note(FK_FACT_FAILURE, (uint32_t)(p - l->person), FK_NOBODY, 0, 0);
}

bool fk__person_has_cause(const fk_person *p)
{
    if (l->is_stopping || p->is_asked || p->is_poisoned || p->is_leaving) return true;
    return p->parent != FK_NOBODY && fk__person_has_cause(&l->person[p->parent]);
}

void fk__person_begin_stop(uint32_t actor, fk_ref self)
{
    fk_person *p = person_at(actor);
    fk__person_enter(actor, self, "stop hook");
    fk__ledger_note(FK_FACT_STOP, actor, FK_NOBODY, 0, 0);
    if (p->has_start && !p->is_started) {
        fk__world_fail("A15", "a%u: stop hook without start hook", (unsigned)actor);
    }
    if (!fk__person_has_cause(p)) fk__world_fail("A4", "a%u: nobody stopped it", (unsigned)actor);
    if (p->children != 0) {
        fk__world_fail("A7", "a%u ends before %u children", (unsigned)actor, (unsigned)p->children);
    }
    p->is_stopping = true;
    if (!l->is_stopping) l->is_disturbed = true;
    fk__alarm_stop_all(actor);
}

void fk__person_end_stop(uint32_t actor)
{
    fk__ledger_note(FK_FACT_STOPPED, actor, FK_NOBODY, 0, 0);
    l->person[actor].is_busy = false;
    fk__person_end(actor);
}

void fk__person_end(uint32_t actor)
{
    fk_person *p = &l->person[actor];
    p->is_gone = true;
    if (p->is_spawned) l->alive--;
    if (p->parent != FK_NOBODY) l->person[p->parent].children--;
}

/* Whose start failed has no stop hook. */
void fk__person_stopped(fk_ref ref)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        if (!p->is_stillborn || !fk_ref_equal(p->ref, ref)) continue;
        fk__person_begin_stop(i, ref);
        fk__person_end_stop(i);
    }
}

void fk__person_check_ended(void)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        bool is_made = p->is_spawned || p->has_ref; /* or its spawn is still under way */
        if (is_made && !p->is_gone) {
            fk__world_fail("A14", "a%u never ended", (unsigned)i);
        }
    }
}

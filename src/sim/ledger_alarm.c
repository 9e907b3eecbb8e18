/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A11: the life of every timer, and the receive timeouts. */

#include "base/base.h"
#include "base/wheel.h"
#include "sim/ledger.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;

static fk_alarm *alarm_at(uint32_t number)
{
    if (number == 0 || number >= l->alarm_count) {
        fk__world_fail("A11", "a timer that was never started");
    }
    return &l->alarm[number];
}

uint32_t fk__alarm_start(const fk_alarm *alarm)
{
    uint32_t number = l->alarm_count;
    if (number >= FK_TIMERS_MAX) fk__world_fail("ledger", "too many timers");
    fk_alarm *entry = &l->alarm[number % FK_TIMERS_MAX];
    *entry = *alarm;
    entry->due = fk__world_now() + alarm->period;
    l->alarm_count++;
    fk__ledger_note(FK_FACT_TIMER_START, alarm->actor, FK_NOBODY, number, alarm->mode);
    return number;
}

/* The kernel drops what a timer owns when it ends it, so the ledger learns of the end first. */
static void end(uint32_t number)
{
    fk_alarm *alarm = &l->alarm[number];
    uint32_t *active = &l->person[alarm->actor].alarm[alarm->key];
    alarm->state = FK_ALARM_ENDED;
    if (*active == number) *active = 0;
}

void fk__alarm_started(uint32_t number, fk_err err)
{
    fk_alarm *alarm = alarm_at(number);
    fk__ledger_note(FK_FACT_TIMER_STARTED, alarm->actor, FK_NOBODY, number, (uint32_t)err);
    uint32_t *active = &l->person[alarm->actor].alarm[alarm->key];
    if (err != FK_OK) {
        bool lacks = (err == FK_E_NOMEM || err == FK_E_LIMIT) && l->may_lack_memory;
        if (!lacks) fk__world_fail("A11", "timer start gave %s", fk_err_name(err));
        FK_SOMETIMES_HIT(TIMER_NO_MEMORY);
        alarm->state = FK_ALARM_ENDED;
        return;
    }
    if (*active != 0) {
        end(*active);
        FK_SOMETIMES_HIT(TIMER_RESTARTED);
    }
    alarm->state = FK_ALARM_ACTIVE;
    alarm->slack = fk__world_now() - (alarm->due - alarm->period);
    *active = number;
}

void fk__alarm_cancelled(uint32_t actor, uint32_t key, fk_err err)
{
    uint32_t number = l->person[actor].alarm[key];
    fk__ledger_note(FK_FACT_TIMER_CANCEL, actor, FK_NOBODY, number, (uint32_t)err);
    if ((err == FK_OK) != (number != 0)) {
        fk__world_fail("A11", "a%u: cancel of key %u gave %s", (unsigned)actor, (unsigned)key,
                       fk_err_name(err));
    }
    if (number == 0) return;
    FK_SOMETIMES_HIT(TIMER_CANCELLED);
    end(number);
}

void fk__alarm_fire(uint32_t actor, uint32_t number)
{
    fk_alarm *alarm = alarm_at(number);
    fk_time now = fk__world_now();
    fk__ledger_note(FK_FACT_TIMER_FIRE, actor, FK_NOBODY, number, alarm->fires);
    if (alarm->actor != actor) fk__world_fail("A4", "a%u: another's timer", (unsigned)actor);
    if (alarm->drops != 0) fk__world_fail("A11", "timer #%u after its drop", (unsigned)number);
    l->person[actor].held = number | FK_ASIDE_ALARM;
    if (fk__person_take_front(actor, number | FK_ASIDE_ALARM)) {
        alarm->aside--;
        return;
    }
    if (alarm->state != FK_ALARM_ACTIVE) {
        fk__world_fail("A11", "timer #%u fired after its end", (unsigned)number);
    }
    if (now < alarm->due) {
        fk__world_fail("A11", "timer #%u fired %lld ns early", (unsigned)number,
                       (long long)(alarm->due - now));
    }
    if (alarm->mode == FK_TIMER_FIXED_RATE && now - alarm->due > alarm->period) {
        FK_SOMETIMES_HIT(TIMER_MISSED);
    }
    alarm->fires++;
    if (alarm->mode == FK_TIMER_ONCE) {
        FK_SOMETIMES_HIT(TIMER_ONCE);
        end(number); /* from here on a message like any other */
    }
    if (alarm->mode == FK_TIMER_FIXED_DELAY) FK_SOMETIMES_HIT(TIMER_DELAY);
    if (alarm->mode == FK_TIMER_FIXED_RATE) FK_SOMETIMES_HIT(TIMER_RATE);
}

/* The earliest moment of the next period: after now, and for a rate on the grid. */
void fk__alarm_handled(uint32_t number)
{
    fk_alarm *alarm = alarm_at(number);
    fk_time now = fk__world_now();
    if (alarm->state != FK_ALARM_ACTIVE) return;
    if (alarm->mode == FK_TIMER_FIXED_DELAY) {
        alarm->due = now + alarm->period;
    } else {
        alarm->due += alarm->period;
        fk_time latest = alarm->due + alarm->slack;
        if (latest <= now) {
            alarm->due += (now - latest) / alarm->period * alarm->period + alarm->period;
        }
    }
}

void fk__alarm_drop(uint32_t number)
{
    fk_alarm *alarm = alarm_at(number);
    fk__ledger_note(FK_FACT_DROP, alarm->actor, FK_NOBODY, number, 1);
    if (alarm->drops++ != 0) fk__world_fail("A1", "timer #%u dropped twice", (unsigned)number);
    const fk_person *p = &l->person[alarm->actor];
    if (p->is_busy && p->held == (number | FK_ASIDE_ALARM)) {
        fk__world_fail("A1", "timer #%u dropped while it is being handled", (unsigned)number);
    }
}

void fk__alarm_dead(uint32_t number, const fk_dead_letter *letter)
{
    fk_alarm *alarm = alarm_at(number);
    l->letters[letter->reason]++;
    fk__ledger_note(FK_FACT_DEAD, alarm->actor, FK_NOBODY, number, (uint32_t)letter->reason);
    if (letter->reason == FK_REASON_UNHANDLED) return;
    if (alarm->aside == 0 || letter->reason != FK_REASON_STOPPED) {
        fk__world_fail("A11", "timer #%u is a dead letter", (unsigned)number);
    }
    alarm->aside--;
}

void fk__alarm_stop_timers(uint32_t actor)
{
    const fk_person *p = &l->person[actor];
    for (uint32_t key = 0; key < FK_TIMER_KEYS; key++) {
        if (p->alarm[key] == 0) continue;
        FK_SOMETIMES_HIT(TIMER_STOPPED);
        end(p->alarm[key]);
    }
}

void fk__alarm_stop_all(uint32_t actor)
{
    fk__alarm_stop_timers(actor);
    l->person[actor].timeout = 0;
}

void fk__alarm_timeout_set(uint32_t actor, fk_time timeout)
{
    fk_person *p = &l->person[actor];
    fk__ledger_note(FK_FACT_TIMEOUT_SET, actor, FK_NOBODY, 0, timeout != 0);
    p->timeout = timeout;
    p->timeout_last = fk__world_now();
}

void fk__alarm_timeout(uint32_t actor)
{
    fk_person *p = &l->person[actor];
    fk__ledger_note(FK_FACT_TIMEOUT, actor, FK_NOBODY, 0, 0);
    FK_SOMETIMES_HIT(RECEIVE_TIMEOUT);
    p->is_timeout = true;
    if (p->front.count != 0) fk__world_fail("A2", "a timeout before what was unstashed");
    if (p->timeout == 0) fk__world_fail("A11", "a%u: no receive timeout is set", (unsigned)actor);
    if (fk__world_now() - p->timeout_last < p->timeout) {
        fk__world_fail("A11", "a%u: receive timeout is early", (unsigned)actor);
    }
}

void fk__alarm_check_due(fk_time next)
{
    /* Rounded up to a tick and found by a look at the wheel that is perhaps one tick later; and a
     * worker sleeps for a time that it worked out a little before, while others' work took some. */
    const fk_time patience = (fk_time)16 << FK_TICK_SHIFT;
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        if (p->is_stopping || p->is_leaving || p->is_held) continue;
        for (uint32_t key = 0; key < FK_TIMER_KEYS; key++) {
            uint32_t number = p->alarm[key];
            if (number == 0) continue;
            const fk_alarm *alarm = &l->alarm[number];
            fk_time now = fk__world_now();
            fk_time latest = (alarm->due > now ? alarm->due : now) + patience;
            /* The kernel's clock was a little ahead of ours, perhaps in the next period. */
            if (alarm->mode == FK_TIMER_FIXED_RATE) latest += alarm->period;
            if (next <= latest) continue;
            fk__world_fail("A11", "timer #%u is due, and all sleep for %lld ns more",
                           (unsigned)number, (long long)(next - now));
        }
    }
}

void fk__alarm_check_ended(void)
{
    for (uint32_t i = 1; i < l->alarm_count; i++) {
        const fk_alarm *alarm = &l->alarm[i];
        if (alarm->state != FK_ALARM_ENDED)
            fk__world_fail("A14", "timer #%u lives on", (unsigned)i);
        if (alarm->aside != 0) fk__world_fail("A1", "timer #%u was lost in a stash", (unsigned)i);
        if (alarm->is_owned && alarm->drops != 1) {
            fk__world_fail("A14", "timer #%u was never dropped", (unsigned)i);
        }
    }
}

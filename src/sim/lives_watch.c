/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A6: every watch is answered once. */

#include "sim/lives.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

static fk_vow *vow_at(uint32_t number)
{
    if (number == 0 || number >= v->vow_count) fk__world_fail("A6", "a watch of nobody's");
    return &v->vow[number];
}

static uint32_t find_active(uint32_t watcher, fk_ref ref)
{
    for (uint32_t i = v->vow_count; i > 1; i--) {
        const fk_vow *vow = &v->vow[i - 1];
        bool is_it = vow->watcher == watcher && fk_ref_equal(vow->ref, ref);
        if (is_it && vow->state == FK_VOW_ACTIVE) return i - 1;
    }
    return 0;
}

uint32_t fk__vow_begin(uint32_t watcher, fk_ref ref, bool is_custom)
{
    uint32_t number = v->vow_count++;
    uint32_t target = fk__soul_find(ref);
    v->vow[number] = (fk_vow){ .watcher = (uint16_t)watcher,
                               .target = (uint16_t)target,
                               .ref = ref,
                               .is_custom = is_custom,
                               .was_dead = target != FK_NOBODY && l->person[target].is_gone,
                               .state = FK_VOW_VOID };
    fk__ledger_note(FK_FACT_WATCH, watcher, target, number, is_custom);
    return number;
}

void fk__vow_made(uint32_t number, fk_err err)
{
    fk_vow *vow = vow_at(number);
    uint32_t old = find_active(vow->watcher, vow->ref);
    bool is_self = fk_ref_equal(l->person[vow->watcher].ref, vow->ref);
    bool lacks = l->may_lack_memory && (err == FK_E_NOMEM || err == FK_E_LIMIT);
    fk__ledger_note(FK_FACT_WATCHED, vow->watcher, vow->target, number, (uint32_t)err);
    fk_err expected = FK_OK;
    bool is_plain = !vow->is_custom && (old == 0 || !v->vow[old].is_custom);
    if (old != 0 && !is_plain && err == FK_OK && l->person[vow->watcher].is_parting) {
        v->vow[old].state = FK_VOW_VOID; /* as in fk__vow_undone() */
        old = 0;
    }
    if (old != 0 && !is_plain && !is_self) expected = FK_E_STATE;
    if (err != expected && !lacks) fk__world_fail("A6", "watch gave %s", fk_err_name(err));
    if (err == FK_OK && old == 0 && !is_self) vow->state = FK_VOW_ACTIVE;
}

void fk__vow_undone(uint32_t watcher, fk_ref ref, fk_err err)
{
    uint32_t number = find_active(watcher, ref);
    fk__ledger_note(FK_FACT_UNWATCH, watcher, FK_NOBODY, number, (uint32_t)err);
    /* Who is stopping has been told, and will not see it. */
    bool is_over = number != 0 && l->person[watcher].is_parting && err == FK_E_NOT_FOUND;
    if (is_over) v->vow[number].state = FK_VOW_VOID;
    if (is_over) return;
    if (err != (number != 0 ? FK_OK : FK_E_NOT_FOUND)) {
        fk__world_fail("A6", "unwatch gave %s", fk_err_name(err));
    }
    if (number == 0) return;
    fk_vow *vow = &v->vow[number];
    bool is_late = vow->target != FK_NOBODY && l->person[vow->target].is_gone;
    if (is_late)
        FK_SOMETIMES_HIT(UNWATCHED_LATE);
    else
        FK_SOMETIMES_HIT(UNWATCHED);
    vow->state = FK_VOW_UNDONE;
}

/* All that it sent to the watcher has been handled, or died. */
static void check_order(const fk_vow *vow)
{
    for (uint32_t i = 1; i < l->mail_count; i++) {
        const fk_mail *mail = &l->mail[i];
        if (mail->from != vow->target || mail->to != vow->watcher) continue;
        if (mail->state != FK_MAIL_SENT || !mail->returned) continue;
        fk__world_fail("A6", "a%u is told of the end of a%u before #%u", (unsigned)vow->watcher,
                       (unsigned)vow->target, (unsigned)i);
    }
}

static void told(fk_vow *vow)
{
    vow->state = FK_VOW_TOLD;
    if (vow->target == FK_NOBODY) return;
    if (!l->person[vow->target].is_gone) {
        fk__world_fail("A6", "a%u is told that a%u has ended", (unsigned)vow->watcher,
                       (unsigned)vow->target);
    }
    check_order(vow);
}

void fk__vow_told(uint32_t watcher, const fk_terminated *terminated)
{
    uint32_t number = find_active(watcher, terminated->actor);
    fk__ledger_note(FK_FACT_TOLD, watcher, fk__soul_find(terminated->actor), number,
                    terminated->existence_confirmed);
    if (number == 0) fk__world_fail("A6", "a%u: told, but not watching", (unsigned)watcher);
    fk_vow *vow = &v->vow[number];
    if (vow->is_custom) fk__world_fail("A6", "a%u: told by another message", (unsigned)watcher);
    if (terminated->existence_confirmed && vow->was_dead) {
        fk__world_fail("A6", "a%u: the dead were confirmed", (unsigned)watcher);
    }
    if (terminated->address_terminated) fk__world_fail("A6", "an address has ended");
    if (terminated->existence_confirmed)
        FK_SOMETIMES_HIT(TOLD);
    else
        FK_SOMETIMES_HIT(TOLD_UNCONFIRMED);
    told(vow);
}

void fk__vow_told_by(uint32_t watcher, uint32_t number)
{
    fk_vow *vow = vow_at(number);
    fk__ledger_note(FK_FACT_TOLD, watcher, vow->target, number, 2);
    bool is_it = vow->watcher == watcher && vow->is_custom && vow->state == FK_VOW_ACTIVE;
    if (!is_it) fk__world_fail("A6", "a%u: told, but not watching", (unsigned)watcher);
    if (vow->drops != 0) fk__world_fail("A1", "told by a message that is gone");
    FK_SOMETIMES_HIT(TOLD_CUSTOM);
    told(vow);
}

void fk__vow_drop(uint32_t number)
{
    if (vow_at(number)->drops++ != 0)
        fk__world_fail("A1", "dropped twice: watch #%u", (unsigned)number);
}

void fk__vow_watcher_gone(uint32_t watcher)
{
    for (uint32_t i = 1; i < v->vow_count; i++) {
        fk_vow *vow = &v->vow[i];
        if (vow->watcher == watcher && vow->state == FK_VOW_ACTIVE) vow->state = FK_VOW_VOID;
    }
}

void fk__vow_check_rest(void)
{
    for (uint32_t i = 1; i < v->vow_count; i++) {
        const fk_vow *vow = &v->vow[i];
        if (vow->state != FK_VOW_ACTIVE || l->person[vow->watcher].is_held) continue;
        bool is_over =
            vow->target == FK_NOBODY ? (vow->ref.generation > 1) : l->person[vow->target].is_gone;
        if (is_over) {
            fk__world_fail("A6", "a%u is never told of the end of its watch #%u",
                           (unsigned)vow->watcher, (unsigned)i);
        }
    }
}

void fk__vow_check_ended(void)
{
    for (uint32_t i = 1; i < v->vow_count; i++) {
        const fk_vow *vow = &v->vow[i];
        if (vow->is_custom && vow->drops != 1) {
            fk__world_fail("A14", "the message of watch #%u was never dropped", (unsigned)i);
        }
    }
}

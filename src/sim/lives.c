/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What actors do and what is published of them, checked against what they did before. */

#include "sim/lives.h"

#include "base/base.h"
#include "core/extras.h"
#include "sim/kernel.h"
#include "sim/sometimes.h"
#include "sim/world.h"

fk_lives fk__lives;

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

void fk__lives_begin(void)
{
    memset(v, 0, offsetof(fk_lives, soul));
    v->vow_count = 1;
    l->is_supervised = true;
}

fk_soul *fk__soul_parent(uint32_t actor)
{
    return actor == FK_NOBODY ? &v->user : &v->soul[actor];
}

uint32_t fk__soul_find(fk_ref ref)
{
    for (uint32_t i = l->person_count; i > 0; i--) {
        const fk_person *p = &l->person[i - 1];
        if (p->has_ref && fk_ref_equal(p->ref, ref)) return i - 1;
    }
    return FK_NOBODY;
}

static bool is_child_of(uint32_t actor, uint32_t parent)
{
    const fk_person *p = &l->person[actor];
    return p->parent == parent && !v->soul[actor].is_extra && p->has_ref && !p->is_gone;
}

static uint32_t living_children(uint32_t parent)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->person_count; i++) count += is_child_of(i, parent);
    return count;
}

/* ---- starts and restarts --------------------------------------------------------------------- */

static bool is_top(uint32_t actor)
{
    return l->person[actor].parent == FK_NOBODY && !v->soul[actor].is_extra;
}

static void take_restart(uint32_t actor, const char *invariant)
{
    fk_soul *s = &v->soul[actor];
    if (s->may_restart != 0)
        s->may_restart--;
    else if (!is_top(actor) || !v->user.is_restarting_crowd)
        fk__world_fail(invariant, "a%u: nobody restarted it", (unsigned)actor);
}

/* The kernel puts what was stashed in front; without memory it stays where it is. */
static bool is_stash_empty(uint32_t actor)
{
    const fk_cell *cell = fk__cell_resolve(fk__kernel.sys, l->person[actor].ref);
    return cell == NULL || cell->extras == NULL || cell->extras->stash.count == 0;
}

void fk__soul_release(uint32_t actor)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (!v->soul[i].is_held) continue;
        uint32_t above = l->person[i].parent;
        while (above != FK_NOBODY && above != actor) above = l->person[above].parent;
        if (above == actor) v->soul[i].is_held = false;
    }
}

/* The first sign of a new life. What it waits for must have come true. */
static void renew(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    bool keeps = s->has_before && !s->is_unstarted;
    if (!s->is_granted) take_restart(actor, "A8");
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (!is_child_of(i, actor)) continue;
        if (!keeps || v->soul[i].is_awaited) {
            fk__world_fail("A8", "a%u restarts before its child a%u has ended", (unsigned)actor,
                           (unsigned)i);
        }
        v->soul[i].is_escalated = false;
    }
    fk__soul_release(actor);
    s->is_granted = s->is_parted = s->is_failed = s->must_restart = s->is_unstarted = false;
    s->is_escalated = false;
    s->is_renewed = true;
    s->handled = 0;
    fk__ledger_note(FK_FACT_RENEW, actor, FK_NOBODY, 0, 0);
    bool is_restored = is_stash_empty(actor);
    if (!is_restored && !l->may_lack_memory) {
        fk__world_fail("A8", "a%u: its stash was not put back", (unsigned)actor);
    }
    fk__person_renew(actor, is_restored);
}

static void check_nothing_open(uint32_t actor, const char *what)
{
    const fk_soul *s = &v->soul[actor];
    bool is_open = s->falling.err != FK_OK || s->is_deciding || s->escalating != 0;
    if (is_open) fk__world_fail("A15", "a%u: %s before it was published", (unsigned)actor, what);
}

void fk__soul_begin_start(uint32_t actor, fk_ref self, bool is_after)
{
    fk_soul *s = &v->soul[actor];
    bool is_again = s->is_parted || s->is_unstarted;
    bool was_alive = fk__soul_has_lived(s);
    check_nothing_open(actor, "a hook");
    if (is_again) renew(actor);
    if (is_after && !was_alive) {
        fk__world_fail("A8", "a%u: after_restart without a life before", (unsigned)actor);
    }
    if (!is_after && was_alive && s->has_after) {
        fk__world_fail("A8", "a%u: start instead of after_restart", (unsigned)actor);
    }
    fk__person_begin_start(actor, self);
}

void fk__soul_falls(uint32_t actor, fk_err err, uint32_t number, fk_failure_phase phase)
{
    v->soul[actor].falling = (fk_fall){ number, err, phase };
}

/* ---- messages ----------------------------------------------------------------------------------- */

void fk__soul_begin_receive(uint32_t actor, uint32_t handled)
{
    fk_soul *s = &v->soul[actor];
    check_nothing_open(actor, "a message");
    if (s->is_failed) {
        fk__world_fail("A3", "a%u: a message, and its failure is undecided", (unsigned)actor);
    }
    if (s->is_parted) fk__world_fail("A3", "a%u: a message between two lives", (unsigned)actor);
    if (s->is_unstarted) fk__world_fail("A3", "a%u: a message before its start", (unsigned)actor);
    if (s->is_renewed) fk__world_fail("A15", "a%u: its restart is not published", (unsigned)actor);
    if (s->handled != handled) {
        fk__world_fail("A8", "a%u: its state is of %u messages, not %u", (unsigned)actor,
                       (unsigned)handled, (unsigned)s->handled);
    }
    if (s->is_held && s->allowance-- == 0) {
        fk__world_fail("A3", "a%u: a message, and its parent has failed", (unsigned)actor);
    }
    s->handled++;
}

/* ---- the end of a life ---------------------------------------------------------------------------- */

void fk__soul_begin_parting(uint32_t actor, fk_ref self, bool is_before)
{
    fk_soul *s = &v->soul[actor];
    const fk_person *p = &l->person[actor];
    check_nothing_open(actor, "a hook");
    fk__person_enter(actor, self, is_before ? "restart hook" : "stop hook");
    fk__ledger_note(FK_FACT_STOP, actor, FK_NOBODY, 0, is_before);
    if (s->is_parted) fk__world_fail("A15", "a%u left its state twice", (unsigned)actor);
    if (s->is_unstarted || (p->has_start && !p->is_started)) {
        fk__world_fail("A15", "a%u: stop hook without start hook", (unsigned)actor);
    }
    /* Only at a restart are there children. */
    l->person[actor].is_parting = true;
    if (!is_before && living_children(actor) == 0) return;
    if (!is_before && s->has_before) {
        fk__world_fail("A7", "a%u ends before its children", (unsigned)actor);
    }
    take_restart(actor, is_before ? "A8" : "A7");
    s->is_granted = true;
}

void fk__soul_end_parting(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    l->person[actor].is_busy = l->person[actor].is_parting = false;
    s->is_parted = true;
    fk__alarm_stop_timers(actor);
    for (uint32_t i = 0; i < l->person_count; i++) { /* who survives begins anew as well */
        if (is_child_of(i, actor) && s->has_before) fk__soul_grant_restart(i, false);
    }
}

/* A restart takes the children along. */
static bool is_clearing(uint32_t parent)
{
    const fk_soul *s = &v->soul[parent];
    if (s->is_unstarted) return true;
    bool may = s->may_restart != 0 || (is_top(parent) && v->user.is_restarting_crowd);
    return !s->has_before && (s->is_parted || l->person[parent].is_parting || may);
}

static bool has_reason(uint32_t actor)
{
    while (actor != FK_NOBODY) {
        const fk_person *p = &l->person[actor];
        if (v->soul[actor].may_stop || fk__person_has_cause(p)) return true;
        if (is_top(actor) && v->user.is_stopping_crowd) return true;
        actor = p->parent;
        if (actor != FK_NOBODY && is_clearing(actor)) return true;
    }
    return false;
}

static void on_stopped(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    fk_person *p = &l->person[actor];
    fk__ledger_note(FK_FACT_STOPPED, actor, FK_NOBODY, 0, 0);
    if (p->is_gone) fk__world_fail("A15", "a%u stopped twice", (unsigned)actor);
    bool was_alive = !s->is_unstarted && (!p->has_start || p->is_started);
    if (was_alive && !s->is_parted) {
        fk__world_fail("A15", "a%u ended without its stop hook", (unsigned)actor);
    }
    if (living_children(actor) != 0) {
        fk__world_fail("A7", "a%u ends before its children", (unsigned)actor);
    }
    if (!has_reason(actor)) fk__world_fail("A8", "a%u: nobody stopped it", (unsigned)actor);
    p->is_stopping = true;
    fk__alarm_stop_all(actor);
    fk__person_end(actor);
    fk__vow_watcher_gone(actor);
}

/* ---- what is published -------------------------------------------------------------------------- */

static void on_started(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    const fk_person *p = &l->person[actor];
    bool is_late = s->is_announced || s->is_renewed || s->is_unstarted;
    if (is_late || (p->has_start && !p->is_started)) {
        fk__world_fail("A15", "a%u: said to have started", (unsigned)actor);
    }
    s->is_announced = true;
}

static void on_restarted(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    const fk_person *p = &l->person[actor];
    FK_SOMETIMES_HIT(RESTARTED);
    /* Without hooks nothing was seen of it. */
    bool has_hook = p->has_start || (s->has_after && s->is_parted);
    if (!has_hook && (s->is_parted || s->is_unstarted)) renew(actor);
    if (!s->is_renewed) fk__world_fail("A15", "a%u: said to be restarted", (unsigned)actor);
    s->is_renewed = false;
}

/* Who is said to have started before its reference is known is being made on this thread. */
static uint32_t find(const fk_event *event)
{
    uint32_t actor = fk__soul_find(event->actor);
    uint32_t self = fk__world_self();
    if (actor != FK_NOBODY || event->kind != FK_EVENT_STARTED || self >= 16) return actor;
    return v->spawning[self] != 0 ? v->spawning[self] - 1 : FK_NOBODY;
}

void fk__lives_event(const fk_event *event)
{
    if (event->kind == FK_EVENT_TERMINATION) {
        fk__end_phase(event);
        return;
    }
    if (event->kind < FK_EVENT_STARTED || event->kind > FK_EVENT_RESUMED) return;
    uint32_t actor = find(event);
    fk__ledger_note(FK_FACT_EVENT, actor, FK_NOBODY, (uint32_t)event->kind, event->directive);
    if (actor == FK_NOBODY) { /* a guardian: if it fails, all end */
        if (event->kind == FK_EVENT_FAILED) l->is_stopping = true;
        if (event->kind == FK_EVENT_FAILED) v->user.escalating = 0;
        if (event->kind == FK_EVENT_STOPPED && v->stranger_count < FK_STRANGERS_MAX) {
            v->stranger[v->stranger_count++] = event->actor;
        }
        return;
    }
    switch (event->kind) {
    case FK_EVENT_STARTED: on_started(actor); break;
    case FK_EVENT_STOPPED: on_stopped(actor); break;
    case FK_EVENT_FAILED: fk__soul_failed(event->failure); break;
    case FK_EVENT_SUPERVISED: fk__soul_supervised(event); break;
    case FK_EVENT_RESTARTED: on_restarted(actor); break;
    case FK_EVENT_RESUMED: fk__soul_resumed(actor); break;
    default: break;
    }
}

void fk__soul_spawned(uint32_t actor, fk_err err, fk_ref ref)
{
    fk__person_spawned(actor, err, ref);
    for (uint32_t i = 0; err == FK_OK && i < v->stranger_count; i++) {
        if (fk_ref_equal(v->stranger[i], ref)) on_stopped(actor);
    }
}

/* ---- at rest ---------------------------------------------------------------------------------------- */

/* Through a parent that is busy it has not come yet. */
static bool is_below_failure(uint32_t actor)
{
    while (actor != FK_NOBODY && !l->person[actor].is_busy) {
        if (v->soul[actor].is_failed) return true;
        actor = l->person[actor].parent;
    }
    return false;
}

/* Whoever is held now, and stays so, handles nothing at all. */
void fk__lives_mark_held(void)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        fk_person *p = &l->person[i];
        p->is_held = !p->is_gone && is_below_failure(i);
        if (!p->is_held || v->soul[i].is_failed) continue;
        FK_SOMETIMES_HIT(HELD_AT_REST);
        v->soul[i].is_held = true;
        v->soul[i].allowance = 0;
    }
}

void fk__lives_check_rest(void)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_soul *s = &v->soul[i];
        if (l->person[i].is_gone || !l->person[i].has_ref) continue;
        check_nothing_open(i, "everybody sleeps");
        if (s->is_failed) fk__world_fail("A8", "a%u failed, nobody decides", (unsigned)i);
        if (s->is_parted) fk__world_fail("A8", "a%u never begins anew", (unsigned)i);
        if (s->must_restart) fk__world_fail("A8", "a%u was not restarted", (unsigned)i);
        if (s->must_stop) fk__world_fail("A8", "a%u was not stopped", (unsigned)i);
    }
    fk__vow_check_rest();
}

void fk__lives_check_ended(void)
{
    fk__vow_check_ended();
    fk__end_check();
    if (v->published != l->failures) fk__world_fail("A15", "failures were told once, not twice");
}

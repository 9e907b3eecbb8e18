/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A8: failures, and what supervisors do about them. */

#include "base/base.h"
#include "sim/lives.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

uint32_t fk__fall_number(const char *detail)
{
    uint32_t number = 0;
    if (*detail++ != 'f') return 0;
    while (*detail >= '0' && *detail <= '9') number = number * 10 + (uint32_t)(*detail++ - '0');
    return number;
}

static bool is_same_fall(const fk_fall *a, const fk_fall *b)
{
    return a->number == b->number && a->err == b->err && a->phase == b->phase;
}

/* The oldest so many. */
static void falls_forget(fk_soul *s, uint32_t count)
{
    for (uint32_t i = count; i < s->undecided_count; i++) s->undecided[i - count] = s->undecided[i];
    s->undecided_count -= count;
}

/* ---- failing ------------------------------------------------------------------------------------ */

static void check_fall(uint32_t actor, const fk_fall *fall)
{
    fk_soul *s = &v->soul[actor];
    if (s->falling.err != FK_OK) {
        if (!is_same_fall(&s->falling, fall))
            fk__world_fail("A15", "a%u: not the failure it had", (unsigned)actor);
    } else if (fall->phase == FK_PHASE_CHILD) {
        bool is_it = s->escalating != 0 && (s->escalating == fall->number + 1);
        if (!is_it) fk__world_fail("A8", "a%u fails for no child", (unsigned)actor);
        s->escalating = 0;
    } else {
        if (fall->err != FK_E_KILLED || s->kills == 0) {
            fk__world_fail("A15", "a%u: a failure of nobody's", (unsigned)actor);
        }
        s->kills--;
        FK_SOMETIMES_HIT(KILLED);
    }
}

void fk__soul_failed(const fk_failure *failure)
{
    uint32_t actor = fk__soul_find(failure->actor);
    fk_soul *s = &v->soul[actor];
    fk_fall fall = { fk__fall_number(failure->detail), failure->err, failure->phase };
    v->published++;
    if (failure->phase == FK_PHASE_STOP) return;
    check_fall(actor, &fall);
    s->falling.err = FK_OK;
    if (s->is_failed) fk__world_fail("A3", "a%u fails while it is held", (unsigned)actor);
    s->is_failed = true;
    if (s->is_extra) l->is_stopping = true;                         /* the root's strategy */
    if (s->undecided_count == FK_UNDECIDED_MAX) falls_forget(s, 1); /* restarts covered them up */
    s->undecided[s->undecided_count++] = fall;
    if (fall.phase != FK_PHASE_START && fall.phase != FK_PHASE_RESTART) return;
    s->is_unstarted = true;
    s->is_renewed = false;
    FK_SOMETIMES_HIT(FAILED_START);
    /* An order on its way to it cannot let it go on; and its children must go. */
    if (s->may_resume) fk__soul_grant_restart(actor, false);
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (l->person[i].parent == actor) v->soul[i].may_stop = true;
    }
}

/* ---- deciding ------------------------------------------------------------------------------------- */

/* Takes the failure that is being decided, and all before it, which it has covered up. */
static void take_fall(uint32_t child, const fk_failure *failure)
{
    fk_soul *s = &v->soul[child];
    fk_fall seen = { fk__fall_number(failure->detail), failure->err, failure->phase };
    uint32_t at = 1; /* those without a number cannot be told apart: the oldest */
    if (s->undecided_count == 0) {
        fk__world_fail("A8", "a%u: decided twice, or never failed", (unsigned)child);
    }
    bool lacks = l->may_lack_memory && seen.number == 0; /* there was no room for the details */
    if (!lacks) {
        while (at <= s->undecided_count && !is_same_fall(&s->undecided[at - 1], &seen)) at++;
        if (at > s->undecided_count) fk__world_fail("A8", "a%u: decided twice", (unsigned)child);
    }
    falls_forget(s, at);
}

/* Children of the failed one were told before its parent was: they finish what they are at, and who
 * was between looking for signals and a message may go on with that. */
static void hold_children(uint32_t failed)
{
    const fk_soul *s = &v->soul[failed];
    if (!s->is_failed || s->undecided_count != 0) return; /* restarted since, with a sibling */
    for (uint32_t i = 0; i < l->person_count; i++) {
        fk_person *p = &l->person[i];
        if (p->parent != failed || !p->is_spawned || p->is_gone || v->soul[i].is_held) continue;
        FK_SOMETIMES_HIT(HELD_CHILD);
        v->soul[i].is_held = true;
        v->soul[i].allowance = p->is_receiving ? 0 : 1;
    }
}

void fk__soul_decides(uint32_t parent, uint32_t child, const fk_failure *failure)
{
    fk_soul *p = fk__soul_parent(parent);
    fk__ledger_note(FK_FACT_DECIDE, child, parent, fk__fall_number(failure->detail),
                    (uint32_t)failure->phase);
    if (child == FK_NOBODY || l->person[child].parent != parent) {
        fk__world_fail("A4", "a%u decides about a stranger", (unsigned)parent);
    }
    if (p->is_failed) fk__world_fail("A3", "a%u decides while it is held", (unsigned)parent);
    if (p->is_parted) fk__world_fail("A3", "a%u decides between two lives", (unsigned)parent);
    take_fall(child, failure);
    hold_children(child);
    p->is_deciding = true;
    p->decided_at = fk__world_now();
}

void fk__soul_decided(uint32_t parent, fk_directive drawn)
{
    fk__soul_parent(parent)->drawn = drawn;
}

/* ---- limits: the words of fk_strategy, counted once more ------------------------------------------- */

typedef enum verdict { REFUSED, PERMITTED, UNSURE } verdict;

static verdict count_restart(fk_count *c, const fk_strategy *s, fk_time least, fk_time most)
{
    int32_t restarts = s->restarts;
    fk_time within = s->within;
    if (restarts == 0) {
        restarts = 10;
        if (within == 0) within = FK_SECONDS(1);
    }
    c->total++;
    if (restarts == FK_RESTARTS_NONE) return REFUSED;
    if (c->is_unsure) return UNSURE;
    if (within == 0) {
        c->in_window++;
        bool may = restarts == FK_RESTARTS_UNLIMITED || c->in_window <= (uint32_t)restarts;
        return may ? PERMITTED : REFUSED;
    }
    uint32_t max = restarts == FK_RESTARTS_UNLIMITED ? 1 : (uint32_t)restarts;
    bool is_inside = c->in_window != 0 && most - c->window_least <= within;
    bool is_outside = c->in_window == 0 || least - c->window_most > within;
    c->is_unsure = !is_inside && !is_outside;
    if (c->is_unsure) return UNSURE;
    if (is_outside) {
        c->in_window = 1;
        c->window_least = least;
        c->window_most = most;
        return PERMITTED;
    }
    return ++c->in_window <= max ? PERMITTED : REFUSED;
}

/* Others make children of /user at any moment: who is the older, and who is there, is not known. */
static bool is_crowd(const fk_soul *parent)
{
    return parent == &v->user && parent->strategy.kind != FK_ONE_FOR_ONE;
}

static bool is_concerned(const fk_soul *parent, uint32_t failed, uint32_t child)
{
    if (child == failed) return true;
    bool is_sibling = l->person[child].parent == l->person[failed].parent;
    if (!is_sibling || v->soul[child].is_extra || l->person[child].is_refused) return false;
    if (parent->strategy.kind == FK_ALL_FOR_ONE || is_crowd(parent)) return true;
    return parent->strategy.kind == FK_REST_FOR_ONE && child > failed;
}

static verdict count_all(const fk_soul *parent, uint32_t failed)
{
    verdict all = PERMITTED;
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (!is_concerned(parent, failed, i)) continue;
        /* Who has ended is counted for as long as its parent has not noticed. */
        bool is_ending = l->person[i].is_gone && i != failed;
        if (is_ending && v->soul[i].count.total == 0) continue;
        verdict one = count_restart(&v->soul[i].count, &parent->strategy, parent->decided_at,
                                    fk__world_now());
        if (is_ending && one == REFUSED) one = UNSURE;
        if (one == REFUSED && all != UNSURE) all = REFUSED;
        if (one == UNSURE && all != REFUSED) all = UNSURE;
    }
    return all;
}

/* Those who were asked before the first refusal are counted, the others not: nobody knows which. */
static void forget_counts(const fk_soul *parent, uint32_t failed)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (is_concerned(parent, failed, i)) v->soul[i].count.is_unsure = true;
    }
}

static void check_directive(const fk_soul *parent, uint32_t child, const fk_event *event)
{
    fk_directive drawn = parent->drawn, given = event->directive;
    /* When it failed; by now it may have begun with a sibling. */
    fk_failure_phase phase = event->failure->phase;
    bool is_unborn = phase == FK_PHASE_START || phase == FK_PHASE_RESTART;
    if (drawn == FK_DIRECTIVE_RESUME && is_unborn) {
        /* Begins again, which counts, if it may. */
        v->soul[child].count.is_unsure = true;
        if (given == FK_DIRECTIVE_STOP) return;
    }
    if (drawn != FK_DIRECTIVE_RESTART) {
        if (given != drawn) fk__world_fail("A8", "a%u: not what was decided", (unsigned)child);
        return;
    }
    verdict expected = count_all(parent, child);
    if (expected != PERMITTED || given != FK_DIRECTIVE_RESTART) forget_counts(parent, child);
    if (given != FK_DIRECTIVE_RESTART && given != FK_DIRECTIVE_STOP) {
        fk__world_fail("A8", "a%u: not what was decided", (unsigned)child);
    }
    if (expected == UNSURE || is_crowd(parent)) return;
    if (expected == REFUSED) FK_SOMETIMES_HIT(LIMIT_REACHED);
    if (expected == REFUSED && given == FK_DIRECTIVE_RESTART) {
        fk__world_fail("A8", "a%u: one restart too many", (unsigned)child);
    }
    bool may_be_short = l->may_lack_memory; /* of memory to count in */
    if (expected == PERMITTED && given == FK_DIRECTIVE_STOP && !may_be_short) {
        fk__world_fail("A8", "a%u: stopped before its limit", (unsigned)child);
    }
}

/* ---- what follows from it ---------------------------------------------------------------------------- */

void fk__soul_grant_restart(uint32_t actor, bool must)
{
    fk_soul *s = &v->soul[actor];
    const fk_person *p = &l->person[actor];
    s->may_restart++;
    bool has_begun = !p->has_start || p->is_started || s->is_unstarted;
    if (must && p->is_spawned && has_begun && !s->is_parted && !s->is_renewed) {
        s->must_restart = true;
    }
    if (s->has_before && !s->is_unstarted) return;
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (l->person[i].parent == actor) v->soul[i].may_stop = true;
    }
}

/* With it go on those whose failure it has made its own; they may be the first. */
static void grant_resume(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    s->may_resume = true;
    if (s->is_unstarted) fk__soul_grant_restart(actor, s->is_failed);
    for (uint32_t i = 0; i < l->person_count; i++) {
        bool goes_on = l->person[i].parent == actor && v->soul[i].is_escalated;
        if (goes_on && !l->person[i].is_gone) grant_resume(i);
    }
}

static void grant_all(fk_soul *parent, uint32_t failed, fk_directive directive)
{
    /* Also who is made before it has come to them. */
    if (is_crowd(parent) && directive == FK_DIRECTIVE_RESTART) parent->is_restarting_crowd = true;
    if (is_crowd(parent) && directive == FK_DIRECTIVE_STOP) parent->is_stopping_crowd = true;
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (!is_concerned(parent, failed, i) || l->person[i].is_gone) continue;
        if (i != failed && parent->strategy.kind == FK_ALL_FOR_ONE) FK_SOMETIMES_HIT(ALL_FOR_ONE);
        if (i != failed && parent->strategy.kind == FK_REST_FOR_ONE) FK_SOMETIMES_HIT(REST_FOR_ONE);
        bool must = i == failed || !is_crowd(parent);
        if (directive == FK_DIRECTIVE_RESTART) {
            fk__soul_grant_restart(i, must);
        } else {
            v->soul[i].may_stop = true;
            v->soul[i].must_stop = must;
        }
    }
}

void fk__soul_supervised(const fk_event *event)
{
    uint32_t child = fk__soul_find(event->actor);
    uint32_t parent = l->person[child].parent;
    fk_soul *p = fk__soul_parent(parent);
    fk_soul *c = &v->soul[child];
    if (c->is_extra) { /* the root's: everything ends */
        c->may_stop = true;
        return;
    }
    if (!p->is_deciding) fk__world_fail("A15", "a%u: nobody decided", (unsigned)child);
    p->is_deciding = false;
    check_directive(p, child, event);
    bool is_counted =
        p->strategy.kind == FK_ONE_FOR_ONE && !c->count.is_unsure && !l->may_lack_memory;
    if (is_counted && event->count != c->count.total) {
        fk__world_fail("A15", "a%u: %u restarts are said, there were %u", (unsigned)child,
                       (unsigned)event->count, (unsigned)c->count.total);
    }
    switch (event->directive) {
    case FK_DIRECTIVE_RESUME: grant_resume(child); break;
    case FK_DIRECTIVE_RESTART:
    case FK_DIRECTIVE_STOP: grant_all(p, child, event->directive); break;
    case FK_DIRECTIVE_ESCALATE:
        FK_SOMETIMES_HIT(ESCALATED);
        c->is_escalated = true;
        p->escalating = fk__fall_number(event->failure->detail) + 1;
        break;
    }
    if (parent == FK_NOBODY) v->user.escalating = 0; /* see fk__lives_event() */
    if (parent == FK_NOBODY && event->directive == FK_DIRECTIVE_ESCALATE) l->is_stopping = true;
}

void fk__soul_resumed(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    FK_SOMETIMES_HIT(RESUMED);
    if (!s->is_failed || s->is_unstarted) {
        fk__world_fail("A8", "a%u: goes on, though it had not failed", (unsigned)actor);
    }
    if (!s->may_resume) fk__world_fail("A8", "a%u: nobody let it go on", (unsigned)actor);
    s->is_failed = s->may_resume = false;
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (l->person[i].parent != actor || l->person[i].is_gone) continue;
        v->soul[i].is_escalated = false;
    }
    fk__soul_release(actor);
}

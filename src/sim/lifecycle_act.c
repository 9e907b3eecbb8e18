/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What actors and outside threads of the scenario do. */

#include <string.h>

#include "base/base.h"
#include "sim/lifecycle.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

typedef struct sim_obituary {
    uint32_t vow;
} sim_obituary;
typedef struct sim_knock {
    uint32_t any;
} sim_knock;

static void drop_obituary(void *message)
{
    const sim_obituary *obituary = message;
    fk__vow_drop(obituary->vow);
}

FK_MESSAGE_DROP(sim_obituary, drop_obituary);
FK_MESSAGE(sim_knock);

bool fk__lifecycle_is_own(const fk_type *type)
{
    bool is_hook = strncmp(type->name, "fk_hook", 7) == 0; /* what hooks send to /system */
    return is_hook || type == &fk_type_sim_obituary || type == &fk_type_sim_knock ||
           type == &fk_type_fk_termination_hook;
}

/* ---- watching --------------------------------------------------------------------------------------- */

static fk_ref pick_target(void)
{
    fk_system *sys = fk__kernel.sys;
    uint32_t draw = fk__world_below(16);
    if (draw == 0) {
        FK_SOMETIMES_HIT(WATCH_GUARDIAN);
        return fk_guardian(sys, (fk_guardian_kind)fk__world_below(3));
    }
    if (draw == 1) {
        FK_SOMETIMES_HIT(WATCH_MADE_UP);
        uint32_t slot = fk__world_one_in(2) ? fk__world_below(300) : fk__world_below(UINT32_MAX);
        return (fk_ref){ slot, 0x40000001u + 2 * fk__world_below(4), sys->id };
    }
    if (draw == 2) return FK_REF_NONE;
    uint32_t actor = fk__kernel_pick();
    return actor == FK_NOBODY ? FK_REF_NONE : l->person[actor].ref;
}

static fk_ref pick_watched(uint32_t watcher)
{
    for (uint32_t i = v->vow_count; i > 1; i--) {
        const fk_vow *vow = &v->vow[i - 1];
        bool is_own = vow->watcher == watcher && vow->state == FK_VOW_ACTIVE;
        if (is_own && fk__world_one_in(2)) return vow->ref;
    }
    return pick_target();
}

static void watch(const fk_scene *scene, fk_ref target)
{
    bool is_custom = fk__world_one_in(3);
    if (v->vow_count >= FK_VOWS_MAX - FK_MACHINE_THREADS_MAX) return;
    uint32_t number = fk__vow_begin(scene->actor, target, is_custom);
    fk_err err;
    if (is_custom)
        err = fk_watch_with(scene->ctx, target, FK_MSG(sim_obituary, number));
    else
        err = fk_watch(scene->ctx, target);
    fk__vow_made(number, err);
}

static void act_on_watches(const fk_scene *scene)
{
    if (fk__world_one_in(4)) {
        fk_ref target = pick_watched(scene->actor);
        fk__vow_undone(scene->actor, target, fk_unwatch(scene->ctx, target));
        return;
    }
    fk_ref target = pick_target();
    if (fk__world_one_in(3)) target = pick_watched(scene->actor);
    watch(scene, target);
}

/* A parent that watched its child makes another of that name: it is free now. */
static void take_name(const fk_scene *scene, fk_ref ended)
{
    uint32_t child = fk__soul_find(ended);
    if (child == FK_NOBODY) return;
    const fk_person *p = &l->person[child];
    if (p->parent != scene->actor || v->soul[child].is_extra || p->name == 0) return;
    for (uint32_t i = child + 1; i < l->person_count; i++) {
        const fk_person *other = &l->person[i];
        if (other->parent == p->parent && other->name == p->name && !other->is_refused) return;
    }
    uint32_t before = l->person_count;
    bool is_open = !l->is_stopping && !l->may_lack_memory && !p->is_pinned;
    fk__lifecycle_spawn(scene->ctx, scene->actor, p->name);
    if (l->person_count == before) return;
    FK_SOMETIMES_HIT(NAME_FREE);
    const fk_person *heir = &l->person[before];
    if (heir->name == p->name && heir->parent == p->parent && heir->is_refused && is_open &&
        !heir->is_pinned && !l->is_stopping) {
        fk__world_fail("A7", "a%u: told of an end, and the name is taken", (unsigned)scene->actor);
    }
}

bool fk__lifecycle_told(fk_scene *scene)
{
    const fk_msg *msg = scene->msg;
    const fk_terminated *terminated = FK_AS(fk_terminated, msg);
    const sim_obituary *obituary = FK_AS(sim_obituary, msg);
    if (msg->type == &fk_type_fk_termination_hook) {
        fk__end_hook_asked(scene->actor);
        if (fk__world_one_in(3)) return true; /* never answers */
        if (fk__world_one_in(6)) {
            FK_SOMETIMES_HIT(HOOK_DIED);
            fk_stop_self(scene->ctx);
            l->person[scene->actor].is_leaving = true;
            return true;
        }
        v->soul[scene->actor].is_done = true;
        fk_hook_done(scene->ctx);
        return true;
    }
    if (terminated == NULL && obituary == NULL) return false;
    if (obituary != NULL) {
        fk__vow_told_by(scene->actor, obituary->vow);
        take_name(scene, v->vow[obituary->vow].ref);
        return true;
    }
    fk_ref ended = terminated->actor;
    fk__vow_told(scene->actor, terminated);
    if (fk__world_one_in(6) && !v->soul[scene->actor].is_extra) {
        FK_SOMETIMES_HIT(DEATH_PACT);
        scene->err = fk_unhandled(scene->ctx, msg);
        fk__soul_falls(scene->actor, FK_E_DEATH_PACT, 0, FK_PHASE_MESSAGE);
        if (scene->err != FK_E_DEATH_PACT) fk__world_fail("A6", "no death pact");
        return true;
    }
    take_name(scene, ended);
    return true;
}

/* ---- others -------------------------------------------------------------------------------------------- */

void fk__lifecycle_kill(uint32_t actor)
{
    v->soul[actor].kills++;
    fk__ledger_note(FK_FACT_KILL, actor, FK_NOBODY, 0, 0);
    fk_err err = fk_kill(fk__kernel.sys, l->person[actor].ref);
    bool is_full = err == FK_E_FULL && l->person[actor].mailbox == FK_MAILBOX_BOUNDED;
    bool ok = err == FK_OK || is_full || (err == FK_E_DEAD && l->person[actor].is_gone) ||
              ((err == FK_E_NOMEM || err == FK_E_LIMIT) && l->may_lack_memory);
    if (!ok) fk__world_fail("A4", "kill of a%u gave %s", (unsigned)actor, fk_err_name(err));
}

static void kill_any(void)
{
    uint32_t actor = fk__kernel_pick();
    bool is_spared = actor == FK_NOBODY ||
                     (v->soul[actor].is_extra && (fk__lifecycle.cut != 0 || !fk__world_one_in(16)));
    if (!is_spared) fk__lifecycle_kill(actor);
}

/* What is sent to the system is sent to /user. */
void fk__lifecycle_knock(void)
{
    (void)fk_system_tell(fk__kernel.sys, FK_MSG(sim_knock, 0));
}

void fk__lifecycle_end_now(void)
{
    FK_SOMETIMES_HIT(TERMINATED_NOW);
    v->may_force = l->is_stopping = true;
    (void)fk_terminate_now(fk__kernel.sys);
    v->is_closed = true;
}

void fk__lifecycle_end(void)
{
    fk_system *sys = fk__kernel.sys;
    if (l->is_stopping) FK_SOMETIMES_HIT(TERMINATED_TWICE);
    l->is_stopping = true;
    switch (fk__world_below(6)) {
    case 0: fk__lifecycle_end_now(); break;
    case 1: (void)fk_stop(sys, fk_guardian(sys, FK_GUARDIAN_USER)); break;
    case 2: (void)fk_stop(sys, fk_guardian(sys, FK_GUARDIAN_SYSTEM)); break;
    default: (void)fk_terminate(sys); break;
    }
    v->is_closed = true;
}

static uint32_t pick_living(bool is_extra)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        if (p->has_ref && !p->is_gone && v->soul[i].is_extra == is_extra) return i;
    }
    return FK_NOBODY;
}

void fk__lifecycle_cut(fk_cut_how how)
{
    fk_system *sys = fk__kernel.sys;
    uint32_t victim = pick_living(how == FK_CUT_KILL_HOOK);
    switch (how) {
    case FK_CUT_TERMINATE: (void)fk_terminate(sys); break;
    case FK_CUT_TERMINATE_NOW: fk__lifecycle_end_now(); break;
    case FK_CUT_STOP_SYSTEM: (void)fk_stop(sys, fk_guardian(sys, FK_GUARDIAN_SYSTEM)); break;
    case FK_CUT_KILL_HOOK:
    case FK_CUT_KILL_ACTOR:
        if (victim != FK_NOBODY) fk__lifecycle_kill(victim);
        break;
    case FK_CUT_SPAWN: fk__lifecycle_spawn(NULL, FK_NOBODY, 0); break;
    case FK_CUT_KNOCK: fk__lifecycle_knock(); break;
    case FK_CUT_COUNT: break;
    }
}

static bool may_end(void)
{
    uint32_t at = fk__world_swarm()->stop_at;
    return at != 0 && l->facts >= at && fk__world_one_in(fk__lifecycle.drama.enders);
}

/* Its parent often wants to know when the name is free again, and it may not take long. */
static void spawn_named(const fk_scene *scene, uint32_t name)
{
    uint32_t child = l->person_count;
    fk__lifecycle_spawn(scene->ctx, scene->actor, name);
    const fk_person *p = &l->person[child];
    if (l->person_count == child || p->parent != scene->actor || !p->is_spawned) return;
    if (fk__world_one_in(2)) watch(scene, p->ref);
    if (!fk__world_one_in(3) || p->is_gone) return;
    fk__person_ask_stop(child, scene->actor);
    fk__person_asked_stop(child, fk_stop(fk__kernel.sys, p->ref));
}

void fk__lifecycle_act(fk_scene *scene)
{
    const fk_swarm *s = fk__world_swarm();
    if (may_end()) {
        FK_SOMETIMES_HIT(TERMINATED_INSIDE);
        fk__lifecycle_end();
        return;
    }
    if (fk__world_one_in(fk__lifecycle.drama.watch_in)) {
        act_on_watches(scene);
        return;
    }
    fk_act act = fk__swarm_act(s, fk__world_below(s->weight_sum));
    switch (act) {
    case FK_ACT_SPAWN: fk__lifecycle_spawn(scene->ctx, scene->actor, 0); break;
    case FK_ACT_SPAWN_NAMED: spawn_named(scene, 1 + fk__world_below(3)); break;
    case FK_ACT_FAIL: kill_any(); break; /* failing itself is decided elsewhere */
    case FK_ACT_STOP_SELF:
        if (!v->soul[scene->actor].is_extra) fk__kernel_act(scene, act);
        break;
    default: fk__kernel_act(scene, act); break;
    }
}

static void act_outside(void)
{
    if (may_end()) {
        fk__lifecycle_end();
        return;
    }
    if (fk__world_below(100) < fk__world_swarm()->outside_sends) {
        fk__kernel_send(NULL, FK_NOBODY, fk__kernel_pick(), 0);
        return;
    }
    switch (fk__world_below(10)) {
    case 0:
    case 1: fk__lifecycle_spawn(NULL, FK_NOBODY, 0); break;
    case 2: fk__lifecycle_spawn(NULL, FK_NOBODY, 1 + fk__world_below(4)); break;
    case 3: fk__kernel_stop_other(FK_NOBODY); break;
    case 4: fk__kernel_poison(); break;
    case 5:
    case 6: kill_any(); break;
    case 7: fk__lifecycle_knock(); break;
    default: fk__world_sleep((fk_time)fk__world_below((uint32_t)FK_MILLIS(3))); break;
    }
}

void fk__lifecycle_outsider(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    uint32_t acts = fk__world_swarm()->outside_acts;
    for (uint32_t i = 0; i < acts; i++) act_outside();
    fk__kernel.outsiders--;
}

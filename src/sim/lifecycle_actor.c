/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/base.h"
#include "core/boot.h"
#include "sim/lifecycle.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

/* An actor's state. */
typedef struct sim_mind {
    uint32_t actor;
    uint32_t canary;
    uint32_t handled;
    unsigned char rest[64];
} sim_mind;

static const uint32_t CANARY = 0x50F715u;

enum { FALLS_MAX = 500 };

static uint32_t who(const void *state)
{
    const sim_mind *mind = state;
    if (mind->canary != CANARY) fk__world_fail("A4", "an actor's state is damaged");
    return mind->actor;
}

void fk__lifecycle_fail(fk_scene *scene)
{
    char detail[16];
    static const fk_err ERRORS[] = { FK_E_FAILED, FK_E_INVALID, FK_E_TIMEOUT, FK_E_DEATH_PACT };
    uint32_t number = ++v->fall_count;
    snprintf(detail, sizeof(detail), "f%u", (unsigned)number);
    scene->err = fk_fail(scene->ctx, ERRORS[fk__world_below(4)], detail);
    fk__soul_falls(scene->actor, scene->err, number, FK_PHASE_MESSAGE);
}

/* Strategies without limits restart for ever: there is an end to all failures, too. */
static bool may_fail(uint32_t actor, uint32_t one_in)
{
    if (v->fall_count >= FALLS_MAX || !fk__world_one_in(one_in)) return false;
    bool may_end_all = v->soul[actor].is_extra;
    return !may_end_all || (fk__lifecycle.cut == 0 && fk__world_one_in(16));
}

static void act_some(fk_scene *scene, uint32_t acts)
{
    for (uint32_t i = 0; i < acts && scene->err == FK_OK; i++) fk__lifecycle_act(scene);
}

/* ---- hooks ---------------------------------------------------------------------------------------- */

static void register_hook(fk_scene *scene)
{
    fk_soul *s = &v->soul[scene->actor];
    if (!s->is_extra || s->is_hook) return;
    s->deadline = FK_MILLIS(1 + fk__world_below(30));
    fk_err err = fk_hook_register(scene->ctx, s->deadline);
    s->is_hook = true; /* it may be asked in any case */
    if (err != FK_OK && !l->may_lack_memory) fk__world_fail("A10", "a hook was refused");
    if (l->is_stopping) FK_SOMETIMES_HIT(HOOK_LATECOMER);
}

static fk_err begin_life(fk_ctx *ctx, const sim_mind *mind, bool is_after)
{
    uint32_t actor = who(mind);
    fk_scene scene = { .ctx = ctx, .actor = actor, .is_hook = true };
    bool is_again = v->soul[actor].is_parted || v->soul[actor].is_unstarted;
    bool was_alive = fk__soul_has_lived(&v->soul[actor]);
    fk__soul_begin_start(actor, fk_self(ctx), is_after);
    if (mind->handled != 0) fk__world_fail("A8", "a%u: its state is not fresh", (unsigned)actor);
    if (fk__world_one_in(2)) register_hook(&scene);
    act_some(&scene, fk__world_below(3));
    if (may_fail(actor, fk__lifecycle.drama.fail_start_in)) fk__lifecycle_fail(&scene);
    if (scene.err != FK_OK) {
        if (is_again) FK_SOMETIMES_HIT(FAILED_IN_RESTART);
        v->soul[actor].falling.phase = was_alive ? FK_PHASE_RESTART : FK_PHASE_START;
        v->soul[actor].fell_anew = was_alive;
    }
    fk__person_end_start(actor, scene.err);
    return scene.err;
}

static fk_err start_hook(fk_ctx *ctx, void *state)
{
    return begin_life(ctx, state, false);
}

static fk_err after_restart(fk_ctx *ctx, void *state, fk_err why)
{
    (void)why;
    return begin_life(ctx, state, true);
}

static void part(fk_ctx *ctx, const sim_mind *mind, bool is_before)
{
    uint32_t actor = who(mind);
    fk_scene scene = { .ctx = ctx, .actor = actor, .is_hook = true };
    fk__soul_begin_parting(actor, fk_self(ctx), is_before);
    if (v->soul[actor].handled != mind->handled) {
        fk__world_fail("A8", "a%u: another's state", (unsigned)actor);
    }
    if (fk__world_one_in(3)) act_some(&scene, 1 + fk__world_below(2));
    if (is_before) FK_SOMETIMES_HIT(KEPT_CHILD);
    fk__soul_end_parting(actor);
}

static void stop_hook(fk_ctx *ctx, void *state)
{
    part(ctx, state, false);
}

/* Some children stay behind, some are stopped; those have to be gone before the new life begins. */
static void before_restart(fk_ctx *ctx, void *state, fk_err why)
{
    uint32_t actor = who(state);
    (void)why;
    part(ctx, state, true);
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        if (p->parent != actor || v->soul[i].is_extra || !p->has_ref || p->is_gone) continue;
        if (!fk__world_one_in(2)) continue;
        fk__person_ask_stop(i, actor);
        fk_err err = fk_stop(fk__kernel.sys, p->ref);
        fk__person_asked_stop(i, err);
        v->soul[i].is_awaited = true;
    }
}

/* ---- messages -------------------------------------------------------------------------------------- */

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg, uint32_t behaviour)
{
    sim_mind *mind = state;
    uint32_t actor = who(state);
    fk_scene scene = { .ctx = ctx, .actor = actor, .msg = msg };
    fk__person_begin_receive(actor, fk_self(ctx), behaviour);
    fk__soul_begin_receive(actor, mind->handled++);
    if (!fk__lifecycle_told(&scene)) fk__kernel_open(&scene);
    act_some(&scene, fk__world_below(fk__world_swarm()->acts_max + 1));
    if (scene.err == FK_OK && may_fail(actor, fk__lifecycle.drama.fail_in)) {
        fk__lifecycle_fail(&scene);
    }
    fk__kernel_close(&scene);
    return scene.err;
}

static fk_err receive_0(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    return receive(ctx, state, msg, 0);
}

static fk_err receive_1(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    return receive(ctx, state, msg, 1);
}

const fk_receive_fn fk__lifecycle_receive[2] = { receive_0, receive_1 };

/* ---- deciding -------------------------------------------------------------------------------------- */

static fk_directive draw_directive(fk_temper temper, const fk_failure *failure)
{
    switch (temper) {
    case FK_TEMPER_RESUME: return FK_DIRECTIVE_RESUME;
    case FK_TEMPER_RESTART: return FK_DIRECTIVE_RESTART;
    case FK_TEMPER_STOP: return FK_DIRECTIVE_STOP;
    case FK_TEMPER_ESCALATE: return FK_DIRECTIVE_ESCALATE;
    case FK_TEMPER_MIXED: return (fk_directive)fk__world_below(4);
    default: return fk_decide_default(NULL, NULL, failure);
    }
}

/* It may take its time, and others go on meanwhile. */
static void ponder(void)
{
    if (fk__lifecycle.drama.sleeps && fk__world_one_in(4)) {
        fk__kernel.drowsy++;
        fk__world_sleep(FK_MICROS(10 + fk__world_below(2000)));
        fk__kernel.drowsy--;
    }
    if (fk__world_one_in(4)) {
        for (uint32_t i = fk__world_below(60); i > 0; i--) fk__world_yield();
    }
}

fk_directive fk__lifecycle_decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    uint32_t parent = state != NULL ? who(state) : FK_NOBODY;
    uint32_t child = fk__soul_find(failure->actor);
    fk_scene scene = { .ctx = ctx, .actor = parent, .is_hook = true };
    if (parent != FK_NOBODY) fk__person_enter(parent, fk_self(ctx), "decision");
    fk__soul_decides(parent, child, failure);
    ponder();
    if (parent != FK_NOBODY && fk__world_one_in(8)) fk__lifecycle_act(&scene);
    fk_temper temper = fk__soul_parent(parent)->temper;
    fk_directive drawn = draw_directive(temper, failure);
    /* /user fails when it escalates, and that is the end: not all the time. */
    if (parent == FK_NOBODY && drawn == FK_DIRECTIVE_ESCALATE && !fk__world_one_in(4)) {
        drawn = FK_DIRECTIVE_RESTART;
    }
    if (parent == FK_NOBODY && drawn == FK_DIRECTIVE_ESCALATE) FK_SOMETIMES_HIT(USER_FAILED);
    fk__soul_decided(parent, drawn);
    if (parent != FK_NOBODY) l->person[parent].is_busy = false;
    return drawn;
}

/* ---- spawning ---------------------------------------------------------------------------------------- */

static uint32_t pick_bit(uint32_t mask)
{
    uint32_t n = fk__world_below((uint32_t)__builtin_popcount(mask));
    for (; n > 0; n--) mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

fk_strategy fk__lifecycle_draw_strategy(fk_temper *temper)
{
    static const int32_t RESTARTS[] = { 0, FK_RESTARTS_UNLIMITED, FK_RESTARTS_NONE, 1, 2, 4 };
    const fk_drama *d = &fk__lifecycle.drama;
    fk_strategy s = { .kind = (fk_strategy_kind)pick_bit(d->kinds),
                      .decide = fk__lifecycle_decide };
    *temper = (fk_temper)pick_bit(d->tempers);
    s.restarts = FK_RESTARTS_UNLIMITED;
    if (!d->has_limits) return s;
    s.restarts = RESTARTS[fk__world_below(6)];
    if (fk__world_one_in(2)) s.within = FK_MICROS(1 + fk__world_below(3000));
    return s;
}

static void draw_props(fk_props *props, fk_person *person, fk_soul *soul)
{
    props->receive = receive_0;
    props->stop = stop_hook;
    if (soul->is_extra || !fk__world_one_in(3)) props->start = start_hook;
    if (fk__world_one_in(3)) props->before_restart = before_restart;
    if (fk__world_one_in(3)) props->after_restart = after_restart;
    props->state_size = sizeof(sim_mind) - fk__world_below(64);
    props->strategy = fk__lifecycle_draw_strategy(&soul->temper);
    if (!soul->is_extra) fk__kernel_draw_mailbox(props, person);
    if (soul->is_extra) person->stash_max = props->stash_max = 4;
    person->has_start = props->start != NULL;
    soul->has_before = props->before_restart != NULL;
    soul->has_after = props->after_restart != NULL;
    soul->strategy = props->strategy;
}

void fk__lifecycle_spawn(fk_ctx *ctx, uint32_t parent, uint32_t name)
{
    const fk_swarm *s = fk__world_swarm();
    fk_person person = { .parent = (uint16_t)parent, .name = (uint16_t)name };
    fk_soul soul = { .depth = parent == FK_NOBODY ? 1 : v->soul[parent].depth + 1 };
    fk_props props = { 0 };
    sim_mind mind = { .canary = CANARY };
    fk_ref ref = FK_REF_NONE;
    soul.is_beside = parent != FK_NOBODY && v->soul[parent].is_beside;
    if (l->alive >= s->actors_alive || l->person_count >= FK_ACTORS_MAX - FK_MACHINE_THREADS_MAX) {
        return;
    }
    if (soul.depth > fk__lifecycle.drama.depth_max) return;
    draw_props(&props, &person, &soul);
    fk_short_name text = fk__kernel_name(name);
    v->soul[l->person_count] = soul;
    mind.actor = fk__person_spawn(&person);
    props.init = &mind;
    uint32_t *spawning = &v->spawning[fk__world_self()];
    uint32_t outer = *spawning;
    *spawning = mind.actor + 1;
    bool was_closed = v->is_closed;
    fk_err err = ctx != NULL ? fk_spawn_child(ctx, fk_str_of(text.text), &props, &ref)
                             : fk_spawn(fk__kernel.sys, fk_str_of(text.text), &props, &ref);
    *spawning = outer;
    fk__world_fence();
    if (was_closed && err == FK_OK) fk__world_fail("A10", "an actor was made at the end");
    fk__soul_spawned(mind.actor, err, ref);
    fk__kernel_count_spawn(&l->person[mind.actor], err);
}

fk_err fk__lifecycle_extra(fk_system *sys, uint32_t number)
{
    fk_person person = { .parent = FK_NOBODY };
    fk_soul soul = { .is_extra = true, .is_beside = true };
    fk_props props = { 0 };
    sim_mind mind = { .canary = CANARY };
    fk_ref ref;
    char name[16];
    snprintf(name, sizeof(name), "extra%u", (unsigned)number);
    draw_props(&props, &person, &soul);
    v->soul[l->person_count] = soul;
    mind.actor = fk__person_spawn(&person);
    props.init = &mind;
    fk_err err = fk__boot_extra(sys, fk_str_of(name), &props, &ref);
    if (err != FK_OK) {
        l->person[mind.actor].is_refused = true;
        return err;
    }
    fk__person_spawned(mind.actor, FK_OK, ref);
    l->spawned--; /* it is not counted */
    return FK_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/kernel.h"

#include "base/base.h"
#include "sim/sometimes.h"

#include <stdio.h>

static fk_ledger *const l = &fk__ledger;

/* An actor's state. */
typedef struct sim_body {
    uint32_t actor;
    uint32_t canary;
    unsigned char rest[280];
} sim_body;

static const uint32_t CANARY = 0xB0D1E5u;

static uint32_t who(const void *state)
{
    const sim_body *body = state;
    if (body->canary != CANARY) fk__world_fail("A4", "an actor's state is damaged");
    return body->actor;
}

/* ---- hooks and receive ------------------------------------------------------------------- */

static void act_some(fk_scene *scene, uint32_t acts)
{
    const fk_swarm *s = fk__world_swarm();
    for (uint32_t i = 0; i < acts && scene->err == FK_OK; i++) {
        uint32_t draw = fk__world_below(s->weight_sum);
        fk__kernel_act(scene, fk__swarm_act(s, draw));
    }
}

static fk_err start_hook(fk_ctx *ctx, void *state)
{
    uint32_t actor = who(state);
    fk_scene scene = { .ctx = ctx, .actor = actor };
    fk__person_begin_start(actor, fk_self(ctx));
    act_some(&scene, fk__world_below(3));
    if (scene.err != FK_OK) FK_SOMETIMES_HIT(FAILED_START);
    fk__person_end_start(actor, scene.err);
    return scene.err;
}

static void stop_hook(fk_ctx *ctx, void *state)
{
    uint32_t actor = who(state);
    fk_scene scene = { .ctx = ctx, .actor = actor, .is_hook = true };
    fk__person_begin_stop(actor, fk_self(ctx));
    if (fk__world_one_in(4)) {
        uint32_t before = l->mail_count;
        act_some(&scene, 1);
        if (l->mail_count != before) FK_SOMETIMES_HIT(STOP_HOOK_SENDS);
    }
    fk__alarm_stop_all(actor);
    fk__person_end_stop(actor);
}

/* Periodic timers and receive timeouts end after a few times, so that a run does. */
static void end_endless(fk_scene *scene)
{
    fk_person *p = &l->person[scene->actor];
    if (scene->alarm != 0) {
        const fk_alarm *alarm = &l->alarm[scene->alarm];
        bool is_on = alarm->state == FK_ALARM_ACTIVE && p->alarm[alarm->key] == scene->alarm;
        if (is_on != fk_timer_is_active(scene->ctx, alarm->key) && p->alarm[alarm->key] == 0) {
            fk__world_fail("A11", "is_active of an ended timer");
        }
        if (!is_on || alarm->mode == FK_TIMER_ONCE || alarm->fires < 3) return;
        uint32_t key = alarm->key;
        fk__alarm_cancelled(scene->actor, key, fk_timer_cancel(scene->ctx, key));
    } else if (scene->mail == 0 && fk__world_one_in(2)) {
        fk__alarm_timeout_set(scene->actor, 0);
        if (fk_receive_timeout_set(scene->ctx, 0) != FK_OK) {
            fk__world_fail("A11", "a receive timeout cannot be ended");
        }
    }
}

/* A message is lent until receive returns, whatever happens to its timer meanwhile. */
static void check_lent(const fk_scene *scene)
{
    fk_mail_kind kind;
    if (scene->is_used || (scene->mail == 0 && scene->alarm == 0)) return;
    uint32_t number = fk__kernel_read(scene->msg->type, scene->msg->data, scene->msg->len, &kind);
    uint32_t expected = scene->alarm != 0 ? scene->alarm : fk__mail_at(scene->mail)->first;
    if (number != expected) fk__world_fail("A1", "a message changed while it was handled");
}

void fk__kernel_open(fk_scene *scene)
{
    fk_mail_kind kind;
    const fk_msg *msg = scene->msg;
    if (msg->type == &fk_type_receive_timeout) {
        fk__alarm_timeout(scene->actor);
        return;
    }
    uint32_t number = fk__kernel_read(msg->type, msg->data, msg->len, &kind);
    if (kind >= FK_KIND_TICK) {
        fk__alarm_fire(scene->actor, number);
        scene->alarm = number;
        return;
    }
    scene->mail = fk__mail_receive(scene->actor, number, msg->sender);
    const fk_mail *mail = fk__mail_at(scene->mail);
    if (mail->rounds > 0 && mail->origin != FK_NOBODY) {
        fk__kernel_reply(scene->ctx, scene->actor, mail->origin, mail->rounds - 1u);
    }
}

void fk__kernel_close(fk_scene *scene)
{
    if (fk__world_swarm()->shuffles && !fk__ctx_worker(scene->ctx)->is_pinned)
        fk__kernel_shuffle(fk__ctx_worker(scene->ctx));
    end_endless(scene);
    check_lent(scene);
    fk__person_end_receive(scene->actor, scene->err);
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg, uint32_t behaviour)
{
    uint32_t actor = who(state);
    fk_scene scene = { .ctx = ctx, .actor = actor, .msg = msg };
    fk__person_begin_receive(actor, fk_self(ctx), behaviour);
    if (fk__kernel_call_received(actor, msg)) {
        fk__person_end_receive(actor, FK_OK);
        return FK_OK;
    }
    fk__kernel_open(&scene);
    act_some(&scene, fk__world_below(fk__world_swarm()->acts_max + 1));
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

const fk_receive_fn fk__kernel_receive[2] = { receive_0, receive_1 };

/* ---- spawning ---------------------------------------------------------------------------- */

/* One of the bits of mask. */
static uint32_t pick_bit(uint32_t mask)
{
    uint32_t n = fk__world_below((uint32_t)__builtin_popcount(mask));
    for (; n > 0; n--) mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

void fk__kernel_draw_mailbox(fk_props *props, fk_person *person)
{
    const fk_swarm *s = fk__world_swarm();
    props->mailbox = (fk_mailbox_kind)pick_bit(s->mailboxes);
    if (props->mailbox == FK_MAILBOX_BOUNDED) {
        props->overflow = (fk_overflow)pick_bit(s->overflows);
        props->capacity = 1 + fk__world_below(5);
    } else if (props->mailbox >= FK_MAILBOX_PRIORITY) {
        props->priority = fk__kernel_priority;
    }
    if (fk__world_one_in(4)) props->throughput = 1 + fk__world_below(4);
    props->stash_max = 1 + fk__world_below(8);
    if (s->pinned_max != 0 && fk__world_one_in(8)) props->dispatcher = FK_DISPATCHER_PINNED;
    person->mailbox = (uint8_t)props->mailbox;
    person->overflow = (uint8_t)props->overflow;
    person->capacity = props->capacity;
    person->stash_max = props->stash_max;
    person->is_pinned = props->dispatcher == FK_DISPATCHER_PINNED;
    if (props->mailbox == FK_MAILBOX_PRIORITY) FK_SOMETIMES_HIT(PRIORITY);
    if (props->mailbox == FK_MAILBOX_STABLE) FK_SOMETIMES_HIT(STABLE);
    if (props->mailbox == FK_MAILBOX_CONTROL) FK_SOMETIMES_HIT(CONTROL);
}

static void draw_props(fk_props *props, fk_person *person)
{
    props->receive = receive_0;
    props->stop = stop_hook;
    props->strategy.decide = fk_decide_stop;
    if (fk__world_one_in(2)) props->start = start_hook;
    props->state_size = sizeof(sim_body) - fk__world_below(256);
    person->has_start = props->start != NULL;
    fk__kernel_draw_mailbox(props, person);
}

void fk__kernel_count_spawn(const fk_person *p, fk_err err)
{
    if (err == FK_E_NAME_TAKEN) FK_SOMETIMES_HIT(NAME_TAKEN);
    if (err == FK_E_STOPPING) FK_SOMETIMES_HIT(SPAWN_STOPPING);
    if (err == FK_E_NOMEM) FK_SOMETIMES_HIT(SPAWN_NO_MEMORY);
    if (err == FK_E_LIMIT && fk__world_swarm()->actors_max != 0) FK_SOMETIMES_HIT(ACTORS_LIMIT);
    if (err == FK_E_LIMIT && fk__world_swarm()->memory_spare != 0) FK_SOMETIMES_HIT(MEMORY_LIMIT);
    if (err == FK_E_OS) FK_SOMETIMES_HIT(PIN_REFUSED);
    if (err == FK_OK && p->is_pinned) FK_SOMETIMES_HIT(PINNED);
}

fk_short_name fk__kernel_name(uint32_t n)
{
    fk_short_name name = { "" };
    if (n != 0) snprintf(name.text, sizeof(name.text), "n%u", (unsigned)n);
    return name;
}

void fk__kernel_spawn(fk_ctx *ctx, uint32_t parent, bool is_named)
{
    const fk_swarm *s = fk__world_swarm();
    uint32_t alive_max = s->actors_max != 0 ? s->actors_max + 2 : s->actors_alive;
    fk_person person = { .parent = (uint16_t)parent };
    fk_props props = { 0 };
    sim_body body = { .canary = CANARY };
    fk_ref ref = FK_REF_NONE;
    if (l->alive >= alive_max || l->person_count >= FK_ACTORS_MAX - FK_MACHINE_THREADS_MAX) return;
    draw_props(&props, &person);
    if (is_named) person.name = (uint16_t)(1 + fk__world_below(4));
    fk_short_name name = fk__kernel_name(person.name);
    body.actor = fk__person_spawn(&person);
    props.init = &body;
    fk_err err = ctx != NULL ? fk_spawn_child(ctx, fk_str_of(name.text), &props, &ref)
                             : fk_spawn(fk__kernel.sys, fk_str_of(name.text), &props, &ref);
    fk__world_fence();
    fk__person_spawned(body.actor, err, ref);
    fk__kernel_count_spawn(&l->person[body.actor], err);
}

/* ---- ending others ----------------------------------------------------------------------- */

void fk__kernel_stop_other(uint32_t by)
{
    /* Whoever asks the dying must not hit their heirs; and those must not be asked by chance. */
    bool is_churning = fk__world_swarm()->is_churning;
    uint32_t actor = is_churning ? fk__kernel_pick_dying() : fk__kernel_pick();
    if (actor == FK_NOBODY) return;
    if (l->person[actor].children != 0) FK_SOMETIMES_HIT(STOP_CHILDREN);
    if (is_churning) fk__world_linger();
    fk__person_ask_stop(actor, by);
    fk__person_asked_stop(actor, fk_stop(fk__kernel.sys, l->person[actor].ref));
}

void fk__kernel_poison(void)
{
    uint32_t actor = fk__kernel_pick();
    if (actor == FK_NOBODY) return;
    fk__person_poison(actor);
    fk_err err = fk_poison(fk__kernel.sys, l->person[actor].ref);
    bool ok = err == FK_OK || (err == FK_E_DEAD && l->person[actor].is_gone) ||
              ((err == FK_E_NOMEM || err == FK_E_LIMIT) && l->may_lack_memory);
    if (!ok) fk__world_fail("A4", "poison of a%u gave %s", (unsigned)actor, fk_err_name(err));
    FK_SOMETIMES_HIT(POISONED);
}

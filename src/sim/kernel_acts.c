/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/kernel.h"

#include "base/base.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;

enum { ALARMS_PER_RUN = 200, BEHAVIOURS_MAX = 40, VOLLEY_MAX = 60 };

static void tell(fk_scene *scene, uint32_t rounds)
{
    uint32_t to = fk__kernel_pick();
    if (to == FK_NOBODY) return;
    if (!fk_is_alive(fk__kernel.sys, l->person[to].ref) && !l->person[to].is_gone) {
        fk__world_fail("A4", "a%u is alive", (unsigned)to);
    }
    fk__kernel_send(scene->ctx, scene->actor, to, rounds);
}

static void forward(fk_scene *scene)
{
    uint32_t to = fk__kernel_pick();
    if (scene->mail == 0 || scene->is_used || to == FK_NOBODY) return;
    if (fk__mail_at(scene->mail)->shares != 1) return;
    scene->is_used = true;
    FK_SOMETIMES_HIT(FORWARDED);
    fk__mail_forward(scene->mail, to, l->person[to].ref);
    uint32_t hops = fk__mail_at(scene->mail)->hops;
    fk_err err = fk_forward(scene->ctx, l->person[to].ref);
    fk__mail_sent(scene->mail, hops, err);
}

static void stash(fk_scene *scene)
{
    if ((scene->mail == 0 && scene->alarm == 0) || scene->is_used) return;
    fk_err err = fk_stash(scene->ctx);
    fk__person_stash(scene->actor, err);
    scene->is_used = err == FK_OK;
}

static void unstash(fk_scene *scene)
{
    fk__person_unstash(scene->actor, fk_unstash_all(scene->ctx));
}

static void become(fk_scene *scene)
{
    fk_person *p = &l->person[scene->actor];
    if (p->behaviour_count >= BEHAVIOURS_MAX) return;
    uint32_t behaviour = fk__world_below(2);
    fk_err err = fk_become(scene->ctx, fk__kernel.receive[behaviour]);
    if (err == FK_OK) {
        FK_SOMETIMES_HIT(BECOME);
        fk__person_become(scene->actor, behaviour);
    } else if (!l->may_lack_memory) {
        fk__world_fail("A3", "become gave %s", fk_err_name(err));
    }
}

static void timer_start(fk_scene *scene)
{
    fk_envelope envelope;
    if (l->alarm_count >= ALARMS_PER_RUN) return;
    fk_alarm alarm = { .actor = (uint16_t)scene->actor,
                       .key = (uint8_t)fk__world_below(FK_TIMER_KEYS),
                       .mode = (uint8_t)fk__world_below(3),
                       .is_owned = fk__world_one_in(2) };
    fk_time longest = fk__world_one_in(4) ? FK_SECONDS(1) : FK_MILLIS(8);
    alarm.period = (fk_time)fk__world_below((uint32_t)longest) +
                   (alarm.mode != FK_TIMER_ONCE || fk__world_one_in(2));
    uint32_t number = fk__alarm_start(&alarm);
    fk_out out = fk__kernel_make(&envelope, alarm.is_owned ? FK_KIND_BELL : FK_KIND_TICK, number);
    fk_err err =
        fk_timer_start(scene->ctx, alarm.key, (fk_timer_mode)alarm.mode, alarm.period, out);
    fk__alarm_started(number, err);
}

static void timer_cancel(fk_scene *scene)
{
    uint32_t key = fk__world_below(FK_TIMER_KEYS);
    bool is_on = l->person[scene->actor].alarm[key] != 0;
    if (fk_timer_is_active(scene->ctx, key) != is_on) {
        fk__world_fail("A11", "a%u: is_active of key %u", (unsigned)scene->actor, (unsigned)key);
    }
    fk__alarm_cancelled(scene->actor, key, fk_timer_cancel(scene->ctx, key));
}

static void receive_timeout(fk_scene *scene)
{
    if (l->alarm_count >= ALARMS_PER_RUN) return;
    fk_time timeout = 1 + (fk_time)fk__world_below((uint32_t)FK_MILLIS(30));
    fk_time before = fk__world_now();
    fk_err err = fk_receive_timeout_set(scene->ctx, timeout);
    if (err != FK_OK) {
        if (!l->may_lack_memory) fk__world_fail("A11", "timeout gave %s", fk_err_name(err));
        FK_SOMETIMES_HIT(TIMER_NO_MEMORY);
        return;
    }
    fk__alarm_timeout_set(scene->actor, timeout);
    l->person[scene->actor].timeout_last = before;
}

static void fail(fk_scene *scene)
{
    FK_SOMETIMES_HIT(FAILED);
    scene->err = fk_fail(scene->ctx, FK_E_FAILED, "by chance");
}

static void unhandled(fk_scene *scene)
{
    if (scene->mail == 0 || scene->is_used) return;
    FK_SOMETIMES_HIT(UNHANDLED);
    if (fk_unhandled(scene->ctx, scene->msg) != FK_OK) {
        fk__world_fail("A1", "unhandled is an error");
    }
}

static void reply(fk_scene *scene)
{
    if (scene->mail == 0) return;
    fk__kernel_reply(scene->ctx, scene->actor, fk__mail_at(scene->mail)->origin, 0);
}

static void stop_self(fk_scene *scene)
{
    FK_SOMETIMES_HIT(STOP_SELF);
    fk_stop_self(scene->ctx);
    l->person[scene->actor].is_leaving = true;
}

static void work(void)
{
    fk__world_yield();
    fk__world_pass((fk_time)fk__world_below(300000));
    for (uint32_t i = fk__world_below(40); i > 0; i--) fk__world_yield();
}

/* In a stop hook there is nothing left to change about the actor itself. */
static bool is_for_hook(fk_act act)
{
    switch (act) {
    case FK_ACT_TELL:
    case FK_ACT_VOLLEY:
    case FK_ACT_SPAWN:
    case FK_ACT_SPAWN_NAMED:
    case FK_ACT_TIMER_START:
    case FK_ACT_BOGUS:
    case FK_ACT_PARCEL:
    case FK_ACT_LOOK_UP:
    case FK_ACT_SELECT:
    case FK_ACT_WORK:
    case FK_ACT_YIELD: return true;
    default: return false;
    }
}

void fk__kernel_act(fk_scene *scene, fk_act act)
{
    if (scene->is_hook && !is_for_hook(act)) return;
    switch (act) {
    case FK_ACT_TELL: tell(scene, 0); break;
    case FK_ACT_VOLLEY: tell(scene, 1 + fk__world_below(VOLLEY_MAX)); break;
    case FK_ACT_REPLY: reply(scene); break;
    case FK_ACT_FORWARD: forward(scene); break;
    case FK_ACT_SPAWN: fk__kernel_spawn(scene->ctx, scene->actor, false); break;
    case FK_ACT_SPAWN_NAMED: fk__kernel_spawn(scene->ctx, scene->actor, true); break;
    case FK_ACT_STOP_SELF: stop_self(scene); break;
    case FK_ACT_STOP_OTHER: fk__kernel_stop_other(scene->actor); break;
    case FK_ACT_POISON: fk__kernel_poison(); break;
    case FK_ACT_STASH: stash(scene); break;
    case FK_ACT_UNSTASH: unstash(scene); break;
    case FK_ACT_BECOME: become(scene); break;
    case FK_ACT_UNBECOME: fk__person_unbecome(scene->actor, fk_unbecome(scene->ctx)); break;
    case FK_ACT_TIMER_START: timer_start(scene); break;
    case FK_ACT_TIMER_CANCEL: timer_cancel(scene); break;
    case FK_ACT_RECEIVE_TIMEOUT: receive_timeout(scene); break;
    case FK_ACT_FAIL: fail(scene); break;
    case FK_ACT_UNHANDLED: unhandled(scene); break;
    case FK_ACT_BOGUS: fk__kernel_send_bogus(scene->ctx, scene->actor); break;
    case FK_ACT_PARCEL: fk__kernel_send_parcel(scene->ctx, scene->actor); break;
    case FK_ACT_LOOK_UP: fk__kernel_resolve(); break;
    case FK_ACT_SELECT: fk__kernel_select(scene->ctx, scene->actor); break;
    case FK_ACT_WORK: work(); break;
    case FK_ACT_YIELD: fk__world_yield(); break;
    case FK_ACT_COUNT: break;
    }
}

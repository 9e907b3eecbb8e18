/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/guardian.h"

#include "core/event.h"
#include "core/hook.h"
#include "core/promise.h"
#include "core/spawn.h"
#include "core/supervise.h"
#include "core/terminate.h"
#include "core/watch.h"

/* ---- what they do ----------------------------------------------------------------------------- */

/* Nothing but have children. */
static fk_err guardian_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

/* A guardian must not lose its children when it is restarted. */
static void guardian_keep(fk_ctx *ctx, void *state, fk_err why)
{
    (void)ctx;
    (void)state;
    (void)why;
}

/* What is sent to /deadLetters is one, in the name of its sender. */
static fk_err dead_letters_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    fk__dead_letter(&fk__ctx_worker(ctx)->local, FK_REASON_NO_RECEIVER, fk_self(ctx), msg);
    return FK_OK;
}

/* The root watches /system, and nobody else. */
static fk_err root_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_terminated *terminated = FK_AS(fk_terminated, msg);
    (void)state;
    if (terminated == NULL) return fk_unhandled(ctx, msg);
    bool is_ours = fk__terminate_reach(fk_system_of(ctx), &fk__ctx_worker(ctx)->local,
                                       FK_TERMINATION_ROOT, "/system has stopped");
    if (is_ours) fk_stop_self(ctx); /* else it is by force, and whoever does it stops us */
    return FK_OK;
}

/* Its strategy is fixed: whoever fails here ends everything, and nobody is made again. /system goes
 * on for as long as that takes, because it is the one who conducts it. */
static fk_directive root_decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    fk_system *sys = fk_system_of(ctx);
    (void)state;
    fk__terminate_begin(sys, &fk__ctx_worker(ctx)->local, "a guardian failed");
    bool is_system = fk_ref_equal(failure->actor, fk_guardian(sys, FK_GUARDIAN_SYSTEM));
    return is_system ? FK_DIRECTIVE_RESUME : FK_DIRECTIVE_STOP;
}

static const fk_props ROOT = { .receive = root_receive,
                               .stop = fk__terminate_finish,
                               .before_restart = guardian_keep,
                               .strategy = { .decide = root_decide } };
static const fk_props USER = { .receive = guardian_receive, .before_restart = guardian_keep };
static const fk_props TEMP = { .receive = guardian_receive,
                               .before_restart = guardian_keep,
                               .strategy = { .decide = fk_decide_stop } };
static const fk_props DEAD_LETTERS = { .receive = dead_letters_receive };

/* ---- making them ------------------------------------------------------------------------------ */

static fk_err create(fk_system *sys, fk_str name, const fk_props *props, fk_cell **out)
{
    fk_ref ref;
    const uint64_t none = 0;
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, sys->top.root, name, &none, props, &ref);
    if (err == FK_OK) *out = fk__cell_resolve(sys, ref);
    fk__local_leave(local);
    return err;
}

static void note(fk_system *sys, fk_guardian_kind kind, const fk_cell *cell)
{
    sys->guardians[kind].ref = fk__cell_ref(cell);
    fk__half_store(&sys->guardians[kind].alive, 1, FK_RELEASE);
}

fk_err fk__root_create(fk_system *sys)
{
    FK_TRY(create(sys, FK_STR(""), &ROOT, &sys->top.root));
    note(sys, FK_GUARDIAN_ROOT, sys->top.root);
    return FK_OK;
}

static fk_err user_create(fk_system *sys, const fk_props *given, const fk_strategy *strategy)
{
    fk_props props = given != NULL ? *given : USER;
    if (strategy != NULL) props.strategy = *strategy;
    props.before_restart = guardian_keep;
    props.after_restart = NULL;
    FK_TRY(fk__strategy_check(&props.strategy));
    FK_TRY(create(sys, FK_STR("user"), &props, &sys->top.user));
    note(sys, FK_GUARDIAN_USER, sys->top.user);
    return FK_OK;
}

fk_err fk__guardian_create(fk_system *sys, fk_guardian_kind kind, const fk_props *props,
                           const fk_strategy *strategy)
{
    bool is_custom = props != NULL || strategy != NULL;
    if (kind == FK_GUARDIAN_ROOT) return is_custom ? FK_E_ROOT_FIXED : FK_E_NAME_TAKEN;
    if ((unsigned)kind > FK_GUARDIAN_ROOT) return FK_E_INVALID;
    bool is_there = fk__guardian_is_alive(sys, kind);
    if (kind == FK_GUARDIAN_USER) {
        return is_there ? FK_E_NAME_TAKEN : user_create(sys, props, strategy);
    }
    if (is_there) return is_custom ? FK_E_SYSTEM_FIXED : FK_E_NAME_TAKEN;
    fk_props own = fk__system_guardian_props();
    own.before_restart = guardian_keep;
    FK_TRY(create(sys, FK_STR("system"), &own, &sys->top.system));
    note(sys, FK_GUARDIAN_SYSTEM, sys->top.system);
    return is_custom ? FK_E_SYSTEM_FIXED : FK_OK; /* made all the same */
}

fk_err fk__guardians_link(fk_system *sys)
{
    FK_TRY(create(sys, FK_STR("temp"), &TEMP, &sys->top.temp));
    FK_TRY(create(sys, FK_STR("deadLetters"), &DEAD_LETTERS, &sys->top.dead_letters));
    fk_local *local = fk__local_enter(sys);
    /* Nothing runs yet, so their tokens are ours. */
    fk_err err = fk__watch(local, sys->top.system, sys->guardians[FK_GUARDIAN_USER].ref, NULL);
    if (err == FK_OK) {
        err = fk__watch(local, sys->top.root, sys->guardians[FK_GUARDIAN_SYSTEM].ref, NULL);
    }
    fk__local_leave(local);
    return err;
}

/* ---- who lives --------------------------------------------------------------------------------- */

bool fk__guardian_is_alive(const fk_system *sys, fk_guardian_kind kind)
{
    return fk__half_load(&sys->guardians[kind].alive, FK_ACQUIRE) != 0;
}

void fk__guardian_stopped(fk_system *sys, fk_local *local, fk_ref ref)
{
    int kind = 0;
    while (kind < FK_GUARDIAN_KINDS && !fk_ref_equal(sys->guardians[kind].ref, ref)) kind++;
    if (kind == FK_GUARDIAN_KINDS) {
        fk__event(sys, local,
                  &(fk_event){ .kind = FK_EVENT_GUARDIAN,
                               .actor = ref,
                               .reason = "stopped, but it was never a guardian" });
        return;
    }
    fk__half_store(&sys->guardians[kind].alive, 0, FK_SEQ_CST);
    if (fk__guardian_is_alive(sys, FK_GUARDIAN_ROOT)) return;
    fk__terminate_over(sys, local);
    if (kind == FK_GUARDIAN_ROOT) fk__promises_give_up(local);
}

fk_ref fk_guardian(fk_system *sys, fk_guardian_kind kind)
{
    if ((unsigned)kind > FK_GUARDIAN_ROOT) return FK_REF_NONE;
    return sys->guardians[kind].ref;
}

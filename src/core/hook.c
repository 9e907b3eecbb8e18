/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/hook.h"

#include "base/map.h"
#include "base/safeguard.h"
#include "core/event.h"
#include "core/guardian.h"
#include "core/terminate.h"

enum { HOOK_SECONDS = 10 };

typedef struct fk_hook {
    fk_ref actor;
    fk_time deadline; /* how long it has */
} fk_hook;

/* The state of /system. */
typedef struct fk_conductor {
    fk_map hooks; /* by slot plus one */
    bool is_ending;
} fk_conductor;

typedef struct fk_hook_register_msg {
    fk_time deadline;
} fk_hook_register_msg;
typedef struct fk_hook_done_msg {
    uint8_t none;
} fk_hook_done_msg;
typedef struct fk_hook_due {
    fk_ref actor;
} fk_hook_due;

static const fk_type fk_type_fk_hook_register_msg = { "fk_hook_register",
                                                      sizeof(fk_hook_register_msg),
                                                      _Alignof(fk_hook_register_msg), NULL };
static const fk_type fk_type_fk_hook_done_msg = { "fk_hook_done", sizeof(fk_hook_done_msg), 1,
                                                  NULL };
static const fk_type fk_type_fk_hook_due = { "fk_hook_due", sizeof(fk_hook_due),
                                             _Alignof(fk_hook_due), NULL };
const fk_type fk_type_fk_termination_hook = { "fk_termination_hook", sizeof(fk_termination_hook),
                                              _Alignof(fk_termination_hook), NULL };

static void hook_event(fk_ctx *ctx, fk_ref actor, const char *reason)
{
    fk_system *sys = fk_system_of(ctx);
    fk__event(sys, &fk__ctx_worker(ctx)->local,
              &(fk_event){ .kind = FK_EVENT_HOOK, .actor = actor, .reason = reason });
}

static uint64_t hook_key(fk_ref actor)
{
    return (uint64_t)actor.slot + 1;
}

static void end_if_done(fk_ctx *ctx, fk_conductor *self)
{
    if (!self->is_ending || (self->hooks.count != 0 && FK_SAFEGUARD(HOOKS_AWAITED))) return;
    bool is_ours = fk__terminate_reach(fk_system_of(ctx), &fk__ctx_worker(ctx)->local,
                                       FK_TERMINATION_SYSTEM, "all hooks are done");
    if (!is_ours) return;                     /* by force: whoever does it stops us */
    fk__events_stop_sinks(fk_system_of(ctx)); /* logs end here, events with the root */
    fk_stop_self(ctx);
}

static void hook_remove(fk_ctx *ctx, fk_conductor *self, fk_ref actor, const char *reason)
{
    fk_hook *hook = fk__map_get(&self->hooks, hook_key(actor));
    if (hook == NULL || !fk_ref_equal(hook->actor, actor)) return; /* it has answered already */
    fk__map_remove(&self->hooks, hook_key(actor));
    fk__cache_free(&fk__ctx_worker(ctx)->local.cache, hook, sizeof(*hook));
    fk_timer_cancel(ctx, hook_key(actor));
    if (reason != NULL) hook_event(ctx, actor, reason);
    end_if_done(ctx, self);
}

/* Tells it, and gives it its time. Who cannot be told is passed over: the end must not wait for
 * ever, least of all for memory. */
static bool hook_ask(fk_ctx *ctx, const fk_hook *hook)
{
    uint64_t key = hook_key(hook->actor);
    fk_out due = { &fk_type_fk_hook_due, &(fk_hook_due){ hook->actor } };
    if (fk_timer_start(ctx, key, FK_TIMER_ONCE, hook->deadline, due) != FK_OK) return false;
    fk_out ask = { &fk_type_fk_termination_hook, &(fk_termination_hook){ hook->deadline } };
    return fk_tell(ctx, hook->actor, ask) == FK_OK;
}

static fk_err hook_add(fk_ctx *ctx, fk_conductor *self, fk_ref actor, fk_time deadline)
{
    fk_cache *cache = &fk__ctx_worker(ctx)->local.cache;
    FK_TRY(fk_watch(ctx, actor));
    FK_TRY(fk__map_reserve(cache, &self->hooks, FK_SITE("table of hooks")));
    fk_hook *hook = fk__cache_alloc(cache, sizeof(*hook), FK_SITE("termination hook"));
    if (hook == NULL) return cache->err;
    *hook = (fk_hook){ actor, deadline };
    fk__map_put(&self->hooks, hook_key(actor), hook);
    if (self->is_ending && !hook_ask(ctx, hook)) {
        hook_remove(ctx, self, actor, "could not be told: passed over");
    }
    return FK_OK;
}

static void on_register(fk_ctx *ctx, fk_conductor *self, const fk_msg *msg, fk_time deadline)
{
    fk_ref actor = msg->sender;
    if (fk_ref_is_none(actor)) return;
    const fk_hook *old = fk__map_get(&self->hooks, hook_key(actor));
    if (old != NULL && fk_ref_equal(old->actor, actor)) return;
    /* Its slot was that of another, whose end we have not been told of yet. */
    if (old != NULL) hook_remove(ctx, self, old->actor, "stopped before it had answered");
    fk_err err = hook_add(ctx, self, actor, deadline);
    if (err != FK_OK) hook_event(ctx, actor, "could not be registered: no memory");
}

static void on_user_stopped(fk_ctx *ctx, fk_conductor *self)
{
    fk_system *sys = fk_system_of(ctx);
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_hook *hook;
    uint32_t cursor = 0;
    fk__terminate_begin(sys, local, "/user has stopped");
    self->is_ending = true;
    if (!fk__terminate_reach(sys, local, FK_TERMINATION_HOOKS, "/user has stopped")) return;
    while ((hook = fk__map_next(&self->hooks, &cursor)) != NULL) {
        if (hook_ask(ctx, hook)) continue;
        hook_remove(ctx, self, hook->actor, "could not be told: passed over");
        cursor = 0; /* the table has changed; who is asked twice answers once */
    }
    end_if_done(ctx, self);
}

static fk_err conductor_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_conductor *self = state;
    const fk_terminated *terminated = FK_AS(fk_terminated, msg);
    const fk_hook_due *due = FK_AS(fk_hook_due, msg);
    const fk_hook_register_msg *reg = FK_AS(fk_hook_register_msg, msg);
    if (reg != NULL)
        on_register(ctx, self, msg, reg->deadline);
    else if (FK_AS(fk_hook_done_msg, msg) != NULL)
        hook_remove(ctx, self, msg->sender, NULL);
    else if (due != NULL)
        hook_remove(ctx, self, due->actor, "did not answer in its time: passed over");
    else if (terminated == NULL)
        return fk_unhandled(ctx, msg);
    else if (fk_ref_equal(terminated->actor, fk_guardian(fk_system_of(ctx), FK_GUARDIAN_USER)))
        on_user_stopped(ctx, self);
    else
        hook_remove(ctx, self, terminated->actor, "stopped before it had answered");
    return FK_OK;
}

static void conductor_stop(fk_ctx *ctx, void *state)
{
    fk_conductor *self = state;
    fk_cache *cache = &fk__ctx_worker(ctx)->local.cache;
    uint32_t cursor = 0;
    fk_hook *hook;
    while ((hook = fk__map_next(&self->hooks, &cursor)) != NULL) {
        fk__cache_free(cache, hook, sizeof(*hook));
    }
    fk__map_fini(cache, &self->hooks);
}

fk_props fk__system_guardian_props(void)
{
    return (fk_props){ .receive = conductor_receive,
                       .stop = conductor_stop,
                       .state_size = sizeof(fk_conductor) };
}

/* ---- the public functions ----------------------------------------------------------------------- */

fk_err fk_hook_register(fk_ctx *ctx, fk_time deadline)
{
    if (deadline < 0) return FK_E_INVALID;
    if (deadline == 0) deadline = FK_SECONDS(HOOK_SECONDS);
    fk_ref system = fk_guardian(fk_system_of(ctx), FK_GUARDIAN_SYSTEM);
    fk_hook_register_msg reg = { deadline };
    return fk_tell(ctx, system, (fk_out){ &fk_type_fk_hook_register_msg, &reg });
}

fk_err fk_hook_done(fk_ctx *ctx)
{
    fk_ref system = fk_guardian(fk_system_of(ctx), FK_GUARDIAN_SYSTEM);
    return fk_tell(ctx, system, (fk_out){ &fk_type_fk_hook_done_msg, &(fk_hook_done_msg){ 0 } });
}

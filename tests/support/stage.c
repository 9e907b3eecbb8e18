/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fraktor/registry.h"

/* ---- what is kept ---------------------------------------------------------------------------- */

void stage_path(stage *s, fk_ref ref, char path[STAGE_PATH])
{
    char text[STAGE_PATH * 2] = "";
    path[0] = '\0';
    if (s->r.sys == NULL) return; /* it is only being made */
    if (fk_path_of(s->r.sys, ref, text, sizeof(text)) == 0) return;
    char *mark = strrchr(text, '#');
    if (mark != NULL) *mark = '\0';
    const char *start = strchr(text + strlen("fraktor://"), '/');
    snprintf(path, STAGE_PATH, "%.*s", STAGE_PATH - 1, start != NULL ? start : "");
}

static void on_event(void *user, const fk_event *event)
{
    stage *s = (stage *)user; /* its rig comes first */
    stage_event kept = { .kind = event->kind,
                         .actor = event->actor,
                         .other = event->other,
                         .err = event->err,
                         .directive = event->directive,
                         .count = event->count,
                         .from = event->from,
                         .to = event->to,
                         .reason = event->reason };
    if (!fk_ref_is_none(event->actor)) stage_path(s, event->actor, kept.path);
    if (event->failure != NULL) {
        kept.phase = event->failure->phase;
        kept.type = event->failure->type;
        snprintf(kept.detail, sizeof(kept.detail), "%s", event->failure->detail);
    }
    pthread_mutex_lock(&s->r.lock);
    if (s->events < STAGE_EVENTS) s->event[s->events++] = kept;
    pthread_mutex_unlock(&s->r.lock);
}

void stage_note(stage *s, const char *format, ...)
{
    va_list args;
    pthread_mutex_lock(&s->r.lock);
    if (s->len != 0) s->diary[s->len++] = ' ';
    va_start(args, format);
    int len = vsnprintf(s->diary + s->len, sizeof(s->diary) - s->len, format, args);
    va_end(args);
    CHECK(len > 0);
    s->len += (size_t)len;
    CHECK(s->len < sizeof(s->diary) - 1);
    pthread_mutex_unlock(&s->r.lock);
}

/* ---- the system ------------------------------------------------------------------------------ */

void stage_init(stage *s)
{
    memset(s, 0, sizeof(*s));
    rig_init(&s->r);
}

fk_system_config stage_config(stage *s, fk_system_config config)
{
    if (config.name == NULL) config.name = "test";
    if (config.workers == 0) config.workers = FK_WORKERS_NONE;
    if (config.on_event == NULL) config.on_event = on_event;
    config.user = s;
    config.port = &s->r.port;
    return config;
}

fk_err stage_try_start(stage *s, fk_system_config config)
{
    config = stage_config(s, config);
    return rig_try_start(&s->r, &config);
}

void stage_start_with(stage *s, fk_system_config config)
{
    stage_init(s);
    CHECK_OK(stage_try_start(s, config));
}

void stage_start(stage *s)
{
    stage_start_with(s, (fk_system_config){ 0 });
}

void stage_end(stage *s)
{
    rig_stop(&s->r);
}

void stage_forget(stage *s)
{
    rig_run(&s->r);
    s->len = 0;
    s->diary[0] = '\0';
    s->events = 0;
}

void stage_expect(stage *s, const char *words)
{
    rig_run(&s->r);
    CHECK_STR(s->diary, words);
    s->len = 0;
    s->diary[0] = '\0';
}

size_t stage_count(const stage *s, fk_event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < s->events; i++) count += s->event[i].kind == kind;
    return count;
}

const stage_event *stage_last(const stage *s, fk_event_kind kind)
{
    size_t i = s->events;
    while (i > 0 && s->event[i - 1].kind != kind) i--;
    CHECK(i > 0);
    return &s->event[i - 1];
}

void stage_expect_steps(const stage *s, const char *steps)
{
    char text[512] = "";
    size_t len = 0;
    for (size_t i = 0; i < s->events; i++) {
        if (s->event[i].kind != FK_EVENT_TERMINATION) continue;
        int n = snprintf(text + len, sizeof(text) - len, "%s%s>%s", len != 0 ? " " : "",
                         s->event[i].from, s->event[i].to);
        len += (size_t)n;
        CHECK(len < sizeof(text));
    }
    CHECK_STR(text, steps);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void say(role *self, const char *what)
{
    if (!self->is_quiet) stage_note(self->stage, "%s.%s", self->name, what);
}

void role_spawn_child(fk_ctx *ctx, role *parent, role *self)
{
    self->stage = parent->stage;
    fk_props props = role_props(self);
    player first = { self, 0 };
    props.init = &first;
    CHECK_OK(fk_spawn_child(ctx, fk_str_of(self->name), &props, &self->ref));
}

static fk_err player_start(fk_ctx *ctx, void *state)
{
    role *self = ((player *)state)->role;
    self->starts++;
    self->ref = fk_self(ctx);
    say(self, "start");
    if (self->start_fails > 0) {
        self->start_fails--;
        return fk_fail(ctx, FK_E_INVALID, "start");
    }
    for (int i = 0; i < ROLE_CHILDREN && self->child[i] != NULL; i++) {
        role_spawn_child(ctx, self, self->child[i]);
    }
    return self->on_start != NULL ? self->on_start(ctx, self) : FK_OK;
}

static void player_stop(fk_ctx *ctx, void *state)
{
    role *self = ((player *)state)->role;
    say(self, "stop");
    if (self->on_stop != NULL) self->on_stop(ctx, self);
}

static void player_before(fk_ctx *ctx, void *state, fk_err why)
{
    role *self = ((player *)state)->role;
    CHECK(why != FK_OK);
    say(self, "before");
    if (self->on_before != NULL) self->on_before(ctx, self);
}

static fk_err player_after(fk_ctx *ctx, void *state, fk_err why)
{
    const player *p = state;
    role *self = p->role;
    CHECK(why != FK_OK);
    CHECK_U64(p->total, 0); /* as new */
    say(self, "after");
    if (self->after_fails == 0) return FK_OK;
    self->after_fails--;
    return fk_fail(ctx, FK_E_TIMEOUT, "after");
}

static void terminated(role *self, const fk_terminated *end)
{
    char path[STAGE_PATH];
    stage_path(self->stage, end->actor, path);
    stage_note(self->stage, "%s!%s%s", self->name, path, end->existence_confirmed ? "" : "?");
}

fk_err player_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    player *p = state;
    role *self = p->role;
    const num *value = FK_AS(num, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (call != NULL) return call->fn(ctx, call->arg);
    if (value != NULL)
        stage_note(self->stage, "%s=%llu", self->name, (unsigned long long)(p->total += value->n));
    else if (msg->type == &fk_type_text)
        stage_note(self->stage, "%s:%.*s", self->name, (int)msg->len, (const char *)msg->data);
    else if (end != NULL)
        terminated(self, end);
    else
        return fk_unhandled(ctx, msg);
    return FK_OK;
}

/* init is the caller's to fill in: it must live until the spawn. */
fk_props role_props(role *self)
{
    return (fk_props){ .receive = player_receive,
                       .start = player_start,
                       .stop = player_stop,
                       .state_size = sizeof(player),
                       .strategy = self->strategy,
                       .before_restart = self->has_before ? player_before : NULL,
                       .after_restart = self->has_after ? player_after : NULL };
}

void role_spawn(stage *s, role *self)
{
    self->stage = s;
    fk_props props = role_props(self);
    player first = { self, 0 };
    props.init = &first;
    CHECK_OK(fk_spawn(s->r.sys, fk_str_of(self->name), &props, &self->ref));
    rig_run(&s->r);
}

fk_directive role_decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    const player *p = state;
    (void)ctx;
    (void)failure;
    return p->role->answer;
}

/* ---- messages -------------------------------------------------------------------------------- */

void role_send(role *self, uint64_t n)
{
    CHECK_OK(fk_send(self->stage->r.sys, self->ref, FK_MSG(num, n)));
}

void role_call(role *self, rig_call_fn fn, void *arg)
{
    CHECK_OK(fk_send(self->stage->r.sys, self->ref, FK_MSG(rig_call, fn, arg)));
}

static fk_err call_fail(fk_ctx *ctx, void *arg)
{
    return fk_fail(ctx, (fk_err)(uintptr_t)arg, "asked to fail");
}

void role_fail(role *self, fk_err err)
{
    role_call(self, call_fail, (void *)(uintptr_t)err);
}

static fk_err call_watch(fk_ctx *ctx, void *arg)
{
    const role *other = arg;
    CHECK_OK(fk_watch(ctx, other->ref));
    return FK_OK;
}

void role_watch(role *self, const role *other)
{
    role_call(self, call_watch, (void *)(uintptr_t)other);
}

bool role_is_alive(const role *self)
{
    return fk_is_alive(self->stage->r.sys, self->ref);
}

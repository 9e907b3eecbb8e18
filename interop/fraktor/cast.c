/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cast.h"

#include "event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOOD_STEP = 500 };

/* The message being handled, as one to be sent. */
static fk_out again(const fk_msg *msg, fk_str *room)
{
    if (msg->type != &fk_type_text && msg->type != &fk_type_bytes) {
        return (fk_out){ msg->type, msg->data };
    }
    *room = (fk_str){ msg->data, msg->len };
    return (fk_out){ msg->type, room };
}

static fk_err echo_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_str room;
    (void)state;
    return fk_reply(ctx, again(msg, &room));
}

static fk_err forward_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *at = state;
    const aim *next = FK_AS(aim, msg);
    if (next == NULL) return fk_forward(ctx, *at);
    *at = next->at;
    return FK_OK;
}

/* Calls whoever it is told of. */
static fk_err caller_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_ref *ref = FK_AS(fk_ref, msg);
    (void)state;
    return ref != NULL ? fk_tell(ctx, *ref, FK_TEXT("called")) : fk_unhandled(ctx, msg);
}

static const fk_props ECHO = { .receive = echo_receive };

static fk_err giver_start(fk_ctx *ctx, void *state)
{
    return fk_spawn_child(ctx, FK_STR(""), &ECHO, state);
}

/* Answers anything with a reference that nobody can know otherwise. */
static fk_err giver_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_ref *hidden = state;
    (void)msg;
    return fk_reply(ctx, FK_MSG_REF(*hidden));
}

/* Some of a kind, for wildcards. */
static fk_err pool_start(fk_ctx *ctx, void *state)
{
    static const char *const NAMES[] = { "w-1", "w-2", "w-3", "other" };
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        fk_ref child;
        fk_err err = fk_spawn_child(ctx, fk_str_of(NAMES[i]), &ECHO, &child);
        if (err != FK_OK) return err;
    }
    return FK_OK;
}

static fk_err pool_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

/* ---- the sink, and the flood that fills it ------------------------------------------------------ */

typedef struct sink {
    int64_t count, last, wrong;
} sink;

static void sink_report(sink *self)
{
    event_begin("sink");
    event_number("count", self->count);
    event_number("last", self->last);
    event_number("wrong", self->wrong);
    event_end();
    *self = (sink){ 0 };
}

/* Each number must be the one after the last. */
static fk_err sink_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    sink *self = state;
    char text[24] = "";
    if (msg->type == &fk_type_report) {
        sink_report(self);
        return FK_OK;
    }
    if (msg->type != &fk_type_text || msg->len >= sizeof text) return fk_unhandled(ctx, msg);
    memcpy(text, msg->data, msg->len);
    int64_t number = strtoll(text, NULL, 10);
    self->count++;
    if (number != self->last + 1) self->wrong++;
    self->last = number;
    return number % FLOOD_STEP == 0 ? fk_reply(ctx, FK_MSG(fk_long, number)) : FK_OK;
}

typedef struct flood {
    fk_ref sink;
    int64_t total, sent;
} flood;

static fk_err flood_send(fk_ctx *ctx, flood *self, int64_t up_to)
{
    while (self->sent < up_to && self->sent < self->total) {
        char text[24];
        self->sent++;
        int len = snprintf(text, sizeof text, "%" PRId64, self->sent);
        fk_err err = fk_tell(ctx, self->sink, FK_TEXT_AT(((fk_str){ text, (size_t)len })));
        if (err != FK_OK) return err;
    }
    return FK_OK;
}

static fk_err flood_start(fk_ctx *ctx, void *state)
{
    return flood_send(ctx, state, 2 * FLOOD_STEP);
}

static fk_err flood_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    flood *self = state;
    const fk_long *confirmed = FK_AS(fk_long, msg);
    if (confirmed == NULL) return fk_unhandled(ctx, msg);
    if (*confirmed < self->total) return flood_send(ctx, self, *confirmed + 2 * FLOOD_STEP);
    event_begin("flooded");
    event_number("count", self->sent);
    event_end();
    fk_stop_self(ctx);
    return FK_OK;
}

fk_err cast_flood(fk_system *sys, fk_ref to, int64_t total)
{
    const flood init = { .sink = to, .total = total };
    const fk_props props = {
        .receive = flood_receive, .start = flood_start, .state_size = sizeof init, .init = &init
    };
    fk_ref ref;
    return fk_spawn(sys, FK_STR(""), &props, &ref);
}

/* ---- all of them ------------------------------------------------------------------------------- */

static const struct {
    const char *kind;
    fk_props props;
} CAST[] = {
    { "echo", { .receive = echo_receive } },
    { "sink", { .receive = sink_receive, .state_size = sizeof(sink) } },
    { "forward", { .receive = forward_receive, .state_size = sizeof(fk_ref) } },
    { "caller", { .receive = caller_receive } },
    { "giver", { .receive = giver_receive, .start = giver_start, .state_size = sizeof(fk_ref) } },
    { "pool", { .receive = pool_receive, .start = pool_start } },
};

const fk_props *cast_props(const char *kind)
{
    for (size_t i = 0; i < sizeof CAST / sizeof CAST[0]; i++) {
        if (strcmp(CAST[i].kind, kind) == 0) return &CAST[i].props;
    }
    return NULL;
}

fk_err cast_spawn(fk_system *sys)
{
    for (size_t i = 0; i < sizeof CAST / sizeof CAST[0]; i++) {
        fk_ref ref;
        fk_err err = fk_spawn(sys, fk_str_of(CAST[i].kind), &CAST[i].props, &ref);
        if (err != FK_OK) return err;
    }
    return FK_OK;
}

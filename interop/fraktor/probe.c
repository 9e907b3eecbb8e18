/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "probe.h"

#include "event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 32, IDS = 64, ADDRESS_SIZE = 600, LETTER_PATH_SIZE = 2048, ASK_SECONDS = 3 };

fk_out payload_out(const payload *from, fk_str *room)
{
    if (from->type != &fk_type_text && from->type != &fk_type_bytes) {
        return (fk_out){ from->type, &from->as };
    }
    *room = (fk_str){ from->bytes, from->len };
    return (fk_out){ from->type, room };
}

void payload_free(payload *what)
{
    free(what->bytes);
    what->bytes = NULL;
}

/* ---- identities: ids of the script are texts, ours are numbers ----------------------------------- */

static char ids[IDS][ID_SIZE]; /* each is written before its number is sent */
static uint64_t ids_used;      /* the thread of commands alone */

fk_err probe_identify(fk_system *sys, fk_ref probe, const char *id, fk_str selection)
{
    uint64_t number = ids_used++;
    snprintf(ids[number % IDS], ID_SIZE, "%s", id);
    return fk_select_send_from(sys, probe, selection, probe, FK_IDENTIFY(number));
}

/* ---- the probe ---------------------------------------------------------------------------------- */

static fk_err watch(fk_ctx *ctx, const probe_watch *wish)
{
    fk_err err = wish->on ? fk_watch(ctx, wish->actor) : fk_unwatch(ctx, wish->actor);
    if (err != FK_OK) event_error(wish->on ? "watch" : "unwatch", fk_err_text(err));
    return FK_OK;
}

static fk_err terminated(fk_system *sys, const fk_terminated *end)
{
    event_begin("terminated");
    event_ref("ref", sys, end->actor);
    event_truth("existence_confirmed", end->existence_confirmed);
    event_truth("address_terminated", end->address_terminated);
    event_end();
    return FK_OK;
}

static fk_err identity(fk_system *sys, const fk_identity *who)
{
    event_begin("identity");
    event_text("id", fk_str_of(ids[who->id % IDS]));
    event_ref("ref", sys, who->ref);
    event_end();
    return FK_OK;
}

static fk_err probe_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_system *sys = fk_system_of(ctx);
    const probe_watch *wish = FK_AS(probe_watch, msg);
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    const fk_identity *who = FK_AS(fk_identity, msg);
    (void)state;
    if (wish != NULL) return watch(ctx, wish);
    if (end != NULL) return terminated(sys, end);
    if (who != NULL) return identity(sys, who);
    event_begin("received");
    event_message(sys, msg->type, msg->data, msg->len);
    event_ref("sender", sys, msg->sender);
    event_end();
    return FK_OK;
}

/* ---- what the system says of itself -------------------------------------------------------------- */

static void on_letter(fk_system *sys, const fk_dead_letter *letter)
{
    char path[LETTER_PATH_SIZE];
    fk_dead_letter_path(sys, letter, path, sizeof path);
    event_begin("dead_letter");
    event_text("why", fk_str_of(fk_reason_name(letter->reason)));
    event_text("detail", letter->detail);
    event_message(sys, letter->type, letter->data, letter->len);
    event_text("to", fk_str_of(path));
    event_end();
}

static void on_authority(fk_system *sys, const fk_event *event)
{
    char text[ADDRESS_SIZE + 32];
    fk_authority_info info = { .uid = 0 };
    bool is_ours = strcmp(event->reason, "quarantined by the peer") == 0;
    const char *name = is_ours ? "this_actor_system_quarantined" : "quarantined";
    if (strcmp(event->to, "quarantine") != 0) name = "authority";
    if (fk_authority_state(sys, event->text, &info) != FK_OK) info.uid = 0;
    snprintf(text, sizeof text, "%.*s uid %" PRIu64 ", %s to %s: %s", (int)event->text.len,
             event->text.ptr, info.uid, event->from, event->to, event->reason);
    event_begin(name);
    event_text("text", fk_str_of(text));
    event_end();
}

static void on_remote(const fk_event *event)
{
    event_begin("log");
    event_text("level", fk_str_of(fk_level_name(event->level)));
    event_text("source", event->text);
    event_text("text", fk_str_of(event->reason != NULL ? event->reason : ""));
    event_end();
}

static void on_event(void *user, const fk_event *event)
{
    fk_system *sys = user;
    switch (event->kind) {
    case FK_EVENT_DEAD_LETTER:
    case FK_EVENT_UNHANDLED: on_letter(sys, event->letter); break;
    case FK_EVENT_AUTHORITY: on_authority(sys, event); break;
    case FK_EVENT_REMOTE: on_remote(event); break;
    default: break;
    }
}

fk_err probe_spawn(fk_system *sys, fk_ref *out)
{
    static const fk_props PROPS = { .receive = probe_receive };
    fk_subscription subscription;
    fk_err err = fk_subscribe(sys, FK_TOPIC_DEAD_LETTERS | FK_TOPIC_REMOTE, FK_LEVEL_INFO, on_event,
                              sys, &subscription);
    return err == FK_OK ? fk_spawn(sys, FK_STR("probe"), &PROPS, out) : err;
}

/* ---- questions: each has an actor of its own ------------------------------------------------------ */

typedef struct asker {
    fk_ref to;
    payload question;
    char id[ID_SIZE];
} asker;

static fk_err asker_start(fk_ctx *ctx, void *state)
{
    asker *self = state;
    fk_str room;
    return fk_ask(ctx, self->to, payload_out(&self->question, &room), 0, FK_SECONDS(ASK_SECONDS));
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    asker *self = state;
    const fk_answer *answer = FK_AS(fk_answer, msg);
    if (answer == NULL) return fk_unhandled(ctx, msg);
    event_begin("answer");
    event_text("id", fk_str_of(self->id));
    if (answer->err != FK_OK) {
        event_text("error", fk_str_of(fk_err_name(answer->err)));
    } else {
        event_message(fk_system_of(ctx), answer->reply.type, answer->reply.data, answer->reply.len);
    }
    event_end();
    fk_stop_self(ctx);
    return FK_OK;
}

static void asker_stop(fk_ctx *ctx, void *state)
{
    asker *self = state;
    (void)ctx;
    payload_free(&self->question);
}

fk_err probe_ask(fk_system *sys, const char *id, fk_ref to, payload *question)
{
    asker init = { .to = to, .question = *question };
    const fk_props props = { .receive = asker_receive,
                             .start = asker_start,
                             .stop = asker_stop,
                             .state_size = sizeof init,
                             .init = &init };
    fk_ref ref;
    snprintf(init.id, sizeof init.id, "%s", id);
    fk_err err = fk_spawn(sys, FK_STR(""), &props, &ref);
    if (err != FK_OK) payload_free(question);
    return err;
}

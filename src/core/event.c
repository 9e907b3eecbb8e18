/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publishing: by the thread that noticed, without a lock, to one subscriber after the other. An event
 * that actors or the replay want becomes a record once, in a payload that they share.
 */

#include "core/event.h"

#include "fraktor/log.h"

#include "core/send.h"

/* What callbacks cause goes to other callbacks, and what those cause to none: two levels. */
enum { FRAMES_MAX = 2 };

_Static_assert(FK_EVENT_COUNT < 63, "a topic is a bit, and the last one is FK_TOPIC_REPLAY");

const char *fk_event_name(fk_event_kind kind)
{
#define EVENT_NAME(NAME, name, level, what) name,
    static const char *const NAMES[FK_EVENT_COUNT] = { FK_EVENTS(EVENT_NAME) };
#undef EVENT_NAME
    return (unsigned)kind < FK_EVENT_COUNT ? NAMES[kind] : "unknown";
}

const char *fk_level_name(fk_level level)
{
    static const char *const NAMES[FK_LEVELS] = { "debug", "info", "warn", "error" };
    return (unsigned)level < FK_LEVELS ? NAMES[level] : "unknown";
}

fk_level fk__event_level(fk_event_kind kind)
{
#define EVENT_LEVEL(NAME, name, level, what) FK_LEVEL_##level,
    static const uint8_t EVENT_LEVELS[FK_EVENT_COUNT] = { FK_EVENTS(EVENT_LEVEL) };
#undef EVENT_LEVEL
    return (fk_level)EVENT_LEVELS[kind];
}

/* ---- callbacks --------------------------------------------------------------------------------- */

/* A callback is not called for what it does itself, however indirectly. */
static bool may_call(const fk_reporting *reporting, const fk_subscriber *s)
{
    uint32_t depth = 0;
    for (const fk_frame *frame = reporting->frames; frame != NULL; frame = frame->outer) {
        if (frame->who == s || ++depth == FRAMES_MAX) return false;
    }
    return true;
}

void fk__subscriber_call(fk_system *sys, fk_local *local, const fk_subscriber *s,
                         const fk_event *event)
{
    fk_reporting *reporting = fk__reporting_of(sys);
    if (!may_call(reporting, s)) return;
    fk_frame frame = { reporting->frames, s };
    reporting->frames = &frame;
    if (local != NULL) fk__local_pause(local);
    s->fn(s->user, event);
    if (local != NULL) fk__local_resume(local);
    reporting->frames = frame.outer;
}

/* ---- actors ------------------------------------------------------------------------------------ */

typedef struct fk_publication {
    fk_system *sys;
    fk_local *local; /* the caller's, or NULL */
    const fk_event *event;
    fk_payload *record; /* once somebody needs it */
} fk_publication;

/* The record, made when it is first asked for; NULL without memory. */
static fk_payload *publication_record(fk_publication *p, fk_local *local)
{
    if (p->record != NULL) return p->record;
    const fk_type *type = &fk_type_fk_event_record;
    if (fk__payload_create(&local->cache, p->sys, type, type->size, &p->record) != FK_OK) {
        return NULL;
    }
    fk__record_fill(local, p->event, (fk_event_record *)(void *)p->record->data);
    return p->record;
}

static void publish_to_actor(fk_publication *p, fk_local *local, fk_subscriber *s)
{
    if (fk__cell_resolve(p->sys, s->actor) == NULL) {
        fk__roster_drop(p->sys, s);
        return;
    }
    fk_payload *record = publication_record(p, local);
    if (record != NULL) {
        fk_payload_share(record);
        (void)fk__send(local, s->actor, FK_REF_NONE, FK_MSG_PAYLOAD(record), NULL);
        return;
    }
    fk_event_record own;
    fk__record_fill(local, p->event, &own);
    fk__dead_out(local, FK_REASON_NO_MEMORY, s->actor, FK_REF_NONE,
                 (fk_out){ &fk_type_fk_event_record, &own });
}

/* ---- publishing -------------------------------------------------------------------------------- */

static uint64_t publication_keep(fk_publication *p, fk_local *local)
{
    fk_payload *record = publication_record(p, local);
    if (record == NULL) return FK_NUMBER_NONE; /* without memory nobody can be told later */
    fk_payload_share(record);
    return fk__replay_keep(local, record);
}

static void publish_to(fk_publication *p, fk_local *local, fk_subscriber *s)
{
    if (fk__subscriber_is_gone(s)) return;
    if (s->fn != NULL)
        fk__subscriber_call(p->sys, local, s, p->event);
    else
        publish_to_actor(p, local, s);
}

/* With a local of its own if the caller has none. Then none is held while callbacks run. */
static void publish(fk_publication *p)
{
    fk_system *sys = p->sys;
    fk_local *local = p->local != NULL ? p->local : fk__local_enter(sys);
    fk_roster_key key = { NULL, p->event->kind, p->event->level, FK_NUMBER_NONE };
    if (fk__replay_wants(sys, p->event)) key.number = publication_keep(p, local);
    fk_round round = { .len = 0 };
    while (fk__roster_next(sys, &round, &key)) {
        for (uint32_t i = 0; i < round.len; i++) publish_to(p, local, round.at[i]);
    }
    if (p->record != NULL) fk__payload_put(&local->cache, p->record);
    if (p->local == NULL) fk__local_leave(local);
}

void fk__event(fk_system *sys, fk_local *local, const fk_event *event)
{
    FK_ASSERT((unsigned)event->kind < FK_EVENT_COUNT);
    if (!fk__event_wanted(sys, event->kind)) return;
    fk_event own = *event;
    fk_level least = fk__event_level(own.kind);
    if (own.kind != FK_EVENT_LOG && own.level < least) own.level = least;
    own.at = fk__system_now(sys);
    publish(&(fk_publication){ .sys = sys, .local = local, .event = &own });
}

/* ---- logs -------------------------------------------------------------------------------------- */

static void log_text(fk_system *sys, fk_local *local, fk_level level, fk_ref actor, fk_str text)
{
    if ((unsigned)level >= FK_LEVELS) level = FK_LEVEL_ERROR;
    /* Relaxed: as fk__event_wanted(). */
    if (level < fk__half_load(&sys->events.wanted_log, FK_RELAXED)) return;
    fk__event(sys, local,
              &(fk_event){ .kind = FK_EVENT_LOG, .level = level, .actor = actor, .text = text });
}

void fk_log(fk_system *sys, fk_level level, fk_ref actor, fk_str text)
{
    log_text(sys, NULL, level, actor, text);
}

void fk_log_here(fk_ctx *ctx, fk_level level, fk_str text)
{
    fk_worker *worker = fk__ctx_worker(ctx);
    log_text(worker->sys, &worker->local, level, fk__cell_ref(ctx->cell), text);
}

/* ---- topics of the program's own --------------------------------------------------------------- */

static const fk_type *published_type(fk_out msg)
{
    if (msg.type != &fk_type_payload || msg.data == NULL) return msg.type;
    return ((const fk_payload *)msg.data)->type;
}

/* FK_E_DEAD: not sent, and still the caller's. */
static fk_err send_typed(fk_local *local, fk_subscriber *s, fk_out msg)
{
    if (fk__subscriber_is_gone(s)) return FK_E_DEAD;
    if (fk__cell_resolve(local->sys, s->actor) == NULL) {
        fk__roster_drop(local->sys, s);
        return FK_E_DEAD;
    }
    fk__out_double(msg);
    return fk__send(local, s->actor, FK_REF_NONE, msg, NULL);
}

static fk_err publish_typed(fk_local *local, const fk_roster_key *key, fk_out msg)
{
    bool can_double = fk__out_can_double(msg);
    bool is_left = true; /* to be sent, or to be dropped in the end */
    fk_err worst = FK_OK;
    fk_round round = { .len = 0 };
    while (fk__roster_next(local->sys, &round, key)) {
        for (uint32_t i = 0; i < round.len && is_left; i++) {
            fk_err err = send_typed(local, round.at[i], msg);
            if (err == FK_E_DEAD) continue;
            if (err != FK_OK) worst = err;
            is_left = can_double;
        }
    }
    if (is_left) fk__out_drop(&local->cache, msg);
    return worst;
}

fk_err fk_publish(fk_system *sys, fk_out msg)
{
    fk_err err = FK_E_INVALID;
    fk_local *local = fk__local_enter(sys);
    fk_roster_key key = { .type = published_type(msg), .number = FK_NUMBER_NONE };
    if (key.type == &fk_type_clash || key.type == &fk_type_payload) /* no message at all */
        fk__dead_out(local, FK_REASON_BAD_TYPE, FK_REF_NONE, FK_REF_NONE, msg);
    else if (!fk__out_can_double(msg) && fk__roster_count(sys, &key) > 1)
        fk__dead_out(local, FK_REASON_SEVERAL, FK_REF_NONE, FK_REF_NONE, msg);
    else
        err = publish_typed(local, &key, msg);
    fk__local_leave(local);
    return err;
}

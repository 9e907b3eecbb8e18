/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The replay: the last few rare events, for whoever subscribes later. They are numbered under the
 * lock of the roster, so that a subscriber who got some of them by replay knows, by the number at
 * which it came, which ones of those that are still being published it has had already.
 */

#include "core/event.h"
#include "core/send.h"

enum { KEPT_DEFAULT = 64 };

fk_err fk__replay_init(fk_system *sys, const fk_system_config *config)
{
    fk_events *events = &sys->events;
    void *memory;
    uint32_t max = config->events_replay != 0 ? config->events_replay : KEPT_DEFAULT;
    if (max == FK_REPLAY_NONE) return FK_OK;
    size_t size = (size_t)max * sizeof(fk_payload *);
    FK_TRY(fk__mem_alloc(&sys->mem, size, FK_SITE("replay of events"), &memory));
    memset(memory, 0, size);
    events->replay = memory;
    events->kept_max = max;
    events->kept = config->events_replay_topics & FK_TOPIC_ALL;
    if (events->kept == 0) events->kept = FK_REPLAY_TOPICS;
    return FK_OK;
}

bool fk__replay_wants(const fk_system *sys, const fk_event *event)
{
    if ((sys->events.kept >> event->kind & 1) == 0) return false;
    return event->kind != FK_EVENT_LOG || event->level >= FK_LEVEL_WARN;
}

uint64_t fk__replay_keep(fk_local *local, fk_payload *record)
{
    fk_system *sys = local->sys;
    fk_events *events = &sys->events;
    uint64_t number = FK_NUMBER_NONE;
    fk_payload *old = record; /* who comes too late keeps nothing */
    fk__mem_lock(&sys->mem, &events->lock);
    if (!events->is_stopped) {
        number = events->kept_next++;
        fk_payload **slot = &events->replay[number % events->kept_max];
        old = *slot;
        *slot = record;
    }
    fk__mem_unlock(&sys->mem, &events->lock);
    if (old != NULL) fk__payload_put(&local->cache, old);
    return number;
}

static const fk_event_record *record_of(const fk_payload *payload)
{
    return (const fk_event_record *)(const void *)payload->data;
}

/* A share of an event, if it is still there and the subscriber wants it. */
static fk_payload *replay_share(fk_system *sys, const fk_subscriber *s, uint64_t number)
{
    fk_events *events = &sys->events;
    fk_payload *payload = NULL;
    fk__mem_lock(&sys->mem, &events->lock);
    if (!events->is_stopped && events->kept_next - number <= events->kept_max) {
        payload = events->replay[number % events->kept_max];
        const fk_event_record *record = record_of(payload);
        if (fk__subscriber_passes(events, s, record->kind, record->level))
            fk_payload_share(payload);
        else
            payload = NULL;
    }
    fk__mem_unlock(&sys->mem, &events->lock);
    return payload;
}

void fk__replay_to(fk_system *sys, const fk_subscriber *s, uint64_t until)
{
    uint32_t max = sys->events.kept_max;
    for (uint64_t number = until > max ? until - max : 0; number < until; number++) {
        fk_payload *payload = replay_share(sys, s, number);
        if (payload == NULL) continue;
        fk_local *local = fk__local_enter(sys);
        if (s->fn != NULL) {
            fk_record_view view;
            fk__record_view(record_of(payload), &view);
            fk__subscriber_call(sys, local, s, &view.event);
            fk__payload_put(&local->cache, payload);
        } else {
            (void)fk__send(local, s->actor, FK_REF_NONE, FK_MSG_PAYLOAD(payload), NULL);
        }
        fk__local_leave(local);
    }
}

void fk__replay_clear(fk_system *sys)
{
    fk_events *events = &sys->events;
    for (uint32_t i = 0; i < events->kept_max; i++) {
        fk__mem_lock(&sys->mem, &events->lock);
        fk_payload *payload = events->replay[i];
        events->replay[i] = NULL;
        fk__mem_unlock(&sys->mem, &events->lock);
        fk_payload_put(payload);
    }
}

void fk__replay_fini(fk_system *sys)
{
    fk_events *events = &sys->events;
    fk__mem_free(&sys->mem, events->replay, events->kept_max * sizeof(fk_payload *));
}

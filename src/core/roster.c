/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The roster is a list that publishers walk in rounds. Under the lock a walker counts itself in at
 * the next few subscribers; then it tells them, without the lock. Who is counted stays linked, so the
 * way on is there when it comes back. Who unsubscribes is marked, which every walker looks at before
 * the call; the last walker to leave, or the one who waits for that, unlinks and frees. So
 * subscribing is the only thing that needs memory, nothing is copied when there are thousands, and no
 * user code runs under the lock.
 */

#include "core/event.h"

#include "fraktor/log.h"

#include "base/safeguard.h"

/* ---- who wants what: under the lock ---------------------------------------------------------- */

static void wanted_store(fk_events *events)
{
    uint32_t wanted[FK_EVENT_HALVES] = { 0 };
    uint32_t level = 0;
    for (uint32_t kind = 0; kind < FK_EVENT_COUNT; kind++) {
        if (events->listeners[kind] != 0) wanted[kind / 32] |= 1u << kind % 32;
    }
    while (level < FK_LEVELS && events->log_listeners[level] == 0) level++;
    /* Relaxed: see fk__event_wanted(). */
    for (uint32_t i = 0; i < FK_EVENT_HALVES; i++) {
        fk__half_store(&events->wanted[i], wanted[i], FK_RELAXED);
    }
    fk__half_store(&events->wanted_log, level, FK_RELAXED);
}

static void listeners_add(fk_events *events, fk_topics topics, uint32_t logs, uint32_t n)
{
    for (uint32_t kind = 0; kind < FK_EVENT_COUNT; kind++) {
        if ((topics >> kind & 1) != 0) events->listeners[kind] += n;
    }
    if ((topics & FK_TOPIC_LOG) != 0) events->log_listeners[logs] += n;
}

static void topics_set(fk_events *events, fk_subscriber *s, fk_topics topics, uint8_t logs)
{
    listeners_add(events, s->topics, s->logs, (uint32_t)-1);
    s->topics = topics;
    s->logs = logs;
    listeners_add(events, topics, logs, 1);
    wanted_store(events);
}

/* What a subscriber gets of what it asks for: a kind has one level, but LOG has them all. */
static void topics_update(fk_events *events, fk_subscriber *s)
{
    fk_topics topics = 0;
    uint8_t logs = s->level;
    for (uint32_t kind = 0; kind < FK_EVENT_COUNT; kind++) {
        fk_level level =
            kind != FK_EVENT_LOG ? fk__event_level((fk_event_kind)kind) : FK_LEVEL_ERROR;
        if (fk__subscriber_passes(events, s, (fk_event_kind)kind, level)) {
            topics |= UINT64_C(1) << kind;
        }
    }
    if (s->is_sink && events->level[FK_EVENT_LOG] > logs) logs = events->level[FK_EVENT_LOG];
    topics_set(events, s, topics, logs);
}

bool fk__subscriber_passes(const fk_events *events, const fk_subscriber *s, fk_event_kind kind,
                           fk_level level)
{
    if ((s->asked >> kind & 1) == 0 || level < s->level) return false;
    return !s->is_sink || level >= events->level[kind];
}

/* ---- the list: under the lock ---------------------------------------------------------------- */

static fk_roster *roster_of(fk_events *events, const fk_type *type)
{
    return type != NULL ? &events->typed : &events->all;
}

static void roster_append(fk_events *events, fk_subscriber *s)
{
    fk_roster *roster = roster_of(events, s->type);
    s->previous = roster->last;
    if (roster->last != NULL)
        roster->last->next = s;
    else
        roster->first = s;
    roster->last = s;
}

/* Somebody is left, or out of the list: who waits for that looks again. Release pairs with the load
 * of whoever is about to wait, which is under the lock, and so with nothing: the number is enough. */
static void leaves_change(fk_events *events)
{
    fk__half_add(&events->leaves, 1, FK_RELEASE);
}

static void roster_unlink(fk_events *events, fk_subscriber *s)
{
    fk_roster *roster = roster_of(events, s->type);
    if (s->next != NULL)
        s->next->previous = s->previous;
    else
        roster->last = s->previous;
    if (s->previous != NULL)
        s->previous->next = s->next;
    else
        roster->first = s->next;
    leaves_change(events);
}

static void subscriber_mark(fk_events *events, fk_subscriber *s)
{
    if (fk__subscriber_is_gone(s)) return;
    fk__half_store(&s->is_gone, 1, FK_RELAXED); /* the lock orders it */
    s->asked = 0;
    topics_set(events, s, 0, s->logs);
    if (s->fn == NULL) fk__half_add(&events->actors, (uint32_t)-1, FK_RELAXED);
}

/* Takes a subscriber that is gone out of the list, if nobody is at it and nobody else will do so. */
static bool roster_retire(fk_events *events, fk_subscriber *s)
{
    bool is_free = s->uses == 0 || !FK_SAFEGUARD(SUBSCRIBER_HELD);
    if (!fk__subscriber_is_gone(s) || s->is_awaited || !is_free) return false;
    roster_unlink(events, s);
    return true;
}

static bool subscriber_wants(const fk_subscriber *s, const fk_roster_key *key)
{
    if (fk__subscriber_is_gone(s)) return false;
    if (key->type != NULL) return s->type == key->type;
    if ((s->topics >> key->kind & 1) == 0) return false;
    if (key->kind == FK_EVENT_LOG && key->level < s->logs) return false;
    return key->number >= s->since || !FK_SAFEGUARD(REPLAY_ONCE);
}

/* ---- without the lock ------------------------------------------------------------------------ */

static void leaves_notify(fk_system *sys)
{
    const fk_port *port = &sys->mem.port;
    if (port->notify != NULL) port->notify(port->ctx, (uint32_t *)(void *)&sys->events.leaves);
}

/* With the lock, which is given up meanwhile: until somebody is left, or for no reason. */
static void leaves_await(fk_system *sys)
{
    const fk_port *port = &sys->mem.port;
    fk_half *leaves = &sys->events.leaves;
    uint32_t seen = fk__half_load(leaves, FK_ACQUIRE);
    fk__mem_unlock(&sys->mem, &sys->events.lock);
    if (port->wait != NULL)
        port->wait(port->ctx, (uint32_t *)(void *)leaves, seen, FK_NEVER);
    else
        fk__cpu_relax();
    fk__mem_lock(&sys->mem, &sys->events.lock);
}

/* Those that are out of the list, linked by their next. */
static void subscribers_free(fk_system *sys, fk_subscriber *s)
{
    while (s != NULL) {
        fk_subscriber *next = s->next;
        leaves_notify(sys);
        if (s->ended != NULL) s->ended(s->user);
        fk__mem_free(&sys->mem, s, sizeof(*s));
        s = next;
    }
}

/* With the lock, which is given up. */
static void round_leave(fk_system *sys, const fk_round *round)
{
    fk_events *events = &sys->events;
    fk_subscriber *left = NULL;
    bool is_awaited = false;
    for (uint32_t i = 0; i < round->len; i++) {
        fk_subscriber *s = round->at[i];
        FK_ASSERT(s->uses > 0);
        s->uses--;
        if (s->is_awaited && s->uses == 0) is_awaited = true;
        if (!roster_retire(events, s)) continue;
        s->next = left;
        left = s;
    }
    if (is_awaited) leaves_change(events);
    fk__mem_unlock(&sys->mem, &events->lock);
    if (is_awaited) leaves_notify(sys);
    subscribers_free(sys, left);
}

bool fk__roster_next(fk_system *sys, fk_round *round, const fk_roster_key *key)
{
    fk_events *events = &sys->events;
    fk_round old = *round;
    fk__mem_lock(&sys->mem, &events->lock);
    fk_subscriber *s =
        old.len != 0 ? old.at[old.len - 1]->next : roster_of(events, key->type)->first;
    /* Else a callback that subscribes anew would be told of the same event again and again. */
    if (old.len == 0) round->id_last = events->id_last;
    round->len = 0;
    for (; s != NULL && round->len < FK_ROUND; s = s->next) {
        if (s->id > round->id_last) break;
        if (!subscriber_wants(s, key)) continue;
        s->uses++;
        round->at[round->len++] = s;
    }
    round_leave(sys, &old);
    return round->len != 0;
}

uint32_t fk__roster_count(fk_system *sys, const fk_roster_key *key)
{
    fk_events *events = &sys->events;
    uint32_t count = 0;
    fk__mem_lock(&sys->mem, &events->lock);
    for (fk_subscriber *s = roster_of(events, key->type)->first; s != NULL; s = s->next) {
        if (subscriber_wants(s, key)) count++;
    }
    fk__mem_unlock(&sys->mem, &events->lock);
    return count;
}

void fk__roster_drop(fk_system *sys, fk_subscriber *s)
{
    fk__mem_lock(&sys->mem, &sys->events.lock);
    FK_ASSERT(s->uses > 0);
    subscriber_mark(&sys->events, s); /* whoever leaves it last frees it */
    fk__mem_unlock(&sys->mem, &sys->events.lock);
}

/* ---- subscribing ----------------------------------------------------------------------------- */

static bool is_of_actor(const fk_subscriber *s, fk_ref actor)
{
    return s->fn == NULL && fk_ref_equal(s->actor, actor) && !fk__subscriber_is_gone(s);
}

/* The subscription of an actor to events, or to a type. */
static fk_subscriber *roster_find_actor(fk_events *events, fk_ref actor, const fk_type *type)
{
    fk_subscriber *s = roster_of(events, type)->first;
    while (s != NULL && (s->type != type || !is_of_actor(s, actor))) s = s->next;
    return s;
}

/* Adds it, or more topics to one that is there already: *is_added. */
static fk_err roster_enter(fk_system *sys, fk_subscriber *s, bool *is_added)
{
    fk_events *events = &sys->events;
    fk_subscriber *known = NULL;
    *is_added = false;
    if (events->is_stopped) return FK_E_STOPPING;
    if (s->fn == NULL) {
        if (fk__cell_resolve(sys, s->actor) == NULL) return FK_E_DEAD;
        known = roster_find_actor(events, s->actor, s->type);
    }
    if (known == NULL) {
        s->id = ++events->id_last;
        if (s->fn == NULL) fk__half_add(&events->actors, 1, FK_RELAXED);
        roster_append(events, s);
        topics_update(events, s);
        *is_added = true;
        return FK_OK;
    }
    s->asked &= ~known->asked; /* what is new to it */
    if (s->asked == 0) return FK_E_STATE;
    known->asked |= s->asked;
    topics_update(events, known);
    return FK_OK;
}

/* One who was there already, and is replayed to, may get what is published right now twice. */
static fk_err subscriber_enter(fk_system *sys, fk_subscriber *s, bool replays, fk_subscription *out)
{
    fk_events *events = &sys->events;
    bool is_added;
    fk__mem_lock(&sys->mem, &events->lock);
    uint64_t until = events->kept_next;
    if (replays) s->since = until;
    fk_err err = roster_enter(sys, s, &is_added);
    if (is_added) out->id = s->id;
    if (is_added && replays) s->uses++; /* else it may go at any time */
    fk__mem_unlock(&sys->mem, &events->lock);
    if (replays && err == FK_OK) fk__replay_to(sys, s, until);
    if (is_added && replays) {
        fk__mem_lock(&sys->mem, &events->lock);
        round_leave(sys, &(fk_round){ .len = 1, .at = { s } });
    }
    if (!is_added) fk__mem_free(&sys->mem, s, sizeof(*s));
    return err;
}

fk_err fk__subscribe(fk_system *sys, const fk_subscriber *like, fk_subscription *out)
{
    void *memory;
    fk_topics topics = like->asked & FK_TOPIC_ALL;
    if (like->type == NULL && topics == 0) return FK_E_INVALID;
    if ((unsigned)like->level >= FK_LEVELS) return FK_E_INVALID;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_subscriber), FK_SITE("subscriber"), &memory));
    fk_subscriber *s = memory;
    *s = *like;
    s->asked = topics;
    return subscriber_enter(sys, s, (like->asked & FK_TOPIC_REPLAY) != 0, out);
}

fk_err fk_subscribe(fk_system *sys, fk_topics topics, fk_level level, fk_event_fn fn, void *user,
                    fk_subscription *out)
{
    if (fn == NULL || out == NULL || (unsigned)level >= FK_LEVELS) return FK_E_INVALID;
    fk_subscriber like = { .fn = fn, .user = user, .asked = topics, .level = (uint8_t)level };
    return fk__subscribe(sys, &like, out);
}

/* An actor of another system would have to be told how to read these. */
static bool is_proxy(const fk_system *sys, fk_ref actor)
{
    const fk_cell *cell = fk__cell_resolve(sys, actor);
    return cell != NULL && (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_REMOTE) != 0;
}

static fk_err subscribe_actor(fk_system *sys, const fk_subscriber *like)
{
    fk_subscription unused;
    if (is_proxy(sys, like->actor)) return FK_E_UNSUPPORTED;
    return fk__subscribe(sys, like, &unused);
}

fk_err fk_subscribe_actor(fk_system *sys, fk_ref actor, fk_topics topics)
{
    return subscribe_actor(sys, &(fk_subscriber){ .actor = actor, .asked = topics });
}

fk_err fk_subscribe_type(fk_system *sys, fk_ref actor, const fk_type *type)
{
    if (type == NULL) return FK_E_INVALID;
    return subscribe_actor(sys, &(fk_subscriber){ .actor = actor, .type = type });
}

/* ---- unsubscribing --------------------------------------------------------------------------- */

/* With the lock, which is given up. */
static void subscriber_end(fk_system *sys, fk_subscriber *s, bool waits)
{
    fk_events *events = &sys->events;
    subscriber_mark(events, s);
    if (waits && FK_SAFEGUARD(UNSUBSCRIBE_WAITS)) {
        s->is_awaited = true;
        while (s->uses != 0) leaves_await(sys);
        s->is_awaited = false;
    }
    bool is_out = roster_retire(events, s);
    fk__mem_unlock(&sys->mem, &events->lock);
    if (!is_out) return;
    s->next = NULL;
    subscribers_free(sys, s);
}

fk_err fk_unsubscribe(fk_system *sys, fk_subscription subscription)
{
    fk_events *events = &sys->events;
    fk__mem_lock(&sys->mem, &events->lock);
    fk_subscriber *s = events->all.first;
    while (s != NULL && (s->id != subscription.id || fk__subscriber_is_gone(s))) s = s->next;
    if (s == NULL || s->fn == NULL) {
        fk__mem_unlock(&sys->mem, &events->lock);
        return FK_E_NOT_FOUND;
    }
    /* Two callbacks that wait for each other would do so for ever. */
    subscriber_end(sys, s, fk__reporting_of(sys)->frames == NULL);
    return FK_OK;
}

static fk_err unsubscribe_actor(fk_system *sys, fk_ref actor, fk_topics topics, const fk_type *type)
{
    fk_events *events = &sys->events;
    fk__mem_lock(&sys->mem, &events->lock);
    fk_subscriber *s = roster_find_actor(events, actor, type);
    bool had = s != NULL && (type != NULL || (s->asked & topics) != 0);
    if (had && (type != NULL || (s->asked & ~topics) == 0)) {
        subscriber_end(sys, s, false);
        return FK_OK;
    }
    if (had) {
        s->asked &= ~topics;
        topics_update(events, s);
    }
    fk__mem_unlock(&sys->mem, &events->lock);
    return had ? FK_OK : FK_E_NOT_FOUND;
}

fk_err fk_unsubscribe_actor(fk_system *sys, fk_ref actor, fk_topics topics)
{
    return unsubscribe_actor(sys, actor, topics, NULL);
}

fk_err fk_unsubscribe_type(fk_system *sys, fk_ref actor, const fk_type *type)
{
    return type != NULL ? unsubscribe_actor(sys, actor, 0, type) : FK_E_INVALID;
}

static fk_subscriber *find_any_of(fk_events *events, fk_ref actor)
{
    for (int i = 0; i < 2; i++) {
        fk_subscriber *s = i == 0 ? events->all.first : events->typed.first;
        while (s != NULL && !is_of_actor(s, actor)) s = s->next;
        if (s != NULL) return s;
    }
    return NULL;
}

void fk__events_forget_actor(fk_system *sys, fk_ref actor)
{
    for (;;) {
        fk__mem_lock(&sys->mem, &sys->events.lock);
        fk_subscriber *s = find_any_of(&sys->events, actor);
        if (s == NULL) break;
        subscriber_end(sys, s, false);
    }
    fk__mem_unlock(&sys->mem, &sys->events.lock);
}

/* ---- levels of topics, the beginning and the end --------------------------------------------- */

fk_err fk_log_level_set(fk_system *sys, fk_topics topics, fk_level level)
{
    fk_events *events = &sys->events;
    if ((topics & FK_TOPIC_ALL) == 0 || (unsigned)level >= FK_LEVELS) return FK_E_INVALID;
    fk__mem_lock(&sys->mem, &events->lock);
    for (uint32_t kind = 0; kind < FK_EVENT_COUNT; kind++) {
        if ((topics >> kind & 1) != 0) events->level[kind] = (uint8_t)level;
    }
    for (fk_subscriber *s = events->all.first; s != NULL; s = s->next) {
        if (s->is_sink && !fk__subscriber_is_gone(s)) topics_update(events, s);
    }
    fk__mem_unlock(&sys->mem, &events->lock);
    return FK_OK;
}

fk_err fk__events_init(fk_system *sys, const fk_system_config *config)
{
    fk_events *events = &sys->events;
    fk_subscription unused;
    memset(events->level, FK_LEVEL_INFO, sizeof(events->level));
    FK_TRY(fk__replay_init(sys, config));
    listeners_add(events, events->kept, FK_LEVEL_WARN, 1);
    wanted_store(events);
    if (config->on_event == NULL) return FK_OK;
    return fk_subscribe(sys, FK_TOPIC_ALL, FK_LEVEL_DEBUG, config->on_event, config->user, &unused);
}

/* The first one that is still there: of all, or of those that write logs. */
static fk_subscriber *first_of(const fk_events *events, bool sinks_only)
{
    fk_subscriber *s = events->all.first;
    while (sinks_only && s != NULL && !s->is_sink) s = s->next;
    return s != NULL || sinks_only ? s : events->typed.first;
}

/* Under the lock, which is left for each of them. */
static void subscribers_end(fk_system *sys, bool sinks_only)
{
    fk_events *events = &sys->events;
    fk_subscriber *s;
    while ((s = first_of(events, sinks_only)) != NULL) {
        subscriber_mark(events, s);
        wanted_store(events);
        if (!roster_retire(events, s)) {
            leaves_await(sys);
            continue;
        }
        fk__mem_unlock(&sys->mem, &events->lock);
        s->next = NULL;
        subscribers_free(sys, s);
        fk__mem_lock(&sys->mem, &events->lock);
    }
}

void fk__events_stop_sinks(fk_system *sys)
{
    fk__mem_lock(&sys->mem, &sys->events.lock);
    subscribers_end(sys, true);
    fk__mem_unlock(&sys->mem, &sys->events.lock);
}

void fk__events_stop(fk_system *sys)
{
    fk_events *events = &sys->events;
    fk__mem_lock(&sys->mem, &events->lock);
    bool is_first = !events->is_stopped;
    events->is_stopped = true;
    for (fk_subscriber *s = events->all.first; s != NULL; s = s->next) subscriber_mark(events, s);
    for (fk_subscriber *s = events->typed.first; s != NULL; s = s->next) subscriber_mark(events, s);
    if (is_first) listeners_add(events, events->kept, FK_LEVEL_WARN, (uint32_t)-1);
    wanted_store(events);
    subscribers_end(sys, false);
    fk__mem_unlock(&sys->mem, &events->lock);
    fk__replay_clear(sys);
}

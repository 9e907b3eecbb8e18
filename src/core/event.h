/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_EVENT_H
#define FK_CORE_EVENT_H

/*
 * The event stream. Whoever has something to say asks fk__event_wanted() first, if saying it costs
 * anything, and then calls fk__event() (core/system.h) with no lock held.
 */

#include "core/system.h"

/* Relaxed: whoever learned of a subscription by some other way has synchronised by that. */
static inline bool fk__event_wanted(const fk_system *sys, fk_event_kind kind)
{
    unsigned bit = (unsigned)kind;
    return (fk__half_load(&sys->events.wanted[bit / 32], FK_RELAXED) >> bit % 32 & 1) != 0;
}

/* With the system. FK_E_NOMEM, FK_E_LIMIT. */
FK_MUST_USE fk_err fk__events_init(fk_system *sys, const fk_system_config *config);
/* Ends all subscriptions in the order in which they began, sinks included: they write what they
 * have and are closed. Nothing is published any more when this returns, and nobody is in a callback.
 * Not from a callback. Again: nothing. */
void fk__events_stop(fk_system *sys);
/* Only the sinks, which come before the rest. */
void fk__events_stop_sinks(fk_system *sys);
/* roster.c: the actor has ended. */
void fk__events_forget_actor(fk_system *sys, fk_ref actor);
static inline void fk__events_forget(fk_system *sys, fk_ref actor)
{
    /* Relaxed: one that is missed because it subscribes right now is found by the next event. */
    if (fk__half_load(&sys->events.actors, FK_RELAXED) != 0) fk__events_forget_actor(sys, actor);
}

/* What is looked for in a roster. */
typedef struct fk_roster_key {
    const fk_type *type; /* a topic of the program's own, or else: */
    fk_event_kind kind;
    fk_level level;
    uint64_t number; /* in the replay; FK_NUMBER_NONE: it is not kept */
} fk_roster_key;

/* A few subscribers, which stay until they are left, even when they unsubscribe. */
enum { FK_ROUND = 16 };
typedef struct fk_round {
    uint32_t len;
    uint64_t id_last; /* the newest one when it began: who comes later hears of the next event */
    fk_subscriber *at[FK_ROUND];
} fk_round;

/* Leaves those of the round and takes the next that want it; an empty one begins. False: it is empty
 * again, and there are no more. */
bool fk__roster_next(fk_system *sys, fk_round *round, const fk_roster_key *key);
/* Look before telling it: one callback may unsubscribe another of the same round. Relaxed: only what
 * this thread did must be seen, all others wait for the end of the round. */
static inline bool fk__subscriber_is_gone(const fk_subscriber *s)
{
    return fk__half_load(&s->is_gone, FK_RELAXED) != 0;
}
/* How many that is. */
uint32_t fk__roster_count(fk_system *sys, const fk_roster_key *key);
/* A subscriber of the caller's round turned out to be dead. */
void fk__roster_drop(fk_system *sys, fk_subscriber *s);
/* A copy of a subscriber that names its fn or actor and what it asks for. Otherwise as
 * fk_subscribe(). */
FK_MUST_USE fk_err fk__subscribe(fk_system *sys, const fk_subscriber *like, fk_subscription *out);
/* It has asked for that kind, and the level is high enough; under the lock. */
bool fk__subscriber_passes(const fk_events *events, const fk_subscriber *s, fk_event_kind kind,
                           fk_level level);

static inline fk_reporting *fk__reporting_of(fk_system *sys)
{
    return sys->host.reporting != NULL ? sys->host.reporting(sys->host.ctx) : &sys->reporting;
}

/* The calling thread must not wait for actors: it runs them, or is in a callback, which the end of
 * the system waits for. */
static inline bool fk__is_awaited_itself(fk_system *sys)
{
    if (sys->host.is_inside != NULL && sys->host.is_inside(sys->host.ctx)) return true;
    return fk__is_reporting(fk__reporting_of(sys));
}

/* event.c */
fk_level fk__event_level(fk_event_kind kind);
/* Calls a subscriber of the caller's round, unless this thread is in callbacks deep enough. local:
 * the caller's, if it has one. */
void fk__subscriber_call(fk_system *sys, fk_local *local, const fk_subscriber *s,
                         const fk_event *event);

/* record.c */
void fk__record_fill(fk_local *local, const fk_event *event, fk_event_record *out);

/* An event made of a record, for callbacks: lent as long as both live. */
typedef struct fk_record_view {
    fk_event event;
    fk_dead_letter letter;
    fk_failure failure;
    fk_type type;
} fk_record_view;

void fk__record_view(const fk_event_record *record, fk_record_view *out);

/* replay.c */
FK_MUST_USE fk_err fk__replay_init(fk_system *sys, const fk_system_config *config);
bool fk__replay_wants(const fk_system *sys, const fk_event *event);
/* One share of the record is taken. Its number, or FK_NUMBER_NONE: not kept after all. */
uint64_t fk__replay_keep(fk_local *local, fk_payload *record);
/* What was kept before number `until` and the subscriber asks for. It is the caller's, or counted
 * as in a round. */
void fk__replay_to(fk_system *sys, const fk_subscriber *s, uint64_t until);
void fk__replay_clear(fk_system *sys);
void fk__replay_fini(fk_system *sys);

#define FK_NUMBER_NONE UINT64_MAX

/* Something in an actor's life. */
static inline void fk__publish_life(fk_local *local, fk_event_kind kind, fk_ref actor, fk_err err)
{
    if (FK_LIKELY(!fk__event_wanted(local->sys, kind))) return;
    fk__event(local->sys, local, &(fk_event){ .kind = kind, .actor = actor, .err = err });
}

#endif /* FK_CORE_EVENT_H */

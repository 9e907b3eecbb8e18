/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_ROSTER_H
#define FK_CORE_ROSTER_H

/* Who listens to the events of a system; a part of the system object. */

#include "base/atomic.h"
#include "core/message.h"

/* A callback or an actor. All of it is under the lock of its fk_events, but what is written before
 * it is added and never again. */
typedef struct fk_subscriber {
    struct fk_subscriber *next, *previous;
    uint32_t uses;   /* walkers that are at it: it stays where it is */
    fk_half is_gone; /* has unsubscribed; read by walkers without the lock, too */
    bool is_awaited; /* somebody waits for the last walker, and frees it */
    uint8_t level;   /* asked for; FK_LEVEL_* */
    uint8_t logs;    /* what it gets of LOG begins with this level */
    fk_topics asked;
    fk_topics topics; /* what it gets */
    uint64_t since;   /* kept events before this number were replayed to it */

    /* Never changes. */
    uint64_t id;
    fk_ref actor;        /* instead of fn */
    const fk_type *type; /* of a topic of the program's own */
    fk_event_fn fn;
    void *user;
    void (*ended)(void *user); /* when nobody is in fn any more; may be NULL */
    bool is_sink;              /* obeys the levels of topics */
} fk_subscriber;

/* In the order of subscription. */
typedef struct fk_roster {
    fk_subscriber *first, *last;
} fk_roster;

enum { FK_LEVELS = FK_LEVEL_ERROR + 1, FK_EVENT_HALVES = (FK_EVENT_COUNT + 31) / 32 };

typedef struct fk_events {
    /* Read by everybody who might have something to say: kinds that anybody wants, and of LOG the
     * lowest level (FK_LEVELS: none). Changed under the lock. */
    fk_half wanted[FK_EVENT_HALVES];
    fk_half wanted_log;
    fk_half actors; /* subscriptions of actors */
    fk_half leaves; /* changes when a subscriber that is gone is left; what is waited on */

    fk_lock lock; /* of what follows */
    bool is_stopped;
    fk_roster all;   /* subscribers to events */
    fk_roster typed; /* to types of messages */
    uint64_t id_last;
    uint32_t listeners[FK_EVENT_COUNT];
    uint32_t log_listeners[FK_LEVELS];
    uint8_t level[FK_EVENT_COUNT]; /* of topics, for sinks */
    fk_topics kept;                /* what goes to the replay */
    uint64_t kept_next;            /* number of the next event that is kept */
    uint32_t kept_max;
    fk_payload **replay; /* fk_event_records, by number modulo kept_max */
} fk_events;

#endif /* FK_CORE_ROSTER_H */

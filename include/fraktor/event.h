/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_EVENT_H
#define FK_EVENT_H

/*
 * Events: anything worth knowing that happens in a system. Dead letters, failures and what was
 * decided about them, lives of actors, termination, other systems, and what the program logs.
 */

#include "fraktor/actor.h"
#include "fraktor/path.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_reason {
    FK_REASON_NO_RECEIVER = 0, /* the reference is FK_REF_NONE, made up, or from another system */
    FK_REASON_STOPPED,         /* the receiver has stopped */
    FK_REASON_FULL,            /* its mailbox was full */
    FK_REASON_DROPPED_NEWEST,
    FK_REASON_DROPPED_OLDEST,
    FK_REASON_UNHANDLED, /* its receive did not want it */
    FK_REASON_NO_MEMORY, /* no block for it, or over the memory limit */
    FK_REASON_SYSTEM_STOPPING,
    FK_REASON_BAD_TYPE,    /* two message types of one name but different size */
    FK_REASON_BAD_PATH,    /* sent to a text that is no path or selection */
    FK_REASON_QUARANTINED, /* the system it was meant for is quarantined */
    FK_REASON_SEVERAL,     /* several should get it (a selection, a router): it cannot be copied */
    FK_REASON_LATE_REPLY,  /* to a question that was answered, or given up, before */
    /* Of messages between systems; .detail says more. */
    FK_REASON_FORBIDDEN,         /* another system may not do that here */
    FK_REASON_WRONG_INCARNATION, /* for an actor that was at that path before */
    FK_REASON_NO_CODEC,          /* no codec writes its type, or reads what came */
    FK_REASON_MALFORMED,         /* its codec refused it */
    FK_REASON_TOO_LARGE,         /* for a frame */
    FK_REASON_LIMIT,             /* too many systems, or references to their actors */
    FK_REASON_COUNT
} fk_reason;

FK_API const char *fk_reason_name(fk_reason reason);

/* A message that did not reach an actor. Lent to the callback. fk_dead_letter_path() tells where it
 * was meant to go. */
typedef struct fk_dead_letter {
    fk_reason reason;
    fk_ref to;
    fk_str path; /* what was asked for, when there is no reference; escaped and cut as an event's */
    fk_ref sender;
    const fk_type *type;
    const void *data;
    size_t len;
    fk_str detail; /* what there is to say besides the reason, printable; or empty */
} fk_dead_letter;

typedef enum fk_level {
    FK_LEVEL_DEBUG = 0,
    FK_LEVEL_INFO,
    FK_LEVEL_WARN,
    FK_LEVEL_ERROR,
} fk_level;

/* NAME, name in logs, level, what it says besides .at and .actor. */
#define FK_EVENTS(X)                                                                               \
    X(LOG, "log", INFO, "fk_log(): .text; its own .level")                                         \
    X(DEAD_LETTER, "dead_letter", INFO, ".letter")                                                 \
    X(SUPPRESSED, "suppressed_dead_letter", DEBUG, ".letter that nobody misses")                   \
    X(UNHANDLED, "unhandled", INFO, ".letter")                                                     \
    X(STARTED, "actor_started", DEBUG, "its start hook is done")                                   \
    X(STOPPED, "actor_stopped", DEBUG, "its stop hook is done")                                    \
    X(FAILED, "actor_failed", WARN, ".failure")                                                    \
    X(SUPERVISED, "supervised", WARN, ".failure, .directive, .count of restarts; .other decided")  \
    X(RESTARTED, "actor_restarted", INFO, ".err")                                                  \
    X(RESUMED, "actor_resumed", INFO, "goes on as if nothing had happened")                        \
    X(TERMINATION, "termination", INFO, ".from, .to: see fraktor/system.h; .reason")               \
    X(HOOK, "termination_hook", WARN, "a hook ended early, or was given up: .reason")              \
    X(GUARDIAN, "guardian", WARN, "a guardian was misused: .reason, .text")                        \
    X(SHUTDOWN, "shutdown", INFO, "coordinated shutdown: .text is phase/task; .to, .reason")       \
    X(PATH_FAULT, "path_fault", WARN, "a text that is no path: .text, .fault")                     \
    X(AUTHORITY, "authority", INFO,                                                                \
      "another system's state changed, the .count-th time: .text, .from, .to, .reason")            \
    X(INVALID_ASSOCIATION, "invalid_association", WARN, "sent to a quarantined system: .text")     \
    X(LETTER_DRAINED, "letter_drained", DEBUG, "a deferred message goes out: .text is the system") \
    X(REMOTE, "remote", WARN, "of connections and others' mistakes: .text, .reason, .count")       \
    X(PLACEMENT, "placement", DEBUG,                                                               \
      "where grains are: .placement; .text is kind/key or kind#slot, .to its name, .reason")       \
    X(VIRTUAL_ACTOR, "virtual_actor", DEBUG, "a grain came or went: as PLACEMENT")                 \
    X(PID_CACHE, "pid_cache", DEBUG, "what is remembered of grains elsewhere: as PLACEMENT")       \
    X(CLUSTER, "cluster", INFO, "of members, leases and the store: .text, .to, .reason, .err")

typedef enum fk_event_kind {
#define FK_EVENT_ENUM(NAME, name, level, what) FK_EVENT_##NAME,
    FK_EVENTS(FK_EVENT_ENUM)
#undef FK_EVENT_ENUM
        FK_EVENT_COUNT
} fk_event_kind;

FK_API const char *fk_event_name(fk_event_kind kind); /* "dead_letter" */
FK_API const char *fk_level_name(fk_level level);     /* "info" */

/* Something worth knowing. Lent to the callback; what does not apply is zero. */
typedef struct fk_event {
    fk_event_kind kind;
    fk_level level;
    fk_time at;
    fk_ref actor; /* whom it is about */
    fk_ref other;
    const fk_dead_letter *letter;
    const fk_failure *failure;
    fk_err err;
    fk_directive directive;
    uint32_t count;
    fk_str text; /* not printable bytes escaped, cut when long; of a LOG as it was given */
    fk_path_fault fault;
    const char *from, *to; /* states, by name; from "": it is new */
    const char *reason;
    const struct fk_placement_event *placement; /* see fraktor/placement.h */
} fk_event;

/* Callbacks run on the thread that noticed, must not block, and may send, spawn, subscribe and
 * unsubscribe. What on_dead_letter itself sends in vain is counted, but not reported to it. An event
 * that a callback causes goes to the other callbacks, and what those cause to none. */
typedef void (*fk_dead_letter_fn)(void *user, const fk_dead_letter *letter);
typedef void (*fk_failure_fn)(void *user, const fk_failure *failure);
typedef void (*fk_event_fn)(void *user, const fk_event *event);

/* ---- topics -------------------------------------------------------------------------------------
 * A set of kinds of events. Groups may overlap: whoever asks for both gets an event once, and giving
 * up one kind of a group leaves the rest. */

typedef uint64_t fk_topics;

#define FK_TOPIC(KIND) (UINT64_C(1) << FK_EVENT_##KIND)

#define FK_TOPIC_LOG          FK_TOPIC(LOG)
#define FK_TOPIC_DEAD_LETTERS (FK_TOPIC(DEAD_LETTER) | FK_TOPIC(SUPPRESSED) | FK_TOPIC(UNHANDLED))
#define FK_TOPIC_LIFECYCLE                                                                         \
    (FK_TOPIC(STARTED) | FK_TOPIC(STOPPED) | FK_TOPIC(RESTARTED) | FK_TOPIC(RESUMED))
#define FK_TOPIC_SUPERVISION                                                                       \
    (FK_TOPIC(FAILED) | FK_TOPIC(SUPERVISED) | FK_TOPIC(RESTARTED) | FK_TOPIC(RESUMED))
#define FK_TOPIC_TERMINATION                                                                       \
    (FK_TOPIC(TERMINATION) | FK_TOPIC(HOOK) | FK_TOPIC(GUARDIAN) | FK_TOPIC(SHUTDOWN))
#define FK_TOPIC_REMOTE                                                                            \
    (FK_TOPIC(AUTHORITY) | FK_TOPIC(INVALID_ASSOCIATION) | FK_TOPIC(LETTER_DRAINED) |              \
     FK_TOPIC(REMOTE))
#define FK_TOPIC_PLACEMENT                                                                         \
    (FK_TOPIC(PLACEMENT) | FK_TOPIC(VIRTUAL_ACTOR) | FK_TOPIC(PID_CACHE) | FK_TOPIC(CLUSTER))
#define FK_TOPIC_ALL ((UINT64_C(1) << FK_EVENT_COUNT) - 1)
/* Not a topic but a wish that goes with them: first what the system has kept of those topics, oldest
 * first. It keeps the last config.events_replay of config.events_replay_topics. */
#define FK_TOPIC_REPLAY (UINT64_C(1) << 63)

/* ---- subscribing: any thread, callbacks and inside receive ---------------------------------------
 * Nobody pays for events that nobody has asked for. All subscriptions end with the system. */

typedef struct fk_subscription {
    uint64_t id; /* never used again */
} fk_subscription;

/* fn is called with every event of these topics and at least that level. What is replayed is
 * complete before this returns, has no .letter->data, and other threads may call fn with something
 * new meanwhile. FK_E_INVALID: no topics or no fn. FK_E_STOPPING, FK_E_NOMEM, FK_E_LIMIT. */
FK_API FK_MUST_USE fk_err fk_subscribe(fk_system *sys, fk_topics topics, fk_level level,
                                       fk_event_fn fn, void *user, fk_subscription *out);
/* Nobody is in fn any more when this returns, nor will be; but inside of a callback it does not
 * wait for other threads. FK_E_NOT_FOUND: that has been done. */
FK_API fk_err fk_unsubscribe(fk_system *sys, fk_subscription subscription);

/* An event as an actor gets it: self-contained, texts cut to what fits. */
typedef struct fk_event_record {
    fk_event_kind kind;
    fk_level level;
    fk_time at;
    fk_ref actor, other;
    fk_ref sender;    /* of a dead letter */
    fk_reason letter; /* of a dead letter */
    fk_err err;
    fk_directive directive;
    fk_failure_phase phase;
    uint32_t count;
    int32_t fault_segment;
    uint64_t fault_at;
    uint64_t len;   /* of a dead letter's message */
    char path[256]; /* of .actor; where a dead letter was meant to go */
    char type[64];  /* of the message, by name */
    char text[256];
    char from[32], to[32];
    char reason[96];
    char detail[128]; /* of a failure, or a dead letter */
} fk_event_record;
extern FK_API const fk_type fk_type_fk_event_record;

/* The actor gets an fk_event_record for every event of these topics, besides those it has already.
 * It loses them when it stops. A record that does not reach it is a dead letter, but no event.
 * FK_E_STATE: it had them all. FK_E_DEAD, FK_E_INVALID (no topics), FK_E_UNSUPPORTED (an actor of
 * another system), FK_E_STOPPING, FK_E_NOMEM, FK_E_LIMIT. */
FK_API FK_MUST_USE fk_err fk_subscribe_actor(fk_system *sys, fk_ref actor, fk_topics topics);
/* FK_E_NOT_FOUND: it had none of them. What is being published at this moment may still come. */
FK_API fk_err fk_unsubscribe_actor(fk_system *sys, fk_ref actor, fk_topics topics);

/* Topics of the program's own: a type of message. Whatever is published of it goes, by its own, to
 * each actor that has subscribed to the type. As fk_subscribe_actor(). */
FK_API FK_MUST_USE fk_err fk_subscribe_type(fk_system *sys, fk_ref actor, const fk_type *type);
FK_API fk_err fk_unsubscribe_type(fk_system *sys, fk_ref actor, const fk_type *type);
/* FK_OK also when nobody has subscribed. A message with a drop function goes to one receiver only:
 * with several it is FK_E_INVALID and a dead letter (publish a payload, which is shared).
 * FK_E_FULL, FK_E_NOMEM, FK_E_LIMIT: some did not get it. In every case the message was taken. */
FK_API fk_err fk_publish(fk_system *sys, fk_out msg);

#ifdef __cplusplus
}
#endif
#endif /* FK_EVENT_H */

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
    FK_REASON_SEVERAL,     /* a selection matched several, and it cannot be copied */
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
    X(AUTHORITY, "authority", INFO, "another system's state changed: .text, .from, .to, .reason")  \
    X(INVALID_ASSOCIATION, "invalid_association", WARN, "sent to a quarantined system: .text")

typedef enum fk_event_kind {
#define FK_EVENT_ENUM(NAME, name, level, what) FK_EVENT_##NAME,
    FK_EVENTS(FK_EVENT_ENUM)
#undef FK_EVENT_ENUM
        FK_EVENT_COUNT
} fk_event_kind;

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
    fk_str text; /* not printable bytes escaped, cut when long */
    fk_path_fault fault;
    const char *from, *to; /* states, by name; from "": it is new */
    const char *reason;
} fk_event;

/* Callbacks run on the thread that noticed, must not block, and may send. What on_dead_letter
 * itself sends in vain is counted, but not reported; nor is on_event called for what it does. */
typedef void (*fk_dead_letter_fn)(void *user, const fk_dead_letter *letter);
typedef void (*fk_failure_fn)(void *user, const fk_failure *failure);
typedef void (*fk_event_fn)(void *user, const fk_event *event);

#ifdef __cplusplus
}
#endif
#endif /* FK_EVENT_H */

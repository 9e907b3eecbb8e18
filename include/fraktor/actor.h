/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_ACTOR_H
#define FK_ACTOR_H

/*
 * Actors: what one is made of (fk_props) and what it may do while it handles a
 * message (everything that takes an fk_ctx).
 *
 * An actor handles one message at a time, on one thread at a time, so its state
 * needs no lock. It fails by what receive returns and in no other way; a wild
 * pointer kills the process like in any C program.
 */

#include "fraktor/message.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_system fk_system;
typedef struct fk_ctx fk_ctx; /* lent to receive and the hooks; never keep it */

/* Handles one message. Anything but FK_OK is a failure of the actor. */
typedef fk_err (*fk_receive_fn)(fk_ctx *ctx, void *state, const fk_msg *msg);
typedef fk_err (*fk_start_fn)(fk_ctx *ctx, void *state);
typedef void (*fk_stop_fn)(fk_ctx *ctx, void *state);
typedef void (*fk_before_restart_fn)(fk_ctx *ctx, void *state, fk_err why);
typedef fk_err (*fk_after_restart_fn)(fk_ctx *ctx, void *state, fk_err why);
/* Smaller is more urgent. Runs on the actor's own thread. */
typedef int64_t (*fk_priority_fn)(const fk_msg *msg);

typedef enum fk_mailbox_kind {
    FK_MAILBOX_UNBOUNDED = 0, /* under the system's memory limit */
    FK_MAILBOX_BOUNDED,       /* at most capacity messages; overflow says what then */
    FK_MAILBOX_PRIORITY,      /* most urgent first; equal ones in no particular order */
    FK_MAILBOX_STABLE,        /* most urgent first; equal ones in arrival order */
    FK_MAILBOX_CONTROL,       /* messages with a priority below 0 first, in arrival order */
} fk_mailbox_kind;

typedef enum fk_overflow {
    FK_OVERFLOW_FAIL = 0,    /* the send returns FK_E_FULL; the message is a dead letter */
    FK_OVERFLOW_DROP_NEWEST, /* the send returns FK_OK; the message is a dead letter */
    FK_OVERFLOW_DROP_OLDEST, /* the oldest message in the mailbox is a dead letter */
    FK_OVERFLOW_BLOCK,       /* an outside thread waits; an actor, which must not, gets FAIL */
} fk_overflow;

typedef enum fk_dispatcher {
    FK_DISPATCHER_DEFAULT = 0, /* the system's workers, which share work by stealing */
    FK_DISPATCHER_PINNED,      /* a thread of its own, for actors that block */
} fk_dispatcher;

/* ---- supervision --------------------------------------------------------------------------
 * An actor that fails handles nothing more, nor do its children, until its parent has decided. */

typedef enum fk_directive {
    FK_DIRECTIVE_RESUME = 0, /* goes on with its next message, its state as it is; an actor whose
                                start has failed begins again, within its limit */
    FK_DIRECTIVE_RESTART,    /* goes on with fresh state; mailbox, reference and watchers stay */
    FK_DIRECTIVE_STOP,
    FK_DIRECTIVE_ESCALATE, /* the parent fails in its turn */
} fk_directive;

FK_API const char *fk_directive_name(fk_directive directive);

typedef enum fk_failure_phase {
    FK_PHASE_MESSAGE = 0, /* receive gave an error */
    FK_PHASE_START,       /* the start hook did, before the actor ever handled a message */
    FK_PHASE_RESTART,     /* the start or after_restart hook did, after a restart */
    FK_PHASE_CHILD,       /* a child's failure was escalated */
    FK_PHASE_STOP,        /* the stop hook called fk_fail(): it is only reported */
} fk_failure_phase;

/* Lent. */
typedef struct fk_failure {
    fk_ref actor;
    fk_err err;
    const fk_type *type; /* of the message being handled; NULL: in a hook */
    const char *detail;  /* from fk_fail(), or ""; "" also when there was no memory to keep it */
    fk_failure_phase phase;
} fk_failure;

/* What to do about a child; runs in the parent, as if it were handling a message from the child. */
typedef fk_directive (*fk_decide_fn)(fk_ctx *ctx, void *state, const fk_failure *failure);
/* A failed start, FK_E_KILLED and FK_E_DEATH_PACT stop the actor; all else restarts it. */
FK_API fk_directive fk_decide_default(fk_ctx *ctx, void *state, const fk_failure *failure);
FK_API fk_directive fk_decide_stop(fk_ctx *ctx, void *state, const fk_failure *failure);
FK_API fk_directive fk_decide_escalate(fk_ctx *ctx, void *state, const fk_failure *failure);

typedef enum fk_strategy_kind {
    FK_ONE_FOR_ONE = 0, /* only the child that failed is stopped or restarted */
    FK_ALL_FOR_ONE,     /* all children are */
    FK_REST_FOR_ONE,    /* it and all that were made after it are */
} fk_strategy_kind;

#define FK_RESTARTS_UNLIMITED (-1)
#define FK_RESTARTS_NONE      (-2)

/* How a parent deals with failures of its children. All zero: one for one, fk_decide_default(), at
 * most 10 restarts of a child in a second (unlimited by Pekko's rules), at once. */
typedef struct fk_strategy {
    fk_strategy_kind kind;
    fk_decide_fn decide;
    int32_t restarts; /* of one child in a window; more: it is stopped. 0: the default */
    /* A window begins with the first failure and is that long; 0: it never ends. A failure after its
     * end begins another. FK_RESTARTS_UNLIMITED with a window is 1 restart in each. */
    fk_time within;
    /* With backoff_min the child that failed waits before it is restarted: that long, twice as long
     * each time, up to backoff_max (0: any time), give or take jitter percent; from the start when
     * it ran for longer than backoff_reset (0: backoff_max) without failing. Others that have to be
     * restarted along with it are so at once. Without memory for a timer nobody waits. */
    fk_time backoff_min, backoff_max, backoff_reset;
    uint32_t backoff_jitter; /* 0..100 */
} fk_strategy;

/* What an actor is made of: copied by spawn. All zero but receive is fine. A system keeps a copy of
 * each different one (init and state aside) until it ends, at most 65,536. */
typedef struct fk_props {
    uint32_t size;         /* sizeof(fk_props), or 0 for the layout of release 0.1 */
    uint32_t throughput;   /* messages in a turn; 0: the system's */
    fk_receive_fn receive; /* required */
    fk_start_fn start;     /* before the first message; if it fails, it must undo what it did */
    fk_stop_fn stop;       /* after the last message and after all children */
    size_t state_size;     /* bytes of state, owned by the runtime: zeroed, or ... */
    const void *init;      /* ... copied from here by spawn; so again at every restart */
    void *state;           /* instead: the caller's memory, borrowed until the actor is gone; a
                              restart leaves it alone: let the start hook tidy it */
    fk_mailbox_kind mailbox;
    fk_overflow overflow;    /* of a bounded mailbox */
    uint32_t capacity;       /* of a bounded mailbox; at least 1 */
    uint32_t stash_max;      /* messages in the stash; 0: 1000 */
    fk_priority_fn priority; /* of the priority kinds */
    fk_dispatcher dispatcher;
    fk_strategy strategy; /* for its children */
    /* Around a restart, on the old state and the new. Without before_restart all children are
     * stopped and the stop hook runs; with it, only what it stops itself: the other children are
     * restarted, too. Without after_restart the start hook runs. */
    fk_before_restart_fn before_restart;
    fk_after_restart_fn after_restart;
} fk_props;

/* ---- inside receive and the hooks ------------------------------------------------------- */

FK_API fk_ref fk_self(const fk_ctx *ctx);
/* For an actor that fk_spawn() made, /user; stopping that ends all actors. */
FK_API fk_ref fk_parent(const fk_ctx *ctx);
FK_API fk_system *fk_system_of(const fk_ctx *ctx);
/* The moment this call is made, on the port's clock. */
FK_API fk_time fk_now(const fk_ctx *ctx);

/* Sends. The sender is this actor. FK_OK: the message is in the mailbox, or became a dead
 * letter because the receiver is gone. FK_E_FULL, FK_E_QUARANTINED, FK_E_DEAD, FK_E_UNRESOLVED: the
 * receiver does not take it; FK_E_NOMEM, FK_E_LIMIT, FK_E_INVALID: it could not be sent; then it
 * became a dead letter here. In every case the message has been taken. Whoever returns the error from
 * receive fails with it: a receiver that does not read would take the sender with it. */
FK_API fk_err fk_tell(fk_ctx *ctx, fk_ref to, fk_out msg);
/* To the sender of the message being handled. An answer that the sender does not take is its trouble
 * and a dead letter, no error: so `return fk_reply(...)` is safe. Only FK_E_NOMEM, FK_E_LIMIT and
 * FK_E_INVALID are. Whoever wants to know uses fk_tell(ctx, msg->sender, ...). */
FK_API fk_err fk_reply(fk_ctx *ctx, fk_out msg);
/* Passes the message being handled on, with its original sender; this actor's receive must not
 * touch it afterwards. Large payloads move, the rest is copied. FK_E_STATE as for fk_stash(); all else
 * as for fk_tell(), for this actor chose the receiver. */
FK_API fk_err fk_forward(fk_ctx *ctx, fk_ref to);

/* Makes a child. An empty name gives a generated one ($a, $b, ...). */
FK_API FK_MUST_USE fk_err fk_spawn_child(fk_ctx *ctx, fk_str name, const fk_props *props,
                                         fk_ref *out);
/* Children of this actor. */
FK_API size_t fk_child_count(const fk_ctx *ctx);
/* FK_E_NOT_FOUND: no child of that name lives. */
FK_API FK_MUST_USE fk_err fk_child(fk_ctx *ctx, fk_str name, fk_ref *out);
/* Up to `max` of the living ones, in no particular order; returns how many were written. */
FK_API size_t fk_children(fk_ctx *ctx, fk_ref *out, size_t max);
/* This actor stops when receive returns; what is left in its mailbox becomes dead letters. */
FK_API void fk_stop_self(fk_ctx *ctx);

/* ---- death watch --------------------------------------------------------------------------
 * Exactly one fk_terminated for every watch, when the other has stopped, behind all that it had
 * sent here; at once if it is gone already; none for a restart, none after fk_unwatch(). Whoever
 * gives it to fk_unhandled() fails with FK_E_DEATH_PACT. A restart of the watcher changes nothing. */

typedef struct fk_terminated {
    fk_ref actor;
    bool existence_confirmed; /* false: it was gone, or never there, when the watch began */
    bool address_terminated;  /* its whole system is gone */
} fk_terminated;
extern FK_API const fk_type fk_type_fk_terminated;

/* Watching again, and oneself, is FK_OK and changes nothing. FK_E_STATE: it is watched with another
 * message. FK_E_NOMEM, FK_E_LIMIT: it is not watched. FK_E_FOREIGN: a reference that another system of
 * this process made. */
FK_API FK_MUST_USE fk_err fk_watch(fk_ctx *ctx, fk_ref actor);
/* The same, to be told by a message of one's own, which is taken. */
FK_API FK_MUST_USE fk_err fk_watch_with(fk_ctx *ctx, fk_ref actor, fk_out msg);
/* FK_E_NOT_FOUND: it is not watched (any more). */
FK_API fk_err fk_unwatch(fk_ctx *ctx, fk_ref actor);

/* Replaces receive, remembering the one before; unbecome goes back. FK_E_NOMEM and, 1,024 deep,
 * FK_E_LIMIT change nothing; unbecome without become is FK_E_STATE. */
FK_API FK_MUST_USE fk_err fk_become(fk_ctx *ctx, fk_receive_fn receive);
FK_API FK_MUST_USE fk_err fk_unbecome(fk_ctx *ctx);

/* Sets the message being handled aside; unstash puts all of them before the mailbox, in their
 * old order. FK_E_FULL over stash_max, FK_E_NOMEM, FK_E_STATE (no message, stashed or forwarded
 * already, a receive timeout, or a periodic timer's with a drop function); then the message is
 * still being handled.
 * What is in the stash when the actor stops becomes dead letters. */
FK_API FK_MUST_USE fk_err fk_stash(fk_ctx *ctx);
FK_API FK_MUST_USE fk_err fk_unstash_all(fk_ctx *ctx);

/* The message is not for this actor: reports a dead letter with reason "unhandled" and gives
 * FK_OK, so that receive can return it. */
FK_API fk_err fk_unhandled(fk_ctx *ctx, const fk_msg *msg);
/* Remembers why; returns err, so that receive can return it. detail is copied, up to 120 bytes. */
FK_API fk_err fk_fail(fk_ctx *ctx, fk_err err, const char *detail);

/* ---- timers of this actor ------------------------------------------------------------------
 * A timer has a key, unique within the actor; starting a key again replaces the old timer. The
 * message comes from the actor itself. Never early. A cancelled timer's message never arrives,
 * even if it is already in the mailbox. Timers end with the actor. */

typedef enum fk_timer_mode {
    FK_TIMER_ONCE = 0,
    FK_TIMER_FIXED_DELAY, /* the next period begins when the message has been handled */
    FK_TIMER_FIXED_RATE,  /* keeps the grid; periods missed are skipped, not made up for */
} fk_timer_mode;

/* period is the delay, too. Fails with FK_E_INVALID (negative; zero with a periodic mode),
 * FK_E_NOMEM or FK_E_LIMIT; then an old timer of that key goes on, and msg was dropped. */
FK_API FK_MUST_USE fk_err fk_timer_start(fk_ctx *ctx, uint64_t key, fk_timer_mode mode,
                                         fk_time period, fk_out msg);
/* FK_E_NOT_FOUND when there is no such timer (any more). */
FK_API fk_err fk_timer_cancel(fk_ctx *ctx, uint64_t key);
FK_API bool fk_timer_is_active(const fk_ctx *ctx, uint64_t key);
/* A message of fk_type_receive_timeout whenever no other arrived for that long; 0 ends it. */
FK_API FK_MUST_USE fk_err fk_receive_timeout_set(fk_ctx *ctx, fk_time timeout);

#ifdef __cplusplus
}
#endif
#endif /* FK_ACTOR_H */

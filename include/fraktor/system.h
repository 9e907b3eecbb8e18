/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SYSTEM_H
#define FK_SYSTEM_H

/*
 * Systems. A system is a value: everything hangs off one fk_system pointer, a process
 * may hold many, and nothing is shared between them.
 *
 * All functions here may be called from any thread, inside receive too, except the two that wait
 * for actors, fk_system_stop() and fk_await_stopped(): from inside, and from callbacks, they give
 * FK_E_STATE. sys must be valid; refs may be anything.
 */

#include "fraktor/actor.h"
#include "fraktor/event.h"
#include "fraktor/path.h"
#include "fraktor/port.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fk_codec;

/* How other systems see this one, and what becomes of them: see fraktor/remote.h. */
typedef struct fk_remoting_config {
    const char *host;            /* NULL: no address, and paths are shown without one */
    uint16_t port;               /* 1..65535 with host; with enabled, 0: any that is free */
    fk_time quarantine;          /* how long uids and bad peers are kept out; 0: 5 days; >= 1 s */
    fk_time quarantine_override; /* takes its place when not 0; >= 1 s */
    fk_time give_up_after;       /* unreachable for so long is quarantined; 0: the quarantine */
    uint32_t deferred_max;       /* messages waiting for one system; 0: 1,024 */
    uint32_t deferred_total_max; /* for all of them; 0: 8,192 */

    bool enabled;          /* listens and connects; without it messages to others only wait */
    bool trusting;         /* others may poison and kill actors, and select below /system */
    const char *bind_host; /* an address to listen at; NULL: 127.0.0.1, or ::1 with such a host */
    uint16_t bind_port;    /* 0: port */
    /* Whoever reaches the port can send to every actor, and read what is sent. Without this a
     * bind_host that others can reach is refused (FK_E_FORBIDDEN). */
    bool allow_unencrypted_beyond_loopback;
    const struct fk_codec *const *codecs; /* besides the built-in ones; ends with NULL; or NULL */
    const char *const *large;  /* paths, say "/user/files", whose actors get their messages by a
                                 stream of their own, with larger frames; ends with NULL; or NULL */
    uint32_t outbound_max;     /* messages on their way to one system; 0: 16,384 */
    uint32_t frame_max;        /* bytes of a message with its header; 0: 256 KiB; >= 4 KiB */
    uint32_t frame_max_large;  /* of the large stream; 0: 2 MiB; >= 4 KiB */
    uint32_t connections_max;  /* that others make; 0: 1,024 */
    uint32_t half_open_max;    /* of these, without a handshake; 0: 64 */
    uint32_t watches_max;      /* of one system, in each direction; 0: 10,000 */
    uint32_t references_max;   /* to actors that were only met, in messages; 0: 16,384 */
    uint32_t watchers_max;     /* actors of one system that watch here; 0: an eighth of those */
    fk_time handshake_timeout; /* 0: 20 s; of those that others make, a quarter of that */
    fk_time reconnect_min, reconnect_max; /* delay between attempts; 0: 100 ms, 30 s */
    fk_time heartbeat_every;              /* of watched systems; 0: 1 s */
    fk_time heartbeat_pause;              /* silence that is acceptable on top of that; 0: 10 s */
    fk_time idle_after;     /* an ordinary or large stream without use ends; 0: 5 min */
    fk_time compress_every; /* tables of frequent names are made so often; 0: 1 min; FK_NEVER */
    uint32_t systems_max; /* other systems that are known at a time; 0: 4,096; <= 2^20. The one that
                               is out of reach for the longest time gives way to a new one */
    uint32_t quarantined_max;   /* uids that stay out when their system has given way; 0: 65,536 */
    uint32_t connecting_max;    /* connections of ours at a time that have no answer yet; 0: 64 */
    uint32_t inbound_bytes_max; /* for frames that have come in part, of all connections together;
                                   0: 64 MiB; >= frame_max and frame_max_large */
} fk_remoting_config;

#define FK_WORKERS_NONE UINT32_MAX /* no threads: fk_host_run_once() or the port drives it */

#define FK_REPLAY_NONE UINT32_MAX
/* What is rare and somebody who comes late wants to know. */
#define FK_REPLAY_TOPICS                                                                           \
    (FK_TOPIC(FAILED) | FK_TOPIC(SUPERVISED) | FK_TOPIC_TERMINATION |                              \
     (FK_TOPIC_REMOTE & ~FK_TOPIC(LETTER_DRAINED)) | FK_TOPIC_LOG)

typedef struct fk_system_config {
    uint32_t size;       /* sizeof(fk_system_config), or 0 for the layout of release 0.1 */
    uint32_t workers;    /* 0: one per core; FK_WORKERS_NONE: the caller's thread */
    const char *name;    /* [A-Za-z0-9][A-Za-z0-9_-]*; NULL: "fraktor" */
    uint32_t throughput; /* messages an actor may handle in one turn; 0: 100 */
    uint32_t actors_max; /* alive at once, and questions under way; 0: 16,777,216 */
    fk_time slice;       /* a turn ends after this long, too; 0: 1 ms */
    size_t memory_max;   /* bytes of messages, actors and timers; 0: no limit but the machine's */
    bool pools_malloc;   /* every block by itself from the port: for ASan and valgrind */
    void *user;          /* first argument of the callbacks */
    fk_dead_letter_fn on_dead_letter;
    fk_failure_fn on_failure;
    fk_event_fn on_event; /* a subscription to FK_TOPIC_ALL, from the start */
    /* Instead of a guardian that does nothing but have children: what is sent to /user comes here.
     * Its restart hooks are not used: it keeps its children. user_strategy, when not NULL, takes the
     * place of the strategy in it. */
    const fk_props *user_guardian;
    const fk_strategy *user_strategy;
    fk_err *boot_cause;        /* if not NULL, why: see fk_system_start() */
    const fk_port *port;       /* NULL: the host's; copied */
    fk_path_options paths;     /* rules and limits of paths and names */
    fk_scheme scheme;          /* what its own paths begin with */
    fk_guardian_kind guardian; /* of fk_system_path() */
    uint32_t claims_max;       /* uids claimed or reserved at once; 0: 65,536 */
    fk_remoting_config remoting;
    uint32_t events_replay; /* events kept for FK_TOPIC_REPLAY; 0: 64; FK_REPLAY_NONE */
    fk_topics
        events_replay_topics; /* which; 0: FK_REPLAY_TOPICS. Logs only of level warn or more */
} fk_system_config;

/* Starts a system with its worker threads. Fails with FK_E_INVALID, FK_E_EMPTY and FK_E_SYSTEM (the
 * name), FK_E_AUTHORITY (host, port and bind_host of remoting), FK_E_FORBIDDEN and FK_E_IN_USE (where
 * it should listen), FK_E_UNSUPPORTED (a library without remoting), FK_E_NOMEM, FK_E_LIMIT, FK_E_OS,
 * after which on_event may have been told more; and with
 * FK_E_NOT_BOOTSTRAPPED when its guardians could not be set up: then the config's boot_cause says
 * why (FK_E_STRATEGY, FK_E_INVALID ...). fraktor/boot.h does the same step by step. */
FK_API FK_MUST_USE fk_err fk_system_start(const fk_system_config *config, fk_system **out);
/* Terminates the system (see below), waits for that, joins the threads and frees everything; sys is gone afterwards, so no other thread may use it any more, and payloads that
 * were never sent must have been put back. FK_E_STATE when called inside receive or a callback
 * (nothing happens then). */
FK_API fk_err fk_system_stop(fk_system *sys);

/* Makes an actor under /user. An empty name gives a generated one; any other is checked as by
 * fk_path_check_name(). Fails with FK_E_INVALID, FK_E_NAME, FK_E_RESERVED, FK_E_PERCENT,
 * FK_E_NAME_TAKEN, FK_E_LIMIT, FK_E_NOMEM, FK_E_STOPPING, FK_E_OS, and FK_E_UNSUPPORTED (pinned,
 * without threads). */
FK_API FK_MUST_USE fk_err fk_spawn(fk_system *sys, fk_str name, const fk_props *props, fk_ref *out);

/* Sends without a sender, or in the name of one. As fk_tell(). */
FK_API fk_err fk_send(fk_system *sys, fk_ref to, fk_out msg);
FK_API fk_err fk_send_from(fk_system *sys, fk_ref to, fk_ref sender, fk_out msg);
/* To the system as a whole: to /user. */
FK_API fk_err fk_system_tell(fk_system *sys, fk_out msg);

/* Stops an actor before its next message. Stopping the dead is no error: FK_E_DEAD may be
 * ignored. A guardian's end is the system's: as fk_terminate(). FK_E_RESERVED_NAME: /temp,
 * /deadLetters and /user/KIND, under which grains are, cannot be stopped. */
FK_API fk_err fk_stop(fk_system *sys, fk_ref ref);
/* Stops it after the messages that are already in its mailbox. */
FK_API fk_err fk_poison(fk_system *sys, fk_ref ref);
/* Makes it fail with FK_E_KILLED when it comes to this message: its supervisor decides. */
FK_API fk_err fk_kill(fk_system *sys, fk_ref ref);

/* True while the actor has not stopped. */
FK_API bool fk_is_alive(fk_system *sys, fk_ref ref);
/* Waits from outside until the actor is gone and its name free again. FK_E_TIMEOUT;
 * FK_E_UNSUPPORTED without port->wait. */
FK_API FK_MUST_USE fk_err fk_await_stopped(fk_system *sys, fk_ref ref, fk_time timeout);

/* ---- termination ---------------------------------------------------------------------------
 * The end has an order: nobody can be spawned any more; /user stops with all below it, children
 * before parents; termination hooks are asked and awaited; /system stops; the root stops. The same
 * happens when /user stops or fails, or /system fails. Each step is an FK_EVENT_TERMINATION, its
 * states "running", "stopping_user", "hooks", "stopping_system", "stopping_root", "terminated". */

/* Begins it, and does not wait. Any thread, inside actors too; once is enough, more does no harm. */
FK_API fk_err fk_terminate(fk_system *sys);
/* By force: everybody stops at once, and hooks are not asked. The event of a step that another thread
 * takes at that moment may be missing. */
FK_API fk_err fk_terminate_now(fk_system *sys);
FK_API bool fk_is_terminating(fk_system *sys);
/* Waits from outside. FK_E_TIMEOUT; FK_E_STATE from inside; FK_E_UNSUPPORTED without port->wait. */
FK_API FK_MUST_USE fk_err fk_await_termination(fk_system *sys, fk_time timeout);

/* Called when all actors are gone and before fk_await_termination() returns, the last one given
 * first, on a thread of the system. FK_E_STOPPING: too late. FK_E_NOMEM. */
typedef void (*fk_farewell_fn)(void *user, fk_system *sys);
FK_API FK_MUST_USE fk_err fk_on_termination(fk_system *sys, fk_farewell_fn fn, void *user);

/* An actor that outlives /user (one from fk_boot_extra()) can ask to be told before the end: it gets
 * an fk_termination_hook when /user has stopped, and answers with fk_hook_done() when it is ready.
 * Whoever takes longer than its deadline (0: 10 s) is passed over with a warning (FK_EVENT_HOOK);
 * whoever stops has answered. */
typedef struct fk_termination_hook {
    fk_time deadline; /* how long it has */
} fk_termination_hook;
extern FK_API const fk_type fk_type_fk_termination_hook;
FK_API fk_err fk_hook_register(fk_ctx *ctx, fk_time deadline);
FK_API fk_err fk_hook_done(fk_ctx *ctx);

/* The guardian of a kind; it is there as long as the system is, though it may have stopped. What is
 * sent to the system as a whole is sent to /user. */
FK_API fk_ref fk_guardian(fk_system *sys, fk_guardian_kind kind);

/* Counters since the start; each is exact once the system is at rest. */
typedef struct fk_stats {
    uint64_t actors; /* alive now */
    uint64_t spawned;
    uint64_t stopped;
    uint64_t processed; /* messages handled */
    uint64_t dead_letters[FK_REASON_COUNT];
    uint64_t failures;
    uint64_t timers; /* active now */
    uint64_t steals;
    uint64_t parks;
    uint64_t memory; /* bytes held from the port */
} fk_stats;

FK_API void fk_stats_get(fk_system *sys, fk_stats *out);

#ifdef __cplusplus
}
#endif
#endif /* FK_SYSTEM_H */

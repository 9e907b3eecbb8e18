/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_H
#define FK_REMOTE_H

/*
 * Other systems, each known by its address, "fraktor.tcp://bank@10.0.0.7:2552".
 *
 * A reference to an actor of another system is made by fk_resolve(). What is sent to it waits, in
 * order and within the limits of the config, until that system is reached; over the limit the send
 * gives FK_E_FULL. A quarantined system is sent nothing: FK_E_QUARANTINED, and for every message
 * one FK_EVENT_INVALID_ASSOCIATION and one dead letter. Every change of state is an FK_EVENT_AUTHORITY.
 *
 * When there are more systems than remoting.systems_max, one that is out of reach gives way ("crowded
 * out"), and references to its actors are stale, as those of actors that have ended.
 *
 * All functions may be called from any thread. The faults of fk_path_parse(), FK_E_AUTHORITY for
 * an address without host, FK_E_FOREIGN for this system's own, FK_E_UNSUPPORTED for a system without
 * remoting (pekko rules and no host in the config).
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fk_authority_status {
    FK_AUTHORITY_UNRESOLVED = 0, /* not reached yet, or lost: messages wait */
    FK_AUTHORITY_CONNECTED,
    FK_AUTHORITY_QUARANTINE,
} fk_authority_status;

typedef struct fk_authority_info {
    fk_authority_status status;
    uint32_t deferred;       /* messages that wait */
    fk_time quarantine_left; /* 0 unless quarantined; FK_NEVER: only a new system ends it */
    fk_time status_age;      /* how long it has been so */
    uint64_t uid;            /* of the system there, or that was there last; 0: never met */
    uint32_t incarnation;    /* 1, and one more with each other uid */
    bool is_open;            /* with CONNECTED: messages go out; else they wait for a handshake */
    uint32_t failures;       /* attempts to connect in a row */
    fk_time reconnect_in;    /* 0: being tried now; FK_NEVER: not planned */
    uint16_t port;           /* where to connect to, as is host */
    char host[256];
} fk_authority_info;

/* The port that this system listens at, also if its config left the choice open. 0: it does not listen,
 * for remoting is not enabled. */
FK_API uint16_t fk_remoting_port(fk_system *sys);

/* FK_E_NOT_FOUND: nobody has named it yet. */
FK_API FK_MUST_USE fk_err fk_authority_state(fk_system *sys, fk_str address,
                                             fk_authority_info *out);
/* All of them, in no particular order, as they were at one moment. Both are lent to fn, which is
 * called on this thread and may call anything. FK_E_NOMEM. */
typedef void (*fk_authority_fn)(void *user, fk_str address, const fk_authority_info *info);
FK_API fk_err fk_authority_each(fk_system *sys, fk_authority_fn fn, void *user);

/* Connects to another place than the address says: a container's, a tunnel's. An empty host, or port
 * 0: what the address says. A system not reached yet is tried at once; a connection that is there
 * stays. FK_E_UNSUPPORTED: the config has no remoting.enabled. FK_E_INVALID, FK_E_LIMIT, FK_E_NOMEM. */
FK_API FK_MUST_USE fk_err fk_authority_set_mapping(fk_system *sys, fk_str address, fk_str host,
                                                   uint16_t port);
/* Keeps a system out for the quarantine duration of the config. What waited for it becomes dead
 * letters. FK_E_STATE: it is quarantined already, or by Pekko's rules has not been met. FK_E_LIMIT,
 * FK_E_NOMEM. */
FK_API fk_err fk_authority_quarantine(fk_system *sys, fk_str address);
/* Ends a quarantine before its time. The system that was quarantined stays out, because it may have
 * missed something; the next one at that address is welcome. FK_E_STATE: there is none; by Pekko's
 * rules always. FK_E_NOT_FOUND. */
FK_API fk_err fk_authority_override(fk_system *sys, fk_str address);
/* The same, and the very system that was quarantined may come back, whatever it has missed. */
FK_API fk_err fk_authority_override_force(fk_system *sys, fk_str address);

/* What is known of others, all together. */
typedef struct fk_remoting_stats {
    uint32_t systems;          /* as fk_authority_each() */
    uint32_t deferred;         /* messages that wait for them */
    uint32_t quarantined;      /* uids that stay out and whose system gave way to others */
    uint64_t quarantined_over; /* of these, that were forgotten: see remoting.quarantined_max */
    uint32_t references;       /* to their actors, that were only met or named ... */
    uint32_t references_held;  /* ... and that were asked for with fk_resolve() */
} fk_remoting_stats;

FK_API fk_err fk_remoting_stats_get(fk_system *sys, fk_remoting_stats *out);

/* By which others tell this system from others that had its address before; 0: without remoting. */
FK_API uint64_t fk_system_uid(fk_system *sys);

#ifdef __cplusplus
}
#endif
#endif /* FK_REMOTE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_AUTHORITY_H
#define FK_REMOTE_AUTHORITY_H

/*
 * Authorities: the other systems, each known as system@host:port, and whether they may be sent to
 * (R2.4, R3.5, R4.1 to R4.4).
 *
 *   from         to           when
 *   (created)    Unresolved   somebody names it
 *   Unresolved   Connected    there is a mapping, and a handshake is completed
 *   Unresolved   Quarantine   reconnecting has failed for give_up_after; the handshake was refused,
 *                             by the peer or, for its uid, by us; asked for
 *   Connected    Unresolved   the transport dropped
 *   Connected    Quarantine   invalid association; the peer's notice; asked for; as above, a
 *                             handshake refused after an override
 *   Quarantine   Unresolved   its time is over; overridden, but there is no mapping
 *   any          (forgotten)  nobody wants it any more; or others need its place: then what waits
 *                             for it is refused, as by a quarantine, and its uids stay out
 *                             (remote/tombs.h)
 *   Quarantine   Connected    overridden: sends wait for a fresh handshake;
 *                             a handshake completed with a uid that is not quarantined
 *
 * There is no other way from one to another. Connected is *open* once a handshake is completed;
 * what is sent to an authority that is not open is deferred, in the order of arrival, and what is
 * sent to a quarantined one is refused. The system uid that was quarantined is not let in again
 * (remote/uids.h). Under Pekko's rules it is the uid that is quarantined: an authority whose peer
 * was never met cannot be, and neither time nor an override ends it, but a new uid alone.
 *
 * An event and the time go in, and what is to be done comes out, as a value. A value and not
 * callbacks, because when the caller acts on it the call is over and the table whole again: there
 * is nothing to re-enter. It is small, because one event concerns one authority, changes its state
 * once at most and hands envelopes over as the list they were queued in; what time brings about
 * comes one authority at a time (fk__authority_tick). And it needs no memory, so that a quarantine
 * cannot fail.
 *
 * No clock, no lock and no thread of its own: the caller brings `now` and sees to it that calls for
 * one table come one after the other. The same calls in the same order give the same results.
 */

#include "base/hash.h"
#include "base/mem.h"
#include "fraktor/path.h"
#include "remote/deadlines.h"
#include "remote/envelopes.h"
#include "remote/tombs.h"
#include "remote/uids.h"

typedef enum fk_association {
    FK_ASSOCIATION_UNRESOLVED = 0,
    FK_ASSOCIATION_CONNECTED,
    FK_ASSOCIATION_QUARANTINE,
    FK_ASSOCIATION_COUNT
} fk_association;

/* Why an authority changed its state, with the name that logs and events show. */
#define FK_AUTHORITY_REASONS(X)                                                                    \
    X(CREATED, "created")                                                                          \
    X(HANDSHAKE, "handshake completed")                                                            \
    X(NEW_UID, "handshake with a new system")                                                      \
    X(DROPPED, "transport dropped")                                                                \
    X(FAILED, "no connection after the override")                                                  \
    X(INVALID, "invalid association")                                                              \
    X(NOTICE, "quarantined by the peer")                                                           \
    X(ASKED, "asked for")                                                                          \
    X(SILENT, "silent for too long")                                                               \
    X(UNACKED, "system messages were not acknowledged")                                            \
    X(REFUSED, "handshake refused by the peer")                                                    \
    X(OLD_UID, "handshake with a quarantined system")                                              \
    X(GAVE_UP, "reconnecting failed for too long")                                                 \
    X(ELAPSED, "quarantine is over")                                                               \
    X(OVERRIDE, "quarantine overridden")                                                           \
    X(CROWDED, "crowded out")

typedef enum fk_authority_reason {
#define FK_AUTHORITY_REASON_ENUM(name, text) FK_AUTHORITY_REASON_##name,
    FK_AUTHORITY_REASONS(FK_AUTHORITY_REASON_ENUM)
#undef FK_AUTHORITY_REASON_ENUM
        FK_AUTHORITY_REASON_COUNT
} fk_authority_reason;

#define FK_QUARANTINE_DEFAULT FK_MINUTES(5 * 24 * 60)

/* All zero is the default. */
typedef struct fk_authority_config {
    fk_rules rules;
    uint32_t authorities_max;    /* 0: 4,096; at most 2^20 */
    uint32_t deferred_max;       /* envelopes that wait for one authority; 0: 1,024 (Pekko 3,072) */
    uint32_t deferred_total_max; /* for all of them; 0: 8,192; hearsay gets a quarter */
    uint32_t uids_max;           /* quarantined uids of one authority; 0: 1,024; at most 65,536 */
    uint32_t tombs_max;          /* of those that are forgotten; 0: 65,536; at most 2^20 */
    uint32_t jitter_percent;     /* how much of a delay chance may take off, to 100; 0: 20 */
    fk_time quarantine;          /* 0: 5 days; at least 1 s */
    fk_time quarantine_override; /* when authorities are to have another one than reserved uids of
                                    actors; 0: none; at least 1 s */
    fk_time give_up_after;       /* of reconnecting; 0: as long as the quarantine */
    fk_time backoff_min;         /* before the second attempt, doubled each time; 0: 100 ms */
    fk_time backoff_max;         /* 0: 30 s; at most a day, not below backoff_min */
    bool ignore_new_uid; /* a new uid does not end a quarantine; not with Pekko's rules, where
                            nothing else does */
} fk_authority_config;

/* What names an authority; compared as written. */
typedef struct fk_authority_key {
    fk_str system; /* 1 to 255 bytes, no '@' */
    fk_str host;   /* 1 to 255 bytes */
    uint16_t port; /* not 0 */
} fk_authority_key;

typedef struct fk_authority fk_authority;

/* For all but the functions below: to read. */
struct fk_authority {
    fk_association state;
    bool is_open;       /* with Connected: the handshake is done */
    bool is_draining;   /* with is_open: what was deferred goes first */
    bool is_mapped;     /* it is known where to connect to */
    bool is_attempting; /* attempt number `attempt` is under way */
    bool is_resting;    /* Unresolved, and nobody wants it: it is not tried */
    bool is_kept;       /* a person has said where it is: it is not forgotten */
    bool is_hearsay;    /* it is only known from what somebody else sent: see fk__authority_vouch */
    bool is_named;      /* a program here has sent something to a path there */
    bool is_crowded;    /* with Quarantine: it gives way, and has been told of */
    bool is_spared;     /* with is_crowded: its uid may come back */
    uint32_t holds;     /* of those who look at it without the caller's lock: nor then */
    uint64_t uid;       /* of the peer, or the last one; 0: none yet */
    uint64_t attempt;
    uint64_t farewell_uid; /* of the last one that said that it terminates */
    uint32_t incarnation;  /* of the peer: 1, and one more with each other uid */
    uint32_t failures;     /* attempts in a row, and connections that did not last */
    uint32_t drops;        /* of these, the latter */
    uint32_t changes;      /* of its state, its creation being the first */
    fk_envelopes deferred;
    fk_uids quarantined;
    fk_time attempt_at; /* these four: FK_NEVER when it is not to happen */
    fk_time give_up_at;
    fk_time lift_at;
    fk_time lapse_at; /* with is_hearsay: what is deferred does not wait any longer */
    fk_time opened_at;
    fk_time state_at;     /* since when it is in this state */
    fk_deadline deadline; /* the first of the four */
    char *mapped_host;    /* where to connect to; NULL: the host of the key */
    uint16_t mapped_host_len;
    uint16_t mapped_port;
    void *user; /* whatever the caller keeps for it */
    /* The caller's references to its actors, how many of these must stay, and how many were
     * asked for (remote/proxies.h). */
    struct fk_remote_proxy *proxies;
    uint32_t proxies_staying;
    struct fk_remote_proxy *idle_oldest, *idle_newest; /* of those that may give way, by use */
    uint32_t proxies_met, proxies_pinned;
    uint32_t proxies_held; /* that a program here has asked for */
    fk_authority *chain;   /* next in its bucket */
    uint64_t hash;
    fk_authority_key key; /* system and host are in text */
    fk_str text;          /* "system@host:port" */
};

typedef struct fk_authority_table {
    fk_mem *mem;
    fk_authority_config config; /* defaults filled in */
    fk_hash_key hash_key;
    fk_rng rng;
    fk_time duration; /* of a quarantine */
    fk_uids_limit uids_limit;
    fk_authority **bucket;
    uint32_t bucket_count; /* 0 or a power of two; as many deadlines fit */
    uint32_t count;
    uint32_t deferred_total;
    uint32_t deferred_hearsay; /* of these */
    uint32_t kept;             /* by fk__authority_keep() */
    fk_deadlines deadlines;
    fk_tombs tombs;
} fk_authority_table;

/* ---- what happens, and what is to be done about it ----------------------------------------- */

typedef enum fk_authority_event_kind {
    FK_AUTHORITY_EVENT_NONE = 0,
    FK_AUTHORITY_EVENT_HANDSHAKE,  /* completed, in either direction, with the system `uid` */
    FK_AUTHORITY_EVENT_FAILED,     /* `attempt` came to nothing; once it is open, that is DROPPED */
    FK_AUTHORITY_EVENT_REFUSED,    /* at `attempt` the peer said no */
    FK_AUTHORITY_EVENT_DROPPED,    /* the transport to `uid`, which was open */
    FK_AUTHORITY_EVENT_INVALID,    /* the association with `uid` is found invalid */
    FK_AUTHORITY_EVENT_NOTICE,     /* `uid` says that it has quarantined us */
    FK_AUTHORITY_EVENT_QUARANTINE, /* by a person, or by a part of this system, which says why */
    FK_AUTHORITY_EVENT_OVERRIDE,   /* an end to the quarantine is asked for */
    FK_AUTHORITY_EVENT_COUNT
} fk_authority_event_kind;

typedef struct fk_authority_event {
    fk_authority_event_kind kind;
    uint64_t uid; /* of the peer's system. For INVALID, NOTICE, QUARANTINE 0 means whoever it is
                     now; under Pekko's rules that is ignored */
    uint64_t attempt;
    bool force;              /* with OVERRIDE: the uid that was quarantined may come back */
    fk_authority_reason why; /* with QUARANTINE: 0 means that somebody asked for it */
} fk_authority_event;

typedef enum fk_authority_result {
    FK_AUTHORITY_RESULT_DONE = 0,
    /* All others: nothing has changed, except where UID says so. */
    FK_AUTHORITY_RESULT_SAME,      /* it is so already */
    FK_AUTHORITY_RESULT_STALE,     /* of an attempt or a peer that is not the present one */
    FK_AUTHORITY_RESULT_STATE,     /* not possible in this state */
    FK_AUTHORITY_RESULT_UNMAPPED,  /* a handshake, but no mapping */
    FK_AUTHORITY_RESULT_UID,       /* that uid is quarantined. Where a handshake was waited for, it
                                      is refused hereby, and the authority quarantined (again) */
    FK_AUTHORITY_RESULT_FORBIDDEN, /* by the configuration, or by Pekko's rules */
    FK_AUTHORITY_RESULT_LIMIT,     /* handshake refused: too many uids were quarantined lately */
    FK_AUTHORITY_RESULT_NOMEM,     /* handshake refused: no memory */
    FK_AUTHORITY_RESULT_INVALID,   /* no such event, or a handshake without uid */
    FK_AUTHORITY_RESULT_COUNT
} fk_authority_result;

typedef struct fk_authority_change {
    fk_association from, to; /* the same when it has just been created */
    fk_authority_reason reason;
    fk_time at;
} fk_authority_change;

/* Written whole by each call that takes it. To be acted on in this order. */
typedef struct fk_authority_effects {
    fk_authority *authority; /* whom all this is about */
    bool has_change;
    bool must_close;   /* every connection to it, and one that is being made */
    bool is_new_peer;  /* another system than the last one, to which nothing is owed any more */
    bool is_opened;    /* begin to take what was deferred (fk__authority_take) */
    bool must_connect; /* begin attempt number authority->attempt, and say how it ends */
    fk_authority_change change;
    uint32_t change_number; /* of this authority: 1, 2, ... */
    fk_envelopes refused;   /* the caller's again: each is one InvalidAssociation event and one dead
                               letter */
    fk_envelopes lapsed;    /* the same, but each is a dead letter only */
    uint64_t uid_forgiven;  /* a quarantined uid may come back, by force; 0: none */
    uint64_t uid_forgotten; /* is no longer remembered as quarantined, for want of room; 0: none */
} fk_authority_effects;

/* ---- the table ----------------------------------------------------------------------------- */

/* Checks *config, which may be NULL, and writes it out with its defaults filled in: FK_E_INVALID.
 */
FK_MUST_USE fk_err fk__authority_configure(const fk_authority_config *config,
                                           fk_authority_config *out);
/* config may be NULL; key and seed, for the table and for the jitter, should be random. Allocates
 * nothing. FK_E_INVALID. */
FK_MUST_USE fk_err fk__authority_table_init(fk_authority_table *table, fk_mem *mem,
                                            const fk_authority_config *config,
                                            const fk_hash_key *key, uint64_t seed);
/* *left: what was still deferred, authority by authority; the caller's again. */
void fk__authority_table_fini(fk_authority_table *table, fk_envelopes *left);
void fk__authority_table_check(const fk_authority_table *table);

/* Finds the authority or makes it, Unresolved and without mapping. Stays where it is until it is
 * forgotten. FK_E_INVALID, FK_E_LIMIT, FK_E_NOMEM. */
FK_MUST_USE fk_err fk__authority_get(fk_authority_table *table, const fk_authority_key *key,
                                     fk_time now, fk_authority_effects *effects,
                                     fk_authority **out);
/* NULL: there is none. */
fk_authority *fk__authority_find(const fk_authority_table *table, const fk_authority_key *key);
/* Walks all: NULL gives the first; NULL is the end. */
fk_authority *fk__authority_after(const fk_authority_table *table, const fk_authority *authority);
/* It is Unresolved, or quarantined for good, with nothing deferred or under way, no uid that must not
 * come back yet, and nobody holds it: nothing is lost with it. */
bool fk__authority_is_forgettable(const fk_authority_table *table, const fk_authority *authority,
                                  fk_time now);
/* FK_E_STATE unless that is so. What the caller keeps for it he must have seen to before. */
FK_MUST_USE fk_err fk__authority_forget(fk_authority_table *table, fk_authority *authority,
                                        fk_time now);

/* A person has said where it is. FK_E_LIMIT: so it is for half of all that may be known. */
FK_MUST_USE fk_err fk__authority_keep(fk_authority_table *table, fk_authority *authority);

/* Others need its place: it is quarantined, if it is not, and nothing must be deferred any more. Then
 * fk__authority_give_way(). is_spared: nothing was promised to its present uid, which may come back. */
void fk__authority_crowd_out(fk_authority_table *table, fk_authority *authority, bool is_spared,
                             fk_time now, fk_authority_effects *effects);
/* It is forgotten, but for the uids that must not come back. FK_E_STATE: it was not crowded out, or
 * somebody holds it. */
FK_MUST_USE fk_err fk__authority_give_way(fk_authority_table *table, fk_authority *authority);

/* ---- events -------------------------------------------------------------------------------- */

/* Says where to connect to: FK_E_INVALID, FK_E_NOMEM. An empty host and port 0 mean what the key
 * says. With a mapping, an Unresolved authority is tried at once, and again and again. */
FK_MUST_USE fk_err fk__authority_map(fk_authority_table *table, fk_authority *authority,
                                     fk_str host, uint16_t port, fk_time now);

/* Whose time has come is about to be tried, or given up, while it is Unresolved; NULL: there is none.
 * If nobody wants it, it may rest instead. */
fk_authority *fk__authority_due(const fk_authority_table *table, fk_time now);
/* It is not tried any more, nor given up, until it is roused, mapped anew or shakes hands by itself.
 * It must be Unresolved, with nothing deferred and no attempt under way. */
void fk__authority_rest(fk_authority_table *table, fk_authority *authority);
/* Somebody knows that it can be reached: what failed before says nothing any more, and the next attempt is
 * made at once. Nothing happens unless it is Unresolved. */
void fk__authority_hurry(fk_authority_table *table, fk_authority *authority, fk_time now);
/* Somebody wants it: it is tried at once. Nothing happens if it does not rest. */
void fk__authority_rouse(fk_authority_table *table, fk_authority *authority, fk_time now);

/* Whoever sends us messages can put any senders into them, of systems that do not exist, and what is
 * answered waits for them. So the caller sets is_hearsay in an authority that was made for nothing else:
 * few envelopes wait for it, of all that wait only a part for all such, and none for longer than a
 * minute; whoever it is, it is not quarantined for that. This says that it is not hearsay any more:
 * somebody here has named it. So does a handshake. */
void fk__authority_vouch(fk_authority_table *table, fk_authority *authority);

/* The peer `uid` says that it terminates: the end of its connection is no failure. It is believed once;
 * nobody who does so terminates twice. */
void fk__authority_farewell(fk_authority *authority, uint64_t uid);

/* Asks what is to become of an envelope. FK_OK: *is_deferred says whether the table took it, or
 * whether it is to be sent now. Everything else means that it is still the caller's and a dead
 * letter: FK_E_FULL over a bound; FK_E_QUARANTINED, which is an InvalidAssociation event as well.
 * pierces: by Pekko's rules selections are sent to a quarantined peer, too, and a connection made
 * for them, so that its successor can be found. */
FK_MUST_USE fk_err fk__authority_send(fk_authority_table *table, fk_authority *authority,
                                      fk_envelope *envelope, bool pierces, bool *is_deferred);

/* Of an open authority, the next of what was deferred, at most max: the caller's again, to be sent.
 * Until this has come back with an empty list, whatever is sent in between is deferred, too, and so
 * cannot overtake; that is why the caller must have sent one batch before it takes the next. */
void fk__authority_take(fk_authority_table *table, fk_authority *authority, uint32_t max,
                        fk_envelopes *out);

FK_MUST_USE fk_authority_result fk__authority_step(fk_authority_table *table,
                                                   fk_authority *authority,
                                                   const fk_authority_event *event, fk_time now,
                                                   fk_authority_effects *effects);

/* When fk__authority_tick must be called next: FK_NEVER, or any time; every other call may change
 * it. */
fk_time fk__authority_next(const fk_authority_table *table);
/* Lets time do its work for one authority: an attempt that is due, giving up, a quarantine that is
 * over. To be called again until it says false. */
bool fk__authority_tick(fk_authority_table *table, fk_time now, fk_authority_effects *effects);

/* ---- looking ------------------------------------------------------------------------------- */

/* Where to connect to. */
void fk__authority_target(const fk_authority *authority, fk_str *host, uint16_t *port);
const char *fk__association_name(fk_association state);
const char *fk__authority_reason_name(fk_authority_reason reason);

/* Nothing may be sent to that system, and nothing of it let in. */
static inline bool fk__authority_refuses(const fk_authority *authority, uint64_t uid)
{
    return fk__uids_has(&authority->quarantined, uid);
}

/* What fk__authority_send would say: send it now. */
static inline bool fk__authority_is_clear(const fk_authority *authority)
{
    return authority->is_open && !authority->is_draining;
}

#endif /* FK_REMOTE_AUTHORITY_H */

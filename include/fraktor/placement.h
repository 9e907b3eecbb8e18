/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_PLACEMENT_H
#define FK_PLACEMENT_H

/*
 * Placement: which node runs a grain, and when it may. Most programs need only fraktor/cluster.h;
 * this is the machinery below it, for whoever writes a driver, a store or a test of their own.
 *
 * A coordinator decides and does nothing else. It has no clock, no thread and no I/O: what it wants
 * done it says as commands, and what came of them it is told as results with the same request id.
 * Everything leaves it in the order it was decided, by the functions of an fk_placement_outcome.
 *
 *     key --hash--> slot of its kind --table--> owner         who should try: a hint, from the view
 *     slot --lease--> holder, epoch                           who may: one holder at a time
 *     row of the grain --fence--> epoch, holder, version      whose writes count, whatever the clocks
 *
 * A slot is held under the one lease of its member; holding it costs no I/O per grain. A coordinator
 * is used by one thread at a time.
 */

#include "fraktor/base.h"
#include "fraktor/port.h"
#include "fraktor/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FK_GRAIN_KEY_MAX    4096u /* bytes of a key, which may be any */
#define FK_KIND_NAME_MAX    63u   /* bytes of a kind's name: a legal actor name */
#define FK_MEMBER_TEXT_MAX  255u  /* bytes of a member's id and of its address */
#define FK_MEMBER_KINDS_MAX 64u   /* of one member */
#define FK_SLOTS_DEFAULT    16384u
#define FK_SLOTS_MAX        1048576u

/* ---- grains and members ----------------------------------------------------------------------- */

/* 128 bits that stand for kind and key, the same on every machine. Nothing in it is secret, so whoever
 * takes keys from strangers compares the keys, too, before two of one id are the same grain. */
typedef struct fk_grain_id {
    uint64_t hi, lo;
} fk_grain_id;

/* Borrowed. */
typedef struct fk_grain_key {
    fk_str kind;
    fk_str key;
    fk_grain_id id; /* fk_grain_key_of() */
} fk_grain_key;

/* FK_E_KEY: the key is empty or too long; FK_E_UNKNOWN_KIND: no kind can have that name, which is that of
 * an actor without escapes, so that each has one spelling. */
FK_API FK_MUST_USE fk_err fk_grain_key_of(fk_str kind, fk_str key, fk_grain_key *out);

static inline bool fk_grain_id_equal(fk_grain_id a, fk_grain_id b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

typedef enum fk_member_status {
    FK_MEMBER_JOINING = 0, /* has a lease, owns nothing yet */
    FK_MEMBER_UP,
    FK_MEMBER_DRAINING, /* gives its slots away, and gets none */
    FK_MEMBER_DOWN,     /* its lease is over */
} fk_member_status;

FK_API const char *fk_member_status_name(fk_member_status status); /* "up" */

/* Borrowed with the view it is in. */
typedef struct fk_member {
    fk_str id;            /* "bank@127.0.0.1:4001" */
    uint64_t incarnation; /* 1, and one more each time it joins */
    fk_str address;       /* "fraktor.tcp://bank@127.0.0.1:4001" */
    const fk_str *kinds;
    uint32_t kind_count;
    uint32_t weight; /* its share, compared with others; 0: owns nothing */
    fk_member_status status;
} fk_member;

/* Who is there. Of two views the one with the higher version is newer; equal ones are the same. */
typedef struct fk_view {
    uint64_t version; /* 0: none */
    const fk_member *members;
    uint32_t count;
} fk_view;

static inline uint32_t fk_slot_of(fk_grain_id id, uint32_t slots)
{
    return (uint32_t)id.lo & (slots - 1);
}

/* ---- what a coordinator says and hears ---------------------------------------------------------- */

/* Whose writes count. */
typedef struct fk_fence {
    uint64_t epoch;
    fk_str holder; /* id of the member */
    uint64_t incarnation;
} fk_fence;

/* NAME, name. */
#define FK_PLACEMENT_COMMANDS(X)                                                                   \
    X(TRY_ACQUIRE, "TryAcquire")             /* .kind, .slots: hold them */                        \
    X(LOAD_ACTIVATION, "LoadActivation")     /* .key, .fence: read the row and fence it */         \
    X(ENSURE_ACTIVATION, "EnsureActivation") /* .key, .fence, .record: spawn, never twice */       \
    X(STORE_ACTIVATION, "StoreActivation")   /* .key, .fence, .version, .record, .pid */           \
    X(RELEASE, "Release")                    /* .kind, .slots: not held any more */                \
    X(RENEW_MEMBER, "RenewMember")           /* the lease of this member */                        \
    X(TRANSFER_SLOT, "TransferSlot")         /* .kind, .slots to .to: one compare-and-swap each */ \
    X(STOP_ACTIVATION, "StopActivation")     /* .key, .pid, .reason: end it, tell its end */       \
    X(REMOVE_ACTIVATION, "RemoveActivation") /* .key, .fence, .version: forget its row */          \
    X(CANCEL_REQUEST, "CancelRequest")       /* nobody waits for that request any more */

typedef enum fk_command_kind {
#define FK_COMMAND_ENUM(NAME, name) FK_COMMAND_##NAME,
    FK_PLACEMENT_COMMANDS(FK_COMMAND_ENUM)
#undef FK_COMMAND_ENUM
        FK_COMMAND_COUNT
} fk_command_kind;

FK_API const char *fk_command_name(fk_command_kind kind);

typedef struct fk_slot_claim {
    uint32_t slot;
    uint64_t
        epoch; /* TransferSlot, Release: the one it is held under; results: the new one, 0: refused */
    fk_str holder; /* of a result that was refused: who has it, or empty */
    uint64_t holder_incarnation;
} fk_slot_claim;

/* Lent to the callback. What does not apply is zero. */
typedef struct fk_placement_command {
    fk_command_kind kind;
    uint64_t request_id; /* of all commands of one activation the same */
    fk_time deadline;    /* after that the coordinator goes on without a result */
    fk_grain_key key;
    bool is_durable;
    fk_fence fence;
    uint64_t version;
    uint64_t pid; /* of the executor's own */
    void *record; /* what LoadActivation brought, as it came */
    const fk_slot_claim *slots;
    uint32_t slot_count;
    fk_str slot_kind; /* of the slots */
    fk_str to;        /* TransferSlot: id of a member, and ... */
    uint64_t to_incarnation;
    const char *reason;
    /* EnsureActivation of a volatile grain: whoever has done it when the function returns may put the
     * result here, instead of fk_placement_handle_result(). NULL: of any other command. */
    struct fk_placement_result *done;
} fk_placement_command;

/* What is not known may have happened. */
typedef enum fk_verdict {
    FK_VERDICT_OK = 0,
    FK_VERDICT_REFUSED,
    FK_VERDICT_UNKNOWN,
} fk_verdict;

/* The kind of the command it belongs to says what it is: LockAcquired, ActivationLoaded,
 * ActivationEnsured, ActivationStored, LockReleased ... */
typedef struct fk_placement_result {
    fk_command_kind kind;
    uint64_t request_id;
    fk_verdict verdict;
    fk_err
        err; /* of what is not OK: FK_E_FENCED, FK_E_CONFLICT, FK_E_STORAGE, FK_E_ACTIVATION ... */
    /* LoadActivation: NULL when there is no row of that grain. Handed on to EnsureActivation and
     * StoreActivation; discard() tells when it is not needed any more. */
    void *record;
    uint64_t version;           /* LoadActivation, StoreActivation: the row's now */
    uint64_t epoch;             /* FK_E_FENCED: the one in the way */
    uint64_t pid;               /* EnsureActivation */
    const fk_slot_claim *slots; /* TryAcquire, TransferSlot: as in the command */
    uint32_t slot_count;
} fk_placement_result;

typedef enum fk_locality {
    FK_LOCALITY_LOCAL = 0,
    FK_LOCALITY_REMOTE,
} fk_locality;

typedef struct fk_resolution {
    fk_err err; /* FK_OK, or why there is none */
    fk_locality locality;
    fk_str authority;     /* id of the member; lent until the view changes */
    uint64_t incarnation; /* of that member */
    fk_str address;
    uint64_t pid;   /* local */
    uint64_t epoch; /* local */
    uint64_t view_version;
    fk_time observed_at;
    const char *reason; /* of an error */
} fk_resolution;

/* NAME, name, what it is about. */
#define FK_PLACEMENT_EVENTS(X)                                                                     \
    X(RESOLVED, "Resolved")                  /* key, authority */                                  \
    X(REFUSED, "ResolveRefused")             /* key, err, reason */                                \
    X(LOCK_DENIED, "LockDenied")             /* key, authority of the holder, reason */            \
    X(ACTIVATED, "Activated")                /* key, pid, epoch */                                 \
    X(ACTIVATION_FAILED, "ActivationFailed") /* key, err, reason */                                \
    X(PASSIVATED, "Passivated")              /* key */                                             \
    X(STOPPED, "Stopped")                    /* key, reason */                                     \
    X(FENCED, "Fenced")                      /* key, epoch in the way */                           \
    X(STORE_CONFLICT, "StoreConflict")       /* key, version */                                    \
    X(STORE_FAILED, "StoreFailed")           /* key, err */                                        \
    X(REDIRECTED, "Redirected")              /* key, authority */                                  \
    X(DEDUPLICATED, "Deduplicated")          /* key */                                             \
    X(SLOT_ACQUIRED, "SlotAcquired")         /* kind, slot, epoch */                               \
    X(SLOT_LOST, "SlotLost")                 /* kind, slot, epoch, reason */                       \
    X(SLOT_DRAINING, "SlotDraining")         /* kind, slot, authority of the next owner */         \
    X(SLOT_TRANSFERRED, "SlotTransferred")   /* kind, slot, epoch, authority */                    \
    X(SLOT_RELEASED, "SlotReleased")         /* kind, slot, epoch */                               \
    X(LEASE_RENEWED, "LeaseRenewed")         /* authority: this member */                          \
    X(LEASE_LOST, "LeaseLost")               /* authority: this member; reason */                  \
    X(TOPOLOGY, "TopologyUpdated")           /* version of the view */                             \
    X(STATE, "StateChanged")                 /* reason: the new state */                           \
    X(CACHE_PUT, "PidCachePut")              /* key, authority */                                  \
    X(CACHE_DROPPED, "PidCacheDropped")      /* key, authority, reason */

typedef enum fk_placement_event_kind {
#define FK_PLACEMENT_ENUM(NAME, name) FK_PLACEMENT_##NAME,
    FK_PLACEMENT_EVENTS(FK_PLACEMENT_ENUM)
#undef FK_PLACEMENT_ENUM
        FK_PLACEMENT_EVENT_COUNT
} fk_placement_event_kind;

FK_API const char *fk_placement_event_name(fk_placement_event_kind kind);

/* Lent to the callback. */
typedef struct fk_placement_event {
    fk_placement_event_kind kind;
    fk_time observed_at;
    fk_grain_key key;
    fk_str authority;
    uint64_t pid, epoch, version;
    uint32_t slot;
    uint64_t request_id;
    fk_err err;
    const char *reason; /* never NULL; "" when there is nothing to say */
} fk_placement_event;

/* The one way out. The functions must not call the coordinator. */
typedef struct fk_placement_outcome {
    void *ctx;
    void (*command)(void *ctx, const fk_placement_command *command);
    void (*event)(void *ctx, const fk_placement_event *event);
    /* Somebody who was told FK_E_PENDING: what has become of it. Once for each ticket. */
    void (*settled)(void *ctx, uint64_t ticket, const fk_resolution *resolution);
    /* A record of LoadActivation is not needed any more. Once for each. */
    void (*discard)(void *ctx, void *record);
} fk_placement_outcome;

/* ---- the coordinator ---------------------------------------------------------------------------- */

typedef enum fk_placement_state {
    FK_PLACEMENT_STATE_STOPPED = 0,
    FK_PLACEMENT_STATE_NOT_READY, /* started, but without a view or a lease */
    FK_PLACEMENT_STATE_MEMBER,
    FK_PLACEMENT_STATE_CLIENT,
} fk_placement_state;

FK_API const char *fk_placement_state_name(fk_placement_state state);

typedef struct fk_activated_kind {
    fk_str name;
    bool is_durable;
    fk_time idle_ttl; /* 0: never passivated for that */
} fk_activated_kind;

typedef struct fk_placement_config {
    uint32_t size;                   /* sizeof(fk_placement_config), or 0 */
    uint32_t slots;                  /* of each kind, a power of two; 0: FK_SLOTS_DEFAULT */
    const fk_strategy_ops *strategy; /* NULL: fk_strategy_rendezvous */
    fk_placement_outcome outcome;
    fk_time lease_ttl;        /* 0: 3 s */
    uint32_t clock_error_ppm; /* rate error of clocks that is put up with; 0: 2000 */
    fk_time lease_margin;     /* stop that long before; 0: lease_ttl / 10 */
    fk_time command_timeout;  /* 0: 5 s */
    fk_time retry_delay;      /* before a slot that was refused is tried again; 0: lease_ttl / 16 */
    uint32_t waiters_max;     /* of one grain; 0: 1024 */
    uint32_t activations_max; /* active or on their way; 0: 16,777,216 */
    uint32_t acquire_batch;   /* slots in one TryAcquire; 0: 512; <= 4096 */
    uint32_t drain_batch;     /* slots that are drained at a time; 0: 64; <= 4096 */
    uint32_t cache_capacity;  /* pids of others that are remembered, the last used first; 0: none */
    fk_time cache_ttl;        /* 0: 1 min */
} fk_placement_config;

typedef struct fk_placement fk_placement;

/* The port's alloc is used, nothing else of it. */
FK_API FK_MUST_USE fk_err fk_placement_create(const fk_placement_config *config,
                                              const fk_port *port, fk_placement **out);
/* Discards what is left; says nothing more. */
FK_API void fk_placement_destroy(fk_placement *p);

/* A member of that id and incarnation, whose lease was asked for at `asked_at` and granted. Kinds
 * are those it can run; more may be added later. FK_E_IDENTITY_SETUP: it is started already, or id or
 * kinds make no sense. FK_E_NOMEM. */
FK_API FK_MUST_USE fk_err fk_placement_start_member(fk_placement *p, fk_str id,
                                                    uint64_t incarnation, fk_time asked_at,
                                                    fk_time now);
FK_API FK_MUST_USE fk_err fk_placement_start_client(fk_placement *p, fk_time now);
FK_API FK_MUST_USE fk_err fk_placement_add_kind(fk_placement *p, const fk_activated_kind *kind,
                                                fk_time now);
/* Everybody who waits is told FK_E_NOT_READY, every activation stopped, every slot that is held
 * released: the driver does that when the last of those activations has ended, not before. Results
 * that come later change nothing. FK_E_STATE: it is stopped. */
FK_API fk_err fk_placement_stop(fk_placement *p, fk_time now);

/* A view that is older than the one it has changes nothing. Copied. FK_E_NOMEM: nothing has changed. */
FK_API fk_err fk_placement_update_topology(fk_placement *p, const fk_view *view, fk_time now);
/* Somebody has a view of that version. Until it has come, no slot is given away because an older view says
 * so: it may have been given to this member by the newer one. 0: there is none that is newer, after all. */
FK_API void fk_placement_expect_view(fk_placement *p, uint64_t version, fk_time now);
/* The same as a view without that member, for whoever hears of its end first. */
FK_API fk_err fk_placement_member_left(fk_placement *p, fk_str id, uint64_t incarnation,
                                       fk_time now);

/* Where the grain is. FK_OK: *out says it, local or remote. FK_E_PENDING: work is under way, and
 * settled() is called for the ticket. FK_E_NOT_READY, FK_E_UNKNOWN_KIND, FK_E_OVERLOADED, FK_E_NOMEM,
 * FK_E_LOCK_DENIED, FK_E_ACTIVATION: nothing is. Each makes an event, except for a grain that is active here. */
FK_API FK_MUST_USE fk_err fk_placement_resolve(fk_placement *p, const fk_grain_key *key,
                                               uint64_t ticket, fk_time now, fk_resolution *out);
/* The result of a command. One that nobody waits for, or of another phase, changes nothing and gives
 * FK_E_NOT_FOUND; then its record is not taken. */
FK_API fk_err fk_placement_handle_result(fk_placement *p, const fk_placement_result *result,
                                         fk_time now);
/* The activation has ended: because of StopActivation, or by itself. FK_E_NOT_FOUND: it is none of
 * ours, or ended before. */
FK_API fk_err fk_placement_stopped(fk_placement *p, fk_grain_id id, uint64_t pid,
                                   const char *reason, fk_time now);
/* A store of that activation was refused, or its outcome is not known: the event, StopActivation, and
 * the grain is not started anew before stopped(). Of the result: verdict, err, epoch. */
FK_API fk_err fk_placement_store_failed(fk_placement *p, fk_grain_id id, uint64_t pid,
                                        const fk_placement_result *result, fk_time now);
/* Another member says that it has transferred these slots to us, by our incarnation. Epoch 0: the lock
 * has told it that we hold the slot, which we may not know, because nobody heard of the end of a
 * transfer; then the lock is asked. A driver says so to the holder of each slot that TryAcquire was
 * refused. */
FK_API fk_err fk_placement_transferred(fk_placement *p, fk_str kind, uint64_t incarnation,
                                       const fk_slot_claim *slots, uint32_t count, fk_time now);
/* A member that was asked says it is not the owner, or that another is. Forgets what was cached. */
FK_API void fk_placement_redirected(fk_placement *p, const fk_grain_key *key, fk_str authority,
                                    fk_time now);

/* Gives all slots away and gets none: as if the view said DRAINING of this member. */
FK_API fk_err fk_placement_drain(fk_placement *p, fk_time now);
/* True: no slot is held, and nothing is under way. */
FK_API bool fk_placement_is_drained(const fk_placement *p);

/* The grain was used at that time. Stops those that were not for the idle_ttl of their kind. */
FK_API void fk_placement_touch(fk_placement *p, fk_grain_id id, fk_time now);
FK_API void fk_placement_passivate_idle(fk_placement *p, fk_time now);

/* Renews, gives up what is late, tries again. To be called at next_deadline(), or any time. */
FK_API void fk_placement_tick(fk_placement *p, fk_time now);
FK_API fk_time fk_placement_next_deadline(const fk_placement *p);
/* Until when this member may take turns; it changes with each renewal. 0: it may not. */
FK_API fk_time fk_placement_lease_deadline(const fk_placement *p);

/* Who owns the slot of a grain by the view, without events; FK_E_NOT_READY, FK_E_UNKNOWN_KIND. The slot
 * and the reason are for people. */
FK_API FK_MUST_USE fk_err fk_placement_owner(const fk_placement *p, const fk_grain_key *key,
                                             fk_member *out, uint32_t *slot);
/* The view it has. Lent until the next update. */
FK_API fk_view fk_placement_view(const fk_placement *p);

typedef struct fk_placement_snapshot {
    fk_placement_state state;
    uint64_t view_version;
    uint32_t members, kinds;
    uint32_t slots_held, slots_wanted, slots_draining;
    uint32_t activations; /* active */
    uint32_t flights;     /* on their way */
    uint32_t stopping;    /* told to stop, not gone */
    uint32_t waiters;
    uint32_t commands_pending; /* without a result */
    uint32_t cached;
    fk_time lease_deadline;
} fk_placement_snapshot;

FK_API void fk_placement_snapshot_get(const fk_placement *p, fk_placement_snapshot *out);
/* Walks everything and asserts what must hold. */
FK_API void fk_placement_check(const fk_placement *p);

#ifdef __cplusplus
}
#endif
#endif /* FK_PLACEMENT_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_H
#define FK_CLUSTER_H

/*
 * Grains: actors that are there whenever they are called, on one node of the cluster at a time.
 *
 *     fk_cluster_join(sys, &(fk_cluster_config){ .store = "sqlite:bank.db" }, &cluster);
 *     fk_kind_register(cluster, FK_STR("account"), &(fk_kind){ .props = &ACCOUNT, .durable = true });
 *     fk_grain_send(cluster, FK_STR("account"), FK_STR("alice"), FK_MSG(deposit, 100));
 *
 * A grain is named by its kind and a key, any bytes. The first call activates it: an actor under
 * /user/KIND/KEY, on the node that owns the key's slot; its state is read before the first message.
 * Of a durable kind nothing that it answers or sends leaves before what it did is stored; a call that
 * is tried again after a failure has one effect and gets one answer. A grain that was idle for its
 * idle_ttl ends, and is read again when it is called again. docs/guarantees.md says what holds under
 * which fault.
 *
 * A grain fails like any actor; then it ends, what it did in that turn is forgotten, whoever asked gets
 * FK_E_FAILED, and the next call reads its last stored state; but what a volatile one had said before
 * it failed is said. fk_become() and fk_stash() are not for grains (FK_E_UNSUPPORTED).
 *
 * Messages that go to other nodes need a codec (fraktor/codec.h), and so do answers that are to be
 * remembered across nodes.
 */

#include "fraktor/ask.h"
#include "fraktor/placement.h"
#include "fraktor/store.h"
#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_cluster fk_cluster;

/* ---- joining: any thread outside of the system -------------------------------------------------- */

typedef struct fk_cluster_config {
    uint32_t size;     /* sizeof(fk_cluster_config), or 0 for the layout of release 0.1 */
    bool client;       /* calls grains, runs none */
    const char *store; /* URL, see fraktor/store.h; required */
    const char *id;    /* of this member; NULL: "system@host:port", the system's address */
    uint32_t weight;   /* its share of the slots, compared with others; 0: 100 */
    uint32_t slots;    /* of each kind; a power of two, the same for all; 0: FK_SLOTS_DEFAULT */
    fk_time
        lease_ttl; /* a node that is not heard of for so long is taken over from; 0: 3 s; >= 200 ms */
    fk_time call_timeout;  /* of fk_grain_tell() and fk_grain_send(); 0: 30 s */
    fk_time store_timeout; /* of joining, looking, starting: longer counts as failed; 0: 5 s */
    fk_time
        poll_every; /* how often the store is asked whether members have changed; 0: lease_ttl / 30,
                              at least 20 ms */
    uint32_t waiters_max;     /* calls that wait for one grain to start; 0: 1,024 */
    uint32_t activations_max; /* 0: as many as the system's actors_max allows */
    const fk_store_provider *const *providers; /* stores of your own; ends with NULL; or NULL */
    const fk_strategy_ops *strategy;           /* NULL: fk_strategy_rendezvous */
    const char **why; /* if not NULL: a sentence for people when joining fails; static */
} fk_cluster_config;

/* Opens the store and joins. One cluster for a system, which needs an address (remoting.enabled) to
 * be more than a cluster of one. Fails with FK_E_INVALID, FK_E_UNSUPPORTED (no such store),
 * FK_E_STORAGE, FK_E_TIMEOUT, FK_E_CORRUPT, FK_E_FULL (it cannot be opened, does not answer, is no store, is full),
 * FK_E_MISMATCH (the cluster has another strategy or number of slots), FK_E_FORBIDDEN (not a member of a static one), FK_E_IDENTITY_SETUP (the system is in a cluster already), FK_E_STOPPING,
 * FK_E_NOMEM, FK_E_LIMIT, FK_E_OS. The cluster is there as long as the system. */
FK_API FK_MUST_USE fk_err fk_cluster_join(fk_system *sys, const fk_cluster_config *config,
                                          fk_cluster **out);
/* Gives its slots to others, one by one, without a call being lost; then leaves. FK_E_TIMEOUT: not all
 * could be given away in that time; it has left all the same. Coordinated shutdown (fraktor/shutdown.h)
 * does this by itself, in the phases cluster-sharding-shutdown-region and cluster-leave. From outside;
 * FK_E_STATE inside receive. */
FK_API fk_err fk_cluster_leave(fk_cluster *cluster, fk_time timeout);
/* The same, to stay: it owns nothing any more, and goes on as a client. Does not wait. */
FK_API fk_err fk_cluster_drain(fk_cluster *cluster);
/* Waits until the node can call grains: it knows the members and, if it is one, has its lease. */
FK_API FK_MUST_USE fk_err fk_cluster_await_ready(fk_cluster *cluster, fk_time timeout);
FK_API fk_cluster *fk_cluster_of(fk_system *sys); /* NULL: it is in none */

/* ---- kinds ---------------------------------------------------------------------------------------- */

/* How grains of a kind are made. Copied. */
typedef struct fk_kind {
    uint32_t size; /* sizeof(fk_kind), or 0 for the layout of release 0.1 */
    bool durable;  /* state and answers are stored; else they end with the activation */
    const fk_props
        *props;       /* receive, start, stop, state_size, init; of the mailbox nothing. start runs
                              when the state has been read */
    fk_time idle_ttl; /* 0: 10 min; FK_NEVER */
    /* The state as bytes: returns their number, and writes them if they fit. Must be the same for the
     * same state. NULL: the state_size bytes as they lie in memory. */
    size_t (*encode)(const void *state, unsigned char *to, size_t size);
    /* Back, into a state as a new grain has it. bytes may be of an older program: FK_E_* makes the
     * activation fail, and the row stays as it is. */
    fk_err (*decode)(void *state, fk_str bytes);
} fk_kind;

/* From here on this member can run grains of the kind. FK_E_INVALID, FK_E_NAME, FK_E_NAME_TAKEN,
 * FK_E_IDENTITY_SETUP (a client), FK_E_LIMIT, FK_E_NOMEM, FK_E_STOPPING. */
FK_API FK_MUST_USE fk_err fk_kind_register(fk_cluster *cluster, fk_str name, const fk_kind *kind);

/* ---- calling ----------------------------------------------------------------------------------------
 * All take the message. FK_OK: it is on its way, and tried again until it gets there or its time is
 * over. Other errors come at once: FK_E_KEY, FK_E_UNKNOWN_KIND (no name for a kind), FK_E_NOT_READY (not in
 * a cluster), FK_E_NOMEM, FK_E_LIMIT, FK_E_STOPPING. Of a call that comes to nothing the asker is told why:
 * FK_E_TIMEOUT, FK_E_STORAGE, FK_E_ACTIVATION, FK_E_UNKNOWN_KIND, FK_E_OVERLOADED, FK_E_NO_CODEC, FK_E_FAILED,
 * FK_E_NOT_READY, FK_E_LOCK_DENIED, FK_E_CORRUPT, FK_E_FENCED, FK_E_CONFLICT, FK_E_NOMEM, FK_E_LIMIT (larger
 * than a frame); where nobody asked, a dead letter says it. */

/* Inside receive. A grain on the same node sees this actor as sender; one elsewhere sees nobody. */
FK_API fk_err fk_grain_tell(fk_ctx *ctx, fk_str kind, fk_str key, fk_out msg);
/* An fk_answer with that id comes, as with fk_ask(). */
FK_API fk_err fk_grain_ask(fk_ctx *ctx, fk_str kind, fk_str key, fk_out msg, uint64_t id,
                           fk_time timeout);
/* Any thread. */
FK_API fk_err fk_grain_send(fk_cluster *cluster, fk_str kind, fk_str key, fk_out msg);
/* As fk_ask_wait(). */
FK_API FK_MUST_USE fk_err fk_grain_ask_wait(fk_cluster *cluster, fk_str kind, fk_str key,
                                            fk_out msg, fk_into into, fk_time timeout);

/* ---- inside a grain ---------------------------------------------------------------------------------- */

typedef struct fk_grain_info {
    fk_str kind, key;    /* lent until receive returns */
    uint64_t epoch;      /* of its slot: give it to whatever you write to outside, and let that
                                refuse what has a smaller one */
    uint64_t version;    /* of its row */
    uint64_t request[2]; /* which call this is: the same when it is tried again; 0, 0: no call */
} fk_grain_info;

/* FK_E_STATE: this actor is no grain. */
FK_API FK_MUST_USE fk_err fk_grain_self(const fk_ctx *ctx, fk_grain_info *out);
/* Ends after this turn, and its row is forgotten; the next call makes a new one. FK_E_STATE. */
FK_API fk_err fk_grain_delete(fk_ctx *ctx);

/* ---- looking, without activating: any thread --------------------------------------------------------- */

typedef struct fk_grain_place {
    char owner[FK_MEMBER_TEXT_MAX + 1]; /* by the view: id of a member; "" when there is none */
    char address[FK_MEMBER_TEXT_MAX + 1];
    uint32_t slot, slots;
    uint64_t view_version;
    bool is_here;     /* it is active on this node ... */
    bool is_held;     /* ... so that this node holds the slot, under ... */
    fk_ref ref;       /* if it is here */
    uint64_t epoch;   /* ... this epoch */
    uint32_t members; /* that could own it */
} fk_grain_place;

/* FK_E_KEY, FK_E_UNKNOWN_KIND, FK_E_NOT_READY. */
FK_API FK_MUST_USE fk_err fk_grain_where(fk_cluster *cluster, fk_str kind, fk_str key,
                                         fk_grain_place *out);
/* Grains that are active on this node. Lent. FK_E_NOMEM. */
typedef void (*fk_grain_fn)(void *user, fk_str kind, fk_str key, fk_ref ref, uint64_t epoch);
FK_API fk_err fk_grain_each(fk_cluster *cluster, fk_grain_fn fn, void *user);
/* Keys of that kind that have a stored state, active or not, wherever: up to limit of those behind `after`
 * (of length 0: all), in the order of their bytes. From outside; starts nothing. FK_E_UNKNOWN_KIND (no name
 * for a kind), FK_E_KEY, FK_E_STORAGE, FK_E_NOMEM. */
typedef void (*fk_grain_key_fn)(void *user, fk_str key);
FK_API FK_MUST_USE fk_err fk_grain_stored(fk_cluster *cluster, fk_str kind, fk_str after,
                                          uint32_t limit, fk_grain_key_fn fn, void *user);
/* The stored row, as it is, from outside: FK_E_NOT_FOUND, FK_E_STORAGE. */
typedef struct fk_grain_row {
    uint64_t version, epoch;
    size_t snapshot_size, dedup_size;
    char holder[FK_MEMBER_TEXT_MAX + 1];
} fk_grain_row;
FK_API FK_MUST_USE fk_err fk_grain_peek(fk_cluster *cluster, fk_str kind, fk_str key,
                                        fk_grain_row *out);

/* The members that this node knows. Lent. FK_E_NOMEM. */
typedef void (*fk_member_fn)(void *user, const fk_member *member, bool is_self);
FK_API fk_err fk_cluster_members(fk_cluster *cluster, fk_member_fn fn, void *user);

typedef struct fk_cluster_stats {
    fk_placement_snapshot placement;
    char id[FK_MEMBER_TEXT_MAX + 1];
    uint64_t incarnation;
    uint64_t calls;        /* that did not find an active grain here at once */
    uint64_t calls_open;   /* of these, under way */
    uint64_t sent;         /* calls to other nodes, each time */
    uint64_t retried;      /* of these, not for the first time */
    uint64_t arrived;      /* calls of other nodes */
    uint64_t failed;       /* calls that came to nothing */
    uint64_t deduplicated; /* answered from the window */
    uint64_t activated, stopped, passivated;
    uint64_t stores, store_failures;
    uint64_t slots_moved_in, slots_moved_out;
} fk_cluster_stats;

FK_API fk_err fk_cluster_stats_get(fk_cluster *cluster, fk_cluster_stats *out);

#ifdef __cplusplus
}
#endif
#endif /* FK_CLUSTER_H */

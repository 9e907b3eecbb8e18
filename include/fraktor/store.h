/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_STORE_H
#define FK_STORE_H

/*
 * Stores: where a cluster keeps its members, the leases of its slots, and the state of its grains.
 *
 * A store is named by a URL: "memory:NAME" (shared by all in the process who say that name, which may
 * be empty, until the last of them closes it; its memory comes from the port of the first),
 * "sqlite:FILE" (many processes on one machine). It is a table of functions, so that a program can
 * bring its own: fk_store_provider.
 *
 * A store is used by one thread at a time, may block, and never calls back. All clocks are its own:
 * it judges leases by the time on its side, and nobody else's.
 */

#include "fraktor/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The row of a grain. */
typedef struct fk_record {
    uint64_t version; /* 0: never stored */
    fk_fence fence;   /* who loaded it last */
    fk_str pid;       /* path of the activation, for people */
    fk_str snapshot;  /* its state; ptr NULL: none */
    fk_str dedup;     /* answers that may be asked for again */
} fk_record;

/* NAME, name. */
#define FK_STORE_VERBS(X)                                                                          \
    X(JOIN, "join")         /* .member (incarnation is given), .strategy, .slots, .ttl */          \
    X(RENEW, "renew")       /* .member's id and incarnation, .ttl */                               \
    X(UPDATE, "update")     /* .member: kinds, weight, status */                                   \
    X(LEAVE, "leave")       /* .member's id and incarnation: its lease ends, its slots are free */ \
    X(VIEW, "view")         /* .version: the one that is known; .strategy and .slots, or NULL */   \
    X(ACQUIRE, "acquire")   /* .member's id and incarnation, .kind, .claims */                     \
    X(TRANSFER, "transfer") /* the same, to .to */                                                 \
    X(RELEASE, "release")   /* the same */                                                         \
    X(LOAD, "load")         /* .key, .fence */                                                     \
    X(STORE, "store")       /* .key, .fence, .version, .request, .record */                        \
    X(REMOVE, "remove")     /* .key, .fence, .version */                                           \
    X(PEEK, "peek")         /* .key: reads and changes nothing */                                  \
    X(LIST, "list")         /* .kind, .after, .limit: keys that have a state */

typedef enum fk_store_verb {
#define FK_STORE_ENUM(NAME, name) FK_STORE_##NAME,
    FK_STORE_VERBS(FK_STORE_ENUM)
#undef FK_STORE_ENUM
        FK_STORE_VERB_COUNT
} fk_store_verb;

FK_API const char *fk_store_verb_name(fk_store_verb verb);

/*
 * One thing to be done. What each verb promises:
 *
 *   JOIN      FK_E_MISMATCH when the cluster has another strategy or number of slots (the first member
 *             decides). The new incarnation is one more than any before of that id; an earlier one
 *             that has not left keeps its lease and slots until that is over, and cannot renew it.
 *             Who joins again says in .member.incarnation which it was: FK_E_NAME_TAKEN when a
 *             later one of that id has joined since, and lasts. .member.incarnation and
 *             .version are set.
 *   RENEW     FK_E_FENCED: that incarnation's lease is over, and never comes back, or there is a later
 *             one. Whoever else's is over is DOWN from here on, which is a new version of the view.
 *   UPDATE    FK_E_FENCED as RENEW.
 *   LEAVE     OK also when it is gone already.
 *   VIEW      .version: the newest. When it is another than was known, .view is filled, and lies in
 *             memory from room(). Members that are DOWN are not listed, and of one id only the
 *             newest incarnation, if that is not DOWN. Ids are in order. FK_E_MISMATCH as JOIN when
 *             .strategy is given, and somebody has joined.
 *   ACQUIRE   for each claim: its epoch, greater than any that slot ever had; the one it has when the
 *             member holds it already; or 0 and the holder, whose lease is not over. FK_E_FENCED: the
 *             member's own lease is over; nothing was acquired.
 *   TRANSFER  for each claim that the member holds under that epoch: the next epoch, held by .to from
 *             here on; else 0. FK_E_FENCED: the member's lease is over; FK_E_NOT_FOUND: .to is not
 *             there with that incarnation, or its lease is over.
 *   RELEASE   for each claim that the member holds under that epoch: nobody holds it. Epochs stay.
 *   LOAD      puts the fence into the row, and makes it if there is none (version 0). FK_E_FENCED when
 *             the row's epoch is higher, or the same of another holder or incarnation; .epoch is it.
 *             .record is filled. FK_E_CORRUPT: the row cannot be read.
 *   STORE     when fence and version are the row's: version + 1, which .record.version is then, and
 *             the new record. The very same again (fence, version, request) is OK again, with the
 *             same result. FK_E_FENCED, FK_E_CONFLICT (.epoch, .record.version), FK_E_FULL (the disk),
 *             FK_E_LIMIT (the state is larger than the store can keep).
 *   REMOVE    when fence and version are the row's: its state is gone; the fence stays, so that no
 *             earlier holder can write again, and versions begin with 0. OK when there is no state.
 *   PEEK      FK_E_NOT_FOUND: there is no state; .record.fence tells who loaded it, if anybody did.
 *   LIST      up to .limit keys greater than .after, in order of bytes, by put_key().
 *
 * Any of them may be UNKNOWN: FK_E_STORAGE, or FK_E_TIMEOUT. FK_E_NOMEM is REFUSED: nothing was done.
 */
typedef struct fk_store_op fk_store_op;
struct fk_store_op {
    fk_store_verb verb;
    uint64_t request_id; /* the caller's; the store does not look at it */

    fk_member member;
    fk_time ttl;
    const char *strategy;
    uint32_t slots;
    uint64_t version;
    fk_str kind;
    fk_slot_claim *claims; /* the store writes epoch and holder (from room()) */
    uint32_t claim_count;
    fk_str to;
    uint64_t to_incarnation;
    fk_grain_key key;
    fk_fence fence;
    uint64_t request[2]; /* of the call that is stored: tells the same store from another */
    fk_record record;
    fk_str after;
    uint32_t limit;

    fk_verdict verdict; /* out, as all below */
    fk_err err;
    uint64_t epoch;
    fk_view view;
    const char *reason; /* a sentence for people, static or from room(); or NULL */

    /* Memory for what is read; the caller's, who frees it. NULL: there is none (FK_E_NOMEM). Neither
     * may use a store. */
    void *(*room)(fk_store_op *op, size_t size);
    void (*put_key)(fk_store_op *op, fk_str key);
    void *user; /* the caller's */
};

typedef struct fk_store fk_store;

typedef struct fk_store_ops {
    /* Does them all, in order, and fills verdict and err of each. Those that write may share one
     * transaction; a refused one does not undo the others. */
    void (*apply)(fk_store *store, fk_store_op *const *ops, size_t count);
    /* A number that changes when the members may have changed; cheap. */
    uint64_t (*stamp)(fk_store *store);
    void (*close)(fk_store *store);
} fk_store_ops;

/* What a backend's own struct begins with. */
struct fk_store {
    const fk_store_ops *ops;
};

/* Opens stores of one scheme. rest: what follows "scheme:". Each thread of a driver opens its own.
 * is_state: for the state of grains, which must survive a power failure; else for leases. */
typedef struct fk_store_provider {
    const char *scheme;
    void *user;
    fk_err (*open)(void *user, fk_str rest, bool is_state, const fk_port *port, fk_store **out,
                   const char **why);
} fk_store_provider;

extern FK_API const fk_store_provider fk_store_memory;
/* For tests: in memory, of members that are known beforehand, "static:NAME?a,b,c". Others are refused
 * (FK_E_FORBIDDEN), and nobody is taken for dead because it is silent. */
extern FK_API const fk_store_provider fk_store_static;
#define FK_STORE_HAS_SQLITE 1
extern FK_API const fk_store_provider fk_store_sqlite;

/* By URL, among the built-in ones and `more` (ends with NULL; may be NULL). FK_E_UNSUPPORTED: no such
 * scheme; FK_E_INVALID, FK_E_STORAGE, FK_E_CORRUPT, FK_E_NOMEM. *why, which may be NULL, is a static
 * sentence for people. */
FK_API FK_MUST_USE fk_err fk_store_open(fk_str url, const fk_store_provider *const *more,
                                        bool is_state, const fk_port *port, fk_store **out,
                                        const char **why);

static inline void fk_store_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    store->ops->apply(store, ops, count);
}

#ifdef __cplusplus
}
#endif
#endif /* FK_STORE_H */

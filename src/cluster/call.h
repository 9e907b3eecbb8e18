/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_CALL_H
#define FK_CLUSTER_CALL_H

/*
 * Calls of grains on their way, and the desk of a node that sees to it that each comes to one end.
 *
 * A call of this node (is_ours) is in the desk's hands until it is answered, given to an activation
 * here, or late. Once it has been sent to another node it is numbered and kept, and sent again, with
 * the same number, when there is reason to believe that it, or its answer, was lost. The number makes
 * it one call, however often it arrives: see dedup.h. A call of another node is passed on and
 * forgotten: its origin keeps it.
 *
 * Pure: no clock, no I/O; what is to be done is said by the functions of fk_desk_ops. They may call the
 * desk, fk__desk_submit() above all, but not destroy it.
 */

#include "base/mem.h"
#include "fraktor/placement.h"
#include "remote/deadlines.h"

/* Which call it is, for ever. */
typedef struct fk_request {
    uint64_t origin; /* 0: none */
    uint64_t seq;
} fk_request;

static inline bool fk__request_equal(fk_request a, fk_request b)
{
    return a.origin == b.origin && a.seq == b.seq;
}

typedef enum fk_call_state {
    FK_CALL_NEW = 0,
    FK_CALL_RESOLVING, /* placement works on it: settled() comes */
    FK_CALL_SENT,      /* to another node: an answer comes, or its time */
    FK_CALL_WAITING,   /* to be tried again at its time */
} fk_call_state;

enum { FK_CALL_HOPS_MAX = 6 };

/* Made by whoever uses the desk, which embeds it first in a struct of its own. */
typedef struct fk_call {
    fk_deadline due; /* of the desk */
    struct fk_call *next,
        *prev;          /* of ours that are numbered, in order; or of a list of its owner's */
    fk_grain_key key;   /* the bytes lie with the call */
    fk_request request; /* origin 0: not numbered yet */
    fk_request earlier; /* under which it may have had its effect here before it was numbered */
    uint64_t low;       /* its origin has settled all that are smaller */
    uint64_t ticket;    /* of placement */
    fk_time deadline;
    fk_str authority;     /* SENT: to whom; lent by the desk's ops->send, as long as it is SENT;
                                 * empty: to an activation here */
    uint64_t incarnation; /* of that member */
    fk_err cause;         /* why it was tried again, also by whoever submits it */
    uint8_t state;        /* fk_call_state */
    uint8_t hops;
    uint16_t attempts; /* how often it was sent */
    uint16_t refusals; /* how often it had to wait */
    uint16_t returns; /* how often an activation has given it back: ours waits from the second on */
    bool is_ours;     /* else of another node */
} fk_call;

typedef struct fk_desk_ops {
    void *ctx;
    /* fk_placement_resolve() with call->ticket. */
    fk_err (*resolve)(void *ctx, fk_call *call, fk_time now, fk_resolution *out);
    /* To the node that to names. A call that is ours stays with the desk; one of another node is taken.
     * *authority: the id, to be lent as long as the call is SENT. FK_E_*: it cannot be sent there, and
     * is the desk's still; FK_E_NOMEM and transient ones (see fk__call_may_retry()) are tried again if
     * it is ours. */
    fk_err (*send)(void *ctx, fk_call *call, const fk_resolution *to, fk_str *authority);
    /* To the activation here. The call is taken; but one that is ours and numbered the desk keeps until
     * fk__desk_answered(), and only a copy goes to the activation. FK_E_*: as with send. */
    fk_err (*deliver)(void *ctx, fk_call *call, const fk_resolution *at);
    /* The end of a call, which is taken: the asker, or the node that it came from, is to be told. err:
     * why there is no answer. answer: what fk__desk_answered() was given, or NULL. */
    void (*finish)(void *ctx, fk_call *call, fk_err err, void *answer);
} fk_desk_ops;

typedef struct fk_desk_config {
    fk_desk_ops ops;
    uint64_t
        origin; /* of this node's calls: differs from that of any other, and of an earlier life */
    fk_time resend_after;         /* without an answer; doubled each time; 0: 1 s */
    fk_time resend_max;           /* 0: 5 s */
    fk_time retry_min, retry_max; /* delay after a refusal, doubled each time; 0: 10 ms, 500 ms */
    uint32_t calls_max;           /* in its hands; 0: 1,048,576 */
} fk_desk_config;

typedef struct fk_desk fk_desk;

FK_MUST_USE fk_err fk__desk_create(fk_mem *mem, const fk_desk_config *config, fk_desk **out);
/* Every call in its hands ends with FK_E_STOPPING, before. */
void fk__desk_destroy(fk_desk *desk);

/* A new call, of ours or of another node; taken. Its maker sets key, deadline, is_ours, hops, and if it
 * is numbered request, low and earlier; the rest is zero. FK_E_OVERLOADED and FK_E_NOMEM end it by
 * finish(), too, as everything does. A call of ours that has a number of this desk, and is not in its
 * hands, keeps it. One that comes back from an activation here is submitted like a new one, with the
 * number (of another origin) under which it was run as its request: when it is sent to another node,
 * and gets a number of the desk's, that becomes earlier. */
void fk__desk_submit(fk_desk *desk, fk_call *call, fk_time now);
/* Placement has settled a ticket. Unknown ones change nothing. */
void fk__desk_settled(fk_desk *desk, uint64_t ticket, const fk_resolution *resolution, fk_time now);
/* An answer to a call of ours, from wherever. False: nobody waits for it any more, and answer is still
 * the caller's. A transient err without an answer means: try again. */
bool fk__desk_answered(fk_desk *desk, fk_request request, fk_err err, void *answer, fk_time now);
/* A numbered call of ours; NULL: it has ended. */
fk_call *fk__desk_find(const fk_desk *desk, fk_request request);
/* The view has changed: calls sent to those who are gone are to be tried again now, by
 * fk__desk_tick(). has_member(id, inc). */
void fk__desk_members_changed(fk_desk *desk, bool (*has_member)(void *ctx, fk_str id, uint64_t inc),
                              void *ctx, fk_time now);
/* Nobody waits for the answer of this one any more: (ours) it ends without one, FK_E_DEAD. */
void fk__desk_cancel(fk_desk *desk, fk_request request, fk_time now);
void fk__desk_tick(fk_desk *desk, fk_time now);
fk_time fk__desk_next(const fk_desk *desk);
/* All of ours that are numbered and smaller are settled: what goes with each call. */
uint64_t fk__desk_low(const fk_desk *desk);
uint32_t fk__desk_count(const fk_desk *desk);
/* All that are in its hands end with err, and so does whatever is submitted from here on; for the end of
 * the node. */
void fk__desk_give_up(fk_desk *desk, fk_err err);
void fk__desk_check(const fk_desk *desk);

/* It is worth while to try again: FK_E_NOT_READY, FK_E_LOCK_DENIED, FK_E_STORAGE, FK_E_FENCED,
 * FK_E_CONFLICT, FK_E_STOPPING, FK_E_UNRESOLVED, FK_E_FULL, FK_E_QUARANTINED, FK_E_DEAD. Not: FK_E_UNKNOWN_KIND,
 * FK_E_OVERLOADED, FK_E_ACTIVATION, FK_E_NO_CODEC, FK_E_FAILED ... */
bool fk__call_may_retry(fk_err err);

#endif /* FK_CLUSTER_CALL_H */

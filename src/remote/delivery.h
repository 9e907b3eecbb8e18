/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_DELIVERY_H
#define FK_REMOTE_DELIVERY_H

/*
 * Delivery of system messages (watch, unwatch, death notices): exactly once and in order from one
 * incarnation of a system to one incarnation of another, or each message is reported as lost.
 *
 * The outbox numbers what it is given from 1 and keeps it until the peer has acknowledged it. An
 * acknowledgement is cumulative. Everything that is kept is sent again each second, and at once when
 * the peer says that it has found a gap. What is kept is bounded; over the bound, or when there is
 * no progress for hours, the peer is to be quarantined, because the two sides can no longer agree on
 * who watches whom. With another peer at the same address numbers begin at 1 again, and whatever the
 * last one did not acknowledge comes back as lost.
 *
 * The inbox takes the next number and no other: what it has had is acknowledged again, what comes
 * after a gap is refused with the highest number that it has had.
 *
 * An outbox exists per authority, an inbox per origin (remote/origins.h). Messages are the caller's;
 * here they only hang in a list, so nothing allocates and nothing can fail for want of memory. No
 * clock, lock or thread, as with authorities (remote/authority.h).
 */

#include "remote/envelopes.h"

/* ---- the outbox ---------------------------------------------------------------------------- */

/* Embedded in the caller's own struct. */
typedef struct fk_parcel {
    fk_envelope link; /* first */
    uint64_t seq;     /* from 1; the outbox writes it */
} fk_parcel;

static inline fk_parcel *fk__parcel_of(fk_envelope *link)
{
    return link != NULL ? FK_CONTAINER(link, fk_parcel, link) : NULL;
}

/* All zero is the default. */
typedef struct fk_delivery_config {
    uint32_t unacked_max;  /* 0: 20,000 */
    fk_time resend_every;  /* 0: 1 s */
    fk_time give_up_after; /* without progress; 0: 6 h */
    bool is_careful;       /* until the peer has acknowledged the first, nothing else goes out */
} fk_delivery_config;

enum { FK_OUTBOX_FORMER = 4 };

/* For all but the functions below: to read. */
typedef struct fk_outbox {
    fk_delivery_config config;         /* defaults filled in */
    bool is_open;                      /* there is a connection to `uid` */
    bool is_shut;                      /* given up: nothing is taken until there is another peer */
    uint64_t uid;                      /* of the peer that the numbers are for; 0: none yet */
    uint64_t seq;                      /* the last number given out */
    uint64_t sent;                     /* the highest one that was taken to be sent */
    uint64_t acked;                    /* the highest one acknowledged */
    uint64_t nacked;                   /* one more than the last gap that was answered; 0: none */
    fk_envelopes unacked;              /* of parcels, with the numbers acked + 1 to seq */
    fk_parcel *unsent;                 /* the one to be sent next; NULL: all are on their way */
    fk_time resend_at;                 /* FK_NEVER unless it is open and something is unacked */
    fk_time give_up_at;                /* FK_NEVER unless something is unacked */
    uint64_t former[FK_OUTBOX_FORMER]; /* peers that were replaced */
    uint32_t former_next;
} fk_outbox;

typedef enum fk_outbox_event_kind {
    FK_OUTBOX_EVENT_NONE = 0,
    /* A control stream to `uid` had the answer to its own request: what is taken from now on goes to
     * that system and no other. */
    FK_OUTBOX_EVENT_OPENED,
    FK_OUTBOX_EVENT_CLOSED,      /* it is gone; what is unacked is kept for the next one */
    FK_OUTBOX_EVENT_ACK,         /* `uid` has had everything up to `seq` */
    FK_OUTBOX_EVENT_NACK,        /* the same, and misses what comes after it */
    FK_OUTBOX_EVENT_QUARANTINED, /* the peer, whatever the reason */
    FK_OUTBOX_EVENT_COUNT
} fk_outbox_event_kind;

typedef struct fk_outbox_event {
    fk_outbox_event_kind kind;
    uint64_t uid, seq;
} fk_outbox_event;

typedef enum fk_outbox_result {
    FK_OUTBOX_RESULT_DONE = 0,
    /* All others: nothing has changed. */
    FK_OUTBOX_RESULT_SAME,    /* it is so already; nothing that was not known */
    FK_OUTBOX_RESULT_STALE,   /* of a peer that is not the present one; or that was given up or
                                 replaced: with such a one there is no beginning again, because its
                                 inbox knows the old numbers */
    FK_OUTBOX_RESULT_INVALID, /* no such event, no uid, or a number that was never sent */
    FK_OUTBOX_RESULT_COUNT
} fk_outbox_result;

/* Why the peer is to be quarantined. */
typedef enum fk_outbox_despair {
    FK_OUTBOX_DESPAIR_NONE = 0,
    FK_OUTBOX_DESPAIR_OVERFLOW,
    FK_OUTBOX_DESPAIR_GAVE_UP
} fk_outbox_despair;

/* Written whole by each call that takes it. To be acted on in this order. */
typedef struct fk_outbox_effects {
    fk_envelopes delivered;    /* acknowledged: the caller's again */
    fk_envelopes lost;         /* the caller's again: each is one dead letter */
    fk_outbox_despair despair; /* quarantine the peer (`uid`; 0: nobody was met) */
    uint64_t uid;
    bool has_unsent; /* there is something to take (fk__outbox_take) */
} fk_outbox_effects;

/* config may be NULL. FK_E_INVALID. */
FK_MUST_USE fk_err fk__outbox_init(fk_outbox *outbox, const fk_delivery_config *config);
/* *left: what was not acknowledged; the caller's again. */
void fk__outbox_fini(fk_outbox *outbox, fk_envelopes *left);
void fk__outbox_check(const fk_outbox *outbox);

/* Takes a parcel and numbers it, whether there is a connection or not. Everything but FK_OK means
 * that it is still the caller's, and a dead letter: FK_E_FULL, with which the peer is to be
 * quarantined; FK_E_QUARANTINED after that, until there is another one. */
FK_MUST_USE fk_err fk__outbox_put(fk_outbox *outbox, fk_parcel *parcel, fk_time now,
                                  fk_outbox_effects *effects);

FK_MUST_USE fk_outbox_result fk__outbox_step(fk_outbox *outbox, const fk_outbox_event *event,
                                             fk_time now, fk_outbox_effects *effects);

/* The next parcel to be written to the connection, for the first time or again, or NULL. It stays
 * with the outbox: lent until the next call. So a connection that is full simply does not ask. */
fk_parcel *fk__outbox_take(fk_outbox *outbox);

/* When fk__outbox_tick must be called next; every other call may change it. */
fk_time fk__outbox_next(const fk_outbox *outbox);
void fk__outbox_tick(fk_outbox *outbox, fk_time now, fk_outbox_effects *effects);

/* ---- the inbox ----------------------------------------------------------------------------- */

/* All zero is the inbox of an origin from which nothing has come. */
typedef struct fk_inbox {
    uint64_t seq; /* the highest number that was delivered */
} fk_inbox;

typedef struct fk_inbox_effects {
    bool must_deliver;
    bool is_gap;  /* answer with a nack, else with an ack */
    uint64_t seq; /* that the answer carries */
} fk_inbox_effects;

/* A message with that number has come. */
void fk__inbox_step(fk_inbox *inbox, uint64_t seq, fk_inbox_effects *effects);
/* What was to be delivered could not be: it counts as not come, and no answer is to be sent. It
 * will be sent again. */
void fk__inbox_undo(fk_inbox *inbox, const fk_inbox_effects *effects);

#endif /* FK_REMOTE_DELIVERY_H */

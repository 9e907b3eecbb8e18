/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_TELEGRAM_H
#define FK_CLUSTER_TELEGRAM_H

/*
 * Telegrams: what the stewards of two nodes say to each other, as bytes of one message
 * (FK_SERIALIZER_CLUSTER). Views into the bytes; what comes in is checked before it is believed.
 */

#include "cluster/call.h"
#include "wire/codec.h"

typedef enum fk_telegram_kind {
    FK_TELEGRAM_CALL = 1,
    FK_TELEGRAM_ANSWER,
    FK_TELEGRAM_MOVED, /* slots are the receiver's now; epoch 0: it seems so, let it ask the lock */
    FK_TELEGRAM_NEWS,  /* there is another view */
} fk_telegram_kind;

/* A user's message as bytes; serializer 0: there is none. */
typedef struct fk_cargo {
    int32_t serializer;
    fk_str manifest;
    fk_str bytes;
} fk_cargo;

typedef struct fk_telegram {
    fk_telegram_kind kind;
    uint64_t view;        /* version of the newest that its sender knows of */
    fk_request request;   /* CALL, ANSWER */
    fk_request earlier;   /* CALL */
    uint64_t low;         /* CALL */
    uint32_t left_ms;     /* CALL: how long anybody waits */
    uint8_t hops;         /* CALL */
    bool wants_answer;    /* CALL */
    fk_err err;           /* ANSWER */
    fk_str authority;     /* ANSWER: id of the member whose grain has answered, or empty */
    fk_str reply_to;      /* CALL: address of its origin */
    fk_str grain_kind;    /* CALL, MOVED */
    fk_str key;           /* CALL */
    uint64_t incarnation; /* MOVED: of the receiver */
    fk_str claims;        /* MOVED: fk__telegram_claim() */
    uint32_t claim_count;
    fk_cargo cargo; /* CALL, ANSWER */
} fk_telegram;

size_t fk__telegram_measure(const fk_telegram *telegram);
/* size: as measured. MOVED: claims.ptr is NULL when encoding, and `claims` gives them. */
void fk__telegram_encode(const fk_telegram *telegram, const fk_slot_claim *claims,
                         unsigned char *to, size_t size);
/* FK_E_TRUNCATED, FK_E_MALFORMED, FK_E_PROTOCOL (a newer version). Limits: kind, key, address as in
 * placement.h; at most 4,096 claims. */
FK_MUST_USE fk_err fk__telegram_decode(fk_str bytes, fk_telegram *out, fk_wire_fault *fault);
/* One of MOVED's. */
void fk__telegram_claim(const fk_telegram *telegram, uint32_t index, fk_slot_claim *out);

#endif /* FK_CLUSTER_TELEGRAM_H */

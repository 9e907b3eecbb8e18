/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_STORE_KIT_H
#define FK_TESTS_STORE_KIT_H

/*
 * The conformance kit: what must hold for every store. A program that links kit*.c says by the three
 * functions below which store it is about, and has all the cases.
 */

#include "fraktor/store.h"
#include "support/rig.h"

/* The URL of a store that is empty when the test begins. */
const char *kit_url(void);
/* Lets that much time pass for the store. */
void kit_pass(fk_store *store, unsigned ms);
/* After a test whose stores are all closed. */
void kit_clean(void);

#define KIT_TTL 60000u /* ms; longer than any test */

typedef struct kit {
    rig r;
    fk_store *a, *b;  /* two handles of one store */
    size_t room_left; /* calls of room() that are granted; SIZE_MAX: all */
    size_t keys;      /* that were listed */
    fk_str key[64];
} kit;

extern kit k;

void kit_begin(void);
void kit_end(void);
fk_store *kit_open(bool is_state);
void kit_close(fk_store *store);
void kit_reopen(void);

fk_store_op kit_op(fk_store_verb verb);
void kit_do(fk_store *store, fk_store_op *op);

/* Each does one op, and gives it back with its answer. */
fk_store_op kit_join(fk_store *store, const char *id, unsigned ttl_ms);
fk_store_op kit_member(fk_store *store, fk_store_verb verb, const char *id, uint64_t incarnation);
fk_store_op kit_view(fk_store *store, uint64_t known);
fk_store_op kit_claim(fk_store *store, fk_store_verb verb, const char *id, uint64_t incarnation,
                      fk_slot_claim *claim);
/* The epoch, 0 when it is refused. */
uint64_t kit_acquire(fk_store *store, const char *id, uint64_t incarnation, uint32_t slot);
fk_fence kit_fence(uint64_t epoch, const char *holder, uint64_t incarnation);
fk_store_op kit_load(fk_store *store, const char *key, fk_fence fence);
fk_store_op kit_put(fk_store *store, const char *key, fk_fence fence, uint64_t version,
                    const char *snapshot);
fk_store_op kit_remove(fk_store *store, const char *key, fk_fence fence, uint64_t version);
fk_store_op kit_peek(fk_store *store, const char *key);

#define CHECK_TEXT(actual, expected)                                                               \
    do {                                                                                           \
        fk_str text_is = (actual);                                                                 \
        CHECK_U64(text_is.len, sizeof(expected) - 1);                                              \
        CHECK(memcmp(text_is.ptr, expected, sizeof(expected) - 1) == 0);                           \
    } while (0)
#define CHECK_DONE(op)                                                                             \
    do {                                                                                           \
        fk_store_op op_is = (op);                                                                  \
        CHECK_ERR(op_is.err, FK_OK);                                                               \
        CHECK_U64(op_is.verdict, FK_VERDICT_OK);                                                   \
    } while (0)
#define CHECK_REFUSED(op, error)                                                                   \
    do {                                                                                           \
        fk_store_op op_is = (op);                                                                  \
        CHECK_ERR(op_is.err, error);                                                               \
        CHECK_U64(op_is.verdict, FK_VERDICT_REFUSED);                                              \
        CHECK(op_is.reason != NULL);                                                               \
    } while (0)
#define CHECK_UNKNOWN(op, error)                                                                   \
    do {                                                                                           \
        fk_store_op op_is = (op);                                                                  \
        CHECK_ERR(op_is.err, error);                                                               \
        CHECK_U64(op_is.verdict, FK_VERDICT_UNKNOWN);                                              \
        CHECK(op_is.reason != NULL);                                                               \
    } while (0)

#endif /* FK_TESTS_STORE_KIT_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_TEXTS_H
#define FK_WIRE_TEXTS_H

/*
 * From texts to numbers, in memory of fixed size: an array of slots and chains through them. The
 * texts come from the other side, so the hash has a secret key. Where the bytes of a text lie is
 * its user's business.
 */

#include "base/hash.h"
#include "wire/wire.h"

enum { FK_TEXTS_NONE = UINT16_MAX };

typedef struct fk_texts_slot {
    const char *ptr;
    uint32_t number; /* whatever its user counts */
    uint16_t len;
    uint16_t next; /* in its chain */
} fk_texts_slot;

typedef struct fk_texts {
    fk_texts_slot *slot;
    uint16_t *bucket;
    uint32_t bucket_mask;
    uint16_t capacity; /* slots; fewer than FK_TEXTS_NONE */
    uint16_t count;    /* slots in use: 0 .. count - 1 */
    fk_hash_key key;
} fk_texts;

/* Bytes that fk__texts_init() needs, aligned as pointers are; a multiple of that. */
size_t fk__texts_memory(uint16_t capacity);
void fk__texts_init(fk_texts *texts, const fk_hash_key *key, uint16_t capacity, void *memory);
void fk__texts_clear(fk_texts *texts);
/* FK_TEXTS_NONE: it is not there. */
uint16_t fk__texts_find(const fk_texts *texts, fk_str text);
/* Fills the slot `count` with a text that is not there yet; there must be room. */
uint16_t fk__texts_add(fk_texts *texts, fk_str text, uint32_t number);
/* Gives a slot in use another text; the old one's bytes are still there when this is called. */
void fk__texts_replace(fk_texts *texts, uint16_t slot, fk_str text, uint32_t number);

static inline fk_str fk__texts_at(const fk_texts *texts, uint16_t slot)
{
    FK_ASSERT(slot < texts->count);
    return (fk_str){ texts->slot[slot].ptr, texts->slot[slot].len };
}

#endif /* FK_WIRE_TEXTS_H */

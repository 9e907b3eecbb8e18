/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire/texts.h"

static uint32_t texts_buckets(uint16_t capacity)
{
    uint32_t n = 1;
    while (n < capacity) n *= 2;
    return n;
}

size_t fk__texts_memory(uint16_t capacity)
{
    size_t size = capacity * sizeof(fk_texts_slot) + texts_buckets(capacity) * sizeof(uint16_t);
    return (size + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

void fk__texts_init(fk_texts *texts, const fk_hash_key *key, uint16_t capacity, void *memory)
{
    FK_ASSERT(capacity < FK_TEXTS_NONE);
    FK_ASSERT((uintptr_t)memory % sizeof(void *) == 0);
    *texts = (fk_texts){ .slot = memory, .capacity = capacity, .key = *key };
    texts->bucket = (uint16_t *)(void *)(texts->slot + capacity);
    texts->bucket_mask = texts_buckets(capacity) - 1;
    fk__texts_clear(texts);
}

void fk__texts_clear(fk_texts *texts)
{
    texts->count = 0;
    for (uint32_t i = 0; i <= texts->bucket_mask; i++) texts->bucket[i] = FK_TEXTS_NONE;
}

static uint16_t *texts_bucket(const fk_texts *texts, fk_str text)
{
    uint64_t hash = fk__hash_bytes(&texts->key, text.ptr, text.len);
    return &texts->bucket[hash & texts->bucket_mask];
}

uint16_t fk__texts_find(const fk_texts *texts, fk_str text)
{
    uint16_t i = *texts_bucket(texts, text);
    while (i != FK_TEXTS_NONE && !fk__wire_equal(fk__texts_at(texts, i), text)) {
        i = texts->slot[i].next;
    }
    return i;
}

static void texts_link(fk_texts *texts, uint16_t slot, fk_str text, uint32_t number)
{
    uint16_t *bucket = texts_bucket(texts, text);
    FK_ASSERT(text.len <= UINT16_MAX);
    FK_CHECK_SLOW(fk__texts_find(texts, text) == FK_TEXTS_NONE);
    texts->slot[slot] = (fk_texts_slot){ text.ptr, number, (uint16_t)text.len, *bucket };
    *bucket = slot;
}

uint16_t fk__texts_add(fk_texts *texts, fk_str text, uint32_t number)
{
    FK_ASSERT(texts->count < texts->capacity);
    uint16_t slot = texts->count++;
    texts_link(texts, slot, text, number);
    return slot;
}

void fk__texts_replace(fk_texts *texts, uint16_t slot, fk_str text, uint32_t number)
{
    uint16_t *link = texts_bucket(texts, fk__texts_at(texts, slot));
    while (*link != slot) {
        FK_ASSERT(*link != FK_TEXTS_NONE);
        link = &texts->slot[*link].next;
    }
    *link = texts->slot[slot].next;
    texts_link(texts, slot, text, number);
}

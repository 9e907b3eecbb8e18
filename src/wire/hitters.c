/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire/hitters.h"

static size_t hitters_text_size(uint16_t count_max, uint16_t text_max)
{
    return ((size_t)count_max * text_max + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

size_t fk__hitters_memory(uint16_t count_max, uint16_t text_max)
{
    return fk__texts_memory(count_max) + hitters_text_size(count_max, text_max);
}

void fk__hitters_init(fk_hitters *h, const fk_hash_key *key, uint16_t count_max, uint16_t text_max,
                      void *memory)
{
    unsigned char *bytes = memory;
    fk__texts_init(&h->texts, key, count_max, bytes);
    h->text = (char *)(bytes + fk__texts_memory(count_max));
    h->text_max = text_max;
    h->hand = 0;
}

/* The slot's own place, where the text is copied to. */
static fk_str hitters_keep(fk_hitters *h, uint16_t slot, fk_str text)
{
    char *place = h->text + (size_t)slot * h->text_max;
    memcpy(place, text.ptr, text.len);
    return (fk_str){ place, text.len };
}

/* A newcomer while all slots are taken. */
static void hitters_challenge(fk_hitters *h, fk_str text)
{
    uint16_t slot = h->hand;
    h->hand = (uint16_t)(slot + 1 < h->texts.count ? slot + 1 : 0);
    if (h->texts.slot[slot].number > 0) h->texts.slot[slot].number--;
    if (h->texts.slot[slot].number > 0) return;
    /* It leaves its chain by its old bytes, so these are overwritten after that. */
    fk__texts_replace(&h->texts, slot, text, 1);
    h->texts.slot[slot].ptr = hitters_keep(h, slot, text).ptr;
}

void fk__hitters_hit(fk_hitters *h, fk_str text)
{
    if (text.len == 0 || text.len > h->text_max || h->texts.capacity == 0) return;
    uint16_t slot = fk__texts_find(&h->texts, text);
    if (slot != FK_TEXTS_NONE) {
        if (h->texts.slot[slot].number < UINT32_MAX) h->texts.slot[slot].number++;
    } else if (h->texts.count < h->texts.capacity) {
        (void)fk__texts_add(&h->texts, hitters_keep(h, h->texts.count, text), 1);
    } else {
        hitters_challenge(h, text);
    }
}

void fk__hitters_age(fk_hitters *h)
{
    for (uint16_t i = 0; i < h->texts.count; i++) h->texts.slot[i].number /= 2;
}

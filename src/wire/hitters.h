/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_HITTERS_H
#define FK_WIRE_HITTERS_H

/*
 * Which texts come most often, without remembering all of them. Each slot counts one text; when a
 * new one comes and all slots are taken, a hand goes on by one slot and takes one off its count,
 * and who has nothing left makes room. So a text stays if it comes more often than once in as many
 * newcomers as there are slots, and a hit costs the same whatever comes.
 */

#include "wire/texts.h"

typedef struct fk_hitters {
    fk_texts texts; /* number: the count */
    char *text;     /* text_max bytes for each slot */
    uint16_t text_max;
    uint16_t hand;
} fk_hitters;

size_t fk__hitters_memory(uint16_t count_max, uint16_t text_max);
void fk__hitters_init(fk_hitters *h, const fk_hash_key *key, uint16_t count_max, uint16_t text_max,
                      void *memory);
/* Texts that are empty or longer than text_max are not counted. */
void fk__hitters_hit(fk_hitters *h, fk_str text);
/* Halves all counts: what was popular long ago shall not be so for ever. */
void fk__hitters_age(fk_hitters *h);

#endif /* FK_WIRE_HITTERS_H */

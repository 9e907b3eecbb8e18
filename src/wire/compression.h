/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_COMPRESSION_H
#define FK_WIRE_COMPRESSION_H

/*
 * The receiver's side of compression, for one sending system and one kind of text (references, or
 * manifests): counts what comes, makes tables of it, and reads what was written by them.
 *
 * Every minute or so the owner asks for an advertisement. It is sent until the peer has confirmed it
 * or used it, a few times at most. Then it is the table in use; those before it are kept for
 * messages that were already on their way.
 *
 * References to temporary actors should not be counted: they come once.
 */

#include "wire/hitters.h"
#include "wire/table.h"

enum {
    FK_COMPRESSION_TABLES = 4,   /* the one in use, two before it, and the one advertised */
    FK_COMPRESSION_RESENDS = 3,  /* of an advertisement that is not answered */
    FK_COMPRESSION_HITS_MIN = 2, /* what came once is not worth a place */
};

typedef struct fk_compression_config {
    uint16_t count_max; /* texts in a table */
    uint16_t text_max;  /* bytes of one text; longer ones are never compressed */
    uint32_t text_size; /* bytes of all texts of a table */
} fk_compression_config;

typedef struct fk_compression {
    fk_hitters hitters;
    fk_wire_table table[FK_COMPRESSION_TABLES];
    fk_str *keys; /* of the advertisement */
    uint32_t *values;
    uint8_t active; /* the table in use; the ones before it in the ring are older */
    uint8_t known;  /* tables that may be used, the active one included */
    uint8_t resends;
    bool is_advertised; /* the table after the active one is on its way */
    bool is_ignored;    /* the peer never answered for the active one, so it does not have it */
    bool has_news;      /* something was counted since the last advertisement */
} fk_compression;

size_t fk__compression_memory(const fk_compression_config *config);
void fk__compression_init(fk_compression *c, const fk_compression_config *config,
                          const fk_hash_key *key, void *memory);

/* A text came, compressed or not. */
void fk__compression_hit(fk_compression *c, fk_str text);
/* The text that stands for an index. FK_E_NOT_FOUND: the table is not known, or not any more: the
 * message is lost, the stream is not. FK_E_MALFORMED: the table has no such index. */
FK_MUST_USE fk_err fk__compression_find(fk_compression *c, uint8_t version, uint16_t index,
                                        fk_str *out);
/* Time for an advertisement. False: there is nothing to say. The lists and the version of *out are
 * written, and lent until the next call; from and origin_uid are the caller's. */
FK_MUST_USE bool fk__compression_advertise(fk_compression *c, fk_wire_advertisement *out);
/* The peer's ack. One that is late or strange is ignored. */
void fk__compression_confirm(fk_compression *c, uint8_t version);

#endif /* FK_WIRE_COMPRESSION_H */

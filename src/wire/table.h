/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_TABLE_H
#define FK_WIRE_TABLE_H

/*
 * A compression table: texts that both sides know by a number. The receiver of messages makes it
 * and advertises it; the sender of messages uses it once it has said so (the ack).
 */

#include "wire/control.h"
#include "wire/envelope.h"
#include "wire/texts.h"

enum { FK_TABLE_VERSION_MAX = 127 };

typedef struct fk_wire_table {
    fk_texts texts; /* number: the value that stands for the text */
    char *text;     /* where the texts lie, one after the other */
    uint32_t text_size;
    uint32_t text_len;
    uint8_t version;
} fk_wire_table;

/* Bytes that fk__table_init() needs, aligned as pointers are; a multiple of that. */
size_t fk__table_memory(uint16_t count_max, uint32_t text_size);
/* An empty table of version 0. */
void fk__table_init(fk_wire_table *t, const fk_hash_key *key, uint16_t count_max,
                    uint32_t text_size, void *memory);
void fk__table_clear(fk_wire_table *t, uint8_t version);
/* The text is copied. False: it is empty, there already, or there is no room for it. */
bool fk__table_add(fk_wire_table *t, fk_str text, uint16_t value);

/* ---- the sender's side ----------------------------------------------------------------------
 * Texts that do not fit are left out: they are then sent as they are. */

/* What the peer advertised replaces what was there; the ack goes back with its version.
 * FK_E_FOREIGN: it is meant for another system, say, an earlier one of the same address; nothing
 * was changed, and nothing is to be answered. */
FK_MUST_USE fk_err fk__table_accept(fk_wire_table *t, const fk_wire_advertisement *advertisement,
                                    uint64_t own_uid);
/* A name as this table has it: compressed, if it is there. */
fk_wire_name fk__table_name(const fk_wire_table *t, fk_str text);

#endif /* FK_WIRE_TABLE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire/compression.h"

size_t fk__compression_memory(const fk_compression_config *config)
{
    size_t tables = fk__table_memory(config->count_max, config->text_size);
    size_t values =
        (config->count_max * sizeof(uint32_t) + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
    return fk__hitters_memory(config->count_max, config->text_max) +
           FK_COMPRESSION_TABLES * tables + config->count_max * sizeof(fk_str) + values;
}

void fk__compression_init(fk_compression *c, const fk_compression_config *config,
                          const fk_hash_key *key, void *memory)
{
    unsigned char *at = memory;
    fk__hitters_init(&c->hitters, key, config->count_max, config->text_max, at);
    at += fk__hitters_memory(config->count_max, config->text_max);
    for (unsigned i = 0; i < FK_COMPRESSION_TABLES; i++) {
        fk__table_init(&c->table[i], key, config->count_max, config->text_size, at);
        at += fk__table_memory(config->count_max, config->text_size);
    }
    c->keys = (fk_str *)(void *)at;
    c->values = (uint32_t *)(void *)(at + config->count_max * sizeof(fk_str));
    c->active = 0;
    c->known = 1;
    c->resends = 0;
    c->is_advertised = false;
    c->is_ignored = false;
    c->has_news = false;
}

void fk__compression_hit(fk_compression *c, fk_str text)
{
    fk__hitters_hit(&c->hitters, text);
    c->has_news = true;
}

/* ---- tables --------------------------------------------------------------------------------- */

static fk_wire_table *compression_next(fk_compression *c)
{
    return &c->table[(c->active + 1) % FK_COMPRESSION_TABLES];
}

/* The table that was advertised is in use from now on. */
static void compression_turn(fk_compression *c, bool is_ignored)
{
    FK_ASSERT(c->is_advertised);
    c->active = (uint8_t)((c->active + 1) % FK_COMPRESSION_TABLES);
    if (c->known < FK_COMPRESSION_TABLES - 1) c->known++;
    c->is_advertised = false;
    c->is_ignored = is_ignored;
}

void fk__compression_confirm(fk_compression *c, uint8_t version)
{
    if (c->is_advertised && compression_next(c)->version == version) compression_turn(c, false);
}

fk_err fk__compression_find(fk_compression *c, uint8_t version, uint16_t index, fk_str *out)
{
    /* Who uses a table has read it, whatever became of the ack. */
    fk__compression_confirm(c, version);
    for (unsigned i = 0; i < c->known; i++) {
        unsigned place = (c->active + FK_COMPRESSION_TABLES - i) % FK_COMPRESSION_TABLES;
        const fk_wire_table *table = &c->table[place];
        if (table->version != version) continue;
        if (index >= table->texts.count) return FK_E_MALFORMED;
        *out = fk__texts_at(&table->texts, index);
        return FK_OK;
    }
    return FK_E_NOT_FOUND;
}

/* ---- advertisements ------------------------------------------------------------------------- */

static bool compression_same(const fk_wire_table *a, const fk_wire_table *b)
{
    if (a->texts.count != b->texts.count) return false;
    for (uint16_t i = 0; i < a->texts.count; i++) {
        if (fk__texts_find(&b->texts, fk__texts_at(&a->texts, i)) == FK_TEXTS_NONE) return false;
    }
    return true;
}

/* What came often into the next table, numbered from 0 without gaps, as Pekko wants it. False: it
 * would be the one that is in use. */
static bool compression_build(fk_compression *c)
{
    const fk_wire_table *active = &c->table[c->active];
    fk_wire_table *next = compression_next(c);
    const fk_texts *hitters = &c->hitters.texts;
    fk__table_clear(next, active->version < FK_TABLE_VERSION_MAX ? active->version + 1 : 0);
    for (uint16_t i = 0; i < hitters->count; i++) {
        if (hitters->slot[i].number < FK_COMPRESSION_HITS_MIN) continue;
        (void)fk__table_add(next, fk__texts_at(hitters, i), next->texts.count);
    }
    fk__hitters_age(&c->hitters);
    return next->texts.count > 0 && (c->is_ignored || !compression_same(next, active));
}

static void compression_fill(fk_compression *c, fk_wire_advertisement *out)
{
    const fk_wire_table *next = compression_next(c);
    uint16_t count = next->texts.count;
    for (uint16_t i = 0; i < count; i++) {
        c->keys[i] = fk__texts_at(&next->texts, i);
        c->values[i] = next->texts.slot[i].number;
    }
    out->version = next->version;
    out->keys = (fk_proto_list){ .count = count, .items = c->keys };
    out->values = (fk_proto_list){ .count = count, .items = c->values };
}

bool fk__compression_advertise(fk_compression *c, fk_wire_advertisement *out)
{
    if (c->is_advertised && c->resends == FK_COMPRESSION_RESENDS) {
        compression_turn(c, true); /* given up; it may still be used, so its version is spent */
        return false;
    }
    if (c->is_advertised) {
        c->resends++;
    } else {
        if (!c->has_news || !compression_build(c)) return false;
        c->has_news = false;
        c->is_advertised = true;
        c->resends = 0;
    }
    compression_fill(c, out);
    return true;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire/table.h"

static size_t table_text_size(uint32_t text_size)
{
    return ((size_t)text_size + sizeof(void *) - 1) & ~(sizeof(void *) - 1);
}

size_t fk__table_memory(uint16_t count_max, uint32_t text_size)
{
    return fk__texts_memory(count_max) + table_text_size(text_size);
}

void fk__table_init(fk_wire_table *t, const fk_hash_key *key, uint16_t count_max,
                    uint32_t text_size, void *memory)
{
    unsigned char *bytes = memory;
    fk__texts_init(&t->texts, key, count_max, bytes);
    t->text = (char *)(bytes + fk__texts_memory(count_max));
    t->text_size = text_size;
    t->text_len = 0;
    t->version = 0;
}

void fk__table_clear(fk_wire_table *t, uint8_t version)
{
    FK_ASSERT(version <= FK_TABLE_VERSION_MAX);
    fk__texts_clear(&t->texts);
    t->text_len = 0;
    t->version = version;
}

bool fk__table_add(fk_wire_table *t, fk_str text, uint16_t value)
{
    if (text.len == 0 || text.len > FK_WIRE_LITERAL_MAX) return false;
    if (text.len > t->text_size - t->text_len) return false;
    if (t->texts.count == t->texts.capacity) return false;
    if (fk__texts_find(&t->texts, text) != FK_TEXTS_NONE) return false;
    char *copy = t->text + t->text_len;
    memcpy(copy, text.ptr, text.len);
    t->text_len += (uint32_t)text.len;
    (void)fk__texts_add(&t->texts, (fk_str){ copy, text.len }, value);
    return true;
}

fk_err fk__table_accept(fk_wire_table *t, const fk_wire_advertisement *advertisement,
                        uint64_t own_uid)
{
    fk_wire_pair pair = { 0 };
    if (advertisement->origin_uid != own_uid) return FK_E_FOREIGN;
    fk__table_clear(t, (uint8_t)advertisement->version);
    while (fk__advertisement_next(advertisement, &pair)) {
        (void)fk__table_add(t, pair.key, (uint16_t)pair.value);
    }
    return FK_OK;
}

fk_wire_name fk__table_name(const fk_wire_table *t, fk_str text)
{
    uint16_t slot = t->texts.count > 0 ? fk__texts_find(&t->texts, text) : FK_TEXTS_NONE;
    if (slot == FK_TEXTS_NONE) return (fk_wire_name){ .text = text };
    return (fk_wire_name){ .text = text,
                           .index = (uint16_t)t->texts.slot[slot].number,
                           .is_compressed = true };
}

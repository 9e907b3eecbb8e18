/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An entry is the hash's upper half and the slot plus one; zero is empty. Linear probing, removal
 * by shifting back, so there are no tombstones and a parent that makes and loses a million
 * children one by one keeps a small table.
 *
 * Generated names are numbers. Eight in a row hash to one cache line, so that a parent that makes
 * many children touches a new line only every eighth time; the lines are spread like any hash.
 */

#include "core/children.h"

#include "core/path.h"

enum { SHIFT_MIN = 3, PER_LINE = 8, NAME_MAX_LEN = 255 };

static uint32_t children_capacity(const fk_cell *parent)
{
    return parent->children == NULL ? 0 : (uint32_t)1 << parent->children_shift;
}

/* ---- names ------------------------------------------------------------------------------- */

size_t fk__cell_name(const fk_cell *cell, char *buf, size_t size)
{
    char generated[FK_AUTONAME_MAX];
    const char *text = generated;
    size_t len;
    if (cell->name != NULL) {
        text = cell->name->text;
        len = cell->name->len;
    } else {
        len = fk_path_autoname(cell->u.number, generated);
    }
    memcpy(buf, text, len < size ? len : size);
    return len;
}

/* ---- the table: under the parent's lock -------------------------------------------------- */

static uint64_t entry_of(uint64_t hash, uint32_t slot)
{
    return (hash & 0xffffffff00000000u) | (slot + 1);
}

static uint32_t entry_home(uint64_t entry, uint32_t capacity)
{
    return (uint32_t)(entry >> 32) & (capacity - 1);
}

/* "A" and "%41" are one name, so they have one hash. */
static uint64_t name_hash(const fk_hash_key *key, fk_str name)
{
    char decoded[NAME_MAX_LEN];
    if (fk__segment_has_escape(name)) {
        FK_ASSERT(name.len <= sizeof(decoded));
        fk_uri_err err = fk__uri_decode(name, decoded, sizeof(decoded), &name.len, NULL);
        FK_ASSERT(err == FK_URI_OK); /* it was checked when the actor was made */
        name.ptr = decoded;
    }
    return fk__hash_bytes(key, name.ptr, name.len);
}

static uint64_t cell_hash(const fk_cell *cell)
{
    const fk_name *name = cell->name;
    if (name != NULL) return name_hash(&cell->sys->key, (fk_str){ name->text, name->len });
    uint64_t number = cell->u.number;
    uint64_t line = fk__mix64(number / PER_LINE) & ~((uint64_t)(PER_LINE - 1) << 32);
    return line | (number % PER_LINE) << 32;
}

static fk_cell *entry_cell(const fk_cell *parent, uint64_t entry)
{
    return fk__slots_at(&parent->sys->slots, (uint32_t)entry - 1);
}

static void entry_insert(uint64_t *table, uint32_t capacity, uint64_t entry)
{
    uint32_t i = entry_home(entry, capacity);
    while (table[i] != 0) i = (i + 1) & (capacity - 1);
    table[i] = entry;
}

static bool has_name(const fk_cell *parent, uint64_t hash, fk_str name)
{
    const fk_ruleset *rules = fk__ruleset(FK_RULES_FRAKTOR);
    const uint64_t *table = parent->children;
    uint32_t capacity = children_capacity(parent);
    if (capacity == 0) return false;
    for (uint32_t i = entry_home(hash, capacity); table[i] != 0; i = (i + 1) & (capacity - 1)) {
        if ((table[i] >> 32) != (hash >> 32)) continue;
        const fk_name *other = entry_cell(parent, table[i])->name;
        if (other == NULL) continue;
        if (fk__segment_equal(rules, (fk_str){ other->text, other->len }, name)) return true;
    }
    return false;
}

/* A small table may be nearly full, a large one at most half. */
static fk_err reserve_child(fk_local *local, fk_cell *parent)
{
    uint32_t old_capacity = children_capacity(parent);
    uint32_t full = old_capacity <= 64 ? old_capacity - old_capacity / 4 : old_capacity / 2;
    if (parent->children_count < full) return FK_OK;
    uint8_t shift = parent->children == NULL ? SHIFT_MIN : (uint8_t)(parent->children_shift + 1);
    uint32_t capacity = (uint32_t)1 << shift;
    uint64_t *old = parent->children;
    uint64_t *table =
        fk__cache_alloc(&local->cache, capacity * sizeof(*table), FK_SITE("table of children"));
    if (table == NULL) return local->cache.err;
    memset(table, 0, capacity * sizeof(*table));
    for (uint32_t i = 0; i < old_capacity; i++) {
        if (old[i] != 0) entry_insert(table, capacity, old[i]);
    }
    parent->children = table;
    parent->children_shift = shift;
    fk__cache_free(&local->cache, old, old_capacity * sizeof(*old));
    return FK_OK;
}

/* ---- the functions ----------------------------------------------------------------------- */

static fk_err name_copy(fk_local *local, fk_str name, fk_name **out)
{
    *out = NULL;
    if (name.len == 0) return FK_OK;
    fk_name *copy =
        fk__cache_alloc(&local->cache, sizeof(fk_name) + name.len, FK_SITE("name of an actor"));
    if (copy == NULL) return local->cache.err;
    copy->len = (uint32_t)name.len;
    memcpy(copy->text, name.ptr, name.len);
    *out = copy;
    return FK_OK;
}

static void name_free(fk_local *local, fk_name *name)
{
    if (name != NULL) fk__cache_free(&local->cache, name, sizeof(fk_name) + name->len);
}

fk_err fk__children_add(fk_local *local, fk_cell *parent, fk_cell *child, fk_str name)
{
    fk_mem *mem = &parent->sys->mem;
    fk_name *copy;
    FK_TRY(name_copy(local, name, &copy));
    fk__mem_lock(mem, &parent->children_lock);
    child->name = copy;
    if (copy == NULL) child->u.number = parent->child_counter;
    uint64_t hash = cell_hash(child);
    fk_err err = parent->closed != 0 ? FK_E_STOPPING : FK_OK;
    if (err == FK_OK && copy != NULL && has_name(parent, hash, name)) err = FK_E_NAME_TAKEN;
    if (err == FK_OK) err = reserve_child(local, parent);
    if (err == FK_OK) {
        entry_insert(parent->children, children_capacity(parent), entry_of(hash, child->slot));
        parent->children_count++;
        if (copy == NULL) parent->child_counter++;
    }
    fk__mem_unlock(mem, &parent->children_lock);
    if (err != FK_OK) {
        child->name = NULL;
        name_free(local, copy);
    }
    return err;
}

void fk__children_remove(fk_local *local, fk_cell *parent, fk_cell *child)
{
    fk_mem *mem = &parent->sys->mem;
    uint64_t entry = entry_of(cell_hash(child), child->slot);
    fk__mem_lock(mem, &parent->children_lock);
    uint64_t *table = parent->children;
    uint32_t capacity = children_capacity(parent);
    uint32_t mask = capacity - 1;
    uint32_t i = entry_home(entry, capacity);
    while (table[i] != entry) {
        FK_ASSERT(table[i] != 0);
        i = (i + 1) & mask;
    }
    /* Shift back whatever would not be found any more across the gap. */
    for (uint32_t j = (i + 1) & mask; table[j] != 0; j = (j + 1) & mask) {
        uint32_t home = entry_home(table[j], capacity);
        if (((j - home) & mask) >= ((j - i) & mask)) {
            table[i] = table[j];
            i = j;
        }
    }
    table[i] = 0;
    parent->children_count--;
    fk_name *name = child->name;
    child->name = NULL;
    fk__mem_unlock(mem, &parent->children_lock);
    name_free(local, name);
}

void fk__children_close(fk_cell *parent)
{
    fk_mem *mem = &parent->sys->mem;
    fk__mem_lock(mem, &parent->children_lock);
    parent->closed = 1;
    fk__mem_unlock(mem, &parent->children_lock);
}

fk_cell *fk__children_next(fk_cell *parent, uint32_t *cursor)
{
    uint32_t capacity = children_capacity(parent);
    while (*cursor < capacity) {
        uint64_t entry = parent->children[(*cursor)++];
        if (entry != 0) return entry_cell(parent, entry);
    }
    return NULL;
}

void fk__children_fini(fk_local *local, fk_cell *parent)
{
    fk_mem *mem = &parent->sys->mem;
    uint32_t capacity = children_capacity(parent);
    FK_ASSERT(parent->children_count == 0);
    if (capacity == 0) return;
    fk__mem_lock(mem, &parent->children_lock);
    uint64_t *table = parent->children;
    parent->children = NULL;
    fk__mem_unlock(mem, &parent->children_lock);
    fk__cache_free(&local->cache, table, capacity * sizeof(*table));
}

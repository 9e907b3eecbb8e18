/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An entry is the hash's upper half and the slot plus one; zero is empty. Linear probing, removal
 * by shifting back, so there are no tombstones and a parent that makes and loses a million
 * children one by one keeps a small table.
 */

#include "core/children.h"

enum { NAME_MAX_LEN = 255, TABLE_MIN = 8, GENERATED_MAX = 16 };

struct fk_children {
    uint32_t capacity; /* a power of two */
    uint32_t count;
    uint64_t entry[];
};

static size_t table_size(uint32_t capacity)
{
    return sizeof(fk_children) + (size_t)capacity * sizeof(uint64_t);
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_name_char(char c)
{
    static const char OTHERS[] = "-_.*$+:@&=,!~';";
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return true;
    for (const char *o = OTHERS; *o != '\0'; o++) {
        if (*o == c) return true;
    }
    return false;
}

fk_err fk__name_check(fk_str name)
{
    if (name.len > NAME_MAX_LEN) return FK_E_LIMIT;
    if (name.ptr[0] == '$') return FK_E_RESERVED;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (c == '%') {
            if (name.len - i < 3 || !is_hex(name.ptr[i + 1]) || !is_hex(name.ptr[i + 2])) {
                return FK_E_NAME;
            }
            i += 2;
        } else if (!is_name_char(c)) {
            return FK_E_NAME;
        }
    }
    if (name.len <= 2 && name.ptr[0] == '.' && name.ptr[name.len - 1] == '.') return FK_E_NAME;
    return FK_OK;
}

/* "$" and the number in base 64, lowest digit first: $a, $b, ... $~, $ab, ... */
static size_t name_generate(uint64_t number, char *buf)
{
    static const char DIGITS[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";
    size_t len = 0;
    buf[len++] = '$';
    do {
        buf[len++] = DIGITS[number & 63];
        number >>= 6;
    } while (number != 0);
    return len;
}

size_t fk__cell_name(const fk_cell *cell, char *buf, size_t size)
{
    char generated[GENERATED_MAX];
    const char *text = generated;
    size_t len;
    if (cell->name != NULL) {
        text = cell->name->text;
        len = cell->name->len;
    } else {
        len = name_generate(cell->u.number, generated);
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

static uint64_t cell_hash(const fk_cell *cell)
{
    if (cell->name == NULL) return fk__mix64(cell->u.number);
    return fk__hash_bytes(&cell->sys->key, cell->name->text, cell->name->len);
}

static fk_cell *entry_cell(const fk_cell *parent, uint64_t entry)
{
    return fk__slots_at(&parent->sys->slots, (uint32_t)entry - 1);
}

static void table_insert(fk_children *table, uint64_t entry)
{
    uint32_t mask = table->capacity - 1;
    uint32_t i = entry_home(entry, table->capacity);
    while (table->entry[i] != 0) i = (i + 1) & mask;
    table->entry[i] = entry;
    table->count++;
}

static bool table_has_name(const fk_cell *parent, uint64_t hash, fk_str name)
{
    const fk_children *table = parent->children;
    if (table == NULL) return false;
    uint32_t mask = table->capacity - 1;
    for (uint32_t i = entry_home(hash, table->capacity); table->entry[i] != 0; i = (i + 1) & mask) {
        if ((table->entry[i] >> 32) != (hash >> 32)) continue;
        const fk_name *other = entry_cell(parent, table->entry[i])->name;
        if (other != NULL && other->len == name.len &&
            memcmp(other->text, name.ptr, name.len) == 0) {
            return true;
        }
    }
    return false;
}

static fk_err table_reserve(fk_local *local, fk_cell *parent)
{
    fk_children *old = parent->children;
    if (old != NULL && old->count < old->capacity - old->capacity / 4) return FK_OK;
    uint32_t capacity = old == NULL ? TABLE_MIN : old->capacity * 2;
    fk_children *table =
        fk__cache_alloc(&local->cache, table_size(capacity), FK_SITE("table of children"));
    if (table == NULL) return local->cache.err;
    memset(table, 0, table_size(capacity));
    table->capacity = capacity;
    for (uint32_t i = 0; old != NULL && i < old->capacity; i++) {
        if (old->entry[i] != 0) table_insert(table, old->entry[i]);
    }
    parent->children = table;
    if (old != NULL) fk__cache_free(&local->cache, old, table_size(old->capacity));
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
    if (err == FK_OK && copy != NULL && table_has_name(parent, hash, name)) err = FK_E_NAME_TAKEN;
    if (err == FK_OK) err = table_reserve(local, parent);
    if (err == FK_OK) {
        table_insert(parent->children, entry_of(hash, child->slot));
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
    fk_children *table = parent->children;
    uint32_t mask = table->capacity - 1;
    uint32_t i = entry_home(entry, table->capacity);
    while (table->entry[i] != entry) {
        FK_ASSERT(table->entry[i] != 0);
        i = (i + 1) & mask;
    }
    /* Shift back whatever would not be found any more across the gap. */
    for (uint32_t j = (i + 1) & mask; table->entry[j] != 0; j = (j + 1) & mask) {
        uint32_t home = entry_home(table->entry[j], table->capacity);
        if (((j - home) & mask) >= ((j - i) & mask)) {
            table->entry[i] = table->entry[j];
            i = j;
        }
    }
    table->entry[i] = 0;
    table->count--;
    fk_name *name = child->name;
    child->name = NULL;
    fk__mem_unlock(mem, &parent->children_lock);
    name_free(local, name);
}

uint32_t fk__children_count(fk_cell *parent)
{
    fk_mem *mem = &parent->sys->mem;
    fk__mem_lock(mem, &parent->children_lock);
    uint32_t count = parent->children == NULL ? 0 : parent->children->count;
    fk__mem_unlock(mem, &parent->children_lock);
    return count;
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
    const fk_children *table = parent->children;
    while (table != NULL && *cursor < table->capacity) {
        uint64_t entry = table->entry[(*cursor)++];
        if (entry != 0) return entry_cell(parent, entry);
    }
    return NULL;
}

void fk__children_fini(fk_local *local, fk_cell *parent)
{
    fk_mem *mem = &parent->sys->mem;
    fk__mem_lock(mem, &parent->children_lock);
    fk_children *table = parent->children;
    FK_ASSERT(table == NULL || table->count == 0);
    parent->children = NULL;
    fk__mem_unlock(mem, &parent->children_lock);
    if (table != NULL) fk__cache_free(&local->cache, table, table_size(table->capacity));
}

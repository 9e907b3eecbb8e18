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

#include "core/guardian.h"
#include "core/path.h"
#include "core/registry.h"
#include "core/temp.h"

enum { SHIFT_MIN = 3, PER_LINE = 8 };

static uint32_t children_capacity(const fk_cell *parent)
{
    return parent->children == NULL ? 0 : (uint32_t)1 << parent->children_shift;
}

/* ---- names ------------------------------------------------------------------------------- */

fk_str fk__label_text(uint64_t label, char buf[FK_AUTONAME_MAX])
{
    const fk_name *name = fk__label_name(label);
    if (fk__name_is_given(name)) return fk__name_text(name);
    return (fk_str){ buf, fk_path_autoname(fk__label_number(label), buf) };
}

size_t fk__autoname_len(uint64_t number)
{
    size_t len = 2;
    while ((number >>= 6) != 0) len++;
    return len;
}

fk_name *fk__name_create(fk_local *local, fk_str text, const fk_site *site)
{
    fk_name *name = fk__cache_alloc(&local->cache, sizeof(fk_name) + text.len, site);
    if (name == NULL) return NULL;
    *name = (fk_name){ .size = (uint32_t)text.len, .len = (uint32_t)text.len };
    memcpy(name->text, text.ptr, text.len);
    return name;
}

void fk__name_free(fk_local *local, fk_name *name)
{
    if (name == NULL) return;
    fk__cache_free(&local->cache, name, sizeof(fk_name) + name->size);
}

/* ---- hashes: what is looked up is what the name means, not how it is written ------------------ */

static uint64_t hash_written(const fk_system *sys, fk_str name)
{
    char piece[256];
    uint64_t hash = 0;
    do { /* names of ordinary length are one piece */
        size_t n = 0;
        int byte;
        while (n < sizeof(piece) && (byte = fk__segment_byte(sys->ruleset, &name)) >= 0) {
            piece[n++] = (char)byte;
        }
        hash = hash * 31 + fk__hash_bytes(&sys->key, piece, n);
    } while (name.len != 0);
    return hash;
}

uint64_t fk__name_hash(const fk_system *sys, fk_str name)
{
    bool is_plain = name.len <= 256 && !fk__segment_has_escape(name);
    return is_plain ? fk__hash_bytes(&sys->key, name.ptr, name.len) : hash_written(sys, name);
}

static uint64_t hash_number(uint64_t number)
{
    uint64_t line = fk__mix64(number / PER_LINE) & ~((uint64_t)(PER_LINE - 1) << 32);
    return line | (number % PER_LINE) << 32;
}

static uint64_t cell_hash(const fk_cell *cell)
{
    const fk_name *name = fk__label_name(cell->label);
    if (!fk__name_is_given(name)) return hash_number(fk__label_number(cell->label));
    return fk__name_hash(cell->sys, fk__name_text(name));
}

static int autoname_digit(char c)
{
    if (c >= 'a' && c <= 'z') return c - 'a';
    if (c >= 'A' && c <= 'Z') return c - 'A' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '~' ? 63 : -1;
}

/* The number that a generated name stands for, however it is written; false: it is none. */
static bool autoname_number(const fk_ruleset *rules, fk_str name, uint64_t *out)
{
    char plain[FK_AUTONAME_MAX], again[FK_AUTONAME_MAX];
    uint64_t number = 0;
    size_t len = 0;
    int byte;
    if (name.len < 2 || (name.ptr[0] != '$' && name.ptr[0] != '%')) return false;
    while ((byte = fk__segment_byte(rules, &name)) >= 0) {
        if (len == sizeof(plain)) return false;
        plain[len++] = (char)byte;
    }
    if (plain[0] != '$') return false;
    for (size_t i = len; i-- > 1;) {
        int digit = autoname_digit(plain[i]);
        if (digit < 0) return false;
        number = number << 6 | (uint64_t)digit;
    }
    *out = number; /* "$aa" would be "$a" again */
    return fk_path_autoname(number, again) == len && memcmp(again, plain, len) == 0;
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

static bool is_called(const fk_cell *cell, fk_str name, bool is_number, uint64_t number)
{
    const fk_name *own = fk__label_name(cell->label);
    if (!fk__name_is_given(own)) return is_number && fk__label_number(cell->label) == number;
    return !is_number && fk__segment_equal(cell->sys->ruleset, fk__name_text(own), name);
}

/* What a child is looked for by. */
typedef struct child_key {
    fk_str name;
    uint64_t hash;
    uint64_t number;
    bool is_number;
} child_key;

static child_key child_key_of(const fk_system *sys, fk_str name)
{
    child_key key = { .name = name };
    key.is_number = autoname_number(sys->ruleset, name, &key.number);
    key.hash = key.is_number ? hash_number(key.number) : fk__name_hash(sys, name);
    return key;
}

static fk_cell *child_find_by(const fk_cell *parent, const child_key *key)
{
    uint32_t capacity = children_capacity(parent);
    if (capacity == 0) return NULL;
    const uint64_t *table = parent->children;
    uint64_t hash = key->hash;
    for (uint32_t i = entry_home(hash, capacity); table[i] != 0; i = (i + 1) & (capacity - 1)) {
        if ((table[i] >> 32) != (hash >> 32)) continue;
        fk_cell *cell = entry_cell(parent, table[i]);
        if (is_called(cell, key->name, key->is_number, key->number)) return cell;
    }
    return NULL;
}

static fk_cell *child_find(const fk_cell *parent, fk_str name)
{
    if (children_capacity(parent) == 0) return NULL;
    const child_key key = child_key_of(parent->sys, name);
    return child_find_by(parent, &key);
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

fk_err fk__children_add(fk_local *local, fk_cell *parent, fk_cell *child, fk_str name)
{
    fk_mem *mem = &parent->sys->mem;
    fk_name *copy = NULL;
    child_key key = { .hash = 0 };
    if (name.len != 0) {
        copy = fk__name_create(local, name, FK_SITE("name of an actor"));
        if (copy == NULL) return local->cache.err;
        key = child_key_of(parent->sys, name); /* once, and before the lock */
    }
    if (copy != NULL) {
        /* Somebody may still be looking for the path of the actor that had this slot. */
        fk__mem_lock(mem, &child->children_lock);
        child->label = fk__label_of_name(copy);
        fk__mem_unlock(mem, &child->children_lock);
    }
    fk__mem_lock(mem, &parent->children_lock);
    if (copy == NULL) child->label = fk__label_of_number(parent->child_counter);
    fk_err err = parent->closed != 0 ? FK_E_STOPPING : FK_OK;
    if (err == FK_OK && copy != NULL && child_find_by(parent, &key) != NULL) err = FK_E_NAME_TAKEN;
    if (err == FK_OK) err = reserve_child(local, parent);
    if (err == FK_OK) {
        uint64_t hash = copy != NULL && !key.is_number ? key.hash : cell_hash(child);
        entry_insert(parent->children, children_capacity(parent), entry_of(hash, child->slot));
        parent->children_count++;
        if (copy == NULL) parent->child_counter++;
    }
    fk__mem_unlock(mem, &parent->children_lock);
    if (err != FK_OK && copy != NULL) {
        child->label = 0;
        fk__name_free(local, copy);
    }
    return err;
}

bool fk__children_find(fk_cell *parent, uint32_t generation, fk_str name, fk_ref *out,
                       uint64_t *uid)
{
    fk_mem *mem = &parent->sys->mem;
    bool found = false;
    fk__mem_lock(mem, &parent->children_lock);
    if (fk__half_load(&parent->generation, FK_ACQUIRE) == generation) {
        const fk_cell *child = child_find(parent, name);
        /* Acquire: the child's uid. Even: it is being made, or has ended. */
        uint32_t born = child != NULL ? fk__half_load(&child->generation, FK_ACQUIRE) : 0;
        if ((born & 1) != 0) {
            *out = (fk_ref){ child->slot, born, parent->sys->id };
            *uid = child->uid;
            found = true;
        }
    }
    fk__mem_unlock(mem, &parent->children_lock);
    if (found || parent != parent->sys->top.temp) return found;
    *uid = 0; /* those have none */
    return fk__temp_find(parent->sys, name, out);
}

size_t fk__children_list(fk_cell *parent, fk_ref *out, size_t max)
{
    fk_mem *mem = &parent->sys->mem;
    size_t count = 0;
    uint32_t cursor = 0;
    const fk_cell *child;
    fk__mem_lock(mem, &parent->children_lock);
    while (count < max && (child = fk__children_next(parent, &cursor)) != NULL) {
        fk_ref ref = fk__cell_ref(child);
        if ((ref.generation & 1) != 0) out[count++] = ref;
    }
    fk__mem_unlock(mem, &parent->children_lock);
    return count;
}

/* Takes an entry out and shifts back whatever would not be found any more across the gap. */
static void entry_remove(uint64_t *table, uint32_t capacity, uint64_t entry)
{
    uint32_t mask = capacity - 1;
    uint32_t i = entry_home(entry, capacity);
    while (table[i] != entry) {
        FK_ASSERT(table[i] != 0);
        i = (i + 1) & mask;
    }
    for (uint32_t j = (i + 1) & mask; table[j] != 0; j = (j + 1) & mask) {
        uint32_t home = entry_home(table[j], capacity);
        if (((j - home) & mask) >= ((j - i) & mask)) {
            table[i] = table[j];
            i = j;
        }
    }
    table[i] = 0;
}

void fk__children_remove(fk_worker *worker, fk_cell *parent, fk_cell *child)
{
    fk_mem *mem = &parent->sys->mem;
    fk__mem_lock(mem, &parent->children_lock);
    uint64_t entry = entry_of(cell_hash(child), child->slot);
    entry_remove(parent->children, children_capacity(parent), entry);
    parent->children_count--;
    /* Under the lock: somebody may still have been giving the child a name to keep its path with.
     * Who comes later finds that it has ended. */
    fk_name *forgotten = fk__obituary_add(worker, parent, child);
    /* Somebody may be reading its path, or be about to find that there is none. */
    fk__mem_lock(mem, &child->children_lock);
    child->label = 0;
    /* Under the locks: who finds it ENDING finds its name. Seq_cst: see fk__waiters_notify. */
    fk__half_swap(&child->gate, 0, FK_SEQ_CST);
    fk__mem_unlock(mem, &child->children_lock);
    fk__mem_unlock(mem, &parent->children_lock);
    fk__name_free(&worker->local, forgotten);
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

fk_brood fk__brood(fk_cell *parent)
{
    fk_mem *mem = &parent->sys->mem;
    fk_brood brood = { .parent = parent, .bit = FK_WORD_CHOSEN };
    if (parent->children == NULL && !fk__is_guardian(parent)) return brood;
    uint32_t cursor = 0;
    fk_cell *child;
    fk__mem_lock(mem, &parent->children_lock);
    while ((child = fk__children_next(parent, &cursor)) != NULL) {
        fk__half_or(&child->ended.word, FK_WORD_CHOSEN, FK_RELAXED);
    }
    fk__mem_unlock(mem, &parent->children_lock);
    return brood;
}

/* Others may make the table larger between two calls, which moves everything. So from the start
 * again, until there was none. */
fk_cell *fk__brood_next(fk_brood *brood)
{
    fk_cell *parent = brood->parent;
    fk_mem *mem = &parent->sys->mem;
    fk_cell *child;
    for (;;) {
        if (parent->children == NULL && !fk__is_guardian(parent)) return NULL;
        fk__mem_lock(mem, &parent->children_lock);
        while ((child = fk__children_next(parent, &brood->at)) != NULL) {
            if ((fk__half_load(&child->ended.word, FK_RELAXED) & brood->bit) != 0) break;
        }
        fk__mem_unlock(mem, &parent->children_lock);
        if (child != NULL) break;
        if (!brood->found) return NULL;
        brood->found = false;
        brood->at = 0;
    }
    fk__half_and(&child->ended.word, ~brood->bit, FK_RELAXED);
    brood->found = true;
    return child;
}

void fk__children_abandon(fk_local *local, fk_cell *parent)
{
    fk__cache_free(&local->cache, parent->children,
                   children_capacity(parent) * sizeof(*parent->children));
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

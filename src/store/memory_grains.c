/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of grains in memory: a skip list, so that one structure finds a key and lists them in order. */

#include "store/memory.h"

static int bytes_compare(fk_str a, fk_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.ptr, b.ptr, len) : 0;
    if (order != 0) return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

static int grain_compare(const memory_grain *g, fk_str kind, fk_str key)
{
    int order = bytes_compare(g->kind, kind);
    return order != 0 ? order : bytes_compare(g->key, key);
}

/* The first row that is not before kind and key. last: the pointers that lead past there. */
static memory_grain *grain_seek(memory_cluster *c, fk_str kind, fk_str key, memory_grain ***last)
{
    memory_grain **next = c->head;
    for (uint32_t level = MEMORY_LEVELS; level-- > 0;) {
        while (next[level] != NULL && grain_compare(next[level], kind, key) < 0) {
            next = next[level]->next;
        }
        if (last != NULL) last[level] = &next[level];
    }
    return next[0];
}

static memory_grain *grain_find(memory_cluster *c, const fk_grain_key *key)
{
    memory_grain *g = grain_seek(c, key->kind, key->key, NULL);
    return g != NULL && grain_compare(g, key->kind, key->key) == 0 ? g : NULL;
}

static size_t grain_size(const memory_grain *g)
{
    return sizeof *g + g->levels * sizeof g->next[0] + g->kind.len + g->key.len;
}

static fk_err grain_make(memory_cluster *c, const fk_grain_key *key, memory_grain **out)
{
    memory_grain **last[MEMORY_LEVELS];
    void *made = NULL;
    uint32_t levels = 1;
    c->dice = c->dice * 6364136223846793005u + 1442695040888963407u;
    for (uint64_t dice = c->dice >> 20; levels < MEMORY_LEVELS && (dice & 3) == 0; dice >>= 2) {
        levels++;
    }
    size_t size = sizeof(memory_grain) + levels * sizeof(memory_grain *);
    FK_TRY(fk__mem_alloc(&c->mem, size + key->kind.len + key->key.len, FK_SITE("store: grain"),
                         &made));
    memory_grain *g = made;
    char *text = (char *)made + size;
    memset(g, 0, size);
    memcpy(text, key->kind.ptr, key->kind.len);
    memcpy(text + key->kind.len, key->key.ptr, key->key.len);
    g->kind = (fk_str){ text, key->kind.len };
    g->key = (fk_str){ text + key->kind.len, key->key.len };
    g->levels = levels;
    grain_seek(c, key->kind, key->key, last);
    for (uint32_t i = 0; i < levels; i++) {
        g->next[i] = *last[i];
        *last[i] = g;
    }
    *out = g;
    return FK_OK;
}

static void grain_forget(memory_cluster *c, memory_grain *g)
{
    fk__mem_free(&c->mem, g->block, g->block_size);
    g->block = NULL;
    g->block_size = 0;
    g->pid = g->snapshot = g->dedup = (fk_str){ NULL, 0 };
    g->version = 0;
    g->has_request = false;
}

static bool has_fence(const memory_grain *g, const fk_fence *fence)
{
    return g->epoch == fence->epoch && g->incarnation == fence->incarnation &&
           fk__str_same(fk__memory_id(g->holder), fence->holder);
}

static bool grain_show(fk_store_op *op, const memory_grain *g, fk_fence fence)
{
    op->record = (fk_record){ .version = g->version, .fence = fence };
    op->epoch = fence.epoch;
    return fk__store_copy(op, g->pid, &op->record.pid) &&
           fk__store_copy(op, g->snapshot, &op->record.snapshot) &&
           fk__store_copy(op, g->dedup, &op->record.dedup);
}

void fk__memory_load(memory_cluster *c, fk_store_op *op)
{
    static const memory_grain none;
    memory_grain *g = grain_find(c, &op->key);
    memory_name *holder = NULL;
    if (g != NULL && (g->epoch > op->fence.epoch ||
                      (g->epoch == op->fence.epoch && !has_fence(g, &op->fence)))) {
        fk__store_fenced(op, g->epoch);
        return;
    }
    if (!grain_show(op, g != NULL ? g : &none, op->fence)) return;
    if (fk__memory_name_get(c, op->fence.holder, &holder) != FK_OK ||
        (g == NULL && grain_make(c, &op->key, &g) != FK_OK)) {
        fk__store_refuse(op, FK_E_NOMEM, "no memory for another grain");
        return;
    }
    if (g->epoch != op->fence.epoch) g->has_request = false;
    g->epoch = op->fence.epoch;
    g->holder = holder;
    g->incarnation = op->fence.incarnation;
    g->removed_at = 0;
}

static fk_str block_put(char **at, fk_str from)
{
    fk_str to = { *at, from.len };
    if (from.ptr == NULL) return (fk_str){ NULL, 0 };
    memcpy(*at, from.ptr, from.len);
    *at += from.len;
    return to;
}

static fk_err grain_put(memory_cluster *c, memory_grain *g, const fk_record *record)
{
    void *block = NULL;
    size_t size = record->pid.len + record->snapshot.len + record->dedup.len + 1;
    FK_TRY(fk__mem_alloc(&c->mem, size, FK_SITE("store: state"), &block));
    char *at = block;
    fk__mem_free(&c->mem, g->block, g->block_size);
    g->block = block;
    g->block_size = size;
    g->pid = block_put(&at, record->pid);
    g->snapshot = block_put(&at, record->snapshot);
    g->dedup = block_put(&at, record->dedup);
    return FK_OK;
}

void fk__memory_put(memory_cluster *c, fk_store_op *op)
{
    memory_grain *g = grain_find(c, &op->key);
    if (g == NULL || !has_fence(g, &op->fence)) {
        fk__store_fenced(op, g != NULL ? g->epoch : 0);
        return;
    }
    op->epoch = g->epoch;
    bool is_again = g->has_request && g->version == op->version + 1 &&
                    g->request[0] == op->request[0] && g->request[1] == op->request[1];
    if (!is_again && g->version != op->version) {
        fk__store_refuse(op, FK_E_CONFLICT, "the row has another version");
        op->record.version = g->version;
        return;
    }
    if (!is_again) {
        if (grain_put(c, g, &op->record) != FK_OK) {
            fk__store_refuse(op, FK_E_NOMEM, "no memory for the state of a grain");
            return;
        }
        g->version++;
        g->request[0] = op->request[0];
        g->request[1] = op->request[1];
        g->has_request = true;
        g->removed_at = 0;
    }
    op->record.version = g->version;
}

void fk__memory_remove(memory_cluster *c, fk_store_op *op)
{
    memory_grain *g = grain_find(c, &op->key);
    if (g == NULL || g->version == 0) return;
    if (!has_fence(g, &op->fence)) {
        fk__store_fenced(op, g->epoch);
        return;
    }
    op->epoch = g->epoch;
    if (g->version != op->version) {
        fk__store_refuse(op, FK_E_CONFLICT, "the row has another version");
        op->record.version = g->version;
        return;
    }
    grain_forget(c, g);
    g->removed_at = c->now;
}

void fk__memory_peek(memory_cluster *c, fk_store_op *op)
{
    fk_fence fence = { 0 };
    const memory_grain *g = grain_find(c, &op->key);
    op->record = (fk_record){ .version = 0 };
    if (g == NULL) {
        fk__store_refuse(op, FK_E_NOT_FOUND, "there is no row of that grain");
        return;
    }
    fence.epoch = g->epoch;
    fence.incarnation = g->incarnation;
    if (!fk__store_copy(op, fk__memory_id(g->holder), &fence.holder)) return;
    if (!grain_show(op, g, fence)) return;
    if (g->version == 0) fk__store_refuse(op, FK_E_NOT_FOUND, "that grain has no state");
}

void fk__memory_list(memory_cluster *c, fk_store_op *op)
{
    uint32_t count = 0;
    const memory_grain *g = grain_seek(c, op->kind, op->after, NULL);
    for (; g != NULL && count < op->limit && fk__str_same(g->kind, op->kind); g = g->next[0]) {
        if (g->version == 0 || fk__str_same(g->key, op->after)) continue;
        op->put_key(op, g->key);
        count++;
    }
}

static void grain_drop(memory_cluster *c, memory_grain *g)
{
    memory_grain **last[MEMORY_LEVELS];
    grain_seek(c, g->kind, g->key, last);
    for (uint32_t i = 0; i < g->levels; i++) *last[i] = g->next[i];
    grain_forget(c, g);
    fk__mem_free(&c->mem, g, grain_size(g));
}

void fk__memory_purge(memory_cluster *c)
{
    for (memory_grain *g = c->head[0], *next; g != NULL; g = next) {
        next = g->next[0];
        if (g->removed_at != 0 && c->now - g->removed_at >= FK_STORE_TOMB_NS) grain_drop(c, g);
    }
}

void fk__memory_grains_fini(memory_cluster *c)
{
    while (c->head[0] != NULL) grain_drop(c, c->head[0]);
}

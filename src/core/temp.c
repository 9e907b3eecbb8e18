/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/temp.h"

#include "fraktor/ask.h"

#include "base/safeguard.h"
#include "core/autoname.h"
#include "core/children.h"
#include "core/path.h"
#include "core/promise.h"
#include "core/registry.h"

enum { TEMPS_MIN = 16, TEMP_NUMBER_MAX = FK_AUTONAME_MAX };

typedef struct fk_temp {
    struct fk_temp *next; /* in its bucket */
    uint64_t hash;
    fk_ref ref;
    uint32_t len;
    char text[];
} fk_temp;

static const fk_str TEMP_FOLDER = { "/temp/", 6 };

/* ---- the table: under its lock ------------------------------------------------------------------ */

static fk_temp **temp_bucket(const fk_temps *temps, uint64_t hash)
{
    return &temps->bucket[hash & (temps->capacity - 1)];
}

static fk_str temp_text(const fk_temp *temp)
{
    return (fk_str){ temp->text, temp->len };
}

static void temp_free(fk_local *local, fk_temp *temp)
{
    fk__cache_free(&local->cache, temp, sizeof(*temp) + temp->len);
}

/* The place that points to the entry of that name, or to NULL. */
static fk_temp **temp_look(const fk_system *sys, fk_str name)
{
    const fk_temps *temps = &sys->temps;
    uint64_t hash = fk__name_hash(sys, name);
    fk_temp **at = temp_bucket(temps, hash);
    while (*at != NULL) {
        if ((*at)->hash == hash && fk__segment_equal(sys->ruleset, temp_text(*at), name)) break;
        at = &(*at)->next;
    }
    return at;
}

static void temp_remove(fk_local *local, fk_temp **at)
{
    fk_temp *temp = *at;
    *at = temp->next;
    local->sys->temps.count--;
    temp_free(local, temp);
}

/* Those of actors that have ended. */
static void temps_purge(fk_local *local)
{
    fk_temps *temps = &local->sys->temps;
    for (uint32_t i = 0; i < temps->capacity; i++) {
        fk_temp **at = &temps->bucket[i];
        while (*at != NULL) {
            if (fk__cell_resolve(local->sys, (*at)->ref) == NULL)
                temp_remove(local, at);
            else
                at = &(*at)->next;
        }
    }
}

/* Room for one more; at most twice as much as the living need. */
static fk_err temps_reserve(fk_local *local)
{
    fk_temps *temps = &local->sys->temps;
    if (temps->count < temps->capacity) return FK_OK;
    temps_purge(local);
    if (temps->capacity != 0 && temps->count <= temps->capacity / 2) return FK_OK;
    uint32_t capacity = temps->capacity == 0 ? TEMPS_MIN : temps->capacity * 2;
    fk_temps grown = { .capacity = capacity };
    grown.bucket = fk__cache_alloc(&local->cache, capacity * sizeof(fk_temp *),
                                   FK_SITE("table of names under /temp"));
    if (grown.bucket == NULL) return temps->count < temps->capacity ? FK_OK : local->cache.err;
    memset(grown.bucket, 0, capacity * sizeof(fk_temp *));
    for (uint32_t i = 0; i < temps->capacity; i++) {
        while (temps->bucket[i] != NULL) {
            fk_temp *temp = temps->bucket[i];
            temps->bucket[i] = temp->next;
            fk_temp **to = temp_bucket(&grown, temp->hash);
            temp->next = *to;
            *to = temp;
        }
    }
    fk__cache_free(&local->cache, temps->bucket, temps->capacity * sizeof(fk_temp *));
    temps->capacity = grown.capacity; /* and not the lock, at which others look */
    temps->bucket = grown.bucket;
    return FK_OK;
}

/* A new name: "PREFIX$a", with a number that was never there. */
static fk_err temp_add(fk_local *local, fk_str prefix, fk_ref ref, fk_temp **out)
{
    fk_system *sys = local->sys;
    fk_temps *temps = &sys->temps;
    size_t len = fk__autoname_temp(temps->next, prefix, NULL, 0);
    FK_TRY(temps_reserve(local));
    fk_temp *temp =
        fk__cache_alloc(&local->cache, sizeof(*temp) + len, FK_SITE("name under /temp"));
    if (temp == NULL) return local->cache.err;
    *temp = (fk_temp){ .ref = ref, .len = (uint32_t)len };
    fk__autoname_temp(temps->next++, prefix, temp->text, len);
    temp->hash = fk__name_hash(sys, temp_text(temp));
    fk_temp **bucket = temp_bucket(temps, temp->hash);
    temp->next = *bucket;
    *bucket = temp;
    temps->count++;
    *out = temp;
    return FK_OK;
}

static size_t temp_write(const fk_system *sys, const fk_temp *temp, char *buf, size_t size)
{
    fk_text text = { buf, size, 0 };
    fk__text_put(&text, (fk_str){ sys->address_text, sys->address_len });
    fk__text_put(&text, TEMP_FOLDER);
    fk__text_put(&text, temp_text(temp));
    if (size > 0) buf[text.len < size ? text.len : size - 1] = '\0';
    return text.len;
}

/* ---- finding ------------------------------------------------------------------------------------- */

bool fk__temp_find(fk_system *sys, fk_str name, fk_ref *out)
{
    fk_temps *temps = &sys->temps;
    fk_ref ref = FK_REF_NONE;
    fk__mem_lock(&sys->mem, &temps->lock);
    if (temps->count != 0) {
        const fk_temp *temp = *temp_look(sys, name);
        if (temp != NULL) ref = temp->ref;
    }
    fk__mem_unlock(&sys->mem, &temps->lock);
    if (fk__cell_resolve(sys, ref) == NULL) return false;
    *out = ref;
    return true;
}

/* ---- promises -------------------------------------------------------------------------------------- */

/* The last name of a path, without a uid. */
static fk_str path_last_name(const fk_system *sys, fk_str text)
{
    fk_path path;
    fk_str name = FK_STR(""), segment;
    size_t cursor = 0;
    if (fk_path_parse(&sys->paths, text, &path, NULL) != FK_OK) return name;
    while (fk_path_next(&path, &cursor, &segment)) name = segment;
    return name;
}

/* The name of who was asked, as far as it is known and leaves room for the rest. */
static fk_str promise_prefix(fk_local *local, const fk_promise *promise, fk_buf buf)
{
    fk_system *sys = local->sys;
    /* Acquire pairs with the release in fk__promise_open. */
    fk_ref asked = { fk__half_load(&promise->asked_slot, FK_ACQUIRE),
                     fk__half_load(&promise->asked_generation, FK_ACQUIRE), sys->id };
    size_t len = fk__path_of(local, asked, buf.ptr, buf.size);
    if (len == 0 || len >= buf.size) return FK_STR("");
    fk_str name = path_last_name(sys, (fk_str){ buf.ptr, len });
    size_t longest = sys->address_len + TEMP_FOLDER.len + name.len + TEMP_NUMBER_MAX;
    return longest <= sys->paths.path_max ? name : FK_STR("");
}

/* Under the lock: the name of a pending promise, made if need be. */
static fk_temp *promise_name(fk_local *local, fk_promise *promise, fk_ref ref, fk_str prefix)
{
    fk_half *generation = &promise->cell->generation;
    if (fk__half_load(generation, FK_ACQUIRE) != ref.generation) return NULL;
    if (promise->name != NULL) return promise->name;
    fk_temp *temp = NULL;
    if (temp_add(local, prefix, ref, &temp) != FK_OK) return NULL;
    FK_ASSERT(temp != NULL);
    promise->name = temp;
    /* Seq_cst, as is_armed: should it have ended meanwhile, one of us two takes the name away. */
    fk__half_swap(&promise->is_named, 1, FK_SEQ_CST);
    if (fk__half_load(generation, FK_SEQ_CST) == ref.generation) return temp;
    promise->name = NULL;
    temp_remove(local, temp_look(local->sys, temp_text(temp)));
    return NULL;
}

size_t fk__temp_path(fk_local *local, fk_ref ref, char *buf, size_t size)
{
    fk_system *sys = local->sys;
    char asked[FK_PATH_MAX];
    size_t len = 0;
    fk_cell *cell = fk__cell_resolve(sys, ref);
    if (size > 0) buf[0] = '\0';
    if (cell == NULL) return 0;
    fk_promise *promise = cell->state;
    fk_str prefix = promise_prefix(local, promise, FK_BUF(asked));
    fk__mem_lock(&sys->mem, &sys->temps.lock);
    const fk_temp *temp = promise_name(local, promise, ref, prefix);
    if (temp != NULL) len = temp_write(sys, temp, buf, size);
    fk__mem_unlock(&sys->mem, &sys->temps.lock);
    return len;
}

/* Under the lock. */
static void promise_unname(fk_promise *promise, const fk_temp *temp)
{
    if (promise->name == temp) promise->name = NULL;
}

void fk__temp_forget(fk_local *local, fk_promise *promise)
{
    fk_system *sys = local->sys;
    if (!FK_SAFEGUARD(PROMISE_NAME)) return;
    fk__mem_lock(&sys->mem, &sys->temps.lock);
    if (promise->name != NULL) {
        temp_remove(local, temp_look(sys, temp_text(promise->name)));
        promise->name = NULL;
    }
    fk__mem_unlock(&sys->mem, &sys->temps.lock);
}

void fk__temps_fini(fk_local *local)
{
    fk_temps *temps = &local->sys->temps;
    for (uint32_t i = 0; i < temps->capacity; i++) {
        while (temps->bucket[i] != NULL) temp_remove(local, &temps->bucket[i]);
    }
    fk__cache_free(&local->cache, temps->bucket, temps->capacity * sizeof(fk_temp *));
}

/* ---- public ----------------------------------------------------------------------------------------- */

fk_err fk_temp_register(fk_system *sys, fk_str prefix, fk_ref ref, fk_buf path)
{
    if (sys == NULL || (path.size != 0 && path.ptr == NULL)) return FK_E_INVALID;
    if (prefix.len != 0) FK_TRY(fk_path_check_name(&sys->paths, prefix, NULL));
    fk_local *local = fk__local_enter(sys);
    fk_temp *temp = NULL;
    fk_err err = fk__cell_resolve(sys, ref) != NULL ? FK_OK : FK_E_DEAD;
    fk__mem_lock(&sys->mem, &sys->temps.lock);
    if (err == FK_OK) err = temp_add(local, prefix, ref, &temp);
    if (err == FK_OK) {
        FK_ASSERT(temp != NULL);
        size_t len = temp_write(sys, temp, path.ptr, path.size);
        if (len >= path.size || len > sys->paths.path_max) {
            temp_remove(local, temp_look(sys, temp_text(temp)));
            err = FK_E_LIMIT;
        }
    }
    fk__mem_unlock(&sys->mem, &sys->temps.lock);
    fk__local_leave(local);
    return err;
}

fk_err fk_temp_unregister(fk_system *sys, fk_str text)
{
    fk_path path;
    if (fk_path_parse(&sys->paths, text, &path, NULL) != FK_OK) return FK_E_NOT_FOUND;
    bool is_ours = fk__registry_is_own(sys, &path) && path.depth == 2 && path.uid == 0;
    if (!is_ours || path.segments.len < TEMP_FOLDER.len ||
        memcmp(path.segments.ptr, TEMP_FOLDER.ptr, TEMP_FOLDER.len) != 0) {
        return FK_E_NOT_FOUND;
    }
    fk_str name = path_last_name(sys, text);
    fk_err err = FK_E_NOT_FOUND;
    fk_local *local = fk__local_enter(sys);
    fk__mem_lock(&sys->mem, &sys->temps.lock);
    fk_temp **at = sys->temps.count != 0 ? temp_look(sys, name) : NULL;
    if (at != NULL && *at != NULL) {
        const fk_cell *cell = fk__slots_at(&sys->slots, (*at)->ref.slot);
        if (fk__cell_resolve(sys, (*at)->ref) != NULL) err = FK_OK;
        if (fk__cell_is_promise(cell)) promise_unname(cell->state, *at);
        temp_remove(local, at);
    }
    fk__mem_unlock(&sys->mem, &sys->temps.lock);
    fk__local_leave(local);
    return err;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/pids.h"

void fk__pids_init(fk_pids *pids, fk_cache *cache, uint32_t capacity, fk_time ttl)
{
    *pids = (fk_pids){ .cache = cache, .capacity = capacity, .ttl = ttl };
    fk__ring_init(&pids->used);
    fk__ring_init(&pids->made);
}

void fk__pids_fini(fk_pids *pids)
{
    while (!fk__ring_is_empty(&pids->made)) {
        fk__pids_drop(pids, FK_CONTAINER(pids->made.next, fk_pid, made));
    }
    fk__map_fini(pids->cache, &pids->map);
}

static size_t pid_size(const fk_pid *pid)
{
    return sizeof(fk_pid) + pid->kind_len + pid->key_len + pid->authority_len;
}

/* The map has no key 0. */
static uint64_t pid_map_key(fk_grain_id id)
{
    return id.lo != 0 ? id.lo : 1;
}

fk_pid *fk__pids_find(const fk_pids *pids, fk_grain_id id)
{
    fk_pid *pid = fk__map_get(&pids->map, pid_map_key(id));
    while (pid != NULL && !fk_grain_id_equal(pid->id, id)) pid = pid->next;
    return pid;
}

fk_pid *fk__pids_get(fk_pids *pids, fk_grain_id id, fk_time now)
{
    if (pids->count == 0) return NULL;
    fk_pid *pid = fk__pids_find(pids, id);
    if (pid == NULL || now >= pid->expires_at) return NULL;
    fk__ring_leave(&pid->used);
    fk__ring_put(&pids->used, &pid->used);
    return pid;
}

fk_pid *fk__pids_surplus(const fk_pids *pids)
{
    if (pids->count == 0 || pids->count < pids->capacity) return NULL;
    return FK_CONTAINER(pids->used.next, fk_pid, used);
}

fk_pid *fk__pids_expired(const fk_pids *pids, fk_time now)
{
    if (pids->count == 0) return NULL;
    fk_pid *oldest = FK_CONTAINER(pids->made.next, fk_pid, made);
    return now >= oldest->expires_at ? oldest : NULL;
}

fk_time fk__pids_deadline(const fk_pids *pids)
{
    if (pids->count == 0) return FK_NEVER;
    return FK_CONTAINER(pids->made.next, fk_pid, made)->expires_at;
}

fk_pid *fk__pids_put(fk_pids *pids, const fk_grain_key *key, fk_str authority, uint64_t incarnation,
                     fk_time now)
{
    FK_ASSERT(authority.len <= FK_MEMBER_TEXT_MAX);
    FK_ASSERT(key->key.len <= FK_GRAIN_KEY_MAX);
    FK_ASSERT(key->kind.len <= FK_KIND_NAME_MAX);
    FK_ASSERT(fk__pids_find(pids, key->id) == NULL);
    if (pids->count >= pids->capacity) return NULL;
    if (fk__map_reserve(pids->cache, &pids->map, FK_SITE("pid cache")) != FK_OK) return NULL;
    size_t size = sizeof(fk_pid) + key->kind.len + key->key.len + authority.len;
    fk_pid *pid = fk__cache_alloc(pids->cache, size, FK_SITE("cached pid"));
    if (pid == NULL) return NULL;
    *pid = (fk_pid){ .id = key->id,
                     .expires_at = fk__time_add(now, pids->ttl),
                     .incarnation = incarnation,
                     .kind_len = (uint16_t)key->kind.len,
                     .key_len = (uint16_t)key->key.len,
                     .authority_len = (uint16_t)authority.len };
    memcpy(pid->text, key->kind.ptr, key->kind.len);
    memcpy(pid->text + key->kind.len, key->key.ptr, key->key.len);
    memcpy(pid->text + key->kind.len + key->key.len, authority.ptr, authority.len);
    pid->next = fk__map_get(&pids->map, pid_map_key(key->id));
    fk__map_put(&pids->map, pid_map_key(key->id), pid);
    fk__ring_put(&pids->used, &pid->used);
    fk__ring_put(&pids->made, &pid->made);
    pids->count++;
    return pid;
}

void fk__pids_drop(fk_pids *pids, fk_pid *pid)
{
    uint64_t map_key = pid_map_key(pid->id);
    fk_pid *first = fk__map_get(&pids->map, map_key);
    FK_ASSERT(first != NULL);
    if (first != pid) {
        fk_pid *before = first;
        while (before->next != pid) before = before->next;
        before->next = pid->next;
    } else if (pid->next != NULL) {
        fk__map_put(&pids->map, map_key, pid->next);
    } else {
        fk__map_remove(&pids->map, map_key);
    }
    fk__ring_leave(&pid->used);
    fk__ring_leave(&pid->made);
    pids->count--;
    fk__cache_free(pids->cache, pid, pid_size(pid));
}

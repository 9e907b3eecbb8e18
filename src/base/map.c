/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/map.h"

#include "base/hash.h"

enum { MAP_MIN = 8 };

/* Where the key is, or the empty place where it would be. */
static uint32_t map_find(const fk_map *map, uint64_t key)
{
    uint32_t mask = map->capacity - 1;
    uint32_t i = (uint32_t)fk__mix64(key) & mask;
    while (map->entry[i].key != 0 && map->entry[i].key != key) i = (i + 1) & mask;
    return i;
}

void *fk__map_get(const fk_map *map, uint64_t key)
{
    return map->count != 0 ? map->entry[map_find(map, key)].value : NULL;
}

fk_err fk__map_reserve(fk_cache *cache, fk_map *map, const fk_site *site)
{
    return fk__map_room(cache, map, map->count + 1, site);
}

fk_err fk__map_room(fk_cache *cache, fk_map *map, uint32_t count, const fk_site *site)
{
    if (count <= map->capacity - map->capacity / 4) return FK_OK;
    fk_map grown = { .capacity = map->capacity == 0 ? MAP_MIN : map->capacity * 2 };
    while (count > grown.capacity - grown.capacity / 4) grown.capacity *= 2;
    size_t size = grown.capacity * sizeof(*grown.entry);
    grown.entry = fk__cache_alloc(cache, size, site);
    if (grown.entry == NULL) return cache->err;
    memset(grown.entry, 0, size);
    for (uint32_t i = 0; i < map->capacity; i++) {
        if (map->entry[i].key != 0) fk__map_put(&grown, map->entry[i].key, map->entry[i].value);
    }
    fk__map_fini(cache, map);
    *map = grown;
    return FK_OK;
}

void fk__map_put(fk_map *map, uint64_t key, void *value)
{
    FK_ASSERT(key != 0 && value != NULL);
    uint32_t i = map_find(map, key);
    if (map->entry[i].key == 0) map->count++;
    map->entry[i] = (fk_map_entry){ key, value };
}

/* Empties a place and moves back whatever would not be found any more across the gap. */
static void map_clear(fk_map *map, uint32_t i)
{
    uint32_t mask = map->capacity - 1;
    for (uint32_t j = (i + 1) & mask; map->entry[j].key != 0; j = (j + 1) & mask) {
        uint32_t home = (uint32_t)fk__mix64(map->entry[j].key) & mask;
        if (((j - home) & mask) >= ((j - i) & mask)) {
            map->entry[i] = map->entry[j];
            i = j;
        }
    }
    map->entry[i] = (fk_map_entry){ 0, NULL };
    map->count--;
}

void *fk__map_remove(fk_map *map, uint64_t key)
{
    if (map->count == 0) return NULL;
    uint32_t i = map_find(map, key);
    void *value = map->entry[i].value;
    if (value != NULL) map_clear(map, i);
    return value;
}

void *fk__map_next(const fk_map *map, uint32_t *cursor)
{
    while (*cursor < map->capacity) {
        void *value = map->entry[(*cursor)++].value;
        if (value != NULL) return value;
    }
    return NULL;
}

void fk__map_fini(fk_cache *cache, fk_map *map)
{
    fk__cache_free(cache, map->entry, map->capacity * sizeof(*map->entry));
    *map = (fk_map){ NULL, 0, 0 };
}

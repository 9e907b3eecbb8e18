/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_MAP_H
#define FK_BASE_MAP_H

/* From numbers to pointers: linear probing, removal by shifting back. A zeroed map is empty. The key
 * 0 is no key, NULL no value. Memory comes from the pool of whoever calls. */

#include "base/pool.h"

typedef struct fk_map_entry {
    uint64_t key;
    void *value;
} fk_map_entry;

typedef struct fk_map {
    fk_map_entry *entry;
    uint32_t count;
    uint32_t capacity; /* 0 or a power of two */
} fk_map;

/* NULL: there is none. */
void *fk__map_get(const fk_map *map, uint64_t key);
/* Room for one more, so that the next fk__map_put() cannot fail. */
FK_MUST_USE fk_err fk__map_reserve(fk_cache *cache, fk_map *map, const fk_site *site);
/* Room for that many in all: as long as there are no more, fk__map_put() cannot fail. */
FK_MUST_USE fk_err fk__map_room(fk_cache *cache, fk_map *map, uint32_t count, const fk_site *site);
/* Replaces the value of a key that is there already. */
void fk__map_put(fk_map *map, uint64_t key, void *value);
/* The value it had, or NULL. */
void *fk__map_remove(fk_map *map, uint64_t key);
/* The next value after *cursor, which begins at 0; NULL at the end. Nothing may change meanwhile. */
void *fk__map_next(const fk_map *map, uint32_t *cursor);
void fk__map_fini(fk_cache *cache, fk_map *map);

#endif /* FK_BASE_MAP_H */

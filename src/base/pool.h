/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_POOL_H
#define FK_BASE_POOL_H

/*
 * Pools of small blocks, for messages and everything else that comes and goes quickly.
 *
 * Three levels, each a hundred times rarer than the one above it:
 *
 *   cache   per thread, no atomics: two magazines (lists of up to FK_MAGAZINE blocks) a class.
 *           A block may be freed into another thread's cache than it came from: nothing is
 *           owned, so a remote free costs what a local one costs.
 *   depot   per system, one lock a class: full magazines on their way between threads.
 *   pages   64 KiB each, cut into blocks of one class; they count what they have out, so that
 *           fk__pool_trim() can give empty ones back to the port.
 *
 * With `direct` set every block is an allocation of its own, so that AddressSanitizer and
 * valgrind see each one.
 */

#include "base/mem.h"

#define FK_MAGAZINE     64u
#define FK_PAGE_SIZE    65536u
#define FK_POOL_LARGEST 8192u

/* Block sizes. All but the first, which is for the smallest messages, keep 16-byte alignment. */
#define FK_CLASSES(X) X(40) X(48) X(64) X(128) X(256) X(512) X(1024) X(2048) X(4096) X(8192)
enum {
#define FK_CLASS_ENUM(n) FK_CLASS_##n,
    FK_CLASSES(FK_CLASS_ENUM)
#undef FK_CLASS_ENUM
        FK_CLASS_COUNT
};

typedef struct fk_block {
    struct fk_block *next;     /* in its magazine */
    struct fk_block *magazine; /* next magazine of the depot; in a magazine's first block only */
} fk_block;

typedef struct fk_page fk_page;
typedef struct fk_region fk_region;

typedef struct fk_depot {
    fk_lock lock;
    uint32_t magazines;
    fk_block *full;
    fk_page *partial; /* pages with free blocks, in a ring list */
} fk_depot;

typedef struct fk_pool {
    fk_mem *mem;
    bool direct;
    fk_half surplus; /* some depot has more than it should keep: worth trimming */
    fk_lock lock;    /* of what follows */
    fk_page *pages_free;
    fk_region *regions;
    uint32_t region_pages; /* how large the next region will be */
    uint32_t pages_spare;  /* length of pages_free */
    fk_depot depot[FK_CLASS_COUNT];
} fk_pool;

typedef struct fk_stack {
    fk_block *head;
    fk_block *full; /* a second magazine, full or NULL */
    uint32_t count; /* of head */
} fk_stack;

typedef struct fk_cache {
    fk_stack list[FK_CLASS_COUNT];
    uint32_t limit; /* FK_MAGAZINE; 0 makes each put go the slow way */
    fk_err err;     /* why the last get failed */
    fk_pool *pool;
} fk_cache;

void fk__pool_init(fk_pool *pool, fk_mem *mem, bool direct);
/* All blocks must be back in the depot (fk__cache_fini) or be given up for lost. */
void fk__pool_fini(fk_pool *pool);
/* Gives memory back to the port: at most `magazines` magazines of each class are taken apart.
 * Keeps a few of each. Returns true when there is more to do. */
bool fk__pool_trim(fk_pool *pool, uint32_t magazines);
/* Memory has run out, but blocks of other sizes may lie idle in the depots: takes them apart until
 * a page is free, or all of them. False: there was nothing. The caller holds no lock. */
bool fk__pool_reclaim(fk_pool *pool, bool all);

void fk__cache_init(fk_cache *cache, fk_pool *pool);
void fk__cache_fini(fk_cache *cache);

void *fk__cache_get_slow(fk_cache *cache, unsigned size_class, const fk_site *site);
void fk__cache_put_slow(fk_cache *cache, unsigned size_class, void *block);

/* A block that is at hand, or NULL. */
static inline void *fk__cache_get_quick(fk_cache *cache, unsigned size_class)
{
    fk_stack *list = &cache->list[size_class];
    fk_block *block = list->head;
    if (FK_UNLIKELY(block == NULL)) return NULL;
    fk_block *next = block->next;
    list->head = next;
    list->count--;
    /* The next one to go may be in another core's cache. */
    __builtin_prefetch(next, 1);
    return block;
}

/* A block, or NULL with the reason in cache->err. */
static inline void *fk__cache_get(fk_cache *cache, unsigned size_class, const fk_site *site)
{
    void *block = fk__cache_get_quick(cache, size_class);
    return FK_LIKELY(block != NULL) ? block : fk__cache_get_slow(cache, size_class, site);
}

static inline void fk__cache_put(fk_cache *cache, unsigned size_class, void *ptr)
{
    fk_block *block = ptr;
    fk_stack *list = &cache->list[size_class];
    uint32_t count = list->count;
    if (FK_UNLIKELY(count >= cache->limit)) {
        fk__cache_put_slow(cache, size_class, ptr);
        return;
    }
    block->next = list->head;
    list->head = block;
    list->count = count + 1;
}

/* The smallest class that holds size bytes; FK_CLASS_COUNT when none does. */
unsigned fk__pool_class(size_t size);
uint32_t fk__pool_class_size(unsigned size_class);

/* Any size: from a class when one fits, from the port otherwise. */
void *fk__cache_alloc(fk_cache *cache, size_t size, const fk_site *site);
void fk__cache_free(fk_cache *cache, void *ptr, size_t size);

#endif /* FK_BASE_POOL_H */

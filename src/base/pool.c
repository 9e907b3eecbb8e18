/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A region is what comes from the port: some pages, aligned to their size. A page belongs to one
 * class until it is empty. Blocks find their page by masking their address.
 *
 * Locks: a depot's lock may be held when the pool's lock is taken, never the other way round.
 */

#include "base/pool.h"

enum {
    PAGE_HEADER = 64,
    REGION_PAGES_MAX = 32, /* 2 MiB */
    MAGAZINES_KEPT = 16,   /* per class, in the depot, when trimming */
    PAGES_KEPT = 16
};

struct fk_page {
    fk_page *next, *prev; /* ring of the depot's partial pages, or the pool's free list (next) */
    fk_region *region;
    fk_block *free;
    uint32_t out; /* blocks not in `free` and already cut */
    uint32_t cut; /* blocks cut so far: the rest of the page is untouched */
    uint32_t total;
    uint32_t size_class;
};

_Static_assert(sizeof(fk_page) <= PAGE_HEADER, "blocks begin after the header");

struct fk_region {
    fk_region *next, *prev;
    void *memory;
    size_t size;
    uint32_t pages;
    uint32_t pages_free;
};

static const uint32_t CLASS_SIZE[FK_CLASS_COUNT] = {
#define FK_CLASS_SIZE(n) n,
    FK_CLASSES(FK_CLASS_SIZE)
#undef FK_CLASS_SIZE
};

uint32_t fk__pool_class_size(unsigned size_class)
{
    FK_ASSERT(size_class < FK_CLASS_COUNT);
    return CLASS_SIZE[size_class];
}

unsigned fk__pool_class(size_t size)
{
    unsigned size_class = FK_CLASS_48; /* anything may want 16-byte alignment */
    while (size_class < FK_CLASS_COUNT && CLASS_SIZE[size_class] < size) size_class++;
    return size_class;
}

void fk__pool_init(fk_pool *pool, fk_mem *mem, bool direct)
{
    memset(pool, 0, sizeof(*pool));
    pool->mem = mem;
    pool->direct = direct;
    pool->region_pages = 1;
}

/* ---- regions and pages: under pool->lock ------------------------------------------------- */

static fk_err region_add(fk_pool *pool)
{
    bool aligned = pool->mem->port.align != 0 && pool->mem->port.align % FK_PAGE_SIZE == 0;
    uint32_t pages = pool->region_pages;
    size_t size = (size_t)pages * FK_PAGE_SIZE + (aligned ? 0 : FK_PAGE_SIZE);
    void *region_memory, *memory;

    FK_TRY(fk__mem_alloc(pool->mem, sizeof(fk_region), FK_SITE("region header"), &region_memory));
    fk_region *region = region_memory;
    fk_err err = fk__mem_alloc(pool->mem, size, FK_SITE("region"), &memory);
    if (err != FK_OK) {
        fk__mem_free(pool->mem, region, sizeof(*region));
        return err;
    }
    *region = (fk_region){
        .next = pool->regions, .memory = memory, .size = size, .pages = pages, .pages_free = pages
    };
    if (pool->regions != NULL) pool->regions->prev = region;
    pool->regions = region;
    if (pool->region_pages < REGION_PAGES_MAX) pool->region_pages *= 2;

    uintptr_t first = ((uintptr_t)memory + FK_PAGE_SIZE - 1) & ~(uintptr_t)(FK_PAGE_SIZE - 1);
    FK_ASSERT(!aligned || first == (uintptr_t)memory);
    for (uint32_t i = pages; i-- > 0;) { /* backwards: the list then begins at the low end */
        fk_page *page = (fk_page *)(first + (uintptr_t)i * FK_PAGE_SIZE);
        page->region = region;
        page->next = pool->pages_free;
        pool->pages_free = page;
    }
    pool->pages_spare += pages;
    return FK_OK;
}

static void region_remove(fk_pool *pool, fk_region *region)
{
    fk_page **link = &pool->pages_free;
    while (*link != NULL) {
        if ((*link)->region == region) {
            *link = (*link)->next;
            pool->pages_spare--;
        } else {
            link = &(*link)->next;
        }
    }
    if (region->prev != NULL)
        region->prev->next = region->next;
    else
        pool->regions = region->next;
    if (region->next != NULL) region->next->prev = region->prev;
    fk__mem_free(pool->mem, region->memory, region->size);
    fk__mem_free(pool->mem, region, sizeof(*region));
}

static fk_err page_get(fk_pool *pool, unsigned size_class, fk_page **out)
{
    fk_err err = FK_OK;
    fk__mem_lock(pool->mem, &pool->lock);
    if (pool->pages_free == NULL) err = region_add(pool);
    if (err == FK_OK) {
        fk_page *page = pool->pages_free;
        FK_ASSERT(page != NULL);
        pool->pages_free = page->next;
        pool->pages_spare--;
        page->region->pages_free--;
        page->free = NULL;
        page->out = page->cut = 0;
        page->total = (FK_PAGE_SIZE - PAGE_HEADER) / CLASS_SIZE[size_class];
        page->size_class = size_class;
        page->next = page->prev = page;
        *out = page;
    }
    fk__mem_unlock(pool->mem, &pool->lock);
    return err;
}

static void page_put(fk_pool *pool, fk_page *page)
{
    fk__mem_lock(pool->mem, &pool->lock);
    fk_region *region = page->region;
    page->next = pool->pages_free;
    pool->pages_free = page;
    pool->pages_spare++;
    region->pages_free++;
    if (region->pages_free == region->pages && pool->pages_spare > PAGES_KEPT + region->pages) {
        region_remove(pool, region);
    }
    fk__mem_unlock(pool->mem, &pool->lock);
}

/* ---- depots: under depot->lock ----------------------------------------------------------- */

static void partial_add(fk_depot *depot, fk_page *page)
{
    fk_page *head = depot->partial;
    if (head == NULL) {
        page->next = page->prev = page;
        depot->partial = page;
        return;
    }
    page->next = head;
    page->prev = head->prev;
    head->prev->next = page;
    head->prev = page;
}

static void partial_remove(fk_depot *depot, fk_page *page)
{
    if (page->next == page) {
        depot->partial = NULL;
    } else {
        page->next->prev = page->prev;
        page->prev->next = page->next;
        if (depot->partial == page) depot->partial = page->next;
    }
}

static bool page_is_full(const fk_page *page)
{
    return page->free == NULL && page->cut == page->total;
}

/* Cuts a magazine out of partial pages, the untouched part in address order. */
static fk_err magazine_cut(fk_pool *pool, unsigned size_class, fk_block **out, uint32_t *count)
{
    fk_depot *depot = &pool->depot[size_class];
    fk_block *first = NULL;
    fk_block **last = &first;
    uint32_t n = 0;
    while (n < FK_MAGAZINE) {
        fk_page *page = depot->partial;
        if (page == NULL) {
            fk_err err = page_get(pool, size_class, &page);
            if (err != FK_OK && n == 0) return err;
            if (err != FK_OK) break;
            partial_add(depot, page);
        }
        uint32_t before = n;
        for (; n < FK_MAGAZINE && page->free != NULL; n++) {
            *last = page->free;
            last = &page->free->next;
            page->free = page->free->next;
        }
        size_t size = CLASS_SIZE[size_class];
        char *fresh = (char *)page + PAGE_HEADER + page->cut * size;
        for (; n < FK_MAGAZINE && page->cut < page->total; n++, page->cut++, fresh += size) {
            fk_block *block = (fk_block *)(void *)fresh;
            *last = block;
            last = &block->next;
        }
        page->out += n - before;
        if (page_is_full(page)) partial_remove(depot, page);
    }
    *last = NULL;
    *out = first;
    *count = n;
    return FK_OK;
}

static void block_return(fk_pool *pool, fk_depot *depot, fk_block *block)
{
    fk_page *page = (fk_page *)((uintptr_t)block & ~(uintptr_t)(FK_PAGE_SIZE - 1));
    FK_ASSERT(page->out > 0);
    bool was_full = page_is_full(page);
    block->next = page->free;
    page->free = block;
    page->out--;
    if (page->out == 0) {
        if (!was_full) partial_remove(depot, page);
        page_put(pool, page);
    } else if (was_full) {
        partial_add(depot, page);
    }
}

bool fk__pool_trim(fk_pool *pool, uint32_t magazines)
{
    bool more = false;
    if (fk__half_load(&pool->surplus, FK_RELAXED) == 0) return false; /* only a hint */
    fk__half_store(&pool->surplus, 0, FK_RELAXED);
    for (unsigned c = 0; c < FK_CLASS_COUNT; c++) {
        fk_depot *depot = &pool->depot[c];
        fk__mem_lock(pool->mem, &depot->lock);
        for (uint32_t i = 0; i < magazines && depot->magazines > MAGAZINES_KEPT; i++) {
            fk_block *block = depot->full;
            depot->full = block->magazine;
            depot->magazines--;
            while (block != NULL) {
                fk_block *next = block->next;
                block_return(pool, depot, block);
                block = next;
            }
        }
        more = more || depot->magazines > MAGAZINES_KEPT;
        fk__mem_unlock(pool->mem, &depot->lock);
    }
    if (more) fk__half_store(&pool->surplus, 1, FK_RELAXED);
    return more;
}

static bool pool_has_page(fk_pool *pool)
{
    fk__mem_lock(pool->mem, &pool->lock);
    bool has = pool->pages_free != NULL;
    fk__mem_unlock(pool->mem, &pool->lock);
    return has;
}

bool fk__pool_reclaim(fk_pool *pool, bool all)
{
    bool any = false;
    for (unsigned c = 0; c < FK_CLASS_COUNT && !pool->direct; c++) {
        fk_depot *depot = &pool->depot[c];
        for (bool more = true; more;) { /* the lock is held for a magazine at a time */
            fk__mem_lock(pool->mem, &depot->lock);
            fk_block *block = depot->full;
            if (block != NULL) {
                depot->full = block->magazine;
                depot->magazines--;
                any = true;
            }
            more = block != NULL;
            while (block != NULL) {
                fk_block *next = block->next;
                block_return(pool, depot, block);
                block = next;
            }
            fk__mem_unlock(pool->mem, &depot->lock);
            if (!all && more && pool_has_page(pool)) return true;
        }
    }
    return any;
}

void fk__pool_fini(fk_pool *pool)
{
    while (pool->regions != NULL) {
        fk_region *region = pool->regions;
        pool->regions = region->next;
        fk__mem_free(pool->mem, region->memory, region->size);
        fk__mem_free(pool->mem, region, sizeof(*region));
    }
}

/* ---- caches: one thread ------------------------------------------------------------------ */

void fk__cache_init(fk_cache *cache, fk_pool *pool)
{
    memset(cache, 0, sizeof(*cache));
    cache->pool = pool;
    cache->limit = pool->direct ? 0 : FK_MAGAZINE;
}

static void depot_put(fk_pool *pool, unsigned size_class, fk_block *magazine)
{
    fk_depot *depot = &pool->depot[size_class];
    fk__mem_lock(pool->mem, &depot->lock);
    magazine->magazine = depot->full;
    depot->full = magazine;
    depot->magazines++;
    bool surplus = depot->magazines > MAGAZINES_KEPT;
    fk__mem_unlock(pool->mem, &depot->lock);
    if (surplus) fk__half_store(&pool->surplus, 1, FK_RELAXED);
}

void fk__cache_fini(fk_cache *cache)
{
    for (unsigned c = 0; c < FK_CLASS_COUNT; c++) {
        if (cache->list[c].head != NULL) depot_put(cache->pool, c, cache->list[c].head);
        if (cache->list[c].full != NULL) depot_put(cache->pool, c, cache->list[c].full);
        cache->list[c].head = cache->list[c].full = NULL;
        cache->list[c].count = 0;
    }
}

static fk_err cache_refill(fk_cache *cache, unsigned size_class)
{
    fk_pool *pool = cache->pool;
    fk_depot *depot = &pool->depot[size_class];
    fk_err err = FK_OK;
    fk__mem_lock(pool->mem, &depot->lock);
    if (depot->full != NULL) {
        cache->list[size_class].head = depot->full;
        cache->list[size_class].count = FK_MAGAZINE; /* at most: see fk__cache_fini */
        depot->full = depot->full->magazine;
        depot->magazines--;
    } else {
        err = magazine_cut(pool, size_class, &cache->list[size_class].head,
                           &cache->list[size_class].count);
    }
    fk__mem_unlock(pool->mem, &depot->lock);
    return err;
}

void *fk__cache_get_slow(fk_cache *cache, unsigned size_class, const fk_site *site)
{
    fk_pool *pool = cache->pool;
    void *block = NULL;
    if (pool->direct) {
        cache->err = fk__mem_alloc(pool->mem, CLASS_SIZE[size_class], site, &block);
        return block;
    }
    if (cache->list[size_class].full != NULL) {
        cache->list[size_class].head = cache->list[size_class].full;
        cache->list[size_class].full = NULL;
        cache->list[size_class].count = FK_MAGAZINE;
    } else {
        cache->err = cache_refill(cache, size_class);
        if (FK_UNLIKELY(cache->err != FK_OK)) {
            if (!fk__pool_reclaim(pool, false)) return NULL;
            cache->err = cache_refill(cache, size_class);
            if (cache->err != FK_OK) return NULL;
        }
    }
    fk_block *head = cache->list[size_class].head;
    cache->list[size_class].head = head->next;
    cache->list[size_class].count--;
    return head;
}

void fk__cache_put_slow(fk_cache *cache, unsigned size_class, void *ptr)
{
    if (cache->pool->direct) {
        fk__mem_free(cache->pool->mem, ptr, CLASS_SIZE[size_class]);
        return;
    }
    if (cache->list[size_class].full != NULL) {
        depot_put(cache->pool, size_class, cache->list[size_class].full);
    }
    cache->list[size_class].full = cache->list[size_class].head;
    fk_block *block = ptr;
    block->next = NULL;
    cache->list[size_class].head = block;
    cache->list[size_class].count = 1;
}

void *fk__cache_alloc(fk_cache *cache, size_t size, const fk_site *site)
{
    void *ptr;
    if (size <= FK_POOL_LARGEST) return fk__cache_get(cache, fk__pool_class(size), site);
    cache->err = fk__mem_alloc(cache->pool->mem, size, site, &ptr);
    if (FK_UNLIKELY(cache->err != FK_OK) && fk__pool_reclaim(cache->pool, true)) {
        cache->err = fk__mem_alloc(cache->pool->mem, size, site, &ptr);
    }
    return ptr;
}

void fk__cache_free(fk_cache *cache, void *ptr, size_t size)
{
    if (ptr == NULL) return;
    if (size <= FK_POOL_LARGEST)
        fk__cache_put(cache, fk__pool_class(size), ptr);
    else
        fk__mem_free(cache->pool->mem, ptr, size);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/pool.h"

#include <stdlib.h>
#include <string.h>

#include "support/rig.h"

/* A rig, a pool and a cache, with or without blocks of their own. */
typedef struct bench {
    rig r;
    fk_mem mem;
    fk_pool pool;
    fk_cache cache;
} bench;

static void bench_init(bench *b, bool direct)
{
    rig_init(&b->r);
    fk__mem_init(&b->mem, &b->r.port, 0);
    fk__pool_init(&b->pool, &b->mem, direct);
    fk__cache_init(&b->cache, &b->pool);
}

static void bench_fini(bench *b)
{
    fk__cache_fini(&b->cache);
    fk__pool_fini(&b->pool);
    rig_check_empty(&b->r);
}

static uint32_t page_blocks(unsigned size_class)
{
    return (FK_PAGE_SIZE - 64) / fk__pool_class_size(size_class);
}

TEST(pool_class_is_the_smallest_that_fits)
{
    for (size_t size = 1; size <= FK_POOL_LARGEST; size++) {
        unsigned c = fk__pool_class(size);
        CHECK(c < FK_CLASS_COUNT);
        CHECK(fk__pool_class_size(c) >= size);
        CHECK(c == FK_CLASS_48 || fk__pool_class_size(c - 1) < size);
    }
    CHECK_U64(fk__pool_class(FK_POOL_LARGEST + 1), FK_CLASS_COUNT);
    for (unsigned c = FK_CLASS_48; c < FK_CLASS_COUNT; c++) {
        CHECK_U64(fk__pool_class_size(c) % 16, 0);
    }
}

static int compare(const void *a, const void *b)
{
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

/* Blocks of one class: aligned, apart from each other, and writable to the last byte. */
static void check_blocks(bench *b, unsigned c, size_t count)
{
    uint32_t size = fk__pool_class_size(c);
    uintptr_t *at = calloc(count, sizeof(*at));
    for (size_t i = 0; i < count; i++) {
        void *block = fk__cache_get(&b->cache, c, FK_SITE("test block"));
        CHECK(block != NULL);
        CHECK_U64((uintptr_t)block % (c == FK_CLASS_40 ? 8 : 16), 0);
        memset(block, (int)(i & 0xff), size);
        at[i] = (uintptr_t)block;
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned char *bytes = (const unsigned char *)at[i];
        CHECK_U64(bytes[0], i & 0xff);
        CHECK_U64(bytes[size - 1], i & 0xff);
    }
    qsort(at, count, sizeof(*at), compare);
    for (size_t i = 1; i < count; i++) CHECK(at[i] - at[i - 1] >= size);
    for (size_t i = 0; i < count; i++) fk__cache_put(&b->cache, c, (void *)at[i]);
    free(at);
}

TEST(pool_blocks_of_every_class_do_not_overlap)
{
    for (int direct = 0; direct < 2; direct++) {
        bench b;
        bench_init(&b, direct != 0);
        for (unsigned c = 0; c < FK_CLASS_COUNT; c++) check_blocks(&b, c, 2 * page_blocks(c) + 3);
        bench_fini(&b);
    }
}

TEST(pool_gives_a_freed_block_out_again_first)
{
    bench b;
    bench_init(&b, false);
    void *first = fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block"));
    uint64_t bytes = atomic_load(&b.r.bytes);
    for (int i = 0; i < 100000; i++) {
        fk__cache_put(&b.cache, FK_CLASS_64, first);
        CHECK(fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block")) == first);
    }
    CHECK_U64(atomic_load(&b.r.bytes), bytes);
    fk__cache_put(&b.cache, FK_CLASS_64, first);
    bench_fini(&b);
}

TEST(pool_magazines_travel_from_one_cache_to_another)
{
    enum { COUNT = 10 * FK_MAGAZINE };
    bench b;
    fk_cache other;
    void *block[COUNT];
    bench_init(&b, false);
    fk__cache_init(&other, &b.pool);
    uint64_t bytes = 0;
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < COUNT; i++) {
            block[i] = fk__cache_get(&b.cache, FK_CLASS_128, FK_SITE("test block"));
            CHECK(block[i] != NULL);
        }
        for (int i = 0; i < COUNT; i++) fk__cache_put(&other, FK_CLASS_128, block[i]);
        /* One cache only gets, the other only puts: what the first round made must do for all. */
        if (round == 2) bytes = atomic_load(&b.r.bytes);
        if (round > 2) CHECK_U64(atomic_load(&b.r.bytes), bytes);
    }
    CHECK(b.pool.depot[FK_CLASS_128].magazines > 0);
    fk__cache_fini(&other);
    bench_fini(&b);
}

TEST(pool_trim_gives_the_memory_back)
{
    enum { COUNT = 200000 };
    bench b;
    void **block = calloc(COUNT, sizeof(*block));
    bench_init(&b, false);
    for (int i = 0; i < COUNT; i++) {
        block[i] = fk__cache_get(&b.cache, FK_CLASS_256, FK_SITE("test block"));
        CHECK(block[i] != NULL);
    }
    uint64_t peak = atomic_load(&b.r.bytes);
    CHECK(peak >= (uint64_t)COUNT * 256);
    for (int i = 0; i < COUNT; i++) fk__cache_put(&b.cache, FK_CLASS_256, block[i]);
    int steps = 0;
    while (fk__pool_trim(&b.pool, 8)) steps++;
    CHECK(steps > 10); /* it goes in small steps, as asked */
    CHECK(atomic_load(&b.r.bytes) < peak / 8);
    /* And what was given back can be had again. */
    for (int i = 0; i < COUNT; i++) {
        block[i] = fk__cache_get(&b.cache, FK_CLASS_256, FK_SITE("test block"));
        CHECK(block[i] != NULL);
    }
    for (int i = 0; i < COUNT; i++) fk__cache_put(&b.cache, FK_CLASS_256, block[i]);
    free(block);
    bench_fini(&b);
}

TEST(pool_trim_in_random_order_keeps_the_books)
{
    enum { COUNT = 20000 };
    bench b;
    test_random random = { 7 };
    void **block = calloc(COUNT, sizeof(*block));
    unsigned char *class_of = calloc(COUNT, 1);
    bench_init(&b, false);
    for (int step = 0; step < 400000; step++) {
        size_t i = (size_t)test_random_below(&random, COUNT);
        if (block[i] == NULL) {
            class_of[i] = (unsigned char)test_random_below(&random, FK_CLASS_COUNT - 2);
            block[i] = fk__cache_get(&b.cache, class_of[i], FK_SITE("test block"));
            CHECK(block[i] != NULL);
            memset(block[i], 0xa5, fk__pool_class_size(class_of[i]));
        } else {
            fk__cache_put(&b.cache, class_of[i], block[i]);
            block[i] = NULL;
        }
        if (step % 512 == 0) fk__pool_trim(&b.pool, 2);
    }
    for (int i = 0; i < COUNT; i++) {
        if (block[i] != NULL) fk__cache_put(&b.cache, class_of[i], block[i]);
    }
    free(block);
    free(class_of);
    bench_fini(&b);
}

TEST(pool_direct_asks_the_port_for_each_block)
{
    bench b;
    bench_init(&b, true);
    void *x = fk__cache_get(&b.cache, FK_CLASS_48, FK_SITE("test block"));
    CHECK_U64(atomic_load(&b.r.blocks), 1);
    CHECK_U64(atomic_load(&b.r.bytes), 48);
    void *y = fk__cache_alloc(&b.cache, 65, FK_SITE("test block"));
    CHECK_U64(atomic_load(&b.r.bytes), 48 + 128);
    fk__cache_put(&b.cache, FK_CLASS_48, x);
    CHECK_U64(atomic_load(&b.r.blocks), 1);
    fk__cache_free(&b.cache, y, 65);
    CHECK_U64(atomic_load(&b.r.blocks), 0);
    CHECK(!fk__pool_trim(&b.pool, 100));
    bench_fini(&b);
}

TEST(pool_takes_large_ones_from_the_port)
{
    bench b;
    bench_init(&b, false);
    void *large = fk__cache_alloc(&b.cache, FK_POOL_LARGEST + 1, FK_SITE("test block"));
    CHECK_U64(atomic_load(&b.r.bytes), FK_POOL_LARGEST + 1);
    memset(large, 1, FK_POOL_LARGEST + 1);
    fk__cache_free(&b.cache, large, FK_POOL_LARGEST + 1);
    fk__cache_free(&b.cache, NULL, 100);
    CHECK_U64(atomic_load(&b.r.bytes), 0);
    bench_fini(&b);
}

TEST(pool_says_why_there_is_no_block)
{
    int refused = 0;
    for (uint64_t n = 1; n <= 4; n++) { /* whatever it takes for the first block */
        for (int stays = 0; stays < 2; stays++) {
            bench b;
            bench_init(&b, false);
            rig_fault(&b.r, n, stays != 0);
            void *block = fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block"));
            if (block == NULL) {
                refused++;
                CHECK_ERR(b.cache.err, FK_E_NOMEM);
                CHECK(atomic_load(&b.r.bytes) < FK_PAGE_SIZE);
                rig_fault(&b.r, 0, false);
                block = fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block"));
                CHECK(block != NULL);
            }
            fk__cache_put(&b.cache, FK_CLASS_64, block); /* a put cannot fail */
            bench_fini(&b);
        }
    }
    CHECK(refused >= 4); /* the region and its header, once and for ever */
}

TEST(pool_tells_a_limit_from_no_memory)
{
    bench b;
    bench_init(&b, false);
    b.mem.max = 2000; /* less than a region */
    CHECK(fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block")) == NULL);
    CHECK_ERR(b.cache.err, FK_E_LIMIT);
    b.mem.max = 0;
    void *block = fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block"));
    CHECK(block != NULL);
    fk__cache_put(&b.cache, FK_CLASS_64, block);
    bench_fini(&b);
}

TEST(pool_of_one_size_gives_way_to_another)
{
    enum { COUNT = 50000 };
    bench b;
    void **block = calloc(COUNT, sizeof(*block));
    bench_init(&b, false);
    for (int i = 0; i < COUNT; i++) {
        block[i] = fk__cache_get(&b.cache, FK_CLASS_64, FK_SITE("test block"));
        CHECK(block[i] != NULL);
    }
    b.mem.max = atomic_load(&b.r.bytes) + 200000; /* hardly any more than this */
    for (int i = 0; i < COUNT; i++) fk__cache_put(&b.cache, FK_CLASS_64, block[i]);
    size_t got = 0;
    while (got < COUNT) {
        block[got] = fk__cache_get(&b.cache, FK_CLASS_1024, FK_SITE("test block"));
        if (block[got] == NULL) break;
        got++;
    }
    CHECK_ERR(b.cache.err, FK_E_LIMIT);
    CHECK(got * 1024 > (size_t)COUNT * 64 / 2); /* most of it could be used again */
    for (size_t i = 0; i < got; i++) fk__cache_put(&b.cache, FK_CLASS_1024, block[i]);
    free(block);
    bench_fini(&b);
}

TEST(pool_works_on_a_port_that_aligns_to_16_bytes_only)
{
    bench b;
    bench_init(&b, false);
    b.mem.port.align = 0;
    for (unsigned c = 0; c < FK_CLASS_COUNT; c++) check_blocks(&b, c, page_blocks(c) + 1);
    bench_fini(&b);
}

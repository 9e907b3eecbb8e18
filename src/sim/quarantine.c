/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A bump allocator. Each block is preceded by a header of 16 bytes and followed by at least
 * 8 bytes, both marked OUTSIDE, so that an access just beside a block is noticed too. The
 * blocks are also listed in an array, for the walk at the end.
 */

#include "sim/quarantine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS_MAX = 65536, HEADER_SIZE = 16, ALIGNMENT = 16 };

typedef struct header {
    uint32_t index;
    uint32_t magic;
} header;

typedef struct block {
    size_t offset;
    size_t size;
    bool freed;
    bool abandoned; /* with freed: it is as it was */
    uint8_t owner;
} block;

static const uint32_t MAGIC = 0xB10CB10Cu;

unsigned char *fk__quarantine_base;
unsigned char *fk__quarantine_shadow;
size_t fk__quarantine_used;

static block blocks[BLOCKS_MAX];
static uint32_t block_count;
static uint32_t live_count;
static uint8_t block_owner;

static void die(const char *why)
{
    fprintf(stderr, "explorer heap: %s\n", why);
    exit(2);
}

static unsigned char *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) die("out of memory");
    return p;
}

void fk__quarantine_reset(void)
{
    if (fk__quarantine_base == NULL) {
        fk__quarantine_base = map(FK_QUARANTINE_SIZE);
        fk__quarantine_shadow = map(FK_QUARANTINE_SIZE / FK_QUARANTINE_GRANULE);
    }
    if (fk__quarantine_used > 0) {
        memset(fk__quarantine_shadow, FK_QUARANTINE_OUTSIDE,
               fk__quarantine_used / FK_QUARANTINE_GRANULE);
    }
    fk__quarantine_used = 0;
    block_count = 0;
    live_count = 0;
    block_owner = 0;
}

static void mark(size_t offset, size_t size, fk_quarantine_state state)
{
    size_t first = offset / FK_QUARANTINE_GRANULE;
    size_t end = (offset + size + FK_QUARANTINE_GRANULE - 1) / FK_QUARANTINE_GRANULE;
    memset(fk__quarantine_shadow + first, (int)state, end - first);
}

void *fk__quarantine_alloc(size_t size)
{
    assert(size > 0);
    if (fk__quarantine_base == NULL) fk__quarantine_reset();
    size_t offset = fk__quarantine_used + HEADER_SIZE;
    size_t room = size + FK_QUARANTINE_GRANULE + ALIGNMENT - 1;
    if (room > FK_QUARANTINE_SIZE - offset) die("a schedule used more than 64 MiB");
    if (block_count == BLOCKS_MAX) die("a schedule made more than 65536 blocks");
    fk__quarantine_used = offset + room / ALIGNMENT * ALIGNMENT;
    blocks[block_count] = (block){ .offset = offset, .size = size, .owner = block_owner };
    header h = { .index = block_count, .magic = MAGIC };
    memcpy(fk__quarantine_base + offset - HEADER_SIZE, &h, sizeof(h));
    memset(fk__quarantine_base + offset, FK_QUARANTINE_FILL_NEW, size);
    mark(offset, size, FK_QUARANTINE_LIVE);
    block_count++;
    live_count++;
    return fk__quarantine_base + offset;
}

const char *fk__quarantine_free(void *ptr, size_t size)
{
    uintptr_t offset = (uintptr_t)ptr - (uintptr_t)fk__quarantine_base;
    if (offset < HEADER_SIZE || offset >= fk__quarantine_used) return "free of a wild pointer";
    header h;
    memcpy(&h, (const unsigned char *)ptr - HEADER_SIZE, sizeof(h));
    if (h.magic != MAGIC || h.index >= block_count || blocks[h.index].offset != offset) {
        return "free of a wild pointer";
    }
    block *b = &blocks[h.index];
    if (b->freed) return "double free";
    if (b->size != size) return "free with the wrong size";
    b->freed = true;
    live_count--;
    memset(ptr, FK_QUARANTINE_FILL_FREE, size);
    mark(offset, size, FK_QUARANTINE_FREED);
    return NULL;
}

void fk__quarantine_own(uint8_t owner)
{
    block_owner = owner;
}

size_t fk__quarantine_abandon(uint8_t owner)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < block_count; i++) {
        block *b = &blocks[i];
        if (b->freed || b->owner != owner) continue;
        b->freed = b->abandoned = true;
        bytes += b->size;
        live_count--;
        mark(b->offset, b->size, FK_QUARANTINE_FREED);
    }
    return bytes;
}

/* Whole granules only: a pool keeps its free list in the first bytes of what it marks. */
static void mark_inside(const void *ptr, size_t size, fk_quarantine_state state)
{
    if (!fk__quarantine_holds(ptr)) return;
    size_t offset = (size_t)((uintptr_t)ptr - (uintptr_t)fk__quarantine_base);
    size_t first = (offset + FK_QUARANTINE_GRANULE - 1) / FK_QUARANTINE_GRANULE;
    size_t end = (offset + size) / FK_QUARANTINE_GRANULE;
    if (end > first) memset(fk__quarantine_shadow + first, (int)state, end - first);
}

void fk__quarantine_poison(void *ptr, size_t size)
{
    mark_inside(ptr, size, FK_QUARANTINE_POISONED);
}

void fk__quarantine_unpoison(void *ptr, size_t size)
{
    mark_inside(ptr, size, FK_QUARANTINE_LIVE);
}

static bool is_filled(const block *b)
{
    const unsigned char *at = fk__quarantine_base + b->offset;
    return at[0] == FK_QUARANTINE_FILL_FREE && memcmp(at, at + 1, b->size - 1) == 0;
}

const char *fk__quarantine_end(void)
{
    for (uint32_t i = 0; i < block_count; i++) {
        const block *b = &blocks[i];
        if (b->freed && !b->abandoned && !is_filled(b)) return "write after free";
    }
    return live_count > 0 ? "leak" : NULL;
}

bool fk__quarantine_find(const void *address, uint32_t *index, size_t *offset)
{
    size_t at = (size_t)((uintptr_t)address - (uintptr_t)fk__quarantine_base);
    for (uint32_t i = 0; i < block_count && fk__quarantine_holds(address); i++) {
        if (at < blocks[i].offset || at >= blocks[i].offset + blocks[i].size) continue;
        *index = i;
        *offset = at - blocks[i].offset;
        return true;
    }
    return false;
}

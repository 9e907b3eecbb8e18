/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/tombs.h"

#include "base/hash.h"

enum { TOMBS_FIRST = 64 };

void fk__tombs_init(fk_tombs *tombs, fk_mem *mem, uint32_t max)
{
    FK_ASSERT(max > 0);
    *tombs = (fk_tombs){ .mem = mem, .max = max };
}

static size_t tombs_size(uint32_t capacity)
{
    return capacity * (sizeof(fk_tomb) + sizeof(uint32_t));
}

void fk__tombs_fini(fk_tombs *tombs)
{
    fk__mem_free(tombs->mem, tombs->tomb, tombs_size(tombs->capacity));
    *tombs = (fk_tombs){ .mem = tombs->mem, .max = tombs->max };
}

static uint32_t *tombs_bucket(const fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    return &tombs->bucket[fk__mix64(address ^ fk__mix64(uid)) & (tombs->capacity - 1)];
}

static void tomb_put(fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    uint32_t at = (tombs->oldest + tombs->count) & (tombs->capacity - 1);
    uint32_t *bucket = tombs_bucket(tombs, address, uid);
    tombs->tomb[at] = (fk_tomb){ address, uid, *bucket };
    *bucket = at + 1;
    tombs->count++;
}

/* What leads to it; NULL: there is none. */
static uint32_t *tomb_link(const fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    if (tombs->capacity == 0) return NULL;
    uint32_t *link = tombs_bucket(tombs, address, uid);
    while (*link != 0) {
        fk_tomb *tomb = &tombs->tomb[*link - 1];
        if (tomb->address == address && tomb->uid == uid) return link;
        link = &tomb->next;
    }
    return NULL;
}

bool fk__tombs_has(const fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    return tomb_link(tombs, address, uid) != NULL;
}

bool fk__tombs_remove(fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    uint32_t *link = tomb_link(tombs, address, uid);
    if (link == NULL) return false;
    fk_tomb *tomb = &tombs->tomb[*link - 1];
    *link = tomb->next;
    tomb->uid = 0;
    return true;
}

/* False: no memory. */
static bool tombs_grow(fk_tombs *tombs)
{
    fk_tombs old = *tombs;
    uint32_t capacity = old.capacity != 0 ? old.capacity * 2 : TOMBS_FIRST;
    void *memory;
    fk_err err =
        fk__mem_alloc(old.mem, tombs_size(capacity), FK_SITE("uids that stay out"), &memory);
    if (err != FK_OK) return false;
    memset(memory, 0, tombs_size(capacity));
    tombs->tomb = memory;
    tombs->bucket = (uint32_t *)(void *)(tombs->tomb + capacity);
    tombs->capacity = capacity;
    tombs->oldest = tombs->count = 0;
    for (uint32_t i = 0; i < old.count; i++) {
        const fk_tomb *tomb = &old.tomb[(old.oldest + i) & (old.capacity - 1)];
        if (tomb->uid != 0) tomb_put(tombs, tomb->address, tomb->uid);
    }
    fk__mem_free(old.mem, old.tomb, tombs_size(old.capacity));
    return true;
}

static void oldest_go(fk_tombs *tombs)
{
    const fk_tomb *tomb = &tombs->tomb[tombs->oldest];
    if (tomb->uid != 0 && fk__tombs_remove(tombs, tomb->address, tomb->uid)) tombs->forgotten++;
    tombs->oldest = (tombs->oldest + 1) & (tombs->capacity - 1);
    tombs->count--;
}

void fk__tombs_add(fk_tombs *tombs, uint64_t address, uint64_t uid)
{
    FK_ASSERT(uid != 0);
    fk__tombs_remove(tombs, address, uid); /* it counts as new again */
    if (tombs->count == tombs->max) oldest_go(tombs);
    bool is_full = tombs->count == tombs->capacity;
    if (is_full && !tombs_grow(tombs)) {
        if (tombs->capacity == 0) {
            tombs->forgotten++;
            return;
        }
        oldest_go(tombs);
    }
    tomb_put(tombs, address, uid);
}

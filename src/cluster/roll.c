/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The roll has one writer, the steward, and any number of readers that take no lock. A reader may
 * miss a seat that is there, because the table grows, or a chain changes under it; then the call goes
 * by the steward, who knows. It never takes one for another: a seat's version is odd while it
 * changes, and must be the same before and after it was read. Memory never becomes anything else, so
 * whatever a slow reader follows is a seat.
 *
 * Chains are short and seats far apart, so the word that leads to a seat says a little about it: three
 * bits of its id, and whether it is the last one of its chain. Whoever is not there is mostly known to
 * be absent without looking at anybody else's seat.
 */

#include "cluster/cluster.h"

enum { ROLL_MIN = 256, SEATS_AT_ONCE = 64, SEATS_REST = 65536, CHAIN_MOST = 64 };

#define LINK_LAST                                                                                  \
    ((uintptr_t)1) /* nobody comes after it, which stays true as long as it is listed */
#define LINK_TAG ((uintptr_t)14) /* of its id */

typedef struct fk_seat_block {
    struct fk_seat_block *next;
    fk_seat seat[SEATS_AT_ONCE];
    char key[SEATS_AT_ONCE][FK_SEAT_KEY_INLINE];
} fk_seat_block;

static size_t roll_size(uint32_t buckets)
{
    return sizeof(fk_roll_table) + buckets * sizeof(fk_word);
}

static fk_err roll_make(fk_roll *roll, uint32_t buckets, fk_roll_table **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(roll->mem, roll_size(buckets), FK_SITE("roll of grains"), &memory));
    fk_roll_table *table = memory;
    memset(table, 0, roll_size(buckets));
    table->mask = buckets - 1;
    *out = table;
    return FK_OK;
}

fk_err fk__roll_init(fk_roll *roll, fk_mem *mem)
{
    fk_roll_table *table;
    *roll = (fk_roll){ .mem = mem };
    roll->free_last = &roll->free_first;
    FK_TRY(roll_make(roll, ROLL_MIN, &table));
    fk__word_init(&roll->table, (uintptr_t)table);
    return FK_OK;
}

static void seat_key_free(fk_roll *roll, fk_seat *seat)
{
    if (seat->key_len > FK_SEAT_KEY_INLINE) fk__mem_free(roll->mem, seat->key, seat->key_len);
    seat->key_len = 0;
}

void fk__roll_fini(fk_roll *roll)
{
    fk_roll_table *table = fk__word_ptr(&roll->table, FK_RELAXED);
    while (table != NULL) {
        fk_roll_table *older = table->older;
        fk__mem_free(roll->mem, table, roll_size(table->mask + 1));
        table = older;
    }
    while (roll->blocks != NULL) {
        fk_seat_block *block = roll->blocks;
        for (uint32_t i = 0; i < SEATS_AT_ONCE; i++) seat_key_free(roll, &block->seat[i]);
        roll->blocks = block->next;
        fk__mem_free(roll->mem, block, sizeof(*block));
    }
}

/* ---- seats --------------------------------------------------------------------------------------- */

static void seat_free(fk_roll *roll, fk_seat *seat)
{
    seat->gone = NULL;
    *roll->free_last = seat;
    roll->free_last = &seat->gone;
    roll->free_count++;
}

static fk_err seats_more(fk_roll *roll)
{
    void *memory;
    FK_TRY(fk__mem_alloc(roll->mem, sizeof(fk_seat_block), FK_SITE("seats of grains"), &memory));
    fk_seat_block *block = memory;
    memset(block, 0, sizeof(*block));
    block->next = roll->blocks;
    roll->blocks = block;
    /* Before those that rest: they are what is wanted now. */
    for (uint32_t i = 0; i < SEATS_AT_ONCE; i++) {
        fk_seat *seat = &block->seat[i];
        seat->gone = roll->free_first;
        if (roll->free_first == NULL) roll->free_last = &seat->gone;
        roll->free_first = seat;
    }
    roll->free_count += SEATS_AT_ONCE;
    return FK_OK;
}

static fk_seat_block *seat_block(fk_roll *roll, const fk_seat *seat)
{
    fk_seat_block *block = roll->blocks;
    while (!(seat >= block->seat && seat < block->seat + SEATS_AT_ONCE)) block = block->next;
    return block;
}

fk_err fk__seat_get(fk_roll *roll, fk_cluster *cluster, const fk_breed *breed,
                    const fk_grain_key *key, fk_seat **out)
{
    fk_seat *seat = roll->free_first;
    bool is_fresh = seat != NULL && fk__half_load(&seat->turn, FK_RELAXED) == 0;
    if (seat == NULL || (!is_fresh && roll->free_count < SEATS_REST)) {
        FK_TRY(seats_more(roll));
        seat = roll->free_first;
    }
    char *text = seat->key;
    if (key->key.len > FK_SEAT_KEY_INLINE) {
        void *memory;
        FK_TRY(fk__mem_alloc(roll->mem, key->key.len, FK_SITE("key of a grain"), &memory));
        seat_key_free(roll, seat);
        text = memory;
    } else if (seat->key == NULL || seat->key_len > FK_SEAT_KEY_INLINE) {
        fk_seat_block *block = seat_block(roll, seat); /* a fresh one: found at once */
        seat_key_free(roll, seat);
        text = block->key[seat - block->seat];
    }
    roll->free_first = seat->gone;
    if (roll->free_first == NULL) roll->free_last = &roll->free_first;
    roll->free_count--;
    /* Acq_rel, and first: who copies the key of an earlier tenant finds out that it came too late. */
    fk__half_add(&seat->turn, 1, FK_ACQ_REL);
    seat->key = text;
    seat->key_len = (uint32_t)key->key.len;
    memcpy(seat->key, key->key.ptr, key->key.len);
    seat->cluster = cluster;
    seat->breed = breed;
    seat->grain = key->id;
    seat->gone = NULL;
    seat->why = FK_OK;
    seat->verdict = FK_VERDICT_OK;
    seat->is_listed = seat->is_removed = false;
    fk__half_store(&seat->is_used, 1, FK_RELAXED);
    fk__half_store(&seat->is_closing, 0, FK_RELAXED);
    *out = seat;
    return FK_OK;
}

void fk__seat_put(fk_roll *roll, fk_seat *seat)
{
    FK_ASSERT(!seat->is_listed);
    seat_free(roll, seat); /* the key stays: a slow sender's call comes back by it */
}

/* ---- the table ------------------------------------------------------------------------------------ */

static fk_word *roll_bucket(fk_roll_table *table, fk_grain_id id)
{
    return &table->bucket[(uint32_t)id.hi & table->mask];
}

static uintptr_t link_tag(fk_grain_id id)
{
    return (uintptr_t)(id.lo >> 32) &
           LINK_TAG; /* the low bits are one slot's, and so many grains' */
}

static void roll_link(fk_roll_table *table, fk_seat *seat)
{
    fk_word *bucket = roll_bucket(table, seat->grain);
    uintptr_t next = fk__word_load(bucket, FK_RELAXED);
    uintptr_t link = (uintptr_t)seat | link_tag(seat->grain) | (next == 0 ? LINK_LAST : 0);
    fk__word_store(&seat->next, next, FK_RELAXED);
    /* Release pairs with the acquire of readers: they see the seat as it was written. */
    fk__word_store(bucket, link, FK_RELEASE);
}

static fk_err roll_grow(fk_roll *roll)
{
    fk_roll_table *old = fk__word_ptr(&roll->table, FK_RELAXED), *table;
    FK_TRY(roll_make(roll, (old->mask + 1) * 4, &table));
    table->older = old; /* readers may be in it; all of them together are a third of the newest */
    for (uint32_t i = 0; i <= old->mask; i++) {
        uintptr_t link = fk__word_load(&old->bucket[i], FK_RELAXED);
        while (link != 0) {
            fk_seat *seat = fk__roll_seat(link);
            link = fk__word_load(&seat->next, FK_RELAXED);
            roll_link(table, seat);
        }
    }
    fk__word_store(&roll->table, (uintptr_t)table, FK_RELEASE); /* as in roll_link() */
    return FK_OK;
}

fk_err fk__roll_add(fk_roll *roll, fk_seat *seat, fk_ref ref)
{
    fk_roll_table *table = fk__word_ptr(&roll->table, FK_RELAXED);
    FK_ASSERT(!seat->is_listed);
    if (roll->count > table->mask && table->mask < 0x0fffffff) {
        FK_TRY(roll_grow(roll));
        table = fk__word_ptr(&roll->table, FK_RELAXED);
    }
    uint32_t version = fk__half_load(&seat->version, FK_RELAXED);
    /* Acq_rel: what follows is not seen before the number is odd ... */
    fk__half_swap(&seat->version, version + 1, FK_ACQ_REL);
    fk__half_store(&seat->id[0], (uint32_t)seat->grain.hi, FK_RELEASE);
    fk__half_store(&seat->id[1], (uint32_t)(seat->grain.hi >> 32), FK_RELEASE);
    fk__half_store(&seat->id[2], (uint32_t)seat->grain.lo, FK_RELEASE);
    fk__half_store(&seat->id[3], (uint32_t)(seat->grain.lo >> 32), FK_RELEASE);
    fk__half_store(&seat->slot, ref.slot, FK_RELEASE);
    fk__half_store(&seat->generation, ref.generation, FK_RELEASE);
    fk__half_store(&seat->version, version + 2, FK_RELEASE); /* ... nor after it is even again */
    roll_link(table, seat);
    seat->is_listed = true;
    roll->count++;
    return FK_OK;
}

void fk__roll_remove(fk_roll *roll, fk_seat *seat)
{
    fk_roll_table *table = fk__word_ptr(&roll->table, FK_RELAXED);
    if (!seat->is_listed) return;
    fk_word *link = roll_bucket(table, seat->grain);
    fk_seat *at;
    while ((at = fk__roll_follow(link)) != seat) link = &at->next;
    /* Release: as roll_link(), for what comes after it in the chain. Its own next stays: a reader may
     * be there. */
    fk__word_store(link, fk__word_load(&seat->next, FK_RELAXED), FK_RELEASE);
    uint32_t version = fk__half_load(&seat->version, FK_RELAXED);
    fk__half_swap(&seat->version, version + 1, FK_ACQ_REL); /* as in fk__roll_add() */
    fk__half_store(&seat->generation, 0, FK_RELEASE);
    fk__half_store(&seat->version, version + 2, FK_RELEASE);
    seat->is_listed = false;
    roll->count--;
}

static bool seat_has(const fk_seat *seat, fk_grain_id id)
{
    /* Acquires: the version, which is read again after these, is not older than they are. */
    return fk__half_load(&seat->id[0], FK_ACQUIRE) == (uint32_t)id.hi &&
           fk__half_load(&seat->id[1], FK_ACQUIRE) == (uint32_t)(id.hi >> 32) &&
           fk__half_load(&seat->id[2], FK_ACQUIRE) == (uint32_t)id.lo &&
           fk__half_load(&seat->id[3], FK_ACQUIRE) == (uint32_t)(id.lo >> 32);
}

/* Strangers may have made two keys of one id. The texts change only while the seat is not listed, and
 * so with the version. */
static bool seat_is(const fk_seat *seat, const fk_grain_key *key)
{
    if (!seat_has(seat, key->id) || seat->key_len != key->key.len) return false;
    return memcmp(seat->key, key->key.ptr, key->key.len) == 0;
}

fk_seat *fk__roll_find(const fk_roll *roll, const fk_grain_key *key, fk_ref *ref, uint32_t system)
{
    const fk_roll_table *table = fk__word_ptr(&roll->table, FK_ACQUIRE);
    const fk_word *from = &table->bucket[(uint32_t)key->id.hi & table->mask];
    uintptr_t tag = link_tag(key->id);
    for (uint32_t i = 0; i < CHAIN_MOST; i++) {
        uintptr_t link = fk__word_load(from, FK_ACQUIRE);
        bool is_other = (link & LINK_TAG) != tag;
        if (link == 0 || (is_other && (link & LINK_LAST) != 0)) return NULL;
        fk_seat *seat = fk__roll_seat(link);
        uint32_t version = fk__half_load(&seat->version, FK_ACQUIRE);
        if (!is_other && (version & 1) == 0 && seat_is(seat, key)) {
            uint32_t slot = fk__half_load(&seat->slot, FK_ACQUIRE);
            uint32_t generation = fk__half_load(&seat->generation, FK_ACQUIRE);
            if (fk__half_load(&seat->version, FK_RELAXED) != version) return NULL;
            if (generation == 0) return NULL;
            *ref = (fk_ref){ slot, generation, system };
            return seat;
        }
        from = &seat->next;
    }
    return NULL;
}

void fk__roll_expect(const fk_roll *roll, fk_grain_id id)
{
    const fk_roll_table *table = fk__word_ptr(&roll->table, FK_RELAXED);
    __builtin_prefetch(&table->bucket[(uint32_t)id.hi & table->mask], 1);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Origins are a list in the order of their numbers, and the entries of each an array in order of
 * theirs: calls of one origin mostly come in order, so a new one goes to the end, and what is settled
 * is a piece at the beginning.
 *
 * An origin without entries is kept for its low, by which a late call is known to be stale.
 */

#include "cluster/dedup_state.h"

#include "base/safeguard.h"

static uint64_t dedup_ms(fk_time wall)
{
    return wall > 0 ? (uint64_t)wall / 1000000u : 0;
}

static void dedup_drop_answer(fk_dedup *dedup, fk_dedup_entry *entry)
{
    fk__mem_free(dedup->mem, entry->bytes, entry->size);
    dedup->bytes -= entry->size;
    dedup->entries--;
}

/* Frees the origin that *at points to, which *at then skips. */
static void dedup_drop_origin(fk_dedup *dedup, fk_dedup_origin **at)
{
    fk_dedup_origin *origin = *at;
    *at = origin->next;
    for (uint32_t i = 0; i < origin->count; i++) dedup_drop_answer(dedup, &origin->entry[i]);
    fk__mem_free(dedup->mem, origin->entry, origin->capacity * sizeof(*origin->entry));
    fk__mem_free(dedup->mem, origin, sizeof(*origin));
    dedup->origin_count--;
}

void fk__dedup_init(fk_dedup *dedup, fk_mem *mem)
{
    *dedup = (fk_dedup){ .mem = mem };
}

void fk__dedup_fini(fk_dedup *dedup)
{
    while (dedup->origins != NULL) dedup_drop_origin(dedup, &dedup->origins);
    FK_ASSERT(dedup->entries == 0);
    FK_ASSERT(dedup->bytes == 0);
}

/* Where that origin is, or would be. */
static fk_dedup_origin **dedup_at(fk_dedup *dedup, uint64_t number)
{
    fk_dedup_origin **at = &dedup->origins;
    while (*at != NULL && (*at)->origin < number) at = &(*at)->next;
    return at;
}

static const fk_dedup_origin *dedup_find(const fk_dedup *dedup, uint64_t number)
{
    const fk_dedup_origin *origin = dedup->origins;
    while (origin != NULL && origin->origin < number) origin = origin->next;
    return origin != NULL && origin->origin == number ? origin : NULL;
}

/* How many entries are smaller: the index of seq, if it is there. */
static uint32_t dedup_index(const fk_dedup_origin *origin, uint64_t seq)
{
    uint32_t low = 0;
    uint32_t high = origin->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (origin->entry[middle].seq < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

fk_dedup_verdict fk__dedup_check(const fk_dedup *dedup, fk_request request, fk_str *answer)
{
    const fk_dedup_origin *origin = dedup_find(dedup, request.origin);
    if (origin == NULL) return FK_DEDUP_NEW;
    uint32_t i = dedup_index(origin, request.seq);
    if (i < origin->count && origin->entry[i].seq == request.seq) {
        if (!FK_SAFEGUARD(DEDUP_CHECK)) return FK_DEDUP_NEW;
        const fk_dedup_entry *entry = &origin->entry[i];
        const char *bytes = entry->bytes != NULL ? entry->bytes : "";
        *answer = (fk_str){ entry->has_answer ? bytes : NULL, entry->size };
        return FK_DEDUP_SEEN;
    }
    if (FK_SAFEGUARD(DEDUP_STALE) && request.seq < origin->low) return FK_DEDUP_STALE;
    return FK_DEDUP_NEW;
}

/* Origins that are kept for their low only give way when there are too many, the one that was not
 * heard of for longest first. False: all have entries. */
static bool dedup_make_way(fk_dedup *dedup)
{
    fk_dedup_origin **oldest = NULL;
    for (fk_dedup_origin **at = &dedup->origins; *at != NULL; at = &(*at)->next) {
        if ((*at)->count == 0 && (oldest == NULL || (*at)->heard_ms < (*oldest)->heard_ms)) {
            oldest = at;
        }
    }
    if (oldest == NULL) return false;
    dedup_drop_origin(dedup, oldest);
    return true;
}

fk_err fk__dedup_origin_get(fk_dedup *dedup, uint64_t number, fk_dedup_origin **out)
{
    fk_dedup_origin **at = dedup_at(dedup, number);
    if (*at == NULL || (*at)->origin != number) {
        if (dedup->origin_count >= FK_DEDUP_ENTRIES_MAX) {
            if (!dedup_make_way(dedup)) return FK_E_OVERLOADED;
            at = dedup_at(dedup, number);
        }
        void *made;
        FK_TRY(fk__mem_alloc(dedup->mem, sizeof(fk_dedup_origin), FK_SITE("dedup.origin"), &made));
        fk_dedup_origin *origin = made;
        *origin = (fk_dedup_origin){ .next = *at, .origin = number };
        *at = origin;
        dedup->origin_count++;
    }
    *out = *at;
    return FK_OK;
}

/* An origin that says nothing is not kept. */
static void dedup_put_origin(fk_dedup *dedup, fk_dedup_origin *origin)
{
    if (origin->count != 0 || origin->low != 0) return;
    dedup_drop_origin(dedup, dedup_at(dedup, origin->origin));
}

fk_err fk__dedup_origin_grow(fk_dedup *dedup, fk_dedup_origin *origin, uint32_t capacity)
{
    if (capacity <= origin->capacity) return FK_OK;
    void *grown;
    size_t size = capacity * sizeof(*origin->entry);
    FK_TRY(fk__mem_alloc(dedup->mem, size, FK_SITE("dedup.entries"), &grown));
    if (origin->count != 0) memcpy(grown, origin->entry, origin->count * sizeof(*origin->entry));
    fk__mem_free(dedup->mem, origin->entry, origin->capacity * sizeof(*origin->entry));
    origin->entry = grown;
    origin->capacity = capacity;
    return FK_OK;
}

fk_err fk__dedup_entry_add(fk_dedup *dedup, fk_dedup_origin *origin, const fk_dedup_entry *entry,
                           fk_str answer)
{
    if (dedup->entries >= FK_DEDUP_ENTRIES_MAX) return FK_E_OVERLOADED;
    if (answer.len > FK_DEDUP_BYTES_MAX) return FK_E_LIMIT;
    if (answer.len > FK_DEDUP_BYTES_MAX - dedup->bytes) return FK_E_OVERLOADED;
    if (origin->count == origin->capacity) {
        uint32_t capacity = origin->capacity != 0 ? origin->capacity * 2 : 4;
        FK_TRY(fk__dedup_origin_grow(dedup, origin, capacity));
    }
    void *bytes = NULL;
    if (answer.len != 0) {
        FK_TRY(fk__mem_alloc(dedup->mem, answer.len, FK_SITE("dedup.answer"), &bytes));
        memcpy(bytes, answer.ptr, answer.len);
    }
    uint32_t i = dedup_index(origin, entry->seq);
    FK_ASSERT(i == origin->count || origin->entry[i].seq != entry->seq);
    memmove(&origin->entry[i + 1], &origin->entry[i], (origin->count - i) * sizeof(*origin->entry));
    origin->entry[i] = *entry;
    origin->entry[i].bytes = bytes;
    origin->entry[i].size = (uint32_t)answer.len;
    origin->entry[i].has_answer = answer.ptr != NULL;
    origin->count++;
    dedup->entries++;
    dedup->bytes += answer.len;
    return FK_OK;
}

fk_err fk__dedup_note(fk_dedup *dedup, fk_request request, bool is_single, fk_str answer,
                      fk_time wall)
{
    FK_ASSERT(request.origin != 0);
    fk_dedup_origin *origin;
    FK_TRY(fk__dedup_origin_get(dedup, request.origin, &origin));
    uint32_t i = dedup_index(origin, request.seq);
    /* The first answer counts: somebody may have it already. */
    if (i < origin->count && origin->entry[i].seq == request.seq) return FK_OK;
    fk_dedup_entry entry = {
        .seq = request.seq,
        .noted_ms = dedup_ms(wall),
        .is_single = is_single,
        .is_own = true,
    };
    fk_err err = fk__dedup_entry_add(dedup, origin, &entry, answer);
    if (err == FK_OK) {
        origin->heard_ms = entry.noted_ms;
    } else {
        dedup_put_origin(dedup, origin);
    }
    return err;
}

typedef bool dedup_forget_fn(const fk_dedup_entry *entry, uint64_t bound);

static void dedup_forget(fk_dedup *dedup, fk_dedup_origin *origin, dedup_forget_fn *is_done,
                         uint64_t bound)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < origin->count; i++) {
        if (is_done(&origin->entry[i], bound)) {
            dedup_drop_answer(dedup, &origin->entry[i]);
        } else {
            origin->entry[kept++] = origin->entry[i];
        }
    }
    origin->count = kept;
}

/* Of one that never left its node, low says nothing. */
static bool dedup_is_settled(const fk_dedup_entry *entry, uint64_t low)
{
    return entry->seq < low && !entry->is_single;
}

static bool dedup_is_answered(const fk_dedup_entry *entry, uint64_t bound)
{
    (void)bound;
    return entry->is_single && entry->is_own;
}

static bool dedup_is_old(const fk_dedup_entry *entry, uint64_t before_ms)
{
    return entry->is_single && entry->noted_ms < before_ms;
}

void fk__dedup_settle(fk_dedup *dedup, uint64_t number, uint64_t low, fk_time wall)
{
    fk_dedup_origin *origin = *dedup_at(dedup, number);
    if (origin == NULL || origin->origin != number) return;
    uint64_t ms = dedup_ms(wall);
    if (origin->heard_ms < ms) origin->heard_ms = ms;
    if (low <= origin->low) return;
    origin->low = low;
    if (origin->count != 0 && origin->entry[0].seq < low) {
        dedup_forget(dedup, origin, dedup_is_settled, low);
    }
}

/* Every origin is looked at by itself; the ones that say nothing afterwards go. */
static void dedup_forget_all(fk_dedup *dedup, dedup_forget_fn *is_done, uint64_t bound)
{
    for (fk_dedup_origin **at = &dedup->origins; *at != NULL;) {
        fk_dedup_origin *origin = *at;
        dedup_forget(dedup, origin, is_done, bound);
        if (origin->count == 0 && origin->low == 0) {
            dedup_drop_origin(dedup, at);
        } else {
            at = &origin->next;
        }
    }
}

void fk__dedup_answered(fk_dedup *dedup)
{
    dedup_forget_all(dedup, dedup_is_answered, 0);
}

void fk__dedup_tidy(fk_dedup *dedup, fk_time wall)
{
    uint64_t ms = dedup_ms(wall);
    uint64_t forget = dedup_ms(FK_DEDUP_FORGET);
    uint64_t before = ms > forget ? ms - forget : 0;
    for (fk_dedup_origin **at = &dedup->origins; *at != NULL;) {
        if ((*at)->heard_ms < before) {
            dedup_drop_origin(dedup, at);
        } else {
            at = &(*at)->next;
        }
    }
    dedup_forget_all(dedup, dedup_is_old, before);
}

bool fk__dedup_is_full(const fk_dedup *dedup)
{
    return dedup->entries >= FK_DEDUP_ENTRIES_MAX || dedup->bytes >= FK_DEDUP_BYTES_MAX / 2;
}

void fk__dedup_check_all(const fk_dedup *dedup)
{
    uint32_t origins = 0;
    uint32_t entries = 0;
    size_t bytes = 0;
    uint64_t last = 0;
    for (const fk_dedup_origin *o = dedup->origins; o != NULL; o = o->next) {
        FK_ASSERT(o->origin > last);
        FK_ASSERT(o->count <= o->capacity);
        FK_ASSERT(o->count != 0 || o->low != 0);
        for (uint32_t i = 0; i < o->count; i++) {
            FK_ASSERT(i == 0 || o->entry[i - 1].seq < o->entry[i].seq);
            FK_ASSERT((o->entry[i].bytes != NULL) == (o->entry[i].size != 0));
            bytes += o->entry[i].size;
        }
        last = o->origin;
        origins++;
        entries += o->count;
    }
    FK_ASSERT(origins == dedup->origin_count);
    FK_ASSERT(origins <= FK_DEDUP_ENTRIES_MAX);
    FK_ASSERT(entries == dedup->entries);
    FK_ASSERT(entries <= FK_DEDUP_ENTRIES_MAX);
    FK_ASSERT(bytes == dedup->bytes);
    FK_ASSERT(bytes <= FK_DEDUP_BYTES_MAX);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A window as bytes. Numbers are varints, seven bits at a time, the lowest first, and as short as can
 * be; so that there is one way only to write a window, and what is read is written again the same.
 *
 *   window   version 1, number of origins, origins in the order of their numbers
 *   origin   number (8 bytes, little-endian), low, heard (ms of the wall clock), number of entries,
 *            entries in order
 *   entry    seq less the one before, marks (one byte); if single: noted (ms); if answered: size,
 *            bytes
 */

#include "cluster/dedup_state.h"

enum {
    DEDUP_VERSION = 1,
    DEDUP_SINGLE = 1,
    DEDUP_ANSWER = 2,
    DEDUP_ORIGIN_SIZE_MIN = 8 + 3,
    DEDUP_ENTRY_SIZE_MIN = 2,
};

/* Counts when there is nowhere to write to. */
typedef struct dedup_writer {
    unsigned char *to;
    size_t at, size;
} dedup_writer;

static void dedup_put(dedup_writer *w, const void *bytes, size_t size)
{
    if (w->to != NULL) {
        FK_ASSERT(size <= w->size - w->at);
        if (size != 0) memcpy(w->to + w->at, bytes, size);
    }
    w->at += size;
}

static void dedup_put_byte(dedup_writer *w, unsigned byte)
{
    unsigned char one = (unsigned char)byte;
    dedup_put(w, &one, 1);
}

static void dedup_put_number(dedup_writer *w, uint64_t n)
{
    for (; n >= 0x80; n >>= 7) dedup_put_byte(w, (unsigned)(n & 0x7f) | 0x80);
    dedup_put_byte(w, (unsigned)n);
}

static void dedup_put_entry(dedup_writer *w, const fk_dedup_entry *entry, uint64_t before)
{
    dedup_put_number(w, entry->seq - before);
    dedup_put_byte(w, (entry->is_single ? (unsigned)DEDUP_SINGLE : 0) |
                          (entry->has_answer ? (unsigned)DEDUP_ANSWER : 0));
    if (entry->is_single) dedup_put_number(w, entry->noted_ms);
    if (!entry->has_answer) return;
    dedup_put_number(w, entry->size);
    dedup_put(w, entry->bytes, entry->size);
}

static void dedup_write(const fk_dedup *dedup, dedup_writer *w)
{
    dedup_put_byte(w, DEDUP_VERSION);
    dedup_put_number(w, dedup->origin_count);
    for (const fk_dedup_origin *o = dedup->origins; o != NULL; o = o->next) {
        for (unsigned shift = 0; shift < 64; shift += 8) {
            dedup_put_byte(w, (unsigned)(o->origin >> shift) & 0xff);
        }
        dedup_put_number(w, o->low);
        dedup_put_number(w, o->heard_ms);
        dedup_put_number(w, o->count);
        uint64_t before = 0;
        for (uint32_t i = 0; i < o->count; i++) {
            dedup_put_entry(w, &o->entry[i], before);
            before = o->entry[i].seq;
        }
    }
}

size_t fk__dedup_measure(const fk_dedup *dedup)
{
    dedup_writer w = { NULL, 0, 0 };
    dedup_write(dedup, &w);
    return w.at;
}

void fk__dedup_encode(const fk_dedup *dedup, unsigned char *to, size_t size)
{
    dedup_writer w = { to, 0, size };
    dedup_write(dedup, &w);
    FK_ASSERT(w.at == size);
}

/* Once the bytes made no sense, everything that is read is 0. */
typedef struct dedup_reader {
    const unsigned char *at;
    size_t left;
    bool is_bad;
} dedup_reader;

static const unsigned char *dedup_take(dedup_reader *r, size_t size)
{
    if (size > r->left) {
        r->is_bad = true;
        r->left = 0;
        return NULL;
    }
    const unsigned char *at = r->at;
    r->at += size;
    r->left -= size;
    return at;
}

static unsigned dedup_take_byte(dedup_reader *r)
{
    const unsigned char *at = dedup_take(r, 1);
    return at != NULL ? *at : 0;
}

static uint64_t dedup_take_number(dedup_reader *r)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = dedup_take_byte(r);
        /* The tenth byte has room for one bit; a last one of 0 makes a number longer than needed. */
        if ((shift == 63 && byte > 1) || (shift != 0 && byte == 0)) break;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return n;
    }
    r->is_bad = true;
    return 0;
}

static fk_err dedup_read_entry(fk_dedup *dedup, fk_dedup_origin *origin, dedup_reader *r)
{
    bool is_first = origin->count == 0;
    uint64_t before = is_first ? 0 : origin->entry[origin->count - 1].seq;
    uint64_t step = dedup_take_number(r);
    unsigned marks = dedup_take_byte(r);
    if (step > UINT64_MAX - before || (!is_first && step == 0)) return FK_E_CORRUPT;
    if ((marks & ~(unsigned)(DEDUP_SINGLE | DEDUP_ANSWER)) != 0) return FK_E_CORRUPT;
    fk_dedup_entry entry = { .seq = before + step, .is_single = (marks & DEDUP_SINGLE) != 0 };
    if (entry.is_single) entry.noted_ms = dedup_take_number(r);
    fk_str answer = { NULL, 0 };
    if ((marks & DEDUP_ANSWER) != 0) {
        uint64_t size = dedup_take_number(r);
        if (size > FK_DEDUP_BYTES_MAX) return FK_E_CORRUPT;
        answer.len = (size_t)size;
        answer.ptr = (const char *)dedup_take(r, answer.len);
    }
    if (r->is_bad) return FK_E_CORRUPT;
    fk_err err = fk__dedup_entry_add(dedup, origin, &entry, answer);
    return err == FK_E_OVERLOADED ? FK_E_CORRUPT : err;
}

static fk_err dedup_read_origin(fk_dedup *dedup, dedup_reader *r, uint64_t *last)
{
    const unsigned char *at = dedup_take(r, 8);
    uint64_t number = 0;
    for (unsigned i = 0; at != NULL && i < 8; i++) number |= (uint64_t)at[i] << (8 * i);
    uint64_t low = dedup_take_number(r);
    uint64_t heard_ms = dedup_take_number(r);
    uint64_t count = dedup_take_number(r);
    if (r->is_bad || number <= *last) return FK_E_CORRUPT;
    if (count > r->left / DEDUP_ENTRY_SIZE_MIN || (count == 0 && low == 0)) return FK_E_CORRUPT;
    if (count > FK_DEDUP_ENTRIES_MAX) return FK_E_CORRUPT;
    *last = number;
    fk_dedup_origin *origin;
    FK_TRY(fk__dedup_origin_get(dedup, number, &origin));
    origin->low = low;
    origin->heard_ms = heard_ms;
    FK_TRY(fk__dedup_origin_grow(dedup, origin, (uint32_t)count));
    for (uint64_t i = 0; i < count; i++) FK_TRY(dedup_read_entry(dedup, origin, r));
    return FK_OK;
}

static fk_err dedup_read(fk_dedup *dedup, dedup_reader *r)
{
    if (dedup_take_byte(r) != DEDUP_VERSION) return FK_E_CORRUPT;
    uint64_t count = dedup_take_number(r);
    if (r->is_bad || count > FK_DEDUP_ENTRIES_MAX) return FK_E_CORRUPT;
    if (count > r->left / DEDUP_ORIGIN_SIZE_MIN) return FK_E_CORRUPT;
    uint64_t last = 0;
    for (uint64_t i = 0; i < count; i++) FK_TRY(dedup_read_origin(dedup, r, &last));
    return r->left == 0 ? FK_OK : FK_E_CORRUPT;
}

fk_err fk__dedup_decode(fk_dedup *dedup, fk_str bytes)
{
    FK_ASSERT(dedup->origins == NULL);
    if (bytes.len == 0) return FK_OK;
    dedup_reader r = { (const unsigned char *)bytes.ptr, bytes.len, false };
    fk_err err = dedup_read(dedup, &r);
    if (err != FK_OK) fk__dedup_fini(dedup);
    return err;
}

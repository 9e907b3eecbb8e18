/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/wire_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fraktor/codec.h"
#include "wire/control.h"
#include "wire/envelope.h"
#include "wire/sysmsg.h"

#define HOLDS(condition) ((condition) ? (void)0 : reader_failed(__LINE__, #condition))

__attribute__((noreturn)) static void reader_failed(int line, const char *what)
{
    fprintf(stderr, "wire_reader.c:%d: does not hold: %s\n", line, what);
    abort();
}

static void *reader_alloc(size_t size)
{
    void *block = malloc(size > 0 ? size : 1);
    if (block == NULL) abort();
    return block;
}

static bool lies_in(fk_str part, fk_str whole)
{
    return part.len == 0 || (part.ptr >= whole.ptr && part.len <= whole.len &&
                             (size_t)(part.ptr - whole.ptr) <= whole.len - part.len);
}

static bool same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static fk_err check_fault(fk_err err, const fk_wire_fault *fault, fk_str bytes)
{
    HOLDS(fault->err == err);
    HOLDS(fault->at <= bytes.len);
    HOLDS(fault->message != NULL);
    return err;
}

/* ---- messages ------------------------------------------------------------------------------- */

/* A message of any kind, and how it is written: lists become arrays. */
typedef struct any_message {
    wire_kind kind;
    fk_str manifest;
    union {
        fk_wire_control control;
        fk_wire_sysmsg sysmsg;
        fk_wire_selection selection;
        fk_wire_misc misc;
    } as;
    void *items[2];
} any_message;

static fk_err any_decode(any_message *m, fk_str bytes, fk_wire_fault *fault)
{
    switch (m->kind) {
    case WIRE_CONTROL: return fk__control_decode(m->manifest, bytes, &m->as.control, fault);
    case WIRE_SYSMSG: return fk__sysmsg_decode(bytes, &m->as.sysmsg, fault);
    case WIRE_SELECTION: return fk__selection_decode(bytes, &m->as.selection, fault);
    default: return fk__misc_decode(m->manifest, bytes, &m->as.misc, fault);
    }
}

static void list_pairs(any_message *m, fk_str bytes)
{
    fk_wire_advertisement *table = &m->as.control.as.table;
    fk_str *keys = m->items[0] = reader_alloc(table->keys.count * sizeof(fk_str));
    uint32_t *values = m->items[1] = reader_alloc(table->values.count * sizeof(uint32_t));
    fk_wire_pair pair = { 0 };
    uint32_t count = 0;
    while (fk__advertisement_next(table, &pair)) {
        HOLDS(lies_in(pair.key, bytes));
        HOLDS(pair.value <= UINT16_MAX);
        HOLDS(count < table->keys.count);
        keys[count] = pair.key;
        values[count++] = pair.value;
    }
    HOLDS(count == table->keys.count);
    table->keys.items = keys;
    table->values.items = values;
}

static void list_patterns(any_message *m, fk_str bytes)
{
    fk_wire_selection *s = &m->as.selection;
    fk_wire_pattern *items = m->items[0] = reader_alloc(s->patterns.count * sizeof(*items));
    size_t cursor = 0;
    uint32_t count = 0;
    fk_wire_pattern pattern;
    while (fk__selection_next(s, &cursor, &pattern)) {
        HOLDS(lies_in(pattern.text, bytes));
        HOLDS(count < s->patterns.count);
        items[count++] = pattern;
    }
    HOLDS(count == s->patterns.count);
    s->patterns.items = items;
}

static void any_list(any_message *m, fk_str bytes)
{
    bool is_table = m->kind == WIRE_CONTROL && (m->as.control.kind == FK_CONTROL_REF_TABLE ||
                                                m->as.control.kind == FK_CONTROL_MANIFEST_TABLE);
    m->items[0] = m->items[1] = NULL;
    if (is_table) list_pairs(m, bytes);
    if (m->kind == WIRE_SELECTION) list_patterns(m, bytes);
}

static size_t any_size(const any_message *m)
{
    switch (m->kind) {
    case WIRE_CONTROL: return fk__control_size(&m->as.control);
    case WIRE_SYSMSG: return fk__sysmsg_size(&m->as.sysmsg);
    case WIRE_SELECTION: return fk__selection_size(&m->as.selection);
    default: return fk__misc_size(&m->as.misc);
    }
}

static void any_encode(const any_message *m, unsigned char *to, size_t size)
{
    switch (m->kind) {
    case WIRE_CONTROL: fk__control_encode(&m->as.control, to, size); break;
    case WIRE_SYSMSG: fk__sysmsg_encode(&m->as.sysmsg, to, size); break;
    case WIRE_SELECTION: fk__selection_encode(&m->as.selection, to, size); break;
    default: fk__misc_encode(&m->as.misc, to, size); break;
    }
}

/* Decodes into *m and writes it again; the caller frees what is returned. */
static fk_err any_rewrite(any_message *m, fk_str bytes, fk_str *out)
{
    fk_wire_fault fault = { FK_OK, 0, NULL };
    fk_err err = any_decode(m, bytes, &fault);
    if (err != FK_OK) return check_fault(err, &fault, bytes);
    any_list(m, bytes);
    size_t size = any_size(m);
    unsigned char *to = reader_alloc(size);
    any_encode(m, to, size);
    free(m->items[0]);
    free(m->items[1]);
    *out = (fk_str){ (const char *)to, size };
    return FK_OK;
}

static fk_err read_message(wire_kind kind, fk_str manifest, fk_str bytes)
{
    any_message m = { .kind = kind, .manifest = manifest };
    fk_str once, twice;
    fk_err err = any_rewrite(&m, bytes, &once);
    if (err != FK_OK) return err;
    HOLDS(any_rewrite(&m, once, &twice) == FK_OK);
    HOLDS(same(once, twice));
    free((void *)(uintptr_t)once.ptr);
    free((void *)(uintptr_t)twice.ptr);
    return FK_OK;
}

fk_str wire_rewrite(wire_kind kind, fk_str manifest, fk_str bytes)
{
    any_message m = { .kind = kind, .manifest = manifest };
    fk_str once;
    HOLDS(any_rewrite(&m, bytes, &once) == FK_OK);
    return once;
}

/* ---- envelopes ------------------------------------------------------------------------------ */

static void check_name(const fk_wire_name *name, fk_str frame)
{
    HOLDS(name->is_compressed || lies_in(name->text, frame));
    HOLDS(name->is_compressed || name->index == 0);
    HOLDS(!name->is_compressed || name->text.len == 0);
}

static bool has_spare_bits(fk_str frame, size_t tag)
{
    uint32_t value = fk__load32(frame.ptr + tag);
    return (value & 0xff000000u) != 0 && (value >> 16) != 0xff00;
}

/* What was read is written as it was: bytes that mean nothing excepted. */
static fk_err read_envelope(fk_str frame)
{
    fk_wire_envelope e;
    fk_wire_fault fault = { FK_OK, 0, NULL };
    size_t size = 0;
    fk_err err = fk__envelope_decode(frame, &e, &fault);
    if (err != FK_OK) return check_fault(err, &fault, frame);
    check_name(&e.sender, frame);
    check_name(&e.recipient, frame);
    check_name(&e.manifest, frame);
    HOLDS(lies_in(e.metadata, frame));
    HOLDS(lies_in(e.payload, frame));
    HOLDS(fk__frame_size(&e, (uint32_t)frame.len, &size) == FK_OK);
    HOLDS(size == FK_FRAME_HEADER + frame.len);
    HOLDS(fk__frame_size(&e, (uint32_t)frame.len - 1, &size) == FK_E_LIMIT);
    unsigned char *copy = reader_alloc(size);
    unsigned char *payload = fk__frame_encode(&e, copy);
    HOLDS((size_t)(payload - copy) + e.payload.len == size);
    HOLDS(fk__load32(copy) == frame.len);
    bool spare =
        has_spare_bits(frame, 16) || has_spare_bits(frame, 20) || has_spare_bits(frame, 24);
    HOLDS(spare || memcmp(copy + FK_FRAME_HEADER, frame.ptr, frame.len) == 0);
    free(copy);
    return FK_OK;
}

/* ---- structs -------------------------------------------------------------------------------- */

typedef struct wire_sample {
    uint8_t small;
    int64_t large;
    bool truth[3];
    char text[5];
    double real;
    uint16_t medium[2];
} wire_sample;
FK_MESSAGE(wire_sample);
FK_CODEC_STRUCT(wire_sample, 3, FK_FIELD(wire_sample, small), FK_FIELD(wire_sample, large),
                FK_FIELD_ARRAY(wire_sample, truth), FK_FIELD_ARRAY(wire_sample, text),
                FK_FIELD(wire_sample, real), FK_FIELD_ARRAY(wire_sample, medium));
const fk_codec *const wire_codec = &fk_codec_wire_sample;

static fk_err read_struct(fk_str bytes)
{
    wire_sample *sample = reader_alloc(sizeof(*sample));
    fk_codec_fault fault = { .err = FK_OK };
    size_t size = 0;
    fk_err err = fk_codec_decode(wire_codec, bytes, sample, &fault);
    if (err != FK_OK) {
        HOLDS(fault.err == err && fault.at <= bytes.len && fault.message != NULL);
    } else {
        HOLDS(fk_codec_measure(wire_codec, sample, sizeof(*sample), &size) == FK_OK);
        HOLDS(size == bytes.len);
        unsigned char *copy = reader_alloc(size);
        HOLDS(fk_codec_encode(wire_codec, sample, sizeof(*sample), copy, size) == FK_OK);
        HOLDS(memcmp(copy, bytes.ptr, size) == 0);
        free(copy);
    }
    free(sample);
    return err;
}

fk_err wire_read(wire_kind kind, fk_str manifest, fk_str bytes)
{
    if (kind == WIRE_ENVELOPE) return read_envelope(bytes);
    if (kind == WIRE_STRUCT) return read_struct(bytes);
    return read_message(kind, manifest, bytes);
}

/* ---- streams -------------------------------------------------------------------------------- */

static uint64_t checksum(uint64_t sum, fk_str frame)
{
    sum = (sum ^ frame.len) * 0x100000001b3u;
    for (size_t i = 0; i < frame.len; i++)
        sum = (sum ^ (unsigned char)frame.ptr[i]) * 0x100000001b3u;
    return sum;
}

/* One piece, as a block of its own, so that nothing beyond it is touched. */
static fk_deframe stream_piece(fk_deframer *d, fk_str piece, void **room, wire_outcome *outcome)
{
    char *copy = reader_alloc(piece.len);
    if (piece.len > 0) memcpy(copy, piece.ptr, piece.len);
    fk_str rest = { copy, piece.len }, frame;
    fk_deframe result;
    do {
        size_t before = rest.len;
        uint64_t offset = d->offset;
        result = fk__deframer_step(d, &rest, &frame);
        HOLDS(d->offset - offset == before - rest.len);
        if (result == FK_DEFRAME_ROOM) {
            HOLDS(d->frame_len > rest.len);
            HOLDS(d->frame_len <= d->frame_max[d->stream]);
            free(*room);
            *room = reader_alloc(d->frame_len);
            fk__deframer_lend(d, *room, d->frame_len);
        } else if (result == FK_DEFRAME_FRAME) {
            HOLDS(frame.len > 0 && frame.len <= d->frame_max[d->stream]);
            outcome->frames++;
            outcome->checksum = checksum(outcome->checksum, frame);
        }
    } while (result != FK_DEFRAME_MORE && result != FK_DEFRAME_FAULT);
    HOLDS(result == FK_DEFRAME_FAULT || rest.len == 0);
    free(copy);
    return result;
}

wire_outcome wire_stream(fk_str bytes, const size_t *cuts, uint32_t frame_max)
{
    wire_outcome outcome = { .err = FK_OK };
    fk_wire_fault fault = { FK_OK, bytes.len, NULL };
    fk_deframer d;
    void *room = NULL;
    size_t at = 0;
    fk__deframer_init(&d);
    for (unsigned i = 0; i < FK_STREAM_COUNT; i++) d.frame_max[i] = frame_max;
    for (bool more = true; more; cuts++) {
        more = *cuts > at && *cuts < bytes.len;
        size_t end = more ? *cuts : bytes.len;
        fk_str piece = { bytes.ptr + at, end - at };
        if (stream_piece(&d, piece, &room, &outcome) == FK_DEFRAME_FAULT) break;
        at = end;
    }
    outcome.err = fk__deframer_end(&d, &fault);
    outcome.at = fault.at;
    HOLDS(outcome.err == FK_OK || (fault.err == outcome.err && fault.message != NULL));
    HOLDS(fault.at <= bytes.len);
    free(room);
    return outcome;
}

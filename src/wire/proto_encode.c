/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Written backwards, from the last byte to the first: when the length comes that stands before a
 * message, the message has just been written. So the same walk also measures, without a buffer, and
 * goes over everything once.
 */

#include "wire/proto.h"

/* Bytes are put in front of each other. Without a buffer they are only counted. */
typedef struct proto_writer {
    unsigned char *end;
    size_t len;
} proto_writer;

static void proto_put(proto_writer *w, const void *bytes, size_t len)
{
    w->len += len;
    if (w->end != NULL && len > 0) memcpy(w->end - w->len, bytes, len);
}

static void proto_put_varint(proto_writer *w, uint64_t n)
{
    unsigned char bytes[FK_PROTO_VARINT_MAX];
    size_t len = 0;
    do {
        bytes[len++] = (unsigned char)(n | 0x80);
        n >>= 7;
    } while (n != 0);
    bytes[len - 1] &= 0x7f;
    proto_put(w, bytes, len);
}

static void proto_put_key(proto_writer *w, const fk_proto_field *field)
{
    unsigned wire = fk__proto_is_number(field) ? FK_WIRE_VARINT : FK_WIRE_BYTES;
    proto_put_varint(w, (uint64_t)field->number << 3 | wire);
}

static void proto_put_text(proto_writer *w, const fk_proto_field *field, fk_str text)
{
    proto_put(w, text.ptr, text.len);
    proto_put_varint(w, text.len);
    proto_put_key(w, field);
}

static void proto_put_number(proto_writer *w, const fk_proto_field *field, uint64_t n)
{
    proto_put_varint(w, n);
    proto_put_key(w, field);
}

/* The struct's number, as it is written. */
static uint64_t proto_load(const fk_proto_field *field, const unsigned char *from)
{
    uint64_t word;
    uint32_t half;
    bool truth;
    if (field->kind == FK_PROTO_U64) {
        memcpy(&word, from, sizeof(word));
        return word;
    }
    if (field->kind == FK_PROTO_BOOL) {
        memcpy(&truth, from, sizeof(truth));
        return truth;
    }
    memcpy(&half, from, sizeof(half));
    return field->kind == FK_PROTO_I32 ? (uint64_t)(int64_t)(int32_t)half : half;
}

/* A message that is being written. */
typedef struct proto_source {
    const fk_proto_field *in; /* the field that it is, in the message around it */
    const fk_proto_type *type;
    const unsigned char *from;
    unsigned left;  /* fields still to be written */
    uint32_t items; /* of the list at field left - 1, still to be written */
    size_t end;     /* what the writer had when it began */
} proto_source;

static fk_proto_list proto_list(const proto_source *s, const fk_proto_field *field)
{
    fk_proto_list list;
    memcpy(&list, s->from + field->offset, sizeof(list));
    FK_ASSERT(list.count == 0 || list.items != NULL);
    return list;
}

/* Whether an optional field is to be written. */
static bool proto_is_there(const proto_source *s, const fk_proto_field *field)
{
    fk_str text;
    uint32_t has;
    if (field->kind >= FK_PROTO_TEXTS) return true;
    if (field->kind == FK_PROTO_TEXT) {
        memcpy(&text, s->from + field->offset, sizeof(text));
        return text.len > 0;
    }
    memcpy(&has, s->from, sizeof(has));
    return (has >> (field - s->type->field) & 1) != 0;
}

/* Everything of one field that is no message. */
static void proto_put_field(proto_writer *w, const proto_source *s, const fk_proto_field *field)
{
    fk_str text;
    if (field->kind == FK_PROTO_TEXT) {
        memcpy(&text, s->from + field->offset, sizeof(text));
        proto_put_text(w, field, text);
    } else if (field->kind == FK_PROTO_TEXTS) {
        fk_proto_list list = proto_list(s, field);
        const fk_str *items = list.items;
        for (uint32_t i = list.count; i > 0; i--) proto_put_text(w, field, items[i - 1]);
    } else if (field->kind == FK_PROTO_U32S) {
        fk_proto_list list = proto_list(s, field);
        const uint32_t *items = list.items;
        for (uint32_t i = list.count; i > 0; i--) proto_put_number(w, field, items[i - 1]);
    } else {
        proto_put_number(w, field, proto_load(field, s->from + field->offset));
    }
}

/* Begins to write a message: its last field comes first. */
static proto_source proto_begin(const proto_writer *w, const fk_proto_field *in,
                                const fk_proto_type *type, const unsigned char *from)
{
    return (proto_source){ in, type, from, type->field_count, UINT32_MAX, w->len };
}

/* Writes until a message begins, which is then *inner, or this one is complete. */
static bool proto_advance(proto_writer *w, proto_source *s, proto_source *inner)
{
    for (; s->left > 0; s->left--, s->items = UINT32_MAX) {
        const fk_proto_field *field = &s->type->field[s->left - 1];
        if (field->rule == FK_PROTO_OPTIONAL && !proto_is_there(s, field)) continue;
        if (field->kind == FK_PROTO_MESSAGE) {
            *inner = proto_begin(w, field, field->type, s->from + field->offset);
            s->left--;
            return true;
        }
        if (field->kind != FK_PROTO_MESSAGES) {
            proto_put_field(w, s, field);
            continue;
        }
        fk_proto_list list = proto_list(s, field);
        if (s->items == UINT32_MAX) s->items = list.count;
        if (s->items == 0) continue;
        s->items--;
        const unsigned char *items = list.items;
        *inner = proto_begin(w, field, field->type, items + (size_t)s->items * field->type->size);
        return true;
    }
    return false;
}

static void proto_write(proto_writer *w, const fk_proto_type *type, const void *message)
{
    proto_source source[FK_PROTO_DEPTH_MAX];
    unsigned depth = 0;
    source[0] = proto_begin(w, NULL, type, message);
    for (;;) {
        proto_source inner, *here = &source[depth];
        if (proto_advance(w, here, &inner)) {
            depth++;
            FK_ASSERT(depth < FK_PROTO_DEPTH_MAX);
            source[depth] = inner;
            continue;
        }
        if (depth == 0) return;
        proto_put_varint(w, w->len - here->end);
        proto_put_key(w, here->in);
        depth--;
    }
}

size_t fk__proto_size(const fk_proto_type *type, const void *message)
{
    proto_writer w = { NULL, 0 };
    proto_write(&w, type, message);
    return w.len;
}

void fk__proto_encode(const fk_proto_type *type, const void *message, unsigned char *to,
                      size_t size)
{
    proto_writer w = { to + size, 0 };
    proto_write(&w, type, message);
    FK_ASSERT(w.len == size);
}

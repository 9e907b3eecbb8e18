/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Messages are in each other, but nothing here calls itself: the tables say how deep it can go, and
 * a small array holds the way down.
 */

#include "wire/proto.h"

typedef struct proto_reader {
    const char *start; /* offsets count from here */
    const char *at;
    const char *end; /* of the message at hand */
    fk_wire_fault *fault;
} proto_reader;

static FK_COLD fk_err proto_fail(const proto_reader *r, fk_err err, const char *at,
                                 const char *message)
{
    return fk__wire_fail(r->fault, err, (uint64_t)(at - r->start), message);
}

static fk_err proto_varint(proto_reader *r, uint64_t *out)
{
    const char *at = r->at;
    uint64_t n = 0;
    for (unsigned i = 0; i < FK_PROTO_VARINT_MAX; i++) {
        if (at == r->end) return proto_fail(r, FK_E_TRUNCATED, at, "a number is cut");
        uint64_t byte = (unsigned char)*at++;
        if (i == FK_PROTO_VARINT_MAX - 1 && byte > 1) break; /* only one bit is left */
        n |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            r->at = at;
            *out = n;
            return FK_OK;
        }
    }
    return proto_fail(r, FK_E_MALFORMED, r->at, "a number of more than 64 bits");
}

typedef struct proto_item {
    const char *at; /* of the key */
    uint32_t number;
    fk_proto_wire wire;
    uint64_t value; /* of a varint */
    fk_str bytes;   /* of FK_WIRE_BYTES */
} proto_item;

/* A field, known or not. */
static fk_err proto_take(proto_reader *r, proto_item *item)
{
    uint64_t key, len;
    item->at = r->at;
    FK_TRY(proto_varint(r, &key));
    if (key > UINT32_MAX || key < 8) {
        return proto_fail(r, FK_E_MALFORMED, item->at, "no field has such a number");
    }
    item->number = (uint32_t)(key >> 3);
    item->wire = (fk_proto_wire)(key & 7);
    switch (item->wire) {
    case FK_WIRE_VARINT: return proto_varint(r, &item->value);
    case FK_WIRE_FIXED64: len = 8; break;
    case FK_WIRE_FIXED32: len = 4; break;
    case FK_WIRE_BYTES: FK_TRY(proto_varint(r, &len)); break;
    default: return proto_fail(r, FK_E_MALFORMED, item->at, "no field has such a wire type");
    }
    if (len > (uint64_t)(r->end - r->at)) {
        return proto_fail(r, FK_E_TRUNCATED, r->end, "a field is cut");
    }
    item->bytes = (fk_str){ r->at, (size_t)len };
    r->at += len;
    return FK_OK;
}

static const fk_proto_field *proto_find(const fk_proto_type *type, uint32_t number)
{
    for (unsigned i = 0; i < type->field_count; i++) {
        if (type->field[i].number == number) return &type->field[i];
    }
    return NULL;
}

/* Whether the field can hold the number. Negative ones of 32 bits are written as 64. */
static bool proto_fits(const fk_proto_field *field, uint64_t value)
{
    switch ((fk_proto_kind)field->kind) {
    case FK_PROTO_U64: return true;
    case FK_PROTO_BOOL: return value <= 1;
    case FK_PROTO_I32: return (uint64_t)(int64_t)(int32_t)(uint32_t)value == value;
    default: return value <= field->max;
    }
}

static void proto_store(const fk_proto_field *field, const proto_item *item, fk_str within,
                        unsigned char *out)
{
    void *to = out + field->offset;
    uint32_t half = (uint32_t)item->value;
    bool truth = item->value != 0;
    fk_proto_list list;
    switch ((fk_proto_kind)field->kind) {
    case FK_PROTO_U64: memcpy(to, &item->value, sizeof(item->value)); break;
    case FK_PROTO_U32:
    case FK_PROTO_I32: memcpy(to, &half, sizeof(half)); break;
    case FK_PROTO_BOOL: memcpy(to, &truth, sizeof(truth)); break;
    case FK_PROTO_TEXT: memcpy(to, &item->bytes, sizeof(item->bytes)); break;
    case FK_PROTO_MESSAGE: break;
    case FK_PROTO_TEXTS:
    case FK_PROTO_U32S:
    case FK_PROTO_MESSAGES:
        memcpy(&list, to, sizeof(list));
        list.count++;
        list.within = within;
        memcpy(to, &list, sizeof(list));
        break;
    }
}

/* A message that is being read. */
typedef struct proto_level {
    const fk_proto_type *type;
    unsigned char *out;
    fk_str bytes;
    uint32_t has;
} proto_level;

static void proto_enter(proto_level *level, proto_reader *r, const fk_proto_type *type,
                        unsigned char *out, fk_str bytes)
{
    *level = (proto_level){ type, out, bytes, 0 };
    memset(out, 0, type->size);
    r->at = bytes.ptr;
    r->end = bytes.ptr + bytes.len;
}

/* All fields are read. */
static fk_err proto_leave(const proto_level *level, const proto_reader *r)
{
    for (unsigned i = 0; i < level->type->field_count; i++) {
        bool required = level->type->field[i].rule == FK_PROTO_REQUIRED;
        if (!required || (level->has >> i & 1) != 0) continue;
        return proto_fail(r, FK_E_MALFORMED, r->end, "a required field is missing");
    }
    memcpy(level->out, &level->has, sizeof(level->has));
    return FK_OK;
}

/* One field of the message at hand; *inner is a message that it begins. */
static fk_err proto_step(proto_reader *r, proto_level *level, const fk_proto_field **inner,
                         proto_item *item)
{
    *inner = NULL;
    FK_TRY(proto_take(r, item));
    const fk_proto_field *field = proto_find(level->type, item->number);
    if (field == NULL) return FK_OK;
    if (item->wire != (fk__proto_is_number(field) ? FK_WIRE_VARINT : FK_WIRE_BYTES)) {
        return proto_fail(r, FK_E_MALFORMED, item->at, "a field of another wire type");
    }
    if (fk__proto_is_number(field) && !proto_fits(field, item->value)) {
        return proto_fail(r, FK_E_MALFORMED, item->at, "a number beyond what its field can hold");
    }
    level->has |= 1u << (field - level->type->field);
    proto_store(field, item, level->bytes, level->out);
    if (field->kind == FK_PROTO_MESSAGE) *inner = field;
    return FK_OK;
}

fk_err fk__proto_decode(const fk_proto_type *type, fk_str bytes, void *out, fk_wire_fault *fault)
{
    proto_level level[FK_PROTO_DEPTH_MAX];
    unsigned depth = 0;
    if (bytes.len == 0) bytes.ptr = ""; /* pointers that can be compared */
    proto_reader r = { bytes.ptr, bytes.ptr, bytes.ptr, fault };
    proto_enter(&level[0], &r, type, out, bytes);
    for (;;) {
        proto_level *here = &level[depth];
        const fk_proto_field *inner;
        proto_item item = { 0 };
        if (r.at == r.end) {
            FK_TRY(proto_leave(here, &r));
            if (depth == 0) return FK_OK;
            depth--; /* which goes on where the inner one ended */
            r.end = level[depth].bytes.ptr + level[depth].bytes.len;
            continue;
        }
        FK_TRY(proto_step(&r, here, &inner, &item));
        if (inner == NULL) continue;
        depth++;
        FK_ASSERT(depth < FK_PROTO_DEPTH_MAX);
        proto_enter(&level[depth], &r, inner->type, here->out + inner->offset, item.bytes);
    }
}

bool fk__proto_next(const fk_proto_list *list, uint8_t number, size_t *cursor, void *item)
{
    const char *start = list->within.ptr;
    if (list->count == 0) return false;
    proto_reader r = { start, start + *cursor, start + list->within.len, NULL };
    while (r.at != r.end) {
        proto_item next = { 0 };
        if (proto_take(&r, &next) != FK_OK) return false;
        if (next.number != number) continue;
        uint32_t value = (uint32_t)next.value;
        if (next.wire == FK_WIRE_VARINT)
            memcpy(item, &value, sizeof(value));
        else
            memcpy(item, &next.bytes, sizeof(next.bytes));
        *cursor = (size_t)(r.at - start);
        return true;
    }
    return false;
}

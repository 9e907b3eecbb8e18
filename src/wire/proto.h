/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_WIRE_PROTO_H
#define FK_WIRE_PROTO_H

/*
 * The part of protobuf (proto2) that the protocol's own messages need, driven by tables: a message
 * is a C struct and a list of its fields. One decoder, one encoder.
 *
 * Unknown fields are skipped. A field that comes twice counts as it came last, also an embedded
 * message as a whole. A known field of another wire type than it should have is malformed, as is a
 * number beyond what the field can hold. Groups, which nobody writes any more, are malformed.
 *
 * The struct of a message begins with a mask of the fields that were there. The encoder writes what
 * is required, texts that are not empty, lists, and of the rest what the mask has.
 */

#include "wire/wire.h"

typedef enum fk_proto_kind {
    FK_PROTO_U64 = 0,
    FK_PROTO_U32,
    FK_PROTO_I32,
    FK_PROTO_BOOL,
    FK_PROTO_TEXT,     /* fk_str: strings and bytes */
    FK_PROTO_MESSAGE,  /* a struct in the struct */
    FK_PROTO_TEXTS,    /* fk_proto_list of fk_str */
    FK_PROTO_U32S,     /* of uint32_t */
    FK_PROTO_MESSAGES, /* of structs */
} fk_proto_kind;

typedef struct fk_proto_type fk_proto_type;

typedef enum fk_proto_rule {
    FK_PROTO_OPTIONAL = 0,
    FK_PROTO_REQUIRED,
    FK_PROTO_WRITTEN, /* always written, but read also from those who do not */
} fk_proto_rule;

typedef struct fk_proto_field {
    uint8_t number;
    uint8_t kind;              /* fk_proto_kind */
    uint8_t rule;              /* fk_proto_rule */
    uint16_t offset;           /* in the struct */
    uint32_t max;              /* of FK_PROTO_U32 and FK_PROTO_U32S: the largest value */
    const fk_proto_type *type; /* of FK_PROTO_MESSAGE, FK_PROTO_MESSAGES */
} fk_proto_field;

struct fk_proto_type {
    const fk_proto_field *field; /* by rising number */
    uint8_t field_count;
    uint16_t size; /* of the struct, which begins with a uint32_t: bit i is field[i] */
};

/* Fields of the struct T, and the type of the whole. */
#define FK_PROTO_NUMBER(T, number, KIND, RULE, member, max)                                        \
    {                                                                                              \
        number, FK_PROTO_##KIND, FK_PROTO_##RULE, offsetof(T, member), max, NULL                   \
    }
#define FK_PROTO_PLAIN(T, number, KIND, RULE, member)                                              \
    FK_PROTO_NUMBER(T, number, KIND, RULE, member, UINT32_MAX)
#define FK_PROTO_INNER(T, number, KIND, RULE, member, type)                                        \
    {                                                                                              \
        number, FK_PROTO_##KIND, FK_PROTO_##RULE, offsetof(T, member), 0, type                     \
    }
#define FK_PROTO_TYPE(T, fields)                                                                   \
    {                                                                                              \
        fields, sizeof(fields) / sizeof((fields)[0]), sizeof(T)                                    \
    }

/* How deep messages may be in each other, as the tables have them. */
enum { FK_PROTO_DEPTH_MAX = 4 };

/* A field that may come many times. The decoder counts and remembers where it looked; the encoder
 * wants the items as an array. */
typedef struct fk_proto_list {
    uint32_t count;
    const void *items; /* to be written */
    fk_str within;     /* to be read: the message that they are fields of */
} fk_proto_list;

typedef enum fk_proto_wire { /* the low three bits of a key */
                             FK_WIRE_VARINT = 0,
                             FK_WIRE_FIXED64 = 1,
                             FK_WIRE_BYTES = 2,
                             FK_WIRE_FIXED32 = 5,
} fk_proto_wire;

enum { FK_PROTO_VARINT_MAX = 10 /* bytes */ };

static inline bool fk__proto_is_number(const fk_proto_field *field)
{
    return field->kind <= FK_PROTO_BOOL || field->kind == FK_PROTO_U32S;
}

/* *out is zeroed first and good on success only. The fault's offset counts in bytes. */
FK_MUST_USE fk_err fk__proto_decode(const fk_proto_type *type, fk_str bytes, void *out,
                                    fk_wire_fault *fault);
size_t fk__proto_size(const fk_proto_type *type, const void *message);
/* Writes just that many bytes. */
void fk__proto_encode(const fk_proto_type *type, const void *message, unsigned char *to,
                      size_t size);

/* The next item of a list that was decoded: *cursor is 0 at first; false at the end. The item is an
 * fk_str, a uint32_t, or the bytes of a message as an fk_str. */
bool fk__proto_next(const fk_proto_list *list, uint8_t number, size_t *cursor, void *item);

#endif /* FK_WIRE_PROTO_H */

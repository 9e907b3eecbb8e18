/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Field numbers: Pekko's ArteryControlFormats.proto. */

#include "wire/control.h"

enum {
    CONTROL_KEYS = 4, /* field numbers of a table's lists */
    CONTROL_VALUES = 5,
    CONTROL_TABLE_VERSION_MAX = 127, /* a signed byte in the envelope */
};

static const fk_proto_field PROTO_ADDRESS_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_address, 1, TEXT, REQUIRED, protocol),
    FK_PROTO_PLAIN(fk_wire_address, 2, TEXT, REQUIRED, system),
    FK_PROTO_PLAIN(fk_wire_address, 3, TEXT, REQUIRED, host),
    FK_PROTO_NUMBER(fk_wire_address, 4, U32, REQUIRED, port, UINT16_MAX),
};
static const fk_proto_type PROTO_ADDRESS = FK_PROTO_TYPE(fk_wire_address, PROTO_ADDRESS_FIELDS);

static const fk_proto_field PROTO_UNIQUE_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_unique, 1, MESSAGE, REQUIRED, address, &PROTO_ADDRESS),
    FK_PROTO_PLAIN(fk_wire_unique, 2, U64, REQUIRED, uid),
};
static const fk_proto_type PROTO_UNIQUE = FK_PROTO_TYPE(fk_wire_unique, PROTO_UNIQUE_FIELDS);

static const fk_proto_field PROTO_FROM_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_from, 1, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
};
static const fk_proto_type PROTO_FROM = FK_PROTO_TYPE(fk_wire_from, PROTO_FROM_FIELDS);

static const fk_proto_field PROTO_QUARANTINED_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_quarantined, 1, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
    FK_PROTO_INNER(fk_wire_quarantined, 2, MESSAGE, REQUIRED, to, &PROTO_UNIQUE),
};
static const fk_proto_type PROTO_QUARANTINED =
    FK_PROTO_TYPE(fk_wire_quarantined, PROTO_QUARANTINED_FIELDS);

static const fk_proto_field PROTO_HANDSHAKE_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_handshake, 1, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
    FK_PROTO_INNER(fk_wire_handshake, 2, MESSAGE, REQUIRED, to, &PROTO_ADDRESS),
};
static const fk_proto_type PROTO_HANDSHAKE =
    FK_PROTO_TYPE(fk_wire_handshake, PROTO_HANDSHAKE_FIELDS);

static const fk_proto_field PROTO_TABLE_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_advertisement, 1, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
    FK_PROTO_PLAIN(fk_wire_advertisement, 2, U64, REQUIRED, origin_uid),
    FK_PROTO_NUMBER(fk_wire_advertisement, 3, U32, REQUIRED, version, CONTROL_TABLE_VERSION_MAX),
    FK_PROTO_PLAIN(fk_wire_advertisement, CONTROL_KEYS, TEXTS, OPTIONAL, keys),
    FK_PROTO_NUMBER(fk_wire_advertisement, CONTROL_VALUES, U32S, OPTIONAL, values, UINT16_MAX),
};
static const fk_proto_type PROTO_TABLE = FK_PROTO_TYPE(fk_wire_advertisement, PROTO_TABLE_FIELDS);

static const fk_proto_field PROTO_TABLE_ACK_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_advertisement_ack, 1, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
    FK_PROTO_NUMBER(fk_wire_advertisement_ack, 2, U32, REQUIRED, version,
                    CONTROL_TABLE_VERSION_MAX),
};
static const fk_proto_type PROTO_TABLE_ACK =
    FK_PROTO_TYPE(fk_wire_advertisement_ack, PROTO_TABLE_ACK_FIELDS);

static const fk_proto_field PROTO_NUMBERED_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_numbered, 1, TEXT, REQUIRED, message),
    FK_PROTO_PLAIN(fk_wire_numbered, 2, I32, REQUIRED, serializer),
    FK_PROTO_PLAIN(fk_wire_numbered, 3, TEXT, OPTIONAL, manifest),
    FK_PROTO_PLAIN(fk_wire_numbered, 4, U64, REQUIRED, seq),
    FK_PROTO_INNER(fk_wire_numbered, 5, MESSAGE, REQUIRED, ack_to, &PROTO_UNIQUE),
};
static const fk_proto_type PROTO_NUMBERED = FK_PROTO_TYPE(fk_wire_numbered, PROTO_NUMBERED_FIELDS);

static const fk_proto_field PROTO_ACK_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_ack, 1, U64, REQUIRED, seq),
    FK_PROTO_INNER(fk_wire_ack, 2, MESSAGE, REQUIRED, from, &PROTO_UNIQUE),
};
static const fk_proto_type PROTO_ACK = FK_PROTO_TYPE(fk_wire_ack, PROTO_ACK_FIELDS);

static const fk_proto_field PROTO_HEARTBEAT_RSP_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_heartbeat_rsp, 1, U64, REQUIRED, uid),
};
static const fk_proto_type PROTO_HEARTBEAT_RSP =
    FK_PROTO_TYPE(fk_wire_heartbeat_rsp, PROTO_HEARTBEAT_RSP_FIELDS);

static const fk_proto_field PROTO_FLUSH_ACK_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_flush_ack, 1, I32, WRITTEN, expected),
};
static const fk_proto_type PROTO_FLUSH_ACK =
    FK_PROTO_TYPE(fk_wire_flush_ack, PROTO_FLUSH_ACK_FIELDS);

static const fk_proto_type PROTO_NOTHING = { NULL, 0, sizeof(fk_wire_nothing) };

static const struct {
    char manifest;
    const fk_proto_type *type;
} CONTROLS[FK_CONTROL_COUNT] = {
    [FK_CONTROL_QUARANTINED] = { 'a', &PROTO_QUARANTINED },
    [FK_CONTROL_TERMINATING] = { 'b', &PROTO_FROM },
    [FK_CONTROL_TERMINATING_ACK] = { 'c', &PROTO_FROM },
    [FK_CONTROL_HANDSHAKE_REQ] = { 'd', &PROTO_HANDSHAKE },
    [FK_CONTROL_HANDSHAKE_RSP] = { 'e', &PROTO_FROM },
    [FK_CONTROL_REF_TABLE] = { 'f', &PROTO_TABLE },
    [FK_CONTROL_REF_TABLE_ACK] = { 'g', &PROTO_TABLE_ACK },
    [FK_CONTROL_MANIFEST_TABLE] = { 'h', &PROTO_TABLE },
    [FK_CONTROL_MANIFEST_TABLE_ACK] = { 'i', &PROTO_TABLE_ACK },
    [FK_CONTROL_SYSTEM_MESSAGE] = { 'j', &PROTO_NUMBERED },
    [FK_CONTROL_ACK] = { 'k', &PROTO_ACK },
    [FK_CONTROL_NACK] = { 'l', &PROTO_ACK },
    [FK_CONTROL_HEARTBEAT] = { 'm', &PROTO_NOTHING },
    [FK_CONTROL_HEARTBEAT_RSP] = { 'n', &PROTO_HEARTBEAT_RSP },
    [FK_CONTROL_FLUSH] = { 'o', &PROTO_NOTHING },
    [FK_CONTROL_FLUSH_ACK] = { 'p', &PROTO_FLUSH_ACK },
};

fk_str fk__control_manifest(fk_control_kind kind)
{
    FK_ASSERT(kind > FK_CONTROL_NONE);
    FK_ASSERT(kind < FK_CONTROL_COUNT);
    return (fk_str){ &CONTROLS[kind].manifest, 1 };
}

static fk_control_kind control_kind(fk_str manifest)
{
    if (manifest.len != 1) return FK_CONTROL_NONE;
    unsigned kind = (unsigned char)manifest.ptr[0] - (unsigned)'a' + 1;
    return kind < FK_CONTROL_COUNT ? (fk_control_kind)kind : FK_CONTROL_NONE;
}

fk_err fk__control_decode(fk_str manifest, fk_str bytes, fk_wire_control *out, fk_wire_fault *fault)
{
    fk_wire_control control = { .kind = control_kind(manifest) };
    if (control.kind == FK_CONTROL_NONE) {
        return fk__wire_fail(fault, FK_E_NO_CODEC, 0, "no control message has that manifest");
    }
    const fk_proto_type *type = CONTROLS[control.kind].type;
    FK_TRY(fk__proto_decode(type, bytes, &control.as, fault));
    if (type == &PROTO_TABLE && control.as.table.keys.count != control.as.table.values.count) {
        return fk__wire_fail(fault, FK_E_MALFORMED, bytes.len,
                             "a table must have as many values as keys");
    }
    if (type == &PROTO_FLUSH_ACK && control.as.flush_ack.has == 0)
        control.as.flush_ack.expected = 1;
    *out = control;
    return FK_OK;
}

size_t fk__control_size(const fk_wire_control *control)
{
    FK_ASSERT(control->kind > FK_CONTROL_NONE);
    FK_ASSERT(control->kind < FK_CONTROL_COUNT);
    return fk__proto_size(CONTROLS[control->kind].type, &control->as);
}

void fk__control_encode(const fk_wire_control *control, unsigned char *to, size_t size)
{
    FK_ASSERT(control->kind > FK_CONTROL_NONE);
    FK_ASSERT(control->kind < FK_CONTROL_COUNT);
    fk__proto_encode(CONTROLS[control->kind].type, &control->as, to, size);
}

bool fk__advertisement_next(const fk_wire_advertisement *table, fk_wire_pair *pair)
{
    return fk__proto_next(&table->keys, CONTROL_KEYS, &pair->key_cursor, &pair->key) &&
           fk__proto_next(&table->values, CONTROL_VALUES, &pair->value_cursor, &pair->value);
}

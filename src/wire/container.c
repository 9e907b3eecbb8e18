/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Field numbers: Pekko's ContainerFormats.proto. */

#include "wire/container.h"

enum { SELECTION_PATTERN = 3 /* field number */ };

static const fk_proto_field PROTO_REF_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_ref, 1, TEXT, REQUIRED, path),
};
const fk_proto_type fk__proto_ref = FK_PROTO_TYPE(fk_wire_ref, PROTO_REF_FIELDS);

static const fk_proto_field PROTO_PAYLOAD_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_payload, 1, TEXT, REQUIRED, message),
    FK_PROTO_PLAIN(fk_wire_payload, 2, I32, REQUIRED, serializer),
    FK_PROTO_PLAIN(fk_wire_payload, 4, TEXT, OPTIONAL, manifest),
};
const fk_proto_type fk__proto_payload = FK_PROTO_TYPE(fk_wire_payload, PROTO_PAYLOAD_FIELDS);

/* ---- selections ----------------------------------------------------------------------------- */

static const fk_proto_field PROTO_PATTERN_FIELDS[] = {
    FK_PROTO_NUMBER(fk_wire_pattern, 1, U32, REQUIRED, kind, FK_PATTERN_COUNT - 1),
    FK_PROTO_PLAIN(fk_wire_pattern, 2, TEXT, OPTIONAL, text),
};
static const fk_proto_type PROTO_PATTERN = FK_PROTO_TYPE(fk_wire_pattern, PROTO_PATTERN_FIELDS);

static const fk_proto_field PROTO_SELECTION_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_selection, 1, TEXT, REQUIRED, message),
    FK_PROTO_PLAIN(fk_wire_selection, 2, I32, REQUIRED, serializer),
    FK_PROTO_INNER(fk_wire_selection, SELECTION_PATTERN, MESSAGES, OPTIONAL, patterns,
                   &PROTO_PATTERN),
    FK_PROTO_PLAIN(fk_wire_selection, 4, TEXT, OPTIONAL, manifest),
    FK_PROTO_PLAIN(fk_wire_selection, 5, BOOL, WRITTEN, fan_out),
};
static const fk_proto_type PROTO_SELECTION =
    FK_PROTO_TYPE(fk_wire_selection, PROTO_SELECTION_FIELDS);

/* A pattern, whose faults are placed in the whole selection. */
static fk_err pattern_decode(fk_str whole, fk_str bytes, fk_wire_pattern *out, fk_wire_fault *fault)
{
    size_t before = (size_t)(bytes.ptr - whole.ptr);
    fk_err err = fk__proto_decode(&PROTO_PATTERN, bytes, out, fault);
    if (err == FK_OK && out->kind != FK_PATTERN_PARENT && out->text.len == 0) {
        err = fk__wire_fail(fault, FK_E_MALFORMED, bytes.len, "a pattern without its text");
    }
    if (err != FK_OK && fault != NULL) fault->at += before;
    return err;
}

fk_err fk__selection_decode(fk_str bytes, fk_wire_selection *out, fk_wire_fault *fault)
{
    fk_wire_selection selection;
    fk_str pattern;
    size_t cursor = 0;
    FK_TRY(fk__proto_decode(&PROTO_SELECTION, bytes, &selection, fault));
    while (fk__proto_next(&selection.patterns, SELECTION_PATTERN, &cursor, &pattern)) {
        fk_wire_pattern ignored;
        FK_TRY(pattern_decode(bytes, pattern, &ignored, fault));
    }
    *out = selection;
    return FK_OK;
}

bool fk__selection_next(const fk_wire_selection *selection, size_t *cursor, fk_wire_pattern *out)
{
    fk_str pattern;
    return fk__proto_next(&selection->patterns, SELECTION_PATTERN, cursor, &pattern) &&
           fk__proto_decode(&PROTO_PATTERN, pattern, out, NULL) == FK_OK;
}

size_t fk__selection_size(const fk_wire_selection *selection)
{
    return fk__proto_size(&PROTO_SELECTION, selection);
}

void fk__selection_encode(const fk_wire_selection *selection, unsigned char *to, size_t size)
{
    fk__proto_encode(&PROTO_SELECTION, selection, to, size);
}

/* ---- miscellaneous -------------------------------------------------------------------------- */

static const fk_proto_field PROTO_IDENTIFY_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_identify, 1, MESSAGE, REQUIRED, id, &fk__proto_payload),
};
static const fk_proto_type PROTO_IDENTIFY = FK_PROTO_TYPE(fk_wire_identify, PROTO_IDENTIFY_FIELDS);

enum { IDENTITY_REF = 1 /* index of the optional field */ };

static const fk_proto_field PROTO_IDENTITY_FIELDS[] = {
    FK_PROTO_INNER(fk_wire_identity, 1, MESSAGE, REQUIRED, id, &fk__proto_payload),
    [IDENTITY_REF] = FK_PROTO_INNER(fk_wire_identity, 2, MESSAGE, OPTIONAL, ref, &fk__proto_ref),
};
static const fk_proto_type PROTO_IDENTITY = FK_PROTO_TYPE(fk_wire_identity, PROTO_IDENTITY_FIELDS);

static const fk_proto_field PROTO_THROWABLE_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_throwable, 1, TEXT, REQUIRED, class_name),
    FK_PROTO_PLAIN(fk_wire_throwable, 2, TEXT, OPTIONAL, message),
};
static const fk_proto_type PROTO_THROWABLE =
    FK_PROTO_TYPE(fk_wire_throwable, PROTO_THROWABLE_FIELDS);

static const fk_proto_field PROTO_NOT_SERIALIZABLE_FIELDS[] = {
    FK_PROTO_PLAIN(fk_wire_not_serializable, 1, TEXT, REQUIRED, message),
    FK_PROTO_PLAIN(fk_wire_not_serializable, 2, TEXT, REQUIRED, original_message),
    FK_PROTO_PLAIN(fk_wire_not_serializable, 3, TEXT, REQUIRED, original_class),
};
static const fk_proto_type PROTO_NOT_SERIALIZABLE =
    FK_PROTO_TYPE(fk_wire_not_serializable, PROTO_NOT_SERIALIZABLE_FIELDS);

static const fk_proto_type PROTO_MISC_NOTHING = { NULL, 0, sizeof(uint32_t) };

static const struct {
    fk_str manifest;
    const fk_proto_type *type;
} MISCS[FK_MISC_COUNT] = {
    [FK_MISC_IDENTIFY] = { { "A", 1 }, &PROTO_IDENTIFY },
    [FK_MISC_IDENTITY] = { { "B", 1 }, &PROTO_IDENTITY },
    [FK_MISC_SUCCESS] = { { "D", 1 }, &fk__proto_payload },
    [FK_MISC_FAILURE] = { { "E", 1 }, &fk__proto_payload },
    [FK_MISC_THROWABLE] = { { "F", 1 }, &PROTO_THROWABLE },
    [FK_MISC_REF] = { { "G", 1 }, &fk__proto_ref },
    [FK_MISC_KILL] = { { "K", 1 }, &PROTO_MISC_NOTHING },
    [FK_MISC_POISON] = { { "P", 1 }, &PROTO_MISC_NOTHING },
    [FK_MISC_NOT_SERIALIZABLE] = { { "TNSEX", 5 }, &PROTO_NOT_SERIALIZABLE },
};

fk_str fk__misc_manifest(fk_misc_kind kind)
{
    FK_ASSERT(kind > FK_MISC_NONE);
    FK_ASSERT(kind < FK_MISC_COUNT);
    return MISCS[kind].manifest;
}

fk_err fk__misc_decode(fk_str manifest, fk_str bytes, fk_wire_misc *out, fk_wire_fault *fault)
{
    fk_wire_misc misc = { .kind = FK_MISC_NONE };
    unsigned kind = FK_MISC_NONE + 1;
    while (kind < FK_MISC_COUNT && !fk__wire_equal(MISCS[kind].manifest, manifest)) kind++;
    if (kind == FK_MISC_COUNT) {
        return fk__wire_fail(fault, FK_E_NO_CODEC, 0, "no such message is understood here");
    }
    FK_TRY(fk__proto_decode(MISCS[kind].type, bytes, &misc.as, fault));
    misc.kind = (fk_misc_kind)kind;
    *out = misc;
    return FK_OK;
}

/* The mask of an identity follows from its ref, so that nobody has to know of it. */
static fk_wire_misc misc_marked(const fk_wire_misc *misc)
{
    fk_wire_misc copy = *misc;
    FK_ASSERT(misc->kind > FK_MISC_NONE);
    FK_ASSERT(misc->kind < FK_MISC_COUNT);
    if (misc->kind == FK_MISC_IDENTITY) {
        copy.as.identity.has = misc->as.identity.ref.path.len > 0 ? 1u << IDENTITY_REF : 0;
    }
    return copy;
}

size_t fk__misc_size(const fk_wire_misc *misc)
{
    fk_wire_misc copy = misc_marked(misc);
    return fk__proto_size(MISCS[misc->kind].type, &copy.as);
}

void fk__misc_encode(const fk_wire_misc *misc, unsigned char *to, size_t size)
{
    fk_wire_misc copy = misc_marked(misc);
    fk__proto_encode(MISCS[misc->kind].type, &copy.as, to, size);
}

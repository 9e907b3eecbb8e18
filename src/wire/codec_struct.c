/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Plain structs. Before the bytes stands what makes sure that both sides mean the same by them:
 *
 *    0  form      1: as in memory, little endian; 2: as in memory, big endian; 3: by fields
 *    1  0
 *    2  align     of the type, as in memory only
 *    4  size      bytes that follow the header
 *    8  version   the user's
 *   12  hash      of the type's name and its list of fields
 *   20
 *
 * Fields follow each other without gaps, their numbers little endian. A reference is a length of two
 * bytes and that much text, the path of an actor; no text is nobody.
 */

#include "base/hash.h"
#include "wire/codec.h"

enum {
    STRUCT_FORM = 0,
    STRUCT_ZERO = 1,
    STRUCT_ALIGN = 2,
    STRUCT_SIZE = 4,
    STRUCT_VERSION = 8,
    STRUCT_HASH = 12,
    STRUCT_HEADER = 20,
};

enum {
    FORM_LITTLE = 1,
    FORM_BIG = 2,
    FORM_FIELDS = 3,
    FORM_OWN = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? FORM_BIG : FORM_LITTLE,
};

static unsigned struct_form(const fk_codec *codec)
{
    return codec->field_count > 0 ? FORM_FIELDS : FORM_OWN;
}

enum { STRUCT_TEXT_LEN = 2, STRUCT_TEXT_MAX = UINT16_MAX };

/* No number has that many bytes. */
static bool field_is_ref(const fk_field *field)
{
    return field->unit == sizeof(fk_ref);
}

_Static_assert(sizeof(fk_ref) == 12, "a reference is told from a number by its size");

/* Of what has no texts in it, the size; else the least that it can be. */
static uint32_t struct_body_min(const fk_codec *codec, bool *is_all)
{
    uint32_t size = 0;
    *is_all = true;
    if (codec->field_count == 0) return codec->type->size;
    for (uint32_t i = 0; i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        bool is_ref = field_is_ref(field);
        size += is_ref ? field->size / field->unit * STRUCT_TEXT_LEN : field->size;
        if (is_ref) *is_all = false;
    }
    return size;
}

static uint16_t struct_align(const fk_codec *codec)
{
    return codec->field_count > 0 ? 0 : (uint16_t)(codec->type->align & ~FK_TYPE_QUIET);
}

/* Each step takes in what came before it, so order counts. */
static uint64_t struct_hash(const fk_codec *codec)
{
    fk_hash_key key = { 0, 0 };
    fk_str name = fk_str_of(codec->type->name);
    key.k0 = fk__hash_bytes(&key, name.ptr, name.len);
    for (uint32_t i = 0; i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        name = fk_str_of(field->name);
        key.k1 = (uint64_t)field->size << 32 | (uint64_t)field->unit << 8 | field->is_truth;
        key.k0 = fk__hash_bytes(&key, name.ptr, name.len);
    }
    return key.k0;
}

fk_err fk__codec_struct_check(const fk_codec *codec, fk_codec_fault *fault)
{
    const fk_type *type = codec->type;
    uint32_t end = 0;
    if (type->size == 0 || type->drop != NULL) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0,
                              "only structs that own nothing can be sent field by field");
    }
    if (!fk__wire_equal(fk_codec_manifest(codec), fk_str_of(type->name))) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0, "the manifest is the type's name");
    }
    for (uint32_t i = 0; i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        bool whole = field->unit == 1 || field->unit == 2 || field->unit == 4 || field->unit == 8 ||
                     field_is_ref(field);
        if (!whole || field->size == 0 || field->size % field->unit != 0) {
            return fk__codec_fail(codec, fault, FK_E_INVALID, i, "a field is no array of numbers");
        }
        if (field->offset < end || field->offset > type->size ||
            field->size > type->size - field->offset) {
            return fk__codec_fail(codec, fault, FK_E_INVALID, i,
                                  "fields must lie in the struct, in order and apart");
        }
        end = field->offset + field->size;
    }
    return FK_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Little endian to the machine's order is the same turn as back. */
static void struct_turn(const fk_field *field, const unsigned char *from, unsigned char *to)
{
    for (uint32_t i = 0; i < field->size; i += field->unit) {
        uint64_t word;
        uint32_t half;
        uint16_t quarter;
        switch (field->unit) {
        case 8:
            memcpy(&word, from + i, 8);
            fk__store64(to + i, word);
            break;
        case 4:
            memcpy(&half, from + i, 4);
            fk__store32(to + i, half);
            break;
        case 2:
            memcpy(&quarter, from + i, 2);
            fk__store16(to + i, quarter);
            break;
        default: to[i] = from[i]; break;
        }
    }
}

static fk_ref field_ref(const fk_field *field, const unsigned char *message, uint32_t i)
{
    fk_ref ref;
    memcpy(&ref, message + field->offset + i, sizeof(ref));
    return ref;
}

/* The text of one reference with its length in front, to `to`, or only counted. 0: too long. */
static size_t struct_put_ref(const fk_codec_refs *refs, fk_ref ref, unsigned char *to, size_t room)
{
    size_t text_room = room > STRUCT_TEXT_LEN ? room - STRUCT_TEXT_LEN : 0;
    char *text = to != NULL ? (char *)to + STRUCT_TEXT_LEN : NULL;
    size_t len = fk_ref_is_none(ref) ? 0 : refs->text(refs->ctx, ref, text, text_room);
    if (len > STRUCT_TEXT_MAX) return 0;
    if (to != NULL && room >= STRUCT_TEXT_LEN) fk__store16(to, (uint16_t)len);
    return STRUCT_TEXT_LEN + len;
}

fk_err fk__codec_struct_measure(const fk_codec *codec, const fk_codec_refs *refs,
                                const unsigned char *message, size_t *size)
{
    bool is_all;
    size_t all = (size_t)STRUCT_HEADER + struct_body_min(codec, &is_all);
    if (!is_all && refs == NULL) return FK_E_UNSUPPORTED;
    for (uint32_t i = 0; !is_all && i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        for (uint32_t at = 0; field_is_ref(field) && at < field->size; at += field->unit) {
            size_t len = struct_put_ref(refs, field_ref(field, message, at), NULL, 0);
            if (len == 0) return FK_E_LIMIT;
            all += len - STRUCT_TEXT_LEN;
        }
    }
    *size = all;
    return FK_OK;
}

static void struct_put_header(const fk_codec *codec, unsigned char *to, size_t size)
{
    to[STRUCT_FORM] = (unsigned char)struct_form(codec);
    to[STRUCT_ZERO] = 0;
    fk__store16(to + STRUCT_ALIGN, struct_align(codec));
    fk__store32(to + STRUCT_SIZE, (uint32_t)(size - STRUCT_HEADER));
    fk__store32(to + STRUCT_VERSION, codec->version);
    fk__store64(to + STRUCT_HASH, struct_hash(codec));
}

/* A field of references. False: they have other texts than when they were measured. */
static bool struct_put_refs(const fk_codec_refs *refs, const fk_field *field,
                            const unsigned char *message, unsigned char **to,
                            const unsigned char *end)
{
    for (uint32_t i = 0; i < field->size; i += field->unit) {
        size_t room = (size_t)(end - *to);
        size_t len = struct_put_ref(refs, field_ref(field, message, i), *to, room);
        if (len == 0 || len > room) return false;
        *to += len;
    }
    return true;
}

fk_err fk__codec_struct_encode(const fk_codec *codec, const fk_codec_refs *refs,
                               const unsigned char *message, unsigned char *to, size_t size)
{
    const unsigned char *end = to + size;
    bool is_all;
    size_t least = (size_t)STRUCT_HEADER + struct_body_min(codec, &is_all);
    if (!is_all && refs == NULL) return FK_E_UNSUPPORTED;
    FK_ASSERT(is_all ? size == least : size >= least);
    struct_put_header(codec, to, size);
    to += STRUCT_HEADER;
    if (codec->field_count == 0) memcpy(to, message, codec->type->size);
    for (uint32_t i = 0; i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        if (field_is_ref(field)) {
            if (!struct_put_refs(refs, field, message, &to, end)) return FK_E_STATE;
            continue;
        }
        if (field->size > (size_t)(end - to)) return FK_E_STATE;
        struct_turn(field, message + field->offset, to);
        to += field->size;
    }
    return to == end || codec->field_count == 0 ? FK_OK : FK_E_STATE;
}

/* ---- reading -------------------------------------------------------------------------------- */

static fk_err struct_header(const fk_codec *codec, fk_str bytes, fk_codec_fault *fault)
{
    const char *at = bytes.ptr;
    if (bytes.len < STRUCT_HEADER) {
        return fk__codec_fail(codec, fault, FK_E_TRUNCATED, bytes.len, "the header is cut");
    }
    unsigned form = (unsigned char)at[STRUCT_FORM];
    if (form < FORM_LITTLE || form > FORM_FIELDS) {
        return fk__codec_fail(codec, fault, FK_E_MALFORMED, STRUCT_FORM, "no such form of struct");
    }
    if (form != struct_form(codec)) {
        return fk__codec_fail(codec, fault, FK_E_MISMATCH, STRUCT_FORM,
                              "here the struct is written in another form or order of bytes");
    }
    if (at[STRUCT_ZERO] != 0) {
        return fk__codec_fail(codec, fault, FK_E_MALFORMED, STRUCT_ZERO, "this byte must be 0");
    }
    if (fk__load16(at + STRUCT_ALIGN) != struct_align(codec)) {
        return fk__codec_fail(codec, fault, FK_E_MISMATCH, STRUCT_ALIGN,
                              "here the struct has another alignment");
    }
    bool is_all;
    uint32_t least = struct_body_min(codec, &is_all), size = fk__load32(at + STRUCT_SIZE);
    if (is_all ? size != least : size < least) {
        return fk__codec_fail(codec, fault, FK_E_MISMATCH, STRUCT_SIZE,
                              "here the struct has another size");
    }
    if (fk__load32(at + STRUCT_VERSION) != codec->version) {
        return fk__codec_fail(codec, fault, FK_E_MISMATCH, STRUCT_VERSION,
                              "here the struct has another version");
    }
    if (fk__load64(at + STRUCT_HASH) != struct_hash(codec)) {
        return fk__codec_fail(codec, fault, FK_E_MISMATCH, STRUCT_HASH,
                              "here the struct has another name or other fields");
    }
    return FK_OK;
}

/* False: a truth that is none. */
static bool struct_take(const fk_field *field, const unsigned char *from, unsigned char *to)
{
    for (uint32_t i = 0; field->is_truth && i < field->size; i++) {
        if (from[i] > 1) return false;
    }
    struct_turn(field, from, to);
    return true;
}

/* *at moves behind it. */
static fk_err struct_take_ref(const fk_codec *codec, const fk_codec_refs *refs, fk_str bytes,
                              size_t *at, fk_ref *out, fk_codec_fault *fault)
{
    *out = FK_REF_NONE;
    if (bytes.len - *at < STRUCT_TEXT_LEN) {
        return fk__codec_fail(codec, fault, FK_E_TRUNCATED, *at, "a reference is cut");
    }
    fk_str text = { bytes.ptr + *at + STRUCT_TEXT_LEN, fk__load16(bytes.ptr + *at) };
    if (bytes.len - *at - STRUCT_TEXT_LEN < text.len) {
        return fk__codec_fail(codec, fault, FK_E_TRUNCATED, *at, "a reference is cut");
    }
    fk_err err = text.len > 0 ? refs->ref(refs->ctx, text, out) : FK_OK;
    if (err != FK_OK) {
        return fk__codec_fail(codec, fault, err, *at, "a reference cannot be resolved");
    }
    *at += STRUCT_TEXT_LEN + text.len;
    return FK_OK;
}

static fk_err struct_take_fields(const fk_codec *codec, const fk_codec_refs *refs, fk_str bytes,
                                 unsigned char *message, fk_codec_fault *fault)
{
    const unsigned char *start = (const unsigned char *)bytes.ptr;
    size_t at = STRUCT_HEADER;
    for (uint32_t i = 0; i < codec->field_count; i++) {
        const fk_field *field = &codec->fields[i];
        if (field_is_ref(field)) {
            for (uint32_t of = 0; of < field->size; of += field->unit) {
                fk_ref ref;
                FK_TRY(struct_take_ref(codec, refs, bytes, &at, &ref, fault));
                memcpy(message + field->offset + of, &ref, sizeof(ref));
            }
            continue;
        }
        if (bytes.len - at < field->size) {
            return fk__codec_fail(codec, fault, FK_E_TRUNCATED, at, "a field is cut");
        }
        if (!struct_take(field, start + at, message + field->offset)) {
            return fk__codec_fail(codec, fault, FK_E_MALFORMED, at, "a bool must be 0 or 1");
        }
        at += field->size;
    }
    if (at != bytes.len) {
        return fk__codec_fail(codec, fault, FK_E_MALFORMED, at, "there is more than the fields");
    }
    return FK_OK;
}

fk_err fk__codec_struct_decode(const fk_codec *codec, const fk_codec_refs *refs, fk_str bytes,
                               unsigned char *message, fk_codec_fault *fault)
{
    bool is_all;
    (void)struct_body_min(codec, &is_all);
    if (!is_all && refs == NULL) {
        return fk__codec_fail(codec, fault, FK_E_UNSUPPORTED, 0,
                              "a struct with references is read by a system only");
    }
    FK_TRY(struct_header(codec, bytes, fault));
    size_t size = (size_t)STRUCT_HEADER + fk__load32(bytes.ptr + STRUCT_SIZE);
    if (bytes.len != size) {
        fk_err err = bytes.len < size ? FK_E_TRUNCATED : FK_E_MALFORMED;
        return fk__codec_fail(codec, fault, err, bytes.len < size ? bytes.len : size,
                              "there are fewer or more bytes than the header says");
    }
    if (codec->field_count > 0) return struct_take_fields(codec, refs, bytes, message, fault);
    memcpy(message, bytes.ptr + STRUCT_HEADER, codec->type->size);
    return FK_OK;
}

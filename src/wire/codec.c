/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The set: two tables with linear probing, one by the address of a type, one by what is on the wire.
 * Nothing is ever removed, and both are at most half full. */

#include "wire/codec.h"

#include "base/hash.h"
#include "wire/envelope.h"

/* Nobody from outside can put anything in, so the hash needs no secret. */
static const fk_hash_key CODEC_KEY = { 0, 0 };

static uint32_t codecs_capacity(uint32_t count_max)
{
    uint32_t wanted = 2 * (count_max + fk__codecs_basic_count);
    uint32_t n = 8;
    while (n < wanted) n *= 2;
    return n;
}

size_t fk_codecs_memory(uint32_t count_max)
{
    FK_ASSERT(count_max <= UINT16_MAX);
    return 2 * sizeof(const fk_codec *) * codecs_capacity(count_max);
}

fk_str fk_codec_manifest(const fk_codec *codec)
{
    return codec->manifest != NULL ? fk_str_of(codec->manifest) : FK_STR("");
}

/* ---- looking up ----------------------------------------------------------------------------- */

static const fk_codec **codecs_type_place(const fk_codecs *codecs, const fk_type *type)
{
    uint32_t i = (uint32_t)fk__mix64((uintptr_t)type) & codecs->mask;
    while (codecs->by_type[i] != NULL && codecs->by_type[i]->type != type) {
        i = (i + 1) & codecs->mask;
    }
    return &codecs->by_type[i];
}

static const fk_codec **codecs_wire_place(const fk_codecs *codecs, int32_t serializer,
                                          fk_str manifest)
{
    uint64_t hash = fk__hash_bytes(&CODEC_KEY, manifest.ptr, manifest.len);
    uint32_t i = (uint32_t)fk__mix64(hash ^ (uint32_t)serializer) & codecs->mask;
    for (; codecs->by_wire[i] != NULL; i = (i + 1) & codecs->mask) {
        const fk_codec *codec = codecs->by_wire[i];
        if (codec->serializer != serializer) continue;
        if (fk__wire_equal(fk_codec_manifest(codec), manifest)) break;
    }
    return &codecs->by_wire[i];
}

fk_err fk_codecs_of_type(const fk_codecs *codecs, const fk_type *type, const fk_codec **out,
                         fk_codec_fault *fault)
{
    const fk_codec *codec = *codecs_type_place(codecs, type);
    if (codec == NULL) {
        if (fault != NULL) {
            *fault = (fk_codec_fault){ FK_E_NO_CODEC, 0, fk_str_of(type->name), 0,
                                       "no codec writes messages of this type" };
        }
        return FK_E_NO_CODEC;
    }
    *out = codec;
    return FK_OK;
}

static bool codecs_has_serializer(const fk_codecs *codecs, int32_t serializer)
{
    for (uint32_t i = 0; i <= codecs->mask; i++) {
        const fk_codec *codec = codecs->by_wire[i];
        if (codec != NULL && codec->serializer == serializer) return true;
    }
    return false;
}

fk_err fk_codecs_of_wire(const fk_codecs *codecs, int32_t serializer, fk_str manifest,
                         const fk_codec **out, fk_codec_fault *fault)
{
    const fk_codec *codec = *codecs_wire_place(codecs, serializer, manifest);
    if (codec == NULL) {
        if (fault != NULL) {
            bool known = codecs_has_serializer(codecs, serializer);
            *fault = (fk_codec_fault){ FK_E_NO_CODEC, serializer, manifest, 0,
                                       known ? "no codec of this serializer has that manifest"
                                             : "no codec has that serializer id" };
        }
        return FK_E_NO_CODEC;
    }
    *out = codec;
    return FK_OK;
}

/* ---- adding --------------------------------------------------------------------------------- */

static fk_err codec_check(const fk_codec *codec, fk_codec_fault *fault)
{
    fk_str manifest = fk_codec_manifest(codec);
    bool reserved = codec->serializer >= 0 && codec->serializer <= FK_SERIALIZER_RESERVED_MAX;
    bool has_all = codec->measure != NULL && codec->encode != NULL && codec->decode != NULL;
    bool has_none = codec->measure == NULL && codec->encode == NULL && codec->decode == NULL;
    if (codec->type == NULL) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0, "a codec needs a type");
    }
    if (reserved && codec->serializer != FK_SERIALIZER_PROTOBUF) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0, "serializer ids up to 40 are taken");
    }
    if (manifest.len > FK_WIRE_LITERAL_MAX) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0, "the manifest is too long");
    }
    for (size_t i = 0; i < manifest.len; i++) {
        if ((unsigned char)manifest.ptr[i] < 0x80) continue;
        return fk__codec_fail(codec, fault, FK_E_INVALID, i, "the manifest is not ASCII");
    }
    if (!has_all && !has_none) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0,
                              "measure, encode and decode belong together");
    }
    if (has_none && codec->serializer == FK_SERIALIZER_STRUCT) {
        return fk__codec_struct_check(codec, fault);
    }
    if (has_none && codec->type->size != 0) {
        return fk__codec_fail(codec, fault, FK_E_INVALID, 0,
                              "a struct is written by functions, or by FK_CODEC_STRUCT");
    }
    return FK_OK;
}

static void codecs_put(fk_codecs *codecs, const fk_codec **wire, const fk_codec *codec)
{
    const fk_codec **type = codecs_type_place(codecs, codec->type);
    *wire = codec;
    if (*type == NULL) *type = codec; /* the first one writes */
}

fk_err fk_codecs_add(fk_codecs *codecs, const fk_codec *codec, fk_codec_fault *fault)
{
    FK_TRY(codec_check(codec, fault));
    const fk_codec **wire = codecs_wire_place(codecs, codec->serializer, fk_codec_manifest(codec));
    if (*wire != NULL) {
        return fk__codec_fail(codec, fault, FK_E_NAME_TAKEN, 0,
                              "there is a codec of that serializer and manifest");
    }
    if (codecs->left == 0) {
        return fk__codec_fail(codec, fault, FK_E_LIMIT, 0, "there is no room for more codecs");
    }
    codecs->left--;
    codecs_put(codecs, wire, codec);
    return FK_OK;
}

void fk_codecs_init(fk_codecs *codecs, uint32_t count_max, void *memory)
{
    uint32_t capacity = codecs_capacity(count_max);
    FK_ASSERT((uintptr_t)memory % sizeof(void *) == 0);
    memset(memory, 0, fk_codecs_memory(count_max));
    codecs->by_type = memory;
    codecs->by_wire = codecs->by_type + capacity;
    codecs->mask = capacity - 1;
    codecs->left = count_max;
    for (uint32_t i = 0; i < fk__codecs_basic_count; i++) {
        const fk_codec *codec = fk__codecs_basic[i];
        codecs_put(codecs, codecs_wire_place(codecs, codec->serializer, fk_codec_manifest(codec)),
                   codec);
    }
}

/* ---- using one ------------------------------------------------------------------------------ */

static bool codec_is_struct(const fk_codec *codec)
{
    return codec->encode == NULL && codec->serializer == FK_SERIALIZER_STRUCT;
}

bool fk_codec_is_verbatim(const fk_codec *codec)
{
    return codec->encode == NULL && !codec_is_struct(codec);
}

/* A struct has its size; another length means another type of the same name. */
static bool codec_fits(const fk_codec *codec, size_t len)
{
    return codec->type->size == 0 || len == codec->type->size;
}

fk_err fk__codec_measure(const fk_codec *codec, const fk_codec_refs *refs, const void *message,
                         size_t len, size_t *size)
{
    if (!codec_fits(codec, len)) return FK_E_INVALID;
    if (codec->measure != NULL) return codec->measure(codec, message, len, size);
    if (codec_is_struct(codec)) return fk__codec_struct_measure(codec, refs, message, size);
    *size = len;
    return FK_OK;
}

fk_err fk__codec_encode(const fk_codec *codec, const fk_codec_refs *refs, const void *message,
                        size_t len, unsigned char *to, size_t size)
{
    if (!codec_fits(codec, len)) return FK_E_INVALID;
    if (codec->encode != NULL) return codec->encode(codec, message, len, to, size);
    if (codec_is_struct(codec)) return fk__codec_struct_encode(codec, refs, message, to, size);
    FK_ASSERT(size == len);
    if (len > 0) memcpy(to, message, len);
    return FK_OK;
}

fk_err fk__codec_decode(const fk_codec *codec, const fk_codec_refs *refs, fk_str bytes,
                        void *message, fk_codec_fault *fault)
{
    if (fk_codec_is_verbatim(codec)) {
        if (bytes.len > 0) memcpy(message, bytes.ptr, bytes.len);
        return FK_OK;
    }
    memset(message, 0, codec->type->size);
    if (codec_is_struct(codec)) return fk__codec_struct_decode(codec, refs, bytes, message, fault);
    fk_err err = codec->decode(codec, bytes, message);
    if (err == FK_OK) return FK_OK;
    return fk__codec_fail(codec, fault, err, 0, "the codec refused the bytes");
}

fk_err fk_codec_measure(const fk_codec *codec, const void *message, size_t len, size_t *size)
{
    return fk__codec_measure(codec, NULL, message, len, size);
}

fk_err fk_codec_encode(const fk_codec *codec, const void *message, size_t len, unsigned char *to,
                       size_t size)
{
    return fk__codec_encode(codec, NULL, message, len, to, size);
}

fk_err fk_codec_decode(const fk_codec *codec, fk_str bytes, void *message, fk_codec_fault *fault)
{
    return fk__codec_decode(codec, NULL, bytes, message, fault);
}

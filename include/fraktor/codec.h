/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CODEC_H
#define FK_CODEC_H

/*
 * Codecs: how messages become bytes when they leave the process, and become messages again.
 *
 *     typedef struct { int64_t amount; char account[16]; } deposit;
 *     FK_MESSAGE(deposit);
 *     FK_CODEC_STRUCT(deposit, 1, FK_FIELD(deposit, amount), FK_FIELD_ARRAY(deposit, account));
 *     ...
 *     fk_codecs_add(codecs, &fk_codec_deposit);
 *
 * Field by field, in an order of bytes that is the same everywhere: padding never leaves the
 * process, and a struct that was declared otherwise on the other side is refused. Text, bytes, and
 * the numbers below are there from the start, as Pekko writes them. For anything else, say protobuf,
 * fill an fk_codec with functions of your own.
 *
 * What comes in is never trusted: only what was added is read, by its serializer id and manifest.
 */

#include "fraktor/base.h"
#include "fraktor/message.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- messages that need no codec of yours ---------------------------------------------------
 * Besides these, fk_type_text and fk_type_bytes. FK_MSG(fk_int, 7), FK_AS(fk_long, msg). */

typedef int32_t fk_int;
typedef int64_t fk_long;
typedef bool fk_boolean;

extern FK_API const fk_type fk_type_fk_int;
extern FK_API const fk_type fk_type_fk_long;
extern FK_API const fk_type fk_type_fk_boolean;

/* Serializer ids; Pekko keeps 0 to 40 for itself. */
enum {
    FK_SERIALIZER_PROTOBUF = 2, /* the manifest is the class's name; the codec is yours */
    FK_SERIALIZER_BYTES = 4,
    FK_SERIALIZER_LONG = 18,
    FK_SERIALIZER_INT = 19,
    FK_SERIALIZER_TEXT = 20,
    FK_SERIALIZER_BYTE_STRING = 21, /* read as bytes, never written */
    FK_SERIALIZER_BOOLEAN = 35,
    FK_SERIALIZER_RESERVED_MAX = 40,
    FK_SERIALIZER_STRUCT = 26219, /* FK_CODEC_STRUCT, FK_CODEC_PLAIN; only fraktor reads it */
};

/* ---- what a codec is ------------------------------------------------------------------------ */

/* Why a message could not be written or read. */
typedef struct fk_codec_fault {
    fk_err err;
    int32_t serializer;
    fk_str manifest;     /* borrowed from whoever asked; a type's name when that was looked for */
    size_t at;           /* byte offset */
    const char *message; /* a sentence; static */
} fk_codec_fault;

/* A field of a struct. Made by FK_FIELD. */
typedef struct fk_field {
    uint32_t offset;
    uint32_t size;
    const char *name;
    uint8_t unit;  /* bytes of one number, or of an fk_ref; an array has several */
    bool is_truth; /* 0 or 1, nothing else is let in */
} fk_field;

typedef struct fk_codec fk_codec;
struct fk_codec {
    uint32_t size;        /* sizeof(fk_codec), or 0 */
    int32_t serializer;   /* agreed with the other side: FK_SERIALIZER_PROTOBUF, or beyond 40 */
    const char *manifest; /* what of this serializer it is; ASCII; NULL: none */
    const fk_type *type;  /* the messages that it writes, and makes */

    /* Bytes that encode() will write. NULL, as are the others: the message's own bytes. */
    fk_err (*measure)(const fk_codec *codec, const void *message, size_t len, size_t *size);
    /* Writes all of these. */
    fk_err (*encode)(const fk_codec *codec, const void *message, size_t len, unsigned char *to,
                     size_t size);
    /* Makes a message of type->size bytes, which are zeroed. bytes is whatever came, of any
     * length. What the message owns afterwards the type's drop releases; when this fails it must
     * own nothing. */
    fk_err (*decode)(const fk_codec *codec, fk_str bytes, void *message);
    const void *ctx; /* yours */

    /* Of FK_SERIALIZER_STRUCT. */
    const fk_field *fields;
    uint32_t field_count; /* 0: the struct as it lies in memory */
    uint32_t version;     /* both sides must have the same */
};

#ifdef __cplusplus
#define FK_FIELD_CHECK(x)    ((uint8_t)sizeof(x))
#define FK_FIELD_IS_TRUTH(x) (sizeof(fk_truth_probe(x)) == 2)
#else
/* A number or a reference: anything else, above all a pointer, does not compile. */
#define FK_FIELD_CHECK(x)                                                                          \
    _Generic((x), bool : 1, char : 1, signed char : 1, unsigned char : 1, short                    \
             : sizeof(short), unsigned short                                                       \
             : sizeof(short), int                                                                  \
             : sizeof(int), unsigned                                                               \
             : sizeof(int), long                                                                   \
             : sizeof(long), unsigned long                                                         \
             : sizeof(long), long long : 8, unsigned long long : 8, float : 4, double : 8, fk_ref  \
             : sizeof(fk_ref))
#define FK_FIELD_IS_TRUTH(x) _Generic((x), bool : true, default : false)
#endif

/* A member of T that is a number, or an array of numbers. Or an fk_ref: that leaves as the actor's
 * path, and whoever gets the message has a reference to the same actor. */
#define FK_FIELD(T, member)       FK_FIELD_MAKE(T, member, ((T *)0)->member)
#define FK_FIELD_ARRAY(T, member) FK_FIELD_MAKE(T, member, ((T *)0)->member[0])
#define FK_FIELD_MAKE(T, member, one)                                                              \
    {                                                                                              \
        offsetof(T, member), sizeof(((T *)0)->member), #member, FK_FIELD_CHECK(one),               \
            FK_FIELD_IS_TRUTH(one)                                                                 \
    }

/* Defines fk_codec_T: the fields that are listed, of the version of yours. At file scope. */
#define FK_CODEC_STRUCT(T, number, ...)                                                            \
    static const fk_field fk_fields_##T[] = { __VA_ARGS__ };                                       \
    FK_CODEC_MAKE(T, number, fk_fields_##T, sizeof(fk_fields_##T) / sizeof(fk_fields_##T[0]))
/* The same without a list: for structs that have no padding, because their bytes are sent as they
 * are, and no bool, because they are taken as they are. Both sides must agree in size, alignment
 * and the order of bytes. */
#define FK_CODEC_PLAIN(T, number) FK_CODEC_MAKE(T, number, NULL, 0)
#define FK_CODEC_MAKE(T, number, list, count)                                                      \
    static const fk_codec fk_codec_##T = { sizeof(fk_codec),                                       \
                                           FK_SERIALIZER_STRUCT,                                   \
                                           #T,                                                     \
                                           &fk_type_##T,                                           \
                                           NULL,                                                   \
                                           NULL,                                                   \
                                           NULL,                                                   \
                                           NULL,                                                   \
                                           list,                                                   \
                                           count,                                                  \
                                           number }

/* ---- a set of codecs ------------------------------------------------------------------------
 * Adding: one thread, before anybody looks. Everything else: any thread. */

typedef struct fk_codecs {
    const fk_codec **by_type;
    const fk_codec **by_wire;
    uint32_t mask;
    uint32_t left; /* codecs that may still be added */
} fk_codecs;

/* Bytes that fk_codecs_init() needs for so many codecs besides the built-in ones; aligned as
 * pointers are. */
FK_API size_t fk_codecs_memory(uint32_t count_max);
/* The memory is lent for as long as the set is used. */
FK_API void fk_codecs_init(fk_codecs *codecs, uint32_t count_max, void *memory);
/* The codec is borrowed for as long as the set is used. The first codec of a type writes it; any
 * further ones only read. FK_E_INVALID: it cannot work; FK_E_LIMIT: no room; FK_E_NAME_TAKEN: the
 * serializer id and manifest have a codec. fault may be NULL. */
FK_API FK_MUST_USE fk_err fk_codecs_add(fk_codecs *codecs, const fk_codec *codec,
                                        fk_codec_fault *fault);

/* The codec that writes a type, or that reads what came. FK_E_NO_CODEC: there is none; the fault,
 * which may be NULL, says for what. */
FK_API FK_MUST_USE fk_err fk_codecs_of_type(const fk_codecs *codecs, const fk_type *type,
                                            const fk_codec **out, fk_codec_fault *fault);
FK_API FK_MUST_USE fk_err fk_codecs_of_wire(const fk_codecs *codecs, int32_t serializer,
                                            fk_str manifest, const fk_codec **out,
                                            fk_codec_fault *fault);

/* ---- using one ------------------------------------------------------------------------------
 * Only a system can write and read references: here a struct that has some is FK_E_UNSUPPORTED. */

/* The manifest, empty if there is none. */
FK_API fk_str fk_codec_manifest(const fk_codec *codec);
/* Bytes that the message will have. len: of the message, as in fk_msg. */
FK_API FK_MUST_USE fk_err fk_codec_measure(const fk_codec *codec, const void *message, size_t len,
                                           size_t *size);
FK_API FK_MUST_USE fk_err fk_codec_encode(const fk_codec *codec, const void *message, size_t len,
                                          unsigned char *to, size_t size);
/* True: what came is the message, byte for byte, and need not be decoded. */
FK_API bool fk_codec_is_verbatim(const fk_codec *codec);
/* Makes the message in type->size bytes at `message`, aligned for the type; or, of a type without
 * size, copies bytes.len bytes. Fails with FK_E_TRUNCATED, FK_E_MALFORMED, FK_E_MISMATCH, or as the
 * codec's own function does. fault may be NULL. */
FK_API FK_MUST_USE fk_err fk_codec_decode(const fk_codec *codec, fk_str bytes, void *message,
                                          fk_codec_fault *fault);

#ifdef __cplusplus
}
/* Never called: only the size of what they would return is looked at. */
template <class T> char (&fk_truth_probe(const T &))[1];
char (&fk_truth_probe(const bool &))[2];
#endif

#endif /* FK_CODEC_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What Pekko's primitive serializers write: numbers little endian, texts and bytes as they are. */

#include "wire/codec.h"

const fk_type fk_type_fk_int = { "fk_int", sizeof(fk_int), _Alignof(fk_int), NULL };
const fk_type fk_type_fk_long = { "fk_long", sizeof(fk_long), _Alignof(fk_long), NULL };
const fk_type fk_type_fk_boolean = { "fk_boolean", sizeof(fk_boolean), _Alignof(fk_boolean), NULL };

/* What nodes of a cluster say to each other: src/cluster/telegram.h. */
const fk_type fk__type_telegram = { "fk_telegram", 0, 1, NULL };

static fk_err basic_measure(const fk_codec *codec, const void *message, size_t len, size_t *size)
{
    (void)codec;
    (void)message;
    *size = len;
    return FK_OK;
}

static fk_err basic_encode(const fk_codec *codec, const void *message, size_t len,
                           unsigned char *to, size_t size)
{
    uint64_t word;
    uint32_t half;
    bool truth;
    FK_ASSERT(size == len);
    switch (codec->serializer) {
    case FK_SERIALIZER_LONG:
        memcpy(&word, message, sizeof(word));
        fk__store64(to, word);
        break;
    case FK_SERIALIZER_INT:
        memcpy(&half, message, sizeof(half));
        fk__store32(to, half);
        break;
    default:
        memcpy(&truth, message, sizeof(truth));
        to[0] = truth;
        break;
    }
    return FK_OK;
}

static fk_err basic_decode(const fk_codec *codec, fk_str bytes, void *message)
{
    if (bytes.len < codec->type->size) return FK_E_TRUNCATED;
    if (bytes.len > codec->type->size) return FK_E_MALFORMED;
    uint64_t word = codec->serializer == FK_SERIALIZER_LONG ? fk__load64(bytes.ptr) : 0;
    uint32_t half = codec->serializer == FK_SERIALIZER_INT ? fk__load32(bytes.ptr) : 0;
    switch (codec->serializer) {
    case FK_SERIALIZER_LONG: memcpy(message, &word, sizeof(word)); break;
    case FK_SERIALIZER_INT: memcpy(message, &half, sizeof(half)); break;
    default:
        if ((unsigned char)bytes.ptr[0] > 1) return FK_E_MALFORMED;
        memcpy(message, bytes.ptr, 1);
        break;
    }
    return FK_OK;
}

_Static_assert(sizeof(fk_boolean) == 1, "a boolean is a byte on the wire");

#define BASIC_NUMBER(name, ID, of)                                                                 \
    static const fk_codec name = { .serializer = (ID),                                             \
                                   .type = &(of),                                                  \
                                   .measure = basic_measure,                                       \
                                   .encode = basic_encode,                                         \
                                   .decode = basic_decode }
#define BASIC_VERBATIM(name, ID, of)                                                               \
    static const fk_codec name = { .serializer = (ID), .type = &(of) }

BASIC_NUMBER(CODEC_INT, FK_SERIALIZER_INT, fk_type_fk_int);
BASIC_NUMBER(CODEC_LONG, FK_SERIALIZER_LONG, fk_type_fk_long);
BASIC_NUMBER(CODEC_BOOLEAN, FK_SERIALIZER_BOOLEAN, fk_type_fk_boolean);
BASIC_VERBATIM(CODEC_TEXT, FK_SERIALIZER_TEXT, fk_type_text);
BASIC_VERBATIM(CODEC_BYTES, FK_SERIALIZER_BYTES, fk_type_bytes);
BASIC_VERBATIM(CODEC_TELEGRAM, FK_SERIALIZER_CLUSTER, fk__type_telegram);
BASIC_VERBATIM(CODEC_BYTE_STRING, FK_SERIALIZER_BYTE_STRING, fk_type_bytes);

#undef BASIC_NUMBER
#undef BASIC_VERBATIM

/* The first one of a type writes it: bytes before byte string. */
const fk_codec *const fk__codecs_basic[] = { &CODEC_TEXT,    &CODEC_BYTES, &CODEC_BYTE_STRING,
                                             &CODEC_INT,     &CODEC_LONG,  &CODEC_BOOLEAN,
                                             &CODEC_TELEGRAM };
const uint32_t fk__codecs_basic_count = sizeof(fk__codecs_basic) / sizeof(fk__codecs_basic[0]);

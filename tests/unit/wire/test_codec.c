/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Codecs as a user sees them. */

#include "fraktor/codec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "wire/codec.h"

typedef struct deposit {
    uint8_t kind;
    int64_t amount;
    bool is_final;
    char account[3];
    uint16_t parts[2];
    double rate;
} deposit;
FK_MESSAGE(deposit);
FK_CODEC_STRUCT(deposit, 1, FK_FIELD(deposit, kind), FK_FIELD(deposit, amount),
                FK_FIELD(deposit, is_final), FK_FIELD_ARRAY(deposit, account),
                FK_FIELD_ARRAY(deposit, parts), FK_FIELD(deposit, rate));

typedef struct point {
    int32_t x, y;
} point;
FK_MESSAGE(point);
FK_CODEC_PLAIN(point, 7);

static fk_codecs codecs;
static void *memory;

static void begin(uint32_t count_max)
{
    free(memory);
    memory = malloc(fk_codecs_memory(count_max));
    fk_codecs_init(&codecs, count_max, memory);
}

/* Through the whole set: by type into bytes, by id and manifest back. */
static void check_round(const fk_type *type, const void *message, size_t len, const char *hex)
{
    const fk_codec *codec = NULL;
    size_t size;
    CHECK_OK(fk_codecs_of_type(&codecs, type, &codec, NULL));
    CHECK_OK(fk_codec_measure(codec, message, len, &size));
    unsigned char *bytes = malloc(size + 1);
    CHECK_OK(fk_codec_encode(codec, message, len, bytes, size));
    char *text = hex_text((fk_str){ (const char *)bytes, size });
    CHECK_STR(text, hex);
    fk_str manifest = fk_codec_manifest(codec);
    const fk_codec *back = NULL;
    CHECK_OK(fk_codecs_of_wire(&codecs, codec->serializer, manifest, &back, NULL));
    CHECK(back == codec);
    unsigned char *copy = malloc(len + 1);
    memset(copy, 0xee, len + 1);
    CHECK_OK(fk_codec_decode(back, (fk_str){ (const char *)bytes, size }, copy, NULL));
    CHECK_U64(copy[len], 0xee);
    CHECK(memcmp(copy, message, len) == 0);
    free(bytes);
    free(copy);
    free(text);
}

static void check_refused(const fk_codec *codec, const char *hex, fk_err err, size_t at)
{
    unsigned char message[64];
    fk_codec_fault fault = { .err = FK_OK };
    fk_str bytes = hex_bytes(fk_str_of(hex));
    fk_err actual = fk_codec_decode(codec, bytes, message, &fault);
    if (actual != err || fault.err != err || fault.at != at) {
        test_failed(hex, 0, "%s at %d (%s)", fk_err_name(actual), (int)fault.at, fault.message);
    }
    CHECK_U64(fault.serializer, codec->serializer);
    CHECK(fault.message != NULL);
    CHECK_ERR(fk_codec_decode(codec, bytes, message, NULL), err);
    free((void *)(uintptr_t)bytes.ptr);
}

/* ---- what is there from the start --------------------------------------------------------------- */

TEST(codec_of_text_bytes_and_numbers_is_pekkos)
{
    begin(0);
    check_round(&fk_type_text, "hello", 5, "68656c6c6f");
    check_round(&fk_type_text, "", 0, "");
    check_round(&fk_type_bytes, "\0\xff", 2, "00ff");
    check_round(&fk_type_fk_int, &(fk_int){ -2 }, sizeof(fk_int), "feffffff");
    check_round(&fk_type_fk_long, &(fk_long){ 0x0102030405060708 }, sizeof(fk_long),
                "0807060504030201");
    check_round(&fk_type_fk_boolean, &(fk_boolean){ true }, sizeof(fk_boolean), "01");
    check_round(&fk_type_fk_boolean, &(fk_boolean){ false }, sizeof(fk_boolean), "00");
}

TEST(codec_ids_are_pekkos)
{
    static const struct {
        int32_t serializer;
        const fk_type *type;
        bool verbatim;
    } IDS[] = { { 4, &fk_type_bytes, true },    { 18, &fk_type_fk_long, false },
                { 19, &fk_type_fk_int, false }, { 20, &fk_type_text, true },
                { 21, &fk_type_bytes, true },   { 35, &fk_type_fk_boolean, false } };
    begin(0);
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        const fk_codec *codec = NULL;
        CHECK_OK(fk_codecs_of_wire(&codecs, IDS[i].serializer, FK_STR(""), &codec, NULL));
        CHECK(codec->type == IDS[i].type);
        CHECK(fk_codec_is_verbatim(codec) == IDS[i].verbatim);
    }
    const fk_codec *codec = NULL;
    CHECK_OK(fk_codecs_of_type(&codecs, &fk_type_bytes, &codec, NULL));
    CHECK_U64(codec->serializer, FK_SERIALIZER_BYTES);
}

TEST(codec_of_numbers_refuses_other_lengths)
{
    static const int32_t IDS[] = { FK_SERIALIZER_INT, FK_SERIALIZER_LONG, FK_SERIALIZER_BOOLEAN };
    begin(0);
    for (size_t i = 0; i < 3; i++) {
        const fk_codec *codec = NULL;
        CHECK_OK(fk_codecs_of_wire(&codecs, IDS[i], FK_STR(""), &codec, NULL));
        check_refused(codec, "", FK_E_TRUNCATED, 0);
        check_refused(codec, "000000000000000000", FK_E_MALFORMED, 0);
    }
    const fk_codec *codec = NULL;
    CHECK_OK(fk_codecs_of_wire(&codecs, FK_SERIALIZER_BOOLEAN, FK_STR(""), &codec, NULL));
    check_refused(codec, "02", FK_E_MALFORMED, 0);
}

/* ---- structs ------------------------------------------------------------------------------------ */

#define DEPOSIT_BODY                                                                               \
    "05"                                                                                           \
    "0102000000000000"                                                                             \
    "01"                                                                                           \
    "616263"                                                                                       \
    "0200feff"                                                                                     \
    "000000000000f03f"

static deposit sample(int filling)
{
    deposit d;
    memset(&d, filling, sizeof(d)); /* what lies in the padding */
    d.kind = 5;
    d.amount = 0x201;
    d.is_final = true;
    memcpy(d.account, "abc", 3);
    d.parts[0] = 2;
    d.parts[1] = 0xfffe;
    d.rate = 1.0;
    return d;
}

static char *deposit_hex(int filling)
{
    deposit d = sample(filling);
    size_t size;
    unsigned char bytes[64];
    CHECK_OK(fk_codec_measure(&fk_codec_deposit, &d, sizeof(d), &size));
    CHECK_U64(size, 20 + 25);
    CHECK_OK(fk_codec_encode(&fk_codec_deposit, &d, sizeof(d), bytes, size));
    return hex_text((fk_str){ (const char *)bytes, size });
}

TEST(codec_of_a_struct_writes_fields_and_no_padding)
{
    char *one = deposit_hex(0), *other = deposit_hex(0xcc);
    CHECK_STR(one, other);
    CHECK_STR(one + 40, DEPOSIT_BODY);
    CHECK(strncmp(one,
                  "03000000"
                  "19000000"
                  "01000000",
                  24) == 0);
    begin(1);
    CHECK_OK(fk_codecs_add(&codecs, &fk_codec_deposit, NULL));
    deposit d = sample(0);
    check_round(&fk_type_deposit, &d, sizeof(d), one);
    free(one);
    free(other);
}

TEST(codec_of_a_plain_struct_writes_it_as_it_lies)
{
    begin(1);
    CHECK_OK(fk_codecs_add(&codecs, &fk_codec_point, NULL));
    point p = { 1, -1 };
    size_t size;
    unsigned char bytes[64];
    CHECK_OK(fk_codec_measure(&fk_codec_point, &p, sizeof(p), &size));
    CHECK_U64(size, 20 + sizeof(p));
    CHECK_OK(fk_codec_encode(&fk_codec_point, &p, sizeof(p), bytes, size));
    point q = { 0, 0 };
    CHECK_OK(fk_codec_decode(&fk_codec_point, (fk_str){ (const char *)bytes, size }, &q, NULL));
    CHECK(q.x == 1 && q.y == -1);
    CHECK_U64(bytes[2], _Alignof(point));
    CHECK_ERR(fk_codec_measure(&fk_codec_point, &p, 3, &size), FK_E_INVALID);
}

/* Each byte of the header and what it is for. */
TEST(codec_of_a_struct_refuses_what_was_declared_otherwise)
{
    static const struct {
        size_t at, fault_at;
        fk_err err;
    } BYTES[] = { { 0, 0, FK_E_MISMATCH },  { 1, 1, FK_E_MALFORMED }, { 2, 2, FK_E_MISMATCH },
                  { 3, 2, FK_E_MISMATCH },  { 4, 4, FK_E_MISMATCH },  { 7, 4, FK_E_MISMATCH },
                  { 8, 8, FK_E_MISMATCH },  { 11, 8, FK_E_MISMATCH }, { 12, 12, FK_E_MISMATCH },
                  { 19, 12, FK_E_MISMATCH } };
    char *good = deposit_hex(0);
    for (size_t i = 0; i < sizeof(BYTES) / sizeof(BYTES[0]); i++) {
        char *hex = strdup(good);
        hex[2 * BYTES[i].at + 1] = hex[2 * BYTES[i].at + 1] == '1' ? '2' : '1';
        check_refused(&fk_codec_deposit, hex, BYTES[i].err, BYTES[i].fault_at);
        free(hex);
    }
    char *hex = strdup(good);
    hex[1] = '4'; /* no such form */
    check_refused(&fk_codec_deposit, hex, FK_E_MALFORMED, 0);
    memcpy(hex, good, 2);
    hex[2 * (20 + 9) + 1] = '2'; /* a bool that is neither */
    check_refused(&fk_codec_deposit, hex, FK_E_MALFORMED, 29);
    free(hex);
    for (size_t len = 0; len < 45; len++) {
        hex = strdup(good);
        hex[2 * len] = '\0';
        check_refused(&fk_codec_deposit, hex, FK_E_TRUNCATED, len);
        free(hex);
    }
    hex = malloc(strlen(good) + 3);
    sprintf(hex, "%s00", good);
    check_refused(&fk_codec_deposit, hex, FK_E_MALFORMED, 45);
    free(hex);
    free(good);
}

/* The same name with another field, another order, another width. */
TEST(codec_of_a_struct_knows_its_fields)
{
    static const fk_field LESS[] = { FK_FIELD(deposit, kind), FK_FIELD(deposit, amount) };
    static const fk_field RENAMED[] = {
        { 0, 1, "sort", 1, false },     FK_FIELD(deposit, amount),
        FK_FIELD(deposit, is_final),    FK_FIELD_ARRAY(deposit, account),
        FK_FIELD_ARRAY(deposit, parts), FK_FIELD(deposit, rate)
    };
    fk_codec other = fk_codec_deposit;
    char *good = deposit_hex(0);
    other.fields = LESS;
    other.field_count = 2;
    check_refused(&other, good, FK_E_MISMATCH, 4);
    other.fields = RENAMED;
    other.field_count = 6;
    check_refused(&other, good, FK_E_MISMATCH, 12);
    free(good);
}

/* ---- the user's own ----------------------------------------------------------------------------- */

typedef struct word {
    char letters[8];
} word;
FK_MESSAGE(word);

static fk_err word_measure(const fk_codec *codec, const void *message, size_t len, size_t *size)
{
    (void)codec;
    (void)len;
    *size = strlen(((const word *)message)->letters);
    return FK_OK;
}

static fk_err word_encode(const fk_codec *codec, const void *message, size_t len, unsigned char *to,
                          size_t size)
{
    (void)codec;
    (void)len;
    memcpy(to, ((const word *)message)->letters, size);
    return FK_OK;
}

static fk_err word_decode(const fk_codec *codec, fk_str bytes, void *message)
{
    (void)codec;
    if (bytes.len >= sizeof(word)) return FK_E_LIMIT;
    memcpy(((word *)message)->letters, bytes.ptr, bytes.len);
    return FK_OK;
}

static const fk_codec WORD = { .serializer = FK_SERIALIZER_PROTOBUF,
                               .manifest = "example.Word",
                               .type = &fk_type_word,
                               .measure = word_measure,
                               .encode = word_encode,
                               .decode = word_decode };

TEST(codec_of_the_user_is_called)
{
    begin(2);
    CHECK_OK(fk_codecs_add(&codecs, &WORD, NULL));
    check_round(&fk_type_word, &(word){ "abc" }, sizeof(word), "616263");
    check_refused(&WORD, "6162636465666768", FK_E_LIMIT, 0);
}

TEST(codec_that_is_not_there_is_named)
{
    const fk_codec *codec = NULL;
    fk_codec_fault fault;
    begin(2);
    CHECK_OK(fk_codecs_add(&codecs, &WORD, NULL));
    CHECK_ERR(fk_codecs_of_wire(&codecs, 999, FK_STR("x.Y"), &codec, &fault), FK_E_NO_CODEC);
    CHECK_U64(fault.serializer, 999);
    CHECK(tsv_equal(fault.manifest, FK_STR("x.Y")));
    CHECK_STR(fault.message, "no codec has that serializer id");
    CHECK_ERR(fk_codecs_of_wire(&codecs, 2, FK_STR("x.Y"), &codec, &fault), FK_E_NO_CODEC);
    CHECK_STR(fault.message, "no codec of this serializer has that manifest");
    CHECK_ERR(fk_codecs_of_wire(&codecs, 20, FK_STR("x"), &codec, NULL), FK_E_NO_CODEC);
    CHECK_ERR(fk_codecs_of_type(&codecs, &fk_type_point, &codec, &fault), FK_E_NO_CODEC);
    CHECK(tsv_equal(fault.manifest, FK_STR("point")));
    CHECK_ERR(fk_codecs_of_type(&codecs, &fk_type_point, &codec, NULL), FK_E_NO_CODEC);
    CHECK(codec == NULL);
}

static void drop_nothing(void *message)
{
    (void)message;
}

static void check_not_added(fk_codec codec, fk_err err)
{
    fk_codec_fault fault = { .err = FK_OK };
    CHECK_ERR(fk_codecs_add(&codecs, &codec, &fault), err);
    CHECK_ERR(fault.err, err);
    CHECK(fault.message != NULL);
    CHECK_ERR(fk_codecs_add(&codecs, &codec, NULL), err);
}

TEST(codec_that_cannot_work_is_not_added)
{
    static const fk_type OWNER = { "point", sizeof(point), 4, drop_nothing };
    static const fk_field OVERLAP[] = { { 0, 4, "x", 4, false }, { 2, 4, "y", 4, false } };
    static const fk_field OUTSIDE[] = { { 4, 8, "x", 4, false } };
    static const fk_field FAR[] = { { UINT32_MAX, 8, "x", 4, false } };
    static const fk_field ODD[] = { { 0, 3, "x", 2, false } };
    static const fk_field WIDE[] = { { 0, 6, "x", 3, false } };
    const fk_field *const BAD[] = { OUTSIDE, FAR, ODD, WIDE };
    begin(1);
    fk_codec codec = WORD;
    codec.type = NULL;
    check_not_added(codec, FK_E_INVALID);
    codec = WORD;
    for (int32_t id = 0; id <= FK_SERIALIZER_RESERVED_MAX; id++) {
        codec.serializer = id;
        if (id != FK_SERIALIZER_PROTOBUF) check_not_added(codec, FK_E_INVALID);
    }
    codec = WORD;
    codec.manifest = "caf\xc3\xa9";
    check_not_added(codec, FK_E_INVALID);
    codec = WORD;
    codec.decode = NULL;
    check_not_added(codec, FK_E_INVALID);
    codec = (fk_codec){ .serializer = 99, .type = &fk_type_word }; /* a struct verbatim */
    check_not_added(codec, FK_E_INVALID);
    codec = fk_codec_point;
    codec.type = &OWNER;
    check_not_added(codec, FK_E_INVALID);
    codec = fk_codec_point;
    codec.manifest = "another";
    check_not_added(codec, FK_E_INVALID);
    codec = fk_codec_point;
    codec.fields = OVERLAP;
    codec.field_count = 2;
    check_not_added(codec, FK_E_INVALID);
    for (size_t i = 0; i < 4; i++) {
        codec.fields = BAD[i];
        codec.field_count = 1;
        check_not_added(codec, FK_E_INVALID);
    }
}

TEST(codecs_are_as_many_as_there_is_room_for)
{
    enum { MANY = 100 };
    static fk_codec codec[MANY];
    static char manifest[MANY][4];
    begin(MANY - 1);
    for (unsigned i = 0; i < MANY; i++) {
        codec[i] = WORD;
        manifest[i][0] = (char)('a' + i / 10);
        manifest[i][1] = (char)('0' + i % 10);
        codec[i].manifest = manifest[i];
        codec[i].serializer = -(int32_t)(i % 7) - 1;
        if (i == 5) {
            codec[i].manifest = manifest[4];
            codec[i].serializer = codec[4].serializer;
            check_not_added(codec[i], FK_E_NAME_TAKEN);
            continue;
        }
        CHECK_OK(fk_codecs_add(&codecs, &codec[i], NULL));
    }
    check_not_added(fk_codec_point, FK_E_LIMIT);
    for (unsigned i = 0; i < MANY; i++) {
        const fk_codec *found = NULL;
        CHECK_OK(fk_codecs_of_wire(&codecs, codec[i].serializer, fk_str_of(codec[i].manifest),
                                   &found, NULL));
        CHECK(found == &codec[i == 5 ? 4 : i]);
    }
    const fk_codec *writer = NULL;
    CHECK_OK(fk_codecs_of_type(&codecs, &fk_type_word, &writer, NULL));
    CHECK(writer == &codec[0]); /* the first one writes */
    free(memory);
    memory = NULL;
}

/* ---- references ------------------------------------------------------------------------------------ */

typedef struct letter {
    uint16_t number;
    fk_ref from;
    fk_ref copies[2];
} letter;
FK_MESSAGE(letter);
FK_CODEC_STRUCT(letter, 1, FK_FIELD(letter, number), FK_FIELD(letter, from),
                FK_FIELD_ARRAY(letter, copies));

/* Slot n is n letters; anything longer than nine is not known. */
static size_t text_of_ref(void *ctx, fk_ref ref, char *buf, size_t size)
{
    (void)ctx;
    if (ref.slot <= size) memset(buf, 'r', ref.slot);
    return ref.slot;
}

static fk_err ref_of_text(void *ctx, fk_str text, fk_ref *out)
{
    (void)ctx;
    *out = (fk_ref){ (uint32_t)text.len, 1, 1 };
    return text.len <= 9 ? FK_OK : FK_E_NAME;
}

TEST(codec_of_a_struct_with_references)
{
    static const fk_codec_refs REFS = { NULL, text_of_ref, ref_of_text };
    letter sent = { 7, { 3, 1, 1 }, { { 9, 1, 1 }, FK_REF_NONE } }, got;
    unsigned char bytes[64];
    fk_codec_fault fault;
    size_t size;
    CHECK_OK(fk__codec_measure(&fk_codec_letter, &REFS, &sent, sizeof(sent), &size));
    CHECK_U64(size, 20 + 2 + (2 + 3) + (2 + 9) + 2);
    CHECK_OK(fk__codec_encode(&fk_codec_letter, &REFS, &sent, sizeof(sent), bytes, size));
    fk_str all = { (const char *)bytes, size };
    CHECK_OK(fk__codec_decode(&fk_codec_letter, &REFS, all, &got, &fault));
    CHECK(got.number == 7 && got.from.slot == 3 && got.copies[0].slot == 9);
    CHECK(fk_ref_is_none(got.copies[1]));
    for (size_t cut = 0; cut < size; cut++) {
        CHECK(fk__codec_decode(&fk_codec_letter, &REFS, (fk_str){ all.ptr, cut }, &got, &fault) !=
              FK_OK);
        fk_str less = { all.ptr, cut }; /* and if the header agrees */
        unsigned char copy[64];
        memcpy(copy, bytes, size);
        if (cut >= 20) fk__store32(copy + 4, (uint32_t)(cut - 20));
        less.ptr = (const char *)copy;
        CHECK(fk__codec_decode(&fk_codec_letter, &REFS, less, &got, &fault) != FK_OK);
    }
    sent.copies[0].slot = 10;
    CHECK_ERR(fk__codec_encode(&fk_codec_letter, &REFS, &sent, sizeof(sent), bytes, size),
              FK_E_STATE); /* not what was measured */
    CHECK_OK(fk__codec_measure(&fk_codec_letter, &REFS, &sent, sizeof(sent), &size));
    CHECK_OK(fk__codec_encode(&fk_codec_letter, &REFS, &sent, sizeof(sent), bytes, size));
    all.len = size;
    CHECK_ERR(fk__codec_decode(&fk_codec_letter, &REFS, all, &got, &fault), FK_E_NAME);
    CHECK_U64(fault.at, 20 + 2 + 2 + 3);
    /* Only a system knows what a reference is. */
    CHECK_ERR(fk_codec_measure(&fk_codec_letter, &sent, sizeof(sent), &size), FK_E_UNSUPPORTED);
    CHECK_ERR(fk_codec_decode(&fk_codec_letter, all, &got, &fault), FK_E_UNSUPPORTED);
}

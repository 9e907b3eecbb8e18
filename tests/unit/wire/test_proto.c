/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The part of protobuf that there is, by a message made for the purpose. */

#include <stdlib.h>
#include <string.h>

#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "wire/proto.h"

typedef struct inner {
    uint32_t has;
    uint32_t small;
    fk_str text;
} inner;

typedef struct outer {
    uint32_t has;
    int32_t number;
    uint64_t large;
    fk_str text;
    bool truth;
    inner one;
    inner maybe;
    fk_proto_list words;
    fk_proto_list numbers;
    fk_proto_list inners;
} outer;

static const fk_proto_field INNER_FIELDS[] = {
    FK_PROTO_NUMBER(inner, 1, U32, REQUIRED, small, 1000),
    FK_PROTO_PLAIN(inner, 2, TEXT, OPTIONAL, text),
};
static const fk_proto_type INNER = FK_PROTO_TYPE(inner, INNER_FIELDS);

static const fk_proto_field OUTER_FIELDS[] = {
    FK_PROTO_PLAIN(outer, 1, U64, REQUIRED, large),
    FK_PROTO_PLAIN(outer, 2, I32, OPTIONAL, number),
    FK_PROTO_PLAIN(outer, 3, TEXT, OPTIONAL, text),
    FK_PROTO_PLAIN(outer, 4, BOOL, WRITTEN, truth),
    FK_PROTO_INNER(outer, 5, MESSAGE, OPTIONAL, one, &INNER),
    FK_PROTO_INNER(outer, 6, MESSAGE, OPTIONAL, maybe, &INNER),
    FK_PROTO_PLAIN(outer, 7, TEXTS, OPTIONAL, words),
    FK_PROTO_PLAIN(outer, 8, U32S, OPTIONAL, numbers),
    FK_PROTO_INNER(outer, 20, MESSAGES, OPTIONAL, inners, &INNER),
};
static const fk_proto_type OUTER = FK_PROTO_TYPE(outer, OUTER_FIELDS);

enum { HAS_NUMBER = 2, HAS_ONE = 16 };

static fk_str block;

/* The bytes live until the next call. */
static fk_err decode(const char *hex, outer *out, fk_wire_fault *fault)
{
    free((void *)(uintptr_t)block.ptr);
    block = hex_bytes(fk_str_of(hex));
    *fault = (fk_wire_fault){ FK_OK, 0, NULL };
    return fk__proto_decode(&OUTER, block, out, fault);
}

static outer read_hex(const char *hex)
{
    outer out;
    fk_wire_fault fault;
    fk_err err = decode(hex, &out, &fault);
    if (err != FK_OK) test_failed(hex, 0, "%s at %d", fault.message, (int)fault.at);
    return out;
}

static void check_refused(const char *hex, fk_err err, uint64_t at)
{
    outer out;
    fk_wire_fault fault;
    fk_err actual = decode(hex, &out, &fault);
    if (actual != err || fault.err != err || fault.at != at) {
        test_failed(hex, 0, "%s at %d, expected %s at %d", fk_err_name(actual), (int)fault.at,
                    fk_err_name(err), (int)at);
    }
    CHECK(fault.message != NULL);
    CHECK_ERR(fk__proto_decode(&OUTER, block, &out, NULL), err);
}

static void check_written(const outer *message, const char *hex)
{
    unsigned char bytes[128];
    size_t size = fk__proto_size(&OUTER, message);
    CHECK(size <= sizeof(bytes));
    fk__proto_encode(&OUTER, message, bytes, size);
    char *text = hex_text((fk_str){ (const char *)bytes, size });
    CHECK_STR(text, hex);
    free(text);
}

TEST(proto_numbers_of_all_lengths)
{
    CHECK_U64(read_hex("08 00").large, 0);
    CHECK_U64(read_hex("08 7f").large, 127);
    CHECK_U64(read_hex("08 8001").large, 128);
    CHECK_U64(read_hex("08 8000").large, 0); /* longer than need be, but legal */
    CHECK_U64(read_hex("08 ffffffffffffffffff01").large, UINT64_MAX);
    CHECK(read_hex("0800 10 feffffffffffffffff01").number == -2);
    CHECK(read_hex("0800 10 ffffffff07").number == INT32_MAX);
    check_refused("08 ffffffffffffffffff02", FK_E_MALFORMED, 1);
    check_refused("08 ffffffffffffffffff8101", FK_E_MALFORMED, 1);
    check_refused("08 ff", FK_E_TRUNCATED, 2);
    check_refused("08", FK_E_TRUNCATED, 1);
    check_refused("0800 10 ffffffff0f", FK_E_MALFORMED, 2); /* not the sign-extended form */
}

TEST(proto_numbers_beyond_their_field_are_refused)
{
    CHECK_U64(read_hex("0800 2a03 08e807").one.small, 1000);
    check_refused("0800 2a03 08e907", FK_E_MALFORMED, 4);
    check_refused("0800 20 02", FK_E_MALFORMED, 2);
    CHECK(read_hex("0800 20 01").truth);
}

TEST(proto_texts_are_views)
{
    outer out = read_hex("0800 1a 03 616263");
    CHECK(tsv_equal(out.text, FK_STR("abc")));
    CHECK(out.text.ptr == block.ptr + 4);
    CHECK_U64(read_hex("0800 1a 00").text.len, 0);
    CHECK(read_hex("0800").text.ptr == NULL);
    check_refused("0800 1a 04 616263", FK_E_TRUNCATED, 7);
    check_refused("0800 1a ffffffffffffffffff01 61", FK_E_TRUNCATED, 14);
}

TEST(proto_required_fields_must_be_there)
{
    check_refused("", FK_E_MALFORMED, 0);
    check_refused("1a00", FK_E_MALFORMED, 2);
    check_refused("0800 2a00", FK_E_MALFORMED, 4);
    check_refused("0800 2a02 1200 1a00", FK_E_MALFORMED, 6); /* at the end of the inner one */
}

TEST(proto_unknown_fields_are_skipped)
{
    outer out = read_hex("50 ffffffffffffffffff01 51 0102030405060708 5d 01020304 5a 02 ffff"
                         "0805 fa01 00 2a04 5000 0801");
    CHECK_U64(out.large, 5);
    CHECK_U64(out.one.small, 1);
    check_refused("0800 51 01020304050607", FK_E_TRUNCATED, 10);
    check_refused("0800 5d 010203", FK_E_TRUNCATED, 6);
    check_refused("0800 5a 03 ffff", FK_E_TRUNCATED, 6);
}

TEST(proto_keys_that_nobody_may_write)
{
    check_refused("0800 00 00", FK_E_MALFORMED, 2); /* field 0 */
    check_refused("0800 53 54", FK_E_MALFORMED, 2); /* a group */
    check_refused("0800 56", FK_E_MALFORMED, 2);    /* wire type 6 */
    check_refused("0800 57", FK_E_MALFORMED, 2);
    check_refused("0800 8080808010 00", FK_E_MALFORMED, 2); /* beyond 32 bits */
    check_refused("0a 01 00", FK_E_MALFORMED, 0);           /* a number as bytes */
    check_refused("0800 18 01", FK_E_MALFORMED, 2);         /* a text as a number */
    check_refused("0800 28 01", FK_E_MALFORMED, 2);         /* a message as a number */
    check_refused("0800 42 0101", FK_E_MALFORMED, 2);       /* numbers in a pack */
}

TEST(proto_field_that_comes_twice_counts_as_it_came_last)
{
    outer out = read_hex("0801 1a0161 0802 1a0162 2a05 0807 120178 2a02 0809");
    CHECK_U64(out.large, 2);
    CHECK(tsv_equal(out.text, FK_STR("b")));
    CHECK_U64(out.one.small, 9);
    CHECK(out.one.text.ptr == NULL); /* the message as a whole */
}

TEST(proto_lists_are_walked)
{
    outer out = read_hex("3a0161 4001 0800 3a00 40ac02 3a0162 a2010408011200");
    CHECK_U64(out.words.count, 3);
    CHECK_U64(out.numbers.count, 2);
    CHECK_U64(out.inners.count, 1);
    static const char *const WORDS[] = { "a", "", "b" };
    size_t cursor = 0, i = 0;
    fk_str word;
    while (fk__proto_next(&out.words, 7, &cursor, &word)) {
        CHECK(i < 3);
        CHECK(tsv_equal(word, fk_str_of(WORDS[i])));
        i++;
    }
    CHECK_U64(i, 3);
    uint32_t number;
    cursor = 0;
    CHECK(fk__proto_next(&out.numbers, 8, &cursor, &number));
    CHECK_U64(number, 1);
    CHECK(fk__proto_next(&out.numbers, 8, &cursor, &number));
    CHECK_U64(number, 300);
    CHECK(!fk__proto_next(&out.numbers, 8, &cursor, &number));
    cursor = 0;
    fk_proto_list none = { 0 };
    CHECK(!fk__proto_next(&none, 8, &cursor, &number));
}

TEST(proto_writes_what_is_there)
{
    static const fk_str WORDS[] = { { "a", 1 }, { NULL, 0 } };
    static const uint32_t NUMBERS[] = { 1, 300 };
    static const inner INNERS[] = { { .small = 1 }, { .small = 2, .text = { "z", 1 } } };
    check_written(&(outer){ .large = 0 }, "08002000");
    check_written(&(outer){ .large = UINT64_MAX, .has = HAS_NUMBER, .number = -1, .truth = true },
                  "08ffffffffffffffffff0110ffffffffffffffffff012001");
    check_written(&(outer){ .has = HAS_ONE, .one = { .small = 7, .text = { "x", 1 } } },
                  "080020002a050807120178");
    check_written(&(outer){ .text = { "hi", 2 },
                            .words = { .count = 2, .items = WORDS },
                            .numbers = { .count = 2, .items = NUMBERS },
                            .inners = { .count = 2, .items = INNERS } },
                  "08001a02686920003a01613a00400140ac02a201020801a201050802120"
                  "17a");
}

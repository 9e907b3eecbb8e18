/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Envelopes: what is refused, where, and what the writer refuses to write. */

#include <stdlib.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/tsv.h"
#include "wire/envelope.h"

static const fk_wire_envelope PLAIN = {
    .uid = 7,
    .serializer = 20,
    .sender = { .text = { "pekko://A/user/a", 16 } },
    .recipient = { .text = { "pekko://B/user/b", 16 } },
    .manifest = { .text = { "m", 1 } },
    .payload = { "hello", 5 },
};

enum { SENDER_AT = 28, RECIPIENT_AT = 46, MANIFEST_AT = 64, PAYLOAD_AT = 67 };

static char bytes[256];
static size_t bytes_len;

static void write_envelope(const fk_wire_envelope *e)
{
    size_t size;
    CHECK_OK(fk__frame_size(e, sizeof(bytes), &size));
    char *to = guard_buffer(size);
    fk__frame_encode(e, (unsigned char *)to);
    bytes_len = size - FK_FRAME_HEADER;
    memcpy(bytes, to + FK_FRAME_HEADER, bytes_len);
}

static void check_refused(fk_err err, uint64_t at)
{
    fk_wire_envelope e = { .uid = 99 };
    fk_wire_fault fault = { FK_OK, 0, NULL };
    fk_str frame = guard_text((fk_str){ bytes, bytes_len });
    CHECK_ERR(fk__envelope_decode(frame, &e, &fault), err);
    CHECK_ERR(fault.err, err);
    CHECK_U64(fault.at, at);
    CHECK(fault.message != NULL);
    CHECK_U64(e.uid, 99); /* untouched */
    CHECK_ERR(fk__envelope_decode(frame, &e, NULL), err);
}

static fk_wire_envelope read_back(void)
{
    fk_wire_envelope e;
    CHECK_OK(fk__envelope_decode(guard_text((fk_str){ bytes, bytes_len }), &e, NULL));
    return e;
}

TEST(envelope_of_texts_reads_as_written)
{
    write_envelope(&PLAIN);
    fk_wire_envelope e = read_back();
    CHECK_U64(e.uid, 7);
    CHECK_U64(e.serializer, 20);
    CHECK(tsv_equal(e.sender.text, PLAIN.sender.text));
    CHECK(tsv_equal(e.recipient.text, PLAIN.recipient.text));
    CHECK(tsv_equal(e.manifest.text, PLAIN.manifest.text));
    CHECK(tsv_equal(e.payload, PLAIN.payload));
    CHECK(!e.sender.is_compressed);
}

TEST(envelope_of_indices_has_no_texts)
{
    fk_wire_envelope out = PLAIN;
    out.sender = (fk_wire_name){ .index = 65535, .is_compressed = true };
    out.recipient = (fk_wire_name){ .index = 0, .is_compressed = true };
    out.manifest = (fk_wire_name){ .index = 256, .is_compressed = true };
    out.ref_table = 3;
    out.manifest_table = 127;
    write_envelope(&out);
    CHECK_U64(bytes_len, FK_ENVELOPE_FIXED + 5);
    fk_wire_envelope e = read_back();
    CHECK(e.sender.is_compressed && e.recipient.is_compressed && e.manifest.is_compressed);
    CHECK_U64(e.sender.index, 65535);
    CHECK_U64(e.recipient.index, 0);
    CHECK_U64(e.manifest.index, 256);
    CHECK_U64(e.ref_table, 3);
    CHECK_U64(e.manifest_table, 127);
    CHECK(tsv_equal(e.payload, FK_STR("hello")));
}

TEST(envelope_metadata_is_skipped_by_its_length)
{
    fk_wire_envelope out = PLAIN;
    out.flags = FK_ENVELOPE_METADATA;
    out.metadata = FK_STR("\3\0\0\4abc");
    write_envelope(&out);
    fk_wire_envelope e = read_back();
    CHECK(tsv_equal(e.metadata, out.metadata));
    CHECK(tsv_equal(e.sender.text, PLAIN.sender.text));
    CHECK(tsv_equal(e.payload, PLAIN.payload));
    fk__store32(bytes + FK_ENVELOPE_FIXED, 0x7fffffff);
    check_refused(FK_E_TRUNCATED, bytes_len);
    fk__store32(bytes + FK_ENVELOPE_FIXED, UINT32_MAX);
    check_refused(FK_E_TRUNCATED, bytes_len);
    bytes_len = FK_ENVELOPE_FIXED + 3;
    check_refused(FK_E_TRUNCATED, bytes_len);
    fk__store32(bytes + FK_ENVELOPE_FIXED, 6); /* the texts begin one byte too early */
    bytes_len = 100;
    check_refused(FK_E_MALFORMED, 16);
}

TEST(envelope_of_another_version_is_refused_before_anything_else)
{
    write_envelope(&PLAIN);
    bytes[0] = 1;
    check_refused(FK_E_PROTOCOL, 0);
    bytes[0] = (char)0xff;
    bytes_len = 1;
    check_refused(FK_E_PROTOCOL, 0);
}

TEST(envelope_that_is_cut_is_refused_where_it_ends)
{
    write_envelope(&PLAIN);
    for (size_t len = 0; len < PAYLOAD_AT; len++) {
        bytes_len = len;
        check_refused(FK_E_TRUNCATED, len);
    }
    bytes_len = PAYLOAD_AT; /* without payload it is whole */
    CHECK_U64(read_back().payload.len, 0);
}

TEST(envelope_text_must_be_where_its_tag_says)
{
    static const size_t TAGS[] = { 16, 20, 24 };
    for (size_t i = 0; i < 3; i++) {
        write_envelope(&PLAIN);
        bytes[TAGS[i]]++;
        check_refused(FK_E_MALFORMED, TAGS[i]);
        fk__store32(bytes + TAGS[i], 0);
        check_refused(FK_E_MALFORMED, TAGS[i]);
        fk__store32(bytes + TAGS[i], 0x00ffffff);
        check_refused(FK_E_MALFORMED, TAGS[i]);
    }
}

TEST(envelope_text_must_be_ascii_and_not_too_long)
{
    for (size_t i = 0; i < 16; i++) {
        write_envelope(&PLAIN);
        bytes[RECIPIENT_AT + 2 + i] = (char)0x80;
        check_refused(FK_E_MALFORMED, RECIPIENT_AT + 2 + i);
    }
    write_envelope(&PLAIN);
    fk__store16(bytes + SENDER_AT, 0x8000);
    check_refused(FK_E_LIMIT, SENDER_AT);
    fk__store16(bytes + SENDER_AT, 0x7fff);
    check_refused(FK_E_TRUNCATED, bytes_len);
}

/* Pekko looks at any of the eight bits, and at the low sixteen for the index. */
TEST(envelope_tag_with_any_high_bit_is_an_index)
{
    fk_wire_envelope out = PLAIN;
    out.sender = (fk_wire_name){ .index = 1, .is_compressed = true };
    for (unsigned bit = 24; bit < 32; bit++) {
        write_envelope(&out);
        fk__store32(bytes + 16, 1u << bit | 0x00010203);
        CHECK_U64(read_back().sender.index, 0x0203);
    }
}

TEST(envelope_writer_refuses_what_nobody_could_read)
{
    static char longest[FK_WIRE_LITERAL_MAX + 1];
    size_t size;
    fk_wire_envelope e = PLAIN;
    memset(longest, 'x', sizeof(longest));
    e.recipient.text = (fk_str){ longest, FK_WIRE_LITERAL_MAX };
    CHECK_OK(fk__frame_size(&e, FK_FRAME_MAX, &size));
    e.recipient.text.len++;
    CHECK_ERR(fk__frame_size(&e, FK_FRAME_MAX, &size), FK_E_LIMIT);
    e.recipient.text = FK_STR("caf\xc3\xa9");
    CHECK_ERR(fk__frame_size(&e, FK_FRAME_MAX, &size), FK_E_INVALID);
    e = PLAIN;
    e.metadata = FK_STR("x");
    CHECK_ERR(fk__frame_size(&e, FK_FRAME_MAX, &size), FK_E_INVALID);
}

TEST(envelope_size_is_exact_and_limited)
{
    size_t size = 0, all = PAYLOAD_AT + 5;
    CHECK_OK(fk__frame_size(&PLAIN, (uint32_t)all, &size));
    CHECK_U64(size, FK_FRAME_HEADER + all);
    CHECK_ERR(fk__frame_size(&PLAIN, (uint32_t)all - 1, &size), FK_E_LIMIT);
    CHECK_ERR(fk__frame_size(&PLAIN, 0, &size), FK_E_LIMIT);
    fk_wire_envelope e = PLAIN;
    e.payload = (fk_str){ NULL, SIZE_MAX };
    CHECK_ERR(fk__frame_size(&e, UINT32_MAX, &size), FK_E_LIMIT);
    e = PLAIN;
    e.flags = FK_ENVELOPE_METADATA;
    e.metadata = (fk_str){ NULL, SIZE_MAX };
    CHECK_ERR(fk__frame_size(&e, UINT32_MAX, &size), FK_E_LIMIT);
}

/* A payload that the caller writes itself, in its place between two frames. */
TEST(envelope_payload_may_be_written_later)
{
    unsigned char batch[256];
    fk_wire_envelope e = PLAIN;
    size_t first, second;
    memset(batch, '!', sizeof(batch));
    e.payload = (fk_str){ NULL, 4 };
    CHECK_OK(fk__frame_size(&e, FK_FRAME_MAX, &first));
    CHECK_OK(fk__frame_size(&PLAIN, FK_FRAME_MAX, &second));
    unsigned char *at = fk__frame_encode(&e, batch);
    CHECK(at == batch + first - 4);
    CHECK(memcmp(at, "!!!!", 4) == 0);
    memcpy(at, "late", 4);
    fk__frame_encode(&PLAIN, batch + first);
    CHECK_U64(batch[first + second], '!');
    CHECK_U64(fk__load32(batch), first - FK_FRAME_HEADER);
    CHECK_U64(fk__load32(batch + first), second - FK_FRAME_HEADER);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Connection headers and frames, whole and in pieces. */

#include <stdlib.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/wire_reader.h"
#include "wire/frame.h"

static fk_deframer d;
static fk_str frame;

static fk_deframe step(fk_str bytes)
{
    fk_str rest = guard_text(bytes);
    return fk__deframer_step(&d, &rest, &frame);
}

static void begin(const char *header)
{
    fk__deframer_init(&d);
    CHECK_U64(step((fk_str){ header, 5 }), FK_DEFRAME_STREAM);
}

static void check_fault(fk_str bytes, fk_err err, uint64_t at)
{
    wire_outcome outcome = wire_stream(bytes, (size_t[]){ 0 }, 64);
    CHECK_ERR(outcome.err, err);
    CHECK_U64(outcome.at, at);
}

TEST(frame_header_of_each_stream_and_magic)
{
    for (unsigned stream = FK_STREAM_CONTROL; stream < FK_STREAM_COUNT; stream++) {
        for (unsigned magic = 0; magic < FK_MAGIC_COUNT; magic++) {
            unsigned char header[FK_CONNECTION_HEADER];
            fk__connection_header_write((fk_wire_magic)magic, (fk_wire_stream)stream, header);
            begin((const char *)header);
            CHECK_U64(d.stream, stream);
            CHECK_U64(d.magic, magic);
            CHECK_OK(fk__deframer_end(&d, NULL));
        }
    }
}

TEST(frame_header_of_strangers_is_refused_at_the_first_wrong_byte)
{
    check_fault(FK_STR("GET / HTTP/1.1\r\n"), FK_E_MALFORMED, 0);
    check_fault(FK_STR("G"), FK_E_MALFORMED, 0);
    check_fault(FK_STR("PEKKA"), FK_E_MALFORMED, 4); /* the stream is 'A' */
    check_fault(FK_STR("PEAK\1"), FK_E_MALFORMED, 2);
    check_fault(FK_STR("AKKI"), FK_E_MALFORMED, 3);
    check_fault(FK_STR("AKKA\0"), FK_E_MALFORMED, 4);
    check_fault(FK_STR("PEKK\4"), FK_E_MALFORMED, 4);
    check_fault(FK_STR("PEKK\xff"), FK_E_MALFORMED, 4);
}

TEST(frame_that_is_whole_is_not_copied)
{
    fk_str rest = guard_text(FK_STR("\3\0\0\0abc\1\0\0\0d"));
    const char *start = rest.ptr;
    fk__deframer_init(&d);
    fk_str header = FK_STR("PEKK\2");
    CHECK_U64(fk__deframer_step(&d, &header, &frame), FK_DEFRAME_STREAM);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_FRAME);
    CHECK(frame.ptr == start + 4 && frame.len == 3);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_FRAME);
    CHECK(frame.ptr == start + 11 && frame.len == 1);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_MORE);
    CHECK_U64(d.offset, 17);
}

TEST(frame_in_pieces_asks_for_room_once)
{
    char room[8];
    begin("PEKK\1");
    CHECK_U64(step(FK_STR("\5\0")), FK_DEFRAME_MORE);
    CHECK_U64(step(FK_STR("\0\0")), FK_DEFRAME_MORE);
    CHECK_U64(d.frame_len, 5);
    fk_str rest = FK_STR("ab");
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_ROOM);
    CHECK_U64(rest.len, 2);
    fk__deframer_lend(&d, room, sizeof(room));
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_MORE);
    CHECK_U64(step(FK_STR("cde")), FK_DEFRAME_FRAME);
    CHECK(frame.ptr == room && memcmp(room, "abcde", 5) == 0);
    CHECK_U64(step(FK_STR("\4\0\0\0x")), FK_DEFRAME_MORE); /* there is room now */
    CHECK_U64(step(FK_STR("yz!")), FK_DEFRAME_FRAME);
    CHECK(memcmp(frame.ptr, "xyz!", 4) == 0);
}

/* Before a byte of it is kept, or asked for. */
TEST(frame_of_no_bytes_or_too_many_is_refused_by_its_length)
{
    check_fault(FK_STR("PEKK\1\0\0\0\0"), FK_E_MALFORMED, 5);
    check_fault(FK_STR("PEKK\1\1\0\0\0x\0\0\0\0"), FK_E_MALFORMED, 10);
    check_fault(FK_STR("PEKK\1\x41\0\0\0"), FK_E_LIMIT, 5);
    check_fault(FK_STR("PEKK\1\xff\xff\xff\xff"), FK_E_LIMIT, 5);
    begin("PEKK\1");
    CHECK_U64(step(FK_STR("\0\0\0\0")), FK_DEFRAME_FAULT);
    CHECK_U64(step(FK_STR("\1\0\0\0x")), FK_DEFRAME_FAULT); /* for good */
    CHECK_ERR(fk__deframer_end(&d, NULL), FK_E_MALFORMED);
}

TEST(frame_limits_are_those_of_the_stream)
{
    static const struct {
        const char *header;
        uint32_t max;
    } STREAMS[] = { { "PEKK\1", 256 << 10 }, { "PEKK\2", 256 << 10 }, { "AKKA\3", 2 << 20 } };
    for (size_t i = 0; i < 3; i++) {
        for (uint32_t over = 0; over < 2; over++) {
            unsigned char len[FK_FRAME_HEADER];
            begin(STREAMS[i].header);
            fk__frame_header_write(STREAMS[i].max + over, len);
            fk_deframe result = step((fk_str){ (const char *)len, sizeof(len) });
            CHECK_U64(result, over != 0 ? FK_DEFRAME_FAULT : FK_DEFRAME_MORE);
            if (over != 0) CHECK_ERR(d.fault.err, FK_E_LIMIT);
        }
    }
    begin("PEKK\2");
    d.frame_max[FK_STREAM_ORDINARY] = 2; /* as before a handshake */
    CHECK_U64(step(FK_STR("\3\0\0\0")), FK_DEFRAME_FAULT);
}

TEST(frame_that_is_cut_by_the_end_is_a_fault)
{
    fk_str whole = FK_STR("PEKK\1\3\0\0\0abc\2\0\0\0de");
    for (size_t len = 0; len <= whole.len; len++) {
        wire_outcome outcome = wire_stream((fk_str){ whole.ptr, len }, (size_t[]){ 0 }, 64);
        bool complete = len == 0 || len == 5 || len == 12 || len == whole.len;
        CHECK_ERR(outcome.err, complete ? FK_OK : FK_E_TRUNCATED);
        CHECK_U64(outcome.at, len);
    }
}

/* Two cuts at every pair of places: three pieces, of which some are empty. */
TEST(frame_stream_is_the_same_however_it_is_cut)
{
    fk_str whole = FK_STR("AKKA\3\1\0\0\0a\7\0\0\0bcdefgh\2\0\0\0ij\1\0\0\0k");
    wire_outcome expected = wire_stream(whole, (size_t[]){ 0 }, 64);
    CHECK_OK(expected.err);
    CHECK_U64(expected.frames, 4);
    for (size_t one = 1; one < whole.len; one++) {
        for (size_t two = one; two < whole.len; two++) {
            wire_outcome outcome = wire_stream(whole, (size_t[]){ one, two, 0 }, 64);
            CHECK_OK(outcome.err);
            CHECK_U64(outcome.frames, expected.frames);
            CHECK_U64(outcome.checksum, expected.checksum);
        }
    }
}

TEST(frame_stream_comes_byte_by_byte)
{
    fk_str whole = FK_STR("AKKA\3\1\0\0\0a\7\0\0\0bcdefgh\2\0\0\0ij");
    size_t cuts[64] = { 0 };
    for (size_t i = 0; i + 1 < whole.len; i++) cuts[i] = i + 1;
    wire_outcome outcome = wire_stream(whole, cuts, 64);
    CHECK_OK(outcome.err);
    CHECK_U64(outcome.checksum, wire_stream(whole, (size_t[]){ 0 }, 64).checksum);
}

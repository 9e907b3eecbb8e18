/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The byte-exact samples of the protocol (artery_frame.tsv: all rows), both ways: what a row says is
 * made here from its parts and must be written as those bytes; and those bytes, read and written
 * again, must be the same. Since nothing that differs is written alike, what was read was right.
 */

#include <stdlib.h>
#include <string.h>

#include "support/hex.h"
#include "support/test.h"
#include "support/tsv.h"
#include "support/wire_reader.h"
#include "wire/control.h"
#include "wire/envelope.h"
#include "wire/sysmsg.h"

#define S(text)                                                                                    \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define UID_A 81985529216486895u
#define UID_B ((uint64_t)-2)
#define ADDRESS_A                                                                                  \
    {                                                                                              \
        .protocol = S("pekko"), .system = S("A"), .host = S("127.0.0.1"), .port = 17355            \
    }
#define ADDRESS_B                                                                                  \
    {                                                                                              \
        .protocol = S("pekko"), .system = S("B"), .host = S("127.0.0.1"), .port = 17356            \
    }
#define UNIQUE_A                                                                                   \
    {                                                                                              \
        .address = ADDRESS_A, .uid = UID_A                                                         \
    }
#define UNIQUE_B                                                                                   \
    {                                                                                              \
        .address = ADDRESS_B, .uid = UID_B                                                         \
    }
#define REF_B       "pekko://B@127.0.0.1:17356/user/b#7"
#define REF_WATCHER "pekko://A@127.0.0.1:17355/system/remote-watcher#9"
#define REF_ECHO    "pekko://B@127.0.0.1:17356/user/echo"
#define REF_ROOT    "pekko://B@127.0.0.1:17356/"

/* ---- messages ------------------------------------------------------------------------------- */

static const fk_str KEY_X[] = { S("x") };
static const uint32_t VALUE_0[] = { 0 };

static const struct {
    const char *id;
    fk_wire_control control;
} CONTROLS[] = {
    { "af020",
      { FK_CONTROL_HANDSHAKE_REQ, { .handshake = { .from = UNIQUE_A, .to = ADDRESS_B } } } },
    { "af021", { FK_CONTROL_HANDSHAKE_RSP, { .from = { .from = UNIQUE_B } } } },
    { "af024", { FK_CONTROL_NACK, { .ack = { .seq = 300, .from = UNIQUE_B } } } },
    { "af028", { FK_CONTROL_FLUSH, { .nothing = { 0 } } } },
    { "af029", { FK_CONTROL_FLUSH_ACK, { .flush_ack = { .expected = 4 } } } },
    { "af031", { FK_CONTROL_TERMINATING, { .from = { .from = UNIQUE_A } } } },
    { "af033",
      { FK_CONTROL_MANIFEST_TABLE,
        { .table = { .from = UNIQUE_A,
                     .origin_uid = UID_B,
                     .version = 1,
                     .keys = { .count = 1, .items = KEY_X },
                     .values = { .count = 1, .items = VALUE_0 } } } } },
};

static const struct {
    const char *id;
    fk_wire_sysmsg message;
} SYSMSGS[] = {
    { "af034",
      { .kind = FK_SYSMSG_WATCH,
        .watch = { .watchee = { .path = S(REF_B) }, .watcher = { .path = S(REF_WATCHER) } } } },
    { "af036", { .kind = FK_SYSMSG_SUSPEND } },
    { "af037", { .kind = FK_SYSMSG_TERMINATE } },
};

static const fk_wire_pattern TO_WATCHER[] = {
    { .kind = FK_PATTERN_NAME, .text = S("system") },
    { .kind = FK_PATTERN_NAME, .text = S("remote-watcher") },
};
static const fk_wire_pattern UP_AND_DOWN[] = {
    { .kind = FK_PATTERN_PARENT },
    { .kind = FK_PATTERN_GLOB, .text = S("a*") },
};

static const struct {
    const char *id;
    fk_wire_selection selection;
} SELECTIONS[] = {
    { "af041",
      { .serializer = FK_SERIALIZER_CONTROL,
        .manifest = S("m"),
        .patterns = { .count = 2, .items = TO_WATCHER } } },
    { "af042",
      { .serializer = 20, .message = S("hi"), .patterns = { .count = 2, .items = UP_AND_DOWN } } },
};

/* ---- envelopes ------------------------------------------------------------------------------ */

#define LITERAL(content)                                                                           \
    {                                                                                              \
        .text = S(content)                                                                         \
    }
#define INDEX(n)                                                                                   \
    {                                                                                              \
        .index = n, .is_compressed = true                                                          \
    }
#define SPEC "pekko://EnvelopeBufferSpec/uncompressable"

/* payload: the row of the message that it is. */
static const struct {
    const char *id;
    fk_wire_envelope envelope;
    const char *payload;
} ENVELOPES[] = {
    { "af043",
      { .uid = 42,
        .serializer = 4,
        .ref_table = 28,
        .manifest_table = 35,
        .sender = INDEX(0),
        .recipient = INDEX(1),
        .manifest = INDEX(1) },
      NULL },
    { "af044",
      { .uid = 42,
        .serializer = 4,
        .ref_table = 28,
        .manifest_table = 35,
        .sender = LITERAL(SPEC "0"),
        .recipient = LITERAL(SPEC "11"),
        .manifest = LITERAL("uncompressable3333") },
      NULL },
    { "af045",
      { .uid = 42,
        .serializer = 4,
        .ref_table = 28,
        .manifest_table = 35,
        .sender = INDEX(2),
        .recipient = LITERAL(SPEC "1"),
        .manifest = INDEX(1) },
      NULL },
    { "af046",
      { .uid = (uint64_t)1 << 63,
        .serializer = -1,
        .ref_table = 28,
        .manifest_table = 35,
        .sender = LITERAL(SPEC "0"),
        .recipient = INDEX(2),
        .manifest = LITERAL("longlonglongliteralmanifest") },
      NULL },
    { "af048", { .uid = 1, .serializer = 20, .recipient = LITERAL(REF_ECHO) }, NULL },
    { "af050", { .uid = UID_A, .serializer = 17, .manifest = LITERAL("d") }, "af020" },
    { "af053",
      { .uid = UID_A, .serializer = 20, .recipient = LITERAL(REF_ECHO), .payload = S("hello") },
      NULL },
    { "af054",
      { .uid = UID_A,
        .serializer = 6,
        .sender = LITERAL(REF_WATCHER),
        .recipient = LITERAL(REF_ROOT) },
      "af041" },
    { "af056",
      { .uid = UID_A, .serializer = 17, .recipient = LITERAL(REF_B), .manifest = LITERAL("j") },
      "af056" },
};

/* ---- making them ---------------------------------------------------------------------------- */

enum { SAMPLE_MAX = 512 };

typedef struct sample {
    wire_kind kind;
    fk_str manifest;
    unsigned char bytes[SAMPLE_MAX];
    size_t size;
} sample;

static bool make_control(const char *id, sample *out)
{
    for (size_t i = 0; i < sizeof(CONTROLS) / sizeof(CONTROLS[0]); i++) {
        if (strcmp(CONTROLS[i].id, id) != 0) continue;
        out->kind = WIRE_CONTROL;
        out->manifest = fk__control_manifest(CONTROLS[i].control.kind);
        out->size = fk__control_size(&CONTROLS[i].control);
        CHECK(out->size <= SAMPLE_MAX);
        fk__control_encode(&CONTROLS[i].control, out->bytes, out->size);
        return true;
    }
    return false;
}

static bool make_sysmsg(const char *id, sample *out)
{
    for (size_t i = 0; i < sizeof(SYSMSGS) / sizeof(SYSMSGS[0]); i++) {
        if (strcmp(SYSMSGS[i].id, id) != 0) continue;
        out->kind = WIRE_SYSMSG;
        out->size = fk__sysmsg_size(&SYSMSGS[i].message);
        CHECK(out->size <= SAMPLE_MAX);
        fk__sysmsg_encode(&SYSMSGS[i].message, out->bytes, out->size);
        return true;
    }
    return false;
}

static bool make_selection(const char *id, sample *out)
{
    for (size_t i = 0; i < sizeof(SELECTIONS) / sizeof(SELECTIONS[0]); i++) {
        if (strcmp(SELECTIONS[i].id, id) != 0) continue;
        out->kind = WIRE_SELECTION;
        out->size = fk__selection_size(&SELECTIONS[i].selection);
        CHECK(out->size <= SAMPLE_MAX);
        fk__selection_encode(&SELECTIONS[i].selection, out->bytes, out->size);
        return true;
    }
    return false;
}

/* The watch of af034 with number 1. */
static void make_numbered(sample *out)
{
    sample watch = { .size = 0 };
    CHECK(make_sysmsg("af034", &watch));
    fk_wire_control control = { FK_CONTROL_SYSTEM_MESSAGE,
                                { .system_message = {
                                      .message = { (const char *)watch.bytes, watch.size },
                                      .serializer = FK_SERIALIZER_SYSMSG,
                                      .seq = 1,
                                      .ack_to = UNIQUE_A } } };
    out->size = fk__control_size(&control);
    CHECK(out->size <= SAMPLE_MAX);
    fk__control_encode(&control, out->bytes, out->size);
}

static void make_message(const char *id, sample *out)
{
    *out = (sample){ .size = 0 };
    if (strcmp(id, "af056") == 0)
        make_numbered(out);
    else if (!make_control(id, out) && !make_sysmsg(id, out) && !make_selection(id, out))
        test_failed(id, 0, "no such message is made here");
}

static fk_str bytes_of(const sample *s)
{
    return (fk_str){ (const char *)s->bytes, s->size };
}

/* A whole frame; the payload is written in its place. */
static void make_frame(const char *id, sample *out)
{
    for (size_t i = 0; i < sizeof(ENVELOPES) / sizeof(ENVELOPES[0]); i++) {
        if (strcmp(ENVELOPES[i].id, id) != 0) continue;
        fk_wire_envelope e = ENVELOPES[i].envelope;
        sample payload = { .size = 0 };
        if (ENVELOPES[i].payload != NULL) {
            make_message(ENVELOPES[i].payload, &payload);
            e.payload = (fk_str){ NULL, payload.size };
        }
        CHECK_OK(fk__frame_size(&e, SAMPLE_MAX, &out->size));
        CHECK(out->size <= SAMPLE_MAX);
        unsigned char *at = fk__frame_encode(&e, out->bytes);
        memcpy(at, payload.bytes, payload.size);
        return;
    }
    test_failed(id, 0, "no such envelope is made here");
}

/* ---- comparing ------------------------------------------------------------------------------ */

static void check_same(const char *id, fk_str actual, fk_str expected)
{
    if (tsv_equal(actual, expected)) return;
    char *is = hex_text(actual), *should = hex_text(expected);
    test_failed(id, 0, "is       %s\nexpected %s", is, should);
}

static void check_proto(const char *id, fk_str bytes)
{
    sample made;
    make_message(id, &made);
    check_same(id, bytes_of(&made), bytes);
    fk_str again = wire_rewrite(made.kind, made.manifest, bytes);
    check_same(id, again, bytes);
    free((void *)(uintptr_t)again.ptr);
}

/* The rows of headers have no frame around them. */
static void check_envelope(const char *id, fk_str bytes, bool framed)
{
    sample made = { .size = 0 };
    make_frame(id, &made);
    fk_str all = bytes_of(&made);
    fk_str envelope = { all.ptr + FK_FRAME_HEADER, all.len - FK_FRAME_HEADER };
    check_same(id, framed ? all : envelope, bytes);
    CHECK_OK(wire_read(WIRE_ENVELOPE, FK_STR(""), envelope));
}

static void check_connection(const char *id, fk_str what, fk_str bytes)
{
    unsigned char made[FK_CONNECTION_HEADER];
    fk_wire_stream stream = (fk_wire_stream)(strstr(what.ptr, "stream=")[7] - '0');
    fk__connection_header_write(FK_MAGIC_AKKA, stream, made);
    check_same(id, (fk_str){ (const char *)made, sizeof(made) }, bytes);
    fk_deframer d;
    fk_str rest = bytes, frame;
    fk__deframer_init(&d);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), FK_DEFRAME_STREAM);
    CHECK_U64(d.stream, stream);
    CHECK_U64(d.magic, FK_MAGIC_AKKA);
}

static void check_frame_header(const char *id, fk_str what, fk_str bytes)
{
    unsigned char made[FK_FRAME_HEADER];
    uint32_t len = (uint32_t)strtoul(strchr(what.ptr, '=') + 1, NULL, 10);
    fk__frame_header_write(len, made);
    check_same(id, (fk_str){ (const char *)made, sizeof(made) }, bytes);
    fk_deframer d;
    fk_str header = FK_STR("PEKK\3"), rest = bytes, frame;
    fk__deframer_init(&d);
    CHECK_U64(fk__deframer_step(&d, &header, &frame), FK_DEFRAME_STREAM);
    CHECK_U64(fk__deframer_step(&d, &rest, &frame), len > 0 ? FK_DEFRAME_MORE : FK_DEFRAME_FAULT);
    CHECK_U64(d.frame_len, len);
}

TEST(vectors_are_written_and_read)
{
    static tsv t;
    tsv_open(&t, FK_SOURCE_DIR "/tests/vectors/artery_frame.tsv");
    while (tsv_next(&t)) {
        char id[16] = { 0 };
        memcpy(id, tsv_raw(&t, "id").ptr, 5);
        fk_str what = tsv_raw(&t, "what");
        fk_str bytes = hex_bytes(tsv_text(&t, "hex"));
        CHECK_U64(bytes.len, strtoul(tsv_raw(&t, "length").ptr, NULL, 10));
        if (tsv_is(&t, "kind", "connection-header"))
            check_connection(id, what, bytes);
        else if (tsv_is(&t, "kind", "frame-header"))
            check_frame_header(id, what, bytes);
        else if (tsv_is(&t, "kind", "proto"))
            check_proto(id, bytes);
        else
            check_envelope(id, bytes, tsv_is(&t, "kind", "frame"));
        free((void *)(uintptr_t)bytes.ptr);
    }
    CHECK(t.rows >= 34);
}

/* Frames one after the other in one buffer are a stream. */
TEST(vectors_of_frames_make_a_stream)
{
    static const char *const IDS[] = { "af050", "af053", "af054", "af056" };
    unsigned char stream[2048];
    size_t len = FK_CONNECTION_HEADER;
    fk__connection_header_write(FK_MAGIC_PEKKO, FK_STREAM_CONTROL, stream);
    for (size_t i = 0; i < 4; i++) {
        sample made = { .size = 0 };
        make_frame(IDS[i], &made);
        memcpy(stream + len, made.bytes, made.size);
        len += made.size;
    }
    wire_outcome outcome =
        wire_stream((fk_str){ (const char *)stream, len }, (size_t[]){ 0 }, FK_FRAME_MAX);
    CHECK_OK(outcome.err);
    CHECK_U64(outcome.frames, 4);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold for all envelopes, messages and streams: what was written is what is read. */

#include <string.h>

#include "property/wire_source.h"

static bool same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool same_name(const fk_wire_name *a, const fk_wire_name *b)
{
    if (a->is_compressed != b->is_compressed) return false;
    return a->is_compressed ? a->index == b->index : same(a->text, b->text);
}

/* Cuts, changes, doubles: whatever comes of it, reading must make sense of it or refuse it. */
static void read_damaged(property *p, wire_kind kind, fk_str manifest, fk_str bytes)
{
    size_t place = EDGE_COUNT - 1;
    char copy[2 * WIRE_POOL];
    for (unsigned round = 0; round < 4; round++) {
        size_t len = bytes.len;
        memcpy(copy, bytes.ptr, len);
        for (uint64_t i = test_random_below(&p->random, 4); i > 0 && len > 0; i--) {
            size_t at = test_random_below(&p->random, len);
            copy[at] = (char)(copy[at] ^ (int)(1 + test_random_below(&p->random, 255)));
        }
        if (test_random_below(&p->random, 3) == 0 && len > 0) {
            size_t at = test_random_below(&p->random, len),
                   n = test_random_below(&p->random, len - at);
            memmove(copy + at + n, copy + at, len - at); /* some bytes twice */
            len += n;
        }
        if (test_random_below(&p->random, 3) == 0) len = test_random_below(&p->random, len + 1);
        fk_str damaged = edge_copy(place, (fk_str){ copy, len });
        (void)wire_read(kind, manifest, damaged);
    }
}

/* ---- envelopes --------------------------------------------------------------------------------- */

static void envelope_round(property *p)
{
    static wire_source s;
    fk_wire_envelope back;
    size_t size;
    wire_source_init(&s, &p->random);
    fk_wire_envelope e = wire_source_envelope(&s);
    PROPERTY_CHECK(fk__frame_size(&e, FK_FRAME_MAX, &size) == FK_OK);
    unsigned char *bytes = (unsigned char *)edge_buffer(0, size);
    (void)fk__frame_encode(&e, bytes);
    fk_str frame =
        edge_copy(1, (fk_str){ (const char *)bytes + FK_FRAME_HEADER, size - FK_FRAME_HEADER });
    property_input(p, "frame", frame);
    PROPERTY_CHECK(fk__load32(bytes) == frame.len);
    PROPERTY_CHECK(fk__envelope_decode(frame, &back, NULL) == FK_OK);
    PROPERTY_CHECK(back.uid == e.uid && back.serializer == e.serializer && back.flags == e.flags);
    PROPERTY_CHECK(back.ref_table == e.ref_table && back.manifest_table == e.manifest_table);
    PROPERTY_CHECK(same_name(&back.sender, &e.sender));
    PROPERTY_CHECK(same_name(&back.recipient, &e.recipient));
    PROPERTY_CHECK(same_name(&back.manifest, &e.manifest));
    PROPERTY_CHECK(same(back.metadata, e.metadata) && same(back.payload, e.payload));
    read_damaged(p, WIRE_ENVELOPE, FK_STR(""), frame);
}

TEST(wire_envelopes_read_as_written)
{
    property_run("wire_envelopes", envelope_round);
}

/* ---- messages ---------------------------------------------------------------------------------- */

/* Writes at the edge of a buffer and gives the bytes at the edge of another. */
#define WRITE(name)                                                                                \
    static fk_str name##_write(const fk_wire_##name *m)                                            \
    {                                                                                              \
        size_t size = fk__##name##_size(m);                                                        \
        unsigned char *bytes = (unsigned char *)edge_buffer(0, size);                              \
        fk__##name##_encode(m, bytes, size);                                                       \
        return edge_copy(1, (fk_str){ (const char *)bytes, size });                                \
    }
WRITE(control)
WRITE(sysmsg)
WRITE(selection)
WRITE(misc)

static bool same_unique(const fk_wire_unique *a, const fk_wire_unique *b)
{
    return a->uid == b->uid && a->address.port == b->address.port &&
           same(a->address.protocol, b->address.protocol) &&
           same(a->address.system, b->address.system) && same(a->address.host, b->address.host);
}

static bool same_table(const fk_wire_advertisement *written, const fk_wire_advertisement *read)
{
    const fk_str *keys = written->keys.items;
    const uint32_t *values = written->values.items;
    fk_wire_pair pair = { 0 };
    uint32_t count = 0;
    for (; fk__advertisement_next(read, &pair); count++) {
        if (count == written->keys.count || !same(pair.key, keys[count])) return false;
        if (pair.value != values[count]) return false;
    }
    return count == written->keys.count && written->version == read->version &&
           written->origin_uid == read->origin_uid && same_unique(&written->from, &read->from);
}

static bool same_control(const fk_wire_control *a, const fk_wire_control *b)
{
    switch (a->kind) {
    case FK_CONTROL_REF_TABLE:
    case FK_CONTROL_MANIFEST_TABLE: return same_table(&a->as.table, &b->as.table);
    case FK_CONTROL_SYSTEM_MESSAGE:
        return same(a->as.system_message.message, b->as.system_message.message) &&
               same(a->as.system_message.manifest, b->as.system_message.manifest) &&
               a->as.system_message.serializer == b->as.system_message.serializer &&
               a->as.system_message.seq == b->as.system_message.seq &&
               same_unique(&a->as.system_message.ack_to, &b->as.system_message.ack_to);
    case FK_CONTROL_ACK:
    case FK_CONTROL_NACK:
        return a->as.ack.seq == b->as.ack.seq && same_unique(&a->as.ack.from, &b->as.ack.from);
    case FK_CONTROL_HEARTBEAT_RSP: return a->as.heartbeat_rsp.uid == b->as.heartbeat_rsp.uid;
    case FK_CONTROL_FLUSH_ACK: return a->as.flush_ack.expected == b->as.flush_ack.expected;
    case FK_CONTROL_QUARANTINED: return same_unique(&a->as.quarantined.to, &b->as.quarantined.to);
    case FK_CONTROL_HANDSHAKE_REQ: return a->as.handshake.to.port == b->as.handshake.to.port;
    default: return true; /* compared as bytes by wire_read() */
    }
}

static void control_round(property *p)
{
    static wire_source s;
    fk_wire_control back;
    wire_source_init(&s, &p->random);
    fk_wire_control c = wire_source_control(&s);
    fk_str manifest = fk__control_manifest(c.kind);
    fk_str bytes = control_write(&c);
    property_input(p, "control", bytes);
    PROPERTY_CHECK(fk__control_decode(manifest, bytes, &back, NULL) == FK_OK);
    PROPERTY_CHECK(back.kind == c.kind);
    PROPERTY_CHECK(same_control(&c, &back));
    PROPERTY_CHECK(wire_read(WIRE_CONTROL, manifest, bytes) == FK_OK);
    read_damaged(p, WIRE_CONTROL, manifest, bytes);
}

TEST(wire_control_messages_read_as_written)
{
    property_run("wire_control", control_round);
}

static void sysmsg_round(property *p)
{
    static wire_source s;
    fk_wire_sysmsg back;
    wire_source_init(&s, &p->random);
    fk_wire_sysmsg m = wire_source_sysmsg(&s);
    fk_str bytes = sysmsg_write(&m);
    property_input(p, "sysmsg", bytes);
    PROPERTY_CHECK(fk__sysmsg_decode(bytes, &back, NULL) == FK_OK);
    PROPERTY_CHECK(back.kind == m.kind);
    PROPERTY_CHECK(same(back.watch.watchee.path, m.watch.watchee.path));
    PROPERTY_CHECK(same(back.watch.watcher.path, m.watch.watcher.path));
    PROPERTY_CHECK(same(back.supervise.child.path, m.supervise.child.path));
    PROPERTY_CHECK(same(back.death.actor.path, m.death.actor.path));
    PROPERTY_CHECK(back.death.existence_confirmed == m.death.existence_confirmed);
    PROPERTY_CHECK(same(back.cause.message, m.cause.message));
    PROPERTY_CHECK(m.kind != FK_SYSMSG_FAILED || back.failed.uid == m.failed.uid);
    PROPERTY_CHECK(wire_read(WIRE_SYSMSG, FK_STR(""), bytes) == FK_OK);
    read_damaged(p, WIRE_SYSMSG, FK_STR(""), bytes);
}

TEST(wire_system_messages_read_as_written)
{
    property_run("wire_sysmsg", sysmsg_round);
}

static void selection_round(property *p)
{
    static wire_source s;
    fk_wire_selection back;
    fk_wire_pattern pattern;
    size_t cursor = 0;
    uint32_t count = 0;
    wire_source_init(&s, &p->random);
    fk_wire_selection out = wire_source_selection(&s);
    fk_str bytes = selection_write(&out);
    property_input(p, "selection", bytes);
    PROPERTY_CHECK(fk__selection_decode(bytes, &back, NULL) == FK_OK);
    PROPERTY_CHECK(back.serializer == out.serializer && back.fan_out == out.fan_out);
    PROPERTY_CHECK(same(back.message, out.message) && same(back.manifest, out.manifest));
    for (; fk__selection_next(&back, &cursor, &pattern); count++) {
        PROPERTY_CHECK(count < out.patterns.count);
        PROPERTY_CHECK(pattern.kind == s.patterns[count].kind);
        PROPERTY_CHECK(same(pattern.text, s.patterns[count].text));
    }
    PROPERTY_CHECK(count == out.patterns.count);
    PROPERTY_CHECK(wire_read(WIRE_SELECTION, FK_STR(""), bytes) == FK_OK);
    read_damaged(p, WIRE_SELECTION, FK_STR(""), bytes);
}

TEST(wire_selections_read_as_written)
{
    property_run("wire_selection", selection_round);
}

static void misc_round(property *p)
{
    static wire_source s;
    fk_wire_misc back;
    wire_source_init(&s, &p->random);
    fk_wire_misc m = wire_source_misc(&s);
    fk_str manifest = fk__misc_manifest(m.kind);
    fk_str bytes = misc_write(&m);
    property_input(p, "misc", bytes);
    PROPERTY_CHECK(fk__misc_decode(manifest, bytes, &back, NULL) == FK_OK);
    PROPERTY_CHECK(back.kind == m.kind);
    PROPERTY_CHECK(m.kind != FK_MISC_IDENTITY ||
                   same(back.as.identity.ref.path, m.as.identity.ref.path));
    PROPERTY_CHECK(wire_read(WIRE_MISC, manifest, bytes) == FK_OK);
    read_damaged(p, WIRE_MISC, manifest, bytes);
}

TEST(wire_misc_messages_read_as_written)
{
    property_run("wire_misc", misc_round);
}

/* ---- streams ----------------------------------------------------------------------------------- */

enum { STREAM_MAX = 2048, CUTS_MAX = 16 };

/* Frames of random bytes, some of it broken, in random pieces: the same as in one. */
static void stream_round(property *p)
{
    char bytes[STREAM_MAX] = "PEKK\2";
    size_t len = FK_CONNECTION_HEADER, cuts[CUTS_MAX + 1] = { 0 }, at = 0;
    while (len < STREAM_MAX - 256) {
        uint32_t frame = (uint32_t)(1 + test_random_below(&p->random, 200));
        fk__frame_header_write(frame, (unsigned char *)bytes + len);
        len += FK_FRAME_HEADER + frame;
    }
    if (test_random_below(&p->random, 4) == 0) {
        bytes[test_random_below(&p->random, len)] ^= (char)test_random_below(&p->random, 256);
    }
    if (test_random_below(&p->random, 2) == 0) len = test_random_below(&p->random, len + 1);
    for (unsigned i = 0; i < CUTS_MAX && at < len; i++) {
        at += 1 + test_random_below(&p->random, 300);
        cuts[i] = at;
    }
    fk_str stream = edge_copy(0, (fk_str){ bytes, len });
    property_input(p, "stream", stream);
    wire_outcome whole = wire_stream(stream, (size_t[]){ 0 }, 210);
    wire_outcome cut = wire_stream(stream, cuts, 210);
    PROPERTY_CHECK(whole.err == cut.err && whole.at == cut.at);
    PROPERTY_CHECK(whole.frames == cut.frames && whole.checksum == cut.checksum);
}

TEST(wire_streams_do_not_depend_on_their_pieces)
{
    property_run("wire_streams", stream_round);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "property/wire_source.h"

#include <string.h>

void wire_source_init(wire_source *s, test_random *random)
{
    s->random = random;
    s->used = 0;
}

static uint64_t below(wire_source *s, uint64_t n)
{
    return test_random_below(s->random, n);
}

static bool coin(wire_source *s)
{
    return below(s, 2) != 0;
}

/* Small ones, large ones, and those at the edges of a byte more. */
static uint64_t number(wire_source *s)
{
    uint64_t n = test_random_next(s->random) >> below(s, 64);
    return below(s, 4) == 0 ? ((uint64_t)1 << (7 * below(s, 10))) - below(s, 2) : n;
}

static fk_str text_of(wire_source *s, size_t least, unsigned first, unsigned count)
{
    size_t len = least + below(s, WIRE_TEXT_MAX - least);
    if (s->used + len > WIRE_POOL) len = least;
    char *start = s->pool + s->used;
    for (size_t i = 0; i < len; i++) start[i] = (char)(first + below(s, count));
    s->used += len;
    return (fk_str){ start, len };
}

static fk_str ascii(wire_source *s)
{
    return text_of(s, 0, ' ', 95);
}

static fk_str bytes(wire_source *s)
{
    return text_of(s, 0, 0, 256);
}

/* Not empty: where an empty one would mean that there is none. */
static fk_str some(wire_source *s)
{
    return text_of(s, 1, 0, 256);
}

static fk_wire_name name(wire_source *s)
{
    if (coin(s)) return (fk_wire_name){ .text = ascii(s) };
    return (fk_wire_name){ .index = (uint16_t)below(s, 65536), .is_compressed = true };
}

fk_wire_envelope wire_source_envelope(wire_source *s)
{
    fk_wire_envelope e = { .uid = number(s),
                           .serializer = (int32_t)number(s),
                           .flags = (uint8_t)below(s, 256),
                           .ref_table = (uint8_t)below(s, 256),
                           .manifest_table = (uint8_t)below(s, 256) };
    if ((e.flags & FK_ENVELOPE_METADATA) != 0) e.metadata = bytes(s);
    e.sender = name(s);
    e.recipient = name(s);
    e.manifest = name(s);
    e.payload = bytes(s);
    return e;
}

/* ---- parts ------------------------------------------------------------------------------------ */

static fk_wire_address address(wire_source *s)
{
    fk_wire_address a = { .port = (uint32_t)below(s, 65536) };
    a.protocol = bytes(s);
    a.system = bytes(s);
    a.host = bytes(s);
    return a;
}

static fk_wire_unique unique(wire_source *s)
{
    fk_wire_unique u = { .uid = number(s) };
    u.address = address(s);
    return u;
}

static fk_wire_ref ref(wire_source *s)
{
    return (fk_wire_ref){ .path = bytes(s) };
}

static fk_wire_payload payload(wire_source *s)
{
    fk_wire_payload p = { .serializer = (int32_t)number(s) };
    p.message = some(s);
    if (coin(s)) p.manifest = some(s);
    return p;
}

/* ---- messages --------------------------------------------------------------------------------- */

static void draw_table(wire_source *s, fk_wire_advertisement *table)
{
    uint32_t count = (uint32_t)below(s, WIRE_ITEMS_MAX + 1);
    table->from = unique(s);
    table->origin_uid = number(s);
    table->version = (uint32_t)below(s, 128);
    for (uint32_t i = 0; i < count; i++) {
        s->keys[i] = bytes(s);
        s->values[i] = (uint32_t)below(s, 65536);
    }
    table->keys = (fk_proto_list){ .count = count, .items = s->keys };
    table->values = (fk_proto_list){ .count = count, .items = s->values };
}

static void draw_numbered(wire_source *s, fk_wire_numbered *numbered)
{
    numbered->message = bytes(s);
    numbered->serializer = (int32_t)number(s);
    if (coin(s)) numbered->manifest = some(s);
    numbered->seq = number(s);
    numbered->ack_to = unique(s);
}

fk_wire_control wire_source_control(wire_source *s)
{
    fk_wire_control c = { .kind = (fk_control_kind)(1 + below(s, FK_CONTROL_COUNT - 1)) };
    switch (c.kind) {
    case FK_CONTROL_QUARANTINED:
        c.as.quarantined.from = unique(s);
        c.as.quarantined.to = unique(s);
        break;
    case FK_CONTROL_HANDSHAKE_REQ:
        c.as.handshake.from = unique(s);
        c.as.handshake.to = address(s);
        break;
    case FK_CONTROL_REF_TABLE:
    case FK_CONTROL_MANIFEST_TABLE: draw_table(s, &c.as.table); break;
    case FK_CONTROL_REF_TABLE_ACK:
    case FK_CONTROL_MANIFEST_TABLE_ACK:
        c.as.table_ack.from = unique(s);
        c.as.table_ack.version = (uint32_t)below(s, 128);
        break;
    case FK_CONTROL_SYSTEM_MESSAGE: draw_numbered(s, &c.as.system_message); break;
    case FK_CONTROL_ACK:
    case FK_CONTROL_NACK:
        c.as.ack.seq = number(s);
        c.as.ack.from = unique(s);
        break;
    case FK_CONTROL_HEARTBEAT_RSP: c.as.heartbeat_rsp.uid = number(s); break;
    case FK_CONTROL_FLUSH_ACK: c.as.flush_ack.expected = (int32_t)number(s); break;
    case FK_CONTROL_HEARTBEAT:
    case FK_CONTROL_FLUSH: break;
    default: c.as.from.from = unique(s); break;
    }
    return c;
}

fk_wire_sysmsg wire_source_sysmsg(wire_source *s)
{
    fk_wire_sysmsg m = { .kind = (uint32_t)below(s, FK_SYSMSG_COUNT) };
    switch ((fk_sysmsg_kind)m.kind) {
    case FK_SYSMSG_WATCH:
    case FK_SYSMSG_UNWATCH:
        m.watch.watchee = ref(s);
        m.watch.watcher = ref(s);
        break;
    case FK_SYSMSG_SUPERVISE:
        m.supervise.child = ref(s);
        m.supervise.is_async = coin(s);
        break;
    case FK_SYSMSG_DEATH:
        m.death.actor = ref(s);
        m.death.existence_confirmed = coin(s);
        m.death.address_terminated = coin(s);
        break;
    case FK_SYSMSG_SUSPEND:
    case FK_SYSMSG_TERMINATE: break;
    default:
        m.cause = payload(s);
        m.failed.child = ref(s);
        m.failed.uid = number(s);
        break;
    }
    return m;
}

fk_wire_selection wire_source_selection(wire_source *s)
{
    fk_wire_selection out = { .serializer = (int32_t)number(s), .fan_out = coin(s) };
    uint32_t count = (uint32_t)below(s, WIRE_ITEMS_MAX + 1);
    out.message = bytes(s);
    if (coin(s)) out.manifest = some(s);
    for (uint32_t i = 0; i < count; i++) {
        s->patterns[i] = (fk_wire_pattern){ .kind = (uint32_t)below(s, FK_PATTERN_COUNT) };
        if (s->patterns[i].kind != FK_PATTERN_PARENT) s->patterns[i].text = some(s);
    }
    out.patterns = (fk_proto_list){ .count = count, .items = s->patterns };
    return out;
}

fk_wire_misc wire_source_misc(wire_source *s)
{
    fk_wire_misc m = { .kind = (fk_misc_kind)(1 + below(s, FK_MISC_COUNT - 1)) };
    switch (m.kind) {
    case FK_MISC_IDENTIFY: m.as.identify.id = payload(s); break;
    case FK_MISC_IDENTITY:
        m.as.identity.id = payload(s);
        if (coin(s)) m.as.identity.ref.path = some(s);
        break;
    case FK_MISC_SUCCESS:
    case FK_MISC_FAILURE: m.as.status = payload(s); break;
    case FK_MISC_THROWABLE:
        m.as.throwable.class_name = bytes(s);
        if (coin(s)) m.as.throwable.message = some(s);
        break;
    case FK_MISC_REF: m.as.ref = ref(s); break;
    case FK_MISC_NOT_SERIALIZABLE:
        m.as.not_serializable.message = bytes(s);
        m.as.not_serializable.original_message = bytes(s);
        m.as.not_serializable.original_class = bytes(s);
        break;
    default: break;
    }
    return m;
}

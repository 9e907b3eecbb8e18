/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/switchboard.h"

#include <stdio.h>
#include <string.h>

/* ---- what the driver asks for ------------------------------------------------------------------- */

static fk_err on_connect(void *ctx, fk_conn_id conn, fk_str host, uint16_t port, bool is_wanted)
{
    switchboard *b = ctx;
    (void)is_wanted;
    CHECK(host.len == 8 && memcmp(host.ptr, "10.0.0.1", 8) == 0);
    b->caller[port].tried++;
    if (b->pending_count == 64) return FK_E_OS;
    b->pending[b->pending_count] = conn;
    b->pending_of[b->pending_count++] = port;
    return FK_OK;
}

static uint32_t number_of(switchboard *b, fk_conn_id conn)
{
    return (uint32_t)(uintptr_t)fk__map_get(&b->conns, conn);
}

/* Letters must be for actors of whoever gets them. */
static void count_letters(switchboard *b, uint32_t number, const unsigned char *bytes, size_t len)
{
    char port[16];
    snprintf(port, sizeof(port), "10.0.0.1:%u/", number);
    size_t at = memcmp(bytes, "AKKA", 4) == 0 || memcmp(bytes, "PEKK", 4) == 0 ? 5 : 0;
    while (at < len) {
        fk_wire_envelope e;
        fk_wire_fault fault;
        uint32_t size = fk__load32(bytes + at);
        CHECK_OK(fk__envelope_decode((fk_str){ (const char *)bytes + at + 4, size }, &e, &fault));
        at += 4 + size;
        if (e.serializer == FK_SERIALIZER_CONTROL) continue;
        char text[256];
        CHECK(e.recipient.text.len < sizeof(text));
        memcpy(text, e.recipient.text.ptr, e.recipient.text.len);
        text[e.recipient.text.len] = '\0';
        b->letters++;
        if (strstr(text, port) == NULL) b->mistaken++;
        if (b->on_letter != NULL) b->on_letter(number, &e);
    }
}

static bool on_write(void *ctx, fk_conn_id conn, const void *bytes, size_t len)
{
    switchboard *b = ctx;
    uint32_t number = number_of(b, conn);
    CHECK(number != 0);
    count_letters(b, number, bytes, len);
    return true;
}

static void forget_out(switchboard *b, fk_conn_id conn)
{
    caller *c = &b->caller[number_of(b, conn)];
    for (uint32_t kind = 0; kind < FK_STREAM_COUNT; kind++) {
        if (c->out[kind] == conn) c->out[kind] = 0;
    }
    fk__map_remove(&b->conns, conn);
}

static void on_close(void *ctx, fk_conn_id conn, bool gently)
{
    switchboard *b = ctx;
    (void)gently;
    for (uint32_t i = 0; i < b->pending_count; i++) {
        if (b->pending[i] == conn) b->pending[i] = 0;
    }
    if (fk__map_get(&b->conns, conn) != NULL) forget_out(b, conn);
}

static void on_wake(void *ctx)
{
    (void)ctx;
}

/* ---- life ------------------------------------------------------------------------------------------ */

void board_start(switchboard *b, uint32_t authorities_max)
{
    memset(b, 0, sizeof(*b));
    fk_system_config config = { .name = "us", .scheme = FK_SCHEME_TCP };
    config.remoting = (fk_remoting_config){ .enabled = true, .host = "127.0.0.1" };
    rig_start_with(&b->r, config);
    atomic_store(&b->r.now, FK_SECONDS(1000));
    b->remote = fk__remote_of(b->r.sys);
    b->driver = b->remote->driver;
    b->driver->transport = (fk_transport){ b, on_connect, on_write, on_close, on_wake, NULL, NULL };
    b->authorities_max = b->remote->table.config.authorities_max;
    if (authorities_max != 0) b->remote->table.config.authorities_max = authorities_max;
    board_run(b);
}

void board_stop(switchboard *b)
{
    fk__proxies_check(&b->remote->proxies);
    fk__authority_table_check(&b->remote->table);
    b->remote->table.config.authorities_max = b->authorities_max;
    fk_time left = FK_SECONDS(30); /* those that are connected are told, and do not answer */
    CHECK_OK(fk_terminate(b->r.sys));
    for (; left > 0; left -= FK_MILLIS(100)) board_pass(b, FK_MILLIS(100), FK_MILLIS(100));
    /* Only now: what was still waiting on lines has been written to those who are connected. */
    fk__map_fini(&b->driver->local->cache, &b->conns);
    rig_stop(&b->r);
}

static void connect_all(switchboard *b)
{
    for (uint32_t i = 0; i < b->pending_count; i++) {
        fk_conn_id conn = b->pending[i];
        uint32_t number = b->pending_of[i];
        fk_time now = atomic_load(&b->r.now);
        if (conn == 0) continue;
        if (b->caller[number].in == 0) {
            fk__driver_closed(b->driver, conn, FK_E_OS, FK_STR("nobody there"), now);
            continue;
        }
        const fk_stream *stream = fk__map_get(&b->driver->conns, conn);
        CHECK(stream != NULL);
        CHECK_OK(fk__map_reserve(&b->driver->local->cache, &b->conns, FK_SITE("test")));
        fk__map_put(&b->conns, conn, (void *)(uintptr_t)number);
        b->caller[number].out[stream->kind] = conn;
        fk__driver_connected(b->driver, conn, now);
    }
    b->pending_count = 0;
}

void board_run(switchboard *b)
{
    for (int i = 0; i < 16; i++) {
        fk_time now = atomic_load(&b->r.now);
        bool is_more = fk__driver_run(b->driver, now) <= now || b->pending_count != 0;
        connect_all(b);
        rig_run(&b->r);
        if (!is_more) break;
    }
}

void board_pass(switchboard *b, fk_time by, fk_time step)
{
    for (; by > 0; by -= step) {
        atomic_fetch_add(&b->r.now, step);
        board_run(b);
    }
}

/* ---- others ------------------------------------------------------------------------------------------ */

static fk_wire_unique unique(uint32_t number, uint32_t life)
{
    return (fk_wire_unique){ .address = { .protocol = FK_STR("fraktor"),
                                          .system = FK_STR("c"),
                                          .host = FK_STR("10.0.0.1"),
                                          .port = number },
                             .uid = number + 1000000ull * life };
}

static size_t frame_put(unsigned char *to, const fk_wire_control *control, uint64_t uid,
                        fk_str sender)
{
    size_t size;
    fk_wire_envelope e = { .uid = uid, .serializer = FK_SERIALIZER_CONTROL };
    e.manifest.text = fk__control_manifest(control->kind);
    e.sender.text = sender;
    e.payload.len = fk__control_size(control);
    CHECK_OK(fk__frame_size(&e, 4096, &size));
    fk__control_encode(control, fk__frame_encode(&e, to), e.payload.len);
    return size;
}

void board_meet(switchboard *b, uint32_t number, uint32_t life)
{
    unsigned char bytes[4200];
    const fk_system *sys = b->r.sys;
    caller *c = &b->caller[number];
    fk_time now = atomic_load(&b->r.now);
    CHECK(c->in == 0);
    c->in = ++b->next | FK_CONN_ACCEPTED;
    CHECK(fk__driver_accepted(b->driver, c->in, FK_STR("10.0.0.1:1"), now));
    fk_wire_control control = { .kind = FK_CONTROL_HANDSHAKE_REQ };
    control.as.handshake.from = unique(number, life);
    control.as.handshake.to = (fk_wire_address){ .protocol = FK_STR("fraktor"),
                                                 .system = sys->address.system,
                                                 .host = sys->address.host,
                                                 .port = sys->address.port };
    fk__connection_header_write(FK_MAGIC_PEKKO, FK_STREAM_CONTROL, bytes);
    size_t len = FK_CONNECTION_HEADER;
    len += frame_put(bytes + len, &control, control.as.handshake.from.uid, FK_STR(""));
    CHECK(fk__driver_read(b->driver, c->in, (fk_str){ (char *)bytes, len }, now));
    board_run(b);
    control = (fk_wire_control){ .kind = FK_CONTROL_HANDSHAKE_RSP };
    control.as.from.from = unique(number, life);
    len = frame_put(bytes, &control, control.as.from.from.uid, FK_STR(""));
    CHECK(fk__driver_read(b->driver, c->in, (fk_str){ (char *)bytes, len }, now));
    board_run(b);
}

void board_part(switchboard *b, uint32_t number)
{
    unsigned char bytes[4200];
    fk__remote_lock(b->remote); /* others may send to systems that are new */
    uint64_t uid = board_authority(b, number)->uid;
    fk__remote_unlock(b->remote);
    fk_wire_control control = { .kind = FK_CONTROL_TERMINATING };
    control.as.from.from = unique(number, 0);
    control.as.from.from.uid = uid;
    size_t len = frame_put(bytes, &control, uid, FK_STR("fraktor://c@10.0.0.1:1/system/x"));
    CHECK(fk__driver_read(b->driver, b->caller[number].in, (fk_str){ (char *)bytes, len },
                          atomic_load(&b->r.now)));
    board_run(b);
}

void board_drop(switchboard *b, uint32_t number)
{
    caller *c = &b->caller[number];
    fk_time now = atomic_load(&b->r.now);
    fk_conn_id in = c->in;
    c->in = 0;
    if (in != 0) fk__driver_closed(b->driver, in, FK_OK, FK_STR("closed by the peer"), now);
    for (uint32_t kind = 0; kind < FK_STREAM_COUNT; kind++) {
        fk_conn_id out = c->out[kind];
        if (out == 0) continue;
        forget_out(b, out);
        fk__driver_closed(b->driver, out, FK_OK, FK_STR("closed by the peer"), now);
    }
    board_run(b);
}

fk_authority *board_authority(switchboard *b, uint32_t number)
{
    fk_authority_key key = { FK_STR("c"), FK_STR("10.0.0.1"), (uint16_t)number };
    return fk__authority_find(&b->remote->table, &key);
}

fk_ref board_ref(switchboard *b, uint32_t number, bool is_held)
{
    char text[64];
    fk_path path;
    fk_ref ref;
    fk_str str = { text, (size_t)snprintf(text, sizeof(text), "fraktor.tcp://c@10.0.0.1:%u/user/x",
                                          number) };
    if (is_held) {
        CHECK_OK(fk_resolve(b->r.sys, str, &ref, NULL));
        return ref;
    }
    CHECK_OK(fk_path_parse(&b->r.sys->paths, str, &path, NULL));
    CHECK_OK(fk__remote_meet(b->remote, b->driver->local, &path, &ref));
    return ref;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/cable.h"

#include <stdio.h>
#include <stdlib.h>

#include "fraktor/host.h"
#include "remote/config.h"
#include "remote/remote.h"

#define MUST(condition) ((condition) ? (void)0 : die(__LINE__, #condition))

enum { FRAME_SIZE = 1 << 20 };

__attribute__((noreturn)) static void die(int line, const char *what)
{
    fprintf(stderr, "cable.c:%d: does not hold: %s\n", line, what);
    abort();
}

/* ---- the transport ------------------------------------------------------------------------------ */

static cable_conn *find(cable *c, fk_conn_id id)
{
    for (uint32_t i = 0; i < c->conns; i++) {
        if (c->conn[i].id == id) return &c->conn[i];
    }
    die(__LINE__, "a connection that nobody knows");
}

/* A place for one more; those that are over give theirs. */
static cable_conn *place(cable *c)
{
    for (uint32_t i = 0; i < c->conns && c->conns == CABLE_CONNS; i++) {
        cable_conn *conn = &c->conn[i];
        if (conn->is_open) continue;
        free(conn->bytes);
        *conn = (cable_conn){ .id = 0 };
        return conn;
    }
    MUST(c->conns < CABLE_CONNS);
    c->conn[c->conns] = (cable_conn){ .id = 0 };
    return &c->conn[c->conns++];
}

static fk_err on_connect(void *ctx, fk_conn_id id, fk_str host, uint16_t port, bool is_wanted)
{
    cable *c = ctx;
    c->connects++;
    MUST(id != 0 && (id & FK_CONN_ACCEPTED) == 0);
    for (uint32_t i = 0; i < c->conns; i++) MUST(c->conn[i].id != id || !c->conn[i].is_open);
    if (c->connect_err != FK_OK) return c->connect_err;
    cable_conn *conn = place(c);
    *conn = (cable_conn){ .id = id, .is_ours = true, .is_open = true, .port = port };
    conn->is_wanted = is_wanted;
    MUST(host.len > 0 && host.len < sizeof(conn->host));
    memcpy(conn->host, host.ptr, host.len);
    return FK_OK;
}

static void keep(cable_conn *conn, const void *bytes, size_t len)
{
    if (conn->len + len > conn->size) {
        conn->size = (conn->len + len) * 2;
        conn->bytes = realloc(conn->bytes, conn->size);
        MUST(conn->bytes != NULL);
    }
    memcpy(conn->bytes + conn->len, bytes, len);
    conn->len += len;
}

static bool on_write(void *ctx, fk_conn_id id, const void *bytes, size_t len)
{
    cable *c = ctx;
    cable_conn *conn = find(c, id);
    MUST(conn->is_open && conn->is_ours && conn->is_connected && conn->lent == NULL && len > 0);
    if (!c->lends) {
        keep(conn, bytes, len);
        return true;
    }
    conn->lent = bytes;
    conn->lent_len = len;
    return false;
}

static void on_close(void *ctx, fk_conn_id id, bool gently)
{
    cable_conn *conn = find(ctx, id);
    MUST(conn->is_open);
    conn->is_open = false;
    conn->is_closed = true;
    conn->was_gentle = gently;
    conn->lent = NULL;
}

static void on_wake(void *ctx)
{
    cable *c = ctx;
    c->is_woken = true;
}

/* ---- life ------------------------------------------------------------------------------------------ */

void cable_begin(cable *c, fk_system *sys, const fk_remoting_config *config)
{
    fk_remoting_config complete, asked = *config;
    fk_transport transport = { c, on_connect, on_write, on_close, on_wake, NULL, NULL };
    fk_remote *remote = fk__remote_of(sys);
    *c = (cable){ .sys = sys };
    asked.enabled = true;
    MUST(fk__remoting_configure(&asked, &complete) == FK_OK);
    MUST(fk__driver_create(remote, &complete) == FK_OK);
    c->driver = remote->driver;
    fk__driver_start(c->driver, &transport, sys->dispatch.worker[0]);
    cable_run(c);
}

void cable_end(cable *c)
{
    fk__driver_stop(c->driver);
    for (uint32_t i = 0; i < c->conns; i++) {
        MUST(!c->conn[i].is_open);
        free(c->conn[i].bytes);
    }
    c->conns = 0;
}

void cable_run(cable *c)
{
    for (uint32_t turn = 0;; turn++) {
        fk_time now = fk__system_now(c->sys);
        MUST(turn < CABLE_TURNS); /* else it would run for ever */
        c->is_woken = false;
        c->next = fk__driver_run(c->driver, now);
        bool has_run = false;
        while (fk_host_run_once(c->sys, 0) != 0) has_run = true;
        if (!has_run && !c->is_woken && c->next > now) break;
    }
    cable_check(c);
}

fk_time cable_next_at(const cable *c)
{
    return c->next;
}

void cable_check(const cable *c)
{
    fk_remote *remote = fk__remote_of(c->sys);
    const fk_driver *driver = c->driver;
    uint32_t guests = 0, half_open = 0, half = 0, queued = 0, room = 0;
    fk__authority_table_check(&remote->table);
    fk__proxies_check(&remote->proxies);
    fk__watcher_check(&driver->watcher);
    for (const fk_line *line = fk__driver_lines(driver); line != NULL; line = line->all_next) {
        fk__outbox_check(&line->outbox);
        if (line->samples != NULL) fk__watcher_node_check(&driver->watcher, &line->watching);
        uint32_t ready = 0;
        for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
            const fk_stream *stream = &line->stream[kind];
            ready += stream->ready.count;
            half += stream->is_half;
            queued += stream->is_queued;
            MUST(!stream->is_half || stream->conn != 0);
            MUST(!stream->is_queued || stream->conn == 0);
            MUST(stream->conn != 0 || (!stream->is_connected && !stream->is_lent));
            MUST(stream->conn != 0 || stream->buffer == NULL); /* nobody pays for who is gone */
            MUST(stream->len <= stream->size && stream->letters <= stream->len);
        }
        /* With nobody sending, what the gate counts is what is ready. */
        if (fk__word_load(&line->stack, FK_RELAXED) == 0)
            MUST(fk__word_load(&line->gate, FK_RELAXED) / FK_LINE_ONE == ready);
    }
    for (const fk_guest *guest = driver->guests; guest != NULL; guest = guest->next) {
        guests++;
        half_open += guest->close_at != FK_NEVER;
        room += guest->room_size;
    }
    MUST(half == driver->half_count && queued == driver->queued_count);
    MUST(half <= driver->config.connecting_max);
    MUST(room == driver->inbound_bytes && room <= driver->config.inbound_bytes_max);
    MUST(guests == driver->guest_count && half_open == driver->half_open_count);
    MUST(guests <= driver->config.connections_max && half_open <= driver->config.half_open_max);
    MUST(guests == cable_open_count(c, false));
}

/* ---- connections ------------------------------------------------------------------------------------ */

cable_conn *cable_accept(cable *c)
{
    cable_conn *conn = place(c);
    *conn = (cable_conn){ .id = FK_CONN_ACCEPTED | ++c->accepted, .is_open = true };
    if (fk__driver_accepted(c->driver, conn->id, FK_STR("10.0.0.2:40000"),
                            fk__system_now(c->sys))) {
        return conn;
    }
    conn->is_open = false;
    return NULL;
}

cable_conn *cable_waiting(cable *c)
{
    cable_conn *oldest = NULL;
    for (uint32_t i = 0; i < c->conns; i++) {
        cable_conn *conn = &c->conn[i];
        if (!conn->is_open || !conn->is_ours || conn->is_connected) continue;
        if (oldest == NULL || conn->id < oldest->id) oldest = conn;
    }
    return oldest;
}

void cable_connected(cable *c, cable_conn *conn)
{
    MUST(conn->is_open && conn->is_ours && !conn->is_connected);
    conn->is_connected = true;
    fk__driver_connected(c->driver, conn->id, fk__system_now(c->sys));
}

static void gone(cable *c, cable_conn *conn, fk_err err, const char *why)
{
    MUST(conn->is_open);
    conn->is_open = false;
    conn->lent = NULL;
    fk__driver_closed(c->driver, conn->id, err, fk_str_of(why), fk__system_now(c->sys));
}

void cable_failed(cable *c, cable_conn *conn)
{
    MUST(!conn->is_connected);
    gone(c, conn, FK_E_OS, "connection refused");
}

void cable_closed(cable *c, cable_conn *conn)
{
    gone(c, conn, FK_OK, "closed by the peer");
}

void cable_written(cable *c, cable_conn *conn)
{
    MUST(conn->is_open && conn->lent != NULL);
    keep(conn, conn->lent, conn->lent_len); /* only now: it must not have changed */
    conn->lent = NULL;
    fk__driver_writable(c->driver, conn->id, fk__system_now(c->sys));
}

bool cable_read(cable *c, cable_conn *conn, const void *bytes, size_t len)
{
    MUST(conn->is_open);
    fk_str text = { bytes, len };
    if (fk__driver_read(c->driver, conn->id, text, fk__system_now(c->sys))) return true;
    conn->is_open = false;
    conn->lent = NULL;
    return false;
}

static fk_wire_stream stream_of(const cable_conn *conn)
{
    return conn->len >= FK_CONNECTION_HEADER ? (fk_wire_stream)conn->bytes[4] : FK_STREAM_NONE;
}

cable_conn *cable_stream(cable *c, fk_wire_stream stream)
{
    for (uint32_t i = 0; i < c->conns; i++) {
        cable_conn *conn = &c->conn[i];
        if (conn->is_open && conn->is_ours && stream_of(conn) == stream) return conn;
    }
    return NULL;
}

uint32_t cable_open_count(const cable *c, bool ours)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->conns; i++) {
        count += c->conn[i].is_open && c->conn[i].is_ours == ours;
    }
    return count;
}

/* ---- what is said -------------------------------------------------------------------------------------- */

bool cable_next(cable_conn *conn, fk_wire_envelope *out)
{
    fk_wire_fault fault;
    size_t at = conn->read == 0 ? FK_CONNECTION_HEADER : conn->read;
    if (conn->len < at + FK_FRAME_HEADER) return false;
    uint32_t len = fk__load32(conn->bytes + at);
    at += FK_FRAME_HEADER;
    if (conn->len < at + len) return false;
    conn->read = at + len;
    fk_str frame = { (const char *)conn->bytes + at, len };
    MUST(fk__envelope_decode(frame, out, &fault) == FK_OK);
    return true;
}

bool cable_heard(cable_conn *conn, fk_control_kind kind, fk_wire_control *out)
{
    fk_wire_envelope e;
    fk_wire_fault fault;
    while (cable_next(conn, &e)) {
        if (e.serializer != FK_SERIALIZER_CONTROL) continue;
        MUST(fk__control_decode(e.manifest.text, e.payload, out, &fault) == FK_OK);
        if (out->kind == kind) return true;
    }
    return false;
}

bool cable_header(cable *c, cable_conn *conn, fk_wire_stream stream)
{
    unsigned char header[FK_CONNECTION_HEADER];
    fk__connection_header_write(FK_MAGIC_PEKKO, stream, header);
    return cable_read(c, conn, header, sizeof(header));
}

bool cable_frame(cable *c, cable_conn *conn, const fk_wire_envelope *envelope)
{
    size_t size;
    MUST(fk__frame_size(envelope, FRAME_SIZE, &size) == FK_OK);
    unsigned char *bytes = malloc(size);
    MUST(bytes != NULL);
    fk__frame_encode(envelope, bytes);
    bool is_good = cable_read(c, conn, bytes, size);
    free(bytes);
    return is_good;
}

size_t cable_control_bytes(const cable *c, const cable_peer *peer, const fk_wire_control *control,
                           unsigned char *to, size_t size)
{
    unsigned char payload[4096];
    size_t frame, len = fk__control_size(control);
    char path[FK_ADDRESS_MAX + 32];
    (void)c;
    MUST(len <= sizeof(payload));
    fk__control_encode(control, payload, len);
    int path_len = snprintf(path, sizeof(path), "fraktor://%.*s@%.*s:%u/system/remote-watcher",
                            (int)peer->system.len, peer->system.ptr, (int)peer->host.len,
                            peer->host.ptr, (unsigned)peer->port);
    fk_wire_envelope e = { .uid = peer->uid,
                           .serializer = FK_SERIALIZER_CONTROL,
                           .sender = { .text = { path, (size_t)path_len } },
                           .manifest = { .text = fk__control_manifest(control->kind) },
                           .payload = { (const char *)payload, len } };
    MUST(fk__frame_size(&e, FRAME_SIZE, &frame) == FK_OK && frame <= size);
    fk__frame_encode(&e, to);
    return frame;
}

bool cable_say(cable *c, cable_conn *conn, const cable_peer *peer, const fk_wire_control *control)
{
    unsigned char bytes[8192];
    size_t len = cable_control_bytes(c, peer, control, bytes, sizeof(bytes));
    return cable_read(c, conn, bytes, len);
}

static fk_wire_address address_of(const cable_peer *peer)
{
    return (fk_wire_address){ .protocol = FK_STR("fraktor"),
                              .system = peer->system,
                              .host = peer->host,
                              .port = peer->port };
}

fk_wire_unique cable_unique(const cable_peer *peer)
{
    return (fk_wire_unique){ .address = address_of(peer), .uid = peer->uid };
}

bool cable_request(cable *c, cable_conn *conn, const cable_peer *peer)
{
    const fk_path *own = &c->sys->address;
    cable_peer us = { own->system, own->host, own->port, 0 };
    fk_wire_control control = { .kind = FK_CONTROL_HANDSHAKE_REQ };
    control.as.handshake.from = cable_unique(peer);
    control.as.handshake.to = address_of(&us);
    return cable_say(c, conn, peer, &control);
}

bool cable_response(cable *c, cable_conn *conn, const cable_peer *peer)
{
    fk_wire_control control = { .kind = FK_CONTROL_HANDSHAKE_RSP };
    control.as.from.from = cable_unique(peer);
    return cable_say(c, conn, peer, &control);
}

bool cable_text(cable *c, cable_conn *conn, const cable_peer *peer, const char *to,
                const char *from, fk_str text)
{
    fk_wire_envelope e = { .uid = peer->uid, .serializer = 20, .payload = text };
    e.recipient.text = fk_str_of(to);
    e.sender.text = fk_str_of(from);
    return cable_frame(c, conn, &e);
}

bool cable_watch(cable *c, cable_conn *conn, const cable_peer *peer, uint64_t seq,
                 const fk_wire_sysmsg *message)
{
    unsigned char bytes[2048];
    size_t len = fk__sysmsg_size(message);
    MUST(len <= sizeof(bytes));
    fk__sysmsg_encode(message, bytes, len);
    fk_wire_control control = { .kind = FK_CONTROL_SYSTEM_MESSAGE };
    control.as.system_message.serializer = FK_SERIALIZER_SYSMSG;
    control.as.system_message.message = (fk_str){ (const char *)bytes, len };
    control.as.system_message.seq = seq;
    control.as.system_message.ack_to = cable_unique(peer);
    return cable_say(c, conn, peer, &control);
}

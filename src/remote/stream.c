/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Outgoing connections. A stream has one buffer: it is filled with frames, given to the transport,
 * and filled again when that has taken it. So what waits, waits as letters, which can be given back,
 * and not as bytes, which cannot.
 */

#include "remote/office.h"

enum {
    BUFFER_CONTROL = FK_CONTROL_FRAME_MAX,
    BUFFER_LETTERS = 128 << 10,
    BUFFERS_AT_ONCE = 8 /* then the others have their turn */
};

/* ---- opening and closing ---------------------------------------------------------------------------- */

static fk_err buffer_make(fk_driver *driver, fk_stream *stream)
{
    if (stream->buffer != NULL) return FK_OK;
    uint32_t size = fk__stream_is_control(stream) ? BUFFER_CONTROL : BUFFER_LETTERS;
    void *memory;
    FK_TRY(fk__mem_alloc(&driver->remote->sys->mem, size, FK_SITE("buffer of a stream"), &memory));
    stream->buffer = memory;
    stream->size = size;
    return FK_OK;
}

/* For one frame that does not fit into an empty buffer. */
static bool buffer_grow(fk_driver *driver, fk_stream *stream, size_t need)
{
    fk_mem *mem = &driver->remote->sys->mem;
    void *memory;
    FK_ASSERT(stream->len == 0 && !stream->is_lent);
    if (fk__mem_alloc(mem, need, FK_SITE("buffer of a large frame"), &memory) != FK_OK)
        return false;
    fk__mem_free(mem, stream->buffer, stream->size);
    stream->buffer = memory;
    stream->size = (uint32_t)need;
    return true;
}

static fk_conn_id number_next(fk_driver *driver)
{
    do {
        driver->conn_next = (driver->conn_next + 1) & ~FK_CONN_ACCEPTED;
    } while (driver->conn_next == 0 || fk__map_get(&driver->conns, driver->conn_next) != NULL);
    return driver->conn_next;
}

void fk__stream_open(fk_driver *driver, fk_stream *stream)
{
    fk_remote *remote = driver->remote;
    fk_authority *authority = stream->line->authority;
    char host[256];
    fk_str target;
    uint16_t port;
    if (stream->conn != 0 || !driver->is_started) return;
    if (!fk__turnstile_pass(driver, stream)) return;
    fk__remote_lock(remote);
    fk__authority_target(authority, &target, &port);
    FK_ASSERT(target.len < sizeof(host));
    memcpy(host, target.ptr, target.len);
    stream->attempt = authority->attempt;
    bool is_wanted = fk__line_is_ours(stream->line);
    fk__remote_unlock(remote);
    target.ptr = host;
    if (target.len > 2 && host[0] == '[') target = (fk_str){ host + 1, target.len - 2 };
    stream->conn = number_next(driver);
    stream->used_at = driver->now;
    fk__turnstile_begin(driver, stream);
    fk_err err = buffer_make(driver, stream);
    if (err == FK_OK) err = fk__conn_add(driver, stream->conn, stream);
    if (err == FK_OK) {
        err =
            driver->transport.connect(driver->transport.ctx, stream->conn, target, port, is_wanted);
        if (err == FK_OK) return;
        fk__map_remove(&driver->conns, stream->conn);
    }
    fk__stream_lost(driver, stream);
}

/* The buffer goes, too: those to whom nothing is sent, of whom there may be many, cost nothing. */
static void stream_reset(fk_driver *driver, fk_stream *stream)
{
    fk__handshake_end(&stream->handshake);
    fk__turnstile_end(driver, stream);
    stream->conn = 0;
    stream->is_connected = stream->wants_request = stream->is_lent = stream->is_notice = false;
    stream->len = stream->letters = 0;
    fk__mem_free(&driver->remote->sys->mem, stream->buffer, stream->size);
    stream->buffer = NULL;
    stream->size = 0;
}

/* Frames that were with the transport, or would have been next, are gone: whether they have arrived
 * nobody knows. */
static void tell_lost(fk_driver *driver, const fk_stream *stream)
{
    char buf[FK_ADDRESS_MAX];
    if (stream->letters == 0) return;
    fk_str address = fk__remote_address(driver->remote, stream->line->authority, buf);
    driver->scold[FK_SCOLD_LOST].suppressed += stream->letters - 1;
    fk__driver_scold(driver, FK_SCOLD_LOST, address,
                     "the connection broke; messages on their way may be lost", UINT64_MAX);
}

void fk__stream_close(fk_driver *driver, fk_stream *stream, bool gently)
{
    fk__turnstile_leave(driver, stream);
    if (stream->conn == 0) return;
    fk_outbox_effects effects;
    fk__map_remove(&driver->conns, stream->conn);
    driver->transport.close(driver->transport.ctx, stream->conn, gently);
    if (!gently || stream->is_lent) tell_lost(driver, stream);
    stream_reset(driver, stream);
    if (!fk__stream_is_control(stream)) return;
    fk__tables_out_free(driver, stream->line);
    fk_outbox *outbox = &stream->line->outbox;
    (void)!fk__outbox_step(outbox, &(fk_outbox_event){ .kind = FK_OUTBOX_EVENT_CLOSED },
                           driver->now, &effects);
}

void fk__stream_lost(fk_driver *driver, fk_stream *stream)
{
    fk_remote *remote = driver->remote;
    fk_line *line = stream->line;
    fk_authority *authority = line->authority;
    fk_authority_effects effects = { .authority = NULL };
    fk_outbox_effects outbox;
    bool was_connected = stream->is_connected;
    uint64_t attempt = stream->attempt;
    tell_lost(driver, stream);
    stream_reset(driver, stream);
    if (fk__stream_is_control(stream)) {
        /* By the time there is another one the peer may have forgotten what it has advertised. */
        fk__tables_out_free(driver, line);
        line->owed = 0; /* whoever misses it asks again */
        fk__line_blunt(driver, line);
        (void)!fk__outbox_step(&line->outbox, &(fk_outbox_event){ .kind = FK_OUTBOX_EVENT_CLOSED },
                               driver->now, &outbox);
    }
    fk__remote_lock(remote);
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_FAILED, .attempt = attempt };
    if (authority->is_open) {
        event = (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_DROPPED, .uid = authority->uid };
    }
    /* One for messages that broke is opened again when there is something to send; only when that
     * is refused the system is gone. */
    if (fk__stream_is_control(stream) || !was_connected) {
        (void)!fk__authority_step(&remote->table, authority, &event, driver->now, &effects);
    }
    fk__remote_unlock(remote);
    fk__driver_act(driver, &effects);
    fk__line_wake(driver, line);
}

void fk__stream_connected(fk_driver *driver, fk_stream *stream)
{
    fk_remote *remote = driver->remote;
    fk_handshake_effects effects;
    fk_wire_magic magic =
        remote->sys->paths.rules == FK_RULES_PEKKO ? FK_MAGIC_AKKA : FK_MAGIC_PEKKO;
    stream->is_connected = true;
    fk__connection_header_write(magic, (fk_wire_stream)stream->kind, stream->buffer);
    stream->len = FK_CONNECTION_HEADER;
    fk__remote_lock(remote);
    fk__handshake_begin(&stream->handshake, stream->line->authority, fk__stream_is_control(stream),
                        driver->now, &effects);
    fk__remote_unlock(remote);
    fk__turnstile_look(driver, stream);
    stream->wants_request = effects.must_request;
    fk__driver_due(driver, fk__handshake_next(&stream->handshake));
    fk__line_wake(driver, stream->line);
}

/* ---- frames ------------------------------------------------------------------------------------------- */

bool fk__stream_frame(fk_driver *driver, fk_stream *stream, const fk_wire_envelope *envelope,
                      unsigned char **payload, size_t payload_len)
{
    fk_wire_envelope e = *envelope;
    size_t size;
    e.uid = driver->uid;
    e.payload = (fk_str){ NULL, payload_len };
    fk_err err = fk__frame_size(&e, FK_CONTROL_FRAME_MAX, &size);
    if (err != FK_OK || size > stream->size - stream->len) return false;
    *payload = fk__frame_encode(&e, stream->buffer + stream->len);
    stream->len += (uint32_t)size;
    return true;
}

/* True: there may be more, but no room for it. */
static bool letters_write(fk_driver *driver, fk_stream *stream)
{
    fk_line *line = stream->line;
    fk_mail_room room = { .is_large = stream->kind == FK_STREAM_LARGE };
    uint32_t gone = 0;
    bool is_full = false;
    while (!is_full && stream->ready.first != NULL) {
        fk_letter *letter = FK_CONTAINER(stream->ready.first, fk_letter, link);
        fk_codec_fault fault;
        room.to = stream->buffer + stream->len;
        room.size = stream->size - stream->len;
        fk_err err = fk__mail_write(driver->mail, &line->mail, letter, &room, &fault);
        if (err == FK_E_FULL && stream->len == 0 && buffer_grow(driver, stream, room.len)) continue;
        is_full = err == FK_E_FULL && stream->len != 0;
        if (is_full) break;
        if (err == FK_E_FULL) fault = (fk_codec_fault){ .err = FK_E_NOMEM };
        fk__envelopes_take(&stream->ready);
        gone++;
        if (err == FK_OK) {
            stream->len += (uint32_t)room.len;
            stream->letters++;
            fk__letter_done(driver->local, letter);
        } else {
            fk__letter_fail(driver->local, letter, &fault);
        }
    }
    if (gone != 0) fk__word_add(&line->gate, -(gone * FK_LINE_ONE), FK_RELAXED);
    return is_full;
}

/* True: there may be more, but no room for it. */
static bool stream_fill(fk_driver *driver, fk_stream *stream)
{
    fk_handshake_effects effects = { .must_request = false };
    bool may_send = true;
    bool has_letters = stream->ready.first != NULL;
    if (has_letters || fk__stream_is_control(stream)) {
        may_send = fk__handshake_may_send(&stream->handshake, driver->now, &effects);
    }
    stream->wants_request = (stream->wants_request || effects.must_request) && !stream->is_notice;
    if (stream->wants_request && !fk__speech_request(driver, stream)) return true;
    stream->wants_request = false;
    if (fk__stream_is_control(stream)) return !fk__speech_write(driver, stream);
    if (!has_letters || !may_send) return false;
    stream->used_at = driver->now;
    fk__driver_due(driver, fk__time_add(driver->now, driver->config.idle_after));
    return letters_write(driver, stream);
}

/* True: all of it is gone. */
static bool stream_flush(fk_driver *driver, fk_stream *stream)
{
    if (stream->len == 0) return true;
    fk_transport *transport = &driver->transport;
    if (!transport->write(transport->ctx, stream->conn, stream->buffer, stream->len)) {
        stream->is_lent = true;
        return false;
    }
    stream->len = stream->letters = 0;
    return true;
}

void fk__stream_pump(fk_driver *driver, fk_stream *stream)
{
    if (!stream->is_connected || stream->is_lent) return;
    for (uint32_t i = 0; i < BUFFERS_AT_ONCE; i++) {
        bool has_more = stream_fill(driver, stream);
        if (!stream_flush(driver, stream) || !has_more) return;
    }
    fk__line_call(driver->remote, stream->line);
}

void fk__stream_tick(fk_driver *driver, fk_stream *stream)
{
    fk_remote *remote = driver->remote;
    fk_handshake_effects effects;
    if (stream->conn == 0) return;
    if (!stream->is_connected) {
        fk_time late_at = fk__time_add(stream->used_at, driver->config.handshake_timeout);
        fk__driver_due(driver, late_at);
        if (late_at > driver->now) return;
        fk__map_remove(&driver->conns, stream->conn);
        driver->transport.close(driver->transport.ctx, stream->conn, false);
        fk__stream_lost(driver, stream);
        return;
    }
    if (fk__handshake_next(&stream->handshake) <= driver->now) {
        fk__remote_lock(remote);
        fk__handshake_tick(&stream->handshake, &remote->table, stream->line->authority, driver->now,
                           &effects);
        fk__remote_unlock(remote);
        stream->wants_request = stream->wants_request || effects.must_request;
        if (effects.has_failed) {
            fk__stream_close(driver, stream, false);
            if (fk__stream_is_control(stream)) fk__line_blunt(driver, stream->line);
            fk__driver_act(driver, &effects.authority);
            return;
        }
    }
    fk__driver_due(driver, fk__handshake_next(&stream->handshake));
    if (fk__stream_is_control(stream)) return;
    fk_time idle_at = fk__time_add(stream->used_at, driver->config.idle_after);
    bool is_idle = stream->ready.first == NULL && stream->len == 0;
    if (is_idle && idle_at <= driver->now)
        fk__stream_close(driver, stream, true);
    else if (is_idle)
        fk__driver_due(driver, idle_at);
}

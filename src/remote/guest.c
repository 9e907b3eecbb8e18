/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Incoming connections. Until a system has been greeted a connection may send small frames only, a
 * handshake, and has a few seconds for it. After that every frame must name the same system.
 *
 * Frames that come in pieces are collected in rooms, which all connections together may have so many
 * bytes of. When these are used up, whoever holds the most of them for the longest time without a whole
 * frame is closed: somebody who sends a frame in one go holds much, but not for long.
 */

#include "base/safeguard.h"
#include "remote/office.h"

enum { FRAME_MAX_STRANGER = 4096 };

/* It answers where it says it is: the handshake went both ways. */
static bool is_proven(const fk_guest *guest)
{
    const fk_line *line = FK_CONTAINER(guest->origin->peer, fk_line, peer);
    return line->stream[FK_STREAM_CONTROL].handshake.phase == FK_HANDSHAKE_ANSWERED;
}

/* There are as many as there may be: of those that have shaken hands, but were never found where they
 * say they are, the one that came first goes. */
static bool unproven_close(fk_driver *driver)
{
    fk_time before = driver->now - driver->config.handshake_timeout / FK_UNPROVEN_PART;
    fk_guest *oldest = NULL;
    for (fk_guest *guest = driver->guests; guest != NULL; guest = guest->next) {
        if (guest->origin == NULL || guest->came_at > before || is_proven(guest)) continue;
        oldest = guest; /* newest first */
    }
    if (oldest == NULL) return false;
    fk__driver_scold(driver, FK_SCOLD_REFUSED, (fk_str){ oldest->from, oldest->from_len },
                     "too many connections; it does not answer where it says it is", UINT64_MAX);
    fk__guest_close(driver, oldest);
    return true;
}

bool fk__driver_accepted(fk_driver *driver, fk_conn_id conn, fk_str from, fk_time now)
{
    const fk_remoting_config *config = &driver->config;
    void *memory;
    driver->now = now;
    bool is_much = driver->guest_count >= config->connections_max && !unproven_close(driver);
    bool is_rush = driver->half_open_count >= config->half_open_max && FK_SAFEGUARD(HALF_OPEN);
    if (is_much || is_rush) {
        fk__driver_scold(driver, FK_SCOLD_REFUSED, from,
                         is_much ? "too many connections" : "too many connections half open",
                         UINT64_MAX);
        return false;
    }
    fk_mem *mem = &driver->remote->sys->mem;
    if (fk__mem_alloc(mem, sizeof(fk_guest), FK_SITE("incoming connection"), &memory) != FK_OK) {
        return false;
    }
    fk_guest *guest = memory;
    *guest = (fk_guest){ .conn = conn,
                         .number = ++driver->guest_number,
                         .came_at = now,
                         .stall_at = FK_NEVER,
                         .close_at = fk__time_add(now, config->handshake_timeout / 4) };
    fk__deframer_init(&guest->deframer);
    for (uint32_t i = 0; i < FK_STREAM_COUNT; i++) {
        guest->deframer.frame_max[i] = FRAME_MAX_STRANGER;
    }
    guest->from_len = (uint8_t)(from.len < sizeof(guest->from) ? from.len : sizeof(guest->from));
    memcpy(guest->from, from.ptr, guest->from_len);
    if (fk__conn_add(driver, conn, guest) != FK_OK) {
        fk__mem_free(mem, guest, sizeof(*guest));
        return false;
    }
    guest->next = driver->guests;
    guest->link = &driver->guests;
    if (guest->next != NULL) guest->next->link = &guest->next;
    driver->guests = guest;
    driver->guest_count++;
    driver->half_open_count++;
    fk__driver_due(driver, guest->close_at);
    return true;
}

static void room_free(fk_driver *driver, fk_guest *guest)
{
    fk__mem_free(&driver->remote->sys->mem, guest->room, guest->room_size);
    driver->inbound_bytes -= guest->room_size;
    guest->room = NULL;
    guest->room_size = 0;
}

/* The transport knows. */
static void guest_free(fk_driver *driver, fk_guest *guest)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk__map_remove(&driver->conns, guest->conn);
    *guest->link = guest->next;
    if (guest->next != NULL) guest->next->link = guest->link;
    driver->guest_count--;
    if (guest->close_at != FK_NEVER) driver->half_open_count--;
    room_free(driver, guest);
    fk__mem_free(mem, guest, sizeof(*guest));
}

void fk__guest_close(fk_driver *driver, fk_guest *guest)
{
    driver->transport.close(driver->transport.ctx, guest->conn, false);
    guest_free(driver, guest);
}

void fk__guest_lost(fk_driver *driver, fk_guest *guest)
{
    fk_wire_fault fault;
    fk_str from = { guest->from, guest->from_len };
    if (fk__deframer_end(&guest->deframer, &fault) != FK_OK) {
        fk__driver_scold(driver, FK_SCOLD_BYTES, from, fault.message, fault.at);
    }
    guest_free(driver, guest);
}

void fk__guests_tick(fk_driver *driver)
{
    fk_guest *next;
    for (fk_guest *guest = driver->guests; guest != NULL; guest = next) {
        next = guest->next;
        bool is_late = guest->close_at <= driver->now;
        bool is_stalled = guest->stall_at <= driver->now;
        if (is_late || is_stalled) {
            fk__driver_scold(driver, FK_SCOLD_BYTES, (fk_str){ guest->from, guest->from_len },
                             is_late ? "no handshake in time" : "half a frame, and no more of it",
                             guest->deframer.offset);
        }
        if (is_late || is_stalled || guest->is_doomed) {
            fk__guest_close(driver, guest);
        } else {
            fk__driver_due(driver, guest->close_at);
            fk__driver_due(driver, guest->stall_at);
        }
    }
}

/* ---- frames ------------------------------------------------------------------------------------------- */

static bool room_fits(const fk_driver *driver, uint32_t need)
{
    return need <= driver->config.inbound_bytes_max - driver->inbound_bytes;
}

/* How much it holds, times how long. */
static uint64_t room_weight(const fk_driver *driver, const fk_guest *guest)
{
    uint64_t micros = (uint64_t)(driver->now - guest->began_at) >> 10;
    return guest->room_size * (micros + 1);
}

static void heaviest_close(fk_driver *driver, const fk_guest *but)
{
    fk_guest *heaviest = NULL;
    for (fk_guest *guest = driver->guests; guest != NULL; guest = guest->next) {
        if (guest == but || guest->room_size == 0) continue;
        /* Newest first: of those that are alike the oldest. */
        bool is_more =
            heaviest == NULL || room_weight(driver, guest) >= room_weight(driver, heaviest);
        if (is_more) heaviest = guest;
    }
    FK_ASSERT(heaviest != NULL); /* by itself any frame fits */
    fk__driver_scold(driver, FK_SCOLD_BYTES, (fk_str){ heaviest->from, heaviest->from_len },
                     "too many bytes of frames that are not whole", heaviest->deframer.offset);
    heaviest->is_doomed = true;
    driver->next_at = 0;
    room_free(driver, heaviest);
}

/* First what is kept for the next frame only. */
static void room_clear(fk_driver *driver, const fk_guest *but, uint32_t need)
{
    for (fk_guest *guest = driver->guests; guest != NULL; guest = guest->next) {
        if (room_fits(driver, need)) return;
        if (guest == but || guest->deframer.frame_len != 0) continue;
        fk__deframer_lend(&guest->deframer, NULL, 0);
        room_free(driver, guest);
    }
    while (!room_fits(driver, need)) heaviest_close(driver, but);
}

static bool room_make(fk_driver *driver, fk_guest *guest)
{
    fk_mem *mem = &driver->remote->sys->mem;
    uint32_t need = guest->deframer.frame_len; /* below its maximum */
    void *memory;
    if (guest->room_size < need) {
        room_free(driver, guest);
        room_clear(driver, guest, need);
        if (fk__mem_alloc(mem, need, FK_SITE("frame that came in pieces"), &memory) != FK_OK) {
            return false;
        }
        guest->room = memory;
        guest->room_size = need;
        driver->inbound_bytes += need;
    }
    fk__deframer_lend(&guest->deframer, guest->room, guest->room_size);
    return true;
}

static void stranger(fk_driver *driver, const fk_guest *guest, const char *reason)
{
    fk__driver_scold(driver, FK_SCOLD_STRANGER, (fk_str){ guest->from, guest->from_len }, reason,
                     guest->deframer.offset);
}

/* A message for an actor, or a heartbeat. */
static bool take_message(fk_driver *driver, fk_guest *guest, const fk_wire_envelope *envelope,
                         fk_wire_fault *fault)
{
    fk_line *line = FK_CONTAINER(guest->origin->peer, fk_line, peer);
    fk_wire_payload inner;
    fk_wire_control control;
    bool may_beat = envelope->serializer == FK_SERIALIZER_SELECTION; /* most do not: no call */
    if (FK_UNLIKELY(may_beat) && fk__mail_is_heartbeat(envelope, &inner)) {
        bool is_good = fk__control_decode(inner.manifest, inner.message, &control, fault) == FK_OK;
        if (is_good) fk__speech_heartbeat(driver, line, false, 0);
        return is_good;
    }
    return fk__mail_read(driver->mail, driver->local, &line->mail, line->authority, envelope,
                         fault) == FK_OK;
}

/* A system that has shaken hands may have been quarantined since. */
static bool is_admitted(fk_driver *driver, const fk_guest *guest, bool is_quiet)
{
    fk_line *line = FK_CONTAINER(guest->origin->peer, fk_line, peer);
    fk_origin *origin;
    bool must_notify;
    bool is_current = guest->uid == line->uid;
    if (is_current && fk__half_load(&line->is_refusing, FK_ACQUIRE) == 0) return true;
    fk__remote_lock(driver->remote);
    fk_door_result result =
        fk__door_admit(&driver->door, guest->uid, is_quiet, &origin, &must_notify);
    fk__remote_unlock(driver->remote);
    if (result == FK_DOOR_RESULT_ACCEPTED) return true;
    stranger(driver, guest, "a frame of a quarantined system");
    if (must_notify) {
        line->quarantined_uid = guest->uid;
        fk__line_owe(driver, line, FK_CONTROL_QUARANTINED);
    }
    return false;
}

/* Somebody who has not been greeted. A notice of quarantine comes without a handshake, by a connection
 * of its own; of whom it is its uid says, which nobody else knows. */
static bool take_unmet(fk_driver *driver, fk_guest *guest, const fk_wire_envelope *envelope,
                       fk_wire_fault *fault)
{
    fk_origin *origin = NULL, *before = guest->origin;
    bool must_notify;
    bool is_notice = envelope->serializer == FK_SERIALIZER_CONTROL &&
                     fk__wire_equal(envelope->manifest.text, FK_STR("a"));
    if (is_notice) {
        fk__remote_lock(driver->remote);
        (void)!fk__door_admit(&driver->door, envelope->uid, true, &origin, &must_notify);
        fk__remote_unlock(driver->remote);
    }
    if (origin == NULL) {
        stranger(driver, guest, "a frame of a system that was never met");
        return true;
    }
    guest->origin = origin;
    bool is_good = fk__speech_hear(driver, guest, envelope, fault);
    guest->origin = before;
    return is_good;
}

/* False: the connection is of no use any more. */
static bool take_frame(fk_driver *driver, fk_guest *guest, fk_str frame, fk_wire_fault *fault)
{
    fk_wire_envelope envelope;
    if (fk__envelope_decode(frame, &envelope, fault) != FK_OK) return false;
    bool is_control =
        envelope.serializer == FK_SERIALIZER_CONTROL && !envelope.manifest.is_compressed;
    bool is_handshake = is_control && (fk__wire_equal(envelope.manifest.text, FK_STR("d")) ||
                                       fk__wire_equal(envelope.manifest.text, FK_STR("e")));
    if (is_handshake) return fk__speech_hear(driver, guest, &envelope, fault);
    bool is_met = guest->origin != NULL && guest->origin->uid == guest->uid;
    if (!is_met) return take_unmet(driver, guest, &envelope, fault);
    if (envelope.uid != guest->uid) {
        fk__wire_fail(fault, FK_E_MALFORMED, 4,
                      "the frame names another system than the handshake");
        return false;
    }
    bool is_quiet = is_control && (fk__wire_equal(envelope.manifest.text, FK_STR("a")) ||
                                   fk__wire_equal(envelope.manifest.text, FK_STR("m")) ||
                                   fk__wire_equal(envelope.manifest.text, FK_STR("n")));
    if (!is_admitted(driver, guest, is_quiet)) return true;
    if (is_control) return fk__speech_hear(driver, guest, &envelope, fault);
    return take_message(driver, guest, &envelope, fault);
}

/* All bytes are taken. */
static void note_part(fk_driver *driver, fk_guest *guest, bool is_another)
{
    bool is_part = guest->deframer.frame_len != 0 || guest->deframer.head_len != 0;
    if (is_another || guest->stall_at == FK_NEVER) guest->began_at = driver->now;
    guest->stall_at =
        is_part ? fk__time_add(driver->now, driver->config.handshake_timeout) : FK_NEVER;
    fk__driver_due(driver, guest->stall_at);
}

bool fk__guest_read(fk_driver *driver, fk_guest *guest, fk_str bytes)
{
    fk_deframer *deframer = &guest->deframer;
    fk_wire_fault fault = { FK_OK, 0, "" };
    fk_str frame;
    bool is_good = true, is_another = false;
    while (is_good && !guest->is_doomed) {
        fk_deframe got = fk__deframer_step(deframer, &bytes, &frame);
        if (got == FK_DEFRAME_MORE) {
            note_part(driver, guest, is_another);
            return true;
        }
        if (got == FK_DEFRAME_ROOM) {
            is_good = room_make(driver, guest);
            if (!is_good) fk__wire_fail(&fault, FK_E_NOMEM, 0, "no memory for a frame");
        } else if (got == FK_DEFRAME_FAULT) {
            fault = deframer->fault;
            is_good = false;
        } else if (got == FK_DEFRAME_FRAME) {
            is_good = take_frame(driver, guest, frame, &fault);
            is_another = true;
            if (!is_good) fault.at += deframer->offset - frame.len; /* in the stream */
        }
    }
    if (!is_good) {
        fk__driver_scold(driver, FK_SCOLD_BYTES, (fk_str){ guest->from, guest->from_len },
                         fault.message, fault.at);
    }
    guest_free(driver, guest); /* the transport closes it */
    return false;
}

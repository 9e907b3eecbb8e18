/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What systems say to each other about themselves. Everything of ours goes out on the control stream,
 * except handshake requests, with which each stream begins.
 *
 * Answers need not wait for the answer to our own request on that stream: both sides would wait for
 * each other. Numbered messages must (remote/handshake.h).
 */

#include "base/safeguard.h"
#include "remote/office.h"

enum {
    TABLE_COUNT = 256, /* names in a table, and bytes of all of them */
    TABLE_TEXT = 24 << 10,
    TABLE_TEXT_MAX = 512,
    TABLE_REST = 4 << 10 /* what a frame with one has besides */
};

_Static_assert(TABLE_TEXT + TABLE_COUNT * 6 + TABLE_REST <= FK_CONTROL_FRAME_MAX,
               "a table that is full must fit into a frame, or nothing would come after it");

static const fk_compression_config COMPRESSION = { TABLE_COUNT, TABLE_TEXT_MAX, TABLE_TEXT };

/* ---- writing -------------------------------------------------------------------------------------------- */

static fk_wire_address own_address(const fk_driver *driver)
{
    const fk_system *sys = driver->remote->sys;
    bool is_pekko = sys->paths.rules == FK_RULES_PEKKO;
    return (fk_wire_address){ .protocol = is_pekko ? FK_STR("pekko") : FK_STR("fraktor"),
                              .system = sys->address.system,
                              .host = sys->address.host,
                              .port = sys->address.port };
}

static fk_wire_unique own_unique(const fk_driver *driver)
{
    return (fk_wire_unique){ .address = own_address(driver), .uid = driver->uid };
}

static bool say(fk_driver *driver, fk_stream *stream, const fk_wire_control *control, fk_str to)
{
    bool is_signed =
        control->kind == FK_CONTROL_TERMINATING || control->kind == FK_CONTROL_HEARTBEAT_RSP;
    fk_wire_envelope e = { .serializer = FK_SERIALIZER_CONTROL };
    unsigned char *payload;
    size_t size = fk__control_size(control);
    e.manifest.text = fk__control_manifest(control->kind);
    e.recipient.text = to;
    /* To whom it may answer; and by whom Pekko tells whose heart it was. */
    if (is_signed) e.sender.text = (fk_str){ driver->watcher_path, driver->watcher_path_len };
    if (!fk__stream_frame(driver, stream, &e, &payload, size)) return false;
    fk__control_encode(control, payload, size);
    return true;
}

bool fk__speech_request(fk_driver *driver, fk_stream *stream)
{
    const fk_authority_key *key = &stream->line->authority->key;
    fk_wire_control control = { .kind = FK_CONTROL_HANDSHAKE_REQ };
    control.as.handshake.from = own_unique(driver);
    control.as.handshake.to = own_address(driver); /* the same protocol ... */
    control.as.handshake.to.system = key->system;  /* ... of another system */
    control.as.handshake.to.host = key->host;
    control.as.handshake.to.port = key->port;
    return say(driver, stream, &control, FK_STR(""));
}

/* To the peer's /system/remote-watcher, whatever its name is: a selection. */
static bool say_heartbeat(fk_driver *driver, fk_stream *stream)
{
    static const fk_wire_pattern WAY[] = {
        { 0, FK_PATTERN_NAME, { "system", 6 } },
        { 0, FK_PATTERN_NAME, { "remote-watcher", 14 } },
    };
    char buf[FK_ADDRESS_MAX + 1];
    fk_str root = fk__remote_address(driver->remote, stream->line->authority, buf);
    unsigned char *payload;
    fk_wire_selection selection = { .serializer = FK_SERIALIZER_CONTROL,
                                    .manifest = fk__control_manifest(FK_CONTROL_HEARTBEAT),
                                    .patterns = { .count = 2, .items = WAY } };
    size_t size = fk__selection_size(&selection);
    buf[root.len++] = '/';
    fk_wire_envelope e = { .serializer = FK_SERIALIZER_SELECTION };
    e.recipient.text = root;
    e.sender.text = (fk_str){ driver->watcher_path, driver->watcher_path_len };
    if (!fk__stream_frame(driver, stream, &e, &payload, size)) return false;
    fk__selection_encode(&selection, payload, size);
    return true;
}

static bool say_reply(fk_driver *driver, fk_stream *stream)
{
    char buf[FK_ADDRESS_MAX + 32];
    fk_str to = fk__remote_address(driver->remote, stream->line->authority, buf);
    fk_str name = FK_STR("/system/remote-watcher");
    fk_wire_control control = { .kind = FK_CONTROL_HEARTBEAT_RSP };
    control.as.heartbeat_rsp.uid = driver->uid;
    memcpy(buf + to.len, name.ptr, name.len);
    to.len += name.len;
    return say(driver, stream, &control, to);
}

static bool say_table(fk_driver *driver, fk_stream *stream, fk_control_kind kind)
{
    fk_line *line = stream->line;
    bool is_refs = kind == FK_CONTROL_REF_TABLE;
    fk_compression *table = is_refs ? line->mail.refs_in : line->mail.manifests_in;
    fk_wire_control control = { .kind = kind };
    if (table == NULL || !fk__compression_advertise(table, &control.as.table)) return true;
    control.as.table.from = own_unique(driver);
    control.as.table.origin_uid = line->uid;
    return say(driver, stream, &control, FK_STR(""));
}

static bool say_owed(fk_driver *driver, fk_stream *stream, fk_control_kind kind)
{
    const fk_line *line = stream->line;
    const fk_authority_key *key = &line->authority->key;
    fk_wire_control control = { .kind = kind };
    switch (kind) {
    case FK_CONTROL_HEARTBEAT: return say_heartbeat(driver, stream);
    case FK_CONTROL_HEARTBEAT_RSP: return say_reply(driver, stream);
    case FK_CONTROL_REF_TABLE:
    case FK_CONTROL_MANIFEST_TABLE: return say_table(driver, stream, kind);
    case FK_CONTROL_QUARANTINED:
        control.as.quarantined.from = own_unique(driver);
        control.as.quarantined.to.uid = line->quarantined_uid;
        control.as.quarantined.to.address = own_address(driver);
        control.as.quarantined.to.address.system = key->system;
        control.as.quarantined.to.address.host = key->host;
        control.as.quarantined.to.address.port = key->port;
        break;
    case FK_CONTROL_ACK:
    case FK_CONTROL_NACK:
        control.as.ack.from = own_unique(driver);
        control.as.ack.seq = line->ack_seq;
        break;
    case FK_CONTROL_REF_TABLE_ACK:
    case FK_CONTROL_MANIFEST_TABLE_ACK:
        control.as.table_ack.from = own_unique(driver);
        control.as.table_ack.version = line->table_version[kind == FK_CONTROL_MANIFEST_TABLE_ACK];
        break;
    case FK_CONTROL_FLUSH_ACK: control.as.flush_ack.expected = 1; break;
    case FK_CONTROL_TERMINATING_ACK:
        control.as.from.from = own_unique(driver);
        return say(driver, stream, &control, (fk_str){ line->leaver, line->leaver_len });
    default: control.as.from.from = own_unique(driver); break; /* terminating, handshakes */
    }
    return say(driver, stream, &control, FK_STR(""));
}

static bool say_parcel(fk_driver *driver, fk_stream *stream, const fk_sysparcel *parcel)
{
    fk_wire_control control = { .kind = FK_CONTROL_SYSTEM_MESSAGE };
    const char *bytes = (const char *)parcel->bytes;
    control.as.system_message.serializer = FK_SERIALIZER_SYSMSG;
    control.as.system_message.message =
        (fk_str){ bytes + parcel->recipient_len, parcel->message_len };
    control.as.system_message.seq = parcel->parcel.seq;
    control.as.system_message.ack_to = own_unique(driver);
    return say(driver, stream, &control, (fk_str){ bytes, parcel->recipient_len });
}

void fk__line_owe(fk_driver *driver, fk_line *line, fk_control_kind kind)
{
    line->owed |= 1u << kind;
    fk__line_wake(driver, line);
}

bool fk__speech_write(fk_driver *driver, fk_stream *stream)
{
    fk_line *line = stream->line;
    for (uint32_t kind = 1; line->owed != 0 && kind < FK_CONTROL_COUNT; kind++) {
        if ((line->owed & 1u << kind) == 0) continue;
        if (!say_owed(driver, stream, (fk_control_kind)kind)) return false;
        line->owed &= ~(1u << kind);
    }
    if (stream->handshake.phase != FK_HANDSHAKE_ANSWERED) return true;
    /* What is taken must be written: there is room for any of them. */
    while (stream->size - stream->len >= FK_SYSPARCEL_MAX) {
        fk_parcel *parcel = fk__outbox_take(&line->outbox);
        if (parcel == NULL) return true;
        bool is_said = say_parcel(driver, stream, FK_CONTAINER(parcel, fk_sysparcel, parcel));
        FK_ASSERT(is_said);
    }
    return false;
}

/* ---- handshakes -------------------------------------------------------------------------------------------- */

static fk_authority_key wire_key(const fk_wire_address *address)
{
    return (fk_authority_key){ address->system, address->host, (uint16_t)address->port };
}

static const char *door_reason(fk_door_result result)
{
    static const char *const REASON[FK_DOOR_RESULT_COUNT] = {
        [FK_DOOR_RESULT_NOT_US] = "handshake refused: meant for another address",
        [FK_DOOR_RESULT_INVALID] = "handshake refused: no address, no uid, or our own",
        [FK_DOOR_RESULT_UNKNOWN] = "of a system that was never met",
        [FK_DOOR_RESULT_TAKEN] = "handshake refused: the uid is another system's",
        [FK_DOOR_RESULT_QUARANTINED] = "refused: the system is quarantined",
        [FK_DOOR_RESULT_REFUSED] = "handshake refused in this state",
        [FK_DOOR_RESULT_LIMIT] = "handshake refused: too many systems",
        [FK_DOOR_RESULT_NOMEM] = "handshake refused: no memory",
    };
    return REASON[result] != NULL ? REASON[result] : "";
}

static void outbox_tell(fk_driver *driver, fk_line *line, fk_outbox_event_kind kind)
{
    fk_outbox_event event = { .kind = kind, .uid = line->uid };
    fk_outbox_effects effects;
    (void)!fk__outbox_step(&line->outbox, &event, driver->now, &effects);
    fk__bonds_outbox(driver, line, &effects);
}

/* Numbers begin anew, and from now on there can be something to number; it goes out when a control
 * stream of ours is answered. */
static void outbox_begin(fk_driver *driver, fk_line *line)
{
    outbox_tell(driver, line, FK_OUTBOX_EVENT_OPENED);
    outbox_tell(driver, line, FK_OUTBOX_EVENT_CLOSED);
}

/* Another system than before answers there. Our streams lead to one that is gone. */
static void renew(fk_driver *driver, fk_line *line)
{
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        if (FK_SAFEGUARD(NEW_PEER_CLOSES)) fk__stream_close(driver, &line->stream[kind], false);
    }
    fk__tables_free(driver, line);
    line->owed = 0;
    line->has_left = line->is_gone = line->is_counting = false;
    outbox_begin(driver, line);
    fk__bonds_renewed(driver, line);
}

/* An authority has a completed handshake. */
static void accepted(fk_driver *driver, fk_line *line, fk_door_effects *effects, bool is_response)
{
    FK_ASSERT(effects->origin != NULL);
    bool is_new = line->uid != 0 && line->uid != effects->origin->uid;
    line->uid = effects->origin->uid;
    if (is_new)
        renew(driver, line);
    else if (line->outbox.is_shut) /* by a quarantine, before anybody was met */
        outbox_begin(driver, line);
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk__handshake_answered(&line->stream[kind].handshake, is_response);
        fk__turnstile_look(driver, &line->stream[kind]);
    }
    const fk_stream *control = &line->stream[FK_STREAM_CONTROL];
    if (is_response && control->handshake.phase == FK_HANDSHAKE_ANSWERED) {
        outbox_tell(driver, line, FK_OUTBOX_EVENT_OPENED);
    }
    if (effects->must_answer) fk__line_owe(driver, line, FK_CONTROL_HANDSHAKE_RSP);
    if (driver->config.compress_every != FK_NEVER && line->compress_at == FK_NEVER) {
        line->compress_at = fk__time_add(driver->now, driver->config.compress_every);
        fk__driver_due(driver, line->compress_at);
    }
}

static void door_refuse(fk_driver *driver, const fk_guest *guest, fk_line *line,
                        fk_door_result result, bool must_notify, uint64_t uid)
{
    fk__driver_scold(driver, FK_SCOLD_REFUSED, (fk_str){ guest->from, guest->from_len },
                     door_reason(result), guest->deframer.offset);
    if (!must_notify || line == NULL) return;
    line->quarantined_uid = uid;
    fk__line_owe(driver, line, FK_CONTROL_QUARANTINED);
}

/* The newest connection of a system and stream is the one; what an older one still has comes too
 * late, and would come out of order. Newest is who came last, whichever is read first, and also when
 * it has left again. And what there is of its predecessor, at the same address, is of no use: nobody
 * may have heard that it is gone. */
static void greet(fk_driver *driver, fk_guest *guest, fk_origin *origin)
{
    FK_ASSERT(origin != NULL);
    uint64_t *newest = &FK_CONTAINER(origin->peer, fk_line, peer)->newest[guest->deframer.stream];
    bool is_late = guest->number < *newest;
    if (!is_late) *newest = guest->number;
    for (fk_guest *other = driver->guests; other != NULL; other = other->next) {
        bool is_same = other->uid == origin->uid && other->origin == origin &&
                       other->deframer.stream == guest->deframer.stream;
        bool is_before = other->origin != NULL && other->origin->peer == origin->peer &&
                         other->uid != origin->uid && other->number < guest->number;
        if (other == guest || !(is_same || is_before)) continue;
        if (is_late || !FK_SAFEGUARD(GUEST_NEWEST)) continue;
        other->is_doomed = true;
        driver->next_at = 0;
    }
    guest->is_doomed = is_late && FK_SAFEGUARD(GUEST_NEWEST);
    if (guest->close_at != FK_NEVER) driver->half_open_count--;
    guest->close_at = FK_NEVER;
    guest->origin = origin;
    guest->uid = origin->uid;
    uint32_t most = driver->config.frame_max;
    guest->deframer.frame_max[FK_STREAM_CONTROL] =
        most > FK_CONTROL_FRAME_MAX ? most : FK_CONTROL_FRAME_MAX;
    guest->deframer.frame_max[FK_STREAM_ORDINARY] = driver->config.frame_max;
    guest->deframer.frame_max[FK_STREAM_LARGE] = driver->config.frame_max_large;
}

/* It was there before the present system, and is only read late. */
static bool is_former(const fk_line *line, const fk_guest *guest, uint64_t uid)
{
    bool is_other = line->uid != 0 && line->uid != uid;
    return is_other && guest->number < line->uid_guest && FK_SAFEGUARD(GUEST_NEWEST);
}

static void note_guest(fk_line *line, const fk_guest *guest)
{
    if (guest->number > line->uid_guest) line->uid_guest = guest->number;
}

static void hear_request(fk_driver *driver, fk_guest *guest, const fk_wire_handshake *request)
{
    fk_remote *remote = driver->remote;
    fk_authority_key from = wire_key(&request->from.address), to = wire_key(&request->to);
    fk_door_effects knocked, effects = { .authority = { .authority = NULL } };
    fk_line *line = NULL;
    uint64_t uid = request->from.uid;
    fk__remote_lock(remote);
    fk_door_result result = fk__door_knock(&driver->door, &from, &to, driver->now, &knocked);
    if (result == FK_DOOR_RESULT_LIMIT) {
        fk__remote_unlock(remote);
        bool has_room = fk__retire_some(driver) || fk__crowd_make_room(driver);
        fk__remote_lock(remote);
        if (has_room) result = fk__door_knock(&driver->door, &from, &to, driver->now, &knocked);
    }
    fk_authority *authority = knocked.authority.authority;
    if (result == FK_DOOR_RESULT_ACCEPTED && fk__line_get(remote, authority, &line) != FK_OK) {
        result = FK_DOOR_RESULT_NOMEM;
    }
    bool is_late = line != NULL && is_former(line, guest, uid);
    if (is_late) result = FK_DOOR_RESULT_REFUSED;
    if (result == FK_DOOR_RESULT_ACCEPTED) {
        FK_ASSERT(line != NULL);
        result = fk__door_accept(&driver->door, &line->peer, uid, true, driver->now, &effects);
        fk__line_follow(line);
    }
    fk__remote_unlock(remote);
    fk__driver_act(driver, &knocked.authority);
    if (result == FK_DOOR_RESULT_ACCEPTED) {
        if (guest->origin != effects.origin || guest->uid != uid) {
            greet(driver, guest, effects.origin);
        }
        note_guest(line, guest);
        accepted(driver, line, &effects, false);
    } else {
        door_refuse(driver, guest, line, result, effects.must_notify, uid);
        /* It was led here by mistake; what else it brings is another's, and numbered for him. */
        guest->is_doomed = is_late || result == FK_DOOR_RESULT_NOT_US;
    }
    fk__driver_act(driver, &effects.authority);
    if (line != NULL) fk__line_wake(driver, line);
}

static void hear_response(fk_driver *driver, fk_guest *guest, const fk_wire_unique *from)
{
    fk_remote *remote = driver->remote;
    fk_authority_key key = wire_key(&from->address);
    fk_door_effects effects = { .authority = { .authority = NULL } };
    fk_door_result result = FK_DOOR_RESULT_UNKNOWN;
    fk__remote_lock(remote);
    fk_authority *authority = fk__authority_find(&remote->table, &key);
    fk_line *line = authority != NULL ? authority->user : NULL;
    /* It may be the first that is heard on that connection. */
    bool is_its = guest->origin == NULL || (line != NULL && &line->peer == guest->origin->peer);
    bool is_late = line != NULL && is_former(line, guest, from->uid);
    if (line != NULL && is_its && !is_late) {
        result =
            fk__door_accept(&driver->door, &line->peer, from->uid, false, driver->now, &effects);
        fk__line_follow(line);
    }
    fk__remote_unlock(remote);
    if (result == FK_DOOR_RESULT_ACCEPTED) {
        if (guest->origin != effects.origin || guest->uid != from->uid) {
            greet(driver, guest, effects.origin);
        }
        note_guest(line, guest);
        accepted(driver, line, &effects, true);
    } else {
        door_refuse(driver, guest, line, result, effects.must_notify, from->uid);
        guest->is_doomed = guest->is_doomed || is_late;
    }
    fk__driver_act(driver, &effects.authority);
    if (line != NULL) fk__line_wake(driver, line);
}

/* ---- tables of names ------------------------------------------------------------------------------------------ */

static fk_err compression_make(fk_driver *driver, fk_compression **out)
{
    void *memory;
    size_t size = sizeof(fk_compression) + fk__compression_memory(&COMPRESSION);
    FK_TRY(
        fk__mem_alloc(&driver->remote->sys->mem, size, FK_SITE("table of names, ours"), &memory));
    *out = memory;
    fk__compression_init(*out, &COMPRESSION, &driver->remote->sys->key, *out + 1);
    return FK_OK;
}

static fk_err table_make(fk_driver *driver, fk_wire_table **out)
{
    void *memory;
    size_t size = sizeof(fk_wire_table) + fk__table_memory(TABLE_COUNT, TABLE_TEXT);
    FK_TRY(
        fk__mem_alloc(&driver->remote->sys->mem, size, FK_SITE("table of names, theirs"), &memory));
    *out = memory;
    fk__table_init(*out, &driver->remote->sys->key, TABLE_COUNT, TABLE_TEXT, *out + 1);
    return FK_OK;
}

void fk__tables_out_free(fk_driver *driver, fk_line *line)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk_mail_peer *mail = &line->mail;
    size_t out = sizeof(fk_wire_table) + fk__table_memory(TABLE_COUNT, TABLE_TEXT);
    fk__mem_free(mem, mail->refs_out, out);
    fk__mem_free(mem, mail->manifests_out, out);
    mail->refs_out = mail->manifests_out = NULL;
}

void fk__tables_free(fk_driver *driver, fk_line *line)
{
    fk_mem *mem = &driver->remote->sys->mem;
    fk_mail_peer *mail = &line->mail;
    size_t in = sizeof(fk_compression) + fk__compression_memory(&COMPRESSION);
    fk__mem_free(mem, mail->refs_in, in);
    fk__mem_free(mem, mail->manifests_in, in);
    mail->refs_in = mail->manifests_in = NULL;
    fk__tables_out_free(driver, line);
    if (driver->mail != NULL) fk__mail_forget(driver->mail, mail);
}

void fk__speech_advertise(fk_driver *driver, fk_line *line)
{
    if (line->compress_at == FK_NEVER) return;
    if (line->compress_at > driver->now) {
        fk__driver_due(driver, line->compress_at);
        return;
    }
    line->compress_at = fk__time_add(driver->now, driver->config.compress_every);
    fk__driver_due(driver, line->compress_at);
    if (line->stream[FK_STREAM_CONTROL].conn == 0) return;
    fk_mail_peer *mail = &line->mail;
    /* From the first time on names are counted; from the second on there is something to say. */
    if (mail->refs_in == NULL && compression_make(driver, &mail->refs_in) != FK_OK) return;
    if (mail->manifests_in == NULL && compression_make(driver, &mail->manifests_in) != FK_OK)
        return;
    fk__line_owe(driver, line, FK_CONTROL_REF_TABLE);
    fk__line_owe(driver, line, FK_CONTROL_MANIFEST_TABLE);
}

static void hear_table(fk_driver *driver, fk_line *line, const fk_wire_control *control)
{
    bool is_refs = control->kind == FK_CONTROL_REF_TABLE;
    fk_wire_table **table = is_refs ? &line->mail.refs_out : &line->mail.manifests_out;
    if (*table == NULL && table_make(driver, table) != FK_OK) return; /* it is sent again */
    if (fk__table_accept(*table, &control->as.table, driver->uid) != FK_OK) return;
    line->table_version[is_refs ? 0 : 1] = (uint8_t)control->as.table.version;
    fk__line_owe(driver, line, is_refs ? FK_CONTROL_REF_TABLE_ACK : FK_CONTROL_MANIFEST_TABLE_ACK);
}

/* ---- hearing ---------------------------------------------------------------------------------------------------- */

static void hear_ack(fk_driver *driver, fk_line *line, const fk_wire_control *control, uint64_t uid)
{
    bool is_ack = control->kind == FK_CONTROL_ACK;
    fk_outbox_effects effects;
    fk_outbox_event event = { .kind = is_ack ? FK_OUTBOX_EVENT_ACK : FK_OUTBOX_EVENT_NACK,
                              .uid = uid,
                              .seq = control->as.ack.seq };
    (void)!fk__outbox_step(&line->outbox, &event, driver->now, &effects);
    fk__bonds_outbox(driver, line, &effects);
}

static bool hear_numbered(fk_driver *driver, fk_guest *guest, fk_line *line,
                          const fk_wire_numbered *numbered, fk_wire_fault *fault)
{
    fk_inbox_effects effects;
    fk__inbox_step(&guest->origin->inbox, numbered->seq, &effects);
    bool is_known = numbered->serializer == FK_SERIALIZER_SYSMSG;
    if (effects.must_deliver && is_known &&
        !fk__bonds_hear(driver, line, numbered->message, fault)) {
        fk__inbox_undo(&guest->origin->inbox, &effects);
        return fault->err == FK_OK;
    }
    /* What nobody here understands is acknowledged, and no reason to remember anybody. */
    if (effects.must_deliver && is_known) line->is_counting = true;
    line->ack_seq = effects.seq;
    line->owed &= ~(1u << FK_CONTROL_ACK | 1u << FK_CONTROL_NACK);
    fk__line_owe(driver, line, effects.is_gap ? FK_CONTROL_NACK : FK_CONTROL_ACK);
    return true;
}

/* The peer has quarantined us. */
static void hear_quarantined(fk_driver *driver, fk_line *line, const fk_wire_quarantined *notice)
{
    fk_remote *remote = driver->remote;
    fk_authority_effects effects = { .authority = NULL };
    if (notice->to.uid != driver->uid) return; /* an earlier one of us */
    fk__remote_lock(remote);
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_NOTICE, .uid = notice->from.uid };
    (void)!fk__authority_step(&remote->table, line->authority, &event, driver->now, &effects);
    fk__line_follow(line);
    fk__remote_unlock(remote);
    fk__driver_act(driver, &effects);
}

/* The peer ends; whoever is watched there has ended, or will not be heard of any more. */
static void hear_terminating(fk_driver *driver, fk_line *line, fk_str sender, uint64_t uid)
{
    fk__remote_lock(driver->remote);
    fk__authority_farewell(line->authority, uid);
    fk__remote_unlock(driver->remote);
    size_t len = sender.len < sizeof(line->leaver) ? sender.len : 0;
    memcpy(line->leaver, sender.ptr, len);
    line->leaver_len = (uint16_t)len;
    line->is_gone = true;
    fk__line_owe(driver, line, FK_CONTROL_TERMINATING_ACK);
    fk__bonds_lose(driver, line);
}

void fk__speech_heartbeat(fk_driver *driver, fk_line *line, bool is_reply, uint64_t uid)
{
    if (!is_reply)
        fk__line_owe(driver, line, FK_CONTROL_HEARTBEAT_RSP);
    else if (uid == line->uid) /* else of one that is gone */
        fk__bonds_reply(driver, line);
}

/* Of a system that has been greeted. */
static bool hear(fk_driver *driver, fk_guest *guest, fk_str sender, const fk_wire_control *control,
                 fk_wire_fault *fault)
{
    fk_line *line = FK_CONTAINER(guest->origin->peer, fk_line, peer);
    switch (control->kind) {
    case FK_CONTROL_QUARANTINED: hear_quarantined(driver, line, &control->as.quarantined); break;
    case FK_CONTROL_TERMINATING: hear_terminating(driver, line, sender, guest->uid); break;
    case FK_CONTROL_TERMINATING_ACK: line->has_left = true; break;
    case FK_CONTROL_REF_TABLE:
    case FK_CONTROL_MANIFEST_TABLE: hear_table(driver, line, control); break;
    case FK_CONTROL_REF_TABLE_ACK:
        if (line->mail.refs_in != NULL)
            fk__compression_confirm(line->mail.refs_in, (uint8_t)control->as.table_ack.version);
        break;
    case FK_CONTROL_MANIFEST_TABLE_ACK:
        if (line->mail.manifests_in != NULL)
            fk__compression_confirm(line->mail.manifests_in,
                                    (uint8_t)control->as.table_ack.version);
        break;
    case FK_CONTROL_SYSTEM_MESSAGE:
        return hear_numbered(driver, guest, line, &control->as.system_message, fault);
    case FK_CONTROL_ACK:
    case FK_CONTROL_NACK: hear_ack(driver, line, control, guest->uid); break;
    case FK_CONTROL_HEARTBEAT: fk__speech_heartbeat(driver, line, false, 0); break;
    case FK_CONTROL_HEARTBEAT_RSP:
        fk__speech_heartbeat(driver, line, true, control->as.heartbeat_rsp.uid);
        break;
    case FK_CONTROL_FLUSH: fk__line_owe(driver, line, FK_CONTROL_FLUSH_ACK); break;
    default: break;
    }
    return true;
}

/* A connection is of one system, which has one uid as long as it lives: who brings another could bring
 * any number of them. Also of those that were refused: their addresses are remembered, too. */
static bool is_same_claim(const fk_driver *driver, fk_guest *guest, const fk_wire_unique *from)
{
    const fk_hash_key *key = &driver->remote->sys->key;
    const fk_wire_address *a = &from->address;
    uint64_t claim = fk__hash_bytes(key, a->system.ptr, a->system.len);
    claim = fk__mix64(claim ^ fk__hash_bytes(key, a->host.ptr, a->host.len));
    claim = fk__mix64(claim ^ a->port);
    claim = fk__mix64(claim ^ from->uid) | 1;
    if (guest->claim == 0) guest->claim = claim;
    return guest->claim == claim;
}

bool fk__speech_hear(fk_driver *driver, fk_guest *guest, const fk_wire_envelope *envelope,
                     fk_wire_fault *fault)
{
    fk_wire_control control;
    fk_err err = fk__control_decode(envelope->manifest.text, envelope->payload, &control, fault);
    if (err == FK_E_NO_CODEC) return true; /* of a later version: not for us */
    if (err != FK_OK) return false;
    bool is_request = control.kind == FK_CONTROL_HANDSHAKE_REQ;
    bool is_response = control.kind == FK_CONTROL_HANDSHAKE_RSP;
    fault->err = FK_OK;
    if (is_request || is_response) {
        const fk_wire_unique *from =
            is_request ? &control.as.handshake.from : &control.as.from.from;
        if (from->uid != envelope->uid && FK_SAFEGUARD(HANDSHAKE_FROM)) {
            fk__wire_fail(fault, FK_E_MALFORMED, 4, "a handshake in the name of another system");
            return false;
        }
        if (!is_same_claim(driver, guest, from)) {
            fk__wire_fail(fault, FK_E_MALFORMED, 4, "a second system on one connection");
            return false;
        }
        if (is_request)
            hear_request(driver, guest, &control.as.handshake);
        else
            hear_response(driver, guest, &control.as.from.from);
        return true;
    }
    return hear(driver, guest, envelope->sender.text, &control, fault);
}

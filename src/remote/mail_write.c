/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/mail_names.h"

fk_reason fk__mail_reason(fk_err err)
{
    switch (err) {
    case FK_E_NO_CODEC: return FK_REASON_NO_CODEC;
    case FK_E_LIMIT: return FK_REASON_TOO_LARGE;
    case FK_E_NOMEM: return FK_REASON_NO_MEMORY;
    case FK_E_DEAD: return FK_REASON_STOPPED;
    default: return FK_REASON_MALFORMED;
    }
}

/* The root of the system that a selection is for. */
static fk_wire_name root_name(fk_mail *mail, const fk_authority *authority)
{
    fk_path path = { .rules = (uint8_t)mail->sys->paths.rules,
                     .system = authority->key.system,
                     .host = authority->key.host,
                     .port = authority->key.port };
    char *buf = mail->place[FK_PLACE_RECIPIENT];
    size_t len = fk_path_format(&path, FK_FORM_FULL, buf, mail->place_size);
    return (fk_wire_name){ .text = { buf, len < mail->place_size ? len : 0 } };
}

static fk_err letter_to(fk_mail *mail, fk_mail_peer *peer, const fk_letter *letter,
                        fk_wire_name *out, fk_codec_fault *fault)
{
    if (FK_UNLIKELY(letter->path != NULL)) {
        *out = root_name(mail, letter->path->authority);
    } else if (FK_LIKELY(fk__cell_resolve(mail->sys, letter->to) != NULL)) {
        uint64_t key = fk__sender_pack(letter->to.slot, letter->to.generation);
        fk__names_out(mail, peer, key, FK_PLACE_RECIPIENT, out);
    }
    if (FK_LIKELY(out->is_compressed || out->text.len != 0)) return FK_OK;
    *fault = (fk_codec_fault){ .err = FK_E_DEAD, .message = "the reference has given way" };
    return FK_E_DEAD;
}

/* Of an answer, who answered. One that has ended and is forgotten is nobody; but who waits for an
 * answer must not be left out only because there was no memory for a name. */
static fk_err letter_sender(fk_mail *mail, fk_mail_peer *peer, const fk_letter *letter,
                            fk_wire_name *out, fk_codec_fault *fault)
{
    uint64_t key = letter->node->sender;
    if (key == 0) return FK_OK;
    fk__names_out(mail, peer, key, FK_PLACE_SENDER, out);
    if (FK_LIKELY(out->text.len != 0)) return FK_OK;
    if (fk__cell_resolve(mail->sys, fk__sender_ref(key, mail->sys->id)) == NULL) return FK_OK;
    *fault = (fk_codec_fault){ .err = FK_E_NOMEM, .message = "no memory for the sender's name" };
    return FK_E_NOMEM;
}

static size_t name_size(const fk_wire_name *name)
{
    return name->is_compressed ? 0 : 2 + name->text.len;
}

/* Of names that are ASCII and not too long: paths and manifests were checked when they were made. */
static size_t envelope_size(const fk_wire_envelope *e)
{
    return FK_ENVELOPE_FIXED + name_size(&e->sender) + name_size(&e->recipient) +
           name_size(&e->manifest);
}

/* FK_OK: it may be that long. */
static fk_err frame_measure(const fk_mail *mail, const fk_packet *packet, fk_mail_room *room,
                            fk_codec_fault *fault)
{
    uint32_t frame_max = room->is_large ? mail->config.frame_max_large : mail->config.frame_max;
    size_t size = packet->e.payload.len, head = envelope_size(&packet->e);
    /* Compared before they are added up: a codec may ask for anything. */
    if (FK_UNLIKELY(size > frame_max || head > frame_max - size)) {
        return fk__packet_fail(packet, fault, FK_E_LIMIT, "the message is larger than a frame");
    }
    room->len = FK_FRAME_HEADER + head + size;
    return FK_OK;
}

fk_err fk__mail_write(fk_mail *mail, fk_mail_peer *peer, const fk_letter *letter,
                      fk_mail_room *room, fk_codec_fault *fault)
{
    fk_packet packet;
    FK_ASSERT(letter->node != NULL);
    packet.e = (fk_wire_envelope){ .uid = mail->config.own_uid };
    FK_TRY(letter_to(mail, peer, letter, &packet.e.recipient, fault));
    FK_TRY(letter_sender(mail, peer, letter, &packet.e.sender, fault));
    if (peer->refs_out != NULL) packet.e.ref_table = peer->refs_out->version;
    if (peer->manifests_out != NULL) packet.e.manifest_table = peer->manifests_out->version;
    fk_err err = fk__packet_open(mail, peer, letter->node, &packet, fault);
    if (err == FK_OK && FK_UNLIKELY(letter->path != NULL)) {
        err = fk__packet_select(mail, peer, letter->path, &packet, fault);
    }
    if (err == FK_OK) err = frame_measure(mail, &packet, room, fault);
    if (err == FK_OK && FK_UNLIKELY(room->len > room->size)) err = FK_E_FULL;
    if (FK_LIKELY(err == FK_OK)) {
        err = fk__packet_write(mail, peer, &packet, fk__frame_encode(&packet.e, room->to), fault);
    }
    fk__packet_close(mail, &packet);
    return err;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a message is as a payload. Most are written by their codec. What the runtime itself has to say,
 * and references, Pekko's serializer for miscellaneous messages writes:
 *
 *   fk_poison(), fk_kill()     PoisonPill, Kill
 *   FK_IDENTIFY(id)            Identify, with the number as a Long
 *   fk_identity                ActorIdentity; with the number, or whatever the other side asked with
 *   FK_MSG_REF(ref)            ActorRef
 *   a piped answer             what was answered; or Status.Failure
 */

#include "core/answer.h"
#include "core/path.h"
#include "core/select.h"
#include "fraktor/select.h"
#include "remote/mail_names.h"

/* Any that a JVM has, and that may be made from text alone. */
static const fk_str THROWN = { "java.lang.RuntimeException", 26 };

enum { CAUSE_TEXT_MAX = 400 }; /* so that all of it fits in packet->cause */

static fk_err packet_misc(fk_packet *packet, fk_misc_kind kind)
{
    packet->e.serializer = FK_SERIALIZER_MISC;
    packet->misc.kind = kind;
    packet->e.manifest.text = fk__misc_manifest(kind);
    packet->e.payload.len = fk__misc_size(&packet->misc);
    return FK_OK;
}

static fk_wire_payload number_payload(fk_packet *packet, const void *number)
{
    uint64_t value;
    memcpy(&value, number, sizeof(value));
    fk__store64(packet->number, value);
    return (fk_wire_payload){ .serializer = FK_SERIALIZER_LONG,
                              .message = { (const char *)packet->number, sizeof(value) } };
}

/* As fk__arrival_open() wrote it: serializer, length of the manifest, manifest, message. Users may
 * make a payload of anything, so it is checked. */
static bool mark_payload(fk_str mark, fk_wire_payload *out)
{
    if (mark.len < 8) return false;
    size_t manifest_len = fk__load32(mark.ptr + 4);
    if (manifest_len > mark.len - 8) return false;
    *out = (fk_wire_payload){
        .serializer = (int32_t)fk__load32(mark.ptr),
        .manifest = { mark.ptr + 8, manifest_len },
        .message = { mark.ptr + 8 + manifest_len, mark.len - 8 - manifest_len },
    };
    return true;
}

static fk_err packet_identity(fk_mail *mail, fk_mail_peer *peer, const fk_msg *msg,
                              fk_packet *packet)
{
    fk_identity identity;
    if (msg->len < sizeof(identity)) return FK_E_INVALID;
    memcpy(&identity, msg->data, sizeof(identity));
    fk_wire_identity *out = &packet->misc.as.identity;
    *out = (fk_wire_identity){ 0 };
    if (!mark_payload(fk__identify_mark(msg, sizeof(identity)), &out->id)) {
        out->id = number_payload(packet, &identity.id);
    }
    out->ref.path = fk__names_text(mail, peer, NULL, identity.ref, FK_PLACE_INSIDE);
    return packet_misc(packet, FK_MISC_IDENTITY);
}

static fk_err packet_ref(fk_mail *mail, fk_mail_peer *peer, const fk_msg *msg, fk_packet *packet,
                         fk_codec_fault *fault)
{
    fk_ref ref;
    if (msg->len != sizeof(ref)) return FK_E_INVALID;
    memcpy(&ref, msg->data, sizeof(ref));
    fk_str path = fk__names_text(mail, peer, NULL, ref, FK_PLACE_INSIDE);
    packet->misc.as.ref = (fk_wire_ref){ .path = path };
    if (path.len != 0) return packet_misc(packet, FK_MISC_REF);
    return fk__packet_fail(packet, fault, FK_E_DEAD, "a reference to nobody cannot be sent");
}

/* A question failed, and who asked it is at the peer. */
static fk_err packet_failure(fk_packet *packet, fk_err err, fk_str why)
{
    if (why.len == 0) why = fk_str_of(fk_err_text(err));
    if (why.len > CAUSE_TEXT_MAX) why.len = CAUSE_TEXT_MAX;
    fk_wire_misc thrown = { .kind = FK_MISC_THROWABLE };
    thrown.as.throwable = (fk_wire_throwable){ .class_name = THROWN, .message = why };
    size_t size = fk__misc_size(&thrown);
    FK_ASSERT(size <= sizeof(packet->cause));
    fk__misc_encode(&thrown, packet->cause, size);
    packet->misc.as.status = (fk_wire_payload){ .serializer = FK_SERIALIZER_MISC,
                                                .manifest = fk__misc_manifest(FK_MISC_THROWABLE),
                                                .message = { (const char *)packet->cause, size } };
    return packet_misc(packet, FK_MISC_FAILURE);
}

/* Not by a codec. FK_E_NO_CODEC: none of ours. */
static fk_err packet_special(fk_mail *mail, fk_mail_peer *peer, const fk_msg *msg,
                             fk_packet *packet, fk_codec_fault *fault)
{
    packet->misc.as.nothing = 0;
    if (msg->type == &fk_type_poison) return packet_misc(packet, FK_MISC_POISON);
    if (msg->type == &fk_type_kill) return packet_misc(packet, FK_MISC_KILL);
    if (msg->type == &fk_type_fk_identity) return packet_identity(mail, peer, msg, packet);
    if (msg->type == &fk_type_fk_ref) return packet_ref(mail, peer, msg, packet, fault);
    if (msg->type != &fk_type_identify) return FK_E_NO_CODEC;
    if (msg->len < sizeof(uint64_t)) return FK_E_INVALID;
    packet->misc.as.identify = (fk_wire_identify){ .id = number_payload(packet, msg->data) };
    return packet_misc(packet, FK_MISC_IDENTIFY);
}

static fk_err packet_measure(fk_mail *mail, fk_mail_peer *peer, fk_packet *packet,
                             fk_codec_fault *fault)
{
    fk_mail_refs refs;
    if (FK_LIKELY(fk_codec_is_verbatim(packet->codec) && packet->codec->type->size == 0)) {
        packet->e.payload.len = packet->len;
        return FK_OK;
    }
    fk__mail_refs_init(&refs, (fk_mail_way){ mail, peer, NULL });
    fk_err err = fk__codec_measure(packet->codec, &refs.refs, packet->data, packet->len,
                                   &packet->e.payload.len);
    if (err == FK_OK) return FK_OK;
    return fk__packet_fail(packet, fault, err, "the codec cannot write this message");
}

/* An answer that is piped to another system is what it says. */
static fk_err packet_answer(fk_mail *mail, fk_mail_peer *peer, const fk_node *node, fk_packet *out,
                            fk_codec_fault *fault)
{
    fk_err err;
    fk_msg msg;
    const fk_node *reply = fk__answer_open(node, &err);
    if (reply != NULL && err == FK_OK) return fk__packet_open(mail, peer, reply, out, fault);
    fk_str why = FK_STR("");
    if (reply != NULL) {
        fk__node_view(reply, mail->sys->id, &msg);
        if (msg.type == &fk_type_text) why = (fk_str){ msg.data, msg.len };
    }
    return packet_failure(out, err, why);
}

/* As fk_codecs_of_type(). */
static inline fk_err codec_of(fk_mail *mail, const fk_type *type, const fk_codec **out,
                              fk_codec_fault *fault)
{
    const fk_codec *last = mail->codec_wrote;
    if (FK_LIKELY(last != NULL && last->type == type)) {
        *out = last;
        return FK_OK;
    }
    FK_TRY(fk_codecs_of_type(&mail->codecs, type, out, fault));
    mail->codec_wrote = *out;
    return FK_OK;
}

fk_err fk__packet_open(fk_mail *mail, fk_mail_peer *peer, const fk_node *node, fk_packet *out,
                       fk_codec_fault *fault)
{
    fk_msg msg;
    out->codec = NULL;
    out->bytes = NULL;
    if (FK_UNLIKELY(fk__node_is_answer(node))) return packet_answer(mail, peer, node, out, fault);
    fk__node_view(node, mail->sys->id, &msg);
    fk_err err = codec_of(mail, msg.type, &out->codec, fault);
    if (FK_UNLIKELY(err != FK_OK)) {
        err = packet_special(mail, peer, &msg, out, fault);
        if (err == FK_E_INVALID) err = fk__packet_fail(out, fault, err, "no such message is sent");
        return err;
    }
    out->data = msg.data;
    out->len = msg.len;
    out->e.serializer = out->codec->serializer;
    if (out->codec->manifest != NULL) {
        fk__names_manifest(mail, peer, out->codec, &out->e.manifest);
    }
    return packet_measure(mail, peer, out, fault);
}

fk_err fk__packet_write(fk_mail *mail, fk_mail_peer *peer, const fk_packet *packet,
                        unsigned char *to, fk_codec_fault *fault)
{
    if (FK_UNLIKELY(packet->codec == NULL)) {
        if (packet->bytes != NULL)
            memcpy(to, packet->bytes, packet->e.payload.len);
        else
            fk__misc_encode(&packet->misc, to, packet->e.payload.len);
        return FK_OK;
    }
    if (FK_LIKELY(fk_codec_is_verbatim(packet->codec))) {
        if (packet->e.payload.len != 0) memcpy(to, packet->data, packet->e.payload.len);
        return FK_OK;
    }
    fk_mail_refs refs;
    fk__mail_refs_init(&refs, (fk_mail_way){ mail, peer, NULL });
    fk_err err = fk__codec_encode(packet->codec, &refs.refs, packet->data, packet->len, to,
                                  packet->e.payload.len);
    if (err == FK_OK) return FK_OK;
    return fk__packet_fail(packet, fault, err, "the codec could not write this message");
}

void fk__packet_close(fk_mail *mail, fk_packet *packet)
{
    if (packet->bytes != NULL) fk__mem_free(&mail->sys->mem, packet->bytes, packet->e.payload.len);
}

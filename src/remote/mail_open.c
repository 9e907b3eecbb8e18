/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From a payload to a message: see mail_packet.c for the other way. */

#include "core/answer.h"
#include "fraktor/select.h"
#include "remote/mail_names.h"

static fk_reason reason_of_fault(fk_err err)
{
    return err == FK_E_NOMEM || err == FK_E_LIMIT ? FK_REASON_NO_MEMORY : FK_REASON_MALFORMED;
}

/* ---- by codec ----------------------------------------------------------------------------------------- */

/* A node with room for so many bytes of a type, inline or in a payload; NULL: no memory. */
static fk_node *node_room(fk_local *local, const fk_type *type, size_t len, void **bytes)
{
    fk_payload *payload = NULL;
    bool is_inline = len <= FK_INLINE_MAX;
    if (!is_inline && fk__payload_create(&local->cache, local->sys, type, len, &payload) != FK_OK) {
        return NULL;
    }
    unsigned size_class = fk__node_class(is_inline ? len : sizeof(payload));
    fk_node *node = fk__cache_get(&local->cache, size_class, FK_SITE("message of another system"));
    if (FK_UNLIKELY(node == NULL)) {
        if (payload != NULL) fk__cache_free(&local->cache, payload, payload->block_size);
        return NULL;
    }
    node->size_class = (uint8_t)size_class;
    if (FK_LIKELY(is_inline)) {
        node->type = type;
        node->len = (uint16_t)len;
        node->flags = type->drop != NULL ? FK_NODE_DROP : 0;
        *bytes = node->bytes;
    } else {
        fk__node_put_payload(node, payload);
        *bytes = payload->data;
    }
    return node;
}

/* What is in the room is nothing that could be dropped. */
static void node_unroom(fk_local *local, fk_node *node)
{
    if ((node->flags & FK_NODE_PAYLOAD) != 0) {
        fk_payload *payload;
        memcpy(&payload, node->bytes, sizeof(payload));
        fk__cache_free(&local->cache, payload, payload->block_size);
    }
    fk__node_free(&local->cache, node);
}

static fk_err codec_find(fk_mail *mail, const fk_wire_payload *payload, const fk_codec **out,
                         fk_codec_fault *fault)
{
    const fk_codec *last = mail->codec_read;
    if (FK_LIKELY(last != NULL && last->serializer == payload->serializer)) {
        bool is_bare = last->manifest == NULL && payload->manifest.len == 0;
        if (is_bare || fk__wire_equal(fk_codec_manifest(last), payload->manifest)) {
            *out = last;
            return FK_OK;
        }
    }
    FK_TRY(fk_codecs_of_wire(&mail->codecs, payload->serializer, payload->manifest, out, fault));
    mail->codec_read = *out;
    return FK_OK;
}

/* Fills the room; what fails has left nothing in it. */
static fk_err codec_read(const fk_arrival *a, const fk_codec *codec, fk_str bytes, void *to,
                         fk_codec_fault *fault)
{
    fk_mail_refs refs;
    if (FK_LIKELY(fk_codec_is_verbatim(codec))) {
        if (bytes.len != 0) memcpy(to, bytes.ptr, bytes.len);
        return FK_OK;
    }
    fk__mail_refs_init(&refs, a->way);
    return fk__codec_decode(codec, &refs.refs, bytes, to, fault);
}

static inline fk_err open_codec(const fk_arrival *a, const fk_wire_payload *payload, fk_node **out)
{
    fk_codec_fault fault; /* written by whoever fails */
    const fk_codec *codec;
    void *bytes;
    if (codec_find(a->way.mail, payload, &codec, &fault) != FK_OK) {
        fk__arrival_refuse(a, FK_REASON_NO_CODEC, payload, fault.message);
        return FK_OK;
    }
    if (codec->manifest != NULL) fk__names_manifest_came(a->way.mail, a->way.peer, codec);
    size_t len = fk_codec_is_verbatim(codec) ? payload->message.len : codec->type->size;
    fk_node *node = node_room(a->way.local, codec->type, len, &bytes);
    if (FK_UNLIKELY(node == NULL)) {
        fk__arrival_refuse(a, FK_REASON_NO_MEMORY, payload, "no memory");
        return FK_OK;
    }
    fk_err err = codec_read(a, codec, payload->message, bytes, &fault);
    if (FK_UNLIKELY(err != FK_OK)) {
        node_unroom(a->way.local, node);
        fk__arrival_refuse(a, reason_of_fault(err), payload, fault.message);
        return FK_OK;
    }
    *out = node;
    return FK_OK;
}

/* ---- miscellaneous ---------------------------------------------------------------------------------------- */

static fk_err open_out(const fk_arrival *a, const fk_wire_payload *payload, fk_out what,
                       fk_node **out)
{
    *out = fk__node_create(&a->way.local->cache, what);
    if (*out == NULL) fk__arrival_refuse(a, FK_REASON_NO_MEMORY, payload, "no memory");
    return FK_OK;
}

static bool is_number(const fk_wire_payload *id)
{
    return id->serializer == FK_SERIALIZER_LONG && id->message.len == sizeof(uint64_t) &&
           id->manifest.len == 0;
}

/* What we asked with; of others' it says nothing. */
static uint64_t number_of(const fk_wire_payload *id)
{
    if (is_number(id)) return fk__load64(id->message.ptr);
    bool is_int = id->serializer == FK_SERIALIZER_INT && id->message.len == sizeof(uint32_t);
    return is_int ? (uint64_t)(int64_t)(int32_t)fk__load32(id->message.ptr) : 0;
}

static bool is_from_proxy(const fk_arrival *a, fk_ref ref)
{
    const fk_cell *cell = fk__local_resolve(a->way.local, ref);
    return cell != NULL && fk__cell_is_remote(cell);
}

/* What it was asked with goes along, to come back as it is: see fk__identify_mark(). An actor here in
 * whose name it was sent could make nothing of it. */
static fk_err open_identify(const fk_arrival *a, const fk_wire_payload *payload,
                            const fk_wire_payload *id, fk_node **out)
{
    uint64_t number = number_of(id);
    if (is_number(id) || !is_from_proxy(a, a->sender.ref)) {
        return open_out(a, payload, (fk_out){ &fk_type_identify, &number }, out);
    }
    fk_payload *marked = NULL;
    size_t len = sizeof(number) + 8 + id->manifest.len + id->message.len;
    fk_err err = fk__payload_create(&a->way.local->cache, a->way.local->sys, &fk_type_identify, len,
                                    &marked);
    if (err != FK_OK) {
        fk__arrival_refuse(a, FK_REASON_NO_MEMORY, payload, "no memory");
        return FK_OK;
    }
    FK_ASSERT(marked != NULL);
    unsigned char *at = marked->data;
    memcpy(at, &number, sizeof(number));
    fk__store32(at + 8, (uint32_t)id->serializer);
    fk__store32(at + 12, (uint32_t)id->manifest.len);
    if (id->manifest.len != 0) memcpy(at + 16, id->manifest.ptr, id->manifest.len);
    at += 16 + id->manifest.len;
    if (id->message.len != 0) memcpy(at, id->message.ptr, id->message.len);
    FK_TRY(open_out(a, payload, (fk_out){ &fk_type_payload, marked }, out));
    if (*out == NULL) fk__payload_put(&a->way.local->cache, marked);
    return FK_OK;
}

/* A reference in a message of Pekko's. False: it was refused. */
static bool take_ref(const fk_arrival *a, const fk_wire_payload *payload, fk_str text, fk_ref *out)
{
    fk_mail_refs refs;
    fk__mail_refs_init(&refs, a->way);
    *out = FK_REF_NONE;
    fk_err err = text.len != 0 ? refs.refs.ref(&refs, text, out) : FK_OK;
    if (err == FK_OK) return true;
    fk__arrival_refuse(a, reason_of_fault(err), payload, "a reference cannot be resolved");
    return false;
}

static fk_err open_identity(const fk_arrival *a, const fk_wire_payload *payload,
                            const fk_wire_identity *identity, fk_node **out)
{
    fk_identity found = { number_of(&identity->id), FK_REF_NONE };
    if (!take_ref(a, payload, identity->ref.path, &found.ref)) return FK_OK;
    return open_out(a, payload, (fk_out){ &fk_type_fk_identity, &found }, out);
}

static fk_err open_ref(const fk_arrival *a, const fk_wire_payload *payload, fk_str path,
                       fk_node **out)
{
    fk_ref ref;
    if (!take_ref(a, payload, path, &ref)) return FK_OK;
    return open_out(a, payload, (fk_out){ &fk_type_fk_ref, &ref }, out);
}

/* Why something failed, as far as that can be told. */
static fk_str cause_of(const fk_wire_payload *cause)
{
    fk_wire_misc misc;
    fk_str unknown = FK_STR("it failed, and the reason is not understood here");
    if (cause->serializer == FK_SERIALIZER_TEXT) return cause->message;
    if (cause->serializer != FK_SERIALIZER_MISC) return unknown;
    if (fk__misc_decode(cause->manifest, cause->message, &misc, NULL) != FK_OK) return unknown;
    if (misc.kind == FK_MISC_NOT_SERIALIZABLE) return misc.as.not_serializable.message;
    if (misc.kind != FK_MISC_THROWABLE) return unknown;
    return misc.as.throwable.message.len != 0 ? misc.as.throwable.message
                                              : misc.as.throwable.class_name;
}

/* The answer to a question is that it failed: whoever asked gets an fk_answer that says so. */
static fk_err open_failure(const fk_arrival *a, const fk_wire_payload *payload,
                           const fk_wire_payload *cause, fk_node **out)
{
    fk_local *local = a->way.local;
    fk_str why = cause_of(cause);
    fk_node *reply = NULL, *answer = NULL;
    FK_TRY(open_out(a, payload, (fk_out){ &fk_type_text, &why }, &reply));
    if (reply == NULL) return FK_OK;
    reply->sender = fk__sender_pack(a->sender.ref.slot, a->sender.ref.generation);
    if (fk_ref_is_none(a->to.ref)) { /* a dead letter, with what there is to read */
        *out = reply;
        return FK_OK;
    }
    if (fk__answer_create(local, NULL, a->to.ref, 0, &answer) != FK_OK) {
        node_unroom(local, reply);
        fk__arrival_refuse(a, FK_REASON_NO_MEMORY, payload, "no memory");
        return FK_OK;
    }
    FK_ASSERT(answer != NULL);
    fk__answer_bind(answer, FK_REF_NONE, a->sender.ref);
    fk__answer_deliver(local, answer, FK_E_FAILED, reply);
    return FK_OK;
}

static fk_err open_harmful(const fk_arrival *a, const fk_wire_payload *payload, fk_misc_kind kind,
                           fk_node **out)
{
    bool is_kill = kind == FK_MISC_KILL;
    fk_out what = { is_kill ? &fk_type_kill : &fk_type_poison, "" };
    if (a->way.mail->config.is_trusting) return open_out(a, payload, what, out);
    fk__arrival_refuse(a, FK_REASON_FORBIDDEN, payload, is_kill ? "Kill" : "PoisonPill");
    return FK_OK;
}

/* What is in it. Not all that could be: a status of a status of a status has no end. */
static fk_err open_success(const fk_arrival *a, const fk_wire_payload *payload, fk_node **out)
{
    fk_wire_misc misc;
    if (payload->serializer != FK_SERIALIZER_MISC) return open_codec(a, payload, out);
    if (!fk__wire_equal(payload->manifest, fk__misc_manifest(FK_MISC_REF))) {
        fk__arrival_refuse(a, FK_REASON_NO_CODEC, payload, "no such message is understood here");
        return FK_OK;
    }
    fk_err err = fk__misc_decode(payload->manifest, payload->message, &misc, a->fault);
    if (err != FK_OK) return FK_E_MALFORMED; /* and nothing else: the fault says more */
    return open_ref(a, payload, misc.as.ref.path, out);
}

static fk_err open_misc(const fk_arrival *a, const fk_wire_payload *payload, bool is_selected,
                        fk_node **out)
{
    fk_wire_misc misc;
    fk_err err = fk__misc_decode(payload->manifest, payload->message, &misc, a->fault);
    if (err == FK_E_NO_CODEC) {
        fk__arrival_refuse(a, FK_REASON_NO_CODEC, payload, "no such message is understood here");
        return FK_OK;
    }
    if (err != FK_OK) return FK_E_MALFORMED;
    switch (misc.kind) {
    case FK_MISC_IDENTIFY: return open_identify(a, payload, &misc.as.identify.id, out);
    case FK_MISC_IDENTITY: return open_identity(a, payload, &misc.as.identity, out);
    case FK_MISC_REF: return open_ref(a, payload, misc.as.ref.path, out);
    case FK_MISC_KILL:
    case FK_MISC_POISON: return open_harmful(a, payload, misc.kind, out);
    case FK_MISC_SUCCESS: return open_success(a, &misc.as.status, out);
    case FK_MISC_FAILURE:
        if (!is_selected) return open_failure(a, payload, &misc.as.status, out);
        break;
    default: break;
    }
    fk__arrival_refuse(a, FK_REASON_NO_CODEC, payload, "no such message is understood here");
    return FK_OK;
}

fk_err fk__arrival_open(const fk_arrival *a, const fk_wire_payload *payload, bool is_selected,
                        fk_node **out)
{
    *out = NULL;
    if (FK_UNLIKELY(payload->serializer == FK_SERIALIZER_MISC))
        FK_TRY(open_misc(a, payload, is_selected, out));
    else
        FK_TRY(open_codec(a, payload, out));
    if (*out != NULL)
        (*out)->sender = fk__sender_pack(a->sender.ref.slot, a->sender.ref.generation);
    return FK_OK;
}

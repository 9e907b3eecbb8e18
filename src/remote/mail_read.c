/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/path.h"
#include "core/select.h"
#include "core/send.h"
#include "remote/mail_names.h"
#include "wire/control.h"

/* ---- dead letters --------------------------------------------------------------------------------- */

static void put_serializer(fk_text *text, int32_t serializer)
{
    fk__text_put(text, FK_STR("serializer "));
    if (serializer < 0) fk__text_put(text, FK_STR("-"));
    fk__text_number(text, serializer < 0 ? 0 - (uint64_t)serializer : (uint64_t)serializer);
}

static void arrival_letter(const fk_arrival *a, fk_dead_letter *letter)
{
    char path[FK_SHOWN_MAX];
    letter->to = a->to.ref;
    letter->sender = a->sender.ref;
    if (fk_ref_is_none(a->to.ref)) letter->path = fk__text_shown(a->to_text, path);
    fk__dead_report(a->way.local, letter);
}

void fk__arrival_refuse(const fk_arrival *a, fk_reason reason, const fk_wire_payload *payload,
                        const char *why)
{
    char detail[FK_SHOWN_MAX], manifest[FK_SHOWN_MAX];
    fk_text text = { detail, sizeof(detail), 0 };
    fk__text_put(&text, fk_str_of(why));
    fk__text_put(&text, FK_STR(": "));
    put_serializer(&text, payload->serializer);
    fk__text_put(&text, FK_STR(", manifest \""));
    fk__text_put(&text, fk__text_shown(payload->manifest, manifest));
    fk__text_put(&text, FK_STR("\", from "));
    fk__text_put(&text, a->from->text);
    fk_dead_letter letter = { .reason = reason,
                              .type = &fk_type_bytes,
                              .data = payload->message.ptr,
                              .len = payload->message.len,
                              .detail = { detail, text.len < text.size ? text.len : text.size } };
    arrival_letter(a, &letter);
}

/* A message that was read, and does not reach anybody. The node is taken. */
static void arrival_discard(const fk_arrival *a, fk_node *node)
{
    fk_msg msg;
    fk__node_view(node, a->way.local->system, &msg);
    fk_dead_letter letter = {
        .reason = (fk_reason)a->to.miss, .type = msg.type, .data = msg.data, .len = msg.len
    };
    arrival_letter(a, &letter);
    fk__node_drop_contents(&a->way.local->cache, node);
    fk__node_free(&a->way.local->cache, node);
}

/* ---- for whom it is ---------------------------------------------------------------------------------- */

static fk_err text_find(fk_compression *table, uint8_t version, const fk_wire_name *name,
                        fk_str *out)
{
    if (table == NULL) return FK_E_NOT_FOUND;
    return fk__compression_find(table, version, name->index, out);
}

static inline fk_err name_text(fk_compression *table, uint8_t version, const fk_wire_name *name,
                               fk_str *out)
{
    if (name->is_compressed) return text_find(table, version, name, out);
    *out = name->text;
    return FK_OK;
}

/* All three. FK_E_NOT_FOUND, FK_E_MALFORMED. */
static inline fk_err envelope_texts(const fk_mail_peer *peer, const fk_wire_envelope *e, fk_str *to,
                                    fk_str *sender, fk_str *manifest)
{
    FK_TRY(name_text(peer->refs_in, e->ref_table, &e->recipient, to));
    FK_TRY(name_text(peer->refs_in, e->ref_table, &e->sender, sender));
    return name_text(peer->manifests_in, e->manifest_table, &e->manifest, manifest);
}

/* False: it cannot be said who sent it, for want of memory or room. */
static inline bool arrival_name(fk_arrival *a, fk_str sender)
{
    fk__names_in(&a->way, a->to_text, true, &a->to);
    if (FK_UNLIKELY(sender.len == 0)) {
        a->sender = (fk_named){ .err = FK_OK };
        return true;
    }
    fk__names_in(&a->way, sender, false, &a->sender);
    return a->sender.err != FK_E_NOMEM && a->sender.err != FK_E_LIMIT;
}

/* It was compressed, but not by what we know. */
static FK_COLD fk_err arrival_lost(fk_arrival *a, const fk_wire_envelope *e, fk_err err)
{
    fk_wire_payload payload = { .serializer = e->serializer, .message = e->payload };
    if (err != FK_E_NOT_FOUND) {
        return fk__wire_fail(a->fault, err, 0, "an index that its table does not have");
    }
    a->to_text = FK_STR("");
    a->to = a->sender = (fk_named){ .err = FK_OK };
    fk__arrival_refuse(a, FK_REASON_NO_RECEIVER, &payload, "compressed by an unknown table");
    return FK_OK;
}

/* ---- reading --------------------------------------------------------------------------------------------- */

static fk_err arrival_deliver(const fk_arrival *a, const fk_wire_payload *payload)
{
    fk_node *node = NULL;
    FK_TRY(fk__arrival_open(a, payload, false, &node));
    if (FK_UNLIKELY(node == NULL)) return FK_OK;
    if (FK_UNLIKELY(fk_ref_is_none(a->to.ref))) {
        arrival_discard(a, node);
        return FK_OK;
    }
    (void)fk__send_node(a->way.local, a->to.ref,
                        node); /* what does not get there is a dead letter */
    return FK_OK;
}

/* Nodes of a cluster talk to each other, but only what they have to. */
static bool is_for_steward(const fk_arrival *a, const fk_wire_envelope *envelope)
{
    const fk_cluster_ops *cluster = &a->way.mail->sys->cluster;
    /* Acquire: who sees the cluster sees its steward. */
    return envelope->serializer == FK_SERIALIZER_CLUSTER &&
           fk__word_load(&cluster->ctx, FK_ACQUIRE) != 0 &&
           fk_ref_equal(a->to.ref, cluster->steward);
}

fk_err fk__mail_read(fk_mail *mail, fk_local *local, fk_mail_peer *peer, const fk_authority *from,
                     const fk_wire_envelope *envelope, fk_wire_fault *fault)
{
    fk_arrival a;
    fk_wire_payload payload;
    fk_str sender;
    a.way = (fk_mail_way){ mail, peer, local };
    a.from = from;
    a.fault = fault;
    payload.serializer = envelope->serializer;
    payload.message = envelope->payload;
    fk_err err = envelope_texts(peer, envelope, &a.to_text, &sender, &payload.manifest);
    if (FK_UNLIKELY(err != FK_OK)) return arrival_lost(&a, envelope, err);
    if (FK_UNLIKELY(!arrival_name(&a, sender))) {
        bool is_limit = a.sender.err == FK_E_LIMIT;
        fk__arrival_refuse(&a, is_limit ? FK_REASON_LIMIT : FK_REASON_NO_MEMORY, &payload,
                           "no reference to its sender");
        return FK_OK;
    }
    if (FK_UNLIKELY(envelope->serializer == FK_SERIALIZER_SELECTION)) {
        return fk__arrival_select(&a, envelope->payload);
    }
    if (FK_UNLIKELY(a.to.is_guarded) && !mail->config.is_trusting &&
        !is_for_steward(&a, envelope)) {
        fk__arrival_refuse(&a, FK_REASON_FORBIDDEN, &payload, "to the system's own actors");
        return FK_OK;
    }
    return arrival_deliver(&a, &payload);
}

/* ---- heartbeats ------------------------------------------------------------------------------------------- */

static bool pattern_is(const fk_wire_selection *selection, size_t *cursor, fk_str name)
{
    fk_wire_pattern pattern;
    if (!fk__selection_next(selection, cursor, &pattern)) return false;
    return pattern.kind == FK_PATTERN_NAME && fk__wire_equal(pattern.text, name);
}

bool fk__mail_is_heartbeat(const fk_wire_envelope *envelope, fk_wire_payload *inner)
{
    fk_wire_selection selection;
    size_t cursor = 0;
    if (envelope->serializer != FK_SERIALIZER_SELECTION) return false;
    if (fk__selection_decode(envelope->payload, &selection, NULL) != FK_OK) return false;
    if (selection.serializer != FK_SERIALIZER_CONTROL || selection.patterns.count != 2)
        return false;
    if (!pattern_is(&selection, &cursor, FK_STR("system"))) return false;
    if (!pattern_is(&selection, &cursor, FK_STR("remote-watcher"))) return false;
    *inner = (fk_wire_payload){ .serializer = selection.serializer,
                                .message = selection.message,
                                .manifest = selection.manifest };
    return true;
}

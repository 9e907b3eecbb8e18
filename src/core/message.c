/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/message.h"

#include "base/safeguard.h"
#include "core/answer.h"
#include "core/system.h"
#include "core/watch.h"

const fk_type fk_type_text = { "text", 0, 1, NULL };
const fk_type fk_type_bytes = { "bytes", 0, 1, NULL };
const fk_type fk_type_fk_ref = { "fk_ref", sizeof(fk_ref), _Alignof(fk_ref), NULL };
const fk_type fk_type_payload = { "payload", 0, 1, NULL };
const fk_type fk_type_receive_timeout = { "receive_timeout", 0, 1, NULL };
const fk_type fk_type_poison = { "poison", 0, 1 | FK_TYPE_QUIET, NULL };
const fk_type fk_type_kill = { "kill", 0, 1 | FK_TYPE_QUIET, NULL };
const fk_type fk_type_identify = { "identify", 0, 1, NULL };
const fk_type fk__type_tick = { "fk_tick", 1, 1, NULL };
const fk_type fk_type_clash = { "clash", 0, 1, NULL };

static bool type_is_string(const fk_type *type)
{
    return type == &fk_type_text || type == &fk_type_bytes;
}

/* ---- payloads ---------------------------------------------------------------------------- */

fk_err fk__payload_create(fk_cache *cache, fk_system *sys, const fk_type *type, size_t len,
                          fk_payload **out)
{
    if (len > SIZE_MAX - sizeof(fk_payload)) return FK_E_LIMIT;
    size_t size = sizeof(fk_payload) + len;
    fk_payload *payload = fk__cache_alloc(cache, size, FK_SITE("payload"));
    if (payload == NULL) return cache->err;
    fk__word_init(&payload->shares, 1);
    payload->sys = sys;
    payload->type = type != NULL ? type : &fk_type_bytes;
    payload->len = len;
    payload->block_size = size;
    *out = payload;
    return FK_OK;
}

static void drop_data(fk_cache *cache, const fk_type *type, void *data)
{
    fk_local *local = FK_CONTAINER(cache, fk_local, cache);
    fk__local_pause(local);
    type->drop(data);
    fk__local_resume(local);
}

void fk__payload_put(fk_cache *cache, fk_payload *payload)
{
    /* The last share needs no read-modify-write: nobody else can add one. Otherwise acq_rel, so
     * that the last one to leave sees what the others wrote before they left. */
    if (fk__word_load(&payload->shares, FK_ACQUIRE) != 1 &&
        fk__word_add(&payload->shares, (uintptr_t)-1, FK_ACQ_REL) != 1) {
        return;
    }
    if (payload->type->drop != NULL) drop_data(cache, payload->type, payload->data);
    fk_system *sys = payload->sys;
    if (FK_LIKELY(cache->pool == &sys->pool)) {
        fk__cache_free(cache, payload, payload->block_size);
        return;
    }
    fk_local *home = fk__local_enter(sys); /* sent to another system: the block goes home */
    fk__cache_free(&home->cache, payload, payload->block_size);
    fk__local_leave(home);
}

fk_err fk_payload_create(fk_system *sys, const fk_type *type, size_t len, fk_payload **out)
{
    if (sys == NULL || out == NULL || type == &fk_type_fk_terminated) return FK_E_INVALID;
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__payload_create(&local->cache, sys, type, len, out);
    fk__local_leave(local);
    return err;
}

void *fk_payload_data(fk_payload *payload)
{
    return payload->data;
}

size_t fk_payload_len(const fk_payload *payload)
{
    return payload->len;
}

fk_payload *fk_payload_share(fk_payload *payload)
{
    /* Relaxed: whoever calls this has a share, so it cannot go to zero beside us. */
    fk__word_add(&payload->shares, 1, FK_RELAXED);
    return payload;
}

void fk_payload_put(fk_payload *payload)
{
    if (payload == NULL) return;
    fk_local *local = fk__local_enter(payload->sys);
    fk__payload_put(&local->cache, payload);
    fk__local_leave(local);
}

/* ---- nodes ------------------------------------------------------------------------------- */

/* An identify message that is a payload comes from another system, with the asker's own mark behind
 * the number. */
static bool payload_is_identify(const fk_payload *payload)
{
    return payload->type == &fk_type_identify && payload->len >= sizeof(uint64_t);
}

void fk__node_put_payload(fk_node *node, fk_payload *payload)
{
    node->type = payload->type;
    node->flags = FK_NODE_PAYLOAD | (payload_is_identify(payload) ? FK_NODE_AUTO : 0);
    node->len = sizeof(payload);
    memcpy(node->bytes, &payload, sizeof(payload));
}

/* The bytes of a message, wherever they are. */
static fk_str out_bytes(fk_out out)
{
    if (type_is_string(out.type)) return *(const fk_str *)out.data;
    if (out.type == &fk_type_identify) return (fk_str){ out.data, sizeof(uint64_t) };
    return (fk_str){ out.data, out.type->size };
}

fk_err fk__node_fill(fk_cache *cache, fk_node *node, size_t room, fk_out out)
{
    fk_payload *payload = NULL;
    if (out.type == &fk_type_clash) return FK_E_INVALID; /* two types of one name: message.h */
    if (out.type == &fk_type_fk_terminated) return FK_E_INVALID; /* only the runtime knows that */
    if (out.type == &fk_type_payload) {
        memcpy(&payload, &out.data, sizeof(payload)); /* taken: the const was the caller's */
        if (payload == NULL) return FK_E_INVALID;
        fk__node_put_payload(node, payload);
        return FK_OK;
    }
    fk_str bytes = out_bytes(out);
    if (bytes.len > room) {
        fk_system *sys = FK_CONTAINER(cache->pool, fk_system, pool);
        FK_TRY(fk__payload_create(cache, sys, out.type, bytes.len, &payload));
        FK_ASSERT(payload != NULL);
        memcpy(payload->data, bytes.ptr, bytes.len);
        fk__node_put_payload(node, payload);
        return FK_OK;
    }
    node->type = out.type;
    node->len = (uint16_t)bytes.len;
    node->flags = fk__type_is_auto(out.type) ? FK_NODE_AUTO : 0;
    if (out.type->drop != NULL) node->flags |= FK_NODE_DROP;
    if (bytes.len != 0) memcpy(node->bytes, bytes.ptr, bytes.len);
    return FK_OK;
}

fk_node *fk__node_create(fk_cache *cache, fk_out out)
{
    size_t len = out.type == &fk_type_payload ? sizeof(fk_payload *) : out_bytes(out).len;
    size_t room = len <= FK_INLINE_MAX ? len : sizeof(fk_payload *);
    unsigned size_class = fk__node_class(room);
    fk_node *node = fk__cache_get(cache, size_class, FK_SITE("message"));
    if (node == NULL) return NULL;
    node->size_class = (uint8_t)size_class;
    cache->err = fk__node_fill(cache, node, room, out);
    if (cache->err == FK_OK) return node;
    fk__node_free(cache, node);
    return NULL;
}

static fk_payload *node_payload(const fk_node *node)
{
    fk_payload *payload;
    memcpy(&payload, node->bytes, sizeof(payload));
    return payload;
}

fk_node *fk__node_copy(fk_cache *cache, const fk_node *node)
{
    fk_node *copy = fk__cache_get(cache, node->size_class, FK_SITE("copy of a message"));
    if (copy == NULL) return NULL;
    /* Not the link: the node may be a queue's head, which a sender is writing to. */
    const size_t from = offsetof(fk_node, type);
    size_t len = fk__node_is_answer(node) ? fk__answer_size() : node->len;
    memcpy((char *)copy + from, (const char *)node + from, offsetof(fk_node, bytes) - from + len);
    copy->flags = node->flags & (FK_NODE_DROP | FK_NODE_PAYLOAD | FK_NODE_AUTO);
    return copy;
}

bool fk__node_move(fk_cache *cache, fk_node *node, void *to)
{
    fk_payload *payload = (node->flags & FK_NODE_PAYLOAD) != 0 ? node_payload(node) : NULL;
    const void *data = payload != NULL ? payload->data : node->bytes;
    size_t len = payload != NULL ? payload->len : node->len;
    /* Acquire pairs with the release of who gave up a share. */
    bool is_shared = payload != NULL && fk__word_load(&payload->shares, FK_ACQUIRE) != 1;
    if (is_shared && node->type->drop != NULL) return false;
    if (len != 0) memcpy(to, data, len);
    if (node->type->drop == NULL) return true;
    node->flags |= FK_NODE_MOVED;
    if (payload == NULL) return true;
    payload->type = &fk_type_bytes; /* nothing to release but the block */
    fk__payload_put(cache, payload);
    return true;
}

void fk__node_unmake(fk_cache *cache, fk_node *node, fk_out out)
{
    if ((node->flags & FK_NODE_PAYLOAD) != 0 && out.type != &fk_type_payload) {
        fk_payload *payload = node_payload(node); /* a copy made for the node */
        fk__cache_free(cache, payload, payload->block_size);
    }
    fk__node_free(cache, node);
}

void fk__node_share(const fk_node *node)
{
    fk_payload_share(node_payload(node));
}

void fk__node_drop_contents(fk_cache *cache, fk_node *node)
{
    if ((node->flags & FK_NODE_MOVED) != 0 || !FK_SAFEGUARD(DROP)) return;
    if ((node->flags & FK_NODE_PAYLOAD) != 0)
        fk__payload_put(cache, node_payload(node));
    else if (node->type == &fk__type_notice)
        fk__watch_drop(cache, node);
    else if (fk__node_is_answer(node))
        fk__answer_drop(cache, node);
    else if ((node->flags & FK_NODE_DROP) != 0)
        drop_data(cache, node->type, node->bytes);
    node->flags |= FK_NODE_MOVED;
}

void fk__out_drop(fk_cache *cache, fk_out out)
{
    if (out.type == &fk_type_payload) {
        fk_payload *payload;
        memcpy(&payload, &out.data, sizeof(payload));
        if (payload != NULL) fk__payload_put(cache, payload);
    } else if (out.type->drop != NULL) {
        void *data;
        memcpy(&data, &out.data, sizeof(data)); /* taken: drop may change what it releases */
        drop_data(cache, out.type, data);
    }
}

void fk__node_view(const fk_node *node, uint32_t system, fk_msg *out)
{
    out->type = node->type;
    out->data = node->bytes;
    out->len = node->len;
    out->sender = fk__sender_ref(node->sender, system);
    if ((node->flags & FK_NODE_PAYLOAD) != 0) {
        const fk_payload *payload = node_payload(node);
        out->data = payload->data;
        out->len = payload->len;
    } else if (node->type == &fk__type_notice) {
        out->type = &fk_type_fk_terminated;
        out->data = fk__watch_terminated(node);
        out->len = sizeof(fk_terminated);
    }
}

bool fk__out_can_double(fk_out out)
{
    return out.type == &fk_type_payload || out.type->drop == NULL;
}

void fk__out_double(fk_out out)
{
    if (out.type != &fk_type_payload || out.data == NULL) return;
    fk_payload *payload;
    memcpy(&payload, &out.data, sizeof(payload));
    fk_payload_share(payload);
}

void fk__out_view(fk_out out, fk_ref sender, fk_msg *msg)
{
    *msg = (fk_msg){ out.type, out.data, out.type->size, sender };
    if (out.type == &fk_type_identify) msg->len = sizeof(uint64_t);
    if (out.data == NULL) return; /* nothing to show */
    if (out.type == &fk_type_payload) {
        const fk_payload *payload = out.data;
        *msg = (fk_msg){ payload->type, payload->data, payload->len, sender };
    } else if (type_is_string(out.type)) {
        const fk_str *text = out.data;
        msg->data = text->ptr;
        msg->len = text->len;
    }
}

fk_out fk__node_out(const fk_node *node, fk_str *text)
{
    if ((node->flags & FK_NODE_PAYLOAD) != 0) {
        return (fk_out){ &fk_type_payload, node_payload(node) };
    }
    if (!type_is_string(node->type)) return (fk_out){ node->type, node->bytes };
    *text = (fk_str){ (const char *)node->bytes, node->len };
    return (fk_out){ node->type, text };
}

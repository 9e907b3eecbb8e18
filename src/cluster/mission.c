/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A call has one of two forms. Hot: a message to the actor of an active grain, of one block, with the
 * user's message inside when that is small. Mission: a block of its own that the steward has to do
 * with. A hot call that nobody handles, because the actor has ended or ends, becomes an mission again by
 * its drop function, wherever it was; so a grain may end at any time, and no call is lost with it.
 */

#include "cluster/cluster.h"
#include "core/ask.h"
#include "core/path.h"
#include "core/send.h"

_Static_assert(sizeof(void *) != 8 || sizeof(fk_hot) == FK_INLINE_MAX, "a hot call is one block");

/* ---- missions ---------------------------------------------------------------------------------------- */

fk_err fk__mission_create(fk_local *local, fk_cluster *cluster, const fk_grain_key *key,
                          size_t more, fk_mission **out)
{
    size_t size = sizeof(fk_mission) + key->kind.len + key->key.len + more;
    fk_mission *mission = fk__cache_alloc(&local->cache, size, FK_SITE("call of a grain"));
    if (mission == NULL) return local->cache.err == FK_E_LIMIT ? FK_E_LIMIT : FK_E_NOMEM;
    memset(mission, 0, sizeof(*mission));
    char *text = (char *)(mission + 1);
    memcpy(text, key->kind.ptr, key->kind.len);
    memcpy(text + key->kind.len, key->key.ptr, key->key.len);
    mission->call.due = FK_DEADLINE_INIT;
    mission->call.key =
        (fk_grain_key){ { text, key->kind.len }, { text + key->kind.len, key->key.len }, key->id };
    mission->cluster = cluster;
    mission->size = size;
    *out = mission;
    return FK_OK;
}

static void mission_node_drop(fk_local *local, fk_node *node)
{
    if (node == NULL) return;
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
}

void fk__mission_destroy(fk_local *local, fk_mission *mission)
{
    mission_node_drop(local, mission->body);
    fk__mem_free(&local->sys->mem, mission->packed, mission->packed_size);
    fk__cache_free(&local->cache, mission, mission->size);
}

/* KIND/KEY, as its actor is called. */
enum { CALL_PATH_MAX = FK_KIND_NAME_MAX + 1 + 255 };
static fk_str call_path(const fk_system *sys, const fk_grain_key *key, char room[CALL_PATH_MAX])
{
    char name_room[FK_GRAIN_NAME_ROOM];
    fk_str name = fk__grain_name(sys, key->key, key->id, name_room);
    memcpy(room, key->kind.ptr, key->kind.len);
    room[key->kind.len] = '/';
    memcpy(room + key->kind.len + 1, name.ptr, name.len);
    return (fk_str){ room, key->kind.len + 1 + name.len };
}

void fk__mission_fail(fk_local *local, fk_mission *mission, fk_err err)
{
    if (fk__ask_is(local->sys, mission->asker)) {
        fk__ask_end(local, mission->asker, err);
        return;
    }
    if (mission->wants_answer && mission->body == NULL) return; /* the asker has gone */
    fk_msg msg = { .type = &fk_type_bytes,
                   .data = mission->cargo.bytes.ptr,
                   .len = mission->cargo.bytes.len };
    if (mission->body != NULL) fk__node_view(mission->body, local->system, &msg);
    char path[CALL_PATH_MAX];
    fk_dead_letter letter = { .reason = err == FK_E_STOPPING ? FK_REASON_SYSTEM_STOPPING
                                                             : FK_REASON_NO_RECEIVER,
                              .path = call_path(local->sys, &mission->call.key, path),
                              .sender = mission->asker,
                              .type = msg.type,
                              .data = msg.data,
                              .len = msg.len,
                              .detail = fk_str_of(fk_err_text(err)) };
    fk__dead_report(local, &letter);
}

static void mission_drop(void *message)
{
    fk_mission *mission = ((fk_mission_message *)message)->mission;
    fk_local *local = fk__local_enter(mission->cluster->sys);
    fk__mission_fail(local, mission, FK_E_STOPPING);
    fk__mission_destroy(local, mission);
    fk__local_leave(local);
}

const fk_type fk__type_mission = { "fk_grain_mission", sizeof(fk_mission_message),
                                   (uint32_t) _Alignof(fk_mission_message) | FK_TYPE_QUIET,
                                   mission_drop };
const fk_type fk__type_ack = { "fk_grain_ack", sizeof(uint32_t),
                               (uint32_t) _Alignof(uint32_t) | FK_TYPE_QUIET, NULL };

void fk__mission_post(fk_mission *mission)
{
    fk_mission_message message = { mission };
    /* Undelivered, it is dropped, and so ends. */
    (void)fk_send(mission->cluster->sys, mission->cluster->steward,
                  (fk_out){ &fk__type_mission, &message });
}

/* ---- cargo: the user's messages as bytes ---------------------------------------------------------------- */

/* By a room of its own: fk_path_of() ends its text with a NUL, for which there is none here. */
static size_t cargo_ref_text(void *ctx, fk_ref ref, char *buf, size_t size)
{
    char text[4 * FK_PATH_MAX];
    size_t len = fk_path_of(ctx, ref, text, sizeof(text));
    if (len >= sizeof(text)) return SIZE_MAX / 2; /* longer than any that can be written */
    if (len != 0 && len <= size) memcpy(buf, text, len);
    return len;
}

/* An actor that is gone is nobody. */
static fk_err cargo_ref(void *ctx, fk_str text, fk_ref *out)
{
    fk_err err = fk_resolve(ctx, text, out, NULL);
    if (err != FK_E_PID_UNKNOWN) return err;
    *out = FK_REF_NONE;
    return FK_OK;
}

fk_err fk__cargo_pack(fk_cluster *cluster, const fk_msg *msg, fk_cargo *cargo,
                      unsigned char **memory, size_t *size)
{
    const fk_codec *codec;
    const fk_codec_refs refs = { cluster->sys, cargo_ref_text, cargo_ref };
    void *bytes;
    *memory = NULL;
    *size = 0;
    if (msg->type == &fk__type_ack) {
        *cargo = (fk_cargo){ .serializer = 0 };
        return FK_OK;
    }
    FK_TRY(fk_codecs_of_type(cluster->codecs, msg->type, &codec, NULL));
    FK_TRY(fk__codec_measure(codec, &refs, msg->data, msg->len, size));
    fk_err err =
        fk__mem_alloc(&cluster->sys->mem, *size + 1, FK_SITE("message of a grain"), &bytes);
    if (err != FK_OK) return err;
    err = fk__codec_encode(codec, &refs, msg->data, msg->len, bytes, *size);
    if (err != FK_OK) {
        fk__mem_free(&cluster->sys->mem, bytes, *size + 1);
        *size = 0;
        return err;
    }
    *cargo = (fk_cargo){ codec->serializer, fk_codec_manifest(codec), { bytes, *size } };
    *memory = bytes;
    *size += 1;
    return FK_OK;
}

/* A struct in memory of its own, for it may own something. */
static fk_err cargo_struct(fk_cluster *cluster, fk_local *local, const fk_codec *codec,
                           fk_str bytes, fk_node **out)
{
    const fk_codec_refs refs = { cluster->sys, cargo_ref_text, cargo_ref };
    size_t size = codec->type->size;
    void *room = fk__cache_alloc(&local->cache, size, FK_SITE("message of another node"));
    if (room == NULL) return local->cache.err;
    fk_err err = fk__codec_decode(codec, &refs, bytes, room, NULL);
    if (err == FK_OK) {
        *out = fk__node_create(&local->cache, (fk_out){ codec->type, room });
        if (*out == NULL) {
            err = local->cache.err;
            fk__out_drop(&local->cache, (fk_out){ codec->type, room });
        }
    }
    fk__cache_free(&local->cache, room, size);
    return err;
}

fk_err fk__cargo_open(fk_cluster *cluster, fk_local *local, const fk_cargo *cargo, fk_node **out)
{
    const fk_codec *codec;
    if (cargo->serializer == 0) {
        uint32_t none = 0;
        *out = fk__node_create(&local->cache, (fk_out){ &fk__type_ack, &none });
        return *out != NULL ? FK_OK : local->cache.err;
    }
    FK_TRY(fk_codecs_of_wire(cluster->codecs, cargo->serializer, cargo->manifest, &codec, NULL));
    if (codec->type->size != 0) return cargo_struct(cluster, local, codec, cargo->bytes, out);
    fk_out text = { codec->type, &cargo->bytes }; /* text and bytes */
    *out = fk__node_create(&local->cache, text);
    return *out != NULL ? FK_OK : local->cache.err;
}

fk_err fk__mission_pack(fk_local *local, fk_mission *mission)
{
    fk_msg msg;
    if (mission->body == NULL) return FK_OK;
    fk__node_view(mission->body, local->system, &msg);
    FK_TRY(fk__cargo_pack(mission->cluster, &msg, &mission->cargo, &mission->packed,
                          &mission->packed_size));
    mission_node_drop(local, mission->body);
    mission->body = NULL;
    return FK_OK;
}

fk_err fk__mission_body(fk_local *local, fk_mission *mission, fk_node **out)
{
    if (mission->body == NULL) return fk__cargo_open(mission->cluster, local, &mission->cargo, out);
    *out = mission->body;
    mission->body = NULL;
    return FK_OK;
}

/* ---- hot calls ---------------------------------------------------------------------------------------------- */

static inline bool hot_fits(const fk_type *type)
{
    return type->size - 1 < FK_HOT_BODY && type->drop == NULL && (type->align & 0xff) <= 8 &&
           type != &fk_type_clash;
}

/* All but the body. */
static inline void hot_fill(fk_hot *hot, const fk_hot_call *call, const fk_type *type)
{
    hot->seat = call->seat;
    hot->type = type;
    hot->origin = call->request.origin;
    hot->seq = call->request.seq;
    hot->low = call->low;
    hot->turn = fk__half_load(&call->seat->turn, FK_RELAXED);
    hot->flags = call->flags;
    hot->len = 0;
    hot->why = FK_OK;
    hot->asker_slot = call->asker.slot;
    hot->asker_generation = call->asker.generation;
}

fk_err fk__hot_send_node(fk_local *local, const fk_hot_call *call, fk_node *node)
{
    fk_hot hot;
    hot_fill(&hot, call, node->type);
    hot.flags |= FK_HOT_NODE;
    hot.body.far.node = node;
    hot.body.far.earlier_origin = call->earlier.origin;
    hot.body.far.earlier_seq = call->earlier.seq;
    hot.body.far.deadline = call->deadline;
    hot.body.far.returns = call->returns;
    return fk__send(local, call->ref, call->asker, (fk_out){ &fk__type_hot, &hot }, NULL);
}

fk_err fk__hot_send(fk_local *local, const fk_hot_call *call, fk_out msg)
{
    if (!hot_fits(msg.type)) {
        fk_node *node = fk__node_create(&local->cache, msg);
        if (node == NULL) return local->cache.err;
        (void)fk__hot_send_node(local, call, node); /* what fails goes back to the steward */
        return FK_OK;
    }
    /* Made where it will be read: nothing is copied twice, and what is not used is not written. */
    fk_node *node = fk__cache_get(&local->cache, FK_CLASS_128, FK_SITE("call of an active grain"));
    if (FK_UNLIKELY(node == NULL)) return local->cache.err;
    node->type = &fk__type_hot;
    node->len = sizeof(fk_hot);
    node->flags = FK_NODE_DROP;
    node->size_class = FK_CLASS_128;
    fk_hot *hot = (fk_hot *)(void *)node->bytes;
    hot_fill(hot, call, msg.type);
    hot->len = (uint8_t)msg.type->size;
    fk__copy_inline(hot->body.bytes, msg.data, msg.type->size);
    node->sender = fk__sender_pack(call->asker.slot, call->asker.generation);
    (void)fk__send_node(local, call->ref, node);
    return FK_OK;
}

/* The key of a seat that may be somebody else's by now. */
static fk_err hot_key(const fk_hot *hot, char *buf, fk_grain_key *out)
{
    const fk_seat *seat = hot->seat;
    if (fk__half_load(&seat->turn, FK_ACQUIRE) != hot->turn) return FK_E_DEAD;
    uint32_t len = seat->key_len;
    if (len == 0 || len > FK_GRAIN_KEY_MAX) return FK_E_DEAD;
    const fk_breed *breed = seat->breed;
    *out = (fk_grain_key){ { breed->name, breed->name_len }, { buf, len }, seat->grain };
    memcpy(buf, seat->key, len);
    return fk__half_load(&seat->turn, FK_ACQUIRE) == hot->turn ? FK_OK : FK_E_DEAD;
}

static fk_err hot_mission(fk_local *local, const fk_hot *hot, fk_mission **out)
{
    char buf[FK_GRAIN_KEY_MAX];
    fk_grain_key key;
    fk_mission *mission;
    fk_cluster *cluster = hot->seat->cluster;
    FK_TRY(hot_key(hot, buf, &key));
    FK_TRY(fk__mission_create(local, cluster, &key, 0, &mission));
    mission->call.is_ours = true;
    mission->call.request = (fk_request){ hot->origin, hot->seq };
    /* Its time begins when it comes back for the first time: whoever made it has not read the clock. */
    bool is_far = (hot->flags & FK_HOT_NODE) != 0;
    fk_time deadline = is_far ? hot->body.far.deadline : 0;
    uint64_t returns = is_far ? hot->body.far.returns : 0;
    mission->call.deadline =
        deadline != 0 ? deadline
                      : fk__time_add(fk__system_now(local->sys), cluster->config.call_timeout);
    mission->call.cause = (fk_err)hot->why;
    mission->call.returns = (uint16_t)(returns < UINT16_MAX ? returns + 1 : returns);
    mission->asker = (fk_ref){ hot->asker_slot, hot->asker_generation,
                               hot->asker_generation != 0 ? local->system : 0 };
    mission->wants_answer = hot->asker_generation != 0;
    fk_node *node = is_far ? hot->body.far.node
                           : fk__node_create(&local->cache, (fk_out){ hot->type, hot->body.bytes });
    if (node == NULL) {
        fk__mission_destroy(local, mission);
        return FK_E_NOMEM;
    }
    mission->body = node;
    *out = mission;
    return FK_OK;
}

void fk__hot_fail(fk_local *local, const fk_hot *hot, fk_err err)
{
    fk_ref asker = { hot->asker_slot, hot->asker_generation,
                     hot->asker_generation != 0 ? local->system : 0 };
    bool is_numbered = (hot->flags & FK_HOT_NUMBERED) != 0; /* its origin has it still */
    if (is_numbered || fk__ask_is(local->sys, asker)) {
        fk__ask_end(local, asker, err);
        return;
    }
    fk_msg msg = { .type = hot->type, .data = hot->body.bytes, .len = hot->len };
    if ((hot->flags & FK_HOT_NODE) != 0) fk__node_view(hot->body.far.node, local->system, &msg);
    const fk_breed *breed = hot->seat->breed; /* kinds stay, whoever has the seat now */
    char key_room[FK_GRAIN_KEY_MAX], path_room[CALL_PATH_MAX];
    fk_grain_key key;
    fk_str path = { breed->name, breed->name_len };
    if (hot_key(hot, key_room, &key) == FK_OK) path = call_path(local->sys, &key, path_room);
    fk_reason reason = err == FK_E_NOMEM      ? FK_REASON_NO_MEMORY
                       : err == FK_E_STOPPING ? FK_REASON_SYSTEM_STOPPING
                                              : FK_REASON_NO_RECEIVER;
    fk_dead_letter letter = { .reason = reason,
                              .path = path,
                              .sender = asker,
                              .type = msg.type,
                              .data = msg.data,
                              .len = msg.len,
                              .detail = fk_str_of(fk_err_text(err)) };
    fk__dead_report(local, &letter);
}

/* Nobody has handled it. A numbered call is with its origin, who has kept it: that one is told to try
 * again. Any other goes to the steward. */
static void hot_drop(void *message)
{
    fk_hot *hot = message;
    fk_seat *seat = hot->seat;
    fk_mission *mission = NULL;
    if (seat == NULL) return;
    hot->seat = NULL;
    fk_cluster *cluster = seat->cluster;
    fk_local *local = fk__local_enter(cluster->sys);
    bool is_over = fk__half_load(&cluster->is_over, FK_ACQUIRE) != 0;
    bool is_numbered = (hot->flags & FK_HOT_NUMBERED) != 0;
    fk_err err = FK_E_NOT_READY;
    fk_hot again = *hot;
    again.seat = seat;
    if (!is_over && !is_numbered) err = hot_mission(local, &again, &mission);
    if (mission == NULL) {
        fk__hot_fail(local, &again, is_over ? FK_E_STOPPING : err);
        if ((hot->flags & FK_HOT_NODE) != 0) mission_node_drop(local, hot->body.far.node);
    }
    fk__local_leave(local);
    if (mission != NULL) fk__mission_post(mission);
}

const fk_type fk__type_hot = { "fk_grain_call", sizeof(fk_hot),
                               (uint32_t) _Alignof(fk_hot) | FK_TYPE_QUIET, hot_drop };

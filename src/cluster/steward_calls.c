/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/steward.h"

#include "core/answer.h"
#include "core/ask.h"
#include "core/send.h"
#include "fraktor/remote.h"

static const fk_time PEER_FORGET = FK_MINUTES(10);

static fk_mission *mission_of(fk_call *call)
{
    return FK_CONTAINER(call, fk_mission, call);
}

/* ---- other nodes ------------------------------------------------------------------------------------- */

static bool text_is(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool peer_is_member(const fk_steward *c, const fk_peer_node *peer)
{
    fk_view view = fk_placement_view(c->placement);
    for (uint32_t i = 0; i < view.count; i++) {
        const fk_member *m = &view.members[i];
        fk_str id = { peer->text, peer->id_len };
        fk_str address = { peer->text + peer->id_len, peer->address_len };
        if (text_is(m->id, id) && text_is(m->address, address)) return true;
    }
    return false;
}

void fk__steward_forget_peers(fk_steward *c, bool with_members)
{
    fk_peer_node **link = &c->peers;
    while (*link != NULL) {
        fk_peer_node *peer = *link;
        bool is_client = peer->id_len == 0;
        bool is_gone = is_client ? c->now - peer->heard_at > PEER_FORGET
                                 : with_members && !peer_is_member(c, peer);
        if (is_gone) {
            *link = peer->next;
            fk__mem_free(c->mem, peer, peer->size);
        } else {
            link = &peer->next;
        }
    }
}

/* A node without an id of its own, a client, is known by its address. */
fk_err fk__steward_peer(fk_steward *c, fk_str id, fk_str address, fk_peer_node **out)
{
    static const char STEWARD[] = "/system/cluster";
    char path[FK_MEMBER_TEXT_MAX + sizeof(STEWARD)];
    void *memory;
    for (fk_peer_node *peer = c->peers; peer != NULL; peer = peer->next) {
        fk_str known = { peer->text + peer->id_len, peer->address_len };
        *out = peer;
        if (text_is(known, address) && text_is((fk_str){ peer->text, peer->id_len }, id)) {
            return FK_OK;
        }
    }
    if (address.len == 0 || address.len > FK_MEMBER_TEXT_MAX) return FK_E_AUTHORITY;
    fk__steward_forget_peers(c, false);
    size_t size = sizeof(fk_peer_node) + id.len + address.len;
    FK_TRY(fk__mem_alloc(c->mem, size, FK_SITE("node of a cluster"), &memory));
    fk_peer_node *peer = memory;
    *peer = (fk_peer_node){ .next = c->peers,
                            .id_len = (uint32_t)id.len,
                            .address_len = (uint32_t)address.len,
                            .heard_at = c->now,
                            .size = size };
    if (id.len != 0) memcpy(peer->text, id.ptr, id.len);
    memcpy(peer->text + id.len, address.ptr, address.len);
    memcpy(path, address.ptr, address.len);
    memcpy(path + address.len, STEWARD, sizeof(STEWARD) - 1);
    fk_str text = { path, address.len + sizeof(STEWARD) - 1 };
    fk_err err = fk_resolve(c->cluster->sys, text, &peer->steward, NULL);
    if (err != FK_OK) {
        fk__mem_free(c->mem, peer, size);
        return err;
    }
    c->peers = peer;
    *out = peer;
    return FK_OK;
}

fk_err fk__steward_wire(fk_steward *c, fk_ref to, const fk_telegram *telegram,
                        const fk_slot_claim *claims)
{
    fk_local *local = fk__steward_local(c);
    size_t size = fk__telegram_measure(telegram);
    fk_payload *payload = NULL;
    fk_telegram told = *telegram;
    if (size > c->cluster->telegram_max) return FK_E_LIMIT;
    if (told.kind != FK_TELEGRAM_NEWS) told.view = fk_placement_view(c->placement).version;
    FK_TRY(fk__payload_create(&local->cache, local->sys, &fk__type_telegram, size, &payload));
    fk__telegram_encode(&told, claims, payload->data, size);
    return fk__send(local, to, c->cluster->steward, (fk_out){ &fk_type_payload, payload }, NULL);
}

static void wire_answer(fk_steward *c, const fk_mission *guest, fk_err err, const fk_cargo *cargo)
{
    fk_peer_node *peer;
    fk_telegram answer = { .kind = FK_TELEGRAM_ANSWER, .request = guest->call.request, .err = err };
    if (cargo != NULL) answer.cargo = *cargo;
    if (err == FK_OK) answer.authority = fk__cluster_id(c->cluster);
    /* If it does not get there, the call comes again. */
    if (fk__steward_peer(c, (fk_str){ NULL, 0 }, guest->origin_address, &peer) != FK_OK) return;
    peer->heard_at = c->now;
    if (fk__steward_wire(c, peer->steward, &answer, NULL) != FK_E_LIMIT) return;
    answer.err = FK_E_LIMIT;
    answer.cargo = (fk_cargo){ .serializer = 0 };
    (void)fk__steward_wire(c, peer->steward, &answer, NULL);
}

/* ---- what the desk wants --------------------------------------------------------------------------------- */

/* From now on it is found by whoever calls it. */
static void seat_list(fk_steward *c, const fk_resolution *at)
{
    fk_seat *seat = (fk_seat *)(uintptr_t)at->pid;
    if (at->locality != FK_LOCALITY_LOCAL || seat->is_listed) return;
    if (fk__half_load(&seat->is_closing, FK_RELAXED) != 0) return;
    fk__mem_lock(c->mem, &c->cluster->lock);
    (void)fk__roll_add(&c->cluster->roll, seat, seat->ref);
    fk__mem_unlock(c->mem, &c->cluster->lock);
}

static fk_err calls_resolve(void *ctx, fk_call *call, fk_time now, fk_resolution *out)
{
    fk_steward *c = ctx;
    fk__roll_expect(&c->cluster->roll, call->key.id);
    FK_TRY(fk_placement_resolve(c->placement, &call->key, call->ticket, now, out));
    seat_list(c, out);
    return FK_OK;
}

static fk_err calls_send(void *ctx, fk_call *call, const fk_resolution *to, fk_str *authority)
{
    fk_steward *c = ctx;
    fk_mission *mission = mission_of(call);
    fk_cluster *cluster = c->cluster;
    fk_peer_node *peer;
    /* Whoever has sent it here knows more than this node, which would send it to those who are gone. It
     * is to try again when this node has caught up. */
    if (!call->is_ours && mission->view > fk_placement_view(c->placement).version) {
        return FK_E_NOT_READY;
    }
    FK_TRY(fk__steward_peer(c, to->authority, to->address, &peer));
    FK_TRY(fk__mission_pack(fk__steward_local(c), mission));
    fk_time left = (call->deadline - c->now) / FK_MILLIS(1);
    fk_str own = { cluster->address, cluster->address_len };
    fk_telegram telegram = {
        .kind = FK_TELEGRAM_CALL,
        .request = call->request,
        .earlier = call->earlier,
        .low = call->is_ours ? fk__desk_low(c->desk) : call->low,
        .left_ms = left <= 0           ? 1
                   : left > UINT32_MAX ? UINT32_MAX
                                       : (uint32_t)left,
        .hops = call->hops,
        .wants_answer = mission->wants_answer,
        .reply_to = call->is_ours ? own : mission->origin_address,
        .grain_kind = call->key.kind,
        .key = call->key.key,
        .cargo = mission->cargo,
    };
    FK_TRY(fk__steward_wire(c, peer->steward, &telegram, NULL));
    c->stats.sent++;
    if (call->attempts > 0) c->stats.retried++;
    *authority = (fk_str){ peer->text, peer->id_len };
    if (!call->is_ours) fk__mission_destroy(fk__steward_local(c), mission);
    return FK_OK;
}

/* A question of the steward's own, whose answer tells what became of the call. */
static fk_err guest_open(fk_steward *c, const fk_call *call, fk_mission *mission, fk_ref *asker,
                         fk_guest_call **out)
{
    void *memory;
    FK_TRY(fk__mem_alloc(c->mem, sizeof(fk_guest_call), FK_SITE("guest call"), &memory));
    fk_guest_call *guest = memory;
    *guest = (fk_guest_call){
        .next = c->guests, .link = &c->guests, .request = call->request, .mission = mission
    };
    fk_time left = call->deadline - c->now;
    fk_err err = fk__ask_open(c->ctx, (uint64_t)(uintptr_t)guest, left, asker);
    if (err != FK_OK) {
        fk__mem_free(c->mem, guest, sizeof(*guest));
        return err;
    }
    if (guest->next != NULL) guest->next->link = &guest->next;
    c->guests = guest;
    *out = guest;
    return FK_OK;
}

static void guest_close(fk_steward *c, fk_guest_call *guest)
{
    *guest->link = guest->next;
    if (guest->next != NULL) guest->next->link = guest->link;
    fk__mem_free(c->mem, guest, sizeof(*guest));
}

static bool call_is_numbered(const fk_steward *c, const fk_call *call)
{
    return !call->is_ours || call->request.origin == c->cluster->origin;
}

static fk_err calls_deliver(void *ctx, fk_call *call, const fk_resolution *at)
{
    fk_steward *c = ctx;
    fk_mission *mission = mission_of(call);
    fk_local *local = fk__steward_local(c);
    fk_seat *seat = (fk_seat *)(uintptr_t)at->pid;
    bool is_numbered = call_is_numbered(c, call);
    fk_guest_call *guest;
    fk_node *body;
    if (!text_is((fk_str){ seat->key, seat->key_len }, call->key.key)) return FK_E_KEY;
    fk_hot_call hot = { .seat = seat,
                        .ref = seat->ref,
                        .asker = mission->asker,
                        .request = call->request,
                        .earlier = call->earlier,
                        .low = call->is_ours ? fk__desk_low(c->desk) : call->low,
                        .deadline = call->deadline,
                        .returns = call->returns };
    if (is_numbered) FK_TRY(fk__mission_pack(local, mission));
    FK_TRY(fk__mission_body(local, mission, &body));
    if (is_numbered) {
        hot.flags = FK_HOT_NUMBERED;
        if (!mission->wants_answer) hot.flags |= FK_HOT_ACK;
        fk_err err = guest_open(c, call, call->is_ours ? NULL : mission, &hot.asker, &guest);
        if (err != FK_OK) {
            fk__node_drop_contents(&local->cache, body);
            fk__node_free(&local->cache, body);
            return err;
        }
    } else if (call->request.origin == 0) {
        hot.request = fk__single_request(c->cluster);
    }
    (void)fk__hot_send_node(local, &hot, body); /* what does not get there comes back */
    if (!is_numbered) fk__mission_destroy(local, mission);
    return FK_OK;
}

static void calls_finish(void *ctx, fk_call *call, fk_err err, void *answer)
{
    fk_steward *c = ctx;
    fk_mission *mission = mission_of(call);
    fk_local *local = fk__steward_local(c);
    fk_node *node = answer;
    if (err != FK_OK) c->stats.failed++;
    if (!call->is_ours) {
        if (!c->is_stopped) wire_answer(c, mission, err, NULL);
    } else if (node != NULL && node->type != &fk__type_ack && !fk_ref_is_none(mission->asker)) {
        (void)fk__send_node(local, mission->asker, node);
        node = NULL;
    } else if (err != FK_OK) {
        fk__mission_fail(local, mission, err);
    }
    if (node != NULL) {
        fk__node_drop_contents(&local->cache, node);
        fk__node_free(&local->cache, node);
    }
    fk__mission_destroy(local, mission);
}

fk_err fk__steward_desk(fk_steward *c)
{
    fk_time ttl = c->cluster->config.lease_ttl;
    fk_desk_config config = { .ops = { .ctx = c,
                                       .resolve = calls_resolve,
                                       .send = calls_send,
                                       .deliver = calls_deliver,
                                       .finish = calls_finish },
                              .origin = c->cluster->origin,
                              .resend_after = ttl / 3,
                              .resend_max = ttl,
                              .retry_min = FK_MILLIS(5),
                              .retry_max = ttl / 8 > FK_MILLIS(5) ? ttl / 8 : FK_MILLIS(5) };
    return fk__desk_create(c->mem, &config, &c->desk);
}

void fk__steward_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution)
{
    fk_steward *c = ctx;
    fk_echo echo = { .kind = FK_ECHO_SETTLED, .number = ticket, .resolution = *resolution };
    if (c->is_stopped) return;
    if (resolution->err == FK_OK) seat_list(c, resolution);
    fk__steward_echo(c, &echo);
}

/* ---- answers of grains here --------------------------------------------------------------------------------- */

static fk_node *answer_take(fk_steward *c, fk_node *message)
{
    fk_local *local = fk__steward_local(c);
    fk_err err;
    fk_node *reply = fk__answer_open(message, &err);
    if (reply == NULL) return NULL;
    fk_node *copy = fk__node_copy(&local->cache, reply);
    if (copy != NULL) reply->flags |= FK_NODE_MOVED;
    return copy;
}

static void guest_answered(fk_steward *c, fk_mission *guest, const fk_answer *answer)
{
    fk_cargo cargo = { .serializer = 0 };
    unsigned char *memory = NULL;
    size_t size = 0;
    fk_err err = answer->err;
    /* The grain has given it back: it is to be sent on, with its number. If that comes to nothing, too,
     * its origin is to wait a while. */
    if (fk__call_may_retry(err) && guest->call.returns == 0) {
        guest->call.state = FK_CALL_NEW;
        guest->call.due = FK_DEADLINE_INIT;
        guest->call.returns = 1;
        guest->call.cause = FK_OK;
        fk__desk_submit(c->desk, &guest->call, c->now);
        return;
    }
    if (err == FK_OK) err = fk__cargo_pack(c->cluster, &answer->reply, &cargo, &memory, &size);
    if (answer->err != FK_E_TIMEOUT) wire_answer(c, guest, err, &cargo);
    fk__mem_free(c->mem, memory, size);
    fk__mission_destroy(fk__steward_local(c), guest);
}

void fk__steward_answer(fk_steward *c, const fk_answer *answer, fk_node *message)
{
    fk_guest_call *guest = (fk_guest_call *)(uintptr_t)answer->id;
    fk_request request = guest->request;
    fk_mission *mission = guest->mission;
    guest_close(c, guest);
    if (mission != NULL) {
        guest_answered(c, mission, answer);
        return;
    }
    fk_local *local = fk__steward_local(c);
    fk_node *node = answer->err == FK_OK ? answer_take(c, message) : NULL;
    fk_err err = answer->err != FK_OK ? answer->err : node != NULL ? FK_OK : FK_E_NOMEM;
    if (fk__desk_answered(c->desk, request, err, node, c->now) || node == NULL) return;
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
}

void fk__steward_calls_end(fk_steward *c)
{
    fk_local *local = fk__local_enter(c->cluster->sys);
    while (c->guests != NULL) {
        fk_guest_call *guest = c->guests;
        fk_mission *mission = guest->mission;
        guest_close(c, guest);
        if (mission != NULL) fk__mission_destroy(local, mission);
    }
    fk__local_leave(local);
}

/* ---- telegrams -------------------------------------------------------------------------------------------------- */

static fk_err telegram_call(fk_steward *c, const fk_telegram *t)
{
    fk_grain_key key;
    fk_mission *mission;
    FK_TRY(fk_grain_key_of(t->grain_kind, t->key, &key));
    size_t more = t->reply_to.len + t->cargo.manifest.len + t->cargo.bytes.len;
    FK_TRY(fk__mission_create(fk__steward_local(c), c->cluster, &key, more, &mission));
    char *at = fk__mission_more(mission);
    memcpy(at, t->reply_to.ptr, t->reply_to.len);
    mission->origin_address = (fk_str){ at, t->reply_to.len };
    at += t->reply_to.len;
    if (t->cargo.manifest.len != 0) memcpy(at, t->cargo.manifest.ptr, t->cargo.manifest.len);
    mission->cargo.manifest = (fk_str){ at, t->cargo.manifest.len };
    at += t->cargo.manifest.len;
    if (t->cargo.bytes.len != 0) memcpy(at, t->cargo.bytes.ptr, t->cargo.bytes.len);
    mission->cargo.bytes = (fk_str){ at, t->cargo.bytes.len };
    mission->cargo.serializer = t->cargo.serializer;
    mission->wants_answer = t->wants_answer;
    mission->call.request = t->request;
    mission->call.earlier = t->earlier;
    mission->call.low = t->low;
    mission->call.hops = t->hops;
    mission->view = t->view;
    mission->call.deadline = fk__time_add(c->now, FK_MILLIS((fk_time)t->left_ms));
    c->stats.arrived++;
    fk__desk_submit(c->desk, &mission->call, c->now);
    return FK_OK;
}

/* Another than was asked has answered: the next call goes there at once. */
static void telegram_learn(fk_steward *c, const fk_telegram *t)
{
    const fk_call *call = fk__desk_find(c->desk, t->request);
    if (call == NULL || call->state != FK_CALL_SENT || call->authority.len == 0) return;
    if (t->authority.len == 0 || text_is(call->authority, t->authority)) return;
    fk_placement_redirected(c->placement, &call->key, t->authority, c->now);
}

static fk_err telegram_answer(fk_steward *c, const fk_telegram *t)
{
    fk_local *local = fk__steward_local(c);
    fk_node *node = NULL;
    fk_err err = t->err;
    telegram_learn(c, t);
    if (err == FK_OK) {
        fk_err read = fk__cargo_open(c->cluster, local, &t->cargo, &node);
        if (read != FK_OK) err = read;
        if (node != NULL) node->sender = 0;
    }
    if (fk__desk_answered(c->desk, t->request, err, node, c->now) || node == NULL) return FK_OK;
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
    return FK_OK;
}

static fk_err telegram_moved(fk_steward *c, const fk_telegram *t)
{
    void *memory;
    size_t size = t->claim_count * sizeof(fk_slot_claim);
    if (t->claim_count == 0) return FK_OK;
    FK_TRY(fk__mem_alloc(c->mem, size, FK_SITE("slots that have moved"), &memory));
    fk_slot_claim *claims = memory;
    for (uint32_t i = 0; i < t->claim_count; i++) {
        fk__telegram_claim(t, i, &claims[i]);
        c->stats.slots_moved_in += claims[i].epoch != 0;
    }
    (void)fk_placement_transferred(c->placement, t->grain_kind, t->incarnation, claims,
                                   t->claim_count, c->now);
    fk__mem_free(c->mem, memory, size);
    return FK_OK;
}

void fk__steward_telegram(fk_steward *c, fk_str bytes)
{
    fk_telegram t;
    fk_err err = fk__telegram_decode(bytes, &t, NULL);
    if (err == FK_OK && t.view > fk_placement_view(c->placement).version) {
        fk__steward_news(c);
        if (t.kind != FK_TELEGRAM_NEWS) fk_placement_expect_view(c->placement, t.view, c->now);
    }
    if (err == FK_OK) {
        switch (t.kind) {
        case FK_TELEGRAM_CALL: err = telegram_call(c, &t); break;
        case FK_TELEGRAM_ANSWER: err = telegram_answer(c, &t); break;
        case FK_TELEGRAM_MOVED: err = telegram_moved(c, &t); break;
        case FK_TELEGRAM_NEWS: break;
        }
    }
    /* Whoever sent it keeps what it was about, or finds out in another way. */
    if (err != FK_OK) fk__steward_say(c, FK_LEVEL_WARN, "telegram refused", err, "");
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/delivery_net.h"

#include <string.h>

enum { MESSAGES = 512, PACKETS = 256, BUCKETS = 4 };

typedef enum fate { NOWHERE = 0, IN_BOX, ACKNOWLEDGED, REPORTED } fate;

typedef struct message {
    fk_parcel parcel;
    fate fate;
    uint32_t delivered;    /* how often */
    uint64_t delivered_to; /* by uid */
} message;

typedef enum packet_kind { REQUEST, RESPONSE, SYSTEM, ACK, NACK } packet_kind;

typedef struct packet {
    packet_kind kind;
    uint64_t from, to; /* uids */
    uint64_t connection;
    uint64_t seq;
    message *message;
} packet;

static struct {
    history h;
    fk_time now;
    bool is_healed;
    uint32_t loss, doubling; /* one in so many */
    packet packets[PACKETS];
    uint32_t packet_count;
    uint64_t last_uid;
    /* the sender */
    uint64_t sender_uid, connection;
    uint64_t connected_to; /* the process at the other end, alive or not */
    fk_outbox box;
    fk_delivery_config config;
    message messages[MESSAGES];
    uint32_t message_count;
    fk_time request_at;
    /* the receiver, which knows the sender's address as one peer */
    uint64_t receiver_uid;
    fk_authority authority; /* only to be pointed at */
    fk_peer peer;
    fk_origins origins;
    fk_origin *bucket[BUCKETS];
    message *last; /* delivered by the present sender to the present receiver */
} net;

delivery_net_seen delivery_net_counts;

/* ---- the network --------------------------------------------------------------------------- */

static void post_once(packet p)
{
    if (net.packet_count == PACKETS) { /* a full network loses something */
        net.packets[history_below(&net.h, PACKETS)] = p;
        return;
    }
    net.packets[net.packet_count++] = p;
}

static void post(packet p)
{
    if (!net.is_healed && history_chance(&net.h, net.loss)) {
        delivery_net_counts.dropped++;
        return;
    }
    post_once(p);
    if (net.is_healed || !history_chance(&net.h, net.doubling)) return;
    delivery_net_counts.doubled++;
    post_once(p);
}

/* Any of them, or the oldest when the network is healed. */
static packet fetch_packet(void)
{
    uint32_t i = net.is_healed ? 0 : (uint32_t)history_below(&net.h, net.packet_count);
    packet p = net.packets[i];
    net.packet_count--;
    memmove(&net.packets[i], &net.packets[i + 1], (net.packet_count - i) * sizeof(packet));
    return p;
}

/* A connection ends with either process: what is on its way to one that is gone never arrives. */
static void forget_packets_to(uint64_t uid)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < net.packet_count; i++) {
        if (net.packets[i].to != uid) net.packets[kept++] = net.packets[i];
    }
    net.packet_count = kept;
}

/* ---- the sender ---------------------------------------------------------------------------- */

static bool settle_list(fk_envelopes list, fate to)
{
    for (fk_envelope *link; (link = fk__envelopes_take(&list)) != NULL;) {
        message *msg = FK_CONTAINER(link, message, parcel.link);
        EXPECT(&net.h, msg->fate == IN_BOX);
        msg->fate = to;
        if (to == ACKNOWLEDGED) {
            EXPECT(&net.h, msg->delivered == 1);
            EXPECT(&net.h, msg->delivered_to == net.box.uid);
            delivery_net_counts.delivered++;
        } else {
            delivery_net_counts.lost++;
        }
    }
    return true;
}

static bool settle(fk_outbox_effects *fx)
{
    if (!net.h.is_blind) fk__outbox_check(&net.box);
    if (!settle_list(fx->delivered, ACKNOWLEDGED) || !settle_list(fx->lost, REPORTED)) return false;
    if (fx->despair == FK_OUTBOX_DESPAIR_GAVE_UP) delivery_net_counts.given_up++;
    return true;
}

static bool tell_box(fk_outbox_event_kind kind, uint64_t uid, uint64_t seq)
{
    fk_outbox_effects fx;
    fk_outbox_event event = { kind, uid, seq };
    fk_outbox_result result = fk__outbox_step(&net.box, &event, net.now, &fx);
    EXPECT(&net.h, result != FK_OUTBOX_RESULT_INVALID); /* nobody lies here */
    return settle(&fx);
}

static bool send_some(void)
{
    for (uint64_t n = net.is_healed ? PACKETS : history_below(&net.h, 6); n > 0; n--) {
        fk_parcel *parcel = fk__outbox_take(&net.box);
        if (parcel == NULL) return true;
        post((packet){ .kind = SYSTEM,
                       .from = net.sender_uid,
                       .to = net.connected_to,
                       .seq = parcel->seq,
                       .message = FK_CONTAINER(parcel, message, parcel) });
    }
    return true;
}

static bool put_one(void)
{
    fk_outbox_effects fx;
    if (net.message_count == MESSAGES) return true;
    message *msg = &net.messages[net.message_count++];
    fk_err err = fk__outbox_put(&net.box, &msg->parcel, net.now, &fx);
    msg->fate = err == FK_OK ? IN_BOX : REPORTED;
    delivery_net_counts.refused += err != FK_OK;
    return settle(&fx);
}

/* While there is no connection, one is asked for each second. */
static void ask(void)
{
    if (net.box.is_open || net.now < net.request_at) return;
    net.request_at = net.now + FK_SECONDS(1);
    post((packet){ .kind = REQUEST,
                   .from = net.sender_uid,
                   .to = net.connected_to,
                   .connection = net.connection });
}

static void connect_anew(void)
{
    net.connection++;
    net.connected_to = net.receiver_uid;
    net.request_at = net.now;
}

static bool break_connection(void)
{
    connect_anew();
    delivery_net_counts.breaks++;
    return tell_box(FK_OUTBOX_EVENT_CLOSED, 0, 0);
}

static bool restart_sender(void)
{
    fk_envelopes left;
    fk__outbox_fini(&net.box, &left);
    forget_packets_to(net.sender_uid);
    net.sender_uid = ++net.last_uid;
    net.last = NULL;
    connect_anew();
    delivery_net_counts.restarts++;
    EXPECT(&net.h, fk__outbox_init(&net.box, &net.config) == FK_OK);
    return settle_list(left, REPORTED);
}

/* ---- the receiver -------------------------------------------------------------------------- */

static void restart_receiver(void)
{
    forget_packets_to(net.receiver_uid);
    net.receiver_uid = ++net.last_uid;
    net.last = NULL;
    memset(net.bucket, 0, sizeof(net.bucket));
    fk__origins_init(&net.origins, net.bucket, BUCKETS, net.receiver_uid);
    fk__peer_init(&net.peer, &net.authority);
    delivery_net_counts.restarts++;
}

static bool deliver(message *msg)
{
    EXPECT(&net.h, msg->delivered == 0);
    EXPECT(&net.h, net.last == NULL || net.last < msg);
    msg->delivered++;
    msg->delivered_to = net.receiver_uid;
    net.last = msg;
    return true;
}

static bool receive_system(const packet *p)
{
    fk_inbox_effects fx;
    fk_origin *origin = fk__origins_find(&net.origins, p->from);
    if (origin == NULL || p->to != net.receiver_uid) return true;
    fk__inbox_step(&origin->inbox, p->seq, &fx);
    if (fx.must_deliver && p->from == net.sender_uid && history_chance(&net.h, 20)) {
        fk__inbox_undo(&origin->inbox, &fx); /* no memory just now */
        return true;
    }
    post((packet){
        .kind = fx.is_gap ? NACK : ACK, .from = net.receiver_uid, .to = p->from, .seq = fx.seq });
    if (!fx.must_deliver || p->from != net.sender_uid) return true; /* of a sender that is gone */
    return deliver(p->message);
}

static bool arrive(const packet *p)
{
    bool is_for_sender = p->to == net.sender_uid;
    switch (p->kind) {
    case REQUEST:
        if (p->to != net.receiver_uid || p->from != net.sender_uid) return true;
        fk__peer_meet(&net.origins, &net.peer, p->from);
        post((packet){ RESPONSE, net.receiver_uid, p->from, p->connection, 0, NULL });
        return true;
    case RESPONSE: /* to a request of another connection it would say nothing about this one */
        if (!is_for_sender || p->connection != net.connection) return true;
        return tell_box(FK_OUTBOX_EVENT_OPENED, p->from, 0);
    case SYSTEM: return receive_system(p);
    case ACK: return !is_for_sender || tell_box(FK_OUTBOX_EVENT_ACK, p->from, p->seq);
    default: return !is_for_sender || tell_box(FK_OUTBOX_EVENT_NACK, p->from, p->seq);
    }
}

/* ---- a history ----------------------------------------------------------------------------- */

static bool pass_time(fk_time by)
{
    fk_outbox_effects fx;
    net.now += by;
    fk__outbox_tick(&net.box, net.now, &fx);
    ask();
    return settle(&fx);
}

static bool act_rarely(void)
{
    if (net.box.is_shut) restart_receiver();
    switch (history_below(&net.h, 6)) {
    case 0: restart_receiver(); return history_chance(&net.h, 3) || break_connection();
    case 1: return !history_chance(&net.h, 3) || restart_sender();
    case 2: return !history_chance(&net.h, 4) || pass_time(net.config.give_up_after);
    default: return break_connection();
    }
}

static bool act(void)
{
    uint64_t choice = history_below(&net.h, 100);
    if (choice < 10) return put_one();
    if (choice < 45) return send_some();
    if (choice < 85) {
        if (net.packet_count == 0) return true;
        packet p = fetch_packet();
        return arrive(&p);
    }
    if (choice < 99 && !(net.box.is_shut && choice < 90)) {
        return pass_time((fk_time)history_below(&net.h, FK_MILLIS(600)));
    }
    return act_rarely();
}

/* From now on nothing is lost: in a few seconds everything is through. A receiver that was given up
 * is not met again; its successor is. */
static bool heal(void)
{
    net.is_healed = true;
    if (!break_connection()) return false;
    if (net.box.is_shut) restart_receiver();
    connect_anew();
    for (int second = 0; second < 8; second++) {
        if (!pass_time(FK_SECONDS(1)) || !send_some()) return false;
        while (net.packet_count > 0) {
            packet p = fetch_packet();
            if (!arrive(&p) || !send_some()) return false;
        }
    }
    EXPECT(&net.h, net.box.is_open);
    EXPECT(&net.h, net.box.unacked.count == 0);
    for (uint32_t i = 0; i < net.message_count; i++) {
        const message *msg = &net.messages[i];
        EXPECT(&net.h, msg->fate == ACKNOWLEDGED || msg->fate == REPORTED);
        EXPECT(&net.h, msg->delivered <= 1);
    }
    return true;
}

const char *delivery_net_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    memset(&net, 0, sizeof(net));
    history_begin(&net.h, seed, is_blind);
    net.config = (fk_delivery_config){ .unacked_max = 8 + (uint32_t)history_below(&net.h, 200),
                                       .give_up_after = FK_SECONDS(60) };
    net.loss = 2 + (uint32_t)history_below(&net.h, 20);
    net.doubling = 2 + (uint32_t)history_below(&net.h, 20);
    net.sender_uid = ++net.last_uid;
    bool ok = fk__outbox_init(&net.box, &net.config) == FK_OK;
    restart_receiver();
    connect_anew();
    for (net.h.step = 0; net.h.step < steps && ok; net.h.step++) ok = act();
    if (ok) ok = heal();
    return ok ? NULL : net.h.failure;
}

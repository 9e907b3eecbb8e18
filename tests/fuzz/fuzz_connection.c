/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A whole system with remoting, "a" at 10.0.0.1:1, at a cable (support/cable.h): the input is a list of
 * steps, each a byte that says what happens and one that says to which connection, and what more it
 * needs. Frames that are right can be said in a step, so that the way inside is short; and bytes of the
 * input itself, in pieces. Whatever comes, invariants hold after each step, the driver comes to rest,
 * and memory stays bounded.
 */

#include "fraktor/codec.h"
#include "fraktor/host.h"
#include "fraktor/registry.h"
#include "fraktor/remote.h"
#include "fuzz/fuzz.h"
#include "support/cable.h"

enum { STEPS_MAX = 200, MEMORY_MAX = 24 << 20, TEXT_MAX = 64 };

typedef enum step_kind {
    STEP_ACCEPT,
    STEP_BYTES,     /* how many, bytes */
    STEP_CLOSE,     /* by the peer */
    STEP_CONNECTED, /* one of the driver's that waits */
    STEP_FAILED,
    STEP_WRITTEN,
    STEP_LEND,  /* from now on, or not */
    STEP_TIME,  /* how long */
    STEP_HELLO, /* a header; which stream */
    STEP_REQUEST,
    STEP_RESPONSE,
    STEP_TEXT,    /* to whom */
    STEP_CONTROL, /* kind, number */
    STEP_SYSMSG,  /* kind, number, whom */
    STEP_SEND,    /* an actor here sends to one there */
    STEP_WATCH,   /* an actor here watches one there, or ends */
    STEP_QUARANTINE,
    STEP_OVERRIDE,
    STEP_FRAME,  /* serializer, how many, payload */
    STEP_REFUSE, /* connects fail at once from now on, or not */
    STEP_COUNT
} step_kind;

typedef struct input {
    const uint8_t *at, *end;
} input;

static fk_time the_time;
static int64_t bytes_held;
static fk_port host;
static fk_system *sys;
static cable c;
static uint64_t told;

static void *count_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    void *got = host.alloc(host.ctx, ptr, old_size, new_size);
    if (new_size == 0)
        bytes_held -= (int64_t)old_size;
    else if (got != NULL)
        bytes_held += (int64_t)new_size;
    return got;
}

static fk_time time_now(void *ctx)
{
    (void)ctx;
    return the_time;
}

/* The same each time, or what libFuzzer finds could not be run again. */
static void same_random(void *ctx, void *buf, size_t len)
{
    static const unsigned char BYTES[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    (void)ctx;
    for (size_t i = 0; i < len; i++) ((unsigned char *)buf)[i] = BYTES[i % 8];
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    const fk_ref *whom = FK_AS(fk_ref, msg);
    told++;
    if (whom != NULL) (void)!fk_watch(ctx, *whom);
    if (whom != NULL) return FK_OK;
    if (FK_AS(fk_terminated, msg) != NULL) return FK_OK;
    (void)fk_reply(ctx, FK_TEXT("thanks"));
    return FK_OK;
}

static fk_ref there(uint8_t which)
{
    static const char *const PATHS[] = { "fraktor.tcp://b@10.0.0.2:2/user/there",
                                         "fraktor.tcp://b@10.0.0.2:2/user/large/x",
                                         "fraktor.tcp://b@10.0.0.2:2/user/there#7",
                                         "fraktor.tcp://c@10.0.0.3:3/user/there" };
    fk_ref ref = FK_REF_NONE;
    if (fk_resolve(sys, fk_str_of(PATHS[which % 4]), &ref, NULL) != FK_OK) return FK_REF_NONE;
    return ref;
}

static fk_ref here(const char *name)
{
    static const fk_props PROPS = { .receive = receive };
    fk_ref ref;
    char path[64];
    snprintf(path, sizeof(path), "/user/%s", name);
    if (fk_resolve(sys, fk_str_of(path), &ref, NULL) == FK_OK && fk_is_alive(sys, ref)) return ref;
    return fk_spawn(sys, fk_str_of(name), &PROPS, &ref) == FK_OK ? ref : FK_REF_NONE;
}

static void begin(void)
{
    static const char *const LARGE[] = { "/user/large", NULL };
    fk_remoting_config remoting = { .host = "10.0.0.1",
                                    .port = 1,
                                    .deferred_max = 16,
                                    .deferred_total_max = 32,
                                    .quarantine = FK_SECONDS(20),
                                    .large = LARGE,
                                    .outbound_max = 16,
                                    .connections_max = 16,
                                    .half_open_max = 6,
                                    .watches_max = 4,
                                    .frame_max = 4096,
                                    .frame_max_large = 8192,
                                    .compress_every = FK_SECONDS(2),
                                    .idle_after = FK_SECONDS(10),
                                    .heartbeat_pause = FK_SECONDS(3),
                                    .handshake_timeout = FK_SECONDS(8) };
    fk_system_config config = { .name = "a", .workers = FK_WORKERS_NONE, .pools_malloc = true };
    host = fk_host_port();
    fk_port port = host;
    port.alloc = count_alloc;
    port.now = time_now;
    port.cycles = NULL;
    port.random = same_random;
    config.port = &port;
    config.remoting = remoting;
    config.remoting.enabled = false;
    the_time = FK_SECONDS(1000);
    FUZZ_CHECK(fk_system_start(&config, &sys) == FK_OK);
    cable_begin(&c, sys, &remoting);
    (void)here("here");
}

static void end(void)
{
    fk_terminate(sys);
    for (int i = 0; i < 16; i++) {
        the_time += FK_SECONDS(1);
        cable_run(&c);
    }
    cable_end(&c);
    FUZZ_CHECK(fk_system_stop(sys) == FK_OK);
    FUZZ_CHECK(bytes_held == 0);
}

static uint8_t take(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static fk_str take_bytes(input *in, size_t len)
{
    size_t left = (size_t)(in->end - in->at);
    fk_str bytes = { (const char *)in->at, len < left ? len : left };
    in->at += bytes.len;
    return bytes;
}

/* One of the open connections of that side; NULL: there is none. */
static cable_conn *pick(uint8_t which, bool ours)
{
    uint32_t count = cable_open_count(&c, ours), n = count > 0 ? which % count : 0;
    for (uint32_t i = 0; i < c.conns; i++) {
        if (!c.conn[i].is_open || c.conn[i].is_ours != ours) continue;
        if (n-- == 0) return &c.conn[i];
    }
    return NULL;
}

static cable_peer peer_of(uint8_t which)
{
    cable_peer peer = { FK_STR("b"), FK_STR("10.0.0.2"), 2, 77 };
    if ((which & 1) != 0) peer.uid = 78; /* another incarnation */
    if ((which & 2) != 0) peer = (cable_peer){ FK_STR("c"), FK_STR("10.0.0.3"), 3, 79 };
    return peer;
}

static void say_control(cable_conn *conn, const cable_peer *peer, input *in)
{
    static const fk_str KEYS[] = { { "fraktor://b@10.0.0.2:2/user/there", 33 }, { "x", 1 } };
    static const uint32_t VALUES[] = { 0, 1 };
    fk_wire_control control = { .kind = (fk_control_kind)(1 + take(in) % (FK_CONTROL_COUNT - 1)) };
    uint8_t number = take(in);
    switch (control.kind) {
    case FK_CONTROL_QUARANTINED:
        control.as.quarantined.from = cable_unique(peer);
        control.as.quarantined.to = cable_unique(peer);
        control.as.quarantined.to.uid = number % 2 == 0 ? fk_system_uid(sys) : number;
        break;
    case FK_CONTROL_REF_TABLE:
    case FK_CONTROL_MANIFEST_TABLE:
        control.as.table.version = number;
        control.as.table.from = cable_unique(peer);
        control.as.table.origin_uid = fk_system_uid(sys);
        control.as.table.keys = (fk_proto_list){ .count = 2, .items = KEYS };
        control.as.table.values = (fk_proto_list){ .count = 2, .items = VALUES };
        break;
    case FK_CONTROL_REF_TABLE_ACK:
    case FK_CONTROL_MANIFEST_TABLE_ACK:
        control.as.table_ack.version = number;
        control.as.table_ack.from = cable_unique(peer);
        break;
    case FK_CONTROL_ACK:
    case FK_CONTROL_NACK:
        control.as.ack.seq = number;
        control.as.ack.from = cable_unique(peer);
        break;
    case FK_CONTROL_HEARTBEAT_RSP: control.as.heartbeat_rsp.uid = peer->uid; break;
    case FK_CONTROL_HANDSHAKE_REQ: (void)cable_request(&c, conn, peer); return;
    case FK_CONTROL_SYSTEM_MESSAGE: return; /* a step of its own */
    case FK_CONTROL_HEARTBEAT:
    case FK_CONTROL_FLUSH: break;
    case FK_CONTROL_FLUSH_ACK: control.as.flush_ack.expected = 1; break;
    default: control.as.from.from = cable_unique(peer); break;
    }
    (void)cable_say(&c, conn, peer, &control);
}

static void say_sysmsg(cable_conn *conn, const cable_peer *peer, input *in)
{
    static const char *const OURS[] = { "fraktor://a@10.0.0.1:1/user/here",
                                        "fraktor://a@10.0.0.1:1/user/other",
                                        "fraktor://a@10.0.0.1:1/user/third",
                                        "fraktor://a@10.0.0.1:1/user/here#9",
                                        "fraktor://a@10.0.0.1:1/system/remote-watcher",
                                        "fraktor://b@10.0.0.2:2/user/there",
                                        "" };
    static const char *const THEIRS[] = { "fraktor://b@10.0.0.2:2/system/remote-watcher",
                                          "fraktor://b@10.0.0.2:2/user/w#3",
                                          "fraktor://c@10.0.0.3:3/user/w",
                                          "fraktor://a@10.0.0.1:1/user/here" };
    static const uint8_t KINDS[] = { FK_SYSMSG_WATCH, FK_SYSMSG_UNWATCH, FK_SYSMSG_DEATH,
                                     FK_SYSMSG_TERMINATE };
    uint8_t kind = take(in), seq = take(in), whom = take(in);
    fk_wire_sysmsg message = { .kind = KINDS[kind % 4] };
    if (message.kind == FK_SYSMSG_DEATH) {
        message.death.actor.path =
            fk_str_of(whom % 2 == 0 ? OURS[5] : "fraktor://b@10.0.0.2:2/user/there#7");
        message.death.existence_confirmed = whom % 3 == 0;
    } else if (message.kind != FK_SYSMSG_TERMINATE) {
        message.watch.watchee.path = fk_str_of(OURS[whom % 7]);
        message.watch.watcher.path = fk_str_of(THEIRS[whom / 7 % 4]);
    }
    (void)cable_watch(&c, conn, peer, seq, &message);
}

/* What the peer does on a connection of its own. */
static void say(step_kind kind, uint8_t which, input *in)
{
    static const char *const TO[] = { "fraktor://a@10.0.0.1:1/user/here",
                                      "fraktor://a@10.0.0.1:1/user/nobody",
                                      "fraktor://a@10.0.0.1:1/user/other",
                                      "fraktor://b@10.0.0.2:2/user/there" };
    cable_conn *conn = pick(which, kind == STEP_BYTES && which == 255);
    cable_peer peer = peer_of(which >> 6);
    if (conn == NULL) return;
    if (kind == STEP_BYTES) {
        fk_str bytes = take_bytes(in, take(in));
        (void)cable_read(&c, conn, bytes.ptr, bytes.len);
    } else if (kind == STEP_HELLO) {
        (void)cable_header(&c, conn, (fk_wire_stream)(1 + take(in) % 3));
    } else if (kind == STEP_REQUEST) {
        (void)cable_request(&c, conn, &peer);
    } else if (kind == STEP_RESPONSE) {
        (void)cable_response(&c, conn, &peer);
    } else if (kind == STEP_TEXT) {
        uint8_t to = take(in);
        (void)cable_text(&c, conn, &peer, TO[to % 4],
                         (to & 4) != 0 ? "fraktor://b@10.0.0.2:2/user/there" : "",
                         take_bytes(in, to / 8));
    } else if (kind == STEP_CONTROL) {
        say_control(conn, &peer, in);
    } else if (kind == STEP_SYSMSG) {
        say_sysmsg(conn, &peer, in);
    } else {
        fk_wire_envelope e = { .uid = peer.uid, .serializer = take(in) };
        uint8_t how = take(in);
        e.recipient.text = fk_str_of(TO[how % 4]);
        e.recipient.is_compressed = (how & 4) != 0;
        e.ref_table = e.manifest_table = how >> 5;
        static const char LETTERS[] = "abcdefghijklmnopABDEFGKP";
        e.manifest.text = (fk_str){ LETTERS + take(in) % 24, (how & 8) != 0 };
        e.payload = take_bytes(in, take(in));
        (void)cable_frame(&c, conn, &e);
    }
}

/* What happens to connections of the driver. */
static void happen(step_kind kind, uint8_t which)
{
    cable_conn *conn = kind == STEP_CLOSE     ? pick(which, (which & 64) != 0)
                       : kind == STEP_WRITTEN ? pick(which, true)
                                              : cable_waiting(&c);
    if (conn == NULL) return;
    if (kind == STEP_CONNECTED)
        cable_connected(&c, conn);
    else if (kind == STEP_FAILED)
        cable_failed(&c, conn);
    else if (kind == STEP_CLOSE)
        cable_closed(&c, conn);
    else if (conn->lent != NULL)
        cable_written(&c, conn);
}

/* What is done here. */
static void act(step_kind kind, uint8_t which)
{
    static const char *const NAMES[] = { "here", "other", "third" };
    static const char TEXT[6000];
    fk_str address = which % 2 == 0 ? FK_STR("fraktor.tcp://b@10.0.0.2:2")
                                    : FK_STR("fraktor.tcp://c@10.0.0.3:3");
    if (kind == STEP_SEND) {
        fk_str text = { TEXT, which == 255 ? sizeof(TEXT) : which };
        (void)fk_send_from(sys, there(which), here(NAMES[which % 3]), FK_TEXT_AT(text));
    } else if (kind == STEP_WATCH && (which & 128) != 0) {
        (void)fk_stop(sys, here(NAMES[which % 3]));
    } else if (kind == STEP_WATCH) {
        (void)fk_send(sys, here(NAMES[which % 3]), FK_MSG_REF(there(which / 3)));
    } else if (kind == STEP_QUARANTINE) {
        (void)fk_authority_quarantine(sys, address);
    } else if (which < 128) {
        (void)fk_authority_override(sys, address);
    } else {
        (void)fk_authority_override_force(sys, address);
    }
}

static void step(input *in)
{
    step_kind kind = (step_kind)(take(in) % STEP_COUNT);
    uint8_t which = take(in);
    switch (kind) {
    case STEP_ACCEPT: (void)cable_accept(&c); break;
    case STEP_CONNECTED:
    case STEP_FAILED:
    case STEP_WRITTEN:
    case STEP_CLOSE: happen(kind, which); break;
    case STEP_LEND: c.lends = which % 2 != 0; break;
    case STEP_REFUSE: c.connect_err = which % 4 == 0 ? FK_E_OS : FK_OK; break;
    case STEP_TIME: the_time += FK_MILLIS(which) * (which % 8 == 0 ? 100 : 4); break;
    case STEP_SEND:
    case STEP_WATCH:
    case STEP_QUARANTINE:
    case STEP_OVERRIDE: act(kind, which); break;
    default: say(kind, which, in); break;
    }
    if ((which & 32) == 0) cable_run(&c); /* else together with what comes next */
    FUZZ_CHECK(bytes_held < MEMORY_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = { data, data + size };
    begin();
    for (int i = 0; i < STEPS_MAX && in.at < in.end; i++) step(&in);
    end();
    return 0;
}

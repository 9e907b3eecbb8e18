/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/handshake_model.h"

#include <string.h>

enum { PEERS = 3, STREAMS = 2, UIDS = 14, OWN_UID = UIDS, BUCKETS = 4, ARENA = 1 << 18 };

/* What a stream should be. */
typedef struct stream {
    fk_handshake real;
    bool is_there, is_answered, is_control;
    uint64_t attempt;
    fk_time inject_at, repeat_at, fail_at;
} stream;

typedef struct person {
    fk_peer peer;
    fk_authority *authority;
    stream streams[STREAMS];
    uint64_t known[UIDS * 100]; /* in the order of first meetings; the last four count */
    uint32_t known_count;
    bool is_quarantined[UIDS + 1];
} person;

static struct {
    history h;
    fk_mem mem;
    _Alignas(16) char arena[ARENA]; /* nothing is given back: a history is short */
    size_t arena_used;
    fk_authority_table table;
    fk_door door;
    fk_origin *bucket[BUCKETS];
    fk_handshake_config config;
    fk_time now;
    person people[PEERS];
} m;

handshake_seen handshake_model_seen;

/* ---- the port ------------------------------------------------------------------------------ */

static void *arena_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)ptr;
    (void)old_size;
    if (new_size == 0) return NULL;
    size_t at = (m.arena_used + 15) / 16 * 16;
    if (at + new_size > ARENA) return NULL;
    m.arena_used = at + new_size;
    return m.arena + at;
}

static void no_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    (void)lock;
}

/* ---- what should be known ------------------------------------------------------------------ */

static bool knows(const person *p, uint64_t uid)
{
    for (uint32_t i = 0; i < p->known_count; i++) {
        if (p->known[i] == uid && p->known_count - i <= FK_PEER_ORIGINS) return true;
    }
    return false;
}

static person *owner_of(uint64_t uid)
{
    for (int i = 0; i < PEERS; i++) {
        if (knows(&m.people[i], uid)) return &m.people[i];
    }
    return NULL;
}

static fk_time stream_next(const stream *s)
{
    return s->repeat_at < s->fail_at ? s->repeat_at : s->fail_at;
}

static void stream_end(stream *s)
{
    fk__handshake_end(&s->real);
    s->is_there = s->is_answered = false;
    s->repeat_at = s->fail_at = FK_NEVER;
}

static void stream_answer(stream *s, bool is_response)
{
    fk__handshake_answered(&s->real, is_response);
    if (!s->is_there || s->is_answered || (s->is_control && !is_response)) return;
    s->is_answered = true;
    s->repeat_at = s->fail_at = FK_NEVER;
}

static bool check_stream(const stream *s)
{
    EXPECT(&m.h, fk__handshake_next(&s->real) == stream_next(s));
    EXPECT(&m.h, (s->real.phase == FK_HANDSHAKE_IDLE) == !s->is_there);
    EXPECT(&m.h, (s->real.phase == FK_HANDSHAKE_ANSWERED) == s->is_answered);
    return true;
}

/* ---- acts ---------------------------------------------------------------------------------- */

static fk_authority_key key_of(uint64_t number)
{
    return (fk_authority_key){ FK_STR("sys"), FK_STR("host"), (uint16_t)(number + 1) };
}

static bool act_accept(person *p, uint64_t uid, bool is_request)
{
    fk_door_effects fx;
    const person *owner = owner_of(uid);
    bool is_same = p->authority->is_open && p->authority->uid == uid;
    fk_door_result result = fk__door_accept(&m.door, &p->peer, uid, is_request, m.now, &fx);
    fk_door_result expected = uid == 0 || uid == OWN_UID           ? FK_DOOR_RESULT_INVALID
                              : owner != NULL && owner != p        ? FK_DOOR_RESULT_TAKEN
                              : p->is_quarantined[uid] && !is_same ? FK_DOOR_RESULT_QUARANTINED
                                                                   : FK_DOOR_RESULT_ACCEPTED;
    EXPECT(&m.h, result == expected);
    handshake_model_seen.results[result]++;
    bool is_in = result == FK_DOOR_RESULT_ACCEPTED;
    EXPECT(&m.h, fx.authority.authority == p->authority);
    EXPECT(&m.h, fx.must_answer == (is_in && is_request));
    EXPECT(&m.h, fx.must_notify == (result == FK_DOOR_RESULT_QUARANTINED && is_request));
    EXPECT(&m.h, (fx.origin != NULL) == is_in);
    if (!is_in) return true;
    EXPECT(&m.h, fx.origin->uid == uid);
    EXPECT(&m.h, fx.origin->peer == &p->peer);
    EXPECT(&m.h, p->authority->is_open);
    EXPECT(&m.h, p->authority->uid == uid);
    if (!knows(p, uid)) p->known[p->known_count++] = uid;
    for (int i = 0; i < STREAMS; i++) stream_answer(&p->streams[i], !is_request);
    return true;
}

/* Somebody knocks: one of the three, we ourselves, or one too many. */
static bool act_knock(void)
{
    fk_door_effects fx;
    uint64_t who = history_below(&m.h, PEERS + 3);
    bool is_for_us = !history_chance(&m.h, 4);
    fk_authority_key from = who == PEERS ? m.door.own : key_of(who), to = m.door.own;
    if (who == PEERS + 2) from.port = 0;
    if (!is_for_us) {
        uint64_t part = history_below(&m.h, 3);
        if (part == 0) to.system = FK_STR("syt");
        if (part == 1) to.host = FK_STR("hosts");
        if (part == 2) to.port++;
    }
    fk_door_result result = fk__door_knock(&m.door, &from, &to, m.now, &fx);
    fk_door_result expected = !is_for_us                         ? FK_DOOR_RESULT_NOT_US
                              : who == PEERS || who == PEERS + 2 ? FK_DOOR_RESULT_INVALID
                              : who > PEERS                      ? FK_DOOR_RESULT_LIMIT
                                                                 : FK_DOOR_RESULT_ACCEPTED;
    EXPECT(&m.h, result == expected);
    handshake_model_seen.results[result]++;
    if (result != FK_DOOR_RESULT_ACCEPTED) return true;
    person *p = &m.people[who];
    EXPECT(&m.h, fx.authority.authority == p->authority);
    EXPECT(&m.h, p->authority->is_mapped);
    return act_accept(p, history_below(&m.h, UIDS + 1), true);
}

static bool act_admit(void)
{
    fk_origin *origin = NULL;
    bool must_notify = true, is_quiet = history_chance(&m.h, 2);
    uint64_t uid = history_below(&m.h, UIDS + 1);
    const person *owner = owner_of(uid);
    fk_door_result result = fk__door_admit(&m.door, uid, is_quiet, &origin, &must_notify);
    handshake_model_seen.results[result]++;
    if (owner == NULL) {
        EXPECT(&m.h, result == FK_DOOR_RESULT_UNKNOWN);
        EXPECT(&m.h, !must_notify);
        return true;
    }
    EXPECT(&m.h, origin != NULL);
    EXPECT(&m.h, origin->uid == uid);
    EXPECT(&m.h, origin->peer == &owner->peer);
    bool is_bad = owner->is_quarantined[uid];
    EXPECT(&m.h, result == (is_bad ? FK_DOOR_RESULT_QUARANTINED : FK_DOOR_RESULT_ACCEPTED));
    EXPECT(&m.h, must_notify == (is_bad && !is_quiet));
    return true;
}

static void act_quarantine(person *p)
{
    fk_authority_effects fx;
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_QUARANTINE, .uid = p->authority->uid };
    if (event.uid == 0) return;
    fk_authority_result result = fk__authority_step(&m.table, p->authority, &event, m.now, &fx);
    if (result == FK_AUTHORITY_RESULT_DONE) p->is_quarantined[event.uid] = true;
    if (fx.must_close) {
        for (int i = 0; i < STREAMS; i++) stream_end(&p->streams[i]);
    }
}

static bool act_stream(person *p)
{
    fk_handshake_effects fx;
    uint64_t index = history_below(&m.h, STREAMS);
    stream *s = &p->streams[index];
    if (s->is_there) {
        if (history_chance(&m.h, 3)) stream_end(s);
        return true;
    }
    s->is_there = true;
    s->is_control = index == 0;
    s->is_answered = p->authority->is_open && !s->is_control;
    s->attempt = p->authority->attempt;
    s->inject_at = m.now + m.config.inject_every;
    s->repeat_at = s->is_answered ? FK_NEVER : m.now + m.config.repeat_every;
    s->fail_at = s->is_answered ? FK_NEVER : m.now + m.config.fail_after;
    fk__handshake_begin(&s->real, p->authority, s->is_control, m.now, &fx);
    EXPECT(&m.h, fx.must_request);
    handshake_model_seen.requests++;
    return true;
}

static bool act_send(person *p)
{
    fk_handshake_effects fx;
    stream *s = &p->streams[history_below(&m.h, STREAMS)];
    bool may_send = fk__handshake_may_send(&s->real, m.now, &fx);
    bool must_request = s->is_answered && s->inject_at <= m.now;
    EXPECT(&m.h, may_send == s->is_answered);
    EXPECT(&m.h, fx.must_request == must_request);
    if (must_request) s->inject_at = m.now + m.config.inject_every;
    handshake_model_seen.injections += must_request;
    handshake_model_seen.sent += may_send;
    handshake_model_seen.held += !may_send && s->is_there;
    return true;
}

static fk_authority_result failure_of(const person *p, const stream *s)
{
    const fk_authority *a = p->authority;
    if (a->is_open) return FK_AUTHORITY_RESULT_DONE;
    if (a->state == FK_ASSOCIATION_QUARANTINE) return FK_AUTHORITY_RESULT_STATE;
    bool is_attempt = a->is_attempting && a->attempt == s->attempt;
    return is_attempt ? FK_AUTHORITY_RESULT_DONE : FK_AUTHORITY_RESULT_STALE;
}

static bool tick_stream(person *p, stream *s)
{
    fk_handshake_effects fx;
    bool was_open = p->authority->is_open;
    fk_authority_result told = failure_of(p, s);
    bool must_fail = s->fail_at <= m.now, must_repeat = !must_fail && s->repeat_at <= m.now;
    fk__handshake_tick(&s->real, &m.table, p->authority, m.now, &fx);
    EXPECT(&m.h, fx.has_failed == must_fail);
    EXPECT(&m.h, fx.must_request == must_repeat);
    if (must_repeat) {
        s->repeat_at = m.now + m.config.repeat_every;
        s->inject_at = m.now + m.config.inject_every;
        handshake_model_seen.repeats++;
    }
    if (!must_fail) return true;
    EXPECT(&m.h, fx.result == told);
    EXPECT(&m.h, !p->authority->is_open);
    handshake_model_seen.failures++;
    handshake_model_seen.drops += was_open;
    stream_end(s);
    if (!was_open) return true;
    for (int i = 0; i < STREAMS; i++) stream_end(&p->streams[i]);
    return true;
}

static bool act_time(void)
{
    fk_authority_effects fx;
    uint64_t most_ms = history_chance(&m.h, 3) ? 2500 : 300;
    m.now += FK_MILLIS(history_below(&m.h, most_ms));
    for (int i = 0; i < PEERS; i++) {
        for (int j = 0; j < STREAMS; j++) {
            if (!tick_stream(&m.people[i], &m.people[i].streams[j])) return false;
        }
    }
    while (fk__authority_tick(&m.table, m.now, &fx)) continue;
    return true;
}

static bool act(void)
{
    person *p = &m.people[history_below(&m.h, PEERS)];
    uint64_t choice = history_below(&m.h, 100);
    if (choice < 12) return act_knock();
    if (choice < 16) return act_accept(p, history_below(&m.h, UIDS + 1), false);
    if (choice < 30) return act_admit();
    if (choice < 45) return act_stream(p);
    if (choice < 70) return act_send(p);
    if (choice < 97) return act_time();
    act_quarantine(p);
    return true;
}

/* ---- a history ----------------------------------------------------------------------------- */

static bool begin(uint64_t seed)
{
    static const fk_port PORT = {
        .size = sizeof(fk_port), .alloc = arena_alloc, .lock = no_lock, .unlock = no_lock
    };
    static const fk_hash_key KEY = { 1, 2 };
    fk_authority_config config = { .authorities_max = PEERS };
    fk__mem_init(&m.mem, &PORT, 0);
    EXPECT(&m.h, fk__authority_table_init(&m.table, &m.mem, &config, &KEY, seed) == FK_OK);
    EXPECT(&m.h, fk__handshake_configure(NULL, &m.config) == FK_OK);
    m.now = FK_SECONDS(1);
    m.door = (fk_door){ .table = &m.table,
                        .own = { FK_STR("sys"), FK_STR("host"), 2552 },
                        .own_uid = OWN_UID };
    fk__origins_init(&m.door.origins, m.bucket, BUCKETS, seed);
    for (uint64_t i = 0; i < PEERS; i++) {
        fk_authority_effects fx;
        person *p = &m.people[i];
        fk_authority_key key = key_of(i);
        EXPECT(&m.h, fk__authority_get(&m.table, &key, m.now, &fx, &p->authority) == FK_OK);
        EXPECT(&m.h, fk__authority_map(&m.table, p->authority, FK_STR(""), 0, m.now) == FK_OK);
        fk__peer_init(&p->peer, p->authority);
        for (int j = 0; j < STREAMS; j++) {
            fk__handshake_init(&p->streams[j].real, &m.config);
            p->streams[j].repeat_at = p->streams[j].fail_at = FK_NEVER;
        }
    }
    return true;
}

static bool check_all(void)
{
    if (m.h.is_blind) return true;
    fk__authority_table_check(&m.table);
    for (int i = 0; i < PEERS * STREAMS; i++) {
        if (!check_stream(&m.people[i / STREAMS].streams[i % STREAMS])) return false;
    }
    return true;
}

const char *handshake_model_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    memset(&m, 0, sizeof(m));
    history_begin(&m.h, seed, is_blind);
    bool ok = begin(seed);
    for (m.h.step = 0; m.h.step < steps && ok; m.h.step++) ok = act() && check_all();
    return ok ? NULL : m.h.failure;
}

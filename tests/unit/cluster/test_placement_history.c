/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random histories: a coordinator whose driver answers late, twice, wrongly, in any order or never,
 * whose view changes, whose lease is lost, whose memory runs out. After each step everything is
 * walked, and a model that hears only what leaves the coordinator says what must not happen.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/placing.h"

enum { KEYS = 24, SLOTS = 8, TICKETS = 65536, PENDING = 4096, KINDS = 2 };

typedef struct errand {
    fk_command_kind kind;
    uint64_t request_id;
    unsigned key; /* KEYS: about slots */
    int realm;
    uint32_t slot_count;
    uint32_t slot[SLOTS];
    uint64_t epoch[SLOTS];
    char to;
} errand;

typedef struct model {
    rig r;
    test_random random;
    fk_placement *p;
    fk_time now;
    fk_grain_key key[KEYS];
    char text[KEYS][8];
    /* An activation of the key may run: from EnsureActivation to stopped(), or to its refusal. */
    bool may_run[KEYS];
    bool is_active[KEYS], is_told_to_stop[KEYS];
    uint64_t pid[KEYS], pids;
    uint64_t flight[KEYS]; /* request id of EnsureActivation */
    errand pending[PENDING];
    size_t count;
    /* The lock. */
    char holder[KINDS][SLOTS]; /* 0: nobody */
    uint64_t holder_life[KINDS][SLOTS];
    uint64_t epoch[KINDS][SLOTS];
    uint64_t life;
    uint64_t tickets, settled;
    uint8_t ticket[TICKETS]; /* 1: waits, 2: told */
    uint64_t records, discards;
    uint64_t version;
    uint64_t activated, moved, lost;
} model;

static model m;
static const char *const KIND[KINDS] = { "account", "room" };

static unsigned key_index(fk_grain_id id)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (fk_grain_id_equal(m.key[i].id, id)) return i;
    }
    test_failed(__FILE__, __LINE__, "a command about an unknown key");
}

static int kind_index(fk_str name)
{
    return name.len == 7 ? 0 : 1;
}

static void on_command(void *ctx, const fk_placement_command *c)
{
    (void)ctx;
    CHECK(c->deadline > m.now || c->kind == FK_COMMAND_CANCEL_REQUEST);
    errand e = { .kind = c->kind, .request_id = c->request_id, .key = KEYS };
    if (c->slot_count != 0) {
        CHECK(c->slot_count <= SLOTS);
        e.realm = kind_index(c->slot_kind);
        e.slot_count = c->slot_count;
        for (uint32_t i = 0; i < c->slot_count; i++) {
            e.slot[i] = c->slots[i].slot;
            e.epoch[i] = c->slots[i].epoch;
            for (uint32_t k = 0; k < i; k++) CHECK(e.slot[k] != e.slot[i]);
        }
        e.to = c->to.len != 0 ? c->to.ptr[0] : '\0';
    } else if (c->kind != FK_COMMAND_RENEW_MEMBER) {
        e.key = key_index(c->key.id);
        e.realm = kind_index(c->key.kind);
    }
    switch (c->kind) {
    case FK_COMMAND_LOAD_ACTIVATION:
        CHECK(!m.may_run[e.key]);
        CHECK_U64(c->fence.incarnation, m.life);
        break;
    case FK_COMMAND_ENSURE_ACTIVATION:
        CHECK(!m.may_run[e.key]); /* one key never has two */
        m.may_run[e.key] = true;
        m.flight[e.key] = c->request_id;
        m.pid[e.key] = 0;
        m.is_told_to_stop[e.key] = false;
        break;
    case FK_COMMAND_STORE_ACTIVATION: CHECK(m.may_run[e.key]); break;
    case FK_COMMAND_STOP_ACTIVATION:
        CHECK(m.may_run[e.key]);
        CHECK(!m.is_told_to_stop[e.key]);
        CHECK(c->pid == m.pid[e.key] || c->pid == 0);
        m.is_told_to_stop[e.key] = true;
        m.is_active[e.key] = false;
        break;
    case FK_COMMAND_TRANSFER_SLOT:
    case FK_COMMAND_RELEASE:
        for (uint32_t i = 0; i < e.slot_count; i++) {
            for (unsigned k = 0; k < KEYS; k++) {
                bool is_in = kind_index(m.key[k].kind) == e.realm &&
                             fk_slot_of(m.key[k].id, SLOTS) == e.slot[i];
                if (is_in && c->kind == FK_COMMAND_TRANSFER_SLOT) CHECK(!m.may_run[k]);
                if (is_in) CHECK(!m.may_run[k] || m.is_told_to_stop[k]);
            }
        }
        m.moved += e.slot_count;
        break;
    default: break;
    }
    if (c->kind == FK_COMMAND_CANCEL_REQUEST) return;
    CHECK(m.count < PENDING);
    m.pending[m.count++] = e;
}

static void on_event(void *ctx, const fk_placement_event *event)
{
    (void)ctx;
    CHECK(event->observed_at == m.now);
    CHECK(event->reason != NULL);
    if (event->kind == FK_PLACEMENT_ACTIVATED) {
        unsigned key = key_index(event->key.id);
        CHECK(m.may_run[key] && !m.is_told_to_stop[key]);
        CHECK_U64(event->pid, m.pid[key]);
        m.is_active[key] = true;
        m.activated++;
    }
    if (event->kind == FK_PLACEMENT_LEASE_LOST) m.lost++;
}

static void on_settled(void *ctx, uint64_t ticket, const fk_resolution *r)
{
    (void)ctx;
    CHECK(ticket < TICKETS);
    CHECK_U64(m.ticket[ticket], 1);
    CHECK(r->err != FK_E_PENDING);
    if (r->err == FK_OK && r->locality == FK_LOCALITY_REMOTE) {
        CHECK(r->authority.len == 1);
        CHECK(r->authority.ptr[0] != 'a');
    }
    m.ticket[ticket] = 2;
    m.settled++;
}

static void on_discard(void *ctx, void *record)
{
    (void)ctx;
    CHECK(record != NULL);
    free(record);
    m.discards++;
}

static uint64_t roll(uint64_t n)
{
    return test_random_below(&m.random, n);
}

/* ---- what a driver does ------------------------------------------------------------------------- */

static void answer_slots(const errand *e, fk_placement_result *result, fk_slot_claim *claim)
{
    static const char IDS[] = "abcd";
    bool is_cut =
        result->verdict == FK_VERDICT_UNKNOWN && roll(2) == 0; /* it was done all the same */
    bool is_done = result->verdict == FK_VERDICT_OK || is_cut;
    for (uint32_t i = 0; i < e->slot_count; i++) {
        char *holder = &m.holder[e->realm][e->slot[i]];
        uint64_t *life = &m.holder_life[e->realm][e->slot[i]];
        uint64_t *epoch = &m.epoch[e->realm][e->slot[i]];
        bool is_ours = *holder == 'a' && *life == m.life;
        claim[i] = (fk_slot_claim){ .slot = e->slot[i] };
        if (!is_done) continue;
        if (e->kind == FK_COMMAND_TRY_ACQUIRE) {
            if (*holder == 'a' && *life != m.life) *holder = '\0'; /* a former life */
            if (*holder != '\0' && *holder != 'a' && roll(3) == 0) *holder = '\0';
            if (*holder == '\0') {
                *holder = 'a';
                *life = m.life;
                ++*epoch;
            }
            if (*holder == 'a') {
                claim[i].epoch = *epoch;
            } else {
                claim[i].holder = (fk_str){ &IDS[*holder - 'a'], 1 };
                claim[i].holder_incarnation = roll(5) == 0 ? 2 : 1;
            }
        } else if (is_ours && e->epoch[i] == *epoch) {
            *holder = e->kind == FK_COMMAND_RELEASE ? '\0' : e->to;
            if (e->kind == FK_COMMAND_TRANSFER_SLOT) claim[i].epoch = ++*epoch;
        }
    }
    result->slots = claim;
    result->slot_count = e->slot_count;
}

static void answer(size_t index)
{
    static const fk_err WHY[] = { FK_E_STORAGE, FK_E_FENCED, FK_E_CONFLICT, FK_E_ACTIVATION };
    errand e = m.pending[index];
    fk_slot_claim claim[SLOTS];
    uint64_t luck = roll(20);
    if (luck != 0) m.pending[index] = m.pending[--m.count]; /* else it will be answered again */
    fk_placement_result result = { .kind = e.kind, .request_id = e.request_id };
    if (luck == 1) result.verdict = FK_VERDICT_UNKNOWN;
    if (luck == 2) result.verdict = FK_VERDICT_REFUSED;
    if (luck == 3) result.kind = (fk_command_kind)roll(FK_COMMAND_COUNT); /* another phase */
    if (result.verdict != FK_VERDICT_OK) result.err = WHY[roll(4)];
    if (e.kind == FK_COMMAND_ENSURE_ACTIVATION && result.err == FK_E_FENCED) {
        result.err = FK_E_ACTIVATION;
    }
    if (e.kind == FK_COMMAND_STOP_ACTIVATION) {
        if (!m.may_run[e.key] || !m.is_told_to_stop[e.key]) return;
        m.may_run[e.key] = false;
        CHECK_OK(fk_placement_stopped(m.p, m.key[e.key].id, m.pid[e.key], "told", m.now));
        return;
    }
    if (e.slot_count != 0 && result.kind == e.kind) answer_slots(&e, &result, claim);
    if (result.kind == FK_COMMAND_LOAD_ACTIVATION && result.verdict == FK_VERDICT_OK &&
        roll(2) == 0) {
        result.record = malloc(1);
        result.version = 3;
    }
    bool is_ensured = e.kind == FK_COMMAND_ENSURE_ACTIVATION && e.kind == result.kind &&
                      m.may_run[e.key] && m.flight[e.key] == e.request_id && m.pid[e.key] == 0 &&
                      !m.is_told_to_stop[e.key];
    if (is_ensured && result.verdict == FK_VERDICT_OK) m.pid[e.key] = ++m.pids;
    if (is_ensured && result.verdict == FK_VERDICT_REFUSED) m.may_run[e.key] = false;
    result.pid = e.key < KEYS ? m.pid[e.key] : 0;
    fk_err err = fk_placement_handle_result(m.p, &result, m.now);
    CHECK(err == FK_OK || err == FK_E_NOT_FOUND);
    if (is_ensured && err != FK_OK) { /* the lease was over by then */
        CHECK(m.is_told_to_stop[e.key] || result.verdict == FK_VERDICT_REFUSED);
        if (result.verdict == FK_VERDICT_REFUSED) m.may_run[e.key] = true;
    }
    if (err == FK_OK && result.record != NULL) m.records++;
    if (err != FK_OK) free(result.record);
}

static void change_view(void)
{
    static const fk_str KINDS_OF[] = { { "account", 7 }, { "room", 4 } };
    static const char IDS[] = "abcd";
    fk_member member[4];
    uint32_t count = 0;
    for (unsigned i = 0; i < 4; i++) {
        if (roll(3) == 0) continue;
        member[count++] = (fk_member){ .id = { &IDS[i], 1 },
                                       .incarnation = i == 0 ? m.life : 1,
                                       .address = { &IDS[i], 1 },
                                       .kinds = KINDS_OF,
                                       .kind_count = roll(8) == 0 ? 1 : 2,
                                       .weight = (uint32_t)roll(3),
                                       .status = roll(8) == 0 ? FK_MEMBER_DRAINING : FK_MEMBER_UP };
    }
    m.version += roll(4) != 0;
    fk_err err = fk_placement_update_topology(
        m.p, &(fk_view){ m.version - (roll(8) == 0 && m.version > 1), member, count }, m.now);
    CHECK(err == FK_OK || err == FK_E_NOMEM);
}

static void resolve(void)
{
    fk_resolution out;
    unsigned key = (unsigned)roll(KEYS);
    if (m.tickets + 1 >= TICKETS) return;
    uint64_t ticket = ++m.tickets;
    m.ticket[ticket] = 1;
    fk_err err = fk_placement_resolve(m.p, &m.key[key], ticket, m.now, &out);
    CHECK_ERR(out.err, err);
    if (err == FK_E_PENDING) return;
    CHECK_U64(m.ticket[ticket], 1);
    m.ticket[ticket] = 2;
    m.settled++;
    if (err == FK_OK && out.locality == FK_LOCALITY_LOCAL) {
        CHECK(m.is_active[key]);
        CHECK_U64(out.pid, m.pid[key]);
        CHECK(m.now < fk_placement_lease_deadline(m.p));
    }
}

static void lock_moves(void)
{
    int realm = (int)roll(KINDS);
    uint32_t slot = (uint32_t)roll(SLOTS);
    if (m.holder[realm][slot] == 'a' && m.holder_life[realm][slot] == m.life) return;
    m.holder[realm][slot] = 'b';
    m.epoch[realm][slot]++;
    if (roll(2) == 0) return;
    m.holder[realm][slot] = 'a'; /* and on to us */
    m.holder_life[realm][slot] = m.life;
    m.epoch[realm][slot]++;
    fk_slot_claim claim = { .slot = slot, .epoch = m.epoch[realm][slot] };
    if (roll(4) == 0) return;
    (void)fk_placement_transferred(m.p, fk_str_of(KIND[realm]), m.life, &claim, 1, m.now);
    if (roll(4) == 0) {
        (void)fk_placement_transferred(m.p, fk_str_of(KIND[realm]), m.life, &claim, 1, m.now);
    }
}

static void own_end(void)
{
    unsigned key = (unsigned)roll(KEYS);
    if (!m.is_active[key]) return;
    if (roll(2) == 0) {
        CHECK_OK(fk_placement_stopped(m.p, m.key[key].id, m.pid[key], "itself", m.now));
        m.is_active[key] = m.may_run[key] = false;
    } else {
        fk_err why = roll(2) == 0 ? FK_E_FENCED : FK_E_CONFLICT;
        bool is_over = m.now >= fk_placement_lease_deadline(m.p);
        const fk_placement_result failed = { .verdict = FK_VERDICT_REFUSED,
                                             .err = why,
                                             .epoch = 99 };
        fk_err err = fk_placement_store_failed(m.p, m.key[key].id, m.pid[key], &failed, m.now);
        CHECK_ERR(err, is_over ? FK_E_NOT_FOUND : FK_OK);
        CHECK(m.is_told_to_stop[key]);
    }
}

static void step(void)
{
    uint64_t what = roll(100);
    m.now += (fk_time)roll(FK_MILLIS(20));
    if (what < 35) {
        if (m.count != 0) answer((size_t)roll(m.count));
    } else if (what < 65) {
        resolve();
    } else if (what < 80) {
        if (roll(60) == 0) m.now += FK_SECONDS(6);
        fk_placement_tick(m.p, m.now);
    } else if (what < 84) {
        change_view();
    } else if (what < 88) {
        lock_moves();
    } else if (what < 91) {
        own_end();
    } else if (what < 94) {
        fk_placement_passivate_idle(m.p, m.now);
    } else if (what < 96) {
        static const char *const TO[] = { "b", "c", "x", "" };
        fk_placement_redirected(m.p, &m.key[roll(KEYS)], fk_str_of(TO[roll(4)]), m.now);
    } else if (what < 97) {
        if (roll(20) == 0) (void)fk_placement_drain(m.p, m.now);
        if (roll(20) == 0) (void)fk_placement_stop(m.p, m.now);
    } else if (fk_placement_lease_deadline(m.p) == 0) {
        fk_err err = fk_placement_start_member(m.p, FK_STR("a"), m.life + 1, m.now, m.now);
        if (err == FK_OK) m.life++;
        CHECK(err == FK_OK || err == FK_E_NOMEM || err == FK_E_IDENTITY_SETUP);
    }
    fk_placement_check(m.p);
}

static void history(uint64_t seed, bool is_short_of_memory)
{
    memset(&m, 0, sizeof(m));
    m.random.state = seed * 2654435761u + 1;
    rig_init(&m.r);
    m.now = FK_SECONDS(10);
    for (unsigned i = 0; i < KEYS; i++) {
        snprintf(m.text[i], sizeof(m.text[i]), "k%u", i);
        CHECK_OK(fk_grain_key_of(fk_str_of(KIND[i % KINDS]), fk_str_of(m.text[i]), &m.key[i]));
    }
    fk_placement_config config = {
        .slots = SLOTS,
        .outcome = { NULL, on_command, on_event, on_settled, on_discard },
        .command_timeout = FK_MILLIS(800),
        .waiters_max = (uint32_t)(1 + roll(9)),
        .activations_max = (uint32_t)(4 + roll(30)),
        .acquire_batch = (uint32_t)(1 + roll(8)),
        .drain_batch = (uint32_t)(1 + roll(8)),
        .cache_capacity = (uint32_t)(1 + roll(6)),
        .cache_ttl = FK_MILLIS(400),
    };
    CHECK_OK(fk_placement_create(&config, &m.r.port, &m.p));
    for (unsigned i = 0; i < KINDS; i++) {
        fk_activated_kind kind = { fk_str_of(KIND[i]), i == 0, FK_MILLIS(900) };
        CHECK_OK(fk_placement_add_kind(m.p, &kind, m.now));
    }
    m.life = m.version = 1;
    CHECK_OK(fk_placement_start_member(m.p, FK_STR("a"), 1, m.now, m.now));
    for (unsigned i = 0; i < 1500; i++) {
        if (is_short_of_memory && roll(4) == 0) rig_fault(&m.r, 1 + roll(3), roll(2) == 0);
        step();
        if (is_short_of_memory) rig_fault(&m.r, 0, false);
    }
    (void)fk_placement_stop(m.p, m.now);
    CHECK_U64(m.settled, m.tickets); /* each, and each once */
    for (unsigned i = 0; i < KEYS; i++) CHECK(!m.may_run[i] || m.is_told_to_stop[i]);
    fk_placement_snapshot snapshot;
    fk_placement_snapshot_get(m.p, &snapshot);
    CHECK_U64(snapshot.waiters, 0);
    CHECK_U64(snapshot.commands_pending, 0);
    CHECK_U64(snapshot.slots_held, 0);
    CHECK_U64(m.records, m.discards);
    fk_placement_check(m.p);
    fk_placement_destroy(m.p);
    CHECK_U64(atomic_load(&m.r.bytes), 0);
}

static void histories(uint64_t runs, bool is_short_of_memory)
{
    uint64_t first = test_env("FK_SEED", 1), activated = 0, moved = 0, lost = 0;
    printf("seeds: ");
    for (uint64_t seed = first; seed < first + test_scaled(runs); seed++) {
        printf("%llu ", (unsigned long long)seed);
        history(seed, is_short_of_memory);
        activated += m.activated;
        moved += m.moved;
        lost += m.lost;
    }
    CHECK(activated > 0 && moved > 0 && lost > 0); /* else nothing was tried */
}

TEST(placement_histories_keep_every_promise)
{
    histories(200, false);
}

TEST(placement_histories_without_memory_keep_every_promise)
{
    histories(200, true);
}

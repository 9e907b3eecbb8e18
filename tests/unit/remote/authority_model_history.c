/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What does happen: a history of acts, each compared with what was foretold. */

#include <stdio.h>
#include <stdlib.h>

#include "unit/remote/authority_model_world.h"

world model;

bool authority_model_fail(const char *what, const peer *p)
{
    if (model.failure[0] == '\0') {
        snprintf(model.failure, sizeof(model.failure), "step %llu, peer %d: %s",
                 (unsigned long long)model.seen->steps, p != NULL ? (int)(p - model.peers) : -1,
                 what);
    }
    return false;
}

static uint64_t below(uint64_t n)
{
    return test_random_below(&model.random, n);
}

/* ---- the port ------------------------------------------------------------------------------ */

static void *model_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    if (new_size == 0) {
        block *b = (block *)ptr - 1;
        if (b->size != old_size) abort();
        b->next->prev = b->prev;
        b->prev->next = b->next;
        free(b);
        return NULL;
    }
    block *b = malloc(sizeof(block) + new_size);
    if (b == NULL) abort();
    *b = (block){ .next = model.blocks.next, .prev = &model.blocks, .size = new_size };
    b->next->prev = b;
    model.blocks.next = b;
    return b + 1;
}

static bool model_admit(void *ctx, const fk_site *site, size_t size)
{
    (void)ctx;
    (void)site;
    (void)size;
    if (!model.is_short) return true;
    model.refusals++;
    return false;
}

static void model_lock(void *ctx, fk_lock *lock)
{
    (void)ctx;
    (void)lock;
}

void authority_model_abandon(void)
{
    while (model.blocks.next != NULL && model.blocks.next != &model.blocks) {
        block *b = model.blocks.next;
        model.blocks.next = b->next;
        free(b);
    }
    model.blocks.next = model.blocks.prev = &model.blocks;
}

/* ---- what did happen ----------------------------------------------------------------------- */

/* The list must be the first of the queue, in order; they leave it. */
static bool leave_queue(peer *p, fk_envelopes list, uint32_t count, place to)
{
    fk_envelope *link = list.first;
    EXPECT(list.count == count, p);
    for (uint32_t i = 0; i < count; i++, link = link->next) {
        EXPECT(link != NULL, p);
        letter *l = FK_CONTAINER(link, letter, link);
        EXPECT(l == &model.letters[p->queue[i]], p);
        EXPECT(l->place == IN_QUEUE, p);
        l->place = to;
    }
    EXPECT(link == NULL, p);
    p->queue_len -= count;
    for (uint32_t i = 0; i < p->queue_len; i++) p->queue[i] = p->queue[i + count];
    model.queued -= count;
    return true;
}

static bool check_effects(peer *p, const fk_authority_effects *fx, const expected *e)
{
    EXPECT(fx->authority == p->real, p);
    EXPECT(fx->has_change == e->changes, p);
    if (e->changes) {
        EXPECT(fx->change.from == e->from, p);
        EXPECT(fx->change.to == p->state, p);
        EXPECT(fx->change.reason == e->reason, p);
        EXPECT(fx->change.at == model.now, p);
        model.seen->reasons[e->reason]++;
    }
    EXPECT(fx->must_close == e->closes, p);
    EXPECT(fx->is_new_peer == e->is_new_peer, p);
    EXPECT(fx->is_opened == e->opens, p);
    EXPECT(fx->must_connect == e->connects, p);
    EXPECT(fx->uid_forgiven == e->forgiven, p);
    EXPECT(fx->uid_forgotten == e->forgotten, p);
    model.seen->forgiven += e->forgiven != 0;
    model.seen->forgotten += e->forgotten != 0;
    model.seen->returned += e->refused;
    model.returned += e->refused;
    return leave_queue(p, fx->refused, e->refused, AT_HOME); /* one dead letter each */
}

static bool check_peer(peer *p)
{
    const fk_authority *a = p->real;
    EXPECT(a->state == p->state, p);
    EXPECT(a->is_open == p->open, p);
    EXPECT(a->is_draining == p->draining, p);
    EXPECT(a->is_mapped == p->mapped, p);
    EXPECT(a->is_attempting == p->attempting, p);
    EXPECT(a->uid == p->uid, p);
    EXPECT(a->attempt == p->attempt, p);
    EXPECT(a->incarnation == p->incarnation, p);
    EXPECT(a->attempt_at == p->attempt_at, p);
    EXPECT(a->give_up_at == p->give_up_at, p);
    EXPECT(a->lift_at == p->lift_at, p);
    EXPECT(a->deferred.count == p->queue_len, p);
    EXPECT(a->quarantined.count == p->mark_count, p);
    for (uint32_t i = 0; i < p->mark_count; i++) {
        EXPECT(a->quarantined.mark[i].uid == p->marks[i].uid, p);
    }
    EXPECT(p->queue_len <= model.config.deferred_max, p);
    return true;
}

static fk_time due_at(const peer *p)
{
    fk_time first = p->attempt_at < p->give_up_at ? p->attempt_at : p->give_up_at;
    return first < p->lift_at ? first : p->lift_at;
}

static bool check_all(void)
{
    fk_time first = FK_NEVER;
    if (model.is_blind) return true;
    for (int i = 0; i < PEERS; i++) {
        if (!check_peer(&model.peers[i])) return false;
        if (due_at(&model.peers[i]) < first) first = due_at(&model.peers[i]);
    }
    EXPECT(fk__authority_next(&model.table) == first, NULL);
    EXPECT(model.table.deferred_total == model.queued, NULL);
    EXPECT(model.queued <= model.config.deferred_total_max, NULL);
    fk__authority_table_check(&model.table);
    return true;
}

/* ---- acts ---------------------------------------------------------------------------------- */

static bool sent(peer *p, letter *l)
{
    EXPECT(l->serial > p->last_sent, p); /* in the order of acceptance */
    p->last_sent = l->serial;
    l->place = AT_HOME;
    model.seen->sent++;
    return true;
}

static bool act_send(peer *p)
{
    uint32_t index = (uint32_t)below(LETTERS);
    letter *l = &model.letters[index];
    bool pierces = below(10) == 0, is_deferred = true;
    if (l->place != AT_HOME) return true;
    l->serial = ++model.serial;
    fk_err err = fk__authority_send(&model.table, p->real, &l->link, pierces, &is_deferred);
    if (p->state == FK_ASSOCIATION_QUARANTINE) {
        bool passes = pierces && model.config.rules == FK_RULES_PEKKO;
        EXPECT(err == (passes ? FK_OK : FK_E_QUARANTINED), p);
        EXPECT(!is_deferred, p);
        model.seen->pierced += passes;
        model.seen->blocked += !passes;
        return true;
    }
    if (p->open && !p->draining) {
        EXPECT(err == FK_OK, p);
        EXPECT(!is_deferred, p);
        EXPECT(p->hand_len == 0, p); /* it would overtake */
        return sent(p, l);
    }
    if (p->queue_len == model.config.deferred_max ||
        model.queued == model.config.deferred_total_max) {
        EXPECT(err == FK_E_FULL, p);
        EXPECT(!is_deferred, p);
        model.seen->full++;
        return true;
    }
    EXPECT(err == FK_OK, p);
    EXPECT(is_deferred, p);
    l->place = IN_QUEUE;
    p->queue[p->queue_len++] = index;
    model.queued++;
    model.deferred++;
    model.seen->deferred++;
    return true;
}

static bool act_take(peer *p)
{
    fk_envelopes batch;
    uint32_t max = 1 + (uint32_t)below(4);
    for (uint32_t i = 0; i < p->hand_len; i++) { /* first the last batch is sent */
        if (!sent(p, &model.letters[p->hand[i]])) return false;
        model.seen->drained++;
        model.drained++;
    }
    p->hand_len = 0;
    if (below(4) == 0) return true;
    fk__authority_take(&model.table, p->real, max, &batch);
    uint32_t count = !p->open ? 0 : p->queue_len < max ? p->queue_len : max;
    for (uint32_t i = 0; i < count; i++) p->hand[i] = p->queue[i];
    p->hand_len = count;
    if (p->open && count == 0) p->draining = false;
    return leave_queue(p, batch, count, IN_HAND);
}

static bool act_event(peer *p)
{
    fk_authority_effects fx;
    expected e = { .result = FK_AUTHORITY_RESULT_DONE };
    static const fk_authority_reason WHY[] = { 0, FK_AUTHORITY_REASON_SILENT,
                                               FK_AUTHORITY_REASON_UNACKED };
    fk_authority_event event = { .kind = (fk_authority_event_kind)below(FK_AUTHORITY_EVENT_COUNT),
                                 .uid = below(2) == 0 ? p->uid : below(UIDS + 1),
                                 .attempt = p->attempt + (below(4) == 0 ? below(3) : 0),
                                 .force = below(2) == 0,
                                 .why = WHY[below(3)] };
    if (below(3) == 0) event.kind = FK_AUTHORITY_EVENT_HANDSHAKE;
    if (event.kind == FK_AUTHORITY_EVENT_FAILED && below(8) == 0) event.attempt = p->attempt - 1;
    model.is_short = below(20) == 0;
    model.refusals = 0;
    fk_authority_result result = fk__authority_step(&model.table, p->real, &event, model.now, &fx);
    model.is_short = false;
    if (!authority_model_event(p, &event, &e)) return false;
    EXPECT(result == e.result, p);
    model.seen->results[result]++;
    return check_effects(p, &fx, &e);
}

static bool act_map(peer *p)
{
    static const fk_str HOSTS[] = { { "", 0 }, { "10.0.0.1", 8 }, { "10.0.0.2", 8 } };
    fk_str before, after, host = HOSTS[below(3)];
    uint16_t port;
    fk__authority_target(p->real, &before, &port);
    char first = before.ptr[before.len - 1];
    model.is_short = below(10) == 0;
    model.refusals = 0;
    fk_err err = fk__authority_map(&model.table, p->real, host, 0, model.now);
    model.is_short = false;
    EXPECT(err == (model.refusals > 0 ? FK_E_NOMEM : FK_OK), p);
    if (err != FK_OK) return true;
    fk__authority_target(p->real, &after, &port);
    if (p->mapped && after.ptr[after.len - 1] == first) return true; /* as it was */
    return authority_model_mapped(p);
}

static bool create(peer *p, uint32_t number)
{
    fk_authority_effects fx;
    fk_authority_key name = { FK_STR("sys"), FK_STR("host"), (uint16_t)(number + 1) };
    EXPECT(fk__authority_get(&model.table, &name, model.now, &fx, &p->real) == FK_OK, p);
    EXPECT(fx.change.reason == FK_AUTHORITY_REASON_CREATED, p);
    model.seen->reasons[FK_AUTHORITY_REASON_CREATED]++;
    p->incarnation = 1;
    p->attempt_at = p->give_up_at = p->lift_at = FK_NEVER;
    return true;
}

/* It gives way to others, and somebody names it again. */
static bool act_crowd(peer *p)
{
    fk_authority_effects fx;
    expected e = { .result = FK_AUTHORITY_RESULT_DONE };
    bool is_spared = below(2) == 0;
    fk__authority_crowd_out(&model.table, p->real, is_spared, model.now, &fx);
    authority_model_crowd(p, is_spared, &e);
    if (!check_effects(p, &fx, &e) || !check_all()) return false;
    fk__authority_crowd_out(&model.table, p->real, is_spared, model.now, &fx);
    EXPECT(!fx.has_change, p); /* it is told of once */
    EXPECT(fk__authority_give_way(&model.table, p->real) == FK_OK, p);
    peer fresh = { .hand_len = p->hand_len, .last_sent = p->last_sent };
    memcpy(fresh.hand, p->hand, sizeof(fresh.hand));
    memcpy(fresh.buried, p->buried, sizeof(fresh.buried));
    *p = fresh;
    return create(p, (uint32_t)(p - model.peers));
}

static peer *peer_of(const fk_authority *a)
{
    for (int i = 0; i < PEERS; i++) {
        if (model.peers[i].real == a) return &model.peers[i];
    }
    return NULL;
}

static fk_time random_step(void)
{
    fk_time next = fk__authority_next(&model.table);
    switch (below(8)) {
    case 0: return 0;
    case 1: return (fk_time)below(FK_MILLIS(10));
    case 2: return (fk_time)below(FK_SECONDS(1));
    case 3: return (fk_time)below(FK_SECONDS(20));
    case 4: return below(20) == 0 ? (fk_time)below(3 * DAY) : 1;
    case 5:
        return next != FK_NEVER && next > model.now ? next - model.now - 1 : 0; /* just not due */
    default: return next != FK_NEVER && next > model.now ? next - model.now : 0;
    }
}

static bool act_time(void)
{
    fk_authority_effects fx;
    fk_time last = 0;
    model.now += random_step();
    for (int i = 0; i < 4 * PEERS; i++) {
        fk_time due = fk__authority_next(&model.table);
        bool is_due = fk__authority_tick(&model.table, model.now, &fx);
        EXPECT(is_due == (due <= model.now), NULL);
        if (!is_due) return true;
        EXPECT(due >= last, NULL);
        last = due;
        expected e = { .result = FK_AUTHORITY_RESULT_DONE };
        peer *p = peer_of(fx.authority);
        EXPECT(p != NULL, NULL);
        EXPECT(due_at(p) == due, p);
        if (!authority_model_tick(p, &e) || !check_effects(p, &fx, &e) || !check_all())
            return false;
    }
    return authority_model_fail("ticks do not end", NULL);
}

static bool act(void)
{
    peer *p = &model.peers[below(PEERS)];
    uint64_t choice = below(100);
    if (below(300) == 0) return act_crowd(p);
    if (choice < 40) return act_send(p);
    if (choice < 57) return act_take(p);
    if (choice < 74) return act_time();
    if (choice < 96) return act_event(p);
    return act_map(p);
}

/* ---- a history ----------------------------------------------------------------------------- */

static fk_authority_config random_config(void)
{
    bool is_pekko = below(4) == 0;
    return (fk_authority_config){
        .rules = is_pekko ? FK_RULES_PEKKO : FK_RULES_FRAKTOR,
        .deferred_max = 1 + (uint32_t)below(8),
        .deferred_total_max = 1 + (uint32_t)below(20),
        .uids_max = 1 + (uint32_t)below(MARKS - 2),
        .jitter_percent = 1 + (uint32_t)below(100),
        .quarantine = FK_SECONDS(1) + (fk_time)below(FK_SECONDS(9)),
        .quarantine_override = below(3) == 0 ? FK_SECONDS(1) : 0,
        .give_up_after = below(3) == 0 ? 0 : (fk_time)(1 + below(FK_SECONDS(20))),
        .backoff_min = (fk_time)(1 + below(FK_MILLIS(500))),
        .backoff_max = FK_MILLIS(500) + (fk_time)below(FK_SECONDS(5)),
        .ignore_new_uid = !is_pekko && below(4) == 0,
    };
}

static bool begin(uint64_t seed)
{
    static const fk_port PORT = { .size = sizeof(fk_port),
                                  .alloc = model_alloc,
                                  .admit = model_admit,
                                  .lock = model_lock,
                                  .unlock = model_lock };
    fk_hash_key key = { seed, ~seed };
    fk_authority_config config = random_config();
    fk__mem_init(&model.mem, &PORT, 0);
    EXPECT(fk__authority_configure(&config, &model.config) == FK_OK, NULL);
    EXPECT(fk__authority_table_init(&model.table, &model.mem, &config, &key, seed) == FK_OK, NULL);
    model.now = FK_SECONDS(1);
    model.duration =
        config.quarantine_override != 0 ? config.quarantine_override : config.quarantine;
    model.keep = 5 * DAY;
    for (int i = 0; i < PEERS; i++) {
        if (!create(&model.peers[i], (uint32_t)i)) return false;
    }
    return check_all();
}

/* Everything that was deferred comes back, once, and no memory stays. */
static bool finish(void)
{
    fk_envelopes left;
    uint32_t count = 0;
    fk__authority_table_fini(&model.table, &left);
    EXPECT(left.count == model.queued, NULL);
    for (fk_envelope *link = left.first; link != NULL && count <= left.count; count++) {
        letter *l = FK_CONTAINER(link, letter, link);
        EXPECT(l->place == IN_QUEUE, NULL);
        l->place = AT_HOME;
        link = link->next;
    }
    EXPECT(count == left.count, NULL);
    for (int i = 0; i < LETTERS; i++) EXPECT(model.letters[i].place != IN_QUEUE, NULL);
    uint64_t in_hand = 0;
    for (int i = 0; i < PEERS; i++) in_hand += model.peers[i].hand_len;
    EXPECT(model.deferred == model.drained + in_hand + model.returned + count, NULL);
    model.seen->left += count;
    EXPECT(model.blocks.next == &model.blocks, NULL);
    return true;
}

const char *authority_model_run(uint64_t seed, uint32_t steps, bool is_blind, model_seen *seen)
{
    authority_model_abandon();
    model = (world){ .random = { seed }, .is_blind = is_blind, .seen = seen };
    model.blocks.next = model.blocks.prev = &model.blocks;
    bool ok = begin(seed);
    for (uint32_t i = 0; i < steps && ok; i++) {
        seen->steps++;
        ok = act() && check_all();
    }
    if (ok) ok = finish();
    return ok ? NULL : model.failure;
}

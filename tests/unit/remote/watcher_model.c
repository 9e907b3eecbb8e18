/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/watcher_model.h"

#include <string.h>

enum {
    NODES = 4,
    NODES_MAX = 3, /* that may be watched at one time */
    ACTORS = 6,    /* here, and of each node */
    PAIRS = 200,
    ENDS = 4000,
    RECORDS_MOST = 256,
    SAMPLES = 20
};

/* Actors here are 1 to ACTORS, those of node n are (n + 1) * 100 + 1 to ACTORS. */
typedef struct pair {
    fk_bond_side side;
    uint32_t node;
    uint64_t watchee, watcher;
} pair;

typedef struct ended {
    pair pair;
    fk_bond_end end;
} ended;

/* What a node should be. */
typedef struct place {
    fk_watcher_node real;
    fk_time sample[SAMPLES], shadow_sample[SAMPLES];
    fk_detector shadow; /* told what the node's detector should be told */
    bool owes, was_late, is_silent;
    uint64_t uid, true_uid;
    fk_time heartbeat_at, first_at;
} place;

static struct {
    history h;
    fk_watcher watcher;
    fk_watcher_config config;
    fk_deadline *heap[NODES_MAX];
    fk_bond records[2][RECORDS_MOST];
    uint32_t buckets[2][16];
    uint32_t records_max, memory;
    fk_time now;
    uint64_t last_uid;
    place places[NODES];
    pair pairs[PAIRS];
    uint32_t pair_count;
    ended ends[ENDS];
    uint32_t end_count, end_taken;
} m;

watcher_seen watcher_model_seen;

/* ---- what should be ------------------------------------------------------------------------ */

static bool matches(const pair *p, fk_bond_side side, uint64_t watchee, uint64_t watcher)
{
    return p->side == side && p->watchee == watchee && (watcher == 0 || p->watcher == watcher);
}

/* Of a watchee, or with watcher of one pair. */
static uint32_t count_pairs(fk_bond_side side, uint64_t watchee, uint64_t watcher)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m.pair_count; i++) {
        count += matches(&m.pairs[i], side, watchee, watcher);
    }
    return count;
}

static uint32_t count_at(uint32_t node, fk_bond_side side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m.pair_count; i++) {
        count += m.pairs[i].node == node && m.pairs[i].side == side;
    }
    return count;
}

/* A record for each pair, for each watchee, and for each end that was not taken. */
static uint32_t count_records(void)
{
    uint32_t count = m.pair_count + m.end_count - m.end_taken;
    for (uint32_t i = 0; i < m.pair_count; i++) {
        uint32_t j = 0;
        while (!matches(&m.pairs[j], m.pairs[i].side, m.pairs[i].watchee, 0)) j++;
        count += j == i;
    }
    return count;
}

static void remove_at(uint32_t index)
{
    m.pair_count--;
    memmove(&m.pairs[index], &m.pairs[index + 1], (m.pair_count - index) * sizeof(pair));
}

static void end_at(uint32_t index, fk_bond_end end)
{
    m.ends[m.end_count++] = (ended){ m.pairs[index], end };
    remove_at(index);
}

static void end_watchee(fk_bond_side side, uint64_t watchee, fk_bond_end end)
{
    for (uint32_t i = 0; i < m.pair_count;) {
        if (matches(&m.pairs[i], side, watchee, 0))
            end_at(i, end);
        else
            i++;
    }
}

static void end_node(uint32_t node, fk_bond_side side, fk_bond_end end)
{
    for (uint32_t i = 0; i < m.pair_count;) {
        if (m.pairs[i].node == node && m.pairs[i].side == side)
            end_at(i, end);
        else
            i++;
    }
}

static void rest(uint32_t node)
{
    if (count_at(node, FK_BOND_OURS) > 0) return;
    m.places[node].heartbeat_at = m.places[node].first_at = FK_NEVER;
}

static fk_time due_at(const place *p)
{
    return p->heartbeat_at < p->first_at ? p->heartbeat_at : p->first_at;
}

/* ---- what is --------------------------------------------------------------------------------- */

static bool check_effects(const fk_watcher_effects *fx, const fk_watcher_effects *expected)
{
    EXPECT(&m.h, fx->node == expected->node);
    EXPECT(&m.h, fx->must_watch == expected->must_watch);
    EXPECT(&m.h, fx->must_unwatch == expected->must_unwatch);
    EXPECT(&m.h, fx->must_rewatch == expected->must_rewatch);
    EXPECT(&m.h, fx->must_heartbeat == expected->must_heartbeat);
    EXPECT(&m.h, fx->must_quarantine == expected->must_quarantine);
    EXPECT(&m.h, fx->uid == expected->uid);
    EXPECT(&m.h, fx->has_ended == (m.end_taken < m.end_count));
    return true;
}

/* Each watchee of the node once, in the order in which they were first watched. */
static bool check_rewatch(uint32_t node)
{
    uint32_t cursor = 0;
    for (uint32_t i = 0; i < m.pair_count; i++) {
        const pair *p = &m.pairs[i];
        uint32_t first = 0;
        if (p->node != node || p->side != FK_BOND_OURS) continue;
        while (!matches(&m.pairs[first], FK_BOND_OURS, p->watchee, 0)) first++;
        if (first != i) continue;
        EXPECT(&m.h, fk__watcher_watchee(&m.watcher, &m.places[node].real, &cursor) == p->watchee);
        EXPECT(&m.h, cursor != 0);
    }
    EXPECT(&m.h, fk__watcher_watchee(&m.watcher, &m.places[node].real, &cursor) == 0);
    watcher_model_seen.rewatches++;
    return true;
}

static bool check_all(void)
{
    fk_time first = FK_NEVER;
    for (uint32_t i = 0; i < NODES; i++) {
        if (due_at(&m.places[i]) < first) first = due_at(&m.places[i]);
        if (!m.h.is_blind) fk__watcher_node_check(&m.watcher, &m.places[i].real);
    }
    EXPECT(&m.h, fk__watcher_next(&m.watcher) == first);
    if (!m.h.is_blind) fk__watcher_check(&m.watcher);
    return true;
}

/* ---- acts ---------------------------------------------------------------------------------- */

static uint64_t actor_here(void)
{
    return 1 + history_below(&m.h, ACTORS);
}

static uint64_t actor_at(uint32_t node)
{
    return (node + 1) * 100 + 1 + history_below(&m.h, ACTORS);
}

/* What watching should say; on FK_OK the pair is there. */
static fk_err foretell_watch(const pair *p)
{
    uint32_t records = count_pairs(p->side, p->watchee, 0) == 0 ? 2 : 1;
    uint32_t watched = 0;
    for (uint32_t i = 0; i < NODES; i++) watched += count_at(i, FK_BOND_OURS) > 0;
    bool is_new_node = p->side == FK_BOND_OURS && count_at(p->node, FK_BOND_OURS) == 0;
    if (is_new_node && watched == NODES_MAX) return FK_E_LIMIT;
    if (count_pairs(p->side, p->watchee, p->watcher) > 0) return FK_OK;
    if (count_at(p->node, p->side) == m.config.bonds_max) return FK_E_LIMIT;
    if (count_records() + records > m.records_max - 1) return FK_E_FULL;
    m.pairs[m.pair_count++] = *p;
    return FK_OK;
}

static void note_watch(fk_err err)
{
    watcher_model_seen.watches += err == FK_OK;
    watcher_model_seen.limits += err == FK_E_LIMIT;
    watcher_model_seen.fulls += err == FK_E_FULL;
}

static bool act_watch(uint32_t node)
{
    fk_watcher_effects fx, expected = { .node = &m.places[node].real };
    place *p = &m.places[node];
    pair it = { FK_BOND_OURS, node, actor_at(node), actor_here() };
    bool is_first = count_pairs(FK_BOND_OURS, it.watchee, 0) == 0;
    bool is_new_node = count_at(node, FK_BOND_OURS) == 0;
    fk_err err = fk__watcher_watch(&m.watcher, &p->real, it.watchee, it.watcher, m.now, &fx);
    EXPECT(&m.h, err == foretell_watch(&it));
    note_watch(err);
    expected.must_watch = err == FK_OK && is_first;
    watcher_model_seen.shared += err == FK_OK && !is_first;
    if (err == FK_OK && is_new_node) {
        fk__detector_reset(&p->shadow);
        p->uid = 0;
        p->owes = p->was_late = false;
        p->heartbeat_at = m.now;
        p->first_at = FK_NEVER;
    }
    return check_effects(&fx, &expected);
}

static bool act_unwatch(uint32_t node)
{
    fk_watcher_effects fx, expected = { .node = NULL };
    uint64_t watchee = actor_at(node), watcher = actor_here();
    fk__watcher_unwatch(&m.watcher, watchee, watcher, &fx);
    for (uint32_t i = 0; i < m.pair_count; i++) {
        if (!matches(&m.pairs[i], FK_BOND_OURS, watchee, watcher)) continue;
        remove_at(i);
        expected.node = &m.places[node].real;
        expected.must_unwatch = count_pairs(FK_BOND_OURS, watchee, 0) == 0;
        watcher_model_seen.unwatches++;
        watcher_model_seen.last_unwatches += expected.must_unwatch;
        rest(node);
        break;
    }
    return check_effects(&fx, &expected);
}

/* Now and then a node speaks of another's actor. */
static bool act_terminated(uint32_t node)
{
    fk_watcher_effects fx, expected = { .node = &m.places[node].real };
    uint32_t of = history_chance(&m.h, 3) ? (uint32_t)history_below(&m.h, NODES) : node;
    uint64_t watchee = actor_at(of);
    fk__watcher_terminated(&m.watcher, &m.places[node].real, watchee, &fx);
    if (of == node) end_watchee(FK_BOND_OURS, watchee, FK_BOND_END_TERMINATED);
    rest(node);
    return check_effects(&fx, &expected);
}

static bool act_reply(uint32_t node)
{
    place *p = &m.places[node];
    fk_watcher_effects fx, expected = { .node = &p->real };
    uint64_t uid = history_chance(&m.h, 20) ? 0 : p->true_uid;
    fk__watcher_reply(&m.watcher, &p->real, uid, m.now, &fx);
    watcher_model_seen.replies++;
    if (uid == 0 || count_at(node, FK_BOND_OURS) == 0) return check_effects(&fx, &expected);
    if (p->uid != uid) {
        expected.must_rewatch = true;
        if (p->uid != 0) end_node(node, FK_BOND_THEIRS, FK_BOND_END_FORGOTTEN);
    }
    p->uid = uid;
    p->owes = p->was_late = false;
    p->first_at = FK_NEVER;
    fk__detector_heartbeat(&p->shadow, m.now);
    if (!check_effects(&fx, &expected)) return false;
    return !expected.must_rewatch || check_rewatch(node);
}

static bool act_watched(uint32_t node)
{
    pair it = { FK_BOND_THEIRS, node, actor_here(), actor_at(node) };
    fk_err err = fk__watcher_watched(&m.watcher, &m.places[node].real, it.watchee, it.watcher);
    EXPECT(&m.h, err == foretell_watch(&it));
    note_watch(err);
    return true;
}

static bool act_unwatched(uint32_t node)
{
    uint32_t of = history_chance(&m.h, 3) ? (uint32_t)history_below(&m.h, NODES) : node;
    uint64_t watchee = actor_here(), watcher = actor_at(of);
    fk__watcher_unwatched(&m.watcher, &m.places[node].real, watchee, watcher);
    for (uint32_t i = 0; i < m.pair_count && of == node; i++) {
        if (matches(&m.pairs[i], FK_BOND_THEIRS, watchee, watcher)) remove_at(i);
    }
    return true;
}

static bool act_stopped(void)
{
    fk_watcher_effects fx, expected = { .node = NULL };
    uint64_t watchee = actor_here();
    fk__watcher_stopped(&m.watcher, watchee, &fx);
    end_watchee(FK_BOND_THEIRS, watchee, FK_BOND_END_STOPPED);
    return check_effects(&fx, &expected);
}

static void lose(uint32_t node)
{
    end_node(node, FK_BOND_OURS, FK_BOND_END_LOST);
    end_node(node, FK_BOND_THEIRS, FK_BOND_END_FORGOTTEN);
    rest(node);
}

/* Restarted, quarantined, silent, or heard again. */
static bool act_fate(uint32_t node)
{
    place *p = &m.places[node];
    fk_watcher_effects fx, expected = { .node = &p->real };
    switch (history_below(&m.h, 5)) {
    case 0: p->is_silent = !p->is_silent; return true;
    case 1: p->true_uid = ++m.last_uid; return true; /* a reply will tell */
    case 2:
        p->true_uid = ++m.last_uid;
        fk__watcher_renewed(&m.watcher, &p->real, p->true_uid, &fx);
        end_node(node, FK_BOND_THEIRS, FK_BOND_END_FORGOTTEN);
        expected.must_rewatch = count_at(node, FK_BOND_OURS) > 0;
        if (expected.must_rewatch) p->uid = p->true_uid;
        break;
    case 3:
        if (!history_chance(&m.h, 5)) return true;
        fk__watcher_lose(&m.watcher, &p->real, &fx);
        lose(node);
        break;
    default: return true;
    }
    if (!check_effects(&fx, &expected)) return false;
    return !expected.must_rewatch || check_rewatch(node);
}

static bool act_take(void)
{
    fk_bond_ended out;
    for (uint64_t n = history_below(&m.h, 8); n > 0; n--) {
        bool has_any = fk__watcher_take(&m.watcher, &out);
        EXPECT(&m.h, has_any == (m.end_taken < m.end_count));
        if (!has_any) return true;
        const ended *e = &m.ends[m.end_taken++];
        EXPECT(&m.h, out.watchee == e->pair.watchee);
        EXPECT(&m.h, out.watcher == e->pair.watcher);
        EXPECT(&m.h, out.node == &m.places[e->pair.node].real.bonds);
        EXPECT(&m.h, out.end == e->end);
        watcher_model_seen.ends[out.end]++;
    }
    return true;
}

/* More memory, as the caller of a full table brings it. */
static bool act_move(void)
{
    uint32_t more = m.records_max + (uint32_t)history_below(&m.h, 20);
    if (more > RECORDS_MOST) return true;
    m.records_max = more;
    m.memory ^= 1;
    fk__bonds_move(&m.watcher.bonds, m.records[m.memory], more, m.buckets[m.memory],
                   history_chance(&m.h, 2) ? 16 : 4);
    watcher_model_seen.moves++;
    return true;
}

/* ---- time ---------------------------------------------------------------------------------- */

static void foretell_heartbeat(uint32_t node, fk_watcher_effects *expected)
{
    place *p = &m.places[node];
    bool is_late = m.now - p->heartbeat_at > m.config.heartbeat_every;
    bool is_skipped = p->owes && is_late && !p->was_late;
    if (p->owes) p->was_late = is_skipped;
    watcher_model_seen.skipped += is_skipped;
    if (p->owes && !is_skipped && !fk__detector_is_available(&p->shadow, m.now)) {
        expected->must_quarantine = true;
        expected->uid = p->uid;
        lose(node);
        watcher_model_seen.losses++;
        return;
    }
    expected->must_heartbeat = p->owes = true;
    p->heartbeat_at = m.now + m.config.heartbeat_every;
    if (!p->shadow.is_begun && p->first_at == FK_NEVER) {
        p->first_at = m.now + m.config.first_reply_after;
    }
    watcher_model_seen.heartbeats++;
}

static bool check_tick(const fk_watcher_effects *fx)
{
    fk_watcher_effects expected = { .node = fx->node };
    uint32_t node = 0;
    while (node < NODES && &m.places[node].real != fx->node) node++;
    EXPECT(&m.h, node < NODES);
    place *p = &m.places[node];
    EXPECT(&m.h, due_at(p) <= m.now);
    for (uint32_t i = 0; i < NODES; i++) EXPECT(&m.h, due_at(&m.places[i]) >= due_at(p));
    if (p->first_at <= m.now) {
        p->first_at = FK_NEVER;
        fk__detector_heartbeat(&p->shadow, m.now);
    }
    if (p->heartbeat_at <= m.now) foretell_heartbeat(node, &expected);
    if (!check_effects(fx, &expected)) return false;
    if (expected.must_heartbeat && !p->is_silent) return act_reply(node);
    return true;
}

static bool act_time(void)
{
    fk_watcher_effects fx;
    fk_time next = fk__watcher_next(&m.watcher);
    fk_time step = (fk_time)history_below(&m.h, FK_MILLIS(900));
    if (next != FK_NEVER && history_chance(&m.h, 2)) step = next > m.now ? next - m.now : 0;
    if (history_chance(&m.h, 12)) step = (fk_time)history_below(&m.h, FK_SECONDS(30));
    m.now += step;
    for (int i = 0; i < 4 * NODES; i++) {
        bool is_due = fk__watcher_next(&m.watcher) <= m.now;
        EXPECT(&m.h, fk__watcher_tick(&m.watcher, m.now, &fx) == is_due);
        if (!is_due) return true;
        if (!check_tick(&fx)) return false;
    }
    return history_fail(&m.h, "ticks do not end");
}

/* ---- a history ----------------------------------------------------------------------------- */

static bool act(void)
{
    uint32_t node = (uint32_t)history_below(&m.h, NODES);
    uint64_t choice = history_below(&m.h, 100);
    if (choice < 22) return act_watch(node);
    if (choice < 29) return act_unwatch(node);
    if (choice < 32) return act_terminated(node);
    if (choice < 34) return act_reply(node);
    if (choice < 44) return act_watched(node);
    if (choice < 48) return act_unwatched(node);
    if (choice < 50) return act_stopped();
    if (choice < 54) return act_fate(node);
    if (choice < 64) return act_take();
    if (choice < 65) return act_move();
    return act_time();
}

static bool begin(void)
{
    m.now = FK_SECONDS(100);
    fk_watcher_config config = {
        .bonds_max = 1 + (uint32_t)history_below(&m.h, 20),
        .first_reply_after = FK_MILLIS(500 + history_below(&m.h, 1500)),
        .detector = { .samples_max = SAMPLES, .pause = FK_MILLIS(1 + history_below(&m.h, 6000)) },
    };
    m.records_max = 4 + (uint32_t)history_below(&m.h, 60);
    EXPECT(&m.h, fk__watcher_init(&m.watcher, &config, m.heap, NODES_MAX) == FK_OK);
    fk__bonds_init(&m.watcher.bonds, m.records[0], m.records_max, m.buckets[0], 8,
                   m.h.random.state);
    m.config = m.watcher.config;
    for (uint32_t i = 0; i < NODES; i++) {
        place *p = &m.places[i];
        fk__watcher_node_init(&m.watcher, &p->real, p->sample);
        fk__detector_init(&p->shadow, &m.config.detector, p->shadow_sample);
        p->heartbeat_at = p->first_at = FK_NEVER;
        p->true_uid = ++m.last_uid;
    }
    return true;
}

const char *watcher_model_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    memset(&m, 0, sizeof(m));
    history_begin(&m.h, seed, is_blind);
    bool ok = begin();
    for (m.h.step = 0; m.h.step < steps && ok; m.h.step++) ok = act() && check_all();
    return ok ? NULL : m.h.failure;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A node is watched while there is a bond of ours with it, and only then does it have a heartbeat, a
 * detector that has heard of it, and a uid: all of that begins with the first bond and ends with the
 * last. So there is no state of its own for a node that is lost.
 */

#include "remote/watcher.h"

#include "base/safeguard.h"

enum { WATCHER_BONDS_DEFAULT = 10000 };

fk_err fk__watcher_init(fk_watcher *watcher, const fk_watcher_config *config, fk_deadline **heap,
                        uint32_t nodes_max)
{
    fk_watcher_config c = config != NULL ? *config : (fk_watcher_config){ 0 };
    if (c.bonds_max == 0) c.bonds_max = WATCHER_BONDS_DEFAULT;
    if (c.heartbeat_every == 0) c.heartbeat_every = FK_SECONDS(1);
    if (c.first_reply_after == 0) c.first_reply_after = FK_SECONDS(1);
    if (c.heartbeat_every < 0 || c.first_reply_after < 0) return FK_E_INVALID;
    FK_TRY(fk__detector_configure(&c.detector, &c.detector));
    *watcher = (fk_watcher){ .config = c, .deadlines = { heap, 0, nodes_max } };
    return FK_OK;
}

void fk__watcher_node_init(fk_watcher *watcher, fk_watcher_node *node, fk_time *sample)
{
    *node = (fk_watcher_node){ .heartbeat_at = FK_NEVER,
                               .first_at = FK_NEVER,
                               .deadline = FK_DEADLINE_INIT };
    fk__detector_init(&node->detector, &watcher->config.detector, sample);
}

/* ---- being watched ------------------------------------------------------------------------- */

static bool watcher_is_watched(const fk_watcher_node *node)
{
    return node->bonds.list[FK_BOND_OURS].count != 0;
}

static fk_watcher_node *watcher_node_of(fk_bond_node *bonds)
{
    return FK_CONTAINER(bonds, fk_watcher_node, bonds);
}

static void watcher_settle(fk_watcher *w, fk_watcher_node *node)
{
    fk_time first = node->heartbeat_at < node->first_at ? node->heartbeat_at : node->first_at;
    fk__deadline_set(&w->deadlines, &node->deadline, first);
}

static void watcher_begin(fk_watcher *w, fk_watcher_node *node, fk_time now)
{
    fk__detector_reset(&node->detector);
    node->uid = 0;
    node->is_owed = node->was_late = false;
    node->heartbeat_at = now;
    node->first_at = FK_NEVER;
    watcher_settle(w, node);
}

/* After bonds of ours may have gone. */
static void watcher_rest(fk_watcher *w, fk_watcher_node *node)
{
    if (watcher_is_watched(node)) return;
    node->heartbeat_at = node->first_at = FK_NEVER;
    watcher_settle(w, node);
}

static void watcher_effects_init(const fk_watcher *w, fk_watcher_node *node, fk_watcher_effects *fx)
{
    *fx = (fk_watcher_effects){ .node = node, .has_ended = w->bonds.ended_first != 0 };
}

/* Whether there is room for one more; the bond itself may be there already. */
static fk_err watcher_tie(fk_watcher *w, fk_bond_side side, fk_watcher_node *node, uint64_t watchee,
                          uint64_t who, bool *is_first)
{
    *is_first = false;
    if (fk__bonds_find(&w->bonds, side, watchee, who) != 0) return FK_OK;
    if (node->bonds.list[side].count >= w->config.bonds_max && FK_SAFEGUARD(BONDS_BOUND)) {
        return FK_E_LIMIT;
    }
    return fk__bonds_add(&w->bonds, side, &node->bonds, watchee, who, is_first);
}

/* ---- actors here watch actors of a node ----------------------------------------------------- */

fk_err fk__watcher_watch(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee, uint64_t who,
                         fk_time now, fk_watcher_effects *effects)
{
    bool was_watched = watcher_is_watched(node), is_first;
    watcher_effects_init(watcher, node, effects);
    if (!was_watched && watcher->deadlines.count == watcher->deadlines.capacity) return FK_E_LIMIT;
    FK_TRY(watcher_tie(watcher, FK_BOND_OURS, node, watchee, who, &is_first));
    effects->must_watch = is_first || !FK_SAFEGUARD(WATCH_SHARED);
    if (!was_watched) watcher_begin(watcher, node, now);
    return FK_OK;
}

void fk__watcher_unwatch(fk_watcher *watcher, uint64_t watchee, uint64_t who,
                         fk_watcher_effects *effects)
{
    uint32_t index = fk__bonds_find(&watcher->bonds, FK_BOND_OURS, watchee, who);
    watcher_effects_init(watcher, NULL, effects);
    if (index == 0) return;
    effects->node = watcher_node_of(watcher->bonds.bond[index].node);
    effects->must_unwatch = fk__bonds_remove(&watcher->bonds, index) || !FK_SAFEGUARD(WATCH_SHARED);
    watcher_rest(watcher, effects->node);
}

void fk__watcher_terminated(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee,
                            fk_watcher_effects *effects)
{
    uint32_t head = fk__bonds_find(&watcher->bonds, FK_BOND_OURS, watchee, 0);
    if (head != 0) {
        const fk_bond *first = &watcher->bonds.bond[watcher->bonds.bond[head].next];
        if (first->node == &node->bonds || !FK_SAFEGUARD(NOTICE_OWN))
            fk__bonds_end_watchee(&watcher->bonds, head, FK_BOND_END_TERMINATED);
    }
    watcher_rest(watcher, node);
    watcher_effects_init(watcher, node, effects);
}

/* The old system is gone, and all its actors with it: whoever of them watched here does not wait
 * for an answer. What is watched there is asked for again. */
static void watcher_renew(fk_watcher *w, fk_watcher_node *node, uint64_t uid, bool is_known,
                          fk_watcher_effects *fx)
{
    if (is_known && FK_SAFEGUARD(WATCHERS_FORGOTTEN)) {
        fk__bonds_end_node(&w->bonds, &node->bonds, FK_BOND_THEIRS, FK_BOND_END_FORGOTTEN);
    }
    watcher_effects_init(w, node, fx);
    if (!watcher_is_watched(node)) return;
    fx->must_rewatch = FK_SAFEGUARD(REWATCH);
    node->uid = uid;
}

void fk__watcher_reply(fk_watcher *watcher, fk_watcher_node *node, uint64_t uid, fk_time now,
                       fk_watcher_effects *effects)
{
    watcher_effects_init(watcher, node, effects);
    if (uid == 0 || !watcher_is_watched(node)) return;
    /* Also with the first reply: the Watch may have gone to a system that is no more. */
    if (uid != node->uid) watcher_renew(watcher, node, uid, node->uid != 0, effects);
    fk__detector_heartbeat(&node->detector, now);
    node->is_owed = node->was_late = false;
    node->first_at = FK_NEVER;
    watcher_settle(watcher, node);
}

/* ---- actors of a node watch actors here ----------------------------------------------------- */

fk_err fk__watcher_watched(fk_watcher *watcher, fk_watcher_node *node, uint64_t watchee,
                           uint64_t who)
{
    bool is_first;
    return watcher_tie(watcher, FK_BOND_THEIRS, node, watchee, who, &is_first);
}

void fk__watcher_unwatched(fk_watcher *watcher, const fk_watcher_node *node, uint64_t watchee,
                           uint64_t who)
{
    uint32_t index = fk__bonds_find(&watcher->bonds, FK_BOND_THEIRS, watchee, who);
    if (index == 0 || watcher->bonds.bond[index].node != &node->bonds) return;
    fk__bonds_remove(&watcher->bonds, index);
}

void fk__watcher_stopped(fk_watcher *watcher, uint64_t watchee, fk_watcher_effects *effects)
{
    uint32_t head = fk__bonds_find(&watcher->bonds, FK_BOND_THEIRS, watchee, 0);
    if (head != 0) fk__bonds_end_watchee(&watcher->bonds, head, FK_BOND_END_STOPPED);
    watcher_effects_init(watcher, NULL, effects);
}

/* ---- the node as a whole -------------------------------------------------------------------- */

void fk__watcher_renewed(fk_watcher *watcher, fk_watcher_node *node, uint64_t uid,
                         fk_watcher_effects *effects)
{
    watcher_renew(watcher, node, uid, true, effects);
}

void fk__watcher_lose(fk_watcher *watcher, fk_watcher_node *node, fk_watcher_effects *effects)
{
    fk_bonds *bonds = &watcher->bonds;
    fk__bonds_end_node(bonds, &node->bonds, FK_BOND_OURS, FK_BOND_END_LOST);
    if (FK_SAFEGUARD(WATCHERS_FORGOTTEN)) {
        fk__bonds_end_node(bonds, &node->bonds, FK_BOND_THEIRS, FK_BOND_END_FORGOTTEN);
    }
    watcher_rest(watcher, node);
    watcher_effects_init(watcher, node, effects);
}

uint64_t fk__watcher_watchee(const fk_watcher *watcher, const fk_watcher_node *node,
                             uint32_t *cursor)
{
    const fk_bond *bond = watcher->bonds.bond;
    uint32_t i = *cursor == 0 ? node->bonds.list[FK_BOND_OURS].first : bond[*cursor].node_next;
    /* For its watchee stands the first bond of the ring, which the head goes before: that has no
     * watcher. */
    while (i != 0 && bond[bond[i].prev].watcher != 0) i = bond[i].node_next;
    *cursor = i;
    return i != 0 ? bond[i].watchee : 0;
}

bool fk__watcher_take(fk_watcher *watcher, fk_bond_ended *out)
{
    return fk__bonds_take(&watcher->bonds, out);
}

/* ---- time ---------------------------------------------------------------------------------- */

fk_time fk__watcher_next(const fk_watcher *watcher)
{
    const fk_deadline *first = fk__deadlines_first(&watcher->deadlines);
    return first != NULL ? first->at : FK_NEVER;
}

/* Who has answered every heartbeat is not to blame for a silence: it is we who were not there to
 * ask. And when we come late by more than a heartbeat, replies may lie unread, which are read before
 * the next one. But not twice in a row, or a machine that is always late would never notice
 * anybody's end. */
static bool watcher_may_judge(const fk_watcher *w, fk_watcher_node *node, fk_time now)
{
    bool is_late = now - node->heartbeat_at > w->config.heartbeat_every;
    if (!FK_SAFEGUARD(LATE_TICK)) return true;
    if (!node->is_owed) return false;
    node->was_late = is_late && !node->was_late;
    return !node->was_late;
}

static void watcher_heartbeat(fk_watcher *w, fk_watcher_node *node, fk_time now,
                              fk_watcher_effects *fx)
{
    if (watcher_may_judge(w, node, now) && !fk__detector_is_available(&node->detector, now)) {
        uint64_t uid = node->uid;
        fk__watcher_lose(w, node, fx);
        fx->must_quarantine = true;
        fx->uid = uid;
        return;
    }
    fx->must_heartbeat = node->is_owed = true;
    node->heartbeat_at = fk__time_add(now, w->config.heartbeat_every);
    if (!node->detector.is_begun && node->first_at == FK_NEVER) {
        node->first_at = fk__time_add(now, w->config.first_reply_after);
    }
}

bool fk__watcher_tick(fk_watcher *watcher, fk_time now, fk_watcher_effects *effects)
{
    fk_deadline *first = fk__deadlines_first(&watcher->deadlines);
    watcher_effects_init(watcher, NULL, effects);
    if (first == NULL || first->at > now) return false;
    fk_watcher_node *node = FK_CONTAINER(first, fk_watcher_node, deadline);
    effects->node = node;
    /* Who never answers at all has never been heard of, and would never be missed: the silence
     * begins when the first reply should have come. */
    if (node->first_at <= now) {
        node->first_at = FK_NEVER;
        if (FK_SAFEGUARD(FIRST_REPLY)) fk__detector_heartbeat(&node->detector, now);
    }
    if (node->heartbeat_at <= now) watcher_heartbeat(watcher, node, now, effects);
    watcher_settle(watcher, node);
    return true;
}

/* ---- invariants ---------------------------------------------------------------------------- */

void fk__watcher_check(const fk_watcher *watcher)
{
    fk__bonds_check(&watcher->bonds);
    fk__deadlines_check(&watcher->deadlines);
}

void fk__watcher_node_check(const fk_watcher *watcher, const fk_watcher_node *node)
{
    const fk_bond_list *list = node->bonds.list;
    fk__bonds_check_node(&watcher->bonds, &node->bonds);
    FK_ASSERT(list[FK_BOND_OURS].count <= watcher->config.bonds_max);
    FK_ASSERT(list[FK_BOND_THEIRS].count <= watcher->config.bonds_max);
    FK_ASSERT(watcher_is_watched(node) == (node->heartbeat_at != FK_NEVER));
    FK_ASSERT(node->first_at == FK_NEVER || !node->detector.is_begun);
    FK_ASSERT(node->deadline.at ==
              (node->heartbeat_at < node->first_at ? node->heartbeat_at : node->first_at));
}

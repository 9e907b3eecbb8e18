/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The table of authorities is full of systems that somebody wants or counts on, and another one comes. If
 * there is one that is out of reach, it gives way: whoever may fill the table, be it by shaking hands
 * under thousands of names, cannot keep others out.
 *
 * First those that were on their way out; then those that no actor here is at; in each case the one that
 * is out of reach for the longest time. It is quarantined, so that whatever waits for it or watches it
 * comes to its end as it always does (put_out() in driver.c), and then forgotten. Watchers hear of it by
 * their own threads; until they have, its references must stay, and so must it.
 *
 * A system that numbered messages were exchanged with has been promised what it will not get any more.
 * Its uid stays out (remote/tombs.h); if it comes back it is told so.
 */

#include "remote/office.h"

enum {
    CROWD_TRIES = 4,    /* that many are asked to leave for one newcomer */
    EVICT_AT_ONCE = 256 /* references, with the lock held */
};

/* Under the lock, after fk__guests_mark(). It is connected with us, as far as anybody can see. */
static bool is_reached(const fk_driver *driver, const fk_line *line)
{
    if (line == NULL) return false;
    if (line->retire_mark == driver->retire_round) return true;
    return line->stream[FK_STREAM_CONTROL].handshake.phase == FK_HANDSHAKE_ANSWERED;
}

static bool may_give_way(const fk_driver *driver, const fk_authority *a)
{
    return !a->is_kept && a->holds == 0 && !is_reached(driver, a->user);
}

/* Under the lock: who goes first. */
static uint32_t crowd_rank(const fk_authority *a)
{
    const fk_line *line = a->user;
    if (a->is_crowded) return 0;
    /* Nothing would be left of it: there is no uid to remember. */
    if (a->state == FK_ASSOCIATION_QUARANTINE && a->uid == 0) return 2;
    if (line == NULL) return 1;
    bool is_watched =
        line->watching.bonds.list[FK_BOND_OURS].count != 0 || line->news_first != NULL;
    bool is_sent_to = a->is_named && (a->deferred.count != 0 || fk__line_has_letters(line));
    return is_watched || is_sent_to ? 2 : 1;
}

static bool is_before(const fk_authority *a, const fk_authority *b)
{
    uint32_t rank = crowd_rank(a), other = crowd_rank(b);
    return rank != other ? rank < other : a->state_at < b->state_at;
}

/* Under the lock. */
static void crowd_search(fk_driver *driver)
{
    const fk_authority_table *table = &driver->remote->table;
    uint32_t count = 0;
    for (fk_authority *a = NULL; (a = fk__authority_after(table, a)) != NULL;) {
        uint32_t at = count;
        if (!may_give_way(driver, a)) continue;
        while (at > 0 && is_before(a, driver->crowd[at - 1])) at--;
        if (at == FK_CROWD) continue;
        if (count < FK_CROWD) count++;
        for (uint32_t i = count - 1; i > at; i--) driver->crowd[i] = driver->crowd[i - 1];
        driver->crowd[at] = a;
    }
    for (uint32_t i = count; i < FK_CROWD; i++) driver->crowd[i] = NULL;
    driver->crowd_next = 0;
}

/* Who is next; NULL: nobody. */
static fk_authority *crowd_take(fk_driver *driver)
{
    fk_authority *a = NULL;
    fk__remote_lock(driver->remote);
    bool is_used_up = driver->crowd_next == FK_CROWD || driver->crowd[driver->crowd_next] == NULL;
    if (is_used_up) crowd_search(driver);
    while (a == NULL && driver->crowd_next < FK_CROWD &&
           driver->crowd[driver->crowd_next] != NULL) {
        a = driver->crowd[driver->crowd_next++];
        if (!may_give_way(driver, a)) a = NULL; /* not any more */
    }
    fk__remote_unlock(driver->remote);
    return a;
}

static void streams_close(fk_driver *driver, fk_line *line)
{
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        fk__stream_close(driver, &line->stream[kind], false);
    }
}

/* What waits for it is refused, who watches it is told. */
static void put_away(fk_driver *driver, fk_authority *a)
{
    fk_remote *remote = driver->remote;
    fk_authority_effects effects;
    fk__remote_lock(remote);
    fk_line *line = a->user;
    bool is_spared = line == NULL || !fk__line_counts_on_us(line);
    fk__authority_crowd_out(&remote->table, a, is_spared, driver->now, &effects);
    if (line != NULL) fk__line_follow(line);
    fk__remote_unlock(remote);
    if (line != NULL) streams_close(driver, line);
    fk__remote_act(remote, driver->local, &effects);
    driver->next_at = 0; /* the table has other deadlines now */
    if (line == NULL) return;
    fk__driver_settle(driver, line);
    fk__line_blunt(driver, line); /* by Pekko's rules selections went on */
    streams_close(driver, line);
}

/* Under the lock: nobody is at it any more, nor just about to be. */
static bool is_over(const fk_line *line)
{
    const fk_bond_list *bonds = line->watching.bonds.list;
    if (fk__word_load(&line->gate, FK_ACQUIRE) != 0 || fk__line_has_letters(line)) return false;
    if (line->news_first != NULL || line->outbox.unacked.count != 0) return false;
    return bonds[FK_BOND_OURS].count == 0 && bonds[FK_BOND_THEIRS].count == 0;
}

static bool give_way(fk_driver *driver, fk_authority *a)
{
    fk_remote *remote = driver->remote;
    fk_err err = FK_E_FULL;
    while (err == FK_E_FULL) {
        fk__remote_lock(remote);
        fk_line *line = a->user;
        bool is_possible = a->holds == 0 && (line == NULL || is_over(line));
        err = is_possible ? fk__proxies_evict(&remote->proxies, a, EVICT_AT_ONCE) : FK_E_STATE;
        if (err == FK_OK) {
            if (line != NULL) fk__line_retire(driver, line);
            err = fk__authority_give_way(&remote->table, a);
            FK_ASSERT(err == FK_OK);
        }
        fk__remote_unlock(remote);
    }
    return err == FK_OK;
}

bool fk__crowd_make_room(fk_driver *driver)
{
    /* An end that could not be told names its node still. */
    if (driver->has_unended) return false;
    fk__guests_mark(driver);
    for (uint32_t i = 0; i < CROWD_TRIES; i++) {
        fk_authority *a = crowd_take(driver);
        if (a == NULL) return false;
        put_away(driver, a);
        if (!driver->has_unended && give_way(driver, a)) return true;
    }
    driver->crowd_next = FK_CROWD; /* those that are leaving may be gone when we look again */
    return false;
}

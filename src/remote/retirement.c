/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Systems come and go, each at another address: whoever asks from the command line is one. One that
 * nobody here has a reason to be connected with is not tried again when its connection is gone
 * (fk__line_is_wanted, fk__authority_rest), and after a while it is forgotten: its references give way,
 * its line is the next one's. When the table of authorities is nearly full, that while is not waited
 * for.
 *
 * What must outlast a connection keeps a system from being forgotten. Numbers of system messages do,
 * too, as long as the system may live: it would go on counting where we begin anew, and what we send
 * would be taken for what it has had. So who has exchanged such messages and did not say that it
 * terminates is tried, until it answers or is given up and quarantined.
 */

#include "remote/office.h"

enum {
    RETIRE_AT_ONCE = 64,       /* are found in one search */
    RETIRE_ROOM = 8,           /* one part in so many of the table is kept free */
    RETIRE_CROWDED_MS = 100,   /* between searches in vain */
    CROWD_PART = 64,           /* when somebody is refused, so many places are made, ... */
    CROWD_MOST = 16,           /* ... but not more than these */
    RETIRE_SEARCH_S = 10,      /* between searches, at least */
    RETIRE_AFTER_S = 60,       /* without references, or after it has said that it terminates */
    RETIRE_REFS_AFTER_S = 3600 /* while actors here may remember references, which become stale */
};

typedef struct fk_retirees {
    fk_authority *who[RETIRE_AT_ONCE]; /* oldest first */
    uint32_t count;
} fk_retirees;

bool fk__line_has_letters(const fk_line *line)
{
    bool has =
        fk__word_load(&line->gate, FK_RELAXED) >= FK_LINE_ONE || line->piercing.first != NULL;
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        has = has || line->stream[kind].ready.first != NULL;
    }
    return has;
}

/* It lives, for all we know, and has exchanged numbered messages with us. */
bool fk__line_counts_on_us(const fk_line *line)
{
    bool has_numbers = line->outbox.seq != 0 || line->is_counting;
    /* One that is quarantined does not come back with the same numbers. */
    return has_numbers && !line->is_gone && !fk__authority_refuses(line->authority, line->uid);
}

bool fk__line_is_wanted(const fk_line *line)
{
    const fk_authority *authority = line->authority;
    const fk_bond_list *bonds = line->watching.bonds.list;
    if (authority->deferred.count != 0 || fk__line_has_letters(line)) return true;
    if (authority->proxies_staying != 0 || authority->is_kept) return true;
    if (line->outbox.unacked.count != 0 || line->news_first != NULL) return true;
    if (bonds[FK_BOND_OURS].count != 0 || bonds[FK_BOND_THEIRS].count != 0) return true;
    return fk__line_counts_on_us(line);
}

bool fk__line_is_ours(const fk_line *line)
{
    const fk_authority *authority = line->authority;
    bool is_watched = line->watching.bonds.list[FK_BOND_OURS].count != 0;
    bool is_sent_to =
        authority->is_named && (authority->deferred.count != 0 || fk__line_has_letters(line));
    return authority->proxies_held != 0 || authority->is_kept || is_watched || is_sent_to;
}

static bool line_is_idle(const fk_driver *driver, const fk_line *line)
{
    /* Exactly: nobody is just putting a letter on it, and it is shut. */
    if (fk__word_load(&line->gate, FK_ACQUIRE) != 0) return false;
    if (line->retire_mark == driver->retire_round) return false;
    for (uint32_t kind = FK_STREAM_CONTROL; kind < FK_STREAM_COUNT; kind++) {
        if (line->stream[kind].conn != 0) return false;
    }
    return !fk__line_is_wanted(line);
}

static fk_time retire_time(const fk_authority *a)
{
    const fk_line *line = a->user;
    bool is_gone = a->proxies == NULL || (line != NULL && line->is_gone);
    return fk__time_add(a->state_at, FK_SECONDS(is_gone ? RETIRE_AFTER_S : RETIRE_REFS_AFTER_S));
}

/* Under the lock, and nothing that is looked at here can change but by it or by us. */
static bool may_retire(const fk_driver *driver, const fk_authority *a)
{
    const fk_line *line = a->user;
    if (!fk__authority_is_forgettable(&driver->remote->table, a, driver->now)) return false;
    if (a->proxies_staying != 0) return false;
    return line == NULL || line_is_idle(driver, line);
}

static void retirees_put(fk_retirees *list, fk_authority *a)
{
    uint32_t at = list->count;
    while (at > 0 && list->who[at - 1]->state_at > a->state_at) at--;
    if (at == RETIRE_AT_ONCE) return;
    if (list->count < RETIRE_AT_ONCE) list->count++;
    for (uint32_t i = list->count - 1; i > at; i--) list->who[i] = list->who[i - 1];
    list->who[at] = a;
}

static void retire(fk_driver *driver, fk_authority *a)
{
    fk_remote *remote = driver->remote;
    if (!fk__proxies_retire(&remote->proxies, a)) return; /* one stays: so does the system */
    if (a->user != NULL) fk__line_retire(driver, a->user);
    fk_err err = fk__authority_forget(&remote->table, a, driver->now);
    FK_ASSERT(err == FK_OK);
    driver->crowd_next = FK_CROWD; /* it may have been one of these */
}

/* Who is still connected to us is not forgotten: its next frame would be a stranger's. */
void fk__guests_mark(fk_driver *driver)
{
    driver->retire_round++;
    for (const fk_guest *guest = driver->guests; guest != NULL; guest = guest->next) {
        if (guest->origin == NULL) continue;
        FK_CONTAINER(guest->origin->peer, fk_line, peer)->retire_mark = driver->retire_round;
    }
}

/* One search. is_crowded: of those whose time has not come, too. *next: when theirs comes. */
static uint32_t retire_search(fk_driver *driver, bool is_crowded, fk_time *next)
{
    fk_remote *remote = driver->remote;
    fk_retirees found = { .count = 0 };
    fk_authority *a = NULL;
    *next = FK_NEVER;
    fk__guests_mark(driver);
    fk__remote_lock(remote);
    /* An end that could not be told names its node still. */
    bool is_possible = !driver->has_unended;
    while (is_possible && (a = fk__authority_after(&remote->table, a)) != NULL) {
        fk_time at = retire_time(a);
        if (!may_retire(driver, a)) continue;
        if (is_crowded || at <= driver->now)
            retirees_put(&found, a);
        else if (at < *next)
            *next = at;
        /* If it comes back, both sides begin with no tables. */
        if (a->user != NULL) fk__tables_free(driver, a->user);
    }
    uint32_t before = remote->table.count;
    for (uint32_t i = 0; i < found.count; i++) retire(driver, found.who[i]);
    uint32_t gone = before - remote->table.count;
    fk__remote_unlock(remote);
    return gone;
}

bool fk__retire_some(fk_driver *driver)
{
    fk_time next;
    if (driver->now < driver->retire_again_at) return false;
    if (retire_search(driver, true, &next) != 0) return true;
    driver->retire_again_at = fk__time_add(driver->now, FK_MILLIS(RETIRE_CROWDED_MS));
    return false;
}

bool fk__driver_is_crowded(const fk_driver *driver)
{
    const fk_authority_table *table = &driver->remote->table;
    uint32_t max = table->config.authorities_max;
    return table->count > max - max / RETIRE_ROOM;
}

static bool is_crowded(fk_driver *driver)
{
    fk__remote_lock(driver->remote);
    bool crowded = fk__driver_is_crowded(driver);
    fk__remote_unlock(driver->remote);
    return crowded;
}

/* Somebody here wants to know one more, and may want to know another one soon. */
static void places_make(fk_driver *driver)
{
    const fk_authority_table *table = &driver->remote->table;
    uint32_t max = table->config.authorities_max, places = max / CROWD_PART;
    for (uint32_t i = 0; i <= places && i < CROWD_MOST; i++) {
        fk__remote_lock(driver->remote);
        bool has_places = table->count < max - places;
        fk__remote_unlock(driver->remote);
        if (has_places || !(fk__retire_some(driver) || fk__crowd_make_room(driver))) return;
    }
}

void fk__retire_tick(fk_driver *driver)
{
    while (is_crowded(driver) && fk__retire_some(driver)) {
    }
    if (fk__half_load(&driver->is_full, FK_RELAXED) != 0) {
        fk__half_swap(&driver->is_full, 0, FK_ACQ_REL);
        places_make(driver);
    }
    fk__remote_lock(driver->remote);
    bool is_empty = driver->remote->table.count == 0;
    fk__remote_unlock(driver->remote);
    if (is_empty) driver->retire_at = FK_NEVER;
    if (is_empty) return;
    fk_time soon = fk__time_add(driver->now, FK_SECONDS(RETIRE_SEARCH_S));
    fk_time late = fk__time_add(driver->now, FK_SECONDS(RETIRE_AFTER_S));
    if (driver->retire_at == FK_NEVER) driver->retire_at = late;
    if (driver->retire_at <= driver->now) {
        fk_time next;
        uint32_t gone = retire_search(driver, false, &next);
        while (gone == RETIRE_AT_ONCE) gone = retire_search(driver, false, &next);
        driver->retire_at = next < soon ? soon : next < late ? next : late;
    }
    fk__driver_due(driver, driver->retire_at);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/tie.h"

#include "remote/office.h"
#include "sim/sometimes.h"
#include "sim/station.h"
#include "sim/world.h"

#include <string.h>

/* An event is told after the step that it tells of, so a quarantine seems to begin late. */
static const fk_time TOLD_LATE = FK_MILLIS(20);

fk_ties fk__ties;

static fk_ties *const t = &fk__ties;
static fk_folk *const f = &fk__folk;

void fk__ties_begin(fk_time quarantine, bool is_calm)
{
    memset(t, 0, sizeof(*t));
    t->duration = quarantine;
    t->is_calm = is_calm;
    for (uint32_t i = 0; i < FK_FOLK_STATIONS * FK_FOLK_STATIONS; i++) {
        fk_tie *tie = &t->tie[i / FK_FOLK_STATIONS][i % FK_FOLK_STATIONS];
        tie->quarantined_at = tie->lifted_at = -1;
    }
}

void fk__ties_built(uint32_t station)
{
    for (uint32_t i = 0; i < FK_FOLK_STATIONS; i++) {
        fk_tie *tie = &t->tie[station][i];
        *tie = (fk_tie){ .quarantined_at = tie->quarantined_at, .lifted_at = tie->lifted_at };
    }
    t->invalid[station] = t->refused[station] = 0;
}

/* ---- events -------------------------------------------------------------------------------- */

static uint32_t station_of(fk_str address)
{
    uint32_t i = 0;
    while (i < fk__stations_count()) {
        fk_str own = fk__station_address(i);
        if (own.len == address.len && memcmp(own.ptr, address.ptr, own.len) == 0) break;
        i++;
    }
    return i;
}

static fk_tie_state state_of(const char *name)
{
    if (strcmp(name, "unresolved") == 0) return FK_TIE_UNRESOLVED;
    if (strcmp(name, "connected") == 0) return FK_TIE_CONNECTED;
    if (strcmp(name, "quarantine") == 0) return FK_TIE_QUARANTINE;
    return FK_TIE_NONE;
}

/* R4: the arrows, each with its reasons. */
static bool is_arrow(fk_tie_state from, fk_tie_state to, const char *reason)
{
    static const struct {
        fk_tie_state from, to;
        const char *reason;
    } ARROWS[] = {
        { FK_TIE_NONE, FK_TIE_UNRESOLVED, "created" },
        { FK_TIE_UNRESOLVED, FK_TIE_CONNECTED, "handshake completed" },
        { FK_TIE_UNRESOLVED, FK_TIE_CONNECTED, "handshake with a new system" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "reconnecting failed for too long" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "handshake refused by the peer" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "handshake with a quarantined system" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "asked for" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "silent for too long" },
        { FK_TIE_UNRESOLVED, FK_TIE_QUARANTINE, "system messages were not acknowledged" },
        { FK_TIE_CONNECTED, FK_TIE_UNRESOLVED, "transport dropped" },
        { FK_TIE_CONNECTED, FK_TIE_UNRESOLVED, "no connection after the override" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "invalid association" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "quarantined by the peer" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "asked for" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "silent for too long" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "system messages were not acknowledged" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "handshake refused by the peer" },
        { FK_TIE_CONNECTED, FK_TIE_QUARANTINE, "handshake with a quarantined system" },
        { FK_TIE_QUARANTINE, FK_TIE_UNRESOLVED, "quarantine is over" },
        { FK_TIE_QUARANTINE, FK_TIE_UNRESOLVED, "quarantine overridden" },
        { FK_TIE_QUARANTINE, FK_TIE_CONNECTED, "quarantine overridden" },
        { FK_TIE_QUARANTINE, FK_TIE_CONNECTED, "handshake with a new system" },
    };
    for (size_t i = 0; i < sizeof(ARROWS) / sizeof(ARROWS[0]); i++) {
        bool is_same = ARROWS[i].from == from && ARROWS[i].to == to;
        if (is_same && strcmp(ARROWS[i].reason, reason) == 0) return true;
    }
    return false;
}

static const fk_authority *authority_of(uint32_t station, uint32_t peer)
{
    fk_remote *remote = fk__remote_of(fk__station[station].sys);
    fk_str host = fk_str_of(fk__station_host(peer));
    fk_authority_key key = { FK_STR("sim"), host, FK_STATION_PORT };
    return fk__authority_find(&remote->table, &key);
}

/* Which system was shut out is not said; it is the one that was met last. */
static void shut(uint32_t station, uint32_t peer)
{
    const fk_authority *authority = authority_of(station, peer);
    uint32_t whom, house;
    if (authority == NULL || authority->state != FK_ASSOCIATION_QUARANTINE) return;
    if (authority->uid == 0 || !fk__folk_find_uid(authority->uid, &whom, &house)) return;
    fk_time *at = &t->shut_at[station][f->houses[station] - 1][whom][house];
    if (*at == 0) *at = fk__world_now();
}

static void changed(uint32_t station, uint32_t peer, const fk_tie_news *event)
{
    fk_tie *tie = &t->tie[station][peer];
    fk_tie_state from = state_of(event->from), to = state_of(event->to);
    fk_time now = fk__world_now();
    fk__ledger_note(FK_FACT_AUTHORITY, station, peer, from, to);
    if (from != tie->state)
        fk__world_fail("R4", "station %u of %u: from %s, but it was state %u", station, peer,
                       event->from, (unsigned)tie->state);
    if (!is_arrow(from, to, event->reason))
        fk__world_fail("R4", "station %u of %u: %s to %s, %s", station, peer, event->from,
                       event->to, event->reason);
    bool is_over = strcmp(event->reason, "quarantine is over") == 0;
    if (is_over && now - tie->since + TOLD_LATE < t->duration)
        fk__world_fail("R4", "station %u lets %u in before its time", station, peer);
    if (from == FK_TIE_QUARANTINE) tie->lifted_at = now;
    tie->state = to;
    tie->since = now;
    if (to == FK_TIE_QUARANTINE && t->is_calm)
        fk__world_fail("R7", "station %u gives %u up, for nothing: %s", station, peer,
                       event->reason);
    if (to == FK_TIE_QUARANTINE) {
        tie->quarantined_at = now;
        shut(station, peer);
    }
    if (is_over) FK_SOMETIMES_HIT(QUARANTINE_OVER);
    if (strcmp(event->reason, "handshake with a new system") == 0) FK_SOMETIMES_HIT(NEW_PEER);
    if (strcmp(event->reason, "quarantined by the peer") == 0) FK_SOMETIMES_HIT(PEER_NOTICE);
    if (strcmp(event->reason, "silent for too long") == 0) FK_SOMETIMES_HIT(DETECTED);
    if (strcmp(event->reason, "asked for") == 0 && !event->was_asking)
        fk__world_fail("R4", "station %u: nobody asked for the quarantine of %u", station, peer);
    if (strcmp(event->reason, "reconnecting failed for too long") == 0) FK_SOMETIMES_HIT(GAVE_UP);
    if (strcmp(event->reason, "transport dropped") == 0) FK_SOMETIMES_HIT(DROPPED);
}

/* In their order, whenever they are told. */
static void take_news(uint32_t station, uint32_t peer, const fk_event *event)
{
    fk_tie *tie = &t->tie[station][peer];
    fk_tie_news *news = &tie->news[event->count % FK_TIE_NEWS];
    if (event->count <= tie->changes || event->count > tie->changes + FK_TIE_NEWS)
        fk__world_fail("R4", "station %u of %u: change %u, after %u", station, peer, event->count,
                       tie->changes);
    *news = (fk_tie_news){ event->count, event->from, event->to, event->reason, t->is_asking };
    for (;;) {
        news = &tie->news[(tie->changes + 1) % FK_TIE_NEWS];
        if (news->number != tie->changes + 1) return;
        tie->changes++;
        changed(station, peer, news);
    }
}

void fk__tie_event(uint32_t station, const fk_event *event)
{
    uint32_t peer = station_of(event->text);
    if (event->kind == FK_EVENT_INVALID_ASSOCIATION) {
        fk__ledger_note(FK_FACT_INVALID, station, peer, 0, 0);
        t->invalid[station]++;
        FK_SOMETIMES_HIT(INVALID_ASSOCIATION);
        return;
    }
    if (event->kind != FK_EVENT_AUTHORITY) return;
    if (peer == fk__stations_count() || peer == station)
        fk__world_fail("R4", "an event about nobody: %.*s", (int)event->text.len, event->text.ptr);
    take_news(station, peer, event);
}

void fk__tie_letter(uint32_t station, fk_reason reason)
{
    if (reason != FK_REASON_QUARANTINED) return;
    t->refused[station]++;
    fk__folk_house(station)->has_refused = true;
}

/* ---- checks -------------------------------------------------------------------------------- */

void fk__tie_check_passage(uint32_t from, uint32_t from_house, uint32_t to, uint32_t to_house,
                           fk_time sent_at, uint32_t number)
{
    fk_time by_receiver = t->shut_at[to][to_house][from][from_house];
    fk_time by_sender = t->shut_at[from][from_house][to][to_house];
    if (by_receiver != 0 && by_receiver < sent_at)
        fk__world_fail("R3", "#%u comes from a system that was shut out before", number);
    if (by_sender != 0 && by_sender < sent_at)
        fk__world_fail("R3", "#%u goes to a system that was shut out before", number);
}

bool fk__tie_was_shut(uint32_t station, uint32_t whom, uint32_t whom_house)
{
    for (uint32_t i = 0; i < f->houses[station]; i++) {
        if (t->shut_at[station][i][whom][whom_house] != 0) return true;
    }
    return false;
}

bool fk__tie_has_shut(uint32_t station, uint32_t house, uint32_t whom, fk_time since)
{
    for (uint32_t i = 0; i < f->houses[whom]; i++) {
        fk_time at = t->shut_at[station][house][whom][i];
        if (at != 0 && at >= since) return true;
    }
    return false;
}

bool fk__tie_is_changing(uint32_t station, uint32_t peer)
{
    const fk_authority *authority = authority_of(station, peer);
    return authority != NULL && authority->changes != t->tie[station][peer].changes;
}

bool fk__tie_is_shut(uint32_t a, uint32_t b)
{
    uint32_t house_a = f->houses[a] - 1u, house_b = f->houses[b] - 1u;
    return t->shut_at[a][house_a][b][house_b] != 0 || t->shut_at[b][house_b][a][house_a] != 0;
}

/* R10: what is sent faster than it leaves does not pile up; what had to wait is let go at once. */
static void check_line(uint32_t station, const fk_authority *authority, uint32_t deferred_max)
{
    const fk_line *line = authority->user;
    uint32_t outbound_max = fk__station[station].driver->config.outbound_max;
    uintptr_t waiting = fk__word_load(&line->gate, FK_RELAXED) / FK_LINE_ONE;
    if (waiting > outbound_max + deferred_max)
        fk__world_fail("R10", "station %u: %u messages are under way to %.*s", station,
                       (unsigned)waiting, (int)authority->key.host.len, authority->key.host.ptr);
    if (waiting >= outbound_max) FK_SOMETIMES_HIT(LINE_FULL);
}

static void check_authority(uint32_t station, const fk_authority *authority,
                            const fk_authority_config *config)
{
    uint32_t peer = 0;
    while (peer < fk__stations_count()) {
        fk_str host = fk_str_of(fk__station_host(peer));
        if (memcmp(host.ptr, authority->key.host.ptr, host.len) == 0) break;
        peer++;
    }
    if (authority->deferred.count > config->deferred_max)
        fk__world_fail("R5", "%u wait for station %u", authority->deferred.count, peer);
    if (authority->state == FK_ASSOCIATION_QUARANTINE && authority->deferred.count != 0)
        fk__world_fail("R4", "messages wait for a quarantined system");
    if (authority->deferred.count > 0) FK_SOMETIMES_HIT(DEFERRED);
    if (authority->user != NULL) check_line(station, authority, config->deferred_max);
    fk_tie_state state = (fk_tie_state)(authority->state + 1);
    if (t->tie[station][peer].state != state)
        fk__world_fail("R4", "station %u has changed its state of %u, and said nothing", station,
                       peer);
}

void fk__tie_check_rest(uint32_t station)
{
    const fk_remote *remote = fk__remote_of(fk__station[station].sys);
    const fk_authority_table *table = &remote->table;
    const fk_authority *authority = NULL;
    fk__authority_table_check(table);
    if (t->invalid[station] != t->refused[station])
        fk__world_fail("R6", "station %u: %u messages refused, %u events", station,
                       t->refused[station], t->invalid[station]);
    while ((authority = fk__authority_after(table, authority)) != NULL) {
        check_authority(station, authority, &table->config);
    }
    if (table->deferred_total > table->config.deferred_total_max)
        fk__world_fail("R5", "%u messages wait", table->deferred_total);
    fk__proxies_check(&remote->proxies);
}

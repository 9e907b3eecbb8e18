/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What happens to systems and to the network between them. */

#include "sim/remote.h"

#include "base/base.h"
#include "fraktor/remote.h"
#include "remote/remote.h"
#include "sim/sometimes.h"
#include "sim/station.h"
#include "sim/tie.h"
#include "sim/world.h"

static fk_remote_run *const r = &fk__remote_run_state;
static fk_folk *const f = &fk__folk;

enum { HOUSES_FOR_TROUBLE = 8 }; /* at one station: the rest is for the second phase */

/* ---- systems ------------------------------------------------------------------------------- */

static void on_event(void *user, const fk_event *event)
{
    const fk_station *s = user;
    if (event->kind == FK_EVENT_STOPPED) fk__folk_stopped(s->number, event->actor);
    if ((FK_TOPIC_REMOTE >> event->kind & 1) != 0) fk__tie_event(s->number, event);
}

void fk__remote_boot(uint32_t station)
{
    const fk_swarm *swarm = fk__world_swarm();
    fk_station *s = &fk__station[station];
    fk_system_config config = { .throughput = swarm->throughput,
                                .slice = swarm->slice,
                                .pools_malloc = swarm->is_direct,
                                .user = s,
                                .on_dead_letter = fk__remote_letter,
                                .on_event = on_event,
                                .remoting = r->voyage.remoting,
                                .events_replay = FK_REPLAY_NONE };
    fk__ties_built(station);
    fk__station_boot(s, &config, r->voyage.workers);
    fk__folk_built(station, fk__remote_of(s->sys)->uid);
    for (uint32_t i = 0; i < FK_FOLK_SLOTS; i++) fk__remote_spawn(station, i);
}

static void crash(uint32_t station, bool is_silent)
{
    fk__station_crash(&fk__station[station], is_silent);
    fk__folk_left(station, true);
}

static void end(uint32_t station)
{
    fk__folk_house(station)->is_ending = true;
    fk__ledger_note(FK_FACT_STOPPING, station, FK_NOBODY, 0, 0);
    fk__station_end(&fk__station[station]);
}

static void pause(uint32_t station)
{
    fk_time span = FK_MILLIS(1 + fk__world_below(fk__world_one_in(3) ? 8000 : 800));
    r->paused_until[station] = fk__world_now() + span;
    fk__ledger_note(FK_FACT_PAUSE, station, FK_NOBODY, (uint32_t)(span / FK_MILLIS(1)), 1);
    fk__station_pause(&fk__station[station], true);
}

static void go_on(uint32_t station)
{
    fk__ledger_note(FK_FACT_PAUSE, station, FK_NOBODY, 0, 0);
    fk__station_pause(&fk__station[station], false);
}

static void respawn(uint32_t station)
{
    for (uint32_t i = 0; i < FK_FOLK_SLOTS; i++) {
        if (f->at[station][i] != FK_NOBODY) continue;
        if (r->is_healing || fk__world_one_in(3)) fk__remote_spawn(station, i);
    }
}

void fk__remote_tend(void)
{
    for (uint32_t i = 0; i < fk__stations_count(); i++) {
        fk_station *s = &fk__station[i];
        bool is_over = r->is_healing || r->paused_until[i] <= fk__world_now();
        if (s->is_paused && is_over) go_on(i);
        if (fk__station_tend(s)) {
            fk__folk_left(i, false);
            FK_SOMETIMES_HIT(STATION_ENDED);
        }
        bool may_boot = s->state == FK_STATION_EMPTY && f->houses[i] < FK_FOLK_HOUSES;
        if (may_boot && (r->is_healing || fk__world_one_in(4))) fk__remote_boot(i);
        if (s->state == FK_STATION_RUNNING && !s->is_paused) respawn(i);
    }
}

/* ---- trouble ------------------------------------------------------------------------------- */

static void cut(uint32_t from, uint32_t to)
{
    fk__ledger_note(FK_FACT_CUT, from, to, 0, 1);
    fk__network_cut(&fk__sim_net, from, to, true);
}

/* Some way that is cut goes on, or its connections end. */
static void mend(void)
{
    uint32_t count = fk__stations_count();
    uint32_t start = fk__world_below(count * count);
    for (uint32_t i = 0; i < count * count; i++) {
        uint32_t way = (start + i) % (count * count), from = way / count, to = way % count;
        if (!fk__sim_net.is_cut[from][to]) continue;
        fk__ledger_note(FK_FACT_CUT, from, to, 0, 0);
        if (fk__world_one_in(3)) fk__network_reset(&fk__sim_net, from, to);
        fk__network_cut(&fk__sim_net, from, to, false);
        return;
    }
}

static void slow(uint32_t from, uint32_t to)
{
    fk_time by = FK_MILLIS(fk__world_below(2000));
    fk__ledger_note(FK_FACT_SLOW, from, to, (uint32_t)(by / FK_MILLIS(1)), 0);
    fk__sim_net.slow[from][to] = fk__world_one_in(2) ? 0 : by;
}

/* What is meant for one goes to another. */
static void mislead(uint32_t whom, uint32_t to)
{
    bool is_misled = fk__sim_net.route[whom] != whom;
    fk__sim_net.route[whom] = (uint8_t)(is_misled ? whom : to);
    fk__ledger_note(FK_FACT_MISLED, whom, to, 0, !is_misled);
    if (!is_misled) FK_SOMETIMES_HIT(MISLED);
}

static void quarantine(uint32_t station, uint32_t peer)
{
    fk__ledger_note(FK_FACT_QUARANTINE, station, peer, 0, 0);
    fk__ties.is_asking = true;
    fk_err err = fk_authority_quarantine(fk__station[station].sys, fk__station_address(peer));
    fk__ties.is_asking = false;
    fk__ledger_note(FK_FACT_QUARANTINE, station, peer, 1, (uint32_t)err);
    if (err == FK_OK) FK_SOMETIMES_HIT(QUARANTINE_ASKED);
}

static void override(uint32_t station, uint32_t peer)
{
    fk__ledger_note(FK_FACT_OVERRIDE, station, peer, 0, 0);
    fk_err err = fk_authority_override(fk__station[station].sys, fk__station_address(peer));
    fk__ledger_note(FK_FACT_OVERRIDE, station, peer, 1, (uint32_t)err);
    if (err == FK_OK) FK_SOMETIMES_HIT(OVERRIDDEN);
}

static fk_trouble draw_trouble(void)
{
    uint32_t draw = fk__world_below(r->voyage.trouble_sum), trouble = 0;
    while (draw >= r->voyage.trouble[trouble]) draw -= r->voyage.trouble[trouble++];
    return (fk_trouble)trouble;
}

/* a has a system that runs. */
static void trouble_system(fk_trouble trouble, uint32_t a, uint32_t b)
{
    bool may_end = f->houses[a] < HOUSES_FOR_TROUBLE;
    switch (trouble) {
    case FK_TROUBLE_PAUSE:
        pause(a);
        FK_SOMETIMES_HIT(PAUSED);
        break;
    case FK_TROUBLE_CRASH:
        if (may_end) crash(a, false);
        FK_SOMETIMES_HIT(CRASHED);
        break;
    case FK_TROUBLE_CRASH_SILENT:
        if (may_end) crash(a, true);
        FK_SOMETIMES_HIT(CRASHED_SILENTLY);
        break;
    case FK_TROUBLE_END:
        if (may_end) end(a);
        break;
    case FK_TROUBLE_QUARANTINE: quarantine(a, b); break;
    case FK_TROUBLE_OVERRIDE: override(a, b); break;
    default: break;
    }
}

void fk__remote_trouble(void)
{
    uint32_t count = fk__stations_count();
    uint32_t a = fk__world_below(count), b = (a + 1 + fk__world_below(count - 1)) % count;
    fk_trouble trouble = draw_trouble();
    const fk_station *s = &fk__station[a];
    switch (trouble) {
    case FK_TROUBLE_CUT: cut(b, a); /* fall through */
    case FK_TROUBLE_CUT_ONE_WAY: cut(a, b); break;
    case FK_TROUBLE_MEND: mend(); break;
    case FK_TROUBLE_RESET_PAIR:
        fk__ledger_note(FK_FACT_RESET, a, b, 0, 0);
        fk__network_reset(&fk__sim_net, a, b);
        break;
    case FK_TROUBLE_RESET_ANY:
        fk__ledger_note(FK_FACT_RESET, FK_NOBODY, FK_NOBODY, 0, 0);
        fk__network_reset_any(&fk__sim_net);
        break;
    case FK_TROUBLE_SLOW: slow(a, b); break;
    case FK_TROUBLE_MISLEAD:
        if (count > 2) mislead(a, b);
        break;
    default:
        if (s->state == FK_STATION_RUNNING && !s->is_paused) trouble_system(trouble, a, b);
        break;
    }
}

/* ---- the second phase ---------------------------------------------------------------------- */

/* Two systems that have shut each other out never talk again: one of them makes place. */
static void part(uint32_t a, uint32_t b)
{
    fk_station *s = &fk__station[fk__world_one_in(2) ? a : b];
    if (f->houses[s->number] >= FK_FOLK_HOUSES) s = &fk__station[s->number == a ? b : a];
    if (s->state == FK_STATION_RUNNING) end(s->number);
}

void fk__remote_heal(void)
{
    if (!r->is_healing) {
        fk__ledger_note(FK_FACT_HEAL, FK_NOBODY, FK_NOBODY, 0, 0);
        r->is_healing = true;
        fk__network_heal(&fk__sim_net);
        fk__world_end_jumps();
    }
    fk__remote_tend();
    for (uint32_t a = 0; a < fk__stations_count(); a++) {
        for (uint32_t b = 0; b < fk__stations_count(); b++) {
            bool both = fk__station[a].state == FK_STATION_RUNNING &&
                        fk__station[b].state == FK_STATION_RUNNING;
            if (a == b || !both) continue;
            if (fk__tie_is_shut(a, b))
                part(a, b);
            else if (fk__ties.tie[a][b].state == FK_TIE_QUARANTINE)
                override(a, b);
        }
    }
}

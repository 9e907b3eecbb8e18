/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/remote.h"

#include "base/base.h"
#include "sim/ledger.h"
#include "sim/post.h"
#include "sim/quarantine.h"
#include "sim/sometimes.h"
#include "sim/station.h"
#include "sim/tie.h"
#include "sim/vigil.h"
#include "sim/world.h"

fk_remote_run fk__remote_run_state;

static fk_remote_run *const r = &fk__remote_run_state;
static fk_folk *const f = &fk__folk;

enum { STREAMS = 3, CHECK_EVERY = 16, PEACE_TIMES = 6 };

/* Everybody must have reached everybody by then. */
static const fk_time LIVE_WITHIN = FK_SECONDS(150);

/* ---- looking at it while nobody runs ------------------------------------------------------- */

static void check_links(uint32_t from)
{
    for (uint32_t to = 0; to < fk__stations_count(); to++) {
        uint32_t made = fk__network_made(&fk__sim_net, from, to);
        if (made > STREAMS)
            fk__world_fail("R11", "station %u has %u connections to %u", from, made, to);
    }
}

static void watch_pause(void)
{
    fk__network_check(&fk__sim_net);
}

static void watch_rest(fk_time next)
{
    (void)next;
    if (++r->rests % CHECK_EVERY != 0) return;
    for (uint32_t i = 0; i < fk__stations_count(); i++) {
        const fk_station *s = &fk__station[i];
        if (s->state != FK_STATION_RUNNING || s->is_paused) continue;
        fk__tie_check_rest(i);
        check_links(i);
    }
}

/* ---- the director -------------------------------------------------------------------------- */

static void nap(void)
{
    uint32_t ms = r->voyage.nap_ms;
    fk_time time = FK_MICROS(1 + fk__world_below(ms * 1000));
    fk__world_sleep(fk__world_one_in(8) ? time * 4 : time);
}

static void give_orders(void)
{
    for (uint32_t i = fk__world_below(r->voyage.orders + 1); i > 0; i--) {
        uint32_t station = fk__world_below(fk__stations_count());
        uint32_t person = f->at[station][fk__world_below(FK_FOLK_SLOTS)];
        const fk_station *s = &fk__station[station];
        bool is_there = person != FK_NOBODY && !s->is_paused && s->state == FK_STATION_RUNNING;
        if (is_there) fk__remote_order(person, 1 + fk__world_below(4), FK_NOBODY);
    }
}

static void first_phase(void)
{
    for (uint32_t i = 0; i < r->voyage.rounds; i++) {
        fk__remote_tend();
        give_orders();
        if (r->voyage.trouble_in != 0 && fk__world_one_in(r->voyage.trouble_in))
            fk__remote_trouble();
        nap();
    }
}

static bool is_proved(void)
{
    for (uint32_t a = 0; a < fk__stations_count(); a++) {
        if (fk__station[a].state != FK_STATION_RUNNING) return false;
        for (uint32_t b = 0; b < fk__stations_count(); b++) {
            if (a != b && !r->proved[a][b]) return false;
        }
    }
    return true;
}

/* Somebody of each station sends to each other one. */
static void probe(void)
{
    for (uint32_t a = 0; a < fk__stations_count(); a++) {
        const fk_station *s = &fk__station[a];
        uint32_t person = f->at[a][fk__world_below(FK_FOLK_SLOTS)];
        if (s->state != FK_STATION_RUNNING || person == FK_NOBODY) continue;
        for (uint32_t b = 0; b < fk__stations_count(); b++) {
            if (a != b && !r->proved[a][b]) fk__remote_order(person, 0, b);
        }
    }
}

static void tell_who_is_apart(void)
{
    for (uint32_t a = 0; a < fk__stations_count(); a++) {
        for (uint32_t b = 0; b < fk__stations_count(); b++) {
            if (a != b && !r->proved[a][b])
                fk__world_fail("liveness", "nothing gets from station %u to %u", a, b);
        }
    }
    fk__world_fail("liveness", "a system does not end");
}

static void second_phase(void)
{
    fk_time end = fk__world_now() + LIVE_WITHIN;
    fk__remote_heal();
    memset(r->proved, 0, sizeof(r->proved));
    while (!is_proved()) {
        if (fk__world_now() > end) tell_who_is_apart();
        fk__remote_heal();
        probe();
        fk__world_sleep(FK_MILLIS(700));
    }
}

/* As long as it takes to find out that somebody is gone, and to say so. */
static void settle(void)
{
    const fk_remoting_config *c = &r->voyage.remoting;
    fk_time end =
        fk__world_now() + 2 * (c->heartbeat_pause + c->heartbeat_every * 3) + FK_SECONDS(8);
    while (fk__world_now() < end) {
        fk__remote_tend();
        fk__world_sleep(FK_SECONDS(1));
    }
}

static uint32_t count_houses(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < fk__stations_count(); i++) count += f->houses[i];
    return count;
}

static bool is_anybody_shut(void)
{
    for (uint32_t a = 0; a < fk__stations_count(); a++) {
        for (uint32_t b = 0; b < a; b++) {
            if (fk__tie_is_shut(a, b)) return true;
        }
    }
    return false;
}

/* What is found out late may part some again, who then need time to find that out in their turn. */
static void find_peace(void)
{
    uint32_t houses, times = 0;
    do {
        houses = count_houses();
        second_phase();
        settle();
        if (++times > PEACE_TIMES) fk__world_fail("liveness", "there is no end of quarantines");
    } while (houses != count_houses() || is_anybody_shut());
}

/* A narrow way takes its time. */
static void await_posts(void)
{
    fk_time end = fk__world_now() + LIVE_WITHIN;
    while (fk__posts_open() != 0 && fk__world_now() < end) fk__world_sleep(FK_SECONDS(1));
}

static void end_all(void)
{
    fk_time end = fk__world_now() + LIVE_WITHIN;
    bool is_over = false;
    for (uint32_t i = 0; i < fk__stations_count(); i++) {
        if (fk__station[i].state == FK_STATION_RUNNING) fk__station_end(&fk__station[i]);
    }
    while (!is_over) {
        is_over = true;
        for (uint32_t i = 0; i < fk__stations_count(); i++) {
            if (fk__station_tend(&fk__station[i])) fk__folk_left(i, false);
            is_over = is_over && fk__station[i].state == FK_STATION_EMPTY;
        }
        if (fk__world_now() > end) fk__world_fail("A14", "a system does not end");
        if (!is_over) fk__world_sleep(FK_MILLIS(100));
    }
}

static void count_network(void)
{
    const fk_network_count *c = &fk__sim_net.count;
    if (c->refused != 0) FK_SOMETIMES_HIT(LINK_REFUSED);
    if (c->timeouts != 0) FK_SOMETIMES_HIT(LINK_TIMEOUT);
    if (c->resets != 0) FK_SOMETIMES_HIT(LINK_RESET);
    if (c->held != 0) FK_SOMETIMES_HIT(LINK_CUT);
    if (c->lent != 0) FK_SOMETIMES_HIT(LINK_LENT);
    if (c->cut_frames != 0) FK_SOMETIMES_HIT(LINK_CUT_SHORT);
    if (c->late_accepts != 0) FK_SOMETIMES_HIT(LINK_LATE);
}

static void remote_main(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    for (uint32_t i = 0; i < r->voyage.stations; i++) {
        if (r->voyage.trouble_in == 0 || fk__world_one_in(2)) fk__remote_boot(i);
    }
    first_phase();
    find_peace();
    if (r->is_calm) await_posts();
    fk__vigils_check_live();
    fk__remote_asks_check_live();
    end_all();
    fk__posts_check_ended(r->is_calm);
    count_network();
    if (fk__world_bytes() != 0) fk__world_fail("A14", "%zu bytes are left", fk__world_bytes());
}

const char *fk__remote_run(uint64_t seed)
{
    static const fk_world_watch WATCH = { watch_pause, watch_rest };
    fk_swarm swarm;
    memset(r, 0, sizeof(*r));
    fk__voyage_draw(&r->voyage, &swarm, seed);
    r->is_calm = r->voyage.trouble_in == 0 && swarm.jump_in == 0;
    fk__world_begin(&swarm);
    fk__ledger_begin();
    fk__folk_begin();
    fk__posts_begin();
    fk__vigils_begin();
    fk__remote_actors_begin();
    fk_time quarantine = r->voyage.remoting.quarantine;
    fk__ties_begin(quarantine != 0 ? quarantine : FK_MINUTES(5 * 24 * 60), r->is_calm);
    fk__stations_begin(r->voyage.stations, &r->voyage.network);
    const char *found = fk__world_run(remote_main, &WATCH);
    fk__ledger.received = fk__posts.received;
    if (found == NULL) found = fk__quarantine_end();
    return found;
}

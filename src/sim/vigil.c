/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/vigil.h"

#include "base/base.h"
#include "sim/sometimes.h"
#include "sim/tie.h"
#include "sim/world.h"

fk_vigils fk__vigils;

static fk_vigils *const l = &fk__vigils;
static fk_folk *const f = &fk__folk;

void fk__vigils_begin(void)
{
    memset(l, 0, offsetof(fk_vigils, vigil));
}

uint32_t fk__vigil_find(uint32_t watcher, fk_ref ref)
{
    for (uint32_t i = l->count; i > 0; i--) {
        const fk_vigil *v = &l->vigil[i - 1];
        bool is_kept = v->state == FK_VIGIL_ASKED || v->state == FK_VIGIL_KEPT;
        if (is_kept && v->watcher == watcher && fk_ref_equal(v->ref, ref)) return i - 1;
    }
    return FK_NOBODY;
}

uint32_t fk__vigil_of(uint32_t watcher, uint32_t n)
{
    uint32_t found = FK_NOBODY;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->vigil[i].state != FK_VIGIL_KEPT || l->vigil[i].watcher != watcher) continue;
        found = i;
        if (n-- == 0) break;
    }
    return found;
}

uint32_t fk__vigil_begin(uint32_t watcher, uint32_t target, uint32_t station, uint32_t slot,
                         fk_ref ref)
{
    if (l->count == FK_VIGILS_MAX) return FK_NOBODY;
    uint32_t vigil = l->count++;
    l->vigil[vigil] = (fk_vigil){ .state = FK_VIGIL_ASKED,
                                  .watcher = (uint16_t)watcher,
                                  .target = (uint16_t)target,
                                  .station = (uint8_t)station,
                                  .slot = (uint8_t)slot,
                                  .ref = ref,
                                  .at = fk__world_now() };
    fk__ledger_note(FK_FACT_WATCH, watcher, target, vigil, station);
    return vigil;
}

void fk__vigil_begun(uint32_t vigil, fk_err err)
{
    fk_vigil *v = &l->vigil[vigil];
    fk__ledger_note(FK_FACT_WATCHED, v->watcher, v->target, vigil, (uint32_t)err);
    if (v->state != FK_VIGIL_ASKED) return;
    if (err == FK_OK) {
        v->state = FK_VIGIL_KEPT;
        return;
    }
    v->state = FK_VIGIL_ENDED;
    if (err != FK_E_NOMEM && err != FK_E_LIMIT)
        fk__world_fail("R7", "a%u cannot watch: %s", v->watcher, fk_err_name(err));
}

/* Whoever was watched has ended since, or was not there. A watch without uid may also be told of a
 * former owner of the name, of whose end the notice came late. */
static bool has_ended(const fk_vigil *v)
{
    if (v->target != FK_NOBODY) return f->person[v->target].is_gone;
    return f->at[v->station][v->slot] == FK_NOBODY || f->left_at[v->station][v->slot] != 0;
}

/* Some system at that station has ended in order; its farewell may come late, and is taken for that of
 * whoever is there now. */
static bool is_parted(const fk_vigil *v)
{
    for (uint32_t i = 0; i < f->houses[v->station]; i++) {
        const fk_house *house = &f->house[v->station][i];
        if (house->is_ending || (house->is_gone && !house->is_crashed)) return true;
    }
    return false;
}

/* The watcher's system has given the other up since. */
static bool is_given_up(const fk_vigil *v)
{
    uint32_t station = f->person[v->watcher].station;
    const fk_tie *tie = &fk__ties.tie[station][v->station];
    return tie->quarantined_at >= v->at || tie->lifted_at >= v->at ||
           tie->state == FK_TIE_QUARANTINE || fk__ties.is_asking ||
           fk__tie_is_changing(station, v->station);
}

void fk__vigil_ended(uint32_t vigil, fk_err err)
{
    fk_vigil *v = &l->vigil[vigil];
    fk__ledger_note(FK_FACT_UNWATCH, v->watcher, v->target, vigil, (uint32_t)err);
    v->state = FK_VIGIL_ENDED;
    if (err == FK_OK) return;
    /* The notice may be on its way; it does not arrive then. */
    bool is_known = err == FK_E_NOT_FOUND && (has_ended(v) || is_given_up(v));
    if (!is_known) fk__world_fail("R7", "a%u has lost a watch: %s", v->watcher, fk_err_name(err));
}

void fk__vigil_told(uint32_t watcher, fk_ref ref, bool is_address)
{
    uint32_t vigil = fk__vigil_find(watcher, ref);
    fk__ledger_note(FK_FACT_TOLD, watcher, FK_NOBODY, vigil, is_address);
    if (vigil >= l->count) /* FK_NOBODY */
        fk__world_fail("R7", "a%u is told of an end it does not wait for", watcher);
    fk_vigil *v = &l->vigil[vigil];
    if (!has_ended(v) && !is_given_up(v) && !(is_address && is_parted(v)))
        fk__world_fail("R7", "a%u is told of the end of a%u, who lives", watcher, v->target);
    v->state = FK_VIGIL_TOLD;
    l->told++;
    if (is_address)
        FK_SOMETIMES_HIT(TOLD_ADDRESS);
    else
        FK_SOMETIMES_HIT(TOLD_REMOTE);
}

void fk__vigils_check_live(void)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const fk_vigil *v = &l->vigil[i];
        if (v->state != FK_VIGIL_KEPT || !fk__folk_lives(v->watcher)) continue;
        bool is_gone = v->target != FK_NOBODY ? f->person[v->target].is_gone
                                              : f->at[v->station][v->slot] == FK_NOBODY;
        if (is_gone)
            fk__world_fail("R7", "a%u is never told of the end of a%u at station %u (watch %u)",
                           v->watcher, v->target, v->station, i);
        if (fk__tie_is_shut(f->person[v->watcher].station, v->station) && v->target != FK_NOBODY)
            fk__world_fail("R7", "a%u still watches a%u, whose system is given up", v->watcher,
                           v->target);
    }
}

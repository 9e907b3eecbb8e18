/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/folk.h"

#include "base/base.h"
#include "sim/world.h"

fk_folk fk__folk;

static fk_folk *const f = &fk__folk;

void fk__folk_begin(void)
{
    memset(f, 0, offsetof(fk_folk, person));
    for (uint32_t i = 0; i < FK_FOLK_STATIONS * FK_FOLK_SLOTS; i++) {
        f->at[i / FK_FOLK_SLOTS][i % FK_FOLK_SLOTS] = FK_NOBODY;
    }
}

fk_house *fk__folk_house(uint32_t station)
{
    return &f->house[station][f->houses[station] - 1];
}

bool fk__folk_find_uid(uint64_t uid, uint32_t *station, uint32_t *house)
{
    for (uint32_t i = 0; i < FK_FOLK_STATIONS; i++) {
        for (uint32_t k = 0; k < f->houses[i]; k++) {
            if (f->house[i][k].uid != uid) continue;
            *station = i;
            *house = k;
            return true;
        }
    }
    return false;
}

void fk__folk_built(uint32_t station, uint64_t uid)
{
    uint32_t other, house;
    FK_ASSERT(f->houses[station] < FK_FOLK_HOUSES);
    if (uid == 0 || fk__folk_find_uid(uid, &other, &house))
        fk__world_fail("R3", "a system has the uid of another");
    f->house[station][f->houses[station]++] =
        (fk_house){ .uid = uid, .built_at = fk__world_now(), .gone_at = FK_NEVER };
    fk__ledger_note(FK_FACT_BOOT, station, FK_NOBODY, f->houses[station], 0);
}

static void gone(uint32_t person)
{
    fk_dweller *p = &f->person[person];
    if (p->is_gone) return;
    p->is_gone = true;
    p->gone_at = fk__world_now();
    if (f->at[p->station][p->slot] != person) return;
    f->at[p->station][p->slot] = FK_NOBODY;
    f->left_at[p->station][p->slot] = p->gone_at;
}

void fk__folk_left(uint32_t station, bool is_crashed)
{
    fk_house *house = fk__folk_house(station);
    house->is_gone = true;
    house->is_crashed = is_crashed;
    house->gone_at = fk__world_now();
    fk__ledger_note(is_crashed ? FK_FACT_CRASH : FK_FACT_GONE, station, FK_NOBODY,
                    f->houses[station], 0);
    for (uint32_t i = 0; i < f->count; i++) {
        fk_dweller *p = &f->person[i];
        if (p->station != station || p->is_gone) continue;
        if (!is_crashed && p->is_spawned) fk__world_fail("A7", "a%u outlives its system", i);
        gone(i);
    }
}

uint32_t fk__folk_spawn(uint32_t station, uint32_t slot)
{
    if (f->count == FK_FOLK_MAX) return FK_NOBODY;
    uint32_t person = f->count++;
    f->person[person] = (fk_dweller){ .station = (uint8_t)station,
                                      .slot = (uint8_t)slot,
                                      .house = (uint8_t)(f->houses[station] - 1),
                                      .born_at = fk__world_now(),
                                      .gone_at = FK_NEVER };
    fk__ledger_note(FK_FACT_SPAWN, person, FK_NOBODY, station, slot);
    return person;
}

void fk__folk_spawned(uint32_t person, fk_err err, fk_ref ref, uint64_t uid)
{
    fk_dweller *p = &f->person[person];
    fk__ledger_note(FK_FACT_SPAWNED, person, FK_NOBODY, (uint32_t)uid, (uint32_t)err);
    if (err != FK_OK) {
        p->is_gone = true;
        p->gone_at = p->born_at;
        return;
    }
    p->is_spawned = true;
    p->ref = ref;
    p->uid = uid;
    if (!p->is_gone) f->at[p->station][p->slot] = person;
}

void fk__folk_stopped(uint32_t station, fk_ref ref)
{
    for (uint32_t i = f->count; i > 0; i--) {
        const fk_dweller *p = &f->person[i - 1];
        if (p->station != station || p->is_gone) continue;
        if (!p->is_spawned || !fk_ref_equal(p->ref, ref)) continue;
        fk__ledger_note(FK_FACT_STOPPED, i - 1, FK_NOBODY, 0, 0);
        gone(i - 1);
        return;
    }
}

bool fk__folk_lives(uint32_t person)
{
    return person != FK_NOBODY && f->person[person].is_spawned && !f->person[person].is_gone;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A10: a selection with a wildcard reaches everybody who matched for as long as it took, once. */

#include "sim/ledger.h"
#include "sim/sometimes.h"
#include "sim/world.h"

static fk_ledger *const l = &fk__ledger;

static bool has(const uint64_t *set, uint32_t actor)
{
    return (set[actor / 64] >> actor % 64 & 1) != 0;
}

static void put(uint64_t *set, uint32_t actor)
{
    set[actor / 64] |= UINT64_C(1) << actor % 64;
}

static bool matches(const fk_person *p, uint32_t kind)
{
    if (p->parent != FK_NOBODY) return false;
    return kind == 0 || (kind == 1) == (p->name != 0);
}

static fk_call *call_at(uint32_t number)
{
    if (number >= l->call_count) fk__world_fail("A10", "a call that was never made");
    return &l->call[number];
}

uint32_t fk__call_begin(uint32_t kind)
{
    uint32_t number = l->call_count++;
    fk_call *call = &l->call[number];
    *call = (fk_call){ .kind = (uint8_t)kind };
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        if (p->is_spawned && !p->is_gone && matches(p, kind)) put(call->expected, i);
    }
    fk__ledger_note(FK_FACT_CALL, FK_NOBODY, FK_NOBODY, number, kind);
    return number;
}

void fk__call_end(uint32_t number, fk_err err)
{
    fk_call *call = call_at(number);
    fk__ledger_note(FK_FACT_CALLED, FK_NOBODY, FK_NOBODY, number, (uint32_t)err);
    bool lacks = l->may_lack_memory && (err == FK_E_NOMEM || err == FK_E_LIMIT);
    if (err != FK_OK && !lacks) fk__world_fail("A10", "a selection gave %s", fk_err_name(err));
    for (uint32_t i = 0; i < l->person_count; i++) {
        bool is_certain = err == FK_OK && has(call->expected, i) && !l->person[i].is_gone;
        if (is_certain && call->is_missed) {
            fk__world_fail("A10", "a selection missed a%u", (unsigned)i);
        }
        if (!is_certain) call->expected[i / 64] &= ~(UINT64_C(1) << i % 64);
    }
}

static void reach(uint32_t number, uint32_t actor)
{
    fk_call *call = call_at(number);
    fk__ledger_note(FK_FACT_REACHED, actor, FK_NOBODY, number, 0);
    if (!matches(&l->person[actor], call->kind)) {
        fk__world_fail("A10", "a selection reached a%u, which does not match", (unsigned)actor);
    }
    if (has(call->reached, actor)) {
        fk__world_fail("A10", "a selection reached a%u twice", (unsigned)actor);
    }
    put(call->reached, actor);
    FK_SOMETIMES_HIT(CALLED);
}

void fk__call_arrived(uint32_t number, uint32_t actor)
{
    reach(number, actor);
}

void fk__call_dead(uint32_t number, const fk_dead_letter *letter)
{
    if (letter->path.len != 0) { /* nobody was there, or no memory for the walk */
        call_at(number)->is_missed = letter->reason == FK_REASON_NO_RECEIVER;
        FK_SOMETIMES_HIT(CALL_MISSED);
        return;
    }
    if ((letter->to.generation & 1) == 0) {
        fk__world_fail("A10", "a selection reached a slot without an actor");
    }
    for (uint32_t i = 0; i < l->person_count; i++) {
        if (!l->person[i].has_ref || !fk_ref_equal(l->person[i].ref, letter->to)) continue;
        reach(number, i);
        return;
    }
}

void fk__call_check_ended(void)
{
    for (uint32_t number = 0; number < l->call_count; number++) {
        const fk_call *call = &l->call[number];
        for (uint32_t i = 0; i < l->person_count; i++) {
            if (!has(call->expected, i) || has(call->reached, i)) continue;
            fk__world_fail("A10", "call %u did not reach a%u", (unsigned)number, (unsigned)i);
        }
    }
}

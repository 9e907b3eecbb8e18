/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A10: the end of a system. */

#include "core/terminate.h"
#include "sim/lives.h"
#include "sim/sometimes.h"
#include "sim/world.h"

#include <string.h>

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

static uint32_t phase_of(const char *name)
{
    static const char *const NAMES[FK_PHASES] = { "booting",   "running",         "stopping_user",
                                                  "hooks",     "stopping_system", "stopping_root",
                                                  "terminated" };
    for (uint32_t i = 0; i < FK_PHASES; i++) {
        if (strcmp(NAMES[i], name) == 0) return i;
    }
    fk__world_fail("A10", "an unknown phase: %s", name);
}

static void check_gone(const char *when, bool extras)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_person *p = &l->person[i];
        bool is_there = p->has_ref && p->is_spawned && !p->is_gone;
        if (!is_there || (v->soul[i].is_beside && !extras)) continue;
        fk__world_fail("A10", "%s, and a%u is still there", when, (unsigned)i);
    }
}

/* Every hook has answered, stopped, or had its time. */
static void check_hooks(void)
{
    fk_time began = v->reached[FK_TERMINATION_HOOKS];
    for (uint32_t i = 0; i < l->person_count; i++) {
        const fk_soul *s = &v->soul[i];
        if (!s->is_sure || s->is_done || l->person[i].is_gone || l->may_lack_memory) continue;
        if (fk__world_now() - began >= s->deadline) {
            FK_SOMETIMES_HIT(HOOK_LATE);
            continue;
        }
        fk__world_fail("A10", "nobody waited for the hook a%u", (unsigned)i);
    }
}

void fk__end_phase(const fk_event *event)
{
    uint32_t from = phase_of(event->from), to = phase_of(event->to);
    fk__ledger_note(FK_FACT_PHASE, FK_NOBODY, FK_NOBODY, from, to);
    if (from >= to) fk__world_fail("A10", "from %s to %s", event->from, event->to);
    if (v->came_from[to] != 0) fk__world_fail("A10", "%s twice", event->to);
    v->came_from[to] = (uint8_t)(from + 1);
    v->reached[to] = fk__world_now();
    if (to > FK_TERMINATION_RUNNING) l->is_stopping = v->is_closed = true;
    if (to == FK_TERMINATION_HOOKS) check_gone("/user has stopped", false);
    if (to == FK_TERMINATION_SYSTEM) check_hooks();
    if (to == FK_TERMINATION_DOWN) check_gone("the system is down", true);
    bool is_forced = to == FK_TERMINATION_ROOT && from != FK_TERMINATION_SYSTEM;
    if (is_forced && !v->may_force) fk__world_fail("A10", "from %s to %s", event->from, event->to);
}

void fk__end_hook_asked(uint32_t actor)
{
    fk_soul *s = &v->soul[actor];
    fk__ledger_note(FK_FACT_HOOK, actor, FK_NOBODY, 0, 0);
    FK_SOMETIMES_HIT(HOOK_ASKED);
    if (!s->is_hook) fk__world_fail("A10", "a%u is no hook", (unsigned)actor);
    if (s->is_asked && !l->may_lack_memory) {
        fk__world_fail("A10", "the hook a%u was asked twice", (unsigned)actor);
    }
    s->is_asked = true;
    check_gone("a hook is asked", false);
}

void fk__end_farewell(uint32_t number)
{
    fk__ledger_note(FK_FACT_FAREWELL, FK_NOBODY, FK_NOBODY, number, 0);
    v->farewells_said++;
    if (number + v->farewells_said != v->farewells) fk__world_fail("A10", "farewells out of order");
    check_gone("farewells are said", true);
}

void fk__end_check(void)
{
    uint32_t at = FK_TERMINATION_DOWN;
    uint32_t steps = 0, seen = 0;
    while (v->came_from[at] != 0) {
        at = v->came_from[at] - 1u;
        steps++;
    }
    for (uint32_t i = 0; i < FK_PHASES; i++) seen += v->came_from[i] != 0;
    if (at != FK_TERMINATION_RUNNING || steps != seen)
        fk__world_fail("A10", "not one way to the end");
    if (v->farewells_said != v->farewells) fk__world_fail("A10", "farewells were not said");
}

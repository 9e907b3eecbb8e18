/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/lifecycle.h"

#include "base/base.h"
#include "core/boot.h"
#include "core/guardian.h"
#include "sim/quarantine.h"
#include "sim/sometimes.h"

fk_lifecycle fk__lifecycle;

static fk_ledger *const l = &fk__ledger;
static fk_lives *const v = &fk__lives;

/* ---- what the seed says ---------------------------------------------------------------------------- */

static uint32_t between(fk_rng *rng, uint32_t low, uint32_t high)
{
    return low + fk__rng_below(rng, high - low + 1);
}

static void draw_acts(fk_swarm *s, fk_rng *rng)
{
    static const uint8_t OFTEN[FK_ACT_COUNT] = {
        [FK_ACT_TELL] = 24,       [FK_ACT_VOLLEY] = 2,       [FK_ACT_REPLY] = 6,
        [FK_ACT_SPAWN] = 8,       [FK_ACT_SPAWN_NAMED] = 6,  [FK_ACT_STOP_SELF] = 1,
        [FK_ACT_STOP_OTHER] = 2,  [FK_ACT_POISON] = 1,       [FK_ACT_STASH] = 3,
        [FK_ACT_UNSTASH] = 2,     [FK_ACT_BECOME] = 2,       [FK_ACT_UNBECOME] = 1,
        [FK_ACT_TIMER_START] = 3, [FK_ACT_TIMER_CANCEL] = 1, [FK_ACT_RECEIVE_TIMEOUT] = 1,
        [FK_ACT_FAIL] = 2,        [FK_ACT_UNHANDLED] = 1,    [FK_ACT_WORK] = 3,
        [FK_ACT_YIELD] = 3,       [FK_ACT_FORWARD] = 2
    };
    s->weight_sum = 0;
    for (uint32_t i = 0; i < FK_ACT_COUNT; i++) {
        bool has = i == FK_ACT_TELL || i == FK_ACT_SPAWN || fk__rng_below(rng, 4) != 0;
        s->weight[i] = has ? OFTEN[i] : 0;
        s->weight_sum += s->weight[i];
    }
}

static void draw(fk_swarm *s, fk_drama *d, uint64_t seed)
{
    fk__swarm_draw_plain(s, seed);
    fk_rng rng = { fk__mix64(seed ^ UINT64_C(0x2545F4914F6CDD1D)) | 1 };
    s->actors_first = between(&rng, 1, 5);
    s->actors_alive = between(&rng, 4, 24);
    s->actors_max = 0;
    s->sends_max = between(&rng, 60, 600);
    s->outside_acts = between(&rng, 5, 80);
    s->stale_in = UINT32_C(1) << between(&rng, 1, 4);
    s->mailboxes = fk__rng_below(&rng, 3) == 0 ? 0x03 : 0x01;
    s->overflows = (uint8_t)between(&rng, 1, 0xf);
    s->stop_at = fk__rng_below(&rng, 2) == 0 ? 0 : between(&rng, 20, 2500);
    /* Pinned actors run from the start, when the limit can still change. */
    if (s->memory_spare != 0) s->pinned_max = 0;
    draw_acts(s, &rng);
    *d = (fk_drama){ .depth_max = between(&rng, 1, 4),
                     .fail_in = UINT32_C(1) << between(&rng, 1, 5),
                     .fail_start_in = UINT32_C(1) << between(&rng, 1, 5),
                     .tempers = between(&rng, 1, (1u << FK_TEMPER_COUNT) - 1),
                     .kinds = between(&rng, 1, 7),
                     .watch_in = between(&rng, 2, 12),
                     .hooks = fk__rng_below(&rng, 4),
                     .farewells = fk__rng_below(&rng, 4),
                     .enders = UINT32_C(1) << between(&rng, 1, 5),
                     .has_guardian = fk__rng_below(&rng, 4) == 0,
                     .has_limits = fk__rng_below(&rng, 2) == 0,
                     .sleeps = fk__rng_below(&rng, 3) == 0 };
    if (fk__rng_below(&rng, 2) == 0) d->tempers = 1u << FK_TEMPER_RESTART | 1u << FK_TEMPER_MIXED;
}

/* ---- callbacks ---------------------------------------------------------------------------------------- */

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    fk__lives_event(event);
}

static void on_failure(void *user, const fk_failure *failure)
{
    (void)user;
    if (fk__soul_find(failure->actor) != FK_NOBODY || failure->phase == FK_PHASE_STOP)
        l->failures++;
    else
        l->failures++, v->published++;
}

static void on_letter(void *user, const fk_dead_letter *letter)
{
    if (!fk__lifecycle_is_own(letter->type)) {
        fk__kernel_letter(user, letter);
        return;
    }
    l->letters[letter->reason]++;
}

static void farewell(void *user, fk_system *sys)
{
    (void)sys;
    fk__end_farewell((uint32_t)(uintptr_t)user);
}

/* /user as the program's own. */
static fk_err guardian_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    if (!fk__world_one_in(16)) return FK_OK;
    FK_SOMETIMES_HIT(USER_FAILED);
    return fk_fail(ctx, FK_E_FAILED, "/user");
}

/* ---- looking at it while nobody runs ------------------------------------------------------------------- */

static void note_sure_hooks(void)
{
    for (uint32_t i = 0; i < l->person_count; i++) {
        fk_soul *s = &v->soul[i];
        if (s->is_hook && !l->is_stopping && !s->is_failed) s->is_sure = true;
    }
}

static void watch_rest(fk_time next)
{
    if (fk__kernel.sys == NULL) return;
    if (fk__kernel_is_quiet()) fk__lives_mark_held();
    if (!fk__kernel_watch_rest(next)) return;
    fk__lives_check_rest();
    note_sure_hooks();
}

/* ---- the program ------------------------------------------------------------------------------------------ */

static fk_err boot(fk_system *sys, const fk_props *guardian, const fk_strategy *strategy)
{
    FK_TRY(fk__guardian_create(sys, FK_GUARDIAN_USER, guardian, strategy));
    FK_TRY(fk__guardian_create(sys, FK_GUARDIAN_SYSTEM, NULL, NULL));
    for (uint32_t i = 0; i < fk__lifecycle.drama.hooks; i++) FK_TRY(fk__lifecycle_extra(sys, i));
    return fk__boot_finish(sys, NULL);
}

static fk_err make(const fk_port *port, fk_system **out)
{
    static const fk_props GUARDIAN = { .receive = guardian_receive };
    const fk_swarm *s = fk__world_swarm();
    fk__ledger_begin();
    fk__lives_begin();
    fk_soul *user = &v->user;
    user->strategy = fk__lifecycle_draw_strategy(&user->temper);
    fk_system_config config = { .name = "sim",
                                .throughput = s->throughput,
                                .slice = s->slice,
                                .pools_malloc = s->is_direct,
                                .on_dead_letter = on_letter,
                                .on_failure = on_failure,
                                .on_event = on_event };
    fk_system *sys;
    FK_TRY(fk__system_make(&config, port, s->workers, &sys));
    fk_err err = boot(sys, fk__lifecycle.drama.has_guardian ? &GUARDIAN : NULL, &user->strategy);
    if (err != FK_OK)
        fk__system_destroy(sys);
    else
        *out = sys;
    return err;
}

static void add_farewells(fk_system *sys)
{
    for (uint32_t i = 0; i < fk__lifecycle.drama.farewells; i++) {
        fk_err err = fk_on_termination(sys, farewell, (void *)(uintptr_t)v->farewells);
        if (err == FK_OK) v->farewells++;
    }
}

static bool is_time_to_stop(void)
{
    uint32_t at = fk__world_swarm()->stop_at;
    return at != 0 && l->facts >= at + at / 4;
}

static bool is_time_to_cut(void)
{
    return fk__world_steps() >= fk__lifecycle.end_began + fk__lifecycle.cut;
}

/* In order, but disturbed. */
static void end_and_cut(fk_system *sys)
{
    l->is_stopping = true;
    fk__lifecycle.end_began = fk__world_steps();
    (void)fk_terminate(sys);
    v->is_closed = true;
    fk__world_await(is_time_to_cut);
    fk__lifecycle_cut(fk__lifecycle.cut_how);
}

static void end_all(fk_system *sys)
{
    if (is_time_to_stop())
        FK_SOMETIMES_HIT(ENDED_EARLY);
    else
        FK_SOMETIMES_HIT(ENDED_AT_REST);
    fk__ledger_note(FK_FACT_STOPPING, FK_NOBODY, FK_NOBODY, 0, 0);
    if (fk__lifecycle.cut != 0)
        end_and_cut(sys);
    else
        fk__lifecycle_end();
    if (fk__lifecycle.cut == 0 && fk__world_one_in(4)) fk__lifecycle_end();
    if (fk_await_termination(sys, FK_NEVER) != FK_OK) {
        fk__world_fail("A10", "the system does not stop");
    }
    uint32_t steps = (uint32_t)(fk__world_steps() - fk__lifecycle.end_began);
    fk__ledger_note(FK_FACT_DOWN, FK_NOBODY, FK_NOBODY, steps, 0);
    if (v->farewells_said != v->farewells) fk__world_fail("A10", "farewells come too late");
    fk_err late = fk_on_termination(sys, farewell, NULL);
    FK_SOMETIMES_HIT(FAREWELL_LATE);
    bool lacks = late == FK_E_NOMEM || late == FK_E_LIMIT;
    if (late != FK_E_STOPPING && !lacks) fk__world_fail("A10", "a farewell after the end");
    fk__person_check_ended();
    fk__kernel_destroy(sys);
}

static void lifecycle_main(void *arg, uint32_t thread)
{
    const fk_swarm *s = fk__world_swarm();
    (void)arg;
    (void)thread;
    fk__kernel_create(make);
    fk_system *sys = fk__kernel.sys;
    add_farewells(sys);
    for (uint32_t i = 0; i < s->actors_first; i++) fk__lifecycle_spawn(NULL, FK_NOBODY, 0);
    for (uint32_t i = 0; i < s->actors_first * 2; i++) {
        uint32_t to = fk__kernel_pick();
        if (to == FK_NOBODY || l->person[to].overflow == FK_OVERFLOW_BLOCK) continue;
        fk__kernel_send(NULL, FK_NOBODY, to, 0);
    }
    fk__kernel_begin_faults(sys);
    fk__kernel.outsiders = s->outsiders;
    for (uint32_t i = 0; i < s->outsiders; i++) {
        FK_ASSERT(fk__world_spawn(fk__lifecycle_outsider, NULL));
    }
    fk__kernel_start_workers(sys);
    fk__world_await(is_time_to_stop);
    end_all(sys);
    fk__kernel_check_end();
    fk__lives_check_ended();
}

static const char *run(const fk_swarm *swarm)
{
    static const fk_world_watch WATCH = { fk__kernel_watch_pause, watch_rest };
    fk__kernel = (fk_kernel){ .receive = { fk__lifecycle_receive[0], fk__lifecycle_receive[1] } };
    fk__world_begin(swarm);
    fk__ledger_begin();
    fk__kernel_note_machine(swarm);
    const char *found = fk__world_run(lifecycle_main, &WATCH);
    if (found == NULL) found = fk__quarantine_end();
    return found;
}

const char *fk__lifecycle_run(uint64_t seed)
{
    fk_swarm swarm;
    fk__lifecycle = (fk_lifecycle){ 0 };
    draw(&swarm, &fk__lifecycle.drama, seed);
    return run(&swarm);
}

/* A small tree with hooks that comes to rest by itself, and then ends. */
const char *fk__termination_run(uint64_t seed)
{
    fk_swarm swarm;
    fk_drama *d = &fk__lifecycle.drama;
    uint64_t mixed = fk__mix64(seed * 2 + 1);
    fk__lifecycle = (fk_lifecycle){ .cut = 1 + (uint32_t)(seed % FK_CUT_STEPS),
                                    .cut_how = (fk_cut_how)(mixed % FK_CUT_COUNT) };
    draw(&swarm, d, seed / FK_CUT_STEPS);
    swarm.stop_at = 0;
    swarm.actors_first = 3;
    swarm.actors_alive = 4;
    swarm.sends_max = 40;
    swarm.outsiders = 1;
    swarm.outside_acts = 10;
    swarm.pinned_max = 0;
    swarm.workers = 1 + swarm.workers % 2;
    d->hooks = 1;
    d->has_guardian = false;
    d->tempers = 1u << FK_TEMPER_RESTART | 1u << FK_TEMPER_RESUME; /* the end is ours to begin */
    return run(&swarm);
}

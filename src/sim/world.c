/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/world.h"

#include "sim/crash.h"
#include "sim/fiber.h"
#include "sim/quarantine.h"
#include "sim/sometimes.h"
#include "sim/world_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Pauses and rests in a run; the longest good ones have some hundreds. */
static const uint32_t LOOKS_MAX = 5000;

fk_world fk__world;

static fk_world *const w = &fk__world;
static fk_fiber *aside; /* runs the watch */
static char failure[256];
static char invariant[16];

/* ---- findings ---------------------------------------------------------------------------- */

static _Noreturn void leave(void)
{
    if (fk__machine_self() != FK_MACHINE_NOBODY) fk__machine_fail(failure);
    if (fk__fiber_self() == NULL) {
        fprintf(stderr, "fraktor-sim: %s: %s, outside of any run\n", invariant, failure);
        exit(2);
    }
    fk__fiber_switch(NULL);
    abort();
}

void fk__world_fail(const char *which, const char *format, ...)
{
    if (failure[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure, sizeof(failure), format, arguments);
        va_end(arguments);
        snprintf(invariant, sizeof(invariant), "%s", which);
    }
    leave();
}

void fk__world_assert_failed(const char *file, int line)
{
    fk__world_fail("assertion", "%s:%d", file, line);
}

static void crashed(const char *what)
{
    fk__world_fail("crash", "%s", what);
}

const char *fk__world_invariant(void)
{
    return invariant;
}

/* ---- who goes on ------------------------------------------------------------------------- */

static uint32_t nth_bit(uint32_t mask, uint32_t n)
{
    for (; n > 0; n--) mask &= mask - 1;
    return (uint32_t)__builtin_ctz(mask);
}

static void stall(uint32_t bit, uint64_t draw)
{
    w->stalled = bit;
    w->stall_end = w->decisions + (UINT64_C(32) << (draw >> 20 & 7));
    FK_SOMETIMES_HIT(STALLED_THREAD);
}

void fk__world_linger(void)
{
    if (w->linger_after != 0) return;
    w->linger_thread = fk__machine_self();
    w->linger_after = 1 + fk__world_below(12);
}

/* Mostly whoever ran last. A thread that is left may be left for long: many races need one thread
 * to stand still in the middle of something while the others do a lot. */
static uint32_t choose(void *ctx, const fk_machine *m, uint32_t mask)
{
    (void)ctx;
    const fk_swarm *s = &w->swarm;
    uint64_t draw = fk__rng_next(&w->schedule);
    uint32_t last = fk__machine_last(m);
    uint32_t bit = last < FK_MACHINE_THREADS_MAX ? UINT32_C(1) << last : 0;
    w->now += s->step_ns;
    w->decisions++;
    if (w->decisions >= w->stall_end) w->stalled = 0;
    if ((mask & bit & ~w->stalled) != 0) {
        bool lingers = w->linger_after != 0 && last == w->linger_thread && --w->linger_after == 0;
        if (lingers)
            stall(bit, draw);
        else if ((draw & (s->switch_in - 1)) != 0)
            return last;
        bool may_stall = s->stall_in != 0 && w->stalled == 0 && w->linger_after == 0;
        if (may_stall && (draw >> 8 & (s->stall_in - 1)) == 0) stall(bit, draw);
    }
    uint32_t choices = mask & ~(w->stalled | w->stalled << FK_ACTION_FLUSH);
    if (choices == 0) choices = mask;
    uint32_t count = (uint32_t)__builtin_popcount(choices);
    return nth_bit(choices, (uint32_t)((draw >> 40) % count));
}

static void strand_main(void *arg, uint32_t thread)
{
    fk_strand *strand = arg;
    strand->fn(strand->arg, thread);
    strand->state = FK_STRAND_DONE;
}

bool fk__world_spawn(fk_machine_thread_fn *fn, void *arg)
{
    if (w->strand_count == FK_MACHINE_THREADS_MAX) return false;
    fk_strand *strand = &w->strand[w->strand_count++];
    *strand = (fk_strand){ .state = FK_STRAND_ACTIVE, .deadline = FK_NEVER, .fn = fn, .arg = arg };
    fk__machine_spawn(w->machine, strand_main, strand);
    return true;
}

uint32_t fk__world_start(fk_machine_thread_fn *fn, void *arg)
{
    uint32_t i = 0;
    while (i < w->strand_count && w->strand[i].state != FK_STRAND_DONE) i++;
    if (i == w->strand_count) return fk__world_spawn(fn, arg) ? i : FK_MACHINE_NOBODY;
    w->strand[i] =
        (fk_strand){ .state = FK_STRAND_ACTIVE, .deadline = FK_NEVER, .fn = fn, .arg = arg };
    fk__machine_revive(w->machine, i, strand_main, &w->strand[i]);
    return i;
}

void fk__world_kill(uint32_t thread)
{
    fk__machine_kill(w->machine, thread);
    w->strand[thread].state = FK_STRAND_DONE;
}

void fk__world_freeze(uint32_t thread, bool is_frozen)
{
    fk__machine_freeze(w->machine, thread, is_frozen);
    w->strand[thread].is_frozen = is_frozen;
}

uint32_t fk__world_self(void)
{
    return fk__machine_self();
}

static bool awaited(void *unused)
{
    (void)unused;
    return w->at_rest || w->awaited();
}

void fk__world_await(bool (*cond)(void))
{
    fk_strand *strand = &w->strand[fk__machine_self()];
    strand->state = FK_STRAND_WAITING;
    w->awaited = cond;
    w->at_rest = false;
    fk__machine_await(awaited, NULL);
    strand->state = FK_STRAND_ACTIVE;
}

/* ---- the run ----------------------------------------------------------------------------- */

void fk__world_begin(const fk_swarm *swarm)
{
    fk_machine *machine = w->machine;
    if (machine == NULL) {
        machine = fk__machine_create();
        aside = fk__fiber_create(FK_FIBER_STACK_SIZE);
        if (machine == NULL || aside == NULL) {
            fputs("fraktor-sim: out of memory\n", stderr);
            exit(2);
        }
        fk__crash_install(crashed);
    }
    *w = (fk_world){ .swarm = *swarm, .machine = machine };
    w->chance.state = fk__mix64(swarm->seed + UINT64_C(0x5851F42D4C957F2D)) | 1;
    w->schedule.state = fk__mix64(swarm->seed ^ UINT64_C(0x14057B7EF767814F)) | 1;
    w->now = FK_SECONDS(1000) + (fk_time)(fk__rng_next(&w->chance) % 1000000007);
    failure[0] = invariant[0] = '\0';
    fk__quarantine_reset();
    fk__machine_reset(machine, &(fk_machine_config){ .memory = swarm->memory, .choose = choose });
}

const fk_swarm *fk__world_swarm(void)
{
    return &w->swarm;
}

typedef struct glance {
    const fk_world_watch *watch;
    bool is_rest;
    fk_time next;
} glance;

static void glance_main(void *arg)
{
    const glance *g = arg;
    if (g->is_rest)
        g->watch->rest(g->next);
    else
        g->watch->pause();
}

static bool look(glance g)
{
    fk__fiber_start(aside, glance_main, &g);
    fk__fiber_switch(aside);
    return failure[0] == '\0';
}

/* When a sleeping thread wakes by itself. */
static fk_time wakes_at(const fk_strand *strand)
{
    if (strand->input == NULL) return strand->deadline;
    fk_time at = strand->input(strand->input_arg);
    return at < strand->deadline ? at : strand->deadline;
}

/* Everybody sleeps: time goes to where the first of them wakes. False: a finding. */
static bool pass_time(const fk_world_watch *watch)
{
    fk_time first = FK_NEVER;
    bool locked = false, waits = false;
    for (uint32_t i = 0; i < w->strand_count; i++) {
        const fk_strand *s = &w->strand[i];
        if (s->is_frozen) continue;
        locked = locked || s->state == FK_STRAND_ACTIVE;
        waits = waits || s->state == FK_STRAND_WAITING;
        if (s->state == FK_STRAND_ASLEEP && wakes_at(s) < first) first = wakes_at(s);
    }
    if (locked) {
        snprintf(invariant, sizeof(invariant), "A5");
        snprintf(failure, sizeof(failure), "deadlock: threads wait for each other's locks");
        return false;
    }
    if (!look((glance){ watch, true, first })) return false;
    if (first != FK_NEVER) {
        if (first > w->now) w->now = first;
        w->now += w->swarm.late_ns == 0 ? 0 : fk__world_below((uint32_t)w->swarm.late_ns);
        if (fk__world_one_in(w->swarm.jump_in)) {
            w->now += FK_MILLIS(1 + fk__world_below(20000));
            FK_SOMETIMES_HIT(CLOCK_JUMP);
        }
        return true;
    }
    if (!waits || w->at_rest) {
        snprintf(invariant, sizeof(invariant), "A5");
        snprintf(failure, sizeof(failure), "everybody sleeps and nobody will wake them");
        return false;
    }
    w->at_rest = true;
    return true;
}

const char *fk__world_run(fk_machine_thread_fn *main_fn, const fk_world_watch *watch)
{
    fk__world_spawn(main_fn, NULL);
    for (uint32_t looks = 0;; looks++) {
        fk_outcome outcome = fk__machine_run(w->machine, FK_WORLD_PAUSE);
        if (looks == (w->swarm.looks_max != 0 ? w->swarm.looks_max : LOOKS_MAX)) {
            snprintf(invariant, sizeof(invariant), "A5");
            return "livelock: more steps than any good run makes";
        }
        switch (outcome) {
        case FK_OUTCOME_DONE: return NULL;
        case FK_OUTCOME_STUCK:
            if (!pass_time(watch)) return failure;
            break;
        case FK_OUTCOME_PAUSED:
            if (!look((glance){ watch, false, 0 })) return failure;
            break;
        case FK_OUTCOME_FAILED:
        case FK_OUTCOME_DIVERGED:
            if (invariant[0] == '\0') snprintf(invariant, sizeof(invariant), "memory");
            return fk__machine_failure(w->machine);
        }
    }
}

uint64_t fk__world_steps(void)
{
    return fk__machine_steps(w->machine);
}

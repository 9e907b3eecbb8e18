/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/kernel.h"

#include "base/base.h"
#include "core/mailbox.h"
#include "sim/quarantine.h"
#include "sim/sometimes.h"

fk_kernel fk__kernel;

static fk_ledger *const l = &fk__ledger;

enum { RESTS_WITH_FAULTS = 200 };

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind == FK_EVENT_STOPPED) fk__person_stopped(event->actor);
}

static void on_failure(void *user, const fk_failure *failure)
{
    (void)user;
    fk__person_failed(failure->actor);
}

/* ---- looking at it while nobody runs ----------------------------------------------------- */

/* What holds of every cell at every moment, whoever stands where. */
static void check_cell(const fk_cell *cell, bool is_sc)
{
    uintptr_t tail = fk__word_load(&cell->tail, FK_RELAXED);
    bool is_idle = (tail & FK_TAIL_IDLE) != 0;
    bool is_alive = (fk__half_load(&cell->generation, FK_RELAXED) & 1) != 0;
    FK_ASSERT(cell->head != NULL);
    if (!is_idle) return;
    bool takes = cell->life == FK_LIFE_RUNNING && cell->suspended == 0;
    FK_ASSERT(!takes || (tail & ~FK_TAIL_IDLE) == (uintptr_t)cell->head);
    FK_ASSERT(!is_sc || is_alive == (cell->life != FK_LIFE_FREE));
}

static void check_worker(const fk_worker *worker)
{
    if (worker->wheel_lock.word == 0) fk__wheel_check(&worker->wheel);
    FK_ASSERT(worker->overflow_first != NULL || worker->overflow_len == 0);
    if (worker->overflow_len != 0) FK_SOMETIMES_HIT(OVERFLOW);
}

void fk__kernel_watch_pause(void)
{
    const fk_system *sys = fk__kernel.sys;
    bool is_sc = fk__world_swarm()->memory == FK_MEMORY_SC;
    if (sys == NULL) return;
    for (uint32_t i = 0; i < sys->slots.chunks * FK_CHUNK_CELLS; i++) {
        const fk_cell *cell = fk__slots_at(&sys->slots, i);
        if (cell != NULL) check_cell(cell, is_sc); /* NULL: not yet in memory */
    }
    for (uint32_t i = 0; i < sys->dispatch.workers; i++) check_worker(sys->dispatch.worker[i]);
}

static bool is_ready(const fk_worker *worker)
{
    return fk__word_load(&worker->next, FK_RELAXED) != 0 ||
           fk__word_load(&worker->inbox, FK_RELAXED) != 0 || fk__ready_len(worker) != 0 ||
           worker->overflow_first != NULL;
}

bool fk__kernel_is_quiet(void)
{
    const fk_system *sys = fk__kernel.sys;
    bool is_busy = fk__word_load(&sys->dispatch.inject, FK_RELAXED) != 0;
    for (uint32_t i = 0; i < sys->dispatch.workers; i++) {
        is_busy = is_busy || is_ready(sys->dispatch.worker[i]);
    }
    for (const fk_worker *w = sys->dispatch.pinned; w != NULL; w = w->pinned_next) {
        is_busy = is_busy || is_ready(w);
    }
    return !is_busy;
}

static void check_nothing_ready(const fk_worker *worker)
{
    if (is_ready(worker))
        fk__world_fail("A5", "worker %u sleeps on ready actors", (unsigned)worker->id);
}

/* A timer that finds no memory tries again each tick, for ever if need be: there is an end to all
 * faults, and from then on everything must come to rest. */
static void heal(fk_system *sys)
{
    if (++fk__kernel.rests < RESTS_WITH_FAULTS) return;
    fk__world_set_faults(false);
    fk__world_set_limit(0);
    sys->mem.max = 0;
}

bool fk__kernel_watch_rest(fk_time next)
{
    fk_system *sys = fk__kernel.sys;
    bool for_ever = next == FK_NEVER;
    if (sys == NULL) return false;
    heal(sys);
    fk__ledger_note(FK_FACT_REST, FK_NOBODY, FK_NOBODY, 0, for_ever);
    if (fk__kernel.drowsy != 0) return false;
    for (uint32_t i = 0; i < sys->dispatch.workers; i++) {
        check_nothing_ready(sys->dispatch.worker[i]);
        check_worker(sys->dispatch.worker[i]);
    }
    for (const fk_worker *w = sys->dispatch.pinned; w != NULL; w = w->pinned_next) {
        check_nothing_ready(w);
    }
    if (fk__word_load(&sys->dispatch.inject, FK_RELAXED) != 0) {
        fk__world_fail("A5", "everybody sleeps on injected actors");
    }
    fk__mail_check_rest();
    if (for_ever && fk__kernel.outsiders != 0) fk__world_fail("A5", "a sender sleeps for ever");
    fk__system_check(sys);
    fk__alarm_check_due(next);
    return true;
}

static void watch_rest(fk_time next)
{
    fk__kernel_watch_rest(next);
}

/* ---- the program ------------------------------------------------------------------------- */

static fk_err make(const fk_port *port, fk_system **out)
{
    const fk_swarm *s = fk__world_swarm();
    const fk_strategy stopping = { .decide = fk_decide_stop };
    fk_system_config config = { .name = "sim",
                                .user_strategy = &stopping,
                                .throughput = s->throughput,
                                .slice = s->slice,
                                .actors_max = s->actors_max,
                                .pools_malloc = s->is_direct,
                                .on_dead_letter = fk__kernel_letter,
                                .on_failure = on_failure,
                                .on_event = on_event };
    return fk__system_create(&config, port, s->workers, out);
}

void fk__kernel_create(fk_err (*make_fn)(const fk_port *port, fk_system **out))
{
    bool may_fail = fk__world_swarm()->creation_fails;
    fk_port port = fk__world_port();
    fk_system *sys = NULL;
    fk__world_set_faults(may_fail);
    while (make_fn(&port, &sys) != FK_OK) {
        FK_SOMETIMES_HIT(CREATION_FAILED);
        if (!may_fail) fk__world_fail("A14", "the system cannot be created");
        if (fk__world_bytes() != 0) fk__world_fail("A14", "a failed creation leaves memory");
        if (fk__world_one_in(3)) fk__world_set_faults(false);
    }
    fk__world_set_faults(false);
    sys->host = (fk_host_ops){ .pin = fk__kernel_pin,
                               .wake = fk__world_worker_wake,
                               .is_inside = fk__kernel_is_inside,
                               .reporting = fk__kernel_reporting };
    fk__kernel.sys = sys;
}

void fk__kernel_start_workers(fk_system *sys)
{
    for (uint32_t i = 0; i < sys->dispatch.workers; i++) {
        fk__kernel.threads++;
        FK_ASSERT(fk__world_spawn(fk__kernel_worker, sys->dispatch.worker[i]));
    }
}

void fk__kernel_begin_faults(fk_system *sys)
{
    const fk_swarm *s = fk__world_swarm();
    l->may_lack_memory = s->fail_in != 0 || s->memory_spare != 0;
    fk__world_set_faults(true);
    fk__kernel.has_begun = true;
    if (s->memory_spare == 0) return;
    sys->mem.max = fk__world_bytes() + s->memory_spare;
    fk__world_set_limit(sys->mem.max);
}

/* Nobody works before all is set up: in a solo run, and while the memory's limit can still change. */
static bool begins_still(const fk_swarm *s)
{
    return s->is_solo || s->memory_spare != 0;
}

/* What there is before anything may fail. */
static void populate(fk_system *sys)
{
    const fk_swarm *s = fk__world_swarm();
    bool is_early = !begins_still(s) && fk__world_one_in(2);
    if (is_early) fk__kernel_start_workers(sys);
    for (uint32_t i = 0; i < s->actors_first; i++) fk__kernel_spawn(NULL, FK_NOBODY, false);
    if (!is_early && !begins_still(s)) fk__kernel_start_workers(sys);
    for (uint32_t i = 0; i < s->actors_first * 2; i++) {
        uint32_t to = fk__kernel_pick();
        /* It would wait for workers that are not there yet: pinned actors send, too. */
        bool waits = begins_still(s) && to != FK_NOBODY &&
                     l->person[to].overflow == FK_OVERFLOW_BLOCK &&
                     (l->person[to].pending != 0 || s->pinned_max != 0);
        if (!waits) fk__kernel_send(NULL, FK_NOBODY, to, 0);
    }
}

static bool is_time_to_stop(void)
{
    uint32_t at = fk__world_swarm()->stop_at;
    return at != 0 && l->facts >= at;
}

static bool are_outsiders_done(void)
{
    return fk__kernel.outsiders == 0;
}

static bool is_never(void)
{
    return false;
}

static bool are_threads_done(void)
{
    return fk__kernel.threads == 0;
}

static void check_stats(fk_system *sys)
{
    fk_stats stats;
    fk_stats_get(sys, &stats);
    uint64_t silent = 0;
    for (int i = 0; i < FK_REASON_COUNT; i++) {
        silent += stats.dead_letters[i] - l->letters[i];
        if (stats.dead_letters[i] >= l->letters[i]) continue;
        fk__world_fail("A1", "%llu dead letters \"%s\" counted, %llu seen",
                       (unsigned long long)stats.dead_letters[i], fk_reason_name((fk_reason)i),
                       (unsigned long long)l->letters[i]);
    }
    if (silent != l->silent) {
        fk__world_fail("A1", "%llu dead letters were not reported", (unsigned long long)silent);
    }
    if (stats.spawned < l->spawned || stats.spawned > l->spawned + l->hidden) {
        fk__world_fail("A15", "the count of spawns is wrong");
    }
    if (stats.failures != l->failures) fk__world_fail("A15", "the count of failures is wrong");
    if (stats.timers != 0) fk__world_fail("A14", "timers are left");
    if (stats.processed < l->received) fk__world_fail("A15", "the count of messages is wrong");
    if (stats.steals != 0) FK_SOMETIMES_HIT(STEAL);
    if (fk__half_load(&sys->dispatch.calm, FK_RELAXED) != 0) FK_SOMETIMES_HIT(CALM);
}

/* As fk_system_stop() does it. */
static void stop_and_destroy(fk_system *sys)
{
    fk_ref root = fk__cell_ref(sys->top.root);
    fk__ledger_note(FK_FACT_STOPPING, FK_NOBODY, FK_NOBODY, 0, 0);
    l->is_stopping = true;
    if (fk__world_one_in(2))
        fk_terminate(sys);
    else
        fk_terminate_now(sys);
    if (fk__world_one_in(4)) fk_terminate(sys); /* twice is once */
    if (fk_await_stopped(sys, root, FK_NEVER) != FK_OK) {
        fk__world_fail("A14", "the system does not stop");
    }
    fk__ledger_note(FK_FACT_DOWN, FK_NOBODY, FK_NOBODY, 0, 0);
    if (!fk__system_is_down(sys)) fk__world_fail("A14", "stopped, and not down");
    fk__person_check_ended();
    fk__kernel_destroy(sys);
}

void fk__kernel_destroy(fk_system *sys)
{
    fk__world_await(are_outsiders_done);
    fk__world_await(is_never); /* the counters are exact at rest */
    check_stats(sys);
    fk__dispatch_shutdown(sys);
    fk__world_await(are_threads_done);
    if (fk__kernel.threads != 0) fk__world_fail("A14", "a worker never returned");
    fk__kernel.sys = NULL;
    l->is_ending = true;
    fk__system_destroy(sys);
    fk__ledger_note(FK_FACT_GONE, FK_NOBODY, FK_NOBODY, 0, 0);
}

void fk__kernel_check_end(void)
{
    fk__person_check_ended();
    fk__mail_check_ended();
    fk__alarm_check_ended();
    fk__call_check_ended();
    if (fk__world_bytes() != 0) fk__world_fail("A14", "%zu bytes are left", fk__world_bytes());
    if (l->received == 0 && !l->is_disturbed && !l->is_supervised &&
        fk__world_swarm()->stop_at == 0) {
        fk__world_fail("progress", "no message was handled");
    }
}

static void kernel_main(void *arg, uint32_t thread)
{
    const fk_swarm *s = fk__world_swarm();
    (void)arg;
    (void)thread;
    fk__kernel_create(make);
    fk_system *sys = fk__kernel.sys;
    sys->quarantine = FK_MILLIS(2); /* a run is shorter than a second */
    populate(sys);
    fk__kernel_begin_faults(sys);
    fk__kernel.outsiders = s->outsiders;
    for (uint32_t i = 0; i < s->outsiders; i++) {
        FK_ASSERT(fk__world_spawn(fk__kernel_outsider, NULL));
    }
    if (begins_still(s)) fk__kernel_start_workers(sys);
    fk__world_await(is_time_to_stop);
    if (is_time_to_stop())
        FK_SOMETIMES_HIT(ENDED_EARLY);
    else
        FK_SOMETIMES_HIT(ENDED_AT_REST);
    stop_and_destroy(sys);
    fk__kernel_check_end();
}

void fk__kernel_note_machine(const fk_swarm *swarm)
{
    if (swarm->memory != FK_MEMORY_SC) FK_SOMETIMES_HIT(WEAK_MEMORY);
    if (swarm->is_direct)
        FK_SOMETIMES_HIT(DIRECT_BLOCKS);
    else
        FK_SOMETIMES_HIT(POOLED_BLOCKS);
}

const char *fk__kernel_run(uint64_t seed)
{
    static const fk_world_watch WATCH = { fk__kernel_watch_pause, watch_rest };
    fk_swarm swarm;
    fk__swarm_draw(&swarm, seed);
    fk__kernel = (fk_kernel){ .receive = { fk__kernel_receive[0], fk__kernel_receive[1] } };
    fk__world_begin(&swarm);
    fk__ledger_begin();
    fk__kernel_note_machine(&swarm);
    const char *found = fk__world_run(kernel_main, &WATCH);
    if (found == NULL) found = fk__quarantine_end();
    return found;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads around the system: its workers, as the host runs them, and outside threads. */

#include "sim/kernel.h"

#include "base/base.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;

/* ---- workers ----------------------------------------------------------------------------- */

/* Between turns, on the worker's own thread: ready actors change places, and the next one gets
 * another budget. Only what a slower or faster worker might have done as well. */
static void shuffle(fk_worker *worker)
{
    fk_system *sys = worker->sys;
    uint32_t len = fk__ready_len(worker);
    FK_SOMETIMES_HIT(SHUFFLED);
    if (len > 1) {
        for (uint32_t i = fk__world_below(len); i > 0; i--) {
            fk_cell *cell = fk__ready_pop(worker);
            if (cell != NULL) fk__ready_push(worker, cell);
        }
    }
    sys->throughput = 1 + fk__world_below(fk__world_swarm()->throughput);
    if (fk__world_one_in(4)) worker->budget = fk__world_below(worker->budget + 1);
}

/* The loop of the host's threads. */
void fk__kernel_worker(void *arg, uint32_t thread)
{
    fk_worker *worker = arg;
    bool shuffles = fk__world_swarm()->shuffles && !worker->is_pinned;
    (void)thread;
    for (;;) {
        uint32_t seen = fk__world_word(worker->id);
        fk_time wait = fk__worker_run(worker, shuffles ? 1 + fk__world_below(3) : UINT32_MAX);
        if (wait == FK_WORKER_EXIT) break;
        if (wait != 0) fk__world_worker_wait(worker->id, seen, wait);
        else shuffle(worker);
    }
    fk__kernel.threads--;
}

fk_err fk__kernel_pin(void *ctx, fk_worker *worker)
{
    (void)ctx;
    if (fk__kernel.pinned >= fk__world_swarm()->pinned_max) return FK_E_OS;
    if (worker->id >= FK_WORLD_WORDS) return FK_E_OS;
    fk__kernel.threads++;
    fk__kernel.pinned++;
    if (fk__world_spawn(fk__kernel_worker, worker)) return FK_OK;
    fk__kernel.threads--;
    fk__kernel.pinned--;
    return FK_E_OS;
}

/* ---- outside threads --------------------------------------------------------------------- */

static void await_stopped(void)
{
    uint32_t actor = fk__kernel_pick();
    if (actor == FK_NOBODY) return;
    fk_time timeout = (fk_time)fk__world_below((uint32_t)FK_MILLIS(5));
    fk_time before = fk__world_now();
    fk_err err = fk_await_stopped(fk__kernel.sys, l->person[actor].ref, timeout);
    fk__ledger_note(FK_FACT_AWAIT, actor, FK_NOBODY, 0, (uint32_t)err);
    if (err == FK_OK) {
        FK_SOMETIMES_HIT(AWAITED);
        if (!l->person[actor].is_gone) fk__world_fail("A4", "a%u is not gone", (unsigned)actor);
    } else {
        FK_SOMETIMES_HIT(AWAIT_TIMEOUT);
        bool is_early = fk__world_now() - before < timeout;
        if (err != FK_E_TIMEOUT || is_early) fk__world_fail("A11", "await ended early");
    }
}

static void unsent_payload(void)
{
    fk_payload *payload;
    if (fk_payload_create(fk__kernel.sys, NULL, fk__world_below(10000), &payload) != FK_OK) return;
    FK_SOMETIMES_HIT(UNSENT_PAYLOAD);
    fk_payload_put(payload);
}

static void look_at_stats(void)
{
    fk_stats stats;
    fk_stats_get(fk__kernel.sys, &stats);
    if (stats.spawned > l->person_count) fk__world_fail("A15", "more spawned than asked for");
}

static void act_outside(void)
{
    uint32_t draw = fk__world_below(100);
    if (draw < 55) fk__kernel_send(NULL, FK_NOBODY, fk__kernel_pick(), 0);
    else if (draw < 60) fk__kernel_spawn(NULL, FK_NOBODY, false);
    else if (draw < 65) fk__kernel_spawn(NULL, FK_NOBODY, true);
    else if (draw < 69) fk__kernel_stop_other(FK_NOBODY);
    else if (draw < 71) fk__kernel_poison();
    else if (draw < 76) fk__kernel_send_parcel(NULL, FK_NOBODY);
    else if (draw < 80) fk__kernel_send_bogus(NULL, FK_NOBODY);
    else if (draw < 84) await_stopped();
    else if (draw < 87) unsent_payload();
    else if (draw < 89) look_at_stats();
    else fk__world_sleep((fk_time)fk__world_below((uint32_t)FK_MILLIS(3)));
}

void fk__kernel_outsider(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    uint32_t acts = fk__world_swarm()->outside_acts;
    for (uint32_t i = 0; i < acts; i++) act_outside();
    fk__kernel.outsiders--;
}

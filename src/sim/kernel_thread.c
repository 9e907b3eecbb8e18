/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The threads around the system: its workers, as the host runs them, and outside threads. */

#include "sim/kernel.h"

#include "base/base.h"
#include "sim/sometimes.h"

static fk_ledger *const l = &fk__ledger;

/* ---- workers ----------------------------------------------------------------------------- */

/* In the middle of a receive, on the worker's own thread: ready actors change places, and the next
 * ones get another budget. Only what a slower or faster worker might have done as well. */
void fk__kernel_shuffle(fk_worker *worker)
{
    uint32_t len = fk__ready_len(worker);
    FK_SOMETIMES_HIT(SHUFFLED);
    if (len > 1) {
        for (uint32_t i = fk__world_below(len); i > 0; i--) {
            fk_cell *cell = fk__ready_pop(worker);
            if (cell != NULL) fk__ready_push(worker, cell);
        }
    }
    worker->sys->throughput = 1 + fk__world_below(fk__world_swarm()->throughput);
}

/* The loop of the host's threads. */
void fk__kernel_worker(void *arg, uint32_t thread)
{
    fk_worker *worker = arg;
    bool returns = fk__world_swarm()->shuffles; /* after each window of turns, too */
    fk__kernel.insiders |= UINT32_C(1) << thread;
    for (;;) {
        uint32_t seen = fk__world_word(worker->id);
        fk_time wait = fk__worker_run(worker, returns ? 1 : UINT32_MAX);
        if (wait == FK_WORKER_EXIT) break;
        if (wait != 0) fk__world_worker_wait(worker->id, seen, wait);
    }
    fk__kernel.threads--;
}

bool fk__kernel_is_inside(void *ctx)
{
    (void)ctx;
    return (fk__kernel.insiders >> fk__world_self() & 1) != 0;
}

fk_reporting *fk__kernel_reporting(void *ctx)
{
    (void)ctx;
    return &fk__kernel.reporting[fk__world_self()];
}

static bool has_begun(void *unused)
{
    (void)unused;
    return fk__kernel.has_begun || fk__world_swarm()->memory_spare == 0;
}

/* As the other workers, it does nothing while the memory's limit can still change. */
static void pinned_worker(void *arg, uint32_t thread)
{
    if (!has_begun(NULL)) fk__machine_await(has_begun, NULL);
    fk__kernel_worker(arg, thread);
}

fk_err fk__kernel_pin(void *ctx, fk_worker *worker)
{
    (void)ctx;
    if (fk__kernel.pinned >= fk__world_swarm()->pinned_max) return FK_E_OS;
    if (worker->id >= FK_WORLD_WORDS) return FK_E_OS;
    fk__kernel.threads++;
    fk__kernel.pinned++;
    if (fk__world_spawn(pinned_worker, worker)) return FK_OK;
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
    if (stats.spawned > l->person_count + l->hidden)
        fk__world_fail("A15", "more spawned than asked for");
}

static void act_outside(void)
{
    uint32_t draw = fk__world_below(100);
    if (draw < fk__world_swarm()->outside_sends) {
        fk__kernel_send(NULL, FK_NOBODY, fk__kernel_pick(), 0);
        return;
    }
    switch (fk__world_below(22)) {
    case 0:
    case 1: fk__kernel_spawn(NULL, FK_NOBODY, false); break;
    case 2:
    case 3: fk__kernel_spawn(NULL, FK_NOBODY, true); break;
    case 4: fk__kernel_stop_other(FK_NOBODY); break;
    case 5: fk__kernel_poison(); break;
    case 6:
    case 7: fk__kernel_send_parcel(NULL, FK_NOBODY); break;
    case 8: fk__kernel_send_bogus(NULL, FK_NOBODY); break;
    case 9: await_stopped(); break;
    case 10: unsent_payload(); break;
    case 11: look_at_stats(); break;
    case 12: fk__kernel_look_at_path(); break;
    case 13:
    case 14: fk__kernel_resolve(); break;
    case 15: fk__kernel_identify(); break;
    case 16: fk__kernel_select(NULL, FK_NOBODY); break;
    case 17: fk__kernel_call(); break;
    case 18: fk__kernel_claim(); break;
    default:
        if (fk__world_swarm()->is_churning)
            fk__kernel_stop_other(FK_NOBODY);
        else
            fk__world_sleep((fk_time)fk__world_below((uint32_t)FK_MILLIS(3)));
        break;
    }
}

void fk__kernel_outsider(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    uint32_t acts = fk__world_swarm()->outside_acts;
    for (uint32_t i = 0; i < acts; i++) act_outside();
    fk__kernel.outsiders--;
}

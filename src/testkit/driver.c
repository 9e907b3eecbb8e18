/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who runs next, and when time moves. A worker runs as it does on a thread of its own, but returns
 * after each turn. */

#include "core/mailbox.h"
#include "core/timer.h"
#include "testkit/sim.h"

/* ---- workers ----------------------------------------------------------------------------- */

/* All of them: *worker is NULL at first. */
static bool next_worker(const fk_sim *sim, fk_worker **worker)
{
    fk_dispatch *dispatch = &sim->sys->dispatch;
    if (*worker == NULL)
        *worker = dispatch->worker[0];
    else
        *worker = *worker == dispatch->worker[0] ? dispatch->pinned : (*worker)->pinned_next;
    return *worker != NULL;
}

/* Everything that is ready goes to the ring, where it can be chosen from. */
static uint32_t gather(fk_worker *worker)
{
    fk__ready_take_stack(worker, &worker->inbox);
    if (worker->source != &worker->inbox) fk__ready_take_stack(worker, worker->source);
    fk_cell *next = fk__ready_take_next(worker);
    if (next != NULL) fk__ready_push(worker, next);
    return fk__ready_len(worker);
}

static fk_worker *draw_worker(fk_sim *sim)
{
    fk_worker *worker = NULL, *drawn = NULL;
    uint32_t ready = 0;
    while (next_worker(sim, &worker)) {
        if (gather(worker) == 0) continue;
        ready++;
        /* Each of those so far with the same chance. */
        if (drawn == NULL || (!sim->in_order && fk__sim_below(sim, ready) == 0)) drawn = worker;
    }
    return drawn;
}

/* One of the ready cells, up to a ringful of them, changes places with the first. */
static fk_cell *draw_cell(fk_sim *sim, fk_worker *worker)
{
    uint32_t len = fk__ready_len(worker);
    uint32_t top = fk__half_load(&worker->top, FK_RELAXED);
    fk_word *first = &worker->ring[top % FK_RING];
    if (!sim->in_order && len > 1) {
        fk_word *drawn = &worker->ring[(top + fk__sim_below(sim, len)) % FK_RING];
        uintptr_t cell = fk__word_load(drawn, FK_RELAXED);
        fk__word_store(drawn, fk__word_load(first, FK_RELAXED), FK_RELAXED);
        fk__word_store(first, cell, FK_RELAXED);
    }
    return fk__word_ptr(first, FK_RELAXED);
}

/* One turn of the first cell. */
static void run_turn_of(fk_sim *sim, fk_worker *worker, fk_ref actor)
{
    uint32_t turns = fk__half_load(&worker->turns, FK_RELAXED);
    worker->done_limit = worker->done; /* from the queue, not the next slot */
    fk__half_store(&worker->turns, turns | (FK_WINDOW_TURNS - 1), FK_RELAXED); /* the last one */
    worker->ctx.msg.type = NULL;
    sim->is_inside = true;
    fk__worker_run(worker, 1);
    sim->is_inside = false;
    if (worker->ctx.msg.type == NULL) return;
    fk_moment moment = { .kind = FK_MOMENT_MESSAGE,
                         .actor = actor,
                         .other = worker->ctx.msg.sender,
                         .type = worker->ctx.msg.type };
    fk__sim_record(sim, &moment);
}

/* False: nobody is ready. */
static bool step(fk_sim *sim)
{
    fk_worker *worker = draw_worker(sim);
    if (worker == NULL) return false;
    fk_cell *cell = draw_cell(sim, worker);
    fk_sim_hold *hold = fk__sim_hold_of(sim, cell);
    if (hold != NULL) {
        hold->cell = fk__ready_pop(worker);
        hold->worker = worker;
        return true;
    }
    fk__sim_drop_from(sim, worker, cell);
    sim->turns++;
    sim->turns_here++;
    run_turn_of(sim, worker, fk__cell_ref(cell));
    return true;
}

/* ---- time -------------------------------------------------------------------------------- */

/* When something will be due that is not now. */
static fk_time next_moment(const fk_sim *sim)
{
    fk_time next = fk__sim_release_next(sim);
    fk_worker *worker = NULL;
    while (next_worker(sim, &worker)) {
        if (worker->wheel_next < next) next = worker->wheel_next;
    }
    return next;
}

static void move_to(fk_sim *sim, fk_time at)
{
    fk_worker *worker = NULL;
    if (at > sim->now) {
        sim->now = at;
        sim->turns_here = 0;
    }
    fk__sim_release(sim);
    while (next_worker(sim, &worker)) {
        worker->now = sim->now;
        if (worker->wheel_next <= sim->now) fk__timers_run(worker, worker);
    }
}

fk_time fk__sim_deadline(const fk_sim *sim, fk_time within)
{
    return within == FK_NEVER ? FK_NEVER : fk__sim_tick_end(fk__time_add(sim->now, within));
}

bool fk__sim_drive(fk_sim *sim, fk_sim_condition_fn condition, void *arg, fk_time deadline)
{
    FK_ASSERT(!sim->is_inside);
    for (;;) {
        if (condition != NULL && condition(arg)) return true;
        if (sim->turns_here > sim->turns_max) {
            sim->turns_here = 0;
            return fk__sim_fail(sim, "that the actors come to rest",
                                "they send and send, and no time passes");
        }
        if (step(sim)) continue;
        fk_time next = next_moment(sim);
        if (next > deadline || next == FK_NEVER) break;
        move_to(sim, next);
    }
    if (deadline != FK_NEVER) move_to(sim, deadline);
    return condition != NULL && condition(arg);
}

/* ---- what the core wants from whoever drives it ------------------------------------------ */

static bool driver_is_inside(void *ctx)
{
    const fk_sim *sim = ctx;
    return sim->is_inside;
}

static fk_reporting *driver_reporting(void *ctx)
{
    fk_sim *sim = ctx;
    return &sim->reporting;
}

/* A pinned actor has a worker of its own, which is in the core's list from here on. */
static fk_err driver_pin(void *ctx, fk_worker *worker)
{
    (void)ctx;
    (void)worker;
    return FK_OK;
}

void fk__sim_attach(fk_sim *sim)
{
    fk_host_ops *host = &sim->sys->host;
    host->ctx = sim;
    host->is_inside = driver_is_inside;
    host->reporting = driver_reporting;
    host->pin = driver_pin;
}

/* ---- public ------------------------------------------------------------------------------ */

size_t fk_sim_run(fk_sim *sim)
{
    uint64_t before = sim->turns;
    if (!sim->is_inside) fk__sim_drive(sim, NULL, NULL, sim->now);
    return (size_t)(sim->turns - before);
}

size_t fk_sim_advance(fk_sim *sim, fk_time by)
{
    uint64_t before = sim->turns;
    if (!sim->is_inside && by > 0) fk__sim_drive(sim, NULL, NULL, fk__sim_deadline(sim, by));
    return (size_t)(sim->turns - before);
}

fk_time fk_sim_now(const fk_sim *sim)
{
    return sim->now - sim->began;
}

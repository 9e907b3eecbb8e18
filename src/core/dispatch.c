/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The worker's loop, and when to bring in another core.
 *
 * A wake-up costs as much as a thousand messages, and a message between cores five times one
 * within a core. So parallelism has to be earned: a worker calls for help when its queue is long
 * in time (length x average turn), and the sentinel takes cells where that holds or where the
 * owner has not finished a turn for a while. When it turns out that the cells of two workers talk
 * to each other all the time (many cells arrive that another worker ran last, and messages are
 * short), one worker hands its queue over and sleeps, and stealing is off for a while, longer
 * each time: the system is *calm*.
 */

#include "core/system.h"

#include "base/safeguard.h"
#include "core/mailbox.h"
#include "core/timer.h"
#include "core/turn.h"

enum {
    HELP_NS = 50000,      /* a queue this long in time calls for help */
    STEAL_NS = 20000,     /* a queue this long in time is worth stealing from */
    STUCK_NS = 100000,    /* an owner that has not moved for so long is stuck */
    SPINS = 400,          /* looks before the sentinel sleeps, when it found work lately */
    SENTINEL_NS = 500000, /* its first sleep; doubles up to 2^SENTINEL_DOUBLINGS times */
    SENTINEL_DOUBLINGS = 1,
    CHATTER_SHARE = 4, /* more than 1/4 of the turns are foreign, and ... */
    CHATTER_NS = 250,  /* ... a message takes less than this: parallelism does not pay */
    CALM_TICKS_MAX = 256
};

/* ---- ready cells ------------------------------------------------------------------------- */

/* To this worker and no other. */
static void hand_to(fk_worker *worker, fk_cell *cell)
{
    fk__ready_push_stack(&worker->inbox, cell);
    fk__wake(worker);
}

/* From outside, from a pinned worker, or to one. */
static FK_COLD fk_err schedule_far(fk_local *local, fk_cell *cell)
{
    fk_system *sys = local->sys;
    if ((fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_PINNED) != 0) {
        hand_to(fk__word_ptr(&cell->pinned, FK_RELAXED), cell);
    } else {
        fk__ready_push_stack(&sys->dispatch.inject, cell);
        fk__wake_for_inject(sys);
    }
    return FK_OK;
}

fk_err fk__push_displaced(fk_worker *worker, fk_cell *cell)
{
    fk__ready_push(worker, cell);
    return FK_OK;
}

/* What is put there before the worker runs is run at once, and if it is all there is, nothing waits
 * behind it, however long it takes: neither cells nor timers. What it sends comes by here again. */
static bool needs_watch(fk_worker *worker, const fk_cell *displaced)
{
    if (!worker->is_between || displaced != NULL) return true;
    return fk__ready_len(worker) != 0 || worker->overflow_first != NULL ||
           worker->wheel_next != FK_NEVER;
}

static FK_COLD fk_err call_sentinel(fk_worker *worker, fk_cell *displaced)
{
    if (!needs_watch(worker, displaced)) return FK_OK;
    if (displaced != NULL) fk__ready_push(worker, displaced);
    fk__wake_one(worker->sys);
    return FK_OK;
}

fk_err fk__schedule(fk_local *local, fk_cell *cell)
{
    fk_worker *worker = local->worker;
    bool is_far = worker == NULL || worker->is_pinned;
    if (FK_UNLIKELY(is_far || fk__half_load(&cell->gate, FK_RELAXED) >= FK_GATE_PINNED)) {
        return schedule_far(local, cell);
    }
    if (worker->is_alone) return fk__schedule_alone(worker, cell);
    /* Release: the cell's owner fields, for the sentinel, if it takes the slot. */
    fk_cell *displaced = (fk_cell *)fk__word_swap(&worker->next, (uintptr_t)cell, FK_ACQ_REL);
    /* Somebody should watch us: this message may take long. Relaxed: a sentinel leaves only when
     * it found work or everybody, us included, was parked. */
    uint32_t idle = fk__half_load(&local->sys->dispatch.idle, FK_RELAXED);
    if (FK_UNLIKELY(idle != 0 && (idle & FK_IDLE_SENTINEL) == 0)) {
        return call_sentinel(worker, displaced);
    }
    return displaced == NULL ? FK_OK : fk__push_displaced(worker, displaced);
}

static fk_cell *take_next(fk_worker *worker)
{
    if (FK_UNLIKELY(!worker->is_alone)) return fk__ready_take_next(worker);
    fk_cell *cell = fk__word_ptr(&worker->next, FK_RELAXED);
    if (FK_LIKELY(cell != NULL)) fk__word_store(&worker->next, 0, FK_RELAXED);
    return cell;
}

/* Relaxed: only a hint; park.c looks again with care. */
static inline bool has_shared(const fk_worker *worker)
{
    return (fk__word_load(&worker->inbox, FK_RELAXED) |
            fk__word_load(worker->source, FK_RELAXED)) != 0;
}

static bool take_shared(fk_worker *worker)
{
    bool found = fk__ready_take_stack(worker, &worker->inbox);
    return fk__ready_take_stack(worker, worker->source) || found;
}

/* What was taken from outside must not wait behind a long message while others sleep unasked. */
static void call_watch(fk_worker *worker)
{
    uint32_t idle = fk__half_load(&worker->sys->dispatch.idle, FK_RELAXED);
    bool unwatched = idle != 0 && (idle & FK_IDLE_SENTINEL) == 0;
    if (unwatched && fk__ready_len(worker) > 1) fk__wake_one(worker->sys);
}

static void leave_watch(fk_worker *worker)
{
    if (!worker->is_sentinel) return;
    worker->is_sentinel = false;
    worker->backoff = 0;
    /* Seq_cst: the notes on victims go to the next sentinel, which takes the bit. */
    fk__half_and(&worker->sys->dispatch.idle, ~FK_IDLE_SENTINEL, FK_SEQ_CST);
}

/* A cell that is not the next slot's, whose budget is used up or which is not there. */
static fk_cell *pick_from_queue(fk_worker *worker)
{
    if (FK_UNLIKELY(has_shared(worker))) {
        take_shared(worker);
        call_watch(worker);
    }
    fk_cell *cell;
    worker->done_limit = worker->done + worker->sys->throughput;
    cell = fk__ready_pop(worker);
    /* Woken from the sentinel's nap with work: who is busy does not watch. The next slot of a
     * sentinel is empty: only its own turns fill it. */
    if (FK_UNLIKELY(worker->is_sentinel) && cell != NULL && FK_SAFEGUARD(WATCH)) {
        leave_watch(worker);
    }
    if (cell == NULL) return take_next(worker);
    fk_cell *waiting = take_next(worker); /* its turn is over: to the back */
    if (waiting != NULL && FK_SAFEGUARD(NEXT_FLUSH)) fk__ready_push(worker, waiting);
    return cell;
}

/* The next cell to run, and the budget it has. */
static inline fk_cell *pick(fk_worker *worker)
{
    if (!FK_SAFEGUARD(BUDGET)) worker->done_limit = worker->done + worker->sys->throughput;
    if (FK_LIKELY(worker->done < worker->done_limit)) {
        fk_cell *cell = take_next(worker);
        if (FK_LIKELY(cell != NULL)) return cell;
    }
    return pick_from_queue(worker);
}

/* ---- every 64 turns ---------------------------------------------------------------------- */

/* Two workers whose cells chat across: this one gives its queue away and sleeps. */
static void settle(fk_worker *worker)
{
    fk_dispatch *dispatch = &worker->sys->dispatch;
    fk_worker *heir = NULL;
    for (uint32_t i = 0; i < dispatch->workers && heir == NULL; i++) {
        fk_worker *other = dispatch->worker[i];
        bool awake = fk__half_load(&other->state, FK_RELAXED) == FK_WORKER_RUNNING;
        if (other != worker && awake) heir = other;
    }
    if (heir == NULL) return;
    uint32_t tick = (uint32_t)(worker->now >> FK_TICK_SHIFT);
    uint32_t calm_for = fk__half_load(&dispatch->calm_for, FK_RELAXED);
    fk__half_store(&dispatch->calm, tick + calm_for, FK_RELAXED);
    if (calm_for < CALM_TICKS_MAX) fk__half_store(&dispatch->calm_for, calm_for * 2, FK_RELAXED);
    fk_cell *cell;
    while ((cell = fk__ready_pop(worker)) != NULL || (cell = take_next(worker)) != NULL) {
        if (FK_SAFEGUARD(SETTLE)) hand_to(heir, cell);
    }
    worker->is_looking = false;
}

static bool is_calm(const fk_worker *worker)
{
    uint32_t until = fk__half_load(&worker->sys->dispatch.calm, FK_RELAXED);
    return (int32_t)(until - (uint32_t)(worker->now >> FK_TICK_SHIFT)) > 0;
}

/* Only this worker writes it. */
static uint32_t worker_turns(const fk_worker *worker)
{
    return fk__half_load(&worker->turns, FK_RELAXED);
}

static void window_begin(fk_worker *worker)
{
    worker->window = worker->now;
    worker->window_turns = worker_turns(worker);
    worker->foreign = 0;
    uint64_t seen = worker->done - worker->done_counted - worker->unseen;
    fk__stat_add(&worker->local.stats.processed, (uintptr_t)seen);
    worker->done_counted = worker->done;
    worker->unseen = 0;
}

/* True: this worker should stop, see settle(). */
static bool measure(fk_worker *worker)
{
    fk_system *sys = worker->sys;
    uint32_t turns = worker_turns(worker) - worker->window_turns;
    fk_time elapsed = worker->now - worker->window;
    uint64_t messages = worker->done - worker->done_counted;
    uint32_t foreign = worker->foreign;
    window_begin(worker);
    if (elapsed < 0 || turns == 0) return false;
    fk_time turn_ns = elapsed / turns;
    fk__half_store(&worker->turn_ns, turn_ns > 1000000000 ? 1000000000u : (uint32_t)turn_ns,
                   FK_RELAXED);
    if (sys->dispatch.workers == 1) return false;
    uint32_t idle = fk__half_load(&sys->dispatch.idle, FK_RELAXED);
    uint32_t parked = idle & FK_IDLE_PARKED;
    if (foreign * CHATTER_SHARE > turns) {
        bool is_short = elapsed < CHATTER_NS * (fk_time)(messages + 1);
        return is_short && parked + 1 < sys->dispatch.workers;
    }
    if (parked + 1 < sys->dispatch.workers && foreign * 16 < turns) {
        fk__half_store(&sys->dispatch.calm_for, FK_CALM_TICKS_MIN, FK_RELAXED); /* it pays */
    }
    fk_time backlog = turn_ns * (fk__ready_len(worker) + worker->overflow_len);
    if (parked != 0 && backlog > HELP_NS && !is_calm(worker)) fk__wake_one(sys);
    return false;
}

static bool refresh(fk_worker *worker)
{
    worker->now = fk__system_now(worker->sys);
    if (worker->now >= worker->wheel_next) fk__timers_run(worker, worker);
    fk__pool_trim(&worker->sys->pool, 1);
    return measure(worker);
}

/* ---- without work ------------------------------------------------------------------------ */

/* A worker that moves is worth stealing from when its queue is long in time. One that is stuck in a
 * long message may be filling the mailboxes of what waits behind it; to follow it message by message
 * would cost both more than it brings, so it is looked at only after a nap. */
static fk_cell *steal_from(fk_worker *worker, fk_worker *victim)
{
    uint32_t turns = fk__half_load(&victim->turns, FK_RELAXED);
    if (turns != victim->seen_turns) {
        victim->seen_turns = turns;
        victim->seen_since = worker->now;
    }
    bool moves = worker->now - victim->seen_since <= STUCK_NS;
    bool stuck = !moves && worker->is_rested;
    if (stuck) fk__timers_run(worker, victim); /* it may be late for them */
    uint32_t len = fk__ready_len(victim);
    fk_time backlog = (fk_time)fk__half_load(&victim->turn_ns, FK_RELAXED) * len;
    if (!stuck && (!moves || is_calm(worker) || backlog < STEAL_NS)) return NULL;
    fk_cell *cell = len > 0 ? fk__ready_steal(worker, victim) : NULL;
    if (cell == NULL && stuck) cell = fk__ready_take_next(victim);
    if (cell != NULL) fk__stat_add(&worker->steals, 1);
    return cell;
}

static bool has_local_work(fk_worker *worker)
{
    return fk__word_load(&worker->next, FK_RELAXED) != 0 || fk__ready_len(worker) != 0 ||
           worker->overflow_first != NULL;
}

/* Sentinel only, so that one worker at a time looks and its notes need no lock. */
static bool look_around(fk_worker *worker)
{
    fk_dispatch *dispatch = &worker->sys->dispatch;
    worker->now = fk__system_now(worker->sys);
    for (uint32_t i = 1; i < dispatch->workers; i++) {
        fk_worker *victim = dispatch->worker[(worker->id + i) % dispatch->workers];
        fk_cell *cell = steal_from(worker, victim);
        if (cell != NULL) fk__ready_push(worker, cell);
        if (has_local_work(worker)) return true;
    }
    return false;
}

static bool watch(fk_worker *worker)
{
    fk_dispatch *dispatch = &worker->sys->dispatch;
    if (!worker->is_sentinel) {
        uint32_t before = fk__half_or(&dispatch->idle, FK_IDLE_SENTINEL, FK_SEQ_CST);
        if ((before & FK_IDLE_SENTINEL) != 0) return false; /* there is one */
        worker->is_sentinel = true;
        worker->backoff = 0;
    }
    uint32_t spins = worker->is_looking ? SPINS : 1;
    worker->is_looking = false;
    for (uint32_t i = 0; i < spins; i++) {
        if ((has_shared(worker) && take_shared(worker)) || (i % 16 == 0 && look_around(worker))) {
            worker->is_looking = true;
            leave_watch(worker);
            return true;
        }
        worker->is_rested = false;
        fk__cpu_relax();
    }
    return false;
}

/* How long to sleep; 0: do not, there is work. */
static fk_time worker_rest(fk_worker *worker)
{
    worker->now = fk__system_now(worker->sys);
    if (worker->now >= worker->wheel_next) {
        fk__timers_run(worker, worker);
        if (has_local_work(worker)) return 0;
    }
    if (!worker->is_pinned && worker->sys->dispatch.workers > 1 && watch(worker)) return 0;
    fk__half_store(&worker->turn_ns, 0, FK_RELAXED);
    window_begin(worker);
    if (!fk__park(worker)) return 0;
    fk_time wait = worker->wheel_next == FK_NEVER ? FK_NEVER : worker->wheel_next - worker->now;
    if (worker->is_sentinel) {
        fk_time nap = (fk_time)SENTINEL_NS << worker->backoff;
        if (worker->backoff < SENTINEL_DOUBLINGS) worker->backoff++;
        if (nap < wait) wait = nap;
        worker->is_rested = true;
    }
    return wait > 1 ? wait : 1;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static void run_turn(fk_worker *worker, fk_cell *cell)
{
    if (FK_UNLIKELY(cell->home != worker->id)) {
        cell->home = (uint16_t)worker->id;
        worker->foreign++;
    }
    if (FK_UNLIKELY(fk__cell_turn(worker, cell))) fk__ready_push(worker, cell);
    fk__half_store(&worker->turns, worker_turns(worker) + 1, FK_RELAXED);
}

/* Up to a window of turns; false when there was no work. */
static bool run_window(fk_worker *worker)
{
    do {
        fk_cell *cell = pick(worker);
        if (FK_UNLIKELY(cell == NULL)) return false;
        run_turn(worker, cell);
    } while (worker_turns(worker) % FK_WINDOW_TURNS != 0);
    return true;
}

fk_time fk__worker_run(fk_worker *worker, uint32_t windows)
{
    fk_half *shutdown = &worker->sys->dispatch.shutdown;
    worker->is_between = false;
    fk__unpark(worker);
    while (windows > 0) {
        if (run_window(worker)) {
            if (refresh(worker)) settle(worker);
            windows--;
            continue;
        }
        if (fk__half_load(shutdown, FK_ACQUIRE) != 0) {
            leave_watch(worker);
            return FK_WORKER_EXIT;
        }
        fk_time wait = worker_rest(worker);
        if (wait != 0) return wait;
        leave_watch(worker);
        window_begin(worker);
    }
    return 0;
}

/* What fk__worker_run() returned to may be a nap of the sentinel's. Its mark would tell everybody that
 * somebody watches, while this worker is busy with what was sent; and what is sent goes to the next
 * slot, from where it is run without another look at the mark: see pick_from_queue(). */
void fk__worker_rouse(fk_worker *worker)
{
    worker->is_between = true;
    fk__unpark(worker);
    leave_watch(worker);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * H6: sleeping without missing work. "park" drives fk__park, fk__unpark, fk__wake_for_inject and
 * fk__wake by hand: two workers, two outside senders, one of which puts a cell on the inject stack
 * and the other one into a worker's inbox. "run" is the whole of fk__worker_run, with its sentinel,
 * and actors that outside threads send to. In the end everything has been run, and idle counts
 * those who sleep.
 *
 * No sleep ends by itself, though the sentinel's would: what is found only by a nap that is over
 * counts as lost.
 */

#include "explorer/kernel.h"

enum { CELLS = 3, WORKERS = 2 };

/* Not a mutation but a question: see is_watched(). */
enum own_mutation { WATCH_STRICTLY = FK_MUTATION_COUNT };

#define BUSY_SENTINEL "the sentinel is busy and keeps its mark"
#define UNWATCHED     "work waits, a worker sleeps, nobody watches"

typedef struct parking {
    fk_cell cell[CELLS];
    uint32_t ran[CELLS];
    uint32_t cells;
    fk_ref actor[2];
    fk_ref third;
    uint32_t owner[2];
} parking;

static parking the_parking;

static const kernel_config TWO = { .workers = WORKERS };
static const kernel_config ONE = { .workers = 1 };

/* ---- by hand ----------------------------------------------------------------------------- */

static void park_setup(void *state)
{
    parking *p = state;
    kernel_start(&TWO, WORKERS, 2);
    fk__explore_label(p->cell, sizeof(fk_cell), CELLS, "cell");
}

static bool park_has_news(void *arg)
{
    const fk_worker *w = arg;
    return the_kernel.woken[w->id] || (the_kernel.threads == 0 && the_kernel.awake == 0);
}

/* True: woken; false: nothing will come. */
static bool park_sleep(fk_worker *worker)
{
    bool *woken = &the_kernel.woken[worker->id];
    the_kernel.awake--;
    fk__explore_await(park_has_news, worker);
    if (!*woken) return false;
    the_kernel.awake++;
    *woken = false;
    return true;
}

static bool park_run_all(parking *p, fk_worker *worker)
{
    fk_word *inject = &worker->sys->dispatch.inject;
    bool found = false;
    if (fk__word_load(&worker->inbox, FK_RELAXED) != 0) {
        found = fk__ready_take_stack(worker, &worker->inbox);
    }
    if (fk__word_load(inject, FK_RELAXED) != 0) {
        found = fk__ready_take_stack(worker, inject) || found;
    }
    fk_cell *cell;
    while ((cell = fk__ready_pop(worker)) != NULL) {
        fk__explore_write(&cell->head);
        fk__explore_check(++p->ran[cell - p->cell] == 1, "a cell was run twice");
    }
    return found;
}

static void park_work(parking *p, uint32_t id)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[id];
    for (;;) {
        fk__unpark(worker);
        if (park_run_all(p, worker)) continue;
        if (fk__park(worker) && !park_sleep(worker)) return;
    }
}

static fk_cell *park_cell(parking *p)
{
    fk_cell *cell = &p->cell[p->cells++];
    fk__explore_write(&cell->head);
    return cell;
}

static void park_thread(void *state, uint32_t id)
{
    parking *p = state;
    fk_system *sys = the_kernel.sys;
    if (id >= 2) {
        park_work(p, id - 2);
        return;
    }
    if (id == 0) {
        fk__ready_push_stack(&sys->dispatch.inject, park_cell(p));
        fk__wake_for_inject(sys);
    } else {
        fk_worker *to = sys->dispatch.worker[1];
        fk__ready_push_stack(&to->inbox, park_cell(p));
        fk__wake(to);
    }
    kernel_thread_ends();
}

static void check_parked(void)
{
    const fk_dispatch *dispatch = &the_kernel.sys->dispatch;
    uint32_t parked = 0;
    for (uint32_t i = 0; i < dispatch->workers; i++) {
        if (dispatch->worker[i]->state.v == FK_WORKER_PARKED) parked++;
    }
    fk__explore_check(parked == dispatch->workers, "a sleeper is not marked as parked");
    fk__explore_check((dispatch->idle.v & FK_IDLE_PARKED) == parked, "idle counts wrongly");
}

static void park_finish(void *state)
{
    const parking *p = state;
    for (uint32_t i = 0; i < p->cells; i++) fk__explore_check(p->ran[i] == 1, "lost work");
    check_parked();
    fk_terminate_now(the_kernel.sys);
    kernel_settle();
    kernel_end(false);
}

/* ---- the whole loop ---------------------------------------------------------------------- */

/* Whether what waits behind this message, however long it takes, is seen by somebody. That is what
 * the sentinel is for, but the kernel does not promise it: when a worker that found no work gets
 * two cells at once, nobody may be awake to see the second one wait. Known, and kept as a variant
 * that must be found, so that a change of it shows. */
static bool is_watched(const fk_worker *self)
{
    const fk_dispatch *dispatch = &self->sys->dispatch;
    bool waits = fk__word_load(&dispatch->inject, FK_RELAXED) != 0 ||
                 fk__half_load(&self->bottom, FK_RELAXED) != fk__half_load(&self->top, FK_RELAXED);
    bool sleeps = false;
    for (uint32_t i = 0; i < dispatch->workers; i++) {
        const fk_worker *other = dispatch->worker[i];
        if (other != self && fk__half_load(&other->state, FK_RELAXED) == FK_WORKER_PARKED) {
            sleeps = true;
        }
    }
    uint32_t idle = fk__half_load(&dispatch->idle, FK_RELAXED);
    return !waits || !sleeps || the_kernel.sending != 0 || (idle & FK_IDLE_SENTINEL) != 0;
}

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk__explore_write(state); /* what only the runner of the actor touches */
    fk__explore_check(!fk__ctx_worker(ctx)->is_sentinel, BUSY_SENTINEL);
    fk__explore_check(fk__mutation != WATCH_STRICTLY || is_watched(fk__ctx_worker(ctx)), UNWATCHED);
    kernel_receive(msg);
    return FK_OK;
}

static void run_start(parking *p, const kernel_config *config, uint32_t senders)
{
    fk_system *sys = kernel_start(config, config->workers, senders);
    for (uint32_t i = 0; i < 2; i++) {
        fk_props props = { .receive = receive, .state = &p->owner[i] };
        p->actor[i] = kernel_spawn(&sys->outside[0], &props);
    }
    kernel_label(p->actor[0], "tail0", "system0", "generation0");
    kernel_label(p->actor[1], "tail1", "system1", "generation1");
}

static void run_setup(void *state)
{
    run_start(state, &TWO, 1);
}

static void run_1_setup(void *state)
{
    run_start(state, &ONE, 2);
}

static void run_work(uint32_t id)
{
    fk_worker *worker = the_kernel.sys->dispatch.worker[id];
    for (;;) {
        uint32_t before = the_kernel.events;
        fk_time wait = fk__worker_run(worker, 1);
        if (wait != 0 && !park_sleep(worker)) return;
        if (wait == 0 && the_kernel.events == before) fk__cpu_relax();
    }
}

static void run_thread(void *state, uint32_t id)
{
    const parking *p = state;
    uint32_t senders = the_kernel.sys->dispatch.workers == 1 ? 2 : 1;
    if (id >= senders) {
        run_work(id - senders);
        return;
    }
    kernel_send(p->actor[0], id);
    if (senders == 1) kernel_send(p->actor[1], 2);
    kernel_thread_ends();
}

static void run_finish(void *state)
{
    (void)state;
    check_parked();
    fk__explore_check(the_kernel.sys->dispatch.inject.v == 0, "lost work");
    for (uint32_t i = 0; i < KERNEL_MESSAGES_MAX; i++) {
        fk__explore_check(the_kernel.delivered[i] == the_kernel.sent[i], "lost message");
    }
    kernel_end(true);
}

/* ---- a chat ------------------------------------------------------------------------------ */

enum { CHAT = 12, THROUGHPUT = 2 };

static const kernel_config CHATTY = { .workers = 1, .throughput = THROUGHPUT };
static const fk_type PING = { "ping", sizeof(uint32_t), _Alignof(uint32_t), NULL };

/* Sends a number back and forth, each time one less. */
static fk_err chat_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    parking *p = state;
    if (msg->type == &NUMBERED) { /* from the third, who wants to say something, too */
        fk__explore_check(p->cells <= 3 * THROUGHPUT, "a chat keeps its worker");
        kernel_receive(msg);
        return FK_OK;
    }
    uint32_t left;
    memcpy(&left, msg->data, sizeof(left));
    the_kernel.events++;
    if (the_kernel.threads == 0) p->cells++; /* the other message is there */
    if (left-- == 0) return FK_OK;
    fk_ref self = fk_self(ctx);
    fk_ref other = p->actor[self.slot == p->actor[0].slot ? 1 : 0];
    return fk_tell(ctx, other, (fk_out){ &PING, &left });
}

static void budget_setup(void *state)
{
    parking *p = state;
    fk_system *sys = kernel_start(&CHATTY, 1, 1);
    fk_props props = { .receive = chat_receive, .state = p };
    p->actor[0] = kernel_spawn(&sys->outside[0], &props);
    p->actor[1] = kernel_spawn(&sys->outside[0], &props);
    p->third = kernel_spawn(&sys->outside[0], &props);
    uint32_t left = CHAT;
    fk__explore_check(fk_send(sys, p->actor[0], (fk_out){ &PING, &left }) == FK_OK, "no send");
}

static void budget_thread(void *state, uint32_t id)
{
    const parking *p = state;
    if (id == 1) {
        run_work(0);
        return;
    }
    kernel_send(p->third, 0);
    kernel_thread_ends();
}

static void budget_finish(void *state)
{
    run_finish(state);
}

/* ---- outside threads borrow locals ------------------------------------------------------- */

static void local_setup(void *state)
{
    (void)state;
    kernel_start(&ONE, 0, 0);
}

static void local_thread(void *state, uint32_t id)
{
    (void)state;
    (void)id;
    fk_local *local = fk__local_enter(the_kernel.sys);
    fk__explore_write(&local->uid_next);
    local->uid_next++;
    fk__local_leave(local);
    kernel_barrier();
}

static void local_finish(void *state)
{
    (void)state;
    fk_terminate_now(the_kernel.sys);
    kernel_settle();
    kernel_end(false);
}

#define HARNESS(NAME, THREADS, PART)                                                               \
    {                                                                                              \
        .name = NAME, .threads = THREADS, .setup = PART##_setup, .thread = PART##_thread,          \
        .finish = PART##_finish, .state = &the_parking, .state_size = sizeof(the_parking)          \
    }

#define run_1_thread run_thread
#define run_1_finish run_finish

static const fk_harness HARNESSES[] = {
    HARNESS("park", 4, park),     HARNESS("run", 3, run),     HARNESS("run-1-worker", 3, run_1),
    HARNESS("budget", 2, budget), HARNESS("local", 3, local), { .name = NULL },
};

static const fk_variant VARIANTS[] = {
    { "run", WATCH_STRICTLY, "watch-strictly", FK_MEMORY_SC, true, UNWATCHED },
    { "run", FK_MUTATION_WATCH, NULL, FK_MEMORY_SC, true, BUSY_SENTINEL },
    { "budget", FK_MUTATION_BUDGET, NULL, FK_MEMORY_SC, true, "a chat keeps its worker" },
    { "park", FK_MUTATION_PARK_RECHECK, NULL, FK_MEMORY_SC, true, "lost work" },
    { "run", FK_MUTATION_PARK_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "run-1-worker", FK_MUTATION_PARK_RECHECK, NULL, FK_MEMORY_SC, true, NULL },
    { "run-1-worker", FK_MUTATION_IDLE_CAS, NULL, FK_MEMORY_SC, true, NULL },
    { .harness = NULL },
};

int main(int argc, char **argv)
{
    return fk_explore_main(argc, argv, HARNESSES, VARIANTS);
}

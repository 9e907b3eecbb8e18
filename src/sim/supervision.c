/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/supervision.h"

#include "base/base.h"
#include "sim/kernel.h"
#include "sim/quarantine.h"

#include <stdio.h>

enum {
    ACTORS = 500,
    BREADTH = 6,
    ACTIONS = 500000,
    DRIVERS = 2,
    BURST = 16,
    IN_FLIGHT_MAX = 3000,
    LOOKS_MAX = 100000,
    PAUSES_PER_LOOK = 64
};

/* One place in the tree; whoever is in it now. */
typedef struct place {
    fk_ref ref;
    uint32_t handled; /* in this life */
    bool is_alive;
    bool is_failed;
    bool is_busy;
    bool is_answering; /* has answered the last ping of all */
    uint32_t decided;  /* number of the failure that was decided last */
} place;

typedef struct blow {
    uint32_t is_failing, directive, levels;
} blow;
FK_MESSAGE(blow);

typedef struct node_state {
    uint32_t place, canary, handled;
} node_state;

static const uint32_t CANARY = 0x7EE57EE5u;

static struct {
    place place[ACTORS];
    uint32_t actions, sent, ended, falls, decisions, restarts, resumes;
    uint32_t pauses;
    bool is_last_round;
} t;

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg);
static fk_err start(fk_ctx *ctx, void *state);
static void stop(fk_ctx *ctx, void *state);
static void before_restart(fk_ctx *ctx, void *state, fk_err why);
static fk_directive decide(fk_ctx *ctx, void *state, const fk_failure *failure);

/* ---- the tree -------------------------------------------------------------------------------------- */

static place *place_of(const void *state)
{
    const node_state *s = state;
    if (s->canary != CANARY) fk__world_fail("A4", "an actor's state is damaged");
    return &t.place[s->place];
}

/* One in 16 stops its children when it is restarted, and makes them again. */
static bool keeps_children(uint32_t number)
{
    return number % 16 != 15;
}

static void plant(fk_ctx *ctx, uint32_t number)
{
    node_state init = { number, CANARY, 0 };
    fk_props props = { .receive = receive,
                       .start = start,
                       .stop = stop,
                       .state_size = sizeof(init),
                       .init = &init,
                       .before_restart = keeps_children(number) ? before_restart : NULL,
                       .strategy = { .decide = decide, .restarts = FK_RESTARTS_UNLIMITED } };
    fk_ref ref;
    t.place[number] = (place){ .ref = FK_REF_NONE };
    fk_err err = ctx != NULL ? fk_spawn_child(ctx, FK_STR(""), &props, &ref)
                             : fk_spawn(fk__kernel.sys, FK_STR("tree"), &props, &ref);
    if (err == FK_E_STOPPING) return;
    if (err != FK_OK) fk__world_fail("A7", "spawn gave %s", fk_err_name(err));
    t.place[number].ref = ref;
}

static void enter(place *p, const void *state, const char *what)
{
    const node_state *s = state;
    if (p->is_busy) fk__world_fail("A3", "%u: %s inside another call", (unsigned)s->place, what);
    p->is_busy = true;
}

static fk_err start(fk_ctx *ctx, void *state)
{
    const node_state *s = state;
    place *p = place_of(state);
    enter(p, state, "start");
    if (s->handled != 0) fk__world_fail("A8", "%u: its state is not fresh", (unsigned)s->place);
    uint32_t first = s->place * BREADTH + 1;
    size_t children = fk_child_count(ctx);
    if (children != 0 && !keeps_children(s->place)) {
        fk__world_fail("A8", "%u restarts before its children have ended", (unsigned)s->place);
    }
    for (uint32_t i = first; i < first + BREADTH && i < ACTORS && children == 0; i++) plant(ctx, i);
    p->handled = 0;
    p->is_alive = true;
    p->is_failed = p->is_busy = false;
    return FK_OK;
}

static void stop(fk_ctx *ctx, void *state)
{
    place *p = place_of(state);
    (void)ctx;
    enter(p, state, "stop");
    p->is_alive = p->is_busy = false;
}

static void before_restart(fk_ctx *ctx, void *state, fk_err why)
{
    (void)ctx;
    (void)why;
    const node_state *s = state;
    if (s->handled != place_of(state)->handled) fk__world_fail("A8", "another's state");
}

/* ---- messages and failures -------------------------------------------------------------------------- */

static fk_err receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    static const char LETTER[] = { 'r', 'R' };
    node_state *s = state;
    place *p = place_of(state);
    const blow *b = FK_AS(blow, msg);
    char detail[32];
    if (b == NULL) fk__world_fail("A1", "an unknown message: %s", msg->type->name);
    enter(p, state, "message");
    t.ended++;
    fk__ledger.received++;
    if (p->is_failed) fk__world_fail("A3", "%u: its failure is undecided", (unsigned)s->place);
    if (s->handled++ != p->handled++)
        fk__world_fail("A8", "%u: another's state", (unsigned)s->place);
    if (t.is_last_round) p->is_answering = true;
    p->is_busy = false;
    if (b->is_failing == 0) return FK_OK;
    p->is_failed = true;
    snprintf(detail, sizeof(detail), "%c%u %u", LETTER[b->directive], (unsigned)b->levels,
             (unsigned)++t.falls);
    return fk_fail(ctx, FK_E_FAILED, detail);
}

/* The top of the tree decides what nobody below it did. */
static fk_directive decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    const node_state *s = state;
    char letter = 'R';
    unsigned levels = 0, number = 0;
    if (sscanf(failure->detail, "%c%u %u", &letter, &levels, &number) != 3) {
        fk__world_fail("A8", "the reason of a failure was lost: %s", failure->detail);
    }
    if (s != NULL && place_of(s)->is_failed) fk__world_fail("A3", "decides while it is held");
    uint32_t first = s != NULL ? s->place * BREADTH + 1 : 0;
    uint32_t child = first;
    while (child < ACTORS && !fk_ref_equal(t.place[child].ref, failure->actor)) child++;
    if (child >= (s != NULL ? first + BREADTH : 1))
        fk__world_fail("A4", "decides about a stranger");
    place *p = &t.place[child];
    if (p->decided == number) fk__world_fail("A8", "%u: decided twice", (unsigned)child);
    p->decided = number;
    t.decisions++;
    (void)ctx;
    if (levels > 0 && failure->phase != FK_PHASE_CHILD && s != NULL && s->place != 0) {
        t.place[s->place].is_failed = true;
        return FK_DIRECTIVE_ESCALATE;
    }
    return letter == 'r' ? FK_DIRECTIVE_RESUME : FK_DIRECTIVE_RESTART;
}

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind == FK_EVENT_RESTARTED) t.restarts++;
    if (event->kind != FK_EVENT_RESUMED) return;
    t.resumes++;
    for (uint32_t i = 0; i < ACTORS; i++) {
        if (fk_ref_equal(t.place[i].ref, event->actor)) t.place[i].is_failed = false;
    }
}

static void on_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    if (letter->type != &fk_type_blow) fk__world_fail("A1", "a dead letter that nobody sent");
    t.ended++;
}

/* ---- the program ---------------------------------------------------------------------------------------- */

static void act(fk_ref to)
{
    blow b = { .is_failing = fk__world_one_in(16),
               .directive = fk__world_below(2),
               .levels = fk__world_one_in(3) ? 1 : 0 };
    t.sent++;
    if (fk_send(fk__kernel.sys, to, (fk_out){ &fk_type_blow, &b }) != FK_OK) {
        fk__world_fail("A1", "a send was refused");
    }
}

static void driver(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    while (t.actions < ACTIONS) {
        if (t.sent - t.ended > IN_FLIGHT_MAX) {
            fk__world_sleep(FK_MICROS(50));
            continue;
        }
        /* Some at a time, so that there is mail behind a failure. */
        fk_ref to = t.place[fk__world_below(ACTORS)].ref;
        for (uint32_t i = 1 + fk__world_below(BURST); i > 0; i--, t.actions++) act(to);
    }
    fk__kernel.outsiders--;
}

static fk_err make(const fk_port *port, fk_system **out)
{
    const fk_swarm *s = fk__world_swarm();
    static const fk_strategy STRATEGY = { .decide = decide, .restarts = FK_RESTARTS_UNLIMITED };
    fk_system_config config = { .name = "sim",
                                .user_strategy = &STRATEGY,
                                .throughput = s->throughput,
                                .on_dead_letter = on_letter,
                                .on_event = on_event };
    return fk__system_create(&config, port, s->workers, out);
}

static bool is_never(void)
{
    return false;
}

static void check_round(void)
{
    if (t.sent != t.ended) {
        fk__world_fail("A1", "%u sent, %u ended", (unsigned)t.sent, (unsigned)t.ended);
    }
    for (uint32_t i = 0; i < ACTORS; i++) {
        const place *p = &t.place[i];
        if (!p->is_alive) fk__world_fail("A8", "%u is gone", (unsigned)i);
        if (p->is_failed) fk__world_fail("A8", "%u: undecided", (unsigned)i);
    }
}

static void last_round(fk_system *sys)
{
    t.is_last_round = true;
    for (uint32_t i = 0; i < ACTORS; i++) {
        t.sent++;
        (void)fk_send(sys, t.place[i].ref, FK_MSG(blow, 0, 0, 0));
    }
    fk__world_await(is_never);
    check_round();
    for (uint32_t i = 0; i < ACTORS; i++) {
        if (!t.place[i].is_answering) fk__world_fail("A8", "%u does not answer", (unsigned)i);
    }
}

static bool are_threads_done(void)
{
    return fk__kernel.threads == 0;
}

static void supervision_main(void *arg, uint32_t thread)
{
    (void)arg;
    (void)thread;
    fk__kernel_create(make);
    fk_system *sys = fk__kernel.sys;
    fk__kernel_start_workers(sys);
    plant(NULL, 0);
    fk__world_await(is_never); /* all 500 are there */
    check_round();
    fk__kernel.outsiders = DRIVERS;
    for (uint32_t i = 0; i < DRIVERS; i++) FK_ASSERT(fk__world_spawn(driver, NULL));
    fk__world_await(is_never);
    check_round();
    last_round(sys);
    (void)fk_terminate(sys);
    if (fk_await_termination(sys, FK_NEVER) != FK_OK) fk__world_fail("A10", "does not end");
    fk__dispatch_shutdown(sys);
    fk__world_await(are_threads_done);
    fk__kernel.sys = NULL;
    fk__ledger_note(FK_FACT_GONE, FK_NOBODY, FK_NOBODY, t.restarts, t.resumes);
    fk__system_destroy(sys);
    if (fk__world_bytes() != 0) fk__world_fail("A14", "%zu bytes are left", fk__world_bytes());
}

/* Walking through all cells is dear. */
static void watch_pause(void)
{
    if (t.pauses++ % PAUSES_PER_LOOK == 0) fk__kernel_watch_pause();
}

static void watch_rest(fk_time next)
{
    if (fk__kernel.sys != NULL && next == FK_NEVER) fk__system_check(fk__kernel.sys);
}

const char *fk__supervision_run(uint64_t seed)
{
    static const fk_world_watch WATCH = { watch_pause, watch_rest };
    fk_swarm swarm;
    fk__swarm_draw_plain(&swarm, seed);
    swarm.is_solo = swarm.is_direct = swarm.creation_fails = false;
    swarm.memory = FK_MEMORY_SC; /* blocks come from pools */
    swarm.workers = 1 + (uint32_t)(seed % 4);
    swarm.fail_in = 0;
    swarm.memory_spare = 0;
    swarm.pinned_max = 0;
    swarm.shuffles = false;
    swarm.looks_max = LOOKS_MAX;
    memset(&t, 0, sizeof(t));
    fk__kernel = (fk_kernel){ .sys = NULL };
    fk__world_begin(&swarm);
    fk__ledger_begin();
    const char *found = fk__world_run(supervision_main, &WATCH);
    if (found == NULL) found = fk__quarantine_end();
    return found;
}

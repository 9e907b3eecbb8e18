/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/supervise.h"

#include "base/safeguard.h"
#include "core/children.h"
#include "core/event.h"
#include "core/extras.h"
#include "core/mailbox.h"
#include "core/terminate.h"

#define ERROR_BITS ((uint32_t)UINT16_MAX << FK_WORD_ERROR_SHIFT)

const char *fk_directive_name(fk_directive directive)
{
    static const char *const NAMES[] = { "resume", "restart", "stop", "escalate" };
    return (unsigned)directive <= FK_DIRECTIVE_ESCALATE ? NAMES[directive] : "unknown";
}

fk_directive fk_decide_default(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    bool is_hopeless = failure->phase == FK_PHASE_START || failure->err == FK_E_KILLED ||
                       failure->err == FK_E_DEATH_PACT;
    return is_hopeless ? FK_DIRECTIVE_STOP : FK_DIRECTIVE_RESTART;
}

fk_directive fk_decide_stop(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return FK_DIRECTIVE_STOP;
}

fk_directive fk_decide_escalate(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    (void)ctx;
    (void)state;
    (void)failure;
    return FK_DIRECTIVE_ESCALATE;
}

/* ---- being held ------------------------------------------------------------------------------ */

void fk__cell_order(fk_local *local, fk_cell *child, uint32_t bits)
{
    if (bits != 0) fk__half_or(&child->ended.word, bits, FK_ACQ_REL);
    fk__mailbox_mark(child, FK_SYSTEM_ORDER);
    if (fk__mailbox_kick(child)) fk__schedule(local, child);
}

static void look_at_news(fk_worker *worker, fk_cell *cell);

void fk__cell_hold(fk_worker *worker, fk_cell *cell)
{
    bool is_held = (cell->suspended & FK_HELD) != 0;
    bool was_held = (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_HELD) != 0;
    if (cell->life == FK_LIFE_RUNNING) {
        cell->flags &= (uint8_t)~FK_CELL_HALTED;
        if (is_held) cell->flags |= FK_CELL_HALTED;
    }
    if (is_held != was_held) {
        /* Seq_cst: before the children are told, and before a new one looks (spawn.c). */
        if (is_held)
            fk__half_or(&cell->gate, FK_GATE_HELD, FK_SEQ_CST);
        else
            fk__half_and(&cell->gate, ~(uint32_t)FK_GATE_HELD, FK_SEQ_CST);
        fk_brood brood = fk__brood(cell);
        fk_cell *child;
        while (FK_SAFEGUARD(HOLD_CHILDREN) && (child = fk__brood_next(&brood)) != NULL) {
            fk__cell_order(&worker->local, child, 0);
        }
    }
    if (!is_held && (cell->suspended & FK_HELD_NEWS) != 0) look_at_news(worker, cell);
}

/* ---- the child's side ------------------------------------------------------------------------ */

/* Best effort: without memory the parent gets to know the error, but not the details. */
static void wound_keep(fk_worker *worker, fk_cell *cell, const fk_failure *failure)
{
    fk_cache *cache = &worker->local.cache;
    if (fk__extras_need(&worker->local, cell) != FK_OK) return;
    fk_wound *wound = cell->extras->wound;
    if (wound == NULL) wound = fk__cache_alloc(cache, sizeof(*wound), FK_SITE("failure"));
    if (wound == NULL) return;
    wound->type = failure->type;
    wound->err = failure->err;
    memcpy(wound->detail, failure->detail, fk_str_of(failure->detail).len + 1);
    cell->extras->wound = wound;
}

static void publish_failure(fk_worker *worker, const fk_failure *failure)
{
    fk_system *sys = worker->sys;
    fk__stat_add(&worker->local.stats.failures, 1);
    if (sys->on_failure != NULL) sys->on_failure(sys->user, failure);
    if (!fk__event_wanted(sys, FK_EVENT_FAILED)) return;
    fk__event(sys, &worker->local,
              &(fk_event){ .kind = FK_EVENT_FAILED,
                           .actor = failure->actor,
                           .failure = failure,
                           .err = failure->err });
}

static uint32_t error_bits(fk_err err)
{
    uint32_t code = (uint32_t)err;
    return (code <= UINT16_MAX ? code : (uint32_t)FK_E_FAILED) << FK_WORD_ERROR_SHIFT;
}

/* At once, because the parent and the child may both be about it. */
static uint32_t word_replace(fk_cell *cell, uint32_t mask, uint32_t bits)
{
    uint32_t word = fk__half_load(&cell->ended.word, FK_RELAXED);
    while (!fk__half_cas(&cell->ended.word, &word, (word & ~mask) | bits, FK_ACQ_REL)) {
    }
    return word;
}

/* The parent's answer to a failure, in the place of its note about that. Without the note the child
 * has begun anew since, with a sibling, and may have failed again: the answer is not for that one.
 * False: so it is. */
static bool word_answer(fk_cell *child, uint32_t note, uint32_t answer)
{
    uint32_t word = fk__half_load(&child->ended.word, FK_RELAXED);
    do {
        if ((word & note) == 0 && FK_SAFEGUARD(ANSWER_HEARD)) return false;
    } while (!fk__half_cas(&child->ended.word, &word, (word & ~note) | answer, FK_ACQ_REL));
    return true;
}

static void order_answer(fk_local *local, fk_cell *child, uint32_t note, uint32_t answer)
{
    if (word_answer(child, note, answer)) fk__cell_order(local, child, 0);
}

/* Under the lock, because the parent reads the wound, and the actor may be stopped meanwhile. True:
 * the signal is at home. It is not when the actor was restarted with a sibling before the parent
 * looked at an earlier failure; then the parent finds this one instead. */
static bool failure_note(fk_cell *cell, const fk_failure *failure)
{
    uint32_t bits = FK_WORD_FAILED | FK_WORD_QUEUED | error_bits(failure->err);
    if (failure->phase == FK_PHASE_START) bits |= FK_WORD_AT_START;
    if (failure->phase == FK_PHASE_RESTART) bits |= FK_WORD_AT_RESTART;
    if (failure->phase == FK_PHASE_CHILD) bits |= FK_WORD_AT_START | FK_WORD_AT_RESTART;
    uint32_t word = word_replace(cell, FK_WORD_AT_START | FK_WORD_AT_RESTART | ERROR_BITS, bits);
    return (word & FK_WORD_QUEUED) == 0;
}

static void report_failure(fk_worker *worker, fk_cell *cell, const fk_failure *failure)
{
    fk_mem *mem = &worker->sys->mem;
    fk_cell *parent = fk__cell_parent(cell);
    fk__mem_lock(mem, &cell->children_lock);
    wound_keep(worker, cell, failure);
    bool is_home = failure_note(cell, failure);
    fk__mem_unlock(mem, &cell->children_lock);
    if (!is_home && FK_SAFEGUARD(SIGNAL_ONCE)) return;
    fk__mailbox_signal(parent, &cell->ended.link);
    if (fk__mailbox_kick(parent)) fk__schedule(&worker->local, parent);
}

void fk__cell_failed(fk_worker *worker, fk_cell *cell, const fk_type *type, fk_err err,
                     fk_failure_phase phase)
{
    char detail[sizeof(worker->ctx.detail)];
    memcpy(detail, worker->ctx.detail, sizeof(detail));
    worker->ctx.detail[0] = '\0';
    fk_failure failure = { fk__cell_ref(cell), err, type, detail, phase };
    publish_failure(worker, &failure);
    if (phase == FK_PHASE_START || phase == FK_PHASE_RESTART) cell->flags |= FK_CELL_UNSTARTED;
    if (fk__cell_parent(cell) == NULL) { /* the root: nobody is above it */
        fk__terminate_begin(worker->sys, &worker->local, "the root failed");
        return;
    }
    if ((cell->flags & FK_CELL_LEAVING) != 0) {
        fk__cell_stop(worker, cell);
        return;
    }
    if (FK_SAFEGUARD(HOLD_SELF)) cell->suspended |= FK_HELD_FAILED;
    fk__cell_hold(worker, cell);
    report_failure(worker, cell, &failure);
}

void fk__cell_order_restart(fk_local *local, fk_cell *child, fk_err why)
{
    word_replace(child, ERROR_BITS, error_bits(why));
    fk__cell_order(local, child, FK_WORD_RESTART);
}

void fk__cell_order_revival(fk_local *local, fk_cell *child)
{
    order_answer(local, child, FK_WORD_HEARD, FK_WORD_REVIVE);
}

void fk__cell_retract(fk_cell *cell)
{
    fk_mem *mem = &cell->sys->mem;
    fk__mem_lock(mem, &cell->children_lock);
    /* With what the parent has noted about it, and what it may have answered. */
    uint32_t about_it = FK_WORD_FAILED | FK_WORD_PENDING | FK_WORD_HEARD | FK_WORD_ESCALATED |
                        FK_WORD_RESUME | FK_WORD_REVIVE;
    fk__half_and(&cell->ended.word, ~about_it, FK_ACQ_REL);
    fk__mem_unlock(mem, &cell->children_lock);
}

void fk__cell_settle(fk_cell *cell)
{
    if ((cell->suspended & FK_HELD_FAILED) == 0) return;
    cell->suspended &= (uint16_t)~FK_HELD_FAILED;
    fk__cell_retract(cell);
}

bool fk__cell_report_end(fk_cell *cell)
{
    /* Either we see that the parent has taken the signal, or it sees the end with it. The parent's
     * notes stay: it may be waiting for this end (restart.c). */
    uint32_t word = fk__half_or(&cell->ended.word, FK_WORD_ENDED, FK_ACQ_REL);
    if (!FK_SAFEGUARD(AWAITED)) {
        fk__half_and(&cell->ended.word, ~(uint32_t)FK_WORD_AWAITED, FK_RELAXED);
    }
    return (word & FK_WORD_QUEUED) == 0;
}

static void order_resume(fk_worker *worker, fk_cell *cell)
{
    fk_brood brood = fk__brood(cell);
    fk_cell *child;
    if ((cell->suspended & FK_HELD_FAILED) == 0) return;
    if ((cell->flags & FK_CELL_UNSTARTED) != 0) { /* there is nothing that could go on */
        fk__cell_restart(worker, cell, FK_OK);
        return;
    }
    while ((child = fk__brood_next(&brood)) != NULL) {
        order_answer(&worker->local, child, FK_WORD_ESCALATED, FK_WORD_RESUME);
    }
    fk__cell_settle(cell);
    fk__publish_life(&worker->local, FK_EVENT_RESUMED, fk__cell_ref(cell), FK_OK);
    fk__cell_hold(worker, cell);
}

void fk__cell_ordered(fk_worker *worker, fk_cell *cell)
{
    if (cell->life < FK_LIFE_STARTING || cell->life > FK_LIFE_STOPPING) return; /* nobody */
    uint32_t orders = FK_WORD_RESUME | FK_WORD_RESTART | FK_WORD_REVIVE;
    uint32_t word = fk__half_and(&cell->ended.word, ~orders, FK_ACQ_REL);
    const fk_cell *parent = fk__cell_parent(cell);
    bool held = parent != NULL && (fk__half_load(&parent->gate, FK_SEQ_CST) & FK_GATE_HELD) != 0;
    cell->suspended &= (uint16_t)~FK_HELD_PARENT;
    if (held) cell->suspended |= FK_HELD_PARENT;
    fk__cell_hold(worker, cell);
    if (cell->life == FK_LIFE_STOPPING) return;
    if ((word & (FK_WORD_RESTART | FK_WORD_REVIVE)) != 0)
        fk__cell_restart(worker, cell, (fk_err)(word >> FK_WORD_ERROR_SHIFT));
    else if ((word & FK_WORD_RESUME) != 0)
        order_resume(worker, cell);
}

/* ---- the parent's side ----------------------------------------------------------------------- */

static fk_tally *tally_of(fk_worker *worker, fk_cell *parent, const fk_cell *child)
{
    fk_cache *cache = &worker->local.cache;
    if (fk__extras_need(&worker->local, parent) != FK_OK) return NULL;
    fk_map *tallies = &parent->extras->tallies;
    uint64_t key = (uint64_t)child->slot + 1;
    fk_tally *tally = fk__map_get(tallies, key);
    if (tally != NULL) return tally;
    if (fk__map_reserve(cache, tallies, FK_SITE("table of restarts")) != FK_OK) return NULL;
    tally = fk__cache_alloc(cache, sizeof(*tally), FK_SITE("restarts of a child"));
    if (tally == NULL) return NULL;
    memset(tally, 0, sizeof(*tally));
    fk__map_put(tallies, key, tally);
    return tally;
}

void fk__child_forget(fk_worker *worker, fk_cell *parent, const fk_cell *child)
{
    if (parent->extras == NULL) return;
    fk__backoff_cancel(worker, parent, child);
    fk_tally *tally = fk__map_remove(&parent->extras->tallies, (uint64_t)child->slot + 1);
    if (tally != NULL) fk__cache_free(&worker->local.cache, tally, sizeof(*tally));
}

/* A strategy as the parent follows it, with the defaults put in. */
static fk_strategy strategy_of(const fk_cell *parent)
{
    fk_strategy s = parent->props->strategy;
    if (s.decide == NULL) s.decide = fk_decide_default;
    if (s.restarts == 0) {
        bool is_pekko = parent->sys->paths.rules == FK_RULES_PEKKO;
        s.restarts = is_pekko ? FK_RESTARTS_UNLIMITED : 10;
        if (s.within == 0 && !is_pekko) s.within = FK_SECONDS(1);
    }
    return s;
}

/* Without memory to count, a child with a limit has reached it. */
static bool permit(fk_worker *worker, fk_cell *parent, const fk_cell *child,
                   const fk_strategy *strategy)
{
    bool is_limited = strategy->restarts != FK_RESTARTS_UNLIMITED || strategy->within != 0;
    int32_t max = strategy->restarts == FK_RESTARTS_NONE ? 0 : strategy->restarts;
    fk_tally *tally = tally_of(worker, parent, child);
    if (tally == NULL) return !is_limited;
    fk_time now = fk__system_now(worker->sys);
    bool may = !is_limited || !FK_SAFEGUARD(RESTART_LIMIT) ||
               fk__tally_permit(tally, max, strategy->within, now);
    if (may) tally->total++;
    return may;
}

static bool is_concerned(const fk_strategy *strategy, const fk_cell *failed, const fk_cell *child)
{
    if (child == failed) return true;
    if (strategy->kind == FK_ALL_FOR_ONE) return FK_SAFEGUARD(CONCERNED);
    return fk__uid_number(child->sys, child->uid) > fk__uid_number(failed->sys, failed->uid);
}

static bool permit_all(fk_worker *worker, fk_cell *parent, const fk_cell *failed,
                       const fk_strategy *strategy)
{
    if (strategy->kind == FK_ONE_FOR_ONE) return permit(worker, parent, failed, strategy);
    fk_brood brood = fk__brood(parent);
    const fk_cell *child;
    bool may = true;
    while (may && (child = fk__brood_next(&brood)) != NULL) {
        if (is_concerned(strategy, failed, child)) may = permit(worker, parent, child, strategy);
    }
    return may;
}

static void stop_child(fk_worker *worker, fk_cell *child)
{
    uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
    if ((generation & 1) != 0) fk__cell_ask_stop(&worker->local, child, generation);
}

/* The child that failed waits, if the strategy says so and there is memory for that. */
static void make_wait(fk_worker *worker, fk_cell *parent, fk_cell *failed,
                      const fk_strategy *strategy)
{
    fk_tally *tally = strategy->backoff_min != 0 ? tally_of(worker, parent, failed) : NULL;
    if (tally == NULL) return;
    uint32_t chance;
    const fk_port *port = &worker->sys->mem.port;
    port->random(port->ctx, &chance, sizeof(chance));
    fk_time delay = fk__tally_backoff(tally, strategy, fk__system_now(worker->sys), chance);
    if (delay > 0) fk__backoff_begin(worker, parent, failed, delay);
}

/* Whoever waits does so until its own time, also when it would have to go along with a sibling: two
 * that fail in turn would never wait otherwise. All others begin anew at once, lest they go on with
 * what they know of the one that failed. */
static void restart_child(fk_worker *worker, fk_cell *parent, fk_cell *child,
                          const fk_strategy *strategy, fk_err why)
{
    bool is_on = strategy->backoff_min != 0 && fk__backoff_is_on(parent, child);
    /* Else it has begun anew since, and does not wait. */
    bool waits = (fk__half_load(&child->ended.word, FK_RELAXED) & FK_WORD_HEARD) != 0;
    if (is_on && waits) return;
    fk__cell_order_restart(&worker->local, child, why);
}

static void apply_to(fk_worker *worker, fk_cell *parent, fk_cell *child,
                     const fk_strategy *strategy, fk_directive directive, fk_err why)
{
    if (directive == FK_DIRECTIVE_RESTART)
        restart_child(worker, parent, child, strategy, why);
    else
        stop_child(worker, child);
}

static void apply(fk_worker *worker, fk_cell *parent, fk_cell *failed, const fk_strategy *strategy,
                  fk_directive directive, fk_err why)
{
    if (strategy->kind == FK_ONE_FOR_ONE) {
        apply_to(worker, parent, failed, strategy, directive, why);
        return;
    }
    fk_brood brood = fk__brood(parent);
    fk_cell *child;
    while ((child = fk__brood_next(&brood)) != NULL) {
        if (!is_concerned(strategy, failed, child)) continue;
        apply_to(worker, parent, child, strategy, directive, why);
    }
}

static void publish_decision(fk_worker *worker, fk_cell *parent, const fk_cell *child,
                             const fk_failure *failure, fk_directive directive)
{
    fk_system *sys = worker->sys;
    if (!fk__event_wanted(sys, FK_EVENT_SUPERVISED)) return;
    const fk_tally *tally = NULL;
    if (parent->extras != NULL) {
        tally = fk__map_get(&parent->extras->tallies, (uint64_t)child->slot + 1);
    }
    fk__event(sys, &worker->local,
              &(fk_event){ .kind = FK_EVENT_SUPERVISED,
                           .actor = failure->actor,
                           .other = fk__cell_ref(parent),
                           .failure = failure,
                           .err = failure->err,
                           .directive = directive,
                           .count = tally != NULL ? tally->total : 0 });
}

static void escalate(fk_worker *worker, fk_cell *parent, fk_cell *child, const fk_failure *failure)
{
    if (FK_SAFEGUARD(ESCALATED)) word_answer(child, FK_WORD_HEARD, FK_WORD_ESCALATED);
    memcpy(worker->ctx.detail, failure->detail, fk_str_of(failure->detail).len + 1);
    fk__cell_failed(worker, parent, failure->type, failure->err, FK_PHASE_CHILD);
}

static void decide(fk_worker *worker, fk_cell *parent, fk_cell *child, const fk_failure *failure)
{
    fk_strategy strategy = strategy_of(parent);
    worker->ctx.cell = parent;
    worker->ctx.node = NULL;
    fk_directive directive = strategy.decide(&worker->ctx, parent->state, failure);
    worker->ctx.detail[0] = '\0';
    /* Who has not begun cannot go on: it begins again, and that is a restart like any other. */
    bool is_unborn = failure->phase == FK_PHASE_START || failure->phase == FK_PHASE_RESTART;
    if (directive == FK_DIRECTIVE_RESUME && is_unborn &&
        !permit(worker, parent, child, &strategy)) {
        directive = FK_DIRECTIVE_STOP;
    }
    if (directive == FK_DIRECTIVE_RESTART && !permit_all(worker, parent, child, &strategy)) {
        directive = FK_DIRECTIVE_STOP;
    }
    if (directive == FK_DIRECTIVE_RESTART) make_wait(worker, parent, child, &strategy);
    publish_decision(worker, parent, child, failure, directive);
    switch (directive) {
    case FK_DIRECTIVE_RESUME:
        order_answer(&worker->local, child, FK_WORD_HEARD, FK_WORD_RESUME);
        break;
    case FK_DIRECTIVE_RESTART:
    case FK_DIRECTIVE_STOP: apply(worker, parent, child, &strategy, directive, failure->err); break;
    case FK_DIRECTIVE_ESCALATE:
    default: escalate(worker, parent, child, failure); break; /* who does not know asks above */
    }
    bool is_leaving = (parent->flags & FK_CELL_LEAVING) != 0; /* stopped itself while deciding */
    if (is_leaving) fk__cell_stop(worker, parent);
}

static fk_failure_phase phase_of(uint32_t word)
{
    bool at_start = (word & FK_WORD_AT_START) != 0, at_restart = (word & FK_WORD_AT_RESTART) != 0;
    if (at_start) return at_restart ? FK_PHASE_CHILD : FK_PHASE_START;
    return at_restart ? FK_PHASE_RESTART : FK_PHASE_MESSAGE;
}

/* Looks at a child's word and, if it has failed, takes over what is known about that. Old news: its
 * signal has been here before. Should it be on its way again, all is left to that. */
static uint32_t word_take(fk_worker *worker, fk_cell *child, bool is_old_news, fk_wound *out)
{
    fk_mem *mem = &worker->sys->mem;
    fk__mem_lock(mem, &child->children_lock);
    uint32_t taken = FK_WORD_QUEUED | FK_WORD_PENDING | FK_WORD_FAILED;
    uint32_t word = fk__half_load(&child->ended.word, FK_RELAXED);
    bool is_coming = is_old_news && (word & FK_WORD_QUEUED) != 0;
    /* Under the lock: nobody but the child takes FAILED back, and then HEARD with it. */
    uint32_t note = (word & FK_WORD_FAILED) != 0 ? FK_WORD_HEARD : 0;
    word = is_coming ? 0 : word_replace(child, taken, note);
    bool has_wound = (word & (FK_WORD_FAILED | FK_WORD_ENDED)) == FK_WORD_FAILED &&
                     child->extras != NULL && child->extras->wound != NULL;
    if (has_wound) *out = *child->extras->wound;
    fk__mem_unlock(mem, &child->children_lock);
    return word;
}

/* The parent is held itself: later. The word stays as if the signal were still on its way. */
static void postpone(fk_worker *worker, fk_cell *parent, fk_cell *child)
{
    fk_mem *mem = &worker->sys->mem;
    fk__mem_lock(mem, &child->children_lock);
    uint32_t word = fk__half_and(&child->ended.word, ~(uint32_t)FK_WORD_QUEUED, FK_ACQ_REL);
    bool has_ended = (word & FK_WORD_ENDED) != 0;
    if (!has_ended) fk__half_or(&child->ended.word, FK_WORD_PENDING, FK_ACQ_REL);
    fk__mem_unlock(mem, &child->children_lock);
    if (FK_SAFEGUARD(NEWS)) parent->suspended |= FK_HELD_NEWS;
    if (has_ended) fk__cell_child_ended(worker, parent, child);
}

static void child_failed(fk_worker *worker, fk_cell *parent, fk_cell *child, bool is_old_news)
{
    fk_wound wound = { NULL, FK_OK, "" };
    uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
    uint32_t word = word_take(worker, child, is_old_news, &wound);
    if ((word & FK_WORD_ENDED) != 0) { /* and if not by this signal, then by another */
        if ((word & FK_WORD_QUEUED) != 0) fk__cell_child_ended(worker, parent, child);
        return;
    }
    /* Stopped since, and its end is on the way; or the parent is done with all of them anyway. */
    bool is_over = (word & FK_WORD_FAILED) == 0 || (generation & 1) == 0;
    if (is_over || parent->life != FK_LIFE_RUNNING) return;
    fk_failure failure = { { child->slot, generation, worker->sys->id },
                           wound.err != FK_OK ? wound.err : (fk_err)(word >> FK_WORD_ERROR_SHIFT),
                           wound.type,
                           wound.detail,
                           phase_of(word) };
    decide(worker, parent, child, &failure);
}

void fk__cell_child_signal(fk_worker *worker, fk_cell *parent, fk_cell *child)
{
    uint32_t word = fk__half_load(&child->ended.word, FK_ACQUIRE);
    if ((word & FK_WORD_QUEUED) == 0)
        fk__cell_child_ended(worker, parent, child);
    else if (parent->life == FK_LIFE_STARTING ||
             ((parent->suspended & FK_HELD) != 0 && parent->life == FK_LIFE_RUNNING))
        postpone(worker, parent, child);
    else
        child_failed(worker, parent, child, false);
}

/* The parent was held when children failed, and is not any more. */
static void look_at_news(fk_worker *worker, fk_cell *cell)
{
    fk_brood pending = { .parent = cell, .bit = FK_WORD_PENDING };
    fk_cell *child;
    cell->suspended &= (uint16_t)~FK_HELD_NEWS;
    while ((child = fk__brood_next(&pending)) != NULL) {
        if ((cell->suspended & FK_HELD) == 0) {
            child_failed(worker, cell, child, true);
            continue;
        }
        /* Held again because of the one before it. */
        fk__half_or(&child->ended.word, FK_WORD_PENDING, FK_ACQ_REL);
        cell->suspended |= FK_HELD_NEWS;
        return;
    }
}

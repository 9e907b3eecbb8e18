/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Who decides: a scheduling point chooses the next action on the stack of the thread that
 * reached it. If that thread goes on, nothing is switched at all, and otherwise the switch
 * goes straight to the chosen thread; the host is woken only at the end of a run. Most
 * schedules that a depth-first search makes have few switches, so this is what makes them
 * cheap.
 *
 * The invariant between points: `current` is the thread whose stack we are on, and all
 * others stand at a point, before the access that they announced. An access therefore
 * happens after its point, with everything that follows up to the next point.
 *
 * fk__cpu_relax() says "nothing will change until somebody else moves", so the thread is
 * left out until another one has moved. If nobody else can, it may go on: the spin may be
 * a bounded one.
 */

#include "sim/machine.h"

#include "sim/happens.h"
#include "sim/machine_state.h"
#include "sim/quarantine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

fk_machine *fk__machine;

static uint32_t lowest(uint32_t mask)
{
    return (uint32_t)__builtin_ctz(mask);
}

void fk__machine_flush(fk_machine *m, uint32_t thread)
{
    fk_vthread *t = &m->thread[thread];
    fk_store s = fk__storebuffer_take(&t->buffer);
    if (t->buffer.len == 0) m->buffered &= ~fk__machine_bit(thread);
    if (s.at == NULL) return;
    if (!fk__quarantine_is_ok(s.at)) {
        fk__machine_fail_softly(m, FK_USE_AFTER_FREE);
        return;
    }
    fk__machine_emit(m, (fk_access){ .kind = FK_ACCESS_FLUSH,
                                     .thread = thread,
                                     .at = s.at,
                                     .before = fk__memory_read(s.at, s.width),
                                     .after = s.value });
    fk__memory_write(s.at, s.width, s.value);
    if (m->config.finds_races) fk__happens_store(s.at, &s.carried);
}

void fk__machine_drain(fk_machine *m, uint32_t thread)
{
    while (m->thread[thread].buffer.len > 0) fk__machine_flush(m, thread);
}

static bool holds(fk_machine *m, uint32_t thread)
{
    m->is_peeking = true;
    m->viewer = thread;
    bool result = m->thread[thread].cond(m->thread[thread].cond_arg);
    m->is_peeking = false;
    return result;
}

/* The actions that are possible now. */
static uint32_t enabled(fk_machine *m)
{
    uint32_t ready = m->alive & ~m->blocked & ~m->frozen;
    for (uint32_t rest = m->blocked & ~m->frozen; rest != 0; rest &= rest - 1) {
        if (holds(m, lowest(rest))) ready |= rest & -rest;
    }
    uint32_t mask = (ready & ~m->relaxing) | m->buffered << FK_ACTION_FLUSH;
    return mask != 0 ? mask : ready;
}

/* Takes actions until one of them is a thread going on, and returns it, or NOBODY when the run is
 * over; then outcome says why. */
static uint32_t next_thread(fk_machine *m)
{
    for (;;) {
        uint32_t mask = enabled(m);
        m->outcome = FK_OUTCOME_FAILED;
        if (m->failure != NULL) return FK_MACHINE_NOBODY;
        m->outcome = m->alive == 0 ? FK_OUTCOME_DONE : FK_OUTCOME_STUCK;
        if (mask == 0) return FK_MACHINE_NOBODY;
        m->outcome = FK_OUTCOME_PAUSED;
        if (m->steps == m->steps_end) return FK_MACHINE_NOBODY;

        uint32_t action = lowest(mask);
        if ((mask & (mask - 1)) != 0) action = m->config.choose(m->config.choose_ctx, m, mask);
        m->outcome = FK_OUTCOME_DIVERGED;
        if (action == FK_MACHINE_NOBODY) return FK_MACHINE_NOBODY;
        assert((mask >> action & 1) != 0);
        if (m->steps < m->config.log_size) m->config.log[m->steps] = (uint8_t)action;
        m->steps++;

        if (action < FK_ACTION_FLUSH) {
            m->relaxing = 0; /* everybody else sees somebody move */
            m->blocked &= ~fk__machine_bit(action);
            m->last = action;
            return action;
        }
        fk__machine_flush(m, action - FK_ACTION_FLUSH);
        m->relaxing &= fk__machine_bit(action - FK_ACTION_FLUSH);
    }
}

void fk__machine_go(fk_machine *m)
{
    uint32_t next = next_thread(m);
    if (next == m->current) return;
    m->current = next;
    fk__fiber_switch(next == FK_MACHINE_NOBODY ? NULL : m->thread[next].fiber);
}

static void thread_main(void *arg)
{
    fk_machine *m = arg;
    uint32_t self = m->current;
    m->thread[self].fn(m->thread[self].arg, self);
    fk__machine_emit(m, (fk_access){ .kind = FK_ACCESS_END, .thread = self });
    m->alive &= ~fk__machine_bit(self);
    fk__machine_go(m);
}

fk_machine *fk__machine_create(void)
{
    return calloc(1, sizeof(fk_machine));
}

void fk__machine_destroy(fk_machine *m)
{
    if (m == NULL) return;
    assert(m != fk__machine);
    for (uint32_t i = 0; i < FK_MACHINE_THREADS_MAX; i++) fk__fiber_destroy(m->thread[i].fiber);
    free(m);
}

void fk__machine_reset(fk_machine *m, const fk_machine_config *config)
{
    assert(m != fk__machine);
    assert(config->choose != NULL);
    for (uint32_t i = 0; i < m->thread_count; i++) m->thread[i].buffer.len = 0;
    m->config = *config;
    if (m->config.log == NULL) m->config.log_size = 0;
    m->current = FK_MACHINE_NOBODY;
    m->last = FK_MACHINE_NOBODY;
    m->alive = 0;
    m->blocked = 0;
    m->relaxing = 0;
    m->buffered = 0;
    m->frozen = 0;
    m->is_peeking = false;
    m->is_settling = false;
    m->thread_count = 0;
    m->failure = NULL;
    m->steps = 0;
}

static void thread_begin(fk_machine *m, uint32_t id, fk_machine_thread_fn *fn, void *arg)
{
    fk_vthread *t = &m->thread[id];
    if (t->fiber == NULL) t->fiber = fk__fiber_create(FK_FIBER_STACK_SIZE);
    if (t->fiber == NULL) abort();
    t->fn = fn;
    t->arg = arg;
    t->sleeps_at = NULL;
    fk__fiber_start(t->fiber, thread_main, m);
    m->alive |= fk__machine_bit(id);
}

uint32_t fk__machine_spawn(fk_machine *m, fk_machine_thread_fn *fn, void *arg)
{
    uint32_t id = m->thread_count;
    assert(id < FK_MACHINE_THREADS_MAX);
    thread_begin(m, id, fn, arg);
    m->thread_count++;
    return id;
}

void fk__machine_kill(fk_machine *m, uint32_t thread)
{
    uint32_t others = ~fk__machine_bit(thread);
    assert(thread != m->current);
    m->alive &= others;
    m->blocked &= others;
    m->relaxing &= others;
    m->buffered &= others;
    m->frozen &= others;
    m->thread[thread].buffer.len = 0;
    m->thread[thread].sleeps_at = NULL;
}

void fk__machine_revive(fk_machine *m, uint32_t thread, fk_machine_thread_fn *fn, void *arg)
{
    assert(thread < m->thread_count);
    assert((m->alive & fk__machine_bit(thread)) == 0);
    fk__machine_drain(m, thread);
    thread_begin(m, thread, fn, arg);
}

void fk__machine_freeze(fk_machine *m, uint32_t thread, bool is_frozen)
{
    uint32_t bit = fk__machine_bit(thread);
    assert(thread != m->current);
    m->frozen = is_frozen ? m->frozen | bit : m->frozen & ~bit;
}

fk_outcome fk__machine_run(fk_machine *m, uint64_t steps)
{
    assert(fk__machine == NULL);
    assert(fk__fiber_self() == NULL);
    if (m->steps == 0 && m->config.finds_races) fk__happens_reset(m->thread_count);
    m->steps_end = m->steps + steps;
    fk__machine = m;
    m->current = FK_MACHINE_NOBODY;
    fk__machine_go(m);
    fk__machine = NULL;
    m->is_peeking = false;
    return m->outcome;
}

uint64_t fk__machine_steps(const fk_machine *m)
{
    return m->steps;
}

uint32_t fk__machine_threads(const fk_machine *m)
{
    return m->thread_count;
}

uint32_t fk__machine_last(const fk_machine *m)
{
    return m->last;
}

uint32_t fk__machine_yielded(const fk_machine *m)
{
    return m->relaxing;
}

const char *fk__machine_failure(const fk_machine *m)
{
    return m->failure;
}

uint32_t fk__machine_self(void)
{
    return fk__machine != NULL ? fk__machine->current : FK_MACHINE_NOBODY;
}

void fk__machine_fail(const char *what)
{
    fk_machine *m = fk__machine;
    if (m == NULL || m->current == FK_MACHINE_NOBODY) abort();
    fk__machine_fail_softly(m, what);
    m->outcome = FK_OUTCOME_FAILED;
    m->current = FK_MACHINE_NOBODY;
    fk__fiber_switch(NULL);
    abort();
}

void fk__sim_relax(void)
{
    fk_machine *m = fk__machine;
    assert(!m->is_peeking);
    fk__machine_emit(m, (fk_access){ .kind = FK_ACCESS_RELAX, .thread = m->current });
    m->relaxing |= fk__machine_bit(m->current);
    fk__machine_go(m);
}

void fk__machine_await(fk_machine_cond_fn *cond, void *arg)
{
    fk_machine *m = fk__machine;
    if (m == NULL) {
        if (!cond(arg)) abort(); /* nobody could make it true */
        return;
    }
    assert(!m->is_peeking);
    fk_vthread *t = &m->thread[m->current];
    t->cond = cond;
    t->cond_arg = arg;
    m->blocked |= fk__machine_bit(m->current);
    fk__machine_go(m);
    fk__machine_emit(m, (fk_access){ .kind = FK_ACCESS_AWAIT, .thread = m->current });
    if (!m->config.finds_races) return;
    /* Once more, for the acquires among its loads. */
    m->is_settling = true;
    cond(arg);
    m->is_settling = false;
}

static bool is_unlocked(void *arg)
{
    return fk__sim_load(arg, FK_WIDTH_HALF, FK_RELAXED) == 0;
}

void fk__machine_lock(uint32_t *lock)
{
    fk_machine *m = fk__machine;
    if (m != NULL) {
        fk__machine_await(is_unlocked, lock);
        fk__machine_drain(m, m->current);
    }
    assert(*lock == 0);
    *lock = 1;
    if (m == NULL) return;
    if (m->config.finds_races) fk__happens_rmw(m->current, lock, FK_ACQUIRE);
    fk__machine_emit(
        m, (fk_access){ FK_ACCESS_LOCK, FK_ACQUIRE, m->current, lock, 0, 1, NULL, false });
}

void fk__machine_unlock(uint32_t *lock)
{
    if (fk__machine != NULL) {
        fk__sim_store(lock, FK_WIDTH_HALF, 0, FK_RELEASE);
    } else {
        *lock = 0;
    }
}

static bool is_awake(void *arg)
{
    const fk_vthread *t = arg;
    return t->sleeps_at == NULL || (t->late != NULL && t->late(t->late_arg));
}

void fk__machine_wait(uint32_t *word, uint32_t seen, fk_machine_cond_fn *late, void *arg)
{
    fk_machine *m = fk__machine;
    if (m == NULL) {
        if (*word == seen) abort();
        return;
    }
    fk__machine_go(m);
    if (!fk__quarantine_is_ok(word)) fk__machine_fail(FK_USE_AFTER_FREE);
    fk__machine_drain(m, m->current);
    fk__machine_emit(
        m, (fk_access){ FK_ACCESS_WAIT, FK_SEQ_CST, m->current, word, *word, seen, NULL, false });
    if (*word != seen) return;
    fk_vthread *t = &m->thread[m->current];
    t->sleeps_at = word;
    t->late = late;
    t->late_arg = arg;
    fk__machine_await(is_awake, t);
    t->sleeps_at = NULL;
}

void fk__machine_notify(uint32_t *word)
{
    fk_machine *m = fk__machine;
    if (m == NULL) return;
    fk__machine_go(m);
    fk__machine_drain(m, m->current);
    for (uint32_t i = 0; i < m->thread_count; i++) {
        if (m->thread[i].sleeps_at == word) m->thread[i].sleeps_at = NULL;
    }
    fk__machine_emit(m, (fk_access){ .kind = FK_ACCESS_NOTIFY, .thread = m->current, .at = word });
}

void fk__machine_note(const char *text, uintptr_t value)
{
    if (fk__machine == NULL) return;
    fk__machine_emit(fk__machine, (fk_access){ .kind = FK_ACCESS_NOTE,
                                               .thread = fk__machine->current,
                                               .after = value,
                                               .text = text });
}

const char *fk__memory_name(fk_memory memory)
{
    static const char *const NAMES[] = { "sc", "tso", "tso+" };
    return NAMES[memory];
}

const char *fk__event_name(fk_access_kind kind)
{
    static const char *const NAMES[] = { "load", "store", "init",   "swap",  "add",   "and",
                                         "or",   "cas",   "cas!",   "flush", "await", "relax",
                                         "lock", "wait",  "notify", "note",  "end" };
    _Static_assert(sizeof(NAMES) / sizeof(NAMES[0]) == FK_ACCESS_COUNT, "one name each");
    return NAMES[kind];
}

const char *fk__order_name(fk_order order)
{
    static const char *const NAMES[] = { "relaxed", "acquire", "release", "acq_rel", "seq_cst" };
    return NAMES[order];
}

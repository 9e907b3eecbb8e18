/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What an access does: it is a scheduling point (unless relaxed), then a check that the
 * memory still exists, then the effect in the present memory model, the order it makes
 * (sim/happens.h), and a line for the trace.
 */

#include "sim/happens.h"
#include "sim/machine_state.h"
#include "sim/quarantine.h"

#include <assert.h>
#include <stdlib.h>

static void point(fk_machine *m, fk_order o)
{
    if (m->is_peeking || m->is_settling) return;
    if (o != FK_RELAXED || m->config.is_fine) fk__machine_go(m);
}

static void check_memory(fk_machine *m, const void *at)
{
    if (fk__quarantine_is_ok(at)) return;
    if (!m->is_peeking) fk__machine_fail(FK_USE_AFTER_FREE);
    fk__machine_fail_softly(m, FK_USE_AFTER_FREE);
}

/* What a load by thread gives: its own youngest buffered store, or memory. */
static uintptr_t view(const fk_machine *m, uint32_t thread, const void *at, fk_width width)
{
    const fk_store *own = fk__storebuffer_find(&m->thread[thread].buffer, at);
    return own != NULL ? own->value : fk__memory_read(at, width);
}

/* Buffers the store, or makes it at once in SC. Returns whether it was buffered. */
static bool put(fk_machine *m, void *at, fk_width width, uintptr_t value, fk_order o)
{
    fk_storebuffer *b = &m->thread[m->current].buffer;
    fk_store s;
    s.at = at;
    s.value = value;
    s.width = width;
    if (m->config.finds_races) s.carried = fk__happens_release(m->current, at, o);
    if (m->config.memory == FK_MEMORY_SC) {
        fk__memory_write(at, width, value);
        if (m->config.finds_races) fk__happens_store(at, &s.carried);
        return false;
    }
    if (b->len == FK_STOREBUFFER_LEN) fk__machine_flush(m, m->current);
    fk__storebuffer_put(b, s);
    m->buffered |= fk__machine_bit(m->current);
    return true;
}

/* A load orders by what it read; reading an own buffered store orders nothing new. */
static void acquire_from(const fk_machine *m, const void *at, fk_order o)
{
    bool is_own = fk__storebuffer_find(&m->thread[m->current].buffer, at) != NULL;
    fk__happens_load(m->current, at, is_own ? FK_RELAXED : o);
}

uintptr_t fk__sim_load(const void *at, fk_width width, fk_order o)
{
    fk_machine *m = fk__machine;
    point(m, o);
    check_memory(m, at);
    if (m->is_peeking) return view(m, m->viewer, at, width);
    uintptr_t value = view(m, m->current, at, width);
    if (m->config.finds_races) acquire_from(m, at, o);
    fk__machine_emit(m,
                     (fk_access){ FK_ACCESS_LOAD, o, m->current, at, value, value, NULL, false });
    return value;
}

void fk__sim_store(void *at, fk_width width, uintptr_t value, fk_order o)
{
    fk_machine *m = fk__machine;
    assert(!m->is_peeking);
    point(m, o);
    check_memory(m, at);
    uintptr_t before = view(m, m->current, at, width);
    bool is_buffered = put(m, at, width, value, o);
    fk__machine_emit(
        m, (fk_access){ FK_ACCESS_STORE, o, m->current, at, before, value, NULL, is_buffered });
    if (o == FK_SEQ_CST) fk__machine_drain(m, m->current);
}

/* Nobody else can see the location, so buffering it would only multiply equal schedules. It must
 * still come after an older store of ours to the same place. */
void fk__sim_init(void *at, fk_width width, uintptr_t value)
{
    fk_machine *m = fk__machine;
    assert(!m->is_peeking);
    check_memory(m, at);
    uintptr_t before = view(m, m->current, at, width);
    bool is_buffered = false;
    if (fk__storebuffer_find(&m->thread[m->current].buffer, at) != NULL) {
        is_buffered = put(m, at, width, value, FK_RELAXED);
    } else {
        fk__memory_write(at, width, value);
        if (m->config.finds_races) {
            fk_clock nothing = fk__happens_release(m->current, at, FK_RELAXED);
            fk__happens_store(at, &nothing);
        }
    }
    fk__machine_emit(m, (fk_access){ FK_ACCESS_INIT, FK_RELAXED, m->current, at, before, value,
                                     NULL, is_buffered });
}

/* Empties the buffer before a read-modify-write, as the memory mode wants. */
static void drain_for(fk_machine *m, const void *at, fk_order o)
{
    bool may_stay = m->config.memory == FK_MEMORY_TSO_PLUS && (o == FK_RELAXED || o == FK_ACQUIRE);
    if (may_stay && fk__storebuffer_find(&m->thread[m->current].buffer, at) == NULL) return;
    fk__machine_drain(m, m->current);
}

static uintptr_t rmw_result(fk_rmw kind, uintptr_t old, uintptr_t value)
{
    switch (kind) {
    case FK_RMW_SWAP: return value;
    case FK_RMW_ADD: return old + value;
    case FK_RMW_AND: return old & value;
    case FK_RMW_OR: return old | value;
    }
    abort();
}

uintptr_t fk__sim_rmw(void *at, fk_width width, fk_rmw kind, uintptr_t value, fk_order o)
{
    fk_machine *m = fk__machine;
    assert(!m->is_peeking);
    fk__machine_go(m);
    check_memory(m, at);
    drain_for(m, at, o);
    uintptr_t old = fk__memory_read(at, width);
    fk__memory_write(at, width, rmw_result(kind, old, value));
    if (m->config.finds_races) fk__happens_rmw(m->current, at, o);
    fk__machine_emit(m, (fk_access){ (fk_access_kind)(FK_ACCESS_SWAP + (int)kind), o, m->current,
                                     at, old, fk__memory_read(at, width), NULL, false });
    return old;
}

bool fk__sim_cas(void *at, fk_width width, uintptr_t *expected, uintptr_t value, fk_order o)
{
    fk_machine *m = fk__machine;
    assert(!m->is_peeking);
    fk__machine_go(m);
    check_memory(m, at);
    /* A compare-exchange that fails writes nothing; TSO empties the buffer all the same. */
    if (m->config.memory != FK_MEMORY_TSO_PLUS) fk__machine_drain(m, m->current);
    uintptr_t old = view(m, m->current, at, width);
    bool done = old == *expected;
    if (done) {
        drain_for(m, at, o);
        fk__memory_write(at, width, value);
        if (m->config.finds_races) fk__happens_rmw(m->current, at, o);
    } else {
        *expected = old;
        if (m->config.finds_races) acquire_from(m, at, FK_ACQUIRE);
    }
    fk__machine_emit(m, (fk_access){ done ? FK_ACCESS_CAS : FK_ACCESS_CAS_FAILED, o, m->current, at,
                                     old, value, NULL, false });
    return done;
}

void fk__machine_plain(const void *at, bool is_write)
{
    fk_machine *m = fk__machine;
    if (m == NULL) return;
    if (!fk__quarantine_is_ok(at)) fk__machine_fail(FK_USE_AFTER_FREE);
    if (!m->config.finds_races || fk__happens_plain(m->current, at, is_write)) return;
    fk__machine_fail("data race");
}

void fk__machine_discard(const void *at, size_t size)
{
    fk_machine *m = fk__machine;
    if (m == NULL) return;
    if (m->config.finds_races && !fk__happens_free(m->current, at, size)) {
        fk__machine_fail("data race: freed without order after an access");
    }
    fk_storebuffer *b = &m->thread[m->current].buffer;
    for (uint32_t i = 0; i < b->len; i++) {
        if ((uintptr_t)b->store[i].at - (uintptr_t)at < size) b->store[i].at = NULL;
    }
}

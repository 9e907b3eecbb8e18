/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/terminate.h"

#include "base/safeguard.h"
#include "core/event.h"
#include "core/guardian.h"
#include "core/turn.h"

struct fk_farewell {
    fk_farewell *next; /* the one before it */
    fk_farewell_fn fn;
    void *user;
};

static const char *phase_name(uint32_t phase)
{
    static const char *const NAMES[] = { "booting",   "running",         "stopping_user",
                                         "hooks",     "stopping_system", "stopping_root",
                                         "terminated" };
    return phase <= FK_TERMINATION_DOWN ? NAMES[phase] : "unknown";
}

enum { PHASE_BITS = 0xff, VIA_USER = 0x100 /* not by force from running */ };

static uint32_t phase_now(const fk_system *sys)
{
    return fk__half_load(&sys->termination, FK_ACQUIRE) & PHASE_BITS;
}

/* True: it was in `before` and is there now. */
static bool move_to(fk_system *sys, fk_termination phase, uint32_t *before)
{
    uint32_t after, word = fk__half_load(&sys->termination, FK_ACQUIRE);
    do {
        *before = word & PHASE_BITS;
        if (*before >= (uint32_t)phase && FK_SAFEGUARD(TERMINATE_ONCE)) return false;
        after = (uint32_t)phase | (word & VIA_USER);
        if (phase == FK_TERMINATION_USER) after |= VIA_USER;
    } while (!fk__half_cas(&sys->termination, &word, after, FK_ACQ_REL));
    return true;
}

static void phase_publish(fk_system *sys, fk_local *local, uint32_t from, fk_termination to,
                          const char *reason)
{
    fk__event(sys, local,
              &(fk_event){ .kind = FK_EVENT_TERMINATION,
                           .from = phase_name(from),
                           .to = phase_name(to),
                           .reason = reason });
}

bool fk__terminate_reach(fk_system *sys, fk_local *local, fk_termination phase, const char *reason)
{
    uint32_t before;
    if (!move_to(sys, phase, &before)) return false;
    if (phase != FK_TERMINATION_RUNNING) phase_publish(sys, local, before, phase, reason);
    return true;
}

static void ask_stop(fk_local *local, fk_cell *cell)
{
    uint32_t generation = fk__half_load(&cell->generation, FK_ACQUIRE);
    if ((generation & 1) != 0) fk__cell_ask_stop(local, cell, generation);
}

void fk__terminate_begin(fk_system *sys, fk_local *local, const char *reason)
{
    uint32_t before;
    uintptr_t nobody = 0;
    fk__half_store(&sys->stopping, FK_SPAWN_STOPPING, FK_SEQ_CST);
    fk__word_cas(&sys->termination_reason, &nobody, (uintptr_t)reason, FK_ACQ_REL);
    if (!move_to(sys, FK_TERMINATION_USER, &before)) return;
    ask_stop(local, sys->top.user);
    if (!FK_SAFEGUARD(USER_FIRST)) ask_stop(local, sys->top.system);
}

void fk__terminate_user_stops(fk_system *sys, fk_local *local)
{
    fk__terminate_begin(sys, local, "/user stops");
    bool is_so = (fk__half_load(&sys->termination, FK_ACQUIRE) & VIA_USER) != 0;
    const char *reason = fk__word_ptr(&sys->termination_reason, FK_ACQUIRE);
    if (is_so) phase_publish(sys, local, FK_TERMINATION_RUNNING, FK_TERMINATION_USER, reason);
}

void fk__terminate_finish(fk_ctx *ctx, void *state)
{
    fk_system *sys = fk_system_of(ctx);
    (void)state;
    for (;;) {
        fk__mem_lock(&sys->mem, &sys->lock);
        fk_farewell *last = sys->farewells;
        if (last != NULL) sys->farewells = last->next;
        sys->is_farewell_over = last == NULL;
        fk__mem_unlock(&sys->mem, &sys->lock);
        if (last == NULL) break;
        last->fn(last->user, sys);
        fk__mem_free(&sys->mem, last, sizeof(*last));
    }
}

void fk__terminate_over(fk_system *sys, fk_local *local)
{
    fk__terminate_reach(sys, local, FK_TERMINATION_DOWN, "all actors are gone");
    fk__events_stop(sys);
}

void fk__terminate_fini(fk_system *sys)
{
    while (sys->farewells != NULL) { /* of a system that never ran */
        fk_farewell *last = sys->farewells;
        sys->farewells = last->next;
        fk__mem_free(&sys->mem, last, sizeof(*last));
    }
}

/* ---- the public functions ----------------------------------------------------------------------- */

static bool is_booting(const fk_system *sys)
{
    return phase_now(sys) == FK_TERMINATION_BOOTING;
}

fk_err fk_terminate(fk_system *sys)
{
    if (is_booting(sys)) return FK_E_NOT_BOOTSTRAPPED;
    fk_local *local = fk__local_enter(sys);
    fk__terminate_begin(sys, local, "asked for");
    fk__local_leave(local);
    return FK_OK;
}

fk_err fk_terminate_now(fk_system *sys)
{
    if (is_booting(sys)) return FK_E_NOT_BOOTSTRAPPED;
    fk_local *local = fk__local_enter(sys);
    fk__half_store(&sys->stopping, FK_SPAWN_STOPPING, FK_SEQ_CST);
    /* Whoever has said so acts, and nobody before him: events come in the order of what happens. */
    if (fk__terminate_reach(sys, local, FK_TERMINATION_ROOT, "at once, by force")) {
        ask_stop(local, sys->top.root);
    }
    fk__local_leave(local);
    return FK_OK;
}

bool fk_is_terminating(fk_system *sys)
{
    return phase_now(sys) > FK_TERMINATION_RUNNING;
}

fk_err fk_await_termination(fk_system *sys, fk_time timeout)
{
    return fk_await_stopped(sys, fk_guardian(sys, FK_GUARDIAN_ROOT), timeout);
}

fk_err fk_on_termination(fk_system *sys, fk_farewell_fn fn, void *user)
{
    void *memory;
    if (fn == NULL) return FK_E_INVALID;
    FK_TRY(fk__mem_alloc(&sys->mem, sizeof(fk_farewell), FK_SITE("farewell"), &memory));
    fk_farewell *farewell = memory;
    fk__mem_lock(&sys->mem, &sys->lock);
    bool is_over = sys->is_farewell_over;
    *farewell = (fk_farewell){ sys->farewells, fn, user };
    if (!is_over) sys->farewells = farewell;
    fk__mem_unlock(&sys->mem, &sys->lock);
    if (!is_over) return FK_OK;
    fk__mem_free(&sys->mem, farewell, sizeof(*farewell));
    return FK_E_STOPPING;
}

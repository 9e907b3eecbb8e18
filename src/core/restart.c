/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Restart: the old state is left, the new one begun, and everything else stays: reference, mailbox,
 * watchers, watches. In between the actor waits, RESTARTING, for the children that have to go.
 */

#include "base/safeguard.h"
#include "core/children.h"
#include "core/event.h"
#include "core/extras.h"
#include "core/supervise.h"

static void hook_begin(fk_worker *worker, fk_cell *cell)
{
    worker->ctx.cell = cell;
    worker->ctx.node = NULL;
    worker->ctx.detail[0] = '\0';
}

/* Children of an actor with a hook of its own stay, unless the hook has stopped them. */
static bool keeps_children(const fk_cell *cell)
{
    return cell->props->before_restart != NULL && (cell->flags & FK_CELL_UNSTARTED) == 0;
}

static bool is_asked_to_stop(const fk_cell *child)
{
    return fk__half_load(&child->stop_generation, FK_ACQUIRE) ==
           fk__half_load(&child->generation, FK_ACQUIRE);
}

static void stop_children(fk_worker *worker, fk_cell *cell)
{
    fk_brood brood = fk__brood(cell);
    fk_cell *child;
    while ((child = fk__brood_next(&brood)) != NULL) {
        uint32_t generation = fk__half_load(&child->generation, FK_ACQUIRE);
        if ((generation & 1) != 0) fk__cell_ask_stop(&worker->local, child, generation);
    }
}

/* What has to be gone before the new state begins; without keeps_children() all of them have. */
static void await_stopped(fk_cell *cell)
{
    fk_brood brood = fk__brood(cell);
    fk_cell *child;
    cell->extras->awaited = 0;
    while ((child = fk__brood_next(&brood)) != NULL) {
        if (!is_asked_to_stop(child)) continue;
        fk__half_or(&child->ended.word, FK_WORD_AWAITED, FK_RELAXED);
        cell->extras->awaited++;
    }
}

void fk__cell_restart(fk_worker *worker, fk_cell *cell, fk_err why)
{
    const fk_props *props = cell->props;
    if (cell->life != FK_LIFE_RUNNING) return; /* it has not begun, or is at it, or at its end */
    cell->flags |= FK_CELL_HALTED;
    /* From here on an answer to the failure, if there was one, comes too late. */
    if ((cell->suspended & FK_HELD_FAILED) != 0) fk__cell_retract(cell);
    bool keeps = keeps_children(cell);
    hook_begin(worker, cell);
    if (!keeps) stop_children(worker, cell);
    if (keeps)
        props->before_restart(&worker->ctx, cell->state, why);
    else if (props->stop != NULL && (cell->flags & FK_CELL_UNSTARTED) == 0)
        props->stop(&worker->ctx, cell->state);
    worker->ctx.detail[0] = '\0';
    if (keeps)
        await_stopped(cell);
    else
        stop_children(worker, cell); /* those that the hook has made */
    cell->life = FK_LIFE_RESTARTING;
    if (cell->extras != NULL) fk__extras_reset(worker, cell);
    if (FK_SAFEGUARD(BEHAVIOUR_RESTART)) cell->receive = props->receive;
    fk__cell_try_restart(worker, cell);
}

/* Those that the restart has left alive begin anew as well, and nothing else is known of them. */
static void restart_children(fk_worker *worker, fk_cell *cell, fk_err why)
{
    fk_brood brood = fk__brood(cell);
    fk_cell *child;
    uint32_t notes = FK_WORD_ESCALATED | FK_WORD_PENDING;
    while ((child = fk__brood_next(&brood)) != NULL) {
        fk__half_and(&child->ended.word, ~notes, FK_ACQ_REL);
        fk__cell_order_restart(&worker->local, child, why);
    }
    cell->suspended &= (uint16_t)~FK_HELD_NEWS;
}

static void state_renew(fk_cell *cell)
{
    size_t size = cell->props->state_size;
    if ((cell->flags & FK_CELL_OWNED) == 0) return;
    if (cell->props->init != NULL)
        memcpy(cell->state, (const char *)cell->state + size, size);
    else
        memset(cell->state, 0, size);
}

/* Has it ever lived? Not if its first start failed; but what failed in a restart did before that. */
static bool has_lived(const fk_cell *cell)
{
    uint32_t word = fk__half_load(&cell->ended.word, FK_RELAXED);
    uint32_t phase = word & (FK_WORD_AT_START | FK_WORD_AT_RESTART);
    return (cell->flags & FK_CELL_UNSTARTED) == 0 || phase == FK_WORD_AT_RESTART;
}

static fk_err begin_anew(fk_worker *worker, fk_cell *cell, fk_err why, fk_failure_phase *phase)
{
    const fk_props *props = cell->props;
    bool was_alive = has_lived(cell);
    cell->flags &= (uint8_t)~FK_CELL_UNSTARTED;
    hook_begin(worker, cell);
    *phase = was_alive ? FK_PHASE_RESTART : FK_PHASE_START;
    if (was_alive && props->after_restart != NULL) {
        return props->after_restart(&worker->ctx, cell->state, why);
    }
    return props->start != NULL ? props->start(&worker->ctx, cell->state) : FK_OK;
}

static bool waits_for_children(const fk_cell *cell)
{
    if (!keeps_children(cell)) return cell->children_count != 0;
    FK_ASSERT(cell->extras != NULL); /* spawn.c */
    return cell->extras->awaited != 0;
}

void fk__cell_try_restart(fk_worker *worker, fk_cell *cell)
{
    fk_failure_phase phase;
    if (cell->life != FK_LIFE_RESTARTING) return;
    if (waits_for_children(cell) && FK_SAFEGUARD(RESTART_WAITS)) return;
    /* Still in the word: nobody has failed since. */
    fk_err why = (fk_err)(fk__half_load(&cell->ended.word, FK_RELAXED) >> FK_WORD_ERROR_SHIFT);
    if (FK_SAFEGUARD(RESTART_FRESH)) state_renew(cell);
    cell->life = FK_LIFE_RUNNING;
    fk__cell_settle(cell);
    restart_children(worker, cell, why);
    fk_err err = begin_anew(worker, cell, why, &phase);
    if (err != FK_OK) {
        fk__cell_failed(worker, cell, NULL, err, phase);
        return;
    }
    worker->ctx.detail[0] = '\0';
    fk__publish_life(&worker->local, FK_EVENT_RESTARTED, fk__cell_ref(cell), why);
    if ((cell->flags & FK_CELL_LEAVING) != 0)
        fk__cell_stop(worker, cell);
    else
        fk__cell_hold(worker, cell);
}

void fk__cell_start(fk_worker *worker, fk_cell *cell)
{
    cell->life = FK_LIFE_RUNNING;
    hook_begin(worker, cell);
    fk_err err = cell->props->start(&worker->ctx, cell->state);
    if (err != FK_OK) {
        fk__cell_failed(worker, cell, NULL, err, FK_PHASE_START);
        return;
    }
    worker->ctx.detail[0] = '\0';
    fk__publish_life(&worker->local, FK_EVENT_STARTED, fk__cell_ref(cell), FK_OK);
    if ((cell->flags & FK_CELL_LEAVING) != 0)
        fk__cell_stop(worker, cell);
    else
        fk__cell_hold(worker, cell);
}

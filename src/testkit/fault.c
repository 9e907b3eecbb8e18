/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Faults. None of them is known to the core: messages are dropped from the mailbox of an actor that
 * is about to run, and an actor that must wait is kept out of its worker's queue. With one thread,
 * and the actor's run token in hand, nobody else looks there.
 */

#include <stdio.h>

#include "core/box.h"
#include "core/mailbox.h"
#include "testkit/sim.h"

/* ---- memory ------------------------------------------------------------------------------ */

void fk_sim_fail_alloc(fk_sim *sim, uint64_t n)
{
    sim->memory.fail_at = n != 0 ? sim->memory.asked + n : 0;
    sim->memory.fail_stays = false;
}

void fk_sim_fail_alloc_from(fk_sim *sim, uint64_t n)
{
    fk_sim_fail_alloc(sim, n);
    sim->memory.fail_stays = true;
}

void fk_sim_fail_site(fk_sim *sim, const char *what)
{
    sim->memory.fail_site = what;
}

uint64_t fk_sim_allocs(const fk_sim *sim)
{
    return sim->memory.asked;
}

uint64_t fk_sim_refused(const fk_sim *sim)
{
    return sim->memory.refused;
}

/* ---- messages that get lost -------------------------------------------------------------- */

fk_err fk_sim_drop_next(fk_sim *sim, fk_ref to, const fk_type *type, uint32_t n)
{
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        if (sim->drops[i].left != 0) continue;
        sim->drops[i] = (fk_sim_drop){ to, type, n };
        return FK_OK;
    }
    return FK_E_LIMIT;
}

/* A rule and the cell it is held against. */
typedef struct drop_match {
    fk_sim_drop *rule;
    uint32_t generation;
} drop_match;

/* Timers and what the runtime handles itself are no messages that can get lost. */
static bool is_dropped(void *arg, const fk_node *node)
{
    const drop_match *match = arg;
    if ((node->flags & (FK_NODE_TIMER | FK_NODE_AUTO)) != 0) return false;
    if (node->generation != match->generation) return false;
    return match->rule->type == NULL || match->rule->type == node->type;
}

/* Takes the oldest that matches out of the queue, or NULL. */
static fk_node *queue_pull(fk_cell *cell, drop_match *match)
{
    fk_link *before = cell->head;
    fk_link *link;
    while ((link = fk__word_ptr(&before->next, FK_RELAXED)) != NULL) {
        fk_node *node = FK_CONTAINER(link, fk_node, link);
        if (is_dropped(match, node)) {
            uintptr_t next = fk__word_load(&link->next, FK_RELAXED);
            fk__word_store(&before->next, next, FK_RELAXED);
            if (next == 0) fk__word_store(&cell->tail, (uintptr_t)before, FK_RELAXED);
            return node;
        }
        before = link;
    }
    return NULL;
}

static fk_node *mailbox_pull(fk_cell *cell, drop_match *match)
{
    fk_box *box = fk__word_ptr(&cell->box, FK_RELAXED);
    fk_node *node = queue_pull(cell, match);
    if (node != NULL || box == NULL) return node;
    return fk__box_pull(box, cell->sys, is_dropped, match);
}

static void drop_node(fk_sim *sim, fk_worker *worker, fk_ref to, fk_node *node)
{
    fk_moment moment = { .kind = FK_MOMENT_FAULT, .actor = to, .type = node->type };
    snprintf(moment.text, sizeof(moment.text), "dropped");
    fk__sim_record(sim, &moment);
    fk__dead_node(&worker->local, FK_REASON_DROPPED_OLDEST, to, node);
    fk__node_drop_contents(&worker->local.cache, node);
    fk__node_free(&worker->local.cache, node);
}

void fk__sim_drop_from(fk_sim *sim, fk_worker *worker, fk_cell *cell)
{
    fk_ref self = fk__cell_ref(cell);
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        fk_sim_drop *rule = &sim->drops[i];
        if (rule->left == 0) continue;
        if (!fk_ref_is_none(rule->to) && !fk_ref_equal(rule->to, self)) continue;
        drop_match match = { rule, self.generation };
        fk_node *node;
        while (rule->left > 0 && (node = mailbox_pull(cell, &match)) != NULL) {
            rule->left--;
            drop_node(sim, worker, self, node);
        }
    }
}

/* ---- actors that have to wait ------------------------------------------------------------ */

fk_err fk_sim_delay(fk_sim *sim, fk_ref actor, fk_time by)
{
    fk_sim_hold *free = NULL;
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        fk_sim_hold *hold = &sim->holds[i];
        if (hold->until == 0)
            free = hold;
        else if (fk_ref_equal(hold->actor, actor))
            return FK_E_STATE;
    }
    if (free == NULL) return FK_E_LIMIT;
    *free = (fk_sim_hold){ .actor = actor, .until = fk__sim_deadline(sim, by) };
    fk_moment moment = { .kind = FK_MOMENT_FAULT, .actor = actor };
    snprintf(moment.text, sizeof(moment.text), "delay");
    fk__sim_record(sim, &moment);
    return FK_OK;
}

fk_sim_hold *fk__sim_hold_of(fk_sim *sim, const fk_cell *cell)
{
    fk_ref self = fk__cell_ref(cell);
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        fk_sim_hold *hold = &sim->holds[i];
        if (hold->until > sim->now && fk_ref_equal(hold->actor, self)) return hold;
    }
    return NULL;
}

void fk__sim_release(fk_sim *sim)
{
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        fk_sim_hold *hold = &sim->holds[i];
        if (hold->until == 0 || hold->until > sim->now) continue;
        if (hold->cell != NULL) fk__ready_push(hold->worker, hold->cell);
        *hold = (fk_sim_hold){ .until = 0 };
    }
}

fk_time fk__sim_release_next(const fk_sim *sim)
{
    fk_time next = FK_NEVER;
    for (size_t i = 0; i < FK_SIM_RULES_MAX; i++) {
        if (sim->holds[i].until != 0 && sim->holds[i].until < next) next = sim->holds[i].until;
    }
    return next;
}

void fk_sim_reorder(fk_sim *sim, bool on)
{
    sim->in_order = !on;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold when everything has come right, when nobody calls any more, and at the end. */

#include "sim/cluster.h"

#include "sim/linear.h"

#include <string.h>

static fk_csim *const w = &fk__csim;
static fk_csim_book *const b = &fk__csim.book;

/* L2: each slot is with the owner that the newest view says. */
static void check_slots(void)
{
    const fk_csim_services *s = &w->services;
    const fk_csim_node *judge = NULL;
    for (uint32_t i = 0; i < w->plan.members; i++) {
        if (w->node[i].state == FK_CSIM_RUNNING) judge = &w->node[i];
    }
    if (judge == NULL) {
        fk__csim_fail("L2", "nobody is there");
        return;
    }
    if (fk_placement_view(judge->placement).version != s->version) {
        fk__csim_fail("L2", "n%u does not have the newest view", (unsigned)judge->index);
    }
    for (uint32_t i = 0; i < FK_CSIM_KINDS * FK_CSIM_SLOTS; i++) {
        uint32_t kind = i / FK_CSIM_SLOTS, slot = i % FK_CSIM_SLOTS, at = 0;
        const fk_csim_slot *held = &s->slot[kind][slot];
        fk_member member;
        fk_err err = fk_placement_owner(judge->placement, &w->probe[kind][slot], &member, &at);
        if (err != FK_OK) fk__csim_fail("L2", "slot %u has no owner", (unsigned)slot);
        uint8_t owner = fk__csim_index(member.id);
        bool is_held = fk__csim_lease_is_good(held->holder, held->incarnation);
        if (is_held && held->holder == owner && held->incarnation == member.incarnation) continue;
        fk__csim_fail("L2", "slot %u of kind %u should be with n%u#%llu, and is with n%u#%llu",
                      (unsigned)slot, (unsigned)kind, (unsigned)owner,
                      (unsigned long long)member.incarnation, (unsigned)held->holder,
                      (unsigned long long)(is_held ? held->incarnation : 0));
    }
}

/* One activation of each grain, wherever. */
static void check_single(void)
{
    for (uint32_t key = 0; key < w->plan.keys; key++) {
        uint32_t count = 0;
        for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
            for (const fk_csim_act *act = w->node[i].acts; act != NULL; act = act->next) {
                if (act->key == key && !act->is_stopping) count++;
            }
        }
        if (count > 1) {
            fk__csim_fail("I4", "there are %u activations of g%u", (unsigned)count, (unsigned)key);
        }
    }
}

void fk__book_check_live(void)
{
    check_slots();
    check_single();
}

void fk__book_check_idle(void)
{
    for (uint32_t i = 0; i < FK_CSIM_NODES; i++) {
        const fk_csim_node *n = &w->node[i];
        if (n->state != FK_CSIM_RUNNING) continue;
        fk_placement_snapshot shot;
        fk_placement_snapshot_get(n->placement, &shot);
        if (shot.activations != 0 || n->acts != NULL) {
            fk__csim_fail("L4", "n%u still has idle grains", (unsigned)i);
        }
        if (shot.cached != 0)
            fk__csim_fail("L4", "n%u remembers %u pids", (unsigned)i, shot.cached);
        if (shot.flights != 0 || shot.waiters != 0 || shot.stopping != 0) {
            fk__csim_fail("I12", "n%u waits for something, and nothing comes", (unsigned)i);
        }
        if (shot.commands_pending > 1) { /* a renewal may be under way */
            fk__csim_fail("I12", "n%u has %u commands without a result", (unsigned)i,
                          (unsigned)shot.commands_pending);
        }
        if (fk__desk_count(n->desk) != 0) fk__csim_fail("L1", "a call is left at n%u", (unsigned)i);
    }
}

/* ---- the end ----------------------------------------------------------------------------------- */

static void check_key(uint32_t key)
{
    static fk_linear_call calls[FK_CSIM_OPS];
    uint32_t count = 0, at = 0;
    uint64_t total = w->services.row[key].total;
    if (total != b->applied[key]) {
        fk__csim_fail("I6", "g%u has %llu, and %llu calls had their effect", (unsigned)key,
                      (unsigned long long)total, (unsigned long long)b->applied[key]);
    }
    for (uint32_t i = 0; i < b->deed_count; i++) {
        const fk_csim_deed *d = &b->deed[i];
        if (d->key != key) continue;
        bool is_known = d->is_over && d->err == FK_OK;
        if (is_known && !d->is_read && !d->is_applied) {
            fk__csim_fail("I6", "call %u was answered, and is lost", (unsigned)i);
        }
        if (!is_known && d->is_read) continue;
        /* A turn that only looks is fenced by time alone: whoever has lost its slot without knowing,
         * because its clock or the lock failed, may tell what was true before. */
        if (!w->is_strict && d->is_read) continue;
        calls[count++] = (fk_linear_call){ .begun = d->begun,
                                           .ended = is_known ? d->ended : FK_NEVER,
                                           .value = d->value,
                                           .is_read = d->is_read };
    }
    const char *wrong = fk__linear_check(calls, count, total, &at);
    if (wrong != NULL) fk__csim_fail("I7", "g%u: %s", (unsigned)key, wrong);
}

void fk__book_check_ended(void)
{
    for (uint32_t key = 0; key < w->plan.keys; key++) {
        if (w->key_kind[key] == 0) check_key(key);
    }
    /* Who was killed has taken its own with it. */
    bool is_gentle = w->plan.mood == FK_CSIM_CALM || w->plan.mood == FK_CSIM_ROLLING;
    if (is_gentle && b->kept_records != 0) {
        fk__csim_fail("I18", "%u records were not discarded", (unsigned)b->kept_records);
    }
}

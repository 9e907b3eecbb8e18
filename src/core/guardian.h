/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_GUARDIAN_H
#define FK_CORE_GUARDIAN_H

/*
 * The top of the tree: the root, its children /user, /system, /temp and /deadLetters, and what else
 * was registered there before the system ran.
 *
 * They are actors like any other, except that they have no uid, that anybody may spawn under the
 * first three of the children, and that their slots are never used again. The system holds the three
 * that matter as references with a flag that says whether they live; the cells belong to the slots.
 */

#include "core/system.h"

enum { FK_GUARDIANS = 5, FK_GUARDIAN_KINDS = FK_GUARDIAN_ROOT + 1 };

/* The root: the first step of a boot. */
FK_MUST_USE fk_err fk__root_create(fk_system *sys);
/* /user or /system. props and strategy may be NULL; for others than /user they must be. */
FK_MUST_USE fk_err fk__guardian_create(fk_system *sys, fk_guardian_kind kind, const fk_props *props,
                                       const fk_strategy *strategy);
/* The rest: /temp, /deadLetters, who watches whom. */
FK_MUST_USE fk_err fk__guardians_link(fk_system *sys);

/* For the three that matter. */
bool fk__guardian_is_alive(const fk_system *sys, fk_guardian_kind kind);
/* One of them has stopped. Whoever it is not is nobody: a warning, nothing else. */
void fk__guardian_stopped(fk_system *sys, fk_local *local, fk_ref ref);

/* One that the runtime made itself. */
static inline bool fk__is_top(const fk_system *sys, const fk_cell *cell)
{
    return cell == sys->top.root || cell == sys->top.user || cell == sys->top.system ||
           cell == sys->top.temp || cell == sys->top.dead_letters;
}

/* Others make its children, as under a guardian, and so it ends with /user only. */
static inline bool fk__is_shared(const fk_cell *cell)
{
    /* Relaxed: set before anybody has a ref of it. */
    return (fk__half_load(&cell->gate, FK_RELAXED) & FK_GATE_SHARED) != 0;
}

/* The root or one of its children. */
static inline bool fk__is_guardian(const fk_cell *cell)
{
    const fk_cell *parent = fk__cell_parent(cell);
    return parent == NULL || fk__cell_parent(parent) == NULL;
}

#endif /* FK_CORE_GUARDIAN_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLUSTER_TABLE_H
#define FK_CLUSTER_TABLE_H

/*
 * Who should own the slots of one kind: the strategy's answer, kept, and brought up to date with as
 * little work as the change allows. A zeroed table has no slots.
 */

#include "base/mem.h"
#include "fraktor/placement.h"

typedef struct fk_slot_table {
    const fk_strategy_ops *strategy;
    uint32_t *owner; /* `slots` of each */
    uint64_t *score; /* the strategy's own */
    fk_candidate *candidates;
    uint32_t slots; /* a power of two, or 0 */
    uint32_t count; /* candidates */
    uint32_t capacity;
} fk_slot_table;

/* Makes the table that strategy->build() would make of these candidates, in the order of their ids
 * (copied). One that came, one that went and one that has another weight are handed to the
 * strategy as such. FK_E_NOMEM, FK_E_LIMIT: nothing has changed. */
FK_MUST_USE fk_err fk__slot_table_update(fk_slot_table *table, fk_mem *mem,
                                         const fk_strategy_ops *strategy,
                                         const fk_candidate *candidates, uint32_t count,
                                         uint32_t slots);
void fk__slot_table_fini(fk_slot_table *table, fk_mem *mem);
/* Asserts that the table is what build() would make of it; needs memory for another one. */
FK_MUST_USE fk_err fk__slot_table_check(const fk_slot_table *table, fk_mem *mem);

/* Index of the candidate, or FK_NOBODY. */
static inline uint32_t fk__slot_table_owner(const fk_slot_table *table, fk_grain_id id)
{
    return table->slots != 0 ? table->owner[fk_slot_of(id, table->slots)] : FK_NOBODY;
}

#endif /* FK_CLUSTER_TABLE_H */

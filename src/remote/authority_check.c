/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold of every authority after every call. */

#include "remote/authority.h"

static void authority_check_queue(const fk_authority_table *table, const fk_authority *a)
{
    uint32_t count = 0;
    const fk_envelope *last = NULL;
    for (const fk_envelope *e = a->deferred.first; e != NULL; e = e->next, count++) last = e;
    FK_ASSERT(count == a->deferred.count);
    FK_ASSERT(last == a->deferred.last);
    FK_ASSERT(count <= table->config.deferred_max);
}

static void authority_check_times(const fk_authority *a)
{
    bool is_planned = a->attempt_at != FK_NEVER;
    bool must_try =
        a->is_mapped && !a->is_open && !a->is_resting && a->state != FK_ASSOCIATION_QUARANTINE;
    fk_time first = a->attempt_at < a->give_up_at ? a->attempt_at : a->give_up_at;
    if (a->lift_at < first) first = a->lift_at;
    if (a->lapse_at < first) first = a->lapse_at;
    FK_ASSERT(a->deadline.at == first);
    FK_ASSERT(!(is_planned && a->is_attempting));
    FK_ASSERT(must_try == (is_planned || a->is_attempting));
    FK_ASSERT(a->give_up_at == FK_NEVER || a->state == FK_ASSOCIATION_UNRESOLVED);
    FK_ASSERT(a->give_up_at == FK_NEVER || !a->is_resting);
    FK_ASSERT(a->lapse_at == FK_NEVER || (a->is_hearsay && !a->is_resting));
    FK_ASSERT(a->lift_at == FK_NEVER || a->state == FK_ASSOCIATION_QUARANTINE);
}

static void authority_check_one(const fk_authority_table *table, const fk_authority *a)
{
    bool is_refused = fk__authority_refuses(a, a->uid);
    FK_ASSERT(a->state < FK_ASSOCIATION_COUNT);
    FK_ASSERT(!a->is_open || a->state == FK_ASSOCIATION_CONNECTED);
    FK_ASSERT(!a->is_open || a->uid != 0);
    FK_ASSERT(!a->is_open || !a->is_hearsay);
    FK_ASSERT(!a->is_draining || a->is_open);
    FK_ASSERT(a->state != FK_ASSOCIATION_CONNECTED || a->is_mapped);
    FK_ASSERT(a->deferred.count == 0 || !a->is_open || a->is_draining);
    FK_ASSERT(!(a->is_open && is_refused));
    FK_ASSERT(!a->is_resting || a->state == FK_ASSOCIATION_UNRESOLVED);
    FK_ASSERT(!a->is_resting || a->deferred.count == 0);
    FK_ASSERT(!a->is_crowded || a->state == FK_ASSOCIATION_QUARANTINE);
    FK_ASSERT(!a->is_spared || a->is_crowded);
    if (a->state == FK_ASSOCIATION_QUARANTINE) {
        FK_ASSERT(a->deferred.count == 0);
        FK_ASSERT(a->uid == 0 || is_refused);
    }
    /* There is room to quarantine the peer without asking for memory. */
    FK_ASSERT(a->quarantined.count <= table->config.uids_max);
    FK_ASSERT(a->uid == 0 || is_refused || a->quarantined.count < a->quarantined.capacity);
    authority_check_queue(table, a);
    authority_check_times(a);
}

void fk__authority_table_check(const fk_authority_table *table)
{
    uint32_t count = 0, kept = 0;
    uint64_t deferred = 0, hearsay = 0;
    for (const fk_authority *a = fk__authority_after(table, NULL); a != NULL;
         a = fk__authority_after(table, a), count++) {
        authority_check_one(table, a);
        deferred += a->deferred.count;
        if (a->is_hearsay) hearsay += a->deferred.count;
        kept += a->is_kept;
    }
    FK_ASSERT(count == table->count);
    FK_ASSERT(kept == table->kept);
    FK_ASSERT(table->tombs.count <= table->config.tombs_max);
    FK_ASSERT(count <= table->config.authorities_max);
    FK_ASSERT(deferred == table->deferred_total);
    FK_ASSERT(hearsay == table->deferred_hearsay);
    FK_ASSERT(deferred <= table->config.deferred_total_max);
    fk__deadlines_check(&table->deadlines);
}

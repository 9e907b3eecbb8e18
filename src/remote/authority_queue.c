/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is to become of an envelope: sent, deferred, refused. */

#include "remote/authority.h"

#include "base/safeguard.h"
#include "remote/authority_clock.h"

enum {
    HEARSAY_MAX = 64, /* envelopes for one of them, at most */
    HEARSAY_SHARE = 4 /* one part in so many of the total, for all */
};

void fk__authority_vouch(fk_authority_table *table, fk_authority *authority)
{
    if (!authority->is_hearsay) return;
    FK_ASSERT(table->deferred_hearsay >= authority->deferred.count);
    table->deferred_hearsay -= authority->deferred.count;
    authority->is_hearsay = false;
    authority->lapse_at = FK_NEVER;
    fk__authority_settle(table, authority);
}

static bool hearsay_has_room(const fk_authority_table *table, const fk_authority *authority)
{
    uint32_t share = table->config.deferred_total_max / HEARSAY_SHARE;
    if (authority->deferred.count >= HEARSAY_MAX) return false;
    return table->deferred_hearsay < share || share == 0;
}

static bool authority_has_room(const fk_authority_table *table, const fk_authority *authority)
{
    if (FK_SAFEGUARD(DEFER_BOUND) && authority->deferred.count >= table->config.deferred_max) {
        return false;
    }
    if (authority->is_hearsay && !hearsay_has_room(table, authority)) return false;
    return !FK_SAFEGUARD(DEFER_TOTAL) || table->deferred_total < table->config.deferred_total_max;
}

/* R4.1: kept back while nobody can be reached. */
static fk_err authority_defer(fk_authority_table *table, fk_authority *authority,
                              fk_envelope *envelope)
{
    if (!authority_has_room(table, authority)) return FK_E_FULL;
    if (FK_SAFEGUARD(DEFER_ORDER))
        fk__envelopes_put(&authority->deferred, envelope);
    else
        fk__envelopes_put_first(&authority->deferred, envelope);
    table->deferred_total++;
    if (authority->is_hearsay) table->deferred_hearsay++;
    return FK_OK;
}

fk_err fk__authority_send(fk_authority_table *table, fk_authority *authority, fk_envelope *envelope,
                          bool pierces, bool *is_deferred)
{
    *is_deferred = false;
    switch (authority->state) {
    case FK_ASSOCIATION_QUARANTINE:
        if (pierces && table->config.rules == FK_RULES_PEKKO) return FK_OK;
        if (FK_SAFEGUARD(QUARANTINE_REFUSES)) return FK_E_QUARANTINED; /* R3.5 */
        break;
    case FK_ASSOCIATION_CONNECTED:
        if (!authority->is_open && FK_SAFEGUARD(OVERRIDE_WAITS)) break;
        if (authority->is_draining && FK_SAFEGUARD(DEFER_DRAIN)) break;
        return FK_OK;
    default: break;
    }
    FK_TRY(authority_defer(table, authority, envelope));
    *is_deferred = true;
    return FK_OK;
}

void fk__authority_take(fk_authority_table *table, fk_authority *authority, uint32_t max,
                        fk_envelopes *out)
{
    FK_ASSERT(max > 0);
    *out = (fk_envelopes){ NULL, NULL, 0 };
    if (!authority->is_open) return; /* it closed again while the caller was sending */
    while (out->count < max && authority->deferred.count > 0) {
        fk__envelopes_put(out, fk__envelopes_take(&authority->deferred));
    }
    FK_ASSERT(table->deferred_total >= out->count);
    table->deferred_total -= out->count;
    /* Only now: the caller has sent the batch before this one. */
    if (out->count == 0) authority->is_draining = false;
}

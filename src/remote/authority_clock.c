/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/authority_clock.h"

#include "base/safeguard.h"

enum { HEARSAY_WAITS_S = 60 };

void fk__authority_settle(fk_authority_table *table, fk_authority *authority)
{
    fk_time first = authority->attempt_at;
    if (authority->give_up_at < first) first = authority->give_up_at;
    if (authority->lift_at < first) first = authority->lift_at;
    if (authority->lapse_at < first) first = authority->lapse_at;
    fk__deadline_set(&table->deadlines, &authority->deadline, first);
}

/* A number from 0 to span. */
static fk_time authority_chance(fk_rng *rng, fk_time span)
{
    uint64_t high = (uint64_t)span >> 32, low = (uint64_t)span & UINT32_MAX;
    uint64_t chance = fk__rng_next(rng) >> 32;
    /* (span * chance) >> 32 without a product that needs more than 64 bits. */
    return (fk_time)(high * chance + (low * chance >> 32));
}

/* Doubled with each failure, and some of it taken off by chance, so that those who lost the same
 * peer at the same moment do not come back at the same moment. */
static fk_time authority_delay(fk_authority_table *table, const fk_authority *authority)
{
    fk_time delay = table->config.backoff_min, max = table->config.backoff_max;
    if (!FK_SAFEGUARD(BACKOFF)) return 0;
    for (uint32_t i = 1; i < authority->failures && delay < max; i++) {
        delay = delay > max / 2 ? max : delay * 2;
    }
    /* In parts of 1024: there is no 64-bit division on a small machine. */
    uint32_t part = table->config.jitter_percent * 1024 / 100;
    return delay - authority_chance(&table->rng, (delay >> 10) * part);
}

/* R4.3 counts the time in which reconnecting fails, so the clock starts with the first attempt. */
static void authority_plan(fk_authority_table *table, fk_authority *authority, fk_time now,
                           fk_time delay)
{
    FK_ASSERT(authority->is_mapped);
    FK_ASSERT(!authority->is_attempting);
    authority->attempt_at = fk__time_add(now, delay);
    bool may_give_up = authority->state == FK_ASSOCIATION_UNRESOLVED &&
                       fk__authority_may_quarantine(table, authority) && FK_SAFEGUARD(GIVE_UP);
    if (may_give_up && authority->give_up_at == FK_NEVER) {
        authority->give_up_at = fk__time_add(now, table->config.give_up_after);
    }
    if (authority->is_hearsay && authority->lapse_at == FK_NEVER) {
        authority->lapse_at = fk__time_add(now, FK_SECONDS(HEARSAY_WAITS_S));
    }
    fk__authority_settle(table, authority);
}

void fk__authority_arm(fk_authority_table *table, fk_authority *authority, fk_time now)
{
    if (!authority->is_mapped || authority->is_attempting) return;
    if (authority->attempt_at != FK_NEVER) return;
    authority_plan(table, authority, now, 0);
}

void fk__authority_retry(fk_authority_table *table, fk_authority *authority, fk_time now)
{
    if (authority->failures < UINT32_MAX) authority->failures++;
    authority_plan(table, authority, now, authority_delay(table, authority));
}

fk_authority *fk__authority_due(const fk_authority_table *table, fk_time now)
{
    fk_deadline *first = fk__deadlines_first(&table->deadlines);
    if (first == NULL || first->at > now) return NULL;
    fk_authority *authority = FK_CONTAINER(first, fk_authority, deadline);
    bool is_waiting = authority->state == FK_ASSOCIATION_UNRESOLVED && !authority->is_attempting;
    return is_waiting ? authority : NULL;
}

void fk__authority_rest(fk_authority_table *table, fk_authority *authority)
{
    FK_ASSERT(authority->state == FK_ASSOCIATION_UNRESOLVED);
    FK_ASSERT(!authority->is_attempting);
    FK_ASSERT(authority->deferred.count == 0);
    authority->is_resting = true;
    /* R4.3 counts the time in which reconnecting fails, and nobody reconnects. */
    authority->attempt_at = authority->give_up_at = authority->lapse_at = FK_NEVER;
    fk__authority_settle(table, authority);
}

void fk__authority_hurry(fk_authority_table *table, fk_authority *authority, fk_time now)
{
    if (authority->state != FK_ASSOCIATION_UNRESOLVED || authority->is_attempting) return;
    authority->failures = authority->drops = 0;
    authority->is_resting = false;
    authority->attempt_at = FK_NEVER;
    fk__authority_arm(table, authority, now);
}

void fk__authority_rouse(fk_authority_table *table, fk_authority *authority, fk_time now)
{
    if (!authority->is_resting) return;
    authority->is_resting = false;
    fk__authority_arm(table, authority, now);
}

fk_time fk__authority_next(const fk_authority_table *table)
{
    const fk_deadline *first = fk__deadlines_first(&table->deadlines);
    return first != NULL ? first->at : FK_NEVER;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How often a child may be restarted, and how soon: arithmetic only. */

#include "core/supervise.h"

#include "base/safeguard.h"

fk_err fk__strategy_check(const fk_strategy *s)
{
    if ((unsigned)s->kind > FK_REST_FOR_ONE || s->restarts < FK_RESTARTS_NONE) return FK_E_STRATEGY;
    if (s->within < 0 || s->backoff_min < 0 || s->backoff_reset < 0) return FK_E_STRATEGY;
    if (s->backoff_jitter > 100) return FK_E_STRATEGY;
    return s->backoff_max < s->backoff_min && s->backoff_max != 0 ? FK_E_STRATEGY : FK_OK;
}

bool fk__tally_permit(fk_tally *tally, int32_t max, fk_time within, fk_time now)
{
    if (max == 0) return false;
    if (within == 0) {
        if (tally->count < UINT32_MAX) tally->count++;
        return max < 0 || tally->count <= (uint32_t)max;
    }
    bool is_inside = tally->count != 0 && now - tally->window <= within;
    if (!is_inside) {
        tally->window = now;
        tally->count = 1;
        return true;
    }
    if (FK_SAFEGUARD(RESTART_WINDOW)) tally->count++;
    return tally->count <= (max < 0 ? 1 : (uint32_t)max);
}

fk_time fk__tally_backoff(fk_tally *tally, const fk_strategy *s, fk_time now, uint32_t chance)
{
    fk_time most = s->backoff_max != 0 ? s->backoff_max : FK_NEVER / 4;
    fk_time reset = s->backoff_reset != 0 ? s->backoff_reset : most;
    if (tally->backoffs != 0 && now - tally->restarted > reset) tally->backoffs = 0;
    fk_time delay = s->backoff_min;
    for (uint32_t i = 0; i < tally->backoffs && delay < most; i++) {
        delay = delay > most / 2 ? most : delay * 2;
    }
    tally->backoffs++;
    fk_time spread = delay / 100 * s->backoff_jitter;
    if (spread > 0) delay += (fk_time)((uint64_t)chance * (uint64_t)(2 * spread) >> 32) - spread;
    tally->restarted = fk__time_add(now, delay);
    return delay;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_AUTHORITY_CLOCK_H
#define FK_REMOTE_AUTHORITY_CLOCK_H

/* When an authority is tried, for the files that are authority.h. */

#include "remote/authority.h"

/* After any of the four times has changed. */
void fk__authority_settle(fk_authority_table *table, fk_authority *authority);
/* There is a reason to connect now. Nothing happens when that is planned or under way already, or
 * without a mapping. */
void fk__authority_arm(fk_authority_table *table, fk_authority *authority, fk_time now);
/* Something failed: the next attempt after a delay that grows with the failures in a row. */
void fk__authority_retry(fk_authority_table *table, fk_authority *authority, fk_time now);

/* Pekko quarantines uids, and nobody of whom it does not know one. */
static inline bool fk__authority_may_quarantine(const fk_authority_table *table,
                                                const fk_authority *authority)
{
    return table->config.rules != FK_RULES_PEKKO || authority->uid != 0;
}

#endif /* FK_REMOTE_AUTHORITY_CLOCK_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_LINEAR_H
#define FK_SIM_LINEAR_H

/*
 * Is the history of one counter linearizable? Each call adds one and is told the new total, or reads
 * the total. Since every total is made by exactly one addition, what was told fixes the order, and the
 * question can be decided exactly, without a search:
 *
 *   - no two additions were told the same total;
 *   - a call that began after another had ended was told no less (an addition: more) than that;
 *   - totals that nobody was told are made by additions of unknown end. Such a one can make any total
 *     above all that were known when it began; there must be one for each.
 */

#include "fraktor/base.h"

typedef struct fk_linear_call {
    fk_time begun, ended; /* FK_NEVER: nobody knows when, or whether, it had its effect */
    uint64_t value;       /* what it was told, if it has ended */
    bool is_read;
} fk_linear_call;

enum { FK_LINEAR_MAX = 4096 };

/* total: of the counter in the end. calls is sorted in place. NULL, or what is wrong; *at: the call. */
const char *fk__linear_check(fk_linear_call *calls, uint32_t count, uint64_t total, uint32_t *at);

#endif /* FK_SIM_LINEAR_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/supervise.h"

bool fk__backoff_begin(fk_worker *worker, const fk_cell *child, fk_err why, fk_time delay)
{
    (void)worker;
    (void)child;
    (void)why;
    (void)delay;
    return false;
}

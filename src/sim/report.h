/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_REPORT_H
#define FK_SIM_REPORT_H

/* What a harness program prints: a row for each search, and for a failure the schedule and its
 * trace. */

#include "sim/explore.h"

void fk__report_json(bool on);
void fk__report_head(void);

/* ok: the search ended as it should. */
void fk__report_row(const fk_search *s, const char *mutation, const fk_finding *f, bool ok);

/* Whether the failing schedule of f, run again, fails in the same way. Overwrites what f borrows
 * from the explorer with the same contents. */
bool fk__report_repeats(const fk_search *s, const fk_finding *f);

/* The command that repeats the failure, and the trace, which needs one more run. */
void fk__report_failure(const char *program, const fk_search *s, const char *mutation,
                        const fk_finding *f);

/* The trace of a search that was traced. */
void fk__report_trace(const fk_finding *f);

#endif /* FK_SIM_REPORT_H */

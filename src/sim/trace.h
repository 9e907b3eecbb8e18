/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_TRACE_H
#define FK_SIM_TRACE_H

/* The readable trace of one schedule: the last events, and names for addresses. */

#include "sim/machine.h"

#include <stdio.h>

/* Forgets events and labels; only when on are they collected at all. */
void fk__trace_reset(bool on);

void fk__trace_label(const void *at, size_t size, uint32_t count, const char *name);

/* For fk_machine_config.event; ctx is not used. */
void fk__trace_event(void *ctx, const fk_access *event);

/* One line for each event kept, oldest first. */
void fk__trace_print(FILE *out);

#endif /* FK_SIM_TRACE_H */

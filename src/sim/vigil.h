/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_VIGIL_H
#define FK_SIM_VIGIL_H

/*
 * The ledger of watches across systems: exactly one notice for each, unless it is ended before (R7).
 * There must be a reason for a notice: that actor has ended, its system has, or the watcher's system
 * has given that system up. And whoever watches somebody who is gone hears of it in the end.
 */

#include "sim/folk.h"

#define FK_VIGILS_MAX 1024u

typedef enum fk_vigil_state {
    FK_VIGIL_ASKED, /* the call is under way */
    FK_VIGIL_KEPT,
    FK_VIGIL_ENDED, /* by who kept it */
    FK_VIGIL_TOLD,
} fk_vigil_state;

typedef struct fk_vigil {
    uint8_t state;
    uint16_t watcher;
    uint16_t target; /* person; FK_NOBODY: whoever is there */
    uint8_t station, slot;
    fk_ref ref; /* in the watcher's system */
    fk_time at;
} fk_vigil;

typedef struct fk_vigils {
    uint32_t count, told;
    fk_vigil vigil[FK_VIGILS_MAX];
} fk_vigils;

extern fk_vigils fk__vigils;

void fk__vigils_begin(void);
/* The vigil that is kept for that reference, or FK_NOBODY. */
uint32_t fk__vigil_find(uint32_t watcher, fk_ref ref);
/* Any vigil that is kept by that watcher, the n-th of them; or FK_NOBODY. */
uint32_t fk__vigil_of(uint32_t watcher, uint32_t n);
uint32_t fk__vigil_begin(uint32_t watcher, uint32_t target, uint32_t station, uint32_t slot,
                         fk_ref ref);
void fk__vigil_begun(uint32_t vigil, fk_err err);
void fk__vigil_ended(uint32_t vigil, fk_err err);
void fk__vigil_told(uint32_t watcher, fk_ref ref, bool is_address);

/* There were no faults for a long time. */
void fk__vigils_check_live(void);

#endif /* FK_SIM_VIGIL_H */

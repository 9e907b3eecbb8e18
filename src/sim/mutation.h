/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_MUTATION_H
#define FK_SIM_MUTATION_H

/* The list of base/safeguard.h as data, for command lines and reports. */

#include "base/safeguard.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fk_mutation {
    const char *name;  /* "stale-check"; "none" for FK_MUTATION_NONE */
    const char *what;  /* a sentence without its full stop */
    const char *where; /* who must notice, one or more: "models remote" */
} fk_mutation;

/* id below FK_MUTATION_COUNT. */
const fk_mutation *fk__mutation_get(uint32_t id);

/* Whether `who` is one of those who must notice it. */
bool fk__mutation_is_for(const fk_mutation *mutation, const char *who);

/* The id of a mutation by name, or FK_MUTATION_COUNT when there is none of that name. */
uint32_t fk__mutation_find(const char *name);

#endif /* FK_SIM_MUTATION_H */

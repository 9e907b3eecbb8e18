/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sim/mutation.h"

#include <assert.h>
#include <string.h>

uint32_t fk__mutation = FK_MUTATION_NONE;

#define MUTATION_ROW(NAME, name, what, where) { name, what, where },

static const fk_mutation MUTATIONS[] = { { "none", "nothing: the code as it is", "" },
                                         FK_MUTATIONS(MUTATION_ROW) };

_Static_assert(sizeof(MUTATIONS) / sizeof(MUTATIONS[0]) == FK_MUTATION_COUNT, "one row each");

const fk_mutation *fk__mutation_get(uint32_t id)
{
    assert(id < FK_MUTATION_COUNT);
    return &MUTATIONS[id];
}

bool fk__mutation_is_for(const fk_mutation *mutation, const char *who)
{
    size_t len = strlen(who);
    for (const char *at = mutation->where; at != NULL; at = strchr(at, ' ')) {
        if (*at == ' ') at++;
        if (strncmp(at, who, len) == 0 && (at[len] == ' ' || at[len] == '\0')) return true;
    }
    return false;
}

uint32_t fk__mutation_find(const char *name)
{
    uint32_t id = 0;
    while (id < FK_MUTATION_COUNT && strcmp(MUTATIONS[id].name, name) != 0) id++;
    return id;
}

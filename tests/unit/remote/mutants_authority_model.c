/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The model again, against the sources with FK_SIM: with one safeguard after the other taken out,
 * some history must go wrong in what calls return and hand over, or at an assertion of the code.
 */

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "sim/mutation.h"
#include "support/test.h"
#include "unit/remote/authority_model.h"

enum { HISTORIES = 500, STEPS = 300 };

static jmp_buf caught;

/* Replaces the weak one of base/base.c. */
_Noreturn void fk__assert_failed(const char *file, int line)
{
    printf("%-20s assertion at %s:%d\n", fk__mutation_get(fk__mutation)->name, file, line);
    longjmp(caught, 1);
}

/* How many histories it took; 0: it was not noticed. */
static uint32_t histories_until_noticed(uint32_t mutation)
{
    static model_seen seen;
    volatile uint32_t tried = 0;
    fk__mutation = mutation;
    if (setjmp(caught) == 0) {
        while (tried < HISTORIES) {
            const char *failure = authority_model_run(++tried, STEPS, true, &seen);
            if (failure == NULL) continue;
            printf("%-20s %s\n", fk__mutation_get(mutation)->name, failure);
            fk__mutation = FK_MUTATION_NONE;
            authority_model_abandon();
            return tried;
        }
        tried = 0;
    }
    fk__mutation = FK_MUTATION_NONE;
    authority_model_abandon();
    return tried;
}

TEST(authority_mutants_none_is_a_mutant)
{
    CHECK_U64(histories_until_noticed(FK_MUTATION_NONE), 0);
}

TEST(authority_mutants_are_all_noticed)
{
    uint32_t mutants = 0, survivors = 0;
    for (uint32_t id = FK_MUTATION_NONE + 1; id < FK_MUTATION_COUNT; id++) {
        const fk_mutation *mutation = fk__mutation_get(id);
        if (strcmp(mutation->where, "remote") != 0) continue;
        mutants++;
        if (histories_until_noticed(id) != 0) continue;
        survivors++;
        printf("%-20s SURVIVED: %s\n", mutation->name, mutation->what);
    }
    CHECK(mutants >= 13);
    CHECK_U64(survivors, 0);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The models again, against the sources with FK_SIM: with one safeguard after the other taken out,
 * some history of some model must go wrong in what calls return and hand over, or at an assertion
 * of the code.
 */

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "sim/mutation.h"
#include "unit/remote/authority_model.h"
#include "unit/remote/delivery_model.h"
#include "unit/remote/delivery_net.h"
#include "unit/remote/detector_model.h"
#include "unit/remote/handshake_model.h"
#include "unit/remote/watcher_model.h"

enum { HISTORIES = 500, STEPS = 300 };

static const char *authority_run(uint64_t seed, uint32_t steps, bool is_blind)
{
    static model_seen seen;
    return authority_model_run(seed, steps, is_blind, &seen);
}

static const struct {
    const char *name;
    history_fn run;
} MODELS[] = {
    { "authority", authority_run },       { "delivery", delivery_model_run },
    { "network", delivery_net_run },      { "detector", detector_model_run },
    { "handshake", handshake_model_run }, { "watcher", watcher_model_run },
};

enum { MODEL_COUNT = sizeof(MODELS) / sizeof(MODELS[0]) };

static jmp_buf caught;
static const char *model_name;

/* Replaces the weak one of base/base.c. */
_Noreturn void fk__assert_failed(const char *file, int line)
{
    printf("%-20s %s: assertion at %s:%d\n", fk__mutation_get(fk__mutation)->name, model_name, file,
           line);
    longjmp(caught, 1);
}

static bool is_noticed(uint32_t mutation, uint64_t seed)
{
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        model_name = MODELS[i].name;
        const char *failure = MODELS[i].run(seed, STEPS, true);
        if (failure == NULL) continue;
        printf("%-20s %s: %s\n", fk__mutation_get(mutation)->name, model_name, failure);
        return true;
    }
    return false;
}

/* How many histories it took; 0: it was not noticed. */
static uint32_t histories_until_noticed(uint32_t mutation)
{
    volatile uint32_t tried = 0;
    volatile bool noticed = false;
    fk__mutation = mutation;
    if (setjmp(caught) == 0) {
        while (!noticed && tried < HISTORIES) noticed = is_noticed(mutation, ++tried);
    } else {
        noticed = true;
    }
    fk__mutation = FK_MUTATION_NONE;
    authority_model_abandon();
    return noticed ? tried : 0;
}

TEST(remote_mutants_none_is_a_mutant)
{
    CHECK_U64(histories_until_noticed(FK_MUTATION_NONE), 0);
}

TEST(remote_mutants_are_all_noticed)
{
    uint32_t mutants = 0, survivors = 0;
    for (uint32_t id = FK_MUTATION_NONE + 1; id < FK_MUTATION_COUNT; id++) {
        const fk_mutation *mutation = fk__mutation_get(id);
        if (!fk__mutation_is_for(mutation, "models")) continue;
        mutants++;
        if (histories_until_noticed(id) != 0) continue;
        survivors++;
        printf("%-20s SURVIVED: %s\n", mutation->name, mutation->what);
    }
    CHECK(mutants >= 41);
    CHECK_U64(survivors, 0);
}

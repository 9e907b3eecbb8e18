/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_SIM_RUNNER_H
#define FK_SIM_RUNNER_H

/* Runs seeds of a scenario and reports what they found. */

#include <stdbool.h>
#include <stdint.h>

typedef struct fk_scenario {
    const char *name; /* NULL ends the list */
    const char *what;
    const char *(*run)(uint64_t seed); /* NULL, or what was found */
    uint32_t sometimes;                /* FK_IN_*: whose branches must all happen */
    bool is_cluster;                   /* a world of its own: sim/cluster.h */
    bool is_story;                     /* one run, told to people, the same each time */
} fk_scenario;

extern const fk_scenario fk__scenarios[];

typedef struct fk_batch {
    const fk_scenario *scenario;
    uint64_t seed, runs;
    uint32_t mutation;
    bool is_json;    /* only the last line */
    bool is_verbose; /* every fact */
} fk_batch;

/* Runs them all, says what was found, and prints the summary as JSON. True: nothing was. */
bool fk__runner_run(const fk_batch *batch);

/* Every mutation that this scenario must notice, at most batch->runs seeds each. True: it did. */
bool fk__runner_mutants(const fk_batch *batch);

void fk__runner_list(bool is_json);

#endif /* FK_SIM_RUNNER_H */

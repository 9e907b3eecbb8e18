/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_BENCH_ACTIVATE_H
#define FK_CLI_BENCH_ACTIVATE_H

/* Workload activate: what its two halves share. */

#include "bench.h"

enum { ACTIVATE_KEY_SIZE = 16 };

typedef struct {
    uint64_t n;
} activate_poke;
FK_MESSAGE(activate_poke);

typedef struct {
    uint64_t n;
} activate_ok;
FK_MESSAGE(activate_ok);

/* "customer-0000042" */
fk_str activate_key(uint64_t n, char room[ACTIVATE_KEY_SIZE]);

/* Waits until every slot is held: until then calls wait, which is not what is measured. */
fk_err activate_ready(fk_cluster *cluster);

/* bench_activate_durable.c: grains of a durable kind on SQLite, and what SQLite does by itself. */
fk_err activate_durable(bench_run *run, uint64_t count, double *seconds);
fk_err activate_store(bench_run *run, uint64_t count, double *seconds);

#endif /* FK_CLI_BENCH_ACTIVATE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_LOAD_LATENCY_H
#define FK_CLI_LOAD_LATENCY_H

/* Latencies, counted in buckets of equal ratio, so that many threads may add and memory is bounded. */

#include <stdatomic.h>
#include <stdint.h>

enum { LATENCY_STEPS = 16, LATENCY_BUCKETS = 40 * LATENCY_STEPS };

typedef struct load_latency {
    _Atomic uint64_t bucket[LATENCY_BUCKETS];
    _Atomic uint64_t max_ns;
} load_latency;

void load_latency_add(load_latency *self, double seconds);
/* Milliseconds that a share of them did not exceed; to within 1/16. */
double load_latency_at(load_latency *self, double share);
double load_latency_max(load_latency *self);

#endif /* FK_CLI_LOAD_LATENCY_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "load_latency.h"

/* Below 16 ns exact; from there on 16 buckets for each power of two. */
static uint32_t bucket_of(uint64_t ns)
{
    uint32_t power = 0;
    while ((ns >> power) >= 2 * LATENCY_STEPS) power++;
    uint64_t index = power * LATENCY_STEPS + (ns >> power);
    return index < LATENCY_BUCKETS ? (uint32_t)index : LATENCY_BUCKETS - 1;
}

/* The largest number that falls into it. */
static uint64_t bucket_end(uint32_t index)
{
    if (index < 2 * LATENCY_STEPS) return index;
    uint32_t power = index / LATENCY_STEPS - 1;
    return ((uint64_t)(index % LATENCY_STEPS + LATENCY_STEPS + 1) << power) - 1;
}

void load_latency_add(load_latency *self, double seconds)
{
    uint64_t ns = seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
    uint64_t max = atomic_load_explicit(&self->max_ns, memory_order_relaxed);
    atomic_fetch_add_explicit(&self->bucket[bucket_of(ns)], 1, memory_order_relaxed);
    while (ns > max && !atomic_compare_exchange_weak(&self->max_ns, &max, ns)) continue;
}

double load_latency_at(load_latency *self, double share)
{
    uint64_t count = 0, sum = 0;
    uint64_t max = atomic_load(&self->max_ns);
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) count += atomic_load(&self->bucket[i]);
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
        sum += atomic_load(&self->bucket[i]);
        if (sum == 0 || (double)sum < share * (double)count) continue;
        uint64_t end = bucket_end(i);
        return (double)(end < max ? end : max) / 1e6;
    }
    return (double)max / 1e6;
}

double load_latency_max(load_latency *self)
{
    return (double)atomic_load(&self->max_ns) / 1e6;
}

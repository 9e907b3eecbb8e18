/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How results look: JSON lines for programs, text for people. */

#include "bench.h"

#include <stdio.h>

static double rate(const bench_result *result)
{
    return result->seconds > 0 ? (double)result->ops / result->seconds : 0;
}

void bench_print_json(const bench_workload *workload, uint32_t threads, uint32_t rounds,
                      const bench_result *result)
{
    printf("{\"workload\":\"%s\",\"threads\":%u,\"ops\":%llu,\"seconds\":%.6f,\"ops_per_s\":%.0f,"
           "\"peak_rss_kb\":%llu,\"unit\":\"%s\",\"cpu_seconds\":%.3f,\"rounds\":%u",
           workload->name, threads, (unsigned long long)result->ops, result->seconds, rate(result),
           (unsigned long long)result->peak_rss_kb, workload->unit, result->cpu_seconds, rounds);
    for (uint32_t i = 0; i < result->note_count; i++) {
        printf(",\"%s\":%.3f", result->note[i].name, result->note[i].value);
    }
    printf("}\n");
    fflush(stdout);
}

static void print_notes(const bench_result *result)
{
    for (uint32_t i = 0; i < result->note_count; i++) {
        printf("    %-28s %14.3f\n", result->note[i].name, result->note[i].value);
    }
}

void bench_print_text(const bench_workload *workload, uint32_t threads, const bench_result *result)
{
    printf("%-12s %u thread%s  %llu %s in %.3f s  %.2f M/s  cpu %.2f s  peak %.1f MB\n",
           workload->name, threads, threads == 1 ? " " : "s", (unsigned long long)result->ops,
           workload->unit, result->seconds, rate(result) / 1e6, result->cpu_seconds,
           (double)result->peak_rss_kb / 1024);
    print_notes(result);
    fflush(stdout);
}

void bench_print_head(void)
{
    printf("%-12s %14s %14s %7s %9s  %s\n", "workload", "1 thread M/s", "2 threads M/s", "ratio",
           "peak MB", "unit");
    fflush(stdout);
}

void bench_print_row(const bench_workload *workload, const bench_result *one,
                     const bench_result *two)
{
    uint64_t peak = one->peak_rss_kb > two->peak_rss_kb ? one->peak_rss_kb : two->peak_rss_kb;
    printf("%-12s %14.2f %14.2f %7.2f %9.1f  %s\n", workload->name, rate(one) / 1e6,
           rate(two) / 1e6, rate(one) > 0 ? rate(two) / rate(one) : 0, (double)peak / 1024,
           workload->unit);
    /* Both runs have the same notes, and the second may have a few more. */
    for (uint32_t i = 0; i < two->note_count; i++) {
        if (i < one->note_count) {
            printf("  %-27s %12.3f ", one->note[i].name, one->note[i].value);
        } else {
            printf("  %-27s %12s ", two->note[i].name, "");
        }
        printf("%14.3f\n", two->note[i].value);
    }
    fflush(stdout);
}

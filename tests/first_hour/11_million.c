/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 11 of the first hour: a million idle actors. The first argument is another number. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static fk_err ignore(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    (void)msg;
    return FK_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    fk_system *sys;
    fk_stats before, after;
    fk_ref ref = FK_REF_NONE;
    fk_props props = { .receive = ignore };
    char path[32];
    if (fk_system_start(&(fk_system_config){ .name = "million" }, &sys) != FK_OK) return 1;
    if (count == 0) return 1;
    fk_stats_get(sys, &before);
    double began = now();
    for (uint64_t i = 0; i < count; i++) {
        if (fk_spawn(sys, FK_STR(""), &props, &ref) != FK_OK) return 1;
    }
    double spawned = now();
    fk_stats_get(sys, &after);
    fk_path_of(sys, ref, path, sizeof(path));
    uint64_t each = (after.memory - before.memory) / count;
    bool ok = after.actors == count && fk_is_alive(sys, ref);
    /* A few hundred bytes; with a block of its own for everything it is about the same. */
    ok = ok && each < 500;
    double stopping = now();
    ok = fk_system_stop(sys) == FK_OK && ok;
    double stopped = now();
    printf("%llu actors up to %s: %llu bytes each, made in %.2f s, stopped in %.2f s\n",
           (unsigned long long)count, path, (unsigned long long)each, spawned - began,
           stopped - stopping);
    return ok ? 0 : 1;
}

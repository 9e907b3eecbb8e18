/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 13 of the first hour: two systems in one process, fifty times. Threads and memory return to
 * where they were, and the settings of one do not reach the other. */

#include <dirent.h>
#include <fraktor/fraktor.h>
#include <stdio.h>
#include <unistd.h>

enum { CYCLES = 50 };

static size_t threads(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    if (dir == NULL) return 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static long resident_kb(void)
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return 0;
    if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static fk_err count_one(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)msg;
    if (++*(int *)state == 100) fk_stop_self(ctx);
    return FK_OK;
}

static bool use(fk_system *sys, fk_ref *ref)
{
    int count = 0;
    fk_props props = { .receive = count_one, .state = &count };
    if (fk_spawn(sys, FK_STR("counter"), &props, ref) != FK_OK) return false;
    for (int i = 0; i < 100; i++) fk_send(sys, *ref, FK_TEXT("one"));
    return fk_await_stopped(sys, *ref, FK_SECONDS(20)) == FK_OK && count == 100;
}

static bool cycle(void)
{
    fk_system *small, *large;
    fk_ref ref, more;
    fk_system_config limited = { .name = "small", .workers = 1, .actors_max = 1 };
    if (fk_system_start(&limited, &small) != FK_OK) return false;
    if (fk_system_start(&(fk_system_config){ .name = "large" }, &large) != FK_OK) return false;
    bool ok = use(small, &ref) && !fk_is_alive(large, ref);
    ok = use(large, &ref) && !fk_is_alive(small, ref) && ok;
    fk_props props = { .receive = count_one };
    for (int i = 0; i < 10; i++) ok = fk_spawn(large, FK_STR(""), &props, &more) == FK_OK && ok;
    ok = fk_system_stop(large) == FK_OK && ok;
    return fk_system_stop(small) == FK_OK && ok;
}

int main(void)
{
    bool ok = cycle(); /* sanitizers make a thread of their own along with the first */
    size_t before = threads();
    long early = 0;
    for (int i = 0; i < CYCLES && ok; i++) {
        ok = cycle();
        if (i == 4) early = resident_kb();
    }
    for (int i = 0; i < 10000 && threads() != before; i++) usleep(1000);
    long late = resident_kb();
    printf("%d cycles: %zu threads before and %zu after, %ld kB early and %ld kB late\n", CYCLES,
           before, threads(), early, late);
    return ok && threads() == before && late < early + 32768 ? 0 : 1;
}

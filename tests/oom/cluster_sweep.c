/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Out of memory in a cluster. There are threads, so that no two runs allocate in the same order, and
 * memory is refused by place instead: each that a scenario asks for memory at is refused its first,
 * second, third and some later time, and all of them from there on. Every run must end with clear errors in its
 * time, a cluster that works when there is memory again, with all that was acknowledged, and no byte
 * left.
 *
 * At the end each place in the code of clusters and stores must have been refused in both ways.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "oom/cluster_town.h"
#include "oom/sites.h"

enum { SITES_MAX = 512 };

/* ---- what is refused ------------------------------------------------------------------------------- */

static struct {
    const fk_site *_Atomic site;
    _Atomic uint64_t use;
    _Atomic bool stays, is_paused;
    _Atomic uint64_t refused;
    _Atomic uint64_t uses[SITES_MAX];
    _Atomic bool was_refused[2][SITES_MAX];
} fault;

static bool fault_admit(void *ctx, const fk_site *site, size_t size)
{
    ptrdiff_t index = site - __start_fk_sites;
    (void)ctx;
    CHECK(size > 0);
    CHECK(site >= __start_fk_sites && site < __stop_fk_sites && index < SITES_MAX);
    if (atomic_load(&fault.is_paused)) return true;
    uint64_t use = atomic_fetch_add(&fault.uses[index], 1) + 1, at = atomic_load(&fault.use);
    if (site != atomic_load(&fault.site)) return true;
    bool stays = atomic_load(&fault.stays);
    if (stays ? use < at : use != at) return true;
    atomic_fetch_add(&fault.refused, 1);
    atomic_store(&fault.was_refused[stays][index], true);
    return false;
}

void fault_port(rig *r)
{
    r->port.admit = fault_admit;
}

void fault_set(const fk_site *site, uint64_t use, bool stays)
{
    atomic_store(&fault.site, NULL);
    atomic_store(&fault.use, use);
    atomic_store(&fault.stays, stays);
    atomic_store(&fault.is_paused, false);
    atomic_store(&fault.refused, 0);
    for (size_t i = 0; i < SITES_MAX; i++) atomic_store(&fault.uses[i], 0);
    atomic_store(&fault.site, site);
}

void fault_pause(bool paused)
{
    atomic_store(&fault.is_paused, paused);
}

uint64_t fault_count(void)
{
    return atomic_load(&fault.refused);
}

uint64_t site_uses(const fk_site *site)
{
    return atomic_load(&fault.uses[site - __start_fk_sites]);
}

bool site_was_refused(const fk_site *site, bool stays)
{
    return atomic_load(&fault.was_refused[stays][site - __start_fk_sites]);
}

/* ---- scenarios --------------------------------------------------------------------------------------- */

typedef struct plan {
    const char *name;
    void (*run)(const struct plan *p);
    bool direct;
    const char *const *parts; /* only places in such files, and such as no scenario had before; ends
                                 with NULL; NULL: all */
    bool is_wide;             /* those below clusters, too, which oom_sweep refuses to others */
} plan;

static char database[64];

static void remove_database(void)
{
    static const char *const ENDS[] = { "", "-wal", "-shm", "-journal" };
    char path[96];
    for (size_t i = 0; i < sizeof(ENDS) / sizeof(ENDS[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", database, ENDS[i]);
        unlink(path);
    }
}

static void run_alone(const plan *p, const char *store)
{
    static town t;
    town_start(&t, "alone", store, p->direct, false);
    town_join(&t);
    town_work(&t);
    town_look(&t);
    fault_pause(true);
    town_check(&t);
    fault_pause(false);
    town_work(&t);
    town_leave(&t);
    town_stop(&t);
    rig_check_empty(&t.r);
}

static void run_memory(const plan *p)
{
    run_alone(p, "memory:alone");
}

static void run_sqlite(const plan *p)
{
    char url[96];
    snprintf(url, sizeof(url), "sqlite:%s", database);
    remove_database();
    run_alone(p, url);
    remove_database();
}

/* The memory of their store is from the port of the first. */
static void run_two(const plan *p)
{
    static town a, b;
    town_start(&a, "one", "memory:two", p->direct, true);
    town_start(&b, "two", "memory:two", p->direct, true);
    town_join(&a);
    town_join(&b);
    town_work(&a);
    town_look(&a);
    town_work(&b);
    town_leave(&b);
    town_stop(&b);
    fault_pause(true);
    town_check(&a);
    fault_pause(false);
    town_stop(&a);
    rig_check_empty(&a.r);
    rig_check_empty(&b.r);
}

/* A lookup of the program's own, without threads or a store. */

static void on_command(void *ctx, const fk_placement_command *command)
{
    (void)ctx;
    (void)command;
}

static void count_event(void *ctx, const fk_placement_event *event)
{
    CHECK(event->reason != NULL);
    ++*(size_t *)ctx;
}

static bool lookup_begin(fk_lookup *lookup)
{
    static const fk_str KINDS[] = { { "bank", 4 } };
    static const fk_member MEMBERS[2] = {
        { .id = { "one", 3 },
          .incarnation = 1,
          .address = { "fraktor.tcp://one@h:1", 21 },
          .kinds = KINDS,
          .kind_count = 1,
          .weight = 100,
          .status = FK_MEMBER_UP },
        { .id = { "two", 3 },
          .incarnation = 1,
          .address = { "fraktor.tcp://two@h:1", 21 },
          .kinds = KINDS,
          .kind_count = 1,
          .weight = 100,
          .status = FK_MEMBER_UP },
    };
    const fk_view view = { 1, MEMBERS, 2 };
    fk_err err = fk_lookup_setup_client(lookup, NULL, 0, FK_SECONDS(1));
    if (err == FK_OK) err = fk_lookup_update_topology(lookup, &view, FK_SECONDS(1));
    if (err != FK_OK) CHECK_ERR(err, FK_E_NOMEM);
    return err == FK_OK;
}

static void run_lookup(const plan *p)
{
    static rig r;
    fk_lookup *lookup;
    fk_resolution there;
    size_t events = 0, cached = 0;
    const fk_lookup_config config = {
        .placement = { .size = sizeof(fk_placement_config),
                       .slots = 16,
                       .cache_capacity = 16,
                       .outcome = { .command = on_command } },
    };
    (void)p;
    rig_init(&r);
    fault_port(&r);
    fk_err err = fk_lookup_create(&config, &r.port, &lookup);
    if (err == FK_OK) {
        bool has_begun = lookup_begin(lookup);
        fk_placement *placement = fk_lookup_placement(lookup);
        fk_member owner;
        for (int i = 0; i < 4 && has_begun; i++) {
            fk_grain_key key;
            CHECK_OK(fk_grain_key_of(FK_STR("bank"), (fk_str){ &"abcd"[i], 1 }, &key));
            CHECK_OK(fk_placement_owner(placement, &key, &owner, NULL));
            fk_str other = owner.id.ptr[0] == 'o' ? FK_STR("two") : FK_STR("one");
            fk_placement_redirected(placement, &key, other, FK_SECONDS(2));
            err = fk_lookup_resolve(lookup, key.kind, key.key, 1, FK_SECONDS(2), &there);
            CHECK_OK(err); /* by the cache, or by the view */
            CHECK(there.locality == FK_LOCALITY_REMOTE);
        }
        size_t told = fk_lookup_drain_events(lookup, count_event, &events);
        told += fk_lookup_drain_cache_events(lookup, count_event, &cached);
        CHECK_U64(told, events + cached);
        CHECK(fault_count() != 0 || (events > 0 && cached == 4));
        fk_lookup_destroy(lookup);
    } else {
        CHECK_ERR(err, FK_E_NOMEM);
    }
    fk_store *store;
    err = fk_store_open(FK_STR("static:sweep?one,two"), NULL, true, &r.port, &store, NULL);
    if (err == FK_OK)
        store->ops->close(store);
    else
        CHECK_ERR(err, FK_E_NOMEM);
    rig_check_empty(&r);
}

/* ---- the sweep ----------------------------------------------------------------------------------------- */

static uint64_t run_once(const plan *p, const fk_site *site, uint64_t use, bool stays)
{
    int64_t began = test_clock();
    if (test_env("FK_OOM_TELL", 0) != 0 && site != NULL) {
        printf("%s: \"%s\" at %s:%d, use %llu%s\n", p->name, site->what, site->file, site->line,
               (unsigned long long)use, stays ? " and all after it" : "");
        fflush(stdout);
    }
    fault_set(site, use, stays);
    p->run(p);
    if (test_env("FK_OOM_TELL", 0) != 0) {
        printf("    %llu refused, %lld ms\n", (unsigned long long)fault_count(),
               (long long)((test_clock() - began) / 1000000));
    }
    return fault_count();
}

static bool is_wanted(const plan *p, const fk_site *site)
{
    if (p->parts == NULL || test_env("FK_OOM_ALL", 0) != 0) return true;
    if (!site_was_refused(site, false) || !site_was_refused(site, true)) return true;
    for (const char *const *part = p->parts; *part != NULL; part++) {
        if (strstr(site->file, *part) != NULL) return true;
    }
    return false;
}

static void sweep(const plan *p)
{
    static const uint64_t USES[] = { 1, 2, 3, 10, 30, 80, 200, 300, 500, 1000 };
    static uint64_t uses[SITES_MAX];
    size_t sites = (size_t)(__stop_fk_sites - __start_fk_sites), runs = 0;
    int64_t began = test_clock();
    CHECK(sites <= SITES_MAX);
    CHECK_U64(run_once(p, NULL, 0, false), 0);
    for (size_t i = 0; i < sites; i++) uses[i] = site_uses(&__start_fk_sites[i]);
    uint64_t only = test_env("FK_OOM_LINE", 0);
    for (size_t i = 0; i < sites; i++) {
        const fk_site *site = &__start_fk_sites[i];
        if (!site_is_of_cluster(site) && !p->is_wide) continue;
        if (!is_wanted(p, site)) continue;
        if (only != 0 && (uint64_t)site->line != only) continue;
        for (size_t k = 0; k < sizeof(USES) / sizeof(USES[0]) && USES[k] <= uses[i]; k++, runs++) {
            run_once(p, site, USES[k], false);
            if (USES[k] == 1 || USES[k] == 2 || USES[k] == 80) run_once(p, site, USES[k], true);
        }
    }
    printf("%-24s %zu runs, %lld ms\n", p->name, runs,
           (long long)((test_clock() - began) / 1000000));
}

TEST(sweep_1_alone_with_a_block_for_everything)
{
    sweep(&(plan){ "alone, direct", run_memory, true, NULL, true });
}

/* Where pools make a difference. */
TEST(sweep_2_alone_with_pools)
{
    static const char *const PARTS[] = { "cluster/shell.c",
                                         "cluster/placement_flight.c",
                                         "cluster/call.c",
                                         "cluster/placement_errand.c",
                                         "cluster/mission.c",
                                         "core/tray.c",
                                         NULL };
    sweep(&(plan){ "alone, pools", run_memory, false, PARTS, false });
}

TEST(sweep_3_with_a_file)
{
    static const char *const PARTS[] = { "src/store/", NULL };
    snprintf(database, sizeof(database), "/tmp/fraktor-oom-%ld.db", (long)getpid());
    const fk_port port = fk_host_port();
    fk_store *store;
    fk_err err = fk_store_open(FK_STR("sqlite::memory:"), NULL, true, &port, &store, NULL);
    if (err == FK_E_UNSUPPORTED) return; /* the library was built without them */
    if (err == FK_OK) store->ops->close(store);
    sweep(&(plan){ "with a file", run_sqlite, true, PARTS, false });
}

static bool has_network(void)
{
    fk_system *sys;
    fk_system_config config = { .workers = FK_WORKERS_NONE,
                                .remoting = { .enabled = true, .host = "127.0.0.1" } };
    fk_err err = fk_system_start(&config, &sys);
    if (err == FK_E_UNSUPPORTED) return false;
    CHECK_OK(err);
    CHECK_OK(fk_system_stop(sys));
    return true;
}

/* Where another node makes a difference. */
TEST(sweep_4_two_systems)
{
    static const char *const PARTS[] = { "cluster/steward_calls.c", "cluster/mission.c",
                                         "cluster/dedup.c",         "cluster/keepsake.c",
                                         "cluster/pids.c",          NULL };
    if (has_network()) sweep(&(plan){ "two systems", run_two, true, PARTS, false });
}

TEST(sweep_5_a_lookup)
{
    static const char *const PARTS[] = { "cluster/placement", "cluster/lookup.c", "cluster/pids.c",
                                         "cluster/table.c", NULL };
    sweep(&(plan){ "a lookup", run_lookup, true, PARTS, false });
}

TEST(sweep_9_refused_every_site_once_and_for_ever)
{
    static const char *const WAY[2] = { "once", "for ever" };
    size_t sites = (size_t)(__stop_fk_sites - __start_fk_sites), ours = 0, missing = 0;
    for (size_t i = 0; i < sites; i++) {
        const fk_site *site = &__start_fk_sites[i];
        if (!site_is_of_cluster(site)) continue;
        ours++;
        for (int way = 0; way < 2; way++) {
            if (site_was_refused(site, way != 0)) continue;
            missing++;
            printf("never refused %s: \"%s\" at %s:%d\n", WAY[way], site->what, site->file,
                   site->line);
        }
    }
    printf("sites %zu\n", ours);
    CHECK(ours > 40);
    if (has_network()) CHECK_U64(missing, 0);
}

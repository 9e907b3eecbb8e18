/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Paths, selections and claims while actors come and go: a path is that of the actor that was asked
 * for or none at all, a message is handled or dropped once, a uid has one owner.
 */

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/rig.h"

enum { READERS = 2, ACTORS_MAX = 400000, NAMES = 16 };

static const fk_props IDLE = { .receive = doer_receive };

/* ---- refs to paths ------------------------------------------------------------------------------- */

typedef struct crowd {
    rig r;
    uint64_t total;
    _Atomic uint64_t made;
    _Atomic uint64_t known, forgotten;
    fk_ref ref[ACTORS_MAX]; /* below made */
} crowd;

static crowd c;

/* Every third has a name, and some are asked for at once. */
static void *come_and_go(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < c.total; i++) {
        char name[32] = "", text[128];
        if (i % 3 == 0) snprintf(name, sizeof(name), "n%llu", (unsigned long long)i);
        CHECK_OK(fk_spawn(c.r.sys, fk_str_of(name), &IDLE, &c.ref[i]));
        atomic_store(&c.made, i + 1);
        if (i % 7 == 0) CHECK(fk_path_of(c.r.sys, c.ref[i], text, sizeof(text)) > 0);
        if (i >= 8) CHECK_OK(fk_stop(c.r.sys, c.ref[i - 8]));
    }
    return NULL;
}

static void check_path(uint64_t i)
{
    char text[128], expected[64];
    size_t len = fk_path_of(c.r.sys, c.ref[i], text, sizeof(text));
    atomic_fetch_add(len != 0 ? &c.known : &c.forgotten, 1);
    if (len == 0) return;
    size_t front = (size_t)snprintf(expected, sizeof(expected), "fraktor://fraktor/user/%s",
                                    i % 3 == 0 ? "n" : "$");
    if (i % 3 == 0) {
        front += (size_t)snprintf(expected + front, sizeof(expected) - front, "%llu#",
                                  (unsigned long long)i);
    }
    CHECK(len > front);
    CHECK(memcmp(text, expected, front) == 0);
    /* Whoever it leads to, it leads to nobody else. */
    fk_ref found;
    fk_err err = fk_resolve(c.r.sys, (fk_str){ text, len }, &found, NULL);
    CHECK(err == FK_E_PID_UNKNOWN || err == FK_OK);
    CHECK(err != FK_OK || fk_ref_equal(found, c.ref[i]));
}

static void *ask(void *arg)
{
    test_random random = { (uintptr_t)arg + 1 };
    uint64_t made = 0;
    while (made < c.total) {
        made = atomic_load(&c.made);
        /* Those who are dying now, mostly. */
        uint64_t back = test_random_below(&random, 16) == 0 ? 1000 : 12;
        uint64_t ago = test_random_below(&random, back < made ? back : made + 1);
        if (ago < made) check_path(made - 1 - ago);
    }
    return NULL;
}

TEST(paths_of_actors_that_come_and_go)
{
    pthread_t maker, reader[READERS];
    c.total = test_scaled(200000);
    if (c.total > ACTORS_MAX) c.total = ACTORS_MAX;
    rig_start_with(&c.r, (fk_system_config){ .workers = 2 });
    CHECK_U64(pthread_create(&maker, NULL, come_and_go, NULL), 0);
    for (uintptr_t i = 0; i < READERS; i++) {
        CHECK_U64(pthread_create(&reader[i], NULL, ask, (void *)i), 0);
    }
    pthread_join(maker, NULL);
    for (int i = 0; i < READERS; i++) pthread_join(reader[i], NULL);
    printf("%llu actors, %llu paths, %llu forgotten\n", (unsigned long long)c.total,
           (unsigned long long)c.known, (unsigned long long)c.forgotten);
    CHECK(c.known > 0);
    rig_stop(&c.r);
}

/* ---- selections ------------------------------------------------------------------------------------ */

typedef struct family {
    rig r;
    _Atomic bool over;
    _Atomic int drops;
    _Atomic uint64_t sent, payloads, payload_drops;
} family;

static family f;

static void payload_drop(void *message)
{
    (void)message;
    atomic_fetch_add(&f.payload_drops, 1);
}

static const fk_type SHARED = { "shared", 8, 8, payload_drop };

static fk_err child_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t *seen = state;
    (void)msg;
    if (++*seen % 5 == 0) fk_stop_self(ctx);
    return FK_OK;
}

/* Keeps its nursery full: each child that has died is made again. */
static fk_err mother_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    static const fk_props CHILD = { .receive = child_receive, .state_size = sizeof(uint64_t) };
    (void)state;
    (void)msg;
    if (atomic_load(&f.over)) return FK_OK;
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        fk_ref ref;
        snprintf(name, sizeof(name), "c%d", i);
        fk_err err = fk_spawn_child(ctx, fk_str_of(name), &CHILD, &ref);
        CHECK(err == FK_OK || err == FK_E_NAME_TAKEN);
    }
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1));
}

static void select_one(test_random *random)
{
    static const char *const WAYS[] = { "/user/m/c%u", "/user/m/c%u/../c3", "/user/*/c%u",
                                        "fraktor://fraktor/user/m/c%u", "/user/m/none%u" };
    char text[64];
    unsigned name = (unsigned)test_random_below(random, NAMES);
    const char *way = WAYS[test_random_below(random, sizeof(WAYS) / sizeof(WAYS[0]))];
    CHECK(snprintf(text, sizeof(text), way, name) < (int)sizeof(text));
    atomic_fetch_add(&f.sent, 1);
    CHECK_OK(fk_select_send(f.r.sys, fk_str_of(text), FK_MSG(owned, &f.drops, 1)));
}

static void select_all(void)
{
    fk_payload *payload;
    CHECK_OK(fk_payload_create(f.r.sys, &SHARED, 8, &payload));
    atomic_fetch_add(&f.payloads, 1);
    CHECK_OK(fk_select_send(f.r.sys, FK_STR("/user/m/*"), FK_MSG_PAYLOAD(payload)));
}

static void *select_often(void *arg)
{
    test_random random = { (uintptr_t)arg + 11 };
    uint64_t rounds = test_scaled(60000);
    for (uint64_t i = 0; i < rounds; i++) {
        if (i % 16 == 0) select_all();
        select_one(&random);
        if (i % 64 == 0) {
            fk_ref found;
            fk_err err = fk_resolve_one(f.r.sys, FK_STR("/user/m/c1"), FK_SECONDS(60), &found);
            CHECK(err == FK_OK || err == FK_E_PID_UNKNOWN);
        }
    }
    return NULL;
}

TEST(paths_selected_while_children_come_and_go)
{
    static const fk_props MOTHER = { .receive = mother_receive };
    pthread_t thread[READERS];
    fk_ref mother;
    rig_start_with(&f.r, (fk_system_config){ .workers = 2 });
    CHECK_OK(fk_spawn(f.r.sys, FK_STR("m"), &MOTHER, &mother));
    CHECK_OK(fk_send(f.r.sys, mother, FK_MSG(num, 1)));
    for (uintptr_t i = 0; i < READERS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, select_often, (void *)i), 0);
    }
    for (int i = 0; i < READERS; i++) pthread_join(thread[i], NULL);
    atomic_store(&f.over, true);
    CHECK_OK(fk_poison(f.r.sys, mother));
    CHECK_OK(fk_await_stopped(f.r.sys, mother, FK_SECONDS(60)));
    fk_stats stats;
    fk_stats_get(f.r.sys, &stats);
    printf("%llu actors, %llu selections\n", (unsigned long long)stats.spawned,
           (unsigned long long)f.sent + (unsigned long long)f.payloads);
    CHECK(stats.spawned > 100);
    rig_stop(&f.r);
    CHECK_U64(f.drops, f.sent); /* each handled or dead, once */
    CHECK_U64(f.payload_drops, f.payloads);
}

/* ---- claims ------------------------------------------------------------------------------------------ */

enum { UIDS = 512 };

static struct {
    rig r;
    _Atomic bool taken[UIDS];
    _Atomic uint64_t won, lost;
} k;

static void claim_and_release(uint64_t i)
{
    uint64_t uid = (1ull << 40) + i;
    fk_str path = FK_STR("fraktor://fraktor/user/a");
    fk_err err = fk_uid_claim(k.r.sys, path, uid, NULL);
    CHECK(err == FK_OK || err == FK_E_UID_RESERVED);
    atomic_fetch_add(err == FK_OK ? &k.won : &k.lost, 1);
    if (err != FK_OK) return;
    CHECK(!atomic_exchange(&k.taken[i], true)); /* ours alone */
    atomic_store(&k.taken[i], false);
    CHECK_OK(fk_uid_release(k.r.sys, path, uid));
}

static void live_and_die(uint64_t i)
{
    char name[16];
    fk_ref ref;
    snprintf(name, sizeof(name), "a%llu", (unsigned long long)i);
    fk_err err = fk_spawn_as(k.r.sys, fk_str_of(name), (2ull << 40) + i, &IDLE, &ref);
    CHECK(err == FK_OK || err == FK_E_UID_RESERVED || err == FK_E_NAME_TAKEN);
    atomic_fetch_add(err == FK_OK ? &k.won : &k.lost, 1);
    if (err == FK_OK) fk_stop(k.r.sys, ref);
}

static void *claim_often(void *arg)
{
    test_random random = { (uintptr_t)arg + 21 };
    int64_t end = test_clock() + FK_MILLIS(2500);
    while (test_clock() < end) {
        uint64_t i = test_random_below(&random, UIDS);
        if (test_random_below(&random, 2) == 0)
            claim_and_release(i);
        else
            live_and_die(i);
    }
    return NULL;
}

TEST(paths_claimed_by_many_threads)
{
    pthread_t thread[READERS + 1];
    rig_start_with(&k.r,
                   (fk_system_config){ .workers = 2, .remoting = { .quarantine = FK_SECONDS(1) } });
    for (uintptr_t i = 0; i <= READERS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, claim_often, (void *)i), 0);
    }
    for (int i = 0; i <= READERS; i++) pthread_join(thread[i], NULL);
    printf("%llu claims, %llu refused\n", (unsigned long long)k.won, (unsigned long long)k.lost);
    CHECK(k.won >= UIDS); /* some of them came back after a second */
    CHECK(k.won <= 2 * UIDS * 4);
    rig_stop(&k.r);
}

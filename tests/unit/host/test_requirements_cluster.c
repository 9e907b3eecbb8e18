/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The requirements on placement (1.1 to 4.4, and the lines of their test strategy) as a program sees them:
 * real systems, sockets between them, and the functions of fraktor/cluster.h. Their names begin with the
 * requirement's number. tests/unit/cluster/test_placement_requirements.c has the same of a coordinator
 * alone, and test_requirements_grains.c what else is promised of grains.
 */

#include <stdio.h>
#include <string.h>

#include "support/town.h"

static const fk_cluster_config USUAL = { .lease_ttl = 0 };

/* ---- 1.1 a lookup decides the placement -------------------------------------------------------------- */

TEST(p1_1_lookup_decides_placement)
{
    char key[32];
    town_begin();
    town_open_all(2, USUAL);
    for (int owner = 0; owner < 2; owner++) {
        town_key("durable", owner, 0, key);
        for (int from = 0; from < 2; from++) {
            fk_grain_place place = town_where(from, "durable", key);
            CHECK_STR(place.owner, town[owner].id);
            CHECK_U64(place.members, 2);
            CHECK_U64(place.slots, 64);
            CHECK(place.slot < place.slots);
            CHECK_U64(town_add(from, "durable", key, 1).node, (uint64_t)owner);
        }
        CHECK_U64(town_add(owner, "durable", key, 0).n, 2);
    }
    town_end();
}

TEST(p1_1_the_owner_is_the_same_on_all_nodes)
{
    char key[32];
    size_t of[TOWN_MAX] = { 0 };
    town_begin();
    town_open_all(3, USUAL);
    for (int k = 0; k < 300; k++) {
        snprintf(key, sizeof(key), "key-%d", k);
        fk_grain_place first = town_where(0, "volatile", key);
        for (int i = 1; i < 3; i++) {
            fk_grain_place place = town_where(i, "volatile", key);
            CHECK_STR(place.owner, first.owner);
            CHECK_STR(place.address, first.address);
            CHECK_U64(place.slot, first.slot);
            CHECK_U64(place.view_version, first.view_version);
        }
        of[first.owner[0] - 'a']++;
    }
    for (int i = 0; i < 3; i++) CHECK(of[i] > 0);
    town_end();
}

/* ---- 1.2 a change of topology is reflected -------------------------------------------------------------- */

TEST(p1_2_topology_change_is_reflected)
{
    char key[32];
    town_begin();
    town_open_all(1, USUAL);
    uint64_t version = town_where(0, "durable", "x").view_version;
    CHECK_U64(town_where(0, "durable", "x").members, 1);
    town_open(1, USUAL);
    town_settle(2);
    CHECK(town_where(0, "durable", "x").view_version > version);
    town_key("durable", 1, 0, key);
    CHECK_U64(town_add(0, "durable", key, 5).node, 1);
    CHECK(town_happened(0, FK_PLACEMENT_TOPOLOGY, NULL) >= 2);
    CHECK_OK(fk_cluster_leave(town[1].cluster, FK_SECONDS(10)));
    PEER_AWAIT(town_where(0, "durable", key).members == 1);
    CHECK_STR(town_where(0, "durable", key).owner, "a");
    town_total total = town_add(0, "durable", key, 1);
    CHECK_U64(total.node, 0);
    CHECK_U64(total.n, 6);
    town_end();
}

/* ---- 1.3 what is not decided is refused ------------------------------------------------------------------ */

static _Atomic int told;

static fk_err teller(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_err err = fk_grain_tell(ctx, FK_STR("durable"), FK_STR("x"),
                               FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE));
    atomic_store(&told, (int)err + 1);
    return FK_OK;
}

TEST(p1_3_a_system_in_no_cluster_refuses)
{
    fk_ref ref;
    town_begin();
    town_system(0);
    atomic_store(&told, 0);
    CHECK(fk_cluster_of(town[0].r.sys) == NULL);
    CHECK_OK(fk_spawn(town[0].r.sys, FK_STR("teller"), &(fk_props){ .receive = teller }, &ref));
    CHECK_OK(fk_send(town[0].r.sys, ref, FK_MSG(num, 1)));
    PEER_AWAIT(atomic_load(&told) != 0);
    CHECK_U64(atomic_load(&told) - 1, FK_E_NOT_READY);
    town_end();
}

TEST(p1_3_undecided_is_refused_before_the_view_is_known)
{
    town_total total;
    fk_grain_place place;
    town_begin();
    atomic_store(&town_shop.hides_view, true);
    town_system(0);
    fk_cluster_config config = town_config(0);
    CHECK_OK(fk_cluster_join(town[0].r.sys, &config, &town[0].cluster));
    town_kinds(0);
    CHECK_ERR(fk_cluster_await_ready(town[0].cluster, FK_MILLIS(100)), FK_E_TIMEOUT);
    CHECK_ERR(fk_grain_where(town[0].cluster, FK_STR("durable"), FK_STR("x"), &place),
              FK_E_NOT_READY);
    CHECK_ERR(fk_grain_ask_wait(town[0].cluster, FK_STR("durable"), FK_STR("x"),
                                FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE),
                                FK_INTO(town_total, &total), FK_MILLIS(500)),
              FK_E_NOT_READY);
    CHECK(town_happened(0, FK_PLACEMENT_REFUSED, "durable/x") >= 1);
    CHECK_U64(atomic_load(&town_starts), 0);
    atomic_store(&town_shop.hides_view, false);
    CHECK_OK(fk_cluster_await_ready(town[0].cluster, FK_SECONDS(30)));
    CHECK_U64(town_add(0, "durable", "x", 1).n, 1); /* what was refused has done nothing */
    town_end();
}

TEST(p1_3_undecided_is_refused_after_it_has_left)
{
    town_total total;
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "durable", "x", 1).n, 1);
    CHECK_OK(fk_cluster_leave(town[0].cluster, FK_SECONDS(10)));
    CHECK_ERR(fk_grain_ask_wait(town[0].cluster, FK_STR("durable"), FK_STR("x"),
                                FK_MSG(town_op, TOWN_ADD, 1, FK_REF_NONE),
                                FK_INTO(town_total, &total), FK_MILLIS(500)),
              FK_E_NOT_READY);
    CHECK_OK(fk_cluster_leave(town[0].cluster, FK_SECONDS(1))); /* again */
    town_end();
}

/* ---- 2.1, 2.2 activation, and the one that is there is used again --------------------------------------- */

TEST(p2_1_the_first_call_activates)
{
    town_begin();
    town_open_all(1, USUAL);
    CHECK(!town_where(0, "durable", "alice").is_here);
    CHECK_U64(atomic_load(&town_starts), 0); /* looking activates nothing */
    CHECK_U64(town_add(0, "durable", "alice", 10).n, 10);
    CHECK_U64(atomic_load(&town_starts), 1);
    fk_grain_place place = town_where(0, "durable", "alice");
    CHECK(place.is_here);
    CHECK(place.epoch > 0);
    char path[256];
    CHECK(fk_path_of(town[0].r.sys, place.ref, path, sizeof(path)) < sizeof(path));
    CHECK(strstr(path, "/user/durable/alice#") != NULL);
    town_end();
}

TEST(p2_2_an_activation_that_is_there_is_used_again)
{
    char key[32];
    town_begin();
    town_open_all(2, USUAL);
    town_key("durable", 1, 0, key);
    int64_t epoch = town_add(0, "durable", key, 1).epoch;
    for (int i = 0; i < 100; i++) {
        town_total total = town_add(i & 1, "durable", key, 1);
        CHECK_U64(total.node, 1);
        CHECK_U64(total.n, (uint64_t)i + 2);
        CHECK_U64(total.epoch, (uint64_t)epoch);
    }
    CHECK_U64(atomic_load(&town_starts), 1);
    PEER_AWAIT(town_stats(1).activated == 1); /* what is seen is a little behind */
    CHECK_U64(town_stats(0).activated, 0);
    town_end();
}

/* ---- 3.1 the lock is exclusive ---------------------------------------------------------------------------- */

enum { CROWD_KEYS = 12, CROWD_CALLS = 40 };

static void *crowd(void *arg)
{
    int from = *(int *)arg;
    char key[32];
    for (int i = 0; i < CROWD_CALLS; i++) {
        snprintf(key, sizeof(key), "crowd-%d", (i + from) % CROWD_KEYS);
        town_add(from, "durable", key, 1);
    }
    return NULL;
}

/* The start hook asserts that no other activation of that grain is alive anywhere. Members come and go
 * meanwhile, so that slots move. */
TEST(p3_1_the_lock_is_exclusive)
{
    pthread_t thread[2];
    int from[2] = { 0, 1 };
    char key[32];
    int64_t all = 0;
    town_begin();
    town_open(0, USUAL); /* not settled: the calls come while slots are being taken */
    town_open(1, USUAL);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, crowd, &from[i]) == 0);
    town_open(2, USUAL);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int k = 0; k < CROWD_KEYS; k++) {
        snprintf(key, sizeof(key), "crowd-%d", k);
        all += town_add(2, "durable", key, 0).n;
    }
    CHECK_U64(all, 2 * CROWD_CALLS);
    CHECK(atomic_load(&town_starts) >= CROWD_KEYS);
    town_end();
}

/* ---- 3.5 the lock is released ------------------------------------------------------------------------------ */

TEST(p3_5_leaving_releases_at_once)
{
    char key[32];
    town_begin();
    town_open_all(2, (fk_cluster_config){ .lease_ttl = FK_SECONDS(60) });
    town_key("durable", 1, 0, key);
    town_total before = town_add(0, "durable", key, 7);
    CHECK_U64(before.node, 1);
    int64_t begun = test_clock();
    CHECK_OK(fk_cluster_leave(town[1].cluster, FK_SECONDS(10)));
    town_total after = town_add(0, "durable", key, 1);
    CHECK_U64(after.node, 0);
    CHECK_U64(after.n, 8);
    CHECK(after.epoch > before.epoch);
    CHECK(test_clock() - begun < FK_SECONDS(30)); /* half of the lease */
    PEER_AWAIT(town_stats(1).placement.slots_held == 0);
    CHECK_U64(atomic_load(&town_starts), 2);
    town_end();
}

TEST(p3_5_the_end_of_a_system_releases_at_once)
{
    char key[32];
    town_begin();
    town_open_all(2, (fk_cluster_config){ .lease_ttl = FK_SECONDS(60) });
    town_key("durable", 1, 0, key);
    CHECK_U64(town_add(0, "durable", key, 7).node, 1);
    int64_t begun = test_clock();
    town_close(1);
    CHECK_U64(town_add(0, "durable", key, 1).n, 8);
    CHECK(test_clock() - begun < FK_SECONDS(30));
    town_end();
}

static void *close_second(void *arg)
{
    (void)arg;
    town_close(1);
    return NULL;
}

static void *add_one(void *arg)
{
    const char *key = arg;
    CHECK_U64(town_add(0, "durable", key, 1).n, 2);
    return NULL;
}

/* It ends while grains of it begin (they have a row, and begin with a store of it, which is held) for calls
 * from elsewhere: those have one effect, and no error. */
TEST(p3_5_the_end_of_a_system_fails_no_call_that_starts_a_grain)
{
    enum { CALLS = 8 };
    char key[CALLS][32];
    pthread_t caller[CALLS], closer;
    town_total total;
    town_begin();
    town_open_all(2, USUAL);
    for (int i = 0; i < CALLS; i++) {
        const town_op fail = { .verb = TOWN_FAIL };
        CHECK_U64(town_add(0, "durable", town_key("durable", 1, i, key[i]), 1).node, 1);
        CHECK_ERR(town_ask(0, "durable", key[i], fail, &total), FK_E_FAILED);
    }
    PEER_AWAIT(atomic_load(&town_stops) == CALLS);
    atomic_store(&town_shop.is_held, true);
    for (int i = 0; i < CALLS; i++) {
        CHECK(pthread_create(&caller[i], NULL, add_one, key[i]) == 0);
    }
    PEER_AWAIT(atomic_load(&town_shop.held) > 0);
    CHECK(pthread_create(&closer, NULL, close_second, NULL) == 0);
    test_sleep_ms(200);
    atomic_store(&town_shop.is_held, false);
    CHECK(pthread_join(closer, NULL) == 0);
    for (int i = 0; i < CALLS; i++) {
        CHECK(pthread_join(caller[i], NULL) == 0);
        CHECK_U64(town_add(0, "durable", key[i], 0).n, 2);
    }
    town_end();
}

static _Atomic bool is_enough;

static void *add_many(void *arg)
{
    char key[8];
    (void)arg;
    for (unsigned i = 0; !atomic_load(&is_enough); i++) {
        snprintf(key, sizeof(key), "%u", i % (TOWN_KEYS / 2));
        (void)town_add(0, "volatile", key, 1);
    }
    return NULL;
}

TEST(p3_5_the_end_of_a_system_fails_no_call)
{
    enum { CALLERS = 4, ROUNDS = 8 };
    pthread_t caller[CALLERS];
    town_begin();
    town_open_all(2, USUAL);
    atomic_store(&is_enough, false);
    for (int i = 0; i < CALLERS; i++) {
        CHECK(pthread_create(&caller[i], NULL, add_many, NULL) == 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        test_sleep_ms(50);
        town_close(1);
        town_open(1, USUAL);
    }
    atomic_store(&is_enough, true);
    for (int i = 0; i < CALLERS; i++) CHECK(pthread_join(caller[i], NULL) == 0);
    town_end();
}

/* ---- 4.1 start and stop -------------------------------------------------------------------------------------- */

TEST(p4_1_start_and_stop)
{
    town_begin();
    town_open(0, USUAL);
    CHECK(fk_cluster_of(town[0].r.sys) == town[0].cluster);
    CHECK_U64(town_stats(0).placement.state, FK_PLACEMENT_STATE_MEMBER);
    CHECK_U64(town_stats(0).incarnation, 1);
    CHECK_STR(town_stats(0).id, "a");
    CHECK_U64(town_add(0, "durable", "x", 1).n, 1);
    CHECK_OK(fk_cluster_leave(town[0].cluster, FK_SECONDS(10)));
    PEER_AWAIT(town_stats(0).placement.state == FK_PLACEMENT_STATE_STOPPED);
    CHECK_U64(atomic_load(&town_stops), 1);
    town_open(1, USUAL); /* keeps the store */
    town_close(0);
    town_open(0, USUAL);
    CHECK_U64(town_stats(0).incarnation, 2);
    CHECK_U64(town_add(0, "durable", "x", 1).n, 2);
    town_end();
}

TEST(p4_1_joining_says_what_is_wrong)
{
    const char *why = "";
    fk_cluster *cluster = NULL;
    town_begin();
    town_system(0);
    fk_system *sys = town[0].r.sys;
    fk_cluster_config good = town_config(0), bad;
    good.why = &why;
    bad = good;
    bad.store = NULL;
    CHECK_ERR(fk_cluster_join(sys, &bad, &cluster), FK_E_INVALID);
    CHECK_STR(why, "the config names no store");
    bad.store = "nowhere:x";
    CHECK_ERR(fk_cluster_join(sys, &bad, &cluster), FK_E_UNSUPPORTED);
    bad = good;
    bad.slots = 3;
    CHECK_ERR(fk_cluster_join(sys, &bad, &cluster), FK_E_INVALID);
    bad = good;
    bad.lease_ttl = FK_MILLIS(199);
    CHECK_ERR(fk_cluster_join(sys, &bad, &cluster), FK_E_INVALID);
    CHECK(cluster == NULL);
    CHECK_OK(fk_cluster_join(sys, &good, &town[0].cluster));
    CHECK_ERR(fk_cluster_join(sys, &good, &cluster), FK_E_IDENTITY_SETUP);
    town_system(1);
    bad = town_config(1);
    bad.slots = 128;
    CHECK_ERR(fk_cluster_join(town[1].r.sys, &bad, &cluster), FK_E_MISMATCH);
    bad.client = true;
    CHECK_ERR(fk_cluster_join(town[1].r.sys, &bad, &cluster), FK_E_MISMATCH);
    town_end();
}

static fk_err view_of(int i)
{
    fk_grain_place place;
    return fk_grain_where(town[i].cluster, FK_STR("durable"), FK_STR("x"), &place);
}

/* A client that came before anybody has no view of a cluster that is other than it thinks. */
TEST(p4_1_a_client_with_other_slots_that_came_first_stays_out)
{
    town_begin();
    town_system(1);
    fk_cluster_config other = town_config(1);
    other.client = true;
    other.slots = 128;
    CHECK_OK(fk_cluster_join(town[1].r.sys, &other, &town[1].cluster));
    town_open(0, USUAL);
    CHECK_OK(view_of(0));
    CHECK_ERR(fk_cluster_await_ready(town[1].cluster, FK_MILLIS(700)), FK_E_TIMEOUT);
    CHECK_ERR(view_of(1), FK_E_NOT_READY);
    town_end();
}

/* ---- 4.4 events ------------------------------------------------------------------------------------------------ */

static const town_event *event_at(int i, size_t at)
{
    CHECK(at != SIZE_MAX);
    return &town[i].event[at];
}

TEST(p4_4_events_come_in_order_with_their_times)
{
    town_begin();
    town_open_all(1, USUAL);
    size_t from = town_find(0, FK_PLACEMENT_SLOT_ACQUIRED, NULL, 0);
    CHECK(event_at(0, from)->epoch > 0);
    CHECK(strncmp(event_at(0, from)->text, "durable#", 8) == 0 ||
          strncmp(event_at(0, from)->text, "volatile#", 9) == 0 ||
          strncmp(event_at(0, from)->text, "brief#", 6) == 0);
    CHECK_U64(town_add(0, "durable", "e", 1).n, 1);
    size_t resolved = town_find(0, FK_PLACEMENT_RESOLVED, "durable/e", from);
    size_t activated = town_find(0, FK_PLACEMENT_ACTIVATED, "durable/e", 0);
    CHECK(resolved < activated);
    CHECK_STR(event_at(0, resolved)->authority, "a");
    CHECK_U64(event_at(0, resolved)->topic, FK_EVENT_PLACEMENT);
    CHECK_U64(event_at(0, activated)->topic, FK_EVENT_VIRTUAL_ACTOR);
    CHECK(event_at(0, activated)->epoch > 0);
    CHECK_OK(fk_cluster_leave(town[0].cluster, FK_SECONDS(10)));
    size_t stopped = town_find(0, FK_PLACEMENT_STOPPED, "durable/e", 0);
    size_t released = town_find(0, FK_PLACEMENT_SLOT_RELEASED, NULL, 0);
    CHECK(activated < stopped);
    CHECK(released != SIZE_MAX);
    for (size_t k = 0; k < town[0].events; k++) {
        CHECK(town[0].event[k].observed_at > 0);
        CHECK(k == 0 || town[0].event[k].observed_at >= town[0].event[k - 1].observed_at);
    }
    town_end();
}

TEST(p4_4_every_resolve_makes_an_event_and_calls_of_the_active_none)
{
    town_total total;
    town_begin();
    town_open_all(1, USUAL);
    town_add(0, "volatile", "e", 1);
    size_t resolved = town_happened(0, FK_PLACEMENT_RESOLVED, "volatile/e");
    CHECK_U64(resolved, 1);
    for (int i = 0; i < 10; i++) town_add(0, "volatile", "e", 1);
    CHECK_U64(town_happened(0, FK_PLACEMENT_RESOLVED, "volatile/e"), 1);
    CHECK_ERR(town_ask(0, "nothing", "e", (town_op){ .verb = TOWN_ADD }, &total),
              FK_E_UNKNOWN_KIND);
    CHECK_U64(town_happened(0, FK_PLACEMENT_REFUSED, "nothing/e"), 1);
    CHECK_ERR(event_at(0, town_find(0, FK_PLACEMENT_REFUSED, "nothing/e", 0))->err,
              FK_E_UNKNOWN_KIND);
    town_end();
}

/* ---- test strategy: the remote branch -------------------------------------------------------------------------- */

TEST(remote_branch_asks_the_owner_and_activates_nothing_here)
{
    char key[32], text[64];
    town_begin();
    town_open_all(2, USUAL);
    town_key("durable", 1, 0, key);
    snprintf(text, sizeof(text), "durable/%s", key);
    CHECK_U64(town_add(0, "durable", key, 3).node, 1);
    CHECK_STR(event_at(0, town_find(0, FK_PLACEMENT_RESOLVED, text, 0))->authority, "b");
    CHECK_U64(town_happened(0, FK_PLACEMENT_ACTIVATED, text), 0);
    CHECK_U64(town_happened(1, FK_PLACEMENT_ACTIVATED, text), 1);
    CHECK(!town_where(0, "durable", key).is_here);
    CHECK(town_where(1, "durable", key).is_here);
    PEER_AWAIT(town_stats(0).sent >= 1);
    PEER_AWAIT(town_stats(1).arrived >= 1);
    CHECK_U64(town_stats(0).failed, 0);
    town_end();
}

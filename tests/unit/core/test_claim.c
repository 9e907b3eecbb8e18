/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who may use which uid, and for how long nobody may. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/observer.h"

#define HOUR FK_SECONDS(3600)

static const fk_props DOER = { .receive = doer_receive };
static const uint64_t FAR = 1ull << 40; /* not given out soon */

static observer o;

static void start(fk_system_config config)
{
    config.name = "t";
    if (config.remoting.quarantine == 0) config.remoting.quarantine = HOUR;
    observer_start_with(&o, config);
}

static fk_ref spawn_as(const char *name, uint64_t uid)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn_as(o.r.sys, fk_str_of(name), uid, &DOER, &ref));
    return ref;
}

static fk_err claim(const char *local, uint64_t uid, fk_time *left)
{
    char text[256];
    snprintf(text, sizeof(text), "fraktor://t%s", local);
    return fk_uid_claim(o.r.sys, fk_str_of(text), uid, left);
}

static fk_err release(const char *local, uint64_t uid)
{
    char text[256];
    snprintf(text, sizeof(text), "fraktor://t%s", local);
    return fk_uid_release(o.r.sys, fk_str_of(text), uid);
}

static void check_left(const char *local, uint64_t uid, fk_time expected)
{
    fk_time left = -1;
    CHECK_ERR(claim(local, uid, &left), FK_E_UID_RESERVED);
    CHECK_U64(left, expected);
    CHECK_ERR(claim(local, uid, NULL), FK_E_UID_RESERVED);
}

/* ---- claims of the user's own ------------------------------------------------------------------- */

static void claim_release_expire(uint64_t uid)
{
    CHECK_OK(claim("/user/a", uid, NULL));
    check_left("/user/a", uid, FK_NEVER);
    CHECK_OK(release("/user/a", uid));
    check_left("/user/a", uid, HOUR);
    CHECK_ERR(release("/user/a", uid), FK_E_NOT_FOUND);
    rig_advance(&o.r, HOUR - 5);
    check_left("/user/a", uid, 5);
    rig_advance(&o.r, 5);
    CHECK_OK(claim("/user/a", uid, NULL)); /* and again */
    check_left("/user/a", uid, FK_NEVER);
    CHECK_OK(release("/user/a", uid));
    check_left("/user/a", uid, HOUR);
    rig_advance(&o.r, HOUR);
}

TEST(claim_release_and_expiry)
{
    start((fk_system_config){ 0 });
    claim_release_expire(FAR);
    claim_release_expire(UINT64_MAX);
    CHECK_U64(observer_letters(&o, 0)->len, 0);
    rig_stop(&o.r);
}

/* A uid that was claimed before the system came so far as to give it out itself. */
TEST(claim_of_a_small_uid_is_like_any_other)
{
    start((fk_system_config){ 0 });
    CHECK_OK(claim("/user/a", 5, NULL));
    fk_ref ref = observer_spawn(&o, "b");
    CHECK(observer_uid(&o, ref) != 5);
    check_left("/user/a", 5, FK_NEVER);
    CHECK_OK(release("/user/a", 5));
    check_left("/user/a", 5, HOUR);
    rig_stop(&o.r);
}

TEST(claim_is_of_path_and_uid)
{
    start((fk_system_config){ 0 });
    CHECK_OK(claim("/user/a", FAR, NULL));
    CHECK_OK(claim("/user/b", FAR, NULL));
    CHECK_OK(claim("/user/a/b", FAR, NULL));
    CHECK_OK(claim("/user", FAR, NULL));
    CHECK_OK(claim("/user/a", FAR + 1, NULL));
    check_left("/user//a/", FAR, FK_NEVER);
    check_left("/user/%61", FAR, FK_NEVER);
    CHECK_ERR(release("/user/c", FAR), FK_E_NOT_FOUND);
    CHECK_ERR(release("/user/a", FAR + 2), FK_E_NOT_FOUND);
    CHECK_OK(release("/user/%61", FAR));
    check_left("/user/b", FAR, FK_NEVER);
    check_left("/user/a", FAR, HOUR);
    rig_stop(&o.r);
}

TEST(claim_refuses_what_is_no_path_of_this_system)
{
    fk_system *sys;
    start((fk_system_config){ 0 });
    sys = o.r.sys;
    CHECK_ERR(fk_uid_claim(sys, FK_STR("fraktor://u/user/a"), 7, NULL), FK_E_FOREIGN);
    CHECK_ERR(fk_uid_claim(sys, FK_STR("fraktor://t@h:1/user/a"), 7, NULL), FK_E_FOREIGN);
    CHECK_ERR(fk_uid_claim(sys, FK_STR("pekko://t/user/a"), 7, NULL), FK_E_SCHEME);
    CHECK_ERR(fk_uid_claim(sys, FK_STR(""), 7, NULL), FK_E_EMPTY);
    CHECK_ERR(fk_uid_claim(sys, FK_STR("fraktor://t/user/a b"), 7, NULL), FK_E_NAME);
    CHECK_ERR(fk_uid_claim(sys, FK_STR("fraktor://t/user/a"), 0, NULL), FK_E_UID);
    CHECK_ERR(fk_uid_release(sys, FK_STR("fraktor://u/user/a"), 7), FK_E_FOREIGN);
    CHECK_ERR(fk_uid_release(sys, FK_STR("/user/a"), 7), FK_E_SCHEME);
    rig_stop(&o.r);
    observer_start_with(&o,
                        (fk_system_config){ .name = "t", .paths = { .rules = FK_RULES_PEKKO } });
    CHECK_ERR(fk_uid_claim(o.r.sys, FK_STR("pekko://t/user/a"), 1ull << 32, NULL), FK_E_UID);
    CHECK_OK(fk_uid_claim(o.r.sys, FK_STR("pekko://t/user/a"), (uint64_t)-5, NULL));
    rig_stop(&o.r);
}

TEST(claims_have_a_limit)
{
    start((fk_system_config){ .claims_max = 10 });
    for (uint64_t i = 0; i < 10; i++) CHECK_OK(claim("/user/a", FAR + i, NULL));
    CHECK_ERR(claim("/user/a", FAR + 10, NULL), FK_E_LIMIT);
    fk_ref ref = FK_REF_NONE;
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("b"), FAR + 10, &DOER, &ref), FK_E_LIMIT);
    CHECK(fk_ref_is_none(ref));
    check_left("/user/a", FAR, FK_NEVER); /* known, so not a question of room */
    observer_spawn(&o, "b");              /* ordinary actors need none */
    CHECK_OK(release("/user/a", FAR));
    CHECK_ERR(claim("/user/a", FAR + 10, NULL), FK_E_LIMIT); /* reserved ones count, too */
    rig_advance(&o.r, HOUR);
    CHECK_OK(claim("/user/a", FAR + 10, NULL));
    rig_stop(&o.r);
}

TEST(claims_return_their_memory_by_themselves)
{
    enum { COUNT = 500 };
    start((fk_system_config){ .pools_malloc = true });
    CHECK_OK(claim("/user/first", FAR, NULL)); /* the sweeper comes with the first */
    CHECK_OK(release("/user/first", FAR));
    rig_run(&o.r);
    rig_advance(&o.r, HOUR);
    uint64_t blocks = atomic_load(&o.r.blocks), bytes = atomic_load(&o.r.bytes);
    for (uint64_t i = 0; i < COUNT; i++) {
        CHECK_OK(claim("/user/a", FAR + i, NULL));
        CHECK_OK(release("/user/a", FAR + i));
        rig_advance(&o.r, FK_SECONDS(1));
    }
    CHECK(atomic_load(&o.r.blocks) >= blocks + COUNT - 5);
    rig_advance(&o.r, HOUR - FK_SECONDS(COUNT / 2)); /* half of them */
    CHECK(atomic_load(&o.r.blocks) < blocks + COUNT / 2 + 5);
    CHECK(atomic_load(&o.r.blocks) > blocks + COUNT / 2 - 5);
    rig_advance(&o.r, FK_SECONDS(COUNT));
    CHECK(atomic_load(&o.r.blocks) <= blocks);
    CHECK(atomic_load(&o.r.bytes) <= bytes);
    rig_stop(&o.r);
    CHECK_U64(o.letters, 0);
}

/* Without memory a claim is refused and nothing is left of it. */
TEST(claim_without_memory)
{
    start((fk_system_config){ .pools_malloc = true });
    for (uint64_t at = 1;; at++) {
        fk_ref ref = FK_REF_NONE;
        rig_fault(&o.r, at, false);
        fk_err err = fk_spawn_as(o.r.sys, FK_STR("a"), FAR, &DOER, &ref);
        bool refused = atomic_load(&o.r.refused) != 0;
        rig_fault(&o.r, 0, false);
        if (!refused) {
            CHECK_OK(err);
            break;
        }
        CHECK_ERR(err, FK_E_NOMEM);
        CHECK(fk_ref_is_none(ref));
        CHECK_OK(claim("/user/b", FAR + at, NULL));
    }
    check_left("/user/a", FAR, FK_NEVER);
    rig_stop(&o.r);
}

/* ---- claims of actors ------------------------------------------------------------------------------ */

TEST(claim_of_an_actor_lasts_as_long_as_it_and_the_quarantine)
{
    char text[64];
    start((fk_system_config){ 0 });
    fk_ref ref = spawn_as("a", FAR);
    fk_path_of(o.r.sys, ref, text, sizeof(text));
    CHECK_STR(text, "fraktor://t/user/a#1099511627776");
    check_left("/user/a", FAR, FK_NEVER);
    CHECK_ERR(release("/user/a", FAR), FK_E_NOT_FOUND); /* it is the actor's, not ours to give */
    fk_ref other = FK_REF_NONE;
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("a"), FAR, &DOER, &other), FK_E_UID_RESERVED);
    observer_bury(&o, ref);
    check_left("/user/a", FAR, HOUR);
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("a"), FAR, &DOER, &other), FK_E_UID_RESERVED);
    CHECK(fk_ref_is_none(other));
    observer_bury(&o, observer_spawn(&o, "a"));
    observer_bury(&o, spawn_as("a", FAR + 1));
    rig_advance(&o.r, HOUR);
    ref = spawn_as("a", FAR);
    observer_check_path(&o, ref, text);
    observer_bury(&o, ref);
    CHECK_U64(o.letters, 0);
    rig_stop(&o.r);
}

TEST(claim_is_undone_when_the_name_is_taken)
{
    fk_ref ref = FK_REF_NONE;
    start((fk_system_config){ 0 });
    fk_ref first = observer_spawn(&o, "a");
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("a"), FAR, &DOER, &ref), FK_E_NAME_TAKEN);
    CHECK(fk_ref_is_none(ref));
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("b"), FAR, &(fk_props){ 0 }, &ref), FK_E_INVALID);
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("b"), 0, &DOER, &ref), FK_E_UID);
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR(""), FAR, &DOER, &ref), FK_E_INVALID);
    CHECK_OK(claim("/user/a", FAR, NULL));
    CHECK_OK(claim("/user/b", FAR, NULL));
    CHECK(fk_is_alive(o.r.sys, first));
    rig_stop(&o.r);
}

static fk_err refuse_to_start(fk_ctx *ctx, void *state)
{
    (void)ctx;
    (void)state;
    return FK_E_FAILED;
}

TEST(claim_of_an_actor_that_dies_at_once)
{
    static const fk_props STILLBORN = { .receive = doer_receive, .start = refuse_to_start };
    fk_ref ref;
    start((fk_system_config){ 0 });
    CHECK_OK(fk_spawn_as(o.r.sys, FK_STR("a"), FAR, &STILLBORN, &ref));
    rig_run(&o.r);
    CHECK(!fk_is_alive(o.r.sys, ref));
    check_left("/user/a", FAR, HOUR);
    rig_advance(&o.r, HOUR);
    CHECK_OK(claim("/user/a", FAR, NULL));
    rig_stop(&o.r);
}

TEST(claim_of_an_actor_that_dies_at_once_on_another_thread)
{
    static const fk_props STILLBORN = { .receive = doer_receive, .start = refuse_to_start };
    uint64_t count = test_scaled(20000);
    start((fk_system_config){ .workers = 2, .claims_max = 1u << 20 });
    if (count > 20000) count = 20000;
    for (uint64_t i = 0; i < count; i++) {
        fk_ref ref;
        fk_time left;
        CHECK_OK(fk_spawn_as(o.r.sys, FK_STR("a"), FAR + i, &STILLBORN, &ref));
        CHECK_OK(fk_await_stopped(o.r.sys, ref, FK_SECONDS(60)));
        CHECK_ERR(claim("/user/a", FAR + i, &left), FK_E_UID_RESERVED);
        CHECK(left != FK_NEVER);
        CHECK(left <= HOUR);
    }
    rig_stop(&o.r);
}

TEST(claims_of_a_system_that_stops_make_no_noise)
{
    start((fk_system_config){ 0 });
    observer_bury(&o, spawn_as("a", FAR)); /* the sweeper is there */
    for (uint64_t i = 1; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", (int)i);
        spawn_as(name, FAR + i);
    }
    rig_stop(&o.r);
    CHECK_U64(o.letters, 0);
    CHECK_U64(o.r.failures.count, 0);
}

TEST(claims_of_names_as_long_as_a_kilobyte)
{
    char name[1000];
    fk_ref ref;
    memset(name, 'n', sizeof(name));
    start((fk_system_config){ .paths = { .path_max = 4000, .segment_max = 1000 } });
    CHECK_OK(fk_spawn_as(o.r.sys, (fk_str){ name, sizeof(name) }, FAR, &DOER, &ref));
    rig_stop(&o.r);
}

/* ---- uids that are given out ------------------------------------------------------------------------- */

TEST(claim_of_an_issued_uid_is_refused_while_its_owner_lives)
{
    start((fk_system_config){ 0 });
    fk_ref ref = observer_spawn(&o, "a");
    uint64_t uid = observer_uid(&o, ref);
    check_left("/user/a", uid, FK_NEVER);
    for (int i = 0; i < 600; i++) observer_bury(&o, observer_spawn(&o, ""));
    check_left("/user/a", uid, FK_NEVER);
    rig_advance(&o.r, HOUR * 3);
    check_left("/user/a", uid, FK_NEVER);
    observer_bury(&o, ref);
    check_left("/user/a", uid, HOUR);
    for (int i = 0; i < 600; i++)
        observer_bury(&o, observer_spawn(&o, "")); /* forgotten by now, but still reserved */
    check_left("/user/a", uid, HOUR);
    rig_advance(&o.r, HOUR);
    CHECK_OK(claim("/user/a", uid, NULL));
    rig_stop(&o.r);
}

static int by_uid(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(uids_that_are_claimed_are_not_given_out)
{
    enum { BLOCK = 1024, COUNT = 5 * BLOCK };
    start((fk_system_config){ .actors_max = 1u << 20 });
    uint64_t first = observer_uid(&o, observer_spawn(&o, ""));
    CHECK_OK(claim("/user/$b", first + 2 * BLOCK + 17, NULL));
    fk_ref own = spawn_as("x", first + 3 * BLOCK + 1);
    static uint64_t seen[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        seen[i] = observer_uid(&o, observer_spawn(&o, ""));
        CHECK(seen[i] != first + 2 * BLOCK + 17);
        CHECK(seen[i] != observer_uid(&o, own));
    }
    qsort(seen, COUNT, sizeof(seen[0]), by_uid);
    for (size_t i = 1; i < COUNT; i++) CHECK(seen[i] > seen[i - 1]); /* no two the same */
    CHECK(seen[COUNT - 1] > first + 3 * BLOCK + 17);
    rig_stop(&o.r);
}

static int by_number(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

TEST(uids_by_pekkos_rules_are_32_bit_and_differ)
{
    enum { COUNT = 20000 };
    static int32_t seen[COUNT];
    size_t negative = 0;
    observer_start_with(&o,
                        (fk_system_config){ .name = "t", .paths = { .rules = FK_RULES_PEKKO } });
    for (size_t i = 0; i < COUNT; i++) {
        char text[64], *end;
        fk_path_of(o.r.sys, observer_spawn(&o, ""), text, sizeof(text));
        long long uid = strtoll(strchr(text, '#') + 1, &end, 10);
        CHECK(*end == '\0');
        CHECK(uid != 0);
        CHECK(uid >= INT32_MIN);
        CHECK(uid <= INT32_MAX);
        fk_ref found;
        CHECK_OK(fk_resolve(o.r.sys, fk_str_of(text), &found, NULL));
        seen[i] = (int32_t)uid;
        if (uid < 0) negative++;
    }
    CHECK(negative > COUNT / 4);
    CHECK(negative < COUNT - COUNT / 4);
    qsort(seen, COUNT, sizeof(seen[0]), by_number);
    for (size_t i = 1; i < COUNT; i++) CHECK(seen[i] != seen[i - 1]);
    rig_stop(&o.r);
}

/* Claiming many uids takes time in proportion, not more. */
TEST(claims_in_great_number_are_not_slow)
{
    enum { COUNT = 60000 };
    start((fk_system_config){ 0 });
    int64_t begin = test_work();
    uint64_t count = test_is_sanitized() ? COUNT / 10 : COUNT;
    for (uint64_t i = 0; i < count; i++) CHECK_OK(claim("/user/a", FAR + i, NULL));
    for (uint64_t i = 0; i < count; i++) {
        CHECK_OK(release("/user/a", FAR + i));
        rig_run(&o.r);
    }
    int64_t took = test_work() - begin;
    printf("%d claims and releases in %d ms\n", (int)count, (int)(took / 1000000));
    CHECK(took < FK_SECONDS(10));
    rig_stop(&o.r);
}

TEST(claim_is_of_a_path_with_its_uid)
{
    fk_time left;
    start((fk_system_config){ 0 });
    CHECK_ERR(claim("/", FAR, &left), FK_E_UID); /* the root has none */
    CHECK_ERR(claim("/user/a#7", 9, &left), FK_E_UID);
    fk_ref ref = observer_spawn(&o, "lived");
    uint64_t uid = observer_uid(&o, ref);
    CHECK_OK(fk_stop(o.r.sys, ref));
    rig_run(&o.r);
    CHECK_ERR(claim("/user/lived", uid, &left), FK_E_UID_RESERVED);
    CHECK(left > 0);
    CHECK(left != FK_NEVER);
    CHECK_OK(claim("/user/neverlived", uid, &left)); /* that pair was never there */
    rig_stop(&o.r);
}

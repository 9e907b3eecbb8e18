/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kit against a SQLite file, and what is only so there. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "store/disk.h"
#include "store/kit.h"

TEST(sqlite_rows_of_another_boot_are_expired)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 4);
    uint64_t version = kit_view(k.a, 0).version;
    disk_tamper("UPDATE meta SET boot = 'another'");
    kit_reopen();
    fk_store_op op = kit_view(k.a, version);
    CHECK(op.version > version);
    CHECK_U64(op.view.count, 0);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_U64(kit_join(k.a, "n1", KIT_TTL).member.incarnation, 2);
    CHECK_U64(kit_acquire(k.a, "n1", 2, 4), epoch + 1);
    kit_end();
}

/* The file has whole milliseconds, of a clock that is cut to them: 64 joins at any part of one. */
TEST(sqlite_leases_are_not_shorter_than_asked_for)
{
    kit_begin();
    for (int i = 0; i < 64; i++) {
        struct timespec t;
        CHECK(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
        CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
        fk_time ends = FK_MILLIS(disk_query("SELECT max(expires_at) FROM member"));
        CHECK(ends >= FK_SECONDS(t.tv_sec) + t.tv_nsec + FK_MILLIS(KIT_TTL));
    }
    kit_end();
}

TEST(sqlite_tombstones_are_purged_after_an_hour)
{
    kit_begin();
    fk_fence f = kit_fence(5, "n1", 1), lower = kit_fence(4, "n1", 1);
    CHECK_DONE(kit_load(k.a, "old", f));
    CHECK_DONE(kit_put(k.a, "old", f, 0, "s"));
    CHECK_DONE(kit_remove(k.a, "old", f, 1));
    /* Which may be before this machine was started: then it is a time below zero. */
    disk_tamper("UPDATE grain SET removed = removed - 3590000");
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_REFUSED(kit_load(k.a, "old", lower), FK_E_FENCED);
    disk_tamper("UPDATE grain SET removed = removed - 20000");
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_U64(disk_query("SELECT count(*) FROM grain"), 0);
    kit_end();
}

TEST(sqlite_tombstones_that_are_used_again_are_none)
{
    kit_begin();
    fk_fence f = kit_fence(5, "n1", 1);
    CHECK_DONE(kit_load(k.a, "used", f));
    CHECK_DONE(kit_put(k.a, "used", f, 0, "s"));
    CHECK_DONE(kit_remove(k.a, "used", f, 1));
    CHECK_DONE(kit_load(k.a, "used", f)); /* by the same activation */
    disk_tamper("UPDATE grain SET removed = removed - 7200000 WHERE removed <> 0");
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_REFUSED(kit_load(k.a, "used", kit_fence(4, "n1", 1)), FK_E_FENCED);
    CHECK_DONE(kit_put(k.a, "used", f, 0, "t"));
    kit_end();
}

TEST(sqlite_a_row_under_another_key_is_damaged)
{
    kit_begin();
    fk_fence f = kit_fence(5, "n1", 1);
    CHECK_DONE(kit_load(k.a, "mine", f));
    CHECK_DONE(kit_put(k.a, "mine", f, 0, "s"));
    disk_tamper("UPDATE grain SET key = CAST('theirs' AS BLOB)");
    CHECK_REFUSED(kit_peek(k.a, "theirs"), FK_E_CORRUPT);
    CHECK_REFUSED(kit_load(k.a, "theirs", f), FK_E_CORRUPT);
    disk_tamper("UPDATE grain SET key = CAST('mine' AS BLOB)");
    CHECK_DONE(kit_load(k.a, "mine", f));
    kit_end();
}

TEST(sqlite_file_of_another_program_is_left_alone)
{
    const char *why = NULL;
    fk_store *store = NULL;
    rig r;
    rig_init(&r);
    kit_clean();
    disk_tamper("CREATE TABLE theirs(x)");
    CHECK_ERR(fk_store_open(fk_str_of(kit_url()), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file is a database of another program");
    kit_clean();
    disk_tamper(
        "CREATE TABLE meta(x); PRAGMA application_id = 0x66726b74; PRAGMA user_version = 9");
    CHECK_ERR(fk_store_open(fk_str_of(kit_url()), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file was made by another version of fraktor");
    kit_clean();
    FILE *file = fopen(disk_path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 1000; i++) fputs("this is no database\n", file);
    fclose(file);
    CHECK_ERR(fk_store_open(fk_str_of(kit_url()), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file of the store is not a database");
    kit_clean();
    CHECK_U64(atomic_load(&r.bytes), 0);
}

/* ---- how long it takes: printed, and checked only against what is absurd -------------------- */

static fk_slot_claim claims[512];

TEST(sqlite_claims_of_all_slots_are_quick)
{
    enum { SLOTS = 16384, BATCH = 512 };
    kit_begin();
    fk_store_op op = kit_op(FK_STORE_JOIN);
    op.member = (fk_member){ .id = FK_STR("n1"), .address = FK_STR("a") };
    op.ttl = FK_MINUTES(1);
    op.strategy = "rendezvous";
    op.slots = SLOTS;
    kit_do(k.a, &op);
    CHECK_DONE(op);
    op.verb = FK_STORE_ACQUIRE;
    op.kind = FK_STR("account");
    op.claims = claims;
    op.claim_count = BATCH;
    int64_t begun = test_clock();
    for (uint32_t i = 0; i < SLOTS; i += BATCH) {
        for (uint32_t j = 0; j < BATCH; j++) claims[j] = (fk_slot_claim){ .slot = i + j };
        kit_do(k.a, &op);
        CHECK_DONE(op);
        CHECK_U64(claims[BATCH - 1].epoch, 1);
    }
    double batch_ms = (double)(test_clock() - begun) / 1e6 / (SLOTS / BATCH);
    printf("a batch of %d claims: %.2f ms\n", BATCH, batch_ms);
    CHECK(batch_ms < 500);
    kit_end();
}

static double per_second(uint64_t count, int64_t begun)
{
    return (double)count * 1e9 / (double)(test_clock() - begun);
}

TEST(sqlite_stores_one_by_one_and_in_batches)
{
    enum { KEYS = 64, ROUNDS = 8 };
    static char keys[KEYS][16];
    static fk_store_op op[KEYS];
    fk_store_op *ops[KEYS];
    fk_fence f = kit_fence(1, "n1", 1);
    kit_begin();
    for (int i = 0; i < KEYS; i++) snprintf(keys[i], sizeof keys[i], "k%d", i);
    int64_t begun = test_clock();
    for (int i = 0; i < KEYS; i++) CHECK_DONE(kit_load(k.b, keys[i], f));
    printf("first loads, each synced: %.0f/s\n", per_second(KEYS, begun));
    begun = test_clock();
    for (int i = 0; i < KEYS; i++) {
        op[i] = kit_put(k.b, keys[i], f, 0, "state of a hundred bytes or so, as most grains have");
        CHECK_DONE(op[i]);
        ops[i] = &op[i];
    }
    printf("stores, each synced: %.0f/s\n", per_second(KEYS, begun));
    begun = test_clock();
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < KEYS; i++) op[i].version = op[i].request[0] = round;
        fk_store_apply(k.b, ops, KEYS);
        for (int i = 0; i < KEYS; i++) CHECK_DONE(op[i]);
    }
    printf("stores, %d at a time: %.0f/s\n", KEYS, per_second(KEYS * ROUNDS, begun));
    begun = test_clock();
    for (int i = 0; i < KEYS * ROUNDS; i++) CHECK_DONE(kit_load(k.b, keys[i % KEYS], f));
    printf("loads of rows under the same fence: %.0f/s\n", per_second(KEYS * ROUNDS, begun));
    CHECK_U64(kit_peek(k.a, "k63").record.version, ROUNDS + 1);
    kit_end();
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kit against a SQLite file, and what is only so there. */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/kit.h"

static char folder[64] = "";
static char url[128];
static char path[96];

static void folder_remove(void)
{
    kit_clean();
    rmdir(folder);
}

const char *kit_url(void)
{
    return url;
}

void kit_pass(fk_store *store, unsigned ms)
{
    (void)store;
    test_sleep_ms(ms);
}

void kit_clean(void)
{
    char name[128];
    static const char *const ends[] = { "", "-wal", "-shm" };
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/fk-store-XXXXXX");
        CHECK(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/s.db", folder);
        snprintf(url, sizeof url, "sqlite:%s", path);
        atexit(folder_remove);
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void tamper(const char *text)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 1000);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

TEST(sqlite_rows_of_another_boot_are_expired)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    uint64_t epoch = kit_acquire(k.a, "n1", 1, 4);
    uint64_t version = kit_view(k.a, 0).version;
    tamper("UPDATE meta SET boot = 'another'");
    kit_reopen();
    fk_store_op op = kit_view(k.a, version);
    CHECK(op.version > version);
    CHECK_U64(op.view.count, 0);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_U64(kit_join(k.a, "n1", KIT_TTL).member.incarnation, 2);
    CHECK_U64(kit_acquire(k.a, "n1", 2, 4), epoch + 1);
    kit_end();
}

TEST(sqlite_tombstones_are_purged_after_an_hour)
{
    kit_begin();
    fk_fence f = kit_fence(5, "n1", 1), lower = kit_fence(4, "n1", 1);
    CHECK_DONE(kit_load(k.a, "old", f));
    CHECK_DONE(kit_put(k.a, "old", f, 0, "s"));
    CHECK_DONE(kit_remove(k.a, "old", f, 1));
    tamper("UPDATE grain SET removed = max(1, removed - 3590000)");
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_REFUSED(kit_load(k.a, "old", lower), FK_E_FENCED);
    tamper("UPDATE grain SET removed = max(1, removed - 20000)");
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    sqlite3_stmt *st = NULL;
    CHECK(sqlite3_prepare_v2(db, "SELECT count(*) FROM grain", -1, &st, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(st) == SQLITE_ROW);
    CHECK_U64(sqlite3_column_int(st, 0), 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    kit_end();
}

TEST(sqlite_file_of_another_program_is_left_alone)
{
    const char *why = NULL;
    fk_store *store = NULL;
    rig r;
    rig_init(&r);
    kit_clean();
    tamper("CREATE TABLE theirs(x)");
    CHECK_ERR(fk_store_open(fk_str_of(url), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file is a database of another program");
    kit_clean();
    tamper("CREATE TABLE meta(x); PRAGMA application_id = 0x66726b74; PRAGMA user_version = 9");
    CHECK_ERR(fk_store_open(fk_str_of(url), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file was made by another version of fraktor");
    kit_clean();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (int i = 0; i < 1000; i++) fputs("this is no database\n", file);
    fclose(file);
    CHECK_ERR(fk_store_open(fk_str_of(url), NULL, true, &r.port, &store, &why), FK_E_CORRUPT);
    CHECK_STR(why, "the file of the store is not a database");
    kit_clean();
    CHECK_U64(atomic_load(&r.bytes), 0);
}

/* What the lists of claims and of stores cost; printed, and checked only against what is absurd. */
TEST(sqlite_claims_of_all_slots_are_quick)
{
    enum { SLOTS = 16384, BATCH = 512 };
    static fk_slot_claim claims[BATCH];
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
    }
    double batch_ms = (double)(test_clock() - begun) / 1e6 / (SLOTS / BATCH);
    printf("a batch of %d claims: %.2f ms\n", BATCH, batch_ms);
    CHECK(batch_ms < 500);
    kit_end();
}

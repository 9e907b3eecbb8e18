/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "store/disk.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/kit.h"

char disk_folder[64] = "";
char disk_path[96];
static char url[128];
static pid_t owner;

static void folder_remove(void)
{
    if (getpid() != owner) return;
    kit_clean();
    rmdir(disk_folder);
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
    if (disk_folder[0] == '\0') {
        snprintf(disk_folder, sizeof disk_folder, "/tmp/fk-store-XXXXXX");
        CHECK(mkdtemp(disk_folder) != NULL);
        snprintf(disk_path, sizeof disk_path, "%s/s.db", disk_folder);
        owner = getpid();
        atexit(folder_remove);
    }
    snprintf(url, sizeof url, "sqlite:%s", disk_path);
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", disk_path, ends[i]);
        unlink(name);
    }
}

static sqlite3 *disk_open(void)
{
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(disk_path, &db) == SQLITE_OK);
    sqlite3_busy_timeout(db, 1000);
    return db;
}

void disk_tamper(const char *text)
{
    sqlite3 *db = disk_open();
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

long long disk_query(const char *text)
{
    sqlite3 *db = disk_open();
    sqlite3_stmt *st = NULL;
    CHECK(sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK);
    CHECK(sqlite3_step(st) == SQLITE_ROW);
    long long number = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return number;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What goes wrong with files: each is told by its own error, nothing that was acknowledged is lost,
 * and all goes on when the file, the disk or the lock is there again, without opening anything anew.
 *
 * What needs another process is done by this program itself, started again with FK_PART set.
 */

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/disk.h"
#include "store/kit.h"

enum { LARGE = 1 << 20, NOBODY = 65534 };

static const char *env_of(const char *name)
{
    const char *text = getenv(name);
    return text != NULL ? text : "";
}

static pid_t start_part(const char *part)
{
    setenv("FK_PART", part, 1);
    setenv("FK_FILE", disk_path, 1);
    setenv("FK_FOLDER", disk_folder, 1);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "part", (char *)NULL);
        _exit(127);
    }
    unsetenv("FK_PART");
    return pid;
}

static void check_part(pid_t pid)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_U64(WEXITSTATUS(status), 0);
}

/* ---- parts: 0 is good ----------------------------------------------------------------------- */

static int part_locker(void)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(env_of("FK_FILE"), &db) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK) return 2;
    char name[128];
    snprintf(name, sizeof name, "%s/locked", env_of("FK_FOLDER"));
    close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    test_sleep_ms(3000);
    return sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK ? 0 : 3;
}

static fk_err try_open(fk_store **out, const char **why)
{
    char url[128];
    static fk_port port;
    port = fk_host_port();
    snprintf(url, sizeof url, "sqlite:%s", env_of("FK_FILE"));
    return fk_store_open(fk_str_of(url), NULL, true, &port, out, why);
}

/* As somebody to whom permissions apply. */
static int part_reader(void)
{
    fk_store *store = NULL;
    const char *why = NULL;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) return 1;
    if (try_open(&store, &why) != FK_OK) return 2;
    store->ops->close(store);
    if (chmod(env_of("FK_FILE"), 0400) != 0) return 3;
    if (try_open(&store, &why) != FK_E_STORAGE) return 4;
    if (strstr(why, "can only be read") == NULL) return 5;
    if (chmod(env_of("FK_FILE"), 0600) != 0) return 6;
    if (chmod(env_of("FK_FOLDER"), 0500) != 0) return 7;
    if (try_open(&store, &why) != FK_E_STORAGE) return 8; /* no place for the log */
    if (chmod(env_of("FK_FOLDER"), 0700) != 0) return 9;
    if (try_open(&store, &why) != FK_OK) return 10;
    store->ops->close(store);
    return 0;
}

__attribute__((constructor(65535))) static void part_main(void)
{
    const char *part = env_of("FK_PART");
    if (strcmp(part, "locker") == 0) _exit(part_locker());
    if (strcmp(part, "reader") == 0) _exit(part_reader());
}

/* ---- tests ------------------------------------------------------------------------------------ */

static fk_fence fence(void)
{
    return kit_fence(1, "n1", 1);
}

static void begin_with_state(void)
{
    kit_begin();
    CHECK_DONE(kit_join(k.a, "n1", KIT_TTL));
    CHECK_DONE(kit_load(k.b, "a", fence()));
    CHECK_DONE(kit_put(k.b, "a", fence(), 0, "one"));
}

TEST(faults_file_that_is_taken_away_and_put_back)
{
    char kept[128];
    begin_with_state();
    snprintf(kept, sizeof kept, "%s/kept", disk_folder);
    CHECK(rename(disk_path, kept) == 0);
    CHECK_UNKNOWN(kit_put(k.b, "a", fence(), 1, "two"), FK_E_STORAGE);
    CHECK_UNKNOWN(kit_peek(k.b, "a"), FK_E_STORAGE);
    CHECK_UNKNOWN(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_STORAGE);
    CHECK(access(disk_path, F_OK) != 0); /* nobody makes an empty one */
    uint64_t stamp = k.a->ops->stamp(k.a);
    CHECK(k.a->ops->stamp(k.a) != stamp);
    CHECK(rename(kept, disk_path) == 0);
    fk_store_op op = kit_peek(k.b, "a");
    CHECK_DONE(op);
    CHECK_TEXT(op.record.snapshot, "one");
    CHECK_DONE(kit_put(k.b, "a", fence(), 1, "two"));
    CHECK_DONE(kit_member(k.a, FK_STORE_RENEW, "n1", 1));
    kit_end();
}

TEST(faults_file_that_is_replaced_by_another)
{
    begin_with_state();
    kit_clean(); /* deletes it all */
    CHECK_UNKNOWN(kit_put(k.b, "a", fence(), 1, "two"), FK_E_STORAGE);
    fk_store *other = kit_open(true);
    CHECK_DONE(kit_join(other, "n2", KIT_TTL));
    CHECK_DONE(kit_load(other, "a", kit_fence(9, "n2", 1)));
    CHECK_REFUSED(kit_put(k.b, "a", fence(), 1, "two"), FK_E_FENCED);
    CHECK_REFUSED(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_FENCED);
    CHECK_DONE(kit_put(other, "a", kit_fence(9, "n2", 1), 0, "theirs"));
    fk_store_op op = kit_peek(k.b, "a");
    CHECK_DONE(op);
    CHECK_TEXT(op.record.snapshot, "theirs");
    kit_close(other);
    kit_end();
}

TEST(faults_file_that_is_empty)
{
    begin_with_state();
    kit_clean();
    FILE *file = fopen(disk_path, "w");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK_UNKNOWN(kit_peek(k.b, "a"),
                  FK_E_CORRUPT); /* that is no answer to whether there was one */
    CHECK_UNKNOWN(kit_member(k.a, FK_STORE_RENEW, "n1", 1), FK_E_CORRUPT);
    kit_end();
}

TEST(faults_row_that_is_damaged)
{
    begin_with_state();
    CHECK_DONE(kit_load(k.b, "b", fence()));
    CHECK_DONE(kit_put(k.b, "b", fence(), 0, "b"));
    disk_tamper("UPDATE grain SET snapshot = x'6f6e66' WHERE key = x'61'");
    CHECK_REFUSED(kit_load(k.b, "a", kit_fence(2, "n1", 1)), FK_E_CORRUPT);
    CHECK_REFUSED(kit_peek(k.b, "a"), FK_E_CORRUPT);
    CHECK_DONE(kit_load(k.b, "b", fence()));
    disk_tamper("UPDATE grain SET snapshot = x'6f6e65', version = 9 WHERE key = x'61'");
    CHECK_REFUSED(kit_load(k.b, "a", fence()), FK_E_CORRUPT);
    disk_tamper("UPDATE grain SET version = 1, dedup = NULL WHERE key = x'61'");
    CHECK_REFUSED(kit_load(k.b, "a", fence()), FK_E_CORRUPT);
    disk_tamper("UPDATE grain SET dedup = CAST('answers' AS BLOB) WHERE key = x'61'");
    fk_store_op op = kit_load(k.b, "a", fence());
    CHECK_DONE(op);
    CHECK_TEXT(op.record.snapshot, "one");
    kit_end();
}

TEST(faults_lock_of_another_process)
{
    char name[128];
    begin_with_state();
    snprintf(name, sizeof name, "%s/locked", disk_folder);
    pid_t pid = start_part("locker");
    while (access(name, F_OK) != 0) test_sleep_ms(5);
    int64_t begun = test_clock();
    CHECK_UNKNOWN(kit_put(k.b, "a", fence(), 1, "two"), FK_E_TIMEOUT);
    int64_t took = test_clock() - begun;
    CHECK(took >= FK_MILLIS(1900));
    CHECK(took < FK_MILLIS(2700));
    CHECK_U64(kit_peek(k.a, "a").record.version, 1); /* who reads does not wait */
    check_part(pid);
    CHECK_DONE(kit_put(k.b, "a", fence(), 1, "two"));
    CHECK_U64(kit_peek(k.a, "a").record.version, 2);
    unlink(name);
    kit_end();
}

TEST(faults_file_and_folder_that_can_only_be_read)
{
    kit_begin();
    kit_end();
    if (geteuid() == 0) CHECK(chown(disk_folder, NOBODY, NOBODY) == 0);
    check_part(start_part("reader"));
}

static char large[LARGE];

static fk_store_op put_large(uint64_t version)
{
    memset(large, 'x', sizeof large - 1);
    return kit_put(k.b, "a", fence(), version, large);
}

TEST(faults_file_that_may_not_grow)
{
    struct rlimit before, small;
    begin_with_state();
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 256 * 1024;
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
    fk_store_op op = put_large(1);
    fk_store_op after = kit_put(k.b, "a", fence(), 1, "two");
    CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_UNKNOWN(op, FK_E_STORAGE);
    CHECK_DONE(after); /* what is small still has room */
    CHECK_DONE(put_large(2));
    CHECK_U64(kit_peek(k.a, "a").record.snapshot.len, LARGE - 1);
    kit_end();
}

TEST(faults_disk_that_is_full)
{
    char folder[96], path[96];
    kit_clean();
    snprintf(folder, sizeof folder, "%s/disk", disk_folder);
    CHECK(mkdir(folder, 0700) == 0);
    if (mount("tmpfs", folder, "tmpfs", 0, "size=768k") != 0) {
        printf("left out: a disk of one's own needs root\n");
        CHECK(rmdir(folder) == 0);
        return;
    }
    memcpy(path, disk_path, sizeof path);
    snprintf(disk_path, sizeof disk_path, "%.80s/s.db", folder);
    begin_with_state();
    CHECK_DONE(kit_load(k.b, "b", fence()));
    CHECK_REFUSED(put_large(1), FK_E_FULL);
    fk_store_op small = kit_op(FK_STORE_PEEK), huge = put_large(1);
    small = huge;
    small.key.key = FK_STR("b");
    small.version = 0;
    small.record.snapshot = FK_STR("small");
    fk_store_op *const ops[] = { &huge, &small };
    fk_store_apply(k.b, ops, 2);
    CHECK_REFUSED(huge, FK_E_FULL);
    CHECK_DONE(small);
    CHECK(mount("tmpfs", folder, "tmpfs", MS_REMOUNT, "size=16m") == 0);
    CHECK_DONE(put_large(1));
    CHECK_TEXT(kit_peek(k.a, "b").record.snapshot, "small");
    kit_end();
    CHECK(umount(folder) == 0);
    CHECK(rmdir(folder) == 0);
    memcpy(disk_path, path, sizeof path);
}

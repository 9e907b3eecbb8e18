/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Connections: the file, its tables, the statements. The file itself is only ever opened by SQLite:
 * whoever closes a descriptor of it drops all locks that this process has there.
 *
 * A file that is deleted or replaced while it is open would go on as if nothing had happened, and what
 * is acknowledged would be in no file at all. So the path is looked at before and after each call.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/sqlite.h"

enum {
    SCHEMA_VERSION = 1,
    APPLICATION_ID = 0x66726b74, /* "frkt" */
    BOOT_ID_MAX = 64,
    WAIT_MAX_NS = 10000000
};

static const char *const schema =
    "CREATE TABLE meta(one INTEGER PRIMARY KEY CHECK(one = 1), schema INTEGER NOT NULL,"
    " boot TEXT NOT NULL, strategy TEXT, slots INTEGER NOT NULL, view INTEGER NOT NULL);"
    "CREATE TABLE member(id TEXT NOT NULL, incarnation INTEGER NOT NULL, address TEXT NOT NULL,"
    " kinds TEXT NOT NULL, weight INTEGER NOT NULL, status INTEGER NOT NULL,"
    " expires_at INTEGER NOT NULL, PRIMARY KEY(id, incarnation)) WITHOUT ROWID;"
    "CREATE TABLE slot(kind TEXT NOT NULL, slot INTEGER NOT NULL, owner TEXT NOT NULL,"
    " incarnation INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY(kind, slot)) WITHOUT ROWID;"
    "CREATE TABLE grain(id INTEGER PRIMARY KEY, kind BLOB NOT NULL, key BLOB NOT NULL,"
    " epoch INTEGER NOT NULL, holder TEXT NOT NULL, incarnation INTEGER NOT NULL,"
    " version INTEGER NOT NULL, request BLOB, removed INTEGER NOT NULL, checksum INTEGER NOT NULL,"
    " pid TEXT, snapshot BLOB, dedup BLOB, UNIQUE(kind, key));"
    "CREATE INDEX grain_removed ON grain(removed) WHERE removed <> 0;"
    "INSERT INTO meta(one, schema, boot, strategy, slots, view) VALUES(1, 1, '', NULL, 0, 0);"
    "PRAGMA user_version = 1; PRAGMA application_id = 0x66726b74;";

/* ---- statements ---------------------------------------------------------------------------- */

sqlite3_stmt *fk__sqlite_use(sqlite_store *s, sqlite_statement which)
{
    sqlite3_reset(s->statement[which]);
    return s->statement[which];
}

int fk__sqlite_row(sqlite3_stmt *st)
{
    int code = sqlite3_step(st);
    if (code == SQLITE_ROW) return SQLITE_OK;
    sqlite3_reset(st);
    return code;
}

int fk__sqlite_run(sqlite3_stmt *st)
{
    int code = sqlite3_step(st);
    sqlite3_reset(st);
    return code == SQLITE_DONE || code == SQLITE_ROW ? SQLITE_OK : code;
}

/* What is bound is not copied, and all but the state of a grain is short: so nothing can fail. */
void fk__sqlite_text(sqlite3_stmt *st, int at, fk_str text)
{
    sqlite3_bind_text64(st, at, text.len > 0 ? text.ptr : "", text.len, SQLITE_STATIC, SQLITE_UTF8);
}

int fk__sqlite_bytes(sqlite3_stmt *st, int at, fk_str bytes)
{
    if (bytes.ptr == NULL) return sqlite3_bind_null(st, at);
    return sqlite3_bind_blob64(st, at, bytes.len > 0 ? bytes.ptr : "", bytes.len, SQLITE_STATIC);
}

void fk__sqlite_u64(sqlite3_stmt *st, int at, uint64_t n)
{
    sqlite3_bind_int64(st, at, (sqlite3_int64)n);
}

fk_str fk__sqlite_column(sqlite3_stmt *st, int at)
{
    if (sqlite3_column_type(st, at) == SQLITE_NULL) return (fk_str){ NULL, 0 };
    const char *bytes = sqlite3_column_blob(st, at);
    return (fk_str){ bytes != NULL ? bytes : "", (size_t)sqlite3_column_bytes(st, at) };
}

uint64_t fk__sqlite_column_u64(sqlite3_stmt *st, int at)
{
    return (uint64_t)sqlite3_column_int64(st, at);
}

/* ---- the file ------------------------------------------------------------------------------- */

bool fk__sqlite_is_at_path(const sqlite_store *s)
{
    struct stat st;
    return stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

/* Who waits looks again soon, for most have the lock for less than a millisecond. */
static int sqlite_wait(void *user, int tries)
{
    const sqlite_store *s = user;
    long ns = tries < 7 ? 100000L << tries : WAIT_MAX_NS;
    if (fk__store_clock() >= s->deadline) return 0;
    nanosleep(&(struct timespec){ 0, ns > WAIT_MAX_NS ? WAIT_MAX_NS : ns }, NULL);
    return 1;
}

static int exec(sqlite_store *s, const char *text)
{
    return sqlite3_exec(s->db, text, NULL, NULL, NULL);
}

/* The only row of a query, as a number and as text. */
static int query(sqlite_store *s, const char *text, int64_t *number, char *out, size_t size)
{
    sqlite3_stmt *st = NULL;
    int code = sqlite3_prepare_v2(s->db, text, -1, &st, NULL);
    if (code == SQLITE_OK) code = sqlite3_step(st);
    if (code == SQLITE_ROW) {
        fk_str value = fk__sqlite_column(st, 0);
        *number = sqlite3_column_int64(st, 0);
        if (value.len >= size) value.len = size > 0 ? size - 1 : 0;
        if (size > 0) {
            memcpy(out, value.len > 0 ? value.ptr : "", value.len);
            out[value.len] = '\0';
        }
        code = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return code;
}

/* Going over to the log needs the file for oneself, and SQLite does not always wait for that. */
static int wal_set(sqlite_store *s, const char **why)
{
    char mode[16] = "";
    int64_t unused = 0;
    int code;
    for (int tries = 0;; tries++) {
        code = query(s, "PRAGMA journal_mode = WAL", &unused, mode, sizeof mode);
        if ((code & 0xff) != SQLITE_BUSY || sqlite_wait(s, tries) == 0) break;
    }
    if (code == SQLITE_OK && strcmp(mode, "wal") != 0) {
        *why = "SQLite can keep no write-ahead log there: is it a network file system?";
        return SQLITE_CANTOPEN;
    }
    return code;
}

static void boot_id(char *out)
{
    ssize_t len = 0;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, out, BOOT_ID_MAX - 1);
        close(fd);
    }
    while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == '\0')) len--;
    out[len > 0 ? len : 0] = '\0';
}

/* Times of another boot say nothing: nobody who had a lease is alive, and tombstones begin anew. */
static int boot_check(sqlite_store *s)
{
    char before[BOOT_ID_MAX], boot[BOOT_ID_MAX];
    int64_t unused = 0;
    boot_id(boot);
    SQLITE_TRY(query(s, "SELECT boot FROM meta", &unused, before, sizeof before));
    if (strcmp(before, boot) == 0) return SQLITE_OK;
    long long now_ms = fk__store_clock() / 1000000;
    char *text = sqlite3_mprintf("UPDATE meta SET boot = %Q, view = view + 1;"
                                 "UPDATE member SET status = 3;"
                                 "UPDATE grain SET removed = %lld WHERE removed <> 0;",
                                 boot, now_ms + 1);
    if (text == NULL) return SQLITE_NOMEM;
    int code = exec(s, text);
    sqlite3_free(text);
    return code;
}

/* In a transaction that has the lock, so that of many who come at once one makes the tables. */
static int schema_check(sqlite_store *s, bool may_create, const char **why)
{
    int64_t id = 0, version = 0, tables = 0;
    SQLITE_TRY(query(s, "PRAGMA application_id", &id, NULL, 0));
    SQLITE_TRY(query(s, "PRAGMA user_version", &version, NULL, 0));
    SQLITE_TRY(query(s, "SELECT count(*) FROM sqlite_master", &tables, NULL, 0));
    if (tables == 0 && may_create) {
        SQLITE_TRY(exec(s, schema));
    } else if (tables == 0) {
        *why = "the file of the store is empty";
        return SQLITE_NOTADB;
    } else if (id != APPLICATION_ID) {
        *why = "the file is a database of another program";
        return SQLITE_NOTADB;
    } else if (version != SCHEMA_VERSION) {
        *why = "the file was made by another version of fraktor";
        return SQLITE_NOTADB;
    }
    return boot_check(s);
}

static int statements_prepare(sqlite_store *s)
{
    static const char *const texts[] = {
#define STATEMENT_TEXT(NAME, text) text,
        STATEMENTS(STATEMENT_TEXT)
#undef STATEMENT_TEXT
    };
    for (size_t i = 0; i < STMT_COUNT; i++) {
        SQLITE_TRY(sqlite3_prepare_v3(s->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &s->statement[i], NULL));
    }
    return SQLITE_OK;
}

static int connection_set(sqlite_store *s, bool may_create, const char **why)
{
    struct stat st;
    if (stat(s->path, &st) != 0) return SQLITE_CANTOPEN;
    s->dev = st.st_dev;
    s->ino = st.st_ino;
    sqlite3_extended_result_codes(s->db, 1);
    SQLITE_TRY(sqlite3_busy_handler(s->db, sqlite_wait, s));
    if (sqlite3_db_readonly(s->db, "main") == 1) {
        *why = "the file of the store can only be read";
        return SQLITE_READONLY;
    }
    SQLITE_TRY(exec(s, "PRAGMA trusted_schema = OFF"));
    SQLITE_TRY(wal_set(s, why));
    SQLITE_TRY(exec(s, s->is_state ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL"));
    SQLITE_TRY(exec(s, "BEGIN IMMEDIATE"));
    int code = schema_check(s, may_create, why);
    if (code == SQLITE_OK) code = exec(s, "COMMIT");
    if (code != SQLITE_OK && sqlite3_get_autocommit(s->db) == 0) (void)exec(s, "ROLLBACK");
    return code != SQLITE_OK ? code : statements_prepare(s);
}

int fk__sqlite_connect(sqlite_store *s, bool may_create, const char **why)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    FK_ASSERT(s->db == NULL);
    s->own++; /* data_version begins anew */
    int code =
        sqlite3_open_v2(s->path, &s->db, flags | (may_create ? SQLITE_OPEN_CREATE : 0), NULL);
    if (code == SQLITE_OK) code = connection_set(s, may_create, why);
    if (code != SQLITE_OK) fk__sqlite_disconnect(s, false);
    return code;
}

void fk__sqlite_disconnect(sqlite_store *s, bool is_moved)
{
    if (s->db == NULL) return;
    for (size_t i = 0; i < STMT_COUNT; i++) {
        sqlite3_finalize(s->statement[i]);
        s->statement[i] = NULL;
    }
    if (is_moved) { /* closing deletes the log by its name */
        int on = 1;
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        sqlite3_file_control(s->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
    }
    int code = sqlite3_close(s->db);
    FK_ASSERT(code == SQLITE_OK);
    s->db = NULL;
}

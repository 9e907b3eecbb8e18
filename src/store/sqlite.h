/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_STORE_SQLITE_H
#define FK_STORE_SQLITE_H

/*
 * A store in a SQLite file, for many processes of one machine. Functions that return int give a
 * result code of SQLite: SQLITE_OK when the op is answered, whatever the answer is; anything else
 * ends the transaction, and every op in it gets that.
 */

#include <sqlite3.h>
#include <sys/types.h>

#include "store/store.h"

/* NAME, text. Times are milliseconds of the boot clock; status 3 is FK_MEMBER_DOWN. */
#define STATEMENTS(X)                                                                              \
    X(BEGIN, "BEGIN")                                                                              \
    X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                              \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(DATA_VERSION, "PRAGMA data_version")                                                         \
    X(META_GET, "SELECT strategy, slots, view FROM meta")                                          \
    X(META_SET, "UPDATE meta SET strategy = ?1, slots = ?2")                                       \
    X(VIEW_NEXT, "UPDATE meta SET view = view + 1")                                                \
    X(MEMBER_SWEEP, "UPDATE member SET status = 3 WHERE status <> 3 AND expires_at <= ?1")         \
    X(MEMBER_LAST, "SELECT incarnation, status FROM member WHERE id = ?1 "                         \
                   "ORDER BY incarnation DESC LIMIT 1")                                            \
    X(MEMBER_PUT, "INSERT INTO member(id, incarnation, address, kinds, weight, status, "           \
                  "expires_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                \
    X(MEMBER_PRUNE, "DELETE FROM member WHERE id = ?1 AND incarnation < ?2 AND status = 3")        \
    X(MEMBER_LIVE, "SELECT 1 FROM member WHERE id = ?1 AND incarnation = ?2 AND status <> 3 "      \
                   "AND expires_at > ?3")                                                          \
    X(MEMBER_RENEW, "UPDATE member SET expires_at = max(expires_at, ?3) "                          \
                    "WHERE id = ?1 AND incarnation = ?2 AND status <> 3 AND NOT EXISTS"            \
                    "(SELECT 1 FROM member WHERE id = ?1 AND incarnation > ?2)")                   \
    X(MEMBER_UPDATE, "UPDATE member SET kinds = ?3, weight = ?4, status = ?5 "                     \
                     "WHERE id = ?1 AND incarnation = ?2 AND status <> 3 AND NOT EXISTS"           \
                     "(SELECT 1 FROM member WHERE id = ?1 AND incarnation > ?2)")                  \
    X(MEMBER_LEAVE, "UPDATE member SET status = 3 "                                                \
                    "WHERE id = ?1 AND incarnation = ?2 AND status <> 3")                          \
    X(MEMBER_COUNT, "SELECT count(*) FROM member WHERE status <> 3")                               \
    X(MEMBER_LIST, "SELECT id, incarnation, address, kinds, weight, status FROM member AS m "      \
                   "WHERE status <> 3 AND incarnation = "                                          \
                   "(SELECT max(incarnation) FROM member WHERE id = m.id) ORDER BY id")            \
    X(SLOT_GET, "SELECT s.epoch, s.owner, s.incarnation, EXISTS(SELECT 1 FROM member AS m "        \
                "WHERE m.id = s.owner AND m.incarnation = s.incarnation AND m.status <> 3 "        \
                "AND m.expires_at > ?3) FROM slot AS s WHERE s.kind = ?1 AND s.slot = ?2")         \
    X(SLOT_PUT, "INSERT INTO slot(kind, slot, owner, incarnation, epoch) "                         \
                "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(kind, slot) DO UPDATE SET "                \
                "owner = excluded.owner, incarnation = excluded.incarnation, "                     \
                "epoch = excluded.epoch")                                                          \
    X(GRAIN_HEAD, "SELECT id, epoch, holder, incarnation, version, request "                       \
                  "FROM grain WHERE kind = ?1 AND key = ?2")                                       \
    X(GRAIN_GET, "SELECT id, epoch, holder, incarnation, version, request, checksum, pid, "        \
                 "snapshot, dedup FROM grain WHERE kind = ?1 AND key = ?2")                        \
    X(GRAIN_NEW, "INSERT INTO grain(kind, key, epoch, holder, incarnation, version, removed, "     \
                 "checksum) VALUES(?1, ?2, ?3, ?4, ?5, 0, 0, ?6)")                                 \
    X(GRAIN_FENCE, "UPDATE grain SET epoch = ?2, holder = ?3, incarnation = ?4, "                  \
                   "request = NULL, removed = 0 WHERE id = ?1")                                    \
    X(GRAIN_STORE, "UPDATE grain SET version = ?2, request = ?3, checksum = ?4, pid = ?5, "        \
                   "snapshot = ?6, dedup = ?7, removed = 0 WHERE id = ?1")                         \
    X(GRAIN_REMOVE, "UPDATE grain SET version = 0, request = NULL, checksum = ?2, pid = NULL, "    \
                    "snapshot = NULL, dedup = NULL, removed = ?3 WHERE id = ?1")                   \
    X(GRAIN_PURGE, "DELETE FROM grain WHERE removed <> 0 AND removed <= ?1")                       \
    X(GRAIN_LIST, "SELECT key FROM grain WHERE kind = ?1 AND key > ?2 AND version <> 0 "           \
                  "ORDER BY key LIMIT ?3")

typedef enum sqlite_statement {
#define STATEMENT_ENUM(NAME, text) STMT_##NAME,
    STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        STMT_COUNT
} sqlite_statement;

/* What a claim gets if the transaction holds. Claims themselves are written only then: their epochs
 * go in as well, and an op that failed may be asked for again. */
typedef struct sqlite_grant {
    uint64_t epoch;
    bool is_new;
} sqlite_grant;

typedef struct sqlite_store {
    fk_store base;
    fk_mem mem;
    bool is_state;
    sqlite3 *db; /* NULL: it broke, and is opened again with the next call */
    sqlite3_stmt *statement[STMT_COUNT];
    dev_t dev; /* of the file that is open, and ... */
    ino_t ino;
    fk_time deadline;  /* of this call: nobody waits for a lock beyond it */
    int64_t now_ms;    /* of this transaction, read when it has the lock */
    uint64_t own;      /* changes of ours, which data_version does not count */
    const char *broke; /* why it is not usable, when SQLite itself does not say so well */
    bool has_members_changed;
    sqlite_grant *grants;
    size_t grant_room, grant_used;
    size_t path_len;
    char path[]; /* ends in NUL */
} sqlite_store;

/* Opens the file, and makes the tables if it is empty. may_create: also the file. On failure nothing
 * is open, and *why is a sentence for people. */
FK_MUST_USE int fk__sqlite_connect(sqlite_store *s, bool may_create, const char **why);
/* is_moved: the path may be another file's now, whose log must not be touched. */
void fk__sqlite_disconnect(sqlite_store *s, bool is_moved);
/* The path leads to the file that is open. */
bool fk__sqlite_is_at_path(const sqlite_store *s);

sqlite3_stmt *fk__sqlite_use(sqlite_store *s, sqlite_statement which);
/* SQLITE_OK: a row, which the caller ends with sqlite3_reset(); SQLITE_DONE: none. */
int fk__sqlite_row(sqlite3_stmt *st);
/* For a statement without rows. */
int fk__sqlite_run(sqlite3_stmt *st);
void fk__sqlite_text(sqlite3_stmt *st, int at, fk_str text);
/* ptr NULL: NULL. SQLITE_TOOBIG. */
int fk__sqlite_bytes(sqlite3_stmt *st, int at, fk_str bytes);
void fk__sqlite_u64(sqlite3_stmt *st, int at, uint64_t n);
fk_str fk__sqlite_column(sqlite3_stmt *st, int at); /* lent until the statement goes on */
uint64_t fk__sqlite_column_u64(sqlite3_stmt *st, int at);

/* SQLITE_OK: it is there and has a lease; SQLITE_DONE: not. */
int fk__sqlite_member_live(sqlite_store *s, fk_str id, uint64_t incarnation);
int fk__sqlite_join(sqlite_store *s, fk_store_op *op);
int fk__sqlite_renew(sqlite_store *s, fk_store_op *op);
int fk__sqlite_update(sqlite_store *s, fk_store_op *op);
int fk__sqlite_leave(sqlite_store *s, fk_store_op *op);
int fk__sqlite_view(sqlite_store *s, fk_store_op *op);

int fk__sqlite_acquire(sqlite_store *s, fk_store_op *op);
int fk__sqlite_transfer(sqlite_store *s, fk_store_op *op);
int fk__sqlite_release(sqlite_store *s, fk_store_op *op);

int fk__sqlite_load(sqlite_store *s, fk_store_op *op);
int fk__sqlite_put(sqlite_store *s, fk_store_op *op);
int fk__sqlite_remove(sqlite_store *s, fk_store_op *op);
int fk__sqlite_peek(sqlite_store *s, fk_store_op *op);
int fk__sqlite_list(sqlite_store *s, fk_store_op *op);
int fk__sqlite_purge(sqlite_store *s);

#define SQLITE_TRY(expression)                                                                     \
    do {                                                                                           \
        int try_code = (expression);                                                               \
        if (try_code != SQLITE_OK) return try_code;                                                \
    } while (0)

#endif /* FK_STORE_SQLITE_H */

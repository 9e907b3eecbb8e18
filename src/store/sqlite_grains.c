/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rows of grains in a SQLite file. Whose write counts is decided here by what is in the row, under the
 * lock of the transaction, whatever any clock says. A checksum makes sure that what is read is what
 * was written; a row that is not is left as it is, for people to look at.
 */

#include "base/hash.h"
#include "store/sqlite.h"

/* Columns of GRAIN_HEAD and GRAIN_GET. */
enum {
    COLUMN_ID,
    COLUMN_EPOCH,
    COLUMN_HOLDER,
    COLUMN_INCARNATION,
    COLUMN_VERSION,
    COLUMN_REQUEST,
    COLUMN_CHECKSUM,
    COLUMN_PID,
    COLUMN_SNAPSHOT,
    COLUMN_DEDUP
};

typedef struct grain_row {
    bool is_there;
    uint64_t id;
    uint64_t epoch, incarnation, version;
    bool has_fence; /* the op's */
    bool has_request;
    sqlite3_stmt *st; /* to be reset by whoever asked */
} grain_row;

/* The key only tells this use of the hash from others; it keeps nothing secret. */
static uint64_t checksum_add(uint64_t sum, fk_str part)
{
    fk_hash_key key = { sum, part.ptr != NULL ? part.len : UINT64_MAX };
    return fk__hash_bytes(&key, part.len > 0 ? part.ptr : "", part.len);
}

static uint64_t checksum_of(const fk_grain_key *key, const fk_record *record)
{
    uint64_t sum = checksum_add(record->version, key->kind);
    sum = checksum_add(sum, key->key);
    sum = checksum_add(sum, record->pid);
    sum = checksum_add(sum, record->snapshot);
    return checksum_add(sum, record->dedup);
}

static fk_str request_bytes(const fk_store_op *op)
{
    return (fk_str){ (const char *)op->request, sizeof op->request };
}

static int grain_get(sqlite_store *s, const fk_store_op *op, bool is_whole, grain_row *out)
{
    sqlite3_stmt *st = fk__sqlite_use(s, is_whole ? STMT_GRAIN_GET : STMT_GRAIN_HEAD);
    *out = (grain_row){ .st = st };
    (void)fk__sqlite_bytes(st, 1, op->key.kind);
    (void)fk__sqlite_bytes(st, 2, op->key.key);
    int code = fk__sqlite_row(st);
    if (code == SQLITE_DONE) return SQLITE_OK;
    SQLITE_TRY(code);
    out->is_there = true;
    out->id = fk__sqlite_column_u64(st, COLUMN_ID);
    out->epoch = fk__sqlite_column_u64(st, COLUMN_EPOCH);
    out->incarnation = fk__sqlite_column_u64(st, COLUMN_INCARNATION);
    out->version = fk__sqlite_column_u64(st, COLUMN_VERSION);
    out->has_fence = out->epoch == op->fence.epoch && out->incarnation == op->fence.incarnation &&
                     fk__str_same(fk__sqlite_column(st, COLUMN_HOLDER), op->fence.holder);
    out->has_request = fk__str_same(fk__sqlite_column(st, COLUMN_REQUEST), request_bytes(op));
    return SQLITE_OK;
}

/* Into op->record. False: it cannot be read, or there is no memory. */
static bool grain_show(fk_store_op *op, const grain_row *row)
{
    sqlite3_stmt *st = row->st;
    fk_record is = { .version = row->version };
    is.pid = fk__sqlite_column(st, COLUMN_PID);
    is.snapshot = fk__sqlite_column(st, COLUMN_SNAPSHOT);
    is.dedup = fk__sqlite_column(st, COLUMN_DEDUP);
    if (checksum_of(&op->key, &is) != fk__sqlite_column_u64(st, COLUMN_CHECKSUM)) {
        fk__store_refuse(op, FK_E_CORRUPT,
                         "the row of the grain is damaged: its checksum is wrong");
        return false;
    }
    op->record.version = is.version;
    return fk__store_copy(op, is.pid, &op->record.pid) &&
           fk__store_copy(op, is.snapshot, &op->record.snapshot) &&
           fk__store_copy(op, is.dedup, &op->record.dedup);
}

static int grain_make(sqlite_store *s, const fk_store_op *op)
{
    fk_record none = { .version = 0 };
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_NEW);
    (void)fk__sqlite_bytes(st, 1, op->key.kind);
    (void)fk__sqlite_bytes(st, 2, op->key.key);
    fk__sqlite_u64(st, 3, op->fence.epoch);
    fk__sqlite_text(st, 4, op->fence.holder);
    fk__sqlite_u64(st, 5, op->fence.incarnation);
    fk__sqlite_u64(st, 6, checksum_of(&op->key, &none));
    return fk__sqlite_run(st);
}

static int grain_fence(sqlite_store *s, const fk_store_op *op, uint64_t id)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_FENCE);
    fk__sqlite_u64(st, 1, id);
    fk__sqlite_u64(st, 2, op->fence.epoch);
    fk__sqlite_text(st, 3, op->fence.holder);
    fk__sqlite_u64(st, 4, op->fence.incarnation);
    return fk__sqlite_run(st);
}

int fk__sqlite_load(sqlite_store *s, fk_store_op *op)
{
    grain_row row;
    SQLITE_TRY(grain_get(s, op, true, &row));
    op->record = (fk_record){ .fence = op->fence };
    op->epoch = op->fence.epoch;
    if (row.is_there && !row.has_fence && row.epoch >= op->fence.epoch) {
        fk__store_fenced(op, row.epoch);
    } else if (row.is_there) {
        (void)grain_show(op, &row);
    }
    sqlite3_reset(row.st);
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    if (!row.is_there) return grain_make(s, op);
    /* Also under the same fence when there is no state: a tombstone that is used must not be purged. */
    return row.has_fence && row.version > 0 ? SQLITE_OK : grain_fence(s, op, row.id);
}

/* Fence and version are the row's; else the op is answered. */
static bool grain_is_ours(fk_store_op *op, const grain_row *row)
{
    if (!row->has_fence) {
        fk__store_fenced(op, row->epoch);
        return false;
    }
    op->epoch = row->epoch;
    if (row->version == op->version) return true;
    op->record.version = row->version;
    fk__store_refuse(op, FK_E_CONFLICT, "the row has another version");
    return false;
}

static int grain_put(sqlite_store *s, const fk_store_op *op, uint64_t id)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_STORE);
    fk__sqlite_u64(st, 1, id);
    fk__sqlite_u64(st, 2, op->record.version);
    fk__sqlite_u64(st, 4, checksum_of(&op->key, &op->record));
    SQLITE_TRY(fk__sqlite_bytes(st, 3, request_bytes(op)));
    SQLITE_TRY(fk__sqlite_bytes(st, 5, op->record.pid));
    SQLITE_TRY(fk__sqlite_bytes(st, 6, op->record.snapshot));
    SQLITE_TRY(fk__sqlite_bytes(st, 7, op->record.dedup));
    return fk__sqlite_run(st);
}

int fk__sqlite_put(sqlite_store *s, fk_store_op *op)
{
    grain_row row;
    SQLITE_TRY(grain_get(s, op, false, &row));
    sqlite3_reset(row.st);
    if (row.has_fence && row.has_request && row.version == op->version + 1) {
        op->epoch = row.epoch; /* it was stored before, and somebody did not hear of it */
        op->record.version = row.version;
        return SQLITE_OK;
    }
    if (!grain_is_ours(op, &row)) return SQLITE_OK;
    op->record.version = op->version + 1;
    int code = grain_put(s, op, row.id);
    if ((code & 0xff) != SQLITE_TOOBIG) return code;
    fk__store_refuse(op, FK_E_LIMIT, "the state is larger than SQLite can keep");
    return SQLITE_OK;
}

int fk__sqlite_remove(sqlite_store *s, fk_store_op *op)
{
    grain_row row;
    fk_record none = { .version = 0 };
    SQLITE_TRY(grain_get(s, op, false, &row));
    sqlite3_reset(row.st);
    if (!row.is_there || row.version == 0) return SQLITE_OK;
    if (!grain_is_ours(op, &row)) return SQLITE_OK;
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_REMOVE);
    fk__sqlite_u64(st, 1, row.id);
    fk__sqlite_u64(st, 2, checksum_of(&op->key, &none));
    sqlite3_bind_int64(st, 3, s->now_ms + 1); /* 0 is no time */
    return fk__sqlite_run(st);
}

int fk__sqlite_peek(sqlite_store *s, fk_store_op *op)
{
    grain_row row;
    SQLITE_TRY(grain_get(s, op, true, &row));
    op->record = (fk_record){ .version = 0 };
    if (!row.is_there) {
        fk__store_refuse(op, FK_E_NOT_FOUND, "there is no row of that grain");
    } else if (fk__store_copy(op, fk__sqlite_column(row.st, COLUMN_HOLDER),
                              &op->record.fence.holder) &&
               grain_show(op, &row)) {
        op->epoch = op->record.fence.epoch = row.epoch;
        op->record.fence.incarnation = row.incarnation;
        if (row.version == 0) fk__store_refuse(op, FK_E_NOT_FOUND, "that grain has no state");
    }
    sqlite3_reset(row.st);
    return SQLITE_OK;
}

int fk__sqlite_list(sqlite_store *s, fk_store_op *op)
{
    int code;
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_LIST);
    (void)fk__sqlite_bytes(st, 1, op->kind);
    (void)fk__sqlite_bytes(st, 2, fk__str_or_empty(op->after));
    fk__sqlite_u64(st, 3, op->limit);
    while ((code = fk__sqlite_row(st)) == SQLITE_OK) op->put_key(op, fk__sqlite_column(st, 0));
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int fk__sqlite_purge(sqlite_store *s)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_GRAIN_PURGE);
    sqlite3_bind_int64(st, 1, s->now_ms - FK_STORE_TOMB_NS / 1000000);
    return fk__sqlite_run(st);
}

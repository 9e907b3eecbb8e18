/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The store in a file: one transaction for all ops that are given at once. An op is OK only when the
 * transaction was committed, into the file that the path still leads to. What is not known is UNKNOWN,
 * and a connection that broke is opened again with the next call, so nobody needs to start anew when
 * the disk or the file is back.
 */

#include <string.h>

#include "store/sqlite.h"

enum { PATH_LEN_MAX = 4000 };

#define CALL_MAX  FK_SECONDS(2)
#define STAMP_MAX FK_MILLIS(20)

/* ---- what went wrong -------------------------------------------------------------------------- */

static fk_err code_err(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK: return FK_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return FK_E_TIMEOUT;
    case SQLITE_FULL: return FK_E_FULL;
    case SQLITE_NOMEM: return FK_E_NOMEM;
    case SQLITE_TOOBIG: return FK_E_LIMIT;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return FK_E_CORRUPT;
    default: return code == SQLITE_IOERR_NOMEM ? FK_E_NOMEM : FK_E_STORAGE;
    }
}

static const char *code_text(int code)
{
    switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return "another process kept the file of the store locked for too long";
    case SQLITE_FULL: return "the disk of the store is full";
    case SQLITE_NOMEM: return "SQLite has no memory left";
    case SQLITE_TOOBIG: return "the state is larger than SQLite can keep";
    case SQLITE_CORRUPT: return "the file of the store is damaged";
    case SQLITE_NOTADB: return "the file of the store is not a database";
    case SQLITE_READONLY: return "the file of the store can only be read";
    case SQLITE_CANTOPEN:
        return "the file of the store cannot be opened: is its directory there, and may it be "
               "written?";
    case SQLITE_PERM:
    case SQLITE_AUTH: return "the file of the store may not be used";
    case SQLITE_IOERR: return "the disk of the store failed";
    default: return "SQLite failed";
    }
}

/* Nothing of these was done; of all others nobody can say. */
static bool is_refusal(fk_err err)
{
    return err == FK_E_FULL || err == FK_E_NOMEM || err == FK_E_LIMIT;
}

static void fail_all(sqlite_store *s, fk_store_op *const *ops, size_t count, int code)
{
    fk_err err = code_err(code);
    const char *text = s->broke != NULL ? s->broke : code_text(code);
    for (size_t i = 0; i < count; i++) {
        fk_store_op *op = ops[i];
        if (op->err == FK_E_INVALID) continue;
        op->epoch = 0;
        op->view = (fk_view){ 0, NULL, 0 };
        if (is_refusal(err)) {
            fk__store_refuse(op, err, text);
        } else {
            fk__store_unknown(op, err, text);
        }
    }
}

/* ---- connections ------------------------------------------------------------------------------ */

static int sqlite_ready(sqlite_store *s)
{
    s->broke = NULL;
    if (s->db != NULL && fk__sqlite_is_at_path(s)) return SQLITE_OK;
    /* One that is gone may come back, with all that was committed. It is not made anew: an empty store
     * would be taken for the truth. */
    const char *why = NULL;
    if (s->db != NULL) fk__sqlite_disconnect(s, true);
    int code = fk__sqlite_connect(s, false, &why);
    s->broke = why;
    return code;
}

/* A connection that saw one of these may not be trusted any more. */
static bool is_broken_by(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return false;
    default: return true;
    }
}

/* ---- transactions ------------------------------------------------------------------------------ */

static int sqlite_do(sqlite_store *s, fk_store_op *op)
{
    static int (*const verbs[])(sqlite_store *, fk_store_op *) = {
        [FK_STORE_JOIN] = fk__sqlite_join,         [FK_STORE_RENEW] = fk__sqlite_renew,
        [FK_STORE_UPDATE] = fk__sqlite_update,     [FK_STORE_LEAVE] = fk__sqlite_leave,
        [FK_STORE_VIEW] = fk__sqlite_view,         [FK_STORE_ACQUIRE] = fk__sqlite_acquire,
        [FK_STORE_TRANSFER] = fk__sqlite_transfer, [FK_STORE_RELEASE] = fk__sqlite_release,
        [FK_STORE_LOAD] = fk__sqlite_load,         [FK_STORE_STORE] = fk__sqlite_put,
        [FK_STORE_REMOVE] = fk__sqlite_remove,     [FK_STORE_PEEK] = fk__sqlite_peek,
        [FK_STORE_LIST] = fk__sqlite_list,
    };
    _Static_assert(sizeof verbs / sizeof *verbs == FK_STORE_VERB_COUNT, "every verb");
    return verbs[op->verb](s, op);
}

static size_t claims_of(const fk_store_op *op)
{
    bool has_any = fk__store_has_claims(op->verb) && op->err != FK_E_INVALID;
    return has_any ? op->claim_count : 0;
}

static fk_err grants_reserve(sqlite_store *s, size_t count)
{
    void *made = NULL;
    if (count <= s->grant_room) return FK_OK;
    FK_TRY(fk__mem_alloc(&s->mem, count * sizeof *s->grants, FK_SITE("store: grants"), &made));
    fk__mem_free(&s->mem, s->grants, s->grant_room * sizeof *s->grants);
    s->grants = made;
    s->grant_room = count;
    return FK_OK;
}

/* All is committed: now the callers may know. */
static void settle_all(sqlite_store *s, fk_store_op *const *ops, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        fk_store_op *op = ops[i];
        size_t claims = claims_of(op);
        for (size_t k = 0; k < claims && op->verdict == FK_VERDICT_OK; k++) {
            op->claims[k].epoch = s->grants[used + k].epoch;
        }
        used += claims;
        if (op->verb == FK_STORE_VIEW && op->verdict == FK_VERDICT_OK) {
            op->version = op->view.version;
        }
    }
    if (s->has_members_changed) s->own++;
}

static int transaction(sqlite_store *s, fk_store_op *const *ops, size_t count, bool is_write)
{
    SQLITE_TRY(fk__sqlite_run(fk__sqlite_use(s, is_write ? STMT_BEGIN_WRITE : STMT_BEGIN)));
    s->now_ms = fk__store_clock() / 1000000; /* with the lock: so time never goes back */
    s->grant_used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t before = s->grant_used;
        size_t claims = claims_of(ops[i]);
        if (ops[i]->err != FK_E_INVALID) SQLITE_TRY(sqlite_do(s, ops[i]));
        s->grant_used = before + claims;
    }
    SQLITE_TRY(fk__sqlite_run(fk__sqlite_use(s, STMT_COMMIT)));
    if (!is_write || fk__sqlite_is_at_path(s)) return SQLITE_OK;
    s->broke = "the file of the store was taken away while it was written";
    return SQLITE_IOERR;
}

static void segment_apply(sqlite_store *s, fk_store_op *const *ops, size_t count)
{
    bool is_write = false;
    size_t claims = 0;
    for (size_t i = 0; i < count; i++) {
        (void)fk__store_begin(ops[i]);
        is_write = is_write || (fk__store_is_write(ops[i]->verb) && ops[i]->err == FK_OK);
        claims += claims_of(ops[i]);
    }
    s->has_members_changed = false;
    int code = grants_reserve(s, claims) == FK_OK ? sqlite_ready(s) : SQLITE_NOMEM;
    if (code == SQLITE_OK) code = transaction(s, ops, count, is_write);
    if (code == SQLITE_OK) {
        settle_all(s, ops, count);
        return;
    }
    if (s->db != NULL && sqlite3_get_autocommit(s->db) == 0) {
        (void)fk__sqlite_run(fk__sqlite_use(s, STMT_ROLLBACK));
    }
    if (is_broken_by(code) && s->db != NULL) fk__sqlite_disconnect(s, !fk__sqlite_is_at_path(s));
    /* The log may be what fills the disk: what is in it goes to where it belongs. */
    if ((code & 0xff) == SQLITE_FULL && s->db != NULL) {
        (void)sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    if ((code & 0xff) == SQLITE_FULL && count > 1) { /* what is small may still find room */
        for (size_t i = 0; i < count; i++) segment_apply(s, ops + i, 1);
        return;
    }
    fail_all(s, ops, count, code);
}

/* LIST goes by itself: nobody's put_key() is called with the lock held, nor twice. */
static void sqlite_apply(fk_store *store, fk_store_op *const *ops, size_t count)
{
    sqlite_store *s = FK_CONTAINER(store, sqlite_store, base);
    size_t from = 0;
    s->deadline = fk__store_clock() + CALL_MAX;
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->verb != FK_STORE_LIST) continue;
        if (i > from) segment_apply(s, ops + from, i - from);
        segment_apply(s, ops + i, 1);
        from = i + 1;
    }
    if (count > from) segment_apply(s, ops + from, count - from);
}

/* data_version counts what others commit, `own` what this connection does. */
static uint64_t sqlite_stamp(fk_store *store)
{
    sqlite_store *s = FK_CONTAINER(store, sqlite_store, base);
    uint64_t version = 0;
    s->deadline = fk__store_clock() + STAMP_MAX;
    if (s->db == NULL || !fk__sqlite_is_at_path(s)) return ++s->own; /* who asks will see */
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_DATA_VERSION);
    if (fk__sqlite_row(st) != SQLITE_OK) return ++s->own;
    version = fk__sqlite_column_u64(st, 0);
    sqlite3_reset(st);
    return (version << 32) + s->own;
}

static void sqlite_free(sqlite_store *s)
{
    fk_mem mem = s->mem;
    fk__mem_free(&mem, s->grants, s->grant_room * sizeof *s->grants);
    fk__mem_free(&mem, s, sizeof *s + s->path_len + 1);
}

static void sqlite_close(fk_store *store)
{
    sqlite_store *s = FK_CONTAINER(store, sqlite_store, base);
    fk__sqlite_disconnect(s, s->db != NULL && !fk__sqlite_is_at_path(s));
    sqlite_free(s);
}

/* ---- opening ------------------------------------------------------------------------------------ */

static fk_err path_check(fk_str path, const char **why)
{
    if (path.len == 0) {
        *why = "the URL names no file: say \"sqlite:FILE\"";
    } else if (path.len > PATH_LEN_MAX) {
        *why = "the name of the file is too long";
    } else if (memchr(path.ptr, '\0', path.len) != NULL) {
        *why = "the name of the file has a zero byte in it";
    } else if (path.ptr[0] == ':') {
        *why = "a database in memory has no file that others could share: say \"memory:\"";
    } else {
        return FK_OK;
    }
    return FK_E_INVALID;
}

static fk_err sqlite_open(void *user, fk_str rest, bool is_state, const fk_port *port,
                          fk_store **out, const char **why)
{
    static const fk_store_ops ops = { sqlite_apply, sqlite_stamp, sqlite_close };
    fk_mem mem;
    void *made = NULL;
    (void)user;
    FK_TRY(path_check(rest, why));
    fk__mem_init(&mem, port, 0);
    FK_TRY(
        fk__mem_alloc(&mem, sizeof(sqlite_store) + rest.len + 1, FK_SITE("store: SQLite"), &made));
    sqlite_store *s = made;
    memset(s, 0, sizeof *s);
    s->base.ops = &ops;
    s->mem = mem;
    s->is_state = is_state;
    s->path_len = rest.len;
    memcpy(s->path, rest.ptr, rest.len);
    s->path[rest.len] = '\0';
    s->deadline = fk__store_clock() + CALL_MAX;
    int code = fk__sqlite_connect(s, true, why);
    if (code == SQLITE_OK) {
        *out = &s->base;
        return FK_OK;
    }
    if (*why == NULL) *why = code_text(code);
    sqlite_free(s);
    return code_err(code);
}

const fk_store_provider fk_store_sqlite = { "sqlite", NULL, sqlite_open };

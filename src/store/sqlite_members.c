/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Members in a SQLite file. Of each id the last incarnation stays for ever, so that numbers go on. */

#include "store/sqlite.h"

static int view_next(sqlite_store *s)
{
    s->has_members_changed = true;
    return fk__sqlite_run(fk__sqlite_use(s, STMT_VIEW_NEXT));
}

/* Whole milliseconds, never less than was asked for. */
static int64_t lease_end(const sqlite_store *s, fk_time ttl)
{
    int64_t ms = ttl / 1000000 + 2; /* the clock was cut to a millisecond, and so is ttl */
    return s->now_ms > INT64_MAX - ms ? INT64_MAX : s->now_ms + ms;
}

static int members_sweep(sqlite_store *s)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_SWEEP);
    sqlite3_bind_int64(st, 1, s->now_ms);
    SQLITE_TRY(fk__sqlite_run(st));
    return sqlite3_changes(s->db) > 0 ? view_next(s) : SQLITE_OK;
}

int fk__sqlite_member_live(sqlite_store *s, fk_str id, uint64_t incarnation)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_LIVE);
    fk__sqlite_text(st, 1, id);
    fk__sqlite_u64(st, 2, incarnation);
    sqlite3_bind_int64(st, 3, s->now_ms);
    int code = fk__sqlite_row(st);
    sqlite3_reset(st);
    return code;
}

static int meta_check(sqlite_store *s, fk_store_op *op, bool *is_decided)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_META_GET);
    SQLITE_TRY(fk__sqlite_row(st));
    fk_str strategy = fk__sqlite_column(st, 0);
    uint64_t slots = fk__sqlite_column_u64(st, 1);
    bool is_same = slots == op->slots && fk__str_same(strategy, fk_str_of(op->strategy));
    sqlite3_reset(st);
    *is_decided = slots != 0;
    if (*is_decided && !is_same) fk__store_refuse(op, FK_E_MISMATCH, FK_STORE_MISMATCH_TEXT);
    return SQLITE_OK;
}

/* The first one decides how the cluster is. */
static int meta_decide(sqlite_store *s, fk_store_op *op)
{
    bool is_decided;
    SQLITE_TRY(meta_check(s, op, &is_decided));
    if (is_decided) return SQLITE_OK;
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_META_SET);
    fk__sqlite_text(st, 1, fk_str_of(op->strategy));
    fk__sqlite_u64(st, 2, op->slots);
    return fk__sqlite_run(st);
}

static int view_version(sqlite_store *s, uint64_t *out)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_META_GET);
    SQLITE_TRY(fk__sqlite_row(st));
    *out = fk__sqlite_column_u64(st, 2);
    sqlite3_reset(st);
    return SQLITE_OK;
}

static int member_put(sqlite_store *s, const fk_store_op *op)
{
    char kinds[FK_STORE_KINDS_MAX];
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_PUT);
    fk__sqlite_text(st, 1, op->member.id);
    fk__sqlite_u64(st, 2, op->member.incarnation);
    fk__sqlite_text(st, 3, op->member.address);
    fk__sqlite_text(st, 4, fk__store_kinds_join(&op->member, kinds));
    fk__sqlite_u64(st, 5, op->member.weight);
    fk__sqlite_u64(st, 6, op->member.status);
    sqlite3_bind_int64(st, 7, lease_end(s, op->ttl));
    int code = fk__sqlite_run(st);
    sqlite3_clear_bindings(st); /* the kinds are on this stack */
    return code;
}

/* Its next incarnation, unless somebody else has its id meanwhile. */
static int member_next(sqlite_store *s, fk_store_op *op)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_LAST);
    fk__sqlite_text(st, 1, op->member.id);
    int code = fk__sqlite_row(st);
    bool is_new = code == SQLITE_DONE;
    if (!is_new) SQLITE_TRY(code);
    uint64_t last = is_new ? 0 : fk__sqlite_column_u64(st, 0);
    bool is_up = !is_new && fk__sqlite_column_u64(st, 1) != FK_MEMBER_DOWN;
    sqlite3_reset(st);
    fk__store_join_next(op, last, is_up);
    return SQLITE_OK;
}

int fk__sqlite_join(sqlite_store *s, fk_store_op *op)
{
    SQLITE_TRY(meta_decide(s, op));
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    SQLITE_TRY(members_sweep(s));
    SQLITE_TRY(fk__sqlite_purge(s));
    SQLITE_TRY(member_next(s, op));
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    SQLITE_TRY(member_put(s, op));
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_PRUNE);
    fk__sqlite_text(st, 1, op->member.id);
    fk__sqlite_u64(st, 2, op->member.incarnation);
    SQLITE_TRY(fk__sqlite_run(st));
    SQLITE_TRY(view_next(s));
    return view_version(s, &op->version);
}

/* Runs a statement about one incarnation. False: there is none whose lease lasts. */
static int member_change(sqlite_store *s, const fk_store_op *op, sqlite3_stmt *st, bool *is_there)
{
    fk__sqlite_text(st, 1, op->member.id);
    fk__sqlite_u64(st, 2, op->member.incarnation);
    SQLITE_TRY(fk__sqlite_run(st));
    *is_there = sqlite3_changes(s->db) > 0;
    return SQLITE_OK;
}

int fk__sqlite_renew(sqlite_store *s, fk_store_op *op)
{
    bool is_there = false;
    SQLITE_TRY(members_sweep(s));
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_RENEW);
    sqlite3_bind_int64(st, 3, lease_end(s, op->ttl));
    SQLITE_TRY(member_change(s, op, st, &is_there));
    if (!is_there) fk__store_lease_over(op);
    return SQLITE_OK;
}

int fk__sqlite_update(sqlite_store *s, fk_store_op *op)
{
    char kinds[FK_STORE_KINDS_MAX];
    bool is_there = false;
    SQLITE_TRY(members_sweep(s));
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_UPDATE);
    fk__sqlite_text(st, 3, fk__store_kinds_join(&op->member, kinds));
    fk__sqlite_u64(st, 4, op->member.weight);
    fk__sqlite_u64(st, 5, op->member.status);
    int code = member_change(s, op, st, &is_there);
    sqlite3_clear_bindings(st);
    SQLITE_TRY(code);
    if (is_there) return view_next(s);
    fk__store_lease_over(op);
    return SQLITE_OK;
}

int fk__sqlite_leave(sqlite_store *s, fk_store_op *op)
{
    bool is_there = false;
    SQLITE_TRY(members_sweep(s));
    SQLITE_TRY(member_change(s, op, fk__sqlite_use(s, STMT_MEMBER_LEAVE), &is_there));
    return is_there ? view_next(s) : SQLITE_OK;
}

/* ---- the view ---------------------------------------------------------------------------------- */

static bool member_show(fk_store_op *op, sqlite3_stmt *st, fk_member *to)
{
    *to = (fk_member){ .incarnation = fk__sqlite_column_u64(st, 1),
                       .weight = (uint32_t)fk__sqlite_column_u64(st, 4),
                       .status = (fk_member_status)sqlite3_column_int(st, 5) };
    return fk__store_copy(op, fk__sqlite_column(st, 0), &to->id) &&
           fk__store_copy(op, fk__sqlite_column(st, 2), &to->address) &&
           fk__store_kinds_split(op, fk__sqlite_column(st, 3), to);
}

static int members_list(sqlite_store *s, fk_store_op *op, fk_member *to, uint32_t room)
{
    int code = SQLITE_OK;
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_LIST);
    op->view.count = 0;
    while (op->view.count < room && (code = fk__sqlite_row(st)) == SQLITE_OK) {
        if (!member_show(op, st, &to[op->view.count++])) break;
    }
    sqlite3_reset(st);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

int fk__sqlite_view(sqlite_store *s, fk_store_op *op)
{
    bool is_decided;
    if (op->strategy != NULL) SQLITE_TRY(meta_check(s, op, &is_decided));
    if (op->verdict == FK_VERDICT_REFUSED) return SQLITE_OK;
    SQLITE_TRY(view_version(s, &op->view.version));
    if (op->view.version == op->version) return SQLITE_OK;
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_MEMBER_COUNT);
    SQLITE_TRY(fk__sqlite_row(st));
    uint32_t room = (uint32_t)fk__sqlite_column_u64(st, 0);
    sqlite3_reset(st);
    fk_member *members = fk__store_room(op, (room + 1) * sizeof *members);
    if (members == NULL) return SQLITE_OK;
    op->view.members = members;
    SQLITE_TRY(members_list(s, op, members, room));
    if (op->verdict != FK_VERDICT_OK) op->view = (fk_view){ 0, NULL, 0 };
    return SQLITE_OK;
}

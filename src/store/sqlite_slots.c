/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Slots in a SQLite file. A row is never deleted: its epoch must not begin again. */

#include "store/sqlite.h"

typedef struct slot_row {
    uint64_t epoch, incarnation;
    fk_str owner; /* lent until slot_end() */
    bool is_live; /* somebody holds it, and has a lease */
    sqlite3_stmt *st;
} slot_row;

static int slot_get(sqlite_store *s, fk_str kind, uint32_t slot, slot_row *out)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_SLOT_GET);
    *out = (slot_row){ .st = st };
    fk__sqlite_text(st, 1, kind);
    fk__sqlite_u64(st, 2, slot);
    sqlite3_bind_int64(st, 3, s->now_ms);
    int code = fk__sqlite_row(st);
    if (code == SQLITE_DONE) return SQLITE_OK;
    SQLITE_TRY(code);
    out->epoch = fk__sqlite_column_u64(st, 0);
    out->owner = fk__sqlite_column(st, 1);
    out->incarnation = fk__sqlite_column_u64(st, 2);
    out->is_live = sqlite3_column_int(st, 3) != 0;
    return SQLITE_OK;
}

static int slot_put(sqlite_store *s, fk_str kind, uint32_t slot, fk_fence holder)
{
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_SLOT_PUT);
    fk__sqlite_text(st, 1, kind);
    fk__sqlite_u64(st, 2, slot);
    fk__sqlite_text(st, 3, holder.holder);
    fk__sqlite_u64(st, 4, holder.incarnation);
    fk__sqlite_u64(st, 5, holder.epoch);
    return fk__sqlite_run(st);
}

static bool is_held_by(const slot_row *row, const fk_store_op *op)
{
    return row->incarnation == op->member.incarnation && fk__str_same(row->owner, op->member.id);
}

/* Who has it. The one before is mostly the same, and needs no memory again. */
static bool claim_deny(fk_store_op *op, uint32_t index, const slot_row *row)
{
    fk_slot_claim *claim = &op->claims[index];
    claim->holder_incarnation = row->incarnation;
    claim->holder = index > 0 ? op->claims[index - 1].holder : (fk_str){ NULL, 0 };
    if (claim->holder.ptr != NULL && fk__str_same(claim->holder, row->owner)) return true;
    claim->holder = (fk_str){ NULL, 0 };
    return row->owner.len == 0 || fk__store_copy(op, row->owner, &claim->holder);
}

/* The member that asks has a lease, and the slots exist; else the op is answered. */
static int slots_begin(sqlite_store *s, fk_store_op *op)
{
    int code = fk__sqlite_member_live(s, op->member.id, op->member.incarnation);
    if (code == SQLITE_DONE) {
        fk__store_lease_over(op);
        return SQLITE_OK;
    }
    SQLITE_TRY(code);
    sqlite3_stmt *st = fk__sqlite_use(s, STMT_META_GET);
    SQLITE_TRY(fk__sqlite_row(st));
    uint64_t slots = fk__sqlite_column_u64(st, 1);
    sqlite3_reset(st);
    for (uint32_t i = 0; i < op->claim_count; i++) {
        if (op->claims[i].slot < slots) continue;
        fk__store_refuse(op, FK_E_INVALID, "there is no such slot");
        return SQLITE_OK;
    }
    return SQLITE_OK;
}

/* Looks at all rows before one is written: when there is no memory for an answer, nothing was done. */
static int claims_judge(sqlite_store *s, fk_store_op *op, sqlite_grant *grants)
{
    for (uint32_t i = 0; i < op->claim_count; i++) {
        slot_row row;
        fk_slot_claim *claim = &op->claims[i];
        SQLITE_TRY(slot_get(s, op->kind, claim->slot, &row));
        bool is_mine = is_held_by(&row, op);
        claim->holder = (fk_str){ NULL, 0 };
        claim->holder_incarnation = 0;
        if (op->verb == FK_STORE_ACQUIRE) {
            grants[i] = (sqlite_grant){ row.epoch + 1, true };
            if (is_mine) grants[i] = (sqlite_grant){ row.epoch, false };
            if (!is_mine && row.is_live) grants[i] = (sqlite_grant){ 0, false };
        } else {
            is_mine = is_mine && row.epoch == claim->epoch;
            uint64_t next = op->verb == FK_STORE_TRANSFER ? row.epoch + 1 : row.epoch;
            grants[i] = (sqlite_grant){ is_mine ? next : 0, is_mine };
        }
        bool is_told =
            grants[i].epoch != 0 || op->verb == FK_STORE_RELEASE || claim_deny(op, i, &row);
        sqlite3_reset(row.st);
        if (!is_told) return SQLITE_OK;
    }
    return SQLITE_OK;
}

static int claims_grant(sqlite_store *s, fk_store_op *op, fk_str to, uint64_t incarnation)
{
    sqlite_grant *grants = s->grants + s->grant_used;
    SQLITE_TRY(claims_judge(s, op, grants));
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    for (uint32_t i = 0; i < op->claim_count; i++) {
        if (!grants[i].is_new) continue;
        fk_fence holder = { grants[i].epoch, to, incarnation };
        SQLITE_TRY(slot_put(s, op->kind, op->claims[i].slot, holder));
    }
    return SQLITE_OK;
}

int fk__sqlite_acquire(sqlite_store *s, fk_store_op *op)
{
    SQLITE_TRY(slots_begin(s, op));
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    return claims_grant(s, op, op->member.id, op->member.incarnation);
}

int fk__sqlite_transfer(sqlite_store *s, fk_store_op *op)
{
    SQLITE_TRY(slots_begin(s, op));
    if (op->verdict != FK_VERDICT_OK) return SQLITE_OK;
    int code = fk__sqlite_member_live(s, op->to, op->to_incarnation);
    if (code == SQLITE_DONE) {
        fk__store_refuse(op, FK_E_NOT_FOUND, "the member that is to get the slots is not there");
        return SQLITE_OK;
    }
    SQLITE_TRY(code);
    return claims_grant(s, op, op->to, op->to_incarnation);
}

/* Also of a member whose lease is over: it says nothing that is not so. */
int fk__sqlite_release(sqlite_store *s, fk_store_op *op)
{
    return claims_grant(s, op, (fk_str){ "", 0 }, 0);
}

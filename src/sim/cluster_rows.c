/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rows of grains: load puts the fence in, store compares fence and version. */

#include "sim/cluster.h"

#include "base/safeguard.h"
#include "sim/sometimes.h"

#include <string.h>

static fk_csim *const w = &fk__csim;
static fk_csim_services *const s = &fk__csim.services;

static void refuse(fk_csim_op *op, fk_err err, uint64_t epoch)
{
    op->verdict = FK_VERDICT_REFUSED;
    op->err = err;
    op->epoch = epoch;
    fk__cfact(FK_CFACT_REJECT, op->node, op->key, err);
    if (err == FK_E_FENCED) FK_SOMETIMES_HIT(CLUSTER_FENCED);
    if (err == FK_E_CONFLICT) FK_SOMETIMES_HIT(CLUSTER_CONFLICT);
}

static bool is_same_holder(const fk_csim_row *row, const fk_csim_op *op)
{
    return row->holder == op->node && row->incarnation == op->incarnation;
}

static void do_load(fk_csim_op *op)
{
    fk_csim_row *row = &s->row[op->key];
    bool is_fenced = row->exists && (row->epoch > op->epoch ||
                                     (row->epoch == op->epoch && !is_same_holder(row, op)));
    if (is_fenced && FK_SAFEGUARD(STORE_EPOCH)) {
        refuse(op, FK_E_FENCED, row->epoch);
        return;
    }
    row->exists = true;
    if (FK_SAFEGUARD(STORE_VERSION_AND_STAMP)) {
        row->epoch = op->epoch;
        row->holder = op->node;
        row->incarnation = op->incarnation;
    }
    fk_csim_record *record = fk__csim_new(sizeof(*record));
    record->version = row->version;
    record->total = row->total;
    memcpy(record->bytes, &row->total, sizeof(record->bytes));
    record->dedup = row->dedup;
    op->record = record;
    op->version = row->version;
    fk__cfact(FK_CFACT_LOAD, op->node, op->key, op->epoch);
    fk__book_loaded(op->key, op->epoch);
}

static bool is_fence_good(const fk_csim_row *row, const fk_csim_op *op)
{
    if (!FK_SAFEGUARD(STORE_EPOCH)) return true;
    if (!FK_SAFEGUARD(STORE_VERSION_AND_STAMP)) return row->epoch <= op->epoch;
    return row->epoch == op->epoch && is_same_holder(row, op);
}

static void do_store(fk_csim_op *op)
{
    fk_csim_row *row = &s->row[op->key];
    if (s->full_until > w->now) {
        refuse(op, FK_E_FULL, 0);
        FK_SOMETIMES_HIT(CLUSTER_FULL);
        return;
    }
    if (!is_fence_good(row, op)) {
        refuse(op, FK_E_FENCED, row->epoch);
        return;
    }
    bool is_again = row->version == op->version + 1 && row->last.origin == op->request.origin &&
                    row->last.seq == op->request.seq && is_same_holder(row, op);
    if (is_again) {
        op->version = row->version;
        FK_SOMETIMES_HIT(CLUSTER_STORED_AGAIN);
        return;
    }
    if (row->version != op->version && FK_SAFEGUARD(STORE_VERSION_AND_STAMP)) {
        uint64_t version = row->version;
        refuse(op, FK_E_CONFLICT, row->epoch);
        op->version = version;
        return;
    }
    uint64_t total = row->total, version = row->version;
    row->epoch = op->epoch;
    row->holder = op->node;
    row->incarnation = op->incarnation;
    row->total = op->record->total;
    row->dedup = op->record->dedup;
    row->last = op->request;
    row->version = op->version + 1;
    fk__cfact(FK_CFACT_STORE, op->node, op->key, row->version);
    fk__book_stored(op, total, version);
    op->version = row->version;
}

void fk__csim_rows_apply(fk_csim_op *op)
{
    op->verdict = FK_VERDICT_OK;
    op->err = FK_OK;
    switch (op->verb) {
    case FK_STORE_LOAD: do_load(op); break;
    case FK_STORE_STORE: do_store(op); break;
    default: fk__csim_fail("plan", "verb %d is not of the rows", (int)op->verb);
    }
}

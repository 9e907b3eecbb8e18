/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What is stored, looked at from outside without starting anything: a job for the store, whose answer
 * comes as that of a question.
 */

#include "cluster/cluster.h"

#include "core/ask.h"

static const fk_time ROWS_TIME = FK_SECONDS(5);

/* Takes the job. *out, on FK_OK: the same, done, to be destroyed. */
static fk_err rows_ask(fk_cluster *cluster, fk_store_job *job, fk_store_job **out)
{
    fk_system *sys = cluster->sys;
    fk_store_job_done done = { NULL };
    fk_into into = { &fk__type_store_job_done, &done };
    fk_ref question;
    fk_err err = fk__question_open(sys, cluster->steward, &question);
    if (err != FK_OK) {
        fk__store_job_destroy(job);
        return err;
    }
    job->to = question;
    cluster->port.submit(cluster->port.ctx, job);
    err = fk__question_await(sys, question, into, ROWS_TIME);
    if (err != FK_OK) return err == FK_E_TIMEOUT ? FK_E_STORAGE : err;
    done.job->is_sent = false; /* the message was taken: nobody drops it */
    *out = done.job;
    if (done.job->op.verdict == FK_VERDICT_OK) return FK_OK;
    err = done.job->op.err;
    fk__store_job_destroy(done.job);
    return err;
}

fk_err fk_grain_peek(fk_cluster *cluster, fk_str kind, fk_str key, fk_grain_row *out)
{
    fk_grain_key grain;
    fk_store_job *job;
    if (cluster == NULL || out == NULL) return FK_E_INVALID;
    FK_TRY(fk__question_check(cluster->sys));
    FK_TRY(fk_grain_key_of(kind, key, &grain));
    FK_TRY(fk__store_job_create(cluster->sys, kind.len + key.len, &job));
    char *text = fk__store_job_extra(job);
    memcpy(text, kind.ptr, kind.len);
    memcpy(text + kind.len, key.ptr, key.len);
    job->op.verb = FK_STORE_PEEK;
    job->op.key = (fk_grain_key){ { text, kind.len }, { text + kind.len, key.len }, grain.id };
    FK_TRY(rows_ask(cluster, job, &job));
    const fk_record *record = &job->op.record;
    *out = (fk_grain_row){ .version = record->version,
                           .epoch = record->fence.epoch,
                           .snapshot_size = record->snapshot.len,
                           .dedup_size = record->dedup.len };
    fk__member_text(out->holder, record->fence.holder);
    fk__store_job_destroy(job);
    return FK_OK;
}

/* ---- lists --------------------------------------------------------------------------------------------- */

typedef struct rows_key {
    struct rows_key *next;
    size_t len;
    char text[];
} rows_key;

typedef struct rows_list {
    rows_key *first, **last;
    bool is_short; /* there was no memory for one of them */
} rows_list;

/* On the store's thread. */
static void rows_put(fk_store_op *op, fk_str key)
{
    rows_list *list = op->user;
    rows_key *row = op->room(op, sizeof(rows_key) + key.len);
    if (row == NULL) {
        list->is_short = true;
        return;
    }
    row->next = NULL;
    row->len = key.len;
    memcpy(row->text, key.ptr, key.len);
    *list->last = row;
    list->last = &row->next;
}

fk_err fk_grain_stored(fk_cluster *cluster, fk_str kind, fk_str after, uint32_t limit,
                       fk_grain_key_fn fn, void *user)
{
    fk_grain_key probe;
    fk_store_job *job;
    if (cluster == NULL || fn == NULL || limit == 0) return FK_E_INVALID;
    FK_TRY(fk__question_check(cluster->sys));
    if (fk_grain_key_of(kind, FK_STR("x"), &probe) != FK_OK) return FK_E_UNKNOWN_KIND;
    if (after.len > FK_GRAIN_KEY_MAX) return FK_E_KEY;
    FK_TRY(fk__store_job_create(cluster->sys, sizeof(rows_list) + kind.len + after.len, &job));
    rows_list *list = fk__store_job_extra(job);
    char *text = (char *)(list + 1);
    memcpy(text, kind.ptr, kind.len);
    if (after.len != 0) memcpy(text + kind.len, after.ptr, after.len);
    list->last = &list->first;
    job->op.verb = FK_STORE_LIST;
    job->op.kind = (fk_str){ text, kind.len };
    job->op.after = (fk_str){ text + kind.len, after.len };
    job->op.limit = limit;
    job->op.put_key = rows_put;
    job->op.user = list;
    FK_TRY(rows_ask(cluster, job, &job));
    fk_err err = list->is_short ? FK_E_NOMEM : FK_OK;
    for (const rows_key *row = list->first; row != NULL && err == FK_OK; row = row->next) {
        fn(user, (fk_str){ row->text, row->len });
    }
    fk__store_job_destroy(job);
    return err;
}

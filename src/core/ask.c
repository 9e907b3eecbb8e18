/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/ask.h"

#include "core/answer.h"
#include "core/promise.h"
#include "core/send.h"
#include "core/tray.h"

/* ---- actors -------------------------------------------------------------------------------------- */

/* The answer is known before the question has been asked. */
static fk_err ask_over(fk_local *local, fk_node *answer, fk_ref to, fk_err err)
{
    fk__answer_bind(answer, FK_REF_NONE, to);
    fk__answer_deliver(local, answer, err, NULL);
    return FK_OK;
}

static fk_err ask_refused(fk_local *local, fk_ref to, fk_ref self, fk_out msg, fk_err err)
{
    fk__dead_out(local, FK_REASON_NO_MEMORY, to, self, msg);
    return err;
}

fk_err fk__ask_open(fk_ctx *ctx, uint64_t id, fk_time timeout, fk_ref *out)
{
    fk_worker *worker = fk__ctx_worker(ctx);
    fk_node *answer;
    fk_promise *promise;
    FK_TRY(fk__answer_create(&worker->local, ctx->cell, fk_self(ctx), id, &answer));
    fk_err err = fk__promise_open(&worker->local, answer, FK_REF_NONE, &promise);
    if (err != FK_OK) {
        fk__answer_destroy(&worker->local.cache, answer);
        return err;
    }
    *out = fk__promise_ref(promise);
    fk__answer_bind(answer, *out, FK_REF_NONE);
    fk__promise_limit(worker, promise, timeout > 0 ? timeout : 1);
    return FK_OK;
}

void fk__ask_end(fk_local *local, fk_ref question, fk_err err)
{
    fk_cell *cell = fk__cell_resolve(local->sys, question);
    if (cell == NULL || !fk__cell_is_promise(cell)) return;
    (void)fk__promise_end(local, cell, question.generation, err, NULL);
}

bool fk__ask_is(const fk_system *sys, fk_ref question)
{
    const fk_cell *cell = fk__cell_resolve(sys, question);
    return cell != NULL && fk__cell_is_promise(cell);
}

/* The answer is taken. */
static fk_err ask_send(fk_ctx *ctx, fk_ref to, fk_out msg, fk_node *answer, fk_time timeout)
{
    fk_worker *worker = fk__ctx_worker(ctx);
    fk_local *local = &worker->local;
    fk_promise *promise;
    if (FK_UNLIKELY(timeout <= 0)) {
        fk__out_drop(&local->cache, msg);
        return ask_over(local, answer, to, FK_E_TIMEOUT);
    }
    if (FK_UNLIKELY(fk__local_resolve(local, to) == NULL)) {
        fk__send(local, to, fk_self(ctx), msg, NULL); /* a dead letter */
        return ask_over(local, answer, to, FK_E_DEAD);
    }
    fk_err err = fk__promise_open(local, answer, to, &promise);
    if (FK_UNLIKELY(err != FK_OK)) {
        fk__answer_destroy(&local->cache, answer);
        return ask_refused(local, to, fk_self(ctx), msg, err);
    }
    fk_ref ref = fk__promise_ref(promise);
    fk__answer_bind(answer, ref, to);
    fk__promise_limit(worker, promise, timeout);
    err =
        ctx->tray == NULL ? fk__send(local, to, ref, msg, NULL) : fk__tray_send(ctx, to, ref, msg);
    if (FK_LIKELY(err == FK_OK)) return FK_OK;
    /* Not asked. Should somebody have ended it already, an answer comes, and that is all. */
    if (!fk__promise_cancel(local, promise->cell, ref.generation, &answer)) return FK_OK;
    fk__answer_destroy(&local->cache, answer);
    return err;
}

fk_err fk_ask(fk_ctx *ctx, fk_ref to, fk_out msg, uint64_t id, fk_time timeout)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_node *answer;
    fk_err err = fk__answer_create(local, ctx->cell, fk_self(ctx), id, &answer);
    if (FK_UNLIKELY(err != FK_OK)) return ask_refused(local, to, fk_self(ctx), msg, err);
    return ask_send(ctx, to, msg, answer, timeout);
}

fk_err fk_ask_pipe(fk_ctx *ctx, fk_ref to, fk_out msg, fk_ref answer_to, uint64_t id,
                   fk_time timeout)
{
    fk_local *local = &fk__ctx_worker(ctx)->local;
    fk_node *answer;
    if (answer_to.system != local->system) answer_to = FK_REF_NONE; /* as a sender's */
    fk_err err = fk__answer_create(local, NULL, answer_to, id, &answer);
    if (err != FK_OK) return ask_refused(local, to, fk_self(ctx), msg, err);
    return ask_send(ctx, to, msg, answer, timeout);
}

/* ---- threads ------------------------------------------------------------------------------------- */

fk_err fk__question_check(const fk_system *sys)
{
    if (sys->mem.port.wait == NULL) return FK_E_UNSUPPORTED;
    bool is_inside = sys->host.is_inside != NULL && sys->host.is_inside(sys->host.ctx);
    return is_inside ? FK_E_STATE : FK_OK;
}

/* Relaxed: one too many is looked for in vain. */
static void question_uncount(fk_system *sys)
{
    fk__half_add(&sys->questions, (uint32_t)-1, FK_RELAXED);
}

fk_err fk__question_open(fk_system *sys, fk_ref asked, fk_ref *out)
{
    fk_promise *promise;
    fk_half *root = &sys->guardians[FK_GUARDIAN_ROOT].alive;
    /* All seq_cst, as in fk__promises_give_up: either the end of the system finds the question, or we
     * find the end, and need not wait for nobody. */
    fk__half_add(&sys->questions, 1, FK_SEQ_CST);
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__promise_open(local, NULL, asked, &promise);
    if (err == FK_OK) *out = fk__promise_ref(promise);
    fk__local_leave(local);
    if (err != FK_OK) {
        question_uncount(sys);
        return err;
    }
    uint32_t generation = out->generation;
    fk__half_cas(&promise->cell->generation, &generation, generation, FK_SEQ_CST);
    if (fk__half_load(root, FK_SEQ_CST) != 0) return FK_OK;
    fk__question_drop(sys, *out);
    return FK_E_DEAD;
}

/* False: somebody else has ended it, or is about to say so. */
static bool question_cancel(fk_system *sys, fk_cell *cell, uint32_t generation)
{
    fk_node *none;
    fk_local *local = fk__local_enter(sys);
    bool is_ours = fk__promise_cancel(local, cell, generation, &none);
    if (is_ours) fk__promise_put(local, cell->state);
    if (is_ours) question_uncount(sys);
    fk__local_leave(local);
    return is_ours;
}

/* Moves the answer to where the caller wants it; then there is nothing left to drop. */
static fk_err into_move(fk_local *local, fk_into into, fk_node *reply)
{
    fk_msg msg;
    fk__node_view(reply, local->system, &msg);
    if (into.type == NULL) return FK_OK;
    if (into.type != msg.type) return FK_E_TYPE;
    if (into.type == &fk_type_text || into.type == &fk_type_bytes) {
        const fk_buf *buf = into.data;
        if (msg.len >= buf->size) return FK_E_LIMIT;
        if (msg.len != 0) memcpy(buf->ptr, msg.data, msg.len);
        buf->ptr[msg.len] = '\0';
        return FK_OK;
    }
    if (msg.len != into.type->size) return FK_E_TYPE;
    return fk__node_move(&local->cache, reply, into.data) ? FK_OK : FK_E_TYPE;
}

static fk_err question_collect(fk_system *sys, fk_promise *promise, fk_ref question, fk_into into,
                               fk_err err)
{
    fk_local *local = fk__local_enter(sys);
    fk_node *reply = promise->answer;
    fk__promise_put(local, promise);
    question_uncount(sys);
    if (reply != NULL) {
        if (err == FK_OK) {
            err = into_move(local, into, reply);
            if (err != FK_OK) fk__dead_node(local, FK_REASON_UNHANDLED, question, reply);
        }
        fk__node_drop_contents(&local->cache, reply);
        fk__node_free(&local->cache, reply);
    }
    fk__local_leave(local);
    return err;
}

fk_err fk__question_await(fk_system *sys, fk_ref question, fk_into into, fk_time timeout)
{
    const fk_port *port = &sys->mem.port;
    fk_cell *cell = fk__slots_at(&sys->slots, question.slot);
    fk_promise *promise = cell->state;
    fk_time deadline = fk__time_add(fk__system_now(sys), timeout);
    bool is_late = false;
    uint32_t answered;
    /* Acquire pairs with promise_tell_thread. */
    while ((answered = fk__half_load(&promise->answered, FK_ACQUIRE)) == 0) {
        fk_time left = FK_NEVER;
        if (deadline != FK_NEVER && !is_late) left = deadline - fk__system_now(sys);
        if (left <= 0) {
            if (question_cancel(sys, cell, question.generation)) return FK_E_TIMEOUT;
            is_late = true; /* the answer is on its way, and takes no time to speak of */
            continue;
        }
        port->wait(port->ctx, (uint32_t *)(void *)&promise->answered, 0, left);
    }
    return question_collect(sys, promise, question, into, (fk_err)(answered - 1));
}

void fk__question_drop(fk_system *sys, fk_ref question)
{
    fk_err ignored = fk__question_await(sys, question, FK_INTO_NOTHING, 0);
    (void)ignored;
}

static fk_err into_check(fk_into into)
{
    if (into.type == &fk_type_clash) return FK_E_INVALID;
    return into.type != NULL && into.data == NULL ? FK_E_INVALID : FK_OK;
}

fk_err fk_ask_wait(fk_system *sys, fk_ref to, fk_out msg, fk_into into, fk_time timeout)
{
    fk_ref question = FK_REF_NONE;
    fk_err err = into_check(into);
    if (err == FK_OK) err = fk__question_check(sys);
    if (err == FK_OK && timeout <= 0) err = FK_E_TIMEOUT;
    if (err == FK_OK && !fk_is_alive(sys, to)) {
        (void)fk_send(sys, to, msg); /* a dead letter */
        return FK_E_DEAD;
    }
    if (err == FK_OK) err = fk__question_open(sys, to, &question);
    if (err != FK_OK) {
        fk_local *local = fk__local_enter(sys);
        bool lacks = err == FK_E_NOMEM || err == FK_E_LIMIT;
        if (lacks)
            fk__dead_out(local, FK_REASON_NO_MEMORY, to, FK_REF_NONE, msg);
        else
            fk__out_drop(&local->cache, msg);
        fk__local_leave(local);
        return err;
    }
    err = fk__send_question(sys, to, question, msg);
    if (err == FK_OK) return fk__question_await(sys, question, into, timeout);
    fk__question_drop(sys, question);
    return err;
}

fk_into fk_into_of(const fk_type *type, void *data)
{
    return (fk_into){ type, data };
}

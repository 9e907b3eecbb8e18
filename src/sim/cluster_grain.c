/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Activations: a counter each, whose turns are admitted, run, kept back, stored and let out as the
 * actor of a real grain does it. A turn takes time; a store more.
 */

#include "sim/cluster.h"

#include "sim/sometimes.h"

#include <string.h>

static fk_csim *const w = &fk__csim;

static void pump(fk_csim_node *n, fk_csim_act *act);

fk_csim_act *fk__csim_act_find(fk_csim_node *n, uint64_t pid)
{
    fk_csim_act *act = n->acts;
    while (act != NULL && act->pid != pid) act = act->next;
    return act;
}

static void put(fk_csim_call ***end, fk_csim_call *call)
{
    call->after = NULL;
    **end = call;
    *end = &call->after;
}

static fk_csim_call *take(fk_csim_call **first, fk_csim_call ***end)
{
    fk_csim_call *call = *first;
    if (call == NULL) return NULL;
    *first = call->after;
    if (*first == NULL) *end = first;
    return call;
}

static void pump_later(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    fk_csim_act *act = fk__csim_act_find(n, number);
    if (act != NULL) pump(n, act);
}

static void wake(fk_csim_node *n, const fk_csim_act *act)
{
    fk__csim_node_at(n, 0, pump_later, n, act->pid);
}

/* ---- beginning and end ------------------------------------------------------------------------ */

fk_csim_act *fk__csim_act_make(fk_csim_node *n, const fk_csim_op *op)
{
    for (const fk_csim_act *other = n->acts; other != NULL; other = other->next) {
        if (other->key == op->key) {
            fk__csim_fail("I4", "n%u starts g%u while it is there", (unsigned)n->index,
                          (unsigned)op->key);
        }
    }
    bool is_durable = w->key_kind[op->key] == 0;
    fk_str none = { NULL, 0 }, dedup = none, snapshot = none;
    fk_csim_act *act = fk__csim_new(sizeof(*act));
    if (op->record != NULL) {
        dedup = op->record->dedup;
        snapshot = (fk_str){ (const char *)op->record->bytes, sizeof(op->record->bytes) };
        act->total = op->record->total;
    }
    fk_fence fence = { op->epoch, fk__csim_id(n->index), op->incarnation };
    const fk_activation_start start = { is_durable, fence, op->version, dedup, snapshot };
    fk_err err = fk__activation_init(&act->core, &n->mem, &start);
    if (err != FK_OK) return NULL;
    act->pid = ++n->pid_last;
    act->key = op->key;
    act->mail_end = &act->mail;
    act->kept_end = &act->kept;
    if (!is_durable) act->ran = fk__csim_new(FK_CSIM_OPS / 8);
    act->next = n->acts;
    n->acts = act;
    return act;
}

static void remove_act(fk_csim_node *n, fk_csim_act *act)
{
    fk_csim_act **at = &n->acts;
    while (*at != act) at = &(*at)->next;
    *at = act->next;
    fk__activation_fini(&act->core);
    fk__cfact(FK_CFACT_ACT_END, n->index, act->key, act->pid);
}

/* What it has not answered goes back, whatever it was. */
static void give_all_back(fk_csim_node *n, fk_csim_act *act)
{
    fk_csim_call *call;
    while ((call = take(&act->kept, &act->kept_end)) != NULL) fk__csim_give_back(n, call);
    while ((call = take(&act->mail, &act->mail_end)) != NULL) fk__csim_give_back(n, call);
}

static void end(fk_csim_node *n, fk_csim_act *act)
{
    fk_grain_id id = w->key[act->key].id;
    remove_act(n, act);
    fk_placement_stopped(n->placement, id, act->pid, act->reason, fk__csim_local(n));
    give_all_back(n, act);
}

static void end_failed(fk_csim_node *n, fk_csim_act *act, const fk_csim_op *answer)
{
    fk_grain_id id = w->key[act->key].id;
    const fk_placement_result failed = { .kind = FK_COMMAND_STORE_ACTIVATION,
                                         .verdict = answer->verdict,
                                         .err = answer->err,
                                         .epoch = answer->epoch };
    fk_placement_store_failed(n->placement, id, act->pid, &failed, fk__csim_local(n));
    act->reason = "not stored";
    end(n, act);
}

void fk__csim_acts_end(fk_csim_node *n)
{
    while (n->acts != NULL) remove_act(n, n->acts);
}

void fk__csim_act_stop(fk_csim_node *n, fk_csim_act *act, const char *reason)
{
    fk__cfact(FK_CFACT_ACT_STOP, n->index, act->key, act->pid);
    act->is_stopping = true;
    act->reason = reason;
    pump(n, act);
}

static void quit_later(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    fk_csim_act *act = fk__csim_act_find(n, number);
    if (act != NULL && act->is_ready) fk__csim_act_stop(n, act, "by itself");
}

void fk__csim_acts_quit(fk_csim_node *n)
{
    for (const fk_csim_act *act = n->acts; act != NULL; act = act->next) {
        if (fk__csim_one_in(2)) fk__csim_node_at(n, 0, quit_later, n, act->pid);
    }
}

void fk__csim_act_deliver(fk_csim_node *n, fk_csim_act *act, fk_csim_call *call)
{
    put(&act->mail_end, call);
    wake(n, act);
}

/* ---- stores ----------------------------------------------------------------------------------- */

static void let_out(fk_csim_node *n, fk_csim_act *act)
{
    fk_csim_call *call;
    while ((call = take(&act->kept, &act->kept_end)) != NULL) {
        fk__book_replied(n, call->op, call->value, act->core.is_durable);
        fk__csim_reply(n, call, FK_OK, call->value);
    }
}

static void stored(fk_csim_node *n, const fk_csim_op *answer)
{
    fk_csim_act *act = fk__csim_act_find(n, answer->pid);
    if (act == NULL) return;
    if (answer->verdict == FK_VERDICT_UNKNOWN) {
        fk__cfact(FK_CFACT_UNKNOWN, n->index, act->key, answer->version);
    }
    if (!fk__activation_stored(&act->core, answer->verdict, answer->version)) {
        end_failed(n, act, answer);
        return;
    }
    let_out(n, act);
    pump(n, act);
}

static void send_store(void *arg, uint64_t number)
{
    (void)number;
    fk__csim_op_send(arg);
}

static void store(fk_csim_node *n, fk_csim_act *act)
{
    fk_time wall = w->now;
    size_t size = fk__activation_dedup_size(&act->core, wall);
    unsigned char *bytes = fk__csim_new(size + 1);
    fk__activation_store_begin(&act->core, bytes, size);
    fk_csim_op *op = fk__csim_op_make(n, FK_STORE_STORE, stored);
    fk_csim_record *record = fk__csim_new(sizeof(*record));
    record->total = act->total;
    record->dedup = (fk_str){ (const char *)bytes, size };
    op->record = record;
    op->key = act->key;
    op->pid = act->pid;
    op->epoch = act->core.fence.epoch;
    op->incarnation = act->core.fence.incarnation;
    op->version = act->core.version;
    op->request = act->core.last;
    op->batch_count = act->batch_count;
    op->batch = fk__csim_new((act->batch_count + 1) * sizeof(*op->batch));
    memcpy(op->batch, act->batch, act->batch_count * sizeof(*op->batch));
    act->batch_count = 0;
    fk__csim_worst_moment(n, w->plan.pause_store_in);
    fk__csim_node_at(n, 0, send_store, op, 0); /* not before it goes on */
}

/* ---- turns ------------------------------------------------------------------------------------ */

static bool is_single(const fk_csim_node *n, const fk_csim_call *call)
{
    return call->core.is_ours && call->core.request.origin == n->single_origin;
}

static void take_effect(fk_csim_act *act, const fk_csim_call *call)
{
    if (w->book.deed[call->op].is_read) return;
    act->total++;
    if (act->core.is_durable) {
        FK_ASSERT(act->batch_count <= FK_ACTIVATION_BATCH_MAX);
        act->batch[act->batch_count++] = (uint16_t)call->op;
        return;
    }
    uint16_t bit = (uint16_t)(1u << call->op % 16);
    if ((act->ran[call->op / 16] & bit) != 0) {
        fk__csim_fail("C4", "call %u was run twice by one activation", (unsigned)call->op);
    }
    act->ran[call->op / 16] |= bit;
}

static void turn_ends(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    fk_csim_act *act = fk__csim_act_find(n, number);
    FK_ASSERT(act != NULL);
    FK_ASSERT(act->is_busy);
    fk_csim_call *call = act->running;
    act->running = NULL;
    act->is_busy = false;
    fk__book_turn_end(n, act);
    take_effect(act, call);
    call->value = act->total;
    bool is_once = act->core.is_durable && is_single(n, call);
    fk_grain_turn turn = {
        .request = call->core.request,
        .low = call->core.low,
        .is_single = is_once,
        .has_answer = true,
        .answer = { (const char *)&call->value, sizeof(call->value) },
        .snapshot = { (const char *)&act->total, sizeof(act->total) },
        .wall = w->now,
    };
    fk_err err = fk__activation_ran(&act->core, &turn);
    put(&act->kept_end, call);
    if (err != FK_OK) {
        const fk_csim_op failed = { .verdict = FK_VERDICT_REFUSED, .err = err };
        end_failed(n, act, &failed);
        return;
    }
    if (fk__activation_is_clean(&act->core)) let_out(n, act);
    pump(n, act);
}

static void begin_turn(fk_csim_node *n, fk_csim_act *act, fk_csim_call *call)
{
    act->is_busy = true;
    act->running = call;
    fk__book_turn_begin(n, act, call->op);
    fk_placement_touch(n->placement, w->key[act->key].id, fk__csim_local(n));
    fk__csim_node_at(n, fk__csim_between(0, w->plan.turn_max), turn_ends, n, act->pid);
}

static void answer_again(fk_csim_node *n, const fk_csim_act *act, fk_csim_call *call, fk_str answer)
{
    FK_ASSERT(answer.len == sizeof(call->value));
    memcpy(&call->value, answer.ptr, sizeof(call->value));
    FK_SOMETIMES_HIT(CLUSTER_DEDUPLICATED);
    fk__book_replied(n, call->op, call->value, act->core.is_durable);
    fk__csim_reply(n, call, FK_OK, call->value);
}

/* True: there is nothing more to do now. */
static bool admit(fk_csim_node *n, fk_csim_act *act)
{
    fk_csim_call *call = act->mail;
    fk_str answer = { NULL, 0 };
    if (call->core.is_ours && call->core.request.origin == 0) {
        call->core.request = (fk_request){ n->single_origin, ++n->single_seq };
    }
    fk_admission admission =
        fk__activation_admit(&act->core, &call->core.request, &call->core.earlier,
                             fk__csim_local(n), fk_placement_lease_deadline(n->placement), &answer);
    if (admission == FK_ADMIT_OVERLOADED &&
        fk__activation_make_room(&act->core, &call->core.request, is_single(n, call),
                                 call->core.low, w->now)) {
        admission = FK_ADMIT_RUN;
    }
    if (admission == FK_ADMIT_WAIT) {
        if (!act->core.is_storing) store(n, act);
        return true;
    }
    take(&act->mail, &act->mail_end);
    switch (admission) {
    case FK_ADMIT_RUN: begin_turn(n, act, call); return true;
    case FK_ADMIT_ANSWER: answer_again(n, act, call, answer); break;
    case FK_ADMIT_DROP: FK_SOMETIMES_HIT(CLUSTER_STALE); break;
    case FK_ADMIT_OVERLOADED: fk__csim_reply(n, call, FK_E_OVERLOADED, 0); break;
    default: /* the coordinator will stop it, or has */
        wake(n, act);
        fk__csim_give_back(n, call);
        return true;
    }
    return false;
}

static bool may_store(const fk_csim_node *n)
{
    return fk__csim_local(n) < fk_placement_lease_deadline(n->placement);
}

/* Whatever comes next. */
static void pump(fk_csim_node *n, fk_csim_act *act)
{
    if (act->is_busy || act->core.is_storing || !act->is_ready) {
        if (act->is_stopping && !act->is_ready) end(n, act);
        return;
    }
    if (act->is_stopping) {
        if (act->core.is_dirty && may_store(n)) {
            store(n, act);
        } else {
            end(n, act);
        }
        return;
    }
    while (act->mail != NULL) {
        bool has_room = fk__activation_has_room(&act->core);
        if (act->core.is_dirty && (!has_room || fk__csim_one_in(4))) {
            store(n, act);
            return;
        }
        if (admit(n, act)) return;
    }
    if (act->core.is_dirty) store(n, act);
}

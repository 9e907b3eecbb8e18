/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a coordinator says is done here: commands become questions to the services or activations,
 * results go back with the request's id. Nothing here calls the coordinator while it speaks.
 */

#include "sim/cluster.h"

#include "sim/sometimes.h"

#include <string.h>

static fk_csim *const w = &fk__csim;

/* ---- results ---------------------------------------------------------------------------------- */

static bool is_snapshot_equal(const fk_placement_snapshot *a, const fk_placement_snapshot *b)
{
    return a->state == b->state && a->slots_held == b->slots_held &&
           a->activations == b->activations && a->flights == b->flights &&
           a->stopping == b->stopping && a->waiters == b->waiters &&
           a->commands_pending == b->commands_pending;
}

/* The lease may end with any call: the coordinator is told the time first, so that what the result
 * changes can be told from that. */
static void give_result(fk_csim_node *n, const fk_placement_result *result)
{
    fk_placement_snapshot before, after;
    fk_time now = fk__csim_local(n);
    fk_placement_tick(n->placement, now);
    fk_placement_snapshot_get(n->placement, &before);
    uint32_t commands = n->commands;
    fk_csim_record *record = result->record;
    if (record != NULL) {
        record->is_kept = true;
        w->book.kept_records++;
    }
    fk__cfact(FK_CFACT_RESULT, n->index, result->request_id, result->verdict);
    fk_err err = fk_placement_handle_result(n->placement, result, now);
    if (err == FK_OK) return;
    if (record != NULL) {
        record->is_kept = false;
        w->book.kept_records--;
    }
    if (err != FK_E_NOT_FOUND) {
        fk__csim_fail("I12", "a result is refused with %s", fk_err_name(err));
    }
    fk_placement_snapshot_get(n->placement, &after);
    if (!is_snapshot_equal(&before, &after) || n->commands != commands) {
        fk__csim_fail("I12", "a result of %s that nobody waits for changes something",
                      fk_command_name(result->kind));
    }
    FK_SOMETIMES_HIT(CLUSTER_UNWANTED);
}

static void transferred_arrives(void *arg, uint64_t number)
{
    (void)number;
    static const char *const KINDS[FK_CSIM_KINDS] = { "account", "cache" };
    const fk_csim_notice *notice = arg;
    fk_csim_node *n = &w->node[notice->authority];
    fk_placement_transferred(n->placement, fk_str_of(KINDS[notice->kind]), notice->incarnation,
                             notice->claims, notice->count, fk__csim_local(n));
}

static void tell_transferred(const fk_csim_node *n, const fk_csim_op *op)
{
    fk_csim_notice *notice = fk__csim_new(sizeof(*notice));
    notice->kind = op->kind;
    notice->authority = op->to;
    notice->incarnation = op->to_incarnation;
    notice->claims = fk__csim_new((op->claim_count + 1) * sizeof(fk_slot_claim));
    for (uint32_t i = 0; i < op->claim_count; i++) {
        if (op->claims[i].epoch != 0) notice->claims[notice->count++] = op->claims[i];
    }
    if (notice->count != 0) fk__csim_send(n->index, op->to, transferred_arrives, notice);
}

/* The holder may not know that it is. */
static void tell_holders(const fk_csim_node *n, const fk_csim_op *op)
{
    for (uint32_t i = 0; i < op->claim_count; i++) {
        const fk_slot_claim *claim = &op->claims[i];
        if (claim->epoch != 0 || claim->holder.len == 0) continue;
        fk_csim_notice *notice = fk__csim_new(sizeof(*notice));
        notice->kind = op->kind;
        notice->authority = fk__csim_index(claim->holder);
        notice->incarnation = claim->holder_incarnation;
        notice->claims = fk__csim_new(sizeof(fk_slot_claim));
        notice->claims[0].slot = claim->slot;
        notice->count = 1;
        if (notice->authority != n->index) {
            fk__csim_send(n->index, notice->authority, transferred_arrives, notice);
        }
    }
}

static void command_done(fk_csim_node *n, const fk_csim_op *op)
{
    fk_placement_result result = {
        .kind = op->command,
        .request_id = op->request_id,
        .verdict = op->verdict,
        .err = op->err,
        .record = op->verb == FK_STORE_LOAD && op->verdict == FK_VERDICT_OK ? op->record : NULL,
        .version = op->version,
        .epoch = op->epoch,
        .pid = op->pid,
        .slots = op->claims,
        .slot_count = op->claim_count,
    };
    if (result.record != NULL && op->record->is_kept) { /* the same answer again */
        fk_csim_record *copy = fk__csim_new(sizeof(*copy));
        *copy = *op->record;
        copy->is_kept = copy->is_discarded = false;
        result.record = copy;
    }
    fk_csim_act *act = op->verb == FK_STORE_STORE ? fk__csim_act_find(n, op->pid) : NULL;
    if (act != NULL && op->verdict == FK_VERDICT_OK && !act->is_ready) {
        act->core.version = op->version;
        act->is_ready = true;
    }
    give_result(n, &result);
    if (op->command == FK_COMMAND_TRANSFER_SLOT && op->verdict == FK_VERDICT_OK) {
        tell_transferred(n, op);
    }
    if (op->command == FK_COMMAND_TRY_ACQUIRE && op->verdict == FK_VERDICT_OK) {
        tell_holders(n, op);
    }
    if (op->verb == FK_STORE_LOAD) fk__csim_worst_moment(n, w->plan.pause_load_in);
}

/* ---- commands --------------------------------------------------------------------------------- */

static uint8_t kind_of(fk_str name)
{
    return name.len == 5 ? 1 : 0; /* "cache", "account" */
}

static fk_csim_op *op_of(fk_csim_node *n, fk_store_verb verb, const fk_placement_command *c)
{
    fk_csim_op *op = fk__csim_op_make(n, verb, command_done);
    op->is_command = true;
    op->command = c->kind;
    op->request_id = c->request_id;
    op->epoch = c->fence.epoch;
    if (c->fence.incarnation != 0) op->incarnation = c->fence.incarnation;
    op->version = c->version;
    op->pid = c->pid;
    if (c->key.key.len != 0) op->key = fk__csim_key_index(c->key.id);
    op->record = c->record;
    if (c->slot_count != 0) {
        op->kind = kind_of(c->slot_kind);
        op->claims = fk__csim_new(c->slot_count * sizeof(fk_slot_claim));
        memcpy(op->claims, c->slots, c->slot_count * sizeof(fk_slot_claim));
        op->claim_count = c->slot_count;
    }
    if (c->to.len != 0) op->to = fk__csim_index(c->to);
    op->to_incarnation = c->to_incarnation;
    return op;
}

static void ensured(void *arg, uint64_t number)
{
    const fk_csim_op *op = arg;
    fk_csim_node *n = &w->node[op->node];
    fk_placement_result result = {
        .kind = FK_COMMAND_ENSURE_ACTIVATION,
        .request_id = op->request_id,
        .verdict = op->verdict,
        .err = op->err,
        .pid = number,
    };
    fk_csim_act *act = fk__csim_act_find(n, number);
    if (act != NULL && !act->core.is_durable) act->is_ready = true;
    give_result(n, &result);
}

static void ensure(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_op *op = arg;
    fk_csim_node *n = &w->node[op->node];
    if (op->is_done) return; /* it was stopped before it began */
    fk_time delay = fk__csim_between(0, FK_MILLIS(2));
    if (!w->is_healed && fk__csim_one_in(w->plan.busy_in)) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_ACTIVATION;
        FK_SOMETIMES_HIT(CLUSTER_NOT_STARTED);
        fk__csim_node_at(n, delay, ensured, op, 0);
        return;
    }
    const fk_csim_act *act = fk__csim_act_make(n, op);
    if (act == NULL) {
        op->verdict = FK_VERDICT_REFUSED;
        op->err = FK_E_NOMEM;
        fk__csim_node_at(n, delay, ensured, op, 0);
        return;
    }
    fk__csim_node_at(n, delay, ensured, op, act->pid);
    if (!w->is_healed && fk__csim_one_in(w->plan.twice_in)) {
        fk__csim_node_at(n, delay + FK_MILLIS(1), ensured, op, act->pid);
    }
}

static void stop(void *arg, uint64_t number)
{
    (void)number;
    const fk_csim_op *op = arg;
    fk_csim_node *n = &w->node[op->node];
    fk_csim_act *act = n->acts;
    while (act != NULL && act->key != op->key) act = act->next;
    if (act != NULL && (op->pid == 0 || act->pid == op->pid)) {
        fk__csim_act_stop(n, act, op->request_id != 0 ? "told to" : "");
        return;
    }
    if (op->pid != 0) return; /* it has ended by itself, and that was said */
    fk_placement_stopped(n->placement, w->key[op->key].id, 0, "not there", fk__csim_local(n));
}

/* What stop() releases must not go to somebody else before the last turn has ended. */
static void release(void *arg, uint64_t number)
{
    fk_csim_op *op = arg;
    fk_csim_node *n = &w->node[op->node];
    if (n->acts != NULL)
        fk__csim_node_at(n, FK_MILLIS(10), release, op, number);
    else
        fk__csim_op_send(op);
}

static void outcome_command(void *ctx, const fk_placement_command *c)
{
    static const fk_store_verb VERBS[FK_COMMAND_COUNT] = {
        [FK_COMMAND_TRY_ACQUIRE] = FK_STORE_ACQUIRE,
        [FK_COMMAND_LOAD_ACTIVATION] = FK_STORE_LOAD,
        [FK_COMMAND_STORE_ACTIVATION] = FK_STORE_STORE,
        [FK_COMMAND_RELEASE] = FK_STORE_RELEASE,
        [FK_COMMAND_RENEW_MEMBER] = FK_STORE_RENEW,
        [FK_COMMAND_TRANSFER_SLOT] = FK_STORE_TRANSFER,
    };
    fk_csim_node *n = ctx;
    fk_csim_op *op = op_of(n, VERBS[c->kind], c);
    n->commands++;
    fk__cfact_text(FK_CFACT_COMMAND, n->index, c->request_id, fk_command_name(c->kind));
    switch (c->kind) {
    case FK_COMMAND_ENSURE_ACTIVATION:
        fk__book_activated(n, op->key, op->epoch);
        fk__csim_node_at(n, 0, ensure, op, 0);
        break;
    case FK_COMMAND_STOP_ACTIVATION: fk__csim_node_at(n, 0, stop, op, 0); break;
    case FK_COMMAND_CANCEL_REQUEST: break;
    case FK_COMMAND_RELEASE:
        if (n->state == FK_CSIM_STOPPING)
            fk__csim_node_at(n, 0, release, op, 0);
        else
            fk__csim_op_send(op);
        break;
    case FK_COMMAND_REMOVE_ACTIVATION: fk__csim_fail("I12", "nobody has removed anything"); break;
    default: fk__csim_op_send(op); break;
    }
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void rejoin(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_node *n = arg;
    if (n->state == FK_CSIM_RUNNING) fk__csim_join(n);
}

static void outcome_event(void *ctx, const fk_placement_event *event)
{
    fk_csim_node *n = ctx;
    fk__book_event(n, event);
    if (event->kind == FK_PLACEMENT_LEASE_LOST) {
        FK_SOMETIMES_HIT(CLUSTER_LEASE_LOST);
        n->incarnation = 0;
        fk__csim_node_at(n, fk__csim_between(0, FK_MILLIS(300)), rejoin, n, 0);
    }
}

typedef struct verdict {
    fk_csim_node *node;
    fk_resolution resolution;
} verdict;

static void settled(void *arg, uint64_t number)
{
    const verdict *v = arg;
    if (v->node->state == FK_CSIM_ABSENT) return;
    fk__desk_settled(v->node->desk, number, &v->resolution, fk__csim_local(v->node));
}

static void outcome_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution)
{
    verdict *v = fk__csim_new(sizeof(*v));
    v->node = ctx;
    fk__book_settled(v->node, ticket);
    v->resolution = *resolution;
    if (resolution->authority.len != 0) {
        v->resolution.authority = fk__csim_id(fk__csim_index(resolution->authority));
    }
    fk__csim_node_at(v->node, 0, settled, v, ticket);
}

static void outcome_discard(void *ctx, void *given)
{
    (void)ctx;
    fk_csim_record *record = given;
    if (record->is_discarded) fk__csim_fail("I18", "a record is discarded twice");
    record->is_discarded = true;
    if (record->is_kept) w->book.kept_records--;
}

fk_placement_outcome fk__csim_outcome(fk_csim_node *n)
{
    return (fk_placement_outcome){ n, outcome_command, outcome_event, outcome_settled,
                                   outcome_discard };
}

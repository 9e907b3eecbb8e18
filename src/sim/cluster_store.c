/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a node asks the lock service and the rows: a message there, one back, and a timeout after
 * which nobody knows what has become of it. What is asked may arrive twice, and so may the answer.
 */

#include "sim/cluster.h"

#include "sim/sometimes.h"

#include <string.h>

static fk_csim *const w = &fk__csim;

fk_csim_op *fk__csim_op_make(fk_csim_node *n, fk_store_verb verb,
                             void (*done)(fk_csim_node *node, const fk_csim_op *answer))
{
    fk_csim_op *op = fk__csim_new(sizeof(*op));
    op->verb = verb;
    op->done = done;
    op->node = n->index;
    op->life = n->life;
    op->incarnation = n->incarnation;
    op->asked_at = fk__csim_local(n);
    return op;
}

static uint8_t op_end(const fk_csim_op *op)
{
    return op->verb >= FK_STORE_LOAD ? FK_CSIM_ROWS : FK_CSIM_LOCK;
}

static void give(fk_csim_op *asked, const fk_csim_op *answer)
{
    fk_csim_node *n = &w->node[asked->node];
    bool is_late = asked->is_done;
    asked->is_done = true;
    if (is_late && !asked->is_command) return;
    if (is_late) FK_SOMETIMES_HIT(CLUSTER_LATE_RESULT);
    asked->done(n, answer);
}

static void answered(void *arg, uint64_t number)
{
    (void)number;
    const fk_csim_op *answer = arg;
    fk_csim_op *asked = answer->asked;
    if (w->node[asked->node].life == asked->life) give(asked, answer);
}

static void give_up(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_op *asked = arg;
    if (asked->is_done) return;
    fk_csim_op *answer = fk__csim_new(sizeof(*answer));
    *answer = *asked;
    answer->asked = asked;
    answer->verdict = FK_VERDICT_UNKNOWN;
    answer->err = FK_E_TIMEOUT;
    for (uint32_t i = 0; i < answer->claim_count; i++) answer->claims[i].epoch = 0;
    FK_SOMETIMES_HIT(CLUSTER_OP_TIMEOUT);
    give(asked, answer);
}

static void served(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_op *asked = arg;
    fk_csim_op *answer = fk__csim_new(sizeof(*answer));
    *answer = *asked;
    answer->asked = asked;
    if (asked->claim_count != 0) {
        answer->claims = fk__csim_new(asked->claim_count * sizeof(fk_slot_claim));
        memcpy(answer->claims, asked->claims, asked->claim_count * sizeof(fk_slot_claim));
    }
    if (op_end(asked) == FK_CSIM_ROWS)
        fk__csim_rows_apply(answer);
    else
        fk__csim_lock_apply(answer);
    bool is_bad = !w->is_healed;
    if (is_bad && fk__csim_one_in(w->plan.lost_ack_in)) {
        FK_SOMETIMES_HIT(CLUSTER_LOST_ACK);
        return;
    }
    fk__csim_send(op_end(asked), asked->node, answered, answer);
    if (is_bad && fk__csim_one_in(w->plan.twice_in)) {
        FK_SOMETIMES_HIT(CLUSTER_TWICE);
        fk__csim_send(op_end(asked), asked->node, answered, answer);
    }
}

void fk__csim_op_send(fk_csim_op *op)
{
    fk_csim_node *n = &w->node[op->node];
    fk__csim_send(op->node, op_end(op), served, op);
    fk__csim_node_at(n, w->plan.op_timeout, give_up, op, 0);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls: clients that make them, the desk of each node, and the messages between desks. */

#include "sim/cluster.h"

#include "sim/sometimes.h"

static fk_csim *const w = &fk__csim;

static fk_csim_call *call_of(fk_call *call)
{
    return FK_CONTAINER(call, fk_csim_call, core);
}

static fk_csim_call *call_copy(const fk_csim_call *from)
{
    fk_csim_call *call = fk__csim_new(sizeof(*call));
    *call = (fk_csim_call){ .op = from->op, .home = from->home };
    call->core.key = from->core.key;
    call->core.request = from->core.request;
    call->core.earlier = from->core.earlier;
    call->core.low = from->core.low;
    call->core.deadline = from->core.deadline;
    call->core.hops = from->core.hops;
    return call;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void call_arrives(void *arg, uint64_t number)
{
    (void)number;
    const fk_csim_notice *notice = arg;
    const fk_csim_call *sent = (const void *)notice->claims;
    fk_csim_node *n = &w->node[notice->authority];
    fk_csim_call *call = call_copy(sent);
    call->core.deadline = fk__csim_local(n) + sent->core.deadline; /* what is left of it */
    if (n->state == FK_CSIM_STOPPING) return;
    fk__desk_submit(n->desk, &call->core, fk__csim_local(n));
}

static void answer_arrives(void *arg, uint64_t number)
{
    (void)number;
    fk_csim_call *answer = arg;
    fk_csim_node *n = &w->node[answer->home];
    if (n->desk == NULL) return;
    void *value = answer->err == FK_OK ? answer : NULL;
    fk__desk_answered(n->desk, answer->core.request, answer->err, value, fk__csim_local(n));
}

static void redirect_arrives(void *arg, uint64_t number)
{
    (void)number;
    const fk_csim_notice *notice = arg;
    fk_csim_node *n = &w->node[notice->kind];
    fk_placement_redirected(n->placement, &w->key[notice->key], fk__csim_id(notice->authority),
                            fk__csim_local(n));
}

static void send_answer(fk_csim_node *n, const fk_csim_call *call, fk_err err, uint64_t value)
{
    fk_csim_call *answer = call_copy(call);
    answer->err = err;
    answer->value = value;
    fk__csim_send(n->index, call->home, answer_arrives, answer);
}

/* ---- what the desk wants --------------------------------------------------------------------- */

static fk_err desk_resolve(void *ctx, fk_call *call, fk_time now, fk_resolution *out)
{
    fk_csim_node *n = ctx;
    uint32_t commands = n->commands;
    fk_err err = fk_placement_resolve(n->placement, &call->key, call->ticket, now, out);
    if (err == FK_E_PENDING) fk__book_pending(n, call->ticket);
    bool is_remote = err == FK_OK && out->locality == FK_LOCALITY_REMOTE;
    if (is_remote && n->commands != commands) {
        fk__csim_fail("I11", "n%u was told Remote, and a command was given", (unsigned)n->index);
    }
    if (is_remote && fk__csim_index(out->authority) == n->index) {
        fk__csim_fail("I11", "n%u is told that it is somebody else", (unsigned)n->index);
    }
    return err;
}

static fk_err desk_send(void *ctx, fk_call *core, const fk_resolution *to, fk_str *authority)
{
    fk_csim_node *n = ctx;
    fk_csim_call *call = call_of(core);
    uint8_t target = fk__csim_index(to->authority);
    *authority = fk__csim_id(target);
    if (!w->is_healed && fk__csim_one_in(w->plan.busy_in)) {
        FK_SOMETIMES_HIT(CLUSTER_BUSY);
        return fk__csim_one_in(2) ? FK_E_FULL : FK_E_UNRESOLVED;
    }
    fk_csim_call *sent = call_copy(call);
    sent->core.deadline -= fk__csim_local(n);
    fk_csim_notice *notice = fk__csim_new(sizeof(*notice));
    *notice = (fk_csim_notice){ .authority = target, .claims = (void *)sent };
    fk__cfact(FK_CFACT_ATTEMPT, n->index, call->op, target);
    fk__csim_send(n->index, target, call_arrives, notice);
    if (core->is_ours) {
        if (core->attempts > 0) FK_SOMETIMES_HIT(CLUSTER_RESENT);
        return FK_OK;
    }
    FK_SOMETIMES_HIT(CLUSTER_FORWARDED);
    fk_csim_notice *hint = fk__csim_new(sizeof(*hint));
    hint->kind = call->home;
    hint->authority = target;
    hint->key = fk__csim_key_index(core->key.id);
    fk__csim_send(n->index, call->home, redirect_arrives, hint);
    return FK_OK;
}

static fk_err desk_deliver(void *ctx, fk_call *core, const fk_resolution *at)
{
    fk_csim_node *n = ctx;
    fk_csim_call *call = call_of(core);
    fk_csim_act *act = fk__csim_act_find(n, at->pid);
    if (act == NULL) return FK_E_DEAD; /* it has just ended */
    bool is_numbered = core->is_ours && core->request.origin + 1 == n->single_origin;
    if (is_numbered) {
        fk_csim_call *copy = call_copy(call);
        copy->is_copy = true;
        copy->core.is_ours = true;
        call = copy;
    }
    fk__csim_act_deliver(n, act, call);
    return FK_OK;
}

static void desk_finish(void *ctx, fk_call *core, fk_err err, void *given)
{
    fk_csim_node *n = ctx;
    fk_csim_call *call = call_of(core);
    const fk_csim_call *answer = given;
    if (!core->is_ours) {
        send_answer(n, call, err != FK_OK ? err : FK_E_STOPPING, 0);
        return;
    }
    if (answer != NULL && answer->op != call->op) {
        fk__csim_fail("C2", "call %u has the answer of call %u", (unsigned)call->op,
                      (unsigned)answer->op);
    }
    fk__book_answered(n, call->op, err, answer != NULL ? answer->value : 0);
}

fk_desk_config fk__csim_desk_config(fk_csim_node *n)
{
    return (fk_desk_config){
        .ops = { n, desk_resolve, desk_send, desk_deliver, desk_finish },
        .origin = n->single_origin - 1,
        .resend_after = FK_MILLIS(500),
        .resend_max = FK_SECONDS(2),
    };
}

/* ---- what activations say --------------------------------------------------------------------- */

/* To whoever asked, wherever. */
void fk__csim_reply(fk_csim_node *n, fk_csim_call *call, fk_err err, uint64_t value)
{
    fk__cfact(FK_CFACT_REPLY, n->index, call->op, value);
    if (!call->core.is_ours) {
        send_answer(n, call, err, value);
        return;
    }
    if (!call->is_copy) {
        fk__book_answered(n, call->op, err, value);
        return;
    }
    call->err = err;
    call->value = value;
    fk__desk_answered(n->desk, call->core.request, err, err == FK_OK ? call : NULL,
                      fk__csim_local(n));
}

/* It was not run, or what it did is not known. */
void fk__csim_give_back(fk_csim_node *n, fk_csim_call *call)
{
    fk__cfact(FK_CFACT_BACK, n->index, call->op, fk__csim_key_index(call->core.key.id));
    FK_SOMETIMES_HIT(CLUSTER_GIVEN_BACK);
    if (call->is_copy) {
        fk__desk_answered(n->desk, call->core.request, FK_E_STOPPING, NULL, fk__csim_local(n));
        return;
    }
    if (call->core.returns < UINT16_MAX) call->core.returns++;
    call->core.cause = FK_OK;
    fk__desk_submit(n->desk, &call->core, fk__csim_local(n));
}

/* ---- clients ---------------------------------------------------------------------------------- */

uint32_t fk__csim_ask(fk_csim_node *n, uint32_t key, bool is_read, uint8_t client)
{
    uint32_t deed = fk__book_asked(n, key, is_read, client);
    fk_csim_call *call = fk__csim_new(sizeof(*call));
    call->op = deed;
    call->home = n->index;
    call->core.key = w->key[key];
    call->core.is_ours = true;
    call->core.deadline = fk__csim_local(n) + w->plan.call_timeout;
    fk__desk_submit(n->desk, &call->core, fk__csim_local(n));
    return deed;
}

static void client_step(void *arg, uint64_t number)
{
    fk_csim_node *n = arg;
    uint8_t client = (uint8_t)(number & 0xff);
    uint32_t before = (uint32_t)(number >> 8); /* one more than the call it waits for */
    if (w->is_closing || n->is_quiet || n->state == FK_CSIM_STOPPING) {
        fk__csim_node_at(n, FK_MILLIS(50), client_step, n, number);
        return;
    }
    if (before != 0 && !w->book.deed[before - 1].is_over) {
        fk__csim_node_at(n, fk__csim_between(0, FK_MILLIS(20)), client_step, n, number);
        return;
    }
    /* Room is left for the probes at the end. */
    if (w->book.deed_count + FK_CSIM_KEYS * FK_CSIM_NODES + 8 >= FK_CSIM_OPS) return;
    uint32_t key = fk__csim_below(w->plan.keys);
    if (fk__csim_one_in(2)) key = 0;
    uint32_t burst = fk__csim_one_in(w->plan.burst_in) ? 4 : 0;
    uint32_t deed = 0;
    for (uint32_t i = 0; i <= burst; i++) {
        deed = fk__csim_ask(n, key, fk__csim_one_in(w->plan.read_in), client);
    }
    uint64_t next = (uint64_t)(deed + 1) << 8 | client;
    fk__csim_node_at(n, fk__csim_between(0, w->plan.think_max), client_step, n, next);
}

void fk__csim_clients_begin(fk_csim_node *n)
{
    for (uint32_t i = 0; i < w->plan.clients; i++) {
        fk__csim_node_at(n, fk__csim_between(0, w->plan.think_max), client_step, n, i);
    }
}

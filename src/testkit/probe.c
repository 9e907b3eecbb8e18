/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Probes. A message is lent to receive and gone when that returns, so the probe takes it over: the
 * bytes are copied, what they own is marked as moved, of a payload it keeps a share. It is dropped
 * when the test takes the next one.
 */

#include "testkit/probe.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages ---------------------------------------------------------------------------- */

static fk_kept *keep(fk_ctx *ctx, const fk_msg *msg)
{
    /* What the runtime tells of its own accord has a node of another kind, which owns nothing. */
    fk_node *node = ctx->node != NULL && ctx->node->type == msg->type ? ctx->node : NULL;
    bool has_payload = node != NULL && (node->flags & FK_NODE_PAYLOAD) != 0;
    fk_kept *kept = fk__sim_alloc(sizeof(*kept) + (has_payload ? 0 : msg->len));
    kept->msg = *msg;
    kept->at = fk_now(ctx);
    if (has_payload) {
        fk__node_share(node);
        memcpy(&kept->payload, node->bytes, sizeof(kept->payload));
        return kept;
    }
    if (msg->len != 0) memcpy(kept->bytes, msg->data, msg->len);
    kept->msg.data = kept->bytes;
    if (node != NULL && msg->type->drop != NULL) {
        node->flags |= FK_NODE_MOVED;
        kept->has_drop = true;
    }
    return kept;
}

static void kept_free(fk_kept *kept)
{
    if (kept == NULL) return;
    if (kept->payload != NULL) fk_payload_put(kept->payload);
    if (kept->has_drop) kept->msg.type->drop(kept->bytes);
    free(kept);
}

static bool is_ignored(const fk_probe *probe, const fk_type *type)
{
    for (size_t i = 0; i < FK_PROBE_IGNORED_MAX; i++) {
        if (probe->ignored[i] == type) return true;
    }
    return false;
}

static fk_kept *pop(fk_probe *probe)
{
    fk_kept *kept = probe->first;
    if (kept == NULL) return NULL;
    probe->first = kept->next;
    if (probe->first == NULL) probe->last = NULL;
    probe->count--;
    return kept;
}

static void append(fk_probe *probe, fk_kept *kept)
{
    kept->next = NULL;
    if (probe->last != NULL)
        probe->last->next = kept;
    else
        probe->first = kept;
    probe->last = kept;
    probe->count++;
}

/* ---- the actor --------------------------------------------------------------------------- */

typedef struct probe_order {
    fk_probe_act_fn act;
    fk_ref actor;
} probe_order;

static const fk_type ORDER = { "probe_order", sizeof(probe_order), _Alignof(probe_order), NULL };

static fk_err probe_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_probe *probe = state;
    if (msg->type == &ORDER) {
        const probe_order *order = msg->data;
        probe->act_result = order->act(ctx, order->actor);
        probe->has_acted = true;
        return FK_OK;
    }
    if (!is_ignored(probe, msg->type)) append(probe, keep(ctx, msg));
    return FK_OK;
}

static bool has_acted(void *arg)
{
    const fk_probe *probe = arg;
    return probe->has_acted;
}

fk_err fk__probe_do(fk_probe *probe, fk_probe_act_fn act, fk_ref actor)
{
    fk_sim *sim = probe->sim;
    const probe_order order = { act, actor };
    probe->has_acted = false;
    FK_TRY(fk_send(sim->sys, probe->ref, (fk_out){ &ORDER, &order }));
    if (!fk__sim_drive(sim, has_acted, probe, sim->now)) return FK_E_TIMEOUT;
    return probe->act_result;
}

fk_err fk_probe_create(fk_sim *sim, const char *name, fk_probe **out)
{
    if (sim == NULL || out == NULL) return FK_E_INVALID;
    fk_probe *probe = fk__sim_alloc(sizeof(*probe));
    const fk_props props = { .receive = probe_receive, .state = probe };
    fk_str text = name != NULL ? fk_str_of(name) : FK_STR("");
    fk_err err = fk_spawn(sim->sys, text, &props, &probe->ref);
    if (err != FK_OK) {
        free(probe);
        return err;
    }
    probe->sim = sim;
    probe->next = sim->probes;
    sim->probes = probe;
    *out = probe;
    return FK_OK;
}

void fk__probes_release(fk_sim *sim)
{
    for (fk_probe *probe = sim->probes; probe != NULL; probe = probe->next) {
        kept_free(probe->lent);
        probe->lent = NULL;
        fk_kept *kept;
        while ((kept = pop(probe)) != NULL) kept_free(kept);
    }
}

void fk__probes_destroy(fk_sim *sim)
{
    while (sim->probes != NULL) {
        fk_probe *probe = sim->probes;
        sim->probes = probe->next;
        free(probe);
    }
}

/* ---- for the test ------------------------------------------------------------------------ */

static bool has_mail(void *arg)
{
    const fk_probe *probe = arg;
    return probe->first != NULL;
}

bool fk__probe_await(fk_probe *probe, fk_time deadline)
{
    return !probe->sim->is_inside && fk__sim_drive(probe->sim, has_mail, probe, deadline);
}

const fk_kept *fk__probe_take(fk_probe *probe, fk_time deadline)
{
    kept_free(probe->lent);
    probe->lent = NULL;
    if (fk__probe_await(probe, deadline)) probe->lent = pop(probe);
    return probe->lent;
}

fk_ref fk_probe_ref(const fk_probe *probe)
{
    return probe->ref;
}

size_t fk_probe_count(const fk_probe *probe)
{
    return probe->count;
}

fk_err fk_probe_ignore(fk_probe *probe, const fk_type *type)
{
    size_t place = 0;
    while (place < FK_PROBE_IGNORED_MAX && probe->ignored[place] != NULL) place++;
    if (place == FK_PROBE_IGNORED_MAX) return FK_E_LIMIT;
    probe->ignored[place] = type;
    for (size_t left = probe->count; left > 0; left--) {
        fk_kept *kept = pop(probe);
        if (kept->msg.type == type)
            kept_free(kept);
        else
            append(probe, kept);
    }
    return FK_OK;
}

fk_err fk_probe_send(fk_probe *probe, fk_ref to, fk_out msg)
{
    return fk_send_from(probe->sim->sys, to, probe->ref, msg);
}

fk_err fk_probe_reply(fk_probe *probe, fk_out msg)
{
    fk_ref to = probe->lent != NULL ? probe->lent->msg.sender : FK_REF_NONE;
    return fk_probe_send(probe, to, msg);
}

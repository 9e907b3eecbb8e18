/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/crew.h"

#include <stdlib.h>
#include <string.h>

static fk_err worker_start(fk_ctx *ctx, void *state)
{
    crew_worker *w = state;
    CHECK(w->crew->started < CREW_MAX);
    w->index = w->crew->started++;
    w->crew->ref[w->index] = fk_self(ctx);
    return FK_OK;
}

static void worker_stop(fk_ctx *ctx, void *state)
{
    const crew_worker *w = state;
    (void)ctx;
    w->crew->stopped++;
}

static void worker_before_restart(fk_ctx *ctx, void *state, fk_err why)
{
    const crew_worker *w = state;
    (void)ctx;
    (void)why;
    w->crew->restarted++;
}

/* Its number is its old one. */
static fk_err worker_after_restart(fk_ctx *ctx, void *state, fk_err why)
{
    crew_worker *w = state;
    (void)why;
    while (!fk_ref_equal(w->crew->ref[w->index], fk_self(ctx))) w->index++;
    return FK_OK;
}

static fk_err worker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const crew_worker *w = state;
    crew *c = w->crew;
    const num *value = FK_AS(num, msg);
    const rig_call *call = FK_AS(rig_call, msg);
    c->got[w->index]++;
    c->all++;
    c->sender = msg->sender;
    c->type = msg->type;
    c->len = msg->len;
    if (call != NULL) return call->fn(ctx, call->arg);
    if (value != NULL) c->last[w->index] = value->n;
    if (value != NULL && value->n == CREW_FAIL) return fk_fail(ctx, FK_E_FAILED, "as asked");
    if (msg->type == &fk_type_text && msg->len == 5 && memcmp(msg->data, "leave", 5) == 0) {
        fk_stop_self(ctx);
    }
    return FK_OK;
}

fk_props crew_props(crew *c, crew_worker *init)
{
    *init = (crew_worker){ c, 0 };
    return (fk_props){ .receive = worker_receive,
                       .start = worker_start,
                       .stop = worker_stop,
                       .before_restart = worker_before_restart,
                       .after_restart = worker_after_restart,
                       .state_size = sizeof(*init),
                       .init = init };
}

fk_ref crew_spawn(rig *r, crew *c)
{
    crew_worker init;
    fk_props props = crew_props(c, &init);
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_spawn(r->sys, FK_STR(""), &props, &ref));
    rig_run(r);
    return ref;
}

size_t crew_index(const crew *c, fk_ref ref)
{
    size_t i = 0;
    while (i < c->started && !fk_ref_equal(c->ref[i], ref)) i++;
    CHECK(i < c->started);
    return i;
}

void crew_send(rig *r, fk_ref to, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) CHECK_OK(fk_send(r->sys, to, FK_MSG(num, first + i)));
    rig_run(r);
}

size_t crew_list(rig *r, fk_ref router, fk_ref out[CREW_MAX])
{
    probe *p = calloc(1, sizeof(*p));
    CHECK(p != NULL);
    fk_ref self = probe_spawn(r, p);
    CHECK_OK(fk_send_from(r->sys, router, self, FK_ROUTEES));
    rig_run(r);
    CHECK_U64(p->count, 1);
    CHECK(p->type == &fk_type_fk_routees);
    CHECK(fk_ref_equal(p->sender, router));
    size_t count = p->len / sizeof(fk_ref), len = p->len;
    CHECK(count <= CREW_MAX && len <= sizeof(p->bytes));
    memcpy(out, p->bytes, len);
    CHECK_OK(fk_stop(r->sys, self));
    rig_run(r);
    free(p);
    return count;
}

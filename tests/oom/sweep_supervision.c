/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Failing actors, and memory that fails meanwhile: what is decided must happen all the same. */

#include "oom/sweep.h"

enum { WARDS = 20 };

static fk_err ward_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const num *n = FK_AS(num, msg);
    (void)state;
    return n != NULL && n->n == 0 ? FK_OK : fk_fail(ctx, FK_E_FAILED, "a detail that is kept");
}

static fk_err call_spawn_wards(fk_ctx *ctx, void *arg)
{
    fk_ref *refs = arg;
    fk_props props = { .receive = ward_receive };
    for (int i = 0; i < WARDS; i++) {
        CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &refs[i]));
    }
    return FK_OK;
}

/* Children that each have a message they will fail by. */
static void prepare_wards(sweep *s, fk_strategy strategy)
{
    fk_ref refs[WARDS];
    fk_props props = { .receive = doer_receive, .strategy = strategy };
    CHECK_OK(fk_spawn(s->r.sys, FK_STR("target"), &props, &s->target));
    rig_do(&s->r, s->target, call_spawn_wards, refs);
    for (int i = 0; i < WARDS; i++) CHECK_OK(fk_send(s->r.sys, refs[i], FK_MSG(num, 1)));
}

static void prepare_impatient(sweep *s)
{
    prepare_wards(s, (fk_strategy){ .restarts = 3 });
}

static void prepare_patient(sweep *s)
{
    prepare_wards(s, (fk_strategy){ .restarts = FK_RESTARTS_UNLIMITED,
                                    .backoff_min = FK_MILLIS(3),
                                    .backoff_max = FK_MILLIS(20) });
}

static void pass_time(sweep *s)
{
    rig_pass(&s->r, FK_MILLIS(40));
    CHECK_U64(s->r.failures.count, WARDS);
    /* The parent ends with all of them, whether they wait or not. */
    CHECK_OK(fk_stop(s->r.sys, s->target));
    CHECK_OK(fk_stop(s->r.sys, s->doer)); /* says that failures were expected */
    rig_run(&s->r);
    CHECK(!fk_is_alive(s->r.sys, s->target));
}

const scenario SWEEP_SUPERVISION[] = {
    { "restart", prepare_impatient, pass_time, 0 },
    { "restart after a while", prepare_patient, pass_time, 0 },
    { NULL, NULL, NULL, 0 },
};

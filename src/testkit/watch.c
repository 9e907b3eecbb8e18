/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Probes that watch actors. */

#include <stdio.h>

#include "testkit/probe.h"

static fk_err watch(fk_ctx *ctx, fk_ref actor)
{
    return fk_watch(ctx, actor);
}

fk_err fk_probe_watch(fk_probe *probe, fk_ref actor)
{
    return fk__probe_do(probe, watch, actor);
}

bool fk_probe_expect_terminated(fk_probe *probe, fk_ref actor, fk_time within)
{
    const fk_type *type = &fk_type_fk_terminated;
    const fk_terminated *ended = fk_probe_expect_data(probe, type, sizeof(*ended), within);
    if (ended == NULL) return false;
    if (fk_ref_equal(ended->actor, actor)) return true;
    char expected[FK_SIM_TEXT_MAX], actual[FK_SIM_TEXT_MAX];
    char wanted[FK_SHOWN_ACTOR], other[FK_SHOWN_ACTOR];
    snprintf(expected, sizeof(expected), "fk_terminated of %s",
             fk__sim_show_actor(probe->sim, actor, wanted));
    snprintf(actual, sizeof(actual), "of %s", fk__sim_show_actor(probe->sim, ended->actor, other));
    return fk__sim_fail(probe->sim, expected, actual);
}

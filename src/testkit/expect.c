/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a test expects of a probe. */

#include <stdio.h>
#include <string.h>

#include "testkit/probe.h"

/* ---- how long ---------------------------------------------------------------------------- */

/* A wait that begins now; 0 means what the config or the window says. */
static fk_time wait_of(const fk_probe *probe, fk_time within)
{
    const fk_sim *sim = probe->sim;
    if (within != 0) return within;
    if (!probe->has_window) return sim->within;
    fk_time left = probe->window_began + probe->window_max - sim->now;
    return left > 0 ? left : 0;
}

void fk_probe_within(fk_probe *probe, fk_time min, fk_time max)
{
    probe->has_window = true;
    probe->window_began = probe->sim->now;
    probe->window_min = min;
    probe->window_max = max;
}

bool fk_probe_within_end(fk_probe *probe)
{
    fk_sim *sim = probe->sim;
    char expected[FK_SIM_TEXT_MAX], actual[FK_SIM_TEXT_MAX];
    char min[FK_SHOWN_TIME], max[FK_SHOWN_TIME], took[FK_SHOWN_TIME];
    fk_time end = fk__sim_tick_end(probe->window_began + probe->window_max);
    fk_time elapsed = sim->now - probe->window_began;
    probe->has_window = false;
    if (elapsed >= probe->window_min && sim->now <= end) return true;
    snprintf(expected, sizeof(expected), "this takes %s to %s s",
             fk__sim_show_time(probe->window_min, min), fk__sim_show_time(probe->window_max, max));
    snprintf(actual, sizeof(actual), "it took %s s", fk__sim_show_time(elapsed, took));
    return fk__sim_fail(sim, expected, actual);
}

/* ---- words ------------------------------------------------------------------------------- */

enum { TEXT_SHOWN = 60 };

/* "text "hello" from /user/cart at +0.000000" */
static void describe(fk_sim *sim, const fk_kept *kept, char *buf, size_t size)
{
    char who[FK_SHOWN_ACTOR], at[FK_SHOWN_TIME], text[TEXT_SHOWN + 4] = "";
    const fk_msg *msg = &kept->msg;
    int len = (int)(msg->len < TEXT_SHOWN ? msg->len : TEXT_SHOWN);
    if (msg->type == &fk_type_text)
        snprintf(text, sizeof(text), " \"%.*s\"", len, (const char *)msg->data);
    sim->is_reporting = true;
    snprintf(buf, size, "%s%s from %s at +%s", msg->type->name, text,
             fk__sim_show_actor(sim, msg->sender, who),
             fk__sim_show_time(kept->at - sim->began, at));
    sim->is_reporting = false;
}

static bool fail_with(fk_probe *probe, const char *what, fk_time waited, const fk_kept *kept)
{
    fk_sim *sim = probe->sim;
    char expected[2 * FK_SIM_TEXT_MAX], actual[2 * FK_SIM_TEXT_MAX] = "nothing came";
    char who[FK_SHOWN_ACTOR], time[FK_SHOWN_TIME];
    sim->is_reporting = true;
    snprintf(expected, sizeof(expected), "%s to %s within %s s", what,
             fk__sim_show_actor(sim, probe->ref, who), fk__sim_show_time(waited, time));
    sim->is_reporting = false;
    if (kept != NULL) describe(sim, kept, actual, sizeof(actual));
    return fk__sim_fail(sim, expected, actual);
}

fk_probe *fk_probe_at(fk_probe *probe, const char *file, int line)
{
    fk_sim_at(probe->sim, file, line);
    return probe;
}

/* ---- expectations ------------------------------------------------------------------------ */

static const fk_msg *passed(fk_probe *probe, const fk_kept *kept)
{
    probe->sim->file = NULL;
    return &kept->msg;
}

const fk_msg *fk_probe_expect_any(fk_probe *probe, fk_time within)
{
    fk_time wait = wait_of(probe, within);
    const fk_kept *kept = fk__probe_take(probe, fk__sim_deadline(probe->sim, wait));
    if (kept != NULL) return passed(probe, kept);
    fail_with(probe, "a message", wait, NULL);
    return NULL;
}

const fk_msg *fk_probe_expect(fk_probe *probe, const fk_type *type, fk_time within)
{
    fk_time wait = wait_of(probe, within);
    const fk_kept *kept = fk__probe_take(probe, fk__sim_deadline(probe->sim, wait));
    if (kept != NULL && kept->msg.type == type) return passed(probe, kept);
    fail_with(probe, type->name, wait, kept);
    return NULL;
}

const fk_msg *fk_probe_fish(fk_probe *probe, const fk_type *type, fk_time within)
{
    fk_time wait = wait_of(probe, within);
    fk_time deadline = fk__sim_deadline(probe->sim, wait);
    const fk_kept *kept;
    while ((kept = fk__probe_take(probe, deadline)) != NULL) {
        if (kept->msg.type == type) return passed(probe, kept);
    }
    fail_with(probe, type->name, wait, NULL);
    return NULL;
}

bool fk_probe_expect_nothing(fk_probe *probe, fk_time within)
{
    fk_time wait = wait_of(probe, within);
    if (!fk__probe_await(probe, fk__sim_deadline(probe->sim, wait))) {
        probe->sim->file = NULL;
        return true;
    }
    return fail_with(probe, "nothing", wait, probe->first);
}

const void *fk_probe_expect_data(fk_probe *probe, const fk_type *type, size_t size, fk_time within)
{
    const fk_msg *msg = fk_probe_expect(probe, type, within);
    return msg != NULL ? fk_msg_data_if(msg, type, size) : NULL;
}

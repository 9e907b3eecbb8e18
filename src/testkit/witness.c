/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the system tells of itself, put among the events of the simulation and passed on to the
 * callbacks of the test. A new kind of event needs a line here only if it should be shown otherwise
 * than by its name and its text.
 */

#include <stdio.h>
#include <string.h>

#include "testkit/sim.h"

static void copy_text(char *to, size_t size, fk_str from)
{
    snprintf(to, size, "%.*s", (int)from.len, from.len != 0 ? from.ptr : "");
}

static void witness_letter(void *user, const fk_dead_letter *letter)
{
    fk_sim *sim = user;
    fk_moment moment = {
        .kind = FK_MOMENT_LETTER, .actor = letter->to, .other = letter->sender, .type = letter->type
    };
    if (letter->path.len == 0)
        copy_text(moment.text, sizeof(moment.text), fk_str_of(fk_reason_name(letter->reason)));
    else
        snprintf(moment.text, sizeof(moment.text), "%s, %.*s", fk_reason_name(letter->reason),
                 (int)letter->path.len, letter->path.ptr);
    fk__sim_record(sim, &moment);
    if (sim->asked.on_dead_letter != NULL) sim->asked.on_dead_letter(sim->asked.user, letter);
}

static void witness_failure(void *user, const fk_failure *failure)
{
    fk_sim *sim = user;
    fk_moment moment = { .kind = FK_MOMENT_FAILURE,
                         .actor = failure->actor,
                         .type = failure->type };
    snprintf(moment.text, sizeof(moment.text), "%s%s%s", fk_err_name(failure->err),
             *failure->detail != '\0' ? ", " : "", failure->detail);
    fk__sim_record(sim, &moment);
    if (sim->failures++ == 0) {
        char text[FK_SHOWN_MOMENT];
        sim->is_reporting = true;
        copy_text(sim->failure_first, sizeof(sim->failure_first),
                  fk_str_of(fk__sim_show_moment(sim, &moment, text)));
        sim->is_reporting = false;
    }
    if ((unsigned)failure->err < FK_SIM_ERRORS) sim->failures_of[failure->err]++;
    if (sim->asked.on_failure != NULL) sim->asked.on_failure(sim->asked.user, failure);
}

/* Told by the two above already. */
static bool is_told(fk_event_kind kind)
{
    return kind == FK_EVENT_DEAD_LETTER || kind == FK_EVENT_UNHANDLED || kind == FK_EVENT_FAILED;
}

static const char *event_name(fk_event_kind kind)
{
    static const char *const NAMES[FK_EVENT_COUNT] = {
#define FK_EVENT_NAME(NAME, name, level, what) [FK_EVENT_##NAME] = name,
        FK_EVENTS(FK_EVENT_NAME)
#undef FK_EVENT_NAME
    };
    return (unsigned)kind < FK_EVENT_COUNT ? NAMES[kind] : "event";
}

static void put(char *text, size_t size, const char *more)
{
    size_t len = strlen(text);
    if (more == NULL || *more == '\0' || len + 2 >= size) return;
    text[len] = ' ';
    copy_text(text + len + 1, size - len - 1, fk_str_of(more));
}

static void witness_event(void *user, const fk_event *event)
{
    fk_sim *sim = user;
    fk_moment moment = { .kind = FK_MOMENT_EVENT, .actor = event->actor, .other = event->other };
    if (!is_told(event->kind)) {
        char text[FK_HISTORY_TEXT];
        copy_text(text, sizeof(text), event->text);
        copy_text(moment.text, sizeof(moment.text), fk_str_of(event_name(event->kind)));
        put(moment.text, sizeof(moment.text), text);
        put(moment.text, sizeof(moment.text), event->from);
        if (event->to != NULL) put(moment.text, sizeof(moment.text), "->");
        put(moment.text, sizeof(moment.text), event->to);
        put(moment.text, sizeof(moment.text), event->reason);
        fk__sim_record(sim, &moment);
    }
    if (sim->asked.on_event != NULL) sim->asked.on_event(sim->asked.user, event);
}

void fk__witness_attach(fk_sim *sim, fk_system_config *config)
{
    sim->asked = *config;
    config->user = sim;
    config->on_dead_letter = witness_letter;
    config->on_failure = witness_failure;
    config->on_event = witness_event;
}

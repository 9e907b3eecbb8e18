/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "testkit/history.h"

#include <stdio.h>
#include <string.h>

#include "fraktor/registry.h"
#include "testkit/sim.h"

/* ---- keeping ----------------------------------------------------------------------------- */

void fk__history_init(fk_history *history, uint32_t shown)
{
    memset(history, 0, sizeof(*history));
    history->hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    history->shown = shown == 0 ? FK_HISTORY_SHOWN : shown;
    if (history->shown > FK_HISTORY_MAX) history->shown = FK_HISTORY_MAX;
}

static void hash_bytes(fk_history *history, const void *data, size_t len)
{
    const unsigned char *at = data;
    while (len-- > 0) history->hash = (history->hash ^ *at++) * UINT64_C(0x100000001b3);
}

static void hash_ref(fk_history *history, fk_ref ref)
{
    hash_bytes(history, &ref.slot, sizeof(ref.slot));
    hash_bytes(history, &ref.generation, sizeof(ref.generation));
}

/* Not the bytes of messages: there may be addresses in them. */
static void hash_moment(fk_history *history, const fk_moment *moment)
{
    const char *type = moment->type != NULL ? moment->type->name : "";
    hash_bytes(history, &moment->kind, sizeof(moment->kind));
    hash_bytes(history, &moment->at, sizeof(moment->at));
    hash_ref(history, moment->actor);
    hash_ref(history, moment->other);
    hash_bytes(history, type, strlen(type) + 1);
    hash_bytes(history, moment->text, strlen(moment->text) + 1);
}

void fk__history_add(fk_history *history, const fk_moment *moment)
{
    hash_moment(history, moment);
    history->last[history->count++ % FK_HISTORY_MAX] = *moment;
}

const fk_moment *fk__history_next(const fk_history *history, uint32_t *index)
{
    uint64_t shown = history->count < history->shown ? history->count : history->shown;
    if (*index == shown) return NULL;
    return &history->last[(history->count - shown + (*index)++) % FK_HISTORY_MAX];
}

void fk__sim_record(fk_sim *sim, fk_moment *moment)
{
    moment->at = sim->now - sim->began;
    fk__history_add(&sim->history, moment);
}

/* ---- showing ----------------------------------------------------------------------------- */

const char *fk__sim_show_time(fk_time at, char buf[FK_SHOWN_TIME])
{
    snprintf(buf, FK_SHOWN_TIME, "%lld.%06lld", (long long)(at / FK_SECONDS(1)),
             (long long)(at % FK_SECONDS(1) / 1000));
    return buf;
}

/* "/user/cart": this system's address says nothing here, nor does the uid as a rule. */
const char *fk__sim_show_actor(fk_sim *sim, fk_ref actor, char buf[FK_SHOWN_ACTOR])
{
    char path[1024];
    if (fk_ref_is_none(actor)) {
        snprintf(buf, FK_SHOWN_ACTOR, "nobody");
        return buf;
    }
    size_t len = fk_path_of(sim->sys, actor, path, sizeof(path));
    const char *shown = path;
    if (len > sim->sys->address_len &&
        memcmp(path, sim->sys->address_text, sim->sys->address_len) == 0) {
        shown = path + sim->sys->address_len;
    }
    if (len == 0)
        snprintf(buf, FK_SHOWN_ACTOR, "%u:%u", actor.slot, actor.generation);
    else
        snprintf(buf, FK_SHOWN_ACTOR, "%.*s", (int)strcspn(shown, "#"), shown);
    return buf;
}

static const char *type_name(const fk_type *type)
{
    return type != NULL ? type->name : "";
}

const char *fk__sim_show_moment(fk_sim *sim, const fk_moment *moment, char buf[FK_SHOWN_MOMENT])
{
    char actor[FK_SHOWN_ACTOR], other[FK_SHOWN_ACTOR];
    const char *type = type_name(moment->type);
    fk__sim_show_actor(sim, moment->actor, actor);
    fk__sim_show_actor(sim, moment->other, other);
    switch (moment->kind) {
    case FK_MOMENT_MESSAGE:
        snprintf(buf, FK_SHOWN_MOMENT, "%s <- %s from %s", actor, type, other);
        break;
    case FK_MOMENT_LETTER:
        snprintf(buf, FK_SHOWN_MOMENT, "dead letter (%s): %s from %s to %s", moment->text, type,
                 other, actor);
        break;
    case FK_MOMENT_FAILURE:
        snprintf(buf, FK_SHOWN_MOMENT, "%s failed%s%s: %s", actor, *type != '\0' ? " on " : "",
                 type, moment->text);
        break;
    case FK_MOMENT_EVENT:
        snprintf(buf, FK_SHOWN_MOMENT, "%s%s%s", moment->text,
                 fk_ref_is_none(moment->actor) ? "" : ": ",
                 fk_ref_is_none(moment->actor) ? "" : actor);
        break;
    case FK_MOMENT_FAULT:
        snprintf(buf, FK_SHOWN_MOMENT, "fault: %s%s%s%s%s", moment->text, *type != '\0' ? " " : "",
                 type, fk_ref_is_none(moment->actor) ? "" : " of ",
                 fk_ref_is_none(moment->actor) ? "" : actor);
        break;
    case FK_MOMENT_NOTE: snprintf(buf, FK_SHOWN_MOMENT, "%s", moment->text); break;
    }
    return buf;
}

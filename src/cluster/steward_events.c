/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cluster/steward.h"

#include "core/event.h"
#include "core/path.h"

/* Which of the system's kinds of events it is. */
static fk_event_kind event_topic(fk_placement_event_kind kind)
{
    switch (kind) {
    case FK_PLACEMENT_CACHE_PUT:
    case FK_PLACEMENT_CACHE_DROPPED: return FK_EVENT_PID_CACHE;
    case FK_PLACEMENT_ACTIVATED:
    case FK_PLACEMENT_ACTIVATION_FAILED:
    case FK_PLACEMENT_PASSIVATED:
    case FK_PLACEMENT_STOPPED: return FK_EVENT_VIRTUAL_ACTOR;
    case FK_PLACEMENT_LEASE_LOST:
    case FK_PLACEMENT_STATE:
    case FK_PLACEMENT_TOPOLOGY: return FK_EVENT_CLUSTER;
    default: return FK_EVENT_PLACEMENT;
    }
}

static fk_level event_level(fk_placement_event_kind kind)
{
    switch (kind) {
    case FK_PLACEMENT_LEASE_LOST:
    case FK_PLACEMENT_STORE_FAILED:
    case FK_PLACEMENT_FENCED:
    case FK_PLACEMENT_STORE_CONFLICT:
    case FK_PLACEMENT_ACTIVATION_FAILED: return FK_LEVEL_WARN;
    case FK_PLACEMENT_STATE:
    case FK_PLACEMENT_TOPOLOGY: return FK_LEVEL_INFO;
    default: return FK_LEVEL_DEBUG;
    }
}

void fk__placement_publish(fk_system *sys, fk_local *local, const fk_placement_event *event)
{
    fk_event_kind kind = event_topic(event->kind);
    char room[FK_SHOWN_MAX * 2 + 16], shown[FK_SHOWN_MAX];
    if (!fk__event_wanted(sys, kind)) return;
    fk_text text = { room, sizeof(room), 0 };
    bool is_grain = event->key.key.len != 0;
    fk__text_put(&text, event->key.kind);
    if (is_grain) {
        fk__text_put(&text, FK_STR("/"));
        fk__text_put(&text, fk__text_shown(event->key.key, shown));
    } else if (event->key.kind.len != 0) {
        fk__text_put(&text, FK_STR("#"));
        fk__text_number(&text, event->slot);
    } else {
        fk__text_put(&text, event->authority);
    }
    fk_event published = { .kind = kind,
                           .level = event_level(event->kind),
                           .err = event->err,
                           .count = (uint32_t)(event->epoch != 0 ? event->epoch : event->version),
                           .text = { room, text.len < text.size ? text.len : text.size },
                           .from = "",
                           .to = fk_placement_event_name(event->kind),
                           .reason = event->reason,
                           .placement = event };
    fk__event(sys, local, &published);
}

void fk__steward_event(void *ctx, const fk_placement_event *event)
{
    fk_steward *c = ctx;
    fk_local *local = c->ctx != NULL && !c->is_stopped ? fk__steward_local(c) : NULL;
    if (event->kind == FK_PLACEMENT_PASSIVATED) c->stats.passivated++;
    if (event->kind == FK_PLACEMENT_LEASE_LOST) {
        c->is_member = false;
        c->rejoin_at = c->now;
    }
    fk__placement_publish(c->cluster->sys, local, event);
}

void fk__steward_say(fk_steward *c, fk_level level, const char *what, fk_err err, const char *why)
{
    fk_event event = { .kind = FK_EVENT_CLUSTER,
                       .level = level,
                       .text = fk__cluster_id(c->cluster),
                       .from = "",
                       .to = what,
                       .err = err,
                       .reason = why[0] != '\0' ? why
                                 : err != FK_OK ? fk_err_text(err)
                                                : "" };
    if (fk__event_wanted(c->cluster->sys, FK_EVENT_CLUSTER)) {
        fk__event(c->cluster->sys, fk__steward_local(c), &event);
    }
}

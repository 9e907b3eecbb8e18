/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fraktor/lookup.h"

#include "cluster/placement.h"

enum { LOOKUP_EVENTS = 4096 };

typedef struct lookup_event {
    struct lookup_event *next;
    fk_placement_event event; /* its texts follow */
    size_t size;
} lookup_event;

typedef struct lookup_queue {
    lookup_event *first, *last;
    uint32_t count;
} lookup_queue;

struct fk_lookup {
    fk_mem mem;
    fk_placement *placement;
    fk_placement_outcome outcome; /* the program's */
    lookup_queue events, cache_events;
    uint32_t events_max;
    uint64_t dropped;
};

/* ---- what happened ------------------------------------------------------------------------------ */

static lookup_event *lookup_take(lookup_queue *queue)
{
    lookup_event *kept = queue->first;
    if (kept == NULL) return NULL;
    queue->first = kept->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->count--;
    return kept;
}

static fk_str lookup_text(char **at, fk_str text)
{
    fk_str copy = { *at, text.len };
    if (text.len != 0) memcpy(*at, text.ptr, text.len);
    *at += text.len;
    return copy;
}

static void lookup_keep(fk_lookup *lookup, lookup_queue *queue, const fk_placement_event *event)
{
    size_t reason = fk_str_of(event->reason).len + 1;
    size_t size = sizeof(lookup_event) + event->key.kind.len + event->key.key.len +
                  event->authority.len + reason;
    void *memory;
    if (queue->count == lookup->events_max) {
        lookup_event *oldest = lookup_take(queue);
        fk__mem_free(&lookup->mem, oldest, oldest->size);
        lookup->dropped++;
    }
    if (fk__mem_alloc(&lookup->mem, size, FK_SITE("event of a lookup"), &memory) != FK_OK) {
        lookup->dropped++;
        return;
    }
    lookup_event *kept = memory;
    char *at = (char *)(kept + 1);
    *kept = (lookup_event){ .event = *event, .size = size };
    kept->event.key.kind = lookup_text(&at, event->key.kind);
    kept->event.key.key = lookup_text(&at, event->key.key);
    kept->event.authority = lookup_text(&at, event->authority);
    memcpy(at, event->reason, reason);
    kept->event.reason = at;
    if (queue->last != NULL) {
        queue->last->next = kept;
    } else {
        queue->first = kept;
    }
    queue->last = kept;
    queue->count++;
}

static void lookup_on_event(void *ctx, const fk_placement_event *event)
{
    fk_lookup *lookup = ctx;
    bool is_cache =
        event->kind == FK_PLACEMENT_CACHE_PUT || event->kind == FK_PLACEMENT_CACHE_DROPPED;
    lookup_keep(lookup, is_cache ? &lookup->cache_events : &lookup->events, event);
    if (lookup->outcome.event != NULL) lookup->outcome.event(lookup->outcome.ctx, event);
}

static size_t lookup_drain(fk_lookup *lookup, lookup_queue *queue, fk_lookup_event_fn fn, void *ctx)
{
    size_t count = 0;
    for (lookup_event *kept; (kept = lookup_take(queue)) != NULL; count++) {
        if (fn != NULL) fn(ctx, &kept->event);
        fk__mem_free(&lookup->mem, kept, kept->size);
    }
    return count;
}

size_t fk_lookup_drain_events(fk_lookup *lookup, fk_lookup_event_fn fn, void *ctx)
{
    return lookup_drain(lookup, &lookup->events, fn, ctx);
}

size_t fk_lookup_drain_cache_events(fk_lookup *lookup, fk_lookup_event_fn fn, void *ctx)
{
    return lookup_drain(lookup, &lookup->cache_events, fn, ctx);
}

uint64_t fk_lookup_events_dropped(const fk_lookup *lookup)
{
    return lookup->dropped;
}

/* ---- the rest of what leaves a coordinator goes on to the program ---------------------------------- */

static void lookup_on_command(void *ctx, const fk_placement_command *command)
{
    fk_lookup *lookup = ctx;
    lookup->outcome.command(lookup->outcome.ctx, command);
}

static void lookup_on_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution)
{
    fk_lookup *lookup = ctx;
    if (lookup->outcome.settled == NULL) return;
    lookup->outcome.settled(lookup->outcome.ctx, ticket, resolution);
}

static void lookup_on_discard(void *ctx, void *record)
{
    fk_lookup *lookup = ctx;
    if (lookup->outcome.discard != NULL) lookup->outcome.discard(lookup->outcome.ctx, record);
}

/* ---- life ----------------------------------------------------------------------------------------- */

fk_err fk_lookup_create(const fk_lookup_config *config, const fk_port *port, fk_lookup **out)
{
    fk_lookup_config c = { 0 };
    fk_mem mem;
    void *memory;
    size_t size = config->size != 0 && config->size < sizeof(c) ? config->size : sizeof(c);
    memcpy(&c, config, size);
    if (c.placement.outcome.command == NULL) return FK_E_INVALID;
    fk__mem_init(&mem, port, 0);
    FK_TRY(fk__mem_alloc(&mem, sizeof(fk_lookup), FK_SITE("lookup"), &memory));
    fk_lookup *lookup = memory;
    memset(lookup, 0, sizeof(*lookup));
    lookup->mem = mem;
    lookup->outcome = c.placement.outcome;
    lookup->events_max = c.events_max != 0 ? c.events_max : LOOKUP_EVENTS;
    c.placement.outcome = (fk_placement_outcome){ lookup, lookup_on_command, lookup_on_event,
                                                  lookup_on_settled, lookup_on_discard };
    fk_err err = fk_placement_create(&c.placement, port, &lookup->placement);
    if (err != FK_OK) {
        fk__mem_free(&mem, lookup, sizeof(*lookup));
        return err;
    }
    *out = lookup;
    return FK_OK;
}

void fk_lookup_destroy(fk_lookup *lookup)
{
    if (lookup == NULL) return;
    fk_placement_destroy(lookup->placement);
    fk_lookup_drain_events(lookup, NULL, NULL);
    fk_lookup_drain_cache_events(lookup, NULL, NULL);
    fk_mem mem = lookup->mem;
    fk__mem_free(&mem, lookup, sizeof(*lookup));
}

fk_placement *fk_lookup_placement(fk_lookup *lookup)
{
    return lookup->placement;
}

static fk_err lookup_add_kinds(fk_lookup *lookup, const fk_activated_kind *kinds, uint32_t count,
                               fk_time now)
{
    if (lookup->placement->role != FK_ROLE_NONE) return FK_E_IDENTITY_SETUP;
    for (uint32_t i = 0; i < count; i++) {
        FK_TRY(fk_placement_add_kind(lookup->placement, &kinds[i], now));
    }
    return FK_OK;
}

fk_err fk_lookup_setup_member(fk_lookup *lookup, const fk_activated_kind *kinds, uint32_t count,
                              fk_str id, uint64_t incarnation, fk_time now)
{
    FK_TRY(lookup_add_kinds(lookup, kinds, count, now));
    return fk_placement_start_member(lookup->placement, id, incarnation, now, now);
}

fk_err fk_lookup_setup_client(fk_lookup *lookup, const fk_activated_kind *kinds, uint32_t count,
                              fk_time now)
{
    FK_TRY(lookup_add_kinds(lookup, kinds, count, now));
    return fk_placement_start_client(lookup->placement, now);
}

/* ---- use ------------------------------------------------------------------------------------------ */

fk_err fk_lookup_resolve(fk_lookup *lookup, fk_str kind, fk_str key, uint64_t ticket, fk_time now,
                         fk_resolution *out)
{
    fk_grain_key grain;
    fk_err err = fk_grain_key_of(kind, key, &grain);
    if (err == FK_OK) return fk_placement_resolve(lookup->placement, &grain, ticket, now, out);
    *out = (fk_resolution){ .err = err, .observed_at = now, .reason = fk_err_text(err) };
    return err;
}

fk_err fk_lookup_update_topology(fk_lookup *lookup, const fk_view *view, fk_time now)
{
    return fk_placement_update_topology(lookup->placement, view, now);
}

fk_err fk_lookup_on_member_left(fk_lookup *lookup, fk_str authority, fk_time now)
{
    fk_err err = FK_E_NOT_FOUND;
    char id[FK_MEMBER_TEXT_MAX]; /* what is handed in may be lent from the very view that goes */
    if (authority.len > sizeof(id)) return FK_E_NOT_FOUND;
    if (authority.len != 0) memcpy(id, authority.ptr, authority.len);
    authority.ptr = id;
    fk_view view = fk_placement_view(lookup->placement);
    for (uint32_t i = view.count; i-- > 0;) {
        if (!fk__text_equal(view.members[i].id, authority)) continue;
        err = fk_placement_member_left(lookup->placement, authority, view.members[i].incarnation,
                                       now);
        if (err != FK_OK) return err;
        view = fk_placement_view(lookup->placement);
    }
    return err;
}

void fk_lookup_passivate_idle(fk_lookup *lookup, fk_time now, fk_time idle_ttl)
{
    fk__placement_passivate(lookup->placement, now, idle_ttl > 0 ? idle_ttl : 1);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_LOOKUP_H
#define FK_LOOKUP_H

/*
 * IdentityLookup: the way to a grain for programs that bring a driver of their own. A thin face over
 * a placement coordinator (fraktor/placement.h), which keeps what happened until it is fetched.
 * Commands still leave by the outcome of the config, and their results, time and ends of activations
 * are told to fk_lookup_placement(). Used by one thread at a time.
 */

#include "fraktor/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_lookup fk_lookup;

typedef struct fk_lookup_config {
    uint32_t size;                 /* sizeof(fk_lookup_config), or 0 */
    fk_placement_config placement; /* outcome.event may be NULL; it is told besides */
    uint32_t events_max;           /* kept until they are fetched, of each sort; 0: 4096 */
} fk_lookup_config;

FK_API FK_MUST_USE fk_err fk_lookup_create(const fk_lookup_config *config, const fk_port *port,
                                           fk_lookup **out);
FK_API void fk_lookup_destroy(fk_lookup *lookup);

/* The coordinator below. Lent until the lookup is destroyed. */
FK_API fk_placement *fk_lookup_placement(fk_lookup *lookup);

/* FK_E_IDENTITY_SETUP: it has a part already, or the kinds make no sense; FK_E_NOMEM. Kinds that were
 * added before an error stay. */
FK_API FK_MUST_USE fk_err fk_lookup_setup_member(fk_lookup *lookup, const fk_activated_kind *kinds,
                                                 uint32_t count, fk_str id, uint64_t incarnation,
                                                 fk_time now);
FK_API FK_MUST_USE fk_err fk_lookup_setup_client(fk_lookup *lookup, const fk_activated_kind *kinds,
                                                 uint32_t count, fk_time now);

/* As fk_placement_resolve(), for whoever has only the names. FK_E_KEY besides. */
FK_API FK_MUST_USE fk_err fk_lookup_resolve(fk_lookup *lookup, fk_str kind, fk_str key,
                                            uint64_t ticket, fk_time now, fk_resolution *out);
FK_API fk_err fk_lookup_update_topology(fk_lookup *lookup, const fk_view *view, fk_time now);
/* Every life of that member. FK_E_NOT_FOUND: it is not in the view. */
FK_API fk_err fk_lookup_on_member_left(fk_lookup *lookup, fk_str authority, fk_time now);
/* Stops those of any kind that were not used for idle_ttl. */
FK_API void fk_lookup_passivate_idle(fk_lookup *lookup, fk_time now, fk_time idle_ttl);

typedef void (*fk_lookup_event_fn)(void *ctx, const fk_placement_event *event);

/* Hands over what has happened since the last time, oldest first, and forgets it; returns how many.
 * Events of the PID cache have a queue of their own. The function must not call the lookup. */
FK_API size_t fk_lookup_drain_events(fk_lookup *lookup, fk_lookup_event_fn fn, void *ctx);
FK_API size_t fk_lookup_drain_cache_events(fk_lookup *lookup, fk_lookup_event_fn fn, void *ctx);
/* Events that nobody fetched in time, or that there was no memory for. */
FK_API uint64_t fk_lookup_events_dropped(const fk_lookup *lookup);

#ifdef __cplusplus
}
#endif
#endif /* FK_LOOKUP_H */

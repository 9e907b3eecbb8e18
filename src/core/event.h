/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_EVENT_H
#define FK_CORE_EVENT_H

#include "core/system.h"

static inline bool fk__event_wanted(const fk_system *sys, fk_event_kind kind)
{
    (void)kind;
    return sys->on_event != NULL;
}

/* Something in an actor's life. */
static inline void fk__publish_life(fk_local *local, fk_event_kind kind, fk_ref actor, fk_err err)
{
    if (FK_LIKELY(!fk__event_wanted(local->sys, kind))) return;
    fk__event(local->sys, local, &(fk_event){ .kind = kind, .actor = actor, .err = err });
}

#endif /* FK_CORE_EVENT_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef INTEROP_CAST_H
#define INTEROP_CAST_H

/* The actors that the other side talks to. */

#include <fraktor/fraktor.h>

/* Where /user/forward sends to from now on. */
typedef struct aim {
    fk_ref at;
} aim;
FK_MESSAGE(aim);

/* To /user/sink: says what it has, and begins anew. */
typedef struct report {
    bool now;
} report;
FK_MESSAGE(report);

/* NULL: there is no such kind. */
const fk_props *cast_props(const char *kind);
/* All that are always there. */
FK_MUST_USE fk_err cast_spawn(fk_system *sys);
/* Sends "1" to "total" to a sink, at most two steps ahead of what that has confirmed. */
FK_MUST_USE fk_err cast_flood(fk_system *sys, fk_ref sink, int64_t total);

#endif /* INTEROP_CAST_H */

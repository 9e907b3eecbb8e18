/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_TERMINATE_H
#define FK_CORE_TERMINATE_H

/*
 * How a system comes to its end: one way, in one direction, whoever begins it and however often.
 *
 *     booting -> running -> user -> hooks -> system -> root -> terminated
 *
 * Whoever moves it on does so by one exchange of sys->termination, which only goes up; the one who
 * moved it does what is due then. fk_terminate_now() goes to root at once.
 */

#include "core/system.h"

typedef enum fk_termination {
    FK_TERMINATION_BOOTING = 0,
    FK_TERMINATION_RUNNING,
    FK_TERMINATION_USER,   /* /user and everything below it stops */
    FK_TERMINATION_HOOKS,  /* termination hooks are told and awaited */
    FK_TERMINATION_SYSTEM, /* /system stops */
    FK_TERMINATION_ROOT,   /* what is left stops */
    FK_TERMINATION_DOWN,
} fk_termination;

/* True: it was before that and is there now, by this call; then it has been published, too. */
bool fk__terminate_reach(fk_system *sys, fk_local *local, fk_termination phase, const char *reason);
/* From running to user; /user is asked to stop. The reason lasts for ever. */
void fk__terminate_begin(fk_system *sys, fk_local *local, const char *reason);
/* /user has begun to stop, for whatever reason. It is here that the step is published, and not where
 * it is taken: that may be any thread, which may come to speak when all others have ended. */
void fk__terminate_user_stops(fk_system *sys, fk_local *local);
/* The root's stop hook: everybody else is gone. */
void fk__terminate_finish(fk_ctx *ctx, void *state);
/* The root has stopped, too: the last event, and the end of events. */
void fk__terminate_over(fk_system *sys, fk_local *local);
/* Frees what fk_on_termination() was given. */
void fk__terminate_fini(fk_system *sys);

#endif /* FK_CORE_TERMINATE_H */

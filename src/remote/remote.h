/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_REMOTE_H
#define FK_REMOTE_REMOTE_H

/*
 * The remote part of a system: what stands behind references to actors of other systems.
 *
 * Such a reference is a slot like any other, whose cell is marked FK_GATE_REMOTE and has a proxy
 * instead of an actor. There is one per path, for as long as the system exists, up to a limit. The
 * cell's senders come here, and the authority of the path decides (remote/authority.h): until there
 * is a transport everything waits there. Time is seen to by an actor, /system/authorities.
 */

#include "core/system.h"

/* Fills sys->remote. sys->remote.destroy, which fk__system_destroy() calls, undoes it. */
FK_MUST_USE fk_err fk__remote_attach(fk_system *sys, const fk_system_config *config);

#endif /* FK_REMOTE_REMOTE_H */

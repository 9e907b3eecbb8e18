/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_HOOK_H
#define FK_CORE_HOOK_H

/*
 * /system, which conducts the orderly end. Running, it remembers who wants to be asked before the
 * end. When /user has stopped it asks them all, waits until each has answered, stopped or let its
 * time pass, and then stops itself and with it all actors of the runtime.
 */

#include "core/system.h"

fk_props fk__system_guardian_props(void);

#endif /* FK_CORE_HOOK_H */

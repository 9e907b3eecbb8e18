/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fraktor/log.h"

#include "core/event.h"

fk_err fk_log_close(fk_system *sys, fk_subscription sink)
{
    return fk_unsubscribe(sys, sink);
}

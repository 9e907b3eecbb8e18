/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/shutdown_seam.h"

fk_err fk_terminate(fk_system *sys)
{
    fk__system_begin_stop(sys);
    return FK_OK;
}

fk_err fk_terminate_now(fk_system *sys)
{
    return fk_terminate(sys);
}

fk_err fk_await_termination(fk_system *sys, fk_time timeout)
{
    uint32_t generation = fk__half_load(&sys->top.root->generation, FK_RELAXED) | 1;
    if (fk__system_is_down(sys)) return FK_OK;
    return fk_await_stopped(sys, (fk_ref){ sys->top.root->slot, generation, sys->id }, timeout);
}

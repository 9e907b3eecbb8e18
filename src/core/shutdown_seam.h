/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_SHUTDOWN_SEAM_H
#define FK_CORE_SHUTDOWN_SEAM_H

/* Stands in for the termination of fraktor/system.h until that has it: this file and
 * shutdown_seam.c go then, with the includes of it. */

#include "core/system.h"

FK_API fk_err fk_terminate(fk_system *sys);
FK_API fk_err fk_terminate_now(fk_system *sys);
FK_API FK_MUST_USE fk_err fk_await_termination(fk_system *sys, fk_time timeout);

#endif /* FK_CORE_SHUTDOWN_SEAM_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_BOOT_H
#define FK_CORE_BOOT_H

/* The steps from a bare system to one that can run: root, /user, /system, others, watches. */

#include "core/system.h"

/* Makes an actor beside the guardians. */
FK_MUST_USE fk_err fk__boot_extra(fk_system *sys, fk_str name, const fk_props *props, fk_ref *out);
/* The last step, without which nothing can be spawned. *missing is written with
 * FK_E_MISSING_GUARDIAN. */
FK_MUST_USE fk_err fk__boot_finish(fk_system *sys, fk_guardian_kind *missing);
/* All of it, as the config wants it. */
FK_MUST_USE fk_err fk__boot_all(fk_system *sys, const fk_system_config *config);
/* What fk_system_start() makes of a failure: the machine's own, or that it could not boot. */
fk_err fk__boot_error(const fk_system_config *config, fk_err err);

#endif /* FK_CORE_BOOT_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BOOT_H
#define FK_BOOT_H

/*
 * Starting a system step by step, for programs that put actors of their own beside /user and
 * /system. A system that does not run yet is an fk_boot, and nothing that sends or spawns takes one.
 *
 *     fk_boot *boot;
 *     fk_boot_create(&config, &boot);                            the root
 *     fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL);
 *     fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL);
 *     fk_boot_extra(boot, FK_STR("metrics"), &METRICS, &metrics);
 *     fk_boot_finish(boot, &sys, NULL);                          all of them run from here on
 */

#include "fraktor/system.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_boot fk_boot;

/* As fk_system_start(). The config's user_guardian and user_strategy are used by fk_boot_guardian()
 * when it is given neither. */
FK_API FK_MUST_USE fk_err fk_boot_create(const fk_system_config *config, fk_boot **out);
/* Makes /user or /system. Only /user can have props and a strategy of its own; FK_E_SYSTEM_FIXED and
 * FK_E_ROOT_FIXED for the others, which are there then, too, as they always are. FK_E_STRATEGY: the
 * strategy makes no sense, and the guardian was not made. FK_E_NAME_TAKEN: it is there already.
 * FK_E_NOMEM, FK_E_INVALID. */
FK_API FK_MUST_USE fk_err fk_boot_guardian(fk_boot *boot, fk_guardian_kind kind,
                                           const fk_props *props, const fk_strategy *strategy);
/* Makes an actor beside them, "/metrics". FK_E_RESERVED_NAME: user, system, temp, deadLetters, in any
 * case. FK_E_NAME_TAKEN; the errors of fk_path_check_name(); FK_E_NOMEM; FK_E_UNSUPPORTED for a pinned
 * one: there are no threads yet. */
FK_API FK_MUST_USE fk_err fk_boot_extra(fk_boot *boot, fk_str name, const fk_props *props,
                                        fk_ref *out);
/* Starts everything. The boot is gone afterwards, whatever the result. FK_E_MISSING_GUARDIAN:
 * *missing, if not NULL, says which. FK_E_NOMEM, FK_E_OS. */
FK_API FK_MUST_USE fk_err fk_boot_finish(fk_boot *boot, fk_system **out, fk_guardian_kind *missing);
/* Gives it up. */
FK_API void fk_boot_abandon(fk_boot *boot);

/* For code that comes too late: always FK_E_ALREADY_STARTED and an FK_EVENT_GUARDIAN. */
FK_API fk_err fk_register_top_level(fk_system *sys, fk_str name, const fk_props *props,
                                    fk_ref *out);

#ifdef __cplusplus
}
#endif
#endif /* FK_BOOT_H */

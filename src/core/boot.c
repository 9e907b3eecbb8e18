/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/boot.h"

#include "core/event.h"
#include "core/guardian.h"
#include "core/spawn.h"
#include "core/terminate.h"
#include "fraktor/boot.h"

/* Letters in any case: a name that only looks different would be a trap. */
static bool is_reserved(fk_str name)
{
    static const char *const NAMES[] = { "user", "system", "temp", "deadletters" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        fk_str reserved = fk_str_of(NAMES[i]);
        size_t same = 0;
        while (same < name.len && same < reserved.len) {
            char c = name.ptr[same];
            if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
            if (c != reserved.ptr[same]) break;
            same++;
        }
        if (same == name.len && same == reserved.len) return true;
    }
    return false;
}

fk_err fk__boot_extra(fk_system *sys, fk_str name, const fk_props *props, fk_ref *out)
{
    const uint64_t none = 0;
    if (out == NULL || name.ptr == NULL || name.len == 0) return FK_E_INVALID;
    if (is_reserved(name)) return FK_E_RESERVED_NAME;
    FK_TRY(fk_path_check_name(&sys->paths, name, NULL));
    fk_local *local = fk__local_enter(sys);
    fk_err err = fk__spawn(local, sys->top.root, name, &none, props, out);
    if (err == FK_OK) sys->top.count++;
    fk__local_leave(local);
    return err;
}

fk_err fk__boot_finish(fk_system *sys, fk_guardian_kind *missing)
{
    for (int kind = 0; kind < FK_GUARDIAN_KINDS; kind++) {
        if (fk__guardian_is_alive(sys, (fk_guardian_kind)kind)) continue;
        if (missing != NULL) *missing = (fk_guardian_kind)kind;
        return FK_E_MISSING_GUARDIAN;
    }
    FK_TRY(fk__guardians_link(sys));
    fk__half_store(&sys->stopping, FK_SPAWN_OPEN, FK_RELEASE);
    fk_local *local = fk__local_enter(sys);
    fk__terminate_reach(sys, local, FK_TERMINATION_RUNNING, "all guardians are there");
    fk__local_leave(local);
    return FK_OK;
}

fk_err fk__boot_all(fk_system *sys, const fk_system_config *config)
{
    FK_TRY(
        fk__guardian_create(sys, FK_GUARDIAN_USER, config->user_guardian, config->user_strategy));
    FK_TRY(fk__guardian_create(sys, FK_GUARDIAN_SYSTEM, NULL, NULL));
    return fk__boot_finish(sys, NULL);
}

fk_err fk__boot_error(const fk_system_config *config, fk_err err)
{
    if (config->boot_cause != NULL) *config->boot_cause = err;
    bool is_machine = err == FK_OK || err == FK_E_NOMEM || err == FK_E_OS || err == FK_E_LIMIT;
    return is_machine ? err : FK_E_NOT_BOOTSTRAPPED;
}

fk_err fk_register_top_level(fk_system *sys, fk_str name, const fk_props *props, fk_ref *out)
{
    (void)props;
    (void)out;
    fk__event(sys, NULL,
              &(fk_event){ .kind = FK_EVENT_GUARDIAN,
                           .text = name,
                           .reason = "registered beside the guardians after the start: refused" });
    return FK_E_ALREADY_STARTED;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "fraktor/placement.h"

#include "base/base.h"

const char *fk_command_name(fk_command_kind kind)
{
    static const char *const NAMES[] = {
#define FK_COMMAND_NAME(NAME, name) name,
        FK_PLACEMENT_COMMANDS(FK_COMMAND_NAME)
#undef FK_COMMAND_NAME
    };
    return (unsigned)kind < FK_COMMAND_COUNT ? NAMES[kind] : "?";
}

const char *fk_placement_event_name(fk_placement_event_kind kind)
{
    static const char *const NAMES[] = {
#define FK_EVENT_NAME(NAME, name) name,
        FK_PLACEMENT_EVENTS(FK_EVENT_NAME)
#undef FK_EVENT_NAME
    };
    return (unsigned)kind < FK_PLACEMENT_EVENT_COUNT ? NAMES[kind] : "?";
}

const char *fk_placement_state_name(fk_placement_state state)
{
    static const char *const NAMES[] = { "stopped", "not ready", "member", "client" };
    return (unsigned)state < sizeof(NAMES) / sizeof(NAMES[0]) ? NAMES[state] : "?";
}

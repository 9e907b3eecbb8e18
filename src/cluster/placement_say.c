/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Everything that leaves a coordinator. */

#include "cluster/placement.h"

void fk__say(const fk_placement *p, fk_placement_event event)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    if (outcome->event == NULL) return;
    event.observed_at = p->now;
    if (event.reason == NULL) event.reason = "";
    outcome->event(outcome->ctx, &event);
}

void fk__say_key(const fk_placement *p, fk_placement_event_kind kind, const fk_grain_key *key,
                 fk_err err, const char *reason)
{
    fk__say(p, (fk_placement_event){ .kind = kind,
                                     .key = *key,
                                     .slot = fk_slot_of(key->id, p->config.slots),
                                     .version = p->census != NULL ? p->census->view.version : 0,
                                     .err = err,
                                     .reason = reason });
}

void fk__say_grain(const fk_placement *p, fk_placement_event_kind kind, const fk_grain *grain,
                   fk_err err, const char *reason)
{
    uint32_t slot = fk__grain_slot(p, grain);
    const fk_attempt *attempt = grain->attempt;
    fk__say(p, (fk_placement_event){ .kind = kind,
                                     .key = fk__grain_key(grain),
                                     .authority = fk__placement_id(p),
                                     .pid = grain->pid,
                                     .epoch = grain->realm->slot[slot].epoch,
                                     .version = attempt != NULL ? attempt->version : 0,
                                     .slot = slot,
                                     .request_id = attempt != NULL ? attempt->request_id : 0,
                                     .err = err,
                                     .reason = reason });
}

void fk__say_slot(const fk_placement *p, fk_placement_event_kind kind, const fk_realm *realm,
                  uint32_t slot, const char *reason)
{
    fk__say(p, (fk_placement_event){ .kind = kind,
                                     .key.kind = fk__realm_name(realm),
                                     .authority = fk__placement_id(p),
                                     .epoch = realm->slot[slot].epoch,
                                     .slot = slot,
                                     .reason = reason });
}

void fk__say_cached(const fk_placement *p, fk_placement_event_kind kind, const fk_pid *pid,
                    const char *reason)
{
    fk__say(p, (fk_placement_event){ .kind = kind,
                                     .key = fk__pid_key(pid),
                                     .authority = fk__pid_authority(pid),
                                     .slot = fk_slot_of(pid->id, p->config.slots),
                                     .reason = reason });
}

void fk__say_command(fk_placement *p, fk_command_kind kind, const fk_grain *grain,
                     const char *reason, fk_placement_result *done)
{
    const fk_placement_outcome *outcome = &p->config.outcome;
    const fk_attempt *attempt = grain->attempt;
    fk_placement_command command = {
        .kind = kind,
        .request_id = attempt != NULL ? attempt->request_id : ++p->last_request,
        .deadline = fk__time_add(p->clock, p->config.command_timeout),
        .key = fk__grain_key(grain),
        .is_durable = grain->realm->is_durable,
        .fence = { grain->realm->slot[fk__grain_slot(p, grain)].epoch, fk__placement_id(p),
                   p->incarnation },
        .version = attempt != NULL ? attempt->version : 0,
        .pid = grain->pid,
        .record = attempt != NULL ? attempt->record : NULL,
        .reason = reason != NULL ? reason : "",
        .done = done,
    };
    outcome->command(outcome->ctx, &command);
}

fk_resolution fk__resolution_local(const fk_placement *p, const fk_grain *grain)
{
    fk_resolution r = { .err = FK_OK,
                        .locality = FK_LOCALITY_LOCAL,
                        .authority = fk__placement_id(p),
                        .incarnation = p->incarnation,
                        .pid = grain->pid,
                        .epoch = grain->realm->slot[fk__grain_slot(p, grain)].epoch,
                        .observed_at = p->now,
                        .reason = "" };
    if (p->census != NULL) {
        r.view_version = p->census->view.version;
        if (p->self != FK_NOBODY) r.address = p->census->member[p->self].address;
    }
    return r;
}

fk_resolution fk__resolution_remote(const fk_placement *p, uint32_t member)
{
    const fk_member *m = &p->census->member[member];
    return (fk_resolution){ .err = FK_OK,
                            .locality = FK_LOCALITY_REMOTE,
                            .authority = m->id,
                            .incarnation = m->incarnation,
                            .address = m->address,
                            .view_version = p->census->view.version,
                            .observed_at = p->now,
                            .reason = "" };
}

fk_resolution fk__resolution_error(const fk_placement *p, fk_err err, const char *reason)
{
    return (fk_resolution){ .err = err,
                            .view_version = p->census != NULL ? p->census->view.version : 0,
                            .observed_at = p->now,
                            .reason = reason };
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/handshake.h"

#include "base/safeguard.h"

/* ---- a stream of ours ---------------------------------------------------------------------- */

fk_err fk__handshake_configure(const fk_handshake_config *config, fk_handshake_config *out)
{
    fk_handshake_config c = config != NULL ? *config : (fk_handshake_config){ 0 };
    if (c.repeat_every == 0) c.repeat_every = FK_SECONDS(1);
    if (c.fail_after == 0) c.fail_after = FK_SECONDS(20);
    if (c.inject_every == 0) c.inject_every = FK_SECONDS(1);
    if (c.repeat_every < 0 || c.fail_after < 0 || c.inject_every < 0) return FK_E_INVALID;
    *out = c;
    return FK_OK;
}

static void handshake_enter(fk_handshake *h, fk_handshake_phase phase)
{
    h->phase = phase;
    h->repeat_at = h->fail_at = FK_NEVER;
}

void fk__handshake_init(fk_handshake *handshake, const fk_handshake_config *config)
{
    *handshake = (fk_handshake){ .config = config };
    handshake_enter(handshake, FK_HANDSHAKE_IDLE);
}

static void handshake_request(fk_handshake *h, fk_time now, fk_handshake_effects *fx)
{
    fx->must_request = true;
    h->inject_at = fk__time_add(now, h->config->inject_every);
    if (h->phase != FK_HANDSHAKE_WAITING) return;
    h->repeat_at =
        FK_SAFEGUARD(HANDSHAKE_REPEAT) ? fk__time_add(now, h->config->repeat_every) : FK_NEVER;
}

void fk__handshake_begin(fk_handshake *handshake, const fk_authority *authority, bool is_control,
                         fk_time now, fk_handshake_effects *effects)
{
    FK_ASSERT(handshake->phase == FK_HANDSHAKE_IDLE);
    *effects = (fk_handshake_effects){ .must_request = false };
    handshake->is_control = is_control;
    handshake->attempt = authority->attempt;
    if (authority->is_open && !(is_control && FK_SAFEGUARD(HANDSHAKE_OWN))) {
        handshake_enter(handshake, FK_HANDSHAKE_ANSWERED);
    } else {
        handshake_enter(handshake, FK_HANDSHAKE_WAITING);
        handshake->fail_at = fk__time_add(now, handshake->config->fail_after);
    }
    handshake_request(handshake, now, effects);
}

void fk__handshake_answered(fk_handshake *handshake, bool is_response)
{
    if (handshake->phase != FK_HANDSHAKE_WAITING) return;
    if (handshake->is_control && !is_response && FK_SAFEGUARD(HANDSHAKE_OWN)) return;
    handshake_enter(handshake, FK_HANDSHAKE_ANSWERED);
}

void fk__handshake_end(fk_handshake *handshake)
{
    handshake_enter(handshake, FK_HANDSHAKE_IDLE);
}

bool fk__handshake_may_send(fk_handshake *handshake, fk_time now, fk_handshake_effects *effects)
{
    *effects = (fk_handshake_effects){ .must_request = false };
    if (handshake->phase == FK_HANDSHAKE_IDLE) return false;
    if (handshake->phase == FK_HANDSHAKE_WAITING && FK_SAFEGUARD(HANDSHAKE_WAITS)) return false;
    if (handshake->inject_at <= now && FK_SAFEGUARD(HANDSHAKE_INJECT)) {
        handshake_request(handshake, now, effects);
    }
    return true;
}

fk_time fk__handshake_next(const fk_handshake *handshake)
{
    return handshake->repeat_at < handshake->fail_at ? handshake->repeat_at : handshake->fail_at;
}

void fk__handshake_tick(fk_handshake *handshake, fk_authority_table *table, fk_authority *authority,
                        fk_time now, fk_handshake_effects *effects)
{
    *effects = (fk_handshake_effects){ .must_request = false };
    if (handshake->fail_at <= now && FK_SAFEGUARD(HANDSHAKE_FAILS)) {
        fk_authority_event event = { .kind = authority->is_open ? FK_AUTHORITY_EVENT_DROPPED
                                                                : FK_AUTHORITY_EVENT_FAILED,
                                     .uid = authority->uid,
                                     .attempt = handshake->attempt };
        handshake_enter(handshake, FK_HANDSHAKE_IDLE);
        effects->has_failed = true;
        effects->result = fk__authority_step(table, authority, &event, now, &effects->authority);
    } else if (handshake->repeat_at <= now) {
        handshake_request(handshake, now, effects);
    }
}

/* ---- where others come in ------------------------------------------------------------------- */

static bool door_str_is(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool door_is_own(const fk_door *door, const fk_authority_key *key)
{
    return key->port == door->own.port && door_str_is(key->system, door->own.system) &&
           door_str_is(key->host, door->own.host);
}

static fk_door_result door_of_error(fk_err err)
{
    switch (err) {
    case FK_E_LIMIT: return FK_DOOR_RESULT_LIMIT;
    case FK_E_NOMEM: return FK_DOOR_RESULT_NOMEM;
    default: return FK_DOOR_RESULT_INVALID;
    }
}

/* R8 of the fault model: what is meant for another must not be taken for ours, or two systems that
 * were given each other's address would both believe that they have met a third. */
fk_door_result fk__door_knock(const fk_door *door, const fk_authority_key *from,
                              const fk_authority_key *to, fk_time now, fk_door_effects *effects)
{
    fk_authority *authority;
    *effects = (fk_door_effects){ .result = FK_AUTHORITY_RESULT_DONE };
    if (!door_is_own(door, to) && FK_SAFEGUARD(HANDSHAKE_TO)) return FK_DOOR_RESULT_NOT_US;
    if (door_is_own(door, from)) return FK_DOOR_RESULT_INVALID;
    fk_err err = fk__authority_get(door->table, from, now, &effects->authority, &authority);
    if (err != FK_OK) return door_of_error(err);
    /* We must answer on a stream of our own, and know no other address than the one it says. */
    if (!authority->is_mapped) {
        err = fk__authority_map(door->table, authority, (fk_str){ NULL, 0 }, 0, now);
        if (err != FK_OK) return door_of_error(err);
    }
    return FK_DOOR_RESULT_ACCEPTED;
}

static fk_door_result door_of_authority(fk_authority_result result)
{
    switch (result) {
    case FK_AUTHORITY_RESULT_DONE:
    case FK_AUTHORITY_RESULT_SAME: return FK_DOOR_RESULT_ACCEPTED;
    case FK_AUTHORITY_RESULT_UID: return FK_DOOR_RESULT_QUARANTINED;
    case FK_AUTHORITY_RESULT_NOMEM: return FK_DOOR_RESULT_NOMEM;
    default: return FK_DOOR_RESULT_REFUSED;
    }
}

fk_door_result fk__door_accept(fk_door *door, fk_peer *peer, uint64_t uid, bool is_request,
                               fk_time now, fk_door_effects *effects)
{
    fk_authority_event event = { .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = uid };
    *effects = (fk_door_effects){ .result = FK_AUTHORITY_RESULT_DONE };
    effects->authority.authority = peer->authority;
    if (uid == 0 || uid == door->own_uid) return FK_DOOR_RESULT_INVALID;
    const fk_origin *known = fk__origins_find(&door->origins, uid);
    if (known != NULL && known->peer != peer && FK_SAFEGUARD(ORIGIN_TAKEN)) {
        return FK_DOOR_RESULT_TAKEN;
    }
    effects->result =
        fk__authority_step(door->table, peer->authority, &event, now, &effects->authority);
    fk_door_result result = door_of_authority(effects->result);
    if (result == FK_DOOR_RESULT_ACCEPTED) {
        effects->origin = fk__peer_meet(&door->origins, peer, uid);
        effects->must_answer = is_request;
    }
    effects->must_notify = result == FK_DOOR_RESULT_QUARANTINED && is_request;
    return result;
}

fk_door_result fk__door_admit(const fk_door *door, uint64_t uid, bool is_quiet, fk_origin **origin,
                              bool *must_notify)
{
    fk_origin *known = fk__origins_find(&door->origins, uid);
    *must_notify = false;
    if (known == NULL) return FK_DOOR_RESULT_UNKNOWN;
    *origin = known;
    if (!fk__authority_refuses(known->peer->authority, uid)) return FK_DOOR_RESULT_ACCEPTED;
    *must_notify = !is_quiet;
    return FK_SAFEGUARD(ORIGIN_REFUSED) ? FK_DOOR_RESULT_QUARANTINED : FK_DOOR_RESULT_ACCEPTED;
}

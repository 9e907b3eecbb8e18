/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/desk.h"

void desk_init(desk *d, const fk_authority_config *config)
{
    static const fk_hash_key KEY = { 1, 2 };
    rig_init(&d->r);
    d->now = FK_SECONDS(1000);
    d->sent = 0;
    for (uint32_t i = 0; i < DESK_LETTERS; i++) d->letters[i].number = i;
    fk__mem_init(&d->mem, &d->r.port, 0);
    CHECK_OK(fk__authority_table_init(&d->table, &d->mem, config, &KEY, 7));
    CHECK(fk__authority_next(&d->table) == FK_NEVER);
    CHECK_OK(fk__authority_get(&d->table, &DESK_KEY, d->now, &d->fx, &d->a));
    fk__authority_table_check(&d->table);
}

uint32_t desk_fini(desk *d)
{
    fk_envelopes left;
    fk__authority_table_check(&d->table);
    fk__authority_table_fini(&d->table, &left);
    rig_check_empty(&d->r);
    return left.count;
}

/* The graph of remote/authority.h, and nothing else. */
static const fk_authority_change ARROWS[] = {
    { UNRESOLVED, CONNECTED, FK_AUTHORITY_REASON_HANDSHAKE, 0 },
    { UNRESOLVED, QUARANTINE, FK_AUTHORITY_REASON_GAVE_UP, 0 },
    { UNRESOLVED, QUARANTINE, FK_AUTHORITY_REASON_REFUSED, 0 },
    { UNRESOLVED, QUARANTINE, FK_AUTHORITY_REASON_OLD_UID, 0 },
    { UNRESOLVED, QUARANTINE, FK_AUTHORITY_REASON_ASKED, 0 },
    { CONNECTED, UNRESOLVED, FK_AUTHORITY_REASON_DROPPED, 0 },
    { CONNECTED, UNRESOLVED, FK_AUTHORITY_REASON_FAILED, 0 },
    { CONNECTED, QUARANTINE, FK_AUTHORITY_REASON_INVALID, 0 },
    { CONNECTED, QUARANTINE, FK_AUTHORITY_REASON_NOTICE, 0 },
    { CONNECTED, QUARANTINE, FK_AUTHORITY_REASON_ASKED, 0 },
    { CONNECTED, QUARANTINE, FK_AUTHORITY_REASON_REFUSED, 0 },
    { CONNECTED, QUARANTINE, FK_AUTHORITY_REASON_OLD_UID, 0 },
    { QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED, 0 },
    { QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_OVERRIDE, 0 },
    { QUARANTINE, CONNECTED, FK_AUTHORITY_REASON_OVERRIDE, 0 },
    { QUARANTINE, CONNECTED, FK_AUTHORITY_REASON_NEW_UID, 0 },
};

static bool is_arrow(const fk_authority_change *change)
{
    for (size_t i = 0; i < sizeof(ARROWS) / sizeof(ARROWS[0]); i++) {
        if (change->from == ARROWS[i].from && change->to == ARROWS[i].to &&
            change->reason == ARROWS[i].reason) {
            return true;
        }
    }
    return false;
}

static void check_effects(const desk *d, fk_association before)
{
    const fk_authority_effects *fx = &d->fx;
    fk__authority_table_check(&d->table);
    CHECK(fx->has_change == (before != d->a->state));
    if (fx->has_change) {
        CHECK(is_arrow(&fx->change));
        CHECK(fx->change.from == before);
        CHECK(fx->change.to == d->a->state);
        CHECK(fx->change.at == d->now);
    }
    bool is_entered = fx->has_change && fx->change.to == QUARANTINE;
    CHECK(fx->must_close == is_entered);
    CHECK(fx->refused.count == 0 || is_entered);
    CHECK(!fx->is_opened || fk__authority_is_clear(d->a) || d->a->is_draining);
}

fk_authority_result desk_step(desk *d, fk_authority_event event)
{
    fk_association before = d->a->state;
    fk_authority_result result = fk__authority_step(&d->table, d->a, &event, d->now, &d->fx);
    CHECK(d->fx.authority == d->a);
    check_effects(d, before);
    return result;
}

fk_authority_result desk_handshake(desk *d, uint64_t uid)
{
    return desk_tell(d, FK_AUTHORITY_EVENT_HANDSHAKE, uid);
}

fk_authority_result desk_tell(desk *d, fk_authority_event_kind kind, uint64_t uid)
{
    return desk_step(d, (fk_authority_event){ .kind = kind, .uid = uid });
}

fk_authority_result desk_failed(desk *d)
{
    return desk_step(
        d, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_FAILED, .attempt = d->a->attempt });
}

fk_authority_result desk_override(desk *d, bool force)
{
    return desk_step(d,
                     (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_OVERRIDE, .force = force });
}

void desk_map(desk *d)
{
    CHECK_OK(fk__authority_map(&d->table, d->a, FK_STR(""), 0, d->now));
    fk__authority_table_check(&d->table);
}

void desk_tick(desk *d)
{
    fk_association before = d->a->state;
    fk_time next = fk__authority_next(&d->table);
    CHECK(next != FK_NEVER);
    if (next > d->now) d->now = next;
    CHECK(fk__authority_tick(&d->table, d->now, &d->fx));
    CHECK(d->fx.authority == d->a);
    check_effects(d, before);
}

void desk_attempt(desk *d)
{
    uint64_t before = d->a->attempt;
    desk_tick(d);
    CHECK(d->fx.must_connect);
    CHECK(!d->fx.has_change);
    CHECK(d->a->is_attempting);
    CHECK_U64(d->a->attempt, before + 1);
}

uint32_t desk_pass(desk *d, fk_time by)
{
    uint32_t count = 0;
    d->now += by;
    while (fk__authority_tick(&d->table, d->now, &d->fx)) {
        fk__authority_table_check(&d->table);
        count++;
    }
    CHECK(fk__authority_next(&d->table) > d->now);
    return count;
}

void desk_open(desk *d, uint64_t uid)
{
    desk_map(d);
    CHECK(desk_handshake(d, uid) == DONE);
    CHECK(d->fx.is_opened);
    desk_drain(d, 1, 0, 0);
    CHECK(fk__authority_is_clear(d->a));
}

void desk_quarantined(desk *d, uint64_t uid)
{
    desk_open(d, uid);
    CHECK(desk_tell(d, FK_AUTHORITY_EVENT_INVALID, uid) == DONE);
    CHECK(d->a->state == QUARANTINE);
}

fk_err desk_send(desk *d, bool *is_deferred)
{
    bool own;
    CHECK(d->sent < DESK_LETTERS);
    fk_err err = fk__authority_send(&d->table, d->a, &d->letters[d->sent].link, false,
                                    is_deferred != NULL ? is_deferred : &own);
    if (err == FK_OK) d->sent++;
    fk__authority_table_check(&d->table);
    return err;
}

void desk_defer(desk *d, uint32_t count)
{
    while (count-- > 0) {
        bool is_deferred = false;
        CHECK_OK(desk_send(d, &is_deferred));
        CHECK(is_deferred);
    }
}

void desk_check_letters(const fk_envelopes *list, uint32_t first, uint32_t count)
{
    const fk_envelope *link = list->first;
    CHECK_U64(list->count, count);
    for (uint32_t i = 0; i < count; i++, link = link->next) {
        CHECK_U64(FK_CONTAINER((void *)(uintptr_t)link, desk_letter, link)->number, first + i);
    }
    CHECK(link == NULL);
}

void desk_drain(desk *d, uint32_t batch, uint32_t first, uint32_t count)
{
    fk_envelopes list;
    for (;;) {
        fk__authority_take(&d->table, d->a, batch, &list);
        fk__authority_table_check(&d->table);
        if (list.count == 0) break;
        desk_check_letters(&list, first, count < batch ? count : batch);
        first += list.count;
        count -= list.count;
    }
    CHECK_U64(count, 0);
}

void desk_check_change(const desk *d, fk_association from, fk_association to,
                       fk_authority_reason reason)
{
    CHECK(d->fx.has_change);
    CHECK_STR(fk__association_name(d->fx.change.from), fk__association_name(from));
    CHECK_STR(fk__association_name(d->fx.change.to), fk__association_name(to));
    CHECK_STR(fk__authority_reason_name(d->fx.change.reason), fk__authority_reason_name(reason));
    CHECK(d->fx.change.at == d->now);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/placing.h"

#include <stdio.h>
#include <string.h>

const fk_activated_kind PLACING_ACCOUNT = { .name = { "account", 7 }, .is_durable = true };
const fk_activated_kind PLACING_ROOM = { .name = { "room", 4 }, .idle_ttl = FK_MINUTES(1) };

static void keep(char *into, fk_str text)
{
    size_t len = text.len < PLACING_TEXT - 1 ? text.len : PLACING_TEXT - 1;
    if (len != 0) memcpy(into, text.ptr, len);
    into[len] = '\0';
}

static void on_command(void *ctx, const fk_placement_command *command)
{
    placing *s = ctx;
    CHECK(s->commands < PLACING_MAX);
    placing_command *kept = &s->command[s->commands++];
    memset(kept, 0, sizeof(*kept));
    kept->c = *command;
    CHECK(command->slot_count <= PLACING_SLOTS);
    for (uint32_t i = 0; i < command->slot_count; i++) kept->slots[i] = command->slots[i];
    kept->c.slots = kept->slots;
    fk_str kind = command->slot_count != 0 ? command->slot_kind : command->key.kind;
    keep(kept->kind, kind);
    keep(kept->key, command->key.key);
    keep(kept->holder, command->fence.holder);
    keep(kept->to, command->to);
    CHECK(command->reason != NULL);
    CHECK(command->request_id != 0);
}

static void on_event(void *ctx, const fk_placement_event *event)
{
    placing *s = ctx;
    CHECK(s->events < PLACING_MAX);
    placing_event *kept = &s->event[s->events++];
    kept->e = *event;
    keep(kept->kind, event->key.kind);
    keep(kept->key, event->key.key);
    keep(kept->authority, event->authority);
    CHECK(event->reason != NULL); /* the header: never NULL */
    keep(kept->reason, fk_str_of(event->reason));
    CHECK(event->observed_at == s->now);
}

static void on_settled(void *ctx, uint64_t ticket, const fk_resolution *resolution)
{
    placing *s = ctx;
    CHECK(s->ends < PLACING_MAX);
    CHECK(placing_end_of(s, ticket) == NULL); /* once for each */
    placing_end *kept = &s->end[s->ends++];
    kept->ticket = ticket;
    kept->r = *resolution;
    keep(kept->authority, resolution->authority);
    CHECK(resolution->err != FK_E_PENDING);
    CHECK(resolution->observed_at == s->now);
}

static void on_discard(void *ctx, void *record)
{
    placing *s = ctx;
    s->discards++;
    s->discarded = record;
}

void placing_begin(placing *s, fk_placement_config config)
{
    memset(s, 0, sizeof(*s));
    rig_init(&s->r);
    s->now = FK_SECONDS(1000);
    config.slots = config.slots != 0 ? config.slots : PLACING_SLOTS;
    config.outcome = (fk_placement_outcome){ s, on_command, on_event, on_settled, on_discard };
    CHECK_OK(fk_placement_create(&config, &s->r.port, &s->p));
}

void placing_end_all(placing *s)
{
    fk_placement_check(s->p);
    fk_placement_destroy(s->p);
    CHECK_U64(atomic_load(&s->r.bytes), 0);
}

void placing_member(placing *s)
{
    CHECK_OK(fk_placement_add_kind(s->p, &PLACING_ACCOUNT, s->now));
    CHECK_OK(fk_placement_add_kind(s->p, &PLACING_ROOM, s->now));
    CHECK_OK(fk_placement_start_member(s->p, FK_STR("a"), 1, s->now, s->now));
}

fk_err placing_view(placing *s, uint64_t version, const char *letters)
{
    static const fk_str KINDS[] = { { "account", 7 }, { "room", 4 } };
    static const char IDS[] = "abcdefghijklmnopqrstuvwxyz";
    fk_member member[26] = { 0 };
    uint32_t count = 0;
    for (; letters[count] != '\0'; count++) {
        bool is_draining = letters[count] < 'a';
        int index = (letters[count] | 0x20) - 'a';
        member[count] = (fk_member){ .id = { &IDS[index], 1 },
                                     .incarnation = 1,
                                     .address = { &IDS[index], 1 },
                                     .kinds = KINDS,
                                     .kind_count = 2,
                                     .weight = 1,
                                     .status = is_draining ? FK_MEMBER_DRAINING : FK_MEMBER_UP };
    }
    fk_view view = { version, member, count };
    fk_err err = fk_placement_update_topology(s->p, &view, s->now);
    fk_placement_check(s->p);
    return err;
}

void placing_alone(placing *s)
{
    placing_member(s);
    CHECK_OK(placing_view(s, 1, "a"));
    placing_grant_all(s);
    CHECK_U64(placing_snapshot(s).slots_held, 2 * PLACING_SLOTS);
}

fk_grain_key placing_key(const char *kind, const char *key)
{
    fk_grain_key out;
    CHECK_OK(fk_grain_key_of(fk_str_of(kind), fk_str_of(key), &out));
    return out;
}

fk_grain_key placing_key_of(placing *s, const char *kind, const char *owner, unsigned number)
{
    static char text[64][16];
    static unsigned turn;
    char *name = text[turn++ % 64];
    for (unsigned i = 0; i < 10000; i++) {
        fk_member member;
        snprintf(name, sizeof(text[0]), "k%u", i);
        fk_grain_key key = placing_key(kind, name);
        CHECK_OK(fk_placement_owner(s->p, &key, &member, NULL));
        if (member.id.len == strlen(owner) && memcmp(member.id.ptr, owner, member.id.len) == 0 &&
            number-- == 0) {
            return key;
        }
    }
    test_failed(__FILE__, __LINE__, "no key of %s", owner);
}

fk_err placing_resolve(placing *s, fk_grain_key key, uint64_t ticket)
{
    fk_err err = fk_placement_resolve(s->p, &key, ticket, s->now, &s->got);
    CHECK(err == s->got.err);
    fk_placement_check(s->p);
    return err;
}

fk_err placing_tick(placing *s, fk_time by)
{
    s->now += by;
    fk_placement_tick(s->p, s->now);
    fk_placement_check(s->p);
    return FK_OK;
}

placing_command *placing_next(placing *s, fk_command_kind kind)
{
    for (size_t i = 0; i < s->commands; i++) {
        if (s->command[i].c.kind == kind && !s->command[i].is_answered) return &s->command[i];
    }
    return NULL;
}

size_t placing_unanswered(const placing *s, fk_command_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < s->commands; i++) {
        if (s->command[i].c.kind == kind && !s->command[i].is_answered) count++;
    }
    return count;
}

size_t placing_said(const placing *s, fk_command_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < s->commands; i++) count += s->command[i].c.kind == kind;
    return count;
}

fk_err placing_answer(placing *s, placing_command *command, fk_verdict verdict, fk_err err)
{
    CHECK(command != NULL);
    fk_placement_result result = {
        .kind = command->c.kind, .request_id = command->c.request_id, .verdict = verdict, .err = err
    };
    fk_slot_claim claim[PLACING_SLOTS];
    command->is_answered = true;
    if (verdict == FK_VERDICT_OK) {
        for (uint32_t i = 0; i < command->c.slot_count; i++) {
            claim[i] = (fk_slot_claim){ .slot = command->slots[i].slot, .epoch = ++s->epoch };
        }
        result.slots = claim;
        result.slot_count = command->c.slot_count;
        if (command->c.kind == FK_COMMAND_ENSURE_ACTIVATION) result.pid = ++s->pid;
        if (command->c.kind == FK_COMMAND_STORE_ACTIVATION) result.version = command->c.version + 1;
    }
    fk_err handled = fk_placement_handle_result(s->p, &result, s->now);
    fk_placement_check(s->p);
    return handled;
}

fk_err placing_ok(placing *s, fk_command_kind kind)
{
    return placing_answer(s, placing_next(s, kind), FK_VERDICT_OK, FK_OK);
}

fk_err placing_refuse(placing *s, const char *holder, uint64_t incarnation)
{
    placing_command *command = placing_next(s, FK_COMMAND_TRY_ACQUIRE);
    fk_slot_claim claim[PLACING_SLOTS];
    CHECK(command != NULL);
    command->is_answered = true;
    for (uint32_t i = 0; i < command->c.slot_count; i++) {
        claim[i] = (fk_slot_claim){ .slot = command->slots[i].slot,
                                    .holder = fk_str_of(holder),
                                    .holder_incarnation = incarnation };
    }
    fk_placement_result result = { .kind = FK_COMMAND_TRY_ACQUIRE,
                                   .request_id = command->c.request_id,
                                   .slots = claim,
                                   .slot_count = command->c.slot_count };
    fk_err handled = fk_placement_handle_result(s->p, &result, s->now);
    fk_placement_check(s->p);
    return handled;
}

void placing_grant_all(placing *s)
{
    while (placing_next(s, FK_COMMAND_TRY_ACQUIRE) != NULL) {
        CHECK_OK(placing_ok(s, FK_COMMAND_TRY_ACQUIRE));
    }
}

uint64_t placing_activate(placing *s, fk_grain_key key)
{
    static uint64_t ticket = 1000000;
    CHECK_ERR(placing_resolve(s, key, ++ticket), FK_E_PENDING);
    if (placing_next(s, FK_COMMAND_LOAD_ACTIVATION) != NULL) {
        CHECK_OK(placing_ok(s, FK_COMMAND_LOAD_ACTIVATION));
    }
    CHECK_OK(placing_ok(s, FK_COMMAND_ENSURE_ACTIVATION));
    if (placing_next(s, FK_COMMAND_STORE_ACTIVATION) != NULL) {
        CHECK_OK(placing_ok(s, FK_COMMAND_STORE_ACTIVATION));
    }
    const placing_end *end = placing_end_of(s, ticket);
    CHECK(end != NULL);
    CHECK_OK(end->r.err);
    CHECK(end->r.locality == FK_LOCALITY_LOCAL);
    return end->r.pid;
}

size_t placing_happened(const placing *s, fk_placement_event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < s->events; i++) count += s->event[i].e.kind == kind;
    return count;
}

const placing_event *placing_last(const placing *s, fk_placement_event_kind kind)
{
    for (size_t i = s->events; i-- > 0;) {
        if (s->event[i].e.kind == kind) return &s->event[i];
    }
    return NULL;
}

const placing_end *placing_end_of(const placing *s, uint64_t ticket)
{
    for (size_t i = 0; i < s->ends; i++) {
        if (s->end[i].ticket == ticket) return &s->end[i];
    }
    return NULL;
}

fk_placement_snapshot placing_snapshot(const placing *s)
{
    fk_placement_snapshot snapshot;
    fk_placement_snapshot_get(s->p, &snapshot);
    return snapshot;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: what its specification asks for, by its numbers, and each line of its test strategy. */

#include <string.h>

#include "support/placing.h"

static placing s;

TEST(r1_1_lookup_decides_placement)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "abc"));
    fk_grain_key mine = placing_key_of(&s, "account", "a", 0);
    fk_grain_key others = placing_key_of(&s, "account", "b", 0);
    CHECK_OK(placing_resolve(&s, others, 1));
    CHECK(s.got.locality == FK_LOCALITY_REMOTE);
    CHECK_U64(s.got.authority.len, 1);
    CHECK(s.got.authority.ptr[0] == 'b');
    CHECK_U64(s.got.incarnation, 1);
    CHECK_U64(s.got.view_version, 1);
    CHECK(s.got.observed_at == s.now);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_RESOLVED)->authority, "b");
    CHECK_ERR(placing_resolve(&s, mine, 2), FK_E_PENDING);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_RESOLVED)->authority, "a");
    placing_end_all(&s);
}

TEST(r1_2_topology_change_is_reflected)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK_OK(placing_view(&s, 1, "b"));
    fk_grain_key key = placing_key("room", "lobby");
    CHECK_OK(placing_resolve(&s, key, 1));
    CHECK(s.got.authority.ptr[0] == 'b');
    CHECK_OK(placing_view(&s, 2, "c"));
    CHECK_OK(placing_resolve(&s, key, 2));
    CHECK(s.got.authority.ptr[0] == 'c');
    CHECK_U64(s.got.view_version, 2);
    CHECK_U64(placing_last(&s, FK_PLACEMENT_TOPOLOGY)->e.version, 2);
    CHECK_OK(placing_view(&s, 1, "d")); /* older: ignored */
    CHECK_OK(placing_view(&s, 2, "d")); /* the same, by its number */
    CHECK_OK(placing_resolve(&s, key, 3));
    CHECK(s.got.authority.ptr[0] == 'c');
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_TOPOLOGY), 2);
    CHECK_OK(placing_view(&s, 3, "cd"));
    key = placing_key_of(&s, "room", "d", 0);
    CHECK_OK(fk_placement_member_left(s.p, FK_STR("d"), 1, s.now));
    CHECK_ERR(fk_placement_member_left(s.p, FK_STR("d"), 1, s.now), FK_E_NOT_FOUND);
    CHECK_OK(placing_resolve(&s, key, 4));
    CHECK(s.got.authority.ptr[0] == 'c');
    placing_end_all(&s);
}

TEST(r1_3_undecided_is_refused)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    fk_grain_key key = placing_key("account", "1");
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_NOT_READY);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_REFUSED)->reason, "stopped");
    placing_member(&s);
    CHECK_ERR(placing_resolve(&s, key, 2), FK_E_NOT_READY); /* no view */
    CHECK_STR(placing_last(&s, FK_PLACEMENT_REFUSED)->reason, "not ready");
    CHECK_OK(placing_view(&s, 1, "b"));
    CHECK_ERR(placing_resolve(&s, placing_key("cinema", "1"), 3), FK_E_UNKNOWN_KIND);
    CHECK_ERR(placing_last(&s, FK_PLACEMENT_REFUSED)->e.err, FK_E_UNKNOWN_KIND);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_REFUSED), 3);
    CHECK_U64(s.commands, 0);
    CHECK_U64(s.ends, 0);
    placing_end_all(&s);
}

TEST(r2_1_distributed_activation_is_started)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    size_t before = s.commands;
    fk_grain_key key = placing_key("account", "alice");
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    int row;
    placing_command *load = placing_next(&s, FK_COMMAND_LOAD_ACTIVATION);
    load->is_answered = true;
    CHECK_OK(fk_placement_handle_result(s.p,
                                        &(fk_placement_result){ .kind = FK_COMMAND_LOAD_ACTIVATION,
                                                                .request_id = load->c.request_id,
                                                                .record = &row,
                                                                .version = 7 },
                                        s.now));
    const placing_command *ensure = placing_next(&s, FK_COMMAND_ENSURE_ACTIVATION);
    CHECK(ensure->c.record == &row);
    CHECK(ensure->c.is_durable);
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    const placing_command *store = placing_next(&s, FK_COMMAND_STORE_ACTIVATION);
    CHECK_U64(store->c.version, 7);
    CHECK_U64(store->c.pid, s.pid);
    CHECK(store->c.record == &row);
    CHECK_STR(store->holder, "a");
    CHECK(store->c.fence.epoch != 0);
    CHECK_U64(store->c.fence.incarnation, 1);
    CHECK_U64(s.ends, 0); /* not before it is stored */
    CHECK_U64(s.discards, 0);
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK_U64(s.ends, 1);
    CHECK_OK(s.end[0].r.err);
    CHECK(s.end[0].r.locality == FK_LOCALITY_LOCAL);
    CHECK_U64(s.end[0].r.pid, s.pid);
    CHECK_U64(s.end[0].r.epoch, store->c.fence.epoch);
    CHECK_U64(s.discards, 1);
    CHECK(s.discarded == &row);
    CHECK_U64(s.commands - before, 3);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_ACTIVATED), 1);
    placing_end_all(&s);
}

TEST(r2_1_volatile_grains_need_no_store)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    size_t before = s.commands;
    CHECK(placing_activate(&s, placing_key("room", "lobby")) == s.pid);
    CHECK_U64(s.commands - before, 1);
    placing_end_all(&s);
}

TEST(r2_2_existing_activation_is_reused)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "alice");
    uint64_t pid = placing_activate(&s, key);
    size_t commands = s.commands, events = s.events;
    for (uint64_t ticket = 1; ticket <= 10; ticket++) {
        CHECK_OK(placing_resolve(&s, key, ticket));
        CHECK(s.got.locality == FK_LOCALITY_LOCAL);
        CHECK_U64(s.got.pid, pid);
    }
    CHECK_U64(s.commands, commands);
    CHECK_U64(s.events, events); /* that is no resolve */
    placing_end_all(&s);
}

TEST(r3_1_lock_is_taken_before_anything_runs)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    CHECK_ERR(placing_resolve(&s, placing_key("account", "1"), 1), FK_E_PENDING);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 2), FK_E_PENDING);
    CHECK_U64(placing_said(&s, FK_COMMAND_TRY_ACQUIRE), s.commands);
    placing_grant_all(&s);
    CHECK_U64(placing_unanswered(&s, FK_COMMAND_LOAD_ACTIVATION), 1);
    CHECK_U64(placing_unanswered(&s, FK_COMMAND_ENSURE_ACTIVATION), 1);
    /* Under the epoch that was granted. */
    const placing_command *load = placing_next(&s, FK_COMMAND_LOAD_ACTIVATION);
    uint32_t slot = fk_slot_of(load->c.key.id, PLACING_SLOTS);
    uint64_t epoch = 0;
    for (size_t i = 0; i < s.events; i++) {
        bool is_it = s.event[i].e.kind == FK_PLACEMENT_SLOT_ACQUIRED && s.event[i].e.slot == slot &&
                     strcmp(s.event[i].kind, "account") == 0;
        if (is_it) epoch = s.event[i].e.epoch;
    }
    CHECK_U64(load->c.fence.epoch, epoch);
    CHECK(epoch != 0);
    placing_end_all(&s);
}

TEST(r3_5_lock_is_released)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    placing_activate(&s, placing_key("room", "1"));
    CHECK_U64(placing_said(&s, FK_COMMAND_RELEASE), 0);
    CHECK_OK(fk_placement_stop(s.p, s.now));
    uint32_t released = 0;
    for (size_t i = 0; i < s.commands; i++) {
        if (s.command[i].c.kind != FK_COMMAND_RELEASE) continue;
        released += s.command[i].c.slot_count;
        for (uint32_t k = 0; k < s.command[i].c.slot_count; k++) {
            CHECK(s.command[i].slots[k].epoch != 0);
        }
    }
    CHECK_U64(released, 2 * PLACING_SLOTS);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_RELEASED), 2 * PLACING_SLOTS);
    placing_end_all(&s);
}

TEST(r4_1_start_and_stop)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_ERR(fk_placement_stop(s.p, s.now), FK_E_STATE);
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_STOPPED);
    placing_member(&s);
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_NOT_READY);
    CHECK_ERR(fk_placement_start_member(s.p, FK_STR("a"), 2, s.now, s.now), FK_E_IDENTITY_SETUP);
    CHECK_ERR(fk_placement_start_client(s.p, s.now), FK_E_IDENTITY_SETUP);
    CHECK_OK(placing_view(&s, 1, "a"));
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_MEMBER);
    placing_grant_all(&s);
    uint64_t pid = placing_activate(&s, placing_key("room", "1"));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "2"), 1), FK_E_PENDING);
    CHECK_OK(fk_placement_stop(s.p, s.now));
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_STOPPED);
    CHECK_ERR(placing_end_of(&s, 1)->r.err, FK_E_NOT_READY);
    const placing_command *stop = placing_next(&s, FK_COMMAND_STOP_ACTIVATION);
    CHECK(stop != NULL);
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 2); /* the second may run, too */
    CHECK(stop->c.pid == pid || stop->c.pid == 0);
    /* All of that before anybody else may have the slots. */
    size_t last_stop = 0, first_release = s.commands;
    for (size_t i = 0; i < s.commands; i++) {
        if (s.command[i].c.kind == FK_COMMAND_STOP_ACTIVATION) last_stop = i;
        bool is_first = s.command[i].c.kind == FK_COMMAND_RELEASE && i < first_release;
        if (is_first) first_release = i;
    }
    CHECK(last_stop < first_release);
    CHECK_STR(placing_last(&s, FK_PLACEMENT_STATE)->reason, "stopped");
    /* Late results change nothing. */
    CHECK_ERR(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION), FK_E_NOT_FOUND);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 2), FK_E_NOT_READY);
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_CLIENT);
    placing_end_all(&s);
}

TEST(r4_4_events_are_told)
{
    static const fk_placement_event_kind ORDER[] = { FK_PLACEMENT_RESOLVED, FK_PLACEMENT_ACTIVATED,
                                                     FK_PLACEMENT_PASSIVATED,
                                                     FK_PLACEMENT_STOPPED };
    placing_begin(&s, (fk_placement_config){ .lease_ttl = FK_MINUTES(60) });
    placing_alone(&s);
    size_t before = s.events;
    fk_grain_key key = placing_key("room", "1");
    uint64_t pid = placing_activate(&s, key);
    s.now += FK_MINUTES(1);
    fk_placement_passivate_idle(s.p, s.now);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "passivated", s.now));
    CHECK_U64(s.events - before, 4);
    for (size_t i = 0; i < 4; i++) {
        CHECK(s.event[before + i].e.kind == ORDER[i]);
        CHECK_STR(s.event[before + i].key, "1");
        CHECK_STR(s.event[before + i].kind, "room");
    }
    placing_end_all(&s);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: defects that others have had, one test each. */

#include <stdio.h>
#include <string.h>

#include "support/placing.h"

static placing s;

TEST(defect_1_pending_leads_to_an_end_and_leaks_nothing)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    size_t commands = s.commands;
    uint64_t bytes = atomic_load(&s.r.bytes);
    for (uint64_t ticket = 2; ticket <= 6; ticket++) {
        CHECK_ERR(placing_resolve(&s, key, ticket), FK_E_PENDING);
    }
    CHECK_U64(s.commands, commands); /* who tries again adds a waiter, and no request */
    CHECK_U64(placing_snapshot(&s).commands_pending, 1);
    CHECK_U64(atomic_load(&s.r.bytes), bytes);
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK_U64(s.ends, 6);
    CHECK_U64(placing_snapshot(&s).commands_pending, 0);
    CHECK_OK(placing_resolve(&s, key, 7));
    placing_end_all(&s);
}

TEST(defect_1_a_lost_command_is_given_up)
{
    placing_begin(&s, (fk_placement_config){ .lease_ttl = FK_MINUTES(10) });
    placing_alone(&s);
    CHECK_ERR(placing_resolve(&s, placing_key("account", "1"), 1), FK_E_PENDING);
    placing_tick(&s, FK_SECONDS(5) - 1);
    CHECK_U64(s.ends, 0);
    CHECK_U64(fk_placement_next_deadline(s.p), s.now + 1);
    placing_tick(&s, 1);
    CHECK_ERR(placing_end_of(&s, 1)->r.err, FK_E_STORAGE);
    CHECK_U64(placing_snapshot(&s).commands_pending, 0);
    CHECK_ERR(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION), FK_E_NOT_FOUND);
    placing_end_all(&s);
}

TEST(defect_2_failed_store_is_no_activation)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_STORE_ACTIVATION), FK_VERDICT_UNKNOWN,
                            FK_E_TIMEOUT));
    CHECK_ERR(placing_end_of(&s, 1)->r.err, FK_E_STORAGE);
    CHECK_U64(placing_next(&s, FK_COMMAND_STOP_ACTIVATION)->c.pid, s.pid);
    CHECK_U64(placing_snapshot(&s).activations, 0);
    placing_end_all(&s);
}

TEST(defect_2_failed_store_of_an_active_grain_ends_it)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    uint64_t pid = placing_activate(&s, key);
    const fk_placement_result unknown = { .verdict = FK_VERDICT_UNKNOWN, .err = FK_E_STORAGE };
    CHECK_ERR(fk_placement_store_failed(s.p, key.id, pid + 1, &unknown, s.now), FK_E_NOT_FOUND);
    CHECK_OK(fk_placement_store_failed(s.p, key.id, pid, &unknown, s.now));
    CHECK_U64(placing_next(&s, FK_COMMAND_STOP_ACTIVATION)->c.pid, pid);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_STORE_FAILED), 1);
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "told", s.now));
    CHECK_U64(placing_unanswered(&s, FK_COMMAND_LOAD_ACTIVATION), 1);
    placing_end_all(&s);
}

TEST(defect_3_a_stored_row_does_not_say_who_runs)
{
    int row;
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    CHECK_ERR(placing_resolve(&s, placing_key("account", "1"), 1), FK_E_PENDING);
    fk_placement_result loaded = { .kind = FK_COMMAND_LOAD_ACTIVATION,
                                   .request_id =
                                       placing_next(&s, FK_COMMAND_LOAD_ACTIVATION)->c.request_id,
                                   .record = &row,
                                   .version = 41,
                                   .pid = 777 };
    CHECK_OK(fk_placement_handle_result(s.p, &loaded, s.now));
    CHECK_U64(s.ends, 0); /* whatever pid the row has, a new activation is made */
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    const placing_command *store = placing_next(&s, FK_COMMAND_STORE_ACTIVATION);
    CHECK_STR(store->holder, "a");
    CHECK_U64(store->c.version, 41);
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK_U64(placing_end_of(&s, 1)->r.pid, s.pid);
    placing_end_all(&s);
}

TEST(defect_4_the_lock_outlives_the_activation)
{
    placing_begin(&s, (fk_placement_config){ .lease_ttl = FK_MINUTES(10) });
    placing_alone(&s);
    fk_grain_key key = placing_key("room", "1");
    uint64_t pid = placing_activate(&s, key);
    s.now += FK_MINUTES(1);
    fk_placement_passivate_idle(s.p, s.now);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "passivated", s.now));
    CHECK_U64(placing_said(&s, FK_COMMAND_RELEASE), 0);
    CHECK_U64(placing_snapshot(&s).slots_held, 2 * PLACING_SLOTS);
    placing_activate(&s, key);
    CHECK_U64(placing_said(&s, FK_COMMAND_RELEASE), 0);
    placing_end_all(&s);
}

TEST(defect_5_what_a_release_says_is_nobodys_resolution)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "A")); /* it alone, and on its way out */
    CHECK_OK(placing_view(&s, 2, "a"));
    placing_grant_all(&s);
    placing_activate(&s, placing_key("room", "1"));
    CHECK_OK(placing_view(&s, 3, "A"));
    CHECK_OK(fk_placement_stopped(s.p, placing_key("room", "1").id, s.pid, "moved", s.now));
    CHECK(placing_unanswered(&s, FK_COMMAND_RELEASE) > 0);
    CHECK_OK(
        placing_answer(&s, placing_next(&s, FK_COMMAND_RELEASE), FK_VERDICT_UNKNOWN, FK_E_TIMEOUT));
    CHECK(!fk_placement_is_drained(s.p)); /* nobody knows: it is asked again */
    for (int i = 0; i < 50 && !fk_placement_is_drained(s.p); i++) {
        placing_grant_all(&s);
        while (placing_next(&s, FK_COMMAND_RELEASE) != NULL) {
            CHECK_OK(placing_ok(&s, FK_COMMAND_RELEASE));
        }
        placing_tick(&s, FK_MILLIS(40));
    }
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(defect_6_what_ends_here_is_stopped_here)
{
    placing_begin(&s, (fk_placement_config){ .lease_ttl = FK_MINUTES(10) });
    placing_alone(&s);
    fk_grain_key key = placing_key("room", "1"), other = placing_key("account", "1");
    uint64_t pid = placing_activate(&s, key);
    placing_activate(&s, other); /* of a kind without a time to live */
    fk_placement_passivate_idle(s.p, s.now + FK_SECONDS(59));
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 0);
    s.now += FK_SECONDS(30);
    fk_placement_touch(s.p, key.id, s.now);
    s.now += FK_SECONDS(59);
    fk_placement_passivate_idle(s.p, s.now);
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 0);
    s.now += FK_SECONDS(1);
    fk_placement_passivate_idle(s.p, s.now);
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 1);
    const placing_command *stop = placing_next(&s, FK_COMMAND_STOP_ACTIVATION);
    CHECK_U64(stop->c.pid, pid);
    CHECK(strcmp(stop->c.reason, "passivated") == 0);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_PASSIVATED), 1);
    CHECK_U64(placing_snapshot(&s).stopping, 1);
    /* A view that moves the rest stops the rest. */
    CHECK_OK(placing_view(&s, 2, "Ab"));
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 2);
    placing_end_all(&s);
}

/* 7: that the interfaces can be implemented is shown by every test here, and by the stores. */
TEST(defect_7_every_command_can_be_answered)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    placing_activate(&s, placing_key("account", "1"));
    placing_tick(&s, FK_SECONDS(1));
    CHECK_OK(placing_ok(&s, FK_COMMAND_RENEW_MEMBER));
    CHECK_OK(placing_view(&s, 2, "Ab"));
    CHECK_OK(fk_placement_stopped(s.p, placing_key("account", "1").id, s.pid, "moved", s.now));
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    }
    CHECK(fk_placement_is_drained(s.p));
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_TRANSFERRED), 2 * PLACING_SLOTS);
    placing_end_all(&s);
}

static void same_score_build(const fk_candidate *candidates, uint32_t count, uint32_t slots,
                             uint32_t *owner, uint64_t *score)
{
    for (uint32_t i = 0; i < slots; i++) {
        owner[i] = count != 0 ? 0 : FK_NOBODY; /* all tie: the first in the order of the ids */
        score[i] = count != 0 ? candidates[0].seed : 0;
    }
}

static void same_score_change(const fk_candidate *candidates, uint32_t count, uint32_t index,
                              uint32_t slots, uint32_t *owner, uint64_t *score)
{
    (void)index;
    same_score_build(candidates, count, slots, owner, score);
}

TEST(defect_8_ties_do_not_depend_on_the_order_of_members)
{
    static const fk_strategy_ops SAME = { "same", same_score_build, same_score_change,
                                          same_score_change };
    static const char *const ORDERS[] = { "abc", "cba", "bca", "cab" };
    for (size_t i = 0; i < 4; i++) {
        placing_begin(&s, (fk_placement_config){ .strategy = &SAME });
        CHECK_OK(fk_placement_start_client(s.p, s.now));
        CHECK_OK(placing_view(&s, 1, ORDERS[i]));
        CHECK_OK(placing_resolve(&s, placing_key("room", "1"), 1));
        CHECK(s.got.authority.ptr[0] == 'a');
        placing_end_all(&s);
    }
}

/* The largest share of the members at these ports, in thousandths of the mean. */
static uint32_t largest_share(const char *format, unsigned port)
{
    enum { MEMBERS = 10, SLOTS = FK_SLOTS_DEFAULT };
    static const fk_str KIND = { "account", 7 };
    static char id[MEMBERS][32];
    uint32_t share[MEMBERS] = { 0 }, largest = 0;
    fk_member member[MEMBERS];
    placing_begin(&s, (fk_placement_config){ .slots = SLOTS });
    CHECK_OK(fk_placement_start_client(s.p, s.now));
    for (unsigned i = 0; i < MEMBERS; i++) {
        snprintf(id[i], sizeof(id[i]), format, port + i);
        member[i] = (fk_member){ .id = fk_str_of(id[i]),
                                 .incarnation = 1,
                                 .kinds = &KIND,
                                 .kind_count = 1,
                                 .weight = 1,
                                 .status = FK_MEMBER_UP };
    }
    CHECK_OK(fk_placement_update_topology(s.p, &(fk_view){ 1, member, MEMBERS }, s.now));
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        fk_grain_key key = { .kind = KIND, .key = KIND, .id = { 1, slot } };
        fk_member out;
        CHECK_OK(fk_placement_owner(s.p, &key, &out, NULL));
        uint32_t now = ++share[out.id.ptr[out.id.len - 1] - '0'];
        if (now > largest) largest = now;
    }
    for (unsigned i = 0; i < MEMBERS; i++) CHECK(share[i] > 0);
    placing_end_all(&s);
    return (uint32_t)((uint64_t)largest * MEMBERS * 1000 / SLOTS);
}

TEST(defect_8_ports_of_one_host_share_evenly)
{
    CHECK(largest_share("bank@127.0.0.1:%u", 9000) <= 1050);
}

TEST(defect_9_a_slot_moves_when_what_ran_has_ended)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    uint64_t pid = placing_activate(&s, key);
    CHECK_OK(placing_view(&s, 2, "Ab"));
    CHECK_U64(placing_next(&s, FK_COMMAND_STOP_ACTIVATION)->c.pid, pid);
    for (int i = 0; i < 20; i++) { /* all others go */
        while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
            CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
        }
        placing_tick(&s, FK_MILLIS(10));
    }
    CHECK_U64(placing_snapshot(&s).slots_held, 1);
    CHECK_U64(placing_snapshot(&s).slots_draining, 1);
    CHECK(!fk_placement_is_drained(s.p));
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING); /* nobody runs it meanwhile */
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 1);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "moved", s.now));
    CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    CHECK(fk_placement_is_drained(s.p));
    CHECK(placing_end_of(&s, 1)->r.locality == FK_LOCALITY_REMOTE);
    CHECK_STR(placing_end_of(&s, 1)->authority, "b");
    placing_end_all(&s);
}

/* Whoever calls may have an older view, or a newer one: what counts is this member's own. */
TEST(defect_10_who_does_not_own_a_key_does_not_activate_it)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 5, "ab"));
    placing_grant_all(&s);
    fk_grain_key key = placing_key_of(&s, "account", "b", 0);
    CHECK_OK(placing_view(&s, 4, "a")); /* older: changes nothing */
    CHECK_OK(placing_resolve(&s, key, 7));
    CHECK(s.got.locality == FK_LOCALITY_REMOTE);
    fk_placement_expect_view(s.p, 6, s.now); /* the caller has heard of it */
    for (uint64_t ticket = 1; ticket <= 5; ticket++) {
        fk_err err = placing_resolve(&s, key, ticket);
        CHECK(err == FK_OK || err == FK_E_PENDING);
        if (err == FK_OK) CHECK(s.got.locality == FK_LOCALITY_REMOTE);
        placing_tick(&s, FK_MILLIS(10));
    }
    CHECK_U64(placing_said(&s, FK_COMMAND_LOAD_ACTIVATION), 0);
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 0);
    CHECK_OK(placing_view(&s, 6, "a"));
    CHECK_ERR(placing_resolve(&s, key, 6), FK_E_PENDING);         /* it is its now */
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 0); /* the lock says when */
    placing_grant_all(&s);
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION));
    CHECK_U64(placing_said(&s, FK_COMMAND_ENSURE_ACTIVATION), 1);
    placing_end_all(&s);
}

TEST(defect_11_the_end_of_somebody_unknown_changes_nothing)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1"), other = placing_key("account", "2");
    CHECK_ERR(fk_placement_stopped(s.p, key.id, 7, "?", s.now), FK_E_NOT_FOUND);
    uint64_t pid = placing_activate(&s, key);
    size_t commands = s.commands, events = s.events;
    CHECK_ERR(fk_placement_stopped(s.p, other.id, pid, "?", s.now), FK_E_NOT_FOUND);
    CHECK_ERR(fk_placement_stopped(s.p, key.id, pid + 1, "?", s.now), FK_E_NOT_FOUND);
    CHECK_ERR(fk_placement_stopped(s.p, key.id, 0, "?", s.now), FK_E_NOT_FOUND);
    CHECK_U64(s.commands, commands);
    CHECK_U64(s.events, events);
    CHECK_U64(placing_snapshot(&s).activations, 1);
    CHECK_OK(placing_resolve(&s, key, 1));
    CHECK_U64(s.got.pid, pid);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "by itself", s.now));
    CHECK_ERR(fk_placement_stopped(s.p, key.id, pid, "by itself", s.now), FK_E_NOT_FOUND);
    CHECK_U64(placing_snapshot(&s).activations, 0);
    placing_end_all(&s);
}

/* 12, and of 13 the names: in test_requirements_settings.c. */
TEST(defect_13_a_lost_lease_stops_what_runs)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1"), room = placing_key("room", "1");
    placing_activate(&s, key);
    placing_activate(&s, room);
    fk_time deadline = fk_placement_lease_deadline(s.p);
    while (s.now < deadline) { /* nobody answers */
        CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 0);
        placing_tick(&s, FK_MILLIS(50));
    }
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 2);
    CHECK_U64(fk_placement_lease_deadline(s.p), 0);
    CHECK_U64(placing_snapshot(&s).slots_held, 0);
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_NOT_READY);
    placing_end_all(&s);
}

TEST(defect_14_ports_share_evenly_whatever_the_name)
{
    CHECK(largest_share("node-%u", 2550) <= 1050);
    CHECK(largest_share("fraktor.tcp://s@10.0.0.1:%u", 4000) <= 1050);
    CHECK(largest_share("%u", 50000) <= 1050);
}

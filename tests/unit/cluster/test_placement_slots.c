/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: slots that come and go. */

#include <string.h>

#include "support/placing.h"

static placing s;

TEST(slots_are_acquired_before_anybody_asks)
{
    placing_begin(&s, (fk_placement_config){ .acquire_batch = 3 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    CHECK_U64(placing_unanswered(&s, FK_COMMAND_TRY_ACQUIRE), 2); /* no more at a time */
    CHECK_U64(placing_next(&s, FK_COMMAND_TRY_ACQUIRE)->c.slot_count, 3);
    placing_grant_all(&s);
    CHECK_U64(placing_snapshot(&s).slots_held, 2 * PLACING_SLOTS);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_ACQUIRED), 2 * PLACING_SLOTS);
    CHECK_U64(placing_said(&s, FK_COMMAND_TRY_ACQUIRE), 2 * ((PLACING_SLOTS + 2) / 3));
    placing_end_all(&s);
}

TEST(slots_somebody_waits_for_come_first)
{
    placing_begin(&s, (fk_placement_config){ .acquire_batch = 1 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    /* One that is not among the two that are asked for. */
    static char text[2] = "0"; /* lent to the key */
    fk_grain_key key = placing_key("account", text);
    for (; text[0] < 'z'; text[0]++) {
        key = placing_key("account", text);
        uint32_t slot = fk_slot_of(key.id, PLACING_SLOTS);
        if (slot != s.command[0].slots[0].slot && slot != s.command[1].slots[0].slot) break;
    }
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    CHECK_OK(placing_ok(&s, FK_COMMAND_TRY_ACQUIRE));
    CHECK_U64(s.command[s.commands - 1].slots[0].slot, fk_slot_of(key.id, PLACING_SLOTS));
    placing_end_all(&s);
}

TEST(slots_of_unknown_outcome_are_asked_for_again)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    while (placing_next(&s, FK_COMMAND_TRY_ACQUIRE) != NULL) {
        CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_TRY_ACQUIRE), FK_VERDICT_UNKNOWN,
                                FK_E_STORAGE));
    }
    /* Even if another owns them by now: the lock may have given them to us. */
    CHECK_OK(placing_view(&s, 2, "b"));
    placing_tick(&s, FK_MILLIS(200));
    CHECK(placing_next(&s, FK_COMMAND_TRY_ACQUIRE) != NULL);
    placing_grant_all(&s);
    CHECK(placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL);
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_STR(placing_next(&s, FK_COMMAND_TRANSFER_SLOT)->to, "b");
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    }
    CHECK_U64(placing_snapshot(&s).slots_held, 0);
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(slots_are_handed_over_when_nothing_of_them_runs)
{
    fk_grain_key key = placing_key("account", "1");
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    uint64_t pid = placing_activate(&s, key);
    CHECK_ERR(placing_resolve(&s, placing_key("account", "2"), 1), FK_E_PENDING); /* loading */
    CHECK_OK(placing_view(&s, 2, "b"));
    uint32_t slot = fk_slot_of(key.id, PLACING_SLOTS);
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 1);
    for (size_t i = 0; i < s.commands; i++) {
        bool is_transfer = s.command[i].c.kind == FK_COMMAND_TRANSFER_SLOT &&
                           strcmp(s.command[i].kind, "account") == 0;
        for (uint32_t k = 0; is_transfer && k < s.command[i].c.slot_count; k++) {
            CHECK(s.command[i].slots[k].slot != slot);
            CHECK(s.command[i].slots[k].epoch != 0);
        }
    }
    CHECK_U64(placing_snapshot(&s).slots_draining, 2 * PLACING_SLOTS);
    CHECK_ERR(placing_resolve(&s, key, 2), FK_E_PENDING); /* neither here nor there */
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    }
    CHECK_STR(placing_end_of(&s, 1)->authority, "b"); /* nothing of that one had begun */
    CHECK(placing_end_of(&s, 2) == NULL);
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "moved", s.now));
    CHECK_U64(placing_unanswered(&s, FK_COMMAND_TRANSFER_SLOT), 1);
    CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    CHECK_OK(placing_end_of(&s, 2)->r.err);
    CHECK_STR(placing_end_of(&s, 2)->authority, "b");
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_TRANSFERRED), 2 * PLACING_SLOTS);
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(slots_drain_a_few_at_a_time)
{
    placing_begin(&s, (fk_placement_config){ .drain_batch = 4 });
    placing_alone(&s);
    CHECK_OK(placing_view(&s, 2, "b"));
    CHECK_U64(placing_snapshot(&s).slots_draining, 4);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 4);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_PENDING);
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK(placing_snapshot(&s).slots_draining <= 4);
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
        while (placing_next(&s, FK_COMMAND_STOP_ACTIVATION) != NULL) {
            placing_next(&s, FK_COMMAND_STOP_ACTIVATION)->is_answered = true;
            (void)fk_placement_stopped(s.p, placing_key("room", "1").id, 0, "moved", s.now);
        }
    }
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(slots_that_are_not_handed_over_yet_can_stay)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_grain_key key = placing_key("account", "1");
    uint64_t pid = placing_activate(&s, key);
    CHECK_OK(placing_view(&s, 2, "b"));
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    CHECK_OK(placing_view(&s, 3, "a"));
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "moved", s.now));
    CHECK_OK(placing_ok(&s, FK_COMMAND_LOAD_ACTIVATION)); /* served here again */
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_ok(&s, FK_COMMAND_STORE_ACTIVATION));
    CHECK(placing_end_of(&s, 1)->r.locality == FK_LOCALITY_LOCAL);
    placing_end_all(&s);
}

TEST(slots_whose_hand_over_fails_are_asked_for)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    CHECK_OK(placing_view(&s, 2, "b"));
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_TRANSFER_SLOT), FK_VERDICT_REFUSED,
                                FK_E_NOT_FOUND));
    }
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_LOST), 2 * PLACING_SLOTS);
    CHECK_U64(placing_snapshot(&s).slots_held, 0);
    CHECK_OK(placing_resolve(&s, placing_key("room", "1"), 1)); /* the table says who */
    placing_tick(&s, FK_MILLIS(200));
    placing_grant_all(&s);
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    }
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(slots_that_others_hand_over_are_held_at_once)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    fk_grain_key key = placing_key_of(&s, "room", "a", 0);
    CHECK_ERR(placing_resolve(&s, key, 1), FK_E_PENDING);
    fk_slot_claim claim = { .slot = fk_slot_of(key.id, PLACING_SLOTS), .epoch = 500 };
    CHECK_ERR(fk_placement_transferred(s.p, FK_STR("room"), 2, &claim, 1, s.now), FK_E_NOT_READY);
    CHECK_ERR(fk_placement_transferred(s.p, FK_STR("cinema"), 1, &claim, 1, s.now),
              FK_E_UNKNOWN_KIND);
    CHECK_OK(fk_placement_transferred(s.p, FK_STR("room"), 1, &claim, 1, s.now));
    CHECK_U64(placing_snapshot(&s).slots_held, 1);
    CHECK_U64(placing_next(&s, FK_COMMAND_ENSURE_ACTIVATION)->c.fence.epoch, 500);
    /* What the lock says late about it is older. */
    while (placing_next(&s, FK_COMMAND_TRY_ACQUIRE) != NULL) CHECK_OK(placing_refuse(&s, "b", 1));
    CHECK_U64(placing_snapshot(&s).slots_held, 1);
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_U64(placing_end_of(&s, 1)->r.epoch, 500);
    /* Given on, and heard of once more. */
    CHECK_OK(placing_view(&s, 2, "b"));
    CHECK_OK(fk_placement_stopped(s.p, key.id, s.pid, "moved", s.now));
    s.epoch = 500;
    CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    CHECK_OK(fk_placement_transferred(s.p, FK_STR("room"), 1, &claim, 1, s.now));
    CHECK_U64(placing_snapshot(&s).slots_held, 0);
    placing_end_all(&s);
}

TEST(slots_that_a_newer_view_gave_are_not_given_back_by_an_older_one)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    fk_grain_key key = placing_key_of(&s, "room", "b", 0);
    fk_slot_claim claim = { .slot = fk_slot_of(key.id, PLACING_SLOTS), .epoch = 500 };
    fk_placement_expect_view(s.p, 3, s.now); /* b has it, and drains */
    fk_placement_expect_view(s.p, 2, s.now); /* that is known already */
    CHECK_OK(fk_placement_transferred(s.p, FK_STR("room"), 1, &claim, 1, s.now));
    CHECK_OK(placing_view(&s, 2, "abc"));
    CHECK_U64(placing_snapshot(&s).slots_held, 1);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 0);
    CHECK_OK(placing_view(&s, 3, "a"));
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 0);
    CHECK_OK(placing_view(&s, 4, "ab"));
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 1);
    CHECK_U64(placing_said(&s, FK_COMMAND_TRANSFER_SLOT), 1);
    placing_end_all(&s);
}

TEST(slots_go_by_the_view_that_is_there_when_no_newer_one_comes)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    fk_grain_key key = placing_key_of(&s, "room", "b", 0);
    fk_slot_claim claim = { .slot = fk_slot_of(key.id, PLACING_SLOTS), .epoch = 500 };
    fk_placement_expect_view(s.p, 9, s.now);
    CHECK_OK(fk_placement_transferred(s.p, FK_STR("room"), 1, &claim, 1, s.now));
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 0);
    fk_placement_expect_view(s.p, 0, s.now);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_DRAINING), 1);
    placing_end_all(&s);
}

TEST(slots_are_given_away_when_drained)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "ab"));
    placing_grant_all(&s);
    CHECK(placing_snapshot(&s).slots_held > 0);
    CHECK_OK(fk_placement_drain(s.p, s.now));
    while (placing_next(&s, FK_COMMAND_TRANSFER_SLOT) != NULL) {
        CHECK_STR(placing_next(&s, FK_COMMAND_TRANSFER_SLOT)->to, "b");
        CHECK_OK(placing_ok(&s, FK_COMMAND_TRANSFER_SLOT));
    }
    CHECK(fk_placement_is_drained(s.p));
    CHECK_OK(placing_view(&s, 2, "ab")); /* the view does not know it yet */
    CHECK(placing_next(&s, FK_COMMAND_TRY_ACQUIRE) == NULL);
    placing_end_all(&s);
}

TEST(slots_nobody_is_there_for_are_released_and_nobody_waits)
{
    fk_grain_key key = placing_key("account", "1");
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    uint64_t pid = placing_activate(&s, key);
    CHECK_OK(fk_placement_drain(s.p, s.now));
    CHECK_ERR(placing_resolve(&s, key, 2), FK_E_PENDING); /* it stops */
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "moved", s.now));
    while (placing_next(&s, FK_COMMAND_RELEASE) != NULL) {
        CHECK_OK(placing_ok(&s, FK_COMMAND_RELEASE));
    }
    CHECK_ERR(placing_end_of(&s, 2)->r.err, FK_E_NOT_READY); /* at once */
    CHECK_ERR(placing_resolve(&s, key, 3), FK_E_NOT_READY);
    CHECK(fk_placement_is_drained(s.p));
    placing_end_all(&s);
}

TEST(slots_kinds_that_the_view_does_not_have_yet_are_waited_for)
{
    placing_begin(&s, (fk_placement_config){ .command_timeout = FK_SECONDS(1) });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    placing_grant_all(&s);
    fk_activated_kind late = { .name = FK_STR("cinema") };
    CHECK_ERR(placing_resolve(&s, placing_key("cinema", "1"), 1), FK_E_UNKNOWN_KIND);
    CHECK_OK(fk_placement_add_kind(s.p, &late, s.now));
    CHECK_ERR(placing_resolve(&s, placing_key("cinema", "1"), 2), FK_E_PENDING);
    placing_tick(&s, FK_SECONDS(1));
    CHECK_ERR(placing_end_of(&s, 2)->r.err, FK_E_NOT_READY);
    CHECK_ERR(placing_resolve(&s, placing_key("cinema", "1"), 3), FK_E_PENDING);
    fk_str kinds[] = { FK_STR("account"), FK_STR("room"), FK_STR("cinema") };
    fk_member self = { FK_STR("a"), 1, FK_STR("a"), kinds, 3, 1, FK_MEMBER_UP };
    CHECK_OK(fk_placement_update_topology(s.p, &(fk_view){ 2, &self, 1 }, s.now));
    placing_grant_all(&s);
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_end_of(&s, 3)->r.err);
    placing_end_all(&s);
}

TEST(slots_limits_are_kept)
{
    placing_begin(&s, (fk_placement_config){ .waiters_max = 3, .activations_max = 2 });
    placing_alone(&s);
    fk_grain_key key = placing_key("room", "1");
    for (uint64_t i = 1; i <= 3; i++) CHECK_ERR(placing_resolve(&s, key, i), FK_E_PENDING);
    CHECK_ERR(placing_resolve(&s, key, 4), FK_E_OVERLOADED);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "2"), 5), FK_E_PENDING);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "3"), 6), FK_E_OVERLOADED);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_REFUSED), 2);
    CHECK_OK(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION));
    CHECK_OK(placing_resolve(&s, key, 7));
    CHECK_OK(fk_placement_stopped(s.p, key.id, s.pid, "itself", s.now));
    CHECK_ERR(fk_placement_stopped(s.p, key.id, s.pid, "itself", s.now), FK_E_NOT_FOUND);
    CHECK_ERR(placing_resolve(&s, placing_key("room", "3"), 8), FK_E_PENDING);
    placing_end_all(&s);
}

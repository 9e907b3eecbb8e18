/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Placement: the lease of a member, and what ends with it. */

#include <string.h>

#include "support/placing.h"

static placing s;

enum { TTL_MS = 3000 };

/* By the header's words: 3 s, minus 2000 ppm of it, minus a tenth of it. */
static const fk_time LIFE = FK_MILLIS(TTL_MS) - FK_MICROS(6000) - FK_MILLIS(TTL_MS / 10);

TEST(lease_is_counted_from_when_it_was_asked_for)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    CHECK_U64(fk_placement_lease_deadline(s.p), 0);
    CHECK_OK(fk_placement_start_member(s.p, FK_STR("a"), 1, s.now - FK_MILLIS(200), s.now));
    CHECK_U64(fk_placement_lease_deadline(s.p), s.now - FK_MILLIS(200) + LIFE);
    placing_end_all(&s);
}

TEST(lease_renewal_counts_from_its_sending)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    CHECK_U64(fk_placement_next_deadline(s.p), s.now + FK_SECONDS(1));
    placing_tick(&s, FK_SECONDS(1) - 1);
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 0);
    placing_tick(&s, 1);
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 1);
    fk_time sent = s.now;
    placing_tick(&s, FK_MILLIS(600)); /* the answer takes its time */
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 1);
    CHECK_OK(placing_ok(&s, FK_COMMAND_RENEW_MEMBER));
    CHECK_U64(fk_placement_lease_deadline(s.p), sent + LIFE);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_LEASE_RENEWED), 1);
    placing_tick(&s, FK_MILLIS(400)); /* a third after it was asked for */
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 2);
    placing_end_all(&s);
}

TEST(lease_renewal_of_unknown_outcome_is_tried_again)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    fk_time deadline = fk_placement_lease_deadline(s.p);
    placing_tick(&s, FK_SECONDS(1));
    CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_RENEW_MEMBER), FK_VERDICT_UNKNOWN,
                            FK_E_STORAGE));
    CHECK_U64(fk_placement_lease_deadline(s.p), deadline);
    placing_tick(&s, FK_MILLIS(249));
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 1);
    placing_tick(&s, FK_MILLIS(1));
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 2);
    /* This time there is no answer at all: it comes too late, and another is under way. */
    placing_command *silent = placing_next(&s, FK_COMMAND_RENEW_MEMBER);
    placing_tick(&s, FK_MILLIS(750));
    placing_tick(&s, FK_MILLIS(250));
    CHECK_U64(placing_said(&s, FK_COMMAND_RENEW_MEMBER), 3);
    CHECK_ERR(placing_answer(&s, silent, FK_VERDICT_OK, FK_OK), FK_E_NOT_FOUND);
    CHECK_U64(fk_placement_lease_deadline(s.p), deadline);
    CHECK_OK(placing_ok(&s, FK_COMMAND_RENEW_MEMBER));
    CHECK_U64(fk_placement_lease_deadline(s.p), s.now + LIFE);
    placing_end_all(&s);
}

static void check_lost(uint64_t pid)
{
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_LEASE_LOST), 1);
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_SLOT_LOST), 2 * PLACING_SLOTS);
    CHECK_U64(fk_placement_lease_deadline(s.p), 0);
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_NOT_READY);
    CHECK_U64(placing_snapshot(&s).slots_held, 0);
    CHECK_U64(placing_snapshot(&s).stopping, 2);
    CHECK_U64(placing_said(&s, FK_COMMAND_STOP_ACTIVATION), 2);
    const placing_command *stop = placing_next(&s, FK_COMMAND_STOP_ACTIVATION);
    CHECK(strcmp(stop->c.reason, "lease lost") == 0);
    CHECK(stop->c.pid == pid || stop->c.pid == 0);
    CHECK_ERR(placing_end_of(&s, 1)->r.err, FK_E_NOT_READY);
    CHECK_U64(placing_said(&s, FK_COMMAND_RELEASE), 0);
    CHECK_U64(placing_said(&s, FK_COMMAND_STORE_ACTIVATION), 1); /* that of the activation */
}

/* A durable grain that is active, and one that is being started. */
static uint64_t with_grains(void)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_alone(&s);
    uint64_t pid = placing_activate(&s, placing_key("account", "1"));
    CHECK_ERR(placing_resolve(&s, placing_key("room", "1"), 1), FK_E_PENDING);
    return pid;
}

TEST(lease_over_by_the_own_clock_stops_everything)
{
    uint64_t pid = with_grains();
    s.now = fk_placement_lease_deadline(s.p) - 1;
    CHECK_OK(placing_resolve(&s, placing_key("account", "1"), 2));
    s.now++;
    /* No tick has come: whatever comes first notices. */
    CHECK_ERR(placing_resolve(&s, placing_key("account", "1"), 3), FK_E_NOT_READY);
    check_lost(pid);
    CHECK_ERR(placing_ok(&s, FK_COMMAND_ENSURE_ACTIVATION), FK_E_NOT_FOUND);
    placing_end_all(&s);
}

TEST(lease_that_is_refused_stops_everything)
{
    uint64_t pid = with_grains();
    placing_tick(&s, FK_SECONDS(1));
    CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_RENEW_MEMBER), FK_VERDICT_REFUSED,
                            FK_E_FENCED));
    check_lost(pid);
    placing_end_all(&s);
}

TEST(lease_that_the_lock_refuses_stops_everything)
{
    placing_begin(&s, (fk_placement_config){ 0 });
    placing_member(&s);
    CHECK_OK(placing_view(&s, 1, "a"));
    CHECK_OK(placing_answer(&s, placing_next(&s, FK_COMMAND_TRY_ACQUIRE), FK_VERDICT_REFUSED,
                            FK_E_FENCED));
    CHECK_U64(placing_happened(&s, FK_PLACEMENT_LEASE_LOST), 1);
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_NOT_READY);
    placing_end_all(&s);
}

TEST(lease_lost_is_followed_by_a_new_life)
{
    uint64_t pid = with_grains();
    fk_grain_key key = placing_key("account", "1");
    placing_tick(&s, FK_SECONDS(10));
    check_lost(pid);
    CHECK_ERR(fk_placement_start_member(s.p, FK_STR("a"), 1, s.now, s.now), FK_E_IDENTITY_SETUP);
    CHECK_OK(fk_placement_start_member(s.p, FK_STR("a"), 2, s.now, s.now));
    CHECK(placing_snapshot(&s).state == FK_PLACEMENT_STATE_MEMBER); /* the view is still there */
    /* The view has the former life: nobody, until there is a newer one. */
    CHECK_ERR(placing_resolve(&s, key, 5), FK_E_PENDING);
    fk_str kinds[] = { FK_STR("account"), FK_STR("room") };
    fk_member self = { FK_STR("a"), 2, FK_STR("a"), kinds, 2, 1, FK_MEMBER_UP };
    CHECK_OK(fk_placement_update_topology(s.p, &(fk_view){ 2, &self, 1 }, s.now));
    placing_grant_all(&s);
    CHECK_U64(placing_snapshot(&s).slots_held, 2 * PLACING_SLOTS);
    CHECK(placing_next(&s, FK_COMMAND_LOAD_ACTIVATION) == NULL); /* the old one still stops */
    CHECK_OK(fk_placement_stopped(s.p, key.id, pid, "lease lost", s.now));
    const placing_command *load = placing_next(&s, FK_COMMAND_LOAD_ACTIVATION);
    CHECK(load != NULL);
    CHECK_U64(load->c.fence.incarnation, 2);
    placing_end_all(&s);
}

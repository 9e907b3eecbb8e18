/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The uid of a system that was quarantined does not come back. */

#include "support/desk.h"

static desk d;

#define DAY FK_MINUTES(24 * 60)

static void check_refused_again(fk_association from)
{
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_UID);
    desk_check_change(&d, from, QUARANTINE, FK_AUTHORITY_REASON_OLD_UID);
}

TEST(uid_is_refused_while_its_quarantine_lasts)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(fk__authority_refuses(d.a, 1));
    CHECK(!fk__authority_refuses(d.a, 2));
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_UID);
    CHECK(!d.fx.has_change);
    desk_fini(&d);
}

TEST(uid_is_refused_after_the_quarantine_has_ended_by_time)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    for (int i = 0; i < 3; i++) { /* as often as it tries */
        desk_tick(&d);
        desk_check_change(&d, QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED);
        desk_defer(&d, 2);
        desk_attempt(&d);
        check_refused_again(UNRESOLVED);
        CHECK_U64(d.fx.refused.count, 2);
        CHECK(fk__authority_next(&d.table) == d.now + FK_QUARANTINE_DEFAULT);
    }
    desk_fini(&d);
}

TEST(uid_is_refused_after_an_override)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, false) == DONE);
    desk_attempt(&d);
    check_refused_again(CONNECTED);
    desk_fini(&d);
}

TEST(uid_comes_back_after_an_override_by_force_which_says_so)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, true) == DONE);
    CHECK_U64(d.fx.uid_forgiven, 1);
    CHECK(!fk__authority_refuses(d.a, 1));
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK(d.a->is_open);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 1) == DONE); /* and may be quarantined again */
    CHECK(fk__authority_refuses(d.a, 1));
    desk_fini(&d);
}

TEST(uid_by_force_forgives_the_last_one_only)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_handshake(&d, 2) == DONE);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_NOTICE, 2) == DONE);
    CHECK(desk_override(&d, true) == DONE);
    CHECK_U64(d.fx.uid_forgiven, 2);
    CHECK(fk__authority_refuses(d.a, 1));
    desk_attempt(&d);
    check_refused_again(CONNECTED);
    desk_fini(&d);
}

TEST(uid_of_a_peer_that_was_given_up_is_quarantined)
{
    desk_init(&d, &(fk_authority_config){ .give_up_after = FK_SECONDS(1) });
    desk_open(&d, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    while (d.a->state == UNRESOLVED) {
        desk_tick(&d);
        if (d.fx.must_connect) CHECK(desk_failed(&d) == DONE);
    }
    desk_check_change(&d, UNRESOLVED, QUARANTINE, FK_AUTHORITY_REASON_GAVE_UP);
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_UID);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_fini(&d);
}

TEST(uid_of_a_late_word_does_not_end_a_living_association)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_handshake(&d, 2) == DONE);
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_UID);
    CHECK(!d.fx.has_change);
    CHECK_U64(d.a->uid, 2);
    CHECK(d.a->is_open);
    desk_fini(&d);
}

/* ---- the bound ----------------------------------------------------------------------------- */

/* Restarts and is quarantined. */
static fk_authority_result restart(uint64_t uid)
{
    fk_authority_result result = desk_handshake(&d, uid);
    if (result == DONE) CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, uid) == DONE);
    return result;
}

TEST(uids_many_are_remembered)
{
    desk_init(&d, NULL);
    desk_map(&d);
    for (uint64_t uid = 1; uid <= 1024; uid++) CHECK(restart(uid) == DONE);
    for (uint64_t uid = 1; uid <= 1024; uid++) {
        CHECK(desk_handshake(&d, uid) == FK_AUTHORITY_RESULT_UID);
    }
    desk_fini(&d);
}

TEST(uids_full_of_young_ones_lets_no_new_one_in)
{
    desk_init(&d, &(fk_authority_config){ .uids_max = 3, .quarantine = FK_SECONDS(1) });
    desk_map(&d);
    for (uint64_t uid = 1; uid <= 3; uid++) {
        CHECK(restart(uid) == DONE);
        d.now += DAY;
    }
    CHECK(desk_handshake(&d, 4) == FK_AUTHORITY_RESULT_LIMIT);
    CHECK(d.a->state == QUARANTINE);
    d.now += 2 * DAY - 1; /* the first has been there for 5 days but a moment */
    CHECK(desk_handshake(&d, 4) == FK_AUTHORITY_RESULT_LIMIT);
    d.now++;
    CHECK(desk_handshake(&d, 4) == DONE);
    CHECK_U64(d.fx.uid_forgotten, 1);
    CHECK(!fk__authority_refuses(d.a, 1));
    CHECK(fk__authority_refuses(d.a, 2));
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 4) == DONE);
    CHECK_U64(d.a->quarantined.count, 3);
    desk_fini(&d);
}

TEST(uids_full_counts_as_a_failed_attempt)
{
    desk_init(&d, &(fk_authority_config){ .uids_max = 1, .quarantine = FK_SECONDS(1) });
    desk_quarantined(&d, 1);
    desk_tick(&d);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 2) == FK_AUTHORITY_RESULT_LIMIT);
    CHECK(d.a->state == UNRESOLVED);
    CHECK(!d.a->is_attempting);
    desk_attempt(&d); /* after a while */
    desk_fini(&d);
}

/* ---- the set by itself --------------------------------------------------------------------- */

TEST(uids_set_keeps_order_and_refreshes)
{
    rig r;
    fk_mem mem;
    fk_uids uids = { NULL, 0, 0 };
    fk_uids_limit limit = { 2, 100 };
    uint64_t forgotten = 9;
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    CHECK(!fk__uids_remove(&uids, 1));
    CHECK_OK(fk__uids_reserve(&uids, &mem, limit, 0, &forgotten));
    CHECK_U64(forgotten, 0);
    fk__uids_add(&uids, 1, 0);
    fk__uids_add(&uids, 1, 5); /* counts from now */
    CHECK_U64(uids.count, 1);
    CHECK_OK(fk__uids_reserve(&uids, &mem, limit, 10, &forgotten));
    fk__uids_add(&uids, 2, 10);
    CHECK_ERR(fk__uids_reserve(&uids, &mem, limit, 104, &forgotten), FK_E_LIMIT);
    fk__uids_add(&uids, 1, 104); /* is there: needs no room */
    CHECK_ERR(fk__uids_reserve(&uids, &mem, limit, 109, &forgotten), FK_E_LIMIT);
    CHECK_OK(fk__uids_reserve(&uids, &mem, limit, 110, &forgotten));
    CHECK_U64(forgotten, 2);
    CHECK(fk__uids_has(&uids, 1));
    CHECK(!fk__uids_has(&uids, 2));
    fk__uids_fini(&uids, &mem);
    rig_check_empty(&r);
}

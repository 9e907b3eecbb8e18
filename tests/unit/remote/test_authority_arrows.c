/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every arrow of the graph, and what becomes of envelopes on the way. */

#include "support/desk.h"

static desk d;

/* ---- R2.4, R4.1: nobody is there yet ------------------------------------------------------- */

TEST(r4_1_a_new_authority_is_unresolved_and_says_so)
{
    fk_authority *again;
    desk_init(&d, NULL);
    desk_check_change(&d, UNRESOLVED, UNRESOLVED, FK_AUTHORITY_REASON_CREATED);
    CHECK(d.fx.authority == d.a);
    CHECK(d.a->state == UNRESOLVED);
    CHECK_OK(fk__authority_get(&d.table, &DESK_KEY, d.now, &d.fx, &again));
    CHECK(again == d.a);
    CHECK(!d.fx.has_change);
    CHECK_U64(desk_fini(&d), 0);
}

TEST(r2_4_without_mapping_everything_is_deferred_and_nothing_is_tried)
{
    desk_init(&d, NULL);
    desk_defer(&d, 10);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_U64(desk_pass(&d, FK_MINUTES(60 * 24 * 365)), 0);
    CHECK(d.a->state == UNRESOLVED);
    CHECK_U64(d.a->deferred.count, 10);
    CHECK_U64(desk_fini(&d), 10);
}

TEST(r4_2_mapping_alone_does_not_connect)
{
    desk_init(&d, NULL);
    desk_map(&d);
    CHECK(d.a->state == UNRESOLVED);
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_attempt(&d);
    desk_defer(&d, 1);
    CHECK_U64(desk_fini(&d), 1);
}

TEST(r4_2_handshake_without_mapping_does_not_connect)
{
    desk_init(&d, NULL);
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_UNMAPPED);
    CHECK(d.a->state == UNRESOLVED);
    CHECK_U64(d.a->uid, 0);
    desk_fini(&d);
}

/* ---- R4.2: Unresolved to Connected --------------------------------------------------------- */

TEST(r4_2_connected_sends_what_was_deferred_in_order_of_arrival)
{
    desk_init(&d, NULL);
    desk_defer(&d, 100);
    desk_map(&d);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    desk_check_change(&d, UNRESOLVED, CONNECTED, FK_AUTHORITY_REASON_HANDSHAKE);
    CHECK(d.fx.is_opened);
    CHECK(!d.fx.is_new_peer);
    desk_drain(&d, 7, 0, 100);
    CHECK(fk__authority_is_clear(d.a));
    CHECK_U64(d.a->uid, 1);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_U64(desk_fini(&d), 0);
}

TEST(r4_2_a_handshake_that_the_peer_began_connects_as_well)
{
    desk_init(&d, NULL);
    desk_map(&d); /* no attempt has been made */
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK(d.a->is_open);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    desk_fini(&d);
}

TEST(authority_that_is_open_sends_at_once)
{
    bool is_deferred = true;
    desk_init(&d, NULL);
    desk_open(&d, 1);
    CHECK_OK(desk_send(&d, &is_deferred));
    CHECK(!is_deferred);
    CHECK_U64(desk_fini(&d), 0);
}

TEST(authority_draining_nothing_overtakes_what_was_deferred)
{
    fk_envelopes batch;
    bool is_deferred = true;
    desk_init(&d, NULL);
    desk_defer(&d, 3);
    desk_map(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    desk_defer(&d, 1); /* open, but three are waiting */
    fk__authority_take(&d.table, d.a, 2, &batch);
    desk_check_letters(&batch, 0, 2);
    desk_defer(&d, 1);
    fk__authority_take(&d.table, d.a, 100, &batch);
    desk_check_letters(&batch, 2, 3);
    desk_defer(&d, 1); /* nothing is queued, but the last batch may not have been sent yet */
    CHECK(!fk__authority_is_clear(d.a));
    desk_drain(&d, 100, 5, 1);
    CHECK_OK(desk_send(&d, &is_deferred));
    CHECK(!is_deferred);
    desk_fini(&d);
}

/* ---- Connected to Unresolved --------------------------------------------------------------- */

TEST(authority_dropped_transport_is_unresolved_and_tried_again)
{
    desk_init(&d, NULL);
    desk_open(&d, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    desk_check_change(&d, CONNECTED, UNRESOLVED, FK_AUTHORITY_REASON_DROPPED);
    desk_defer(&d, 2);
    CHECK(fk__authority_next(&d.table) > d.now);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK(!d.fx.is_new_peer); /* the same system: nothing it was told is lost */
    CHECK_U64(d.a->incarnation, 1);
    desk_drain(&d, 10, 0, 2);
    desk_fini(&d);
}

TEST(authority_dropped_while_draining_keeps_the_rest_in_order)
{
    fk_envelopes batch;
    desk_init(&d, NULL);
    desk_defer(&d, 5);
    desk_map(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    fk__authority_take(&d.table, d.a, 2, &batch);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    CHECK_U64(d.fx.refused.count, 0);
    fk__authority_take(&d.table, d.a, 2, &batch); /* too late */
    CHECK_U64(batch.count, 0);
    desk_defer(&d, 2);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 2) == DONE);
    CHECK(d.fx.is_new_peer);
    desk_drain(&d, 3, 2, 5);
    desk_fini(&d);
}

/* ---- R4.3: into quarantine ----------------------------------------------------------------- */

/* Three were deferred; they come back, once, and every later send is refused. */
static void check_refused(fk_association from, fk_authority_reason reason, uint32_t first)
{
    desk_check_change(&d, from, QUARANTINE, reason);
    CHECK(d.fx.must_close);
    desk_check_letters(&d.fx.refused, first, d.sent - first);
    CHECK_U64(d.a->deferred.count, 0);
    CHECK_U64(d.table.deferred_total, 0);
    for (int i = 0; i < 3; i++) {
        bool is_deferred = true;
        CHECK_ERR(desk_send(&d, &is_deferred), FK_E_QUARANTINED);
        CHECK(!is_deferred);
    }
    CHECK_U64(desk_fini(&d), 0);
}

/* Open with that uid, and three deferred because they came while it was draining. */
static void open_with_three(uint64_t uid)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_defer(&d, 1);
    CHECK(desk_handshake(&d, uid) == DONE);
    desk_defer(&d, 2);
}

TEST(r4_3_invalid_association_quarantines)
{
    open_with_three(1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 1) == DONE);
    check_refused(CONNECTED, FK_AUTHORITY_REASON_INVALID, 0);
}

TEST(r4_3_the_peers_notice_quarantines)
{
    open_with_three(1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_NOTICE, 1) == DONE);
    check_refused(CONNECTED, FK_AUTHORITY_REASON_NOTICE, 0);
}

TEST(authority_connected_is_quarantined_when_asked)
{
    open_with_three(1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    check_refused(CONNECTED, FK_AUTHORITY_REASON_ASKED, 0);
}

TEST(authority_unresolved_is_quarantined_when_asked)
{
    desk_init(&d, NULL);
    desk_defer(&d, 3);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    check_refused(UNRESOLVED, FK_AUTHORITY_REASON_ASKED, 0);
}

TEST(r4_3_reconnecting_in_vain_for_the_quarantine_duration_quarantines)
{
    desk_init(&d, &(fk_authority_config){ .quarantine = FK_SECONDS(60) });
    desk_map(&d);
    fk_time begin = d.now;
    while (d.a->state == UNRESOLVED) {
        desk_tick(&d);
        if (!d.fx.must_connect) break;
        CHECK(d.now - begin < FK_SECONDS(60));
        CHECK(desk_failed(&d) == DONE);
        if (d.sent < 3) desk_defer(&d, 1);
    }
    CHECK_U64(d.now - begin, FK_SECONDS(60));
    check_refused(UNRESOLVED, FK_AUTHORITY_REASON_GAVE_UP, 0);
}

TEST(r4_3_an_attempt_that_never_ends_is_given_up_as_well)
{
    desk_init(&d, &(fk_authority_config){ .give_up_after = FK_SECONDS(30) });
    desk_map(&d);
    desk_attempt(&d);
    desk_defer(&d, 3);
    CHECK_U64(desk_pass(&d, FK_SECONDS(29)), 0);
    d.now += FK_SECONDS(1);
    CHECK(fk__authority_tick(&d.table, d.now, &d.fx));
    check_refused(UNRESOLVED, FK_AUTHORITY_REASON_GAVE_UP, 0);
}

TEST(r4_3_a_refused_handshake_quarantines)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_defer(&d, 3);
    desk_attempt(&d);
    CHECK(desk_step(&d, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_REFUSED,
                                              .attempt = d.a->attempt }) == DONE);
    check_refused(UNRESOLVED, FK_AUTHORITY_REASON_REFUSED, 0);
}

TEST(authority_refused_after_an_override_is_quarantined_again)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, false) == DONE);
    desk_defer(&d, 3);
    desk_attempt(&d);
    CHECK(desk_step(&d, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_REFUSED,
                                              .attempt = d.a->attempt }) == DONE);
    check_refused(CONNECTED, FK_AUTHORITY_REASON_REFUSED, 0);
}

/* ---- R3.5, R4.4: in quarantine, and out of it ---------------------------------------------- */

TEST(r3_5_every_send_to_a_quarantined_authority_is_refused)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    for (int i = 0; i < 5000; i++) CHECK_ERR(desk_send(&d, NULL), FK_E_QUARANTINED);
    CHECK_U64(d.a->deferred.count, 0);
    CHECK_U64(desk_fini(&d), 0);
}

TEST(r4_4_quarantine_lasts_its_time_and_then_resolving_begins_anew)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    fk_time begin = d.now;
    CHECK(fk__authority_next(&d.table) == begin + FK_QUARANTINE_DEFAULT);
    CHECK_U64(desk_pass(&d, FK_QUARANTINE_DEFAULT - 1), 0);
    CHECK_ERR(desk_send(&d, NULL), FK_E_QUARANTINED);
    desk_tick(&d);
    CHECK_U64(d.now - begin, FK_QUARANTINE_DEFAULT);
    desk_check_change(&d, QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED);
    CHECK_U64(d.a->deferred.count, 0);
    desk_attempt(&d);
    desk_defer(&d, 2);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_drain(&d, 10, 0, 2);
    desk_fini(&d);
}

TEST(r4_4_override_is_connected_at_once_and_sends_wait_for_a_fresh_handshake)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, false) == DONE);
    desk_check_change(&d, QUARANTINE, CONNECTED, FK_AUTHORITY_REASON_OVERRIDE);
    CHECK(!d.fx.is_opened);
    CHECK_U64(d.fx.uid_forgiven, 0);
    desk_defer(&d, 3);
    CHECK(!fk__authority_is_clear(d.a));
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 2) == DONE);
    CHECK(!d.fx.has_change); /* it is Connected already */
    CHECK(d.fx.is_opened);
    desk_drain(&d, 2, 0, 3);
    desk_fini(&d);
}

TEST(r4_4_override_without_a_mapping_is_unresolved)
{
    desk_init(&d, NULL);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    CHECK(desk_override(&d, false) == DONE);
    desk_check_change(&d, QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_OVERRIDE);
    desk_defer(&d, 1);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    desk_map(&d);
    desk_attempt(&d);
    CHECK_U64(desk_fini(&d), 1);
}

TEST(authority_overridden_in_vain_is_unresolved)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_override(&d, false) == DONE);
    desk_defer(&d, 2);
    desk_attempt(&d);
    CHECK(desk_failed(&d) == DONE);
    desk_check_change(&d, CONNECTED, UNRESOLVED, FK_AUTHORITY_REASON_FAILED);
    CHECK(d.a->give_up_at == d.now + FK_QUARANTINE_DEFAULT);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_drain(&d, 2, 0, 2);
    desk_fini(&d);
}

TEST(authority_quarantined_is_opened_by_a_new_system)
{
    desk_init(&d, NULL);
    desk_quarantined(&d, 1);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_check_change(&d, QUARANTINE, CONNECTED, FK_AUTHORITY_REASON_NEW_UID);
    CHECK(d.fx.is_opened);
    CHECK(d.fx.is_new_peer);
    CHECK_U64(d.a->incarnation, 2);
    desk_drain(&d, 1, 0, 0);
    bool is_deferred = true;
    CHECK_OK(desk_send(&d, &is_deferred));
    CHECK(!is_deferred);
    desk_fini(&d);
}

TEST(authority_quarantined_waits_if_new_systems_are_to_be_ignored)
{
    desk_init(&d, &(fk_authority_config){ .ignore_new_uid = true });
    desk_quarantined(&d, 1);
    CHECK(desk_handshake(&d, 2) == FK_AUTHORITY_RESULT_FORBIDDEN);
    CHECK(d.a->state == QUARANTINE);
    desk_tick(&d);
    desk_check_change(&d, QUARANTINE, UNRESOLVED, FK_AUTHORITY_REASON_ELAPSED);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_fini(&d);
}

TEST(authority_quarantined_by_pekkos_rules_ends_with_a_new_system_only)
{
    desk_init(&d, &(fk_authority_config){ .rules = FK_RULES_PEKKO });
    desk_quarantined(&d, 1);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_U64(desk_pass(&d, FK_MINUTES(60 * 24 * 365)), 0);
    CHECK(desk_override(&d, false) == FK_AUTHORITY_RESULT_FORBIDDEN);
    CHECK(desk_override(&d, true) == FK_AUTHORITY_RESULT_FORBIDDEN);
    CHECK(d.a->state == QUARANTINE);
    CHECK(desk_handshake(&d, 2) == DONE);
    desk_check_change(&d, QUARANTINE, CONNECTED, FK_AUTHORITY_REASON_NEW_UID);
    desk_fini(&d);
}

TEST(authority_never_met_is_not_quarantined_by_pekkos_rules)
{
    desk_init(&d,
              &(fk_authority_config){ .rules = FK_RULES_PEKKO, .give_up_after = FK_SECONDS(1) });
    desk_map(&d);
    desk_defer(&d, 1);
    for (int i = 0; i < 100; i++) {
        desk_attempt(&d); /* for ever: nothing but a handshake could end its quarantine */
        CHECK(desk_failed(&d) == DONE);
    }
    CHECK(d.a->give_up_at == FK_NEVER);
    CHECK(desk_handshake(&d, 1) == DONE);
    desk_drain(&d, 1, 0, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    CHECK(d.a->give_up_at == d.now + FK_SECONDS(1));
    desk_fini(&d);
}

/* ---- a peer that restarts ------------------------------------------------------------------ */

TEST(authority_connected_meets_a_new_system_without_a_transition)
{
    desk_init(&d, NULL);
    desk_open(&d, 1);
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_SAME);
    CHECK(desk_handshake(&d, 2) == DONE);
    CHECK(!d.fx.has_change);
    CHECK(d.fx.is_new_peer);
    CHECK_U64(d.a->uid, 2);
    CHECK_U64(d.a->incarnation, 2);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == FK_AUTHORITY_RESULT_STALE);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 1) == FK_AUTHORITY_RESULT_STALE);
    CHECK(d.a->is_open);
    desk_fini(&d);
}

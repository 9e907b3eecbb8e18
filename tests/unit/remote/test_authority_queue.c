/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bounds of what is deferred, and where every envelope ends. */

#include "support/desk.h"

static desk d;

static fk_authority *other(uint16_t port)
{
    fk_authority_key key = DESK_KEY;
    fk_authority *a;
    key.port = port;
    CHECK_OK(fk__authority_get(&d.table, &key, d.now, &d.fx, &a));
    return a;
}

/* Sends the next letter to a. */
static fk_err send_to(fk_authority *a)
{
    bool is_deferred;
    fk_err err = fk__authority_send(&d.table, a, &d.letters[d.sent].link, false, &is_deferred);
    if (err == FK_OK) d.sent++;
    fk__authority_table_check(&d.table);
    return err;
}

TEST(queue_of_one_authority_holds_1024_by_default)
{
    desk_init(&d, NULL);
    desk_defer(&d, 1024);
    for (int i = 0; i < 3; i++) {
        bool is_deferred = true;
        CHECK_ERR(desk_send(&d, &is_deferred), FK_E_FULL);
        CHECK(!is_deferred); /* it is the caller's still */
    }
    CHECK_OK(send_to(other(1))); /* another one has its own */
    CHECK_U64(desk_fini(&d), 1025);
}

TEST(queue_of_one_authority_holds_3072_by_pekkos_rules)
{
    desk_init(&d, &(fk_authority_config){ .rules = FK_RULES_PEKKO });
    desk_defer(&d, 3072);
    CHECK_ERR(desk_send(&d, NULL), FK_E_FULL);
    CHECK_U64(desk_fini(&d), 3072);
}

TEST(queues_hold_8192_together_by_default)
{
    desk_init(&d, NULL);
    for (uint16_t i = 1; i <= 8; i++) {
        for (int n = 0; n < 1024; n++) CHECK_OK(send_to(other(i)));
    }
    CHECK_ERR(desk_send(&d, NULL), FK_E_FULL);
    CHECK_ERR(send_to(other(9)), FK_E_FULL);
    CHECK_U64(d.table.deferred_total, 8192);
    CHECK_U64(desk_fini(&d), 8192);
}

TEST(queue_bounds_are_exact_and_free_again)
{
    desk_init(&d, &(fk_authority_config){ .deferred_max = 3, .deferred_total_max = 5 });
    fk_authority *second = other(1);
    desk_defer(&d, 3);
    CHECK_ERR(desk_send(&d, NULL), FK_E_FULL);
    CHECK_OK(send_to(second));
    CHECK_OK(send_to(second));
    CHECK_ERR(send_to(second), FK_E_FULL); /* the total */
    desk_map(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    fk_envelopes batch;
    fk__authority_take(&d.table, d.a, 1, &batch);
    desk_check_letters(&batch, 0, 1);
    CHECK_OK(send_to(second));
    CHECK_ERR(send_to(second), FK_E_FULL);
    CHECK_ERR(desk_send(&d, NULL), FK_E_FULL); /* open, but draining, and the total is used up */
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 1) == DONE);
    desk_check_letters(&d.fx.refused, 1, 2);
    CHECK_U64(d.table.deferred_total, 3);
    CHECK_ERR(send_to(second), FK_E_FULL); /* its own bound now */
    CHECK_U64(desk_fini(&d), 3);
}

TEST(queue_bound_of_one_holds_exactly_one)
{
    desk_init(&d, &(fk_authority_config){ .deferred_max = 1, .deferred_total_max = 1 });
    for (uint32_t i = 0; i < 10; i++) {
        desk_defer(&d, 1);
        CHECK_ERR(desk_send(&d, NULL), FK_E_FULL);
        if (i == 0) desk_map(&d);
        CHECK(desk_handshake(&d, 1) == DONE);
        desk_drain(&d, 1, i, 1);
        CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    }
    desk_fini(&d);
}

TEST(queue_is_handed_back_when_the_table_ends)
{
    fk_envelopes left;
    desk_init(&d, NULL);
    desk_defer(&d, 4);
    fk__authority_table_fini(&d.table, &left);
    desk_check_letters(&left, 0, 4);
    rig_check_empty(&d.r);
}

TEST(queue_takes_only_while_open)
{
    fk_envelopes batch;
    desk_init(&d, NULL);
    desk_defer(&d, 4);
    fk__authority_take(&d.table, d.a, 10, &batch);
    CHECK_U64(batch.count, 0);
    desk_map(&d);
    fk__authority_take(&d.table, d.a, 10, &batch);
    CHECK_U64(batch.count, 0);
    CHECK_U64(desk_fini(&d), 4);
}

TEST(queue_piercing_envelopes_pass_a_quarantine_by_pekkos_rules_only)
{
    for (int pekko = 0; pekko < 2; pekko++) {
        bool is_deferred = true;
        desk_init(&d, &(fk_authority_config){ .rules = pekko ? FK_RULES_PEKKO : FK_RULES_FRAKTOR });
        desk_quarantined(&d, 1);
        CHECK_ERR(fk__authority_send(&d.table, d.a, &d.letters[0].link, true, &is_deferred),
                  pekko ? FK_OK : FK_E_QUARANTINED);
        CHECK(!is_deferred);
        CHECK_ERR(desk_send(&d, NULL), FK_E_QUARANTINED);
        CHECK_U64(desk_fini(&d), 0);
    }
}

TEST(envelopes_lists_join_and_split)
{
    desk_letter l[4] = { { { NULL }, 0 }, { { NULL }, 1 }, { { NULL }, 2 }, { { NULL }, 3 } };
    fk_envelopes one = { NULL, NULL, 0 }, two = { NULL, NULL, 0 };
    CHECK(fk__envelopes_take(&one) == NULL);
    fk__envelopes_move(&one, &two);
    CHECK_U64(one.count, 0);
    fk__envelopes_put_first(&one, &l[1].link);
    fk__envelopes_put(&one, &l[2].link);
    fk__envelopes_put_first(&one, &l[0].link);
    desk_check_letters(&one, 0, 3);
    fk__envelopes_move(&two, &one);
    desk_check_letters(&two, 0, 3);
    CHECK(one.first == NULL && one.last == NULL && one.count == 0);
    fk__envelopes_put(&one, &l[3].link);
    fk__envelopes_move(&two, &one);
    desk_check_letters(&two, 0, 4);
    for (int i = 0; i < 4; i++) CHECK(fk__envelopes_take(&two) == &l[i].link);
    CHECK(two.first == NULL && two.last == NULL && two.count == 0);
}

static fk_authority *hearsay(uint16_t port)
{
    fk_authority *a = other(port);
    a->is_hearsay = true;
    return a;
}

TEST(queue_of_hearsay_holds_64_until_somebody_vouches)
{
    desk_init(&d, NULL);
    fk_authority *named = hearsay(1), *met = hearsay(2);
    for (int i = 0; i < 64; i++) {
        CHECK_OK(send_to(named));
        CHECK_OK(send_to(met));
    }
    CHECK_ERR(send_to(named), FK_E_FULL);
    CHECK_ERR(send_to(met), FK_E_FULL);
    CHECK_U64(d.table.deferred_hearsay, 128);
    fk__authority_vouch(&d.table, named);
    for (int i = 64; i < 1024; i++) CHECK_OK(send_to(named));
    CHECK_ERR(send_to(named), FK_E_FULL);
    CHECK_OK(fk__authority_map(&d.table, met, FK_STR(""), 0, d.now));
    fk_authority_event handshake = { .kind = FK_AUTHORITY_EVENT_HANDSHAKE, .uid = 5 };
    CHECK(fk__authority_step(&d.table, met, &handshake, d.now, &d.fx) == DONE);
    CHECK_U64(d.table.deferred_hearsay, 0);
    CHECK_OK(send_to(met)); /* it is draining */
    CHECK_U64(desk_fini(&d), 1024 + 65);
}

TEST(queues_of_hearsay_leave_three_quarters_to_others)
{
    desk_init(&d, &(fk_authority_config){ .deferred_total_max = 1000 });
    for (uint16_t port = 1; port <= 3; port++) {
        for (int i = 0; i < 64; i++) CHECK_OK(send_to(hearsay(port)));
    }
    fk_authority *fourth = hearsay(4);
    for (int i = 0; i < 250 - 3 * 64; i++) CHECK_OK(send_to(fourth));
    CHECK_ERR(send_to(fourth), FK_E_FULL);
    CHECK_ERR(send_to(hearsay(5)), FK_E_FULL);
    for (int i = 0; i < 750; i++) CHECK_OK(send_to(d.a));
    CHECK_ERR(send_to(d.a), FK_E_FULL);
    /* What is refused makes room. */
    fk_authority_event asked = { .kind = FK_AUTHORITY_EVENT_QUARANTINE };
    CHECK(fk__authority_step(&d.table, fourth, &asked, d.now, &d.fx) == DONE);
    CHECK_U64(d.fx.refused.count, 58);
    fk__authority_table_check(&d.table);
    for (int i = 0; i < 58; i++) CHECK_OK(send_to(hearsay(5)));
    CHECK_ERR(send_to(hearsay(5)), FK_E_FULL);
    CHECK_U64(desk_fini(&d), 1000);
}

/* Lets a minute pass; attempts come to nothing. Says how many did not wait any longer. */
static uint32_t minute_passes(fk_authority *a)
{
    uint32_t lapsed = 0;
    d.now += FK_SECONDS(60);
    while (fk__authority_tick(&d.table, d.now, &d.fx)) {
        CHECK(!d.fx.has_change);
        CHECK_U64(d.fx.refused.count, 0);
        lapsed += d.fx.lapsed.count;
        fk_authority_event failed = { .kind = FK_AUTHORITY_EVENT_FAILED, .attempt = a->attempt };
        if (d.fx.must_connect)
            CHECK(fk__authority_step(&d.table, a, &failed, d.now, &d.fx) == DONE);
        fk__authority_table_check(&d.table);
    }
    return lapsed;
}

TEST(queue_of_hearsay_waits_for_a_minute_at_a_time)
{
    desk_init(&d, NULL);
    fk_authority *a = hearsay(1);
    CHECK_OK(fk__authority_map(&d.table, a, FK_STR(""), 0, d.now));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(send_to(a));
        CHECK_OK(send_to(a));
        CHECK_U64(minute_passes(a), 2);
        CHECK(a->state == UNRESOLVED);
        CHECK_U64(d.table.deferred_hearsay + d.table.deferred_total, 0);
    }
    CHECK_U64(desk_fini(&d), 0);
}

TEST(queue_of_hearsay_waits_on_when_somebody_vouches)
{
    desk_init(&d, NULL);
    fk_authority *a = hearsay(1);
    CHECK_OK(fk__authority_map(&d.table, a, FK_STR(""), 0, d.now));
    CHECK_OK(send_to(a));
    fk__authority_vouch(&d.table, a);
    fk__authority_table_check(&d.table);
    CHECK_U64(minute_passes(a) + minute_passes(a), 0);
    CHECK_U64(desk_fini(&d), 1);
}

TEST(queue_of_hearsay_that_rests_waits_for_nothing)
{
    desk_init(&d, NULL);
    fk_authority *a = hearsay(1);
    CHECK_OK(fk__authority_map(&d.table, a, FK_STR(""), 0, d.now));
    fk__authority_rest(&d.table, a);
    fk__authority_table_check(&d.table);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_U64(desk_fini(&d), 0);
}

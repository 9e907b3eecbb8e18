/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Attempts, delays, deadlines. */

#include <stdlib.h>

#include "support/desk.h"

static desk d;

/* The delay between a failure and the next attempt. */
static fk_time next_delay(void)
{
    fk_time failed = d.now;
    CHECK(desk_failed(&d) == DONE);
    desk_attempt(&d);
    return d.now - failed;
}

TEST(attempts_back_off_exponentially_up_to_a_maximum)
{
    desk_init(&d, NULL);
    desk_map(&d);
    CHECK(fk__authority_next(&d.table) == d.now); /* the first one at once */
    desk_attempt(&d);
    fk_time expected = FK_MILLIS(100);
    for (int i = 0; i < 20; i++) {
        fk_time delay = next_delay();
        CHECK(delay <= expected);
        CHECK(delay >= expected - expected / 5); /* 20 % jitter */
        expected = expected * 2 < FK_SECONDS(30) ? expected * 2 : FK_SECONDS(30);
    }
    desk_fini(&d);
}

TEST(attempts_are_spread_by_chance_and_repeat_with_the_seed)
{
    fk_time seen[2][50];
    for (int run = 0; run < 2; run++) {
        desk_init(&d, &(fk_authority_config){ .backoff_min = FK_SECONDS(8),
                                              .backoff_max = FK_SECONDS(8),
                                              .jitter_percent = 100 });
        desk_map(&d);
        desk_attempt(&d);
        fk_time least = FK_NEVER, most = 0;
        for (int i = 0; i < 50; i++) {
            seen[run][i] = next_delay();
            CHECK(seen[run][i] <= FK_SECONDS(8));
            if (seen[run][i] < least) least = seen[run][i];
            if (seen[run][i] > most) most = seen[run][i];
        }
        CHECK(least < FK_SECONDS(2));
        CHECK(most > FK_SECONDS(6));
        desk_fini(&d);
    }
    for (int i = 0; i < 50; i++) CHECK(seen[0][i] == seen[1][i]);
}

TEST(attempts_with_extreme_times_do_not_overflow)
{
    desk_init(&d, &(fk_authority_config){ .backoff_min = FK_MINUTES(23 * 60),
                                          .backoff_max = FK_MINUTES(24 * 60),
                                          .jitter_percent = 1,
                                          .give_up_after = FK_NEVER,
                                          .quarantine = FK_NEVER });
    desk_map(&d);
    desk_attempt(&d);
    for (int i = 0; i < 200; i++) CHECK(next_delay() > FK_MINUTES(22 * 60));
    CHECK(d.a->give_up_at == FK_NEVER);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    CHECK(fk__authority_next(&d.table) == FK_NEVER); /* for ever */
    desk_fini(&d);
}

TEST(attempts_come_one_at_a_time)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_attempt(&d);
    CHECK_U64(desk_pass(&d, FK_MINUTES(60)), 0); /* it has not ended */
    desk_defer(&d, 3);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR("elsewhere"), 1, d.now));
    CHECK_U64(desk_pass(&d, FK_MINUTES(60)), 0);
    CHECK_U64(desk_fini(&d), 3);
}

TEST(attempts_old_ones_do_not_count)
{
    desk_init(&d, &(fk_authority_config){ .quarantine = FK_SECONDS(1) });
    desk_map(&d);
    desk_attempt(&d);
    uint64_t old = d.a->attempt;
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    desk_tick(&d);
    CHECK(d.a->state == UNRESOLVED);
    desk_attempt(&d);
    CHECK(desk_step(&d, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_REFUSED,
                                              .attempt = old }) == FK_AUTHORITY_RESULT_STALE);
    CHECK(desk_step(&d, (fk_authority_event){ .kind = FK_AUTHORITY_EVENT_FAILED,
                                              .attempt = old }) == FK_AUTHORITY_RESULT_STALE);
    CHECK(d.a->is_attempting);
    desk_fini(&d);
}

TEST(attempts_go_to_the_new_mapping_at_once)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_attempt(&d);
    for (int i = 0; i < 10; i++) next_delay();
    CHECK(desk_failed(&d) == DONE);
    CHECK(fk__authority_next(&d.table) > d.now);
    desk_map(&d); /* the same: no reason to hurry */
    CHECK(fk__authority_next(&d.table) > d.now);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR("10.0.0.7"), 4000, d.now));
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_attempt(&d);
    CHECK(next_delay() <= FK_MILLIS(100));
    desk_fini(&d);
}

TEST(attempts_are_made_at_once_when_somebody_knows_better)
{
    desk_init(&d, NULL);
    fk__authority_hurry(&d.table, d.a, d.now); /* nobody knows where to */
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    desk_map(&d);
    desk_attempt(&d);
    for (int i = 0; i < 10; i++) next_delay();
    fk__authority_hurry(&d.table, d.a, d.now); /* one is under way */
    CHECK(d.a->is_attempting);
    CHECK(desk_failed(&d) == DONE);
    CHECK(fk__authority_next(&d.table) > d.now);
    fk__authority_hurry(&d.table, d.a, d.now);
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_attempt(&d);
    CHECK(next_delay() <= FK_MILLIS(100));
    CHECK(desk_handshake(&d, 1) == DONE);
    fk__authority_hurry(&d.table, d.a, d.now); /* it is there */
    CHECK(d.a->state == FK_ASSOCIATION_CONNECTED);
    desk_fini(&d);
}

/* Open for that long, then dropped; the delay before the next attempt. */
static fk_time delay_after(fk_time lasted)
{
    CHECK(desk_handshake(&d, 1) == DONE);
    d.now += lasted;
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    fk_time dropped = d.now;
    desk_attempt(&d);
    return d.now - dropped;
}

TEST(attempts_slow_down_for_a_peer_that_hangs_up_at_once)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_attempt(&d);
    fk_time first = delay_after(FK_MILLIS(1));
    CHECK(first <= FK_MILLIS(100));
    CHECK(first >= FK_MILLIS(80));
    for (int i = 0; i < 9; i++) delay_after(FK_MILLIS(1));
    CHECK(delay_after(FK_MILLIS(1)) >= FK_SECONDS(24));
    CHECK(delay_after(FK_MILLIS(999)) >= FK_SECONDS(24));
    CHECK(delay_after(FK_SECONDS(1)) <= FK_MILLIS(100)); /* that one lasted */
    desk_fini(&d);
}

/* It fails, for as long as nobody is there; the delay after the last time. */
static fk_time absent(int times)
{
    fk_time from = d.now;
    for (int i = 0; i < times; i++) {
        CHECK(desk_failed(&d) == DONE);
        from = d.now;
        desk_attempt(&d);
    }
    return d.now - from;
}

TEST(attempts_that_failed_do_not_slow_down_those_after_a_handshake)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_attempt(&d);
    CHECK(absent(12) >= FK_SECONDS(24));
    CHECK(delay_after(FK_MILLIS(1)) <= FK_MILLIS(100));
    CHECK(absent(12) >= FK_SECONDS(24));
    CHECK(delay_after(FK_MILLIS(1)) >= FK_MILLIS(160)); /* but this is the second time */
    desk_fini(&d);
}

TEST(attempts_do_not_slow_down_for_a_peer_that_says_that_it_terminates)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_attempt(&d);
    for (uint64_t uid = 1; uid < 20; uid++) {
        CHECK(desk_handshake(&d, uid) == DONE);
        fk__authority_farewell(d.a, uid + 1); /* somebody else's */
        fk__authority_farewell(d.a, uid);
        CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, uid) == DONE);
        fk_time dropped = d.now;
        desk_attempt(&d);
        CHECK(d.now - dropped <= FK_MILLIS(100));
        absent(3);
    }
    /* One that does so again and again is not believed. */
    for (int i = 0; i < 10; i++) {
        CHECK(desk_handshake(&d, 19) == DONE);
        fk__authority_farewell(d.a, 19);
        CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 19) == DONE);
        desk_attempt(&d);
    }
    CHECK(d.a->failures >= 10);
    /* Nor does it count whose farewell it is when another has come. */
    CHECK(desk_handshake(&d, 21) == DONE);
    fk__authority_farewell(d.a, 20);
    CHECK(d.a->failures >= 10);
    desk_fini(&d);
}

TEST(giving_up_counts_from_the_first_attempt_since_the_last_connection)
{
    desk_init(&d, &(fk_authority_config){ .give_up_after = FK_SECONDS(10) });
    d.now += FK_SECONDS(100); /* unmapped: does not count */
    desk_map(&d);
    CHECK(d.a->give_up_at == d.now + FK_SECONDS(10));
    desk_attempt(&d);
    d.now += FK_SECONDS(5);
    CHECK(desk_failed(&d) == DONE);
    CHECK(d.a->give_up_at == d.now + FK_SECONDS(5)); /* a failure changes nothing about it */
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK(d.a->give_up_at == FK_NEVER);
    d.now += FK_SECONDS(60);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    CHECK(d.a->give_up_at == d.now + FK_SECONDS(10));
    desk_fini(&d);
}

TEST(quarantine_override_of_the_configuration_sets_the_time)
{
    desk_init(&d, &(fk_authority_config){ .quarantine = FK_SECONDS(100),
                                          .quarantine_override = FK_SECONDS(7) });
    desk_quarantined(&d, 1);
    CHECK(fk__authority_next(&d.table) == d.now + FK_SECONDS(7));
    CHECK(d.table.config.give_up_after == FK_SECONDS(7));
    desk_fini(&d);
}

TEST(quarantine_asked_for_again_does_not_last_longer)
{
    desk_init(&d, &(fk_authority_config){ .quarantine = FK_SECONDS(10) });
    desk_quarantined(&d, 1);
    fk_time lift = fk__authority_next(&d.table);
    d.now += FK_SECONDS(5);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 1) == FK_AUTHORITY_RESULT_SAME);
    CHECK(fk__authority_next(&d.table) == lift);
    desk_fini(&d);
}

/* A tick that comes much too late does everything once, and in the order in which it was due. */
TEST(ticks_that_come_late_come_in_order)
{
    enum { PEERS = 40 };
    desk_init(&d, &(fk_authority_config){ .quarantine = FK_SECONDS(5) });
    for (int i = 0; i < PEERS; i++) {
        fk_authority_key key = DESK_KEY;
        fk_authority *a;
        key.port = (uint16_t)(1 + i * 7 % PEERS);
        CHECK_OK(fk__authority_get(&d.table, &key, d.now, &d.fx, &a));
        CHECK_OK(fk__authority_map(&d.table, a, FK_STR(""), 0, d.now + FK_MILLIS(key.port)));
        fk__authority_table_check(&d.table);
    }
    d.now += FK_SECONDS(1000);
    fk_time last = 0;
    uint32_t attempts = 0, quarantined = 0;
    for (;;) {
        fk_time due = fk__authority_next(&d.table);
        if (!fk__authority_tick(&d.table, d.now, &d.fx)) break;
        CHECK(due >= last);
        last = due;
        attempts += d.fx.must_connect;
        quarantined += d.fx.has_change;
        fk__authority_table_check(&d.table);
    }
    CHECK_U64(attempts, 0); /* their time was up: no use in trying */
    CHECK_U64(quarantined, PEERS);
    CHECK(fk__authority_next(&d.table) == d.now + FK_SECONDS(5));
    desk_fini(&d);
}

TEST(deadlines_agree_with_a_scan)
{
    enum { ENTRIES = 200 };
    static fk_deadline entry[ENTRIES], *heap[ENTRIES];
    fk_deadlines all = { heap, 0, ENTRIES };
    test_random random = { 3 };
    for (int i = 0; i < ENTRIES; i++) entry[i] = FK_DEADLINE_INIT;
    for (int step = 0; step < 20000; step++) {
        fk_time at = (fk_time)test_random_below(&random, 1000);
        if (test_random_below(&random, 3) == 0) at = FK_NEVER;
        fk__deadline_set(&all, &entry[test_random_below(&random, ENTRIES)], at);
        fk_time least = FK_NEVER;
        for (int i = 0; i < ENTRIES; i++) {
            if (entry[i].at < least) least = entry[i].at;
        }
        fk_deadline *first = fk__deadlines_first(&all);
        CHECK((first != NULL ? first->at : FK_NEVER) == least);
        fk__deadlines_check(&all);
    }
}

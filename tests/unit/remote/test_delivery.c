/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdlib.h>

#include "remote/origins.h"
#include "support/test.h"

enum { DEFAULT_MAX = 20000 };

static fk_outbox box;
static fk_outbox_effects fx;
static fk_time now;

static fk_outbox_result tell(fk_outbox_event_kind kind, uint64_t uid, uint64_t seq)
{
    fk_outbox_event event = { kind, uid, seq };
    fk_outbox_result result = fk__outbox_step(&box, &event, now, &fx);
    fk__outbox_check(&box);
    return result;
}

static void begin(const fk_delivery_config *config, uint64_t uid)
{
    now = FK_SECONDS(100);
    CHECK_OK(fk__outbox_init(&box, config));
    if (uid != 0) CHECK(tell(FK_OUTBOX_EVENT_OPENED, uid, 0) == FK_OUTBOX_RESULT_DONE);
}

static void put(fk_parcel *parcel, uint64_t seq)
{
    CHECK_OK(fk__outbox_put(&box, parcel, now, &fx));
    CHECK_U64(parcel->seq, seq);
    fk__outbox_check(&box);
}

/* Takes all there is; the numbers must be these. */
static void take(uint64_t first, uint64_t last)
{
    for (uint64_t seq = first; seq <= last; seq++) {
        fk_parcel *parcel = fk__outbox_take(&box);
        CHECK(parcel != NULL);
        CHECK_U64(parcel->seq, seq);
    }
    CHECK(fk__outbox_take(&box) == NULL);
}

static void pass(fk_time by)
{
    now += by;
    fk__outbox_tick(&box, now, &fx);
    fk__outbox_check(&box);
}

TEST(delivery_sends_all_that_is_unacknowledged_each_second)
{
    fk_parcel p[3];
    begin(NULL, 7);
    put(&p[0], 1);
    put(&p[1], 2);
    CHECK(fx.has_unsent);
    take(1, 2);
    pass(FK_MILLIS(999));
    CHECK(!fx.has_unsent);
    put(&p[2], 3);
    take(3, 3);
    CHECK(fk__outbox_next(&box) == now + FK_MILLIS(1));
    pass(FK_MILLIS(1));
    CHECK(fx.has_unsent);
    take(1, 3);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 2) == FK_OUTBOX_RESULT_DONE);
    CHECK_U64(fx.delivered.count, 2);
    pass(FK_SECONDS(1));
    take(3, 3);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 3) == FK_OUTBOX_RESULT_DONE);
    CHECK(fk__outbox_next(&box) == FK_NEVER);
}

TEST(delivery_does_not_begin_again_while_a_slow_connection_has_not_taken_all)
{
    fk_parcel p[3];
    begin(NULL, 7);
    for (uint64_t i = 0; i < 3; i++) put(&p[i], i + 1);
    CHECK_U64(fk__outbox_take(&box)->seq, 1);
    pass(FK_SECONDS(1));
    take(2, 3);
    pass(FK_SECONDS(1));
    take(1, 3);
}

TEST(delivery_answers_a_gap_once)
{
    fk_parcel p[3];
    begin(NULL, 7);
    for (uint64_t i = 0; i < 3; i++) put(&p[i], i + 1);
    take(1, 3);
    CHECK(tell(FK_OUTBOX_EVENT_NACK, 7, 1) == FK_OUTBOX_RESULT_DONE);
    CHECK_U64(fx.delivered.count, 1);
    take(2, 3);
    CHECK(tell(FK_OUTBOX_EVENT_NACK, 7, 1) == FK_OUTBOX_RESULT_SAME);
    CHECK(!fx.has_unsent);
    CHECK(tell(FK_OUTBOX_EVENT_NACK, 7, 2) == FK_OUTBOX_RESULT_DONE);
    take(3, 3);
}

TEST(delivery_gives_up_after_six_hours_without_progress)
{
    fk_parcel p[2];
    begin(NULL, 7);
    put(&p[0], 1);
    put(&p[1], 2);
    take(1, 2);
    pass(FK_MINUTES(300));
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 1) == FK_OUTBOX_RESULT_DONE);
    pass(FK_MINUTES(359));
    CHECK(fx.despair == FK_OUTBOX_DESPAIR_NONE);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 1) == FK_OUTBOX_RESULT_SAME); /* an answer, no progress */
    pass(FK_MINUTES(1));
    CHECK(fx.despair == FK_OUTBOX_DESPAIR_GAVE_UP);
    CHECK_U64(fx.uid, 7);
    CHECK(fx.lost.first == &p[1].link && fx.lost.count == 1);
    CHECK_ERR(fk__outbox_put(&box, &p[0], now, &fx), FK_E_QUARANTINED);
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 7, 0) == FK_OUTBOX_RESULT_STALE);
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 8, 0) == FK_OUTBOX_RESULT_DONE);
    put(&p[0], 1);
}

TEST(delivery_quarantines_when_twenty_thousand_are_unacknowledged)
{
    fk_parcel *p = calloc(DEFAULT_MAX + 1, sizeof(*p));
    CHECK(p != NULL);
    begin(NULL, 7);
    for (uint64_t i = 0; i < DEFAULT_MAX; i++) CHECK_OK(fk__outbox_put(&box, &p[i], now, &fx));
    CHECK_ERR(fk__outbox_put(&box, &p[DEFAULT_MAX], now, &fx), FK_E_FULL);
    CHECK(fx.despair == FK_OUTBOX_DESPAIR_OVERFLOW);
    CHECK_U64(fx.uid, 7);
    CHECK_U64(fx.lost.count, DEFAULT_MAX);
    for (uint64_t i = 0; i < DEFAULT_MAX; i++) CHECK(fk__envelopes_take(&fx.lost) == &p[i].link);
    free(p);
}

TEST(delivery_reports_one_by_one_what_a_former_peer_has_not_acknowledged)
{
    fk_parcel p[3];
    begin(NULL, 0);
    put(&p[0], 1); /* before anybody is met */
    CHECK(!fx.has_unsent);
    CHECK(fk__outbox_take(&box) == NULL);
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 7, 0) == FK_OUTBOX_RESULT_DONE);
    CHECK(fx.has_unsent);
    take(1, 1);
    put(&p[1], 2);
    CHECK(tell(FK_OUTBOX_EVENT_CLOSED, 0, 0) == FK_OUTBOX_RESULT_DONE);
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 8, 0) == FK_OUTBOX_RESULT_DONE);
    CHECK(fk__envelopes_take(&fx.lost) == &p[0].link);
    CHECK(fk__envelopes_take(&fx.lost) == &p[1].link);
    CHECK(fk__envelopes_take(&fx.lost) == NULL);
    put(&p[2], 1);
    take(1, 1);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 1) == FK_OUTBOX_RESULT_STALE);
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 7, 0) == FK_OUTBOX_RESULT_STALE);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 8, 2) == FK_OUTBOX_RESULT_INVALID);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 8, 1) == FK_OUTBOX_RESULT_DONE);
}

TEST(delivery_keeps_what_a_broken_connection_may_have_swallowed)
{
    fk_parcel p[2];
    begin(NULL, 7);
    put(&p[0], 1);
    put(&p[1], 2);
    take(1, 2);
    CHECK(tell(FK_OUTBOX_EVENT_CLOSED, 0, 0) == FK_OUTBOX_RESULT_DONE);
    CHECK(fk__outbox_next(&box) == now + FK_MINUTES(360));
    CHECK(fk__outbox_take(&box) == NULL);
    CHECK(tell(FK_OUTBOX_EVENT_ACK, 7, 1) == FK_OUTBOX_RESULT_DONE); /* comes another way */
    CHECK(tell(FK_OUTBOX_EVENT_OPENED, 7, 0) == FK_OUTBOX_RESULT_DONE);
    CHECK_U64(fx.lost.count, 0);
    take(2, 2);
}

TEST(inbox_takes_again_what_could_not_be_delivered)
{
    fk_inbox inbox = { 0 };
    fk_inbox_effects in;
    fk__inbox_step(&inbox, 1, &in);
    CHECK(in.must_deliver);
    fk__inbox_undo(&inbox, &in);
    fk__inbox_step(&inbox, 2, &in);
    CHECK(!in.must_deliver && in.is_gap);
    CHECK_U64(in.seq, 0);
    fk__inbox_step(&inbox, 1, &in);
    CHECK(in.must_deliver && !in.is_gap);
}

TEST(origins_count_apart_and_the_oldest_gives_way)
{
    static fk_authority authority;
    fk_origin *bucket[2] = { NULL, NULL };
    fk_origins origins;
    fk_peer peer;
    fk_inbox_effects in;
    fk__origins_init(&origins, bucket, 2, 5);
    fk__peer_init(&peer, &authority);
    for (uint64_t uid = 1; uid <= FK_PEER_ORIGINS; uid++) {
        fk_origin *origin = fk__peer_meet(&origins, &peer, uid);
        fk__inbox_step(&origin->inbox, 1, &in);
        CHECK(in.must_deliver);
        CHECK(fk__peer_meet(&origins, &peer, uid) == origin); /* numbers go on */
        CHECK_U64(origin->inbox.seq, 1);
    }
    fk__peer_meet(&origins, &peer, 9);
    CHECK(fk__origins_find(&origins, 1) == NULL);
    CHECK(fk__origins_find(&origins, 2) != NULL);
    CHECK(fk__origins_find(&origins, 0) == NULL);
    CHECK_U64(fk__origins_find(&origins, 9)->inbox.seq, 0);
    fk__peer_fini(&origins, &peer);
    CHECK(bucket[0] == NULL && bucket[1] == NULL);
}

TEST(delivery_refuses_times_below_zero)
{
    CHECK_ERR(fk__outbox_init(&box, &(fk_delivery_config){ .resend_every = -1 }), FK_E_INVALID);
    CHECK_ERR(fk__outbox_init(&box, &(fk_delivery_config){ .give_up_after = -1 }), FK_E_INVALID);
}

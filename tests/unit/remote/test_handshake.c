/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/handshake.h"
#include "support/desk.h"

enum { BUCKETS = 4 };

static desk d;
static fk_door door;
static fk_origin *bucket[BUCKETS];
static fk_peer peer;
static fk_handshake_config config;
static fk_handshake control, ordinary;
static fk_handshake_effects fx;
static fk_door_effects in;

static void begin(const fk_authority_config *of_authorities)
{
    desk_init(&d, of_authorities);
    for (int i = 0; i < BUCKETS; i++) bucket[i] = NULL;
    door = (fk_door){ .table = &d.table,
                      .own = { FK_STR("us"), FK_STR("here"), 2551 },
                      .own_uid = 99 };
    fk__origins_init(&door.origins, bucket, BUCKETS, 1);
    fk__peer_init(&peer, d.a);
    CHECK_OK(fk__handshake_configure(NULL, &config));
    fk__handshake_init(&control, &config);
    fk__handshake_init(&ordinary, &config);
}

static fk_door_result request(uint64_t uid)
{
    fk_door_result result = fk__door_knock(&door, &DESK_KEY, &door.own, d.now, &in);
    if (result != FK_DOOR_RESULT_ACCEPTED) return result;
    CHECK(in.authority.authority == d.a);
    return fk__door_accept(&door, &peer, uid, true, d.now, &in);
}

static fk_door_result response(uint64_t uid)
{
    fk_door_result result = fk__door_accept(&door, &peer, uid, false, d.now, &in);
    if (result == FK_DOOR_RESULT_ACCEPTED) {
        fk__handshake_answered(&control, true);
        fk__handshake_answered(&ordinary, true);
    }
    return result;
}

/* Moves the clock to what the control stream waits for. */
static void tick(void)
{
    CHECK(fk__handshake_next(&control) >= d.now);
    d.now = fk__handshake_next(&control);
    fk__handshake_tick(&control, &d.table, d.a, d.now, &fx);
}

TEST(handshake_is_asked_for_each_second_and_fails_after_twenty)
{
    begin(NULL);
    desk_map(&d);
    desk_attempt(&d);
    fk_time start = d.now;
    fk__handshake_begin(&control, d.a, true, d.now, &fx);
    CHECK(fx.must_request);
    CHECK(!fk__handshake_may_send(&control, d.now, &fx));
    for (int second = 1; second < 20; second++) {
        tick();
        CHECK(d.now == start + FK_SECONDS(second));
        CHECK(fx.must_request && !fx.has_failed);
    }
    CHECK(d.a->is_attempting);
    tick();
    CHECK(d.now == start + FK_SECONDS(20));
    CHECK(fx.has_failed && !fx.must_request);
    CHECK(fx.result == DONE);
    CHECK(!d.a->is_attempting);
    CHECK_U64(d.a->failures, 1);
    CHECK(fk__handshake_next(&control) == FK_NEVER);
    desk_fini(&d);
}

TEST(handshake_answered_lets_messages_go_and_is_asked_again_before_one_at_most_each_second)
{
    begin(NULL);
    desk_map(&d);
    desk_attempt(&d);
    fk__handshake_begin(&control, d.a, true, d.now, &fx);
    d.now += FK_MILLIS(300);
    CHECK(response(7) == FK_DOOR_RESULT_ACCEPTED);
    CHECK(!in.must_answer);
    CHECK(d.a->is_open);
    CHECK_U64(d.a->uid, 7);
    CHECK(fk__handshake_next(&control) == FK_NEVER);
    CHECK(fk__handshake_may_send(&control, d.now, &fx));
    CHECK(!fx.must_request); /* the first request is 300 ms old */
    d.now += FK_MILLIS(700);
    CHECK(fk__handshake_may_send(&control, d.now, &fx));
    CHECK(fx.must_request);
    CHECK(fk__handshake_may_send(&control, d.now + FK_MILLIS(999), &fx));
    CHECK(!fx.must_request);
    fk__handshake_begin(&ordinary, d.a, false, d.now, &fx); /* a further stream needs no answer */
    CHECK(fx.must_request);
    CHECK(fk__handshake_may_send(&ordinary, d.now, &fx));
    CHECK(!fx.must_request);
    desk_fini(&d);
}

TEST(handshake_of_the_other_side_opens_the_authority_but_not_the_control_stream)
{
    begin(NULL);
    CHECK(request(7) == FK_DOOR_RESULT_ACCEPTED);
    CHECK(in.must_answer);
    CHECK(in.authority.is_opened);
    CHECK(d.a->is_mapped);
    fk__handshake_begin(&control, d.a, true, d.now, &fx);
    CHECK(!fk__handshake_may_send(&control, d.now, &fx));
    fk__handshake_answered(&control, false);
    CHECK(!fk__handshake_may_send(&control, d.now, &fx));
    CHECK(response(7) == FK_DOOR_RESULT_ACCEPTED);
    CHECK(fk__handshake_may_send(&control, d.now, &fx));
    desk_fini(&d);
}

TEST(handshake_that_fails_on_an_open_authority_drops_it)
{
    begin(NULL);
    CHECK(request(7) == FK_DOOR_RESULT_ACCEPTED);
    fk__handshake_begin(&control, d.a, true, d.now, &fx);
    do tick();
    while (!fx.has_failed);
    CHECK(fx.authority.has_change);
    CHECK(fx.authority.change.reason == FK_AUTHORITY_REASON_DROPPED);
    CHECK(d.a->state == UNRESOLVED);
    desk_fini(&d);
}

TEST(handshake_with_a_restarted_peer_is_a_new_incarnation)
{
    fk_origin *origin = NULL;
    bool must_notify;
    begin(NULL);
    CHECK(request(7) == FK_DOOR_RESULT_ACCEPTED);
    in.origin->inbox.seq = 5;
    CHECK(request(8) == FK_DOOR_RESULT_ACCEPTED);
    CHECK(in.authority.is_new_peer);
    CHECK_U64(in.origin->inbox.seq, 0);
    CHECK_U64(d.a->incarnation, 2);
    CHECK(fk__door_admit(&door, 7, false, &origin, &must_notify) == FK_DOOR_RESULT_ACCEPTED);
    CHECK_U64(origin->inbox.seq, 5);
    CHECK(fk__door_admit(&door, 9, false, &origin, &must_notify) == FK_DOOR_RESULT_UNKNOWN);
    desk_fini(&d);
}

TEST(door_refuses_whom_the_authority_refuses)
{
    fk_origin *origin = NULL;
    bool must_notify;
    begin(&(fk_authority_config){ .ignore_new_uid = true });
    CHECK(request(7) == FK_DOOR_RESULT_ACCEPTED);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_INVALID, 7) == DONE);
    CHECK(request(7) == FK_DOOR_RESULT_QUARANTINED);
    CHECK(in.must_notify && !in.must_answer);
    CHECK(fk__door_admit(&door, 7, false, &origin, &must_notify) == FK_DOOR_RESULT_QUARANTINED);
    CHECK(must_notify);
    CHECK(fk__door_admit(&door, 7, true, &origin, &must_notify) == FK_DOOR_RESULT_QUARANTINED);
    CHECK(!must_notify);
    CHECK(request(8) == FK_DOOR_RESULT_REFUSED);
    CHECK(in.result == FK_AUTHORITY_RESULT_FORBIDDEN);
    CHECK(fk__door_admit(&door, 8, false, &origin, &must_notify) == FK_DOOR_RESULT_UNKNOWN);
    desk_fini(&d);
}

TEST(door_refuses_when_there_is_no_memory)
{
    fk_authority_key other = { FK_STR("other"), FK_STR("host"), 1 };
    begin(NULL);
    CHECK(request(7) == FK_DOOR_RESULT_ACCEPTED);
    rig_fault(&d.r, 1, true);
    CHECK(fk__door_knock(&door, &other, &door.own, d.now, &in) == FK_DOOR_RESULT_NOMEM);
    CHECK(fk__authority_find(&d.table, &other) == NULL);
    rig_fault(&d.r, 0, false);
    desk_fini(&d);
}

TEST(handshake_refuses_times_below_zero)
{
    CHECK_ERR(fk__handshake_configure(&(fk_handshake_config){ .repeat_every = -1 }, &config),
              FK_E_INVALID);
    CHECK_ERR(fk__handshake_configure(&(fk_handshake_config){ .fail_after = -1 }, &config),
              FK_E_INVALID);
    CHECK_ERR(fk__handshake_configure(&(fk_handshake_config){ .inject_every = -1 }, &config),
              FK_E_INVALID);
}

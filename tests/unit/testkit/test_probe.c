/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Probes: what they expect, and what becomes of the messages. */

#include "testkit/scene.h"

static scene s;

static void begin(void)
{
    scene_begin(&s, (fk_sim_config){ .name = "probe" });
}

static void to_probe(uint64_t n)
{
    CHECK_OK(fk_send(fk_sim_system(s.sim), fk_probe_ref(s.probe), FK_MSG(num, n)));
}

TEST(probe_expect_gives_messages_in_order)
{
    begin();
    for (uint64_t i = 0; i < 10; i++) to_probe(i);
    for (uint64_t i = 0; i < 10; i++) {
        const num *n = FK_EXPECT(s.probe, num);
        CHECK(n != NULL);
        CHECK_U64(n->n, i);
    }
    CHECK(fk_sim_now(s.sim) == 0);
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    CHECK(fk_sim_now(s.sim) >= FK_SECONDS(1));
    scene_end(&s);
}

TEST(probe_expect_fails_when_nothing_comes)
{
    begin();
    CHECK(FK_EXPECT(s.probe, num) == NULL);
    scene_check_failure(&s, 1, "expected num to /user/probe within 3.000000 s\n");
    scene_check_failure(&s, 1, "actual   nothing came\n");
    scene_check_failure(&s, 1, "at       tests/unit/testkit/test_probe.c:");
    CHECK(strstr(s.last, "probe: expected num") != NULL);
    CHECK(fk_sim_now(s.sim) >= FK_SECONDS(3));
    CHECK(fk_sim_has_failed(s.sim));
    CHECK(fk_probe_expect_any(s.probe, FK_SECONDS(1)) == NULL);
    CHECK_U64(s.failures, 2);
    scene_end(&s);
}

TEST(probe_expect_fails_when_another_type_comes)
{
    begin();
    CHECK_OK(fk_probe_send(s.probe, fk_probe_ref(s.probe), FK_TEXT("hello")));
    CHECK(FK_EXPECT(s.probe, num) == NULL);
    scene_check_failure(&s, 1, "actual   text \"hello\" from /user/probe at +0.000000\n");
    scene_end(&s);
}

TEST(probe_expect_nothing_fails_when_something_comes)
{
    begin();
    to_probe(1);
    CHECK(!FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    scene_check_failure(&s, 1, "expected nothing to /user/probe within 1.000000 s");
    CHECK(FK_EXPECT(s.probe, num) != NULL); /* it is still there */
    scene_end(&s);
}

TEST(probe_fish_and_ignore_throw_others_away)
{
    begin();
    to_probe(1);
    CHECK_OK(fk_send(fk_sim_system(s.sim), fk_probe_ref(s.probe), FK_TEXT("x")));
    const fk_msg *text = fk_probe_fish(s.probe, &fk_type_text, 0);
    CHECK(text != NULL);
    CHECK_U64(text->len, 1);
    to_probe(2);
    fk_sim_run(s.sim);
    CHECK_U64(fk_probe_count(s.probe), 1);
    CHECK_OK(fk_probe_ignore(s.probe, &fk_type_num));
    CHECK_U64(fk_probe_count(s.probe), 0);
    to_probe(3);
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    CHECK(fk_probe_fish(s.probe, &fk_type_num, FK_SECONDS(1)) == NULL);
    scene_check_failure(&s, 1, "nothing came");
    scene_end(&s);
}

TEST(probe_replies_to_the_last_sender)
{
    fk_probe *other;
    begin();
    CHECK_OK(fk_probe_create(s.sim, "other", &other));
    CHECK_OK(fk_probe_send(other, fk_probe_ref(s.probe), FK_MSG(num, 1)));
    CHECK(FK_EXPECT(s.probe, num) != NULL);
    CHECK_OK(fk_probe_reply(s.probe, FK_MSG(num, 2)));
    const fk_msg *msg = fk_probe_expect(other, &fk_type_num, 0);
    CHECK(msg != NULL);
    CHECK(fk_ref_equal(msg->sender, fk_probe_ref(s.probe)));
    CHECK_ERR(fk_probe_create(s.sim, "other", &other), FK_E_NAME_TAKEN);
    scene_end(&s);
}

static fk_err slow_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *asker = state;
    if (fk_ref_equal(msg->sender, fk_self(ctx))) return fk_tell(ctx, *asker, FK_MSG(num, 1));
    *asker = msg->sender;
    return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_SECONDS(5), FK_MSG(num, 0));
}

TEST(probe_within_bounds_what_is_in_it)
{
    begin();
    const fk_props props = { .receive = slow_receive, .state_size = sizeof(fk_ref) };
    fk_ref slow = scene_spawn(&s, "slow", &props);
    fk_probe_within(s.probe, FK_SECONDS(4), FK_SECONDS(6));
    CHECK_OK(fk_probe_send(s.probe, slow, FK_MSG(num, 1)));
    CHECK(FK_EXPECT(s.probe, num) != NULL); /* the default of 3 s does not count here */
    CHECK(fk_probe_within_end(s.probe));

    fk_probe_within(s.probe, FK_SECONDS(8), FK_SECONDS(9));
    CHECK_OK(fk_probe_send(s.probe, slow, FK_MSG(num, 1)));
    CHECK(FK_EXPECT(s.probe, num) != NULL);
    CHECK(!fk_probe_within_end(s.probe)); /* too early */
    scene_check_failure(&s, 1, "expected this takes 8.000000 to 9.000000 s");

    fk_probe_within(s.probe, 0, FK_SECONDS(2));
    CHECK_OK(fk_probe_send(s.probe, slow, FK_MSG(num, 1)));
    CHECK(FK_EXPECT(s.probe, num) == NULL);
    CHECK(fk_probe_within_end(s.probe));
    CHECK_U64(s.failures, 2);
    scene_end(&s);
}

/* ---- what messages own ------------------------------------------------------------------- */

TEST(probe_drops_what_messages_own_exactly_once)
{
    _Atomic int drops = 0;
    begin();
    fk_system *sys = fk_sim_system(s.sim);
    fk_ref to = fk_probe_ref(s.probe);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fk_send(sys, to, FK_MSG(owned, &drops, 1)));
        owned_large large = { .drops = &drops, .n = 5 };
        memset(large.filling, 5, sizeof(large.filling));
        CHECK_OK(fk_send(sys, to, FK_MSG_AT(owned_large, &large)));
    }
    fk_sim_run(s.sim);
    CHECK_U64(drops, 0);
    CHECK(FK_EXPECT(s.probe, owned) != NULL);
    CHECK_U64(drops, 0);
    const owned_large *large = FK_EXPECT(s.probe, owned_large);
    CHECK(large != NULL);
    CHECK_U64(large->filling[199], 5);
    CHECK_U64(drops, 1);
    scene_end(&s); /* those that nobody asked for, too */
    CHECK_U64(drops, 6);
}

TEST(probe_keeps_payloads_until_the_next_message)
{
    fk_payload *payload;
    begin();
    fk_system *sys = fk_sim_system(s.sim);
    CHECK_OK(fk_payload_create(sys, NULL, 100000, &payload));
    memset(fk_payload_data(payload), 9, 100000);
    CHECK_OK(fk_send(sys, fk_probe_ref(s.probe), FK_MSG_PAYLOAD(payload)));
    const fk_msg *msg = fk_probe_expect(s.probe, &fk_type_bytes, 0);
    CHECK(msg != NULL);
    CHECK_U64(msg->len, 100000);
    CHECK_U64(((const unsigned char *)msg->data)[99999], 9);
    scene_end(&s);
}

/* ---- death watch ------------------------------------------------------------------------- */

TEST(probe_watches)
{
    begin();
    fk_system *sys = fk_sim_system(s.sim);
    fk_ref ref = scene_spawn(&s, "mortal", &(fk_props){ .receive = echo_receive });
    CHECK_OK(fk_probe_watch(s.probe, ref));
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    CHECK_OK(fk_stop(sys, ref));
    CHECK(fk_probe_expect_terminated(s.probe, ref, 0));
    CHECK_OK(fk_probe_watch(s.probe, ref)); /* gone already: told at once */
    CHECK(!fk_probe_expect_terminated(s.probe, fk_probe_ref(s.probe), 0));
    scene_check_failure(&s, 1, "expected fk_terminated of /user/probe");
    scene_end(&s);
}

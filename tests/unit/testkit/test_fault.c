/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Faults: memory that runs out, messages that get lost, actors that have to wait; and what the end of
 * a simulation finds. */

#include <stdio.h>

#include "testkit/scene.h"

static scene s;

static void begin(void)
{
    scene_begin(&s, (fk_sim_config){ .name = "fault" });
}

static uint64_t dropped(void)
{
    fk_stats stats;
    fk_stats_get(fk_sim_system(s.sim), &stats);
    return stats.dead_letters[FK_REASON_DROPPED_OLDEST];
}

/* ---- messages ---------------------------------------------------------------------------- */

static void send_mixed(fk_ref to)
{
    fk_system *sys = fk_sim_system(s.sim);
    CHECK_OK(fk_send(sys, to, FK_MSG(num, 1)));
    CHECK_OK(fk_send(sys, to, FK_TEXT("a")));
    CHECK_OK(fk_send(sys, to, FK_MSG(num, 2)));
    CHECK_OK(fk_send(sys, to, FK_TEXT("b")));
}

/* Of 1 a 2 b: in the middle, at the end, all. From a plain queue and from a bounded mailbox. */
static void check_drops(fk_props props, probe *p)
{
    static const struct {
        const fk_type *type;
        uint32_t n;
        size_t left;
    } CASES[] = { { &fk_type_text, 1, 3 }, { &fk_type_text, 5, 2 }, { &fk_type_num, 1, 3 },
                  { &fk_type_num, 2, 2 },  { NULL, 3, 1 },          { NULL, 9, 0 } };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        begin();
        memset(p, 0, sizeof(*p));
        fk_ref ref = scene_spawn(&s, "", &props);
        CHECK_OK(fk_sim_drop_next(s.sim, ref, CASES[i].type, CASES[i].n));
        send_mixed(ref);
        fk_sim_run(s.sim);
        CHECK_U64(p->count, CASES[i].left);
        CHECK_U64(dropped(), 4 - CASES[i].left);
        if (CASES[i].type == &fk_type_text) CHECK_U64(p->n[0], 1);
        /* The queue is as good as before. */
        CHECK_OK(fk_sim_drop_next(s.sim, ref, &fk_type_bytes, 1));
        CHECK_OK(fk_sim_drop_next(s.sim, ref, NULL, 0));
        fk_sim_run(s.sim);
        scene_end(&s);
    }
}

TEST(fault_drops_from_a_mailbox)
{
    probe p;
    check_drops(probe_props(&p), &p);
}

TEST(fault_drops_from_a_bounded_mailbox)
{
    probe p;
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 10;
    check_drops(props, &p);
}

static int64_t by_type(const fk_msg *msg)
{
    return msg->type == &fk_type_num ? 0 : 1;
}

TEST(fault_drops_from_a_priority_mailbox)
{
    probe p;
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_STABLE;
    props.priority = by_type;
    check_drops(props, &p);
}

TEST(fault_drops_whoever_it_is_for)
{
    begin();
    fk_ref a = scene_spawn(&s, "a", &(fk_props){ .receive = echo_receive });
    CHECK_OK(fk_sim_drop_next(s.sim, FK_REF_NONE, &fk_type_num, 1));
    CHECK_OK(fk_probe_send(s.probe, a, FK_MSG(num, 1)));
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    CHECK_OK(fk_probe_send(s.probe, a, FK_MSG(num, 2)));
    const num *n = FK_EXPECT(s.probe, num);
    CHECK(n != NULL);
    CHECK_U64(n->n, 2);
    for (int i = 0; i < 16; i++) CHECK_OK(fk_sim_drop_next(s.sim, a, NULL, 1));
    CHECK_ERR(fk_sim_drop_next(s.sim, a, NULL, 1), FK_E_LIMIT);
    scene_end(&s);
}

TEST(fault_drops_release_what_messages_own)
{
    _Atomic int drops = 0;
    begin();
    CHECK_OK(fk_sim_drop_next(s.sim, fk_probe_ref(s.probe), NULL, 1));
    CHECK_OK(fk_send(fk_sim_system(s.sim), fk_probe_ref(s.probe), FK_MSG(owned, &drops, 1)));
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(1)));
    CHECK_U64(drops, 1);
    scene_end(&s);
}

/* ---- time -------------------------------------------------------------------------------- */

TEST(fault_delay_keeps_an_actor_from_running)
{
    begin();
    fk_ref slow = scene_spawn(&s, "slow", &(fk_props){ .receive = echo_receive });
    fk_ref quick = scene_spawn(&s, "quick", &(fk_props){ .receive = echo_receive });
    CHECK_OK(fk_sim_delay(s.sim, slow, FK_SECONDS(10)));
    CHECK_ERR(fk_sim_delay(s.sim, slow, FK_SECONDS(10)), FK_E_STATE);
    CHECK_OK(fk_probe_send(s.probe, slow, FK_MSG(num, 1)));
    CHECK_OK(fk_probe_send(s.probe, quick, FK_MSG(num, 2)));
    const num *n = FK_EXPECT(s.probe, num);
    CHECK(n != NULL && n->n == 2);
    CHECK(FK_EXPECT_NOTHING(s.probe, FK_SECONDS(9)));
    n = FK_EXPECT(s.probe, num);
    CHECK(n != NULL && n->n == 1);
    CHECK(fk_sim_now(s.sim) >= FK_SECONDS(10));
    CHECK_OK(fk_sim_delay(s.sim, slow, FK_SECONDS(10))); /* the end does not wait for it */
    CHECK_OK(fk_probe_send(s.probe, slow, FK_MSG(num, 3)));
    fk_sim_run(s.sim);
    scene_end(&s);
}

/* ---- memory ------------------------------------------------------------------------------ */

TEST(fault_fails_one_allocation_or_all_that_follow)
{
    begin();
    fk_system *sys = fk_sim_system(s.sim);
    fk_ref to = fk_probe_ref(s.probe);
    fk_sim_run(s.sim);
    fk_sim_fail_alloc(s.sim, 2);
    CHECK_OK(fk_send(sys, to, FK_MSG(num, 1)));
    CHECK_ERR(fk_send(sys, to, FK_MSG(num, 2)), FK_E_NOMEM);
    CHECK_OK(fk_send(sys, to, FK_MSG(num, 3)));
    CHECK_U64(fk_sim_refused(s.sim), 1);
    fk_sim_fail_alloc_from(s.sim, 1);
    CHECK_ERR(fk_send(sys, to, FK_MSG(num, 4)), FK_E_NOMEM);
    CHECK_ERR(fk_send(sys, to, FK_MSG(num, 5)), FK_E_NOMEM);
    fk_sim_fail_alloc(s.sim, 0);
    CHECK_OK(fk_send(sys, to, FK_MSG(num, 6)));
    fk_sim_fail_site(s.sim, "message");
    CHECK_ERR(fk_send(sys, to, FK_MSG(num, 7)), FK_E_NOMEM);
    fk_sim_fail_site(s.sim, NULL);
    static const uint64_t EXPECTED[] = { 1, 3, 6 };
    for (int i = 0; i < 3; i++) {
        const num *n = FK_EXPECT(s.probe, num);
        CHECK(n != NULL);
        CHECK_U64(n->n, EXPECTED[i]);
    }
    scene_end(&s);
}

/* An actor that needs memory of all kinds, and says when it got none. */
static fk_err hungry_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref child;
    (void)state;
    if (fk_ref_equal(msg->sender, fk_self(ctx))) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    fk_err err = fk_spawn_child(ctx, FK_STR("child"),
                                &(fk_props){ .receive = echo_receive, .state_size = 100 }, &child);
    if (err == FK_OK) err = fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_SECONDS(1), FK_MSG(num, 0));
    if (err == FK_OK) err = fk_reply(ctx, FK_TEXT("done"));
    return err;
}

/* One run with the n-th allocation refused; false when there was none such any more. */
static bool run_hungry(uint64_t n)
{
    fk_sim *sim;
    fk_probe *asker = NULL;
    fk_ref ref;
    const fk_sim_config config = {
        .name = "sweep", .seed = 1, .fail_alloc = n, .allow_failures = true
    };
    fk_err err = fk_sim_create(&config, &sim);
    if (err != FK_OK) {
        CHECK_ERR(err, FK_E_NOMEM);
        return true;
    }
    err = fk_probe_create(sim, "asker", &asker);
    if (err == FK_OK) {
        const fk_props props = { .receive = hungry_receive };
        err = fk_spawn(fk_sim_system(sim), FK_STR("hungry"), &props, &ref);
    }
    if (err == FK_OK) err = fk_probe_send(asker, ref, FK_MSG(num, 1));
    CHECK(err == FK_OK || err == FK_E_NOMEM);
    fk_sim_advance(sim, FK_SECONDS(2));
    bool was_refused = fk_sim_refused(sim) != 0;
    if (!was_refused) CHECK(fk_probe_expect(asker, &fk_type_text, 0) != NULL);
    CHECK(fk_sim_destroy(sim)); /* nothing is left, whatever was refused */
    return was_refused;
}

TEST(fault_sweep_over_every_allocation)
{
    uint64_t n = 1;
    while (run_hungry(n)) n++;
    printf("%llu allocations\n", (unsigned long long)(n - 1));
    CHECK(n > 15);
}

/* ---- the end ----------------------------------------------------------------------------- */

TEST(fault_a_forgotten_payload_fails_the_test)
{
    fk_payload *payload;
    begin();
    CHECK_OK(fk_payload_create(fk_sim_system(s.sim), NULL, 50, &payload));
    CHECK(!fk_sim_destroy(s.sim));
    scene_check_failure(&s, 1, "expected that every payload is sent or put back");
    scene_check_failure(&s, 1, "actual   1 left, 50 bytes");
    CHECK(strstr(s.last, "not a clean end") != NULL);
}

static fk_err fail_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    return fk_fail(ctx, FK_E_INVALID, "on purpose");
}

TEST(fault_a_failure_that_nobody_expected_fails_the_test)
{
    begin();
    fk_ref ref = scene_spawn(&s, "weak", &(fk_props){ .receive = fail_receive });
    CHECK_OK(fk_send(fk_sim_system(s.sim), ref, FK_MSG(num, 1)));
    fk_sim_run(s.sim);
    CHECK(!fk_sim_destroy(s.sim));
    scene_check_failure(
        &s, 1, "actual   1; the first: /user/weak failed on num: FK_E_INVALID, on purpose");
}

TEST(fault_a_failure_that_was_expected_does_not)
{
    begin();
    fk_ref ref = scene_spawn(&s, "weak", &(fk_props){ .receive = fail_receive });
    CHECK_OK(fk_send(fk_sim_system(s.sim), ref, FK_MSG(num, 1)));
    CHECK(fk_sim_expect_failure(s.sim, FK_E_INVALID, 0));
    CHECK(fk_sim_destroy(s.sim));
    begin();
    CHECK(!fk_sim_expect_failure(s.sim, FK_E_INVALID, FK_SECONDS(1)));
    scene_check_failure(&s, 1, "expected an actor fails with FK_E_INVALID within 1.000000 s");
    scene_end(&s);
}

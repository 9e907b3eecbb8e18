/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a failure looks like, and that it ends a test of cmocka. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "testkit/scene.h"

static scene s;

static size_t count_words(const char *text, const char *words)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) count++;
    return count;
}

static void fail_after(uint64_t messages)
{
    scene_begin(&s, (fk_sim_config){ .name = "report", .seed = 0xabc });
    fk_ref echo = scene_spawn(&s, "echo", &(fk_props){ .receive = echo_receive });
    for (uint64_t i = 0; i < messages; i++) {
        fk_sim_advance(s.sim, FK_SECONDS(1));
        CHECK_OK(fk_probe_send(s.probe, echo, FK_MSG(num, i)));
        CHECK(FK_EXPECT(s.probe, num) != NULL);
    }
    CHECK_OK(fk_send(fk_sim_system(s.sim), echo, FK_TEXT("?")));
    fk_sim_run(s.sim);
    CHECK_OK(fk_sim_delay(s.sim, echo, FK_SECONDS(100)));
    CHECK_OK(fk_probe_send(s.probe, echo, FK_MSG(num, 1)));
    fk_sim_note(s.sim, "now it happens");
    CHECK(FK_EXPECT(s.probe, num) == NULL);
}

TEST(report_has_what_one_needs)
{
    fail_after(30);
    scene_check_failure(&s, 1, "report: a check of the test failed\n");
    scene_check_failure(&s, 1, "  last 20 of ");
    scene_check_failure(&s, 1, " /user/echo <- num from /user/probe\n");
    scene_check_failure(&s, 1, " /user/probe <- num from /user/echo\n");
    scene_check_failure(&s, 1, " dead letter (unhandled): text from nobody to /user/echo\n");
    scene_check_failure(&s, 1, " fault: delay of /user/echo\n");
    scene_check_failure(&s, 1, " now it happens\n");
    scene_check_failure(&s, 1, "\n    +30.");
    scene_check_failure(&s, 1, "  actors at +33.");
    scene_check_failure(&s, 1, "\n      user idle children=2\n");
    scene_check_failure(&s, 1, " active mailbox=1\n");
    scene_check_failure(&s, 1, "  replay: FK_SEED=0xabc ctest -R report\n");
    CHECK_U64(count_words(s.report, "\n    +"), 20);
    scene_end(&s);
}

TEST(report_is_the_same_every_time)
{
    static char first[sizeof(s.report)];
    fail_after(5);
    scene_end(&s);
    memcpy(first, s.report, sizeof(first));
    fail_after(5);
    scene_end(&s);
    CHECK_STR(s.report, first);
}

TEST(report_on_demand_is_no_failure)
{
    scene_begin(&s, (fk_sim_config){ .name = "demand" });
    fk_sim_report(s.sim);
    CHECK(strstr(s.report, "replay: FK_SEED=0x7 ctest -R demand\n") != NULL);
    CHECK(!fk_sim_has_failed(s.sim));
    scene_end(&s);
}

/* Looking must not change what is looked at. */
TEST(report_changes_nothing)
{
    uint64_t hash[2];
    for (int i = 0; i < 2; i++) {
        scene_begin(&s, (fk_sim_config){ .name = "look" });
        fk_ref echo = scene_spawn(&s, "echo", &(fk_props){ .receive = echo_receive });
        for (uint64_t n = 0; n < 20; n++) {
            CHECK_OK(fk_probe_send(s.probe, echo, FK_MSG(num, n)));
            if (i == 1) fk_sim_report(s.sim);
        }
        fk_sim_run(s.sim);
        CHECK_U64(fk_sim_allocs(s.sim) > 0, 1);
        hash[i] = fk_sim_hash(s.sim) ^ fk_sim_allocs(s.sim);
        scene_end(&s);
    }
    CHECK_U64(hash[0], hash[1]);
}

/* ---- cmocka ------------------------------------------------------------------------------ */

FK_SIM_CMOCKA(end_test);

static fk_sim *left_behind;

static void quiet(void *user, const char *text, size_t len)
{
    (void)user;
    (void)text;
    (void)len;
}

static void test_that_fails(void **state)
{
    fk_probe *p;
    const fk_sim_config config = { .name = "cmocka",
                                   .writer = { quiet, NULL },
                                   .on_failure = end_test };
    (void)state;
    assert_int_equal(fk_sim_create(&config, &left_behind), FK_OK);
    assert_int_equal(fk_probe_create(left_behind, "probe", &p), FK_OK);
    FK_EXPECT(p, num);
    abort(); /* not reached */
}

TEST(report_ends_a_test_of_cmocka)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_that_fails) };
    CHECK(cmocka_run_group_tests_name("a test that fails on purpose", tests, NULL, NULL) == 1);
    CHECK(!fk_sim_destroy(left_behind)); /* it can still be cleared away */
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How a system begins: requirements 002 (guardians) and 003 (guardians as handles), one test each. */

#include <stdio.h>
#include <string.h>

#include "core/boot.h"
#include "core/guardian.h"
#include "core/terminate.h"
#include "fraktor/boot.h"
#include "fraktor/registry.h"
#include "fraktor/select.h"
#include "support/stage.h"

static stage s;

static const fk_props PLAIN = { .receive = doer_receive };

static fk_boot *boot_create(void)
{
    fk_boot *boot = NULL;
    stage_init(&s);
    fk_system_config config = stage_config(&s, (fk_system_config){ 0 });
    CHECK_OK(fk_boot_create(&config, &boot));
    return boot;
}

static void boot_guardians(fk_boot *boot)
{
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL));
}

static void boot_finish(fk_boot *boot)
{
    CHECK_OK(fk_boot_finish(boot, &s.r.sys, NULL));
    rig_run(&s.r);
}

static void check_at(fk_ref ref, const char *expected)
{
    char path[STAGE_PATH];
    stage_path(&s, ref, path);
    CHECK_STR(path, expected);
}

/* ---- 002: the tree and how it is made ----------------------------------------------------------- */

/* The events of the beginning come before the system has a name for the test, so by reference. */
TEST(r002_boot_makes_root_then_user_then_system_then_extra_names)
{
    fk_ref metrics;
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), &PLAIN, &metrics));
    boot_finish(boot);
    fk_ref expected[] = { fk_guardian(s.r.sys, FK_GUARDIAN_ROOT),
                          fk_guardian(s.r.sys, FK_GUARDIAN_USER),
                          fk_guardian(s.r.sys, FK_GUARDIAN_SYSTEM), metrics };
    for (size_t i = 0; i < 4; i++) {
        CHECK_U64(s.event[i].kind, FK_EVENT_STARTED);
        CHECK(fk_ref_equal(s.event[i].actor, expected[i]));
    }
    stage_expect_steps(&s, ""); /* nothing of an end */
    stage_end(&s);
}

TEST(r002_hierarchy_has_user_system_temp_dead_letters_and_extra_names)
{
    static const char *const PATHS[] = { "/user", "/system", "/temp", "/deadLetters", "/metrics" };
    fk_ref ref, metrics;
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), &PLAIN, &metrics));
    boot_finish(boot);
    check_at(fk_guardian(s.r.sys, FK_GUARDIAN_ROOT), "/");
    for (size_t i = 0; i < 5; i++) {
        char text[64];
        snprintf(text, sizeof(text), "fraktor://test%s", PATHS[i]);
        CHECK_OK(fk_resolve(s.r.sys, fk_str_of(text), &ref, NULL));
        check_at(ref, PATHS[i]);
    }
    CHECK(fk_ref_equal(ref, metrics));
    stage_end(&s);
}

static fk_err extra_start(fk_ctx *ctx, void *state)
{
    fk_ref *parent = state;
    *parent = fk_parent(ctx);
    return FK_OK;
}

TEST(r002_extra_names_run_from_the_start_below_the_root)
{
    fk_ref metrics, parent = FK_REF_NONE;
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    fk_props props = { .receive = doer_receive, .start = extra_start, .state = &parent };
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), &props, &metrics));
    CHECK(fk_ref_is_none(parent)); /* nothing runs before the end of the boot */
    boot_finish(boot);
    CHECK(fk_ref_equal(parent, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT)));
    stage_end(&s);
}

TEST(r002_root_has_no_parent)
{
    stage_start(&s);
    const fk_cell *root = fk__cell_resolve(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_ROOT));
    CHECK(root != NULL);
    CHECK(fk__cell_parent(root) == NULL);
    stage_end(&s);
}

/* ---- 002: RegisterExtraTopLevelError ------------------------------------------------------------- */

TEST(r002_extra_name_reserved_is_refused)
{
    static const char *const NAMES[] = { "user",        "system", "temp",
                                         "deadLetters", "USER",   "deadletters" };
    fk_ref ref;
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        CHECK_ERR(fk_boot_extra(boot, fk_str_of(NAMES[i]), &PLAIN, &ref), FK_E_RESERVED_NAME);
    }
    CHECK_OK(fk_boot_extra(boot, FK_STR("users"), &PLAIN, &ref));
    boot_finish(boot);
    stage_end(&s);
}

TEST(r002_extra_name_twice_is_refused)
{
    fk_ref first, ref;
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), &PLAIN, &first));
    CHECK_ERR(fk_boot_extra(boot, FK_STR("metrics"), &PLAIN, &ref), FK_E_NAME_TAKEN);
    CHECK_ERR(fk_boot_extra(boot, FK_STR("m%65trics"), &PLAIN, &ref), FK_E_NAME_TAKEN);
    boot_finish(boot);
    CHECK(fk_is_alive(s.r.sys, first));
    stage_end(&s);
}

TEST(r002_extra_name_that_is_no_name_is_refused)
{
    static const struct {
        const char *name;
        fk_err err;
    } CASES[] = {
        { "", FK_E_INVALID }, { "a/b", FK_E_NAME }, { "$x", FK_E_RESERVED }, { "%zz", FK_E_PERCENT }
    };
    fk_ref ref;
    fk_boot *boot = boot_create();
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        CHECK_ERR(fk_boot_extra(boot, fk_str_of(CASES[i].name), &PLAIN, &ref), CASES[i].err);
    }
    CHECK_ERR(fk_boot_extra(boot, FK_STR("ok"), &(fk_props){ 0 }, &ref), FK_E_INVALID);
    fk_boot_abandon(boot);
    rig_check_empty(&s.r);
}

TEST(r002_extra_name_after_the_start_is_an_error_and_a_warning)
{
    fk_ref ref = FK_REF_NONE;
    stage_start(&s);
    CHECK_ERR(fk_register_top_level(s.r.sys, FK_STR("metrics"), &PLAIN, &ref),
              FK_E_ALREADY_STARTED);
    CHECK(fk_ref_is_none(ref));
    CHECK_U64(stage_count(&s, FK_EVENT_GUARDIAN), 1);
    CHECK(strstr(stage_last(&s, FK_EVENT_GUARDIAN)->reason, "after the start") != NULL);
    CHECK_ERR(fk_resolve(s.r.sys, FK_STR("fraktor://test/metrics"), &ref, NULL), FK_E_PID_UNKNOWN);
    stage_end(&s);
}

/* ---- 002: the boundary between /user and /system ------------------------------------------------- */

TEST(r002_public_spawn_makes_actors_below_user_only)
{
    fk_ref ref;
    stage_start(&s);
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("system"), &PLAIN, &ref)); /* a name like any other there */
    check_at(ref, "/user/system");
    CHECK_OK(fk_spawn(s.r.sys, FK_STR(""), &PLAIN, &ref));
    check_at(ref, "/user/$a");
    /* Nor can a name lead out. */
    CHECK_ERR(fk_spawn(s.r.sys, FK_STR("../system/x"), &PLAIN, &ref), FK_E_NAME);
    CHECK_ERR(fk_spawn(s.r.sys, FK_STR("/system/x"), &PLAIN, &ref), FK_E_NAME);
    stage_end(&s);
}

TEST(r002_what_is_sent_to_the_system_goes_to_user)
{
    probe p;
    stage_init(&s);
    fk_props guardian = probe_props(&p);
    CHECK_OK(stage_try_start(&s, (fk_system_config){ .user_guardian = &guardian }));
    CHECK_OK(fk_system_tell(s.r.sys, FK_MSG(num, 7)));
    rig_run(&s.r);
    CHECK_U64(p.count, 1);
    CHECK_U64(p.n[0], 7);
    stage_end(&s);
}

TEST(r002_user_guardian_can_have_props_and_children)
{
    probe p;
    fk_ref child;
    stage_init(&s);
    fk_props guardian = probe_props(&p);
    CHECK_OK(stage_try_start(&s, (fk_system_config){ .user_guardian = &guardian }));
    CHECK_OK(fk_spawn(s.r.sys, FK_STR("a"), &PLAIN, &child));
    check_at(child, "/user/a");
    CHECK_OK(fk_send(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_USER), FK_MSG(num, 1)));
    rig_run(&s.r);
    CHECK(p.started);
    CHECK_U64(p.n[0], 1);
    stage_end(&s);
    CHECK(p.stopped);
}

/* ---- 002: strategies ----------------------------------------------------------------------------- */

static fk_err fail_now(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_E_INVALID;
}

TEST(r002_user_strategy_of_the_config_is_followed)
{
    fk_strategy stopping = { .decide = fk_decide_stop };
    stage_start_with(&s, (fk_system_config){ .user_strategy = &stopping });
    fk_ref doer = doer_spawn(&s.r);
    rig_do(&s.r, doer, fail_now, NULL);
    CHECK(!fk_is_alive(s.r.sys, doer));
    CHECK_U64(stage_last(&s, FK_EVENT_SUPERVISED)->directive, FK_DIRECTIVE_STOP);
    stage_end(&s);
    stage_start(&s); /* without one: the default */
    doer = doer_spawn(&s.r);
    rig_do(&s.r, doer, fail_now, NULL);
    CHECK(fk_is_alive(s.r.sys, doer));
    stage_end(&s);
}

TEST(r002_invalid_strategy_fails_the_boot)
{
    static const fk_strategy WRONG[] = {
        { .within = -1 },        { .restarts = -3 },        { .kind = (fk_strategy_kind)9 },
        { .backoff_min = -1 },   { .backoff_jitter = 101 }, { .backoff_min = 2, .backoff_max = 1 },
        { .backoff_reset = -1 },
    };
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        fk_err cause = FK_OK;
        stage_init(&s);
        CHECK_ERR(stage_try_start(
                      &s, (fk_system_config){ .user_strategy = &WRONG[i], .boot_cause = &cause }),
                  FK_E_NOT_BOOTSTRAPPED);
        CHECK_ERR(cause, FK_E_STRATEGY);
        rig_check_empty(&s.r);
    }
}

TEST(r002_root_and_system_cannot_be_customised_and_the_boot_goes_on)
{
    const fk_strategy own = { .kind = FK_ALL_FOR_ONE };
    fk_boot *boot = boot_create();
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_ROOT, NULL, &own), FK_E_ROOT_FIXED);
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_ROOT, &PLAIN, NULL), FK_E_ROOT_FIXED);
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, &own), FK_E_SYSTEM_FIXED);
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, &PLAIN, NULL), FK_E_SYSTEM_FIXED);
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL), FK_E_NAME_TAKEN);
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, &own));
    CHECK_ERR(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL), FK_E_NAME_TAKEN);
    boot_finish(boot);
    CHECK(fk_is_alive(s.r.sys, fk_guardian(s.r.sys, FK_GUARDIAN_SYSTEM)));
    stage_end(&s);
    stage_expect_steps(&s, "running>stopping_user stopping_user>hooks "
                           "hooks>stopping_system stopping_system>stopping_root "
                           "stopping_root>terminated");
}

/* ---- 003: booting and running are different types -------------------------------------------------- */

TEST(r003_into_running_names_the_guardian_that_is_missing)
{
    fk_guardian_kind missing = FK_GUARDIAN_ROOT;
    fk_boot *boot = boot_create();
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_SYSTEM, NULL, NULL));
    CHECK_ERR(fk_boot_finish(boot, &s.r.sys, &missing), FK_E_MISSING_GUARDIAN);
    CHECK_U64(missing, FK_GUARDIAN_USER);
    rig_check_empty(&s.r);
    boot = boot_create();
    CHECK_OK(fk_boot_guardian(boot, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_ERR(fk_boot_finish(boot, &s.r.sys, &missing), FK_E_MISSING_GUARDIAN);
    CHECK_U64(missing, FK_GUARDIAN_SYSTEM);
    rig_check_empty(&s.r);
    CHECK_ERR(fk_boot_finish(boot_create(), &s.r.sys, NULL), FK_E_MISSING_GUARDIAN);
    rig_check_empty(&s.r);
}

TEST(r003_boot_is_gone_after_finish_whatever_the_result)
{
    fk_boot *boot = boot_create();
    boot_guardians(boot);
    CHECK_ERR(fk_boot_finish(boot, NULL, NULL), FK_E_INVALID);
    rig_check_empty(&s.r);
}

TEST(r003_boot_abandoned_frees_everything)
{
    fk_ref ref;
    fk_props props = { .receive = doer_receive, .state_size = 100 };
    fk_boot *boot = boot_create();
    CHECK(atomic_load(&s.r.bytes) > 0);
    fk_boot_abandon(boot);
    rig_check_empty(&s.r);
    boot = boot_create();
    boot_guardians(boot);
    CHECK_OK(fk_boot_extra(boot, FK_STR("metrics"), &props, &ref));
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 3;
    CHECK_OK(fk_boot_extra(boot, FK_STR("bounded"), &props, &ref));
    fk_boot_abandon(boot);
    rig_check_empty(&s.r);
    fk_boot_abandon(NULL);
}

/* The types forbid it; who comes there inside the library gets an error. */
TEST(r003_booting_system_refuses_spawn_resolve_and_terminate)
{
    fk_system *sys = NULL;
    fk_ref ref;
    stage_init(&s);
    fk_system_config config = stage_config(&s, (fk_system_config){ 0 });
    CHECK_OK(fk__system_make(&config, &s.r.port, 1, &sys));
    CHECK_ERR(fk_spawn(sys, FK_STR("a"), &PLAIN, &ref), FK_E_NOT_BOOTSTRAPPED);
    CHECK_OK(fk__guardian_create(sys, FK_GUARDIAN_USER, NULL, NULL));
    CHECK_ERR(fk_spawn(sys, FK_STR("a"), &PLAIN, &ref), FK_E_NOT_BOOTSTRAPPED);
    CHECK_ERR(fk_resolve(sys, FK_STR("fraktor://test/user"), &ref, NULL), FK_E_NOT_BOOTSTRAPPED);
    CHECK_ERR(fk_terminate(sys), FK_E_NOT_BOOTSTRAPPED);
    CHECK_ERR(fk_terminate_now(sys), FK_E_NOT_BOOTSTRAPPED);
    fk__system_destroy(sys);
    rig_check_empty(&s.r);
}

TEST(r003_guardian_is_never_empty_while_the_system_runs)
{
    stage_start(&s);
    for (int kind = FK_GUARDIAN_USER; kind <= FK_GUARDIAN_ROOT; kind++) {
        fk_ref ref = fk_guardian(s.r.sys, (fk_guardian_kind)kind);
        CHECK(!fk_ref_is_none(ref));
        CHECK(fk_is_alive(s.r.sys, ref));
    }
    fk_ref user = fk_guardian(s.r.sys, FK_GUARDIAN_USER);
    CHECK_OK(fk_terminate(s.r.sys));
    rig_run(&s.r);
    CHECK(fk_ref_equal(fk_guardian(s.r.sys, FK_GUARDIAN_USER), user)); /* stopped, but it was */
    CHECK(!fk_is_alive(s.r.sys, user));
    CHECK(fk_ref_is_none(fk_guardian(s.r.sys, (fk_guardian_kind)17)));
    stage_end(&s);
}

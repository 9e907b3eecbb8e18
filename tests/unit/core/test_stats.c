/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counters are exact once the system is at rest. */

#include "support/rig.h"

static fk_stats stats_of(rig *r)
{
    fk_stats stats;
    fk_stats_get(r->sys, &stats);
    return stats;
}

TEST(stats_of_a_fresh_system_are_zero)
{
    rig r;
    rig_start(&r);
    fk_stats s = stats_of(&r);
    CHECK_U64(s.actors, 0);
    CHECK_U64(s.spawned, 0);
    CHECK_U64(s.stopped, 0);
    CHECK_U64(s.processed, 0);
    CHECK_U64(s.failures, 0);
    CHECK_U64(s.timers, 0);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(s.dead_letters[i], 0);
    CHECK_U64(s.memory, atomic_load(&r.bytes));
    rig_stop(&r);
}

TEST(stats_count_actors_messages_and_dead_letters)
{
    enum { ACTORS = 300, MESSAGES = 7 };
    static probe probes[ACTORS];
    static fk_ref refs[ACTORS];
    rig r;
    rig_start(&r);
    for (int i = 0; i < ACTORS; i++) refs[i] = probe_spawn(&r, &probes[i]);
    for (int i = 0; i < ACTORS; i++) {
        for (int j = 0; j < MESSAGES; j++) CHECK_OK(fk_send(r.sys, refs[i], FK_MSG(num, 1)));
    }
    rig_run(&r);
    fk_stats s = stats_of(&r);
    CHECK_U64(s.actors, ACTORS);
    CHECK_U64(s.spawned, ACTORS);
    CHECK_U64(s.processed, ACTORS * MESSAGES);
    for (int i = 0; i < 100; i++) CHECK_OK(fk_stop(r.sys, refs[i]));
    rig_run(&r);
    for (int i = 0; i < 100; i++) CHECK_OK(fk_send(r.sys, refs[i], FK_MSG(num, 1)));
    s = stats_of(&r);
    CHECK_U64(s.actors, ACTORS - 100);
    CHECK_U64(s.stopped, 100);
    CHECK_U64(s.dead_letters[FK_REASON_STOPPED], 100);
    CHECK_U64(s.processed, ACTORS * MESSAGES);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(s.dead_letters[i], r.letters.of[i]);
    CHECK_U64(s.memory, atomic_load(&r.bytes));
    rig_stop(&r);
}

static fk_err fail_it(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_E_FAILED;
}

TEST(stats_count_failures)
{
    rig r;
    rig_start(&r);
    for (int i = 0; i < 5; i++) rig_do(&r, doer_spawn(&r), fail_it, NULL);
    fk_stats s = stats_of(&r);
    CHECK_U64(s.failures, 5);
    CHECK_U64(s.failures, r.failures.count);
    CHECK_U64(s.actors, 5); /* restarted */
    rig_stop(&r);
}

TEST(stats_do_not_count_a_failed_spawn)
{
    rig r;
    fk_ref ref;
    rig_start(&r);
    CHECK_ERR(fk_spawn(r.sys, FK_STR("$no"), &(fk_props){ .receive = doer_receive }, &ref),
              FK_E_RESERVED);
    CHECK_OK(fk_spawn(r.sys, FK_STR("x"), &(fk_props){ .receive = doer_receive }, &ref));
    CHECK_ERR(fk_spawn(r.sys, FK_STR("x"), &(fk_props){ .receive = doer_receive }, &ref),
              FK_E_NAME_TAKEN);
    CHECK_U64(stats_of(&r).spawned, 1);
    CHECK_U64(stats_of(&r).actors, 1);
    rig_stop(&r);
}

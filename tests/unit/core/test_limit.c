/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* actors_max and memory_max: refused with FK_E_LIMIT, and usable again after freeing. */

#include <stdlib.h>

#include "support/rig.h"

static const fk_props PROPS = { .receive = doer_receive };

/* Spawns until refused; the references go to refs. */
static size_t spawn_until_refused(rig *r, fk_ref *refs, size_t max, fk_err *why)
{
    size_t count = 0;
    while (count < max) {
        *why = fk_spawn(r->sys, FK_STR(""), &PROPS, &refs[count]);
        if (*why != FK_OK) break;
        count++;
    }
    return count;
}

TEST(actors_max_is_exact)
{
    static const uint32_t LIMITS[] = { 1, 2, 10, 255, 256, 257, 1000 };
    static fk_ref refs[4000];
    for (size_t i = 0; i < sizeof(LIMITS) / sizeof(LIMITS[0]); i++) {
        rig r;
        fk_err why = FK_OK;
        rig_start_with(&r, (fk_system_config){ .actors_max = LIMITS[i] });
        CHECK_U64(spawn_until_refused(&r, refs, 4000, &why), LIMITS[i]);
        CHECK_ERR(why, FK_E_LIMIT);
        rig_stop(&r);
    }
}

TEST(actors_max_counts_the_living_only)
{
    static fk_ref refs[4000];
    static const uint32_t LIMITS[] = { 1, 100, 255, 700 };
    for (size_t i = 0; i < sizeof(LIMITS) / sizeof(LIMITS[0]); i++) {
        rig r;
        rig_start_with(&r, (fk_system_config){ .actors_max = LIMITS[i] });
        size_t first = 0;
        for (int round = 0; round < 5; round++) {
            fk_err why = FK_OK;
            size_t count = spawn_until_refused(&r, refs, 4000, &why);
            CHECK_ERR(why, FK_E_LIMIT);
            if (round == 0) first = count;
            CHECK(count >= LIMITS[i]);
            CHECK_U64(count, first); /* as many as the first time */
            for (size_t j = 0; j < count; j++) CHECK_OK(fk_stop(r.sys, refs[j]));
            rig_run(&r);
        }
        rig_stop(&r);
    }
}

TEST(memory_max_makes_sends_fail_with_limit_and_recovers)
{
    for (int direct = 0; direct < 2; direct++) {
        rig r;
        probe p;
        rig_start_with(&r,
                       (fk_system_config){ .memory_max = 4000000, .pools_malloc = direct != 0 });
        fk_ref to = probe_spawn(&r, &p);
        for (int round = 0; round < 3; round++) {
            uint64_t sent = 0, before = p.count;
            size_t letters = r.letters.of[FK_REASON_NO_MEMORY];
            fk_err err;
            while ((err = fk_send(r.sys, to, FK_MSG(num, sent))) == FK_OK) sent++;
            CHECK_ERR(err, FK_E_LIMIT);
            CHECK(sent > 10000);
            CHECK_U64(r.letters.of[FK_REASON_NO_MEMORY], letters + 1);
            CHECK(atomic_load(&r.bytes) <= 4000000);
            rig_run(&r);
            CHECK_U64(p.count - before, sent); /* nothing that was taken is lost */
        }
        rig_stop(&r);
    }
}

TEST(memory_max_freed_by_one_size_serves_another)
{
    enum { SPAWNED = 3000 };
    static fk_ref refs[SPAWNED];
    rig r;
    probe p;
    char text[1000] = { 0 };
    fk_payload *payload;
    rig_start_with(&r, (fk_system_config){ .memory_max = 16 << 20 });
    fk_ref to = probe_spawn(&r, &p);
    while (fk_send(r.sys, to, FK_MSG(num, 1)) == FK_OK) {
    }
    rig_run(&r);
    /* All the memory is in free blocks of one size now, and nothing runs. */
    CHECK_OK(fk_send(r.sys, to, FK_TEXT_AT(((fk_str){ text, 1 }))));
    CHECK_OK(fk_send(r.sys, to, FK_TEXT_AT(((fk_str){ text, 60 }))));
    CHECK_OK(fk_send(r.sys, to, FK_TEXT_AT(((fk_str){ text, sizeof(text) }))));
    rig_run(&r);
    while (fk_send(r.sys, to, FK_TEXT_AT(((fk_str){ text, 60 }))) == FK_OK) {
    }
    rig_run(&r);
    CHECK_OK(fk_payload_create(r.sys, NULL, 8 << 20, &payload));
    fk_payload_put(payload);
    while (fk_send(r.sys, to, FK_MSG(num, 1)) == FK_OK) {
    }
    rig_run(&r);
    for (int i = 0; i < SPAWNED; i++) {
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &PROPS, &refs[i]));
    }
    rig_stop(&r);
}

TEST(memory_max_applies_to_spawn_and_payload_and_recovers)
{
    rig r;
    static fk_ref refs[100000];
    fk_err why = FK_OK;
    fk_payload *payload = NULL;
    rig_start_with(&r, (fk_system_config){ .memory_max = 4000000 });
    CHECK_ERR(fk_payload_create(r.sys, NULL, 5000000, &payload), FK_E_LIMIT);
    CHECK(payload == NULL);
    CHECK_OK(fk_payload_create(r.sys, NULL, 1000000, &payload));
    fk_payload_put(payload);
    size_t count = spawn_until_refused(&r, refs, 100000, &why);
    CHECK_ERR(why, FK_E_LIMIT);
    CHECK(count > 5000);
    for (size_t i = 0; i < count; i++) CHECK_OK(fk_stop(r.sys, refs[i]));
    rig_run(&r);
    CHECK_OK(fk_spawn(r.sys, FK_STR("again"), &PROPS, &refs[0]));
    CHECK(atomic_load(&r.bytes) <= 4000000);
    rig_stop(&r);
}

TEST(memory_max_too_small_to_start_is_a_clear_error)
{
    rig r;
    rig_init(&r);
    CHECK_ERR(rig_try_start(&r, &(fk_system_config){ .memory_max = 1000 }), FK_E_LIMIT);
    CHECK_ERR(rig_try_start(&r, &(fk_system_config){ .memory_max = 20000 }), FK_E_LIMIT);
    rig_check_empty(&r);
}

TEST(props_of_more_kinds_than_can_be_kept_are_refused)
{
    rig r;
    fk_ref ref;
    fk_err err = FK_OK;
    rig_start(&r);
    uint32_t kinds = 0;
    for (; kinds < 70000 && err == FK_OK; kinds++) {
        fk_props props = { .receive = doer_receive, .capacity = kinds + 1 };
        err = fk_spawn(r.sys, FK_STR(""), &props, &ref);
        if (err == FK_OK) CHECK_OK(fk_stop(r.sys, ref));
        if (kinds % 1024 == 0) rig_run(&r);
    }
    CHECK_ERR(err, FK_E_LIMIT);
    CHECK(kinds > 60000);
    fk_props known = { .receive = doer_receive, .capacity = 5 };
    CHECK_OK(fk_spawn(r.sys, FK_STR(""), &known, &ref)); /* known kinds go on */
    rig_stop(&r);
}

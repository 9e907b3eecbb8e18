/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names, limits, configuration, and memory that runs out. */

#include <stdio.h>
#include <string.h>

#include "support/desk.h"

static desk d;

static fk_err get(const char *system, const char *host, uint16_t port, fk_authority **out)
{
    fk_authority_key key = { fk_str_of(system), fk_str_of(host), port };
    fk_err err = fk__authority_get(&d.table, &key, d.now, &d.fx, out);
    fk__authority_table_check(&d.table);
    return err;
}

TEST(table_tells_authorities_apart_by_system_host_and_port)
{
    fk_authority *a[6], *same;
    desk_init(&d, NULL);
    CHECK_OK(get("a", "b", 1, &a[0]));
    CHECK_OK(get("a", "b", 11, &a[1]));
    CHECK_OK(get("a", "b1", 1, &a[2]));
    CHECK_OK(get("ab", "b", 1, &a[3]));
    CHECK_OK(get("A", "b", 1, &a[4])); /* as written */
    CHECK_OK(get("a", "[::1]", 1, &a[5]));
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < i; j++) CHECK(a[i] != a[j]);
    }
    CHECK_OK(get("a", "[::1]", 1, &same));
    CHECK(same == a[5]);
    CHECK(a[5]->text.len == strlen("a@[::1]:1"));
    CHECK(memcmp(a[5]->text.ptr, "a@[::1]:1", a[5]->text.len) == 0);
    CHECK_U64(a[1]->key.port, 11);
    CHECK(fk__authority_find(&d.table, &DESK_KEY) == d.a);
    CHECK(fk__authority_find(&d.table, &(fk_authority_key){ FK_STR("x"), FK_STR("y"), 1 }) == NULL);
    CHECK(fk__authority_find(&d.table, &(fk_authority_key){ FK_STR(""), FK_STR("y"), 1 }) == NULL);
    desk_fini(&d);
}

TEST(table_copies_names)
{
    char system[] = "copied", host[] = "there";
    fk_authority *a, *b;
    desk_init(&d, NULL);
    CHECK_OK(get(system, host, 65535, &a));
    memset(system, 'x', 6);
    memset(host, 'y', 5);
    CHECK_OK(get("copied", "there", 65535, &b));
    CHECK(a == b);
    desk_fini(&d);
}

TEST(table_refuses_what_is_no_authority)
{
    char name[300];
    fk_authority *a = NULL;
    desk_init(&d, NULL);
    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    CHECK_ERR(get("", "h", 1, &a), FK_E_INVALID);
    CHECK_ERR(get("s", "", 1, &a), FK_E_INVALID);
    CHECK_ERR(get("s", "h", 0, &a), FK_E_INVALID);
    CHECK_ERR(get("s@h", "h", 1, &a), FK_E_INVALID);
    CHECK_ERR(get(name, "h", 1, &a), FK_E_INVALID);
    CHECK_ERR(get("s", name, 1, &a), FK_E_INVALID);
    CHECK(a == NULL);
    CHECK(!d.fx.has_change);
    name[255] = '\0';
    CHECK_OK(get(name, name, 65535, &a));
    CHECK_U64(a->text.len, 255 + 1 + 255 + 1 + 5);
    desk_fini(&d);
}

TEST(table_holds_4096_by_default_and_says_limit)
{
    fk_authority *a;
    char host[16];
    desk_init(&d, NULL);
    for (int i = 1; i < 4096; i++) {
        snprintf(host, sizeof(host), "h%d", i);
        CHECK_OK(fk__authority_get(&d.table, &(fk_authority_key){ FK_STR("s"), fk_str_of(host), 1 },
                                   d.now, &d.fx, &a));
    }
    CHECK_ERR(get("s", "one-more", 1, &a), FK_E_LIMIT);
    CHECK_OK(get("s", "h77", 1, &a)); /* those that are there are found still */
    CHECK_U64(d.table.count, 4096);
    uint32_t walked = 0;
    for (a = NULL; (a = fk__authority_after(&d.table, a)) != NULL;) walked++;
    CHECK_U64(walked, 4096);
    desk_fini(&d);
}

/* Whoever knows the names but not the key cannot make long chains. */
TEST(table_hash_depends_on_its_key)
{
    static const fk_hash_key KEYS[2] = { { 1, 2 }, { 1, 3 } };
    fk_authority_table t[2];
    fk_envelopes left;
    uint64_t hash[2][100];
    desk_init(&d, NULL);
    for (int k = 0; k < 2; k++) {
        CHECK_OK(fk__authority_table_init(&t[k], &d.mem, NULL, &KEYS[k], 1));
        for (uint16_t i = 0; i < 100; i++) {
            fk_authority *a;
            fk_authority_key key = { FK_STR("s"), FK_STR("h"), (uint16_t)(i + 1) };
            CHECK_OK(fk__authority_get(&t[k], &key, 0, &d.fx, &a));
            hash[k][i] = a->hash;
        }
        fk__authority_table_fini(&t[k], &left);
    }
    for (int i = 0; i < 100; i++) CHECK(hash[0][i] != hash[1][i]);
    desk_fini(&d);
}

TEST(table_forgets_only_what_has_nothing_to_lose)
{
    fk_authority *a;
    desk_init(
        &d, &(fk_authority_config){ .authorities_max = 2, .quarantine_override = FK_MINUTES(60) });
    CHECK_OK(get("s", "h", 1, &a));
    CHECK_OK(fk__authority_map(&d.table, a, FK_STR("elsewhere"), 2, d.now));
    a->holds = 1;
    CHECK_ERR(fk__authority_forget(&d.table, a, d.now), FK_E_STATE);
    a->holds = 0;
    a->is_kept = true;
    CHECK_ERR(fk__authority_forget(&d.table, a, d.now), FK_E_STATE);
    a->is_kept = false;
    CHECK_OK(fk__authority_forget(&d.table, a, d.now)); /* planned only */
    CHECK(fk__authority_find(&d.table, &(fk_authority_key){ FK_STR("s"), FK_STR("h"), 1 }) == NULL);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_OK(get("s", "h2", 1, &a)); /* there is room again */
    desk_defer(&d, 1);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now), FK_E_STATE);
    desk_map(&d);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now), FK_E_STATE);
    desk_drain(&d, 1, 0, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    desk_attempt(&d);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now), FK_E_STATE);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now), FK_E_STATE);
    desk_tick(&d);
    CHECK(d.a->state == UNRESOLVED);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now),
              FK_E_STATE); /* the uid must be remembered */
    CHECK_U64(d.table.count, 2);
    fk_time over_at = d.a->quarantined.mark[0].at + FK_QUARANTINE_DEFAULT;
    CHECK_ERR(fk__authority_forget(&d.table, d.a, over_at - 1), FK_E_STATE);
    CHECK_OK(fk__authority_forget(&d.table, d.a, over_at));
    CHECK_U64(d.table.count, 1);
    desk_fini(&d);
}

TEST(table_forgets_what_pekko_quarantines_for_good_with_its_last_uid)
{
    desk_init(&d, &(fk_authority_config){ .rules = FK_RULES_PEKKO });
    desk_quarantined(&d, 7);
    CHECK(d.a->lift_at == FK_NEVER);
    CHECK_ERR(fk__authority_forget(&d.table, d.a, d.now + FK_QUARANTINE_DEFAULT - 1), FK_E_STATE);
    CHECK_OK(fk__authority_forget(&d.table, d.a, d.now + FK_QUARANTINE_DEFAULT));
    CHECK_U64(d.table.count, 0);
    desk_fini(&d);
}

TEST(resting_is_not_tried_nor_given_up_until_it_is_roused)
{
    desk_init(&d, NULL);
    desk_open(&d, 1);
    CHECK(fk__authority_due(&d.table, FK_NEVER) == NULL); /* nothing is planned */
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    CHECK(fk__authority_due(&d.table, d.now) == NULL); /* not yet */
    CHECK(fk__authority_due(&d.table, fk__authority_next(&d.table)) == d.a);
    fk__authority_rest(&d.table, d.a);
    fk__authority_table_check(&d.table);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK(desk_pass(&d, 2 * FK_QUARANTINE_DEFAULT) == 0);
    CHECK(d.a->state == UNRESOLVED);
    fk__authority_rouse(&d.table, d.a, d.now);
    fk__authority_table_check(&d.table);
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_attempt(&d);
    CHECK(fk__authority_due(&d.table, FK_NEVER) == NULL); /* it is under way */
    fk__authority_rouse(&d.table, d.a, d.now);            /* nothing happens */
    CHECK(d.a->is_attempting);
    desk_fini(&d);
}

TEST(resting_ends_with_a_handshake_or_another_mapping)
{
    desk_init(&d, NULL);
    desk_open(&d, 1);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    fk__authority_rest(&d.table, d.a);
    CHECK(desk_handshake(&d, 1) == DONE);
    CHECK(d.a->is_open);
    CHECK(!d.a->is_resting);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, 1) == DONE);
    fk__authority_rest(&d.table, d.a);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR("elsewhere"), 2, d.now));
    fk__authority_table_check(&d.table);
    CHECK(fk__authority_next(&d.table) == d.now);
    desk_fini(&d);
}

TEST(mapping_says_where_to_connect_to)
{
    fk_str host;
    uint16_t port;
    char name[256];
    desk_init(&d, NULL);
    desk_map(&d);
    fk__authority_target(d.a, &host, &port);
    CHECK(host.len == 4 && memcmp(host.ptr, "host", 4) == 0 && port == 2552);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR("10.0.0.7"), 0, d.now));
    fk__authority_target(d.a, &host, &port);
    CHECK(host.len == 8 && memcmp(host.ptr, "10.0.0.7", 8) == 0 && port == 2552);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR(""), 99, d.now));
    fk__authority_target(d.a, &host, &port);
    CHECK(host.len == 4 && memcmp(host.ptr, "host", 4) == 0 && port == 99);
    memset(name, 'n', sizeof(name));
    CHECK_ERR(fk__authority_map(&d.table, d.a, (fk_str){ name, 256 }, 1, d.now), FK_E_INVALID);
    CHECK_OK(fk__authority_map(&d.table, d.a, (fk_str){ name, 255 }, 1, d.now));
    desk_fini(&d);
}

TEST(mapping_is_only_noted_while_quarantined)
{
    desk_init(&d, NULL);
    CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, 0) == DONE);
    fk_time lift = fk__authority_next(&d.table);
    desk_map(&d);
    CHECK(fk__authority_next(&d.table) == lift);
    CHECK(desk_override(&d, false) == DONE);
    CHECK(d.a->state == CONNECTED);
    desk_attempt(&d);
    desk_fini(&d);
}

/* ---- configuration ------------------------------------------------------------------------- */

TEST(config_has_the_defaults_of_the_manual)
{
    fk_authority_config c;
    CHECK_OK(fk__authority_configure(NULL, &c));
    CHECK(c.quarantine == FK_SECONDS(5 * 24 * 3600));
    CHECK(c.give_up_after == c.quarantine);
    CHECK_U64(c.authorities_max, 4096);
    CHECK_U64(c.deferred_max, 1024);
    CHECK_U64(c.deferred_total_max, 8192);
    CHECK_OK(fk__authority_configure(&(fk_authority_config){ .rules = FK_RULES_PEKKO }, &c));
    CHECK_U64(c.deferred_max, 3072);
    CHECK_OK(fk__authority_configure(&(fk_authority_config){ .quarantine = FK_SECONDS(9) }, &c));
    CHECK(c.give_up_after == FK_SECONDS(9));
}

TEST(config_is_checked)
{
    static const fk_authority_config BAD[] = {
        { .rules = (fk_rules)7 },
        { .rules = FK_RULES_PEKKO, .ignore_new_uid = true },
        { .authorities_max = (1u << 20) + 1 },
        { .uids_max = 65537 },
        { .jitter_percent = 101 },
        { .quarantine = FK_SECONDS(1) - 1 },
        { .quarantine = -1 },
        { .quarantine_override = FK_SECONDS(1) - 1 },
        { .quarantine_override = -FK_SECONDS(1) },
        { .give_up_after = -1 },
        { .backoff_min = -1 },
        { .backoff_max = -1 },
        { .backoff_min = FK_SECONDS(31) },
        { .backoff_max = FK_MINUTES(24 * 60) + 1 },
        { .backoff_min = FK_MILLIS(5), .backoff_max = FK_MILLIS(4) },
    };
    static const fk_authority_config GOOD[] = {
        { .authorities_max = 1u << 20 },
        { .uids_max = 65536 },
        { .jitter_percent = 100 },
        { .quarantine = FK_SECONDS(1) },
        { .quarantine_override = FK_SECONDS(1) },
        { .quarantine = FK_NEVER },
        { .give_up_after = 1 },
        { .backoff_min = FK_SECONDS(30) },
        { .backoff_max = FK_MINUTES(24 * 60) },
        { .deferred_max = UINT32_MAX, .deferred_total_max = UINT32_MAX },
    };
    static const fk_hash_key KEY = { 1, 2 };
    fk_authority_table table;
    fk_mem mem;
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        CHECK_ERR(fk__authority_table_init(&table, &mem, &BAD[i], &KEY, 1), FK_E_INVALID);
    }
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        CHECK_OK(fk__authority_table_init(&table, &mem, &GOOD[i], &KEY, 1));
    }
}

TEST(names_are_there_for_every_state_and_reason)
{
    for (int i = 0; i <= FK_ASSOCIATION_COUNT; i++) {
        bool known = strcmp(fk__association_name((fk_association)i), "unknown") != 0;
        CHECK(known == (i < FK_ASSOCIATION_COUNT));
    }
    for (int i = 0; i <= FK_AUTHORITY_REASON_COUNT; i++) {
        bool known = strcmp(fk__authority_reason_name((fk_authority_reason)i), "unknown") != 0;
        CHECK(known == (i < FK_AUTHORITY_REASON_COUNT));
    }
}

/* ---- memory runs out ----------------------------------------------------------------------- */

TEST(no_memory_for_an_authority_changes_nothing)
{
    desk_init(&d, NULL);
    for (uint64_t at = 1; at <= 2; at++) { /* the table must grow, then the authority */
        fk_authority *a = NULL;
        for (uint16_t i = 1; i < 16; i++) CHECK_OK(get("s", "h", i, &a));
        a = NULL;
        uint32_t count = d.table.count;
        rig_fault(&d.r, at, false);
        CHECK_ERR(get("s", "late", 1, &a), FK_E_NOMEM);
        rig_fault(&d.r, 0, false);
        CHECK(a == NULL);
        CHECK(!d.fx.has_change);
        CHECK_U64(d.table.count, count);
        CHECK(fk__authority_find(&d.table, &DESK_KEY) == d.a);
    }
    fk_authority *a;
    CHECK_OK(get("s", "late", 1, &a));
    desk_fini(&d);
}

TEST(no_memory_for_a_mapping_keeps_the_old_one)
{
    fk_str host;
    uint16_t port;
    desk_init(&d, NULL);
    rig_fault(&d.r, 1, true);
    CHECK_ERR(fk__authority_map(&d.table, d.a, FK_STR("elsewhere"), 9, d.now), FK_E_NOMEM);
    CHECK(!d.a->is_mapped);
    CHECK(fk__authority_next(&d.table) == FK_NEVER);
    CHECK_OK(fk__authority_map(&d.table, d.a, FK_STR("host"), 8, d.now)); /* needs none */
    CHECK_ERR(fk__authority_map(&d.table, d.a, FK_STR("elsewhere"), 9, d.now), FK_E_NOMEM);
    rig_fault(&d.r, 0, false);
    fk__authority_target(d.a, &host, &port);
    CHECK(host.len == 4 && port == 8);
    desk_fini(&d);
}

TEST(no_memory_for_a_handshake_is_one_failed_attempt)
{
    desk_init(&d, NULL);
    desk_map(&d);
    desk_defer(&d, 2);
    desk_attempt(&d);
    rig_fault(&d.r, 1, true);
    CHECK(desk_handshake(&d, 1) == FK_AUTHORITY_RESULT_NOMEM);
    CHECK(d.a->state == UNRESOLVED);
    CHECK_U64(d.a->uid, 0);
    CHECK(fk__authority_next(&d.table) > d.now);
    rig_fault(&d.r, 0, false);
    desk_attempt(&d);
    CHECK(desk_handshake(&d, 1) == DONE);
    desk_drain(&d, 9, 0, 2);
    desk_fini(&d);
}

/* Whatever it decides, it can do so without memory, once the handshake was accepted. */
TEST(no_memory_is_needed_to_quarantine)
{
    desk_init(&d, NULL);
    for (uint64_t uid = 1; uid < 50; uid++) {
        desk_open(&d, uid);
        CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_DROPPED, uid) == DONE);
        desk_defer(&d, 2);
        rig_fault(&d.r, 1, true);
        CHECK(desk_tell(&d, FK_AUTHORITY_EVENT_QUARANTINE, uid) == DONE);
        CHECK_U64(d.fx.refused.count, 2);
        CHECK(fk__authority_refuses(d.a, uid));
        CHECK(desk_override(&d, false) == DONE);
        desk_attempt(&d);
        CHECK(desk_failed(&d) == DONE);
        CHECK_U64(atomic_load(&d.r.refused), 0);
        rig_fault(&d.r, 0, false);
    }
    desk_fini(&d);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names, generated and given, and the paths they make. */

#include <stdio.h>
#include <string.h>

#include "support/rig.h"

static const fk_props PROPS = { .receive = doer_receive };

static fk_err spawn_named(rig *r, const char *name, size_t len, fk_ref *out)
{
    return fk_spawn(r->sys, (fk_str){ name, len }, &PROPS, out);
}

static void check_path(rig *r, fk_ref ref, const char *expected)
{
    char text[600], local[600];
    fk_path path;
    size_t len = fk_path_of(r->sys, ref, text, sizeof(text));
    CHECK_U64(len, strlen(text));
    CHECK_OK(fk_path_parse(NULL, (fk_str){ text, len }, &path, NULL));
    CHECK_U64(path.system.len, 4);
    CHECK(memcmp(text, "fraktor://test/", 15) == 0);
    CHECK(path.uid != 0);
    fk_path_format(&path, FK_FORM_LOCAL, local, sizeof(local));
    CHECK_STR(local, expected);
}

/* Written here once more, with division instead of shifts. */
static void generated_name(uint64_t n, char *out)
{
    static const char DIGITS[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789+~";
    *out++ = '$';
    for (;;) {
        *out++ = DIGITS[n % 64];
        n /= 64;
        if (n == 0) break;
    }
    *out = '\0';
}

TEST(name_generated_is_a_sequence)
{
    rig r;
    char name[16], path[32];
    rig_start(&r);
    for (uint64_t n = 0; n < 5000; n++) {
        fk_ref ref;
        CHECK_OK(spawn_named(&r, "", 0, &ref));
        generated_name(n, name);
        snprintf(path, sizeof(path), "/user/%s", name);
        check_path(&r, ref, path);
        if (n == 0) check_path(&r, ref, "/user/$a");
        if (n == 1) check_path(&r, ref, "/user/$b");
        if (n == 63) check_path(&r, ref, "/user/$~");
        if (n == 64) check_path(&r, ref, "/user/$ab");
        if (n == 65) check_path(&r, ref, "/user/$bb");
        if (n == 4095) check_path(&r, ref, "/user/$~~");
        if (n == 4096) check_path(&r, ref, "/user/$aab");
    }
    rig_stop(&r);
}

TEST(name_generated_is_never_given_twice)
{
    rig r;
    fk_ref first, second;
    rig_start(&r);
    CHECK_OK(spawn_named(&r, "", 0, &first));
    CHECK_OK(fk_stop(r.sys, first));
    rig_run(&r);
    CHECK_OK(spawn_named(&r, "", 0, &second));
    check_path(&r, second, "/user/$b");
    rig_stop(&r);
}

TEST(name_legal_ones_are_taken_as_they_are)
{
    static const char *const NAMES[] = { "a",     "A-z_0", "...",   "a.",  ".a",       "*", "a$b",
                                         "x:y@z", "%20",   "a%23b", "%7e", "+&=,!~';", "0" };
    rig r;
    char path[64];
    rig_start(&r);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        fk_ref ref;
        CHECK_OK(spawn_named(&r, NAMES[i], strlen(NAMES[i]), &ref));
        snprintf(path, sizeof(path), "/user/%s", NAMES[i]);
        check_path(&r, ref, path);
    }
    rig_stop(&r);
}

TEST(name_illegal_ones_are_refused)
{
    static const char *const NAMES[] = { ".",     "..",  "a/b",  "/",      "a b", "#",     "a#1",
                                         "?",     "\n",  "\x80", "a\"",    "%2e", ".%2E",  "%7f",
                                         "a%2Fb", "%00", "%0A",  "%C3%A9", "%FF", "%1b[2J" };
    static const char *const BROKEN[] = { "%", "%2", "%4", "%zz", "a%", "%g0", "%%20" };
    rig r;
    fk_ref ref = FK_REF_NONE;
    rig_start(&r);
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        CHECK_ERR(spawn_named(&r, NAMES[i], strlen(NAMES[i]), &ref), FK_E_NAME);
    }
    CHECK_ERR(spawn_named(&r, "a\0b", 3, &ref), FK_E_NAME);
    for (size_t i = 0; i < sizeof(BROKEN) / sizeof(BROKEN[0]); i++) {
        CHECK_ERR(spawn_named(&r, BROKEN[i], strlen(BROKEN[i]), &ref), FK_E_PERCENT);
    }
    CHECK_ERR(spawn_named(&r, "$x", 2, &ref), FK_E_RESERVED);
    CHECK_ERR(spawn_named(&r, "$", 1, &ref), FK_E_RESERVED);
    CHECK_ERR(spawn_named(&r, "%24x", 4, &ref), FK_E_RESERVED);
    CHECK(fk_ref_is_none(ref));
    fk_stats stats;
    fk_stats_get(r.sys, &stats);
    CHECK_U64(stats.actors, 0);
    rig_stop(&r);
}

TEST(name_of_255_bytes_is_the_longest)
{
    char name[257], path[300];
    rig r;
    fk_ref ref;
    rig_start(&r);
    memset(name, 'n', sizeof(name));
    CHECK_ERR(spawn_named(&r, name, 256, &ref), FK_E_LIMIT);
    CHECK_OK(spawn_named(&r, name, 255, &ref));
    snprintf(path, sizeof(path), "/user/%.255s", name);
    check_path(&r, ref, path);
    CHECK_ERR(spawn_named(&r, name, 255, &ref), FK_E_NAME_TAKEN);
    CHECK_OK(spawn_named(&r, name, 254, &ref));
    rig_stop(&r);
}

TEST(name_is_taken_until_its_actor_is_gone)
{
    rig r;
    fk_ref first, second = FK_REF_NONE;
    rig_start(&r);
    CHECK_OK(spawn_named(&r, "one", 3, &first));
    CHECK_ERR(spawn_named(&r, "one", 3, &second), FK_E_NAME_TAKEN);
    CHECK(fk_ref_is_none(second));
    CHECK_OK(fk_stop(r.sys, first));
    rig_run(&r);
    CHECK_OK(spawn_named(&r, "one", 3, &second));
    CHECK(!fk_ref_equal(first, second));
    check_path(&r, second, "/user/one");
    rig_stop(&r);
}

TEST(name_is_the_same_however_it_is_written)
{
    rig r;
    fk_ref first, second = FK_REF_NONE;
    rig_start(&r);
    CHECK_OK(spawn_named(&r, "A%7e", 4, &first));
    CHECK_ERR(spawn_named(&r, "%41~", 4, &second), FK_E_NAME_TAKEN);
    CHECK_ERR(spawn_named(&r, "A%7E", 4, &second), FK_E_NAME_TAKEN);
    CHECK_OK(spawn_named(&r, "A%257e", 6, &second)); /* decoded once, not twice */
    check_path(&r, first, "/user/A%7e");
    CHECK_OK(fk_stop(r.sys, first));
    rig_run(&r);
    CHECK_OK(spawn_named(&r, "A~", 2, &first));
    check_path(&r, first, "/user/A~");
    rig_stop(&r);
}

TEST(name_is_copied)
{
    char name[] = "copied";
    rig r;
    fk_ref ref;
    rig_start(&r);
    CHECK_OK(spawn_named(&r, name, 6, &ref));
    memset(name, 'x', 6);
    check_path(&r, ref, "/user/copied");
    rig_stop(&r);
}

/* ---- children ---------------------------------------------------------------------------- */

enum { CHILDREN = 3000 };

typedef struct family {
    fk_ref child[CHILDREN];
    int count;
} family;

static fk_err spawn_children(fk_ctx *ctx, void *arg)
{
    family *f = arg;
    char name[16];
    for (int i = 0; i < f->count; i++) {
        int len = snprintf(name, sizeof(name), "child-%d", i);
        fk_str s = { name, (size_t)len };
        CHECK_OK(fk_spawn_child(ctx, s, &PROPS, &f->child[i]));
    }
    return FK_OK;
}

static fk_err check_all_taken(fk_ctx *ctx, void *arg)
{
    family *f = arg;
    char name[16];
    fk_ref ref;
    for (int i = 0; i < f->count; i++) {
        int len = snprintf(name, sizeof(name), "child-%d", i);
        fk_err expected = fk_is_alive(fk_system_of(ctx), f->child[i]) ? FK_E_NAME_TAKEN : FK_OK;
        fk_str s = { name, (size_t)len };
        CHECK_ERR(fk_spawn_child(ctx, s, &PROPS, &ref), expected);
        if (expected == FK_OK) f->child[i] = ref;
    }
    return FK_OK;
}

TEST(name_table_of_many_children_survives_growth_and_removal)
{
    static family f;
    test_random random = { 5 };
    rig r;
    f.count = CHILDREN;
    rig_start(&r);
    fk_ref doer = doer_spawn(&r);
    rig_do(&r, doer, spawn_children, &f);
    check_path(&r, f.child[2999], "/user/$a/child-2999");
    for (int round = 0; round < 5; round++) {
        rig_do(&r, doer, check_all_taken, &f);
        for (int i = 0; i < CHILDREN / 3; i++) {
            fk_stop(r.sys, f.child[test_random_below(&random, CHILDREN)]);
        }
        rig_run(&r);
    }
    CHECK_U64(r.failures.count, 0);
    CHECK_OK(fk_stop(r.sys, doer));
    rig_run(&r);
    for (int i = 0; i < CHILDREN; i++) CHECK(!fk_is_alive(r.sys, f.child[i]));
    rig_stop(&r);
}

static fk_err spawn_deep(fk_ctx *ctx, void *arg)
{
    fk_ref *out = arg;
    return fk_spawn_child(ctx, FK_STR("deep"), &PROPS, out);
}

TEST(path_is_as_deep_as_the_tree_and_may_be_cut)
{
    rig r;
    char path[512], cut[512];
    rig_start(&r);
    fk_ref ref = doer_spawn(&r);
    for (int i = 0; i < 20; i++) {
        fk_ref child = FK_REF_NONE;
        rig_do(&r, ref, spawn_deep, &child);
        ref = child;
    }
    size_t full = fk_path_of(r.sys, ref, path, sizeof(path));
    const char *uid = strchr(path, '#');
    CHECK(uid != NULL);
    CHECK_U64((uint64_t)(uid - path), 14 + 8 + 20 * 5);
    CHECK(strncmp(path, "fraktor://test/user/$a/deep/deep/", 33) == 0);
    CHECK_U64(strlen(path), full);
    for (size_t size = 1; size <= full + 1; size++) {
        memset(cut, '#', sizeof(cut));
        CHECK_U64(fk_path_of(r.sys, ref, cut, size), full);
        CHECK_U64(strlen(cut), size - 1);
        CHECK(memcmp(cut, path, size - 1) == 0);
        CHECK_U64((unsigned char)cut[size], '#'); /* not a byte further */
    }
    CHECK_U64(fk_path_of(r.sys, ref, NULL, 0), full);
    rig_stop(&r);
}

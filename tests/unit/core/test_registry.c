/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* From refs to paths and back: the living, the dead, the forgotten, and those who never were. */

#include <stdio.h>
#include <string.h>

#include "support/guard.h"
#include "support/observer.h"

enum { REMEMBERED = 256 };

static const fk_props DOER = { .receive = doer_receive };

static observer o;

static fk_ref resolve(const char *text)
{
    fk_ref ref = FK_REF_NONE;
    CHECK_OK(fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL));
    return ref;
}

static void check_nobody(const char *text)
{
    fk_ref ref = { 1, 2, 3 };
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL), FK_E_PID_UNKNOWN);
    CHECK(fk_ref_equal(ref, ((fk_ref){ 1, 2, 3 }))); /* written on success only */
}

static void check_unknown(fk_ref ref)
{
    char text[32] = "before";
    CHECK_U64(fk_path_of(o.r.sys, ref, text, sizeof(text)), 0);
    CHECK_STR(text, "");
}

/* ---- the dead --------------------------------------------------------------------------------- */

typedef struct nest {
    fk_ref child[3]; /* named, generated, and a child of the named one */
} nest;

static fk_err make_grandchild(fk_ctx *ctx, void *arg)
{
    nest *n = arg;
    return fk_spawn_child(ctx, FK_STR("leaf"), &DOER, &n->child[2]);
}

static fk_err make_nest(fk_ctx *ctx, void *arg)
{
    nest *n = arg;
    CHECK_OK(fk_spawn_child(ctx, FK_STR("named"), &DOER, &n->child[0]));
    CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &DOER, &n->child[1]));
    return fk_tell(ctx, n->child[0], FK_MSG(rig_call, make_grandchild, arg));
}

static const char *const NEST[] = { "fraktor://t/user/top/named", "fraktor://t/user/top/$a",
                                    "fraktor://t/user/top/named/leaf" };

/* asked: before they died, so that the text is kept. */
static void check_dead_keep_their_path(bool asked)
{
    nest n;
    char before[3][128];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref top = observer_spawn(&o, "top"), anonymous = observer_spawn(&o, "");
    rig_do(&o.r, top, make_nest, &n);
    for (int i = 0; i < 3 && asked; i++) {
        observer_check_place(&o, n.child[i], NEST[i]);
        fk_path_of(o.r.sys, n.child[i], before[i], sizeof(before[i]));
    }
    observer_bury(&o, top);
    observer_bury(&o, anonymous);
    for (int again = 0; again < 2; again++) {
        observer_check_place(&o, top, "fraktor://t/user/top");
        observer_check_place(&o, anonymous, "fraktor://t/user/$a");
        for (int i = 0; i < 3; i++) observer_check_place(&o, n.child[i], NEST[i]);
    }
    for (int i = 0; i < 3 && asked; i++) observer_check_path(&o, n.child[i], before[i]);
    for (int i = 0; i < 3; i++) check_nobody(NEST[i]);
    rig_stop(&o.r);
}

TEST(registry_the_dead_keep_their_path)
{
    check_dead_keep_their_path(false);
    check_dead_keep_their_path(true);
}

TEST(registry_the_dead_keep_their_path_when_somebody_has_their_slot)
{
    char before[128];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref first = observer_spawn(&o, "first");
    fk_path_of(o.r.sys, first, before, sizeof(before));
    observer_bury(&o, first);
    for (int i = 0; i < REMEMBERED - 2; i++) {
        fk_ref next = observer_spawn(&o, i % 2 == 0 ? "first" : "");
        char path[128];
        fk_path_of(o.r.sys, next, path, sizeof(path));
        CHECK(strcmp(path, before) != 0);
        observer_check_path(&o, first, before);
        observer_bury(&o, next);
        observer_check_path(&o, first, before);
        observer_check_path(&o, next, path);
    }
    rig_stop(&o.r);
}

TEST(registry_forgets_the_dead_and_never_takes_another_for_them)
{
    static fk_ref dead[3 * REMEMBERED];
    char path[128];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    for (size_t i = 0; i < 3 * REMEMBERED; i++) {
        char name[32] = "";
        if (i % 3 != 0) snprintf(name, sizeof(name), "n%zu", i);
        dead[i] = observer_spawn(&o, name);
        observer_bury(&o, dead[i]);
    }
    for (int i = 0; i < 40; i++) observer_spawn(&o, ""); /* who live in their slots */
    for (size_t i = 0; i < 3 * REMEMBERED; i++) {
        size_t len = fk_path_of(o.r.sys, dead[i], path, sizeof(path));
        CHECK_U64(len != 0, i >= 2 * REMEMBERED);
        if (len == 0) continue;
        char name[64] = "fraktor://t/user/";
        if (i % 3 != 0)
            snprintf(name + 17, sizeof(name) - 17, "n%zu", i);
        else
            fk_path_autoname(i / 3, name + 17);
        observer_check_place(&o, dead[i], name);
    }
    /* A letter to somebody forgotten still has a path. */
    CHECK_OK(fk_send(o.r.sys, dead[0], FK_MSG(num, 1)));
    CHECK_STR(observer_letters(&o, 1)->path, "fraktor://t/deadLetters");
    rig_stop(&o.r);
}

/* A child is remembered, its parent is not. */
static fk_err make_one(fk_ctx *ctx, void *arg)
{
    return fk_spawn_child(ctx, FK_STR("child"), &DOER, arg);
}

TEST(registry_a_path_whose_top_is_forgotten_is_forgotten)
{
    fk_ref child;
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref parent = observer_spawn(&o, "parent");
    rig_do(&o.r, parent, make_one, &child);
    observer_bury(&o, parent); /* the child is the older of the two */
    for (int i = 0; i < REMEMBERED - 2; i++) observer_bury(&o, observer_spawn(&o, ""));
    observer_check_place(&o, child, "fraktor://t/user/parent/child");
    observer_bury(&o, observer_spawn(&o, ""));
    check_unknown(child);
    observer_check_place(&o, parent, "fraktor://t/user/parent");
    observer_bury(&o, observer_spawn(&o, ""));
    check_unknown(parent);
    rig_stop(&o.r);
}

/* ---- refs that never were ----------------------------------------------------------------------- */

TEST(registry_made_up_refs_have_no_path)
{
    observer other;
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    observer_start_with(&other, (fk_system_config){ .name = "other" });
    fk_ref ref = observer_spawn(&o, "a");
    check_unknown(FK_REF_NONE);
    for (uint32_t slot = 0; slot < 600; slot++) {
        for (uint32_t generation = 0; generation < 6; generation++) {
            fk_ref made_up = { slot, generation, ref.system };
            char text[128];
            size_t len = fk_path_of(o.r.sys, made_up, text, sizeof(text));
            bool is_real =
                generation == 1 && (slot == ref.slot || len == 0 || strchr(text, '#') == NULL);
            CHECK(len == 0 || is_real);
        }
    }
    check_unknown((fk_ref){ UINT32_MAX, 1, ref.system });
    check_unknown((fk_ref){ 1u << 30, 1, ref.system });
    check_unknown((fk_ref){ ref.slot, ref.generation + 2, ref.system });
    check_unknown((fk_ref){ ref.slot, UINT32_MAX, ref.system });
    check_unknown((fk_ref){ ref.slot, ref.generation, ref.system + 2 });
    char text[16];
    CHECK_U64(fk_path_of(other.r.sys, ref, text, sizeof(text)), 0);
    rig_stop(&other.r);
    rig_stop(&o.r);
}

/* ---- from paths to refs -------------------------------------------------------------------------- */

TEST(registry_generated_names_are_found_in_their_one_spelling)
{
    enum { COUNT = 5000 };
    static fk_ref ref[COUNT];
    char text[64] = "fraktor://t/user/";
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    for (int i = 0; i < COUNT; i++) ref[i] = observer_spawn(&o, "");
    for (uint64_t i = 0; i < COUNT; i++) {
        fk_path_autoname(i, text + 17);
        CHECK(fk_ref_equal(resolve(text), ref[i]));
    }
    check_nobody("fraktor://t/user/$aa");
    check_nobody("fraktor://t/user/$ba");
    check_nobody("fraktor://t/user/$aaaaaaaaaaa");
    check_nobody("fraktor://t/user/$aaaaaaaaaaaaaaaaaaaaaaaaaaa");
    check_nobody("fraktor://t/user/$");
    check_nobody("fraktor://t/user/a");
    check_nobody("fraktor://t/user/$-");
    check_nobody("fraktor://t/user/$a.");
    check_nobody("fraktor://t/user/$a/$a");
    rig_stop(&o.r);
}

/* DESIGN row 3: what is looked up is what a segment means. */
TEST(registry_generated_names_are_found_in_escapes)
{
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref ref = observer_spawn(&o, "");
    CHECK(fk_ref_equal(resolve("fraktor://t/user/%24a"), ref));
    CHECK(fk_ref_equal(resolve("fraktor://t/user/$%61"), ref));
    CHECK(fk_ref_equal(resolve("fraktor://t/user/%24%61"), ref));
    rig_stop(&o.r);
}

TEST(registry_long_names_with_escapes_are_found)
{
    char name[256], text[1024] = "fraktor://t/user/";
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    for (int i = 0; i < 255; i++) name[i] = (char)('a' + i % 26);
    name[255] = '\0';
    fk_ref ref = observer_spawn(&o, name);
    memcpy(text + 17, name, sizeof(name));
    CHECK(fk_ref_equal(resolve(text), ref));
    rig_stop(&o.r);
    /* A segment of 765 bytes that means the same one. */
    observer_start_with(&o, (fk_system_config){ .name = "t", .paths = { .segment_max = 765 } });
    ref = observer_spawn(&o, name);
    for (int i = 0; i < 255; i++) sprintf(text + 17 + 3 * i, "%%%02x", (unsigned)name[i]);
    CHECK(fk_ref_equal(resolve(text), ref));
    text[17 + 765 - 1] = text[17 + 765 - 1] == '0' ? '1' : '0';
    check_nobody(text);
    rig_stop(&o.r);
}

TEST(registry_guardians_have_paths_without_uid)
{
    static const char *const TOP[] = { "fraktor://t/", "fraktor://t/user", "fraktor://t/system",
                                       "fraktor://t/temp", "fraktor://t/deadLetters" };
    char with_uid[64];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    for (size_t i = 0; i < sizeof(TOP) / sizeof(TOP[0]); i++) {
        fk_ref ref = resolve(TOP[i]);
        CHECK(fk_is_alive(o.r.sys, ref));
        observer_check_path(&o, ref, TOP[i]);
        if (i == 0) continue;
        snprintf(with_uid, sizeof(with_uid), "%s#1", TOP[i]);
        check_nobody(with_uid);
    }
    CHECK(fk_ref_equal(resolve("fraktor://t"), resolve("fraktor://t//")));
    check_nobody("fraktor://t/users");
    check_nobody("fraktor://t/USER");
    CHECK_OK(fk_send(o.r.sys, resolve("fraktor://t/deadLetters"), FK_MSG(num, 1)));
    rig_run(&o.r);
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_STR(letter->path, "fraktor://t/deadLetters");
    CHECK_U64(letter->reason, FK_REASON_NO_RECEIVER);
    rig_stop(&o.r);
}

TEST(registry_only_this_systems_addresses_are_its_own)
{
    fk_ref ref = FK_REF_NONE;
    observer_start_with(&o,
                        (fk_system_config){ .name = "t", .remoting = { .host = "h", .port = 7 } });
    fk_ref a = observer_spawn(&o, "a");
    CHECK(fk_ref_equal(resolve("fraktor://t/user/a"), a));
    CHECK(fk_ref_equal(resolve("fraktor://t@h:7/user/a"), a));
    CHECK(fk_ref_equal(resolve("fraktor.tcp://t@h:7/user/a"), a));
    CHECK_ERR(fk_resolve(o.r.sys, FK_STR("fraktor://u/user/a"), &ref, NULL), FK_E_UNRESOLVED);
    fk_err err = fk_resolve(o.r.sys, FK_STR("fraktor://t@h:8/user/a"), &ref, NULL);
    CHECK(err != FK_OK || !fk_ref_equal(ref, a));
    err = fk_resolve(o.r.sys, FK_STR("fraktor://t@H:7/user/a"), &ref, NULL);
    CHECK(err != FK_OK || !fk_ref_equal(ref, a));
    rig_stop(&o.r);
}

/* ---- buffers --------------------------------------------------------------------------------------- */

static void check_cut(fk_ref ref)
{
    char full[128];
    size_t len = fk_path_of(o.r.sys, ref, full, sizeof(full));
    CHECK(len > 0);
    CHECK_U64(fk_path_of(o.r.sys, ref, NULL, 0), len);
    for (size_t size = 1; size <= len + 1; size++) {
        char *buf = guard_buffer(size);
        CHECK_U64(fk_path_of(o.r.sys, ref, buf, size), len);
        CHECK(memcmp(buf, full, size - 1) == 0);
        CHECK_U64((unsigned char)buf[size - 1], 0);
    }
}

TEST(registry_paths_are_cut_to_the_buffer)
{
    char buf[8];
    nest n;
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref top = observer_spawn(&o, "top"), fresh = observer_spawn(&o, "fresh");
    rig_do(&o.r, top, make_nest, &n);
    CHECK_U64(fk_path_of(o.r.sys, fresh, buf, sizeof(buf)), strlen("fraktor://t/user/fresh#") + 1);
    CHECK_STR(buf, "fraktor");
    check_cut(fresh);
    check_cut(n.child[2]);
    check_cut(resolve("fraktor://t/"));
    check_cut(resolve("fraktor://t/user"));
    observer_bury(&o, top);
    check_cut(n.child[2]);
    check_cut(n.child[1]);
    rig_stop(&o.r);
}

TEST(registry_dead_letter_paths_are_cut_to_the_buffer)
{
    char full[256];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_dead_letter letters[] = {
        { .path = FK_STR("/user/a%0A%1B[2Jb") },
        { .to = FK_REF_NONE },
        { .to = observer_spawn(&o, "a") },
    };
    for (size_t i = 0; i < 3; i++) {
        size_t len = fk_dead_letter_path(o.r.sys, &letters[i], full, sizeof(full));
        CHECK_U64(len, strlen(full));
        CHECK_U64(fk_dead_letter_path(o.r.sys, &letters[i], NULL, 0), len);
        for (size_t size = 1; size <= len + 1; size++) {
            char *buf = guard_buffer(size);
            CHECK_U64(fk_dead_letter_path(o.r.sys, &letters[i], buf, size), len);
            CHECK(memcmp(buf, full, size - 1) == 0);
            CHECK_U64((unsigned char)buf[size - 1], 0);
        }
    }
    fk_dead_letter_path(o.r.sys, &letters[0], full, sizeof(full));
    CHECK_STR(full, "/user/a%0A%1B[2Jb");
    rig_stop(&o.r);
}

/* ---- limits ----------------------------------------------------------------------------------------- */

typedef struct dive {
    uint32_t depth; /* segments of the deepest one's path */
    fk_err err;
    fk_ref deepest;
    const char *name;
} dive;

static fk_err dive_on(fk_ctx *ctx, void *arg)
{
    dive *d = arg;
    fk_ref child;
    d->deepest = fk_self(ctx);
    d->err = fk_spawn_child(ctx, fk_str_of(d->name), &DOER, &child);
    if (d->err != FK_OK) return FK_OK;
    d->depth++;
    return fk_tell(ctx, child, FK_MSG(rig_call, dive_on, arg));
}

static void check_depth(fk_path_options paths, uint32_t expected)
{
    dive d = { .depth = 2, .name = "x" };
    char text[OBSERVER_TEXT];
    observer_start_with(&o, (fk_system_config){ .name = "t", .paths = paths });
    rig_do(&o.r, observer_spawn(&o, "x"), dive_on, &d);
    CHECK_U64(d.depth, expected);
    CHECK_ERR(d.err, FK_E_LIMIT);
    fk_path_of(o.r.sys, d.deepest, text, sizeof(text));
    CHECK(fk_ref_equal(resolve(text), d.deepest)); /* what exists can be read */
    rig_stop(&o.r);
}

TEST(registry_actors_are_as_deep_as_paths_may_be)
{
    check_depth((fk_path_options){ 0 }, 64);
    check_depth((fk_path_options){ .depth_max = 7 }, 7);
    check_depth((fk_path_options){ .depth_max = 200 }, 200);
}

static void check_length(fk_path_options paths, size_t name_len)
{
    char name[512], text[OBSERVER_TEXT * 4];
    memset(name, 'n', sizeof(name));
    name[name_len] = '\0';
    dive d = { .depth = 2, .name = name };
    size_t most = paths.path_max != 0 ? paths.path_max : 1024;
    observer_start_with(&o, (fk_system_config){ .name = "t", .paths = paths });
    rig_do(&o.r, observer_spawn(&o, name), dive_on, &d);
    CHECK_ERR(d.err, FK_E_LIMIT);
    size_t len = fk_path_of(o.r.sys, d.deepest, text, sizeof(text));
    CHECK(len <= most);
    CHECK(len + 1 + name_len + 21 > most); /* the longest uid must fit, too */
    CHECK(fk_ref_equal(resolve(text), d.deepest));
    rig_stop(&o.r);
}

TEST(registry_actors_have_no_paths_that_are_too_long)
{
    check_length((fk_path_options){ 0 }, 255);
    check_length((fk_path_options){ 0 }, 40);
    check_length((fk_path_options){ .path_max = 200 }, 30);
    check_length((fk_path_options){ .path_max = 6000, .segment_max = 500 }, 500);
}

TEST(registry_names_over_255_bytes_need_a_config)
{
    char name[400];
    fk_ref ref;
    memset(name, 'n', sizeof(name));
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    CHECK_ERR(fk_spawn(o.r.sys, (fk_str){ name, 256 }, &DOER, &ref), FK_E_LIMIT);
    rig_stop(&o.r);
    observer_start_with(&o, (fk_system_config){ .name = "t", .paths = { .segment_max = 400 } });
    CHECK_OK(fk_spawn(o.r.sys, (fk_str){ name, 400 }, &DOER, &ref));
    CHECK_ERR(fk_spawn(o.r.sys, (fk_str){ name, 400 }, &DOER, &ref), FK_E_NAME_TAKEN);
    rig_stop(&o.r);
}

TEST(registry_the_longest_address_still_has_actors)
{
    char system[256], host[256], text[OBSERVER_TEXT];
    memset(system, 's', 255);
    system[255] = '\0';
    for (int i = 0; i < 255; i++) host[i] = i % 50 == 49 ? '.' : 'h';
    host[255] = '\0';
    observer_start_with(&o, (fk_system_config){ .name = system,
                                                .scheme = FK_SCHEME_TCP,
                                                .remoting = { .host = host, .port = 65535 } });
    fk_ref ref = observer_spawn(&o, "a");
    size_t len = fk_path_of(o.r.sys, ref, text, sizeof(text));
    CHECK(len > 530);
    CHECK(fk_ref_equal(resolve(text), ref));
    rig_stop(&o.r);
}

/* ---- what costs nothing -------------------------------------------------------------------------------- */

TEST(registry_asking_again_takes_no_memory)
{
    char text[128];
    observer_start_with(&o, (fk_system_config){ .name = "t" });
    fk_ref ref = observer_spawn(&o, "a"), anonymous = observer_spawn(&o, "");
    fk_path_of(o.r.sys, ref, text, sizeof(text));
    fk_path_of(o.r.sys, anonymous, text, sizeof(text));
    rig_fault(&o.r, 1, true); /* no more memory */
    for (int i = 0; i < 100; i++) {
        observer_check_place(&o, ref, "fraktor://t/user/a");
        observer_check_place(&o, anonymous, "fraktor://t/user/$a");
        CHECK(fk_ref_equal(resolve("fraktor://t/user/a"), ref));
    }
    CHECK_U64(atomic_load(&o.r.asked), 0);
    rig_fault(&o.r, 0, false);
    rig_stop(&o.r);
}

TEST(registry_paths_are_shown_without_memory)
{
    observer_start_with(&o, (fk_system_config){ .name = "t", .pools_malloc = true });
    fk_ref ref = observer_spawn(&o, "a"), anonymous = observer_spawn(&o, "");
    rig_fault(&o.r, 1, true);
    observer_check_place(&o, ref, "fraktor://t/user/a");
    observer_check_place(&o, anonymous, "fraktor://t/user/$a");
    CHECK(atomic_load(&o.r.refused) > 0);
    char small[8] = "x";
    CHECK(fk_path_of(o.r.sys, ref, small, sizeof(small)) > sizeof(small));
    rig_fault(&o.r, 0, false);
    observer_check_place(&o, ref, "fraktor://t/user/a");
    rig_stop(&o.r);
}

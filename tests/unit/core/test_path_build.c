/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Paths made from parts, from a parent and a name, from a base and an expression. '^' in a text
 * that is refused marks the byte that is to blame. */

#include <stdio.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/tsv.h"

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };

static fk_path parsed(const fk_path_options *options, const char *text)
{
    fk_path path;
    fk_err err = fk_path_parse(options, fk_str_of(text), &path, NULL);
    if (err != FK_OK) test_failed(text, 0, "%s", fk_err_name(err));
    return path;
}

/* The path says this, and lies in buf wholly. */
static void check_built(const fk_path *path, const char *expected, const char *buf, size_t size)
{
    char text[2048];
    fk_path again;
    fk_path_options options = { .rules = (fk_rules)path->rules, .path_max = 4096 };
    CHECK(fk_path_format(path, FK_FORM_FULL, text, sizeof(text)) < sizeof(text));
    CHECK_STR(text, expected);
    const fk_str parts[] = { path->system, path->host, path->segments };
    for (size_t i = 0; i < 3; i++) {
        if (parts[i].len == 0) continue;
        CHECK(parts[i].ptr >= buf);
        CHECK(parts[i].ptr + parts[i].len <= buf + size);
    }
    CHECK_OK(fk_path_parse(&options, fk_str_of(text), &again, NULL));
    CHECK(fk_path_equal(&again, path));
    CHECK_U64(again.depth, path->depth);
    CHECK_U64(again.uid, path->uid);
    CHECK_U64(again.scheme, path->scheme);
}

/* ---- from parts ----------------------------------------------------------------------------- */

static const fk_str NAMES[] = { { "a", 1 }, { "$b", 2 }, { "c%20d", 5 } };

TEST(build_puts_the_guardian_in_front)
{
    char buf[128];
    fk_path path;
    fk_path_parts parts = { .system = FK_STR("sys") };
    CHECK_OK(fk_path_build(NULL, &parts, FK_BUF(buf), &path, NULL));
    check_built(&path, "fraktor://sys/user", buf, sizeof(buf));
    parts.guardian = FK_GUARDIAN_SYSTEM;
    parts.names = NAMES;
    parts.count = 3;
    parts.uid = UINT64_MAX;
    CHECK_OK(fk_path_build(NULL, &parts, FK_BUF(buf), &path, NULL));
    check_built(&path, "fraktor://sys/system/a/$b/c%20d#18446744073709551615", buf, sizeof(buf));
    parts.scheme = FK_SCHEME_TCP;
    parts.host = FK_STR("[::1]");
    parts.port = 65535;
    CHECK_OK(fk_path_build(NULL, &parts, FK_BUF(buf), &path, NULL));
    check_built(&path, "fraktor.tcp://sys@[::1]:65535/system/a/$b/c%20d#18446744073709551615", buf,
                sizeof(buf));
    fk_str user = FK_STR("user"); /* a name like any other: the guardian is put in front of it */
    parts = (fk_path_parts){ .system = FK_STR("sys"), .names = &user, .count = 1 };
    CHECK_OK(fk_path_build(NULL, &parts, FK_BUF(buf), &path, NULL));
    check_built(&path, "fraktor://sys/user/user", buf, sizeof(buf));
}

TEST(build_goes_by_the_rules)
{
    char buf[128];
    fk_path path;
    fk_str dots = FK_STR("..");
    fk_path_parts parts = { .system = FK_STR("s"), .names = &dots, .count = 1 };
    CHECK_ERR(fk_path_build(NULL, &parts, FK_BUF(buf), &path, NULL), FK_E_NAME);
    parts.uid = (uint64_t)INT32_MIN;
    CHECK_OK(fk_path_build(&PEKKO, &parts, FK_BUF(buf), &path, NULL));
    check_built(&path, "pekko://s/user/..#-2147483648", buf, sizeof(buf));
    parts.uid = (uint64_t)INT32_MAX + 1;
    CHECK_ERR(fk_path_build(&PEKKO, &parts, FK_BUF(buf), &path, NULL), FK_E_UID);
}

/* The fault is where it would be in the text. */
static void check_build_fault(fk_path_parts parts, const char *marked, fk_err expected, int segment)
{
    char buf[128];
    fk_path path = { .depth = 77 };
    fk_path_fault fault;
    fk_err err = fk_path_build(NULL, &parts, FK_BUF(buf), &path, &fault);
    if (err != expected || fault.err != err || fault.at != strcspn(marked, "^") ||
        fault.segment != segment) {
        test_failed(marked, 0, "%s at %zu in %d", fk_err_name(err), fault.at, fault.segment);
    }
    CHECK_U64(path.depth, 77);
}

TEST(build_faults_count_in_the_text)
{
    fk_path_parts parts = { .system = FK_STR("") };
    check_build_fault(parts, "fraktor://^", FK_E_NO_SYSTEM, -1);
    parts.system = FK_STR("s/x");
    check_build_fault(parts, "fraktor://s^/x", FK_E_SYSTEM, -1);
    parts.system = FK_STR("sys");
    parts.host = FK_STR("a@b");
    parts.port = 1;
    check_build_fault(parts, "fraktor://sys@a^@b", FK_E_AUTHORITY, -1);
    parts.host = FK_STR("h:1");
    check_build_fault(parts, "fraktor://sys@h^:1", FK_E_AUTHORITY, -1);
    parts.host = FK_STR("");
    check_build_fault(parts, "fraktor://sys@^", FK_E_AUTHORITY, -1);
    parts.host = FK_STR("host");
    parts.port = 0;
    check_build_fault(parts, "fraktor://sys@host^", FK_E_AUTHORITY, -1);
    parts.host = FK_STR("");
    static const struct {
        fk_str name;
        const char *marked;
        fk_err err;
    } BAD[] = {
        { { "x/y", 3 }, "fraktor://sys/user/a/x^/y", FK_E_NAME },
        { { "x#1", 3 }, "fraktor://sys/user/a/x^#1", FK_E_NAME },
        { { "..", 2 }, "fraktor://sys/user/a/^..", FK_E_NAME },
        { { "%", 1 }, "fraktor://sys/user/a/^%", FK_E_PERCENT },
        { { "", 0 }, "fraktor://sys/user/a/^", FK_E_EMPTY },
    };
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        fk_str names[] = { FK_STR("a"), BAD[i].name };
        parts.names = names;
        parts.count = 2;
        check_build_fault(parts, BAD[i].marked, BAD[i].err, 2);
    }
}

TEST(build_stays_in_its_buffer)
{
    static const char TEXT[] = "fraktor.tcp://sys@h:1/user/a/$b/c%20d";
    fk_path_parts parts = { FK_SCHEME_TCP,    FK_STR("sys"), FK_STR("h"), 1,
                            FK_GUARDIAN_USER, NAMES,         3,           7 };
    fk_path path;
    fk_path_fault fault;
    for (size_t size = 0; size < sizeof(TEXT) - 1; size++) {
        fk_err err =
            fk_path_build(NULL, &parts, (fk_buf){ guard_buffer(size), size }, &path, &fault);
        CHECK_ERR(err, FK_E_LIMIT);
        CHECK_U64(fault.at, size);
    }
    char *buf = guard_buffer(sizeof(TEXT) - 1);
    CHECK_OK(fk_path_build(NULL, &parts, (fk_buf){ buf, sizeof(TEXT) - 1 }, &path, NULL));
    check_built(&path, "fraktor.tcp://sys@h:1/user/a/$b/c%20d#7", buf, sizeof(TEXT) - 1);
    CHECK_ERR(fk_path_build(NULL, &parts, (fk_buf){ NULL, 0 }, &path, NULL), FK_E_LIMIT);
}

TEST(build_keeps_the_limits)
{
    char buf[256];
    fk_path_parts parts = { .system = FK_STR("sys"), .names = NAMES, .count = 3, .uid = 7 };
    fk_path path;
    fk_path_fault fault;
    size_t full = strlen("fraktor://sys/user/a/$b/c%20d#7");
    fk_path_options options = { .path_max = (uint32_t)full };
    CHECK_OK(fk_path_build(&options, &parts, FK_BUF(buf), &path, NULL));
    options.path_max--; /* the uid is one byte too many */
    CHECK_ERR(fk_path_build(&options, &parts, FK_BUF(buf), &path, &fault), FK_E_LIMIT);
    CHECK_U64(fault.at, full - 1);
    options = (fk_path_options){ .depth_max = 3 };
    CHECK_ERR(fk_path_build(&options, &parts, FK_BUF(buf), &path, &fault), FK_E_LIMIT);
    CHECK_U64(fault.at, strlen("fraktor://sys/user/a/$b/"));
    CHECK_U64(fault.segment, 3);
    options = (fk_path_options){ .segment_max = 4 };
    CHECK_ERR(fk_path_build(&options, &parts, FK_BUF(buf), &path, &fault), FK_E_LIMIT);
    CHECK_U64(fault.at, strlen("fraktor://sys/user/a/$b/c%20"));
}

/* ---- children ------------------------------------------------------------------------------- */

TEST(child_is_below_its_parent)
{
    char buf[128];
    fk_path parent = parsed(NULL, "fraktor.tcp://s@h:1//user//a/#5"), child;
    CHECK_OK(fk_path_child(NULL, &parent, FK_STR("b"), FK_BUF(buf), &child, NULL));
    check_built(&child, "fraktor.tcp://s@h:1/user/a/b", buf, sizeof(buf));
    CHECK_OK(fk_path_child(NULL, &parent, FK_STR("$b#9"), FK_BUF(buf), &child, NULL));
    check_built(&child, "fraktor.tcp://s@h:1/user/a/$b#9", buf, sizeof(buf));
    fk_path root = fk_path_root(&parent);
    CHECK_OK(fk_path_child(NULL, &root, FK_STR("user"), FK_BUF(buf), &child, NULL));
    check_built(&child, "fraktor.tcp://s@h:1/user", buf, sizeof(buf));
    /* The parent's rules, whatever the options say. */
    fk_path theirs = parsed(&PEKKO, "pekko://s/user");
    CHECK_OK(fk_path_child(NULL, &theirs, FK_STR("..#-1"), FK_BUF(buf), &child, NULL));
    check_built(&child, "pekko://s/user/..#-1", buf, sizeof(buf));
    CHECK_ERR(fk_path_child(&PEKKO, &root, FK_STR(".."), FK_BUF(buf), &child, NULL), FK_E_NAME);
}

TEST(child_faults_count_in_the_name)
{
    static const struct {
        const char *marked;
        fk_err err;
        int segment;
    } BAD[] = {
        { "^", FK_E_EMPTY, -1 },    { "a^/b", FK_E_NAME, 2 },     { "^/a", FK_E_NAME, 2 },
        { "^#5", FK_E_NAME, 2 },    { "a^ b", FK_E_NAME, 2 },     { "^..", FK_E_NAME, 2 },
        { "^%2e", FK_E_NAME, 2 },   { "ab^%4", FK_E_PERCENT, 2 }, { "a#^", FK_E_UID, -1 },
        { "a#^x/y", FK_E_UID, -1 }, { "a#1^#2", FK_E_UID, -1 },   { "a^?", FK_E_NAME, 2 },
    };
    char buf[128];
    fk_path parent = parsed(NULL, "fraktor://s/user/a");
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        char text[64];
        size_t at = strcspn(BAD[i].marked, "^");
        sprintf(text, "%.*s%s", (int)at, BAD[i].marked, BAD[i].marked + at + 1);
        fk_path child = { .depth = 77 };
        fk_path_fault fault;
        fk_err err =
            fk_path_child(NULL, &parent, guard_text(fk_str_of(text)), FK_BUF(buf), &child, &fault);
        if (err != BAD[i].err || fault.at != at || fault.segment != BAD[i].segment) {
            test_failed(BAD[i].marked, 0, "%s at %zu in %d", fk_err_name(err), fault.at,
                        fault.segment);
        }
        CHECK_U64(child.depth, 77);
    }
}

TEST(child_keeps_limits_and_buffer)
{
    static const char TEXT[] = "fraktor://s/user/a/name";
    fk_path parent = parsed(NULL, "fraktor://s/user/a"), child;
    fk_path_fault fault;
    for (size_t size = 0; size < sizeof(TEXT) - 1; size++) {
        fk_err err = fk_path_child(NULL, &parent, FK_STR("name"),
                                   (fk_buf){ guard_buffer(size), size }, &child, NULL);
        CHECK_ERR(err, FK_E_LIMIT);
    }
    char *buf = guard_buffer(sizeof(TEXT) - 1);
    size_t size = sizeof(TEXT) - 1;
    CHECK_OK(fk_path_child(NULL, &parent, FK_STR("name"), (fk_buf){ buf, size }, &child, NULL));
    check_built(&child, TEXT, buf, size);
    fk_path_options options = { .depth_max = 2 };
    CHECK_ERR(
        fk_path_child(&options, &parent, FK_STR("name"), (fk_buf){ buf, size }, &child, &fault),
        FK_E_LIMIT);
    CHECK_U64(fault.at, 0);
    options = (fk_path_options){ .path_max = 21 };
    CHECK_ERR(
        fk_path_child(&options, &parent, FK_STR("name"), (fk_buf){ buf, size }, &child, &fault),
        FK_E_LIMIT);
    CHECK_U64(fault.at, 2); /* "fraktor://s/user/a/na" are 21 bytes */
    options = (fk_path_options){ .path_max = 25 };
    CHECK_ERR(
        fk_path_child(&options, &parent, FK_STR("name#12"), (fk_buf){ buf, size }, &child, &fault),
        FK_E_LIMIT);
    CHECK_OK(
        fk_path_child(&options, &parent, FK_STR("name#1"), (fk_buf){ buf, size }, &child, &fault));
    options = (fk_path_options){ .segment_max = 3 };
    CHECK_ERR(
        fk_path_child(&options, &parent, FK_STR("name"), (fk_buf){ buf, size }, &child, &fault),
        FK_E_LIMIT);
    CHECK_U64(fault.at, 3);
}

/* ---- resolve -------------------------------------------------------------------------------- */

static void check_resolved(const char *base_text, const char *expression, const char *expected)
{
    char buf[256];
    bool pekko = base_text[0] == 'p';
    fk_path base = parsed(pekko ? &PEKKO : NULL, base_text), path;
    fk_str text = guard_text(fk_str_of(expression));
    fk_path_fault fault;
    fk_err err = fk_path_resolve(NULL, &base, text, FK_BUF(buf), &path, &fault);
    if (err != FK_OK) test_failed(expression, 0, "%s at %zu", fk_err_name(err), fault.at);
    check_built(&path, expected, buf, sizeof(buf));
}

TEST(resolve_by_our_rules)
{
    static const char BASE[] = "fraktor.tcp://s@h:1/user/a/b#5";
    check_resolved(BASE, "", "fraktor.tcp://s@h:1/user/a/b#5");
    check_resolved(BASE, ".", "fraktor.tcp://s@h:1/user/a/b#5");
    check_resolved(BASE, "././/", "fraktor.tcp://s@h:1/user/a/b#5");
    check_resolved(BASE, "c", "fraktor.tcp://s@h:1/user/a/b/c");
    check_resolved(BASE, "..", "fraktor.tcp://s@h:1/user/a");
    check_resolved(BASE, "c/..", "fraktor.tcp://s@h:1/user/a/b");
    check_resolved(BASE, "../../x/../y#7", "fraktor.tcp://s@h:1/user/y#7");
    check_resolved(BASE, "/", "fraktor.tcp://s@h:1/");
    check_resolved(BASE, "//system//log/#9", "fraktor.tcp://s@h:1/system/log#9");
    check_resolved(BASE, "/user/./x/../y", "fraktor.tcp://s@h:1/user/y");
    check_resolved(BASE, "Fraktor://t/x#1", "fraktor://t/x#1");
    check_resolved(BASE, "fraktor://t", "fraktor://t/");
    check_resolved(BASE, "a*", "fraktor.tcp://s@h:1/user/a/b/a*"); /* a character of names */
    check_resolved(BASE, "a:b", "fraktor.tcp://s@h:1/user/a/b/a:b");
    check_resolved(BASE, "fraktor:x", "fraktor.tcp://s@h:1/user/a/b/fraktor:x");
    check_resolved(BASE, "a:/b", "fraktor.tcp://s@h:1/user/a/b/a:/b");
    check_resolved(BASE, "x/a://b", "fraktor.tcp://s@h:1/user/a/b/x/a:/b");
    check_resolved(BASE, "...", "fraktor.tcp://s@h:1/user/a/b/...");
    check_resolved(BASE, "%41/$x", "fraktor.tcp://s@h:1/user/a/b/%41/$x");
    check_resolved("fraktor://s", "user/a", "fraktor://s/user/a");
}

TEST(resolve_by_pekkos_rules)
{
    static const char BASE[] = "pekko://s/user/a";
    check_resolved(BASE, "", "pekko://s/");
    check_resolved(BASE, "./c", "pekko://s/user/a/./c");
    check_resolved(BASE, "../../../../x", "pekko://s/x");
    check_resolved(BASE, "/..", "pekko://s/");
    check_resolved(BASE, "pekko://t/user/../b#-3", "pekko://t/b#-3");
    check_resolved(BASE, "%2e%2e", "pekko://s/user/a/%2e%2e");
}

static void check_unresolved(const char *base_text, const char *marked, fk_err expected,
                             int segment)
{
    char buf[256], text[128];
    size_t at = strcspn(marked, "^");
    sprintf(text, "%.*s%s", (int)at, marked, marked + at + 1);
    bool pekko = base_text[0] == 'p';
    fk_path base = parsed(pekko ? &PEKKO : NULL, base_text), path = { .depth = 77 };
    fk_path_fault fault;
    fk_err err =
        fk_path_resolve(NULL, &base, guard_text(fk_str_of(text)), FK_BUF(buf), &path, &fault);
    if (err != expected || fault.at != at || fault.segment != segment) {
        test_failed(marked, 0, "%s at %zu in %d", fk_err_name(err), fault.at, fault.segment);
    }
    CHECK_U64(path.depth, 77);
}

TEST(resolve_refuses)
{
    static const char BASE[] = "fraktor://s/user/a/b";
    check_unresolved(BASE, "../../^..", FK_E_ESCAPE, 2);
    check_unresolved(BASE, "c/../../../^../x", FK_E_ESCAPE, 4);
    check_unresolved(BASE, "/^..", FK_E_ESCAPE, 0);
    check_unresolved(BASE, "/user/^..", FK_E_ESCAPE, 1);
    check_unresolved(BASE, "./../.././^..", FK_E_ESCAPE, 4);
    check_unresolved("fraktor://s", "^..", FK_E_ESCAPE, 0);
    check_unresolved("fraktor://s/user", "^..", FK_E_ESCAPE, 0);
    check_unresolved("fraktor://s/user", "a/../^../system", FK_E_ESCAPE, 2);
    check_unresolved(BASE, "c^?", FK_E_NAME, 0);
    check_unresolved(BASE, "a/^%2e%2e", FK_E_NAME, 1);
    check_unresolved(BASE, "a/^%2F", FK_E_NAME, 1);
    check_unresolved(BASE, "^%zz", FK_E_PERCENT, 0);
    check_unresolved(BASE, "c#^0", FK_E_UID, -1);
    check_unresolved(BASE, "^#7", FK_E_UID, -1); /* a uid belongs to a name */
    check_unresolved(BASE, "..^#7", FK_E_UID, -1);
    check_unresolved(BASE, "/^#7", FK_E_UID, -1);
    check_unresolved(BASE, "^pekko://s/user/a", FK_E_SCHEME, -1);
    check_unresolved(BASE, "^://a", FK_E_SCHEME, -1);
    check_unresolved(BASE, "fraktor://t/user/^../a", FK_E_NAME, 1); /* an absolute URI */
    check_unresolved(BASE, "fraktor://t/^.", FK_E_NAME, 0);
    check_unresolved(BASE, "fraktor://t^?a", FK_E_NAME, 0);
    check_unresolved("pekko://s/user", "^a:b", FK_E_SCHEME, -1);
    check_unresolved("pekko://s/user", "a^ b:c", FK_E_SCHEME, -1);
}

TEST(resolve_keeps_limits_and_buffer)
{
    static const char TEXT[] = "fraktor://s/user/a/long-name";
    fk_path base = parsed(NULL, "fraktor://s/user/a"), path;
    fk_path_fault fault;
    size_t size = sizeof(TEXT) - 1;
    for (size_t i = 0; i < size; i++) {
        char *buf = guard_buffer(i);
        CHECK_ERR(
            fk_path_resolve(NULL, &base, FK_STR("long-name"), (fk_buf){ buf, i }, &path, NULL),
            FK_E_LIMIT);
    }
    char *buf = guard_buffer(size);
    CHECK_OK(
        fk_path_resolve(NULL, &base, FK_STR("./long-name#1"), (fk_buf){ buf, size }, &path, NULL));
    check_built(&path, "fraktor://s/user/a/long-name#1", buf, size);
    fk_path_options options = { .depth_max = 3 };
    CHECK_ERR(fk_path_resolve(&options, &base, FK_STR("x/y"), (fk_buf){ buf, size }, &path, &fault),
              FK_E_LIMIT);
    CHECK_U64(fault.at, 2);
    CHECK_U64(fault.segment, 1);
    CHECK_OK(
        fk_path_resolve(&options, &base, FK_STR("x/../y"), (fk_buf){ buf, size }, &path, &fault));
    options = (fk_path_options){ .path_max = 29 };
    CHECK_ERR(fk_path_resolve(&options, &base, FK_STR("long-name#1"), (fk_buf){ buf, size }, &path,
                              &fault),
              FK_E_LIMIT);
    CHECK_ERR(fk_path_resolve(NULL, &base, FK_STR("x"), (fk_buf){ NULL, 0 }, &path, NULL),
              FK_E_LIMIT);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Complete paths: what is refused and where, limits, parts, text. '^' in a text that is refused
 * marks the byte that is to blame. */

#include <stdio.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/tsv.h"

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };
static const fk_path_options UTF8 = { .utf8 = true };

static fk_path parsed(const fk_path_options *options, const char *text)
{
    fk_path path;
    fk_path_fault fault = { .err = FK_OK };
    fk_err err = fk_path_parse(options, fk_str_of(text), &path, &fault);
    if (err != FK_OK) test_failed(text, 0, "%s at %zu", fk_err_name(err), fault.at);
    CHECK_U64(fault.err, FK_OK); /* written on failure only */
    return path;
}

static void check_text(const fk_path *path, const char *expected)
{
    char text[2048];
    CHECK(fk_path_format(path, FK_FORM_FULL, text, sizeof(text)) < sizeof(text));
    CHECK_STR(text, expected);
}

static void check_canonical(const fk_path_options *options, const char *text, const char *expected)
{
    fk_path path = parsed(options, text);
    check_text(&path, expected);
}

typedef struct refusal {
    const char *marked;
    fk_err err;
    int segment;
} refusal;

static fk_str unmark(const char *marked, char *text, size_t *at)
{
    *at = strcspn(marked, "^");
    CHECK(marked[*at] == '^');
    sprintf(text, "%.*s%s", (int)*at, marked, marked + *at + 1);
    return fk_str_of(text);
}

static void check_refused(const fk_path_options *options, const refusal *r)
{
    char text[512];
    size_t at;
    fk_path path = { .depth = 77 };
    fk_path_fault fault;
    fk_str guarded = guard_text(unmark(r->marked, text, &at));
    fk_err err = fk_path_parse(options, guarded, &path, &fault);
    if (err != r->err || fault.err != err || fault.at != at || fault.segment != r->segment) {
        test_failed(r->marked, 0, "%s at %zu in %d", fk_err_name(err), fault.at, fault.segment);
    }
    CHECK(fault.message != NULL);
    CHECK_U64(path.depth, 77); /* written on success only */
    CHECK_ERR(fk_path_parse(options, guarded, &path, NULL), err);
}

static void check_all_refused(const fk_path_options *options, const refusal *r, size_t count)
{
    for (size_t i = 0; i < count; i++) check_refused(options, &r[i]);
}

#define CHECK_ALL_REFUSED(options, table)                                                          \
    check_all_refused(options, table, sizeof(table) / sizeof((table)[0]))

/* ---- what is refused ------------------------------------------------------------------------ */

TEST(path_faults_of_scheme_and_system)
{
    static const refusal REFUSED[] = {
        { "^", FK_E_EMPTY, -1 },
        { "fraktor^", FK_E_SCHEME, -1 },
        { "^/user/a", FK_E_SCHEME, -1 },
        { "user^/a", FK_E_SCHEME, -1 },
        { "^//sys/user/a", FK_E_SCHEME, -1 },
        { "^ fraktor://sys/user", FK_E_SCHEME, -1 },
        { "^pekko://sys/user", FK_E_SCHEME, -1 },
        { "^fraktor.udp://sys@h:1/user", FK_E_SCHEME, -1 },
        { "^fraktors://sys/user", FK_E_SCHEME, -1 },
        { "frak^\x94tor://sys", FK_E_SCHEME, -1 },
        { "fraktor^\x1a//sys", FK_E_SCHEME, -1 },
        { "fraktor^_://sys", FK_E_SCHEME, -1 },
        { "fraktor:^", FK_E_NO_SYSTEM, -1 },
        { "fraktor:^sys/user", FK_E_NO_SYSTEM, -1 },
        { "fraktor:/^", FK_E_NO_SYSTEM, -1 },
        { "fraktor:/^sys/user", FK_E_NO_SYSTEM, -1 },
        { "fraktor://^", FK_E_NO_SYSTEM, -1 },
        { "fraktor://^/user/a", FK_E_NO_SYSTEM, -1 },
        { "fraktor://^@h:1/user", FK_E_NO_SYSTEM, -1 },
        { "fraktor://^#5", FK_E_NO_SYSTEM, -1 },
        { "fraktor://s^ y s/user", FK_E_SYSTEM, -1 },
        { "fraktor://^-sys/user", FK_E_SYSTEM, -1 },
        { "fraktor://^_sys/user", FK_E_SYSTEM, -1 },
        { "fraktor://sys^:80/user", FK_E_SYSTEM, -1 },
        { "fraktor://sys^.a@h:1", FK_E_SYSTEM, -1 },
        { "fraktor://s^%79s/user", FK_E_SYSTEM, -1 },
        { "fraktor://^\x80", FK_E_SYSTEM, -1 },
    };
    CHECK_ALL_REFUSED(NULL, REFUSED);
}

TEST(path_faults_of_authority)
{
    static const refusal REFUSED[] = {
        { "fraktor://sys@^", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@^/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@^:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host^/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host^", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^0/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^080/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^+80/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:^-80/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:6553^6/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:9999^999999999999999999", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:80^x/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:80^@/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host:80^:/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@a^@b:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@host^.:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@h^_a.b:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@1.2.^3:4/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@[::1^/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@[::1]^/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@[::1]^x:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@[fe80::1^%eth0]:1/user", FK_E_AUTHORITY, -1 },
        { "fraktor://sys@^::1:80/user", FK_E_AUTHORITY, -1 },
    };
    CHECK_ALL_REFUSED(NULL, REFUSED);
}

TEST(path_faults_of_segments)
{
    static const refusal REFUSED[] = {
        { "fraktor://sys/us^ er/a", FK_E_NAME, 0 },
        { "fraktor://sys//user///a^(b", FK_E_NAME, 1 }, /* empty ones do not count */
        { "fraktor://sys/user/a^?x=1", FK_E_NAME, 1 },
        { "fraktor://sys/user/^?x", FK_E_NAME, 1 },
        { "fraktor://sys^?x/user", FK_E_NAME, 0 },
        { "fraktor://sys@h:1^?x/user", FK_E_NAME, 0 },
        { "fraktor://sys/user/a/^../b c", FK_E_NAME, 2 },
        { "fraktor://sys/^.", FK_E_NAME, 0 },
        { "fraktor://sys/user/^%2e%2E/x", FK_E_NAME, 1 },
        { "fraktor://sys/user/^.%2e#5", FK_E_NAME, 1 },
        { "fraktor://sys/user/..^%", FK_E_PERCENT, 1 }, /* not "..": it goes on */
        { "fraktor://sys/user/ab^%2Fc", FK_E_NAME, 1 },
        { "fraktor://sys/user/^%00", FK_E_NAME, 1 },
        { "fraktor://sys/user/^%1f", FK_E_NAME, 1 },
        { "fraktor://sys/user/^%7F", FK_E_NAME, 1 },
        { "fraktor://sys/user/a%20^%0a%zz", FK_E_NAME, 1 },
        { "fraktor://sys/user/a^%C3%A9", FK_E_NAME, 1 },
        { "fraktor://sys/user/a^\n", FK_E_NAME, 1 },
        { "fraktor://sys/user/a^\x1b[2J", FK_E_NAME, 1 },
        { "fraktor://sys/user/^\xc3\xa9", FK_E_NAME, 1 },
        { "fraktor://sys/a%41^%4/b%", FK_E_PERCENT, 0 },
        { "fraktor://sys/a/b^%", FK_E_PERCENT, 1 },
        { "fraktor://sys/a/b/c^%4#1", FK_E_PERCENT, 2 },
        { "fraktor://sys/a/^%%41", FK_E_PERCENT, 1 },
    };
    CHECK_ALL_REFUSED(NULL, REFUSED);
}

TEST(path_faults_of_uids)
{
    static const refusal REFUSED[] = {
        { "fraktor://sys/user/a#^", FK_E_UID, -1 },
        { "fraktor://sys/user/a#^0", FK_E_UID, -1 },
        { "fraktor://sys/user/a#^007", FK_E_UID, -1 },
        { "fraktor://sys/user/a#^-1", FK_E_UID, -1 },
        { "fraktor://sys/user/a#^abc", FK_E_UID, -1 },
        { "fraktor://sys/user/a#12^x", FK_E_UID, -1 },
        { "fraktor://sys/user/a#1^#2", FK_E_UID, -1 },
        { "fraktor://sys/user/a#1^/b", FK_E_UID, -1 },
        { "fraktor://sys/user/a#1844674407370955161^6", FK_E_UID, -1 },
        { "fraktor://sys/user/a#9999999999999999999^9", FK_E_UID, -1 },
        { "fraktor://sys^#5", FK_E_UID, -1 },
        { "fraktor://sys/^#5", FK_E_UID, -1 },
    };
    static const refusal REFUSED_PEKKO[] = {
        { "pekko://sys/user/a#^", FK_E_UID, -1 },
        { "pekko://sys/user/a#-^", FK_E_UID, -1 },
        { "pekko://sys/user/a#-^0", FK_E_UID, -1 },
        { "pekko://sys/user/a#0^0", FK_E_UID, -1 },
        { "pekko://sys/user/a#214748364^8", FK_E_UID, -1 },
        { "pekko://sys/user/a#-214748364^9", FK_E_UID, -1 },
        { "pekko://sys/^#1", FK_E_UID, -1 },
    };
    CHECK_ALL_REFUSED(NULL, REFUSED);
    CHECK_ALL_REFUSED(&PEKKO, REFUSED_PEKKO);
}

TEST(path_rules_differ_where_they_should)
{
    static const refusal REFUSED_PEKKO[] = {
        { "^fraktor://sys/user", FK_E_SCHEME, -1 },  { "pekko://s^.s/user", FK_E_SYSTEM, -1 },
        { "pekko://sys/user/a^?x", FK_E_NAME, 1 },   { "pekko://sys/user/^(a)", FK_E_NAME, 1 },
        { "pekko://sys/user/^%4", FK_E_PERCENT, 1 }, { "pekko://s@h^_a.b:1/u", FK_E_AUTHORITY, -1 },
    };
    CHECK_ALL_REFUSED(&PEKKO, REFUSED_PEKKO);
    check_canonical(&PEKKO, "pekko://sys/../%24x/%00%2F%FF/.#-5",
                    "pekko://sys/../%24x/%00%2F%FF/.#-5");
    check_canonical(&PEKKO, "Pekko.TCP://sys@[fe80::1%eth0]:1/a#0",
                    "pekko.tcp://sys@[fe80::1%eth0]:1/a");
    check_canonical(&PEKKO, "pekko://sys/a#-2147483648", "pekko://sys/a#-2147483648");
    check_canonical(NULL, "FRAKTOR://sys", "fraktor://sys/");
}

TEST(path_utf8_is_an_option)
{
    static const char *const GOOD[] = {
        "%C3%A9", "%e3%81%82", "%F0%9F%98%80", "%C2%A0", "a%C3%A9b", "%F4%8F%BF%BF", "%EE%80%80",
    };
    static const refusal REFUSED[] = {
        { "fraktor://s/u/a^%FF", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C3", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C3a", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C3%", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C2%85", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C0%AF", FK_E_NAME, 1 },
        { "fraktor://s/u/^%ED%A0%80", FK_E_NAME, 1 },
        { "fraktor://s/u/^%A9", FK_E_NAME, 1 },
        { "fraktor://s/u/^%E0%80%AF", FK_E_NAME, 1 },
        { "fraktor://s/u/^%0A", FK_E_NAME, 1 },
        { "fraktor://s/u/^%F4%90%80%80", FK_E_NAME, 1 },
        { "fraktor://s/u/^%2F", FK_E_NAME, 1 },
        { "fraktor://s/u/^%F0%82%82%AC", FK_E_NAME, 1 },
        { "fraktor://s/u/^\xc3\xa9", FK_E_NAME, 1 },
        { "fraktor://s/u/^%F0%9F%98%8", FK_E_NAME, 1 },
        { "fraktor://s/u/^%C1%BF", FK_E_NAME, 1 },
    };
    CHECK_ALL_REFUSED(&UTF8, REFUSED);
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        char text[64];
        fk_path path;
        sprintf(text, "fraktor://sys/user/%s", GOOD[i]);
        check_canonical(&UTF8, text, text);
        CHECK_ERR(fk_path_parse(NULL, fk_str_of(text), &path, NULL), FK_E_NAME);
        CHECK_OK(fk_path_check_name(&UTF8, guard_text(fk_str_of(GOOD[i])), NULL));
    }
    fk_path a = parsed(&UTF8, "fraktor://s/%C3%A9"), b = parsed(&UTF8, "fraktor://s/%c3%a9");
    CHECK(fk_path_equal(&a, &b));
}

/* ---- limits --------------------------------------------------------------------------------- */

static void check_fault(fk_err err, const fk_path_fault *fault, fk_err expected, size_t at,
                        int segment)
{
    CHECK_ERR(err, expected);
    CHECK_U64(fault->at, at);
    CHECK_U64(fault->segment, segment);
}

TEST(path_segment_limit)
{
    char text[600] = "fraktor://sys/user/";
    size_t start = strlen(text);
    fk_path path;
    fk_path_fault fault;
    memset(text + start, 'n', 300);
    CHECK_OK(fk_path_parse(NULL, (fk_str){ text, start + 255 }, &path, NULL));
    fk_err err = fk_path_parse(NULL, (fk_str){ text, start + 256 }, &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, start + 255, 1);
    text[start + 100] = '%'; /* an earlier fault comes first, a later one does not */
    err = fk_path_parse(NULL, (fk_str){ text, start + 300 }, &path, &fault);
    check_fault(err, &fault, FK_E_PERCENT, start + 100, 1);
    text[start + 100] = 'n';
    text[start + 280] = ' ';
    err = fk_path_parse(NULL, (fk_str){ text, start + 300 }, &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, start + 255, 1);
    fk_path_options four = { .segment_max = 4 };
    err = fk_path_parse(&four, FK_STR("fraktor://sys/user/abcde/f"), &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 23, 1);
    err = fk_path_parse(&four, FK_STR("fraktor://sys/user/%41%41"), &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 23, 1);
}

TEST(path_depth_limit)
{
    char text[1200] = "fraktor://sys";
    size_t len = strlen(text);
    fk_path path;
    fk_path_fault fault;
    for (int i = 0; i < 64; i++) len += (size_t)sprintf(text + len, "/%d", i % 10);
    CHECK_OK(fk_path_parse(NULL, (fk_str){ text, len }, &path, NULL));
    CHECK_U64(path.depth, 64);
    sprintf(text + len, "//x y");
    fk_err err = fk_path_parse(NULL, (fk_str){ text, len + 5 }, &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, len + 2, 64);
    fk_path_options deeper = { .depth_max = 65 };
    err = fk_path_parse(&deeper, (fk_str){ text, len + 5 }, &path, &fault);
    check_fault(err, &fault, FK_E_NAME, len + 3, 64);
}

TEST(path_length_limit)
{
    char text[4096] = "fraktor://sys";
    size_t len = strlen(text);
    fk_path path;
    fk_path_fault fault;
    memset(text + len, '/', sizeof(text) - len);
    CHECK_OK(fk_path_parse(NULL, (fk_str){ text, 1024 }, &path, NULL));
    fk_err err = fk_path_parse(NULL, guard_text((fk_str){ text, 1025 }), &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 1024, -1);
    text[1023] = ' '; /* before the limit: that is the fault; behind it: the limit is */
    err = fk_path_parse(NULL, (fk_str){ text, 4096 }, &path, &fault);
    check_fault(err, &fault, FK_E_NAME, 1023, 0);
    text[1023] = '/';
    text[1024] = ' ';
    err = fk_path_parse(NULL, (fk_str){ text, 4096 }, &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 1024, -1);
    sprintf(text + 1020, "%%41/"); /* an escape that begins before the limit is whole */
    fk_path_options cut = { .path_max = 1022 };
    err = fk_path_parse(&cut, (fk_str){ text, 1100 }, &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 1022, -1);
    fk_path_options ten = { .path_max = 10 };
    err = fk_path_parse(&ten, FK_STR("fraktor://sys"), &path, &fault);
    check_fault(err, &fault, FK_E_LIMIT, 10, -1);
    err = fk_path_parse(&ten, FK_STR("fraktor_//sys"), &path, &fault);
    check_fault(err, &fault, FK_E_SCHEME, 7, -1);
}

TEST(path_system_and_host_limits)
{
    char text[900];
    fk_path path;
    fk_path_fault fault;
    int len = sprintf(text, "fraktor://%0255d@%0255d:1/user", 0, 0);
    CHECK_OK(fk_path_parse(NULL, (fk_str){ text, (size_t)len }, &path, NULL));
    CHECK_U64(path.host.len, 255);
    len = sprintf(text, "fraktor://%0256d@h:1/user", 0);
    fk_err err = fk_path_parse(NULL, (fk_str){ text, (size_t)len }, &path, &fault);
    check_fault(err, &fault, FK_E_SYSTEM, 10 + 255, -1);
    len = sprintf(text, "fraktor://s@%0256d:1/user", 0);
    err = fk_path_parse(NULL, (fk_str){ text, (size_t)len }, &path, &fault);
    check_fault(err, &fault, FK_E_AUTHORITY, 12 + 255, -1);
    sprintf(text, "%0256d", 0);
    err = fk_path_check_system(NULL, guard_text(fk_str_of(text)), &fault);
    check_fault(err, &fault, FK_E_SYSTEM, 255, -1);
    err = fk_path_check_host(NULL, guard_text(fk_str_of(text)), &fault);
    check_fault(err, &fault, FK_E_AUTHORITY, 255, -1);
    CHECK_OK(fk_path_check_system(NULL, (fk_str){ text, 255 }, NULL));
    CHECK_OK(fk_path_check_host(NULL, (fk_str){ text, 255 }, NULL));
}

/* ---- hostile texts -------------------------------------------------------------------------- */

static char huge[1 << 20];

static void check_huge(const char *start, char fill, fk_err expected)
{
    fk_path path;
    fk_path_fault fault;
    memset(huge, fill, sizeof(huge));
    for (size_t i = 0; start[i] != '\0'; i++) huge[i] = start[i];
    fk_str text = guard_text((fk_str){ huge, sizeof(huge) });
    CHECK_ERR(fk_path_parse(NULL, text, &path, &fault), expected);
    CHECK(fault.at <= 1024);
}

TEST(path_a_megabyte_is_refused_at_once)
{
    int64_t before = test_work();
    check_huge("fraktor://sys/user/", 'a', FK_E_LIMIT);
    check_huge("fraktor://sys/user", '/', FK_E_LIMIT);
    check_huge("fraktor://sys/user/a#", '1', FK_E_UID);
    check_huge("fraktor://", 's', FK_E_SYSTEM);
    check_huge("fraktor://sys@", 'h', FK_E_AUTHORITY);
    check_huge("fraktor://sys@[", ':', FK_E_AUTHORITY);
    check_huge("fraktor://sys@h:", '1', FK_E_AUTHORITY);
    check_huge("", 'f', FK_E_LIMIT);
    check_huge("fraktor://sys/user/", '%', FK_E_PERCENT);
    check_huge("fraktor://sys/user/", '\0', FK_E_NAME);
    fk_path_fault fault;
    memset(huge, 'n', sizeof(huge));
    fk_str text = guard_text((fk_str){ huge, sizeof(huge) });
    check_fault(fk_path_check_name(NULL, text, &fault), &fault, FK_E_LIMIT, 255, 0);
    CHECK(test_work() - before < FK_SECONDS(test_is_sanitized() ? 20 : 2));
}

TEST(path_every_byte_is_looked_at)
{
    for (int c = 0; c < 256; c++) {
        static const char EXTRA[] = "-_.*$+:@&=,!~';";
        char text[] = "fraktor://sys/user/x_y";
        fk_path path;
        bool legal = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c != 0 && strchr(EXTRA, c) != NULL);
        text[20] = (char)c;
        fk_err err = fk_path_parse(NULL, guard_text(fk_str_of(text)), &path, NULL);
        if (c == 0) err = fk_path_parse(NULL, (fk_str){ text, 22 }, &path, NULL);
        fk_err expected = legal || c == '/' ? FK_OK : c == '%' ? FK_E_PERCENT : FK_E_NAME;
        CHECK_ERR(err, c == '#' ? FK_E_UID : expected);
    }
}

/* Every text cut short, and every text with one byte changed, is read without a step outside. */
TEST(path_cut_and_changed_texts_stay_inside)
{
    static const char *const TEXTS[] = {
        "fraktor.tcp://sys@host-1.example:2552/user/a%20b/%41#18446744073709551615",
        "fraktor://s@[2001:db8::ffff:1.2.3.4]:65535/user/%F0%9F%98%80/$a",
        "pekko.tcp://sys@[fe80::1%eth0]:1/user/../%ff#-2147483648",
    };
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        fk_str whole = fk_str_of(TEXTS[i]);
        for (size_t len = 0; len <= whole.len; len++) {
            for (int c = 0; c < 256 && len < whole.len; c += 3) {
                char text[128];
                fk_path path;
                fk_path_fault fault = { .at = 0 };
                memcpy(text, whole.ptr, whole.len);
                text[len] = (char)c;
                (void)!fk_path_parse(i == 2 ? &PEKKO : &UTF8,
                                     guard_text((fk_str){ text, whole.len }), &path, &fault);
                CHECK(fault.at <= whole.len);
            }
            fk_path path;
            fk_path_fault fault = { .at = 0 };
            (void)!fk_path_parse(i == 2 ? &PEKKO : &UTF8, guard_text((fk_str){ whole.ptr, len }),
                                 &path, &fault);
            CHECK(fault.at <= len);
        }
    }
}

/* ---- parts ---------------------------------------------------------------------------------- */

TEST(path_parts)
{
    fk_path path = parsed(NULL, "fraktor.tcp://sys@h:1//user///a/b//#7");
    size_t cursor = 0;
    fk_str segment;
    static const char *const SEGMENTS[] = { "user", "a", "b" };
    for (size_t i = 0; i < 3; i++) {
        CHECK(fk_path_next(&path, &cursor, &segment));
        CHECK(tsv_equal(segment, fk_str_of(SEGMENTS[i])));
    }
    CHECK(!fk_path_next(&path, &cursor, &segment));
    CHECK(!fk_path_next(&path, &cursor, &segment));
    CHECK_U64(path.depth, 3);
    CHECK(tsv_equal(path.segments, FK_STR("/user///a/b"))); /* nothing before, nothing behind */
    CHECK(tsv_equal(fk_path_name(&path), FK_STR("b")));
    CHECK(tsv_equal(fk_path_scheme(&path), FK_STR("fraktor.tcp")));
    fk_path parent = fk_path_parent(&path);
    check_text(&parent, "fraktor.tcp://sys@h:1/user/a");
    parent = fk_path_parent(&parent);
    check_text(&parent, "fraktor.tcp://sys@h:1/user");
    for (int i = 0; i < 3; i++) { /* the root's parent is the root */
        parent = fk_path_parent(&parent);
        CHECK_U64(parent.depth, 0);
        check_text(&parent, "fraktor.tcp://sys@h:1/");
        CHECK_U64(fk_path_name(&parent).len, 0);
    }
    fk_path root = fk_path_root(&path);
    check_text(&root, "fraktor.tcp://sys@h:1/");
    CHECK(fk_path_equal(&root, &parent));
}

TEST(path_uids_are_given_and_taken)
{
    fk_path path = parsed(NULL, "fraktor://s/user/a#5"), out;
    CHECK_OK(fk_path_with_uid(&path, UINT64_MAX, &out));
    check_text(&out, "fraktor://s/user/a#18446744073709551615");
    CHECK_OK(fk_path_with_uid(&out, 0, &out));
    check_text(&out, "fraktor://s/user/a");
    fk_path root = fk_path_root(&path);
    CHECK_OK(fk_path_with_uid(&root, 0, &out));
    CHECK_ERR(fk_path_with_uid(&root, 1, &out), FK_E_UID);
    path = parsed(&PEKKO, "pekko://s/user/a");
    CHECK_OK(fk_path_with_uid(&path, (uint64_t)INT32_MIN, &out));
    check_text(&out, "pekko://s/user/a#-2147483648");
    CHECK_ERR(fk_path_with_uid(&path, (uint64_t)INT32_MAX + 1, &out), FK_E_UID);
    CHECK_ERR(fk_path_with_uid(&path, (uint64_t)INT32_MIN - 1, &out), FK_E_UID);
}

TEST(path_top_tells_the_part_of_the_tree)
{
    static const struct {
        const char *text;
        fk_path_top_kind kind;
    } TOPS[] = {
        { "fraktor://s", FK_TOP_ROOT },
        { "fraktor://s/user", FK_TOP_USER },
        { "fraktor://s//user/a/b", FK_TOP_USER },
        { "fraktor://s/%75ser/a", FK_TOP_USER }, /* equal to /user/a */
        { "fraktor://s/system/log", FK_TOP_SYSTEM },
        { "fraktor://s/systemx/log", FK_TOP_EXTRA },
        { "fraktor://s/temp/$a", FK_TOP_TEMP },
        { "fraktor://s/deadLetters", FK_TOP_DEAD_LETTERS },
        { "fraktor://s/deadletters", FK_TOP_EXTRA },
        { "fraktor://s/metrics/x", FK_TOP_EXTRA },
        { "fraktor://s/use", FK_TOP_EXTRA },
    };
    for (size_t i = 0; i < sizeof(TOPS) / sizeof(TOPS[0]); i++) {
        fk_path path = parsed(NULL, TOPS[i].text);
        CHECK_U64(fk_path_top(&path), TOPS[i].kind);
    }
    fk_path path = parsed(&PEKKO, "pekko://s/%75ser/a");
    CHECK_U64(fk_path_top(&path), FK_TOP_EXTRA);
}

TEST(path_address_is_given_where_there_is_no_host)
{
    fk_path address = parsed(NULL, "fraktor.tcp://out@[::1]:99");
    fk_path local = parsed(NULL, "fraktor://in/user/a#3");
    fk_path remote = parsed(NULL, "fraktor://in@h:1/user/a");
    fk_path with = fk_path_with_address(&local, &address);
    check_text(&with, "fraktor.tcp://out@[::1]:99/user/a#3");
    with = fk_path_with_address(&remote, &address);
    check_text(&with, "fraktor://in@h:1/user/a");
    fk_path ours = parsed(NULL, "fraktor://local/ignore");
    with = fk_path_with_address(&ours, &address);
    check_text(&with, "fraktor.tcp://out@[::1]:99/ignore");
    address = parsed(&PEKKO, "pekko://alt@h:1");
    static const char *const IGNORED[] = { "pekko://local/ignore", "pekko://local//ignore/" };
    static const char *const NOT[] = { "pekko://local",          "pekko://locaI/ignore",
                                       "pekko://l/ignore",       "pekko://local/ignores",
                                       "pekko://local/ignore/x", "pekko://local/a/ignore" };
    for (size_t i = 0; i < 2; i++) {
        fk_path path = parsed(&PEKKO, IGNORED[i]);
        with = fk_path_with_address(&path, &address);
        CHECK_U64(with.host.len, 0);
    }
    for (size_t i = 0; i < sizeof(NOT) / sizeof(NOT[0]); i++) {
        fk_path path = parsed(&PEKKO, NOT[i]);
        with = fk_path_with_address(&path, &address);
        CHECK(with.host.len == 1);
    }
}

/* ---- text ----------------------------------------------------------------------------------- */

TEST(path_forms)
{
    static const char *const FORMS[] = {
        [FK_FORM_FULL] = "fraktor.tcp://s@h:80/user/a#9",
        [FK_FORM_NO_UID] = "fraktor.tcp://s@h:80/user/a",
        [FK_FORM_LOCAL] = "/user/a",
        [FK_FORM_ADDRESS] = "fraktor.tcp://s@h:80",
    };
    static const char *const ROOT_FORMS[] = {
        [FK_FORM_FULL] = "fraktor://s/",
        [FK_FORM_NO_UID] = "fraktor://s/",
        [FK_FORM_LOCAL] = "/",
        [FK_FORM_ADDRESS] = "fraktor://s",
    };
    fk_path path = parsed(NULL, "fraktor.tcp://s@h:80//user//a#9");
    fk_path root = parsed(NULL, "fraktor://s");
    char text[64];
    for (fk_path_form form = FK_FORM_FULL; form <= FK_FORM_ADDRESS; form++) {
        CHECK_U64(fk_path_format(&path, form, text, sizeof(text)), strlen(FORMS[form]));
        CHECK_STR(text, FORMS[form]);
        CHECK_U64(fk_path_format(&root, form, text, sizeof(text)), strlen(ROOT_FORMS[form]));
        CHECK_STR(text, ROOT_FORMS[form]);
        size_t full = strlen(FORMS[form]);
        for (size_t size = 1; size <= full + 1; size++) { /* cut, and not a byte further */
            char *buf = guard_buffer(size);
            CHECK_U64(fk_path_format(&path, form, buf, size), full);
            CHECK_U64(strlen(buf), size - 1);
            CHECK(memcmp(buf, FORMS[form], size - 1) == 0);
        }
        CHECK_U64(fk_path_format(&path, form, NULL, 0), full);
    }
}

TEST(path_codes_of_errors)
{
    static const char *const CODES[] = {
        [FK_E_EMPTY] = "empty",
        [FK_E_SCHEME] = "invalid_scheme",
        [FK_E_NO_SYSTEM] = "missing_system",
        [FK_E_SYSTEM] = "invalid_system",
        [FK_E_AUTHORITY] = "invalid_authority",
        [FK_E_NAME] = "invalid_segment",
        [FK_E_RESERVED] = "reserved_segment",
        [FK_E_PERCENT] = "percent_decode",
        [FK_E_UID] = "invalid_uid",
        [FK_E_ESCAPE] = "relative_escape",
        [FK_E_LIMIT] = "too_long",
        [FK_E_PID_UNKNOWN] = "pid_unknown",
        [FK_E_UNRESOLVED] = "authority_unresolved",
        [FK_E_QUARANTINED] = "authority_quarantined",
        [FK_E_UID_RESERVED] = "uid_reserved",
    };
    for (size_t i = 0; i < sizeof(CODES) / sizeof(CODES[0]); i++) {
        const char *code = fk_path_code((fk_err)i);
        CHECK((code == NULL) == (CODES[i] == NULL));
        if (code != NULL) CHECK_STR(code, CODES[i]);
    }
    CHECK(fk_path_code((fk_err)9999) == NULL);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void check_name(const fk_path_options *options, const char *marked, fk_err expected)
{
    char text[128];
    size_t at;
    fk_path_fault fault = { .segment = 5 };
    fk_str name = guard_text(unmark(marked, text, &at));
    fk_err err = fk_path_check_name(options, name, &fault);
    if (err != expected || fault.at != at) {
        test_failed(marked, 0, "%s at %zu", fk_err_name(err), fault.at);
    }
    CHECK_U64(fault.segment, expected == FK_E_EMPTY ? -1 : 0);
}

TEST(path_names_that_are_refused)
{
    check_name(NULL, "^", FK_E_EMPTY);
    check_name(NULL, "^$", FK_E_RESERVED);
    check_name(NULL, "^%24", FK_E_RESERVED);
    check_name(NULL, "^$ bad", FK_E_RESERVED);
    check_name(NULL, "^..", FK_E_NAME);
    check_name(NULL, "^%2e", FK_E_NAME);
    check_name(NULL, "ab^/c", FK_E_NAME);
    check_name(NULL, "ab^#1", FK_E_NAME);
    check_name(NULL, "ab^?", FK_E_NAME);
    check_name(NULL, "^%2F", FK_E_NAME);
    check_name(NULL, "a%41^%4", FK_E_PERCENT);
    check_name(&PEKKO, "^$%", FK_E_RESERVED);
    check_name(&PEKKO, "a^ ", FK_E_NAME);
    check_name(&PEKKO, "a^%4", FK_E_PERCENT);
    CHECK_OK(fk_path_check_name(&PEKKO, FK_STR("%24x"), NULL));
    CHECK_OK(fk_path_check_name(&PEKKO, FK_STR(".."), NULL));
    CHECK_OK(fk_path_check_name(&PEKKO, FK_STR("%2F%00"), NULL));
    CHECK_OK(fk_path_check_name(NULL, FK_STR("a$"), NULL));
    CHECK_ERR(fk_path_check_name(NULL, (fk_str){ NULL, 0 }, NULL), FK_E_EMPTY);
    CHECK_ERR(fk_path_check_name(NULL, (fk_str){ "a\0b", 3 }, NULL), FK_E_NAME);
}

TEST(path_systems_and_hosts)
{
    CHECK_OK(fk_path_check_system(NULL, FK_STR("a-_9"), NULL));
    CHECK_ERR(fk_path_check_system(NULL, FK_STR(""), NULL), FK_E_EMPTY);
    CHECK_ERR(fk_path_check_system(NULL, FK_STR("a/b"), NULL), FK_E_SYSTEM);
    CHECK_ERR(fk_path_check_system(NULL, FK_STR("@"), NULL), FK_E_SYSTEM);
    CHECK_ERR(fk_path_check_system(NULL, FK_STR("a@h"), NULL), FK_E_SYSTEM);
    CHECK_OK(fk_path_check_host(NULL, FK_STR("a.b-c"), NULL));
    CHECK_OK(fk_path_check_host(NULL, FK_STR("[::1]"), NULL));
    CHECK_ERR(fk_path_check_host(NULL, FK_STR(""), NULL), FK_E_EMPTY);
    CHECK_ERR(fk_path_check_host(NULL, FK_STR("a:1"), NULL), FK_E_AUTHORITY);
    CHECK_ERR(fk_path_check_host(NULL, FK_STR("a_b.c"), NULL), FK_E_AUTHORITY);
    CHECK_ERR(fk_path_check_host(NULL, FK_STR("a."), NULL), FK_E_AUTHORITY);
    CHECK_OK(fk_path_check_host(&PEKKO, FK_STR("a_b.c"), NULL));
    CHECK_ERR(fk_path_check_host(&PEKKO, FK_STR("a.b_c"), NULL), FK_E_AUTHORITY);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selections and wildcards. '^' in a text that is refused marks the byte that is to blame. */

#include <stdio.h>
#include <string.h>

#include "support/guard.h"
#include "support/test.h"
#include "support/tsv.h"

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };

typedef fk_err (*parse_fn)(const fk_path_options *options, fk_str text, fk_expression *out,
                           fk_path_fault *fault);

/* "/ user ? ..#7": anchor ('.', '/' or the address), elements, patterns in angle brackets. */
static void write_expression(const fk_expression *e, char *out)
{
    size_t cursor = 0;
    fk_element element;
    uint32_t count = 0;
    if (e->anchor == FK_ANCHOR_ADDRESS)
        out += fk_path_format(&e->address, FK_FORM_ADDRESS, out, 128);
    else
        out += sprintf(out, "%s", e->anchor == FK_ANCHOR_ROOT ? "/" : ".");
    while (fk_expression_next(e, &cursor, &element)) {
        bool pattern = element.kind == FK_ELEMENT_PATTERN;
        bool parent = tsv_equal(element.text, FK_STR(".."));
        CHECK(parent == (element.kind == FK_ELEMENT_PARENT));
        out += sprintf(out, " %s%.*s%s", pattern ? "<" : "", (int)element.text.len,
                       element.text.ptr, pattern ? ">" : "");
        count++;
    }
    CHECK(!fk_expression_next(e, &cursor, &element));
    CHECK_U64(count, e->count);
    if (e->uid != 0) sprintf(out, "#%lld", (long long)e->uid);
}

static void check_parsed(parse_fn parse, const fk_path_options *options, const char *text,
                         const char *expected)
{
    char actual[512];
    fk_expression e;
    fk_path_fault fault;
    fk_err err = parse(options, guard_text(fk_str_of(text)), &e, &fault);
    if (err != FK_OK) test_failed(text, 0, "%s at %zu", fk_err_name(err), fault.at);
    write_expression(&e, actual);
    CHECK_STR(actual, expected);
}

static void check_refused(parse_fn parse, const fk_path_options *options, const char *marked,
                          fk_err expected, int segment)
{
    char text[256];
    size_t at = strcspn(marked, "^");
    sprintf(text, "%.*s%s", (int)at, marked, marked + at + 1);
    fk_expression e = { .count = 77 };
    fk_path_fault fault;
    fk_err err = parse(options, guard_text(fk_str_of(text)), &e, &fault);
    if (err != expected || fault.at != at || fault.segment != segment) {
        test_failed(marked, 0, "%s at %zu in %d", fk_err_name(err), fault.at, fault.segment);
    }
    CHECK_U64(e.count, 77);
}

TEST(expression_anchors_and_elements)
{
    static const char *const CASES[][2] = {
        { "", "." },
        { "/", "/" },
        { ".", "." },
        { "a", ". a" },
        { "a//b/", ". a b" },
        { "./a/./b/.", ". a b" },
        { "../b", ". .. b" },
        { "../../..", ". .. .. .." }, /* how far up is known only where it begins */
        { "/user/a/../b", "/ user a .. b" },
        { "worker-?", ". <worker-?>" },
        { "/user/*/b*c/x", "/ user <*> <b*c> x" },
        { "/*", "/ <*>" },
        { "a%2Ab", ". a%2Ab" }, /* an escaped asterisk is no wildcard */
        { "a#7", ". a#7" },
        { "a/#7", ". a#7" },
        { "w?#18446744073709551615", ". <w?>#-1" },
        { "$a/...", ". $a ..." },
        { "a:b", ". a:b" },
        { "fraktor://s@h:1/user/*#3", "fraktor://s@h:1 user <*>#3" },
        { "FRAKTOR.TCP://s", "fraktor.tcp://s" },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        check_parsed(fk_expression_parse, NULL, CASES[i][0], CASES[i][1]);
    }
    check_parsed(fk_expression_parse, &PEKKO, "", "/");
    check_parsed(fk_expression_parse, &PEKKO, "./a", ". . a");
    check_parsed(fk_expression_parse, &PEKKO, "/../..", "/ .. ..");
    check_parsed(fk_expression_parse, &PEKKO, "pekko://s/a/../b", "pekko://s a .. b");
    check_parsed(fk_expression_parse, &PEKKO, "c1#0", ". c1");
}

TEST(expression_faults)
{
    parse_fn parse = fk_expression_parse;
    check_refused(parse, NULL, "/^..", FK_E_ESCAPE, 0);
    check_refused(parse, NULL, "/*/^..", FK_E_ESCAPE, 1);
    check_refused(parse, NULL, "/user/a/../^..", FK_E_ESCAPE, 3);
    check_refused(parse, NULL, "^%2e%2e", FK_E_NAME, 0);
    check_refused(parse, NULL, "a/^.%2e", FK_E_NAME, 1);
    check_refused(parse, NULL, "a^ b", FK_E_NAME, 0);
    check_refused(parse, NULL, "a/b?/c^%0a", FK_E_NAME, 2);
    check_refused(parse, NULL, "*/^%2", FK_E_PERCENT, 1);
    check_refused(parse, NULL, "a#^", FK_E_UID, -1);
    check_refused(parse, NULL, "a#^0", FK_E_UID, -1);
    check_refused(parse, NULL, "a#7^/b", FK_E_UID, -1);
    check_refused(parse, NULL, "^#7", FK_E_UID, -1);
    check_refused(parse, NULL, "a/..^#7", FK_E_UID, -1);
    check_refused(parse, NULL, "^x://a", FK_E_SCHEME, -1);
    check_refused(parse, NULL, "fraktor://^/a", FK_E_NO_SYSTEM, -1);
    check_refused(parse, NULL, "fraktor://s/a/^..", FK_E_NAME, 1);
    check_refused(parse, &PEKKO, "^a:b", FK_E_SCHEME, -1);
    check_refused(parse, &PEKKO, "pekko:/^user", FK_E_NO_SYSTEM, -1);
    check_refused(parse, &PEKKO, "a^ b", FK_E_NAME, 0);
    fk_path_options small = { .depth_max = 2, .segment_max = 3, .path_max = 12 };
    check_refused(parse, &small, "a/b/^c", FK_E_LIMIT, 2);
    check_refused(parse, &small, "a/bcd^e", FK_E_LIMIT, 1);
    check_refused(parse, &small, "a///////////^/", FK_E_LIMIT, -1);
}

TEST(expression_split_takes_what_others_send)
{
    parse_fn split = fk_expression_split;
    check_parsed(split, &PEKKO, "//a//", ". a");
    check_parsed(split, &PEKKO, "%zz/a b/x:y/?", ". %zz a b x:y <?>");
    check_parsed(split, &PEKKO, "\xc3\xa9#-5", ". \xc3\xa9#-5");
    check_parsed(split, &PEKKO, "pekko://s", ". pekko: s");
    check_parsed(split, NULL, "/../a:b/*", ". .. a:b <*>");
    check_refused(split, &PEKKO, "a^\n", FK_E_NAME, 0);
    check_refused(split, &PEKKO, "a/b^\x7f", FK_E_NAME, 1);
    check_refused(split, &PEKKO, "a#^x", FK_E_UID, -1);
    check_refused(split, NULL, "^%zz", FK_E_PERCENT, 0);
    check_refused(split, NULL, "a^ b", FK_E_NAME, 0);
    fk_path_options small = { .rules = FK_RULES_PEKKO, .depth_max = 2, .segment_max = 3 };
    check_refused(split, &small, "a/b/^c", FK_E_LIMIT, 2);
    check_refused(split, &small, "a/bcd^e", FK_E_LIMIT, 1);
}

/* ---- wildcards ------------------------------------------------------------------------------ */

static bool matches(fk_rules rules, const char *pattern, const char *name)
{
    static char copy[256];
    fk_str p = { copy, strlen(pattern) };
    memcpy(copy, pattern, p.len);
    return fk_path_match(rules, p, guard_text(fk_str_of(name)));
}

TEST(glob_by_both_rules)
{
    static const struct {
        const char *pattern, *name;
        bool fraktor, pekko;
    } CASES[] = {
        { "*", "", true, true },
        { "", "", true, true },
        { "", "a", false, false },
        { "a", "", false, false },
        { "a", "ab", false, false },
        { "***", "abc", true, true },
        { "*b*", "abc", true, true },
        { "*?", "", false, false },
        { "?*?", "a", false, false },
        { "?*?", "ab", true, true },
        { "a*?c", "ac", false, false },
        { "*ab", "aab", true, true },
        { "*aab", "aaab", true, true },
        { "a*b*c", "abbcbc", true, true },
        { "A", "%41", true, false },
        { "%41*", "Ab", true, false },
        { "%2A", "*", true, false },
        { "%2A", "a", false, false }, /* an escaped asterisk is one */
        { "%3F", "a", false, false },
        { "a?b", "a%20b", true, false }, /* one character, or three */
        { "a???b", "a%20b", false, true },
        { "?", "%C3%A9", true, false },
        { "??", "%C3%A9", false, false },
        { "?", "%E3%81%82", true, false },
        { "?", "%F0%9F%98%80", true, false },
        { "?", "%C3~", false, false }, /* no sequence: two characters */
        { "*%a9", "%C3%A9", false, false },
        { "a?b",
          "a\xc3\xa9"
          "b",
          true, true },
        { "*%", "a%", true, true }, /* never checked, never outside */
        { "%4", "%4", true, true },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        if (matches(FK_RULES_FRAKTOR, CASES[i].pattern, CASES[i].name) != CASES[i].fraktor ||
            matches(FK_RULES_PEKKO, CASES[i].pattern, CASES[i].name) != CASES[i].pekko) {
            test_failed(CASES[i].pattern, 0, "against %s", CASES[i].name);
        }
    }
}

/* The obvious one, for short texts. */
static bool slow_match(const char *pattern, const char *name)
{
    if (*pattern == '\0') return *name == '\0';
    if (*pattern == '*') {
        return slow_match(pattern + 1, name) || (*name != '\0' && slow_match(pattern, name + 1));
    }
    return *name != '\0' && (*pattern == '?' || *pattern == *name) &&
           slow_match(pattern + 1, name + 1);
}

TEST(glob_agrees_with_the_obvious_way)
{
    test_random random = { 9 };
    size_t matched = 0;
    for (uint64_t i = 0; i < test_scaled(100000); i++) {
        char pattern[9] = "", name[9] = "";
        size_t plen = test_random_below(&random, 9), nlen = test_random_below(&random, 9);
        for (size_t j = 0; j < plen; j++) pattern[j] = "ab*?*"[test_random_below(&random, 5)];
        for (size_t j = 0; j < nlen; j++) name[j] = "ab"[test_random_below(&random, 2)];
        bool expected = slow_match(pattern, name);
        CHECK(matches(FK_RULES_FRAKTOR, pattern, name) == expected);
        CHECK(matches(FK_RULES_PEKKO, pattern, name) == expected);
        matched += expected;
    }
    CHECK(matched > 100);
}

TEST(glob_takes_no_more_than_the_product_of_lengths)
{
    static char name[1 << 20], pattern[4096];
    int64_t before = test_work();
    memset(name, 'a', sizeof(name));
    for (size_t i = 0; i < 2000; i++) pattern[i] = i % 2 == 0 ? '*' : 'a';
    pattern[2000] = 'b';
    fk_str text = guard_text((fk_str){ name, test_scaled(sizeof(name)) });
    CHECK(!fk_path_match(FK_RULES_FRAKTOR, (fk_str){ pattern, 2001 }, text));
    CHECK(fk_path_match(FK_RULES_FRAKTOR, (fk_str){ pattern, 2000 }, text));
    CHECK(!fk_path_match(FK_RULES_FRAKTOR, FK_STR("*a*a*a*b"), text));
    memset(pattern, 'a', 256); /* the worst there is for names of 255 bytes */
    pattern[0] = '*';
    pattern[128] = 'b';
    CHECK(!fk_path_match(FK_RULES_FRAKTOR, (fk_str){ pattern, 129 }, (fk_str){ name, 255 }));
    CHECK(test_work() - before < FK_SECONDS(test_is_sanitized() ? 10 : 2));
}

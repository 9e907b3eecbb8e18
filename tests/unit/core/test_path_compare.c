/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Equality, order and hash agree with each other, and text survives being read and written. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "support/tsv.h"

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };
static const fk_path_options UTF8 = { .utf8 = true };

static fk_path parsed(const fk_path_options *options, const char *text)
{
    fk_path path;
    fk_err err = fk_path_parse(options, fk_str_of(text), &path, NULL);
    if (err != FK_OK) test_failed(text, 0, "%s", fk_err_name(err));
    return path;
}

static void check_equal(const fk_path_options *options, const char *left, const char *right,
                        bool equal)
{
    fk_path a = parsed(options, left), b = parsed(options, right);
    if (fk_path_equal(&a, &b) != equal) test_failed(left, 0, "equality with %s", right);
    CHECK(fk_path_equal(&b, &a) == equal);
    CHECK((fk_path_compare(&a, &b) == 0) == equal);
    CHECK((fk_path_hash(&a) == fk_path_hash(&b)) == equal);
}

TEST(path_equality_looks_at_what_escapes_stand_for)
{
    check_equal(NULL, "fraktor://s/user/A", "fraktor://s/user/%41", true);
    check_equal(NULL, "fraktor://s/user/%5A%5a", "fraktor://s/user/%5aZ", true);
    check_equal(NULL, "fraktor://s/user/%24a", "fraktor://s/user/$a", true);
    check_equal(NULL, "fraktor://s/user/%2541", "fraktor://s/user/A", false); /* once, not twice */
    check_equal(NULL, "fraktor://s/user/%2541", "fraktor://s/user/%41", false);
    check_equal(NULL, "fraktor://s/user/%2541", "fraktor://s/user/%25%34%31", true);
    check_equal(NULL, "fraktor://s/user/a%20", "fraktor://s/user/a", false);
    check_equal(NULL, "fraktor://s/user/a%20", "fraktor://s/user/a%20b", false);
    check_equal(&UTF8, "fraktor://s/user/%C3%A9", "fraktor://s/user/%c3%a9", true);
    check_equal(&PEKKO, "pekko://s/user/A", "pekko://s/user/%41", false);
    check_equal(&PEKKO, "pekko://s/user/%5A", "pekko://s/user/%5a", false);
}

TEST(path_equality_leaves_out_scheme_and_uid)
{
    check_equal(NULL, "fraktor://s@h:1/a#1", "FRAKTOR.tcp://s@h:1//a/#2", true);
    check_equal(&PEKKO, "pekko://s@h:1/a#1", "pekko://s@h:1//a/#2", true);
    check_equal(&PEKKO, "pekko://s@h:1/a", "pekko.tcp://s@h:1/a", false);
    check_equal(NULL, "fraktor://s@h:1/a", "fraktor://s@H:1/a", false);
    check_equal(NULL, "fraktor://s@h:1/a", "fraktor://s/a", false);
    check_equal(NULL, "fraktor://s/a", "fraktor://S/a", false);
    check_equal(NULL, "fraktor://s/ab/c", "fraktor://s/a/bc", false);
    check_equal(NULL, "fraktor://ab/c", "fraktor://a/bc", false);
    check_equal(NULL, "fraktor://s/a", "fraktor://s/a/a", false);
    fk_path ours = parsed(NULL, "fraktor://s/a"), theirs = parsed(&PEKKO, "pekko://s/a");
    CHECK(!fk_path_equal(&ours, &theirs));
    CHECK(fk_path_compare(&ours, &theirs) != 0);
    CHECK(fk_path_compare(&ours, &theirs) == -fk_path_compare(&theirs, &ours));
}

/* ---- random paths --------------------------------------------------------------------------- */

enum { SAMPLE = 240, TEXT_MAX = 256 };

static size_t pick(test_random *random, const char *const *from, size_t count, char *out)
{
    return (size_t)sprintf(out, "%s", from[test_random_below(random, count)]);
}

/* Few parts, many spellings: so that equal paths turn up. */
static void write_random(test_random *random, bool pekko, char *out)
{
    static const char *const SYSTEMS[] = { "s", "S", "s-1" };
    static const char *const HOSTS[] = { "", "", "@h:1", "@h:10", "@h:9", "@h-a.b:1", "@[::1]:1" };
    static const char *const SLASHES[] = { "/", "/", "//" };
    static const char *const NAMES[] = { "a",  "A",    "%41", "%61", "aa", "a-",
                                         "$a", "%24a", "~",   "%7E", "%7e" };
    static const char *const UIDS[] = { "", "#1", "#2" };
    out += sprintf(out, "%s%s://", pekko ? "pekko" : "fraktor",
                   test_random_below(random, 2) == 0 ? "" : ".tcp");
    out += pick(random, SYSTEMS, 3, out);
    out += pick(random, HOSTS, 7, out);
    size_t depth = test_random_below(random, 4);
    for (size_t i = 0; i < depth; i++) {
        out += pick(random, SLASHES, 3, out);
        out += pick(random, NAMES, 11, out);
    }
    if (depth > 0) (void)pick(random, UIDS, 3, out);
}

static int by_order(const void *a, const void *b)
{
    return fk_path_compare(a, b);
}

static void check_agreement(const fk_path *sample, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            int order = fk_path_compare(&sample[i], &sample[j]);
            bool equal = fk_path_equal(&sample[i], &sample[j]);
            /* Sorted: if the order were not transitive, some pair would be the wrong way round. */
            CHECK(i >= j || order <= 0);
            CHECK((order == 0) == equal);
            CHECK((order < 0) == (fk_path_compare(&sample[j], &sample[i]) > 0));
            bool same_hash = fk_path_hash(&sample[i]) == fk_path_hash(&sample[j]);
            CHECK(same_hash == equal);
        }
    }
}

TEST(path_order_is_total_and_agrees_with_equality_and_hash)
{
    static char text[SAMPLE][TEXT_MAX];
    static fk_path sample[SAMPLE];
    test_random random = { 3 };
    for (int pekko = 0; pekko < 2; pekko++) {
        for (size_t i = 0; i < SAMPLE; i++) {
            write_random(&random, pekko, text[i]);
            sample[i] = parsed(pekko ? &PEKKO : NULL, text[i]);
        }
        qsort(sample, SAMPLE, sizeof(sample[0]), by_order);
        check_agreement(sample, SAMPLE);
    }
}

TEST(path_text_is_canonical_after_one_round)
{
    test_random random = { 4 };
    for (uint64_t i = 0; i < test_scaled(20000); i++) {
        char text[TEXT_MAX], first[TEXT_MAX], second[TEXT_MAX];
        bool pekko = i % 2 == 0;
        write_random(&random, pekko, text);
        fk_path a = parsed(pekko ? &PEKKO : NULL, text);
        fk_path_format(&a, FK_FORM_FULL, first, sizeof(first));
        fk_path b = parsed(pekko ? &PEKKO : NULL, first);
        fk_path_format(&b, FK_FORM_FULL, second, sizeof(second));
        CHECK_STR(second, first);
        CHECK(fk_path_equal(&a, &b));
        CHECK_U64(a.uid, b.uid);
        CHECK(strlen(first) <= strlen(text) + 1); /* a root gains its '/' */
    }
}

/* The lower bits are what tables use. */
TEST(path_hash_spreads)
{
    enum { BUCKETS = 1024, PATHS = 16384 };
    static uint32_t low[BUCKETS], high[BUCKETS];
    for (int i = 0; i < PATHS; i++) {
        char text[64];
        sprintf(text, "fraktor://s@h:1/user/worker-%d", i);
        fk_path path = parsed(NULL, text);
        uint64_t hash = fk_path_hash(&path);
        low[hash % BUCKETS]++;
        high[hash >> 54]++;
    }
    for (int i = 0; i < BUCKETS; i++) { /* 16 on average */
        CHECK(low[i] > 0 && low[i] < 48);
        CHECK(high[i] > 0 && high[i] < 48);
    }
}

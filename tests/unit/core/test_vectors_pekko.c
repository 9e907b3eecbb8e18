/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What Apache Pekko does, row by row, under its rules. Rows of the class quirk may be refused on
 * purpose: then docs/pekko-differences.md lists them, and must not list any other.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/autoname.h"
#include "support/differences.h"
#include "support/test.h"
#include "support/tsv.h"

#define VECTORS FK_SOURCE_DIR "/tests/vectors/"

enum { ITEMS_MAX = 32, TEXT_MAX = 1100 };

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };

static bool same(const char *what, fk_str actual, fk_str expected)
{
    if (tsv_equal(actual, expected)) return true;
    return differs("%s is \"%.*s\", expected \"%.*s\"", what, (int)actual.len, actual.ptr,
                   (int)expected.len, expected.ptr);
}

static bool same_column(tsv *row, const char *column, fk_str actual)
{
    return same(column, actual, tsv_text(row, column));
}

static bool same_number(tsv *row, const char *column, long long actual, bool absent)
{
    char text[32] = "";
    if (!absent) snprintf(text, sizeof(text), "%lld", actual);
    return same_column(row, column, fk_str_of(text));
}

static bool same_form(tsv *row, const char *column, const fk_path *path, fk_path_form form)
{
    char text[TEXT_MAX];
    size_t len = fk_path_format(path, form, text, sizeof(text));
    return same_column(row, column, (fk_str){ text, len });
}

static bool same_sign(tsv *row, const char *column, long long order)
{
    return same_number(row, column, order < 0 ? -1 : order > 0, false);
}

/* Pekko gives the root one empty element. */
static bool same_elements(tsv *row, const fk_path *path)
{
    char text[TEXT_MAX] = "";
    size_t len = 0, cursor = 0;
    fk_str segment;
    while (fk_path_next(path, &cursor, &segment)) {
        len += (size_t)sprintf(text + len, "%s%.*s", len > 0 ? "|" : "", (int)segment.len,
                               segment.ptr);
    }
    return same("elements", fk_str_of(path->depth > 0 ? text : "\\e"), tsv_raw(row, "elements"));
}

/* ---- one function for each file: does a row hold? ------------------------------------------ */

static bool parse_holds(tsv *row)
{
    fk_path path, alt;
    fk_err err = fk_path_parse(&PEKKO, tsv_text(row, "uri"), &path, NULL);
    if (tsv_is(row, "result", "error:uid-format")) {
        return err == FK_E_UID || differs("%s", fk_err_name(err));
    }
    if (tsv_is(row, "result", "error:malformed")) return err != FK_OK || differs("it parses");
    if (err != FK_OK) return differs("%s", fk_err_name(err));
    CHECK_OK(fk_path_parse(&PEKKO, FK_STR("pekko://alt@10.0.0.9:7355"), &alt, NULL));
    fk_path with = fk_path_with_address(&path, &alt);
    return same_column(row, "scheme", fk_path_scheme(&path)) &&
           same_column(row, "system", path.system) && same_column(row, "host", path.host) &&
           same_number(row, "port", path.port, path.host.len == 0) && same_elements(row, &path) &&
           same_number(row, "uid", (long long)path.uid, false) &&
           same_form(row, "toString", &path, FK_FORM_NO_UID) &&
           same_form(row, "toSerializationFormat", &path, FK_FORM_FULL) &&
           same_form(row, "toStringWithoutAddress", &path, FK_FORM_LOCAL) &&
           same_form(row, "toStringWithAddress", &with, FK_FORM_NO_UID) &&
           same_form(row, "toSerializationFormatWithAddress", &with, FK_FORM_FULL);
}

static bool address_holds(tsv *row)
{
    char text[TEXT_MAX];
    fk_path path;
    fk_err err = fk_path_parse(&PEKKO, tsv_text(row, "uri"), &path, NULL);
    if (tsv_is(row, "result", "error")) return err != FK_OK || differs("it parses");
    if (err != FK_OK) return differs("%s", fk_err_name(err));
    fk_path_format(&path, FK_FORM_ADDRESS, text, sizeof(text));
    return same_column(row, "protocol", fk_path_scheme(&path)) &&
           same_column(row, "system", path.system) && same_column(row, "host", path.host) &&
           same_number(row, "port", path.port, path.host.len == 0) &&
           same_column(row, "toString", fk_str_of(text)) &&
           same_column(row, "hostPort", fk_str_of(strstr(text, "://") + 3)) &&
           same_column(row, "scope", fk_str_of(path.host.len == 0 ? "local" : "global"));
}

static bool segment_holds(tsv *row)
{
    fk_path_fault fault = { .at = 0 };
    fk_err err = fk_path_check_name(&PEKKO, tsv_text(row, "segment"), &fault);
    long long bad = err == FK_OK ? -1 : err == FK_E_EMPTY ? -2 : (long long)fault.at;
    return same_column(row, "result", fk_str_of(err == FK_OK ? "valid" : "invalid")) &&
           same_number(row, "first_bad_index", bad, false);
}

static void write_anchor(const fk_expression *e, char *text)
{
    char address[TEXT_MAX / 2];
    if (e->anchor != FK_ANCHOR_ADDRESS) {
        sprintf(text, "%s", e->anchor == FK_ANCHOR_ROOT ? "root" : "self");
        return;
    }
    size_t len = fk_path_format(&e->address, FK_FORM_ADDRESS, address, sizeof(address));
    CHECK(len < sizeof(address));
    sprintf(text, "rootAt(%s)", address);
}

/* "name:a|parent|pattern:*"; Pekko leaves the uid with the last name. */
static void write_elements(const fk_expression *e, char *text)
{
    static const char *const KINDS[] = { "name:", "parent", "pattern:" };
    size_t cursor = 0, len = 0, count = 0;
    fk_element element;
    while (fk_expression_next(e, &cursor, &element)) {
        bool parent = element.kind == FK_ELEMENT_PARENT;
        len += (size_t)sprintf(text + len, "%s%s%.*s", count++ > 0 ? "|" : "", KINDS[element.kind],
                               parent ? 0 : (int)element.text.len, element.text.ptr);
    }
    if (e->uid != 0) sprintf(text + len, "#%lld", (long long)e->uid);
    if (count == 0) sprintf(text, "[]");
    CHECK_U64(count, e->count);
}

static bool relative_holds(tsv *row)
{
    char anchor[TEXT_MAX], elements[TEXT_MAX];
    bool anchored = tsv_is(row, "op", "anchored");
    fk_str input = tsv_text(row, "input");
    fk_expression e;
    fk_err err = anchored ? fk_expression_split(&PEKKO, input, &e, NULL)
                          : fk_expression_parse(&PEKKO, input, &e, NULL);
    if (tsv_is(row, "anchor", "deadLetters")) return err != FK_OK || differs("it parses");
    if (err != FK_OK) return differs("%s", fk_err_name(err));
    write_anchor(&e, anchor);
    write_elements(&e, elements);
    return same_column(row, "anchor", fk_str_of(anchor)) &&
           same("elements", fk_str_of(elements), tsv_raw(row, "selection_elements"));
}

static bool equality_holds(tsv *row)
{
    fk_path a, b;
    fk_err err = fk_path_parse(&PEKKO, tsv_text(row, "path_a"), &a, NULL);
    if (err == FK_OK) err = fk_path_parse(&PEKKO, tsv_text(row, "path_b"), &b, NULL);
    if (err != FK_OK) return differs("%s", fk_err_name(err));
    bool equal = fk_path_equal(&a, &b);
    int order = fk_path_compare(&a, &b);
    long long by_uid = (long long)a.uid - (long long)b.uid;
    if (equal && fk_path_hash(&a) != fk_path_hash(&b)) return differs("the hashes differ");
    return same_column(row, "path_equal", fk_str_of(equal ? "yes" : "no")) &&
           same_sign(row, "path_compare_sign", order) &&
           same_column(row, "ref_equal", fk_str_of(equal && by_uid == 0 ? "yes" : "no")) &&
           same_sign(row, "ref_compare_sign", order != 0 ? order : by_uid);
}

/* Two buffers, for a path cannot grow in the text it is read from. */
static fk_err descend(fk_path *path, const fk_str *names, size_t count)
{
    static char buf[2][TEXT_MAX];
    for (size_t i = 0; i < count; i++) {
        fk_path child;
        if (names[i].len == 0) continue;
        fk_err err = fk_path_child(&PEKKO, path, names[i], FK_BUF(buf[i % 2]), &child, NULL);
        if (err != FK_OK) return err;
        *path = child;
    }
    return FK_OK;
}

static fk_err do_child_op(tsv *row, fk_path *path)
{
    static char buf[TEXT_MAX];
    fk_str items[ITEMS_MAX];
    fk_path from = *path;
    if (tsv_is(row, "op", "child")) {
        return fk_path_child(&PEKKO, &from, tsv_text(row, "arg"), FK_BUF(buf), path, NULL);
    }
    if (tsv_is(row, "op", "descendant")) {
        return descend(path, items, tsv_list(row, "arg", items, ITEMS_MAX));
    }
    if (tsv_is(row, "op", "withUid")) {
        long long uid = strtoll(tsv_raw(row, "arg").ptr, NULL, 10);
        return fk_path_with_uid(&from, (uint64_t)uid, path);
    }
    bool parent = tsv_is(row, "op", "parent");
    CHECK(parent || tsv_is(row, "op", "root"));
    *path = parent ? fk_path_parent(&from) : fk_path_root(&from);
    return FK_OK;
}

static bool child_holds(tsv *row)
{
    static const struct {
        const char *result;
        fk_err err;
    } RESULTS[] = { { "ok", FK_OK },
                    { "error:separator", FK_E_NAME },
                    { "error:uid-format", FK_E_UID },
                    { "error:root-uid", FK_E_UID } };
    fk_path path;
    CHECK_OK(fk_path_parse(&PEKKO, tsv_text(row, "path"), &path, NULL));
    fk_err err = do_child_op(row, &path);
    for (size_t i = 0; i < sizeof(RESULTS) / sizeof(RESULTS[0]); i++) {
        if (!tsv_is(row, "result", RESULTS[i].result)) continue;
        if (err != RESULTS[i].err) return differs("%s", fk_err_name(err));
        if (err != FK_OK) return true;
        fk_str name = path.depth > 0 ? fk_path_name(&path) : FK_STR("/"); /* as Pekko says */
        return same_form(row, "toString", &path, FK_FORM_NO_UID) &&
               same_form(row, "toSerializationFormat", &path, FK_FORM_FULL) &&
               same_column(row, "name", name) &&
               same_number(row, "uid", (long long)path.uid, false) && same_elements(row, &path);
    }
    return differs("unknown result");
}

static bool glob_holds(tsv *row)
{
    fk_str pattern = tsv_text(row, "pattern"), name = tsv_text(row, "name");
    bool pekko = fk_path_match(FK_RULES_PEKKO, pattern, name);
    bool fraktor = fk_path_match(FK_RULES_FRAKTOR, pattern, name);
    return same_column(row, "matches", fk_str_of(pekko ? "yes" : "no")) &&
           same_column(row, "matches", fk_str_of(fraktor ? "yes" : "no"));
}

static size_t write_sequence(fk_str kinds, char *text)
{
    size_t len = 0;
    for (size_t n = 0; n < kinds.len; n++) {
        if (n > 0) text[len++] = '|';
        len += kinds.ptr[n] == 'f'
                   ? fk__autoname_function(n, FK_STR(""), text + len, TEXT_MAX - len)
                   : fk_path_autoname(n, text + len);
    }
    return len;
}

static bool autoname_holds(tsv *row)
{
    char text[TEXT_MAX];
    size_t len = 0;
    fk_str arg = tsv_text(row, "arg");
    fk_str digits = tsv_text(row, "n");
    uint64_t n = digits.len != 0 ? (uint64_t)strtoll(tsv_raw(row, "n").ptr, NULL, 10) : 0;
    if (tsv_is(row, "kind", "child")) len = fk_path_autoname(n, text);
    if (tsv_is(row, "kind", "functionRef")) {
        len = fk__autoname_function(n, arg, text, sizeof(text));
    }
    if (tsv_is(row, "kind", "temp")) len = fk__autoname_temp(n, arg, text, sizeof(text));
    if (tsv_is(row, "kind", "askSelection")) {
        len = fk__autoname_temp_selection(n, arg, text, sizeof(text));
    }
    if (tsv_is(row, "kind", "sequence")) len = write_sequence(arg, text);
    return same("name", (fk_str){ text, len }, tsv_raw(row, "name"));
}

static bool system_holds(tsv *row)
{
    fk_str name = tsv_text(row, "name");
    bool pekko = fk_path_check_system(&PEKKO, name, NULL) == FK_OK;
    bool fraktor = fk_path_check_system(NULL, name, NULL) == FK_OK;
    return same_column(row, "valid", fk_str_of(pekko ? "yes" : "no")) &&
           same_column(row, "valid", fk_str_of(fraktor ? "yes" : "no"));
}

/* The question is about characters; a host without any has no bad ones. */
static bool host_holds(tsv *row)
{
    fk_err err = fk_path_check_host(&PEKKO, tsv_text(row, "host"), NULL);
    return same_column(row, "has_invalid_host_characters",
                       fk_str_of(err == FK_E_AUTHORITY ? "yes" : "no"));
}

/* ---- the rows ------------------------------------------------------------------------------- */

static void run_rows(const char *file, size_t rows, const char *prefix, row_fn holds)
{
    differences_run(FK_SOURCE_DIR "/docs/pekko-differences.md", file, rows, prefix, holds);
}

TEST(vectors_pekko_path_parse)
{
    run_rows(VECTORS "path_parse.tsv", 129, "pp", parse_holds);
}

TEST(vectors_pekko_address_parse)
{
    run_rows(VECTORS "address_parse.tsv", 81, "ad", address_holds);
}

TEST(vectors_pekko_path_segment)
{
    run_rows(VECTORS "path_segment.tsv", 171, "ps", segment_holds);
}

TEST(vectors_pekko_relative_path)
{
    run_rows(VECTORS "relative_path.tsv", 87, "rp", relative_holds);
}

TEST(vectors_pekko_path_equality)
{
    run_rows(VECTORS "path_equality.tsv", 45, "pe", equality_holds);
}

TEST(vectors_pekko_path_child)
{
    run_rows(VECTORS "path_child.tsv", 44, "pc", child_holds);
}

TEST(vectors_pekko_glob_match)
{
    run_rows(VECTORS "glob_match.tsv", 26, "gm", glob_holds);
}

TEST(vectors_pekko_auto_names)
{
    run_rows(VECTORS "auto_names.tsv", 58, "an", autoname_holds);
}

TEST(vectors_pekko_system_name)
{
    run_rows(VECTORS "system_name.tsv", 29, "sn", system_holds);
}

TEST(vectors_pekko_host_chars)
{
    run_rows(VECTORS "host_chars.tsv", 15, "hc", host_holds);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every row of tests/vectors/fraktor_rules.tsv: our own rules, all binding. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "support/tsv.h"

enum { ROWS = 149 };

static char why[512];

/* A row that does not hold, and why. */
__attribute__((format(printf, 1, 2))) static bool differs(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    return false;
}

/* The value of a key in the column "expect"; false: not stated. */
static bool expected(tsv *row, const char *key, fk_str *value)
{
    fk_str raw = tsv_raw(row, "expect");
    const char *end = raw.ptr + raw.len;
    size_t len = strlen(key);
    for (const char *at = raw.ptr; at < end;) {
        const char *next = strstr(at, " ; ");
        if (next == NULL || next > end) next = end;
        if (strncmp(at, key, len) == 0 && at[len] == '=') {
            *value = tsv_unescape(row, (fk_str){ at + len + 1, (size_t)(next - at) - len - 1 });
            return true;
        }
        at = next + 3;
    }
    return false;
}

static bool holds(tsv *row, const char *key, fk_str actual)
{
    fk_str value;
    if (!expected(row, key, &value) || tsv_equal(value, actual)) return true;
    return differs("%s is \"%.*s\", expected \"%.*s\"", key, (int)actual.len, actual.ptr,
                   (int)value.len, value.ptr);
}

static bool holds_number(tsv *row, const char *key, uint64_t actual, bool absent)
{
    char text[32] = "";
    if (!absent) snprintf(text, sizeof(text), "%llu", (unsigned long long)actual);
    return holds(row, key, fk_str_of(text));
}

static bool holds_form(tsv *row, const char *key, const fk_path *path, fk_path_form form)
{
    char text[1100];
    size_t len = fk_path_format(path, form, text, sizeof(text));
    return holds(row, key, (fk_str){ text, len });
}

static bool holds_segments(tsv *row, const fk_path *path)
{
    char text[1100] = "";
    size_t len = 0, cursor = 0;
    fk_str segment;
    while (fk_path_next(path, &cursor, &segment)) {
        len += (size_t)sprintf(text + len, "%s%.*s", len > 0 ? "|" : "", (int)segment.len,
                               segment.ptr);
    }
    return holds(row, "segments", fk_str_of(path->depth > 0 ? text : "[]"));
}

static bool holds_fault(tsv *row, fk_err err, const fk_path_fault *fault)
{
    const char *code = err == FK_OK ? "ok" : fk_path_code(err);
    if (!tsv_is(row, "result", code)) return differs("result is %s", code);
    if (err == FK_OK) return true;
    if (fault->err != err || fault->message == NULL) return differs("the fault says otherwise");
    return holds_number(row, "at", fault->at, false) &&
           holds_number(row, "segment", (uint64_t)fault->segment, fault->segment < 0);
}

static bool parse_holds(tsv *row)
{
    fk_path path;
    fk_path_fault fault;
    fk_str text = tsv_text(row, "arg1");
    fk_err err = fk_path_parse(NULL, text, &path, &fault);
    if (!holds_fault(row, err, &fault)) return false;
    if (err != FK_OK) return fault.at <= text.len || differs("the fault is outside of the text");
    return holds(row, "scheme", fk_path_scheme(&path)) && holds(row, "system", path.system) &&
           holds(row, "host", path.host) &&
           holds_number(row, "port", path.port, path.host.len == 0) && holds_segments(row, &path) &&
           holds_number(row, "uid", path.uid, path.uid == 0) &&
           holds_form(row, "canonical", &path, FK_FORM_FULL) &&
           holds_form(row, "canonical_no_uid", &path, FK_FORM_NO_UID);
}

static bool name_holds(tsv *row)
{
    fk_path_fault fault;
    return holds_fault(row, fk_path_check_name(NULL, tsv_text(row, "arg1"), &fault), &fault);
}

static bool resolve_holds(tsv *row)
{
    char buf[1024];
    fk_path base, path;
    fk_path_fault fault;
    CHECK_OK(fk_path_parse(NULL, tsv_text(row, "arg1"), &base, NULL));
    fk_err err = fk_path_resolve(NULL, &base, tsv_text(row, "arg2"), FK_BUF(buf), &path, &fault);
    if (!holds_fault(row, err, &fault)) return false;
    return err != FK_OK || holds_form(row, "canonical", &path, FK_FORM_FULL);
}

static bool equal_holds(tsv *row)
{
    fk_path a, b;
    CHECK_OK(fk_path_parse(NULL, tsv_text(row, "arg1"), &a, NULL));
    CHECK_OK(fk_path_parse(NULL, tsv_text(row, "arg2"), &b, NULL));
    bool equal = fk_path_equal(&a, &b);
    if ((fk_path_compare(&a, &b) == 0) != equal) return differs("the order says otherwise");
    if (equal && fk_path_hash(&a) != fk_path_hash(&b)) return differs("the hashes differ");
    return holds(row, "equal", fk_str_of(equal ? "yes" : "no"));
}

static bool row_holds(tsv *row)
{
    if (tsv_is(row, "op", "parse")) return parse_holds(row);
    if (tsv_is(row, "op", "name")) return name_holds(row);
    if (tsv_is(row, "op", "resolve")) return resolve_holds(row);
    if (tsv_is(row, "op", "equal")) return equal_holds(row);
    return differs("unknown op");
}

TEST(vectors_fraktor_rules_all_hold)
{
    static tsv row;
    size_t wrong = 0;
    tsv_open(&row, FK_SOURCE_DIR "/tests/vectors/fraktor_rules.tsv");
    while (tsv_next(&row)) {
        if (row_holds(&row)) continue;
        fk_str id = tsv_raw(&row, "id");
        fprintf(stderr, "%.*s: %s\n", (int)id.len, id.ptr, why);
        wrong++;
    }
    CHECK_U64(wrong, 0);
    CHECK(row.rows >= ROWS);
}

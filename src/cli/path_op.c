/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What fraktor path can be asked. */

#include "path.h"

#include "cli.h"

#include <string.h>

static path_field *add(path_answer *out, const char *name, path_field_kind kind)
{
    path_field *field = &out->field[out->field_count++];
    *field = (path_field){ .name = name, .kind = kind };
    return field;
}

/* An empty text is an absent one. */
static void add_text(path_answer *out, const char *name, fk_str text)
{
    add(out, name, text.len > 0 ? PATH_FIELD_TEXT : PATH_FIELD_ABSENT)->text = text;
}

static void add_yes_no(path_answer *out, const char *name, bool yes)
{
    add(out, name, PATH_FIELD_YES_NO)->number = yes;
}

static fk_str canonical(const fk_path *path, fk_path_form form, char buf[PATH_TEXT_MAX])
{
    size_t len = fk_path_format(path, form, buf, PATH_TEXT_MAX);
    return (fk_str){ buf, len < PATH_TEXT_MAX ? len : PATH_TEXT_MAX - 1 };
}

static void run_parse(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    fk_path *path = &out->path;
    if (fk_path_parse(options, arg[0], path, &out->fault) != FK_OK) return;

    fk_str full = canonical(path, FK_FORM_FULL, out->text);
    fk_str no_uid = canonical(path, FK_FORM_NO_UID, out->text_no_uid);
    fk_str uid = { NULL, 0 }; /* its text is what the full form has more: "#" and the number */
    if (full.len > no_uid.len) {
        uid = (fk_str){ full.ptr + no_uid.len + 1, full.len - no_uid.len - 1 };
    }
    add_text(out, "scheme", fk_path_scheme(path));
    add_text(out, "system", path->system);
    add_text(out, "host", path->host);
    add(out, "port", path->port != 0 ? PATH_FIELD_NUMBER : PATH_FIELD_ABSENT)->number = path->port;
    add(out, "segments", PATH_FIELD_SEGMENTS);
    add_text(out, "uid", uid);
    add_text(out, "canonical", full);
    add_text(out, "canonical_no_uid", no_uid);
}

static void run_name(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    fk_err err = fk_path_check_name(options, arg[0], &out->fault);
    (void)err; /* it is in the fault, too */
}

static void run_sysname(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    fk_err err = fk_path_check_system(options, arg[0], &out->fault);
    (void)err;
}

static void run_resolve(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    fk_path base;
    if (fk_path_parse(options, arg[0], &base, &out->fault) != FK_OK) return;
    out->fault_arg = 1;
    if (fk_path_resolve(options, &base, arg[1], FK_BUF(out->text_no_uid), &out->path,
                        &out->fault) != FK_OK) {
        return;
    }
    add_text(out, "canonical", canonical(&out->path, FK_FORM_FULL, out->text));
}

static void run_equal(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    fk_path path[2];
    for (size_t i = 0; i < 2; i++) {
        out->fault_arg = i;
        if (fk_path_parse(options, arg[i], &path[i], &out->fault) != FK_OK) return;
    }
    add_yes_no(out, "equal", fk_path_equal(&path[0], &path[1]));
    add_yes_no(out, "same_hash", fk_path_hash(&path[0]) == fk_path_hash(&path[1]));
}

static void run_match(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    add_yes_no(out, "match", fk_path_match(options->rules, arg[0], arg[1]));
}

/* A counter of Pekko's that has run over is negative: its bits are what counts. */
static bool take_counter(fk_str text, uint64_t *out)
{
    char digits[32] = { 0 };
    bool negative = text.len > 0 && text.ptr[0] == '-';
    if (text.len >= sizeof digits || memchr(text.ptr, '\0', text.len) != NULL) return false;
    memcpy(digits, text.ptr + negative, text.len - negative);
    if (!cli_number(digits, 0, negative ? (uint64_t)1 << 63 : UINT64_MAX, out)) return false;
    if (negative) *out = 0 - *out;
    return true;
}

static void run_autoname(const fk_path_options *options, const fk_str *arg, path_answer *out)
{
    uint64_t n = 0;
    (void)options;
    if (!take_counter(arg[0], &n)) {
        out->fault = (fk_path_fault){ FK_E_INVALID, -1, 0, "a whole number below 2^64 is wanted" };
        return;
    }
    add_text(out, "name", (fk_str){ out->text, fk_path_autoname(n, out->text) });
}

static const path_op OPS[] = {
    { "parse", "URI", "take a path apart", "fraktor path parse 'fraktor://sys/user/a#7'", 1,
      run_parse },
    { "name", "NAME", "may a new actor have that name?", "fraktor path name worker-1", 1,
      run_name },
    { "resolve", "BASE EXPR", "what does EXPR mean, seen from BASE?",
      "fraktor path resolve fraktor://sys/user/a/b ../c", 2, run_resolve },
    { "equal", "A B", "do two paths name the same place?",
      "fraktor path equal fraktor://sys/user/A fraktor://sys/user/%41", 2, run_equal },
    { "match", "PATTERN NAME", "does a name match a pattern with * and ?",
      "fraktor path match 'worker-*' worker-1", 2, run_match },
    { "autoname", "N", "the N-th name that the runtime makes", "fraktor path autoname 64", 1,
      run_autoname },
    { "sysname", "NAME", "may a system have that name?", "fraktor path sysname bank", 1,
      run_sysname },
};

enum { OP_COUNT = sizeof OPS / sizeof OPS[0] };

const path_op *path_op_at(size_t index)
{
    return index < OP_COUNT ? &OPS[index] : NULL;
}

const path_op *path_op_find(fk_str name)
{
    for (size_t i = 0; i < OP_COUNT; i++) {
        size_t len = strlen(OPS[i].name);
        if (len == name.len && memcmp(OPS[i].name, name.ptr, len) == 0) return &OPS[i];
    }
    return NULL;
}

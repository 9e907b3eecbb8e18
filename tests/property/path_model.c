/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "property/path_model.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "property/path_piece.h"

static model_path fault(fk_err err, int segment, size_t at)
{
    return (model_path){ .err = err, .segment = segment, .at = at };
}

/* ---- canonical text ------------------------------------------------------------------------------------ */

static size_t put(char *buf, size_t size, size_t len, fk_str text)
{
    if (len + text.len > size) abort();
    if (text.len > 0) memcpy(buf + len, text.ptr, text.len);
    return len + text.len;
}

size_t model_format(const model_path *path, bool with_uid, char *buf, size_t size)
{
    char digits[32];
    size_t len = put(buf, size, 0, path->is_tcp ? FK_STR("fraktor.tcp://") : FK_STR("fraktor://"));
    len = put(buf, size, len, path->system);
    if (path->port != 0) {
        len = put(buf, size, len, FK_STR("@"));
        len = put(buf, size, len, path->host);
        snprintf(digits, sizeof(digits), ":%u", (unsigned)path->port);
        len = put(buf, size, len, fk_str_of(digits));
    }
    if (path->depth == 0) len = put(buf, size, len, FK_STR("/"));
    for (size_t i = 0; i < path->depth; i++) {
        len = put(buf, size, len, FK_STR("/"));
        len = put(buf, size, len, path->name[i]);
    }
    if (with_uid && path->uid != 0) {
        snprintf(digits, sizeof(digits), "#%llu", (unsigned long long)path->uid);
        len = put(buf, size, len, fk_str_of(digits));
    }
    return len;
}

/* ---- whole texts ---------------------------------------------------------------------------------- */

/* "#7", or nothing. False, and the first byte that no number could have there. */
static bool take_uid(fk_str text, uint64_t *out, size_t *at)
{
    *at = text.len;
    *out = 0;
    if (text.len == 0) return true;
    for (size_t to = 2; to <= text.len; to++) {
        *out = model_number(text_cut(text, 1, to), UINT64_MAX);
        *at = to - 1;
        if (*out == 0) return false;
    }
    return *out != 0;
}

/* ".." */
static fk_err step_up(model_path *path)
{
    if (path->depth <= 1) return FK_E_ESCAPE;
    path->depth--;
    return FK_OK;
}

static fk_err step_down(model_path *path, fk_str name, size_t *at)
{
    fk_err err = model_check_segment(name, at);
    if (err == FK_OK) path->name[path->depth++] = name;
    return err;
}

/* The bytes of the canonical text without uid; of the root without its slash. */
static size_t length_of(const model_path *path)
{
    size_t len = strlen(path->is_tcp ? "fraktor.tcp://" : "fraktor://") + path->system.len;
    if (path->port != 0) {
        len += 1 + path->host.len + (size_t)snprintf(NULL, 0, ":%u", (unsigned)path->port);
    }
    for (size_t i = 0; i < path->depth; i++) len += 1 + path->name[i].len;
    return len;
}

/* Appends the segments of "/a/b" to *path, which becomes a fault when there is one. With navigate,
 * "." and ".." do. */
static void take_segments(fk_str text, size_t base, bool navigate, model_path *path)
{
    int index = -1;
    for (size_t from = 0, to; from < text.len; from = to + 1) {
        to = from + text_find_any(text_cut(text, from, text.len), "/");
        fk_str name = text_cut(text, from, to);
        size_t at = 0;
        fk_err err = FK_OK;
        if (name.len == 0) continue;
        index++;
        if (index == MODEL_DEPTH_MAX) {
            err = FK_E_LIMIT;
        } else if (navigate && text_is(name, "..")) {
            err = step_up(path);
        } else if (!navigate || !text_is(name, ".")) {
            err = step_down(path, name, &at);
        }
        if (err != FK_OK) {
            *path = fault(err, index, base + from + at);
            return;
        }
        if (!navigate) continue;
        if (path->depth > path->depth_max) path->depth_max = path->depth;
        size_t len = length_of(path);
        if (len > path->len_max) path->len_max = len;
    }
}

typedef enum last_step { STEP_NONE = 0, STEP_NAME, STEP_UP } last_step;

/* Where the last step goes, "." being none. */
static last_step last_step_of(fk_str text)
{
    last_step last = STEP_NONE;
    for (size_t from = 0, to; from < text.len; from = to + 1) {
        to = from + text_find_any(text_cut(text, from, text.len), "/");
        fk_str name = text_cut(text, from, to);
        if (name.len > 0 && !text_is(name, ".")) last = text_is(name, "..") ? STEP_UP : STEP_NAME;
    }
    return last;
}

/* What comes behind the address: segments and uid. */
static void take_rest(fk_str text, size_t from, bool navigate, model_path *path)
{
    size_t hash = from + text_find_any(text_cut(text, from, text.len), "#");
    size_t at = 0;
    take_segments(text_cut(text, from, hash), from, navigate, path);
    if (path->err != FK_OK || hash == text.len) return;
    if (last_step_of(text_cut(text, from, hash)) != STEP_NAME) { /* a uid belongs to a name */
        *path = fault(FK_E_UID, -1, hash);
    } else if (!take_uid(text_cut(text, hash, text.len), &path->uid, &at)) {
        *path = fault(FK_E_UID, -1, hash + at);
    }
}

static model_path scheme_fault(fk_str text)
{
    size_t i = 0;
    if (isascii((unsigned char)text.ptr[0]) && isalpha((unsigned char)text.ptr[0])) {
        while (i < text.len && (text_is_alnum(text.ptr[i]) ||
                                (text.ptr[i] != '\0' && strchr("+-.", text.ptr[i]) != NULL))) {
            i++;
        }
    }
    bool is_other = i > 0 && i < text.len && text.ptr[i] == ':';
    model_path path = fault(FK_E_SCHEME, -1, is_other ? 0 : i);
    path.or_too_long = i >= MODEL_TEXT_MAX;
    return path;
}

static model_path parse_any_length(fk_str text)
{
    model_path path = { .err = FK_OK, .segment = -1 };
    char lower[16];
    size_t colon = text_find_any(text, ":");

    if (text.len == 0) return fault(FK_E_EMPTY, -1, 0);
    if (colon == text.len || colon > sizeof(lower)) return scheme_fault(text);
    for (size_t i = 0; i < colon; i++) lower[i] = (char)tolower((unsigned char)text.ptr[i]);
    fk_str scheme = { lower, colon };
    path.is_tcp = text_is(scheme, "fraktor.tcp");
    if (!path.is_tcp && !text_is(scheme, "fraktor")) return scheme_fault(text);
    if (text_find(text, "://") != colon) { /* on what should have been the first or second slash */
        size_t slash = text_find(text, ":/");
        return fault(FK_E_NO_SYSTEM, -1, slash == colon ? colon + 2 : colon + 1);
    }

    size_t start = colon + 3;
    size_t slash = start + text_find_any(text_cut(text, start, text.len), "/?#");
    size_t sign = start + text_find_any(text_cut(text, start, slash), "@");
    path.system = text_cut(text, start, sign);
    if (path.system.len == 0) return fault(FK_E_NO_SYSTEM, -1, start);
    for (size_t i = start; i < sign; i++) {
        if (!model_is_system(text_cut(text, start, i + 1))) return fault(FK_E_SYSTEM, -1, i);
    }
    if (sign < slash && !model_take_authority(text_cut(text, sign + 1, slash), &path)) {
        return fault(FK_E_AUTHORITY, -1, MODEL_AT_ANY);
    }
    take_rest(text, slash, false, &path);
    return path;
}

/* Too long a text is at fault behind what is allowed; a fault before that comes first. */
static model_path check_length(fk_str text, model_path path)
{
    if (text.len <= MODEL_TEXT_MAX) return path;
    bool early = path.err != FK_OK && (path.at < MODEL_TEXT_MAX || path.err == FK_E_AUTHORITY);
    return early ? path : fault(FK_E_LIMIT, -1, MODEL_TEXT_MAX);
}

model_path model_parse(fk_str text)
{
    return check_length(text, parse_any_length(text));
}

/* What would end a segment is not part of the name it judges first: ".#" is "." and more. */
model_path model_check_name(fk_str name)
{
    size_t at = 0;
    size_t end = text_find_any(name, "/#");
    if (name.len == 0) return fault(FK_E_EMPTY, -1, 0);
    if (name.ptr[0] == '$') return fault(FK_E_RESERVED, -1, 0);
    if (name.len >= 3 && memcmp(name.ptr, "%24", 3) == 0) return fault(FK_E_RESERVED, -1, 0);
    fk_err err = end > 0 ? model_check_segment(text_cut(name, 0, end), &at) : FK_OK;
    if (err == FK_OK && end < name.len) return fault(FK_E_NAME, -1, end);
    return fault(err, -1, at);
}

static bool is_complete(fk_str expression)
{
    size_t end = text_find_any(expression, "/#");
    return end > 0 && expression.ptr[end - 1] == ':' &&
           text_find(text_cut(expression, end - 1, expression.len), "://") == 0;
}

model_path model_resolve(const model_path *base, fk_str expression)
{
    model_path path = *base;
    if (is_complete(expression)) return model_parse(expression);
    bool is_rooted = expression.len > 0 && expression.ptr[0] == '/';
    if (is_rooted) path.depth = 0;
    if (is_rooted || last_step_of(expression) != STEP_NONE) path.uid = 0;
    path.len_max = length_of(&path);
    take_rest(expression, 0, true, &path);
    path = check_length(expression, path);
    if (path.err != FK_OK) return path;
    /* Nothing on the way may be too long or too deep, even if ".." follows. */
    if (path.len_max > MODEL_TEXT_MAX || path.depth_max > MODEL_DEPTH_MAX) {
        return fault(FK_E_LIMIT, -1, MODEL_AT_ANY);
    }
    return path;
}

bool model_agrees(const model_path *model, fk_err err, const fk_path_fault *fault)
{
    if (model->or_too_long && err == FK_E_LIMIT) return fault->at == MODEL_TEXT_MAX;
    if (err != model->err) return false;
    if (err == FK_OK || model->at == MODEL_AT_ANY) return true;
    return fault->at == model->at && fault->segment == model->segment;
}

/* ---- comparisons ---------------------------------------------------------------------------------- */

bool model_equal(const model_path *a, const model_path *b)
{
    if (!text_same(a->system, b->system) || !text_same(a->host, b->host)) return false;
    if (a->port != b->port || a->depth != b->depth) return false;
    for (size_t i = 0; i < a->depth; i++) {
        char plain_a[MODEL_SEGMENT_MAX], plain_b[MODEL_SEGMENT_MAX];
        fk_str decoded_a = { plain_a, model_decode(a->name[i], plain_a) };
        fk_str decoded_b = { plain_b, model_decode(b->name[i], plain_b) };
        if (!text_same(decoded_a, decoded_b)) return false;
    }
    return true;
}

/* ---- patterns -------------------------------------------------------------------------------------- */

enum { WILD_RUN = -1, WILD_ONE = -2 };

typedef struct characters {
    size_t len;
    int64_t code[MODEL_MATCH_MAX];
} characters;

static size_t continuations(int lead)
{
    if (lead < 0xc2) return 0;
    return lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
}

/* Escapes decoded if so asked, bytes joined to characters, and in patterns the wildcards told from
 * what was escaped. */
static characters characters_of(fk_str text, bool decodes, bool is_pattern)
{
    characters all = { 0 };
    size_t wanted = 0;
    for (size_t i = 0, used; i < text.len; i += used) {
        char c = text.ptr[i];
        int byte = (unsigned char)c;
        used = 1;
        if (decodes && c == '%' && model_is_escape(text_cut(text, i, text.len))) {
            model_decode(text_cut(text, i, i + 3), &c);
            byte = (unsigned char)c;
            used = 3;
        } else if (is_pattern && (c == '*' || c == '?')) {
            byte = c == '*' ? WILD_RUN : WILD_ONE;
        }
        if (wanted > 0 && byte >= 0x80 && byte < 0xc0) {
            all.code[all.len - 1] = all.code[all.len - 1] * 256 + byte;
            wanted--;
            continue;
        }
        wanted = continuations(byte);
        all.code[all.len++] = byte;
    }
    return all;
}

static bool match(const int64_t *pattern, size_t pattern_len, const int64_t *name, size_t name_len)
{
    if (pattern_len == 0) return name_len == 0;
    if (pattern[0] == WILD_RUN) {
        for (size_t i = 0; i <= name_len; i++) {
            if (match(pattern + 1, pattern_len - 1, name + i, name_len - i)) return true;
        }
        return false;
    }
    if (name_len == 0 || (pattern[0] != WILD_ONE && pattern[0] != name[0])) return false;
    return match(pattern + 1, pattern_len - 1, name + 1, name_len - 1);
}

bool model_match(fk_rules rules, fk_str pattern, fk_str name)
{
    bool decodes = rules == FK_RULES_FRAKTOR;
    characters wanted = characters_of(pattern, decodes, true);
    characters given = characters_of(name, decodes, false);
    return match(wanted.code, wanted.len, given.code, given.len);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selections: "../worker-?", "/user/a/b#7", "fraktor://sys/user/x". */

#include "core/path.h"

/* 1 for a plain "." at the cursor, 2 for "..", 0 for anything else. */
static size_t plain_dots(const fk_reader *r)
{
    const char *at = r->at;
    while (at != r->end && *at == '.' && at - r->at < 2) at++;
    bool whole = at == r->end || *at == '/' || *at == '#';
    return whole ? (size_t)(at - r->at) : 0;
}

static fk_err step_up(fk_reader *r, uint32_t *level)
{
    if (*level != FK_LEVEL_UNKNOWN) {
        if (!r->rules->root_is_own_top && *level <= 1) {
            return fk__reader_fail_segment(r, FK_E_ESCAPE, r->at,
                                           "\"..\" climbs above the first segment");
        }
        if (*level > 0) (*level)--;
    }
    r->at += 2;
    return FK_OK;
}

/* Whatever another system calls an element: it may match nothing, but it is not ours to refuse.
 * Control characters are: elements end up in logs. */
static fk_err take_any(fk_reader *r)
{
    const char *start = r->at;
    for (; r->at != r->end && *r->at != '/' && *r->at != '#'; r->at++) {
        unsigned char c = (unsigned char)*r->at;
        if (c >= 0x20 && c != 0x7f) continue;
        return fk__reader_fail_segment(r, FK_E_NAME, r->at, "a control character");
    }
    if ((size_t)(r->at - start) > r->segment_max) {
        return fk__reader_fail_segment(r, FK_E_LIMIT, start + r->segment_max,
                                       "a segment is too long");
    }
    return FK_OK;
}

fk_err fk__take_elements(fk_reader *r, fk_expression *e, uint32_t level, unsigned accepts)
{
    const char *start = r->at;
    bool navigates = e->anchor != FK_ANCHOR_ADDRESS || r->rules->dot_names;
    bool named = false; /* the last element can have a uid */
    while (r->at != r->end && *r->at != '#') {
        if (*r->at == '/') {
            r->at++;
            continue;
        }
        if (r->depth == r->depth_max) {
            return fk__reader_fail_segment(r, FK_E_LIMIT, r->at, "the path is too deep");
        }
        size_t dots = navigates ? plain_dots(r) : 0;
        if (dots == 1 && !r->rules->dot_names) {
            r->at++;
        } else if (dots == 2) {
            FK_TRY(step_up(r, &level));
            e->count++;
            named = false;
        } else {
            FK_TRY(accepts == FK_SEGMENT_ANY ? take_any(r) : fk__take_segment(r, accepts));
            if (level != FK_LEVEL_UNKNOWN) level++;
            e->count++;
            named = true;
        }
        r->depth++;
    }
    e->elements = (fk_str){ start, (size_t)(r->at - start) };
    if (r->at == r->end) return FK_OK;
    if (!named) return fk__reader_fail(r, FK_E_UID, r->at, "a uid belongs to a name");
    return fk__take_uid(r, &e->uid);
}

static bool is_absolute(const fk_reader *r)
{
    const char *at = r->at;
    if (r->rules->colon_is_scheme) {
        while (at != r->end && *at != ':' && *at != '/' && *at != '?' && *at != '#') at++;
        return at != r->end && *at == ':';
    }
    while (at != r->end && *at != '/' && *at != '#') at++;
    return at != r->at && at[-1] == ':' && r->end - at >= 2 && at[0] == '/' && at[1] == '/';
}

fk_err fk__take_expression(fk_reader *r, fk_expression *e, uint32_t level, unsigned accepts)
{
    bool rooted = r->len == 0 ? r->rules->empty_is_root : *r->at == '/';
    if (is_absolute(r)) {
        e->anchor = FK_ANCHOR_ADDRESS;
        e->address.rules = (uint8_t)e->rules;
        FK_TRY(fk__take_address(r, &e->address));
    } else {
        e->anchor = rooted ? FK_ANCHOR_ROOT : FK_ANCHOR_SELF;
    }
    return fk__take_elements(r, e, e->anchor == FK_ANCHOR_SELF ? level : 0, accepts);
}

/* ---- public --------------------------------------------------------------------------------- */

fk_err fk_expression_parse(const fk_path_options *options, fk_str text, fk_expression *out,
                           fk_path_fault *fault)
{
    fk_reader r;
    fk_rules rules = options != NULL ? options->rules : FK_RULES_FRAKTOR;
    fk_expression e = { .rules = rules };
    fk__reader_init(&r, rules, options, text);
    fk_err err = fk__take_expression(&r, &e, FK_LEVEL_UNKNOWN, FK_SEGMENT_NAME | FK_SEGMENT_WILD);
    err = fk__reader_finish(&r, err, fault);
    if (err == FK_OK) *out = e;
    return err;
}

fk_err fk_expression_split(const fk_path_options *options, fk_str text, fk_expression *out,
                           fk_path_fault *fault)
{
    fk_reader r;
    fk_rules rules = options != NULL ? options->rules : FK_RULES_FRAKTOR;
    fk_expression e = { .anchor = FK_ANCHOR_SELF, .rules = rules };
    fk__reader_init(&r, rules, options, text);
    unsigned checked = FK_SEGMENT_NAME | FK_SEGMENT_WILD;
    fk_err err = fk__take_elements(&r, &e, FK_LEVEL_UNKNOWN,
                                   r.rules->split_unchecked ? FK_SEGMENT_ANY : checked);
    err = fk__reader_finish(&r, err, fault);
    if (err == FK_OK) *out = e;
    return err;
}

static fk_element_kind element_kind(fk_str text)
{
    if (text.len == 2 && text.ptr[0] == '.' && text.ptr[1] == '.') return FK_ELEMENT_PARENT;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '*' || text.ptr[i] == '?') return FK_ELEMENT_PATTERN;
    }
    return FK_ELEMENT_NAME;
}

bool fk_expression_next(const fk_expression *expression, size_t *cursor, fk_element *element)
{
    bool dot_names = fk__ruleset(expression->rules)->dot_names;
    fk_str text;
    do {
        if (!fk__segment_next(expression->elements, cursor, &text)) return false;
    } while (!dot_names && text.len == 1 && *text.ptr == '.');
    *element = (fk_element){ element_kind(text), text };
    return true;
}

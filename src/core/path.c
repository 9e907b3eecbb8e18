/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The parts of a path, and its text. */

#include "core/path.h"

const char *fk_path_code(fk_err err)
{
    switch (err) {
    case FK_E_EMPTY: return "empty";
    case FK_E_SCHEME: return "invalid_scheme";
    case FK_E_NO_SYSTEM: return "missing_system";
    case FK_E_SYSTEM: return "invalid_system";
    case FK_E_AUTHORITY: return "invalid_authority";
    case FK_E_NAME: return "invalid_segment";
    case FK_E_RESERVED: return "reserved_segment";
    case FK_E_PERCENT: return "percent_decode";
    case FK_E_UID: return "invalid_uid";
    case FK_E_ESCAPE: return "relative_escape";
    case FK_E_LIMIT: return "too_long";
    case FK_E_PID_UNKNOWN: return "pid_unknown";
    case FK_E_UNRESOLVED: return "authority_unresolved";
    case FK_E_QUARANTINED: return "authority_quarantined";
    case FK_E_UID_RESERVED: return "uid_reserved";
    default: return NULL;
    }
}

/* ---- parts ---------------------------------------------------------------------------------- */

fk_str fk_path_scheme(const fk_path *path)
{
    return fk__ruleset(path->rules)->scheme[path->scheme == FK_SCHEME_TCP];
}

bool fk__segment_next(fk_str text, size_t *cursor, fk_str *segment)
{
    size_t start = *cursor;
    while (start < text.len && text.ptr[start] == '/') start++;
    size_t end = start;
    while (end < text.len && text.ptr[end] != '/') end++;
    *cursor = end;
    if (end == start) return false;
    *segment = (fk_str){ text.ptr + start, end - start };
    return true;
}

bool fk__segment_last(fk_str *text, fk_str *segment)
{
    size_t end = text->len;
    while (end > 0 && text->ptr[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && text->ptr[start - 1] != '/') start--;
    if (end == start) return false;
    *segment = (fk_str){ text->ptr + start, end - start };
    while (start > 0 && text->ptr[start - 1] == '/') start--;
    text->len = start;
    return true;
}

bool fk_path_next(const fk_path *path, size_t *cursor, fk_str *segment)
{
    return fk__segment_next(path->segments, cursor, segment);
}

fk_str fk_path_name(const fk_path *path)
{
    fk_str segments = path->segments;
    fk_str name = FK_STR("");
    (void)fk__segment_last(&segments, &name);
    return name;
}

fk_path fk_path_parent(const fk_path *path)
{
    fk_path parent = *path;
    fk_str name;
    if (fk__segment_last(&parent.segments, &name)) parent.depth--;
    parent.uid = 0;
    return parent;
}

fk_path fk_path_root(const fk_path *path)
{
    fk_path root = *path;
    root.segments.len = 0;
    root.depth = 0;
    root.uid = 0;
    return root;
}

fk_err fk_path_with_uid(const fk_path *path, uint64_t uid, fk_path *out)
{
    if (!fk__uid_fits(fk__ruleset(path->rules), uid)) return FK_E_UID;
    if (uid != 0 && path->depth == 0) return FK_E_UID;
    fk_path with = *path;
    with.uid = uid;
    *out = with;
    return FK_OK;
}

/* Pekko's reference that swallows everything: the same place in every system. */
static bool is_ignored(const fk_path *path)
{
    fk_str ignored = fk__ruleset(path->rules)->ignored;
    fk_str name = fk_path_name(path);
    return path->depth == 1 && path->system.len + 1 + name.len == ignored.len &&
           memcmp(path->system.ptr, ignored.ptr, path->system.len) == 0 &&
           ignored.ptr[path->system.len] == '/' &&
           memcmp(name.ptr, ignored.ptr + path->system.len + 1, name.len) == 0;
}

fk_path fk_path_with_address(const fk_path *path, const fk_path *address)
{
    fk_path with = *path;
    if (path->host.len != 0 || is_ignored(path)) return with;
    with.scheme = address->scheme;
    with.system = address->system;
    with.host = address->host;
    with.port = address->port;
    return with;
}

fk_path_top_kind fk_path_top(const fk_path *path)
{
    static const struct {
        fk_str name;
        fk_path_top_kind kind;
    } TOPS[] = {
        { { "user", 4 }, FK_TOP_USER },
        { { "system", 6 }, FK_TOP_SYSTEM },
        { { "temp", 4 }, FK_TOP_TEMP },
        { { "deadLetters", 11 }, FK_TOP_DEAD_LETTERS },
    };
    size_t cursor = 0;
    fk_str first;
    if (!fk_path_next(path, &cursor, &first)) return FK_TOP_ROOT;
    for (size_t i = 0; i < sizeof(TOPS) / sizeof(TOPS[0]); i++) {
        if (fk__segment_equal(fk__ruleset(path->rules), first, TOPS[i].name)) return TOPS[i].kind;
    }
    return FK_TOP_EXTRA;
}

/* ---- text ----------------------------------------------------------------------------------- */

void fk__text_put(fk_text *t, fk_str s)
{
    if (t->len < t->size && s.len != 0) {
        size_t room = t->size - t->len;
        memcpy(t->buf + t->len, s.ptr, s.len < room ? s.len : room);
    }
    t->len += s.len;
}

fk_str fk__text_shown(fk_str text, char buf[FK_SHOWN_MAX])
{
    static const char HEX[] = "0123456789ABCDEF";
    fk_text out = { buf, FK_SHOWN_MAX, 0 };
    for (size_t i = 0; i < text.len && out.len + 3 <= FK_SHOWN_MAX; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];
        char escape[3] = { '%', HEX[byte >> 4], HEX[byte & 15] };
        bool is_plain = byte > ' ' && byte < 0x7f;
        fk__text_put(&out, is_plain ? (fk_str){ &text.ptr[i], 1 } : (fk_str){ escape, 3 });
    }
    return (fk_str){ buf, out.len };
}

void fk__text_number(fk_text *t, uint64_t n)
{
    char digits[20];
    size_t start = sizeof(digits);
    do {
        digits[--start] = (char)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    fk__text_put(t, (fk_str){ digits + start, sizeof(digits) - start });
}

void fk__text_address(fk_text *t, const fk_path *path)
{
    fk__text_put(t, fk_path_scheme(path));
    fk__text_put(t, FK_STR("://"));
    fk__text_put(t, path->system);
    if (path->host.len == 0) return;
    fk__text_put(t, FK_STR("@"));
    fk__text_put(t, path->host);
    fk__text_put(t, FK_STR(":"));
    fk__text_number(t, path->port);
}

void fk__text_segments(fk_text *t, const fk_path *path)
{
    size_t cursor = 0;
    fk_str segment;
    while (fk_path_next(path, &cursor, &segment)) {
        fk__text_put(t, FK_STR("/"));
        fk__text_put(t, segment);
    }
}

void fk__text_uid(fk_text *t, const fk_path *path)
{
    uint64_t uid = path->uid;
    if (uid == 0) return;
    fk__text_put(t, FK_STR("#"));
    if (fk__ruleset(path->rules)->uid_signed && uid > INT64_MAX) {
        fk__text_put(t, FK_STR("-"));
        uid = (uint64_t)0 - uid;
    }
    fk__text_number(t, uid);
}

size_t fk_path_format(const fk_path *path, fk_path_form form, char *buf, size_t size)
{
    fk_text t = { buf, size > 0 ? size - 1 : 0, 0 };
    if (form != FK_FORM_LOCAL) fk__text_address(&t, path);
    if (form != FK_FORM_ADDRESS) {
        fk__text_segments(&t, path);
        if (path->depth == 0) fk__text_put(&t, FK_STR("/"));
    }
    if (form == FK_FORM_FULL) fk__text_uid(&t, path);
    if (size > 0) buf[t.len < t.size ? t.len : t.size] = '\0';
    return t.len;
}

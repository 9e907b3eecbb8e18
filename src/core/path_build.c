/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Paths made from other paths and from parts. Their text is written to the caller's buffer, already
 * canonical, and the path points into it. */

#include "core/path.h"

static const char NO_ROOM[] = "the buffer is too small";
static const char TOO_LONG[] = "the path would be too long";
static const char TOO_DEEP[] = "the path would be too deep";

/* The path that was written to buf: an address of `address` bytes, then segments up to `len`. */
static fk_path path_at(const fk_path *like, const char *buf, size_t address, size_t len)
{
    fk_path path = *like;
    path.system.ptr = buf + fk_path_scheme(like).len + 3;
    if (path.host.len != 0) path.host.ptr = path.system.ptr + path.system.len + 1;
    path.segments = (fk_str){ buf + address, len - address };
    return path;
}

static size_t uid_len(const fk_path *path)
{
    fk_text count = { NULL, 0, 0 };
    fk__text_uid(&count, path);
    return count.len;
}

/* ---- child ---------------------------------------------------------------------------------- */

static fk_err take_child(fk_reader *r, fk_str *name, uint64_t *uid)
{
    if (r->len == 0) return fk__reader_fail(r, FK_E_EMPTY, r->at, "the name is empty");
    if (r->depth >= r->depth_max) return fk__reader_fail_segment(r, FK_E_LIMIT, r->at, TOO_DEEP);
    FK_TRY(fk__take_segment(r, FK_SEGMENT_NAME));
    *name = (fk_str){ r->start, (size_t)(r->at - r->start) };
    if (r->at == r->end && name->len != 0) return FK_OK;
    if (name->len == 0 || *r->at != '#') {
        return fk__reader_fail_segment(r, FK_E_NAME, r->at, "a name is one segment");
    }
    return fk__take_uid(r, uid);
}

static fk_err child_into(fk_reader *r, const fk_path *parent, fk_str name, fk_text *t,
                         fk_path *child)
{
    fk__text_address(t, parent);
    size_t address = t->len;
    fk__text_segments(t, parent);
    fk__text_put(t, FK_STR("/"));
    size_t before = t->len;
    fk__text_put(t, name);
    if (t->len + uid_len(child) > r->path_max) {
        size_t room = r->path_max > before ? r->path_max - before : 0;
        return fk__reader_fail_segment(r, FK_E_LIMIT, r->start + room, TOO_LONG);
    }
    if (t->len > t->size) return fk__reader_fail_segment(r, FK_E_LIMIT, r->start, NO_ROOM);
    *child = path_at(child, t->buf, address, t->len);
    child->depth++;
    return FK_OK;
}

fk_err fk_path_child(const fk_path_options *options, const fk_path *parent, fk_str name, fk_buf buf,
                     fk_path *out, fk_path_fault *fault)
{
    fk_reader r;
    fk_text t = { buf.ptr, buf.size, 0 };
    fk_path child = *parent;
    child.uid = 0; /* the parent's own */
    fk__reader_init(&r, parent->rules, options, name);
    r.depth = parent->depth;
    fk_err err = take_child(&r, &name, &child.uid);
    if (err == FK_OK) err = child_into(&r, parent, name, &t, &child);
    err = fk__reader_finish(&r, err, fault);
    if (err == FK_OK) *out = child;
    return err;
}

/* ---- resolve -------------------------------------------------------------------------------- */

/* A limit was met at an element of the expression. */
static fk_err resolve_fault(fk_reader *r, const fk_expression *e, const char *at, const char *why)
{
    size_t cursor = 0;
    fk_str segment;
    r->depth = 0;
    while (fk__segment_next(e->elements, &cursor, &segment) && segment.ptr < at) r->depth++;
    return fk__reader_fail_segment(r, FK_E_LIMIT, at, why);
}

static fk_err resolve_into(fk_reader *r, const fk_path *base, const fk_expression *e, fk_text *t,
                           fk_path *path)
{
    const fk_path *from = e->anchor == FK_ANCHOR_ADDRESS ? &e->address : base;
    fk_path root = fk_path_root(from);
    size_t room = t->size < r->path_max ? t->size : r->path_max;
    const char *why = t->size < r->path_max ? NO_ROOM : TOO_LONG;
    size_t cursor = 0;
    fk_element element;
    fk__text_address(t, from);
    size_t address = t->len;
    if (e->anchor == FK_ANCHOR_SELF) {
        fk__text_segments(t, base);
        root.depth = base->depth;
        if (e->count == 0) root.uid = base->uid;
    }
    if (t->len > room) return fk__reader_fail(r, FK_E_LIMIT, r->start, why);
    while (fk_expression_next(e, &cursor, &element)) {
        if (element.kind == FK_ELEMENT_PARENT) {
            if (root.depth == 0) continue;
            while (t->buf[--t->len] != '/') continue;
            root.depth--;
            continue;
        }
        if (root.depth >= r->depth_max) return resolve_fault(r, e, element.text.ptr, TOO_DEEP);
        if (element.text.len >= room - t->len) return resolve_fault(r, e, element.text.ptr, why);
        fk__text_put(t, FK_STR("/"));
        fk__text_put(t, element.text);
        root.depth++;
    }
    if (e->uid != 0) root.uid = e->uid;
    *path = path_at(&root, t->buf, address, t->len);
    if (t->len + uid_len(path) > r->path_max) {
        return fk__reader_fail(r, FK_E_LIMIT, r->end, TOO_LONG);
    }
    return FK_OK;
}

fk_err fk_path_resolve(const fk_path_options *options, const fk_path *base, fk_str expression,
                       fk_buf buf, fk_path *out, fk_path_fault *fault)
{
    fk_reader r;
    fk_expression e = { .rules = (fk_rules)base->rules };
    fk_path path;
    fk_text t = { buf.ptr, buf.size, 0 };
    fk__reader_init(&r, base->rules, options, expression);
    fk_err err = fk__take_expression(&r, &e, base->depth, FK_SEGMENT_NAME);
    if (err == FK_OK) err = resolve_into(&r, base, &e, &t, &path);
    err = fk__reader_finish(&r, err, fault);
    if (err == FK_OK) *out = path;
    return err;
}

/* ---- build ---------------------------------------------------------------------------------- */

/* The fault of a part, which lies at `offset` of the text that is being built. */
static fk_err build_fault(fk_reader *r, fk_path_fault part, size_t offset)
{
    r->fault = part;
    r->fault.at += offset;
    return part.err;
}

static fk_err build_address(fk_reader *r, const fk_path_options *options,
                            const fk_path_parts *parts, fk_text *t)
{
    fk_path address = { .system = parts->system, .host = parts->host, .port = parts->port };
    fk_path_fault part;
    address.rules = r->rules == fk__ruleset(FK_RULES_PEKKO);
    address.scheme = parts->scheme == FK_SCHEME_TCP;
    size_t system = fk_path_scheme(&address).len + 3;
    if (fk_path_check_system(options, parts->system, &part) != FK_OK) {
        if (part.err == FK_E_EMPTY) part.err = FK_E_NO_SYSTEM;
        return build_fault(r, part, system);
    }
    size_t host = system + parts->system.len + 1;
    if (parts->host.len != 0 && fk_path_check_host(options, parts->host, &part) != FK_OK) {
        return build_fault(r, part, host);
    }
    if ((parts->port != 0) != (parts->host.len != 0)) {
        part = (fk_path_fault){ FK_E_AUTHORITY, -1, parts->host.len, "host and port go together" };
        return build_fault(r, part, host);
    }
    fk__text_address(t, &address);
    return FK_OK;
}

/* A name in a reference: '$' may be its first byte. */
static fk_err build_name(fk_reader *r, const fk_path_options *options, fk_str name, fk_text *t)
{
    fk_reader one;
    fk_err err = FK_E_LIMIT;
    fk__text_put(t, FK_STR("/"));
    fk__reader_init(&one, r->rules == fk__ruleset(FK_RULES_PEKKO), options, name);
    one.depth = r->depth;
    if (r->depth >= r->depth_max)
        err = fk__reader_fail_segment(&one, FK_E_LIMIT, one.at, TOO_DEEP);
    else if (name.len == 0)
        err = fk__reader_fail_segment(&one, FK_E_EMPTY, one.at, "a name is empty");
    else
        err = fk__take_segment(&one, FK_SEGMENT_NAME);
    if (err == FK_OK && one.at != one.end) {
        err = fk__reader_fail_segment(&one, FK_E_NAME, one.at, "a name is one segment");
    }
    if (err != FK_OK) return build_fault(r, one.fault, t->len);
    fk__text_put(t, name);
    r->depth++;
    return FK_OK;
}

static fk_err build_into(fk_reader *r, const fk_path_options *options, const fk_path_parts *parts,
                         fk_text *t, fk_path *path)
{
    bool system = parts->guardian == FK_GUARDIAN_SYSTEM;
    FK_TRY(build_address(r, options, parts, t));
    size_t address = t->len;
    FK_TRY(build_name(r, options, system ? FK_STR("system") : FK_STR("user"), t));
    for (size_t i = 0; i < parts->count; i++) {
        FK_TRY(build_name(r, options, parts->names[i], t));
    }
    fk_path like = { .system = parts->system,
                     .host = parts->host,
                     .uid = parts->uid,
                     .depth = r->depth,
                     .port = parts->port,
                     .rules = r->rules == fk__ruleset(FK_RULES_PEKKO),
                     .scheme = parts->scheme == FK_SCHEME_TCP };
    if (!fk__uid_fits(r->rules, parts->uid)) {
        fk_path_fault part = { FK_E_UID, -1, 1, "the uid is beyond 32 bit" };
        return build_fault(r, part, t->len);
    }
    r->len = t->len + uid_len(&like); /* fk__reader_finish() compares it with the limit */
    if (t->len > t->size) {
        return build_fault(r, (fk_path_fault){ FK_E_LIMIT, -1, 0, NO_ROOM }, t->size);
    }
    *path = path_at(&like, t->buf, address, t->len);
    return FK_OK;
}

fk_err fk_path_build(const fk_path_options *options, const fk_path_parts *parts, fk_buf buf,
                     fk_path *out, fk_path_fault *fault)
{
    fk_reader r;
    fk_path path;
    fk_text t = { buf.ptr, buf.size, 0 };
    fk__reader_init(&r, options != NULL ? options->rules : FK_RULES_FRAKTOR, options, FK_STR(""));
    fk_err err = fk__reader_finish(&r, build_into(&r, options, parts, &t, &path), fault);
    if (err == FK_OK) *out = path;
    return err;
}

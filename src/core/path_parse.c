/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Complete paths, and the names they are made of. The generic grammar of schemes, hosts and escapes
 * is uri.c's; here is what an actor path makes of it.
 */

#include "core/path.h"

enum { SYSTEM_MAX = 255, HOST_MAX = 255 };

/* ---- addresses ------------------------------------------------------------------------------ */

static bool equals_lowered(fk_str text, fk_str lower)
{
    if (text.len != lower.len) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c + ('a' - 'A'));
        if (c != lower.ptr[i]) return false;
    }
    return true;
}

/* Both have 8 to 16 bytes: two words that may overlap. */
static FK_HOT bool same_words(const char *a, const char *b, size_t len)
{
    uint64_t word[4];
    memcpy(&word[0], a, 8);
    memcpy(&word[1], b, 8);
    memcpy(&word[2], a + len - 8, 8);
    memcpy(&word[3], b + len - 8, 8);
    return ((word[0] ^ word[1]) | (word[2] ^ word[3])) == 0;
}

/* The scheme and "://" as we write them ourselves. */
static FK_HOT bool take_own_scheme(fk_reader *r, fk_path *path)
{
    for (unsigned i = FK_SCHEME_LOCAL; i <= FK_SCHEME_TCP; i++) {
        fk_str scheme = r->rules->scheme[i];
        size_t len = scheme.len + 3;
        if ((size_t)(r->end - r->at) < len || !same_words(r->at, scheme.ptr, len)) continue;
        path->scheme = (uint8_t)i;
        r->at += len;
        return true;
    }
    return false;
}

/* In any other case, or to say what is wrong. */
static FK_COLD fk_err take_scheme(fk_reader *r, fk_path *path)
{
    const fk_ruleset *rules = r->rules;
    fk_str scheme;
    if (fk__uri_scheme(&r->at, r->end, &scheme) != FK_URI_OK) {
        return fk__reader_fail(r, FK_E_SCHEME, r->at, rules->scheme_fault);
    }
    path->scheme = equals_lowered(scheme, rules->scheme[FK_SCHEME_TCP]);
    if (!equals_lowered(scheme, rules->scheme[path->scheme])) {
        return fk__reader_fail(r, FK_E_SCHEME, scheme.ptr, rules->scheme_fault);
    }
    for (int i = 0; i < 2; i++, r->at++) {
        if (r->at != r->end && *r->at == '/') continue;
        return fk__reader_fail(r, FK_E_NO_SYSTEM, r->at, "after the scheme comes \"://\"");
    }
    return FK_OK;
}

static bool ends_authority(const char *at, const char *end)
{
    return at == end || *at == '/' || *at == '?' || *at == '#';
}

static const char BAD_SYSTEM[] = "a system's name is letters, digits, and inside also - and _";

static FK_HOT fk_err take_system(fk_reader *r, fk_str *out)
{
    const char *start = r->at;
    const char *at = start;
    if (at != r->end && *at != '-' && *at != '_') {
        while (at != r->end && (fk__path_class[(unsigned char)*at] & FK_SYSTEM_NAME) != 0) at++;
    }
    if (at - start > SYSTEM_MAX) {
        return fk__reader_fail(r, FK_E_SYSTEM, start + SYSTEM_MAX, "the system's name is too long");
    }
    if (!ends_authority(at, r->end) && *at != '@') {
        return fk__reader_fail(r, FK_E_SYSTEM, at, BAD_SYSTEM);
    }
    if (at == start) return fk__reader_fail(r, FK_E_NO_SYSTEM, at, "the system's name is missing");
    *out = (fk_str){ start, (size_t)(at - start) };
    r->at = at;
    return FK_OK;
}

static FK_HOT fk_err take_host(fk_reader *r, unsigned flags, fk_str *out)
{
    const char *start = r->at;
    fk_uri_host_kind kind;
    fk_uri_err err = fk__uri_host(&r->at, r->end, flags, &kind);
    size_t len = (size_t)(r->at - start);
    if (len > HOST_MAX) {
        return fk__reader_fail(r, FK_E_AUTHORITY, start + HOST_MAX, "the host is too long");
    }
    if (err == FK_URI_OK && start[len - 1] == '.') { /* an RFC allows it; two spellings of a host */
        err = FK_URI_BAD_HOST;
        r->at--;
    }
    if (err != FK_URI_OK) {
        return fk__reader_fail(r, FK_E_AUTHORITY, r->at,
                               "the host must be a name, an IPv4 address or an [IPv6] address");
    }
    *out = (fk_str){ start, len };
    return FK_OK;
}

static fk_err take_authority_of(fk_reader *r, fk_path *path)
{
    uint64_t port;
    FK_TRY(take_host(r, r->rules->zones ? FK_URI_ZONES : 0, &path->host));
    if (r->at == r->end || *r->at != ':') {
        return fk__reader_fail(r, FK_E_AUTHORITY, r->at, "after the host comes ':' and the port");
    }
    const char *first = ++r->at;
    if (!fk__take_number(r, UINT16_MAX, &port) || !ends_authority(r->at, r->end)) {
        bool more = r->at != first && r->at != r->end && *r->at >= '0' && *r->at <= '9';
        return fk__reader_fail(r, FK_E_AUTHORITY, r->at,
                               more ? "the port is larger than 65535"
                                    : "the port is 1 to 65535, without leading zeros");
    }
    path->port = (uint16_t)port;
    return FK_OK;
}

fk_err fk__take_address(fk_reader *r, fk_path *path)
{
    if (!take_own_scheme(r, path)) FK_TRY(take_scheme(r, path));
    FK_TRY(take_system(r, &path->system));
    if (r->at == r->end || *r->at != '@') return FK_OK;
    r->at++;
    return take_authority_of(r, path);
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* Most segments: short, without escapes, not beginning with a dot. */
static FK_HOT bool take_plain_segment(fk_reader *r)
{
    const char *at = r->at;
    if (*at == '.') return false;
    while (at != r->end && (fk__path_class[(unsigned char)*at] & FK_SEGMENT_NAME) != 0) at++;
    if (at != r->end && *at != '/' && *at != '#') return false;
    if ((size_t)(at - r->at) > r->segment_max) return false;
    r->at = at;
    return true;
}

static FK_HOT fk_err take_segments(fk_reader *r, fk_path *path)
{
    const char *first = r->at; /* the '/' of the first segment */
    const char *last = r->at;  /* behind the last one */
    while (r->at != r->end && *r->at != '#') {
        if (*r->at == '/') {
            if (r->depth == 0) first = r->at;
            r->at++;
            continue;
        }
        if (r->depth == r->depth_max) {
            return fk__reader_fail_segment(r, FK_E_LIMIT, r->at, "the path is too deep");
        }
        if (!take_plain_segment(r)) FK_TRY(fk__take_segment(r, FK_SEGMENT_NAME));
        last = r->at;
        r->depth++;
    }
    path->depth = r->depth;
    if (r->depth != 0) path->segments = (fk_str){ first, (size_t)(last - first) };
    return FK_OK;
}

static fk_err take_path(fk_reader *r, fk_path *path)
{
    if (r->len == 0) return fk__reader_fail(r, FK_E_EMPTY, r->at, "the text is empty");
    FK_TRY(fk__take_address(r, path));
    FK_TRY(take_segments(r, path));
    if (r->at == r->end) return FK_OK;
    if (r->depth == 0) return fk__reader_fail(r, FK_E_UID, r->at, "the root has no uid");
    return fk__take_uid(r, &path->uid);
}

fk_err fk_path_parse(const fk_path_options *options, fk_str text, fk_path *out,
                     fk_path_fault *fault)
{
    fk_reader r;
    unsigned rules = options != NULL ? options->rules : FK_RULES_FRAKTOR;
    fk_path path = { .rules = rules == FK_RULES_PEKKO };
    fk__reader_init(&r, rules, options, text);
    fk_err err = fk__reader_finish(&r, take_path(&r, &path), fault);
    if (err == FK_OK) *out = path;
    return err;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A reader over something that is not a whole path. */
static void part_init(fk_reader *r, const fk_path_options *options, fk_str text, uint32_t max)
{
    fk__reader_init(r, options != NULL ? options->rules : FK_RULES_FRAKTOR, options, text);
    r->path_max = UINT32_MAX;
    fk__reader_reach(r, max != 0 ? max : r->segment_max);
}

static fk_err take_new_name(fk_reader *r)
{
    if (r->len == 0) return fk__reader_fail(r, FK_E_EMPTY, r->at, "the name is empty");
    fk_str rest = { r->at, (size_t)(r->end - r->at) };
    if (fk__segment_byte(r->rules, &rest) == '$') {
        return fk__reader_fail_segment(r, FK_E_RESERVED, r->at,
                                       "names that begin with '$' are made by the runtime only");
    }
    FK_TRY(fk__take_segment(r, FK_SEGMENT_NAME));
    if (r->at == r->end) return FK_OK;
    return fk__reader_fail_segment(r, FK_E_NAME, r->at, "a name holds neither '/' nor '#'");
}

fk_err fk_path_check_name(const fk_path_options *options, fk_str name, fk_path_fault *fault)
{
    fk_reader r;
    part_init(&r, options, name, 0);
    return fk__reader_finish(&r, take_new_name(&r), fault);
}

fk_err fk_path_check_system(const fk_path_options *options, fk_str name, fk_path_fault *fault)
{
    fk_reader r;
    fk_str system;
    part_init(&r, options, name, SYSTEM_MAX);
    fk_err err = take_system(&r, &system);
    if (err == FK_E_NO_SYSTEM && r.len == 0) {
        err = fk__reader_fail(&r, FK_E_EMPTY, r.at, "the name is empty");
    } else if (err == FK_E_NO_SYSTEM || (err == FK_OK && r.at != r.end)) {
        err = fk__reader_fail(&r, FK_E_SYSTEM, r.at, BAD_SYSTEM);
    }
    return fk__reader_finish(&r, err, fault);
}

fk_err fk_path_check_host(const fk_path_options *options, fk_str host, fk_path_fault *fault)
{
    fk_reader r;
    fk_str out;
    part_init(&r, options, host, HOST_MAX);
    unsigned flags =
        (r.rules->zones ? FK_URI_ZONES : 0u) | (r.rules->underscores ? FK_URI_UNDERSCORES : 0u);
    fk_err err;
    if (r.len == 0)
        err = fk__reader_fail(&r, FK_E_EMPTY, r.at, "the host is empty");
    else
        err = take_host(&r, flags, &out);
    if (err == FK_OK && r.at != r.end) {
        err = fk__reader_fail(&r, FK_E_AUTHORITY, r.at, "the host ends before that");
    }
    return fk__reader_finish(&r, err, fault);
}

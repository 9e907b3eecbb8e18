/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/uri.h"

/* What a character may be part of. */
enum {
    URI_ALPHA = 1,
    URI_DIGIT = 2,
    URI_ALNUM = URI_ALPHA | URI_DIGIT,
    URI_SCHEME = 4,
    URI_USERINFO = 8,
    URI_SEGMENT = 16, /* pchar */
    URI_SLASH = 32,
    URI_QUESTION = 64,
    URI_PATH = URI_SEGMENT | URI_SLASH,
    URI_TAIL = URI_SEGMENT | URI_SLASH | URI_QUESTION, /* query and fragment */
};

#define L (URI_ALPHA | URI_SCHEME | URI_USERINFO | URI_SEGMENT)
#define D (URI_DIGIT | URI_SCHEME | URI_USERINFO | URI_SEGMENT)
#define M (URI_SCHEME | URI_USERINFO | URI_SEGMENT)
#define S (URI_USERINFO | URI_SEGMENT)
#define A URI_SEGMENT
#define P URI_SLASH
#define Q URI_QUESTION

/* clang-format off */
static const uint8_t URI_CLASS[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, S, 0, 0, S, 0, S, S, S, S, S, M, S, M, M, P,  /*   ! " # $ % & ' ( ) * + , - . / */
    D, D, D, D, D, D, D, D, D, D, S, S, 0, S, 0, Q,  /* 0 1 2 3 4 5 6 7 8 9 : ; < = > ? */
    A, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,  /* @ A B C D E F G H I J K L M N O */
    L, L, L, L, L, L, L, L, L, L, L, 0, 0, 0, 0, S,  /* P Q R S T U V W X Y Z [ \ ] ^ _ */
    0, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L,  /* ` a b c d e f g h i j k l m n o */
    L, L, L, L, L, L, L, L, L, L, L, 0, 0, 0, S, 0,  /* p q r s t u v w x y z { | } ~   */
};
/* clang-format on */

#undef L
#undef D
#undef M
#undef S
#undef A
#undef P
#undef Q

static bool uri_is(char c, unsigned classes)
{
    return (URI_CLASS[(unsigned char)c] & classes) != 0;
}

/* What ends an authority. */
static bool uri_ends(const char *at, const char *end)
{
    return at == end || *at == '/' || *at == '?' || *at == '#';
}

/* ---- scheme --------------------------------------------------------------------------------- */

fk_uri_err fk__uri_scheme(const char **at, const char *end, fk_str *out)
{
    const char *start = *at;
    const char *p = start;
    if (p != end && uri_is(*p, URI_ALPHA)) {
        do p++;
        while (p != end && uri_is(*p, URI_SCHEME));
    }
    *at = p;
    if (p == start || p == end || *p != ':') return FK_URI_BAD_SCHEME;
    *out = (fk_str){ start, (size_t)(p - start) };
    *at = p + 1;
    return FK_URI_OK;
}

/* ---- hosts ---------------------------------------------------------------------------------- */

/* 0..255 without leading zero. */
static bool take_octet(const char **at, const char *end)
{
    const char *p = *at;
    unsigned n = 0;
    while (p != end && uri_is(*p, URI_DIGIT)) {
        if (p != *at && n == 0) break; /* nothing follows a zero */
        unsigned next = n * 10 + (unsigned)(*p - '0');
        if (next > 255) break;
        n = next;
        p++;
    }
    bool good = p != *at && (p == end || !uri_is(*p, URI_DIGIT));
    *at = p;
    return good;
}

static bool take_ipv4(const char **at, const char *end)
{
    for (int i = 0; i < 4; i++) {
        if (i > 0) {
            if (*at == end || **at != '.') return false;
            (*at)++;
        }
        if (!take_octet(at, end)) return false;
    }
    return true;
}

/* One to four hexadecimal digits. */
static bool take_group(const char **at, const char *end)
{
    const char *start = *at;
    while (*at != end && *at - start < 4 && fk__uri_hex(**at) >= 0) (*at)++;
    return *at != start;
}

/* RFC 3986, IPv6address: eight groups of 16 bits, or up to seven and one "::"; the last two may be
 * written as an IPv4 address. Stops before whatever follows. */
static bool take_ipv6(const char **at, const char *end)
{
    unsigned groups = 0;
    unsigned gap = 0;
    bool wants_group = true; /* after ":" and at the start, but not after "::" */
    if (end - *at >= 2 && (*at)[0] == ':') {
        (*at)++;
        if (**at != ':') return false;
        (*at)++;
        gap = 1;
        wants_group = false;
    }
    while (groups + gap < 8) {
        const char *start = *at;
        if (!take_group(at, end)) return !wants_group;
        if (*at != end && **at == '.') {
            *at = start;
            bool fits = gap != 0 ? groups < 6 : groups == 6;
            return fits && take_ipv4(at, end);
        }
        groups++;
        if (groups + gap == 8) break;
        if (*at == end || **at != ':') return gap != 0;
        (*at)++;
        wants_group = true;
        if (*at != end && **at == ':') {
            if (gap != 0) return false;
            (*at)++;
            gap = 1;
            wants_group = false;
        }
    }
    return true;
}

static fk_uri_err take_bracketed(const char **at, const char *end, unsigned flags)
{
    (*at)++;
    if (!take_ipv6(at, end)) return FK_URI_BAD_HOST;
    if ((flags & FK_URI_ZONES) != 0 && *at != end && **at == '%') {
        const char *zone = ++*at;
        while (*at != end && (uri_is(**at, URI_ALNUM) || **at == '_' || **at == '.')) (*at)++;
        if (*at == zone) return FK_URI_BAD_HOST;
    }
    if (*at == end || **at != ']') return FK_URI_BAD_HOST;
    (*at)++;
    return FK_URI_OK;
}

/* Letters, digits and inner '-'. */
static bool take_label(const char **at, const char *end, bool underscores)
{
    const char *p = *at;
    for (;;) {
        const char *run = p;
        while (p != end && (uri_is(*p, URI_ALNUM) || (underscores && *p == '_'))) p++;
        if (p == run) return false;
        *at = p; /* a '-' here is refused if nothing follows it */
        if (p == end || *p != '-') return true;
        while (p != end && *p == '-') p++;
    }
}

/* The last label, which began at `label` and has ended at *at, begins with a digit. */
static fk_uri_err check_ipv4(const char *start, const char *label, const char **at)
{
    const char *p = start;
    if (take_ipv4(&p, *at) && p == *at) return FK_URI_OK;
    *at = label;
    return FK_URI_BAD_HOST;
}

static fk_uri_err check_no_underscore(const char *label, const char **at)
{
    for (const char *p = label; p != *at; p++) {
        if (*p != '_') continue;
        *at = p;
        return FK_URI_BAD_HOST;
    }
    return FK_URI_OK;
}

fk_uri_err fk__uri_host(const char **at, const char *end, unsigned flags, fk_uri_host_kind *kind)
{
    const char *start = *at;
    const char *label;
    bool underscores = (flags & FK_URI_UNDERSCORES) != 0;
    if (start != end && *start == '[') {
        *kind = FK_URI_HOST_IPV6;
        return take_bracketed(at, end, flags);
    }
    for (;;) {
        label = *at;
        if (!take_label(at, end, underscores)) return FK_URI_BAD_HOST;
        if (*at == end || **at != '.') break;
        (*at)++;
        if (uri_ends(*at, end) || **at == ':') break; /* the dot of the DNS root */
    }
    bool numeric = label != start && uri_is(*label, URI_DIGIT);
    *kind = numeric ? FK_URI_HOST_IPV4 : FK_URI_HOST_NAME;
    if (numeric) return check_ipv4(start, label, at);
    return underscores ? check_no_underscore(label, at) : FK_URI_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

/* A run of characters of some classes, and of escapes. */
static fk_uri_err take_run(const char **at, const char *end, unsigned classes, fk_str *out)
{
    const char *start = *at;
    for (;;) {
        while (*at != end && uri_is(**at, classes)) (*at)++;
        if (*at == end || **at != '%') break;
        if (fk__uri_escape(*at, end) < 0) return FK_URI_BAD_ESCAPE;
        *at += 3;
    }
    *out = (fk_str){ start, (size_t)(*at - start) };
    return FK_URI_OK;
}

static fk_uri_err take_userinfo(const char **at, const char *end, fk_uri *uri)
{
    const char *p = *at;
    while (!uri_ends(p, end) && *p != '@') p++;
    if (p == end || *p != '@') return FK_URI_OK;
    fk_uri_err err = take_run(at, p, URI_USERINFO, &uri->userinfo);
    if (err != FK_URI_OK) return err;
    if (*at != p) return FK_URI_BAD_USERINFO;
    (*at)++;
    return FK_URI_OK;
}

/* What follows "//". An empty host is one only where the whole authority is empty ("file:///x"). */
static fk_uri_err take_authority(const char **at, const char *end, fk_uri *uri)
{
    fk_uri_err err = take_userinfo(at, end, uri);
    if (err != FK_URI_OK) return err;
    const char *host = *at;
    if (uri->userinfo.ptr != NULL || !uri_ends(host, end)) {
        err = fk__uri_host(at, end, 0, &uri->host_kind);
        if (err != FK_URI_OK) return err;
    }
    uri->host = (fk_str){ host, (size_t)(*at - host) };
    if (uri_ends(*at, end)) return FK_URI_OK;
    if (**at != ':') return FK_URI_BAD_HOST;
    const char *port = ++*at;
    while (*at != end && uri_is(**at, URI_DIGIT)) (*at)++;
    uri->port = (fk_str){ port, (size_t)(*at - port) };
    return uri_ends(*at, end) ? FK_URI_OK : FK_URI_BAD_PORT;
}

static fk_uri_err take_uri(const char **at, const char *end, fk_uri *uri)
{
    const char *p = *at;
    fk_uri_err err = FK_URI_OK;
    while (!uri_ends(p, end) && *p != ':') p++;
    if (p != end && *p == ':') err = fk__uri_scheme(at, end, &uri->scheme);
    if (err != FK_URI_OK) return err;
    if (end - *at >= 2 && (*at)[0] == '/' && (*at)[1] == '/') {
        *at += 2;
        err = take_authority(at, end, uri);
        if (err != FK_URI_OK) return err;
    }
    err = take_run(at, end, URI_PATH, &uri->path);
    if (err != FK_URI_OK) return err;
    if (!uri_ends(*at, end)) return FK_URI_BAD_PATH;
    if (*at != end && **at == '?') {
        (*at)++;
        err = take_run(at, end, URI_TAIL, &uri->query);
        if (err != FK_URI_OK) return err;
        if (!uri_ends(*at, end)) return FK_URI_BAD_QUERY;
    }
    if (*at != end && **at == '#') {
        (*at)++;
        err = take_run(at, end, URI_TAIL, &uri->fragment);
        if (err != FK_URI_OK) return err;
    }
    return *at == end ? FK_URI_OK : FK_URI_BAD_FRAGMENT;
}

fk_uri_err fk__uri_parse(fk_str text, fk_uri *out, size_t *error_at)
{
    FK_ASSERT(out != NULL);
    FK_ASSERT(text.ptr != NULL);
    fk_uri uri = { .host_kind = FK_URI_HOST_NONE };
    const char *at = text.ptr;
    fk_uri_err err = take_uri(&at, text.ptr + text.len, &uri);
    if (err == FK_URI_OK)
        *out = uri;
    else if (error_at != NULL)
        *error_at = (size_t)(at - text.ptr);
    return err;
}

fk_uri_err fk__uri_decode(fk_str text, char *buf, size_t size, size_t *len, size_t *error_at)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; n++) {
        int byte = (unsigned char)text.ptr[i];
        size_t used = 1;
        if (byte == '%') {
            byte = fk__uri_escape(text.ptr + i, text.ptr + text.len);
            used = 3;
        }
        if (byte < 0) {
            if (error_at != NULL) *error_at = i;
            return FK_URI_BAD_ESCAPE;
        }
        if (n < size) buf[n] = (char)byte;
        i += used;
    }
    *len = n;
    return FK_URI_OK;
}

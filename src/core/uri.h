/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CORE_URI_H
#define FK_CORE_URI_H

/*
 * URIs by RFC 3986, hosts by RFC 2396 (names of labels, nothing escaped); knows nothing of actors.
 *
 * Nothing is allocated, decoded or read twice, and no byte outside the text is looked at. A parser
 * of a stricter language takes the pieces one by one and so stays one pass; fk__uri_parse() is made
 * of the same. Every piece moves *at behind what it read or leaves it on the byte it refused.
 */

#include "base/base.h"

typedef enum fk_uri_err {
    FK_URI_OK = 0,
    FK_URI_BAD_SCHEME,
    FK_URI_BAD_USERINFO,
    FK_URI_BAD_HOST,
    FK_URI_BAD_PORT,
    FK_URI_BAD_PATH,
    FK_URI_BAD_QUERY,
    FK_URI_BAD_FRAGMENT,
    FK_URI_BAD_ESCAPE, /* wherever it is; the offset is that of its '%' */
} fk_uri_err;

typedef enum fk_uri_host_kind {
    FK_URI_HOST_NONE = 0,
    FK_URI_HOST_NAME,
    FK_URI_HOST_IPV4,
    FK_URI_HOST_IPV6, /* in brackets */
} fk_uri_host_kind;

enum {
    FK_URI_ZONES = 1,       /* "[fe80::1%eth0]": java.net.URI takes it, no RFC does */
    FK_URI_UNDERSCORES = 2, /* '_' in any label but the last */
};

/* A component that is absent has a NULL pointer; one that is empty has not. */
typedef struct fk_uri {
    fk_str scheme;
    fk_str userinfo;
    fk_str host; /* with its brackets; NULL when there is no authority */
    fk_str port;
    fk_str path; /* never absent */
    fk_str query;
    fk_str fragment;
    fk_uri_host_kind host_kind;
} fk_uri;

/* A whole URI or relative reference. *error_at, which may be NULL, is the offset of the first byte
 * that is wrong, or the text's length when something is missing. *out is written on success only. */
FK_MUST_USE fk_uri_err fk__uri_parse(fk_str text, fk_uri *out, size_t *error_at);

/* ---- pieces --------------------------------------------------------------------------------- */

/* "fraktor.tcp" and its ':'. */
FK_MUST_USE fk_uri_err fk__uri_scheme(const char **at, const char *end, fk_str *out);
/* A name, an IPv4 address or a bracketed IPv6 address; ends before any byte that cannot be part of
 * it. The last label of a dotted name begins with a letter, or it must be an IPv4 address. */
FK_MUST_USE fk_uri_err fk__uri_host(const char **at, const char *end, unsigned flags,
                                    fk_uri_host_kind *kind);

/* ---- escapes -------------------------------------------------------------------------------- */

static inline int fk__uri_hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The byte that the escape at `at` stands for; -1: there is no '%' and two digits. */
static inline int fk__uri_escape(const char *at, const char *end)
{
    if (end - at < 3 || at[0] != '%') return -1;
    int high = fk__uri_hex(at[1]), low = fk__uri_hex(at[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Decodes into buf, cutting at size; *len is the length it has in full. FK_URI_BAD_ESCAPE. */
FK_MUST_USE fk_uri_err fk__uri_decode(fk_str text, char *buf, size_t size, size_t *len,
                                      size_t *error_at);

#endif /* FK_CORE_URI_H */

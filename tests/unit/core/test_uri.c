/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* URIs as the RFCs have them, with nothing of actors in it. '^' in a text that is refused marks the
 * byte that is to blame. */

#include <stdio.h>
#include <string.h>

#include "core/uri.h"
#include "support/guard.h"
#include "support/test.h"
#include "support/tsv.h"

/* Components as "scheme|userinfo|host|port|path|query|fragment"; "-" is absent. */
static void write_parts(const fk_uri *uri, char *out)
{
    const fk_str parts[] = { uri->scheme, uri->userinfo, uri->host,    uri->port,
                             uri->path,   uri->query,    uri->fragment };
    for (size_t i = 0; i < 7; i++) {
        fk_str part = parts[i].ptr != NULL ? parts[i] : FK_STR("-");
        out += sprintf(out, "%s%.*s", i > 0 ? "|" : "", (int)part.len, part.ptr);
    }
}

static void check_parts(const char *text, const char *expected)
{
    char parts[512];
    fk_uri uri;
    size_t at = 99;
    fk_uri_err err = fk__uri_parse(guard_text(fk_str_of(text)), &uri, &at);
    if (err != FK_URI_OK) test_failed(text, 0, "refused at %zu", at);
    write_parts(&uri, parts);
    CHECK_STR(parts, expected);
}

static void check_refused(const char *marked, fk_uri_err expected)
{
    char text[512];
    fk_uri uri = { .host_kind = FK_URI_HOST_IPV4 };
    size_t at = 0, wanted = strcspn(marked, "^");
    sprintf(text, "%.*s%s", (int)wanted, marked, marked + wanted + 1);
    fk_uri_err err = fk__uri_parse(guard_text(fk_str_of(text)), &uri, &at);
    if (err != expected || at != wanted) {
        test_failed(marked, 0, "error %d at %zu, expected %d at %zu", err, at, expected, wanted);
    }
    CHECK_U64(uri.host_kind, FK_URI_HOST_IPV4); /* untouched */
    CHECK_U64(fk__uri_parse(guard_text(fk_str_of(text)), &uri, NULL), expected);
}

/* RFC 3986, 1.1.2 and 3. */
TEST(uri_examples_of_the_rfc)
{
    check_parts("ftp://ftp.is.co.za/rfc/rfc1808.txt", "ftp|-|ftp.is.co.za|-|/rfc/rfc1808.txt|-|-");
    check_parts("http://www.ietf.org/rfc/rfc2396.txt",
                "http|-|www.ietf.org|-|/rfc/rfc2396.txt|-|-");
    check_parts("ldap://[2001:db8::7]/c=GB?objectClass?one",
                "ldap|-|[2001:db8::7]|-|/c=GB|objectClass?one|-");
    check_parts("mailto:John.Doe@example.com", "mailto|-|-|-|John.Doe@example.com|-|-");
    check_parts("news:comp.infosystems.www.servers.unix",
                "news|-|-|-|comp.infosystems.www.servers.unix|-|-");
    check_parts("tel:+1-816-555-1212", "tel|-|-|-|+1-816-555-1212|-|-");
    check_parts("telnet://192.0.2.16:80/", "telnet|-|192.0.2.16|80|/|-|-");
    check_parts("urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
                "urn|-|-|-|oasis:names:specification:docbook:dtd:xml:4.1.2|-|-");
    check_parts("foo://example.com:8042/over/there?name=ferret#nose",
                "foo|-|example.com|8042|/over/there|name=ferret|nose");
}

TEST(uri_schemes)
{
    check_parts("HTTP://h/", "HTTP|-|h|-|/|-|-"); /* case is the caller's business */
    check_parts("a+b-c.9:x", "a+b-c.9|-|-|-|x|-|-");
    check_parts("x:", "x|-|-|-||-|-");
    check_refused("^:x", FK_URI_BAD_SCHEME);
    check_refused("^1x:y", FK_URI_BAD_SCHEME);
    check_refused("^ x:y", FK_URI_BAD_SCHEME);
    check_refused("p^_q://h", FK_URI_BAD_SCHEME);
    check_refused("a^%20:x", FK_URI_BAD_SCHEME);
    check_refused("^-a:x", FK_URI_BAD_SCHEME);
}

TEST(uri_relative_references)
{
    check_parts("", "-|-|-|-||-|-");
    check_parts("a/b", "-|-|-|-|a/b|-|-");
    check_parts("/a//b/", "-|-|-|-|/a//b/|-|-");
    check_parts("../x", "-|-|-|-|../x|-|-");
    check_parts("./a:b", "-|-|-|-|./a:b|-|-");
    check_parts("//h/x", "-|-|h|-|/x|-|-");
    check_parts("?q", "-|-|-|-||q|-");
    check_parts("#f", "-|-|-|-||-|f");
}

TEST(uri_empty_components_are_not_absent)
{
    check_parts("file:///x", "file|-||-|/x|-|-");
    check_parts("s://", "s|-||-||-|-");
    check_parts("s://@h", "s||h|-||-|-");
    check_parts("s://h:", "s|-|h|||-|-");
    check_parts("s://h?", "s|-|h|-|||-");
    check_parts("s://h#", "s|-|h|-||-|");
    check_parts("s://h/?#", "s|-|h|-|/||");
}

TEST(uri_queries_and_fragments)
{
    check_parts("s:p?a=b&c/d?e#f/g?h", "s|-|-|-|p|a=b&c/d?e|f/g?h");
    check_parts("s:p#f?not-a-query", "s|-|-|-|p|-|f?not-a-query");
    check_parts("s://h?q#f", "s|-|h|-||q|f");
    check_refused("s:p#a^#b", FK_URI_BAD_FRAGMENT);
    check_refused("s:p?a^[b", FK_URI_BAD_QUERY);
    check_refused("s:p?a^\"#b", FK_URI_BAD_QUERY);
    check_refused("s:p#^ ", FK_URI_BAD_FRAGMENT);
}

TEST(uri_paths_hold_what_the_rfc_says)
{
    check_parts("s:/-._~!$&'()*+,;=:@%20/a", "s|-|-|-|/-._~!$&'()*+,;=:@%20/a|-|-");
    static const char BAD[] = " \"<>[\\]`{|}\x7f\x01\n\x80\xff";
    for (const char *c = BAD; *c != '\0'; c++) {
        char marked[] = "s:/ab^_/c";
        marked[6] = *c;
        check_refused(marked, FK_URI_BAD_PATH);
    }
}

TEST(uri_userinfo)
{
    check_parts("s://u:p@h:1/x", "s|u:p|h|1|/x|-|-");
    check_parts("s://a%40b;c=d@h", "s|a%40b;c=d|h|-||-|-");
    check_parts("s://h/a@b", "s|-|h|-|/a@b|-|-"); /* that '@' is the path's */
    check_refused("s://a^[b@h", FK_URI_BAD_USERINFO);
    check_refused("s://a^ b@h", FK_URI_BAD_USERINFO);
    check_refused("s://a^%4@h", FK_URI_BAD_ESCAPE);
    check_refused("s://a@b^@c:1/u", FK_URI_BAD_HOST);
    check_refused("s://a@^", FK_URI_BAD_HOST);
    check_refused("s://a@^:1", FK_URI_BAD_HOST);
}

TEST(uri_ports)
{
    check_parts("s://h:0", "s|-|h|0||-|-");
    check_parts("s://h:00080/", "s|-|h|00080|/|-|-");
    check_parts("s://h:99999999999", "s|-|h|99999999999||-|-");
    check_refused("s://h:^x", FK_URI_BAD_PORT);
    check_refused("s://h:1^x/", FK_URI_BAD_PORT);
    check_refused("s://h:^-1/", FK_URI_BAD_PORT);
    check_refused("s://h:^+1/", FK_URI_BAD_PORT);
    check_refused("s://h:1^:2/", FK_URI_BAD_PORT);
    check_refused("s://^:1/", FK_URI_BAD_HOST);
}

/* ---- hosts ---------------------------------------------------------------------------------- */

static void check_host(const char *text, unsigned flags, fk_uri_host_kind expected)
{
    fk_str host = guard_text(fk_str_of(text));
    const char *at = host.ptr;
    fk_uri_host_kind kind = FK_URI_HOST_NONE;
    fk_uri_err err = fk__uri_host(&at, host.ptr + host.len, flags, &kind);
    if (err != FK_URI_OK || at != host.ptr + host.len || kind != expected) {
        test_failed(text, 0, "error %d at %d, kind %d", err, (int)(at - host.ptr), kind);
    }
}

static void check_bad_host(const char *marked, unsigned flags)
{
    char text[512];
    int wanted = (int)strcspn(marked, "^");
    sprintf(text, "%.*s%s", wanted, marked, marked + wanted + 1);
    fk_str host = guard_text(fk_str_of(text));
    const char *at = host.ptr;
    fk_uri_host_kind kind;
    fk_uri_err err = fk__uri_host(&at, host.ptr + host.len, flags, &kind);
    /* A host may end before the text does; then that is the byte to blame. */
    if (err == FK_URI_OK && at == host.ptr + host.len) test_failed(marked, 0, "accepted");
    if (at - host.ptr != wanted) test_failed(marked, 0, "refused at %d", (int)(at - host.ptr));
}

TEST(uri_host_names)
{
    static const char *const GOOD[] = {
        "h",    "localhost", "a.b-c.example", "xn--bcher-kva.example",
        "HOST", "a--b",      "123",           "1x",
        "9a",   "a.b.c.d.e", "host.",         "1.2.3.a",
        "0",
    };
    static const char *const BAD[] = {
        "^",      "^-h",   "h^-",         "h^--",       "a^-.b", "a.^-b",  "^.h",  "a.^.b",
        "h^_",    "^_h",   "a^_b",        "^%41",       "a^%41", "ho^ st", "a^,b", "^:1",
        "1.2.^3", "a.^1x", "1.2.3.4.^5x", "1.2.3.^256", "a^\n",  "a^\x80",
    };
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        check_host(GOOD[i], 0, FK_URI_HOST_NAME);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) check_bad_host(BAD[i], 0);
}

TEST(uri_host_underscores_where_they_are_asked_for)
{
    check_host("is_valid.org", FK_URI_UNDERSCORES, FK_URI_HOST_NAME);
    check_host("_a._b.c", FK_URI_UNDERSCORES, FK_URI_HOST_NAME);
    check_bad_host("is^_valid.org", 0);
    check_bad_host("in^_valid", FK_URI_UNDERSCORES);
    check_bad_host("a_b.c^_d", FK_URI_UNDERSCORES);
}

TEST(uri_host_ipv4)
{
    static const char *const GOOD[] = { "0.0.0.0", "127.0.0.1", "255.255.255.255", "1.20.103.9" };
    static const char *const BAD[] = {
        "256.1.1.^1", "1.2.3.^04", "1.02.3.^4", "1.2.3.^4.", "1.2.3.4.^5", "1.2.^3", "1.2.3.^400",
    };
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        check_host(GOOD[i], 0, FK_URI_HOST_IPV4);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) check_bad_host(BAD[i], 0);
}

TEST(uri_host_ipv6)
{
    static const char *const GOOD[] = {
        "[::]",
        "[::1]",
        "[1::]",
        "[1:2:3:4:5:6:7:8]",
        "[2001:DB8::ab]",
        "[1:2:3:4:5:6:7::]",
        "[::2:3:4:5:6:7:8]",
        "[1::3:4:5:6:7:8]",
        "[::ffff:1.2.3.4]",
        "[::1.2.3.4]",
        "[1:2:3:4:5:6:1.2.3.4]",
        "[1::5:6:255.255.255.255]",
        "[1:2:3:4:5::1.2.3.4]",
        "[fe80::1]",
    };
    static const char *const BAD[] = {
        "[^]",
        "[^",
        "[:^]",
        "[:^1]",
        "[::1^",

        "[::^:1]",
        "[1::2:^:3]",
        "[1:2:3^]",
        "[1:2:3:4:5:6:7^]",
        "[1:2:3:4:5:6:7:8^:9]",
        "[1:2:3:4:5:6:7:8^::]",
        "[1:2:3:4:5:6:7::^8]",
        "[::1:2:3:4:5:6:7^:8]",
        "[::^g]",
        "[1234^5::]",
        "[1:^]",
        "[^1.2.3.4]",
        "[::1.2.3^]",
        "[::1.2.3.4^:5]",
        "[::1.2.3.25^6]",
        "[::1.2.3.0^1]",
        "[1:2:3:4:5:6:7:^1.2.3.4]",
        "[::2:3:4:5:6:7:^1.2.3.4]",
        "[1:2:3:4:5:^1.2.3.4]",
        "[::1^%eth0]",
        "[::1^ ]",
        "[^v1.x]",
        "[^ ::1]",
        "[::1^%25eth0]",
        "[::1]^x",
    };
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        check_host(GOOD[i], 0, FK_URI_HOST_IPV6);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) check_bad_host(BAD[i], 0);
}

TEST(uri_host_zones_where_they_are_asked_for)
{
    check_host("[fe80::1%eth0]", FK_URI_ZONES, FK_URI_HOST_IPV6);
    check_host("[fe80::1%1]", FK_URI_ZONES, FK_URI_HOST_IPV6);
    check_host("[::%a_b.c]", FK_URI_ZONES, FK_URI_HOST_IPV6);
    check_bad_host("[fe80::1%^]", FK_URI_ZONES);
    check_bad_host("[fe80::1%a^/]", FK_URI_ZONES);
    check_bad_host("[^%eth0]", FK_URI_ZONES);
    check_refused("s://[fe80::1^%eth0]:1", FK_URI_BAD_HOST);
}

/* ---- escapes -------------------------------------------------------------------------------- */

TEST(uri_escapes_everywhere_they_may_be)
{
    check_parts("s://%41@h/%2F%00%ff?%20#%7e", "s|%41|h|-|/%2F%00%ff|%20|%7e");
    check_refused("s:/a^%", FK_URI_BAD_ESCAPE);
    check_refused("s:/a^%4", FK_URI_BAD_ESCAPE);
    check_refused("s:/a^%4g", FK_URI_BAD_ESCAPE);
    check_refused("s:/a^%g4", FK_URI_BAD_ESCAPE);
    check_refused("s:/^%%41", FK_URI_BAD_ESCAPE);
    check_refused("s:/a?^%", FK_URI_BAD_ESCAPE);
    check_refused("s:/a#1^%zz", FK_URI_BAD_ESCAPE);
    check_refused("s:/a^% 1", FK_URI_BAD_ESCAPE);
    check_refused("s:/a^%+1", FK_URI_BAD_ESCAPE);
}

TEST(uri_decode_cuts_and_counts)
{
    char *buf = guard_buffer(4);
    size_t len = 0, at = 0;
    CHECK_U64(fk__uri_decode(guard_text(FK_STR("a%2Fb%00c%fF")), buf, 4, &len, &at), FK_URI_OK);
    CHECK_U64(len, 6);
    CHECK(memcmp(buf, "a/b\0", 4) == 0);
    CHECK_U64(fk__uri_decode(guard_text(FK_STR("abc%4")), buf, 4, &len, &at), FK_URI_BAD_ESCAPE);
    CHECK_U64(at, 3);
    CHECK_U64(fk__uri_decode(FK_STR(""), NULL, 0, &len, NULL), FK_URI_OK);
    CHECK_U64(len, 0);
    for (int i = 0; i < 256; i++) {
        char text[4];
        sprintf(text, i % 2 == 0 ? "%%%02x" : "%%%02X", (unsigned)i);
        CHECK_U64(fk__uri_escape(text, text + 3), i);
        CHECK(fk__uri_escape(text, text + 2) < 0);
    }
}

/* ---- anything ------------------------------------------------------------------------------- */

/* What is accepted is made of the components and their delimiters, and nothing else. */
static void check_whole(fk_str text, const fk_uri *uri)
{
    char again[256];
    size_t len = 0;
#define PUT(s) (memcpy(again + len, (s).ptr, (s).len), len += (s).len)
    if (uri->scheme.ptr != NULL) PUT(uri->scheme), again[len++] = ':';
    if (uri->host.ptr != NULL) again[len++] = '/', again[len++] = '/';
    if (uri->userinfo.ptr != NULL) PUT(uri->userinfo), again[len++] = '@';
    if (uri->host.ptr != NULL) PUT(uri->host);
    if (uri->port.ptr != NULL) again[len++] = ':', PUT(uri->port);
    PUT(uri->path);
    if (uri->query.ptr != NULL) again[len++] = '?', PUT(uri->query);
    if (uri->fragment.ptr != NULL) again[len++] = '#', PUT(uri->fragment);
#undef PUT
    CHECK(tsv_equal(text, (fk_str){ again, len }));
}

TEST(uri_random_texts_are_refused_or_whole)
{
    static const char ALPHABET[] = "aZ09:/?#[]@%.-_~!$&'()*+,;= \"<>{}|\\^`\x80\n::////[]@@%%";
    test_random random = { 11 };
    size_t accepted = 0;
    for (uint64_t i = 0; i < test_scaled(200000); i++) {
        char text[24];
        size_t len = test_random_below(&random, sizeof(text));
        for (size_t j = 0; j < len; j++) {
            text[j] = ALPHABET[test_random_below(&random, sizeof(ALPHABET) - 1)];
        }
        fk_uri uri;
        size_t at = 0;
        fk_str guarded = guard_text((fk_str){ text, len });
        if (fk__uri_parse(guarded, &uri, &at) == FK_URI_OK) {
            check_whole(guarded, &uri);
            accepted++;
        } else {
            CHECK(at <= len);
        }
    }
    CHECK(accepted > 100);
}

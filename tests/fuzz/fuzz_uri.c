/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a URI. What was taken apart must be what RFC 3986, appendix B, cuts it into. */

#include "core/uri.h"
#include "fuzz/fuzz.h"

enum { DECODED_MAX = 64 };

/* The components by that appendix: cut at the first of the characters that may end each. */
static fk_str cut_until(fk_str *text, const char *set)
{
    size_t len = 0;
    while (len < text->len && (text->ptr[len] == '\0' || strchr(set, text->ptr[len]) == NULL))
        len++;
    fk_str part = { text->ptr, len };
    text->ptr += len;
    text->len -= len;
    return part;
}

static bool cut_mark(fk_str *text, const char *mark)
{
    size_t len = strlen(mark);
    if (text->len < len || memcmp(text->ptr, mark, len) != 0) return false;
    text->ptr += len;
    text->len -= len;
    return true;
}

static void check_component(fk_str actual, bool present, fk_str expected)
{
    FUZZ_CHECK((actual.ptr != NULL) == present);
    FUZZ_CHECK(!present || fuzz_same(actual, expected));
    FUZZ_CHECK(!present || actual.ptr == expected.ptr);
}

/* "user@host:port": the authority of the appendix, cut further by section 3.2. */
static void check_authority(const fk_uri *uri, bool present, fk_str authority)
{
    fk_str rest = authority;
    fk_str user = cut_until(&rest, "@");
    bool has_user = cut_mark(&rest, "@");
    check_component(uri->userinfo, present && has_user, user);
    if (!has_user) rest = authority;
    fk_str host = rest;
    if (rest.len > 0 && rest.ptr[0] == '[') {
        cut_until(&rest, "]");
        FUZZ_CHECK(!present || cut_mark(&rest, "]"));
        host.len -= rest.len;
    } else {
        host = cut_until(&rest, ":");
    }
    check_component(uri->host, present, host);
    bool has_port = cut_mark(&rest, ":");
    check_component(uri->port, present && has_port, rest);
    FUZZ_CHECK(!present || has_port || rest.len == 0);
    FUZZ_CHECK((uri->host_kind != FK_URI_HOST_NONE) == (present && host.len > 0));
}

static void check_uri(fk_str text, const fk_uri *uri)
{
    fk_str rest = text;
    fk_str scheme = cut_until(&rest, ":/?#");
    bool has_scheme = scheme.len > 0 && cut_mark(&rest, ":");
    check_component(uri->scheme, has_scheme, scheme);
    if (!has_scheme) rest = text;
    bool has_authority = cut_mark(&rest, "//");
    fk_str authority = has_authority ? cut_until(&rest, "/?#") : (fk_str){ rest.ptr, 0 };
    check_authority(uri, has_authority, authority);
    check_component(uri->path, true, cut_until(&rest, "?#"));
    bool has_query = cut_mark(&rest, "?");
    fk_str query = has_query ? cut_until(&rest, "#") : (fk_str){ rest.ptr, 0 };
    check_component(uri->query, has_query, query);
    check_component(uri->fragment, cut_mark(&rest, "#"), rest);
}

/* Into an exact block, so that a byte too many is seen. */
static void check_decode(fk_str text, bool must_pass)
{
    size_t len = 0, full = 0, at = 0;
    size_t size = text.len % DECODED_MAX;
    char *buf = malloc(size > 0 ? size : 1);
    if (buf == NULL) abort();
    fk_uri_err err = fk__uri_decode(text, buf, size, &len, &at);
    FUZZ_CHECK(err == FK_URI_OK || err == FK_URI_BAD_ESCAPE);
    FUZZ_CHECK(!must_pass || err == FK_URI_OK);
    FUZZ_CHECK(err == FK_URI_OK || (at < text.len && text.ptr[at] == '%'));
    FUZZ_CHECK(err != FK_URI_OK || len <= text.len);
    for (size_t i = 0; err == FK_URI_OK && i < text.len; full++) i += text.ptr[i] == '%' ? 3 : 1;
    FUZZ_CHECK(err != FK_URI_OK || len == full);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fk_str text = fuzz_text(data, size);
    fk_uri uri;
    size_t at = SIZE_MAX;
    if (fk__uri_parse(text, &uri, &at) == FK_URI_OK) {
        check_uri(text, &uri);
        check_decode(uri.path, true);
    } else {
        FUZZ_CHECK(at <= text.len);
    }
    check_decode(text, false);
    return 0;
}

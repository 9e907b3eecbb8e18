/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "property/path_source.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char LETTERS[] = "abcxyzABCXYZ0189";
static const char MARKS[] = "-_.*$+:@&=,!~';";
/* Bytes with a meaning somewhere in a path, and those just beside a range that is allowed. */
static const char SUSPECTS[] = "/:@#?%[].-$* \t\n\x7f\x80\xff\"<>^`{|}()\\09azAZ_~!";

static uint64_t below(source *s, uint64_t n)
{
    return test_random_below(s->random, n);
}

static bool one_in(source *s, uint64_t n)
{
    return below(s, n) == 0;
}

/* ---- writing -------------------------------------------------------------------------------------- */

static void put_byte(source *s, char c)
{
    if (s->len < SOURCE_MAX) s->text[s->len++] = c;
}

static void put(source *s, const char *text)
{
    for (; *text != '\0'; text++) put_byte(s, *text);
}

static void put_escaped(source *s, char c)
{
    const char *digits = one_in(s, 2) ? "0123456789abcdef" : "0123456789ABCDEF";
    put_byte(s, '%');
    put_byte(s, digits[(unsigned char)c / 16]);
    put_byte(s, digits[(unsigned char)c % 16]);
}

static void put_one_of(source *s, const char *const *words, size_t count)
{
    put(s, words[below(s, count)]);
}

static fk_str done(const source *s)
{
    return (fk_str){ s->text, s->len };
}

void source_init(source *s, test_random *random)
{
    s->random = random;
    s->len = 0;
}

/* ---- parts of a path ------------------------------------------------------------------------------- */

static void put_scheme(source *s, source_scheme scheme)
{
    static const char *const GOOD[2][2] = { { "fraktor", "fraktor.tcp" },
                                            { "pekko", "pekko.tcp" } };
    static const char *const BAD[] = {
        "",         "akka",  "fraktor.udp", "fraktor2", "raktor", "pekko.", "fraktor.tcp.",
        " fraktor", "pekko", "fraktor",     "1x"
    };
    static const char *const BAD_MARK[] = { "", ":", ":/", "//", ":///", "::", "%3A//" };
    size_t start = s->len;
    if (one_in(s, 40)) {
        put_one_of(s, BAD, COUNT(BAD));
    } else {
        put_one_of(s, GOOD[scheme], 2);
    }
    for (size_t i = start; i < s->len && one_in(s, 2); i++) {
        if (s->text[i] >= 'a' && one_in(s, 4)) s->text[i] = (char)(s->text[i] - 'a' + 'A');
    }
    if (one_in(s, 60)) {
        put_one_of(s, BAD_MARK, COUNT(BAD_MARK));
    } else {
        put(s, "://");
    }
}

static void put_system(source *s)
{
    static const char *const BAD[] = { "",   "-s",  "_s",        "s s", "s%41",
                                       "$s", "s.t", "s\xc3\xa9", "s:1" };
    if (one_in(s, 40)) {
        put_one_of(s, BAD, COUNT(BAD));
        return;
    }
    size_t len = one_in(s, 60) ? 250 + below(s, 10) : below(s, 5);
    put_byte(s, LETTERS[below(s, sizeof(LETTERS) - 1)]);
    for (size_t i = 0; i < len; i++) put_byte(s, one_in(s, 4) ? "-_"[below(s, 2)] : 's');
}

static void put_hex(source *s)
{
    static const char *const GROUP[] = { "0", "1", "db8", "ffff", "2001", "00a0" };
    put_one_of(s, GROUP, COUNT(GROUP));
}

static void put_ipv6(source *s)
{
    static const char *const KNOWN[] = { "::1",
                                         "::",
                                         "::ffff:1.2.3.4",
                                         "1:2:3:4:5:6:7:8",
                                         "1::",
                                         "1:2:3:4:5:6:7::",
                                         "::2:3:4:5:6:7:8",
                                         "fe80::1",
                                         "1:2:3:4:5:6:1.2.3.4" };
    static const char *const BAD[] = { "",
                                       ":",
                                       ":::",
                                       "1:2:3",
                                       "1::2::3",
                                       "::1.2.3",
                                       "::01.2.3.4",
                                       "::256.1.1.1",
                                       "12345::",
                                       "1:2:3:4:5:6:7:8:9",
                                       "::g",
                                       "1:2:3:4:5:6:7:1.2.3.4",
                                       "fe80::1%eth0",
                                       "::1.2.3.4:5",
                                       "1:2:3:4:5:6:7:8::",
                                       "1:",
                                       ":1",
                                       "::1 " };
    put_byte(s, '[');
    if (one_in(s, 8)) {
        put_one_of(s, BAD, COUNT(BAD));
    } else if (one_in(s, 2)) {
        put_one_of(s, KNOWN, COUNT(KNOWN));
    } else { /* most of these are none */
        size_t groups = 1 + below(s, 9);
        for (size_t i = 0; i < groups; i++) {
            if (i > 0) put(s, one_in(s, 5) ? "::" : ":");
            put_hex(s);
        }
        if (one_in(s, 4)) put(s, ":1.2.3.4");
    }
    if (!one_in(s, 60)) put_byte(s, ']');
}

static void put_authority(source *s)
{
    static const char *const HOST[] = {
        "h",     "localhost", "host.example.com", "a.b-c.example", "127.0.0.1", "HOST", "0",
        "1.2.3", "x--y"
    };
    static const char *const BAD_HOST[] = { "",     ".h",  "h.",  "a..b", "-h",   "h-",   "h_",
                                            "h%41", "a@b", "h h", "a.-b", "a-.b", "h\x80" };
    static const char *const PORT[] = { "1", "80", "2552", "65535", "9", "10000" };
    static const char *const BAD_PORT[] = {
        "",    "0",  "00", "080", "65536", "70000", "+1", "-1", "1x", " 1", "99999999999999999999",
        "1:2", "0x1"
    };
    put_byte(s, '@');
    if (one_in(s, 4)) {
        put_ipv6(s);
    } else if (one_in(s, 60)) {
        for (size_t n = 250 + below(s, 10); n > 0; n--) put_byte(s, 'h');
    } else if (one_in(s, 20)) {
        put_one_of(s, BAD_HOST, COUNT(BAD_HOST));
    } else {
        put_one_of(s, HOST, COUNT(HOST));
    }
    if (!one_in(s, 60)) put_byte(s, ':');
    if (one_in(s, 20)) {
        put_one_of(s, BAD_PORT, COUNT(BAD_PORT));
    } else {
        put_one_of(s, PORT, COUNT(PORT));
    }
}

static void put_escape(source *s)
{
    static const char *const KNOWN[] = { "%41", "%7e", "%7E", "%20", "%24", "%2e", "%2E", "%25" };
    static const char *const BAD[] = { "%",   "%4",  "%g0", "%0g", "%%",  "%2F",    "%2f",
                                       "%00", "%1f", "%7F", "%80", "%FF", "%C3%A9", "%0A" };
    if (one_in(s, 12)) {
        put_one_of(s, BAD, COUNT(BAD));
    } else {
        put_one_of(s, KNOWN, COUNT(KNOWN));
    }
}

static void put_name(source *s)
{
    static const char *const KNOWN[] = { "user", "system",   "temp",   "deadLetters", "a",
                                         "b",    "worker-1", "$a",     "...",         ".a",
                                         "a.",   "*",        "%2e%2e." };
    static const char *const BAD[] = { ".",   "..",           "%2e",  ".%2E", "a b", "a?b",
                                       "a<b", "\xe5\x90\x8d", "a\tb", "(a)",  "a|b", "a\\b",
                                       "?" };
    if (one_in(s, 60)) {
        put_one_of(s, BAD, COUNT(BAD));
        return;
    }
    if (one_in(s, 3)) {
        put_one_of(s, KNOWN, COUNT(KNOWN));
        return;
    }
    size_t len = 1 + (one_in(s, 80) ? 250 + below(s, 10) : below(s, 6));
    for (size_t i = 0; i < len; i++) {
        if (one_in(s, 10)) {
            put_escape(s);
        } else if (one_in(s, 4)) {
            put_byte(s, MARKS[below(s, sizeof(MARKS) - 1)]);
        } else {
            put_byte(s, LETTERS[below(s, sizeof(LETTERS) - 1)]);
        }
    }
}

static void put_uid(source *s)
{
    static const char *const KNOWN[] = {
        "1",  "7",          "42", "2147483647", "2147483648", "4294967296", "18446744073709551615",
        "-1", "-2147483648"
    };
    static const char *const BAD[] = { "",   "0",  "007", "+7",  "1x", "18446744073709551616",
                                       " 1", "1 ", "0x1", "1#2", "1/", "99999999999999999999999",
                                       "-",  "%31" };
    put_byte(s, '#');
    if (one_in(s, 12)) {
        put_one_of(s, BAD, COUNT(BAD));
    } else {
        put_one_of(s, KNOWN, COUNT(KNOWN));
    }
}

static void put_segments(source *s)
{
    size_t count = one_in(s, 60) ? 60 + below(s, 8) : below(s, 6);
    for (size_t i = 0; i < count; i++) {
        put_byte(s, '/');
        if (one_in(s, 12)) put_byte(s, '/');
        put_name(s);
    }
    if (one_in(s, 8)) put_byte(s, '/');
}

/* ---- mutation -------------------------------------------------------------------------------------- */

static char any_byte(source *s)
{
    if (one_in(s, 8)) return (char)below(s, 256);
    return SUSPECTS[below(s, sizeof(SUSPECTS) - 1)];
}

static void put_bytes(source *s, size_t len_max)
{
    for (size_t n = below(s, len_max + 1); n > 0; n--) put_byte(s, any_byte(s));
}

static void mutate_once(source *s)
{
    size_t at = (size_t)below(s, s->len + 1);
    size_t rest = s->len - at;
    switch (below(s, 5)) {
    case 0: /* a byte more */
        if (s->len == SOURCE_MAX) return;
        memmove(s->text + at + 1, s->text + at, rest);
        s->text[at] = any_byte(s);
        s->len++;
        return;
    case 1: /* a byte less */
        if (rest == 0) return;
        memmove(s->text + at, s->text + at + 1, rest - 1);
        s->len--;
        return;
    case 2:
        if (rest > 0) s->text[at] = any_byte(s);
        return;
    case 3: /* the end is gone */ s->len = at; return;
    default: /* a piece twice */
        rest = (size_t)below(s, rest + 1);
        if (s->len + rest > SOURCE_MAX) return;
        memmove(s->text + at + rest, s->text + at, s->len - at);
        s->len += rest;
        return;
    }
}

static void mutate(source *s)
{
    if (!one_in(s, 4)) return;
    for (size_t n = 1 + below(s, 3); n > 0; n--) mutate_once(s);
}

/* ---- texts ------------------------------------------------------------------------------------------ */

fk_str source_uri(source *s, source_scheme scheme)
{
    s->len = 0;
    put_scheme(s, scheme);
    put_system(s);
    if (one_in(s, 2)) put_authority(s);
    put_segments(s);
    if (one_in(s, 3)) put_uid(s);
    mutate(s);
    return done(s);
}

fk_str source_name(source *s)
{
    s->len = 0;
    put_name(s);
    mutate(s);
    return done(s);
}

fk_str source_expression(source *s, source_scheme scheme)
{
    if (one_in(s, 10)) return source_uri(s, scheme);
    s->len = 0;
    size_t count = one_in(s, 60) ? 60 + below(s, 8) : 1 + below(s, 6);
    if (one_in(s, 4)) put_byte(s, '/');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) put(s, one_in(s, 12) ? "//" : "/");
        if (one_in(s, 3)) {
            put(s, one_in(s, 3) ? "." : "..");
        } else if (one_in(s, 12)) {
            put_bytes(s, 3);
        } else {
            put_name(s);
        }
    }
    if (one_in(s, 8)) put_byte(s, '/');
    if (one_in(s, 4)) put_uid(s);
    mutate(s);
    return done(s);
}

/* Few letters, so that much matches. */
fk_str source_pattern(source *s)
{
    static const char *const ODD[] = { "%61",          "%2A",  "%3f",  "%",         "%6",
                                       "\xe5\x90\x8d", "\xe5", "\x90", "%E5%90%8D", "\xff" };
    s->len = 0;
    for (size_t n = below(s, 12); n > 0; n--) {
        if (one_in(s, 10)) {
            put_one_of(s, ODD, COUNT(ODD));
        } else {
            put_byte(s, "aab*?"[below(s, 5)]);
        }
    }
    if (s->len > 40) s->len = 40;
    return done(s);
}

/* The other of "fraktor" and "fraktor.tcp". Gives what the text has behind its scheme. */
static fk_str put_other_scheme(source *s, fk_str text)
{
    size_t len = 0, name = 0;
    while (len < text.len && text.ptr[len] != ':') len++;
    while (name < len && text.ptr[name] != '.') name++;
    for (size_t i = 0; i < name; i++) put_byte(s, text.ptr[i]);
    if (name == len) put(s, ".tcp");
    return (fk_str){ text.ptr + len, text.len - len };
}

fk_str source_variant(source *s, fk_str text)
{
    size_t authority = 0; /* up to the third slash only the text itself */
    s->len = 0;
    if (one_in(s, 4)) text = put_other_scheme(s, text);
    for (size_t slashes = 0; authority < text.len && slashes < 3; authority++) {
        slashes += text.ptr[authority] == '/';
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (i >= authority && c == '#') break;
        if (i >= authority && c != '/' && c != '%' && one_in(s, 8)) {
            put_escaped(s, c);
        } else {
            put_byte(s, one_in(s, 200) ? 'b' : c);
        }
        if (i >= authority && c == '/' && one_in(s, 8)) put_byte(s, '/');
    }
    if (one_in(s, 2)) put_uid(s);
    return done(s);
}

fk_str source_bytes(source *s, size_t len_max)
{
    s->len = 0;
    put_bytes(s, len_max);
    return done(s);
}

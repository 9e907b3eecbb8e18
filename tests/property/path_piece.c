/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "property/path_piece.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SEGMENT_MARKS[] = "-_.*$+:@&=,!~';";

/* ---- pieces of text ----------------------------------------------------------------------------- */

fk_str text_cut(fk_str text, size_t from, size_t to)
{
    return (fk_str){ text.ptr + from, to - from };
}

bool text_is(fk_str a, const char *b)
{
    return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0;
}

bool text_same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

size_t text_find_any(fk_str text, const char *set)
{
    size_t i = 0;
    while (i < text.len && (text.ptr[i] == '\0' || strchr(set, text.ptr[i]) == NULL)) i++;
    return i;
}

size_t text_find(fk_str text, const char *what)
{
    size_t len = strlen(what);
    for (size_t i = 0; i + len <= text.len; i++) {
        if (memcmp(text.ptr + i, what, len) == 0) return i;
    }
    return text.len;
}

bool text_is_alnum(char c)
{
    return isascii((unsigned char)c) && isalnum((unsigned char)c);
}

static bool is_hex(char c)
{
    return isascii((unsigned char)c) && isxdigit((unsigned char)c);
}

static int hex_byte(const char *two)
{
    char text[3] = { two[0], two[1], '\0' };
    return (int)strtol(text, NULL, 16);
}

uint64_t model_number(fk_str text, uint64_t max)
{
    char digits[21] = { 0 }; /* 2^64 has 20 */
    char again[21];
    if (text.len == 0 || text.len >= sizeof(digits)) return 0;
    memcpy(digits, text.ptr, text.len);
    if (strspn(digits, "0123456789") != text.len) return 0;
    uint64_t n = strtoull(digits, NULL, 10);
    snprintf(again, sizeof(again), "%llu", (unsigned long long)n); /* strtoull stops at 2^64-1 */
    return n <= max && strcmp(digits, again) == 0 ? n : 0;
}

/* ---- system and authority ------------------------------------------------------------------------ */

bool model_is_system(fk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!text_is_alnum(c) && c != '-' && c != '_') return false;
    }
    return text.len >= 1 && text.len <= 255 && text_is_alnum(text.ptr[0]);
}

static bool is_label(fk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!text_is_alnum(text.ptr[i]) && text.ptr[i] != '-') return false;
    }
    return text.len > 0 && text.ptr[0] != '-' && text.ptr[text.len - 1] != '-';
}

static bool is_address(int family, fk_str text)
{
    char digits[64] = { 0 };
    unsigned char address[16];
    if (text.len >= sizeof(digits) || memchr(text.ptr, '\0', text.len) != NULL) return false;
    memcpy(digits, text.ptr, text.len);
    return inet_pton(family, digits, address) == 1;
}

/* RFC 2396: the last of several labels begins with a letter, lest a name look like an address. */
static bool is_host_name(fk_str text)
{
    fk_str rest = text;
    if (text.len > 255) return false;
    for (;;) {
        size_t dot = text_find_any(rest, ".");
        if (!is_label(text_cut(rest, 0, dot))) return false;
        if (dot == rest.len) break;
        rest = text_cut(rest, dot + 1, rest.len);
    }
    bool is_single = rest.len == text.len;
    return is_single || !isdigit((unsigned char)rest.ptr[0]) || is_address(AF_INET, text);
}

bool model_take_authority(fk_str text, model_path *out)
{
    size_t colon = text_find_any(text, ":");
    if (text.len > 0 && text.ptr[0] == '[') {
        size_t bracket = text_find_any(text, "]");
        colon = bracket + 1;
        if (colon >= text.len || !is_address(AF_INET6, text_cut(text, 1, bracket))) return false;
    } else if (!is_host_name(text_cut(text, 0, colon))) {
        return false;
    }
    if (colon == text.len || text.ptr[colon] != ':') return false;
    out->host = text_cut(text, 0, colon);
    out->port = (uint32_t)model_number(text_cut(text, colon + 1, text.len), 65535);
    return out->port != 0;
}

/* ---- segments ------------------------------------------------------------------------------------- */

bool model_is_escape(fk_str text)
{
    return text.len >= 3 && text.ptr[0] == '%' && is_hex(text.ptr[1]) && is_hex(text.ptr[2]);
}

size_t model_decode(fk_str segment, char *out)
{
    size_t len = 0;
    for (size_t i = 0; i < segment.len; i++) {
        char c = segment.ptr[i];
        if (c == '%') {
            c = (char)hex_byte(segment.ptr + i + 1);
            i += 2;
        }
        out[len++] = c;
    }
    return len;
}

/* What is wrong with a byte of a segment, and how many bytes belong together there. */
static fk_err check_byte(fk_str rest, size_t *size)
{
    char c = rest.ptr[0];
    *size = 1;
    if (c != '%') {
        bool good = text_is_alnum(c) || (c != '\0' && strchr(SEGMENT_MARKS, c) != NULL);
        return good ? FK_OK : FK_E_NAME;
    }
    if (!model_is_escape(rest)) return FK_E_PERCENT;
    *size = 3;
    int byte = hex_byte(rest.ptr + 1);
    return byte < 0x20 || byte > 0x7e || byte == '/' ? FK_E_NAME : FK_OK;
}

fk_err model_check_segment(fk_str segment, size_t *at)
{
    char plain[MODEL_SEGMENT_MAX];
    size_t size;
    for (*at = 0; *at < segment.len; *at += size) {
        fk_err err = check_byte(text_cut(segment, *at, segment.len), &size);
        if (*at > MODEL_SEGMENT_MAX) break;
        if (err != FK_OK) return err;
    }
    if (segment.len > MODEL_SEGMENT_MAX) {
        *at = MODEL_SEGMENT_MAX;
        return FK_E_LIMIT;
    }
    *at = 0;
    fk_str decoded = { plain, model_decode(segment, plain) };
    return text_is(decoded, ".") || text_is(decoded, "..") ? FK_E_NAME : FK_OK;
}

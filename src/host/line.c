/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host/line.h"

#include <stdio.h>
#include <string.h>

enum {
    ROOM_END = 2,   /* "}" and newline */
    ROOM_VALUE = 8, /* quotes and at least one escape */
    ESCAPE_MAX = 6
};

static size_t line_room(const fk_line *line)
{
    return sizeof(line->buf) - ROOM_END - line->len;
}

/* The caller has looked for room. */
static void line_put(fk_line *line, const char *text, size_t len)
{
    memcpy(line->buf + line->len, text, len);
    line->len += len;
}

void fk__line_begin(fk_line *line, fk_log_format format)
{
    line->format = format;
    line->len = 0;
    if (format == FK_LOG_JSON) line_put(line, "{", 1);
}

/* False: no room for it and a value. */
static bool line_key(fk_line *line, const char *key)
{
    size_t len = strlen(key);
    bool is_json = line->format == FK_LOG_JSON;
    if (line_room(line) < len + 4 + ROOM_VALUE) return false;
    if (line->len > (is_json ? 1u : 0u)) line_put(line, is_json ? "," : " ", 1);
    if (is_json) line_put(line, "\"", 1);
    line_put(line, key, len);
    line_put(line, is_json ? "\":" : "=", is_json ? 2 : 1);
    return true;
}

static bool is_printable(unsigned char byte)
{
    return byte >= 0x20 && byte <= 0x7e;
}

/* Nothing in it that a reader of logfmt could take for the end of the value. */
static bool is_bare(fk_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.ptr[i];
        if (!is_printable(byte) || byte == ' ' || byte == '"' || byte == '=' || byte == '\\') {
            return false;
        }
    }
    return value.len != 0;
}

static size_t escape(const fk_line *line, unsigned char byte, char out[ESCAPE_MAX + 1])
{
    if (!is_printable(byte)) {
        const char *form = line->format == FK_LOG_JSON ? "\\u%04x" : "\\x%02x";
        return (size_t)snprintf(out, ESCAPE_MAX + 1, form, byte);
    }
    size_t len = 0;
    if (byte == '"' || byte == '\\') out[len++] = '\\';
    out[len++] = (char)byte;
    return len;
}

void fk__line_text(fk_line *line, const char *key, fk_str value)
{
    if (!line_key(line, key)) return;
    if (line->format == FK_LOG_LOGFMT && is_bare(value) && value.len <= line_room(line)) {
        line_put(line, value.ptr, value.len);
        return;
    }
    line_put(line, "\"", 1);
    for (size_t i = 0; i < value.len; i++) {
        char escaped[ESCAPE_MAX + 1];
        size_t len = escape(line, (unsigned char)value.ptr[i], escaped);
        if (line_room(line) < len + 1) break;
        line_put(line, escaped, len);
    }
    line_put(line, "\"", 1);
}

void fk__line_chars(fk_line *line, const char *key, const char *value)
{
    if (value != NULL && value[0] != '\0') fk__line_text(line, key, fk_str_of(value));
}

void fk__line_number(fk_line *line, const char *key, uint64_t value)
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
    if (line_room(line) < strlen(key) + 4 + len + ROOM_VALUE || !line_key(line, key)) return;
    line_put(line, digits, len);
}

void fk__line_end(fk_line *line)
{
    if (line->format == FK_LOG_JSON) line_put(line, "}", 1);
    line_put(line, "\n", 1);
}

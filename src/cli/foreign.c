/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "foreign.h"

#include <stdint.h>

/* A text longer than WINDOW columns or so is cut on both sides of its fault. */
enum { WINDOW = 120, WINDOW_BEFORE = 60 };

static const uint32_t INVALID = UINT32_MAX;

static fk_str part(fk_str text, size_t from, size_t to)
{
    return (fk_str){ text.ptr + from, to - from };
}

static size_t sequence_size(unsigned char lead)
{
    if (lead < 0x80) return 1;
    if (lead >= 0xc2 && lead < 0xe0) return 2;
    if (lead >= 0xe0 && lead < 0xf0) return 3;
    if (lead >= 0xf0 && lead < 0xf5) return 4;
    return 0; /* a continuation, an overlong form, or beyond the last code point */
}

/* The code point at the text's beginning, and its size in bytes; INVALID and 1 when it is none. */
static uint32_t decode(fk_str text, size_t *size)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char lead = (unsigned char)text.ptr[0];
    size_t n = sequence_size(lead);

    *size = 1;
    if (n == 1) return lead;
    if (n == 0 || n > text.len) return INVALID;
    uint32_t code = lead & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if ((c & 0xc0) != 0x80) return INVALID;
        code = code << 6 | (c & 0x3fu);
    }
    if (code < LEAST[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return INVALID;
    *size = n;
    return code;
}

/* What acts on the line instead of standing in it: controls, line separators, marks that reorder
 * the text around them or that nobody sees. */
static bool is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) ||
           code == 0xfeff || code == 0x061c;
}

void cli_json_text(FILE *out, fk_str text)
{
    size_t size;
    fputc('"', out);
    for (size_t i = 0; i < text.len; i += size) {
        uint32_t code = decode(part(text, i, text.len), &size);
        if (code == INVALID) {
            fputs("\\ufffd", out);
        } else if (code == '"' || code == '\\') {
            fprintf(out, "\\%c", (char)code);
        } else if (is_control(code)) { /* all of them have at most 16 bits */
            fprintf(out, "\\u%04x", (unsigned)code);
        } else {
            fwrite(text.ptr + i, 1, size, out);
        }
    }
    fputc('"', out);
}

/* Gives the columns it took. */
static size_t show_byte(FILE *out, char byte)
{
    static const char NAMED[] = "\\\\\nn\rr\tt";
    for (const char *named = NAMED; *named != '\0'; named += 2) {
        if (named[0] == byte) return (size_t)fprintf(out, "\\%c", named[1]);
    }
    if (byte >= 0x20 && byte < 0x7f) return (size_t)fprintf(out, "%c", byte);
    return (size_t)fprintf(out, "\\x%02X", (unsigned)(unsigned char)byte);
}

void cli_show_text(FILE *out, fk_str text)
{
    size_t size;
    for (size_t i = 0; i < text.len; i += size) {
        uint32_t code = decode(part(text, i, text.len), &size);
        if (code == INVALID || code < 0x80) {
            show_byte(out, text.ptr[i]);
        } else if (is_control(code)) {
            for (size_t k = 0; k < size; k++) show_byte(out, text.ptr[i + k]);
        } else {
            fwrite(text.ptr + i, 1, size, out);
        }
    }
}

void cli_show_caret(FILE *out, fk_str text, size_t at)
{
    size_t from = 0;
    size_t to = text.len;
    size_t columns = 0;

    if (at > text.len) at = text.len;
    if (text.len > WINDOW) {
        if (at > WINDOW_BEFORE) from = at - WINDOW_BEFORE;
        if (text.len - from > WINDOW) to = from + WINDOW;
    }
    if (from > 0) columns += (size_t)fprintf(out, "...");
    /* Up to the caret byte by byte: how many columns a character beyond ASCII takes is the
     * terminal's secret. */
    for (size_t i = from; i < at; i++) columns += show_byte(out, text.ptr[i]);
    cli_show_text(out, part(text, at, to));
    fputs(to < text.len ? "...\n" : "\n", out);
    fprintf(out, "%*s^\n", (int)columns, "");
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/hex.h"

#include <stdlib.h>
#include <string.h>

static const char DIGITS[] = "0123456789abcdef";

static unsigned digit_of(char c)
{
    const char *found = c != '\0' ? strchr(DIGITS, c) : NULL;
    if (found == NULL) abort();
    return (unsigned)(found - DIGITS);
}

fk_str hex_bytes(fk_str text)
{
    size_t digits = 0, len = 0;
    for (size_t i = 0; i < text.len; i++) digits += text.ptr[i] != ' ';
    if (digits % 2 != 0) abort();
    char *bytes = malloc(digits > 0 ? digits / 2 : 1);
    if (bytes == NULL) abort();
    unsigned high = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == ' ') continue;
        unsigned digit = digit_of(text.ptr[i]);
        if (len++ % 2 == 0)
            high = digit;
        else
            bytes[len / 2 - 1] = (char)(high << 4 | digit);
    }
    return (fk_str){ bytes, digits / 2 };
}

char *hex_text(fk_str bytes)
{
    char *text = malloc(2 * bytes.len + 1);
    if (text == NULL) abort();
    for (size_t i = 0; i < bytes.len; i++) {
        text[2 * i] = DIGITS[(unsigned char)bytes.ptr[i] >> 4];
        text[2 * i + 1] = DIGITS[(unsigned char)bytes.ptr[i] & 15];
    }
    text[2 * bytes.len] = '\0';
    return text;
}

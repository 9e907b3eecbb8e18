/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "core/autoname.h"

#include "core/path.h"

/* "$" and the number in base 64, lowest digit first: $a, $b, ... $~, $ab, ... */
size_t fk_path_autoname(uint64_t n, char buf[FK_AUTONAME_MAX])
{
    static const char DIGITS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";
    size_t len = 0;
    buf[len++] = '$';
    do {
        buf[len++] = DIGITS[n & 63];
        n >>= 6;
    } while (n != 0);
    return len;
}

static void put_autoname(fk_text *t, uint64_t n)
{
    char name[FK_AUTONAME_MAX];
    fk__text_put(t, (fk_str){ name, fk_path_autoname(n, name) });
}

size_t fk__autoname_function(uint64_t n, fk_str label, char *buf, size_t size)
{
    fk_text t = { buf, size, 0 };
    fk__text_put(&t, FK_STR("$"));
    put_autoname(&t, n);
    if (label.len != 0) {
        fk__text_put(&t, FK_STR("-"));
        fk__text_put(&t, label);
    }
    return t.len;
}

size_t fk__autoname_temp(uint64_t n, fk_str asked, char *buf, size_t size)
{
    fk_text t = { buf, size, 0 };
    fk__text_put(&t, asked);
    put_autoname(&t, n);
    return t.len;
}

/* java.net.URLEncoder keeps these and letters and digits. */
static bool is_form_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '*' || c == '_';
}

size_t fk__autoname_temp_selection(uint64_t n, fk_str asked, char *buf, size_t size)
{
    static const char HEX[] = "0123456789ABCDEF";
    fk_text t = { buf, size, 0 };
    for (size_t i = 0; i < asked.len; i++) {
        unsigned char c = (unsigned char)asked.ptr[i];
        char escape[3] = { '%', HEX[c >> 4], HEX[c & 15] };
        if (c == '/')
            fk__text_put(&t, FK_STR("_"));
        else if (c == ' ')
            fk__text_put(&t, FK_STR("+"));
        else if (is_form_safe(asked.ptr[i]))
            fk__text_put(&t, (fk_str){ asked.ptr + i, 1 });
        else
            fk__text_put(&t, (fk_str){ escape, sizeof(escape) });
    }
    put_autoname(&t, n);
    return t.len;
}

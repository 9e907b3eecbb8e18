/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/guard.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD_PAGE = 65536 /* a multiple of any page there is */ };

/* The end of GUARD_MAX bytes, before a page that has no access rights. */
static char *guard_end(char **end)
{
    if (*end == NULL) {
        char *start = mmap(NULL, GUARD_MAX + GUARD_PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) abort();
        *end = start + GUARD_MAX;
        if (mprotect(*end, GUARD_PAGE, PROT_NONE) != 0) abort();
    }
    return *end;
}

fk_str guard_text(fk_str text)
{
    static char *end;
    if (text.len > GUARD_MAX) abort();
    char *copy = guard_end(&end) - text.len;
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    return (fk_str){ copy, text.len };
}

char *guard_buffer(size_t size)
{
    static char *end;
    if (size > GUARD_MAX) abort();
    return guard_end(&end) - size;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_FUZZ_FUZZ_H
#define FK_TESTS_FUZZ_FUZZ_H

/*
 * Fuzz targets: one function each, driven by libFuzzer (./run fuzz) or, in the normal suite, by
 * replay.c over the corpus. A seed is a text file; its last newline is the editor's and not part
 * of the input.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fraktor/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) ((condition) ? (void)0 : fuzz_failed(__FILE__, __LINE__, #condition))

__attribute__((noreturn)) static inline void fuzz_failed(const char *file, int line,
                                                         const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

static inline fk_str fuzz_text(const uint8_t *data, size_t size)
{
    if (size > 0 && data[size - 1] == '\n') size--;
    return (fk_str){ (const char *)data, size };
}

/* Takes the text up to a newline, or to its end. */
static inline fk_str fuzz_line(fk_str *text)
{
    const char *newline = text->len > 0 ? memchr(text->ptr, '\n', text->len) : NULL;
    fk_str line = *text;
    if (newline == NULL) {
        text->ptr += text->len;
        text->len = 0;
        return line;
    }
    line.len = (size_t)(newline - line.ptr);
    text->ptr += line.len + 1;
    text->len -= line.len + 1;
    return line;
}

static inline bool fuzz_same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* What a function that refuses owes. */
static inline void fuzz_check_fault(const fk_path_fault *fault, fk_err err, fk_str text)
{
    FUZZ_CHECK(fault->err == err);
    FUZZ_CHECK(fault->at <= text.len);
    FUZZ_CHECK(fault->segment >= -1);
    FUZZ_CHECK(fault->message != NULL);
    FUZZ_CHECK(fk_path_code(err) != NULL);
}

#endif /* FK_TESTS_FUZZ_FUZZ_H */

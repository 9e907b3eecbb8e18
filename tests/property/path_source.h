/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_PROPERTY_PATH_SOURCE_H
#define FK_TESTS_PROPERTY_PATH_SOURCE_H

/*
 * Texts that are paths, or nearly so. Each part is drawn by the grammar, sometimes from what is
 * just outside of it, and some texts have a few bytes changed afterwards: so most of what is wrong
 * is wrong in one place only, which is where a parser errs.
 */

#include "support/test.h"

enum { SOURCE_MAX = 4096 };

typedef struct source {
    test_random *random;
    size_t len;
    char text[SOURCE_MAX];
} source;

typedef enum source_scheme { SOURCE_FRAKTOR = 0, SOURCE_PEKKO } source_scheme;

void source_init(source *s, test_random *random);
/* Each starts the text anew. */
fk_str source_uri(source *s, source_scheme scheme);
fk_str source_name(source *s);
fk_str source_expression(source *s, source_scheme scheme);
fk_str source_pattern(source *s);
/* Another spelling of the same path, or of nearly the same: another scheme, more escapes and slashes,
 * another uid, once in a while another letter. */
fk_str source_variant(source *s, fk_str text);
/* Bytes of any kind, at most len_max. */
fk_str source_bytes(source *s, size_t len_max);

#endif /* FK_TESTS_PROPERTY_PATH_SOURCE_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_DIFFERENCES_H
#define FK_TESTS_SUPPORT_DIFFERENCES_H

/*
 * Tables of what Pekko does, and the page that lists where we do otherwise. A row that does not
 * hold must be listed and of the class quirk; a listed one must be a row and must not hold.
 */

#include "support/tsv.h"

/* Does a row hold? If not, differs() has said why. */
typedef bool (*row_fn)(tsv *row);

/* All rows of a table, which has at least `rows`; their ids begin with the two letters of `prefix`.
 * Anything that is not as the page says fails the test. */
void differences_run(const char *page, const char *file, size_t rows, const char *prefix,
                     row_fn holds);

/* False. */
__attribute__((format(printf, 1, 2))) bool differs(const char *format, ...);

#endif /* FK_TESTS_SUPPORT_DIFFERENCES_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_TESTS_SUPPORT_TSV_H
#define FK_TESTS_SUPPORT_TSV_H

/*
 * Tables of cases: one a line, columns by name. The format is tests/vectors/README.md's. Anything
 * wrong with a table fails the test.
 */

#include "fraktor/base.h"

enum { TSV_COLUMNS_MAX = 24, TSV_TEXT_MAX = 16384 };

typedef struct tsv {
    const char *file;
    char *text; /* the whole table */
    char *at;
    size_t line;
    size_t rows; /* read so far */
    size_t columns;
    fk_str column[TSV_COLUMNS_MAX];
    fk_str field[TSV_COLUMNS_MAX]; /* of this row, as written */
    char unescaped[TSV_TEXT_MAX];  /* what the texts of this row lie in */
    size_t used;
} tsv;

void tsv_open(tsv *t, const char *file);
/* The next row; false at the end, when the table is closed. */
bool tsv_next(tsv *t);

bool tsv_has(const tsv *t, const char *column);
/* A field as written; fails if there is no such column. */
fk_str tsv_raw(const tsv *t, const char *column);
/* Unescaped; lives until the next row. Absent: a NULL pointer. */
fk_str tsv_unescape(tsv *t, fk_str raw);
fk_str tsv_text(tsv *t, const char *column);
/* A field that is a list: how many items it has. */
size_t tsv_list(tsv *t, const char *column, fk_str *items, size_t max);

bool tsv_equal(fk_str a, fk_str b);
bool tsv_is(const tsv *t, const char *column, const char *text);

#endif /* FK_TESTS_SUPPORT_TSV_H */

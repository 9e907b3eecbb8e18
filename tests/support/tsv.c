/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/tsv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"

static const char COLUMNS[] = "# columns: ";

static char *read_file(const char *file)
{
    FILE *in = fopen(file, "rb");
    char *text = NULL;
    size_t size = 0, len = 0;
    if (in == NULL) test_failed(file, 0, "cannot be read");
    for (;;) {
        if (len + 1 >= size) text = realloc(text, size += 65536);
        if (text == NULL) abort();
        size_t n = fread(text + len, 1, size - len - 1, in);
        if (n == 0) break;
        len += n;
    }
    fclose(in);
    text[len] = '\0';
    return text;
}

/* Cuts the line at the cursor into fields and moves on; false at the end. */
static bool take_line(tsv *t, fk_str *fields, size_t *count)
{
    char *line = t->at;
    size_t n = 0;
    if (*line == '\0') return false;
    char *end = strchr(line, '\n');
    if (end == NULL) test_failed(t->file, (int)t->line, "the last line has no end");
    *end = '\0';
    t->at = end + 1;
    t->line++;
    for (;;) {
        size_t len = strcspn(line, "\t");
        if (n == TSV_COLUMNS_MAX) test_failed(t->file, (int)t->line, "too many columns");
        fields[n++] = (fk_str){ line, len };
        if (line[len] == '\0') break;
        line += len + 1;
    }
    *count = n;
    return true;
}

void tsv_open(tsv *t, const char *file)
{
    memset(t, 0, sizeof(*t));
    t->file = file;
    t->text = t->at = read_file(file);
    if (strncmp(t->at, COLUMNS, sizeof(COLUMNS) - 1) != 0) {
        test_failed(file, 1, "the first line must name the columns");
    }
    t->at += sizeof(COLUMNS) - 1;
    (void)take_line(t, t->column, &t->columns);
}

bool tsv_next(tsv *t)
{
    size_t count;
    t->used = 0;
    do {
        if (!take_line(t, t->field, &count)) {
            free(t->text);
            t->text = NULL;
            return false;
        }
    } while (t->field[0].ptr[0] == '#');
    if (count != t->columns) {
        test_failed(t->file, (int)t->line, "%zu columns, expected %zu", count, t->columns);
    }
    t->rows++;
    return true;
}

static size_t column_index(const tsv *t, const char *column)
{
    size_t i = 0;
    while (i < t->columns && !tsv_equal(t->column[i], fk_str_of(column))) i++;
    return i;
}

bool tsv_has(const tsv *t, const char *column)
{
    return column_index(t, column) < t->columns;
}

fk_str tsv_raw(const tsv *t, const char *column)
{
    size_t i = column_index(t, column);
    if (i == t->columns) test_failed(t->file, (int)t->line, "no column %s", column);
    return t->field[i];
}

static char unescape_one(const tsv *t, fk_str raw, size_t *i)
{
    static const char FROM[] = "\\tnr", TO[] = "\\\t\n\r";
    char hex[3] = { 0 };
    char c = *i + 1 < raw.len ? raw.ptr[++*i] : '\0';
    const char *found = c != '\0' ? strchr(FROM, c) : NULL;
    if (found != NULL) return TO[found - FROM];
    if (c != 'x' || raw.len - *i < 3) test_failed(t->file, (int)t->line, "bad escape");
    memcpy(hex, raw.ptr + *i + 1, 2);
    *i += 2;
    return (char)strtol(hex, NULL, 16);
}

fk_str tsv_unescape(tsv *t, fk_str raw)
{
    char *start = t->unescaped + t->used;
    if (tsv_equal(raw, FK_STR("\\N"))) return (fk_str){ NULL, 0 };
    if (tsv_equal(raw, FK_STR("\\e"))) return FK_STR("");
    if (raw.len > TSV_TEXT_MAX - t->used) test_failed(t->file, (int)t->line, "row too long");
    for (size_t i = 0; i < raw.len; i++) {
        char c = raw.ptr[i];
        if (c == '\\') c = unescape_one(t, raw, &i);
        t->unescaped[t->used++] = c;
    }
    return (fk_str){ start, (size_t)(t->unescaped + t->used - start) };
}

fk_str tsv_text(tsv *t, const char *column)
{
    return tsv_unescape(t, tsv_raw(t, column));
}

size_t tsv_list(tsv *t, const char *column, fk_str *items, size_t max)
{
    fk_str raw = tsv_raw(t, column);
    size_t count = 0;
    if (tsv_equal(raw, FK_STR("[]"))) return 0;
    for (;;) {
        size_t len = 0;
        while (len < raw.len && raw.ptr[len] != '|') len++;
        if (count == max) test_failed(t->file, (int)t->line, "list too long");
        items[count++] = tsv_unescape(t, (fk_str){ raw.ptr, len });
        if (len == raw.len) return count;
        raw.ptr += len + 1;
        raw.len -= len + 1;
    }
}

bool tsv_equal(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool tsv_is(const tsv *t, const char *column, const char *text)
{
    return tsv_equal(tsv_raw(t, column), fk_str_of(text));
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "support/differences.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"

enum { LISTED_MAX = 128 };

typedef struct listed_row {
    char id[8];
    bool seen;
} listed_row;

static listed_row listed[LISTED_MAX];
static size_t listed_count;
static char why[512];

bool differs(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    return false;
}

static bool is_id(const char *at)
{
    return at[0] >= 'a' && at[0] <= 'z' && at[1] >= 'a' && at[1] <= 'z' && at[2] >= '0' &&
           at[2] <= '9' && strspn(at + 2, "0123456789") == 3;
}

/* Every id in a table of the page: two letters and three digits. */
static void read_listed(const char *page)
{
    char line[1024];
    FILE *in = fopen(page, "r");
    CHECK(in != NULL);
    listed_count = 0;
    memset(listed, 0, sizeof(listed));
    while (fgets(line, sizeof(line), in) != NULL) {
        for (char *at = line; line[0] == '|' && *at != '\0'; at++) {
            if (!is_id(at) || (at > line && at[-1] != ' ')) continue;
            CHECK(listed_count < LISTED_MAX);
            memcpy(listed[listed_count++].id, at, 5);
        }
    }
    fclose(in);
}

static listed_row *find_listed(fk_str id)
{
    for (size_t i = 0; i < listed_count; i++) {
        if (tsv_equal(id, fk_str_of(listed[i].id))) return &listed[i];
    }
    return NULL;
}

/* True when the row is as it should be. */
static bool judge(const tsv *row, bool holds)
{
    fk_str id = tsv_raw(row, "id");
    listed_row *difference = find_listed(id);
    bool quirk = tsv_has(row, "class") && tsv_is(row, "class", "quirk");
    const char *verdict = NULL;
    if (difference != NULL) difference->seen = true;
    if (difference != NULL && !quirk)
        verdict = "is listed as a difference, but is no quirk";
    else if (difference != NULL && holds)
        verdict = "is listed as a difference, but there is none";
    else if (difference == NULL && !holds)
        verdict = why;
    if (verdict != NULL) fprintf(stderr, "%.*s: %s\n", (int)id.len, id.ptr, verdict);
    return verdict == NULL;
}

void differences_run(const char *page, const char *file, size_t rows, const char *prefix,
                     row_fn holds)
{
    static tsv row;
    size_t wrong = 0;
    read_listed(page);
    tsv_open(&row, file);
    while (tsv_next(&row)) {
        CHECK(strncmp(tsv_raw(&row, "id").ptr, prefix, 2) == 0);
        if (!judge(&row, holds(&row))) wrong++;
    }
    for (size_t i = 0; i < listed_count; i++) {
        if (strncmp(listed[i].id, prefix, 2) != 0 || listed[i].seen) continue;
        fprintf(stderr, "%s: is listed as a difference, but is no row\n", listed[i].id);
        wrong++;
    }
    CHECK_U64(wrong, 0);
    CHECK(row.rows >= rows);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_HOST_LINE_H
#define FK_HOST_LINE_H

/*
 * One line of a log, as logfmt or as a JSON object, in a buffer that a pipe takes in one piece. A
 * value that does not fit is cut, a key for which there is no room at all is left out; the line is
 * well-formed in any case.
 */

#include "fraktor/log.h"

enum { FK_LINE_MAX = 4096 };

typedef struct fk_line {
    fk_log_format format;
    size_t len;
    char buf[FK_LINE_MAX];
} fk_line;

void fk__line_begin(fk_line *line, fk_log_format format);
/* Keys are short and plain. */
void fk__line_text(fk_line *line, const char *key, fk_str value);
/* Nothing for NULL or "". */
void fk__line_chars(fk_line *line, const char *key, const char *value);
void fk__line_number(fk_line *line, const char *key, uint64_t value);
/* Afterwards the line is len bytes at buf. */
void fk__line_end(fk_line *line);

#endif /* FK_HOST_LINE_H */

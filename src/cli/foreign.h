/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_FOREIGN_H
#define FK_CLI_FOREIGN_H

/*
 * Foreign bytes in our output. What a user or a peer gave may hold anything: a newline would make
 * two log lines of one, an escape sequence would move the cursor, and a stray byte would make the
 * JSON unreadable. Nothing of that leaves through here.
 */

#include <stdio.h>

#include <fraktor/base.h>

/* A JSON string with its quotes: always valid, always in one line. A byte that is not UTF-8 becomes
 * U+FFFD, because JSON has no way to say it. */
void cli_json_text(FILE *out, fk_str text);

/* For people: control bytes and stray bytes as \n, \t, \xHH; a backslash is doubled. */
void cli_show_text(FILE *out, fk_str text);

/* The text in one line and, in the next, a caret under the byte at. Of a long text only what is near
 * that byte is shown. */
void cli_show_caret(FILE *out, fk_str text, size_t at);

#endif /* FK_CLI_FOREIGN_H */

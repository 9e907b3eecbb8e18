/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fraktor path batch: another program on the other end of a pipe. It gets exactly one line for each
 * line it sends, in order and at once, whatever it sent; otherwise it could never tell which answer
 * belongs to which question.
 *
 * A line is "op<TAB>argument<TAB>argument". In a field \N is "absent" and \e the empty text; \\ \t
 * \n \r \xHH are single bytes.
 */

#include "path.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* Longer lines are refused, so that a stream without newlines cannot take all memory. */
enum { LINE_SIZE_MAX = 4 << 20 };

static const char TOO_LONG[] = "the line is longer than 4 MiB";

typedef struct batch_line {
    char *ptr; /* LINE_SIZE_MAX bytes */
    size_t len;
    bool is_cut;
} batch_line;

/* One line without its newline. False at the end. */
static bool take_line(FILE *in, batch_line *out)
{
    int c = getc(in);
    out->len = 0;
    out->is_cut = false;
    if (c == EOF) return false;
    for (; c != EOF && c != '\n'; c = getc(in)) {
        if (out->len < LINE_SIZE_MAX) {
            out->ptr[out->len++] = (char)c;
        } else {
            out->is_cut = true;
        }
    }
    return true;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The byte that the escape at text stands for, and the escape's length; -1 when it is none. */
static int unescape_byte(const char *text, const char *end, size_t *used)
{
    *used = 2;
    if (end - text < 2) return -1;
    switch (text[1]) {
    case '\\': return '\\';
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'x': break;
    default: return -1;
    }
    *used = 4;
    if (end - text < 4 || hex(text[2]) < 0 || hex(text[3]) < 0) return -1;
    return hex(text[2]) * 16 + hex(text[3]);
}

/* Rewrites [text, end) in place: no escape is shorter than what it stands for. Gives where it met
 * an escape that is none, or NULL. */
static const char *unescape(char *text, const char *end, fk_str *out)
{
    char *to = text;
    *out = (fk_str){ text, 0 };
    if (end - text == 2 && memcmp(text, "\\e", 2) == 0) return NULL;
    for (const char *from = text; from < end;) {
        size_t used = 1;
        int byte = *from == '\\' ? unescape_byte(from, end, &used) : (unsigned char)*from;
        if (byte < 0) return from;
        *to++ = (char)byte;
        from += used;
    }
    out->len = (size_t)(to - text);
    return NULL;
}

static bool is_absent(const char *text, const char *end)
{
    return end - text == 2 && memcmp(text, "\\N", 2) == 0;
}

static void refuse(path_answer *out, size_t at, const char *message)
{
    out->fault = (fk_path_fault){ FK_E_INVALID, -1, at, message };
}

/* Fills arg[] from the fields after the operation's name. False, with *out saying why, when the
 * line is not as it should be. */
static bool take_args(const path_op *op, const batch_line *line, size_t from, fk_str *arg,
                      path_answer *out)
{
    const char *end = line->ptr + line->len;
    size_t count = 0;

    for (char *text = line->ptr + from; text < end;) {
        text++; /* the tab */
        char *tab = memchr(text, '\t', (size_t)(end - text));
        const char *field_end = tab != NULL ? tab : end;
        bool absent = is_absent(text, field_end);
        if (!absent && count == op->arg_count) {
            refuse(out, (size_t)(text - line->ptr), "there are more arguments than it takes");
            return false;
        }
        const char *bad = absent ? NULL : unescape(text, field_end, &arg[count]);
        if (bad != NULL) {
            refuse(out, (size_t)(bad - line->ptr),
                   "not an escape: use \\N \\e \\\\ \\t \\n \\r \\xHH");
            return false;
        }
        if (absent && count < op->arg_count) break;
        count += !absent;
        if (tab == NULL) break;
        text = tab;
    }
    if (count == op->arg_count) return true;
    refuse(out, line->len, "an argument is missing");
    return false;
}

static void answer_line(const batch_line *line, const fk_path_options *options, FILE *out)
{
    path_answer answer = { .fault = { .err = FK_OK } };
    fk_str arg[PATH_ARGS_MAX] = { { NULL, 0 } };
    const char *tab = line->len > 0 ? memchr(line->ptr, '\t', line->len) : NULL;
    size_t len = tab != NULL ? (size_t)(tab - line->ptr) : line->len;
    const path_op *op = path_op_find((fk_str){ line->ptr, len });

    if (line->is_cut) {
        refuse(&answer, LINE_SIZE_MAX, TOO_LONG);
    } else if (op == NULL) {
        refuse(&answer, 0, "there is no such operation");
    } else if (take_args(op, line, len, arg, &answer)) {
        op->run(options, arg, &answer);
        path_print_json(out, op, &answer);
        return;
    }
    path_print_json(out, NULL, &answer); /* the line is at fault, not one of its arguments */
}

int path_batch(FILE *in, FILE *out, const fk_path_options *options)
{
    batch_line line = { .ptr = malloc(LINE_SIZE_MAX) };
    if (line.ptr == NULL) return cli_failed("path", "not enough memory");
    while (take_line(in, &line)) {
        answer_line(&line, options, out);
        if (fflush(out) != 0) break; /* main() says so */
    }
    free(line.ptr);
    return ferror(in) ? cli_failed("path", "cannot read from stdin") : CLI_OK;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_CLI_PATH_H
#define FK_CLI_PATH_H

/*
 * fraktor path: an operation takes one or two arguments and gives an answer, which is either a list
 * of named fields or a fault. The command line and the batch ask, text and JSON show; neither side
 * knows the other.
 */

#include <stdio.h>

#include <fraktor/path.h>

enum { PATH_ARGS_MAX = 2, PATH_FIELDS_MAX = 8, PATH_TEXT_MAX = 4096 };

typedef enum path_field_kind {
    PATH_FIELD_TEXT = 0,
    PATH_FIELD_NUMBER,
    PATH_FIELD_YES_NO,
    PATH_FIELD_SEGMENTS, /* those of the answer's path */
    PATH_FIELD_ABSENT,
} path_field_kind;

typedef struct path_field {
    const char *name;
    path_field_kind kind;
    fk_str text;
    uint64_t number;
} path_field;

typedef struct path_answer {
    fk_path_fault fault; /* err FK_OK: there is none */
    size_t fault_arg;    /* index of the argument that has it */
    path_field field[PATH_FIELDS_MAX];
    size_t field_count;
    /* What the fields borrow, besides the arguments. */
    fk_path path;
    char text[PATH_TEXT_MAX];
    char text_no_uid[PATH_TEXT_MAX];
} path_answer;

typedef struct path_op {
    const char *name;
    const char *args; /* "BASE EXPR" */
    const char *about;
    const char *example;
    size_t arg_count;
    void (*run)(const fk_path_options *options, const fk_str *arg, path_answer *out);
} path_op;

/* NULL when there is none of that name. */
const path_op *path_op_find(fk_str name);
/* The op-th operation, NULL after the last. */
const path_op *path_op_at(size_t index);

/* The error's short name; "usage" for one that is not about paths. */
const char *path_code(fk_err err);
/* One line. op may be NULL if there is a fault. */
void path_print_json(FILE *out, const path_op *op, const path_answer *answer);
/* A single field is printed alone, so that a script can take it; several make a table. */
void path_print_text(FILE *out, const path_answer *answer);

/* Answers the lines of in until its end. Gives the program's exit code. */
int path_batch(FILE *in, FILE *out, const fk_path_options *options);

#endif /* FK_CLI_PATH_H */

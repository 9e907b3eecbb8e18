/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the answers of fraktor path look: JSON for programs, text for people. */

#include "path.h"

#include "foreign.h"

static const char *yes_no(const path_field *field)
{
    return field->number != 0 ? "yes" : "no";
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void json_segments(FILE *out, const fk_path *path)
{
    fk_str segment;
    size_t cursor = 0;
    const char *comma = "";
    fputc('[', out);
    while (fk_path_next(path, &cursor, &segment)) {
        fputs(comma, out);
        cli_json_text(out, segment);
        comma = ",";
    }
    fputc(']', out);
}

static void json_field(FILE *out, const path_answer *answer, const path_field *field)
{
    fprintf(out, ",\"%s\":", field->name);
    switch (field->kind) {
    case PATH_FIELD_TEXT: cli_json_text(out, field->text); break;
    case PATH_FIELD_NUMBER: fprintf(out, "%llu", (unsigned long long)field->number); break;
    case PATH_FIELD_YES_NO: fputs(field->number != 0 ? "true" : "false", out); break;
    case PATH_FIELD_SEGMENTS: json_segments(out, &answer->path); break;
    case PATH_FIELD_ABSENT: fputs("null", out); break;
    }
}

static void json_fault(FILE *out, const path_op *op, const path_answer *answer)
{
    const fk_path_fault *fault = &answer->fault;
    fprintf(out, "{\"ok\":false,\"error\":\"%s\",\"at\":%zu,\"segment\":", path_code(fault->err),
            fault->at);
    if (fault->segment >= 0) {
        fprintf(out, "%d", (int)fault->segment);
    } else {
        fputs("null", out);
    }
    fputs(",\"message\":", out);
    cli_json_text(out, fk_str_of(fault->message));
    if (op != NULL && op->arg_count > 1) fprintf(out, ",\"arg\":%zu", answer->fault_arg + 1);
    fputs("}\n", out);
}

void path_print_json(FILE *out, const path_op *op, const path_answer *answer)
{
    if (answer->fault.err != FK_OK) {
        json_fault(out, op, answer);
        return;
    }
    fputs("{\"ok\":true", out);
    for (size_t i = 0; i < answer->field_count; i++) json_field(out, answer, &answer->field[i]);
    fputs("}\n", out);
}

const char *path_code(fk_err err)
{
    const char *code = fk_path_code(err);
    return code != NULL ? code : "usage";
}

/* ---- text --------------------------------------------------------------------------------- */

/* Each with its index, because that is how an error names a segment. */
static void text_segments(FILE *out, const fk_path *path, int indent)
{
    fk_str segment;
    size_t cursor = 0;
    int index = 0;
    for (; fk_path_next(path, &cursor, &segment); index++) {
        if (index > 0) fprintf(out, "%*s", indent, "");
        fprintf(out, "%d  ", index);
        cli_show_text(out, segment);
        fputc('\n', out);
    }
    if (index == 0) fputs("none: the root\n", out);
}

void path_print_text(FILE *out, const path_answer *answer)
{
    enum { INDENT = 18 };
    if (answer->field_count == 0) fputs("ok\n", out);
    for (size_t i = 0; i < answer->field_count; i++) {
        const path_field *field = &answer->field[i];
        if (answer->field_count > 1) fprintf(out, "%-*s", INDENT, field->name);
        switch (field->kind) {
        case PATH_FIELD_TEXT: cli_show_text(out, field->text); break;
        case PATH_FIELD_NUMBER: fprintf(out, "%llu", (unsigned long long)field->number); break;
        case PATH_FIELD_YES_NO: fputs(yes_no(field), out); break;
        case PATH_FIELD_SEGMENTS: text_segments(out, &answer->path, INDENT); continue;
        case PATH_FIELD_ABSENT: fputs("-", out); break;
        }
        fputc('\n', out);
    }
}

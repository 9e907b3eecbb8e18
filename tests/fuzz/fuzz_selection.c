/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is three lines: a base, an expression seen from it, and a name to match the expression's
 * patterns with. */

#include "fuzz/fuzz.h"
#include "property/path_model.h"

enum { FORM_MAX = 2048, MODEL_FORM_MAX = 8192, ROOM = MODEL_TEXT_MAX /* always enough */ };

static void check_expression(const fk_path_options *options, fk_str text, fk_str name)
{
    fk_path_fault fault;
    fk_expression expression;
    fk_element element;
    size_t cursor = 0, count = 0;

    fk_err err = fk_expression_parse(options, text, &expression, &fault);
    if (err != FK_OK) {
        fuzz_check_fault(&fault, err, text);
        return;
    }
    for (; fk_expression_next(&expression, &cursor, &element); count++) {
        FUZZ_CHECK(element.text.len > 0);
        FUZZ_CHECK(element.text.ptr >= text.ptr);
        FUZZ_CHECK(element.text.ptr + element.text.len <= text.ptr + text.len);
        bool matches = fk_path_match(options->rules, element.text, name);
        /* Two or three stars are as much as the naive matcher can take. */
        if (element.text.len > 8 || name.len > 16) continue;
        FUZZ_CHECK(matches == model_match(options->rules, element.text, name));
    }
    FUZZ_CHECK(count == expression.count);
}

static void check_split(const fk_path_options *options, fk_str text)
{
    fk_path_fault fault;
    fk_expression expression;
    fk_element element;
    size_t cursor = 0, count = 0;
    fk_err err = fk_expression_split(options, text, &expression, &fault);
    if (err != FK_OK) {
        fuzz_check_fault(&fault, err, text);
        return;
    }
    while (fk_expression_next(&expression, &cursor, &element)) count++;
    FUZZ_CHECK(count == expression.count);
}

static void check_model(fk_str base_text, fk_str text, fk_err err, const fk_path_fault *fault,
                        const fk_path *path)
{
    char ours[FORM_MAX], expected[MODEL_FORM_MAX];
    model_path base = model_parse(base_text);
    model_path model = model_resolve(&base, text);
    size_t len = 0;
    if (model.err == FK_OK) len = model_format(&model, true, expected, sizeof(expected));
    if (len > MODEL_TEXT_MAX) model = (model_path){ .err = FK_E_LIMIT, .at = MODEL_AT_ANY };
    FUZZ_CHECK(model_agrees(&model, err, fault));
    if (err != FK_OK) return;
    fk_str mine = { ours, fk_path_format(path, FK_FORM_FULL, ours, sizeof(ours)) };
    FUZZ_CHECK(fuzz_same(mine, (fk_str){ expected, len }));
}

static void check_resolve(const fk_path_options *options, fk_str base_text, fk_str text)
{
    char buf[ROOM];
    fk_path_fault fault;
    fk_path base, path;

    if (fk_path_parse(options, base_text, &base, NULL) != FK_OK) return;
    fk_err err = fk_path_resolve(options, &base, text, FK_BUF(buf), &path, &fault);
    if (err != FK_OK) fuzz_check_fault(&fault, err, text);
    if (options->rules == FK_RULES_FRAKTOR) check_model(base_text, text, err, &fault, &path);
    err = fk_path_child(options, &base, text, FK_BUF(buf), &path, &fault);
    if (err != FK_OK) {
        fuzz_check_fault(&fault, err, text);
        return;
    }
    fk_path parent = fk_path_parent(&path);
    FUZZ_CHECK(fk_path_equal(&parent, &base));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fk_path_options OPTIONS[] = {
        { .rules = FK_RULES_FRAKTOR },
        { .rules = FK_RULES_PEKKO },
    };
    fk_str rest = fuzz_text(data, size);
    fk_str base = fuzz_line(&rest);
    fk_str expression = fuzz_line(&rest);
    fk_str name = fuzz_line(&rest);
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++) {
        check_expression(&OPTIONS[i], expression, name);
        check_split(&OPTIONS[i], expression);
        check_resolve(&OPTIONS[i], base, expression);
    }
    return 0;
}

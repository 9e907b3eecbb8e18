/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as a path, a name, a selection and a pattern: nothing is read outside, faults are inside
 * the text, and whatever is accepted keeps its promises. The first byte chooses rules and limits. */

#include <stdlib.h>
#include <string.h>

#include "core/uri.h"
#include "fraktor/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

enum { BUFFER = 4096 };

static void check_fault(fk_err err, const fk_path_fault *fault, fk_str text)
{
    REQUIRE(fault->err == err);
    REQUIRE(fault->at <= text.len);
    REQUIRE(fault->message != NULL);
    REQUIRE(fk_path_code(err) != NULL);
}

/* The canonical text reads as the same path and writes as the same text. */
static void check_path(const fk_path_options *options, const fk_path *path)
{
    static char first[BUFFER], second[BUFFER];
    /* Without the limits: a base is not checked again, so it may be over them. */
    fk_path_options wide = { .rules = options->rules, .path_max = BUFFER, .utf8 = options->utf8 };
    fk_path again;
    size_t len = fk_path_format(path, FK_FORM_FULL, first, sizeof(first));
    REQUIRE(len < sizeof(first));
    REQUIRE(fk_path_parse(&wide, (fk_str){ first, len }, &again, NULL) == FK_OK);
    REQUIRE(fk_path_format(&again, FK_FORM_FULL, second, sizeof(second)) == len);
    REQUIRE(memcmp(first, second, len) == 0);
    REQUIRE(fk_path_equal(path, &again));
    REQUIRE(fk_path_compare(path, &again) == 0);
    REQUIRE(fk_path_hash(path) == fk_path_hash(&again));
    REQUIRE(path->depth == again.depth);
    REQUIRE(path->uid == again.uid);
    for (size_t i = 0; i < len; i++) REQUIRE(first[i] >= 0x21 && first[i] <= 0x7e);
    fk_path up = *path;
    for (uint32_t i = 0; i < path->depth; i++) {
        REQUIRE(up.depth == path->depth - i);
        REQUIRE(fk_path_name(&up).len > 0);
        up = fk_path_parent(&up);
    }
    REQUIRE(fk_path_top(&up) == FK_TOP_ROOT);
}

static void fuzz_parse(const fk_path_options *options, fk_str text)
{
    fk_path path;
    fk_path_fault fault;
    fk_err err = fk_path_parse(options, text, &path, &fault);
    if (err == FK_OK)
        check_path(options, &path);
    else
        check_fault(err, &fault, text);
    fk_uri uri;
    size_t at = 0;
    bool good = fk__uri_parse(text, &uri, &at) == FK_URI_OK;
    REQUIRE(at <= text.len);
    /* Every path of ours is an URI by the RFCs, as far as they know of system names and zones. */
    if (err == FK_OK && path.host.len != 0 && options->rules == FK_RULES_FRAKTOR) REQUIRE(good);
}

static void fuzz_resolve(const fk_path_options *options, fk_str text)
{
    static char buf[BUFFER];
    static const char *const BASES[] = { "fraktor.tcp://s@h:1/user/a/b#7",
                                         "pekko://s/user/a%20b/$c#-7" };
    fk_path base, path;
    fk_path_fault fault;
    bool pekko = options->rules == FK_RULES_PEKKO;
    fk_path_options plain = { .rules = options->rules };
    REQUIRE(fk_path_parse(&plain, fk_str_of(BASES[pekko]), &base, NULL) == FK_OK);
    fk_err err = fk_path_resolve(options, &base, text, FK_BUF(buf), &path, &fault);
    if (err == FK_OK)
        check_path(options, &path);
    else
        check_fault(err, &fault, text);
    err = fk_path_child(options, &base, text, FK_BUF(buf), &path, &fault);
    if (err == FK_OK)
        check_path(options, &path);
    else
        check_fault(err, &fault, text);
}

static void fuzz_expression(const fk_path_options *options, fk_str text)
{
    fk_expression e;
    fk_path_fault fault;
    for (int split = 0; split < 2; split++) {
        fk_err err = split ? fk_expression_split(options, text, &e, &fault)
                           : fk_expression_parse(options, text, &e, &fault);
        size_t cursor = 0;
        uint32_t count = 0;
        fk_element element;
        if (err != FK_OK) {
            check_fault(err, &fault, text);
            continue;
        }
        while (fk_expression_next(&e, &cursor, &element)) {
            count++;
            REQUIRE(element.text.ptr >= text.ptr);
            REQUIRE(element.text.ptr + element.text.len <= text.ptr + text.len);
        }
        REQUIRE(count == e.count);
    }
}

/* A name that is accepted matches itself, whether or not it has asterisks. */
static void fuzz_name(const fk_path_options *options, fk_str text)
{
    fk_path_fault fault;
    fk_err err = fk_path_check_name(options, text, &fault);
    if (err != FK_OK) check_fault(err, &fault, text);
    if (err == FK_OK) REQUIRE(fk_path_match(options->rules, text, text));
    size_t half = text.len / 2;
    (void)fk_path_match(options->rules, (fk_str){ text.ptr, half },
                        (fk_str){ text.ptr + half, text.len - half });
    err = fk_path_check_host(options, text, &fault);
    if (err != FK_OK) check_fault(err, &fault, text);
    err = fk_path_check_system(options, text, &fault);
    if (err != FK_OK) check_fault(err, &fault, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fk_path_options options = { 0 };
    if (size == 0) return 0;
    options.rules = (data[0] & 1) != 0 ? FK_RULES_PEKKO : FK_RULES_FRAKTOR;
    options.utf8 = (data[0] & 2) != 0;
    if ((data[0] & 4) != 0) options.path_max = 24;
    if ((data[0] & 8) != 0) options.segment_max = 5;
    if ((data[0] & 16) != 0) options.depth_max = 2;
    /* A block of its own, so that the sanitizer sees both ends. */
    char *copy = malloc(size);
    if (copy == NULL) return 0;
    fk_str text = { copy, size - 1 };
    memcpy(copy, data + 1, size - 1);
    copy = realloc(copy, size - 1 > 0 ? size - 1 : 1);
    text.ptr = copy;
    fuzz_parse(&options, text);
    fuzz_resolve(&options, text);
    fuzz_expression(&options, text);
    fuzz_name(&options, text);
    free(copy);
    return 0;
}

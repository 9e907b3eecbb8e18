/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The input is a path, and a name of each kind, under all rules. */

#include "core/uri.h"
#include "fuzz/fuzz.h"
#include "property/path_model.h"

enum { FORM_MAX = 2048 };

static fk_str format(const fk_path *path, fk_path_form form, char buf[FORM_MAX])
{
    size_t len = fk_path_format(path, form, buf, FORM_MAX);
    FUZZ_CHECK(len < FORM_MAX);
    FUZZ_CHECK(buf[len] == '\0');
    return (fk_str){ buf, len };
}

/* What is written is read back as the same, whatever the rules. */
static void check_path(const fk_path_options *options, const fk_path *path)
{
    char first[FORM_MAX], second[FORM_MAX];
    fk_path_options wide = *options;
    fk_path again;
    fk_str segment;
    size_t cursor = 0, count = 0;

    wide.path_max = FORM_MAX; /* the root's canonical text is a slash longer than it may be */
    fk_str text = format(path, FK_FORM_FULL, first);
    FUZZ_CHECK(fk_path_parse(&wide, text, &again, NULL) == FK_OK);
    FUZZ_CHECK(fk_path_equal(path, &again));
    FUZZ_CHECK(fk_path_compare(path, &again) == 0);
    FUZZ_CHECK(fk_path_hash(path) == fk_path_hash(&again));
    FUZZ_CHECK(again.uid == path->uid);
    FUZZ_CHECK(fuzz_same(format(&again, FK_FORM_FULL, second), text));
    for (size_t i = 0; i < text.len; i++) FUZZ_CHECK(text.ptr[i] > 0x20 && text.ptr[i] < 0x7f);
    while (fk_path_next(path, &cursor, &segment)) count++;
    FUZZ_CHECK(count == path->depth);
    fk_path parent = fk_path_parent(path);
    FUZZ_CHECK(fk_path_equal(path, &parent) == (count == 0));
}

static void check_model(fk_str text, fk_err err, const fk_path_fault *fault, const fk_path *path)
{
    char ours[FORM_MAX], expected[FORM_MAX];
    model_path model = model_parse(text);
    FUZZ_CHECK(model_agrees(&model, err, fault));
    if (err != FK_OK) return;
    size_t len = model_format(&model, true, expected, sizeof(expected));
    FUZZ_CHECK(fuzz_same(format(path, FK_FORM_FULL, ours), (fk_str){ expected, len }));
}

/* Every path of ours with a host is an URI by the RFCs. (They know neither Pekko's zones nor system
 * names in the place of hosts.) */
static void check_uri(const fk_path_options *options, fk_str text, const fk_path *path)
{
    fk_uri uri;
    if (path->host.len == 0 || options->rules != FK_RULES_FRAKTOR) return;
    FUZZ_CHECK(fk__uri_parse(text, &uri, NULL) == FK_URI_OK);
    FUZZ_CHECK(fuzz_same(uri.host, path->host));
    FUZZ_CHECK(fuzz_same(uri.userinfo, path->system));
}

static void check_names(const fk_path_options *options, fk_str text)
{
    fk_path_fault fault;
    fk_err err = fk_path_check_name(options, text, &fault);
    if (err != FK_OK) fuzz_check_fault(&fault, err, text);
    /* What is accepted matches itself, also when it has asterisks. */
    if (err == FK_OK) FUZZ_CHECK(fk_path_match(options->rules, text, text));
    err = fk_path_check_system(options, text, &fault);
    if (err != FK_OK) fuzz_check_fault(&fault, err, text);
    err = fk_path_check_host(options, text, &fault);
    if (err != FK_OK) fuzz_check_fault(&fault, err, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const fk_path_options OPTIONS[] = {
        { .rules = FK_RULES_FRAKTOR },
        { .rules = FK_RULES_FRAKTOR, .utf8 = true },
        { .rules = FK_RULES_PEKKO },
        { .rules = FK_RULES_FRAKTOR, .path_max = 24, .segment_max = 5, .depth_max = 2 },
    };
    fk_str text = fuzz_text(data, size);
    bool escapes = text.len > 0 && memchr(text.ptr, '%', text.len) != NULL;
    for (size_t i = 0; i < sizeof(OPTIONS) / sizeof(OPTIONS[0]); i++) {
        if (OPTIONS[i].utf8 && !escapes) continue; /* it would be the first once more */
        fk_path_fault fault;
        fk_path path;
        fk_err err = fk_path_parse(&OPTIONS[i], text, &path, &fault);
        if (err != FK_OK) {
            fuzz_check_fault(&fault, err, text);
        } else {
            check_path(&OPTIONS[i], &path);
            check_uri(&OPTIONS[i], text, &path);
        }
        if (i == 0) check_model(text, err, &fault, &path);
        check_names(&OPTIONS[i], text);
    }
    return 0;
}

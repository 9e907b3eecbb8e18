/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold for all texts that are read as paths or names, and for all paths. */

#include <string.h>

#include "property/path_model.h"
#include "property/path_source.h"
#include "support/property.h"

enum { FORM_MAX = 2048, ERR_COUNT = 32 };

static fk_path_options options_of(fk_rules rules)
{
    return (fk_path_options){ .rules = rules };
}

static bool same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static fk_str format(const fk_path *path, fk_path_form form, char buf[FORM_MAX])
{
    size_t len = fk_path_format(path, form, buf, FORM_MAX);
    PROPERTY_CHECK(len < FORM_MAX);
    PROPERTY_CHECK(strlen(buf) == len);
    return (fk_str){ buf, len };
}

/* What every refusal owes, whatever it is about. */
static void check_fault(const fk_path_fault *fault, fk_err err, size_t len)
{
    PROPERTY_CHECK(fault->err == err);
    PROPERTY_CHECK(fault->at <= len);
    PROPERTY_CHECK(fault->segment >= -1);
    PROPERTY_CHECK(fault->segment < (int32_t)len);
    PROPERTY_CHECK(fault->message != NULL && fault->message[0] != '\0');
    PROPERTY_CHECK(fk_path_code(err) != NULL);
}

/* Parses at the edge of readable memory; the text stays in that place. */
static fk_err parse_at_edge(property *p, size_t place, fk_rules rules, fk_str text, fk_path *out)
{
    fk_path_options options = options_of(rules);
    fk_path_fault fault;
    fk_path untouched;
    fk_str copy = edge_copy(place, text);

    property_input(p, "path", copy);
    memset(&untouched, 0xab, sizeof(untouched));
    memset(out, 0xab, sizeof(*out));
    fk_err err = fk_path_parse(&options, copy, out, &fault);
    if (err == FK_OK) return FK_OK;
    check_fault(&fault, err, text.len);
    PROPERTY_CHECK(memcmp(out, &untouched, sizeof(untouched)) == 0); /* as base.h promises */
    return err;
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static uint64_t seen[ERR_COUNT];

static void model_round(property *p)
{
    source s;
    fk_path path;
    fk_path_fault fault;
    char ours[FORM_MAX], expected[FORM_MAX];
    fk_path_options options = options_of(FK_RULES_FRAKTOR);

    source_init(&s, &p->random);
    fk_str text = edge_copy(0, source_uri(&s, SOURCE_FRAKTOR));
    property_input(p, "path", text);
    model_path model = model_parse(text);
    fk_err err = fk_path_parse(&options, text, &path, &fault);
    PROPERTY_CHECK(model_agrees(&model, err, &fault));
    seen[err]++;
    if (err != FK_OK) {
        check_fault(&fault, err, text.len);
        return;
    }
    PROPERTY_CHECK(same(path.system, model.system));
    PROPERTY_CHECK(same(path.host, model.host));
    PROPERTY_CHECK(path.port == model.port);
    PROPERTY_CHECK(path.depth == model.depth);
    PROPERTY_CHECK(path.uid == model.uid);
    PROPERTY_CHECK((path.scheme == FK_SCHEME_TCP) == model.is_tcp);
    PROPERTY_CHECK(path.rules == FK_RULES_FRAKTOR);
    size_t len = model_format(&model, true, expected, sizeof(expected));
    PROPERTY_CHECK(same(format(&path, FK_FORM_FULL, ours), (fk_str){ expected, len }));
    len = model_format(&model, false, expected, sizeof(expected));
    PROPERTY_CHECK(same(format(&path, FK_FORM_NO_UID, ours), (fk_str){ expected, len }));
}

/* A source that never gets past the scheme would prove nothing. */
TEST(path_parse_agrees_with_the_model)
{
    static const fk_err ERRORS[] = { FK_E_EMPTY,   FK_E_SCHEME,    FK_E_NO_SYSTEM,
                                     FK_E_SYSTEM,  FK_E_AUTHORITY, FK_E_NAME,
                                     FK_E_PERCENT, FK_E_UID,       FK_E_LIMIT };
    property_run("path_parse_agrees_with_the_model", model_round);
    if (property_runs() < 10000) return;
    CHECK(seen[FK_OK] > property_runs() / 5);
    for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++) CHECK(seen[ERRORS[i]] > 0);
}

static void name_round(property *p)
{
    source s;
    fk_path_fault fault;
    fk_path path;
    char uri[SOURCE_MAX + 32] = "fraktor://s/user/";
    size_t start = strlen(uri);

    source_init(&s, &p->random);
    fk_str name = edge_copy(0, source_name(&s));
    property_input(p, "name", name);
    model_path model = model_check_name(name);
    fk_err err = fk_path_check_name(NULL, name, &fault);
    PROPERTY_CHECK(err == model.err);
    if (err != FK_OK) {
        check_fault(&fault, err, name.len);
        if (model.at != MODEL_AT_ANY) PROPERTY_CHECK(fault.at == model.at);
        return;
    }
    memcpy(uri + start, name.ptr, name.len);
    PROPERTY_CHECK(fk_path_parse(NULL, (fk_str){ uri, start + name.len }, &path, NULL) == FK_OK);
    PROPERTY_CHECK(path.depth == 2);
    PROPERTY_CHECK(same(fk_path_name(&path), name));
}

TEST(path_check_name_agrees_with_the_model)
{
    property_run("path_check_name_agrees_with_the_model", name_round);
}

/* Limits other than the default ones, and text that is anything: nothing but no crash is asked. */
static void bytes_round(property *p)
{
    source s;
    fk_path path;
    fk_path_fault fault;
    fk_path_options options = {
        .rules = test_random_below(&p->random, 2) != 0 ? FK_RULES_PEKKO : FK_RULES_FRAKTOR,
        .path_max = (uint32_t)test_random_below(&p->random, 60),
        .segment_max = (uint32_t)test_random_below(&p->random, 8),
        .depth_max = (uint32_t)test_random_below(&p->random, 4),
        .utf8 = test_random_below(&p->random, 2) != 0,
    };
    source_init(&s, &p->random);
    bool is_uri = test_random_below(&p->random, 2) != 0;
    fk_str drawn = is_uri ? source_uri(&s, (source_scheme)options.rules) : source_bytes(&s, 40);
    fk_str text = edge_copy(0, drawn);
    property_input(p, "text", text);
    fk_err err = fk_path_parse(&options, text, &path, &fault);
    if (err != FK_OK) {
        check_fault(&fault, err, text.len);
    } else {
        PROPERTY_CHECK(options.path_max == 0 || text.len <= options.path_max);
        PROPERTY_CHECK(options.depth_max == 0 || path.depth <= options.depth_max);
    }
    err = fk_path_check_name(&options, text, &fault);
    if (err != FK_OK) check_fault(&fault, err, text.len);
    err = fk_path_check_system(&options, text, &fault);
    if (err != FK_OK) check_fault(&fault, err, text.len);
    err = fk_path_check_host(&options, text, &fault);
    if (err != FK_OK) check_fault(&fault, err, text.len);
}

TEST(path_reading_survives_any_bytes)
{
    property_run("path_reading_survives_any_bytes", bytes_round);
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static void round_trip_round(property *p)
{
    source s;
    fk_path path, again;
    char first[FORM_MAX], second[FORM_MAX];
    fk_rules rules = p->seed % 2 == 0 ? FK_RULES_FRAKTOR : FK_RULES_PEKKO;
    fk_path_options options = options_of(rules);

    source_init(&s, &p->random);
    if (parse_at_edge(p, 0, rules, source_uri(&s, (source_scheme)rules), &path) != FK_OK) return;
    fk_str text = format(&path, FK_FORM_FULL, first);
    property_input(p, "canonical", text);
    options.path_max = FORM_MAX; /* the root's canonical text is a slash longer */
    PROPERTY_CHECK(fk_path_parse(&options, text, &again, NULL) == FK_OK);
    PROPERTY_CHECK(same(again.system, path.system));
    PROPERTY_CHECK(same(again.host, path.host));
    PROPERTY_CHECK(again.uid == path.uid);
    PROPERTY_CHECK(again.depth == path.depth);
    PROPERTY_CHECK(again.port == path.port);
    PROPERTY_CHECK(again.rules == path.rules);
    PROPERTY_CHECK(again.scheme == path.scheme);
    PROPERTY_CHECK(fk_path_equal(&again, &path));
    PROPERTY_CHECK(same(format(&again, FK_FORM_FULL, second), text));
}

TEST(path_canonical_text_is_read_back_the_same)
{
    property_run("path_canonical_text_is_read_back_the_same", round_trip_round);
}

static void cut_round(property *p)
{
    source s;
    fk_path path;
    char whole[FORM_MAX];
    fk_path_form form = (fk_path_form)test_random_below(&p->random, 4);

    source_init(&s, &p->random);
    fk_str text = source_uri(&s, SOURCE_FRAKTOR);
    if (parse_at_edge(p, 0, FK_RULES_FRAKTOR, text, &path) != FK_OK) return;
    fk_str full = format(&path, form, whole);
    size_t size = (size_t)test_random_below(&p->random, full.len + 2);
    char *buf = edge_buffer(1, size);
    PROPERTY_CHECK(fk_path_format(&path, form, buf, size) == full.len);
    if (size == 0) return;
    size_t kept = size - 1 < full.len ? size - 1 : full.len;
    PROPERTY_CHECK(buf[kept] == '\0');
    PROPERTY_CHECK(memcmp(buf, full.ptr, kept) == 0);
}

TEST(path_format_stays_inside_its_buffer)
{
    property_run("path_format_stays_inside_its_buffer", cut_round);
}

/* ---- parts ------------------------------------------------------------------------------------------ */

static void parts_round(property *p)
{
    source s;
    fk_path path;
    fk_str segment = { NULL, 0 }, last = { NULL, 0 };
    char joined[FORM_MAX], local[FORM_MAX], root_text[FORM_MAX];
    size_t cursor = 0, len = 0, count = 0;
    fk_rules rules = p->seed % 2 == 0 ? FK_RULES_FRAKTOR : FK_RULES_PEKKO;

    source_init(&s, &p->random);
    if (parse_at_edge(p, 0, rules, source_uri(&s, (source_scheme)rules), &path) != FK_OK) return;
    while (fk_path_next(&path, &cursor, &segment)) {
        PROPERTY_CHECK(segment.len > 0);
        PROPERTY_CHECK(memchr(segment.ptr, '/', segment.len) == NULL);
        joined[len++] = '/';
        memcpy(joined + len, segment.ptr, segment.len);
        len += segment.len;
        count++;
        last = segment;
    }
    PROPERTY_CHECK(!fk_path_next(&path, &cursor, &segment)); /* and it stays at the end */
    PROPERTY_CHECK(count == path.depth);
    PROPERTY_CHECK(same(fk_path_name(&path), last));
    if (count == 0) joined[len++] = '/';
    PROPERTY_CHECK(same(format(&path, FK_FORM_LOCAL, local), (fk_str){ joined, len }));

    fk_path parent = fk_path_parent(&path);
    fk_path root = fk_path_root(&path);
    fk_str address = format(&path, FK_FORM_ADDRESS, local);
    fk_str whole_root = format(&root, FK_FORM_FULL, root_text);
    PROPERTY_CHECK(same(address, (fk_str){ root_text, whole_root.len - 1 }));
    fk_path marked;
    PROPERTY_CHECK(parent.uid == 0);
    PROPERTY_CHECK(parent.depth == (count == 0 ? 0 : count - 1));
    PROPERTY_CHECK(root.depth == 0 && root.uid == 0);
    PROPERTY_CHECK(fk_path_top(&root) == FK_TOP_ROOT);
    PROPERTY_CHECK((fk_path_top(&path) == FK_TOP_ROOT) == (count == 0));
    fk_err err = fk_path_with_uid(&path, 77, &marked);
    PROPERTY_CHECK(err == (count == 0 ? FK_E_UID : FK_OK));
    PROPERTY_CHECK(err != FK_OK || (marked.uid == 77 && fk_path_equal(&marked, &path)));
    size_t cut = count == 0 ? 0 : last.len + 1;
    PROPERTY_CHECK(count < 2 ||
                   same(format(&parent, FK_FORM_LOCAL, local), (fk_str){ joined, len - cut }));
}

TEST(path_parts_make_up_the_path)
{
    property_run("path_parts_make_up_the_path", parts_round);
}

/* ---- comparing -------------------------------------------------------------------------------------- */

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

static void compare_round(property *p)
{
    source s;
    fk_path path[3];
    model_path model[3];
    fk_str text[3];
    fk_rules rules = p->seed % 4 == 0 ? FK_RULES_PEKKO : FK_RULES_FRAKTOR;

    source_init(&s, &p->random);
    for (size_t i = 0; i < 3; i++) {
        bool fresh = i == 0 || test_random_below(&p->random, 3) == 0;
        fk_str drawn = fresh ? source_uri(&s, (source_scheme)rules) : source_variant(&s, text[0]);
        if (parse_at_edge(p, i, rules, drawn, &path[i]) != FK_OK) return;
        text[i] = p->input[i].text;
        if (rules == FK_RULES_FRAKTOR) model[i] = model_parse(text[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            bool equal = fk_path_equal(&path[i], &path[k]);
            int order = fk_path_compare(&path[i], &path[k]);
            PROPERTY_CHECK(equal == (order == 0));
            PROPERTY_CHECK(sign(order) == -sign(fk_path_compare(&path[k], &path[i])));
            PROPERTY_CHECK(!equal || fk_path_hash(&path[i]) == fk_path_hash(&path[k]));
            if (rules == FK_RULES_FRAKTOR) {
                PROPERTY_CHECK(equal == model_equal(&model[i], &model[k]));
            }
            for (size_t m = 0; m < 3; m++) {
                bool rises = order <= 0 && fk_path_compare(&path[k], &path[m]) <= 0;
                PROPERTY_CHECK(!rises || fk_path_compare(&path[i], &path[m]) <= 0);
            }
        }
    }
}

TEST(path_comparisons_agree_with_each_other)
{
    property_run("path_comparisons_agree_with_each_other", compare_round);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What must hold for all relative paths, children, patterns and generated names. */

#include <string.h>

#include "property/path_model.h"
#include "property/path_source.h"
#include "support/property.h"

/* The default path_max is always enough, so the buffers are of just that size. */
enum { FORM_MAX = 2048, MODEL_FORM_MAX = 8192, ROOM = MODEL_TEXT_MAX };

static bool same(fk_str a, fk_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static fk_str format(const fk_path *path, fk_path_form form, char buf[FORM_MAX])
{
    size_t len = fk_path_format(path, form, buf, FORM_MAX);
    PROPERTY_CHECK(len < FORM_MAX);
    return (fk_str){ buf, len };
}

static fk_str first_segment(const fk_path *path)
{
    fk_str segment = { NULL, 0 };
    size_t cursor = 0;
    return fk_path_next(path, &cursor, &segment) ? segment : (fk_str){ NULL, 0 };
}

/* Draws until it has a path; both live until the round's end. */
static fk_path draw_path(property *p, source *s, size_t place, fk_rules rules)
{
    fk_path_options options = { .rules = rules };
    fk_path path;
    for (;;) {
        fk_str text = edge_copy(place, source_uri(s, (source_scheme)rules));
        if (fk_path_parse(&options, text, &path, NULL) != FK_OK) continue;
        property_input(p, "base", text);
        return path;
    }
}

/* The result borrows its buffer only: what it was made from may go. */
static void wipe(size_t place, fk_str text)
{
    memset(edge_buffer(place, text.len), '!', text.len);
}

/* ---- relative paths --------------------------------------------------------------------------------- */

static uint64_t resolved, escaped;

static void resolve_round(property *p)
{
    source s;
    fk_path path;
    fk_path_fault fault;
    char ours[FORM_MAX], expected[MODEL_FORM_MAX];
    fk_buf buf = { edge_buffer(2, ROOM), ROOM };

    source_init(&s, &p->random);
    fk_path base = draw_path(p, &s, 0, FK_RULES_FRAKTOR);
    model_path base_model = model_parse(p->input[0].text);
    fk_str expression = edge_copy(1, source_expression(&s, SOURCE_FRAKTOR));
    property_input(p, "expression", expression);

    model_path model = model_resolve(&base_model, expression);
    size_t len = 0;
    if (model.err == FK_OK) len = model_format(&model, true, expected, sizeof(expected));
    if (len > MODEL_TEXT_MAX) {
        model = (model_path){ .err = FK_E_LIMIT, .segment = -1, .at = MODEL_AT_ANY };
    }
    fk_err err = fk_path_resolve(NULL, &base, expression, buf, &path, &fault);
    PROPERTY_CHECK(model_agrees(&model, err, &fault));
    escaped += err == FK_E_ESCAPE;
    if (err != FK_OK) {
        PROPERTY_CHECK(fault.err == err);
        PROPERTY_CHECK(fault.at <= expression.len);
        PROPERTY_CHECK(fault.message != NULL);
        return;
    }
    resolved++;
    wipe(0, p->input[0].text);
    wipe(1, expression);
    PROPERTY_CHECK(same(format(&path, FK_FORM_FULL, ours), (fk_str){ expected, len }));
    PROPERTY_CHECK(path.depth == model.depth);
}

TEST(path_resolve_agrees_with_the_model)
{
    property_run("path_resolve_agrees_with_the_model", resolve_round);
    if (property_runs() < 10000) return;
    CHECK(resolved > property_runs() / 5);
    CHECK(escaped > property_runs() / 50);
}

/* With too little room it says so, and writes nothing beyond. */
static void room_round(property *p)
{
    source s;
    fk_path path, cut;
    fk_path_fault fault;
    char whole[ROOM], first[FORM_MAX], second[FORM_MAX];

    source_init(&s, &p->random);
    fk_path base = draw_path(p, &s, 0, FK_RULES_FRAKTOR);
    fk_str expression = edge_copy(1, source_expression(&s, SOURCE_FRAKTOR));
    property_input(p, "expression", expression);
    if (fk_path_resolve(NULL, &base, expression, FK_BUF(whole), &path, NULL) != FK_OK) return;
    fk_str text = format(&path, FK_FORM_FULL, first);
    size_t size = (size_t)test_random_below(&p->random, text.len + 2);
    fk_buf buf = { edge_buffer(2, size), size };
    fk_err err = fk_path_resolve(NULL, &base, expression, buf, &cut, &fault);
    PROPERTY_CHECK(err == FK_OK || err == FK_E_LIMIT);
    PROPERTY_CHECK(err == FK_OK || fault.at <= expression.len);
    if (err == FK_OK) PROPERTY_CHECK(same(format(&cut, FK_FORM_FULL, second), text));
}

TEST(path_resolve_stays_inside_its_buffer)
{
    property_run("path_resolve_stays_inside_its_buffer", room_round);
}

/* No way leads from one guardian to another except by saying so with "/". */
static void guardian_round(property *p)
{
    source s;
    fk_path path;
    fk_buf buf = { edge_buffer(2, ROOM), ROOM };

    source_init(&s, &p->random);
    fk_path base = draw_path(p, &s, 0, FK_RULES_FRAKTOR);
    fk_str expression = edge_copy(1, source_expression(&s, SOURCE_FRAKTOR));
    property_input(p, "expression", expression);
    if (expression.len == 0 || expression.ptr[0] == '/' || base.depth == 0) return;
    if (fk_path_resolve(NULL, &base, expression, buf, &path, NULL) != FK_OK) return;
    if (fk_path_parse(NULL, expression, &base, NULL) == FK_OK) return; /* a complete path */
    PROPERTY_CHECK(path.depth >= 1);
    PROPERTY_CHECK(same(first_segment(&path), first_segment(&base)));
    PROPERTY_CHECK(same(path.system, base.system));
    PROPERTY_CHECK(same(path.host, base.host));
    PROPERTY_CHECK(path.port == base.port);
}

TEST(path_resolve_never_leaves_the_guardian)
{
    property_run("path_resolve_never_leaves_the_guardian", guardian_round);
}

/* ---- expressions ------------------------------------------------------------------------------------ */

static void expression_round(property *p)
{
    source s;
    fk_expression parsed;
    fk_element element;
    fk_path_fault fault;
    size_t cursor = 0, count = 0;
    fk_rules rules = p->seed % 2 == 0 ? FK_RULES_FRAKTOR : FK_RULES_PEKKO;
    fk_path_options options = { .rules = rules };

    source_init(&s, &p->random);
    fk_str text = edge_copy(0, source_expression(&s, (source_scheme)rules));
    property_input(p, "expression", text);
    fk_err err = fk_expression_parse(&options, text, &parsed, &fault);
    if (err != FK_OK) {
        PROPERTY_CHECK(fault.err == err && fault.at <= text.len && fault.message != NULL);
        PROPERTY_CHECK(fk_path_code(err) != NULL);
        return;
    }
    while (fk_expression_next(&parsed, &cursor, &element)) {
        bool wild = memchr(element.text.ptr, '*', element.text.len) != NULL ||
                    memchr(element.text.ptr, '?', element.text.len) != NULL;
        bool up = same(element.text, FK_STR(".."));
        PROPERTY_CHECK(element.text.len > 0);
        PROPERTY_CHECK(memchr(element.text.ptr, '/', element.text.len) == NULL);
        PROPERTY_CHECK((element.kind == FK_ELEMENT_PATTERN) == wild);
        PROPERTY_CHECK((element.kind == FK_ELEMENT_PARENT) == up);
        count++;
    }
    PROPERTY_CHECK(!fk_expression_next(&parsed, &cursor, &element));
    PROPERTY_CHECK(count == parsed.count);
    PROPERTY_CHECK(text.len == 0 || text.ptr[0] != '/' || parsed.anchor == FK_ANCHOR_ROOT);
    /* What is relative is the same where the anchor is known. */
    if (parsed.anchor != FK_ANCHOR_SELF) return;
    PROPERTY_CHECK(fk_expression_split(&options, text, &parsed, NULL) == FK_OK);
    PROPERTY_CHECK(parsed.count == count);
}

TEST(expression_elements_are_what_they_look_like)
{
    property_run("expression_elements_are_what_they_look_like", expression_round);
}

/* ---- children --------------------------------------------------------------------------------------- */

static void child_round(property *p)
{
    source s;
    fk_path child;
    fk_path_fault fault;
    char parent_text[FORM_MAX], child_text[FORM_MAX], expected[FORM_MAX];
    fk_buf buf = { edge_buffer(2, ROOM), ROOM };
    fk_rules rules = p->seed % 2 == 0 ? FK_RULES_FRAKTOR : FK_RULES_PEKKO;
    fk_path_options options = { .rules = rules };

    source_init(&s, &p->random);
    fk_path parent = draw_path(p, &s, 0, rules);
    fk_str name = edge_copy(1, source_name(&s));
    property_input(p, "name", name);
    fk_err err = fk_path_child(&options, &parent, name, buf, &child, &fault);
    if (err != FK_OK) {
        PROPERTY_CHECK(fault.err == err && fault.at <= name.len && fault.message != NULL);
        return;
    }
    fk_path up = fk_path_parent(&child);
    size_t hash = 0;
    while (hash < name.len && name.ptr[hash] != '#') hash++;
    PROPERTY_CHECK(fk_path_name(&child).ptr != name.ptr);
    PROPERTY_CHECK(child.depth == parent.depth + 1);
    PROPERTY_CHECK(fk_path_equal(&up, &parent));
    PROPERTY_CHECK(!fk_path_equal(&child, &parent));
    PROPERTY_CHECK(same(fk_path_name(&child), (fk_str){ name.ptr, hash }));

    size_t written = child.uid != 0 ? name.len : hash; /* pekko's "#0" is none */
    fk_str text = format(&parent, FK_FORM_NO_UID, parent_text);
    size_t len = parent.depth == 0 ? text.len - 1 : text.len; /* the root ends in a slash */
    memcpy(expected, text.ptr, len);
    expected[len] = '/';
    memcpy(expected + len + 1, name.ptr, written);
    fk_str whole = format(&child, FK_FORM_FULL, child_text);
    PROPERTY_CHECK(same(whole, (fk_str){ expected, len + 1 + written }));
    PROPERTY_CHECK(fk_path_parse(&options, whole, &parent, NULL) == FK_OK); /* within all limits */
    PROPERTY_CHECK(fk_path_equal(&parent, &child));
}

TEST(path_child_has_its_parent)
{
    property_run("path_child_has_its_parent", child_round);
}

/* Taken apart and put together again, it is the same path. */
static void build_round(property *p)
{
    source s;
    fk_path built;
    fk_str names[MODEL_DEPTH_MAX];
    fk_buf buf = { edge_buffer(2, ROOM), ROOM };
    char first[FORM_MAX], second[FORM_MAX];
    size_t cursor = 0, count = 0;

    source_init(&s, &p->random);
    fk_path path = draw_path(p, &s, 0, FK_RULES_FRAKTOR);
    fk_path_top_kind top = fk_path_top(&path);
    if (top != FK_TOP_USER && top != FK_TOP_SYSTEM) return;
    while (fk_path_next(&path, &cursor, &names[count])) count++;
    fk_path_parts parts = {
        .scheme = (fk_scheme)path.scheme,
        .system = path.system,
        .host = path.host,
        .port = path.port,
        .guardian = top == FK_TOP_USER ? FK_GUARDIAN_USER : FK_GUARDIAN_SYSTEM,
        .names = names + 1,
        .count = count - 1,
        .uid = path.uid,
    };
    PROPERTY_CHECK(fk_path_build(NULL, &parts, buf, &built, NULL) == FK_OK);
    PROPERTY_CHECK(fk_path_equal(&built, &path));
    /* "%75ser" is the guardian, too, but only as read. */
    if (!same(names[0], FK_STR("user")) && !same(names[0], FK_STR("system"))) return;
    PROPERTY_CHECK(same(format(&built, FK_FORM_FULL, first), format(&path, FK_FORM_FULL, second)));
}

TEST(path_build_undoes_taking_apart)
{
    property_run("path_build_undoes_taking_apart", build_round);
}

/* ---- patterns and generated names ------------------------------------------------------------------- */

static void match_round(property *p)
{
    source s, t;
    source_init(&s, &p->random);
    source_init(&t, &p->random);
    fk_str pattern = edge_copy(0, source_pattern(&s));
    fk_str name = edge_copy(1, source_pattern(&t));
    property_input(p, "pattern", pattern);
    property_input(p, "name", name);
    fk_rules rules = p->seed % 2 == 0 ? FK_RULES_FRAKTOR : FK_RULES_PEKKO;
    PROPERTY_CHECK(fk_path_match(rules, pattern, name) == model_match(rules, pattern, name));
}

TEST(path_match_agrees_with_the_naive_matcher)
{
    property_run("path_match_agrees_with_the_naive_matcher", match_round);
}

static void autoname_round(property *p)
{
    static const char DIGITS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+~";
    uint64_t n = test_random_next(&p->random) >> test_random_below(&p->random, 64);
    uint64_t back = 0;
    char *name = edge_buffer(0, FK_AUTONAME_MAX);
    size_t len = fk_path_autoname(n, name);

    PROPERTY_CHECK(len >= 2 && len < FK_AUTONAME_MAX);
    property_input(p, "name", (fk_str){ name, len });
    PROPERTY_CHECK(name[0] == '$');
    for (size_t i = len - 1; i > 0; i--) {
        const char *digit = strchr(DIGITS, name[i]);
        PROPERTY_CHECK(digit != NULL && *digit != '\0');
        back = back * 64 + (uint64_t)(digit - DIGITS);
    }
    PROPERTY_CHECK(back == n);
    PROPERTY_CHECK(fk_path_check_name(NULL, (fk_str){ name, len }, NULL) == FK_E_RESERVED);
}

TEST(path_autoname_is_the_number_it_came_from)
{
    property_run("path_autoname_is_the_number_it_came_from", autoname_round);
}

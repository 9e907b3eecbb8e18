/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What Apache Pekko does with selections and paths in a running system, row by row, under its
 * rules: the tree of tests/vectors/selection_resolve.tsv, a message and an identify message for
 * each row, and a look at everybody who got something.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/select.h"
#include "core/spawn.h"
#include "support/differences.h"
#include "support/rig.h"

#define VECTORS     FK_SOURCE_DIR "/tests/vectors/"
#define DIFFERENCES FK_SOURCE_DIR "/docs/pekko-differences.md"

enum { ITEMS_MAX = 16, TEXT_MAX = 256 };

static const fk_path_options PEKKO = { .rules = FK_RULES_PEKKO };

/* ---- lists of texts: in any order --------------------------------------------------------------- */

typedef struct list {
    size_t count;
    char item[ITEMS_MAX][TEXT_MAX];
} list;

static void list_add(list *l, const char *front, const char *text)
{
    CHECK(l->count < ITEMS_MAX);
    CHECK(snprintf(l->item[l->count], TEXT_MAX, "%s%s", front, text) < TEXT_MAX);
    l->count++;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void list_join(list *l, char *out)
{
    qsort(l->item, l->count, TEXT_MAX, by_text);
    *out = '\0';
    for (size_t i = 0; i < l->count; i++) {
        out += sprintf(out, "%s%s", i > 0 ? "|" : "", l->item[i]);
    }
}

static bool same_list(tsv *row, const char *column, list *actual)
{
    static char is[ITEMS_MAX * TEXT_MAX], wanted[ITEMS_MAX * TEXT_MAX];
    fk_str items[ITEMS_MAX];
    list expected = { 0 };
    size_t count = tsv_list(row, column, items, ITEMS_MAX);
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_MAX];
        snprintf(text, sizeof(text), "%.*s", (int)items[i].len, items[i].ptr);
        list_add(&expected, "", text);
    }
    list_join(actual, is);
    list_join(&expected, wanted);
    return strcmp(is, wanted) == 0 || differs("%s: %s instead of %s", column, is, wanted);
}

/* ---- the tree ------------------------------------------------------------------------------------ */

typedef struct world {
    rig r;
    fk_ref collector;
    list delivered, dead, answers;
} world;

static world w;

/* "/user/c1" for "pekko://sys/user/c1#201"; a text that is no path of this system is for nobody, as
 * what Pekko sends to /deadLetters: there the letter has forgotten what was asked for. */
static void local_part(const char *text, char *out)
{
    fk_path path;
    bool own = strncmp(text, "pekko://sys/", 12) == 0;
    if (!own || fk_path_parse(&PEKKO, fk_str_of(text), &path, NULL) != FK_OK) {
        snprintf(out, TEXT_MAX, "%s", own ? text + 11 : "/deadLetters");
        return;
    }
    CHECK(fk_path_format(&path, FK_FORM_LOCAL, out, TEXT_MAX) < TEXT_MAX);
}

static void local_part_of(fk_ref ref, char *out)
{
    char text[TEXT_MAX];
    CHECK(fk_path_of(w.r.sys, ref, text, sizeof(text)) > 0);
    local_part(text, out);
}

static void on_letter(void *user, const fk_dead_letter *letter)
{
    char text[TEXT_MAX], local[TEXT_MAX];
    (void)user;
    CHECK(letter->type == &fk_type_num);
    CHECK(fk_dead_letter_path(w.r.sys, letter, text, sizeof(text)) < sizeof(text));
    local_part(text, local);
    /* A guardian has got it, if only to say that it does not know what to do with it. */
    list_add(letter->reason == FK_REASON_UNHANDLED ? &w.delivered : &w.dead, "", local);
}

static fk_err citizen_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    char local[TEXT_MAX];
    (void)state;
    CHECK(FK_AS(num, msg) != NULL);
    CHECK(fk_ref_equal(msg->sender, w.collector));
    local_part_of(fk_self(ctx), local);
    list_add(&w.delivered, "", local);
    return FK_OK;
}

static fk_err collector_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    char local[TEXT_MAX];
    const fk_identity *identity = FK_AS(fk_identity, msg);
    (void)state;
    (void)ctx;
    CHECK(identity != NULL);
    CHECK_U64(identity->id, 77);
    if (fk_ref_is_none(identity->ref)) {
        list_add(&w.answers, "none", "");
        return FK_OK;
    }
    local_part_of(identity->ref, local);
    list_add(&w.answers, "some:", local);
    return FK_OK;
}

static fk_cell *spawn_at(fk_local *local, fk_cell *parent, const char *name, uint64_t uid)
{
    static const fk_props CITIZEN = { .receive = citizen_receive };
    fk_ref ref;
    CHECK_OK(fk__spawn(local, parent, fk_str_of(name), &uid, &CITIZEN, &ref));
    return fk__cell_resolve(w.r.sys, ref);
}

static void world_start(void)
{
    static const fk_props COLLECTOR = { .receive = collector_receive };
    rig_start_with(
        &w.r, (fk_system_config){ .name = "sys", .paths = PEKKO, .on_dead_letter = on_letter });
    fk_system *sys = w.r.sys;
    fk_cell *user = sys->top.user;
    fk_local *local = fk__local_enter(sys);
    fk_cell *a = spawn_at(local, user, "a", 101);
    spawn_at(local, a, "b1", 102);
    fk_cell *b2 = spawn_at(local, a, "b2", 103);
    fk_cell *c = spawn_at(local, b2, "c", 104);
    spawn_at(local, c, "d", 105);
    spawn_at(local, user, "c1", 201);
    fk_cell *c2 = spawn_at(local, user, "c2", 202);
    spawn_at(local, c2, "c21", 203);
    spawn_at(local, user, "x%20y", 301);
    spawn_at(local, user, "", 401); /* "$a" */
    spawn_at(local, sys->top.system, "log1", 501);
    spawn_at(local, sys->top.temp, "echo$a", 0);
    CHECK_OK(
        fk__spawn(local, sys->top.system, FK_STR("collector"), NULL, &COLLECTOR, &w.collector));
    fk__local_leave(local);
}

static void world_forget(void)
{
    rig_run(&w.r);
    w.delivered.count = w.dead.count = w.answers.count = 0;
}

static fk_ref actor_at(fk_str local)
{
    char text[TEXT_MAX];
    fk_ref ref = FK_REF_NONE;
    snprintf(text, sizeof(text), "pekko://sys%.*s", (int)local.len, local.ptr);
    CHECK_OK(fk_resolve(w.r.sys, fk_str_of(text), &ref, NULL));
    return ref;
}

/* ---- selection_resolve.tsv ------------------------------------------------------------------------- */

static fk_err send_row(tsv *row, fk_out msg)
{
    fk_ref base = actor_at(tsv_text(row, "base"));
    fk_str selection = tsv_text(row, "selection");
    if (!tsv_is(row, "op", "anchored")) {
        CHECK(tsv_is(row, "op", "actorSelection"));
        return fk_select_send_from(w.r.sys, base, selection, w.collector, msg);
    }
    fk_expression e;
    CHECK_OK(fk_expression_split(&PEKKO, selection, &e, NULL));
    fk_local *local = fk__local_enter(w.r.sys);
    fk_err err =
        fk__select(local, base, &e, w.collector, msg, (fk_select_terms){ .fans_out = false });
    fk__local_leave(local);
    return err;
}

static bool selection_holds(tsv *row)
{
    world_forget();
    fk_err err = send_row(row, FK_MSG(num, 1));
    rig_run(&w.r);
    if (tsv_is(row, "result", "error:uid-format")) {
        return err == FK_E_UID || differs("%s", fk_err_name(err));
    }
    CHECK(tsv_is(row, "result", "ok"));
    if (err != FK_OK) return differs("%s", fk_err_name(err));
    if (w.answers.count != 0) return differs("an answer to a message");
    if (!same_list(row, "delivered_to", &w.delivered)) return false;
    if (!same_list(row, "dead_letter_recipients", &w.dead)) return false;
    world_forget();
    err = send_row(row, FK_IDENTIFY(77));
    rig_run(&w.r);
    if (err != FK_OK) return differs("identify: %s", fk_err_name(err));
    if (w.delivered.count + w.dead.count != 0) return differs("identify was taken for a message");
    return same_list(row, "identify_replies", &w.answers);
}

TEST(vectors_system_selection_resolve)
{
    world_start();
    differences_run(DIFFERENCES, VECTORS "selection_resolve.tsv", 90, "sr", selection_holds);
    rig_stop(&w.r);
}

/* ---- resolve_ref.tsv ------------------------------------------------------------------------------- */

/* The same with the uid. */
static bool same_ref(tsv *row, fk_ref ref)
{
    char text[TEXT_MAX];
    size_t len = fk_path_of(w.r.sys, ref, text, sizeof(text));
    fk_str expected = tsv_text(row, "ref_path");
    fk_str actual = { text + 11, len - 11 };
    if (len > 11 && memcmp(text, "pekko://sys", 11) == 0 && tsv_equal(actual, expected))
        return true;
    return differs("%s", text);
}

static bool ref_holds(tsv *row)
{
    fk_ref ref = FK_REF_NONE;
    fk_err err = fk_resolve(w.r.sys, tsv_text(row, "path_string"), &ref, NULL);
    if (err != FK_OK && !fk_ref_is_none(ref)) return differs("written in spite of an error");
    if (tsv_is(row, "result", "error:uid-format")) {
        return err == FK_E_UID || differs("%s", fk_err_name(err));
    }
    if (tsv_is(row, "result", "empty")) {
        return err == FK_E_PID_UNKNOWN || differs("%s", fk_err_name(err));
    }
    if (tsv_is(row, "result", "found")) {
        return err == FK_OK ? same_ref(row, ref) : differs("%s", fk_err_name(err));
    }
    /* Pekko has no other way to say that it cannot; we say why. */
    CHECK(tsv_is(row, "result", "deadLetters"));
    return err != FK_OK || same_ref(row, ref);
}

TEST(vectors_system_resolve_ref)
{
    world_start();
    differences_run(DIFFERENCES, VECTORS "resolve_ref.tsv", 29, "rr", ref_holds);
    rig_stop(&w.r);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Workload path-resolve: from paths to refs and back, among a hundredth, a tenth and all of N live
 * actors /user/aX/bY. All of it happens on the main thread, while the actors sleep.
 *
 * The times are of a set of at most 250 actors spread over all that live, asked again and
 * again, so that they show what the work costs and not how far away the memory is; medians of
 * several passes. The run's own time is the other thing: every actor resolved once, in an order
 * that no cache likes.
 */

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PARENTS = 10,
    STEPS = 3, /* N/100, N/10, N */
    STEP_UNIT = 100 * PARENTS,
    SET_MAX = 250,
    PASSES = 9,
    PASS_OPS = 20000,
    TEXT_SIZE = 64
};

typedef struct path_tree {
    bench_run *run;
    fk_ref parent[PARENTS];
    uint64_t all;  /* leaves there will be */
    uint64_t live; /* leaves there are; leaf i is child i / PARENTS of parent i % PARENTS */
    fk_ref *leaf;  /* all of them */
    char (*text)[TEXT_SIZE]; /* their canonical paths */
    uint64_t set[SET_MAX];   /* leaves that are asked again and again */
    uint64_t set_count;
} path_tree;

/* ---- the tree ----------------------------------------------------------------------------- */

typedef struct {
    path_tree *tree;
    uint64_t parent, first, end; /* children [first, end) of that parent */
} path_grow;
FK_MESSAGE(path_grow);

static fk_err path_leaf_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_unhandled(ctx, msg);
}

static fk_err path_parent_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_props props = { .receive = path_leaf_receive };
    const path_grow *grow = FK_AS(path_grow, msg);
    fk_err err = FK_OK;
    (void)state;
    if (grow == NULL) return fk_unhandled(ctx, msg);
    for (uint64_t i = grow->first; i < grow->end && err == FK_OK; i++) {
        char name[24];
        int len = snprintf(name, sizeof name, "b%llu", (unsigned long long)i);
        fk_ref *out = &grow->tree->leaf[i * PARENTS + grow->parent];
        err = fk_spawn_child(ctx, (fk_str){ name, (size_t)len }, &props, out);
    }
    bench_run *run = grow->tree->run;
    if (err == FK_OK && atomic_fetch_add(&run->count, 1) + 1 == PARENTS) bench_done(run);
    return err;
}

static fk_err tree_plant(path_tree *tree)
{
    const fk_props props = { .receive = path_parent_receive };
    fk_err err = FK_OK;
    for (int i = 0; i < PARENTS && err == FK_OK; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "a%d", i);
        err = fk_spawn(tree->run->sys, (fk_str){ name, (size_t)len }, &props, &tree->parent[i]);
    }
    return err;
}

static fk_err tree_grow(path_tree *tree, uint64_t live)
{
    bench_run *run = tree->run;
    atomic_store(&run->count, 0);
    bench_begin(run);
    for (uint64_t i = 0; i < PARENTS; i++) {
        fk_send(run->sys, tree->parent[i],
                FK_MSG(path_grow, tree, i, tree->live / PARENTS, live / PARENTS));
    }
    fk_err err = bench_wait(run);
    tree->live = live;
    return err;
}

/* ---- what is measured: each returns false when a result was wrong --------------------------- */

static bool resolve_is_right(path_tree *tree, uint64_t leaf)
{
    fk_ref found;
    fk_str text = { tree->text[leaf], strlen(tree->text[leaf]) };
    return fk_resolve(tree->run->sys, text, &found, NULL) == FK_OK &&
           fk_ref_equal(found, tree->leaf[leaf]);
}

/* The path must be the one that the place in the tree says; it is written down. */
static bool path_is_right(path_tree *tree, uint64_t leaf)
{
    char expected[TEXT_SIZE];
    char *text = tree->text[leaf];
    size_t len = fk_path_of(tree->run->sys, tree->leaf[leaf], text, TEXT_SIZE);
    int want = snprintf(expected, sizeof expected, "fraktor://bench/user/a%llu/b%llu#",
                        (unsigned long long)(leaf % PARENTS), (unsigned long long)(leaf / PARENTS));
    return len > (size_t)want && len < TEXT_SIZE && memcmp(text, expected, (size_t)want) == 0;
}

/* Already known: compared with what it was, by length and end, to leave the clock alone. */
static bool path_is_same(path_tree *tree, uint64_t leaf)
{
    char text[TEXT_SIZE];
    const char *was = tree->text[leaf];
    size_t len = fk_path_of(tree->run->sys, tree->leaf[leaf], text, sizeof text);
    return len < sizeof text && was[len] == '\0' && text[len - 1] == was[len - 1];
}

static bool parse_is_right(path_tree *tree, uint64_t leaf)
{
    fk_path path;
    (void)tree;
    (void)leaf;
    return fk_path_parse(NULL, FK_STR("fraktor.tcp://sys@host:2552/user/a/b#42"), &path, NULL) ==
               FK_OK &&
           path.uid == 42 && path.depth == 3 && path.port == 2552;
}

/* ---- measuring ------------------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double ns[PASSES])
{
    qsort(ns, PASSES, sizeof ns[0], by_value);
    return ns[PASSES / 2];
}

/* Of this thread alone: on a machine that others use, too, a pass is often interrupted. */
static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Nanoseconds of one, for all of the set in turn; negative: something was wrong. */
static double measure_set(path_tree *tree, bool (*is_right)(path_tree *tree, uint64_t leaf))
{
    double ns[PASSES];
    uint64_t rounds = 1;
    while (rounds * tree->set_count < PASS_OPS) rounds *= 2;
    for (int pass = -1; pass < PASSES; pass++) { /* the first one is to warm up */
        uint64_t wrong = 0;
        double begun = thread_seconds();
        for (uint64_t round = 0; round < rounds; round++) {
            for (uint64_t i = 0; i < tree->set_count; i++) wrong += !is_right(tree, tree->set[i]);
        }
        double seconds = thread_seconds() - begun;
        if (wrong != 0) return -1;
        if (pass >= 0) ns[pass] = seconds * 1e9 / (double)(rounds * tree->set_count);
    }
    return median(ns);
}

/* The first time that anybody asks for a path: other actors in each pass. */
static double measure_first(path_tree *tree, uint64_t from)
{
    double ns[PASSES];
    uint64_t count = (tree->live - from) / (PASSES + 1);
    char text[TEXT_SIZE];
    if (count > SET_MAX) count = SET_MAX;
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t wrong = 0;
        const fk_ref *leaf = &tree->leaf[from + (uint64_t)pass * count];
        double begun = thread_seconds();
        for (uint64_t i = 0; i < count; i++) {
            wrong += fk_path_of(tree->run->sys, leaf[i], text, sizeof text) < 20;
        }
        ns[pass] = (thread_seconds() - begun) * 1e9 / (double)count;
        if (wrong != 0) return -1;
    }
    return median(ns);
}

static fk_err note_ns(bench_run *run, const char *name, double ns)
{
    if (ns < 0) return bench_fail(run, "%s: a result is wrong", name);
    bench_note_add(run, name, ns);
    return FK_OK;
}

static fk_err measure_step(path_tree *tree, int step, uint64_t from)
{
    static const char *const NAMES[STEPS][3] = {
        { "path_to_ref_ns_1_of_100", "ref_to_path_first_ns_1_of_100", "ref_to_path_ns_1_of_100" },
        { "path_to_ref_ns_1_of_10", "ref_to_path_first_ns_1_of_10", "ref_to_path_ns_1_of_10" },
        { "path_to_ref_ns", "ref_to_path_first_ns", "ref_to_path_ns" },
    };
    double first = measure_first(tree, from);
    tree->set_count = tree->live < SET_MAX ? tree->live : SET_MAX;
    if (tree->set_count == 0) return bench_fail(tree->run, "there is nobody to ask");
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < tree->set_count; i++) {
        tree->set[i] = i * tree->live / tree->set_count;
        wrong += !path_is_right(tree, tree->set[i]);
    }
    if (wrong != 0) return bench_fail(tree->run, "%llu paths are wrong", (unsigned long long)wrong);
    fk_err err = note_ns(tree->run, NAMES[step][0], measure_set(tree, resolve_is_right));
    if (err == FK_OK) err = note_ns(tree->run, NAMES[step][1], first);
    if (err == FK_OK) err = note_ns(tree->run, NAMES[step][2], measure_set(tree, path_is_same));
    return err;
}

/* Every actor, far apart from the one before: a step that has no divisor in common with N. */
static fk_err resolve_all(path_tree *tree)
{
    bench_run *run = tree->run;
    uint64_t wrong = 0, leaf = 0;
    for (uint64_t i = 0; i < tree->all; i++) wrong += !path_is_right(tree, i);
    if (wrong != 0) return bench_fail(run, "%llu paths are wrong", (unsigned long long)wrong);
    bench_begin(run);
    for (uint64_t i = 0; i < tree->all; i++) {
        wrong += !resolve_is_right(tree, leaf);
        leaf = (leaf + 999983) % tree->all; /* a prime */
    }
    bench_done(run);
    if (wrong != 0) return bench_fail(run, "%llu refs are wrong", (unsigned long long)wrong);
    return bench_wait(run);
}

static fk_err run_path_resolve(bench_run *run)
{
    path_tree *tree = calloc(1, sizeof *tree);
    if (tree == NULL) return FK_E_NOMEM;
    run->data = tree;
    tree->run = run;
    tree->all = run->result.ops / STEP_UNIT * STEP_UNIT;
    if (tree->all == 0) tree->all = STEP_UNIT;
    run->result.ops = tree->all;
    tree->leaf = calloc(tree->all, sizeof *tree->leaf);
    tree->text = calloc(tree->all, sizeof *tree->text);
    if (tree->leaf == NULL || tree->text == NULL) return FK_E_NOMEM;
    fk_err err = tree_plant(tree);
    for (uint64_t step = 0, part = 100; step < STEPS && err == FK_OK; step++, part /= 10) {
        uint64_t from = tree->live;
        err = tree_grow(tree, tree->all / part);
        if (err == FK_OK) err = measure_step(tree, (int)step, from);
    }
    if (err == FK_OK) err = note_ns(run, "parse_ns", measure_set(tree, parse_is_right));
    return err == FK_OK ? resolve_all(tree) : err;
}

static void finish_path_resolve(bench_run *run)
{
    path_tree *tree = run->data;
    if (tree == NULL) return;
    free(tree->leaf);
    free(tree->text);
    free(tree);
}

const bench_workload BENCH_PATH_RESOLVE = {
    .name = "path-resolve",
    .unit = "actors",
    .ops = 100000,
    .about = "paths to refs and back among many actors; ns of each, every actor once",
    .run = run_path_resolve,
    .finish = finish_path_resolve,
};

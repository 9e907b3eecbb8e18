/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Item 7 of the first hour: a leaf of a three-level tree fails under one-for-one, all-for-one and
 * escalation. The tree is printed before and after, with how many messages each actor remembers. */

#include <fraktor/fraktor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int n;
} work;
FK_MESSAGE(work);

typedef struct {
    int n;
} fail;
FK_MESSAGE(fail);

/* Goes down the tree; everybody writes a line. */
typedef struct {
    int n;
} show;
FK_MESSAGE(show);

enum { LEVELS = 3, ACTORS = 7, LINE = 96 };

/* Its init bytes: made anew from these at each restart. */
typedef struct {
    int level;
    fk_strategy strategy; /* of the middle level: the one under trial */
    int seen;             /* messages */
} node;

static char line[ACTORS][LINE];
static int lines;

static fk_err node_receive(fk_ctx *ctx, void *state, const fk_msg *msg);

static fk_err node_start(fk_ctx *ctx, void *state)
{
    static const char *const NAMES[] = { "left", "right" };
    const node *self = state;
    fk_err err = FK_OK;
    for (int i = 0; i < 2 && self->level < LEVELS && err == FK_OK; i++) {
        fk_ref ref;
        node child = { self->level + 1, self->strategy, 0 };
        fk_props props = {
            .receive = node_receive, .start = node_start, .state_size = sizeof(node), .init = &child
        };
        if (child.level == LEVELS - 1) props.strategy = self->strategy;
        err = fk_spawn_child(ctx, fk_str_of(NAMES[i]), &props, &ref);
    }
    return err;
}

static void write_line(fk_ctx *ctx, const node *self)
{
    char path[LINE];
    fk_path_of(fk_system_of(ctx), fk_self(ctx), path, sizeof path);
    path[strcspn(path, "#")] = '\0';
    snprintf(line[lines++ % ACTORS], LINE, "%s %d", strstr(path, "/user"), self->seen);
}

static fk_err node_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    node *self = state;
    fk_ref child[2];
    if (FK_AS(fail, msg) != NULL) return FK_E_INVALID;
    if (FK_AS(work, msg) != NULL) self->seen++;
    if (FK_AS(show, msg) != NULL) write_line(ctx, self);
    size_t count =
        FK_AS(work, msg) != NULL || FK_AS(show, msg) != NULL ? fk_children(ctx, child, 2) : 0;
    for (size_t i = 0; i < count; i++) {
        if (FK_AS(work, msg) != NULL)
            fk_tell(ctx, child[i], FK_MSG(work, 1));
        else
            fk_tell(ctx, child[i], FK_MSG(show, 1));
    }
    return FK_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void run(fk_system *sys)
{
    while (fk_host_run_once(sys, 0) != 0) {
    }
}

/* Prints the tree; true when the actors remember what they should, in the order of their paths. */
static bool print_tree(fk_system *sys, fk_ref top, const char *when, const int expected[ACTORS])
{
    bool ok;
    lines = 0;
    fk_send(sys, top, FK_MSG(show, 1));
    run(sys);
    ok = lines == ACTORS;
    qsort(line, ACTORS, LINE, by_text);
    printf("%s\n", when);
    for (int i = 0; i < ACTORS; i++) {
        printf("  %s\n", line[i]);
        ok = ok && atoi(strrchr(line[i], ' ') + 1) == expected[i];
    }
    return ok;
}

static bool try_strategy(const char *name, fk_strategy strategy, const int expected[ACTORS])
{
    static const int ONES[ACTORS] = { 1, 1, 1, 1, 1, 1, 1 };
    fk_system *sys;
    fk_ref top, leaf;
    node first = { 1, strategy, 0 };
    fk_props props = {
        .receive = node_receive, .start = node_start, .state_size = sizeof(node), .init = &first
    };
    fk_system_config config = { .name = "hour", .workers = FK_WORKERS_NONE };
    printf("== %s\n", name);
    if (fk_system_start(&config, &sys) != FK_OK) return false;
    bool ok = fk_spawn(sys, FK_STR("top"), &props, &top) == FK_OK;
    run(sys);
    fk_send(sys, top, FK_MSG(work, 1));
    run(sys);
    ok = print_tree(sys, top, "before", ONES) && ok;
    ok = fk_resolve(sys, FK_STR("fraktor://hour/user/top/left/left"), &leaf, NULL) == FK_OK && ok;
    fk_send(sys, leaf, FK_MSG(fail, 1));
    run(sys);
    ok = print_tree(sys, top, "after /user/top/left/left has failed", expected) && ok;
    ok = fk_is_alive(sys, fk_guardian(sys, FK_GUARDIAN_SYSTEM)) && ok;
    return fk_system_stop(sys) == FK_OK && ok;
}

int main(void)
{
    /* top, left, left/left, left/right, right, right/left, right/right */
    static const int ONE[ACTORS] = { 1, 1, 0, 1, 1, 1, 1 };
    static const int ALL[ACTORS] = { 1, 1, 0, 0, 1, 1, 1 };
    static const int UP[ACTORS] = { 1, 0, 0, 0, 1, 1, 1 };
    bool ok = try_strategy("one for one", (fk_strategy){ .kind = FK_ONE_FOR_ONE }, ONE);
    ok = try_strategy("all for one", (fk_strategy){ .kind = FK_ALL_FOR_ONE }, ALL) && ok;
    ok = try_strategy("escalate", (fk_strategy){ .decide = fk_decide_escalate }, UP) && ok;
    return ok ? 0 : 1;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Dumps of the tree of actors and lists of them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fraktor/ask.h"
#include "support/rig.h"

enum { CHILDREN = 3, TEXT_MAX = 1 << 16 };

typedef struct page {
    size_t len, lines;
    char text[TEXT_MAX];
} page;

static void page_write(void *user, const char *text, size_t len)
{
    page *p = user;
    for (size_t i = 0; i < len; i++) p->lines += text[i] == '\n';
    size_t room = sizeof(p->text) - 1 - p->len;
    if (len > room) len = room;
    memcpy(p->text + p->len, text, len);
    p->len += len;
    p->text[p->len] = '\0';
}

static fk_writer page_writer(page *p)
{
    memset(p, 0, sizeof(*p));
    return (fk_writer){ page_write, p };
}

static fk_err parent_start(fk_ctx *ctx, void *state)
{
    (void)state;
    for (int i = 0; i < CHILDREN; i++) {
        char name[16];
        fk_ref ref;
        snprintf(name, sizeof(name), "c%d", i);
        CHECK_OK(
            fk_spawn_child(ctx, fk_str_of(name), &(fk_props){ .receive = doer_receive }, &ref));
    }
    return FK_OK;
}

static fk_ref parent_spawn(rig *r, const char *name)
{
    fk_ref ref;
    const fk_props props = { .receive = doer_receive, .start = parent_start, .state_size = 1000 };
    CHECK_OK(fk_spawn(r->sys, fk_str_of(name), &props, &ref));
    rig_run(r);
    return ref;
}

static page shown;

TEST(inspect_tree_shows_children_in_the_order_they_were_made)
{
    rig r;
    rig_start(&r);
    parent_spawn(&r, "first");
    parent_spawn(&r, "second");
    fk_writer writer = page_writer(&shown);
    size_t count = fk_dump_tree(r.sys, NULL, &writer);
    CHECK_U64(count, shown.lines);
    CHECK(strncmp(shown.text, "/ idle children=", 16) == 0);
    const char *at = shown.text;
    static const char *const NAMES[] = { "\n  user idle children=2\n",
                                         "\n    first#",
                                         "\n      c0#",
                                         "\n      c1#",
                                         "\n      c2#",
                                         "\n    second#",
                                         "\n      c0#" };
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        at = strstr(at, NAMES[i]);
        if (at == NULL) test_failed(__FILE__, __LINE__, "no %s in\n%s", NAMES[i], shown.text);
    }
    CHECK(strstr(shown.text, "\n  system ") != NULL);
    CHECK(strstr(shown.text, "\n  deadLetters ") != NULL);
    rig_stop(&r);
}

TEST(inspect_tree_ends_at_depth_and_limit)
{
    rig r;
    rig_start(&r);
    parent_spawn(&r, "first");
    fk_writer writer = page_writer(&shown);
    size_t top = fk_dump_tree(r.sys, &(fk_dump_options){ .depth = 1 }, &writer);
    CHECK(strstr(shown.text, "user") != NULL);
    CHECK(strstr(shown.text, "first") == NULL);
    writer = page_writer(&shown);
    CHECK_U64(fk_dump_tree(r.sys, &(fk_dump_options){ .depth = 2 }, &writer), top + 1);
    writer = page_writer(&shown);
    CHECK_U64(fk_dump_tree(r.sys, &(fk_dump_options){ .limit = 3 }, &writer), 3);
    CHECK_U64(shown.lines, 3);
    rig_stop(&r);
}

TEST(inspect_ps_sorts_and_limits)
{
    rig r;
    fk_ref box;
    rig_start(&r);
    parent_spawn(&r, "parent");
    const fk_props props = { .receive = doer_receive,
                             .mailbox = FK_MAILBOX_BOUNDED,
                             .capacity = 8 };
    CHECK_OK(fk_spawn(r.sys, FK_STR("box"), &props, &box));
    rig_run(&r);
    for (int i = 0; i < 5; i++) CHECK_OK(fk_send(r.sys, box, FK_MSG(num, 1)));

    fk_writer writer = page_writer(&shown);
    fk_dump_options options = { .sort = FK_DUMP_BY_MAILBOX, .limit = 1 };
    CHECK_U64(fk_dump_ps(r.sys, &options, &writer), 1);
    CHECK_U64(shown.lines, 2); /* with the header */
    CHECK(strncmp(shown.text, "PATH ", 5) == 0);
    CHECK(strstr(shown.text, "\n/user/box#") != NULL);
    CHECK(strstr(shown.text, " active ") != NULL);
    CHECK(strstr(shown.text, " 5 ") != NULL);

    writer = page_writer(&shown);
    options = (fk_dump_options){ .sort = FK_DUMP_BY_MEMORY, .limit = 1, .format = FK_DUMP_JSON };
    CHECK_U64(fk_dump_ps(r.sys, &options, &writer), 1);
    CHECK(strncmp(shown.text, "{\"path\":\"fraktor://test/user/parent#", 36) == 0);
    CHECK(strstr(shown.text, "\"state\":\"idle\",\"children\":3,\"mailbox\":null,\"memory\":1") !=
          NULL);

    writer = page_writer(&shown);
    options = (fk_dump_options){ .sort = FK_DUMP_BY_CHILDREN, .format = FK_DUMP_JSON };
    size_t all = fk_dump_ps(r.sys, &options, &writer);
    CHECK(strncmp(shown.text, "{\"path\":\"fraktor://test/\"", 24) == 0); /* the root has most */
    writer = page_writer(&shown);
    CHECK_U64(fk_dump_ps(r.sys, NULL, &writer), all);
    writer = page_writer(&shown);
    CHECK_U64(fk_dump_tree(r.sys, NULL, &writer), all);
    rig_run(&r);
    rig_stop(&r);
}

TEST(inspect_stopped_actors_are_not_shown)
{
    rig r;
    rig_start(&r);
    fk_ref parent = parent_spawn(&r, "parent");
    CHECK_OK(fk_stop(r.sys, parent));
    fk_writer writer = page_writer(&shown);
    fk_dump_tree(r.sys, NULL, &writer);
    const char *line = strstr(shown.text, "parent#");
    CHECK(line != NULL);
    CHECK(strstr(line, " stopping children=3") != NULL);
    rig_run(&r);
    writer = page_writer(&shown);
    fk_dump_tree(r.sys, NULL, &writer);
    CHECK(strstr(shown.text, "parent#") == NULL);
    rig_stop(&r);
}

/* Memory is not needed: a dump is what one wants when there is none. */
TEST(inspect_needs_no_memory)
{
    rig r;
    rig_start(&r);
    parent_spawn(&r, "parent");
    uint64_t before = atomic_load(&r.allocations);
    uint64_t bytes = atomic_load(&r.bytes);
    fk_writer writer = page_writer(&shown);
    fk_dump_tree(r.sys, &(fk_dump_options){ .format = FK_DUMP_JSON }, &writer);
    fk_dump_ps(r.sys, NULL, &writer);
    fk_dump_ps(r.sys, &(fk_dump_options){ .sort = FK_DUMP_BY_MEMORY }, &writer);
    CHECK_U64(atomic_load(&r.allocations), before);
    CHECK_U64(atomic_load(&r.bytes), bytes);
    rig_stop(&r);
}

TEST(inspect_a_million_actors_at_once)
{
    rig r;
    uint64_t actors = test_is_sanitized() ? 20000 : 1000000;
    rig_start(&r);
    const fk_props props = { .receive = doer_receive };
    for (uint64_t i = 0; i < actors; i++) {
        fk_ref ref;
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
    }
    fk_writer writer = page_writer(&shown);
    int64_t begun = test_clock();
    fk_dump_options options = { .sort = FK_DUMP_BY_CHILDREN, .limit = 5 };
    CHECK_U64(fk_dump_ps(r.sys, &options, &writer), 5);
    int64_t sorted = test_clock();
    CHECK(strstr(shown.text, "\n/user ") != NULL);
    writer = page_writer(&shown);
    CHECK(fk_dump_tree(r.sys, NULL, &writer) > actors);
    CHECK(shown.lines > actors);
    int64_t tree = test_clock();
    printf("%llu actors: ps %lld ms, tree %lld ms\n", (unsigned long long)actors,
           (long long)((sorted - begun) / 1000000), (long long)((tree - sorted) / 1000000));
    CHECK(sorted - begun < FK_SECONDS(5));
    CHECK(tree - sorted < FK_SECONDS(10));
    rig_stop(&r);
}

/* ---- while actors come and go ------------------------------------------------------------- */

static fk_err ask_in_vain(fk_ctx *ctx, void *arg)
{
    const fk_ref *asked = arg;
    return fk_ask(ctx, *asked, FK_MSG(num, 1), 1, FK_SECONDS(1));
}

TEST(inspect_does_not_show_questions_under_way)
{
    rig r;
    static probe silent;
    rig_start(&r);
    fk_ref asked = probe_spawn(&r, &silent);
    fk_ref asker = doer_spawn(&r);
    rig_run(&r);
    fk_writer writer = page_writer(&shown);
    size_t before = fk_dump_ps(r.sys, NULL, &writer);
    rig_do(&r, asker, ask_in_vain, &asked);
    CHECK_U64(silent.count, 1);
    for (int sort = FK_DUMP_UNSORTED; sort <= FK_DUMP_BY_MEMORY; sort++) {
        writer = page_writer(&shown);
        CHECK_U64(fk_dump_ps(r.sys, &(fk_dump_options){ .sort = (fk_dump_sort)sort }, &writer),
                  before);
    }
    CHECK_U64(fk_dump_tree(r.sys, NULL, &writer), before);
    rig_stop(&r);
}

static fk_err churn_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const num *n = FK_AS(num, msg);
    fk_ref child;
    (void)state;
    CHECK(n != NULL);
    if (n->n == 0) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    const fk_props props = { .receive = churn_receive, .state_size = 8 };
    CHECK_OK(fk_spawn_child(ctx, FK_STR(""), &props, &child));
    CHECK_OK(fk_tell(ctx, child, FK_MSG(num, n->n % 7)));
    return fk_tell(ctx, fk_self(ctx), FK_MSG(num, n->n - 1));
}

TEST(inspect_while_actors_come_and_go)
{
    rig r;
    rig_start_with(&r, (fk_system_config){ .name = "test", .workers = 2 });
    const fk_props props = { .receive = churn_receive };
    for (uint64_t round = test_scaled(20); round > 0; round--) {
        fk_ref ref;
        CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref));
        CHECK_OK(fk_send(r.sys, ref, FK_MSG(num, 300)));
        for (int i = 0; fk_is_alive(r.sys, ref) && i < 1000; i++) {
            fk_writer writer = page_writer(&shown);
            CHECK(fk_dump_tree(r.sys, NULL, &writer) > 4);
            /* The largest fifty, of which some or all may have ended since. */
            CHECK(fk_dump_ps(r.sys, &(fk_dump_options){ .sort = FK_DUMP_BY_MEMORY }, &writer) <=
                  50);
        }
        CHECK_OK(fk_await_stopped(r.sys, ref, FK_SECONDS(60)));
    }
    rig_stop(&r);
}

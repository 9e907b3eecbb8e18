/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names under /temp: of questions that are under way, and of whoever is registered there. */

#include "support/rig.h"

#include <string.h>

typedef struct world {
    rig r;
    fk_ref doer, asked;
    fk_ref question; /* the sender that `asked` saw last */
    size_t answers;
} world;

static fk_err asked_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    (void)ctx;
    w->question = msg->sender;
    return FK_OK;
}

static fk_err temp_doer_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    world *w = state;
    if (FK_AS(fk_answer, msg) != NULL) {
        w->answers++;
        return FK_OK;
    }
    return doer_receive(ctx, state, msg);
}

static void world_start(world *w, fk_system_config config)
{
    memset(w, 0, sizeof(*w));
    config.name = "test";
    rig_start_with(&w->r, config);
    fk_props doer = { .receive = temp_doer_receive, .state = w };
    fk_props asked = { .receive = asked_receive, .state = w };
    CHECK_OK(fk_spawn(w->r.sys, FK_STR("doer"), &doer, &w->doer));
    CHECK_OK(fk_spawn(w->r.sys, FK_STR("alice"), &asked, &w->asked));
}

static fk_err do_ask(fk_ctx *ctx, void *arg)
{
    world *w = arg;
    return fk_ask(ctx, w->asked, FK_MSG(num, 1), 1, FK_MILLIS(10));
}

static void ask(world *w)
{
    rig_do(&w->r, w->doer, do_ask, w);
}

static void check_path(world *w, fk_ref ref, const char *expected)
{
    char path[128];
    size_t len = fk_path_of(w->r.sys, ref, path, sizeof(path));
    CHECK_STR(path, expected);
    CHECK_U64(len, strlen(expected));
}

static fk_err resolve(world *w, const char *path, fk_ref *out)
{
    return fk_resolve(w->r.sys, fk_str_of(path), out, NULL);
}

TEST(temp_question_has_a_path_while_it_waits)
{
    world w;
    fk_ref found = FK_REF_NONE;
    world_start(&w, (fk_system_config){ 0 });
    ask(&w);
    /* Nobody has wanted to know it yet: so there is none. */
    CHECK_ERR(resolve(&w, "fraktor://test/temp/alice$a", &found), FK_E_PID_UNKNOWN);
    check_path(&w, w.question, "fraktor://test/temp/alice$a");
    check_path(&w, w.question, "fraktor://test/temp/alice$a"); /* the same again */
    CHECK_OK(resolve(&w, "fraktor://test/temp/alice$a", &found));
    CHECK(fk_ref_equal(found, w.question));
    CHECK_ERR(resolve(&w, "fraktor://test/temp/alice$b", &found), FK_E_PID_UNKNOWN);
    CHECK_ERR(resolve(&w, "fraktor://test/temp/alice$a#7", &found), FK_E_PID_UNKNOWN);

    CHECK_OK(fk_select_send(w.r.sys, FK_STR("/temp/alice$a"), FK_MSG(num, 2)));
    rig_run(&w.r);
    CHECK_U64(w.answers, 1);
    CHECK_ERR(resolve(&w, "fraktor://test/temp/alice$a", &found), FK_E_PID_UNKNOWN);
    check_path(&w, w.question, "");

    ask(&w); /* the next one has a name of its own */
    check_path(&w, w.question, "fraktor://test/temp/alice$b");
    rig_stop(&w.r);
}

TEST(temp_question_loses_its_path_with_the_timeout)
{
    world w;
    fk_ref found = FK_REF_NONE;
    world_start(&w, (fk_system_config){ .remoting = { .host = "h", .port = 7 } });
    ask(&w);
    check_path(&w, w.question, "fraktor://test@h:7/temp/alice$a");
    CHECK_OK(resolve(&w, "fraktor://test@h:7/temp/alice$a", &found));
    rig_pass(&w.r, FK_MILLIS(13));
    CHECK_U64(w.answers, 1);
    check_path(&w, w.question, "");
    CHECK_ERR(resolve(&w, "fraktor://test@h:7/temp/alice$a", &found), FK_E_PID_UNKNOWN);
    rig_stop(&w.r);
}

TEST(temp_path_is_cut_to_the_buffer)
{
    world w;
    char path[16];
    world_start(&w, (fk_system_config){ 0 });
    ask(&w);
    CHECK_U64(fk_path_of(w.r.sys, w.question, path, sizeof(path)), 27);
    CHECK_STR(path, "fraktor://test/");
    CHECK_U64(fk_path_of(w.r.sys, w.question, NULL, 0), 27);
    rig_stop(&w.r);
}

TEST(temp_register_gives_an_actor_a_second_name)
{
    world w;
    char path[64], other[64], small[10];
    fk_ref found = FK_REF_NONE;
    world_start(&w, (fk_system_config){ 0 });
    CHECK_OK(fk_temp_register(w.r.sys, FK_STR("desk"), w.asked, FK_BUF(path)));
    CHECK_STR(path, "fraktor://test/temp/desk$a");
    CHECK_OK(fk_temp_register(w.r.sys, FK_STR(""), w.asked, FK_BUF(other)));
    CHECK_STR(other, "fraktor://test/temp/$b");
    CHECK_OK(resolve(&w, path, &found));
    CHECK(fk_ref_equal(found, w.asked));
    CHECK_OK(resolve(&w, "fraktor://test/temp/d%65sk$a", &found));
    check_path(&w, w.asked, "fraktor://test/user/alice#2"); /* where it lives is where it lives */
    CHECK_OK(
        fk_select_send_from(w.r.sys, FK_REF_NONE, FK_STR("/temp/desk$a"), w.doer, FK_MSG(num, 1)));
    rig_run(&w.r);
    CHECK(fk_ref_equal(w.question, w.doer));

    CHECK_OK(fk_temp_unregister(w.r.sys, fk_str_of(path)));
    CHECK_ERR(fk_temp_unregister(w.r.sys, fk_str_of(path)), FK_E_NOT_FOUND);
    CHECK_ERR(resolve(&w, path, &found), FK_E_PID_UNKNOWN);
    CHECK_OK(resolve(&w, other, &found));
    CHECK_ERR(fk_temp_register(w.r.sys, FK_STR("x"), w.asked, FK_BUF(small)), FK_E_LIMIT);
    CHECK_ERR(fk_temp_register(w.r.sys, FK_STR("a b/"), w.asked, FK_BUF(path)), FK_E_NAME);
    CHECK_ERR(fk_temp_register(w.r.sys, FK_STR("$x"), w.asked, FK_BUF(path)), FK_E_RESERVED);
    CHECK_ERR(fk_temp_register(w.r.sys, FK_STR("x"), FK_REF_NONE, FK_BUF(path)), FK_E_DEAD);
    rig_stop(&w.r);
}

TEST(temp_name_is_gone_with_its_actor)
{
    world w;
    char path[64];
    fk_ref found = FK_REF_NONE;
    world_start(&w, (fk_system_config){ 0 });
    CHECK_OK(fk_temp_register(w.r.sys, FK_STR("desk"), w.asked, FK_BUF(path)));
    fk_stop(w.r.sys, w.asked);
    rig_run(&w.r);
    CHECK_ERR(resolve(&w, path, &found), FK_E_PID_UNKNOWN);
    CHECK_ERR(fk_temp_unregister(w.r.sys, fk_str_of(path)), FK_E_NOT_FOUND);
    CHECK_ERR(fk_temp_register(w.r.sys, FK_STR("desk"), w.asked, FK_BUF(path)), FK_E_DEAD);
    rig_stop(&w.r);
}

TEST(temp_unregister_what_is_not_there)
{
    static const char *const TEXTS[] = { "",
                                         "nonsense",
                                         "fraktor://test/temp",
                                         "fraktor://test/user/alice",
                                         "fraktor://other/temp/desk$a",
                                         "fraktor://test/temp/desk$a/b",
                                         "fraktor://test/temp/desk$a#3",
                                         "fraktor://test/tempo/desk$a" };
    world w;
    char path[64];
    world_start(&w, (fk_system_config){ 0 });
    CHECK_OK(fk_temp_register(w.r.sys, FK_STR("desk"), w.asked, FK_BUF(path)));
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        CHECK_ERR(fk_temp_unregister(w.r.sys, fk_str_of(TEXTS[i])), FK_E_NOT_FOUND);
    }
    ask(&w); /* a question's own name can be taken from it, too */
    check_path(&w, w.question, "fraktor://test/temp/alice$b");
    CHECK_OK(fk_temp_unregister(w.r.sys, FK_STR("fraktor://test/temp/alice$b")));
    check_path(&w, w.question, "fraktor://test/temp/alice$c");
    CHECK_OK(fk_temp_unregister(w.r.sys, fk_str_of(path)));
    rig_stop(&w.r);
}

/* Names of the dead make room for those of the living. */
TEST(temp_table_does_not_grow_with_the_dead)
{
    world w;
    char path[64];
    fk_ref found;
    world_start(&w, (fk_system_config){ 0 });
    uint64_t before = 0;
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 100; i++) {
            fk_ref ref = doer_spawn(&w.r);
            CHECK_OK(fk_temp_register(w.r.sys, FK_STR("many"), ref, FK_BUF(path)));
            CHECK_OK(resolve(&w, path, &found));
            fk_stop(w.r.sys, ref);
        }
        rig_run(&w.r);
        fk_stats stats;
        fk_stats_get(w.r.sys, &stats);
        if (round == 10) before = stats.memory;
        /* 39,000 names would be 2 MiB and more. Which of its pools a thread uses is chance: each may
         * take a page yet. */
        if (round > 10) CHECK(stats.memory < before + (1 << 20));
    }
    rig_stop(&w.r);
}

/* By Pekko's rules, too: AskSpec names the reference after who was asked. */
TEST(temp_b61_by_pekkos_rules)
{
    world w;
    fk_ref found = FK_REF_NONE;
    world_start(&w, (fk_system_config){ .paths.rules = FK_RULES_PEKKO });
    ask(&w);
    check_path(&w, w.question, "pekko://test/temp/alice$a");
    CHECK_OK(resolve(&w, "pekko://test/temp/alice$a", &found));
    CHECK_OK(fk_send(w.r.sys, found, FK_MSG(num, 1)));
    CHECK_ERR(resolve(&w, "pekko://test/temp/alice$a", &found), FK_E_PID_UNKNOWN);
    rig_stop(&w.r);
}

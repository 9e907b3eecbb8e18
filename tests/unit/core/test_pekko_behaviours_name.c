/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a runtime like Pekko must do, B01 to B16: names, references and selections. The numbers are
 * those of docs/pekko-differences.md, which lists what is not as in Pekko; there are more of them in
 * the other files of this name; from B64 on, remoting, in tests/unit/host.
 */

#include <string.h>

#include "fraktor/registry.h"
#include "fraktor/select.h"
#include "support/observer.h"

static observer o;

static const fk_props PLAIN = { .receive = doer_receive };

static void start(void)
{
    observer_start_with(&o,
                        (fk_system_config){ .name = "t", .paths = { .rules = FK_RULES_PEKKO } });
}

/* A child of whoever runs the call. */
typedef struct birth {
    const char *name;
    fk_ref ref;
    fk_err err;
} birth;

static fk_err call_spawn(fk_ctx *ctx, void *arg)
{
    birth *b = arg;
    b->err = fk_spawn_child(ctx, fk_str_of(b->name), &PLAIN, &b->ref);
    return FK_OK;
}

static fk_ref child_of(fk_ref parent, const char *name)
{
    birth b = { name, FK_REF_NONE, FK_E_FAILED };
    rig_do(&o.r, parent, call_spawn, &b);
    CHECK_OK(b.err);
    return b.ref;
}

/* Answers to FK_IDENTIFY, as seen by a probe. */
static const fk_identity *answers(const probe *p, size_t count)
{
    CHECK_U64(p->count, count);
    CHECK(count == 0 || p->type == &fk_type_fk_identity);
    return (const fk_identity *)(const void *)p->bytes;
}

static const fk_identity *identify(fk_ref anchor, const char *expression, size_t count)
{
    static probe p;
    fk_ref asker = probe_spawn(&o.r, &p);
    CHECK_OK(fk_select_send_from(o.r.sys, anchor, fk_str_of(expression), asker, FK_IDENTIFY(7)));
    rig_run(&o.r);
    observer_bury(&o, asker);
    return answers(&p, count);
}

TEST(b01_second_child_of_a_name_is_refused_and_the_first_unaffected)
{
    start();
    fk_ref parent = observer_spawn(&o, "p"), first = child_of(parent, "c");
    birth second = { "c", FK_REF_NONE, FK_OK };
    rig_do(&o.r, parent, call_spawn, &second);
    CHECK_ERR(second.err, FK_E_NAME_TAKEN);
    CHECK(fk_is_alive(o.r.sys, first));
    observer_check_place(&o, first, "pekko://t/user/p/c");
    rig_stop(&o.r);
}

static const char *contested;
static _Atomic int winners;

static void *spawn_contested(void *arg)
{
    fk_ref ref;
    pthread_barrier_wait(arg);
    fk_err err = fk_spawn(o.r.sys, fk_str_of(contested), &PLAIN, &ref);
    CHECK(err == FK_OK || err == FK_E_NAME_TAKEN);
    if (err == FK_OK) atomic_fetch_add(&winners, 1);
    return NULL;
}

TEST(b02_of_four_threads_that_create_one_name_exactly_one_succeeds)
{
    enum { THREADS = 4, ROUNDS = 100 };
    pthread_barrier_t barrier;
    observer_start_with(&o, (fk_system_config){ .name = "t", .workers = 2 });
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread[THREADS];
        char name[8] = { 'n', (char)('a' + round / 26), (char)('a' + round % 26), '\0' };
        contested = name;
        atomic_store(&winners, 0);
        for (int i = 0; i < THREADS; i++) {
            CHECK_U64(pthread_create(&thread[i], NULL, spawn_contested, &barrier), 0);
        }
        for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
        CHECK_U64(atomic_load(&winners), 1);
    }
    pthread_barrier_destroy(&barrier);
    rig_stop(&o.r);
}

/* The whole table is in test_vectors_pekko.c. */
TEST(b03_invalid_names_are_refused_at_creation_with_the_position)
{
    static const struct {
        const char *name;
        size_t at;
    } CASES[] = { { "$hello", 0 }, { "a b", 1 }, { "a/b", 1 },
                  { "ab%", 2 },    { "a?", 1 },  { "h\xc3\xa4llo", 1 } };
    start();
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        fk_path_fault fault = { 0 };
        fk_ref ref;
        fk_err err = fk_spawn(o.r.sys, fk_str_of(CASES[i].name), &PLAIN, &ref);
        CHECK(err != FK_OK);
        fk_path_options options = { .rules = FK_RULES_PEKKO };
        CHECK_ERR(fk_path_check_name(&options, fk_str_of(CASES[i].name), &fault), err);
        CHECK_U64(fault.at, CASES[i].at);
    }
    rig_stop(&o.r);
}

TEST(b04_anonymous_children_are_called_a_b_for_each_parent)
{
    start();
    fk_ref p = observer_spawn(&o, "p"), q = observer_spawn(&o, "q");
    observer_check_place(&o, child_of(p, ""), "pekko://t/user/p/$a");
    observer_check_place(&o, child_of(p, ""), "pekko://t/user/p/$b");
    observer_check_place(&o, child_of(q, ""), "pekko://t/user/q/$a");
    rig_stop(&o.r);
}

TEST(b05_recreated_actor_has_the_path_but_another_reference_and_uid)
{
    char first[OBSERVER_TEXT], second[OBSERVER_TEXT];
    start();
    fk_ref before = observer_spawn(&o, "a");
    uint64_t uid = observer_uid(&o, before);
    fk_path_of(o.r.sys, before, first, sizeof(first));
    observer_bury(&o, before);
    fk_ref after = observer_spawn(&o, "a");
    fk_path_of(o.r.sys, after, second, sizeof(second));
    CHECK(!fk_ref_equal(before, after));
    CHECK(observer_uid(&o, after) != uid);
    *strchr(first, '#') = *strchr(second, '#') = '\0';
    CHECK_STR(second, first);
    rig_stop(&o.r);
}

TEST(b06_old_reference_never_reaches_the_recreated_actor)
{
    probe p;
    fk_ref after;
    start();
    fk_ref before = observer_spawn(&o, "a");
    observer_bury(&o, before);
    fk_props props = probe_props(&p);
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &props, &after));
    CHECK_OK(fk_send(o.r.sys, before, FK_MSG(num, 1)));
    rig_run(&o.r);
    CHECK_U64(p.count, 0);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_STOPPED);
    rig_stop(&o.r);
}

static fk_err heir(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *child = state;
    if (msg->type == &fk_type_rig_call) return doer_receive(ctx, NULL, msg);
    CHECK(FK_AS(fk_terminated, msg) != NULL);
    return fk_spawn_child(ctx, FK_STR("c"), &PLAIN, child);
}

static fk_err call_spawn_watched(fk_ctx *ctx, void *arg)
{
    fk_ref *child = arg;
    CHECK_OK(fk_spawn_child(ctx, FK_STR("c"), &PLAIN, child));
    return fk_watch(ctx, *child);
}

TEST(b07_name_can_be_used_again_in_the_handler_of_terminated)
{
    fk_ref parent, child = FK_REF_NONE;
    start();
    CHECK_OK(
        fk_spawn(o.r.sys, FK_STR("p"), &(fk_props){ .receive = heir, .state = &child }, &parent));
    rig_do(&o.r, parent, call_spawn_watched, &child);
    fk_ref first = child;
    observer_bury(&o, first);
    CHECK(!fk_ref_equal(first, child));
    observer_check_place(&o, child, "pekko://t/user/p/c");
    rig_stop(&o.r);
}

static fk_err call_stop_and_spawn(fk_ctx *ctx, void *arg)
{
    birth *b = arg;
    CHECK_OK(fk_stop(fk_system_of(ctx), b->ref));
    fk_ref again;
    b->err = fk_spawn_child(ctx, FK_STR("c"), &PLAIN, &again);
    return FK_OK;
}

TEST(b08_name_is_taken_as_long_as_the_old_child_lives)
{
    start();
    fk_ref parent = observer_spawn(&o, "p");
    birth b = { "c", child_of(parent, "c"), FK_OK };
    rig_do(&o.r, parent, call_stop_and_spawn, &b); /* asked to stop, but not gone */
    CHECK_ERR(b.err, FK_E_NAME_TAKEN);
    child_of(parent, "c");
    rig_stop(&o.r);
}

TEST(b09_root_user_and_system_are_found_from_the_system_and_from_any_actor)
{
    static const struct {
        const char *path;
        fk_guardian_kind kind;
    } CASES[] = { { "/user", FK_GUARDIAN_USER },
                  { "/system", FK_GUARDIAN_SYSTEM },
                  { "/", FK_GUARDIAN_ROOT } };
    start();
    fk_ref anchors[] = { FK_REF_NONE, observer_spawn(&o, "a") };
    for (size_t i = 0; i < 6; i++) {
        fk_ref found = identify(anchors[i / 3], CASES[i % 3].path, 1)->ref;
        CHECK(fk_ref_equal(found, fk_guardian(o.r.sys, CASES[i % 3].kind)));
    }
    rig_stop(&o.r);
}

TEST(b10_more_steps_up_than_there_are_end_at_the_root)
{
    start();
    fk_ref deep = child_of(observer_spawn(&o, "a"), "b");
    fk_ref found = identify(deep, "../../../../..", 1)->ref;
    CHECK(fk_ref_equal(found, fk_guardian(o.r.sys, FK_GUARDIAN_ROOT)));
    rig_stop(&o.r);
}

TEST(b11_wildcard_identifies_each_child_and_no_match_gives_one_none)
{
    start();
    fk_ref a = observer_spawn(&o, "a"), b = observer_spawn(&o, "b");
    for (int i = 0; i < 3; i++) child_of(a, "");
    CHECK(!fk_ref_is_none(identify(b, "/user/a/*", 3)->ref));
    CHECK(fk_ref_is_none(identify(a, "/user/b/*", 1)->ref));
    CHECK(fk_ref_is_none(identify(a, "/user/a/x*", 1)->ref));
    rig_stop(&o.r);
}

TEST(b12_misses_after_a_wildcard_with_several_matches_are_silent)
{
    start();
    fk_ref a = observer_spawn(&o, "a");
    observer_spawn(&o, "b");
    identify(a, "/user/*/nobody", 0);
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/*/nobody"), FK_MSG(num, 1)));
    rig_run(&o.r);
    observer_letters(&o, 0);
    rig_stop(&o.r);
}

TEST(b13_dead_letter_of_a_selection_has_message_sender_and_path_as_asked)
{
    start();
    fk_ref a = observer_spawn(&o, "a");
    CHECK_OK(fk_select_send_from(o.r.sys, a, FK_STR("../missing"), a, FK_MSG(num, 1)));
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_STR(letter->path, "pekko://t/user/a/../missing");
    CHECK(fk_ref_equal(letter->sender, a));
    CHECK(letter->type == &fk_type_num);
    rig_stop(&o.r);
}

static fk_err forward_by_path(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    return fk_select_send_from(fk_system_of(ctx), fk_self(ctx), FK_STR("../end"), msg->sender,
                               FK_MSG_AT(num, FK_AS(num, msg)));
}

TEST(b14_forward_through_a_selection_keeps_the_sender)
{
    probe p;
    fk_ref middle, end;
    start();
    fk_props props = probe_props(&p);
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("end"), &props, &end));
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("m"), &(fk_props){ .receive = forward_by_path }, &middle));
    fk_ref sender = observer_spawn(&o, "s");
    CHECK_OK(fk_send_from(o.r.sys, middle, sender, FK_MSG(num, 9)));
    rig_run(&o.r);
    CHECK_U64(p.n[0], 9);
    CHECK(fk_ref_equal(p.sender, sender));
    rig_stop(&o.r);
}

TEST(b15_unknown_message_to_a_guardian_is_unhandled)
{
    start();
    for (int kind = FK_GUARDIAN_USER; kind <= FK_GUARDIAN_ROOT; kind++) {
        fk_ref guardian = fk_guardian(o.r.sys, (fk_guardian_kind)kind);
        CHECK_OK(fk_send(o.r.sys, guardian, FK_MSG(num, 1)));
        rig_run(&o.r);
        CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_UNHANDLED);
        CHECK(fk_is_alive(o.r.sys, guardian));
    }
    rig_stop(&o.r);
}

static fk_err reply_once(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    fk_ref *sender = state;
    *sender = msg->sender;
    return fk_reply(ctx, FK_MSG(num, 2));
}

TEST(b16_answer_to_a_message_without_a_sender_is_a_dead_letter)
{
    fk_ref ref, sender = { 1, 1, 1 };
    start();
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("a"), &(fk_props){ .receive = reply_once, .state = &sender },
                      &ref));
    CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(num, 1)));
    rig_run(&o.r);
    CHECK(fk_ref_is_none(sender));
    CHECK_STR(observer_letters(&o, 1)->path, "pekko://t/deadLetters");
    rig_stop(&o.r);
}

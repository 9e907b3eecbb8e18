/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selections from all sides: who gets what, who is told, and what becomes of it otherwise. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/observer.h"

enum { CROWD = 40 };

static const fk_props DOER = { .receive = doer_receive };

static observer o;

/* A crowd under /user: "p0" .. "p39", each a probe. */
static probe crowd[CROWD];
static fk_ref crowd_ref[CROWD];

static void start(fk_system_config config)
{
    config.name = "t";
    observer_start_with(&o, config);
}

static void start_crowd(size_t count)
{
    start((fk_system_config){ 0 });
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "p%zu", i);
        fk_props props = probe_props(&crowd[i]);
        CHECK_OK(fk_spawn(o.r.sys, fk_str_of(name), &props, &crowd_ref[i]));
    }
    rig_run(&o.r);
}

static fk_err send_text(const char *text, fk_out msg)
{
    fk_err err = fk_select_send(o.r.sys, fk_str_of(text), msg);
    rig_run(&o.r);
    return err;
}

/* ---- one and many ------------------------------------------------------------------------------ */

TEST(select_sends_to_all_that_match)
{
    start_crowd(CROWD);
    fk_ref sender = crowd_ref[0];
    CHECK_OK(fk_select_send_from(o.r.sys, sender, FK_STR("../p*"), sender, FK_MSG(num, 1)));
    CHECK_OK(fk_select_send_from(o.r.sys, sender, FK_STR("../p?"), sender, FK_MSG(num, 2)));
    CHECK_OK(fk_select_send_from(o.r.sys, sender, FK_STR("/*/p1?"), sender, FK_MSG(num, 3)));
    rig_run(&o.r);
    for (size_t i = 0; i < CROWD; i++) {
        size_t expected = i < 20 ? 2 : 1;
        CHECK_U64(crowd[i].count, expected);
        CHECK_U64(crowd[i].n[0], 1);
        CHECK(fk_ref_equal(crowd[i].sender, sender));
    }
    CHECK_OK(send_text("/user/p7", FK_MSG(num, 4))); /* from nobody */
    CHECK(fk_ref_is_none(crowd[7].sender));
    CHECK_U64(crowd[7].n[2], 4);
    observer_letters(&o, 0);
    rig_stop(&o.r);
}

static fk_err tell_selection(fk_ctx *ctx, void *arg)
{
    (void)arg;
    CHECK_OK(fk_select_tell(ctx, FK_STR("../p1"), FK_MSG(num, 9)));
    CHECK_OK(fk_select_tell(ctx, FK_STR("../nobody"), FK_MSG(num, 9)));
    CHECK_ERR(fk_select_tell(ctx, FK_STR("../../.."), FK_MSG(num, 9)), FK_E_ESCAPE);
    CHECK_ERR(fk_select_tell(ctx, FK_STR("a b"), FK_MSG(num, 9)), FK_E_NAME);
    return FK_OK;
}

TEST(select_tells_in_the_actors_own_name)
{
    start_crowd(2);
    fk_ref doer = observer_spawn(&o, "doer");
    rig_do(&o.r, doer, tell_selection, NULL);
    CHECK_U64(crowd[1].count, 1);
    CHECK(fk_ref_equal(crowd[1].sender, doer));
    CHECK_STR(o.letter[0].path, "fraktor://t/user/nobody");
    CHECK(fk_ref_equal(o.letter[0].sender, doer));
    CHECK_STR(observer_letters(&o, 3)->path, "a%20b");
    CHECK(fk_ref_equal(o.letter[2].sender, doer));
    observer_events(&o, 2);
    rig_stop(&o.r);
}

TEST(select_shares_a_payload_among_all)
{
    static _Atomic int drops;
    fk_payload *payload;
    start_crowd(CROWD);
    drops = 0;
    CHECK_OK(fk_payload_create(o.r.sys, &fk_type_owned, sizeof(owned), &payload));
    *(owned *)fk_payload_data(payload) = (owned){ &drops, 77 };
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/p*"), FK_MSG_PAYLOAD(payload)));
    CHECK_U64(drops, 0);
    rig_run(&o.r);
    CHECK_U64(drops, 1); /* with the last share */
    for (size_t i = 0; i < CROWD; i++) {
        CHECK_U64(crowd[i].count, 1);
        CHECK(crowd[i].type == &fk_type_owned);
        CHECK(memcmp(crowd[i].bytes, &(owned){ &drops, 77 }, sizeof(owned)) == 0);
    }
    /* To nobody, to a silent miss, and to no selection: gone each time. */
    static const char *const NOWHERE[] = { "/user/none", "/user/*/none", "/user/a b" };
    for (int i = 0; i < 3; i++) {
        CHECK_OK(fk_payload_create(o.r.sys, &fk_type_owned, sizeof(owned), &payload));
        *(owned *)fk_payload_data(payload) = (owned){ &drops, 78 };
        fk_err err = send_text(NOWHERE[i], FK_MSG_PAYLOAD(payload));
        CHECK_ERR(err, i == 2 ? FK_E_NAME : FK_OK);
        CHECK_U64(drops, 2 + i);
    }
    observer_letters(&o, 2);
    rig_stop(&o.r);
}

TEST(select_drops_a_message_that_cannot_be_doubled_once)
{
    static _Atomic int drops;
    static owned_large large;
    start_crowd(3);
    drops = 0;
    large = (owned_large){ .drops = &drops, .n = 0 };
    CHECK_ERR(send_text("/user/p*", FK_MSG(owned, &drops, 1)), FK_E_INVALID);
    CHECK_U64(drops, 1);
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK(letter->type == &fk_type_owned);
    CHECK_U64(letter->reason, FK_REASON_SEVERAL);
    CHECK_STR(letter->path, "fraktor://t/user/p*");
    CHECK_ERR(send_text("/user/p*", FK_MSG_AT(owned_large, &large)), FK_E_INVALID);
    CHECK_U64(drops, 2);
    observer_letters(&o, 1);
    for (int i = 0; i < 3; i++) CHECK_U64(crowd[i].count, 0);
    CHECK_OK(send_text("/user/p1*", FK_MSG(owned, &drops, 1))); /* a pattern with one match */
    CHECK_U64(drops, 3);
    CHECK_U64(crowd[1].count, 1);
    CHECK_OK(send_text("/user/p2", FK_MSG_AT(owned_large, &large)));
    CHECK_U64(drops, 4);
    CHECK_OK(send_text("/user/none", FK_MSG(owned, &drops, 1)));
    CHECK_U64(drops, 5);
    CHECK_OK(send_text("/user/*/none", FK_MSG(owned, &drops, 1)));
    CHECK_U64(drops, 6);
    CHECK_ERR(send_text("%", FK_MSG(owned, &drops, 1)), FK_E_PERCENT);
    CHECK_U64(drops, 7);
    observer_letters(&o, 2);
    rig_stop(&o.r);
}

TEST(select_tells_when_a_mailbox_is_full)
{
    static probe p;
    start_crowd(2);
    fk_props props = probe_props(&p);
    props.mailbox = FK_MAILBOX_BOUNDED;
    props.capacity = 1;
    fk_ref ref;
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("pfull"), &props, &ref));
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/p*"), FK_MSG(num, 1)));
    CHECK_ERR(fk_select_send(o.r.sys, FK_STR("/user/p*"), FK_MSG(num, 2)), FK_E_FULL);
    rig_run(&o.r);
    CHECK_U64(p.count, 1);
    CHECK_U64(crowd[0].count, 2);
    CHECK_U64(crowd[1].count, 2);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_FULL);
    rig_stop(&o.r);
}

TEST(select_without_memory_is_a_dead_letter)
{
    static _Atomic int drops;
    for (uint64_t at = 1;; at++) {
        drops = 0;
        start((fk_system_config){ .pools_malloc = true });
        for (int i = 0; i < 20; i++) observer_spawn(&o, "");
        rig_fault(&o.r, at, false);
        fk_err err = fk_select_send(o.r.sys, FK_STR("/user/*"), FK_MSG(num, 1));
        bool refused = atomic_load(&o.r.refused) != 0;
        rig_fault(&o.r, at, false);
        fk_err lost = fk_select_send(o.r.sys, FK_STR("/user/none"), FK_MSG(owned, &drops, 1));
        rig_fault(&o.r, 0, false);
        CHECK_U64(drops, 1);
        CHECK_ERR(err, refused ? FK_E_NOMEM : FK_OK);
        CHECK(lost == FK_OK || lost == FK_E_NOMEM);
        rig_run(&o.r);
        /* All or some of the doers, who do not know what a num is, and a letter for the rest. */
        CHECK(o.letters >= 2);
        CHECK(o.letters <= 21);
        rig_stop(&o.r);
        if (!refused) break;
    }
}

/* ---- anchors ------------------------------------------------------------------------------------- */

TEST(select_from_anchors_that_are_dead_or_made_up)
{
    static const char *const TEXTS[] = { "", ".", "..", "x", "*", "../p0", "p0/..", "x#3" };
    observer other;
    start_crowd(2);
    observer_start_with(&other, (fk_system_config){ .name = "other" });
    fk_ref dead = observer_spawn(&o, "dead"), foreign;
    CHECK_OK(fk_spawn(other.r.sys, FK_STR("a"), &DOER, &foreign));
    CHECK_OK(fk_stop(o.r.sys, dead));
    rig_run(&o.r);
    fk_ref anchors[] = { FK_REF_NONE,
                         dead,
                         foreign,
                         { UINT32_MAX, 1, dead.system },
                         { 1u << 30, 1, dead.system },
                         { 200, 1, dead.system },
                         { crowd_ref[0].slot, crowd_ref[0].generation + 2, dead.system },
                         { crowd_ref[0].slot, crowd_ref[0].generation, dead.system + 2 } };
    for (size_t i = 0; i < sizeof(anchors) / sizeof(anchors[0]); i++) {
        for (size_t j = 0; j < sizeof(TEXTS) / sizeof(TEXTS[0]); j++) {
            fk_str text = fk_str_of(TEXTS[j]);
            CHECK_OK(fk_select_send_from(o.r.sys, anchors[i], text, FK_REF_NONE, FK_MSG(num, 1)));
            rig_run(&o.r);
            observer_letters(&o, 1);
        }
        /* Where it is seen from does not matter to these. */
        CHECK_OK(fk_select_send_from(o.r.sys, anchors[i], FK_STR("/user/p0"), FK_REF_NONE,
                                     FK_MSG(num, 1)));
        rig_run(&o.r);
        CHECK_U64(crowd[0].count, i + 1);
    }
    CHECK_U64(crowd[1].count, 0);
    /* A sender of another system is nobody here. */
    CHECK_OK(fk_select_send_from(o.r.sys, crowd_ref[0], FK_STR("../p1"), foreign, FK_MSG(num, 1)));
    rig_run(&o.r);
    CHECK_U64(crowd[1].count, 1);
    CHECK(fk_ref_is_none(crowd[1].sender));
    rig_stop(&other.r);
    rig_stop(&o.r);
}

/* ---- the dead letter says what was asked for --------------------------------------------------------- */

TEST(select_without_a_match_names_the_path_asked_for)
{
    static const struct {
        const char *text, *path;
    } CASES[] = {
        { "/user/none", "fraktor://t/user/none" },
        { "user/none", "fraktor://t/user/none" },
        { "/user/p0/x/y", "fraktor://t/user/p0/x/y" },
        { "/user/none/*", "fraktor://t/user/none/*" },
        { "/user/z*", "fraktor://t/user/z*" },
        { "/user/p0/../none", "fraktor://t/user/none" },
        { "/user/none/../p0", "fraktor://t/user/p0" },
        { "/user/./none/.", "fraktor://t/user/none" },
        { "/user//none//", "fraktor://t/user/none" },
        { "fraktor://t/user/none", "fraktor://t/user/none" },
        { "/user/%6eone", "fraktor://t/user/%6eone" },
        { "/user/p0#99999", "fraktor://t/user/p0#99999" },
        { "/user#1", "fraktor://t/user#1" },
        { "/temp/*", "fraktor://t/temp/*" },
        { "/none", "fraktor://t/none" },
    };
    start_crowd(2);
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        CHECK_OK(send_text(CASES[i].text, FK_MSG(num, 1)));
        const observer_letter *letter = observer_letters(&o, 1);
        CHECK_STR(letter->path, CASES[i].path);
        CHECK_U64(letter->reason, FK_REASON_NO_RECEIVER);
    }
    CHECK_OK(send_text("/user/*/none", FK_MSG(num, 1))); /* two have none: silence */
    CHECK_OK(send_text("/user/*/*", FK_MSG(num, 1)));
    observer_letters(&o, 0);
    observer_events(&o, 0);
    /* Another system of which nobody knows where it is. */
    CHECK_OK(send_text("fraktor://u/user/a", FK_MSG(num, 1)));
    CHECK_STR(observer_letters(&o, 1)->path, "fraktor://u/user/a");
    rig_stop(&o.r);
}

static void check_clean(const char *text)
{
    for (; *text != '\0'; text++) {
        CHECK(*text > ' ');
        CHECK(*text < 0x7f);
    }
}

static void check_hostile(fk_str text, fk_err expected)
{
    fk_err err = fk_select_send(o.r.sys, text, FK_MSG(num, 1));
    CHECK_ERR(err, expected);
    rig_run(&o.r);
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_U64(letter->reason, FK_REASON_BAD_PATH);
    check_clean(letter->path);
    CHECK(letter->len >= text.len || letter->len >= 256); /* a very long one is cut */
    CHECK(letter->len < 4096);
    const observer_event *event = observer_events(&o, 1);
    CHECK_U64(event->kind, FK_EVENT_PATH_FAULT);
    CHECK_ERR(event->fault.err, expected);
    check_clean(event->text);
    CHECK_U64(event->len, letter->len);
    CHECK(event->fault.at <= text.len);
    CHECK(event->fault.message != NULL);
}

TEST(select_refuses_hostile_texts)
{
    enum { HUGE = 1 << 20 };
    static char huge[HUGE];
    start_crowd(1);
    check_hostile(FK_STR("/user/%2e%2e"), FK_E_NAME);
    check_hostile(FK_STR("%2E./p0"), FK_E_NAME);
    check_hostile(FK_STR("/user/%2e"), FK_E_NAME);
    check_hostile(FK_STR("/user/a%2Fb"), FK_E_NAME);
    check_hostile(FK_STR("/user/a%00"), FK_E_NAME);
    check_hostile(FK_STR("/user/a%0A"), FK_E_NAME);
    check_hostile(FK_STR("/user/a\nERROR forged"), FK_E_NAME);
    check_hostile(FK_STR("/user/\x1b[2J"), FK_E_NAME);
    check_hostile(FK_STR("/user/a\0b"), FK_E_NAME);
    check_hostile(FK_STR("/user/\x7f\xff\xc3\xa4"), FK_E_NAME);
    check_hostile(FK_STR("/user/a%"), FK_E_PERCENT);
    check_hostile(FK_STR("/user/p0#"), FK_E_UID);
    check_hostile(FK_STR("/user/p0#007"), FK_E_UID);
    check_hostile(FK_STR("/user/p0#18446744073709551616"), FK_E_UID);
    check_hostile(FK_STR("http://t/user/p0"), FK_E_SCHEME);
    check_hostile(FK_STR("fraktor:///user/p0"), FK_E_NO_SYSTEM);
    check_hostile(FK_STR("fraktor://t@h/user/p0"), FK_E_AUTHORITY);
    check_hostile(FK_STR("fraktor://t/user/../p0"), FK_E_NAME);
    memset(huge, 'x', sizeof(huge));
    check_hostile((fk_str){ huge, HUGE }, FK_E_LIMIT);
    memset(huge, '\n', sizeof(huge));
    check_hostile((fk_str){ huge, 2000 }, FK_E_NAME);
    memset(huge, '/', sizeof(huge));
    check_hostile((fk_str){ huge, HUGE }, FK_E_LIMIT);
    for (size_t i = 0; i < 200; i++) huge[i] = "a/"[i % 2];
    check_hostile((fk_str){ huge, 200 }, FK_E_LIMIT); /* a hundred deep */
    for (size_t i = 0; i < 600; i++) huge[i] = "*?"[i % 2];
    check_hostile((fk_str){ huge, 600 }, FK_E_LIMIT);
    CHECK_U64(crowd[0].count, 0);
    rig_stop(&o.r);
}

TEST(resolve_tells_of_texts_that_are_no_path)
{
    static const struct {
        const char *text, *shown;
        fk_err err;
        size_t at;
    } CASES[] = {
        { "", "", FK_E_EMPTY, 0 },
        { "fraktor://t/user/a b", "fraktor://t/user/a%20b", FK_E_NAME, 18 },
        { "fraktor://t/user/..", "fraktor://t/user/..", FK_E_NAME, 17 },
        { "fraktor://t/user/%2e%2e", "fraktor://t/user/%2e%2e", FK_E_NAME, 17 },
        { "fraktor://t/user/a#x", "fraktor://t/user/a#x", FK_E_UID, 19 },
        { "fraktor://t/\n", "fraktor://t/%0A", FK_E_NAME, 12 },
    };
    start((fk_system_config){ 0 });
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        fk_ref ref = FK_REF_NONE;
        fk_path_fault fault;
        CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(CASES[i].text), &ref, &fault), CASES[i].err);
        CHECK_U64(fault.at, CASES[i].at);
        const observer_event *event = observer_events(&o, 1);
        CHECK_ERR(event->fault.err, CASES[i].err);
        CHECK_STR(event->text, CASES[i].shown);
    }
    rig_stop(&o.r);
}

/* ---- identify ---------------------------------------------------------------------------------------- */

typedef struct census {
    size_t count, nobody;
    uint64_t id[64];
    fk_ref ref[64];
} census;

static fk_err census_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    census *c = state;
    const fk_identity *identity = FK_AS(fk_identity, msg);
    (void)ctx;
    CHECK(identity != NULL);
    CHECK(fk_ref_equal(identity->ref, msg->sender)); /* it speaks for itself */
    if (c->count < 64) {
        c->id[c->count] = identity->id;
        c->ref[c->count] = identity->ref;
    }
    c->count++;
    if (fk_ref_is_none(identity->ref)) c->nobody++;
    return FK_OK;
}

static void check_identify(census *c, fk_ref asker, fk_ref to, fk_ref expected)
{
    static uint64_t id = 1000;
    c->count = c->nobody = 0;
    CHECK_OK(fk_send_from(o.r.sys, to, asker, FK_IDENTIFY(++id)));
    rig_run(&o.r);
    CHECK_U64(c->count, 1);
    CHECK_U64(c->id[0], id);
    CHECK(fk_ref_equal(c->ref[0], expected));
}

static fk_err stop_in_vain(fk_ctx *ctx, void *arg)
{
    (void)arg;
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(identify_is_answered_for_everybody)
{
    static census c;
    fk_ref asker, silent;
    c = (census){ 0 };
    start_crowd(CROWD);
    fk_props props = { .receive = census_receive, .state = &c };
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("asker"), &props, &asker));
    fk_ref doer = observer_spawn(&o, "doer");
    check_identify(&c, asker, crowd_ref[3], crowd_ref[3]);
    CHECK_U64(crowd[3].count, 0); /* receive never saw it */
    check_identify(&c, asker, asker, asker);
    check_identify(&c, asker, doer, doer);
    /* The dead, those who never were, and one who is about to die. */
    CHECK_OK(fk_stop(o.r.sys, crowd_ref[4]));
    check_identify(&c, asker, crowd_ref[4], FK_REF_NONE);
    check_identify(&c, asker, crowd_ref[4], FK_REF_NONE);
    check_identify(&c, asker, FK_REF_NONE, FK_REF_NONE);
    check_identify(&c, asker, (fk_ref){ UINT32_MAX, 1, asker.system }, FK_REF_NONE);
    CHECK_OK(fk_send(o.r.sys, doer, FK_MSG(rig_call, stop_in_vain, NULL)));
    check_identify(&c, asker, doer, FK_REF_NONE);
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://t/deadLetters"), &silent, NULL));
    check_identify(&c, asker, silent, FK_REF_NONE);
    /* All of a selection, and none. */
    c.count = c.nobody = 0;
    CHECK_OK(fk_select_send_from(o.r.sys, asker, FK_STR("../p*"), asker, FK_IDENTIFY(5)));
    rig_run(&o.r);
    CHECK_U64(c.count, CROWD - 1);
    CHECK_U64(c.nobody, 0);
    static const char *const NONE[] = { "../none", "/user/p4", "a b", "../../..", "fraktor://u/a" };
    for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++) {
        c.count = c.nobody = 0;
        fk_select_send_from(o.r.sys, asker, fk_str_of(NONE[i]), asker, FK_IDENTIFY(6));
        rig_run(&o.r);
        CHECK_U64(c.count, 1);
        CHECK_U64(c.nobody, 1);
    }
    CHECK_OK(fk_send(o.r.sys, crowd_ref[3], FK_IDENTIFY(7))); /* nobody asks: no answer */
    CHECK_OK(send_text("/user/none", FK_IDENTIFY(7)));
    observer_letters(&o, 0); /* a question is never a dead letter */
    fk_stats stats;
    fk_stats_get(o.r.sys, &stats);
    for (int i = 0; i < FK_REASON_COUNT; i++) CHECK_U64(stats.dead_letters[i], 0);
    rig_stop(&o.r);
}

/* ---- resolve_one ----------------------------------------------------------------------------------------- */

static fk_err try_inside(fk_ctx *ctx, void *arg)
{
    fk_ref out;
    *(fk_err *)arg = fk_resolve_one(fk_system_of(ctx), FK_STR("/user"), FK_SECONDS(1), &out);
    return FK_OK;
}

TEST(resolve_one_is_not_for_the_inside)
{
    fk_err err = FK_OK;
    fk_ref out;
    start((fk_system_config){ 0 });
    rig_do(&o.r, observer_spawn(&o, "a"), try_inside, &err);
    CHECK_ERR(err, FK_E_STATE);
    /* Nor for the thread that drives the system: it would wait for itself. */
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/a"), FK_SECONDS(1), &out), FK_E_STATE);
    rig_stop(&o.r);
    start((fk_system_config){ .workers = 2 });
    fk_ref doer = observer_spawn(&o, "a");
    CHECK_OK(fk_send(o.r.sys, doer, FK_MSG(rig_call, try_inside, &err)));
    CHECK_OK(fk_poison(o.r.sys, doer));
    CHECK_OK(fk_await_stopped(o.r.sys, doer, FK_SECONDS(20)));
    CHECK_ERR(err, FK_E_STATE);
    rig_stop(&o.r);
}

static fk_err sleep_well(fk_ctx *ctx, void *arg)
{
    const _Atomic bool *is_over = arg;
    (void)ctx;
    while (!atomic_load(is_over)) test_sleep_ms(1);
    return FK_OK;
}

TEST(resolve_one_finds_waits_and_gives_up)
{
    _Atomic bool is_over = false;
    fk_ref found = { 1, 2, 3 };
    const fk_ref untouched = { 1, 2, 3 };
    start((fk_system_config){ .workers = 2 });
    fk_ref a = observer_spawn(&o, "a"), b = observer_spawn(&o, "b");
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/none"), FK_SECONDS(20), &found),
              FK_E_PID_UNKNOWN);
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/a b"), FK_SECONDS(20), &found), FK_E_NAME);
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/.."), FK_SECONDS(20), &found), FK_E_ESCAPE);
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/deadLetters"), FK_SECONDS(20), &found),
              FK_E_PID_UNKNOWN);
    CHECK(fk_ref_equal(found, untouched));
    CHECK_OK(fk_resolve_one(o.r.sys, FK_STR("/user/a"), FK_SECONDS(20), &found));
    CHECK(fk_ref_equal(found, a));
    CHECK_OK(fk_resolve_one(o.r.sys, FK_STR("/user/?"), FK_NEVER, &found));
    CHECK(fk_ref_equal(found, a) || fk_ref_equal(found, b));
    CHECK_OK(fk_resolve_one(o.r.sys, FK_STR("fraktor://t/"), FK_SECONDS(20), &found));
    /* One who is busy answers later; who is in a hurry does not get to know. */
    found = untouched;
    CHECK_OK(fk_send(o.r.sys, b, FK_MSG(rig_call, sleep_well, &is_over)));
    int64_t begin = test_clock();
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/b"), FK_MILLIS(30), &found), FK_E_TIMEOUT);
    CHECK(test_clock() - begin >= FK_MILLIS(30));
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/b"), 0, &found), FK_E_TIMEOUT);
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/b"), -5, &found), FK_E_TIMEOUT);
    CHECK(fk_ref_equal(found, untouched));
    atomic_store(&is_over, true);
    CHECK_OK(fk_resolve_one(o.r.sys, FK_STR("/user/b"), FK_SECONDS(20), &found));
    CHECK(fk_ref_equal(found, b));
    rig_stop(&o.r);
}

/* Several have no such child: nobody says so. */
TEST(resolve_one_of_a_silent_miss_knows_at_once)
{
    fk_ref found = FK_REF_NONE;
    start((fk_system_config){ .workers = 1 });
    observer_spawn(&o, "a");
    observer_spawn(&o, "b");
    CHECK_ERR(fk_resolve_one(o.r.sys, FK_STR("/user/*/none"), FK_SECONDS(20), &found),
              FK_E_PID_UNKNOWN);
    CHECK(fk_ref_is_none(found));
    rig_stop(&o.r);
}

enum { THREADS = 24 };

static void *resolve_often(void *arg)
{
    uint64_t count = test_scaled(400);
    (void)arg;
    for (uint64_t i = 0; i < count; i++) {
        fk_ref found = FK_REF_NONE;
        char text[32];
        snprintf(text, sizeof(text), "/user/p%d", (int)(i % 8));
        fk_err err = fk_resolve_one(o.r.sys, fk_str_of(text), FK_SECONDS(60), &found);
        CHECK_ERR(err, i % 8 < 4 ? FK_OK : FK_E_PID_UNKNOWN);
        CHECK(i % 8 >= 4 || fk_ref_equal(found, crowd_ref[i % 8]));
    }
    return NULL;
}

TEST(resolve_one_by_many_threads_at_once)
{
    pthread_t thread[THREADS];
    fk_stats stats;
    start((fk_system_config){ .workers = 2 });
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "p%d", i);
        crowd_ref[i] = observer_spawn(&o, name);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, resolve_often, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 1000; i++) {
        fk_stats_get(o.r.sys, &stats);
        if (stats.actors == 4) break;
        test_sleep_ms(5);
    }
    CHECK_U64(stats.actors, 4); /* those who asked are gone */
    rig_stop(&o.r);
}

/* ---- callbacks ---------------------------------------------------------------------------------------------- */

static pthread_barrier_t barrier;

/* All are in the callback at once, and each sends. */
static void meet_and_send(void *user, const fk_event *event)
{
    rig *r = user;
    if (event->kind != FK_EVENT_PATH_FAULT) return;
    pthread_barrier_wait(&barrier);
    fk_send(r->sys, FK_REF_NONE, FK_MSG(num, 1));
}

static void *send_hostile(void *arg)
{
    (void)arg;
    CHECK_ERR(fk_select_send(o.r.sys, FK_STR("a b"), FK_MSG(num, 1)), FK_E_NAME);
    return NULL;
}

TEST(select_events_may_send_on_as_many_threads_as_there_are)
{
    pthread_t thread[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    start((fk_system_config){ .workers = 1, .on_event = meet_and_send });
    for (int i = 0; i < THREADS; i++) {
        CHECK_U64(pthread_create(&thread[i], NULL, send_hostile, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    CHECK_U64(o.letters, 2 * THREADS);
    rig_stop(&o.r);
    pthread_barrier_destroy(&barrier);
}

static void send_in_vain(void *user, const fk_event *event)
{
    observer *own = user;
    if (event->kind != FK_EVENT_PATH_FAULT) return;
    own->events++;
    CHECK(own->events < 100);
    fk_select_send(own->r.sys, FK_STR("b c"), FK_MSG(num, 1));
}

TEST(select_an_event_that_sends_to_no_path_does_not_go_on_for_ever)
{
    start((fk_system_config){ .on_event = send_in_vain });
    CHECK_ERR(send_text("a b", FK_MSG(num, 1)), FK_E_NAME);
    CHECK_U64(o.events, 1);
    rig_stop(&o.r);
}

TEST(select_by_wildcard_and_uid_finds_that_one_only)
{
    char text[64];
    start_crowd(2);
    CHECK_OK(send_text("/user/p*#999999", FK_MSG(num, 1)));
    CHECK_STR(observer_letters(&o, 1)->path, "fraktor://t/user/p*#999999");
    uint64_t uid = observer_uid(&o, crowd_ref[1]);
    snprintf(text, sizeof(text), "/user/p*#%llu", (unsigned long long)uid);
    CHECK_OK(send_text(text, FK_MSG(num, 1)));
    CHECK_U64(crowd[0].count, 0);
    CHECK_U64(crowd[1].count, 1);
    rig_stop(&o.r);
}

TEST(select_from_nobody_shows_what_was_asked)
{
    start_crowd(1);
    fk_select_send_from(o.r.sys, FK_REF_NONE, FK_STR("../p0"), FK_REF_NONE, FK_MSG(num, 1));
    rig_run(&o.r);
    CHECK_STR(observer_letters(&o, 1)->path, "../p0");
    CHECK_U64(crowd[0].count, 0);
    rig_stop(&o.r);
}

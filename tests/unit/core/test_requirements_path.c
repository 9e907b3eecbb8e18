/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The acceptance criteria of paths, one test each, by what a user can call and see.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fraktor/registry.h"
#include "fraktor/remote.h"
#include "fraktor/select.h"
#include "support/observer.h"

static const fk_props DOER = { .receive = doer_receive };

static observer o;

static fk_path parse(const char *text)
{
    fk_path path;
    CHECK_OK(fk_path_parse(NULL, fk_str_of(text), &path, NULL));
    return path;
}

/* A message to the dead: the dead letter shows the path. */
static void check_shown(const char *place, fk_ref ref, uint64_t uid)
{
    char expected[OBSERVER_TEXT];
    snprintf(expected, sizeof(expected), "%s#%" PRIu64, place, uid);
    observer_check_path(&o, ref, expected);
    observer_bury(&o, ref);
    CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(num, 1)));
    const observer_letter *letter = observer_letters(&o, 1);
    CHECK_STR(letter->path, expected);
    CHECK_U64(letter->reason, FK_REASON_STOPPED);
}

/* ---- R1: how a path is written ---------------------------------------------------------------- */

TEST(r1_1_canonical_uri_in_dead_letters_with_an_authority)
{
    static const struct {
        const char *host, *shown;
        uint16_t port;
        fk_scheme scheme;
    } CASES[] = {
        { "node-1.example.org", "fraktor://bank@node-1.example.org:2552", 2552, FK_SCHEME_LOCAL },
        { "10.0.0.1", "fraktor.tcp://bank@10.0.0.1:1", 1, FK_SCHEME_TCP },
        { "[::1]", "fraktor.tcp://bank@[::1]:65535", 65535, FK_SCHEME_TCP },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        char place[OBSERVER_TEXT];
        observer_start_with(
            &o, (fk_system_config){ .name = "bank",
                                    .scheme = CASES[i].scheme,
                                    .remoting = { .host = CASES[i].host, .port = CASES[i].port } });
        fk_ref ref = observer_spawn(&o, "alice");
        snprintf(place, sizeof(place), "%s/user/alice", CASES[i].shown);
        check_shown(place, ref, observer_uid(&o, ref));
        CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/nobody"), FK_MSG(num, 1)));
        snprintf(place, sizeof(place), "%s/user/nobody", CASES[i].shown);
        CHECK_STR(observer_letters(&o, 1)->path, place);
        CHECK_OK(fk_send(o.r.sys, FK_REF_NONE, FK_MSG(num, 1)));
        snprintf(place, sizeof(place), "%s/deadLetters", CASES[i].shown);
        CHECK_STR(observer_letters(&o, 1)->path, place);
        rig_stop(&o.r);
    }
}

TEST(r1_2_a_segment_of_other_characters_is_refused_with_its_index)
{
    static const char LEGAL[] = "-_.*$+:@&=,!~';";
    for (int byte = 1; byte < 256; byte++) {
        char text[64];
        fk_path path;
        fk_path_fault fault = { FK_OK, -2, 0, NULL };
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool digit = byte >= '0' && byte <= '9';
        bool legal = letter || digit || strchr(LEGAL, byte) != NULL;
        if (byte == '/' || byte == '#' || byte == '%') continue; /* have a meaning of their own */
        snprintf(text, sizeof(text), "fraktor://s/user/a/b%cc/d", byte);
        fk_err err = fk_path_parse(NULL, fk_str_of(text), &path, &fault);
        CHECK_ERR(err, legal ? FK_OK : FK_E_NAME);
        if (legal) continue;
        CHECK_U64(fault.segment, 2);
        CHECK_U64(fault.at, 20);
    }
    fk_path path;
    fk_path_fault fault;
    CHECK_OK(fk_path_parse(NULL, FK_STR("fraktor://s/user/a%20b"), &path, NULL));
    CHECK_ERR(fk_path_parse(NULL, FK_STR("fraktor://s/user/x/a%2"), &path, &fault), FK_E_PERCENT);
    CHECK_U64(fault.segment, 2);
    CHECK_ERR(fk_path_parse(NULL, FK_STR("fraktor://s/u%zz/x"), &path, &fault), FK_E_PERCENT);
    CHECK_U64(fault.segment, 0);
}

TEST(r1_2_an_actor_cannot_be_made_with_such_a_name)
{
    static const char *const BAD[] = { "a b", "a/b", "a?b", "\xc3\xa4", "a\nb", "a\x1b[2J", "[a]" };
    fk_ref ref = FK_REF_NONE;
    observer_start_with(&o, (fk_system_config){ 0 });
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        CHECK_ERR(fk_spawn(o.r.sys, fk_str_of(BAD[i]), &DOER, &ref), FK_E_NAME);
        CHECK(fk_ref_is_none(ref));
    }
    rig_stop(&o.r);
}

TEST(r1_3_without_an_authority_only_the_system_and_its_guardians)
{
    fk_path path;
    char buf[256], text[256];
    observer_start_with(&o, (fk_system_config){ .name = "bank" });
    fk_ref ref = observer_spawn(&o, "alice");
    check_shown("fraktor://bank/user/alice", ref, observer_uid(&o, ref));
    CHECK_OK(fk_system_path(o.r.sys, &FK_STR("bob"), 1, FK_BUF(buf), &path, NULL));
    fk_path_format(&path, FK_FORM_FULL, text, sizeof(text));
    CHECK_STR(text, "fraktor://bank/user/bob");
    rig_stop(&o.r);
    observer_start_with(&o, (fk_system_config){ .name = "bank", .guardian = FK_GUARDIAN_SYSTEM });
    CHECK_OK(fk_system_path(o.r.sys, &FK_STR("bob"), 1, FK_BUF(buf), &path, NULL));
    fk_path_format(&path, FK_FORM_FULL, text, sizeof(text));
    CHECK_STR(text, "fraktor://bank/system/bob");
    ref = observer_spawn(&o,
                         "alice"); /* the guardian of the config is that of paths from parts only */
    observer_check_place(&o, ref, "fraktor://bank/user/alice");
    rig_stop(&o.r);
}

TEST(r1_4_a_uid_survives_writing_and_reading)
{
    static const char *const UIDS[] = { "1", "123456", "4294967296", "18446744073709551615" };
    char text[128], again[128];
    for (size_t i = 0; i < sizeof(UIDS) / sizeof(UIDS[0]); i++) {
        snprintf(text, sizeof(text), "fraktor.tcp://s@h:1/user/a#%s", UIDS[i]);
        fk_path path = parse(text);
        fk_path_format(&path, FK_FORM_FULL, again, sizeof(again));
        CHECK_STR(again, text);
    }
}

TEST(r1_4_a_path_with_its_uid_leads_to_that_actor_and_to_no_other)
{
    char text[256], other[256];
    fk_ref found = FK_REF_NONE;
    observer_start_with(&o, (fk_system_config){ .name = "bank" });
    fk_ref ref = observer_spawn(&o, "alice");
    uint64_t uid = observer_uid(&o, ref);
    fk_path_of(o.r.sys, ref, text, sizeof(text));
    CHECK_OK(fk_resolve(o.r.sys, fk_str_of(text), &found, NULL));
    CHECK(fk_ref_equal(found, ref));
    snprintf(other, sizeof(other), "fraktor://bank/user/alice#%" PRIu64, uid + 1);
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(other), &found, NULL), FK_E_PID_UNKNOWN);
    observer_bury(&o, ref);
    fk_ref next = observer_spawn(&o, "alice");
    CHECK(observer_uid(&o, next) != uid);
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(text), &found, NULL), FK_E_PID_UNKNOWN);
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://bank/user/alice"), &found, NULL));
    CHECK(fk_ref_equal(found, next));
    /* One that was brought along, too. */
    CHECK_OK(fk_spawn_as(o.r.sys, FK_STR("bob"), UINT64_MAX, &DOER, &ref));
    observer_check_path(&o, ref, "fraktor://bank/user/bob#18446744073709551615");
    rig_stop(&o.r);
}

TEST(r1_5_case_is_kept)
{
    fk_ref found;
    observer_start_with(&o, (fk_system_config){ .name = "Bank" });
    fk_ref lower = observer_spawn(&o, "alice"), upper = observer_spawn(&o, "Alice"),
           mixed = observer_spawn(&o, "aLICE%2d%2D");
    observer_check_place(&o, lower, "fraktor://Bank/user/alice");
    observer_check_place(&o, upper, "fraktor://Bank/user/Alice");
    observer_check_place(&o, mixed, "fraktor://Bank/user/aLICE%2d%2D");
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("FRAKTOR://Bank/user/Alice"), &found, NULL));
    CHECK(fk_ref_equal(found, upper));
    CHECK_ERR(fk_resolve(o.r.sys, FK_STR("fraktor://Bank/user/ALICE"), &found, NULL),
              FK_E_PID_UNKNOWN);
    CHECK_ERR(fk_resolve(o.r.sys, FK_STR("fraktor://Bank/User/alice"), &found, NULL),
              FK_E_PID_UNKNOWN);
    rig_stop(&o.r);
}

static fk_err spawn_reserved(fk_ctx *ctx, void *arg)
{
    fk_ref ref;
    (void)arg;
    CHECK_ERR(fk_spawn_child(ctx, FK_STR("$x"), &DOER, &ref), FK_E_RESERVED);
    return FK_OK;
}

TEST(r1_6_names_of_users_do_not_begin_with_a_dollar)
{
    static const char *const BAD[] = { "$", "$a", "$$", "%24", "%24a" };
    fk_ref ref;
    observer_start_with(&o, (fk_system_config){ 0 });
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        CHECK_ERR(fk_spawn(o.r.sys, fk_str_of(BAD[i]), &DOER, &ref), FK_E_RESERVED);
        CHECK_ERR(fk_spawn_as(o.r.sys, fk_str_of(BAD[i]), 1ull << 40, &DOER, &ref), FK_E_RESERVED);
    }
    fk_ref doer = observer_spawn(&o, "a$b"); /* inside it is a character like others */
    rig_do(&o.r, doer, spawn_reserved, NULL);
    ref = observer_spawn(&o, ""); /* and the runtime's own names can be asked for */
    observer_check_place(&o, ref, "fraktor://fraktor/user/$a");
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://fraktor/user/$a"), &doer, NULL));
    CHECK(fk_ref_equal(ref, doer));
    CHECK_U64(o.r.failures.count, 0);
    rig_stop(&o.r);
}

/* ---- R2: how a path is read -------------------------------------------------------------------- */

TEST(r2_1_a_path_is_taken_apart_along_the_tree)
{
    static const struct {
        const char *text;
        fk_path_top_kind top;
        uint32_t depth;
    } CASES[] = {
        { "fraktor://s/", FK_TOP_ROOT, 0 },
        { "fraktor://s", FK_TOP_ROOT, 0 },
        { "fraktor://s/user", FK_TOP_USER, 1 },
        { "fraktor://s/user/a/b#3", FK_TOP_USER, 3 },
        { "fraktor://s/system/log", FK_TOP_SYSTEM, 2 },
        { "fraktor://s/temp/$a", FK_TOP_TEMP, 2 },
        { "fraktor://s/deadLetters", FK_TOP_DEAD_LETTERS, 1 },
        { "fraktor://s/User", FK_TOP_EXTRA, 1 },
        { "fraktor://s/users/a", FK_TOP_EXTRA, 2 },
        { "fraktor://s/%75ser/a", FK_TOP_USER, 2 },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        fk_path path = parse(CASES[i].text);
        CHECK_U64(fk_path_top(&path), CASES[i].top);
        CHECK_U64(path.depth, CASES[i].depth);
        uint32_t segments = 0;
        size_t cursor = 0;
        for (fk_str segment; fk_path_next(&path, &cursor, &segment); segments++) {
            CHECK(segment.len != 0);
        }
        CHECK_U64(segments, CASES[i].depth);
    }
}

typedef struct family {
    probe child[2];
    fk_ref ref[2];
    fk_err escaped, sibling, parent;
} family;

static fk_err make_family(fk_ctx *ctx, void *arg)
{
    family *f = arg;
    static const char *const NAMES[] = { "one", "two" };
    for (int i = 0; i < 2; i++) {
        fk_props props = probe_props(&f->child[i]);
        CHECK_OK(fk_spawn_child(ctx, fk_str_of(NAMES[i]), &props, &f->ref[i]));
    }
    return FK_OK;
}

TEST(r2_2_dots_climb_and_never_out_of_the_tree)
{
    static family f;
    fk_system_config config = { .name = "s" };
    observer_start_with(&o, config);
    fk_ref parent = observer_spawn(&o, "p");
    rig_do(&o.r, parent, make_family, &f);
    fk_system *sys = o.r.sys;
    CHECK_OK(fk_select_send_from(sys, f.ref[0], FK_STR("../two"), f.ref[0], FK_MSG(num, 5)));
    CHECK_OK(
        fk_select_send_from(sys, f.ref[0], FK_STR("../.././p/./two"), f.ref[0], FK_MSG(num, 6)));
    rig_run(&o.r);
    CHECK_U64(f.child[1].count, 2);
    CHECK(fk_ref_equal(f.child[1].sender, f.ref[0]));
    static const char *const OUT[] = { "../../..", "../../../user/p/two", "../../../../..", "/..",
                                       "/user/..", "/user/../user/p/two", "x/../../../../y" };
    for (size_t i = 0; i < sizeof(OUT) / sizeof(OUT[0]); i++) {
        fk_str text = fk_str_of(OUT[i]);
        CHECK_ERR(fk_select_send_from(sys, f.ref[0], text, f.ref[0], FK_MSG(num, 7)), FK_E_ESCAPE);
        const observer_letter *letter = observer_letters(&o, 1);
        CHECK_U64(letter->reason, FK_REASON_BAD_PATH);
        CHECK_STR(letter->path, OUT[i]);
        const observer_event *event = observer_events(&o, 1);
        CHECK_U64(event->kind, FK_EVENT_PATH_FAULT);
        CHECK_ERR(event->fault.err, FK_E_ESCAPE);
        CHECK_STR(event->text, OUT[i]);
    }
    rig_run(&o.r);
    CHECK_U64(f.child[1].count, 2);
    fk_path base = parse("fraktor://s/user/p/one"), out;
    char buf[128], text[128];
    CHECK_OK(fk_path_resolve(NULL, &base, FK_STR("../two"), FK_BUF(buf), &out, NULL));
    fk_path_format(&out, FK_FORM_FULL, text, sizeof(text));
    CHECK_STR(text, "fraktor://s/user/p/two");
    CHECK_ERR(fk_path_resolve(NULL, &base, FK_STR("../../.."), FK_BUF(buf), &out, NULL),
              FK_E_ESCAPE);
    rig_stop(&o.r);
}

TEST(r2_3_other_schemes_are_refused)
{
    static const char *const BAD[] = { "pekko://s/user/a",
                                       "akka.tcp://s@h:1/user/a",
                                       "http://s/user",
                                       "fraktor.udp://s/user/a",
                                       "fraktors://s/user/a",
                                       "://s/user/a",
                                       "/user/a" };
    fk_ref ref = FK_REF_NONE;
    observer_start_with(&o, (fk_system_config){ .name = "s" });
    observer_spawn(&o, "a");
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        fk_path_fault fault;
        fk_str text = fk_str_of(BAD[i]);
        CHECK_ERR(fk_resolve(o.r.sys, text, &ref, &fault), FK_E_SCHEME);
        CHECK_ERR(fault.err, FK_E_SCHEME);
        CHECK_STR(fk_path_code(fault.err), "invalid_scheme");
        CHECK(fk_ref_is_none(ref));
        CHECK_ERR(observer_events(&o, 1)->fault.err, FK_E_SCHEME);
    }
    CHECK_ERR(fk_select_send(o.r.sys, FK_STR("pekko://s/user/a"), FK_MSG(num, 1)), FK_E_SCHEME);
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_BAD_PATH);
    fk_authority_info info; /* nor does such a text make a system known */
    CHECK_ERR(fk_authority_state(o.r.sys, FK_STR("fraktor.tcp://s@h:1"), &info), FK_E_NOT_FOUND);
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("Fraktor.TCP://s/user/a"), &ref, NULL));
    rig_stop(&o.r);
}

static const char PEER[] = "fraktor.tcp://other@10.0.0.9:2552";

static fk_authority_info info_of(const char *address)
{
    fk_authority_info info;
    CHECK_OK(fk_authority_state(o.r.sys, fk_str_of(address), &info));
    return info;
}

/* host: the system's own address, or NULL. */
static void check_deferred(const char *host)
{
    _Atomic int drops = 0;
    fk_ref ref, again, own;
    observer_start_with(
        &o, (fk_system_config){
                .name = "s",
                .remoting = { .host = host, .port = host != NULL ? 2551 : 0, .deferred_max = 5 } });
    fk_str path = FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/a#7");
    CHECK_OK(fk_resolve(o.r.sys, path, &ref, NULL));
    CHECK_OK(fk_resolve(o.r.sys, path, &again, NULL));
    CHECK(fk_ref_equal(ref, again));
    observer_check_path(&o, ref, "fraktor.tcp://other@10.0.0.9:2552/user/a#7");
    CHECK_STR(observer_events(&o, 1)->text, "fraktor.tcp://other@10.0.0.9:2552");
    own = observer_spawn(&o, "a"); /* of the same local path: gets nothing of it */
    for (int i = 0; i < 4; i++) {
        CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(owned, &drops, (uint64_t)i)));
    }
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/b"),
                            FK_MSG(owned, &drops, 4)));
    rig_advance(&o.r, FK_SECONDS(60));
    CHECK_U64(info_of(PEER).status, FK_AUTHORITY_UNRESOLVED);
    CHECK_U64(info_of(PEER).deferred, 5);
    observer_letters(&o, 0);
    CHECK_U64(drops, 0);
    CHECK(fk_is_alive(o.r.sys, own));
    CHECK_ERR(fk_send(o.r.sys, ref, FK_MSG(owned, &drops, 5)), FK_E_FULL); /* one over the limit */
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_FULL);
    CHECK_U64(drops, 1);
    rig_stop(&o.r);
    const observer_letter *letter = observer_letters(&o, 5); /* not lost at the end, either */
    CHECK_U64(letter->reason, FK_REASON_SYSTEM_STOPPING);
    CHECK_U64(drops, 6);
}

TEST(r2_4_what_is_for_a_system_not_yet_reached_waits)
{
    check_deferred("10.0.0.1");
    check_deferred(NULL);
}

TEST(r2_5_escapes_are_decoded_before_the_lookup)
{
    fk_ref found;
    probe p;
    observer_start_with(&o, (fk_system_config){ .name = "s" });
    fk_ref plain = observer_spawn(&o, "worker-1"), escaped = observer_spawn(&o, "x%20y%2Bz");
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://s/%75ser/%77ork%65r%2D1"), &found, NULL));
    CHECK(fk_ref_equal(found, plain));
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor://s/user/%78%20y+z"), &found, NULL));
    CHECK(fk_ref_equal(found, escaped));
    observer_check_place(&o, found, "fraktor://s/user/x%20y%2Bz"); /* shown as it was written */
    CHECK_ERR(fk_spawn(o.r.sys, FK_STR("%77orker-1"), &DOER, &found), FK_E_NAME_TAKEN);
    fk_props props = probe_props(&p);
    CHECK_OK(fk_spawn(o.r.sys, FK_STR("probe"), &props, &found));
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/%70rob%65"), FK_MSG(num, 1)));
    CHECK_OK(fk_select_send(o.r.sys, FK_STR("/user/pro%62*"), FK_MSG(num, 2)));
    rig_run(&o.r);
    CHECK_U64(p.count, 2);
    rig_stop(&o.r);
}

/* ---- R3: the same path, the same actor ----------------------------------------------------------- */

TEST(r3_1_equal_paths_have_equal_hashes)
{
    static const char *const SAME[] = { "fraktor://s@h:1/user/a-b", "fraktor://s@h:1//user/a-b/",
                                        "FRAKTOR://s@h:1/user/%61%2Db",
                                        "fraktor.tcp://s@h:1/user/a-b" };
    static const char *const OTHER[] = { "fraktor://t@h:1/user/a-b", "fraktor://s@i:1/user/a-b",
                                         "fraktor://s@h:2/user/a-b", "fraktor://s/user/a-b",
                                         "fraktor://s@h:1/user/a-B", "fraktor://s@h:1/user/a-b/c" };
    fk_path first = parse(SAME[0]);
    for (size_t i = 0; i < sizeof(SAME) / sizeof(SAME[0]); i++) {
        fk_path path = parse(SAME[i]);
        CHECK(fk_path_equal(&first, &path));
        CHECK_U64(fk_path_hash(&path), fk_path_hash(&first));
        CHECK_U64(fk_path_compare(&first, &path), 0);
    }
    for (size_t i = 0; i < sizeof(OTHER) / sizeof(OTHER[0]); i++) {
        fk_path path = parse(OTHER[i]);
        CHECK(!fk_path_equal(&first, &path));
        CHECK(fk_path_compare(&first, &path) != 0);
    }
}

TEST(r3_2_uids_take_no_part_in_it)
{
    fk_path none = parse("fraktor://s/user/a"), one = parse("fraktor://s/user/a#1"),
            two = parse("fraktor://s/user/a#2");
    CHECK(fk_path_equal(&none, &one));
    CHECK(fk_path_equal(&one, &two));
    CHECK_U64(fk_path_hash(&none), fk_path_hash(&one));
    CHECK_U64(fk_path_hash(&two), fk_path_hash(&one));
}

static const fk_time DAYS_5 = FK_SECONDS(5 * 86400);

/* A dead actor's uid can be had again after exactly that long, and not before. */
static void check_reserved_for(fk_time duration)
{
    fk_time left = 0;
    fk_ref ref = observer_spawn(&o, "alice");
    uint64_t uid = observer_uid(&o, ref);
    fk_str path = FK_STR("fraktor://bank/user/alice");
    CHECK_ERR(fk_uid_claim(o.r.sys, path, uid, &left), FK_E_UID_RESERVED);
    CHECK(left == FK_NEVER);
    observer_bury(&o, ref);
    CHECK_ERR(fk_uid_claim(o.r.sys, path, uid, &left), FK_E_UID_RESERVED);
    CHECK_U64(left, duration);
    rig_advance(&o.r, duration - 1);
    CHECK_ERR(fk_uid_claim(o.r.sys, path, uid, &left), FK_E_UID_RESERVED);
    CHECK_U64(left, 1);
    CHECK_ERR(fk_spawn_as(o.r.sys, FK_STR("alice"), uid, &DOER, &ref), FK_E_UID_RESERVED);
    rig_advance(&o.r, 1);
    CHECK_OK(fk_spawn_as(o.r.sys, FK_STR("alice"), uid, &DOER, &ref));
    CHECK_U64(observer_uid(&o, ref), uid);
    observer_bury(&o, ref);
    CHECK_ERR(fk_uid_claim(o.r.sys, path, uid, &left), FK_E_UID_RESERVED);
    CHECK_U64(left, duration);
}

TEST(r3_3_a_dead_actors_uid_is_reserved)
{
    observer_start_with(&o, (fk_system_config){ .name = "bank" });
    check_reserved_for(DAYS_5);
    rig_stop(&o.r);
}

static fk_err make_chain(fk_ctx *ctx, void *arg)
{
    uint32_t *left = arg;
    fk_ref child;
    if ((*left)-- == 0) return FK_OK;
    CHECK_OK(fk_spawn_child(ctx, FK_STR("c"), &DOER, &child));
    return fk_tell(ctx, child, FK_MSG(rig_call, make_chain, arg));
}

static char *step_down(char *end)
{
    end[0] = '/';
    end[1] = 'c';
    end[2] = '\0';
    return end + 2;
}

TEST(r3_4_children_are_resolved_without_a_second_look_at_their_parents)
{
    /* A parent that no parser would let through: the child is joined to it all the same. */
    fk_path parent = parse("fraktor://s/user/a"), child;
    parent.segments = FK_STR("/user/not a name\x01");
    char buf[256];
    CHECK_OK(fk_path_child(NULL, &parent, FK_STR("b"), FK_BUF(buf), &child, NULL));
    CHECK_U64(child.segments.len, parent.segments.len + 2);
    CHECK(memcmp(child.segments.ptr, "/user/not a name\x01/b", child.segments.len) == 0);
    CHECK_ERR(fk_path_child(NULL, &parent, FK_STR("b c"), FK_BUF(buf), &child, NULL), FK_E_NAME);
    /* As deep as allowed, each found by its own steps. */
    uint32_t levels = 61; /* below /user/top */
    char text[512] = "fraktor://s/user/top";
    char *end = text + strlen(text);
    fk_ref ref;
    observer_start_with(&o, (fk_system_config){ .name = "s" });
    rig_do(&o.r, observer_spawn(&o, "top"), make_chain, &levels);
    for (uint32_t i = 0; i < 61; i++) {
        end = step_down(end);
        CHECK_OK(fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL));
        observer_check_place(&o, ref, text);
    }
    end = step_down(end);
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL), FK_E_PID_UNKNOWN);
    step_down(end);
    CHECK_ERR(fk_resolve(o.r.sys, fk_str_of(text), &ref, NULL), FK_E_LIMIT);
    rig_stop(&o.r);
}

TEST(r3_5_a_quarantined_system_is_sent_nothing_and_every_send_says_so)
{
    fk_ref ref, later;
    observer_start_with(&o, (fk_system_config){ .name = "s" });
    CHECK_OK(fk_resolve(o.r.sys, FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/a"), &ref, NULL));
    for (int i = 0; i < 3; i++) CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(num, 1)));
    observer_events(&o, 1); /* unresolved */
    CHECK_OK(fk_authority_quarantine(o.r.sys, fk_str_of(PEER)));
    rig_run(&o.r);
    CHECK_U64(info_of(PEER).status, FK_AUTHORITY_QUARANTINE);
    CHECK_U64(info_of(PEER).quarantine_left, DAYS_5);
    CHECK_U64(observer_letters(&o, 3)->reason, FK_REASON_QUARANTINED); /* what waited */
    CHECK_U64(observer_events(&o, 4)->kind, FK_EVENT_INVALID_ASSOCIATION);
    for (int i = 0; i < 5; i++) {
        CHECK_ERR(fk_send(o.r.sys, ref, FK_MSG(num, 1)), FK_E_QUARANTINED);
        const observer_letter *letter = observer_letters(&o, 1);
        CHECK_U64(letter->reason, FK_REASON_QUARANTINED);
        CHECK_STR(letter->path, "fraktor.tcp://other@10.0.0.9:2552/user/a");
        const observer_event *event = observer_events(&o, 1);
        CHECK_U64(event->kind, FK_EVENT_INVALID_ASSOCIATION);
        CHECK_STR(event->text, "fraktor.tcp://other@10.0.0.9:2552");
    }
    fk_str path = FK_STR("fraktor.tcp://other@10.0.0.9:2552/user/b");
    CHECK_ERR(fk_resolve(o.r.sys, path, &later, NULL), FK_E_QUARANTINED);
    rig_advance(&o.r, DAYS_5 - 1);
    CHECK_U64(info_of(PEER).status, FK_AUTHORITY_QUARANTINE);
    rig_advance(&o.r, FK_MILLIS(10)); /* timers are never early, but a little late */
    CHECK_U64(info_of(PEER).status, FK_AUTHORITY_UNRESOLVED);
    CHECK_OK(fk_send(o.r.sys, ref, FK_MSG(num, 1)));
    CHECK_U64(info_of(PEER).deferred, 1);
    rig_stop(&o.r);
}

TEST(r3_6_path_and_uid_decide_not_the_path_alone)
{
    fk_time left;
    fk_ref found;
    fk_str path = FK_STR("fraktor://bank/user/alice");
    observer_start_with(&o, (fk_system_config){ .name = "bank" });
    fk_ref first = observer_spawn(&o, "alice");
    uint64_t uid = observer_uid(&o, first);
    observer_bury(&o, first);
    fk_ref second = observer_spawn(&o, "alice"); /* the name is free at once */
    CHECK(observer_uid(&o, second) != uid);
    CHECK(!fk_ref_equal(first, second));
    CHECK_ERR(fk_uid_claim(o.r.sys, path, uid, &left), FK_E_UID_RESERVED);
    CHECK_OK(fk_uid_claim(o.r.sys, path, 1ull << 50, &left)); /* never used */
    CHECK_OK(fk_uid_claim(o.r.sys, FK_STR("fraktor://bank/user/bob"), 1ull << 50, &left));
    CHECK_ERR(fk_uid_claim(o.r.sys, FK_STR("fraktor://bank/user/%61lice"), 1ull << 50, &left),
              FK_E_UID_RESERVED);
    CHECK(left == FK_NEVER);
    CHECK_OK(fk_send(o.r.sys, first, FK_MSG(num, 1))); /* does not reach the second */
    CHECK_U64(observer_letters(&o, 1)->reason, FK_REASON_STOPPED);
    CHECK_OK(fk_resolve(o.r.sys, path, &found, NULL));
    CHECK(fk_ref_equal(found, second));
    rig_stop(&o.r);
}

TEST(r3_7_the_quarantine_is_set_by_the_config)
{
    static const struct {
        fk_time quarantine, override, effective; /* 0: refused */
    } CASES[] = {
        { 0, 0, FK_SECONDS(5 * 86400) },
        { FK_SECONDS(1), 0, FK_SECONDS(1) },
        { FK_SECONDS(3600), 0, FK_SECONDS(3600) },
        { FK_SECONDS(3600), FK_SECONDS(7), FK_SECONDS(7) },
        { 0, FK_SECONDS(7), FK_SECONDS(7) },
        { FK_SECONDS(1) - 1, 0, 0 },
        { 1, FK_SECONDS(7), 0 },
        { FK_SECONDS(7), FK_SECONDS(1) - 1, 0 },
        { -1, 0, 0 },
        { 0, -FK_SECONDS(5), 0 },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        fk_system_config config = { .name = "bank",
                                    .remoting = { .quarantine = CASES[i].quarantine,
                                                  .quarantine_override = CASES[i].override } };
        observer_init(&o);
        bool refused = CASES[i].effective == 0;
        CHECK_ERR(observer_try_start(&o, config), refused ? FK_E_INVALID : FK_OK);
        if (!refused) {
            check_reserved_for(CASES[i].effective);
            rig_stop(&o.r);
        }
        rig_check_empty(&o.r);
    }
}

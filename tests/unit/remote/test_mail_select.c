/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selections that go to another system, and that come from one. */

#include <stdio.h>
#include <string.h>

#include "core/spawn.h"
#include "support/post.h"

static post p;
static probe x1, x2, deep, at_a;
static fk_ref here;

static fk_ref spawn(uint32_t side, const char *name, probe *state)
{
    fk_ref ref;
    fk_props props = probe_props(state);
    CHECK_OK(fk_spawn(p.side[side].o.r.sys, fk_str_of(name), &props, &ref));
    rig_run(&p.side[side].o.r);
    return ref;
}

static void start(post_config config)
{
    post_start(&p, config);
    here = spawn(0, "here", &at_a);
    spawn(1, "x1", &x1);
    spawn(1, "x2", &x2);
    (void)deep;
}

/* Writes a letter of a's to what is selected at b, and b reads it. */
static void send_selected(const char *elements, uint32_t count, uint64_t uid, fk_out what)
{
    post_frame *frame = &p.frame[p.written];
    post_side *a = &p.side[0];
    fk_authority *b = &a->authority;
    fk_letter_path path = { .authority = b,
                            .expression = { .anchor = FK_ANCHOR_ROOT,
                                            .elements = fk_str_of(elements),
                                            .uid = uid,
                                            .count = count } };
    fk_local *local = fk__local_enter(a->o.r.sys);
    fk_node *node = fk__node_create(&local->cache, what);
    node->sender = fk__sender_pack(here.slot, here.generation);
    fk_letter letter = { .node = node, .path = &path };
    frame->from = 0;
    fk_mail_room room = { .to = frame->bytes, .size = sizeof(frame->bytes) };
    CHECK_OK(fk__mail_write(a->mail, &a->peer, &letter, &room, &a->fault));
    frame->len = room.len;
    p.written++;
    fk__node_drop_contents(&local->cache, node);
    fk__node_free(&local->cache, node);
    fk__local_leave(local);
}

static void check_counts(size_t first, size_t second)
{
    post_run(&p);
    CHECK_U64(x1.count, first);
    CHECK_U64(x2.count, second);
}

static const observer_letter *one_letter(fk_reason reason)
{
    post_run(&p);
    const observer_letter *letter = observer_letters(&p.side[1].o, 1);
    CHECK_U64(letter->reason, reason);
    return letter;
}

TEST(mail_of_a_selection_reaches_what_it_selects)
{
    start((post_config){ 0 });
    send_selected("/user/x1", 2, 0, FK_TEXT("one"));
    fk_wire_envelope e = post_last(&p);
    CHECK_U64(e.serializer, FK_SERIALIZER_SELECTION);
    CHECK(fk__wire_equal(e.recipient.text, FK_STR("fraktor://b@10.0.0.1:1001/")));
    check_counts(1, 0);
    CHECK(!fk_ref_is_none(x1.sender));
    send_selected("/user/x*", 2, 0, FK_TEXT("both"));
    check_counts(2, 1);
    send_selected("/user/x1/../x2", 4, 0, FK_MSG(fk_int, 3));
    check_counts(2, 2);
    CHECK(x2.type == &fk_type_fk_int);
    send_selected("/user/x?", 2, 0, FK_MSG_REF(here));
    check_counts(3, 3);
    CHECK(x1.type == &fk_type_fk_ref);
    observer_letters(&p.side[1].o, 0);
    post_stop(&p);
}

TEST(mail_of_a_selection_that_the_program_sends)
{
    start((post_config){ 0 });
    fk_system *sys = p.side[0].o.r.sys;
    CHECK_OK(fk_select_send_from(sys, here, FK_STR("fraktor://b@10.0.0.1:1001/user/x?"), here,
                                 FK_TEXT("both")));
    check_counts(1, 1);
    CHECK_OK(fk_select_send_from(sys, here, FK_STR("fraktor.tcp://b@10.0.0.1:1001/user/x2"), here,
                                 FK_TEXT("a plain path")));
    check_counts(1, 2);
    post_stop(&p);
    post_start(&p, (post_config){ .rules = FK_RULES_PEKKO }); /* there it is a selection, too */
    spawn(1, "x1", &x1);
    sys = p.side[0].o.r.sys;
    CHECK_OK(fk_select_send(sys, FK_STR("pekko.tcp://b@10.0.0.1:1001/user/x1"), FK_TEXT("x")));
    CHECK_U64(post_last(&p).serializer, FK_SERIALIZER_SELECTION);
    post_run(&p);
    CHECK_U64(x1.count, 1);
    post_stop(&p);
}

TEST(mail_of_a_selection_with_uid_is_for_that_one)
{
    start((post_config){ 0 });
    fk_ref ref;
    CHECK_OK(
        fk_resolve(p.side[1].o.r.sys, FK_STR("fraktor://b@10.0.0.1:1001/user/x1"), &ref, NULL));
    uint64_t uid = observer_uid(&p.side[1].o, ref);
    send_selected("/user/x1", 2, uid, FK_TEXT("1"));
    check_counts(1, 0);
    send_selected("/user/x1", 2, uid + 1000, FK_TEXT("1"));
    one_letter(FK_REASON_NO_RECEIVER);
    check_counts(1, 0);
    post_stop(&p);
}

TEST(mail_of_a_selection_that_selects_nobody)
{
    start((post_config){ 0 });
    send_selected("/user/nobody", 2, 0, FK_TEXT("1"));
    const observer_letter *letter = one_letter(FK_REASON_NO_RECEIVER);
    CHECK_STR(letter->path, "fraktor://b@10.0.0.1:1001/user/nobody");
    send_selected("/user/nobody", 2, 0, FK_IDENTIFY(5));
    post_run(&p);
    CHECK_U64(at_a.count, 1);
    CHECK(at_a.type == &fk_type_fk_identity);
    fk_identity got;
    memcpy(&got, at_a.bytes, sizeof(got));
    CHECK(got.id == 5 && fk_ref_is_none(got.ref));
    send_selected("/user/*", 2, 0, FK_IDENTIFY(6));
    post_run(&p);
    CHECK_U64(at_a.count, 3);
    observer_letters(&p.side[1].o, 0);
    post_stop(&p);
}

TEST(mail_of_a_selection_does_not_reach_the_systems_own)
{
    static const struct {
        const char *elements;
        uint32_t count;
    } WAYS[] = { { "/system", 1 },   { "/user/../system", 3 }, { "/sys*", 1 },
                 { "/*", 1 },        { "/s%79stem", 1 },       { "/user/x1/../../system", 5 },
                 { "/system/a*", 2 } };
    for (int trusting = 0; trusting < 2; trusting++) {
        start((post_config){ .is_trusting = trusting });
        fk_system *sys = p.side[1].o.r.sys;
        fk_local *local = fk__local_enter(sys);
        fk_ref inner;
        fk_props props = probe_props(&deep);
        CHECK_OK(fk__spawn(local, sys->top.system, FK_STR("actor"), NULL, &props, &inner));
        fk__local_leave(local);
        for (size_t i = 0; i < sizeof(WAYS) / sizeof(WAYS[0]); i++) {
            send_selected(WAYS[i].elements, WAYS[i].count, 0, FK_TEXT("x"));
            post_run(&p);
            const observer_letter *letter = &p.side[1].o.letter[0];
            if (!trusting) letter = observer_letters(&p.side[1].o, 1);
            CHECK_U64(letter->reason, trusting ? FK_REASON_UNHANDLED : FK_REASON_FORBIDDEN);
            p.side[1].o.letters = 0;
        }
        CHECK_U64(deep.count, trusting);
        post_stop(&p);
    }
}

/* ---- patterns as others may write them --------------------------------------------------------------- */

typedef struct pattern_row {
    fk_pattern_kind kind;
    const char *text;
} pattern_row;

static fk_err inject(const pattern_row *rows, uint32_t count, const char *anchor, bool fan_out,
                     const char *inner_manifest)
{
    unsigned char inner[2048], frame[4096];
    fk_wire_pattern patterns[300];
    for (uint32_t i = 0; i < count; i++) {
        patterns[i] = (fk_wire_pattern){ .kind = rows[i].kind, .text = fk_str_of(rows[i].text) };
    }
    bool is_misc = inner_manifest != NULL;
    fk_wire_selection selection = { .serializer = is_misc ? FK_SERIALIZER_MISC : FK_SERIALIZER_TEXT,
                                    .manifest = fk_str_of(is_misc ? inner_manifest : ""),
                                    .message = is_misc ? FK_STR("") : FK_STR("hi"),
                                    .patterns = { .count = count, .items = patterns },
                                    .fan_out = fan_out };
    size_t size = fk__selection_size(&selection);
    CHECK(size <= sizeof(inner));
    fk__selection_encode(&selection, inner, size);
    fk_wire_envelope e = { .serializer = FK_SERIALIZER_SELECTION,
                           .recipient = { .text = fk_str_of(anchor) },
                           .payload = { (const char *)inner, size } };
    CHECK_OK(fk__frame_size(&e, sizeof(frame) - 4, &size));
    fk__frame_encode(&e, frame);
    return post_inject(&p, (fk_str){ (const char *)frame + 4, size - 4 });
}

static const char ROOT[] = "fraktor://b@10.0.0.1:1001/";
static const char USER[] = "fraktor://b@10.0.0.1:1001/user";

TEST(mail_selection_takes_patterns_for_what_they_say)
{
    static const struct {
        const char *anchor;
        pattern_row rows[3];
        uint32_t count;
        size_t first, second;
        fk_reason reason; /* when nobody gets it */
    } CASES[] = {
        { ROOT, { { FK_PATTERN_NAME, "user" }, { FK_PATTERN_NAME, "x1" } }, 2, 1, 0, 0 },
        { USER, { { FK_PATTERN_NAME, "x1" } }, 1, 1, 0, 0 },
        { USER, { { FK_PATTERN_GLOB, "x*" } }, 1, 1, 1, 0 },
        { USER, { { FK_PATTERN_GLOB, "x2" } }, 1, 0, 1, 0 },
        { USER, { { FK_PATTERN_NAME, "x*" } }, 1, 0, 0, FK_REASON_BAD_PATH },
        { USER, { { FK_PATTERN_NAME, "x?" } }, 1, 0, 0, FK_REASON_BAD_PATH },
        { ROOT, { { FK_PATTERN_NAME, "user/x1" } }, 1, 0, 0, FK_REASON_BAD_PATH },
        { ROOT,
          { { FK_PATTERN_NAME, "user" }, { FK_PATTERN_NAME, ".." }, { FK_PATTERN_NAME, "user" } },
          3,
          0,
          0,
          FK_REASON_BAD_PATH },
        { USER,
          { { FK_PATTERN_GLOB, "." }, { FK_PATTERN_NAME, "x1" } },
          2,
          0,
          0,
          FK_REASON_BAD_PATH },
        { ROOT,
          { { FK_PATTERN_NAME, "user#1" }, { FK_PATTERN_NAME, "x1" } },
          2,
          0,
          0,
          FK_REASON_BAD_PATH },
        { USER, { { FK_PATTERN_NAME, "x1#0" } }, 1, 0, 0, FK_REASON_BAD_PATH },
        { USER, { { FK_PATTERN_NAME, "a b" } }, 1, 0, 0, FK_REASON_BAD_PATH },
        { "fraktor://b@10.0.0.1:1001/user/nobody",
          { { FK_PATTERN_NAME, "x" } },
          1,
          0,
          0,
          FK_REASON_NO_RECEIVER },
        { "fraktor://b@10.0.0.1:1001/user/x1", { { FK_PATTERN_NAME, "" } }, 0, 1, 0, 0 },
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        start((post_config){ 0 });
        CHECK_OK(inject(CASES[i].rows, CASES[i].count, CASES[i].anchor, false, NULL));
        check_counts(CASES[i].first, CASES[i].second);
        bool is_dead = CASES[i].first + CASES[i].second == 0;
        const observer_letter *letter = observer_letters(&p.side[1].o, is_dead);
        if (is_dead) CHECK_U64(letter->reason, CASES[i].reason);
        post_stop(&p);
    }
}

TEST(mail_selection_that_fanned_out_before_misses_silently)
{
    pattern_row rows[] = { { FK_PATTERN_NAME, "nobody" } };
    start((post_config){ 0 });
    CHECK_OK(inject(rows, 1, USER, true, NULL));
    post_run(&p);
    observer_letters(&p.side[1].o, 0);
    CHECK_OK(inject(rows, 1, USER, false, NULL));
    one_letter(FK_REASON_NO_RECEIVER);
    post_stop(&p);
}

TEST(mail_selection_has_limits)
{
    static pattern_row rows[300];
    for (int i = 0; i < 300; i++) rows[i] = (pattern_row){ FK_PATTERN_PARENT, "" };
    start((post_config){ 0 });
    CHECK_OK(inject(rows, 300, ROOT, false, NULL));
    one_letter(FK_REASON_BAD_PATH);
    post_stop(&p);
}

TEST(mail_selection_from_strangers_does_not_poison)
{
    pattern_row rows[] = { { FK_PATTERN_GLOB, "x*" } };
    start((post_config){ 0 });
    CHECK_OK(inject(rows, 1, USER, false, "P"));
    one_letter(FK_REASON_FORBIDDEN);
    CHECK(!x1.stopped && !x2.stopped);
    post_stop(&p);
    start((post_config){ .is_trusting = true });
    CHECK_OK(inject(rows, 1, USER, false, "P"));
    post_run(&p);
    CHECK(x1.stopped && x2.stopped);
    post_stop(&p);
}

TEST(mail_knows_a_heartbeat)
{
    static const unsigned char BEAT[] = { 0x0a, 0x00, 0x10, 0x11, 0x1a, 0x0a, 0x08, 0x01, 0x12,
                                          0x06, 's',  'y',  's',  't',  'e',  'm',  0x1a, 0x12,
                                          0x08, 0x01, 0x12, 0x0e, 'r',  'e',  'm',  'o',  't',
                                          'e',  '-',  'w',  'a',  't',  'c',  'h',  'e',  'r',
                                          0x22, 0x01, 'm',  0x28, 0x00 };
    unsigned char other[sizeof(BEAT)];
    fk_wire_envelope e = { .serializer = FK_SERIALIZER_SELECTION,
                           .payload = { (const char *)BEAT, sizeof(BEAT) } };
    fk_wire_payload inner;
    CHECK(fk__mail_is_heartbeat(&e, &inner));
    CHECK_U64(inner.serializer, 17);
    CHECK(fk__wire_equal(inner.manifest, FK_STR("m")));
    for (size_t i = 10; i < 36; i++) { /* whatever is not that name */
        memcpy(other, BEAT, sizeof(other));
        other[i] ^= 1;
        e.payload.ptr = (const char *)other;
        CHECK(!fk__mail_is_heartbeat(&e, &inner));
    }
    e.payload = (fk_str){ (const char *)BEAT, sizeof(BEAT) };
    e.serializer = 20;
    CHECK(!fk__mail_is_heartbeat(&e, &inner));
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every kind of message, from one system to another and back. */

#include <string.h>

#include "core/ask.h"
#include "fraktor/codec.h"
#include "support/post.h"

typedef struct order {
    int64_t amount;
    fk_ref reply_to;
    uint8_t flags;
    fk_ref others[2];
} order;
FK_MESSAGE(order);
FK_CODEC_STRUCT(order, 1, FK_FIELD(order, amount), FK_FIELD(order, reply_to),
                FK_FIELD(order, flags), FK_FIELD_ARRAY(order, others));

typedef struct huge {
    unsigned char bytes[300];
} huge;
FK_MESSAGE(huge);
FK_CODEC_PLAIN(huge, 1);

static const fk_codec *const CODECS[] = { &fk_codec_order, &fk_codec_huge, NULL };

static post p;
static probe at_a, at_b;
static fk_ref here, there; /* the actor of a; that of b, as a sees it */

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
    if (config.codecs == NULL) config.codecs = CODECS;
    post_start(&p, config);
    here = spawn(0, "here", &at_a);
    spawn(1, "there", &at_b);
    there = post_ref(&p, 1, "/user/there");
}

static fk_system *sys_a(void)
{
    return p.side[0].o.r.sys;
}

static fk_system *sys_b(void)
{
    return p.side[1].o.r.sys;
}

/* What b's actor got, from here. */
static void check_got(size_t count, const fk_type *type, const void *bytes, size_t len)
{
    post_run(&p);
    CHECK_U64(p.side[0].unsent, 0);
    CHECK_U64(at_b.count, count);
    CHECK(at_b.type == type);
    CHECK_U64(at_b.len, len);
    size_t kept = len < sizeof(at_b.bytes) ? len : sizeof(at_b.bytes);
    CHECK(len == 0 || memcmp(at_b.bytes, bytes, kept) == 0);
    observer_letters(&p.side[1].o, 0);
}

TEST(mail_carries_what_has_a_codec)
{
    static char large[5000];
    huge wide;
    fk_payload *payload;
    start((post_config){ 0 });
    memset(large, 'L', sizeof(large));
    memset(&wide, 'w', sizeof(wide));
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_TEXT("hello")));
    check_got(1, &fk_type_text, "hello", 5);
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_BYTES_AT(((fk_str){ large, 64 }))));
    check_got(2, &fk_type_bytes, large, 64);
    CHECK_OK(fk_send(sys_a(), there, FK_TEXT("")));
    check_got(3, &fk_type_text, "", 0);
    CHECK(fk_ref_is_none(at_b.sender));
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_BYTES_AT(((fk_str){ large, sizeof(large) }))));
    check_got(4, &fk_type_bytes, large, sizeof(large));
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG(fk_int, -7)));
    check_got(5, &fk_type_fk_int, &(fk_int){ -7 }, sizeof(fk_int));
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG(fk_long, INT64_MIN)));
    check_got(6, &fk_type_fk_long, &(fk_long){ INT64_MIN }, sizeof(fk_long));
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG(fk_boolean, true)));
    check_got(7, &fk_type_fk_boolean, &(fk_boolean){ true }, 1);
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG_AT(huge, &wide)));
    check_got(8, &fk_type_huge, &wide, sizeof(wide));
    CHECK_OK(fk_payload_create(sys_a(), NULL, 200, &payload));
    memset(fk_payload_data(payload), 'p', 200);
    memset(large, 'p', 200);
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG_PAYLOAD(payload)));
    check_got(9, &fk_type_bytes, large, 200);
    post_stop(&p);
}

TEST(mail_says_who_sent_it_and_answers_get_back)
{
    start((post_config){ 0 });
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_TEXT("?")));
    check_got(1, &fk_type_text, "?", 1);
    char path[128];
    fk_path_of(sys_b(), at_b.sender, path, sizeof(path));
    char own[128];
    fk_path_of(sys_a(), here, own, sizeof(own)); /* with its uid */
    CHECK(strncmp(path, "fraktor.tcp://", 14) == 0);
    CHECK_STR(path + strlen("fraktor.tcp"), own + strlen("fraktor"));
    CHECK_OK(fk_send(sys_b(), at_b.sender, FK_TEXT("!")));
    post_run(&p);
    CHECK_U64(at_a.count, 1);
    CHECK(memcmp(at_a.bytes, "!", 1) == 0);
    post_stop(&p);
}

static void check_order(const order *sent)
{
    order got;
    CHECK(at_b.type == &fk_type_order);
    memcpy(&got, at_b.bytes, sizeof(got));
    CHECK_U64(got.amount, sent->amount);
    CHECK_U64(got.flags, 9);
    CHECK(fk_ref_is_none(got.others[1]));
    CHECK_OK(fk_send(sys_b(), got.reply_to, FK_TEXT("by the struct's ref")));
    post_run(&p);
    CHECK_U64(at_a.count, 1);
    fk_ref own;
    CHECK_OK(fk_resolve(sys_b(), FK_STR("fraktor://b@10.0.0.1:1001/user/there"), &own, NULL));
    CHECK(fk_ref_equal(got.others[0], own)); /* the actor itself, not a proxy of it */
}

TEST(mail_carries_references_in_structs)
{
    start((post_config){ 0 });
    order sent = { .amount = -5, .reply_to = here, .flags = 9, .others = { there, FK_REF_NONE } };
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG_AT(order, &sent)));
    post_run(&p);
    check_order(&sent);
    sent.reply_to = (fk_ref){ 5000, 1, here.system }; /* made up */
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG_AT(order, &sent)));
    post_run(&p);
    order got;
    memcpy(&got, at_b.bytes, sizeof(got));
    CHECK(fk_ref_is_none(got.reply_to));
    post_stop(&p);
}

TEST(mail_carries_a_reference_by_itself)
{
    fk_ref got;
    start((post_config){ 0 });
    CHECK_OK(fk_send(sys_a(), there, FK_MSG_REF(here)));
    post_run(&p);
    CHECK(at_b.type == &fk_type_fk_ref);
    memcpy(&got, at_b.bytes, sizeof(got));
    CHECK_OK(fk_send(sys_b(), got, FK_MSG_REF(got))); /* and back: it is the actor again */
    post_run(&p);
    CHECK(at_a.type == &fk_type_fk_ref);
    CHECK(memcmp(at_a.bytes, &here, sizeof(here)) == 0);
    CHECK_ERR(fk_send(sys_a(), there, FK_MSG_REF(FK_REF_NONE)), FK_E_DEAD);
    post_stop(&p);
}

/* ---- identify --------------------------------------------------------------------------------------- */

static const fk_identity *identity(void)
{
    static fk_identity got;
    CHECK(at_a.type == &fk_type_fk_identity);
    CHECK_U64(at_a.len, sizeof(got));
    memcpy(&got, at_a.bytes, sizeof(got));
    return &got;
}

TEST(mail_identify_is_answered_by_the_other_side)
{
    start((post_config){ 0 });
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_IDENTIFY(UINT64_MAX - 5)));
    post_run(&p);
    CHECK_U64(identity()->id, UINT64_MAX - 5);
    char path[128];
    fk_path_of(sys_a(), identity()->ref, path, sizeof(path));
    CHECK(strstr(path, "fraktor.tcp://b@10.0.0.1:1001/user/there#") == path);
    CHECK_OK(fk_send_from(sys_a(), post_ref(&p, 1, "/user/nobody"), here, FK_IDENTIFY(2)));
    post_run(&p);
    CHECK_U64(identity()->id, 2);
    CHECK(fk_ref_is_none(identity()->ref));
    observer_letters(&p.side[1].o, 0);
    post_stop(&p);
}

static size_t put_name(unsigned char *to, const char *text)
{
    size_t len = strlen(text);
    fk__store16(to, (uint16_t)len);
    memcpy(to + 2, text, len);
    return 2 + len;
}

/* An envelope of a's to b's actor. */
static size_t envelope(unsigned char *to, int32_t serializer, const char *manifest,
                       const char *recipient, fk_str payload)
{
    fk_wire_envelope e = { .uid = 100,
                           .serializer = serializer,
                           .sender = { .text = FK_STR("fraktor://a@10.0.0.1:1000/user/here") },
                           .recipient = { .text = fk_str_of(recipient) },
                           .manifest = { .text = fk_str_of(manifest) },
                           .payload = payload };
    size_t size;
    CHECK_OK(fk__frame_size(&e, 8192, &size));
    fk__frame_encode(&e, to);
    return size;
}

static fk_err inject_misc(const fk_wire_misc *misc)
{
    unsigned char inner[1024], frame[2048];
    size_t size = fk__misc_size(misc);
    CHECK(size <= sizeof(inner));
    fk__misc_encode(misc, inner, size);
    fk_str manifest = fk__misc_manifest(misc->kind);
    char name[8];
    memcpy(name, manifest.ptr, manifest.len);
    name[manifest.len] = '\0';
    size_t len = envelope(frame, FK_SERIALIZER_MISC, name, "fraktor://b@10.0.0.1:1001/user/there",
                          (fk_str){ (char *)inner, size });
    return post_inject(&p, (fk_str){ (const char *)frame + 4, len - 4 });
}

TEST(mail_identify_comes_back_with_what_it_was_asked_with)
{
    static const struct {
        int32_t serializer;
        const char *manifest;
        fk_str message;
    } IDS[] = {
        { 20, "", { "any text", 8 } },
        { 19, "", { "\x07\0\0\0", 4 } },
        { 18, "", { "\x01\x02\x03\x04\x05\x06\x07\x08", 8 } },
        { 18, "", { "short", 5 } },
        { 1234, "some.Class", { "\0\xff\x80", 3 } },
        { -3, "", { "", 0 } },
    };
    start((post_config){ 0 });
    for (size_t i = 0; i < sizeof(IDS) / sizeof(IDS[0]); i++) {
        fk_wire_misc misc = { .kind = FK_MISC_IDENTIFY };
        misc.as.identify.id = (fk_wire_payload){ .serializer = IDS[i].serializer,
                                                 .manifest = fk_str_of(IDS[i].manifest),
                                                 .message = IDS[i].message };
        CHECK_OK(inject_misc(&misc));
        rig_run(&p.side[1].o.r);
        fk_wire_envelope e = post_last(&p);
        CHECK_OK(fk__misc_decode(e.manifest.text, e.payload, &misc, NULL));
        CHECK_U64(misc.kind, FK_MISC_IDENTITY);
        const fk_wire_payload *id = &misc.as.identity.id;
        CHECK_U64(id->serializer, IDS[i].serializer);
        CHECK(fk__wire_equal(id->manifest, fk_str_of(IDS[i].manifest)));
        CHECK(fk__wire_equal(id->message, IDS[i].message));
        CHECK(misc.as.identity.ref.path.len > 0);
        post_run(&p);
    }
    CHECK_U64(at_a.count, sizeof(IDS) / sizeof(IDS[0]));
    post_stop(&p);
}

/* ---- asking ------------------------------------------------------------------------------------------- */

static fk_answer answer;
static char answer_text[128];

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_answer *got = FK_AS(fk_answer, msg);
    (void)state;
    if (got != NULL) {
        answer = *got;
        size_t len = got->reply.len < sizeof(answer_text) - 1 ? got->reply.len : 0;
        if (len != 0) memcpy(answer_text, got->reply.data, len);
        answer_text[len] = '\0';
        return FK_OK;
    }
    return fk_ask(ctx, there, FK_TEXT("?"), 77, FK_SECONDS(5));
}

static void ask(void)
{
    fk_ref asker;
    memset(&answer, 0, sizeof(answer));
    CHECK_OK(fk_spawn(sys_a(), FK_STR(""), &(fk_props){ .receive = asker_receive }, &asker));
    CHECK_OK(fk_send(sys_a(), asker, FK_MSG(num, 1)));
    post_run(&p);
}

static fk_wire_misc status(fk_misc_kind kind, int32_t serializer, const char *manifest,
                           fk_str bytes)
{
    fk_wire_misc misc = { .kind = kind };
    misc.as.status = (fk_wire_payload){ .serializer = serializer,
                                        .manifest = fk_str_of(manifest),
                                        .message = bytes };
    return misc;
}

/* To whoever asked last: a's promise. */
static void reply_misc(const fk_wire_misc *misc)
{
    unsigned char inner[512], frame[2048];
    char to[256];
    size_t size = fk__misc_size(misc);
    fk__misc_encode(misc, inner, size);
    fk_path_of(sys_b(), at_b.sender, to, sizeof(to));
    fk_str manifest = fk__misc_manifest(misc->kind);
    char name[8] = { 0 };
    memcpy(name, manifest.ptr, manifest.len);
    size_t len = envelope(frame, FK_SERIALIZER_MISC, name, to, (fk_str){ (char *)inner, size });
    fk_wire_envelope e;
    CHECK_OK(fk__envelope_decode((fk_str){ (const char *)frame + 4, len - 4 }, &e, NULL));
    fk_local *local = fk__local_enter(sys_a());
    CHECK_OK(fk__mail_read(p.side[0].mail, local, &p.side[0].peer, &p.side[0].authority, &e, NULL));
    fk__local_leave(local);
    post_run(&p);
}

TEST(mail_answers_a_question)
{
    start((post_config){ 0 });
    ask();
    CHECK(at_b.count == 1 && !fk_ref_is_none(at_b.sender));
    fk_ref promise = at_b.sender;
    CHECK_OK(fk_send(sys_b(), promise, FK_TEXT("here you are")));
    post_run(&p);
    CHECK_U64(answer.id, 77);
    CHECK_OK(answer.err);
    CHECK_STR(answer_text, "here you are");
    CHECK_OK(fk_send(sys_b(), promise, FK_TEXT("once more")));
    post_run(&p);
    const observer_letter *letter = observer_letters(&p.side[0].o, 1);
    CHECK_U64(letter->reason, FK_REASON_LATE_REPLY);
    post_stop(&p);
}

TEST(mail_takes_success_and_failure_for_answers)
{
    start((post_config){ 0 });
    ask();
    fk_wire_misc misc = status(FK_MISC_SUCCESS, FK_SERIALIZER_TEXT, "", FK_STR("fine"));
    reply_misc(&misc);
    CHECK_OK(answer.err);
    CHECK_STR(answer_text, "fine");
    ask();
    fk_wire_misc thrown = { .kind = FK_MISC_THROWABLE };
    thrown.as.throwable =
        (fk_wire_throwable){ .class_name = FK_STR("x.Y"), .message = FK_STR("no such account") };
    unsigned char bytes[128];
    size_t size = fk__misc_size(&thrown);
    fk__misc_encode(&thrown, bytes, size);
    misc = status(FK_MISC_FAILURE, FK_SERIALIZER_MISC, "F", (fk_str){ (char *)bytes, size });
    reply_misc(&misc);
    CHECK_U64(answer.id, 77);
    CHECK_ERR(answer.err, FK_E_FAILED);
    CHECK(answer.reply.type == &fk_type_text);
    CHECK_STR(answer_text, "no such account");
    reply_misc(&misc); /* late */
    CHECK_U64(observer_letters(&p.side[0].o, 1)->reason, FK_REASON_LATE_REPLY);
    post_stop(&p);
}

/* As fk_ask_wait() does, without a second thread. */
TEST(mail_failure_is_not_taken_for_the_answer_of_a_thread)
{
    char text[32] = "untouched";
    fk_buf buf = FK_BUF(text);
    fk_ref asked;
    start((post_config){ 0 });
    CHECK_OK(fk__question_open(sys_a(), there, &asked));
    CHECK_OK(fk_send_from(sys_a(), there, asked, FK_TEXT("?")));
    post_run(&p);
    fk_wire_misc misc = status(FK_MISC_FAILURE, FK_SERIALIZER_TEXT, "", FK_STR("it burns"));
    reply_misc(&misc);
    CHECK_ERR(fk__question_await(sys_a(), asked, FK_INTO_TEXT(&buf), FK_SECONDS(1)), FK_E_FAILED);
    CHECK_STR(text, "untouched");
    observer_letters(&p.side[0].o, 0);
    post_stop(&p);
}

static fk_err pipe_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    const fk_ref *nobody = state;
    return fk_ask_pipe(ctx, *nobody, FK_TEXT("x"), msg->sender, 1, FK_MILLIS(5));
}

TEST(mail_tells_a_remote_asker_that_it_failed)
{
    fk_ref silent, pipe;
    static probe mute;
    start((post_config){ 0 });
    silent = spawn(1, "mute", &mute);
    fk_props props = { .receive = pipe_receive, .state = &silent };
    CHECK_OK(fk_spawn(sys_b(), FK_STR("pipe"), &props, &pipe));
    there = post_ref(&p, 1, "/user/pipe");
    ask();
    rig_advance(&p.side[1].o.r, FK_MILLIS(50)); /* the question that b asked is given up */
    fk_wire_envelope e = post_last(&p);
    CHECK(fk__wire_equal(e.manifest.text, FK_STR("E")));
    post_run(&p);
    CHECK_ERR(answer.err, FK_E_FAILED);
    CHECK_STR(answer_text, fk_err_text(FK_E_TIMEOUT));
    observer_letters(&p.side[0].o, 0);
    /* One that is answered is not wrapped. */
    ask();
    CHECK_OK(fk_send(sys_b(), mute.sender, FK_TEXT("late, but there")));
    post_run(&p);
    CHECK_OK(answer.err);
    CHECK_STR(answer_text, "late, but there");
    post_stop(&p);
}

/* ---- what cannot be sent ---------------------------------------------------------------------------- */

TEST(mail_refuses_what_has_no_codec)
{
    start((post_config){ 0 });
    CHECK_ERR(fk_send(sys_a(), there, FK_MSG(num, 1)), FK_E_NO_CODEC);
    CHECK(fk__wire_equal(p.side[0].fault.manifest, FK_STR("num")));
    CHECK_U64(fk__mail_reason(p.side[0].err), FK_REASON_NO_CODEC);
    fk_out unknown = { &fk_type_receive_timeout, "" };
    CHECK_ERR(fk_send(sys_a(), there, unknown), FK_E_NO_CODEC);
    static char large[8192];
    CHECK_ERR(fk_send(sys_a(), there, FK_BYTES_AT(((fk_str){ large, sizeof(large) }))), FK_E_LIMIT);
    CHECK_U64(fk__mail_reason(p.side[0].err), FK_REASON_TOO_LARGE);
    post_run(&p);
    CHECK_U64(at_b.count, 0);
    post_stop(&p);
}

TEST(mail_says_how_much_room_it_needs)
{
    unsigned char frame[256];
    fk_codec_fault fault;
    fk_mail_room room = { .to = frame, .size = 0 };
    start((post_config){ 0 });
    fk_local *local = fk__local_enter(sys_a());
    fk_node *node = fk__node_create(&local->cache, FK_TEXT("hello"));
    node->sender = fk__sender_pack(here.slot, here.generation);
    fk_letter letter = { .node = node, .to = there };
    fk_mail *mail = p.side[0].mail;
    fk_mail_peer *peer = &p.side[0].peer;
    CHECK_ERR(fk__mail_write(mail, peer, &letter, &room, &fault), FK_E_FULL);
    size_t need = room.len;
    CHECK(need > 4 + 28 && need < sizeof(frame));
    room.size = need - 1;
    CHECK_ERR(fk__mail_write(mail, peer, &letter, &room, &fault), FK_E_FULL);
    CHECK_U64(room.len, need);
    memset(frame, 0xee, sizeof(frame));
    room.size = need;
    CHECK_OK(fk__mail_write(mail, peer, &letter, &room, &fault));
    CHECK_U64(room.len, need);
    CHECK_U64(frame[need], 0xee);
    fk__node_free(&local->cache, node);
    fk__local_leave(local);
    post_stop(&p);
}

/* ---- the text of names --------------------------------------------------------------------------------- */

TEST(mail_writes_names_as_the_other_side_reads_them)
{
    static const struct {
        post_config config;
        const char *scheme, *to;
    } RULES[] = {
        { { .rules = FK_RULES_PEKKO }, "pekko://", "pekko.tcp://b@10.0.0.1:1001/user/there" },
        { { .rules = FK_RULES_PEKKO, .scheme = FK_SCHEME_TCP },
          "pekko://",
          "pekko://b@10.0.0.1:1001/user/there" },
        { { .rules = FK_RULES_FRAKTOR, .scheme = FK_SCHEME_TCP },
          "fraktor://",
          "fraktor.tcp://b@10.0.0.1:1001/user/there" },
    };
    for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++) {
        fk_ref ref;
        char sender[128], expected[128] = "";
        start(RULES[i].config);
        CHECK_OK(fk_resolve(sys_a(), fk_str_of(RULES[i].to), &ref, NULL));
        for (int times = 0; times < 2; times++) { /* also when it is remembered */
            CHECK_OK(fk_send_from(sys_a(), ref, here, FK_TEXT("x")));
            fk_wire_envelope e = post_last(&p);
            strcpy(expected, RULES[i].scheme);
            strcat(expected, "b@10.0.0.1:1001/user/there");
            CHECK(fk__wire_equal(e.recipient.text, fk_str_of(expected)));
            fk_path_of(sys_a(), here, sender, sizeof(sender));
            strcpy(expected, RULES[i].scheme);
            strcat(expected, strstr(sender, "a@10.0.0.1:1000/user/here#"));
            CHECK(fk__wire_equal(e.sender.text, fk_str_of(expected)));
            CHECK_U64(e.uid, 100);
            post_run(&p);
            CHECK_U64(at_b.count, times + 1);
        }
        post_stop(&p);
    }
}

TEST(mail_reads_a_frame_as_pekko_writes_it)
{
    unsigned char frame[256] = { 0 }, *at = frame + 28;
    post_start(&p, (post_config){ .rules = FK_RULES_PEKKO });
    spawn(1, "there", &at_b);
    frame[4] = 1;
    frame[12] = 20;
    fk__store32(frame + 16, 28);
    at += put_name(at, "");
    fk__store32(frame + 20, (uint32_t)(at - frame));
    at += put_name(at, "pekko://b@10.0.0.1:1001/user/there");
    fk__store32(frame + 24, (uint32_t)(at - frame));
    at += put_name(at, "");
    memcpy(at, "hello", 5);
    CHECK_OK(post_inject(&p, (fk_str){ (const char *)frame, (size_t)(at - frame) + 5 }));
    check_got(1, &fk_type_text, "hello", 5);
    CHECK(fk_ref_is_none(at_b.sender));
    post_stop(&p);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What does not reach anybody: each is one dead letter that says why. */

#include <string.h>

#include "support/post.h"

static post p;
static probe at_a, at_b;

static fk_ref spawn(uint32_t side, const char *name, probe *state)
{
    fk_ref ref;
    fk_props props = probe_props(state);
    CHECK_OK(fk_spawn(p.side[side].o.r.sys, fk_str_of(name), &props, &ref));
    rig_run(&p.side[side].o.r);
    return ref;
}

static fk_system *sys_a(void)
{
    return p.side[0].o.r.sys;
}

static const char THERE[] = "fraktor://b@10.0.0.1:1001/user/there";

typedef struct frame {
    const char *to, *sender, *manifest;
    int32_t serializer;
    fk_str payload;
} frame;

static fk_err inject(frame f)
{
    unsigned char bytes[4096];
    fk_wire_envelope e = { .uid = 100,
                           .serializer = f.serializer,
                           .sender = { .text = fk_str_of(f.sender != NULL ? f.sender : "") },
                           .recipient = { .text = fk_str_of(f.to != NULL ? f.to : THERE) },
                           .manifest = { .text = fk_str_of(f.manifest != NULL ? f.manifest : "") },
                           .payload = f.payload };
    size_t size;
    CHECK_OK(fk__frame_size(&e, sizeof(bytes) - 4, &size));
    fk__frame_encode(&e, bytes);
    fk_err err = post_inject(&p, (fk_str){ (const char *)bytes + 4, size - 4 });
    rig_run(&p.side[1].o.r);
    return err;
}

static const observer_letter *one_letter(fk_reason reason)
{
    const observer_letter *letter = observer_letters(&p.side[1].o, 1);
    CHECK_U64(letter->reason, reason);
    return letter;
}

static void start(post_config config)
{
    post_start(&p, config);
    spawn(1, "there", &at_b);
}

TEST(mail_without_codec_is_a_letter_with_id_and_manifest)
{
    start((post_config){ 0 });
    CHECK_OK(inject((frame){ .serializer = 9999, .manifest = "x.Y\n", .payload = FK_STR("abc") }));
    const observer_letter *letter = one_letter(FK_REASON_NO_CODEC);
    CHECK_STR(letter->detail, "no codec has that serializer id: serializer 9999, manifest "
                              "\"x.Y%0A\", from a@10.0.0.1:1000");
    CHECK(letter->type == &fk_type_bytes);
    CHECK_OK(inject((frame){ .serializer = -1 }));
    CHECK(strstr(one_letter(FK_REASON_NO_CODEC)->detail, "serializer -1,") != NULL);
    CHECK_OK(inject((frame){ .serializer = FK_SERIALIZER_MISC, .manifest = "Z" }));
    one_letter(FK_REASON_NO_CODEC);
    CHECK_OK(inject((frame){ .serializer = 17, .manifest = "m" })); /* not ours to read */
    one_letter(FK_REASON_NO_CODEC);
    CHECK_U64(at_b.count, 0);
    post_stop(&p);
}

TEST(mail_that_its_codec_refuses_is_a_letter)
{
    start((post_config){ 0 });
    CHECK_OK(inject((frame){ .serializer = FK_SERIALIZER_LONG, .payload = FK_STR("short") }));
    one_letter(FK_REASON_MALFORMED);
    CHECK_OK(inject((frame){ .serializer = FK_SERIALIZER_BOOLEAN, .payload = FK_STR("\x02") }));
    one_letter(FK_REASON_MALFORMED);
    CHECK_OK(inject((frame){
        .serializer = FK_SERIALIZER_MISC, .manifest = "G", .payload = { "\x0a\x03no!", 5 } }));
    one_letter(FK_REASON_MALFORMED);
    CHECK_U64(at_b.count, 0);
    post_stop(&p);
}

TEST(mail_that_is_not_what_it_claims_is_an_error)
{
    start((post_config){ 0 });
    CHECK_ERR(inject((frame){ .serializer = FK_SERIALIZER_MISC, .manifest = "A" }), FK_E_MALFORMED);
    CHECK_ERR(inject((frame){ .serializer = FK_SERIALIZER_SELECTION, .payload = FK_STR("?") }),
              FK_E_MALFORMED);
    observer_letters(&p.side[1].o, 0);
    post_stop(&p);
}

TEST(mail_to_nobody_is_a_letter_with_the_path)
{
    static const struct {
        const char *to;
        fk_reason reason;
    } CASES[] = {
        { "fraktor://b@10.0.0.1:1001/user/nobody", FK_REASON_NO_RECEIVER },
        { "fraktor://b@10.0.0.1:1001/user/nobody#77", FK_REASON_WRONG_INCARNATION },
        { "fraktor://b@10.0.0.1:1001/user/there#1234567", FK_REASON_WRONG_INCARNATION },
        { "fraktor://b@10.0.0.1:1001/temp/x$a", FK_REASON_LATE_REPLY },
        { "fraktor://c@10.0.0.1:1001/user/there", FK_REASON_NO_RECEIVER },
        { "fraktor://b@10.0.0.2:1001/user/there", FK_REASON_NO_RECEIVER },
        { "fraktor://b/user/there", FK_REASON_NO_RECEIVER },
        { "fraktor://a@10.0.0.1:1000/user/there", FK_REASON_NO_RECEIVER },
        { "pekko://b@10.0.0.1:1001/user/there", FK_REASON_BAD_PATH },
        { "there", FK_REASON_BAD_PATH },
    };
    start((post_config){ 0 });
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        CHECK_OK(inject((frame){ .to = CASES[i].to,
                                 .sender = "fraktor://a@10.0.0.1:1000/user/here",
                                 .serializer = 20,
                                 .payload = FK_STR("x") }));
        const observer_letter *letter = one_letter(CASES[i].reason);
        CHECK_STR(letter->path, CASES[i].to);
        CHECK(letter->type == &fk_type_text);
        CHECK(!fk_ref_is_none(letter->sender));
    }
    CHECK_OK(inject((frame){ .to = "", .serializer = 20 }));
    one_letter(FK_REASON_BAD_PATH);
    CHECK_U64(at_b.count, 0);
    post_stop(&p);
}

TEST(mail_to_others_makes_no_reference_to_them)
{
    fk_authority_info info;
    start((post_config){ 0 });
    CHECK_OK(inject((frame){ .to = "fraktor://x@10.9.9.9:5/user/there", .serializer = 20 }));
    one_letter(FK_REASON_NO_RECEIVER);
    CHECK_ERR(fk_authority_state(p.side[1].o.r.sys, FK_STR("fraktor://x@10.9.9.9:5"), &info),
              FK_E_NOT_FOUND);
    /* But who has been met as a sender is known, and still not a recipient here. */
    CHECK_OK(inject((frame){ .sender = "fraktor://x@10.9.9.9:5/user/there", .serializer = 20 }));
    CHECK_U64(at_b.count, 1);
    CHECK_OK(fk_authority_state(p.side[1].o.r.sys, FK_STR("fraktor://x@10.9.9.9:5"), &info));
    CHECK_OK(inject((frame){ .to = "fraktor://x@10.9.9.9:5/user/there", .serializer = 20 }));
    one_letter(FK_REASON_NO_RECEIVER);
    post_stop(&p);
}

TEST(mail_with_a_sender_that_is_no_path_has_none)
{
    start((post_config){ 0 });
    CHECK_OK(inject((frame){ .sender = "?", .serializer = 20, .payload = FK_STR("x") }));
    CHECK_U64(at_b.count, 1);
    CHECK(fk_ref_is_none(at_b.sender));
    post_stop(&p);
}

/* ---- what others may not do ------------------------------------------------------------------------- */

TEST(mail_from_strangers_neither_poisons_nor_kills)
{
    static const char *const HARMFUL[] = { "P", "K" };
    start((post_config){ 0 });
    for (int i = 0; i < 2; i++) {
        CHECK_OK(inject((frame){ .serializer = FK_SERIALIZER_MISC, .manifest = HARMFUL[i] }));
        const observer_letter *letter = one_letter(FK_REASON_FORBIDDEN);
        CHECK(strstr(letter->detail, i == 0 ? "PoisonPill" : "Kill") != NULL);
    }
    CHECK(!at_b.stopped);
    post_stop(&p);
    start((post_config){ .is_trusting = true });
    CHECK_OK(inject((frame){ .serializer = FK_SERIALIZER_MISC, .manifest = "P" }));
    CHECK(at_b.stopped);
    post_stop(&p);
}

TEST(mail_of_a_poison_to_a_trusting_system)
{
    post_start(&p, (post_config){ .is_trusting = true });
    spawn(1, "there", &at_b);
    CHECK_OK(fk_poison(sys_a(), post_ref(&p, 1, "/user/there")));
    post_run(&p);
    CHECK(at_b.stopped);
    post_stop(&p);
}

TEST(mail_from_strangers_does_not_reach_the_systems_own)
{
    static const char *const PLACES[] = { "fraktor://b@10.0.0.1:1001/",
                                          "fraktor://b@10.0.0.1:1001/system",
                                          "fraktor://b@10.0.0.1:1001/s%79stem" };
    start((post_config){ 0 });
    for (int times = 0; times < 2; times++) { /* also when it is remembered */
        for (size_t i = 0; i < sizeof(PLACES) / sizeof(PLACES[0]); i++) {
            CHECK_OK(inject((frame){ .to = PLACES[i], .serializer = 20 }));
            one_letter(FK_REASON_FORBIDDEN);
        }
    }
    post_stop(&p);
    start((post_config){ .is_trusting = true });
    CHECK_OK(inject((frame){ .to = PLACES[1], .serializer = 20 }));
    one_letter(FK_REASON_UNHANDLED);
    post_stop(&p);
}

TEST(mail_does_not_climb_into_the_systems_own)
{
    post_start(&p, (post_config){ .rules = FK_RULES_PEKKO });
    CHECK_OK(inject((frame){ .to = "pekko://b@10.0.0.1:1001/user/../system", .serializer = 20 }));
    one_letter(FK_REASON_FORBIDDEN);
    post_stop(&p);
}

/* ---- references that are no longer good ----------------------------------------------------------------- */

TEST(mail_to_a_stale_reference_is_not_written)
{
    start((post_config){ 0 });
    fk_codec_fault fault;
    unsigned char bytes[256];
    fk_mail_room room = { .to = bytes, .size = sizeof(bytes) };
    fk_ref there = post_ref(&p, 1, "/user/there");
    fk_local *local = fk__local_enter(sys_a());
    fk_node *node = fk__node_create(&local->cache, FK_TEXT("x"));
    node->sender = 0;
    fk_letter letter = { .node = node, .to = there };
    fk_mail *mail = p.side[0].mail;
    for (int times = 0; times < 2; times++) { /* before and after its name is remembered */
        letter.to.generation += 2;
        CHECK_ERR(fk__mail_write(mail, &p.side[0].peer, &letter, &room, &fault), FK_E_DEAD);
        CHECK_ERR(fault.err, FK_E_DEAD);
        letter.to = there;
        CHECK_OK(fk__mail_write(mail, &p.side[0].peer, &letter, &room, &fault));
    }
    /* The proxy gives way, and its name is still remembered. */
    fk_cell *cell = fk__slots_at(&sys_a()->slots, there.slot);
    fk__half_store(&cell->generation, there.generation + 2, FK_RELAXED);
    CHECK_ERR(fk__mail_write(mail, &p.side[0].peer, &letter, &room, &fault), FK_E_DEAD);
    fk__half_store(&cell->generation, there.generation, FK_RELAXED);
    fk__node_free(&local->cache, node);
    fk__local_leave(local);
    post_stop(&p);
}

TEST(mail_to_one_that_ended_is_for_a_former_incarnation)
{
    start((post_config){ 0 });
    char path[128];
    fk_ref first, again;
    CHECK_OK(fk_resolve(p.side[1].o.r.sys, fk_str_of(THERE), &first, NULL));
    fk_path_of(p.side[1].o.r.sys, first, path, sizeof(path)); /* with its uid */
    for (int times = 0; times < 2; times++) {
        CHECK_OK(inject((frame){ .to = path, .serializer = 20 }));
        CHECK_OK(inject((frame){ .to = THERE, .serializer = 20 }));
    }
    CHECK_U64(at_b.count, 4);
    observer_bury(&p.side[1].o, first);
    CHECK_OK(inject((frame){ .to = path, .serializer = 20 }));
    one_letter(FK_REASON_WRONG_INCARNATION);
    CHECK_OK(inject((frame){ .to = THERE, .serializer = 20 }));
    one_letter(FK_REASON_NO_RECEIVER);
    again = spawn(1, "there", &at_a); /* another takes the name */
    CHECK(!fk_ref_equal(first, again));
    CHECK_OK(inject((frame){ .to = path, .serializer = 20 }));
    one_letter(FK_REASON_WRONG_INCARNATION);
    CHECK_OK(inject((frame){ .to = THERE, .serializer = 20 }));
    CHECK_U64(at_a.count, 1); /* without uid it is for whoever is there */
    post_stop(&p);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names that are remembered, and names that are compressed. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remote/mail_names.h"
#include "support/post.h"

typedef struct point {
    int32_t x, y;
} point;
FK_MESSAGE(point);
FK_CODEC_PLAIN(point, 1);
static const fk_codec *const CODECS[] = { &fk_codec_point, NULL };

static post p;
static probe at_a, at_b;
static fk_ref here, there;

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

static void start(void)
{
    post_start(&p, (post_config){ .codecs = CODECS });
    here = spawn(0, "here", &at_a);
    spawn(1, "there", &at_b);
    there = post_ref(&p, 1, "/user/there");
}

static uint32_t kept_in(const post_side *side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FK_NAMES; i++) count += side->peer.cache->in[i].hash != 0;
    return count;
}

static uint32_t kept_out(const post_side *side)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FK_PLACE_COUNT * FK_NAMES; i++) {
        count += side->peer.cache->out[i / FK_NAMES][i % FK_NAMES].key != 0;
    }
    return count;
}

static void send_one(void)
{
    CHECK_OK(fk_send_from(sys_a(), there, here, FK_MSG(point, 3, 4)));
}

TEST(mail_remembers_names_until_it_forgets_them)
{
    start();
    for (int i = 0; i < 5; i++) send_one();
    post_run(&p);
    CHECK_U64(at_b.count, 5);
    CHECK_U64(kept_out(&p.side[0]), 2);
    CHECK_U64(kept_in(&p.side[1]), 2);
    uint64_t blocks = p.side[1].o.r.allocations;
    send_one();
    post_run(&p);
    bool has_pools = getenv("FK_POOLS") == NULL;
    if (has_pools) CHECK_U64(p.side[1].o.r.allocations, blocks); /* nothing was made for it */
    fk__mail_forget(p.side[0].mail, &p.side[0].peer);
    fk__mail_forget(p.side[1].mail, &p.side[1].peer);
    CHECK(p.side[0].peer.cache == NULL && p.side[1].peer.cache == NULL);
    send_one();
    post_run(&p);
    CHECK_U64(at_b.count, 7);
    post_stop(&p);
}

/* More actors than places: all names are right all the time. */
TEST(mail_names_that_share_a_place_are_kept_apart)
{
    enum { MANY = 700 };
    static fk_ref senders[MANY];
    start();
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof(name), "s%u", i);
        fk_props props = { .receive = doer_receive };
        CHECK_OK(fk_spawn(sys_a(), fk_str_of(name), &props, &senders[i]));
    }
    for (uint32_t i = 0; i < 2 * MANY; i++) {
        char path[128], expected[128];
        uint32_t which = i * 7 % MANY;
        CHECK_OK(fk_send_from(sys_a(), there, senders[which], FK_MSG(point, 0, 0)));
        post_run(&p);
        fk_path_of(p.side[1].o.r.sys, at_b.sender, path, sizeof(path));
        fk_path_of(sys_a(), senders[which], expected, sizeof(expected));
        /* The scheme of other systems is the one that addresses are written with. */
        CHECK_STR(strstr(path, "://"), strstr(expected, "://"));
    }
    CHECK(kept_in(&p.side[1]) <= FK_NAMES);
    post_stop(&p);
}

static const fk_name_out *place_of(fk_ref ref)
{
    static fk_mail_cache cache;
    uint64_t key = fk__sender_pack(ref.slot, ref.generation);
    return fk__name_place(&cache, FK_PLACE_SENDER, key);
}

/* The recipient's name must still be there when the sender's has been found. */
TEST(mail_names_of_one_frame_do_not_push_each_other_out)
{
    start();
    fk_ref twin = here;
    for (int i = 0; i < 2000 && place_of(twin) != place_of(there); i++) {
        fk_props props = { .receive = doer_receive };
        CHECK_OK(fk_spawn(sys_a(), FK_STR(""), &props, &twin));
    }
    CHECK(place_of(twin) == place_of(there));
    CHECK_OK(fk_send_from(sys_a(), there, twin, FK_MSG_REF(twin)));
    post_run(&p);
    CHECK_U64(at_b.count, 1);
    post_stop(&p);
}

static fk_err asker_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    if (FK_AS(fk_answer, msg) != NULL) return FK_OK;
    return fk_ask(ctx, there, FK_MSG(point, 1, 1), 1, FK_SECONDS(1));
}

TEST(mail_does_not_remember_questions)
{
    fk_ref asker;
    start();
    post_compress(&p);
    CHECK_OK(fk_spawn(sys_a(), FK_STR("asker"), &(fk_props){ .receive = asker_receive }, &asker));
    for (int i = 0; i < 20; i++) CHECK_OK(fk_send(sys_a(), asker, FK_MSG(num, 1)));
    post_run(&p);
    CHECK_U64(at_b.count, 20);
    CHECK_U64(kept_out(&p.side[0]), 1); /* the recipient */
    CHECK_U64(kept_in(&p.side[1]), 1);
    CHECK_U64(p.side[1].refs_in.hitters.texts.count, 1);
    post_stop(&p);
}

/* A proxy that is used must not look unused, however well its name is remembered. */
TEST(mail_looks_for_proxies_it_uses_now_and_then)
{
    start();
    send_one();
    post_run(&p);
    CHECK_OK(fk_send(p.side[1].o.r.sys, at_b.sender, FK_TEXT("back")));
    post_run(&p);
    fk_mail *mail = p.side[1].mail;
    mail->met += FK_NAMES_REFRESH;
    uint32_t met = mail->met;
    send_one();
    CHECK_OK(fk_send(p.side[1].o.r.sys, at_b.sender, FK_TEXT("back")));
    post_run(&p);
    mail->met++;
    send_one();
    CHECK_OK(fk_send(p.side[1].o.r.sys, at_b.sender, FK_TEXT("back")));
    post_run(&p);
    const fk_mail_cache *cache = p.side[1].peer.cache;
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < FK_NAMES; i++) {
        fresh +=
            cache->in[i].hash != 0 && !cache->in[i].named.is_own && cache->in[i].met == met + 1;
        const fk_name_out *out = &cache->out[FK_PLACE_RECIPIENT][i];
        fresh += out->key != 0 && out->met == met + 1;
    }
    CHECK_U64(fresh, 2);
    post_stop(&p);
}

TEST(mail_turns_refs_into_texts_and_back)
{
    char text[128];
    fk_ref back = FK_REF_NONE;
    start();
    fk_mail *mail = p.side[0].mail;
    fk_local *local = fk__local_enter(sys_a());
    fk_ref refs[] = { here, there };
    for (int i = 0; i < 2; i++) {
        size_t len = fk__mail_text(mail, local, refs[i], text, sizeof(text));
        CHECK(len > 0 && len < sizeof(text));
        CHECK_U64(fk__mail_text(mail, local, refs[i], text, len - 1), len); /* does not fit */
        CHECK_OK(fk__mail_ref(mail, local, (fk_str){ text, len }, &back));
        CHECK(fk_ref_equal(back, refs[i]));
    }
    CHECK_U64(fk__mail_text(mail, local, FK_REF_NONE, text, sizeof(text)), 0);
    CHECK_OK(fk__mail_ref(mail, local, FK_STR(""), &back));
    CHECK(fk_ref_is_none(back));
    CHECK_ERR(fk__mail_ref(mail, local, FK_STR("here"), &back), FK_E_SCHEME);
    fk__local_leave(local);
    post_stop(&p);
}

/* ---- compression ---------------------------------------------------------------------------------------- */

TEST(mail_compresses_what_comes_often)
{
    start();
    post_compress(&p);
    for (int i = 0; i < 40; i++) send_one();
    fk_wire_envelope e = post_last(&p);
    CHECK(!e.recipient.is_compressed && !e.sender.is_compressed && !e.manifest.is_compressed);
    post_run(&p);
    post_compress(&p);
    send_one();
    e = post_last(&p);
    CHECK(e.recipient.is_compressed);
    CHECK(e.sender.is_compressed);
    CHECK(e.manifest.is_compressed);
    CHECK_U64(e.ref_table, p.side[0].refs_out.version);
    CHECK_U64(p.frame[0].len, 4 + 28 + 20 + sizeof(point));
    post_run(&p);
    CHECK_U64(at_b.count, 41);
    CHECK(!fk_ref_is_none(at_b.sender));
    post_stop(&p);
}

TEST(mail_follows_the_peers_table_whatever_becomes_of_it)
{
    start();
    post_compress(&p);
    for (int i = 0; i < 40; i++) send_one();
    post_run(&p);
    post_compress(&p);
    send_one();
    CHECK(post_last(&p).recipient.is_compressed);
    post_run(&p);
    fk_wire_table *table = &p.side[0].refs_out;
    fk_str to = FK_STR("fraktor://b@10.0.0.1:1001/user/there");
    uint8_t version = table->version;
    fk__table_clear(table, version); /* another one under the same number: so many were made */
    CHECK(fk__table_add(table, FK_STR("fraktor://b@10.0.0.1:1001/user/other"), 0));
    CHECK(fk__table_add(table, FK_STR("fraktor://b@10.0.0.1:1001/user/third"), 1));
    send_one();
    fk_wire_envelope e = post_last(&p);
    CHECK(!e.recipient.is_compressed && !e.sender.is_compressed);
    CHECK(fk__wire_equal(e.recipient.text, to));
    fk__table_clear(table, (uint8_t)(version + 1));
    CHECK(fk__table_add(table, FK_STR("fraktor://b@10.0.0.1:1001/user/other"), 0));
    CHECK(fk__table_add(table, to, 9));
    send_one();
    e = post_last(&p);
    CHECK(e.recipient.is_compressed && e.recipient.index == 9);
    p.read = p.written = 0;
    post_stop(&p);
}

TEST(mail_by_a_table_that_is_not_known_is_lost_alone)
{
    unsigned char frame[64];
    size_t size;
    start();
    post_compress(&p);
    fk_wire_envelope e = { .serializer = 20,
                           .ref_table = 5,
                           .recipient = { .is_compressed = true },
                           .payload = FK_STR("x") };
    CHECK_OK(fk__frame_size(&e, 60, &size));
    fk__frame_encode(&e, frame);
    CHECK_OK(post_inject(&p, (fk_str){ (const char *)frame + 4, size - 4 }));
    CHECK_U64(observer_letters(&p.side[1].o, 1)->reason, FK_REASON_NO_RECEIVER);
    p.side[1].peer.refs_in = NULL; /* a peer that was never told of any table */
    CHECK_OK(post_inject(&p, (fk_str){ (const char *)frame + 4, size - 4 }));
    CHECK_U64(observer_letters(&p.side[1].o, 1)->reason, FK_REASON_NO_RECEIVER);
    p.side[1].peer.refs_in = &p.side[1].refs_in;
    e.ref_table = 0;
    e.recipient.index = 7; /* the table is known, and empty */
    fk__frame_encode(&e, frame);
    CHECK_ERR(post_inject(&p, (fk_str){ (const char *)frame + 4, size - 4 }), FK_E_MALFORMED);
    post_stop(&p);
}

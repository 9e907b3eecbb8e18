/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How long a message of 64 bytes takes from letter to frame, and from frame to mailbox. Prints the
 * times; what is checked is that neither needs memory once names are known. For instructions:
 *
 *   FK_MAIL_ROUNDS=10000 valgrind --tool=callgrind --toggle-collect=fk__mail_write unit_remote_mail_speed
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/post.h"

static post p;
static probe at_b;
static uint64_t rounds;

typedef struct bench {
    fk_node *node;
    fk_letter letter;
    unsigned char frame[512];
    size_t len;
    fk_local *a, *b;
} bench;

static bench w;

static void write_one(void)
{
    fk_codec_fault fault;
    fk_mail_room room = { .to = w.frame, .size = sizeof(w.frame) };
    fk_err err = fk__mail_write(p.side[0].mail, &p.side[0].peer, &w.letter, &room, &fault);
    w.len = room.len;
    if (err != FK_OK) CHECK_OK(err);
}

static void read_one(void)
{
    fk_wire_envelope e;
    fk_wire_fault fault;
    fk_err err = fk__envelope_decode((fk_str){ (const char *)w.frame + 4, w.len - 4 }, &e, &fault);
    if (err == FK_OK) {
        err = fk__mail_read(p.side[1].mail, w.b, &p.side[1].peer, &p.side[1].authority, &e, &fault);
    }
    if (err != FK_OK) CHECK_OK(err);
}

static void drain(void)
{
    rig_run(&p.side[1].o.r);
}

/* Nanoseconds of `rounds` calls; whatever has to be done now and then is not counted. */
static double timed(void (*fn)(void), bool drains)
{
    int64_t spent = 0;
    for (uint64_t done = 0; done < rounds; done += 64) {
        int64_t began = test_clock();
        for (int i = 0; i < 64; i++) fn();
        spent += test_clock() - began;
        if (drains) drain();
    }
    return (double)spent / (double)rounds;
}

static void measure(const char *what)
{
    write_one();
    read_one();
    drain();
    uint64_t blocks = p.side[0].o.r.allocations;
    double written = timed(write_one, false);
    CHECK_U64(p.side[0].o.r.allocations, blocks);
    double read = timed(read_one, true);
    size_t count = at_b.count;
    blocks = p.side[1].o.r.allocations;
    timed(read_one, true);
    bool has_pools = getenv("FK_POOLS") == NULL;
    if (has_pools) CHECK_U64(p.side[1].o.r.allocations, blocks);
    CHECK_U64(at_b.count - count, (rounds + 63) / 64 * 64);
    printf("%s: %zu bytes, write %.0f ns, read %.0f ns\n", what, w.len, written, read);
}

TEST(mail_speed_of_64_bytes)
{
    char bytes[64];
    fk_ref here;
    rounds = test_env("FK_MAIL_ROUNDS", test_scaled(6400));
    memset(bytes, 'x', sizeof(bytes));
    post_start(&p, (post_config){ .rules = FK_RULES_PEKKO });
    fk_props props = probe_props(&at_b);
    fk_ref ref;
    CHECK_OK(fk_spawn(p.side[1].o.r.sys, FK_STR("receiver"), &props, &ref));
    CHECK_OK(fk_spawn(p.side[0].o.r.sys, FK_STR("sender"), &(fk_props){ .receive = doer_receive },
                      &here));
    w.a = fk__local_enter(p.side[0].o.r.sys);
    w.b = fk__local_enter(p.side[1].o.r.sys);
    w.node = fk__node_create(&w.a->cache, FK_BYTES_AT(((fk_str){ bytes, sizeof(bytes) })));
    w.node->sender = fk__sender_pack(here.slot, here.generation);
    w.letter = (fk_letter){ .node = w.node, .to = post_ref(&p, 1, "/user/receiver") };
    const char *only = getenv("FK_MAIL_ONLY"); /* for whoever counts instructions */
    if (only == NULL || strcmp(only, "full") == 0) measure("names in full");
    if (only == NULL || strcmp(only, "compressed") == 0) {
        post_compress(&p);
        write_one();
        for (int i = 0; i < 40; i++) read_one();
        post_compress(&p);
        measure("compressed");
        CHECK(w.len == 4 + 28 + 2 + 64);
    }
    fk__node_free(&w.a->cache, w.node);
    fk__local_leave(w.a);
    fk__local_leave(w.b);
    post_stop(&p);
}

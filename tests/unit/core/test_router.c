/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who gets a message that is sent to a router. */

#include <string.h>

#include "support/crew.h"

typedef struct bench {
    rig r;
    crew c;
    fk_ref router;
} bench;

static void bench_start(bench *b, fk_router_kind kind, uint32_t routees, fk_router_key_fn key)
{
    crew_worker init;
    *b = (bench){ 0 };
    rig_start(&b->r);
    fk_props props = crew_props(&b->c, &init);
    props.throughput = 1;
    fk_router_config config = { .kind = kind, .pool = &props, .routees = routees, .key = key };
    CHECK_OK(fk_router_spawn(b->r.sys, FK_STR("router"), &config, &b->router));
    memset(&init, 0xff, sizeof(init)); /* it was copied */
    rig_run(&b->r);
    CHECK_U64(b->c.started, routees);
}

TEST(router_round_robin_gives_each_its_turn)
{
    bench b;
    fk_ref routees[CREW_MAX];
    bench_start(&b, FK_ROUTER_ROUND_ROBIN, 4, NULL);
    CHECK_U64(crew_list(&b.r, b.router, routees), 4);
    for (uint64_t i = 0; i < 12; i++) {
        size_t who = crew_index(&b.c, routees[i % 4]);
        crew_send(&b.r, b.router, i, 1);
        CHECK_U64(b.c.got[who], i / 4 + 1);
        CHECK_U64(b.c.last[who], i);
    }
    rig_stop(&b.r);
}

TEST(router_keeps_the_sender_and_every_kind_of_message)
{
    static char text[500];
    bench b;
    probe p;
    fk_payload *payload = NULL;
    bench_start(&b, FK_ROUTER_ROUND_ROBIN, 3, NULL);
    fk_ref sender = probe_spawn(&b.r, &p);
    CHECK_OK(fk_payload_create(b.r.sys, NULL, 7000, &payload));
    CHECK_OK(fk_send_from(b.r.sys, b.router, sender, FK_MSG(num, 1)));
    rig_run(&b.r);
    CHECK(fk_ref_equal(b.c.sender, sender));
    CHECK_OK(fk_send_from(b.r.sys, b.router, sender, FK_TEXT("small")));
    rig_run(&b.r);
    CHECK(b.c.type == &fk_type_text && b.c.len == 5);
    CHECK_OK(fk_send_from(b.r.sys, b.router, sender, FK_BYTES_AT(((fk_str){ text, 500 }))));
    rig_run(&b.r);
    CHECK(b.c.type == &fk_type_bytes && b.c.len == 500);
    CHECK_OK(fk_send_from(b.r.sys, b.router, sender, FK_MSG_PAYLOAD(payload)));
    rig_run(&b.r);
    CHECK(b.c.type == &fk_type_bytes && b.c.len == 7000);
    CHECK(fk_ref_equal(b.c.sender, sender));
    CHECK_U64(b.c.all, 4);
    CHECK_U64(b.r.letters.count, 0);
    rig_stop(&b.r);
}

TEST(router_passes_on_what_a_message_owns)
{
    bench b;
    _Atomic int drops = 0;
    owned small = { &drops, 1 };
    owned_large large = { &drops, 2, { 0 } };
    memset(large.filling, 2, sizeof(large.filling));
    bench_start(&b, FK_ROUTER_ROUND_ROBIN, 2, NULL);
    CHECK_OK(fk_send(b.r.sys, b.router, (fk_out){ &fk_type_owned, &small }));
    CHECK_OK(fk_send(b.r.sys, b.router, (fk_out){ &fk_type_owned_large, &large }));
    rig_run(&b.r);
    CHECK_U64(b.c.all, 2);
    CHECK_U64(drops, 2);
    rig_stop(&b.r);
}

TEST(router_random_reaches_everybody_about_equally)
{
    bench b;
    bench_start(&b, FK_ROUTER_RANDOM, 4, NULL);
    crew_send(&b.r, b.router, 0, 4000);
    for (int i = 0; i < 4; i++) CHECK(b.c.got[i] > 850 && b.c.got[i] < 1150); /* 5 sigma */
    bool in_turn = true;
    for (int i = 0; i < 4; i++) in_turn = in_turn && b.c.got[i] == 1000;
    CHECK(!in_turn);
    rig_stop(&b.r);
}

static void same_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 7, len);
}

TEST(router_random_is_as_random_as_its_port)
{
    size_t first[4] = { 0 };
    for (int run = 0; run < 2; run++) {
        bench b = { 0 };
        crew_worker init;
        rig_init(&b.r);
        b.r.port.random = same_random;
        CHECK_OK(rig_try_start(&b.r, &(fk_system_config){ .name = "test" }));
        fk_props props = crew_props(&b.c, &init);
        fk_router_config config = { .kind = FK_ROUTER_RANDOM, .pool = &props, .routees = 4 };
        CHECK_OK(fk_router_spawn(b.r.sys, FK_STR(""), &config, &b.router));
        crew_send(&b.r, b.router, 0, 200);
        for (int i = 0; i < 4; i++) {
            if (run == 0) first[i] = b.c.got[i];
            CHECK_U64(b.c.got[i], first[i]);
        }
        rig_stop(&b.r);
    }
}

TEST(router_broadcast_reaches_everybody)
{
    bench b;
    bench_start(&b, FK_ROUTER_BROADCAST, 5, NULL);
    crew_send(&b.r, b.router, 10, 3);
    for (int i = 0; i < 5; i++) {
        CHECK_U64(b.c.got[i], 3);
        CHECK_U64(b.c.last[i], 12);
    }
    rig_stop(&b.r);
}

TEST(router_broadcast_shares_a_payload)
{
    static const fk_type SHARED = { "shared", 0, 8, NULL };
    bench b;
    fk_payload *payload = NULL;
    bench_start(&b, FK_ROUTER_BROADCAST, 5, NULL);
    CHECK_OK(fk_payload_create(b.r.sys, &SHARED, 9000, &payload));
    CHECK_OK(fk_send(b.r.sys, b.router, FK_MSG_PAYLOAD(payload)));
    CHECK_OK(fk_send(b.r.sys, b.router, FK_TEXT("in small")));
    rig_run(&b.r);
    CHECK_U64(b.c.all, 10);
    rig_stop(&b.r);
}

TEST(router_broadcast_does_not_double_what_can_be_dropped_once)
{
    _Atomic int drops = 0;
    for (uint32_t routees = 1; routees <= 2; routees++) {
        bench b;
        owned small = { &drops, 1 };
        atomic_store(&drops, 0);
        bench_start(&b, FK_ROUTER_BROADCAST, routees, NULL);
        CHECK_OK(fk_send(b.r.sys, b.router, (fk_out){ &fk_type_owned, &small }));
        CHECK_OK(fk_router_broadcast(b.r.sys, b.router, FK_REF_NONE,
                                     (fk_out){ &fk_type_owned, &small }));
        rig_run(&b.r);
        CHECK_U64(b.c.all, routees == 1 ? 2 : 0);
        CHECK_U64(b.r.letters.of[FK_REASON_SEVERAL], routees == 1 ? 0 : 2);
        CHECK_U64(drops, 2);
        if (routees == 2) {
            CHECK(b.r.letters.last.type == &fk_type_owned);
            CHECK(fk_ref_equal(b.r.letters.last.to, b.router));
        }
        rig_stop(&b.r);
    }
}

TEST(router_of_any_kind_takes_a_broadcast)
{
    for (int kind = FK_ROUTER_ROUND_ROBIN; kind <= FK_ROUTER_CONSISTENT_HASH; kind++) {
        bench b;
        probe p;
        char text[400];
        memset(text, 't', sizeof(text));
        bench_start(&b, (fk_router_kind)kind, 3, NULL);
        fk_ref sender = probe_spawn(&b.r, &p);
        CHECK_OK(fk_router_broadcast(b.r.sys, b.router, sender, FK_MSG(num, 5)));
        CHECK_OK(fk_router_broadcast(b.r.sys, b.router, sender, FK_TEXT("all")));
        fk_str large = { text, sizeof(text) };
        CHECK_OK(fk_router_broadcast(b.r.sys, b.router, sender, FK_TEXT_AT(large)));
        rig_run(&b.r);
        for (int i = 0; i < 3; i++) CHECK_U64(b.c.got[i], 3);
        CHECK(fk_ref_equal(b.c.sender, sender));
        /* What the runtime handles goes to everybody, too: that ends them, and so the router. */
        CHECK_OK(fk_router_broadcast(b.r.sys, b.router, sender, (fk_out){ &fk_type_poison, "" }));
        rig_run(&b.r);
        CHECK_U64(b.c.stopped, 3);
        CHECK(!fk_is_alive(b.r.sys, b.router));
        CHECK_U64(b.r.letters.count, 0);
        rig_stop(&b.r);
    }
}

TEST(router_broadcast_to_nobody_is_a_dead_letter_of_the_message)
{
    bench b;
    bench_start(&b, FK_ROUTER_ROUND_ROBIN, 1, NULL);
    CHECK_OK(fk_stop(b.r.sys, b.router));
    rig_run(&b.r);
    CHECK_OK(fk_router_broadcast(b.r.sys, b.router, FK_REF_NONE, FK_MSG(num, 5)));
    CHECK_U64(b.r.letters.of[FK_REASON_STOPPED], 1);
    CHECK(b.r.letters.last.type == &fk_type_num);
    rig_stop(&b.r);
}

TEST(router_broadcast_to_no_router_is_somebody_elses_message)
{
    rig r;
    probe p;
    _Atomic int drops = 0;
    owned small = { &drops, 1 };
    rig_start(&r);
    fk_ref ref = probe_spawn(&r, &p);
    fk_out out = { &fk_type_owned, &small };
    CHECK_OK(fk_router_broadcast(r.sys, ref, FK_REF_NONE, out));
    rig_run(&r);
    CHECK_U64(p.count, 1);
    CHECK_STR(p.type->name, "fk_broadcast");
    CHECK_U64(drops, 1);
    rig_stop(&r);
}

/* ---- the smallest mailbox -------------------------------------------------------------------- */

static fk_err do_nothing(fk_ctx *ctx, void *arg)
{
    (void)ctx;
    (void)arg;
    return FK_OK;
}

TEST(router_smallest_mailbox_spares_who_has_much_to_do)
{
    bench b;
    bench_start(&b, FK_ROUTER_SMALLEST_MAILBOX, 4, NULL);
    for (int i = 0; i < 30; i++) { /* to one of them directly; it may handle one of these now */
        CHECK_OK(fk_send(b.r.sys, b.c.ref[1], FK_MSG(rig_call, do_nothing, NULL)));
    }
    for (uint64_t i = 0; i < 60; i++) CHECK_OK(fk_send(b.r.sys, b.router, FK_MSG(num, i)));
    rig_run(&b.r);
    CHECK_U64(b.c.all, 90);
    CHECK_U64(b.c.got[1], 30); /* none of the 60 */
    for (int i = 0; i < 4; i++) CHECK(i == 1 || b.c.got[i] == 20);
    rig_stop(&b.r);
}

TEST(router_smallest_mailbox_levels_out)
{
    bench b;
    bench_start(&b, FK_ROUTER_SMALLEST_MAILBOX, 4, NULL);
    for (int i = 0; i < 8; i++) {
        CHECK_OK(fk_send(b.r.sys, b.c.ref[i % 2], FK_MSG(rig_call, do_nothing, NULL)));
    }
    for (uint64_t i = 0; i < 92; i++) CHECK_OK(fk_send(b.r.sys, b.router, FK_MSG(num, i)));
    rig_run(&b.r);
    for (int i = 0; i < 4; i++) CHECK(b.c.got[i] >= 24 && b.c.got[i] <= 26);
    rig_stop(&b.r);
}

/* Threads: one routee takes a hundred times as long as the others. */
typedef struct slow {
    _Atomic int made;
    _Atomic uint64_t got[4];
} slow;

typedef struct slow_worker {
    slow *s;
    int index;
} slow_worker;

static fk_err slow_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    slow_worker *w = state;
    (void)ctx;
    (void)msg;
    if (w->index == 0) w->index = atomic_fetch_add(&w->s->made, 1) + 1;
    atomic_fetch_add(&w->s->got[w->index - 1], 1);
    int64_t until = test_clock() + (w->index == 1 ? FK_MILLIS(5) : FK_MICROS(50));
    while (test_clock() < until) continue;
    return FK_OK;
}

TEST(router_smallest_mailbox_gives_a_slow_routee_less)
{
    rig r;
    static slow s;
    slow_worker init = { &s, 0 };
    fk_ref router = FK_REF_NONE;
    fk_props props = { .receive = slow_receive,
                       .state_size = sizeof(init),
                       .init = &init,
                       .dispatcher = FK_DISPATCHER_PINNED };
    fk_router_config config = { .kind = FK_ROUTER_SMALLEST_MAILBOX, .pool = &props, .routees = 4 };
    rig_start_with(&r, (fk_system_config){ .name = "test", .workers = 1 });
    CHECK_OK(fk_router_spawn(r.sys, FK_STR(""), &config, &router));
    for (int i = 0; i < 400; i++) {
        CHECK_OK(fk_send(r.sys, router, FK_MSG(num, 1)));
        if (i % 8 == 7) test_sleep_ms(1);
    }
    uint64_t all = 0;
    for (int64_t until = test_clock() + FK_SECONDS(20); all < 400 && test_clock() < until;) {
        all = 0;
        for (int i = 0; i < 4; i++) all += atomic_load(&s.got[i]);
        test_sleep_ms(1);
    }
    CHECK_U64(all, 400);
    for (int i = 1; i < 4; i++) CHECK(atomic_load(&s.got[i]) > atomic_load(&s.got[0]));
    rig_stop(&r);
}

/* ---- consistent hash ---------------------------------------------------------------------------- */

static uint64_t key_of_num(const fk_msg *msg)
{
    const num *value = FK_AS(num, msg);
    return value != NULL ? value->n : 0;
}

enum { KEYS = 1000 };

/* Who gets each of the keys: by number of its start. */
static void map_keys(bench *b, uint8_t owner[KEYS])
{
    for (uint64_t key = 0; key < KEYS; key++) {
        size_t before[CREW_MAX];
        memcpy(before, b->c.got, sizeof(before));
        crew_send(&b->r, b->router, key, 1);
        uint8_t who = 0;
        while (who < b->c.started && b->c.got[who] == before[who]) who++;
        CHECK(who < b->c.started);
        owner[key] = who;
    }
}

static size_t moved(const uint8_t a[KEYS], const uint8_t b[KEYS])
{
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++) count += a[i] != b[i];
    return count;
}

TEST(router_consistent_hash_gives_equal_keys_to_one_routee)
{
    bench b;
    uint8_t first[KEYS], second[KEYS];
    size_t share[8] = { 0 };
    bench_start(&b, FK_ROUTER_CONSISTENT_HASH, 8, key_of_num);
    map_keys(&b, first);
    map_keys(&b, second);
    CHECK_U64(moved(first, second), 0);
    for (size_t i = 0; i < KEYS; i++) share[first[i]]++;
    for (int i = 0; i < 8; i++) CHECK(share[i] > 75 && share[i] < 175); /* of 125 */
    rig_stop(&b.r);
}

TEST(router_consistent_hash_moves_little_on_resize)
{
    bench b;
    uint8_t eight[KEYS], nine[KEYS], again[KEYS];
    bench_start(&b, FK_ROUTER_CONSISTENT_HASH, 8, key_of_num);
    map_keys(&b, eight);
    CHECK_OK(fk_router_resize(b.r.sys, b.router, 9));
    map_keys(&b, nine);
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        if (eight[i] == nine[i]) continue;
        CHECK_U64(nine[i], 8); /* only to the new one */
        count++;
    }
    CHECK(count > 60 && count < 170); /* a ninth */
    CHECK_OK(fk_router_resize(b.r.sys, b.router, 8));
    map_keys(&b, again);
    CHECK_U64(moved(eight, again), 0);
    rig_stop(&b.r);
}

TEST(router_consistent_hash_spreads_the_keys_of_one_that_ended)
{
    bench b;
    uint8_t before[KEYS], without[KEYS], after[KEYS];
    bench_start(&b, FK_ROUTER_CONSISTENT_HASH, 5, key_of_num);
    map_keys(&b, before);
    CHECK_OK(fk_stop(b.r.sys, b.c.ref[2]));
    rig_run(&b.r);
    map_keys(&b, without);
    for (size_t i = 0; i < KEYS; i++) CHECK((before[i] == without[i]) == (before[i] != 2));
    /* Whoever takes its place gets exactly those. */
    CHECK_OK(fk_router_resize(b.r.sys, b.router, 5));
    map_keys(&b, after);
    for (size_t i = 0; i < KEYS; i++) CHECK_U64(after[i], before[i] == 2 ? 5 : before[i]);
    rig_stop(&b.r);
}

TEST(router_consistent_hash_of_bytes_unless_told)
{
    bench b;
    bench_start(&b, FK_ROUTER_CONSISTENT_HASH, 4, NULL);
    for (int i = 0; i < 20; i++) CHECK_OK(fk_send(b.r.sys, b.router, FK_TEXT("alice")));
    rig_run(&b.r);
    size_t busy = 0;
    for (int i = 0; i < 4; i++) busy += b.c.got[i] != 0;
    CHECK_U64(busy, 1);
    crew_send(&b.r, b.router, 0, 100);
    for (int i = 0; i < 4; i++) CHECK(b.c.got[i] > 5);
    rig_stop(&b.r);
}

TEST(router_hash_is_the_same_for_ever)
{
    CHECK_U64(fk_router_hash("", 0), fk_router_hash(NULL, 0));
    CHECK_U64(fk_router_hash("alice", 5), 0x11af1c347e79d641u);
    CHECK(fk_router_hash("alice", 5) != fk_router_hash("alicf", 5));
}

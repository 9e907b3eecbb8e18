/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "remote/watcher.h"

#include <stdlib.h>

#include "support/test.h"

enum { NODES = 2, RECORDS = 32, SAMPLES = 200, DEFAULT_MAX = 10000 };

/* Actors here are below 100; those of the nodes are above. */
enum { ME = 1, YOU = 2, THERE = 101, THERE_TOO = 102, ELSEWHERE = 201 };

static fk_watcher w;
static fk_watcher_node node[NODES];
static fk_watcher_effects fx;
static fk_time now, sample[NODES][SAMPLES];
static fk_deadline *heap[NODES];
static fk_bond records[RECORDS];
static uint32_t buckets[8];

static void begin(const fk_watcher_config *config)
{
    now = FK_SECONDS(100);
    CHECK_OK(fk__watcher_init(&w, config, heap, NODES));
    fk__bonds_init(&w.bonds, records, RECORDS, buckets, 8, 1);
    for (int i = 0; i < NODES; i++) fk__watcher_node_init(&w, &node[i], sample[i]);
}

static void check(void)
{
    fk__watcher_check(&w);
    for (int i = 0; i < NODES; i++) fk__watcher_node_check(&w, &node[i]);
}

static bool watch(fk_watcher_node *at, uint64_t watchee, uint64_t who)
{
    CHECK_OK(fk__watcher_watch(&w, at, watchee, who, now, &fx));
    check();
    return fx.must_watch;
}

static bool unwatch(uint64_t watchee, uint64_t who)
{
    fk__watcher_unwatch(&w, watchee, who, &fx);
    check();
    return fx.must_unwatch;
}

static void reply(fk_watcher_node *of, uint64_t uid)
{
    fk__watcher_reply(&w, of, uid, now, &fx);
    check();
}

/* The one thing that is due next. */
static void tick(void)
{
    fk_time next = fk__watcher_next(&w);
    CHECK(next != FK_NEVER);
    if (next > now) now = next;
    CHECK(fk__watcher_tick(&w, now, &fx));
    check();
}

/* Heartbeats for so long, each of which is answered. */
static void live(fk_watcher_node *of, uint64_t uid, int seconds)
{
    for (fk_time end = now + FK_SECONDS(seconds); fk__watcher_next(&w) <= end;) {
        tick();
        CHECK(!fx.must_quarantine);
        if (fx.must_heartbeat) reply(of, uid);
    }
}

static void check_end(uint64_t watchee, uint64_t watcher, fk_bond_end end)
{
    fk_bond_ended out;
    CHECK(fk__watcher_take(&w, &out));
    CHECK_U64(out.watchee, watchee);
    CHECK_U64(out.watcher, watcher);
    CHECK_U64(out.end, end);
}

static void check_no_end(void)
{
    fk_bond_ended out;
    CHECK(!fk__watcher_take(&w, &out));
}

TEST(watcher_tells_a_node_once_for_each_watchee)
{
    begin(NULL);
    CHECK(watch(&node[0], THERE, ME));
    CHECK(!watch(&node[0], THERE, YOU));
    CHECK(!watch(&node[0], THERE, ME)); /* twice is once */
    CHECK(watch(&node[0], THERE_TOO, ME));
    CHECK(!unwatch(THERE, ME));
    CHECK(!unwatch(THERE, ME));
    CHECK(unwatch(THERE, YOU));
    CHECK(fk__watcher_next(&w) != FK_NEVER);
    CHECK(unwatch(THERE_TOO, ME));
    CHECK(fk__watcher_next(&w) == FK_NEVER); /* nobody to send heartbeats for */
    check_no_end();
}

TEST(watcher_sends_a_heartbeat_each_second_to_nodes_that_are_watched)
{
    begin(NULL);
    watch(&node[0], THERE, ME);
    CHECK(fk__watcher_next(&w) == now);
    for (int i = 0; i < 5; i++) {
        fk_time before = now;
        tick();
        CHECK(fx.must_heartbeat && fx.node == &node[0]);
        CHECK(i == 0 || now == before + FK_SECONDS(1));
        reply(&node[0], 7);
        CHECK(fx.must_rewatch == (i == 0)); /* the first reply says who is there */
    }
    CHECK(!fk__watcher_tick(&w, now + FK_MILLIS(999), &fx));
}

TEST(b66_node_loss_ends_every_watch_once_and_quarantines_the_uid)
{
    begin(NULL);
    watch(&node[0], THERE, ME);
    watch(&node[0], THERE, YOU);
    watch(&node[1], ELSEWHERE, ME);
    CHECK_OK(fk__watcher_watched(&w, &node[0], YOU, THERE_TOO));
    for (int i = 0; i < 60 && !fx.must_quarantine; i++) {
        tick();
        if (fx.must_heartbeat && (fx.node == &node[1] || i < 30)) {
            reply(fx.node, fx.node == &node[1] ? 8 : 7);
        }
    }
    CHECK(fx.must_quarantine && fx.has_ended);
    CHECK(fx.node == &node[0]);
    CHECK_U64(fx.uid, 7);
    check_end(THERE, ME, FK_BOND_END_LOST);
    check_end(THERE, YOU, FK_BOND_END_LOST);
    check_end(YOU, THERE_TOO, FK_BOND_END_FORGOTTEN);
    check_no_end();
    reply(&node[0], 7); /* too late */
    CHECK(!fx.must_rewatch);
    live(&node[1], 8, 30); /* the other one is watched on */
    check_no_end();
    CHECK(watch(&node[0], THERE, ME)); /* a new beginning */
}

TEST(watcher_misses_a_node_that_never_answers)
{
    begin(NULL);
    fk_time start = now;
    watch(&node[0], THERE, ME);
    do tick();
    while (!fx.must_quarantine);
    CHECK_U64(fx.uid, 0);
    CHECK(now - start >= FK_SECONDS(12) && now - start <= FK_SECONDS(16));
    check_end(THERE, ME, FK_BOND_END_LOST);
}

TEST(r7_a_node_that_answers_is_not_lost_because_we_slept)
{
    begin(NULL);
    watch(&node[0], THERE, ME);
    live(&node[0], 7, 30);
    for (int i = 0; i < 5; i++) {
        now += FK_SECONDS(60);
        CHECK(fk__watcher_tick(&w, now, &fx));
        CHECK(fx.must_heartbeat);
        reply(&node[0], 7);
    }
    now += FK_SECONDS(60);
    CHECK(fk__watcher_tick(&w, now, &fx)); /* asks */
    now += FK_SECONDS(60);
    CHECK(fk__watcher_tick(&w, now, &fx)); /* the answer may lie unread */
    CHECK(fx.must_heartbeat);
    now += FK_SECONDS(60);
    CHECK(fk__watcher_tick(&w, now, &fx)); /* but not for ever */
    CHECK(fx.must_quarantine);
}

TEST(watcher_watches_again_when_a_node_was_restarted)
{
    uint32_t cursor = 0;
    begin(NULL);
    watch(&node[0], THERE, ME);
    watch(&node[0], THERE_TOO, ME);
    watch(&node[0], THERE, YOU);
    CHECK_OK(fk__watcher_watched(&w, &node[0], ME, THERE));
    live(&node[0], 7, 3);
    reply(&node[0], 8);
    CHECK(fx.must_rewatch);
    CHECK_U64(fk__watcher_watchee(&w, &node[0], &cursor), THERE);
    CHECK_U64(fk__watcher_watchee(&w, &node[0], &cursor), THERE_TOO);
    CHECK_U64(fk__watcher_watchee(&w, &node[0], &cursor), 0);
    check_end(ME, THERE, FK_BOND_END_FORGOTTEN); /* who watched from there is no more */
    check_no_end();
    reply(&node[0], 8);
    CHECK(!fx.must_rewatch);
    fk__watcher_renewed(&w, &node[0], 9, &fx);
    CHECK(fx.must_rewatch);
    reply(&node[0], 9);
    CHECK(!fx.must_rewatch);
}

TEST(watcher_tells_all_watchers_of_an_end_and_believes_the_right_node)
{
    begin(NULL);
    watch(&node[0], THERE, ME);
    watch(&node[0], THERE, YOU);
    watch(&node[1], ELSEWHERE, ME);
    fk__watcher_terminated(&w, &node[1], THERE, &fx);
    CHECK(!fx.has_ended);
    fk__watcher_terminated(&w, &node[0], THERE, &fx);
    CHECK(fx.has_ended);
    check();
    CHECK(watch(&node[0], THERE, ME)); /* before it was told: a watch of its own */
    check_end(THERE, ME, FK_BOND_END_TERMINATED);
    check_end(THERE, YOU, FK_BOND_END_TERMINATED);
    check_no_end();
    CHECK(unwatch(THERE, ME));
}

TEST(watcher_remembers_who_of_a_node_watches_here)
{
    begin(NULL);
    CHECK_OK(fk__watcher_watched(&w, &node[0], ME, THERE));
    CHECK_OK(fk__watcher_watched(&w, &node[0], ME, THERE)); /* twice is once */
    CHECK_OK(fk__watcher_watched(&w, &node[0], ME, THERE_TOO));
    CHECK_OK(fk__watcher_watched(&w, &node[1], ME, ELSEWHERE));
    fk__watcher_unwatched(&w, &node[1], ME, THERE_TOO); /* not its own */
    fk__watcher_unwatched(&w, &node[0], ME, THERE);
    CHECK(fk__watcher_next(&w) == FK_NEVER); /* no heartbeats for that */
    fk__watcher_stopped(&w, ME, &fx);
    CHECK(fx.has_ended);
    check_end(ME, THERE_TOO, FK_BOND_END_STOPPED);
    check_end(ME, ELSEWHERE, FK_BOND_END_STOPPED);
    check_no_end();
}

TEST(watcher_refuses_more_than_ten_thousand_of_one_node)
{
    enum { MOST = 2 * DEFAULT_MAX + 3, BUCKETS = 16384 };
    fk_bond *many = calloc(MOST, sizeof(*many));
    uint32_t *bucket = calloc(BUCKETS, sizeof(*bucket));
    CHECK(many != NULL && bucket != NULL);
    begin(NULL);
    watch(&node[0], THERE, ME);
    fk__bonds_move(&w.bonds, many, MOST, bucket, BUCKETS); /* more memory, the same bonds */
    CHECK(!watch(&node[0], THERE, ME));
    for (uint64_t i = 0; i < DEFAULT_MAX - 1; i++) {
        CHECK_OK(fk__watcher_watch(&w, &node[0], 1000 + i, ME, now, &fx));
    }
    check();
    CHECK_ERR(fk__watcher_watch(&w, &node[0], THERE_TOO, ME, now, &fx), FK_E_LIMIT);
    CHECK_OK(fk__watcher_watch(&w, &node[1], ELSEWHERE, ME, now, &fx)); /* each has its own */
    CHECK_ERR(fk__watcher_watch(&w, &node[1], ELSEWHERE + 1, ME, now, &fx), FK_E_FULL);
    fk__watcher_lose(&w, &node[0], &fx);
    check();
    for (uint64_t i = 0; i < DEFAULT_MAX; i++) {
        check_end(i == 0 ? THERE : 1000 + i - 1, ME, FK_BOND_END_LOST);
    }
    check_no_end();
    free(many);
    free(bucket);
}

TEST(watcher_refuses_more_nodes_than_it_has_room_for)
{
    static fk_watcher_node third;
    static fk_time its_sample[SAMPLES];
    begin(NULL);
    fk__watcher_node_init(&w, &third, its_sample);
    watch(&node[0], THERE, ME);
    watch(&node[1], ELSEWHERE, ME);
    CHECK_ERR(fk__watcher_watch(&w, &third, 301, ME, now, &fx), FK_E_LIMIT);
    CHECK_OK(fk__watcher_watched(&w, &third, ME, 301)); /* that needs no heartbeats */
    CHECK(unwatch(THERE, ME));
    CHECK(watch(&third, 301, ME));
}

TEST(watcher_config_is_checked)
{
    CHECK_ERR(fk__watcher_init(&w, &(fk_watcher_config){ .heartbeat_every = -1 }, heap, NODES),
              FK_E_INVALID);
    CHECK_ERR(fk__watcher_init(&w, &(fk_watcher_config){ .first_reply_after = -1 }, heap, NODES),
              FK_E_INVALID);
    CHECK_ERR(fk__watcher_init(&w, &(fk_watcher_config){ .detector.samples_max = 1 }, heap, NODES),
              FK_E_INVALID);
}

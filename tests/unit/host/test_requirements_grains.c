/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is promised of grains, through fraktor/cluster.h: keys, state, stores that are slow, unsure or gone,
 * calls that are tried again, clients, draining, and looking without touching. */

#include <stdio.h>
#include <string.h>

#include "support/town.h"

static const fk_cluster_config USUAL = { .lease_ttl = 0 };

static const town_op ADD_1 = { .verb = TOWN_ADD, .arg = 1 };

static fk_err ask_for(int i, const char *key, town_op op, fk_time timeout)
{
    town_total total;
    return fk_grain_ask_wait(town[i].cluster, FK_STR("durable"), fk_str_of(key),
                             FK_MSG_AT(town_op, &op), FK_INTO(town_total, &total), timeout);
}

/* ---- state ---------------------------------------------------------------------------------------------- */

TEST(passivated_and_called_again_its_state_is_back)
{
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "brief", "p", 41).n, 41);
    PEER_AWAIT(atomic_load(&town_stops) == 1);
    PEER_AWAIT(town_stats(0).passivated == 1);
    CHECK_U64(town_happened(0, FK_PLACEMENT_PASSIVATED, "brief/p"), 1);
    CHECK_U64(town_add(0, "brief", "p", 1).n, 42);
    CHECK_U64(atomic_load(&town_starts), 2);
    town_end();
}

TEST(volatile_grains_forget_and_durable_ones_do_not)
{
    char brittle[32], lasting[32];
    town_begin();
    town_open_all(2, USUAL);
    town_key("volatile", 1, 0, brittle);
    town_key("durable", 1, 0, lasting);
    CHECK_U64(town_add(0, "volatile", brittle, 5).node, 1);
    CHECK_U64(town_add(0, "volatile", brittle, 0).n, 5);
    CHECK_U64(town_add(0, "durable", lasting, 5).node, 1);
    CHECK_OK(fk_cluster_leave(town[1].cluster, FK_SECONDS(10)));
    CHECK_U64(town_add(0, "durable", lasting, 0).n, 5);
    town_total total = town_add(0, "volatile", brittle, 0);
    CHECK_U64(total.node, 0);
    CHECK_U64(total.n, 0);
    town_end();
}

TEST(deleted_its_row_is_forgotten_and_it_begins_anew)
{
    town_total total = { 0 };
    fk_grain_row row;
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "durable", "d", 9).n, 9);
    CHECK_OK(town_ask(0, "durable", "d", (town_op){ .verb = TOWN_DELETE }, &total));
    PEER_AWAIT(atomic_load(&town_stops) == 1);
    CHECK_ERR(fk_grain_peek(town[0].cluster, FK_STR("durable"), FK_STR("d"), &row), FK_E_NOT_FOUND);
    CHECK_U64(town_add(0, "durable", "d", 1).n, 1);
    CHECK_U64(atomic_load(&town_starts), 2);
    town_end();
}

TEST(a_turn_that_fails_is_undone_and_the_asker_told)
{
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "durable", "f", 3).n, 3);
    CHECK_ERR(ask_for(0, "f", (town_op){ .verb = TOWN_FAIL, .arg = 100 }, FK_SECONDS(30)),
              FK_E_FAILED);
    CHECK_U64(town_add(0, "durable", "f", 1).n, 4);
    CHECK_U64(atomic_load(&town_starts), 2);
    town_end();
}

TEST(become_and_stash_are_not_for_grains)
{
    town_total total = { 0 };
    town_begin();
    town_open_all(1, USUAL);
    CHECK_OK(town_ask(0, "durable", "b", (town_op){ .verb = TOWN_BECOME }, &total));
    CHECK_U64(total.n, FK_E_UNSUPPORTED);
    CHECK_OK(town_ask(0, "volatile", "b", (town_op){ .verb = TOWN_STASH }, &total));
    CHECK_U64(total.n, FK_E_UNSUPPORTED);
    CHECK_OK(town_ask(0, "durable", "b", (town_op){ .verb = TOWN_REQUEST }, &total));
    CHECK(total.n != 0);
    town_end();
}

/* A client whose view is old asks who drains, who passes the call on. */
TEST(who_answers_is_remembered_until_the_view_is_new)
{
    char key[32];
    town_begin();
    town_open_all(2, USUAL);
    town_open(2, (fk_cluster_config){ .client = true });
    town_key("durable", 1, 0, key);
    CHECK_U64(town_add(2, "durable", key, 1).node, 1);
    atomic_store(&town_shop.blind, 2);
    CHECK_OK(fk_cluster_drain(town[1].cluster));
    PEER_AWAIT(town_stats(1).placement.slots_held == 0);
    CHECK_U64(town_add(2, "durable", key, 1).node, 0);
    PEER_AWAIT(town_happened(2, FK_PLACEMENT_CACHE_PUT, NULL) == 1);
    PEER_AWAIT(town_stats(1).arrived >= 2);
    test_sleep_ms(100); /* stats are a little old */
    uint64_t arrived = town_stats(1).arrived;
    CHECK_U64(town_add(2, "durable", key, 1).n, 3);
    test_sleep_ms(100);
    CHECK_U64(town_stats(1).arrived, arrived); /* not by who drains, this time */
    atomic_store(&town_shop.blind, -1);
    PEER_AWAIT(town_stats(2).placement.cached == 0);
    town_end();
}

/* ---- keys ------------------------------------------------------------------------------------------------ */

static int64_t add_to(int i, fk_str key, int64_t by)
{
    town_total total = { 0 };
    CHECK_OK(fk_grain_ask_wait(town[i].cluster, FK_STR("durable"), key,
                               FK_MSG(town_op, TOWN_ADD, by, FK_REF_NONE),
                               FK_INTO(town_total, &total), FK_SECONDS(30)));
    return total.n;
}

TEST(keys_are_any_bytes)
{
    static char longest[FK_GRAIN_KEY_MAX], longer[FK_GRAIN_KEY_MAX];
    memset(longest, 'x', sizeof(longest));
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = 'y';
    const fk_str keys[] = { FK_STR("\0"),
                            FK_STR("\0\0"),
                            FK_STR("a\0b"),
                            FK_STR("a\0c"),
                            FK_STR("it's \"it\""),
                            FK_STR("\xff\xfe\x80"),
                            FK_STR("a/b#c"),
                            FK_STR("../.."),
                            FK_STR("$a"),
                            FK_STR("~b"),
                            FK_STR("%41"),
                            FK_STR("A"),
                            FK_STR(" "),
                            FK_STR("x'; DROP"),
                            { longest, sizeof(longest) },
                            { longer, sizeof(longer) } };
    enum { COUNT = sizeof(keys) / sizeof(keys[0]) };
    town_begin();
    town_open_all(2, USUAL);
    for (int round = 1; round <= 3; round++) {
        for (int k = 0; k < COUNT; k++) {
            CHECK_U64(add_to(round & 1, keys[k], k + 1), (uint64_t)(round * (k + 1)));
        }
    }
    CHECK_U64(atomic_load(&town_starts), COUNT);
    town_end();
}

TEST(bad_keys_and_kinds_are_refused_at_once)
{
    static char over[FK_GRAIN_KEY_MAX + 1];
    fk_grain_place place;
    town_begin();
    town_open_all(1, USUAL);
    fk_cluster *c = town[0].cluster;
    memset(over, 'x', sizeof(over));
    CHECK_ERR(fk_grain_send(c, FK_STR("durable"), FK_STR(""), FK_MSG_AT(town_op, &ADD_1)),
              FK_E_KEY);
    CHECK_ERR(fk_grain_send(c, FK_STR("durable"), (fk_str){ over, sizeof(over) },
                            FK_MSG_AT(town_op, &ADD_1)),
              FK_E_KEY);
    CHECK_ERR(fk_grain_send(c, FK_STR("a/b"), FK_STR("x"), FK_MSG_AT(town_op, &ADD_1)),
              FK_E_UNKNOWN_KIND);
    CHECK_ERR(fk_grain_send(c, FK_STR(""), FK_STR("x"), FK_MSG_AT(town_op, &ADD_1)),
              FK_E_UNKNOWN_KIND);
    CHECK_ERR(fk_grain_where(c, FK_STR("nobody"), FK_STR("x"), &place), FK_E_UNKNOWN_KIND);
    CHECK_ERR(fk_kind_register(c, FK_STR("durable"),
                               &(fk_kind){ .props = &(fk_props){ .receive = NULL } }),
              FK_E_INVALID);
    town_end();
}

TEST(the_parent_of_a_kind_is_nobodys_to_stop)
{
    fk_ref parent;
    town_begin();
    town_open_all(1, USUAL);
    fk_system *sys = town[0].r.sys;
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    CHECK_OK(fk_resolve_one(sys, FK_STR("/user/durable"), FK_SECONDS(30), &parent));
    CHECK_ERR(fk_stop(sys, parent), FK_E_RESERVED_NAME);
    CHECK_OK(fk_poison(sys, parent));
    CHECK_OK(fk_kill(sys, parent));
    CHECK_U64(town_add(0, "durable", "other", 1).n, 1);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 2);
    CHECK_U64(atomic_load(&town_starts), 2);
    CHECK(fk_is_alive(sys, parent));
    town_end();
}

TEST(what_is_larger_than_a_frame_is_refused_at_once)
{
    enum { MUCH = 512 << 10 }; /* of 1 MiB even the window of answers would be full */
    static char much[MUCH];
    const fk_str bytes = { much, MUCH };
    char key[32];
    town_total total;
    town_begin();
    town_open_all(2, USUAL);
    town_key("volatile", 1, 0, key);
    CHECK_ERR(fk_grain_ask_wait(town[0].cluster, FK_STR("volatile"), fk_str_of(key),
                                FK_BYTES_AT(bytes), FK_INTO_NOTHING, FK_SECONDS(30)),
              FK_E_LIMIT);
    CHECK_U64(atomic_load(&town_starts), 0);
    /* The answer, too; the call has had its effect, once. */
    CHECK_ERR(town_ask(0, "volatile", key, (town_op){ .verb = TOWN_BULK, .arg = MUCH }, &total),
              FK_E_LIMIT);
    CHECK_U64(town_add(0, "volatile", key, 1).n, 2);
    town_end();
}

/* ---- stores that fail -------------------------------------------------------------------------------------- */

TEST(a_node_that_joined_again_too_late_joins_once_more)
{
    town_begin();
    town_open_all(1, (fk_cluster_config){ .lease_ttl = FK_MILLIS(400) });
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    uint64_t before = town_stats(0).incarnation;
    atomic_store(&town_shop.slow_ms, 900); /* answers come when the lease is over */
    PEER_AWAIT(town_stats(0).incarnation > before + 1);
    atomic_store(&town_shop.slow_ms, 0);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 2);
    town_end();
}

TEST(of_two_systems_with_one_id_the_later_has_it)
{
    const fk_cluster_config brief = { .id = "a", .lease_ttl = FK_MILLIS(600) };
    town_begin();
    town_open_all(1, brief);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    town_open(1, brief);
    uint64_t incarnation = town_stats(1).incarnation;
    CHECK_U64(town_add(1, "durable", "s", 1).n, 2); /* when the lease of the first is over */
    PEER_AWAIT(town_stats(0).placement.slots_held == 0);
    CHECK_ERR(ask_for(0, "s", ADD_1, FK_MILLIS(700)), FK_E_NOT_READY);
    CHECK_U64(town_stats(1).incarnation, incarnation); /* they do not take turns */
    town_close(1);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 3);
    CHECK(town_stats(0).incarnation > incarnation);
    town_end();
}

/* The only worker of the node takes a nap, and so does the steward: only the grain itself can know that the
 * lease is over when its turn comes. */
TEST(no_turn_is_taken_after_the_lease_whoever_is_late)
{
    static const town_op NAP = { .verb = TOWN_NAP, .arg = 1500 };
    town_total total;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .lease_ttl = FK_MILLIS(600) });
    CHECK_U64(town_add(0, "volatile", "sleeper", 1).n, 1);
    CHECK_U64(town_add(0, "volatile", "waiting", 5).n, 5);
    CHECK_OK(fk_grain_send(town[0].cluster, FK_STR("volatile"), FK_STR("sleeper"),
                           FK_MSG_AT(town_op, &NAP)));
    test_sleep_ms(100); /* it sleeps */
    /* Another activation than before, without its state: that one has ended with the lease. */
    CHECK_OK(town_ask(0, "volatile", "waiting", ADD_1, &total));
    CHECK_U64(total.n, 1);
    town_end();
}

/* The letters of node 0 so far, and the length of the last one's path. */
static size_t letters(size_t *path_len)
{
    rig *r = &town[0].r;
    pthread_mutex_lock(&r->lock);
    size_t count = r->letters.count;
    *path_len = r->letters.last.path.len;
    pthread_mutex_unlock(&r->lock);
    return count;
}

TEST(a_send_that_comes_to_nothing_is_a_dead_letter)
{
    static const town_op FAIL = { .verb = TOWN_FAIL, .arg = 1 };
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "durable", "f", 1).n, 1);
    size_t path_len;
    size_t before = letters(&path_len);
    CHECK_OK(
        fk_grain_send(town[0].cluster, FK_STR("durable"), FK_STR("f"), FK_MSG_AT(town_op, &FAIL)));
    PEER_AWAIT(letters(&path_len) == before + 1);
    CHECK_U64(path_len, strlen("durable/f")); /* it says which grain */
    CHECK_U64(town_add(0, "durable", "f", 1).n, 2);
    town_end();
}

TEST(a_store_that_is_full_is_a_typed_error_at_once_and_the_lease_lasts)
{
    town_begin();
    town_open_all(1, USUAL);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    CHECK_U64(town_add(0, "volatile", "v", 5).n, 5);
    atomic_store(&town_shop.is_full, true);
    size_t starts = atomic_load(&town_starts);
    CHECK_ERR(ask_for(0, "s", ADD_1, FK_MINUTES(10)), FK_E_STORAGE); /* long before that */
    CHECK(atomic_load(&town_starts) <= starts + 1);
    PEER_AWAIT(atomic_load(&town_shop.renewals_refused) > 0);
    atomic_store(&town_shop.is_full, false);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 2);
    CHECK_U64(town_add(0, "volatile", "v", 1).n, 6); /* it has not been taken away */
    town_end();
}

TEST(a_call_whose_stores_are_lost_ends_with_its_time)
{
    town_begin();
    town_open_all(1, (fk_cluster_config){ .call_timeout = FK_MILLIS(500) });
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    atomic_store(&town_shop.is_lossy, true);
    CHECK_ERR(ask_for(0, "s", ADD_1, FK_MINUTES(10)), FK_E_STORAGE);
    PEER_AWAIT(town_stats(0).calls_open == 0);
    size_t starts = atomic_load(&town_starts);
    test_sleep_ms(200);
    CHECK_U64(atomic_load(&town_starts), starts); /* nobody tries any more */
    atomic_store(&town_shop.is_lossy, false);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 2);
    town_end();
}

TEST(a_store_that_is_gone_is_a_typed_error_and_comes_back)
{
    fk_grain_row row;
    town_begin();
    town_open_all(1, (fk_cluster_config){ .call_timeout = FK_SECONDS(1) });
    CHECK_U64(town_add(0, "durable", "s", 1).n, 1);
    atomic_store(&town_shop.is_gone, true);
    CHECK_ERR(ask_for(0, "new", ADD_1, FK_SECONDS(1)), FK_E_STORAGE);
    CHECK_ERR(ask_for(0, "s", ADD_1, FK_SECONDS(30)), FK_E_STORAGE); /* came back: call_timeout */
    CHECK_ERR(fk_grain_peek(town[0].cluster, FK_STR("durable"), FK_STR("s"), &row), FK_E_STORAGE);
    CHECK(town_happened(0, FK_PLACEMENT_STORE_FAILED, "durable/s") >= 1);
    CHECK(town_happened(0, FK_PLACEMENT_ACTIVATION_FAILED, "durable/new") >= 1);
    CHECK(town_stats(0).store_failures >= 1);
    CHECK_U64(town_add(0, "volatile", "s", 1).n, 1); /* needs no store */
    atomic_store(&town_shop.is_gone, false);
    CHECK_U64(town_add(0, "durable", "s", 1).n, 2); /* what was not stored was not done */
    CHECK_U64(town_add(0, "durable", "new", 1).n, 1);
    town_end();
}

/* ---- output commit ------------------------------------------------------------------------------------------- */

static _Atomic size_t heard;

static fk_err listener(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)ctx;
    (void)state;
    if (FK_AS(num, msg) != NULL) atomic_fetch_add(&heard, 1);
    return FK_OK;
}

static _Atomic int answered; /* fk_err + 1 */
static fk_ref ear;

static void *asker(void *arg)
{
    town_total total;
    town_op op = { .verb = TOWN_REPORT, .arg = 1, .to = ear };
    fk_err err = town_ask(*(int *)arg, "durable", "o", op, &total);
    atomic_store(&answered, (int)err + 1);
    return NULL;
}

TEST(nothing_is_heard_before_it_is_stored)
{
    pthread_t thread;
    int from = 0;
    town_begin();
    town_open_all(1, USUAL);
    atomic_store(&heard, 0);
    atomic_store(&answered, 0);
    CHECK_OK(fk_spawn(town[0].r.sys, FK_STR("ear"), &(fk_props){ .receive = listener }, &ear));
    CHECK_U64(town_add(0, "durable", "o", 0).n, 0); /* is active */
    atomic_store(&town_shop.is_held, true);
    CHECK(pthread_create(&thread, NULL, asker, &from) == 0);
    PEER_AWAIT(atomic_load(&town_shop.held) == 1); /* the turn was run */
    test_sleep_ms(100);
    CHECK_U64(atomic_load(&answered), 0);
    CHECK_U64(atomic_load(&heard), 0);
    atomic_store(&town_shop.is_held, false);
    PEER_AWAIT(atomic_load(&answered) == FK_OK + 1);
    PEER_AWAIT(atomic_load(&heard) == 1);
    pthread_join(thread, NULL);
    town_end();
}

/* ---- calls that are tried again --------------------------------------------------------------------------------- */

/* The store is done, and nobody is told so: the grain ends, the call comes again, and finds that it was
 * done. */
static void retry_once(int from, const char *key)
{
    int64_t before = town_add(from, "durable", key, 0).n;
    atomic_store(&town_shop.unsure, 1);
    CHECK_U64(town_add(from, "durable", key, 5).n, (uint64_t)before + 5);
    CHECK_U64(atomic_load(&town_shop.unsure), 0);
    CHECK_U64(town_add(from, "durable", key, 0).n, (uint64_t)before + 5);
}

TEST(a_call_that_is_tried_again_has_one_effect_and_its_answer)
{
    town_begin();
    town_open_all(1, USUAL);
    for (int i = 0; i < 5; i++) retry_once(0, "r");
    CHECK_U64(town_stats(0).deduplicated, 5);
    CHECK_U64(town_happened(0, FK_PLACEMENT_DEDUPLICATED, "durable/r"), 5);
    CHECK_U64(atomic_load(&town_starts), 6);
    town_end();
}

TEST(a_call_of_another_node_that_is_tried_again_has_one_effect)
{
    char key[32];
    town_begin();
    town_open_all(2, USUAL);
    town_key("durable", 1, 0, key);
    for (int i = 0; i < 5; i++) retry_once(0, key);
    CHECK_U64(town_stats(1).deduplicated, 5);
    town_end();
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void count_member(void *user, const fk_member *member, bool is_self)
{
    size_t *count = user;
    CHECK(!is_self);
    CHECK_U64(member->kind_count, 3);
    CHECK_U64(member->status, FK_MEMBER_UP);
    CHECK_U64(member->weight, 100);
    (*count)++;
}

TEST(a_client_calls_and_runs_nothing)
{
    char key[32];
    size_t members = 0;
    town_begin();
    town_open_all(2, USUAL);
    town_open(2, (fk_cluster_config){ .client = true });
    CHECK_U64(town_stats(2).placement.state, FK_PLACEMENT_STATE_CLIENT);
    PEER_AWAIT(town_where(2, "durable", "x").members == 2);
    static const fk_props NOBODY = { .receive = listener };
    CHECK_ERR(fk_kind_register(town[2].cluster, FK_STR("own"), &(fk_kind){ .props = &NOBODY }),
              FK_E_IDENTITY_SETUP);
    for (int i = 0; i < 2; i++) {
        town_key("durable", i, 0, key);
        CHECK_U64(town_add(2, "durable", key, 1).node, (uint64_t)i);
    }
    CHECK_U64(town_stats(2).activated, 0);
    CHECK_U64(town_stats(2).placement.slots_held, 0);
    CHECK_OK(fk_cluster_members(town[2].cluster, count_member, &members));
    CHECK_U64(members, 2);
    town_end();
}

TEST(what_has_no_codec_does_not_leave_the_node)
{
    char key[32];
    town_total total;
    town_begin();
    town_open_all(2, USUAL);
    town_key("durable", 1, 0, key);
    CHECK_ERR(fk_grain_ask_wait(town[0].cluster, FK_STR("durable"), fk_str_of(key),
                                FK_MSG(town_secret, 1), FK_INTO(town_total, &total),
                                FK_SECONDS(30)),
              FK_E_NO_CODEC);
    town_end();
}

/* ---- draining --------------------------------------------------------------------------------------------------- */

enum { FLOW_KEYS = 16 };
static _Atomic bool is_flowing;
static _Atomic size_t flowed;

static void *flow(void *arg)
{
    int from = *(int *)arg;
    char key[32];
    for (int i = 0; atomic_load(&is_flowing); i++) {
        snprintf(key, sizeof(key), "flow-%d", i % FLOW_KEYS);
        town_add(from, "durable", key, 1); /* which asserts that it is answered */
        atomic_fetch_add(&flowed, 1);
    }
    return NULL;
}

TEST(draining_moves_everything_and_fails_no_call)
{
    pthread_t thread[2];
    int from[2] = { 0, 1 };
    char key[32];
    uint64_t all = 0;
    town_begin();
    town_open_all(2, USUAL);
    atomic_store(&is_flowing, true);
    atomic_store(&flowed, 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&thread[i], NULL, flow, &from[i]) == 0);
    PEER_AWAIT(atomic_load(&flowed) > 100);
    CHECK_OK(fk_cluster_drain(town[1].cluster));
    PEER_AWAIT(town_stats(1).placement.slots_held == 0);
    size_t then = atomic_load(&flowed);
    PEER_AWAIT(atomic_load(&flowed) > then + 100); /* it goes on, as a client does */
    atomic_store(&is_flowing, false);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int k = 0; k < FLOW_KEYS; k++) {
        snprintf(key, sizeof(key), "flow-%d", k);
        town_total total = town_add(1, "durable", key, 0);
        CHECK_U64(total.node, 0);
        all += (uint64_t)total.n;
    }
    CHECK_U64(all, atomic_load(&flowed));
    CHECK_U64(town_stats(0).failed, 0);
    CHECK_U64(town_stats(1).failed, 0);
    CHECK(town_stats(1).slots_moved_out > 0);
    CHECK(town_happened(1, FK_PLACEMENT_SLOT_TRANSFERRED, NULL) > 0);
    town_end();
}

/* ---- looking ------------------------------------------------------------------------------------------------------ */

typedef struct seen {
    size_t count;
    int64_t keys;
} seen;

static void see(void *user, fk_str kind, fk_str key, fk_ref ref, uint64_t epoch)
{
    seen *s = user;
    CHECK(kind.len == 7 && memcmp(kind.ptr, "durable", 7) == 0);
    CHECK(key.len == 1);
    CHECK(!fk_ref_is_none(ref));
    CHECK(epoch > 0);
    s->count++;
    s->keys |= INT64_C(1) << (key.ptr[0] - 'a');
}

static void see_member(void *user, const fk_member *member, bool is_self)
{
    size_t *selves = user;
    CHECK(member->id.len == 1);
    CHECK(member->incarnation == 1);
    CHECK(member->address.len > 20 && memcmp(member->address.ptr, "fraktor.tcp://", 14) == 0);
    *selves += is_self ? 100 : 1;
}

static void note_key(void *user, fk_str key)
{
    char *keys = user;
    CHECK_U64(key.len, 1);
    strncat(keys, key.ptr, 1);
}

TEST(looking_touches_nothing)
{
    fk_grain_row row;
    char keys[32] = "";
    seen s = { 0, 0 };
    size_t members = 0;
    town_begin();
    town_open_all(2, USUAL);
    CHECK_ERR(fk_grain_peek(town[0].cluster, FK_STR("durable"), FK_STR("a"), &row), FK_E_NOT_FOUND);
    CHECK_U64(atomic_load(&town_starts), 0);
    for (char key[2] = "a"; key[0] <= 'j'; key[0]++) town_add(0, "durable", key, 3);
    for (int i = 0; i < 2; i++) CHECK_OK(fk_grain_each(town[i].cluster, see, &s));
    CHECK_U64(s.count, 10);
    CHECK_U64(s.keys, 0x3ff);
    const char *owner = town_where(0, "durable", "a").owner;
    for (int i = 0; i < 2; i++) { /* from anywhere */
        CHECK_OK(fk_grain_peek(town[i].cluster, FK_STR("durable"), FK_STR("a"), &row));
        CHECK(row.version >= 1);
        CHECK(row.epoch >= 1);
        CHECK_U64(row.snapshot_size, sizeof(int64_t));
        CHECK_STR(row.holder, owner);
    }
    fk_cluster *from = town[1].cluster; /* from anywhere, of all nodes */
    CHECK_OK(fk_grain_stored(from, FK_STR("durable"), FK_STR(""), 4, note_key, keys));
    CHECK_OK(fk_grain_stored(from, FK_STR("durable"), FK_STR("d"), 100, note_key, keys));
    CHECK_STR(keys, "abcdefghij");
    CHECK_OK(fk_grain_stored(from, FK_STR("brief"), FK_STR(""), 9, note_key, keys));
    CHECK_U64(strlen(keys), 10);
    CHECK_ERR(fk_grain_stored(from, FK_STR("a/b"), FK_STR(""), 9, note_key, keys),
              FK_E_UNKNOWN_KIND);
    CHECK_OK(fk_cluster_members(town[0].cluster, see_member, &members));
    CHECK_U64(members, 101);
    CHECK_U64(atomic_load(&town_starts), 10);
    PEER_AWAIT(town_stats(0).placement.activations + town_stats(1).placement.activations == 10);
    CHECK_U64(town_stats(0).activated + town_stats(1).activated, 10);
    town_end();
}

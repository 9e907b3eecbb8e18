/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of other systems is full, and another one comes: who is out of reach gives way. */

#include <stdio.h>
#include <string.h>

#include "fraktor/remote.h"
#include "support/switchboard.h"

static switchboard b;
static uint32_t crowded_out; /* FK_EVENT_AUTHORITY with that reason */
static char last[96];

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind != FK_EVENT_AUTHORITY || strcmp(event->reason, "crowded out") != 0) return;
    crowded_out++;
    snprintf(last, sizeof(last), "%.*s", (int)event->text.len, event->text.ptr);
}

static void start(uint32_t room)
{
    fk_subscription subscription;
    board_start(&b, room);
    crowded_out = 0;
    CHECK_OK(
        fk_subscribe(b.r.sys, FK_TOPIC(AUTHORITY), FK_LEVEL_INFO, on_event, NULL, &subscription));
}

static fk_line *line_of(uint32_t number)
{
    return board_authority(&b, number)->user;
}

/* It has exchanged numbered messages with us, and is gone without a word. */
static void count_and_crash(uint32_t number)
{
    board_meet(&b, number, 1);
    line_of(number)->is_counting = true;
    board_drop(&b, number);
    board_pass(&b, FK_MILLIS(200), FK_MILLIS(200));
}

/* It shakes hands; whether that was accepted. */
static bool try_meet(uint32_t number, uint32_t life)
{
    board_meet(&b, number, life);
    const fk_authority *a = board_authority(&b, number);
    return a != NULL && a->is_open;
}

TEST(crowd_who_crashed_does_not_keep_others_out)
{
    enum { ROOM = 16, MANY = 200 };
    start(ROOM);
    for (uint32_t i = 1; i <= ROOM; i++) count_and_crash(i);
    CHECK_U64(b.remote->table.count, ROOM);
    CHECK_U64(crowded_out, 0);
    for (uint32_t i = ROOM + 1; i <= MANY; i++) {
        CHECK(try_meet(i, 1));
        line_of(i)->is_counting = true;
        board_drop(&b, i);
        board_pass(&b, FK_MILLIS(200), FK_MILLIS(200));
        CHECK_U64(b.remote->table.count, ROOM);
        CHECK_U64(crowded_out, i - ROOM);
        CHECK(board_authority(&b, i - ROOM) == NULL); /* the oldest */
        CHECK(board_authority(&b, i - ROOM + 1) != NULL);
    }
    CHECK_U64(b.remote->table.tombs.count, MANY - ROOM);
    board_stop(&b);
}

/* What it was promised it will not get: it would count on where we begin anew. */
TEST(crowd_the_uid_of_who_counted_on_us_stays_out_and_the_next_may_come)
{
    enum { ROOM = 4 };
    start(ROOM);
    for (uint32_t i = 1; i <= ROOM; i++) count_and_crash(i);
    CHECK(try_meet(10, 1));
    CHECK(board_authority(&b, 1) == NULL);
    CHECK(!try_meet(1, 1)); /* it crowds out another one, but is refused */
    CHECK(board_authority(&b, 1)->state == FK_ASSOCIATION_QUARANTINE);
    CHECK(line_of(1)->quarantined_uid == board_authority(&b, 1)->uid); /* and is told so */
    board_drop(&b, 1);
    CHECK(try_meet(1, 2));
    board_drop(&b, 1);
    board_drop(&b, 10);
    /* By force it may come back. */
    for (uint32_t i = 11; i <= 10 + ROOM; i++) count_and_crash(i);
    CHECK(try_meet(20, 1));
    CHECK(!try_meet(11, 1));
    CHECK_OK(fk_authority_override_force(b.r.sys, FK_STR("fraktor.tcp://c@10.0.0.1:11")));
    board_drop(&b, 11);
    CHECK(try_meet(11, 1));
    board_drop(&b, 11);
    board_drop(&b, 20);
    board_stop(&b);
}

TEST(crowd_who_was_promised_nothing_may_come_back)
{
    enum { ROOM = 2 };
    start(ROOM);
    for (uint32_t i = 1; i <= ROOM; i++) {
        board_meet(&b, i, 1);
        (void)board_ref(&b, i, true);
        board_drop(&b, i);
        board_pass(&b, FK_MILLIS(200), FK_MILLIS(200));
    }
    CHECK(try_meet(10, 1));
    CHECK(board_authority(&b, 1) == NULL);
    CHECK_U64(b.remote->table.tombs.count, 0);
    board_drop(&b, 10);
    CHECK(try_meet(1, 1));
    board_drop(&b, 1);
    board_stop(&b);
}

TEST(crowd_a_quarantined_system_gives_way_and_its_uid_stays_out)
{
    enum { ROOM = 2 };
    start(ROOM);
    board_meet(&b, 1, 1);
    CHECK_OK(fk_authority_quarantine(b.r.sys, FK_STR("fraktor.tcp://c@10.0.0.1:1")));
    board_run(&b);
    board_drop(&b, 1);
    board_meet(&b, 2, 1);
    CHECK(try_meet(3, 1));
    CHECK(board_authority(&b, 1) == NULL);
    CHECK_U64(crowded_out, 1);
    board_drop(&b, 2);
    CHECK(!try_meet(1, 1));
    board_drop(&b, 1);
    board_drop(&b, 3);
    board_stop(&b);
}

TEST(crowd_who_is_connected_stays)
{
    enum { ROOM = 4 };
    start(ROOM);
    for (uint32_t i = 1; i <= ROOM; i++) board_meet(&b, i, 1);
    CHECK(!try_meet(10, 1)); /* there is nobody else */
    CHECK(board_authority(&b, 10) == NULL);
    board_drop(&b, 10);
    board_drop(&b, 2);
    board_pass(&b, FK_SECONDS(1), FK_SECONDS(1));
    CHECK(try_meet(10, 1));
    CHECK(board_authority(&b, 2) == NULL);
    for (uint32_t i = 1; i <= ROOM; i++) CHECK(i == 2 || board_authority(&b, i)->is_open);
    for (uint32_t i = 1; i <= ROOM; i++) board_drop(&b, i);
    board_drop(&b, 10);
    board_stop(&b);
}

TEST(crowd_letters_that_wait_are_dead_letters_and_the_reference_is_stale)
{
    start(1);
    fk_ref ref = board_ref(&b, 1, true);
    for (int i = 0; i < 5; i++) CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(fk_long, i)));
    board_run(&b);
    CHECK(try_meet(2, 1));
    CHECK_U64(crowded_out, 1);
    CHECK_STR(last, "fraktor.tcp://c@10.0.0.1:1");
    CHECK_U64(b.r.letters.of[FK_REASON_QUARANTINED], 5);
    CHECK_U64(b.remote->table.deferred_total, 0);
    CHECK_U64(b.remote->proxies.held, 0);
    CHECK(!fk_is_alive(b.r.sys, ref));
    CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(fk_long, 7)));
    board_run(&b);
    CHECK_U64(b.r.letters.count, 6);
    fk__proxies_check(&b.remote->proxies);
    board_drop(&b, 2);
    board_stop(&b);
}

/* ---- watches ---------------------------------------------------------------------------------------- */

typedef struct watchman {
    fk_ref whom;
    uint32_t told, lost;
} watchman;

static fk_err watchman_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    watchman *w = state;
    const fk_terminated *end = FK_AS(fk_terminated, msg);
    if (end == NULL) return fk_watch(ctx, w->whom);
    w->told++;
    w->lost += end->address_terminated;
    return FK_OK;
}

static void watchman_begin(watchman *w, fk_ref whom)
{
    fk_ref self;
    *w = (watchman){ .whom = whom };
    fk_props props = { .receive = watchman_receive, .state = w };
    CHECK_OK(fk_spawn(b.r.sys, FK_STR(""), &props, &self));
    CHECK_OK(fk_send(b.r.sys, self, FK_MSG(num, 1)));
}

TEST(crowd_watchers_are_told_once_and_those_that_nobody_watches_go_first)
{
    enum { ROOM = 3 };
    watchman w[2];
    start(ROOM);
    board_meet(&b, 1, 1);
    for (int i = 0; i < 2; i++) watchman_begin(&w[i], board_ref(&b, 1, false));
    board_pass(&b, FK_MILLIS(3), FK_MILLIS(1));
    CHECK_U64(line_of(1)->watching.bonds.list[FK_BOND_OURS].count, 1);
    board_drop(&b, 1);
    board_pass(&b, FK_SECONDS(1), FK_MILLIS(100));
    for (uint32_t i = 2; i <= ROOM; i++) count_and_crash(i);
    for (uint32_t i = 10; i < 12; i++) CHECK(try_meet(i, 1)); /* for these there are others */
    CHECK(board_authority(&b, 1) != NULL);
    CHECK_U64(w[0].told, 0);
    /* It must stay until its watchers have been told; and asks again after a second. */
    bool is_in = try_meet(12, 1);
    board_drop(&b, 12);
    is_in = is_in || try_meet(12, 1);
    CHECK(is_in);
    CHECK(board_authority(&b, 1) == NULL);
    CHECK_U64(crowded_out, 3);
    for (int i = 0; i < 2; i++) {
        CHECK_U64(w[i].told, 1);
        CHECK_U64(w[i].lost, 1);
    }
    board_pass(&b, FK_SECONDS(20), FK_SECONDS(1));
    CHECK_U64(w[0].told, 1);
    for (uint32_t i = 10; i <= 12; i++) board_drop(&b, i);
    board_stop(&b);
}

/* ---- asked for here ----------------------------------------------------------------------------------- */

static fk_err resolve(uint32_t number, fk_ref *ref)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "fraktor.tcp://c@10.0.0.1:%u/user/x", number);
    return fk_resolve(b.r.sys, (fk_str){ text, (size_t)len }, ref, NULL);
}

TEST(crowd_references_that_nobody_uses_do_not_keep_their_place)
{
    enum { ROOM = 128, MANY = 1000 };
    fk_ref ref, used;
    uint32_t refused = 0;
    start(ROOM);
    CHECK_OK(resolve(1, &used));
    CHECK_OK(fk_send(b.r.sys, used, FK_MSG(fk_long, 1)));
    for (uint32_t i = 2; i <= MANY; i++) {
        fk_err err = resolve(i, &ref);
        if (err == FK_E_LIMIT) { /* there is room as soon as the driver has run */
            refused++;
            board_run(&b);
            err = resolve(i, &ref);
        }
        CHECK_OK(err);
        board_pass(&b, FK_MILLIS(10), FK_MILLIS(10));
    }
    CHECK(refused > 0 && refused < MANY / 2);
    CHECK(b.remote->table.count <= ROOM);
    CHECK(board_authority(&b, 1) != NULL); /* somebody sends to it */
    CHECK_U64(board_authority(&b, 1)->deferred.count, 1);
    CHECK(try_meet(2000, 1));
    board_drop(&b, 2000);
    board_stop(&b);
}

TEST(crowd_what_a_person_has_mapped_stays_and_is_at_most_half_of_the_table)
{
    enum { ROOM = 8 };
    char text[64];
    start(ROOM);
    for (uint32_t i = 1; i <= ROOM / 2 + 1; i++) {
        int len = snprintf(text, sizeof(text), "fraktor.tcp://c@10.0.0.1:%u", i);
        fk_err err = fk_authority_set_mapping(b.r.sys, (fk_str){ text, (size_t)len },
                                              FK_STR("10.0.0.1"), (uint16_t)i);
        CHECK_ERR(err, i <= ROOM / 2 ? FK_OK : FK_E_LIMIT);
    }
    for (uint32_t i = 10; i < 30; i++) {
        count_and_crash(i);
        CHECK(b.remote->table.count <= ROOM);
    }
    for (uint32_t i = 1; i <= ROOM / 2; i++) CHECK(board_authority(&b, i)->is_kept);
    board_stop(&b);
}

/* The setting is what counts. */
TEST(crowd_the_size_of_the_table_is_a_setting)
{
    fk_system_config config = { .name = "us", .scheme = FK_SCHEME_TCP };
    fk_ref ref;
    memset(&b, 0, sizeof(b));
    config.remoting = (fk_remoting_config){
        .enabled = true, .host = "127.0.0.1", .systems_max = 3, .quarantined_max = 5
    };
    rig_start_with(&b.r, config);
    const fk_authority_table *table = &fk__remote_of(b.r.sys)->table;
    CHECK_U64(table->config.authorities_max, 3);
    CHECK_U64(table->tombs.max, 5);
    for (uint32_t i = 1; i <= 3; i++) CHECK_OK(resolve(i, &ref));
    CHECK_ERR(resolve(4, &ref), FK_E_LIMIT);
    rig_stop(&b.r);
}

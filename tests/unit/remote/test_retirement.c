/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Systems that nobody wants are not tried, and forgotten; all others stay. */

#include <stdio.h>
#include <string.h>

#include "core/send.h"
#include "support/switchboard.h"

static switchboard b;

static void come_and_go(uint32_t number, bool parts)
{
    board_meet(&b, number, 1);
    CHECK(board_authority(&b, number)->is_open);
    (void)board_ref(&b, number, false); /* as every sender is */
    if (parts) board_part(&b, number);
    board_drop(&b, number);
}

static uint32_t lines(void)
{
    uint32_t count = 0;
    for (const fk_line *line = fk__driver_lines(b.driver); line != NULL; line = line->all_next)
        count++;
    return count;
}

TEST(retirement_ten_thousand_come_and_go_and_nothing_grows)
{
    enum { COUNT = 10000, ROOM = 64 };
    uint64_t most[2] = { 0, 0 }; /* bytes, in the first and in the second half */
    board_start(&b, ROOM);
    for (uint32_t i = 1; i <= COUNT; i++) {
        come_and_go(i, false);
        CHECK_U64(b.caller[i].tried, 1); /* to answer it, and never again */
        CHECK(b.remote->table.count <= ROOM);
        uint64_t bytes = atomic_load(&b.r.bytes), *half = &most[i > COUNT / 2];
        if (bytes > *half) *half = bytes;
    }
    CHECK(lines() <= ROOM);
    CHECK(b.remote->proxies.met <= ROOM);
    CHECK(most[1] <= most[0] + 4096);
    fk__proxies_check(&b.remote->proxies);
    board_stop(&b);
}

TEST(retirement_who_has_said_goodbye_is_forgotten_after_a_minute_and_others_after_an_hour)
{
    board_start(&b, 0);
    for (uint32_t i = 1; i <= 200; i++) come_and_go(i, true);
    come_and_go(1000, false);
    CHECK_U64(b.remote->table.count, 201);
    board_pass(&b, FK_SECONDS(50), FK_SECONDS(10));
    CHECK_U64(b.remote->table.count, 201);
    board_pass(&b, FK_SECONDS(80), FK_SECONDS(10));
    CHECK_U64(b.remote->table.count, 1);
    CHECK(board_authority(&b, 1000) != NULL);
    CHECK_U64(b.caller[1000].tried, 1);
    board_pass(&b, FK_MINUTES(62), FK_MINUTES(1));
    CHECK_U64(b.remote->table.count, 0);
    CHECK_U64(b.remote->proxies.met, 0);
    /* The same system may come again. */
    board_meet(&b, 1000, 1);
    CHECK(board_authority(&b, 1000)->is_open);
    board_drop(&b, 1000);
    board_stop(&b);
}

TEST(retirement_what_is_held_or_waits_is_tried_and_stays)
{
    board_start(&b, 0);
    for (uint32_t i = 1; i <= 5; i++) board_meet(&b, i, 1);
    (void)board_ref(&b, 1, true);
    fk_ref ref = board_ref(&b, 2, false);
    fk_ref pinned = board_ref(&b, 3, false);
    fk_authority *owner = fk__proxies_find(&b.remote->proxies, pinned)->authority;
    CHECK_OK(fk__remote_pin(b.remote, pinned, owner));
    CHECK_OK(fk__authority_keep(&b.remote->table, board_authority(&b, 4)));
    board_drop(&b, 1);
    board_drop(&b, 2);
    board_drop(&b, 3);
    board_drop(&b, 4);
    board_drop(&b, 5);
    CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(fk_long, 1)));
    CHECK_U64(board_authority(&b, 2)->deferred.count, 1);
    board_pass(&b, FK_MINUTES(120), FK_SECONDS(30));
    for (uint32_t i = 1; i <= 4; i++) {
        CHECK(board_authority(&b, i) != NULL);
        CHECK(b.caller[i].tried > 10);
    }
    CHECK(board_authority(&b, 5) == NULL);
    CHECK_U64(b.caller[5].tried, 1);
    /* What waited goes as soon as it is there. */
    board_meet(&b, 2, 1);
    CHECK_U64(b.letters, 1);
    CHECK_U64(b.mistaken, 0);
    fk__remote_unpin(b.remote, board_ref(&b, 3, false));
    board_drop(&b, 2);
    board_stop(&b);
}

TEST(retirement_who_rests_is_tried_as_soon_as_somebody_sends)
{
    board_start(&b, 0);
    board_meet(&b, 1, 1);
    fk_ref ref = board_ref(&b, 1, false);
    board_drop(&b, 1);
    board_pass(&b, FK_SECONDS(60), FK_SECONDS(1));
    CHECK(board_authority(&b, 1)->is_resting);
    CHECK_U64(b.caller[1].tried, 1);
    CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(fk_long, 1)));
    board_run(&b);
    CHECK_U64(b.caller[1].tried, 2);
    board_stop(&b);
}

TEST(retirement_who_is_connected_to_us_stays)
{
    board_start(&b, 0);
    board_meet(&b, 1, 1);
    fk_conn_id in = b.caller[1].in;
    board_part(&b, 1);
    b.caller[1].in = 0; /* ours end, its own does not */
    board_drop(&b, 1);
    CHECK(board_authority(&b, 1)->state == FK_ASSOCIATION_UNRESOLVED);
    board_pass(&b, FK_MINUTES(120), FK_MINUTES(1));
    CHECK(board_authority(&b, 1) != NULL);
    b.caller[1].in = in;
    board_drop(&b, 1);
    board_pass(&b, FK_MINUTES(2), FK_SECONDS(10));
    CHECK(board_authority(&b, 1) == NULL);
    board_stop(&b);
}

/* It may live, and would go on counting where we begin anew. */
TEST(retirement_who_has_numbered_messages_with_us_stays_until_it_parts)
{
    board_start(&b, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        board_meet(&b, i, 1);
        ((fk_line *)board_authority(&b, i)->user)->is_counting = true;
    }
    board_part(&b, 2);
    board_drop(&b, 1);
    board_drop(&b, 2);
    board_pass(&b, FK_MINUTES(120), FK_SECONDS(30));
    CHECK(board_authority(&b, 1) != NULL);
    CHECK(b.caller[1].tried > 10);
    CHECK(board_authority(&b, 2) == NULL);
    board_stop(&b);
}

TEST(retirement_makes_room_at_once_oldest_first_and_says_limit_when_all_are_wanted)
{
    enum { ROOM = 16 };
    board_start(&b, ROOM);
    for (uint32_t i = 1; i <= ROOM; i++) {
        board_meet(&b, i, 1);
        (void)board_ref(&b, i, true);
        board_drop(&b, i);
        board_pass(&b, FK_MILLIS(200), FK_MILLIS(200));
    }
    CHECK_U64(b.remote->table.count, ROOM);
    b.caller[100].in = 0;
    fk_ref ref;
    CHECK_ERR(fk_resolve(b.r.sys, FK_STR("fraktor.tcp://c@10.0.0.1:100/user/x"), &ref, NULL),
              FK_E_LIMIT);
    board_stop(&b);
}

/* A letter for a reference that gave way with its system, of a sender that had the line in hand. */
static fk_err send_late(fk_ref to, fk_proxy *proxy)
{
    fk_local *local = fk__local_enter(b.r.sys);
    fk_node *node = fk__node_create(&local->cache, FK_MSG(fk_long, 7));
    node->sender = 0;
    node->generation = to.generation;
    fk_err err = b.r.sys->remote.send(b.remote, local, proxy, to, node);
    fk__local_leave(local);
    return err;
}

TEST(retirement_a_letter_on_a_line_that_is_anothers_by_now_is_a_dead_letter)
{
    board_start(&b, 0);
    come_and_go(1, true);
    fk_ref old = board_ref(&b, 1, false);
    fk_proxy *proxy = fk__slots_at(&b.r.sys->slots, old.slot)->state;
    const fk_line *line = board_authority(&b, 1)->user;
    board_pass(&b, FK_MINUTES(2), FK_SECONDS(10));
    CHECK(board_authority(&b, 1) == NULL);
    CHECK(!fk_is_alive(b.r.sys, old));
    CHECK(line->authority == NULL);
    /* Free, shut, open: the line is the same. */
    CHECK_ERR(send_late(old, proxy), FK_E_DEAD);
    CHECK_U64(b.r.letters.of[FK_REASON_STOPPED], 1);
    fk_ref ref = board_ref(&b, 2, false);
    CHECK(board_authority(&b, 2)->user == line);
    CHECK(ref.slot == old.slot); /* and so is the reference */
    CHECK_ERR(send_late(old, proxy), FK_E_DEAD);
    CHECK_U64(b.r.letters.of[FK_REASON_STOPPED], 2);
    CHECK_U64(board_authority(&b, 2)->deferred.count, 0);
    board_meet(&b, 2, 1);
    CHECK_OK(send_late(old, proxy));
    CHECK_OK(fk_send(b.r.sys, ref, FK_MSG(fk_long, 8)));
    board_run(&b);
    CHECK_U64(b.r.letters.of[FK_REASON_STOPPED], 3);
    CHECK_U64(b.letters, 1);
    CHECK_U64(b.mistaken, 0);
    board_drop(&b, 2);
    board_stop(&b);
}

/* The driver has written the letter, and forgotten its system, before the sender gets to write itself. */
static bool lend_late(void *ctx)
{
    switchboard *board = ctx;
    fk__line_wake(board->driver, board_authority(board, 1)->user); /* whatever for */
    board_run(board);
    CHECK_U64(board->letters, 1);
    board_part(board, 1);
    board_drop(board, 1);
    board_pass(board, FK_MINUTES(2), FK_SECONDS(10));
    CHECK(board_authority(board, 1) == NULL);
    return true;
}

static void take_back(void *ctx)
{
    (void)ctx;
}

TEST(retirement_who_would_write_its_letter_itself_may_find_the_line_free)
{
    board_start(&b, 0);
    board_meet(&b, 1, 1);
    fk_ref ref = board_ref(&b, 1, false);
    const fk_line *line = board_authority(&b, 1)->user;
    b.driver->transport.borrow = lend_late;
    b.driver->transport.give_back = take_back;
    fk_local *local = fk__local_enter(b.r.sys);
    local->is_waiting = true;
    CHECK_OK(fk__send(local, ref, FK_REF_NONE, FK_MSG(fk_long, 1), NULL));
    local->is_waiting = false;
    fk__local_leave(local);
    CHECK(line->authority == NULL);
    board_run(&b);
    CHECK_U64(b.letters, 1);
    CHECK_U64(b.mistaken, 0);
    CHECK_U64(b.r.letters.count, 0);
    board_stop(&b);
}

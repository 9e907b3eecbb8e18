/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pinned actors and ordinary ones talk to each other; threads are used again. */

#include <pthread.h>
#include <stdio.h>

#include "support/rig.h"

enum { PAIRS = 4 };

typedef struct player {
    fk_ref other;
    uint64_t got;
    uint64_t until;
    pthread_t thread;
    bool is_pinned;
} player;

static fk_err play(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    player *p = state;
    const num *ball = FK_AS(num, msg);
    CHECK(ball != NULL);
    if (p->got == 0) p->thread = pthread_self();
    if (p->is_pinned) CHECK(pthread_equal(p->thread, pthread_self()));
    p->got++;
    if (ball->n == 0) {
        fk_stop_self(ctx);
        return FK_OK;
    }
    return fk_tell(ctx, p->other, FK_MSG(num, ball->n - 1));
}

TEST(pinned_and_default_actors_play_to_the_end)
{
    static player player_of[PAIRS][2];
    fk_ref ref[PAIRS][2];
    uint64_t rounds = test_scaled(100000) | 1; /* odd: ends at the second */
    size_t before = test_thread_count();
    rig r;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (int i = 0; i < PAIRS; i++) {
        for (int j = 0; j < 2; j++) {
            player *p = &player_of[i][j];
            *p = (player){ .is_pinned = j == 0 || i == 0 };
            fk_props props = { .receive = play, .state = p };
            if (p->is_pinned) props.dispatcher = FK_DISPATCHER_PINNED;
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref[i][j]));
        }
        player_of[i][0].other = ref[i][1];
        player_of[i][1].other = ref[i][0];
    }
    CHECK_U64(test_thread_count(), before + 2 + PAIRS + 1);
    for (int i = 0; i < PAIRS; i++) CHECK_OK(fk_send(r.sys, ref[i][0], FK_MSG(num, rounds)));
    for (int i = 0; i < PAIRS; i++) {
        CHECK_OK(fk_await_stopped(r.sys, ref[i][1], FK_SECONDS(100)));
    }
    for (int i = 0; i < PAIRS; i++) {
        CHECK_U64(player_of[i][0].got + player_of[i][1].got, rounds + 1);
    }
    rig_stop(&r);
}

static fk_err leave(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    (void)msg;
    fk_stop_self(ctx);
    return FK_OK;
}

TEST(pinned_actors_come_and_go_without_more_threads)
{
    enum { ALIVE = 8 };
    uint64_t rounds = test_scaled(500);
    size_t before = test_thread_count();
    rig r;
    rig_start_with(&r, (fk_system_config){ .workers = 2 });
    for (uint64_t i = 0; i < rounds; i++) {
        fk_ref ref[ALIVE];
        for (int j = 0; j < ALIVE; j++) {
            fk_props props = { .receive = leave, .dispatcher = FK_DISPATCHER_PINNED };
            if (j % 3 == 0) props.mailbox = FK_MAILBOX_BOUNDED;
            if (j % 3 == 0) props.capacity = 2;
            CHECK_OK(fk_spawn(r.sys, FK_STR(""), &props, &ref[j]));
            CHECK_OK(fk_send(r.sys, ref[j], FK_MSG(num, 1)));
            CHECK_OK(fk_send(r.sys, ref[j], FK_MSG(num, 2))); /* too late, mostly */
        }
        for (int j = 0; j < ALIVE; j++) {
            CHECK_OK(fk_await_stopped(r.sys, ref[j], FK_SECONDS(60)));
        }
        CHECK(test_thread_count() <= before + 2 + ALIVE);
    }
    rig_stop(&r);
}

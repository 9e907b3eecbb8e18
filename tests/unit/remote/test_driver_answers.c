/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers to senders of other systems: those that are there, that are not, and that may not be. */

#include <stdio.h>

#include "fraktor/remote.h"
#include "fraktor/select.h"
#include "support/branch.h"

static branch b;

typedef struct echo {
    uint32_t count;
    fk_err tell, reply;
    bool tells; /* before it replies */
} echo;

static echo e;

static fk_err echo_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    (void)state;
    e.count++;
    if (e.tells) e.tell = fk_tell(ctx, msg->sender, FK_TEXT("told"));
    e.reply = fk_reply(ctx, FK_TEXT("answer"));
    return e.reply;
}

static fk_ref begin(fk_remoting_config config)
{
    fk_ref ref;
    e = (echo){ .count = 0 };
    branch_start(&b, config);
    CHECK_OK(fk_spawn(b.r.sys, FK_STR("echo"), &(fk_props){ .receive = echo_receive }, &ref));
    branch_meet(&b);
    branch_join(&b, FK_STREAM_ORDINARY);
    return ref;
}

/* The peer passes on what is somebody else's. */
static void ask_as(const char *sender, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK(cable_text(&b.c, b.in[FK_STREAM_ORDINARY], &b.peer,
                         "fraktor://a@10.0.0.1:1/user/echo", sender, FK_STR("question")));
    }
    cable_run(&b.c);
}

TEST(driver_answers_to_nobody_do_not_end_who_answers)
{
    fk_ref ref = begin((fk_remoting_config){ .deferred_max = 4 });
    ask_as("fraktor://ghost@10.0.0.9:9/user/x", 40);
    CHECK_U64(e.count, 40);
    CHECK_OK(e.reply);
    CHECK_U64(b.r.failures.count, 0);
    CHECK(fk_is_alive(b.r.sys, ref));
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 36);
    /* Whoever wants to know asks for it. */
    e.tells = true;
    ask_as("fraktor://ghost@10.0.0.9:9/user/x", 1);
    CHECK_ERR(e.tell, FK_E_FULL);
    branch_stop(&b);
}

/* R3.5: each later envelope is refused, one event and one dead letter. */
TEST(driver_answers_to_the_quarantined_are_refused_and_told)
{
    begin((fk_remoting_config){ 0 });
    CHECK_OK(fk_authority_quarantine(b.r.sys, FK_STR("fraktor.tcp://q@10.0.0.7:7")));
    cable_run(&b.c);
    e.tells = true;
    ask_as("fraktor://q@10.0.0.7:7/user/x", 3);
    CHECK_U64(e.count, 3);
    CHECK_ERR(e.tell, FK_E_QUARANTINED);
    CHECK_OK(e.reply);
    CHECK_U64(b.r.letters.of[FK_REASON_QUARANTINED], 6);
    CHECK_U64(b.r.letters.count, 6);
    CHECK_U64(b.invalid, 6);
    CHECK_STR(b.invalid_of, "fraktor.tcp://q@10.0.0.7:7");
    branch_stop(&b);
}

/* Of one authority, by number. */
static fk_ref named(uint32_t number)
{
    char path[64];
    fk_ref ref;
    snprintf(path, sizeof(path), "fraktor.tcp://z%u@10.0.0.9:9/user/x", (unsigned)number);
    CHECK_OK(fk_resolve(b.r.sys, fk_str_of(path), &ref, NULL));
    return ref;
}

TEST(driver_answers_to_invented_systems_leave_room_for_real_ones)
{
    begin((fk_remoting_config){ .deferred_total_max = 400 });
    for (uint32_t i = 0; i < 10; i++) {
        char sender[64];
        snprintf(sender, sizeof(sender), "fraktor://z%u@10.0.0.9:9/user/x", (unsigned)i);
        ask_as(sender, 70);
    }
    CHECK_U64(e.count, 700);
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 600);
    /* Whom a program here names has all the rest. */
    fk_ref real = named(10);
    for (int i = 0; i < 300; i++) CHECK_OK(fk_send(b.r.sys, real, FK_TEXT("x")));
    CHECK_ERR(fk_send(b.r.sys, real, FK_TEXT("x")), FK_E_FULL);
    branch_stop(&b);
}

TEST(driver_answers_to_a_system_that_was_named_wait_like_all_else)
{
    const char *sender = "fraktor://z0@10.0.0.9:9/user/x";
    begin((fk_remoting_config){ 0 });
    ask_as(sender, 70);
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 6);
    named(0);
    ask_as(sender, 70);
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 6);
    ask_as("fraktor://z1@10.0.0.9:9/user/x", 64);
    ask_as("fraktor://z2@10.0.0.9:9/user/x", 64);
    CHECK_OK(fk_select_send(b.r.sys, FK_STR("fraktor.tcp://z1@10.0.0.9:9/user/*"), FK_TEXT("x")));
    CHECK_OK(fk_authority_set_mapping(b.r.sys, FK_STR("fraktor.tcp://z2@10.0.0.9:9"),
                                      FK_STR("10.0.0.9"), 9));
    ask_as("fraktor://z1@10.0.0.9:9/user/x", 10);
    ask_as("fraktor://z2@10.0.0.9:9/user/x", 10);
    CHECK_U64(b.r.letters.of[FK_REASON_FULL], 6);
    branch_stop(&b);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Turns of a grain, through fraktor/cluster.h: those that nobody called for (a timer's, a word from any
 * actor) are bound to the lease and stored like calls; calls that come again have one effect; a stored
 * state that cannot be read starts nothing. */

#include <string.h>

#include "support/town.h"

static const fk_cluster_config USUAL = { .lease_ttl = 0 };

/* ---- a clock: a grain that also takes turns nobody called for ------------------------------------------- */

typedef enum clock_verb {
    CLOCK_READ = 0,
    CLOCK_WIND, /* ticks once, after .ms */
    CLOCK_DOZE, /* sleeps for .ms in its turn, with a tick due and a word of its own in its mailbox */
    CLOCK_FAIL
} clock_verb;

typedef struct clock_op {
    clock_verb verb;
    unsigned ms;
} clock_op;
FK_MESSAGE(clock_op);

typedef struct clock_state {
    int64_t ticks, winds;
} clock_state;

static _Atomic size_t clock_ticks; /* of all of them: turns without a call */

static fk_err clock_do(fk_ctx *ctx, clock_state *self, const clock_op *op)
{
    switch (op->verb) {
    case CLOCK_READ: return FK_OK;
    case CLOCK_WIND:
        self->winds++;
        return fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS((fk_time)op->ms), FK_MSG(num, 1));
    case CLOCK_DOZE:
        CHECK_OK(fk_timer_start(ctx, 1, FK_TIMER_ONCE, FK_MILLIS(1), FK_MSG(num, 1)));
        CHECK_OK(fk_tell(ctx, fk_self(ctx), FK_MSG(num, 1)));
        test_sleep_ms(op->ms);
        return FK_OK;
    case CLOCK_FAIL: return fk_fail(ctx, FK_E_INVALID, "told to");
    }
    return FK_E_INVALID;
}

static fk_err clock_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    clock_state *self = state;
    const clock_op *op = FK_AS(clock_op, msg);
    if (FK_AS(num, msg) != NULL) {
        fk_grain_info info;
        CHECK_OK(fk_grain_self(ctx, &info));
        CHECK_U64(info.request[0], 0);
        self->ticks++;
        atomic_fetch_add(&clock_ticks, 1);
        return FK_OK;
    }
    if (op == NULL) return fk_unhandled(ctx, msg);
    fk_err err = clock_do(ctx, self, op);
    if (err != FK_OK || fk_ref_is_none(msg->sender)) return err;
    return fk_reply(ctx, FK_MSG(num, (uint64_t)self->ticks));
}

static const fk_props CLOCK = { .receive = clock_receive, .state_size = sizeof(clock_state) };

static void clock_kinds(int i)
{
    fk_cluster *c = town[i].cluster;
    const fk_kind durable = { .props = &CLOCK, .durable = true }, quartz = { .props = &CLOCK };
    CHECK_OK(fk_kind_register(c, FK_STR("clock"), &durable));
    CHECK_OK(fk_kind_register(c, FK_STR("quartz"), &quartz)); /* is not durable */
    atomic_store(&clock_ticks, 0);
}

static fk_err clock_ask(const char *kind, clock_op op, uint64_t *ticks)
{
    num out = { 0 };
    fk_err err = fk_grain_ask_wait(town[0].cluster, fk_str_of(kind), FK_STR("hall"),
                                   FK_MSG_AT(clock_op, &op), FK_INTO(num, &out), FK_SECONDS(30));
    *ticks = out.n;
    return err;
}

static uint64_t clock_read(const char *kind)
{
    uint64_t ticks;
    CHECK_OK(clock_ask(kind, (clock_op){ .verb = CLOCK_READ }, &ticks));
    return ticks;
}

/* The only worker sleeps in the grain's own turn: what waits in its mailbox comes before the steward, who
 * would end it. */
TEST(no_turn_without_a_call_is_taken_after_the_lease)
{
    const clock_op doze = { CLOCK_DOZE, 1500 };
    town_begin();
    town_open_all(1, (fk_cluster_config){ .lease_ttl = FK_MILLIS(600) });
    clock_kinds(0);
    CHECK_U64(clock_read("quartz"), 0);
    CHECK_OK(fk_grain_send(town[0].cluster, FK_STR("quartz"), FK_STR("hall"),
                           FK_MSG_AT(clock_op, &doze)));
    CHECK_U64(clock_read("quartz"), 0); /* by another activation */
    CHECK_U64(atomic_load(&clock_ticks), 0);
    town_end();
}

TEST(a_timer_that_is_due_while_a_store_is_under_way_is_not_lost)
{
    const clock_op wind = { CLOCK_WIND, 20 };
    town_begin();
    town_open_all(1, USUAL);
    clock_kinds(0);
    CHECK_U64(clock_read("clock"), 0);
    fk_ref ref = town_where(0, "clock", "hall").ref;
    atomic_store(&town_shop.is_held, true);
    CHECK_OK(fk_grain_send(town[0].cluster, FK_STR("clock"), FK_STR("hall"),
                           FK_MSG_AT(clock_op, &wind)));
    PEER_AWAIT(atomic_load(&town_shop.held) == 1);
    CHECK_OK(fk_send(town[0].r.sys, ref, FK_MSG(num, 1)));
    test_sleep_ms(100); /* both are there */
    CHECK_U64(atomic_load(&clock_ticks), 0);
    atomic_store(&town_shop.is_held, false);
    PEER_AWAIT(atomic_load(&clock_ticks) == 2);
    CHECK_U64(clock_read("clock"), 2);
    town_end();
}

TEST(what_a_timers_turn_changes_is_stored)
{
    uint64_t ticks;
    town_begin();
    town_open_all(1, USUAL);
    clock_kinds(0);
    CHECK_OK(clock_ask("clock", (clock_op){ CLOCK_WIND, 1 }, &ticks));
    PEER_AWAIT(atomic_load(&clock_ticks) ==
               1); /* looked at by nobody: a call would store it, too */
    CHECK_ERR(clock_ask("clock", (clock_op){ .verb = CLOCK_FAIL }, &ticks), FK_E_FAILED);
    CHECK_U64(clock_read("clock"), 1); /* as the row has it */
    town_end();
}

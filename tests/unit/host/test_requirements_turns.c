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

static fk_err clock_ask(int from, const char *kind, clock_op op, uint64_t *ticks)
{
    num out = { 0 };
    fk_err err = fk_grain_ask_wait(town[from].cluster, fk_str_of(kind), FK_STR("hall"),
                                   FK_MSG_AT(clock_op, &op), FK_INTO(num, &out), FK_SECONDS(30));
    *ticks = out.n;
    return err;
}

static uint64_t clock_read(const char *kind)
{
    uint64_t ticks;
    CHECK_OK(clock_ask(0, kind, (clock_op){ .verb = CLOCK_READ }, &ticks));
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
    CHECK_OK(clock_ask(0, "clock", (clock_op){ CLOCK_WIND, 1 }, &ticks));
    PEER_AWAIT(atomic_load(&clock_ticks) == 1); /* by nobody's call, which would store it, too */
    CHECK_ERR(clock_ask(0, "clock", (clock_op){ .verb = CLOCK_FAIL }, &ticks), FK_E_FAILED);
    CHECK_U64(clock_read("clock"), 1); /* as the row has it */
    town_end();
}

/* ---- idle -------------------------------------------------------------------------------------------------- */

static const fk_time SOON = FK_MILLIS(400);

/* For three times its time to live; false when the test itself was too slow to call it often. */
static bool is_called_often(void)
{
    int64_t end = test_clock() + 3 * SOON, last = test_clock();
    while (last < end) {
        (void)clock_read("often");
        test_sleep_ms(5);
        int64_t now = test_clock();
        if (now - last > SOON / 2) return false;
        last = now;
    }
    return true;
}

TEST(what_is_called_all_the_time_is_not_idle)
{
    const fk_kind often = { .props = &CLOCK, .idle_ttl = SOON };
    size_t before, tries = 0;
    town_begin();
    town_open_all(1, USUAL);
    CHECK_OK(fk_kind_register(town[0].cluster, FK_STR("often"), &often));
    do {
        CHECK(tries++ < 20);
        (void)clock_read("often");
        before = town_happened(0, FK_PLACEMENT_PASSIVATED, NULL);
    } while (!is_called_often());
    CHECK_U64(town_happened(0, FK_PLACEMENT_PASSIVATED, NULL), before);
    /* Now it is. */
    PEER_AWAIT(town_happened(0, FK_PLACEMENT_PASSIVATED, "often/hall") == before + 1);
    town_end();
}

/* ---- calls that come again ----------------------------------------------------------------------------------- */

typedef struct errand {
    int from;
    const char *kind, *key;
    town_op op;
    town_total total;
    fk_err err;
} errand;

static void *errand_run(void *arg)
{
    errand *e = arg;
    e->err = town_ask(e->from, e->kind, e->key, e->op, &e->total);
    return NULL;
}

/* The caller and the grain are on one node: such a call has a number of its own, and gets another when it
 * leaves. The store is done, nobody is told so, and the slot has moved when it is tried again. */
TEST(a_call_that_leaves_its_node_has_one_effect)
{
    char key[32];
    pthread_t thread;
    town_begin();
    town_open_all(2, USUAL);
    errand e = { .from = 1,
                 .kind = "durable",
                 .key = town_key("durable", 1, 0, key),
                 .op = { .verb = TOWN_ADD, .arg = 5 } };
    CHECK_U64(town_add(1, "durable", key, 1).n, 1);
    atomic_store(&town_shop.is_held, true);
    CHECK(pthread_create(&thread, NULL, errand_run, &e) == 0);
    PEER_AWAIT(atomic_load(&town_shop.held) == 1);
    CHECK_OK(fk_cluster_drain(town[1].cluster));
    PEER_AWAIT(strcmp(town_where(1, "durable", key).owner, "a") == 0);
    atomic_store(&town_shop.unsure, 1);
    atomic_store(&town_shop.is_held, false);
    pthread_join(thread, NULL);
    CHECK_OK(e.err);
    CHECK_U64(e.total.n, 6);
    CHECK_U64(atomic_load(&town_shop.unsure), 0);
    town_total total = town_add(0, "durable", key, 0);
    CHECK_U64(total.n, 6);
    CHECK_U64(total.node, 0);
    CHECK_U64(town_happened(0, FK_PLACEMENT_DEDUPLICATED, NULL), 1);
    town_end();
}

/* It sleeps longer than its caller's node waits before it sends the call again. */
TEST(volatile_grains_know_a_call_again)
{
    char key[32];
    town_begin();
    town_open_all(2, (fk_cluster_config){ .lease_ttl = FK_SECONDS(6) });
    errand e = { .from = 0,
                 .kind = "volatile",
                 .key = town_key("volatile", 1, 0, key),
                 .op = { .verb = TOWN_NAP, .arg = 2300 } };
    CHECK_U64(town_add(0, "volatile", key, 1).node, 1);
    (void)errand_run(&e);
    CHECK_OK(e.err);
    CHECK_U64(e.total.n, 2);
    CHECK_U64(town_add(0, "volatile", key, 0).n, 2);
    CHECK_U64(town_stats(0).retried, 1);
    PEER_AWAIT(town_stats(1).deduplicated == 1);
    town_end();
}

/* ---- a state that cannot be read -------------------------------------------------------------------------------- */

static _Atomic int decode_says; /* fk_err */

static size_t picky_encode(const void *state, unsigned char *to, size_t size)
{
    if (size >= sizeof(clock_state)) memcpy(to, state, sizeof(clock_state));
    return sizeof(clock_state);
}

static fk_err picky_decode(void *state, fk_str bytes)
{
    memcpy(state, bytes.ptr, sizeof(clock_state));
    return (fk_err)atomic_load(&decode_says);
}

TEST(what_decode_says_ends_the_call_and_leaves_the_row)
{
    static const struct {
        fk_err says, told;
    } CASES[] = { { FK_E_CORRUPT, FK_E_CORRUPT },
                  { FK_E_NOMEM, FK_E_NOMEM },
                  { FK_E_INVALID, FK_E_ACTIVATION } };
    const fk_kind picky = {
        .props = &CLOCK, .durable = true, .encode = picky_encode, .decode = picky_decode
    };
    uint64_t ticks;
    town_begin();
    town_open_all(1, USUAL);
    clock_kinds(0);
    CHECK_OK(fk_kind_register(town[0].cluster, FK_STR("picky"), &picky));
    atomic_store(&decode_says, FK_OK);
    CHECK_OK(clock_ask(0, "picky", (clock_op){ CLOCK_WIND, 0 }, &ticks));
    PEER_AWAIT(clock_read("picky") == 1);
    CHECK_ERR(clock_ask(0, "picky", (clock_op){ .verb = CLOCK_FAIL }, &ticks), FK_E_FAILED);
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        atomic_store(&decode_says, CASES[i].says);
        CHECK_ERR(clock_ask(0, "picky", (clock_op){ .verb = CLOCK_READ }, &ticks), CASES[i].told);
    }
    atomic_store(&decode_says, FK_OK);
    CHECK_U64(clock_read("picky"), 1);
    town_end();
}

/* As after an update of one node's program and not the other's. */
static fk_err read_with(size_t stored, size_t state)
{
    const fk_props small = { .receive = clock_receive, .state_size = stored },
                   other = { .receive = clock_receive, .state_size = state };
    uint64_t ticks;
    atomic_store(&clock_ticks, 0);
    town_begin();
    town_open_all(2, USUAL);
    CHECK_OK(fk_kind_register(town[1].cluster, FK_STR("sized"),
                              &(fk_kind){ .props = &small, .durable = true }));
    /* It alone knows the kind. */
    CHECK_OK(clock_ask(1, "sized", (clock_op){ CLOCK_WIND, 0 }, &ticks));
    PEER_AWAIT(atomic_load(&clock_ticks) == 1);
    CHECK_OK(clock_ask(1, "sized", (clock_op){ .verb = CLOCK_READ }, &ticks)); /* and is stored */
    CHECK_U64(ticks, 1);
    CHECK_OK(fk_kind_register(town[0].cluster, FK_STR("sized"),
                              &(fk_kind){ .props = &other, .durable = true }));
    CHECK_OK(fk_cluster_leave(town[1].cluster, FK_SECONDS(10)));
    PEER_AWAIT(town_stats(0).placement.slots_held == 4 * town_config(0).slots); /* of all kinds */
    fk_err err = clock_ask(0, "sized", (clock_op){ .verb = CLOCK_READ }, &ticks);
    CHECK_U64(ticks, err == FK_OK ? 1 : 0);
    town_end();
    return err;
}

TEST(a_state_of_another_size_is_not_read)
{
    enum { SIZE = sizeof(clock_state) };
    CHECK_OK(read_with(SIZE, SIZE));
    CHECK_ERR(read_with(2 * SIZE, SIZE), FK_E_ACTIVATION);
    CHECK_ERR(read_with(SIZE, 2 * SIZE), FK_E_ACTIVATION);
}

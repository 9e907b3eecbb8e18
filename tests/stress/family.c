/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Families in trouble: trees whose members fail, are stopped and killed, watch and unwatch each other,
 * under every strategy, with and without restart hooks, on two to eight workers, with every decision
 * taken at random. Whatever happens: hooks come in their order, every family ends,
 * and nothing is left. graves.c counts the words about ends.
 */

#include <stdio.h>
#include <string.h>

#include "support/rig.h"

enum { PEERS = 128, DEPTH_MAX = 5 };

typedef struct family {
    rig r;
    _Atomic int64_t fuel;
    _Atomic uint64_t peers[PEERS]; /* slot | generation << 32 */
    _Atomic uint32_t system;
    _Atomic uint64_t starts, stops, befores, afters, told, restarts;
} family;

static family F;

/* The state: made anew at every restart. */
typedef struct member {
    uint32_t depth;
    uint32_t turns;
    uint32_t is_begun; /* its start or after_restart hook has run on this state; 2: it was left */
} member;

typedef struct event_msg {
    uint64_t seed;
} event_msg;
FK_MESSAGE(event_msg);

static fk_ref random_peer(test_random *random)
{
    uint64_t both = atomic_load(&F.peers[test_random_below(random, PEERS)]);
    return (fk_ref){ (uint32_t)both, (uint32_t)(both >> 32), atomic_load(&F.system) };
}

static void publish(test_random *random, fk_ref ref)
{
    atomic_store(&F.peers[test_random_below(random, PEERS)],
                 ref.slot | (uint64_t)ref.generation << 32);
}

static uint64_t chance(fk_ctx *ctx, uint64_t salt)
{
    test_random random = { (uint64_t)fk_now(ctx) ^ salt ^ (uint64_t)fk_self(ctx).slot << 40 };
    return test_random_next(&random);
}

static fk_directive decide(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    const member *self = state;
    CHECK(failure->err == FK_E_INVALID || failure->err == FK_E_KILLED ||
          failure->err == FK_E_TIMEOUT);
    CHECK(failure->actor.slot != fk_self(ctx).slot);
    uint64_t r = chance(ctx, 1) % 16;
    if (r < 5) return FK_DIRECTIVE_RESUME;
    if (r < 11) return FK_DIRECTIVE_RESTART;
    if (r < 13 && self->depth > 1) return FK_DIRECTIVE_ESCALATE;
    return FK_DIRECTIVE_STOP;
}

/* Runs in /user, which has no state; escalation would be the end of everything. */
static fk_directive decide_at_the_top(fk_ctx *ctx, void *state, const fk_failure *failure)
{
    member nobody = { .depth = 0 };
    (void)state;
    return decide(ctx, &nobody, failure);
}

static fk_err member_start(fk_ctx *ctx, void *state)
{
    member *self = state;
    CHECK_U64(self->is_begun, 0);
    CHECK_U64(self->turns, 0);
    if (chance(ctx, 2) % 32 == 0) return FK_E_TIMEOUT;
    self->is_begun = 1;
    atomic_fetch_add_explicit(&F.starts, 1, memory_order_relaxed);
    return FK_OK;
}

static void member_stop(fk_ctx *ctx, void *state)
{
    member *self = state;
    (void)ctx;
    CHECK_U64(self->is_begun, 1); /* exactly once for every beginning */
    self->is_begun = 2;
    atomic_fetch_add_explicit(&F.stops, 1, memory_order_relaxed);
}

static void member_before(fk_ctx *ctx, void *state, fk_err why)
{
    member *self = state;
    fk_ref child[8];
    (void)why;
    CHECK_U64(self->is_begun, 1);
    self->is_begun = 2;
    size_t count = fk_children(ctx, child, 8);
    for (size_t i = 0; i < count; i++) {
        if (chance(ctx, 3 + i) % 2 == 0) fk_stop(fk_system_of(ctx), child[i]);
    }
    atomic_fetch_add_explicit(&F.befores, 1, memory_order_relaxed);
}

static fk_err member_after(fk_ctx *ctx, void *state, fk_err why)
{
    (void)why;
    atomic_fetch_add_explicit(&F.afters, 1, memory_order_relaxed);
    return member_start(ctx, state);
}

static fk_err member_receive(fk_ctx *ctx, void *state, const fk_msg *msg);

static fk_props member_props(test_random *random)
{
    uint64_t r = test_random_next(random);
    fk_props props = { .receive = member_receive,
                       .start = member_start,
                       .stop = member_stop,
                       .state_size = sizeof(member),
                       .strategy = { .kind = (fk_strategy_kind)(r % 3), .decide = decide } };
    props.strategy.restarts = r / 3 % 2 == 0 ? FK_RESTARTS_UNLIMITED : 5;
    if (r / 6 % 2 == 0) props.before_restart = member_before;
    if (r / 12 % 2 == 0) props.after_restart = member_after;
    if (r / 24 % 4 == 0) {
        props.mailbox = FK_MAILBOX_BOUNDED;
        props.overflow = FK_OVERFLOW_DROP_NEWEST;
        props.capacity = 4;
    }
    return props;
}

static void have_child(fk_ctx *ctx, uint32_t depth, test_random *random)
{
    fk_ref ref;
    member first = { .depth = depth };
    fk_props props = member_props(random);
    props.init = &first;
    if (depth > DEPTH_MAX) return;
    fk_err err = ctx != NULL ? fk_spawn_child(ctx, FK_STR(""), &props, &ref)
                             : fk_spawn(F.r.sys, FK_STR(""), &props, &ref);
    if (err == FK_E_STOPPING) return;
    CHECK_OK(err);
    publish(random, ref);
    fk_send(F.r.sys, ref, FK_MSG(event_msg, test_random_next(random)));
}

static void watch_somebody(fk_ctx *ctx, test_random *random)
{
    fk_ref peer = random_peer(random);
    if (test_random_below(random, 3) == 0)
        fk_unwatch(ctx, peer);
    else
        CHECK_OK(fk_watch(ctx, peer));
}

static fk_err live(fk_ctx *ctx, member *self, test_random *random)
{
    switch (test_random_below(random, 12)) {
    case 0:
    case 1: have_child(ctx, self->depth + 1, random); break;
    case 2: return FK_E_INVALID;
    case 3: fk_stop(F.r.sys, random_peer(random)); break;
    case 4: fk_kill(F.r.sys, random_peer(random)); break;
    case 5: publish(random, fk_self(ctx)); break;
    case 6:
    case 7: watch_somebody(ctx, random); break;
    case 8: fk_stop_self(ctx); break;
    default: break;
    }
    return FK_OK;
}

static fk_err member_receive(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    member *self = state;
    const event_msg *event = FK_AS(event_msg, msg);
    CHECK_U64(self->is_begun, 1); /* never between two states */
    self->turns++;
    if (event == NULL) {
        CHECK(FK_AS(fk_terminated, msg) != NULL);
        atomic_fetch_add_explicit(&F.told, 1, memory_order_relaxed);
        return FK_OK;
    }
    if (atomic_fetch_sub_explicit(&F.fuel, 1, memory_order_relaxed) <= 0) return FK_OK;
    test_random random = { event->seed ^ self->turns };
    for (int i = 0; i < 3; i++) {
        fk_send(F.r.sys, random_peer(&random), FK_MSG(event_msg, test_random_next(&random)));
    }
    return live(ctx, self, &random);
}

static void on_event(void *user, const fk_event *event)
{
    (void)user;
    if (event->kind == FK_EVENT_RESTARTED) atomic_fetch_add(&F.restarts, 1);
}

static void live_through(uint32_t workers, uint64_t seed, uint64_t fuel)
{
    test_random random = { seed };
    fk_strategy strategy = { .decide = decide_at_the_top };
    memset(&F, 0, sizeof(F));
    rig_start_with(
        &F.r,
        (fk_system_config){ .workers = workers, .on_event = on_event, .user_strategy = &strategy });
    atomic_store(&F.fuel, (int64_t)fuel);
    atomic_store(&F.system, fk_guardian(F.r.sys, FK_GUARDIAN_USER).system);
    int64_t deadline = test_clock() + FK_SECONDS(100);
    while (atomic_load(&F.fuel) > 0) {
        for (int i = 0; i < 10; i++) have_child(NULL, 1, &random);
        for (int i = 0; i < 100; i++) {
            fk_send(F.r.sys, random_peer(&random), FK_MSG(event_msg, test_random_next(&random)));
        }
        CHECK(test_clock() < deadline);
    }
    CHECK(!fk_is_terminating(F.r.sys));
    rig_stop(&F.r); /* ends, and not a byte is left */
    printf("%u workers: %llu begun, %llu restarts, %llu kept children, %llu told\n", workers,
           (unsigned long long)atomic_load(&F.starts), (unsigned long long)atomic_load(&F.restarts),
           (unsigned long long)atomic_load(&F.befores), (unsigned long long)atomic_load(&F.told));
    /* What began was left, by the stop hook or by the one before a restart. */
    CHECK_U64(atomic_load(&F.starts), atomic_load(&F.stops) + atomic_load(&F.befores));
}

TEST(family_survives_itself_on_two_to_eight_workers)
{
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (uint32_t workers = 2; workers <= 8; workers *= 2) {
        live_through(workers, seed + workers, test_scaled(300000));
    }
}

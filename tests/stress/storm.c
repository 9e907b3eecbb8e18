/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A random storm: actors that spawn, tell, forward, stash, start and cancel timers, stop each other
 * and themselves, on two to eight workers. Every message owns something, and the test counts:
 * whatever became of a message, what was made was dropped, exactly once.
 */

#include <stdio.h>
#include <string.h>

#include "support/rig.h"

enum { PEERS = 256 };

typedef struct storm {
    rig r;
    _Atomic uint64_t made, dropped; /* messages */
    _Atomic uint64_t handled, letters;
    _Atomic int64_t fuel;          /* operations left */
    _Atomic uint64_t peers[PEERS]; /* slot | generation << 32 of some actors, stale or not */
    _Atomic uint32_t system;
} storm;

static storm S;

typedef struct gust {
    uint64_t seed;
    uint64_t check; /* ~seed */
} gust;

static void gust_drop(void *message)
{
    gust *g = message;
    CHECK_U64(g->check, ~g->seed);
    atomic_fetch_add_explicit(&S.dropped, 1, memory_order_relaxed);
}

static const fk_type fk_type_gust = { "gust", sizeof(gust), _Alignof(gust), gust_drop };

typedef struct gust_large {
    gust gust;
    char filling[150];
} gust_large;

static const fk_type fk_type_gust_large = { "gust_large", sizeof(gust_large), _Alignof(gust_large),
                                            gust_drop };

static fk_ref random_peer(test_random *random)
{
    uint64_t both = atomic_load(&S.peers[test_random_below(random, PEERS)]);
    return (fk_ref){ (uint32_t)both, (uint32_t)(both >> 32), atomic_load(&S.system) };
}

static void publish(test_random *random, fk_ref ref)
{
    atomic_store(&S.peers[test_random_below(random, PEERS)],
                 ref.slot | (uint64_t)ref.generation << 32);
}

/* Sends one message of a random kind, from ctx or from outside. */
static void blow(fk_ctx *ctx, test_random *random, fk_ref to)
{
    gust_large large;
    memset(&large, 7, sizeof(large));
    uint64_t seed = test_random_next(random);
    large.gust = (gust){ seed, ~seed };
    fk_out out = { &fk_type_gust, &large.gust };
    if (seed % 4 == 0) out = (fk_out){ &fk_type_gust_large, &large };
    atomic_fetch_add_explicit(&S.made, 1, memory_order_relaxed);
    if (ctx == NULL)
        CHECK_OK(fk_send(S.r.sys, to, out));
    else if (seed % 3 == 0)
        CHECK_OK(fk_send_from(S.r.sys, to, fk_self(ctx), out));
    else
        CHECK_OK(fk_tell(ctx, to, out));
}

static fk_err gale(fk_ctx *ctx, void *state, const fk_msg *msg);

static int64_t gale_priority(const fk_msg *msg)
{
    const gust *g = msg->data;
    return (int64_t)(g->seed >> 60) - 8;
}

static fk_props gale_props(test_random *random)
{
    fk_props props = { .receive = gale, .state_size = sizeof(uint64_t) };
    switch (test_random_below(random, 6)) {
    case 0:
        props.mailbox = FK_MAILBOX_BOUNDED;
        props.overflow = FK_OVERFLOW_DROP_OLDEST;
        props.capacity = 1 + (uint32_t)test_random_below(random, 3) * 20;
        break;
    case 1:
        props.mailbox = FK_MAILBOX_STABLE;
        props.priority = gale_priority;
        break;
    case 2: props.throughput = 2; break;
    default: break;
    }
    return props;
}

static void start_gale(fk_ctx *ctx, test_random *random)
{
    fk_ref ref;
    fk_props props = gale_props(random);
    fk_err err = test_random_below(random, 4) == 0 || ctx == NULL
                     ? fk_spawn(S.r.sys, FK_STR(""), &props, &ref)
                     : fk_spawn_child(ctx, FK_STR(""), &props, &ref);
    /* Whoever took the last of the fuel may still be at work when the system begins to stop; with
     * fuel left it must not be stopping. */
    if (err == FK_E_STOPPING) {
        CHECK(atomic_load(&S.fuel) <= 0);
        return;
    }
    if (err == FK_E_LIMIT) { /* children of children, deeper than a path may be */
        CHECK(ctx != NULL);
        return;
    }
    CHECK_OK(err);
    publish(random, ref);
    blow(ctx, random, ref);
    blow(ctx, random, ref);
}

static void set_timer(fk_ctx *ctx, test_random *random)
{
    uint64_t seed = test_random_next(random);
    gust g = { seed, ~seed };
    uint64_t key = seed % 3;
    fk_timer_mode mode = (fk_timer_mode)(seed / 3 % 3);
    if (seed / 9 % 4 == 0) {
        fk_timer_cancel(ctx, key);
        return;
    }
    atomic_fetch_add_explicit(&S.made, 1, memory_order_relaxed);
    CHECK_OK(fk_timer_start(ctx, key, mode, (fk_time)(seed % 3000000) + 1,
                            (fk_out){ &fk_type_gust, &g }));
}

/* One message makes a few things happen, as long as there is fuel. */
static fk_err gale(fk_ctx *ctx, void *state, const fk_msg *msg)
{
    uint64_t *turns = state;
    const gust *g = msg->data;
    test_random random = { g->seed ^ ++*turns };
    CHECK_U64(g->check, ~g->seed);
    atomic_fetch_add_explicit(&S.handled, 1, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&S.fuel, 1, memory_order_relaxed) <= 0) return FK_OK;
    for (uint64_t i = 1 + test_random_below(&random, 2); i > 0; i--) {
        switch (test_random_below(&random, 16)) {
        case 0: start_gale(ctx, &random); break;
        case 1: fk_stop(S.r.sys, random_peer(&random)); break;
        case 2: fk_poison(S.r.sys, random_peer(&random)); break;
        case 3: fk_stop_self(ctx); break;
        case 4: set_timer(ctx, &random); break;
        case 5: CHECK_OK(fk_unstash_all(ctx)); break;
        case 6: publish(&random, fk_self(ctx)); break;
        case 7: return fk_fail(ctx, FK_E_FAILED, "a failure now and then");
        default: blow(ctx, &random, random_peer(&random)); break;
        }
    }
    /* Last, because the message is gone afterwards. */
    if (test_random_below(&random, 8) == 0)
        fk_forward(ctx, random_peer(&random));
    else if (test_random_below(&random, 8) == 0 && fk_stash(ctx) == FK_E_NOMEM)
        return FK_E_NOMEM;
    return FK_OK;
}

static void on_letter(void *user, const fk_dead_letter *letter)
{
    (void)user;
    const gust *g = letter->data;
    CHECK_U64(g->check, ~g->seed);
    atomic_fetch_add_explicit(&S.letters, 1, memory_order_relaxed);
}

static void blow_over(uint32_t workers, uint64_t seed, uint64_t fuel)
{
    test_random random = { seed };
    fk_stats stats;
    memset(&S, 0, sizeof(S));
    const fk_path_options deep = { .path_max = 65535, .depth_max = 65535 };
    rig_start_with(
        &S.r, (fk_system_config){ .workers = workers, .on_dead_letter = on_letter, .paths = deep });
    atomic_store(&S.fuel, (int64_t)fuel);
    fk_ref first = doer_spawn(&S.r);
    atomic_store(&S.system, first.system);
    int64_t deadline = test_clock() + FK_SECONDS(100);
    /* The storm may die down by itself: keep it going from outside until the fuel is gone. */
    while (atomic_load(&S.fuel) > 0) {
        for (int i = 0; i < 20; i++) start_gale(NULL, &random);
        for (int i = 0; i < 200; i++) blow(NULL, &random, random_peer(&random));
        CHECK(test_clock() < deadline);
    }
    fk_stats_get(S.r.sys, &stats);
    CHECK_OK(fk_system_stop(S.r.sys));
    rig_check_empty(&S.r);
    printf("%u workers: %llu messages, %llu handled, %llu dead letters, %llu actors, %llu steals\n",
           workers, (unsigned long long)atomic_load(&S.made),
           (unsigned long long)atomic_load(&S.handled), (unsigned long long)atomic_load(&S.letters),
           (unsigned long long)stats.spawned, (unsigned long long)stats.steals);
    CHECK_U64(atomic_load(&S.dropped), atomic_load(&S.made));
}

TEST(storm_keeps_count_on_two_to_eight_workers)
{
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (uint32_t workers = 2; workers <= 8; workers += workers < 4 ? 1 : 2) {
        blow_over(workers, seed + workers, test_scaled(400000));
    }
}

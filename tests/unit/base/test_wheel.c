/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The wheel against a sorted model: never early, at most one tick late, nothing lost, whatever the
 * clock says when it begins and however far it jumps.
 */

#include "base/wheel.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/test.h"

enum { TIMERS = 50000 };

#define TICK ((fk_time)1 << FK_TICK_SHIFT)

typedef struct timer {
    fk_wheel_entry entry;
    fk_time from; /* its deadline, or when it was added if that was later */
    size_t at;    /* where it is in the model */
} timer;

/* The model: a binary heap by `from`. */
typedef struct model {
    timer *timers;
    size_t *heap, count;
} model;

static void model_set(model *m, size_t at, size_t index)
{
    m->heap[at] = index;
    m->timers[index].at = at;
}

static void model_sift(model *m, size_t at)
{
    size_t index = m->heap[at];
    fk_time from = m->timers[index].from;
    while (at > 0 && m->timers[m->heap[(at - 1) / 2]].from > from) {
        model_set(m, at, m->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= m->count) break;
        if (child + 1 < m->count &&
            m->timers[m->heap[child + 1]].from < m->timers[m->heap[child]].from) {
            child++;
        }
        if (m->timers[m->heap[child]].from >= from) break;
        model_set(m, at, m->heap[child]);
        at = child;
    }
    model_set(m, at, index);
}

static void model_add(model *m, size_t index)
{
    model_set(m, m->count, index);
    m->count++;
    model_sift(m, m->count - 1);
}

static void model_remove(model *m, size_t index)
{
    size_t at = m->timers[index].at;
    CHECK(m->heap[at] == index);
    m->count--;
    if (at == m->count) return;
    model_set(m, at, m->heap[m->count]);
    model_sift(m, at);
}

static fk_time random_delay(test_random *random)
{
    switch (test_random_below(random, 10)) {
    case 0: return -(fk_time)test_random_below(random, 1 << 24); /* already past */
    case 1: return 0;
    case 2:
    case 3: return (fk_time)test_random_below(random, 4 * (uint64_t)TICK);
    case 4:
    case 5: return (fk_time)test_random_below(random, FK_SECONDS(1));
    case 6: return (fk_time)test_random_below(random, FK_MINUTES(60));
    case 7: return (fk_time)test_random_below(random, FK_MINUTES(60 * 24 * 365));
    case 8: return (fk_time)test_random_below(random, FK_MINUTES(60) * 24 * 365 * 20);
    default: return FK_NEVER;
    }
}

static fk_time random_step(test_random *random)
{
    switch (test_random_below(random, 12)) {
    case 0: return 0;
    case 1:
    case 2:
    case 3:
    case 4: return (fk_time)test_random_below(random, (uint64_t)TICK);
    case 5:
    case 6:
    case 7: return (fk_time)test_random_below(random, 100 * (uint64_t)TICK);
    case 8:
    case 9: return (fk_time)test_random_below(random, FK_SECONDS(10));
    case 10: return (fk_time)test_random_below(random, FK_MINUTES(60 * 24));
    default:
        return test_random_below(random, 20) != 0
                   ? 1
                   : (fk_time)test_random_below(random, FK_MINUTES(60) * 24 * 365);
    }
}

static void check_next(const fk_wheel *wheel, const model *m)
{
    if (m->count == 0) {
        CHECK(fk__wheel_next(wheel) == FK_NEVER);
        return;
    }
    fk_time first = m->timers[m->heap[0]].from;
    if (first > FK_NEVER / 2) return;
    CHECK(fk__wheel_next(wheel) <= ((first >> FK_TICK_SHIFT) + 1) << FK_TICK_SHIFT);
}

/* One history: starts, cancels and jumps until `total` timers were started. */
static uint64_t run_history(fk_time origin, uint64_t seed, uint64_t total)
{
    static fk_wheel wheel;
    test_random random = { seed };
    model m = { calloc(TIMERS, sizeof(timer)), calloc(TIMERS, sizeof(size_t)), 0 };
    fk_time now = origin;
    uint64_t started = 0, steps = 0, taken = 0;
    fk__wheel_init(&wheel, now);
    while (started < total || (m.count > TIMERS / 2 && now < FK_NEVER / 4)) {
        uint64_t batch = started < total ? test_random_below(&random, 400) : 0;
        for (uint64_t i = 0; i < batch; i++) {
            size_t index = (size_t)test_random_below(&random, TIMERS);
            timer *t = &m.timers[index];
            if (fk__wheel_has(&t->entry)) {
                fk__wheel_remove(&wheel, &t->entry);
                model_remove(&m, index);
                if (test_random_below(&random, 2) == 0) continue;
            }
            fk_time deadline = fk__time_add(now, random_delay(&random));
            t->from = deadline > now ? deadline : now;
            fk__wheel_add(&wheel, &t->entry, deadline);
            model_add(&m, index);
            started++;
        }
        if (steps % 64 == 0) fk__wheel_check(&wheel);
        check_next(&wheel, &m);
        now = fk__time_add(now, random_step(&random));
        fk_wheel_entry *entry;
        while ((entry = fk__wheel_take(&wheel, now)) != NULL) {
            timer *t = FK_CONTAINER(entry, timer, entry);
            CHECK(entry->deadline <= now); /* never early */
            model_remove(&m, (size_t)(t - m.timers));
            taken++;
        }
        /* At most one tick late: whoever is left is not due, or not for longer than that. */
        if (m.count > 0) CHECK(m.timers[m.heap[0]].from > now - TICK);
        CHECK_U64(wheel.count, m.count);
        steps++;
    }
    fk__wheel_check(&wheel);
    free(m.timers);
    free(m.heap);
    return taken;
}

TEST(wheel_agrees_with_a_sorted_list_over_a_million_timers)
{
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    printf("seed %llu\n", (unsigned long long)seed);
    uint64_t total = test_is_sanitized() ? 200000 : 1000000;
    CHECK(run_history(FK_SECONDS(12345), seed, total) > total / 10);
}

TEST(wheel_agrees_when_the_clock_begins_anywhere)
{
    static const fk_time ORIGINS[] = { 0,
                                       1,
                                       TICK - 1,
                                       (TICK << 6) - TICK,
                                       (TICK << 12) - 1,
                                       (TICK << 30) - FK_SECONDS(1),
                                       (TICK << 36) - FK_SECONDS(1), /* up for 2.3 years */
                                       (TICK << 36) - 1,
                                       (TICK << 36) * 3 - FK_MINUTES(60),
                                       FK_NEVER / 8 };
    uint64_t seed = test_env("FK_SEED", (uint64_t)test_clock());
    printf("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof(ORIGINS) / sizeof(ORIGINS[0]); i++) {
        CHECK(run_history(ORIGINS[i], seed + i, 20000) > 0);
    }
}

TEST(wheel_timer_just_across_a_turn_of_all_levels_is_on_time)
{
    static fk_wheel wheel;
    fk_wheel_entry entry = { .deadline = 0 };
    fk_time now = (TICK << 36) - TICK;
    fk__wheel_init(&wheel, now);
    fk__wheel_add(&wheel, &entry, now + 10 * TICK);
    CHECK(fk__wheel_take(&wheel, now + 9 * TICK) == NULL);
    CHECK(fk__wheel_take(&wheel, now + 10 * TICK) == &entry);
}

TEST(wheel_takes_in_order_of_time_and_equal_ones_as_they_came)
{
    static fk_wheel wheel;
    fk_wheel_entry entry[6] = { { .deadline = 0 } };
    static const int TICKS[6] = { 5, 3, 5, 70, 3, 5000 };
    static const int ORDER[6] = { 1, 4, 0, 2, 3, 5 };
    fk__wheel_init(&wheel, 0);
    for (int i = 0; i < 6; i++) fk__wheel_add(&wheel, &entry[i], TICKS[i] * TICK);
    for (int i = 0; i < 6; i++) {
        CHECK(fk__wheel_take(&wheel, 6000 * TICK) == &entry[ORDER[i]]);
    }
    CHECK(fk__wheel_take(&wheel, 6000 * TICK) == NULL);
    CHECK(fk__wheel_next(&wheel) == FK_NEVER);
}

TEST(wheel_is_exact_to_the_tick)
{
    static fk_wheel wheel;
    for (fk_time ticks = 1; ticks < 300; ticks++) {
        for (fk_time part = 0; part < 3; part++) {
            fk_wheel_entry entry = { .deadline = 0 };
            fk_time deadline = ticks * TICK - (part == 0 ? 0 : part == 1 ? 1 : TICK - 1);
            fk__wheel_init(&wheel, 0);
            fk__wheel_add(&wheel, &entry, deadline);
            CHECK(fk__wheel_take(&wheel, ticks * TICK - 1) == NULL);
            CHECK(fk__wheel_take(&wheel, ticks * TICK) == &entry);
        }
    }
}

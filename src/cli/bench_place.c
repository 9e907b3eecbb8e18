/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Workload place: which of 3, 1,000 and 10,000 members should run a grain, and what it costs when one
 * more joins. All of it happens on the main thread, without actors.
 *
 *   ns_N         from kind and key to the owner among N members, hashing included
 *   ns_hashed_N  the same with a key that was hashed before
 *   join_ms      a table of 65,536 slots and 1,000 members gets one more
 *
 * Medians of several passes over the same keys of 16 bytes, by this thread's own clock. The run's
 * own time is that of N placements among 1,000 members, hashing included.
 */

#include "bench.h"

#include <fraktor/placement.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    PLACE_SLOTS = 65536,
    PLACE_KEYS = 16384,
    PLACE_KEY_SIZE = 16,
    PLACE_MEMBERS_MAX = 10000,
    PLACE_CHECKED = 100, /* owners that are looked for by hand */
    PLACE_PASSES = 9,
    PLACE_PASS_KEYS = 16, /* times PLACE_KEYS */
    PLACE_JOIN_MEMBERS = 1000
};

typedef struct place {
    fk_candidate member[PLACE_MEMBERS_MAX];
    uint32_t owner[PLACE_SLOTS], joined[PLACE_SLOTS];
    uint64_t score[PLACE_SLOTS], joined_score[PLACE_SLOTS];
    char text[PLACE_KEYS][PLACE_KEY_SIZE + 1];
    fk_grain_key key[PLACE_KEYS];
} place;

static double place_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int place_by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double place_median(double value[PLACE_PASSES])
{
    qsort(value, PLACE_PASSES, sizeof value[0], place_by_value);
    return value[PLACE_PASSES / 2];
}

/* ---- members and keys ----------------------------------------------------------------------- */

static fk_err place_fill(place *p)
{
    char id[64];
    for (uint32_t i = 0; i < PLACE_MEMBERS_MAX; i++) {
        int len = snprintf(id, sizeof id, "bench@10.0.%u.%u:9000", i / 250, i % 250);
        p->member[i] = (fk_candidate){ fk_member_seed((fk_str){ id, (size_t)len }), 1 };
    }
    for (uint32_t i = 0; i < PLACE_KEYS; i++) {
        snprintf(p->text[i], sizeof p->text[i], "customer-%07u", i);
        fk_str text = { p->text[i], PLACE_KEY_SIZE };
        fk_err err = fk_grain_key_of(FK_STR("account"), text, &p->key[i]);
        if (err != FK_OK) return err;
    }
    return FK_OK;
}

static void place_build(place *p, uint32_t members)
{
    fk_strategy_rendezvous.build(p->member, members, PLACE_SLOTS, p->owner, p->score);
}

/* Some owners as the definition has them. */
static bool place_is_right(const place *p, uint32_t members)
{
    for (uint32_t k = 0; k < PLACE_CHECKED; k++) {
        uint64_t best = 0;
        uint32_t slot = fk_slot_of(p->key[k].id, PLACE_SLOTS), who = FK_NOBODY;
        for (uint32_t i = 0; i < members; i++) {
            uint64_t score = fk_rendezvous_score(p->member[i].seed, slot, p->member[i].weight);
            if (score > best) {
                best = score;
                who = i;
            }
        }
        if (p->owner[slot] != who) return false;
    }
    return true;
}

/* ---- what is measured: each gives the sum of the owners' indices ---------------------------- */

static uint64_t place_hashed(const place *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < PLACE_KEYS; i++)
        sum += p->owner[fk_slot_of(p->key[i].id, PLACE_SLOTS)];
    return sum;
}

static uint64_t place_whole(const place *p)
{
    uint64_t sum = 0;
    fk_grain_key key;
    for (uint32_t i = 0; i < PLACE_KEYS; i++) {
        fk_str text = { p->text[i], PLACE_KEY_SIZE };
        if (fk_grain_key_of(FK_STR("account"), text, &key) != FK_OK) return 0;
        sum += p->owner[fk_slot_of(key.id, PLACE_SLOTS)];
    }
    return sum;
}

/* Nanoseconds of one key; negative: a sum was not the expected one. */
static double place_measure(const place *p, uint64_t (*work)(const place *p), uint64_t expected)
{
    double ns[PLACE_PASSES];
    for (int pass = -1; pass < PLACE_PASSES; pass++) { /* the first one is to warm up */
        uint64_t wrong = 0;
        double begun = place_seconds();
        for (int i = 0; i < PLACE_PASS_KEYS; i++) wrong += work(p) != expected;
        double seconds = place_seconds() - begun;
        if (wrong != 0) return -1;
        if (pass >= 0) ns[pass] = seconds * 1e9 / (PLACE_PASS_KEYS * PLACE_KEYS);
    }
    return place_median(ns);
}

static fk_err place_step(bench_run *run, place *p, uint32_t members, const char *const name[2])
{
    place_build(p, members);
    if (!place_is_right(p, members)) return bench_fail(run, "an owner among %u is wrong", members);
    uint64_t expected = place_hashed(p);
    double whole = place_measure(p, place_whole, expected);
    double hashed = place_measure(p, place_hashed, expected);
    if (whole < 0 || hashed < 0) return bench_fail(run, "owners among %u are wrong", members);
    bench_note_add(run, name[0], whole);
    bench_note_add(run, name[1], hashed);
    return FK_OK;
}

/* One more joins, in the middle; the table must be the one that is built with it. */
static fk_err place_join(bench_run *run, place *p)
{
    double ms[PLACE_PASSES];
    uint32_t middle = PLACE_JOIN_MEMBERS / 2, all = PLACE_JOIN_MEMBERS + 1;
    place_build(p, all);
    for (int pass = 0; pass < PLACE_PASSES; pass++) {
        for (uint32_t i = 0; i < PLACE_SLOTS; i++) {
            p->joined[i] = p->owner[i];
            p->joined_score[i] = p->score[i];
        }
        fk_strategy_rendezvous.remove(p->member, all, middle, PLACE_SLOTS, p->joined,
                                      p->joined_score);
        double begun = place_seconds();
        fk_strategy_rendezvous.add(p->member, all, middle, PLACE_SLOTS, p->joined, p->joined_score);
        ms[pass] = (place_seconds() - begun) * 1e3;
        for (uint32_t i = 0; i < PLACE_SLOTS; i++) {
            if (p->joined[i] != p->owner[i]) return bench_fail(run, "slot %u went astray", i);
        }
    }
    bench_note_add(run, "join_ms", place_median(ms));
    return FK_OK;
}

/* ---- the run -------------------------------------------------------------------------------- */

static fk_err place_all(bench_run *run, place *p)
{
    uint64_t rounds = run->result.ops / PLACE_KEYS, wrong = 0;
    if (rounds == 0) rounds = 1;
    run->result.ops = rounds * PLACE_KEYS;
    place_build(p, PLACE_JOIN_MEMBERS);
    uint64_t expected = place_hashed(p);
    bench_begin(run);
    for (uint64_t i = 0; i < rounds; i++) wrong += place_whole(p) != expected;
    bench_done(run);
    if (wrong != 0) return bench_fail(run, "%llu sums are wrong", (unsigned long long)wrong);
    return bench_wait(run);
}

static fk_err run_place(bench_run *run)
{
    static const char *const NAMES[3][2] = { { "ns_3", "ns_hashed_3" },
                                             { "ns_1000", "ns_hashed_1000" },
                                             { "ns_10000", "ns_hashed_10000" } };
    static const uint32_t MEMBERS[3] = { 3, 1000, PLACE_MEMBERS_MAX };
    place *p = calloc(1, sizeof *p);
    if (p == NULL) return FK_E_NOMEM;
    fk_err err = place_fill(p);
    for (int i = 0; i < 3 && err == FK_OK; i++) err = place_step(run, p, MEMBERS[i], NAMES[i]);
    if (err == FK_OK) err = place_join(run, p);
    if (err == FK_OK) err = place_all(run, p);
    free(p);
    return err;
}

const bench_workload BENCH_PLACE = {
    .name = "place",
    .unit = "placements",
    .ops = 10000000,
    .about = "from a grain's key to the member that should run it; ns of each, ms of a join",
    .run = run_place,
};

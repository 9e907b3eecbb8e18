/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counters: the short cut says the same as a search through all orders. */

#include "sim/linear.h"

#include "base/hash.h"
#include "support/test.h"

#include <string.h>

enum { CALLS_MAX = 6 };

static bool may_be_next(const fk_linear_call *calls, uint32_t count, uint32_t done, uint32_t next)
{
    for (uint32_t i = 0; i < count; i++) {
        bool is_before = i != next && (done >> i & 1) == 0 && calls[i].ended < calls[next].begun;
        if (is_before) return false;
    }
    return true;
}

/* Whether the calls that are not in `done` can follow a counter of that value. Those of unknown end
 * may be left out. */
static bool search(const fk_linear_call *calls, uint32_t count, uint32_t done, uint64_t value,
                   uint64_t total)
{
    bool is_over = true;
    for (uint32_t i = 0; i < count; i++) {
        if ((done >> i & 1) == 0 && calls[i].ended != FK_NEVER) is_over = false;
    }
    if (is_over && value == total) return true;
    for (uint32_t i = 0; i < count; i++) {
        if ((done >> i & 1) != 0 || !may_be_next(calls, count, done, i)) continue;
        uint64_t after = value + !calls[i].is_read;
        if (calls[i].ended != FK_NEVER && calls[i].value != after) continue;
        if (search(calls, count, done | 1u << i, after, total)) return true;
    }
    return false;
}

TEST(linear_says_what_a_search_says)
{
    fk_rng rng = { 0x1234567 };
    uint32_t good = 0, bad = 0;
    for (uint32_t round = 0; round < 300000; round++) {
        fk_linear_call calls[CALLS_MAX], sorted[CALLS_MAX];
        uint32_t count = (uint32_t)(fk__rng_next(&rng) >> 40) % (CALLS_MAX + 1), at;
        uint64_t total = count == 0 ? 0 : (fk__rng_next(&rng) >> 40) % (count + 1);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t draw = fk__rng_next(&rng) >> 20;
            fk_time begun = (fk_time)(draw % 12);
            bool is_unknown = (draw >> 8) % 5 == 0;
            calls[i] = (fk_linear_call){
                .begun = begun,
                .ended = is_unknown ? FK_NEVER : begun + 1 + (fk_time)((draw >> 12) % 8),
                .value = is_unknown ? 0 : (draw >> 16) % (total + 1),
                .is_read = (draw >> 24) % 3 == 0,
            };
        }
        memcpy(sorted, calls, sizeof(calls));
        bool expected = search(calls, count, 0, 0, total);
        bool is_good = fk__linear_check(sorted, count, total, &at) == NULL;
        CHECK_U64(is_good, expected);
        *(is_good ? &good : &bad) += 1;
    }
    CHECK(good > 1000); /* both have been tried */
    CHECK(bad > 1000);
}

TEST(linear_finds_a_lost_addition)
{
    fk_linear_call calls[] = {
        { .begun = 1, .ended = 2, .value = 1 },
        { .begun = 3, .ended = 4, .value = 1 },
    };
    uint32_t at;
    CHECK(fk__linear_check(calls, 2, 1, &at) != NULL);
}

TEST(linear_finds_a_read_of_the_past)
{
    fk_linear_call calls[] = {
        { .begun = 1, .ended = 2, .value = 1 },
        { .begun = 3, .ended = 4, .value = 0, .is_read = true },
    };
    uint32_t at;
    CHECK(fk__linear_check(calls, 2, 1, &at) != NULL);
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Turns of a grain: what may be run, and when what it says may be heard. */

#include <stdlib.h>
#include <string.h>

#include "cluster/activation.h"
#include "support/rig.h"

static rig r;
static fk_mem mem;
static fk_activation a;

static const fk_str NONE = { NULL, 0 };
static const fk_request NOBODY = { 0, 0 };

static void begin(bool is_durable)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    fk_fence fence = { 7, FK_STR("node"), 1 };
    CHECK_OK(
        fk__activation_init(&a, &mem, &(fk_activation_start){ is_durable, fence, 1, NONE, NONE }));
}

static void end(void)
{
    fk__activation_fini(&a);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

static fk_admission admit(uint64_t origin, uint64_t seq)
{
    fk_request request = { origin, seq };
    fk_str answer = NONE;
    return fk__activation_admit(&a, &request, &NOBODY, 10, 20, &answer);
}

static fk_err ran(uint64_t origin, uint64_t seq, const char *state, const char *answer)
{
    fk_grain_turn turn = {
        .request = { origin, seq },
        .has_answer = answer != NULL,
        .answer = answer != NULL ? fk_str_of(answer) : NONE,
        .snapshot = fk_str_of(state),
        .wall = FK_SECONDS(1),
    };
    return fk__activation_ran(&a, &turn);
}

/* The bytes of the store that was begun last. */
static unsigned char stored[4096];
static size_t stored_size;

static void store_begin(void)
{
    stored_size = fk__activation_dedup_size(&a, FK_SECONDS(1));
    CHECK(stored_size <= sizeof(stored));
    fk__activation_store_begin(&a, stored, stored_size);
}

static void store(void)
{
    store_begin();
    CHECK(fk__activation_stored(&a, FK_VERDICT_OK, a.version + 1));
}

/* The next activation, which reads the row. */
static void reload(const char *state)
{
    uint64_t version = a.version;
    fk__activation_fini(&a);
    fk_str dedup = { (const char *)stored, stored_size };
    CHECK_OK(fk__activation_init(
        &a, &mem,
        &(fk_activation_start){
            true, { 8, FK_STR("next"), 1 }, version + 1, dedup, fk_str_of(state) }));
}

static void check_answer(fk_request request, fk_request earlier, const char *expected)
{
    fk_str answer = NONE;
    CHECK_U64(fk__activation_admit(&a, &request, &earlier, 10, 20, &answer), FK_ADMIT_ANSWER);
    CHECK_U64(answer.len, strlen(expected));
    CHECK(memcmp(answer.ptr, expected, answer.len) == 0);
}

TEST(activation_nothing_goes_out_before_it_is_stored)
{
    begin(true);
    CHECK(fk__activation_is_clean(&a));
    CHECK_U64(admit(1, 1), FK_ADMIT_RUN);
    CHECK_OK(ran(1, 1, "x", "did x"));
    CHECK(!fk__activation_is_clean(&a));
    CHECK(a.is_dirty);
    CHECK_U64(admit(1, 2), FK_ADMIT_RUN);  /* the same batch */
    CHECK_U64(admit(1, 1), FK_ADMIT_WAIT); /* its answer is not stored */
    store_begin();
    CHECK(!fk__activation_is_clean(&a));
    CHECK(!fk__activation_has_room(&a));
    CHECK_U64(admit(1, 1), FK_ADMIT_WAIT);
    CHECK_U64(admit(1, 2), FK_ADMIT_WAIT);
    CHECK(fk__activation_stored(&a, FK_VERDICT_OK, 2));
    CHECK(fk__activation_is_clean(&a));
    CHECK(!a.is_dirty);
    CHECK_U64(a.version, 2);
    check_answer((fk_request){ 1, 1 }, NOBODY, "did x");
    CHECK_U64(admit(1, 2), FK_ADMIT_RUN);
    end();
}

TEST(activation_a_turn_that_only_looked_is_clean)
{
    begin(true);
    CHECK_OK(ran(1, 1, "x", "did x"));
    store();
    CHECK_OK(ran(1, 2, "x", "it is x"));
    CHECK(fk__activation_is_clean(&a));
    CHECK_U64(admit(1, 2), FK_ADMIT_RUN); /* not noted */
    CHECK_OK(ran(1, 3, "y", "did y"));
    CHECK_OK(ran(1, 4, "y", "it is y")); /* must not be heard before y is stored */
    CHECK(!fk__activation_is_clean(&a));
    store();
    CHECK(fk__activation_is_clean(&a));
    CHECK_U64(admit(1, 4), FK_ADMIT_RUN);
    check_answer((fk_request){ 1, 3 }, NOBODY, "did y");
    end();
}

/* Two turns that undo each other have had their effects all the same. */
TEST(activation_a_turn_is_compared_with_the_one_before)
{
    begin(true);
    CHECK_OK(ran(1, 1, "x", "x"));
    store();
    CHECK_OK(ran(1, 2, "y", "y"));
    CHECK_OK(ran(1, 3, "x", "x again"));
    CHECK(a.is_dirty);
    store();
    check_answer((fk_request){ 1, 2 }, NOBODY, "y");
    check_answer((fk_request){ 1, 3 }, NOBODY, "x again");
    end();
}

TEST(activation_what_was_sent_is_an_effect)
{
    begin(true);
    CHECK_OK(ran(1, 1, "x", "did x"));
    store();
    fk_grain_turn turn = { .request = { 1, 2 }, .has_sent = true, .snapshot = FK_STR("x") };
    CHECK_OK(fk__activation_ran(&a, &turn));
    CHECK(!fk__activation_is_clean(&a));
    store();
    fk_str answer = FK_STR("x");
    fk_request request = { 1, 2 };
    CHECK_U64(fk__activation_admit(&a, &request, NULL, 10, 20, &answer), FK_ADMIT_ANSWER);
    CHECK(answer.ptr == NULL); /* there was none */
    end();
}

TEST(activation_a_turn_of_no_call_is_stored_but_not_noted)
{
    begin(true);
    CHECK_U64(admit(0, 0), FK_ADMIT_RUN);
    CHECK_OK(ran(0, 0, "tick", NULL));
    CHECK(!fk__activation_is_clean(&a));
    store();
    CHECK_U64(a.dedup.entries, 0);
    CHECK_U64(admit(0, 0), FK_ADMIT_RUN);
    end();
}

TEST(activation_is_broken_unless_it_is_stored)
{
    static const fk_verdict verdicts[] = { FK_VERDICT_REFUSED, FK_VERDICT_UNKNOWN };
    for (size_t i = 0; i < 2; i++) {
        begin(true);
        CHECK_OK(ran(1, 1, "x", "did x"));
        store_begin();
        CHECK(!fk__activation_stored(&a, verdicts[i], 0));
        CHECK(a.is_broken);
        CHECK(!fk__activation_is_clean(&a));
        CHECK(!fk__activation_has_room(&a));
        CHECK_U64(admit(1, 1), FK_ADMIT_BACK);
        CHECK_U64(admit(1, 2), FK_ADMIT_BACK);
        CHECK_U64(a.version, 1);
        CHECK_ERR(ran(1, 2, "y", "y"), FK_E_STATE);
        end();
    }
}

TEST(activation_a_store_that_ends_after_a_break_changes_nothing)
{
    begin(true);
    CHECK_OK(ran(1, 1, "x", "did x"));
    store_begin();
    fk__activation_break(&a);
    CHECK(!fk__activation_stored(&a, FK_VERDICT_OK, 2));
    CHECK(!fk__activation_is_clean(&a));
    end();
}

TEST(activation_takes_no_turn_after_the_lease)
{
    begin(true);
    fk_request request = { 1, 1 };
    fk_str answer;
    CHECK_U64(fk__activation_admit(&a, &request, NULL, 19, 20, &answer), FK_ADMIT_RUN);
    CHECK_U64(fk__activation_admit(&a, &request, NULL, 20, 20, &answer), FK_ADMIT_BACK);
    CHECK_U64(fk__activation_admit(&a, &NOBODY, NULL, 21, 20, &answer), FK_ADMIT_BACK);
    CHECK_U64(fk__activation_admit(&a, &request, NULL, 10, 0, &answer), FK_ADMIT_BACK);
    end();
}

TEST(activation_a_batch_has_a_bound)
{
    begin(true);
    for (uint64_t i = 1; i <= FK_ACTIVATION_BATCH_MAX; i++) {
        CHECK(fk__activation_has_room(&a));
        CHECK_OK(ran(1, i, i % 2 == 0 ? "even" : "odd", "ok"));
    }
    CHECK(!fk__activation_has_room(&a));
    store();
    CHECK(fk__activation_has_room(&a));
    for (int i = 0; i < 2 * FK_ACTIVATION_BATCH_MAX; i++) {
        CHECK_OK(ran(2, 1, "even", "looked"));
        CHECK(fk__activation_has_room(&a)); /* nothing is kept back */
    }
    end();
}

TEST(activation_forgets_what_the_origin_has_settled)
{
    begin(true);
    CHECK_OK(ran(1, 1, "1", "1"));
    CHECK_OK(ran(1, 2, "2", "2"));
    store();
    fk_grain_turn turn = { .request = { 1, 3 }, .low = 2, .snapshot = FK_STR("2") };
    CHECK_OK(fk__activation_ran(&a, &turn)); /* it only looked, and yet it says what is settled */
    CHECK_U64(admit(1, 1), FK_ADMIT_DROP);
    check_answer((fk_request){ 1, 2 }, NOBODY, "2");
    turn = (fk_grain_turn){ .request = { 2, 5 }, .low = 4, .snapshot = FK_STR("3") };
    CHECK_OK(fk__activation_ran(&a, &turn));
    store();
    CHECK_U64(admit(2, 3), FK_ADMIT_DROP); /* also of an origin that was new */
    end();
}

/* It ran here under a number of its own, its store had no known outcome but was done, and it comes to
 * the next activation with a number of the desk's. */
TEST(activation_a_call_is_known_by_its_earlier_number)
{
    begin(true);
    fk_grain_turn turn = {
        .request = { 90, 1 },
        .is_single = true,
        .has_answer = true,
        .answer = FK_STR("done"),
        .snapshot = FK_STR("x"),
        .wall = FK_SECONDS(1),
    };
    CHECK_OK(fk__activation_ran(&a, &turn));
    store_begin();
    CHECK(!fk__activation_stored(&a, FK_VERDICT_UNKNOWN, 0));
    reload("x");
    CHECK_OK(ran(5, 1, "y", "another first"));
    store();
    reload("y");
    check_answer((fk_request){ 1, 1 }, (fk_request){ 90, 1 }, "done");
    check_answer((fk_request){ 90, 1 }, NOBODY, "done");
    /* One that is known to be answered is not kept. */
    turn.request.seq = 2;
    turn.snapshot = FK_STR("z");
    CHECK_OK(fk__activation_ran(&a, &turn));
    store();
    CHECK_U64(admit(90, 2), FK_ADMIT_RUN);
    end();
}

/* Only what stores the same is the same store: here two batches end with the same call. */
TEST(activation_stores_are_told_apart_by_what_they_store)
{
    begin(true);
    CHECK_OK(ran(1, 1, "p", "p"));
    CHECK_OK(ran(2, 1, "r", "r"));
    store_begin();
    fk_request one = a.last;
    end();
    begin(true);
    CHECK_OK(ran(3, 1, "q", "q"));
    CHECK_OK(ran(2, 1, "r", "r"));
    store_begin();
    CHECK(!fk__request_equal(one, a.last));
    end();
    begin(true);
    CHECK_OK(ran(1, 1, "p", "p"));
    CHECK_OK(ran(2, 1, "r", "r"));
    store_begin();
    CHECK(fk__request_equal(one, a.last));
    end();
}

TEST(activation_of_a_volatile_grain_stores_nothing)
{
    begin(false);
    CHECK_OK(ran(1, 1, "x", "x"));
    CHECK(fk__activation_is_clean(&a));
    CHECK(!a.is_dirty);
    check_answer((fk_request){ 1, 1 }, NOBODY, "x");
    fk_grain_turn single = { .request = { 90, 1 }, .is_single = true, .has_sent = true };
    CHECK_OK(fk__activation_ran(&a, &single));
    CHECK_U64(admit(90, 1), FK_ADMIT_RUN);
    CHECK_U64(a.dedup.entries, 1);
    for (uint64_t i = 2; i < 1000; i++) {
        fk_grain_turn turn = { .request = { 2, i }, .low = i, .wall = FK_MINUTES(30) };
        CHECK_OK(fk__activation_ran(&a, &turn));
        CHECK(fk__activation_has_room(&a));
    }
    CHECK_U64(a.dedup.entries, 1); /* the rest is settled, or its origin not heard of */
    CHECK_U64(a.dedup.origin_count, 1);
    end();
}

TEST(activation_with_a_full_window_runs_nothing)
{
    begin(true);
    for (uint64_t i = 1; i <= FK_DEDUP_ENTRIES_MAX; i++) {
        CHECK_U64(admit(1, i), FK_ADMIT_RUN);
        CHECK_OK(ran(1, i, i % 2 == 0 ? "even" : "odd", NULL));
    }
    const fk_request next = { 1, FK_DEDUP_ENTRIES_MAX + 1 }, single = { 2, 1 };
    CHECK_U64(admit(next.origin, next.seq), FK_ADMIT_OVERLOADED);
    CHECK(!fk__activation_make_room(&a, &next, false, 1, 0)); /* none of them is settled */
    CHECK(!fk__activation_make_room(&a, &single, true, next.seq, 0));
    CHECK_U64(admit(0, 0), FK_ADMIT_RUN); /* has nothing to note */
    CHECK_ERR(ran(1, FK_DEDUP_ENTRIES_MAX + 1, "odd", NULL), FK_E_OVERLOADED);
    CHECK(a.is_broken);
    end();
}

TEST(activation_with_a_full_window_goes_on_with_whoever_has_settled)
{
    static char much[FK_DEDUP_BYTES_MAX / 2 + 1];
    memset(much, 'x', FK_DEDUP_BYTES_MAX / 2);
    const fk_request next = { 1, 2 };
    begin(true);
    CHECK_OK(ran(1, 1, "x", much));
    CHECK_U64(admit(next.origin, next.seq), FK_ADMIT_OVERLOADED);
    CHECK(fk__activation_make_room(&a, &next, false, 2, 0));
    CHECK_U64(admit(next.origin, next.seq), FK_ADMIT_RUN);
    CHECK_U64(admit(1, 1), FK_ADMIT_DROP);
    end();
}

TEST(activation_is_broken_when_it_cannot_note)
{
    for (uint64_t at = 1;; at++) {
        begin(true);
        rig_fault(&r, at, false);
        fk_err err = ran(1, 1, "x", "did x");
        rig_fault(&r, 0, false);
        CHECK_U64(a.is_broken, err != FK_OK);
        CHECK_U64(admit(1, 2), err != FK_OK ? FK_ADMIT_BACK : FK_ADMIT_RUN);
        end();
        if (err == FK_OK) {
            CHECK_U64(at, 4);
            return;
        }
        CHECK_ERR(err, FK_E_NOMEM);
    }
}

TEST(activation_does_not_begin_with_damaged_bytes)
{
    begin(true);
    fk__activation_fini(&a);
    fk_fence fence = { 7, FK_STR("node"), 1 };
    CHECK_ERR(fk__activation_init(&a, &mem,
                                  &(fk_activation_start){ true, fence, 1, FK_STR("\1\1"), NONE }),
              FK_E_CORRUPT);
    end();
}

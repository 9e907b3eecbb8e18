/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A table that is kept up to date is the one that would be built. */

#include <string.h>

#include "cluster/table.h"
#include "support/rig.h"

enum { SLOTS = 256, MANY = 40 };

static rig r;
static fk_mem mem;
static fk_slot_table table;
static unsigned builds, adds, removes;

/* Rendezvous, counted. */
static void counted_build(const fk_candidate *c, uint32_t count, uint32_t slots, uint32_t *owner,
                          uint64_t *score)
{
    builds++;
    fk_strategy_rendezvous.build(c, count, slots, owner, score);
}

static void counted_add(const fk_candidate *c, uint32_t count, uint32_t index, uint32_t slots,
                        uint32_t *owner, uint64_t *score)
{
    adds++;
    fk_strategy_rendezvous.add(c, count, index, slots, owner, score);
}

static void counted_remove(const fk_candidate *c, uint32_t count, uint32_t index, uint32_t slots,
                           uint32_t *owner, uint64_t *score)
{
    removes++;
    fk_strategy_rendezvous.remove(c, count, index, slots, owner, score);
}

static const fk_strategy_ops COUNTED = { "counted", counted_build, counted_add, counted_remove };

static void begin(void)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    builds = adds = removes = 0;
}

static void end(void)
{
    fk__slot_table_fini(&table, &mem);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

static void check_calls(unsigned build, unsigned add, unsigned remove)
{
    CHECK_U64(builds, build);
    CHECK_U64(adds, add);
    CHECK_U64(removes, remove);
    builds = adds = removes = 0;
}

static void update(const fk_candidate *c, uint32_t count, uint32_t slots)
{
    CHECK_OK(fk__slot_table_update(&table, &mem, &COUNTED, c, count, slots));
    CHECK_U64(table.count, count);
    CHECK_U64(table.slots, slots);
    unsigned b = builds, a = adds, d = removes;
    static uint32_t owner[2 * SLOTS];
    static uint64_t score[2 * SLOTS];
    fk_strategy_rendezvous.build(c, count, slots, owner, score);
    CHECK(memcmp(owner, table.owner, slots * sizeof *owner) == 0);
    CHECK_OK(fk__slot_table_check(&table, &mem));
    builds = b, adds = a, removes = d;
}

TEST(table_takes_the_shortest_way)
{
    fk_candidate c[] = { { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 2 }, { 5, 1 } };
    begin();
    CHECK_U64(fk__slot_table_owner(&table, (fk_grain_id){ 1, 2 }), FK_NOBODY);
    update(c, 2, SLOTS);
    check_calls(1, 0, 0);
    update(c, 2, SLOTS);
    check_calls(0, 0, 0);
    update(c, 3, SLOTS); /* the last */
    check_calls(0, 1, 0);
    update(c + 1, 2, SLOTS); /* the first */
    check_calls(0, 0, 1);
    update(c, 3, SLOTS);
    check_calls(0, 1, 0);
    update((fk_candidate[]){ c[0], c[2] }, 2, SLOTS); /* one in the middle */
    check_calls(0, 0, 1);
    update(c, 3, SLOTS);
    check_calls(0, 1, 0);
    c[1].weight = 5;
    update(c, 3, SLOTS);
    check_calls(0, 1, 1);
    c[1].weight = 0;
    update(c, 3, SLOTS);
    check_calls(0, 1, 1);
    update(c, 5, SLOTS); /* two at once */
    check_calls(1, 0, 0);
    update((fk_candidate[]){ c[0], c[1], c[2], { 9, 1 }, c[4] }, 5, SLOTS); /* another one */
    check_calls(1, 0, 0);
    update(c, 5, 2 * SLOTS);
    check_calls(1, 0, 0);
    update(c, 1, SLOTS);
    check_calls(1, 0, 0);
    update(NULL, 0, SLOTS);
    check_calls(0, 0, 1);
    CHECK_U64(fk__slot_table_owner(&table, (fk_grain_id){ 1, 2 }), FK_NOBODY);
    end();
}

TEST(table_answers_by_the_low_bits_of_the_id)
{
    fk_candidate c[] = { { 1, 1 }, { 2, 1 }, { 3, 1 } };
    begin();
    update(c, 3, SLOTS);
    for (uint64_t i = 0; i < 3 * SLOTS; i++) {
        CHECK_U64(fk__slot_table_owner(&table, (fk_grain_id){ 99, i }), table.owner[i % SLOTS]);
    }
    end();
}

TEST(table_after_any_history_is_the_one_that_would_be_built)
{
    test_random random = { 11 };
    fk_candidate pool[MANY], c[MANY];
    bool is_in[MANY];
    begin();
    for (int history = 0; history < 100; history++) {
        for (uint32_t i = 0; i < MANY; i++) {
            pool[i] = (fk_candidate){ test_random_next(&random), 1 };
            is_in[i] = test_random_below(&random, 2) != 0;
        }
        for (int step = 0; step < 15; step++) {
            uint64_t changes = 1 + (test_random_below(&random, 4) == 0);
            for (uint64_t i = 0; i < changes; i++) {
                uint64_t who = test_random_below(&random, MANY);
                is_in[who] = !is_in[who];
                who = test_random_below(&random, MANY);
                if (history % 2 == 1) pool[who].weight = (uint32_t)test_random_below(&random, 4);
            }
            uint32_t count = 0;
            for (uint32_t i = 0; i < MANY; i++) {
                if (is_in[i]) c[count++] = pool[i];
            }
            update(c, count, SLOTS);
        }
    }
    CHECK(builds > 0 && adds > 100 && removes > 100);
    end();
}

TEST(table_without_memory_stays_what_it_was)
{
    fk_candidate c[MANY];
    for (uint32_t i = 0; i < MANY; i++) c[i] = (fk_candidate){ i * 77, 1 };
    begin();
    for (uint64_t at = 1; at <= 3; at++) { /* candidates, owners, scores */
        rig_fault(&r, at, false);
        CHECK_ERR(fk__slot_table_update(&table, &mem, &COUNTED, c, 3, SLOTS), FK_E_NOMEM);
        CHECK_U64(table.slots, 0);
        CHECK_U64(table.count, 0);
        fk__slot_table_fini(&table, &mem);
        CHECK_U64(atomic_load(&r.bytes), 0);
    }
    rig_fault(&r, 0, false);
    update(c, 3, SLOTS);
    uint32_t *owner = table.owner;
    rig_fault(&r, 1, true);
    CHECK_ERR(fk__slot_table_update(&table, &mem, &COUNTED, c, MANY, SLOTS), FK_E_NOMEM);
    CHECK_ERR(fk__slot_table_update(&table, &mem, &COUNTED, c, 2, 2 * SLOTS), FK_E_NOMEM);
    CHECK_ERR(fk__slot_table_update(&table, &mem, &fk_strategy_rendezvous, c, 2, SLOTS),
              FK_E_NOMEM);
    CHECK_U64(table.count, 3);
    CHECK_U64(table.slots, SLOTS);
    CHECK(table.strategy == &COUNTED && table.owner == owner);
    CHECK_OK(fk__slot_table_update(&table, &mem, &COUNTED, c, 2, SLOTS)); /* needs none */
    rig_fault(&r, 0, false);
    update(c, 2, SLOTS);
    end();
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compression tables from both sides: who makes them, and who uses them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/test.h"
#include "support/tsv.h"
#include "wire/compression.h"

static const fk_hash_key KEY = { 1, 2 };
static const fk_compression_config CONFIG = { .count_max = 8, .text_max = 16, .text_size = 64 };

static fk_compression c;
static fk_wire_table table;
static void *memory, *table_memory;

static void begin(void)
{
    free(memory);
    free(table_memory);
    memory = malloc(fk__compression_memory(&CONFIG)); /* of just that size: a sanitizer sees more */
    table_memory = malloc(fk__table_memory(4, 20));
    fk__compression_init(&c, &CONFIG, &KEY, memory);
    fk__table_init(&table, &KEY, 4, 20, table_memory);
}

static void hit(const char *text, unsigned times)
{
    for (unsigned i = 0; i < times; i++) fk__compression_hit(&c, fk_str_of(text));
}

/* What is advertised, over the wire and back. */
static fk_wire_advertisement over_the_wire(const fk_wire_advertisement *out, uint64_t origin_uid)
{
    static unsigned char bytes[1024];
    fk_wire_control control = { FK_CONTROL_REF_TABLE, { .table = *out } };
    control.as.table.from = (fk_wire_unique){
        .address = { .protocol = FK_STR("p"), .system = FK_STR("s"), .host = FK_STR("h") }
    };
    control.as.table.origin_uid = origin_uid;
    size_t size = fk__control_size(&control);
    CHECK(size <= sizeof(bytes));
    fk__control_encode(&control, bytes, size);
    CHECK_OK(
        fk__control_decode(FK_STR("f"), (fk_str){ (const char *)bytes, size }, &control, NULL));
    return control.as.table;
}

static fk_wire_advertisement advertise(void)
{
    fk_wire_advertisement out = { 0 };
    CHECK(fk__compression_advertise(&c, &out));
    return over_the_wire(&out, 5);
}

static bool is_silent(void)
{
    fk_wire_advertisement out = { 0 };
    return !fk__compression_advertise(&c, &out);
}

static bool finds(uint8_t version, uint16_t index, const char *text)
{
    fk_str found;
    CHECK_OK(fk__compression_find(&c, version, index, &found));
    return tsv_equal(found, fk_str_of(text));
}

/* ---- the sender ------------------------------------------------------------------------------ */

TEST(table_compresses_what_the_peer_advertised)
{
    begin();
    hit("/user/a", 3);
    hit("/user/b", 2);
    fk_wire_advertisement received = advertise();
    CHECK_OK(fk__table_accept(&table, &received, 5));
    CHECK_U64(table.version, 1);
    fk_wire_name name = fk__table_name(&table, FK_STR("/user/b"));
    CHECK(name.is_compressed);
    CHECK(finds(table.version, name.index, "/user/b"));
    name = fk__table_name(&table, FK_STR("/user/c"));
    CHECK(!name.is_compressed && tsv_equal(name.text, FK_STR("/user/c")));
    CHECK(!fk__table_name(&table, FK_STR("")).is_compressed);
}

TEST(table_for_another_incarnation_is_not_taken)
{
    begin();
    hit("/user/a", 3);
    fk_wire_advertisement received = advertise();
    CHECK_ERR(fk__table_accept(&table, &received, 6), FK_E_FOREIGN);
    CHECK_U64(table.version, 0);
    CHECK(!fk__table_name(&table, FK_STR("/user/a")).is_compressed);
}

TEST(table_takes_what_there_is_room_for)
{
    static const fk_str KEYS[] = { { "12345678901234567", 17 },
                                   { "1234", 4 },
                                   { "a", 1 },
                                   { "a", 1 },
                                   { "", 0 },
                                   { "b", 1 },
                                   { "c", 1 },
                                   { "d", 1 } };
    static const uint32_t VALUES[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    begin();
    fk_wire_advertisement all = { .version = 9,
                                  .keys = { .count = 8, .items = KEYS },
                                  .values = { .count = 8, .items = VALUES } };
    fk_wire_advertisement received = over_the_wire(&all, 5);
    CHECK_OK(fk__table_accept(&table, &received, 5));
    CHECK_U64(table.texts.count, 4); /* three more bytes, and four places in all */
    CHECK_U64(fk__table_name(&table, KEYS[0]).index, 0);
    CHECK(!fk__table_name(&table, KEYS[1]).is_compressed);
    CHECK_U64(fk__table_name(&table, FK_STR("a")).index, 2); /* the first of two */
    CHECK_U64(fk__table_name(&table, FK_STR("b")).index, 5);
    CHECK_U64(fk__table_name(&table, FK_STR("c")).index, 6);
    CHECK(!fk__table_name(&table, FK_STR("d")).is_compressed);
    all.keys.count = all.values.count = 0; /* a new table replaces the old one */
    received = over_the_wire(&all, 5);
    CHECK_OK(fk__table_accept(&table, &received, 5));
    CHECK(!fk__table_name(&table, FK_STR("a")).is_compressed);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

TEST(compression_is_silent_without_news)
{
    begin();
    CHECK(is_silent());
    hit("/user/a", 1); /* once is not often */
    CHECK(is_silent());
    hit("/user/a", 2);
    (void)advertise();
}

TEST(compression_finds_only_in_tables_that_exist)
{
    fk_str text;
    begin();
    CHECK_ERR(fk__compression_find(&c, 0, 0, &text), FK_E_MALFORMED); /* the empty one */
    CHECK_ERR(fk__compression_find(&c, 1, 0, &text), FK_E_NOT_FOUND);
    CHECK_ERR(fk__compression_find(&c, 255, 0, &text), FK_E_NOT_FOUND); /* Pekko's "disabled" */
    hit("/user/a", 2);
    (void)advertise();
    CHECK_ERR(fk__compression_find(&c, 2, 0, &text), FK_E_NOT_FOUND);
    CHECK(finds(1, 0, "/user/a")); /* used before its ack came */
    CHECK_ERR(fk__compression_find(&c, 1, 1, &text), FK_E_MALFORMED);
    CHECK_U64(c.table[c.active].version, 1);
}

TEST(compression_repeats_until_it_is_answered)
{
    begin();
    hit("/user/a", 2);
    CHECK_U64(advertise().version, 1);
    CHECK_U64(advertise().version, 1);
    fk__compression_confirm(&c, 2); /* of something else */
    CHECK_U64(advertise().version, 1);
    fk__compression_confirm(&c, 1);
    fk__compression_confirm(&c, 1); /* twice */
    CHECK(is_silent());
    hit("/user/a", 2); /* nothing new in that */
    CHECK(is_silent());
    hit("/user/b", 4);
    CHECK_U64(advertise().version, 2);
}

TEST(compression_gives_up_and_begins_anew)
{
    begin();
    hit("/user/a", 2);
    for (unsigned i = 0; i < 1 + FK_COMPRESSION_RESENDS; i++) CHECK_U64(advertise().version, 1);
    CHECK(is_silent());
    CHECK(is_silent());
    hit("/user/a", 9); /* the peer does not have it, so it is said again */
    CHECK_U64(advertise().version, 2);
    CHECK(finds(2, 0, "/user/a"));
}

TEST(compression_keeps_tables_for_what_is_on_its_way)
{
    fk_str text;
    begin();
    for (uint8_t version = 1; version <= 6; version++) {
        char name[16];
        sprintf(name, "/user/%u", version);
        for (unsigned i = 0; i < 4; i++) fk__hitters_age(&c.hitters);
        hit(name, 9);
        CHECK_U64(advertise().version, version);
        fk__compression_confirm(&c, version);
        for (uint8_t old = 1; old <= version; old++) {
            bool kept = old + 2 >= version;
            CHECK_ERR(fk__compression_find(&c, old, 0, &text), kept ? FK_OK : FK_E_NOT_FOUND);
        }
    }
}

TEST(compression_versions_go_round)
{
    begin();
    c.table[c.active].version = FK_TABLE_VERSION_MAX;
    hit("/user/a", 2);
    CHECK_U64(advertise().version, 0);
    CHECK(finds(0, 0, "/user/a"));
}

/* ---- who comes most often ---------------------------------------------------------------------- */

static bool is_counted(const char *text)
{
    return fk__texts_find(&c.hitters.texts, fk_str_of(text)) != FK_TEXTS_NONE;
}

TEST(hitters_keep_the_frequent_ones_in_a_flood_of_others)
{
    begin();
    for (unsigned i = 0; i < 10000; i++) {
        char name[16];
        sprintf(name, "/user/%u", i);
        hit(name, 1);
        if (i % 4 == 0) hit("/user/often", 1);
        if (i % 3 == 0) hit("/user/oftener", 1);
    }
    CHECK(is_counted("/user/often"));
    CHECK(is_counted("/user/oftener"));
    CHECK_U64(c.hitters.texts.count, CONFIG.count_max);
}

TEST(hitters_forget_what_was_popular_once)
{
    begin();
    hit("/user/once", 1000);
    for (unsigned i = 0; i < 12; i++) fk__hitters_age(&c.hitters);
    for (unsigned i = 0; i < 100; i++) {
        char name[16];
        sprintf(name, "/user/%u", i);
        hit(name, 1);
    }
    CHECK(!is_counted("/user/once"));
}

TEST(hitters_do_not_count_what_does_not_fit)
{
    begin();
    hit("", 5);
    hit("12345678901234567", 5);
    CHECK_U64(c.hitters.texts.count, 0);
    hit("1234567890123456", 5);
    CHECK_U64(c.hitters.texts.count, 1);
}

/* Against a table that remembers everything. */
TEST(hitters_chains_stay_whole_whatever_comes)
{
    test_random random = { 7 };
    begin();
    for (unsigned i = 0; i < 20000; i++) {
        char name[16];
        sprintf(name, "%u", (unsigned)test_random_below(&random, 40));
        hit(name, 1);
        for (uint16_t slot = 0; i % 64 == 0 && slot < c.hitters.texts.count; slot++) {
            fk_str text = fk__texts_at(&c.hitters.texts, slot);
            CHECK_U64(fk__texts_find(&c.hitters.texts, text), slot);
        }
    }
    free(memory);
    free(table_memory);
    memory = table_memory = NULL;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which calls a grain knows to have had their effect, and for how long. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/dedup.h"
#include "support/rig.h"

static rig r;
static fk_mem mem;
static fk_dedup window;

static void begin(void)
{
    rig_init(&r);
    fk__mem_init(&mem, &r.port, 0);
    fk__dedup_init(&window, &mem);
}

static void end(void)
{
    fk__dedup_check_all(&window);
    fk__dedup_fini(&window);
    CHECK_U64(atomic_load(&r.bytes), 0);
}

static fk_request call_of(uint64_t origin, uint64_t seq)
{
    return (fk_request){ origin, seq };
}

static fk_err note(uint64_t origin, uint64_t seq, const char *answer)
{
    return fk__dedup_note(&window, call_of(origin, seq), false, fk_str_of(answer), 0);
}

static fk_dedup_verdict check(uint64_t origin, uint64_t seq)
{
    fk_str answer;
    return fk__dedup_check(&window, call_of(origin, seq), &answer);
}

static void check_answer(uint64_t origin, uint64_t seq, const char *expected)
{
    fk_str answer = { NULL, 99 };
    CHECK_U64(fk__dedup_check(&window, call_of(origin, seq), &answer), FK_DEDUP_SEEN);
    CHECK_U64(answer.len, strlen(expected));
    CHECK(memcmp(answer.ptr, expected, answer.len) == 0);
}

static unsigned char *encoded(size_t *size)
{
    *size = fk__dedup_measure(&window);
    unsigned char *bytes = malloc(*size);
    CHECK(bytes != NULL);
    fk__dedup_encode(&window, bytes, *size);
    return bytes;
}

/* Through bytes and back: what a new activation knows. */
static void reload(void)
{
    size_t size;
    unsigned char *bytes = encoded(&size);
    fk__dedup_fini(&window);
    CHECK_OK(fk__dedup_decode(&window, (fk_str){ (const char *)bytes, size }));
    fk__dedup_check_all(&window);
    CHECK_U64(fk__dedup_measure(&window), size);
    unsigned char *again = malloc(size);
    fk__dedup_encode(&window, again, size);
    CHECK(memcmp(bytes, again, size) == 0);
    free(again);
    free(bytes);
}

TEST(dedup_a_call_that_was_noted_is_seen)
{
    begin();
    CHECK_U64(check(1, 1), FK_DEDUP_NEW);
    CHECK_OK(note(1, 1, "one"));
    CHECK_OK(note(1, 3, ""));
    CHECK_OK(note(1, 2, "two"));
    CHECK_OK(note(2, 1, "other"));
    for (int i = 0; i < 2; i++) {
        check_answer(1, 1, "one");
        check_answer(1, 2, "two");
        check_answer(1, 3, "");
        check_answer(2, 1, "other");
        CHECK_U64(check(1, 4), FK_DEDUP_NEW);
        CHECK_U64(check(2, 2), FK_DEDUP_NEW);
        CHECK_U64(check(3, 1), FK_DEDUP_NEW);
        CHECK_U64(window.entries, 4);
        CHECK_U64(window.bytes, 11);
        reload();
    }
    end();
}

TEST(dedup_the_first_answer_stays)
{
    begin();
    CHECK_OK(note(1, 1, "first"));
    CHECK_OK(note(1, 1, "second"));
    check_answer(1, 1, "first");
    CHECK_U64(window.entries, 1);
    end();
}

TEST(dedup_no_answer_is_not_an_empty_one)
{
    begin();
    CHECK_OK(fk__dedup_note(&window, call_of(1, 1), false, (fk_str){ NULL, 0 }, 0));
    CHECK_OK(note(1, 2, ""));
    for (int i = 0; i < 2; i++) {
        fk_str answer = FK_STR("x");
        CHECK_U64(fk__dedup_check(&window, call_of(1, 1), &answer), FK_DEDUP_SEEN);
        CHECK(answer.ptr == NULL);
        CHECK_U64(fk__dedup_check(&window, call_of(1, 2), &answer), FK_DEDUP_SEEN);
        CHECK(answer.ptr != NULL && answer.len == 0);
        reload();
    }
    end();
}

TEST(dedup_what_is_settled_is_forgotten_and_stale)
{
    begin();
    for (uint64_t seq = 1; seq <= 9; seq++) CHECK_OK(note(1, seq, "a"));
    CHECK_OK(note(2, 1, "b"));
    fk__dedup_settle(&window, 1, 5, 0);
    fk__dedup_settle(&window, 1, 3, 0); /* came late */
    fk__dedup_settle(&window, 7, 3, 0); /* nobody */
    CHECK_U64(window.entries, 6);
    for (int i = 0; i < 2; i++) {
        CHECK_U64(check(1, 4), FK_DEDUP_STALE);
        check_answer(1, 5, "a");
        check_answer(2, 1, "b");
        reload();
    }
    fk__dedup_settle(&window, 1, 100, 0);
    CHECK_U64(window.entries, 1);
    CHECK_U64(check(1, 99), FK_DEDUP_STALE);
    CHECK_U64(check(1, 100), FK_DEDUP_NEW);
    CHECK_U64(window.origin_count, 2);
    end();
}

TEST(dedup_a_single_is_forgotten_when_it_is_answered)
{
    begin();
    CHECK_OK(fk__dedup_note(&window, call_of(9, 1), true, FK_STR("s"), FK_SECONDS(1)));
    CHECK_OK(note(1, 1, "n"));
    fk__dedup_settle(&window, 9, 5, FK_SECONDS(1)); /* says nothing of singles */
    check_answer(9, 1, "s");
    fk__dedup_tidy(&window, FK_SECONDS(2)); /* not answered yet */
    check_answer(9, 1, "s");
    fk__dedup_answered(&window);
    CHECK(check(9, 1) != FK_DEDUP_SEEN);
    check_answer(1, 1, "n");
    end();
}

/* Its node may offer it any time, also after other calls were stored. */
TEST(dedup_a_single_that_was_read_stays_for_its_time)
{
    begin();
    CHECK_OK(fk__dedup_note(&window, call_of(9, 1), true, FK_STR("s"), FK_SECONDS(1)));
    reload();
    CHECK_OK(fk__dedup_note(&window, call_of(9, 2), true, FK_STR("t"), FK_MINUTES(9)));
    fk__dedup_answered(&window);
    check_answer(9, 1, "s");
    CHECK_U64(check(9, 2), FK_DEDUP_NEW);
    fk__dedup_tidy(&window, FK_DEDUP_FORGET + FK_SECONDS(1));
    check_answer(9, 1, "s");
    fk__dedup_tidy(&window, FK_DEDUP_FORGET + FK_SECONDS(2));
    CHECK_U64(check(9, 1), FK_DEDUP_NEW);
    CHECK_U64(window.origin_count, 0); /* that says nothing */
    end();
}

TEST(dedup_who_is_not_heard_of_is_forgotten)
{
    begin();
    CHECK_OK(fk__dedup_note(&window, call_of(1, 1), false, FK_STR("a"), FK_SECONDS(1)));
    CHECK_OK(fk__dedup_note(&window, call_of(2, 1), false, FK_STR("b"), FK_SECONDS(1)));
    fk__dedup_settle(&window, 2, 0, FK_SECONDS(5));
    reload();
    fk__dedup_tidy(&window, 0); /* a clock that goes back */
    CHECK_U64(window.entries, 2);
    fk__dedup_tidy(&window, FK_DEDUP_FORGET + FK_SECONDS(3));
    CHECK_U64(check(1, 1), FK_DEDUP_NEW);
    check_answer(2, 1, "b");
    fk__dedup_tidy(&window, FK_DEDUP_FORGET + FK_SECONDS(6));
    CHECK_U64(window.origin_count, 0);
    end();
}

TEST(dedup_is_bounded)
{
    begin();
    for (uint64_t seq = 1; seq <= FK_DEDUP_ENTRIES_MAX; seq++) CHECK_OK(note(1, seq, "a"));
    CHECK(fk__dedup_is_full(&window));
    CHECK_ERR(note(1, FK_DEDUP_ENTRIES_MAX + 1, "a"), FK_E_OVERLOADED);
    CHECK_ERR(note(2, 1, "a"), FK_E_OVERLOADED);
    CHECK_U64(window.origin_count, 1);
    fk__dedup_settle(&window, 1, 2, 0);
    CHECK(!fk__dedup_is_full(&window));
    CHECK_OK(note(2, 1, "a"));
    reload();
    fk__dedup_fini(&window);

    char *large = calloc(1, FK_DEDUP_BYTES_MAX + 1);
    fk_str all = { large, FK_DEDUP_BYTES_MAX };
    fk_str over = { large, FK_DEDUP_BYTES_MAX + 1 };
    CHECK_ERR(fk__dedup_note(&window, call_of(1, 1), false, over, 0), FK_E_LIMIT);
    CHECK_OK(fk__dedup_note(&window, call_of(1, 1), false, all, 0));
    CHECK_ERR(fk__dedup_note(&window, call_of(1, 2), false, FK_STR("a"), 0), FK_E_OVERLOADED);
    CHECK_OK(note(1, 2, ""));
    CHECK(fk__dedup_is_full(&window));
    reload();
    free(large);
    end();
}

/* Origins that have settled everything give way to new ones, the longest silent first. */
TEST(dedup_origins_are_bounded)
{
    begin();
    for (uint64_t i = 1; i <= FK_DEDUP_ENTRIES_MAX; i++) {
        fk_time wall = i == 77 ? 0 : FK_SECONDS(i + 1);
        CHECK_OK(fk__dedup_note(&window, call_of(i, 1), false, FK_STR("a"), wall));
        fk__dedup_settle(&window, i, 2, 0);
    }
    CHECK_U64(window.entries, 0);
    CHECK_U64(window.origin_count, FK_DEDUP_ENTRIES_MAX);
    CHECK_U64(check(77, 1), FK_DEDUP_STALE);
    CHECK_OK(note(FK_DEDUP_ENTRIES_MAX + 1, 1, "a"));
    CHECK_U64(window.origin_count, FK_DEDUP_ENTRIES_MAX);
    CHECK_U64(check(77, 1), FK_DEDUP_NEW);
    CHECK_U64(check(76, 1), FK_DEDUP_STALE);
    end();
}

TEST(dedup_every_allocation_may_fail)
{
    begin();
    CHECK_OK(note(5, 1, "before"));
    for (uint64_t at = 1;; at++) {
        rig_fault(&r, at, false);
        fk_err err = note(3, 7, "answer");
        rig_fault(&r, 0, false);
        fk__dedup_check_all(&window);
        if (err == FK_OK) {
            CHECK(at == 4); /* origin, entries, answer */
            break;
        }
        CHECK_ERR(err, FK_E_NOMEM);
        CHECK_U64(check(3, 7), FK_DEDUP_NEW);
        CHECK_U64(window.origin_count, 1);
    }
    size_t size;
    unsigned char *bytes = encoded(&size);
    fk__dedup_fini(&window);
    for (uint64_t at = 1;; at++) {
        rig_fault(&r, at, false);
        fk_err err = fk__dedup_decode(&window, (fk_str){ (const char *)bytes, size });
        rig_fault(&r, 0, false);
        if (err == FK_OK) break;
        CHECK_ERR(err, FK_E_NOMEM);
        CHECK(window.origins == NULL);
        CHECK_U64(atomic_load(&r.bytes), 0);
    }
    check_answer(3, 7, "answer");
    check_answer(5, 1, "before");
    free(bytes);
    end();
}

/* Any piece of a window, and any window with one byte changed, is refused, or is another window. */
TEST(dedup_damaged_bytes_are_refused)
{
    begin();
    CHECK_OK(note(1, 1, "one"));
    CHECK_OK(note(1, 300, "three hundred"));
    CHECK_OK(
        fk__dedup_note(&window, call_of(~(uint64_t)0, ~(uint64_t)0), true, FK_STR("s"), FK_NEVER));
    fk__dedup_settle(&window, 1, 1, FK_SECONDS(1));
    size_t size;
    unsigned char *bytes = encoded(&size);
    fk__dedup_fini(&window);
    for (size_t len = 1; len < size; len++) {
        unsigned char *piece = malloc(len); /* so that the sanitizer sees its end */
        memcpy(piece, bytes, len);
        CHECK_ERR(fk__dedup_decode(&window, (fk_str){ (const char *)piece, len }), FK_E_CORRUPT);
        CHECK(window.origins == NULL);
        free(piece);
    }
    for (size_t i = 0; i < size; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1u << bit);
            fk_err err = fk__dedup_decode(&window, (fk_str){ (const char *)bytes, size });
            if (err == FK_OK) {
                fk__dedup_check_all(&window);
                unsigned char *again = malloc(size);
                CHECK_U64(fk__dedup_measure(&window), size);
                fk__dedup_encode(&window, again, size);
                CHECK(memcmp(again, bytes, size) == 0);
                free(again);
                fk__dedup_fini(&window);
            } else {
                CHECK_ERR(err, FK_E_CORRUPT);
            }
            bytes[i] ^= (unsigned char)(1u << bit);
        }
    }
    free(bytes);
    end();
}

/* ---- against a model: a table ----------------------------------------------------------------- */

enum { ORIGINS = 4, SEQS = 40 };

typedef struct model {
    struct {
        bool is_noted, is_single, is_own;
        char answer;
    } call[ORIGINS][SEQS];
    uint64_t low[ORIGINS];
    bool is_known[ORIGINS];
} model;

/* An origin that says nothing is forgotten, and its low with it: there was none. */
static void model_forget(model *m)
{
    for (int o = 0; o < ORIGINS; o++) {
        bool has_any = m->low[o] != 0;
        for (int s = 0; s < SEQS; s++) has_any = has_any || m->call[o][s].is_noted;
        m->is_known[o] = m->is_known[o] && has_any;
    }
}

static void model_step(model *m, test_random *random)
{
    uint64_t o = test_random_below(random, ORIGINS);
    uint64_t s = test_random_below(random, SEQS);
    switch (test_random_below(random, 12)) {
    case 0: {
        uint64_t low = test_random_below(random, SEQS);
        fk__dedup_settle(&window, o + 1, low, FK_SECONDS(1));
        if (!m->is_known[o] || low <= m->low[o]) break;
        m->low[o] = low;
        for (uint64_t i = 0; i < low; i++) {
            if (!m->call[o][i].is_single) m->call[o][i].is_noted = false;
        }
        break;
    }
    case 1:
        fk__dedup_answered(&window);
        for (o = 0; o < ORIGINS; o++) {
            for (s = 0; s < SEQS; s++) {
                if (m->call[o][s].is_single && m->call[o][s].is_own) m->call[o][s].is_noted = false;
            }
        }
        break;
    case 2:
        reload();
        for (o = 0; o < ORIGINS; o++) {
            for (s = 0; s < SEQS; s++) m->call[o][s].is_own = false;
        }
        break;
    default: {
        char letter = (char)('a' + test_random_below(random, 26));
        bool is_single = test_random_below(random, 3) == 0;
        CHECK_OK(fk__dedup_note(&window, call_of(o + 1, s), is_single, (fk_str){ &letter, 1 },
                                FK_SECONDS(1)));
        m->is_known[o] = true;
        if (m->call[o][s].is_noted) break;
        m->call[o][s].is_noted = m->call[o][s].is_own = true;
        m->call[o][s].is_single = is_single;
        m->call[o][s].answer = letter;
    }
    }
    model_forget(m);
}

TEST(dedup_does_what_its_model_does)
{
    uint64_t seed = test_env("FK_SEED", 1);
    printf("seeds from %llu\n", (unsigned long long)seed);
    for (uint64_t run = 0; run < test_scaled(100); run++) {
        test_random random = { seed + run };
        model m = { .low = { 0 } };
        begin();
        for (int step = 0; step < 200; step++) {
            model_step(&m, &random);
            fk__dedup_check_all(&window);
            for (uint64_t o = 0; o < ORIGINS; o++) {
                for (uint64_t s = 0; s < SEQS; s++) {
                    fk_str answer;
                    fk_dedup_verdict v = fk__dedup_check(&window, call_of(o + 1, s), &answer);
                    if (m.call[o][s].is_noted) {
                        CHECK_U64(v, FK_DEDUP_SEEN);
                        CHECK(answer.len == 1 && answer.ptr[0] == m.call[o][s].answer);
                    } else {
                        CHECK_U64(v, s < m.low[o] ? FK_DEDUP_STALE : FK_DEDUP_NEW);
                    }
                }
            }
        }
        end();
    }
}

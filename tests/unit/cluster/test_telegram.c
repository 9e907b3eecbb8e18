/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Telegrams as bytes: what was written is read, and nothing else is. */

#include <stdlib.h>
#include <string.h>

#include "cluster/telegram.h"
#include "support/property.h"

enum { CLAIMS_MAX = 4096, BUFFER = 128 * 1024 };

static unsigned char buffer[BUFFER];
static fk_slot_claim claims[CLAIMS_MAX + 1];
static char filling[FK_GRAIN_KEY_MAX + 1];

static fk_str encode(const fk_telegram *t)
{
    size_t size = fk__telegram_measure(t);
    CHECK(size < BUFFER);
    buffer[size] = 0x5a;
    fk__telegram_encode(t, claims, buffer, size);
    CHECK_U64(buffer[size], 0x5a); /* not a byte more than measured */
    return (fk_str){ (const char *)buffer, size };
}

static bool is_same(fk_str a, fk_str b)
{
    return fk__wire_equal(a, b);
}

static void check_same(const fk_telegram *a, const fk_telegram *b)
{
    CHECK_U64(a->kind, b->kind);
    CHECK(fk__request_equal(a->request, b->request));
    CHECK(fk__request_equal(a->earlier, b->earlier));
    CHECK_U64(a->low, b->low);
    CHECK_U64(a->left_ms, b->left_ms);
    CHECK_U64(a->hops, b->hops);
    CHECK_U64(a->wants_answer, b->wants_answer);
    CHECK_ERR(a->err, b->err);
    CHECK(is_same(a->authority, b->authority));
    CHECK(is_same(a->reply_to, b->reply_to));
    CHECK(is_same(a->grain_kind, b->grain_kind));
    CHECK(is_same(a->key, b->key));
    CHECK_U64(a->incarnation, b->incarnation);
    CHECK_U64(a->view, b->view);
    CHECK_U64(a->claim_count, b->claim_count);
    CHECK(a->cargo.serializer == b->cargo.serializer);
    CHECK(is_same(a->cargo.manifest, b->cargo.manifest));
    CHECK(is_same(a->cargo.bytes, b->cargo.bytes));
}

static void check_claims(const fk_telegram *t)
{
    for (uint32_t i = 0; i < t->claim_count; i++) {
        fk_slot_claim claim;
        fk__telegram_claim(t, i, &claim);
        CHECK_U64(claim.slot, claims[i].slot);
        CHECK_U64(claim.epoch, claims[i].epoch);
        CHECK_U64(claim.holder.len, 0);
    }
}

/* Writes it, reads it, and refuses all of it that is too short, and one byte too many. */
static void check_round_trip(const fk_telegram *t)
{
    fk_telegram read;
    fk_wire_fault fault;
    fk_str bytes = encode(t);
    CHECK_OK(fk__telegram_decode(bytes, &read, NULL));
    check_same(&read, t);
    check_claims(&read);
    char *block = malloc(bytes.len + 1);
    CHECK(block != NULL);
    for (size_t len = 0; len < bytes.len; len++) {
        fk_str cut = { block + (bytes.len - len), len }; /* up to the end of the block */
        memcpy(block + (bytes.len - len), bytes.ptr, len);
        memset(&fault, 0, sizeof(fault));
        memset(&read, 0xee, sizeof(read));
        CHECK_ERR(fk__telegram_decode(cut, &read, &fault), FK_E_TRUNCATED);
        CHECK_ERR(fault.err, FK_E_TRUNCATED);
        CHECK_U64(fault.at, len);
        CHECK(fault.message != NULL);
        CHECK_U64(read.low, 0xeeeeeeeeeeeeeeee); /* not touched */
    }
    memcpy(block, bytes.ptr, bytes.len);
    block[bytes.len] = 0;
    CHECK_ERR(fk__telegram_decode((fk_str){ block, bytes.len + 1 }, &read, &fault), FK_E_MALFORMED);
    CHECK_U64(fault.at, bytes.len);
    free(block);
}

static fk_telegram a_call(void)
{
    return (fk_telegram){
        .kind = FK_TELEGRAM_CALL,
        .view = 0x1000000000000002,
        .request = { 0x1122334455667788, 42 },
        .earlier = { 7, UINT64_MAX },
        .low = 40,
        .left_ms = UINT32_MAX,
        .hops = 5,
        .wants_answer = true,
        .reply_to = FK_STR("fraktor.tcp://bank@127.0.0.1:4001"),
        .grain_kind = FK_STR("account"),
        .key = FK_STR("alice\0bob"),
        .cargo = { 17, FK_STR("deposit"), FK_STR("\0\1\2") },
    };
}

static fk_telegram an_answer(void)
{
    return (fk_telegram){ .kind = FK_TELEGRAM_ANSWER,
                          .view = 9,
                          .request = { 1, 2 },
                          .err = FK_E_FENCED,
                          .authority = FK_STR("b"),
                          .cargo = { -5, FK_STR(""), FK_STR("") } };
}

static fk_telegram a_move(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        claims[i] = (fk_slot_claim){ .slot = (FK_SLOTS_MAX - 1) - i, .epoch = UINT64_MAX - i };
    }
    return (fk_telegram){ .kind = FK_TELEGRAM_MOVED,
                          .view = 1,
                          .incarnation = 3,
                          .grain_kind = FK_STR("account"),
                          .claim_count = count };
}

TEST(telegram_round_trips)
{
    fk_telegram t = a_call();
    check_round_trip(&t);
    t.cargo = (fk_cargo){ .serializer = 0 };
    t.wants_answer = false;
    t.reply_to = (fk_str){ NULL, 0 };
    t.request.seq = 0;
    check_round_trip(&t);
    t = an_answer();
    check_round_trip(&t);
    t.err = FK_OK;
    t.authority = (fk_str){ NULL, 0 };
    t.cargo = (fk_cargo){ INT32_MIN, FK_STR("m"), FK_STR("an answer") };
    check_round_trip(&t);
    t = a_move(0);
    check_round_trip(&t);
    t = a_move(9);
    check_round_trip(&t);
    t = (fk_telegram){ .kind = FK_TELEGRAM_NEWS, .view = 0x8000000000000001 };
    check_round_trip(&t);
}

TEST(telegram_has_these_bytes)
{
    static const unsigned char ANSWER[] = { 1,    2,    0,    0,    9, 0, 0, 0, 0, 0,
                                            0,    0,                            /* header */
                                            1,    0,    0,    0,    0, 0, 0, 0, /* origin */
                                            2,    0,    0,    0,    0, 0, 0, 0, /* seq */
                                            58,   0,    0,    0,                /* err */
                                            1,    0,    'b',                    /* authority */
                                            0xfb, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0 }; /* cargo */
    static const unsigned char NEWS[] = { 1, 4, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1 };
    fk_telegram t = an_answer();
    CHECK(is_same(encode(&t), (fk_str){ (const char *)ANSWER, sizeof(ANSWER) }));
    t = (fk_telegram){ .kind = FK_TELEGRAM_NEWS, .view = 0x0102030405060708 };
    CHECK(is_same(encode(&t), (fk_str){ (const char *)NEWS, sizeof(NEWS) }));
}

TEST(telegram_takes_what_is_just_within_limits)
{
    memset(filling, 'x', sizeof(filling));
    fk_telegram t = a_call(), read;
    t.key = (fk_str){ filling, FK_GRAIN_KEY_MAX };
    t.grain_kind = (fk_str){ filling, FK_KIND_NAME_MAX };
    t.reply_to = (fk_str){ filling, FK_MEMBER_TEXT_MAX };
    CHECK_OK(fk__telegram_decode(encode(&t), &read, NULL));
    check_same(&read, &t);
    t = a_move(CLAIMS_MAX);
    CHECK_OK(fk__telegram_decode(encode(&t), &read, NULL));
    check_same(&read, &t);
    check_claims(&read);
}

/* The encoded telegram with one byte changed is refused at that place. */
static void check_changed(const fk_telegram *t, size_t at, int byte, fk_err err, size_t fault_at)
{
    fk_telegram read;
    fk_wire_fault fault = { FK_OK, 0, NULL };
    fk_str bytes = encode(t);
    CHECK(at < bytes.len);
    buffer[at] = (unsigned char)byte;
    CHECK_ERR(fk__telegram_decode(bytes, &read, &fault), err);
    CHECK_ERR(fault.err, err);
    CHECK_U64(fault.at, fault_at);
    CHECK(fault.message != NULL);
}

TEST(telegram_refuses_what_no_header_has)
{
    fk_telegram call = a_call(), answer = an_answer(), move = a_move(1);
    fk_telegram news = { .kind = FK_TELEGRAM_NEWS };
    const fk_telegram *others[] = { &answer, &move, &news };
    check_changed(&call, 0, 0, FK_E_MALFORMED, 0);
    check_changed(&call, 0, 2, FK_E_PROTOCOL, 0);
    check_changed(&call, 0, 255, FK_E_PROTOCOL, 0);
    check_changed(&call, 1, 0, FK_E_MALFORMED, 1);
    check_changed(&call, 1, 5, FK_E_MALFORMED, 1);
    check_changed(&call, 2, 2, FK_E_MALFORMED, 2);
    check_changed(&call, 2, 3, FK_E_MALFORMED, 2);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        check_changed(others[i], 2, 1, FK_E_MALFORMED, 2);
        check_changed(others[i], 3, 1, FK_E_MALFORMED, 3);
    }
}

TEST(telegram_refuses_calls_without_number_and_texts_beyond_limits)
{
    enum { REPLY_TO = 12 + 16 + 16 + 8 + 4 };
    fk_telegram t = a_call();
    size_t kind_at = REPLY_TO + 2 + t.reply_to.len, key_at = kind_at + 2 + t.grain_kind.len;
    t.request.origin = 1;
    check_changed(&t, 12, 0, FK_E_MALFORMED, 12);
    check_changed(&t, REPLY_TO + 1, 1, FK_E_MALFORMED, REPLY_TO); /* 256 and more */
    check_changed(&t, REPLY_TO, 0, FK_E_MALFORMED, REPLY_TO);     /* an answer to nobody */
    check_changed(&t, kind_at, 0, FK_E_MALFORMED, kind_at);
    check_changed(&t, kind_at, FK_KIND_NAME_MAX + 1, FK_E_MALFORMED, kind_at);
    check_changed(&t, key_at, 0, FK_E_MALFORMED, key_at);
    check_changed(&t, key_at + 1, 0x10, FK_E_MALFORMED, key_at); /* 4,096 and some */
    t = an_answer();
    check_changed(&t, 12, 0, FK_E_MALFORMED, 12);
}

TEST(telegram_refuses_claims_that_nobody_has)
{
    enum { COUNT = 12 + 8 + 2 + 7, FIRST = COUNT + 4, CLAIM = 12 };
    fk_telegram t = a_move(3);
    check_changed(&t, COUNT + 1, 0x10, FK_E_MALFORMED, COUNT); /* 4,099 */
    check_changed(&t, COUNT + 3, 0xff, FK_E_MALFORMED, COUNT);
    check_changed(&t, FIRST + CLAIM + 2, 0x10, FK_E_MALFORMED,
                  FIRST + CLAIM); /* a slot beyond all */
}

TEST(telegram_takes_an_error_of_a_later_release_for_a_failure)
{
    enum { ERR = 12 + 16 };
    fk_telegram t = an_answer(), read;
    fk_str bytes = encode(&t);
    buffer[ERR + 1] = 0x7f;
    CHECK_OK(fk__telegram_decode(bytes, &read, NULL));
    CHECK_ERR(read.err, FK_E_FAILED);
    buffer[ERR + 3] = 0xff;
    CHECK_OK(fk__telegram_decode(bytes, &read, NULL));
    CHECK_ERR(read.err, FK_E_FAILED);
}

/* ---- properties ------------------------------------------------------------------------------ */

/* Whatever bytes are: they are refused with a reason that lies in them, or they are written again
 * as they were, but for errors that this release does not know. */
static void check_any(fk_str bytes)
{
    fk_telegram read, again;
    fk_wire_fault fault = { FK_OK, UINT64_MAX, NULL };
    fk_err err = fk__telegram_decode(bytes, &read, &fault);
    if (err != FK_OK) {
        PROPERTY_CHECK(err == FK_E_TRUNCATED || err == FK_E_MALFORMED || err == FK_E_PROTOCOL);
        PROPERTY_CHECK(fault.err == err);
        PROPERTY_CHECK(fault.at <= bytes.len);
        PROPERTY_CHECK(fault.message != NULL);
        return;
    }
    for (uint32_t i = 0; i < read.claim_count; i++) fk__telegram_claim(&read, i, &claims[i]);
    read.claims = (fk_str){ NULL, 0 };
    fk_str written = encode(&read);
    PROPERTY_CHECK(written.len == bytes.len);
    if (read.err != FK_E_FAILED) PROPERTY_CHECK(is_same(written, bytes));
    PROPERTY_CHECK(fk__telegram_decode(written, &again, NULL) == FK_OK);
    check_same(&again, &read);
}

static fk_telegram some_telegram(test_random *random)
{
    switch (test_random_below(random, 4)) {
    case 0: return a_call();
    case 1: return an_answer();
    case 2: return a_move((uint32_t)test_random_below(random, 20));
    default: return (fk_telegram){ .kind = FK_TELEGRAM_NEWS, .view = test_random_next(random) };
    }
}

/* A telegram of which a few bytes have been changed, cut or added. */
static void damaged_round(property *p)
{
    unsigned char copy[512];
    fk_telegram t = some_telegram(&p->random);
    fk_str bytes = encode(&t);
    size_t len = bytes.len;
    CHECK(len < sizeof(copy) - 8);
    memset(copy, 0, sizeof(copy));
    memcpy(copy, bytes.ptr, len);
    for (uint64_t n = test_random_below(&p->random, 4); n > 0; n--) {
        copy[test_random_below(&p->random, len)] = (unsigned char)test_random_next(&p->random);
    }
    if (test_random_below(&p->random, 3) == 0) {
        len = (size_t)test_random_below(&p->random, len + 8);
    }
    fk_str damaged = { (const char *)copy, len };
    property_input(p, "bytes", damaged);
    check_any(edge_copy(0, damaged));
}

TEST(telegram_damaged_is_refused_or_another)
{
    property_run("telegram_damaged", damaged_round);
}

static void random_round(property *p)
{
    unsigned char copy[200];
    size_t len = (size_t)test_random_below(&p->random, sizeof(copy) + 1);
    for (size_t i = 0; i < len; i++) copy[i] = (unsigned char)test_random_next(&p->random);
    if (len > 0 && test_random_below(&p->random, 8) != 0) copy[0] = 1;
    if (len > 1) copy[1] = (unsigned char)test_random_below(&p->random, 6);
    if (len > 3 && test_random_below(&p->random, 4) != 0) copy[2] = copy[3] = 0;
    fk_str bytes = { (const char *)copy, len };
    property_input(p, "bytes", bytes);
    check_any(edge_copy(0, bytes));
}

TEST(telegram_random_bytes_are_refused_or_a_telegram)
{
    property_run("telegram_random", random_round);
}

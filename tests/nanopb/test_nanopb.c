/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Protobuf messages by nanopb: their bytes, and what is not let in. */

#include <string.h>

#include "bank.pb.h"
#include "fraktor/nanopb.h"
#include "support/test.h"

FK_MESSAGE(bank_Deposit);
FK_CODEC_NANOPB(bank_Deposit, "org.example.bank.Deposit");
FK_MESSAGE(bank_Nothing);
FK_CODEC_NANOPB(bank_Nothing, "org.example.bank.Nothing");

/* amount -150 (zigzag 299), account { owner "ada", limits [ 1, 300 ] }, is_cash; written by hand from
 * the description of the encoding. */
static const unsigned char DEPOSIT[] = {
    0x08, 0xab, 0x02,                                         /* 1: 299 */
    0x12, 0x0a,                                               /* 2: 10 bytes */
    0x0a, 0x03, 'a',  'd', 'a', 0x12, 0x03, 0x01, 0xac, 0x02, /* 1: "ada"; 2: packed */
    0x18, 0x01,                                               /* 3: true */
};

static bank_Deposit deposit(void)
{
    bank_Deposit d = bank_Deposit_init_zero;
    d.amount = -150;
    d.has_account = true;
    strcpy(d.account.owner, "ada");
    d.account.limits_count = 2;
    d.account.limits[0] = 1;
    d.account.limits[1] = 300;
    d.is_cash = true;
    return d;
}

static fk_err decode(const void *bytes, size_t len, bank_Deposit *out, fk_codec_fault *fault)
{
    memset(out, 0, sizeof(*out));
    return fk_codec_decode(&fk_codec_bank_Deposit, (fk_str){ bytes, len }, out, fault);
}

TEST(nanopb_codec_writes_protobuf)
{
    bank_Deposit d = deposit();
    unsigned char bytes[64];
    size_t size = 0;
    CHECK_OK(fk_codec_measure(&fk_codec_bank_Deposit, &d, sizeof(d), &size));
    CHECK_U64(size, sizeof(DEPOSIT));
    CHECK_OK(fk_codec_encode(&fk_codec_bank_Deposit, &d, sizeof(d), bytes, size));
    CHECK(memcmp(bytes, DEPOSIT, sizeof(DEPOSIT)) == 0);
}

TEST(nanopb_codec_reads_protobuf)
{
    bank_Deposit d;
    CHECK_OK(decode(DEPOSIT, sizeof(DEPOSIT), &d, NULL));
    CHECK(d.amount == -150);
    CHECK(d.has_account);
    CHECK_STR(d.account.owner, "ada");
    CHECK_U64(d.account.limits_count, 2);
    CHECK_U64(d.account.limits[1], 300);
    CHECK(d.is_cash);
    CHECK_OK(decode(NULL, 0, &d, NULL)); /* everything left out is a message, too */
    CHECK(d.amount == 0);
    CHECK(!d.has_account);
}

TEST(nanopb_codec_of_an_empty_message)
{
    bank_Nothing nothing = bank_Nothing_init_zero;
    unsigned char byte;
    size_t size = 1;
    CHECK_OK(fk_codec_measure(&fk_codec_bank_Nothing, &nothing, sizeof(nothing), &size));
    CHECK_U64(size, 0);
    CHECK_OK(fk_codec_encode(&fk_codec_bank_Nothing, &nothing, sizeof(nothing), &byte, 0));
}

TEST(nanopb_codec_refuses_what_is_cut_or_broken)
{
    bank_Deposit d;
    fk_codec_fault fault;
    /* A cut between two fields leaves a message; everywhere else it is noticed. */
    for (size_t len = 0; len < sizeof(DEPOSIT); len++) {
        bool is_whole = len == 0 || len == 3 || len == 15;
        fk_err err = decode(DEPOSIT, len, &d, &fault);
        CHECK_ERR(err, is_whole ? FK_OK : FK_E_MALFORMED);
        if (is_whole) continue;
        CHECK_ERR(fault.err, FK_E_MALFORMED);
        CHECK_U64(fault.serializer, FK_SERIALIZER_PROTOBUF);
    }
    static const unsigned char LONG_OWNER[] = { 0x12, 0x0a, 0x0a, 0x08, 'a', 'a',
                                                'a',  'a',  'a',  'a',  'a', 'a' };
    CHECK_ERR(decode(LONG_OWNER, sizeof(LONG_OWNER), &d, NULL), FK_E_MALFORMED);
    static const unsigned char MANY_LIMITS[] = { 0x12, 0x06, 0x12, 0x04, 1, 2, 3, 4 };
    CHECK_ERR(decode(MANY_LIMITS, sizeof(MANY_LIMITS), &d, NULL), FK_E_MALFORMED);
    static const unsigned char WRONG_KIND[] = { 0x0a, 0x01, 'x' };
    CHECK_ERR(decode(WRONG_KIND, sizeof(WRONG_KIND), &d, NULL), FK_E_MALFORMED);
}

TEST(nanopb_codec_does_not_write_what_does_not_fit)
{
    bank_Deposit d = deposit();
    size_t size;
    unsigned char bytes[64];
    memset(d.account.owner, 'x', sizeof(d.account.owner)); /* without an end */
    CHECK_ERR(fk_codec_measure(&fk_codec_bank_Deposit, &d, sizeof(d), &size), FK_E_INVALID);
    CHECK_ERR(fk_codec_encode(&fk_codec_bank_Deposit, &d, sizeof(d), bytes, 64), FK_E_INVALID);
    d = deposit();
    CHECK_ERR(fk_codec_encode(&fk_codec_bank_Deposit, &d, sizeof(d), bytes, sizeof(DEPOSIT) - 1),
              FK_E_INVALID);
}

TEST(nanopb_codec_is_found_by_type_and_manifest)
{
    static _Alignas(void *) unsigned char memory[4096];
    fk_codecs codecs;
    const fk_codec *found;
    CHECK(fk_codecs_memory(2) <= sizeof(memory));
    fk_codecs_init(&codecs, 2, memory);
    CHECK_OK(fk_codecs_add(&codecs, &fk_codec_bank_Deposit, NULL));
    CHECK_OK(fk_codecs_add(&codecs, &fk_codec_bank_Nothing, NULL));
    CHECK_OK(fk_codecs_of_type(&codecs, &fk_type_bank_Deposit, &found, NULL));
    CHECK(found == &fk_codec_bank_Deposit);
    CHECK_OK(fk_codecs_of_wire(&codecs, FK_SERIALIZER_PROTOBUF, FK_STR("org.example.bank.Nothing"),
                               &found, NULL));
    CHECK(found == &fk_codec_bank_Nothing);
    CHECK(!fk_codec_is_verbatim(found));
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/hash.h"

#include <string.h>

#include "support/test.h"

/* SipHash-c-d written from the paper, byte by byte, to share nothing with the library. */

static uint64_t rotl(uint64_t x, int b)
{
    return (x << b) | (x >> (64 - b));
}

static void rounds(uint64_t v[4], int n)
{
    for (int i = 0; i < n; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotl(v[1], 13);
        v[3] = rotl(v[3], 16);
        v[1] ^= v[0];
        v[3] ^= v[2];
        v[0] = rotl(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotl(v[1], 17);
        v[3] = rotl(v[3], 21);
        v[1] ^= v[2];
        v[3] ^= v[0];
        v[2] = rotl(v[2], 32);
    }
}

static uint64_t siphash(int c, int d, const uint64_t key[2], const unsigned char *data, size_t len)
{
    static const unsigned char MAGIC[] = "uespemosmodnarodarenegylsetybdet";
    unsigned char padded[1024] = { 0 };
    uint64_t v[4];
    CHECK(len + 8 < sizeof(padded));
    memcpy(padded, data, len);
    size_t blocks = len / 8 + 1;
    padded[blocks * 8 - 1] = (unsigned char)len;
    for (size_t i = 0; i < 4; i++) {
        v[i] = 0;
        for (size_t j = 0; j < 8; j++) v[i] |= (uint64_t)MAGIC[8 * i + j] << (8 * j);
        v[i] ^= key[i % 2];
    }
    for (size_t i = 0; i < blocks; i++) {
        uint64_t m = 0;
        for (size_t j = 0; j < 8; j++) m |= (uint64_t)padded[8 * i + j] << (8 * j);
        v[3] ^= m;
        rounds(v, c);
        v[0] ^= m;
    }
    v[2] ^= 0xff;
    rounds(v, d);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static const uint64_t KEY[2] = { 0x0706050403020100u, 0x0f0e0d0c0b0a0908u };

TEST(hash_reference_is_siphash_2_4_of_the_paper)
{
    unsigned char input[15];
    for (unsigned i = 0; i < sizeof(input); i++) input[i] = (unsigned char)i;
    CHECK_U64(siphash(2, 4, KEY, input, sizeof(input)), 0xa129ca6149be45e5u);
}

TEST(hash_is_siphash_1_3)
{
    unsigned char input[512];
    fk_hash_key key = { KEY[0], KEY[1] };
    for (unsigned i = 0; i < sizeof(input); i++) input[i] = (unsigned char)(i * 7);
    /* The first vector that other implementations of 1-3 publish: the empty input. */
    CHECK_U64(fk__hash_bytes(&key, input, 0), 0xabac0158050fc4dcu);
    for (size_t len = 0; len < sizeof(input); len++) {
        CHECK_U64(fk__hash_bytes(&key, input, len), siphash(1, 3, KEY, input, len));
    }
}

TEST(hash_depends_on_key_and_on_every_byte)
{
    unsigned char input[32] = { 0 };
    fk_hash_key key = { 1, 2 }, other = { 1, 3 };
    uint64_t base = fk__hash_bytes(&key, input, sizeof(input));
    CHECK(fk__hash_bytes(&other, input, sizeof(input)) != base);
    for (size_t i = 0; i < sizeof(input); i++) {
        input[i] = 1;
        CHECK(fk__hash_bytes(&key, input, sizeof(input)) != base);
        input[i] = 0;
    }
    CHECK(fk__hash_bytes(&key, input, sizeof(input) - 1) != base);
}

TEST(hash_does_not_care_about_alignment)
{
    unsigned char room[64 + 8];
    unsigned char input[64];
    fk_hash_key key = { 3, 4 };
    for (unsigned i = 0; i < sizeof(input); i++) input[i] = (unsigned char)(255 - i);
    uint64_t expected = fk__hash_bytes(&key, input, sizeof(input));
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(room + shift, input, sizeof(input));
        CHECK_U64(fk__hash_bytes(&key, room + shift, sizeof(input)), expected);
    }
}

TEST(hash_mix64_is_a_bijection_on_what_we_can_try)
{
    /* Undoes the mix step by step with the inverse multipliers. */
    for (uint64_t x = 0; x < 10000; x++) {
        uint64_t y = fk__mix64(x * 0x9e3779b97f4a7c15u);
        y ^= y >> 33;
        y *= 0x9cb4b2f8129337dbu;
        y ^= y >> 33;
        y *= 0x4f74430c22a54005u;
        y ^= y >> 33;
        CHECK_U64(y, x * 0x9e3779b97f4a7c15u);
    }
}

TEST(rng_never_reaches_zero_and_repeats_from_its_seed)
{
    fk_rng a = { 42 }, b = { 42 };
    for (int i = 0; i < 100000; i++) {
        CHECK_U64(fk__rng_next(&a), fk__rng_next(&b));
        CHECK(a.state != 0);
    }
}

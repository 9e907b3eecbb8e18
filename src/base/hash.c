/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/hash.h"

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static void sip_round(sip *s)
{
    s->a += s->b;
    s->b = rotate(s->b, 13) ^ s->a;
    s->a = rotate(s->a, 32);
    s->c += s->d;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a += s->d;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->c = rotate(s->c, 32);
}

/* Little endian whatever the machine, so that a hash means the same everywhere. */
static uint64_t read_word(const unsigned char *at, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++) word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t fk__hash_bytes(const fk_hash_key *key, const void *data, size_t len)
{
    const unsigned char *at = data;
    sip s = { key->k0 ^ 0x736f6d6570736575u, key->k1 ^ 0x646f72616e646f6du,
              key->k0 ^ 0x6c7967656e657261u, key->k1 ^ 0x7465646279746573u };
    size_t left = len;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = read_word(at, 8);
        s.d ^= word;
        sip_round(&s);
        s.a ^= word;
    }
    uint64_t last = read_word(at, left) | (uint64_t)(len & 0xff) << 56;
    s.d ^= last;
    sip_round(&s);
    s.a ^= last;
    s.c ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

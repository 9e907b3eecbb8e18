/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/hash.h"

#include "base/base.h"

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t rotate(uint64_t x, unsigned by)
{
    return (x << by) | (x >> (64 - by));
}

static FK_HOT void sip_round(sip *s)
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

/* Little endian whatever the machine, so that a hash means the same everywhere. Compilers know
 * these for the loads that they are. */
static inline uint32_t read_half(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t read_word(const unsigned char *at)
{
    return (uint64_t)read_half(at) | (uint64_t)read_half(at + 4) << 32;
}

/* Fewer than eight bytes, without a loop: the pieces overlap. */
static inline uint64_t read_rest(const unsigned char *at, size_t len)
{
    if (len >= 4) {
        uint64_t high = read_half(at + len - 4);
        return (uint64_t)read_half(at) | high << (8 * (len - 4));
    }
    if (len == 0) return 0;
    uint64_t middle = at[len / 2], last = at[len - 1];
    return (uint64_t)at[0] | middle << (8 * (len / 2)) | last << (8 * (len - 1));
}

uint64_t fk__hash_bytes(const fk_hash_key *key, const void *data, size_t len)
{
    const unsigned char *at = data;
    sip s = { key->k0 ^ 0x736f6d6570736575u, key->k1 ^ 0x646f72616e646f6du,
              key->k0 ^ 0x6c7967656e657261u, key->k1 ^ 0x7465646279746573u };
    size_t left = len;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = read_word(at);
        s.d ^= word;
        sip_round(&s);
        s.a ^= word;
    }
    uint64_t last = read_rest(at, left) | (uint64_t)(len & 0xff) << 56;
    s.d ^= last;
    sip_round(&s);
    s.a ^= last;
    s.c ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_BASE_HASH_H
#define FK_BASE_HASH_H

/*
 * SipHash-1-3: names and keys come from outside, so tables keyed by them need a secret
 * key against flooding. fk__mix64 is for numbers of our own, fk_rng for choices that need
 * no secrecy.
 */

#include "base/base.h"

typedef struct fk_hash_key {
    uint64_t k0, k1;
} fk_hash_key;

uint64_t fk__hash_bytes(const fk_hash_key *key, const void *data, size_t len);

static inline uint64_t fk__mix64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

/* xorshift64*: the state must not be zero. */
typedef struct fk_rng {
    uint64_t state;
} fk_rng;

static inline uint64_t fk__rng_next(fk_rng *rng)
{
    uint64_t x = rng->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * 0x2545f4914f6cdd1du;
}

#endif /* FK_BASE_HASH_H */

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers without a sign are in units of 2^-32 here, unless it is said otherwise. */

#include "remote/phi.h"

#define PHI_ONE     4294967296u /* 1 */
#define PHI_LOG2    2977044472u /* log(2) */
#define PHI_PER_LOG 1865280597u /* 1 / log(10) */
#define PHI_LINEAR  6861639752u /* 1.5976 */
#define PHI_CUBIC   303078662u  /* 0.070566 */

enum {
    PHI_SHIFT = 32,
    PHI_Y_MOST = 48,    /* standard deviations; beyond it phi is at its most */
    PHI_EXP_TERMS = 12, /* log(2)^13 / 13! < 2^-39 */
    PHI_LOG_TERMS = 10  /* (1/3)^21 / 21 < 2^-37 */
};

uint64_t fk__phi_divide(uint64_t a, uint64_t b, uint32_t shift)
{
    uint64_t rest = 0, quotient = 0;
    FK_ASSERT(b > 0 && b <= INT64_MAX);
    for (uint32_t i = 64 + shift; i > 0; i--) {
        if (quotient > INT64_MAX / 2) return UINT64_MAX;
        uint64_t bit = i > shift ? a >> (i - shift - 1) & 1 : 0;
        rest = rest << 1 | bit;
        quotient <<= 1;
        if (rest < b) continue;
        rest -= b;
        quotient |= 1;
    }
    return quotient;
}

uint64_t fk__phi_root(uint64_t a)
{
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit != 0; bit >>= 1) {
        if ((root | bit) * (root | bit) <= a) root |= bit;
    }
    return root;
}

/* a * b, which must be below 2^32. */
static uint64_t phi_times(uint64_t a, uint64_t b)
{
    uint64_t a1 = a >> PHI_SHIFT, a0 = a & UINT32_MAX;
    uint64_t b1 = b >> PHI_SHIFT, b0 = b & UINT32_MAX;
    return (a1 * b1 << PHI_SHIFT) + a1 * b0 + a0 * b1 + (a0 * b0 >> PHI_SHIFT);
}

/* e^-t: halved for each log(2) in t, and a Taylor series for the rest. */
static uint64_t phi_exp(uint64_t t)
{
    uint32_t halvings = 0;
    if (t >= PHI_SHIFT * (uint64_t)PHI_LOG2) return 0;
    for (uint32_t bit = PHI_SHIFT / 2; bit > 0; bit /= 2) {
        if (t < bit * (uint64_t)PHI_LOG2) continue;
        t -= bit * (uint64_t)PHI_LOG2;
        halvings += bit;
    }
    uint64_t sum = PHI_ONE;
    for (uint32_t i = PHI_EXP_TERMS; i > 0; i--) {
        sum = PHI_ONE - (uint32_t)phi_times(t, sum) / i; /* a short division */
    }
    return sum >> halvings;
}

/* log(1 + u), u from 0 to 1: 2 artanh(z) with z = u / (2 + u), at most 1/3. */
static uint64_t phi_log(uint64_t u)
{
    uint64_t z = fk__phi_divide(u, 2 * (uint64_t)PHI_ONE + u, PHI_SHIFT);
    uint64_t square = phi_times(z, z), sum = 0;
    for (uint32_t i = PHI_LOG_TERMS; i > 0; i--) {
        sum = phi_times(square, sum) + UINT32_MAX / (2 * i - 1);
    }
    return 2 * phi_times(z, sum);
}

fk_phi fk__phi_of(int64_t x)
{
    uint64_t size = x < 0 ? (uint64_t)0 - (uint64_t)x : (uint64_t)x;
    uint64_t tail = phi_log(phi_exp(size));
    return (fk_phi)phi_times((x > 0 ? size : 0) + tail, PHI_PER_LOG);
}

fk_phi fk__phi(fk_time elapsed, fk_time mean, fk_time deviation)
{
    FK_ASSERT(deviation > 0);
    bool is_early = elapsed < mean;
    uint64_t off =
        is_early ? (uint64_t)mean - (uint64_t)elapsed : (uint64_t)elapsed - (uint64_t)mean;
    uint64_t y = fk__phi_divide(off, (uint64_t)deviation, PHI_SHIFT);
    if (y >= PHI_Y_MOST * (uint64_t)PHI_ONE) return is_early ? 0 : FK_PHI_MOST;
    uint64_t x = phi_times(y, PHI_LINEAR + phi_times(phi_times(y, y), PHI_CUBIC));
    fk_phi phi = fk__phi_of(is_early ? -(int64_t)x : (int64_t)x);
    return phi < FK_PHI_MOST ? phi : FK_PHI_MOST;
}

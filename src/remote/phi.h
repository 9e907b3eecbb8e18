/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef FK_REMOTE_PHI_H
#define FK_REMOTE_PHI_H

/*
 * Phi: how much a silence is to be wondered at, as a number. If the time between two signs of life
 * is distributed as has been seen, phi = n means that a silence as long as this one happens once in
 * 10^n times. The tail of the normal distribution is taken by the logistic approximation that Pekko
 * uses, so that the numbers are the same:
 *
 *     y = (elapsed - mean) / deviation
 *     x = y * (1.5976 + 0.070566 * y^2)
 *     phi = -log10(e^-x / (1 + e^-x)) = log10(1 + e^x) = (max(x, 0) + log(1 + e^-|x|)) / log(10)
 *
 * The last form has no small difference of large numbers and no overflow, and what is left to
 * approximate is one smooth function that falls from log(2) to 0.
 *
 * In fixed point, for three reasons: a decision about who is dead must be the same whatever compiled
 * it (x87, fused multiplication, another libm), the freestanding parts have no libm, and small
 * machines have no floating point at all. There is no division operator either: on a machine of 32
 * bits that would be a call into the compiler's library.
 */

#include "base/base.h"

/* In units of 2^-32. */
typedef int64_t fk_phi;

#define FK_PHI(n)   ((fk_phi)(n)*4294967296)
#define FK_PHI_MOST FK_PHI(4096) /* what is more counts as this */

/* deviation > 0. The error is below 3e-9 times (1 + the result). */
fk_phi fk__phi(fk_time elapsed, fk_time mean, fk_time deviation);

/* log10(1 + e^x), x in units of 2^-32: the error is below 3e-9 plus 3e-10 times the result. */
fk_phi fk__phi_of(int64_t x);

/* Whole parts and fractions: floor(a * 2^shift / b), or UINT64_MAX if that is more than 63 bits.
 * b > 0, b < 2^63. */
uint64_t fk__phi_divide(uint64_t a, uint64_t b, uint32_t shift);
/* floor(sqrt(a)) */
uint64_t fk__phi_root(uint64_t a);

#endif /* FK_REMOTE_PHI_H */

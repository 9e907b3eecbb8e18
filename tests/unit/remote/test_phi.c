/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fixed point of remote/phi.h against the C library's floating point. */

#include <math.h>
#include <stdio.h>

#include "remote/phi.h"
#include "support/test.h"

static const double UNIT = 4294967296.0;

static double log10_of_1_plus_exp(double x)
{
    return ((x > 0 ? x : 0) + log1p(exp(-fabs(x)))) / log(10);
}

TEST(phi_of_x_is_what_the_c_library_says)
{
    double worst = 0;
    for (int64_t x = -FK_PHI(90); x < FK_PHI(90); x += 3998567) {
        double expected = log10_of_1_plus_exp((double)x / UNIT);
        double error = fabs((double)fk__phi_of(x) / UNIT - expected) / (3e-9 + 3e-10 * expected);
        if (error > worst) worst = error;
    }
    printf("worst error: %.3f of the bound\n", worst);
    CHECK(worst < 1);
}

TEST(phi_is_what_the_c_library_says)
{
    test_random random = { 11 };
    double worst = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        fk_time mean = (fk_time)test_random_below(&random, FK_SECONDS(60));
        fk_time deviation = 1 + (fk_time)test_random_below(&random, FK_SECONDS(10));
        double spread = (double)test_random_below(&random, 80) - 40;
        fk_time elapsed = mean + (fk_time)(spread * (double)deviation * 0.97);
        double y = (double)(elapsed - mean) / (double)deviation;
        double expected = log10_of_1_plus_exp(y * (1.5976 + 0.070566 * y * y));
        double got = (double)fk__phi(elapsed, mean, deviation) / UNIT;
        double error = fabs(got - expected) / (3e-9 * (1 + expected));
        if (error > worst) worst = error;
    }
    printf("worst error: %.3f of the bound\n", worst);
    CHECK(worst < 1);
}

TEST(phi_grows_with_silence_and_ends_at_its_most)
{
    fk_phi last = 0;
    for (fk_time elapsed = 0; elapsed < FK_SECONDS(30); elapsed += FK_MILLIS(7)) {
        fk_phi phi = fk__phi(elapsed, FK_SECONDS(11), FK_MILLIS(100));
        CHECK(phi >= last);
        last = phi;
    }
    CHECK(last == FK_PHI_MOST);
    CHECK(fk__phi(FK_NEVER, 0, 1) == FK_PHI_MOST);
    CHECK(fk__phi(0, FK_NEVER, 1) == 0);
    CHECK(fk__phi(INT64_MIN, FK_NEVER, FK_NEVER) >= 0);
}

/* No seed, no tolerance: whatever compiled it, these are the numbers. */
TEST(phi_is_the_same_everywhere)
{
    test_random random = { 1 };
    uint64_t hash = 14695981039346656037u;
    for (uint32_t i = 0; i < 100000; i++) {
        fk_time elapsed = (fk_time)test_random_below(&random, FK_SECONDS(20));
        fk_time mean = (fk_time)test_random_below(&random, FK_SECONDS(20));
        fk_time deviation = FK_MILLIS(1) + (fk_time)test_random_below(&random, FK_SECONDS(3));
        hash = (hash ^ (uint64_t)fk__phi(elapsed, mean, deviation)) * 1099511628211u;
    }
    printf("%#llx\n", (unsigned long long)hash);
    CHECK_U64(hash, 0xecad4f0789ca347d);
}

TEST(phi_divides_and_takes_roots_exactly)
{
    test_random random = { 3 };
    for (uint32_t i = 0; i < 100000; i++) {
        uint64_t a = test_random_next(&random) >> test_random_below(&random, 63);
        uint64_t b = (test_random_next(&random) >> 1 >> test_random_below(&random, 60)) | 1;
        uint64_t root = fk__phi_root(a);
        if (a / b <= INT64_MAX) CHECK_U64(fk__phi_divide(a, b, 0), a / b);
        CHECK(root * root <= a);
        CHECK(root == UINT32_MAX || (root + 1) * (root + 1) > a);
        if (a < (uint64_t)1 << 31) CHECK_U64(fk__phi_divide(a, b, 32), (a << 32) / b);
    }
    CHECK_U64(fk__phi_divide(UINT64_MAX, 1, 0), UINT64_MAX); /* more than 63 bits */
    CHECK_U64(fk__phi_divide(UINT64_MAX, 1, 32), UINT64_MAX);
}

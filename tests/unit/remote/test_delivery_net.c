/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit/remote/delivery_net.h"

#include <stdio.h>

TEST(delivery_is_exactly_once_in_order_or_reported_over_a_bad_network)
{
    history_run_all(delivery_net_run, test_is_sanitized() ? 200 : 2000, 1500);
    const delivery_net_seen *seen = &delivery_net_counts;
    printf("%llu delivered, %llu lost, %llu refused; %llu packets dropped, %llu doubled; "
           "%llu restarts, %llu broken connections, given up %llu times\n",
           (unsigned long long)seen->delivered, (unsigned long long)seen->lost,
           (unsigned long long)seen->refused, (unsigned long long)seen->dropped,
           (unsigned long long)seen->doubled, (unsigned long long)seen->restarts,
           (unsigned long long)seen->breaks, (unsigned long long)seen->given_up);
    CHECK(seen->delivered > 0 && seen->lost > 0 && seen->refused > 0 && seen->dropped > 0);
    CHECK(seen->doubled > 0 && seen->restarts > 0 && seen->breaks > 0 && seen->given_up > 0);
}
